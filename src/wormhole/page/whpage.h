/*-------------------------------------------------------------------------
 *
 * whpage.h
 *	  The lowest room of the wormhole index: the content of a page.
 *
 * It offers the layout of a page, the search for a position, reading an entry,
 * changing a page, and logging the change.  Its functions work on the page
 * they are given, and take no locks.
 *
 * An index is a metapage (block 0), a list of leaves in key order and, above
 * them, the anchor directory: pages of (anchor, child) in the same form.  All
 * keys are byte strings in memcmp order followed by a heap TID.
 * src/wormhole/README.md has the layout with offsets.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_WHPAGE_H
#define RANGEFILTER_WHPAGE_H

#include "postgres.h"

#include "access/generic_xlog.h"
#include "port/pg_bitutils.h"
#include "port/pg_bswap.h"
#include "storage/buf.h"
#include "storage/bufpage.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"

#define WH_META_BLKNO		0
#define WH_FIRST_LEAF		1	/* always the leftmost leaf */
#define WH_MAGIC			0x574f524d
#define WH_FORMAT_VERSION	3
#define WH_PAGE_ID			0xFF96

/*
 * The most bytes of a key and its payload: two bounds and one entry of this
 * size always fit on one page.
 */
#define WH_MAX_ENTRY		2680

#define WH_MAX_LEVEL		60

/*
 * The header of every page, the metapage's included.  With PageHeaderData it
 * fills one cache line.  In nearly all cases the header is enough to tell
 * whether a key is on the page.
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
#define WH_INCOMPLETE_SPLIT	0x0004	/* the right neighbour may have no anchor
									 * in the directory */
#define WH_RIGHTMOST		0x0008	/* no high bound */
#define WH_LOW_TID			0x0010	/* a TID follows the low bound */
#define WH_HIGH_TID			0x0020
#define WH_KILLED			0x0040	/* entries were marked dead since the last
									 * WAL record */
#define WH_DENSE			0x0080	/* a leaf of records, see below */
#define WH_ONE_KEY			0x0100	/* a dense leaf whose entries all have one
									 * key */
#define WH_ALL_FLAGS		0x01FF

/*
 * There is one for each entry, in key order.  head has the first four bytes of
 * the key behind the page's prefix as a number, the first the most
 * significant, padded with zeros.  The rest of the key, its tail, is at off.
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
#define WH_PAYLOAD			0x4000	/* leaf: has values that the key does not
									 * give back */
#define WH_ANCHOR_TID		0x8000	/* directory: the anchor has a TID */
#define WH_GAP				0x8000	/* leaf: no entry, see whgap.c */

#define WhSlots(page) \
	((WhSlot *) ((char *) (page) + WhPageHeader(page)->slots_off))

/*
 * A dense leaf (whdense.c) has a head for each entry instead of a slot, and a
 * record: the tail of the key, and one TID.  All of its keys have the same
 * length behind the prefix.  That length and the TIDs' are in the two bytes
 * before the heads.  Record number i ends where number i - 1 begins; the first
 * ends with the page.
 *
 * If all entries have the same key (WH_ONE_KEY), it is there only once, behind the
 * first record.  There are no heads, and a record is a TID.
 *
 * A TID has its lowest byte first: WH_RECORD_GAP and WH_RECORD_DEAD, nine bits
 * of the offset number, and the block.
 */
#define WhIsDense(page)		((WhPageHeader(page)->flags & WH_DENSE) != 0)
#define WhHeads(page) \
	((uint32 *) ((char *) (page) + WhPageHeader(page)->slots_off))
#define WhDenseKeyLen(page)	(((uint8 *) WhHeads(page))[-2])
#define WhDenseTidLen(page)	(((uint8 *) WhHeads(page))[-1])
#define WhIsOneKey(page)	((WhPageHeader(page)->flags & WH_ONE_KEY) != 0)
#define WhDenseTail(page)	Max(WhDenseKeyLen(page) - WH_HEAD, 0)
#define WhRecordTail(page)	(WhIsOneKey(page) ? 0 : WhDenseTail(page))
#define WhRecordSize(page)	(WhRecordTail(page) + WhDenseTidLen(page))
#define WhRecordsEnd(page) \
	(BLCKSZ - (WhIsOneKey(page) ? WhDenseKeyLen(page) : 0))
