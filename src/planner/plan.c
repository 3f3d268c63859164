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
#include "catalog/pg_class.h"
#include "compat.h"
#include "core/core.h"
#include "key/codec.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "planner/activity/activity.h"
#include "planner/deferred/deferred.h"
#include "planner/gate/gate.h"
#include "planner/hooks.h"
#include "planner/join_filter/join_filter.h"
#include "planner/knowledge/knowledge.h"
#include "planner/planning/planning.h"
#include "planner/skip/skip.h"
#include "rangefilter/rangefilter.h"
#include "stats/stats.h"

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
	rf_begin_asking(planning);
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
					 errmsg("another extension cached a plan before rangefilter had finished it"),
					 errhint("Load rangefilter before extensions that keep plans.")));
		stmt->invalItems = foreach_delete_current(stmt->invalItems, cell);
		marked = true;
	}
	return marked || planning->mark == 0;
}

/*
 * One attempt to plan a query by next.  Fills in planning, which has a copy of the query
 * if something may be skipped.
 */
static PlannedStmt *
plan_once(RfPlanning *planning, planner_hook_type next, RF_PLANNER_PARAMS)
{
	PlannedStmt *volatile result;
	bool		candidate = holds_candidate((Node *) parse, NULL);
	QuerySource source;

	if (candidate && may_skip())
		begin_skipping(planning, cursor_options);
	planning->may_gate = may_gate(cursor_options);
	planning->may_defer = planning->may_defer && planning->saved != NULL &&
		!rf_suppress_deferring;
	source = rf_core_mark_query(parse);
	rf_planning = planning;
	PG_TRY();
	{
		result = next(RF_PLANNER_ARGS);
	}
	PG_FINALLY();
	{
		rf_end_planning(planning);
		parse->querySource = source;
	}
	PG_END_TRY();
	rf_forget_permissions(result);
	if (candidate || planning->gate_rels != NULL)
		rf_add_inval_item(result, RF_ENABLE_HASH);
	return result;
}

/*
 * planner_hook: has a query planned by next, and finishes the plan.  If the plan has a
 * placeholder of a table that was deferred, the query is planned again without deferring
 * that table; the second time without deferring any.
 */
PlannedStmt *
rf_plan(planner_hook_type next, RF_PLANNER_PARAMS)
{
	List	   *not_deferred = NIL;

	if (rf_planning == NULL && !rf_entries_in_use)
		rf_trim_tables();
	for (int attempt = 0;; attempt++)
	{
		RfPlanning	planning = {.outer = rf_planning,.parse = parse,
			.context = CurrentMemoryContext,.may_defer = attempt < 2,
		.not_deferred = not_deferred};
		PlannedStmt *result = plan_once(&planning, next, RF_PLANNER_ARGS);

		if (!is_made_now(result, &planning))
			return result;
		if (planning.deferred != NIL)
		{
			List	   *found = list_concat(planning.refuted,
											rf_find_placeholders(result, &planning.deferred_tables));

			if (found != NIL)
			{
				not_deferred = list_concat(not_deferred, found);
				parse = copyObject(planning.saved);
				continue;
			}
		}
		rf_attach_guard(result, &planning);
		rf_finish_gates(result, &planning);
		rf_push_join_filters(result, &planning);
		rf_attach_watch(result, &planning);
		return result;
	}
}
