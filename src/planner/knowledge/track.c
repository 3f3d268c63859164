/*-------------------------------------------------------------------------
 *
 * track.c
 *	  When indexes changed that this session knows something of.
 *
 * An index has a track from when an entry of a table (catalog.c) began to rely on it, and as
 * long as there is one that does.  Relcache invalidations are noted there.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "planner/knowledge/knowledge.h"
#include "stats/session.h"
#include "utils/memutils.h"

/* The map of tracks is not made for fewer. */
#define SOME_TRACKS	16

/* It is made anew where no more than one place in so many is taken. */
#define SPARSE		16

/* Index -> its track. */
typedef struct RfTrackEntry
{
	Oid			index;			/* hash key */
	char		status;
	RfTrack    *track;
} RfTrackEntry;

#define SH_PREFIX rf_trackmap
#define SH_ELEMENT_TYPE RfTrackEntry
#define SH_KEY_TYPE Oid
#define SH_KEY index
#define SH_HASH_KEY(tb, key) murmurhash32(key)
#define SH_EQUAL(tb, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

static struct rf_trackmap_hash *tracks = NULL;
static MemoryContext tracks_context = NULL; /* of the map ... */
static MemoryContext tracks_slab = NULL;	/* ... and of what is in it */
static uint64 changes = 0;		/* relcache invalidations seen */
static uint64 all_changed = 0;	/* the last one that was for everything */

/*
 * Notes that a relation, or everything (InvalidOid), changed.  Returns the table whose
 * entry depends on it.  Called at any time, so it only sets numbers.
 */
Oid
rf_note_change(Oid relid)
{
	RfTrackEntry *entry;

	changes++;
	if (!OidIsValid(relid))
	{
		all_changed = changes;
		return relid;
	}
	entry = tracks != NULL ? rf_trackmap_lookup(tracks, relid) : NULL;
	if (entry == NULL)
		return relid;
	entry->track->changed_at = changes;
	return OidIsValid(entry->track->relid) ? entry->track->relid : relid;
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
 * Has what is tracked not changed since rf_changes() said when?
 */
bool
rf_unchanged(const RfTrack *track, uint64 when)
{
	return track->changed_at <= when && all_changed <= when;
}

/*
 * Makes the map of tracks, if there is none.
 */
static void
need_map(void)
{
	if (tracks != NULL)
		return;
	if (tracks_context == NULL)
		tracks_context = AllocSetContextCreate(rf_session_context(),
											   "rangefilter tracks",
											   ALLOCSET_SMALL_SIZES);
	if (tracks_slab == NULL)
		tracks_slab = SlabContextCreate(tracks_context, "rangefilter tracks",
										SLAB_DEFAULT_BLOCK_SIZE,
										sizeof(RfTrack));
	tracks = rf_trackmap_create(tracks_context, SOME_TRACKS, NULL);
}

/*
 * These indexes will be tracked.  For a thousand that were not, growing bit by
 * bit would take most of the time.
 */
void
rf_expect_tracks(const List *indexes)
{
	uint64		members;
	ListCell   *cell;

	need_map();
	members = tracks->members;
	foreach(cell, indexes)
		members += rf_trackmap_lookup(tracks, lfirst_oid(cell)) == NULL;
	if (members > tracks->grow_threshold)
		rf_trackmap_grow(tracks, members + members / 4);
}

/*
 * Makes a track of an index that has none.
 */
static RfTrack *
make_track(Oid index)
{
	/* Memory first, lest there be an entry without a track. */
	RfTrack    *track = MemoryContextAllocZero(tracks_slab, sizeof(RfTrack));
	bool		found;

	track->index = index;
	rf_trackmap_insert(tracks, index, &found)->track = track;
	return track;
}

/*
 * Takes notice, from now on, when an index changes, at least as long as there is the
 * table's entry, which relies on it.  A track that was dropped and made anew
 * would not know of what came before.
 */
RfTrack *
rf_track(RfTable *table, Oid index)
{
	RfTrackEntry *entry;
	RfTrack    *track;
	MemoryContext old = MemoryContextSwitchTo(table->context);

	need_map();
	entry = rf_trackmap_lookup(tracks, index);
	track = entry != NULL ? entry->track : make_track(index);
	table->tracks = lappend(table->tracks, track);
	track->users++;
	rf_tables_grew();
	MemoryContextSwitchTo(old);
	return track;
}

/*
 * Lets go of the tracks that a table's entry holds.
 */
void
rf_release_tracks(RfTable *table)
{
	ListCell   *cell;

	foreach(cell, table->tracks)
	{
		RfTrack    *track = lfirst(cell);

		if (--track->users > 0)
			continue;
		rf_trackmap_delete(tracks, track->index);
		pfree(track);
	}
	table->tracks = NIL;
}

/*
 * Makes a smaller map of tracks where that would do.
 */
void
rf_shrink_tracks(void)
{
	struct rf_trackmap_hash *old = tracks;
	rf_trackmap_iterator i;
	RfTrackEntry *entry;
	bool		found;

	if (old == NULL || old->size <= SPARSE * SOME_TRACKS ||
		old->members > old->size / SPARSE)
		return;
	tracks = rf_trackmap_create(tracks_context, Max(old->members, SOME_TRACKS),
								NULL);
	rf_trackmap_start_iterate(old, &i);
	while ((entry = rf_trackmap_iterate(old, &i)) != NULL)
		rf_trackmap_insert(tracks, entry->index, &found)->track = entry->track;
	rf_trackmap_destroy(old);
}

/*
 * How many tracks there are, and bytes they take.
 */
void
rf_tracks_usage(int64 *entries, int64 *bytes)
{
	*entries = tracks != NULL ? tracks->members : 0;
	*bytes = tracks_context != NULL ?
		MemoryContextMemAllocated(tracks_context, true) : 0;
}
