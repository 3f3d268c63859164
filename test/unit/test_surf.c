/*-------------------------------------------------------------------------
 *
 * test_surf.c
 *	  SuRF against a sorted array of the same keys.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "byte_keys.h"
#include "filter/surf/surf_page.h"

/*
 * Checks a YES for point: then every range that holds it is answered YES,
 * whether there is a key or not.
 */
static void
check_covered(Strings *strings, FilterBytes point, KeyKind kind)
{
	FilterBytes a = make_bound(strings, kind);
	FilterBytes b = make_bound(strings, kind);
	FilterBytes near = make_near(point);
	FilterBytes low = filter_bytes_compare(a, point) < 0 ? a : point;
	FilterBytes high = filter_bytes_compare(b, point) > 0 ? b : point;
	FilterByteRange ranges[6];
	int			i;

	ranges[0] = range_of(low, point);
	ranges[1] = range_of(point, high);
	ranges[2] = range_of(low, high);
	ranges[3] = range_of(point, point);
	ranges[3].lo_unbounded = true;
	ranges[4] = range_of(point, point);
	ranges[4].hi_unbounded = true;
	if (filter_bytes_compare(near, point) > 0)
	{
		ranges[5] = range_of(low, near);
		ranges[5].hi_exclusive = true;
	}
	else
		ranges[5] = range_of(near, point);
	for (i = 0; i < 6; i++)
		CHECK(ask(strings, &ranges[i]) == FILTER_YES,
			  "range %d around a point of %u bytes", i, point.len);
	free_bytes(a);
	free_bytes(b);
	free_bytes(near);
}

/*
 * Counts: none too few, and one too many at each bound at most.  Keys that
 * are cut to the same bytes count as one, there only the sum is known.  A pair
 * only estimates.
 */
static void
check_count(Strings *strings, const FilterByteRange *range)
{
	int64_t		counted = count(strings, range);
	int64_t		truth = (int64_t) count_in(strings, range);
	int64_t		lost = (int64_t) (strings->n - strings->run.nkeys);

	CHECK((counted > 0) == (ask(strings, range) == FILTER_YES),
		  "%" PRId64 " keys and no answer to match", counted);
	if (strings->run.kind == FILTER_KIND_PAIR)
	{
		CHECK(counted >= 0 && counted <= (int64_t) strings->run.nkeys,
			  "%" PRId64 " of %" PRIu64, counted, strings->run.nkeys);
		return;
	}
	CHECK(counted >= (truth > lost ? truth - lost : truth > 0) &&
		  counted <= truth + !range->lo_unbounded + !range->hi_unbounded,
		  "%" PRId64 ", not %" PRId64 " (%" PRId64 " lost)", counted, truth, lost);
}

/*
 * The range from prefix to the least string above all that begin so, which is
 * written to next.
 */
static FilterByteRange
prefix_range(FilterBytes prefix, uint8_t *next)
{
	FilterByteRange range = {.lo = prefix,.hi_exclusive = true};
	uint32_t	len = prefix.len;

	/* No byte is above 0xFF: there the one before is increased. */
	while (len > 0 && prefix.data[len - 1] == UINT8_MAX)
		len--;
	if (len > 0)
	{
		memcpy(next, prefix.data, len);
		next[len - 1]++;
	}
	range.hi.data = next;
	range.hi.len = len;
	range.hi_unbounded = len == 0;
	return range;
}

/* All keys that begin alike, as LIKE 'abc%' asks for. */
static void
check_prefix(Strings *strings, FilterBytes prefix)
{
	uint8_t		next[FILTER_MAX_KEY + 2];
	FilterByteRange range = prefix_range(prefix, next);
	size_t		truth = 0;
	size_t		i;

	check_range(strings, &range);
	check_count(strings, &range);
	for (i = rank_of(strings, prefix, false); i < strings->n; i++)
	{
		FilterBytes key = strings->keys[i];

		if (key.len < prefix.len ||
			(prefix.len > 0 && memcmp(key.data, prefix.data, prefix.len) != 0))
			break;
		truth++;
	}
	CHECK(count_in(strings, &range) == truth, "%zu keys with a prefix of %u bytes",
		  truth, prefix.len);
}

