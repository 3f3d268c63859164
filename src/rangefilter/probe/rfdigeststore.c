/*-------------------------------------------------------------------------
 *
 * rfdigeststore.c
 *	  Memory of digest matrices: shared if the server loaded the library, else
 *	  the session's own.
 *
 * Bits are in a DSA area.  To make room, matrices are thrown away that nobody
 * has asked for some time.  A session that still reads there finds "writes"
 * changed: see rfdigests.c.
 *
 * A session's own store works the same way, but has no lock.  Its memory counts
 * towards rangefilter.cache_size.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "rangefilter/page/shared.h"
#include "rangefilter/probe/digeststore.h"
#include "stats/session.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/dsa.h"
#include "utils/memutils.h"

/*
 * A session has at most one matrix of its own for each BYTES_PER_OWN_MATRIX of its memory
 * limit.
 */
#define BYTES_PER_OWN_MATRIX	(64 * 1024)

/* Seconds: a matrix that was asked within this time is not thrown away. */
#define IN_USE	10

/* With less memory than this (bytes) there are no shared digests. */
#define LEAST_MEMORY	(1024 * 1024)

/*
 * The name "rangefilter" is taken by the lock of counters: see rfsharedstats.c.
 */
#define LOCK_NAME	"rangefilter_digests"

#define STORE_SIZE(nmatrices) \
	CACHELINEALIGN(offsetof(RfDigestStore, matrices) + \
				   (nmatrices) * sizeof(RfDigestMatrix))

int			rf_shared_cache_size = 131072;

RfDigestStore *rf_digest_store = NULL;

uint32	   *rf_digest_places = NULL;

/* Has the session's own store. */
static MemoryContext own_context = NULL;

/* Bytes of rangefilter.shared_cache_size. */
static Size area_size;

/*
 * Where the DSA area is in shared memory.
 */
static void *
area_place(void)
{
	return (char *) rf_digest_store + STORE_SIZE(RF_DIGEST_MATRICES);
}

/*
 * Returns how much shared memory to request (bytes), and requests the lock.
 */
Size
rf_digests_memory(void)
{
	area_size = (Size) rf_shared_cache_size * 1024;
	if (area_size < LEAST_MEMORY)
		return 0;
	RequestNamedLWLockTranche(LOCK_NAME, 1);
	return STORE_SIZE(RF_DIGEST_MATRICES) + area_size + RF_DIGEST_PLACES * sizeof(uint32) +
		2 * PG_CACHE_LINE_SIZE;
}

/*
 * Makes a new store empty.
 */
static void
clear_store(int nmatrices)
{
	rf_digest_store->lock = NULL;
	rf_digest_store->nmatrices = nmatrices;
	for (int i = 0; i < nmatrices; i++)
	{
		rf_digest_store->keys[i].index = InvalidOid;
		pg_atomic_init_u64(&rf_digest_store->matrices[i].writes, 0);
		pg_atomic_init_u64(&rf_digest_store->matrices[i].additions, 0);
		pg_atomic_init_u64(&rf_digest_store->matrices[i].used_at, 0);
	}
}

/*
 * Makes the shared store, or attaches to it.  AddinShmemInitLock is held.
 */
void
rf_start_digests(void)
{
	bool		found;
	dsa_area   *area;

	rf_digest_store = NULL;
	if (area_size < LEAST_MEMORY)
		return;
	rf_digest_store = ShmemInitStruct("rangefilter digests",
									  STORE_SIZE(RF_DIGEST_MATRICES) + area_size,
									  &found);
	rf_digest_places = ShmemInitStruct("rangefilter columns", RF_DIGEST_PLACES * sizeof(uint32),
									   &found);
	if (found)
		return;
	clear_store(RF_DIGEST_MATRICES);
	memset(rf_digest_places, 0, RF_DIGEST_PLACES * sizeof(uint32));
	rf_digest_store->lock = &GetNamedLWLockTranche(LOCK_NAME)->lock;
	area = dsa_create_in_place(area_place(), area_size, rf_digest_store->lock->tranche,
							   NULL);
	dsa_pin(area);
	dsa_set_size_limit(area, area_size);
	dsa_detach(area);
}

/*
 * The area, attached, for allocating or freeing.  May fail for lack of memory.
 */
static dsa_area *
attach_area(void)
{
	static dsa_area * area = NULL;
	MemoryContext old;

	if (area != NULL)
		return area;
	old = MemoryContextSwitchTo(TopMemoryContext);
	area = dsa_attach_in_place(area_place(), NULL);
	MemoryContextSwitchTo(old);
	on_shmem_exit(dsa_on_shmem_exit_release_in_place,
				  PointerGetDatum(area_place()));
	return area;
}

/*
 * Are they in shared memory?
 */
bool
rf_digests_are_shared(void)
{
	return rf_digest_store != NULL && rf_digest_store->lock != NULL;
}

