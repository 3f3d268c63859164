/*-------------------------------------------------------------------------
 *
 * layout.h
 *	  The pages of a rangefilter index.
 *
 * An index is a metapage (block 0), runs of filter pages and delta pages.
 * src/rangefilter/README.md explains how they stay right; the short form:
 *
 *	- segments (in the metapage's directory) cover heap blocks
 *	  [0, summarized); each has a run, the filter of its keys;
 *	- the delta holds the keys of everything written since that no filter
 *	  covers, in summarized blocks and in the tail behind them: a few pages, in
 *	  order of arrival, and levels, sorted runs made of pages that were full;
 *	- flags say where knowledge ends (tail open, delta overflow).
 *
 * Lock order: metapage, then any other page of the index.  The delta and the
 * runs in use change only under an exclusive lock on the metapage, with one
 * exception: to append a key to the delta's last page takes a share lock on the
 * metapage and an exclusive lock on that page.  So a reader that keeps its share
 * lock on the metapage sees one consistent state, and keys that are appended meanwhile.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_LAYOUT_H
#define RANGEFILTER_LAYOUT_H

#include "postgres.h"

#include "filter/filter.h"
#include "storage/block.h"
#include "storage/bufpage.h"
#include "utils/timestamp.h"

#define RF_META_BLKNO		0
#define RF_MAGIC			0x52464c31
#define RF_FORMAT_VERSION	6
#define RF_PAGE_ID			0xFF95

/*
 * The delta has at most this many pages in use.  Mostly it has one: as soon as that is
 * full, its keys go to a level.  The others take keys that come during the merge.
 */
#define RF_MAX_DELTA_PAGES	4

/* Retired delta pages and those in use. */
#define RF_DELTA_SLOTS		(2 * RF_MAX_DELTA_PAGES)

/*
 * A statement is a bulk load when it has put more keys of the tail into the delta than
 * RF_BULK_KEYS, and than one for each RF_ROWS_PER_BULK_KEY rows of the summary, of which
 * at most RF_BULK_ROWS count.  Then it opens the tail, so that it is not slowed down.
 */
#define RF_BULK_KEYS		200
#define RF_ROWS_PER_BULK_KEY 256
#define RF_BULK_ROWS		1000000

/* min and max of a segment, and of a level, are kept to this many bytes. */
#define RF_BOUND_BYTES		64
#define RF_LEVEL_BOUND_BYTES	16

/* Up to this many heap blocks a summarize always makes one segment of all. */
#define RF_SINGLE_SEGMENT_BLOCKS	8192

