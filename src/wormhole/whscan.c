/*-------------------------------------------------------------------------
 *
 * whscan.c
 *	  Scans.
 *
 * A scan goes through the ranges of keys its conditions amount to.  It reads
 * what a leaf has of a range at once into a batch, and keeps no lock while the
 * entries are returned.  The batch knows which stretch of keys it is all of,
 * so that the next one, in either direction, is the one that begins (or ends)
 * exactly there, whatever happens to the pages in the meantime.
 *
 * The pin on a batch's leaf keeps VACUUM from removing the entries, and so
 * their TIDs from being reused.  A scan under an MVCC snapshot that looks at
 * the rows needs none; an index-only scan does, as does one under any other
 * snapshot.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relscan.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "wormhole/wormhole.h"

/* Where the key and payload of an item are in the batch's space. */
typedef struct WhScanItem
{
	ItemPointerData tid;
	uint16		key_len;
	uint16		payload_len;
	uint32		key_off;		/* the payload follows the key */
} WhScanItem;

typedef struct WhBatch
{
	bool		valid;
	int			range;
	Buffer		buffer;			/* pinned, or InvalidBuffer */
	BlockNumber prev;
	BlockNumber next;
	WhKey		lo;				/* the stretch of keys it is all of */
	WhKey		hi;
	bool		from_lo;		/* it begins where the range does */
	bool		to_hi;			/* it ends where the range does */
	int			nitems;
	int			current;
	int			used;			/* of space */
	int			prefix_len;
	uint8	   *prefix;
	uint8	   *lo_space;
	uint8	   *hi_space;
	uint8	   *space;
	WhScanItem *items;
} WhBatch;

typedef struct WhScanData
{
	WhConditions conditions;
	bool		ready;			/* conditions are there */
	WhRange		simple;			/* the range of a single comparison */
	StringInfoData simple_lo;
	StringInfoData simple_hi;
	bool		keep_values;	/* the scan returns the index's columns */
	bool		keep_pin;
	WhBatch		batch;
	WhBatch		mark;
	int			marked;			/* item of the batch, or of mark; -1: none */
	bool		mark_is_copy;	/* the mark is in mark, not in batch */
	BlockNumber last_leaf;		/* where the last batch came from */
	bool		near;			/* the next one is expected there, too */
	IndexTuple	tuple;			/* a page's size */
	uint8	   *bounds_space;
	MemoryContext range_context;	/* conditions */
	MemoryContext tuple_context;	/* of the tuple returned */
	MemoryContext filter_context;
} WhScanData;

typedef WhScanData *WhScan;

/* Room for all keys and payloads of a page. */
#define BATCH_SPACE		(3 * BLCKSZ)

/*
 * Prepares a batch.
 */
static void
init_batch(WhBatch *batch)
{
	batch->items = palloc(WH_MAX_TIDS * sizeof(WhScanItem));
	batch->space = palloc(BATCH_SPACE);
	batch->prefix = palloc(2 * BLCKSZ);
	batch->lo_space = palloc(2 * BLCKSZ);
	batch->hi_space = palloc(2 * BLCKSZ);
	batch->buffer = InvalidBuffer;
}

/*
 * ambeginscan.
 */
IndexScanDesc
wh_beginscan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	WhScan		so = palloc0(sizeof(WhScanData));

	init_batch(&so->batch);
	so->marked = -1;
	so->mark.buffer = InvalidBuffer;
	so->last_leaf = InvalidBlockNumber;
	so->bounds_space = palloc(WH_BOUNDS_SPACE);
	so->tuple = palloc(BLCKSZ);
	initStringInfo(&so->simple_lo);
	initStringInfo(&so->simple_hi);
	so->range_context = AllocSetContextCreate(CurrentMemoryContext,
											  "wormhole conditions",
											  ALLOCSET_SMALL_SIZES);
	so->tuple_context = AllocSetContextCreate(CurrentMemoryContext,
											  "wormhole tuple",
											  ALLOCSET_SMALL_SIZES);
	so->filter_context = AllocSetContextCreate(CurrentMemoryContext,
											   "wormhole filter",
											   ALLOCSET_SMALL_SIZES);
	scan->xs_itupdesc = RelationGetDescr(index);
	scan->opaque = so;
	return scan;
}

/*
 * Lets go of a batch's leaf.
 */
static void
release_batch(WhBatch *batch)
{
	if (BufferIsValid(batch->buffer))
		ReleaseBuffer(batch->buffer);
	batch->buffer = InvalidBuffer;
	batch->valid = false;
}

