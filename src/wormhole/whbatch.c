/*-------------------------------------------------------------------------
 *
 * whbatch.c
 *	  What a scan takes from a leaf at once.
 *
 * A batch is all there was between two positions of a leaf, copied, so that
 * the leaf need not stay locked while its entries are returned.  A batch may
 * keep the leaf pinned (see whscan.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "wormhole/whscan.h"

/* Room for all keys and payloads of a page. */
#define BATCH_SPACE		(3 * BLCKSZ)

/*
 * Prepares a batch.
 */
void
wh_batch_init(WhBatch *batch)
{
	batch->items = palloc(WH_MAX_TIDS * sizeof(WhScanItem));
	batch->space = palloc(BATCH_SPACE);
	batch->prefix = palloc(2 * BLCKSZ);
	batch->lo_space = palloc(2 * BLCKSZ);
	batch->hi_space = palloc(2 * BLCKSZ);
	batch->buffer = InvalidBuffer;
}

/*
 * Gives a batch's memory back, if it has any.
 */
void
wh_batch_free(WhBatch *batch)
{
	if (batch->items == NULL)
		return;
	pfree(batch->items);
	pfree(batch->space);
	pfree(batch->prefix);
	pfree(batch->lo_space);
	pfree(batch->hi_space);
}

/*
 * Marks what the scan found dead in a batch's leaf, and lets go of it.
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
	memcpy(to->space, from->space, from->used);
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
 * Appends one item.
 */
static void
add_item(WhBatch *batch, const ItemPointerData *tid, int slot, int key_off,
		 int key_len, int payload_len)
{
	WhScanItem *item;

	if (batch->nitems >= (int) WH_MAX_TIDS)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("wormhole page has too many row pointers")));
	item = &batch->items[batch->nitems++];
	memcpy(&item->tid, tid, sizeof(item->tid));
	item->slot = slot;
	item->key_off = key_off;
	item->key_len = key_len;
	item->payload_len = payload_len;
}

/*
 * Is a TID of the entry with this key within the batch?  Only where a batch
 * begins or ends between equal keys is that a question of the TID.
 */
static bool
tid_in_batch(const WhBatch *batch, Page page, const WhSlot *slot,
			 const ItemPointerData *tid)
{
	ItemPointerData copy;

	memcpy(&copy, tid, sizeof(copy));
	if (batch->lo.has_tid && wh_slot_has_key(page, slot, &batch->lo) &&
		ItemPointerCompare(&copy, (ItemPointer) &batch->lo.tid) < 0)
		return false;
	if (batch->hi.data != NULL && batch->hi.has_tid &&
		wh_slot_has_key(page, slot, &batch->hi) &&
		ItemPointerCompare(&copy, (ItemPointer) &batch->hi.tid) >= 0)
		return false;
	return true;
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
 * Appends an entry's rows to the batch.
 */
static void
add_entry(IndexScanDesc scan, Page page, const WhSlot *slot)
{
	WhScan		so = (WhScan) scan->opaque;
	WhBatch    *batch = &so->batch;
	const ItemPointerData *tids;
	int			n;
	int			key_off = batch->used;
	int			key_len = 0;
	int			payload_len = 0;

	if ((slot->info & WH_GAP) ||
		(scan->ignore_killed_tuples && (slot->info & WH_DEAD)))
		return;
	if (so->conditions.nfilters > 0 && !passes_filters(scan, page, slot))
		return;
	if (so->keep_values)
	{
		const uint8 *payload = wh_slot_payload(page, slot, &payload_len);

		if (batch->used + WhRestLen(slot) + WH_HEAD + payload_len >
			BATCH_SPACE)
			ereport(ERROR,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("wormhole page holds more than a page can")));
		key_len = wh_slot_key(page, slot, batch->space + key_off);
		if (payload_len > 0)
			memcpy(batch->space + key_off + key_len, payload, payload_len);
		batch->used += key_len + payload_len;
	}
	n = wh_slot_tids(page, slot, &tids);
	for (int i = 0; i < n; i++)
	{
		if ((!batch->lo.has_tid && !batch->hi.has_tid) ||
			tid_in_batch(batch, page, slot, &tids[i]))
			add_item(batch, &tids[i], slot - WhSlots(page), key_off, key_len,
					 payload_len);
	}
}

/*
 * The first slot of the batch.  A list of TIDs that begins before the batch
 * may reach into it.
 */
static int
first_slot(Page page, const WhKey *lo)
{
	int			at = wh_page_search(page, lo);

	if (lo->has_tid)
	{
		int			before = wh_entry_before(page, at);

		if (before >= 0 && wh_slot_has_key(page, WhSlots(page) + before, lo))
			return before;
	}
	return at;
}

/*
 * Fills the batch from a leaf, locked and pinned, which belongs to where the
 * batch begins or, going backward, ends; unlocks it.
 */
void
wh_batch_fill(IndexScanDesc scan, Buffer buffer)
{
	WhScan		so = (WhScan) scan->opaque;
	WhBatch    *batch = &so->batch;
	Page		page = BufferGetPage(buffer);
	WhHeader	header = WhPageHeader(page);
	int			at = first_slot(page, &batch->lo);
	int			end = wh_page_search(page, &batch->hi);

	so->last_leaf = BufferGetBlockNumber(buffer);
	batch->prev = header->prev;
	batch->next = header->next;
	batch->block = so->last_leaf;
	batch->lsn = BufferGetLSNAtomic(buffer);
	batch->nitems = 0;
	batch->nkilled = 0;
	batch->used = 0;
	if (so->keep_values)
	{
		batch->prefix_len = header->prefix_len;
		memcpy(batch->prefix, (uint8 *) page + WH_BOUNDS_OFF,
			   header->prefix_len);
	}
	for (; at < end; at++)
		add_entry(scan, page, &WhSlots(page)[at]);
	batch->valid = true;
	if (so->keep_pin && batch->nitems > 0)
	{
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		batch->buffer = buffer;
	}
	else
		UnlockReleaseBuffer(buffer);
}
