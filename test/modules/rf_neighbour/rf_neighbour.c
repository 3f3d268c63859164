/*-------------------------------------------------------------------------
 *
 * rf_neighbour.c
 *	  Does to the planner's data what another extension may do in its hooks.
 *
 * Always: what belongs to a relation alone is replaced by copies, and the
 * originals are overwritten and freed: its list of indexes, its paths;
 * restrictions are copied; so is the finished plan.  Memory that the
 * planner frees is filled with values that do harm.  None of this changes a plan,
 * so that the regression tests have the same output with this module.
 *
 * Settings do what changes plans, too, and only results can be compared:
 *
 *	rf_neighbour.keep_indexes	all but the first so many indexes of a table are
 *								freed when it gets its paths, which are made anew
 *								from the others (-1: does not), as pg_hint_plan
 *								does
 *	rf_neighbour.own_memory		plans in a context that is gone afterwards
 *	rf_neighbour.keep_plans		returns the plan made for the same string earlier
 *	rf_neighbour.plan_twice		plans a copy of the query first
 *	rf_neighbour.instrument		queries are instrumented
 *	rf_neighbour.past			goes past the hooks that were there before of one
 *								kind, to core: planner, relation, scan or start
 *
 * A planner hook is inside that of a module which is loaded later.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "compat.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "fmgr.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "optimizer/planner.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/selfuncs.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

/* What memory is filled with; no pointer is like that. */
#define HARM	0x7f

/* A plan by the string it was made for. */
typedef struct KeptPlan
{
	char	   *string;
	PlannedStmt *stmt;
} KeptPlan;

static int	keep_indexes = -1;
static bool own_memory = false;
static bool keep_plans = false;
static bool plan_twice = false;
static bool instrument = false;

/* Whose hooks are gone past. */
typedef enum Past
{
	PAST_NONE,
	PAST_PLANNER,
	PAST_RELATION,
	PAST_SCAN,
	PAST_START
} Past;

static const struct config_enum_entry past_options[] = {
	{"none", PAST_NONE, false},
	{"planner", PAST_PLANNER, false},
	{"relation", PAST_RELATION, false},
	{"scan", PAST_SCAN, false},
	{"start", PAST_START, false},
	{NULL, 0, false}
};

static int	past = PAST_NONE;

static List *kept_plans = NIL;	/* KeptPlan, in TopMemoryContext */

static planner_hook_type next_planner = NULL;
static RfRelationHook next_relation_info = NULL;
static set_rel_pathlist_hook_type next_rel_pathlist = NULL;
static get_relation_stats_hook_type next_relation_stats = NULL;
static ExecutorStart_hook_type next_executor_start = NULL;

/*
 * Overwrites and frees something of a size.
 */
static void
destroy(void *object, Size size)
{
	if (object == NULL)
		return;
	memset(object, HARM, size);
	pfree(object);
}

/*
 * A copy of an array, or NULL for NULL.
 */
static void *
copy_array(const void *array, Size size)
{
	return array == NULL ? NULL : memcpy(palloc(size + 1), array, size);
}

/*
 * A copy of an index that shares nothing with it.
 */
static IndexOptInfo *
copy_index(const IndexOptInfo *index)
{
	IndexOptInfo *copy = copy_array(index, sizeof(IndexOptInfo));
	Size		oids = index->nkeycolumns * sizeof(Oid);

	copy->indexkeys = copy_array(index->indexkeys,
								 index->ncolumns * sizeof(int));
	copy->indexcollations = copy_array(index->indexcollations, oids);
	copy->opfamily = copy_array(index->opfamily, oids);
	copy->opcintype = copy_array(index->opcintype, oids);
	copy->sortopfamily = index->sortopfamily == index->opfamily ?
		copy->opfamily : copy_array(index->sortopfamily, oids);
	copy->reverse_sort = copy_array(index->reverse_sort,
									index->nkeycolumns * sizeof(bool));
	copy->nulls_first = copy_array(index->nulls_first,
								   index->nkeycolumns * sizeof(bool));
	copy->canreturn = copy_array(index->canreturn,
								 index->ncolumns * sizeof(bool));
	copy->indexprs = copyObject(index->indexprs);
	copy->indpred = copyObject(index->indpred);
	copy->indextlist = copyObject(index->indextlist);
	return copy;
}

/*
 * Makes expressions useless and frees their list.
 */
static void
destroy_expressions(List *expressions)
{
	ListCell   *cell;

	foreach(cell, expressions)
		memset(lfirst(cell), HARM, sizeof(Node));
	list_free(expressions);
}

/*
 * Overwrites and frees an index with all that belongs to it.
 */
