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
 * A rescan with the same values rescans the plan.  With others a new run begins.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "planner/deferred/deferred.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/*
 * Plans a query for a deferred scan.
 */
PlannedStmt *
rf_plan_inner(const char *source, Query *query, ParamListInfo params)
{
	bool		outer = rf_suppress_deferring;
	PlannedStmt *stmt;

	PG_TRY();
	{
		rf_suppress_deferring = true;
		stmt = RF_PLAN_QUERY(planner, query, source, 0, params);
	}
	PG_FINALLY();
	{
		rf_suppress_deferring = outer;
	}
	PG_END_TRY();
	return stmt;
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
		const ParamExternData *x = &a->params[i];
		const ParamExternData *y = &b->params[i];
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
 * Ends a run, if there is one.
 */
static void
end_run(RfDeferredRun *run)
{
	if (run->context == NULL)
		return;
	if (run->desc != NULL)
	{
		ExecutorFinish(run->desc);
		ExecutorEnd(run->desc);
		FreeQueryDesc(run->desc);
	}
	MemoryContextDelete(run->context);
	memset(run, 0, sizeof(*run));
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
 * Plans the Query with the values of a run, and starts the plan.
 */
static void
start_plan(RfDeferredState *state, RfDeferredRun *run)
{
	EState	   *estate = state->css.ss.ps.state;
	instr_time	begin;
	instr_time	end;
	PlannedStmt *stmt;

	INSTR_TIME_SET_CURRENT(begin);
	stmt = rf_plan_inner(estate->es_sourceText, copyObject(state->plan.query), run->params);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_ACCUM_DIFF(state->planning_time, end, begin);
	state->plannings++;
	run->desc = CreateQueryDesc(stmt, estate->es_sourceText, estate->es_snapshot,
								InvalidSnapshot, None_Receiver, run->params, NULL,
								estate->es_instrument);
	ExecutorStart(run->desc, 0);
	state->leaves_read += count_scans(run->desc->plannedstmt->planTree);
}

/*
 * Begins a run with the values as they are now.
 */
static void
begin_run(RfDeferredState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	RfDeferredRun next = {0};
	MemoryContext old;

	next.context = AllocSetContextCreate(estate->es_query_cxt, "rangefilter scan",
										 ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(next.context);
	next.params = compute_values(state);
	state->runs++;
	state->begun = true;
	if (state->run.context != NULL && same_values(state->run.params, next.params))
	{
		MemoryContextSwitchTo(state->run.desc->estate->es_query_cxt);
		ExecReScan(state->run.desc->planstate);
		MemoryContextSwitchTo(old);
		MemoryContextDelete(next.context);
		return;
	}
	end_run(&state->run);
	start_plan(state, &next);
	state->run = next;
	MemoryContextSwitchTo(old);
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
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		rf_note_deferred_scan(estate, node->ss.ss_currentRelation);
}

/*
 * The next row of the run, in the scan's slot; the slot is empty at the end.
 */
static TupleTableSlot *
next_row(ScanState *node)
{
	RfDeferredState *state = (RfDeferredState *) node;
	TupleTableSlot *slot = node->ss_ScanTupleSlot;
	TupleTableSlot *row;
	EState	   *inner;
	MemoryContext old;

	CHECK_FOR_INTERRUPTS();
	if (!state->begun)
		begin_run(state);
	inner = state->run.desc->estate;

	/* As ExecutePlan() does for each row. */
	old = MemoryContextSwitchTo(inner->es_query_cxt);
	ResetPerTupleExprContext(inner);
	row = ExecProcNode(state->run.desc->planstate);
	MemoryContextSwitchTo(old);
	ExecClearTuple(slot);
	if (TupIsNull(row))
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
recheck_row(ScanState *node, TupleTableSlot *slot)
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
	ExecClearTuple(node->ss.ss_ScanTupleSlot);
	end_run(&((RfDeferredState *) node)->run);
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
