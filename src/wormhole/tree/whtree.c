/*-------------------------------------------------------------------------
 *
 * whtree.c
 *	  Finding pages: metapage, descents, new pages, the anchor directory.
 *
 * Nobody holds a lock on a page while waiting for one on a child.  So by the
 * time a block is locked it may have been split, deleted, or even reused; the
 * bounds on every page tell.  A position to the right is reached through the
 * right links; with anything else the descent begins anew.
 *
 * Locks are taken from left to right and from the leaves up, the metapage
 * last.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/generic_xlog.h"
#include "miscadmin.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "wormhole/hint/whhint.h"

/* So often a descent may begin anew before the index is called damaged. */
#define MAX_RESTARTS	1000

/*
 * Raises the error for a page that cannot be what it should be.
 */
static void
page_is_damaged(Relation index, BlockNumber block)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" is damaged at block %u",
					RelationGetRelationName(index), block),
			 errhint("Please REINDEX it.")));
}

/*
 * Raises the error for a page, or an index, of a version that we do not know,
 * as after going back to an older release.
 */
static void
version_is_unknown(Relation index, BlockNumber block, int version)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" has format version %d at block %u, not %d",
					RelationGetRelationName(index), version, block,
					WH_FORMAT_VERSION),
			 errhint("Please REINDEX it.")));
}

/*
 * The page in a locked buffer, if it is one of ours; an error otherwise.
 */
Page
wh_check_page(Relation index, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	WhHeader	header = WhPageHeader(page);

	if (PageIsNew(page) || header->page_id != WH_PAGE_ID)
		page_is_damaged(index, BufferGetBlockNumber(buffer));
	if (header->version != WH_FORMAT_VERSION)
		version_is_unknown(index, BufferGetBlockNumber(buffer),
						   header->version);
	if (((PageHeader) header)->pd_lower < WH_BOUNDS_OFF ||
		((PageHeader) header)->pd_upper > BLCKSZ ||
		(!(header->flags & (WH_META | WH_DELETED)) &&
		 (header->slots_off + header->nslots * sizeof(WhSlot) !=
		  ((PageHeader) header)->pd_lower ||
		  header->slots_off < WH_BOUNDS_OFF + header->prefix_len +
		  header->low_len + header->high_len)))
		page_is_damaged(index, BufferGetBlockNumber(buffer));
	return page;
}

/*
 * Pins and locks a block that some page refers to, and checks it.
 */
Buffer
wh_read(Relation index, BlockNumber block, int lockmode)
{
	WhCache    *cache = wh_cache(index);
	Buffer		buffer;

	if (block >= cache->nblocks)
	{
		cache->nblocks = RelationGetNumberOfBlocks(index);
		if (block >= cache->nblocks)
			page_is_damaged(index, block);
	}
	buffer = wh_pin(index, block);
	LockBuffer(buffer, lockmode);
	(void) wh_check_page(index, buffer);
	return buffer;
}

/*
 * Checks that the metapage is one of this version and of these columns.
 */
static void
check_meta(Relation index, Page page)
{
	WhMetaData *meta = WhPageMeta(page);
	RfRowFormat *format = &wh_cache(index)->format;

	if (!(WhPageHeader(page)->flags & WH_META) || meta->magic != WH_MAGIC)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\" is not a wormhole index",
						RelationGetRelationName(index)),
				 errhint("Please REINDEX it.")));
	if (meta->version != WH_FORMAT_VERSION)
		version_is_unknown(index, WH_META_BLKNO, meta->version);
	for (int i = 0; i < format->ncolumns; i++)
	{
		if (meta->ncolumns != format->ncolumns ||
			meta->codec_ids[i] != format->columns[i].codec->id)
			ereport(ERROR,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("keys of index \"%s\" are encoded in another way",
							RelationGetRelationName(index)),
					 errhint("Please REINDEX it.")));
	}
}

/*
 * Brings what is cached of the metapage up to date.  Locks it for a moment.
 */
