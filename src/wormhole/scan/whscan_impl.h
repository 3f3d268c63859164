/*-------------------------------------------------------------------------
 *
 * whscan_impl.h
 *	  What the files of this room share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_WHSCAN_IMPL_H
#define RANGEFILTER_WHSCAN_IMPL_H

#include "postgres.h"

#include "wormhole/index/whindex.h"
#include "wormhole/scan/whscan.h"

/* From lo up to, not including, hi. */
typedef struct WhRange
{
	WhKey		lo;
	WhKey		hi;				/* data == NULL: no end */
} WhRange;

/* Conditions on a column that the ranges do not express. */
typedef struct WhFilter
{
	int			column;
	int			n;
	WhRange    *ranges;			/* of the column's part of the key */
} WhFilter;

typedef struct WhConditions
{
	int			nranges;		/* in key order, disjoint */
	WhRange    *ranges;
	int			nfilters;		/* by column, ascending */
	WhFilter   *filters;
	bool		recheck;		/* rows in the ranges may not match */
} WhConditions;

/*
 * A row of an entry.  off is the entry's place on the page or, if values are
 * wanted and are not numbers, that of its copy in the batch's space; the head
 * is not in the copy.
 */
typedef struct WhScanItem
{
	ItemPointerData tid;
	uint16		slot;			/* the entry's number on the page;
								 * WH_ITEM_KILLED */
	uint32		head;			/* as in the slot */
	uint16		info;
	uint16		off;
} WhScanItem;

/* A flag in WhScanItem.slot; numbers of slots are smaller. */
#define WH_ITEM_KILLED	0x8000	/* the row is dead to all */
#define WhItemSlot(item)	((item)->slot & ~WH_ITEM_KILLED)

/* The bytes behind a batch's space and prefix that may be read. */
#define WH_SLACK	32

/* Room for a page's entries, or a number for each of its TIDs. */
#define WH_BATCH_SPACE	Max(BLCKSZ, WH_MAX_TIDS * sizeof(uint64))

/* What was read from one leaf at once. */
typedef struct WhBatch
{
	bool		valid;
	int			range;
	BlockNumber block;			/* the leaf, if there are items */
	Buffer		buffer;			/* pinned, or InvalidBuffer */
	XLogRecPtr	lsn;			/* the leaf's, when it was read */
	BlockNumber prev;
	BlockNumber next;
	WhKey		lo;				/* it has all entries from lo up to hi */
	WhKey		hi;
	bool		from_lo;		/* lo is that of the range */
	bool		to_hi;			/* hi is that of the range */
	int			nitems;
	int			nkilled;
	int			current;
	bool		has_numbers;	/* space has the items' values, of eight bytes
								 * each, as in a tuple */
	int			first;			/* [first, used) of space is in use */
	int			used;
	int			prefix_len;
	uint8	   *prefix;
	uint8	   *lo_space;
	uint8	   *hi_space;
	uint8	   *space;
	WhScanItem *items;
} WhBatch;

/* A short way from a key to an index tuple. */
typedef enum WhShortKind
{
	WH_SHORT_NONE,
	WH_SHORT_NUMBER,
	WH_SHORT_STRING,
	WH_SHORT_UUID,
	WH_SHORT_COLUMNS			/* several of these, or a descending one that
								 * is no number */
} WhShortKind;

typedef struct WhShortColumn
{
	WhShortKind kind;
	uint8		flip;			/* 0xFF in descending columns, else 0 */
	const RfCodec *codec;

	/*
	 * Numbers: the least one, its bytes in the key, a mask of these, whether
	 * the value is the number with another sign bit, and its form in the
	 * tuple.
	 */
	uint64		first;
	int			width;
	uint64		mask;
	bool		is_signed;
	int			attlen;
	char		attalign;
} WhShortColumn;

typedef struct WhShortWay
{
	WhShortKind kind;
	int			ncolumns;
	WhShortColumn columns[INDEX_MAX_KEYS];
} WhShortWay;

typedef struct WhScanData
{
	WhConditions conditions;
	bool		ready;			/* conditions are made */
	WhRange		simple;			/* the range of a single comparison */
	StringInfoData simple_lo;
	StringInfoData simple_hi;
	bool		keep_values;	/* the scan returns the index's columns */
	bool		keep_pin;
	WhBatch		batch;
	WhBatch		mark;
	int			marked;			/* the marked item, of batch or of mark; -1:
								 * none */
	bool		mark_is_copy;	/* the mark is in mark, not in batch */
	ScanDirection ended;		/* there are no more items in this direction,
								 * and no batch */
	BlockNumber last_leaf;		/* the leaf of the last batch */
	bool		near;			/* the next position is expected there, too */
	WhShortWay	way;
	IndexTuple	tuple;			/* a page's size */
	uint8	   *bounds_space;	/* also for putting a key together */
	MemoryContext range_context;	/* conditions */
	MemoryContext tuple_context;	/* of the tuple returned */
	MemoryContext filter_context;
} WhScanData;

typedef WhScanData *WhScan;

/*
 * Writes the header of an index tuple without nulls.
 */
static inline void
wh_finish_tuple(IndexTuple tuple, Size size, uint16 flags)
{
	ItemPointerSetInvalid(&tuple->t_tid);
	tuple->t_info = MAXALIGN(size) | flags;
}

/*
 * As wh_form_tuple(), for an item of a batch with numbers.
 */
static inline void
wh_form_number(IndexScanDesc scan, int number)
{
	WhScan		so = (WhScan) scan->opaque;

	memcpy(so->tuple + 1, so->batch.space + number * sizeof(uint64),
		   sizeof(uint64));
	scan->xs_itup = so->tuple;
}

/* whcond.c */
extern void wh_conditions(Relation index, ScanKey keys, int nkeys,
						  WhConditions *result);
extern bool wh_simple_range(Relation index, ScanKey keys, int nkeys,
							StringInfo lo, StringInfo hi, WhRange *range);
extern bool wh_filter_passes(const RfRowFormat *format,
							 const WhConditions *conditions,
							 const uint8 *key, int len);

/* whbatch.c */
extern void wh_batch_init(WhBatch *batch);
extern void wh_batch_free(WhBatch *batch);
extern void wh_batch_release(Relation index, WhBatch *batch);
extern void wh_batch_fill(IndexScanDesc scan, Buffer buffer);
extern void wh_batch_copy(WhBatch *to, const WhBatch *from);
extern void wh_copy_position(WhKey *to, const WhKey *from, uint8 *space);

/* whtuple.c */
extern void wh_short_way(Relation index, WhShortWay *way);
extern bool wh_keep_numbers(const WhShortColumn *column, WhBatch *batch,
							Page page);
extern void wh_form_tuple(IndexScanDesc scan, const WhScanItem *item);

/* whparallel.c */
extern bool wh_parallel_take(IndexScanDesc scan, ScanDirection direction,
							 int *range, bool *inside, BlockNumber *block);
extern void wh_parallel_leave(IndexScanDesc scan, ScanDirection direction,
							  BlockNumber block);

/* whkill.c */
extern void wh_mark_dead(Relation index, WhBatch *batch);

#endif							/* RANGEFILTER_WHSCAN_IMPL_H */
