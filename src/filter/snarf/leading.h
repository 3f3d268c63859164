/*-------------------------------------------------------------------------
 *
 * leading.h
 *	  SNARF over byte strings: over their leading 64 bits, taken as numbers.
 *
 * If a few evenly spread bytes tell keys apart (as in uuids and hashes), SNARF codes
 * them better than any trie.  leading_numbers.h says which number a key becomes.
 *
 * As with all filters, FILTER_YES for a point implies FILTER_YES for every
 * range that holds it.  For an exclusive upper end the end's number is left
 * out only if all keys below the end have smaller numbers.
 *
 * Root:
 *
 *		0	uint8	magic
 *		1	uint8	version: 1 + FilterDigitsKind
 *		2	uint16	length of what all keys begin with
 *		4	bytes	what all keys begin with
 *			uint64	alphabet: four words; bit b of word w is byte 64 * w + b
 *			uint8	low bits: of 16 positions the high bits, then of each how many low ones
 *			bytes	root of the SNARF
 *
 * filter.c builds and asks; digest.c reads what was built.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_LEADING_H
#define RANGEFILTER_LEADING_H

#include "filter/snarf/leading_numbers.h"

/* Tells this root from that of a SuRF. */
#define LEADING_ROOT_MAGIC		0x5D
#define LEADING_ROOT_VERSION(kind) (1 + (kind))
#define LEADING_ROOT_HEADER		4

/* Bytes of an alphabet or of low bits. */
#define LEADING_ROOT_DIGITS		32

/* The prefix that all keys share is cut to this length. */
#define LEADING_MAX_SHARED		256

typedef struct LeadingBuild LeadingBuild;

extern LeadingBuild *leading_build_begin(const FilterOptions *options);
extern void leading_measure(LeadingBuild *build, FilterBytes key);
extern void leading_measure_end(LeadingBuild *build);
extern void leading_add(LeadingBuild *build, FilterBytes key);

/* Distinct numbers of this pass so far. */
extern uint64_t leading_build_keys(const LeadingBuild *build);

/* Lowers bits_per_key before leading_measure_end(). */
extern void leading_build_limit(LeadingBuild *build, uint32_t bits_per_key);

/* Fills *run, its kind included, and frees build. */
extern void leading_build_end(LeadingBuild *build, FilterRun *run);

/* Is this the root of such a run? */
extern bool leading_is_root(const uint8_t *root, uint32_t root_len);

/*
 * Opens the root of such a run: *root and *root_len become those of its SNARF.  *numbers
 * refers to the root.  False if it is damaged or another root.
 */
extern bool leading_open_root(const uint8_t **root, uint32_t *root_len,
							  LeadingNumbers *numbers);

extern FilterAnswer leading_query(const uint8_t *root, uint32_t root_len,
								  FilterReader *reader,
								  const FilterByteRange *range);

/*
 * The ranks of keys that may be in the range, as filter_ranks_bytes().  Keys
 * with the same number have one rank.  estimate: as for snarf_ranks().
 */
extern bool leading_ranks(const uint8_t *root, uint32_t root_len,
						  FilterReader *reader, const FilterByteRange *range,
						  bool estimate, FilterRanks *ranks);

/*
 * As surf_root_pages() and surf_check().  Keys with the same number count as one, so there may
 * be fewer than nkeys.
 */
extern uint32_t leading_root_pages(const uint8_t *root, uint32_t root_len);
extern bool leading_check(const uint8_t *root, uint32_t root_len,
						  FilterReader *reader, uint64_t nkeys);

#endif							/* RANGEFILTER_LEADING_H */
