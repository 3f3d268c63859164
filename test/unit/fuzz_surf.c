/*-------------------------------------------------------------------------
 *
 * fuzz_surf.c
 *	  A libFuzzer target: SuRF runs and pairs of any keys, whole and damaged.
 *
 * The input is a few bytes of options, then keys, each after a byte that says
 * how many bytes it shares with the one before and how long it is.  All keys
 * and their neighbourhood are asked for.  At last the rest of the input, what
 * is not needed for keys, is written over pages and root.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "build_run.h"
#include "strict_reader.h"

#define MAX_KEYS 200

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is left of the input. */
typedef struct Input
{
	const uint8_t *data;
	size_t		size;
} Input;

static uint32_t
next_byte(Input *input)
{
	if (input->size == 0)
		return 0;
	input->size--;
	return *input->data++;
}

/* Reads keys: returns how many, sorted.  They are in memory of their size. */
static size_t
read_keys(Input *input, FilterBytes *keys)
{
	uint8_t		bytes[FILTER_MAX_KEY];
	uint32_t	len = 0;
	size_t		n = next_byte(input) % 200;
	size_t		i;

	for (i = 0; i < n; i++)
	{
		uint32_t	shape = next_byte(input);
		uint32_t	shared = shape >> 4 == 15 ? len : len * (shape >> 4) / 15;
		uint32_t	added = shape & 15;
		uint8_t    *key;

		/* Now and then a long run of one byte. */
		if (added == 15)
			added = 4 * next_byte(input);
		if (shared + added > FILTER_MAX_KEY)
			added = FILTER_MAX_KEY - shared;
		if ((shape & 15) == 15)
			memset(bytes + shared, (int) next_byte(input), added);
		else
			for (len = shared; len < shared + added; len++)
				bytes[len] = (uint8_t) next_byte(input);
		len = shared + added;
		key = malloc(len > 0 ? len : 1);
		memcpy(key, bytes, len);
		keys[i].data = key;
		keys[i].len = len;
	}
	qsort(keys, n, sizeof(FilterBytes), compare_for_qsort);
	return n;
}

static FilterOptions
read_options(Input *input)
{
	FilterOptions options;

	memset(&options, 0, sizeof(options));
	options.bytes = true;
	options.suffix = (FilterSuffix) (next_byte(input) % 5);
	options.bits_per_key = 4 + next_byte(input) % 61;
	options.page_size = 64 << next_byte(input) % 8;
	options.root_max = 160 + 40 * (next_byte(input) % 58);
	return options;
}

static FilterAnswer
ask(const FilterRun *run, uint32_t page_size, const FilterByteRange *range)
{
	StrictReader reader;
	FilterAnswer answer;

	strict_reader_init(&reader, run->pages, run->npages, page_size);
	answer = filter_query_bytes(run->root, run->root_len, &reader.reader, range);
	if (!strict_reader_end(&reader))
		abort();
	return answer;
}

/* Counts; false where that fails. */
static bool
count(const FilterRun *run, uint32_t page_size, const FilterByteRange *range,
	  uint64_t *result)
{
	StrictReader reader;
	bool		done;

	strict_reader_init(&reader, run->pages, run->npages, page_size);
	done = filter_count_bytes(run->root, run->root_len, &reader.reader, range,
							  result);
	if (!strict_reader_end(&reader))
		abort();
	return done;
}

/* The truth, by looking at all keys: how many are in the range. */
static size_t
holds(const FilterBytes *keys, size_t n, const FilterByteRange *range)
{
	size_t		found = 0;
	size_t		i;

	for (i = 0; i < n; i++)
	{
		int			order = range->hi_unbounded ? -1 :
		filter_bytes_compare(keys[i], range->hi);

		if ((range->lo_unbounded ||
			 filter_bytes_compare(keys[i], range->lo) >= 0) &&
			(order < 0 || (order == 0 && !range->hi_exclusive)) &&
			(i == 0 || filter_bytes_compare(keys[i - 1], keys[i]) != 0))
			found++;
	}
	return found;
}

static const FilterByteRange everything = {.lo_unbounded = true,.hi_unbounded = true};