#define WhRecord(page, at) \
	((uint8 *) (page) + WhRecordsEnd(page) - ((at) + 1) * WhRecordSize(page))
#define WhRecordTid(page, at)	(WhRecord(page, at) + WhRecordTail(page))

#define WH_DENSE_INFO		2	/* bytes before the heads */
#define WH_DENSE_KEY		18	/* the most bytes of a key behind the prefix */
#define WH_DENSE_ONE_KEY	255 /* of the key, if there is one */
#define WH_SHORT_TID		4	/* bytes of a TID: room for 21 bits of a block */
#define WH_LONG_TID			5	/* for 29 */
#define WH_RECORD_GAP		0x01
#define WH_RECORD_DEAD		0x02
#define WH_RECORD_FLAGS		2	/* bits */
#define WH_RECORD_OFFSET	9	/* bits */

/* The bytes of a slot, or of a head in a dense leaf; 0 if it has no heads. */
#define WhSlotSize(page) \
	((int) (WhIsOneKey(page) ? 0 : WhIsDense(page) ? sizeof(uint32) : sizeof(WhSlot)))

/*
 * An entry as readers see it, whatever the kind of its page.  In a dense leaf
 * slot.off is the offset of the key's tail, and tid the TID.
 */
typedef struct WhEntry
{
	WhSlot		slot;
	ItemPointerData tid;
} WhEntry;

/*
 * Reads the TID of a record, of len bytes.  Returns its flags.
 */
static inline uint8
wh_read_tid(const uint8 *at, int len, ItemPointerData *tid)
{
	uint32		low;
	uint64		bits;

	memcpy(&low, at, sizeof(low));
#ifdef WORDS_BIGENDIAN
	low = pg_bswap32(low);
#endif
	bits = low;
	if (len > WH_SHORT_TID)
		bits |= (uint64) at[WH_SHORT_TID] << 32;
	bits >>= WH_RECORD_FLAGS;
	ItemPointerSet(tid, (BlockNumber) (bits >> WH_RECORD_OFFSET),
				   (OffsetNumber) (bits & ((1 << WH_RECORD_OFFSET) - 1)));
	return low & (WH_RECORD_GAP | WH_RECORD_DEAD);
}

#define WhRestLen(slot)		((slot)->info & WH_LEN_MASK)
#define WhTailLen(slot) \
	(WhRestLen(slot) > WH_HEAD ? WhRestLen(slot) - WH_HEAD : 0)
#define WhTail(page, slot)	((uint8 *) (page) + (slot)->off)

/*
 * The first bytes of a key's rest as a number, as in WhSlot.head.
 */
static inline uint32
wh_head(const uint8 *data, int len)
{
	uint32		head = 0;

	if (len >= WH_HEAD)
	{
		memcpy(&head, data, WH_HEAD);
		return pg_ntoh32(head);
	}
	for (int i = 0; i < len; i++)
		head |= (uint32) data[i] << (8 * (WH_HEAD - 1 - i));
	return head;
}

/*
 * Copies the tail of a key, or as few bytes.  The compiler knows that there
 * are less than 4,096 bytes.  So it would turn memcpy() into an instruction
 * that takes longer to start than most copies take.
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

/* The most TIDs of a list; see wh_most_tids(). */
#define WH_MAX_POSTING		200

/* The most entries and TIDs that a page can have. */
#define WH_MAX_ENTRIES		(WH_PAGE_CONTENT / WH_SHORT_TID)
#define WH_MAX_TIDS			WH_MAX_ENTRIES

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
 * A position in key order: before the first entry whose key is data, or begins
 * with it; with a TID, before the entry of that key and TID.  data NULL:
 * behind all entries.
 */
