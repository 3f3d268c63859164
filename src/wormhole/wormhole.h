/*-------------------------------------------------------------------------
 *
 * wormhole.h
 *	  On-disk layout and internal interfaces of the wormhole index.
 *
 * An index is a metapage (block 0), a list of leaves in key order and, above
 * them, the anchor directory: pages of (anchor, child) in the same form.  All
 * keys are byte strings in memcmp order followed by a heap TID.  src/wormhole/
 * README.md has the layout with offsets and the rules of locking.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_WORMHOLE_H
#define RANGEFILTER_WORMHOLE_H

#include "postgres.h"

#include "access/amapi.h"
#include "access/generic_xlog.h"
#include "access/itup.h"
#include "access/relscan.h"
#include "compat.h"
#include "key/rowkey.h"
#include "nodes/execnodes.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#define WH_META_BLKNO		0
#define WH_FIRST_LEAF		1	/* the leftmost leaf, for ever */
#define WH_MAGIC			0x574f524d
#define WH_FORMAT_VERSION	1
#define WH_PAGE_ID			0xFF96

/*
 * The longest key with what belongs to it on the page: two bounds and one
 * entry of this size always fit on one page.
 */
#define WH_MAX_ENTRY		2680

#define WH_MAX_LEVEL		60

/*
 * The header of every page, the metapage's included.  With the fields of
 * PageHeaderData it fills one line of the cache: enough to tell whether a key
 * belongs here in nearly all cases.
 */
typedef struct WhHeaderData
{
	char		page[SizeOfPageHeaderData]; /* PageHeaderData */
	uint64		identity;		/* drawn at random by every build */
	BlockNumber prev;			/* neighbours on the level */
	BlockNumber next;
	uint32		low_head;		/* first bytes of the bounds behind the */
	uint32		high_head;		/* prefix, as a number; see WhSlot.head */
	uint16		prefix_len;		/* bytes that all keys of the page share */
	uint16		low_len;		/* of the bounds, behind the prefix */
	uint16		high_len;
	uint16		slots_off;		/* where the slots begin */
	uint16		nslots;
	uint16		flags;
	uint8		level;			/* 0: leaf */
	uint8		version;		/* WH_FORMAT_VERSION */
	uint16		page_id;		/* WH_PAGE_ID */
} WhHeaderData;

typedef WhHeaderData *WhHeader;

#define WhPageHeader(page) ((WhHeader) (page))
#define WH_BOUNDS_OFF		sizeof(WhHeaderData)

/* WhHeaderData.flags */
#define WH_META				0x0001
#define WH_DELETED			0x0002	/* empty and out of the list */
#define WH_INCOMPLETE_SPLIT	0x0004	/* the right half has no anchor above */
#define WH_RIGHTMOST		0x0008	/* no high bound */
#define WH_LOW_TID			0x0010	/* a TID follows the low bound */
#define WH_HIGH_TID			0x0020
#define WH_KILLED			0x0040	/* entries marked dead since the last
									 * record */

/*
 * One for each entry, in key order.  head is the first four bytes of the key
 * behind the page's prefix, the first the most significant, short ones padded
 * with zeros; the rest of the key is at off.
 */
typedef struct WhSlot
{
	uint32		head;
	uint16		off;
	uint16		info;			/* length behind the prefix, and flags */
} WhSlot;

#define WH_HEAD				4	/* bytes of the key in a slot */

#define WH_LEN_MASK			0x0FFF
#define WH_DEAD				0x1000	/* leaf: all its rows are dead to all */
#define WH_POSTING			0x2000	/* leaf: a list of TIDs */
#define WH_PAYLOAD			0x4000	/* leaf: values that are not in the key */
#define WH_ANCHOR_TID		0x8000	/* directory: the anchor has a TID */
#define WH_GAP				0x8000	/* leaf: no entry, see whgap.c */

#define WhSlots(page) \
	((WhSlot *) ((char *) (page) + WhPageHeader(page)->slots_off))
#define WhRestLen(slot)		((slot)->info & WH_LEN_MASK)
#define WhTailLen(slot) \
	(WhRestLen(slot) > WH_HEAD ? WhRestLen(slot) - WH_HEAD : 0)
