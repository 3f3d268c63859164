/*-------------------------------------------------------------------------
 *
 * whbuild.c
 *	  Building an index from sorted keys.
 *
 * The rows are sorted as byte strings: key, TID, whether the row lives, and
 * payload.  From these the levels are written side by side.  Each gathers
 * entries until the next one would not fit on the page any more, which depends
 * on where the page ends: the more its bounds have in common, the more fits.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/tableam.h"
#include "access/xloginsert.h"
#include "catalog/index.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "commands/progress.h"
#include "compat.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_bswap.h"
#include "utils/tuplesort.h"
#include "wormhole/wormhole.h"

/* Of a row to be sorted. */
#define ROW_ALIVE	0x01
#define ROW_NULLS	0x02		/* some key column is null */

/* What follows the key in the byte string that is sorted. */
typedef struct RowTail
{
	uint8		tid[sizeof(ItemPointerData)];	/* the highest byte first */
	uint8		flags;
	/* payload and its length, two bytes, follow */
} RowTail;

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
	struct Build *build;
	int			number;
	BlockNumber block;			/* of the page being gathered */
	BlockNumber prev;
	bool		wrote;			/* a page has been finished */
	WhKey		low;			/* of that page, in low_space */
	uint8	   *low_space;
	int			n;
	int			fits;			/* so many entries made a page that fits */
	int			prefix;			/* what size was counted with */
	int			size;			/* of the entries behind that prefix */
	StringInfoData bytes;		/* keys and payloads */
	Gathered	entries[WH_MAX_ENTRIES + 2];
	int			ntids;
	ItemPointerData *tids;
	int			max_tids;
	struct Level *parent;
} Level;

typedef struct Build
{
	Relation	heap;
	Relation	index;
	IndexInfo  *index_info;
	uint64		identity;
	Tuplesortstate *sort;
	double		ntuples;
	StringInfoData key;
	StringInfoData payload;
	Level	   *leaves;
	WhItemSet	set;			/* of a page being written */
	PGAlignedBlock page;
} Build;

/*
 * Appends a zeroed block to the index.
 */
static BlockNumber
new_block(Relation index)
{
	Buffer		buffer = ReadBuffer(index, P_NEW);
	BlockNumber block = BufferGetBlockNumber(buffer);

	ReleaseBuffer(buffer);
	return block;
}

/*
 * Writes a page and logs it.
 */
static void
write_page(Relation index, ForkNumber fork, BlockNumber block, Page page)
{
	Buffer		buffer = ReadBufferExtended(index, fork, block, RBM_NORMAL,
											NULL);

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	START_CRIT_SECTION();
	memcpy(BufferGetPage(buffer), page, BLCKSZ);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(index) || fork == INIT_FORKNUM)
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}

/*
 * Makes a level whose first page is the given block.
 */
static Level *
new_level(Build *build, int number, BlockNumber block)
{
	Level	   *level = palloc0(sizeof(Level));

	level->build = build;
	level->number = number;
	level->block = block;
	level->prev = InvalidBlockNumber;
	level->low_space = palloc(BLCKSZ);
	level->low.data = level->low_space;
	level->max_tids = WH_MAX_TIDS;
	level->tids = palloc(level->max_tids * sizeof(ItemPointerData));
	initStringInfo(&level->bytes);
	return level;
}

/*
 * A gathered entry as an item with its whole key.
 */
static void
entry_item(Level *level, int at, WhItem *item)
{
	Gathered   *entry = &level->entries[at];

	memset(item, 0, sizeof(*item));
	item->rest = (uint8 *) level->bytes.data + entry->key_off;
	item->len = entry->key_len;
	item->child = entry->child;
	item->ntids = entry->ntids;
	item->tids = level->tids + entry->first_tid;
	if (entry->child != InvalidBlockNumber)
		item->flags = entry->ntids > 0 ? WH_ANCHOR_TID : 0;
	else if (entry->ntids > 1)
		item->flags = WH_POSTING;
	if (entry->payload_len > 0)
	{
		item->flags |= WH_PAYLOAD;
		item->payload = item->rest + item->len;
		item->payload_len = entry->payload_len;
	}
}