void
wh_read_meta(Relation index)
{
	WhCache    *cache = wh_cache(index);
	Buffer		buffer = wh_read(index, WH_META_BLKNO, BUFFER_LOCK_SHARE);
	Page		page = BufferGetPage(buffer);

	check_meta(index, page);
	cache->identity = WhPageHeader(page)->identity;
	cache->root = WhPageMeta(page)->root;
	cache->level = WhPageMeta(page)->level;
	cache->sorted_otherwise = WhPageMeta(page)->collators != cache->collators;
	cache->have_meta = true;
	UnlockReleaseBuffer(buffer);
}

/*
 * Would the keys of strings sort in another way now than when the index was
 * built?  ICU sorts by other rules after an upgrade, or on this standby.
 */
bool
wh_sorted_otherwise(Relation index)
{
	if (wh_cache(index)->collators == 0)
		return false;
	if (!wh_cache(index)->have_meta)
		wh_read_meta(index);
	return wh_cache(index)->sorted_otherwise;
}

/*
 * Then nothing can be found in it, and nothing put into it.  (VACUUM can go on:
 * it makes no keys.)
 */
void
wh_check_collators(Relation index)
{
	if (!wh_sorted_otherwise(index))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("index \"%s\" was built under another version of a collation",
					RelationGetRelationName(index)),
			 errdetail("The collation sorts in another way here than where the index was built, as after an upgrade of ICU."),
			 errhint("REINDEX it.")));
}

/*
 * Fills in a metapage.
 */
void
wh_init_meta_page(Relation index, Page page, uint64 identity,
				  BlockNumber root, uint32 level)
{
	WhBounds	none = {.low.data = (const uint8 *) "",.rightmost = true};
	RfRowFormat *format = &wh_cache(index)->format;
	WhMetaData *meta;

	wh_init_page(page, identity, 0, &none);
	WhPageHeader(page)->flags = WH_META;
	meta = WhPageMeta(page);
	memset(meta, 0, sizeof(*meta));
	meta->magic = WH_MAGIC;
	meta->version = WH_FORMAT_VERSION;
	meta->ncolumns = format->ncolumns;
	for (int i = 0; i < format->ncolumns; i++)
		meta->codec_ids[i] = format->columns[i].codec->id;
	meta->collators = wh_cache(index)->collators;
	meta->root = root;
	meta->level = level;
	((PageHeader) page)->pd_lower = (char *) (meta + 1) - (char *) page;
}

/*
 * A number that no other build of an index has.
 */
