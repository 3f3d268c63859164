/*-------------------------------------------------------------------------
 *
 * fuzz_leading.c
 *	  libFuzzer target: SNARF over leading bits, of any keys, and any root.
 *
 * The first byte chooses.  Even: the rest are keys, between which all ranges
 * are asked; none that holds a key may be denied, nor one that holds a point
 * which is admitted.  Odd: the rest are a root, as damaged as can be, over the
 * pages of a good run; no query may leave them.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/snarf/leading.h"
#include "filter/base/port.h"
#include "strict_reader.h"

#define MAX_KEYS 24

int			LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Run
{
	FilterBytes keys[MAX_KEYS];
	uint32_t	n;
	uint32_t	page_size;
	FilterRun	run;
} Run;

static void
require(bool condition)
{
	if (!condition)
		abort();
}

static int
compare_keys(const void *a, const void *b)
{
	return filter_bytes_compare(*(const FilterBytes *) a,
								*(const FilterBytes *) b);
}

/* Keys, each behind its length, one after the other. */
static uint32_t
take_keys(const uint8_t *data, size_t size, FilterBytes *keys)
{
	uint32_t	n = 0;

	while (size > 0 && n < MAX_KEYS)
	{
		uint32_t	len = data[0] % 24;

		data++;
		size--;
		if (len > size)
			len = (uint32_t) size;
		keys[n].data = data;
		keys[n++].len = len;
		data += len;
		size -= len;
	}
	return n;
}

/* Builds a run of every other key; asks are about all. */
static void
build_run(Run *run, uint8_t shape)
{
	FilterOptions options;
	FilterBuild *build;
	LeadingCounts counts = {.nkeys = 0};
	FilterBytes *keys = run->keys;
	uint32_t	last = (run->n - 1) / 2 * 2;
	uint32_t	len = 0;
	uint32_t	i;

	memset(&options, 0, sizeof(options));
	options.leading = true;
	options.bits_per_key = 4 + shape % 16;
	options.page_size = run->page_size = shape & 16 ? 64 : 512;
	options.root_max = 192 + shape;
	options.nrows = 1;
	while (len < keys[0].len && len < keys[last].len &&
		   keys[0].data[len] == keys[last].data[len])
		len++;
	options.shared.data = keys[0].data;
	options.shared.len = shape & 32 ? len : len / 2;
	for (i = 0; i <= last && shape & 64; i += 4)
		leading_count(&counts, keys[i], options.shared.len);
	options.digits = leading_digits(&counts);

	build = filter_build_begin(&options);
	for (i = 0; i < run->n; i += 2)
		filter_measure_bytes(build, keys[i]);
	filter_measure_end(build);
	for (i = 0; i < run->n; i += 2)
		filter_add_bytes(build, keys[i]);
	filter_build_end(build, &run->run);
}

static FilterAnswer
ask(const Run *run, const FilterByteRange *range)
{
	StrictReader reader;
	FilterAnswer answer;
	uint64_t	count;

	strict_reader_init(&reader, run->run.pages, run->run.npages, run->page_size);
	answer = filter_query_bytes(run->run.root, run->run.root_len,
								&reader.reader, range);
	filter_count_bytes(run->run.root, run->run.root_len, &reader.reader, range,
					   &count);
	require(strict_reader_end(&reader));
	return answer;
}

/* May the range from key i to key j be denied? */
static void
check_range(const Run *run, uint32_t i, uint32_t j, unsigned shape,
			const bool *admitted)
{
	FilterByteRange range;
	bool		must = false;
	uint32_t	k;

	memset(&range, 0, sizeof(range));
	range.lo = run->keys[i];
	range.hi = run->keys[j];
	range.hi_exclusive = shape & 1;
	range.lo_unbounded = shape & 2;
	range.hi_unbounded = shape & 4;
	for (k = 0; k < run->n; k++)
	{
		int			to_hi = filter_bytes_compare(run->keys[k], range.hi);

		if (admitted[k] &&
			(range.lo_unbounded ||
			 filter_bytes_compare(run->keys[k], range.lo) >= 0) &&
			(range.hi_unbounded || to_hi < 0 ||
			 (to_hi == 0 && !range.hi_exclusive)))
			must = true;
	}
	require(ask(run, &range) != FILTER_UNKNOWN);
	require(!must || ask(run, &range) == FILTER_YES);
}

static void
fuzz_keys(const uint8_t *data, size_t size)
{
	Run			run;
	bool		admitted[MAX_KEYS];
	uint32_t	i;
	uint32_t	j;

	if (size < 2)
		return;
	run.n = take_keys(data + 1, size - 1, run.keys);
	qsort(run.keys, run.n, sizeof(FilterBytes), compare_keys);
	build_run(&run, data[0]);
	for (i = 0; i < run.n; i++)
	{
		FilterByteRange point;

		memset(&point, 0, sizeof(point));
		point.lo = point.hi = run.keys[i];
		admitted[i] = ask(&run, &point) == FILTER_YES;
		require(admitted[i] || i % 2 == 1);
	}
	for (i = 0; i < run.n; i++)
		for (j = 0; j < run.n; j++)
			check_range(&run, i, j, data[0] + i + j, admitted);
	filter_run_free(&run.run);
}

static void
fuzz_root(const uint8_t *data, size_t size)
{
	Run			run;
	FilterByteRange range;

	if (size < 12)
		return;
	run.n = take_keys(data, size / 2, run.keys);
	qsort(run.keys, run.n, sizeof(FilterBytes), compare_keys);
	build_run(&run, data[0]);
	filter_free(run.run.root);
	run.run.root_len = (uint32_t) (size - size / 2);
	run.run.root = filter_alloc(run.run.root_len);
	memcpy(run.run.root, data + size / 2, run.run.root_len);
	if (data[0] & 1)
		run.run.root[0] = LEADING_ROOT_MAGIC;
	memset(&range, 0, sizeof(range));
	range.lo = run.keys[0];
	range.hi = run.keys[run.n - 1];
	ask(&run, &range);
	range.hi = range.lo;
	ask(&run, &range);
	filter_run_free(&run.run);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] % 2 == 0)
		fuzz_keys(data + 1, size - 1);
	else
		fuzz_root(data + 1, size - 1);
	return 0;
}
