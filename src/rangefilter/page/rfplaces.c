/*-------------------------------------------------------------------------
 *
 * rfplaces.c
 *	  Where in the heap the keys of a segment are.
 *
 * A segment may have places (filter/places/places.h) beside its filter: for
 * each key the ranges of heap blocks that hold it, all ranges being of the
 * same number of blocks.  They are either in the segment's directory entry,
 * in what room there is on the metapage, or on the last pages of its run.
 *
 * If places cannot tell where a key is, all ranges may have it.
 *
 * A key may be inserted that the filter has, but in other ranges.  Then the
 * range of the insert's heap block becomes *imprecise*: from now on any of the segment's
 * keys may be in it.  That happens once for a range, so rows that are updated again and
 * again cost nothing.  The next summarize makes new places.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "filter/base/bits.h"
#include "filter/places/places.h"
#include "optimizer/plancat.h"
#include "rangefilter/page/options.h"
#include "rangefilter/page/page.h"

/* Without pages_per_range, heaps of fewer blocks have no places, ... */
#define RF_MIN_PLACED_BLOCKS 16

/* ... a range has at least this many blocks, ... */
#define RF_MIN_RANGE_BLOCKS 4

/* ... and a key takes this many bits. */
#define RF_MIN_PLACE_BITS 2
#define RF_MAX_PLACE_BITS 8

/* What a run's root may take on the metapage beside places. */
#define RF_ROOT_RESERVE 160

/*
 * Returns for how many bytes of places there is room on a metapage that has one
 * segment, whose run is elsewhere.
 */
static uint32
rf_places_room(void)
{
	return RF_DIRECTORY_SIZE - MAXALIGN(sizeof(RfSegment)) - RF_ROOT_RESERVE -
		RF_LEVELS_RESERVE;
}

/*
 * The most rows whose places fit on the metapage.
 */
uint64
rf_most_placed_rows(void)
{
	return rf_places_room() * BITS_PER_BYTE / RF_MIN_PLACE_BITS;
}

/*
 * Returns how many bytes the run of a segment with nrows rows may take in its entry, beside its
 * places.  0: it shall be in blocks of its own.  In larger heaps there are
 * several segments, which do not leave room for it.
 */
uint32
rf_entry_run_room(const RfPlacing *placing, uint64 nrows)
{
	uint32		nranges = placing->nranges;
	uint64		places = 0;

	if (nrows == 0 || nrows > RF_DIRECTORY_SIZE * BITS_PER_BYTE ||
		placing->end > RF_SINGLE_SEGMENT_BLOCKS)
		return 0;
	if (placing->automatic)
		nranges = Min(nranges, (1 << RF_MAX_PLACE_BITS) - 1);
	if (placing->range_blocks > 0)
		places = (places_bits(nranges, nrows) + nrows * RF_ENTRY_BITS_PER_ROW) / BITS_PER_BYTE + 1;
	if (places >= rf_places_room())
		return 0;
	return TYPEALIGN_DOWN(MAXIMUM_ALIGNOF, Min(RF_ENTRY_RUN, rf_places_room() - places));
}

/*
 * Sets the size of ranges, and their number.  One range alone would be of no use.
 */
static void
rf_set_ranges(RfPlacing *placing, uint32 range_blocks)
{
	BlockNumber nblocks = placing->end - placing->start;

	while (nblocks / range_blocks >= RF_MAX_RANGES)
		range_blocks *= 2;
	placing->nranges = nblocks / range_blocks + (nblocks % range_blocks != 0);
	placing->range_blocks = placing->nranges > 1 ? range_blocks : 0;
}

/*
 * Decides whether a segment of heap blocks [start, end) has places: by the index's
 * option, or automatically, if there seem to be few enough rows.
 */
void
rf_plan_places(Relation heap, Relation index, BlockNumber start,
			   BlockNumber end, RfPlacing *placing)
{
	int			option = rf_index_options(index)->pages_per_range;
	BlockNumber pages;
	double		tuples;
	double		visible;

	memset(placing, 0, sizeof(RfPlacing));
	placing->start = start;
	placing->end = end;
	placing->room = rf_places_room();
	if (option > 0 && end > start)
		rf_set_ranges(placing, option);
	if (option != RF_RANGES_AUTO || start > 0 || end < RF_MIN_PLACED_BLOCKS ||
		end > RF_SINGLE_SEGMENT_BLOCKS)
		return;
	estimate_rel_size(heap, NULL, &pages, &tuples, &visible);
	placing->automatic = tuples <= rf_most_placed_rows();
	if (placing->automatic)
		rf_set_ranges(placing, RF_MIN_RANGE_BLOCKS);
}

/*
 * Chooses the ranges of a segment with nrows rows, if the option did not: as many as the
 * room on the metapage allows.
 */