/* Asks about a range, and about its left bound alone. */
static void
check_range(const FilterRun *run, uint32_t page_size, const FilterBytes *keys,
			size_t n, FilterByteRange range)
{
	FilterAnswer answer = ask(run, page_size, &range);
	FilterByteRange point;
	size_t		truth = holds(keys, n, &range);
	uint64_t	counted;

	if (answer == FILTER_UNKNOWN || (answer == FILTER_NO && truth > 0))
		abort();
	if (!count(run, page_size, &range, &counted) ||
		(counted > 0) != (answer == FILTER_YES) ||
		(run->kind == FILTER_KIND_SURF &&
		 (counted > truth + 2 ||
		  (counted < truth && run->nkeys == holds(keys, n, &everything)))))
		abort();

	/* A point that is said to be there is so in every range that holds it. */
	memset(&point, 0, sizeof(point));
	point.lo = point.hi = range.lo;
	answer = ask(run, page_size, &point);
	if (answer == FILTER_UNKNOWN ||
		(answer == FILTER_NO && holds(keys, n, &point)))
		abort();
	if (answer == FILTER_YES)
	{
		int			order = range.hi_unbounded ? -1 :
		filter_bytes_compare(range.lo, range.hi);

		if ((order < 0 || (order == 0 && !range.hi_exclusive)) &&
			ask(run, page_size, &range) != FILTER_YES)
			abort();
	}
}

/* Asks about keys, what is near them, and ranges between such. */
static void
check_run(const FilterRun *run, uint32_t page_size, const FilterBytes *keys,
		  size_t n, const Input *rest)
{
	Input		input = *rest;
	size_t		i;

	for (i = 0; i < n; i++)
	{
		uint32_t	shape = next_byte(&input);
		uint8_t		bytes[FILTER_MAX_KEY + 1];
		FilterByteRange range;

		memset(&range, 0, sizeof(range));
		range.lo = keys[i];
		range.hi = keys[shape % 2 ? i : i + 1 < n ? i + 1 : i];
		check_range(run, page_size, keys, n, range);
		range.hi_exclusive = true;
		check_range(run, page_size, keys, n, range);

		/* A neighbour as left bound, then as right one. */
		if (keys[i].len > 0)
			memcpy(bytes, keys[i].data, keys[i].len);
		range.lo.data = bytes;
		if (shape & 4 && keys[i].len > 0)
			bytes[shape % keys[i].len] = (uint8_t) next_byte(&input);
		if (shape & 8)
			bytes[range.lo.len++] = (uint8_t) next_byte(&input);
		else if (shape & 16)
			range.lo.len = keys[i].len * (shape % 7) / 7;
		range.hi_exclusive = shape & 32;
		range.hi_unbounded = shape & 64;
		check_range(run, page_size, keys, n, range);
		range.hi = range.lo;
		range.lo = keys[i > 0 ? i - 1 : 0];
		range.lo_unbounded = shape & 128;
		range.hi_unbounded = false;
		if (ask(run, page_size, &range) == FILTER_NO && holds(keys, n, &range))
			abort();
	}
}

/* Writes the input over the run, and asks for nothing but to survive. */
static void
check_damaged(FilterRun *run, uint32_t page_size, const FilterBytes *keys,
			  size_t n, Input *input)
{
	size_t		len = (size_t) run->npages * page_size;
	size_t		i;

	while (input->size >= 4)
	{
		size_t		at = next_byte(input) << 16 | next_byte(input) << 8 |
		next_byte(input);
		uint8_t		value = (uint8_t) next_byte(input);

		if (at & 1 << 23)
			run->root[at % run->root_len] ^= value;
		else if (len > 0)
			run->pages[at % len] ^= value;
	}
	for (i = 0; i < n; i++)
	{
		FilterByteRange range;
		uint64_t	counted;

		memset(&range, 0, sizeof(range));
		range.lo = range.hi = keys[i];
		ask(run, page_size, &range);
		range.hi = keys[(i * 7 + 1) % n];
		ask(run, page_size, &range);
		count(run, page_size, &range, &counted);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, size};
	FilterOptions options = read_options(&input);
	FilterBytes keys[MAX_KEYS];
	size_t		n = read_keys(&input, keys);
	FilterRun	run;
	size_t		i;

	build_run(keys, n, &options, &run);
	check_run(&run, options.page_size, keys, n, &input);
	check_damaged(&run, options.page_size, keys, n, &input);

	filter_run_free(&run);
	for (i = 0; i < n; i++)
		free((void *) keys[i].data);
	return 0;
}
