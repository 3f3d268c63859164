/*-------------------------------------------------------------------------
 *
 * replan.c
 *	  Planning again when a plan is started whose guard does not hold.
 *
 * When a plan is started, core has locked the plan's tables and taken the
 * snapshot.  Planning again locks further partitions after the snapshot, which
 * core avoids: if another session commits a TRUNCATE and an INSERT in between,
 * the query would see neither the old nor the new rows.  So the snapshot is
 * taken anew if it was taken for this statement alone.  Skips must
 * rely on what was read after the snapshot (R3), so the new plan's guard is
 * checked again.
 *
 * The guard's node is started with the plan, whoever starts it.  If that start is not the
 * one that was checked here, because a module went past our ExecutorStart_hook, the node
 * checks the guard itself.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "compat.h"
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
 * After this many new plans whose guards failed, the next plan skips nothing.
 * A planner hook above ours may return a plan with a guard that it has kept.
 * If that guard fails, too, that hook is not called any more.
 */
#define RF_MAX_ATTEMPTS 3

/* The start under way whose plan was checked for its snapshot; an error goes back to that around it. */
typedef struct RfCheckedStart
{
	const PlannedStmt *stmt;	/* NULL: none */
	Snapshot	snapshot;
} RfCheckedStart;

static RfCheckedStart checked = {NULL, InvalidSnapshot};

/*
 * Plans the Query of a guard once more, by make_plan.  Skips nothing if skip
 * is false.
 */
static PlannedStmt *
plan_query(QueryDesc *desc, const RfGuard *guard, int eflags, bool skip,
		   planner_hook_type make_plan)
{
	Query	   *query = copyObject(guard->query);
	int			cursor_options = guard->cursor_options;
	bool		outer = rf_suppress_skips;
	bool		outer_cached_probes = rf_suppress_cached_probes;
	PlannedStmt *stmt;

	/* A cursor may be scrollable because its first plan could run backward. */
	if (eflags & EXEC_FLAG_BACKWARD)
		cursor_options |= CURSOR_OPT_SCROLL;

	PG_TRY();
	{
		rf_suppress_skips = outer || !skip;
		rf_suppress_cached_probes = true;
		stmt = RF_PLAN_QUERY(make_plan, query, desc->sourceText,
							 cursor_options, desc->params);
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
 * QueryDesc's snapshot.  May take that anew, too.  Returns the memory
 * context of the plan, a child of the current one.
 */
static MemoryContext
plan_again(QueryDesc *desc, const RfGuard *guard, int eflags,
		   planner_hook_type make_plan)
{
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
		RfGuard		new_guard;

		if (fresh)
			rf_core_refresh_snapshot(desc);
		if (!rf_find_guard(stmt, &new_guard) ||
			rf_guard_holds(&new_guard, desc->snapshot))
		{
			rf_core_replace_plan(desc, stmt);
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
 * Ensures that a plan which is about to be started leaves out no partition
 * with rows for the QueryDesc's snapshot.  If its guard does not hold, plans
 * its query again; make_plan is used for the last attempts.  Returns the
 * memory context of the new plan, or NULL.  Plans of workers have no skips.
 */
MemoryContext
rf_replan(QueryDesc *desc, int eflags, planner_hook_type make_plan)
{
	RfGuard		guard;

	if (IsParallelWorker() || !rf_find_guard(desc->plannedstmt, &guard) ||
		(rf_enable && rf_guard_holds(&guard, desc->snapshot)))
		return NULL;

	/* A cached plan is made anew before its next execution. */
	rf_invalidate_plans(guard.hash);
	return plan_again(desc, &guard, eflags, make_plan);
}

/*
 * Starts a plan, by start, after rf_replan() has checked it.  The guard's node need not check it
 * again if it is started within, in this plan and with this snapshot, both of which the QueryDesc
 * holds meanwhile.
 */
void
rf_start_checked(QueryDesc *desc, int eflags, ExecutorStart_hook_type start)
{
	RfCheckedStart outer = checked;
	RfGuard		guard;

	if (IsParallelWorker() || !rf_find_guard(desc->plannedstmt, &guard))
	{
		start(desc, eflags);
		return;
	}
	PG_TRY();
	{
		checked.stmt = desc->plannedstmt;
		checked.snapshot = desc->snapshot;
		start(desc, eflags);
	}
	PG_FINALLY();
	{
		checked = outer;
	}
	PG_END_TRY();
}

/*
 * BeginCustomScan of the guard.  Raises an error if the plan must not be run with the snapshot
 * that it is started with.  EXPLAIN does not run it, and EvalPlanQual is about a plan and a
 * snapshot that were started before.
 */
void
rf_begin_guard(CustomScanState *node, EState *estate, int eflags)
{
	RfGuard		guard;

	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0 || estate->es_epq_active != NULL ||
		(checked.stmt == estate->es_plannedstmt && checked.snapshot == estate->es_snapshot))
		return;
	rf_read_guard((CustomScan *) node->ss.ps.plan, &guard);
	if (rf_guard_holds(&guard, estate->es_snapshot))
		return;
	rf_invalidate_plans(guard.hash);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("a plan that skips partitions is out of date"),
			 errdetail("The partitions have changed since the query was planned, and another extension has started it without calling rangefilter."),
			 errhint("Load rangefilter after that extension, or set \"rangefilter.enable\" to off.")));
}
