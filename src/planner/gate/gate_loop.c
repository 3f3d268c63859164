/*-------------------------------------------------------------------------
 *
 * gate_loop.c
 *	  What nested loops over gates cost.
 *
 * Each round of a nested loop over gates asks the index of each member, and scans
 * those that may match.  That is the cheapest join for few rounds, and a bad one
 * for many.  Where the outer side is itself a join, core often expects one row
 * and gets thousands.  So a scan that asks gates for values of other relations
 * costs RF_LOOP_MARGIN times as much in the list of its relation, which is what
 * core joins with.  It never costs more than the same scan without gates, where
 * core has one.
 *
 * Where the outer side's rows can be trusted, or only a loop can join, core is
 * called once more for the two relations, and is given scans that cost what they
 * are expected to cost (set_join_pathlist_hook).  They are made for that call.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "planner/gate/gate.h"
#include "planner/planning/planning.h"
#include "rangefilter/rangefilter.h"
#include "utils/float.h"

/* So many times the rounds of a loop are counted. */
#define RF_LOOP_MARGIN	1000

/*
 * Is this a gate's path?
 */
bool
rf_is_gate_path(const Path *path)
{
	return IsA(path, CustomPath) &&
		((const CustomPath *) path)->methods == &rf_gate_path_methods;
}

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
 * Does this path ask gates for values of other relations while it is read?  It is
 * that of one member, or the Append of all.
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
 * What such a path costs without gates.  Infinite if core has no path with these
 * parameters then: it makes them for indexes, and where a relation cannot be
 * scanned without parameters.
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
 * A copy of a path with its margin; NULL where it has none.  A gate of a single
 * member brings along the path it was made from, which is in no list any more.
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
 * The path with_margin() was given, or one like it; NULL where it has no margin.
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
	path = (Path *) create_append_path(root, dear->parent, append->subpaths,
									   NIL, dear->pathkeys,
									   PATH_REQ_OUTER(dear), 0, false, -1);
	return path->total_cost < dear->total_cost ? path : NULL;
}

/*
 * Gives the paths of a relation their margin.
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

	/* The list is in the order of costs. */
	rel->pathlist = list_concat(rel->pathlist, dear);
}

/*
 * Gives the scans of a table's members that ask for values of other relations
 * their margin: set_rel_pathlist_hook.  Not before the table has all its paths,
 * since an Append is made of the cheapest path of each member.  Members are joined
 * themselves only if partitionwise joins are considered.
 */
void
rf_add_loop_margin(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	ListCell   *cell;

	if (rf_planning == NULL || !rf_planning->may_gate ||
		rf_planning->gate_rels == NULL || !rte->inh ||
		rel->reloptkind != RELOPT_BASEREL || !rf_is_ours(root))
		return;
	add_margin(rel);
	if (!rel->consider_partitionwise_join)
		return;
	foreach(cell, root->append_rel_list)
	{
		Index		rti = lfirst_node(AppendRelInfo, cell)->child_relid;
		RelOptInfo *member = root->simple_rel_array[rti];

		if (member != NULL && !IS_DUMMY_REL(member) &&
			member->pathlist != NIL &&
			rf_outermost_relation(root, rti) == rel->relid)
		{
			add_margin(member);
			set_cheapest(member);
		}
	}
}

/*
 * The paths of a relation that have a margin and all parameters from another
 * relation, without the margin.
 */
static List *
paths_without_margin(PlannerInfo *root, const RelOptInfo *outer,
					 const RelOptInfo *inner)
{
	Relids		relids = outer->top_parent_relids ?
	outer->top_parent_relids : outer->relids;
	List	   *paths = NIL;
	ListCell   *cell;

	foreach(cell, inner->cheapest_parameterized_paths)
	{
		Path	   *path = lfirst(cell);

		if (bms_is_subset(PATH_REQ_OUTER(path), relids) &&
			(path = without_margin(root, path)) != NULL)
			paths = lappend(paths, path);
	}
	return paths;
}

/*
 * Are the rows of a relation estimated from more than one table?
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
 * Can two relations be joined otherwise than by a loop?  Where they cannot, more
 * rounds cost more whatever plan is taken.
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
 * Is there a scan below a path that could not ask for these parameters without
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
 * Takes joins out of a relation's list that have parameters from further up only
 * since gates can ask for them.  A round of such a join repeats all that is in it,
 * not just the questions, which have the margin: it may scan what it joins with.
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
 * Joins two relations by loops without a margin, where they need none:
 * set_join_pathlist_hook.  Core joins them once more, by no other paths of the
 * inner one with parameters.  Paths of the outer one that have parameters are left
 * out: how often they are scanned is not known here.
 *
 * The hook is called by that, too, and does nothing then.  An error ends
 * planning, and with it the use of what is changed here.
 */
void
rf_add_loops(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outer,
			 RelOptInfo *inner, JoinType jointype, JoinPathExtraData *extra)
{
	List	   *outer_paths = outer->pathlist;
	List	   *inner_paths = inner->cheapest_parameterized_paths;
	List	   *paths;

	if (rf_planning == NULL || !rf_planning->may_gate ||
		rf_planning->gate_rels == NULL || !rf_is_ours(root))
		return;
	drop_asking_joins(joinrel);
	if ((jointype != JOIN_INNER && jointype != JOIN_LEFT &&
		 jointype != JOIN_SEMI && jointype != JOIN_ANTI &&
		 jointype != JOIN_UNIQUE_OUTER) ||
		(is_uncertain(root, outer) &&
		 has_alternative(outer, inner, extra->restrictlist)))
		return;
	paths = paths_without_margin(root, outer, inner);
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