/* Asks a run all sorts of things. */
static void
check_run(Strings *strings, KeyKind kind, uint32_t rounds)
{
	FilterByteRange all = {.lo_unbounded = true,.hi_unbounded = true};
	size_t		step = strings->n / rounds + 1;
	size_t		i;

	CHECK(strings->run.kind == FILTER_KIND_SURF ||
		  strings->options.suffix == FILTER_SUFFIX_AUTO, "kind %d", strings->run.kind);
	CHECK(filter_check(strings->run.kind, strings->run.root, strings->run.root_len,
					   &strings->reader.reader, strings->run.nkeys), "check");
	CHECK(strings->run.root_len <= strings->options.root_max, "root of %u",
		  strings->run.root_len);
	check_range(strings, &all);
	CHECK(count(strings, &all) == (int64_t) strings->run.nkeys, "of all keys");

	for (i = unit_random_below(step); i < strings->n; i += step)
	{
		FilterBytes key = strings->keys[i];
		FilterBytes near = make_near(key);

		check_between(strings, key, key, false);
		check_covered(strings, key, kind);

		/* The gap to the next key, with and without its borders. */
		if (i + 1 < strings->n)
		{
			check_between(strings, key, strings->keys[i + 1], true);
			if (filter_bytes_compare(near, strings->keys[i + 1]) <= 0 &&
				filter_bytes_compare(near, key) > 0)
			{
				check_between(strings, near, strings->keys[i + 1], true);
				check_between(strings, near, strings->keys[i + 1], false);
			}
		}
		free_bytes(near);
	}

	for (i = 0; i < rounds; i++)
	{
		FilterBytes a = make_bound(strings, kind);
		FilterBytes b = unit_random_below(3) == 0 ? make_near(a) :
		make_bound(strings, kind);
		FilterByteRange range = make_range(a, b);

		check_range(strings, &range);
		check_count(strings, &range);
		if (check_between(strings, a, a, false) == FILTER_YES)
			check_covered(strings, a, kind);
		check_prefix(strings, a);
		CHECK(check_between(strings, a, a, true) == FILTER_NO, "empty range");
		if (filter_bytes_compare(a, b) > 0)
			CHECK(check_between(strings, a, b, false) == FILTER_NO, "lo > hi");
		free_bytes(a);
		free_bytes(b);
	}
}

static void
check_kind(KeyKind kind, size_t n, const FilterOptions *options, uint32_t rounds)
{
	Strings		strings = build_random(kind, n, options);

	strings.is_strict = unit_random_below(4) == 0;
	check_run(&strings, kind, rounds);
	free_strings(&strings);
}

/* All kinds of keys and suffixes, few keys to ten thousand. */
static void
test_random_runs(void)
{
	static const size_t sizes[] = {0, 1, 2, 3, 10, 100, 1000, 10000};
	int			kind;
	int			suffix;
	int			i;

	for (kind = 0; kind < KEY_KINDS; kind++)
		for (suffix = FILTER_SUFFIX_NONE; suffix <= FILTER_SUFFIX_AUTO; suffix++)
			for (i = 0; i < 8; i++)
			{
				bool		small = unit_random_below(2) == 0;
				FilterOptions options = make_options((FilterSuffix) suffix,
													 4 + unit_random_below(61),
													 small ? SMALL_PAGE : PAGE_SIZE,
													 unit_random_below(3) == 0 ? 450 : 2500);
				uint64_t	failed = unit_failed;

				check_kind((KeyKind) kind, sizes[i], &options,
						   sizes[i] > 1000 ? 1500 : 300);
				if (unit_failed > failed)
					printf("with %zu %s\n", sizes[i], kind_names[kind]);
			}
}

/* A hundred thousand keys: many pages, and pages of fences in small ones. */
static void
test_large_runs(void)
{
	FilterOptions options = make_options(FILTER_SUFFIX_REAL, 14, PAGE_SIZE, 2500);

	check_kind(WORDS, 100000, &options, 10000);
	check_kind(NUMBERS, 100000, &options, 10000);
	options.suffix = FILTER_SUFFIX_AUTO;
	check_kind(WORDS, 100000, &options, 10000);
	check_kind(URLS, 100000, &options, 10000);
	options.page_size = SMALL_PAGE;
	check_kind(NUMBERS, 100000, &options, 10000);
	options.suffix = FILTER_SUFFIX_MIXED;
	check_kind(URLS, 100000, &options, 10000);
	options.page_size = 32736;
	check_kind(WORDS, 100000, &options, 10000);
}

