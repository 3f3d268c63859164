/*-------------------------------------------------------------------------
 *
 * join_pushdown.c
 *	  Pushing join filters down to gates.
 *
 * A hash join has read its inner side before it needs the first row of its
 * outer side.  If outer rows without a match are no result, scans of the outer
 * side need only return rows with values of the inner side: a condition "key =
 * ANY (values)" of a gate.
 *
 * Such gates are made when the plan is finished.  No path depends on them, and
 * they cost the planner a walk over the plan.  On the way down from a join,
 * the expression that it compares is followed through the target lists of
 * nodes that hand on rows or join them, to scans of members that have an index
 * for it.  It is not followed through nodes whose result depends on several
 * rows (Limit, aggregates), into the side of an outer join that may be filled
 * with NULLs, or into other processes.
 *
 * Nor is it followed through nodes that keep rows from one scan to the next
 * (Sort, Material, Memoize, Hash): the values may differ by then.  Nor through nodes that
 * call volatile functions, of a subquery with OFFSET 0 for example: they are to be called for
 * each row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "planner/gate/gate.h"
#include "planner/join_filter/join_filter.h"
#include "planner/planning/planning.h"
#include "utils/lsyscache.h"

static Plan *push_down(RfPushdown *pushdown, Plan *plan, List *filters);

/*
 * Does a node compute nothing that tells how often it does so?  A join may: its other side may be
 * run for each row.
 */
static bool
is_leakproof(const Plan *plan)
{
	return !IsA(plan, NestLoop) && !IsA(plan, HashJoin) && !IsA(plan, MergeJoin) &&
		rf_expression_is_leakproof(NULL, (Node *) plan->targetlist) && rf_expression_is_leakproof(NULL, (Node *) plan->qual);
}

/*
 * Translates the join filters for a plan's output to those for the input that
 * its target list refers to by varno.  Those that cannot be translated are
 * left out.
 */
static List *
pass_on(List *filters, const Plan *plan, int varno)
{
	List	   *tlist = plan->targetlist;
	bool		leaky = filters != NIL && !is_leakproof(plan);
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
			passed->leaky |= leaky;
			result = lappend(result, passed);
		}
	}
	return result;
}

/*
 * Does an expression contain a parameter that is set in the plan?
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

static bool has_volatile(RfPushdown *pushdown);
static bool runs_volatile(RfPushdown *pushdown, Plan *plan);

/*
 * Does one of these plans call volatile functions?
 */
static bool
one_runs_volatile(RfPushdown *pushdown, List *plans)
{
	ListCell   *cell;

	foreach(cell, plans)
	{
		if (runs_volatile(pushdown, lfirst(cell)))
			return true;
	}
	return false;
}

/*
 * Does a subplan of the statement, numbered from 1 on, call volatile functions?  Those that do not
 * are looked at once: a chain of CTEs, each of which refers to the one before twice, would take
 * exponential time.
 */
static bool
subplan_runs_volatile(RfPushdown *pushdown, int number)
{
	if (bms_is_member(number, pushdown->stable_subplans))
		return false;
	if (runs_volatile(pushdown, list_nth(pushdown->stmt->subplans, number - 1)))
		return true;
	pushdown->stable_subplans = bms_add_member(pushdown->stable_subplans, number);
	return false;
}

/*
 * Has an expression, which has no volatile functions itself, a subplan that calls some?
 */
static bool
has_volatile_subplan(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) && subplan_runs_volatile(context, ((SubPlan *) node)->plan_id))
		return true;
	return expression_tree_walker(node, has_volatile_subplan, context);
}

/*
 * Does computing an expression call volatile functions?
 */
static bool
is_volatile(RfPushdown *pushdown, void *expr)
{
	return contain_volatile_functions(expr) || has_volatile_subplan(expr, pushdown);
}

/*
 * Does a node, apart from its inputs, call volatile functions, or change or lock rows?  Then it
 * does so for the rows that core would compute.
 */
bool
rf_node_is_volatile(RfPushdown *pushdown, Plan *plan)
{
	if (!has_volatile(pushdown))
		return false;
	if (is_volatile(pushdown, plan->targetlist) || is_volatile(pushdown, plan->qual))
		return true;
	switch (nodeTag(plan))
	{
		case T_HashJoin:
		case T_NestLoop:
		case T_MergeJoin:
			return is_volatile(pushdown, ((Join *) plan)->joinqual);
		case T_FunctionScan:
			return is_volatile(pushdown, ((FunctionScan *) plan)->functions);
		case T_TableFuncScan:
			return is_volatile(pushdown, ((TableFuncScan *) plan)->tablefunc);
		case T_ValuesScan:
			return is_volatile(pushdown, ((ValuesScan *) plan)->values_lists);
		case T_LockRows:
		case T_ModifyTable:
			return true;
		default:
			return false;
	}
}

/*
 * Does anything in the statement call volatile functions?  Mostly nothing does, and then nodes are
 * looked at once.
 */
static bool
has_volatile(RfPushdown *pushdown)
{
	if (!pushdown->looked)
	{
		/* While this is being found out, nodes are looked at. */
		pushdown->looked = pushdown->has_volatile = true;
		pushdown->has_volatile = runs_volatile(pushdown, pushdown->stmt->planTree) ||
			one_runs_volatile(pushdown, pushdown->stmt->subplans);
	}
	return pushdown->has_volatile;
}

/*
 * Does a plan call volatile functions, or change or lock rows?
 */
