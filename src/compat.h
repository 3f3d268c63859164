/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  What differs between PostgreSQL 15, 16, 17, 18 and 19.
 *
 * No other file asks for the server's version.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_COMPAT_H
#define RANGEFILTER_COMPAT_H

#include "postgres.h"

#if (PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000) && !defined(RF_ANY_VERSION)
#error "rangefilter has been tested on PostgreSQL 15 to 19 only; define RF_ANY_VERSION to try another version"
#endif

/* Until 16 postgres.h says how varlenas are laid out. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* RelFileNode became RelFileLocator in 16. */
#if PG_VERSION_NUM >= 160000
#include "storage/relfilelocator.h"
typedef RelFileLocator RfRelFile;

#define RF_RELFILE(relation) ((relation)->rd_locator)
#define RF_SET_RELFILE(file, tablespace, database, number) \
	((file)->spcOid = (tablespace), (file)->dbOid = (database), \
	 (file)->relNumber = (number))
#define RF_SAME_RELFILE(a, b) RelFileLocatorEquals(a, b)
#define RF_RELFILE_NUMBER(file) ((file)->relNumber)
#define RF_NEW_FILE_SUBID(relation) ((relation)->rd_newRelfilelocatorSubid)
#define RF_FIRST_FILE_SUBID(relation) ((relation)->rd_firstRelfilelocatorSubid)
#else
#include "storage/relfilenode.h"
typedef RelFileNode RfRelFile;

#define RF_RELFILE(relation) ((relation)->rd_node)
#define RF_SET_RELFILE(file, tablespace, database, number) \
	((file)->spcNode = (tablespace), (file)->dbNode = (database), \
	 (file)->relNode = (number))
#define RF_SAME_RELFILE(a, b) RelFileNodeEquals(a, b)
#define RF_RELFILE_NUMBER(file) ((file)->relNode)
#define RF_NEW_FILE_SUBID(relation) ((relation)->rd_newRelfilenodeSubid)
#define RF_FIRST_FILE_SUBID(relation) ((relation)->rd_firstRelfilenodeSubid)
#endif

/*
 * The columns of a table that a query reads, as bits from
 * FirstLowInvalidHeapAttributeNumber on, and the user as whom that is checked, if it is
 * not the current one.  False where nothing is checked.
 */
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
#if PG_VERSION_NUM >= 160000
#include "parser/parse_relation.h"
#endif

static inline bool
rf_required_columns(const Query *query, RangeTblEntry *rte, Oid *user,
					Bitmapset **columns)
{
#if PG_VERSION_NUM >= 160000
	RTEPermissionInfo *required;

	if (rte->perminfoindex == 0)
		return false;
	required = getRTEPermissionInfo(query->rteperminfos, rte);
#else
	RangeTblEntry *required = rte;

	(void) query;
#endif
	*user = required->checkAsUser;
	*columns = required->selectedCols;
	return (required->requiredPerms & ACL_SELECT) != 0;
}

/*
 * The user as whom a table of a query is read, or InvalidOid for the current one.
 */
static inline Oid
rf_checked_user(const Query *query, RangeTblEntry *rte)
{
#if PG_VERSION_NUM >= 160000
	return getRTEPermissionInfo(query->rteperminfos, rte)->checkAsUser;
#else
	(void) query;
	return rte->checkAsUser;
#endif
}

/*
 * A query on a table, whose only entry in the range table is given, needs no privileges; the
 * table is read as a user.  Since 16 the planner wants an entry that says so, and the executor
 * none: it is taken out of the plan.
 */
static inline void
rf_require_nothing(Query *query, RangeTblEntry *rte, Oid user)
{
#if PG_VERSION_NUM >= 160000
	rte->perminfoindex = 0;
	query->rteperminfos = NIL;
	addRTEPermissionInfo(&query->rteperminfos, rte)->checkAsUser = user;
#else
	(void) query;
	rte->requiredPerms = 0;
	rte->checkAsUser = user;
#endif
}

static inline void
rf_forget_permissions(PlannedStmt *stmt)
{
#if PG_VERSION_NUM >= 160000
	ListCell   *cell;

	if (list_length(stmt->permInfos) != 1 ||
		linitial_node(RTEPermissionInfo, stmt->permInfos)->requiredPerms != 0)
		return;
	stmt->permInfos = NIL;
	foreach(cell, stmt->rtable)
		lfirst_node(RangeTblEntry, cell)->perminfoindex = 0;
#else
	(void) stmt;
#endif
}

