/*-------------------------------------------------------------------------
 *
 * rfinsert.c
 *	  aminsert: making sure that the summary does not deny a new key.
 *
 * An insert looks at the metapage after its tuple is in the heap, and decides
 * and writes under one and the same metapage lock.  A summarize announces its
 * range under the exclusive lock, reading the heap's size there; so an insert
 * that looked earlier has its tuple inside the range that will be scanned,
 * and one that looks later finds the announcement and writes its key to the
 * delta that the summarize will not drop.
 *
 * Mostly the share lock does: a key that is not in the lowest block so far, and for
 * which the delta's last page has room, is appended there and changes nothing else.  An
 * announcement has to wait for that as for all who have locked the metapage.
 *
 * Who has filled a page of the delta merges it into a level, with its own key
 * safely in (rflevels.c).  A statement that brings many keys is a bulk load: it opens
 * the tail, and the summary says nothing until the next summarize, which is the end
 * of the load (rfload.c).
 *
 * Bulk loads put many tuples into the heap and then call aminsert for each.
 * All that a look at the metapage found then holds for all of them: they were
 * there.  That they were is known if this backend has written no WAL since it
 * looked, for inserting a tuple does.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "key/rowkey.h"
#include "nodes/execnodes.h"
#include "rangefilter/page/options.h"
#include "rangefilter/page/page.h"
#include "rangefilter/page/shared.h"
#include "rangefilter/probe/probe.h"
#include "rangefilter/rangefilter.h"
#include "rangefilter/summarize/summarize.h"
#include "request/request.h"
#include "storage/predicate.h"

/* Milliseconds between two requests of a backend for the same index. */
#define RF_REQUEST_INTERVAL	1000

uint64		rf_inserts = 0;
uint64		rf_keys_written = 0;

/*
 * Where RF_NEW_KEYS keys in a row were neither in the delta nor in a level, only one in
 * RF_KEY_SAMPLE is looked for there.
 */
#define RF_NEW_KEYS			64
#define RF_KEY_SAMPLE		8

/* One in RF_DUE_SAMPLE keys of a page looks whether the worker should summarize. */
#define RF_DUE_SAMPLE		64

/* A key, or NULL, on its way into the index. */
typedef struct RfNewKey
{
	RfKeyKind	kind;
	bool		isnull;
	RfKey		key;
	BlockNumber heap_block;
	bool		bulk;			/* the statement has brought many */
	bool		last_resort;	/* the delta cannot get room for it */

	/* Found out on the way: */
	bool		is_due;			/* the worker should summarize */
	bool		checked;		/* the metapage, as long as it is pinned */
} RfNewKey;

/* What a statement has brought so far, in IndexInfo.ii_AmCache. */
typedef struct RfStatement
{
	uint32		tail_keys;		/* keys of the tail that needed something */
	uint32		bulk_keys;		/* that make it a bulk load; 0: not known */
} RfStatement;

/* What became of a key. */
typedef enum RfOutcome
{
	RF_IS_COVERED,				/* as it was, or the summary says nothing now */
	RF_WRITTEN,					/* to the delta */
	RF_FILLED,					/* likewise, and a page before is full */
	RF_NO_ROOM					/* nothing is done */
} RfOutcome;

/*
 * The segment of a heap block, or NULL: that of a block in an announced range is about to be
 * replaced by one that may not hold the key.
 */
static const RfSegment *
rf_lasting_segment(const RfMetaData *meta, BlockNumber heap_block)
{
	if ((meta->flags & RF_ANNOUNCED) && heap_block >= meta->announced_start)
		return NULL;
	return rf_segment_of_block(meta, heap_block);
}

/* What is to be done for a key. */
typedef enum RfCover
{
	RF_COVERED,					/* nothing */
	RF_MAKE_IMPRECISE,			/* its segment has it, but in other places */
	RF_MISSING
} RfCover;

/*
 * Does the segment of its block answer YES for the key already, and say that
 * it may be there?  UNKNOWN does not count: it may turn into NO.
 */
static RfCover
rf_segment_covers(Relation index, const RfMetaData *meta,
				  const RfNewKey *new)
{
	const RfSegment *segment = rf_lasting_segment(meta, new->heap_block);

	if (segment == NULL)
		return RF_MISSING;
	if (new->isnull)
		return segment->flags & RF_SEGMENT_NULLS ? RF_COVERED : RF_MISSING;
	if (rf_segment_probe_key(rf_file(index), meta, segment, new->kind,
							 &new->key) != RF_YES)
		return RF_MISSING;
	return rf_key_is_placed(rf_file(index), meta, segment, &new->key, new->heap_block) ?
		RF_COVERED : RF_MAKE_IMPRECISE;
}

