/*-------------------------------------------------------------------------
 *
 * join_cost.c
 *	  set_join_pathlist_hook: the cost of joins whose values close gates.
 *
 * A hash join that gives its values to the scans on its outer side
 * (join_pushdown.c) does not read all of that side.  Its gates are made when
 * the plan is finished, so the costs of paths do not show it.  The planner
 * would take parallel workers, or another order of joins, to read members
 * faster that are skipped.  So a hash join over the members of a table is made
 * cheaper by what it is expected to skip.
 *
 * A member is expected to be read with the probability that it holds one of
 * the values.  Values are taken to be independent.  For one value the
 * probability is the member's share of distinct values, as for other gates
 * (rf_gate_share()).  If core dropped the join for a cheaper path before, there is
 * nothing to make cheaper; that path is then as good.
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
#include "planner/condition/condition.h"
#include "planner/condition/parameter.h"
#include "planner/gate/gate.h"
#include "planner/join_filter/join_filter.h"
#include "planner/knowledge/knowledge.h"
#include "planner/planning/planning.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/*
 * What a member's scan costs a parallel worker that does not read it, in units of
 * cpu_operator_cost: it gets the plan as text, and opens all members' tables
 * with nothing in its caches.  Core does not count that.  Without workers a gate
 * opens tables that the session knows.
 */
#define RF_WORKER_START_COST 4000

/*
 * A column of the side that is given values, and what the join compares it
 * with.
 */
typedef struct RfJoinKey
{
	Var		   *column;			/* of that side's table */
	Oid			opno;
	double		values;			/* expected on the other side */
} RfJoinKey;

/*
 * Reads one of a hash join's clauses; false if no gate can use it.
 */
static bool
read_clause(PlannerInfo *root, const RestrictInfo *rinfo,
			const RelOptInfo *filtered, const Path *known, RfJoinKey *key)
{
	OpExpr	   *clause = (OpExpr *) rinfo->clause;
	bool		left = bms_is_subset(rinfo->left_relids, filtered->relids);
	Node	   *compared;
	Node	   *value;

	compared = rf_strip_relabel(left ? linitial(clause->args) :
								lsecond(clause->args));
	value = left ? lsecond(clause->args) : linitial(clause->args);
	if (!IsA(compared, Var) || rf_is_secured(root, filtered->relid))
		return false;
	Assert(((Var *) compared)->varno == filtered->relid);
	key->column = (Var *) compared;
	key->opno = clause->opno;
	key->values = estimate_num_groups(root, list_make1(value), known->rows,
									  NULL, NULL);
	return key->values <= RF_JOIN_MAX_VALUES;
}

/*
 * The probability that a member holds one of the values of a join; 1 if it is
 * not asked.
 */
static double
probability(PlannerInfo *root, RelOptInfo *member, const RfJoinKey *key)
{
	ListCell   *cell;

	foreach(cell, rf_gate_indexes(member))
	{
		const RfRelIndex *index = lfirst(cell);
		const RfIndexColumn *first = &index->columns[0];
		Oid			table;

		if (first->expr != NULL || index->predicate != NIL ||
			rf_column_of_root(root, member->relid, first->attno,
							  &table) != key->column->varattno ||
			table != root->simple_rte_array[key->column->varno]->relid ||
			get_op_opfamily_strategy(key->opno, first->opfamily) !=
			BTEqualStrategyNumber)
			continue;
		return 1 - pow(1 - rf_gate_share(root, member, rf_gate_key(index, 0)),
					   key->values);
	}
	return 1;
}

/*
 * The share of the cost of a path's scans of members that remains if they ask for
 * the values of a join.
 */
static double
remaining_cost(PlannerInfo *root, const Path *filtered, List *scans,
			   const RfJoinKey *keys, int nkeys)
{
	Cost		start = filtered->parallel_workers > 0 ?
	RF_WORKER_START_COST * cpu_operator_cost : 0;
	Cost		all = 0;
	Cost		remains = 0;
	ListCell   *cell;

	foreach(cell, scans)
	{
		Path	   *scan = lfirst(cell);
		RelOptInfo *member = scan->parent;
		double		open = 1;
		double		values = 0;

		for (int i = 0; i < nkeys; i++)
		{
			open = Min(open, probability(root, member, &keys[i]));
			values += keys[i].values;
		}
		all += scan->total_cost;
		remains += Min(scan->total_cost, start + open * scan->total_cost +
					   (RF_ASK_ONCE_COST + values * RF_ASK_VALUE_COST) *
					   cpu_operator_cost);
	}
	return all > 0 ? remains / all : 1;
}

