/*-------------------------------------------------------------------------
 *
 * test_sorted.c
 *	  Sorted runs against sorted arrays: questions, ranks, reading back; damage.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "filter/base/bits.h"
#include "filter/base/port.h"
#include "sorted_keys.h"
#include "unit.h"

#define MAX_KEYS 3000

static uint8_t room[MAX_KEYS][FILTER_MAX_KEY];
static FilterBytes keys[MAX_KEYS];

/* Kinds of keys. */
enum
{
	NARROW,						/* numbers in a narrow span */
	WIDE,						/* any numbers */
	SKEWED,						/* numbers that are the more, the lower */
	WORDS,						/* strings of any length, of few letters */
	DEEP,						/* strings that share up to 900 bytes */
	KINDS
};

static const char *kind_names[] = {"narrow numbers", "wide numbers", "skewed numbers", "words", "deep strings"};

/* A random key of a kind. */
static FilterBytes
random_key(int kind, uint8_t *bytes)
{
	FilterBytes key = {bytes, 8};
	uint32_t	i;

	if (kind <= SKEWED)
	{
		uint64_t	number = unit_random();

		if (kind == NARROW)
			number = 1000000 + number % (4 * MAX_KEYS);
		else if (kind == SKEWED)
			number >>= unit_random_below(64);
		bits_store64(bytes, __builtin_bswap64(number));
		return key;
	}
	key.len = unit_random_below(kind == DEEP ? 900 : 30);
	for (i = 0; i < key.len; i++)
		bytes[i] = kind == DEEP && unit_random_below(300) > 0 ? 'x' :
			'a' + unit_random_below(3);
	return key;
}

/* Makes n sorted keys of a kind. */
static void
make_keys(int kind, uint32_t n)
{
	uint32_t	i;

	for (i = 0; i < n; i++)
		keys[i] = random_key(kind, room[i]);
	qsort(keys, n, sizeof(FilterBytes), sorted_compare);
}

/* A bound: a key that is there, or any. */
static FilterBytes
random_bound(int kind, uint32_t n, uint8_t *bytes)
{
	return n > 0 && unit_random_below(2) ? keys[unit_random_below(n)] :
		random_key(kind, bytes);
}

/* Asks for random ranges and points. */
static void
check_ranges(const SortedKeys *sorted, int kind)
{
	int			i;

	for (i = 0; i < 300; i++)
	{
		uint8_t		lo[FILTER_MAX_KEY];
		uint8_t		hi[FILTER_MAX_KEY];
		FilterByteRange range;

		memset(&range, 0, sizeof(range));
		range.lo = random_bound(kind, sorted->n, lo);
		range.hi = i % 2 ? range.lo : random_bound(kind, sorted->n, hi);
		range.lo_unbounded = unit_random_below(20) == 0;
		range.hi_unbounded = unit_random_below(20) == 0;
		range.hi_exclusive = unit_random_below(3) == 0;
		CHECK(sorted_keys_agree(sorted, &range), "%s, %u keys, range %d",
			  kind_names[kind], sorted->n, i);
	}
}

/* Runs of any size say what an array says, and give their keys back. */
static void
test_as_array(void)
{
	int			kind;

	for (kind = 0; kind < KINDS; kind++)
	{
		int			round;

		unit_case(kind_names[kind]);
		for (round = 0; round < 12; round++)
		{
			SortedKeys	sorted = {keys};

			sorted.n = round == 0 ? 0 : 1 + unit_random_below(MAX_KEYS >> round % 6);
			sorted.page_size = round % 2 ? 8152 : 1024 + 8 * unit_random_below(100);
			make_keys(kind, sorted.n);
			sorted_keys_build(&sorted, SORTED_MIN_ROOT + unit_random_below(400));
			CHECK(sorted.run.kind == FILTER_KIND_SORTED, "kind");
			CHECK(sorted_keys_read_back(&sorted), "%u keys", sorted.n);
			check_ranges(&sorted, kind);
			filter_run_free(&sorted.run);
		}
	}
}

/* Numbers close to each other take two or three bytes each. */
static void
test_size(void)
{
	SortedKeys	sorted = {keys, MAX_KEYS, 1024};
	uint32_t	i;

	for (i = 0; i < MAX_KEYS; i++)
	{
		bits_store64(room[i], __builtin_bswap64(1000000 + 7 * (uint64_t) i));
		keys[i].data = room[i];
		keys[i].len = 8;
	}
	sorted_keys_build(&sorted, 300);
	CHECK(sorted.run.npages <= 7, "%u pages", sorted.run.npages);
	CHECK(sorted_depth(sorted.run.root, sorted.run.root_len) == 1, "depth");
	filter_run_free(&sorted.run);
}

