/*-------------------------------------------------------------------------
 *
 * rfmeta.c
 *	  The metapage: reading it safely, and the directory of segments on it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "key/rowkey.h"
#include "rangefilter/page/page.h"
#include "utils/memutils.h"

/*
 * The codec for the index's key columns, or NULL.
 */
static const RfCodec *
rf_find_codec(Relation index)
{
	const RfCodec *columns[RF_MAX_COLUMNS];
	int			n = IndexRelationGetNumberOfKeyAttributes(index);

	if (n > RF_MAX_COLUMNS)
		return NULL;
	for (int i = 0; i < n; i++)
	{
		columns[i] = rf_codec_under(index->rd_opcintype[i],
									index->rd_indcollation[i]);
		if (columns[i] == NULL)
			return NULL;
	}
	return rf_row_codec(columns, n);
}

/*
 * What this backend remembers of an open index, in rd_amcache: relcache
 * invalidation (a new relfilenode, say) throws it away.
 */
RfCache *
rf_cache(Relation index)
{
	RfCache    *cache = (RfCache *) index->rd_amcache;

	if (cache == NULL)
	{
		cache = MemoryContextAllocZero(index->rd_indexcxt, sizeof(RfCache));
		cache->codec = rf_find_codec(index);
		cache->file.index = index;
		cache->file.meta_buffer = InvalidBuffer;
		index->rd_amcache = cache;
	}
	return cache;
}

/*
 * How to read the pages of an open index.
 */
RfFile *
rf_file(Relation index)
{
	RfFile	   *file = &rf_cache(index)->file;

	file->locator = RF_RELFILE(index);
	file->codec = rf_index_codec(index);
	return file;
}

/*
 * The codec of the index's key column, or of rows of its key columns; NULL
 * where an operator class is not one of ours.
 */
const RfCodec *
rf_index_codec(Relation index)
{
	return rf_cache(index)->codec;
}

/*
 * The content of a metapage.  It points into the page: into a buffer, which the caller has pinned and
 * locked, or into a copy.
 */
RfMetaData *
rf_page_meta(Page page)
{
	return (RfMetaData *) RfPageGetContent(page);
}

/*
 * The metapage's pd_lower with a directory of len bytes.
 */
static uint32
rf_meta_lower(uint32 len)
{
	return RF_PAGE_HEADER + MAXALIGN(sizeof(RfMetaData)) + len;
}

/*
 * Return true if a segment with places has no more ranges than it may have.
 */
static bool
rf_ranges_are_sane(const RfSegment *segment)
{
	return (uint64) segment->range_blocks * RF_MAX_RANGES >
		segment->end - segment->start;
}

/*
 * Return true if a run is either in the entry, with one page and no places behind it, or in blocks of its
 * own.  Block numbers that begin anew at 0 would lead to the metapage, which the reader may
 * have locked exclusively.
 */
static bool
rf_run_is_sane(const RfSegment *segment)
{
	if (segment->run_len == 0)
		return segment->npages == 0 ||
			(segment->run_block != RF_META_BLKNO &&
			 segment->npages <= InvalidBlockNumber - segment->run_block);
	return segment->run_len == MAXALIGN(segment->run_len) &&
		segment->npages == 1 && segment->place_pages == 0 &&
		segment->run_block == RF_META_BLKNO;
}

/*
 * Return true if an entry of the directory, of which "left" bytes are left, is whole.
 */
static bool
rf_entry_is_sane(const RfSegment *segment, uint32 left)
{
	return left >= sizeof(RfSegment) && segment->length <= left &&
		segment->length == MAXALIGN(segment->length) &&
		(segment->flags & ~RF_SEGMENT_FLAGS) == 0 &&
		segment->min_len <= RF_BOUND_BYTES &&
		segment->max_len <= RF_BOUND_BYTES &&
		segment->length == MAXALIGN(sizeof(RfSegment) + segment->min_len +
									segment->max_len + segment->root_len +
									segment->run_len + segment->places_len) &&
		segment->place_pages <= segment->npages &&
		rf_run_is_sane(segment) &&
		(segment->range_blocks > 0 ?
		 rf_ranges_are_sane(segment) &&
		 (segment->place_pages > 0) != (segment->places_len > 0) :
		 segment->imprecise == 0 && segment->place_pages == 0 &&
		 segment->places_len == 0);
}

