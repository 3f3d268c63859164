/*-------------------------------------------------------------------------
 *
 * snarf.h
 *	  SNARF: range filters over 64-bit numbers.
 *
 * See snarf_page.h for the coding and the page layout.  filter.c and
 * pair_build.c are the only callers; others use filter.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SNARF_H
#define RANGEFILTER_SNARF_H

#include "filter/base/run.h"

typedef struct SnarfBuild SnarfBuild;

extern SnarfBuild *snarf_build_begin(const FilterOptions *options);
extern void snarf_measure(SnarfBuild *build, uint64_t key);
extern void snarf_measure_end(SnarfBuild *build);
extern void snarf_add(SnarfBuild *build, uint64_t key);

/* Distinct keys of this pass so far. */
extern uint64_t snarf_build_keys(const SnarfBuild *build);

/* Lowers bits_per_key before snarf_measure_end(). */
extern void snarf_build_limit(SnarfBuild *build, uint32_t bits_per_key);

/* Fills *run, its kind included, and frees build. */
extern void snarf_build_end(SnarfBuild *build, FilterRun *run);

extern FilterAnswer snarf_query(const uint8_t *root, uint32_t root_len,
								FilterReader *reader,
								uint64_t lo, uint64_t hi);

/*
 * The ranks of the keys that may be in [lo, hi].  With estimate only their
 * number is meaningful: it is that of filter_count_u64().
 */
extern bool snarf_ranks(const uint8_t *root, uint32_t root_len,
						FilterReader *reader, uint64_t lo, uint64_t hi,
						bool estimate, FilterRanks *ranks);

/*
 * How many content pages there are; 0 if the root is damaged, or its least and greatest
 * key are others than these.
 */
extern uint32_t snarf_root_pages(const uint8_t *root, uint32_t root_len,
								 uint64_t min, uint64_t max);

/*
 * Do blocks and pages ascend, and do the fences lead to them?  *nkeys is the number of their
 * keys.
 */
extern bool snarf_check(const uint8_t *root, uint32_t root_len,
						FilterReader *reader, uint64_t *nkeys);

#endif							/* RANGEFILTER_SNARF_H */
