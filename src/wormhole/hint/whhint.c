/*-------------------------------------------------------------------------
 *
 * whhint.c
 *	  What a backend remembers of indexes: leaves of keys, buffers of blocks.
 *
 * Two hints, neither of them ever the truth.
 *
 * A MetaTrieHT (whtrie.c) leads from a key to its leaf without the directory.
 * It is made from the directory's lowest level once as many lookups have gone
 * through the directory as repay that, and made anew once as many have been led
 * astray.  Leaves say in their bounds whether the key is theirs; where
 * it is not, a few steps to the right or else a descent find the right one.
 * When the library is preloaded the tries are in shared memory (whshared.c).
 *
 * And finding a block in the shared buffer table costs a hash, a partition
 * lock and two or three lines of memory that are in no cache.  So each backend
 * remembers the buffers of blocks it has read, in a table of fixed size without
 * chains, for all its indexes.  Core verifies the guess while pinning: a
 * wrong one costs a little and does no harm.  Nothing needs to be invalidated.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "compat.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "wormhole/hint/whhint.h"

/* Settings. */
bool		wh_enable_hint = true;
int			wh_hint_memory = 8192;	/* kB */
static int	hint_after = 4;

/*
 * A pin by a remembered buffer does not count as use for the buffer pool's
 * clock.  So that hot pages stay, every so many pins go the long way.
 */
#define LONG_WAY	64

/* The part of the memory that is for remembered buffers: one in so many. */
#define BUFFERS_PART	8

/* Steps to the right before the directory is asked instead. */
#define MOST_STEPS		2

/* After so many lookups, a backend asks whether others have a trie. */
#define LOOK_AROUND	256

/* Of so many tries half must be right, or else there is a pause. */
#define TRIAL			1024
#define PAUSE			(15 * TRIAL)

/* The table: a power of two of buffers. */
static Buffer *recent = NULL;
static uint32 recent_mask = 0;
static int	recent_memory = -1; /* the setting it was made for */

/* The hints, and the memory of their own tries. */
static HTAB *hints = NULL;
static Size hints_size = 0;
static uint64 hint_clock = 0;

/*
 * Registers the settings.  Called once, when the library is loaded.
 */