/*
 * Return true if an entry's keys fit what its run's root says.
 */
static bool
rf_keys_are_sane(const RfSegment *segment)
{
	if (segment->nkeys == 0)
		return segment->npages == 0 && segment->kind != FILTER_KIND_SORTED;
	return filter_root_fits(segment->kind, rf_segment_root(segment),
							segment->root_len,
							segment->npages - segment->place_pages,
							segment->min, segment->max) &&
		(segment->kind == FILTER_KIND_SORTED || segment->nkeys <= segment->nrows);
}

/*
 * Return true if the directory can be walked without leaving it, its segments cover all
 * blocks summarized, one after the other, and nothing but levels is behind them.
 */
static bool
rf_directory_is_sane(const RfMetaData *meta)
{
	const RfSegment *segment = rf_first_segment(meta);
	uint32		left = meta->directory_len;
	BlockNumber covered = 0;

	for (int i = 0; i < meta->nsegments + meta->nlevels; i++)
	{
		bool		level = i >= meta->nsegments;

		if (!rf_entry_is_sane(segment, left) ||
			!rf_keys_are_sane(segment) ||
			segment->owner >= meta->next_owner ||
			level != (segment->kind == FILTER_KIND_SORTED))
			return false;
		if (level ? segment->range_blocks > 0 || segment->run_len > 0 :
			segment->start != covered || segment->end < covered ||
			(segment->range_blocks > 0 && segment->end == covered))
			return false;
		if (!level)
			covered = segment->end;
		left -= segment->length;
		segment = rf_next_segment(segment);
	}
	return left == 0 && covered == meta->summarized;
}

/*
 * Return true if the flags are known ones, and the block where the delta's keys begin is known if, and
 * only if, it may have some.
 */
static bool
rf_delta_is_sane(const RfMetaData *meta)
{
	bool		may_have_keys = meta->ndelta > meta->nretired;

	if (meta->ndelta > RF_DELTA_SLOTS || meta->nretired > meta->ndelta ||
		meta->nspare > RF_DELTA_SLOTS || meta->nlevels > RF_MAX_LEVELS ||
		(meta->flags & ~RF_ALL_FLAGS))
		return false;
	if (meta->delta_min_block == InvalidBlockNumber)
		return !may_have_keys;
	return may_have_keys ||
		(meta->flags & (RF_DELTA_NULLS | RF_DELTA_OVERFLOW)) != 0;
}

/*
 * Returns what is wrong with a metapage, except for its directory, as text for
 * an error's detail; NULL if nothing is wrong.  The caller has locked the page.
 */
static const char *
rf_meta_fields_problem(Page page, const RfCodec *codec)
{
	const RfMetaData *meta = rf_page_meta(page);

	if (PageIsNew(page))
		return "The metapage is empty.";
	if (PageGetSpecialSize(page) != 0 ||
		meta->magic != RF_MAGIC)
		return "The metapage's magic number is wrong.";
	if (meta->version != RF_FORMAT_VERSION)
		return "The metapage's format version is not one this release knows.";
	if (!rf_page_is(page, RF_PAGE_META, meta->identity, 0))
		return "The metapage's identity is wrong.";

	/*
	 * With other collators a string's encoding may be another:
	 * rf_sorted_otherwise()
	 */
	if (codec == NULL ||
		(meta->codec_id != codec->id && !rf_sorted_otherwise(meta, codec)))
		return "The keys' encoding is not one this release knows.";
	return NULL;
}

/*
 * Return true if the delta slots and the directory of a metapage are sound, and it ends behind them.
 */
static bool
rf_lists_are_sane(Page page)
{
	const RfMetaData *meta = rf_page_meta(page);

	return rf_delta_is_sane(meta) &&
		meta->directory_len <= RF_DIRECTORY_SIZE &&
		((PageHeader) page)->pd_lower == rf_meta_lower(meta->directory_len) &&
		rf_directory_is_sane(meta);
}

