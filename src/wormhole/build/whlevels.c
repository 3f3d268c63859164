/*-------------------------------------------------------------------------
 *
 * whlevels.c
 *	  Making the pages of an index from sorted rows.
 *
 * All levels are written side by side.  Each gathers entries until the next
 * one would not fit on the page any more.  How many fit depends on where the
 * page ends: the longer the prefix that its bounds share, the more fit.
 *
 * Nobody else reads the index yet.  So pages are made in the session's memory
 * and written past the buffer pool.  No checkpoint knows of such pages, so the
 * file of a logged index is synced at the end.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "compat.h"
#include "miscadmin.h"
#include "storage/smgr.h"
#include "wormhole/build/whbuild_impl.h"

/* The alignment of pages that direct I/O needs. */
#define PAGE_ALIGN		4096

/* A gathered entry; its key is in the level's bytes. */
typedef struct Gathered
{
	Size		key_off;
	int			key_len;
	int			payload_len;	/* the payload follows the key */
	int			first_tid;		/* in the level's tids */
	int			ntids;
	BlockNumber child;
} Gathered;

typedef struct Level
{
	WhLevels   *levels;
	int			number;
	int			budget;			/* bytes of a page to fill, by fillfactor */
	BlockNumber block;			/* of the page being gathered */
	BlockNumber prev;
	bool		wrote;			/* a page has been finished */
	WhKey		low;			/* of that page, in low_space */
	uint8	   *low_space;
	int			n;
	int			fits;			/* the most entries known to fit on a page */
	int			prefix;			/* bytes that low and the last entry share */
	int			size;			/* of the entries before the last one, without
								 * that prefix, on an ordinary page; -1:
								 * prefix and size are not known */
	WhDenseForm dense;			/* of these entries as they are */
	uint8	   *bytes;			/* keys and payloads */
	Size		used;
	Size		max_bytes;
	Gathered	entries[WH_MAX_ENTRIES + 2];
	int			ntids;
	ItemPointerData *tids;
	int			max_tids;
	struct Level *parent;
} Level;

struct WhLevels
{
	Relation	index;
	uint64		identity;
	bool		deduplicate;
	bool		log;
	BlockNumber nblocks;		/* given out */
	BlockNumber nwritten;		/* the file's length */
	Level	   *leaves;
	Page		page;			/* being written */
	Page		zeros;
};

/*
 * Memory for a page.
 */
static Page
new_page(void)
{
	return (Page) TYPEALIGN(PAGE_ALIGN, palloc0(BLCKSZ + PAGE_ALIGN));
}

/*
 * Writes the page at the end of the file.
 */
static void
extend_file(WhLevels *levels, Page page)
{
	smgrextend(RelationGetSmgr(levels->index), MAIN_FORKNUM,
			   levels->nwritten++, (char *) page, true);
}

/*
 * Writes levels->page and logs it.  If blocks before it have not been written
 * yet, the file is extended by zeros.
 */
static void
write_page(WhLevels *levels, BlockNumber block)
{
	CHECK_FOR_INTERRUPTS();
	if (levels->log)
		log_newpage(&RF_RELFILE(levels->index), MAIN_FORKNUM, block,
					levels->page, true);
	while (levels->nwritten < block)
		extend_file(levels, levels->zeros);
	RF_SET_CHECKSUM(levels->page, block);
	if (levels->nwritten == block)
		extend_file(levels, levels->page);
	else
		smgrwrite(RelationGetSmgr(levels->index), MAIN_FORKNUM, block,
				  (char *) levels->page, true);
}

/*
 * Makes a level whose first page is the next block.
 */
static Level *
new_level(WhLevels *levels, int number)
{
	Level	   *level = palloc0(sizeof(Level));
	int			fillfactor = number == 0 ?
	wh_index_options(levels->index)->fillfactor : WH_DIRECTORY_FILLFACTOR;

	level->levels = levels;
	level->number = number;
	level->budget = WH_PAGE_CONTENT * fillfactor / 100;
	level->block = levels->nblocks++;
	level->prev = InvalidBlockNumber;
	level->low_space = palloc(BLCKSZ);
	level->low.data = level->low_space;
	level->size = -1;
	level->max_bytes = 4 * BLCKSZ;
	level->bytes = palloc(level->max_bytes);
	level->max_tids = WH_MAX_TIDS;
	level->tids = palloc(level->max_tids * sizeof(ItemPointerData));
	return level;
}

/*
 * Sets *key to a gathered entry's key, with its first TID if it has any.
 */
static void
entry_key(Level *level, int at, WhKey *key)
{
	Gathered   *entry = &level->entries[at];

	key->data = level->bytes + entry->key_off;
	key->len = entry->key_len;
	key->has_tid = entry->ntids > 0;
	if (key->has_tid)
		key->tid = level->tids[entry->first_tid];
}

