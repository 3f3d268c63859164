/*-------------------------------------------------------------------------
 *
 * whwal.c
 *	  WAL records of changes to pages.
 *
 * Without a resource manager of our own all but one are records of generic
 * WAL that core puts together (wh_register).  The exception is the insert of
 * one entry: its change is known exactly, so the page is changed in place, and
 * core/record.c is told which bytes changed.  Replay sets the bytes between
 * pd_lower and pd_upper to zero.  They are zero here, too: entries are only
 * removed by rewriting the page.
 *
 * With a resource manager of our own (setting wormhole.resource_manager)
 * records of the frequent changes say what is done, and whredo.c does it
 * again: inserts, splits, removal of entries.  The others, which are rare,
 * stay records of generic WAL.
 *
 * Scans mark entries dead without WAL (scan/whkill.c) and then set WH_KILLED.
 * The next record of generic WAL of such a page has all its slots, so that
 * replay makes the same page.  Our own records do not depend on marks and do
 * not have them, so they leave WH_KILLED as it is.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/rmgr.h"
#include "access/xlog_internal.h"
#include "access/xloginsert.h"
#include "core/core.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "wormhole/page/whwal_impl.h"

/* The ID of our resource manager; 0: there is none. */
static int	manager_id = 0;

/*
 * Registers the resource manager under this ID.  To be called while
 * shared_preload_libraries are loaded.
 */
void
wh_register_manager(int id)
{
	static RmgrData manager =
	{
		.rm_name = "wormhole",
			.rm_redo = wh_redo,
			.rm_desc = wh_describe,
			.rm_identify = wh_identify,
			.rm_startup = wh_redo_startup,
			.rm_cleanup = wh_redo_cleanup,
			.rm_mask = wh_mask
	};

	RegisterCustomRmgr(id, &manager);
	manager_id = id;
}

/*
 * Are changes logged by our own resource manager?
 */
bool
wh_has_manager(void)
{
	return manager_id != 0;
}

/*
 * A stretch of a page, for a record.
 */
static inline RfCoreStretch
stretch(int offset, int length)
{
	return (RfCoreStretch)
	{
		.offset = offset,.length = length
	};
}

/*
 * Inserts an item into a leaf's page.  Sets stretches to the bytes that it
 * changes, and returns their number.  An insert into a gap changes neither
 * pd_lower nor the number of slots, and in a dense leaf not pd_upper either.
 */
static int
insert_item(Page page, int at, const WhItem *item, RfCoreStretch stretches[4])
{
	PageHeader	standard = (PageHeader) page;
	WhHeader	header = WhPageHeader(page);
	int			nslots = header->nslots;
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
	if (header->nslots != nslots && !WhIsOneKey(page))
		stretches[n++] = stretch(offsetof(PageHeaderData, pd_lower),
								 2 * sizeof(LocationIndex));
	else if (header->nslots != nslots || !WhIsDense(page))
		stretches[n++] = stretch(offsetof(PageHeaderData, pd_upper),
								 sizeof(LocationIndex));
	if (killed || header->nslots != nslots)
		stretches[n++] = stretch(offsetof(WhHeaderData, nslots),
								 (killed ? 2 : 1) * sizeof(uint16));
	if (!WhIsOneKey(page))
		stretches[n++] = stretch(header->slots_off + first * WhSlotSize(page),
								 (last - first) * WhSlotSize(page));
	if (WhIsDense(page))
		stretches[n++] = stretch(WhRecord(page, last - 1) - (uint8 *) page,
								 (last - first) * WhRecordSize(page));
	else
		stretches[n++] = stretch(standard->pd_upper, wh_item_size(item));
	return n;
}

/*
 * Inserts an item into a leaf and logs the bytes that change, as generic WAL
 * does.
 */
static void
insert_by_stretches(Relation index, Buffer buffer, int at, const WhItem *item)
{
	RfCoreStretch stretches[4];
	int			n;

	START_CRIT_SECTION();
	n = insert_item(BufferGetPage(buffer), at, item, stretches);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(index))
		rf_core_log_stretches(buffer, stretches, n);
	END_CRIT_SECTION();
}

/*
 * Inserts an item into a page by generic WAL.  child as in wh_log_insert().
 */
static void
insert_by_core(Relation index, Buffer child, Buffer buffer, int at,
			   const WhItem *item)
{
	GenericXLogState *state = GenericXLogStart(index);
	RfCoreStretch stretches[4];

	if (BufferIsValid(child))
	{
		WhPageHeader(wh_register(state, child))->flags &= ~WH_INCOMPLETE_SPLIT;
		wh_page_insert(wh_register(state, buffer), at, item);
	}
	else
		(void) insert_item(wh_register(state, buffer), at, item, stretches);
	GenericXLogFinish(state);
}

/*
 * The bytes of an item in a record: flags and length as in WhSlot.info, the
 * key behind the page's prefix, and what follows it on a page.  to has room
 * for a page.  Returns their number.
 */
