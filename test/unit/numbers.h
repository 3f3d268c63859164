/*-------------------------------------------------------------------------
 *
 * numbers.h
 *	  Sets of 64-bit keys for tests, runs built from them, and the truth.
 *
 * The property behind all checks: a range that holds a key is answered YES,
 * always; a range that holds none is answered NO by an exact run, and by
 * others most of the time.  Counts are those of the array, or near them as
 * snarf_count.c says.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_NUMBERS_H
#define RANGEFILTER_NUMBERS_H

#include <math.h>
#include <string.h>

#include "filter/filter.h"
#include "filter/snarf/snarf_view.h"
#include "strict_reader.h"
#include "unit.h"

#define SERVER_PAGE 8152
#define SERVER_ROOT 2400

typedef enum Distribution
{
	UNIFORM,
	NORMAL,
	CLUSTERED,					/* near-dense ids in far clusters */
	SPARSE_CLUSTERS,			/* clusters too wide to be coded exactly */
	TIMESTAMPS,					/* Poisson arrivals, in microseconds */
	SERIAL,						/* consecutive */
	HOLES,						/* consecutive but for some */
	EXTREMES,					/* near 0, the INT64 border, UINT64_MAX */
	DUPLICATES,					/* few values, many times */
	EXPONENTIAL,				/* any order of magnitude */
	MIXED,						/* half dense, half scattered */
	DISTRIBUTIONS
} Distribution;

static const char *const distribution_names[] = {
	"uniform", "normal", "clustered", "sparse clusters", "timestamps",
	"serial", "holes", "extremes", "duplicates", "exponential", "mixed"
};

/* A run in memory with the keys it was built from. */
typedef struct Numbers
{
	uint64_t   *keys;			/* ascending, duplicates included */
	size_t		n;
	uint64_t   *distinct;		/* ascending */
	size_t		ndistinct;
	bool		lossy_bitmaps;	/* where counts may be too small */
	FilterRun	run;
	uint32_t	page_size;
	FilterMemoryReader reader;
} Numbers;