static void
destroy_index(IndexOptInfo *index)
{
	Size		oids = index->nkeycolumns * sizeof(Oid);

	destroy(index->indexkeys, index->ncolumns * sizeof(int));
	destroy(index->indexcollations, oids);
	if (index->sortopfamily != index->opfamily)
		destroy(index->sortopfamily, oids);
	destroy(index->opfamily, oids);
	destroy(index->opcintype, oids);
	destroy(index->reverse_sort, index->nkeycolumns * sizeof(bool));
	destroy(index->nulls_first, index->nkeycolumns * sizeof(bool));
	destroy(index->canreturn, index->ncolumns * sizeof(bool));
	destroy_expressions(index->indexprs);
	destroy_expressions(index->indpred);
	destroy(index, sizeof(IndexOptInfo));
}

/*
 * get_relation_info_hook, or build_simple_rel_hook: no path refers to an index yet.
 */
static void
relation_info(RF_RELATION_PARAMS)
{
	List	   *copies = NIL;
	ListCell   *cell;

	if (next_relation_info && past != PAST_RELATION)
		next_relation_info(RF_RELATION_ARGS);
	foreach(cell, rel->indexlist)
		copies = lappend(copies, copy_index(lfirst(cell)));
	foreach(cell, rel->indexlist)
		destroy_index(lfirst(cell));
	list_free(rel->indexlist);
	rel->indexlist = copies;
}

/*
 * The size of a path; 0 for kinds that are left alone.
 */
static Size
path_size(const Path *path)
{
	switch (nodeTag(path))
	{
		case T_Path:
			return sizeof(Path);
		case T_IndexPath:
			return sizeof(IndexPath);
		case T_BitmapHeapPath:
			return sizeof(BitmapHeapPath);
		case T_TidPath:
			return sizeof(TidPath);
		case T_TidRangePath:
			return sizeof(TidRangePath);
		case T_CustomPath:
			return sizeof(CustomPath);
		case T_AppendPath:
			return sizeof(AppendPath);
		case T_MergeAppendPath:
			return sizeof(MergeAppendPath);
		case T_NestPath:
			return sizeof(NestPath);
		case T_MergePath:
			return sizeof(MergePath);
		case T_HashPath:
			return sizeof(HashPath);
		default:
			return 0;
	}
}

/*
 * Replaces paths that nothing refers to by copies.  Only of index paths others may
 * be made, in several ways, so these are not destroyed.
 */
static void
replace_paths(List **paths)
{
	List	   *copies = NIL;
	ListCell   *cell;

	foreach(cell, *paths)
	{
		Path	   *path = lfirst(cell);
		Size		size = path_size(path);

		copies = lappend(copies, size > 0 ? copy_array(path, size) : path);
		if (size > 0 && !IsA(path, IndexPath))
			destroy(path, size);
	}
	list_free(*paths);
	*paths = copies;
}

/*
 * Is this the path of a sequential scan, or something above one?
 */
static bool
is_sequential(Path *path)
{
	while (IsA(path, CustomPath) && ((CustomPath *) path)->custom_paths != NIL)
		path = linitial(((CustomPath *) path)->custom_paths);
	return IsA(path, Path);
}

/*
 * Replaces a relation's restrictions by copies.  Not where there are other scans
 * than sequential ones: these know by addresses which restrictions are left to be
 * checked.
 */
static void
replace_restrictions(RelOptInfo *rel)
{
	List	   *copies = NIL;
	ListCell   *cell;

	foreach(cell, rel->pathlist)
	{
		if (!is_sequential(lfirst(cell)))
			return;
	}
	foreach(cell, rel->baserestrictinfo)
		copies = lappend(copies, copyObject(lfirst_node(RestrictInfo, cell)));
	rel->baserestrictinfo = copies;
}

/*
 * Frees a relation's paths, and its indexes but for the first ones; makes paths of
 * what is left.
 */
static void
restrict_indexes(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *kept = NIL;
	ListCell   *cell;

	foreach(cell, rel->indexlist)
	{
		if (list_length(kept) < keep_indexes)
			kept = lappend(kept, lfirst(cell));
		else
			destroy_index(lfirst(cell));
	}
	list_free(rel->indexlist);
	rel->indexlist = kept;

	list_free_deep(rel->pathlist);
	list_free_deep(rel->partial_pathlist);
	rel->pathlist = rel->partial_pathlist = NIL;
	add_path(rel, create_seqscan_path(root, rel, rel->lateral_relids, 0));
	create_index_paths(root, rel);
}

/*
 * set_rel_pathlist_hook
 */
static void
rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	if (next_rel_pathlist && past != PAST_SCAN)
		next_rel_pathlist(root, rel, rti, rte);
	if (keep_indexes >= 0 && rte->rtekind == RTE_RELATION && !rte->inh &&
		rte->tablesample == NULL && !IS_DUMMY_REL(rel))
		restrict_indexes(root, rel);
	replace_paths(&rel->pathlist);
	replace_paths(&rel->partial_pathlist);
	replace_restrictions(rel);
}

/*
 * get_relation_stats_hook: what the planner has freed of the size of a RelOptInfo
 * becomes one that harms whoever still looks at it.
 */
