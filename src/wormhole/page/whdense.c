/*-------------------------------------------------------------------------
 *
 * whdense.c
 *	  Dense leaves: heads and records instead of slots and entries.
 *
 * A slot has offset and length of its entry, since entries differ.  Where all
 * entries have keys of one length and one TID, neither is needed: entry number
 * i is at place i.  Its TID takes four bytes, or five, instead of six.  If all
 * have the same key, it is stored once, and there are no heads.
 *
 * An item *suits* a dense leaf if its key has the length of the leaf's keys, or
 * is the only key, and its TID fits.  One that does not makes the leaf be rewritten as an
 * ordinary one (write/whinsert.c).  Whoever rewrites a page (whitems.c, the
 * build) makes it dense if that is possible and smaller.
 *
 * The functions here need room on the page, which callers have checked.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "wormhole/page/whpage.h"

/* The most that the bits of an offset number and of a block can say. */
#define MOST_OFFSET		((1 << WH_RECORD_OFFSET) - 1)
#define BLOCK_BITS(len)	(8 * (len) - WH_RECORD_FLAGS - WH_RECORD_OFFSET)

/*
 * The bytes that each of these TIDs takes in a record; 0 if one has no place there.  The
 * TIDs need not be aligned.
 */
static int
dense_tid_len(const ItemPointerData *tids, int ntids)
{
	int			len = WH_SHORT_TID;

	for (int i = 0; i < ntids; i++)
	{
		ItemPointerData tid;

		memcpy(&tid, &tids[i], sizeof(tid));
		if (ItemPointerGetOffsetNumberNoCheck(&tid) > MOST_OFFSET ||
			ItemPointerGetBlockNumberNoCheck(&tid) >> BLOCK_BITS(WH_LONG_TID) != 0)
			return 0;
		if (ItemPointerGetBlockNumberNoCheck(&tid) >> BLOCK_BITS(WH_SHORT_TID) != 0)
			len = WH_LONG_TID;
	}
	return len;
}

/*
 * Begins to find out whether entries can be in a dense leaf.
 */
void
wh_dense_begin(WhDenseForm *form)
{
	form->key_len = -1;
	form->tid_len = WH_SHORT_TID;
	form->one_key = true;
	form->ntids = 0;
}

/*
 * Adds the TIDs of an entry.
 */
void
wh_dense_add_tids(WhDenseForm *form, const ItemPointerData *tids, int ntids)
{
	int			tid_len = form->tid_len > 0 ? dense_tid_len(tids, ntids) : 0;

	form->tid_len = tid_len == 0 ? 0 : Max(form->tid_len, tid_len);
}

/*
 * The bytes that the entries added take on a page whose prefix is so much longer than the
 * one their keys lack; size is what they take on an ordinary page.  form->key_len becomes
 * the length behind that prefix, and form->tid_len 0 unless they shall be in a dense leaf.
 *
 * They shall if that saves what the two lengths before the heads may take, aligned.  So
 * entries that fit on an ordinary page, and are put on it without a look at its room, fit
 * on the page if it becomes a dense leaf.
 */
int
wh_dense_end(WhDenseForm *form, int prefix, int size)
{
	int			dense;

	form->key_len -= prefix;
	if (form->one_key)
		dense = form->key_len + form->ntids * form->tid_len;
	else
		dense = form->ntids * (sizeof(uint32) + Max(form->key_len - WH_HEAD, 0) +
							   form->tid_len);
	if (form->ntids == 0 || form->key_len < 0 ||
		form->key_len > (form->one_key ? WH_DENSE_ONE_KEY : WH_DENSE_KEY) ||
		dense + (int) sizeof(WhSlot) > size)
		form->tid_len = 0;
	return form->tid_len > 0 ? dense : size;
}

/*
 * Makes a leaf without entries, which wh_init_page() has made, a dense one for entries that
 * wh_dense_end() said shall be in one.  wh_append_item() adds the key if there is only one.
 */
