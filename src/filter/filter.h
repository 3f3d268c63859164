/*-------------------------------------------------------------------------
 *
 * filter.h
 *	  Range filters: build from sorted keys, ask "is a key in [lo, hi]?".
 *
 * This is the interface of SNARF, SuRF and pairs of both; filter.c passes each call on to one
 * of them.  Sorted runs (sorted/sorted.h) have a builder of their own, and are
 * asked like filters over bytes.  run.h has the types.
 *
 * The error is one-sided: FILTER_NO is always right, FILTER_YES may be wrong,
 * FILTER_UNKNOWN is the answer for damaged pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_FILTER_H
#define RANGEFILTER_FILTER_H

#include "filter/base/run.h"

typedef struct FilterBuild FilterBuild;

/*
 * Building takes two passes over the same ascending keys: measure, then add.
 * Duplicates are dropped.  The first pass finds out how many distinct keys
 * there are and what coding them takes, so that the second can spend the
 * budget well.
 *
 * When all byte strings have been measured, filter_build_hashes() tells whether their filter is to be
 * a pair.  If so, their hashes, filter_hash(), are given in ascending order to
 * filter_measure_u64() then, and to filter_add_u64() in the second pass.
 */
extern FilterBuild *filter_build_begin(const FilterOptions *options);
extern void filter_measure_u64(FilterBuild *build, uint64_t key);
extern void filter_measure_bytes(FilterBuild *build, FilterBytes key);
extern bool filter_build_hashes(FilterBuild *build);
extern void filter_measure_end(FilterBuild *build);
extern void filter_add_u64(FilterBuild *build, uint64_t key);
extern void filter_add_bytes(FilterBuild *build, FilterBytes key);
extern void filter_build_end(FilterBuild *build, FilterRun *run);

/*
 * Lowers the budget.  Called before filter_build_hashes() or filter_measure_end(), when the caller has
 * seen all keys.
 */
extern void filter_build_limit(FilterBuild *build, uint32_t bits_per_key);

/*
 * Called after filter_measure_end(): does the run seem to fit the budget, or the one page
 * that it gets at least?  Only a SuRF may not.
 */
extern bool filter_build_fits(const FilterBuild *build);

/*
 * The number of the key measured or added last: how many keys are before it.  In a pair,
 * where keys share leaves, that is not the rank of the key.
 */
extern uint64_t filter_build_rank(const FilterBuild *build);

/*
 * Does the root belong to a run of this kind, which has keys and at most npages pages?
 * If keys are numbers, min and max are the least and the greatest one.
 */
extern bool filter_root_fits(FilterKind kind, const uint8_t *root,
							 uint32_t root_len, uint32_t npages,
							 uint64_t min, uint64_t max);

/*
 * The kind of a SuRF's suffixes, of a root that fits.
 */
extern FilterSuffix filter_root_suffix(const uint8_t *root);

/*
 * Reads all pages of a run that has nkeys keys.  False if what they say does not fit
 * together.  Damage that leaves it possible is not noticed.
 */
extern bool filter_check(FilterKind kind, const uint8_t *root,
						 uint32_t root_len, FilterReader *reader,
						 uint64_t nkeys);

/* Is a key in the range?  Of numbers both ends belong to it, and lo <= hi. */
extern FilterAnswer filter_query_u64(FilterKind kind,
									 const uint8_t *root, uint32_t root_len,
									 FilterReader *reader,
									 uint64_t lo, uint64_t hi);

extern FilterAnswer filter_query_bytes(const uint8_t *root, uint32_t root_len,
									   FilterReader *reader,
									   const FilterByteRange *range);

/*
 * Sets *count to about how many distinct keys are in the range; it is exact
 * for lossless pages.  False if pages are damaged.
 */
extern bool filter_count_u64(FilterKind kind,
							 const uint8_t *root, uint32_t root_len,
							 FilterReader *reader,
							 uint64_t lo, uint64_t hi, uint64_t *count);
extern bool filter_count_bytes(const uint8_t *root, uint32_t root_len,
							   FilterReader *reader,
							   const FilterByteRange *range, uint64_t *count);

/*
 * Sets *ranks to the ranks of keys that may be in the range.  False if pages
 * are damaged.
 */
extern bool filter_ranks_u64(FilterKind kind,
							 const uint8_t *root, uint32_t root_len,
							 FilterReader *reader,
							 uint64_t lo, uint64_t hi, FilterRanks *ranks);
extern bool filter_ranks_bytes(const uint8_t *root, uint32_t root_len,
							   FilterReader *reader,
							   const FilterByteRange *range,
							   FilterRanks *ranks);

#endif							/* RANGEFILTER_FILTER_H */
