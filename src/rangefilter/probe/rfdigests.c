/*-------------------------------------------------------------------------
 *
 * rfdigests.c
 *	  Groups of digests in shared memory, where the server loaded the library.
 *
 * A group is 64 columns of bits, for the digests of 64 indexes; probe.h has what
 * goes with a column.  Any session may put a digest into a column, and all
 * may read.
 *
 * A lock is for finding groups and for those who change one.  Who asks takes none:
 * each group has a number that is odd while the group is being changed and
 * another one afterwards.  What was read while it stayed what it was, when the
 * group's columns were looked at under the lock, is what these columns say.
 *
 * Bits are in an area in which room is made by throwing away groups that nobody
 * has asked for some time.  Who still reads there finds the number changed.
 *
 * A group may be wrong about nothing, but may be of the past: whose digest a
 * column is, of which file, and at what time, is for those to look at who want to
 * rely on it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "catalog/objectaccess.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "rangefilter/page/shared.h"
#include "rangefilter/probe/internal.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/dsa.h"
#include "utils/memutils.h"

/* Groups there can be at a time. */
#define GROUPS	1024

/* Seconds: groups asked for later than this ago are not thrown away ... */
#define IN_USE	10

/* ... and that a group was asked for is not noted more often. */
#define NOTE_USE	2

/* Less is not worth the trouble. */
#define LEAST_MEMORY	(1024 * 1024)

/* Not "rangefilter", which is the lock of counters: see rfstatsfile.c. */
#define LOCK_NAME	"rangefilter_digests"

/* Whose a group is: that of an index's leaves from 64 * number on. */
typedef struct GroupKey
{
	Oid			database;
	Oid			index;			/* partitioned; InvalidOid: the group is free */
	int			number;
} GroupKey;

struct RfSharedGroup
{
	pg_atomic_uint64 writes;
	pg_atomic_uint64 used_at;	/* second */
	dsa_pointer memory;
	uint64	   *rows;
	FilterDigest frame;
	RfColumn	columns[FILTER_DIGESTS];
};

/* Keys are apart from groups, to be looked through fast. */
typedef struct DigestStore
{
	LWLock	   *lock;
	Size		size;			/* of the area behind this */
	GroupKey	keys[GROUPS];
	RfSharedGroup groups[GROUPS];
} DigestStore;

int			rf_shared_cache_size = 65536;

static DigestStore *store = NULL;

static object_access_hook_type previous_access = NULL;

/* Bytes asked for, below which nothing is shared. */
static Size area_size;

static void *
area_place(void)
{
	return (char *) store + CACHELINEALIGN(sizeof(DigestStore));
}

/*
 * How much memory is to be asked for.
 */
Size
rf_digests_memory(void)
{
	area_size = (Size) rf_shared_cache_size * 1024;
	if (area_size < LEAST_MEMORY)
		return 0;
	RequestNamedLWLockTranche(LOCK_NAME, 1);
	return CACHELINEALIGN(sizeof(DigestStore)) + area_size + PG_CACHE_LINE_SIZE;
}

/*
 * Makes what is shared, or finds it.  AddinShmemInitLock is held.
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
							CACHELINEALIGN(sizeof(DigestStore)) + area_size,
							&found);
	if (found)
		return;
	store->lock = &GetNamedLWLockTranche(LOCK_NAME)->lock;
	store->size = area_size;
	for (int i = 0; i < GROUPS; i++)
	{
		store->keys[i].index = InvalidOid;
		pg_atomic_init_u64(&store->groups[i].writes, 0);
		pg_atomic_init_u64(&store->groups[i].used_at, 0);
	}
	area = dsa_create_in_place(area_place(), area_size, store->lock->tranche,
							   NULL);
	dsa_pin(area);
	dsa_set_size_limit(area, area_size);
	dsa_detach(area);
}

/*
 * The area, for those who allocate or free.
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
 * See probe.h.
 */
Size
rf_digests_room(void)
{
	return store != NULL && !RecoveryInProgress() ? store->size : 0;
}

/*
 * The group with this key, or NULL.  The lock is held.
 */
static RfSharedGroup *
find_group(Oid index, int number)
{
	for (int i = 0; i < GROUPS; i++)
	{
		if (store->keys[i].index == index && store->keys[i].number == number &&
			store->keys[i].database == MyDatabaseId)
			return &store->groups[i];
	}
	return NULL;
}

static uint64
this_second(void)
{
	return (uint64) time(NULL);
}

/*
 * Begins to change a group; the lock is held exclusively, until end_change().
 * Nothing in between may fail.
 */
static void
begin_change(RfSharedGroup *group)
{
	(void) pg_atomic_fetch_add_u64(&group->writes, 1);
}

static void
end_change(RfSharedGroup *group)
{
	(void) pg_atomic_fetch_add_u64(&group->writes, 1);
}

/*
 * Throws a group away.  The lock is held exclusively.
 */
static void
free_group(int i)
{
	RfSharedGroup *group = &store->groups[i];

	begin_change(group);
	store->keys[i].index = InvalidOid;
	memset(group->columns, 0, sizeof(group->columns));
	end_change(group);
	dsa_free(attach_area(), group->memory);
}

/*
 * Throws the group away that nobody has asked for the longest time, and returns its
 * number; -1 where all are in use.
 */
static int
free_oldest_group(void)
{
	int			oldest = -1;
	uint64		used_at = 0;

	for (int i = 0; i < GROUPS; i++)
	{
		uint64		when = pg_atomic_read_u64(&store->groups[i].used_at);

		if (OidIsValid(store->keys[i].index) && (oldest < 0 || when < used_at))
		{
			oldest = i;
			used_at = when;
		}
	}
	if (oldest < 0 || used_at + IN_USE > this_second())
		return -1;
	free_group(oldest);
	return oldest;
}

