/*-------------------------------------------------------------------------
 *
 * rfcheck.c
 *	  Looking for damage on the pages of an index, without its table.
 *
 * The pages are those to which a copy of the metapage refers.  They are read without a
 * lock on the metapage, so inserts and summarizes go on.  While the metapage is as it was
 * copied, nobody changes these pages, except that keys are appended to the delta's last
 * one.  So a fault counts only if the metapage is still the same.  If it is not, the
 * check begins anew, the last time with the metapage locked.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "rangefilter/page/page.h"

/* The check begins anew so often before it keeps the metapage locked. */
#define UNLOCKED_TRIES	5

/* The state of a check. */
typedef struct RfCheck
{
	Relation	index;
	const RfCodec *codec;
	const RfMetaData *meta;		/* a copy */
	BlockNumber nblocks;
	bool	   *used;			/* blocks to which the metapage refers */
	uint64		nkeys;
	const char *fault;			/* an error's detail, or NULL */
	BlockNumber block;			/* where, or the first block of the run */
} RfCheck;

/*
 * Notes a fault.  Returns false.
 */
static bool
rf_fault(RfCheck *check, BlockNumber block, const char *fault)
{
	check->fault = fault;
	check->block = block;
	return false;
}

/*
 * Notes that the metapage refers to n blocks from start on.  They must be in the file,
 * and it must not refer to them twice.
 */
static bool
rf_use_blocks(RfCheck *check, BlockNumber start, uint32 n)
{
	if (start >= check->nblocks || n > check->nblocks - start)
		return rf_fault(check, start, "The metapage refers to blocks behind the end of the file.");
	for (uint32 i = 0; i < n; i++)
	{
		if (check->used[start + i])
			return rf_fault(check, start + i, "The metapage refers to the block twice.");
		check->used[start + i] = true;
	}
	return true;
}

/*
 * Return true if there is a rank for each key of a segment.  In a pair keys may share one.
 */
static bool
rf_ranks_keys(const RfSegment *segment)
{
	return segment->kind != FILTER_KIND_PAIR;
}

/*
 * Return true if a bound of a segment, if it is whole, is its least or greatest key according to the
 * filter.
 */
static bool
rf_check_bound(const RfSegment *segment, const RfCodec *codec, const RfKey *bound,
			   bool is_max, RfRunReader *reader)
{
	RfRange		range = {.lo = *bound,.hi = *bound};
	FilterRanks ranks;

	if (segment->flags & (is_max ? RF_SEGMENT_MAX_CUT : RF_SEGMENT_MIN_CUT))
		return true;
	return rf_range_ranks(segment, codec, &range, &reader->reader, &ranks) == RF_YES &&
		(is_max ? ranks.end >= segment->nkeys || !rf_ranks_keys(segment) :
		 ranks.first == 0);
}

/*
 * Checks a segment or a level.
 */
static bool
rf_check_entry(RfCheck *check, const RfSegment *segment)
{
	RfKey		min = rf_segment_min(segment);
	RfKey		max = rf_segment_max(segment);
	RfRunReader reader;
	const char *fault = NULL;

	if (segment->npages == 0)
		return true;
	if (segment->run_len == 0 &&
		!rf_use_blocks(check, segment->run_block, segment->npages))
		return false;
	rf_run_reader_begin(&reader, rf_file(check->index), check->meta, segment);
	for (uint32 i = 0; i < segment->npages && fault == NULL; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (reader.reader.read_page(&reader.reader, i) == NULL)
			fault = "A page of the run that begins at the block is not what the metapage says.";
		rf_run_reader_end(&reader);
	}
	if (fault == NULL &&
		!filter_check(segment->kind, rf_segment_root(segment), segment->root_len,
					  &reader.reader, segment->nkeys))
		fault = "The filter that begins at the block is damaged.";
	if (fault == NULL &&
		(!rf_check_bound(segment, check->codec, &min, false, &reader) ||
		 !rf_check_bound(segment, check->codec, &max, true, &reader)))
		fault = "The filter that begins at the block has another least or greatest key.";
	if (fault == NULL && !rf_check_places(&reader, segment, rf_ranks_keys(segment)))
		fault = "The places behind the filter that begins at the block are damaged.";
	rf_run_reader_end(&reader);
	check->nkeys += segment->nkeys;
	return fault == NULL || rf_fault(check, segment->run_block, fault);
}

