/*-------------------------------------------------------------------------
 *
 * page.h
 *	  Reading and writing the pages of a rangefilter index: metapage, runs, delta,
 *	  places.
 *
 * Functions that read take an RfFile; rf_file() returns that of an open index.  A
 * caller that passes an RfMetaData holds at least a share lock on its metapage, or
 * passes a copy.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_PAGE_H
#define RANGEFILTER_PAGE_H

#include "postgres.h"

#include "access/generic_xlog.h"
#include "compat.h"
#include "filter/filter.h"
#include "key/codec.h"
#include "key/keyset.h"
#include "rangefilter/page/layout.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

typedef enum RfAnswer
{
	RF_NO,						/* no row version can have such a key */
	RF_YES,						/* the summary holds such a key, or seems to */
	RF_UNKNOWN					/* nothing can be said: scan */
} RfAnswer;

/* Pages whose buffers are remembered: pinning those again needs no look-up. */
#define RF_RECENT_PAGES	8

/*
 * The state of a summary.  While it is the same, every NO stays a NO: each
 * change that could turn one into something else moves it.
 */
typedef struct RfSummaryVersion
{
	uint64		identity;		/* drawn at random by every build */
	uint64		changes;		/* RfMetaData.changes, plus the LSN of the
								 * delta's last page */
} RfSummaryVersion;

/*
 * Return true if two versions are the same.
 */
static inline bool
rf_same_version(const RfSummaryVersion *a, const RfSummaryVersion *b)
{
	return a->identity == b->identity && a->changes == b->changes;
}

/* How the pages of an index are read. */
typedef struct RfFile
{
	Relation	index;			/* NULL: not open; only from buffers below ... */
	bool		locked;			/* ... or, if it is locked, by its locator */
	bool		ahead;			/* other pages than the metapage are only
								 * prefetched, if they are not in shared
								 * buffers */
	const RfCodec *codec;		/* of the keys */
	RfRelFile	locator;
	BlockNumber nblocks;		/* the file is at least this long */
	Buffer		meta_buffer;	/* where the metapage was last seen */
	Buffer		buffers[RF_RECENT_PAGES];	/* likewise other pages, by block
											 * modulo their number */
} RfFile;

/* What a backend remembers of an open index, in rd_amcache. */
typedef struct RfCache
{
	RfFile		file;
	const RfCodec *codec;
	struct RfCounts *counts;	/* see rf_index_counts(); or NULL ... */
	uint64		counts_made;	/* ... and when */

	/*
	 * The tail was seen open from heap block open_start on when this
	 * backend's last WAL record was the one at open_record; see rfinsert.c.
	 */
	XLogRecPtr	open_record;
	BlockNumber open_start;

	TimestampTz requested_at;	/* when this backend last asked the worker */
	uint32		misses;			/* keys since one was there already: see
								 * rf_inserted_before() */
} RfCache;

/* How the index's keys are encoded. */
extern const RfCodec *rf_index_codec(Relation index);

/* rfmeta.c */
extern RfCache *rf_cache(Relation index);
extern RfFile *rf_file(Relation index);
extern Buffer rf_read_meta(Relation index, int lockmode);
extern Buffer rf_read_meta_fields(Relation index);
extern void rf_check_meta(Relation index, Buffer buffer);
extern Buffer rf_try_read_meta(Relation index);
extern bool rf_sorted_otherwise(const RfMetaData *meta, const RfCodec *codec);
extern Buffer rf_try_read_meta_of(RfFile *file, const RfCodec *codec);
extern Buffer rf_try_read_entry_run(RfFile *file, uint64 identity, uint32 owner,
									uint32 len, const uint8 **run);
extern RfMetaData *rf_page_meta(Page page);
extern const RfSegment *rf_first_segment(const RfMetaData *meta);
extern const RfSegment *rf_next_segment(const RfSegment *segment);
extern const RfSegment *rf_first_level(const RfMetaData *meta);
extern uint64 rf_level_keys(const RfMetaData *meta);
extern const RfSegment *rf_segment_of_block(const RfMetaData *meta,
											BlockNumber block);
extern const uint8 *rf_segment_root(const RfSegment *segment);
extern const uint8 *rf_segment_run(const RfSegment *segment);
extern const uint8 *rf_segment_places(const RfSegment *segment);
extern RfKey rf_segment_min(const RfSegment *segment);
extern RfKey rf_segment_max(const RfSegment *segment);
extern BlockNumber rf_tail_start(const RfMetaData *meta);
extern void rf_init_meta_page(Page page, const RfCodec *codec, uint32 flags);
extern void rf_set_directory(Page page, uint32 len);
extern Size rf_bare_meta_size(const RfMetaData *meta);
extern uint32 rf_copy_bare_segments(RfSegment *to, const RfMetaData *from);
extern bool rf_any_nulls(const RfMetaData *meta, const RfSegment *segment);

/* rfpage.c */
typedef struct RfRunReader
{
	FilterReader reader;		/* must be first */
	RfFile	   *file;
	uint64		identity;
	BlockNumber run_block;
	uint32		owner;
	const uint8 *entry_run;		/* the run if it is in the entry at hand */
	Buffer		buffer;			/* share-locked, or InvalidBuffer */
	uint32		pageno;			/* of the page in buffer ... */
	const uint8 *content;		/* ... and its content; NULL: it is not what
								 * the directory says */
} RfRunReader;

extern void rf_init_page(Page page, RfPageKind kind, uint64 identity,
						 uint32 owner);
extern bool rf_page_is(Page page, RfPageKind kind, uint64 identity,
					   uint32 owner);
