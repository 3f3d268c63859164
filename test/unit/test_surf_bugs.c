/*-------------------------------------------------------------------------
 *
 * test_surf_bugs.c
 *	  SuRF where other implementations are known to go wrong.
 *
 *-------------------------------------------------------------------------
 */
#include "byte_keys.h"

/* Asks a run of a few keys about all ranges between strings of a few letters. */
static void
check_all_short_ranges(Strings *strings, const char *letters, uint32_t nletters)
{
	FilterBytes bounds[200];
	uint32_t	nbounds = 0;
	uint32_t	i;
	uint32_t	j;

	bounds[nbounds++] = bytes_of("");
	for (i = 0; nbounds + nletters <= 200; i++)
		for (j = 0; j < nletters; j++)
		{
			uint8_t		bytes[16];
			uint32_t	len = bounds[i].len;

			memcpy(bytes, bounds[i].data, len);
			bytes[len] = (uint8_t) letters[j];
			bounds[nbounds++] = copy_bytes(bytes, len + 1);
		}

	for (i = 0; i < nbounds; i++)
		for (j = 0; j < nbounds; j++)
		{
			check_between(strings, bounds[i], bounds[j], false);
			check_between(strings, bounds[i], bounds[j], true);
		}
	for (i = 0; i < nbounds; i++)
		free_bytes(bounds[i]);
}

/* The same for all kinds of suffixes and several budgets. */
static void
check_few(const char *const *few, size_t n, const char *letters, uint32_t nletters)
{
	int			suffix;
	int			bits;

	for (suffix = FILTER_SUFFIX_NONE; suffix <= FILTER_SUFFIX_MIXED; suffix++)
		for (bits = 0; bits < 3; bits++)
		{
			/* In pages of 64 bytes, few keys need several. */
			FilterOptions options = make_options((FilterSuffix) suffix, 14,
												 64 << (2 * bits), 300);
			Strings		strings = build_few(few, n, &options);

			check_all_short_ranges(&strings, letters, nletters);
			free_strings(&strings);
		}
}

/*
 * The reference missed keys where the right bound is a key that is a prefix
 * of another key.
 */
static void
test_right_bound_is_prefix_of_a_key(void)
{
	static const char *const few[] = {"a", "ab", "abc", "abcd", "b", "bcab", "bcabd"};

	check_few(few, 7, "abcd", 4);
	check_few(few + 1, 2, "abcd", 4);
	check_few(few + 5, 2, "abcd", 4);
}

/* The reference took 0xFF for its terminator. */
static void
test_bytes_of_0xff(void)
{
	static const char *const few[] = {
		"\xfe", "\xfe\xff", "\xff", "\xff\xfe", "\xff\xff", "\xff\xff\xff",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
	};

	check_few(few, 7, "\xff\xfe\x01", 3);
	check_few(few + 2, 3, "\xff\xfe\x01", 3);
}

/* The reference compared real suffixes without their lengths. */
static void
test_keys_end_within_suffixes(void)
{
	uint8_t		zeros[40];
	FilterOptions options = make_options(FILTER_SUFFIX_REAL, 14, PAGE_SIZE, 2500);
	uint32_t	skipped;

	memset(zeros, 0, sizeof(zeros));
	for (skipped = 0; skipped < 40; skipped += 3)
	{
		FilterBytes *keys = malloc(20 * sizeof(FilterBytes));
		Strings		strings;
		uint32_t	i;

		/* Zeros of every other length from some on. */
		for (i = 0; i < 20; i++)
			keys[i] = copy_bytes(zeros, 2 * i > skipped ? 2 * i : skipped);
		strings = build(keys, 20, &options);
		for (i = 0; i < 40; i++)
		{
			FilterBytes bound = {zeros, i};
			uint32_t	j;

			for (j = i; j < 40; j++)
			{
				FilterBytes other = {zeros, j};

				check_between(&strings, bound, other, false);
				check_between(&strings, bound, other, true);
			}

			/* There is room for whole keys: lengths are told apart. */
			CHECK(check_between(&strings, bound, bound, false) ==
				  (rank_of(&strings, bound, true) > rank_of(&strings, bound, false) ?
				   FILTER_YES : FILTER_NO), "%u zeros", i);
		}
		free_strings(&strings);
	}
}

/* The reference aborted on an empty left bound. */
static void
test_empty_left_key(void)
{
	static const char *const few[] = {"", "a", "b"};
	FilterOptions options = make_options(FILTER_SUFFIX_REAL, 14, PAGE_SIZE, 2500);
	FilterBytes null = {NULL, 0};
	FilterBytes a = bytes_of("a");
	Strings		strings = build_few(few + 1, 2, &options);

	CHECK(check_between(&strings, null, null, false) == FILTER_NO, "no empty key");
	CHECK(check_between(&strings, null, a, true) == FILTER_NO, "nothing below");
	CHECK(check_between(&strings, null, a, false) == FILTER_YES, "a");
	free_strings(&strings);

	strings = build_few(few, 3, &options);
	CHECK(check_between(&strings, null, null, false) == FILTER_YES, "empty key");
	CHECK(check_between(&strings, null, a, true) == FILTER_YES, "empty key");
	free_strings(&strings);
	free_bytes(a);
	check_few(few, 3, "ab", 2);
}

/* The reference's queries changed shared iterators. */
static void
test_queries_change_nothing(void)
{
	FilterOptions options = make_options(FILTER_SUFFIX_MIXED, 10, SMALL_PAGE, 2500);
	Strings		strings = build_random(WORDS, 5000, &options);
	size_t		len = (size_t) strings.run.npages * SMALL_PAGE;
	uint8_t    *before = malloc(len);
	FilterByteRange ranges[1000];
	FilterAnswer answers[1000];
	int			i;

	memcpy(before, strings.run.pages, len);
	for (i = 0; i < 1000; i++)
	{
		ranges[i] = make_range(make_bound(&strings, WORDS),
							   make_bound(&strings, WORDS));
		answers[i] = ask(&strings, &ranges[i]);
	}
	for (i = 999; i >= 0; i--)
	{
		CHECK(ask(&strings, &ranges[i]) == answers[i], "query %d", i);
		free_bytes(ranges[i].lo);
		free_bytes(ranges[i].hi);
	}
	CHECK(memcmp(before, strings.run.pages, len) == 0, "pages");
	free(before);
	free_strings(&strings);
}

/* Bytes no key has lead between the others, wherever they stand. */
static void
test_bytes_that_no_key_has(void)
{
	static const char *const few[] = {"bb", "bbd", "bf", "d", "dd", "ddb", "f"};

	check_few(few, 7, "abcdefg", 7);
}

int
main(void)
{
	unit_begin("surf bugs");
	RUN(test_right_bound_is_prefix_of_a_key);
	RUN(test_bytes_of_0xff);
	RUN(test_keys_end_within_suffixes);
	RUN(test_empty_left_key);
	RUN(test_queries_change_nothing);
	RUN(test_bytes_that_no_key_has);
	return unit_end();
}
