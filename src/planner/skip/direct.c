/*-------------------------------------------------------------------------
 *
 * direct.c
 *	  Asking which partitions are left while a plan runs, without the planner.
 *
 * The question is that of planning, and the check is that of a guard, one right after
 * the other.  So what holds for a plan that skips partitions (R3, R5) holds for the
 * answer.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "partitioning/partdesc.h"
#include "planner/condition/condition.h"
#include "planner/knowledge/knowledge.h"
#include "planner/planning/planning.h"
#include "planner/skip/skip.h"
#include "rangefilter/rangefilter.h"

/*
 * Those of some partitions that may have rows which satisfy the clauses; NULL and *failed where
 * that is not so for the snapshot, because something has changed meanwhile.
 */
static Bitmapset *
ask_partitions(Oid relid, PartitionDesc partdesc, Bitmapset *partitions, List *clauses,
			   Snapshot snapshot, bool *failed)
{
	RfExpansion expansion = {.relid = relid,.partdesc = partdesc,.leaves = partitions};
	RfTable    *table = rf_find_table(relid);

	rf_begin_asking(rf_planning);
	if (!rf_match_flat(clauses, 1, table, table->own_needed, &expansion.match))
		return partitions;
	rf_ask_leaves(table, &expansion);

	/* Has a function been replaced meanwhile, and indexes built anew with it? */
	if (table->functions != NIL && !table->valid)
		return partitions;
	*failed = !rf_denials_hold(rf_planning, &expansion, snapshot);
	return *failed ? NULL : bms_difference(partitions, expansion.excluded);
}

/*
 * Asks; if something changes meanwhile, once more without cached metapages.  Returns all partitions
 * if that did not help.
 */
static Bitmapset *
ask_twice(Oid relid, PartitionDesc partdesc, Bitmapset *partitions, List *clauses,
		  Snapshot snapshot)
{
	bool		failed = false;
	Bitmapset  *left = ask_partitions(relid, partdesc, partitions, clauses, snapshot, &failed);

	if (!failed)
		return left;
	failed = false;
	rf_suppress_cached_probes = true;
	left = ask_partitions(relid, partdesc, partitions, clauses, snapshot, &failed);
	return failed ? partitions : left;
}

/*
 * Ends what rf_partitions_left() has begun.
 */
static void
end_asking(RfPlanning *planning, bool outer_cached_probes)
{
	rf_end_planning(planning);
	rf_suppress_cached_probes = outer_cached_probes;
}

/*
 * Those of a table's partitions, by their numbers in the descriptor, that may have rows for a
 * snapshot that satisfy all clauses, which are about varno 1 and compare with constants.  The
 * caller has locked the table.  All of the partitions asked for must be leaves.  Under
 * SERIALIZABLE the predicate locks for those left out have been taken.
 */
Bitmapset *
rf_partitions_left(Oid relid, PartitionDesc partdesc, Bitmapset *partitions, List *clauses,
				   Snapshot snapshot)
{
	RfPlanning	planning = {.outer = rf_planning,.context = CurrentMemoryContext};
	bool		outer_cached_probes = rf_suppress_cached_probes;
	Bitmapset  *volatile left = NULL;

	if (!rf_enable || bms_is_empty(partitions))
		return partitions;
	PG_TRY();
	{
		rf_planning = &planning;
		left = ask_twice(relid, partdesc, partitions, clauses, snapshot);
	}
	PG_CATCH();
	{
		end_asking(&planning, outer_cached_probes);
		PG_RE_THROW();
	}
	PG_END_TRY();
	end_asking(&planning, outer_cached_probes);
	return left;
}