/*
 * Does the delta in use hold the key already?  Only as long as what retires
 * the delta is bound to scan this heap block too, which delta_min_block says.
 */
static bool
rf_delta_covers(Relation index, const RfMetaData *meta, const RfNewKey *new)
{
	RfRange		range = {.lo = new->key,.hi = new->key};
	RfKeySet	set = {.kind = new->kind,.nranges = 1,.ranges = &range};

	/* InvalidBlockNumber, "none", is the highest block number. */
	if (new->heap_block < meta->delta_min_block)
		return false;
	if (new->isnull)
		return (meta->flags & RF_DELTA_NULLS) != 0;
	return rf_delta_probe(rf_file(index), meta, meta->nretired, &set, NULL) == RF_YES;
}

/*
 * Does a level hold the key already, which no summarize may drop without having
 * scanned this heap block?  One that is about to be dropped does not count.
 */
static bool
rf_level_covers(Relation index, const RfMetaData *meta, const RfNewKey *new)
{
	const RfSegment *level = rf_first_level(meta);

	if (new->isnull)
		return false;
	for (int i = 0; i < meta->nlevels; i++)
	{
		if (!(level->flags & RF_LEVEL_RETIRED) &&
			new->heap_block >= level->start &&
			rf_segment_probe_key(rf_file(index), meta, level, new->kind,
								 &new->key) == RF_YES)
			return true;
		level = rf_next_segment(level);
	}
	return false;
}

/*
 * Do the delta in use or the levels hold the key already?
 *
 * May say no where they do: the key is then written once more, until a merge.  That is
 * cheaper than to look for keys that are always new.
 */
static bool
rf_inserted_before(Relation index, const RfMetaData *meta, const RfNewKey *new)
{
	RfCache    *cache = rf_cache(index);

	if (!new->isnull && ++cache->misses > RF_NEW_KEYS &&
		cache->misses % RF_KEY_SAMPLE != 0)
		return false;
	if (!rf_delta_covers(index, meta, new) && !rf_level_covers(index, meta, new))
		return false;
	cache->misses = 0;
	return true;
}

/*
 * Has the key no place among those of the summary?  It has no order, or that of another
 * version of its collation.
 */
static bool
rf_has_no_place(Relation index, const RfMetaData *meta, const RfNewKey *new)
{
	return new->key.unordered || rf_sorted_otherwise(meta, rf_index_codec(index));
}

/*
 * What is to be written for this key?  The caller holds a lock on the
 * metapage.
 */
static RfCover
rf_cover(Relation index, const RfMetaData *meta, const RfNewKey *new)
{
	if ((meta->flags & RF_TAIL_OPEN) && new->heap_block >= rf_tail_start(meta))
		return RF_COVERED;
	if ((meta->flags & RF_DELTA_OVERFLOW) || meta->collators == RF_UNORDERED)
		return RF_COVERED;
	if (rf_has_no_place(index, meta, new))
		return RF_MISSING;
	if (rf_inserted_before(index, meta, new))
		return RF_COVERED;
	return rf_segment_covers(index, meta, new);
}

/*
 * Makes the range of the key's block imprecise.  The caller holds the metapage
 * exclusively.  The version stays: what the summary denies is the same.
 */
static void
rf_make_imprecise(Relation index, Buffer meta_buffer, const RfNewKey *new)
{
	GenericXLogState *state = GenericXLogStart(index);
	RfMetaData *meta = rf_page_meta(GenericXLogRegisterBuffer(state, meta_buffer, 0));
	RfSegment  *segment = unconstify(RfSegment *,
									 rf_segment_of_block(meta, new->heap_block));

	segment->imprecise |= rf_imprecise_bit(segment, new->heap_block);
	GenericXLogFinish(state);
}

/*
 * Notes on the metapage's image that the key could not be kept.  Overflow is
 * repaired only by a summarize of all blocks, hence min block 0.
 */
static void
rf_note_loss(RfMetaData *meta, bool in_tail)
{
	if (in_tail)
		meta->flags |= RF_TAIL_OPEN;
	else
	{
		meta->flags |= RF_DELTA_OVERFLOW;
		meta->delta_min_block = 0;
	}
}

/*
 * Adds the key to the delta, on the metapage's image.  A page is registered as
 * rf_delta_add() says.
 */
