/*-------------------------------------------------------------------------
 *
 * whitems.c
 *	  All entries of a page as a list, for code that rewrites pages.
 *
 * A list is loaded from a page and points into it, so the page must not change
 * until the list is stored elsewhere.  Its keys lack the prefix of the old
 * page.  Storing adapts them to the prefix of the new page.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "wormhole/page/whpage.h"

/* Bytes for keys put together, and for the TIDs of merged lists. */
#define ITEMS_SPACE		(4 * BLCKSZ)

/* The items that a list has room for at first: enough for most pages. */
#define FIRST_ITEMS		640

/* The items that may be added to those of a page. */
#define MORE_ITEMS		2

/*
 * Makes an empty list.
 */
void
wh_items_begin(WhItemSet *set)
{
	memset(set, 0, sizeof(*set));
	set->max = FIRST_ITEMS;
	set->items = palloc(set->max * sizeof(WhItem));
	set->space = palloc(ITEMS_SPACE);
}

void
wh_items_end(WhItemSet *set)
{
	pfree(set->items);
	pfree(set->space);
}

/*
 * Raises the error for entries that a page cannot have.
 */
static void
report_items(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("page of a wormhole index has damaged entries"),
			 errhint("wormhole_check() tells whether it is this index.  Please REINDEX it.")));
}

/*
 * Takes "size" bytes from the list's space.
 */
static void *
take_space(WhItemSet *set, int size)
{
	char	   *space = set->space + set->used;

	if (set->used + size > ITEMS_SPACE)
		report_items();
	set->used += size;
	return space;
}

/*
 * Fills in an item from a slot.
 */
static void
load_item(WhItemSet *set, Page page, int at, WhItem *item)
{
	WhEntry		entry;
	WhSlot	   *slot = &entry.slot;
	uint8	   *rest;
	int			len;

	wh_entry(page, at, &entry);
	memset(item, 0, sizeof(*item));
	if (WhIsOneKey(page) && item > set->items)
		rest = unconstify(uint8 *, set->items[0].rest);
	else
		rest = take_space(set, WH_HEAD + WhTailLen(slot));
	item->rest = rest;
	item->len = wh_slot_key(page, slot, rest);
	item->flags = slot->info & ~WH_LEN_MASK;
	item->child = InvalidBlockNumber;
	if (WhPageHeader(page)->level > 0)
	{
		item->child = wh_slot_child(page, slot);
		item->tids = wh_slot_anchor_tid(page, slot);
		item->ntids = item->tids != NULL ? 1 : 0;
		if (item->flags & (WH_POSTING | WH_PAYLOAD))
			report_items();
		return;
	}
	item->ntids = wh_entry_tids(page, &entry, &item->tids);
	if (WhIsDense(page))
		item->tids = memcpy(take_space(set, sizeof(entry.tid)), &entry.tid,
							sizeof(entry.tid));
	item->payload = wh_slot_payload(page, slot, &len);
	item->payload_len = len;
}

/*
 * Is an item before the next one, with all its TIDs?
 */
static bool
is_before(const WhItem *item, const WhItem *next)
{
	int			cmp = memcmp(item->rest, next->rest, Min(item->len, next->len));
	ItemPointerData last;
	ItemPointerData first;

	if (cmp == 0)
		cmp = item->len - next->len;
	if (cmp != 0)
		return cmp < 0;
	if (next->ntids == 0)
		return false;
	if (item->ntids == 0)
		return true;
	memcpy(&last, &item->tids[item->ntids - 1], sizeof(last));
	memcpy(&first, &next->tids[0], sizeof(first));
	return ItemPointerCompare(&last, &first) < 0;
}

/*
 * Are the TIDs of an item possible ones, and in order?
 */
static bool
has_sound_tids(const WhItem *item)
{
	uint64		before = 0;

	for (int i = 0; i < item->ntids; i++)
	{
		ItemPointerData tid;
		uint64		number;

		memcpy(&tid, &item->tids[i], sizeof(tid));
		number = (uint64) ItemPointerGetBlockNumberNoCheck(&tid) << 16 |
			ItemPointerGetOffsetNumberNoCheck(&tid);
		if (!wh_tid_is_possible(&tid) || number <= before)
			return false;
		before = number;
	}
	return true;
}

/*
 * Raises an error unless the items of a page are in order, within its bounds, and take
 * no more room than it has.  So what is damaged is not written anew, at another place.
 */