/* Which column of one row type each column of another one is, by names. */
#if PG_VERSION_NUM >= 160000
#define RF_ATTRMAP(desc, other) build_attrmap_by_name(desc, other, false)
#else
#define RF_ATTRMAP(desc, other) build_attrmap_by_name(desc, other)
#endif

/* ExecutorRun has one argument less since 18. */
#if PG_VERSION_NUM >= 180000
#define RF_EXECUTOR_RUN_PARAMS QueryDesc *desc, ScanDirection direction, uint64 count
#define RF_EXECUTOR_RUN_ARGS desc, direction, count
#else
#define RF_EXECUTOR_RUN_PARAMS QueryDesc *desc, ScanDirection direction, uint64 count, bool once
#define RF_EXECUTOR_RUN_ARGS desc, direction, count, once
#endif

/* Has this process a lock of exactly this mode? */
#if PG_VERSION_NUM >= 170000
#define RF_HOLDS_LOCK(tag, mode) LockHeldByMe(tag, mode, false)
#else
#define RF_HOLDS_LOCK(tag, mode) LockHeldByMe(tag, mode)
#endif

/* Files of relations that belong to no session. */
#if PG_VERSION_NUM >= 170000
#define RF_SMGR_OPEN(file) smgropen(file, INVALID_PROC_NUMBER)
#else
#define RF_SMGR_OPEN(file) smgropen(file, InvalidBackendId)
#endif

/*
 * An index method's routine: since 19 core keeps the pointer, until 18 it copies what
 * it points to, and frees that.
 */
#if PG_VERSION_NUM >= 190000
#define RF_RETURN_ROUTINE(routine) PG_RETURN_POINTER(routine)
#else
#define RF_RETURN_ROUTINE(routine) \
	PG_RETURN_POINTER(memcpy(palloc(sizeof(IndexAmRoutine)), routine, \
							 sizeof(IndexAmRoutine)))
#endif

/* A new row descriptor is complete; since 19 core has to be told. */
#if PG_VERSION_NUM >= 190000
#define RF_FINISH_DESC(desc) TupleDescFinalize(desc)
#else
#define RF_FINISH_DESC(desc) ((void) 0)
#endif

/* Tables in shared memory have one size since 19. */
#if PG_VERSION_NUM >= 190000
#define RF_SHARED_TABLE(name, size, control, flags) \
	ShmemInitHash(name, size, control, flags)
#else
#define RF_SHARED_TABLE(name, size, control, flags) \
	ShmemInitHash(name, size, size, control, flags)
#endif

/* Since 19 hints on a page need more than its shared lock, which may be refused. */
#if PG_VERSION_NUM >= 190000
#define RF_MAY_SET_HINTS(buffer) BufferBeginSetHintBits(buffer)
#define RF_HINTS_SET(buffer) BufferFinishSetHintBits(buffer, true, true)
#else
#define RF_MAY_SET_HINTS(buffer) true
#define RF_HINTS_SET(buffer) MarkBufferDirtyHint(buffer, true)
#endif

/* A page that has room for its checksum gets it: renamed in 19. */
#if PG_VERSION_NUM >= 190000
#define RF_SET_CHECKSUM(page, block) PageSetChecksum(page, block)
#else
#define RF_SET_CHECKSUM(page, block) PageSetChecksumInplace(page, block)
#endif

/* Conversions between types of time that report what has no counterpart. */
#if PG_VERSION_NUM >= 190000
#include "nodes/miscnodes.h"
typedef ErrorSaveContext RfOverflow;

#define RF_NO_OVERFLOW {.type = T_ErrorSaveContext}
#define RF_CONVERT(conversion, value, overflow) \
	conversion##_safe(value, (Node *) (overflow))
#define RF_OVERFLOWED(overflow) ((overflow).error_occurred)
#else
typedef int RfOverflow;

#define RF_NO_OVERFLOW 0
#define RF_CONVERT(conversion, value, overflow) \
	conversion##_opt_overflow(value, overflow)
#define RF_OVERFLOWED(overflow) ((overflow) != 0)
#endif

/* A parallel scan has options since 19. */
#if PG_VERSION_NUM >= 190000
#define RF_BEGIN_PARALLEL_SCAN(heap, scan) \
	table_beginscan_parallel(heap, scan, SO_NONE)
#else
#define RF_BEGIN_PARALLEL_SCAN(heap, scan) table_beginscan_parallel(heap, scan)
#endif

