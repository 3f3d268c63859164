/*-------------------------------------------------------------------------
 *
 * rangefilter.h
 *	  On-disk layout and internal interfaces of the rangefilter index.
 *
 * An index is a metapage (block 0), runs of filter pages and delta pages.
 * src/README.md explains how they stay right; the short form:
 *
 *	- segments (in the metapage's directory) cover heap blocks
 *	  [0, summarized); each has a run, the filter of its keys;
 *	- the delta holds the keys of everything written since that no filter
 *	  covers, in summarized blocks and in the tail behind them;
 *	- flags say where knowledge ends (tail open, delta overflow).
 *
 * Lock order: metapage, then any other page of the index.  The delta and the
 * runs in use change only under an exclusive lock on the metapage, so a
 * reader that keeps its share lock there sees one consistent state.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_RANGEFILTER_H
#define RANGEFILTER_RANGEFILTER_H

#include "postgres.h"

#include "access/amapi.h"
#include "access/generic_xlog.h"
#include "access/htup.h"
#include "filter/filter.h"
#include "key/rowkey.h"
#include "nodes/execnodes.h"
#include "nodes/tidbitmap.h"
#include "port/atomics.h"
#include "rangefilter/probe.h"
#include "rangefilter/rfstats.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#define RF_META_BLKNO		0
#define RF_MAGIC			0x52464c31
#define RF_FORMAT_VERSION	1
#define RF_PAGE_ID			0xFF95

/* A summary may hold at most this many keys in its delta pages. */
#define RF_MAX_DELTA_PAGES	8

/* Retired delta pages and those in use. */
#define RF_DELTA_SLOTS		(2 * RF_MAX_DELTA_PAGES)

/*
 * This many keys of the tail go to the delta before the tail is declared
 * open: enough for late rows, few enough not to slow a bulk load.
 */
#define RF_TAIL_KEYS		200

/* min and max of a segment are kept to this many bytes. */
#define RF_BOUND_BYTES		64

/* Up to this many heap blocks a summarize always makes one segment of all. */
#define RF_SINGLE_SEGMENT_BLOCKS	8192

typedef enum RfPageKind
{
	RF_PAGE_META = 1,
	RF_PAGE_RUN = 2,
	RF_PAGE_DELTA = 3,			/* keys in order of arrival */
	RF_PAGE_DELTA_SORTED = 4	/* full, keys ascending */
} RfPageKind;

/*
 * Behind the page header of every page, where reading it costs no further
 * cache line, rather than in a special space at the page's end.
 */
typedef struct RfPageOpaqueData
{
	uint64		identity;		/* the build this page belongs to */
	uint32		owner;			/* id of the run or delta page; 0: metapage */
	uint8		kind;			/* RfPageKind */
	uint8		version;		/* RF_FORMAT_VERSION */
	uint16		page_id;		/* RF_PAGE_ID */
} RfPageOpaqueData;

typedef RfPageOpaqueData *RfPageOpaque;

#define RfPageGetOpaque(page) ((RfPageOpaque) PageGetContents(page))

/* Where the content of a page begins, and how much there can be. */
#define RF_PAGE_HEADER \
	(MAXALIGN(SizeOfPageHeaderData) + MAXALIGN(sizeof(RfPageOpaqueData)))
#define RF_PAGE_CONTENT (BLCKSZ - RF_PAGE_HEADER)
#define RfPageGetContent(page) ((char *) (page) + RF_PAGE_HEADER)

/* RfMetaData.flags */
#define RF_TAIL_OPEN			0x0001	/* any key may be in the tail */
#define RF_TAIL_OPEN_RETIRED	0x0002	/* ... in the range announced */
#define RF_DELTA_OVERFLOW		0x0004	/* keys are missing in the delta */
#define RF_DELTA_OVERFLOW_RETIRED 0x0008
#define RF_DELTA_NULLS			0x0010	/* a NULL has come since */
#define RF_DELTA_NULLS_RETIRED	0x0020
#define RF_ANNOUNCED			0x0040	/* a summarize is or was under way */
#define RF_STANDBY_UNKNOWN		0x0080	/* not for snapshots of a standby */
#define RF_DELTA_RETIRING		0x0100	/* it will drop the retired delta */

/* Under any of these a summary has nothing to say. */
#define RF_UNCERTAIN_FLAGS \
	(RF_TAIL_OPEN | RF_TAIL_OPEN_RETIRED | \
	 RF_DELTA_OVERFLOW | RF_DELTA_OVERFLOW_RETIRED)