/*
 * Is this a table, or a UNION ALL, that may have members?
 */
static bool
is_parent(PlannerInfo *root, const RelOptInfo *rel)
{
	return rel->reloptkind == RELOPT_BASEREL &&
		root->simple_rte_array[rel->relid]->inh;
}

/*
 * The outer side of a hash join if it will be given the values of the inner
 * one; else NULL.  join_pushdown.c and gate_join_values.c decide by the same
 * conditions later.
 */
static Path *
filtered_path(const HashPath *hash)
{
	const JoinPath *join = &hash->jpath;
	Path	   *filtered = join->outerjoinpath;

	if (RF_IS_DISABLED(&join->path) || join->path.parallel_aware ||
		!RF_DROPS_OUTER(join->jointype) || hash->num_batches != 1)
		return NULL;
	return join->innerjoinpath->rows <= RF_JOIN_MAX_ROWS ? filtered : NULL;
}

/*
 * What a hash join is expected to save by gates on its outer side.
 */
static Cost
saved_cost(PlannerInfo *root, const HashPath *hash, const Path *filtered)
{
	List	   *clauses = hash->path_hashclauses;
	RfJoinKey  *keys = palloc(list_length(clauses) * sizeof(RfJoinKey));
	int			nkeys = 0;
	Cost		cost;
	List	   *scans;
	ListCell   *cell;

	if (IsA(filtered, AppendPath))
		scans = ((const AppendPath *) filtered)->subpaths;
	else if (IsA(filtered, MergeAppendPath))
		scans = ((const MergeAppendPath *) filtered)->subpaths;
	else
		return 0;
	foreach(cell, clauses)
		nkeys += read_clause(root, lfirst_node(RestrictInfo, cell),
							 filtered->parent, hash->jpath.innerjoinpath,
							 &keys[nkeys]);
	if (nkeys == 0)
		return 0;

	/* Rows that are not read are not looked up in the hash table. */
	cost = filtered->total_cost - filtered->startup_cost +
		cpu_operator_cost * list_length(clauses) * filtered->rows;
	return (1 - remaining_cost(root, filtered, scans, keys, nkeys)) *
		cost;
}

/*
 * A copy of a hash join whose total cost is less by what is saved.
 */
static Path *
cheaper_copy(const HashPath *join, Cost saved)
{
	HashPath   *copy = makeNode(HashPath);
	Path	   *path = &copy->jpath.path;

	memcpy(copy, join, sizeof(HashPath));
	path->total_cost = Max(path->total_cost - saved, path->startup_cost);
	return path;
}

/*
 * Cheaper copies of those hash joins among some paths of a join that have this
 * outer relation.  The inner one is then the other one.
 */
static List *
cheaper_paths(PlannerInfo *root, List *paths, const RelOptInfo *outer,
			  JoinType jointype)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, paths)
	{
		HashPath   *join = lfirst(cell);
		Path	   *filtered;
		Cost		saved;

		if (!IsA(join, HashPath) ||
			join->jpath.jointype != jointype ||
			join->jpath.outerjoinpath->parent != outer ||
			(filtered = filtered_path(join)) == NULL ||
			(saved = saved_cost(root, join, filtered)) <= 0)
			continue;
		result = lappend(result, cheaper_copy(join, saved));
	}
	return result;
}

/*
 * Makes joins cheaper that hand down their values: set_join_pathlist_hook.  It
 * is called once for each ordered pair of relations and type of join, so no
 * path is made cheaper twice.
 */
void
rf_cheapen_joins(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outer,
				 JoinType jointype)
{
	List	   *paths;
	List	   *partial_paths;
	ListCell   *cell;

	if (!rf_may_have_gates(root) || !is_parent(root, outer))
		return;

	/* Joins with one side made unique are inner joins. */
	if (jointype == JOIN_UNIQUE_INNER || jointype == JOIN_UNIQUE_OUTER)
		jointype = JOIN_INNER;
	paths = cheaper_paths(root, joinrel->pathlist, outer, jointype);
	partial_paths = cheaper_paths(root, joinrel->partial_pathlist, outer,
								  jointype);

	/* The cheaper copies displace the paths that they were made from. */
	foreach(cell, paths)
		add_path(joinrel, lfirst(cell));
	foreach(cell, partial_paths)
		add_partial_path(joinrel, lfirst(cell));
}
