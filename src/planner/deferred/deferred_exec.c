/*-------------------------------------------------------------------------
 *
 * deferred_exec.c
 *	  Running a deferred scan.
 *
 * A run begins when the scan is asked for its first row: the values are computed, and
 * the scan's Query is planned with these as constants, so that partition pruning and
 * our own skipping leave only the partitions that may hold a match.  This plan is
 * run with the snapshot of the query around it.  Its guard asks the summaries, after this
 * snapshot was taken (R3, R5).
 *
 * A rescan with the same values rescans the plan.  With others a new run begins; from the
 * second one on plans of single partitions are kept (deferred_leaf.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "partitioning/partdesc.h"
#include "planner/activity/activity.h"
#include "planner/deferred/deferred.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

ExecutorStart_hook_type rf_start_inner;

/*
 * Plans a query for a deferred scan.  CHECK constraints exclude nothing: one that has been added since
 * the snapshot was taken says nothing of rows that were deleted before.
 */
PlannedStmt *
rf_plan_inner(const char *source, Query *query, ParamListInfo params)
{
	bool		outer = rf_suppress_deferring;
	int			outer_exclusion = constraint_exclusion;
	PlannedStmt *stmt;

	PG_TRY();
	{
		rf_suppress_deferring = true;
		constraint_exclusion = CONSTRAINT_EXCLUSION_OFF;
		stmt = RF_PLAN_QUERY(planner, query, source, 0, params);
	}
	PG_FINALLY();
	{
		rf_suppress_deferring = outer;
		constraint_exclusion = outer_exclusion;
	}
	PG_END_TRY();
	return stmt;
}

/*
 * The text of the query around; EvalPlanQual has none.
 */
const char *
rf_source_text(const RfDeferredState *state)
{
	const char *text = state->css.ss.ps.state->es_sourceText;

	return text !=NULL ? text : "";
}

/*
 * Computes the values, copied into the current memory context.
 */
static ParamListInfo
compute_values(RfDeferredState *state)
{
	CustomScan *scan = (CustomScan *) state->css.ss.ps.plan;
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	ParamListInfo params = makeParamList(state->nvalues);

	for (int i = 0; i < state->nvalues; i++)
	{
		ParamExternData *param = &params->params[i];
		int16		typlen;
		bool		typbyval;
		Datum		value;

		param->ptype = exprType(list_nth(scan->custom_exprs, i));
		param->pflags = PARAM_FLAG_CONST;
		value = ExecEvalExprSwitchContext(list_nth(state->exprs, i), econtext,
										  &param->isnull);
		get_typlenbyval(param->ptype, &typlen, &typbyval);
		param->value = param->isnull ? (Datum) 0 : datumCopy(value, typbyval, typlen);
	}
	return params;
}

/*
 * Return true if two lists of values of the same expressions have the same bytes.
 */
static bool
same_values(ParamListInfo a, ParamListInfo b)
{
	for (int i = 0; i < a->numParams; i++)
	{
		const		ParamExternData *x = &a->params[i];
		const		ParamExternData *y = &b->params[i];
		int16		typlen;
		bool		typbyval;

		if (x->isnull || y->isnull)
		{
			if (x->isnull != y->isnull)
				return false;
			continue;
		}
		get_typlenbyval(x->ptype, &typlen, &typbyval);
		if (!datumIsEqual(x->value, y->value, typbyval, typlen))
			return false;
	}
	return true;
}

/*
 * The number of partitions that a plan scans.
 */
static int
count_scans(const Plan *plan)
{
	List	   *plans = NIL;
	int			n = 0;
	ListCell   *cell;

	if (plan == NULL)
		return 0;
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_ForeignScan:
			return 1;
		case T_Append:
			plans = ((const Append *) plan)->appendplans;
			break;
		case T_MergeAppend:
			plans = ((const MergeAppend *) plan)->mergeplans;
			break;
		case T_CustomScan:
			plans = ((const CustomScan *) plan)->custom_plans;
			break;
		default:
			break;
	}
	foreach(cell, plans)
		n += count_scans(lfirst(cell));
	return n + count_scans(plan->lefttree) + count_scans(plan->righttree);
}

