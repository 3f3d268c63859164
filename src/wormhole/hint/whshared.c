/*-------------------------------------------------------------------------
 *
 * whshared.c
 *	  Tries in shared memory, if the library is preloaded.
 *
 * A session that makes a trie copies it into the shared area, and all others
 * use it.  A search takes no lock.  The slot's generation tells whether the
 * trie is still the same.  If it is overwritten after the generation was read,
 * the search returns some leaf (see WhTrie), whose bounds are checked.  The
 * lock protects the slots, and with them the space they take.  What sessions
 * change while they share the lock is atomic.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "wormhole/hint/whhint_impl.h"

/* The most indexes whose tries are shared at a time. */
#define SLOTS	128

typedef struct SharedSlot
{
	uint64		generation;		/* 0: free */
	Oid			database;
	Oid			relid;
	uint64		identity;
	Size		off;			/* of its memory in the area */
	Size		size;
	WhTrie		trie;			/* only its numbers count; the pointers are
								 * those of the session that made it */
	pg_atomic_uint64 used;		/* clock when counts were last added */
	pg_atomic_uint64 hits;		/* WhHintCounts */
	pg_atomic_uint64 stale;
	pg_atomic_uint64 descents;
} SharedSlot;

typedef struct SharedArea
{
	LWLock	   *lock;
	uint64		last_generation;
	pg_atomic_uint64 clock;
	Size		size;			/* of the memory behind this */
	SharedSlot	slots[SLOTS];
} SharedArea;

static SharedArea *area = NULL;
static char *area_memory;

static shmem_request_hook_type next_shmem_request = NULL;
static shmem_startup_hook_type next_shmem_startup = NULL;

/*
 * wormhole.hint_memory when the server started, in bytes.  The setting may
 * have changed when the memory is made anew after a crash.
 */
static Size memory_size;

#define AREA_SIZE \
	(CACHELINEALIGN(sizeof(SharedArea)) + memory_size + PG_CACHE_LINE_SIZE)

#define LOCK_NAME	"wormhole"

/*
 * shmem_request_hook: requests the shared memory and the lock of hints.
 */
static void
request_memory(void)
{
	if (next_shmem_request)
		next_shmem_request();
	memory_size = wh_hint_memory * (Size) 1024;
	RequestAddinShmemSpace(AREA_SIZE);
	RequestNamedLWLockTranche(LOCK_NAME, 1);
}

/*
 * shmem_startup_hook: makes the shared area, or attaches to it.
 */
static void
start_up(void)
{
	bool		found;

	if (next_shmem_startup)
		next_shmem_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	area = ShmemInitStruct("wormhole hints", AREA_SIZE, &found);
	if (!found)
	{
		memset(area, 0, sizeof(*area));
		area->lock = &GetNamedLWLockTranche(LOCK_NAME)->lock;
		area->size = memory_size;
		pg_atomic_init_u64(&area->clock, 0);
		for (int i = 0; i < SLOTS; i++)
		{
			pg_atomic_init_u64(&area->slots[i].used, 0);
			pg_atomic_init_u64(&area->slots[i].hits, 0);
			pg_atomic_init_u64(&area->slots[i].stale, 0);
			pg_atomic_init_u64(&area->slots[i].descents, 0);
		}
	}
	LWLockRelease(AddinShmemInitLock);
	area_memory = (char *) CACHELINEALIGN(area + 1);
}

/*
 * Called when the library is loaded.
 */
void
wh_init_shared_hints(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	next_shmem_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	next_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = start_up;
}

/*
 * The slot of an index, or NULL.  The lock is held.
 */
static SharedSlot *
find_slot(Oid relid)
{
	for (int i = 0; i < SLOTS; i++)
	{
		SharedSlot *slot = &area->slots[i];

		if (slot->generation != 0 && slot->relid == relid &&
			slot->database == MyDatabaseId)
			return slot;
	}
	return NULL;
}

/*
 * Notes that a slot is used now.  The lock is held, shared or not.
 */
static void
note_use(SharedSlot *slot)
{
	pg_atomic_write_u64(&slot->used, pg_atomic_add_fetch_u64(&area->clock, 1));
}

/*
 * Makes a hint use the index's shared trie, if there is one that it does not
 * use already.  Returns whether it did.
 */
bool
wh_attach_shared(WhHint *hint, uint64 identity)
{
	SharedSlot *slot;
	bool		attached = false;

	if (area == NULL)
		return false;
	LWLockAcquire(area->lock, LW_SHARED);
	slot = find_slot(hint->relid);
	if (slot != NULL && slot->identity == identity &&
		!(hint->present && hint->memory == NULL &&
		  hint->generation == slot->generation))
	{
		wh_forget_trie(hint);
		hint->trie = slot->trie;
		wh_trie_place(&hint->trie, area_memory + slot->off);
		hint->size = slot->size;
		hint->slot = slot - area->slots;
		hint->generation = slot->generation;
		hint->identity = identity;
		hint->present = true;
		hint->debt = 0;
		attached = true;
	}
	LWLockRelease(area->lock);
	return attached;
}

