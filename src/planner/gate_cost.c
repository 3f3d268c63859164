/*-------------------------------------------------------------------------
 *
 * gate_cost.c
 *	  set_join_pathlist_hook: what hash joins cost whose values close gates.
 *
 * A hash join that gives its values to the scans on its outer side (gate_join.c)
 * does not read all of that side.  Gates for it are made when the plan is
 * finished, so no path's cost tells; the planner would take parallel workers, or
 * another order of joins, to read faster what is not read at all.  So a hash
 * join over the members of a table is made cheaper by what it is expected to
 * leave out of them.
 *
 * A member is expected to be read with the probability that it holds one of the
 * values, taken to be independent; for one value that is the member's share of
 * distinct values, as for other gates (gate_path.c).  Where core finds
 * another path cheaper than the hash join as it was, there is nothing left to be made
 * cheaper: that path is a good one, too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/stratnum.h"
#include "compat.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "planner/gate.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/* What a hash join compares with a column of its outer side. */
typedef struct RfJoinKey
{
	Var		   *column;			/* of the outer side's table */
	Oid			opno;
	double		values;			/* expected in the hash table */
} RfJoinKey;

static set_join_pathlist_hook_type previous_hook = NULL;

static Node *
strip_relabel(Node *node)
{
	while (IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return node;
}

/*
 * Reads one of a hash join's clauses; false if no gate can use it.
 */
static bool
read_clause(PlannerInfo *root, const RestrictInfo *rinfo,
			const RelOptInfo *outer, const Path *inner, RfJoinKey *key)
{
	OpExpr	   *clause = (OpExpr *) rinfo->clause;
	bool		left = bms_is_subset(rinfo->left_relids, outer->relids);
	Node	   *compared;
	Node	   *hashed;

	if (!IsA(clause, OpExpr) || list_length(clause->args) != 2)
		return false;
	compared = strip_relabel(left ? linitial(clause->args) :
							 lsecond(clause->args));
	hashed = left ? lsecond(clause->args) : linitial(clause->args);
	if (!IsA(compared, Var) || ((Var *) compared)->varno != outer->relid ||
		((Var *) compared)->varattno <= 0 ||
		(rf_is_secured(root, outer->relid) &&
		 !get_func_leakproof(get_opcode(clause->opno))))
		return false;
	key->column = (Var *) compared;
	key->opno = clause->opno;
	key->values = estimate_num_groups(root, list_make1(hashed), inner->rows,
									  NULL, NULL);
	return key->values <= RF_FEED_MAX_VALUES;
}

/*
 * The probability that a member holds one of the values it is asked for; 1 if it
 * is not asked.
 */
static double
probability(PlannerInfo *root, RelOptInfo *member, const RfJoinKey *key)
{
	ListCell   *cell;

	foreach(cell, rf_gate_indexes(member))
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, cell);
		Oid			table;

		if (index->indexkeys[0] <= 0 || index->indpred != NIL ||
			rf_column_of_root(root, member->relid, index->indexkeys[0],
							  &table) != key->column->varattno ||
			table != root->simple_rte_array[key->column->varno]->relid ||
			get_op_opfamily_strategy(key->opno, index->opfamily[0]) !=
			BTEqualStrategyNumber)
			continue;
		return 1 - pow(1 - rf_gate_share(root, member, rf_gate_key(index, 0)),
					   key->values);
	}
	return 1;
}

/*
 * The share of the cost of members' scans that remains if they are asked for the
 * values of a join.
 */
static double
remaining_cost(PlannerInfo *root, Index table, List *scans,
			   const RfJoinKey *keys, int nkeys)
{
	Cost		all = 0;
	Cost		remains = 0;
	ListCell   *cell;

	foreach(cell, scans)
	{
		Path	   *scan = lfirst(cell);
		RelOptInfo *member = scan->parent;
		double		open = 1;
		double		values = 0;

		if (member->reloptkind == RELOPT_OTHER_MEMBER_REL &&
			rf_outermost_relation(root, member->relid) == table)
		{
			for (int i = 0; i < nkeys; i++)
			{
				open = Min(open, probability(root, member, &keys[i]));
				values += keys[i].values;
			}
		}
		all += scan->total_cost;
		remains += Min(scan->total_cost, open * scan->total_cost +
					   (RF_ASK_ONCE_COST + values * RF_ASK_VALUE_COST) *
					   cpu_operator_cost);
	}
	return all > 0 ? remains / all : 1;
}