/*
 * amrescan.
 */
void
wh_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys,
		  int norderbys)
{
	WhScan		so = (WhScan) scan->opaque;

	release_batch(&so->batch);
	release_batch(&so->mark);
	so->marked = -1;
	so->mark_is_copy = false;
	so->ready = false;
	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
}

/*
 * amendscan.
 */
void
wh_endscan(IndexScanDesc scan)
{
	WhScan		so = (WhScan) scan->opaque;

	release_batch(&so->batch);
	release_batch(&so->mark);
	MemoryContextDelete(so->range_context);
	MemoryContextDelete(so->tuple_context);
	MemoryContextDelete(so->filter_context);
	pfree(so->bounds_space);
	pfree(so->tuple);
	pfree(so->simple_lo.data);
	pfree(so->simple_hi.data);
	pfree(so->batch.items);
	pfree(so->batch.space);
	pfree(so->batch.prefix);
	pfree(so->batch.lo_space);
	pfree(so->batch.hi_space);
	if (so->mark.items != NULL)
	{
		pfree(so->mark.items);
		pfree(so->mark.space);
		pfree(so->mark.prefix);
		pfree(so->mark.lo_space);
		pfree(so->mark.hi_space);
	}
	pfree(so);
}

/*
 * Turns the scan keys into ranges, once after each rescan.
 */
static void
prepare_scan(IndexScanDesc scan)
{
	WhScan		so = (WhScan) scan->opaque;
	MemoryContext old;

	if (so->ready)
		return;
	if (wh_simple_range(scan->indexRelation, scan->keyData,
						scan->numberOfKeys, &so->simple_lo, &so->simple_hi,
						&so->simple))
	{
		memset(&so->conditions, 0, sizeof(so->conditions));
		so->conditions.nranges = 1;
		so->conditions.ranges = &so->simple;
	}
	else
	{
		MemoryContextReset(so->range_context);
		old = MemoryContextSwitchTo(so->range_context);
		wh_conditions(scan->indexRelation, scan->keyData, scan->numberOfKeys,
					  &so->conditions);
		MemoryContextSwitchTo(old);
	}
	so->keep_values = scan->xs_want_itup;
	so->keep_pin = scan->xs_want_itup || scan->xs_snapshot == NULL ||
		!IsMVCCSnapshot(scan->xs_snapshot);
	so->ready = true;
	pgstat_count_index_scan(scan->indexRelation);
}

/*
 * Copies a key to space of its own.
 */
static void
copy_key(WhKey *to, const WhKey *from, uint8 *space)
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
add_item(WhBatch *batch, const ItemPointerData *tid, int key_off, int key_len,
		 int payload_len)
{
	WhScanItem *item;

	if (batch->nitems >= (int) WH_MAX_TIDS)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("wormhole page has too many row pointers")));
	item = &batch->items[batch->nitems++];
	memcpy(&item->tid, tid, sizeof(item->tid));
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

	if (scan->ignore_killed_tuples && (slot->info & WH_DEAD))
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
			add_item(batch, &tids[i], key_off, key_len, payload_len);
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

	if (at > 0 && lo->has_tid &&
		wh_slot_has_key(page, WhSlots(page) + at - 1, lo))
		at--;
	return at;
}

/*
 * Fills the batch from a leaf, locked and pinned, which belongs to where the
 * batch begins or, going backward, ends; unlocks it.
 */
static void
fill_batch(IndexScanDesc scan, Buffer buffer)
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
	batch->nitems = 0;
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

/*
 * The leaf of a position where a range begins.  When keys are asked for in
 * order, that is mostly the leaf of the one before.
 */
static Buffer
find_leaf(IndexScanDesc scan, const WhKey *key)
{
	WhScan		so = (WhScan) scan->opaque;
	Buffer		buffer;

	if (so->near)
	{
		buffer = wh_read(scan->indexRelation, so->last_leaf,
						 BUFFER_LOCK_SHARE);
		if (wh_is_leaf_of(scan->indexRelation, buffer, key))
			return buffer;
		UnlockReleaseBuffer(buffer);
	}
	buffer = wh_descend(scan->indexRelation, key, WH_AT, 0,
						BUFFER_LOCK_SHARE);
	so->near = BufferGetBlockNumber(buffer) == so->last_leaf;
	return buffer;
}

/*
 * Reads the batch that begins at batch->lo, within the range.
 */
