/*-------------------------------------------------------------------------
 *
 * deferred_lock.c
 *	  Locks of the partitions of deferred tables, and commands that they refuse.
 *
 * Core locks all tables of a plan before it takes the snapshot that the plan is run
 * with.  Otherwise another session could TRUNCATE a table in between, and the query would
 * see neither the old rows nor the new ones.  The partitions of a deferred table are not
 * in the plan, so they are locked here, before the plan is started; then a snapshot
 * that was taken for this statement alone is taken anew.  Other snapshots stay.
 * They are those that core takes before it locks the partitions, too: of EXECUTE and of
 * DECLARE CURSOR, for example.
 *
 * The session's own commands are not kept off by its locks.  Core refuses them for tables
 * that are open.  A list of the scans under way does that for partitions that are not.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/partition.h"
#include "catalog/pg_inherits.h"
#include "core/core.h"
#include "lib/ilist.h"
#include "partitioning/partdesc.h"
#include "planner/deferred/deferred.h"
#include "planner/skip/skip.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* A deferred scan that has been started in this session. */
typedef struct RfLiveScan
{
	dlist_node	node;
	Oid			relid;			/* the partitioned table */
} RfLiveScan;

static dlist_head live_scans = DLIST_STATIC_INIT(live_scans);

/*
 * Locks the partitions of a table, at all levels, that a scan may read.  The caller has
 * locked the table.
 */
static void
lock_partitions(Oid relid)
{
	Relation	relation = table_open(relid, NoLock);
	PartitionDesc partdesc = RelationGetPartitionDesc(relation, true);

	if (memchr(partdesc->is_leaf, false, partdesc->nparts) == NULL)
	{
		for (int i = 0; i < partdesc->nparts; i++)
			LockRelationOid(partdesc->oids[i], AccessShareLock);
	}
	else
		list_free(find_all_inheritors(relid, AccessShareLock, NULL));
	table_close(relation, NoLock);
}

/*
 * Locks what a plan that is about to be started may read by its deferred scans.
 */
void
rf_lock_deferred(QueryDesc *desc)
{
	RfGuard		guard;
	ListCell   *cell;

	if (!rf_find_guard(desc->plannedstmt, &guard) || guard.deferred == NIL)
		return;
	foreach(cell, guard.deferred)
		lock_partitions(lfirst_oid(cell));
	if (rf_planning == NULL && rf_core_owns_snapshot(desc))
		rf_core_refresh_snapshot(desc);
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
 * Notes that a deferred scan of a table has been started, until the executor's state
 * goes.
 */
void
rf_note_deferred_scan(EState *estate, Relation table)
{
	RfLiveScan *scan = MemoryContextAlloc(estate->es_query_cxt, sizeof(RfLiveScan));
	MemoryContextCallback *callback = MemoryContextAlloc(estate->es_query_cxt,
														 sizeof(MemoryContextCallback));

	scan->relid = RelationGetRelid(table);
	callback->func = forget_scan;
	callback->arg = scan;
	dlist_push_head(&live_scans, &scan->node);
	MemoryContextRegisterResetCallback(estate->es_query_cxt, callback);
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