/*
 * The same as rf_meta_fields_problem() for all of the metapage.
 */
static const char *
rf_meta_problem(Page page, const RfCodec *codec)
{
	const char *problem = rf_meta_fields_problem(page, codec);

	if (problem != NULL)
		return problem;
	return rf_lists_are_sane(page) ? NULL : "The metapage's directory is damaged.";
}

/*
 * Return true if the keys in the index were made by other collators than ours, as after an
 * upgrade of ICU, or on a standby that has another version.
 */
bool
rf_sorted_otherwise(const RfMetaData *meta, const RfCodec *codec)
{
	return meta->collators != codec->collators;
}

/*
 * Pins the metapage, preferring the buffer it was last seen in.  Returns InvalidBuffer where
 * the file is empty, and where that buffer has another page by now and the index is neither open
 * nor locked.
 */
static Buffer
rf_pin_meta(RfFile *file)
{
	if (BufferIsValid(file->meta_buffer) &&
		ReadRecentBuffer(file->locator, MAIN_FORKNUM, RF_META_BLKNO,
						 file->meta_buffer))
		return file->meta_buffer;

	if (file->locked)
		return file->meta_buffer = rf_read_by_locator(file, RF_META_BLKNO);
	if (file->index == NULL)
		return InvalidBuffer;
	if (file->nblocks == 0)
		file->nblocks = RelationGetNumberOfBlocks(file->index);
	if (file->nblocks == 0)
		return InvalidBuffer;
	file->meta_buffer = ReadBuffer(file->index, RF_META_BLKNO);
	return file->meta_buffer;
}

/*
 * Raises the error for a metapage that cannot be used.  The caller may hold
 * its lock, which goes with the transaction.
 */
static void
rf_report_meta(Relation index, const char *problem)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" is not usable",
					RelationGetRelationName(index)),
			 errdetail_internal("%s", problem),
			 errhint("REINDEX it.")));
}

/*
 * Pins and share-locks the metapage for a look at its fixed fields, delta
 * slots and directory excepted: those need rf_check_meta() first.
 */
Buffer
rf_read_meta_fields(Relation index)
{
	Buffer		buffer = rf_pin_meta(rf_file(index));
	const char *problem;

	if (!BufferIsValid(buffer))
		rf_report_meta(index, "The index is empty.");
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	problem = rf_meta_fields_problem(BufferGetPage(buffer),
									 rf_index_codec(index));
	if (problem != NULL)
		rf_report_meta(index, problem);
	return buffer;
}

/*
 * Checks all of a locked metapage: a damaged one is an error.
 */
void
rf_check_meta(Relation index, Buffer buffer)
{
	const char *problem = rf_meta_problem(BufferGetPage(buffer),
										  rf_index_codec(index));

	if (problem != NULL)
		rf_report_meta(index, problem);
}

/*
 * Pins and locks the metapage in the given mode, for a caller that changes the
 * index or reports on it.  A damaged one is an error.
 */
Buffer
rf_read_meta(Relation index, int lockmode)
{
	Buffer		buffer = rf_pin_meta(rf_file(index));

	if (!BufferIsValid(buffer))
		rf_report_meta(index, "The index is empty.");
	LockBuffer(buffer, lockmode);
	rf_check_meta(index, buffer);
	return buffer;
}

/*
 * Pins and share-locks the metapage for a query.  InvalidBuffer, and no error, if it
 * is damaged or its keys sort otherwise: then the answer is "unknown".  The file
 * is that of an open index, or of a locked one.
 */
Buffer
rf_try_read_meta_of(RfFile *file, const RfCodec *codec)
{
	Buffer		buffer = rf_pin_meta(file);

	if (!BufferIsValid(buffer))
		return InvalidBuffer;
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (rf_meta_problem(BufferGetPage(buffer), codec) == NULL &&
		!rf_sorted_otherwise(rf_page_meta(BufferGetPage(buffer)), codec))
		return buffer;
	UnlockReleaseBuffer(buffer);
	return InvalidBuffer;
}

/*
 * The same for an open index.
 */
Buffer
rf_try_read_meta(Relation index)
{
	return rf_try_read_meta_of(rf_file(index), rf_index_codec(index));
}

