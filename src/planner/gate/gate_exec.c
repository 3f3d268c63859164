/*-------------------------------------------------------------------------
 *
 * gate_exec.c
 *	  Executing a gate.
 *
 * The scan of a member is started (ExecInitNode) when it is first needed, with
 * the flags of ExecutorStart.  All scans are started at once only
 *	- for EXPLAIN, which shows them;
 *	- in parallel plans: leader and workers ask on their own, but
 *	  parallel-aware nodes must be set up in all of them before they run, and
 *	  instrumentation is collected node by node.
 *
 * The tables of all members are open from the start.  So no command of the
 * same session may truncate or rewrite them.  Locks protect them against other
 * sessions.
 *
 * Under EvalPlanQual the gate is always open: the row to be checked may be
 * newer than the snapshot.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "compat.h"
#include "executor/executor.h"
#include "jit/jit.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "planner/activity/activity.h"
#include "planner/condition/parameter.h"
#include "planner/gate/gate.h"
#include "stats/stats.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/*
 * A member's expressions are compiled if its scan alone costs this share of
 * jit_above_cost.
 */
#define RF_JIT_SHARE	0.1

/*
 * Starts the scan of a member, and adds it to custom_ps.
 *
 * Core decides on just-in-time compilation by the cost of the whole plan.
 * Each member started here would be compiled on its own, which takes about a
 * millisecond: more than most scans of a member.
 */
void
rf_gate_start(RfGateState *gate, RfGateMember *member, int eflags)
{
	EState	   *estate = gate->css.ss.ps.state;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	int			jit_flags = estate->es_jit_flags;

	if (jit_above_cost >= 0 &&
		member->plan->total_cost < jit_above_cost * RF_JIT_SHARE)
		estate->es_jit_flags = PGJIT_NONE;
	member->state = ExecInitNode(member->plan, estate, eflags);
	estate->es_jit_flags = jit_flags;
	member->scan = gate->scan;
	gate->css.custom_ps = lappend(gate->css.custom_ps, member->state);
	MemoryContextSwitchTo(old);
}

/*
 * Fills in the members.
 */
static void
init_members(RfGateState *gate, CustomScan *plan)
{
	gate->nmembers = list_length(plan->custom_plans);
	gate->members = palloc0(gate->nmembers * sizeof(RfGateMember));
	for (int i = 0; i < gate->nmembers; i++)
	{
		List	   *oids = list_nth(gate->asked.members, i);

		Assert(oids == NIL || list_length(oids) == 1 + list_length(gate->asked.opclasses));
		rf_gate_member(gate, i)->plan = list_nth(plan->custom_plans, i);
		rf_gate_member(gate, i)->oids = oids;
	}
}

/*
 * The range table index of the table that a plan scans, or 0 if the plan is
 * not a single scan.
 */
static Index
scanned_table(const Plan *plan)
{
	if (IsA(plan, Result) && plan->lefttree != NULL)
		plan = plan->lefttree;
	return rf_scanned_table(plan);
}

/*
 * Opens the tables of members that are started later.  The executor closes
 * them at its end.  Members that are not single scans are started now.
 */
static void
hold_tables(RfGateState *gate)
{
	for (int i = 0; i < gate->nmembers; i++)
	{
		Index		rti = scanned_table(rf_gate_member(gate, i)->plan);

		if (rti > 0)
			(void) RF_RANGE_TABLE_RELATION(gate->css.ss.ps.state, rti);
		else
			rf_gate_start(gate, rf_gate_member(gate, i), gate->eflags);
	}
}

/*
 * Fills in what the gate needs to know of the values.
 */
