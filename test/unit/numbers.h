/*-------------------------------------------------------------------------
 *
 * numbers.h
 *	  Sets of 64-bit keys for tests, runs built from them, and the truth.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_NUMBERS_H
#define RANGEFILTER_NUMBERS_H

#include <math.h>
#include <string.h>

#include "filter/filter.h"
#include "strict_reader.h"
#include "unit.h"

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
	FilterRun	run;
	uint32_t	page_size;
	FilterMemoryReader reader;
} Numbers;

static int
compare_numbers(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

/* In (0, 1]. */
static double
random_fraction(void)
{
	return ((double) (unit_random() >> 11) + 1) / 9007199254740992.0;
}

static double
random_normal(void)
{
	double		radius = sqrt(-2 * log(random_fraction()));

	return radius * cos(6.283185307179586 * random_fraction());
}

/* A key near one of the borders of the domain. */
static uint64_t
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
				last = unit_random() >> unit_random_below(64);
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
	numbers.page_size = page_size;
	filter_memory_reader_init(&numbers.reader, numbers.run.pages,
							  numbers.run.npages, page_size);
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
}

static inline FilterAnswer
ask(Numbers *numbers, uint64_t lo, uint64_t hi)
{
	return filter_query_u64(numbers->run.kind, numbers->run.root,
							numbers->run.root_len, &numbers->reader.reader,
							lo, hi);
}

/* Is a key in [lo, hi]? */
static inline bool
holds(const Numbers *numbers, uint64_t lo, uint64_t hi)
{
	size_t		from = 0;
	size_t		to = numbers->n;

	while (from < to)
	{
		size_t		middle = from + (to - from) / 2;

		if (numbers->keys[middle] < lo)
			from = middle + 1;
		else
			to = middle;
	}
	return from < numbers->n && numbers->keys[from] <= hi;
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

#endif							/* RANGEFILTER_NUMBERS_H */
