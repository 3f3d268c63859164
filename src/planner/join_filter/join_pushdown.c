/*-------------------------------------------------------------------------
 *
 * join_pushdown.c
 *	  Gates that hash joins give their values to.
 *
 * A hash join has read its inner side before it needs the first row of its
 * outer side.  Where rows of the outer side that match nothing are no result,
 * the values of the inner side are all that the outer side's scans need look
 * for: a condition "key = ANY (values)" of a gate.
 *
 * Such gates are made when the plan is finished.  No path depends on them,
 * and they cost the planner a walk over the plan.  On the way down from a
 * join, what it compares is followed through the target lists of nodes that
 * hand rows on or join them, to scans of members that have an index for it.
 * Not through nodes whose result is more than the sum of that of their rows
 * (Limit, aggregates), into the side of an outer join that may be filled with
 * NULLs, or into other processes.
 *
 * Nor through nodes that keep rows from one scan to the next (Sort, Material,
 * Memoize, Hash): the values may differ by then.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/value.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "planner/gate/gate.h"
#include "planner/join_filter/join_filter.h"
#include "planner/planning/planning.h"
#include "utils/lsyscache.h"

static Plan *push_down(RfPushdown *pushdown, Plan *plan, List *filters);

/*
 * The join filters for a plan, passed on to the one of its inputs that its
 * target list refers to by varno.
 */
static List *
pass_on(List *filters, List *tlist, int varno)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, filters)
	{
		RfJoinFilter *filter = lfirst(cell);
		Node	   *expr = rf_replace_vars(filter->expr, OUTER_VAR, tlist);

		if (expr != NULL)
			expr = rf_replace_vars(expr, varno, NIL);
		if (expr != NULL)
		{
			RfJoinFilter *passed = palloc(sizeof(RfJoinFilter));

			*passed = *filter;
			passed->expr = expr;
			result = lappend(result, passed);
		}
	}
	return result;
}

/*
 * Does this hold a parameter that is set in the plan?
 */
static bool
has_exec_param(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
		return true;
	return expression_tree_walker(node, has_exec_param, context);
}

/*
 * The join filters of a hash join, for its outer side.  Nothing where it expects more values
 * than are worth asking for.  What it hashes is computed once more from the rows
 * in its table, so it must be sure to be the same then.
 */
static List *
make_join_filters(HashJoin *join)
{
	Hash	   *hash = (Hash *) innerPlan(join);
	List	   *filters = NIL;
	ListCell   *cell;

	if (join->join.plan.parallel_aware ||
		!RF_DROPS_OUTER(join->join.jointype) ||
		outerPlan(hash)->plan_rows > RF_JOIN_MAX_ROWS)
		return NIL;
	foreach(cell, join->hashclauses)
	{
		OpExpr	   *clause = lfirst(cell);
		int			key = foreach_current_index(cell);
		Node	   *inner = list_nth(hash->hashkeys, key);
		Oid			array = get_array_type(exprType(inner));
		RfJoinFilter *filter;

		if (!IsA(clause, OpExpr) || !OidIsValid(array) ||
			contain_volatile_functions(inner) || contain_subplans(inner) ||
			has_exec_param(inner, NULL))
			continue;
		filter = palloc(sizeof(RfJoinFilter));
		filter->join = join->join.plan.plan_node_id;
		filter->key = key;
		filter->clause = clause;
		filter->array = array;
		filter->expr = linitial(clause->args);
		filters = lappend(filters, filter);
	}
	return filters;
}

/*
 * A gate that asks nothing yet.
 */
static CustomScan *
make_gate(const Plan *plan, List *plans, List *tlist)
{
	CustomScan *gate = rf_make_gate(plan, plans, tlist);
	RfGateQuestion asked = {0};

	for (int i = 0; i < list_length(plans); i++)
		asked.members = lappend(asked.members, NIL);
	rf_gate_write(gate, &asked);
	return gate;
}

/*
 * Replaces members of an append relation by the relation, as EXPLAIN does for
 * what an Append returns.
 */
static Node *
name_parents(Node *node, void *arg)
{
	PlannedStmt *stmt = arg;
	ListCell   *cell;

	if (node == NULL)
		return NULL;
	if (!IsA(node, Var))
		return expression_tree_mutator(node, name_parents, arg);
	foreach(cell, stmt->appendRelations)
	{
		AppendRelInfo *appinfo = lfirst_node(AppendRelInfo, cell);
		Var		   *var = (Var *) node;

		AttrNumber	attno = var->varattno;

		if (appinfo->child_relid != var->varno || attno == 0 ||
			(attno < 0 && !OidIsValid(appinfo->parent_reloid)))
			continue;
		if (attno > 0)
			attno = attno > appinfo->num_child_cols ? 0 :
				appinfo->parent_colnos[attno - 1];
		if (attno == 0)
			continue;
		var = copyObject(var);
		var->varno = appinfo->parent_relid;
		var->varattno = attno;
		var->varnosyn = 0;
		var->varattnosyn = 0;
		return name_parents((Node *) var, arg);
	}
	return node;
}

/*
 * Pushes join filters into plans of a list, or into those of them that are no
 * scans.
 */
static void
push_down_all(RfPushdown *pushdown, List *plans, List *filters, bool scans)
{
	ListCell   *cell;

	foreach(cell, plans)
	{
		if (scans || !rf_is_filterable_scan(lfirst(cell)))
			lfirst(cell) = push_down(pushdown, lfirst(cell), filters);
	}
}

/*
 * Can a gate take the place of an Append?
 */
static bool
is_replaceable(Append *append)
{
	ListCell   *cell;

	if (append->plan.parallel_aware || append->nasyncplans > 0 ||
		RF_APPEND_PRUNES(append))
		return false;
	foreach(cell, append->appendplans)
	{
		if (rf_is_gate(lfirst(cell)))
			return false;
	}
	return true;
}

