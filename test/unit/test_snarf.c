/*-------------------------------------------------------------------------
 *
 * test_snarf.c
 *	  SNARF runs against the sorted array of their keys.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/snarf/snarf_page.h"
#include "numbers.h"

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
		uint64_t	stretch = numbers->keys[i + 50] - numbers->keys[i];
		uint64_t	lo = numbers->keys[i] + unit_random_below(stretch + 1);

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

/* A million keys, those at the ends of the domain among them. */
static void
test_a_million_keys(void)
{
	static const Distribution kinds[] = {UNIFORM, TIMESTAMPS, DUPLICATES};
	int			i;

	for (i = 0; i < 3; i++)
	{
		uint64_t   *keys = make_keys(kinds[i], 1000000);
		Numbers		numbers;

		keys[0] = 0;
		keys[999999] = UINT64_MAX;
		numbers = build_numbers(keys, 1000000, 14, SERVER_PAGE, 100);
		unit_test = distribution_names[kinds[i]];
		check_run(&numbers, 20000);
		free_numbers(&numbers);
	}
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
												sizes[i], 76);

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
			uint64_t	point = unit_random();
			int			j;

			if (i % 3 != 0)
				point = keys[unit_random_below(5000)] + random_magnitude();
			if (ask(&numbers, point, point) != FILTER_YES)
				continue;
			for (j = 0; j < 8; j++)
			{
				uint64_t	lo = subtract_capped(point, random_magnitude());
				uint64_t	hi = add_capped(point, random_magnitude());

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

/*
 * Content and fence pages stay within the budget, unless one fewer would leave less than
 * three quarters of it, and use it.
 */
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
			CHECK(run_bits(&numbers) <= budget || numbers.run.npages == 1 ||
				  4 * (run_bits(&numbers) - 512 * 8) < 3 * budget,
				  "%" PRIu64 " bits, budget %" PRIu64, run_bits(&numbers), budget);
			if (numbers.run.kind == FILTER_KIND_SNARF)
				CHECK(run_bits(&numbers) + 4 * 512 * 8 > budget &&
					  (numbers.run.npages > 3 || 4 * run_bits(&numbers) >= 3 * budget),
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

/* Half the keys are dense and need few bits; the others get the rest. */
static void
test_dense_keys_leave_their_bits(void)
{
	uint64_t   *keys = make_keys(MIXED, 20000);
	Numbers		numbers = build_numbers(keys, 20000, 14, SERVER_PAGE,
										SERVER_ROOT);
	double		rate;

	CHECK(numbers.run.kind == FILTER_KIND_SNARF, "kind %d", numbers.run.kind);
	CHECK(run_bits(&numbers) <= 14 * 20000, "%u pages", numbers.run.npages);
	rate = false_positive_rate(&numbers, 100, 300000);
	CHECK(rate < pow(2, 2.6 - 18), "%.6f", rate);
	check_run(&numbers, 5000);
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
	CHECK(hash == UINT64_C(9343517636022501065), "%" PRIu64, hash);
	free_numbers(&numbers);
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
	RUN(test_dense_keys_leave_their_bits);
	RUN(test_pages_are_reproducible);
	return unit_end();
}
