/*-------------------------------------------------------------------------
 *
 * test_surf_cursor.c
 *	  Cursors over SuRF's keys, and prefixes, against a sorted array.
 *
 *-------------------------------------------------------------------------
 */
#include "byte_keys.h"
#include "filter/surf_code.h"

static FilterReader *
reader_of(Strings *strings)
{
	if (!strings->is_strict)
		return &strings->reader.reader;
	strict_reader_init(&strings->strict, strings->run.pages, strings->run.npages,
					   strings->options.page_size);
	return &strings->strict.reader;
}

/* Begins again with the reads that are allowed, see strict_reader.h. */
static void
rest(Strings *strings)
{
	if (strings->is_strict)
		strings->strict.reads = 0;
}

static FilterAnswer
seek(Strings *strings, FilterCursor *cursor, const FilterBytes *lo)
{
	rest(strings);
	return filter_cursor_seek(cursor, strings->run.root, strings->run.root_len,
							  strings->is_strict ? &strings->strict.reader :
							  &strings->reader.reader, lo);
}

/*
 * Makes keys that are cut alike one, as the run does: then the i-th key is
 * that of the i-th leaf.  The cut keys are the keys.
 */
static void
cut_keys(Strings *strings)
{
	uint32_t	max_key = bits_load16(strings->run.root + 8);
	size_t		n = 0;
	size_t		i;

	for (i = 0; i < strings->n; i++)
	{
		FilterBytes key = strings->keys[i];

		if (key.len > max_key)
			key.len = max_key;
		if (n > 0 && filter_bytes_compare(strings->keys[n - 1], key) == 0)
			free_bytes(key);
		else
			strings->keys[n++] = key;
	}
	strings->n = n;
	CHECK(n == strings->run.nkeys, "%zu keys", n);
}

/* The cursor is on a key, and says nothing wrong about it. */
static void
check_on(const Strings *strings, const FilterCursor *cursor, size_t rank)
{
	FilterBytes key = strings->keys[rank];

	CHECK(cursor->rank == rank, "%" PRIu64 ", not %zu", cursor->rank, rank);
	CHECK(cursor->len <= key.len &&
		  memcmp(cursor->bytes, key.data, cursor->len) == 0 &&
		  (!cursor->whole || cursor->len == key.len),
		  "%u bytes of %u%s", cursor->len, key.len, cursor->whole ? ", whole" : "");

	/* What is as long as keys are cut may have been longer. */
	CHECK(!cursor->whole || key.len < bits_load16(strings->run.root + 8),
		  "all %u bytes of a key that may have been cut", key.len);
}

/* From one end to the other and back. */
static void
check_walk(Strings *strings)
{
	FilterCursor cursor;
	FilterAnswer answer = seek(strings, &cursor, NULL);
	size_t		i;

	for (i = 0; i < strings->n; i++)
	{
		CHECK(answer == FILTER_YES, "answer %d at key %zu", answer, i);
		check_on(strings, &cursor, i);
		rest(strings);
		answer = filter_cursor_next(&cursor);
	}
	CHECK(answer == FILTER_NO, "answer %d behind the last", answer);
	CHECK(filter_cursor_next(&cursor) == FILTER_NO, "further behind");
	for (i = strings->n; i-- > 0;)
	{
		rest(strings);
		answer = filter_cursor_previous(&cursor);
		CHECK(answer == FILTER_YES, "answer %d at key %zu", answer, i);
		check_on(strings, &cursor, i);
	}
	CHECK(filter_cursor_previous(&cursor) == FILTER_NO, "before the first");
	CHECK(filter_cursor_previous(&cursor) == FILTER_NO, "further before");
	CHECK(filter_cursor_next(&cursor) == (strings->n > 0 ? FILTER_YES : FILTER_NO),
		  "back at the first");
	if (strings->n > 0)
		check_on(strings, &cursor, 0);
}

/*
 * A seek finds the first key at or above a bound, or the one before if what
 * the run has of it may be that.
 */
static void
check_seek(Strings *strings, FilterBytes lo)
{
	FilterCursor cursor;
	FilterAnswer answer = seek(strings, &cursor, &lo);
	FilterBytes cut = lo;
	size_t		rank;

	if (cut.len > bits_load16(strings->run.root + 8))
		cut.len = bits_load16(strings->run.root + 8);
	rank = rank_of(strings, cut, false);
	if (answer == FILTER_NO)
	{
		CHECK(rank == strings->n, "nothing at or above, but key %zu", rank);
		if (strings->n > 0)
		{
			CHECK(filter_cursor_previous(&cursor) == FILTER_YES, "the last");
			check_on(strings, &cursor, strings->n - 1);
		}
		return;
	}
	CHECK(answer == FILTER_YES, "answer %d", answer);
	if (rank > 0 && cursor.rank == rank - 1)
	{
		FilterBytes prefix = {cursor.bytes, cursor.len};

		CHECK(!cursor.whole || filter_bytes_compare(prefix, cut) >= 0,
			  "the key before, of which all is known");
		rank--;
	}
	check_on(strings, &cursor, rank);
}

