/*-------------------------------------------------------------------------
 *
 * surf.h
 *	  SuRF: range filters over byte strings.
 *
 * The idea is that of Zhang et al., "SuRF: Practical Range Query Filtering
 * with Fast Succinct Tries" (SIGMOD 2018), section 3: a trie of the keys' shortest
 * distinguishing prefixes, and at each of its leaves a few more bits, of the
 * key itself ("real"), of its hash, or of both ("mixed").  The trie is coded
 * in another way than theirs, see surf_page.h, in well under half the space.
 * Its leaves end within a byte, where theirs end behind it, so the first three
 * bits of suffixes are real ones whatever the kind: that is all there is to
 * suffixes of the kind "none" (their SuRF-Base).
 *
 * Options.  bits_per_key is a budget for content and fence pages together:
 * floor(bits_per_key * keys / 8 / page_size) pages, and one at least.  What
 * the trie leaves of these pages goes into suffixes, evenly.  Where the trie
 * alone needs more, the run takes as many pages as that is and has no
 * suffixes.  Where suffixes are as long as they are of use (as the keys, as a
 * hash, or three bits), a run takes fewer pages than the budget allows.
 *
 * Keys are cut to a quarter of a page, or FILTER_MAX_KEY, or what fences can
 * tell apart, whichever is least; queries are cut likewise.
 *
 * Without damage, FILTER_YES for a point [k, k] implies FILTER_YES for every
 * range that holds k: hashes only ever turn points into FILTER_NO.
 *
 * filter.c is the only caller; everybody else goes through filter.h.
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

/* Distinct keys of this pass so far (before the second: of the first). */
extern uint64_t surf_build_keys(const SurfBuild *build);

/* Lowers bits_per_key before surf_measure_end(). */
extern void surf_build_limit(SurfBuild *build, uint32_t bits_per_key);

/* Fills *run, its kind included, and frees build. */
extern void surf_build_end(SurfBuild *build, FilterRun *run);

extern FilterAnswer surf_query(const uint8_t *root, uint32_t root_len,
							   FilterReader *reader,
							   const FilterByteRange *range);

/*
 * The ranks of the distinct keys, as they were cut, that may be in the range:
 * never too few, and too many by one at each bound at most.  Reads two content
 * pages.
 */
extern bool surf_ranks(const uint8_t *root, uint32_t root_len,
					   FilterReader *reader, const FilterByteRange *range,
					   FilterRanks *ranks);

#endif							/* RANGEFILTER_SURF_H */