/*
 * Bytes for all matrices.
 */
static Size
all_room(void)
{
	return rf_digests_are_shared() ? area_size : rf_cache_limit();
}

/*
 * See digeststore.h.
 */
void
rf_lock_digests(LWLockMode mode)
{
	if (rf_digest_store->lock != NULL)
		LWLockAcquire(rf_digest_store->lock, mode);
}

/*
 * See digeststore.h.
 */
void
rf_unlock_digests(void)
{
	if (rf_digest_store->lock != NULL)
		LWLockRelease(rf_digest_store->lock);
}

/*
 * The matrix with this key, or NULL.  Without the lock, that may be another's by now, or one that
 * is just being made may be missed.
 */
RfDigestMatrix *
rf_find_matrix(Oid index, int number)
{
	for (int i = 0; i < rf_digest_store->nmatrices; i++)
	{
		const RfMatrixKey *key = &rf_digest_store->keys[i];

		if (key->index == index && key->number == number && rf_matrix_is_ours(key))
			return &rf_digest_store->matrices[i];
	}
	return NULL;
}

/*
 * The clock by which matrices are in use.
 */
uint64
rf_this_second(void)
{
	return (uint64) time(NULL);
}

/*
 * See digeststore.h.
 */
void
rf_begin_change(RfDigestMatrix *matrix)
{
	(void) pg_atomic_fetch_add_u64(&matrix->writes, 1);
}

/*
 * See digeststore.h.
 */
void
rf_end_change(RfDigestMatrix *matrix)
{
	(void) pg_atomic_fetch_add_u64(&matrix->writes, 1);
}

/*
 * Would a session's own digests leave too little room for cached metapages?
 */
static bool
is_too_much(Size size)
{
	Size		limit = all_room();

	return rf_cache_used + size > limit - limit / 16;
}

/*
 * Makes the session's own store, if there is none, or attaches to the shared one's bits; may raise
 * an error.  False where there is too little room.
 */
bool
rf_need_digest_store(void)
{
	int			nmatrices = Min(RF_DIGEST_MATRICES,
								rf_session_limit() / BYTES_PER_OWN_MATRIX);

	if (rf_digests_are_shared())
		(void) attach_area();
	if (rf_digest_store != NULL)
		return true;
	if (nmatrices == 0 || is_too_much(STORE_SIZE(nmatrices)))
		return false;

	/* Small block sizes: so freed memory goes back to malloc(). */
	if (own_context == NULL)
		own_context = AllocSetContextCreate(rf_session_context(),
											"rangefilter digests",
											ALLOCSET_SMALL_SIZES);
	rf_digest_store = MemoryContextAllocZero(own_context, STORE_SIZE(nmatrices));
	clear_store(nmatrices);
	rf_cache_used += GetMemoryChunkSpace(rf_digest_store);
	return true;
}

/*
 * Allocates memory for the bits of a matrix, set to 0.  False where there is
 * no room.  The lock is held exclusively.
 */
static bool
allocate_rows(RfDigestMatrix *matrix, Size size)
{
	if (rf_digests_are_shared())
	{
		matrix->memory = dsa_allocate_extended(attach_area(), size,
											   DSA_ALLOC_HUGE | DSA_ALLOC_NO_OOM |
											   DSA_ALLOC_ZERO);
		if (!DsaPointerIsValid(matrix->memory))
			return false;
		matrix->rows = dsa_get_address(attach_area(), matrix->memory);
		return true;
	}
	if (is_too_much(size))
		return false;
	matrix->rows = MemoryContextAllocExtended(own_context, size,
											  MCXT_ALLOC_HUGE |
											  MCXT_ALLOC_NO_OOM |
											  MCXT_ALLOC_ZERO);
	if (matrix->rows == NULL)
		return false;
	rf_cache_used += GetMemoryChunkSpace(matrix->rows);
	return true;
}

/*
 * Gives the memory of a matrix's rows back.
 */
static void
free_rows(RfDigestMatrix *matrix)
{
	if (rf_digests_are_shared())
		dsa_free(attach_area(), matrix->memory);
	else
	{
		rf_cache_used -= GetMemoryChunkSpace(matrix->rows);
		pfree(matrix->rows);
	}
}

/*
 * See digeststore.h.
 */
Size
rf_matrix_size(const RfDigestMatrix *matrix)
{
	return filter_digests_words(matrix->buckets.nbits) * sizeof(uint64);
}

/*
 * Was the matrix with this number asked so lately that it is not thrown away?
 */
static bool
is_in_use(int i, uint64 now)
{
	return OidIsValid(rf_digest_store->keys[i].index) &&
		pg_atomic_read_u64(&rf_digest_store->matrices[i].used_at) + IN_USE > now;
}

/*
 * See probe.h.
 */
