/*-------------------------------------------------------------------------
 *
 * gate_path.c
 *	  set_rel_pathlist_hook: gates above the scans of append members.
 *
 * The paths of a member are replaced by gates above them if a condition that
 * its indexes can use compares with a value known only at execution.  For
 * members that skip.c does not look at (inheritance and UNION ALL) constants
 * count as well; where rows are hidden, for partitions, too.  For a join clause the path is
 * parameterized by the other relation.
 *
 * A gate costs what the scan costs.  So it changes no plan, and where rows are hidden, plans
 * tell nothing of them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "compat.h"
#include "core/core.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "planner/condition/condition.h"
#include "planner/condition/parameter.h"
#include "planner/gate/gate.h"
#include "planner/knowledge/knowledge.h"
#include "planner/planning/planning.h"
#include "utils/hsearch.h"

/*
 * Remembers the rangefilter indexes (RfRelIndex, at least one) of a member of
 * an append relation.
 */
void
rf_gate_note_indexes(PlannerInfo *root, RelOptInfo *rel, List *indexes)
{
	RfGateRel  *entry;

	if (rf_planning->gate_rels == NULL)
	{
		HASHCTL		control;

		memset(&control, 0, sizeof(control));
		control.keysize = sizeof(RelOptInfo *);
		control.entrysize = sizeof(RfGateRel);
		control.hcxt = CurrentMemoryContext;
		rf_planning->gate_rels = hash_create("rangefilter gates", 64, &control,
											 HASH_ELEM | HASH_BLOBS |
											 HASH_CONTEXT);
	}
	entry = hash_search(rf_planning->gate_rels, &rel, HASH_ENTER, NULL);
	entry->root = root;
	entry->top = rf_outermost_relation(root, rel->relid);
	entry->secured = rf_is_secured(root, rel->relid);
	entry->hidden_values = rf_has_hidden_values(root);
	entry->indexes = indexes;
	entry->infos = NIL;
}

/*
 * The entry of a member; NULL if it has no rangefilter indexes.
 */
static RfGateRel *
find_gate_rel(const RelOptInfo *rel)
{
	if (rf_planning->gate_rels == NULL)
		return NULL;
	return hash_search(rf_planning->gate_rels, &rel, HASH_FIND, NULL);
}

/*
 * The rangefilter indexes of a member, RfRelIndex.
 */
List *
rf_gate_indexes(const RelOptInfo *rel)
{
	const RfGateRel *entry = find_gate_rel(rel);

	return entry != NULL ? entry->indexes : NIL;
}

/*
 * Does the member have rangefilter indexes, and are rows of it hidden?  See
 * secured.c.
 */
bool
rf_gate_is_secured(const RelOptInfo *rel)
{
	const RfGateRel *entry = find_gate_rel(rel);

	return entry != NULL && entry->secured;
}

/*
 * Has skip.c looked at this member, so that constants have been used?
 */
static bool
constants_used(PlannerInfo *root, const RelOptInfo *rel)
{
	AppendRelInfo *appinfo = root->append_rel_array[rel->relid];

	return root->simple_rte_array[appinfo->parent_relid]->relkind ==
		RELKIND_PARTITIONED_TABLE && !rf_gate_is_secured(rel);
}

/*
 * May paths of this relation get gates?
 */
static bool
may_gate(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	ListCell   *cell;

	if (rf_planning == NULL || !rf_planning->may_gate ||
		rf_planning->gate_rels == NULL || !rf_is_ours(root) || rf_gate_indexes(rel) == NIL ||
		rte->inh || IS_DUMMY_REL(rel))
		return false;

	/* The scan of UPDATE ... WHERE CURRENT OF gets no gate. */
	foreach(cell, rel->baserestrictinfo)
	{
		if (IsA(lfirst_node(RestrictInfo, cell)->clause, CurrentOfExpr))
			return false;
	}
	return true;
}

/*
 * Makes a gate above a path that costs what the path costs.
 */
static Path *
make_gate_path(RelOptInfo *rel, Path *child)
{
	CustomPath *gate = makeNode(CustomPath);
	Path	   *path = &gate->path;

	RF_COPY_DISABLED(path, child);
	path->pathtype = T_CustomScan;
	path->parent = rel;
	path->pathtarget = child->pathtarget;
	path->param_info = child->param_info;
	path->parallel_aware = false;
	path->parallel_safe = child->parallel_safe;
	path->parallel_workers = child->parallel_workers;
	path->rows = child->rows;
	path->startup_cost = child->startup_cost;
	path->total_cost = child->total_cost;
	path->pathkeys = child->pathkeys;
	gate->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	if (ExecSupportsMarkRestore(child))
		gate->flags |= CUSTOMPATH_SUPPORT_MARK_RESTORE;
	gate->custom_paths = list_make1(child);
	gate->methods = &rf_gate_path_methods;
	return path;
}

