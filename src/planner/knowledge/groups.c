/*-------------------------------------------------------------------------
 *
 * groups.c
 *	  Digests of a table's partitions, side by side.
 *
 * Who asks a thousand copies waits a thousand times for memory.  Where the
 * partitions' keys span about the same numbers, and are about as many, digests of
 * their filters can have the same intervals.  Then 64 of them lie side by side, a word
 * for each interval, and a look at one word asks them all.
 *
 * A partition's place in a group is that among its index's leaves.  Groups are shared by
 * all sessions where there is memory for that, else a session has its own
 * (rangefilter/probe/rfdigests.c).  What a column says of itself is compared with
 * what this session knows of the leaf: a column of the same index and file is as
 * good as a copy.  Which are is remembered for the whole group while nothing changes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "planner/knowledge/knowledge.h"
#include "port/pg_bitutils.h"
#include "rangefilter/page/shared.h"
#include "rangefilter/probe/probe.h"
#include "stats/session.h"
#include "utils/memutils.h"

/* A group with fewer leaves would waste memory. */
#define FEWEST_LEAVES	(FILTER_DIGESTS / 2)

/* One of so many leaves may have keys far off. */
#define OUTLIERS		16

/*
 * Groups have up to so many times the intervals that would do, if those of the index then
 * take no more than half of the room.
 */
#define FINER			4

/* More intervals no digest has. */
#define MOST_INTERVALS	(1 << 20)

static int
compare_numbers(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return (x > y) - (x < y);
}

/*
 * How many leaves are in a group.
 */
static int
count_leaves(const RfIndex *index, int number)
{
	return Min(FILTER_DIGESTS, index->nleaves - number * FILTER_DIGESTS);
}

/*
 * Spans of a group's leaves that digests can be made of.  Returns how many.
 */
static int
read_spans(const RfIndex *index, int number, RfSpan *spans)
{
	const RfLeaf *leaves = &index->leaves[number * FILTER_DIGESTS];
	int			n = 0;

	for (int i = 0; i < count_leaves(index, number); i++)
	{
		if (leaves[i].copy != NULL && rf_copy_span(leaves[i].copy, &spans[n]))
			n++;
	}
	return n;
}

/*
 * Sets the frame's span to that of all, except that it goes beyond what most have
 * by an eighth at most.
 */
static void
choose_span(FilterDigest *frame, const RfSpan *spans, int n)
{
	uint64		mins[FILTER_DIGESTS];
	uint64		maxs[FILTER_DIGESTS];
	uint64		low;
	uint64		high;
	uint64		margin;

	for (int i = 0; i < n; i++)
	{
		mins[i] = spans[i].min;
		maxs[i] = spans[i].max;
	}
	qsort(mins, n, sizeof(uint64), compare_numbers);
	qsort(maxs, n, sizeof(uint64), compare_numbers);
	low = mins[n / OUTLIERS];
	high = Max(low, maxs[n - 1 - n / OUTLIERS]);
	margin = (high - low) / 8;
	filter_digest_frame(frame, low - Min(margin, low - mins[0]),
						high + Min(margin, Max(high, maxs[n - 1]) - high));
}

/*
 * Chooses intervals that suit most leaves of a group; none (nbits = 0) where
 * that is not possible.
 */
static void
choose_frame(FilterDigest *frame, const RfIndex *index, int number)
{
	Size		room = rf_digests_room();
	RfSpan		spans[FILTER_DIGESTS];
	int			n = read_spans(index, number, spans);
	uint64		nkeys = 0;
	int			fit = 0;

	memset(frame, 0, sizeof(*frame));
	for (int i = 0; i < n; i++)
		nkeys += spans[i].nkeys;
	if (n < count_leaves(index, number) / 2 || nkeys < n)
		return;
	frame->nbits = rf_digest_bits(nkeys / n);
	for (int finer = FINER; finer > 1; finer /= 2)
	{
		if (2 * filter_digest_size(frame->nbits) * index->nleaves <= room / 2 &&
			2 * frame->nbits <= MOST_INTERVALS)
			frame->nbits *= 2;
	}
	choose_span(frame, spans, n);
	for (int i = 0; i < n; i++)
		fit += rf_span_fits(&spans[i], frame);
	if (fit < n - n / 4)
		frame->nbits = 0;
}

/*
 * Has the groups of an index, which are empty, or those that others have made.
 */