/*
 * Checks a page of the delta.
 */
static bool
rf_check_delta(RfCheck *check, const RfDeltaSlot *slot)
{
	RfKeyKind	kind = check->codec->kind;
	PGAlignedBlock copy;
	RfKey		key = {0};
	int			nkeys;

	if (!rf_use_blocks(check, slot->block, 1))
		return false;
	if (!rf_delta_copy_page(rf_file(check->index), check->meta, slot, kind,
							copy.data, &nkeys))
		return rf_fault(check, slot->block, "The page of new keys is not what the metapage says.");
	for (int i = 0; i < nkeys; i++)
	{
		if (!rf_delta_key(copy.data, kind, i, &key) ||
			(kind == RF_KEY_BYTES && key.len > FILTER_MAX_KEY))
			return rf_fault(check, slot->block, "A new key is damaged.");
	}
	check->nkeys += nkeys;
	return true;
}

/*
 * Checks all pages to which the copy of the metapage refers.
 */
static bool
rf_check_all(RfCheck *check)
{
	const RfMetaData *meta = check->meta;
	const RfSegment *segment = rf_first_segment(meta);
	bool		sound = true;

	check->nkeys = 0;
	check->nblocks = RelationGetNumberOfBlocks(check->index);
	check->used = palloc0(check->nblocks * sizeof(bool));
	check->used[RF_META_BLKNO] = true;
	for (int i = 0; i < meta->nsegments + meta->nlevels && sound; i++)
	{
		sound = rf_check_entry(check, segment);
		segment = rf_next_segment(segment);
	}
	for (int i = 0; i < meta->ndelta && sound; i++)
		sound = rf_check_delta(check, &meta->delta[i]);
	for (int i = 0; i < meta->nspare && sound; i++)
		sound = rf_use_blocks(check, meta->spare[i], 1);
	pfree(check->used);
	return sound;
}

/*
 * Return true if the metapage has changed since it was copied.  Takes and releases a share lock on it.
 */
static bool
rf_meta_has_changed(Relation index, const char *copy)
{
	Buffer		buffer = rf_read_meta(index, BUFFER_LOCK_SHARE);
	bool		changed = memcmp(BufferGetPage(buffer) + SizeOfPageHeaderData,
								 copy + SizeOfPageHeaderData,
								 BLCKSZ - SizeOfPageHeaderData) != 0;

	UnlockReleaseBuffer(buffer);
	return changed;
}

/*
 * Checks all pages of an index, whose table and which the caller has locked.  Raises an
 * error for damage.  Returns the number of keys.  Nothing is locked before and after.
 */
uint64
rf_check_pages(Relation index)
{
	RfCheck		check = {.index = index,.codec = rf_index_codec(index)};
	PGAlignedBlock copy;
	bool		sound = false;

	check.meta = rf_page_meta(copy.data);
	for (int tries = 0; !sound; tries++)
	{
		Buffer		buffer = rf_read_meta(index, BUFFER_LOCK_SHARE);
		bool		locked = tries == UNLOCKED_TRIES;

		memcpy(copy.data, BufferGetPage(buffer), BLCKSZ);

		/*
		 * Keys in another order, or of a version that is gone, cannot be
		 * compared.
		 */
		if (rf_sorted_otherwise(check.meta, check.codec))
		{
			UnlockReleaseBuffer(buffer);
			break;
		}
		if (!locked)
			UnlockReleaseBuffer(buffer);
		sound = rf_check_all(&check);
		if (locked)
			UnlockReleaseBuffer(buffer);
		if (!sound && (locked || !rf_meta_has_changed(index, copy.data)))
			ereport(ERROR,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("index \"%s\" is damaged at block %u",
							RelationGetRelationName(index), check.block),
					 errdetail_internal("%s", check.fault),
					 errhint("REINDEX it.")));
	}
	return check.nkeys;
}
