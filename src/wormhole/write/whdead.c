/*-------------------------------------------------------------------------
 *
 * whdead.c
 *	  Removing entries whose rows are dead to all.
 *
 * Scans mark such entries (scan/whkill.c).  An insert that finds no room
 * removes the marked ones before it splits the leaf.  If that is not enough, and
 * its row seems to be a version of one that is in the index, it asks the table
 * which rows of the leaf are dead.  The unique check has those of its key removed
 * if they are many.
 *
 * On the primary a removal need not wait.  TIDs are used for other rows only
 * after VACUUM has been through all leaves with cleanup locks, so a scan with
 * a pin may trust them.  But on a standby an older snapshot may still see the
 * rows.  So a record before the removal makes the standby cancel queries with
 * such snapshots (core/record.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/transam.h"
#include "catalog/pg_am_d.h"
#include "core/core.h"
#include "wormhole/write/whwrite.h"

/*
 * Bytes that the table is asked for when versions are removed.  (nbtree asks for an eighth of
 * that; but here the record of a removal may have the whole page.)
 */
#define VERSIONS_SIZE	(BLCKSZ / 2)

/*
 * A transaction's number with its epoch.  The transaction is not in the
 * future.
 */
static FullTransactionId
with_epoch(TransactionId xid)
{
	FullTransactionId next = ReadNextFullTransactionId();
	uint32		epoch = EpochFromFullTransactionId(next);

	if (xid > XidFromFullTransactionId(next))
		epoch--;
	return FullTransactionIdFromEpochAndXid(epoch, xid);
}

/*
 * Makes standbys cancel queries that may still see rows deleted by
 * transactions up to this one.  Does nothing for InvalidTransactionId.
 */
static void
log_conflict(Relation index, BlockNumber block, TransactionId xid)
{
	if (TransactionIdIsValid(xid))
		rf_core_log_conflict(index, block, with_epoch(xid));
}

/* What is to be removed from a leaf besides the entries that are marked. */
typedef struct Search
{
	Relation	index;
	Relation	heap;
	Buffer		buffer;
	bool		versions;		/* rows that the table finds dead */
	const WhKey *key;			/* or rows of this key; NULL: none */
	const ItemPointerData *tids;	/* these, sorted */
	int			ntids;
} Search;

/*
 * Are some of an item's neighbours, or of its own rows, of the same key?
 */
static bool
has_versions(const WhItemSet *set, int i)
{
	const WhItem *item = wh_item(set, i);

	if (item->ntids > 1)
		return true;
	for (int j = i - 1; j <= i + 1; j += 2)
	{
		if (j >= 0 && j < set->n && wh_same_key(wh_item(set, j), item))
			return true;
	}
	return false;
}

/*
 * Has an item the key of the search?
 */
static bool
has_key(const Search *search, const WhItemSet *set, const WhItem *item)
{
	return search->key != NULL &&
		search->key->len == set->prefix_len + item->len &&
		memcmp(search->key->data + set->prefix_len, item->rest, item->len) == 0;
}

/*
 * qsort() comparator: TIDs.
 */
static int
compare_tids(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) a, (ItemPointer) b);
}

/*
 * Adds TIDs of an item to those that the table, which has nblocks blocks, is asked about.  The
 * first of the item has this number in the leaf.  Raises an error if the table has no such block.
 * Returns whether asking is worthwhile for this item's sake.
 */
static bool
ask_about_item(const Search *search, const WhItemSet *set, int i, int number,
			   BlockNumber nblocks, TM_IndexDeleteOp *op)
{
	const WhItem *item = wh_item(set, i);
	bool		all = search->versions || (item->flags & WH_DEAD);
	bool		promising = !search->versions || has_versions(set, i);
	bool		found = false;

	if (!all && !has_key(search, set, item))
		return false;
	for (int t = 0; t < item->ntids; t++, number++)
	{
		ItemPointerData tid;
		TM_IndexStatus *status = &op->status[number];

		memcpy(&tid, &item->tids[t], sizeof(tid));
		if (!all && bsearch(&tid, search->tids, search->ntids, sizeof(tid), compare_tids) == NULL)
			continue;
		if (ItemPointerGetBlockNumber(&tid) >= nblocks)
			wh_report_damage(search->index, BufferGetBlockNumber(search->buffer));
		op->deltids[op->ndeltids].tid = tid;
		op->deltids[op->ndeltids++].id = number;
		status->idxoffnum = i + 1;
		status->knowndeletable = !search->versions;
		status->promising = search->versions && promising;
		status->freespace = sizeof(tid) + (t == 0 ? item->len : 0);
		found = promising;
	}
	return found;
}

/*
 * Asks the table about TIDs of a leaf: up to which transaction a snapshot could see the rows
 * that are known to be dead or, if versions are looked for, which rows are.  Notes in dead, by
 * their number in the leaf, those that are to be removed.  Makes standbys cancel queries that
 * may still see the rows.  Returns whether there are any.
 */
