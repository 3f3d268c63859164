/*-------------------------------------------------------------------------
 *
 * whsplit.c
 *	  Splitting pages.
 *
 * A split is two WAL records.  The first writes both halves, links them, and
 * marks the left one as an incomplete split.  From then on all keys are found:
 * those of the right half through the left one's link.  The second puts the
 * right half's anchor into the directory and removes the mark.  A writer that
 * finds the mark (after a crash, or an error) does the second step.
 *
 * The anchor is the shortest string that separates the halves.  The cut is the
 * place near the middle with the shortest anchor (Wormhole paper, section 3.1:
 * short anchors make the directory and the hint small).
 *
 * The last leaf has no high bound and hence no prefix, so it stores whole
 * keys.  Keys that arrive in ascending order all go through this page.  If it
 * were split in the usual way, it would leave behind leaves with few entries.
 * So a full last leaf is split behind its entries, if that pays.  It gets a
 * high bound, and with that a prefix and room for more entries.  The right
 * half is empty and takes the keys beyond the bound.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/generic_xlog.h"
#include "storage/predicate.h"
#include "wormhole/tree/whtree.h"

/* The cut may be this part of the entries away from the middle. */
#define CUT_WINDOW	10

/*
 * The percentage of the entries that the left half of a leaf gets if all have the same key, and
 * the next leaf has none of it.  Rows mostly arrive in the order of their TIDs, so those behind
 * go to the right half.
 */
#define ONE_KEY_FILL	96

/*
 * The last leaf is split behind its entries only if PAYING_BOUND percent of it are
 * then free.
 */
#define PAYING_BOUND	20

/* A split being prepared. */
typedef struct Split
{
	const WhItemSet *set;
	bool		leaf;
	bool		ascending;		/* keys are likely to arrive in this order */
	WhBounds	whole;			/* of the page to be split */
	WhBounds	left;
	WhBounds	right;
	uint8	   *bounds_space;
	uint8	   *key_space;		/* room for two keys */
	int			cut;			/* first item of the right half */
} Split;

/* Room for a key: prefix and rest are each shorter than a page. */
#define KEY_SPACE	(2 * BLCKSZ)

/*
 * Finds the anchor of a right half that begins with item number cut.  Its
 * bytes are in the second half of key_space.
 */
static void
find_anchor(Split *split, int cut, WhKey *anchor)
{
	WhKey		before;

	wh_items_key(split->set, cut, anchor, split->key_space + KEY_SPACE);
	if (!split->leaf)
		return;
	wh_items_key(split->set, cut - 1, &before, split->key_space);
	wh_shorten_anchor(&before, anchor);
}

/*
 * Sets the halves' bounds for a cut.  False if one half would not fit on a
 * page.
 */
static bool
try_cut(Split *split, int cut)
{
	WhKey		anchor;

	find_anchor(split, cut, &anchor);
	split->left = split->right = split->whole;
	split->left.high = anchor;
	split->left.rightmost = false;
	split->right.low = anchor;
	split->cut = cut;
	return wh_items_space(split->set, 0, cut, &split->left) <=
		(int) WH_PAGE_CONTENT &&
		wh_items_space(split->set, cut, split->set->n, &split->right) <=
		(int) WH_PAGE_CONTENT;
}

/*
 * The cut by which the left half gets the given percentage of the entries'
 * bytes.
 */
static int
cut_at_percentage(const WhItemSet *set, int percentage)
{
	int64		total = 0;
	int64		sum = 0;
	int			cut;

	for (int i = 0; i < set->n; i++)
		total += wh_item_size(wh_item(set, i)) + sizeof(WhSlot);
	for (cut = 0; cut < set->n - 1; cut++)
	{
		sum += wh_item_size(wh_item(set, cut)) + sizeof(WhSlot);
		if (sum * 100 >= total * percentage)
			break;
	}
	return Max(1, cut);
}

/*
 * Cuts behind all entries of the last leaf.  False if that does not pay.  Take
 * the bytes that the low bound and the last entry share, without the last of
 * these bytes: the new bound is behind all keys that begin with them.  With
 * that byte, keys that end in digits would soon pass the bound.  Leaving it
 * out mostly costs nothing, since heads have four bytes behind the prefix.
 * After keys have passed a bound, the next leaf's prefix is one byte shorter,
 * so this happens less and less often.
 */
