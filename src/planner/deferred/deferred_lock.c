/*-------------------------------------------------------------------------
 *
 * deferred_lock.c
 *	  Locks of the partitions of deferred tables, and what happens to those that are
 *	  not locked.
 *
 * Core locks all tables of a plan when it is started.  The partitions of a deferred
 * table are not in the plan; they are locked when they are read.  Until then another session
 * can TRUNCATE one, and the query would see neither the old rows nor the new ones.
 *
 * A transaction that does so becomes visible before its invalidations are sent, and these come
 * before its locks are released.  So if the scan's snapshot does not see it, its
 * invalidations come after the snapshot was taken, and have been seen by whoever has locked
 * the partition, or asked the index in its new file.  Those that came after the snapshot are known
 * (rf_changes_before()).  The partitions they are for must have the file and the columns that the
 * snapshot sees.
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
#include "catalog/partition.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
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

/*
 * The last check of a table's partitions.  The same transactions are visible to snapshots that
 * have all of this in common; one of a later command sees more of the session's own changes.
 */
static struct
{
	Oid			relid;
	int			nmembers;
	TransactionId xmin;
	TransactionId xmax;
	uint32		xcnt;
	int32		subxcnt;
	CommandId	curcid;
	uint64		checked;		/* rf_changes() then */
}			last_check;

/*
 * Locks the partitions of a table that are partitioned themselves, at all levels, so that
 * none is detached from them.  The caller has locked the table.
 */
static void
lock_partitioned(Oid relid)
{
	Relation	relation = table_open(relid, AccessShareLock);
	PartitionDesc partdesc = RelationGetPartitionDesc(relation, true);
	List	   *partitioned = NIL;
	ListCell   *cell;

	for (int i = 0; i < partdesc->nparts; i++)
	{
		if (!partdesc->is_leaf[i])
			partitioned = lappend_oid(partitioned, partdesc->oids[i]);
	}
	table_close(relation, NoLock);
	foreach(cell, partitioned)
		lock_partitioned(lfirst_oid(cell));
}

/*
 * Prepares a plan that is about to be started, if it has deferred scans.  A snapshot that is
 * the statement's own is taken anew if something has changed since, so that the statement sees
 * it.  Return true if the statement may start over while it runs.
 */
bool
rf_prepare_deferred(QueryDesc *desc, int eflags)
{
	RfGuard		guard;
	ListCell   *cell;

	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0 || rf_planning != NULL ||
		!rf_find_guard(desc->plannedstmt, &guard) || guard.deferred == NIL)
		return false;
	if (!rf_core_owns_snapshot(desc))
		return rf_may_start_over(desc, eflags);
	foreach(cell, guard.deferred)
		lock_partitioned(lfirst_oid(cell));
	AcceptInvalidationMessages();
	if (rf_changes_before(desc->snapshot) != rf_changes())
		rf_core_refresh_snapshot(desc);
	return rf_may_start_over(desc, eflags);
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
 * The number of invalidations (rf_changes()) up to which nothing need be checked for a scan.
 */
static uint64
checked_before(const RfDeferredState *state)
{
	const SnapshotData *snapshot = state->css.ss.ps.state->es_snapshot;
	uint64		number = rf_changes_before(snapshot);

	if (last_check.relid == state->plan.relid &&
		last_check.nmembers == state->nmembers &&
		last_check.xmin == snapshot->xmin && last_check.xmax == snapshot->xmax &&
		last_check.xcnt == snapshot->xcnt && last_check.subxcnt == snapshot->subxcnt &&
		last_check.curcid <= snapshot->curcid)
		number = Max(number, last_check.checked);
	return number;
}

/*
 * Notes such a check, up to the invalidation with this number.
 */
static void
note_check(const RfDeferredState *state, uint64 checked)
{
	const SnapshotData *snapshot = state->css.ss.ps.state->es_snapshot;

	last_check.relid = state->plan.relid;
	last_check.nmembers = state->nmembers;
	last_check.xmin = snapshot->xmin;
	last_check.xmax = snapshot->xmax;
	last_check.xcnt = snapshot->xcnt;
	last_check.subxcnt = snapshot->subxcnt;
	last_check.curcid = snapshot->curcid;
	last_check.checked = checked;
}

/*
 * Notes that a deferred scan has been started, until the executor's state goes.  Its partitions are
 * known.
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
	state->checked = checked_before(state);
}

/*
 * Return true if a row of a catalog, which a snapshot sees, is the current one.
 */
static bool
is_current(HeapTuple row)
{
	TransactionId xmax;

	if ((row->t_data->t_infomask & HEAP_XMAX_INVALID) != 0 ||
		HEAP_XMAX_IS_LOCKED_ONLY(row->t_data->t_infomask))
		return true;
	xmax = HeapTupleHeaderGetUpdateXid(row->t_data);
	return !TransactionIdIsCurrentTransactionId(xmax) && !TransactionIdDidCommit(xmax);
}