static RfOutcome
rf_add_key(Relation index, GenericXLogState *state, RfMetaData *meta,
		   const RfNewKey *new, Buffer *buffer)
{
	int			ndelta = meta->ndelta;

	if (new->isnull)
		meta->flags |= RF_DELTA_NULLS;
	else if (!rf_delta_add(index, state, meta, new->kind, &new->key, buffer))
		return RF_NO_ROOM;

	/* InvalidBlockNumber, "none", is the highest block number. */
	meta->delta_min_block = Min(meta->delta_min_block, new->heap_block);
	return meta->ndelta > ndelta && ndelta > meta->nretired ?
		RF_FILLED : RF_WRITTEN;
}

/*
 * May the background worker be asked to summarize?
 */
static bool
rf_may_request(Relation index)
{
	return rf_autosummarize && !RelationUsesLocalBuffers(index) &&
		rf_index_options(index)->autosummarize;
}

/*
 * Something was written for a key, and moved the version: shared digests get the key, and
 * the next planning does not ask cached metapages, which lack it.  The caller has the locks
 * that rf_digests_add() wants.
 */
static void
rf_note_written(Relation index, const RfMetaData *meta,
				const RfSummaryVersion *before, const RfSummaryVersion *after,
				const RfNewKey *new)
{
	rf_keys_written++;
	if ((meta->flags & RF_UNCERTAIN_FLAGS) == 0)
		rf_digests_add(index, before, after,
					   new->isnull ? NULL : &new->key);
}

/*
 * Appends the key to the delta's last page, if that is all that has to be done: the
 * metapage, which the caller has share-locked, and has found to lack the key, stays as
 * it is.  False, and nothing done, where more has to be done.
 *
 * Another insert may have appended the same key since.  Then it is there twice.
 */
static bool
rf_append_key(Relation index, const RfMetaData *meta, RfNewKey *new)
{
	RfSummaryVersion before;
	RfSummaryVersion after;
	Buffer		buffer;
	int			nkeys;

	if (new->isnull || new->heap_block < meta->delta_min_block ||
		(new->bulk && new->heap_block >= rf_tail_start(meta)) ||
		rf_has_no_place(index, meta, new))
		return false;
	buffer = rf_delta_lock_room(index, meta, new->kind, &new->key);
	if (!BufferIsValid(buffer))
		return false;
	before = rf_version_with(meta, BufferGetPage(buffer));
	rf_advance_change_counter(RelationGetRelid(index));
	nkeys = rf_delta_put(buffer, new->kind, &new->key);
	after = rf_version_with(meta, BufferGetPage(buffer));
	rf_note_written(index, meta, &before, &after, new);
	UnlockReleaseBuffer(buffer);
	new->is_due = nkeys % RF_DUE_SAMPLE == 0 && rf_may_request(index) &&
		rf_summarize_is_due(index, meta);
	return true;
}

/*
 * Writes the key, or what stands for it.  A key does not go among those of
 * another version of its collation, nor anywhere if it has no order.  The caller holds the metapage
 * exclusively; the version moves in the same WAL record.
 */
