/*-------------------------------------------------------------------------
 *
 * deferred_explain.c
 *	  EXPLAIN of a deferred scan.
 *
 * EXPLAIN shows how one partition would be scanned.  EXPLAIN ANALYZE shows the plan of the
 * run, or the first plans of single partitions.  These plans are shown each by itself, and so
 * cannot name what the plan around computes; its names are put into their expressions.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/explain.h"
#include "compat.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "planner/deferred/deferred.h"
#include "rewrite/rewriteManip.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/snapmgr.h"

/* EXPLAIN ANALYZE shows the plans of so many partitions. */
#define RF_MOST_SHOWN	3

/*
 * expression_tree_mutator() callback: expressions of values in the places of
 * external parameters.
 */
static Node *
show_values(Node *node, void *arg)
{
	const Param *param = (const Param *) node;

	if (node == NULL)
		return NULL;
	if (IsA(node, Param) && param->paramkind == PARAM_EXTERN)
		return copyObject(list_nth((List *) arg, param->paramid - 1));
	return expression_tree_mutator(node, show_values, arg);
}

/*
 * expression_tree_mutator() callback: values of other nodes as the plan around shows them, in
 * an expression that is shown with a plan below.  That plan cannot look them up.
 */
static Node *
name_values(Node *node, void *context)
{
	const Param *param = (const Param *) node;
	char	   *text;
	SubPlan    *name;

	if (node == NULL)
		return NULL;
	if (!IsA(node, Param) || param->paramkind != PARAM_EXEC)
		return expression_tree_mutator(node, name_values, context);
	text = deparse_expression(node, context, true, false);

	if (text[0] == '$')
	{
		Param	   *number = copyObject((Param *) node);

		number->paramkind = PARAM_EXTERN;
		return (Node *) number;
	}

	/* What is shown of a subquery is its name. */
	name = makeNode(SubPlan);
	name->subLinkType = EXPR_SUBLINK;
	name->plan_name = text;

	name->firstColType = param->paramtype;
	name->firstColTypmod = param->paramtypmod;
	name->firstColCollation = param->paramcollid;
	return (Node *) name;
}

/*
 * Puts names in the places of external parameters where EXPLAIN shows expressions of a
 * plan that scans one partition.  What executes it has been made before.
 */
static void
show_values_in_plan(Plan *plan, List *names)
{
	List	  **lists[4] = {&plan->targetlist, &plan->qual};
	List	   *plans = NIL;
	int			n = 2;
	ListCell   *cell;

	switch (nodeTag(plan))
	{
		case T_IndexScan:
			lists[n++] = &((IndexScan *) plan)->indexqualorig;
			lists[n++] = &((IndexScan *) plan)->indexorderbyorig;
			break;
		case T_IndexOnlyScan:
			lists[n++] = &((IndexOnlyScan *) plan)->indexqual;
			lists[n++] = &((IndexOnlyScan *) plan)->indexorderby;
			break;
		case T_BitmapIndexScan:
			lists[n++] = &((BitmapIndexScan *) plan)->indexqualorig;
			break;
		case T_BitmapHeapScan:
			lists[n++] = &((BitmapHeapScan *) plan)->bitmapqualorig;
			break;
		case T_TidScan:
			lists[n++] = &((TidScan *) plan)->tidquals;
			break;
		case T_TidRangeScan:
			lists[n++] = &((TidRangeScan *) plan)->tidrangequals;
			break;
		case T_Result:
			lists[n++] = (List **) &((Result *) plan)->resconstantqual;
			break;
		case T_BitmapAnd:
			plans = ((BitmapAnd *) plan)->bitmapplans;
			break;
		case T_BitmapOr:
			plans = ((BitmapOr *) plan)->bitmapplans;
			break;
		default:
			break;
	}
	for (int i = 0; i < n; i++)
		*lists[i] = (List *) show_values((Node *) *lists[i], names);
	foreach(cell, plans)
		show_values_in_plan(lfirst(cell), names);
	if (plan->lefttree != NULL)
		show_values_in_plan(plan->lefttree, names);
}

/*
 * Shows a plan below the scan.
 */
