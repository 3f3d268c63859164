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
 * A gap is a copy of the slot before it, with the flag WH_GAP.  So slots stay
 * in order, and a search, which returns the first of equal slots, never
 * returns a gap.  Code that walks slots one by one must leave out gaps.  The
 * first slot of a page is never a gap.  Code that rewrites a page leaves no
 * gaps.  Directory pages never have any.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "wormhole/page/whpage.h"

/* Gaps are spread anew if an insert has moved more slots than this. */
#define MOST_MOVED		32

/* The least gaps that are spread: room for fewer entries gets none. */
#define LEAST_GAPS		8

/*
 * The nearest slot before a place that is not a gap; -1 if there is none.
 */
int
wh_entry_before(Page page, int at)
{
	const WhSlot *slots = WhSlots(page);

	do
		at--;
	while (at >= 0 && (slots[at].info & WH_GAP));
	return at;
}

/*
 * The number of entries before a place.
 */
int
wh_entries_before(Page page, int at)
{
	const WhSlot *slots = WhSlots(page);
	int			n = 0;

	for (int i = 0; i < at; i++)
		n += !(slots[i].info & WH_GAP);
	return n;
}

/*
 * Does a leaf have room for an entry of this size, without being rewritten?
 * Our own records do not have the slots, so their inserts neither make nor use
 * gaps.
 */
bool
wh_leaf_has_room(Page page, int size)
{
	WhHeader	header = WhPageHeader(page);
	int			space = wh_page_space(page) - size;

	if (space >= (int) sizeof(WhSlot))
		return true;
	return space >= 0 && !wh_has_manager() &&
		wh_entries_before(page, header->nslots) < header->nslots;
}

/*
 * The gap to use for an insert at a place: the nearest one or, if there is
 * none, the place behind the last slot.
 */
static int
nearest_gap(Page page, int at)
{
	WhHeader	header = WhPageHeader(page);
	const WhSlot *slots = WhSlots(page);

	for (int distance = 0;; distance++)
	{
		int			left = at - 1 - distance;
		int			right = at + distance;

		if (left < 0 && right >= header->nslots)
			return header->nslots;
		if (left >= 0 && (slots[left].info & WH_GAP))
			return left;
		if (right < header->nslots && (slots[right].info & WH_GAP))
			return right;
	}
}

/*
 * Replaces the gaps of a leaf by as many as there is room for entries of this
 * size, spread evenly.  Returns false and changes nothing if there is little
 * room, or no entry.
 */
bool
wh_leaf_spread(Page page, int size)
{
	WhHeader	header = WhPageHeader(page);
	WhSlot	   *slots = WhSlots(page);
	WhSlot		entries[WH_PAGE_CONTENT / sizeof(WhSlot)];
	int			n = wh_entries_before(page, header->nslots);
	int			room = wh_page_space(page) + (header->nslots - n) * sizeof(WhSlot);
	int			ngaps = room / (size + (int) sizeof(WhSlot));
	int			to = 0;
	int			end = ((PageHeader) page)->pd_lower;

	if (n == 0 || ngaps < LEAST_GAPS)
		return false;
	n = 0;
	for (int i = 0; i < header->nslots; i++)
	{
		if (!(slots[i].info & WH_GAP))
			entries[n++] = slots[i];
	}
	for (int i = 0; i < n; i++)
	{
		slots[to++] = entries[i];
		for (int gaps = i * ngaps / n; gaps < (i + 1) * ngaps / n; gaps++)
		{
			slots[to] = entries[i];
			slots[to].info &= ~WH_DEAD;
			slots[to++].info |= WH_GAP;
		}
	}
	header->nslots = to;
	((PageHeader) page)->pd_lower = header->slots_off + to * sizeof(WhSlot);

	/* Bytes that no slot uses any more are set to zero, as in replay. */
	if (((PageHeader) page)->pd_lower < end)
		memset((char *) page + ((PageHeader) page)->pd_lower, 0,
			   end - ((PageHeader) page)->pd_lower);
	return true;
}

/*
 * Inserts an item into a leaf that has room for it, at a slot that a search
 * returned.  Sets [*first, *last) to the slots that changed.  Allocates no
 * memory and raises no error.
 */
void
wh_leaf_insert(Page page, int at, const WhItem *item, int *first, int *last)
{
	WhHeader	header = WhPageHeader(page);
	WhSlot	   *slots = WhSlots(page);
	int			gap = nearest_gap(page, at);

	if (gap < at)
	{
		/* The slots between move to the left.  The entry is before slot at. */
		memmove(&slots[gap], &slots[gap + 1],
				(at - 1 - gap) * sizeof(WhSlot));
		*first = gap;
		*last = at;
		wh_page_put(page, at - 1, item);
	}
	else
	{
		if (gap == header->nslots)
		{
			header->nslots++;
			((PageHeader) page)->pd_lower += sizeof(WhSlot);
		}
		memmove(&slots[at + 1], &slots[at], (gap - at) * sizeof(WhSlot));
		*first = at;
		*last = gap + 1;
		wh_page_put(page, at, item);
	}
	if (*last - *first > MOST_MOVED &&
		wh_leaf_spread(page, wh_item_size(item)))
	{
		*first = 0;
		*last = header->nslots;
	}
}
