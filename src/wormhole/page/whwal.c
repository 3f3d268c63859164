/*-------------------------------------------------------------------------
 *
 * whwal.c
 *	  WAL records of changes to pages.
 *
 * All but one are records of generic WAL that core puts together
 * (wh_register).  The exception is the insert of one entry: its change is
 * known exactly, so the page is changed in place, and core/record.c is told
 * which bytes changed.  Replay sets the bytes between pd_lower and pd_upper to
 * zero.  They are zero here, too: entries are only removed by rewriting the
 * page.
 *
 * Scans mark entries dead without WAL (scan/whkill.c) and then set WH_KILLED.
 * The next record of such a page has all its slots, so that replay makes the
 * same page.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "core/core.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "wormhole/page/whpage.h"

/*
 * Inserts an item into a leaf's page.  Sets stretches to the bytes that it
 * changes.
 */
static void
insert_item(Page page, int at, const WhItem *item, RfCoreStretch stretches[4])
{
	PageHeader	standard = (PageHeader) page;
	WhHeader	header = WhPageHeader(page);
	int			first;
	int			last;

	wh_leaf_insert(page, at, item, &first, &last);
	if (header->flags & WH_KILLED)
	{
		first = 0;
		last = header->nslots;
	}
	header->flags &= ~WH_KILLED;
	stretches[0].offset = offsetof(PageHeaderData, pd_lower);
	stretches[0].length = sizeof(standard->pd_lower) + sizeof(standard->pd_upper);
	stretches[1].offset = offsetof(WhHeaderData, nslots);
	stretches[1].length = sizeof(header->nslots) + sizeof(header->flags);
	stretches[2].offset = header->slots_off + first * sizeof(WhSlot);
	stretches[2].length = (last - first) * sizeof(WhSlot);
	stretches[3].offset = standard->pd_upper;
	stretches[3].length = wh_item_size(item);
}

/*
 * Inserts an item into a leaf that has room for it, and logs it.  The leaf is
 * locked exclusively, and stays locked.
 */
void
wh_log_insert(Relation index, Buffer buffer, int at, const WhItem *item)
{
	RfCoreStretch stretches[4];

	if (!rf_core_knows_stretches())
	{
		GenericXLogState *state = GenericXLogStart(index);

		insert_item(wh_register(state, buffer), at, item, stretches);
		GenericXLogFinish(state);
		return;
	}
	START_CRIT_SECTION();
	insert_item(BufferGetPage(buffer), at, item, stretches);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(index))
		rf_core_log_stretches(buffer, stretches, lengthof(stretches));
	END_CRIT_SECTION();
}

/*
 * Registers a page for a generic WAL record; as a full image if entries were
 * marked dead since its last record.  The buffer is locked exclusively.
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
