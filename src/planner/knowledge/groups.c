/*-------------------------------------------------------------------------
 *
 * groups.c
 *	  Digests of a table's partitions, side by side.
 *
 * Who asks a thousand digests waits a thousand times for memory.  Where the
 * partitions' keys span about the same numbers, and are about as many, their
 * digests can have the same intervals.  Then 64 of them lie side by side, a word
 * for each interval, and a look at one word asks them all.  Partitions that do
 * not fit keep digests of their own.
 *
 * A partition's place in a group is that among its index's leaves.  What is in
 * a column counts only as long as the leaf says so (RfDigest.grouped_at), and
 * only for answers that were read after it was put there.
 *
 * Groups are shared by all sessions where there is memory for that
 * (rangefilter/probe/rfdigests.c); what others have put into them is adopted, if it
 * is of what this session would ask.  Else a session has groups of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "planner/planning/planning.h"
#include "utils/inval.h"

/* A group with fewer leaves would waste memory. */
#define FEWEST_LEAVES	(FILTER_DIGESTS / 2)

/* One of so many leaves may have keys far off. */
#define OUTLIERS		16

/*
 * Groups have up to so many times the intervals of a digest of its own, if those of
 * the index then take no more than half of the room.
 */
#define FINER_OWN		2
#define FINER_SHARED	4

/* More intervals no digest has. */
#define MOST_INTERVALS	(1 << 20)

/* See planner.h.  Not 0, which in RfDigest.grouped_at means never. */
uint64		rf_digests_grouped = 1;

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
 * that is not possible.  room is that for all groups of the index, and finer
 * how many times the intervals of a digest of its own there may be.
 */
