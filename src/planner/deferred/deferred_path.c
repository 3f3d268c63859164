/*-------------------------------------------------------------------------
 *
 * deferred_path.c
 *	  Paths of a deferred table.
 *
 * The planner has made paths of the table as usual: Appends over the template,
 * which is as large as all partitions.  Each is replaced
 *	- by a deferred scan, where values choose among the partitions under its
 *	  parameterization;
 *	- by a placeholder that costs as much as the scan of all partitions, where
 *	  they do not.  If the finished plan has a placeholder, the query is planned again
 *	  without deferring the table.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "compat.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "planner/condition/condition.h"
#include "planner/condition/parameter.h"
#include "planner/deferred/deferred.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/*
 * Costs of planning a query when the plan runs, and of planning and starting the scan
 * of each partition that is left.
 */
#define RF_DEFERRED_PLAN_COST	15.0
#define RF_DEFERRED_LEAF_COST	5.0

/* The most sets of outer relations that get a path without another index. */
#define RF_MAX_OUTER_SETS	4

const CustomPathMethods rf_deferred_path_methods = {
	.CustomName = "Range Filter Scan",
	.PlanCustomPath = rf_plan_deferred
};

const CustomPathMethods rf_placeholder_path_methods = {
	.CustomName = "Range Filter Placeholder",
	.PlanCustomPath = rf_plan_deferred
};

/*
 * The number of distinct values of a column, or 0 if there are no statistics of it.
 */
static double
distinct_values(Oid relid, AttrNumber attno, bool inherited, double tuples)
{
	HeapTuple	row = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(relid),
									  Int16GetDatum(attno), BoolGetDatum(inherited));
	double		distinct = 0;

	if (HeapTupleIsValid(row))
	{
		distinct = ((Form_pg_statistic) GETSTRUCT(row))->stadistinct;
		ReleaseSysCache(row);
	}
	return distinct < 0 ? -distinct * tuples : distinct;
}

/*
 * The share of partitions that are expected to hold one value of a column of the
 * table.  Without statistics each value is taken to be in one partition: that is what
 * the index was made for.
 */
static double
share_of_value(const RfDeferred *deferred, AttrNumber attno)
{
	PlannerInfo *root = deferred->root;
	AppendRelInfo *appinfo = root->append_rel_array[deferred->template->relid];
	Var		   *var;
	double		in_one = 0;
	double		in_all;

	if (attno > 0 && attno <= list_length(appinfo->translated_vars) &&
		root->simple_rte_array[appinfo->parent_relid]->relid == deferred->relid)
	{
		var = list_nth(appinfo->translated_vars, attno - 1);
		if (var != NULL && IsA(var, Var))
			in_one = distinct_values(root->simple_rte_array[deferred->template->relid]->relid,
									 var->varattno, false, deferred->template_tuples);
	}
	in_all = distinct_values(deferred->relid, attno, true, deferred->tuples);
	if (in_one <= 0 || in_all <= 0)
		return 1.0 / deferred->nleaves;
	return Min(1.0, Max(in_one / in_all, 1.0 / deferred->nleaves));
}

/*
 * The share of partitions expected to be left by the clauses: that of the most choosing
 * equality; half of them if there is no equality.  Partitions without an index are always left.
 */
static double
share_left(const RfDeferred *deferred, List *clauses)
{
	double		share = 1.0;
	bool		found = false;
	ListCell   *cell;

	foreach(cell, clauses)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);
		Node	   *clause = (Node *) rinfo->clause;
		List	   *args = NIL;
		double		n = 1;
		ListCell   *arg;

		if (!rf_is_choosing(deferred, list_make1(rinfo)))
			continue;
		if (IsA(clause, OpExpr) && rinfo->mergeopfamilies != NIL)
			args = ((OpExpr *) clause)->args;
		else if (IsA(clause, ScalarArrayOpExpr))
		{
			args = ((ScalarArrayOpExpr *) clause)->args;
			n = RF_ESTIMATE_ARRAY_LENGTH(deferred->root, lsecond(args));
		}
		foreach(arg, args)
		{
			Var		   *var = (Var *) rf_strip_relabel(lfirst(arg));

			if (IsA(var, Var) && var->varno == deferred->rel->relid)
			{
				share = Min(share, n * share_of_value(deferred, var->varattno));
				found = true;
			}
		}
	}
	share = found ? share : 0.5;
	return share + (1 - share) * deferred->uncovered;
}

/*
 * A path of the table in place of another one, with the same rows and costs.
 */
static CustomPath *
make_path(RelOptInfo *rel, const Path *old, ParamPathInfo *param_info,
		  const CustomPathMethods *methods)
{
	CustomPath *custom = makeNode(CustomPath);
	Path	   *path = &custom->path;

	RF_COPY_DISABLED(path, old);
	path->pathtype = T_CustomScan;
	path->parent = rel;
	path->pathtarget = rel->reltarget;
	path->param_info = param_info;
	path->rows = param_info != NULL ? param_info->ppi_rows : rel->rows;
	path->startup_cost = old->startup_cost;
	path->total_cost = old->total_cost;
	custom->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	custom->methods = methods;
	return custom;
}

/*
 * The kind of scan that an Append over the template has: T_Invalid if it is not known.
 */
static NodeTag
scan_kind(const Path *path)
{
	while (IsA(path, AppendPath) && list_length(((const AppendPath *) path)->subpaths) == 1)
		path = linitial(((const AppendPath *) path)->subpaths);
	return IsA(path, AppendPath) ? T_Invalid : path->pathtype;
}

/*
 * A placeholder for a path that reads all partitions.  Core has charged for the descent
 * of one index; each partition has one.
 */
