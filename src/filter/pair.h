/*-------------------------------------------------------------------------
 *
 * pair.h
 *	  Filters of byte strings that know keys by their hashes, and ranges by a
 *	  trie.
 *
 * The budget of a pair is divided by a rule, pair_divide().  See base/pair.h for how
 * its parts share pages.
 *
 * A point is in a pair if both parts say so.  So a pair's YES to a point implies its YES to every
 * range that holds it.
 *
 * filter.c is the only caller; others use filter.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_FILTER_PAIR_H
#define RANGEFILTER_FILTER_PAIR_H

#include "filter/base/fence.h"
#include "filter/base/pair.h"
#include "filter/snarf/snarf_page.h"
#include "filter/snarf/snarf.h"
#include "filter/surf/surf.h"

/* The smallest page that a pair can have. */
#define PAIR_MIN_PAGE 512

/* The largest root of the hashes, if a pair's is at most root_max; and of the trie. */
#define PAIR_HASHES_ROOT(root_max)	(SNARF_ROOT_HEADER + FENCE_MIN_ROOT + (root_max) / 8)
#define PAIR_TRIE_ROOT(root_max) \
	((root_max) - PAIR_ROOT_HEADER - PAIR_HASHES_ROOT(root_max))

/* The least root_max. */
#define PAIR_MIN_ROOT 400

/* The share of a pair's pages that each part has. */
typedef struct PairShares
{
	uint32_t	npages;			/* 0: no pair, a SuRF */
	uint32_t	trie_size;		/* bytes of each page */
} PairShares;

/*
 * Divides the budget for nkeys keys, whose coding by a SuRF takes this.  Where there is room for a trie
 * that is nearly exact, but not for hashes beside it, there is no pair.
 */
extern PairShares pair_divide(const FilterOptions *options, uint64_t nkeys,
							  const SurfCost *cost);

/* Begins to build the SNARF of hashes. */
extern SnarfBuild *pair_begin_hashes(const FilterOptions *options,
									 const PairShares *shares);

/* Joins runs of both parts, which become a pair's and are freed. */
extern void pair_join(FilterRun *hashes, FilterRun *trie, const PairShares *shares,
					  uint32_t page_size, uint64_t nleaves, FilterRun *run);

extern FilterAnswer pair_query(const uint8_t *root, uint32_t root_len,
							   FilterReader *reader, const FilterByteRange *range);

/* The ranks of the leaves that may have keys of the range. */
extern bool pair_ranks(const uint8_t *root, uint32_t root_len, FilterReader *reader,
					   const FilterByteRange *range, FilterRanks *ranks);

/* About how many of a pair's keys are in the range?  False if pages are damaged. */
extern bool pair_count(const uint8_t *root, uint32_t root_len, FilterReader *reader,
					   const FilterByteRange *range, uint64_t *count);

/* As surf_root_pages() and surf_check(). */
extern uint32_t pair_root_pages(const uint8_t *root, uint32_t root_len);
extern bool pair_check(const uint8_t *root, uint32_t root_len, FilterReader *reader,
					   uint64_t nkeys);

#endif							/* RANGEFILTER_FILTER_PAIR_H */
