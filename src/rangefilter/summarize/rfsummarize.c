/*-------------------------------------------------------------------------
 *
 * rfsummarize.c
 *	  Summarizing: replacing tail, delta and old segments by a new segment.
 *
 * There are three steps.  The caller holds a lock on the heap that excludes
 * other summarizes (ShareUpdateExclusiveLock or more).
 *
 * 1. Under the metapage's exclusive lock: read the heap's size, announce the
 *	  range [start, end) to be scanned, retire the delta and its levels.  Inserts
 *	  go to a new delta from now on, and no segment in the range counts as covering
 *	  them.
 * 2. Scan the range and write the run of its keys to free pages.
 * 3. Under the metapage's exclusive lock: put the new segment in the place
 *	  of those in the range, drop the retired delta.
 *
 * Step 1 holds the lock of runs, and so does everything from the writing of
 * the run to the end of step 3.  So no merge works on what is being retired or
 * dropped, and nobody else takes the same free pages.  During the scan new
 * keys are merged as usual.
 *
 * From 1 to 3 queries go on using the old segments and both deltas.  Together
 * they cover everything: keys from before step 1 are covered as before, later
 * ones are in the new delta.  So a crash or an error in between leaves a
 * correct index.  The next summarize starts over.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/progress.h"
#include "core/core.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "rangefilter/page/page.h"
#include "rangefilter/page/shared.h"
#include "rangefilter/summarize/summarize.h"
#include "utils/memutils.h"

/*
 * How long the background worker leaves an index alone in which RF_KEY_UNKNOWN is set (ms): as long
 * as one whose summarizing has failed.
 */
#define RF_UNKNOWN_REST		(10 * 60 * 1000)

/* What a summarize is about to do. */
typedef struct RfWork
{
	BlockNumber start;			/* heap blocks [start, end) */
	BlockNumber end;
	BlockNumber tail_blocks;	/* of these, never summarized before */
	uint32		owner;
	uint64		identity;
	bool		missed_dead;	/* see RfHeapScan */
	bool		missed_visible;
	bool		unordered;
	TransactionId chains_xid;
	uint64		dead_pointers;
} RfWork;

/*
 * Return true if the places of a segment are so imprecise that it should be made anew.
 * RF_SUMMARIZE_ASKED: one imprecise range is enough.  Else half of the ranges
 * must be imprecise, and the segment's end within RF_SINGLE_SEGMENT_BLOCKS.
 */
static bool
rf_is_too_imprecise(const RfSegment *segment, RfSummarizeMode mode)
{
	if (segment->imprecise == 0)
		return false;
	return mode == RF_SUMMARIZE_ASKED ||
		(segment->end <= RF_SINGLE_SEGMENT_BLOCKS &&
		 2 * rf_imprecise_count(segment) >= rf_range_count(segment));
}

/*
 * Returns how many keys of the delta, whose pages have in_pages, would stay there after
 * a scan of the tail alone.  Sets *late if any key or NULL would stay.
 */
static uint64
rf_late_keys(const RfMetaData *meta, uint64 in_pages, bool *late)
{
	const RfSegment *level = rf_first_level(meta);
	uint64		nkeys = 0;

	*late = meta->delta_min_block < meta->summarized;
	if (*late)
		nkeys = in_pages;
	for (int i = 0; i < meta->nlevels; i++)
	{
		if (level->start < meta->summarized)
		{
			nkeys += level->nkeys;
			*late = true;
		}
		level = rf_next_segment(level);
	}
	return nkeys;
}

/*
 * Return true if so much has changed that summarized blocks should be read again.
 *
 * That enough rows were removed (rfremoved.c) is a reason.  So is a delta with more
 * keys than a twentieth of the summarized rows, since queries have to search it.
 * Keys that sort otherwise now cannot be used at all.
 *
 * RF_STANDBY_UNKNOWN may be set because keys of DEAD versions were left out.
 * VACUUM removes these versions.  So VACUUM and rangefilter_summarize() try to
 * clear the flag, and the worker does not.
 */