static int
pack_item(const WhItem *item, char *to)
{
	uint16		info = item->len | item->flags;
	int			head = Min(item->len, WH_HEAD);

	memcpy(to, &info, sizeof(info));
	memcpy(to + sizeof(info), item->rest, head);
	wh_put_entry((uint8 *) to + sizeof(info) + head, item);
	return sizeof(info) + head + wh_item_size(item);
}

/*
 * Takes "size" bytes from those before end; NULL if there are fewer, or
 * *data is NULL.
 */
static const char *
take(const char **data, const char *end, int size)
{
	const char *taken = *data;

	*data = taken != NULL && end - taken >= size ? taken + size : NULL;
	return *data != NULL ? taken : NULL;
}

/*
 * Reads a packed item, which is not a list of TIDs, for a page of this level.
 * It points to the packed bytes.  Returns what is behind it, or NULL if the
 * bytes are not such an item.
 */
const char *
wh_unpack_item(const char *data, const char *end, int level, WhItem *item)
{
	const char *info = take(&data, end, sizeof(uint16));
	const char *part;
	uint16		bits;

	memset(item, 0, sizeof(*item));
	item->child = InvalidBlockNumber;
	if (info == NULL)
		return NULL;
	memcpy(&bits, info, sizeof(bits));
	item->len = bits & WH_LEN_MASK;
	item->flags = bits & ~WH_LEN_MASK;
	item->rest = (const uint8 *) take(&data, end, item->len);
	if (item->flags & ~(level > 0 ? WH_ANCHOR_TID : WH_PAYLOAD))
		return NULL;
	if (level == 0 || item->flags != 0)
	{
		item->ntids = 1;
		item->tids = (const ItemPointerData *) take(&data, end, sizeof(ItemPointerData));
	}
	if (level > 0 && (part = take(&data, end, sizeof(BlockNumber))) != NULL)
		memcpy(&item->child, part, sizeof(BlockNumber));
	if (level == 0 && item->flags != 0 &&
		(part = take(&data, end, sizeof(uint16))) != NULL)
	{
		memcpy(&item->payload_len, part, sizeof(uint16));
		item->payload = (const uint8 *) take(&data, end, item->payload_len);
	}
	return data;
}

/*
 * Begins a record of our own with these pages, which are marked dirty; some
 * may be InvalidBuffer.  flags are those of XLogRegisterBuffer().
 */
static void
begin_record(const Buffer buffers[WH_NBLOCKS], const uint8 flags[WH_NBLOCKS])
{
	XLogBeginInsert();
	for (int i = 0; i < WH_NBLOCKS; i++)
	{
		if (BufferIsValid(buffers[i]))
			XLogRegisterBuffer(i, buffers[i], REGBUF_STANDARD | flags[i]);
	}
}

/*
 * Writes a record of our own, and sets the pages' LSNs.
 */
static void
finish_record(const Buffer buffers[WH_NBLOCKS], uint8 kind)
{
	XLogRecPtr	lsn = XLogInsert(manager_id, kind);

	for (int i = 0; i < WH_NBLOCKS; i++)
	{
		if (BufferIsValid(buffers[i]))
			PageSetLSN(BufferGetPage(buffers[i]), lsn);
	}
}

/*
 * Inserts an item into a page by a record of our own.
 */
static void
insert_by_record(Relation index, Buffer child, Buffer buffer, int at,
				 const WhItem *item)
{
	const Buffer buffers[WH_NBLOCKS] = {child, buffer};
	const uint8 flags[WH_NBLOCKS] = {0};
	WhInsertRecord record = {at};
	char		packed[BLCKSZ];
	int			size = pack_item(item, packed);

	START_CRIT_SECTION();
	if (BufferIsValid(child))
	{
		WhPageHeader(BufferGetPage(child))->flags &= ~WH_INCOMPLETE_SPLIT;
		MarkBufferDirty(child);
	}
	wh_page_insert(BufferGetPage(buffer), at, item);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(index))
	{
		begin_record(buffers, flags);
		XLogRegisterBufData(WH_BLOCK_PAGE, (char *) &record, sizeof(record));
		XLogRegisterBufData(WH_BLOCK_PAGE, packed, size);
		finish_record(buffers, WH_XLOG_INSERT);
	}
	END_CRIT_SECTION();
}

/*
 * Inserts an item into a page that has room for it, and logs it.  If the page
 * is one of the directory, child is the left half of the split that the item
 * completes; of a leaf it is InvalidBuffer.  Both are locked exclusively, and
 * stay locked.
 */
void
wh_log_insert(Relation index, Buffer child, Buffer buffer, int at,
			  const WhItem *item)
{
	if (wh_has_manager())
		insert_by_record(index, child, buffer, at, item);
	else if (BufferIsValid(child) || !rf_core_knows_stretches())
		insert_by_core(index, child, buffer, at, item);
	else
		insert_by_stretches(index, buffer, at, item);
}