static RfOutcome
rf_write_key(Relation index, Buffer meta_buffer, RfNewKey *new)
{
	const RfMetaData *written = rf_page_meta(BufferGetPage(meta_buffer));
	GenericXLogState *state = GenericXLogStart(index);
	RfMetaData *meta = rf_page_meta(GenericXLogRegisterBuffer(state, meta_buffer, 0));
	bool		in_tail = new->heap_block >= rf_tail_start(meta);
	Buffer		buffer = InvalidBuffer;
	RfOutcome	outcome = RF_IS_COVERED;
	RfSummaryVersion before;
	RfSummaryVersion after;
	bool		known = rf_meta_version(rf_file(index), meta, &before);

	if (rf_has_no_place(index, meta, new) ||
		(in_tail && !new->isnull && new->bulk))
		rf_note_loss(meta, in_tail);
	else
		outcome = rf_add_key(index, state, meta, new, &buffer);
	if (outcome == RF_NO_ROOM && new->last_resort)
	{
		rf_note_loss(meta, in_tail);
		outcome = RF_IS_COVERED;
	}
	if (outcome == RF_NO_ROOM)
		GenericXLogAbort(state);
	else
	{
		rf_move_version(index, meta);
		GenericXLogFinish(state);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
	if (outcome == RF_NO_ROOM)
		return outcome;
	if (known && rf_meta_version(rf_file(index), written, &after))
		rf_note_written(index, written, &before, &after, new);
	new->is_due = rf_may_request(index) && rf_summarize_is_due(index, written);
	return outcome;
}

/*
 * What the statement has brought so far.  Some callers of aminsert make an IndexInfo for
 * each row; then each row counts as a statement.
 */
static RfStatement *
rf_statement(IndexInfo *index_info)
{
	if (index_info->ii_AmCache == NULL)
		index_info->ii_AmCache = MemoryContextAllocZero(index_info->ii_Context,
														sizeof(RfStatement));
	return (RfStatement *) index_info->ii_AmCache;
}

/*
 * How many keys make a statement a bulk load?  When to write them to the delta
 * has cost about what a summarize will, which reads a small table whole.
 */
static uint32
rf_bulk_keys(const RfMetaData *meta)
{
	const RfSegment *segment = rf_first_segment(meta);
	uint64		nrows = 0;

	for (int i = 0; i < meta->nsegments; i++)
	{
		nrows += segment->nrows;
		segment = rf_next_segment(segment);
	}
	return Max(RF_BULK_KEYS, Min(nrows, RF_BULK_ROWS) / RF_ROWS_PER_BULK_KEY);
}

/*
 * Counts a key of the tail for which something was to be done.
 */
static void
rf_count_tail_key(Relation index, RfStatement *statement)
{
	if (statement->tail_keys++ == statement->bulk_keys && rf_autosummarize)
		rf_load_begin(RelationGetRelid(index));
}

/*
 * Is the statement a bulk load whose end will summarize the index?
 */
static bool
rf_is_load(const RfStatement *statement)
{
	return statement->tail_keys > statement->bulk_keys;
}

/*
 * Was the tail seen open for this heap block when the tuple was in the heap
 * already?
 */
static bool
rf_was_open(Relation index, Relation heap, BlockNumber heap_block)
{
	const RfCache *cache = rf_cache(index);

	return cache->open_record == ProcLastRecPtr &&
		!XLogRecPtrIsInvalid(cache->open_record) &&
		heap_block >= cache->open_start && RelationNeedsWAL(heap);
}

/*
 * Check all of the locked metapage, once for a key: a damaged one is an error.  While the page is
 * pinned it does not come from disk again, and whoever changes it has checked it.
 */
static void
rf_check_once(Relation index, Buffer buffer, RfNewKey *new)
{
	if (new->checked)
		return;
	rf_check_meta(index, buffer);
	new->checked = true;
}

/*
 * Return true if nothing is to be written because the tail is open, and remember that it is.
 * The caller has locked the metapage, and checked its fields.  A damaged directory is an error
 * where it is read here.
 */
static bool
rf_is_open(Relation index, Buffer buffer, RfNewKey *new, RfStatement *statement)
{
	const RfMetaData *meta = rf_page_meta(BufferGetPage(buffer));
	RfCache    *cache = rf_cache(index);

	if (statement->bulk_keys == 0)
	{
		rf_check_once(index, buffer, new);
		statement->bulk_keys = rf_bulk_keys(meta);
	}
	if (!(meta->flags & RF_TAIL_OPEN) || new->heap_block < rf_tail_start(meta))
		return false;
	cache->open_record = ProcLastRecPtr;
	cache->open_start = rf_tail_start(meta);
	return true;
}

/*
 * Gives the delta a spare block, for this key or another one, if it has none.  A
 * covered key needs none.  But then a user who may insert, but not read, would see from
 * the file's size which key is covered (R6).  The caller has share-locked the
 * metapage, and checked it; it is share-locked again on return.  In between anything may have changed.
 */
static void
rf_need_spare(Relation index, Buffer buffer)
{
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (!rf_delta_has_spare(rf_page_meta(BufferGetPage(buffer))))
		rf_delta_reserve(index, buffer);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
}

/*
 * Makes sure that the summary does not deny the key, reading and, if need be,
 * writing the metapage, which the caller has share-locked.  Leaves it locked,
 * in whatever mode.
 */
static RfOutcome
rf_cover_key(Relation index, Buffer buffer, RfNewKey *new)
{
	const RfMetaData *meta = rf_page_meta(BufferGetPage(buffer));
	RfCover		cover;

	rf_check_once(index, buffer, new);
	while (!rf_delta_has_spare(meta))
		rf_need_spare(index, buffer);
	cover = rf_cover(index, meta, new);
	if (cover == RF_COVERED)
		return RF_IS_COVERED;
	if (cover == RF_MISSING && rf_append_key(index, meta, new))
		return RF_WRITTEN;
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	cover = rf_cover(index, meta, new);
	if (cover == RF_MISSING)
		return rf_write_key(index, buffer, new);
	if (cover == RF_MAKE_IMPRECISE)
		rf_make_imprecise(index, buffer, new);
	return RF_IS_COVERED;
}

/*
 * Sees to it that the summary does not deny the key.  The caller has pinned and
 * share-locked the metapage; leaves it unlocked.  Where a page of the
 * delta has become full, it is merged into a level, if nobody else does so.  Where the
 * delta has no room, since somebody else is slow to do so, it waits for that.  Return true if it
 * is to be noted should the tuple be of a HOT update: see rf_note_hot_update().
 */
static bool
rf_insert_key(Relation index, Buffer buffer, RfStatement *statement,
			  RfNewKey *new)
{
	new->bulk = statement->tail_keys >= statement->bulk_keys;
	for (;; LockBuffer(buffer, BUFFER_LOCK_SHARE))
	{
		RfOutcome	outcome;
		bool		in_tail;
		bool		mixed;

		outcome = rf_cover_key(index, buffer, new);
		mixed = (rf_page_meta(BufferGetPage(buffer))->flags & RF_MIXED_CHAINS) != 0;
		in_tail = new->heap_block >= rf_tail_start(rf_page_meta(BufferGetPage(buffer)));
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		if (outcome == RF_NO_ROOM)
		{
			new->last_resort = !rf_merge_delta(index, true);
			continue;
		}
		if (outcome == RF_FILLED)
			(void) rf_merge_delta(index, false);
		if (outcome != RF_IS_COVERED && in_tail)
			rf_count_tail_key(index, statement);
		return RF_HOT_UPDATES_INSERT && !in_tail && !mixed;
	}
}

/*
 * Asks the background worker to summarize, if that is due, and not too often.  No page
 * is locked.
 */
static void
rf_request(Relation index, const RfNewKey *new)
{
	RfCache    *cache = rf_cache(index);
	TimestampTz now;

	if (!new->is_due || !rf_may_request(index))
		return;
	now = GetCurrentTimestamp();
	if (!TimestampDifferenceExceeds(cache->requested_at, now,
									RF_REQUEST_INTERVAL))
		return;
	cache->requested_at = now;
	rf_request_summarize(RelationGetRelid(index));
}

/*
 * aminsert.  Leaves no lock or pin.  Always false: there is no uniqueness to
 * vouch for.
 */
bool
rf_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
		  Relation heap, IndexUniqueCheck check_unique, bool index_unchanged,
		  IndexInfo *index_info)
{
	RfNewKey	new = {0};
	const RfCodec *codec = rf_index_codec(index);
	RfStatement *statement = rf_statement(index_info);
	Buffer		buffer;

	rf_inserts++;
	new.heap_block = ItemPointerGetBlockNumber(tid);
	if (rf_was_open(index, heap, new.heap_block) && statement->bulk_keys > 0)
	{
		rf_count_tail_key(index, statement);
		return false;			/* there is nothing to write */
	}

	buffer = rf_read_meta_fields(index);
	if (rf_page_meta(BufferGetPage(buffer))->flags & RF_NOT_HEAP)
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	else if (rf_is_open(index, buffer, &new, statement))
	{
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		rf_count_tail_key(index, statement);
		new.is_due = true;
	}
	else
	{
		/* Encoding bytes takes memory and may detoast: not under a lock. */
		new.kind = codec->kind;
		if (codec->kind == RF_KEY_BYTES)
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		new.isnull = !rf_encode_row(codec, values, isnull, &new.key);
		if (codec->kind == RF_KEY_BYTES)
			LockBuffer(buffer, BUFFER_LOCK_SHARE);
		if (rf_insert_key(index, buffer, statement, &new) && !index_unchanged)
			rf_note_hot_update(heap, index, tid);
	}
	ReleaseBuffer(buffer);
	if (!rf_is_load(statement))
		rf_request(index, &new);

	/* The caller's memory context may live as long as the whole statement. */
	if (new.key.data != NULL)
		pfree(unconstify(uint8 *, new.key.data));

	/*
	 * Core looked for serializable readers of this index before calling us,
	 * that is, before the key could be seen.  A reader that locked the index
	 * and read the summary in between would go unnoticed, so look again.
	 * (Where the tail was known to be open, core's look came after ours at
	 * the metapage.)
	 */
	CheckForSerializableConflictIn(index, NULL, InvalidBlockNumber);
	return false;
}

/*
 * aminsertcleanup: the end of a statement.
 */
void
rf_insert_cleanup(Relation index, IndexInfo *index_info)
{
	const RfStatement *statement = (const RfStatement *) index_info->ii_AmCache;

	if (statement != NULL && rf_is_load(statement) && !IsInParallelMode())
		rf_load_end(RelationGetRelid(index));
}
