/*-------------------------------------------------------------------------
 *
 * test_places_bytes.c
 *	  Places beside runs of byte strings.
 *
 *-------------------------------------------------------------------------
 */
#include "byte_keys.h"
#include "placed.h"

#define NRANGES 100
#define NKEYS	1000

/* A run with places; places[i] is where key i is, a duplicate's not counted. */
typedef struct PlacedStrings
{
	Strings		strings;
	uint32_t	rows[NKEYS];
	Placed		placed;
} PlacedStrings;

static void
build_placed(PlacedStrings *placed, KeyKind kind, const FilterOptions *options)
{
	PlacesBuild *places = places_build_begin(NRANGES, options->page_size);
	FilterBuild *build;
	FilterRun	run;
	size_t		i;

	placed->strings = build_random(kind, NKEYS, options);
	build = filter_build_begin(options);
	for (i = 0; i < placed->strings.n; i++)
	{
		placed->rows[i] = unit_random_below(NRANGES);
		filter_measure_bytes(build, placed->strings.keys[i]);
		places_measure(places, filter_build_rank(build), placed->rows[i]);
	}
	filter_measure_end(build);
	places_measure_end(places, UINT64_MAX);
	for (i = 0; i < placed->strings.n; i++)
	{
		filter_add_bytes(build, placed->strings.keys[i]);
		places_add(places, filter_build_rank(build), placed->rows[i]);
	}
	filter_build_end(build, &run);
	filter_run_free(&run);
	placed->placed = placed_end(places, NRANGES, options->page_size);
}

static FilterRanks
ask_ranks(PlacedStrings *placed, const FilterByteRange *range)
{
	FilterRanks ranks = {1, 0};

	CHECK(filter_ranks_bytes(placed->strings.run.root,
							 placed->strings.run.root_len,
							 &placed->strings.reader.reader, range, &ranks),
		  "lo of %u, hi of %u bytes", range->lo.len, range->hi.len);
	return ranks;
}

/* Is a point in a range? */
static bool
is_inside(FilterBytes point, const FilterByteRange *range)
{
	int			above = range->lo_unbounded ? 1 :
	filter_bytes_compare(point, range->lo);
	int			below = range->hi_unbounded ? -1 :
	filter_bytes_compare(point, range->hi);

	return above >= 0 && (range->hi_exclusive ? below < 0 : below <= 0);
}

/* All rows in the range are where places say; a point's ranks are its. */
static void
check_rows(PlacedStrings *placed, const FilterByteRange *range, KeyKind kind)
{
	FilterRanks ranks = ask_ranks(placed, range);
	FilterRanks point;
	FilterByteRange point_range;
	FilterBytes key;
	size_t		i;

	CHECK(placed_collect(&placed->placed, ranks.first, ranks.end), "damaged");
	for (i = 0; i < placed->strings.n; i++)
		if (is_inside(placed->strings.keys[i], range))
			CHECK(placed_has(&placed->placed, placed->rows[i]), "key %zu", i);

	key = make_bound(&placed->strings, kind);
	if (is_inside(key, range))
	{
		point_range = range_of(key, key);
		point = ask_ranks(placed, &point_range);
		if (point.first < point.end)
			CHECK(point.first >= ranks.first && point.end <= ranks.end,
				  "a point's ranks are not the range's");
	}
	free_bytes(key);
}

/* Asks many ranges of one run. */
static void
check_run(KeyKind kind, const FilterOptions *options)
{
	PlacedStrings placed;
	int			i;

	build_placed(&placed, kind, options);
	for (i = 0; i < 500; i++)
	{
		FilterBytes lo = make_bound(&placed.strings, kind);
		FilterBytes hi = make_bound(&placed.strings, kind);
		bool		swap = filter_bytes_compare(lo, hi) > 0;
		FilterByteRange range = swap ? range_of(hi, lo) : range_of(lo, hi);

		if (i % 3 == 0)
			range.hi = range.lo;
		range.hi_exclusive = i % 5 == 0;
		range.lo_unbounded = i % 17 == 0;
		range.hi_unbounded = i % 19 == 0;
		check_rows(&placed, &range, kind);
		free_bytes(lo);
		free_bytes(hi);
	}
	placed_free(&placed.placed);
	free_strings(&placed.strings);
}

static void
test_rows_of_strings(void)
{
	static const uint32_t pages[] = {256, 512, 8152};
	int			kind;
	int			i;

	for (kind = 0; kind < KEY_KINDS; kind++)
	{
		unit_case(kind_names[kind]);
		for (i = 0; i < 8; i++)
		{
			FilterOptions options = make_options(i % 4, 8 + 6 * (i / 2),
												 pages[i % 3], 400);

			check_run(kind, &options);
		}
	}
}

int
main(void)
{
	unit_begin("places_bytes");
	RUN(test_rows_of_strings);
	return unit_end();
}
