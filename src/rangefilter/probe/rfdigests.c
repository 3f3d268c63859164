/*-------------------------------------------------------------------------
 *
 * rfdigests.c
 *	  Digest matrices: in shared memory if the server loaded the library, else
 *	  the session's own.
 *
 * A matrix is 64 columns of bits, for the digests of 64 indexes;
 * RfDigestColumn in probe.h describes a column.  Any session may put a digest
 * into a column, and all may read.
 *
 * The store has a lock.  A session takes it shared to find a matrix and to
 * copy its columns, and exclusively to change one.  Reading the bits takes no
 * lock: each matrix has a number, "writes", that is odd while the matrix is
 * being changed and even afterwards, and never the same again.  If the number
 * is the same before and after reading bits, the bits belong to the columns
 * that were copied.
 *
 * Bits are in a DSA area.  To make room, matrices are thrown away that nobody
 * has asked for some time.  A session that still reads there finds "writes"
 * changed.
 *
 * A session's own matrices work the same way, but have no lock.  Their memory
 * counts towards rangefilter.cache_size.
 *
 * A matrix may be outdated.  So a caller who relies on a column checks its index,
 * its file, and its validity.  An insert that writes a key adds it to the shared
 * digest of its index under its lock, which does not become outdated then.  It moves
 * "additions", not "writes": readers look at the columns again, for their versions.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "catalog/objectaccess.h"
#include "catalog/pg_database.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "rangefilter/page/shared.h"
#include "rangefilter/probe/internal.h"
#include "stats/session.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/dsa.h"
#include "utils/memutils.h"

/* The most matrices at a time. */
#define MATRICES	1024

/*
 * A session has one own matrix at most for each so many bytes of its memory
 * limit.
 */
#define BYTES_PER_OWN_MATRIX	(64 * 1024)

/* Seconds: a matrix that was asked within this time is not thrown away. */
#define IN_USE	10

/* Seconds: the time a matrix was asked is noted no more often than this. */
#define NOTE_USE	2

/* With less memory than this (bytes) there are no shared digests. */
#define LEAST_MEMORY	(1024 * 1024)

/*
 * The name "rangefilter" is taken by the lock of counters: see rfstatsfile.c.
 */
#define LOCK_NAME	"rangefilter_digests"

/*
 * Inserts find the column of an index by a hash table with this many places.
 * An index may use one of PLACES_TRIED places that follow each other.
 */
#define PLACES			65536
#define PLACES_TRIED	4

/*
 * A matrix belongs to 64 leaves of a partitioned index: those from 64 * number
 * on.
 */
typedef struct MatrixKey
{
	Oid			database;
	Oid			index;			/* partitioned; InvalidOid: the matrix is free */
	int			number;
} MatrixKey;

struct RfDigestMatrix
{
	pg_atomic_uint64 writes;
	pg_atomic_uint64 additions; /* keys added by inserts */
	pg_atomic_uint64 used_at;	/* second */
	dsa_pointer memory;			/* of rows, if shared */
	uint64	   *rows;
	FilterDigest buckets;
	uint64		used;			/* columns that may have bits in rows */
	RfDigestColumn columns[FILTER_DIGESTS];
};

/* The keys are apart from the matrices, so that a search is fast. */
typedef struct DigestStore
{
	LWLock	   *lock;			/* NULL: this is the session's own */
	Size		size;			/* of the area behind this */
	int			nmatrices;
	MatrixKey	keys[MATRICES];
	RfDigestMatrix matrices[FLEXIBLE_ARRAY_MEMBER];
} DigestStore;

#define STORE_SIZE(nmatrices) \
	CACHELINEALIGN(offsetof(DigestStore, matrices) + \
				   (nmatrices) * sizeof(RfDigestMatrix))

int			rf_shared_cache_size = 65536;

static DigestStore *store = NULL;

/* The hash table of shared columns: see column_number(); 0: free. */
static uint32 *places = NULL;

/* Has the session's own store. */
static MemoryContext own_context = NULL;

static object_access_hook_type previous_access = NULL;

