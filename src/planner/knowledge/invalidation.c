/*-------------------------------------------------------------------------
 *
 * invalidation.c
 *	  When indexes changed that this session knows something of.
 *
 * An index has an invalidation record from when an entry of a table
 * (catalog.c) began to rely on it, and as long as there is one that does.
 * Relcache invalidations are noted there.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "planner/knowledge/knowledge.h"
#include "stats/session.h"
#include "utils/memutils.h"

/* The map of invalidation records is not made for fewer. */
#define SOME_INVALS	16

/* It is made anew where no more than one place in so many is taken. */
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
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

static struct rf_invalmap_hash *invals = NULL;
static MemoryContext invals_context = NULL; /* of the map ... */
static MemoryContext invals_slab = NULL;	/* ... and of what is in it */
static uint64 changes = 0;		/* relcache invalidations seen */
static uint64 all_changed = 0;	/* the last one that was for everything */

/*
 * Notes that a relation, or everything (InvalidOid), changed.  Returns the table whose
 * entry depends on it.  Called at any time, so it only sets numbers.
 */
Oid
rf_note_change(Oid relid)
{
	RfInvalEntry *entry;

	changes++;
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
 * Has what the record is of not changed since rf_changes() said when?
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
 * These indexes will have invalidation records.  For a thousand that had none,
 * growing bit by bit would take most of the time.
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
	/* Memory first, lest there be an entry without an invalidation record. */
	RfInvalRecord *inval = MemoryContextAllocZero(invals_slab,
												  sizeof(RfInvalRecord));
	bool		found;

	inval->index = index;
	rf_invalmap_insert(invals, index, &found)->inval = inval;
	return inval;
}

/*
 * Takes notice, from now on, when an index changes, at least as long as there
 * is the table's entry, which relies on it.  An invalidation record that was
 * dropped and made anew would not know of what came before.
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
	rf_tables_grew();
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
 * Makes a smaller map of invalidation records where that would do.
 */
void
rf_shrink_inval_records(void)
{
	struct rf_invalmap_hash *old = invals;
	rf_invalmap_iterator i;
	RfInvalEntry *entry;
	bool		found;

	if (old == NULL || old->size <= SPARSE * SOME_INVALS ||
		old->members > old->size / SPARSE)
		return;
	invals = rf_invalmap_create(invals_context, Max(old->members, SOME_INVALS),
								NULL);
	rf_invalmap_start_iterate(old, &i);
	while ((entry = rf_invalmap_iterate(old, &i)) != NULL)
		rf_invalmap_insert(invals, entry->index, &found)->inval = entry->inval;
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
