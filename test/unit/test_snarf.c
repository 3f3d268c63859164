/*-------------------------------------------------------------------------
 *
 * test_snarf.c
 *	  SNARF runs against the sorted array of their keys.
 *
 * The property behind all of these: a range that holds a key is answered
 * YES, always; a range that holds none is answered NO by an exact run, and
 * by others within the promised rate.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/snarf_page.h"
#include "numbers.h"

#define SERVER_PAGE 8152
#define SERVER_ROOT 2400

/* Asks for [lo, hi] and compares with the truth; returns the answer. */
static FilterAnswer
check_range(Numbers *numbers, uint64_t lo, uint64_t hi)
{
	FilterAnswer answer = ask(numbers, lo, hi);

	if (holds(numbers, lo, hi))
		CHECK(answer == FILTER_YES, "false negative: [%" PRIu64 ", %" PRIu64
			  "], %zu keys, page size %u", lo, hi, numbers->n,
			  numbers->page_size);
	else if (numbers->run.kind == FILTER_KIND_EXACT)
		CHECK(answer == FILTER_NO, "exact, yet [%" PRIu64 ", %" PRIu64
			  "] is not NO, %zu keys, page size %u", lo, hi, numbers->n,
			  numbers->page_size);
	else
		CHECK(answer != FILTER_UNKNOWN, "[%" PRIu64 ", %" PRIu64 "]", lo, hi);
	return answer;
}

/* Ranges that begin, end, touch and just miss key i. */
static void
check_around(Numbers *numbers, size_t i)
{
	uint64_t	key = numbers->keys[i];
	uint64_t	next = numbers->keys[i + 1 < numbers->n ? i + 1 : i];
	uint64_t	other = numbers->keys[unit_random_below(numbers->n)];
	uint64_t	width = unit_random() >> unit_random_below(64);

	check_range(numbers, key, key);
	check_range(numbers, key, next);
	check_range(numbers, key, add_capped(key, width));
	check_range(numbers, subtract_capped(key, width), key);
	check_range(numbers, subtract_capped(key, 1), add_capped(key, 1));
	check_range(numbers, key < other ? key : other, key < other ? other : key);
	check_range(numbers, add_capped(key, 1), add_capped(key, 1));
	check_range(numbers, subtract_capped(key, 1), subtract_capped(key, 1));
	if (next - key > 1)
	{
		uint64_t	lo = key + 1 + unit_random_below(next - key - 1);

		check_range(numbers, key + 1, next - 1);
		check_range(numbers, lo, next);
		check_range(numbers, lo, next - 1);
		check_range(numbers, key, lo);
	}
}

/* Ranges anywhere, of all widths. */
static void
check_anywhere(Numbers *numbers, int count)
{
	check_range(numbers, 0, UINT64_MAX);
	check_range(numbers, 0, 0);
	check_range(numbers, UINT64_MAX, UINT64_MAX);
	check_range(numbers, INT64_MAX, (uint64_t) INT64_MAX + 1);
	while (count-- > 0)
	{
		uint64_t	lo = count % 2 ? unit_random() : random_extreme();

		check_range(numbers, lo,
					add_capped(lo, unit_random() >> unit_random_below(64)));
		check_range(numbers, lo, lo);
		check_range(numbers, 0, lo);
		check_range(numbers, lo, UINT64_MAX);
	}
}

/* Up to count keys and as many ranges anywhere. */
static void
check_run(Numbers *numbers, size_t count)
{
	size_t		i;

	for (i = 0; i < numbers->n && i < count; i++)
		check_around(numbers, numbers->n <= count ? i :
					 unit_random_below(numbers->n));
	if (numbers->n > 0)
	{
		check_around(numbers, 0);
		check_around(numbers, numbers->n - 1);
	}
	check_anywhere(numbers, (int) (count < 200 ? count : 200));
}

/*
 * How often empty ranges of one width are not NO.  They are spread as the keys
 * are: evenly between a random key and one some keys further on.
 */
