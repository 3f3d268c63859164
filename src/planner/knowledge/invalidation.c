/*-------------------------------------------------------------------------
 *
 * invalidation.c
 *	  When an invalidation last came for the indexes that this session
 *	  remembers.
 *
 * An index has an invalidation record as long as an entry of a table
 * (catalog.c) relies on the index.  The relcache callback notes invalidations
 * in the records.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "common/hashfn.h"
#include "core/core.h"
#include "planner/knowledge/knowledge.h"
#include "planner/knowledge/mapmemory.h"
#include "stats/session.h"
#include "utils/memutils.h"

/* The least size of the map of invalidation records. */
#define SOME_INVALS	16

/*
 * The map is made smaller if at most one in SPARSE of its places is taken.
 */
#define SPARSE		16

/* Index -> its invalidation record. */
typedef struct RfInvalEntry
{
	Oid			index;			/* hash key */
	char		status;
	RfInvalRecord *inval;
} RfInvalEntry;

#define SH_PREFIX rf_invalmap
#define SH_ELEMENT_TYPE RfInvalEntry
#define SH_KEY_TYPE Oid
#define SH_KEY index
#define SH_HASH_KEY(tb, key) murmurhash32(key)
#define SH_EQUAL(tb, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_USE_NONDEFAULT_ALLOCATOR
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

RF_MAP_ALLOCATOR(rf_invalmap)

static struct rf_invalmap_hash *invals = NULL;
static MemoryContext invals_context = NULL; /* has the map and the slab */
static MemoryContext invals_slab = NULL;	/* has the records */
static uint64 changes = 0;		/* relcache invalidations seen */
static uint64 all_changed = 0;	/* "changes" at the last one for everything */
static Oid	recent[RF_RECENT_CHANGES];	/* what the last ones were for */
static TransactionId recent_xmax[RF_RECENT_CHANGES];	/* rf_core_next_xmax()
														 * then */
static uint64 function_changes = 0; /* invalidations of pg_proc seen */

/*
 * Notes an invalidation for a relation, or for everything (InvalidOid).
 * Returns the table whose entry depends on the relation, or the relation
 * itself.  May be called at any time, so it only sets numbers.
 */
Oid
rf_note_change(Oid relid)
{
	RfInvalEntry *entry;

	changes++;
	recent[changes % RF_RECENT_CHANGES] = relid;
	recent_xmax[changes % RF_RECENT_CHANGES] = rf_core_next_xmax();
	if (!OidIsValid(relid))
	{
		all_changed = changes;
		return relid;
	}
	entry = invals != NULL ? rf_invalmap_lookup(invals, relid) : NULL;
	if (entry == NULL)
		return relid;
	entry->inval->changed_at = changes;
	return OidIsValid(entry->inval->relid) ? entry->inval->relid : relid;
}

/*
 * How many invalidations this backend has seen.
 */
uint64
rf_changes(void)
{
	return changes;
}

/*
 * Notes an invalidation of a function, or of all.
 */
void
rf_note_function_change(void)
{
	function_changes++;
}

/*
 * How many of these this backend has seen.
 */
uint64
rf_function_changes(void)
{
	return function_changes;
}

/*
 * A number that rf_changes() had before a snapshot was taken, the highest that is known to be one.
 * An invalidation came before the snapshot if a snapshot that was taken when it came would have had a
 * lower xmax.  If it is more than RF_RECENT_CHANGES ago, it is a guess, but far enough.
 */
uint64
rf_changes_before(const SnapshotData *snapshot)
{
	uint64		number = changes;

	while (number > 0 && changes - number < RF_RECENT_CHANGES &&
		   !TransactionIdPrecedes(recent_xmax[number % RF_RECENT_CHANGES], snapshot->xmax))
		number--;
	if (number > 0 && changes - number == RF_RECENT_CHANGES)
		number--;
	return number;
}

/*
 * The relation that invalidation number number was for, one of the last
 * RF_RECENT_CHANGES.
 */
Oid
rf_recent_change(uint64 number)
{
	return recent[number % RF_RECENT_CHANGES];
}

