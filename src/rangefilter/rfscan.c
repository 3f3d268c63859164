/*-------------------------------------------------------------------------
 *
 * rfscan.c
 *	  Bitmap scans: the heap blocks that may hold rows of a condition.
 *
 * A bitmap is made when a scan starts, after its snapshot was taken.  So the
 * summary read then covers all rows that the snapshot sees (R3).  Whole blocks
 * go into the bitmap; some are looked into before (rfrecheck.c).  The executor
 * checks their rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/xlog.h"
#include "compat.h"
#include "filter/base/bits.h"
#include "key/rowkey.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "rangefilter/page/page.h"
#include "rangefilter/rangefilter.h"
#include "stats/stats.h"
#include "utils/array.h"
#include "utils/memutils.h"

bool		rf_enable = true;

/*
 * The most keys of a segment whose places the planner looks up: those of
 * narrow questions, which take little time.
 */
#define RF_FORESEEN_KEYS 1000

/*
 * BRIN's guess at the rows of a block, which only EXPLAIN shows.  The index's
 * rows there are those of all blocks that the summary tells, before blocks are
 * looked into.
 */
#define RF_ROWS_PER_BLOCK 10

/* Heap blocks [start, end), some ranges of which may hold rows. */
typedef struct RfStretch
{
	BlockNumber start;
	BlockNumber end;
	uint32		range_blocks;	/* 0: all of it is wanted */
	uint64	   *ranges;			/* a bit each */
	uint64		keys;			/* that are asked for and seem to be there ... */
	uint64		all_keys;		/* ... of all these; 0: not known */
} RfStretch;

/* What goes into the bitmap of a scan. */
typedef struct RfBitmap
{
	TIDBitmap  *bitmap;
	RfBlockRecheck recheck;
	int64		candidates;		/* blocks by the summary */
} RfBitmap;

/* What a scan finds: stretches in ascending order. */
typedef struct RfFound
{
	uint64		most;			/* keys of a segment that are looked up */
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
	if (key->sk_flags & SK_SEARCHARRAY)
		set = rf_codec_compare_list(codec, key->sk_collation, key->sk_strategy, type,
									DatumGetArrayTypeP(key->sk_argument));
	else
		set = rf_codec_compare(codec, key->sk_collation, key->sk_strategy, type,
							   key->sk_argument);
	return set != NULL ? set : rf_keyset_not_null(codec->kind);
}

/*
 * The keys of the index that all scan keys let through; NULL: any.  Reads of a scan
 * key its flags, column, strategy, type, collation and value.  Only the planner passes
 * arrays: core makes a scan for each element.
 */