typedef struct WhKey
{
	const uint8 *data;
	int			len;
	bool		has_tid;
	ItemPointerData tid;
} WhKey;

/*
 * The length of the prefix that two strings share; the same for keys.
 */
static inline int
wh_common_length(const uint8 *a, int alen, const uint8 *b, int blen)
{
	int			most = Min(alen, blen);
	int			len = 0;

	while (len + (int) sizeof(uint64) <= most)
	{
		uint64		left;
		uint64		right;

		memcpy(&left, a + len, sizeof(left));
		memcpy(&right, b + len, sizeof(right));
		if (left != right)
			return len + (63 - pg_leftmost_one_pos64(pg_ntoh64(left ^ right))) / 8;
		len += sizeof(uint64);
	}
	while (len < most && a[len] == b[len])
		len++;
	return len;
}

static inline int
wh_common_prefix(const WhKey *a, const WhKey *b)
{
	return wh_common_length(a->data, a->len, b->data, b->len);
}

/* An entry taken off a page or to be put on one. */
typedef struct WhItem
{
	const uint8 *rest;			/* key without the set's prefix */
	uint16		len;
	uint16		flags;			/* of WhSlot.info */
	uint16		ntids;
	uint16		payload_len;
	const ItemPointerData *tids;	/* of leaves, and of WH_ANCHOR_TID; not
									 * aligned */
	const uint8 *payload;
	BlockNumber child;			/* directory */
} WhItem;

/* Entries that may become a dense leaf. */
typedef struct WhDenseForm
{
	int			key_len;		/* of all keys; -1: there are none */
	int			tid_len;		/* bytes of each TID; 0: a dense leaf cannot
								 * have the entries */
	bool		one_key;		/* all keys are the same */
	int			ntids;
} WhDenseForm;

/*
 * Adds an entry of a leaf whose key has this length, and which has no payload.  same_key: it
 * is the first, or has the key of the one before.  Its TIDs are to be added, too.
 */
static inline void
wh_dense_add(WhDenseForm *form, int key_len, bool same_key, int ntids)
{
	if (form->key_len >= 0 && form->key_len != key_len)
		form->tid_len = 0;
	form->key_len = key_len;
	form->one_key &= same_key;
	form->ntids += ntids;
}

typedef struct WhItemSet
{
	const uint8 *prefix;
	int			prefix_len;
	int			n;
	WhItem	   *items;			/* room for max */
	int			max;
	char	   *space;			/* keys put together from heads and tails, and
								 * merged TIDs */
	int			used;
	int			added;			/* the place of the only item that was not
								 * loaded from the page, or: */
} WhItemSet;

#define WH_ITEMS_LOADED		(-1)	/* there is none */
#define WH_ITEMS_CHANGED	(-2)	/* the set differs in other ways */

/*
 * Item number i of a set.
 */
static inline WhItem *
wh_item(const WhItemSet *set, int i)
{
	Assert(i >= 0 && i < set->n);
	return &set->items[i];
}

/*
 * The most TIDs that a list with a key of key_len bytes gets, 0 for none.  Like a payload
 * they do not make the entry larger than WH_MAX_ENTRY, so that a page can be split.
 */
static inline int
wh_most_tids(int key_len)
{
	int			room = Max(WH_MAX_ENTRY - key_len, 0);

	return Min(WH_MAX_POSTING, room / (int) sizeof(ItemPointerData));
}

/*
 * Can a table have a row there?  The last block's number means another thing to core:
 * that a table is to be extended.
 */
static inline bool
wh_tid_is_possible(const ItemPointerData *tid)
{
	return ItemPointerIsValid(tid) &&
		ItemPointerGetBlockNumberNoCheck(tid) != InvalidBlockNumber;
}

/*
 * Is a page in the list of the pages of this level?
 */
static inline bool
wh_is_on_level(Page page, int level)
{
	return WhPageHeader(page)->level == level &&
		!(WhPageHeader(page)->flags & (WH_META | WH_DELETED));
}