/*
 * An Append: a gate takes its place, or its members get gates of their own.
 */
static Plan *
push_into_append(RfPushdown *pushdown, Append *append, List *filters)
{
	filters = pass_on(filters, append->plan.targetlist, OUTER_VAR);
	if (filters != NIL && is_replaceable(append))
	{
		CustomScan *gate = make_gate(&append->plan, append->appendplans, NIL);
		Plan	   *scan = rf_add_join_filters(pushdown, gate, filters);

		if (scan != NULL)
		{
			gate->custom_scan_tlist = (List *)
				name_parents((Node *) rf_scan_tlist(scan),
							 pushdown->stmt);
			gate->custom_relids = bms_add_member(bms_copy(append->apprelids),
												 ((Scan *) scan)->scanrelid);
			push_down_all(pushdown, gate->custom_plans, filters, false);
			return &gate->scan.plan;
		}
	}
	push_down_all(pushdown, append->appendplans, filters, true);
	return &append->plan;
}

/*
 * A single scan: a gate above it.
 */
static Plan *
push_into_scan(RfPushdown *pushdown, Plan *plan, List *filters)
{
	CustomScan *gate;
	Index		rti = ((Scan *) plan)->scanrelid;
	const RfGateRel *rel;

	if (filters == NIL)
		return plan;
	gate = make_gate(plan, list_make1(plan), rf_scan_tlist(plan));
	if (rf_add_join_filters(pushdown, gate, filters) == NULL)
		return plan;
	rel = rf_find_gate_rel(pushdown, rt_fetch(rti, pushdown->stmt->rtable));
	gate->scan.plan.plan_node_id = rel->root->glob->lastPlanNodeId++;
	gate->scan.plan.parallel_aware = false;
	gate->scan.plan.qual = NIL;
	gate->scan.plan.lefttree = NULL;
	gate->scan.plan.righttree = NULL;
	gate->scan.plan.initPlan = NIL;
	gate->custom_relids = bms_make_singleton(rti);
	return &gate->scan.plan;
}

/*
 * Does every row of a join come from one of its outer side?
 */
static bool
keeps_outer(JoinType type)
{
	return type == JOIN_INNER || type == JOIN_LEFT || type == JOIN_SEMI ||
		type == JOIN_ANTI;
}

/*
 * Pushes join filters into the inputs of a join, its own ones, too.
 */
static void
push_into_join(RfPushdown *pushdown, Join *join, List *filters)
{
	List	   *tlist = join->plan.targetlist;
	List	   *outer = NIL;
	List	   *inner = NIL;

	if (keeps_outer(join->jointype))
		outer = pass_on(filters, tlist, OUTER_VAR);
	if (IsA(join, NestLoop) && join->jointype == JOIN_INNER)
		inner = pass_on(filters, tlist, INNER_VAR);
	if (IsA(join, HashJoin))
		outer = list_concat(outer, make_join_filters((HashJoin *) join));
	join->plan.lefttree = push_down(pushdown, join->plan.lefttree, outer);
	join->plan.righttree = push_down(pushdown, join->plan.righttree, inner);
}

/*
 * Pushes join filters, and those of the joins in a plan, down to the plan's scans;
 * returns what replaces the plan.
 */
static Plan *
push_down(RfPushdown *pushdown, Plan *plan, List *filters)
{
	if (plan == NULL)
		return NULL;
	check_stack_depth();
	if (rf_is_filterable_scan(plan))
		return push_into_scan(pushdown, plan, filters);
	switch (nodeTag(plan))
	{
		case T_HashJoin:
		case T_NestLoop:
		case T_MergeJoin:
			push_into_join(pushdown, (Join *) plan, filters);
			return plan;
		case T_Append:
			return push_into_append(pushdown, (Append *) plan, filters);
		case T_MergeAppend:
			push_down_all(pushdown, ((MergeAppend *) plan)->mergeplans,
						  pass_on(filters, plan->targetlist, OUTER_VAR), true);
			return plan;
		case T_SubqueryScan:
			((SubqueryScan *) plan)->subplan =
				push_down(pushdown, ((SubqueryScan *) plan)->subplan,
						  pass_on(filters, plan->targetlist,
								  ((SubqueryScan *) plan)->scan.scanrelid));
			return plan;
		case T_CustomScan:
			if (!rf_is_gate(plan))
			{
				push_down_all(pushdown, ((CustomScan *) plan)->custom_plans, NIL,
							  true);
				return plan;
			}
			filters = pass_on(filters, plan->targetlist, INDEX_VAR);
			if (filters != NIL)
				(void) rf_add_join_filters(pushdown, (CustomScan *) plan, filters);
			push_down_all(pushdown, ((CustomScan *) plan)->custom_plans, filters,
						  false);
			return plan;
		case T_Result:
			filters = pass_on(filters, plan->targetlist, OUTER_VAR);
			break;
		default:
			filters = NIL;
			break;
	}
	plan->lefttree = push_down(pushdown, plan->lefttree, filters);
	plan->righttree = push_down(pushdown, plan->righttree, NIL);
	return plan;
}

/*
 * Called when a statement has been planned and its gates are finished.
 */
void
rf_push_join_filters(PlannedStmt *stmt, RfPlanning *planning)
{
	RfPushdown	pushdown = {.stmt = stmt,.planning = planning};

	if (planning->gate_rels == NULL || !planning->may_gate)
		return;
	stmt->planTree = push_down(&pushdown, stmt->planTree, NIL);
	push_down_all(&pushdown, stmt->subplans, NIL, true);
}