/* Bytes of rangefilter.shared_cache_size. */
static Size area_size;

static void *
area_place(void)
{
	return (char *) store + STORE_SIZE(MATRICES);
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
	return STORE_SIZE(MATRICES) + area_size + PLACES * sizeof(uint32) +
		2 * PG_CACHE_LINE_SIZE;
}

/*
 * Makes a new store empty.
 */
static void
clear_store(int nmatrices)
{
	store->lock = NULL;
	store->size = 0;
	store->nmatrices = nmatrices;
	for (int i = 0; i < nmatrices; i++)
	{
		store->keys[i].index = InvalidOid;
		pg_atomic_init_u64(&store->matrices[i].writes, 0);
		pg_atomic_init_u64(&store->matrices[i].additions, 0);
		pg_atomic_init_u64(&store->matrices[i].used_at, 0);
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

	store = NULL;
	if (area_size < LEAST_MEMORY)
		return;
	store = ShmemInitStruct("rangefilter digests",
							STORE_SIZE(MATRICES) + area_size,
							&found);
	places = ShmemInitStruct("rangefilter columns", PLACES * sizeof(uint32),
							 &found);
	if (found)
		return;
	clear_store(MATRICES);
	memset(places, 0, PLACES * sizeof(uint32));
	store->lock = &GetNamedLWLockTranche(LOCK_NAME)->lock;
	store->size = area_size;
	area = dsa_create_in_place(area_place(), area_size, store->lock->tranche,
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

static bool
is_shared(void)
{
	return store != NULL && store->lock != NULL;
}

/*
 * How many sessions a digest is of use to.
 */
int
rf_digests_sharers(void)
{
	return is_shared() ? RF_DIGEST_SHARERS : 1;
}

/*
 * See probe.h.
 */
Size
rf_digests_room(void)
{
	if (RecoveryInProgress())
		return 0;
	return is_shared() ? store->size : rf_cache_limit();
}

static void
lock_store(LWLockMode mode)
{
	if (store->lock != NULL)
		LWLockAcquire(store->lock, mode);
}

static void
unlock_store(void)
{
	if (store->lock != NULL)
		LWLockRelease(store->lock);
}

/*
 * The matrix with this key, or NULL.  The lock is held.
 */
static RfDigestMatrix *
find_matrix(Oid index, int number)
{
	for (int i = 0; i < store->nmatrices; i++)
	{
		if (store->keys[i].index == index && store->keys[i].number == number &&
			store->keys[i].database == MyDatabaseId)
			return &store->matrices[i];
	}
	return NULL;
}

static uint64
this_second(void)
{
	return (uint64) time(NULL);
}

/*
 * Begins to change a matrix.  The lock is held exclusively until end_change().
 * Nothing in between may raise an error.
 */
static void
begin_change(RfDigestMatrix *matrix)
{
	(void) pg_atomic_fetch_add_u64(&matrix->writes, 1);
}

static void
end_change(RfDigestMatrix *matrix)
{
	(void) pg_atomic_fetch_add_u64(&matrix->writes, 1);
}

/*
 * Would a session's own digests leave too little room for cached metapages?
 */
static bool
is_too_much(Size size)
{
	Size		limit = rf_digests_room();

	return rf_cache_used + size > limit - limit / 16;
}

/*
 * Makes the session's own store, if there is none.  False where there is too
 * little room.
 */
static bool
need_store(void)
{
	int			nmatrices = Min(MATRICES,
								rf_session_limit() / BYTES_PER_OWN_MATRIX);

	if (store != NULL)
		return true;
	if (nmatrices == 0 || is_too_much(STORE_SIZE(nmatrices)))
		return false;

	/* Small block sizes: so freed memory goes back to malloc(). */
	if (own_context == NULL)
		own_context = AllocSetContextCreate(rf_session_context(),
											"rangefilter digests",
											ALLOCSET_SMALL_SIZES);
	store = MemoryContextAllocZero(own_context, STORE_SIZE(nmatrices));
	clear_store(nmatrices);
	rf_cache_used += GetMemoryChunkSpace(store);
	return true;
}

/*
 * Allocates memory for the bits of a matrix, set to 0.  False where there is
 * no room.  The lock is held exclusively.
 */
static bool
allocate_rows(RfDigestMatrix *matrix, Size size)
{
	if (is_shared())
	{
		matrix->memory = dsa_allocate_extended(attach_area(), size,
											   DSA_ALLOC_HUGE |
											   DSA_ALLOC_NO_OOM | DSA_ALLOC_ZERO);
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

static void
free_rows(RfDigestMatrix *matrix)
{
	if (is_shared())
		dsa_free(attach_area(), matrix->memory);
	else
	{
		rf_cache_used -= GetMemoryChunkSpace(matrix->rows);
		pfree(matrix->rows);
	}
}

/*
 * Throws a matrix away.  The lock is held exclusively.
 */
static void
free_matrix(int i)
{
	RfDigestMatrix *matrix = &store->matrices[i];

	begin_change(matrix);
	store->keys[i].index = InvalidOid;
	memset(matrix->columns, 0, sizeof(matrix->columns));
	end_change(matrix);
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

	for (int i = 0; i < store->nmatrices; i++)
	{
		uint64		when = pg_atomic_read_u64(&store->matrices[i].used_at);

		if (OidIsValid(store->keys[i].index) && (oldest < 0 || when < used_at))
		{
			oldest = i;
			used_at = when;
		}
	}
	if (oldest < 0 || used_at + IN_USE > this_second())
		return -1;
	free_matrix(oldest);
	return oldest;
}

/*
 * Returns the number of a free matrix, and allocates so many words for it, set
 * to 0.  -1 where there is no room.  The lock is held exclusively.
 */
static int
allocate_matrix(Size words)
{
	int			i = 0;

	/* Throw nothing away for a matrix that will not fit. */
	if (words * sizeof(uint64) > rf_digests_room() / 2)
		return -1;
	while (i < store->nmatrices && OidIsValid(store->keys[i].index))
		i++;
	if (i == store->nmatrices && (i = free_oldest_matrix()) < 0)
		return -1;
	while (!allocate_rows(&store->matrices[i], words * sizeof(uint64)))
	{
		if (free_oldest_matrix() < 0)
			return -1;
	}
	return i;
}

/*
 * See probe.h.
 */
void
rf_digests_make(Oid index, int number, const FilterDigest *buckets,
				const RfDigestView *old)
{
	int			i;
	RfDigestMatrix *matrix;

	/* Before taking the lock: this may raise an error. */
	if (!need_store())
		return;
	if (is_shared())
		(void) attach_area();
	lock_store(LW_EXCLUSIVE);
	matrix = find_matrix(index, number);
	if (matrix != NULL && matrix == old->matrix &&
		pg_atomic_read_u64(&matrix->writes) == old->writes)
	{
		free_matrix(matrix - store->matrices);
		matrix = NULL;
	}
	if (matrix == NULL &&
		(i = allocate_matrix(filter_digests_room(buckets))) >= 0)
	{
		matrix = &store->matrices[i];
		begin_change(matrix);
		matrix->buckets = *buckets;
		matrix->buckets.bits = NULL;
		filter_digests_keep_knots(&matrix->buckets, matrix->rows);
		matrix->used = 0;
		memset(matrix->columns, 0, sizeof(matrix->columns));
		store->keys[i].database = MyDatabaseId;
		store->keys[i].index = index;
		store->keys[i].number = number;
		pg_atomic_write_u64(&matrix->used_at, this_second());
		end_change(matrix);
	}
	unlock_store();
}

/*
 * See probe.h.
 */
bool
rf_digests_view(Oid index, int number, RfDigestView *view)
{
	RfDigestMatrix *matrix;

	view->matrix = NULL;
	if (store == NULL)
		return false;
	lock_store(LW_SHARED);
	matrix = find_matrix(index, number);
	if (matrix != NULL)
	{
		view->writes = pg_atomic_read_u64(&matrix->writes);
		view->additions = pg_atomic_read_u64(&matrix->additions);
		view->rows = matrix->rows;
		view->buckets = matrix->buckets;
		memcpy(view->columns, matrix->columns, sizeof(matrix->columns));
	}
	unlock_store();
	view->matrix = matrix;
	return matrix != NULL;
}

/*
 * See probe.h.
 */
bool
rf_digests_unchanged(const RfDigestView *view)
{
	uint64		writes;

	/* The caller has read rows before, and may read more after this. */
	pg_read_barrier();
	writes = pg_atomic_read_u64(&view->matrix->writes);
	pg_read_barrier();
	return writes == view->writes;
}

/*
 * See probe.h.
 */
bool
rf_digests_have_more(const RfDigestView *view)
{
	return pg_atomic_read_u64(&view->matrix->additions) != view->additions;
}

/*
 * See probe.h.
 */
void
rf_digests_used(const RfDigestView *view)
{
	uint64		now = this_second();

	if (pg_atomic_read_u64(&view->matrix->used_at) + NOTE_USE < now)
		pg_atomic_write_u64(&view->matrix->used_at, now);
}

/*
 * A column's number in the whole store, from 1 on.
 */
static uint32
column_number(const RfDigestMatrix *matrix, int number)
{
	return (matrix - store->matrices) * FILTER_DIGESTS + number + 1;
}

/*
 * The column with a number, if it is that of an index in this file, else
 * NULL.  The lock is held.
 */
static RfDigestColumn *
column_of(uint32 number, Oid index, const RfRelFile *locator)
{
	RfDigestColumn *column;

	if (number == 0)
		return NULL;
	column = &store->matrices[(number - 1) / FILTER_DIGESTS].columns[(number - 1) % FILTER_DIGESTS];
	return column->index == index && RF_SAME_RELFILE(column->locator, *locator) ?
		column : NULL;
}

/*
 * May a place be used for another column?  It may if it is empty, its column
 * is empty, or its column belongs to an index with other places.  The lock is
 * held.
 */
static bool
is_free(uint32 place)
{
	uint32		number = places[place];
	Oid			index;

	if (number == 0)
		return true;
	index = store->matrices[(number - 1) / FILTER_DIGESTS].columns[(number - 1) % FILTER_DIGESTS].index;
	return !OidIsValid(index) ||
		(place - murmurhash32(index)) % PLACES >= PLACES_TRIED;
}

/*
 * The place at which to find an index's column, or to put it: its own, else a
 * free one, else the first.  The lock is held.
 */
static uint32 *
place_of(Oid index, const RfRelFile *locator)
{
	uint32		first = murmurhash32(index);
	uint32		best = first % PLACES;

	for (int i = PLACES_TRIED - 1; i >= 0; i--)
	{
		uint32		place = (first + i) % PLACES;

		if (column_of(places[place], index, locator) != NULL)
			return &places[place];
		if (is_free(place))
			best = place;
	}
	return &places[best];
}

/*
 * May the index have a column?  Taking no lock, this may miss one that is being put:
 * that has an older version than its index by now, and nobody takes it for current.
 */
static bool
may_have_column(Oid index)
{
	uint32		first = murmurhash32(index);

	for (int i = 0; i < PLACES_TRIED; i++)
		if (((volatile uint32 *) places)[(first + i) % PLACES] != 0)
			return true;
	return false;
}

/*
 * See probe.h.
 */
void
rf_digests_add(Relation index, const RfSummaryVersion *before,
			   const RfSummaryVersion *after, const RfKey *key)
{
	const RfRelFile *locator = &RF_RELFILE(index);
	Oid			oid = RelationGetRelid(index);
	uint32		number;
	RfDigestColumn *column;

	if (!is_shared() || !may_have_column(oid))
		return;
	lock_store(LW_EXCLUSIVE);
	number = *place_of(oid, locator);
	column = column_of(number, oid, locator);
	if (column != NULL && rf_same_version(&column->version, before))
	{
		RfDigestMatrix *matrix = &store->matrices[(number - 1) / FILTER_DIGESTS];

		if (key != NULL)
			matrix->rows[filter_digests_word(&matrix->buckets, rf_key_number(&matrix->buckets.numbers, key))] |=
				UINT64CONST(1) << (number - 1) % FILTER_DIGESTS;
		column->version = *after;
		column->validity = rf_read_change_counter(oid);
		(void) pg_atomic_fetch_add_u64(&matrix->additions, 1);
	}
	unlock_store();
}

/*
 * See probe.h.
 */
void
rf_digests_put(RfDigestView *view, const FilterDigest *digest, int number,
			   const RfDigestColumn *column)
{
	RfDigestMatrix *matrix = view->matrix;

	lock_store(LW_EXCLUSIVE);
	if (pg_atomic_read_u64(&matrix->writes) == view->writes)
	{
		begin_change(matrix);
		filter_digest_put(matrix->rows, digest, number, !(matrix->used >> number & 1));
		matrix->used |= UINT64CONST(1) << number;
		matrix->columns[number] = *column;
		if (is_shared())
			*place_of(column->index, &column->locator) = column_number(matrix, number);
		end_change(matrix);
		view->writes = pg_atomic_read_u64(&matrix->writes);
		view->columns[number] = *column;
	}
	unlock_store();
}

/*
 * See probe.h.
 */
void
rf_digests_forget(Oid index, int number)
{
	RfDigestMatrix *matrix;

	if (store == NULL || is_shared())
		return;
	matrix = find_matrix(index, number);
	if (matrix != NULL)
		free_matrix(matrix - store->matrices);
}

/*
 * See probe.h.
 */
void
rf_digests_forget_own(void)
{
	if (store == NULL || is_shared())
		return;
	for (int i = 0; i < store->nmatrices; i++)
	{
		if (OidIsValid(store->keys[i].index))
			free_matrix(i);
	}
	rf_cache_used -= GetMemoryChunkSpace(store);
	store = NULL;
	MemoryContextReset(own_context);
}

/*
 * Throws away the matrices of the database with this OID, which is just being
 * created.  They belong to a dropped database that had the same OID.  Its
 * files may have had the same names, if one database is a copy of the other.
 */
static void
forget_database(Oid database)
{
	(void) attach_area();
	lock_store(LW_EXCLUSIVE);
	for (int i = 0; i < store->nmatrices; i++)
	{
		if (OidIsValid(store->keys[i].index) &&
			store->keys[i].database == database)
			free_matrix(i);
	}
	unlock_store();
}

/*
 * object_access_hook
 */
static void
object_accessed(ObjectAccessType access, Oid class, Oid object, int sub,
				void *arg)
{
	if (previous_access)
		previous_access(access, class, object, sub, arg);
	if (access == OAT_POST_CREATE && class == DatabaseRelationId &&
		is_shared())
		forget_database(object);
}

/*
 * Called once, when the server loads the library.
 */
void
rf_init_digests(void)
{
	previous_access = object_access_hook;
	object_access_hook = object_accessed;
}

/*
 * Counts the columns in shared matrices of this database that are not
 * outdated, and the bytes of all its shared matrices.
 */
void
rf_digests_usage(int64 *columns, int64 *bytes)
{
	*columns = *bytes = 0;
	if (!is_shared())
		return;
	lock_store(LW_SHARED);
	for (int i = 0; i < store->nmatrices; i++)
	{
		if (!OidIsValid(store->keys[i].index) ||
			store->keys[i].database != MyDatabaseId)
			continue;
		*bytes += filter_digests_room(&store->matrices[i].buckets) * sizeof(uint64);
		for (int j = 0; j < FILTER_DIGESTS; j++)
		{
			const RfDigestColumn *column = &store->matrices[i].columns[j];

			*columns += OidIsValid(column->index) &&
				column->validity == rf_read_change_counter(column->index);
		}
	}
	unlock_store();
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
	for (int i = 0; store != NULL && !is_shared() && i < store->nmatrices; i++)
	{
		for (int j = 0; OidIsValid(store->keys[i].index) && j < FILTER_DIGESTS;
			 j++)
			*columns += OidIsValid(store->matrices[i].columns[j].index);
	}
}