static double
false_positive_rate(Numbers *numbers, uint64_t width, int count)
{
	int			yes = 0;
	int			asked = 0;

	while (asked < count)
	{
		size_t		i = unit_random_below(numbers->n - 50);
		uint64_t	lo = numbers->keys[i] +
			unit_random_below(numbers->keys[i + 50] - numbers->keys[i] + 1);

		if (holds(numbers, lo, add_capped(lo, width - 1)))
			continue;
		yes += ask(numbers, lo, add_capped(lo, width - 1)) != FILTER_NO;
		asked++;
	}
	return (double) yes / count;
}

/* All ranges between all neighbours of few keys. */
static void
check_all_ranges(uint64_t *keys, size_t n, uint32_t page_size)
{
	Numbers		numbers;
	uint64_t	ends[64];
	size_t		nends = 0;
	size_t		i;
	size_t		j;

	for (i = 0; i < n; i++)
	{
		ends[nends++] = subtract_capped(keys[i], 1);
		ends[nends++] = keys[i];
		ends[nends++] = add_capped(keys[i], 1);
		ends[nends++] = unit_random();
	}
	ends[nends++] = 0;
	ends[nends++] = UINT64_MAX;
	qsort(keys, n, sizeof(uint64_t), compare_numbers);

	numbers = build_numbers(keys, n, 14, page_size, 200);
	CHECK(numbers.run.kind == FILTER_KIND_EXACT, "%zu keys", n);
	CHECK(numbers.run.npages == (n > 0), "%zu keys, %u pages", n,
		  numbers.run.npages);
	for (i = 0; i < nends; i++)
	{
		for (j = 0; j < nends; j++)
		{
			if (ends[i] <= ends[j])
				check_range(&numbers, ends[i], ends[j]);
			else
				CHECK(ask(&numbers, ends[i], ends[j]) == FILTER_NO, "lo > hi");
		}
	}
	free_numbers(&numbers);
}

/*
 * The model: never decreasing, the greatest distance is within the positions
 * and, as the factor has eleven bits, near their end.
 */
static void
check_model(uint64_t positions, uint64_t span)
{
	uint16_t	scale = snarf_choose_scale(positions, span);
	uint64_t	last = snarf_position(span, scale);
	int			i;

	CHECK(scale != SNARF_EXACT_SCALE, "%" PRIu64 " of %" PRIu64, positions, span);
	CHECK(snarf_position(0, scale) == 0, "%" PRIu64 " of %" PRIu64, positions,
		  span);
	CHECK(last < positions, "%" PRIu64 " in %" PRIu64 " of %" PRIu64, last,
		  positions, span);
	CHECK(last + 2 >= positions - positions / 512, "%" PRIu64 " in %" PRIu64
		  " of %" PRIu64, last, positions, span);
	for (i = 0; i < 10; i++)
	{
		uint64_t	distance = unit_random() % span;

		CHECK(snarf_position(distance, scale) <=
			  snarf_position(distance + 1, scale), "%" PRIu64, distance);
	}
}

static void
test_model(void)
{
	int			i;

	check_model(1, UINT64_MAX);
	check_model(1, 1);
	check_model(2, UINT64_MAX);
	check_model(1, UINT64_C(1) << 63);
	check_model(1, UINT64_MAX >> 1);
	check_model(1, (UINT64_C(1) << 63) + (UINT64_C(1) << 52));
	check_model(UINT64_MAX, UINT64_MAX);
	check_model(UINT64_MAX - 1, UINT64_MAX);
	for (i = 0; i < 100000; i++)
	{
		uint64_t	span = (unit_random() >> unit_random_below(64)) | 1;
		uint64_t	positions = (unit_random() >> unit_random_below(64)) % span + 1;

		check_model(positions, span);
		check_model(span, span);
	}
}

static void
test_few_keys(void)
{
	size_t		n;
	int			round;

	for (n = 0; n <= 10; n++)
	{
		for (round = 0; round < 40; round++)
		{
			uint64_t   *keys = make_keys(round % DISTRIBUTIONS, n);

			/* Full-width spans, too. */
			if (n > 1 && round % 4 == 0)
			{
				keys[0] = 0;
				keys[n - 1] = UINT64_MAX;
			}
			check_all_ranges(keys, n, round % 2 ? SERVER_PAGE : 512);
		}
	}
}