void
wh_init_hint(void)
{
	DefineCustomBoolVariable("wormhole.enable_hint",
							 "Finds leaves of wormhole indexes by hints in memory.",
							 NULL, &wh_enable_hint, true, PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("wormhole.hint_memory",
							"Memory of a session for hints to leaves of wormhole indexes.",
							"Where the library is preloaded, the server's setting is also the size of the memory for hints that all sessions share.",
							&wh_hint_memory, 8192, 64, 1024 * 1024,
							PGC_USERSET, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("wormhole.hint_after",
							"Lookups for each leaf of an index after which a session makes its hint.",
							"With 0 it is made at once.",
							&hint_after, 4, 0, 1000000,
							PGC_USERSET, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	wh_init_shared_hints();
}

/*
 * Makes the table of buffers, or makes it anew after the setting has changed.
 * Where there is no memory there is no table.
 */
static void
make_table(void)
{
	Size		memory = wh_hint_memory * (Size) 1024 / BUFFERS_PART;
	Size		n = pg_prevpower2_64(memory / sizeof(Buffer));

	/* More than there are buffers would not remember more. */
	while (n / 4 > (Size) NBuffers && n > 1024)
		n /= 2;
	if (recent != NULL)
		pfree(recent);
	recent_memory = wh_hint_memory;
	recent_mask = n - 1;
	recent = MemoryContextAllocExtended(TopMemoryContext, n * sizeof(Buffer),
										MCXT_ALLOC_NO_OOM | MCXT_ALLOC_ZERO |
										MCXT_ALLOC_HUGE);
}

/*
 * Pins a block.
 */
Buffer
wh_pin(Relation index, BlockNumber block)
{
	static uint32 pins = 0;
	Buffer	   *place;

	/* Local buffers are found without locks anyway. */
	if (!wh_enable_hint || RelationUsesLocalBuffers(index))
		return ReadBuffer(index, block);
	if (unlikely(recent_memory != wh_hint_memory))
		make_table();
	if (unlikely(recent == NULL))
		return ReadBuffer(index, block);

	/* Neighbouring blocks are neighbours in the table. */
	place = &recent[(murmurhash32(RelationGetRelid(index)) + block) &
					recent_mask];
	if (likely(++pins % LONG_WAY != 0 && *place != InvalidBuffer &&
			   ReadRecentBuffer(RF_RELFILE(index), MAIN_FORKNUM, block,
								*place)))
		return *place;
	*place = ReadBuffer(index, block);
	return *place;
}

/*
 * The hint of an index, without a trie at first.
 */
WhHint *
wh_hint_of(Oid relid)
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
 * Forgets a trie.
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
 * Allocates memory for a trie, aligned to lines of the cache.  For the sake of
 * the limit forgets tries that have been used least recently.  False where
 * that does not help.
 */
static bool
take_memory(WhHint *hint, Size size, void **aligned)
{
	Size		limit = wh_hint_memory * (Size) 1024;

	limit -= limit / BUFFERS_PART;
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
 * Makes a trie of the anchors, in memory of this backend or, better, shared.
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

	/* A shared copy is the one to use. */
	if (wh_share_trie(hint))
		(void) wh_attach_shared(hint, identity);
}

/*
 * Gets a trie, or a newer one, where lookups have paid for it.  Called with
 * nothing locked, as it may take a while.
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

	/* Perhaps another backend has made one. */
	if (wh_attach_shared(hint, identity))
		return;
	if (hint->debt < hint_after * leaves)
	{
		hint->due = Min(hint->debt + LOOK_AROUND, hint_after * leaves);
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
 * Is the trie of this build of the index, and to be tried now?
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
 * Takes note of whether the trie was right.
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
 * The leaf of a position as the hint has it, verified, pinned and locked; or
 * InvalidBuffer, with nothing locked, where it is to be looked for in the
 * directory.  In a leaf locked exclusively no split is incomplete.
 */
Buffer
wh_hint_find(Relation index, const WhKey *key, WhSide side, int lockmode)
{
	WhCache    *cache = wh_cache(index);
	WhHint	   *hint = cache->hint;
	BlockNumber block;
	Buffer		buffer;
	int			steps = 0;

	if (cache->level == 0)
		return InvalidBuffer;	/* there is but one leaf */
	if (unlikely(hint->debt >= hint->due))
		pay_for_trie(index, hint);
	if (!use_trie(hint, cache))
		return InvalidBuffer;
	block = wh_trie_find(&hint->trie, key, side);
	if (block == InvalidBlockNumber)
		return InvalidBuffer;
	hint->used = ++hint_clock;
	buffer = wh_walk_right(index, block, key, side, lockmode, MOST_STEPS,
						   &steps);
	note_try(hint, BufferIsValid(buffer) && steps == 0);
	return buffer;
}

/*
 * Takes note that a leaf is being looked for in the directory.
 */
void
wh_note_descent(Relation index)
{
	WhHint	   *hint = wh_cache(index)->hint;

	hint->counts.descents++;
	if (wh_enable_hint)
		hint->debt++;
}

/*
 * What an index's hint has been used for, by all sessions if they share it,
 * and its size.
 */
void
wh_hint_status(Relation index, WhHintCounts *counts, Size *size)
{
	WhCache    *cache = wh_cache(index);
	WhHint	   *hint = cache->hint;

	if (!cache->have_meta)
		wh_read_meta(index);
	(void) wh_attach_shared(hint, cache->identity);
	if (hint->present && hint->identity != cache->identity)
		wh_forget_trie(hint);
	*counts = hint->counts;
	*size = hint->present ? hint->size : 0;
	wh_share_counts(hint, counts);
}
