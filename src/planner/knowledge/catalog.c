/*-------------------------------------------------------------------------
 *
 * catalog.c
 *	  Which rangefilter indexes a partitioned table has, remembered.
 *
 * Planning asks this of every partitioned table of every query, and then for
 * the index of each of its partitions.  So both are kept per backend: an entry
 * per partitioned table (also for those without such an index), and in it per
 * index a map from leaf table to leaf index, made from pg_inherits when first
 * needed (leafmap.c).  Indexes of sub-partitioned members are found in the entry of the
 * member, since every level is expanded on its own.
 *
 * An entry is dropped when the relcache says that its table or one of its
 * partitioned indexes changed; attaching a partition or an index does.  The
 * map may still name an index that is gone (REINDEX CONCURRENTLY of one
 * partition); rf_table_suspect() is called by those who notice.  Entries may
 * become invalid while they are read, because taking a lock does that.  They
 * are freed only before the next planning that is not nested in another one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "common/hashfn.h"
#include "key/rowkey.h"
#include "partitioning/partdesc.h"
#include "planner/knowledge/knowledge.h"
#include "rangefilter/rangefilter.h"
#include "stats/stats.h"
#include "storage/lmgr.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"

/* Memory is taken for no fewer tracks. */
#define SOME_TRACKS	16

/* Table -> its entry. */
typedef struct RfTableEntry
{
	Oid			relid;			/* hash key */
	RfTable    *table;			/* NULL while none is known */
} RfTableEntry;

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

static HTAB *tables = NULL;
static struct rf_trackmap_hash *tracks = NULL;
static RfTrack *spare_tracks = NULL;
static int	nspare_tracks = 0;
static RfTable *retired = NULL;
static uint64 entries_made = 0;
static uint64 changes = 0;		/* relcache invalidations seen */
static uint64 all_changed = 0;	/* the last one that was for everything */

/*
 * Marks the entry of a table invalid, if there is one.
 */
static void
invalidate_table(Oid relid)
{
	RfTableEntry *entry = hash_search(tables, &relid, HASH_FIND, NULL);

	if (entry != NULL && entry->table != NULL)
		entry->table->valid = false;
}

/*
 * Relcache callback.  Called at any time, so it only sets flags.
 */