static bool
cut_behind_all(Split *split)
{
	const WhKey *low = &split->whole.low;
	WhKey		bound;
	uint8	   *bytes = split->key_space;

	wh_items_key(split->set, split->set->n - 1, &bound, bytes);
	bound.len = wh_common_prefix(low, &bound) - 1;
	while (bound.len > 0 && bytes[bound.len - 1] == 0xFF)
		bound.len--;
	if (bound.len <= 0)
		return false;
	bytes[bound.len - 1]++;
	bound.has_tid = false;

	split->left = split->right = split->whole;
	split->left.high = bound;
	split->left.rightmost = false;
	split->right.low = bound;
	split->cut = split->set->n;
	return wh_items_space(split->set, 0, split->cut, &split->left) <=
		(int) WH_PAGE_CONTENT * (100 - PAYING_BOUND) / 100;
}

/*
 * The cut nearest to a given one that has different keys on its sides, or the cut itself if there is
 * none.
 */
static int
cut_between_keys(const WhItemSet *set, int cut)
{
	int			before = cut;
	int			after = cut;

	while (before > 0 &&
		   wh_same_key(wh_item(set, before - 1), wh_item(set, before)))
		before--;
	while (after < set->n &&
		   wh_same_key(wh_item(set, after - 1), wh_item(set, after)))
		after++;
	if (before > 0 && (after == set->n || cut - before <= after - cut))
		return before;
	return after < set->n ? after : cut;
}

/*
 * Have all entries of a leaf the same key, and the next leaf has none of it?
 */
static bool
ends_one_key(const Split *split)
{
	const WhItem *last = wh_item(split->set, split->set->n - 1);
	const WhKey *high = &split->whole.high;
	int			prefix_len = split->set->prefix_len;

	if (!wh_same_key(wh_item(split->set, 0), last))
		return false;
	return split->whole.rightmost || !high->has_tid ||
		high->len != prefix_len + last->len ||
		memcmp(high->data + prefix_len, last->rest, last->len) != 0;
}

/*
 * The place near which the cut is to be.  A leaf is cut between keys rather than between rows of
 * a key, so that a key of many rows gets leaves of its own, which have room for more of them.
 */
static int
wanted_cut(Split *split, int fillfactor)
{
	int			cut;

	if (split->leaf && ends_one_key(split))
	{
		split->ascending = true;
		return cut_at_percentage(split->set, ONE_KEY_FILL);
	}
	cut = cut_at_percentage(split->set, split->ascending ? fillfactor : 50);
	return split->leaf && !split->ascending ? cut_between_keys(split->set, cut) : cut;
}

/*
 * Chooses the cut.  If keys are likely to arrive in ascending order, the left
 * half is filled to the fillfactor, and the cut stays near that place.  False if
 * there is no cut by which both halves fit.
 */
static bool
choose_cut(Split *split, int fillfactor)
{
	int			n = split->set->n;
	int			wanted = wanted_cut(split, fillfactor);
	int			window = split->ascending ? n / 50 : n / CUT_WINDOW;
	int			best = -1;
	int			best_len = 0;

	for (int distance = 0; distance < n; distance++)
	{
		if (distance > window && best >= 0)
			break;
		for (int sign = -1; sign <= 1; sign += 2)
		{
			int			cut = wanted + sign * distance;
			WhKey		anchor;
			int			len;

			if (cut < 1 || cut >= n)
				continue;
			find_anchor(split, cut, &anchor);
			len = anchor.len + (anchor.has_tid ? sizeof(ItemPointerData) : 0);
			if ((best < 0 || len < best_len) && try_cut(split, cut))
			{
				best = cut;
				best_len = len;
			}
		}
	}
	return best >= 0 && try_cut(split, best);
}

/*
 * Puts gaps into a half of a leaf that is likely to get keys in any order, so
 * that the first insert need not.
 */
static void
spread_half(const Split *split, Page page)
{
	int			n = WhPageHeader(page)->nslots;
	int			used = BLCKSZ - ((PageHeader) page)->pd_upper;

	/*
	 * Of keys in ascending order the right half may have no entry:
	 * cut_behind_all().
	 */
	if (split->leaf && !split->ascending && n > 0 && !WhIsOneKey(page) &&
		!wh_has_manager())
		(void) wh_leaf_spread(page, used / n, true);
}

/*
 * Fills in the left half.  old is the page as it was, right the block of the
 * right half.
 */
static void
fill_left(const Split *split, Page page, WhHeader old, BlockNumber right)
{
	wh_items_store(split->set, 0, split->cut, page, &split->left);
	WhPageHeader(page)->prev = old->prev;
	WhPageHeader(page)->next = right;
	WhPageHeader(page)->flags |= WH_INCOMPLETE_SPLIT;
	spread_half(split, page);
}

/*
 * Fills in the right half.  left is the block of the left half.
 */
static void
fill_right(const Split *split, Page page, WhHeader old, BlockNumber left)
{
	WhPageHeader(page)->identity = old->identity;
	WhPageHeader(page)->level = old->level;
	wh_items_store(split->set, split->cut, split->set->n, page, &split->right);
	WhPageHeader(page)->prev = left;
	WhPageHeader(page)->next = old->next;
	spread_half(split, page);
}