static void
test_equal_keys(void)
{
	static const uint64_t values[] = {
		0, 1, INT64_MAX, (uint64_t) INT64_MAX + 1, UINT64_MAX
	};
	int			i;
	int			j;

	for (i = 0; i < 5; i++)
	{
		uint64_t   *keys = malloc(5000 * sizeof(uint64_t));
		Numbers		numbers;

		for (j = 0; j < 5000; j++)
			keys[j] = values[i];
		numbers = build_numbers(keys, 5000, 14, 512, 200);
		CHECK(numbers.run.nkeys == 1 && numbers.run.npages == 1 &&
			  numbers.run.kind == FILTER_KIND_EXACT, "%" PRIu64, values[i]);
		check_run(&numbers, 10);
		free_numbers(&numbers);
	}
}

static void
test_distributions(void)
{
	static const size_t sizes[] = {3, 100, 1000, 10000};
	static const uint32_t bits[] = {4, 8, 14, 24};
	int			distribution;
	int			i;
	int			j;

	for (distribution = 0; distribution < DISTRIBUTIONS; distribution++)
	{
		for (i = 0; i < 4; i++)
		{
			for (j = 0; j < 4; j++)
			{
				Numbers		numbers;
				uint32_t	page_size = (i + j) % 2 ? SERVER_PAGE : 512;
				uint64_t   *keys = make_keys(distribution, sizes[i]);

				unit_test = distribution_names[distribution];
				numbers = build_numbers(keys, sizes[i], bits[j], page_size,
										j % 2 ? SERVER_ROOT : 80);
				check_run(&numbers, 1500);
				free_numbers(&numbers);
			}
		}
	}
}

static void
test_many_keys(void)
{
	int			distribution;

	for (distribution = 0; distribution < DISTRIBUTIONS; distribution++)
	{
		uint64_t   *keys = make_keys(distribution, 100000);
		Numbers		numbers = build_numbers(keys, 100000, 14, SERVER_PAGE,
											SERVER_ROOT);

		unit_test = distribution_names[distribution];
		check_run(&numbers, 10000);
		free_numbers(&numbers);
	}
}

static void
test_a_million_keys(void)
{
	uint64_t   *keys = make_keys(UNIFORM, 1000000);
	Numbers		numbers = build_numbers(keys, 1000000, 14, SERVER_PAGE, 100);

	check_run(&numbers, 50000);
	free_numbers(&numbers);
}

/* Pages so small that fences take several levels. */
static void
test_small_pages(void)
{
	static const uint32_t sizes[] = {64, 72, 128, 256};
	int			distribution;
	int			i;

	for (distribution = 0; distribution < DISTRIBUTIONS; distribution++)
	{
		for (i = 0; i < 4; i++)
		{
			uint64_t   *keys = make_keys(distribution, 3000);
			Numbers		numbers = build_numbers(keys, 3000, 4 + 10 * (i % 2),
												sizes[i], 72);

			unit_test = distribution_names[distribution];
			check_run(&numbers, 1000);
			free_numbers(&numbers);
		}
	}
}

/* A point answered YES makes every range that holds it YES. */
static void
test_points_imply_ranges(void)
{
	int			distribution;

	for (distribution = 0; distribution < DISTRIBUTIONS; distribution++)
	{
		uint64_t   *keys = make_keys(distribution, 5000);
		Numbers		numbers = build_numbers(keys, 5000, 4, 512, 100);
		int			i;

		unit_test = distribution_names[distribution];
		for (i = 0; i < 3000; i++)
		{
			uint64_t	near = keys[unit_random_below(5000)];
			uint64_t	point = i % 3 == 0 ? unit_random() :
				near + (unit_random() >> unit_random_below(64));
			int			j;

			if (ask(&numbers, point, point) != FILTER_YES)
				continue;
			for (j = 0; j < 8; j++)
			{
				uint64_t	lo = subtract_capped(point, unit_random() >>
												 unit_random_below(64));
				uint64_t	hi = add_capped(point, unit_random() >>
											unit_random_below(64));

				CHECK(ask(&numbers, lo, hi) == FILTER_YES,
					  "[%" PRIu64 ", %" PRIu64 "] holds %" PRIu64, lo, hi, point);
				CHECK(ask(&numbers, lo, point) == FILTER_YES &&
					  ask(&numbers, point, hi) == FILTER_YES,
					  "%" PRIu64 " at an end", point);
			}
		}
		free_numbers(&numbers);
	}
}

