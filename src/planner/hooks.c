/*-------------------------------------------------------------------------
 *
 * hooks.c
 *	  The planner part's settings, and every hook of the planner and the executor
 *	  that is installed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_database.h"
#include "compat.h"
#include "core/core.h"
#include "executor/executor.h"
#include "nodes/extensible.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "optimizer/planner.h"
#include "planner/activity/activity.h"
#include "planner/deferred/deferred.h"
#include "planner/estimate/estimate.h"
#include "planner/gate/gate.h"
#include "planner/hooks.h"
#include "planner/join_filter/join_filter.h"
#include "planner/knowledge/knowledge.h"
#include "planner/planning/planning.h"
#include "planner/skip/skip.h"
#include "rangefilter/probe/probe.h"
#include "rangefilter/rangefilter.h"
#include "stats/session.h"
#include "utils/guc.h"
#include "utils/selfuncs.h"
#include "wormhole/am/wormhole.h"

/* What was in the hooks before; NULL where there was nothing. */
static struct
{
	planner_hook_type planner;
#if RF_PLANNER_KEEPS_STATE
	planner_setup_hook_type planner_setup;
#endif
	RfRelationHook relation_info;
	get_relation_stats_hook_type relation_stats;
	get_index_stats_hook_type index_stats;
	set_rel_pathlist_hook_type rel_pathlist;
	ExecutorStart_hook_type executor_start;
	ExecutorRun_hook_type executor_run;
	ExecutorEnd_hook_type executor_end;
	object_access_hook_type object_access;
}			previous;

/*
 * Has plans that the setting can change made anew the next time.  Only sets
 * flags, so it may be called at any time.
 */
static void
enable_changed(bool value, void *extra)
{
	if (value != rf_enable)
		rf_invalidate_plans(RF_ENABLE_HASH);
}

/*
 * What rf_plan() calls to plan: the planner_hook that was there before ours, or core.
 */
static PlannedStmt *
next_planner(RF_PLANNER_PARAMS)
{
	return (previous.planner ? previous.planner : standard_planner)
		(RF_PLANNER_ARGS);
}

/*
 * planner_hook: plans by rf_plan(), which calls the hook that was there before, or core.
 */
static PlannedStmt *
plan(RF_PLANNER_PARAMS)
{
	return rf_plan(next_planner, RF_PLANNER_ARGS);
}

#if RF_PLANNER_KEEPS_STATE
/*
 * planner_setup_hook
 */
static void
planner_setup(PlannerGlobal *glob, Query *parse, const char *query_string,
			  int cursor_options, double *tuple_fraction, ExplainState *explain)
{
	if (previous.planner_setup)
		previous.planner_setup(glob, parse, query_string, cursor_options,
							   tuple_fraction, explain);
	rf_core_note_query(glob, parse);
}
#endif

/*
 * get_relation_info_hook, or build_simple_rel_hook.
 */
static void
relation_info(RF_RELATION_PARAMS)
{
	if (previous.relation_info)
		previous.relation_info(RF_RELATION_ARGS);
	if (rel->rtekind == RTE_RELATION)
		rf_relation_info(root, rel);
}

/*
 * get_relation_stats_hook
 */
static bool
relation_stats(PlannerInfo *root, RangeTblEntry *rte, AttrNumber attno,
			   VariableStatData *vardata)
{
	return rf_deferred_stats(attno, vardata) ||
		rf_supply_stats(root, attno, NULL, vardata) ||
		(previous.relation_stats &&
		 previous.relation_stats(root, rte, attno, vardata));
}

/*
 * get_index_stats_hook: core has found an index, ours or another one, with the
 * expression of a clause as a column.
 */
static bool
index_stats(PlannerInfo *root, Oid indexid, AttrNumber column,
			VariableStatData *vardata)
{
	return rf_supply_stats(root, 0, vardata->var, vardata) ||
		(previous.index_stats &&
		 previous.index_stats(root, indexid, column, vardata));
}

/*
 * set_rel_pathlist_hook
 */
static void
set_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti,
				 RangeTblEntry *rte)
{
	if (previous.rel_pathlist)
		previous.rel_pathlist(root, rel, rti, rte);
	rf_add_gates(root, rel, rte);
	rf_defer_paths(root, rel);
}

/*
 * Starts a plan.  next is called to have core start it.
 */
static void
start_plan(QueryDesc *desc, int eflags, ExecutorStart_hook_type next)
{
	uint64		before = rf_join_filters_started();
	MemoryContext context = rf_replan(desc, eflags, plan);

	rf_core_note_start(desc);
	rf_watch_start(desc, eflags);
	rf_note_starting(desc);
	rf_start_checked(desc, eflags, next);
	rf_join_filters_link(desc, before);
	rf_current_of_started(desc);
	rf_note_started(desc);

	/* A plan made anew goes when the executor ends. */
	if (context != NULL)
		MemoryContextSetParent(context, desc->estate->es_query_cxt);
}