/*
 * Writes the halves by a record of our own resource manager.
 */
static void
write_record(Relation index, const Split *split, const WhSplitBuffers *pages)
{
	WhHeader	old = WhPageHeader(BufferGetPage(pages->left));
	PGAlignedBlock left;
	PGAlignedBlock right;

	memcpy(left.data, old, BLCKSZ);
	memset(right.data, 0, BLCKSZ);
	fill_left(split, left.data, old, BufferGetBlockNumber(pages->right));
	fill_right(split, right.data, old, BufferGetBlockNumber(pages->left));
	wh_log_split(index, split->set, split->cut, &split->left.high, pages,
				 left.data, right.data);
}

/*
 * Writes the halves.  All pages are locked exclusively, and stay locked.
 */
static void
write_split(Relation index, const Split *split, const WhSplitBuffers *pages)
{
	WhHeader	old = WhPageHeader(BufferGetPage(pages->left));
	GenericXLogState *state;

	if (wh_has_manager())
	{
		write_record(index, split, pages);
		return;
	}

	/* Redo locks the pages in the order of the record: from the leaves up. */
	state = GenericXLogStart(index);
	if (BufferIsValid(pages->child))
		WhPageHeader(wh_register(state, pages->child))->flags &=
			~WH_INCOMPLETE_SPLIT;
	fill_left(split, wh_register(state, pages->left), old,
			  BufferGetBlockNumber(pages->right));
	fill_right(split, GenericXLogRegisterBuffer(state, pages->right,
												GENERIC_XLOG_FULL_IMAGE),
			   old, BufferGetBlockNumber(pages->left));
	if (BufferIsValid(pages->other))
		WhPageHeader(wh_register(state, pages->other))->prev =
			BufferGetBlockNumber(pages->right);
	GenericXLogFinish(state);
}

/*
 * Is this an empty last leaf?
 */
static bool
is_waiting(Buffer buffer)
{
	WhHeader	header = WhPageHeader(BufferGetPage(buffer));

	return header->level == 0 && (header->flags & WH_RIGHTMOST) != 0 &&
		header->nslots == 0;
}

/*
 * Chooses the halves.  The set was loaded from the page.  False if the page is a leaf
 * that cannot be split with the item that the set has besides: then the set is
 * loaded anew, without the item.  (In the directory there always is a cut, since the
 * right half leaves out its first anchor.)
 */
static bool
choose_halves(Relation index, Split *split, WhItemSet *set, Page page)
{
	int			fillfactor = split->leaf ? wh_index_options(index)->fillfactor :
	WH_DIRECTORY_FILLFACTOR;

	if (split->leaf && split->whole.rightmost && cut_behind_all(split))
		return true;
	if (choose_cut(split, fillfactor))
		return true;
	if (split->leaf)
		wh_items_load(set, page);
	if (!split->leaf || !choose_cut(split, fillfactor))
		elog(ERROR, "could not split a wormhole page of %d entries", set->n);
	return false;
}

/*
 * Splits a page into two.  The set was loaded from it, and may have one item
 * more.  False if that is on neither half: the insert must begin anew.  The page is
 * locked exclusively, and is released.  child (see WhSplitBuffers) stays locked.
 */
bool
wh_split(Relation index, Buffer buffer, WhItemSet *set, Buffer child)
{
	WhHeader	header = WhPageHeader(BufferGetPage(buffer));
	Split		split = {.set = set};
	WhSplitBuffers pages = {.child = child,.left = buffer,.other = InvalidBuffer};
	bool		complete;

	split.leaf = header->level == 0;
	split.bounds_space = palloc(WH_BOUNDS_SPACE);
	split.key_space = palloc(2 * KEY_SPACE);
	wh_page_bounds(BufferGetPage(buffer), &split.whole, split.bounds_space);

	pages.right = wh_new_buffer(index);
	if (header->next != InvalidBlockNumber)
		pages.other = wh_read_right(index, buffer, BUFFER_LOCK_EXCLUSIVE);
	split.ascending = split.whole.rightmost ||
		(BufferIsValid(pages.other) && is_waiting(pages.other));
	complete = choose_halves(index, &split, set, BufferGetPage(buffer));

	/*
	 * Serializable transactions that have read the leaf have read both
	 * halves.
	 */
	if (split.leaf)
		PredicateLockPageSplit(index, BufferGetBlockNumber(buffer),
							   BufferGetBlockNumber(pages.right));
	write_split(index, &split, &pages);
	if (BufferIsValid(pages.other))
		UnlockReleaseBuffer(pages.other);
	pfree(split.bounds_space);
	pfree(split.key_space);
	wh_add_anchor(index, buffer, pages.right);
	return complete;
}
