/*-------------------------------------------------------------------------
 *
 * whdelete.c
 *	  Deleting pages that have become empty.
 *
 * A deleted page's range of keys goes to the page on its left, whose high
 * bound moves.  Its entry in the directory is removed.  So low bounds, and
 * with them anchors, never change, and the first page of a level is never
 * deleted.  A deletion is one WAL record of four pages: a crash leaves it done
 * or undone.
 *
 * A page that is the first of its directory page stays until it is the only
 * one there.  Then the directory page itself, with its only entry, is merged
 * into the one on its left in the same way.  After that the page is not the
 * first any more.
 *
 * Only VACUUM deletes pages, and only one VACUUM of an index runs at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/generic_xlog.h"
#include "miscadmin.h"
#include "storage/predicate.h"
#include "wormhole/tree/whtree.h"

/* A page to be merged into the one on its left.  All buffers are locked. */
typedef struct Merge
{
	Relation	index;
	BlockNumber block;
	int			level;
	Buffer		left;
	Buffer		page;
	Buffer		right;			/* InvalidBuffer: there is none */
	Buffer		parent;
	int			slot;			/* of the page in the parent */
	WhBounds	bounds;			/* the page's */
	WhBounds	merged;			/* the left one's from now on */
	WhItemSet	set;			/* the left one's entries */
	uint8	   *space;			/* for both pages' bounds */
} Merge;

/*
 * Unlocks and releases a page, if there is one.
 */
static void
release(Buffer *buffer)
{
	if (BufferIsValid(*buffer))
		UnlockReleaseBuffer(*buffer);
	*buffer = InvalidBuffer;
}

/*
 * Unlocks and releases all pages.
 */
static void
release_all(Merge *merge)
{
	release(&merge->parent);
	release(&merge->right);
	release(&merge->page);
	release(&merge->left);
}

/*
 * Can a page be merged into its left neighbour: is it a leaf without entries,
 * or a directory page with one entry?
 */
static bool
is_mergeable(const Merge *merge, Page page)
{
	WhHeader	header = WhPageHeader(page);

	return wh_is_on_level(page, merge->level) &&
		!(header->flags & WH_INCOMPLETE_SPLIT) &&
		header->nslots == (merge->level > 0 ? 1 : 0);
}

/*
 * Locks the page and its neighbours exclusively, from left to right.  False,
 * with nothing locked, if the page cannot be deleted now.  It has a left
 * neighbour: the first leaf stays, and with it the first page of each level.
 *
 * Pins of the page protect TIDs that scans have read there.  They would not
 * protect them after the block became another page.  So nobody else may have a
 * pin.
 */
static bool
lock_pages(Merge *merge)
{
	Relation	index = merge->index;
	Buffer		buffer = wh_read(index, merge->block, BUFFER_LOCK_SHARE);
	BlockNumber prev = WhPageHeader(BufferGetPage(buffer))->prev;
	WhHeader	left;
	BlockNumber next;

	UnlockReleaseBuffer(buffer);
	merge->left = wh_read(index, prev, BUFFER_LOCK_EXCLUSIVE);
	left = WhPageHeader(BufferGetPage(merge->left));
	if (!wh_is_on_level(BufferGetPage(merge->left), merge->level) ||
		(left->flags & WH_INCOMPLETE_SPLIT) || left->next != merge->block)
	{
		release_all(merge);
		return false;
	}
	buffer = ReadBuffer(index, merge->block);
	if (!ConditionalLockBufferForCleanup(buffer))
	{
		ReleaseBuffer(buffer);
		release_all(merge);
		return false;
	}
	merge->page = buffer;
	if (!is_mergeable(merge, wh_check_page(index, buffer)))
	{
		release_all(merge);
		return false;
	}
	next = WhPageHeader(BufferGetPage(buffer))->next;
	if (next != InvalidBlockNumber)
		merge->right = wh_read_right(index, merge->page, BUFFER_LOCK_EXCLUSIVE);
	return true;
}

/*
 * Fills in an item of the only entry of a directory page, without the prefix
 * of the merged page.
 */
static void
only_entry(const Merge *merge, int prefix, WhItem *item)
{
	Page		page = BufferGetPage(merge->page);

	wh_anchor_item(&merge->bounds.low, prefix, wh_slot_child(page, WhSlots(page)), item);
}

/*
 * Loads the entries of the left page.  False if they would not fit any more:
 * the prefix is shorter if the bounds are further apart.
 */
