/*-------------------------------------------------------------------------
 *
 * rfslots.c
 *	  Counters of changes, in shared memory where the server loaded the library.
 *
 * Every index has a counter, which it may share with others; whoever moves its
 * stamp (RfStamp) advances it.  So what was read from the index is still so if
 * the counter is what it was before the reading: this takes no lock and no look
 * at the index.
 *
 * A counter is advanced while the metapage is locked exclusively.  Whoever read
 * the counter later than that, and then the metapage, which needs the lock, too,
 * has seen the change; for all others the counter has moved.  A transaction's
 * changes come before its commit, hence before any snapshot that sees its rows.
 *
 * WAL replay advances nothing.  So in recovery there are no counters; what was
 * read then is not compared with them later.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "rangefilter/rangefilter.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

/* Some ten thousand partitions should not often meet. */
#define RF_SLOTS	4096

static pg_atomic_uint64 *slots = NULL;

static shmem_request_hook_type previous_request = NULL;
static shmem_startup_hook_type previous_startup = NULL;

/*
 * The counter of an index of this database.
 */
static inline pg_atomic_uint64 *
rf_slot(Oid index)
{
	return &slots[(murmurhash32(index) ^ MyDatabaseId) % RF_SLOTS];
}

/*
 * The stamp of the index, whose metapage the caller has locked exclusively,
 * moves.
 */
void
rf_advance_slot(Oid index)
{
	if (slots != NULL)
		(void) pg_atomic_fetch_add_u64(rf_slot(index), 1);
}

/*
 * See probe.h.
 */
uint64
rf_read_slot(Oid index)
{
	uint64		slot;

	if (slots == NULL || RecoveryInProgress())
		return 0;
	slot = pg_atomic_read_u64(rf_slot(index));

	/* What the caller reads now it must not have read already. */
	pg_read_barrier();
	return slot;
}

/*
 * shmem_request_hook
 */
static void
request_memory(void)
{
	if (previous_request)
		previous_request();
	RequestAddinShmemSpace(RF_SLOTS * sizeof(pg_atomic_uint64));
}

/*
 * shmem_startup_hook
 */
static void
start_memory(void)
{
	bool		found;

	if (previous_startup)
		previous_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	slots = ShmemInitStruct("rangefilter changes",
							RF_SLOTS * sizeof(pg_atomic_uint64), &found);
	for (int i = 0; i < RF_SLOTS && !found; i++)
		pg_atomic_init_u64(&slots[i], 1);
	LWLockRelease(AddinShmemInitLock);
}

/*
 * Called once, when the library is loaded.
 */
void
rf_init_slots(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	previous_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = start_memory;
}
