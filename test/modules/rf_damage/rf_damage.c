/*-------------------------------------------------------------------------
 *
 * rf_damage.c
 *	  Reads and overwrites bytes of an index's pages, inserts entries, and holds locks of its
 *	  pages and runs, and the one that whoever takes a predicate lock needs.
 *
 * The bytes are written to shared buffers.  So core does not look at the page
 * header, as it does when it reads a page from a file, and no checksum tells.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/index.h"
#include "compat.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/itemptr.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/wait_event.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(rf_page);
PG_FUNCTION_INFO_V1(rf_damage);
PG_FUNCTION_INFO_V1(rf_hold_runs);
PG_FUNCTION_INFO_V1(rf_hold_page);
PG_FUNCTION_INFO_V1(rf_hold_predicate_locks);
PG_FUNCTION_INFO_V1(rf_insert);

/*
 * Opens an index.  Pins and locks a block of it, which must exist.
 */
static Buffer
lock_block(Oid oid, BlockNumber block, int lockmode, Relation *index)
{
	Buffer		buffer;

	*index = relation_open(oid, AccessShareLock);
	if (block >= RelationGetNumberOfBlocks(*index))
		elog(ERROR, "there is no block %u", block);
	buffer = ReadBuffer(*index, block);
	LockBuffer(buffer, lockmode);
	return buffer;
}

/*
 * rf_page(index regclass, block int) returns bytea
 */
Datum
rf_page(PG_FUNCTION_ARGS)
{
	bytea	   *result = palloc(VARHDRSZ + BLCKSZ);
	Relation	index;
	Buffer		buffer = lock_block(PG_GETARG_OID(0), PG_GETARG_INT32(1),
									BUFFER_LOCK_SHARE, &index);

	SET_VARSIZE(result, VARHDRSZ + BLCKSZ);
	memcpy(VARDATA(result), BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	relation_close(index, AccessShareLock);
	PG_RETURN_BYTEA_P(result);
}

/*
 * rf_damage(index regclass, block int, at int, bytes bytea)
 */
Datum
rf_damage(PG_FUNCTION_ARGS)
{
	int			at = PG_GETARG_INT32(2);
	bytea	   *bytes = PG_GETARG_BYTEA_PP(3);
	int			len = VARSIZE_ANY_EXHDR(bytes);
	Relation	index;
	Buffer		buffer;

	if (at < 0 || at + len > BLCKSZ)
		elog(ERROR, "not within a page");
	buffer = lock_block(PG_GETARG_OID(0), PG_GETARG_INT32(1),
						BUFFER_LOCK_EXCLUSIVE, &index);
	memcpy((char *) BufferGetPage(buffer) + at, VARDATA_ANY(bytes), len);
	MarkBufferDirty(buffer);
	UnlockReleaseBuffer(buffer);
	CacheInvalidateRelcache(index);
	relation_close(index, AccessShareLock);
	PG_RETURN_VOID();
}

/*
 * rf_hold_runs(index regclass): takes the lock of runs until the transaction ends, so that
 * the delta's pages are not merged.
 */
Datum
rf_hold_runs(PG_FUNCTION_ARGS)
{
	Relation	index = relation_open(PG_GETARG_OID(0), AccessShareLock);

	LockPage(index, 0, ExclusiveLock);
	relation_close(index, NoLock);
	PG_RETURN_VOID();
}

/*
 * rf_hold_page(index regclass, block int, until int): locks a page exclusively until another
 * one has changed, at most a minute.  Shows the wait event Extension meanwhile.  Did the other
 * one change?
 */
Datum
rf_hold_page(PG_FUNCTION_ARGS)
{
	Relation	index;
	Relation	again;
	Buffer		until = lock_block(PG_GETARG_OID(0), PG_GETARG_INT32(2),
								   BUFFER_LOCK_SHARE, &again);
	XLogRecPtr	before = PageGetLSN(BufferGetPage(until));
	Buffer		held;
	bool		changed = false;

	LockBuffer(until, BUFFER_LOCK_UNLOCK);
	held = lock_block(PG_GETARG_OID(0), PG_GETARG_INT32(1),
					  BUFFER_LOCK_EXCLUSIVE, &index);
	for (int i = 0; i < 6000 && !changed; i++)
	{
		(void) WaitLatch(MyLatch, WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 10,
						 PG_WAIT_EXTENSION);
		changed = BufferGetLSNAtomic(until) != before;
	}
	UnlockReleaseBuffer(held);
	ReleaseBuffer(until);
	relation_close(index, AccessShareLock);
	relation_close(again, AccessShareLock);
	PG_RETURN_BOOL(changed);
}

/*
 * rf_hold_predicate_locks(until int): holds the LWLock that is needed to take a predicate
 * lock, as long as others have this advisory lock.
 */
Datum
rf_hold_predicate_locks(PG_FUNCTION_ARGS)
{
	LOCKTAG		tag;

	/* As pg_advisory_lock(bigint) has it: high and low half, key space 1. */
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, PG_GETARG_INT32(0), 1);
	LWLockAcquire(SerializablePredicateListLock, LW_EXCLUSIVE);
	(void) LockAcquire(&tag, ShareLock, false, false);
	LWLockRelease(SerializablePredicateListLock);
	LockRelease(&tag, ShareLock, false);
	PG_RETURN_VOID();
}

/*
 * rf_insert(index regclass, key int8, tid tid, unique_check int) returns bool
 */
Datum
rf_insert(PG_FUNCTION_ARGS)
{
	Relation	index = relation_open(PG_GETARG_OID(0), RowExclusiveLock);
	Relation	table = table_open(index->rd_index->indrelid, RowExclusiveLock);
	Datum		value = PG_GETARG_DATUM(1);
	bool		isnull = false;
	bool		unique;

	unique = index_insert(index, &value, &isnull, (ItemPointer) PG_GETARG_POINTER(2), table,
						  (IndexUniqueCheck) PG_GETARG_INT32(3), false, BuildIndexInfo(index));
	table_close(table, NoLock);
	relation_close(index, NoLock);
	PG_RETURN_BOOL(unique);
}