/* Where one page of the delta is. */
typedef struct RfDeltaSlot
{
	BlockNumber block;
	uint32		owner;
	uint32		nkeys;
} RfDeltaSlot;

/* The metapage's content; the directory of segments follows it. */
typedef struct RfMetaData
{
	uint32		magic;
	uint16		version;
	uint16		codec_id;		/* encoding of the keys, RfCodec.id */
	uint64		identity;		/* drawn at random by every build */
	uint64		changes;		/* see RfStamp */
	uint32		generation;		/* summarizes finished */
	uint32		flags;
	BlockNumber summarized;		/* segments cover heap blocks before this */
	BlockNumber announced_start;	/* valid under RF_ANNOUNCED */
	BlockNumber announced_end;
	BlockNumber delta_min_block;	/* lowest heap block with a key or NULL in
									 * the delta; InvalidBlockNumber: none */
	uint32		next_owner;		/* next run or delta page id */
	uint32		tail_keys;		/* keys of the tail put into the delta */
	uint16		ndelta;			/* delta slots in use ... */
	uint16		nretired;		/* ... the first of which are retired */
	uint16		nspare;			/* free blocks kept for the delta */
	uint16		nsegments;
	uint32		directory_len;	/* bytes */
	uint32		announced_owner;	/* id of the run to be made, RF_ANNOUNCED */
	RfDeltaSlot delta[RF_DELTA_SLOTS];
	BlockNumber spare[RF_DELTA_SLOTS];
	TimestampTz summarized_at;	/* when the last summarize ended; 0: never */
	uint64		collators;		/* RfCodec.collators */
	/* MAXALIGNed RfSegments follow */
} RfMetaData;

#define RF_DIRECTORY_SIZE	(RF_PAGE_CONTENT - MAXALIGN(sizeof(RfMetaData)))

/* RfSegment.flags */
#define RF_SEGMENT_NULLS	0x01	/* holds a NULL */
#define RF_SEGMENT_MIN_CUT	0x02	/* min is a proper prefix of the least key */
#define RF_SEGMENT_MAX_CUT	0x04

/*
 * A directory entry.  Behind it: min, max (byte keys only), the run's root, and
 * places if they are kept here.
 */
typedef struct RfSegment
{
	uint32		length;			/* of the entry, all included, MAXALIGNed */
	uint8		kind;			/* FilterKind */
	uint8		flags;
	uint16		root_len;
	BlockNumber start;			/* heap blocks [start, end) */
	BlockNumber end;
	BlockNumber run_block;		/* the run's npages contiguous blocks */
	uint32		npages;
	uint32		owner;
	uint16		min_len;
	uint16		max_len;
	uint64		nrows;			/* tuples read, NULLs included */
	uint64		nkeys;			/* distinct keys */
	uint64		min;			/* RF_KEY_U64 */
	uint64		max;
	uint32		range_blocks;	/* places tell ranges of so many heap blocks
								 * apart; 0: there are no places */
	uint32		place_pages;	/* the run's last pages have places */
	uint64		loose;			/* ranges that may hold any of the keys: a bit
								 * each, or for groups of ranges */
	uint16		places_len;		/* bytes of places in the entry instead */
	uint16		unused[3];
} RfSegment;

/* Bits in RfSegment.loose. */
#define RF_LOOSE_BITS 64

/* The largest entry there can be, but for places. */
#define RF_MAX_SEGMENT_SIZE \
	MAXALIGN(sizeof(RfSegment) + 2 * RF_BOUND_BYTES + FILTER_MAX_ROOT)

/* CREATE INDEX ... WITH (...) */
typedef enum RfFilterOption
{
	RF_FILTER_AUTO,
	RF_FILTER_SNARF,
	RF_FILTER_SURF
} RfFilterOption;

typedef struct RfOptions
{
	int32		vl_len_;		/* varlena header (do not touch directly!) */
	int			filter;			/* RfFilterOption */
	int			bits_per_key;
	int			suffix;			/* FilterSuffix */
	int			pages_per_range;
} RfOptions;

#define RF_DEFAULT_BITS 14

/* pages_per_range: as many ranges as there is room for on the metapage. */
#define RF_RANGES_AUTO	(-1)

/* Pages whose buffers are remembered: pinning those again needs no look-up. */
#define RF_RECENT_PAGES	8

