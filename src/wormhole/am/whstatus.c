/*-------------------------------------------------------------------------
 *
 * whstatus.c
 *	  wormhole_status(): counts of an index's pages and entries, and of the use
 *	  of its hint.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_namespace.h"
#include "compat.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "wormhole/am/wormhole.h"
#include "wormhole/hint/whhint.h"
#include "wormhole/index/whindex.h"

PG_FUNCTION_INFO_V1(wormhole_status);

#define STATUS_COLUMNS	11

/* Sums over the pages of an index. */
typedef struct WhStatus
{
	int64		leaves;
	int64		directory;
	int64		free;
	int64		keys;
	int64		rows;
	int64		anchors;
	int64		anchor_bytes;
} WhStatus;

/*
 * Adds a page's counts.  The page is locked.
 */
static void
count_page(Page page, WhStatus *status)
{
	WhHeader	header = WhPageHeader(page);

	if (PageIsNew(page) || (header->flags & WH_DELETED))
	{
		status->free++;
		return;
	}
	if (header->flags & WH_META)
		return;
	if (header->level > 0)
		status->directory++;
	else
	{
		status->leaves++;
		status->keys += WhIsOneKey(page) ? 1 : wh_entries_before(page, header->nslots);
	}
	for (int i = 0; i < header->nslots; i++)
	{
		const ItemPointerData *tids;
		WhEntry		entry;

		if (header->level == 0 && wh_is_gap(page, i))
			continue;
		wh_entry(page, i, &entry);
		if (header->level == 0)
			status->rows += wh_entry_tids(page, &entry, &tids);
		else if (header->level == 1)
		{
			status->anchors++;
			status->anchor_bytes += i == 0 ?
				header->prefix_len + header->low_len :
				header->prefix_len + WhRestLen(&entry.slot);
		}
	}
}

/*
 * Raises an error unless the current user may read the whole table: the number
 * of keys would reveal whether a key that the user inserts was there already.
 */
static void
require_read_table(Relation heap, Relation index)
{
	Oid			heap_oid = RelationGetRelid(heap);

	if (pg_class_aclcheck(heap_oid, GetUserId(), ACL_SELECT) != ACLCHECK_OK ||
		!RF_MAY_USE_SCHEMA(RelationGetNamespace(heap), GetUserId()))
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE,
					   RelationGetRelationName(heap));
	if (check_enable_rls(heap_oid, InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for keys of index \"%s\"",
						RelationGetRelationName(index)),
				 errdetail("The function tells how many keys there are, so it needs no row-level security in effect on table \"%s\".",
						   RelationGetRelationName(heap))));
}

/*
 * wormhole_status(index regclass): one row.  Reads all pages.
 */
Datum
wormhole_status(PG_FUNCTION_ARGS)
{
	WhStatus	status = {0};
	Relation	heap;
	Relation	index;
	TupleDesc	desc;
	Datum		values[STATUS_COLUMNS];
	bool		nulls[STATUS_COLUMNS] = {false};
	WhHintCounts counts;
	Size		hint_size;
	BlockNumber nblocks;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	wh_open_index(PG_GETARG_OID(0), AccessShareLock, &heap, &index);
	require_read_table(heap, index);
	nblocks = RelationGetNumberOfBlocks(index);
	for (BlockNumber block = WH_FIRST_LEAF; block < nblocks; block++)
	{
		Buffer		buffer = ReadBuffer(index, block);

		CHECK_FOR_INTERRUPTS();
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		if (!PageIsNew(BufferGetPage(buffer)))
			(void) wh_check_page(index, buffer);
		count_page(BufferGetPage(buffer), &status);
		UnlockReleaseBuffer(buffer);
	}
	values[0] = Int64GetDatum(status.leaves);
	values[1] = Int64GetDatum(status.directory);
	values[2] = Int64GetDatum(status.free);
	values[3] = Int64GetDatum(status.keys);
	values[4] = Int64GetDatum(status.rows);
	values[5] = Int64GetDatum(status.anchors);
	values[6] = Float8GetDatum(status.anchors == 0 ? 0 :
							   (double) status.anchor_bytes / status.anchors);
	wh_hint_status(index, &counts, &hint_size);
	values[7] = Int64GetDatum((int64) hint_size);
	values[8] = Int64GetDatum(counts.hits);
	values[9] = Int64GetDatum(counts.stale);
	values[10] = Int64GetDatum(counts.descents);
	index_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc),
													  values, nulls)));
}