void
wh_make_dense(Page page, const WhDenseForm *form)
{
	WhHeader	header = WhPageHeader(page);

	Assert(header->nslots == 0 && header->level == 0 && form->tid_len > 0);
	header->flags |= WH_DENSE | (form->one_key ? WH_ONE_KEY : 0);
	header->slots_off = wh_slots_place(page);
	((PageHeader) page)->pd_lower = header->slots_off;
	WhDenseKeyLen(page) = form->key_len;
	WhDenseTidLen(page) = form->tid_len;
	((PageHeader) page)->pd_upper = WhRecordsEnd(page);
}

/*
 * Can a new item, whose rest is that behind the prefix of a dense leaf, be one of its
 * records?
 */
bool
wh_suits_dense(Page page, const WhItem *item)
{
	int			tid_len = dense_tid_len(item->tids, item->ntids);

	return item->len == WhDenseKeyLen(page) && item->flags == 0 &&
		item->ntids == 1 && tid_len > 0 && tid_len <= WhDenseTidLen(page) &&
		(!WhIsOneKey(page) ||
		 memcmp((char *) page + WhRecordsEnd(page), item->rest, item->len) == 0);
}

/*
 * Writes the TID of a record, with its flags.
 */
static void
write_tid(uint8 *at, int len, const ItemPointerData *tid, uint8 flags)
{
	uint64		bits = ItemPointerGetBlockNumberNoCheck(tid);

	bits = bits << WH_RECORD_OFFSET | ItemPointerGetOffsetNumberNoCheck(tid);
	bits = bits << WH_RECORD_FLAGS | flags;
	for (int i = 0; i < len; i++)
		at[i] = bits >> (8 * i);
}

/*
 * Writes a record: the tail of an item's key, unless the leaf has only this key, and its TID.
 */
void
wh_put_record(Page page, int at, const WhItem *item)
{
	ItemPointerData tid;

	memcpy(&tid, item->tids, sizeof(tid));
	if (WhRecordTail(page) > 0)
		wh_copy_short(WhRecord(page, at), item->rest + WH_HEAD, WhRecordTail(page));
	write_tid(WhRecordTid(page, at), WhDenseTidLen(page), &tid,
			  (item->flags & WH_DEAD) ? WH_RECORD_DEAD : 0);
}

/*
 * Appends an item to a page.  In a dense leaf a list of TIDs becomes an entry for each.  The
 * first item of a leaf of one key adds the key.
 */
void
wh_append_item(Page page, const WhItem *item)
{
	WhItem		one = *item;

	if (!WhIsDense(page))
	{
		wh_page_insert(page, WhPageHeader(page)->nslots, item);
		return;
	}
	if (WhIsOneKey(page) && WhPageHeader(page)->nslots == 0)
		memcpy((char *) page + WhRecordsEnd(page), item->rest, item->len);
	one.ntids = 1;
	for (int i = 0; i < item->ntids; i++)
	{
		one.tids = &item->tids[i];
		wh_page_insert(page, WhPageHeader(page)->nslots, &one);
	}
}

/*
 * Marks an entry dead, or removes the mark.  A share lock is enough for a mark: in
 * a dense leaf only the byte changes that has it.
 */
void
wh_set_dead(Page page, int at, bool dead)
{
	if (!WhIsDense(page) && dead)
		WhSlots(page)[at].info |= WH_DEAD;
	else if (!WhIsDense(page))
		WhSlots(page)[at].info &= ~WH_DEAD;
	else if (dead)
		*WhRecordTid(page, at) |= WH_RECORD_DEAD;
	else
		*WhRecordTid(page, at) &= ~WH_RECORD_DEAD;
}

/*
 * Copies a slot from a page of the same kind, with head or record; as a gap, which is not
 * dead, or as it is.
 */
void
wh_copy_slot(Page page, int to, Page from, int at, bool gap)
{
	if (WhIsDense(page))
	{
		int			size = WhRecordSize(page);
		int			end = WhRecordsEnd(page);

		if (!WhIsOneKey(page))
			WhHeads(page)[to] = WhHeads(from)[at];
		memcpy((char *) page + end - (to + 1) * size,
			   (char *) from + end - (at + 1) * size, size);
		if (gap)
			*WhRecordTid(page, to) |= WH_RECORD_GAP;
	}
	else
	{
		WhSlots(page)[to] = WhSlots(from)[at];
		if (gap)
			WhSlots(page)[to].info |= WH_GAP;
	}
	if (gap)
		wh_set_dead(page, to, false);
}