static bool
rf_worth_redoing(Relation index, const RfMetaData *meta, bool sorted_otherwise,
				 RfSummarizeMode mode, bool removed)
{
	const RfSegment *segment = rf_first_segment(meta);
	uint64		in_pages = rf_delta_keys(rf_file(index), meta,
										 rf_index_codec(index)->kind);
	bool		late;
	double		delta = rf_late_keys(meta, in_pages, &late);
	double		summarized = 0;

	if (mode == RF_SUMMARIZE_BUILD || sorted_otherwise || removed)
		return true;
	if (meta->flags & (RF_DELTA_OVERFLOW | RF_DELTA_OVERFLOW_RETIRED | RF_KEY_UNKNOWN))
		return true;
	if ((meta->flags & RF_STANDBY_UNKNOWN) && mode != RF_SUMMARIZE_WORKER &&
		mode != RF_SUMMARIZE_VAIN)
		return true;
	if (late && mode == RF_SUMMARIZE_ASKED)
		return true;
	for (int i = 0; i < meta->nsegments; i++)
	{
		summarized += segment->nrows;
		if (rf_is_too_imprecise(segment, mode))
			return true;
		segment = rf_next_segment(segment);
	}
	return delta * 20 > summarized + 1000;
}

/*
 * Return true if it is time for the background worker to summarize: if the tail is open, the delta has
 * overflowed, or so much has changed that summarized blocks are worth reading again.  meta is
 * locked, and no other page of the index is.
 */
bool
rf_summarize_is_due(Relation index, const RfMetaData *meta)
{
	/*
	 * While there is such a string, only VACUUM looks whether it is still
	 * there.  For a row version whose key is not known, which goes when old
	 * snapshots do, a look now and then suffices.
	 */
	if (meta->collators == RF_UNORDERED)
		return false;
	if (meta->flags & RF_KEY_UNKNOWN)
		return TimestampDifferenceExceeds(meta->summarized_at, GetCurrentTimestamp(),
										  RF_UNKNOWN_REST);
	return (meta->flags & RF_UNCERTAIN_FLAGS) != 0 || rf_levels_are_many(meta) ||
		rf_worth_redoing(index, meta, rf_sorted_otherwise(meta, rf_index_codec(index)),
						 RF_SUMMARIZE_WORKER, rf_removal_is_due(index, meta));
}

/*
 * The start of the segment that holds the block; the block itself if there is
 * none.
 */
static BlockNumber
rf_segment_start(const RfMetaData *meta, BlockNumber block)
{
	const RfSegment *segment = rf_segment_of_block(meta, block);

	return segment != NULL ? segment->start : block;
}

/*
 * Chooses where the range to be scanned, of a heap of end blocks, begins: at the tail,
 * or further down for one of these reasons:
 *
 *	- a small heap is always read whole: one segment is best for queries;
 *	- segments no larger than twice what follows are merged into the new one,
 *	  so that their number stays logarithmic and each block is read again only
 *	  when the heap has grown by half;
 *	- the directory must have room for the largest possible entry;
 *	- a summarize that failed may have left a retired delta; only a scan of all
 *	  that the failed one was to scan may drop it.
 */
BlockNumber
rf_choose_start(const RfMetaData *meta, BlockNumber end)
{
	BlockNumber start = Min(meta->summarized, end);
	const RfSegment *segments[RF_DIRECTORY_SIZE / sizeof(RfSegment)];
	const RfSegment *segment = rf_first_segment(meta);
	uint32		kept = (const char *) rf_first_level(meta) - (const char *) segment;

	if (end <= RF_SINGLE_SEGMENT_BLOCKS)
		return 0;
	for (int i = 0; i < meta->nsegments; i++)
	{
		segments[i] = segment;
		segment = rf_next_segment(segment);
	}
	for (int i = meta->nsegments - 1; i >= 0; i--)
	{
		segment = segments[i];
		if (segment->start < start &&
			segment->end <= end &&
			segment->end - segment->start > 2 * (uint64) (end - segment->end) &&
			kept + RF_MAX_SEGMENT_SIZE <= RF_SEGMENTS_SIZE)
			break;
		start = Min(start, segment->start);
		kept -= segment->length;
	}
	if ((meta->flags & RF_ANNOUNCED) && (meta->flags & RF_DELTA_RETIRING))
		start = Min(start, rf_segment_start(meta, meta->announced_start));
	return start;
}