/*
 * Puts the new content of a page into its buffer, which is locked exclusively.
 * To be called in a critical section.  WH_KILLED stays, because the record does
 * not have the marks.
 */
static void
replace_page(Buffer buffer, Page content)
{
	Page		page = BufferGetPage(buffer);

	WhPageHeader(content)->flags |= WhPageHeader(page)->flags & WH_KILLED;
	memcpy(page, content, BLCKSZ);
	MarkBufferDirty(buffer);
}

/*
 * Adds to the record what makes the left half from the whole page.  packed is
 * room for a page.
 */
static void
register_left(const WhItemSet *set, int cut, const WhKey *anchor,
			  WhSplitRecord *record, char *packed)
{
	record->cut = cut;
	record->at = set->added >= 0 && set->added < cut ? set->added : cut;
	record->anchor_len = anchor->len;
	record->anchor_has_tid = anchor->has_tid;
	XLogRegisterBufData(WH_BLOCK_PAGE, (char *) record, sizeof(*record));
	XLogRegisterBufData(WH_BLOCK_PAGE, (char *) anchor->data, anchor->len);
	if (anchor->has_tid)
		XLogRegisterBufData(WH_BLOCK_PAGE, (char *) &anchor->tid,
							sizeof(anchor->tid));
	if (record->at < cut)
		XLogRegisterBufData(WH_BLOCK_PAGE, packed,
							pack_item(&set->items[record->at], packed));
}

/*
 * Writes the two halves of a split page, whose contents are given, by a record
 * of our own.  The left one has the first cut items of the set.  The pages are
 * locked exclusively, and stay locked.  If the set is not that of the page and
 * one item, the left half is logged as a whole.
 */
void
wh_log_split(Relation index, const WhItemSet *set, int cut, const WhKey *anchor,
			 const WhSplitBuffers *pages, Page left, Page right)
{
	bool		simple = set->added != WH_ITEMS_CHANGED;
	const Buffer buffers[WH_NBLOCKS] = {pages->child, pages->left, pages->right, pages->other};
	const uint8 flags[WH_NBLOCKS] = {0, simple ? 0 : REGBUF_FORCE_IMAGE, REGBUF_FORCE_IMAGE, 0};
	WhSplitRecord record;
	char		packed[BLCKSZ];

	START_CRIT_SECTION();
	if (BufferIsValid(pages->child))
	{
		WhPageHeader(BufferGetPage(pages->child))->flags &= ~WH_INCOMPLETE_SPLIT;
		MarkBufferDirty(pages->child);
	}
	replace_page(pages->left, left);
	replace_page(pages->right, right);
	if (BufferIsValid(pages->other))
	{
		WhPageHeader(BufferGetPage(pages->other))->prev =
			BufferGetBlockNumber(pages->right);
		MarkBufferDirty(pages->other);
	}
	if (RelationNeedsWAL(index))
	{
		begin_record(buffers, flags);
		if (simple)
			register_left(set, cut, anchor, &record, packed);
		finish_record(buffers, WH_XLOG_SPLIT);
	}
	END_CRIT_SECTION();
}

/*
 * Notes that of an entry of a leaf these ntids TIDs remain.  Entries are noted in
 * their order, and each at most once.
 */
void
wh_note_removal(WhRemoval *removal, int at, const ItemPointerData *tids,
				int ntids)
{
	WhRemoveRecord record = {at, ntids};

	Assert(removal->size + sizeof(record) + ntids * sizeof(*tids) <= sizeof(removal->changes));
	memcpy(removal->changes + removal->size, &record, sizeof(record));
	removal->size += sizeof(record);
	memcpy(removal->changes + removal->size, tids, ntids * sizeof(*tids));
	removal->size += ntids * sizeof(*tids);
}

/*
 * Rewrites a leaf without what was removed from its items, and logs it.  set
 * are the remaining items, bounds those of the leaf.  The leaf is locked
 * exclusively, and stays locked.
 */
void
wh_log_removal(Relation index, Buffer buffer, const WhItemSet *set,
			   const WhBounds *bounds, const WhRemoval *removal)
{
	const Buffer buffers[WH_NBLOCKS] = {InvalidBuffer, buffer};
	const uint8 flags[WH_NBLOCKS] = {0};
	PGAlignedBlock content;

	if (!wh_has_manager())
	{
		GenericXLogState *state = GenericXLogStart(index);

		wh_items_rewrite(set, wh_register(state, buffer), bounds);
		GenericXLogFinish(state);
		return;
	}
	memcpy(content.data, BufferGetPage(buffer), BLCKSZ);
	wh_items_rewrite(set, content.data, bounds);
	START_CRIT_SECTION();
	replace_page(buffer, content.data);
	if (RelationNeedsWAL(index))
	{
		begin_record(buffers, flags);
		XLogRegisterBufData(WH_BLOCK_PAGE, (char *) removal->changes, removal->size);
		finish_record(buffers, WH_XLOG_REMOVE);
	}
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