/* The bounds of a page to be written. */
typedef struct WhBounds
{
	WhKey		low;
	WhKey		high;
	bool		rightmost;
} WhBounds;

/*
 * The head of an entry of a dense leaf, and the offset of its key's tail.
 */
static inline uint32
wh_dense_head(Page page, int at)
{
	if (WhIsOneKey(page))
		return wh_head((uint8 *) page + WhRecordsEnd(page), WhDenseKeyLen(page));
	return WhHeads(page)[at];
}

static inline int
wh_dense_tail_place(Page page, int at)
{
	if (WhIsOneKey(page))
		return BLCKSZ - WhDenseTail(page);
	return WhRecord(page, at) - (uint8 *) page;
}

/*
 * Reads entry number at, or a gap.
 */
static inline void
wh_entry(Page page, int at, WhEntry *entry)
{
	uint8		flags;

	Assert(at >= 0 && at < WhPageHeader(page)->nslots);
	if (!WhIsDense(page))
	{
		entry->slot = WhSlots(page)[at];
		return;
	}
	entry->slot.head = wh_dense_head(page, at);
	entry->slot.off = wh_dense_tail_place(page, at);
	entry->slot.info = WhDenseKeyLen(page);
	flags = wh_read_tid(WhRecordTid(page, at), WhDenseTidLen(page), &entry->tid);
	if (unlikely(flags != 0))
		entry->slot.info |= ((flags & WH_RECORD_GAP) ? WH_GAP : 0) |
			((flags & WH_RECORD_DEAD) ? WH_DEAD : 0);
}

/*
 * Is it a gap, of a leaf?  Is the entry marked dead?
 */
static inline bool
wh_is_gap(Page page, int at)
{
	Assert(at >= 0 && at < WhPageHeader(page)->nslots);
	return WhIsDense(page) ? (*WhRecordTid(page, at) & WH_RECORD_GAP) != 0 :
		(WhSlots(page)[at].info & WH_GAP) != 0;
}

static inline bool
wh_is_dead(Page page, int at)
{
	Assert(at >= 0 && at < WhPageHeader(page)->nslots);
	return WhIsDense(page) ? (*WhRecordTid(page, at) & WH_RECORD_DEAD) != 0 :
		(WhSlots(page)[at].info & WH_DEAD) != 0;
}

/* Which page of a level a position means. */
typedef enum WhSide
{
	WH_AT,						/* low <= position < high */
	WH_BEFORE					/* low < position <= high */
} WhSide;

/* whpage.c */
extern void wh_init_page(Page page, uint64 identity, int level,
						 const WhBounds *bounds);
extern int	wh_slots_place(Page page);
extern bool wh_header_is_sound(Page page);
extern int	wh_page_side(Page page, const WhKey *key, WhSide side);
extern int	wh_page_search(Page page, const WhKey *key);
extern int	wh_page_place(Page page, const WhKey *key);
extern int	wh_page_child_slot(Page page, const WhKey *key, WhSide side);
extern bool wh_slot_has_key(Page page, const WhSlot *slot, const WhKey *key);
extern BlockNumber wh_slot_child(Page page, const WhSlot *slot);
extern int	wh_slot_tids(Page page, const WhSlot *slot,
						 const ItemPointerData **tids);
extern int	wh_entry_tids(Page page, const WhEntry *entry,
						  const ItemPointerData **tids);
extern const ItemPointerData *wh_slot_anchor_tid(Page page, const WhSlot *slot);
extern const uint8 *wh_slot_payload(Page page, const WhSlot *slot, int *len);
extern int	wh_slot_key(Page page, const WhSlot *slot, uint8 *key);
extern void wh_page_bounds(Page page, WhBounds *bounds, uint8 *space);
extern int	wh_bounds_prefix(const WhBounds *bounds);
extern int	wh_compare_keys(const WhKey *a, const WhKey *b);
extern void wh_shorten_anchor(const WhKey *before, WhKey *anchor);