/* All of a few keys, and bounds near them and far from them. */
static void
check_cursor(KeyKind kind, size_t n, const FilterOptions *options)
{
	Strings		strings = build_random(kind, n, options);
	int			i;

	strings.is_strict = unit_random_below(3) == 0;
	reader_of(&strings);
	cut_keys(&strings);
	check_walk(&strings);
	for (i = 0; i < 200; i++)
	{
		FilterBytes lo = make_bound(&strings, kind);

		check_seek(&strings, lo);
		free_bytes(lo);
	}
	if (strings.is_strict)
		strict_reader_end(&strings.strict);
	free_strings(&strings);
}

static void
test_cursors(void)
{
	static const size_t sizes[] = {0, 1, 2, 3, 10, 100, 3000};
	static const uint32_t page_sizes[] = {SMALL_PAGE, PAGE_SIZE, 32736};
	int			kind;
	int			suffix;
	int			i;

	for (kind = 0; kind < KEY_KINDS; kind++)
		for (suffix = FILTER_SUFFIX_NONE; suffix <= FILTER_SUFFIX_MIXED; suffix++)
			for (i = 0; i < 7; i++)
			{
				FilterOptions options = make_options((FilterSuffix) suffix,
													 4 + unit_random_below(61),
													 page_sizes[unit_random_below(3)],
													 2500);
				uint64_t	failed = unit_failed;

				check_cursor((KeyKind) kind, sizes[i], &options);
				if (unit_failed > failed)
					printf("with %zu %s\n", sizes[i], kind_names[kind]);
			}
}

/* Where suffixes have room for all of the keys, a cursor tells all of them. */
static void
test_whole_keys(void)
{
	static const char *const few[] = {"", "a", "ab", "abcdefgh", "b", "bcd"};
	FilterOptions options = make_options(FILTER_SUFFIX_REAL, 14, PAGE_SIZE, 2500);
	Strings		strings = build_few(few, 6, &options);
	FilterCursor cursor;
	FilterAnswer answer = seek(&strings, &cursor, NULL);
	size_t		i;

	for (i = 0; i < 6; i++)
	{
		CHECK(answer == FILTER_YES && cursor.whole && cursor.len == strlen(few[i]),
			  "\"%s\": %u bytes", few[i], cursor.len);
		check_on(&strings, &cursor, i);
		answer = filter_cursor_next(&cursor);
	}
	free_strings(&strings);
}

/* What is known of a key goes at least as far as what it has in common. */
static void
test_known_bytes(void)
{
	FilterOptions options = make_options(FILTER_SUFFIX_NONE, 14, PAGE_SIZE, 2500);
	Strings		strings = build_random(URLS, 5000, &options);
	FilterCursor cursor;
	int			pairs = 0;
	size_t		i;

	CHECK(seek(&strings, &cursor, NULL) == FILTER_YES, "the first");
	for (i = 0; i + 1 < strings.n; i++)
	{
		uint32_t	common = surf_common_prefix(strings.keys[i], strings.keys[i + 1]);
		uint32_t	page = cursor.page;
		uint32_t	len = cursor.len;

		CHECK(filter_cursor_next(&cursor) == FILTER_YES, "key %zu", i + 1);
		if (cursor.page != page)
			continue;
		CHECK(len >= common && cursor.len >= common, "%u and %u of %u bytes", len,
			  cursor.len, common);
		pairs++;
	}
	CHECK(pairs > 4000, "%d pairs", pairs);
	free_strings(&strings);
}

/* Damaged pages: any answer, but no harm and no endless bytes. */
static void
test_damage(void)
{
	int			round;

	for (round = 0; round < 200; round++)
	{
		KeyKind		kind = (KeyKind) unit_random_below(KEY_KINDS);
		FilterOptions options = make_options((FilterSuffix) unit_random_below(4),
											 4 + unit_random_below(30), SMALL_PAGE,
											 2500);
		Strings		strings = build_random(kind, 1 + unit_random_below(1000),
										   &options);
		size_t		len = (size_t) strings.run.npages * SMALL_PAGE;
		FilterCursor cursor;
		int			i;

		for (i = 0; i < 20; i++)
			strings.run.pages[unit_random_below(len)] = (uint8_t) unit_random();
		if (unit_random_below(4) == 0)
			strings.run.root[unit_random_below(strings.run.root_len)] ^=
				1 << unit_random_below(8);
		strings.is_strict = true;
		reader_of(&strings);
		seek(&strings, &cursor, unit_random_below(2) ? NULL :
			 &strings.keys[unit_random_below(strings.n)]);
		for (i = 0; i < 300; i++)
		{
			rest(&strings);
			if (filter_cursor_next(&cursor) == FILTER_YES)
				CHECK(cursor.len <= FILTER_MAX_KEY, "%u bytes", cursor.len);
		}
		for (i = 0; i < 600; i++)
		{
			rest(&strings);
			filter_cursor_previous(&cursor);
		}
		strict_reader_end(&strings.strict);
		free_strings(&strings);
	}
}

int
main(void)
{
	unit_begin("surf cursor");
	RUN(test_cursors);
	RUN(test_whole_keys);
	RUN(test_known_bytes);
	RUN(test_damage);
	return unit_end();
}