/* Same keys with and without duplicates: the same pages. */
static void
test_duplicates_are_dropped(void)
{
	uint64_t   *keys = make_keys(DUPLICATES, 20000);
	uint64_t   *distinct = malloc(20000 * sizeof(uint64_t));
	Numbers		all = build_numbers(keys, 20000, 14, 512, 200);
	Numbers		once;
	size_t		n = 0;
	size_t		i;

	for (i = 0; i < 20000; i++)
	{
		if (n == 0 || keys[i] != distinct[n - 1])
			distinct[n++] = keys[i];
	}
	once = build_rows(distinct, n, 20000, 14, 512, 200);
	CHECK(all.run.nkeys == n, "%" PRIu64 " keys, not %zu", all.run.nkeys, n);
	CHECK(all.run.npages == once.run.npages &&
		  all.run.root_len == once.run.root_len &&
		  memcmp(all.run.pages, once.run.pages,
				 (size_t) once.run.npages * 512) == 0, "pages differ");
	free_numbers(&all);
	free_numbers(&once);
}

/* Content and fence pages stay within the budget and use it. */
static void
test_budget(void)
{
	static const uint32_t bits[] = {4, 5, 8, 14, 24, 64};
	int			distribution;
	int			i;

	for (distribution = 0; distribution < DISTRIBUTIONS; distribution++)
	{
		for (i = 0; i < 6; i++)
		{
			size_t		n = 1 + unit_random_below(30000);
			uint64_t   *keys = make_keys(distribution, n);
			Numbers		numbers = build_numbers(keys, n, bits[i], 512, 300);
			uint64_t	budget = bits[i] * numbers.run.nkeys;

			unit_test = distribution_names[distribution];
			if (numbers.run.kind == FILTER_KIND_EXACT && budget < 2 * n)
				budget = 2 * n;
			CHECK(run_bits(&numbers) <= budget || numbers.run.npages == 1,
				  "%" PRIu64 " bits, budget %" PRIu64, run_bits(&numbers), budget);
			if (numbers.run.kind == FILTER_KIND_SNARF)
				CHECK(run_bits(&numbers) + 4 * 512 * 8 > budget,
					  "%" PRIu64 " bits, budget %" PRIu64, run_bits(&numbers),
					  budget);
			free_numbers(&numbers);
		}
	}
}

/* One page is enough to hold some hundred keys as they are. */
static void
test_some_hundred_keys_are_exact(void)
{
	int			distribution;

	for (distribution = 0; distribution < DISTRIBUTIONS; distribution++)
	{
		uint64_t   *keys = make_keys(distribution, 900);
		Numbers		numbers = build_numbers(keys, 900, 4, SERVER_PAGE,
											SERVER_ROOT);

		unit_test = distribution_names[distribution];
		CHECK(numbers.run.kind == FILTER_KIND_EXACT, "kind %d", numbers.run.kind);
		check_run(&numbers, 900);
		free_numbers(&numbers);
	}
}

/* Exact whenever that fits two bits per row, however few distinct keys. */
static void
test_rows_pay_for_exact(void)
{
	uint64_t	nrows;

	for (nrows = 20000; nrows <= 2000000; nrows *= 100)
	{
		uint64_t   *keys = make_keys(UNIFORM, 20000);
		Numbers		numbers = build_rows(keys, 20000, nrows, 14, SERVER_PAGE,
										 SERVER_ROOT);
		bool		few = nrows == 20000;

		CHECK(numbers.run.kind == (few ? FILTER_KIND_SNARF : FILTER_KIND_EXACT),
			  "%" PRIu64 " rows, kind %d", nrows, numbers.run.kind);
		CHECK(run_bits(&numbers) <= (few ? 14 : 2) * nrows, "%u pages",
			  numbers.run.npages);
		check_run(&numbers, 5000);
		free_numbers(&numbers);
	}
}