#define WhTail(page, slot)	((uint8 *) (page) + (slot)->off)

/*
 * Copies the tail of a key, or as little.  As the compiler knows that there are
 * less than 4,096 bytes, it would turn memcpy() into an instruction that takes
 * longer to begin than most tails to copy.
 */
static inline void
wh_copy_short(uint8 *to, const uint8 *from, int len)
{
	const int	chunk = sizeof(uint64);

	if (len < chunk)
	{
		while (len-- > 0)
			*to++ = *from++;
		return;
	}
	for (int at = 0; at < len - chunk; at += chunk)
		memcpy(to + at, from + at, chunk);
	memcpy(to + len - chunk, from + len - chunk, chunk);
}

/* Bytes available to a page's bounds, slots and entries. */
#define WH_PAGE_CONTENT		(BLCKSZ - sizeof(WhHeaderData))

/* TIDs of one posting list. */
#define WH_MAX_POSTING		200

/* The most entries and TIDs a page can have. */
#define WH_MAX_ENTRIES \
	(WH_PAGE_CONTENT / (sizeof(WhSlot) + sizeof(BlockNumber)))
#define WH_MAX_TIDS			(WH_PAGE_CONTENT / sizeof(ItemPointerData))

/* The metapage's content, behind its WhHeaderData. */
typedef struct WhMetaData
{
	uint32		magic;
	uint16		version;
	uint16		ncolumns;		/* key columns */
	BlockNumber root;
	uint32		level;			/* the root's */
	uint16		codec_ids[INDEX_MAX_KEYS];
	uint64		collators;		/* rf_row_collators() */
} WhMetaData;

#define WhPageMeta(page) \
	((WhMetaData *) ((char *) (page) + MAXALIGN(sizeof(WhHeaderData))))

/*
 * A position in key order: before the first entry whose key is data, or, with
 * a TID, before the entry of that key and TID.
 */
typedef struct WhKey
{
	const uint8 *data;
	int			len;
	bool		has_tid;
	ItemPointerData tid;
} WhKey;

/* An entry taken off a page or to be put on one. */
typedef struct WhItem
{
	const uint8 *rest;			/* key behind the set's prefix */
	uint16		len;
	uint16		flags;			/* of WhSlot.info */
	uint16		ntids;
	uint16		payload_len;
	const ItemPointerData *tids;	/* leaf, and WH_ANCHOR_TID; unaligned */
	const uint8 *payload;
	BlockNumber child;			/* directory */
} WhItem;

typedef struct WhItemSet
{
	const uint8 *prefix;
	int			prefix_len;
	int			n;
	WhItem	   *items;			/* room for WH_MAX_ENTRIES + 2 */
	char	   *space;			/* heads and tails put together */
	int			used;
} WhItemSet;

/* The bounds of a page to be written. */
typedef struct WhBounds
{
	WhKey		low;
	WhKey		high;
	bool		rightmost;
} WhBounds;

/* How values of a key column come back from the key. */
typedef enum WhDecode
{
	WH_DECODE_NEVER,			/* the original is kept */
	WH_DECODE_VERIFY,			/* ... where decoding gives something else */
	WH_DECODE_ALWAYS
} WhDecode;

/* The first byte of a column's key where it is not null; see rowkey.c. */
#define WH_VALUE_MARK	0x01

typedef struct WhHint WhHint;	/* whhint.h */

/* What is known of an index; in rd_amcache. */
typedef struct WhCache
{
	RfRowFormat format;
	WhDecode	decode[INDEX_MAX_KEYS];
	bool		may_have_payload;
	uint64		collators;		/* rf_row_collators() */

	/* From the metapage; the root may have got a parent since. */
	bool		have_meta;
	bool		sorted_otherwise;	/* the collators there are others */
	uint64		identity;
	BlockNumber root;
	uint32		level;
	BlockNumber nblocks;		/* the file is at least this long */
	WhHint	   *hint;			/* for ever at the same place */
} WhCache;

/* CREATE INDEX ... WITH (...) */
typedef struct WhOptions
{
	int32		vl_len_;		/* varlena header (do not touch directly!) */
	int			fillfactor;
	bool		deduplicate;
} WhOptions;