/*
 * A gathered entry's key with its first TID.
 */
static void
entry_key(Level *level, int at, WhKey *key)
{
	Gathered   *entry = &level->entries[at];

	key->data = (uint8 *) level->bytes.data + entry->key_off;
	key->len = entry->key_len;
	key->has_tid = entry->ntids > 0;
	if (key->has_tid)
		key->tid = level->tids[entry->first_tid];
}

static int
common_length(const WhKey *a, const WhKey *b)
{
	int			most = Min(a->len, b->len);
	int			len = 0;

	while (len < most && a->data[len] == b->data[len])
		len++;
	return len;
}

/*
 * The bounds of a page of the first n gathered entries, where there are more.
 * In leaves the high bound is the shortest string between the neighbours.
 */
static void
page_bounds(Level *level, int n, WhBounds *bounds)
{
	WhKey		before;
	int			common;

	bounds->low = level->low;
	bounds->rightmost = false;
	entry_key(level, n, &bounds->high);
	if (level->number > 0)
		return;
	entry_key(level, n - 1, &before);
	common = common_length(&before, &bounds->high);
	if (common == before.len && common == bounds->high.len)
		return;
	bounds->high.len = Min(common + 1, bounds->high.len);
	bounds->high.has_tid = false;
}

/*
 * The size of the first n entries behind a prefix.
 */
static int
entries_size(Level *level, int n, int prefix)
{
	int			size = 0;

	for (int i = 0; i < n; i++)
	{
		WhItem		item;

		entry_item(level, i, &item);
		item.len = Max(item.len - prefix, 0);
		size += wh_item_size(&item) + sizeof(WhSlot);
	}
	return size;
}

/*
 * The size of a page of the first n gathered entries, counting anew only what
 * has changed since the last time.
 */
static int
page_size(Level *level, int n, const WhBounds *bounds)
{
	int			prefix = bounds->rightmost ? 0 :
	common_length(&bounds->low, &bounds->high);
	int			size = bounds->low.len + sizeof(ItemPointerData);

	if (!bounds->rightmost)
		size += bounds->high.len - prefix + sizeof(ItemPointerData);
	return TYPEALIGN(sizeof(WhSlot), size) + entries_size(level, n, prefix);
}

static void add_child(Level *level, const WhKey *anchor, BlockNumber child);

/*
 * Writes the first n gathered entries as a page.
 */
static void
finish_page(Level *level, int n, const WhBounds *bounds)
{
	Build	   *build = level->build;
	WhHeader	header = WhPageHeader(build->page.data);
	BlockNumber block = level->block;
	BlockNumber next = bounds->rightmost ? InvalidBlockNumber :
	new_block(build->index);

	CHECK_FOR_INTERRUPTS();
	for (int i = 0; i < n; i++)
		entry_item(level, i, &build->set.items[i]);
	build->set.n = n;
	header->identity = build->identity;
	header->level = level->number;
	wh_items_store(&build->set, 0, n, build->page.data, bounds);
	header->prev = level->prev;
	header->next = next;
	write_page(build->index, MAIN_FORKNUM, block, build->page.data);

	if (!bounds->rightmost || level->wrote)
	{
		if (level->parent == NULL)
			level->parent = new_level(build, level->number + 1,
									  new_block(build->index));
		add_child(level->parent, &level->low, block);
	}
	level->wrote = true;
	level->prev = block;
	level->block = next;
}

/*
 * Forgets the first n gathered entries, which have been written.
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

	memmove(level->bytes.data, level->bytes.data + off,
			level->bytes.len - off);
	level->bytes.len -= off;
	memmove(level->tids, level->tids + tid,
			(level->ntids - tid) * sizeof(ItemPointerData));
	level->ntids -= tid;
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
 * How much of a page's content entries may take.
 */