/*
 * Retires the levels whose keys the scan from start on will see, on the
 * metapage's image.  All others are in use, also those that a failed summarize
 * has retired.
 */
static void
rf_retire_levels(RfMetaData *meta, BlockNumber start)
{
	RfSegment  *level = unconstify(RfSegment *, rf_first_level(meta));

	for (int i = 0; i < meta->nlevels; i++)
	{
		level->flags &= ~RF_LEVEL_RETIRED;
		if (level->start >= start)
			level->flags |= RF_LEVEL_RETIRED;
		level = unconstify(RfSegment *, rf_next_segment(level));
	}
}

/*
 * Retires the delta's pages, on the metapage's image, if the scan from start
 * on will see every tuple whose key is in them.  Otherwise they stay in use.
 */
static void
rf_retire_delta(RfMetaData *meta, BlockNumber start)
{
	if (meta->delta_min_block < start)
		return;
	meta->nretired = meta->ndelta;
	if (meta->flags & RF_DELTA_OVERFLOW)
		meta->flags |= RF_DELTA_OVERFLOW_RETIRED;
	if (meta->flags & RF_DELTA_NULLS)
		meta->flags |= RF_DELTA_NULLS_RETIRED;
	meta->flags &= ~(RF_DELTA_OVERFLOW | RF_DELTA_NULLS);
	meta->flags |= RF_DELTA_RETIRING;
	meta->delta_min_block = InvalidBlockNumber;
}

/*
 * Changes the metapage's image to the current versions of collations.  Inserts
 * now encode keys with these.  The older keys cannot be used any more.  All of
 * them are retired, and the flag makes every answer RF_UNKNOWN until the scan
 * of the whole heap replaces them.
 */
static void
rf_change_collators(Relation index, RfMetaData *meta)
{
	Assert(meta->nretired == meta->ndelta);
	meta->codec_id = rf_index_codec(index)->id;
	meta->collators = rf_index_codec(index)->collators;
	meta->flags |= RF_DELTA_OVERFLOW_RETIRED;
	rf_move_version(index, meta);
}

/*
 * Step 1.  removed: enough rows have been removed.  Returns false where there is nothing to
 * do.  The lock of runs is held.  Takes and releases an exclusive lock on the metapage.
 */
static bool
rf_announce(Relation heap, Relation index, RfSummarizeMode mode,
			bool removed, RfWork *work)
{
	Buffer		buffer = rf_read_meta(index, BUFFER_LOCK_EXCLUSIVE);
	RfMetaData *meta = rf_page_meta(BufferGetPage(buffer));
	GenericXLogState *state;
	bool		otherwise = rf_sorted_otherwise(meta, rf_index_codec(index));
	bool		redo = rf_worth_redoing(index, meta, otherwise, mode, removed);

	if (meta->flags & RF_NOT_HEAP)
	{
		UnlockReleaseBuffer(buffer);
		return false;
	}

	/* Read under the lock: see the head of rfinsert.c. */
	work->end = RelationGetNumberOfBlocks(heap);
	if (!redo && work->end <= meta->summarized &&
		!(meta->flags & (RF_UNCERTAIN_FLAGS | RF_ANNOUNCED)))
	{
		UnlockReleaseBuffer(buffer);
		return false;
	}
	work->start = redo ? 0 : rf_choose_start(meta, work->end);
	work->tail_blocks = work->end > meta->summarized ?
		work->end - meta->summarized : 0;
	work->identity = meta->identity;
	work->owner = meta->next_owner;

	state = GenericXLogStart(index);
	meta = rf_page_meta(GenericXLogRegisterBuffer(state, buffer, 0));
	meta->next_owner++;
	meta->flags &= ~RF_DELTA_RETIRING;
	rf_retire_delta(meta, work->start);
	rf_retire_levels(meta, work->start);
	if (otherwise)
		rf_change_collators(index, meta);
	if (meta->flags & RF_TAIL_OPEN)
		meta->flags |= RF_TAIL_OPEN_RETIRED;
	meta->flags &= ~RF_TAIL_OPEN;
	if (work->start == 0 && (meta->flags & RF_MIXED_CHAINS))
	{
		meta->flags |= RF_MIXED_CHAINS_RETIRED;
		meta->flags &= ~RF_MIXED_CHAINS;
	}
	meta->flags |= RF_ANNOUNCED;
	meta->announced_start = work->start;
	meta->announced_end = work->end;
	meta->announced_owner = work->owner;
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
	return true;
}

