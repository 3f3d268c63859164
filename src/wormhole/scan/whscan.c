/*-------------------------------------------------------------------------
 *
 * whscan.c
 *	  Scans.
 *
 * A scan's conditions are made into ranges of keys (whcond.c).  The scan
 * copies a leaf's entries of a range into a batch, and keeps no lock while it
 * returns them.  A batch has all entries between two positions, which it
 * remembers.  The next batch begins exactly where it ended (in a backward scan
 * it ends where the batch began), whatever happens to the pages in the
 * meantime.
 *
 * A pin on a batch's leaf keeps VACUUM from removing the entries, and so their
 * TIDs from being reused.  A scan under an MVCC snapshot that looks at the
 * rows needs no pin.  Index-only scans and scans under other snapshots need
 * it.  So do scans of indexes without WAL: wh_mark_dead() cannot compare LSNs
 * there.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relscan.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "wormhole/hint/whhint.h"
#include "wormhole/scan/whscan_impl.h"

/*
 * ambeginscan.
 */
IndexScanDesc
wh_beginscan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	WhScan		so = palloc0(sizeof(WhScanData));

	wh_batch_init(&so->batch);
	so->marked = -1;
	so->mark.buffer = InvalidBuffer;
	so->last_leaf = InvalidBlockNumber;
	so->bounds_space = palloc(WH_BOUNDS_SPACE);
	so->tuple = palloc(BLCKSZ + WH_SLACK);
	wh_short_way(index, &so->way);
	if (so->way.kind == WH_SHORT_NUMBER)
		wh_finish_tuple(so->tuple, sizeof(IndexTupleData) +
						so->way.columns[0].attlen, 0);
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
 * amrescan.
 */
void
wh_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys,
		  int norderbys)
{
	WhScan		so = (WhScan) scan->opaque;

	wh_batch_release(scan->indexRelation, &so->batch);
	wh_batch_release(scan->indexRelation, &so->mark);
	so->marked = -1;
	so->mark_is_copy = false;
	so->ended = NoMovementScanDirection;
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

	wh_batch_release(scan->indexRelation, &so->batch);
	wh_batch_release(scan->indexRelation, &so->mark);
	MemoryContextDelete(so->range_context);
	MemoryContextDelete(so->tuple_context);
	MemoryContextDelete(so->filter_context);
	pfree(so->bounds_space);
	pfree(so->tuple);
	pfree(so->simple_lo.data);
	pfree(so->simple_hi.data);
	wh_batch_free(&so->batch);
	wh_batch_free(&so->mark);
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

	wh_check_collators(scan->indexRelation);
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
		!IsMVCCSnapshot(scan->xs_snapshot) ||
		!RelationNeedsWAL(scan->indexRelation);
	so->ready = true;
	pgstat_count_index_scan(scan->indexRelation);
	RF_COUNT_SEARCH(scan);
}

/*
 * Finds the leaf of a position where a range begins, pinned and share-locked.
 * If a scan is restarted with keys in order, it is mostly the leaf of the last
 * batch.
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
	buffer = wh_find_leaf(scan->indexRelation, key, WH_AT,
						  BUFFER_LOCK_SHARE);
	so->near = BufferGetBlockNumber(buffer) == so->last_leaf;
	return buffer;
}

/*
 * Reads the batch that begins at batch->lo, within its range.  block is where
 * that position is expected, or InvalidBlockNumber.
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
		wh_copy_position(&batch->hi, &bounds.high, batch->hi_space);
	}
	if (scan->parallel_scan != NULL)
		wh_parallel_leave(scan, ForwardScanDirection,
						  WhPageHeader(page)->next);
	wh_batch_fill(scan, buffer);
	batch->current = 0;
}

/*
 * Reads the batch that ends at batch->hi, within its range.  block is where
 * that position is expected, or InvalidBlockNumber.
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
		wh_copy_position(&batch->lo, &bounds.low, batch->lo_space);
	}
	if (scan->parallel_scan != NULL)
		wh_parallel_leave(scan, BackwardScanDirection,
						  WhPageHeader(page)->prev);
	wh_batch_fill(scan, buffer);
	batch->current = batch->nitems - 1;
}

/*
 * Is there no position in the range?
 */
static bool
is_empty_range(const WhRange *range)
{
	return wh_compare_keys(&range->lo, &range->hi) >= 0;
}

/*
 * Reads the first batch of a range or, in a backward scan, the last one.
 */
static void
enter_range(IndexScanDesc scan, int number, ScanDirection direction)
{
	WhScan		so = (WhScan) scan->opaque;
	WhBatch    *batch = &so->batch;
	WhRange    *range = &so->conditions.ranges[number];

	wh_batch_release(scan->indexRelation, batch);
	batch->range = number;
	batch->lo = range->lo;
	batch->hi = range->hi;
	batch->from_lo = batch->to_hi = true;
	batch->nitems = 0;
	batch->current = ScanDirectionIsForward(direction) ? 0 : -1;
	if (is_empty_range(range))
	{
		batch->valid = true;
		if (scan->parallel_scan != NULL)
			wh_parallel_leave(scan, direction, InvalidBlockNumber);
	}
	else if (ScanDirectionIsForward(direction))
		read_forward(scan, InvalidBlockNumber);
	else
		read_backward(scan, InvalidBlockNumber);
}

/*
 * Reads the batch after the current one or, backward, the one before.  False
 * if there is none; then the current batch stays.
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
			wh_batch_release(scan->indexRelation, batch);
			wh_copy_position(&batch->lo, &end, batch->lo_space);
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
		wh_batch_release(scan->indexRelation, batch);
		wh_copy_position(&batch->hi, &end, batch->hi_space);
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
 * Reads the next batch of a parallel scan that no process has taken.  False if
 * there is none.
 */
