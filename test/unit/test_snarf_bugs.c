/*-------------------------------------------------------------------------
 *
 * test_snarf_bugs.c
 *	  The bugs of other range filters over numbers, one test each.
 *
 * Each was found in, or read from, the authors' code of SNARF or Grafite.
 *
 *-------------------------------------------------------------------------
 */
#include "numbers.h"

/*
 * Reference SNARF: the largest key of each piece of the model was put into
 * the last piece.  Every key here, so also each piece's last, is found, and
 * nothing is found in what is left of the gaps between clusters when as much
 * as a cluster's positions may be wide is taken off at either end.
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
			yes += ask(&numbers, middle,
					   keys[i + 1] - (UINT64_C(1) << 32)) != FILTER_NO;
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

int
main(void)
{
	unit_begin("snarf_bugs");
	RUN(test_bug_largest_key_of_a_piece);
	RUN(test_bug_low_end_of_a_block);
	RUN(test_bug_duplicates);
	RUN(test_bug_keys_over_2_60);
	RUN(test_bug_doubles);
	RUN(test_bug_outside_of_all_keys);
	RUN(test_bug_ranges_across_blocks);
	return unit_end();
}