void
rf_need_groups(RfTable *table, RfIndex *index)
{
	int			n;

	if (index->groups != NULL)
		return;
	if (!index->mapped)
		rf_map_leaves(table, index);
	n = (index->nleaves + FILTER_DIGESTS - FEWEST_LEAVES) / FILTER_DIGESTS;
	index->groups = MemoryContextAlloc(rf_copies_context(table),
									   offsetof(RfGroups, groups) +
									   (n + 1) * sizeof(RfGroup) +
									   (index->nleaves + 1) * sizeof(Oid));
	rf_cache_used += GetMemoryChunkSpace(index->groups);
	index->groups->n = n;
	index->groups->oids = (Oid *) &index->groups->groups[n + 1];
	for (int i = 0; i < index->nleaves; i++)
		index->groups->oids[i] = index->leaves[i].leaf;
	for (int i = 0; i < n; i++)
	{
		RfGroup    *group = &index->groups->groups[i];

		memset(group, 0, offsetof(RfGroup, view));
		(void) rf_digests_view(index->oid, i, &group->view);
	}
	table->has_copies = true;
}

/*
 * Throws away what is known of groups of an index, and groups of the session's own.
 */
void
rf_forget_groups(RfIndex *index)
{
	if (index->groups == NULL)
		return;
	rf_collect_denials(index);
	for (int i = 0; i < index->groups->n; i++)
		rf_digests_forget(index->oid, i);
	rf_cache_used -= GetMemoryChunkSpace(index->groups);
	pfree(index->groups);
	index->groups = NULL;
}

/*
 * Finds out which columns of a group are of the leaves' indexes, in the files where
 * these are, and which of them are true now; unless nothing has changed since this was
 * found out the last time.  now is the clock; invalidations were absorbed since.
 */
static void
find_current(RfIndex *index, int number, RfClock now)
{
	RfGroup    *group = &index->groups->groups[number];
	uint64		moves = rf_read_moves();
	uint64		as_of = moves != 0 ? moves : now;

	if (group->as_of == as_of && group->changes == rf_changes())
		return;

	/* Before what they count is looked at. */
	group->as_of = as_of;
	group->changes = rf_changes();
	group->current = group->certain = 0;
	for (int i = 0; i < count_leaves(index, number); i++)
	{
		RfLeaf	   *leaf = &index->leaves[number * FILTER_DIGESTS + i];
		const RfColumn *column = &group->view.columns[i];
		uint64		bit = UINT64CONST(1) << i;

		if (column->index != leaf->index || !rf_leaf_is_located(leaf) ||
			!RF_SAME_RELFILE(column->locator, leaf->locator))
			continue;
		if (column->slot == rf_leaf_number(leaf, now))
			group->certain |= bit;

		/* Without change counters only a look at the index tells. */
		if (moves == 0 || (group->certain & bit) != 0)
			group->current |= bit;
	}
}

/*
 * Has a view of a group that is of now, and which of its columns are current.  False
 * where there is no group.
 */
static bool
look_at_group(RfIndex *index, int number, RfClock now)
{
	RfGroup    *group = &index->groups->groups[number];

	if (group->view.group == NULL || !rf_digests_unchanged(&group->view))
	{
		group->as_of = 0;
		if (!rf_digests_view(index->oid, number, &group->view))
		{
			group->current = group->certain = 0;
			return false;
		}
	}
	find_current(index, number, now);
	return true;
}

/*
 * Which columns of a group deny that there is a key of the set?  What each is of
 * says the group's view, which of them count its current and certain.  None, if
 * the group changes meanwhile.
 */
uint64
rf_ask_group(RfIndex *index, int number, const RfKeySet *set, RfClock now)
{
	const RfGroup *group = &index->groups->groups[number];
	uint64		maybe = 0;

	if (group->view.group == NULL || !look_at_group(index, number, now))
		return 0;
	for (int i = 0; i < set->nranges && maybe != PG_UINT64_MAX; i++)
		maybe |= filter_digests_ask(&group->view.frame, group->view.rows,
									set->ranges[i].lo.num,
									set->ranges[i].hi.num);
	rf_digests_used(&group->view);
	return rf_digests_unchanged(&group->view) ? ~maybe : 0;
}

/*
 * The group a leaf has a column in, or NULL; *column is its number.
 */
static RfGroup *
group_of(const RfIndex *index, const RfLeaf *leaf, int *column)
{
	int			position = leaf - index->leaves;

	*column = position % FILTER_DIGESTS;
	if (index->groups == NULL ||
		position / FILTER_DIGESTS >= index->groups->n)
		return NULL;
	return &index->groups->groups[position / FILTER_DIGESTS];
}

/*
 * May a digest of a leaf's index be put into its group, where there is none that
 * is current?
 */