void
rf_choose_ranges(RfPlacing *placing, uint64 nrows)
{
	uint64		bits;
	uint32		most;

	if (!placing->automatic || nrows == 0)
		return;
	placing->range_blocks = 0;
	bits = Min((placing->room * BITS_PER_BYTE - places_bits(1, 0)) / nrows,
			   RF_MAX_PLACE_BITS);
	if (bits < RF_MIN_PLACE_BITS)
		return;
	most = (1 << bits) - 1;
	rf_set_ranges(placing, Max((placing->end + most - 1) / most,
							   RF_MIN_RANGE_BLOCKS));
}

/*
 * Returns how many ranges of heap blocks a segment with places has.
 */
uint32
rf_range_count(const RfSegment *segment)
{
	BlockNumber nblocks = segment->end - segment->start;

	return nblocks / segment->range_blocks +
		(nblocks % segment->range_blocks != 0);
}

/*
 * Returns for how many ranges each of a segment's bits of imprecise ranges stands.
 */
static uint32
rf_imprecise_group(const RfSegment *segment)
{
	return (rf_range_count(segment) + RF_IMPRECISE_BITS - 1) / RF_IMPRECISE_BITS;
}

/*
 * The bit among a segment's imprecise ranges that stands for the range of a heap block.
 */
uint64
rf_imprecise_bit(const RfSegment *segment, BlockNumber heap_block)
{
	uint32		range = (heap_block - segment->start) / segment->range_blocks;

	return UINT64CONST(1) << (range / rf_imprecise_group(segment));
}

/*
 * Returns how many of a segment's ranges are imprecise.
 */
uint32
rf_imprecise_count(const RfSegment *segment)
{
	return Min(bits_count(segment->imprecise) * rf_imprecise_group(segment),
			   rf_range_count(segment));
}

/*
 * Sets the bits of imprecise ranges.
 */
static void
rf_add_imprecise(const RfSegment *segment, uint64 *ranges)
{
	uint32		nranges = rf_range_count(segment);
	uint32		group = rf_imprecise_group(segment);

	for (uint32 range = 0; range < nranges; range++)
		if (segment->imprecise >> (range / group) & 1)
			ranges[range / 64] |= UINT64CONST(1) << (range % 64);
}

/*
 * Opens page number i of the places that are in the run, or the one in the
 * directory.  False if it is damaged.
 */
static bool
rf_open_places(RfRunReader *reader, const RfSegment *segment, uint32 i,
			   PlacesPage *view)
{
	const uint8 *page = rf_segment_places(segment);
	uint32		len = segment->places_len;

	if (segment->place_pages > 0)
	{
		page = reader->reader.read_page(&reader->reader,
										segment->npages - segment->place_pages + i);
		len = RF_PAGE_CONTENT;
	}
	return page != NULL && places_open(view, page, len) &&
		view->nranges == rf_range_count(segment) &&
		view->first <= segment->nkeys &&
		view->nkeys <= segment->nkeys - view->first &&
		(i > 0 || view->first == 0);
}

/*
 * The number of the last page of places whose first key has this rank or a
 * lower one.  Pages have nearly the same number of keys.  So the search interpolates
 * first, then takes ever longer steps, then halves what is left.
 */
static bool
rf_find_places(RfRunReader *reader, const RfSegment *segment, uint64 rank,
			   uint32 *found)
{
	uint32		low = 0;		/* begins at or below rank */
	uint32		high = segment->place_pages;	/* begins above it */
	uint64		guess = segment->nkeys > 0 ?
	(uint64) ((double) rank / segment->nkeys * high) : 0;
	uint32		step = 1;
	PlacesPage	view;

	while (high - low > 1)
	{
		uint32		page = Min(Max(guess, low + 1), high - 1);

		if (!rf_open_places(reader, segment, page, &view))
			return false;
		if (view.first <= rank)
		{
			low = page;
			guess = page + step;
		}
		else
		{
			high = page;
			guess = page > step ? page - step : 0;
		}
		step = step < segment->place_pages ? 2 * step : step;
		if (step > 16)
			guess = low + (high - low) / 2;
	}
	*found = low;
	return true;
}

/*
 * Sets the bits of the ranges that hold the keys of some ranks.  False if
 * pages are damaged, or none has some of the ranks.
 */
static bool
rf_collect_ranks(RfRunReader *reader, const RfSegment *segment,
				 const FilterRanks *ranks, uint64 *ranges)
{
	uint64		next = ranks->first;	/* those before it are dealt with */
	uint64		end = Min(ranks->end, segment->nkeys);
	uint32		page = 0;
	PlacesPage	view;

	if (ranks->first >= ranks->end)
		return true;
	if (segment->place_pages > 0 &&
		!rf_find_places(reader, segment, ranks->first, &page))
		return false;
	do
	{
		if (!rf_open_places(reader, segment, page, &view) ||
			view.first > next ||
			!places_collect(&view, ranks->first, ranks->end, ranges))
			return false;
		next = view.first + view.nkeys;
		page++;
	} while (page < segment->place_pages && next < end);
	return next >= end;
}

