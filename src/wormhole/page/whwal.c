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
 * changes, and returns their number.  An insert into a gap changes neither
 * pd_lower nor the number of slots.
 */
static int
insert_item(Page page, int at, const WhItem *item, RfCoreStretch stretches[4])
{
	PageHeader	standard = (PageHeader) page;
	WhHeader	header = WhPageHeader(page);
	int			lower = standard->pd_lower;
	bool		killed = (header->flags & WH_KILLED) != 0;
	int			first;
	int			last;
	int			n = 0;

	wh_leaf_insert(page, at, item, &first, &last);
	if (killed)
	{
		first = 0;
		last = header->nslots;
	}
	header->flags &= ~WH_KILLED;
	if (killed || standard->pd_lower != lower)
	{
		stretches[n++] = (RfCoreStretch) {
			offsetof(PageHeaderData, pd_lower), 2 * sizeof(LocationIndex)};
		stretches[n++] = (RfCoreStretch) {
			offsetof(WhHeaderData, nslots), 2 * sizeof(uint16)};
	}
	else
		stretches[n++] = (RfCoreStretch) {
			offsetof(PageHeaderData, pd_upper), sizeof(LocationIndex)};
	stretches[n++] = (RfCoreStretch) {
		header->slots_off + first * sizeof(WhSlot),
		(last - first) * sizeof(WhSlot)};
	stretches[n++] = (RfCoreStretch) {
		standard->pd_upper, wh_item_size(item)};
	return n;
}

/*
 * Inserts an item into a leaf that has room for it, and logs it.  The leaf is
 * locked exclusively, and stays locked.
 */
void
wh_log_insert(Relation index, Buffer buffer, int at, const WhItem *item)
{
	RfCoreStretch stretches[4];
	int			n;

	if (!rf_core_knows_stretches())
	{
		GenericXLogState *state = GenericXLogStart(index);

		insert_item(wh_register(state, buffer), at, item, stretches);
		GenericXLogFinish(state);
		return;
	}
	START_CRIT_SECTION();
	n = insert_item(BufferGetPage(buffer), at, item, stretches);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(index))
		rf_core_log_stretches(buffer, stretches, n);
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