/*
 * Pins and share-locks the metapage for the run of this owner and length in an entry, for a
 * caller that has a copy of the entry without it, and no lock on a page of the index.
 * InvalidBuffer where the metapage is damaged or has no such run any more.
 */
Buffer
rf_try_read_entry_run(RfFile *file, uint64 identity, uint32 owner, uint32 len,
					  const uint8 **run)
{
	Buffer		buffer = rf_pin_meta(file);
	const RfSegment *segment;
	const RfMetaData *meta;
	Page		page;

	if (!BufferIsValid(buffer))
		return InvalidBuffer;
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	meta = rf_page_meta(page);
	if (rf_page_is(page, RF_PAGE_META, identity, 0) && rf_lists_are_sane(page))
	{
		segment = rf_first_segment(meta);
		for (int i = 0; i < meta->nsegments; i++)
		{
			if (segment->owner == owner && segment->run_len == len)
			{
				*run = rf_segment_run(segment);
				return buffer;
			}
			segment = rf_next_segment(segment);
		}
	}
	UnlockReleaseBuffer(buffer);
	return InvalidBuffer;
}

/*
 * The first entry of the directory, or its end where there are no entries; callers count them.
 * The result points into the metapage or copy that the caller passes.  It is valid as long as the
 * lock on the metapage is held, or the copy exists.  The same goes for the functions below.
 */
const RfSegment *
rf_first_segment(const RfMetaData *meta)
{
	return (const RfSegment *)
		((const char *) meta + MAXALIGN(sizeof(RfMetaData)));
}

/*
 * The entry behind another one, of a segment or a level, or the end of the directory.
 */
const RfSegment *
rf_next_segment(const RfSegment *segment)
{
	Assert(segment->length >= sizeof(RfSegment));
	return (const RfSegment *) ((const char *) segment + segment->length);
}

/*
 * The first level, or the end of the directory where there is none.
 */
const RfSegment *
rf_first_level(const RfMetaData *meta)
{
	const RfSegment *segment = rf_first_segment(meta);

	for (int i = 0; i < meta->nsegments; i++)
		segment = rf_next_segment(segment);
	return segment;
}

/*
 * Returns how many keys are in levels.
 */
uint64
rf_level_keys(const RfMetaData *meta)
{
	const RfSegment *level = rf_first_level(meta);
	uint64		nkeys = 0;

	for (int i = 0; i < meta->nlevels; i++)
	{
		nkeys += level->nkeys;
		level = rf_next_segment(level);
	}
	return nkeys;
}

/*
 * The segment that covers a heap block, or NULL for the tail's blocks.
 */
const RfSegment *
rf_segment_of_block(const RfMetaData *meta, BlockNumber block)
{
	const RfSegment *segment = rf_first_segment(meta);

	for (int i = 0; i < meta->nsegments; i++)
	{
		if (block >= segment->start && block < segment->end)
			return segment;
		segment = rf_next_segment(segment);
	}
	return NULL;
}

/*
 * The run's root, root_len bytes in the entry.
 */
const uint8 *
rf_segment_root(const RfSegment *segment)
{
	return (const uint8 *) (segment + 1) + segment->min_len + segment->max_len;
}

/*
 * The run in a segment's entry, if it is there.
 */
const uint8 *
rf_segment_run(const RfSegment *segment)
{
	return rf_segment_root(segment) + segment->root_len;
}

/*
 * The places in a segment's entry, if there are any.
 */
const uint8 *
rf_segment_places(const RfSegment *segment)
{
	return rf_segment_run(segment) + segment->run_len;
}

/*
 * The least key of a segment or level: num for 64-bit keys, else data, which points into the
 * entry and lives as long as that.  A byte key may be cut (RF_SEGMENT_MIN_CUT), and is a lower bound then.
 */
RfKey
rf_segment_min(const RfSegment *segment)
{
	RfKey		key = {.num = segment->min};

	key.data = (const uint8 *) (segment + 1);
	key.len = segment->min_len;
	return key;
}

/*
 * The greatest key, as rf_segment_min().  A cut one (RF_SEGMENT_MAX_CUT) stands for all strings that
 * begin with it.
 */
