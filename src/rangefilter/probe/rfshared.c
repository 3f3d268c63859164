/*-------------------------------------------------------------------------
 *
 * rfshared.c
 *	  Sets up shared memory if the server loads the library: change counters
 *	  (rfcounters.c) and digests (rfdigeststore.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "rangefilter/page/shared.h"
#include "rangefilter/probe/internal.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/guc.h"

RfShared   *rf_shared = NULL;

static shmem_request_hook_type previous_request = NULL;
static shmem_startup_hook_type previous_startup = NULL;

/*
 * shmem_request_hook
 */
static void
request_memory(void)
{
	if (previous_request)
		previous_request();
	RequestAddinShmemSpace(sizeof(RfShared));
	RequestAddinShmemSpace(rf_digests_memory());
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
	rf_shared = ShmemInitStruct("rangefilter", sizeof(RfShared), &found);
	for (int i = 0; i < RF_CHANGE_COUNTERS && !found; i++)
		pg_atomic_init_u64(&rf_shared->counters[i], 1);
	if (!found)
		pg_atomic_init_u64(&rf_shared->moves, 1);
	rf_start_digests();
	LWLockRelease(AddinShmemInitLock);
}

/*
 * Called once, when the library is loaded.  The setting exists, without effect, also where the
 * server has not loaded it: ALTER SYSTEM can set it before the restart that does, and a line
 * in postgresql.conf brings no warnings.  (Sessions cannot make a setting of PGC_POSTMASTER.)
 */
void
rf_init_shared(void)
{
	bool		preloaded = process_shared_preload_libraries_in_progress;

	DefineCustomIntVariable("rangefilter.shared_cache_size",
							"How much memory sessions share to remember range filters.",
							"With room for a few bytes per distinct number, "
							"thousands of partitions are skipped at once. 0: sessions "
							"remember them by themselves. Without effect unless the library is in "
							"shared_preload_libraries.",
							&rf_shared_cache_size,
							131072,
							0,
							MAX_KILOBYTES,
							preloaded ? PGC_POSTMASTER : PGC_SIGHUP,
							GUC_UNIT_KB,
							NULL,
							NULL,
							NULL);
	if (!preloaded)
		return;
	previous_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = start_memory;
}