bool
rf_may_be_grouped(const RfIndex *index, const RfLeaf *leaf)
{
	int			column;
	const RfGroup *group = group_of(index, leaf, &column);

	return group != NULL && (group->current >> column & 1) == 0;
}

/*
 * Is a group's frame one for what its leaves were once?  It is if the leaf
 * does not fit, and most others are not in the group.
 */
static bool
is_outdated(const RfIndex *index, int number, const RfLeaf *leaf)
{
	const RfGroup *group = &index->groups->groups[number];
	RfSpan		span;

	return rf_copy_span(leaf->copy, &span) &&
		!rf_span_fits(&span, &group->view.frame) &&
		pg_popcount64(group->current) < count_leaves(index, number) / 4;
}

/*
 * Sees to it that there is a group for a digest of a leaf's index.  False if
 * there can be none.
 */
static bool
need_group(RfIndex *index, int number, const RfLeaf *leaf, RfClock now)
{
	RfGroup    *group = &index->groups->groups[number];
	FilterDigest frame;

	if (rf_digests_room() == 0)
		return false;
	if (look_at_group(index, number, now) && !is_outdated(index, number, leaf))
		return true;
	choose_frame(&frame, index, number);
	if (frame.nbits == 0)
		return false;
	rf_digests_make(index->oid, number, &frame, &group->view);
	return look_at_group(index, number, now);
}

/*
 * Puts a digest of a leaf's copy into the group, if there is a group and the digest
 * fits, and if nobody else has done so.  The index is locked, and located.
 */
void
rf_put_digest(RfIndex *index, RfLeaf *leaf, RfClock now)
{
	int			column;
	RfGroup    *group = group_of(index, leaf, &column);
	FilterDigest digest;
	RfColumn	what;

	if (!need_group(index, group - index->groups->groups, leaf, now))
	{
		(void) rf_copy_digest(leaf->copy, &leaf->locator, NULL, NULL);
		return;
	}
	if ((group->current >> column & 1) != 0 ||
		!rf_copy_digest(leaf->copy, &leaf->locator, &group->view.frame,
						&digest))
		return;
	memset(&what, 0, sizeof(what));
	what.index = leaf->index;
	what.locator = leaf->locator;
	what.slot = leaf->true_at;
	what.stamp = rf_copy_stamp(leaf->copy);
	rf_digests_put(&group->view, &digest, column, &what);
	group->as_of = 0;
	pfree(digest.bits);
}

/*
 * A leaf's index has been looked at, at its locator, if it has one: see
 * rf_leaf_checked().  What is found out is known to this session alone.
 */
void
rf_column_checked(RfIndex *index, const RfLeaf *leaf, const RfStamp *stamp,
				  uint64 number)
{
	int			i;
	RfGroup    *group = group_of(index, leaf, &i);
	RfColumn   *column;

	if (group == NULL || group->view.group == NULL)
		return;
	column = &group->view.columns[i];
	if (column->index != leaf->index)
		return;
	if (!rf_same_stamp(&column->stamp, stamp))
		column->index = InvalidOid;
	else if (column->slot != number ||
			 !RF_SAME_RELFILE(column->locator, leaf->locator))
	{
		column->slot = number;
		column->locator = leaf->locator;
	}
	else
		return;
	group->as_of = 0;
}

/*
 * Counts a question and a NO for each leaf of a group whose bit is set.  If that
 * are most, it is counted for all, and taken back from the others.
 */
void
rf_count_denials(RfIndex *index, int number, uint64 denied)
{
	RfLeaf	   *leaves = &index->leaves[number * FILTER_DIGESTS];
	uint64		others = ~denied &
	(PG_UINT64_MAX >> (FILTER_DIGESTS - count_leaves(index, number)));
	bool		most = pg_popcount64(others) < pg_popcount64(denied);
	uint32		one = most ? -1 : 1;

	if (most)
		index->groups->groups[number].denials++;
	for (uint64 bits = most ? others : denied; bits != 0; bits &= bits - 1)
	{
		RfLeaf	   *leaf = &leaves[pg_rightmost_one_pos64(bits)];

		leaf->probes += one;
		leaf->skips += one;
	}
}

/*
 * Moves what was counted for groups to their leaves.
 */
void
rf_collect_denials(RfIndex *index)
{
	for (int i = 0; index->groups != NULL && i < index->groups->n; i++)
	{
		RfGroup    *group = &index->groups->groups[i];

		for (int j = 0; j < count_leaves(index, i); j++)
		{
			index->leaves[i * FILTER_DIGESTS + j].probes += group->denials;
			index->leaves[i * FILTER_DIGESTS + j].skips += group->denials;
		}
		group->denials = 0;
	}
}
