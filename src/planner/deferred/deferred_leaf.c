/*-------------------------------------------------------------------------
 *
 * deferred_leaf.c
 *	  Runs of a deferred scan by plans of single partitions, which are kept.
 *
 * A scan that is run again and again asks the summaries itself which partitions
 * are left.  A partition that is read gets a plan of its own, with external parameters in
 * the places of values.  The plan is started once; for other values, it is rescanned.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/attmap.h"
#include "access/relation.h"
#include "compat.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "planner/deferred/deferred.h"
#include "planner/skip/skip.h"
#include "rewrite/rewriteManip.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/*
 * Plans of this many partitions are kept in any case.  More of them are kept within the
 * memory of a hash table.
 */
#define RF_KEPT_LEAVES	1000

/* A partition's plan. */
typedef struct RfKeptLeaf
{
	Oid			oid;			/* key of the hash table: must be first */
	QueryDesc  *desc;			/* NULL: not started */
} RfKeptLeaf;

/*
 * The Query on one partition instead of the table; NULL if it has gone.
 */
Query *
rf_query_on_leaf(const RfDeferredState *state, Oid leaf)
{
	Query	   *query = copyObject(state->plan.query);
	RangeTblEntry *rte = linitial(query->rtable);
	Relation	relation = try_relation_open(leaf, AccessShareLock);
	AttrMap    *map;
	Oid			row_type;
	Oid			user = rf_checked_user(query, rte);
	bool		whole_row;

	if (relation == NULL)
		return NULL;
	map = RF_ATTRMAP(RelationGetDescr(relation),
					 RelationGetDescr(state->css.ss.ss_currentRelation));
	row_type = relation->rd_rel->reltype;
	rte->relid = leaf;
	rte->relkind = relation->rd_rel->relkind;
	rte->inh = false;
	rf_require_nothing(query, rte, user);
	query->targetList = (List *) map_variable_attnos((Node *) query->targetList, 1, 0, map,
													 row_type, &whole_row);
	query->jointree->quals = map_variable_attnos(query->jointree->quals, 1, 0, map,
												 row_type, &whole_row);
	relation_close(relation, NoLock);
	return query;
}

/*
 * The conditions of the scan with the values of a run, implicit AND; *never is set if
 * they are false.
 */
static List *
conditions_with(const RfDeferredState *state, ParamListInfo params, bool *never)
{
	PlannerInfo *root = makeNode(PlannerInfo);
	Node	   *quals;
	List	   *clauses;

	root->glob = makeNode(PlannerGlobal);
	root->glob->boundParams = params;
	root->parse = state->plan.query;
	quals = eval_const_expressions(root, copyObject(state->plan.query->jointree->quals));
	clauses = make_ands_implicit((Expr *) quals);
	*never = list_length(clauses) == 1 && IsA(linitial(clauses), Const);
	return clauses;
}

/*
 * Makes room for plans of partitions, and a place for the values.
 */
static void
begin_keeping(RfDeferredState *state)
{
	MemoryContext query_context = state->css.ss.ps.state->es_query_cxt;
	HASHCTL		control = {.keysize = sizeof(Oid),.entrysize = sizeof(RfKeptLeaf)};

	if (state->keep == NULL)
		state->keep = AllocSetContextCreate(query_context, "rangefilter partitions",
											ALLOCSET_DEFAULT_SIZES);
	control.hcxt = state->keep;
	state->leaves = hash_create("rangefilter partitions", 64, &control,
								HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	state->leaf_params = MemoryContextAlloc(state->keep, offsetof(ParamListInfoData, params) +
											state->nvalues * sizeof(ParamExternData));
}

/*
 * Ends the plans of all partitions.
 */
void
rf_end_leaves(RfDeferredState *state)
{
	HASH_SEQ_STATUS status;
	RfKeptLeaf *leaf;

	if (state->leaves == NULL)
		return;
	hash_seq_init(&status, state->leaves);
	while ((leaf = hash_seq_search(&status)) != NULL)
	{
		if (leaf->desc != NULL)
			rf_end_plan(leaf->desc);
	}
	state->leaves = NULL;
	MemoryContextReset(state->keep);
}

/*
 * Begins a run: finds out which partitions are left.  Allocates in the run's context.
 */
void
rf_begin_leaves(RfDeferredState *state, RfDeferredRun *run)
{
	bool		never;
	List	   *clauses = conditions_with(state, run->params, &never);

	if (state->leaves != NULL && hash_get_num_entries(state->leaves) >= RF_KEPT_LEAVES &&
		MemoryContextMemAllocated(state->keep, true) > get_hash_memory_limit())
		rf_end_leaves(state);
	if (state->leaves == NULL)
		begin_keeping(state);
	memcpy(state->leaf_params, run->params, offsetof(ParamListInfoData, params) +
		   state->nvalues * sizeof(ParamExternData));
	for (int i = 0; i < state->nvalues; i++)
		state->leaf_params->params[i].pflags = 0;
	run->by_leaves = true;
	run->position = -1;
	if (!never)
		run->left = rf_leaves_left(state, clauses);
	run->ended = !rf_check_partitions(state);
}

/*
 * Plans and starts the scan of a partition.  Returns false if it must not be read.
 */
static bool
start_leaf(RfDeferredState *state, RfKeptLeaf *leaf)
{
	MemoryContext old = MemoryContextSwitchTo(state->keep);
	Query	   *query = rf_query_on_leaf(state, leaf->oid);

	if (query == NULL)
		elog(ERROR, "partition %u of table %u is gone", leaf->oid, state->plan.relid);
	leaf->desc = rf_start_plan(state, rf_make_plan(state, query, NULL), state->leaf_params);
	MemoryContextSwitchTo(old);
	return rf_check_partitions(state);
}

/*
 * Goes on to the next partition of a run, whose plan becomes that of the run.  Returns false if
 * there is none.
 */
bool
rf_next_leaf(RfDeferredState *state, RfDeferredRun *run)
{
	RfKeptLeaf *leaf;
	Oid			oid;
	bool		found;

	run->position = bms_next_member(run->left, run->position);
	if (run->position < 0)
		return false;
	oid = rf_member_oid(state, run->position);
	leaf = hash_search(state->leaves, &oid, HASH_ENTER, &found);
	if (!found)
		leaf->desc = NULL;
	if (leaf->desc == NULL)
	{
		if (!start_leaf(state, leaf))
			return false;
	}
	else
	{
		MemoryContext old = MemoryContextSwitchTo(leaf->desc->estate->es_query_cxt);

		ExecReScan(leaf->desc->planstate);
		MemoryContextSwitchTo(old);
	}
	state->leaves_read++;
	run->desc = leaf->desc;
	return true;
}

/*
 * The kept plans of partitions.
 */
List *
rf_kept_plans(const RfDeferredState *state, int most)
{
	List	   *plans = NIL;

	for (int i = 0; state->leaves != NULL && i < state->nmembers; i++)
	{
		Oid			oid = rf_member_oid(state, i);
		const RfKeptLeaf *leaf = hash_search(state->leaves, &oid, HASH_FIND, NULL);

		if (leaf != NULL && leaf->desc != NULL && list_length(plans) < most)
			plans = lappend(plans, leaf->desc);
	}
	return plans;
}