static void
relation_changed(Datum arg, Oid relid)
{
	changes++;
	if (!OidIsValid(relid))
	{
		HASH_SEQ_STATUS status;
		RfTableEntry *entry;

		all_changed = changes;
		hash_seq_init(&status, tables);
		while ((entry = hash_seq_search(&status)) != NULL)
		{
			if (entry->table != NULL)
				entry->table->valid = false;
		}
	}
	else
	{
		RfTrackEntry *entry = rf_trackmap_lookup(tracks, relid);

		if (entry != NULL)
			entry->track->changed_at = changes;
		invalidate_table(entry != NULL && OidIsValid(entry->track->relid) ?
						 entry->track->relid : relid);
	}
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
 * Has memory for at least so many more tracks, in one piece.
 */
static void
reserve_tracks(int n)
{
	if (nspare_tracks >= n)
		return;
	n = Max(n, SOME_TRACKS);
	spare_tracks = MemoryContextAllocHuge(TopMemoryContext,
										  n * sizeof(RfTrack));
	nspare_tracks = n;
}

/*
 * These indexes will be tracked.  For a thousand that were not, growing bit by
 * bit would take most of the time.
 */
void
rf_expect_tracks(const List *indexes)
{
	uint64		members = tracks->members;
	ListCell   *cell;

	foreach(cell, indexes)
		members += rf_trackmap_lookup(tracks, lfirst_oid(cell)) == NULL;
	reserve_tracks(members - tracks->members);
	if (members > tracks->grow_threshold)
		rf_trackmap_grow(tracks, members + members / 4);
}

/*
 * Begins to take notice when an index changes, if that is not done already.
 * Tracks are never freed.
 */
RfTrack *
rf_track(Oid index)
{
	RfTrackEntry *entry;
	bool		found;

	/* Memory first, lest there be an entry without a track. */
	reserve_tracks(1);
	entry = rf_trackmap_insert(tracks, index, &found);
	if (!found)
	{
		entry->track = &spare_tracks[--nspare_tracks];
		entry->track->relid = InvalidOid;
		entry->track->changed_at = 0;
	}
	return entry->track;
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
 * Called once, when the library is loaded.
 */
void
rf_init_catalog(void)
{
	HASHCTL		control;

	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(Oid);
	control.entrysize = sizeof(RfTableEntry);
	tables = hash_create("rangefilter tables", 32, &control,
						 HASH_ELEM | HASH_BLOBS);
	tracks = rf_trackmap_create(TopMemoryContext, SOME_TRACKS, NULL);
	CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
}

/*
 * Takes down how keys of an index's column are compared.  False where they have no
 * codec.
 */
bool
rf_describe_key(RfIndexColumn *column, Oid opfamily, Oid opcintype,
				Oid collation)
{
	column->opfamily = opfamily;
	column->opcintype = opcintype;
	column->collation = collation;
	column->codec = rf_codec_under(opcintype, collation);
	return column->codec != NULL;
}

/*
 * Takes down what is to be known of an open partitioned index.  False where
 * its keys have no codec.
 */
static bool
describe_index(Relation relation, RfIndex *index)
{
	Form_pg_index form = relation->rd_index;
	List	   *exprs = RelationGetIndexExpressions(relation);
	const RfCodec *codecs[RF_MAX_COLUMNS];
	oidvector  *opclasses;
	bool		isnull;

	index->oid = RelationGetRelid(relation);
	index->am = relation->rd_rel->relam;
	index->ncolumns = form->indnkeyatts;
	if (index->ncolumns > RF_MAX_COLUMNS)
		return false;
	opclasses = (oidvector *)
		DatumGetPointer(SysCacheGetAttr(INDEXRELID, relation->rd_indextuple,
										Anum_pg_index_indclass, &isnull));
	for (int i = 0; i < index->ncolumns; i++)
	{
		RfIndexColumn *column = &index->columns[i];

		column->attno = form->indkey.values[i];
		column->opclass = opclasses->values[i];
		if (!rf_describe_key(column, relation->rd_opfamily[i],
							 relation->rd_opcintype[i],
							 relation->rd_indcollation[i]))
			return false;
		codecs[i] = column->codec;
		if (column->attno == 0)
		{
			column->expr = linitial(exprs);
			exprs = list_delete_first(exprs);
		}
	}
	index->codec = rf_row_codec(codecs, index->ncolumns);
	index->predicate = RelationGetIndexPredicate(relation);
	return true;
}

/*
 * Are a leaf's keys made from the same types under the same collations?
 */
bool
rf_index_fits(const RfIndex *index, Relation leaf_index)
{
	if (IndexRelationGetNumberOfKeyAttributes(leaf_index) != index->ncolumns)
		return false;
	for (int i = 0; i < index->ncolumns; i++)
	{
		if (leaf_index->rd_opfamily[i] != index->columns[i].opfamily ||
			leaf_index->rd_opcintype[i] != index->columns[i].opcintype ||
			leaf_index->rd_indcollation[i] != index->columns[i].collation)
			return false;
	}
	return true;
}

/*
 * Adds an index to the entry if it is a partitioned rangefilter index.  It
 * does not wait for anybody who locks the index; false where it would.
 */
static bool
add_index(RfTable *table, Oid oid)
{
	MemoryContext old;
	Relation	relation;

	if (!ConditionalLockRelationOid(oid, AccessShareLock))
		return false;
	relation = try_relation_open(oid, NoLock);
	if (relation == NULL)
	{
		UnlockRelationOid(oid, AccessShareLock);
		return false;
	}
	if (relation->rd_rel->relkind == RELKIND_PARTITIONED_INDEX &&
		rf_is_rangefilter(relation))
	{
		old = MemoryContextSwitchTo(table->context);
		if (describe_index(relation, &table->indexes[table->nindexes]))
			table->nindexes++;
		MemoryContextSwitchTo(old);
		rf_track(oid)->relid = table->relid;
	}
	relation_close(relation, AccessShareLock);
	return true;
}

/*
 * Are there members that are partitioned themselves?
 */
static bool
has_partitioned_members(Relation relation)
{
	PartitionDesc partdesc = RelationGetPartitionDesc(relation, true);

	for (int i = 0; i < partdesc->nparts; i++)
	{
		if (!partdesc->is_leaf[i])
			return true;
	}
	return false;
}

/*
 * Reads the indexes of a partitioned table, which the caller has locked.
 */
static void
fill_table(RfTable *table)
{
	Relation	relation = table_open(table->relid, NoLock);
	List	   *oids = RelationGetIndexList(relation);
	bool		complete = true;
	ListCell   *cell;

	table->indexes = MemoryContextAllocZero(table->context,
											(list_length(oids) + 1) *
											sizeof(RfIndex));
	foreach(cell, oids)
		complete = add_index(table, lfirst_oid(cell)) && complete;
	list_free(oids);
	table->candidate = table->nindexes > 0 || has_partitioned_members(relation);
	table_close(relation, NoLock);
	table->complete = complete;
}

/*
 * The entry of a partitioned table, made where there is no valid one.  The
 * caller has locked the table.  Never NULL.
 */
RfTable *
rf_find_table(Oid relid)
{
	RfTableEntry *entry;
	RfTable    *table;
	MemoryContext context;
	bool		found;

	entry = hash_search(tables, &relid, HASH_ENTER, &found);
	if (!found)
		entry->table = NULL;
	table = entry->table;
	if (table != NULL && table->valid && table->complete)
		return table;

	if (table != NULL)
	{
		entry->table = NULL;
		table->next_retired = retired;
		retired = table;
	}
	context = AllocSetContextCreate(CacheMemoryContext,
									"rangefilter table",
									ALLOCSET_SMALL_SIZES);
	table = MemoryContextAllocZero(context, sizeof(RfTable));
	table->relid = relid;
	table->context = context;
	table->built_at = changes;
	table->serial = ++entries_made;

	/* In place before anything is read, to see what changes meanwhile. */
	table->valid = true;
	entry->table = table;
	fill_table(table);
	return table;
}

/*
 * The table, other than the one given, whose copies have not been asked for
 * the longest time; NULL where no other has any.
 */
RfTable *
rf_least_asked_table(const RfTable *except)
{
	RfTable    *least = NULL;
	HASH_SEQ_STATUS status;
	RfTableEntry *entry;

	hash_seq_init(&status, tables);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		RfTable    *table = entry->table;

		if (table != NULL && table != except && table->has_copies &&
			(least == NULL || table->last_asked < least->last_asked))
			least = table;
	}
	return least;
}

/*
 * The entry of a table if there is one, valid or not.
 */
RfTable *
rf_known_table(Oid relid)
{
	RfTableEntry *entry = hash_search(tables, &relid, HASH_FIND, NULL);

	return entry != NULL ? entry->table : NULL;
}

/*
 * An index the map named turned out to be none that can be used.  Unless
 * nothing at all changed since the entry was made, make it again next time.
 */
void
rf_table_suspect(RfTable *table)
{
	if (table->built_at != changes)
		table->valid = false;
}

/*
 * Moves what has been counted at a table's leaves to the backend's counters.
 */
static void
collect_counts(RfTable *table)
{
	if (!table->has_counts)
		return;
	for (int i = 0; i < table->nindexes; i++)
	{
		RfIndex    *index = &table->indexes[i];

		rf_collect_denials(index);
		for (int j = 0; index->mapped && j < index->nleaves; j++)
		{
			RfLeaf	   *leaf = &index->leaves[j];

			if (leaf->probes > 0)
			{
				RfCounts	counts = {.probes = leaf->probes,.skips = leaf->skips};

				rf_counts_add(rf_stats_counts(leaf->index), &counts);
				leaf->probes = leaf->skips = 0;
			}
		}
	}
	table->has_counts = false;
}

/*
 * The same for all tables.
 */
void
rf_collect_counts(void)
{
	HASH_SEQ_STATUS status;
	RfTableEntry *entry;

	hash_seq_init(&status, tables);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->table != NULL)
			collect_counts(entry->table);
	}
	for (RfTable *table = retired; table != NULL; table = table->next_retired)
		collect_counts(table);
}

/*
 * Frees the entries that were replaced.  Nothing may be in planning.
 */
void
rf_free_retired_tables(void)
{
	while (retired != NULL)
	{
		RfTable    *table = retired;

		retired = table->next_retired;
		collect_counts(table);
		rf_forget_copies(table);
		MemoryContextDelete(table->context);
	}
}
