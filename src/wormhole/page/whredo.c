/*-------------------------------------------------------------------------
 *
 * whredo.c
 *	  Replay of the records of our own resource manager (whwal_impl.h).
 *
 * Replay does to a page what the primary did to it, with the same functions:
 * from the same entries in the same order they make the same page.  Marks of
 * dead entries, which are not logged, may differ.  They stay with their
 * entries, and change nothing else.
 *
 * A record that does not fit the page it is replayed on, or a damaged page,
 * ends the server: recovery cannot go on.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/bufmask.h"
#include "access/xlog_internal.h"
#include "access/xlogreader.h"
#include "access/xlogutils.h"
#include "lib/stringinfo.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "wormhole/page/whwal_impl.h"

/* What the replay of one record allocates. */
static MemoryContext redo_context = NULL;

/*
 * rm_startup and rm_cleanup.
 */
void
wh_redo_startup(void)
{
	redo_context = AllocSetContextCreate(CurrentMemoryContext,
										 "wormhole recovery",
										 ALLOCSET_DEFAULT_SIZES);
}

void
wh_redo_cleanup(void)
{
	MemoryContextDelete(redo_context);
	redo_context = NULL;
}

/*
 * Ends the server because a record does not fit its page.
 */
static void
refuse(XLogReaderState *record, const char *what)
{
	elog(PANIC, "wormhole: WAL record at %X/%X does not fit its page: %s",
		 LSN_FORMAT_ARGS(record->ReadRecPtr), what);
}

/*
 * Is this a page that entries can be in?
 */
static bool
is_tree_page(Page page)
{
	return !PageIsNew(page) && PageGetPageSize(page) == BLCKSZ &&
		WhPageHeader(page)->page_id == WH_PAGE_ID &&
		WhPageHeader(page)->version == WH_FORMAT_VERSION &&
		wh_header_is_sound(page) &&
		!(WhPageHeader(page)->flags & (WH_META | WH_DELETED));
}

/*
 * Puts a new content into a page.  Its marks are those of the page, so
 * WH_KILLED stays.
 */
static void
replace_page(XLogReaderState *record, Page page, Page content)
{
	WhPageHeader(content)->flags |= WhPageHeader(page)->flags & WH_KILLED;
	if (!is_tree_page(content))
		refuse(record, "impossible content");
	memcpy(page, content, BLCKSZ);
}

/*
 * Replays an insert into a page.
 */
static void
redo_insert(XLogReaderState *record, Page page)
{
	WhHeader	header = WhPageHeader(page);
	WhInsertRecord insert;
	WhItem		item;
	Size		size;
	const char *data = XLogRecGetBlockData(record, WH_BLOCK_PAGE, &size);

	if (data == NULL || size < sizeof(insert))
		refuse(record, "no data");
	memcpy(&insert, data, sizeof(insert));
	if (wh_unpack_item(data + sizeof(insert), data + size, header->level,
					   &item) != data + size)
		refuse(record, "not an entry");
	if (insert.at > header->nslots || (header->level > 0 && insert.at == 0))
		refuse(record, "no such slot");
	if (WhIsDense(page) && !wh_suits_dense(page, &item))
		refuse(record, "not an entry of this leaf");
	if (wh_page_space(page) < wh_bytes_needed(page, &item))
		refuse(record, "no room");
	wh_page_insert(page, insert.at, &item);
}

/*
 * Reads what is logged of a split: the anchor, and the new item if it is in
 * the left half.
 */
static void
read_split(XLogReaderState *record, int level, WhSplitRecord *split,
		   WhKey *anchor, WhItem *item)
{
	Size		size;
	const char *data = XLogRecGetBlockData(record, WH_BLOCK_PAGE, &size);
	const char *end = data + size;
	int			tid;

	if (data == NULL || size < sizeof(*split))
		refuse(record, "no data");
	memcpy(split, data, sizeof(*split));
	data += sizeof(*split);
	tid = split->anchor_has_tid ? sizeof(ItemPointerData) : 0;
	if (end - data < split->anchor_len + tid)
		refuse(record, "no anchor");
	anchor->data = (const uint8 *) data;
	anchor->len = split->anchor_len;
	anchor->has_tid = tid > 0;
	memcpy(&anchor->tid, data + split->anchor_len, tid);
	data += split->anchor_len + tid;
	if (split->at < split->cut)
		data = wh_unpack_item(data, end, level, item);
	if (data != end)
		refuse(record, "not an entry");
}