/* How the pages of an index are read. */
typedef struct RfFile
{
	Relation	index;			/* NULL: not open; only from buffers below ... */
	bool		locked;			/* ... or, if it is locked, by its locator */
	RfRelFile	locator;
	BlockNumber nblocks;		/* the file is at least this long */
	Buffer		meta_buffer;	/* where the metapage was last seen */
	Buffer		buffers[RF_RECENT_PAGES];	/* likewise other pages, by block
											 * modulo their number */
} RfFile;

/* What a backend remembers of an open index; in rd_amcache. */
typedef struct RfCache
{
	RfFile		file;
	const RfCodec *codec;
	RfCounts   *counts;			/* see rf_index_counts(); or NULL */

	/*
	 * The tail was seen open from heap block open_start on when this
	 * backend's last WAL record was the one at open_record; see rfinsert.c.
	 */
	XLogRecPtr	open_record;
	BlockNumber open_start;
} RfCache;

/* Phases of CREATE INDEX, for pg_stat_progress_create_index. */
#define RF_PHASE_SCAN	2
#define RF_PHASE_SORT	3
#define RF_PHASE_WRITE	4

/* ---- rfshared.c ---- */

/* Some ten thousand partitions should not often meet. */
#define RF_SLOTS	4096

/* 256 kB: some pages of each of ten thousand indexes. */
#define RF_HINTS	65536

typedef struct RfShared
{
	pg_atomic_uint64 slots[RF_SLOTS];
	pg_atomic_uint64 moves;		/* counts what all slots count */
	pg_atomic_uint32 hints[RF_HINTS];
} RfShared;

/* NULL where the server has not loaded the library. */
extern RfShared *rf_shared;

extern void rf_init_shared(void);

/* ---- rfdigests.c ---- */

/* rangefilter.shared_cache_size (kB) */
extern int	rf_shared_cache_size;

extern Size rf_digests_memory(void);
extern void rf_start_digests(void);
extern void rf_init_digests(void);

/* ---- rfslots.c ---- */

extern void rf_advance_slot(Oid index);
extern void rf_move_stamp(Relation index, RfMetaData *meta);

/* ---- rfhints.c ---- */

extern Buffer rf_recall_buffer(const RfRelFile *locator, BlockNumber block);
extern void rf_note_buffer(const RfRelFile *locator, BlockNumber block,
						   Buffer buffer);

/* rfoptions.c */
extern void rf_init_options(void);
extern bytea *rf_options(Datum reloptions, bool validate);
extern const RfOptions *rf_index_options(Relation index);
extern void rf_check_definition(Relation heap, Relation index,
								IndexInfo *index_info);

/* rfmeta.c */
extern RfCache *rf_cache(Relation index);
extern RfFile *rf_file(Relation index);
extern Buffer rf_read_meta(Relation index, int lockmode);
extern Buffer rf_read_meta_fields(Relation index);
extern void rf_check_meta(Relation index, Buffer buffer);
extern Buffer rf_try_read_meta(Relation index);
extern bool rf_sorted_otherwise(const RfMetaData *meta, const RfCodec *codec);
extern Buffer rf_try_read_meta_of(RfFile *file, const RfCodec *codec);
extern RfMetaData *rf_page_meta(Page page);
extern const RfSegment *rf_first_segment(const RfMetaData *meta);
extern const RfSegment *rf_next_segment(const RfSegment *segment);
extern const RfSegment *rf_segment_of_block(const RfMetaData *meta,
											BlockNumber block);
extern const uint8 *rf_segment_root(const RfSegment *segment);
extern const uint8 *rf_segment_places(const RfSegment *segment);
extern RfKey rf_segment_min(const RfSegment *segment);
extern RfKey rf_segment_max(const RfSegment *segment);
extern BlockNumber rf_tail_start(const RfMetaData *meta);
extern void rf_init_meta_page(Page page, const RfCodec *codec, uint32 flags);
extern void rf_set_directory(Page page, uint32 len);
extern Size rf_bare_meta_size(const RfMetaData *meta);
extern uint32 rf_copy_bare_segments(RfSegment *to, const RfMetaData *from);
extern void rf_copy_bare_meta(RfMetaData *to, const RfMetaData *from);

/* rfpage.c */
typedef struct RfRunReader
{
	FilterReader reader;		/* must be first */
	RfFile	   *file;
	uint64		identity;
	BlockNumber run_block;
	uint32		owner;
	Buffer		buffer;			/* share-locked, or InvalidBuffer */
} RfRunReader;

