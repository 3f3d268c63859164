/*-------------------------------------------------------------------------
 *
 * whhint.c
 *	  The hint of an index: when it is made, where its memory is, how it is
 *	  used.
 *
 * A MetaTrieHT (whtrie.c) leads from a key to its leaf without the directory.
 * It is made from the directory's lowest level (whanchors.c) when
 * enough lookups have gone through the directory for it to pay.  It is made anew when the same
 * number of lookups was led to a wrong leaf.  A leaf's bounds tell whether the key
 * is on it.  If it is not, a few steps to the right or else a descent find the
 * right leaf.  If the library is preloaded, tries are in shared memory
 * (whshared.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "stats/session.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "wormhole/hint/whhint_impl.h"

/* The most steps to the right; after these the directory is asked. */
#define MOST_STEPS		2

/* The lookups after which a backend looks for a trie of others. */
#define LOOK_AROUND	256

/* Hints of dropped indexes are looked for only if there are more hints. */
#define FEW_HINTS		64

/*
 * If more than half of TRIAL lookups by the trie fail, the next PAUSE lookups
 * do not use it.
 */
#define TRIAL			1024
#define PAUSE			(15 * TRIAL)

/* The hints, and the bytes of the session's own tries. */
static HTAB *hints = NULL;
static Size hints_size = 0;
static uint64 hint_clock = 0;

/*
 * Finds the hint of an index, or makes one without a trie.
 */
