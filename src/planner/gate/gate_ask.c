/*-------------------------------------------------------------------------
 *
 * gate_ask.c
 *	  Computing what a gate asks, and asking members.
 *
 * An index is asked after the executor took its snapshot, so a NO needs no
 * further check (R3 in ARCHITECTURE.md).  It stays a NO while the statement
 * runs: keys of rows that the snapshot sees do not leave a summary, and the
 * table is locked.  So a member is asked once for each question.  A question
 * stays the same while its values do.  A member is not
 * asked for many values if its scan is likely to cost less.
 *
 * The executor has locked the tables.  Indexes that are asked repeatedly stay
 * open and locked, as in index scans.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relation.h"
#include "access/xact.h"
#include "compat.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "planner/condition/condition.h"
#include "planner/condition/parameter.h"
#include "planner/gate/gate.h"
#include "planner/knowledge/knowledge.h"
#include "planner/knowledge/question.h"
#include "rangefilter/page/page.h"
#include "rangefilter/probe/probe.h"
#include "rangefilter/rangefilter.h"
#include "stats/stats.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "utils/date.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/*
 * Local times of the same instant in any two ordinary time zones are less apart
 * than this.
 */
#define RF_ZONE_MARGIN (INT64CONST(2) * RF_ZONE_HOURS * USECS_PER_HOUR)

/*
 * Computes the local time of an instant, moved down (low) or up by
 * RF_ZONE_MARGIN.  False where it is out of range, or the time zone is not an ordinary one.
 */
static bool
local_bound(TimestampTz instant, bool low, Timestamp *result)
{
	struct pg_tm tm;
	fsec_t		fsec;
	int			zone;

	*result = instant;
	if (TIMESTAMP_NOT_FINITE(instant))
		return true;
	if (!rf_zone_is_ordinary(instant) ||
		timestamp2tm(instant, &zone, &tm, &fsec, NULL, NULL) != 0 ||
		tm2timestamp(&tm, fsec, NULL, result) != 0)
		return false;
	*result += low ? -RF_ZONE_MARGIN : RF_ZONE_MARGIN;
	return IS_VALID_TIMESTAMP(*result);
}

/*
 * Converts a value.  False where that cannot be done: then nothing is known of
 * a comparison with it.
 */
static bool
convert_value(Datum *value, RfConversion conversion)
{
	RfOverflow	overflow = RF_NO_OVERFLOW;
	TimestampTz instant;
	Timestamp	local;

	switch (conversion)
	{
		case RF_TIMESTAMP_TO_TZ:
			instant = RF_CONVERT(timestamp2timestamptz,
								 DatumGetTimestamp(*value), &overflow);
			*value = TimestampTzGetDatum(instant);
			return !RF_OVERFLOWED(overflow);
		case RF_DATE_TO_TZ:
			instant = RF_CONVERT(date2timestamptz, DatumGetDateADT(*value),
								 &overflow);
			*value = TimestampTzGetDatum(instant);
			return !RF_OVERFLOWED(overflow);
		case RF_TZ_TO_TIMESTAMP_LOW:
		case RF_TZ_TO_TIMESTAMP_HIGH:
			if (!local_bound(DatumGetTimestampTz(*value),
							 conversion == RF_TZ_TO_TIMESTAMP_LOW, &local))
				return false;
			*value = TimestampGetDatum(local);
			return true;
		case RF_AS_IS:
			break;
	}
	return true;
}

/*
 * Does an expression have a parameter that cannot be given just now, such as the field of a
 * PL/pgSQL record that was not assigned, or with another type?  Asking raises no error.
 */
static bool
lacks_parameter(Node *node, void *context)
{
	ParamListInfo params = context;
	const Param *param = (const Param *) node;
	const		ParamExternData *given;
	ParamExternData workspace;

	if (node == NULL)
		return false;
	if (!IsA(node, Param))
		return expression_tree_walker(node, lacks_parameter, context);
	if (param->paramkind != PARAM_EXTERN)
		return false;
	if (params == NULL || param->paramid < 1 || param->paramid > params->numParams)
		return true;
	given = params->paramFetch != NULL ?
		params->paramFetch(params, param->paramid, true, &workspace) :
		&params->params[param->paramid - 1];
	return given->ptype != param->paramtype;
}

/*
 * Computes the values, in the per-tuple context of the node's expressions.
 * External parameters keep the value of the first question.
 */
