/*-------------------------------------------------------------------------
 *
 * gate_loop.c
 *	  The costs of nested loops over gates.
 *
 * Each round of a nested loop over gates asks the index of each member, and
 * scans those that may match.  That is the cheapest join for few rounds, and a
 * bad one for many.  If the outer side is itself a join, core often expects
 * one row and gets thousands.  So a scan that asks gates for values of other
 * relations costs RF_LOOP_MARGIN times as much in its relation's list of
 * paths, from which core makes joins.  It never costs more than the same scan
 * without gates, if core has one.
 *
 * If the estimate of the outer side's rows can be trusted, or only a loop can
 * join and more rounds cost more in any plan, core is called once more for the
 * two relations (set_join_pathlist_hook).  For this call it is given scans without the
 * margin.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "compat.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "planner/gate/gate.h"
#include "planner/planning/planning.h"
#include "rangefilter/rangefilter.h"
#include "utils/float.h"

/*
 * The factor for the cost of scans that ask gates for values of other
 * relations.
 */
#define RF_LOOP_MARGIN	1000

/*
 * Is this a bitmap scan, or a part of one, that uses one of our indexes?
 */
bool
rf_is_our_bitmap(const Path *path)
{
	ListCell   *cell;
	List	   *parts = NIL;

	if (IsA(path, BitmapHeapPath))
		return rf_is_our_bitmap(((const BitmapHeapPath *) path)->bitmapqual);
	if (IsA(path, IndexPath))
		return ((const IndexPath *) path)->indexinfo->amcostestimate ==
			rf_costestimate;
	if (IsA(path, BitmapAndPath))
		parts = ((const BitmapAndPath *) path)->bitmapquals;
	else if (IsA(path, BitmapOrPath))
		parts = ((const BitmapOrPath *) path)->bitmapquals;
	foreach(cell, parts)
	{
		if (rf_is_our_bitmap(lfirst(cell)))
			return true;
	}
	return false;
}

/*
 * Does this path ask gates for values of other relations?  The path is a
 * member's or a table's Append.
 */
static bool
asks(const Path *path)
{
	ListCell   *cell;

	if (path->param_info == NULL)
		return false;
	if (!IsA(path, AppendPath))
		return rf_is_gate_path(path);
	foreach(cell, ((const AppendPath *) path)->subpaths)
	{
		if (rf_is_gate_path(lfirst(cell)))
			return true;
	}
	return false;
}

/*
 * What such a path costs without gates.  Infinite if core has no path with
 * these parameters without gates: it makes them only for indexes, and where a
 * relation cannot be scanned without parameters.
 */
static Cost
cost_without_gates(Path *asking)
{
	List	   *paths = IsA(asking, AppendPath) ?
	((AppendPath *) asking)->subpaths : list_make1(asking);
	bool		made_by_core = bms_equal(PATH_REQ_OUTER(asking),
										 asking->parent->lateral_relids);
	Cost		cost = 0;
	ListCell   *cell;

	foreach(cell, paths)
	{
		const Path *path = lfirst(cell);

		if (rf_is_gate_path(path))
			path = linitial(((const CustomPath *) path)->custom_paths);
		if (rf_is_our_bitmap(path))
			return get_float8_infinity();
		if (path->pathtype != T_SeqScan)
			made_by_core = true;
		cost += path->total_cost;
	}
	return made_by_core ? cost : get_float8_infinity();
}

/*
 * A copy of a path with its margin; NULL where it has none.  The copy of a
 * member's gate has the original in custom_private.
 */
static Path *
with_margin(Path *path)
{
	double		factor;
	Path	   *dear;

	if (!asks(path))
		return NULL;
	factor = Min(RF_LOOP_MARGIN, cost_without_gates(path) / path->total_cost);
	if (factor <= 1)
		return NULL;
	if (IsA(path, AppendPath))
		dear = memcpy(palloc(sizeof(AppendPath)), path, sizeof(AppendPath));
	else
	{
		dear = memcpy(palloc(sizeof(CustomPath)), path, sizeof(CustomPath));
		((CustomPath *) dear)->custom_private = list_make1(path);
	}
	dear->startup_cost *= factor;
	dear->total_cost *= factor;
	return dear;
}

/*
 * The path that with_margin() was given, or one that costs the same; NULL
 * where the path has no margin.
 */
