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
 * tell apart, whichever is least.  The bounds of queries are cut likewise.
 *
 * Without damage, FILTER_YES for a point [k, k] implies FILTER_YES for every
 * range that holds k: hashes only turn answers for points into FILTER_NO.
 *
 * filter.c and the digests (snarf/) are the only callers; others use filter.h.
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

/* Fills *run, its kind included, and frees build. */
extern void surf_build_end(SurfBuild *build, FilterRun *run);

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

/* To how many bytes keys are cut; of a root that is not damaged. */
extern uint32_t surf_root_max_key(const uint8_t *root);

/* A key's hash: the same on all machines.  Keys are cut before. */
extern uint64_t surf_hash(FilterBytes key);

/* Can all pages be opened, and do they have nkeys leaves, each page behind the last? */
extern bool surf_check(const uint8_t *root, uint32_t root_len,
					   FilterReader *reader, uint64_t nkeys);

/*
 * What a leaf tells of the hash of its keys: some of the first bits, with zeros behind
 * them.  None if the filter keeps no hashes.
 */
typedef struct SurfLeafHash
{
	uint32_t	nbits;
	uint64_t	bits;
} SurfLeafHash;

/*
 * A leaf stands for the strings from low to high, both included; with above, for
 * those that begin with high and are greater, too.  To a range of strings the filter says
 * YES only if one of them is in it; to a point only if surf_hash() of the string, cut as keys
 * are, has the leaf's bits as well.  Strings are valid until the next call.
 */
typedef struct SurfLeafKeys
{
	FilterBytes low;
	FilterBytes high;
	bool		above;
	SurfLeafHash hash;
} SurfLeafKeys;

/* False ends the visit. */
typedef bool (*SurfVisitLeaf) (void *arg, const SurfLeafKeys *leaf);

/*
 * Calls visit for all leaves of a page, in no particular order.  False if the page
 * is damaged, or where visit returned false.
 */
extern bool surf_visit(const uint8_t *root, uint32_t root_len,
					   FilterReader *reader, uint32_t pageno,
					   SurfVisitLeaf visit, void *arg);

/*
 * Sets *code to the table of the run's code, which surf_code_open() opens, within
 * the root.  False if the root is damaged.
 */
extern bool surf_root_code(const uint8_t *root, uint32_t root_len,
						   FilterBytes *code);

#endif							/* RANGEFILTER_SURF_H */
