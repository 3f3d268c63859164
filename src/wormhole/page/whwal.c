/*-------------------------------------------------------------------------
 *
 * whwal.c
 *	  Changes of pages in the WAL.
 *
 * All but one of them are records of generic WAL that core puts together
 * (wh_register).  The exception is the insert of one entry.
 *
 * Generic WAL finds out what changed on a page by comparing it with a copy of
 * the whole page.  For an insert, which we know exactly, that costs several
 * times the insert itself.  So this one change is made in place and its
 * fragments are put into the record directly.  The record is an ordinary
 * generic WAL record: for each block offset, length and bytes of what changed
 * (access/transam/generic_xlog.c), replayed by core.  Between pd_lower and
 * pd_upper replay leaves zeros, as there are here: entries are only ever
 * removed by rewriting the page.
 *
 * Scans mark entries dead without WAL (scan/whkill.c) and then set WH_KILLED.
 * The next record of such a page has all its slots, so that replay makes the
 * same page.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "wormhole/page/whpage.h"

/* A changed stretch of a page, as generic WAL has it before its bytes. */
typedef struct Fragment
{
	OffsetNumber offset;
	OffsetNumber length;
} Fragment;

/*
 * Registers a stretch of the first block's page.
 */
static void
register_fragment(Page page, Fragment *fragment, int offset, int length)
{
	fragment->offset = offset;
	fragment->length = length;
	XLogRegisterBufData(0, (char *) fragment, sizeof(*fragment));
	XLogRegisterBufData(0, (char *) page + offset, length);
}

/*
 * Inserts an item into a leaf, locked exclusively, where there is room for it.
 */
void
wh_log_insert(Relation index, Buffer buffer, int at, const WhItem *item)
{
	Page		page = BufferGetPage(buffer);
	WhHeader	header = WhPageHeader(page);
	int			first;
	int			last;
	Fragment	fragments[4];

	START_CRIT_SECTION();
	wh_leaf_insert(page, at, item, &first, &last);
	if (header->flags & WH_KILLED)
	{
		first = 0;
		last = header->nslots;
	}
	header->flags &= ~WH_KILLED;
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(index))
	{
		PageHeader	standard = (PageHeader) page;
		XLogRecPtr	lsn;

		XLogBeginInsert();
		XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
		register_fragment(page, &fragments[0],
						  offsetof(PageHeaderData, pd_lower),
						  sizeof(standard->pd_lower) +
						  sizeof(standard->pd_upper));
		register_fragment(page, &fragments[1],
						  offsetof(WhHeaderData, nslots),
						  sizeof(header->nslots) + sizeof(header->flags));
		register_fragment(page, &fragments[2],
						  header->slots_off + first * sizeof(WhSlot),
						  (last - first) * sizeof(WhSlot));
		register_fragment(page, &fragments[3], standard->pd_upper,
						  wh_item_size(item));
		lsn = XLogInsert(RM_GENERIC_ID, 0);
		PageSetLSN(page, lsn);
	}
	END_CRIT_SECTION();
}

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