static void
compute_values(RfGateState *gate, Datum *datums, bool *nulls)
{
	ExprContext *econtext = gate->css.ss.ps.ps_ExprContext;
	ParamListInfo params = econtext->ecxt_param_list_info;
	ListCell   *cell;
	int			i = 0;

	ResetExprContext(econtext);
	foreach(cell, gate->exprs)
	{
		RfGateValue *value = &gate->values[i];
		const ExprState *expr = lfirst(cell);

		if (value->external && gate->question > 0)
		{
			datums[i] = value->datum;
			nulls[i] = value->isnull;
		}
		else if (lacks_parameter((Node *) expr->expr, params))
		{
			value->missing = true;
			nulls[i] = true;
		}
		else
			datums[i] = ExecEvalExprSwitchContext(lfirst(cell), econtext,
												  &nulls[i]);
		i++;
	}
}

/*
 * The numbers of the values that are not those of the last question, and of
 * all before the first one.  Allocates in the current context.
 */
static Bitmapset *
changed_values(const RfGateState *gate, const Datum *datums, const bool *nulls)
{
	Bitmapset  *changed = NULL;

	for (int i = 0; i < gate->nvalues; i++)
	{
		const RfGateValue *value = &gate->values[i];

		if (gate->question == 0 || nulls[i] != value->isnull ||
			(!nulls[i] && datums[i] != value->datum &&
			 (value->typbyval ||
			  !datumIsEqual(datums[i], value->datum, false, value->typlen))))
			changed = bms_add_member(changed, i);
	}
	return changed;
}

/*
 * Keeps values for the next question, and fills the run-time parameters with
 * them.  Values that are not in the set of changed ones stay where they are.
 */
static void
keep_values(RfGateState *gate, const Bitmapset *changed, const Datum *datums,
			const bool *nulls)
{
	MemoryContext old = MemoryContextSwitchTo(gate->css.ss.ps.state->es_query_cxt);
	int			i = -1;

	while ((i = bms_next_member(changed, i)) >= 0)
	{
		RfGateValue *value = &gate->values[i];

		if (!value->typbyval && !value->isnull)
			pfree(DatumGetPointer(value->datum));
		value->isnull = gate->nulls[i] = nulls[i];
		value->unusable = false;
		if (nulls[i])
			continue;
		value->datum = gate->datums[i] = datumCopy(datums[i], value->typbyval,
												   value->typlen);
		value->unusable = !convert_value(&gate->datums[i],
										 list_nth_int(gate->asked.conversions, i));
	}
	MemoryContextSwitchTo(old);
}

/*
 * Is there a value of which nothing is known, without it or after its conversion?
 */
static bool
has_unusable_value(const RfGateState *gate)
{
	for (int i = 0; i < gate->nvalues; i++)
	{
		if (gate->values[i].unusable || gate->values[i].missing)
			return true;
	}
	return false;
}

/*
 * expression_tree_walker() callback: return true if one of these run-time parameters is in a clause.
 */
static bool
has_param(Node *node, void *params)
{
	if (node == NULL)
		return false;
	if (rf_is_runtime_param(node))
		return bms_is_member(((Param *) node)->paramid, params);
	return expression_tree_walker(node, has_param, params);
}

/*
 * The gate's clauses with the values kept, but for those that compare with unknown ones.  Sets
 * gate->never where no row can satisfy one of them.
 */
static List *
fill_clauses(RfGateState *gate)
{
	Bitmapset  *unknown = rf_join_filters_fill(gate);
	List	   *clauses = NIL;
	ListCell   *cell;

	foreach(cell, gate->asked.clauses)
	{
		Node	   *clause;

		if (has_param(lfirst(cell), unknown))
			continue;
		clause = rf_gate_fill(lfirst(cell), gate->datums, gate->nulls);
		if (clause == NULL)
		{
			gate->never = true;
			return NIL;
		}
		clauses = lappend(clauses, clause);
	}
	return clauses;
}

/*
 * list_sort() callback: what has fewer ranges of keys comes first.
 */
static int
compare_ranges(const ListCell *a, const ListCell *b)
{
	double		ranges_a = rf_cond_ranges(lfirst(a));
	double		ranges_b = rf_cond_ranges(lfirst(b));

	return (ranges_a > ranges_b) - (ranges_a < ranges_b);
}

/*
 * Makes a question of the values kept.  Resets gate->context.
 */