static bool
find_dead(const Search *search, const WhItemSet *set, bool *dead)
{
	BlockNumber block = BufferGetBlockNumber(search->buffer);
	TM_IndexDeleteOp op = {.irel = search->index,.iblknum = block};
	TM_IndexStatus *status = palloc0(WH_MAX_TIDS * sizeof(TM_IndexStatus));

	/* Access methods other than heap may count in another way. */
	BlockNumber nblocks = search->heap->rd_rel->relam == HEAP_TABLE_AM_OID ?
	RelationGetNumberOfBlocks(search->heap) : InvalidBlockNumber;
	bool		worthwhile = false;
	bool		found = false;
	int			number = 0;

	op.bottomup = search->versions;
	op.bottomupfreespace = search->versions ? VERSIONS_SIZE : 0;
	op.deltids = palloc(WH_MAX_TIDS * sizeof(TM_IndexDelete));
	op.status = status;
	for (int i = 0; i < set->n; number += wh_item(set, i)->ntids, i++)
		worthwhile |= ask_about_item(search, set, i, number, nblocks, &op);
	if (worthwhile)
		log_conflict(search->index, block, table_index_delete_tuples(search->heap, &op));
	for (int i = 0; i < number; i++)
	{
		dead[i] = status[i].knowndeletable;
		found |= dead[i];
	}
	pfree(op.deltids);
	pfree(status);
	return found;
}

/*
 * Removes TIDs from a leaf's items, and items that have none left.  dead tells which, by their
 * number in the leaf.  Notes the changes.  kept has room for WH_MAX_TIDS TIDs: those of lists
 * that lose some.
 */
void
wh_remove_tids(WhItemSet *set, const bool *dead, ItemPointerData *kept,
			   WhRemoval *removal)
{
	int			left = 0;

	removal->size = 0;
	for (int i = 0; i < set->n; i++)
	{
		WhItem		item = *wh_item(set, i);
		int			n = 0;

		for (int t = 0; t < item.ntids; t++)
		{
			if (!*dead++)
				memcpy(&kept[n++], &item.tids[t], sizeof(ItemPointerData));
		}
		if (n < item.ntids)
		{
			item.tids = kept;
			item.ntids = n;
			item.flags &= ~WH_DEAD;
			if (n == 1)
				item.flags &= ~WH_POSTING;
			kept += n;
			wh_note_removal(removal, i, item.tids, n);
		}
		if (n > 0)
			set->items[left++] = item;
	}
	set->n = left;
}

/*
 * Has a leaf entries that are marked dead?  A gap has the mark of the entry that it
 * was copied from.
 */
static bool
has_dead(Page page)
{
	for (int i = 0; i < WhPageHeader(page)->nslots; i++)
	{
		if (wh_is_dead(page, i) && !wh_is_gap(page, i))
			return true;
	}
	return false;
}

/*
 * Removes what find_dead() finds from a leaf, which is locked exclusively, and stays locked.
 * Returns whether that was anything.
 */
static bool
remove_found(const Search *search)
{
	bool	   *dead = palloc(WH_MAX_TIDS * sizeof(bool));
	ItemPointerData *kept = palloc(WH_MAX_TIDS * sizeof(ItemPointerData));
	uint8	   *space = palloc(WH_BOUNDS_SPACE);
	Page		page = BufferGetPage(search->buffer);
	WhRemoval	removal;
	WhBounds	bounds;
	WhItemSet	set;
	bool		found;

	wh_page_bounds(page, &bounds, space);
	wh_items_begin(&set);
	wh_items_load(&set, page);
	found = find_dead(search, &set, dead);
	if (found)
	{
		wh_remove_tids(&set, dead, kept, &removal);
		wh_log_removal(search->index, search->buffer, &set, &bounds, &removal);
	}
	wh_items_end(&set);
	pfree(dead);
	pfree(kept);
	pfree(space);
	return found;
}

/*
 * Removes the entries that are marked dead from a leaf.  Returns whether there
 * were any.  Reads the table.  The leaf is locked exclusively, and stays
 * locked.
 */
bool
wh_remove_dead(Relation index, Relation heap, Buffer buffer)
{
	const Search search = {.index = index,.heap = heap,.buffer = buffer};

	return has_dead(BufferGetPage(buffer)) && remove_found(&search);
}

/*
 * Removes rows of a key, too, which the caller has found dead to all while the leaf was
 * locked.  Sorts their TIDs.  Otherwise like wh_remove_dead().
 */
bool
wh_remove_rows(Relation index, Relation heap, Buffer buffer, const WhKey *key,
			   ItemPointerData *tids, int ntids)
{
	const Search search = {.index = index,.heap = heap,.buffer = buffer,
	.key = key,.tids = tids,.ntids = ntids};

	qsort(tids, ntids, sizeof(*tids), compare_tids);
	return remove_found(&search);
}

/*
 * Removes rows that the table says are dead to all from a leaf in which keys have several
 * rows.  Returns whether there were any.  The table looks at few of its blocks, those with the
 * most of these rows first.  Otherwise like wh_remove_dead().
 */
bool
wh_remove_versions(Relation index, Relation heap, Buffer buffer)
{
	const Search search = {.index = index,.heap = heap,.buffer = buffer,
	.versions = true};

	return remove_found(&search);
}
