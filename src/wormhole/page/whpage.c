/*-------------------------------------------------------------------------
 *
 * whpage.c
 *	  Pages of a wormhole index: bounds, search, reading single entries.
 *
 * A page stores the range of positions it is for: from its low bound up to,
 * not including, its high bound.  Every key between the bounds begins with the
 * prefix that the bounds share.  This prefix is stored once, and an insert can
 * never shorten it.  The four bytes of each key behind it are in the slot
 * itself, as a number.  A search compares these numbers.  It begins where
 * interpolation between the bounds' own numbers expects the key.  So it reads
 * two or three cache lines.  (The Wormhole paper has hash tags for point
 * lookups, section 3.2.  Numbers in key order also serve ranges and inserts.
 * They take no space, since their bytes are not stored again with the key.)
 *
 * Nothing here locks: callers hold at least a share lock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "wormhole/page/whpage.h"

/* The rest of a key behind the prefix of a page. */
typedef struct WhRest
{
	const uint8 *data;
	int			len;
	uint32		head;
	const ItemPointerData *tid;
} WhRest;

/*
 * Compares TIDs; in pages they are not aligned.
 */
static inline int
compare_tids(const ItemPointerData *a, const ItemPointerData *b)
{
	ItemPointerData left;
	ItemPointerData right;

	memcpy(&left, a, sizeof(left));
	memcpy(&right, b, sizeof(right));
	return ItemPointerCompare(&left, &right);
}

/*
 * Compares TIDs that may be NULL; NULL comes before all TIDs.
 */
static inline int
compare_optional_tids(const ItemPointerData *a, const ItemPointerData *b)
{
	if (a == NULL || b == NULL)
		return (a != NULL) - (b != NULL);
	return compare_tids(a, b);
}

/*
 * Compares byte strings; a prefix comes before its extensions.
 */
static inline int
compare_bytes(const uint8 *a, int alen, const uint8 *b, int blen)
{
	int			cmp = memcmp(a, b, Min(alen, blen));

	return cmp != 0 ? cmp : alen - blen;
}

int
wh_compare_keys(const WhKey *a, const WhKey *b)
{
	int			cmp;

	if (a->data == NULL || b->data == NULL)
		return (a->data == NULL) - (b->data == NULL);
	cmp = compare_bytes(a->data, a->len, b->data, b->len);
	if (cmp != 0)
		return cmp;
	return compare_optional_tids(a->has_tid ? &a->tid : NULL,
								 b->has_tid ? &b->tid : NULL);
}

/*
 * Makes the key of an entry the shortest string that separates it from the entry
 * before.  If only their TIDs differ, it stays as it is.
 */
void
wh_shorten_anchor(const WhKey *before, WhKey *anchor)
{
	int			common = wh_common_prefix(before, anchor);

	if (common == before->len && common == anchor->len)
		return;
	anchor->len = Min(common + 1, anchor->len);
	anchor->has_tid = false;
}

/*
 * The parts of the bounds in a page.
 */
static inline const uint8 *
low_rest(Page page)
{
	return (const uint8 *) page + WH_BOUNDS_OFF +
		WhPageHeader(page)->prefix_len;
}

static inline const ItemPointerData *
low_tid(Page page)
{
	if (!(WhPageHeader(page)->flags & WH_LOW_TID))
		return NULL;
	return (const ItemPointerData *) (low_rest(page) +
									  WhPageHeader(page)->low_len);
}

static inline const uint8 *
high_rest(Page page)
{
	return low_rest(page) + WhPageHeader(page)->low_len +
		((WhPageHeader(page)->flags & WH_LOW_TID) ?
		 sizeof(ItemPointerData) : 0);
}

static inline const ItemPointerData *
high_tid(Page page)
{
	if (!(WhPageHeader(page)->flags & WH_HIGH_TID))
		return NULL;
	return (const ItemPointerData *) (high_rest(page) +
									  WhPageHeader(page)->high_len);
}

/*
 * Sets *rest to a key's rest.  The key is known to begin with the page's
 * prefix.
 */
static inline void
take_rest(Page page, const WhKey *key, WhRest *rest)
{
	int			prefix = WhPageHeader(page)->prefix_len;

	Assert(key->len >= prefix);
	rest->data = key->data + prefix;
	rest->len = key->len - prefix;
	rest->head = wh_head(rest->data, rest->len);
	rest->tid = key->has_tid ? &key->tid : NULL;
}

/*
 * Compares one of the page's bounds with a key.
 */
