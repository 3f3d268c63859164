/*-------------------------------------------------------------------------
 *
 * whbatch.c
 *	  Copying entries of a leaf for a scan.
 *
 * A batch is a copy of all entries between two positions of a leaf, so the
 * leaf need not stay locked while they are returned.  A batch may keep the
 * leaf pinned (see whscan.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_am_d.h"
#include "compat.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "wormhole/scan/whscan_impl.h"

/*
 * If a batch has more than this part of a page's slots, all of the page's
 * entries are copied at once.
 */
#define BULK_PART	8

/*
 * Allocates a batch's memory.
 */
void
wh_batch_init(WhBatch *batch)
{
	uint8	   *space = palloc(WH_MAX_TIDS * sizeof(WhScanItem) +
							   WH_BATCH_SPACE + WH_SLACK +
							   3 * (BLCKSZ + WH_SLACK));

	batch->items = (WhScanItem *) space;
	batch->space = space + WH_MAX_TIDS * sizeof(WhScanItem);
	batch->prefix = batch->space + WH_BATCH_SPACE + WH_SLACK;
	batch->lo_space = batch->prefix + BLCKSZ + WH_SLACK;
	batch->hi_space = batch->lo_space + BLCKSZ + WH_SLACK;
	batch->buffer = InvalidBuffer;
}

/*
 * Frees a batch's memory, if it has any.
 */
void
wh_batch_free(WhBatch *batch)
{
	if (batch->items != NULL)
		pfree(batch->items);
}

/*
 * Marks entries that the scan found dead in a batch's leaf, and releases its
 * pin.  The batch is then not valid.
 */
void
wh_batch_release(Relation index, WhBatch *batch)
{
	if (batch->valid && batch->nkilled > 0)
		wh_mark_dead(index, batch);
	if (BufferIsValid(batch->buffer))
		ReleaseBuffer(batch->buffer);
	batch->buffer = InvalidBuffer;
	batch->nkilled = 0;
	batch->valid = false;
}

/*
 * Copies a batch, and its pin, to one that has been initialized and released.
 */
void
wh_batch_copy(WhBatch *to, const WhBatch *from)
{
	WhBatch		room = *to;

	*to = *from;
	to->items = room.items;
	to->space = room.space;
	to->prefix = room.prefix;
	to->lo_space = room.lo_space;
	to->hi_space = room.hi_space;
	memcpy(to->items, from->items, from->nitems * sizeof(WhScanItem));
	memcpy(to->space + from->first, from->space + from->first,
		   from->used - from->first);
	memcpy(to->prefix, from->prefix, from->prefix_len);
	if (from->lo.data == from->lo_space)
		wh_copy_position(&to->lo, &from->lo, to->lo_space);
	if (from->hi.data == from->hi_space)
		wh_copy_position(&to->hi, &from->hi, to->hi_space);
	if (BufferIsValid(to->buffer))
		IncrBufferRefCount(to->buffer);
}

/*
 * Copies a key to space of its own.
 */
void
wh_copy_position(WhKey *to, const WhKey *from, uint8 *space)
{
	*to = *from;
	if (from->data == NULL)
		return;
	memcpy(space, from->data, from->len);
	to->data = space;
}

/*
 * Does an entry's key, put together with the prefix, pass the filters?
 */
static bool
passes_filters(IndexScanDesc scan, Page page, const WhSlot *slot)
{
	WhScan		so = (WhScan) scan->opaque;
	WhHeader	header = WhPageHeader(page);
	MemoryContext old = MemoryContextSwitchTo(so->filter_context);
	uint8	   *key = palloc(header->prefix_len + WhRestLen(slot) + WH_HEAD);
	bool		passes;
	int			len;

	memcpy(key, (uint8 *) page + WH_BOUNDS_OFF, header->prefix_len);
	len = header->prefix_len +
		wh_slot_key(page, slot, key + header->prefix_len);
	passes = wh_filter_passes(&wh_cache(scan->indexRelation)->format,
							  &so->conditions, key, len);
	MemoryContextSwitchTo(old);
	MemoryContextReset(so->filter_context);
	return passes;
}

/*
 * Raises the error for an entry that no page can have.
 */
static void
page_is_damaged(Relation index, Buffer buffer)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" has a damaged entry in block %u",
					RelationGetRelationName(index),
					BufferGetBlockNumber(buffer)),
			 errhint("Please REINDEX it.")));
}

/*
 * Copies an item's entry to the batch's space; of a list of TIDs only the key.
 * Returns false if the entries of a damaged page do not fit.
 */
