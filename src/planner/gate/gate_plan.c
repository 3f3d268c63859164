/*-------------------------------------------------------------------------
 *
 * gate_plan.c
 *	  Making plans from gates' paths; one gate for an Append of gates.
 *
 * Once a statement is planned, two things are done to its gates.  The target
 * list of a gate is moved to the scan below, so that the gate hands on rows as
 * they are.  And an Append with several gates that ask the same is replaced by
 * one gate above all members' scans.  This gate computes the values once,
 * starts only the scans it needs, and does not touch the others when it is
 * rescanned.  Parallel-aware and asynchronous Appends and those that prune at
 * run time remain.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/value.h"
#include "optimizer/optimizer.h"
#include "planner/condition/condition.h"
#include "planner/condition/parameter.h"
#include "planner/gate/gate.h"
#include "planner/planning/planning.h"

/* Places in custom_private. */
typedef enum RfGatePlace
{
	RF_GATE_CLAUSES,			/* lists ... */
	RF_GATE_OPCLASSES,
	RF_GATE_CONVERSIONS,
	RF_GATE_KEYS,
	RF_GATE_MEMBERS,
	RF_GATE_PARAMS,
	RF_GATE_TABLES,
	RF_GATE_JOIN_FILTERS,
	RF_GATE_EXTERNAL,
	RF_GATE_KEY_RTI,			/* Integer */
	RF_GATE_SECURED,			/* Boolean */
	RF_GATE_CONDITIONS			/* Integer */
} RfGatePlace;

/*
 * Stores in a gate's plan what it asks.
 */
void
rf_gate_write(CustomScan *gate, const RfGateQuestion *asked)
{
	Node	   *const fields[] = {
		[RF_GATE_CLAUSES] = (Node *) asked->clauses,
		[RF_GATE_OPCLASSES] = (Node *) asked->opclasses,
		[RF_GATE_CONVERSIONS] = (Node *) asked->conversions,
		[RF_GATE_KEYS] = (Node *) asked->keys,
		[RF_GATE_MEMBERS] = (Node *) asked->members,
		[RF_GATE_PARAMS] = (Node *) asked->params,
		[RF_GATE_TABLES] = (Node *) asked->tables,
		[RF_GATE_JOIN_FILTERS] = (Node *) asked->join_filters,
		[RF_GATE_EXTERNAL] = (Node *) asked->external,
		[RF_GATE_KEY_RTI] = (Node *) makeInteger(asked->key_rti),
		[RF_GATE_SECURED] = (Node *) makeBoolean(asked->secured),
		[RF_GATE_CONDITIONS] = (Node *) makeInteger(asked->nconditions)
	};

	gate->custom_private = rf_list_fields(fields, lengthof(fields));
}

/*
 * Reads from a gate's plan what it asks.  The lists are not copied.
 */
void
rf_gate_read(const CustomScan *gate, RfGateQuestion *asked)
{
	List	   *fields = gate->custom_private;

	asked->clauses = list_nth(fields, RF_GATE_CLAUSES);
	asked->opclasses = list_nth(fields, RF_GATE_OPCLASSES);
	asked->conversions = list_nth(fields, RF_GATE_CONVERSIONS);
	asked->keys = list_nth(fields, RF_GATE_KEYS);
	asked->members = list_nth(fields, RF_GATE_MEMBERS);
	asked->params = list_nth(fields, RF_GATE_PARAMS);
	asked->tables = list_nth(fields, RF_GATE_TABLES);
	asked->join_filters = list_nth(fields, RF_GATE_JOIN_FILTERS);
	asked->external = list_nth(fields, RF_GATE_EXTERNAL);
	asked->key_rti = intVal(list_nth(fields, RF_GATE_KEY_RTI));
	asked->secured = boolVal(list_nth(fields, RF_GATE_SECURED));
	asked->nconditions = intVal(list_nth(fields, RF_GATE_CONDITIONS));
}

/*
 * A copy of a scan's target list that describes its rows to core, without the
 * expressions that read no column: an arm of UNION ALL may return a parameter that its
 * gate asks for, too.  In a gate's values core would replace what is in the list by
 * references to a row, and there is none when values are computed.
 */
static List *
describe_scan(List *tlist)
{
	List	   *described = copyObject(tlist);
	ListCell   *cell;

	foreach(cell, described)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);
		Node	   *expr = (Node *) entry->expr;

		if (!contain_var_clause(expr))
			entry->expr = (Expr *) makeNullConst(exprType(expr), exprTypmod(expr),
												 exprCollation(expr));
	}
	return described;
}

/*
 * PlanCustomPath
 */
