/*-------------------------------------------------------------------------
 *
 * whput.c
 *	  Putting entries on pages of either kind.
 *
 * Callers have checked that there is room and, on a dense leaf, that the entry
 * suits it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "wormhole/page/whpage.h"

/*
 * The bytes that an item takes besides its slot.
 */
int
wh_item_size(const WhItem *item)
{
	int			size = item->len > WH_HEAD ? item->len - WH_HEAD : 0;

	size += item->ntids * sizeof(ItemPointerData);
	if (item->child != InvalidBlockNumber)
		size += sizeof(BlockNumber);
	if (item->flags & WH_POSTING)
		size += sizeof(uint16);
	if (item->flags & WH_PAYLOAD)
		size += sizeof(uint16) + item->payload_len;
	return size;
}

/*
 * The free bytes between slots and entries.
 */
int
wh_page_space(Page page)
{
	return ((PageHeader) page)->pd_upper - ((PageHeader) page)->pd_lower;
}

/*
 * The free bytes that an item takes on a page, with its slot.  It suits the page if that
 * is dense.
 */
int
wh_bytes_needed(Page page, const WhItem *item)
{
	return WhSlotSize(page) +
		(WhIsDense(page) ? WhRecordSize(page) : wh_item_size(item));
}

/*
 * Writes the part of an item that is outside of its slot.
 */
void
wh_put_entry(uint8 *to, const WhItem *item)
{
	if (item->len > WH_HEAD)
	{
		wh_copy_short(to, item->rest + WH_HEAD, item->len - WH_HEAD);
		to += item->len - WH_HEAD;
	}
	if (item->flags & WH_POSTING)
	{
		memcpy(to, &item->ntids, sizeof(uint16));
		to += sizeof(uint16);
	}
	if (item->ntids == 1)
	{
		memcpy(to, item->tids, sizeof(ItemPointerData));
		to += sizeof(ItemPointerData);
	}
	else if (item->ntids > 1)
	{
		memcpy(to, item->tids, item->ntids * sizeof(ItemPointerData));
		to += item->ntids * sizeof(ItemPointerData);
	}
	if (item->child != InvalidBlockNumber)
		memcpy(to, &item->child, sizeof(BlockNumber));
	if (item->flags & WH_PAYLOAD)
	{
		memcpy(to, &item->payload_len, sizeof(uint16));
		memcpy(to + sizeof(uint16), item->payload, item->payload_len);
	}
}

/*
 * Inserts an item at a slot, and moves the slots from there on.  The item's
 * rest is that behind this page's prefix.  There must be room.
 */
void
wh_page_insert(Page page, int at, const WhItem *item)
{
	int			n = WhPageHeader(page)->nslots;

	Assert(wh_page_space(page) >= wh_bytes_needed(page, item));
	wh_add_slot(page);
	wh_move_slots(page, at + 1, at, n - at);
	wh_page_put(page, at, item);
}

/*
 * Adds a slot behind the others, for which there must be room.
 */
void
wh_add_slot(Page page)
{
	WhPageHeader(page)->nslots++;
	((PageHeader) page)->pd_lower += WhSlotSize(page);
	if (WhIsDense(page))
		((PageHeader) page)->pd_upper -= WhRecordSize(page);
}

/*
 * Moves n slots to another place; of a dense leaf heads and records.
 */
void
wh_move_slots(Page page, int to, int from, int n)
{
	if (n == 0)
		return;
	if (!WhIsDense(page))
	{
		memmove(&WhSlots(page)[to], &WhSlots(page)[from], n * sizeof(WhSlot));
		return;
	}
	memmove(&WhHeads(page)[to], &WhHeads(page)[from], n * WhSlotSize(page));
	memmove(WhRecord(page, to + n - 1), WhRecord(page, from + n - 1),
			n * WhRecordSize(page));
}

/*
 * Puts an item into a slot that the caller has made free.  The item's rest is
 * that behind this page's prefix.  There must be room.
 */
void
wh_page_put(Page page, int at, const WhItem *item)
{
	PageHeader	header = (PageHeader) page;
	WhSlot	   *slot = WhSlots(page) + at;
	int			size;

	if (WhIsDense(page))
	{
		if (!WhIsOneKey(page))
			WhHeads(page)[at] = wh_head(item->rest, item->len);
		wh_put_record(page, at, item);
		return;
	}
	size = wh_item_size(item);
	Assert(wh_page_space(page) >= size);
	header->pd_upper -= size;
	slot->head = wh_head(item->rest, item->len);
	slot->off = header->pd_upper;
	slot->info = item->len | item->flags;
	wh_put_entry((uint8 *) page + slot->off, item);
}