extern void rf_init_page(Page page, RfPageKind kind, uint64 identity,
						 uint32 owner);
extern bool rf_page_is(Page page, RfPageKind kind, uint64 identity,
					   uint32 owner);
extern bool rf_block_exists(RfFile *file, BlockNumber block);
extern Buffer rf_pin_block(RfFile *file, BlockNumber block);
extern Buffer rf_read_by_locator(const RfFile *file, BlockNumber block);
extern void rf_run_reader_begin(RfRunReader *reader, RfFile *file,
								const RfMetaData *meta,
								const RfSegment *segment);
extern void rf_run_reader_end(RfRunReader *reader);
extern BlockNumber rf_extend(Relation index, uint32 npages);
extern BlockNumber rf_write_run(Relation index, uint64 identity,
								uint32 owner, const FilterRun *run);

/* rfprobe.c */
extern void rf_locked_file(RfFile *file, const RfRelFile *locator,
						   const RfCopy *copy);
extern RfAnswer rf_probe_state(RfFile *file, const RfMetaData *meta,
							   const RfSegment *segment, const RfKeySet *set,
							   bool in_recovery);

/* rfcopy.c */
extern void rf_copy_keep(const RfFile *file, Page page, RfCopySlot *slot);
extern void rf_copy_hints(const RfCopy *copy, RfFile *file);

/* rfdelta.c */
extern RfAnswer rf_delta_probe(RfFile *file, const RfMetaData *meta,
							   int first_slot, const RfKeySet *set);
extern void rf_delta_visit(Relation index, const RfMetaData *meta,
						   RfKeyKind kind,
						   void (*visit) (void *arg, RfKeyKind kind,
										  const RfKey *key),
						   void *arg);
extern bool rf_delta_add(Relation index, GenericXLogState *state,
						 RfMetaData *meta, RfKeyKind kind, const RfKey *key,
						 Buffer *buffers);
extern int	rf_keys_of_page(Page page, RfKeyKind kind);

/* rfprobe.c */
extern bool rf_has_nulls(const RfMetaData *meta);

/* rfsegment.c */
extern RfAnswer rf_segment_ask(const RfSegment *segment, RfKeyKind kind,
							   const RfKeySet *set, FilterReader *reader);
extern RfAnswer rf_segment_probe(RfFile *file, const RfMetaData *meta,
								 const RfSegment *segment, RfKeyKind kind,
								 const RfKeySet *set);
extern RfAnswer rf_segment_probe_key(RfFile *file, const RfMetaData *meta,
									 const RfSegment *segment,
									 RfKeyKind kind, const RfKey *key);
extern bool rf_segment_count(Relation index, const RfMetaData *meta,
							 const RfSegment *segment, const RfKeySet *set,
							 uint64 *count);
extern RfAnswer rf_range_ranks(const RfSegment *segment, RfKeyKind kind,
							   const RfRange *range, FilterReader *reader,
							   FilterRanks *ranks);

/* rfplaces.c */
typedef struct RfPlacing
{
	BlockNumber start;			/* heap blocks [start, end) ... */
	BlockNumber end;
	uint32		range_blocks;	/* ... in ranges of so many; 0: no places */
	uint32		nranges;
	bool		automatic;		/* ranges are chosen when the rows are known */
} RfPlacing;

extern void rf_plan_places(Relation heap, Relation index, BlockNumber start,
						   BlockNumber end, RfPlacing *placing);
extern void rf_choose_ranges(RfPlacing *placing, uint64 nrows);
extern uint32 rf_places_room(void);
extern uint64 rf_most_placed_rows(void);
extern uint32 rf_automatic_range(BlockNumber nblocks, double rows);
extern uint32 rf_range_count(const RfSegment *segment);
extern uint32 rf_loose_count(const RfSegment *segment);
extern uint64 rf_loose_bit(const RfSegment *segment, BlockNumber heap_block);
extern bool rf_collect_places(RfFile *file, const RfMetaData *meta,
							  const RfSegment *segment, const RfKeySet *set,
							  uint64 *ranges);
extern bool rf_key_is_placed(RfFile *file, const RfMetaData *meta,
							 const RfSegment *segment, RfKeyKind kind,
							 const RfKey *key, BlockNumber heap_block);

