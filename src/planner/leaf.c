/*-------------------------------------------------------------------------
 *
 * leaf.c
 *	  Asking the index of one partition, which nobody has locked for us.
 *
 * A skipped partition is not part of the plan, so neither it nor its index is
 * locked but for the moment of the question: the index, without waiting.
 * Whatever replaces or drops its file locks it strongly, but for DROP INDEX
 * and REINDEX CONCURRENTLY, which wait for those who lock the table.  They do
 * not harm either: getting our lock brings the invalidations sent before it,
 * and an index on its way out is first declared not valid, then not ready.
 * So an index seen valid gets the keys of all who committed before we locked
 * it.  (If the file goes between our look at these flags and our reading it,
 * three transactions later, the query fails.  It is not worth another lock
 * for each partition.)  Under SERIALIZABLE the table is locked, too: then a
 * predicate lock must not come too late for its being moved to the table.
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
#include "planner/planner.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "utils/rel.h"

/*
 * Can this open index speak for its table?
 */
static bool
index_usable(Relation index, Oid leaf)
{
	Form_pg_index form = index->rd_index;

	return index->rd_rel->relkind == RELKIND_INDEX &&
		rf_is_rangefilter(index) &&
		form->indrelid == leaf &&
		form->indisvalid && form->indisready && form->indislive &&
		!ReindexIsProcessingIndex(RelationGetRelid(index)) &&
		!RELATION_IS_OTHER_TEMP(index) &&
		(RelationIsPermanent(index) || !RecoveryInProgress());
}

/*
 * Locks and opens the index of a leaf.  NULL
 * where somebody else holds a strong lock, or (*stale is set) where there is
 * no such index that could be used.
 */
static Relation
open_index(Oid leaf, Oid oid, bool *stale)
{
	Relation	index;

	if (!ConditionalLockRelationOid(oid, AccessShareLock))
		return NULL;

	/*
	 * With the lock, this knows whether the index still exists: the catalog
	 * look-up of try_relation_open() would be repeated for each partition.
	 */
	index = RelationIdGetRelation(oid);
	if (index != NULL && index_usable(index, leaf))
		return index;

	*stale = true;
	if (index != NULL)
		relation_close(index, NoLock);
	UnlockRelationOid(oid, AccessShareLock);
	return NULL;
}

/*
 * Adds a NO to those the plan relies on.
 */
static void
add_skip(RfSkips *skips, Oid table, const RfLeaf *leaf, int probe,
		 const RfStamp *stamp)
{
	RfSkip	   *skip;

	if (skips->n == skips->size)
	{
		skips->size = Max(64, 2 * skips->size);
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
	skip->stamp = *stamp;
}

/*
 * Asks the index of a leaf, and keeps a copy of it for the next time.
 */
static RfAnswer
ask_index(RfTable *table, const RfCond *cond, RfLeaf *leaf, bool in_recovery,
		  RfStamp *stamp)
{
	bool		stale = false;
	Relation	index = open_index(leaf->leaf, leaf->index, &stale);
	RfAnswer	answer = RF_UNKNOWN;
	RfCopySlot	slot;

	if (stale)
		rf_table_suspect(table);
	if (index == NULL)
		return RF_UNKNOWN;
	if (rf_index_fits(cond->index, index))
	{
		rf_make_room(table);
		rf_copy_slot(table, leaf, &slot);
		answer = rf_probe(index, cond->set, in_recovery, stamp, &slot);
		rf_copy_kept(table, leaf, &slot);
	}
	relation_close(index, AccessShareLock);
	return answer;
}

/*
 * Does the leaf's index deny that there is a key of the set?  An empty set
 * needs no index.
 */
static bool
probe_denies(RfTable *table, const RfCond *cond, Oid leaf, bool in_recovery,
			 RfSkips *skips)
{
	RfLeaf	   *entry;
	RfStamp		stamp;

	if (rf_keyset_is_empty(cond->set))
		return true;
	entry = rf_find_leaf(table, cond->index, leaf);
	if (entry == NULL)
		return false;
	entry->probes++;
	if (!rf_guess(table, entry, cond->set, in_recovery, &stamp) &&
		ask_index(table, cond, entry, in_recovery, &stamp) != RF_NO)
		return false;
	entry->skips++;
	add_skip(skips, table->relid, entry, cond->probe, &stamp);
	return true;
}

/*
 * May a leaf partition be left out of a plan, because the condition is false
 * for all its rows?  If so, what that rests on is added to skips: one denial
 * under AND, all under OR.
 */
bool
rf_exclude_leaf(RfTable *table, const RfCond *cond, Oid leaf,
				bool in_recovery, RfSkips *skips)
{
	int			n = skips->n;
	bool		decisive = cond->kind == RF_COND_AND;
	ListCell   *cell;

	if (cond->kind == RF_COND_PROBE)
		return probe_denies(table, cond, leaf, in_recovery, skips);
	foreach(cell, cond->args)
	{
		if (rf_exclude_leaf(table, lfirst(cell), leaf, in_recovery,
							skips) == decisive)
		{
			if (!decisive)
				skips->n = n;
			return decisive;
		}
	}
	return !decisive;
}

/*
 * Is a NO still one, by an open index?  Sets the skip's stamp to the one this
 * was found out for.
 */
static bool
still_denied(Relation index, RfSkip *skip, const RfRecheck *recheck)
{
	RfStamp		stamp;
	RfKeySet  **set = &recheck->sets[skip->probe];

	/* Before anything is read (R5). */
	if (recheck->serializable != NULL)
		PredicateLockRelation(index, recheck->serializable);

	if (recheck->trust_stamps && rf_read_stamp(index, &stamp) &&
		stamp.identity == skip->stamp.identity &&
		stamp.changes == skip->stamp.changes)
	{
		rf_guess_checked(skip, &recheck->clock, true);
		return true;
	}
	rf_guess_checked(skip, &recheck->clock, false);
	if (*set == NULL)
		*set = rf_keyset_deserialize(recheck->flat[skip->probe]);
	if (rf_probe(index, *set, recheck->in_recovery, &stamp, NULL) != RF_NO)
		return false;
	skip->stamp = stamp;
	return true;
}

/*
 * Does a NO given earlier still hold?
 */
bool
rf_recheck_skip(RfSkip *skip, const RfRecheck *recheck)
{
	Relation	index;
	bool		stale = false;
	bool		holds = false;
	bool		lock_table = recheck->serializable != NULL;

	if (lock_table &&
		!ConditionalLockRelationOid(skip->leaf, AccessShareLock))
		return false;
	index = open_index(skip->leaf, skip->index, &stale);
	if (index != NULL)
	{
		holds = still_denied(index, skip, recheck);
		relation_close(index, AccessShareLock);
	}
	if (lock_table)
		UnlockRelationOid(skip->leaf, AccessShareLock);
	return holds;
}
