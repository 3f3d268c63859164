/*-------------------------------------------------------------------------
 *
 * rfsharedstats.c
 *	  Counters in shared memory.
 *
 * There is shared memory for them if the server preloaded the library
 * (shared_preload_libraries): a hash table of fixed size for all databases.
 * When it is full, the indexes that were not asked for the longest time make
 * room.  The counters begin at zero when the server starts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "miscadmin.h"
#include "stats/stats.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/hsearch.h"

typedef struct RfSharedKey
{
	Oid			database;
	Oid			index;
} RfSharedKey;

/* An entry of the table. */
typedef struct RfSharedCounts
{
	RfSharedKey key;			/* hash key */
	RfCounts	counts;
	TimestampTz changed;
} RfSharedCounts;

static HTAB *shared_counts = NULL;
static LWLock *shared_lock = NULL;

static shmem_request_hook_type previous_request = NULL;
static shmem_startup_hook_type previous_startup = NULL;

/*
 * Return true if there is shared memory for counters.
 */
bool
rf_have_shared_stats(void)
{
	return shared_counts != NULL;
}

/*
 * Locks the table, to change it.  Waits for the lock if wait is set; otherwise
 * false if it would have to.
 */
bool
rf_lock_shared_stats(bool wait)
{
	if (wait)
		LWLockAcquire(shared_lock, LW_EXCLUSIVE);
	return wait || LWLockConditionalAcquire(shared_lock, LW_EXCLUSIVE);
}

/*
 * Releases the lock that rf_lock_shared_stats() has taken.
 */
void
rf_unlock_shared_stats(void)
{
	LWLockRelease(shared_lock);
}

/*
 * The key of an index of this database in the shared hash table.
 */
static RfSharedKey
key_of(Oid index)
{
	RfSharedKey key = {MyDatabaseId, index};

	return key;
}

/*
 * Removes entries that last changed before a time, "most" at most; returns
 * how many.
 */
static int
remove_older(TimestampTz limit, int most)
{
	HASH_SEQ_STATUS status;
	RfSharedCounts *entry;
	int			n = 0;

	hash_seq_init(&status, shared_counts);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->changed > limit)
			continue;
		hash_search(shared_counts, &entry->key, HASH_REMOVE, NULL);
		if (++n == most)
		{
			hash_seq_term(&status);
			break;
		}
	}
	return n;
}

/*
 * Removes one entry in sixteen, roughly those that have not changed for the
 * longest time.  Takes the time since the oldest change, and removes entries
 * of its oldest eighth, then fourth, then half, until there are enough.  Takes
 * no memory, and four passes.
 */
static void
make_room(TimestampTz now)
{
	const int	enough = RF_STATS_MAX / 16;
	TimestampTz oldest = now;
	HASH_SEQ_STATUS status;
	RfSharedCounts *entry;
	int			n = 0;

	hash_seq_init(&status, shared_counts);
	while ((entry = hash_seq_search(&status)) != NULL)
		oldest = Min(oldest, entry->changed);
	for (int part = 8; part >= 1 && n < enough; part /= 2)
		n += remove_older(oldest + (now - oldest) / part, enough - n);
}

/*
 * Adds to the counters of an index of this database.  The table is locked by
 * rf_lock_shared_stats().
 */
void
rf_add_shared_counts(Oid index, const RfCounts *counts, TimestampTz now)
{
	RfSharedKey key = key_of(index);
	RfSharedCounts *entry = hash_search(shared_counts, &key, HASH_FIND, NULL);

	if (entry == NULL)
	{
		if (hash_get_num_entries(shared_counts) >= RF_STATS_MAX)
			make_room(now);
		entry = hash_search(shared_counts, &key, HASH_ENTER_NULL, NULL);
		if (entry == NULL)
			return;
		memset(&entry->counts, 0, sizeof(RfCounts));
	}
	rf_counts_add(&entry->counts, counts);
	entry->changed = now;
}

/*
 * The counters of an index of this database; zero where there are none.
 */
void
rf_read_shared_counts(Oid index, RfCounts *counts)
{
	RfSharedKey key = key_of(index);
	RfSharedCounts *entry;

	memset(counts, 0, sizeof(RfCounts));
	LWLockAcquire(shared_lock, LW_SHARED);
	entry = hash_search(shared_counts, &key, HASH_FIND, NULL);
	if (entry != NULL)
		*counts = entry->counts;
	LWLockRelease(shared_lock);
}

/*
 * Removes the counters of an index, or of all indexes, of this database.
 */
void
rf_reset_shared_counts(Oid index)
{
	HASH_SEQ_STATUS status;
	RfSharedCounts *entry;

	LWLockAcquire(shared_lock, LW_EXCLUSIVE);
	hash_seq_init(&status, shared_counts);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->key.database == MyDatabaseId &&
			(!OidIsValid(index) || entry->key.index == index))
			hash_search(shared_counts, &entry->key, HASH_REMOVE, NULL);
	}
	LWLockRelease(shared_lock);
}

/*
 * shmem_request_hook
 */
static void
request_memory(void)
{
	if (previous_request)
		previous_request();
	RequestAddinShmemSpace(hash_estimate_size(RF_STATS_MAX,
											  sizeof(RfSharedCounts)));
	RequestNamedLWLockTranche("rangefilter", 1);
}

/*
 * shmem_startup_hook
 */
static void
start_memory(void)
{
	HASHCTL		control;

	if (previous_startup)
		previous_startup();
	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(RfSharedKey);
	control.entrysize = sizeof(RfSharedCounts);
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared_lock = &GetNamedLWLockTranche("rangefilter")->lock;
	shared_counts = RF_SHARED_TABLE("rangefilter counters", RF_STATS_MAX,
									&control, HASH_ELEM | HASH_BLOBS);
	LWLockRelease(AddinShmemInitLock);
}

/*
 * Called once, when the library is loaded.
 */
void
rf_init_shared_stats(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	previous_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = start_memory;
}
