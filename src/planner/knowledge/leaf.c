/*-------------------------------------------------------------------------
 *
 * leaf.c
 *	  Asking the index of one partition, which nobody has locked for us.
 *
 * A skipped partition is not part of the plan, so neither it nor its index
 * stays locked.  The index is locked for the question only, without waiting.
 * Whatever replaces or drops the index's file locks the index strongly, except
 * DROP INDEX and REINDEX CONCURRENTLY, which wait for those who lock the
 * table.  These do no harm either.  Our lock brings the invalidations sent
 * before it, and an index that is being dropped is first declared not valid,
 * then not ready.  So an index that we see as valid has the keys of all
 * transactions that committed before we locked it.  (The file may go between
 * the look at these flags and the read, if three transactions end in between.
 * Then the query fails.  Another lock for each partition would cost more than
 * this is worth.)  Under SERIALIZABLE the table is locked, too, so that DDL
 * cannot move predicate locks from the index to the table before ours is
 * taken.
 *
 * Whatever is out of the ordinary means: scan.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "partitioning/partdesc.h"
#include "planner/knowledge/knowledge.h"
#include "planner/knowledge/question.h"
#include "planner/planning/planning.h"
#include "rangefilter/page/page.h"
#include "rangefilter/probe/probe.h"
#include "rangefilter/rangefilter.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "utils/rel.h"

/*
 * Can this open index be asked for its table?  One that is valid is also ready and live.
 */
bool
rf_index_is_usable(Relation index, Oid table)
{
	Form_pg_index form = index->rd_index;

	return index->rd_rel->relkind == RELKIND_INDEX &&
		rf_is_rangefilter(index) &&
		form->indrelid == table &&
		form->indisvalid &&
		!ReindexIsProcessingIndex(RelationGetRelid(index)) &&
		!RELATION_IS_OTHER_TEMP(index) &&
		(RelationIsPermanent(index) || !RecoveryInProgress());
}

/* An index locked to be asked. */
typedef struct RfAsked
{
	Oid			oid;
	Relation	relation;		/* NULL: not open, but the leaf is located */
	const RfLeaf *leaf;			/* or NULL */
	const RfCodec *codec;		/* of its keys, if the leaf is known */
} RfAsked;

/*
 * Ends what lock_index() began.
 */
static void
unlock_index(RfAsked *asked)
{
	if (asked->relation != NULL)
		relation_close(asked->relation, NoLock);
	UnlockRelationOid(asked->oid, AccessShareLock);
}

/*
 * Locks the index of a leaf for a question.  Opens it, unless the leaf is
 * located: then the question is put to its file.  (leaf may be NULL: then the
 * index is opened.)  False, and no lock, if somebody else holds a strong lock.
 * False also if there is no such index that can be used; then *stale is set.
 */
static bool
lock_index(Oid table, Oid oid, RfLeaf *leaf, RfAsked *asked, bool *stale)
{
	asked->oid = oid;
	asked->leaf = leaf;
	asked->relation = NULL;
	if (!ConditionalLockRelationOid(oid, AccessShareLock))
		return false;

	/*
	 * Under the lock all invalidations have been processed, so this also
	 * tells whether the index still exists.  try_relation_open() would look
	 * up the catalog for each partition.
	 */
	if (leaf != NULL && rf_leaf_is_located(leaf) &&
		!ReindexIsProcessingIndex(oid))
		return true;
	asked->relation = RelationIdGetRelation(oid);
	if (asked->relation != NULL && rf_index_is_usable(asked->relation, table))
		return true;

	*stale = true;
	unlock_index(asked);
	return false;
}

/*
 * Asks a locked index.
 */
static RfAnswer
ask(const RfAsked *asked, const RfKeySet *set, bool in_recovery,
	RfSummaryVersion *version, RfCachedMetaRef *ref)
{
	return asked->relation != NULL ?
		rf_probe(asked->relation, set, in_recovery, version, ref) :
		rf_probe_by_file(&asked->leaf->locator, asked->codec, set,
						 in_recovery, version, ref);
}

/*
 * Reads the version of a locked index.  False if it cannot be told.
 */
static bool
read_version(const RfAsked *asked, RfSummaryVersion *version)
{
	return asked->relation != NULL ?
		rf_read_version(asked->relation, version) :
		rf_read_version_by_file(&asked->leaf->locator, asked->codec,
								asked->leaf->cached, version);
}

/*
 * Adds a NO to those the plan relies on.
 */