/*
 * Do the first cut items of a set belong between these bounds, and fit there?
 * The first child of a directory page has no key.
 */
static bool
fit_in(const WhItemSet *set, int cut, int level, const WhBounds *bounds)
{
	uint8		space[2 * BLCKSZ];
	WhKey		last;

	if (cut > set->n || (level > 0 && cut == 0) ||
		wh_compare_keys(&bounds->low, &bounds->high) >= 0)
		return false;
	if (cut > (level > 0 ? 1 : 0))
	{
		wh_items_key(set, cut - 1, &last, space);
		if (wh_compare_keys(&last, &bounds->high) >= 0)
			return false;
	}
	return wh_items_space(set, 0, cut, bounds) <= (int) WH_PAGE_CONTENT;
}

/*
 * Replays what a split does to the page that becomes the left half.
 */
static void
redo_left(XLogReaderState *record, Page page)
{
	WhHeader	header = WhPageHeader(page);
	uint8	   *space = palloc(WH_BOUNDS_SPACE);
	BlockNumber right;
	PGAlignedBlock content;
	WhSplitRecord split;
	WhKey		anchor;
	WhItem		item;
	WhItemSet	set;
	WhBounds	bounds;

	read_split(record, header->level, &split, &anchor, &item);
	XLogRecGetBlockTag(record, WH_BLOCK_RIGHT, NULL, NULL, &right);
	wh_page_bounds(page, &bounds, space);
	wh_items_begin(&set);
	wh_items_load(&set, page);
	if (split.at < split.cut)
	{
		if (split.at > set.n)
			refuse(record, "no such place");
		wh_items_insert(&set, split.at, &item);
	}
	bounds.high = anchor;
	bounds.rightmost = false;
	if (!fit_in(&set, split.cut, header->level, &bounds))
		refuse(record, "no such half");
	memcpy(content.data, page, BLCKSZ);
	wh_items_store(&set, 0, split.cut, content.data, &bounds);
	WhPageHeader(content.data)->prev = header->prev;
	WhPageHeader(content.data)->next = right;
	WhPageHeader(content.data)->flags |= WH_INCOMPLETE_SPLIT;
	replace_page(record, page, content.data);
}

/*
 * Removes from a set what a record says.  Remaining TIDs of lists point to the
 * record.
 */
static void
remove_items(XLogReaderState *record, WhItemSet *set, const char *data,
			 const char *end)
{
	int			kept = 0;
	int			i = 0;

	while (data < end)
	{
		WhRemoveRecord change;
		WhItem	   *item;

		if (end - data < sizeof(change))
			refuse(record, "no such change");
		memcpy(&change, data, sizeof(change));
		data += sizeof(change);
		if (change.at < i || change.at >= set->n ||
			change.ntids >= set->items[change.at].ntids ||
			end - data < change.ntids * sizeof(ItemPointerData))
			refuse(record, "no such entry");
		while (i < change.at)
			set->items[kept++] = set->items[i++];
		item = &set->items[i++];
		if (change.ntids == 0)
			continue;
		item->tids = (const ItemPointerData *) data;
		item->ntids = change.ntids;
		item->flags &= ~(WH_DEAD | (change.ntids == 1 ? WH_POSTING : 0));
		data += change.ntids * sizeof(ItemPointerData);
		set->items[kept++] = *item;
	}
	while (i < set->n)
		set->items[kept++] = set->items[i++];
	set->n = kept;
}

/*
 * Replays the removal of entries.
 */
static void
redo_remove(XLogReaderState *record, Page page)
{
	uint8	   *space = palloc(WH_BOUNDS_SPACE);
	PGAlignedBlock content;
	WhItemSet	set;
	WhBounds	bounds;
	Size		size;
	const char *data = XLogRecGetBlockData(record, WH_BLOCK_PAGE, &size);

	if (data == NULL || WhPageHeader(page)->level > 0)
		refuse(record, "no data");
	wh_page_bounds(page, &bounds, space);
	wh_items_begin(&set);
	wh_items_load(&set, page);
	remove_items(record, &set, data, data + size);
	memcpy(content.data, page, BLCKSZ);
	wh_items_rewrite(&set, content.data, &bounds);
	replace_page(record, page, content.data);
}