RfKeySet *
rf_scan_set(Relation index, ScanKey keys, int nkeys)
{
	const RfCodec *codec = rf_index_codec(index);
	RfKeySet   *sets[RF_MAX_COLUMNS] = {NULL};
	int			ncolumns = 0;

	for (int i = 0; i < nkeys; i++)
	{
		ScanKey		key = &keys[i];
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
 * Appends a stretch all of whose blocks may hold rows.
 */
static RfStretch *
rf_add_stretch(RfFound *found, BlockNumber start, BlockNumber end)
{
	RfStretch  *stretch = &found->stretches[found->n++];

	stretch->start = start;
	stretch->end = end;
	stretch->range_blocks = 0;
	stretch->keys = stretch->all_keys = 0;
	return stretch;
}

/*
 * Finds the blocks of a segment before a given block.
 */
static void
rf_find_in_segment(RfFound *found, Relation index, const RfMetaData *meta,
				   const RfSegment *segment, const RfKeySet *set,
				   BlockNumber end)
{
	RfStretch  *stretch;
	RfAnswer	answer = rf_segment_probe(rf_file(index), meta, segment, set);

	if (answer == RF_NO)
		return;
	stretch = rf_add_stretch(found, segment->start, Min(segment->end, end));
	if (answer != RF_YES || segment->range_blocks == 0)
		return;
	stretch->ranges = palloc0((rf_range_count(segment) / 64 + 1) *
							  sizeof(uint64));
	if (rf_collect_places(rf_file(index), meta, segment, set, found->most,
						  stretch->ranges, &stretch->keys))
		stretch->range_blocks = segment->range_blocks;
	stretch->all_keys = segment->nkeys;
}

/*
 * Lowers *from to the first block from which on a level may hold a key of the set: it
 * has none of blocks before its start.  False if this is unknown.
 */
static bool
rf_find_in_levels(Relation index, const RfMetaData *meta, const RfKeySet *set,
				  BlockNumber *from)
{
	const RfSegment *level = rf_first_level(meta);

	for (int i = 0; i < meta->nlevels; i++)
	{
		RfAnswer	answer = RF_NO;

		if (level->start < *from)
			answer = rf_segment_probe(rf_file(index), meta, level, set);
		if (answer == RF_UNKNOWN)
			return false;
		if (answer == RF_YES)
			*from = level->start;
		level = rf_next_segment(level);
	}
	return true;
}

/*
 * Lowers *from to the first block from which on any block may hold a key of
 * the set that no segment covers: a key of the delta, whose pages have none of
 * blocks before delta_min_block, or one of an open tail.  False if this is
 * unknown.  The caller has share-locked the metapage.
 */
static bool
rf_find_uncovered(Relation index, const RfMetaData *meta, const RfKeySet *set,
				  BlockNumber *from)
{
	RfAnswer	answer;

	if ((meta->flags & (RF_DELTA_OVERFLOW | RF_DELTA_OVERFLOW_RETIRED |
						RF_NOT_HEAP | RF_KEY_UNKNOWN)) ||
		(set->nulls && rf_any_nulls(meta, rf_first_segment(meta))))
		return false;
	answer = rf_delta_probe(rf_file(index), meta, 0, set, NULL);
	if (answer == RF_UNKNOWN || (answer == RF_YES && meta->nretired > 0))
		return false;
	if (answer == RF_YES)
		*from = Min(*from, meta->delta_min_block);
	if (!rf_find_in_levels(index, meta, set, from))
		return false;
	if (meta->flags & (RF_TAIL_OPEN | RF_TAIL_OPEN_RETIRED))
		*from = Min(*from, meta->summarized);
	return true;
}

/*
 * Finds the blocks that may hold keys of the set, by the metapage, which the
 * caller has share-locked.  False if all may.  Finds none behind the table's end, where
 * segments have some after VACUUM has truncated it: under SERIALIZABLE the executor reads
 * whatever block it is told.
 */
static bool
rf_find_blocks(RfFound *found, Relation index, const RfMetaData *meta,
			   const RfKeySet *set, bool in_recovery, BlockNumber heap_blocks)
{
	const RfSegment *segment = rf_first_segment(meta);
	BlockNumber uncovered = heap_blocks;

	if ((in_recovery && (meta->flags & RF_STANDBY_UNKNOWN)) ||
		!rf_find_uncovered(index, meta, set, &uncovered))
		return false;
	found->stretches = palloc((meta->nsegments + 1) * sizeof(RfStretch));
	for (int i = 0; i < meta->nsegments && segment->start < uncovered; i++)
	{
		rf_find_in_segment(found, index, meta, segment, set, uncovered);
		segment = rf_next_segment(segment);
	}
	if (uncovered < heap_blocks)
		rf_add_stretch(found, uncovered, heap_blocks);
	return true;
}

/*
 * Finds all blocks of the table.
 */
static void
rf_find_everything(RfFound *found, BlockNumber heap_blocks)
{
	found->n = 0;
	found->stretches = palloc(sizeof(RfStretch));
	rf_add_stretch(found, 0, heap_blocks);
}

/*
 * Puts blocks [start, end) into the bitmap, except those in which a look finds
 * no row of the scan.
 */
static void
rf_add_blocks(RfBitmap *result, BlockNumber start, BlockNumber end)
{
	for (BlockNumber block = start; block < end; block++)
	{
		CHECK_FOR_INTERRUPTS();
		if (rf_block_recheck_keeps(&result->recheck, block))
			tbm_add_page(result->bitmap, block);
	}
	result->candidates += end - start;
}

/*
 * Puts the blocks of a stretch into the bitmap.
 */
static void
rf_add_found(RfBitmap *result, const RfStretch *stretch)
{
	uint32		range = 0;

	if (stretch->range_blocks == 0)
	{
		rf_add_blocks(result, stretch->start, stretch->end);
		return;
	}
	for (BlockNumber block = stretch->start; block < stretch->end; range++)
	{
		BlockNumber end = stretch->range_blocks < stretch->end - block ?
		block + stretch->range_blocks : stretch->end;

		if (stretch->ranges[range / 64] >> (range % 64) & 1)
			rf_add_blocks(result, block, end);
		block = end;
	}
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
 * Reads the summary and finds the blocks that may hold keys of the set; all of
 * the table if that is unknown.  Takes and releases a share lock on the metapage.
 */
static void
rf_find(RfFound *found, Relation index, const RfKeySet *set, bool in_recovery,
		BlockNumber heap_blocks)
{
	Buffer		buffer = rf_try_read_meta(index);
	bool		known = false;

	if (BufferIsValid(buffer))
	{
		known = rf_find_blocks(found, index, rf_page_meta(BufferGetPage(buffer)),
							   set, in_recovery, heap_blocks);
		UnlockReleaseBuffer(buffer);
	}
	if (!known)
		rf_find_everything(found, heap_blocks);
}

/*
 * Puts the blocks that may hold rows of a scan into the bitmap; all blocks if
 * rangefilter.enable is off.  The executor holds a lock on the table.
 */
static void
rf_make_bitmap(RfBitmap *result, IndexScanDesc scan, Relation heap)
{
	Relation	index = scan->indexRelation;
	BlockNumber heap_blocks = RelationGetNumberOfBlocks(heap);
	RfKeySet   *set = rf_scan_set(index, scan->keyData, scan->numberOfKeys);
	RfFound		found = {.most = PG_UINT64_MAX};

	if (set != NULL && rf_keyset_is_empty(set))
		return;

	/*
	 * A scan of bitmaps does not look whether a page has lost rows, as others
	 * do.
	 */
	if (RF_SNAPSHOTS_EXPIRE())
		RF_REFUSE_ALL_EXPIRED(scan->xs_snapshot, heap);
	if (set == NULL || !rf_enable || RF_SNAPSHOTS_EXPIRE())
		rf_find_everything(&found, heap_blocks);
	else
	{
		rf_find(&found, index, set, scan->xs_snapshot->takenDuringRecovery ||
				RecoveryInProgress(), heap_blocks);
		rf_block_recheck_begin(&result->recheck, index, heap, set);
	}
	for (int i = 0; i < found.n; i++)
		rf_add_found(result, &found.stretches[i]);
	if (rf_enable)
		rf_count_bitmap(index, heap_blocks, result->candidates);
}

/*
 * amgetbitmap.  Takes and releases a share lock on the metapage, then on blocks
 * of the table.  Core has locked the index for serializable transactions.
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
	Relation	heap = table_open(scan->indexRelation->rd_index->indrelid,
								  NoLock);
	RfBitmap	result = {.bitmap = bitmap};

	pgstat_count_index_scan(scan->indexRelation);
	RF_COUNT_SEARCH(scan);
	rf_make_bitmap(&result, scan, heap);
	table_close(heap, NoLock);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(scratch);
	return result.candidates * RF_ROWS_PER_BLOCK;
}

/*
 * Return true if a scan for keys of the set would look into this block of the table.  Takes
 * and releases a share lock on the metapage.
 */
bool
rf_scan_visits(Relation index, const RfKeySet *set, BlockNumber block)
{
	RfFound		found = {.most = PG_UINT64_MAX};
	bool		visits = false;

	rf_find(&found, index, set, false, block + 1);
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
 * For the planner: how many blocks and ranges a scan of the index can
 * distinguish.  Takes and releases a share lock on the metapage.
 */
void
rf_scan_info(Relation index, RfScanInfo *info)
{
	Buffer		buffer = rf_try_read_meta(index);
	const RfMetaData *meta;
	const RfSegment *segment;

	memset(info, 0, sizeof(RfScanInfo));
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
				 (nranges - rf_imprecise_count(segment)) / nranges);
		}
		segment = rf_next_segment(segment);
	}
	if (meta->flags & (RF_DELTA_OVERFLOW | RF_DELTA_OVERFLOW_RETIRED | RF_KEY_UNKNOWN))
		info->known_blocks = 0;
	UnlockReleaseBuffer(buffer);
}

/*
 * Adds the blocks of a stretch to those that a scan is to read.  If not all keys
 * were looked up, the others are in any ranges, as many for each key; where rows are in
 * the order of keys, in the same share of the ranges as of the keys.
 */
static void
rf_foresee_stretch(RfForeseen *foreseen, const RfStretch *stretch,
				   double correlation)
{
	double		nblocks = stretch->end - stretch->start;
	double		nranges;
	double		factor = Max((double) stretch->keys / RF_FORESEEN_KEYS, 1);
	double		wanted = 0;
	double		jumps = 0;
	double		share;
	uint64		last = 0;

	foreseen->keys += stretch->keys;
	if (stretch->range_blocks == 0)
	{
		foreseen->blocks += nblocks;
		foreseen->unknown += nblocks;
		foreseen->jumps++;
		return;
	}
	nranges = ceil(nblocks / stretch->range_blocks);
	for (uint32 word = 0; word <= ((uint32) nranges - 1) / 64; word++)
	{
		uint64		bits = stretch->ranges[word];

		wanted += bits_count(bits);
		jumps += bits_count(bits & ~(bits << 1 | last));
		last = bits >> 63;
	}
	wanted = Min(wanted, nranges);
	share = 1 - pow(1 - wanted / nranges, factor);
	if (factor > 1)
	{
		double		together = Max((double) stretch->keys / stretch->all_keys +
								   1 / nranges, wanted / nranges);

		share += correlation * correlation * Min(together - share, 0);
	}
	foreseen->blocks += share * nblocks;
	foreseen->ranges += share * nranges;
	foreseen->jumps += Min(factor * jumps, 1 + nranges * share * (1 - share));
}

/*
 * For the planner: adds what a scan for keys of the set would read.  Looks up the
 * places of some keys, so it takes little time.  Takes and releases a share lock on the
 * metapage.
 */
void
rf_foresee_scan(Relation index, const RfKeySet *set, BlockNumber heap_blocks,
				double correlation, RfForeseen *foreseen)
{
	RfFound		found = {.most = RF_FORESEEN_KEYS};

	if (RF_SNAPSHOTS_EXPIRE())
		rf_find_everything(&found, heap_blocks);
	else
		rf_find(&found, index, set, RecoveryInProgress(), heap_blocks);
	for (int i = 0; i < found.n; i++)
		rf_foresee_stretch(foreseen, &found.stretches[i], correlation);
}

/*
 * Return true if a scan of the index can distinguish ranges of heap blocks.  The caller holds a lock
 * on the index.
 */
bool
rf_has_places(Relation index)
{
	RfScanInfo	info;

	rf_scan_info(index, &info);
	return info.known_blocks > 0;
}
