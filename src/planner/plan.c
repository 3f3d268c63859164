/*-------------------------------------------------------------------------
 *
 * plan.c
 *	  Every call of the planner, and what it may do.
 *
 * A skip is not certain until the executor has its snapshot, so a plan that relies
 * on one must come with the means to make another.  Planning scribbles on the
 * Query; hence a copy of it is kept, if there is something in it that could be
 * skipped.  Without the copy nothing is skipped: when the library is loaded in
 * the middle of planning, for instance.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "common/pg_prng.h"
#include "compat.h"
#include "core/core.h"
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
#include "storage/lwlock.h"
#include "utils/inval.h"
#include "utils/snapmgr.h"

/*
 * Does one entry of a range table hold something that could be skipped?
 * Functions may, since SQL functions are inlined.
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
 * Does a query hold anything that could be skipped, at any level?  Walks
 * expressions only where they have subqueries.
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
 * Does a query have FOR UPDATE, FOR SHARE or the like, at any level?
 */
static bool
locks_rows(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, locks_rows, context);
	return ((Query *) node)->rowMarks != NIL ||
		query_tree_walker((Query *) node, locks_rows, context, 0);
}

/*
 * May partitions be skipped in this query at all?  Not in a cursor that is
 * declared FOR UPDATE: an UPDATE ... WHERE CURRENT OF looks for each partition
 * in the cursor's plan.  Workers do not skip, since they would have to check.
 */
static bool
may_skip(Query *parse, int cursor_options)
{
	const int	declared = CURSOR_OPT_SCROLL | CURSOR_OPT_NO_SCROLL |
	CURSOR_OPT_INSENSITIVE | CURSOR_OPT_ASENSITIVE |
	CURSOR_OPT_HOLD | CURSOR_OPT_FAST_PLAN;

	if (!rf_enable || rf_suppress_skips || IsParallelWorker() ||
		RF_SNAPSHOTS_EXPIRE())
		return false;
	return (cursor_options & declared) == 0 ||
		!locks_rows((Node *) parse, NULL);
}

/*
 * May there be gates?  Not in the plan of a cursor that has a name: UPDATE ...
 * WHERE CURRENT OF finds no scan below a gate.  PL/pgSQL's loops over queries
 * are cursors, too, but without a name.
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
 * Could the result of planning this depend on rangefilter indexes?
 */
static bool
is_candidate(Query *parse)
{
	return parse->commandType != CMD_UTILITY && IsNormalProcessingMode() &&
		holds_candidate((Node *) parse, NULL);
}

/*
 * Fills in what skip.c and guard.c need.
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
	 * Of most indexes no lock will be taken.  One that is about to go has
	 * been declared not valid before anybody's rows pass it by: who reads
	 * this after the clock knows, or these rows' transaction ends later.
	 */
	AcceptInvalidationMessages();
	planning->cached_probes = rf_begin_cached_probes();
	planning->watch = rf_stats_sample();
}

/*
 * Is this the plan that was made just now?  A hook below ours may return another
 * one that it has kept.  Then that must not be one of ours: what was left out of
 * it nobody would check any more.  Takes the mark away.
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
 * Has a query planned by next, and finishes the plan: planner_hook.
 */
PlannedStmt *
rf_plan(planner_hook_type next, Query *parse, const char *query_string,
		int cursor_options, ParamListInfo bound_params)
{
	RfPlanning	planning = {.outer = rf_planning,.parse = parse,
	.context = CurrentMemoryContext};
	PlannedStmt *result;
	bool		candidate;
	QuerySource source;

	if (planning.outer == NULL && !rf_guard_checking)
		rf_trim_tables();
	candidate = is_candidate(parse);
	if (candidate && may_skip(parse, cursor_options))
		begin_skipping(&planning, cursor_options);

	planning.may_gate = may_gate(cursor_options);
	source = rf_core_mark_query(parse);
	rf_planning = &planning;
	PG_TRY();
	{
		result = next(parse, query_string, cursor_options, bound_params);
	}
	PG_FINALLY();
	{
		rf_planning = planning.outer;
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