static void
add_skip(RfSkips *skips, Oid table, const RfLeaf *leaf, int probe,
		 const RfSummaryVersion *version)
{
	RfSkip	   *skip;

	if (skips->n == skips->size)
	{
		skips->size = Max(256, 2 * skips->size);
		skips->skips = skips->skips == NULL ?
			MemoryContextAllocHuge(skips->context,
								   skips->size * sizeof(RfSkip)) :
			repalloc_huge(skips->skips, skips->size * sizeof(RfSkip));
	}
	skip = &skips->skips[skips->n++];
	memset(skip, 0, sizeof(*skip));
	skip->table = table;
	skip->leaf = leaf->leaf;
	skip->index = leaf->index;
	skip->probe = probe;
	skip->version = *version;
}

/*
 * Called before the leaf's index is locked. now is the clock.
 */
void
rf_begin_look(RfLook *look, RfTable *table, RfIndex *index, RfLeaf *leaf,
			  RfClock now)
{
	look->table = table;
	look->index = index;
	look->leaf = leaf;
	look->changes = rf_changes();
	look->validity = rf_leaf_validity(leaf, now);
}

/*
 * Asks the locked index of a leaf, and caches its metapage.  RF_UNKNOWN where
 * its keys are not those of the table's index.  *version is set unless the
 * answer is RF_UNKNOWN.
 */
static RfAnswer
look(const RfLook *look, const RfAsked *asked, const RfKeySet *set,
	 bool in_recovery, RfSummaryVersion *version)
{
	RfCachedMetaRef ref;
	RfKeyBounds bounds = RF_NO_BOUNDS;
	RfAnswer	answer;

	if (asked->relation != NULL && !rf_index_fits(look->index, asked->relation))
		return RF_UNKNOWN;
	if (asked->relation != NULL)
		rf_leaf_locate(look->leaf, asked->relation, look->changes);
	rf_cached_meta_ref(look->table, look->leaf, &ref);
	if (rf_wants_bounds(look->index, look->leaf))
		ref.bounds = &bounds;
	memset(version, 0, sizeof(*version));

	/* From here on the cached metapage may be another one. */
	rf_forget_bounds(look->index, look->leaf);
	answer = ask(asked, set, in_recovery, version, &ref);
	rf_leaf_checked(look->table, look->index, look->leaf, version, look->validity);
	rf_keep_bounds(look->index, look->leaf, &bounds, look->validity);
	return answer;
}

/*
 * Asks the leaf's index, which was locked and opened after rf_begin_look(), and caches its
 * metapage.
 */
RfAnswer
rf_look_at_open(const RfLook *begun, Relation relation, const RfKeySet *set,
				bool in_recovery)
{
	RfAsked		asked = {.oid = RelationGetRelid(relation),.relation = relation};
	RfSummaryVersion version;
	Oid			relid PG_USED_FOR_ASSERTS_ONLY = begun->table->relid;
	uint64		serial PG_USED_FOR_ASSERTS_ONLY = begun->table->serial;
	RfAnswer	answer;

	/* Within a planning others' matrices may be in use. */
	if (rf_planning == NULL)
		rf_make_room(begun->table);
	answer = look(begun, &asked, set, in_recovery, &version);

	/* Nothing has been planned meanwhile, so the entry has not been freed. */
	Assert(rf_known_table(relid) != NULL && rf_known_table(relid)->serial == serial);
	return answer;
}

/*
 * Asks the index of a leaf, and caches its metapage.  Locks the index for
 * this, without waiting.  RF_UNKNOWN where it cannot be locked or used.
 * *version is set unless the answer is RF_UNKNOWN.
 */
static RfAnswer
ask_index(RfTable *table, RfIndex *index, RfLeaf *leaf, const RfKeySet *set,
		  bool in_recovery, RfSummaryVersion *version)
{
	bool		stale = false;
	RfAnswer	answer;
	RfAsked		asked;
	RfLook		begun;

	rf_begin_look(&begun, table, index, leaf, rf_planning->started);
	if (!lock_index(leaf->leaf, leaf->index, leaf, &asked, &stale))
	{
		if (stale)
			rf_table_suspect(table);
		return RF_UNKNOWN;
	}
	asked.codec = index->codec;
	rf_make_room(table);
	answer = look(&begun, &asked, set, in_recovery, version);
	unlock_index(&asked);
	return answer;
}

/*
 * Makes a digest of a leaf's filter and puts it into its matrix, unless the index would have to be
 * opened.  Locks the index for this, without waiting.  False if the leaf has no digest afterwards.
 */
bool
rf_make_digest(RfIndex *index, RfLeaf *leaf, RfClock now)
{
	bool		stale = false;
	bool		made = false;
	RfAsked		asked;

	if (!lock_index(leaf->leaf, leaf->index, leaf, &asked, &stale))
		return false;
	if (asked.relation == NULL)
		made = rf_put_digest(index, leaf, now);
	unlock_index(&asked);
	return made;
}