/* From 16 on, HOT updates go on although the indexed column changes. */
#if PG_VERSION_NUM >= 160000
#define RF_SET_SUMMARIZING(routine) ((routine)->amsummarizing = true)
#define RF_HOT_UPDATES_INSERT true
#else
#define RF_SET_SUMMARIZING(routine) ((void) 0)
#define RF_HOT_UPDATES_INSERT false
#endif

/* An access method hears of the end of a statement's inserts. */
#if PG_VERSION_NUM >= 170000
#define RF_SET_INSERT_CLEANUP(routine, cleanup) ((routine)->aminsertcleanup = (cleanup))
#else
#define RF_SET_INSERT_CLEANUP(routine, cleanup) ((void) 0)
#endif

/* Checks of ownership and rights were unified in 16. */
#if PG_VERSION_NUM >= 160000
#define RF_OWNS_RELATION(relid, userid) \
	object_ownercheck(RelationRelationId, relid, userid)
#define RF_MAY_USE_SCHEMA(schema, userid) \
	(object_aclcheck(NamespaceRelationId, schema, userid, ACL_USAGE) == ACLCHECK_OK)
#else
#define RF_OWNS_RELATION(relid, userid) pg_class_ownercheck(relid, userid)
#define RF_MAY_USE_SCHEMA(schema, userid) \
	(pg_namespace_aclcheck(schema, userid, ACL_USAGE) == ACLCHECK_OK)
#endif

/* Shared transaction state: renamed in 17. */
#if PG_VERSION_NUM >= 170000
#define RF_TRANSAM TransamVariables
#else
#define RF_TRANSAM ShmemVariableCache
#endif

/*
 * old_snapshot_threshold went away in 17.  Rows may have been removed that an expired
 * snapshot sees: the error for one that reads a page of a relation which has changed
 * since; the error for one that reads a table.
 */
#if PG_VERSION_NUM >= 170000
#define RF_SNAPSHOTS_EXPIRE() false
#define RF_REFUSE_EXPIRED(snapshot, relation, page) ((void) 0)
#define RF_REFUSE_ALL_EXPIRED(snapshot, table) ((void) 0)
#else
#include "storage/bufmgr.h"
#include "utils/snapmgr.h"
#define RF_SNAPSHOTS_EXPIRE() OldSnapshotThresholdActive()
#define RF_REFUSE_EXPIRED(snapshot, relation, page) \
	TestForOldSnapshot(snapshot, relation, page)
#define RF_REFUSE_ALL_EXPIRED(snapshot, table) \
	(IsMVCCSnapshot(snapshot) ? TestForOldSnapshot_impl(snapshot, table) : (void) 0)
#endif

/* Vars know which outer joins can make them NULL since 16. */
#if PG_VERSION_NUM >= 160000
#define RF_CLEAR_NULLING_RELS(var) ((var)->varnullingrels = NULL)
#else
#define RF_CLEAR_NULLING_RELS(var) ((void) 0)
#endif

/* Reducing outer joins makes a new Query since 16. */
#define RF_PLANNER_COPIES_QUERY (PG_VERSION_NUM >= 160000)

/* A run of the planner keeps what extensions want to remember, since 19. */
#define RF_PLANNER_KEEPS_STATE (PG_VERSION_NUM >= 190000)

/*
 * Since 19 planners are told which EXPLAIN they plan for.  The parameters of
 * planner_hook, the arguments to hand them on, and those where there is no EXPLAIN.
 */
#if PG_VERSION_NUM >= 190000
#define RF_PLANNER_PARAMS \
	Query *parse, const char *query_string, int cursor_options, \
	ParamListInfo bound_params, ExplainState *explain
#define RF_PLANNER_ARGS \
	parse, query_string, cursor_options, bound_params, explain
#define RF_PLAN_QUERY(planner, parse, query_string, cursor_options, bound_params) \
	(planner) (parse, query_string, cursor_options, bound_params, NULL)
#else
#define RF_PLANNER_PARAMS \
	Query *parse, const char *query_string, int cursor_options, \
	ParamListInfo bound_params
#define RF_PLANNER_ARGS \
	parse, query_string, cursor_options, bound_params
#define RF_PLAN_QUERY(planner, parse, query_string, cursor_options, bound_params) \
	(planner) (parse, query_string, cursor_options, bound_params)
#endif

/*
 * The hook that is called when a relation has been looked up.  Until 18 its table is
 * among the arguments; since 19 it is called for what is no table, too.
 */
#if PG_VERSION_NUM >= 190000
#define RF_RELATION_HOOK build_simple_rel_hook
#define RfRelationHook build_simple_rel_hook_type
#define RF_RELATION_PARAMS PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte
#define RF_RELATION_ARGS root, rel, rte
#else
#define RF_RELATION_HOOK get_relation_info_hook
#define RfRelationHook get_relation_info_hook_type
#define RF_RELATION_PARAMS \
	PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel
