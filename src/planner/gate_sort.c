/*-------------------------------------------------------------------------
 *
 * gate_sort.c
 *	  The values a merge join gives to gates below one of its sides.
 *
 * They are those of a Sort on its other side.  A merge join reads its outer side
 * first, so when it comes to the inner one a Sort on the outer side has all its
 * rows.  A Sort on the inner side is asked for them early, when the first gate
 * on the outer side is: it depends on nothing but parameters that were set
 * before the join.
 *
 * The rows are read from the sort's memory, where it keeps them until its end,
 * and it is left at the row where it was.  For that it must be able to go back,
 * which it is told before it runs, as a merge join tells the sort on its inner
 * side.  What went to disk is not read.  Nor is a sort on the inner side that runs
 * already: the join uses its mark.
 *
 * They are read once.  gate_join.c makes such gates only where they are
 * the same in each scan of the join.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "planner/gate.h"
#include "utils/tuplesort.h"

/*
 * The sort on a side of a merge join whose values gates below the other side
 * are to get.  Called when the plan has been started and nothing has run; NULL
 * where there is none.
 */
RfSorted *
rf_sorted_make(MergeJoinState *join, bool outer)
{
	PlanState  *node = outer ? outerPlanState(join) : innerPlanState(join);
	RfSorted   *sorted;

	while (IsA(node, UniqueState) || IsA(node, MaterialState))
		node = outerPlanState(node);
	if (!IsA(node, SortState))
		return NULL;
	sorted = palloc0(sizeof(RfSorted));
	sorted->sort = (SortState *) node;
	sorted->outer = outer;
	sorted->sort->randomAccess = true;
	return sorted;
}

/*
 * Lets a sort run before the join asks for its first row.  To EXPLAIN ANALYZE,
 * the row that it returns is none yet.
 */
static void
run_sort(SortState *sort)
{
	PlanState  *node = &sort->ss.ps;
	MemoryContext old = MemoryContextSwitchTo(node->state->es_query_cxt);
	TupleTableSlot *slot = ExecProcNode(node);

	if (!TupIsNull(slot) && node->instrument != NULL)
		node->instrument->tuplecount -= 1;
	ExecClearTuple(node->ps_ResultTupleSlot);
	tuplesort_rescan(sort->tuplesortstate);
	MemoryContextSwitchTo(old);
}

/*
 * The row before into a feed's slot; false if there is none.
 */
static bool
previous_row(SortState *sort, TupleTableSlot *slot)
{
	ExecClearTuple(slot);
	if (!sort->datumSort)
		return tuplesort_gettupleslot(sort->tuplesortstate, false, false, slot,
									  NULL);
	if (!RF_TUPLESORT_GETDATUM(sort->tuplesortstate, false,
							   &slot->tts_values[0], &slot->tts_isnull[0]))
		return false;
	ExecStoreVirtualTuple(slot);
	return true;
}

/*
 * Collects the values of one key, from the last row to the first: the mark is
 * lost if the sort begins anew.
 */
static void
read_values(SortState *sort, RfFeed *feed)
{
	RfFeedValues values;
	int			n = 0;
	bool		more;

	if (tuplesort_skiptuples(sort->tuplesortstate, RF_FEED_MAX_ROWS + 1,
							 true))
		return;
	rf_feed_begin(feed, RF_FEED_MAX_ROWS, &values);
	while ((more = previous_row(sort, feed->slot)) && n++ < RF_FEED_MAX_ROWS)
	{
		CHECK_FOR_INTERRUPTS();
		rf_feed_add(feed, &values);
	}
	ExecClearTuple(feed->slot);
	rf_feed_end(feed, &values, !more);
}

/*
 * Collects the values of all keys that gates wait for, if they can be had now.
 */
void
rf_sorted_read(RfSorted *sorted)
{
	SortState  *sort = sorted->sort;
	TuplesortInstrumentation stats;
	ListCell   *cell;

	if (sorted->done || (sorted->outer && !sort->sort_Done))
		return;
	sorted->done = true;
	if (!sorted->outer)
	{
		if (sort->sort_Done)
			return;
		run_sort(sort);
	}
	tuplesort_get_stats(sort->tuplesortstate, &stats);
	if (stats.spaceType != SORT_SPACE_TYPE_MEMORY)
		return;
	tuplesort_markpos(sort->tuplesortstate);
	foreach(cell, sorted->feeds)
		read_values(sort, lfirst(cell));
	tuplesort_restorepos(sort->tuplesortstate);
}
