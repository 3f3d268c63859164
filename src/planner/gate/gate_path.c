/*-------------------------------------------------------------------------
 *
 * gate_path.c
 *	  set_rel_pathlist_hook: gates above the scans of append members.
 *
 * The paths of a member are replaced by gates above them if a condition that
 * its indexes can use compares with a value known only at execution.  For
 * members that skip.c does not look at (inheritance and UNION ALL) constants
 * count as well.  For a join clause the path is parameterized by the other
 * relation.  If there is no such path, because no other index can use the
 * clause, a parameterized sequential scan is made.
 *
 * A gate costs the questions and a share of the scan's cost (gate_share.c).
 * Where rows are hidden, a gate costs what the scan costs, no parameterized scan
 * is made, and constants count for partitions, too.
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
 * Asking one index in a scan that is repeated, for each question, in units of
 * cpu_operator_cost.
 */
#define RF_ASK_AGAIN_COST	20

/* The most parameterizations of a member that get a sequential scan. */
#define RF_MAX_PARAMETERIZATIONS 4

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
}

/*
 * May paths of this planning get gates, and has it members with rangefilter indexes?
 */
bool
rf_may_have_gates(PlannerInfo *root)
{
	return rf_planning != NULL && rf_planning->may_gate &&
		rf_planning->gate_rels != NULL && rf_is_ours(root);
}

/*
 * The entry of a member; NULL if it has no rangefilter indexes.
 */