static void
read_forward(IndexScanDesc scan, BlockNumber block)
{
	WhScan		so = (WhScan) scan->opaque;
	WhBatch    *batch = &so->batch;
	WhRange    *range = &so->conditions.ranges[batch->range];
	Buffer		buffer;
	Page		page;

	if (block == InvalidBlockNumber)
		buffer = find_leaf(scan, &batch->lo);
	else
		buffer = wh_step(scan->indexRelation, block, &batch->lo, WH_AT,
						 BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);

	batch->to_hi = wh_page_side(page, &range->hi, WH_BEFORE) <= 0;
	if (batch->to_hi)
		batch->hi = range->hi;
	else
	{
		WhBounds	bounds;

		wh_page_bounds(page, &bounds, so->bounds_space);
		copy_key(&batch->hi, &bounds.high, batch->hi_space);
	}
	fill_batch(scan, buffer);
	batch->current = 0;
}

/*
 * Reads the batch that ends at batch->hi.
 */
static void
read_backward(IndexScanDesc scan, BlockNumber block)
{
	WhScan		so = (WhScan) scan->opaque;
	WhBatch    *batch = &so->batch;
	WhRange    *range = &so->conditions.ranges[batch->range];
	Buffer		buffer = wh_step(scan->indexRelation, block, &batch->hi,
								 WH_BEFORE, BUFFER_LOCK_SHARE);
	Page		page = BufferGetPage(buffer);

	batch->from_lo = wh_page_side(page, &range->lo, WH_AT) >= 0;
	if (batch->from_lo)
		batch->lo = range->lo;
	else
	{
		WhBounds	bounds;

		wh_page_bounds(page, &bounds, so->bounds_space);
		copy_key(&batch->lo, &bounds.low, batch->lo_space);
	}
	fill_batch(scan, buffer);
	batch->current = batch->nitems - 1;
}

/*
 * Is there nothing between two ends?
 */
static bool
is_empty_range(const WhRange *range)
{
	return wh_compare_keys(&range->lo, &range->hi) >= 0;
}

/*
 * Reads the first batch of a range, or going backward the last.
 */
static void
enter_range(IndexScanDesc scan, int number, ScanDirection direction)
{
	WhScan		so = (WhScan) scan->opaque;
	WhBatch    *batch = &so->batch;
	WhRange    *range = &so->conditions.ranges[number];

	release_batch(batch);
	batch->range = number;
	batch->lo = range->lo;
	batch->hi = range->hi;
	batch->from_lo = batch->to_hi = true;
	batch->nitems = 0;
	batch->current = ScanDirectionIsForward(direction) ? 0 : -1;
	if (is_empty_range(range))
		batch->valid = true;
	else if (ScanDirectionIsForward(direction))
		read_forward(scan, InvalidBlockNumber);
	else
		read_backward(scan, InvalidBlockNumber);
}

/*
 * Reads the batch before or after the one there is.  False where there is
 * none; the batch there is then stays as it was.
 */
static bool
next_batch(IndexScanDesc scan, ScanDirection direction)
{
	WhScan		so = (WhScan) scan->opaque;
	WhBatch    *batch = &so->batch;
	WhKey		end;

	CHECK_FOR_INTERRUPTS();
	if (ScanDirectionIsForward(direction))
	{
		if (!batch->to_hi)
		{
			end = batch->hi;
			release_batch(batch);
			copy_key(&batch->lo, &end, batch->lo_space);
			batch->from_lo = false;
			read_forward(scan, batch->next);
			return true;
		}
		if (batch->range + 1 >= so->conditions.nranges)
			return false;
		enter_range(scan, batch->range + 1, direction);
		return true;
	}
	if (!batch->from_lo)
	{
		end = batch->lo;
		release_batch(batch);
		copy_key(&batch->hi, &end, batch->hi_space);
		batch->to_hi = false;
		read_backward(scan, batch->prev);
		return true;
	}
	if (batch->range == 0)
		return false;
	enter_range(scan, batch->range - 1, direction);
	return true;
}

/*
 * Makes a copy of the batch for the mark if that is in it and it is about to
 * be replaced.
 */