/*
 * Plans a query for a scan, with params as constants.
 */
PlannedStmt *
rf_make_plan(RfDeferredState *state, Query *query, ParamListInfo params)
{
	instr_time	begin;
	instr_time	end;
	PlannedStmt *stmt;

	INSTR_TIME_SET_CURRENT(begin);
	stmt = rf_plan_inner(rf_source_text(state), query, params);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_ACCUM_DIFF(state->planning_time, end, begin);
	state->plannings++;
	return stmt;
}

/*
 * Starts a plan with the values of external parameters.
 */
QueryDesc *
rf_start_plan(RfDeferredState *state, PlannedStmt *stmt, ParamListInfo values)
{
	EState	   *estate = state->css.ss.ps.state;
	QueryDesc  *desc = CreateQueryDesc(stmt, rf_source_text(state), estate->es_snapshot,
									   InvalidSnapshot, None_Receiver, values, NULL,
									   estate->es_instrument);

	rf_start_inner(desc, 0);
	return desc;
}

/*
 * Ends a plan that rf_start_plan() has started, also without hooks of other extensions.
 */
void
rf_end_plan(QueryDesc *desc)
{
	rf_watch_end(desc);
	standard_ExecutorFinish(desc);
	standard_ExecutorEnd(desc);
	FreeQueryDesc(desc);
}

/*
 * Ends a run, if there is one.
 */
static void
end_run(RfDeferredRun *run)
{
	if (run->context == NULL)
		return;
	if (run->desc != NULL && !run->by_leaves)
		rf_end_plan(run->desc);
	MemoryContextDelete(run->context);
	memset(run, 0, sizeof(*run));
}

/*
 * Begins the present run anew.
 */
static void
repeat_run(RfDeferredRun *run)
{
	MemoryContext old;

	run->ended = false;
	if (run->by_leaves)
	{
		run->desc = NULL;
		run->position = -1;
		return;
	}
	old = MemoryContextSwitchTo(run->desc->estate->es_query_cxt);
	ExecReScan(run->desc->planstate);
	MemoryContextSwitchTo(old);
}

/*
 * Starts a run with new values.  The first one is planned as a whole.  Later ones keep plans of
 * partitions; so does the first one if its plan may read a partition that was attached since.
 */
static void
start_run(RfDeferredState *state, RfDeferredRun *run)
{
	PlannedStmt *stmt = NULL;

	if (state->runs == 0)
		stmt = rf_make_plan(state, copyObject(state->plan.query), run->params);
	if (stmt == NULL || rf_has_other_partitions(state))
	{
		rf_begin_leaves(state, run);
		return;
	}
	run->desc = rf_start_plan(state, stmt, run->params);
	if (!rf_check_partitions(state))
		run->ended = true;
	else if (!rf_has_other_partitions(state))
		state->leaves_read += count_scans(run->desc->plannedstmt->planTree);
	else
	{
		/* Starting it may have planned it once more. */
		rf_end_plan(run->desc);
		run->desc = NULL;
		rf_begin_leaves(state, run);
	}
}

/*
 * Begins a run with the values as they are now.
 */
