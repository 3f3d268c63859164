/*-------------------------------------------------------------------------
 *
 * whdead.c
 *	  Entries of rows that are dead to all.
 *
 * A scan that finds a row dead to all marks its entry, so that later scans do
 * not visit the table for it.  An insert that finds no room removes marked
 * entries first.
 *
 * A mark is a hint: it is set under a share lock and without WAL.  Generic WAL
 * describes a page's change by the bytes that differ from what the page was,
 * marks included, and so works on the same page only.  Therefore the first
 * record of a page after marks were set (WH_KILLED) carries them all.
 *
 * A mark needs the certainty that the entry is still of the row that is dead.
 * Either the scan has kept its pin: then no entry has been removed by VACUUM,
 * so no TID been used for another row.  Or the page has no record since.
 *
 * Removal must wait for nobody on the primary.  TIDs are free for other rows
 * only once VACUUM has been through all leaves with cleanup locks, so a scan
 * with a pin may go on trusting them.  But on a standby an older snapshot may
 * still see the rows, and generic WAL has no means to say so.  nbtree's record
 * for the reuse of a page does nothing but that: it is written before the
 * removal, and the standby cancels the queries in question when it comes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtxlog.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "compat.h"
#include "wormhole/scan/whscan.h"

/*
 * Registers a page for a generic WAL record, with all its marks.
 */
Page
wh_register(GenericXLogState *state, Buffer buffer)
{
	bool		killed =
	(WhPageHeader(BufferGetPage(buffer))->flags & WH_KILLED) != 0;
	Page		page = GenericXLogRegisterBuffer(state, buffer, killed ?
												 GENERIC_XLOG_FULL_IMAGE : 0);

	WhPageHeader(page)->flags &= ~WH_KILLED;
	return page;
}

/*
 * Are these items, of which all rows are dead, all there is in their slot?
 */
static bool
is_whole_entry(Page page, const WhScanItem *items, int n)
{
	int			at = WhItemSlot(items);
	const ItemPointerData *tids;

	if (at >= WhPageHeader(page)->nslots ||
		(WhSlots(page)[at].info & WH_GAP) ||
		wh_slot_tids(page, &WhSlots(page)[at], &tids) != n)
		return false;
	for (int i = 0; i < n; i++)
	{
		if (memcmp(&tids[i], &items[i].tid, sizeof(ItemPointerData)) != 0)
			return false;
	}
	return true;
}

/*
 * Marks the entries of which the batch's items are killed.  Returns whether
 * there were any.
 */
static bool
mark_entries(Page page, const WhBatch *batch)
{
	const WhScanItem *items = batch->items;
	bool		marked = false;
	int			end;

	for (int i = 0; i < batch->nitems; i = end)
	{
		bool		killed = true;
		WhSlot	   *slot;

		for (end = i; end < batch->nitems &&
			 WhItemSlot(&items[end]) == WhItemSlot(&items[i]); end++)
			killed &= (items[end].slot & WH_ITEM_KILLED) != 0;
		if (!killed || !is_whole_entry(page, &items[i], end - i))
			continue;
		slot = &WhSlots(page)[WhItemSlot(&items[i])];
		marked |= !(slot->info & WH_DEAD);
		slot->info |= WH_DEAD;
	}
	return marked;
}

/*
 * Marks entries in the leaf of a batch, of which the scan killed items.  The
 * leaf is not locked; it is pinned if the batch says so, before and after.
 */
void
wh_mark_dead(Relation index, WhBatch *batch)
{
	bool		pinned = BufferIsValid(batch->buffer);
	Buffer		buffer = batch->buffer;
	Page		page;

	if (pinned)
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
	else
		buffer = wh_read(index, batch->block, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	if ((pinned || BufferGetLSNAtomic(buffer) == batch->lsn) &&
		mark_entries(page, batch))
	{
		WhPageHeader(page)->flags |= WH_KILLED;
		MarkBufferDirtyHint(buffer, true);
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (!pinned)
		ReleaseBuffer(buffer);
}

/*
 * A transaction's number with its epoch; it is not in the future.
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
 * Has standbys cancel queries that may still see rows deleted by transactions
 * up to this one.
 */
static void
log_conflict(Relation index, BlockNumber block, TransactionId xid)
{
	xl_btree_reuse_page record;

	if (!RelationNeedsWAL(index) || !XLogStandbyInfoActive() ||
		!TransactionIdIsValid(xid))
		return;
	memset(&record, 0, sizeof(record));
	RF_FILL_CONFLICT(record, index, block, with_epoch(xid));
	XLogBeginInsert();
	XLogRegisterData((char *) &record, SizeOfBtreeReusePage);
	(void) XLogInsert(RM_BTREE_ID, XLOG_BTREE_REUSE_PAGE);
}

/*
 * The last transaction whose snapshot could see one of the rows of the items
 * that are marked dead, according to the table.  InvalidTransactionId for
 * none.
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
		const WhItem *item = &set->items[i];

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

static bool
has_dead(Page page)
{
	for (int i = 0; i < WhPageHeader(page)->nslots; i++)
	{
		if (WhSlots(page)[i].info & WH_DEAD)
			return true;
	}
	return false;
}

/*
 * Removes the entries that are marked dead from a leaf, which is locked
 * exclusively.  Returns whether there were any.  Reads the table.
 */
bool
wh_remove_dead(Relation index, Relation heap, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	GenericXLogState *state;
	WhBounds	bounds;
	WhItemSet	set;
	uint8	   *space;
	int			n = 0;

	if (!has_dead(page))
		return false;
	space = palloc(WH_BOUNDS_SPACE);
	wh_page_bounds(page, &bounds, space);
	wh_items_begin(&set);
	wh_items_load(&set, page);
	log_conflict(index, BufferGetBlockNumber(buffer),
				 conflict_horizon(index, heap, BufferGetBlockNumber(buffer),
								  &set));
	for (int i = 0; i < set.n; i++)
	{
		if (!(set.items[i].flags & WH_DEAD))
			set.items[n++] = set.items[i];
	}
	set.n = n;
	state = GenericXLogStart(index);
	page = wh_register(state, buffer);
	wh_items_rewrite(&set, page, &bounds);
	GenericXLogFinish(state);
	wh_items_end(&set);
	pfree(space);
	return true;
}
