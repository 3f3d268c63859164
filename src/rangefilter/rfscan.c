/*-------------------------------------------------------------------------
 *
 * rfscan.c
 *	  Bitmap scans: the heap blocks that may hold rows of a condition.
 *
 * A bitmap is made when a scan starts, thus with its snapshot taken; a summary
 * read then covers all rows the snapshot sees (src/README.md).  Whole blocks
 * go into the bitmap, and the executor checks their rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/xlog.h"
#include "compat.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "rangefilter/rangefilter.h"
#include "utils/memutils.h"

bool		rf_enable = true;

/* BRIN's guess at the rows of a block, which nothing but EXPLAIN sees. */
#define RF_ROWS_PER_BLOCK 10

/* Heap blocks [start, end), of which some ranges are wanted. */
typedef struct RfStretch
{
	BlockNumber start;
	BlockNumber end;
	uint32		range_blocks;	/* 0: all of it is wanted */
	uint64	   *ranges;			/* a bit each */
} RfStretch;

/* What a scan finds: stretches in ascending order. */
typedef struct RfFound
{
	int			n;
	RfStretch  *stretches;
} RfFound;

/*
 * ambeginscan.
 */
IndexScanDesc
rf_beginscan(Relation index, int nkeys, int norderbys)
{
	return RelationGetIndexScan(index, nkeys, norderbys);
}

/*
 * amrescan.
 */
void
rf_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys,
		  int norderbys)
{
	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
}

/*
 * amendscan.
 */
void
rf_endscan(IndexScanDesc scan)
{
}

/*
 * The keys of its column that one scan key lets through.
 */
static RfKeySet *
rf_scan_key_set(Relation index, const RfCodec *codec, ScanKey key)
{
	Oid			type = OidIsValid(key->sk_subtype) ? key->sk_subtype :
	index->rd_opcintype[key->sk_attno - 1];
	RfKeySet   *set;

	if (key->sk_flags & SK_SEARCHNULL)
		return rf_keyset_nulls(codec->kind);
	if (key->sk_flags & SK_SEARCHNOTNULL)
		return rf_keyset_not_null(codec->kind);
	if (key->sk_flags & SK_ISNULL)
		return rf_keyset_empty(codec->kind);
	set = rf_codec_compare(codec, key->sk_collation, key->sk_strategy, type,
						   key->sk_argument);
	return set != NULL ? set : rf_keyset_not_null(codec->kind);
}

/*
 * The keys of the index that all scan keys let through; NULL: any.
 */
static RfKeySet *
rf_scan_set(IndexScanDesc scan)
{
	Relation	index = scan->indexRelation;
	const RfCodec *codec = rf_index_codec(index);
	RfKeySet   *sets[RF_MAX_COLUMNS] = {NULL};
	int			ncolumns = 0;

	for (int i = 0; i < scan->numberOfKeys; i++)
	{
		ScanKey		key = &scan->keyData[i];
		int			column = key->sk_attno - 1;
		RfKeySet   *set = rf_scan_key_set(index, codec->row == NULL ? codec :
										  codec->row->columns[column].codec,
										  key);

		sets[column] = sets[column] == NULL ? set :
			rf_keyset_intersect(sets[column], set);
	}
	while (ncolumns < RF_MAX_COLUMNS && sets[ncolumns] != NULL)
		ncolumns++;
	if (ncolumns == 0)
		return NULL;
	return codec->row == NULL ? sets[0] :
		rf_row_set(codec, sets, ncolumns, NULL);
}

/*
 * Appends a stretch that is wanted as a whole.
 */
static RfStretch *
rf_add_stretch(RfFound *found, BlockNumber start, BlockNumber end)
{
	RfStretch  *stretch = &found->stretches[found->n++];

	stretch->start = start;
	stretch->end = end;
	stretch->range_blocks = 0;
	return stretch;
}

/*
 * Finds the blocks of a segment.
 */
