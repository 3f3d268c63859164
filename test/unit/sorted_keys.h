/*-------------------------------------------------------------------------
 *
 * sorted_keys.h
 *	  What the test and the fuzzer of sorted runs share: building a run of an array
 *	  of keys, and asking it for a range as the array says.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SORTED_KEYS_H
#define RANGEFILTER_SORTED_KEYS_H

#include <stdlib.h>

#include "filter/sorted/sorted.h"
#include "strict_reader.h"

/* Sorted keys, each of which may be there several times, and their run. */
typedef struct SortedKeys
{
	const FilterBytes *keys;
	uint32_t	n;
	uint32_t	page_size;
	FilterRun	run;
} SortedKeys;

static inline int
sorted_compare(const void *a, const void *b)
{
	return filter_bytes_compare(*(const FilterBytes *) a,
								*(const FilterBytes *) b);
}

/* Builds the run; keys are sorted. */
static inline void
sorted_keys_build(SortedKeys *sorted, uint32_t root_max)
{
	SortedBuild *build = sorted_build_begin(sorted->page_size, root_max);
	uint32_t	i;

	for (i = 0; i < sorted->n; i++)
		sorted_add(build, sorted->keys[i]);
	sorted_build_end(build, &sorted->run);
}

/* How many distinct keys are before the range (*first) and up to its end? */
static inline void
sorted_keys_ranks(const SortedKeys *sorted, const FilterByteRange *range,
				  uint64_t *first, uint64_t *end)
{
	uint32_t	i;

	*first = *end = 0;
	for (i = 0; i < sorted->n; i++)
	{
		int			order;

		if (i > 0 && filter_bytes_compare(sorted->keys[i - 1], sorted->keys[i]) == 0)
			continue;
		if (!range->lo_unbounded &&
			filter_bytes_compare(sorted->keys[i], range->lo) < 0)
			(*first)++;
		order = range->hi_unbounded ? -1 :
			filter_bytes_compare(sorted->keys[i], range->hi);
		if (order < 0 || (order == 0 && !range->hi_exclusive))
			(*end)++;
	}
	if (*end < *first)
		*end = *first;
}

/* Does the run say of the range what the array says? */
static inline bool
sorted_keys_agree(const SortedKeys *sorted, const FilterByteRange *range)
{
	StrictReader reader;
	FilterAnswer answer;
	FilterRanks ranks;
	uint64_t	first;
	uint64_t	end;
	bool		counted;

	sorted_keys_ranks(sorted, range, &first, &end);
	strict_reader_init(&reader, sorted->run.pages, sorted->run.npages,
					   sorted->page_size);
	answer = filter_query_bytes(sorted->run.root, sorted->run.root_len,
								&reader.reader, range);
	counted = filter_ranks_bytes(sorted->run.root, sorted->run.root_len,
								 &reader.reader, range, &ranks);
	return strict_reader_end(&reader) && counted &&
		answer == (first < end ? FILTER_YES : FILTER_NO) &&
		ranks.first == first && ranks.end == end;
}

/* Does a cursor read back the distinct keys, and no more? */
static inline bool
sorted_keys_read_back(const SortedKeys *sorted)
{
	FilterMemoryReader reader;
	SortedCursor cursor;
	FilterBytes key;
	uint32_t	i;

	filter_memory_reader_init(&reader, sorted->run.pages, sorted->run.npages,
							  sorted->page_size);
	if (!sorted_cursor_begin(&cursor, sorted->run.root, sorted->run.root_len,
							 &reader.reader))
		return false;
	for (i = 0; i < sorted->n; i++)
	{
		if (i > 0 && filter_bytes_compare(sorted->keys[i - 1], sorted->keys[i]) == 0)
			continue;
		if (sorted_cursor_next(&cursor, &key) != FILTER_YES ||
			filter_bytes_compare(key, sorted->keys[i]) != 0)
			return false;
	}
	return sorted_cursor_next(&cursor, &key) == FILTER_NO;
}

#endif							/* RANGEFILTER_SORTED_KEYS_H */
