/*-------------------------------------------------------------------------
 *
 * whtree.c
 *	  Descents, and anchors of new pages in the directory.
 *
 * A descent releases a page before it locks the child.  So when a block is
 * locked it may have been split, deleted, or even reused.  The page's header
 * and bounds tell.  If the position is further right, it is reached through
 * the right links.  In any other case the descent begins anew.
 *
 * Locks are taken from left to right and from the leaves up, the metapage
 * last.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/generic_xlog.h"
#include "miscadmin.h"
#include "wormhole/tree/whtree.h"

/* The restarts of a descent after which the index is reported as damaged. */
#define MAX_RESTARTS	1000

/*
 * Completes an incomplete split, if this page is its left half.  The buffer is
 * locked exclusively.  If there was a split to complete, the buffer is
 * released and true returned.
 */
bool
wh_finish_split(Relation index, Buffer buffer)
{
	WhHeader	header = WhPageHeader(BufferGetPage(buffer));

	if (!(header->flags & WH_INCOMPLETE_SPLIT))
		return false;
	wh_add_anchor(index, buffer,
				  wh_read_right(index, buffer, BUFFER_LOCK_EXCLUSIVE));
	return true;
}

/*
 * Goes right from a locked page of the level to the page of a position.
 * Returns it with the same lock.  InvalidBuffer, with nothing locked, if the
 * position cannot be reached from here.  If lockmode is exclusive, it
 * completes the first incomplete split that it meets, and returns
 * InvalidBuffer.
 */
Buffer
wh_move_right(Relation index, Buffer buffer, const WhKey *key, WhSide side,
			  int level, int lockmode)
{
	for (uint32 steps = 0;; steps++)
	{
		Page		page = BufferGetPage(buffer);
		WhHeader	header = WhPageHeader(page);
		BlockNumber next = header->next;
		int			where;

		if (!wh_is_on_level(page, level) ||
			header->identity != wh_cache(index)->identity)
			break;
		where = wh_page_side(page, key, side);
		if (where < 0 || (where > 0 && next == InvalidBlockNumber))
			break;
		if (lockmode == BUFFER_LOCK_EXCLUSIVE && wh_finish_split(index, buffer))
			return InvalidBuffer;
		if (where == 0)
			return buffer;

		/* Damaged links may lead in a circle. */
		if (steps > wh_cache(index)->nblocks &&
			steps > RelationGetNumberOfBlocks(index))
			wh_report_damage(index, BufferGetBlockNumber(buffer));
		UnlockReleaseBuffer(buffer);
		CHECK_FOR_INTERRUPTS();
		buffer = wh_read_level(index, next, level, lockmode);
		if (!BufferIsValid(buffer))
			return InvalidBuffer;
	}
	UnlockReleaseBuffer(buffer);
	return InvalidBuffer;
}

/*
 * One attempt at a descent; InvalidBuffer, with nothing locked, if it must
 * begin anew.
 */
static Buffer
try_descend(Relation index, const WhKey *key, WhSide side, int level,
			int lockmode)
{
	WhCache    *cache = wh_cache(index);
	BlockNumber block = cache->root;
	int			at = cache->level;
	bool		is_root = true;

	if (at > WH_MAX_LEVEL)
		wh_report_damage(index, WH_META_BLKNO);
	for (;;)
	{
		int			mode = at == level ? lockmode : BUFFER_LOCK_SHARE;
		Buffer		buffer = wh_read_level(index, block, at, mode);
		Page		page;

		if (!BufferIsValid(buffer))
			return InvalidBuffer;
		page = BufferGetPage(buffer);

		/*
		 * A root that has been split is not the last page of its level.  This
		 * descent still works.  The next one reads the metapage, since
		 * otherwise the walk to the right would become longer and longer.
		 */
		if (is_root && !(WhPageHeader(page)->flags & WH_RIGHTMOST))
			cache->have_meta = false;
		is_root = false;
		buffer = wh_move_right(index, buffer, key, side, at, mode);
		if (buffer == InvalidBuffer || at == level)
			return buffer;
		page = BufferGetPage(buffer);
		block = wh_slot_child(page, &WhSlots(page)[wh_page_child_slot(page, key, side)]);
		UnlockReleaseBuffer(buffer);
		at--;
	}
}

/*
 * Finds the page of a level to which a position belongs.  Returns it pinned
 * and locked.  Raises an error if the index has no such level, or the page
 * cannot be found.  In a page locked exclusively no split is incomplete.
 * Nothing on this level or above is locked when it is called.
 *
 * A descent can begin with the cached metapage: a page that was the root stays
 * the first of its level for ever.
 */
Buffer
wh_descend(Relation index, const WhKey *key, WhSide side, int level,
		   int lockmode)
{
	WhCache    *cache = wh_cache(index);
	Buffer		buffer;

	for (int restarts = 0; restarts < MAX_RESTARTS; restarts++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!cache->have_meta || restarts > 0 || cache->level < level)
			wh_read_meta(index);
		if (cache->level < level)
			break;
		buffer = try_descend(index, key, side, level, lockmode);
		if (BufferIsValid(buffer))
			return buffer;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("could not find a key's page in index \"%s\"",
					RelationGetRelationName(index)),
			 errhint("Please REINDEX it.")));
	return InvalidBuffer;
}