static const RfGateRel *
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

	if (!rf_may_have_gates(root) || rf_gate_indexes(rel) == NIL ||
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
 * Does a value depend on something that differs from scan to scan?
 */
static bool
has_repeated_value(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
		return true;
	if (IsA(node, Var) || IsA(node, PlaceHolderVar))
		return true;
	return expression_tree_walker(node, has_repeated_value, context);
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
 * Is this a gate's path?
 */
bool
rf_is_gate_path(const Path *path)
{
	return IsA(path, CustomPath) &&
		((const CustomPath *) path)->methods == &rf_gate_path_methods;
}

/*
 * Sets the cost of a gate: the questions and the expected share of the scan.
 * False where the gate does not pay.
 */
static bool
charge_gate(Path *path, const RfGateShape *shape, double share, bool by_values)
{
	bool		again = has_repeated_value((Node *) shape->values, NULL);
	Cost		ask = (again ? RF_ASK_AGAIN_COST : RF_ASK_ONCE_COST) *
	cpu_operator_cost * list_length(shape->indexes);
	Cost		scan_cost = path->total_cost;

	if (again && shape->ranges > 1)
		ask += (shape->ranges - 1) *
			rf_ask_value_cost(((Path *) linitial(((CustomPath *) path)->custom_paths))->pathtype, true);

	/* The cost of a disabled scan is not reduced. */
	if (RF_IS_DISABLED(path))
		share = 1.0;

	/*
	 * Core estimates the rows for values that the member holds.
	 */
	if (by_values && path->param_info != NULL)
		path->rows = clamp_row_est(share * path->rows);
	path->startup_cost = ask + share * path->startup_cost;
	path->total_cost = ask + share * path->total_cost;

	/* A gate whose values do not change is asked once, and always kept. */
	return path->total_cost < scan_cost || !again;
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

/* What gates can ask under a parameterization. */
typedef struct RfGateInfo
{
	const ParamPathInfo *param_info;
	bool		useful;
	RfGateShape shape;
	double		share;
	bool		by_values;		/* see rf_opening_probability() */
} RfGateInfo;

/*
 * Finds what gates can ask under a path's parameterization.  Remembers it in
 * *infos.
 */
static RfGateInfo *
find_gate_info(PlannerInfo *root, RelOptInfo *rel, const Path *path,
			   List **infos)
{
	RfGateInfo *info;
	List	   *restrictions = rel->baserestrictinfo;
	ListCell   *cell;

	foreach(cell, *infos)
	{
		info = lfirst(cell);
		if (info->param_info == path->param_info)
			return info;
	}
	info = palloc0(sizeof(RfGateInfo));
	info->param_info = path->param_info;
	if (path->param_info != NULL)
		restrictions = list_concat_copy(restrictions,
										path->param_info->ppi_clauses);
	info->useful = (!rf_gate_is_secured(rel) || rf_scan_is_leakproof(root, rel, restrictions)) &&
		rf_gate_shape(root, rel, rf_gate_indexes(rel),
					  rf_usable_clauses(rel, restrictions),
					  !constants_used(root, rel), &info->shape);
	if (info->useful && !rf_gate_is_secured(rel))
		info->share = rf_opening_probability(root, rel, &info->shape,
											 &info->by_values);
	*infos = lappend(*infos, info);
	return info;
}

/*
 * A gate above a path, or the path itself if it cannot have one or it does not
 * pay.
 */
static Path *
wrap_path(PlannerInfo *root, RelOptInfo *rel, Path *path, List **infos)
{
	RfGateInfo *info;
	Path	   *gate;

	if (!is_scan(path))
		return path;
	info = find_gate_info(root, rel, path, infos);
	if (!info->useful)
		return path;
	gate = make_gate_path(rel, path);
	if (rf_gate_is_secured(rel) ||
		charge_gate(gate, &info->shape, info->share, info->by_values))
		return gate;
	return path;
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
 * Replaces a relation's paths by gates above them.
 *
 * A copy of an unparameterized sequential scan stays at the end of the list.
 * The planner can give it the parameters that a path of another member has,
 * which it cannot do for a gate.  The copy costs a question more, so that it
 * is not chosen for its lower startup cost (for LIMIT, since PostgreSQL 17).
 */
static void
wrap_paths(PlannerInfo *root, RelOptInfo *rel, List **infos)
{
	List	   *paths = rel->pathlist;
	List	   *partial_paths = rel->partial_pathlist;
	Path	   *spare = NULL;
	Cost		ask_cost = RF_ASK_ONCE_COST * cpu_operator_cost *
	list_length(rf_gate_indexes(rel));
	ListCell   *cell;

	rel->pathlist = NIL;
	foreach(cell, paths)
	{
		Path	   *path = lfirst(cell);
		Path	   *gate = wrap_path(root, rel, path, infos);

		if (gate != path && path->pathtype == T_SeqScan &&
			path->param_info == NULL)
			spare = path;
		add_path(rel, gate);
	}
	if (spare != NULL)
	{
		Path	   *last = copy_scan(spare);

		last->startup_cost += ask_cost;
		last->total_cost += ask_cost;
		rel->pathlist = lappend(rel->pathlist, last);
	}

	rel->partial_pathlist = NIL;
	foreach(cell, partial_paths)
		add_partial_path(rel, wrap_path(root, rel, lfirst(cell), infos));
}

/*
 * The same for a relation with hidden rows (secured.c).  Gates take the places
 * of scans in the lists and cost the same, so the planner decides as if there
 * were none.  Copies of the scans follow at the end, for the planner to
 * reparameterize.  Of paths that cost the same it takes the first.
 */
static void
wrap_paths_alike(PlannerInfo *root, RelOptInfo *rel, List **infos)
{
	List	   *scans = NIL;
	ListCell   *cell;

	foreach(cell, rel->pathlist)
	{
		Path	   *path = lfirst(cell);
		Path	   *scan;

		lfirst(cell) = wrap_path(root, rel, path, infos);
		if (lfirst(cell) != path && (scan = copy_scan(path)) != NULL)
			scans = lappend(scans, scan);
	}
	foreach(cell, rel->partial_pathlist)
		lfirst(cell) = wrap_path(root, rel, lfirst(cell), infos);
	rel->pathlist = list_concat(rel->pathlist, scans);
}

/*
 * Is this member of an equivalence class the key?
 */
static bool
is_member_key(PlannerInfo *root, RelOptInfo *rel, EquivalenceClass *ec,
			  EquivalenceMember *em, void *arg)
{
	Node	   *node = rf_strip_relabel((Node *) em->em_expr);
	Node	   *key = arg;

	if (IsA(node, Var) && IsA(key, Var))
		return ((Var *) node)->varno == ((Var *) key)->varno &&
			((Var *) node)->varattno == ((Var *) key)->varattno;
	return equal(node, key);
}

/*
 * The join clauses that may be checked in a scan of the relation.  Those from
 * equivalence classes compare a key column of this index.
 */
static List *
join_clauses(PlannerInfo *root, RelOptInfo *rel, RfRelIndex *index)
{
	List	   *clauses = NIL;
	ListCell   *cell;

	foreach(cell, rel->joininfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);

		if (join_clause_is_movable_to(rinfo, rel))
			clauses = lappend(clauses, rinfo);
	}
	for (int c = 0; c < index->ncolumns && rel->has_eclass_joins; c++)
	{
		Node	   *key = rf_gate_key(index, c);

		clauses = list_concat(clauses,
							  generate_implied_equalities_for_column(root, rel,
																	 is_member_key, key,
																	 rel->lateral_referencers));
	}
	return clauses;
}

/*
 * Adds a set of relations to a list of at most RF_MAX_PARAMETERIZATIONS.
 */
static List *
add_relids(List *sets, Relids set)
{
	ListCell   *cell;

	foreach(cell, sets)
	{
		if (bms_equal(lfirst(cell), set))
			return sets;
	}
	return list_length(sets) < RF_MAX_PARAMETERIZATIONS ?
		lappend(sets, set) : sets;
}

/*
 * The sets of relations for whose values an index could be asked.
 */
static List *
useful_parameterizations(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *sets = NIL;
	ListCell   *index_cell;
	ListCell   *cell;

	foreach(index_cell, rf_gate_indexes(rel))
	{
		RfRelIndex *index = lfirst(index_cell);

		foreach(cell, join_clauses(root, rel, index))
		{
			RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);
			Relids		outer = bms_difference(rinfo->clause_relids,
											   rel->relids);
			List	   *clauses = lappend(list_copy(rel->baserestrictinfo),
										  rinfo);
			RfGateShape shape;

			if (!rf_gate_shape(root, rel, list_make1(index),
							   rf_usable_clauses(rel, clauses), false,
							   &shape) ||
				!bms_overlap(pull_varnos(root, (Node *) shape.values),
							 outer))
				continue;
			sets = add_relids(sets, bms_union(outer, rel->lateral_relids));
		}
	}
	return sets;
}

#ifdef USE_ASSERT_CHECKING
/*
 * Does a parameterized path check all join clauses that the equivalence classes
 * make of its relations?  An Append of such paths checks none itself.
 */
static bool
checks_all_clauses(PlannerInfo *root, RelOptInfo *rel, Path *path)
{
	Relids		outer = PATH_REQ_OUTER(path);
	Relids		relids = bms_union(rel->relids, outer);
	ListCell   *cell;

	foreach(cell, RF_JOIN_EQUALITIES(root, relids, outer, rel))
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);

		if (join_clause_is_movable_into(rinfo, rel->relids, relids) &&
			!list_member_ptr(path->param_info->ppi_clauses, rinfo))
			return false;
	}
	return true;
}
#endif