static void
init_values(RfGateState *gate, CustomScan *plan)
{
	ListCell   *cell;

	gate->nvalues = list_length(plan->custom_exprs);
	gate->exprs = ExecInitExprList(plan->custom_exprs, &gate->css.ss.ps);
	gate->values = palloc0((gate->nvalues + 1) * sizeof(RfGateValue));
	gate->datums = palloc0((gate->nvalues + 1) * sizeof(Datum));
	gate->nulls = palloc0((gate->nvalues + 1) * sizeof(bool));
	foreach(cell, plan->custom_exprs)
	{
		RfGateValue *value = &gate->values[foreach_current_index(cell)];
		const Param *param = lfirst(cell);

		value->isnull = true;
		value->external = IsA(param, Param) && param->paramkind == PARAM_EXTERN;
		get_typlenbyval(exprType(lfirst(cell)), &value->typlen, &value->typbyval);
	}
}

/*
 * Fills in what the gate needs to make questions.
 */
static void
init_question(RfGateState *gate, CustomScan *plan)
{
	ListCell   *cell;

	foreach(cell, gate->asked.params)
		gate->params = bms_add_member(gate->params, lfirst_int(cell));
	gate->repeated = gate->params != NULL;
	init_values(gate, plan);
	gate->table = rf_gate_table(gate->asked.opclasses);
	rf_join_filters_init(gate);
	rf_gate_matrices_init(gate);
	gate->context = AllocSetContextCreate(CurrentMemoryContext,
										  "rangefilter gate",
										  ALLOCSET_SMALL_SIZES);
	gate->scratch = AllocSetContextCreate(CurrentMemoryContext,
										  "rangefilter gate probes",
										  ALLOCSET_SMALL_SIZES);
}

/*
 * For EXPLAIN without ANALYZE: starts all members that it shows.  If the
 * values are known by then, indexes are asked, as core's pruning does at
 * executor start.  They are not asked where rows are hidden.
 */
static void
start_explained(RfGateState *gate, int eflags)
{
	bool		ask = !gate->repeated && gate->nfilters == 0 &&
	!RF_EXPLAIN_GENERIC(eflags) && !gate->asked.secured;

	if (ask)
		rf_gate_prepare(gate);
	for (int i = 0; i < gate->nmembers; i++)
	{
		RfGateMember *member = rf_gate_member(gate, i);
		bool		closed = ask && rf_gate_closed(gate, member);

		if (ask)
		{
			gate->considered++;
			gate->skipped += closed;
		}
		if (!closed || gate->nmembers == 1)
			rf_gate_start(gate, member, eflags);
	}
}

/*
 * BeginCustomScan
 */
