/*-------------------------------------------------------------------------
 *
 * deferred_explain.c
 *	  EXPLAIN of a deferred scan.
 *
 * EXPLAIN shows how one partition would be scanned, with parameters in the places of
 * values.  EXPLAIN ANALYZE shows the plan of the last run, or of the partition that it read
 * last.
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
 * Shows how the template would be scanned.
 */
static void
explain_template(const RfDeferredState *state, ExplainState *es)
{
	EState	   *estate = state->css.ss.ps.state;
	Query	   *query = rf_query_on_leaf(state, state->plan.template);
	QueryDesc  *desc;

	if (query == NULL)
		return;
	desc = CreateQueryDesc(rf_plan_inner(rf_source_text(state), query, NULL),
						   rf_source_text(state), estate->es_snapshot, InvalidSnapshot,
						   None_Receiver, NULL, NULL, 0);
	ExecutorStart(desc, EXEC_FLAG_EXPLAIN_ONLY);
	explain_plan(desc, es);
	ExecutorEnd(desc);
	FreeQueryDesc(desc);
}

/*
 * Shows the conditions of the Query, in terms of the plan around the scan.
 */
static void
explain_conditions(const RfDeferredState *state, List *ancestors, ExplainState *es)
{
	CustomScan *scan = (CustomScan *) state->css.ss.ps.plan;
	Node	   *quals = copyObject(state->plan.query->jointree->quals);
	List	   *context;

	if (quals == NULL)
		return;
	ChangeVarNodes(quals, 1, scan->scan.scanrelid, 0);
	quals = show_values(quals, scan->custom_exprs);
	context = set_deparse_context_plan(es->deparse_cxt, &scan->scan.plan, ancestors);
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

	explain_conditions(state, ancestors, es);
	if (es->analyze)
		explain_counts(state, es);
	else
		ExplainPropertyInteger("Partitions Deferred", NULL, state->plan.nleaves, es);
	if (state->run.desc != NULL)
		explain_plan(state->run.desc, es);
	else if (!es->analyze)
		explain_template(state, es);
}