static void
explain_plan(QueryDesc *desc, ExplainState *es)
{
	ExplainState inner = *es;

	/* Settings are shown once, for the whole statement. */
	inner.settings = false;
	ExplainPrintPlan(&inner, desc);
}

/*
 * Shows how the template would be scanned.  auto_explain asks when the query's snapshot is not
 * the active one any more.
 */
static void
explain_template(const RfDeferredState *state, List *names, ExplainState *es)
{
	Snapshot	snapshot = state->css.ss.ps.state->es_snapshot;
	const char *source = rf_source_text(state);
	Query	   *query;
	QueryDesc  *desc;

	if (snapshot == InvalidSnapshot)
		return;
	query = rf_query_on_leaf(state, state->plan.template);
	if (query == NULL)
		return;
	PushActiveSnapshot(snapshot);
	desc = CreateQueryDesc(rf_plan_inner(source, query, NULL), source, snapshot,
						   InvalidSnapshot, None_Receiver, NULL, NULL, 0);
	rf_start_inner(desc, EXEC_FLAG_EXPLAIN_ONLY);
	show_values_in_plan(desc->plannedstmt->planTree, names);
	explain_plan(desc, es);
	standard_ExecutorEnd(desc);
	FreeQueryDesc(desc);
	PopActiveSnapshot();
}

/*
 * Shows plans of single partitions.
 */
static void
explain_leaves(List *plans, List *names, ExplainState *es)
{
	ListCell   *cell;

	ExplainOpenGroup("Partition Plans", "Partition Plans", false, es);
	foreach(cell, plans)
	{
		QueryDesc  *desc = lfirst(cell);

		show_values_in_plan(desc->plannedstmt->planTree, names);
		ExplainOpenGroup("Partition Plan", NULL, true, es);
		explain_plan(desc, es);
		ExplainCloseGroup("Partition Plan", NULL, true, es);
	}
	ExplainCloseGroup("Partition Plans", "Partition Plans", false, es);
}

/*
 * Shows the conditions of the Query, in terms of the plan around the scan; context is that
 * of the scan's expressions.
 */
static void
explain_conditions(const RfDeferredState *state, List *context, ExplainState *es)
{
	CustomScan *scan = (CustomScan *) state->css.ss.ps.plan;
	Node	   *quals = copyObject(state->plan.query->jointree->quals);

	if (quals == NULL)
		return;
	ChangeVarNodes(quals, 1, scan->scan.scanrelid, 0);
	quals = show_values(quals, scan->custom_exprs);
	ExplainPropertyText("Partition Cond",
						deparse_expression(quals, context,
										   list_length(es->rtable) > 1 || es->verbose, false),
						es);
}

/*
 * Shows what the runs have done.
 */
static void
explain_counts(const RfDeferredState *state, ExplainState *es)
{
	double		all = (double) state->plan.nleaves * Max(state->runs, 1);

	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText("Partitions Read",
							psprintf("%.0f of %.0f", (double) state->leaves_read, all), es);
	else
	{
		ExplainPropertyFloat("Partitions Read", NULL, (double) state->leaves_read, 0, es);
		ExplainPropertyFloat("Partitions Considered", NULL, all, 0, es);
	}
	ExplainPropertyInteger("Plans Made", NULL, state->plannings, es);
	if (es->timing)
		ExplainPropertyFloat("Planning Time", "ms",
							 INSTR_TIME_GET_MILLISEC(state->planning_time), 3, es);
}

/*
 * ExplainCustomScan
 */
void
rf_explain_deferred(CustomScanState *node, List *ancestors, ExplainState *es)
{
	const RfDeferredState *state = (RfDeferredState *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, &scan->scan.plan, ancestors);
	List	   *names = (List *) name_values((Node *) scan->custom_exprs, context);
	List	   *plans = rf_kept_plans(state, RF_MOST_SHOWN);

	explain_conditions(state, context, es);
	if (es->analyze)
		explain_counts(state, es);
	else
		ExplainPropertyInteger("Partitions Deferred", NULL, state->plan.nleaves, es);
	if (plans != NIL)
		explain_leaves(plans, names, es);
	else if (state->run.desc != NULL)
		explain_plan(state->run.desc, es);
	else if (!es->analyze)
		explain_template(state, names, es);
}