static Plan *
plan_gate(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist,
		  List *clauses, List *plans)
{
	CustomScan *gate = makeNode(CustomScan);
	Plan	   *child = linitial(plans);
	Oid			relid = root->simple_rte_array[rel->relid]->relid;
	Index		top = rf_outermost_relation(root, rel->relid);
	const RfGateInfo *info = rf_gate_info(root, rel, clauses);
	const RfGateShape *shape = &info->shape;
	RfGateQuestion asked = {0};

	if (!info->useful)
		elog(ERROR, "a range filter's gate has nothing to ask");

	gate->scan.plan.targetlist = tlist;
	gate->scan.scanrelid = 0;
	gate->flags = path->flags;
	gate->custom_plans = plans;
	gate->custom_scan_tlist = describe_scan(child->targetlist);
	gate->custom_exprs = copyObject(shape->values);
	gate->methods = &rf_gate_methods;

	asked.clauses = shape->clauses;
	asked.opclasses = shape->opclasses;
	asked.conversions = shape->conversions;
	asked.keys = shape->keys;
	asked.members = list_make1(lcons_oid(relid, shape->indexes));
	asked.tables = list_make1_oid(root->simple_rte_array[top]->relid);
	asked.secured = rf_gate_is_secured(rel) ||
		(shape->values != NIL && rf_has_hidden_values(root));
	asked.external = asked.secured ? rf_external_params(rf_planning) : NIL;
	asked.nconditions = list_length(clauses);
	rf_gate_write(gate, &asked);
	rf_mark_plan(root);
	return &gate->scan.plan;
}

/*
 * ReparameterizeCustomPathByChild: nothing in custom_private names relations.
 */
static List *
reparameterize_gate(PlannerInfo *root, List *custom_private,
					RelOptInfo *child_rel)
{
	return custom_private;
}

const CustomPathMethods rf_gate_path_methods = {
	.CustomName = "Range Filter Append",
	.PlanCustomPath = plan_gate,
	.ReparameterizeCustomPathByChild = reparameterize_gate
};

const CustomScanMethods rf_gate_methods = {
	.CustomName = "Range Filter Append",
	.CreateCustomScanState = rf_create_gate_state
};

/*
 * Is this plan node a gate?
 */
bool
rf_is_gate(const Plan *plan)
{
	return plan != NULL && IsA(plan, CustomScan) &&
		((const CustomScan *) plan)->methods == &rf_gate_methods;
}

/*
 * Adds the numbers of the PARAM_EXEC in an expression to a list.
 */
static bool
collect_params(Node *node, void *context)
{
	List	  **params = context;

	if (node == NULL)
		return false;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
		*params = list_append_unique_int(*params, ((Param *) node)->paramid);
	return expression_tree_walker(node, collect_params, context);
}

/*
 * Replaces a gate's references to its scan tuple by the entries of a target
 * list.
 */
static Node *
replace_references(Node *node, void *context)
{
	List	   *tlist = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && ((Var *) node)->varno == INDEX_VAR)
	{
		TargetEntry *entry = list_nth_node(TargetEntry, tlist,
										   ((Var *) node)->varattno - 1);

		return (Node *) copyObject(entry->expr);
	}
	return expression_tree_mutator(node, replace_references, context);
}

/*
 * A target list that hands on the scan tuple as it is.  Only constants are
 * kept: the executor checks for them where the target of an INSERT has dropped
 * columns.
 */
static List *
make_identity(List *tlist)
{
	List	   *identity = NIL;
	ListCell   *cell;

	foreach(cell, tlist)
	{
		TargetEntry *entry = flatCopyTargetEntry(lfirst_node(TargetEntry, cell));

		if (!IsA(entry->expr, Const))
			entry->expr = (Expr *) makeVar(INDEX_VAR, entry->resno,
										   exprType((Node *) entry->expr),
										   exprTypmod((Node *) entry->expr),
										   exprCollation((Node *) entry->expr),
										   0);
		identity = lappend(identity, entry);
	}
	return identity;
}

/*
 * Makes a gate in place of, or above, a finished plan.  It hands on the rows
 * of the given plans, which scan_tlist describes.
 */
CustomScan *
rf_make_gate(const Plan *plan, List *plans, List *scan_tlist)
{
	CustomScan *gate = makeNode(CustomScan);

	memcpy(&gate->scan.plan, plan, sizeof(Plan));
	NodeSetTag(gate, T_CustomScan);
	gate->scan.plan.targetlist = make_identity(plan->targetlist);
	gate->custom_plans = plans;
	gate->custom_scan_tlist = scan_tlist;
	gate->methods = &rf_gate_methods;
	return gate;
}

/*
 * Moves a gate's target list to the scan below.
 */
static void
push_down_target(CustomScan *gate)
{
	Plan	   *child = linitial(gate->custom_plans);
	List	   *tlist = gate->scan.plan.targetlist;

	child->targetlist = (List *) replace_references((Node *) tlist,
													child->targetlist);
	child->extParam = bms_copy(gate->scan.plan.extParam);
	child->allParam = bms_copy(gate->scan.plan.allParam);
	gate->custom_scan_tlist =
		(List *) replace_references((Node *) tlist, gate->custom_scan_tlist);
	gate->scan.plan.targetlist = make_identity(tlist);
}

/*
 * Fills in what is known only when the plan is complete.
 */
