/*-------------------------------------------------------------------------
 *
 * guess.c
 *	  Asking the copy of an index this backend has kept.
 *
 * What the planner finds out is a guess that the guard checks when the plan
 * is executed.  So it may as well be found out from copies of the summaries
 * (rfcopy.c), without locking and opening a thousand indexes.  With each goes a
 * number as of which it was true: the index's change counter, or, where there are none,
 * the clock.  While that is the same the copy is true now, and the guard
 * need not look either.  Where a copy does not say NO, the index itself is asked.
 *
 * The room for copies is bounded.  When it is full, those of the table that
 * has not been asked for the longest time go.  Within a table the first ones
 * stay: queries ask all partitions in turn, and dropping the eldest would
 * always drop those asked next.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "planner/knowledge/knowledge.h"
#include "planner/knowledge/question.h"
#include "planner/planning/planning.h"
#include "rangefilter/page/page.h"
#include "rangefilter/page/shared.h"
#include "rangefilter/probe/probe.h"
#include "stats/session.h"
#include "utils/memutils.h"

/* Few copies are larger than this. */
#define ENOUGH	1024

/* One planning makes digests of about so many keys, some 0.2 ms. */
#define DIGEST_KEYS_AT_ONCE	40000

/* Of how many the planning under way may still make some. */
static int64 digest_keys_left = 0;

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

	digest_keys_left = DIGEST_KEYS_AT_ONCE;
	keys_seen = rf_keys_written;
	return unchanged && !rf_suppress_guesses;
}

/*
 * Where copies of a table's indexes are allocated, and what goes with them: apart from
 * what stays, to be given back when they go.
 */
MemoryContext
rf_copies_context(RfTable *table)
{
	if (table->copies == NULL)
		table->copies = AllocSetContextCreate(table->context,
											  "rangefilter copies",
											  ALLOCSET_SMALL_SIZES);
	return table->copies;
}

/*
 * Where the copy of a leaf's index is to be kept.
 */
void
rf_copy_slot(RfTable *table, RfLeaf *leaf, RfCopySlot *slot)
{
	slot->copy = &leaf->copy;
	slot->context = rf_copies_context(table);
}

/*
 * Throws a leaf's copy away.
 */
static void
forget_copy(RfTable *table, RfLeaf *leaf)
{
	RfCopySlot	slot;

	rf_copy_slot(table, leaf, &slot);
	rf_copy_forget(&slot);
}

/*
 * The number by which it will be known whether what is now read from a leaf's index
 * is still so: while this function returns the same, it is.  To be called
 * before that is read.  now is the clock.
 */
uint64
rf_leaf_number(const RfLeaf *leaf, RfClock now)
{
	uint64		slot = rf_read_slot(leaf->index);

	return slot != 0 ? slot : now;
}

/*
 * Does the copy of a leaf's index deny that there is a key of the condition's
 * set?  Sets the stamp of what was copied.  If it is not certain that the copy is true
 * now, the plan's clock says so, and a guard will look.
 */
bool
rf_guess(RfTable *table, RfLeaf *leaf, const RfCond *cond, bool in_recovery,
		 RfStamp *stamp)
{
	bool		same = leaf->true_at == rf_leaf_number(leaf, rf_planning->started);

	if (leaf->copy == NULL || !rf_planning->guess ||
		(!same && rf_read_moves() != 0) ||
		rf_copy_probe(leaf->copy, cond->set, in_recovery, stamp) != RF_NO)
		return false;

	/* Change counters do not tell of other files. */
	if (!same || (rf_read_moves() != 0 && !rf_leaf_is_located(leaf)))
		rf_planning->clock = 0;
	return true;
}

/*
 * Should a digest be made now of what a leaf's copy is asked about?
 */
bool
rf_digest_is_due(const RfIndex *index, const RfLeaf *leaf)
{
	uint64		keys;

	if (digest_keys_left <= 0 || leaf->copy == NULL ||
		(rf_read_moves() != 0 && leaf->true_at != rf_read_slot(leaf->index)) ||
		!rf_may_be_grouped(index, leaf))
		return false;
	keys = rf_copy_wants_digest(leaf->copy);
	digest_keys_left -= keys;
	return keys > 0;
}

/*
 * Throws away all copies of a table's indexes, and the digests that are the session's
 * own.
 */
void
rf_forget_copies(RfTable *table)
{
	for (int i = 0; i < table->nindexes; i++)
	{
		RfIndex    *index = &table->indexes[i];

		for (int j = 0; index->mapped && j < index->nleaves; j++)
			forget_copy(table, &index->leaves[j]);
		rf_forget_groups(index);
	}
	if (table->copies != NULL)
		MemoryContextDelete(table->copies);
	table->copies = NULL;
	table->has_copies = false;
}

/*
 * Throws copies of other tables away until there is room for one more.
 */
void
rf_make_room(const RfTable *table)
{
	RfTable    *victim;

	while (rf_cache_used + ENOUGH > rf_cache_limit() &&
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
	RfStamp		stamp;

	if (leaf->copy == NULL || leaf->true_at == 0 ||
		leaf->true_at != rf_read_slot(leaf->index))
		return false;
	stamp = rf_copy_stamp(leaf->copy);
	return rf_same_stamp(&stamp, &skip->stamp) && rf_leaf_is_located(leaf);
}

/*
 * A leaf's index has been looked at, and had this stamp; number is what
 * rf_leaf_number() said before.  What is known of the index is true as of then, or
 * is of the past.
 */
void
rf_leaf_checked(RfTable *table, RfIndex *index, RfLeaf *leaf,
				const RfStamp *stamp, uint64 number)
{
	if (leaf->copy != NULL)
	{
		RfStamp		copied = rf_copy_stamp(leaf->copy);

		if (rf_same_stamp(&copied, stamp))
			leaf->true_at = number;
		else
			forget_copy(table, leaf);
		table->has_copies = true;
	}
	rf_column_checked(index, leaf, stamp, number);
}