static Path *
without_margin(PlannerInfo *root, const Path *dear)
{
	const AppendPath *append;
	Path	   *path;

	if (!asks(dear))
		return NULL;
	if (!IsA(dear, AppendPath))
	{
		List	   *private = ((const CustomPath *) dear)->custom_private;

		return private == NIL ? NULL : linitial(private);
	}
	append = (const AppendPath *) dear;
	path = (Path *) RF_CREATE_APPEND(root, dear->parent, append->subpaths,
									 dear->pathkeys, PATH_REQ_OUTER(dear));
	return path->total_cost < dear->total_cost ? path : NULL;
}

/*
 * Replaces the paths of a relation that have a margin by their copies.
 */
static void
add_margin(RelOptInfo *rel)
{
	List	   *dear = NIL;
	ListCell   *cell;

	foreach(cell, rel->pathlist)
	{
		Path	   *path = with_margin(lfirst(cell));

		if (path == NULL)
			continue;
		dear = lappend(dear, path);
		rel->pathlist = foreach_delete_current(rel->pathlist, cell);
	}

	/* The list is sorted by cost. */
	rel->pathlist = list_concat(rel->pathlist, dear);
}

/*
 * Adds the margin to a table's paths that ask gates for values of other
 * relations: set_rel_pathlist_hook.  It runs when the table has all its paths,
 * since core makes an Append of the cheapest path of each member.  Members'
 * own paths get the margin only if partitionwise joins are considered, since
 * only then members are joined themselves.
 */
void
rf_add_loop_margin(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	ListCell   *cell;

	if (!rf_may_have_gates(root) || !rte->inh ||
		rel->reloptkind != RELOPT_BASEREL)
		return;
	add_margin(rel);
	if (!rel->consider_partitionwise_join)
		return;
	foreach(cell, root->append_rel_list)
	{
		Index		rti = lfirst_node(AppendRelInfo, cell)->child_relid;
		RelOptInfo *member = root->simple_rel_array[rti];

		if (member != NULL && member->pathlist != NIL &&
			rf_outermost_relation(root, rti) == rel->relid)
		{
			add_margin(member);
			set_cheapest(member);
		}
	}
}

/*
 * The paths of the inner relation that have a margin, and no parameters but
 * from the outer one.  They are returned without the margin, if they then cost
 * at most so much.
 */
static List *
paths_without_margin(PlannerInfo *root, const RelOptInfo *outer,
					 const RelOptInfo *inner, Cost most)
{
	Relids		relids = outer->top_parent_relids ?
	outer->top_parent_relids : outer->relids;
	List	   *paths = NIL;
	ListCell   *cell;

	foreach(cell, inner->cheapest_parameterized_paths)
	{
		Path	   *path = lfirst(cell);

		if (bms_is_subset(PATH_REQ_OUTER(path), relids) &&
			(path = without_margin(root, path)) != NULL &&
			path->total_cost <= most)
			paths = lappend(paths, path);
	}
	return paths;
}

/*
 * May a relation's rows be estimated from more than one table?
 */
static bool
is_uncertain(PlannerInfo *root, const RelOptInfo *rel)
{
	RangeTblEntry *rte;

	if (!IS_SIMPLE_REL(rel))
		return true;
	rte = root->simple_rte_array[rel->relid];
	return (rte->rtekind == RTE_SUBQUERY && !rte->inh) ||
		rte->rtekind == RTE_CTE;
}

/*
 * Can two relations be joined otherwise than by a loop?
 */
static bool
has_alternative(const RelOptInfo *outer, const RelOptInfo *inner,
				const List *restrictions)
{
	ListCell   *cell;

	foreach(cell, restrictions)
	{
		const RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);
		bool		sides = (bms_is_subset(rinfo->left_relids, outer->relids) &&
							 bms_is_subset(rinfo->right_relids, inner->relids)) ||
		(bms_is_subset(rinfo->left_relids, inner->relids) &&
		 bms_is_subset(rinfo->right_relids, outer->relids));

		if (rinfo->can_join && sides &&
			((enable_hashjoin && OidIsValid(rinfo->hashjoinoperator)) ||
			 (enable_mergejoin && rinfo->mergeopfamilies != NIL)))
			return true;
	}
	return false;
}

