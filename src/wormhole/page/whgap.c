/*-------------------------------------------------------------------------
 *
 * whgap.c
 *	  Gaps between the slots of a leaf, so that inserts move few slots.
 *
 * An insert must log the slots that it moves.  From its place to the end of a
 * full leaf these are 1.6 kB on average.  So splits and inserts spread gaps
 * among the slots of a leaf, and an insert moves only the slots between its
 * place and the nearest gap.
 *
 * A gap is a copy of the slot behind it, with the flag WH_GAP.  So slots stay
 * in order, and the first slot that is not before a new entry is where the
 * entry goes: if that is a gap, nothing moves, however many entries arrive at
 * this place in ascending order.  wh_page_search() passes over gaps, and code
 * that walks slots one by one must leave them out.  The last slot of a page is
 * never a gap.  Directory pages have no gaps.
 *
 * Rows of a key mostly arrive in the order of their TIDs, that is, behind the
 * key's other rows.  So gaps are spread among keys rather than among entries,
 * and those of a key are behind its last entry.  Room for the last key's stays
 * free.
 *
 * In a dense leaf a gap is a record, too: it takes all that an entry needs, and
 * moving it costs more.  So a dense leaf counts as full, and is split, when
 * there is no gap near the place of a new entry and there are few elsewhere.
 * (Filled to the last gap, leaves of int8 cost a tenth more WAL than ordinary
 * ones; so they cost a fifth less, for one part in thirty of the room.)
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "wormhole/page/whpage.h"

/* Gaps are spread anew if an insert has moved more slots than this. */
#define MOST_MOVED		32

/*
 * The least gaps that are spread: room for fewer entries gets none.  In a
 * dense leaf it is DENSE_FACTOR times the bytes of an entry: the more bytes move,
 * the more room is left.
 */
#define LEAST_GAPS		8
#define DENSE_FACTOR	3

/*
 * The nearest slot before a place that is not a gap; -1 if there is none.
 */
int
wh_entry_before(Page page, int at)
{
	do
		at--;
	while (at >= 0 && wh_is_gap(page, at));
	return at;
}

/*
 * The number of entries before a place.
 */
int
wh_entries_before(Page page, int at)
{
	int			n = 0;

	for (int i = 0; i < at; i++)
		n += !wh_is_gap(page, i);
	return n;
}

/*
 * The gap to use for an insert at a place, the first slot not before the entry: the nearest
 * one, or the place behind the last
 * slot, if there is room for another slot and it is not further away.  If there is no gap and no
 * room, that place, too.
 */
static int
nearest_gap(Page page, int at, bool room)
{
	WhHeader	header = WhPageHeader(page);

	for (int distance = 0;; distance++)
	{
		int			left = at - 1 - distance;
		int			right = at + distance;

		if (right >= header->nslots && (room || left < 0))
			return header->nslots;
		if (left >= 0 && wh_is_gap(page, left))
			return left;
		if (right < header->nslots && wh_is_gap(page, right))
			return right;
	}
}

/*
 * The least gaps that are spread in a leaf.
 */
static int
least_gaps(Page page)
{
	return WhIsDense(page) ? DENSE_FACTOR * (WhSlotSize(page) + WhRecordSize(page)) :
		LEAST_GAPS;
}

/*
 * The gaps for which a leaf with n entries has room if each is for an entry of this
 * size, its slot not counted.
 */
static int
gaps_possible(Page page, int n, int size)
{
	int			ngaps = WhPageHeader(page)->nslots - n;
	int			record = WhIsDense(page) ? WhRecordSize(page) : 0;
	int			room = wh_page_space(page) + ngaps * (WhSlotSize(page) + record);

	return room / (WhSlotSize(page) + (WhIsDense(page) ? record : size));
}

/*
 * Does a leaf have room for an item at a slot that wh_page_place() returned, without being
 * rewritten?  Our own records do not have the slots, so their inserts neither make nor use
 * gaps.
 */
bool
wh_leaf_has_room(Page page, int at, const WhItem *item)
{
	int			n = WhPageHeader(page)->nslots;
	int			space;
	int			gap;

	if (WhIsDense(page) && !wh_suits_dense(page, item))
		return false;
	space = wh_page_space(page) - wh_bytes_needed(page, item);
	if (wh_has_manager())
		return space >= 0;
	if (!WhIsDense(page))
		return space >= 0 || (space + WhSlotSize(page) >= 0 &&
							  wh_entries_before(page, n) < n);
	gap = nearest_gap(page, at, space >= 0);
	if (Max(gap + 1 - at, at - gap) <= MOST_MOVED && (gap < n || space >= 0))
		return true;
	return gaps_possible(page, wh_entries_before(page, n), 0) >= least_gaps(page);
}

/*
 * The head of an entry of a leaf.
 */
static inline uint32
head_of(Page page, int at)
{
	return WhIsDense(page) ? wh_dense_head(page, at) : WhSlots(page)[at].head;
}

/*
 * Return true if two entries of a leaf, which have the same head, have the same key.  Raises no
 * error if they are damaged.
 */