static void
finish_gate(CustomScan *gate)
{
	RfGateQuestion asked;

	push_down_target(gate);
	rf_gate_read(gate, &asked);
	asked.params = NIL;
	(void) collect_params((Node *) gate->custom_exprs, &asked.params);
	asked.key_rti = bms_singleton_member(gate->custom_relids);
	rf_gate_write(gate, &asked);
}

/*
 * Do two gates ask the same?
 */
static bool
ask_the_same(CustomScan *a, CustomScan *b)
{
	RfGateQuestion x;
	RfGateQuestion y;

	rf_gate_read(a, &x);
	rf_gate_read(b, &y);
	return equal(x.clauses, y.clauses) && equal(x.opclasses, y.opclasses) &&
		equal(x.conversions, y.conversions) &&
		equal(a->custom_exprs, b->custom_exprs);
}

/*
 * Makes one gate for all members of an Append.  It asks the members of gates
 * that ask the same as the first one.  The other plans are never skipped.  A
 * gate in the list may itself have replaced an Append, and may be the top of a
 * subquery, an arm of UNION ALL, whose init plans then go to the merged gate.
 */
static CustomScan *
merge_gates(Append *append, CustomScan *first)
{
	CustomScan *merged;
	List	   *plans = NIL;
	RfGateQuestion all;
	ListCell   *cell;

	rf_gate_read(first, &all);
	all.members = NIL;
	all.tables = NIL;
	merged = rf_make_gate(&append->plan, NIL, first->custom_scan_tlist);
	merged->custom_relids = bms_copy(append->apprelids);
	foreach(cell, append->appendplans)
	{
		CustomScan *gate = lfirst(cell);

		if (rf_is_gate(&gate->scan.plan) && ask_the_same(gate, first))
		{
			RfGateQuestion one;

			rf_gate_read(gate, &one);
			all.members = list_concat(all.members, one.members);
			all.tables = list_concat_unique_oid(all.tables, one.tables);
			if (one.secured)
				all.external = one.external;
			all.secured = all.secured || one.secured;
			all.nconditions = Max(all.nconditions, one.nconditions);
			plans = list_concat(plans, gate->custom_plans);
			merged->scan.plan.initPlan = list_concat(merged->scan.plan.initPlan,
													 gate->scan.plan.initPlan);
			merged->custom_relids = bms_add_members(merged->custom_relids,
													gate->custom_relids);
		}
		else
		{
			all.members = lappend(all.members, NIL);
			plans = lappend(plans, gate);
		}
	}
	merged->custom_plans = plans;
	merged->custom_exprs = first->custom_exprs;
	rf_gate_write(merged, &all);
	return merged;
}

/*
 * Returns the gate that replaces an Append, or the Append.
 */
static Plan *
finish_append(Append *append)
{
	CustomScan *first = NULL;
	ListCell   *cell;

	if (append->plan.parallel_aware || append->nasyncplans > 0 ||
		RF_APPEND_PRUNES(append))
		return (Plan *) append;
	foreach(cell, append->appendplans)
	{
		CustomScan *gate = lfirst(cell);

		if (!rf_is_gate(&gate->scan.plan))
			continue;
		if (first == NULL)
			first = gate;
		else if (ask_the_same(gate, first))
			return (Plan *) merge_gates(append, first);
	}
	return (Plan *) append;
}

static Plan *finish_plan(Plan *plan);

/*
 * Replaces each plan of a list by what finish_plan() returns for it.
 */
static void
finish_plans(List *plans)
{
	ListCell   *cell;

	foreach(cell, plans)
		lfirst(cell) = finish_plan(lfirst(cell));
}

/*
 * Finishes and merges the gates in a plan tree; returns what replaces its
 * root.  It walks the finished plan, which may be a copy of the one that
 * plan_gate() made the gates for.
 */
static Plan *
finish_plan(Plan *plan)
{
	if (plan == NULL)
		return NULL;
	check_stack_depth();
	plan->lefttree = finish_plan(plan->lefttree);
	plan->righttree = finish_plan(plan->righttree);
	switch (nodeTag(plan))
	{
		case T_Append:
			finish_plans(((Append *) plan)->appendplans);
			return finish_append((Append *) plan);
		case T_MergeAppend:
			finish_plans(((MergeAppend *) plan)->mergeplans);
			break;
		case T_SubqueryScan:
			((SubqueryScan *) plan)->subplan =
				finish_plan(((SubqueryScan *) plan)->subplan);
			break;
		case T_CustomScan:
			finish_plans(((CustomScan *) plan)->custom_plans);
			if (rf_is_gate(plan))
				finish_gate((CustomScan *) plan);
			break;
		default:
			break;
	}
	return plan;
}

/*
 * Finishes the gates of a statement.  Called when the statement has been
 * planned.
 */
void
rf_finish_gates(PlannedStmt *stmt, RfPlanning *planning)
{
	if (planning->mark != 0)
	{
		stmt->planTree = finish_plan(stmt->planTree);
		finish_plans(stmt->subplans);
	}
}