/* Ids that are nearly dense cost a few bits and have no false positives. */
static void
test_dense_ids_are_cheap(void)
{
	static const Distribution dense[] = {CLUSTERED, HOLES, SERIAL};
	static const double limits[] = {5, 1.4, 0.7};
	int			i;

	for (i = 0; i < 3; i++)
	{
		uint64_t   *keys = make_keys(dense[i], 100000);
		Numbers		numbers = build_numbers(keys, 100000, 14, SERVER_PAGE,
											SERVER_ROOT);
		double		bits = (double) run_bits(&numbers) / 100000;

		unit_test = distribution_names[dense[i]];
		CHECK(numbers.run.kind == FILTER_KIND_EXACT, "kind %d", numbers.run.kind);
		CHECK(bits < limits[i], "%.2f bits per key", bits);
		check_run(&numbers, 5000);
		free_numbers(&numbers);
	}
}

/*
 * The law: at most 2^-(b - 2.6) with b the bits per key of all there is.
 * With 200,000 queries the sampling error of these rates is below a fifth.
 */
static void
test_false_positive_law(void)
{
	static const Distribution kinds[] = {UNIFORM, NORMAL, TIMESTAMPS};
	static const uint32_t bits[] = {8, 10, 12};
	static const uint64_t widths[] = {1, 100, UINT64_C(1) << 30};
	int			i;
	int			j;
	int			k;

	for (i = 0; i < 3; i++)
	{
		for (j = 0; j < 3; j++)
		{
			uint64_t   *keys = make_keys(kinds[i], 200000);
			Numbers		numbers = build_numbers(keys, 200000, bits[j],
												SERVER_PAGE, SERVER_ROOT);
			double		real_bits = ((double) run_bits(&numbers) +
									 8.0 * numbers.run.root_len) / 200000;
			double		law = pow(2, 2.6 - real_bits);

			unit_test = distribution_names[kinds[i]];
			CHECK(numbers.run.kind == FILTER_KIND_SNARF, "kind %d",
				  numbers.run.kind);
			for (k = 0; k < 3; k++)
			{
				double		rate;

				/* Timestamps have no gaps of 2^30. */
				if (kinds[i] == TIMESTAMPS && k == 2)
					continue;
				rate = false_positive_rate(&numbers, widths[k], 200000);
				CHECK(rate < law * 1.2, "%.5f, law %.5f at %.2f bits, width %"
					  PRIu64, rate, law, real_bits, widths[k]);
			}
			free_numbers(&numbers);
		}
	}
}

/*
 * Reference SNARF: the largest key of each piece of the model was put into
 * the last piece.  Every key here, so also each piece's last, is found, and
 * nothing is found beyond the last key of a cluster.
 */
static void
test_bug_largest_key_of_a_piece(void)
{
	uint64_t   *keys = make_keys(SPARSE_CLUSTERS, 20000);
	Numbers		numbers = build_numbers(keys, 20000, 14, SERVER_PAGE,
										SERVER_ROOT);
	int			wide_gaps = 0;
	int			yes = 0;
	size_t		i;

	CHECK(numbers.run.kind == FILTER_KIND_SNARF, "kind %d", numbers.run.kind);
	for (i = 0; i < numbers.n; i++)
	{
		check_range(&numbers, keys[i], keys[i]);
		if (i + 1 < numbers.n && keys[i + 1] - keys[i] > UINT64_C(1) << 40)
		{
			uint64_t	middle = keys[i] + (keys[i + 1] - keys[i]) / 2;

			wide_gaps++;
			yes += ask(&numbers, middle, keys[i + 1] - 1) != FILTER_NO;
			yes += ask(&numbers, keys[i] + (UINT64_C(1) << 32),
					   middle) != FILTER_NO;
		}
	}
	CHECK(wide_gaps > 10 && yes == 0, "%d of %d wide gaps are not NO", yes,
		  2 * wide_gaps);
	free_numbers(&numbers);
}