static int
page_budget(Level *level)
{
	int			fillfactor = level->number == 0 ?
	wh_index_options(level->build->index)->fillfactor :
	WH_DIRECTORY_FILLFACTOR;

	return WH_PAGE_CONTENT * fillfactor / 100;
}

/*
 * Writes the first n entries as a page; others follow.
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
 * The size of the entries before the last one as a page that ends before that
 * one, with a running sum.
 */
static int
size_before_last(Level *level, const WhBounds *bounds)
{
	int			n = level->n - 1;
	int			prefix = common_length(&bounds->low, &bounds->high);
	int			size = bounds->low.len + bounds->high.len - prefix +
	2 * sizeof(ItemPointerData);

	if (level->size < 0 || prefix != level->prefix)
	{
		level->prefix = prefix;
		level->size = entries_size(level, n, prefix);
	}
	else
	{
		WhItem		item;

		entry_item(level, n - 1, &item);
		item.len = Max(item.len - prefix, 0);
		level->size += wh_item_size(&item) + sizeof(WhSlot);
	}
	return TYPEALIGN(sizeof(WhSlot), size) + level->size;
}

/*
 * After an entry has been added: does what came before still fit on a page?
 */
static void
check_page(Level *level)
{
	WhBounds	bounds;
	int			size;

	if (level->n < 2)
		return;
	page_bounds(level, level->n - 1, &bounds);
	size = size_before_last(level, &bounds);
	if (size <= page_budget(level) ||
		(level->fits == 0 && size <= (int) WH_PAGE_CONTENT))
		level->fits = level->n - 1;
	if ((size > page_budget(level) && level->fits > 0 &&
		 level->fits < level->n - 1) || level->n > (int) WH_MAX_ENTRIES)
	{
		if (level->fits == 0)
			elog(ERROR, "wormhole build: an entry does not fit on a page");
		write_first(level, level->fits);
	}
}

/*
 * Appends an entry to those gathered.
 */
static Gathered *
add_entry(Level *level, const uint8 *key, int len)
{
	Gathered   *entry = &level->entries[level->n++];

	entry->key_off = level->bytes.len;
	entry->key_len = len;
	entry->payload_len = 0;
	entry->first_tid = level->ntids;
	entry->ntids = 0;
	entry->child = InvalidBlockNumber;
	appendBinaryStringInfo(&level->bytes, (const char *) key, len);
	return entry;
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
		level->tids = repalloc(level->tids,
							   level->max_tids * sizeof(ItemPointerData));
	}
	level->tids[level->ntids++] = *tid;
	level->entries[level->n - 1].ntids++;
}

/*
 * Adds a finished page to the level above it.
 */
static void
add_child(Level *level, const WhKey *anchor, BlockNumber child)
{
	Gathered   *entry = add_entry(level, anchor->data, anchor->len);

	entry->child = child;
	if (anchor->has_tid)
		add_tid(level, &anchor->tid);
	check_page(level);
}

/*
 * Writes what is gathered on a level, in pages the last of which has no high
 * bound, and so no prefix; then the levels above.  Returns the root.
 */
static BlockNumber
finish_level(Level *level, int *root_level)
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
			if (page_size(level, n, &bounds) <= page_budget(level))
				break;
		}
		write_first(level, n);
	}
	if (level->parent != NULL)
		return finish_level(level->parent, root_level);
	*root_level = level->number;
	return level->prev;
}

/*
 * Does the last leaf entry have this key, and room for one more TID?
 */
static bool
continues_last(Level *level, const uint8 *key, int len, int payload_len)
{
	Gathered   *entry = &level->entries[level->n - 1];

	return level->n > 0 && payload_len == 0 && entry->payload_len == 0 &&
		entry->ntids < WH_MAX_POSTING && entry->key_len == len &&
		memcmp(level->bytes.data + entry->key_off, key, len) == 0;
}