uint64
wh_new_identity(void)
{
	uint64		identity;

	if (!pg_strong_random(&identity, sizeof(identity)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate a random number")));
	return identity;
}

/*
 * Adds the anchor of the right half of a split that was cut short, if this
 * page is the left half of one.  The buffer is locked exclusively; released,
 * and true returned, if there was something to do.
 */
static bool
finish_split(Relation index, Buffer buffer)
{
	WhHeader	header = WhPageHeader(BufferGetPage(buffer));

	if (!(header->flags & WH_INCOMPLETE_SPLIT))
		return false;
	wh_add_anchor(index, buffer,
				  wh_read(index, header->next, BUFFER_LOCK_EXCLUSIVE));
	return true;
}

/*
 * Is a locked page the leaf a position belongs to?
 */
bool
wh_is_leaf_of(Relation index, Buffer buffer, const WhKey *key)
{
	Page		page = BufferGetPage(buffer);
	WhHeader	header = WhPageHeader(page);

	return header->level == 0 && !(header->flags & (WH_DELETED | WH_META)) &&
		header->identity == wh_cache(index)->identity &&
		wh_page_side(page, key, WH_AT) == 0;
}

/*
 * From a locked page of the level, goes right to the one a position belongs
 * to.  Returns it with the same lock, or InvalidBuffer, with nothing locked,
 * where the position cannot be reached from here.  Going to write (lockmode
 * exclusive), finishes incomplete splits on the way.
 */
Buffer
wh_move_right(Relation index, Buffer buffer, const WhKey *key, WhSide side,
			  int level, int lockmode)
{
	for (;;)
	{
		Page		page = BufferGetPage(buffer);
		WhHeader	header = WhPageHeader(page);
		BlockNumber next = header->next;
		int			where;

		if ((header->flags & (WH_DELETED | WH_META)) ||
			header->level != level ||
			header->identity != wh_cache(index)->identity)
			break;
		where = wh_page_side(page, key, side);
		if (where < 0 || (where > 0 && next == InvalidBlockNumber))
			break;
		if (lockmode == BUFFER_LOCK_EXCLUSIVE && finish_split(index, buffer))
			return InvalidBuffer;
		if (where == 0)
			return buffer;
		CHECK_FOR_INTERRUPTS();
		UnlockReleaseBuffer(buffer);
		buffer = wh_read(index, next, lockmode);
	}
	UnlockReleaseBuffer(buffer);
	return InvalidBuffer;
}

/*
 * From a block that a hint says is the leaf of a position, at most so many
 * steps to the right to the one that is.  Returns it pinned and locked, and
 * the steps taken, or InvalidBuffer with nothing locked; whatever the block
 * may be, this is no error.  A writer does not get a leaf whose split is
 * incomplete: the descent will finish that.
 */
Buffer
wh_walk_right(Relation index, BlockNumber block, const WhKey *key,
			  WhSide side, int lockmode, int most_steps, int *steps)
{
	WhCache    *cache = wh_cache(index);

	for (*steps = 0; *steps <= most_steps; (*steps)++)
	{
		Buffer		buffer;
		WhHeader	header;
		int			where = -1;

		if (block >= cache->nblocks)
			break;
		buffer = wh_pin(index, block);
		LockBuffer(buffer, lockmode);
		header = WhPageHeader(BufferGetPage(buffer));
		if (header->identity == cache->identity && header->level == 0 &&
			!(header->flags & (WH_DELETED | WH_META)) &&
			(lockmode == BUFFER_LOCK_SHARE ||
			 !(header->flags & WH_INCOMPLETE_SPLIT)))
		{
			(void) wh_check_page(index, buffer);
			where = wh_page_side(BufferGetPage(buffer), key, side);
		}
		if (where == 0)
			return buffer;
		block = where < 0 ? InvalidBlockNumber : header->next;
		UnlockReleaseBuffer(buffer);
	}
	return InvalidBuffer;
}

/*
 * One attempt at a descent; InvalidBuffer if something was in its way.
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
		page_is_damaged(index, WH_META_BLKNO);
	for (;;)
	{
		int			mode = at == level ? lockmode : BUFFER_LOCK_SHARE;
		Buffer		buffer = wh_read(index, block, mode);
		Page		page = BufferGetPage(buffer);
		int			slot;

		/*
		 * A root that has been split is not the last page of its level.  Good
		 * enough for once, but the walk would become longer and longer.
		 */
		if (is_root && !(WhPageHeader(page)->flags & WH_RIGHTMOST))
			cache->have_meta = false;
		is_root = false;
		buffer = wh_move_right(index, buffer, key, side, at, mode);
		if (buffer == InvalidBuffer || at == level)
			return buffer;
		page = BufferGetPage(buffer);
		slot = wh_page_child_slot(page, key, side);
		if (slot < 0)
			page_is_damaged(index, BufferGetBlockNumber(buffer));
		block = wh_slot_child(page, &WhSlots(page)[slot]);
		UnlockReleaseBuffer(buffer);
		at--;
	}
}

/*
 * The page of a level that a position belongs to, pinned and locked.  The
 * directory must reach up to that level.  In a page locked exclusively no
 * split is incomplete.
 *
 * What is cached of the metapage is good enough to begin with: a page that
 * was the root stays the first of its level for ever.
 */
