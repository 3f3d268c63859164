/*-------------------------------------------------------------------------
 *
 * catalog.c
 *	  The rangefilter indexes of partitioned tables, remembered by the session.
 *
 * Planning needs these indexes for every partitioned table of every query, and
 * the index of each of its partitions.  So each backend keeps an entry for
 * each partitioned table, also for those without such an index.  For each
 * index the entry has a map from leaf table to leaf index, made from
 * pg_inherits when it is first needed (leafmap.c).  A member that is
 * partitioned itself has an entry of its own, since every level is expanded on
 * its own.
 *
 * An entry becomes invalid when a relcache invalidation comes for its table or
 * one of its partitioned indexes; attaching a partition or an index sends one.  It also
 * does when a function is replaced that is in an expression or a predicate of these
 * indexes, where its body may have been inlined.
 * The map may still name an index that is gone (REINDEX CONCURRENTLY of one
 * partition).  Code that notices this calls rf_table_suspect().  An entry may
 * become invalid while it is read, because taking a lock processes
 * invalidations.  Entries are freed only before the next planning that is not
 * nested in another one: first those that are not valid, among them those of
 * dropped tables, then as many others as rangefilter.cache_size requires.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "core/core.h"
#include "miscadmin.h"
#include "partitioning/partdesc.h"
#include "planner/knowledge/knowledge.h"
#include "rangefilter/page/shared.h"
#include "rangefilter/probe/probe.h"
#include "rangefilter/rangefilter.h"
#include "stats/session.h"
#include "stats/stats.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"

/* Table -> its entry. */
typedef struct RfTableEntry
{
	Oid			relid;			/* hash key */
	RfTable    *table;			/* NULL while none is known */
	bool		with_own;		/* with indexes that only partitions have */
} RfTableEntry;

static HTAB *tables = NULL;
static RfTable *retired = NULL;
static bool any_invalid = false;	/* of the tables */
static uint64 entries_made = 0;
static uint64 asked = 0;		/* times an entry was looked for */
static uint64 planning_began = 0;	/* "asked" when a planning last began */
static uint64 last_began = 0;	/* and when the last one before it began that
								 * looked for an entry */

static void tell_usage(RfUsage *usage);

/*
 * Marks an entry invalid.
 */
static void
invalidate(RfTable *table)
{
	if (table == NULL)
		return;
	table->valid = false;
	any_invalid = true;
}

/*
 * Marks the entry of a table invalid, if there is one.
 */
static void
invalidate_table(Oid relid)
{
	RfTableEntry *entry = hash_search(tables, &relid, HASH_FIND, NULL);

	if (entry != NULL)
		invalidate(entry->table);
}

/*
 * Marks all entries invalid.
 */
static void
invalidate_all(void)
{
	HASH_SEQ_STATUS status;
	RfTableEntry *entry;

	hash_seq_init(&status, tables);
	while ((entry = hash_seq_search(&status)) != NULL)
		invalidate(entry->table);
}

/*
 * Returns true if this session has locked a relation exclusively.
 */
static bool
is_locked_exclusively(Oid relid)
{
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, relid);
	return RF_HOLDS_LOCK(&tag, AccessExclusiveLock);
}

/*
 * Relcache callback.  Called at any time, so it only sets flags.
 *
 * If this transaction has locked the relation exclusively, it may be an index that it has
 * dropped, to which it will not give the rows that it writes from now on.  So what others read
 * from the index must not hold by its change counter any more.
 */
static void
relation_changed(Datum arg, Oid relid)
{
	Oid			table = rf_note_change(relid);

	if (OidIsValid(relid) && is_locked_exclusively(relid))
		rf_advance_change_counter(relid);
	if (tables == NULL)
		return;
	if (!OidIsValid(relid))
		invalidate_all();
	else
		invalidate_table(table);
}

/*
 * Makes the map of tables.
 */