/*
 * Begins to read the rows of a catalog that belong to a relation, as a snapshot sees them.
 */
static SysScanDesc
read_catalog(Relation catalog, Oid index, AttrNumber column, Oid relid, Snapshot snapshot)
{
	ScanKeyData key;

	ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	return systable_beginscan(catalog, index, true, snapshot, 1, &key);
}

/*
 * Return true if a relation has the file that it has for a snapshot, or the snapshot sees no such
 * relation, and so none of its rows.
 */
static bool
has_same_file(Oid relid, Snapshot snapshot)
{
	Relation	catalog = table_open(RelationRelationId, AccessShareLock);
	SysScanDesc scan = read_catalog(catalog, ClassOidIndexId, Anum_pg_class_oid, relid, snapshot);
	HeapTuple	then = systable_getnext(scan);
	bool		same = then == NULL;

	if (then != NULL)
	{
		Form_pg_class class = (Form_pg_class) GETSTRUCT(then);
		HeapTuple	now = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));

		if (!HeapTupleIsValid(now))
			elog(ERROR, "cache lookup failed for relation %u", relid);
		same = class->relfilenode == ((Form_pg_class) GETSTRUCT(now))->relfilenode;
		ReleaseSysCache(now);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return same;
}

/*
 * Return true if a relation's columns are as a snapshot sees them.  They are not if it is a partition
 * only now: they are inherited since.  If one is NOT NULL only now, the planner does not look for
 * the NULL that the snapshot may see.
 */
static bool
has_same_columns(Oid relid, Snapshot snapshot)
{
	Relation	catalog = table_open(AttributeRelationId, AccessShareLock);
	SysScanDesc scan = read_catalog(catalog, AttributeRelidNumIndexId, Anum_pg_attribute_attrelid,
									relid, snapshot);
	bool		same = true;
	HeapTuple	row;

	while (same && (row = systable_getnext(scan)) != NULL)
		same = is_current(row);
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return same;
}

/*
 * Looks for a partition that has changed, among all or the one with this OID, if it is one.
 * Returns InvalidOid if there is none.
 */
static Oid
find_changed(const RfDeferredState *state, Oid relid)
{
	Snapshot	snapshot = state->css.ss.ps.state->es_snapshot;
	ListCell   *cell;

	foreach(cell, state->levels)
	{
		PartitionDesc partdesc = ((const RfDeferredLevel *) lfirst(cell))->partdesc;

		for (int i = 0; i < partdesc->nparts; i++)
		{
			Oid			oid = partdesc->oids[i];

			if ((!OidIsValid(relid) || oid == relid) &&
				!(has_same_file(oid, snapshot) && has_same_columns(oid, snapshot)))
				return oid;
		}
	}
	return InvalidOid;
}

/*
 * To be called when partitions have been asked or planned, or one has been locked.  Return true if
 * all partitions are as the scan's snapshot sees them.  Otherwise the statement starts over, and the
 * caller returns no row; or raises an error.  Those partitions are looked at for which an
 * invalidation has come since the last check; only some are remembered, beyond these all
 * partitions count.
 */
bool
rf_check_partitions(RfDeferredState *state)
{
	uint64		now = rf_changes();
	Oid			changed = InvalidOid;

	if (now == state->checked)
		return true;
	if (now - state->checked <= RF_RECENT_CHANGES)
	{
		for (uint64 i = state->checked + 1; i <= now && !OidIsValid(changed); i++)
			changed = find_changed(state, rf_recent_change(i));
	}

	/* More may have come while the catalogs were read. */
	if (!OidIsValid(changed) && rf_changes() - state->checked > RF_RECENT_CHANGES)
		changed = find_changed(state, InvalidOid);
	if (OidIsValid(changed))
	{
		rf_start_over(state, changed);
		return false;
	}
	state->checked = now;
	note_check(state, now);
	return true;
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

/*
 * The same for a constraint that is made or altered; its row may have been written by the
 * current command.
 */
void
rf_refuse_constraint(Oid constraint)
{
	Relation	catalog;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	row;

	if (dlist_is_empty(&live_scans))
		return;
	catalog = table_open(ConstraintRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_constraint_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(constraint));
	scan = systable_beginscan(catalog, ConstraintOidIndexId, true, SnapshotSelf, 1, &key);
	row = systable_getnext(scan);
	if (row != NULL)
		rf_refuse_deferred(((Form_pg_constraint) GETSTRUCT(row))->conrelid, "ALTER TABLE");
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
}