static Path *
make_placeholder(const RfDeferred *deferred, const Path *old, ParamPathInfo *param_info)
{
	CustomPath *custom = make_path(deferred->rel, old, param_info, &rf_placeholder_path_methods);
	Path	   *path = &custom->path;

	path->pathkeys = old->pathkeys;
	path->parallel_safe = old->parallel_safe;
	path->parallel_aware = old->parallel_aware;
	path->parallel_workers = old->parallel_workers;
	path->rows = old->rows;
	if (IsA(old, MergeAppendPath) ||
		(scan_kind(old) != T_SeqScan && scan_kind(old) != T_Invalid))
	{
		Cost		descents = (deferred->nleaves - 1) * random_page_cost;

		path->total_cost += descents;
		if (old->pathkeys != NIL)
			path->startup_cost += descents;
	}
	return path;
}

/*
 * A deferred scan in place of a path.  Of a sequential scan it reads the partitions that
 * are left; a scan by an index fetches the same rows.  Both pay for planning when the
 * query runs.
 */
static Path *
make_deferred(const RfDeferred *deferred, const Path *old, ParamPathInfo *param_info,
			  double share)
{
	CustomPath *custom = make_path(deferred->rel, old, param_info, &rf_deferred_path_methods);
	Path	   *path = &custom->path;
	double		leaves = Max(1.0, share * deferred->nleaves);

	if (scan_kind(old) == T_SeqScan)
		path->total_cost = share * (old->total_cost - old->startup_cost) + old->startup_cost;
	else
		leaves = Max(1.0, Min(leaves, path->rows));
	path->startup_cost += RF_DEFERRED_PLAN_COST;
	path->total_cost += RF_DEFERRED_PLAN_COST + leaves * RF_DEFERRED_LEAF_COST;
	return path;
}

/*
 * The clauses (RestrictInfo) that are checked under a parameterization.
 */
static List *
clauses_with(const RfDeferred *deferred, const ParamPathInfo *param_info)
{
	List	   *clauses = deferred->rel->baserestrictinfo;

	return param_info == NULL ? clauses : list_concat_copy(clauses, param_info->ppi_clauses);
}

/*
 * The path by which a path over the template is replaced.  Core's parameterizations of an
 * append relation have no clauses; these have.
 */
static Path *
replacement(RfDeferred *deferred, Path *path)
{
	ParamPathInfo *param_info = path->param_info == NULL ? NULL :
	get_baserel_parampathinfo(deferred->root, deferred->rel, PATH_REQ_OUTER(path));
	List	   *clauses = clauses_with(deferred, param_info);

	if (rf_is_choosing(deferred, clauses))
		return make_deferred(deferred, path, param_info, share_left(deferred, clauses));
	return make_placeholder(deferred, path, param_info);
}

/*
 * Return true if a set is among those of a list.
 */
static bool
is_set_member(List *sets, Relids set)
{
	ListCell   *cell;

	foreach(cell, sets)
	{
		if (bms_equal(lfirst(cell), set))
			return true;
	}
	return false;
}

/*
 * Adds deferred scans for values of other relations where no index of another kind
 * has a path for these.  scan is the sequential scan of the table.
 */
static void
add_parameterized(RfDeferred *deferred, const Path *scan)
{
	RelOptInfo *rel = deferred->rel;
	List	   *sets = NIL;
	ListCell   *cell;

	foreach(cell, rf_deferred_join_clauses(deferred))
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);
		Relids		outer;
		ParamPathInfo *param_info;

		if (list_length(sets) >= RF_MAX_OUTER_SETS ||
			!rf_is_choosing(deferred, list_make1(rinfo)))
			continue;
		outer = bms_union(bms_difference(rinfo->clause_relids, rel->relids),
						  rel->lateral_relids);
		if (bms_is_empty(outer) || is_set_member(sets, outer))
			continue;
		sets = lappend(sets, outer);
		param_info = get_baserel_parampathinfo(deferred->root, rel, outer);
		add_path(rel, make_deferred(deferred, scan, param_info,
									share_left(deferred, clauses_with(deferred, param_info))));
	}
}

/*
 * set_rel_pathlist_hook: replaces the paths of a deferred table.
 */
void
rf_defer_paths(PlannerInfo *root, RelOptInfo *rel)
{
	RfDeferred *deferred = rf_find_deferred(rel);
	List	   *paths = rel->pathlist;
	List	   *partial_paths = rel->partial_pathlist;
	Path	   *scan = NULL;
	bool		choosing;
	ListCell   *cell;

	if (deferred == NULL || deferred->rel != rel)
		return;

	/* No joins, aggregates or targets are planned for each partition. */
	rel->nparts = 0;
	rel->part_scheme = NULL;
	rel->consider_partitionwise_join = false;

	/* A constraint of the template may have refuted the query. */
	if (IS_DUMMY_REL(rel))
	{
		rf_planning->refuted = lappend_int(rf_planning->refuted, deferred->reference);
		return;
	}
	rel->ppilist = NIL;
	rel->tuples = Max(deferred->tuples, 1);
	rel->pathlist = NIL;
	rel->partial_pathlist = NIL;
	choosing = rf_is_choosing(deferred, rel->baserestrictinfo);
	foreach(cell, paths)
	{
		Path	   *path = lfirst(cell);

		if (path->param_info == NULL && scan_kind(path) == T_SeqScan)
			scan = path;
		add_path(rel, replacement(deferred, path));
	}
	if (scan != NULL && !choosing)
		add_parameterized(deferred, scan);
	if (choosing)
		return;
	foreach(cell, partial_paths)
		add_partial_path(rel, make_placeholder(deferred, lfirst(cell), NULL));
}
