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
	WhRange    *ranges;			/* of the column's own encoding */
} WhFilter;

typedef struct WhConditions
{
	int			nranges;		/* in key order, disjoint */
	WhRange    *ranges;
	int			nfilters;		/* by column, ascending */
	WhFilter   *filters;
	bool		recheck;		/* rows in them may not match */
} WhConditions;

/*
 * A row of an entry.  off is where the batch has a copy of the entry, as long
 * as values are wanted; the head is not in it.
 */
typedef struct WhScanItem
{
	ItemPointerData tid;
	uint16		slot;			/* where the entry was; WH_ITEM_KILLED */
	uint32		head;			/* as in the slot */
	uint16		info;
	uint16		off;
} WhScanItem;

/* In WhScanItem.slot, where numbers of slots leave room for it. */
#define WH_ITEM_KILLED	0x8000	/* the row is dead to all */
#define WhItemSlot(item)	((item)->slot & ~WH_ITEM_KILLED)

/* So many bytes behind them may be read in a batch's space and its prefix. */
#define WH_SLACK	32

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
	WhKey		lo;				/* the stretch of keys it is all of */
	WhKey		hi;
	bool		from_lo;		/* it begins where the range does */
	bool		to_hi;			/* it ends where the range does */
	int			nitems;
	int			nkilled;
	int			current;
	int			first;			/* of space, in use: [first, used) */
	int			used;
	int			prefix_len;
	uint64		prefix_number;	/* its bytes behind the first, if up to 8 */
	uint8	   *prefix;
	uint8	   *lo_space;
	uint8	   *hi_space;
	uint8	   *space;
	WhScanItem *items;
} WhBatch;

/* The short way from a key to an index tuple. */
typedef enum WhShortKind
{
	WH_SHORT_NONE,
	WH_SHORT_NUMBER,
	WH_SHORT_STRING,
	WH_SHORT_UUID,
	WH_SHORT_COLUMNS			/* several of these, or one in another order */
} WhShortKind;

typedef struct WhShortColumn
{
	WhShortKind kind;
	uint8		flip;			/* all ones in descending columns */
	const RfCodec *codec;

	/* Numbers: the least key, the bytes in the key and in the tuple. */
	uint64		first;
	int			width;
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
	bool		ready;			/* conditions are there */
	WhRange		simple;			/* the range of a single comparison */
	StringInfoData simple_lo;
	StringInfoData simple_hi;
	bool		keep_values;	/* the scan returns the index's columns */
	bool		keep_pin;
	WhBatch		batch;
	WhBatch		mark;
	int			marked;			/* item of the batch, or of mark; -1: none */
	bool		mark_is_copy;	/* the mark is in mark, not in batch */
	BlockNumber last_leaf;		/* where the last batch came from */
	bool		near;			/* the next one is expected there, too */
	WhShortWay	way;
	IndexTuple	tuple;			/* a page's size */
	uint8	   *bounds_space;	/* also for a key put together */
	MemoryContext range_context;	/* conditions */
	MemoryContext tuple_context;	/* of the tuple returned */
	MemoryContext filter_context;
} WhScanData;

typedef WhScanData *WhScan;

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
extern void wh_keep_prefix(WhBatch *batch, const uint8 *prefix, int len);
extern void wh_form_tuple(IndexScanDesc scan, const WhScanItem *item);

/* whparallel.c */
extern bool wh_parallel_take(IndexScanDesc scan, ScanDirection direction,
							 int *range, bool *inside, BlockNumber *block);
extern void wh_parallel_leave(IndexScanDesc scan, ScanDirection direction,
							  BlockNumber block);

/* whkill.c */
extern void wh_mark_dead(Relation index, WhBatch *batch);

#endif							/* RANGEFILTER_WHSCAN_IMPL_H */