/*
 * Adds parameterized sequential scans with gates.
 */
static void
add_parameterized_paths(PlannerInfo *root, RelOptInfo *rel, List **infos)
{
	List	   *paths = NIL;
	ListCell   *cell;

	if (rel->joininfo == NIL && !rel->has_eclass_joins)
		return;
	rf_core_narrow(root, rel, &rf_planning->classes);
	foreach(cell, useful_parameterizations(root, rel))
		paths = lappend(paths, create_seqscan_path(root, rel, lfirst(cell), 0));
	rf_core_widen(rf_planning->classes);
	foreach(cell, paths)
	{
		Path	   *path = lfirst(cell);
		Path	   *gate = wrap_path(root, rel, path, infos);

		Assert(checks_all_clauses(root, rel, path));
		if (gate != path)
			add_path(rel, gate);
	}
}

/*
 * Is there already a gate that asks for values of other relations?  Then
 * another index can use the join clauses, too, and there are better paths than
 * sequential scans.
 */
static bool
has_join_gate(RelOptInfo *rel)
{
	ListCell   *cell;

	foreach(cell, rel->pathlist)
	{
		Path	   *path = lfirst(cell);

		if (rf_is_gate_path(path) && path->param_info != NULL &&
			!bms_equal(PATH_REQ_OUTER(path), rel->lateral_relids))
			return true;
	}
	return false;
}

/*
 * Adds gates to the paths of a relation: set_rel_pathlist_hook.
 */
void
rf_add_gates(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	List	   *infos = NIL;

	if (!may_gate(root, rel, rte))
		return;
	if (rf_gate_is_secured(rel))
	{
		wrap_paths_alike(root, rel, &infos);
		return;
	}
	wrap_paths(root, rel, &infos);
	if (rte->tablesample == NULL && !has_join_gate(rel))
		add_parameterized_paths(root, rel, &infos);
}