static void
make_question(RfGateState *gate)
{
	RfMatch		match = {0};
	MemoryContext old;

	MemoryContextReset(gate->context);
	old = MemoryContextSwitchTo(gate->context);
	gate->never = false;
	if (!has_unusable_value(gate))
		(void) rf_match_clauses(fill_clauses(gate), 1, gate->table, &match);
	gate->cond = match.cond;
	gate->open = gate->cond == NULL && !gate->never;
	gate->question++;
	gate->watchable = gate->watch && gate->nfilters == 0 &&
		gate->cond != NULL && gate->cond->kind == RF_COND_PROBE &&
		list_length(match.clauses) == gate->asked.nconditions;

	/* One NO suffices. */
	if (gate->cond != NULL && gate->cond->kind == RF_COND_AND)
		list_sort(gate->cond->args, compare_ranges);
	MemoryContextSwitchTo(old);
}

/*
 * Must the gate stay open, since what is read would be shown, and tell of hidden rows
 * (secured.c)?
 */
static bool
would_tell(const RfGateState *gate)
{
	return gate->asked.secured && rf_is_shown(gate->css.ss.ps.state);
}

/*
 * Must it stay open, since the error of a parameter that cannot be given would tell
 * (rf_external_params())?  External parameters do not change, so this is found out once.
 */
static bool
would_fail(RfGateState *gate)
{
	if (!gate->checked_params)
		gate->lacks_params = lacks_parameter((Node *) gate->asked.external,
											 gate->css.ss.ps.state->es_param_list_info);
	gate->checked_params = true;
	return gate->lacks_params;
}

/*
 * Computes the values and, if they are new, the question.
 */
void
rf_gate_prepare(RfGateState *gate)
{
	EState	   *estate = gate->css.ss.ps.state;
	MemoryContext old;
	Datum	   *datums;
	bool	   *nulls;
	Bitmapset  *changed;

	gate->current_values = true;
	if (!rf_enable || estate->es_epq_active != NULL ||
		estate->es_snapshot == InvalidSnapshot || would_tell(gate) || would_fail(gate))
	{
		gate->open = true;
		return;
	}
	MemoryContextReset(gate->scratch);
	old = MemoryContextSwitchTo(gate->scratch);
	datums = palloc((gate->nvalues + 1) * sizeof(Datum));
	nulls = palloc((gate->nvalues + 1) * sizeof(bool));
	compute_values(gate, datums, nulls);
	changed = bms_add_members(changed_values(gate, datums, nulls),
							  rf_join_filters_read(gate));
	if (gate->question == 0 || changed != NULL)
	{
		keep_values(gate, changed, datums, nulls);
		make_question(gate);
	}
	MemoryContextSwitchTo(old);
}

/*
 * Opens a member's index number i with AccessShareLock, and takes the predicate
 * lock on it (R5).  NULL, and no lock, where there is none, the lock cannot be had
 * without waiting, or the index cannot be used.
 */
static Relation
open_index(RfGateState *gate, RfGateMember *member, int i)
{
	Oid			oid = list_nth_oid(member->oids, i + 1);
	Relation	relation;

	if (!OidIsValid(oid) ||
		!ConditionalLockRelationOid(oid, AccessShareLock))
		return NULL;
	relation = RelationIdGetRelation(oid);
	if (relation != NULL &&
		rf_index_is_usable(relation, linitial_oid(member->oids)) &&
		rf_index_fits(rf_index_at(gate->table, i), relation))
	{
		if (IsolationIsSerializable())
			PredicateLockRelation(relation, gate->css.ss.ps.state->es_snapshot);
		return relation;
	}
	if (relation != NULL)
		relation_close(relation, NoLock);
	UnlockRelationOid(oid, AccessShareLock);
	return NULL;
}

/*
 * Asks a member's index number i, and sets *counts to its counters.  The index is opened and
 * locked for this; if it may be asked again, it stays so.
 */
static RfAnswer
ask_index(RfGateState *gate, RfGateMember *member, int i, const RfKeySet *set,
		  RfCounts **counts)
{
	EState	   *estate = gate->css.ss.ps.state;
	Relation	relation = member->indexes != NULL ? member->indexes[i] : NULL;
	bool		in_recovery = estate->es_snapshot->takenDuringRecovery;
	bool		looks = false;
	RfLook		look;
	RfSummaryVersion version;
	RfAnswer	answer;

	if (relation == NULL)
	{
		looks = rf_gate_begin_look(gate, member, i, &look);
		relation = open_index(gate, member, i);
	}
	if (relation == NULL)
		return RF_UNKNOWN;
	if (gate->repeated && member->indexes == NULL)
		member->indexes = MemoryContextAllocZero(estate->es_query_cxt,
												 gate->table->nindexes * sizeof(Relation));
	if (gate->repeated)
		member->indexes[i] = relation;
	answer = looks ? rf_look_at_open(&look, relation, set, false) :
		rf_probe(relation, set, in_recovery, &version, NULL);
	*counts = rf_index_counts(relation);
	pgstat_count_index_scan(relation);
	if (!gate->repeated)
		relation_close(relation, AccessShareLock);
	return answer;
}