/*
 * What a round of a loop over gates may cost at most where only loops can join
 * and the outer side's rows are uncertain: as much as a round over the inner
 * side's rows in memory (Material).  Then more rounds cost more in any plan.
 * Without limit where core keeps no rows, as for a single outer row.
 */
static Cost
most_per_round(const RelOptInfo *outer, const RelOptInfo *inner,
			   const List *restrictions)
{
	if (!enable_material || outer->rows <= 1 ||
		inner->cheapest_total_path->param_info != NULL)
		return get_float8_infinity();
	return inner->rows *
		(cpu_tuple_cost +
		 cpu_operator_cost * (1 + list_length(restrictions)));
}

/*
 * A relation's paths without parameters.
 */
static List *
paths_without_parameters(const RelOptInfo *rel)
{
	List	   *paths = NIL;
	ListCell   *cell;

	foreach(cell, rel->pathlist)
	{
		const Path *path = lfirst(cell);

		if (path->param_info == NULL)
			paths = lappend(paths, lfirst(cell));
	}
	return paths;
}

/*
 * Is there a scan below a path that could not use these parameters without
 * gates?
 */
static bool
asks_below(Path *path, Relids params)
{
	if (!bms_overlap(PATH_REQ_OUTER(path), params))
		return false;
	switch (nodeTag(path))
	{
		case T_NestPath:
		case T_MergePath:
		case T_HashPath:
			return asks_below(((JoinPath *) path)->outerjoinpath, params) ||
				asks_below(((JoinPath *) path)->innerjoinpath, params);
		case T_MaterialPath:
			return asks_below(((MaterialPath *) path)->subpath, params);
		case T_MemoizePath:
			return asks_below(((MemoizePath *) path)->subpath, params);
		case T_ProjectionPath:
			return asks_below(((ProjectionPath *) path)->subpath, params);
		default:
			return asks(path) && isinf(cost_without_gates(path));
	}
}

/*
 * Drops joins from a relation's list that have parameters from further up only
 * because gates can ask for them.  A round of such a join repeats the whole
 * join, and may scan the other relation.  Only the scan that asks gates has
 * the margin.
 */
static void
drop_asking_joins(RelOptInfo *joinrel)
{
	ListCell   *cell;

	foreach(cell, joinrel->pathlist)
	{
		Path	   *path = lfirst(cell);

		if (!bms_is_subset(PATH_REQ_OUTER(path), joinrel->lateral_relids) &&
			asks_below(path, PATH_REQ_OUTER(path)))
			joinrel->pathlist = foreach_delete_current(joinrel->pathlist, cell);
	}
}

/*
 * Joins two relations by loops without a margin, where none is needed:
 * set_join_pathlist_hook.  Core joins them once more.  For this call the paths
 * without the margin are the only ones of the inner relation with parameters.
 * Paths of the outer relation that have parameters are left out: how often
 * they are scanned is not known here.
 *
 * The call runs the hook again, which does nothing then.  An error ends
 * planning, so the relations changed here need not be restored.
 */
void
rf_add_loops(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outer,
			 RelOptInfo *inner, JoinType jointype, JoinPathExtraData *extra)
{
	List	   *outer_paths = outer->pathlist;
	List	   *inner_paths = inner->cheapest_parameterized_paths;
	bool		uncertain = is_uncertain(root, outer);
	List	   *paths;

	if (!rf_may_have_gates(root))
		return;
	drop_asking_joins(joinrel);
	if ((jointype != JOIN_INNER && jointype != JOIN_LEFT &&
		 jointype != JOIN_SEMI && jointype != JOIN_ANTI &&
		 jointype != JOIN_UNIQUE_OUTER) ||
		(uncertain && has_alternative(outer, inner, extra->restrictlist)))
		return;
	paths = paths_without_margin(root, outer, inner, uncertain ?
								 most_per_round(outer, inner, extra->restrictlist) :
								 get_float8_infinity());
	if (paths == NIL)
		return;

	rf_planning->joining_again = true;
	inner->cheapest_parameterized_paths = paths;
	outer->pathlist = paths_without_parameters(outer);
	add_paths_to_joinrel(root, joinrel, outer, inner, jointype, extra->sjinfo,
						 extra->restrictlist);
	outer->pathlist = outer_paths;
	inner->cheapest_parameterized_paths = inner_paths;
	rf_planning->joining_again = false;
}
