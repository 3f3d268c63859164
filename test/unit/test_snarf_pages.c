/*-------------------------------------------------------------------------
 *
 * test_snarf_pages.c
 *	  How SNARF queries read pages, and what damaged ones may do to them.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/snarf/digest.h"

#include "numbers.h"

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
		uint64_t	hi = add_capped(lo, random_magnitude());
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

/*
 * Sets bits of the shift of all pages: a page whose keys are coded in a way that
 * this version does not know.
 */
static void
set_shift_bits(Numbers *numbers, uint8_t bits)
{
	uint32_t	i;

	for (i = 0; i < numbers->run.npages; i++)
		numbers->run.pages[(i + 1) * numbers->page_size - 1] |= bits;
}

/*
 * Pages coded in an unknown way deny no key and count none: an earlier version
 * of the library kept the highest bit of a page's shift for another coding.
 */
static void
test_unknown_coding(void)
{
	static const uint8_t bits[] = {64, 128, 192};
	int			distribution;
	int			i;
	size_t		j;

	for (distribution = 0; distribution < DISTRIBUTIONS; distribution++)
	{
		for (i = 0; i < 3; i++)
		{
			uint64_t   *keys = make_keys(distribution, 3000);
			Numbers		numbers = build_numbers(keys, 3000, 12, 512, SERVER_ROOT);
			FilterReader *reader = &numbers.reader.reader;
			FilterDigest digest = {.nbits = 1000,.nbuckets = 1000};
			FilterRanks ranks;
			uint64_t	count;

			unit_test = distribution_names[distribution];
			set_shift_bits(&numbers, bits[i]);
			for (j = 0; j < numbers.n; j++)
			{
				uint64_t	between = keys[j] + 1;

				CHECK(ask(&numbers, keys[j], keys[j]) != FILTER_NO, "a key");
				if (between <= keys[0] || between >= keys[numbers.n - 1])
					continue;
				CHECK(ask(&numbers, between, between) != FILTER_NO, "between keys");
				CHECK(!ask_count(&numbers, between, between, &count), "count");
				CHECK(!filter_ranks_u64(numbers.run.kind, numbers.run.root,
										numbers.run.root_len, reader, between,
										between, &ranks), "ranks");
			}
			digest.bits = calloc(filter_digest_size(1000), 1);
			CHECK(!filter_digest_make(&digest, numbers.run.kind, numbers.run.root,
									  numbers.run.root_len, reader), "digest");
			free(digest.bits);
			free_numbers(&numbers);
		}
	}
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
		uint32_t	len = numbers->run.root_len;
		uint8_t    *pages = malloc(size);
		uint8_t    *root;
		StrictReader reader;
		int			i;

		if (unit_random_below(8) == 0)
			len = unit_random_below(len + 1);
		root = malloc(len > 0 ? len : 1);
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
			uint64_t	key = numbers->keys[unit_random_below(numbers->n)];
			uint64_t	lo = key + random_magnitude();
			uint64_t	hi = add_capped(lo, random_magnitude());
			FilterAnswer answer = filter_query_u64(FILTER_KIND_SNARF, root, len,
												   &reader.reader, lo, hi);
			uint64_t	count;

			filter_count_u64(FILTER_KIND_SNARF, root, len, &reader.reader,
							 lo, hi, &count);
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
	unit_begin("snarf_pages");
	RUN(test_pages_read);
	RUN(test_missing_parts);
	RUN(test_unknown_coding);
	RUN(test_hostile_bytes);
	return unit_end();
}