static bool
copy_entry(WhBatch *batch, Page page, WhScanItem *item)
{
	WhSlot		slot = {item->head, item->off, item->info};
	int			size = WhTailLen(&slot);
	int			payload_len;

	if (wh_slot_payload(page, &slot, &payload_len) != NULL)
		size += sizeof(ItemPointerData) + sizeof(uint16) + payload_len;
	if (batch->used + size > BLCKSZ ||
		(size > 0 && item->off + size > BLCKSZ))
		return false;
	wh_copy_short(batch->space + batch->used, (uint8 *) page + item->off,
				  size);
	item->off = batch->used;
	batch->used += size;
	return true;
}

/*
 * Copies all of a page's entries to the same places in the batch's space.
 */
static void
copy_all_entries(WhBatch *batch, Page page)
{
	batch->first = ((PageHeader) page)->pd_upper;
	batch->used = BLCKSZ;
	memcpy(batch->space + batch->first, (uint8 *) page + batch->first,
		   BLCKSZ - batch->first);
}

/*
 * Copies what tuples of the batch's items will be made of from the locked leaf
 * that they are in.  Returns false if that is damaged.
 */
static bool
keep_values(const WhShortWay *way, WhBatch *batch, Page page)
{
	WhScanItem *items = batch->items;
	int			n = batch->nitems;

	batch->prefix_len = WhPageHeader(page)->prefix_len;
	memcpy(batch->prefix, (uint8 *) page + WH_BOUNDS_OFF, batch->prefix_len);
	if (n == 0 || (way->kind == WH_SHORT_NUMBER &&
				   wh_keep_numbers(&way->columns[0], batch, page)))
		return true;
	if ((items[n - 1].slot - items[0].slot + 1) * BULK_PART >
		WhPageHeader(page)->nslots)
	{
		copy_all_entries(batch, page);
		return true;
	}
	for (int i = 0; i < n; i++)
	{
		if (i > 0 && items[i].slot == items[i - 1].slot)
			items[i].off = items[i - 1].off;
		else if (!copy_entry(batch, page, &items[i]))
			return false;
	}
	return true;
}

/*
 * A row pointer of a leaf leads to this block, behind all that the table was known to have.
 * Returns how many it has.  Raises an error if the block is none of them.  Access methods
 * other than heap may count in another way.
 */
static BlockNumber
check_heap_block(IndexScanDesc scan, Buffer buffer, BlockNumber block)
{
	Relation	index = scan->indexRelation;
	Relation	heap = table_open(index->rd_index->indrelid, NoLock);
	BlockNumber nblocks = heap->rd_rel->relam == HEAP_TABLE_AM_OID ?
	RelationGetNumberOfBlocks(heap) : InvalidBlockNumber;

	table_close(heap, NoLock);
	wh_cache(index)->heap_nblocks = nblocks;
	if (block >= nblocks)
		page_is_damaged(index, buffer);
	return nblocks;
}

/*
 * Raises an error if a row pointer of a leaf is impossible, or leads behind *heap_nblocks
 * blocks, which are counted anew, and behind these.
 */
static inline void
check_tid(IndexScanDesc scan, Buffer buffer, const ItemPointerData *tid,
		  BlockNumber *heap_nblocks)
{
	if (unlikely(!wh_tid_is_possible(tid)))
		page_is_damaged(scan->indexRelation, buffer);
	if (unlikely(ItemPointerGetBlockNumber(tid) >= *heap_nblocks))
		*heap_nblocks = check_heap_block(scan, buffer,
										 ItemPointerGetBlockNumber(tid));
}

/*
 * As add_entries() below, for a dense leaf.  It cannot have more entries than a
 * batch has room for.
 */
static void
add_records(IndexScanDesc scan, Buffer buffer, int at, int end)
{
	WhScan		so = (WhScan) scan->opaque;
	WhBatch    *batch = &so->batch;
	Page		page = BufferGetPage(buffer);
	const bool	one_key = WhIsOneKey(page);
	const int	key_len = WhDenseKeyLen(page);
	const int	tail = WhRecordTail(page);
	const int	tid_len = WhDenseTidLen(page);
	const int	size = WhRecordSize(page);
	uint8		leave_out = WH_RECORD_GAP |
	(scan->ignore_killed_tuples ? WH_RECORD_DEAD : 0);
	bool		filtered = so->conditions.nfilters > 0;
	WhScanItem *item = batch->items;
	BlockNumber heap_nblocks = wh_cache(scan->indexRelation)->heap_nblocks;
	uint32		before = 0;
	int			off = WhRecordsEnd(page) - at * size;

	for (; at < end; at++)
	{
		uint8		flags;

		off -= size;
		flags = wh_read_tid((uint8 *) page + off + tail, tid_len, &item->tid);
		item->head = wh_dense_head(page, at);
		item->slot = at;
		item->info = key_len;
		item->off = one_key ? wh_dense_tail_place(page, at) : off;
		if (unlikely(item->head < before))
			page_is_damaged(scan->indexRelation, buffer);
		before = item->head;
		if (unlikely(flags & leave_out))
			continue;
		if (filtered)
		{
			WhEntry		entry;

			wh_entry(page, at, &entry);
			if (!passes_filters(scan, page, &entry.slot))
				continue;
		}
		check_tid(scan, buffer, &item->tid, &heap_nblocks);
		item++;
	}
	batch->nitems = item - batch->items;
}