/*
 * Reference SNARF: low - 1 wrapped around where low is the first position of
 * a block.  Ranges that begin at 0, at each key and right after it.
 */
static void
test_bug_low_end_of_a_block(void)
{
	uint64_t   *keys = make_keys(UNIFORM, 20000);
	Numbers		numbers;
	size_t		i;

	keys[0] = 0;
	numbers = build_numbers(keys, 20000, 8, 512, SERVER_ROOT);
	check_range(&numbers, 0, 0);
	for (i = 0; i + 1 < numbers.n; i++)
	{
		check_range(&numbers, keys[i], keys[i] + 1);
		check_range(&numbers, keys[i] + 1, keys[i + 1]);
		check_range(&numbers, keys[i] + 1, keys[i] + 1);
		check_range(&numbers, 0, keys[i]);
	}
	free_numbers(&numbers);
}

/* Reference SNARF: duplicates made slopes of the model infinite. */
static void
test_bug_duplicates(void)
{
	uint64_t   *keys = make_keys(UNIFORM, 30000);
	Numbers		numbers;
	int			i;

	/* Runs of equal keys longer than any block, among others. */
	for (i = 1; i < 30000; i++)
	{
		if (i % 3000 > 600)
			keys[i] = keys[i - 1];
	}
	numbers = build_numbers(keys, 30000, 8, 512, SERVER_ROOT);
	check_run(&numbers, 10000);
	free_numbers(&numbers);
}

/* Reference SNARF: arithmetic overflowed for keys over 2^60. */
static void
test_bug_keys_over_2_60(void)
{
	uint64_t   *keys = make_keys(EXTREMES, 20000);
	Numbers		numbers;

	keys[0] = 0;
	keys[19999] = UINT64_MAX;
	numbers = build_numbers(keys, 20000, 4, 512, SERVER_ROOT);
	check_run(&numbers, 20000);
	free_numbers(&numbers);
}

/*
 * Reference SNARF: doubles, which differ between compilers and do not tell
 * keys over 2^53 apart.
 */
static void
test_bug_doubles(void)
{
	uint64_t   *keys = malloc(3000 * sizeof(uint64_t));
	Numbers		numbers;
	int			i;

	for (i = 0; i < 3000; i++)
		keys[i] = (UINT64_C(1) << 62) + 2 * i;
	numbers = build_numbers(keys, 3000, 14, SERVER_PAGE, SERVER_ROOT);
	for (i = 0; i < 3000; i++)
	{
		check_range(&numbers, keys[i], keys[i]);
		CHECK(ask(&numbers, keys[i] + 1, keys[i] + 1) == FILTER_NO, "%d", i);
	}
	free_numbers(&numbers);
}

/* Reference SNARF: queries outside [min, max] were answered "maybe". */
static void
test_bug_outside_of_all_keys(void)
{
	uint64_t   *keys = make_keys(NORMAL, 20000);
	Numbers		numbers = build_numbers(keys, 20000, 4, SERVER_PAGE,
										SERVER_ROOT);
	uint64_t	min = keys[0];
	uint64_t	max = keys[19999];

	CHECK(ask(&numbers, 0, min - 1) == FILTER_NO, "below");
	CHECK(ask(&numbers, min - 1, min - 1) == FILTER_NO, "just below");
	CHECK(ask(&numbers, max + 1, UINT64_MAX) == FILTER_NO, "above");
	CHECK(ask(&numbers, max + 1, max + 1) == FILTER_NO, "just above");
	CHECK(ask(&numbers, 0, min) == FILTER_YES, "least key");
	CHECK(ask(&numbers, max, UINT64_MAX) == FILTER_YES, "greatest key");
	free_numbers(&numbers);
}

