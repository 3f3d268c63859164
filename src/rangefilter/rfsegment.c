/*-------------------------------------------------------------------------
 *
 * rfsegment.c
 *	  Asking one segment: its exact bounds, then its filter.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bswap.h"
#include "rangefilter/rangefilter.h"

/*
 * Compares a bound of a query with a segment's min or max.  A stored bound
 * that was cut compares as equal to everything it is a prefix of.
 */
static int
rf_compare_bound(RfKeyKind kind, const RfKey *key, const RfKey *bound,
				 bool cut)
{
	RfKey		head = *key;

	if (kind == RF_KEY_BYTES && cut)
		head.len = Min(head.len, bound->len);
	return rf_key_compare(kind, &head, bound);
}

/*
 * Is the range outside what the segment holds, by its exact bounds?
 *
 * A cut minimum is a lower bound as it is; a cut maximum stands for all its
 * extensions.
 */
static bool
rf_outside_bounds(const RfSegment *segment, RfKeyKind kind,
				  const RfRange *range)
{
	RfKey		min = rf_segment_min(segment);
	RfKey		max = rf_segment_max(segment);

	if (!range->lo_inf &&
		rf_compare_bound(kind, &range->lo, &max,
						 segment->flags & RF_SEGMENT_MAX_CUT) > 0)
		return true;
	if (!range->hi_inf)
	{
		int			c = rf_key_compare(kind, &range->hi, &min);

		return c < 0 || (c == 0 && range->hi_excl);
	}
	return false;
}

/*
 * Asks a SuRF, turning numbers into the bytes it was built from.
 */
static FilterAnswer
rf_query_surf(const RfSegment *segment, RfKeyKind kind, const RfRange *range,
			  FilterReader *reader)
{
	FilterByteRange bytes;
	uint64		lo = pg_hton64(range->lo.num);
	uint64		hi = pg_hton64(range->hi.num);

	bytes.lo_unbounded = range->lo_inf;
	bytes.hi_unbounded = range->hi_inf;
	bytes.hi_exclusive = range->hi_excl;
	if (kind == RF_KEY_U64)
	{
		bytes.lo.data = (const uint8 *) &lo;
		bytes.hi.data = (const uint8 *) &hi;
		bytes.lo.len = bytes.hi.len = sizeof(uint64);
	}
	else
	{
		bytes.lo.data = range->lo.data;
		bytes.lo.len = range->lo_inf ? 0 : range->lo.len;
		bytes.hi.data = range->hi.data;
		bytes.hi.len = range->hi_inf ? 0 : range->hi.len;
	}
	return filter_query_bytes(rf_segment_root(segment), segment->root_len,
							  reader, &bytes);
}

/*
 * Asks a segment's filter whether it holds a key of one range.
 */
static RfAnswer
rf_query_filter(const RfSegment *segment, RfKeyKind kind,
				const RfRange *range, FilterReader *reader)
{
	FilterAnswer answer;

	if (segment->kind == FILTER_KIND_SURF)
		answer = rf_query_surf(segment, kind, range, reader);
	else if (kind == RF_KEY_U64)
		answer = filter_query_u64(segment->kind, rf_segment_root(segment),
								  segment->root_len, reader,
								  range->lo_inf ? 0 : range->lo.num,
								  range->hi_inf ? PG_UINT64_MAX : range->hi.num);
	else
		answer = FILTER_UNKNOWN;
	return answer == FILTER_NO ? RF_NO :
		answer == FILTER_YES ? RF_YES : RF_UNKNOWN;
}

/*
 * May the segment hold a key (not NULL) of the set?  The caller holds a lock
 * on the metapage; run pages are locked and released one at a time.
 */
RfAnswer
rf_segment_probe(Relation index, const RfMetaData *meta,
				 const RfSegment *segment, RfKeyKind kind,
				 const RfKeySet *set)
{
	RfRunReader reader;
	RfAnswer	answer = RF_NO;

	if (segment->nkeys == 0)
		return RF_NO;
	rf_run_reader_begin(&reader, index, meta, segment);
	for (int i = 0; i < set->nranges && answer == RF_NO; i++)
	{
		if (!rf_outside_bounds(segment, kind, &set->ranges[i]))
			answer = rf_query_filter(segment, kind, &set->ranges[i],
									 &reader.reader);
	}
	rf_run_reader_end(&reader);
	return answer;
}

/*
 * May the segment hold this one key?  As rf_segment_probe().
 */
RfAnswer
rf_segment_probe_key(Relation index, const RfMetaData *meta,
					 const RfSegment *segment, RfKeyKind kind,
					 const RfKey *key)
{
	RfRange		range = {.lo = *key,.hi = *key};
	RfKeySet	set = {.kind = kind,.nranges = 1,.ranges = &range};

	return rf_segment_probe(index, meta, segment, kind, &set);
}