/*
 * Is a condition false for all rows of a relation?  denies() asks the indexes:
 * one NO is enough under AND, OR needs a NO of each arm.  NOs of an OR that is
 * not denied are removed from skips, which may be NULL.
 */
bool
rf_cond_denied(const RfCond *cond, RfDenies denies, void *arg, RfSkips *skips)
{
	int			n = skips != NULL ? skips->n : 0;
	bool		decisive = cond->kind == RF_COND_AND;
	ListCell   *cell;

	if (cond->kind == RF_COND_PROBE)
		return denies(cond, arg);
	foreach(cell, cond->args)
	{
		if (rf_cond_denied(lfirst(cell), denies, arg, skips) == decisive)
		{
			if (!decisive && skips != NULL)
				skips->n = n;
			return decisive;
		}
	}
	return !decisive;
}

/* A leaf that may be left out. */
typedef struct RfCandidate
{
	RfTable    *table;
	Oid			leaf;
	int			position;
	bool		in_recovery;
	RfSkips    *skips;
} RfCandidate;

/*
 * Does the leaf's index deny that there is a key of the set?  An empty set
 * needs no index.
 */
static bool
leaf_denies(const RfCond *cond, void *arg)
{
	const RfCandidate *leaf = arg;
	RfLeaf	   *entry;
	RfAnswer	answer;
	RfSummaryVersion version;
	bool		is_cached;

	if (rf_keyset_is_empty(cond->set))
		return true;
	entry = rf_find_leaf(leaf->table, cond->index, leaf->leaf, leaf->position);
	if (entry == NULL)
		return false;
	entry->probes++;
	if (rf_digest_is_due(cond->index, entry))
		(void) rf_make_digest(cond->index, entry, rf_planning->started);
	is_cached = entry->cached != NULL;
	answer = rf_probe_cached(leaf->table, entry, cond, leaf->in_recovery, &version);
	if (answer == RF_UNKNOWN)
		answer = ask_index(leaf->table, cond->index, entry, cond->set,
						   leaf->in_recovery, &version);
	if (!is_cached && entry->cached != NULL)
		rf_planning->newly_cached++;
	if (answer != RF_NO)
		return false;
	entry->skips++;
	add_skip(leaf->skips, leaf->table->relid, entry, cond->probe, &version);
	return true;
}

/* The number of positions that are read ahead. */
#define READ_AHEAD		128

/* A leaf that is read ahead of. */
typedef struct RfAhead
{
	RfTable    *table;
	Oid			leaf;
	int			position;
	bool		in_recovery;
	bool		pages;			/* not the metapage, but the others */
} RfAhead;

/*
 * Begins to read what the leaf's index will be asked for, unless it would have to be
 * opened.  The result leads rf_cond_denied() to the indexes that will be asked if each says NO.
 */
static bool
read_leaf_ahead(const RfCond *cond, void *arg)
{
	RfAhead    *ahead = arg;
	RfLeaf	   *entry = rf_find_leaf(ahead->table, cond->index, ahead->leaf,
									 ahead->position);
	bool		stale = false;
	bool		has_key = false;
	RfAsked		asked;

	if (entry == NULL || !rf_leaf_is_located(entry) ||
		rf_keyset_is_empty(cond->set) ||
		!lock_index(ahead->leaf, entry->index, entry, &asked, &stale))
		return true;
	if (asked.relation == NULL)
	{
		if (ahead->pages)
			has_key = rf_probe_ahead(&entry->locator, cond->index->codec,
									 cond->set, ahead->in_recovery);
		else
			rf_prefetch_meta(&entry->locator);
	}
	unlock_index(&asked);
	return !has_key;
}

/*
 * See knowledge.h.
 */
int
rf_read_ahead(RfTable *table, const RfCond *cond, PartitionDesc partdesc,
			  const Bitmapset *leaves, int position, bool in_recovery)
{
	RfAhead		ahead = {.table = table,.in_recovery = in_recovery};
	int			end = position + READ_AHEAD;

	for (int pass = 0; pass < 2 && effective_io_concurrency > 0; pass++)
	{
		ahead.pages = pass > 0;
		for (int i = bms_next_member(leaves, position); i >= 0 && i <= end;
			 i = bms_next_member(leaves, i))
		{
			CHECK_FOR_INTERRUPTS();
			ahead.leaf = partdesc->oids[i];
			ahead.position = i;
			(void) rf_cond_denied(cond, read_leaf_ahead, &ahead, NULL);
		}
	}
	return end;
}