/*
 * table_index_build_scan callback: sorts in one row.
 */
static void
sort_row(Relation index, ItemPointer tid, Datum *values, bool *isnull,
		 bool alive, void *arg)
{
	Build	   *build = arg;
	uint32		block = pg_hton32(ItemPointerGetBlockNumber(tid));
	uint16		offset = pg_hton16(ItemPointerGetOffsetNumber(tid));
	uint16		payload_len;
	uint8		flags = alive ? ROW_ALIVE : 0;

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		flags |= isnull[i] ? ROW_NULLS : 0;
	resetStringInfo(&build->key);
	resetStringInfo(&build->payload);
	appendStringInfoSpaces(&build->key, VARHDRSZ);
	wh_encode(index, values, isnull, &build->key, &build->payload);
	payload_len = build->payload.len;
	wh_check_size(index, build->heap, build->key.len - VARHDRSZ, payload_len);
	appendBinaryStringInfo(&build->key, (char *) &block, sizeof(block));
	appendBinaryStringInfo(&build->key, (char *) &offset, sizeof(offset));
	appendBinaryStringInfo(&build->key, (char *) &flags, sizeof(flags));
	appendBinaryStringInfo(&build->key, build->payload.data, payload_len);
	appendBinaryStringInfo(&build->key, (char *) &payload_len,
						   sizeof(payload_len));
	SET_VARSIZE(build->key.data, build->key.len);
	tuplesort_putdatum(build->sort, PointerGetDatum(build->key.data), false);
	build->ntuples++;
}

/* The row before, while rows come back in order. */
typedef struct LastRow
{
	StringInfoData key;
	bool		alive;			/* one with this key lives */
} LastRow;

/*
 * Raises the error of a unique index over rows that are not.
 */
static void
report_not_unique(Build *build, const uint8 *key, int len,
				  const uint8 *payload, int payload_len)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	char	   *description;

	wh_decode(build->index, key, len, payload_len > 0 ? payload : NULL,
			  payload_len, values, isnull);
	description = BuildIndexValueDescription(build->index, values, isnull);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("could not create unique index \"%s\"",
					RelationGetRelationName(build->index)),
			 description ? errdetail("Key %s is duplicated.", description) :
			 errdetail("Duplicate keys exist."),
			 errtableconstraint(build->heap,
								RelationGetRelationName(build->index))));
}

/*
 * Checks a row of a unique index against the one before.
 */
static void
check_unique(Build *build, LastRow *last, const uint8 *key, int len,
			 uint8 flags, const uint8 *payload, int payload_len)
{
	bool		same = last->key.len == len &&
	memcmp(last->key.data, key, len) == 0;

	if (!same)
	{
		resetStringInfo(&last->key);
		appendBinaryStringInfo(&last->key, (const char *) key, len);
		last->alive = false;
	}
	if (!(flags & ROW_ALIVE) ||
		((flags & ROW_NULLS) && !build->index_info->ii_NullsNotDistinct))
		return;
	if (last->alive)
		report_not_unique(build, key, len, payload, payload_len);
	last->alive = true;
}

/*
 * Adds a sorted row to the leaves.
 */
