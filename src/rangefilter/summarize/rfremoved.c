/*-------------------------------------------------------------------------
 *
 * rfremoved.c
 *	  Counting the rows that were removed since a summary was made.
 *
 * A summary covers every row version that was in the heap when it was made, so it
 * forgets a key only when it is made anew after the key's rows were removed.  That
 * number of rows is known without reading the table:
 *
 * A row that is removed, by VACUUM or by pruning, leaves a dead line pointer
 * (LP_DEAD).  The pointer goes only when VACUUM has called ambulkdelete for it.  So
 * the rows removed since a scan of the heap are the pointers that ambulkdelete was
 * called for since, plus those that are dead now, less those that were dead at the
 * scan.  RfMetaData.removed is the first number less the third.  The second has to
 * be counted, since VACUUM calls no ambulkdelete where few pages have such pointers.
 * A page with one is not all-visible, so the others need not be read.
 *
 * Members of a HOT chain leave no pointer when they are pruned.  The chain's other
 * members have the same key, with two exceptions: updates older than the index, and
 * since PostgreSQL 16 all that change columns of such indexes alone.  RF_MIXED_CHAINS
 * says that there are or were such chains.  A scan sets it that has met one, and so does
 * an insert for a HOT update.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/heapam.h"
#include "access/visibilitymap.h"
#include "access/xact.h"
#include "commands/vacuum.h"
#include "compat.h"
#include "rangefilter/page/page.h"
#include "rangefilter/summarize/summarize.h"
#include "storage/procarray.h"
#include "utils/float.h"
#include "utils/guc.h"

/*
 * Of a table with so few different values each is in many of the questions: the summary is
 * to forget a single one.
 */
#define FEW_KEYS	100

/* rangefilter.vacuum_scale_factor */
static double scale_factor = 0.2;

/*
 * Counts dead line pointers of the heap, but no more than most.  Obeys VACUUM's cost delay.
 */
static double
count_dead_pointers(Relation heap, double most)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(heap);
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	Buffer		vmbuffer = InvalidBuffer;
	double		count = 0;

	for (BlockNumber block = 0; block < nblocks && count < most; block++)
	{
		Buffer		buffer;
		Page		page;
		OffsetNumber maxoff;

		if (VM_ALL_VISIBLE(heap, block, &vmbuffer))
			continue;
		RF_VACUUM_DELAY();
		buffer = ReadBufferExtended(heap, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		page = BufferGetPage(buffer);
		maxoff = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);
		for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
			count += ItemIdIsDead(PageGetItemId(page, off));
		UnlockReleaseBuffer(buffer);
	}
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);
	FreeAccessStrategy(strategy);
	return Min(count, most);
}

/*
 * Returns how many covered rows must have been removed for the summary to be made anew; infinity where
 * it covers none.  meta is locked, and no other page of the index is.
 *
 * VACUUM does it for a share of the rows (rangefilter.vacuum_scale_factor); where there are few
 * keys, as soon as all rows of one may have gone.  A command does it for any row, and so does the
 * worker for a table that is read in vain.  Sets *few if the number for VACUUM is that of few keys.
 */
static double
enough_removed(Relation index, const RfMetaData *meta, RfSummarizeMode mode,
			   bool *few)
{
	const RfSegment *segment = rf_first_segment(meta);
	double		delta = rf_delta_keys(rf_file(index), meta,
									  rf_index_codec(index)->kind) +
	rf_level_keys(meta) + ((meta->flags & RF_DELTA_NULLS) != 0);
	double		rows = delta;
	double		rarest = delta > 0 ? 1 : get_float8_infinity();

	*few = delta <= FEW_KEYS;
	for (int i = 0; i < meta->nsegments; i++)
	{
		rows += segment->nrows;
		if (segment->nrows > 0)
			rarest = Min(rarest, Max(segment->rarest, 1));
		*few &= segment->nkeys <= FEW_KEYS;
		segment = rf_next_segment(segment);
	}
	if (rows == 0)
		return get_float8_infinity();
	if (mode == RF_SUMMARIZE_ASKED || mode == RF_SUMMARIZE_VAIN)
		return 1;
	return *few ? Min(rarest, rows * scale_factor + 1) : rows * scale_factor + 1;
}

/*
 * Return true if, by the metapage alone, VACUUM would make the summary anew for the rows that were
 * removed.  meta is locked, and no other page of the index is.
 */
bool
rf_removal_is_due(Relation index, const RfMetaData *meta)
{
	bool		few;

	return meta->removed >= enough_removed(index, meta, RF_SUMMARIZE_VACUUM, &few);
}