/*
 * Reference Grafite: of a range over two of its blocks only one was tested.
 * Ranges of all lengths from one key to another cross blocks and pages.
 */
static void
test_bug_ranges_across_blocks(void)
{
	uint64_t   *keys = make_keys(TIMESTAMPS, 3000);
	Numbers		numbers = build_numbers(keys, 3000, 4, 256, SERVER_ROOT);
	size_t		i;
	size_t		step;

	for (i = 0; i < 3000; i++)
	{
		for (step = 1; i + step < 3000; step = step * 3 / 2 + 1)
		{
			check_range(&numbers, keys[i] + 1, keys[i + step]);
			check_range(&numbers, keys[i], keys[i + step] - 1);
		}
	}
	free_numbers(&numbers);
}

/*
 * Pages are the same whatever compiled the library, and a change of their
 * format is noticed (it needs another magic number).
 */
static void
test_pages_are_reproducible(void)
{
	uint64_t   *keys = malloc(20000 * sizeof(uint64_t));
	uint64_t	hash = UINT64_C(14695981039346656037);
	Numbers		numbers;
	size_t		i;

	for (i = 0; i < 20000; i++)
		keys[i] = i * i * i * UINT64_C(1000003) + (i % 7 == 0 ? i : 0);
	qsort(keys, 20000, sizeof(uint64_t), compare_numbers);
	numbers = build_numbers(keys, 20000, 10, SERVER_PAGE, SERVER_ROOT);
	for (i = 0; i < (size_t) numbers.run.npages * SERVER_PAGE; i++)
		hash = (hash ^ numbers.run.pages[i]) * UINT64_C(1099511628211);
	for (i = 0; i < numbers.run.root_len; i++)
		hash = (hash ^ numbers.run.root[i]) * UINT64_C(1099511628211);
	CHECK(hash == UINT64_C(13594952540780742642), "%" PRIu64, hash);
	free_numbers(&numbers);
}

/* A query reads the way to one content page, each page once. */
static void
test_pages_read(void)
{
	uint64_t   *keys = make_keys(UNIFORM, 100000);
	Numbers		numbers = build_numbers(keys, 100000, 14, 512, SERVER_ROOT);
	int			most = 0;
	int			i;

	for (i = 0; i < 5000; i++)
	{
		StrictReader reader;
		uint64_t	lo = unit_random();
		uint64_t	hi = add_capped(lo, unit_random() >> unit_random_below(64));
		FilterAnswer answer;

		strict_reader_init(&reader, numbers.run.pages, numbers.run.npages, 512);
		answer = filter_query_u64(numbers.run.kind, numbers.run.root,
								  numbers.run.root_len, &reader.reader, lo, hi);
		CHECK(answer == ask(&numbers, lo, hi), "strict reader");
		if (reader.reads > most)
			most = reader.reads;
		strict_reader_end(&reader);
	}
	CHECK(most == 2, "%d pages read", most);
	free_numbers(&numbers);
}

/* No root, no pages, pages that cannot be read: no answer, no crash. */
static void
test_missing_parts(void)
{
	uint64_t   *keys = make_keys(UNIFORM, 5000);
	Numbers		numbers = build_numbers(keys, 5000, 14, 512, 200);
	uint64_t	key = keys[2500];
	uint32_t	len = numbers.run.root_len;

	CHECK(ask(&numbers, key, key) == FILTER_YES, "intact");
	for (numbers.run.root_len = 0; numbers.run.root_len < len;
		 numbers.run.root_len++)
		CHECK(ask(&numbers, key, key) == FILTER_UNKNOWN, "root of %u of %u",
			  numbers.run.root_len, len);
	numbers.reader.reader.npages = 0;
	CHECK(ask(&numbers, key, key) == FILTER_UNKNOWN, "no pages");
	numbers.reader.reader.npages = numbers.run.npages;
	numbers.run.kind = FILTER_KIND_SURF;
	CHECK(ask(&numbers, key, key) == FILTER_UNKNOWN, "wrong kind");
	free_numbers(&numbers);
}