static void
add_row(Build *build, LastRow *last, const uint8 *row, int len)
{
	Level	   *leaves = build->leaves;
	bool		deduplicate = wh_index_options(build->index)->deduplicate;
	uint16		payload_len;
	const uint8 *payload;
	const uint8 *tail;
	uint32		block;
	uint16		offset;
	ItemPointerData tid;

	memcpy(&payload_len, row + len - sizeof(payload_len), sizeof(payload_len));
	payload = row + len - sizeof(payload_len) - payload_len;
	tail = payload - sizeof(RowTail);
	memcpy(&block, tail, sizeof(block));
	memcpy(&offset, tail + sizeof(block), sizeof(offset));
	ItemPointerSet(&tid, pg_ntoh32(block), pg_ntoh16(offset));
	len = tail - row;
	if (build->index_info->ii_Unique)
		check_unique(build, last, row, len, tail[sizeof(tid)], payload,
					 payload_len);

	if (deduplicate && continues_last(leaves, row, len, payload_len))
	{
		add_tid(leaves, &tid);
		return;
	}
	/* Only now is the entry before this one complete. */
	add_entry(leaves, row, len)->payload_len = payload_len;
	appendBinaryStringInfo(&leaves->bytes, (const char *) payload,
						   payload_len);
	add_tid(leaves, &tid);
	check_page(leaves);
}

/*
 * Writes all levels from the sorted rows, and the metapage.
 */
static void
write_index(Build *build)
{
	LastRow		last = {.alive = false};
	BlockNumber root;
	int			root_level;
	Datum		row;
	bool		isnull;
	int64		done = 0;

	initStringInfo(&last.key);
	wh_items_begin(&build->set);
	build->set.prefix = (const uint8 *) "";
	if (new_block(build->index) != WH_META_BLKNO)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(build->index));
	build->leaves = new_level(build, 0, new_block(build->index));
	while (RF_TUPLESORT_GETDATUM(build->sort, &row, &isnull))
	{
		bytea	   *bytes = DatumGetByteaPP(row);

		add_row(build, &last, (uint8 *) VARDATA_ANY(bytes),
				VARSIZE_ANY_EXHDR(bytes));
		if (DatumGetPointer(row) != (Pointer) bytes)
			pfree(bytes);
		pfree(DatumGetPointer(row));
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, ++done);
	}
	root = finish_level(build->leaves, &root_level);
	wh_init_meta_page(build->index, build->page.data, build->identity, root,
					  root_level);
	write_page(build->index, MAIN_FORKNUM, WH_META_BLKNO, build->page.data);
	wh_items_end(&build->set);
}

/*
 * ambuild.
 */
IndexBuildResult *
wh_build(Relation heap, Relation index, IndexInfo *index_info)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));
	Build	   *build = palloc0(sizeof(Build));

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));
	wh_check_definition(index, index_info);
	build->heap = heap;
	build->index = index;
	build->index_info = index_info;
	build->identity = wh_new_identity();
	initStringInfo(&build->key);
	initStringInfo(&build->payload);
	build->sort = tuplesort_begin_datum(BYTEAOID, ByteaLessOperator,
										InvalidOid, false,
										maintenance_work_mem, NULL,
										TUPLESORT_NONE);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, WH_PHASE_SCAN);
	result->heap_tuples = table_index_build_scan(heap, index, index_info,
												 true, true, sort_row, build,
												 NULL);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, WH_PHASE_SORT);
	tuplesort_performsort(build->sort);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, WH_PHASE_WRITE);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL,
								 (int64) build->ntuples);
	write_index(build);
	tuplesort_end(build->sort);
	result->index_tuples = build->ntuples;
	return result;
}

/*
 * ambuildempty: the init fork of an unlogged index.
 */
void
wh_buildempty(Relation index)
{
	WhBounds	all = {.low.data = (const uint8 *) "",.rightmost = true};
	uint64		identity = wh_new_identity();
	PGAlignedBlock page;

	for (BlockNumber block = 0; block <= WH_FIRST_LEAF; block++)
	{
		Buffer		buffer = ReadBufferExtended(index, INIT_FORKNUM, P_NEW,
												RBM_NORMAL, NULL);

		ReleaseBuffer(buffer);
	}
	wh_init_meta_page(index, page.data, identity, WH_FIRST_LEAF, 0);
	write_page(index, INIT_FORKNUM, WH_META_BLKNO, page.data);
	wh_init_page(page.data, identity, 0, &all);
	write_page(index, INIT_FORKNUM, WH_FIRST_LEAF, page.data);
}