static bool
same_tail(Page page, int a, int b)
{
	WhEntry		one;
	WhEntry		other;
	int			tail;

	wh_entry(page, a, &one);
	wh_entry(page, b, &other);
	tail = WhTailLen(&one.slot);
	return WhRestLen(&one.slot) == WhRestLen(&other.slot) &&
		one.slot.off + tail <= BLCKSZ && other.slot.off + tail <= BLCKSZ &&
		memcmp(WhTail(page, &one.slot), WhTail(page, &other.slot), tail) == 0;
}

/*
 * Return true if two entries of a leaf have the same key.
 */
static inline bool
same_key(Page page, int a, int b)
{
	return head_of(page, a) == head_of(page, b) && same_tail(page, a, b);
}

/*
 * Notes in starts, for each slot of a leaf, whether gaps may be in front of it: it is the
 * first entry of a key or, unless by_key, any entry but the first.  Returns their number,
 * and sets *n to the number of entries.
 */
static int
find_starts(Page page, bool by_key, bool *starts, int *n)
{
	int			nslots = WhPageHeader(page)->nslots;
	int			before = -1;
	int			nstarts = 0;

	*n = 0;
	for (int at = 0; at < nslots; at++)
	{
		starts[at] = false;
		if (wh_is_gap(page, at))
			continue;
		(*n)++;
		starts[at] = before >= 0 && !(by_key && same_key(page, before, at));
		nstarts += starts[at];
		before = at;
	}
	return nstarts;
}

/*
 * Replaces the gaps of a leaf by as many as there is room for entries of this
 * size, spread evenly among keys or, unless by_key, among entries.  Returns false and
 * changes nothing if there is little room, or only one key.
 */
bool
wh_leaf_spread(Page page, int size, bool by_key)
{
	PageHeader	standard = (PageHeader) page;
	WhHeader	header = WhPageHeader(page);
	int			lower = standard->pd_lower;
	int			upper = standard->pd_upper;
	bool		starts[WH_MAX_ENTRIES];
	int			nstarts;
	int			ngaps;
	int			n;
	int			done = 0;
	int			share = 0;
	int			to = 0;
	PGAlignedBlock old;

	if (header->nslots > (int) WH_MAX_ENTRIES)
		return false;
	nstarts = find_starts(page, by_key, starts, &n);
	ngaps = gaps_possible(page, n, size);
	if (nstarts == 0 || ngaps < least_gaps(page))
		return false;
	memcpy(old.data, page, BLCKSZ);

	/* The part of the entries behind the last start stays free. */
	header->nslots = n + ngaps * nstarts / (nstarts + 1);
	standard->pd_lower = header->slots_off + header->nslots * WhSlotSize(page);
	if (WhIsDense(page))
		standard->pd_upper = WhRecordsEnd(page) - header->nslots * WhRecordSize(page);
	for (int at = 0; to < header->nslots; at++)
	{
		if (wh_is_gap(old.data, at))
			continue;
		if (starts[at])
		{
			for (int gaps = share; gaps < (done + 1) * ngaps / (nstarts + 1); gaps++)
				wh_copy_slot(page, to++, old.data, at, true);
			share = ++done * ngaps / (nstarts + 1);
		}
		wh_copy_slot(page, to++, old.data, at, false);
	}

	/* Bytes that no slot uses any more are set to zero, as in replay. */
	if (standard->pd_lower < lower)
		memset((char *) page + standard->pd_lower, 0, lower - standard->pd_lower);
	if (standard->pd_upper > upper)
		memset((char *) page + upper, 0, standard->pd_upper - upper);
	return true;
}

/*
 * Return true if an entry is the last one of its key in a leaf.
 */
static bool
ends_key(Page page, int at)
{
	return at + 1 == WhPageHeader(page)->nslots || !same_key(page, at, at + 1);
}

/*
 * Inserts an item into a leaf that has room for it, at a slot that wh_page_place()
 * returned.  Sets [*first, *last) to the slots that changed.  Allocates no
 * memory and raises no error.
 */
void
wh_leaf_insert(Page page, int at, const WhItem *item, int *first, int *last)
{
	WhHeader	header = WhPageHeader(page);
	int			gap = nearest_gap(page, at, wh_page_space(page) >=
								  wh_bytes_needed(page, item));

	if (gap < at)
	{
		/* The slots between move to the left.  The entry is before slot at. */
		at--;
		wh_move_slots(page, gap, gap + 1, at - gap);
		*first = gap;
		*last = at + 1;
	}
	else
	{
		if (gap == header->nslots)
			wh_add_slot(page);
		wh_move_slots(page, at + 1, at, gap - at);
		*first = at;
		*last = gap + 1;
	}
	wh_page_put(page, at, item);
	if (*last - *first > MOST_MOVED &&
		wh_leaf_spread(page, wh_item_size(item),
					   !WhIsOneKey(page) && ends_key(page, at)))
	{
		*first = 0;
		*last = header->nslots;
	}
}