Buffer
wh_descend(Relation index, const WhKey *key, WhSide side, int level,
		   int lockmode)
{
	WhCache    *cache = wh_cache(index);
	Buffer		buffer;

	if (!cache->have_meta)
		wh_read_meta(index);
	if (level == 0)
	{
		if (wh_enable_hint)
		{
			buffer = wh_hint_find(index, key, side, lockmode);
			if (BufferIsValid(buffer))
				return buffer;
		}
		wh_note_descent(index);
	}
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
 * The leaf a position belongs to, expected in the given block or shortly to
 * its right.
 */
Buffer
wh_step(Relation index, BlockNumber block, const WhKey *key, WhSide side,
		int lockmode)
{
	Buffer		buffer = InvalidBuffer;

	if (block != InvalidBlockNumber)
		buffer = wh_move_right(index, wh_read(index, block, lockmode), key,
							   side, 0, lockmode);
	if (!BufferIsValid(buffer))
		buffer = wh_descend(index, key, side, 0, lockmode);
	return buffer;
}

/*
 * Appends an anchor; one that is not after the last is left out.  False where
 * there is no room.
 */
static bool
append_anchor(WhAnchors *anchors, Size limit, const WhKey *key,
			  BlockNumber leaf)
{
	WhAnchor   *anchor;
	Size		size = anchors->n * sizeof(WhAnchor) + anchors->bytes.len;

	if (anchors->n > 0)
	{
		WhAnchor   *last = &anchors->anchors[anchors->n - 1];
		const char *bytes = anchors->bytes.data + last->off;
		int			cmp = memcmp(bytes, key->data, Min(last->len, key->len));

		if (cmp > 0 || (cmp == 0 && last->len > key->len))
			return true;
	}
	if (size + sizeof(WhAnchor) + key->len > Min(limit, MaxAllocSize / 2))
		return false;
	if (anchors->n == anchors->space)
	{
		anchors->space *= 2;
		anchors->anchors = repalloc_huge(anchors->anchors,
										 anchors->space * sizeof(WhAnchor));
	}
	anchor = &anchors->anchors[anchors->n++];
	anchor->off = anchors->bytes.len;
	anchor->len = key->len;
	anchor->has_tid = key->has_tid;
	anchor->leaf = leaf;
	appendBinaryStringInfo(&anchors->bytes, (const char *) key->data,
						   key->len);
	return true;
}

/*
 * Appends the anchors of a locked page of the directory.
 */
static bool
append_anchors(WhAnchors *anchors, Size limit, Page page, uint8 *space)
{
	WhHeader	header = WhPageHeader(page);
	WhBounds	bounds;
	WhKey		key;

	wh_page_bounds(page, &bounds, space);
	for (int i = 0; i < header->nslots; i++)
	{
		WhSlot	   *slot = &WhSlots(page)[i];

		if (i == 0)
			key = bounds.low;
		else
		{
			/* Over the low bound, which begins with the prefix. */
			key.data = space;
			key.len = header->prefix_len +
				wh_slot_key(page, slot, space + header->prefix_len);
			key.has_tid = (slot->info & WH_ANCHOR_TID) != 0;
		}
		if (!append_anchor(anchors, limit, &key, wh_slot_child(page, slot)))
			return false;
	}
	return true;
}

/*
 * Reads all anchors of the leaves from the directory, page by page, into
 * memory of the current context.  False where they need more than the limit,
 * or the directory changed under our feet.  There must be a directory, and
 * nothing locked.
 */
bool
wh_read_anchors(Relation index, Size limit, WhAnchors *anchors)
{
	WhKey		first = {.data = (const uint8 *) ""};
	uint8	   *space = palloc(WH_BOUNDS_SPACE);
	Buffer		buffer;

	memset(anchors, 0, sizeof(*anchors));
	anchors->space = 1024;
	anchors->anchors = palloc(anchors->space * sizeof(WhAnchor));
	initStringInfo(&anchors->bytes);
	buffer = wh_descend(index, &first, WH_AT, 1, BUFFER_LOCK_SHARE);
	for (;;)
	{
		Page		page = BufferGetPage(buffer);
		WhHeader	header = WhPageHeader(page);
		BlockNumber next = header->next;
		bool		fits = append_anchors(anchors, limit, page, space);
		Buffer		after = InvalidBuffer;

		/* Locked before this one is let go, it cannot become another page. */
		if (fits && next != InvalidBlockNumber)
			after = wh_read(index, next, BUFFER_LOCK_SHARE);
		UnlockReleaseBuffer(buffer);
		if (!fits)
			return false;
		if (next == InvalidBlockNumber)
			return true;
		CHECK_FOR_INTERRUPTS();
		buffer = after;
		header = WhPageHeader(BufferGetPage(buffer));
		if (header->level != 1 || (header->flags & (WH_DELETED | WH_META)) ||
			header->identity != wh_cache(index)->identity)
		{
			UnlockReleaseBuffer(buffer);
			return false;
		}
	}
}

/*
 * A page to use, from the free space map or the end of the file, locked
 * exclusively.  The map is not crash-safe: what it offers is looked at.  A
 * reader that comes upon the block late sees from its bounds what it is.
 */
Buffer
wh_new_buffer(Relation index)
{
	bool		need_lock = !RELATION_IS_LOCAL(index);
	Buffer		buffer;

	for (;;)
	{
		BlockNumber block = GetFreeIndexPage(index);
		Page		page;

		if (block == InvalidBlockNumber)
			break;
		buffer = ReadBuffer(index, block);
		page = BufferGetPage(buffer);
		if (ConditionalLockBuffer(buffer))
		{
			if (PageIsNew(page) ||
				(WhPageHeader(page)->page_id == WH_PAGE_ID &&
				 (WhPageHeader(page)->flags & WH_DELETED)))
				return buffer;
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		}
		ReleaseBuffer(buffer);
	}
	if (need_lock)
		LockRelationForExtension(index, ExclusiveLock);
	buffer = ReadBuffer(index, P_NEW);

	/* Locked before VACUUM can count the block and find it unused. */
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (need_lock)
		UnlockRelationForExtension(index, ExclusiveLock);
	return buffer;
}

/*
 * Puts a new root above the old one, which has been split into left and
 * right; all of it in one WAL record.  meta is locked exclusively, too.
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
 * Inserts an anchor into its directory page, which is locked exclusively and
 * will be released; marks the split below, whose left half is child, as
 * complete with the same WAL record.
 */
static void
insert_anchor(Relation index, Buffer buffer, Buffer child, const WhKey *key,
			  WhItem *anchor)
{
	Page		page = BufferGetPage(buffer);
	int			at = wh_page_search(page, key);
	WhItemSet	set;

	/* The first entry begins where the page does, whatever it looks like. */
	at = Max(at, 1);
	anchor->rest = key->data + WhPageHeader(page)->prefix_len;
	anchor->len = key->len - WhPageHeader(page)->prefix_len;
	if (wh_page_space(page) >= wh_item_size(anchor) + (int) sizeof(WhSlot))
	{
		GenericXLogState *state = GenericXLogStart(index);

		page = wh_register(state, child);
		WhPageHeader(page)->flags &= ~WH_INCOMPLETE_SPLIT;
		wh_page_insert(wh_register(state, buffer), at, anchor);
		GenericXLogFinish(state);
		UnlockReleaseBuffer(buffer);
		return;
	}
	wh_items_begin(&set);
	wh_items_load(&set, page);
	wh_items_insert(&set, at, anchor);
	wh_split(index, buffer, &set, child);
	wh_items_end(&set);
}

/*
 * Finishes a split: adds the right half's anchor to the directory, making a
 * new root if the left half is the root.  Both are locked exclusively and will
 * be released.
 */
void
wh_add_anchor(Relation index, Buffer left, Buffer right)
{
	uint8	   *space = palloc(WH_BOUNDS_SPACE);
	int			level = WhPageHeader(BufferGetPage(left))->level;
	WhBounds	bounds;
	WhItem		anchor;
	Buffer		meta;

	wh_page_bounds(BufferGetPage(right), &bounds, space);
	memset(&anchor, 0, sizeof(anchor));
	anchor.rest = bounds.low.data;
	anchor.len = bounds.low.len;
	anchor.child = BufferGetBlockNumber(right);
	if (bounds.low.has_tid)
	{
		anchor.flags = WH_ANCHOR_TID;
		anchor.ntids = 1;
		anchor.tids = &bounds.low.tid;
	}

	meta = wh_read(index, WH_META_BLKNO, BUFFER_LOCK_EXCLUSIVE);
	if (WhPageMeta(BufferGetPage(meta))->root == BufferGetBlockNumber(left))
	{
		make_root(index, meta, left, right, &anchor);
		UnlockReleaseBuffer(meta);
		wh_cache(index)->have_meta = false;
	}
	else
	{
		UnlockReleaseBuffer(meta);
		insert_anchor(index,
					  wh_descend(index, &bounds.low, WH_AT, level + 1,
								 BUFFER_LOCK_EXCLUSIVE),
					  left, &bounds.low, &anchor);
	}
	UnlockReleaseBuffer(right);
	UnlockReleaseBuffer(left);
	pfree(space);
}