/*
 * Drops the retired pages of the delta from the metapage's image.
 */
static void
rf_drop_retired(RfMetaData *meta)
{
	rf_delta_drop_pages(meta, 0, meta->nretired);
	meta->nretired = 0;
	meta->flags &= ~(RF_DELTA_OVERFLOW_RETIRED | RF_DELTA_NULLS_RETIRED |
					 RF_DELTA_RETIRING);
}

/*
 * Puts the new segment behind those that lie before its range, on the
 * metapage's image.  All other segments are in the range, and are dropped.  So
 * are retired levels.
 */
static void
rf_swing_directory(Page page, const RfSegment *new, BlockNumber start)
{
	PGAlignedBlock old;
	RfMetaData *meta = rf_page_meta(page);
	const RfSegment *entry = rf_first_segment(rf_page_meta(old.data));
	int			nsegments = meta->nsegments;
	int			nentries = nsegments + meta->nlevels;

	memcpy(old.data, page, BLCKSZ);
	meta->nsegments = meta->nlevels = 0;
	rf_set_directory(page, 0);
	for (int i = 0; i < nsegments && entry->start < start; i++)
	{
		rf_put_entry(page, entry);
		meta->nsegments++;
		entry = rf_next_segment(entry);
	}
	rf_put_entry(page, new);
	meta->nsegments++;
	entry = rf_first_level(rf_page_meta(old.data));
	for (int i = nsegments; i < nentries; i++)
	{
		if (!(entry->flags & RF_LEVEL_RETIRED))
		{
			rf_put_entry(page, entry);
			meta->nlevels++;
		}
		entry = rf_next_segment(entry);
	}
}

/*
 * Step 3.  The version moves: the new filter may say YES to keys that the old
 * ones denied, and then an insert of such a key writes nothing.  The lock of
 * runs is held.  Takes and releases an exclusive lock on the metapage.
 *
 * The announcement must still be ours.  During our scan an index expression
 * may call rangefilter_summarize(), which our own lock does not prevent.  Our
 * run would lack what that call retired or dropped.
 */
static void
rf_swing(Relation index, const RfWork *work, const RfSegment *new)
{
	Buffer		buffer = rf_read_meta(index, BUFFER_LOCK_EXCLUSIVE);
	GenericXLogState *state = GenericXLogStart(index);
	Page		page = GenericXLogRegisterBuffer(state, buffer, 0);
	RfMetaData *meta = rf_page_meta(page);

	if (meta->identity != work->identity ||
		!(meta->flags & RF_ANNOUNCED) ||
		meta->announced_owner != work->owner)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("index \"%s\" was summarized or rebuilt while it was being summarized",
						RelationGetRelationName(index))));
	rf_swing_directory(page, new, work->start);
	if (meta->flags & RF_DELTA_RETIRING)
		rf_drop_retired(meta);
	if (work->start == 0)
	{
		meta->flags &= ~(RF_STANDBY_UNKNOWN | RF_KEY_UNKNOWN | RF_MIXED_CHAINS_RETIRED);
		meta->removed = -(int32) Min(work->dead_pointers, PG_INT32_MAX);
	}
	if (TransactionIdIsValid(work->chains_xid))
	{
		meta->flags |= RF_MIXED_CHAINS;
		meta->chains_xid = work->chains_xid;
	}
	if (work->missed_dead)
		meta->flags |= RF_STANDBY_UNKNOWN;
	if (work->missed_visible)
		meta->flags |= RF_KEY_UNKNOWN;
	if (work->unordered)
		meta->collators = RF_UNORDERED;
	meta->flags &= ~(RF_TAIL_OPEN_RETIRED | RF_ANNOUNCED);
	meta->summarized = work->end;
	meta->summarized_at = GetCurrentTimestamp();
	meta->generation++;
	rf_move_version(index, meta);
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}

