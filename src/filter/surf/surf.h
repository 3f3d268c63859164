/*-------------------------------------------------------------------------
 *
 * surf.h
 *	  SuRF: range filters over byte strings.
 *
 * The idea is that of Zhang et al., "SuRF: Practical Range Query Filtering
 * with Fast Succinct Tries" (SIGMOD 2018), section 3: a trie of the keys'
 * shortest distinguishing prefixes, and at each of its leaves a few more bits,
 * of the key itself ("real"), of its hash, or of both ("mixed").  The trie is
 * coded in another way than theirs, see surf_page.h, in well under half the
 * space.  Its leaves end within a byte, while theirs end behind it.  So the
 * first three bits of all suffixes are real ones, whatever the kind.  Suffixes
 * of the kind "none" (their SuRF-Base) have only these.
 *
 * Options.  bits_per_key is a budget for content and fence pages together, see
 * filter_budget_pages_surf().  The room that the trie leaves on these pages
 * goes into suffixes, evenly.  If the trie alone needs more, the run takes as
 * many pages as the trie and has no suffixes.  If suffixes are as long as they
 * are of use (as the keys, as a hash, or three bits), a run takes fewer pages
 * than the budget allows.
 *
 * Keys are cut to a quarter of a page, or FILTER_MAX_KEY, or what fences can
 * tell apart, whichever is least.  The bounds of queries are cut likewise.  With suffix = auto,
 * which is that of what may become the trie of a pair, keys are measured as they are, and suffixes
 * are real.
 *
 * Without damage, FILTER_YES for a point [k, k] implies FILTER_YES for every
 * range that holds k: hashes only turn answers for points into FILTER_NO.
 *
 * The trie of a pair (base/pair.h) stays within its pages: where nodes for all keys do not fit,
 * neighbouring keys that have most bits in common share a leaf.
 *
 * filter.c and pair_build.c are the only callers; others use filter.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SURF_H
#define RANGEFILTER_SURF_H

#include "filter/base/run.h"

typedef struct SurfBuild SurfBuild;

extern SurfBuild *surf_build_begin(const FilterOptions *options);
extern void surf_measure(SurfBuild *build, FilterBytes key);
extern void surf_measure_end(SurfBuild *build);
extern void surf_add(SurfBuild *build, FilterBytes key);

/*
 * Distinct keys of this pass so far; before the second pass begins, of the
 * first.
 */
extern uint64_t surf_build_keys(const SurfBuild *build);

/* Lowers bits_per_key before surf_measure_end(). */
extern void surf_build_limit(SurfBuild *build, uint32_t bits_per_key);

/* After surf_measure_end(): do the nodes seem to fit the budget, or one page? */
extern bool surf_build_fits(const SurfBuild *build);

/*
 * What coding all keys takes, by a sample.  A trie is taken to be nearly exact if its suffixes have twice
 * the bits that keys have behind their leaves on the average, and half of those that any key has.  Called once, when all keys have been measured; then
 * surf_build_resize() may change the pages.
 */
typedef struct SurfCost
{
	uint64_t	node_bits;		/* of all nodes */
	uint32_t	rest_bits;		/* of suffixes with which the trie is nearly
								 * exact */
	bool		all_fit;		/* no key is longer than those of pages may be */
} SurfCost;

extern SurfCost surf_build_cost(SurfBuild *build);

/*
 * Makes the run one of so many pages of this size.  Where the trie does not fit them, leaves of
 * neighbouring keys are merged: see surf_merge.c.
 */
extern void surf_build_resize(SurfBuild *build, uint32_t page_size, uint32_t npages);

/*
 * Fills *run, its kind included, and frees build.  *nleaves is how many leaves there are: as many as
 * keys, unless some were merged.
 */
extern void surf_build_end(SurfBuild *build, FilterRun *run, uint64_t *nleaves);

extern FilterAnswer surf_query(const uint8_t *root, uint32_t root_len,
							   FilterReader *reader,
							   const FilterByteRange *range);

/*
 * The ranks of the distinct (cut) keys that may be in the range: never too
 * few, and at most one too many at each bound.  Reads two content pages at
 * most.
 */
extern bool surf_ranks(const uint8_t *root, uint32_t root_len,
					   FilterReader *reader, const FilterByteRange *range,
					   FilterRanks *ranks);

/* How many content pages there are; 0 if the root is damaged. */
extern uint32_t surf_root_pages(const uint8_t *root, uint32_t root_len);

/* The kind of suffixes, of a root that is not damaged. */
extern FilterSuffix surf_root_suffix(const uint8_t *root);

/* Can all pages be opened, and do they have nkeys leaves, each page behind the last? */
extern bool surf_check(const uint8_t *root, uint32_t root_len,
					   FilterReader *reader, uint64_t nkeys);

#endif							/* RANGEFILTER_SURF_H */
