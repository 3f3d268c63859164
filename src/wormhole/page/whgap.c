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
 * The gap to use for an insert at a place: the nearest one, or the place behind the last
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
 * Does a leaf have room for an item at a slot that a search returned, without being
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
 * Replaces the gaps of a leaf by as many as there is room for entries of this
 * size, spread evenly.  Returns false and changes nothing if there is little
 * room, or no entry.
 */
bool
wh_leaf_spread(Page page, int size)
{
	PageHeader	standard = (PageHeader) page;
	WhHeader	header = WhPageHeader(page);
	int			n = wh_entries_before(page, header->nslots);
	int			ngaps = gaps_possible(page, n, size);
	int			lower = standard->pd_lower;
	int			upper = standard->pd_upper;
	int			at = 0;
	int			to = 0;
	PGAlignedBlock old;

	if (n == 0 || ngaps < least_gaps(page))
		return false;
	memcpy(old.data, page, BLCKSZ);
	header->nslots = n + ngaps;
	standard->pd_lower = header->slots_off + header->nslots * WhSlotSize(page);
	if (WhIsDense(page))
		standard->pd_upper = WhRecordsEnd(page) - header->nslots * WhRecordSize(page);
	for (int i = 0; i < n; i++, at++)
	{
		while (wh_is_gap(old.data, at))
			at++;
		wh_copy_slot(page, to++, old.data, at, false);
		for (int gaps = i * ngaps / n; gaps < (i + 1) * ngaps / n; gaps++)
			wh_copy_slot(page, to++, old.data, at, true);
	}

	/* Bytes that no slot uses any more are set to zero, as in replay. */
	if (standard->pd_lower < lower)
		memset((char *) page + standard->pd_lower, 0, lower - standard->pd_lower);
	if (standard->pd_upper > upper)
		memset((char *) page + upper, 0, standard->pd_upper - upper);
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
	int			gap = nearest_gap(page, at, wh_page_space(page) >=
								  wh_bytes_needed(page, item));

	if (gap < at)
	{
		/* The slots between move to the left.  The entry is before slot at. */
		wh_move_slots(page, gap, gap + 1, at - 1 - gap);
		*first = gap;
		*last = at;
		wh_page_put(page, at - 1, item);
	}
	else
	{
		if (gap == header->nslots)
			wh_add_slot(page);
		wh_move_slots(page, at + 1, at, gap - at);
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