/* A question for one key reads as many pages as the run says. */
static void
test_depth(void)
{
	int			i;

	for (i = 0; i < 20; i++)
	{
		SortedKeys	sorted = {keys, MAX_KEYS, 1024};
		uint32_t	depth;
		int			j;

		make_keys(WIDE, MAX_KEYS);
		sorted_keys_build(&sorted, SORTED_MIN_ROOT + 40 * i);
		depth = sorted_depth(sorted.run.root, sorted.run.root_len);
		CHECK(depth == (i == 0 ? 2 : 1) || (i > 0 && i < 10), "depth %u, root %d", depth, i);
		for (j = 0; j < 100; j++)
		{
			StrictReader reader;
			uint8_t		bytes[FILTER_MAX_KEY];
			FilterByteRange range;

			memset(&range, 0, sizeof(range));
			range.lo = range.hi = random_bound(WIDE, MAX_KEYS, bytes);
			strict_reader_init(&reader, sorted.run.pages, sorted.run.npages, 1024);
			sorted_query(sorted.run.root, sorted.run.root_len, &reader.reader,
						 &range);
			CHECK(reader.reads == depth, "%d reads, depth %u", reader.reads, depth);
			strict_reader_end(&reader);
		}
		filter_run_free(&sorted.run);
	}
	CHECK(sorted_depth((const uint8_t *) "x", 1) == 0, "no root");
}

/* Where keys share more bytes than separators have, a question still reads few pages. */
static void
test_equal_separators(void)
{
	SortedKeys	sorted = {keys, MAX_KEYS, 1024};
	uint32_t	depth;
	uint32_t	i;
	int			j;

	for (i = 0; i < MAX_KEYS; i++)
	{
		memset(room[i], 'h', 400);
		keys[i] = random_key(WIDE, room[i] + 400);
		keys[i].data = room[i];
		keys[i].len = 408;
	}
	qsort(keys, MAX_KEYS, sizeof(FilterBytes), sorted_compare);
	sorted_keys_build(&sorted, SORTED_MIN_ROOT);
	depth = sorted_depth(sorted.run.root, sorted.run.root_len);
	for (j = 0; j < 2000; j++)
	{
		StrictReader reader;
		uint8_t		bytes[408];
		uint32_t	cut = unit_random_below(20) == 0 ? 1 + (uint32_t) unit_random_below(408) : 408;
		FilterByteRange range;

		memset(bytes, 'h', 400);
		(void) random_key(WIDE, bytes + 400);
		memset(&range, 0, sizeof(range));
		range.lo.data = unit_random_below(2) ? bytes : keys[unit_random_below(MAX_KEYS)].data;
		range.lo.len = cut;
		range.hi = unit_random_below(2) ? range.lo : keys[unit_random_below(MAX_KEYS)];
		range.hi_exclusive = unit_random_below(3) == 0;
		CHECK(sorted_keys_agree(&sorted, &range), "question %d", j);
		strict_reader_init(&reader, sorted.run.pages, sorted.run.npages, 1024);
		(void) sorted_query(sorted.run.root, sorted.run.root_len, &reader.reader, &range);
		CHECK(reader.reads <= depth + 16, "%d reads of %u pages", reader.reads, sorted.run.npages);
		strict_reader_end(&reader);
	}
	filter_run_free(&sorted.run);
}

/* Damaged pages and roots lead nowhere else, and to no end of reading. */
static void
test_damage(void)
{
	int			round;

	for (round = 0; round < 2000; round++)
	{
		int			kind = round % KINDS;
		SortedKeys	sorted = {keys, 300, 1024};
		StrictReader reader;
		FilterRanks ranks;
		FilterByteRange range;
		uint8_t		lo[FILTER_MAX_KEY];
		uint8_t		hi[FILTER_MAX_KEY];
		SortedCursor cursor;
		FilterBytes key;
		uint32_t	n = 0;
		size_t		size;
		int			i;

		if (round < KINDS || round % 100 < KINDS)
			make_keys(kind, sorted.n);
		qsort(keys, sorted.n, sizeof(FilterBytes), sorted_compare);
		sorted_keys_build(&sorted, 128);
		size = (size_t) sorted.run.npages * sorted.page_size;
		for (i = unit_random_below(8); i >= 0; i--)
		{
			if (unit_random_below(4) == 0)
				sorted.run.root[unit_random_below(sorted.run.root_len)] ^= unit_random();
			else if (unit_random_below(2) == 0)
				sorted.run.pages[unit_random_below(size)] ^= unit_random();
			else
				sorted.run.pages[unit_random_below(sorted.run.npages) *
								 sorted.page_size + unit_random_below(24)] ^= unit_random();
		}
		memset(&range, 0, sizeof(range));
		range.lo = random_bound(kind, sorted.n, lo);
		range.hi = random_bound(kind, sorted.n, hi);
		strict_reader_init(&reader, sorted.run.pages, sorted.run.npages,
						   sorted.page_size);
		sorted_query(sorted.run.root, sorted.run.root_len, &reader.reader, &range);
		sorted_ranks(sorted.run.root, sorted.run.root_len, &reader.reader, &range,
					 &ranks);
		if (sorted_cursor_begin(&cursor, sorted.run.root, sorted.run.root_len,
								&reader.reader))
			while (sorted_cursor_next(&cursor, &key) == FILTER_YES)
				n += key.len + 1;
		CHECK(n <= size * UINT16_MAX, "keys read");
		CHECK(strict_reader_end(&reader), "reads");
		filter_run_free(&sorted.run);
	}
}

int
main(void)
{
	unit_begin("test_sorted");
	RUN(test_as_array);
	RUN(test_size);
	RUN(test_depth);
	RUN(test_equal_separators);
	RUN(test_damage);
	return unit_end();
}
