/*-------------------------------------------------------------------------
 *
 * gate_explain.c
 *	  EXPLAIN of a gate.
 *
 * It is like EXPLAIN of a guard (explain.c).  The condition shows the
 * parameters and columns that the values come from.  The counts are those of
 * members that the gate came to, in all loops and processes.  They are kept
 * where the executor counts rows removed by filters, since it adds these up
 * over workers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_proc.h"
#include "commands/explain.h"
#include "compat.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "planner/condition/condition.h"
#include "planner/gate/gate.h"
#include "planner/skip/skip.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

/* Turns conditions with run-time parameters into what a user wrote. */
typedef struct RfShowContext
{
	List	   *values;
	List	   *keys;
	Index		rti;
} RfShowContext;

/*
 * A value that is converted for its parameter (make_zone_comparison()) is shown with the operator
 * of the same name for the value's own type.
 */
static void
restore_operator(OpExpr *expr)
{
	Oid			left;
	Oid			right;
	Oid			shown;

	op_input_types(expr->opno, &left, &right);
	if (list_length(expr->args) != 2 || exprType(lsecond(expr->args)) == right)
		return;
	shown = OpernameGetOprid(list_make2(makeString("pg_catalog"), makeString(get_opname(expr->opno))),
							 left, exprType(lsecond(expr->args)));
	if (OidIsValid(shown) && op_volatile(shown) == PROVOLATILE_STABLE)
		expr->opno = shown;
}

/*
 * Replaces run-time parameters by the values, and Vars by the keys they stand
 * for.
 */
static Node *
restore_clause(Node *node, void *arg)
{
	RfShowContext *context = arg;
	Node	   *restored;

	if (node == NULL)
		return NULL;
	if (rf_is_runtime_param(node))
		return copyObject(list_nth(context->values,
								   ((Param *) node)->paramid));
	if (IsA(node, Var))
	{
		Node	   *key = copyObject(list_nth(context->keys,
											  ((Var *) node)->varattno - 1));

		ChangeVarNodes(key, 1, context->rti, 0);
		return key;
	}
	restored = expression_tree_mutator(node, restore_clause, arg);
	if (IsA(restored, OpExpr))
		restore_operator((OpExpr *) restored);
	return restored;
}

/*
 * The condition as SQL.
 */
static char *
condition_text(RfGateState *gate, List *clauses, List *ancestors,
			   ExplainState *es)
{
	CustomScan *plan = (CustomScan *) gate->css.ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt,
												   &plan->scan.plan, ancestors);
	RfShowContext show;
	Node	   *condition;

	show.values = plan->custom_exprs;
	show.keys = gate->asked.keys;
	show.rti = gate->asked.key_rti;
	condition = restore_clause((Node *) clauses, &show);
	return deparse_expression((Node *) make_ands_explicit((List *) condition),
							  context, false, false);
}

/*
 * Shows the conditions of the hash joins that give a gate values.
 */
static void
show_join_conditions(RfGateState *gate, List *ancestors, ExplainState *es)
{
	List	   *texts = NIL;

	for (int i = 0; i < gate->nfilters; i++)
	{
		const RfJoinSource *source = gate->filters[i].source;
		HashJoin   *plan;
		List	   *context;

		if (source == NULL)
			continue;
		plan = (HashJoin *) source->join->js.ps.plan;
		context = set_deparse_context_plan(es->deparse_cxt, &plan->join.plan,
										   ancestors);
		texts = lappend(texts,
						deparse_expression(list_nth(plan->hashclauses,
													source->key),
										   context, true, false));
	}
	if (texts != NIL)
		ExplainPropertyList("Partition Hash Cond", texts, es);
}

/*
 * The indexes asked.  Where there are several members, partitions of an index
 * are shown as the index of the partitioned table.
 */
static List *
asked_indexes(const RfGateState *gate)
{
	List	   *oids = NIL;
	ListCell   *cell;

	foreach(cell, gate->asked.members)
	{
		List	   *member = lfirst(cell);

		for (int i = 1; i < list_length(member); i++)
		{
			Oid			oid = list_nth_oid(member, i);

			if (!OidIsValid(oid))
				continue;
			if (gate->nmembers > 1 &&
				get_rel_relispartition(oid))
				oid = llast_oid(get_partition_ancestors(oid));
			oids = list_append_unique_oid(oids, oid);
		}
	}
	return oids;
}

/*
 * Starts scans that were not needed, so that EXPLAIN shows them as never
 * executed: that of a single member, and all where rows are hidden
 * (secured.c).  Otherwise only members whose scans were started are shown.
 *
 * EXPLAIN ANALYZE expects scans that could be executed: since 19 others lack what it
 * shows of them.
 */
static void
complete_children(RfGateState *gate, const ExplainState *es)
{
	int			eflags = gate->eflags | (es->analyze ? 0 : EXEC_FLAG_EXPLAIN_ONLY);
	List	   *states = NIL;

	for (int i = 0; i < gate->nmembers; i++)
	{
		RfGateMember *member = rf_gate_member(gate, i);

		if (member->state == NULL && (gate->nmembers == 1 || gate->asked.secured))
			rf_gate_start(gate, member, eflags);
		if (member->state != NULL)
			states = lappend(states, member->state);
	}
	gate->css.custom_ps = states;
}

/*
 * Shows how many members were skipped, of how many.  Another extension may have a
 * query instrumented of which EXPLAIN is not to show measurements.
 */
static void
show_counts(RfGateState *gate, ExplainState *es)
{
	RfNodeCounts *instrument = gate->css.ss.ps.instrument;
	double		considered = gate->considered;
	double		skipped = gate->skipped;

	if (es->analyze && instrument != NULL)
	{
		considered = instrument->nfiltered2;
		skipped = instrument->nfiltered1;
	}
	if (considered > 0)
		rf_explain_counts(skipped, considered, es);
}

/*
 * ExplainCustomScan
 */
void
rf_explain_gate(CustomScanState *node, List *ancestors, ExplainState *es)
{
	RfGateState *gate = (RfGateState *) node;
	List	   *clauses;

	complete_children(gate, es);
	if (gate->nmembers > 1)
		ExplainPropertyText("Table",
							rf_relation_names(gate->asked.tables, es->verbose),
							es);
	ExplainPropertyText("Filter Index",
						rf_relation_names(asked_indexes(gate), es->verbose),
						es);
	clauses = rf_gate_own_clauses(gate);
	if (clauses != NIL)
		ExplainPropertyText("Partition Cond",
							condition_text(gate, clauses, ancestors, es), es);
	show_join_conditions(gate, ancestors, es);
	if (!gate->asked.secured)
		show_counts(gate, es);
}