/*
 * What a hash join is expected to save by gates on its outer side.
 */
static Cost
saved_cost(PlannerInfo *root, const HashPath *join)
{
	Path	   *outer = join->jpath.outerjoinpath;
	Path	   *inner = join->jpath.innerjoinpath;
	int			nclauses = list_length(join->path_hashclauses);
	RfJoinKey  *keys;
	int			nkeys = 0;
	List	   *scans;
	ListCell   *cell;

	if (IsA(outer, AppendPath))
		scans = ((AppendPath *) outer)->subpaths;
	else if (IsA(outer, MergeAppendPath))
		scans = ((MergeAppendPath *) outer)->subpaths;
	else
		return 0;
	keys = palloc(nclauses * sizeof(RfJoinKey));
	foreach(cell, join->path_hashclauses)
		nkeys += read_clause(root, lfirst_node(RestrictInfo, cell),
							 outer->parent, inner, &keys[nkeys]);
	if (nkeys == 0)
		return 0;

	/* Rows that are not read are not looked up in the hash table either. */
	return (1 - remaining_cost(root, outer->parent->relid, scans, keys, nkeys)) *
		(outer->total_cost - outer->startup_cost +
		 cpu_operator_cost * nclauses * outer->rows);
}

/*
 * Is this a hash join that may give its values to its outer side, as
 * gate_join.c and gate_feed.c see it?
 */
static bool
may_feed(const Path *path)
{
	const HashPath *join = (const HashPath *) path;

	return IsA(path, HashPath) && !path->parallel_aware &&
		RF_DROPS_OUTER(join->jpath.jointype) && join->num_batches == 1 &&
		join->jpath.innerjoinpath->rows <= RF_FEED_MAX_ROWS &&
		!RF_IS_DISABLED(path);
}

/*
 * Cheaper copies of the hash joins among some paths, as far as they are of
 * these two relations.
 */
static List *
cheaper_paths(PlannerInfo *root, List *paths, const RelOptInfo *outer,
			  const RelOptInfo *inner, JoinType jointype)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, paths)
	{
		HashPath   *join = lfirst(cell);
		HashPath   *cheaper;
		Cost		saved;

		if (!may_feed((Path *) join) || join->jpath.jointype != jointype ||
			join->jpath.outerjoinpath->parent != outer ||
			join->jpath.innerjoinpath->parent != inner ||
			(saved = saved_cost(root, join)) <= 0)
			continue;
		cheaper = makeNode(HashPath);
		*cheaper = *join;
		cheaper->jpath.path.total_cost =
			Max(join->jpath.path.total_cost - saved,
				join->jpath.path.startup_cost);
		result = lappend(result, cheaper);
	}
	return result;
}

/*
 * set_join_pathlist_hook.  Called once for two relations and a type of join, in
 * this order, so no path is made cheaper twice.
 */
static void
set_join_pathlist(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outer,
				  RelOptInfo *inner, JoinType jointype, JoinPathExtraData *extra)
{
	List	   *paths;
	List	   *partial_paths;
	ListCell   *cell;

	if (previous_hook)
		previous_hook(root, joinrel, outer, inner, jointype, extra);
	if (rf_planning == NULL || !rf_planning->may_gate ||
		rf_planning->gate_rels == NULL || !rf_is_ours(root) ||
		outer->reloptkind != RELOPT_BASEREL ||
		!root->simple_rte_array[outer->relid]->inh)
		return;

	/* Joins with one side made unique are inner joins. */
	if (jointype == JOIN_UNIQUE_INNER || jointype == JOIN_UNIQUE_OUTER)
		jointype = JOIN_INNER;
	paths = cheaper_paths(root, joinrel->pathlist, outer, inner, jointype);
	partial_paths = cheaper_paths(root, joinrel->partial_pathlist, outer,
								  inner, jointype);

	/* This drops the paths they were made from. */
	foreach(cell, paths)
		add_path(joinrel, lfirst(cell));
	foreach(cell, partial_paths)
		add_partial_path(joinrel, lfirst(cell));
}

/*
 * Called once, when the library is loaded.
 */
void
rf_init_gate_cost(void)
{
	previous_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = set_join_pathlist;
}