static void
begin_run(RfDeferredState *state)
{
	MemoryContext context = AllocSetContextCreate(state->css.ss.ps.state->es_query_cxt,
												  "rangefilter scan",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	ParamListInfo params = compute_values(state);
	bool		same = state->run.context != NULL && same_values(state->run.params, params);

	state->begun = true;
	if (same)
		repeat_run(&state->run);
	else
	{
		end_run(&state->run);
		state->run.context = context;
		state->run.params = params;
		start_run(state, &state->run);
	}
	state->runs++;
	MemoryContextSwitchTo(old);
	if (same)
		MemoryContextDelete(context);
}

/*
 * BeginCustomScan
 */
static void
begin_deferred(CustomScanState *node, EState *estate, int eflags)
{
	RfDeferredState *state = (RfDeferredState *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;

	if (scan->methods == &rf_placeholder_methods)
		elog(ERROR, "a placeholder of a deferred scan cannot be run");
	rf_deferred_read(scan, &state->plan);
	state->ncolumns = list_length(state->plan.query->targetList);
	state->nvalues = list_length(scan->custom_exprs);
	state->exprs = ExecInitExprList(scan->custom_exprs, &node->ss.ps);
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0)
		return;
	rf_begin_levels(state);
	rf_note_deferred_scan(state);
}

/*
 * The next row of a plan; NULL at its end.
 */
static TupleTableSlot *
next_of_plan(QueryDesc *desc)
{
	MemoryContext old = MemoryContextSwitchTo(desc->estate->es_query_cxt);
	TupleTableSlot *row;

	/* As ExecutePlan() does for each row. */
	ResetPerTupleExprContext(desc->estate);
	row = ExecProcNode(desc->planstate);
	MemoryContextSwitchTo(old);
	return TupIsNull(row) ? NULL : row;
}

/*
 * The next row of the run; NULL at its end.
 */
static TupleTableSlot *
next_of_run(RfDeferredState *state)
{
	RfDeferredRun *run = &state->run;
	TupleTableSlot *row = NULL;

	if (!state->begun)
		begin_run(state);
	if (run->ended)
		return NULL;
	if (run->desc != NULL)
		row = next_of_plan(run->desc);
	while (row == NULL && run->by_leaves && rf_next_leaf(state, run))
	{
		CHECK_FOR_INTERRUPTS();
		row = next_of_plan(run->desc);
	}
	run->ended = row == NULL;
	return row;
}

/*
 * ExecScan() callback: the next row, in the scan's slot, which is empty at the end.
 */
static TupleTableSlot *
next_row(ScanState * node)
{
	RfDeferredState *state = (RfDeferredState *) node;
	TupleTableSlot *slot = node->ss_ScanTupleSlot;
	TupleTableSlot *row;

	CHECK_FOR_INTERRUPTS();
	row = next_of_run(state);
	ExecClearTuple(slot);
	if (row == NULL)
		return slot;
	slot_getsomeattrs(row, state->ncolumns);
	memcpy(slot->tts_values, row->tts_values, state->ncolumns * sizeof(Datum));
	memcpy(slot->tts_isnull, row->tts_isnull, state->ncolumns * sizeof(bool));
	return ExecStoreVirtualTuple(slot);
}

/*
 * ExecScan() callback: rows are not fetched again, see may_defer().
 */
static bool
recheck_row(ScanState * node, TupleTableSlot *slot)
{
	return true;
}

/*
 * ExecCustomScan
 */
static TupleTableSlot *
exec_deferred(CustomScanState *node)
{
	return ExecScan(&node->ss, next_row, recheck_row);
}

/*
 * ReScanCustomScan.  Whether the values are others is seen when the first row is asked
 * for.
 */
static void
rescan_deferred(CustomScanState *node)
{
	((RfDeferredState *) node)->begun = false;
	ExecScanReScan(&node->ss);
}

/*
 * EndCustomScan
 */
static void
end_deferred(CustomScanState *node)
{
	RfDeferredState *state = (RfDeferredState *) node;

	ExecClearTuple(node->ss.ss_ScanTupleSlot);
	end_run(&state->run);
	rf_end_leaves(state);
	if (state->directory != NULL)
		DestroyPartitionDirectory(state->directory);
}

static const CustomExecMethods deferred_exec_methods = {
	.CustomName = "Range Filter Scan",
	.BeginCustomScan = begin_deferred,
	.ExecCustomScan = exec_deferred,
	.EndCustomScan = end_deferred,
	.ReScanCustomScan = rescan_deferred,
	.ExplainCustomScan = rf_explain_deferred
};

/*
 * CreateCustomScanState
 */
Node *
rf_create_deferred_state(CustomScan *scan)
{
	RfDeferredState *state = (RfDeferredState *) newNode(sizeof(RfDeferredState),
														 T_CustomScanState);

	state->css.methods = &deferred_exec_methods;
	return (Node *) state;
}
