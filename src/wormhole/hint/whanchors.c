/*-------------------------------------------------------------------------
 *
 * whanchors.c
 *	  Reading the anchors of an index from its directory.
 *
 * A hint is made of them.  The lowest level of the directory is read from left
 * to right.  It may change meanwhile, since a hint need not be right.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "wormhole/hint/whhint_impl.h"
#include "wormhole/tree/whtree.h"

/*
 * Appends an anchor.  One that is before the last anchor is left out.  False
 * where there is no room.
 */
static bool
append_anchor(WhAnchors *anchors, Size limit, const WhKey *key,
			  BlockNumber leaf)
{
	WhAnchor   *anchor;
	Size		size = anchors->n * sizeof(WhAnchor) + anchors->bytes.len;

	if (anchors->n > 0)
	{
		WhAnchor   *last = &anchors->anchors[anchors->n - 1];
		const char *bytes = anchors->bytes.data + last->off;
		int			cmp = memcmp(bytes, key->data, Min(last->len, key->len));

		if (cmp > 0 || (cmp == 0 && last->len > key->len))
			return true;
	}
	if (size + sizeof(WhAnchor) + key->len > Min(limit, MaxAllocSize / 2))
		return false;
	if (anchors->n == anchors->space)
	{
		anchors->space *= 2;
		anchors->anchors = repalloc_huge(anchors->anchors,
										 anchors->space * sizeof(WhAnchor));
	}
	anchor = &anchors->anchors[anchors->n++];
	anchor->off = anchors->bytes.len;
	anchor->len = key->len;
	anchor->has_tid = key->has_tid;
	anchor->leaf = leaf;
	appendBinaryStringInfo(&anchors->bytes, (const char *) key->data,
						   key->len);
	return true;
}

/*
 * Appends the anchors of a locked page of the directory.  False where there is
 * no room.
 */
static bool
append_anchors(WhAnchors *anchors, Size limit, Page page, uint8 *space)
{
	WhHeader	header = WhPageHeader(page);
	WhBounds	bounds;
	WhKey		key;

	wh_page_bounds(page, &bounds, space);
	for (int i = 0; i < header->nslots; i++)
	{
		WhSlot	   *slot = &WhSlots(page)[i];

		if (i == 0)
			key = bounds.low;
		else
		{
			/* This overwrites the low bound, which begins with the prefix. */
			key.data = space;
			key.len = header->prefix_len +
				wh_slot_key(page, slot, space + header->prefix_len);
			key.has_tid = (slot->info & WH_ANCHOR_TID) != 0;
		}
		if (!append_anchor(anchors, limit, &key, wh_slot_child(page, slot)))
			return false;
	}
	return true;
}

/*
 * Reads the anchors of all leaves from the directory, page by page, into
 * memory of the current context.  False where they need more than the limit
 * (bytes), or the directory has changed meanwhile.  There must be a directory.
 * Nothing is locked before and after.
 */
bool
wh_read_anchors(Relation index, Size limit, WhAnchors *anchors)
{
	WhKey		first = {.data = (const uint8 *) ""};
	uint8	   *space = palloc(WH_BOUNDS_SPACE);
	Buffer		buffer;

	memset(anchors, 0, sizeof(*anchors));
	anchors->space = 1024;
	anchors->anchors = palloc(anchors->space * sizeof(WhAnchor));
	initStringInfo(&anchors->bytes);
	buffer = wh_descend(index, &first, WH_AT, 1, BUFFER_LOCK_SHARE);
	for (;;)
	{
		Page		page = BufferGetPage(buffer);
		BlockNumber block = BufferGetBlockNumber(buffer);
		BlockNumber next = WhPageHeader(page)->next;
		bool		fits = append_anchors(anchors, limit, page, space);

		UnlockReleaseBuffer(buffer);
		if (!fits || next == InvalidBlockNumber)
			return fits;
		CHECK_FOR_INTERRUPTS();

		/* It may have become another page. */
		buffer = wh_read(index, next, BUFFER_LOCK_SHARE);
		page = BufferGetPage(buffer);
		if (!wh_is_on_level(page, 1) || WhPageHeader(page)->prev != block ||
			WhPageHeader(page)->identity != wh_cache(index)->identity)
		{
			UnlockReleaseBuffer(buffer);
			return false;
		}
	}
}