/*
 * The bounds of a page of the first n gathered entries; there must be more.
 * In leaves the high bound is the shortest string that separates entry n - 1
 * from entry n.
 */
static void
page_bounds(Level *level, int n, WhBounds *bounds)
{
	WhKey		before;

	bounds->low = level->low;
	bounds->rightmost = false;
	entry_key(level, n, &bounds->high);
	if (level->number > 0)
		return;
	entry_key(level, n - 1, &before);
	wh_shorten_anchor(&before, &bounds->high);
}

/*
 * The size of an entry without a prefix, slot included.
 */
static inline int
entry_size(const Gathered *entry, int prefix)
{
	int			size = sizeof(WhSlot) + Max(entry->key_len - prefix - WH_HEAD, 0) +
	entry->ntids * sizeof(ItemPointerData);

	if (entry->child != InvalidBlockNumber)
		size += sizeof(BlockNumber);
	else if (entry->ntids > 1)
		size += sizeof(uint16);
	if (entry->payload_len > 0)
		size += sizeof(uint16) + entry->payload_len;
	return size;
}

/*
 * The size of the first n entries without a prefix.
 */
static int
entries_size(Level *level, int n, int prefix)
{
	int			size = 0;

	for (int i = 0; i < n; i++)
		size += entry_size(&level->entries[i], prefix);
	return size;
}

/*
 * The size of a page with entries of this total size, and with a high bound of
 * this length that shares the prefix with the low bound.
 */
static inline int
sum_size(Level *level, int high_len, int prefix, int size)
{
	int			bounds = level->low.len + high_len - prefix +
	2 * sizeof(ItemPointerData) + WH_DENSE_INFO;

	return TYPEALIGN(sizeof(WhSlot), bounds) + size;
}

/*
 * Fills in an item from a gathered entry, without the prefix.
 */
static inline void
entry_item(Level *level, int at, int prefix, WhItem *item)
{
	Gathered   *entry = &level->entries[at];

	item->rest = level->bytes + entry->key_off + prefix;
	item->len = entry->key_len - prefix;
	item->child = entry->child;
	item->ntids = entry->ntids;
	item->tids = level->tids + entry->first_tid;
	item->flags = 0;
	item->payload = item->rest + item->len;
	item->payload_len = entry->payload_len;
	if (entry->child != InvalidBlockNumber)
		item->flags = entry->ntids > 0 ? WH_ANCHOR_TID : 0;
	else if (entry->ntids > 1)
		item->flags = WH_POSTING;
	if (entry->payload_len > 0)
		item->flags |= WH_PAYLOAD;
}

/*
 * Has an entry the same key as the one before?
 */
static bool
has_same_key(Level *level, int at)
{
	const Gathered *entry = &level->entries[at];

	return entry[-1].key_len == entry->key_len &&
		memcmp(level->bytes + entry[-1].key_off, level->bytes + entry->key_off,
			   entry->key_len) == 0;
}

/*
 * Adds entry number at to those that may become a dense leaf.
 */
static inline void
add_dense(Level *level, int at, WhDenseForm *dense)
{
	const Gathered *entry = &level->entries[at];

	if (dense->tid_len > 0 && entry->child == InvalidBlockNumber &&
		entry->payload_len == 0)
	{
		wh_dense_add(dense, entry->key_len,
					 at == 0 || !dense->one_key || has_same_key(level, at),
					 entry->ntids);
		wh_dense_add_tids(dense, &level->tids[entry->first_tid], entry->ntids);
	}
	else
		dense->tid_len = 0;
}

/*
 * Begins with the first n entries.
 */
static void
begin_dense(Level *level, int n, WhDenseForm *dense)
{
	wh_dense_begin(dense);
	for (int i = 0; i < n; i++)
		add_dense(level, i, dense);
}

/*
 * The size of a page of the first n gathered entries.
 */
static int
page_size(Level *level, int n, const WhBounds *bounds)
{
	int			prefix = wh_bounds_prefix(bounds);
	WhDenseForm dense;

	begin_dense(level, n, &dense);
	return sum_size(level, bounds->rightmost ? 0 : bounds->high.len, prefix,
					wh_dense_end(&dense, prefix, entries_size(level, n, prefix)));
}

static void add_child(Level *level, const WhKey *anchor, BlockNumber child);

/*
 * Writes the first n gathered entries as a page.
 */