/*
 * May a leaf partition be left out of a plan, because the condition is false
 * for all its rows?  If so, adds the NOs that this relies on to skips.
 * position is the leaf's place among the table's partitions.
 */
bool
rf_exclude_leaf(RfTable *table, const RfCond *cond, Oid leaf, int position,
				bool in_recovery, RfSkips *skips)
{
	RfCandidate candidate = {table, leaf, position, in_recovery, skips};

	return rf_cond_denied(cond, leaf_denies, &candidate, skips);
}

/*
 * Is a locked index, of this version now, the one that gave a NO?  Its OID may be
 * that of another one by now.  Each build has an identity.  Where the skip has
 * none (see one_of_denied_set()), the index must be as its entry says; index is
 * NULL if an invalidation has just made the entry go.
 */
static bool
is_same_index(const RfAsked *asked, const RfIndex *index,
			  const RfSummaryVersion *version, const RfSkip *skip)
{
	if (skip->version.identity != 0)
		return skip->version.identity == version->identity;
	return asked->relation == NULL ||
		(index != NULL && rf_index_fits(index, asked->relation));
}

/*
 * Does a locked index still say NO?  If so, sets the skip's version to that of
 * which this is known.  leaf is the index's entry, or NULL.  Under SERIALIZABLE
 * takes the predicate lock first.
 */
static bool
still_denied(const RfAsked *asked, RfTable *table, RfIndex *index,
			 RfLeaf *leaf, RfSkip *skip, const RfRecheck *recheck)
{
	RfSummaryVersion version;
	RfKeySet  **set = &recheck->sets[skip->probe];
	uint64		validity = leaf != NULL ?
	rf_leaf_validity(leaf, recheck->clock) : 0;
	bool		holds = true;

	/* Before anything is read (R5). */
	if (recheck->serializable != NULL)
		PredicateLockRelation(asked->relation, recheck->serializable);

	if (!read_version(asked, &version) ||
		!is_same_index(asked, index, &version, skip))
		return false;
	if (!recheck->trust_versions || !rf_same_version(&version, &skip->version))
	{
		if (*set == NULL)
			*set = rf_keyset_deserialize(recheck->flat[skip->probe]);
		holds = ask(asked, *set, recheck->in_recovery, &version, NULL) == RF_NO;
	}
	if (leaf != NULL)
		rf_leaf_checked(table, index, leaf, &version, validity);
	if (holds)
		skip->version = version;
	return holds;
}

/*
 * This backend's entry of the index that gave a NO, or NULL.  Leaves are
 * mostly looked for in their order in the array.
 */
static RfLeaf *
known_leaf(RfTable *table, const RfSkip *skip, RfRecheck *recheck,
		   RfIndex **found)
{
	for (int i = 0; table != NULL && i < table->nindexes; i++)
	{
		RfIndex    *index = rf_index_at(table, i);
		RfLeaf	   *leaf = rf_known_leaf(table, index, skip->leaf,
										 recheck->position);

		if (leaf != NULL && leaf->index == skip->index)
		{
			recheck->position = leaf - index->leaves + 1;
			*found = index;
			return leaf;
		}
	}
	return NULL;
}

/*
 * Does a NO given earlier still hold?  Locks the index for this, and under
 * SERIALIZABLE its table, without waiting; false if it cannot.
 */
bool
rf_recheck_skip(RfSkip *skip, RfRecheck *recheck)
{
	RfTable    *table = rf_known_table(skip->table);
	RfAsked		asked = {0};
	RfIndex    *index = NULL;
	RfLeaf	   *leaf = known_leaf(table, skip, recheck, &index);
	uint64		before = rf_changes();
	bool		stale = false;
	bool		holds = false;
	bool		lock_table = recheck->serializable != NULL;

	if (leaf != NULL)
		asked.codec = index->codec;
	if (!lock_table && !recheck->in_recovery && leaf != NULL &&
		rf_cached_no_holds(leaf, skip))
		return true;
	if (lock_table &&
		!ConditionalLockRelationOid(skip->leaf, AccessShareLock))
		return false;

	/* To take a predicate lock, the index must be open. */
	if (lock_index(skip->leaf, skip->index, lock_table ? NULL : leaf, &asked,
				   &stale))
	{
		/* Otherwise each guard would have to open the index. */
		if (asked.relation != NULL && leaf != NULL &&
			rf_index_fits(index, asked.relation))
			rf_leaf_locate(leaf, asked.relation, before);
		holds = still_denied(&asked, table, index, leaf, skip, recheck);
		unlock_index(&asked);
	}
	if (lock_table)
		UnlockRelationOid(skip->leaf, AccessShareLock);
	return holds;
}
