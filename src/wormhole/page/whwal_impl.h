/*-------------------------------------------------------------------------
 *
 * whwal_impl.h
 *	  The WAL records of the extension's own resource manager, for whwal.c,
 *	  which writes them, and whredo.c, which replays them.
 *
 * src/wormhole/README.md has their bytes, and why replay makes the same page.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_WHWAL_IMPL_H
#define RANGEFILTER_WHWAL_IMPL_H

#include "postgres.h"

#include "wormhole/page/whpage.h"

/* Kinds of records, in XLogRecord.xl_info. */
#define WH_XLOG_INSERT		0x00	/* one entry */
#define WH_XLOG_SPLIT		0x10	/* a page becomes two */
#define WH_XLOG_REMOVE		0x20	/* entries, or TIDs of lists, of a leaf */

/*
 * The pages of a record, by the numbers of their block references.  Redo locks
 * them in this order: from the leaves up, from left to right.
 */
#define WH_BLOCK_CHILD		0	/* the left half of a split that is completed */
#define WH_BLOCK_PAGE		1	/* the page that changes; of two halves the
								 * left */
#define WH_BLOCK_RIGHT		2	/* the right half, always a full image */
#define WH_BLOCK_OTHER		3	/* the page to the right of both */

#define WH_NBLOCKS			4

/* An item follows (see pack_item() in whwal.c). */
typedef struct WhInsertRecord
{
	uint16		at;				/* slot */
} WhInsertRecord;

/* The anchor follows, its TID if it has one, and the new item. */
typedef struct WhSplitRecord
{
	uint16		cut;			/* entries of the left half */
	uint16		at;				/* place of the new item among them; cut if it
								 * is not there */
	uint16		anchor_len;
	uint16		anchor_has_tid;
} WhSplitRecord;

/* One change, in the order of entries.  The TIDs that remain follow. */
typedef struct WhRemoveRecord
{
	uint16		at;				/* entry, gaps not counted */
	uint16		ntids;			/* that remain; 0: the entry is removed */
} WhRemoveRecord;

/* whwal.c */
extern const char *wh_unpack_item(const char *data, const char *end, int level,
								  WhItem *item);

/* whredo.c */
extern void wh_redo(struct XLogReaderState *record);
extern void wh_redo_startup(void);
extern void wh_redo_cleanup(void);
extern void wh_describe(StringInfo buf, struct XLogReaderState *record);
extern const char *wh_identify(uint8 info);
extern void wh_mask(char *data, BlockNumber block);

#endif							/* RANGEFILTER_WHWAL_IMPL_H */
