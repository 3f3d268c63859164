/*-------------------------------------------------------------------------
 *
 * plan.c
 *	  Wraps every call of the planner.
 *
 * A skip is not certain until the executor has its snapshot.  So a plan with
 * skips carries what is needed to plan again: a copy of the Query, because
 * planning scribbles on the Query itself.  The copy is made only if something
 * in the Query could be skipped.  Nothing is skipped without the copy, for
 * instance if the library is loaded in the middle of planning.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "compat.h"
#include "core/core.h"
#include "key/codec.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "planner/activity/activity.h"
#include "planner/gate/gate.h"
#include "planner/hooks.h"
#include "planner/join_filter/join_filter.h"
#include "planner/knowledge/knowledge.h"
#include "planner/planning/planning.h"
#include "planner/skip/skip.h"
#include "rangefilter/rangefilter.h"
#include "stats/stats.h"
#include "utils/inval.h"
#include "utils/snapmgr.h"

/*
 * Can something be skipped in one entry of a range table?  In functions, too,
 * since SQL functions may be inlined.
 */
static bool
rte_holds_candidate(RangeTblEntry *rte)
{
	if (rte->rtekind == RTE_FUNCTION)
		return true;
	return rte->rtekind == RTE_RELATION && rte->inh &&
		rte->relkind == RELKIND_PARTITIONED_TABLE &&
		rf_find_table(rte->relid)->candidate;
}

/*
 * Can something be skipped in a query, at any level?  Walks expressions only
 * if they have subqueries.
 */
static bool
holds_candidate(Node *node, void *context)
{
	Query	   *query = (Query *) node;
	ListCell   *cell;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, holds_candidate, context);

	check_stack_depth();
	foreach(cell, query->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, cell);

		if (rte_holds_candidate(rte) ||
			(rte->rtekind == RTE_SUBQUERY &&
			 holds_candidate((Node *) rte->subquery, context)))
			return true;
	}
	foreach(cell, query->cteList)
	{
		if (holds_candidate(lfirst_node(CommonTableExpr, cell)->ctequery,
							context))
			return true;
	}
	return query->hasSubLinks &&
		query_tree_walker(query, holds_candidate, context,
						  QTW_IGNORE_RT_SUBQUERIES |
						  QTW_IGNORE_CTE_SUBQUERIES);
}

/*
 * May partitions be skipped at all?  Not in workers, which have no guard.
 */
static bool
may_skip(void)
{
	return rf_enable && !rf_suppress_skips && !IsParallelWorker() &&
		!RF_SNAPSHOTS_EXPIRE();
}

/*
 * May there be gates?  Not in the plan of a cursor of DECLARE or PL/pgSQL: UPDATE ...
 * WHERE CURRENT OF finds no scan below a gate.  PL/pgSQL's loops over queries
 * are cursors, too, but their names are not meant to be known.
 */
static bool
may_gate(int cursor_options)
{
	const int	named = CURSOR_OPT_SCROLL | CURSOR_OPT_HOLD |
	CURSOR_OPT_FAST_PLAN;

	return rf_enable && !RF_SNAPSHOTS_EXPIRE() &&
		(cursor_options & named) == 0;
}

/*
 * Fills in the fields that skip.c and guard.c need.
 */
static void
begin_skipping(RfPlanning *planning, int cursor_options)
{
	planning->saved = copyObject(planning->parse);
	planning->cursor_options = cursor_options;
	planning->in_recovery = RecoveryInProgress() ||
		(ActiveSnapshotSet() && GetActiveSnapshot()->takenDuringRecovery);
	if (!planning->in_recovery)
		planning->started = rf_clock_read();
	planning->clock = planning->started;

	/*
	 * Most indexes will not be locked.  An index that is being dropped is
	 * declared not valid before any transaction inserts rows without it.  We
	 * have read the clock already.  So either we see the invalidation now, or
	 * those transactions end later and move the clock.
	 */
	AcceptInvalidationMessages();
	planning->cached_probes = rf_begin_cached_probes();
	planning->watch = rf_stats_sample();
}

/*
 * Was this plan made in this call of the planner?  A hook below ours may
 * return a plan that it has kept.  If that plan has a mark of ours, it is an
 * error: nobody would check the partitions left out of it.  Removes the mark.
 */
static bool
is_made_now(PlannedStmt *stmt, const RfPlanning *planning)
{
	bool		marked = false;
	ListCell   *cell;

	foreach(cell, stmt->invalItems)
	{
		PlanInvalItem *item = lfirst_node(PlanInvalItem, cell);

		if (item->cacheId != RF_MARK_CACHE)
			continue;
		if (item->hashValue != planning->mark)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("a plan with range filters was kept by another extension before it was finished"),
					 errhint("Load rangefilter before extensions that keep plans.")));
		stmt->invalItems = foreach_delete_current(stmt->invalItems, cell);
		marked = true;
	}
	return marked || planning->mark == 0;
}

/*
 * Called when core has planned, or has failed to.
 */
static void
end_planning(const RfPlanning *planning)
{
	rf_planning = planning->outer;
	if (rf_planning == NULL)
		rf_forget_lists();
}

/*
 * planner_hook: has a query planned by next, and finishes the plan.
 */
PlannedStmt *
rf_plan(planner_hook_type next, RF_PLANNER_PARAMS)
{
	RfPlanning	planning = {.outer = rf_planning,.parse = parse,
	.context = CurrentMemoryContext};
	PlannedStmt *volatile result;
	bool		candidate;
	QuerySource source;

	if (planning.outer == NULL && !rf_entries_in_use)
		rf_trim_tables();
	candidate = holds_candidate((Node *) parse, NULL);
	if (candidate && may_skip())
		begin_skipping(&planning, cursor_options);

	planning.may_gate = may_gate(cursor_options);
	source = rf_core_mark_query(parse);
	rf_planning = &planning;
	PG_TRY();
	{
		result = next(RF_PLANNER_ARGS);
	}
	PG_FINALLY();
	{
		end_planning(&planning);
		parse->querySource = source;
	}
	PG_END_TRY();

	if (candidate || planning.gate_rels != NULL)
		rf_add_inval_item(result, RF_ENABLE_HASH);
	if (is_made_now(result, &planning))
	{
		rf_attach_guard(result, &planning);
		rf_finish_gates(result, &planning);
		rf_push_join_filters(result, &planning);
		rf_attach_watch(result, &planning);
	}
	return result;
}