static void
make_map(void)
{
	HASHCTL		control;

	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(Oid);
	control.entrysize = sizeof(RfTableEntry);
	control.hcxt = rf_session_context();
	tables = hash_create("rangefilter tables", 32, &control,
						 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/*
 * Syscache callback for pg_proc: marks entries invalid whose indexes depend on the
 * function, or any function (hash 0).  Called at any time.
 */
static void
function_changed(Datum arg, int cache, uint32 hash)
{
	HASH_SEQ_STATUS status;
	RfTableEntry *entry;

	rf_note_function_change();
	if (tables == NULL)
		return;
	hash_seq_init(&status, tables);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		List	   *functions = entry->table != NULL ? entry->table->functions : NIL;
		ListCell   *cell;

		foreach(cell, functions)
		{
			const PlanInvalItem *item = lfirst_node(PlanInvalItem, cell);

			if (item->cacheId == PROCOID && (hash == 0 || item->hashValue == hash))
				invalidate(entry->table);
		}
	}
}

/*
 * Called once, when the library is loaded.
 */
void
rf_init_catalog(void)
{
	rf_tell_usage = tell_usage;
	CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	CacheRegisterSyscacheCallback(PROCOID, function_changed, (Datum) 0);
}

/*
 * Adds an index to the entry if it is a partitioned rangefilter index, and
 * clears *everywhere if some partition has no index that belongs to it.  Does
 * not wait for a lock on the index; false if it would have to.  (Nobody drops an
 * index whose table is locked.)
 */
static bool
add_index(RfTable *table, Oid oid, bool *everywhere)
{
	Relation	relation;

	if (!ConditionalLockRelationOid(oid, AccessShareLock))
		return false;
	relation = relation_open(oid, NoLock);
	if (relation->rd_rel->relkind == RELKIND_PARTITIONED_INDEX &&
		rf_is_rangefilter(relation))
	{
		if (rf_describe_index(table, relation, &table->indexes[table->nindexes]))
			table->nindexes++;
		*everywhere = *everywhere && relation->rd_index->indisvalid;
		rf_hold_inval_record(table, oid)->relid = table->relid;
	}
	relation_close(relation, AccessShareLock);
	return true;
}

/*
 * Are there members that are partitioned themselves?
 */
static bool
has_partitioned_members(PartitionDesc partdesc)
{
	for (int i = 0; i < partdesc->nparts; i++)
	{
		if (!rf_is_leaf(partdesc, i))
			return true;
	}
	return false;
}

/*
 * Reads the indexes of a partitioned table, which the caller has locked, and
 * if need be those that only its partitions have.
 */
static void
fill_table(RfTable *table, bool with_own)
{
	Relation	relation = table_open(table->relid, NoLock);
	List	   *oids = RelationGetIndexList(relation);
	PartitionDesc partdesc = RelationGetPartitionDesc(relation, true);
	bool		complete = true;
	bool		everywhere = true;
	ListCell   *cell;

	table->indexes = MemoryContextAllocZero(table->context,
											(list_length(oids) + 1) *
											sizeof(RfIndex));
	foreach(cell, oids)
		complete = add_index(table, lfirst_oid(cell), &everywhere) && complete;
	list_free(oids);
	table->npartitioned = table->nindexes;
	table->own_needed = table->nindexes == 0 || !everywhere;
	if (with_own || table->own_needed)
		rf_add_own_indexes(table, partdesc);
	table->candidate = table->nindexes > 0 || has_partitioned_members(partdesc);
	table_close(relation, NoLock);
	table->complete = complete;
}

/*
 * Replaces an entry.  It may be in use, so it is freed later.
 */
static void
retire(RfTableEntry *entry)
{
	RfTable    *table = entry->table;

	if (table == NULL)
		return;
	entry->table = NULL;
	table->next_retired = retired;
	retired = table;
}

/*
 * Notes that an entry was looked for.
 */
static RfTable *
note_asked(RfTable *table)
{
	table->last_asked = ++asked;
	return table;
}

/*
 * The entry of a partitioned table, made if there is no valid one.  The caller
 * has locked the table.  Never NULL.
 */
RfTable *
rf_find_table(Oid relid)
{
	RfTableEntry *entry;
	RfTable    *table;
	MemoryContext context;
	bool		outer = rf_entries_in_use;
	bool		found;

	if (tables == NULL)
		make_map();
	entry = hash_search(tables, &relid, HASH_ENTER, &found);
	if (!found)
	{
		entry->table = NULL;
		entry->with_own = false;
	}
	table = entry->table;
	if (table != NULL && table->valid && table->complete &&
		rf_own_unchanged(table))
		return note_asked(table);

	retire(entry);
	context = AllocSetContextCreate(rf_session_context(),
									"rangefilter table",
									ALLOCSET_SMALL_SIZES);
	table = MemoryContextAllocZero(context, sizeof(RfTable));
	table->relid = relid;
	table->context = context;
	table->built_at = rf_changes();
	table->serial = ++entries_made;
	rf_session_growth++;

	/*
	 * The entry is in place before anything is read, so that invalidations
	 * reach it.
	 */
	table->valid = true;
	entry->table = table;
	PG_TRY();
	{
		rf_entries_in_use = true;
		fill_table(table, entry->with_own);
	}
	PG_FINALLY();
	{
		rf_entries_in_use = outer;
	}
	PG_END_TRY();
	return note_asked(table);
}

/*
 * The same, with the indexes that only partitions have.  The entry may be
 * another one than that of an earlier call.
 */
RfTable *
rf_find_table_with_own(Oid relid)
{
	RfTable    *table = rf_find_table(relid);
	RfTableEntry *entry;

	if (table->own_read)
		return table;
	entry = hash_search(tables, &relid, HASH_FIND, NULL);
	if (entry->with_own)
		return table;
	entry->with_own = true;
	invalidate(table);
	return rf_find_table(relid);
}

/*
 * The table, other than the one given, whose cached metapages have not been
 * asked for the longest time; NULL where no other has any.
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

		if (table != NULL && table != except && table->has_cached_metas &&
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
	RfTableEntry *entry = tables != NULL ?
	hash_search(tables, &relid, HASH_FIND, NULL) : NULL;

	return entry != NULL && entry->table != NULL ? note_asked(entry->table) : NULL;
}

/*
 * An index in the map turned out to be unusable.  Makes the entry invalid,
 * unless no invalidation at all came since it was made.
 */
void
rf_table_suspect(RfTable *table)
{
	if (table->built_at != rf_changes())
		invalidate(table);
}

/*
 * May catalogs be read?  An exiting session would wait for locks on them with its own held, and
 * could not be interrupted.
 */
static bool
may_read_catalogs(void)
{
	return IsTransactionState() && !proc_exit_inprogress;
}

/*
 * Does a leaf's index exist?  Where catalogs cannot be read, only those do that have statistics:
 * what the session knows may be old.
 */
static bool
index_exists(RfLeaf *leaf)
{
	if (!may_read_catalogs())
		return rf_core_has_statistics(leaf->index);
	return rf_leaf_is_located(leaf) ||
		SearchSysCacheExists1(RELOID, ObjectIdGetDatum(leaf->index));
}

/*
 * Moves what has been counted at a table's leaves to the backend's counters
 * and to the server's statistics.
 */
static void
collect_counts(RfTable *table)
{
	if (!table->has_counts)
		return;
	for (int i = 0; i < table->nindexes; i++)
	{
		RfIndex    *index = rf_index_at(table, i);

		rf_collect_denials(index);
		for (int j = 0; j < index->nleaves; j++)
		{
			RfLeaf	   *leaf = rf_leaf_at(index, j);

			if (leaf->probes > 0)
			{
				RfCounts	counts = {.probes = leaf->probes,.skips = leaf->skips};

				rf_counts_add(rf_stats_counts(leaf->index), &counts);
				if (index_exists(leaf))
					rf_core_count_scans(leaf->index, leaf->probes);
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

	if (tables == NULL)
		return;

	/* Indexes may have been dropped. */
	if (may_read_catalogs())
		AcceptInvalidationMessages();
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
 * Frees an entry that is not in the map any more.  Returns the number of bytes
 * freed.
 */
static Size
free_table(RfTable *table)
{
	Size		size = MemoryContextMemAllocated(table->context, true);

	collect_counts(table);
	rf_forget_cached_metas(table);
	rf_release_inval_records(table);
	MemoryContextDelete(table->context);
	return size;
}

/*
 * Frees the entries that were replaced.
 */
static void
free_retired(void)
{
	while (retired != NULL)
	{
		RfTable    *table = retired;

		retired = table->next_retired;
		(void) free_table(table);
	}
}

/*
 * Retires entries that are not valid any more.
 */
static void
retire_invalid(void)
{
	HASH_SEQ_STATUS status;
	RfTableEntry *entry;

	any_invalid = false;
	hash_seq_init(&status, tables);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->table != NULL && entry->table->valid)
			continue;
		retire(entry);
		hash_search(tables, &entry->relid, HASH_REMOVE, NULL);
	}
}

/*
 * Forgets the cached metapages of all tables' indexes, and memory for digests
 * of the session's own.  No entry is retired.
 */
static void
forget_all_cached_metas(void)
{
	HASH_SEQ_STATUS status;
	RfTableEntry *entry;

	hash_seq_init(&status, tables);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->table != NULL)
		{
			collect_counts(entry->table);
			rf_forget_cached_metas(entry->table);
		}
	}
	rf_digests_forget_own();
}

/* qsort(): the table that was not asked for the longest time comes first. */
static int
compare_asked(const void *a, const void *b)
{
	const RfTable *x = *(RfTable *const *) a;
	const RfTable *y = *(RfTable *const *) b;

	return (x->last_asked > y->last_asked) - (x->last_asked < y->last_asked);
}

/*
 * Frees entries until "excess" bytes are freed.  Those that were looked for since the
 * last planning began stay: otherwise each planning would make them anew.
 */
static void
free_least_asked(Size excess)
{
	int			n = 0;
	RfTable   **victims = palloc(hash_get_num_entries(tables) *
								 sizeof(RfTable *) + 1);
	HASH_SEQ_STATUS status;
	RfTableEntry *entry;
	Size		freed = 0;

	hash_seq_init(&status, tables);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->table != NULL && entry->table->last_asked <= last_began)
			victims[n++] = entry->table;
	}
	qsort(victims, n, sizeof(RfTable *), compare_asked);
	for (int i = 0; i < n && freed < excess; i++)
	{
		hash_search(tables, &victims[i]->relid, HASH_REMOVE, NULL);
		freed += free_table(victims[i]);
	}
	pfree(victims);
}