static void
check_items(const WhItemSet *set, Page page)
{
	int			first = WhPageHeader(page)->level > 0 ? 1 : 0;
	int			room = BLCKSZ - WhPageHeader(page)->slots_off;
	uint8		space[2 * BLCKSZ];
	WhKey		key;

	for (int i = 0; i < set->n; i++)
	{
		room -= WhIsDense(page) ? WhRecordSize(page) + WhSlotSize(page) :
			wh_item_size(&set->items[i]) + sizeof(WhSlot);
		if (room < 0 || set->items[i].len + set->prefix_len > WH_MAX_ENTRY ||
			!has_sound_tids(&set->items[i]) ||
			(i > first && !is_before(&set->items[i - 1], &set->items[i])))
			report_items();
	}
	if (set->n <= first)
		return;
	wh_items_key(set, first, &key, space);
	if (wh_page_side(page, &key, WH_AT) != 0)
		report_items();
	wh_items_key(set, set->n - 1, &key, space);
	if (wh_page_side(page, &key, WH_AT) != 0)
		report_items();
}

/*
 * Loads a page into an empty list.  Raises an error if its entries are damaged.
 */
void
wh_items_load(WhItemSet *set, Page page)
{
	WhHeader	header = WhPageHeader(page);

	set->prefix = (const uint8 *) page + WH_BOUNDS_OFF;
	set->prefix_len = header->prefix_len;
	set->n = 0;
	set->used = 0;
	set->added = WH_ITEMS_LOADED;
	if (header->nslots > (int) WH_MAX_ENTRIES)
		report_items();
	if (header->nslots + MORE_ITEMS > set->max)
	{
		set->max = WH_MAX_ENTRIES + MORE_ITEMS;
		set->items = repalloc(set->items, set->max * sizeof(WhItem));
	}
	for (int i = 0; i < header->nslots; i++)
	{
		if (header->level == 0 && wh_is_gap(page, i))
			continue;
		load_item(set, page, i, &set->items[set->n++]);
	}
	check_items(set, page);
}

void
wh_items_insert(WhItemSet *set, int at, const WhItem *item)
{
	Assert(set->n < set->max);
	memmove(&set->items[at + 1], &set->items[at],
			(set->n - at) * sizeof(WhItem));
	set->items[at] = *item;
	set->n++;
	set->added = set->added == WH_ITEMS_LOADED ? at : WH_ITEMS_CHANGED;
}

void
wh_items_remove(WhItemSet *set, int at)
{
	set->n--;
	set->added = WH_ITEMS_CHANGED;
	memmove(&set->items[at], &set->items[at + 1],
			(set->n - at) * sizeof(WhItem));
}

/*
 * Do two items have the same key?
 */
bool
wh_same_key(const WhItem *a, const WhItem *b)
{
	return a->len == b->len &&
		(a->rest == b->rest || memcmp(a->rest, b->rest, a->len) == 0);
}

/*
 * Can two neighbouring entries become one list of TIDs?  They must have the
 * same key and no payload, and both be marked dead or neither.
 */
static bool
can_merge(const WhItem *a, const WhItem *b)
{
	return !((a->flags | b->flags) & WH_PAYLOAD) &&
		(a->flags & WH_DEAD) == (b->flags & WH_DEAD) && wh_same_key(a, b);
}

/*
 * Merges the items [from, to), which have the same key, into one.
 */
static void
merge_items(WhItemSet *set, int from, int to, int ntids, WhItem *result)
{
	ItemPointerData *tids = take_space(set, ntids * sizeof(ItemPointerData));

	*result = set->items[from];
	result->tids = tids;
	result->ntids = ntids;
	result->flags |= WH_POSTING;
	for (int i = from; i < to; i++)
	{
		memcpy(tids, set->items[i].tids,
			   set->items[i].ntids * sizeof(ItemPointerData));
		tids += set->items[i].ntids;
	}
}

/*
 * Merges leaf entries of equal keys into lists of at most wh_most_tids() TIDs.
 * False if there were none to merge.
 */
bool
wh_items_merge(WhItemSet *set)
{
	int			n = 0;
	int			i = 0;

	while (i < set->n)
	{
		int			ntids = set->items[i].ntids;
		int			to = i + 1;
		WhItem		item = set->items[i];

		while (to < set->n && can_merge(&set->items[i], &set->items[to]) &&
			   ntids + set->items[to].ntids <= wh_most_tids(set->prefix_len + item.len))
			ntids += set->items[to++].ntids;
		if (to > i + 1)
			merge_items(set, i, to, ntids, &item);
		set->items[n++] = item;
		i = to;
	}
	if (n == set->n)
		return false;
	set->n = n;
	set->added = WH_ITEMS_CHANGED;
	return true;
}

/*
 * The bytes that items [from, to) take on a page with this prefix, slots included.  Sets
 * *dense to the lengths in a dense leaf, if they can be in one and take fewer bytes there;
 * else its tid_len is 0.
 */