/*
 * Sets the bits of the segment's ranges of heap blocks that may hold keys (not
 * NULL) of the set; there is room for rf_range_count() bits in words of 64.
 * Looks up the places of the first keys, at most "most" of them; *keys is how many
 * there seem to be.  False if all of its blocks may, for example because it has no
 * places; then the bits mean nothing.  Locks as rf_segment_probe().
 */
bool
rf_collect_places(RfFile *file, const RfMetaData *meta,
				  const RfSegment *segment, const RfKeySet *set, uint64 most,
				  uint64 *ranges, uint64 *keys)
{
	RfRunReader reader;
	bool		known = segment->range_blocks > 0;
	uint64		left = most;

	*keys = 0;
	if (segment->nkeys == 0)
		return true;
	rf_run_reader_begin(&reader, file, meta, segment);
	for (int i = 0; i < set->nranges && known; i++)
	{
		FilterRanks ranks;
		RfAnswer	answer = rf_range_ranks(segment, file->codec, &set->ranges[i],
											&reader.reader, &ranks);

		if (answer == RF_YES)
		{
			uint64		end = Min(ranks.end, segment->nkeys);
			uint64		n = end > ranks.first ? end - ranks.first : 0;

			*keys += n;
			if (n > left)
				ranks.end = ranks.first + left;
			left -= Min(n, left);
			known = rf_collect_ranks(&reader, segment, &ranks, ranges);
		}
		else
			known = answer == RF_NO;
	}
	rf_run_reader_end(&reader);
	if (known && segment->imprecise != 0)
		rf_add_imprecise(segment, ranges);
	return known;
}

/*
 * Return true if keys of some ranks have rows in a range.  False also for damage.
 */
static bool
rf_ranks_have(RfRunReader *reader, const RfSegment *segment,
			  const FilterRanks *ranks, uint32 range)
{
	uint32		page = 0;
	PlacesPage	view;

	if (ranks->first >= ranks->end ||
		(segment->place_pages > 0 &&
		 !rf_find_places(reader, segment, ranks->first, &page)))
		return false;
	do
	{
		if (!rf_open_places(reader, segment, page, &view))
			return false;
		if (places_has(&view, ranks->first, ranks->end, range))
			return true;
		page++;
	} while (page < segment->place_pages &&
			 view.first + view.nkeys < ranks->end);
	return false;
}

/*
 * Return true if the places of a segment that answers YES for a key say that it may be in
 * this heap block.  If so, every scan for a range that holds the key looks
 * there, since it collects the ranks that a scan for the key does.  Damaged pages say
 * no, since they may be repaired.  Inserts ask this, so its time does not depend on the
 * number of ranges.
 */
bool
rf_key_is_placed(RfFile *file, const RfMetaData *meta,
				 const RfSegment *segment, const RfKey *key,
				 BlockNumber heap_block)
{
	RfRange		range = {.lo = *key,.hi = *key};
	RfRunReader reader;
	FilterRanks ranks;
	bool		placed;

	if (segment->range_blocks == 0 ||
		(segment->imprecise & rf_imprecise_bit(segment, heap_block)) != 0)
		return true;
	rf_run_reader_begin(&reader, file, meta, segment);
	placed = rf_range_ranks(segment, file->codec, &range, &reader.reader,
							&ranks) == RF_YES &&
		rf_ranks_have(&reader, segment, &ranks,
					  (heap_block - segment->start) / segment->range_blocks);
	rf_run_reader_end(&reader);
	return placed;
}

/*
 * Return true if the pages of a segment's places, if it has any, have ranks without gaps, and ranges that
 * exist.  If ranks_keys, each key has a rank of its own, and all of them must be there.  (A pair may
 * have fewer ranks than keys.)  The reader
 * reads the segment's run.
 */
bool
rf_check_places(RfRunReader *reader, const RfSegment *segment, bool ranks_keys)
{
	uint32		npages = Max(segment->place_pages, 1);
	uint64		next = 0;
	uint64	   *ranges;

	if (segment->range_blocks == 0 || segment->nkeys == 0)
		return true;
	ranges = palloc0((rf_range_count(segment) + 63) / 64 * sizeof(uint64));
	for (uint32 i = 0; i < npages; i++)
	{
		PlacesPage	view;

		if (!rf_open_places(reader, segment, i, &view) || view.first != next ||
			!places_collect(&view, view.first, view.first + view.nkeys, ranges))
			return false;
		next += view.nkeys;
	}
	pfree(ranges);
	return next == segment->nkeys || !ranks_keys;
}