RfKey
rf_segment_max(const RfSegment *segment)
{
	RfKey		key = {.num = segment->max};

	key.data = (const uint8 *) (segment + 1) + segment->min_len;
	key.len = segment->max_len;
	return key;
}

/*
 * The first heap block that belongs to the tail.  While a range is
 * announced, its blocks do not belong to the tail: their keys must reach
 * the delta one by one, because the scan under way may miss what is written
 * now.
 *
 * If VACUUM has truncated the table, the announced range may end below
 * blocks that segments still cover.  Those do not belong to the tail either: scans look
 * for the tail behind all segments.
 */
BlockNumber
rf_tail_start(const RfMetaData *meta)
{
	return (meta->flags & RF_ANNOUNCED) ?
		Max(meta->announced_end, meta->summarized) : meta->summarized;
}

/*
 * Initializes a metapage with a new identity: no segment, everything tail.
 */
void
rf_init_meta_page(Page page, const RfCodec *codec, uint32 flags)
{
	RfMetaData *meta = rf_page_meta(page);
	uint64		identity;

	if (!pg_strong_random(&identity, sizeof(identity)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	rf_init_page(page, RF_PAGE_META, identity, 0);
	memset(meta, 0, sizeof(RfMetaData));
	meta->magic = RF_MAGIC;
	meta->version = RF_FORMAT_VERSION;
	meta->codec_id = codec->id;
	meta->collators = codec->collators;
	meta->identity = identity;
	meta->flags = flags;
	meta->announced_start = meta->announced_end = InvalidBlockNumber;
	meta->delta_min_block = InvalidBlockNumber;
	meta->next_owner = 1;
	rf_set_directory(page, 0);
}

/*
 * Sets the directory's length, and pd_lower: GenericXLog does not log what lies
 * between pd_lower and pd_upper.
 */
void
rf_set_directory(Page page, uint32 len)
{
	rf_page_meta(page)->directory_len = len;
	((PageHeader) page)->pd_lower = rf_meta_lower(len);
}

/*
 * The length of a segment's entry without run and places.
 */
static uint32
rf_bare_segment_length(const RfSegment *segment)
{
	return MAXALIGN(rf_segment_run(segment) - (const uint8 *) segment);
}

/*
 * The size of the metapage's content without what rf_copy_bare_segments() leaves out.
 */
Size
rf_bare_meta_size(const RfMetaData *meta)
{
	const RfSegment *segment = rf_first_segment(meta);
	Size		size = MAXALIGN(sizeof(RfMetaData));

	for (int i = 0; i < meta->nsegments + meta->nlevels; i++)
	{
		size += rf_bare_segment_length(segment);
		segment = rf_next_segment(segment);
	}
	return size;
}

/*
 * Copies the directory without the places that are there, which only scans and
 * inserts need, and without runs, which are read from the metapage.  (Segments of the
 * copy are taken to have no places.)  Returns the length of the copy.
 */
uint32
rf_copy_bare_segments(RfSegment *to, const RfMetaData *from)
{
	const RfSegment *segment = rf_first_segment(from);
	uint32		total = 0;

	for (int i = 0; i < from->nsegments + from->nlevels; i++)
	{
		uint32		len = rf_bare_segment_length(segment);

		memcpy(to, segment, len);
		to->length = len;
		to->range_blocks = 0;
		to->places_len = 0;
		if (to->run_len > 0)
			to->flags |= RF_SEGMENT_BARE;
		total += len;
		to = unconstify(RfSegment *, rf_next_segment(to));
		segment = rf_next_segment(segment);
	}
	return total;
}

/*
 * Return true if there is a NULL among the keys.  segment is where the directory is.
 */
bool
rf_any_nulls(const RfMetaData *meta, const RfSegment *segment)
{
	if (meta->flags & (RF_DELTA_NULLS | RF_DELTA_NULLS_RETIRED))
		return true;
	for (int i = 0; i < meta->nsegments; i++)
	{
		if (segment->flags & RF_SEGMENT_NULLS)
			return true;
		segment = rf_next_segment(segment);
	}
	return false;
}