/*
 * Is this a scan of a table, of the kinds that can have a gate?
 */
static bool
is_scan(const Path *path)
{
	return IsA(path, Path) || IsA(path, IndexPath) || IsA(path, BitmapHeapPath) ||
		IsA(path, TidPath) || IsA(path, TidRangePath);
}

/*
 * Return true if two lists have the same clauses in the same order.  Clauses are not freed while a
 * query is planned, so those at the same address are the same.
 */
static bool
are_same(const List *a, const List *b)
{
	ListCell   *x;
	ListCell   *y;

	if (list_length(a) != list_length(b))
		return false;
	forboth(x, a, y, b)
	{
		if (lfirst(x) != lfirst(y))
			return false;
	}
	return true;
}

/*
 * What a gate of a member, which has rangefilter indexes, can ask where a scan checks these
 * RestrictInfos.
 */
const RfGateInfo *
rf_gate_info(PlannerInfo *root, RelOptInfo *rel, List *restrictions)
{
	RfGateRel  *entry = find_gate_rel(rel);
	List	   *clauses = rf_usable_clauses(rel, restrictions);
	RfGateInfo *info;
	ListCell   *cell;

	foreach(cell, entry->infos)
	{
		info = lfirst(cell);
		if (are_same(info->clauses, clauses))
			return info;
	}
	info = palloc0(sizeof(RfGateInfo));
	info->clauses = clauses;
	info->useful = (!entry->secured || rf_scan_is_leakproof(root, rel, restrictions)) &&
		rf_gate_shape(root, rel, entry->indexes, clauses, !constants_used(root, rel),
					  &info->shape);
	entry->infos = lappend(entry->infos, info);
	return info;
}

/*
 * The RestrictInfos that a path checks.
 */
static List *
path_restrictions(const RelOptInfo *rel, const Path *path)
{
	return path->param_info == NULL ? rel->baserestrictinfo :
		list_concat_copy(rel->baserestrictinfo, path->param_info->ppi_clauses);
}

/*
 * A gate above a path, or the path itself if it cannot have one.
 */
static Path *
wrap_path(PlannerInfo *root, RelOptInfo *rel, Path *path)
{
	return is_scan(path) && rf_gate_info(root, rel, path_restrictions(rel, path))->useful ?
		make_gate_path(rel, path) : path;
}

/*
 * A copy of a scan for a relation's list, where the scan itself is below a
 * gate.  So the one below the gate is neither changed nor freed with the list.
 * NULL for kinds of scans that the planner cannot reparameterize.
 */
static Path *
copy_scan(const Path *scan)
{
	Size		size;

	switch (nodeTag(scan))
	{
		case T_Path:
			size = sizeof(Path);
			break;
		case T_IndexPath:
			size = sizeof(IndexPath);
			break;
		case T_BitmapHeapPath:
			size = sizeof(BitmapHeapPath);
			break;
		default:
			return NULL;
	}
	return memcpy(palloc(size), scan, size);
}

/*
 * Puts gates above a relation's paths.  Gates take the places of scans in the lists and
 * cost the same, so the planner decides as if there were none.  Copies of the scans follow at
 * the end, for the planner to reparameterize.  Of paths that cost the same it takes the
 * first.
 */
static void
wrap_paths(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *scans = NIL;
	ListCell   *cell;

	foreach(cell, rel->pathlist)
	{
		Path	   *path = lfirst(cell);
		Path	   *scan;

		lfirst(cell) = wrap_path(root, rel, path);
		if (lfirst(cell) != path && (scan = copy_scan(path)) != NULL)
			scans = lappend(scans, scan);
	}
	foreach(cell, rel->partial_pathlist)
		lfirst(cell) = wrap_path(root, rel, lfirst(cell));
	rel->pathlist = list_concat(rel->pathlist, scans);
}

/*
 * Adds gates to the paths of a relation: set_rel_pathlist_hook.
 */
void
rf_add_gates(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	if (may_gate(root, rel, rte))
		wrap_paths(root, rel);
}
