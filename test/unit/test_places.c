/*-------------------------------------------------------------------------
 *
 * test_places.c
 *	  Places: their pages alone, and beside runs of numbers.
 *
 *-------------------------------------------------------------------------
 */
#include "numbers.h"
#include "placed.h"

/* So many ranges at most for a key of these tests. */
#define MOST 12

/* What the places built last take. */
static uint64_t placed_bits;

/* The ranges of keys: places[MOST * key + i], i below counts[key]. */
typedef struct Truth
{
	uint32_t	nkeys;
	uint32_t	nranges;
	uint32_t   *places;
	uint32_t   *counts;
} Truth;

/* Keys of which one in so many is in several ranges. */
static Truth
make_truth(uint32_t nkeys, uint32_t nranges, uint32_t several)
{
	Truth		truth = {nkeys, nranges};
	uint32_t	i;
	uint32_t	j;

	truth.places = malloc((nkeys + 1) * MOST * sizeof(uint32_t));
	truth.counts = malloc((nkeys + 1) * sizeof(uint32_t));
	for (i = 0; i < nkeys; i++)
	{
		truth.counts[i] = unit_random_below(several) == 0 ?
			1 + unit_random_below(MOST) : 1;
		for (j = 0; j < truth.counts[i]; j++)
			truth.places[MOST * i + j] = unit_random_below(nranges);
	}
	return truth;
}

static void
free_truth(Truth *truth)
{
	free(truth->places);
	free(truth->counts);
}

/* Builds places whose entries take so many bits at most. */
static Placed
build_places(const Truth *truth, uint64_t most, uint32_t page_size)
{
	PlacesBuild *build = places_build_begin(truth->nranges, page_size);
	uint32_t	i;
	uint32_t	j;

	for (i = 0; i < truth->nkeys; i++)
		for (j = 0; j < truth->counts[i]; j++)
			places_measure(build, i, truth->places[MOST * i + j]);
	placed_bits = places_measure_end(build, most);
	for (i = 0; i < truth->nkeys; i++)
		for (j = 0; j < truth->counts[i]; j++)
			places_add(build, i, truth->places[MOST * i + j]);
	return placed_end(build, truth->nranges, page_size);
}

/* Has the key rows in other ranges than its first one's? */
static bool
in_several(const Truth *truth, uint32_t key)
{
	uint32_t	i;

	for (i = 1; i < truth->counts[key]; i++)
		if (truth->places[MOST * key + i] != truth->places[MOST * key])
			return true;
	return false;
}

/* No range of these keys is missing; what is in one range says no other. */
static void
check_keys(const Truth *truth, Placed *placed, uint32_t first, uint32_t end,
		   uint64_t most)
{
	uint32_t	i;
	uint32_t	j;

	CHECK(placed_collect(placed, first, end), "%u to %u", first, end);
	for (i = first; i < end; i++)
		for (j = 0; j < truth->counts[i]; j++)
			CHECK(placed_has(placed, truth->places[MOST * i + j]),
				  "key %u of %u is in range %u of %u", i, truth->nkeys,
				  truth->places[MOST * i + j], truth->nranges);
	if (end != first + 1)
		return;
	if (!in_several(truth, first))
		CHECK(placed_count(placed) == 1, "%u ranges", placed_count(placed));
	else if (most == 0)
		CHECK(placed_count(placed) == placed->nranges, "%u ranges",
			  placed_count(placed));
	else if (most == UINT64_MAX)
		CHECK(placed_count(placed) <= truth->counts[first], "%u ranges, not %u",
			  placed_count(placed), truth->counts[first]);
}

static void
test_keys_in_ranges(void)
{
	static const uint32_t ranges[] = {1, 2, 7, 62, 63, 64, 100, 470, 400};
	static const uint32_t keys[] = {1, 2, 100, 20000};
	static const uint32_t pages[] = {PLACES_MIN_PAGE, 512, SERVER_PAGE};
	int			i;

	for (i = 0; i < 300; i++)
	{
		Truth		truth = make_truth(keys[unit_random_below(4)],
									   ranges[unit_random_below(9)],
									   1 + unit_random_below(10));
		uint64_t	most = i % 4 == 0 ? 0 : i % 4 == 1 ? 20 * truth.nkeys :
		UINT64_MAX;
		Placed		placed = build_places(&truth, most,
										  pages[unit_random_below(3)]);
		int			j;

		for (j = 0; j < 200; j++)
		{
			uint32_t	first = unit_random_below(truth.nkeys);
			uint32_t	most = j % 2 == 0 ? 1 : 1 + unit_random_below(50);
			uint32_t	end = first + most < truth.nkeys ? first + most :
			truth.nkeys;

			check_keys(&truth, &placed, first, end, most);
		}
		CHECK(placed_collect(&placed, 5, 5) && placed_count(&placed) == 0,
			  "no keys have places");
		CHECK(placed_collect(&placed, truth.nkeys, UINT64_MAX) &&
			  placed_count(&placed) == 0, "keys past the last have places");
		placed_free(&placed);
		free_truth(&truth);
	}
}