static WhHint *
make_hint(Oid relid)
{
	WhHint	   *hint;
	bool		found;

	if (hints == NULL)
	{
		HASHCTL		control = {
			.keysize = sizeof(Oid),
			.entrysize = sizeof(WhHint),
			.hcxt = TopMemoryContext
		};

		hints = hash_create("wormhole hints", 64, &control,
							HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	hint = hash_search(hints, &relid, HASH_ENTER, &found);
	if (!found)
	{
		memset(hint, 0, sizeof(*hint));
		hint->relid = relid;
	}
	return hint;
}

/*
 * The hint of an index.  Its address does not change, so the relation cache
 * entry keeps a pointer.
 */
static inline WhHint *
hint_of(Relation index, WhCache *cache)
{
	if (unlikely(cache->hint == NULL))
		cache->hint = make_hint(RelationGetRelid(index));
	return cache->hint;
}

/*
 * Forgets a hint's trie, and frees it if it is the session's own.
 */
void
wh_forget_trie(WhHint *hint)
{
	hint->present = false;
	if (hint->memory == NULL)
		return;
	pfree(hint->memory);
	hint->memory = NULL;
	hints_size -= hint->size;
}

/*
 * Allocates memory for a trie, aligned to cache lines.  To keep the limit,
 * forgets tries that were used least recently.  False where there is still no
 * room.
 */
static bool
take_memory(WhHint *hint, Size size, void **aligned)
{
	Size		limit = wh_hint_memory * (Size) 1024;

	limit -= limit / WH_BUFFERS_PART;
	if (size > limit)
		return false;
	while (hints_size + size > limit)
	{
		WhHint	   *oldest = NULL;
		WhHint	   *other;
		HASH_SEQ_STATUS all;

		hash_seq_init(&all, hints);
		while ((other = hash_seq_search(&all)) != NULL)
		{
			if (other->memory != NULL &&
				(oldest == NULL || other->used < oldest->used))
				oldest = other;
		}
		if (oldest == NULL)
			return false;
		wh_forget_trie(oldest);
	}
	hint->memory = MemoryContextAllocExtended(TopMemoryContext,
											  size + PG_CACHE_LINE_SIZE,
											  MCXT_ALLOC_NO_OOM |
											  MCXT_ALLOC_HUGE);
	if (hint->memory == NULL)
		return false;
	hint->size = size;
	hints_size += size;
	*aligned = (void *) TYPEALIGN(PG_CACHE_LINE_SIZE, hint->memory);
	return true;
}

/*
 * Makes a trie of the anchors in memory of this backend, and copies it to
 * shared memory if there is any.
 */
static void
make_trie(WhHint *hint, uint64 identity, const WhAnchors *anchors)
{
	Size		size = wh_trie_size(anchors, &hint->trie);
	void	   *memory;

	if (!take_memory(hint, size, &memory))
		return;
	wh_trie_place(&hint->trie, memory);
	wh_trie_build(&hint->trie, anchors);
	hint->identity = identity;
	hint->present = true;

	/* If it was shared, the session uses the shared copy. */
	if (wh_share_trie(hint))
		(void) wh_attach_shared(hint, identity);
}

/*
 * Makes a trie, or a new one, if there were enough lookups; or takes that of
 * another backend.  Called with nothing locked, as it may take a while.
 */
static void
pay_for_trie(Relation index, WhHint *hint)
{
	WhCache    *cache = wh_cache(index);
	uint64		identity = cache->identity;
	int64		leaves = hint->present ? hint->trie.nleaves : cache->nblocks;
	MemoryContext context;
	MemoryContext old;
	WhAnchors	anchors;

	/* Another backend may have made one. */
	if (wh_attach_shared(hint, identity))
		return;
	if (hint->debt < wh_hint_after * leaves)
	{
		hint->due = Min(hint->debt + LOOK_AROUND, wh_hint_after * leaves);
		return;
	}
	wh_forget_trie(hint);
	hint->debt = 0;
	hint->due = LOOK_AROUND;
	context = AllocSetContextCreate(CurrentMemoryContext, "wormhole anchors",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	if (wh_read_anchors(index, wh_hint_memory * (Size) 1024, &anchors))
		make_trie(hint, identity, &anchors);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/*
 * Is there a trie of this build of the index that should be used now?
 */
static inline bool
use_trie(WhHint *hint, const WhCache *cache)
{
	if (!hint->present)
		return false;
	if (unlikely(hint->identity != cache->identity ||
				 (hint->memory == NULL && !wh_shared_is_current(hint))))
	{
		wh_forget_trie(hint);
		return wh_attach_shared(hint, cache->identity);
	}
	if (likely(hint->pause == 0))
		return true;
	hint->pause--;
	return false;
}

/*
 * Counts whether the trie was right.
 */
static inline void
note_try(WhHint *hint, bool right)
{
	if (likely(right))
		hint->counts.hits++;
	else
	{
		hint->counts.stale++;
		hint->failures++;
		hint->debt++;
	}
	if (unlikely(++hint->tries == TRIAL))
	{
		if (hint->failures > TRIAL / 2)
			hint->pause = PAUSE;
		hint->tries = hint->failures = 0;
		wh_share_counts(hint, NULL);
	}
}

/*
 * Begins at a block that a hint gives for a position, and goes at most MOST_STEPS
 * steps to the right to the position's leaf.  Returns the leaf pinned and
 * locked, and the steps taken; or InvalidBuffer, with nothing locked.  The
 * block may be any page: that is no error.  A writer does not get a leaf whose
 * split is incomplete: the descent will finish the split.
 */
Buffer
wh_walk_right(Relation index, BlockNumber block, const WhKey *key,
			  WhSide side, int lockmode, int *steps)
{
	WhCache    *cache = wh_cache(index);

	for (*steps = 0; *steps <= MOST_STEPS; (*steps)++)
	{
		Buffer		buffer;
		WhHeader	header;
		int			where = -1;

		if (block >= cache->nblocks)
			break;
		buffer = wh_pin(index, block);
		LockBuffer(buffer, lockmode);
		header = WhPageHeader(BufferGetPage(buffer));
		if (header->identity == cache->identity &&
			wh_is_on_level(BufferGetPage(buffer), 0) &&
			(lockmode == BUFFER_LOCK_SHARE ||
			 !(header->flags & WH_INCOMPLETE_SPLIT)))
		{
			(void) wh_check_page(index, buffer);
			where = wh_page_side(BufferGetPage(buffer), key, side);
		}
		if (where == 0)
			return buffer;
		block = where < 0 ? InvalidBlockNumber : header->next;
		UnlockReleaseBuffer(buffer);
	}
	return InvalidBuffer;
}

/*
 * Finds the leaf of a position by the hint.  Returns it checked, pinned and
 * locked; or InvalidBuffer, with nothing locked, if the directory must be
 * asked.  In a leaf locked exclusively no split is incomplete.  Nothing is
 * locked when it is called.
 */
Buffer
wh_hint_find(Relation index, const WhKey *key, WhSide side, int lockmode)
{
	WhCache    *cache = wh_cache(index);
	WhHint	   *hint = hint_of(index, cache);
	BlockNumber block;
	Buffer		buffer;
	int			steps = 0;

	if (cache->level == 0)
		return InvalidBuffer;	/* there is only one leaf */
	if (unlikely(hint->debt >= hint->due))
		pay_for_trie(index, hint);
	if (!use_trie(hint, cache))
		return InvalidBuffer;
	block = wh_trie_find(&hint->trie, key, side);
	if (block == InvalidBlockNumber)
		return InvalidBuffer;
	hint->used = ++hint_clock;
	buffer = wh_walk_right(index, block, key, side, lockmode, &steps);
	note_try(hint, BufferIsValid(buffer) && steps == 0);
	return buffer;
}

/*
 * Counts a search through the directory.
 */
void
wh_note_descent(Relation index)
{
	WhHint	   *hint = hint_of(index, wh_cache(index));

	hint->counts.descents++;
	if (wh_enable_hint)
		hint->debt++;
}

/*
 * Returns how an index's hint has been used, by all sessions if they share it,
 * and its size.
 */
void
wh_hint_status(Relation index, WhHintCounts *counts, Size *size)
{
	WhCache    *cache = wh_cache(index);
	WhHint	   *hint = hint_of(index, cache);

	if (!cache->have_meta)
		wh_read_meta(index);
	(void) wh_attach_shared(hint, cache->identity);
	if (hint->present && hint->identity != cache->identity)
		wh_forget_trie(hint);
	*counts = hint->counts;
	*size = hint->present ? hint->size : 0;
	wh_share_counts(hint, counts);
}

/*
 * Counts the hints of this backend, and the bytes that they and remembered
 * buffers take.
 */
static void
tell_hints(int64 *entries, int64 *bytes)
{
	*entries = hints != NULL ? hash_get_num_entries(hints) : 0;
	*bytes = hints_size + *entries * sizeof(WhHint) + wh_recent_size();
}

/*
 * Forgets hints of dropped indexes.  Only relation cache entries point to
 * hints, and nobody can open those of a dropped index any more.
 */
static void
forget_dropped(void)
{
	HASH_SEQ_STATUS all;
	WhHint	   *hint;

	hash_seq_init(&all, hints);
	while ((hint = hash_seq_search(&all)) != NULL)
	{
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(hint->relid)))
			continue;
		wh_forget_trie(hint);
		hash_search(hints, &hint->relid, HASH_REMOVE, NULL);
	}
}

/*
 * Transaction callback, before the end, when catalogs can be read and no index
 * is in use.  Looks for hints of dropped indexes when they may be half of all.
 */
static void
transaction_ends(XactEvent event, void *arg)
{
	static int64 enough = FEW_HINTS;

	if ((event != XACT_EVENT_PRE_COMMIT && event != XACT_EVENT_PRE_PREPARE) ||
		hints == NULL || hash_get_num_entries(hints) < enough)
		return;
	forget_dropped();
	enough = 2 * hash_get_num_entries(hints) + FEW_HINTS;
}

/*
 * Called once, when the library is loaded.
 */
void
wh_init_hints(void)
{
	rf_tell_hints = tell_hints;
	RegisterXactCallback(transaction_ends, NULL);
	wh_init_shared_hints();
}