Size
rf_digests_room(Oid index)
{
	Size		room = all_room();
	uint64		now = rf_this_second();

	if (RecoveryInProgress())
		return 0;
	if (rf_digest_store == NULL)
		return room;
	rf_lock_digests(LW_SHARED);
	for (int i = 0; i < rf_digest_store->nmatrices; i++)
	{
		if (is_in_use(i, now) && (rf_digest_store->keys[i].index != index ||
								  rf_digest_store->keys[i].database != MyDatabaseId))
			room -= Min(room, rf_matrix_size(&rf_digest_store->matrices[i]));
	}
	rf_unlock_digests();
	return room;
}

/*
 * Throws a matrix away.  The lock is held exclusively.
 */
void
rf_free_matrix(int i)
{
	RfDigestMatrix *matrix = &rf_digest_store->matrices[i];

	rf_begin_change(matrix);
	rf_digest_store->keys[i].index = InvalidOid;
	memset(matrix->columns, 0, sizeof(matrix->columns));
	rf_end_change(matrix);
	free_rows(matrix);
}

/*
 * Throws away the matrix that was asked the longest time ago, and returns its
 * number; -1 where all are in use or there is none.  The lock is held
 * exclusively.
 */
static int
free_oldest_matrix(void)
{
	int			oldest = -1;
	uint64		used_at = 0;

	for (int i = 0; i < rf_digest_store->nmatrices; i++)
	{
		uint64		when = pg_atomic_read_u64(&rf_digest_store->matrices[i].used_at);

		if (OidIsValid(rf_digest_store->keys[i].index) && (oldest < 0 || when < used_at))
		{
			oldest = i;
			used_at = when;
		}
	}
	if (oldest < 0 || is_in_use(oldest, rf_this_second()))
		return -1;
	rf_free_matrix(oldest);
	return oldest;
}

/*
 * See digeststore.h.
 */
int
rf_allocate_matrix(Size words)
{
	int			i = 0;

	/* Throw nothing away for a matrix that will not fit. */
	if (words * sizeof(uint64) > all_room() / 2)
		return -1;
	while (i < rf_digest_store->nmatrices && OidIsValid(rf_digest_store->keys[i].index))
		i++;
	if (i == rf_digest_store->nmatrices && (i = free_oldest_matrix()) < 0)
		return -1;
	while (!allocate_rows(&rf_digest_store->matrices[i], words * sizeof(uint64)))
	{
		if (free_oldest_matrix() < 0)
			return -1;
	}
	return i;
}

/*
 * Throws a matrix away if it is the session's own.  Shared ones stay.
 */
void
rf_digests_forget(Oid index, int number)
{
	RfDigestMatrix *matrix;

	if (rf_digest_store == NULL || rf_digests_are_shared())
		return;
	matrix = rf_find_matrix(index, number);
	if (matrix != NULL)
		rf_free_matrix(matrix - rf_digest_store->matrices);
}

/*
 * Frees all memory for the session's own matrices.  The caller knows that no view of them is in
 * use.
 */
void
rf_digests_forget_own(void)
{
	if (rf_digest_store == NULL || rf_digests_are_shared())
		return;
	for (int i = 0; i < rf_digest_store->nmatrices; i++)
	{
		if (OidIsValid(rf_digest_store->keys[i].index))
			rf_free_matrix(i);
	}
	rf_cache_used -= GetMemoryChunkSpace(rf_digest_store);
	rf_digest_store = NULL;
	MemoryContextReset(own_context);
}

/*
 * Counts the columns in the session's own matrices, outdated ones included,
 * and all bytes allocated for them.
 */
void
rf_digests_own_usage(int64 *columns, int64 *bytes)
{
	*columns = 0;
	*bytes = own_context == NULL ? 0 :
		MemoryContextMemAllocated(own_context, true);
	if (rf_digest_store == NULL || rf_digests_are_shared())
		return;
	for (int i = 0; i < rf_digest_store->nmatrices; i++)
	{
		for (int j = 0; OidIsValid(rf_digest_store->keys[i].index) && j < FILTER_DIGESTS;
			 j++)
			*columns += OidIsValid(rf_digest_store->matrices[i].columns[j].index);
	}
}

/*
 * Throws away the shared matrices of the database with this OID, which is just being created.
 * They belong to a dropped database that had the same OID.  Its files may have had the same names,
 * if one database is a copy of the other.
 */
void
rf_digests_forget_database(Oid database)
{
	if (!rf_digests_are_shared())
		return;
	(void) attach_area();
	rf_lock_digests(LW_EXCLUSIVE);
	for (int i = 0; i < rf_digest_store->nmatrices; i++)
	{
		if (OidIsValid(rf_digest_store->keys[i].index) &&
			rf_digest_store->keys[i].database == database)
			rf_free_matrix(i);
	}
	rf_unlock_digests();
}