static bool
relation_stats(PlannerInfo *root, RangeTblEntry *rte, AttrNumber attno,
			   VariableStatData *vardata)
{
	RelOptInfo *rel = MemoryContextAlloc(root->planner_cxt,
										 sizeof(RelOptInfo));

	memset(rel, HARM, sizeof(RelOptInfo));
	rel->rows = 0;
	return next_relation_stats &&
		next_relation_stats(root, rte, attno, vardata);
}

static PlannedStmt *
call_planner(RF_PLANNER_PARAMS)
{
	if (next_planner && past != PAST_PLANNER)
		return next_planner(RF_PLANNER_ARGS);
	return standard_planner(RF_PLANNER_ARGS);
}

/*
 * Fills memory that was given back to the C library.
 */
static void
fill_freed(void)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "rf_neighbour",
												  ALLOCSET_DEFAULT_SIZES);

	for (int i = 0; i < 64; i++)
		memset(MemoryContextAlloc(context, 8000 << i % 4), HARM,
			   8000 << i % 4);
	MemoryContextDelete(context);
}

/*
 * Plans in a context of its own; only a copy of the plan stays.
 */
static PlannedStmt *
plan_elsewhere(RF_PLANNER_PARAMS)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "rf_neighbour planner",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	PlannedStmt *stmt = call_planner(RF_PLANNER_ARGS);

	MemoryContextSwitchTo(old);
	stmt = copyObject(stmt);
	MemoryContextDelete(context);
	fill_freed();
	return stmt;
}

/*
 * The plan that was made for a string, or NULL.
 */
static PlannedStmt *
find_plan(const char *string)
{
	ListCell   *cell;

	foreach(cell, kept_plans)
	{
		KeptPlan   *kept = lfirst(cell);

		if (strcmp(kept->string, string) == 0)
			return copyObject(kept->stmt);
	}
	return NULL;
}

static void
keep_plan(const char *string, PlannedStmt *stmt)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	KeptPlan   *kept = palloc(sizeof(KeptPlan));

	kept->string = pstrdup(string);
	kept->stmt = copyObject(stmt);
	kept_plans = lappend(kept_plans, kept);
	MemoryContextSwitchTo(old);
}

/*
 * planner_hook
 */
static PlannedStmt *
plan(RF_PLANNER_PARAMS)
{
	PlannedStmt *stmt;
	PlannedStmt *copy;

	if (keep_plans && (stmt = find_plan(query_string)) != NULL)
		return stmt;
	if (own_memory)
		return plan_elsewhere(RF_PLANNER_ARGS);
	if (plan_twice)
		(void) RF_PLAN_QUERY(next_planner ? next_planner : standard_planner,
							 copyObject(parse), query_string, cursor_options,
							 bound_params);
	stmt = call_planner(RF_PLANNER_ARGS);
	if (keep_plans)
		keep_plan(query_string, stmt);
	copy = copyObject(stmt);
	memset(stmt, HARM, sizeof(PlannedStmt));
	return copy;
}

/*
 * ExecutorStart_hook
 */
static void
executor_start(QueryDesc *desc, int eflags)
{
	if (instrument)
		desc->instrument_options |= INSTRUMENT_ROWS;
	if (next_executor_start && past != PAST_START)
		next_executor_start(desc, eflags);
	else
		standard_ExecutorStart(desc, eflags);
}

/*
 * Module load function
 */
void
_PG_init(void)
{
	DefineCustomIntVariable("rf_neighbour.keep_indexes",
							"Number of indexes of a table that are not freed; -1 frees none.",
							NULL, &keep_indexes, -1, -1, INT_MAX, PGC_USERSET,
							0, NULL, NULL, NULL);
	DefineCustomBoolVariable("rf_neighbour.own_memory",
							 "Plans in a memory context that is gone afterwards.",
							 NULL, &own_memory, false, PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("rf_neighbour.keep_plans",
							 "Returns the plan made earlier for the same string.",
							 NULL, &keep_plans, false, PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("rf_neighbour.plan_twice",
							 "Plans a copy of the query first.",
							 NULL, &plan_twice, false, PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("rf_neighbour.instrument",
							 "Instruments all queries.",
							 NULL, &instrument, false, PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomEnumVariable("rf_neighbour.past",
							 "Goes past the other hooks of one kind.",
							 NULL, &past, PAST_NONE, past_options, PGC_USERSET, 0,
							 NULL, NULL, NULL);
	MarkGUCPrefixReserved("rf_neighbour");

	next_planner = planner_hook;
	planner_hook = plan;
	next_relation_info = RF_RELATION_HOOK;
	RF_RELATION_HOOK = relation_info;
	next_rel_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = rel_pathlist;
	next_relation_stats = get_relation_stats_hook;
	get_relation_stats_hook = relation_stats;
	next_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
}