/*
 * Return true if so many of the covered rows were removed that the summary is to be made anew.  Unless
 * in RF_SUMMARIZE_WORKER, where it may be asked often, looks at chains, and reads the pages of the heap that are not
 * all-visible, until there are enough dead pointers.  No page is locked before or after.
 */
bool
rf_enough_removed(Relation heap, Relation index, RfSummarizeMode mode)
{
	Buffer		buffer = rf_read_meta(index, BUFFER_LOCK_SHARE);
	const RfMetaData *meta = rf_page_meta(BufferGetPage(buffer));
	bool		few;
	double		missing = enough_removed(index, meta, mode, &few) - meta->removed;
	bool		mixed = (meta->flags & (RF_MIXED_CHAINS | RF_MIXED_CHAINS_RETIRED)) != 0;
	TransactionId chains_xid = meta->chains_xid;

	UnlockReleaseBuffer(buffer);
	if (missing <= 0 || mode == RF_SUMMARIZE_WORKER)
		return missing <= 0;
	if (missing == get_float8_infinity())
		return false;
	if (mixed && (few || mode != RF_SUMMARIZE_VACUUM) &&
		TransactionIdPrecedes(chains_xid, GetOldestNonRemovableTransactionId(heap)))
		return true;
	return count_dead_pointers(heap, missing) >= missing;
}

/*
 * VACUUM is about to remove the dead line pointers: counts them in RfMetaData.removed, until there
 * are as many as the summary is made anew for.  Does nothing where the metapage is damaged,
 * which must not keep VACUUM from its work.  No page is locked before or after.
 */
void
rf_note_removal(Relation heap, Relation index)
{
	Buffer		buffer = rf_try_read_meta(index);
	GenericXLogState *state;
	const RfMetaData *meta;
	RfMetaData *new;
	double		missing = 0;
	double		count = 0;
	bool		few;

	if (!BufferIsValid(buffer))
		return;
	meta = rf_page_meta(BufferGetPage(buffer));
	if (!(meta->flags & RF_NOT_HEAP))
		missing = enough_removed(index, meta, RF_SUMMARIZE_VACUUM, &few) - meta->removed;
	UnlockReleaseBuffer(buffer);
	if (missing > 0)
		count = count_dead_pointers(heap, ceil(missing));
	if (count == 0)
		return;
	buffer = rf_read_meta(index, BUFFER_LOCK_EXCLUSIVE);
	state = GenericXLogStart(index);
	new = rf_page_meta(GenericXLogRegisterBuffer(state, buffer, 0));
	new->removed = Min(new->removed + count, PG_INT32_MAX);
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}

/*
 * Return true if the tuple, which this transaction has inserted, is the new version of a HOT
 * update.  Takes and releases a share lock on its page.
 */
static bool
is_hot_update(Relation heap, ItemPointer tid)
{
	Buffer		buffer = ReadBuffer(heap, ItemPointerGetBlockNumber(tid));
	Page		page = BufferGetPage(buffer);
	OffsetNumber offset = ItemPointerGetOffsetNumber(tid);
	bool		result = false;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (offset <= PageGetMaxOffsetNumber(page) &&
		ItemIdIsNormal(PageGetItemId(page, offset)))
		result = HeapTupleHeaderIsHeapOnly((HeapTupleHeader)
										   PageGetItem(page, PageGetItemId(page, offset)));
	UnlockReleaseBuffer(buffer);
	return result;
}

/*
 * A key was inserted for a tuple in summarized blocks, and RF_MIXED_CHAINS was not set: sets it
 * if this was a HOT update.  No page is locked before or after.
 */
void
rf_note_hot_update(Relation heap, Relation index, ItemPointer tid)
{
	Buffer		buffer;
	GenericXLogState *state;
	RfMetaData *meta;

	if (!is_hot_update(heap, tid))
		return;
	buffer = rf_read_meta(index, BUFFER_LOCK_EXCLUSIVE);
	state = GenericXLogStart(index);
	meta = rf_page_meta(GenericXLogRegisterBuffer(state, buffer, 0));
	if (!(meta->flags & RF_MIXED_CHAINS))
	{
		meta->flags |= RF_MIXED_CHAINS;
		meta->chains_xid = GetTopTransactionIdIfAny();
	}
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}

/*
 * Called once, when the library is loaded.
 */
void
rf_init_removed(void)
{
	DefineCustomRealVariable("rangefilter.vacuum_scale_factor",
							 "Share of a table's rows that must have been removed before VACUUM makes a summary of it anew.",
							 "Where there are few different values, VACUUM does so as soon as the rarest one may be gone.",
							 &scale_factor,
							 0.2,
							 0.0,
							 100.0,
							 PGC_USERSET,
							 0,
							 NULL,
							 NULL,
							 NULL);
}
