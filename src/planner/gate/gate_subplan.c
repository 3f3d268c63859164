/*-------------------------------------------------------------------------
 *
 * gate_subplan.c
 *	  EXISTS that is executed for each row, or once to fill a hash table.
 *
 * Core plans EXISTS (... WHERE x = outer.x) in both ways, and decides when the
 * plan is finished (AlternativeSubPlan).  Then it does not know how often the
 * plan node with that condition is scanned, and counts one scan.  On the inner
 * side of a nested loop there are as many scans as outer rows.  Without gates
 * and other indexes that does not matter: reading a table for a single row
 * costs about as much as reading it into a hash table.  Gates make one row
 * much cheaper, and the subplan would be executed for each of thousands.  So
 * for this decision the subplan costs what it costs without gates.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/pathnode.h"
#include "optimizer/planner.h"
#include "optimizer/subselect.h"
#include "planner/gate/gate.h"
#include "planner/planning/planning.h"

/*
 * The cost of a member's cheapest scan without gates and without bitmaps of
 * our indexes; -1 if there is none.
 */
static Cost
plain_cost(const RelOptInfo *rel)
{
	Cost		cheapest = -1;
	ListCell   *cell;

	foreach(cell, rel->pathlist)
	{
		const Path *path = lfirst(cell);

		if (path->param_info != NULL)
			continue;
		if (rf_is_gate_path(path))
			path = linitial(((const CustomPath *) path)->custom_paths);
		if (!rf_is_our_bitmap(path) &&
			(cheapest < 0 || path->total_cost < cheapest))
			cheapest = path->total_cost;
	}
	return cheapest;
}

/*
 * What all gates in a path save.
 */
static Cost
saved_by_gates(const Path *path)
{
	Cost		saved = 0;
	ListCell   *cell;

	switch (nodeTag(path))
	{
		case T_CustomPath:
			if (rf_is_gate_path(path))
				saved = Max(0, plain_cost(path->parent) - path->total_cost);
			break;
		case T_AppendPath:
			foreach(cell, ((const AppendPath *) path)->subpaths)
				saved += saved_by_gates(lfirst(cell));
			break;
		case T_NestPath:
		case T_HashPath:
		case T_MergePath:
			saved = saved_by_gates(((const JoinPath *) path)->outerjoinpath) +
				saved_by_gates(((const JoinPath *) path)->innerjoinpath);
			break;
		case T_MaterialPath:
			saved = saved_by_gates(((const MaterialPath *) path)->subpath);
			break;
		case T_ProjectionPath:
			saved = saved_by_gates(((const ProjectionPath *) path)->subpath);
			break;
		case T_LimitPath:
			saved = saved_by_gates(((const LimitPath *) path)->subpath);
			break;
		default:
			break;
	}
	return saved;
}

/*
 * Scales the cost of alternatives that are executed for each row to what they
 * cost without gates.
 */
static bool
adjust_alternatives(Node *node, void *context)
{
	PlannerInfo *root = context;
	ListCell   *cell;

	if (node == NULL)
		return false;
	if (!IsA(node, AlternativeSubPlan))
		return expression_tree_walker(node, adjust_alternatives, context);
	foreach(cell, ((AlternativeSubPlan *) node)->subplans)
	{
		SubPlan    *subplan = lfirst_node(SubPlan, cell);
		PlannerInfo *subroot = list_nth(root->glob->subroots,
										subplan->plan_id - 1);
		RelOptInfo *rel = fetch_upper_rel(subroot, UPPERREL_FINAL, NULL);
		Path	   *path;

		if (subplan->useHashTable)
			continue;
		path = get_cheapest_fractional_path(rel, 1.0);
		if (path->total_cost > 0)
			subplan->per_call_cost *=
				1 + saved_by_gates(path) / path->total_cost;
	}
	return false;
}

/*
 * Does so for all alternatives in a query.  Called for each relation that is
 * looked up; acts at the first, since the query's subplans are planned by
 * then.
 */
void
rf_adjust_subplans(PlannerInfo *root, const RelOptInfo *rel)
{
	Query	   *parse = root->parse;

	if (rel->reloptkind != RELOPT_BASEREL || rf_planning->adjusted == root ||
		!rf_may_have_gates(root))
		return;
	rf_planning->adjusted = root;
	(void) adjust_alternatives((Node *) parse->jointree, root);
	(void) adjust_alternatives((Node *) parse->targetList, root);
	(void) adjust_alternatives(parse->havingQual, root);
}