static void
begin_gate(CustomScanState *node, EState *estate, int eflags)
{
	RfGateState *gate = (RfGateState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;

	/*
	 * Rows are returned in the slots of the scans, which may be of any kind.
	 */
	node->ss.ps.resultopsset = true;
	node->ss.ps.resultopsfixed = false;

	gate->eflags = eflags;
	rf_gate_read(plan, &gate->asked);
	init_members(gate, plan);
	init_question(gate, plan);
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		start_explained(gate, eflags);
	else if (estate->es_plannedstmt->parallelModeNeeded || IsParallelWorker())
	{
		for (int i = 0; i < gate->nmembers; i++)
			rf_gate_start(gate, rf_gate_member(gate, i), eflags);
	}
	else
	{
		hold_tables(gate);
		gate->watch = rf_stats_sample();
	}
}

/*
 * Enters the current member.  True if it must be scanned; its scan is then
 * started or rescanned.  False if it is skipped.
 */
static bool
enter_member(RfGateState *gate)
{
	RfGateMember *member = rf_gate_member(gate, gate->current);

	if (!gate->current_values)
		rf_gate_prepare(gate);
	gate->considered++;
	InstrCountFiltered2(gate, 1);
	gate->found = false;
	if (rf_gate_closed(gate, member))
	{
		gate->skipped++;
		InstrCountFiltered1(gate, 1);
		return false;
	}
	if (member->state == NULL)
	{
		rf_gate_start(gate, member, gate->eflags);

		/*
		 * All members share the plans of subqueries in their conditions.
		 * These may keep rows made for another member and older parameters.
		 */
		if (gate->changed != NULL)
			UpdateChangedParamSet(member->state, gate->changed);
	}
	else if (member->scan != gate->scan)
	{
		if (gate->changed != NULL)
			UpdateChangedParamSet(member->state, gate->changed);
		if (member->state->chgParam == NULL)
			ExecReScan(member->state);
		member->scan = gate->scan;
	}
	return true;
}

/*
 * Counts the scan of the current member, if it is watched, when it has
 * returned its first row or none.
 */
static void
note_found(RfGateState *gate, bool found)
{
	RfGateMember *member = rf_gate_member(gate, gate->current);

	gate->found = true;
	if (member->watched == NULL)
		return;
	member->watched->scans++;
	member->watched->empty += !found;
	member->watched = NULL;
	if (!found)
		rf_note_vain_scan(linitial_oid(member->oids), member->watched_index,
						  member->plan);
	rf_stats_pending = true;
}

/*
 * ExecCustomScan.  Gates run only forward: no cursor that is declared by name has any.
 */
static TupleTableSlot *
exec_gate(CustomScanState *node)
{
	RfGateState *gate = (RfGateState *) node;

	while (gate->current < gate->nmembers)
	{
		TupleTableSlot *slot;

		if (!gate->entered)
		{
			CHECK_FOR_INTERRUPTS();
			gate->entered = enter_member(gate);
		}
		if (gate->entered)
		{
			slot = ExecProcNode(rf_gate_member(gate, gate->current)->state);
			if (unlikely(!gate->found))
				note_found(gate, !TupIsNull(slot));
			if (!TupIsNull(slot))
				return slot;

			/* The scan may be restored to a position that was marked. */
			if (gate->nmembers == 1)
				break;
		}
		gate->current++;
		gate->entered = false;
	}
	return ExecClearTuple(node->ss.ps.ps_ResultTupleSlot);
}

/*
 * ReScanCustomScan.  Members are rescanned when they are entered.  A parameter
 * that has ever changed counts as changed since their last scan.
 */
static void
rescan_gate(CustomScanState *node)
{
	RfGateState *gate = (RfGateState *) node;
	Bitmapset  *changed = node->ss.ps.chgParam;
	MemoryContext old;

	gate->current = 0;
	gate->entered = false;
	gate->scan++;
	if (gate->nfilters > 0 || bms_overlap(changed, gate->params))
		gate->current_values = false;
	if (!bms_is_subset(changed, gate->changed))
	{
		old = MemoryContextSwitchTo(node->ss.ps.state->es_query_cxt);
		gate->changed = bms_add_members(gate->changed, changed);
		MemoryContextSwitchTo(old);
	}
}

/*
 * EndCustomScan
 */
static void
end_gate(CustomScanState *node)
{
	RfGateState *gate = (RfGateState *) node;
	ListCell   *cell;

	foreach(cell, node->custom_ps)
		ExecEndNode(lfirst(cell));
	rf_gate_close_indexes(gate);
}

/*
 * MarkPosCustomScan and RestrPosCustomScan, for a gate above a single scan.  A
 * closed gate has no rows to mark.
 */
static void
mark_gate(CustomScanState *node)
{
	RfGateState *gate = (RfGateState *) node;

	if (gate->entered)
		ExecMarkPos(rf_gate_member(gate, 0)->state);
}

static void
restore_gate(CustomScanState *node)
{
	RfGateState *gate = (RfGateState *) node;

	if (gate->entered)
		ExecRestrPos(rf_gate_member(gate, 0)->state);
}

static const CustomExecMethods gate_exec_methods = {
	.CustomName = "Range Filter Append",
	.BeginCustomScan = begin_gate,
	.ExecCustomScan = exec_gate,
	.EndCustomScan = end_gate,
	.ReScanCustomScan = rescan_gate,
	.MarkPosCustomScan = mark_gate,
	.RestrPosCustomScan = restore_gate,
	.ExplainCustomScan = rf_explain_gate
};

/*
 * CreateCustomScanState
 */
Node *
rf_create_gate_state(CustomScan *plan)
{
	RfGateState *gate = (RfGateState *) newNode(sizeof(RfGateState),
												T_CustomScanState);

	gate->css.methods = &gate_exec_methods;
	return (Node *) gate;
}