/*
 * Replays what a record does to one of its pages.
 */
static void
redo_page(XLogReaderState *record, int block, Page page)
{
	uint8		kind = XLogRecGetInfo(record) & ~XLR_INFO_MASK;

	if (!is_tree_page(page))
		refuse(record, "not a page of a wormhole index");
	if (block == WH_BLOCK_CHILD)
		WhPageHeader(page)->flags &= ~WH_INCOMPLETE_SPLIT;
	else if (block == WH_BLOCK_OTHER && kind == WH_XLOG_SPLIT)
		XLogRecGetBlockTag(record, WH_BLOCK_RIGHT, NULL, NULL,
						   &WhPageHeader(page)->prev);
	else if (block == WH_BLOCK_PAGE && kind == WH_XLOG_INSERT)
		redo_insert(record, page);
	else if (block == WH_BLOCK_PAGE && kind == WH_XLOG_SPLIT)
		redo_left(record, page);
	else if (block == WH_BLOCK_PAGE && kind == WH_XLOG_REMOVE)
		redo_remove(record, page);
	else
		refuse(record, "unknown change");
}

/*
 * rm_redo.  All pages are locked exclusively, in the order of the record,
 * until all are replayed.
 */
void
wh_redo(XLogReaderState *record)
{
	MemoryContext before = MemoryContextSwitchTo(redo_context);
	Buffer		buffers[WH_NBLOCKS] = {InvalidBuffer};

	if (XLogRecMaxBlockId(record) >= WH_NBLOCKS)
		refuse(record, "too many pages");
	for (int i = 0; i <= XLogRecMaxBlockId(record); i++)
	{
		if (!XLogRecHasBlockRef(record, i) ||
			XLogReadBufferForRedo(record, i, &buffers[i]) != BLK_NEEDS_REDO)
			continue;
		redo_page(record, i, BufferGetPage(buffers[i]));
		PageSetLSN(BufferGetPage(buffers[i]), record->EndRecPtr);
		MarkBufferDirty(buffers[i]);
	}
	for (int i = 0; i < WH_NBLOCKS; i++)
	{
		if (BufferIsValid(buffers[i]))
			UnlockReleaseBuffer(buffers[i]);
	}
	MemoryContextSwitchTo(before);
	MemoryContextReset(redo_context);
}

/*
 * rm_desc: what the record does to its page, unless it has the whole page.
 */
void
wh_describe(StringInfo buf, XLogReaderState *record)
{
	uint8		kind = XLogRecGetInfo(record) & ~XLR_INFO_MASK;
	WhInsertRecord insert;
	WhSplitRecord split;
	Size		size;
	const char *data = NULL;

	if (XLogRecHasBlockRef(record, WH_BLOCK_PAGE))
		data = XLogRecGetBlockData(record, WH_BLOCK_PAGE, &size);
	if (data == NULL)
		return;
	if (kind == WH_XLOG_INSERT && size >= sizeof(insert))
	{
		memcpy(&insert, data, sizeof(insert));
		appendStringInfo(buf, "slot %u", insert.at);
	}
	else if (kind == WH_XLOG_SPLIT && size >= sizeof(split))
	{
		memcpy(&split, data, sizeof(split));
		appendStringInfo(buf, "cut %u, new entry %u", split.cut, split.at);
	}
	else if (kind == WH_XLOG_REMOVE)
		appendStringInfo(buf, "%zu bytes", size);
}

/*
 * rm_identify.
 */
const char *
wh_identify(uint8 info)
{
	switch (info & ~XLR_INFO_MASK)
	{
		case WH_XLOG_INSERT:
			return "INSERT";
		case WH_XLOG_SPLIT:
			return "SPLIT";
		case WH_XLOG_REMOVE:
			return "REMOVE";
	}
	return NULL;
}

/*
 * rm_mask: clears what may differ after replay.  These are LSN, checksum and
 * the marks of dead entries.
 */
void
wh_mask(char *data, BlockNumber block)
{
	WhHeader	header = WhPageHeader(data);

	mask_page_lsn_and_checksum(data);
	if (!is_tree_page(data))
		return;
	mask_unused_space(data);
	header->flags &= ~WH_KILLED;
	for (int i = 0; i < header->nslots && header->level == 0; i++)
		wh_set_dead(data, i, false);
}
