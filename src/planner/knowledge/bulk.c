/*-------------------------------------------------------------------------
 *
 * bulk.c
 *	  Denying the partitions of a group all at once, and checking it so.
 *
 * Groups (groups.c) tell by a look at one word which of 64 leaves' digests deny a
 * key.  To go by that, a copy of each leaf must be one to guess by, and a guard
 * must know that each is still true.  The roll of an index lists leaves for which
 * that is known as long as three numbers stay what they are: those that count
 * changes of this session's copies, the stamps that moved in any index (rf_read_moves), and
 * invalidations.  Then planning and guard handle words instead of leaves.
 *
 * Whatever is not on the roll is asked as leaf.c and guess.c do it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "partitioning/partdesc.h"
#include "planner/planning/planning.h"
#include "port/pg_bitutils.h"

/* See planner.h. */
uint64		rf_roll_changes = 1;

/*
 * Is what the roll says of its leaves still so?
 */
static bool
roll_is_current(const RfRoll *roll)
{
	return roll->changes == rf_roll_changes &&
		roll->moves == rf_read_moves() &&
		roll->located_at == rf_changes();
}

/*
 * May a leaf be on the roll, so far as its own copy is concerned?
 */
static bool
is_eligible(RfLeaf *leaf)
{
	return leaf->digest.grouped_at != 0 &&
		leaf->slot == rf_read_slot(leaf->index) && rf_leaf_is_located(leaf);
}

/*
 * Was the second clock read later?
 */
static bool
is_later(const RfClock *a, const RfClock *b)
{
	return b->completions != a->completions ? b->completions > a->completions :
		b->own > a->own;
}

/*
 * Gives leaves of the roll the clock that was kept for all of them.  Where copies
 * were made since, these are of a later time: that the clock's time
 * is said of them makes them no newer than they are.
 */
static void
hand_out_clock(RfIndex *index, const RfRoll *roll)
{
	for (int i = 0; i < index->nleaves; i++)
	{
		RfLeaf	   *leaf = &index->leaves[i];

		if (leaf->on_roll && is_later(&leaf->clock, &roll->clock))
			leaf->clock = roll->clock;
		leaf->on_roll = false;
	}
}

/*
 * Makes the roll of an index that has groups: of leaves that were found true last,
 * at the same time.
 */
static void
call_roll(RfIndex *index)
{
	RfRoll	   *roll = &index->groups->roll;
	bool	   *eligible = palloc(index->nleaves * sizeof(bool) + 1);

	hand_out_clock(index, roll);

	/* Before what they count is looked at. */
	roll->changes = rf_roll_changes;
	roll->moves = rf_read_moves();
	roll->located_at = rf_changes();
	roll->clock.completions = roll->clock.own = 0;
	for (int i = 0; i < index->nleaves; i++)
	{
		RfLeaf	   *leaf = &index->leaves[i];

		eligible[i] = is_eligible(leaf);
		if (eligible[i] && is_later(&roll->clock, &leaf->clock))
			roll->clock = leaf->clock;
	}
	memset(roll->leaves, 0, index->groups->n * sizeof(uint64));
	for (int i = 0; i < index->nleaves; i++)
	{
		RfLeaf	   *leaf = &index->leaves[i];

		if (eligible[i] && leaf->clock.completions == roll->clock.completions &&
			leaf->clock.own == roll->clock.own)
		{
			leaf->on_roll = true;
			roll->leaves[i / FILTER_DIGESTS] |=
				UINT64CONST(1) << i % FILTER_DIGESTS;
		}
	}
	pfree(eligible);
}

/*
 * Are the table's partitions, by number, the leaves of the index?
 */
static bool
has_same_order(const RfIndex *index, PartitionDesc partdesc)
{
	return partdesc->nparts == index->nleaves &&
		memcmp(partdesc->oids, index->groups->roll.oids,
			   index->nleaves * sizeof(Oid)) == 0;
}

/*
 * Counts a question and a NO for each leaf of a group whose bit is set.  Counters
 * are kept in bit planes: a leaf's number has a bit in each.  Those that run over
 * go to the leaves.
 */
