/*-------------------------------------------------------------------------
 *
 * members.c
 *	  Taking members out of a partitioned table's live_parts while the planner goes
 *	  over them.
 *
 * What is expected of core: expand_partitioned_rtentry() reads live_parts anew at
 * each step, or holds a pointer to the set and copes with members that vanish.
 * So the set must stay where it is: it is never left empty, since the member the
 * loop has reached stays in it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "core/core.h"
#include "optimizer/paths.h"

/*
 * Takes members out of a parent's live_parts.  The first member, which the
 * loop has reached, stays; if it is among the members, its RelOptInfo
 * first_rel is made dummy.  False, and nothing is taken out, if the set is not
 * as expected.
 */
bool
rf_core_drop_members(RelOptInfo *parent, RelOptInfo *first_rel, int first,
					 const Bitmapset *members)
{
	Bitmapset  *others = bms_del_member(bms_copy(members), first);
	Bitmapset  *before PG_USED_FOR_ASSERTS_ONLY = parent->live_parts;

	if (RF_CORE_DOUBTS(RF_CORE_MEMBERS) ||
		!bms_is_member(first, parent->live_parts) ||
		!bms_is_subset(members, parent->live_parts))
		return false;
	if (bms_is_member(first, members))
		mark_dummy_rel(first_rel);
	parent->live_parts = bms_del_members(parent->live_parts, others);
	Assert(parent->live_parts == before);
	bms_free(others);
	return true;
}

/*
 * Removes the members with these bits from the nth word of a set.  A set that
 * may have become empty must go through rf_core_trim() before core sees it.
 */
void
rf_core_clear_bits(Bitmapset *set, int n, uint64 bits)
{
	Assert(n >= 0 && n < set->nwords);
	set->words[n] &= ~bits;
}

/*
 * The nth 64 members of a set, as bits.  Only if a word has 64 bits.
 */
uint64
rf_core_bits(const Bitmapset *set, int n)
{
	Assert(n >= 0 && n < set->nwords);
	return set->words[n];
}

/*
 * How many words of RF_CORE_WORD members a set has; 0 where words have another
 * number of bits.
 */
int
rf_core_count_words(const Bitmapset *set)
{
	return set == NULL || BITS_PER_BITMAPWORD != RF_CORE_WORD ||
		RF_CORE_DOUBTS(RF_CORE_WORDS) ? 0 : set->nwords;
}

/*
 * The set in the form that core expects: NULL if it is empty, and without
 * words of 0 at its end.
 */
Bitmapset *
rf_core_trim(Bitmapset *set)
{
	while (set != NULL && set->words[set->nwords - 1] == 0)
	{
		if (--set->nwords == 0)
			set = NULL;
	}
	return set;
}