/*
 * RfTupleCallback: gives a row to the sort of keys.
 */
static void
rf_collect(void *arg, const RfHeapTuple *tuple)
{
	rf_sort_add((RfKeySort *) arg, tuple);
}

/*
 * Step 2.  Writes the run and returns its directory entry (palloc'd).  Notes what the scan
 * has found.  Takes the lock of runs, and leaves it held.
 */
static RfSegment *
rf_make_run(Relation heap, Relation index, IndexInfo *index_info,
			RfSummarizeMode mode, RfWork *work)
{
	RfHeapScan	scan = {0};
	RfPlacing	placing;
	RfSegment  *segment;
	FilterRun	run;

	scan.heap = heap;
	scan.index = index;
	scan.index_info = index_info;
	scan.codec = rf_index_codec(index);
	scan.start = work->start;
	scan.end = work->end;
	scan.in_vacuum = mode == RF_SUMMARIZE_VACUUM ||
		mode == RF_SUMMARIZE_WORKER || mode == RF_SUMMARIZE_VAIN;
	scan.report_progress = mode == RF_SUMMARIZE_BUILD ||
		(mode == RF_SUMMARIZE_ASKED && rf_progress_is_of(index));
	scan.callback = rf_collect;
	rf_plan_places(heap, index, work->start, work->end, &placing);
	scan.arg = rf_sort_begin(scan.codec, &placing);
	rf_scan_heap(&scan);
	work->missed_dead = scan.missed_dead;
	work->missed_visible = scan.missed_visible;
	work->unordered = scan.unordered;
	work->chains_xid = scan.chains_xid;
	work->dead_pointers = scan.dead_pointers;
	segment = rf_sort_finish(scan.arg, index, scan.report_progress, &run);
	segment->owner = work->owner;
	(void) rf_lock_runs(index, true);
	if (run.npages > 0)
		segment->run_block = rf_write_run(index, work->identity, work->owner,
										  &run);
	return segment;
}

/*
 * Summarizes what the mode asks for, and merges levels that inserts have left alone.  Does
 * nothing in the transaction that has moved the table (core/file.c): TRUNCATE may have emptied the file that it is in now, and a
 * rollback would bring the old one back, but not the old summary.  Returns how many heap blocks have been
 * summarized for the first time.  *nrows (may be NULL) is set to the number of
 * indexed tuples that were read, NULLs included.
 *
 * The caller holds the lock on the heap that the file's head names, and at
 * least RowExclusiveLock on the index, as VACUUM does: nobody gives it another
 * file.  It has switched to the table owner's identity.
 */
BlockNumber
rf_summarize(Relation heap, Relation index, IndexInfo *index_info,
			 RfSummarizeMode mode, double *nrows)
{
	RfWork		work;
	RfSegment  *segment;
	bool		removed;
	bool		announced;
	MemoryContext old;
	MemoryContext context;

	if (nrows != NULL)
		*nrows = 0;
	if (rf_core_is_moved(heap, index))
		return 0;
	removed = mode != RF_SUMMARIZE_BUILD && rf_enough_removed(heap, index, mode);
	rf_merge_levels(index);
	(void) rf_lock_runs(index, true);
	announced = rf_announce(heap, index, mode, removed, &work);
	rf_unlock_runs(index);
	if (!announced)
		return 0;
	context = AllocSetContextCreate(CurrentMemoryContext,
									"rangefilter summarize",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	segment = rf_make_run(heap, index, index_info, mode, &work);
	if (mode == RF_SUMMARIZE_BUILD && index_info->ii_Concurrent)
		work.missed_dead = true;
	rf_swing(index, &work, segment);
	rf_unlock_runs(index);
	if (nrows != NULL)
		*nrows = segment->nrows;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return work.tail_blocks;
}