static void
tally(RfLeaf *leaves, RfTally *counts, uint64 bits)
{
	for (int i = 0; bits != 0 && i < RF_TALLY_PLANES; i++)
	{
		uint64		carry = counts->planes[i] & bits;

		counts->planes[i] ^= bits;
		bits = carry;
	}
	for (; bits != 0; bits &= bits - 1)
	{
		RfLeaf	   *leaf = &leaves[pg_rightmost_one_pos64(bits)];

		leaf->probes += 1 << RF_TALLY_PLANES;
		leaf->skips += 1 << RF_TALLY_PLANES;
	}
}

/*
 * Moves what was counted for groups to their leaves.
 */
void
rf_roll_counts(RfIndex *index)
{
	RfGroups   *groups = index->groups;

	for (int i = 0; groups != NULL && i < groups->n * RF_TALLY_PLANES; i++)
	{
		int			group = i / RF_TALLY_PLANES;
		int			plane = i % RF_TALLY_PLANES;
		uint64	   *bits = &groups->roll.tallies[group].planes[plane];

		for (; *bits != 0; *bits &= *bits - 1)
		{
			RfLeaf	   *leaf = &index->leaves[group * FILTER_DIGESTS +
											  pg_rightmost_one_pos64(*bits)];

			leaf->probes += 1 << plane;
			leaf->skips += 1 << plane;
		}
	}
}

/*
 * What is known of a leaf's index was found true after the clock, and the counter
 * read_slot, had been read.  A leaf of a group that is not on the roll may now get
 * onto it.
 */
void
rf_leaf_is_true(RfLeaf *leaf, const RfClock *clock, uint64 read_slot)
{
	if (!leaf->on_roll && leaf->digest.grouped_at != 0 &&
		(leaf->slot != read_slot || is_later(&leaf->clock, clock)))
		rf_roll_changes++;
	leaf->clock = *clock;
	leaf->slot = read_slot;
}

/*
 * Adds to what a pass relies on: the leaves of one index that denied a set of keys.
 */
static RfBulk *
add_bulk(RfSkips *skips, Oid table, const RfTable *entry, const RfCond *cond)
{
	int			n = cond->index->groups->n;
	RfBulk	   *bulk = MemoryContextAllocZero(skips->context, RF_BULK_SIZE(n));

	bulk->table = table;
	bulk->index = cond->index->oid;
	bulk->serial = entry->serial;
	bulk->probe = cond->probe;
	bulk->nwords = n;
	skips->bulks = lappend(skips->bulks, bulk);
	return bulk;
}

/*
 * rf_deny_in_bulk() by one index.
 */
static void
deny_by_index(RfTable *table, const RfPass *pass, const RfCond *cond,
			  Bitmapset *rest)
{
	RfRoll	   *roll = &cond->index->groups->roll;
	RfBulk	   *bulk = NULL;

	/* What a digest said that is another one now does not count. */
	if (cond->denied_at != rf_digests_grouped ||
		!has_same_order(cond->index, pass->partdesc))
		return;
	if (!roll_is_current(roll))
		call_roll(cond->index);
	for (int i = 0; i < cond->index->groups->n && i < rest->nwords; i++)
	{
		uint64		denied = rest->words[i] & cond->denied[i] &
		roll->leaves[i];

		if (denied == 0)
			continue;
		if (bulk == NULL)
			bulk = add_bulk(pass->skips, table->relid, table, cond);
		bulk->leaves[i] = denied;
		rest->words[i] &= ~denied;
		tally(&cond->index->leaves[i * FILTER_DIGESTS], &roll->tallies[i],
			  denied);
	}
	if (bulk == NULL)
		return;
	rf_table_asked(table);
	rf_clock_merge(&rf_planning->clock, &roll->clock);
}

/*
 * Takes leaves that groups deny out of rest, and returns it; what that rests on is
 * added to the pass's skips.  rf_ask_groups() has just been called.
 */
