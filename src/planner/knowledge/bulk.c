/*-------------------------------------------------------------------------
 *
 * bulk.c
 *	  Denying the partitions of a group all at once, and checking it so.
 *
 * Groups (groups.c) tell by a look at one word which of 64 leaves' digests deny a
 * key, and by another which of them can be relied on.  So planning and guard handle
 * words instead of leaves.  Whatever groups do not deny is asked as leaf.c and
 * guess.c do it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "core/core.h"
#include "miscadmin.h"
#include "partitioning/partdesc.h"
#include "planner/knowledge/knowledge.h"
#include "planner/knowledge/question.h"
#include "planner/planning/planning.h"
#include "port/pg_bitutils.h"
#include "stats/session.h"

/*
 * Are the table's partitions, by number, the leaves of the index?
 */
static bool
has_same_order(const RfIndex *index, PartitionDesc partdesc)
{
	return partdesc->nparts == index->nleaves &&
		memcmp(partdesc->oids, index->groups->oids,
			   index->nleaves * sizeof(Oid)) == 0;
}

/*
 * Can groups be asked about a set?
 */
static bool
is_askable(const RfKeySet *set)
{
	return set->kind == RF_KEY_U64 && !set->nulls && set->nranges > 0;
}

/*
 * Asks the groups of an index about a condition's set.  What they deny is
 * known of the state of now: should they change, it remains so.
 */
static void
ask_probe(RfTable *table, RfCond *cond, PartitionDesc partdesc)
{
	RfIndex    *index = cond->index;

	if (!is_askable(cond->set) || rf_cache_size == 0)
		return;
	rf_need_groups(table, index);
	if (!has_same_order(index, partdesc))
		return;
	cond->denied = palloc((index->groups->n + 1) * sizeof(uint64));
	cond->certain = true;
	for (int i = 0; i < index->groups->n; i++)
	{
		const RfGroup *group = &index->groups->groups[i];

		cond->denied[i] = rf_ask_group(index, i, cond->set,
									   rf_planning->started);
		cond->denied[i] &= group->current;
		if ((cond->denied[i] & ~group->certain) != 0)
			cond->certain = false;
	}
}

/*
 * Asks all groups about the sets of a condition.
 */
static void
ask_groups(RfTable *table, RfCond *cond, PartitionDesc partdesc)
{
	ListCell   *cell;

	foreach(cell, cond->args)
		ask_groups(table, lfirst(cell), partdesc);
	if (cond->kind == RF_COND_PROBE)
		ask_probe(table, cond, partdesc);
}

/*
 * Of which of some leaves of the groups with this number is a condition denied?
 */
static uint64
find_denied(const RfCond *cond, int number, uint64 leaves)
{
	uint64		denied = cond->kind == RF_COND_OR ? leaves : 0;
	ListCell   *cell;

	if (cond->kind == RF_COND_PROBE)
		return cond->denied != NULL && number < cond->index->groups->n ?
			cond->denied[number] & leaves : 0;
	foreach(cell, cond->args)
	{
		if (cond->kind == RF_COND_AND)
			denied |= find_denied(lfirst(cell), number, leaves & ~denied);
		else
			denied = find_denied(lfirst(cell), number, denied);
	}
	return denied;
}

/*
 * Adds to what a pass relies on: the leaves of one index that denied a set of keys.
 */
static RfBulk *
make_bulk(const RfTable *table, RfSkips *skips, const RfCond *cond)
{
	int			n = cond->index->groups->n;
	RfBulk	   *bulk = MemoryContextAllocZero(skips->context, RF_BULK_SIZE(n));

	bulk->table = table->relid;
	bulk->index = cond->index->oid;
	bulk->serial = table->serial;
	bulk->probe = cond->probe;
	bulk->nwords = n;
	skips->bulks = lappend(skips->bulks, bulk);
	return bulk;
}

/*
 * Takes down what a condition's being denied of some leaves rests on: one denial
 * under AND, all under OR.
 */
static void
note_denied(const RfTable *table, RfSkips *skips, RfCond *cond, int number,
			uint64 leaves)
{
	ListCell   *cell;

	if (cond->kind == RF_COND_PROBE && leaves != 0)
	{
		if (cond->bulk == NULL)
			cond->bulk = make_bulk(table, skips, cond);
		cond->bulk->leaves[number] |= leaves;
		rf_count_denials(cond->index, number, leaves);
		if (!cond->certain)
			rf_planning->clock = 0;
	}
	foreach(cell, cond->args)
	{
		uint64		denied = find_denied(lfirst(cell), number, leaves);

		note_denied(table, skips, lfirst(cell), number, denied);
		if (cond->kind == RF_COND_AND)
			leaves &= ~denied;
	}
}