static inline int
compare_bound(uint32 head, const uint8 *data, int len,
			  const ItemPointerData *tid, const WhRest *rest)
{
	int			cmp;

	if (head != rest->head)
		return head < rest->head ? -1 : 1;
	cmp = compare_bytes(data, len, rest->data, rest->len);
	return cmp != 0 ? cmp : compare_optional_tids(tid, rest->tid);
}

/*
 * Where the bounds of a page end.
 */
static inline int
bounds_end(WhHeader header)
{
	return WH_BOUNDS_OFF + header->prefix_len + header->low_len +
		header->high_len +
		((header->flags & WH_LOW_TID) ? sizeof(ItemPointerData) : 0) +
		((header->flags & WH_HIGH_TID) ? sizeof(ItemPointerData) : 0);
}

/*
 * Where the slots of a page begin.
 */
int
wh_slots_place(Page page)
{
	return TYPEALIGN(sizeof(WhSlot), bounds_end(WhPageHeader(page)) +
					 (WhIsDense(page) ? WH_DENSE_INFO : 0));
}

/*
 * Do the lengths that a dense leaf's records have fit its header?  Then all records are
 * within the page.  Its slots are known to be.
 */
static bool
records_are_sound(Page page)
{
	return WhPageHeader(page)->level == 0 &&
		(WhIsOneKey(page) ? WhPageHeader(page)->nslots > 0 :
		 WhDenseKeyLen(page) <= WH_DENSE_KEY) &&
		(WhDenseTidLen(page) == WH_SHORT_TID ||
		 WhDenseTidLen(page) == WH_LONG_TID) &&
		((PageHeader) page)->pd_upper ==
		WhRecordsEnd(page) - WhPageHeader(page)->nslots * WhRecordSize(page);
}

/*
 * Are the fields of a page's header possible, and do they fit each other?  If they do,
 * bounds and slots are within the page.  Entries may still be damaged.
 */
bool
wh_header_is_sound(Page page)
{
	PageHeader	standard = (PageHeader) page;
	WhHeader	header = WhPageHeader(page);
	bool		rightmost = (header->flags & WH_RIGHTMOST) != 0;

	if (standard->pd_lower < WH_BOUNDS_OFF ||
		standard->pd_lower > standard->pd_upper ||
		standard->pd_upper > BLCKSZ || standard->pd_special != BLCKSZ ||
		(header->flags & ~WH_ALL_FLAGS))
		return false;
	if (header->flags & WH_META)
		return header->flags == WH_META;
	if (header->slots_off != wh_slots_place(page) ||
		header->slots_off + header->nslots * WhSlotSize(page) != standard->pd_lower ||
		(WhIsOneKey(page) && !WhIsDense(page)) ||
		(WhIsDense(page) && !records_are_sound(page)))
		return false;
	if (header->flags & WH_DELETED)
		return true;
	if (header->level > WH_MAX_LEVEL ||
		(header->level > 0 && header->nslots == 0) ||
		rightmost != (header->next == InvalidBlockNumber) ||
		(header->prev == header->next && header->prev != InvalidBlockNumber))
		return false;
	if (header->low_head != wh_head(low_rest(page), header->low_len) ||
		header->high_head != wh_head(high_rest(page), header->high_len))
		return false;
	if (rightmost)
		return header->prefix_len == 0 && header->high_len == 0 &&
			!(header->flags & (WH_HIGH_TID | WH_INCOMPLETE_SPLIT));

	/* The low bound is below the high one, and their first bytes differ. */
	if (header->low_len == 0)
		return header->high_len > 0 || (header->flags & WH_HIGH_TID);
	return header->high_len > 0 && *low_rest(page) < *high_rest(page);
}

/*
 * Where is a position, seen from this page: to the left (negative), here (0)
 * or to the right?
 */
int
wh_page_side(Page page, const WhKey *key, WhSide side)
{
	WhHeader	header = WhPageHeader(page);
	WhRest		rest;
	int			cmp;

	if (key->data == NULL)
		return (header->flags & WH_RIGHTMOST) ? 0 : 1;
	cmp = memcmp(key->data, (char *) page + WH_BOUNDS_OFF,
				 Min(key->len, header->prefix_len));
	if (cmp != 0)
		return cmp;
	if (key->len < header->prefix_len)
		return -1;
	take_rest(page, key, &rest);
	cmp = compare_bound(header->low_head, low_rest(page), header->low_len,
						low_tid(page), &rest);
	if (cmp > 0 || (cmp == 0 && side == WH_BEFORE))
		return -1;
	if (header->flags & WH_RIGHTMOST)
		return 0;
	cmp = compare_bound(header->high_head, high_rest(page), header->high_len,
						high_tid(page), &rest);
	return cmp > 0 || (cmp == 0 && side == WH_BEFORE) ? 0 : 1;
}