static void
rf_find_in_segment(RfFound *found, Relation index, const RfMetaData *meta,
				   const RfSegment *segment, const RfKeySet *set)
{
	RfStretch  *stretch;
	RfAnswer	answer = rf_segment_probe(rf_file(index), meta, segment,
										  set->kind, set);

	if (answer == RF_NO)
		return;
	stretch = rf_add_stretch(found, segment->start, segment->end);
	if (answer != RF_YES || segment->range_blocks == 0)
		return;
	stretch->ranges = palloc0((rf_range_count(segment) / 64 + 1) *
							  sizeof(uint64));
	if (rf_collect_places(rf_file(index), meta, segment, set, stretch->ranges))
		stretch->range_blocks = segment->range_blocks;
}

/*
 * Finds the blocks that may hold keys of the set, by the metapage, which the
 * caller has share-locked.  False if all may.
 *
 * A key of the delta may be anywhere.  If the tail is open it may hold any key,
 * but the segments still tell of their own blocks.
 */
static bool
rf_find_blocks(RfFound *found, Relation index, const RfMetaData *meta,
			   const RfKeySet *set, bool in_recovery, BlockNumber heap_blocks)
{
	const RfSegment *segment = rf_first_segment(meta);

	found->stretches = palloc((meta->nsegments + 1) * sizeof(RfStretch));
	if ((meta->flags & (RF_DELTA_OVERFLOW | RF_DELTA_OVERFLOW_RETIRED)) ||
		(in_recovery && (meta->flags & RF_STANDBY_UNKNOWN)) ||
		(set->nulls && rf_has_nulls(meta)) ||
		rf_delta_probe(rf_file(index), meta, 0, set) != RF_NO)
		return false;
	for (int i = 0; i < meta->nsegments; i++)
	{
		rf_find_in_segment(found, index, meta, segment, set);
		segment = rf_next_segment(segment);
	}
	if ((meta->flags & (RF_TAIL_OPEN | RF_TAIL_OPEN_RETIRED)) &&
		meta->summarized < heap_blocks)
		rf_add_stretch(found, meta->summarized, heap_blocks);
	return true;
}

/*
 * Puts blocks [start, end) into the bitmap; returns their number.
 */
static int64
rf_add_blocks(TIDBitmap *bitmap, BlockNumber start, BlockNumber end)
{
	for (BlockNumber block = start; block < end; block++)
		tbm_add_page(bitmap, block);
	return end - start;
}

/*
 * Puts the blocks of a stretch into the bitmap; returns their number.
 */
static int64
rf_add_found(TIDBitmap *bitmap, const RfStretch *stretch)
{
	int64		nblocks = 0;
	uint32		range = 0;

	if (stretch->range_blocks == 0)
		return rf_add_blocks(bitmap, stretch->start, stretch->end);
	for (BlockNumber block = stretch->start; block < stretch->end; range++)
	{
		BlockNumber end = stretch->range_blocks < stretch->end - block ?
		block + stretch->range_blocks : stretch->end;

		CHECK_FOR_INTERRUPTS();
		if (stretch->ranges[range / 64] >> (range % 64) & 1)
			nblocks += rf_add_blocks(bitmap, block, end);
		block = end;
	}
	return nblocks;
}

/*
 * How many blocks has the indexed table?  The executor holds its lock.
 */
static BlockNumber
rf_heap_blocks(Relation index)
{
	Relation	heap = table_open(index->rd_index->indrelid, NoLock);
	BlockNumber nblocks = RelationGetNumberOfBlocks(heap);

	table_close(heap, NoLock);
	return nblocks;
}

/*
 * Counts a scan whose bitmap has some of the table's blocks.
 */
static void
rf_count_bitmap(Relation index, BlockNumber heap_blocks, int64 nblocks)
{
	RfCounts   *counts = rf_index_counts(index);

	counts->bitmaps++;
	counts->blocks += heap_blocks;
	counts->left_out += heap_blocks - nblocks;
	rf_stats_pending = true;
}

/*
 * Puts the blocks that may hold rows of a scan into the bitmap; returns their
 * number.  What cannot be read or told, and anything with rangefilter.enable
 * off, is all blocks.
 */