#define WH_DEFAULT_FILLFACTOR	90
#define WH_DIRECTORY_FILLFACTOR	90

/* Phases of CREATE INDEX, for pg_stat_progress_create_index. */
#define WH_PHASE_SCAN	2
#define WH_PHASE_SORT	3
#define WH_PHASE_WRITE	4

/* Which page of a level is meant by a position. */
typedef enum WhSide
{
	WH_AT,						/* low <= position < high */
	WH_BEFORE					/* low < position <= high */
} WhSide;

/* whoptions.c */
extern void wh_init_options(void);
extern const WhOptions *wh_index_options(Relation index);
extern void wh_check_definition(Relation index, IndexInfo *index_info);

/* whcost.c */
struct IndexOptInfo;
extern bool wh_is_unusable(const struct IndexOptInfo *info);
extern void wh_costestimate(struct PlannerInfo *root, struct IndexPath *path,
							double loop_count, Cost *startup_cost,
							Cost *total_cost, Selectivity *selectivity,
							double *correlation, double *pages);


/* whkey.c */
extern WhCache *wh_cache(Relation index);
extern void wh_encode(Relation index, const Datum *values,
					  const bool *isnull, StringInfo key,
					  StringInfo payload);
extern void wh_decode(Relation index, const uint8 *key, int len,
					  const uint8 *payload, int payload_len,
					  Datum *values, bool *isnull);
extern WhDecode wh_decode_kind(const RfCodec *codec);
extern Datum wh_decode_value(const RfCodec *codec, const RfKey *key);
extern void wh_check_size(Relation index, Relation heap, int key_len,
						  int payload_len);
extern bool wh_can_return(Relation index, int attno);

/* whpage.c */
extern void wh_init_page(Page page, uint64 identity, int level,
						 const WhBounds *bounds);
extern int	wh_page_side(Page page, const WhKey *key, WhSide side);
extern int	wh_page_search(Page page, const WhKey *key);
extern int	wh_page_child_slot(Page page, const WhKey *key, WhSide side);
extern int	wh_compare_slot(Page page, const WhSlot *slot, const WhKey *key);
extern bool wh_slot_has_key(Page page, const WhSlot *slot, const WhKey *key);
extern BlockNumber wh_slot_child(Page page, const WhSlot *slot);
extern int	wh_slot_tids(Page page, const WhSlot *slot,
						 const ItemPointerData **tids);
extern const uint8 *wh_slot_payload(Page page, const WhSlot *slot, int *len);
extern int	wh_slot_key(Page page, const WhSlot *slot, uint8 *key);
extern void wh_page_bounds(Page page, WhBounds *bounds, uint8 *space);
extern int	wh_compare_keys(const WhKey *a, const WhKey *b);
extern int	wh_item_size(const WhItem *item);
extern int	wh_page_space(Page page);
extern void wh_page_insert(Page page, int at, const WhItem *item);
extern void wh_page_put(Page page, int at, const WhItem *item);

/* Space for the two bounds of a page, prefixes included. */
#define WH_BOUNDS_SPACE		(2 * BLCKSZ)

/* whgap.c */
extern int	wh_entry_before(Page page, int at);
extern int	wh_entries_before(Page page, int at);
extern bool wh_leaf_has_room(Page page, int size);
extern void wh_leaf_insert(Page page, int at, const WhItem *item,
						   int *first, int *last);

/* whitems.c */
extern void wh_items_begin(WhItemSet *set);
extern void wh_items_end(WhItemSet *set);
extern void wh_items_load(WhItemSet *set, Page page);
extern void wh_items_insert(WhItemSet *set, int at, const WhItem *item);
extern void wh_items_remove(WhItemSet *set, int at);
extern bool wh_items_merge(WhItemSet *set);
extern int	wh_items_space(const WhItemSet *set, int from, int to,
						   const WhBounds *bounds);
extern void wh_items_key(const WhItemSet *set, int at, WhKey *key,
						 uint8 *space);
extern void wh_items_store(const WhItemSet *set, int from, int to, Page page,
						   const WhBounds *bounds);