/*
 * Is the shared trie that a hint points to still there?  Takes no lock.
 */
bool
wh_shared_is_current(const WhHint *hint)
{
	return ((volatile SharedSlot *) &area->slots[hint->slot])->generation ==
		hint->generation;
}

/*
 * The lowest free place for "size" bytes, or SIZE_MAX.  Only the beginning of
 * the area and the ends of tries are considered.  The lock is held.
 */
static Size
find_space(Size size)
{
	Size		best = SIZE_MAX;

	for (int i = -1; i < SLOTS; i++)
	{
		Size		at = 0;
		bool		fits = true;

		if (i >= 0 && area->slots[i].generation == 0)
			continue;
		if (i >= 0)
			at = CACHELINEALIGN(area->slots[i].off + area->slots[i].size);
		if (at + size > area->size || at >= best)
			continue;
		for (int j = 0; j < SLOTS && fits; j++)
		{
			SharedSlot *other = &area->slots[j];

			fits = other->generation == 0 || other->off >= at + size ||
				other->off + other->size <= at;
		}
		if (fits)
			best = at;
	}
	return best;
}

/*
 * The slot that was used least recently; if free is set, a free slot if there
 * is one.  The lock is held exclusively.
 */
static SharedSlot *
oldest_slot(bool free)
{
	SharedSlot *oldest = NULL;

	for (int i = 0; i < SLOTS; i++)
	{
		SharedSlot *slot = &area->slots[i];

		if (slot->generation == 0)
		{
			if (free)
				return slot;
		}
		else if (oldest == NULL ||
				 pg_atomic_read_u64(&slot->used) < pg_atomic_read_u64(&oldest->used))
			oldest = slot;
	}
	return oldest;
}

/*
 * Copies a hint's own trie into the shared area.  To make room, frees slots
 * used least recently.  False where there is no such area or it is too small.
 */
bool
wh_share_trie(WhHint *hint)
{
	SharedSlot *slot;
	SharedSlot *before;
	Size		off;
	uint64		counts[3] = {0};

	if (area == NULL || hint->size > area->size)
		return false;
	LWLockAcquire(area->lock, LW_EXCLUSIVE);
	before = find_slot(hint->relid);
	if (before != NULL)
	{
		before->generation = 0;
		if (before->identity == hint->identity)
		{
			counts[0] = pg_atomic_read_u64(&before->hits);
			counts[1] = pg_atomic_read_u64(&before->stale);
			counts[2] = pg_atomic_read_u64(&before->descents);
		}
	}
	while ((off = find_space(hint->size)) == SIZE_MAX)
		oldest_slot(false)->generation = 0;
	slot = oldest_slot(true);
	slot->generation = 0;
	pg_write_barrier();
	memcpy(area_memory + off, hint->trie.buckets, hint->size);
	slot->database = MyDatabaseId;
	slot->relid = hint->relid;
	slot->identity = hint->identity;
	slot->off = off;
	slot->size = hint->size;
	slot->trie = hint->trie;
	note_use(slot);
	pg_atomic_write_u64(&slot->hits, counts[0]);
	pg_atomic_write_u64(&slot->stale, counts[1]);
	pg_atomic_write_u64(&slot->descents, counts[2]);
	pg_write_barrier();
	slot->generation = ++area->last_generation;
	LWLockRelease(area->lock);
	return true;
}

/*
 * Adds the growth of a hint's counts to the shared counts, if the index has a
 * slot.  Sets *all, if not NULL, to the shared counts.
 */
void
wh_share_counts(WhHint *hint, WhHintCounts *all)
{
	WhHintCounts *counts = &hint->counts;
	WhHintCounts *reported = &hint->reported;
	SharedSlot *slot;

	if (area == NULL)
		return;
	LWLockAcquire(area->lock, LW_SHARED);
	slot = find_slot(hint->relid);
	if (slot != NULL)
	{
		note_use(slot);
		pg_atomic_fetch_add_u64(&slot->hits, counts->hits - reported->hits);
		pg_atomic_fetch_add_u64(&slot->stale, counts->stale - reported->stale);
		pg_atomic_fetch_add_u64(&slot->descents,
								counts->descents - reported->descents);
		*reported = *counts;
		if (all != NULL)
		{
			all->hits = pg_atomic_read_u64(&slot->hits);
			all->stale = pg_atomic_read_u64(&slot->stale);
			all->descents = pg_atomic_read_u64(&slot->descents);
		}
	}
	LWLockRelease(area->lock);
}