static inline int
compare_numbers(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

/* In (0, 1]. */
static inline double
random_fraction(void)
{
	return ((double) (unit_random() >> 11) + 1) / 9007199254740992.0;
}

static inline double
random_normal(void)
{
	double		radius = sqrt(-2 * log(random_fraction()));

	return radius * cos(6.283185307179586 * random_fraction());
}

/* A number of any order of magnitude. */
static inline uint64_t
random_magnitude(void)
{
	uint64_t	value = unit_random();

	return value >> unit_random_below(64);
}

/* A key near one of the borders of the domain. */
static inline uint64_t
random_extreme(void)
{
	static const uint64_t borders[] = {
		0, UINT64_C(1) << 63, UINT64_MAX, UINT64_C(1) << 60, UINT64_C(1) << 53
	};
	uint64_t	offset = unit_random() >> (40 + unit_random_below(24));
	uint64_t	border = borders[unit_random_below(5)];

	if (border == 0)
		return offset;
	if (border == UINT64_MAX || unit_random_below(2) == 0)
		return border - offset;
	return border + offset;
}

/* Makes n keys, ascending; the caller frees them. */
static inline uint64_t *
make_keys(Distribution distribution, size_t n)
{
	uint64_t   *keys = malloc((n + 1) * sizeof(uint64_t));
	uint64_t	last = 0;
	size_t		i;

	for (i = 0; i < n; i++)
	{
		switch (distribution)
		{
			case UNIFORM:
				last = unit_random();
				break;
			case NORMAL:
				last = (uint64_t) (9.2e18 + 5e17 * random_normal());
				break;
			case CLUSTERED:
				last = i % 1000 == 0 ? unit_random() >> 1 :
					last + 1 + unit_random_below(5);
				break;
			case SPARSE_CLUSTERS:
				last = i % 700 == 0 ? unit_random() >> 1 :
					last + 1 + unit_random_below(50000000);
				break;
			case TIMESTAMPS:
				last = i == 0 ? UINT64_C(700000000000000) :
					last + (uint64_t) (-log(random_fraction()) * 1e5);
				break;
			case SERIAL:
				last = 1000 + i;
				break;
			case HOLES:
				last += 1 + (unit_random_below(100) == 0);
				break;
			case EXTREMES:
				last = random_extreme();
				break;
			case DUPLICATES:
				last = unit_random_below(1 + n / 50) * UINT64_C(1000003);
				break;
			case EXPONENTIAL:
				last = random_magnitude();
				break;
			default:
				last = i % 2 == 0 ? UINT64_C(1000000) + i :
					unit_random() | UINT64_C(1) << 63;
				break;
		}
		keys[i] = last;
	}
	qsort(keys, n, sizeof(uint64_t), compare_numbers);
	return keys;
}

/* Has a run a block that is a bitmap in which keys may share positions? */
static inline bool
has_lossy_bitmaps(const FilterRun *run, uint32_t page_size)
{
	uint32_t	npages = bits_load32(run->root + 4);
	uint32_t	pageno;
	uint32_t	i;

	for (pageno = 0; pageno < npages; pageno++)
	{
		SnarfPageView page;
		SnarfBlockView block;

		if (!snarf_open_page(&page, run->pages + (size_t) pageno * page_size,
							 page_size))
			abort();
		for (i = 0; i < page.nblocks; i++)
		{
			if (snarf_open_block(&page, i, &block) &&
				block.code == SNARF_CODE_BITMAP &&
				block.scale != SNARF_EXACT_SCALE)
				return true;
		}
	}
	return false;
}

/*
 * Builds a run of n ascending keys of nrows rows.  The run owns the keys from
 * now on.
 */
static inline Numbers
build_rows(uint64_t *keys, size_t n, uint64_t nrows, uint32_t bits_per_key,
		   uint32_t page_size, uint32_t root_max)
{
	Numbers		numbers;
	FilterOptions options;
	FilterBuild *build;
	size_t		i;

	memset(&options, 0, sizeof(options));
	options.bits_per_key = bits_per_key;
	options.page_size = page_size;
	options.root_max = root_max;
	options.nrows = nrows;

	build = filter_build_begin(&options);
	for (i = 0; i < n; i++)
		filter_measure_u64(build, keys[i]);
	filter_measure_end(build);
	for (i = 0; i < n; i++)
		filter_add_u64(build, keys[i]);
	filter_build_end(build, &numbers.run);

	numbers.keys = keys;
	numbers.n = n;
	numbers.distinct = malloc((n + 1) * sizeof(uint64_t));
	numbers.ndistinct = 0;
	for (i = 0; i < n; i++)
	{
		if (i == 0 || keys[i] != keys[i - 1])
			numbers.distinct[numbers.ndistinct++] = keys[i];
	}
	numbers.page_size = page_size;
	filter_memory_reader_init(&numbers.reader, numbers.run.pages,
							  numbers.run.npages, page_size);
	numbers.lossy_bitmaps = has_lossy_bitmaps(&numbers.run, page_size);
	return numbers;
}

static inline Numbers
build_numbers(uint64_t *keys, size_t n, uint32_t bits_per_key,
			  uint32_t page_size, uint32_t root_max)
{
	return build_rows(keys, n, n, bits_per_key, page_size, root_max);
}

static inline void
free_numbers(Numbers *numbers)
{
	filter_run_free(&numbers->run);
	free(numbers->keys);
	free(numbers->distinct);
}

static inline FilterAnswer
ask(Numbers *numbers, uint64_t lo, uint64_t hi)
{
	return filter_query_u64(numbers->run.kind, numbers->run.root,
							numbers->run.root_len, &numbers->reader.reader,
							lo, hi);
}

/* About how many keys are in [lo, hi]? */
static inline bool
ask_count(Numbers *numbers, uint64_t lo, uint64_t hi, uint64_t *count)
{
	return filter_count_u64(numbers->run.kind, numbers->run.root,
							numbers->run.root_len, &numbers->reader.reader,
							lo, hi, count);
}

/* How many distinct keys are below value? */
static inline size_t
rank_of(const Numbers *numbers, uint64_t value)
{
	size_t		from = 0;
	size_t		to = numbers->ndistinct;

	while (from < to)
	{
		size_t		middle = from + (to - from) / 2;

		if (numbers->distinct[middle] < value)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* Is a key in [lo, hi]? */
static inline bool
holds(const Numbers *numbers, uint64_t lo, uint64_t hi)
{
	size_t		rank = rank_of(numbers, lo);

	return rank < numbers->ndistinct && numbers->distinct[rank] <= hi;
}

/* How many distinct keys are in [lo, hi]? */
static inline uint64_t
count_of(const Numbers *numbers, uint64_t lo, uint64_t hi)
{
	size_t		end = hi == UINT64_MAX ? numbers->ndistinct :
	rank_of(numbers, hi + 1);

	return end - rank_of(numbers, lo);
}

static inline uint64_t
run_bits(const Numbers *numbers)
{
	return (uint64_t) numbers->run.npages * numbers->page_size * 8;
}

/* a + b and a - b that stay at the ends of the domain. */
static inline uint64_t
add_capped(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static inline uint64_t
subtract_capped(uint64_t a, uint64_t b)
{
	return a < b ? 0 : a - b;
}

/* Counts the keys in [lo, hi], which were asked for with this answer. */
static inline void
check_count(Numbers *numbers, uint64_t lo, uint64_t hi, FilterAnswer answer)
{
	uint64_t	truth = count_of(numbers, lo, hi);
	uint64_t	count = UINT64_MAX;
	uint64_t	error;

	CHECK(ask_count(numbers, lo, hi, &count), "[%" PRIu64 ", %" PRIu64 "]",
		  lo, hi);
	CHECK((count == 0) == (answer == FILTER_NO), "[%" PRIu64 ", %" PRIu64
		  "] has %" PRIu64 " keys and answer %d", lo, hi, count, answer);
	error = count > truth ? count - truth : truth - count;
	if (numbers->run.kind == FILTER_KIND_EXACT)
		CHECK(error == 0, "[%" PRIu64 ", %" PRIu64 "] has %" PRIu64
			  " keys, not %" PRIu64, lo, hi, truth, count);
	else
		CHECK(error < 2 * SNARF_BLOCK_KEYS &&
			  (count >= truth || numbers->lossy_bitmaps), "[%" PRIu64 ", %"
			  PRIu64 "] has %" PRIu64 " keys, not %" PRIu64, lo, hi, truth,
			  count);
}

/* Asks for [lo, hi] and compares with the truth; returns the answer. */
static inline FilterAnswer
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
	check_count(numbers, lo, hi, answer);
	return answer;
}

/* Ranges that begin, end, touch and just miss key i. */
static inline void
check_around(Numbers *numbers, size_t i)
{
	uint64_t	key = numbers->keys[i];
	uint64_t	next = numbers->keys[i + 1 < numbers->n ? i + 1 : i];
	uint64_t	other = numbers->keys[unit_random_below(numbers->n)];
	uint64_t	width = random_magnitude();

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
static inline void
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
					add_capped(lo, random_magnitude()));
		check_range(numbers, lo, lo);
		check_range(numbers, 0, lo);
		check_range(numbers, lo, UINT64_MAX);
	}
}

/* Up to count keys and as many ranges anywhere. */
static inline void
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

#endif							/* RANGEFILTER_NUMBERS_H */