extern void wh_items_rewrite(const WhItemSet *set, Page page,
							 const WhBounds *bounds);

/* whtree.c */
extern Buffer wh_read(Relation index, BlockNumber block, int lockmode);
extern Page wh_check_page(Relation index, Buffer buffer);
extern void wh_read_meta(Relation index);
extern bool wh_sorted_otherwise(Relation index);
extern void wh_check_collators(Relation index);
extern Buffer wh_descend(Relation index, const WhKey *key, WhSide side,
						 int level, int lockmode);
extern bool wh_is_leaf_of(Relation index, Buffer buffer, const WhKey *key);
extern Buffer wh_move_right(Relation index, Buffer buffer, const WhKey *key,
							WhSide side, int level, int lockmode);
extern Buffer wh_step(Relation index, BlockNumber block, const WhKey *key,
					  WhSide side, int lockmode);
extern Buffer wh_new_buffer(Relation index);
extern void wh_add_anchor(Relation index, Buffer left, Buffer right);
extern void wh_init_meta_page(Relation index, Page page, uint64 identity,
							  BlockNumber root, uint32 level);
extern uint64 wh_new_identity(void);

/* whhint.c */
extern bool wh_enable_hint;
extern int	wh_hint_memory;

extern void wh_init_hint(void);
extern Buffer wh_pin(Relation index, BlockNumber block);

/* whsplit.c */
extern void wh_split(Relation index, Buffer buffer, WhItemSet *set,
					 Buffer child);

/* whinsert.c */
extern bool wh_insert(Relation index, Datum *values, bool *isnull,
					  ItemPointer tid, Relation heap,
					  IndexUniqueCheck check_unique, bool index_unchanged,
					  IndexInfo *index_info);
extern void wh_report_duplicate(Relation index, Relation heap,
								const Datum *values, const bool *isnull);

/* whwal.c */
extern void wh_log_insert(Relation index, Buffer buffer, int at,
						  const WhItem *item);

/* whdead.c */
extern Page wh_register(GenericXLogState *state, Buffer buffer);
extern bool wh_remove_dead(Relation index, Relation heap, Buffer buffer);

/* whdelete.c */
extern int	wh_delete_page(Relation index, BlockNumber block, int level);

/* whbuild.c */
extern IndexBuildResult *wh_build(Relation heap, Relation index,
								  IndexInfo *index_info);
extern void wh_buildempty(Relation index);

/* whvacuum.c */
extern IndexBulkDeleteResult *wh_bulkdelete(IndexVacuumInfo *info,
											IndexBulkDeleteResult *stats,
											IndexBulkDeleteCallback callback,
											void *callback_state);
extern IndexBulkDeleteResult *wh_vacuumcleanup(IndexVacuumInfo *info,
											   IndexBulkDeleteResult *stats);

/* whcond.c: conditions as ranges of keys */
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

extern void wh_conditions(Relation index, ScanKey keys, int nkeys,
						  WhConditions *result);
extern bool wh_simple_range(Relation index, ScanKey keys, int nkeys,
							StringInfo lo, StringInfo hi, WhRange *range);
extern bool wh_filter_passes(const RfRowFormat *format,
							 const WhConditions *conditions,
							 const uint8 *key, int len);

/* whscan.c */
extern IndexScanDesc wh_beginscan(Relation index, int nkeys, int norderbys);
extern void wh_rescan(IndexScanDesc scan, ScanKey keys, int nkeys,
					  ScanKey orderbys, int norderbys);
extern bool wh_gettuple(IndexScanDesc scan, ScanDirection direction);
extern int64 wh_getbitmap(IndexScanDesc scan, TIDBitmap *tbm);
extern void wh_endscan(IndexScanDesc scan);
extern void wh_markpos(IndexScanDesc scan);
extern void wh_restrpos(IndexScanDesc scan);

/* whparallel.c */
extern Size wh_estimateparallelscan(RF_ESTIMATE_PARALLEL_ARGS);
extern void wh_initparallelscan(void *target);
extern void wh_parallelrescan(IndexScanDesc scan);

#endif							/* RANGEFILTER_WORMHOLE_H */