#define RF_RELATION_ARGS root, relid, inhparent, rel
#endif

/* What the executor counts of a node; since 19 other things are measured, too. */
#if PG_VERSION_NUM >= 190000
#define RfNodeCounts NodeInstrumentation
#else
#define RfNodeCounts Instrumentation
#endif

/* The estimate of an array's length asks statistics since 17. */
#if PG_VERSION_NUM >= 170000
#define RF_ESTIMATE_ARRAY_LENGTH(root, array) estimate_array_length(root, array)
#else
#define RF_ESTIMATE_ARRAY_LENGTH(root, array) estimate_array_length(array)
#endif

/* Settings, with values, by which maintenance is not ended by a timeout that came in 17. */
#if PG_VERSION_NUM >= 170000
#define RF_NO_TRANSACTION_TIMEOUT {"transaction_timeout", "0"},
#else
#define RF_NO_TRANSACTION_TIMEOUT
#endif

/* Since 19 EXPLAIN puts in front of a subplan's name what kind of subplan it is. */
#if PG_VERSION_NUM >= 190000
#define RF_SET_INIT_PLAN(subplan) ((subplan)->isInitPlan = true)
#else
#define RF_SET_INIT_PLAN(subplan) ((void) 0)
#endif

/* EXPLAIN (GENERIC_PLAN): parameters have no values. */
#if PG_VERSION_NUM >= 160000
#define RF_EXPLAIN_GENERIC(eflags) (((eflags) & EXEC_FLAG_EXPLAIN_GENERIC) != 0)
#else
#define RF_EXPLAIN_GENERIC(eflags) false
#endif

/* How an Append refers to the run-time pruning of its members. */
#if PG_VERSION_NUM >= 180000
#define RF_APPEND_PRUNES(append) ((append)->part_prune_index >= 0)
#else
#define RF_APPEND_PRUNES(append) ((append)->part_prune_info != NULL)
#endif

/* Joins of which a row of the outer side that matches nothing is no result. */
#if PG_VERSION_NUM >= 180000
#define RF_DROPS_OUTER(jointype) \
	((jointype) == JOIN_INNER || (jointype) == JOIN_SEMI || \
	 (jointype) == JOIN_RIGHT || (jointype) == JOIN_RIGHT_ANTI || \
	 (jointype) == JOIN_RIGHT_SEMI)
#elif PG_VERSION_NUM >= 160000
#define RF_DROPS_OUTER(jointype) \
	((jointype) == JOIN_INNER || (jointype) == JOIN_SEMI || \
	 (jointype) == JOIN_RIGHT || (jointype) == JOIN_RIGHT_ANTI)
#else
#define RF_DROPS_OUTER(jointype) \
	((jointype) == JOIN_INNER || (jointype) == JOIN_SEMI || \
	 (jointype) == JOIN_RIGHT)
#endif

/* The record that makes standbys cancel queries, xl_btree_reuse_page. */
#if PG_VERSION_NUM >= 160000
#define RF_FILL_CONFLICT(record, relation, number, xid) \
	((record).locator = (relation)->rd_locator, \
	 (record).block = (number), \
	 (record).snapshotConflictHorizon = (xid), \
	 (record).isCatalogRel = false)
#else
#define RF_FILL_CONFLICT(record, relation, number, xid) \
	((record).node = (relation)->rd_node, \
	 (record).block = (number), \
	 (record).latestRemovedFullXid = (xid))
#endif

/* What amestimateparallelscan is told. */
#if PG_VERSION_NUM >= 180000
#define RF_ESTIMATE_PARALLEL_ARGS Relation index, int nkeys, int norderbys
#elif PG_VERSION_NUM >= 170000
#define RF_ESTIMATE_PARALLEL_ARGS int nkeys, int norderbys
#else
#define RF_ESTIMATE_PARALLEL_ARGS void
#endif

/* Where a parallel index scan's shared state has what is the method's own. */
#if PG_VERSION_NUM >= 180000
#define RF_PARALLEL_OFFSET(parallel_scan) ((parallel_scan)->ps_offset_am)
#else
#define RF_PARALLEL_OFFSET(parallel_scan) ((parallel_scan)->ps_offset)
#endif

/* EXPLAIN ANALYZE counts searches since 18. */
#if PG_VERSION_NUM >= 180000
#include "access/genam.h"
#define RF_COUNT_SEARCH(scan) \
	((void) ((scan)->instrument != NULL && (scan)->instrument->nsearches++))
