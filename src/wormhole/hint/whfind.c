/*-------------------------------------------------------------------------
 *
 * whfind.c
 *	  Finding leaves.
 *
 * The hint is asked first, and then the directory.  In both cases the leaf's
 * own bounds are compared with the position before it is returned.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "wormhole/hint/whhint_impl.h"
#include "wormhole/tree/whtree.h"

/*
 * Finds the leaf of a position.  Returns it pinned and locked.  In a leaf
 * locked exclusively no split is incomplete.  Nothing is locked when it is
 * called.
 */
Buffer
wh_find_leaf(Relation index, const WhKey *key, WhSide side, int lockmode)
{
	if (!wh_cache(index)->have_meta)
		wh_read_meta(index);
	if (wh_enable_hint)
	{
		Buffer		buffer = wh_hint_find(index, key, side, lockmode);

		if (BufferIsValid(buffer))
			return buffer;
	}
	wh_note_descent(index);
	return wh_descend(index, key, side, 0, lockmode);
}

/*
 * Is a locked page the leaf of a position?
 */
bool
wh_is_leaf_of(Relation index, Buffer buffer, const WhKey *key)
{
	Page		page = BufferGetPage(buffer);

	return wh_is_on_level(page, 0) &&
		WhPageHeader(page)->identity == wh_cache(index)->identity &&
		wh_page_side(page, key, WH_AT) == 0;
}

/*
 * Finds the leaf of a position, which is expected in the given block or
 * shortly to its right.  Otherwise like wh_find_leaf().
 */
Buffer
wh_step(Relation index, BlockNumber block, const WhKey *key, WhSide side,
		int lockmode)
{
	Buffer		buffer = InvalidBuffer;

	if (block != InvalidBlockNumber)
		buffer = wh_move_right(index, wh_read(index, block, lockmode), key,
							   side, 0, lockmode);
	if (!BufferIsValid(buffer))
		buffer = wh_find_leaf(index, key, side, lockmode);
	return buffer;
}
