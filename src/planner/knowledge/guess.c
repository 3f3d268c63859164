/*-------------------------------------------------------------------------
 *
 * guess.c
 *	  Asking the copy of an index this backend has kept.
 *
 * What the planner finds out is a guess that the guard checks when the plan
 * is executed.  So it may as well be found out from copies of the summaries
 * (rfcopy.c), without locking and opening a thousand indexes.  Each copy
 * remembers when it was last found to be true: if no transaction has ended
 * since then, the guard need not look either.  Where a copy does not say NO,
 * the index itself is asked.
 *
 * The room for copies is bounded.  When it is full, those of the table that
 * has not been asked for the longest time go.  Within a table the first ones
 * stay: queries ask all partitions in turn, and dropping the eldest would
 * always drop those asked next.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "planner/planning/planning.h"

/* Few copies are larger than this. */
#define ENOUGH	1024

int			rf_cache_size = 8192;

/* One planning makes digests of about so many keys, some 0.2 ms. */
#define DIGEST_KEYS_AT_ONCE	40000

/* Of how many the planning under way may still make some. */
static int64 digest_keys_left = 0;

/* Bytes in use for copies. */
static Size copies_used = 0;

/* Plannings so far. */
static uint64 plannings = 0;

/*
 * Starts the planning of a query.  May it ask copies?  Not where this backend
 * has put keys into deltas since the last time: the copies lack them, and every
 * guess that fails costs another planning.
 */
bool
rf_begin_guessing(void)
{
	static uint64 keys_seen = 0;
	bool		unchanged = keys_seen == rf_keys_written;

	plannings++;
	digest_keys_left = DIGEST_KEYS_AT_ONCE;
	keys_seen = rf_keys_written;
	return unchanged && !rf_suppress_guesses;
}

/*
 * Where the copy of a leaf's index is to be kept, and how large it may be.
 */
void
rf_copy_slot(RfTable *table, RfLeaf *leaf, RfCopySlot *slot)
{
	slot->copy = &leaf->copy;
	slot->digest = &leaf->digest;
	slot->context = table->context;
	slot->used = &copies_used;
	slot->limit = (Size) rf_cache_size * 1024;
	slot->ungrouped = &rf_roll_changes;
	slot->kept = false;
}

/*
 * The index of a leaf has been asked, and a copy of it kept or not.  read_slot is
 * what rf_read_slot() said before.
 */
void
rf_copy_kept(RfTable *table, RfLeaf *leaf, RfCopySlot *slot,
			 uint64 read_slot)
{
	if (slot->kept)
	{
		rf_leaf_is_true(leaf, &rf_planning->started, read_slot);
		table->has_copies = true;
	}
	else
		rf_copy_forget(slot);
}

/*
 * Throws a leaf's copy away.
 */
void
rf_forget_copy(RfTable *table, RfLeaf *leaf)
{
	RfCopySlot	slot;

	rf_copy_slot(table, leaf, &slot);
	rf_copy_forget(&slot);
}

/*
 * The planning under way asks copies of a table's indexes.
 */
void
rf_table_asked(RfTable *table)
{
	table->last_asked = plannings;
}

/*
 * Does the copy of a leaf's index deny that there is a key of the condition's
 * set?  Sets the stamp of what was copied, and sees to it that the plan's clock says when
 * it was true.
 */
bool
rf_guess(RfTable *table, RfLeaf *leaf, const RfCond *cond, bool in_recovery,
		 RfStamp *stamp)
{
	rf_table_asked(table);
	if (!rf_leaf_is_known(leaf) || !rf_planning->guess ||
		leaf->slot != rf_read_slot(leaf->index))
		return false;
	if (!in_recovery && (rf_group_denies(cond, leaf) ||
						 rf_digest_denies(&leaf->digest, cond->set)))
		*stamp = leaf->digest.stamp;
	else if (leaf->copy == NULL ||
			 rf_copy_probe(leaf->copy, cond->set, in_recovery, stamp) != RF_NO)
		return false;
	rf_clock_merge(&rf_planning->clock, &leaf->clock);
	return true;
}

/*
 * Should a digest be made now of what a leaf's copy is asked about?
 */
bool
rf_digest_is_due(const RfLeaf *leaf)
{
	uint64		keys;

	if (digest_keys_left <= 0 || leaf->copy == NULL ||
		leaf->digest.filter.bits != NULL || leaf->digest.grouped_at != 0 ||
		leaf->slot != rf_read_slot(leaf->index))
		return false;
	keys = rf_copy_wants_digest(leaf->copy);
	digest_keys_left -= keys;
	return keys > 0;
}

/*
 * Throws away all copies of a table's indexes.
 */
void
rf_forget_copies(RfTable *table)
{
	for (int i = 0; i < table->nindexes; i++)
	{
		RfIndex    *index = &table->indexes[i];

		for (int j = 0; index->mapped && j < index->nleaves; j++)
			rf_forget_copy(table, &index->leaves[j]);
		rf_forget_groups(index, &copies_used);
	}
	table->has_copies = false;
}

/*
 * Throws copies of other tables away until there is room for one more.
 */
void
rf_make_room(const RfTable *table)
{
	RfTable    *victim;

	while (copies_used + ENOUGH > (Size) rf_cache_size * 1024 &&
		   (victim = rf_least_asked_table(table)) != NULL)
		rf_forget_copies(victim);
}

/*
 * Is the stamp of a NO still that of the leaf's index?  False also where that
 * cannot be told without a look at the index.  Snapshot and invalidation messages
 * are those of after the NO; src/README.md has the argument.
 */
bool
rf_guess_is_true(RfLeaf *leaf, const RfSkip *skip)
{
	return rf_leaf_is_known(leaf) && leaf->slot != 0 &&
		leaf->slot == rf_read_slot(leaf->index) &&
		leaf->digest.stamp.identity == skip->stamp.identity &&
		leaf->digest.stamp.changes == skip->stamp.changes &&
		rf_leaf_is_located(leaf);
}

/*
 * A guard has compared a NO's stamp with that of the leaf's index, and it was
 * the same or another.  clock and read_slot were read before that.
 */
void
rf_guess_checked(RfTable *table, RfLeaf *leaf, const RfSkip *skip,
				 const RfClock *clock, uint64 read_slot, bool same)
{
	if (!rf_leaf_is_known(leaf))
		return;
	if (same && leaf->digest.stamp.identity == skip->stamp.identity &&
		leaf->digest.stamp.changes == skip->stamp.changes)
	{
		rf_leaf_is_true(leaf, clock, read_slot);
	}
	else
		rf_forget_copy(table, leaf);
}