static bool
load_left(Merge *merge)
{
	Page		left = BufferGetPage(merge->left);
	int			size;

	wh_page_bounds(BufferGetPage(merge->page), &merge->bounds, merge->space);
	wh_page_bounds(left, &merge->merged, merge->space + WH_BOUNDS_SPACE);
	merge->merged.high = merge->bounds.high;
	merge->merged.rightmost = merge->bounds.rightmost;
	wh_items_load(&merge->set, left);
	size = wh_items_space(&merge->set, 0, merge->set.n, &merge->merged);
	if (merge->level > 0)
	{
		WhItem		item;

		only_entry(merge, 0, &item);
		size += wh_item_size(&item) + sizeof(WhSlot);
	}
	return size <= (int) WH_PAGE_CONTENT;
}

/*
 * Locks the directory page that has the page's entry exclusively.  Returns the
 * block of the directory page if it must be merged first, else
 * InvalidBlockNumber.
 */
static BlockNumber
lock_parent(Merge *merge)
{
	Page		parent;

	merge->parent = wh_descend(merge->index, &merge->bounds.low, WH_AT,
							   merge->level + 1, BUFFER_LOCK_EXCLUSIVE);
	parent = BufferGetPage(merge->parent);
	merge->slot = wh_page_child_slot(parent, &merge->bounds.low, WH_AT);
	if (wh_slot_child(parent, &WhSlots(parent)[merge->slot]) != merge->block)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("the directory of index \"%s\" does not lead to block %u",
						RelationGetRelationName(merge->index), merge->block),
				 errhint("Please REINDEX it.")));
	if (merge->slot == 0 && WhPageHeader(parent)->nslots == 1)
		return BufferGetBlockNumber(merge->parent);
	return InvalidBlockNumber;
}

/*
 * Writes the four pages, in one WAL record.
 */
static void
write_merge(Merge *merge)
{
	GenericXLogState *state = GenericXLogStart(merge->index);
	BlockNumber next = WhPageHeader(BufferGetPage(merge->page))->next;
	uint8	   *space = palloc(WH_BOUNDS_SPACE);
	WhHeader	header;
	WhBounds	bounds;
	WhItemSet	set;
	Page		page;

	page = wh_register(state, merge->left);
	wh_items_rewrite(&merge->set, page, &merge->merged);
	header = WhPageHeader(page);
	header->next = next;
	if (merge->level > 0)
	{
		WhItem		item;

		only_entry(merge, header->prefix_len, &item);
		wh_page_insert(page, header->nslots, &item);
	}

	page = wh_register(state, merge->page);
	header = WhPageHeader(page);
	header->flags |= WH_DELETED;
	header->prev = header->next = InvalidBlockNumber;
	header->nslots = 0;
	((PageHeader) page)->pd_lower = header->slots_off;
	((PageHeader) page)->pd_upper = BLCKSZ;

	if (BufferIsValid(merge->right))
		WhPageHeader(wh_register(state, merge->right))->prev =
			BufferGetBlockNumber(merge->left);

	page = BufferGetPage(merge->parent);
	wh_page_bounds(page, &bounds, space);
	wh_items_begin(&set);
	wh_items_load(&set, page);
	wh_items_remove(&set, merge->slot);
	wh_items_rewrite(&set, wh_register(state, merge->parent), &bounds);
	GenericXLogFinish(state);
	wh_items_end(&set);
	pfree(space);
}

/*
 * Deletes a leaf without entries, or merges a directory page with one entry,
 * if that is possible now.  Nothing is locked or pinned before and after.
 * Returns the number of pages deleted, directory pages included.
 */
int
wh_delete_page(Relation index, BlockNumber block, int level)
{
	Merge		merge = {.index = index,.block = block,.level = level};
	BlockNumber first = InvalidBlockNumber;
	bool		done = false;
	int			n = 0;

	CHECK_FOR_INTERRUPTS();
	merge.space = palloc(2 * WH_BOUNDS_SPACE);
	wh_items_begin(&merge.set);
	if (lock_pages(&merge) && load_left(&merge))
	{
		first = lock_parent(&merge);
		if (merge.slot > 0)
		{
			/*
			 * Serializable transactions that have read the leaf rely on its
			 * gap.
			 */
			if (level == 0)
				PredicateLockPageCombine(index, block,
										 BufferGetBlockNumber(merge.left));
			write_merge(&merge);
			done = true;
		}
	}
	release_all(&merge);
	wh_items_end(&merge.set);
	pfree(merge.space);
	if (done)
		return 1;
	if (first != InvalidBlockNumber && level < WH_MAX_LEVEL)
	{
		n = wh_delete_page(index, first, level + 1);
		if (n > 0)
			n += wh_delete_page(index, block, level);
	}
	return n;
}
