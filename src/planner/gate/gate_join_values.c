/*-------------------------------------------------------------------------
 *
 * gate_join_values.c
 *	  The values that a hash join gives to gates below its outer side.
 *
 * They are read from the join's hash table when a gate is asked for its first
 * row, if the table is complete by then, in memory, and small.  Core would
 * first read a row of the outer side to see whether it is empty, unless it
 * knows that the scan before found a row.  So rf_core_hash_before_outer()
 * makes core believe that.  It holds for one scan, so current_version() calls
 * it again.
 *
 * A gate looks at the table once in each scan.  Whatever makes a new table
 * scans the outer side anew, so no gate goes on with the values of an old one.
 * Gates that ask for the same key of a join share its values (RfJoinSource).
 * A callback of the table's memory context tells the source that the table is
 * gone.
 *
 * Workers have hash tables of their own, and their gates read these.  The
 * shared table of a Parallel Hash Join is not read: rf_push_join_filters()
 * makes no join filter for it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "core/core.h"
#include "executor/executor.h"
#include "executor/hashjoin.h"
#include "nodes/nodeFuncs.h"
#include "planner/condition/condition.h"
#include "planner/gate/gate.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* A value, with the hash by which values are sorted. */
typedef struct RfJoinValue
{
	uint32		hash;
	Datum		datum;
} RfJoinValue;

/* The values of some rows, while they are collected. */
typedef struct RfJoinValues
{
	RfJoinSource *source;
	RfJoinValue *values;
	int			n;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	MemoryContext scratch;
	MemoryContext old;
} RfJoinValues;

/* The state of the walk that links gates to joins. */
typedef struct RfLinking
{
	List	   *joins;			/* HashJoinStates above, the nearest first */
	List	   *sources;		/* RfJoinSource made so far */
} RfLinking;

/*
 * How many gates with join filters have been started.  A count and not a flag:
 * functions that are called while a plan is started may start others.
 */
static uint64 gates_started = 0;

/*
 * A join filter as stored in a gate's plan: the join's plan_node_id, the
 * number of its hash clause, and the number of the run-time parameter that it
 * fills.
 */
List *
rf_join_filter_place(int join, int key, int param)
{
	return list_make3_int(join, key, param);
}

/*
 * Reads the join filters from a gate's plan.
 */
void
rf_join_filters_init(RfGateState *gate)
{
	ListCell   *cell;

	gate->nfilters = list_length(gate->asked.join_filters);
	if (gate->nfilters == 0)
		return;
	gate->filters = palloc0(gate->nfilters * sizeof(RfGateJoinFilter));
	foreach(cell, gate->asked.join_filters)
	{
		RfGateJoinFilter *filter = &gate->filters[foreach_current_index(cell)];

		filter->join = linitial_int(lfirst(cell));
		filter->key = lsecond_int(lfirst(cell));
		filter->param = lthird_int(lfirst(cell));
	}
	gates_started++;
}

/*
 * Makes a source for a key of a join.  The expression is compiled for slots of
 * any kind: a hash table holds minimal tuples, whatever the plan below
 * returns.
 */
static RfJoinSource *
make_source(HashJoinState *join, int key)
{
	EState	   *estate = join->js.ps.state;
	Hash	   *hash = (Hash *) innerPlanState(join)->plan;
	Expr	   *expr = list_nth(hash->hashkeys, key);
	RfJoinSource *source = palloc0(sizeof(RfJoinSource));

	source->join = join;
	source->key = key;
	source->type = exprType((Node *) expr);
	source->value = ExecInitExpr(expr, NULL);
	source->slot = ExecInitExtraTupleSlot(estate,
										  join->hj_HashTupleSlot->tts_tupleDescriptor,
										  &TTSOpsMinimalTuple);
	source->econtext = CreateExprContext(estate);
	source->context = AllocSetContextCreate(estate->es_query_cxt,
											"rangefilter join values",
											ALLOCSET_SMALL_SIZES);
	return source;
}

/*
 * Finds the source for a key of a join, or makes it.
 */
static RfJoinSource *
get_source(HashJoinState *join, const RfGateJoinFilter *wanted, RfLinking *linking)
{
	RfJoinSource *source;
	ListCell   *cell;

	foreach(cell, linking->sources)
	{
		source = lfirst(cell);
		if (source->join == join && source->key == wanted->key)
			return source;
	}
	source = make_source(join, wanted->key);
	linking->sources = lappend(linking->sources, source);
	return source;
}

/*
 * Links a gate to its joins.  A join that is not found leaves the source NULL.
 */