/* rfheap.c */
typedef struct RfHeapTuple
{
	ItemPointerData tid;
	bool		isnull;
	RfKey		key;			/* not set when isnull */
	TransactionId xmin;			/* as stored */
	bool		settled;		/* inserted by a transaction that committed */
	bool		recently_dead;
} RfHeapTuple;

typedef void (*RfTupleCallback) (void *arg, const RfHeapTuple *tuple);

typedef struct RfHeapScan
{
	Relation	heap;
	Relation	index;
	IndexInfo  *index_info;
	const RfCodec *codec;
	BlockNumber start;
	BlockNumber end;
	bool		in_vacuum;		/* obey the cost delay */
	bool		report_progress;	/* to pg_stat_progress_create_index */
	bool		missed_dead;	/* out: keys of DEAD versions left out */
	RfTupleCallback callback;
	void	   *arg;
} RfHeapScan;

extern void rf_scan_heap(RfHeapScan *scan);
extern bool rf_tuple_is_there(Relation heap, const RfHeapTuple *tuple);

/* rfsort.c */
typedef struct RfKeySort RfKeySort;

extern RfKeySort *rf_sort_begin(RfKeyKind kind, const RfPlacing *placing);
extern void rf_sort_add(RfKeySort *sort, const RfHeapTuple *tuple);
extern RfSegment *rf_sort_finish(RfKeySort *sort, Relation index,
								 uint32 root_max, bool report_progress,
								 FilterRun *run);

/* rfsummarize.c */
typedef enum RfSummarizeMode
{
	RF_SUMMARIZE_BUILD,			/* CREATE INDEX, REINDEX: everything */
	RF_SUMMARIZE_VACUUM,		/* what is worth it */
	RF_SUMMARIZE_ASKED			/* whatever can be better afterwards */
} RfSummarizeMode;

extern BlockNumber rf_summarize(Relation heap, Relation index,
								IndexInfo *index_info, RfSummarizeMode mode,
								double live_tuples, double *nrows);

/* rfprogress.c */
extern bool rf_progress_begin(int nindexes);
extern void rf_progress_index(Relation heap, Relation index, int ndone);
extern bool rf_progress_is_of(Relation index);
extern void rf_progress_end(void);

/* rfinsert.c */
extern bool rf_insert(Relation index, Datum *values, bool *isnull,
					  ItemPointer tid, Relation heap,
					  IndexUniqueCheck check_unique, bool index_unchanged,
					  IndexInfo *index_info);

/* rfwinnow.c */

/* The look into blocks of a table before they go into a bitmap. */
typedef struct RfWinnow
{
	Relation	heap;			/* NULL: there is none */
	AttrNumber	column;			/* of the table */
	const RfCodec *codec;
	const RfKeySet *set;		/* what is looked for */
	int			looked;			/* blocks */
	int			kept;			/* of these, with a match */
} RfWinnow;

extern void rf_winnow_begin(RfWinnow *winnow, Relation index, Relation heap,
							const RfKeySet *set);
extern bool rf_winnow_keeps(RfWinnow *winnow, BlockNumber block);

/* rfscan.c */
typedef struct RfScanInfo
{
	BlockNumber heap_blocks;
	BlockNumber known_blocks;	/* of these, in segments with places */
	double		nranges;		/* of these segments */
} RfScanInfo;

extern bool rf_scan_visits(Relation index, const RfKeySet *set,
						   BlockNumber block);
extern void rf_scan_info(Relation index, BlockNumber heap_blocks,
						 RfScanInfo *info);
extern IndexScanDesc rf_beginscan(Relation index, int nkeys, int norderbys);
extern void rf_rescan(IndexScanDesc scan, ScanKey keys, int nkeys,
					  ScanKey orderbys, int norderbys);
extern int64 rf_getbitmap(IndexScanDesc scan, TIDBitmap *bitmap);
extern void rf_endscan(IndexScanDesc scan);

/* rfbuild.c */
extern IndexBuildResult *rf_build(Relation heap, Relation index,
								  IndexInfo *index_info);
extern void rf_buildempty(Relation index);

/* rfvacuum.c */
extern IndexBulkDeleteResult *rf_bulkdelete(IndexVacuumInfo *info,
											IndexBulkDeleteResult *stats,
											IndexBulkDeleteCallback callback,
											void *callback_state);
extern IndexBulkDeleteResult *rf_vacuumcleanup(IndexVacuumInfo *info,
											   IndexBulkDeleteResult *stats);

#endif							/* RANGEFILTER_RANGEFILTER_H */