static void
save_mark(WhScan so)
{
	WhBatch		old = so->mark;

	if (so->marked < 0 || so->mark_is_copy)
		return;
	if (old.items == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(GetMemoryChunkContext(so));

		init_batch(&old);
		MemoryContextSwitchTo(caller);
	}
	so->mark = so->batch;
	so->mark.items = old.items;
	so->mark.space = old.space;
	so->mark.prefix = old.prefix;
	so->mark.lo_space = old.lo_space;
	so->mark.hi_space = old.hi_space;
	memcpy(so->mark.items, so->batch.items,
		   so->batch.nitems * sizeof(WhScanItem));
	memcpy(so->mark.space, so->batch.space, so->batch.used);
	memcpy(so->mark.prefix, so->batch.prefix, so->batch.prefix_len);
	if (so->batch.lo.data == so->batch.lo_space)
		copy_key(&so->mark.lo, &so->batch.lo, so->mark.lo_space);
	if (so->batch.hi.data == so->batch.hi_space)
		copy_key(&so->mark.hi, &so->batch.hi, so->mark.hi_space);
	if (BufferIsValid(so->mark.buffer))
		IncrBufferRefCount(so->mark.buffer);
	so->mark_is_copy = true;
}

/*
 * Moves to the next item; false at the end, from where the way back leads to
 * the last item again.
 */
static bool
advance(IndexScanDesc scan, ScanDirection direction)
{
	WhScan		so = (WhScan) scan->opaque;
	WhBatch    *batch = &so->batch;

	if (!batch->valid)
	{
		if (so->conditions.nranges == 0)
			return false;
		enter_range(scan, ScanDirectionIsForward(direction) ? 0 :
					so->conditions.nranges - 1, direction);
	}
	else
		batch->current += ScanDirectionIsForward(direction) ? 1 : -1;

	while (batch->current < 0 || batch->current >= batch->nitems)
	{
		save_mark(so);
		if (!next_batch(scan, direction))
		{
			batch->current = ScanDirectionIsForward(direction) ?
				batch->nitems : -1;
			return false;
		}
	}
	return true;
}

/*
 * Makes the index tuple of an item.
 */
static void
form_tuple(IndexScanDesc scan, const WhScanItem *item)
{
	WhScan		so = (WhScan) scan->opaque;
	WhBatch    *batch = &so->batch;
	Relation	index = scan->indexRelation;
	MemoryContext old;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	const uint8 *payload = NULL;
	uint8	   *key;

	/* The prefix has room for the rest of a key behind it. */
	key = batch->prefix;
	memcpy(key + batch->prefix_len, batch->space + item->key_off,
		   item->key_len);
	if (item->payload_len > 0)
		payload = batch->space + item->key_off + item->key_len;
	else if (wh_form_simple(index, key, batch->prefix_len + item->key_len,
							so->tuple))
	{
		scan->xs_itup = so->tuple;
		return;
	}
	MemoryContextReset(so->tuple_context);
	old = MemoryContextSwitchTo(so->tuple_context);
	wh_decode(index, key, batch->prefix_len + item->key_len, payload,
			  item->payload_len, values, isnull);
	scan->xs_itup = index_form_tuple(RelationGetDescr(index), values, isnull);
	MemoryContextSwitchTo(old);
}

/*
 * amgettuple.
 */
bool
wh_gettuple(IndexScanDesc scan, ScanDirection direction)
{
	WhScan		so = (WhScan) scan->opaque;
	WhScanItem *item;

	prepare_scan(scan);
	if (!advance(scan, direction))
		return false;
	item = &so->batch.items[so->batch.current];
	scan->xs_heaptid = item->tid;
	scan->xs_recheck = so->conditions.recheck;
	if (so->keep_values)
		form_tuple(scan, item);
	return true;
}

/*
 * amgetbitmap.
 */
int64
wh_getbitmap(IndexScanDesc scan, TIDBitmap *tbm)
{
	WhScan		so = (WhScan) scan->opaque;
	int64		n = 0;

	prepare_scan(scan);
	so->keep_pin = false;
	while (advance(scan, ForwardScanDirection))
	{
		tbm_add_tuples(tbm, &so->batch.items[so->batch.current].tid, 1,
					   so->conditions.recheck);
		n++;
	}
	release_batch(&so->batch);
	return n;
}

/*
 * ammarkpos.
 */
void
wh_markpos(IndexScanDesc scan)
{
	WhScan		so = (WhScan) scan->opaque;

	release_batch(&so->mark);
	so->mark_is_copy = false;
	so->marked = so->batch.valid ? so->batch.current : -1;
}

/*
 * amrestrpos.
 */
void
wh_restrpos(IndexScanDesc scan)
{
	WhScan		so = (WhScan) scan->opaque;

	if (so->marked >= 0 && so->mark_is_copy)
	{
		WhBatch		old = so->batch;

		/* Change places: the mark is in the batch that becomes current. */
		release_batch(&old);
		so->batch = so->mark;
		so->mark = old;
		so->mark_is_copy = false;
	}
	if (so->marked < 0)
		release_batch(&so->batch);
	else
		so->batch.current = so->marked;
}
