/*-------------------------------------------------------------------------
 *
 * gate_feed.c
 *	  The values a hash join gives to gates below its outer side.
 *
 * They are read from its hash table when a gate is asked for its first row, if the
 * table is complete by then, all in memory and small.  Core would begin with a row of the outer side,
 * to find out whether there is one at all, unless it knows from the scan before
 * that there was; so we tell it that (which it forgets, like us, when it has read
 * the outer side again).
 *
 * A gate looks at the table once in each scan.  Whatever makes a new table
 * scans the outer side anew, so no gate goes on with the values of an old one.
 * Gates that the same join gives the same values share them; that the table has
 * gone they learn from its memory context.
 *
 * Workers have hash tables of their own, from which their gates read.  Shared
 * ones, of a Parallel Hash Join, are not read: rf_feed_gates() makes no gate.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "core/core.h"
#include "executor/executor.h"
#include "executor/hashjoin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/value.h"
#include "optimizer/optimizer.h"
#include "planner/condition/condition.h"
#include "planner/gate/gate.h"
#include "planner/knowledge/question.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* A value, with a hash by which equal ones are brought together. */
typedef struct RfFeedValue
{
	uint32		hash;
	Datum		datum;
} RfFeedValue;

/* The values of some rows, while they are collected. */
typedef struct RfFeedValues
{
	RfFeed	   *feed;
	RfFeedValue *values;
	int			n;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	MemoryContext scratch;
	MemoryContext old;
} RfFeedValues;

/* Bringing joins and gates together. */
typedef struct RfLinking
{
	List	   *joins;			/* HashJoinStates above, the nearest first */
	List	   *feeds;			/* RfFeed made so far */
} RfLinking;

/* Has a gate been started that waits for a join's values? */
static bool feeds_pending = false;

/*
 * What of a gate's plan is about joins.
 */
void
rf_feed_init(RfGateState *gate, CustomScan *plan)
{
	List	   *feeds = list_nth(plan->custom_private, RF_GATE_FEEDS);
	ListCell   *cell;

	gate->nfeeds = list_length(feeds);
	if (gate->nfeeds == 0)
		return;
	gate->feeds = palloc0(gate->nfeeds * sizeof(RfGateFeed));
	foreach(cell, feeds)
	{
		RfGateFeed *feed = &gate->feeds[foreach_current_index(cell)];

		feed->join = linitial_int(lfirst(cell));
		feed->key = lsecond_int(lfirst(cell));
		feed->hole = lthird_int(lfirst(cell));
	}
	feeds_pending = true;
}

/*
 * A key of a join, for gates that may be given its values.  The expression is
 * compiled for rows of any kind: in a hash table are minimal tuples, whatever the
 * plan below returns.
 */
static RfFeed *
make_feed(HashJoinState *join, int key)
{
	EState	   *estate = join->js.ps.state;
	Hash	   *hash = (Hash *) innerPlanState(join)->plan;
	Expr	   *expr = list_nth(hash->hashkeys, key);
	RfFeed	   *feed = palloc0(sizeof(RfFeed));

	feed->join = join;
	feed->key = key;
	feed->type = exprType((Node *) expr);
	feed->value = ExecInitExpr(expr, NULL);
	feed->slot = ExecInitExtraTupleSlot(estate,
										join->hj_HashTupleSlot->tts_tupleDescriptor,
										&TTSOpsMinimalTuple);
	feed->econtext = CreateExprContext(estate);
	feed->context = AllocSetContextCreate(estate->es_query_cxt,
										  "rangefilter join values",
										  ALLOCSET_SMALL_SIZES);
	return feed;
}

/*
 * The feed for a key of a join, which is made if there is none yet.
 */
static RfFeed *
get_feed(HashJoinState *join, const RfGateFeed *wanted, RfLinking *linking)
{
	RfFeed	   *feed;
	ListCell   *cell;

	foreach(cell, linking->feeds)
	{
		feed = lfirst(cell);
		if (feed->join == join && feed->key == wanted->key)
			return feed;
	}
	feed = make_feed(join, wanted->key);
	linking->feeds = lappend(linking->feeds, feed);
	return feed;
}

