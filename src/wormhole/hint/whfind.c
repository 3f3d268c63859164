/*-------------------------------------------------------------------------
 *
 * whfind.c
 *	  Finding leaves.
 *
 * The hint is asked first, and then the directory.  An insert first looks at the leaf
 * where the session has put the last row of the same key, or where its last entry was
 * behind all others.  In all cases the leaf's
 * own bounds are compared with the position before it is returned.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "wormhole/hint/whhint_impl.h"
#include "wormhole/tree/whtree.h"

/* The keys for which a session remembers a leaf: a power of two. */
#define NPLACES		1024

/*
 * The leaf where the last row of a key went in.  An index that is built anew has another
 * identity, so none of its old leaves is looked for.
 */
typedef struct WhPlace
{
	uint64		identity;		/* of the index */
	uint32		hash;			/* of the key */
	BlockNumber leaf;			/* WH_META_BLKNO: none */
} WhPlace;

static WhPlace places[NPLACES];

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
 * The place for a key, where *hash is its hash.
 */
static inline WhPlace *
place_of(const WhKey *key, uint32 *hash)
{
	*hash = hash_bytes(key->data, key->len);
	return &places[*hash % NPLACES];
}

/*
 * The leaf where the last row of a key went in; InvalidBlockNumber if that is not known.
 */
static BlockNumber
leaf_of_key(const WhCache *cache, const WhKey *key)
{
	uint32		hash;
	const WhPlace *place;

	if (!cache->has_places)
		return InvalidBlockNumber;
	place = place_of(key, &hash);
	return place->hash == hash && place->identity == cache->identity &&
		place->leaf != WH_META_BLKNO ? place->leaf : InvalidBlockNumber;
}

/*
 * Finds the leaf for a new entry.  Returns it pinned and locked exclusively, and without an
 * incomplete split.  Nothing is locked when it is called.
 */
Buffer
wh_find_place(Relation index, const WhKey *key)
{
	WhCache    *cache = wh_cache(index);
	BlockNumber leaf = InvalidBlockNumber;

	if (wh_enable_hint && cache->have_meta)
	{
		leaf = leaf_of_key(cache, key);
		if (leaf == InvalidBlockNumber)
			leaf = cache->last_place;
	}
	if (leaf != InvalidBlockNumber)
	{
		int			steps;
		Buffer		buffer = wh_walk_right(index, leaf, key, WH_AT,
										   BUFFER_LOCK_EXCLUSIVE, &steps);

		if (BufferIsValid(buffer))
			return buffer;
		wh_cache(index)->last_place = InvalidBlockNumber;
	}
	return wh_find_leaf(index, key, WH_AT, BUFFER_LOCK_EXCLUSIVE);
}

/*
 * Return true if the entry before a slot of a leaf has the key.
 */
static bool
follows_same_key(Page page, int at, const WhKey *key)
{
	int			prefix = WhPageHeader(page)->prefix_len;
	WhEntry		before;

	if (at == 0)
		return false;
	wh_entry(page, at - 1, &before);
	return before.slot.head == wh_head(key->data + prefix, key->len - prefix) &&
		wh_slot_has_key(page, &before.slot, key);
}

/*
 * Remembers the leaf of an entry that is about to be inserted at a slot of it: for the key,
 * if it has another row there, and for ascending keys, if the slot is behind all others.  The
 * leaf is locked.
 */
void
wh_note_place(Relation index, const WhKey *key, Buffer buffer, int at)
{
	WhCache    *cache = wh_cache(index);
	Page		page = BufferGetPage(buffer);
	BlockNumber leaf = BufferGetBlockNumber(buffer);
	WhPlace    *place;
	uint32		hash;

	if (!wh_enable_hint)
		return;
	cache->last_place = at == WhPageHeader(page)->nslots ? leaf : InvalidBlockNumber;
	if (leaf_of_key(cache, key) == leaf || !follows_same_key(page, at, key))
		return;
	place = place_of(key, &hash);
	place->identity = WhPageHeader(page)->identity;
	place->hash = hash;
	place->leaf = leaf;
	cache->has_places = true;
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
