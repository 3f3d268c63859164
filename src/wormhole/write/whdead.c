/*-------------------------------------------------------------------------
 *
 * whdead.c
 *	  Removing entries whose rows are dead to all.
 *
 * Scans mark such entries (scan/whkill.c).  An insert that finds no room
 * removes the marked ones before it splits the leaf.
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
#include "core/core.h"
#include "wormhole/write/whwrite.h"

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

/*
 * The last transaction up to which a snapshot could see a row of the items
 * that are marked dead, according to the table.  InvalidTransactionId for
 * none.  Reads the table.
 */
static TransactionId
conflict_horizon(Relation index, Relation heap, BlockNumber block,
				 const WhItemSet *set)
{
	TM_IndexDeleteOp op = {.irel = index,.iblknum = block};
	TransactionId xid;

	op.deltids = palloc(WH_MAX_TIDS * sizeof(TM_IndexDelete));
	op.status = palloc0(WH_MAX_TIDS * sizeof(TM_IndexStatus));
	for (int i = 0; i < set->n; i++)
	{
		const WhItem *item = wh_item(set, i);

		if (!(item->flags & WH_DEAD))
			continue;
		for (int t = 0; t < item->ntids; t++)
		{
			int			at = op.ndeltids++;

			memcpy(&op.deltids[at].tid, &item->tids[t],
				   sizeof(ItemPointerData));
			op.deltids[at].id = at;
			op.status[at].idxoffnum = i + 1;
			op.status[at].knowndeletable = true;
		}
	}
	xid = table_index_delete_tuples(heap, &op);
	pfree(op.deltids);
	pfree(op.status);
	return xid;
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
 * Removes the entries that are marked dead from a leaf.  Returns whether there
 * were any.  Reads the table.  The leaf is locked exclusively, and stays
 * locked.
 */
bool
wh_remove_dead(Relation index, Relation heap, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	WhRemoval	removal;
	WhBounds	bounds;
	WhItemSet	set;
	uint8	   *space;
	int			n = 0;

	if (!has_dead(page))
		return false;
	removal.size = 0;
	space = palloc(WH_BOUNDS_SPACE);
	wh_page_bounds(page, &bounds, space);
	wh_items_begin(&set);
	wh_items_load(&set, page);
	log_conflict(index, BufferGetBlockNumber(buffer),
				 conflict_horizon(index, heap, BufferGetBlockNumber(buffer),
								  &set));
	for (int i = 0; i < set.n; i++)
	{
		const WhItem *item = wh_item(&set, i);

		if (item->flags & WH_DEAD)
			wh_note_removal(&removal, i, item->tids, 0);
		else
			set.items[n++] = *item;
	}
	set.n = n;
	wh_log_removal(index, buffer, &set, &bounds, &removal);
	wh_items_end(&set);
	pfree(space);
	return true;
}
