/*-------------------------------------------------------------------------
 *
 * build_run.h
 *	  Building runs of byte strings, for tests and fuzzers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_BUILD_RUN_H
#define RANGEFILTER_BUILD_RUN_H

#include <stdlib.h>

#include "filter/filter.h"

static inline int
compare_for_qsort(const void *a, const void *b)
{
	return filter_bytes_compare(*(const FilterBytes *) a,
								*(const FilterBytes *) b);
}

/* The sorted hashes of keys. */
static inline uint64_t *
make_hashes(const FilterBytes *keys, size_t n)
{
	uint64_t   *hashes = malloc((n + 1) * sizeof(uint64_t));
	size_t		i;

	for (i = 0; i < n; i++)
		hashes[i] = filter_hash(keys[i]);
	qsort(hashes, n, sizeof(uint64_t), bits_compare64);
	return hashes;
}

/* Builds a run of sorted keys, which may have duplicates. */
static inline void
build_run(const FilterBytes *keys, size_t n, const FilterOptions *options, FilterRun *run)
{
	FilterBuild *filter = filter_build_begin(options);
	uint64_t   *hashes = make_hashes(keys, n);
	bool		is_pair;
	size_t		i;

	for (i = 0; i < n; i++)
		filter_measure_bytes(filter, keys[i]);
	is_pair = filter_build_hashes(filter);
	for (i = 0; i < n && is_pair; i++)
		filter_measure_u64(filter, hashes[i]);
	filter_measure_end(filter);
	for (i = 0; i < n; i++)
		filter_add_bytes(filter, keys[i]);
	for (i = 0; i < n && is_pair; i++)
		filter_add_u64(filter, hashes[i]);
	filter_build_end(filter, run);
	free(hashes);
}

#endif							/* RANGEFILTER_BUILD_RUN_H */