static void
choose_frame(FilterDigest *frame, const RfIndex *index, int number, Size room,
			 int finer)
{
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
	for (; finer > 1; finer /= 2)
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
 * Makes room for the roll of an index's leaves; there is none on it.
 */
static void
make_roll(RfRoll *roll, const RfIndex *index, int ngroups,
		  MemoryContext context)
{
	roll->oids = MemoryContextAlloc(context,
									(index->nleaves + 1) * sizeof(Oid));
	for (int i = 0; i < index->nleaves; i++)
		roll->oids[i] = index->leaves[i].leaf;
	roll->leaves = MemoryContextAllocZero(context,
										  (ngroups + 1) * sizeof(uint64));
	roll->tallies = MemoryContextAllocZero(context,
										   (ngroups + 1) * sizeof(RfTally));
}

/*
 * How many groups the leaves of an index make.
 */
static int
count_groups(const RfIndex *index)
{
	return (index->nleaves + FILTER_DIGESTS - FEWEST_LEAVES) / FILTER_DIGESTS;
}

/*
 * Makes room for the groups of an index, which are empty.
 */
static RfGroups *
make_groups(const RfIndex *index, MemoryContext context)
{
	int			n = count_groups(index);
	RfGroups   *groups = MemoryContextAllocZero(context,
												offsetof(RfGroups, groups) +
												(n + 1) * sizeof(RfGroup));

	groups->n = n;
	make_roll(&groups->roll, index, n, context);
	return groups;
}

/*
 * What a column of a shared group says becomes what this session knows of the
 * leaf's index, if it is so now; clock was read before.  Else the leaf is in no
 * group.
 */
static void
adopt_column(RfTable *table, RfLeaf *leaf, const RfColumn *column,
			 const RfClock *clock)
{
	if (column->index != leaf->index || column->slot == 0 ||
		column->slot != rf_read_slot(leaf->index) ||
		!rf_leaf_is_located(leaf) ||
		!RF_SAME_RELFILE(column->locator, leaf->locator))
	{
		if (leaf->digest.grouped_at != 0)
			rf_roll_changes++;
		leaf->digest.grouped_at = 0;
		return;
	}
	if (leaf->digest.stamp.identity != column->stamp.identity ||
		leaf->digest.stamp.changes != column->stamp.changes)
		rf_forget_copy(table, leaf);
	else if (leaf->digest.grouped_at != 0 && leaf->slot == column->slot)
		return;					/* it is adopted */
	leaf->digest.stamp = column->stamp;
	leaf->digest.grouped_at = ++rf_digests_grouped;
	leaf->slot = column->slot;
	leaf->clock = *clock;
	rf_roll_changes++;
	table->has_copies = true;
}

/*
 * Looks at a shared group and adopts what is in it.  clock was read before.
 */
static void
adopt_group(RfTable *table, RfIndex *index, int number, const RfClock *clock)
{
	RfColumn	columns[FILTER_DIGESTS];
	RfDigestView *view = &index->groups->groups[number].view;

	/*
	 * Nobody locks the indexes.  One that is about to go has been declared
	 * not valid before anybody's rows pass it by: who reads this after the
	 * clock knows, or these rows' transaction ends later.
	 */
	AcceptInvalidationMessages();
	if (!rf_digests_view(index->oid, number, view, columns))
		memset(columns, 0, sizeof(columns));
	for (int i = 0; i < count_leaves(index, number); i++)
		adopt_column(table, &index->leaves[number * FILTER_DIGESTS + i],
					 &columns[i], clock);
}

/*
 * Has others' digests of an index's leaves adopted, if there are any.  Only once:
 * later it is rf_digest_place() that finds them.
 */
static void
look_for_groups(RfTable *table, RfIndex *index, const RfClock *clock)
{
	RfColumn	columns[FILTER_DIGESTS];
	RfDigestView view;
	bool		found = false;

	if (index->looked || rf_cache_size == 0 || rf_digests_room() == 0)
		return;
	if (!index->mapped)
		rf_map_leaves(table, index);
	for (int i = 0; !found && i < count_groups(index); i++)
		found = rf_digests_view(index->oid, i, &view, columns);
	index->looked = true;
	if (!found)
		return;
	index->groups = make_groups(index, table->context);
	for (int i = 0; i < index->groups->n; i++)
		adopt_group(table, index, i, clock);
}

/*
 * Is a shared group's frame one for what its leaves were once?  It is if the leaf
 * does not fit, and most others are not in the group.
 */
static bool
is_outdated(const RfIndex *index, int number, const RfLeaf *leaf)
{
	const RfDigestView *view = &index->groups->groups[number].view;
	int			n = count_leaves(index, number);
	int			grouped = 0;
	RfSpan		span;

	if (leaf->copy == NULL || !rf_copy_span(leaf->copy, &span) ||
		rf_span_fits(&span, &view->frame))
		return false;
	for (int i = 0; i < n; i++)
		grouped += index->leaves[number * FILTER_DIGESTS + i].digest.grouped_at != 0;
	return grouped < n / 4;
}

/*
 * rf_digest_place() in a shared group.
 */
static void
place_shared(RfTable *table, RfIndex *index, RfLeaf *leaf, int number,
			 RfDigestPlace *place)
{
	RfGroup    *group = &index->groups->groups[number];
	FilterDigest frame;

	if (group->view.group == NULL || !rf_digests_unchanged(&group->view))
		adopt_group(table, index, number, &rf_planning->started);
	if (group->view.group == NULL || is_outdated(index, number, leaf))
	{
		choose_frame(&frame, index, number, rf_digests_room(), FINER_SHARED);
		if (frame.nbits == 0)
			return;
		rf_digests_make(index->oid, number, &frame, &group->view);
		adopt_group(table, index, number, &rf_planning->started);
	}
	if (group->view.group == NULL)
		return;
	place->view = &group->view;
	place->frame = &group->view.frame;
	place->what.index = leaf->index;
	place->what.locator = leaf->locator;
	place->what.slot = leaf->slot;
	place->what.stamp = leaf->digest.stamp;
}

/*
 * rf_digest_place() in a group of the session's own.
 */
static void
place_own(RfIndex *index, int number, RfCopySlot *slot, RfDigestPlace *place)
{
	RfGroup    *group = &index->groups->groups[number];
	Size		size;

	if (!group->framed)
		choose_frame(&group->frame, index, number, slot->limit, FINER_OWN);
	group->framed = true;
	if (group->frame.nbits == 0)
		return;
	size = group->frame.nbits * sizeof(uint64);
	if (group->rows == NULL && !rf_copies_full(*slot->used + size, slot->limit))
	{
		group->rows = MemoryContextAllocExtended(slot->context, size,
												 MCXT_ALLOC_HUGE |
												 MCXT_ALLOC_ZERO);
		*slot->used += size;
	}
	place->rows = group->rows;
	place->frame = &group->frame;
}

/*
 * Where a digest of a leaf's index, one that can be made, is to be put; slot is that
 * of its copy.  Neither rows nor view: it has no place in a group.  Somebody else
 * may have made it: then the leaf is in its group afterwards.
 */
void
rf_digest_place(RfTable *table, RfIndex *index, RfLeaf *leaf, RfCopySlot *slot,
				RfDigestPlace *place)
{
	int			position = leaf - index->leaves;
	int			number = position / FILTER_DIGESTS;

	memset(place, 0, sizeof(*place));
	if (index->groups == NULL)
		index->groups = make_groups(index, slot->context);
	if (number >= index->groups->n)
		return;
	if (rf_digests_room() > 0 && index->groups->groups[number].rows == NULL)
		place_shared(table, index, leaf, number, place);

	/* A group is the one or the other: it is asked in one place. */
	if (index->groups->groups[number].view.group == NULL)
		place_own(index, number, slot, place);
	place->column = position % FILTER_DIGESTS;
	place->now = ++rf_digests_grouped;
}

/*
 * Throws the groups of an index away, after its leaves' copies.
 */
void
rf_forget_groups(RfIndex *index, Size *used)
{
	RfGroups   *groups = index->groups;

	index->looked = false;
	if (groups == NULL)
		return;
	rf_roll_counts(index);
	for (int i = 0; i < groups->n; i++)
	{
		if (groups->groups[i].rows != NULL)
		{
			*used -= groups->groups[i].frame.nbits * sizeof(uint64);
			pfree(groups->groups[i].rows);
		}
	}
	pfree(groups->roll.oids);
	pfree(groups->roll.leaves);
	pfree(groups->roll.tallies);
	pfree(groups);
	index->groups = NULL;
}

/*
 * Which leaves of a group certainly have no key of the set, if they are in it.
 */
static uint64
ask_rows(const FilterDigest *frame, const uint64 *rows, const RfKeySet *set)
{
	uint64		maybe = 0;

	for (int i = 0; i < set->nranges && maybe != PG_UINT64_MAX; i++)
		maybe |= filter_digests_ask(frame, rows, set->ranges[i].lo.num,
									set->ranges[i].hi.num);
	return ~maybe;
}

/*
 * The same of a shared group, which is adopted anew if it has changed.  None,
 * if it changes meanwhile.
 */
static uint64
ask_shared(RfTable *table, RfIndex *index, int number, const RfKeySet *set,
		   const RfClock *clock)
{
	const RfDigestView *view = &index->groups->groups[number].view;
	uint64		denied;

	if (!rf_digests_unchanged(view))
		adopt_group(table, index, number, clock);
	if (view->group == NULL)
		return 0;
	denied = ask_rows(&view->frame, view->rows, set);
	rf_digests_used(view);
	return rf_digests_unchanged(view) ? denied : 0;
}

/*
 * rf_ask_groups() for one set.
 */
static void
ask_probe(RfTable *table, RfCond *cond, const RfClock *clock)
{
	const RfGroups *groups;

	if (cond->set->kind != RF_KEY_U64 || cond->set->nulls ||
		cond->set->nranges == 0)
		return;
	if (cond->index->groups == NULL)
		look_for_groups(table, cond->index, clock);
	groups = cond->index->groups;
	if (groups == NULL)
		return;
	cond->denied = palloc0((groups->n + 1) * sizeof(uint64));
	for (int i = 0; i < groups->n; i++)
	{
		const RfGroup *group = &groups->groups[i];

		Assert(group->view.group == NULL || group->rows == NULL);
		if (group->view.group != NULL)
			cond->denied[i] = ask_shared(table, cond->index, i, cond->set,
										 clock);
		else if (group->rows != NULL)
			cond->denied[i] = ask_rows(&group->frame, group->rows, cond->set);
	}

	/* Digests adopted above were so before they were asked. */
	cond->denied_at = rf_digests_grouped;
}

/*
 * Asks all groups about the sets of a condition, for rf_group_denies().  clock was
 * read before.
 */
void
rf_ask_groups(RfTable *table, RfCond *cond, const RfClock *clock)
{
	ListCell   *cell;

	foreach(cell, cond->args)
		rf_ask_groups(table, lfirst(cell), clock);
	if (cond->kind == RF_COND_PROBE)
		ask_probe(table, cond, clock);
}
