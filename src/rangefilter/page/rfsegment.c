/*-------------------------------------------------------------------------
 *
 * rfsegment.c
 *	  Asking one segment: its exact bounds, then its filter.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/rowkey.h"
#include "port/pg_bswap.h"
#include "rangefilter/page/page.h"

/*
 * Compares a bound of a query with a segment's min or max.  A stored bound
 * that was cut compares as equal to every key that it is a prefix of.
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
 * Return true if the range is outside what the segment holds, by its exact bounds.
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

/* A range as filters over bytes take it. */
typedef struct RfByteRange
{
	FilterByteRange bytes;
	uint64		lo;				/* big-endian, where keys are numbers */
	uint64		hi;
	uint64		hashes[RF_MAX_COLUMNS];
} RfByteRange;

/*
 * Return true if the segment's filter is one over bytes.
 */
static bool
rf_filters_bytes(const RfSegment *segment)
{
	return segment->kind != FILTER_KIND_SNARF && segment->kind != FILTER_KIND_EXACT;
}

/*
 * Turns a range into the bytes the filter was built from.
 */
static const FilterByteRange *
rf_byte_range(const RfCodec *codec, const RfRange *range, RfByteRange *room)
{
	FilterByteRange *bytes = &room->bytes;

	bytes->lo_unbounded = range->lo_inf;
	bytes->hi_unbounded = range->hi_inf;
	bytes->hi_exclusive = range->hi_excl;
	bytes->hashes = room->hashes;
	bytes->nhashes = rf_range_hashes(codec, range, room->hashes);
	if (codec->kind == RF_KEY_U64)
	{
		room->lo = pg_hton64(range->lo.num);
		room->hi = pg_hton64(range->hi.num);
		bytes->lo.data = (const uint8 *) &room->lo;
		bytes->hi.data = (const uint8 *) &room->hi;
		bytes->lo.len = bytes->hi.len = sizeof(uint64);
	}
	else
	{
		bytes->lo.data = range->lo.data;
		bytes->lo.len = range->lo_inf ? 0 : range->lo.len;
		bytes->hi.data = range->hi.data;
		bytes->hi.len = range->hi_inf ? 0 : range->hi.len;
	}
	return bytes;
}

/*
 * Asks a segment's filter whether it holds a key of one range.
 */
static RfAnswer
rf_query_filter(const RfSegment *segment, const RfCodec *codec,
				const RfRange *range, FilterReader *reader)
{
	FilterAnswer answer;
	RfByteRange room;

	if (rf_filters_bytes(segment))
		answer = filter_query_bytes(rf_segment_root(segment),
									segment->root_len, reader,
									rf_byte_range(codec, range, &room));
	else
		answer = filter_query_u64(segment->kind, rf_segment_root(segment),
								  segment->root_len, reader,
								  range->lo_inf ? 0 : range->lo.num,
								  range->hi_inf ? PG_UINT64_MAX : range->hi.num);
	return answer == FILTER_NO ? RF_NO :
		answer == FILTER_YES ? RF_YES : RF_UNKNOWN;
}

/*
 * Returns whether a segment may hold a key (not NULL) of the set.  The caller holds a lock on the
 * metapage; run pages are locked and released one at a time.
 */
RfAnswer
rf_segment_probe(RfFile *file, const RfMetaData *meta,
				 const RfSegment *segment, const RfKeySet *set)
{
	RfRunReader reader;
	RfAnswer	answer = RF_NO;

	if (segment->nkeys == 0)
		return RF_NO;
	rf_run_reader_begin(&reader, file, meta, segment);
	for (int i = 0; i < set->nranges && answer == RF_NO; i++)
	{
		if (!rf_outside_bounds(segment, set->kind, &set->ranges[i]))
			answer = rf_query_filter(segment, file->codec, &set->ranges[i],
									 &reader.reader);
	}
	rf_run_reader_end(&reader);
	return answer;
}

/*
 * The same as rf_segment_probe() for one key.
 */