static void
link_gate(RfGateState *gate, RfLinking *linking)
{
	for (int i = 0; i < gate->nfilters; i++)
	{
		RfGateJoinFilter *wanted = &gate->filters[i];
		HashJoinState *join = NULL;
		ListCell   *cell;

		foreach(cell, linking->joins)
		{
			join = lfirst(cell);
			if (join->js.ps.plan->plan_node_id == wanted->join)
				break;
			join = NULL;
		}
		if (join == NULL)
			continue;
		wanted->source = get_source(join, wanted, linking);

		/*
		 * The join is to build its hash table before it reads the outer side.
		 */
		rf_core_hash_before_outer(join);
	}
}

/*
 * planstate_tree_walker() callback: links the gates in a plan tree to the hash joins above them.  While it is below a
 * hash join, that join is the first one in linking->joins.  Returns false, so the walk visits every node.
 */
static bool
link_node(PlanState *node, void *arg)
{
	RfLinking  *linking = arg;
	bool		is_join = IsA(node, HashJoinState);

	if (is_join)
		linking->joins = lcons(node, linking->joins);
	if (rf_is_gate(node->plan))
		link_gate((RfGateState *) node, linking);
	(void) planstate_tree_walker(node, link_node, arg);
	if (is_join)
		linking->joins = list_delete_first(linking->joins);
	return false;
}

/*
 * How many gates with join filters have been started so far.
 */
uint64
rf_join_filters_started(void)
{
	return gates_started;
}

/*
 * Links the gates in a plan to their joins.  Called when the plan has been
 * started; before is rf_join_filters_started() when that began.  A gate that
 * is started later stays without values.
 */
void
rf_join_filters_link(QueryDesc *desc, uint64 before)
{
	RfLinking	linking = {0};
	MemoryContext old;

	if (gates_started == before)
		return;
	old = MemoryContextSwitchTo(desc->estate->es_query_cxt);
	(void) link_node(desc->planstate, &linking);
	MemoryContextSwitchTo(old);
}

/*
 * Called when the memory of a hash table is freed.
 */
static void
forget_table(void *arg)
{
	((RfJoinSource *) arg)->table = NULL;
}

/*
 * qsort() comparator: RfJoinValue by hash.
 */
static int
compare_values(const void *a, const void *b)
{
	uint32		x = ((const RfJoinValue *) a)->hash;
	uint32		y = ((const RfJoinValue *) b)->hash;

	return x < y ? -1 : x > y;
}

/*
 * Begins to collect the values of "rows" rows; end_values() ends it.
 */
static void
begin_values(RfJoinSource *source, int rows, RfJoinValues *values)
{
	get_typlenbyvalalign(source->type, &values->typlen, &values->typbyval,
						 &values->typalign);
	values->scratch = AllocSetContextCreate(CurrentMemoryContext,
											"rangefilter join rows",
											ALLOCSET_DEFAULT_SIZES);
	values->old = MemoryContextSwitchTo(values->scratch);
	values->values = palloc((rows + 1) * sizeof(RfJoinValue));
	values->n = 0;
	values->source = source;
}

/*
 * RfCoreRow: adds the value of a row, if it is not NULL.
 */
static void
add_value(void *arg, MinimalTuple row)
{
	RfJoinValues *values = arg;
	RfJoinSource *source = values->source;
	ExprContext *econtext = source->econtext;
	RfJoinValue *added = &values->values[values->n];
	bool		isnull;
	Datum		value;

	ResetExprContext(econtext);
	ExecStoreMinimalTuple(row, source->slot, false);
	econtext->ecxt_outertuple = source->slot;
	econtext->ecxt_innertuple = source->slot;
	value = ExecEvalExprSwitchContext(source->value, econtext, &isnull);
	if (isnull)
		return;
	added->datum = datumCopy(value, values->typbyval, values->typlen);
	added->hash = datum_image_hash(value, values->typbyval, values->typlen);
	values->n++;
}

/*
 * Makes an array of the distinct values, in the source's context.  False if
 * there are more than RF_JOIN_MAX_VALUES, or they are longer than
 * RF_JOIN_MAX_BYTES.  The rows in a hash table may be short where their values
 * are not, since these may be compressed or elsewhere; those of an array are not.
 */