static bool
next_parallel_batch(IndexScanDesc scan, ScanDirection direction)
{
	WhScan		so = (WhScan) scan->opaque;
	WhBatch    *batch = &so->batch;
	bool		forward = ScanDirectionIsForward(direction);
	BlockNumber block;
	bool		inside;
	int			range;

	CHECK_FOR_INTERRUPTS();
	wh_batch_release(scan->indexRelation, batch);
	batch->nitems = 0;
	if (so->conditions.nranges == 0 ||
		!wh_parallel_take(scan, direction, &range, &inside, &block))
		return false;
	if (!inside)
	{
		if (range < 0)
			range = forward ? 0 : so->conditions.nranges - 1;
		enter_range(scan, range, direction);
		return true;
	}
	batch->range = range;
	if (forward)
	{
		batch->hi = so->conditions.ranges[range].hi;
		batch->from_lo = false;
		read_forward(scan, block);
	}
	else
	{
		batch->lo = so->conditions.ranges[range].lo;
		batch->to_hi = false;
		read_backward(scan, block);
	}
	return true;
}

/*
 * Moves to the next item of a parallel scan, whose direction never changes.
 */
static bool
advance_parallel(IndexScanDesc scan, ScanDirection direction)
{
	WhBatch    *batch = &((WhScan) scan->opaque)->batch;

	if (batch->valid)
		batch->current += ScanDirectionIsForward(direction) ? 1 : -1;
	while (!batch->valid || batch->current < 0 ||
		   batch->current >= batch->nitems)
	{
		if (!next_parallel_batch(scan, direction))
			return false;
	}
	return true;
}

/*
 * Copies the batch for the mark, if the marked item is in it.  Called when the
 * batch is about to be replaced.
 */
static void
save_mark(WhScan so)
{
	if (so->marked < 0 || so->mark_is_copy)
		return;
	if (so->mark.items == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(GetMemoryChunkContext(so));

		wh_batch_init(&so->mark);
		MemoryContextSwitchTo(caller);
	}
	wh_batch_copy(&so->mark, &so->batch);
	so->mark_is_copy = true;
}

/*
 * Moves to the next item.  False at the end; from there a step in the other
 * direction leads to the last item again.
 */
static bool
advance(IndexScanDesc scan, ScanDirection direction)
{
	WhScan		so = (WhScan) scan->opaque;
	WhBatch    *batch = &so->batch;

	if (scan->parallel_scan != NULL)
		return advance_parallel(scan, direction);
	if (!batch->valid)
	{
		if (so->conditions.nranges == 0 || direction == so->ended)
			return false;
		so->ended = NoMovementScanDirection;
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
			/* A cursor may stay here for long, and VACUUM waits for pins. */
			wh_batch_release(scan->indexRelation, batch);
			so->ended = direction;
			return false;
		}
	}
	return true;
}

/*
 * Moves to the next item if it is in the batch.
 */
static inline bool
advance_in_batch(WhBatch *batch, ScanDirection direction)
{
	int			next = batch->current + (ScanDirectionIsForward(direction) ? 1 : -1);

	if (!batch->valid || next < 0 || next >= batch->nitems)
		return false;
	batch->current = next;
	return true;
}

/*
 * Notes that the row returned last is dead to all.  Its entry is marked when
 * the batch is released.
 */
static void
kill_current(WhScan so)
{
	WhBatch    *batch = &so->batch;

	if (!batch->valid || batch->current < 0 ||
		batch->current >= batch->nitems ||
		(batch->items[batch->current].slot & WH_ITEM_KILLED))
		return;
	batch->items[batch->current].slot |= WH_ITEM_KILLED;
	batch->nkilled++;
}

/*
 * amgettuple.
 */
bool
wh_gettuple(IndexScanDesc scan, ScanDirection direction)
{
	WhScan		so = (WhScan) scan->opaque;
	WhScanItem *item;

	if (!so->ready)
		prepare_scan(scan);
	if (scan->kill_prior_tuple)
		kill_current(so);
	if (!advance_in_batch(&so->batch, direction) && !advance(scan, direction))
		return false;
	item = &so->batch.items[so->batch.current];
	scan->xs_heaptid = item->tid;
	scan->xs_recheck = so->conditions.recheck;
	if (so->batch.has_numbers)
		wh_form_number(scan, so->batch.current);
	else if (so->keep_values)
		wh_form_tuple(scan, item);
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

	if (!so->ready)
		prepare_scan(scan);
	so->keep_pin = false;
	while (advance(scan, ForwardScanDirection))
	{
		ItemPointer tid = &so->batch.items[so->batch.current].tid;

		/* Bitmaps have no place for other numbers. */
		if (ItemPointerGetOffsetNumber(tid) > MaxHeapTuplesPerPage)
			wh_report_damage(scan->indexRelation, so->batch.block);
		tbm_add_tuples(tbm, tid, 1, so->conditions.recheck);
		n++;
	}
	wh_batch_release(scan->indexRelation, &so->batch);
	return n;
}

/*
 * ammarkpos.
 */
void
wh_markpos(IndexScanDesc scan)
{
	WhScan		so = (WhScan) scan->opaque;

	wh_batch_release(scan->indexRelation, &so->mark);
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

	so->ended = NoMovementScanDirection;
	if (so->marked >= 0 && so->mark_is_copy)
	{
		WhBatch		old = so->batch;

		/* The two swap places, so that each has its own memory. */
		wh_batch_release(scan->indexRelation, &old);
		so->batch = so->mark;
		so->mark = old;
		so->mark_is_copy = false;
	}
	if (so->marked < 0)
		wh_batch_release(scan->indexRelation, &so->batch);
	else
		so->batch.current = so->marked;
}