/*
 * Fills the batch's items with the rows of the entries [at, end) of a locked
 * leaf.  Raises an error for damaged entries.
 */
static void
add_entries(IndexScanDesc scan, Buffer buffer, int at, int end)
{
	WhScan		so = (WhScan) scan->opaque;
	WhBatch    *batch = &so->batch;
	Page		page = BufferGetPage(buffer);
	uint16		leave_out = WH_GAP | (scan->ignore_killed_tuples ? WH_DEAD : 0);
	bool		filtered = so->conditions.nfilters > 0;
	WhScanItem *item = batch->items;
	WhScanItem *last = item + WH_MAX_TIDS;
	BlockNumber heap_nblocks = wh_cache(scan->indexRelation)->heap_nblocks;

	if (WhIsDense(page))
	{
		add_records(scan, buffer, at, end);
		return;
	}
	for (; at < end; at++)
	{
		const WhSlot *slot = &WhSlots(page)[at];
		const ItemPointerData *tids;
		int			len;
		int			n;

		if (unlikely(at > 0 && slot->head < slot[-1].head))
			page_is_damaged(scan->indexRelation, buffer);
		if (slot->info & leave_out)
			continue;
		if (filtered && !passes_filters(scan, page, slot))
			continue;
		if (so->keep_values)
			(void) wh_slot_payload(page, slot, &len);
		n = wh_slot_tids(page, slot, &tids);
		if (n > last - item)
			page_is_damaged(scan->indexRelation, buffer);
		for (; n > 0; n--, tids++, item++)
		{
			memcpy(&item->tid, tids, sizeof(item->tid));
			check_tid(scan, buffer, &item->tid, &heap_nblocks);
			item->slot = at;
			item->head = slot->head;
			item->info = slot->info;
			item->off = slot->off;
		}
	}
	batch->nitems = item - batch->items;
}

/*
 * Fills the batch from a locked and pinned leaf: that of batch->lo or, in a
 * backward scan, of batch->hi.  Unlocks it, and releases the pin unless the
 * batch keeps it.
 *
 * A batch begins and ends at bounds of its range, which have no TIDs, or at
 * bounds that the leaf had when it was read.  When the next batch is read, a
 * list of TIDs may reach across such a bound.  A leaf takes over the range of
 * another leaf only if VACUUM deletes that one, which was empty.  So the
 * list's TIDs on the far side are of rows inserted later, which the scan's
 * snapshot does not see.  The list counts as being where its first TID is.
 */
void
wh_batch_fill(IndexScanDesc scan, Buffer buffer)
{
	WhScan		so = (WhScan) scan->opaque;
	WhBatch    *batch = &so->batch;
	Page		page = BufferGetPage(buffer);
	WhHeader	header = WhPageHeader(page);
	int			at = wh_page_search(page, &batch->lo);
	int			end = wh_page_search(page, &batch->hi);

	so->last_leaf = BufferGetBlockNumber(buffer);
	RF_REFUSE_EXPIRED(scan->xs_snapshot, scan->indexRelation, page);

	/*
	 * A serializable transaction relies on all that it reads in the leaf, and
	 * on the gaps.  An insert into the leaf is either seen below, or finds
	 * this lock: it looks for it with the leaf locked exclusively.
	 */
	PredicateLockPage(scan->indexRelation, so->last_leaf, scan->xs_snapshot);
	batch->prev = header->prev;
	batch->next = header->next;
	batch->block = so->last_leaf;
	batch->lsn = BufferGetLSNAtomic(buffer);
	batch->nitems = 0;
	batch->nkilled = 0;
	batch->first = 0;
	batch->used = 0;
	batch->has_numbers = false;
	add_entries(scan, buffer, at, end);
	if (so->keep_values && !keep_values(&so->way, batch, page))
		page_is_damaged(scan->indexRelation, buffer);
	batch->valid = true;
	if (so->keep_pin && batch->nitems > 0)
	{
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		batch->buffer = buffer;
	}
	else
		UnlockReleaseBuffer(buffer);
}