/* It takes what places_measure_end() says, and no more than allowed. */
static void
test_size(void)
{
	static const uint32_t ranges[] = {3, 7, 63, 64, 500};
	int			i;

	for (i = 0; i < 20; i++)
	{
		Truth		truth = make_truth(2000, ranges[i % 5], 4);
		uint64_t	most = i < 5 ? UINT64_MAX : 10000 * (i / 5);
		Placed		placed = build_places(&truth, most, 60000);

		CHECK(placed.npages == 1, "%u pages", placed.npages);
		CHECK(placed.lens[0] <= (placed_bits + 7) / 8, "%u bytes",
			  placed.lens[0]);
		CHECK(placed_bits - places_bits(ranges[i % 5], 2000) <= most, "%"
			  PRIu64 " bits", placed_bits);
		placed_free(&placed);
		free_truth(&truth);
	}
}

/* A key in every range, more than a mask has bits. */
static void
test_large_masks(void)
{
	PlacesBuild *build = places_build_begin(5000, 512);
	Placed		placed;
	uint32_t	key;
	uint32_t	range;
	int			pass;

	for (pass = 0; pass < 2; pass++)
	{
		for (key = 0; key < 20; key++)
			for (range = key; range < 5000; range += key + 1)
				(pass == 0 ? places_measure : places_add) (build, key, range);
		if (pass == 0)
			CHECK(places_measure_end(build, UINT64_MAX) > 0, "of no use");
	}
	placed = placed_end(build, 5000, 512);
	for (key = 0; key < 20; key++)
	{
		CHECK(placed_collect(&placed, key, key + 1), "damaged");
		for (range = key; range < 5000; range += key + 1)
			CHECK(placed_has(&placed, range), "key %u, range %u", key, range);
	}
	placed_free(&placed);
}

/* Where most keys may be anywhere, places are of no use. */
static void
test_no_use(void)
{
	PlacesBuild *build = places_build_begin(100, 512);
	uint32_t	i;

	for (i = 0; i < 2000; i++)
		places_measure(build, i / 2, i % 3);
	CHECK(places_measure_end(build, 10) == 0, "of use");
	places_build_free(build);
}

/* Nothing but entries, as small as they can be. */
static void
test_many_entries(void)
{
	Truth		truth = make_truth(20000, 2, 1);
	Placed		placed;
	uint32_t	key;

	for (key = 0; key < truth.nkeys; key++)
	{
		truth.counts[key] = 2;
		truth.places[MOST * key] = 0;
		truth.places[MOST * key + 1] = 1;
	}
	placed = build_places(&truth, UINT64_MAX, SERVER_PAGE);
	for (key = 0; key < truth.nkeys; key += 100)
		check_keys(&truth, &placed, key, key + 1, UINT64_MAX);
	placed_free(&placed);
	free_truth(&truth);
}

/* Whatever bytes change, nothing is read or written where it should not be. */
static void
test_damage(void)
{
	int			i;

	for (i = 0; i < 3000; i++)
	{
		Truth		truth = make_truth(1 + unit_random_below(300),
									   1 + unit_random_below(200), 3);
		Placed		placed = build_places(&truth, i % 3 > 0 ? UINT64_MAX : 0, 512);
		uint32_t	page = unit_random_below(placed.npages);
		int			changes = 1 + unit_random_below(5);

		for (; changes > 0; changes--)
			placed.pages[page][unit_random_below(unit_random_below(2) ? 28 :
												 placed.lens[page])] =
				(uint8_t) unit_random();
		placed_collect(&placed, unit_random_below(300), UINT64_MAX);
		placed_collect(&placed, 0, unit_random_below(300));
		placed_free(&placed);
		free_truth(&truth);
	}
	unit_checks++;				/* made by the sanitizers */
}

/* A run with places: each row's is one of NRANGES. */
#define NRANGES 100

typedef struct PlacedRun
{
	Numbers		numbers;
	uint32_t   *rows;			/* range of each row */
	Placed		placed;
} PlacedRun;