/*
 * What each of many values costs that a member is asked for, beside a scan of
 * this kind.  An index scan is charged mostly for pages as if they were read
 * from disk.  If they are in memory, a question for as many values in each round of
 * a loop takes about as long.  So a value costs a page there.
 */
static Cost
ask_value_cost(NodeTag scan, bool again)
{
	bool		by_index = scan == T_IndexScan || scan == T_IndexOnlyScan ||
	scan == T_BitmapHeapScan;

	return by_index && again ? random_page_cost :
		RF_ASK_VALUE_COST * cpu_operator_cost;
}

/*
 * Would asking a member for keys of a set cost more than its scan?  Only gates
 * that may ask again and again, or for the values of a join, are asked that.
 */
static bool
is_dear(const RfGateState *gate, const RfGateMember *member,
		const RfKeySet *set)
{
	const Plan *plan = member->plan;

	if (!(gate->repeated || gate->nfilters > 0) || set->nranges <= 1)
		return false;
	if (IsA(plan, Result) && plan->lefttree != NULL)
		plan = plan->lefttree;
	return set->nranges *
		ask_value_cost(nodeTag(plan), gate->repeated) > plan->total_cost;
}

/* The member whose indexes are asked. */
typedef struct RfAskedMember
{
	RfGateState *gate;
	RfGateMember *member;
} RfAskedMember;

/*
 * Does a member's index deny that there is a key of the set?  Without such an
 * index nothing is known, even of an empty set: the columns of this member may
 * be others than those that the join filter compares.
 */
static bool
member_denies(const RfCond *cond, void *arg)
{
	RfGateState *gate = ((RfAskedMember *) arg)->gate;
	RfGateMember *member = ((RfAskedMember *) arg)->member;
	int			i = cond->index - gate->table->indexes;
	RfCounts   *counts = NULL;
	RfAnswer	answer;

	/* The list is looked at only where the index is not open yet. */
	if ((member->indexes == NULL || member->indexes[i] == NULL) &&
		!OidIsValid(list_nth_oid(member->oids, i + 1)))
		return false;
	if (rf_keyset_is_empty(cond->set))
		return true;
	if (is_dear(gate, member, cond->set))
		return false;
	answer = ask_index(gate, member, i, cond->set, &counts);
	if (counts != NULL)
	{
		counts->probes++;
		counts->skips += answer == RF_NO;
		if (gate->watchable && answer != RF_NO)
		{
			member->watched = counts;
			member->watched_index = list_nth_oid(member->oids, i + 1);
		}
	}
	return answer == RF_NO;
}

/*
 * Can a member be skipped?  May ask indexes.  The gate is prepared.  That may have been outside
 * of the query below which a cursor is read on now, so would_tell() is asked here, too.
 */
bool
rf_gate_closed(RfGateState *gate, RfGateMember *member)
{
	RfAskedMember asked = {gate, member};
	MemoryContext old;

	if (gate->open || would_tell(gate))
		return false;
	if (gate->matrices != NULL && !gate->never)
	{
		if (gate->matrices->asked != gate->question)
			rf_gate_ask_matrices(gate);
		if (rf_gate_matrices_deny(gate->matrices, member - gate->members))
			return true;
	}
	if (member->oids == NIL)
		return false;
	if (gate->never)
		return true;
	if (member->asked == gate->question)
		return member->closed;
	MemoryContextReset(gate->scratch);
	old = MemoryContextSwitchTo(gate->scratch);
	member->watched = NULL;
	member->closed = rf_cond_denied(gate->cond, member_denies, &asked, NULL);
	rf_stats_pending = true;
	member->asked = gate->question;
	MemoryContextSwitchTo(old);
	return member->closed;
}

/*
 * Closes the indexes that were kept open.  Their locks are kept until the end
 * of the transaction, as in index scans.
 */
void
rf_gate_close_indexes(RfGateState *gate)
{
	for (int i = 0; i < gate->nmembers; i++)
	{
		Relation   *indexes = rf_gate_member(gate, i)->indexes;

		for (int j = 0; indexes != NULL && j < gate->table->nindexes; j++)
		{
			if (indexes[j] != NULL)
				relation_close(indexes[j], NoLock);
		}
	}
}