typedef enum RfPageKind
{
	RF_PAGE_META = 1,
	RF_PAGE_RUN = 2,
	RF_PAGE_DELTA = 3			/* keys in order of arrival */
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
#define RF_NOT_HEAP				0x0200	/* the table has another access
										 * method: there never is a summary */
#define RF_KEY_UNKNOWN			0x1000	/* a row version is not covered, since
										 * its key cannot be computed */

#define RF_MIXED_CHAINS			0x0400	/* HOT chains may have, or have had,
										 * several keys: see rfremoved.c */
#define RF_MIXED_CHAINS_RETIRED	0x0800	/* ... before a summarize began */

#define RF_ALL_FLAGS			0x1FFF

/* Under any of these a summary answers "unknown". */
#define RF_UNCERTAIN_FLAGS \
	(RF_TAIL_OPEN | RF_TAIL_OPEN_RETIRED | \
	 RF_DELTA_OVERFLOW | RF_DELTA_OVERFLOW_RETIRED | RF_NOT_HEAP | RF_KEY_UNKNOWN)

/* Where one page of the delta is. */
typedef struct RfDeltaSlot
{
	BlockNumber block;
	uint32		owner;
	uint32		nkeys;			/* at least; the page tells how many */
} RfDeltaSlot;

/* The metapage's content; the directory of segments follows it. */
typedef struct RfMetaData
{
	uint32		magic;
	uint16		version;
	uint16		codec_id;		/* encoding of the keys, RfCodec.id */
	uint64		identity;		/* drawn at random by every build */
	uint64		changes;		/* drawn at random by changes of the metapage;
								 * see RfSummaryVersion */
	uint32		generation;		/* summarizes finished */
	uint32		flags;
	BlockNumber summarized;		/* segments cover heap blocks before this */
	BlockNumber announced_start;	/* valid under RF_ANNOUNCED */
	BlockNumber announced_end;
	BlockNumber delta_min_block;	/* lowest heap block with a key or NULL in
									 * the delta; InvalidBlockNumber: none */
	uint32		next_owner;		/* next run or delta page id */
	uint16		nlevels;		/* in the directory, behind the segments */
	uint16		unused;
	uint16		ndelta;			/* delta slots in use ... */
	uint16		nretired;		/* ... the first of which are retired */
	uint16		nspare;			/* free blocks kept for the delta */
	uint16		nsegments;
	uint32		directory_len;	/* bytes */
	uint32		announced_owner;	/* id of the run to be made, RF_ANNOUNCED */
	RfDeltaSlot delta[RF_DELTA_SLOTS];
	BlockNumber spare[RF_DELTA_SLOTS];
	TimestampTz summarized_at;	/* when the last summarize ended; 0: never */
	uint64		collators;		/* RfCodec.collators, or RF_UNORDERED */
	int32		removed;		/* covered rows removed since, less the dead
								 * line pointers there were; see rfremoved.c */
	TransactionId chains_xid;	/* RF_MIXED_CHAINS: an update that made one */
	/* MAXALIGNed RfSegments follow: segments, then levels, the oldest first */
} RfMetaData;

/*
 * The partition has a string that has no order among others: RfKey.unordered.  No codec has
 * these collators, so every answer is RF_UNKNOWN.
 */
#define RF_UNORDERED	PG_UINT64_MAX

#define RF_DIRECTORY_SIZE	(RF_PAGE_CONTENT - MAXALIGN(sizeof(RfMetaData)))

/* RfSegment.flags */
#define RF_SEGMENT_NULLS	0x01	/* holds a NULL */
#define RF_SEGMENT_MIN_CUT	0x02	/* min is a proper prefix of the least key */
#define RF_SEGMENT_MAX_CUT	0x04
#define RF_LEVEL_RETIRED	0x08	/* a summarize is making a filter of it */
#define RF_SEGMENT_FLAGS	0x0F
#define RF_SEGMENT_BARE		0x10	/* never on disk: a copy without its
									 * run_len bytes of run */

/*
 * A directory entry.  Behind it: min, max (byte keys only), the run's root, the run
 * itself if it is short, and places if they are kept here.
 *
 * Levels have entries of the same kind, whose run is a sorted one.  They cover
 * keys in any block from start on, and have no places.
 */
typedef struct RfSegment
{
	uint32		length;			/* of the entry, all included, MAXALIGNed */
	uint8		kind;			/* FilterKind */
	uint8		flags;
	uint16		root_len;
	BlockNumber start;			/* heap blocks [start, end) */
	BlockNumber end;			/* of a level InvalidBlockNumber */
	BlockNumber run_block;		/* the run's npages contiguous blocks; the
								 * metapage if the run is in the entry */
	uint32		npages;
	uint32		owner;
	uint16		min_len;
	uint16		max_len;
	uint64		nrows;			/* tuples read, NULLs included; of a level 0 */
	uint64		nkeys;			/* distinct keys */
	uint64		min;			/* RF_KEY_U64 */
	uint64		max;
	uint32		range_blocks;	/* places tell ranges of this many heap blocks
								 * apart; 0: there are no places */
	uint32		place_pages;	/* the run's last pages have places */
	uint64		imprecise;		/* ranges that may hold any of the keys: a bit
								 * each, or for groups of ranges */
	uint16		places_len;		/* bytes of places in the entry instead */
	uint16		run_len;		/* bytes of the run's only page in the entry */
	uint32		rarest;			/* rows that the rarest key, or NULL, has */
} RfSegment;

/* The most ranges of a segment, whatever their size should be. */
#define RF_MAX_RANGES (1 << 20)

/* Bits in RfSegment.imprecise. */
#define RF_IMPRECISE_BITS 64

/* The largest entry there can be, but for places and a run. */
#define RF_MAX_SEGMENT_SIZE \
	MAXALIGN(sizeof(RfSegment) + 2 * RF_BOUND_BYTES + FILTER_MAX_ROOT)

/* The most pages of levels that a probe reads, of those that are not retired. */
#define RF_LEVEL_READS		3

/*
 * The most levels that are too large for an insert to merge; VACUUM and the worker merge
 * them if there are as many.
 */
#define RF_LARGE_LEVELS		3

/* The most levels, retired ones included, and the most bytes of an entry. */
#define RF_MAX_LEVELS		(2 * RF_LEVEL_READS)
#define RF_MAX_LEVEL_SIZE	416

/* The bytes that segments without places may take.  The rest is for levels. */
#define RF_SEGMENTS_SIZE	(RF_DIRECTORY_SIZE - RF_MAX_LEVELS * RF_MAX_LEVEL_SIZE)

/* The bytes of a run in an entry.  They leave 344 for bounds and the root. */
#define RF_ENTRY_RUN		5000

/* The bytes that places on the metapage leave to levels. */
#define RF_LEVELS_RESERVE	128

#endif							/* RANGEFILTER_LAYOUT_H */