/* Changes bytes: anywhere, or where directories and roots have their counts. */
static void
damage(uint8_t *bytes, size_t len, uint32_t page_size)
{
	int			changes = (int) unit_random_below(12);

	while (changes-- > 0)
	{
		size_t		at = unit_random_below(len);

		if (changes % 3 != 0)
		{
			size_t		page = at / page_size * page_size;
			size_t		back = 1 + unit_random_below(60);

			at = page + (back < page_size ? page_size - back : 0);
		}
		if (at < len)
			bytes[at] = unit_random_below(2) == 0 ? (uint8_t) unit_random() :
				(uint8_t) (bytes[at] + unit_random_below(3) - 1);
	}
}

/* Asks damaged copies; ASan and the strict reader watch. */
static void
check_damaged(Numbers *numbers, int rounds)
{
	size_t		size = (size_t) numbers->run.npages * numbers->page_size;

	while (rounds-- > 0)
	{
		uint32_t	len = unit_random_below(8) > 0 ? numbers->run.root_len :
			unit_random_below(numbers->run.root_len + 1);
		uint8_t    *pages = malloc(size);
		uint8_t    *root = malloc(len > 0 ? len : 1);
		StrictReader reader;
		int			i;

		memcpy(pages, numbers->run.pages, size);
		memcpy(root, numbers->run.root, len);
		damage(pages, size, numbers->page_size);
		if (rounds % 4 == 0)
		{
			for (i = 0; i < (int) numbers->page_size; i++)
				pages[i] = (uint8_t) unit_random();
		}
		if (rounds % 2 == 0 && len > 24)
			damage(root + 8, len - 8, 64);
		strict_reader_init(&reader, pages, numbers->run.npages,
						   numbers->page_size);
		for (i = 0; i < 20; i++)
		{
			uint64_t	lo = numbers->keys[unit_random_below(numbers->n)] +
				(unit_random() >> unit_random_below(64));
			uint64_t	hi = add_capped(lo, unit_random() >>
										unit_random_below(64));
			FilterAnswer answer = filter_query_u64(FILTER_KIND_SNARF, root, len,
												   &reader.reader, lo, hi);

			CHECK(answer <= FILTER_UNKNOWN, "answer %d", answer);
		}
		CHECK(strict_reader_end(&reader), "%d reads", reader.reads);
		free(pages);
		free(root);
	}
}

static void
test_hostile_bytes(void)
{
	int			distribution;

	for (distribution = 0; distribution < DISTRIBUTIONS; distribution++)
	{
		uint64_t   *keys = make_keys(distribution, 2000);
		Numbers		numbers = build_numbers(keys, 2000, 8, 512, 80);

		unit_test = distribution_names[distribution];
		check_damaged(&numbers, 1500);
		free_numbers(&numbers);

		/* One page: no fence keeps queries from it. */
		keys = make_keys(distribution, 300);
		numbers = build_numbers(keys, 300, 8, 1024, 80);
		check_damaged(&numbers, 1500);
		free_numbers(&numbers);
	}
}

int
main(void)
{
	unit_begin("snarf");
	RUN(test_model);
	RUN(test_few_keys);
	RUN(test_equal_keys);
	RUN(test_distributions);
	RUN(test_many_keys);
	RUN(test_a_million_keys);
	RUN(test_small_pages);
	RUN(test_points_imply_ranges);
	RUN(test_duplicates_are_dropped);
	RUN(test_budget);
	RUN(test_some_hundred_keys_are_exact);
	RUN(test_rows_pay_for_exact);
	RUN(test_dense_ids_are_cheap);
	RUN(test_false_positive_law);
	RUN(test_bug_largest_key_of_a_piece);
	RUN(test_bug_low_end_of_a_block);
	RUN(test_bug_duplicates);
	RUN(test_bug_keys_over_2_60);
	RUN(test_bug_doubles);
	RUN(test_bug_outside_of_all_keys);
	RUN(test_bug_ranges_across_blocks);
	RUN(test_pages_are_reproducible);
	RUN(test_pages_read);
	RUN(test_missing_parts);
	RUN(test_hostile_bytes);
	return unit_end();
}