#else
#define RF_COUNT_SEARCH(scan) ((void) 0)
#endif

/* Statistics of a relation that wait to be passed on: renamed in 16. */
#if PG_VERSION_NUM >= 160000
#define RF_PENDING_ID(pending) ((pending)->id)
#define RF_PENDING_SCANS(pending) ((pending)->counts.numscans)
#else
#define RF_PENDING_ID(pending) ((pending)->t_id)
#define RF_PENDING_SCANS(pending) ((pending)->t_counts.t_numscans)
#endif

/*
 * Moves a horizon to the deletion of a tuple that is removed, if a snapshot may have seen the
 * tuple.  Renamed in 16.
 */
#if PG_VERSION_NUM >= 160000
#define RF_ADVANCE_CONFLICT_HORIZON(tuple, horizon) \
	HeapTupleHeaderAdvanceConflictHorizon(tuple, horizon)
#else
#define RF_ADVANCE_CONFLICT_HORIZON(tuple, horizon) \
	HeapTupleHeaderAdvanceLatestRemovedXid(tuple, horizon)
#endif

/* VACUUM's pauses, since 18 also those of ANALYZE. */
#if PG_VERSION_NUM >= 180000
#define RF_VACUUM_DELAY() vacuum_delay_point(false)
#else
#define RF_VACUUM_DELAY() vacuum_delay_point()
#endif

/* The settings of VACUUM's pauses have changed. */
#if PG_VERSION_NUM >= 160000
#define RF_VACUUM_COSTS_CHANGED() VacuumUpdateCosts()
#else
#define RF_VACUUM_COSTS_CHANGED() ((void) (VacuumCostActive = VacuumCostDelay > 0))
#endif

/*
 * Since 17 maintenance runs functions of users with a search path that is safe.  Before, we do so
 * where the caller is not the owner, as whom the functions run.
 */
#if PG_VERSION_NUM >= 170000
#define RF_RESTRICT_SEARCH_PATH(caller, owner) RestrictSearchPath()
#else
#define RF_RESTRICT_SEARCH_PATH(caller, owner) \
	(has_privs_of_role(caller, owner) ? 0 : \
	 set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, \
					   GUC_ACTION_SAVE, true, 0, false))
#endif

/* The relation of a range table's entry that is not a statement's target. */
#if PG_VERSION_NUM >= 180000
#define RF_RANGE_TABLE_RELATION(estate, rti) \
	ExecGetRangeTableRelation(estate, rti, false)
#else
#define RF_RANGE_TABLE_RELATION(estate, rti) \
	ExecGetRangeTableRelation(estate, rti)
#endif

/* Does a collation sort as memcmp() does?  None at all does not. */
#if PG_VERSION_NUM >= 180000
#define RF_COLLATES_AS_C(collation) \
	(OidIsValid(collation) && \
	 pg_newlocale_from_collation(collation)->collate_is_c)
#else
#define RF_COLLATES_AS_C(collation) lc_collate_is_c(collation)
#endif

/* ICU's collator of a locale that is ICU's. */
#if PG_VERSION_NUM >= 190000
#define RF_UCOLLATOR(locale) ((locale)->icu.ucol)
#else
#define RF_UCOLLATOR(locale) ((locale)->info.icu.ucol)
#endif

/* Paths of kinds that were switched off: counted apart from costs since 18. */
#if PG_VERSION_NUM >= 180000
#define RF_COPY_DISABLED(to, from) \
	((to)->disabled_nodes = (from)->disabled_nodes)
#else
#define RF_COPY_DISABLED(to, from) ((void) 0)
#endif

/*
 * Since 18 an ordered index method says which of its strategies is "<"; ours
 * has btree's.  It does not say what its strategies mean to the planner
 * (amtranslatestrategy): equivalence classes would then have our operator
 * families beside btree's, also for tables without such an index.
 */
#if PG_VERSION_NUM >= 180000
#include "access/nbtree.h"
#define RF_SET_COMPARISONS(routine) \
	((routine)->amtranslatecmptype = bttranslatecmptype)
#else
#define RF_SET_COMPARISONS(routine) ((void) 0)
#endif

/* INSERT ... ON CONFLICT: by unique btrees alone until 17. */
#define RF_ON_CONFLICT_BY_ANY (PG_VERSION_NUM >= 180000)

/* EXPLAIN's headers were split in 18. */
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#else
#include "commands/explain.h"
#endif

#endif							/* RANGEFILTER_COMPAT_H */
