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

/* The keys of an index for which a session remembers a leaf: a power of two. */
#define NPLACES		1024

/* For keys by their hash, the leaf where the last row of the key went in. */
typedef struct WhPlaces
{
	uint32		hash;			/* of the key that wh_find_place() was asked
								 * for */
	struct
	{
		uint32		hash;
		BlockNumber leaf;
	}			keys[NPLACES];
} WhPlaces;

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
 * The hash of a key by which its leaf is remembered.
 */
static inline uint32
hash_key(const WhKey *key)
{
	return hash_bytes(key->data, key->len);
}

/*
 * The leaf to look at first for a new entry; InvalidBlockNumber if there is none.
 */
static BlockNumber
remembered_place(const WhCache *cache, const WhKey *key)
{
	WhPlaces   *places = cache->places;

	if (places != NULL)
	{
		places->hash = hash_key(key);
		if (places->keys[places->hash % NPLACES].hash == places->hash)
			return places->keys[places->hash % NPLACES].leaf;
	}
	return cache->last_place;
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

	if (wh_enable_hint)
		leaf = remembered_place(cache, key);
	if (leaf != InvalidBlockNumber && cache->have_meta)
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
 * leaf is locked, and wh_find_place() was last asked for this key.
 */
void
wh_note_place(Relation index, const WhKey *key, Buffer buffer, int at)
{
	WhCache    *cache = wh_cache(index);
	BlockNumber leaf = BufferGetBlockNumber(buffer);
	Page		page = BufferGetPage(buffer);
	WhPlaces   *places = cache->places;
	bool		last = at == WhPageHeader(page)->nslots;

	if (!wh_enable_hint)
		return;
	cache->last_place = last ? leaf : InvalidBlockNumber;
	if ((places != NULL && places->keys[places->hash % NPLACES].leaf == leaf &&
		 places->keys[places->hash % NPLACES].hash == places->hash) ||
		!follows_same_key(page, at, key))
		return;
	if (places == NULL)
	{
		places = MemoryContextAllocZero(index->rd_indexcxt, sizeof(WhPlaces));
		for (int i = 0; i < NPLACES; i++)
			places->keys[i].leaf = InvalidBlockNumber;
		places->hash = hash_key(key);
		cache->places = places;
	}
	places->keys[places->hash % NPLACES].hash = places->hash;
	places->keys[places->hash % NPLACES].leaf = leaf;
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
