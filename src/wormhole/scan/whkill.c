/*-------------------------------------------------------------------------
 *
 * whkill.c
 *	  Marking entries whose rows are dead to all.
 *
 * A scan that finds a row dead to all marks its entry, so that later scans do
 * not visit the table for it.  An insert that finds no room removes marked
 * entries (write/whdead.c).
 *
 * A mark is a hint: it is set under a share lock and without WAL.  A record of
 * generic WAL has only the bytes that changed.  Replay would apply it to a
 * page without the marks.  Therefore setting a mark also sets WH_KILLED, and
 * the next record of the page has all marks (page/whwal.c).
 *
 * The marked entry must still be that of the dead row.  This is certain in two
 * cases.  If the scan has kept its pin, VACUUM has removed no entry, so no TID
 * was used for another row.  If the page's LSN is the one that the scan read,
 * the page has not changed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "wormhole/scan/whscan_impl.h"

/*
 * Are these items all the rows of the entry in their slot?
 */
static bool
is_whole_entry(Page page, const WhScanItem *items, int n)
{
	int			at = WhItemSlot(items);
	const ItemPointerData *tids;
	WhEntry		entry;

	if (at >= WhPageHeader(page)->nslots || wh_is_gap(page, at))
		return false;
	wh_entry(page, at, &entry);
	if (wh_entry_tids(page, &entry, &tids) != n)
		return false;
	for (int i = 0; i < n; i++)
	{
		if (memcmp(&tids[i], &items[i].tid, sizeof(ItemPointerData)) != 0)
			return false;
	}
	return true;
}

/*
 * Marks the entries whose items in the batch are all killed.  Returns whether
 * a new mark was set.  The page is share-locked.
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
		int			at = WhItemSlot(&items[i]);

		for (end = i; end < batch->nitems &&
			 WhItemSlot(&items[end]) == at; end++)
			killed &= (items[end].slot & WH_ITEM_KILLED) != 0;
		if (!killed || !is_whole_entry(page, &items[i], end - i))
			continue;
		marked |= !wh_is_dead(page, at);
		wh_set_dead(page, at, true);
	}
	return marked;
}

/*
 * Marks entries in the leaf of a batch whose items the scan has killed.  The
 * leaf is not locked before and after.  A pin of the batch is kept.
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
		RF_MAY_SET_HINTS(buffer) && mark_entries(page, batch))
	{
		WhPageHeader(page)->flags |= WH_KILLED;
		RF_HINTS_SET(buffer);
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (!pinned)
		ReleaseBuffer(buffer);
}