/*
 * Fills in a directory's item: an anchor, without the prefix of its page, and the block that
 * it leads to.  The item refers to the anchor.
 */
void
wh_anchor_item(const WhKey *anchor, int prefix, BlockNumber child, WhItem *item)
{
	memset(item, 0, sizeof(*item));
	item->rest = anchor->data + prefix;
	item->len = anchor->len - prefix;
	item->child = child;
	if (anchor->has_tid)
	{
		item->flags = WH_ANCHOR_TID;
		item->ntids = 1;
		item->tids = &anchor->tid;
	}
}

/*
 * Puts a new root above the old one, which has been split into left and right,
 * in one WAL record.  left, right and meta are locked exclusively, and stay
 * locked.
 */
static void
make_root(Relation index, Buffer meta, Buffer left, Buffer right,
		  const WhItem *anchor)
{
	WhBounds	all = {.low.data = (const uint8 *) "",.rightmost = true};
	Buffer		buffer = wh_new_buffer(index);
	GenericXLogState *state = GenericXLogStart(index);
	WhItem		first = {.rest = (const uint8 *) ""};
	WhHeader	header = WhPageHeader(BufferGetPage(left));
	WhMetaData *content;
	Page		page;

	page = wh_register(state, left);
	WhPageHeader(page)->flags &= ~WH_INCOMPLETE_SPLIT;

	page = GenericXLogRegisterBuffer(state, buffer, GENERIC_XLOG_FULL_IMAGE);
	wh_init_page(page, header->identity, header->level + 1, &all);
	first.child = BufferGetBlockNumber(left);
	wh_page_insert(page, 0, &first);
	wh_page_insert(page, 1, anchor);

	content = WhPageMeta(GenericXLogRegisterBuffer(state, meta, 0));
	content->root = BufferGetBlockNumber(buffer);
	content->level = header->level + 1;
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}

/*
 * Inserts an anchor, which leads to the block right, into its directory page, which is
 * locked exclusively and is released.  The same WAL record marks the split below, whose
 * left half is child, as complete.
 */
static void
insert_anchor(Relation index, Buffer buffer, Buffer child, const WhKey *key,
			  BlockNumber right)
{
	Page		page = BufferGetPage(buffer);
	int			at = wh_page_search(page, key);
	WhItem		anchor;
	WhItemSet	set;

	/* The first entry has no anchor, so the search may return 0. */
	at = Max(at, 1);
	wh_anchor_item(key, WhPageHeader(page)->prefix_len, right, &anchor);
	if (wh_page_space(page) >= wh_bytes_needed(page, &anchor))
	{
		wh_log_insert(index, child, buffer, at, &anchor);
		UnlockReleaseBuffer(buffer);
		return;
	}
	wh_items_begin(&set);
	wh_items_load(&set, page);
	wh_items_insert(&set, at, &anchor);
	(void) wh_split(index, buffer, &set, child);
	wh_items_end(&set);
}

/*
 * Makes a new root, if the left half of a split is the root.  Returns whether it was.  The
 * root is the only page of its level, so for other splits the metapage, which
 * all sessions share, is not locked.  Both halves are locked exclusively, and stay locked.
 */
static bool
grow_root(Relation index, Buffer left, Buffer right, const WhItem *anchor)
{
	Buffer		meta;
	bool		is_root;

	if (WhPageHeader(BufferGetPage(left))->prev != InvalidBlockNumber ||
		WhPageHeader(BufferGetPage(right))->next != InvalidBlockNumber)
		return false;
	meta = wh_read(index, WH_META_BLKNO, BUFFER_LOCK_EXCLUSIVE);
	is_root = WhPageMeta(BufferGetPage(meta))->root == BufferGetBlockNumber(left);
	if (is_root)
	{
		make_root(index, meta, left, right, anchor);
		wh_cache(index)->have_meta = false;
	}
	UnlockReleaseBuffer(meta);
	return is_root;
}

/*
 * Completes a split: adds the right half's anchor to the directory, and makes
 * a new root if the left half is the root.  Both halves are locked
 * exclusively, and are released.
 */
void
wh_add_anchor(Relation index, Buffer left, Buffer right)
{
	uint8	   *space = palloc(WH_BOUNDS_SPACE);
	int			level = WhPageHeader(BufferGetPage(left))->level;
	WhBounds	bounds;
	WhItem		anchor;

	wh_page_bounds(BufferGetPage(right), &bounds, space);
	wh_anchor_item(&bounds.low, 0, BufferGetBlockNumber(right), &anchor);
	if (!grow_root(index, left, right, &anchor))
		insert_anchor(index,
					  wh_descend(index, &bounds.low, WH_AT, level + 1,
								 BUFFER_LOCK_EXCLUSIVE),
					  left, &bounds.low, anchor.child);
	UnlockReleaseBuffer(right);
	UnlockReleaseBuffer(left);
	pfree(space);
}