/*
 * Gives a gate its joins.
 */
static void
link_gate(RfGateState *gate, RfLinking *linking)
{
	for (int i = 0; i < gate->nfeeds; i++)
	{
		RfGateFeed *wanted = &gate->feeds[i];
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
		wanted->feed = get_feed(join, wanted, linking);

		/* The hash table before the first row of the outer side. */
		rf_core_hash_before_outer(join);
	}
}

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
 * Called when a plan has been started.  A gate that is not found here stays
 * without values.
 */
void
rf_feed_link(QueryDesc *desc)
{
	RfLinking	linking = {0};
	MemoryContext old;

	if (!feeds_pending)
		return;
	feeds_pending = false;
	old = MemoryContextSwitchTo(desc->estate->es_query_cxt);
	(void) link_node(desc->planstate, &linking);
	MemoryContextSwitchTo(old);
}

/*
 * Called when the memory of a hash table goes.
 */
static void
forget_table(void *arg)
{
	((RfFeed *) arg)->table = NULL;
}

static int
compare_values(const void *a, const void *b)
{
	uint32		x = ((const RfFeedValue *) a)->hash;
	uint32		y = ((const RfFeedValue *) b)->hash;

	return x < y ? -1 : x > y;
}

/*
 * Begins to collect values of so many rows; end_values() ends it.
 */
static void
begin_values(RfFeed *feed, int rows, RfFeedValues *values)
{
	get_typlenbyvalalign(feed->type, &values->typlen, &values->typbyval,
						 &values->typalign);
	values->scratch = AllocSetContextCreate(CurrentMemoryContext,
											"rangefilter join rows",
											ALLOCSET_DEFAULT_SIZES);
	values->old = MemoryContextSwitchTo(values->scratch);
	values->values = palloc((rows + 1) * sizeof(RfFeedValue));
	values->n = 0;
	values->feed = feed;
}

/*
 * RfCoreRow: adds the value of a row, if it is not NULL.
 */
static void
add_value(void *arg, MinimalTuple row)
{
	RfFeedValues *values = arg;
	RfFeed	   *feed = values->feed;
	ExprContext *econtext = feed->econtext;
	RfFeedValue *added = &values->values[values->n];
	bool		isnull;
	Datum		value;

	ResetExprContext(econtext);
	ExecStoreMinimalTuple(row, feed->slot, false);
	econtext->ecxt_outertuple = feed->slot;
	econtext->ecxt_innertuple = feed->slot;
	value = ExecEvalExprSwitchContext(feed->value, econtext, &isnull);
	if (isnull)
		return;
	added->datum = datumCopy(value, values->typbyval, values->typlen);
	added->hash = datum_image_hash(value, values->typbyval, values->typlen);
	values->n++;
}

/*
 * Makes an array of the distinct ones of some values.  False if they are too
 * many.
 */
static bool
make_array(RfFeed *feed, RfFeedValues *values)
{
	Datum	   *datums = palloc((RF_FEED_MAX_VALUES + 1) * sizeof(Datum));
	RfFeedValue *last = NULL;
	int			ndistinct = 0;
	MemoryContext old;

	qsort(values->values, values->n, sizeof(RfFeedValue), compare_values);
	for (int i = 0; i < values->n; i++)
	{
		RfFeedValue *value = &values->values[i];

		if (last != NULL && value->hash == last->hash &&
			datum_image_eq(value->datum, last->datum, values->typbyval,
						   values->typlen))
			continue;
		if (ndistinct == RF_FEED_MAX_VALUES)
			return false;
		datums[ndistinct++] = value->datum;
		last = value;
	}
	old = MemoryContextSwitchTo(feed->context);
	feed->array = PointerGetDatum(construct_array(datums, ndistinct, feed->type,
												  values->typlen,
												  values->typbyval,
												  values->typalign));
	MemoryContextSwitchTo(old);
	return true;
}

/*
 * Takes the values that were collected, unless they are too many or not all.
 */