static bool
runs_volatile(RfPushdown *pushdown, Plan *plan)
{
	if (plan == NULL || !has_volatile(pushdown))
		return false;
	check_stack_depth();
	if (rf_node_is_volatile(pushdown, plan) || runs_volatile(pushdown, plan->lefttree) ||
		runs_volatile(pushdown, plan->righttree))
		return true;
	switch (nodeTag(plan))
	{
		case T_Append:
			return one_runs_volatile(pushdown, ((Append *) plan)->appendplans);
		case T_MergeAppend:
			return one_runs_volatile(pushdown, ((MergeAppend *) plan)->mergeplans);
		case T_CustomScan:
			return one_runs_volatile(pushdown, ((CustomScan *) plan)->custom_plans);
		case T_SubqueryScan:
			return runs_volatile(pushdown, ((SubqueryScan *) plan)->subplan);
		case T_CteScan:
			return subplan_runs_volatile(pushdown, ((CteScan *) plan)->ctePlanId);
		default:
			return false;
	}
}

/*
 * The join filters of a hash join, for its outer side.  None if the planner
 * expects more rows than are worth reading, or if the inner side calls volatile
 * functions: core does not read it where the outer side is empty.  The hash key is computed again
 * from the rows in the table, so it must not contain subplans or parameters of the plan.  Core makes
 * no hash key of what is volatile.
 */
static List *
make_join_filters(RfPushdown *pushdown, HashJoin *join)
{
	Hash	   *hash = (Hash *) innerPlan(join);
	List	   *filters = NIL;
	ListCell   *cell;

	if (join->join.plan.parallel_aware ||
		!RF_DROPS_OUTER(join->join.jointype) ||
		outerPlan(hash)->plan_rows > RF_JOIN_MAX_ROWS ||
		runs_volatile(pushdown, outerPlan(hash)))
		return NIL;
	foreach(cell, join->hashclauses)
	{
		OpExpr	   *clause = lfirst_node(OpExpr, cell);
		int			key = foreach_current_index(cell);
		Node	   *inner = list_nth(hash->hashkeys, key);
		Oid			array = get_array_type(exprType(inner));
		RfJoinFilter *filter;

		if (!OidIsValid(array) ||
			contain_subplans(inner) || has_exec_param(inner, NULL))
			continue;
		filter = palloc0(sizeof(RfJoinFilter));
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
 * Replaces Vars of an append relation's members by Vars of the relation, as
 * EXPLAIN does for the output of an Append.
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
 * Pushes join filters into the plans of a list; if scans is false, only into
 * those that are not scans.
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
 * Pushes join filters into an Append.  A gate takes its place, or its members
 * get gates of their own.
 */
static Plan *
push_into_append(RfPushdown *pushdown, Append *append, List *filters)
{
	filters = pass_on(filters, &append->plan, OUTER_VAR);
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
 * Pushes join filters into a single scan.  It gets a gate above it, if an
 * index can use them.
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
 * Pushes join filters into the inputs of a join, and into its outer input also
 * its own.
 */
static void
push_into_join(RfPushdown *pushdown, Join *join, List *filters)
{
	List	   *outer = NIL;
	List	   *inner = NIL;

	/* Fewer rows of one side may mean fewer runs of the other. */
	if (filters != NIL && (runs_volatile(pushdown, join->plan.lefttree) ||
						   runs_volatile(pushdown, join->plan.righttree)))
		filters = NIL;
	if (keeps_outer(join->jointype))
		outer = pass_on(filters, &join->plan, OUTER_VAR);
	if (IsA(join, NestLoop) && join->jointype == JOIN_INNER)
		inner = pass_on(filters, &join->plan, INNER_VAR);
	if (IsA(join, HashJoin))
		outer = list_concat(outer, make_join_filters(pushdown, (HashJoin *) join));
	join->plan.lefttree = push_down(pushdown, join->plan.lefttree, outer);
	join->plan.righttree = push_down(pushdown, join->plan.righttree, inner);
}

/*
 * Pushes join filters, and those of the joins in a plan, down to the plan's
 * scans.  Returns what replaces the plan.
 */
static Plan *
push_down(RfPushdown *pushdown, Plan *plan, List *filters)
{
	if (plan == NULL)
		return NULL;
	check_stack_depth();
	if (filters != NIL && rf_node_is_volatile(pushdown, plan))
		filters = NIL;
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
						  pass_on(filters, plan, OUTER_VAR), true);
			return plan;
		case T_SubqueryScan:
			((SubqueryScan *) plan)->subplan =
				push_down(pushdown, ((SubqueryScan *) plan)->subplan,
						  pass_on(filters, plan, ((SubqueryScan *) plan)->scan.scanrelid));
			return plan;
		case T_CustomScan:
			if (!rf_is_gate(plan))
			{
				push_down_all(pushdown, ((CustomScan *) plan)->custom_plans, NIL,
							  true);
				return plan;
			}
			filters = pass_on(filters, plan, INDEX_VAR);
			if (filters != NIL)
				(void) rf_add_join_filters(pushdown, (CustomScan *) plan, filters);
			push_down_all(pushdown, ((CustomScan *) plan)->custom_plans, filters,
						  false);
			return plan;
		case T_Result:
			filters = pass_on(filters, plan, OUTER_VAR);
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
 * Pushes down the join filters of a statement.  Called when it has been
 * planned and its gates are finished.
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