/*
 * Raises the error for an entry that is not within its page.
 */
static pg_noinline void
report_entry(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("page of a wormhole index has a damaged entry"),
			 errhint("wormhole_check() tells whether it is this index.  Please REINDEX it.")));
}

/*
 * The part of an entry behind the tail of its key, which has at least "least" bytes.
 * Raises an error if they are not within the page.
 */
static inline const uint8 *
slot_body(Page page, const WhSlot *slot, int least)
{
	int			at = slot->off + WhTailLen(slot);

	if (unlikely(slot->off < ((PageHeader) page)->pd_upper ||
				 at + least > BLCKSZ))
		report_entry();
	return (const uint8 *) page + at;
}

/*
 * The TIDs of an ordinary leaf's entry, not aligned.  Raises an error if there are none,
 * or they are not within the page.
 */
int
wh_slot_tids(Page page, const WhSlot *slot, const ItemPointerData **tids)
{
	const uint8 *body = slot_body(page, slot, sizeof(ItemPointerData));
	uint16		n = 1;

	if (slot->info & WH_POSTING)
	{
		memcpy(&n, body, sizeof(n));
		body += sizeof(n);
		if (unlikely(n == 0 || body + n * sizeof(ItemPointerData) >
					 (const uint8 *) page + BLCKSZ))
			report_entry();
	}
	*tids = (const ItemPointerData *) body;
	return n;
}

/*
 * The same for any leaf.  The TID of a dense leaf's entry is in *entry.
 */
int
wh_entry_tids(Page page, const WhEntry *entry, const ItemPointerData **tids)
{
	if (!WhIsDense(page))
		return wh_slot_tids(page, &entry->slot, tids);
	*tids = &entry->tid;
	return 1;
}

/*
 * The TID of a directory's entry, not aligned; NULL if it has none.
 */
const ItemPointerData *
wh_slot_anchor_tid(Page page, const WhSlot *slot)
{
	if (!(slot->info & WH_ANCHOR_TID))
		return NULL;
	return (const ItemPointerData *)
		slot_body(page, slot, sizeof(ItemPointerData) + sizeof(BlockNumber));
}

/*
 * Compares the key of an entry with a rest, without TIDs.
 */
static inline int
compare_slot_key(Page page, const WhSlot *slot, const WhRest *rest)
{
	int			cmp;

	if (slot->head != rest->head)
		return slot->head < rest->head ? -1 : 1;
	if (WhRestLen(slot) > WH_HEAD && rest->len > WH_HEAD)
	{
		(void) slot_body(page, slot, 0);
		cmp = memcmp(WhTail(page, slot), rest->data + WH_HEAD,
					 Min(WhTailLen(slot), rest->len - WH_HEAD));
		if (cmp != 0)
			return cmp;
	}
	return WhRestLen(slot) - rest->len;
}

/*
 * Compares an entry with a position.  Of a list of TIDs the first counts.
 */
static inline int
compare_entry(Page page, int at, const WhRest *rest)
{
	const ItemPointerData *tids;
	WhEntry		entry;
	int			cmp;

	wh_entry(page, at, &entry);
	cmp = compare_slot_key(page, &entry.slot, rest);
	if (cmp != 0)
		return cmp;
	if (WhPageHeader(page)->level > 0)
		tids = wh_slot_anchor_tid(page, &entry.slot);
	else if (rest->tid == NULL)
		return 1;
	else
		(void) wh_entry_tids(page, &entry, &tids);
	return compare_optional_tids(tids, rest->tid);
}

/*
 * Does the entry have this key, whatever its TIDs?  The key need not be within
 * the page's bounds.
 */
bool
wh_slot_has_key(Page page, const WhSlot *slot, const WhKey *key)
{
	int			prefix = WhPageHeader(page)->prefix_len;
	WhRest		rest;

	if (key->len < prefix ||
		memcmp(key->data, (char *) page + WH_BOUNDS_OFF, prefix) != 0)
		return false;
	take_rest(page, key, &rest);
	return compare_slot_key(page, slot, &rest) == 0;
}

/*
 * The slot where a key with this head would be if keys were spread evenly.
 */
static inline int
interpolate(WhHeader header, uint32 head)
{
	uint64		span = (uint64) header->high_head - header->low_head;
	uint64		guess;

	if ((header->flags & WH_RIGHTMOST) || header->high_head <= header->low_head)
		return header->nslots / 2;
	guess = ((uint64) (head - header->low_head) * header->nslots) / (span + 1);
	return (int) Min(guess, header->nslots - 1);
}