Bitmapset *
rf_deny_in_bulk(RfTable *table, const RfPass *pass, const RfCond *cond,
				Bitmapset *rest)
{
	ListCell   *cell;

	/* Sets of leaves are sets of partitions, word by word. */
	if (BITS_PER_BITMAPWORD != FILTER_DIGESTS || rest == NULL)
		return rest;
	if (cond->kind == RF_COND_AND)
	{
		foreach(cell, cond->args)
			rest = rf_deny_in_bulk(table, pass, lfirst(cell), rest);
	}
	else if (cond->kind == RF_COND_PROBE && cond->denied != NULL)
		deny_by_index(table, pass, cond, rest);

	/* Core wants the last word to have members. */
	while (rest != NULL && rest->words[rest->nwords - 1] == 0)
	{
		if (--rest->nwords == 0)
			rest = NULL;
	}
	return rest;
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
 * Asks groups once more about the leaves of a bulk.  Takes those out of left of
 * which it is certain that their indexes have no key of the set, and leaves in
 * denied those whose copies say so.
 */
static void
ask_again(const RfBulk *bulk, RfTable *table, RfIndex *index, RfKeySet *set,
		  const RfRecheck *recheck, uint64 *denied, uint64 *left)
{
	RfCond		cond = {.kind = RF_COND_PROBE,.index = index,.set = set};
	RfRoll	   *roll;
	bool		certain;

	/*
	 * In recovery a digest's NO does not do, so nothing of what the groups
	 * say is of use.
	 */
	if (recheck->in_recovery)
		return;
	rf_ask_groups(table, &cond, &recheck->clock);
	if (cond.denied == NULL || index->groups->n != bulk->nwords)
		return;
	memcpy(denied, cond.denied, bulk->nwords * sizeof(uint64));
	if (recheck->serializable != NULL)
		return;
	roll = &index->groups->roll;
	if (!roll_is_current(roll))
		call_roll(index);
	certain = roll->moves != 0;
	for (int i = 0; certain && i < bulk->nwords; i++)
		left[i] &= ~(denied[i] & roll->leaves[i]);
	if (certain)
		roll->clock = recheck->clock;
}

/*
 * The NO of one leaf of a bulk, as one that stands alone.  Without a stamp, the
 * index will have to be asked.
 */
static RfSkip
one_of_bulk(const RfBulk *bulk, const RfLeaf *leaf, bool denied)
{
	RfSkip		skip;

	memset(&skip, 0, sizeof(skip));
	skip.table = bulk->table;
	skip.leaf = leaf->leaf;
	skip.index = leaf->index;
	skip.probe = bulk->probe;
	if (denied && leaf->digest.grouped_at != 0)
		skip.stamp = leaf->digest.stamp;
	return skip;
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
	uint64	   *left = palloc(bulk->nwords * sizeof(uint64));
	uint64	   *denied = palloc0(bulk->nwords * sizeof(uint64));
	bool		one_by_one = false;
	RfKeySet  **set = &recheck->sets[bulk->probe];

	if (table == NULL || table->serial != bulk->serial)
		return false;
	index = find_index(table, bulk->index);
	if (index == NULL)
		elog(ERROR, "an index of table %u is gone from its entry", bulk->table);
	if (*set == NULL)
		*set = rf_keyset_deserialize(recheck->flat[bulk->probe]);
	memcpy(left, bulk->leaves, bulk->nwords * sizeof(uint64));
	ask_again(bulk, table, index, *set, recheck, denied, left);
	for (int i = 0; i < bulk->nwords; i++)
	{
		for (; left[i] != 0; left[i] &= left[i] - 1)
		{
			int			bit = pg_rightmost_one_pos64(left[i]);
			RfLeaf	   *leaf = &index->leaves[i * FILTER_DIGESTS + bit];
			RfSkip		skip = one_of_bulk(bulk, leaf, denied[i] >> bit & 1);

			CHECK_FOR_INTERRUPTS();
			if (!rf_recheck_skip(&skip, recheck))
				return false;
			one_by_one = true;
		}
	}

	/* They have a later time now than the roll. */
	rf_roll_changes += one_by_one;
	return true;
}