/* Bytes that the two bounds of a page need, prefixes included. */
#define WH_BOUNDS_SPACE		(2 * BLCKSZ)

/* whput.c */
extern int	wh_item_size(const WhItem *item);
extern int	wh_page_space(Page page);
extern int	wh_bytes_needed(Page page, const WhItem *item);
extern void wh_put_entry(uint8 *to, const WhItem *item);
extern void wh_page_insert(Page page, int at, const WhItem *item);
extern void wh_add_slot(Page page);
extern void wh_move_slots(Page page, int to, int from, int n);
extern void wh_page_put(Page page, int at, const WhItem *item);

/* whdense.c */
extern void wh_dense_begin(WhDenseForm *form);
extern void wh_dense_add_tids(WhDenseForm *form, const ItemPointerData *tids,
							  int ntids);
extern int	wh_dense_end(WhDenseForm *form, int prefix, int size);
extern void wh_make_dense(Page page, const WhDenseForm *form);
extern bool wh_suits_dense(Page page, const WhItem *item);
extern void wh_put_record(Page page, int at, const WhItem *item);
extern void wh_append_item(Page page, const WhItem *item);
extern void wh_set_dead(Page page, int at, bool dead);
extern void wh_copy_slot(Page page, int to, Page from, int at, bool gap);

/* whgap.c */
extern int	wh_entry_before(Page page, int at);
extern int	wh_entries_before(Page page, int at);
extern bool wh_leaf_has_room(Page page, int at, const WhItem *item);
extern bool wh_leaf_spread(Page page, int size, bool by_key);
extern void wh_leaf_insert(Page page, int at, const WhItem *item,
						   int *first, int *last);

/* whitems.c */
extern void wh_items_begin(WhItemSet *set);
extern void wh_items_end(WhItemSet *set);
extern void wh_items_load(WhItemSet *set, Page page);
extern void wh_items_insert(WhItemSet *set, int at, const WhItem *item);
extern void wh_items_remove(WhItemSet *set, int at);
extern bool wh_same_key(const WhItem *a, const WhItem *b);
extern bool wh_items_merge(WhItemSet *set);
extern int	wh_items_space(const WhItemSet *set, int from, int to,
						   const WhBounds *bounds);
extern bool wh_items_are_dense(const WhItemSet *set, int from, int to,
							   const WhBounds *bounds);
extern void wh_items_key(const WhItemSet *set, int at, WhKey *key,
						 uint8 *space);
extern void wh_items_store(const WhItemSet *set, int from, int to, Page page,
						   const WhBounds *bounds);
extern void wh_items_rewrite(const WhItemSet *set, Page page,
							 const WhBounds *bounds);

/* The pages of a split; child and other may be InvalidBuffer. */
typedef struct WhSplitBuffers
{
	Buffer		child;			/* left half of the split one level below that
								 * this one completes */
	Buffer		left;
	Buffer		right;
	Buffer		other;			/* to the right of both */
} WhSplitBuffers;

/* What is removed from a leaf: its entries that change. */
typedef struct WhRemoval
{
	int			size;
	char		changes[BLCKSZ];
} WhRemoval;

/* whwal.c */
extern void wh_register_manager(int id);
extern bool wh_has_manager(void);
extern void wh_log_insert(Relation index, Buffer child, Buffer buffer, int at,
						  const WhItem *item);
extern void wh_log_split(Relation index, const WhItemSet *set, int cut,
						 const WhKey *anchor, const WhSplitBuffers *pages,
						 Page left, Page right);
extern void wh_note_removal(WhRemoval *removal, int at,
							const ItemPointerData *tids, int ntids);
extern void wh_log_removal(Relation index, Buffer buffer, const WhItemSet *set,
						   const WhBounds *bounds, const WhRemoval *removal);
extern Page wh_register(GenericXLogState *state, Buffer buffer);

#endif							/* RANGEFILTER_WHPAGE_H */