/* A million keys. */
static void
test_million(void)
{
	FilterOptions options = make_options(FILTER_SUFFIX_REAL, 12, PAGE_SIZE, 2500);

	check_kind(NUMBERS, 1000000, &options, 3000);
	options.suffix = FILTER_SUFFIX_HASH;
	check_kind(WORDS, 1000000, &options, 3000);
}

/* Ranges from one page's last key to the next one's first, and over pages. */
static void
test_page_borders(void)
{
	int			kind;

	for (kind = 0; kind < KEY_KINDS; kind++)
	{
		FilterOptions options = make_options((FilterSuffix) (kind % 4), 12, 128, 300);
		Strings		strings = build_random((KeyKind) kind, 3000, &options);
		size_t		pages = strings.run.npages;
		size_t		i;

		/* Some kinds do not have so many keys, or not in so short keys. */
		CHECK(pages > 20 || kind == TINY || kind == BORDERS || kind == LONG,
			  "%zu pages of %s", pages, kind_names[kind]);
		for (i = 1; i < strings.n; i++)
		{
			FilterBytes from = strings.keys[i - 1];
			FilterBytes to = strings.keys[i];
			FilterBytes behind = make_near(from);
			FilterByteRange range;

			check_between(&strings, from, to, true);
			if (filter_bytes_compare(behind, to) <= 0)
				check_between(&strings, behind, to, false);
			to = strings.keys[unit_random_below(strings.n)];
			range = make_range(behind, to);
			check_range(&strings, &range);
			check_count(&strings, &range);
			free_bytes(behind);
		}
		free_strings(&strings);
	}
}

/* Suffixes of all lengths from none to 64 bits. */
static void
test_suffix_lengths(void)
{
	int			suffix;
	int			bits;
	int			i;

	for (suffix = FILTER_SUFFIX_HASH; suffix <= FILTER_SUFFIX_MIXED; suffix++)
	{
		bool		seen[65] = {false};

		for (bits = 4; bits <= 78; bits++)
		{
			FilterOptions options = make_options((FilterSuffix) suffix, bits, SMALL_PAGE,
												 2500);
			Strings		strings = build_random(UUIDS, 6000, &options);
			uint32_t	npages = bits_load32(strings.run.root + 4);

			for (i = 0; i < (int) npages; i++)
			{
				const uint8_t *page = strings.run.pages + i * SMALL_PAGE;

				if (bits_load16(page + 4) <= 64)
					seen[bits_load16(page + 4)] = true;
			}
			check_run(&strings, UUIDS, 30);
			free_strings(&strings);
		}
		for (i = 0; i <= 64; i++)
			CHECK(seen[i], "%d bits, suffix %d", i, suffix);
	}
}

/* Pages and roots as small as they may be. */
static void
test_tiny_pages(void)
{
	int			kind;

	for (kind = 0; kind < KEY_KINDS; kind++)
	{
		FilterOptions options = make_options(FILTER_SUFFIX_MIXED, 14, 64, 160);

		check_kind((KeyKind) kind, 1000, &options, 500);
	}
}

/* No answer and no count is wrong where whole keys are kept. */
static void
check_exact(Strings *strings, KeyKind kind)
{
	int			wrong = 0;
	int			i;

	for (i = 0; i < 5000; i++)
	{
		FilterBytes a = make_bound(strings, kind);
		FilterBytes b = make_near(a);
		FilterByteRange range = make_range(a, b);
		FilterByteRange point = range_of(a, a);

		wrong += ask(strings, &range) != FILTER_NO && !holds(strings, &range);
		wrong += ask(strings, &point) != FILTER_NO && !holds(strings, &point);
		CHECK(count(strings, &range) == (int64_t) count_in(strings, &range),
			  "count");
		free_bytes(a);
		free_bytes(b);
	}
	CHECK(wrong == 0, "%d false positives of %s", wrong, kind_names[kind]);
}