/*
 * The number of a free group, with memory for so many words, set to 0, or -1.  The
 * lock is held exclusively.
 */
static int
allocate_group(Size words)
{
	dsa_pointer memory = InvalidDsaPointer;
	int			i = 0;

	/* Nothing should go for what will not fit. */
	if (words * sizeof(uint64) > store->size / 2)
		return -1;
	while (i < GROUPS && OidIsValid(store->keys[i].index))
		i++;
	if (i == GROUPS && (i = free_oldest_group()) < 0)
		return -1;
	while (!DsaPointerIsValid(memory))
	{
		memory = dsa_allocate_extended(attach_area(), words * sizeof(uint64),
									   DSA_ALLOC_HUGE | DSA_ALLOC_NO_OOM |
									   DSA_ALLOC_ZERO);
		if (!DsaPointerIsValid(memory) && free_oldest_group() < 0)
			return -1;
	}
	store->groups[i].memory = memory;
	return i;
}

/*
 * See probe.h.
 */
void
rf_digests_make(Oid index, int number, const FilterDigest *frame,
				const RfDigestView *old)
{
	int			i;
	RfSharedGroup *group;

	/* Before the lock: this may fail. */
	(void) attach_area();
	LWLockAcquire(store->lock, LW_EXCLUSIVE);
	group = find_group(index, number);
	if (group != NULL && group == old->group &&
		pg_atomic_read_u64(&group->writes) == old->writes)
	{
		free_group(group - store->groups);
		group = NULL;
	}
	if (group == NULL && (i = allocate_group(frame->nbits)) >= 0)
	{
		group = &store->groups[i];
		begin_change(group);
		group->rows = dsa_get_address(attach_area(), group->memory);
		group->frame = *frame;
		group->frame.bits = NULL;
		memset(group->columns, 0, sizeof(group->columns));
		store->keys[i].database = MyDatabaseId;
		store->keys[i].index = index;
		store->keys[i].number = number;
		pg_atomic_write_u64(&group->used_at, this_second());
		end_change(group);
	}
	LWLockRelease(store->lock);
}

/*
 * See probe.h.
 */
bool
rf_digests_view(Oid index, int number, RfDigestView *view, RfColumn *columns)
{
	RfSharedGroup *group;

	LWLockAcquire(store->lock, LW_SHARED);
	group = find_group(index, number);
	if (group != NULL)
	{
		view->writes = pg_atomic_read_u64(&group->writes);
		view->rows = group->rows;
		view->frame = group->frame;
		memcpy(columns, group->columns, sizeof(group->columns));
	}
	LWLockRelease(store->lock);
	view->group = group;
	return group != NULL;
}

/*
 * See probe.h.
 */
bool
rf_digests_unchanged(const RfDigestView *view)
{
	uint64		writes;

	/* Between what the caller has read of the rows and what it will read. */
	pg_read_barrier();
	writes = pg_atomic_read_u64(&view->group->writes);
	pg_read_barrier();
	return writes == view->writes;
}

/*
 * See probe.h.
 */
void
rf_digests_used(const RfDigestView *view)
{
	uint64		now = this_second();

	if (pg_atomic_read_u64(&view->group->used_at) + NOTE_USE < now)
		pg_atomic_write_u64(&view->group->used_at, now);
}

/*
 * See probe.h.
 */
bool
rf_digests_put(RfDigestView *view, const FilterDigest *digest, int number,
			   const RfColumn *column)
{
	RfSharedGroup *group = view->group;
	bool		same;

	LWLockAcquire(store->lock, LW_EXCLUSIVE);
	same = pg_atomic_read_u64(&group->writes) == view->writes;
	if (same)
	{
		begin_change(group);
		filter_digest_put(group->rows, digest, number);
		group->columns[number] = *column;
		end_change(group);
		view->writes = pg_atomic_read_u64(&group->writes);
	}
	LWLockRelease(store->lock);
	return same;
}

/*
 * Throws away what is there for a database with this OID, which is just being
 * created: it would be of one that had the OID before.  Its files may have the same
 * names, if it is a copy of a copy.
 */
static void
forget_database(Oid database)
{
	(void) attach_area();
	LWLockAcquire(store->lock, LW_EXCLUSIVE);
	for (int i = 0; i < GROUPS; i++)
	{
		if (OidIsValid(store->keys[i].index) &&
			store->keys[i].database == database)
			free_group(i);
	}
	LWLockRelease(store->lock);
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
		store != NULL)
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
 * How many columns there are in groups of this database that nothing has made
 * outdated, and bytes they take.
 */
void
rf_digests_usage(int64 *columns, int64 *bytes)
{
	*columns = *bytes = 0;
	if (store == NULL)
		return;
	LWLockAcquire(store->lock, LW_SHARED);
	for (int i = 0; i < GROUPS; i++)
	{
		if (!OidIsValid(store->keys[i].index) ||
			store->keys[i].database != MyDatabaseId)
			continue;
		*bytes += store->groups[i].frame.nbits * sizeof(uint64);
		for (int j = 0; j < FILTER_DIGESTS; j++)
		{
			const RfColumn *column = &store->groups[i].columns[j];

			*columns += OidIsValid(column->index) &&
				column->slot == rf_read_slot(column->index);
		}
	}
	LWLockRelease(store->lock);
}