/* Numbers have been built; builds them again for the ranks. */
static PlacedRun
build_placed(uint64_t *keys, size_t n, uint32_t bits, uint32_t page_size)
{
	PlacedRun	run;
	FilterOptions options;
	FilterBuild *build;
	FilterRun	again;
	PlacesBuild *places = places_build_begin(NRANGES, page_size);
	size_t		i;

	run.numbers = build_rows(keys, n, n, bits, page_size, 200);
	run.rows = malloc((n + 1) * sizeof(uint32_t));
	memset(&options, 0, sizeof(options));
	options.bits_per_key = bits;
	options.page_size = page_size;
	options.root_max = 200;
	options.nrows = n;
	build = filter_build_begin(&options);
	for (i = 0; i < n; i++)
	{
		run.rows[i] = unit_random_below(NRANGES);
		filter_measure_u64(build, keys[i]);
		places_measure(places, filter_build_rank(build), run.rows[i]);
	}
	filter_measure_end(build);
	places_measure_end(places, UINT64_MAX);
	for (i = 0; i < n; i++)
	{
		filter_add_u64(build, keys[i]);
		places_add(places, filter_build_rank(build), run.rows[i]);
	}
	filter_build_end(build, &again);
	filter_run_free(&again);
	run.placed = placed_end(places, NRANGES, page_size);
	return run;
}

/* The ranks that a range may have. */
static FilterRanks
ask_ranks(PlacedRun *run, uint64_t lo, uint64_t hi)
{
	FilterRanks ranks;

	CHECK(filter_ranks_u64(run->numbers.run.kind, run->numbers.run.root,
						   run->numbers.run.root_len,
						   &run->numbers.reader.reader, lo, hi, &ranks),
		  "[%" PRIu64 ", %" PRIu64 "]", lo, hi);
	return ranks;
}

/* All rows in [lo, hi] are where places say; a point's ranks are a range's. */
static void
check_rows(PlacedRun *run, uint64_t lo, uint64_t hi)
{
	FilterRanks ranks = ask_ranks(run, lo, hi);
	FilterRanks point;
	uint64_t	key = lo + unit_random() % (hi - lo + 1 > 0 ? hi - lo + 1 :
											UINT64_MAX);
	const uint64_t *keys = run->numbers.keys;
	size_t		i;

	CHECK(placed_collect(&run->placed, ranks.first, ranks.end), "damaged");
	for (i = 0; i < run->numbers.n; i++)
		if (keys[i] >= lo && keys[i] <= hi)
			CHECK(placed_has(&run->placed, run->rows[i]), "%" PRIu64
				  " in [%" PRIu64 ", %" PRIu64 "]", keys[i], lo, hi);
	if (run->numbers.run.kind == FILTER_KIND_EXACT)
		CHECK(ranks.end - ranks.first == count_of(&run->numbers, lo, hi),
			  "ranks of an exact run");
	point = ask_ranks(run, key, key);
	if (point.first < point.end)
		CHECK(point.first >= ranks.first && point.end <= ranks.end,
			  "%" PRIu64 " in [%" PRIu64 ", %" PRIu64 "]", key, lo, hi);
}

static void
test_rows_of_numbers(void)
{
	static const uint32_t bits[] = {2, 3, 5, 8, 14};
	int			distribution;
	int			i;
	int			j;

	for (distribution = 0; distribution < DISTRIBUTIONS; distribution++)
	{
		for (i = 0; i < 5; i++)
		{
			size_t		n = i == 0 ? 500 : 4000;
			PlacedRun	run = build_placed(make_keys(distribution, n), n, bits[i],
										   i % 2 == 0 ? 512 : 2048);
			const uint64_t *keys = run.numbers.keys;

			unit_case(distribution_names[distribution]);
			for (j = 0; j < 400; j++)
			{
				uint64_t	lo = keys[unit_random_below(n)] - 1 + unit_random_below(3);
				uint64_t	hi = add_capped(lo, unit_random() >> (unit_random_below(64)));

				check_rows(&run, lo, j % 3 == 0 ? lo : hi);
			}
			placed_free(&run.placed);
			free(run.rows);
			free_numbers(&run.numbers);
		}
	}
}

int
main(void)
{
	unit_begin("places");
	RUN(test_keys_in_ranges);
	RUN(test_size);
	RUN(test_many_entries);
	RUN(test_large_masks);
	RUN(test_no_use);
	RUN(test_damage);
	RUN(test_rows_of_numbers);
	return unit_end();
}