static void
end_values(RfFeed *feed, RfFeedValues *values, bool complete)
{
	ExecClearTuple(feed->slot);
	MemoryContextReset(feed->context);
	feed->version++;
	feed->known = complete && make_array(feed, values);
	MemoryContextSwitchTo(values->old);
	MemoryContextDelete(values->scratch);
}

/*
 * Reads a join's hash table, and has the feed forget it when its memory goes.
 */
static void
read_table(RfFeed *feed)
{
	HashJoinTable table = feed->join->hj_HashTable;
	MemoryContextCallback *callback;
	RfFeedValues values;
	bool		complete;

	callback = MemoryContextAllocZero(table->hashCxt,
									  sizeof(MemoryContextCallback));
	callback->func = forget_table;
	callback->arg = feed;
	MemoryContextRegisterResetCallback(table->hashCxt, callback);
	feed->table = table;
	feed->known = false;
	begin_values(feed, (int) table->totalTuples, &values);
	complete = rf_core_hash_read(feed->join, add_value, &values);
	end_values(feed, &values, complete);
}

/*
 * The version of a join's values, 0 where they are not known.
 */
static uint64
current_version(RfFeed *feed)
{
	HashJoinState *join = feed->join;

	if (!rf_core_hash_is_readable(join, RF_FEED_MAX_ROWS))
		return 0;
	if (feed->table != join->hj_HashTable)
		read_table(feed);

	/* So that the next table is made before the outer side is read, too. */
	rf_core_hash_before_outer(join);
	return feed->known ? feed->version : 0;
}

/*
 * Gets the values for a gate; true if they are the same as the last time.
 */
bool
rf_feed_read(RfGateState *gate)
{
	bool		same = true;

	for (int i = 0; i < gate->nfeeds; i++)
	{
		RfGateFeed *feed = &gate->feeds[i];
		uint64		version = feed->feed != NULL ?
		current_version(feed->feed) : 0;

		same = same && feed->version == version;
		feed->version = version;
	}
	return same;
}

/*
 * Which join, if any, fills the hole of a condition "key = ANY (hole)"?
 */
static const RfGateFeed *
condition_feed(const RfGateState *gate, Node *clause)
{
	Node	   *array;

	if (!IsA(clause, ScalarArrayOpExpr))
		return NULL;
	array = lsecond(((ScalarArrayOpExpr *) clause)->args);
	for (int i = 0; i < gate->nfeeds; i++)
	{
		if (rf_is_hole(array) &&
			((Param *) array)->paramid == gate->feeds[i].hole)
			return &gate->feeds[i];
	}
	return NULL;
}

/*
 * Fills in the joins' values, and leaves out conditions on those not known.
 */
void
rf_feed_fill(const RfGateState *gate, List **clauses, Datum *values,
			 bool *nulls)
{
	List	   *result = NIL;
	ListCell   *cell;

	if (gate->nfeeds == 0)
		return;
	foreach(cell, *clauses)
	{
		const RfGateFeed *feed = condition_feed(gate, lfirst(cell));

		if (feed != NULL && feed->version == 0)
			continue;
		result = lappend(result, lfirst(cell));
		if (feed != NULL)
		{
			values[feed->hole] = feed->feed->array;
			nulls[feed->hole] = false;
		}
	}
	*clauses = result;
}

/*
 * A gate's conditions without those on joins' values.
 */
List *
rf_feed_own_clauses(const RfGateState *gate, List *clauses)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, clauses)
	{
		if (condition_feed(gate, lfirst(cell)) == NULL)
			result = lappend(result, lfirst(cell));
	}
	return result;
}

/*
 * What asking a member costs, in the planner's units.
 */
Cost
rf_feed_cost(const RfCond *cond)
{
	Cost		cost = 0;
	ListCell   *cell;

	if (cond->kind == RF_COND_PROBE)
		return cond->set->nranges * RF_ASK_VALUE_COST * cpu_operator_cost;
	foreach(cell, cond->args)
		cost += rf_feed_cost(lfirst(cell));
	return cost;
}
