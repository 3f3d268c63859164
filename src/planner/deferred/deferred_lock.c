/*-------------------------------------------------------------------------
 *
 * deferred_lock.c
 *	  Locks of the partitions of deferred tables, and what happens to those that are
 *	  not locked.
 *
 * Core locks all tables of a plan before it takes the snapshot that the plan is run
 * with.  Otherwise another session could TRUNCATE a table in between, and the query would
 * see neither the old rows nor the new ones.  The partitions of a deferred table are not
 * in the plan.
 *
 * Where the snapshot was taken for the statement alone, it is taken anew when the plan is
 * started, and the number of invalidations seen so far is noted before.  Partitions are
 * locked when they are read.  A transaction that gives a partition another file, or attaches
 * it, becomes visible before its invalidations are sent, and these come before its locks are
 * released.  So where it is not visible to the snapshot, its invalidation comes after the
 * number was noted, and has been seen by whoever has locked, or asked, the new file.  Then
 * the partition's row in pg_class tells whether its file is the one of the snapshot.
 *
 * With other snapshots (of EXECUTE, DECLARE CURSOR, REPEATABLE READ and others) all partitions
 * are locked when the plan is started, as core locks them after these snapshots, too.
 *
 * The session's own commands are not kept off by its locks.  Core refuses them for tables
 * that are open.  A list of the scans under way does that for partitions that are not.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "compat.h"
#include "core/core.h"
#include "lib/ilist.h"
#include "partitioning/partdesc.h"
#include "planner/deferred/deferred.h"
#include "planner/knowledge/knowledge.h"
#include "planner/skip/skip.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

/* A deferred scan that has been started in this session. */
typedef struct RfLiveScan
{
	dlist_node	node;
	Oid			relid;			/* the partitioned table */
} RfLiveScan;

static dlist_head live_scans = DLIST_STATIC_INIT(live_scans);

/* For the plan that is being started. */
static RfStarting starting;

/*
 * Return true if a table, which is locked, has no partitions that are partitioned
 * themselves.
 */
static bool
is_flat(Oid relid)
{
	Relation	relation = table_open(relid, NoLock);
	PartitionDesc partdesc = RelationGetPartitionDesc(relation, true);
	bool		flat = memchr(partdesc->is_leaf, false, partdesc->nparts) == NULL;

	table_close(relation, NoLock);
	return flat;
}

/*
 * Locks all partitions of a table, at all levels.  The caller has locked the table.
 */
static void
lock_partitions(Oid relid)
{
	Relation	relation;
	PartitionDesc partdesc;

	if (!is_flat(relid))
	{
		list_free(find_all_inheritors(relid, AccessShareLock, NULL));
		return;
	}
	relation = table_open(relid, NoLock);
	partdesc = RelationGetPartitionDesc(relation, true);
	for (int i = 0; i < partdesc->nparts; i++)
		LockRelationOid(partdesc->oids[i], AccessShareLock);
	table_close(relation, NoLock);
}

/*
 * Return true if partitions of the plan's deferred tables may be locked when they are
 * read.  Rows of a query that locks or changes some are fetched again by starting the
 * subqueries' plans once more, which must find the locks taken.
 */
static bool
may_lock_late(const QueryDesc *desc, List *tables)
{
	ListCell   *cell;

	if (desc->operation != CMD_SELECT || desc->plannedstmt->hasModifyingCTE ||
		desc->plannedstmt->rowMarks != NIL || RecoveryInProgress() ||
		!rf_core_owns_snapshot(desc))
		return false;
	foreach(cell, tables)
	{
		if (!is_flat(lfirst_oid(cell)))
			return false;
	}
	return true;
}

/*
 * Prepares a plan that is about to be started, if it has deferred scans.  Returns what was
 * done for the plan whose start this one is nested in.
 */
RfStarting
rf_prepare_deferred(QueryDesc *desc, int eflags)
{
	RfStarting	outer = starting;
	RfGuard		guard;
	ListCell   *cell;

	memset(&starting, 0, sizeof(starting));
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0 ||
		!rf_find_guard(desc->plannedstmt, &guard) || guard.deferred == NIL)
		return outer;
	starting.locks_late = rf_planning == NULL && may_lock_late(desc, guard.deferred);
	if (!starting.locks_late)
	{
		foreach(cell, guard.deferred)
			lock_partitions(lfirst_oid(cell));
	}
	AcceptInvalidationMessages();
	starting.changes = rf_changes();
	if (rf_planning == NULL && rf_core_owns_snapshot(desc))
		rf_core_refresh_snapshot(desc);
	starting.snapshot = desc->snapshot;
	return outer;
}

/*
 * The plan has been started, or that has failed.
 */
