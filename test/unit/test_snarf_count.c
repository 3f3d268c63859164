/*-------------------------------------------------------------------------
 *
 * test_snarf_count.c
 *	  Counts of keys in ranges; check_range() in numbers.h tests them, too.
 *
 *-------------------------------------------------------------------------
 */
#include "numbers.h"

/* Exact runs count exactly, however many pages the range crosses. */
static void
test_exact_counts(void)
{
	static const Distribution kinds[] = {CLUSTERED, HOLES, SERIAL, DUPLICATES};
	int			i;
	int			j;

	for (i = 0; i < 4; i++)
	{
		uint64_t   *keys = make_keys(kinds[i], 100000);
		Numbers		numbers = build_numbers(keys, 100000, 20, 512, SERVER_ROOT);

		unit_test = distribution_names[kinds[i]];
		CHECK(numbers.run.kind == FILTER_KIND_EXACT, "kind %d",
			  numbers.run.kind);
		for (j = 0; j < 20000; j++)
		{
			uint64_t	a = keys[unit_random_below(100000)] + unit_random_below(3);
			uint64_t	b = keys[unit_random_below(100000)] + unit_random_below(3);
			uint64_t	count;

			if (a > b)
				continue;
			CHECK(ask_count(&numbers, a, b, &count) &&
				  count == count_of(&numbers, a, b), "[%" PRIu64 ", %" PRIu64
				  "] has %" PRIu64 " keys", a, b, count);
		}
		free_numbers(&numbers);
	}
}

/* The whole domain and what lies outside of all keys, for 0 keys and more. */
static void
test_counts_at_the_ends(void)
{
	static const size_t sizes[] = {0, 1, 2, 3, 10, 100, 10000};
	int			distribution;
	int			i;

	for (distribution = 0; distribution < DISTRIBUTIONS; distribution++)
	{
		for (i = 0; i < 7; i++)
		{
			uint64_t   *keys = make_keys(distribution, sizes[i]);
			Numbers		numbers = build_numbers(keys, sizes[i], 8, 512, 100);
			uint64_t	count = 1;

			unit_test = distribution_names[distribution];
			CHECK(ask_count(&numbers, 0, UINT64_MAX, &count) &&
				  count == numbers.ndistinct, "%" PRIu64 " of %zu keys", count,
				  numbers.ndistinct);
			CHECK(ask_count(&numbers, 1, 0, &count) && count == 0, "lo > hi");
			if (sizes[i] > 0)
			{
				uint64_t	min = keys[0];
				uint64_t	max = keys[sizes[i] - 1];

				CHECK(ask_count(&numbers, min, max, &count) &&
					  count == numbers.ndistinct, "from end to end");
				CHECK(min == 0 || (ask_count(&numbers, 0, min - 1, &count) &&
								   count == 0), "below");
				CHECK(max == UINT64_MAX ||
					  (ask_count(&numbers, max + 1, UINT64_MAX, &count) &&
					   count == 0), "above");
			}
			free_numbers(&numbers);
		}
	}
}

/* The error over many ranges is that of snarf_count.c: 2^-(b-2) an end. */
static void
test_error_of_counts(void)
{
	static const uint32_t bits[] = {8, 12};
	int			i;
	int			j;

	for (i = 0; i < 2; i++)
	{
		uint64_t   *keys = make_keys(UNIFORM, 200000);
		Numbers		numbers = build_numbers(keys, 200000, bits[i], SERVER_PAGE,
											SERVER_ROOT);
		uint64_t	errors = 0;

		CHECK(numbers.run.kind == FILTER_KIND_SNARF, "kind %d",
			  numbers.run.kind);
		for (j = 0; j < 100000; j++)
		{
			uint64_t	lo = unit_random();
			uint64_t	hi = add_capped(lo, unit_random() >> 1);
			uint64_t	count;

			CHECK(ask_count(&numbers, lo, hi, &count), "%d", j);
			errors += count - count_of(&numbers, lo, hi);
		}
		CHECK(errors < 1.2 * 2 * 100000 * pow(2, 2.6 - bits[i]),
			  "%" PRIu64 " keys too many in 100,000 ranges at %u bits", errors,
			  bits[i]);
		free_numbers(&numbers);
	}
}

/* The ways to two content pages, whatever the range. */
static void
test_pages_read(void)
{
	uint64_t   *keys = make_keys(UNIFORM, 100000);
	Numbers		numbers = build_numbers(keys, 100000, 14, 512, SERVER_ROOT);
	int			most = 0;
	int			i;

	for (i = 0; i < 1000; i++)
	{
		StrictReader reader;
		uint64_t	lo = unit_random();
		uint64_t	hi = add_capped(lo, unit_random());
		uint64_t	count = 0;
		uint64_t	same = 0;

		strict_reader_init(&reader, numbers.run.pages, numbers.run.npages, 512);
		CHECK(filter_count_u64(numbers.run.kind, numbers.run.root,
							   numbers.run.root_len, &reader.reader, lo, hi,
							   &count) &&
			  ask_count(&numbers, lo, hi, &same) && count == same,
			  "strict reader");
		if (reader.reads > most)
			most = reader.reads;
		strict_reader_end(&reader);
	}
	CHECK(most == 4, "%d pages read", most);
	free_numbers(&numbers);
}

/* No root, no pages, wrong kind: no count. */
static void
test_missing_parts(void)
{
	uint64_t   *keys = make_keys(UNIFORM, 5000);
	Numbers		numbers = build_numbers(keys, 5000, 14, 512, 200);
	uint32_t	len = numbers.run.root_len;
	uint64_t	count;

	CHECK(ask_count(&numbers, keys[10], keys[4000], &count), "intact");
	for (numbers.run.root_len = 0; numbers.run.root_len < len;
		 numbers.run.root_len++)
		CHECK(!ask_count(&numbers, keys[10], keys[4000], &count),
			  "root of %u of %u", numbers.run.root_len, len);
	numbers.reader.reader.npages = 0;
	CHECK(!ask_count(&numbers, keys[10], keys[4000], &count), "no pages");
	numbers.reader.reader.npages = numbers.run.npages;
	numbers.run.kind = FILTER_KIND_SURF;
	CHECK(!ask_count(&numbers, keys[10], keys[4000], &count), "wrong kind");
	free_numbers(&numbers);
}

int
main(void)
{
	unit_begin("snarf_count");
	RUN(test_exact_counts);
	RUN(test_counts_at_the_ends);
	RUN(test_error_of_counts);
	RUN(test_pages_read);
	RUN(test_missing_parts);
	return unit_end();
}