/*
 * The first slot in [first, last) whose head is not smaller, by heads alone.
 * Narrows the range in steps that grow with the distance from guess, then in
 * halves.  The distance between two heads is "apart" numbers.
 */
static inline int
search_heads(const uint32 *heads, const int apart, int guess, uint32 head,
			 int first, int last)
{
	int			step = 8;

	if (heads[guess * apart] < head)
	{
		first = guess + 1;
		while (first < last)
		{
			int			probe = guess + step;

			if (probe >= last)
				break;
			if (heads[probe * apart] >= head)
			{
				last = probe;
				break;
			}
			first = probe + 1;
			step *= 2;
		}
	}
	else
	{
		last = guess;
		while (first < last)
		{
			int			probe = guess - step;

			if (probe < first)
				break;
			if (heads[probe * apart] < head)
			{
				first = probe + 1;
				break;
			}
			last = probe;
			step *= 2;
		}
	}
	while (first < last)
	{
		int			middle = (first + last) / 2;

		if (heads[middle * apart] < head)
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

/*
 * The first slot, from the given one on, whose entry is not before the key.
 */
static int
search_from(Page page, const WhRest *rest, int first)
{
	WhHeader	header = WhPageHeader(page);
	int			last = header->nslots;
	int			guess;

	if (first >= last)
		return first;

	/* First search by the heads alone. */
	guess = Max(first, interpolate(header, rest->head));
	if (WhIsOneKey(page))
	{
		/* Rows mostly arrive in the order of their TIDs. */
		if (compare_entry(page, last - 1, rest) < 0)
			return last;
	}
	else if (WhIsDense(page))
		first = search_heads(WhHeads(page), 1, guess, rest->head, first, last);
	else
		first = search_heads(WhHeads(page), sizeof(WhSlot) / sizeof(uint32),
							 guess, rest->head, first, last);

	/* Among equal heads the rest of the key decides. */
	last = first;
	for (int step = 1; last < header->nslots; step *= 2)
	{
		if (compare_entry(page, last, rest) >= 0)
			break;
		first = last + 1;
		last = Min(last + step, header->nslots);
	}
	while (first < last)
	{
		int			middle = (first + last) / 2;

		if (compare_entry(page, middle, rest) < 0)
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

/*
 * The slot where an entry with this position is to be inserted: the first that is not before
 * it.  In a leaf that may be a gap.
 */
int
wh_page_place(Page page, const WhKey *key)
{
	WhRest		rest;

	if (key->data == NULL)
		return WhPageHeader(page)->nslots;
	take_rest(page, key, &rest);
	return search_from(page, &rest, 0);
}

/*
 * The first entry at or after a position of this page; the number of slots if there is none.
 */
int
wh_page_search(Page page, const WhKey *key)
{
	WhHeader	header = WhPageHeader(page);
	int			at = wh_page_place(page, key);

	while (header->level == 0 && at < header->nslots && wh_is_gap(page, at))
		at++;
	return at;
}

/*
 * The slot of the child to follow to a position on this directory page.  It is
 * the last slot whose anchor is at or before the position; under WH_BEFORE,
 * before it.  The first slot has no anchor: its child begins where the page
 * does.  So there always is one: wh_header_is_sound() wants a slot.
 */
int
wh_page_child_slot(Page page, const WhKey *key, WhSide side)
{
	WhHeader	header = WhPageHeader(page);
	WhRest		rest;
	int			slot;

	if (key->data == NULL)
		return header->nslots - 1;
	take_rest(page, key, &rest);
	slot = search_from(page, &rest, 1);
	if (side == WH_AT && slot < header->nslots &&
		compare_entry(page, slot, &rest) == 0)
		return slot;
	return slot - 1;
}

/*
 * The block a directory entry points to.
 */
BlockNumber
wh_slot_child(Page page, const WhSlot *slot)
{
	int			skip = (slot->info & WH_ANCHOR_TID) ? sizeof(ItemPointerData) : 0;
	const uint8 *body = slot_body(page, slot, skip + sizeof(BlockNumber)) + skip;
	BlockNumber child;

	memcpy(&child, body, sizeof(child));
	return child;
}

/*
 * The payload of an entry, and its length; NULL if it has none.
 */
const uint8 *
wh_slot_payload(Page page, const WhSlot *slot, int *len)
{
	const int	skip = sizeof(ItemPointerData) + sizeof(uint16);
	const uint8 *body;
	uint16		length;

	*len = 0;
	if (!(slot->info & WH_PAYLOAD))
		return NULL;
	body = slot_body(page, slot, skip) + skip;
	memcpy(&length, body - sizeof(length), sizeof(length));
	if (unlikely((slot->info & WH_POSTING) ||
				 body + length > (const uint8 *) page + BLCKSZ))
		report_entry();
	*len = length;
	return body;
}

/*
 * Copies the rest of an entry's key; returns its length.  There must be room
 * for WH_HEAD bytes more than the rest has.
 */
int
wh_slot_key(Page page, const WhSlot *slot, uint8 *key)
{
	uint32		head = pg_hton32(slot->head);
	int			tail = WhTailLen(slot);

	memcpy(key, &head, WH_HEAD);
	if (tail > 0)
		wh_copy_short(key + WH_HEAD, slot_body(page, slot, 0) - tail, tail);
	return WhRestLen(slot);
}

/*
 * Puts one bound together in space; returns the space behind it.
 */
static uint8 *
assemble_bound(Page page, const uint8 *rest, int len,
			   const ItemPointerData *tid, WhKey *key, uint8 *space)
{
	int			prefix = WhPageHeader(page)->prefix_len;

	memcpy(space, (char *) page + WH_BOUNDS_OFF, prefix);
	memcpy(space + prefix, rest, len);
	key->data = space;
	key->len = prefix + len;
	key->has_tid = tid != NULL;
	if (tid != NULL)
		memcpy(&key->tid, tid, sizeof(key->tid));
	return space + key->len;
}

/*
 * Sets *bounds to the page's bounds as keys, copied to space of
 * WH_BOUNDS_SPACE bytes.
 */
void
wh_page_bounds(Page page, WhBounds *bounds, uint8 *space)
{
	WhHeader	header = WhPageHeader(page);

	memset(bounds, 0, sizeof(*bounds));
	space = assemble_bound(page, low_rest(page), header->low_len,
						   low_tid(page), &bounds->low, space);
	bounds->rightmost = (header->flags & WH_RIGHTMOST) != 0;
	if (!bounds->rightmost)
		assemble_bound(page, high_rest(page), header->high_len,
					   high_tid(page), &bounds->high, space);
}

/*
 * Appends a bound's rest and TID.
 */
static uint8 *
put_bound(uint8 *to, const WhKey *key, int prefix)
{
	memcpy(to, key->data + prefix, key->len - prefix);
	to += key->len - prefix;
	if (key->has_tid)
	{
		memcpy(to, &key->tid, sizeof(key->tid));
		to += sizeof(key->tid);
	}
	return to;
}

/*
 * The length of the prefix of a page with these bounds.
 */
int
wh_bounds_prefix(const WhBounds *bounds)
{
	return bounds->rightmost ? 0 : wh_common_prefix(&bounds->low, &bounds->high);
}

/*
 * Initializes a page with these bounds, without entries and links.  Its only
 * flags are those of its bounds.  Its LSN stays: it tells whether the next
 * record needs a full image.
 */
void
wh_init_page(Page page, uint64 identity, int level, const WhBounds *bounds)
{
	WhHeader	header = WhPageHeader(page);
	uint8	   *at = (uint8 *) page + WH_BOUNDS_OFF;
	int			prefix = wh_bounds_prefix(bounds);
	XLogRecPtr	lsn = PageGetLSN(page);

	PageInit(page, BLCKSZ, 0);
	PageSetLSN(page, lsn);
	header->identity = identity;
	header->prev = InvalidBlockNumber;
	header->next = InvalidBlockNumber;
	header->level = level;
	header->version = WH_FORMAT_VERSION;
	header->page_id = WH_PAGE_ID;
	header->prefix_len = prefix;
	header->nslots = 0;
	header->flags = bounds->low.has_tid ? WH_LOW_TID : 0;
	memcpy(at, bounds->low.data, prefix);
	at = put_bound(at + prefix, &bounds->low, prefix);
	header->low_len = bounds->low.len - prefix;
	header->low_head = wh_head(bounds->low.data + prefix, header->low_len);
	if (bounds->rightmost)
	{
		header->flags |= WH_RIGHTMOST;
		header->high_len = 0;
		header->high_head = 0;
	}
	else
	{
		(void) put_bound(at, &bounds->high, prefix);
		header->flags |= bounds->high.has_tid ? WH_HIGH_TID : 0;
		header->high_len = bounds->high.len - prefix;
		header->high_head = wh_head(bounds->high.data + prefix,
									header->high_len);
	}
	header->slots_off = wh_slots_place(page);
	((PageHeader) header)->pd_lower = header->slots_off;
}