/*
 * Frees what is over the limit, and an eighth more.  Cached metapages go as
 * well if entries have grown over their room.
 */
static void
free_excess(Size used, Size limit)
{
	free_least_asked(used - limit + limit / 8);
	if (rf_cache_used > 0 && rf_session_measure() > limit + limit / 8)
		forget_all_cached_metas();
}

/*
 * Measures the session's memory if it may have grown, and frees what is over
 * the limit.  Cached metapages may take the rest.
 */
static void
keep_limit(void)
{
	static uint64 seen_growth = 0;
	static Size seen_cached = 0;
	static int	seen_size = 0;
	Size		limit = rf_session_limit();
	Size		used;

	if (rf_session_growth == seen_growth && rf_cache_used == seen_cached &&
		rf_cache_size == seen_size)
		return;

	/* A new setting changes the number of matrices in the own store. */
	if (rf_cache_size != seen_size && seen_size != 0)
		forget_all_cached_metas();
	used = rf_session_measure();
	if (used > limit)
	{
		free_excess(used, limit);
		used = rf_session_measure();
	}
	seen_growth = used > limit ? 0 : rf_session_growth;
	seen_cached = rf_cache_used;
	seen_size = rf_cache_size;
}

/*
 * Called when a planning begins that is not nested in another one, and
 * rf_entries_in_use is not set.  So no entry is in use.
 */