/*
 * ExecutorStart_hook
 */
static void
executor_start(QueryDesc *desc, int eflags)
{
	bool		may_start_over = rf_prepare_deferred(desc, eflags);

	start_plan(desc, eflags,
			   previous.executor_start ? previous.executor_start : standard_ExecutorStart);
	if (may_start_over)
		rf_note_restartable(desc);
}

/*
 * rf_start_inner
 */
static void
start_inner(QueryDesc *desc, int eflags)
{
	start_plan(desc, eflags, standard_ExecutorStart);
}

/*
 * ExecutorRun_hook
 */
static void
executor_run(RF_EXECUTOR_RUN_PARAMS)
{
	rf_run_deferred(previous.executor_run ? previous.executor_run : standard_ExecutorRun,
					RF_EXECUTOR_RUN_ARGS);
}

/*
 * ExecutorEnd_hook
 */
static void
executor_end(QueryDesc *desc)
{
	List	   *parked = rf_parked_states(desc);

	rf_watch_end(desc);
	if (previous.executor_end)
		previous.executor_end(desc);
	else
		standard_ExecutorEnd(desc);
	rf_end_parked(parked);
}

/*
 * object_access_hook.  A table is about to be truncated, or a database was created.
 */
static void
object_access(ObjectAccessType access, Oid class, Oid object, int column,
			  void *arg)
{
	if (previous.object_access)
		previous.object_access(access, class, object, column, arg);
	if (class == RelationRelationId)
	{
		if (access == OAT_TRUNCATE)
			rf_refuse_deferred(object, "TRUNCATE");
		else if (access == OAT_DROP && column == 0)
			rf_refuse_deferred(object, "DROP");
		else if (access == OAT_POST_ALTER)
			rf_refuse_deferred(object, "ALTER TABLE");
	}
	if (class == ConstraintRelationId &&
		(access == OAT_POST_CREATE || access == OAT_POST_ALTER))
		rf_refuse_constraint(object);
	if (access == OAT_TRUNCATE && class == RelationRelationId)
		wh_forbid_truncate(object);
	if (access == OAT_POST_CREATE && class == DatabaseRelationId)
		rf_digests_forget_database(object);
}

/*
 * Installs our functions in front of those that were in the hooks.
 */
static void
install_hooks(void)
{
	previous.planner = planner_hook;
	planner_hook = plan;
#if RF_PLANNER_KEEPS_STATE
	previous.planner_setup = planner_setup_hook;
	planner_setup_hook = planner_setup;
#endif
	previous.relation_info = RF_RELATION_HOOK;
	RF_RELATION_HOOK = relation_info;
	previous.relation_stats = get_relation_stats_hook;
	get_relation_stats_hook = relation_stats;
	previous.index_stats = get_index_stats_hook;
	get_index_stats_hook = index_stats;
	previous.rel_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = set_rel_pathlist;
	previous.executor_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
	rf_start_inner = start_inner;
	previous.executor_run = ExecutorRun_hook;
	ExecutorRun_hook = executor_run;
	previous.executor_end = ExecutorEnd_hook;
	ExecutorEnd_hook = executor_end;
	previous.object_access = object_access_hook;
	object_access_hook = object_access;
}

/*
 * Called once, when the library is loaded.
 */
void
rf_init_planner(void)
{
	DefineCustomBoolVariable("rangefilter.enable",
							 "Lets the planner skip partitions by their range filters.",
							 NULL,
							 &rf_enable,
							 true,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 enable_changed,
							 NULL);
	DefineCustomIntVariable("rangefilter.cache_size",
							"How much memory a session uses to remember range filters.",
							"Queries over many partitions are planned faster if "
							"it has room for about 1.5 kilobytes per partition.",
							&rf_cache_size,
							8192,
							0,
							MAX_KILOBYTES,
							PGC_USERSET,
							GUC_UNIT_KB | GUC_EXPLAIN,
							NULL,
							NULL,
							NULL);
	DefineCustomBoolVariable("rangefilter.estimate_rows",
							 "Lets the planner estimate rows by counting keys in range filters.",
							 NULL,
							 &rf_estimate_rows,
							 true,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomIntVariable("rangefilter.defer_partitions",
							"Tables of at least this many partitions are planned when the values that "
							"choose among these are known.",
							NULL,
							&rf_defer_partitions,
							8,
							1,
							INT_MAX,
							PGC_USERSET,
							GUC_EXPLAIN,
							NULL,
							NULL,
							NULL);
	RegisterCustomScanMethods(&rf_guard_methods);
	RegisterCustomScanMethods(&rf_gate_methods);
	RegisterCustomScanMethods(&rf_deferred_methods);
	rf_init_catalog();
	rf_init_activity();
	rf_note_load();
	install_hooks();
}
