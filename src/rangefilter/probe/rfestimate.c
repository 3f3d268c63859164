/*-------------------------------------------------------------------------
 *
 * rfestimate.c
 *	  Estimates what share of a table's rows has keys of a set, for the
 *	  planner.
 *
 * Filters count distinct keys by rank, reading the pages of a range's two
 * ends.  A segment has its numbers of rows and keys.  A share of its keys is
 * taken for the same share of its rows.  A level is taken to have a row for
 * each key.  Keys in pages of the delta are left out: they are few.  Blocks
 * that no segment covers are taken to be like the others, as long as they are
 * few.
 *
 * Of a long list a sample is counted: keys at equal distances in the list.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "rangefilter/page/page.h"
#include "rangefilter/probe/internal.h"

/*
 * The most ranges that are counted, over all segments and levels, and the fewest keys of a
 * sample.
 */
#define RF_MAX_COUNTED 200
#define RF_MIN_SAMPLE 20

/* The share of heap blocks that segments must cover. */
#define RF_MIN_COVERED 0.9

/*
 * How many rows does a segment, or a level, have?
 */
static double
rf_rows_of(const RfSegment *segment)
{
	return segment->kind == FILTER_KIND_SORTED ? segment->nkeys : segment->nrows;
}

/*
 * Sums up segments and levels.  False where they have no keys, the delta has
 * overflowed, or they cover too little of a table of heap_blocks blocks.
 */
static bool
rf_sum_segments(const RfMetaData *meta, BlockNumber heap_blocks,
				RfShares *shares)
{
	const RfSegment *segment = rf_first_segment(meta);
	double		weight = 0;

	memset(shares, 0, sizeof(RfShares));
	if ((meta->flags & (RF_DELTA_OVERFLOW | RF_DELTA_OVERFLOW_RETIRED)) ||
		(meta->summarized < RF_MIN_COVERED * heap_blocks &&
		 ((meta->flags & (RF_TAIL_OPEN | RF_TAIL_OPEN_RETIRED)) ||
		  meta->nlevels == 0)))
		return false;
	for (int i = 0; i < meta->nsegments + meta->nlevels; i++)
	{
		shares->rows += rf_rows_of(segment);
		shares->keys += segment->nkeys;
		if (i < meta->nsegments && segment->nkeys > 0)
			weight += (double) segment->nrows / segment->nkeys;
		segment = rf_next_segment(segment);
	}
	if (shares->keys == 0 || shares->rows == 0)
		return false;
	shares->key_share = weight / shares->rows;
	return true;
}

/*
 * Are all ranges of a set single keys?
 */
static bool
rf_only_points(const RfKeySet *set)
{
	for (int i = 0; i < set->nranges; i++)
	{
		const RfRange *range = &set->ranges[i];

		if (range->lo_inf || range->hi_inf ||
			rf_key_compare(set->kind, &range->lo, &range->hi) != 0)
			return false;
	}
	return true;
}

/*
 * Takes a sample of n of a set's keys, which are more.  The ranges are put where "ranges"
 * points to.
 */
static void
rf_take_sample(const RfKeySet *set, int n, RfKeySet *sample, RfRange *ranges)
{
	*sample = *set;
	sample->nranges = n;
	sample->ranges = ranges;
	for (int i = 0; i < n; i++)
		ranges[i] = set->ranges[(int64) i * set->nranges / n];
}

/*
 * Computes the share of the rows that has keys of the set.  Counts at most so many ranges in
 * each segment.  False where there are more and they are no single keys, or pages are damaged.
 * The metapage is locked.
 */
static bool
rf_share_of_set(Relation index, const RfMetaData *meta, const RfKeySet *set,
				int most, double rows, double *share)
{
	const RfSegment *segment = rf_first_segment(meta);
	bool		points = rf_only_points(set);
	double		step = 1;
	RfKeySet	sample;
	RfRange		ranges[RF_MAX_COUNTED];

	*share = 0;
	if (set->nranges > most)
	{
		if (!points || most < RF_MIN_SAMPLE)
			return false;
		step = (double) set->nranges / most;
		rf_take_sample(set, most, &sample, ranges);
		set = &sample;
	}
	for (int i = 0; i < meta->nsegments + meta->nlevels; i++)
	{
		uint64		count = 0;

		if (!rf_segment_count(index, meta, segment, set, &count))
			return false;
		if (points)
			count = Min(count, set->nranges);
		if (segment->nkeys > 0)
			*share += Min(count * step / segment->nkeys, 1) *
				rf_rows_of(segment) / rows;
		segment = rf_next_segment(segment);
	}

	/* That none of a sample is there does not mean that no key is. */
	if (*share == 0 && set == &sample)
		*share = step / 2 / rows;
	return true;
}

/*
 * Estimates what share of the rows that are not NULL has keys of each of the sets.  NULLs in a set
 * do not count.  False where the summary does not cover enough of the table, or counting would
 * take long. heap_blocks is the length of the table.  The caller holds a lock on the index.  Takes
 * and releases a share lock on the metapage.
 */
bool
rf_estimate_shares(Relation index, BlockNumber heap_blocks,
				   RfKeySet **sets, int nsets, RfShares *shares,
				   double *share)
{
	Buffer		buffer = rf_try_read_meta(index);
	const RfMetaData *meta;
	int64		nranges = 0;
	int			different = 0;
	bool		known;
	int			most;

	if (!BufferIsValid(buffer))
		return false;
	meta = rf_page_meta(BufferGetPage(buffer));
	known = rf_sum_segments(meta, heap_blocks, shares);
	for (int i = 0; i < nsets; i++)
	{
		if (i > 0 && sets[i] == sets[i - 1])
			continue;
		nranges += sets[i]->nranges;
		different++;
	}
	most = RF_MAX_COUNTED / Max(meta->nsegments + meta->nlevels, 1);
	if (nranges > most)
		most /= different;
	for (int i = 0; i < nsets && known; i++)
	{
		if (i > 0 && sets[i] == sets[i - 1])
			share[i] = share[i - 1];
		else
			known = sets[i]->kind == rf_index_codec(index)->kind &&
				rf_share_of_set(index, meta, sets[i], most, shares->rows, &share[i]);
	}
	UnlockReleaseBuffer(buffer);
	return known;
}