extern bool rf_block_exists(RfFile *file, BlockNumber block);
extern Buffer rf_lock_block(RfFile *file, BlockNumber block, int lockmode);
extern void rf_prefetch_meta(const RfRelFile *locator);
extern Buffer rf_read_by_locator(const RfFile *file, BlockNumber block);
extern void rf_run_reader_begin(RfRunReader *reader, RfFile *file,
								const RfMetaData *meta,
								const RfSegment *segment);
extern void rf_run_reader_end(RfRunReader *reader);
extern BlockNumber rf_extend(Relation index, uint32 npages);
extern bool rf_lock_runs(Relation index, bool wait);
extern void rf_unlock_runs(Relation index);
extern BlockNumber rf_write_run(Relation index, uint64 identity,
								uint32 owner, const FilterRun *run);

/* rfdelta.c */

/*
 * Slot i of the delta.
 */
static inline const RfDeltaSlot *
rf_delta_slot(const RfMetaData *meta, int i)
{
	Assert(i >= 0 && i < meta->ndelta);
	return &meta->delta[i];
}

extern RfSummaryVersion rf_version_with(const RfMetaData *meta, Page page);
extern bool rf_meta_version(RfFile *file, const RfMetaData *meta,
							RfSummaryVersion *version);
extern uint64 rf_delta_keys(RfFile *file, const RfMetaData *meta,
							RfKeyKind kind);
extern RfAnswer rf_delta_probe(RfFile *file, const RfMetaData *meta,
							   int first_slot, const RfKeySet *set,
							   RfSummaryVersion *version);
extern void rf_delta_visit(Relation index, const RfMetaData *meta,
						   RfKeyKind kind,
						   void (*visit) (void *arg, RfKeyKind kind,
										  const RfKey *key),
						   void *arg);
extern bool rf_delta_sort_copy(Page copy, RfKeyKind kind);
extern bool rf_delta_key(Page page, RfKeyKind kind, int i, RfKey *key);
extern bool rf_delta_copy_page(RfFile *file, const RfMetaData *meta,
							   const RfDeltaSlot *slot, RfKeyKind kind,
							   Page copy, int *nkeys);
extern void rf_delta_drop_pages(RfMetaData *meta, int first, int n);
extern bool rf_delta_is_full(const RfMetaData *meta);
extern bool rf_delta_has_spare(const RfMetaData *meta);
extern void rf_delta_reserve(Relation index, Buffer meta_buffer);
extern bool rf_delta_add(Relation index, GenericXLogState *state,
						 RfMetaData *meta, RfKeyKind kind, const RfKey *key,
						 Buffer *buffer);
extern Buffer rf_delta_lock_room(Relation index, const RfMetaData *meta,
								 RfKeyKind kind, const RfKey *key);
extern int	rf_delta_put(Buffer buffer, RfKeyKind kind, const RfKey *key);

/* rflevels.c */
extern PGDLLEXPORT void (*rf_merge_hook) (void);
extern PGDLLEXPORT int rf_insert_merge;
extern void rf_put_entry(Page page, const RfSegment *entry);
extern bool rf_levels_are_many(const RfMetaData *meta);
extern bool rf_merge_delta(Relation index, bool wait);
extern void rf_merge_levels(Relation index);

/* rfsegment.c */
extern RfAnswer rf_segment_probe(RfFile *file, const RfMetaData *meta,
								 const RfSegment *segment, const RfKeySet *set);
extern RfAnswer rf_segment_probe_key(RfFile *file, const RfMetaData *meta,
									 const RfSegment *segment,
									 RfKeyKind kind, const RfKey *key);
extern bool rf_segment_count(Relation index, const RfMetaData *meta,
							 const RfSegment *segment, const RfKeySet *set,
							 uint64 *count);
extern RfAnswer rf_range_ranks(const RfSegment *segment, const RfCodec *codec,
							   const RfRange *range, FilterReader *reader,
							   FilterRanks *ranks);

/* rfplaces.c */

/* Bits for each row that the places of keys in several ranges may take. */
#define RF_ENTRY_BITS_PER_ROW 4

typedef struct RfPlacing
{
	BlockNumber start;			/* heap blocks [start, end) ... */
	BlockNumber end;
	uint32		range_blocks;	/* ... in ranges of this size; 0: no places */
	uint32		nranges;
	bool		automatic;		/* ranges are chosen when the rows are known */
	uint32		room;			/* bytes of the metapage that places may take */
} RfPlacing;

extern void rf_plan_places(Relation heap, Relation index, BlockNumber start,
						   BlockNumber end, RfPlacing *placing);
extern void rf_choose_ranges(RfPlacing *placing, uint64 nrows);
extern uint32 rf_entry_run_room(const RfPlacing *placing, uint64 nrows);
extern uint64 rf_most_placed_rows(void);
extern PGDLLEXPORT uint32 rf_range_count(const RfSegment *segment);
extern PGDLLEXPORT uint32 rf_imprecise_count(const RfSegment *segment);
extern PGDLLEXPORT uint64 rf_imprecise_bit(const RfSegment *segment,
										   BlockNumber heap_block);
extern bool rf_collect_places(RfFile *file, const RfMetaData *meta,
							  const RfSegment *segment, const RfKeySet *set,
							  uint64 most, uint64 *ranges, uint64 *keys);
extern bool rf_check_places(RfRunReader *reader, const RfSegment *segment,
							bool ranks_keys);
extern bool rf_key_is_placed(RfFile *file, const RfMetaData *meta,
							 const RfSegment *segment,
							 const RfKey *key, BlockNumber heap_block);

/* rfcheck.c */
extern uint64 rf_check_pages(Relation index);

#endif							/* RANGEFILTER_PAGE_H */
