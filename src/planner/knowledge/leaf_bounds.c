/*-------------------------------------------------------------------------
 *
 * leaf_bounds.c
 *	  The least and the greatest key of a table's partitions, side by side.
 *
 * Where each partition has a range of keys of its own, nearly all partitions are denied by
 * the bounds of their keys.  To ask a cached metapage for these means to wait for memory,
 * for each partition.  So the bounds of 64 leaves are kept in two arrays, as numbers.
 *
 * They are read together with the metapage, whether that can be cached or not, and have its
 * validity.  They are used only while they are certain, so their NO is what the
 * index would say.  There are bounds where there may be matrices, whose place they share.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "planner/knowledge/knowledge.h"
#include "port/pg_bitutils.h"
#include "rangefilter/page/shared.h"
#include "rangefilter/probe/probe.h"

/*
 * The bounds among which a leaf has its own, or NULL.  *place is its place there.
 */
static RfLeafBounds *
bounds_of(const RfIndex *index, const RfLeaf *leaf, int *place)
{
	int			position = leaf - index->leaves;

	*place = position % FILTER_DIGESTS;
	if (index->matrices == NULL || position / FILTER_DIGESTS >= index->matrices->n)
		return NULL;
	return &rf_matrix_at(index, position / FILTER_DIGESTS)->bounds;
}

/*
 * Return true if a leaf's bounds can be kept.
 */
bool
rf_wants_bounds(const RfIndex *index, const RfLeaf *leaf)
{
	int			place;

	return bounds_of(index, leaf, &place) != NULL;
}

/*
 * Forgets the bounds of a leaf.
 */
void
rf_forget_bounds(RfIndex *index, const RfLeaf *leaf)
{
	int			place;
	RfLeafBounds *bounds = bounds_of(index, leaf, &place);

	if (bounds == NULL)
		return;
	bounds->known &= ~(UINT64CONST(1) << place);
	bounds->checked_at = 0;
}

/*
 * Keeps the bounds of a leaf, if there are any, as they were found together with the metapage.
 * validity is what rf_leaf_validity() returned before the index was locked.
 */
void
rf_keep_bounds(RfIndex *index, RfLeaf *leaf, const RfKeyBounds *found, uint64 validity)
{
	int			place;
	RfLeafBounds *bounds = bounds_of(index, leaf, &place);

	if (bounds == NULL || (found->min == 0 && found->max == PG_UINT64_MAX))
		return;
	bounds->min[place] = found->min;
	bounds->max[place] = found->max;
	bounds->known |= UINT64CONST(1) << place;
	bounds->checked_at = 0;
	leaf->validity = validity;
}

/*
 * Tells that a leaf's validity may have changed.
 */
void
rf_bounds_checked(RfIndex *index, const RfLeaf *leaf)
{
	int			place;
	RfLeafBounds *bounds = bounds_of(index, leaf, &place);

	if (bounds != NULL)
		bounds->checked_at = 0;
}

/*
 * Return true if what is known of a leaf is certain: its validity is the present one, and its
 * file the located one.  now is the clock; invalidations were absorbed since it was read.
 */
static bool
is_certain(RfLeaf *leaf, uint64 moves, RfClock now)
{
	return leaf->validity != 0 &&
		(moves == 0 ? leaf->validity >= now :
		 leaf->validity == rf_leaf_validity(leaf, now)) &&
		rf_leaf_is_located(leaf);
}

/*
 * Finds out which bounds are certain.  Does nothing if nothing has changed since the last
 * time, as find_current() in digest_matrix.c, which tells why that is enough.
 */
static void
find_certain(RfIndex *index, int number, RfClock now)
{
	RfLeafBounds *bounds = &rf_matrix_at(index, number)->bounds;
	uint64		moves = rf_read_moves();
	uint64		checked_at = moves != 0 ? moves : now;

	if (bounds->checked_at == checked_at && bounds->changes == rf_changes())
		return;
	bounds->checked_at = checked_at;
	bounds->changes = rf_changes();
	bounds->certain = 0;
	bounds->low = PG_UINT64_MAX;
	bounds->high = 0;
	for (uint64 left = bounds->known; left != 0; left &= left - 1)
	{
		int			i = pg_rightmost_one_pos64(left);

		if (!is_certain(rf_leaf_at(index, number * FILTER_DIGESTS + i), moves, now))
			continue;
		bounds->certain |= UINT64CONST(1) << i;
		bounds->low = Min(bounds->low, bounds->min[i]);
		bounds->high = Max(bounds->high, bounds->max[i]);
	}
}

/*
 * The ends of ranges as numbers.
 */
static inline uint64
low_end(const RfKeySet *set, const RfRange *range)
{
	return range->lo_inf ? 0 : rf_bound_number(set->kind, &range->lo);
}

static inline uint64
high_end(const RfKeySet *set, const RfRange *range)
{
	return range->hi_inf ? PG_UINT64_MAX : rf_bound_number(set->kind, &range->hi);
}

/*
 * Return true if a range of the set, which are in order, may have a key from min to max.
 */
static bool
overlaps(const RfKeySet *set, uint64 min, uint64 max)
{
	int			first = 0;
	int			end = set->nranges;

	/* The first range that does not end below min. */
	while (first < end)
	{
		int			middle = first + (end - first) / 2;

		if (high_end(set, &set->ranges[middle]) < min)
			first = middle + 1;
		else
			end = middle;
	}
	return first < set->nranges && low_end(set, &set->ranges[first]) <= max;
}

/*
 * The leaves, of those with this matrix, whose indexes have no key of the set, by their bounds.
 * All of these denials are true now.  now is the clock, 0 in recovery; invalidations were
 * absorbed since it was read.
 */
uint64
rf_ask_bounds(RfIndex *index, int number, const RfKeySet *set, RfClock now)
{
	RfLeafBounds *bounds = &rf_matrix_at(index, number)->bounds;
	uint64		low = low_end(set, &set->ranges[0]);
	uint64		high = high_end(set, &set->ranges[set->nranges - 1]);
	uint64		maybe = 0;

	if (now == 0 || bounds->known == 0)
		return 0;
	find_certain(index, number, now);
	if (high < bounds->low || low > bounds->high)
		return bounds->certain;
	for (int i = 0; i < FILTER_DIGESTS; i++)
		maybe |= (uint64) (bounds->min[i] <= high && bounds->max[i] >= low) << i;
	if (set->nranges == 1)
		return bounds->certain & ~maybe;
	for (uint64 left = maybe & bounds->certain; left != 0; left &= left - 1)
	{
		int			i = pg_rightmost_one_pos64(left);

		if (!overlaps(set, bounds->min[i], bounds->max[i]))
			maybe &= ~(UINT64CONST(1) << i);
	}
	return bounds->certain & ~maybe;
}