/* Few keys get suffixes as long as they are: then nothing is said in vain. */
static void
test_few_keys_are_exact(void)
{
	static const KeyKind kinds[] = {TINY, BORDERS, NUMBERS, URLS, WORDS};
	int			i;

	for (i = 0; i < 5; i++)
	{
		FilterOptions options = make_options(FILTER_SUFFIX_REAL, 14, PAGE_SIZE, 2500);
		Strings		strings = build_random(kinds[i], 100, &options);

		CHECK(strings.run.npages == 1, "%u pages", strings.run.npages);
		check_exact(&strings, kinds[i]);
		free_strings(&strings);
	}
}

/*
 * Between one page's last key and the next one's first, with long suffixes,
 * nothing is found: the next page is asked where the range goes on there.
 */
static void
test_gaps_at_page_borders(void)
{
	FilterOptions options = make_options(FILTER_SUFFIX_REAL, 64, SMALL_PAGE, 2500);
	Strings		strings = build_random(NUMBERS, 5000, &options);
	uint32_t	npages = bits_load32(strings.run.root + 4);
	uint32_t	borders = 0;
	uint32_t	wrong = 0;
	uint32_t	i;

	for (i = 1; i < npages; i++)
	{
		SurfPage	page;
		FilterBytes lo;

		if (!surf_page_open(&page, strings.run.pages + (size_t) i * SMALL_PAGE,
							SMALL_PAGE))
			continue;
		borders++;
		lo = make_number(__builtin_bswap64(bits_load64(strings.keys[page.rank - 1].data)) + 1);
		wrong += check_between(&strings, lo, strings.keys[page.rank], true) != FILTER_NO;
		free_bytes(lo);
	}

	/* A twenty-seventh is usual; without what keeps them right, nearly all. */
	CHECK(borders > 50 && wrong < borders / 4, "%u of %u", wrong, borders);
	free_strings(&strings);
}

/* A count reads two content pages, however many keys it counts. */
static void
test_counts_read_two_pages(void)
{
	FilterOptions options = make_options(FILTER_SUFFIX_REAL, 14, SMALL_PAGE, 300);
	Strings		strings = build_random(NUMBERS, 20000, &options);
	uint32_t	fence_pages = strings.run.npages - bits_load32(strings.run.root + 4);
	int			i;

	CHECK(strings.run.npages > 50 && fence_pages > 0, "%u pages, %u of fences",
		  strings.run.npages, fence_pages);
	for (i = 0; i < 1000; i++)
	{
		FilterBytes a = make_bound(&strings, NUMBERS);
		FilterBytes b = make_bound(&strings, NUMBERS);
		FilterByteRange range = make_range(a, b);
		uint64_t	counted;

		strict_reader_init(&strings.strict, strings.run.pages, strings.run.npages,
						   SMALL_PAGE);
		CHECK(filter_count_bytes(strings.run.root, strings.run.root_len,
								 &strings.strict.reader, &range, &counted),
			  "damaged");
		CHECK(strings.strict.reads <= 4, "%d reads, fences included",
			  strings.strict.reads);
		strict_reader_end(&strings.strict);
		free_bytes(a);
		free_bytes(b);
	}
	free_strings(&strings);
}

/*
 * Asks for 60000 points, or ranges from one to 255 numbers on, that no key is
 * in.  About 4.6 bits a key go into nodes and fences; of the others each that a
 * question meets halves what is wrong: for ranges none that is of a hash, in
 * "mixed" every other one, and in "none" three at most, and what a leaf says by
 * itself.  What budgets leave over, being whole pages, is taken into account.
 *
 * Wrong answers are spread binomially.  More than five standard deviations
 * above the mean, and a little for small means, come once in millions of runs.
 */