void
rf_deferred_started(RfStarting outer)
{
	starting = outer;
}

/*
 * Memory context callback: a scan has ended.
 */
static void
forget_scan(void *arg)
{
	dlist_delete(&((RfLiveScan *) arg)->node);
}

/*
 * Notes that a deferred scan has been started, until the executor's state goes.  Where nothing
 * was prepared for the plan's snapshot, locks all partitions now.
 */
void
rf_note_deferred_scan(RfDeferredState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	RfLiveScan *scan = MemoryContextAlloc(estate->es_query_cxt, sizeof(RfLiveScan));
	MemoryContextCallback *callback = MemoryContextAlloc(estate->es_query_cxt,
														 sizeof(MemoryContextCallback));

	scan->relid = state->plan.relid;
	callback->func = forget_scan;
	callback->arg = scan;
	dlist_push_head(&live_scans, &scan->node);
	MemoryContextRegisterResetCallback(estate->es_query_cxt, callback);

	if (starting.snapshot == NULL || starting.snapshot != estate->es_snapshot)
		lock_partitions(state->plan.relid);
	else
	{
		state->locks_late = starting.locks_late;
		state->checked = starting.changes;
	}
}

/*
 * The row of pg_class of a relation that a snapshot sees; sets *relfilenode and *partition.
 * False if there is none.
 */
static bool
read_class(Oid relid, Snapshot snapshot, Oid *relfilenode, bool *partition)
{
	Relation	catalog = table_open(RelationRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	row;

	ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(catalog, ClassOidIndexId, true, snapshot, 1, &key);
	row = systable_getnext(scan);
	if (row != NULL)
	{
		*relfilenode = ((Form_pg_class) GETSTRUCT(row))->relfilenode;
		*partition = ((Form_pg_class) GETSTRUCT(row))->relispartition;
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return row != NULL;
}

/*
 * Raises an error if a partition has got another file, or was attached, by a transaction that
 * the snapshot does not see.
 */
static void
check_partition(Oid relid, Snapshot snapshot)
{
	HeapTuple	row = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	TransactionId xmin;
	Oid			file;
	Oid			file_then;
	bool		partition_then;

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for relation %u", relid);
	xmin = HeapTupleHeaderGetXmin(row->t_data);
	file = ((Form_pg_class) GETSTRUCT(row))->relfilenode;
	ReleaseSysCache(row);
	if (!TransactionIdIsNormal(xmin) || TransactionIdIsCurrentTransactionId(xmin) ||
		!XidInMVCCSnapshot(xmin, snapshot))
		return;
	if (read_class(relid, snapshot, &file_then, &partition_then) &&
		file_then == file && partition_then)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not read partition \"%s\" because it was rewritten, truncated or attached while the query ran",
					get_rel_name(relid)),
			 errhint("Run the query again.")));
}

/*
 * Checks the partitions, all or the one with this OID, if there is one.
 */
static void
check_partitions(const RfDeferredState *state, Oid relid)
{
	for (int i = 0; i < state->nmembers; i++)
	{
		Oid			member = rf_member_oid(state, i);

		if (!OidIsValid(relid) || member == relid)
			check_partition(member, state->css.ss.ps.state->es_snapshot);
	}
}

/*
 * To be called when partitions have been asked, or one has been locked: raises an error if a
 * partition has not the file any more that it had for the scan's snapshot.  Those are checked for
 * which an invalidation has come since the last check; only some are remembered, beyond these
 * all partitions count.
 */
void
rf_check_partitions(RfDeferredState *state)
{
	uint64		now = rf_changes();

	if (!state->locks_late || now == state->checked)
		return;
	if (now - state->checked > RF_RECENT_CHANGES)
		check_partitions(state, InvalidOid);
	else
	{
		for (uint64 i = state->checked + 1; i <= now; i++)
			check_partitions(state, rf_recent_change(i));
	}
	state->checked = now;
}

/*
 * Return true if a relation is a partition, at any level, of a table.
 */
static bool
is_partition_of(Oid relid, Oid table)
{
	while (OidIsValid(relid) && get_rel_relispartition(relid))
	{
		relid = get_partition_parent(relid, true);
		if (relid == table)
			return true;
	}
	return false;
}

/*
 * Raises an error if a relation that is truncated, altered or dropped is a partition of a
 * table that a deferred scan of this session reads.
 */
void
rf_refuse_deferred(Oid relid, const char *command)
{
	dlist_iter	iter;

	dlist_foreach(iter, &live_scans)
	{
		const RfLiveScan *scan = dlist_container(RfLiveScan, node, iter.cur);

		if (is_partition_of(relid, scan->relid))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("cannot %s \"%s\" because it is being used by active queries in this session",
							command, get_rel_name(relid))));
	}
}