static void
finish_page(Level *level, int n, const WhBounds *bounds)
{
	WhLevels   *levels = level->levels;
	Page		page = levels->page;
	WhHeader	header = WhPageHeader(page);
	BlockNumber block = level->block;
	BlockNumber next = bounds->rightmost ? InvalidBlockNumber :
	levels->nblocks++;
	WhDenseForm dense;

	wh_init_page(page, levels->identity, level->number, bounds);
	begin_dense(level, n, &dense);
	(void) wh_dense_end(&dense, header->prefix_len,
						entries_size(level, n, header->prefix_len));
	if (dense.tid_len > 0)
		wh_make_dense(page, &dense);
	for (int i = 0; i < n; i++)
	{
		WhItem		item;

		entry_item(level, i, header->prefix_len, &item);
		if (level->number > 0 && i == 0)
		{
			/* The first child has no anchor: it begins where the page does. */
			item.len = item.ntids = 0;
			item.flags = 0;
		}
		wh_append_item(page, &item);
	}
	header->prev = level->prev;
	header->next = next;
	write_page(levels, block);

	if (!bounds->rightmost || level->wrote)
	{
		if (level->parent == NULL)
			level->parent = new_level(levels, level->number + 1);
		add_child(level->parent, &level->low, block);
	}
	level->wrote = true;
	level->prev = block;
	level->block = next;
}

/*
 * Forgets the first n gathered entries, which have been written.  There are
 * more.
 */
static void
forget_entries(Level *level, int n, const WhBounds *bounds)
{
	Size		off = level->entries[n].key_off;
	int			tid = level->entries[n].first_tid;

	memmove(level->low_space, bounds->high.data, bounds->high.len);
	level->low.len = bounds->high.len;
	level->low.has_tid = bounds->high.has_tid;
	level->low.tid = bounds->high.tid;

	level->used -= off;
	memmove(level->bytes, level->bytes + off, level->used);
	level->ntids -= tid;
	memmove(level->tids, level->tids + tid,
			level->ntids * sizeof(ItemPointerData));
	level->n -= n;
	memmove(level->entries, level->entries + n, level->n * sizeof(Gathered));
	for (int i = 0; i < level->n; i++)
	{
		level->entries[i].key_off -= off;
		level->entries[i].first_tid -= tid;
	}
	level->size = -1;

	/* A page of a single entry always fits. */
	level->fits = level->n > 1 ? 1 : 0;
}

/*
 * Writes the first n entries as a page.  There are more.
 */
static void
write_first(Level *level, int n)
{
	WhBounds	bounds;

	page_bounds(level, n, &bounds);
	finish_page(level, n, &bounds);
	forget_entries(level, n, &bounds);
}

/*
 * Brings prefix and size up to date after an entry has been added that shares
 * "common" bytes with the one before it.  Strings are sorted, so the prefix
 * that the low bound shares with the last entry is shared by all between them.
 */
static void
count_size(Level *level, int common)
{
	int			n = level->n - 1;
	WhKey		last;

	if (level->size < 0)
	{
		entry_key(level, n, &last);
		level->prefix = wh_common_prefix(&level->low, &last);
		level->size = entries_size(level, n, level->prefix);
		begin_dense(level, n, &level->dense);
		return;
	}
	add_dense(level, n - 1, &level->dense);
	if (common < level->prefix)
	{
		level->prefix = common;
		level->size = entries_size(level, n, common);
	}
	else
		level->size += entry_size(&level->entries[n - 1], level->prefix);
}

/*
 * Called after an entry has been added that shares this number of bytes with the one
 * before it.  If the entries before it do not fit on a page any more, writes
 * those that did.
 */
static void
check_page(Level *level, int common)
{
	int			n = level->n - 1;
	int			high_len = level->entries[n].key_len;
	WhDenseForm dense;
	int			size;

	if (n < 1)
		return;
	count_size(level, common);

	/* The high bound that page_bounds() will find. */
	if (level->number == 0 && !(common == high_len &&
								common == level->entries[n - 1].key_len))
		high_len = Min(common + 1, high_len);
	dense = level->dense;
	size = sum_size(level, high_len, level->prefix,
					wh_dense_end(&dense, level->prefix, level->size));

	if (size <= level->budget ||
		(level->fits == 0 && size <= (int) WH_PAGE_CONTENT))
		level->fits = n;
	if ((size > level->budget && level->fits > 0 && level->fits < n) ||
		level->n > (int) WH_MAX_ENTRIES)
	{
		if (level->fits == 0)
			elog(ERROR, "wormhole build: an entry does not fit on a page");
		write_first(level, level->fits);
	}
}

/*
 * Makes room for len bytes behind those in use, and returns where it is.
 */
static uint8 *
reserve_bytes(Level *level, Size len)
{
	while (level->used + len > level->max_bytes)
	{
		level->max_bytes *= 2;
		level->bytes = repalloc_huge(level->bytes, level->max_bytes);
	}
	return level->bytes + level->used;
}