void
rf_trim_tables(void)
{
	if (tables == NULL)
		return;
	if (asked != planning_began)
		last_began = planning_began;
	planning_began = asked;
	if (any_invalid)
		retire_invalid();
	if (retired != NULL)
		free_retired();
	keep_limit();
	rf_shrink_inval_records();
}

/*
 * Adds the memory of cached metapages of an index's leaves.
 */
static void
add_index_usage(const RfIndex *index, RfUsage *usage)
{
	for (int i = 0; i < index->nleaves; i++)
	{
		const RfLeaf *leaf = rf_leaf_at(index, i);

		if (leaf->cached != NULL)
		{
			usage->cached_metas++;
			usage->cached_meta_bytes += GetMemoryChunkSpace(leaf->cached);
		}
	}
}

/*
 * Counts entries and cached metapages, and their memory.
 */
static void
tell_usage(RfUsage *usage)
{
	HASH_SEQ_STATUS status;
	RfTableEntry *entry;

	memset(usage, 0, sizeof(*usage));
	if (tables == NULL)
		return;
	hash_seq_init(&status, tables);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		usage->tables += entry->table != NULL;
		for (int i = 0; entry->table != NULL && i < entry->table->nindexes; i++)
			add_index_usage(rf_index_at(entry->table, i), usage);
	}
	rf_inval_records_usage(&usage->invals, &usage->inval_bytes);
}