/*
 * Takes leaves that groups deny out of rest, and returns it; what that rests on is
 * added to the pass's skips.
 */
Bitmapset *
rf_deny_in_bulk(RfTable *table, RfPass *pass, Bitmapset *rest)
{
	RfCond	   *cond = pass->match.cond;
	int			nwords = rf_core_count_words(rest);

	/* Sets of leaves are sets of partitions, word by word. */
	StaticAssertStmt(RF_CORE_WORD == FILTER_DIGESTS, "groups are words");
	if (nwords == 0)
		return rest;
	ask_groups(table, cond, pass->partdesc);
	for (int i = 0; i < nwords; i++)
	{
		uint64		denied = find_denied(cond, i, rf_core_bits(rest, i));

		note_denied(table, pass->skips, cond, i, denied);
		rf_core_clear_bits(rest, i, denied);
	}
	return rf_core_trim(rest);
}

/*
 * The index of a table with this OID, or NULL.
 */
static RfIndex *
find_index(RfTable *table, Oid oid)
{
	for (int i = 0; i < table->nindexes; i++)
	{
		if (table->indexes[i].oid == oid)
			return &table->indexes[i];
	}
	return NULL;
}

/*
 * The NO of one leaf of a bulk, as one that stands alone.  If its column denies it
 * now, it is as good as the column's stamp; without a stamp, the index will
 * have to be asked.
 */
static RfSkip
one_of_bulk(const RfBulk *bulk, const RfIndex *index, int number, int bit,
			bool denied)
{
	const RfLeaf *leaf = &index->leaves[number * FILTER_DIGESTS + bit];
	RfSkip		skip;

	memset(&skip, 0, sizeof(skip));
	skip.table = bulk->table;
	skip.leaf = leaf->leaf;
	skip.index = leaf->index;
	skip.probe = bulk->probe;
	if (denied &&
		index->groups->groups[number].view.columns[bit].index == leaf->index)
		skip.stamp = index->groups->groups[number].view.columns[bit].stamp;
	return skip;
}

/*
 * Do the NOs of a bulk to the set hold for leaves of one group?  Columns that are
 * certain to be true now need no further look; except in recovery, where a
 * digest's NO does not do, and under SERIALIZABLE.
 */
static bool
recheck_group(const RfBulk *bulk, RfIndex *index, int number,
			  const RfKeySet *set, RfRecheck *recheck)
{
	uint64		left = bulk->leaves[number];
	uint64		denied = 0;

	if (!recheck->in_recovery && index->groups != NULL)
	{
		denied = rf_ask_group(index, number, set, recheck->clock);
		if (recheck->serializable == NULL)
			left &= ~(denied & index->groups->groups[number].certain);
	}
	for (; left != 0; left &= left - 1)
	{
		int			bit = pg_rightmost_one_pos64(left);
		RfSkip		skip = one_of_bulk(bulk, index, number, bit,
									   denied >> bit & 1);

		CHECK_FOR_INTERRUPTS();
		if (!rf_recheck_skip(&skip, recheck))
			return false;
	}
	return true;
}

/*
 * Do the NOs of a bulk still hold?  Not if what it speaks of is not known any
 * more, as after an attached partition.
 */
bool
rf_recheck_bulk(const RfBulk *bulk, RfRecheck *recheck)
{
	RfTable    *table = rf_known_table(bulk->table);
	RfIndex    *index;
	RfKeySet  **set = &recheck->sets[bulk->probe];

	if (table == NULL || table->serial != bulk->serial)
		return false;
	index = find_index(table, bulk->index);
	if (index == NULL)
		elog(ERROR, "an index of table %u is gone from its entry", bulk->table);
	if (*set == NULL)
		*set = rf_keyset_deserialize(recheck->flat[bulk->probe]);
	for (int i = 0; i < bulk->nwords; i++)
	{
		if (bulk->leaves[i] != 0 &&
			!recheck_group(bulk, index, i, *set, recheck))
			return false;
	}
	return true;
}