static int64
rf_make_bitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	Relation	index = scan->indexRelation;
	BlockNumber heap_blocks = rf_heap_blocks(index);
	RfKeySet   *set = rf_scan_set(scan);
	Buffer		buffer = InvalidBuffer;
	RfFound		found = {0};
	bool		told = false;
	int64		nblocks = 0;

	if (set != NULL && rf_keyset_is_empty(set))
		return 0;
	if (set != NULL && rf_enable && !RF_SNAPSHOTS_EXPIRE())
		buffer = rf_try_read_meta(index);
	if (BufferIsValid(buffer))
	{
		told = rf_find_blocks(&found, index,
							  rf_page_meta(BufferGetPage(buffer)), set,
							  scan->xs_snapshot->takenDuringRecovery ||
							  RecoveryInProgress(), heap_blocks);
		UnlockReleaseBuffer(buffer);
	}
	if (!told)
	{
		nblocks = rf_add_blocks(bitmap, 0, heap_blocks);
		if (rf_enable)
			rf_count_bitmap(index, heap_blocks, nblocks);
		return nblocks;
	}
	for (int i = 0; i < found.n; i++)
	{
		RfStretch  *stretch = &found.stretches[i];

		/*
		 * VACUUM may have truncated the table since.  Under SERIALIZABLE the
		 * executor reads whatever block it is told.
		 */
		stretch->end = Min(stretch->end, heap_blocks);
		if (stretch->start < stretch->end)
			nblocks += rf_add_found(bitmap, stretch);
	}
	rf_count_bitmap(index, heap_blocks, nblocks);
	return nblocks;
}

/*
 * amgetbitmap.  Takes and releases a share lock on the metapage.  Core has locked
 * the index for serializable transactions.
 *
 * Called once for each outer row of a nested loop, in a context that lives as long
 * as the query.
 */
int64
rf_getbitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext,
												  "rangefilter scan",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(scratch);
	int64		nblocks;

	pgstat_count_index_scan(scan->indexRelation);
	RF_COUNT_SEARCH(scan);
	nblocks = rf_make_bitmap(scan, bitmap);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(scratch);
	return nblocks * RF_ROWS_PER_BLOCK;
}

/*
 * Would a scan for keys of the set look into this block of the table?  Takes
 * and releases a share lock on the metapage.
 */
bool
rf_scan_visits(Relation index, const RfKeySet *set, BlockNumber block)
{
	Buffer		buffer = rf_try_read_meta(index);
	RfFound		found = {0};
	bool		visits;

	if (!BufferIsValid(buffer))
		return true;
	visits = !rf_find_blocks(&found, index,
							 rf_page_meta(BufferGetPage(buffer)), set, false,
							 block + 1);
	UnlockReleaseBuffer(buffer);
	for (int i = 0; i < found.n && !visits; i++)
	{
		const RfStretch *stretch = &found.stretches[i];
		uint32		range;

		if (block < stretch->start || block >= stretch->end)
			continue;
		if (stretch->range_blocks == 0)
			return true;
		range = (block - stretch->start) / stretch->range_blocks;
		visits = (stretch->ranges[range / 64] >> (range % 64) & 1) != 0;
	}
	return visits;
}

/*
 * What a scan of the index can tell apart, for the planner.  Takes and releases
 * a share lock on the metapage.
 */
void
rf_scan_info(Relation index, BlockNumber heap_blocks, RfScanInfo *info)
{
	Buffer		buffer = rf_try_read_meta(index);
	const RfMetaData *meta;
	const RfSegment *segment;

	memset(info, 0, sizeof(RfScanInfo));
	info->heap_blocks = heap_blocks;
	if (!BufferIsValid(buffer))
		return;
	meta = rf_page_meta(BufferGetPage(buffer));
	segment = rf_first_segment(meta);
	for (int i = 0; i < meta->nsegments; i++)
	{
		if (segment->range_blocks > 0)
		{
			uint32		nranges = rf_range_count(segment);

			info->nranges += nranges;
			info->known_blocks += (BlockNumber)
				((double) (segment->end - segment->start) *
				 (nranges - rf_loose_count(segment)) / nranges);
		}
		segment = rf_next_segment(segment);
	}
	if (meta->flags & (RF_DELTA_OVERFLOW | RF_DELTA_OVERFLOW_RETIRED))
		info->known_blocks = 0;
	UnlockReleaseBuffer(buffer);
}

/*
 * See probe.h.
 */
bool
rf_has_places(Relation index)
{
	RfScanInfo	info;

	rf_scan_info(index, 0, &info);
	return info.known_blocks > 0;
}