/*
 * Has no invalidation come for the record's index since rf_changes() returned
 * when?
 */
bool
rf_unchanged(const RfInvalRecord *inval, uint64 when)
{
	return inval->changed_at <= when && all_changed <= when;
}

/*
 * Makes the map of invalidation records, if there is none.
 */
static void
need_map(void)
{
	if (invals != NULL)
		return;
	if (invals_context == NULL)
		invals_context = AllocSetContextCreate(rf_session_context(),
											   "rangefilter tracks",
											   ALLOCSET_SMALL_SIZES);
	if (invals_slab == NULL)
		invals_slab = SlabContextCreate(invals_context, "rangefilter tracks",
										SLAB_DEFAULT_BLOCK_SIZE,
										sizeof(RfInvalRecord));
	invals = rf_invalmap_create(invals_context, SOME_INVALS, NULL);
}

/*
 * Makes the map large enough for records of these indexes.  If it grew step by
 * step for a thousand new records, that would take most of the time.
 */
void
rf_expect_inval_records(const List *indexes)
{
	uint64		members;
	ListCell   *cell;

	need_map();
	members = invals->members;
	foreach(cell, indexes)
		members += rf_invalmap_lookup(invals, lfirst_oid(cell)) == NULL;
	if (members > invals->grow_threshold)
		rf_invalmap_grow(invals, members + members / 4);
}

/*
 * Makes an invalidation record of an index that has none.
 */
static RfInvalRecord *
make_inval_record(Oid index)
{
	/* Memory first: if this fails, there must be no entry without a record. */
	RfInvalRecord *inval = MemoryContextAllocZero(invals_slab,
												  sizeof(RfInvalRecord));
	bool		found;

	inval->index = index;
	rf_invalmap_insert(invals, index, &found)->inval = inval;
	return inval;
}

/*
 * Gets the invalidation record of an index, or makes it.  The table's entry
 * holds it until rf_release_inval_records().  From now on invalidations for
 * the index are noted.  A record that is dropped and made anew does not know
 * of earlier ones.
 */
RfInvalRecord *
rf_hold_inval_record(RfTable *table, Oid index)
{
	RfInvalEntry *entry;
	RfInvalRecord *inval;
	MemoryContext old = MemoryContextSwitchTo(table->context);

	need_map();
	entry = rf_invalmap_lookup(invals, index);
	inval = entry != NULL ? entry->inval : make_inval_record(index);
	table->invals = lappend(table->invals, inval);
	inval->users++;
	MemoryContextSwitchTo(old);
	return inval;
}

/*
 * Lets go of the invalidation records that a table's entry holds.
 */
void
rf_release_inval_records(RfTable *table)
{
	ListCell   *cell;

	foreach(cell, table->invals)
	{
		RfInvalRecord *inval = lfirst(cell);

		if (--inval->users > 0)
			continue;
		rf_invalmap_delete(invals, inval->index);
		pfree(inval);
	}
	table->invals = NIL;
}

/*
 * Makes a smaller map of invalidation records if most places are free.
 */
void
rf_shrink_inval_records(void)
{
	struct rf_invalmap_hash *old = invals;
	struct rf_invalmap_hash *smaller;
	rf_invalmap_iterator i;
	RfInvalEntry *entry;
	bool		found;

	if (old == NULL || old->size <= SPARSE * SOME_INVALS ||
		old->members > old->size / SPARSE)
		return;
	smaller = rf_invalmap_create(invals_context,
								 Max(old->members, SOME_INVALS), NULL);
	rf_invalmap_start_iterate(old, &i);
	while ((entry = rf_invalmap_iterate(old, &i)) != NULL)
		rf_invalmap_insert(smaller, entry->index, &found)->inval = entry->inval;

	/* Not before: memory may have run out, and no record must be missing. */
	invals = smaller;
	rf_invalmap_destroy(old);
}

/*
 * How many invalidation records there are, and bytes they take.
 */
void
rf_inval_records_usage(int64 *entries, int64 *bytes)
{
	*entries = invals != NULL ? invals->members : 0;
	*bytes = invals_context != NULL ?
		MemoryContextMemAllocated(invals_context, true) : 0;
}