RfAnswer
rf_segment_probe_key(RfFile *file, const RfMetaData *meta,
					 const RfSegment *segment, RfKeyKind kind,
					 const RfKey *key)
{
	RfRange		range = {.lo = *key,.hi = *key};
	RfKeySet	set = {.kind = kind,.nranges = 1,.ranges = &range};

	return rf_segment_probe(file, meta, segment, &set);
}

/*
 * Return true if the range holds all of the segment's keys, by its exact bounds.
 */
static bool
rf_holds_bounds(const RfSegment *segment, RfKeyKind kind,
				const RfRange *range)
{
	RfKey		min = rf_segment_min(segment);
	RfKey		max = rf_segment_max(segment);
	int			c;

	if (!range->lo_inf && rf_key_compare(kind, &range->lo, &min) > 0)
		return false;
	if (range->hi_inf)
		return true;
	c = rf_compare_bound(kind, &range->hi, &max,
						 segment->flags & RF_SEGMENT_MAX_CUT);
	return c > 0 || (c == 0 && !range->hi_excl &&
					 !(segment->flags & RF_SEGMENT_MAX_CUT));
}

/*
 * The ranks of the segment's keys, which have this codec, that may be in a range, where the answer is
 * RF_YES; the run is the one the reader reads.
 */
RfAnswer
rf_range_ranks(const RfSegment *segment, const RfCodec *codec,
			   const RfRange *range, FilterReader *reader,
			   FilterRanks *ranks)
{
	RfByteRange room;
	RfAnswer	answer;
	bool		known;

	if (rf_outside_bounds(segment, codec->kind, range))
		return RF_NO;
	ranks->first = 0;
	ranks->end = PG_UINT64_MAX;
	if (rf_holds_bounds(segment, codec->kind, range))
		return RF_YES;
	answer = rf_query_filter(segment, codec, range, reader);
	if (answer != RF_YES)
		return answer;
	if (rf_filters_bytes(segment))
		known = filter_ranks_bytes(rf_segment_root(segment),
								   segment->root_len, reader,
								   rf_byte_range(codec, range, &room), ranks);
	else
		known = filter_ranks_u64(segment->kind, rf_segment_root(segment),
								 segment->root_len, reader,
								 range->lo_inf ? 0 : range->lo.num,
								 range->hi_inf ? PG_UINT64_MAX : range->hi.num,
								 ranks);
	return known ? RF_YES : RF_UNKNOWN;
}

/*
 * Adds to *count how many keys of a range a segment holds.  False where its
 * pages are damaged.
 */
static bool
rf_count_range(const RfSegment *segment, const RfCodec *codec,
			   const RfRange *range, FilterReader *reader, uint64 *count)
{
	RfByteRange room;
	uint64		n = 0;
	bool		known = false;

	if (rf_outside_bounds(segment, codec->kind, range))
		return true;
	if (rf_holds_bounds(segment, codec->kind, range))
	{
		n = segment->nkeys;
		known = true;
	}
	else if (rf_filters_bytes(segment))
		known = filter_count_bytes(rf_segment_root(segment),
								   segment->root_len, reader,
								   rf_byte_range(codec, range, &room), &n);
	else
		known = filter_count_u64(segment->kind, rf_segment_root(segment),
								 segment->root_len, reader,
								 range->lo_inf ? 0 : range->lo.num,
								 range->hi_inf ? PG_UINT64_MAX : range->hi.num,
								 &n);
	*count += Min(n, segment->nkeys);
	return known;
}

/*
 * Adds to *count about how many distinct keys of the set the segment holds.
 * Locks as rf_segment_probe(); false as above.
 */
bool
rf_segment_count(Relation index, const RfMetaData *meta,
				 const RfSegment *segment, const RfKeySet *set, uint64 *count)
{
	RfRunReader reader;
	bool		known = true;

	if (segment->nkeys == 0)
		return true;
	rf_run_reader_begin(&reader, rf_file(index), meta, segment);
	for (int i = 0; i < set->nranges && known; i++)
		known = rf_count_range(segment, rf_index_codec(index), &set->ranges[i],
							   &reader.reader, count);
	rf_run_reader_end(&reader);
	return known;
}