static int
items_size(const WhItemSet *set, int from, int to, int prefix, WhDenseForm *dense)
{
	int			size = 0;

	wh_dense_begin(dense);
	for (int i = from; i < to; i++)
	{
		WhItem		item = set->items[i];

		item.len = Max(item.len + set->prefix_len - prefix, 0);
		if (item.child != InvalidBlockNumber && i == from)
			item.len = item.ntids = 0;
		size += wh_item_size(&item) + sizeof(WhSlot);
		if (item.child == InvalidBlockNumber && !(item.flags & WH_PAYLOAD))
			wh_dense_add(dense, item.len, i == from || !dense->one_key ||
						 wh_same_key(&set->items[i - 1], &set->items[i]),
						 item.ntids);
		else
			dense->tid_len = 0;
	}

	/* Most lists of TIDs need not be looked at, even if these are short. */
	(void) wh_dense_end(dense, 0, size);
	for (int i = from; i < to && dense->tid_len > 0; i++)
		wh_dense_add_tids(dense, set->items[i].tids, set->items[i].ntids);
	return wh_dense_end(dense, 0, size);
}

/*
 * The bytes that items [from, to) and these bounds take on a page.  If it is
 * more than WH_PAGE_CONTENT, they do not fit.
 */
int
wh_items_space(const WhItemSet *set, int from, int to, const WhBounds *bounds)
{
	int			prefix = wh_bounds_prefix(bounds);
	int			size = bounds->low.len + sizeof(ItemPointerData) + WH_DENSE_INFO;
	WhDenseForm dense;

	if (!bounds->rightmost)
		size += bounds->high.len - prefix + sizeof(ItemPointerData);
	return TYPEALIGN(sizeof(WhSlot), size) +
		items_size(set, from, to, prefix, &dense);
}

/*
 * Would a page with items [from, to) and these bounds be a dense leaf?
 */
bool
wh_items_are_dense(const WhItemSet *set, int from, int to, const WhBounds *bounds)
{
	WhDenseForm dense;

	(void) items_size(set, from, to, wh_bounds_prefix(bounds), &dense);
	return dense.tid_len > 0;
}

/*
 * Puts together the whole key of an item, with its first TID, in space.
 */
void
wh_items_key(const WhItemSet *set, int at, WhKey *key, uint8 *space)
{
	const WhItem *item = &set->items[at];

	memcpy(space, set->prefix, set->prefix_len);
	memcpy(space + set->prefix_len, item->rest, item->len);
	key->data = space;
	key->len = set->prefix_len + item->len;
	key->has_tid = item->ntids > 0;
	if (key->has_tid)
		memcpy(&key->tid, item->tids, sizeof(key->tid));
}

/*
 * Initializes a page with these bounds and puts items [from, to) on it.  Level
 * and identity of the page stay.  The caller sets prev, next and flags.
 */
void
wh_items_store(const WhItemSet *set, int from, int to, Page page,
			   const WhBounds *bounds)
{
	uint8		space[BLCKSZ];
	int			prefix;
	WhDenseForm dense;

	wh_init_page(page, WhPageHeader(page)->identity,
				 WhPageHeader(page)->level, bounds);
	prefix = WhPageHeader(page)->prefix_len;
	(void) items_size(set, from, to, prefix, &dense);
	if (dense.tid_len > 0)
		wh_make_dense(page, &dense);
	for (int i = from; i < to; i++)
	{
		WhItem		item = set->items[i];

		if (item.child != InvalidBlockNumber && i == from)
		{
			/* The first child has no anchor: it begins where the page does. */
			item.len = item.ntids = 0;
			item.flags = 0;
		}
		else if (prefix >= set->prefix_len)
		{
			item.rest += prefix - set->prefix_len;
			item.len -= prefix - set->prefix_len;
		}
		else
		{
			int			more = set->prefix_len - prefix;

			memcpy(space, set->prefix + prefix, more);
			memcpy(space + more, item.rest, item.len);
			item.rest = space;
			item.len += more;
		}
		wh_append_item(page, &item);
	}
}

/*
 * Rewrites a page with these bounds and all items.  Its links and
 * WH_INCOMPLETE_SPLIT stay.  The items must not point into the page.
 */
void
wh_items_rewrite(const WhItemSet *set, Page page, const WhBounds *bounds)
{
	WhHeader	header = WhPageHeader(page);
	BlockNumber prev = header->prev;
	BlockNumber next = header->next;
	uint16		flags = header->flags & WH_INCOMPLETE_SPLIT;

	wh_items_store(set, 0, set->n, page, bounds);
	header->prev = prev;
	header->next = next;
	header->flags |= flags;
}