static void
check_false_positives(FilterSuffix suffix, uint32_t bits_per_key, bool points)
{
	FilterOptions options = make_options(suffix, bits_per_key, PAGE_SIZE, 2500);
	Strings		strings = build_random(NUMBERS, 50000, &options);
	double		bits = 8.0 * PAGE_SIZE * strings.run.npages / strings.n - 4.7;
	double		most;
	int			wrong = 0;
	int			i;

	if (suffix == FILTER_SUFFIX_NONE || (suffix == FILTER_SUFFIX_HASH && !points))
		bits = 3.3;
	else if (suffix == FILTER_SUFFIX_MIXED && !points)
		bits = (bits - 1) / 2;
	for (i = 0; i < 60000; i++)
	{
		uint64_t	number = unit_random() >> 8;
		FilterBytes lo = make_number(number << 8);
		FilterBytes hi = make_number(number << 8 | (points ? 0 : 255));
		FilterByteRange range = range_of(lo, hi);

		if (!holds(&strings, &range))
			wrong += ask(&strings, &range) != FILTER_NO;
		free_bytes(lo);
		free_bytes(hi);
	}
	most = 60000 * exp2(-bits);
	most += 5 * sqrt(most) + 5;
	CHECK(wrong <= most, "%d wrong of at most %.0f, suffix %d, %u bits, %s", wrong,
		  most, (int) suffix, bits_per_key, points ? "points" : "ranges");
	free_strings(&strings);
}

/* Suffixes do what they are for. */
static void
test_false_positives(void)
{
	check_false_positives(FILTER_SUFFIX_NONE, 10, false);
	check_false_positives(FILTER_SUFFIX_HASH, 16, false);
	check_false_positives(FILTER_SUFFIX_REAL, 10, false);
	check_false_positives(FILTER_SUFFIX_REAL, 14, true);
	check_false_positives(FILTER_SUFFIX_HASH, 14, true);
	check_false_positives(FILTER_SUFFIX_MIXED, 20, true);
	check_false_positives(FILTER_SUFFIX_MIXED, 20, false);
}

/*
 * Pages are as many as the budget begins, or as the nodes alone need, which is what a run
 * without suffixes takes.
 */
static void
test_budget(void)
{
	int			kind;
	int			bits;

	for (kind = 0; kind < KEY_KINDS; kind++)
		for (bits = 4; bits <= 64; bits += 10)
		{
			FilterOptions options = make_options(FILTER_SUFFIX_NONE, bits, SMALL_PAGE,
												 2500);
			uint64_t	seed = unit_random_state;
			Strings		bare = build_random((KeyKind) kind, 5000, &options);
			Strings		strings;
			uint64_t	budget;

			options.suffix = FILTER_SUFFIX_REAL;
			unit_random_state = seed;
			strings = build_random((KeyKind) kind, 5000, &options);
			budget = (strings.run.nkeys * bits / 8 + SMALL_PAGE - 1) / SMALL_PAGE;
			if (budget < bare.run.npages + bare.run.npages / 20 + 2)
				budget = bare.run.npages + bare.run.npages / 20 + 2;
			CHECK(strings.run.npages <= budget,
				  "%u pages of at most %" PRIu64 " (%u without suffixes), %s, %d bits",
				  strings.run.npages, budget, bare.run.npages, kind_names[kind],
				  bits);

			/* Longer keys are cut, which may make them equal. */
			CHECK(kind == LONG || kind == PREFIXES || strings.run.nkeys == strings.n,
				  "%" PRIu64 " keys", strings.run.nkeys);
			free_strings(&bare);
			free_strings(&strings);
		}
}

/* A budget of little more than a page gets two. */
static void
test_begun_page(void)
{
	FilterOptions options = make_options(FILTER_SUFFIX_REAL, 14, PAGE_SIZE, 2500);
	Strings		strings = build_random(NUMBERS, 5300, &options);

	CHECK(strings.run.nkeys * 14 > PAGE_SIZE * 8, "%" PRIu64 " keys", strings.run.nkeys);
	CHECK(strings.run.npages == 2, "%u pages", strings.run.npages);
	free_strings(&strings);
}

int
main(void)
{
	unit_begin("surf");
	RUN(test_random_runs);
	RUN(test_large_runs);
	RUN(test_million);
	RUN(test_page_borders);
	RUN(test_suffix_lengths);
	RUN(test_tiny_pages);
	RUN(test_few_keys_are_exact);
	RUN(test_gaps_at_page_borders);
	RUN(test_counts_read_two_pages);
	RUN(test_false_positives);
	RUN(test_budget);
	RUN(test_begun_page);
	return unit_end();
}