static bool
make_array(RfJoinSource *source, RfJoinValues *values)
{
	Datum	   *datums = palloc((RF_JOIN_MAX_VALUES + 1) * sizeof(Datum));
	RfJoinValue *last = NULL;
	int			ndistinct = 0;
	Size		bytes = 0;
	MemoryContext old;

	qsort(values->values, values->n, sizeof(RfJoinValue), compare_values);
	for (int i = 0; i < values->n; i++)
	{
		RfJoinValue *value = &values->values[i];

		if (last != NULL && value->hash == last->hash &&
			datum_image_eq(value->datum, last->datum, values->typbyval,
						   values->typlen))
			continue;
		if (values->typlen == -1)
			bytes += toast_raw_datum_size(value->datum);
		if (ndistinct == RF_JOIN_MAX_VALUES || bytes > RF_JOIN_MAX_BYTES)
			return false;
		datums[ndistinct++] = value->datum;
		last = value;
	}
	old = MemoryContextSwitchTo(source->context);
	source->array = PointerGetDatum(construct_array(datums, ndistinct, source->type,
													values->typlen,
													values->typbyval,
													values->typalign));
	MemoryContextSwitchTo(old);
	return true;
}

/*
 * Keeps the values that were collected, if they are complete and not too many.
 * Ends what begin_values() began.
 */
static void
end_values(RfJoinSource *source, RfJoinValues *values, bool complete)
{
	ExecClearTuple(source->slot);
	MemoryContextReset(source->context);
	source->version++;
	source->known = complete && make_array(source, values);
	MemoryContextSwitchTo(values->old);
	MemoryContextDelete(values->scratch);
}

/*
 * Reads a join's hash table.  Registers forget_table() for when its memory is
 * freed.
 */
static void
read_table(RfJoinSource *source)
{
	HashJoinTable table = source->join->hj_HashTable;
	MemoryContextCallback *callback;
	RfJoinValues values;
	bool		complete;

	callback = MemoryContextAllocZero(table->hashCxt,
									  sizeof(MemoryContextCallback));
	callback->func = forget_table;
	callback->arg = source;
	MemoryContextRegisterResetCallback(table->hashCxt, callback);
	source->table = table;
	source->known = false;
	begin_values(source, (int) table->totalTuples, &values);
	complete = rf_core_hash_read(source->join, add_value, &values);
	end_values(source, &values, complete);
}

/*
 * The version of a join's values, 0 where they are not known.  Reads the hash
 * table if it is a new one.
 */
static uint64
current_version(RfJoinSource *source)
{
	HashJoinState *join = source->join;

	if (!rf_core_hash_is_readable(join, RF_JOIN_MAX_ROWS))
		return 0;
	if (source->table != join->hj_HashTable)
		read_table(source);

	/*
	 * The next hash table, too, is to be built before the outer side is read.
	 */
	rf_core_hash_before_outer(join);
	return source->known ? source->version : 0;
}

/*
 * Gets the values of a gate's join filters.  Returns the numbers of the
 * run-time parameters whose values are not those of the last time.
 */
Bitmapset *
rf_join_filters_read(RfGateState *gate)
{
	Bitmapset  *changed = NULL;

	for (int i = 0; i < gate->nfilters; i++)
	{
		RfGateJoinFilter *filter = &gate->filters[i];
		uint64		version = filter->source != NULL ?
		current_version(filter->source) : 0;

		if (filter->version != version)
			changed = bms_add_member(changed, filter->param);
		filter->version = version;
	}
	return changed;
}

/*
 * Does a join filter fill the run-time parameter of this condition, "key = ANY
 * (param)"?
 */
static bool
is_of_join_filter(const RfGateState *gate, Node *clause)
{
	Node	   *array;

	if (!IsA(clause, ScalarArrayOpExpr))
		return false;
	array = lsecond(((ScalarArrayOpExpr *) clause)->args);
	for (int i = 0; i < gate->nfilters; i++)
	{
		if (rf_is_runtime_param(array) &&
			((Param *) array)->paramid == gate->filters[i].param)
			return true;
	}
	return false;
}

/*
 * Fills the run-time parameters of join filters.  Returns the numbers of those
 * whose values are not known.
 */
Bitmapset *
rf_join_filters_fill(const RfGateState *gate)
{
	Bitmapset  *unknown = NULL;

	for (int i = 0; i < gate->nfilters; i++)
	{
		const RfGateJoinFilter *filter = &gate->filters[i];

		if (filter->version == 0)
			unknown = bms_add_member(unknown, filter->param);
		else
		{
			gate->datums[filter->param] = filter->source->array;
			gate->nulls[filter->param] = false;
		}
	}
	return unknown;
}

/*
 * A gate's conditions without those of join filters.
 */
List *
rf_gate_own_clauses(const RfGateState *gate)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, gate->asked.clauses)
	{
		if (!is_of_join_filter(gate, lfirst(cell)))
			result = lappend(result, lfirst(cell));
	}
	return result;
}
