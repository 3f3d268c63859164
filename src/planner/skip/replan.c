/*-------------------------------------------------------------------------
 *
 * replan.c
 *	  A plan whose guard does not hold when it is started is made anew.
 *
 * By then core has locked what the plan names and has taken the snapshot.
 * Planning again locks further partitions after the snapshot, which core
 * avoids: a TRUNCATE and an INSERT committed in between would show neither the
 * old nor the new rows.  So where the snapshot was taken for this statement
 * alone it is replaced by a fresh one; and since what is skipped must have
 * been read after the snapshot (R3), the new plan's guard is checked again.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "core/core.h"
#include "executor/executor.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "planner/planning/planning.h"
#include "planner/skip/skip.h"
#include "rangefilter/rangefilter.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/*
 * So often a guard may fail before nothing is skipped any more.  A planner hook
 * above ours that returns a plan it has kept does not hear of that; once more, and
 * it is passed by.
 */
#define RF_MAX_ATTEMPTS 3

/*
 * Plans the Query of a guard once more, by make_plan.  Skips nothing where told so.
 */
static PlannedStmt *
plan_query(QueryDesc *desc, CustomScan *guard, int eflags, bool skip,
		   planner_hook_type make_plan)
{
	Query	   *query = copyObject(list_nth_node(Query, guard->custom_private,
												 RF_GUARD_QUERY));
	int			cursor_options = intVal(list_nth(guard->custom_private,
												 RF_GUARD_CURSOR_OPTIONS));
	bool		outer = rf_suppress_skips;
	bool		outer_cached_probes = rf_suppress_cached_probes;
	PlannedStmt *stmt;

	/* A cursor made scrollable by what its plan could do. */
	if (eflags & EXEC_FLAG_BACKWARD)
		cursor_options |= CURSOR_OPT_SCROLL;

	PG_TRY();
	{
		rf_suppress_skips = outer || !skip;
		rf_suppress_cached_probes = true;
		stmt = make_plan(query, desc->sourceText, cursor_options, desc->params);
	}
	PG_FINALLY();
	{
		rf_suppress_skips = outer;
		rf_suppress_cached_probes = outer_cached_probes;
	}
	PG_END_TRY();
	return stmt;
}

/*
 * Replaces a plan whose guard does not hold by one that can be run with the
 * QueryDesc's snapshot, which may be replaced, too.  Returns the memory context
 * the plan is in, a child of the current one.
 */
static MemoryContext
plan_again(QueryDesc *desc, CustomScan *guard, int eflags,
		   planner_hook_type make_plan)
{
	PlannedStmt *original = desc->plannedstmt;
	bool		fresh = rf_planning == NULL && rf_core_owns_snapshot(desc);
	bool		pushed = false;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "rangefilter plan",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);

	if (!ActiveSnapshotSet())
	{
		PushActiveSnapshot(desc->snapshot);
		pushed = true;
	}
	for (int attempt = 1;; attempt++)
	{
		PlannedStmt *stmt = plan_query(desc, guard, eflags,
									   attempt <= RF_MAX_ATTEMPTS,
									   attempt <= RF_MAX_ATTEMPTS + 1 ?
									   planner : make_plan);
		CustomScan *new_guard = rf_find_guard(stmt);

		if (fresh)
			rf_core_refresh_snapshot(desc);
		if (new_guard == NULL || rf_guard_holds(new_guard, desc->snapshot))
		{
			stmt->queryId = original->queryId;
			desc->plannedstmt = stmt;
			break;
		}
		MemoryContextReset(context);
	}
	if (pushed)
		PopActiveSnapshot();
	MemoryContextSwitchTo(old);
	return context;
}

/*
 * Sees to it that a plan about to be started leaves out nothing that the
 * QueryDesc's snapshot needs: plans its query again where its guard does not hold,
 * by make_plan the last time.  Returns the memory context the new plan is in, or
 * NULL.  Workers run plans of their own too, but none of those has skipped anything.
 */
MemoryContext
rf_replan(QueryDesc *desc, int eflags, planner_hook_type make_plan)
{
	CustomScan *guard = NULL;

	if (!IsParallelWorker())
		guard = rf_find_guard(desc->plannedstmt);
	if (guard == NULL || (rf_enable && rf_guard_holds(guard, desc->snapshot)))
		return NULL;

	/* The next execution of a cached plan had better not get here. */
	rf_invalidate_plans(intVal(list_nth(guard->custom_private,
										RF_GUARD_HASH)));
	return plan_again(desc, guard, eflags, make_plan);
}