/*
 * Adds an entry whose key and payload have been put into reserved space.
 */
static void
add_entry(Level *level, int len, int payload_len, BlockNumber child)
{
	Gathered   *entry = &level->entries[level->n++];

	entry->key_off = level->used;
	entry->key_len = len;
	entry->payload_len = payload_len;
	entry->first_tid = level->ntids;
	entry->ntids = 0;
	entry->child = child;
	level->used += len + payload_len;
}

/*
 * Appends a TID to the last entry.
 */
static void
add_tid(Level *level, const ItemPointerData *tid)
{
	if (level->ntids == level->max_tids)
	{
		level->max_tids *= 2;
		level->tids = repalloc_huge(level->tids,
									level->max_tids * sizeof(ItemPointerData));
	}
	level->tids[level->ntids++] = *tid;
	level->entries[level->n - 1].ntids++;
}

/*
 * The length of the prefix that the last entry's key shares with another key.
 */
static int
common_with_last(Level *level, const uint8 *key, int len)
{
	Gathered   *last = &level->entries[level->n - 1];

	if (level->n == 0)
		return 0;
	return wh_common_length(level->bytes + last->key_off, last->key_len, key, len);
}

/*
 * Adds a finished page to a level, which is the one above it.
 */
static void
add_child(Level *level, const WhKey *anchor, BlockNumber child)
{
	int			common = common_with_last(level, anchor->data, anchor->len);

	memcpy(reserve_bytes(level, anchor->len), anchor->data, anchor->len);
	add_entry(level, anchor->len, 0, child);
	if (anchor->has_tid)
		add_tid(level, &anchor->tid);
	check_page(level, common);
}

/*
 * Begins an index that has no pages yet.
 */
WhLevels *
wh_levels_begin(Relation index)
{
	WhLevels   *levels = palloc0(sizeof(WhLevels));

	levels->index = index;
	levels->identity = wh_new_identity();
	levels->deduplicate = wh_index_options(index)->deduplicate;
	levels->log = RelationNeedsWAL(index);
	levels->page = new_page();
	levels->zeros = new_page();
	levels->nblocks = WH_FIRST_LEAF;
	levels->leaves = new_level(levels, 0);
	return levels;
}

/*
 * Adds the next row.  Returns whether it has the same key as the one before.
 */
bool
wh_levels_add(WhLevels *levels, const WhRow *row)
{
	Level	   *leaves = levels->leaves;
	int			len = row->key_len;
	uint8	   *key;
	Gathered   *last = &leaves->entries[leaves->n - 1];
	int			common = common_with_last(leaves, row->key, len);
	bool		same;

	same = leaves->n > 0 && common == len && common == last->key_len;
	if (same && levels->deduplicate && row->payload_len == 0 &&
		last->payload_len == 0 && last->ntids < wh_most_tids(len))
	{
		add_tid(leaves, &row->tid);
		return true;
	}
	/* Only now is the entry before this one complete. */
	key = reserve_bytes(leaves, len + row->payload_len);
	wh_copy_short(key, row->key, len);
	if (row->payload_len > 0)
		memcpy(key + len, row->payload, row->payload_len);
	add_entry(leaves, len, row->payload_len, InvalidBlockNumber);
	add_tid(leaves, &row->tid);
	check_page(leaves, common);
	return same;
}

/*
 * Writes the gathered entries of a level, and of the levels above it.  The
 * last page of a level has no high bound, and so no prefix.  Returns the
 * highest level.
 */
static Level *
finish_level(Level *level)
{
	for (;;)
	{
		WhBounds	bounds = {.low = level->low,.rightmost = true};
		int			n = level->n;

		if (page_size(level, n, &bounds) <= (int) WH_PAGE_CONTENT)
		{
			finish_page(level, n, &bounds);
			break;
		}
		while (--n > 1)
		{
			page_bounds(level, n, &bounds);
			if (page_size(level, n, &bounds) <= level->budget)
				break;
		}
		write_first(level, n);
	}
	return level->parent != NULL ? finish_level(level->parent) : level;
}

/*
 * Writes the last pages and the metapage.  An unlogged index is synced, too:
 * it must survive a shutdown.  If the index is not logged because its file is
 * new in this transaction, the server syncs or logs the file at commit.
 */
void
wh_levels_finish(WhLevels *levels)
{
	Relation	index = levels->index;
	Level	   *root = finish_level(levels->leaves);

	wh_init_meta_page(index, levels->page, levels->identity, root->prev,
					  root->number);
	write_page(levels, WH_META_BLKNO);
	if (levels->log ||
		index->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED)
		smgrimmedsync(RelationGetSmgr(index), MAIN_FORKNUM);
}
