/*-------------------------------------------------------------------------
 *
 * leading.h
 *	  SNARF over byte strings: over their leading 64 bits, taken as numbers.
 *
 * If a few evenly spread bytes tell keys apart (as in uuids and hashes), SNARF codes
 * them better than any trie.  The number of a key is made of the bytes behind the
 * prefix that all keys share, as many as 64 bits have room for: the rank of each byte
 * in an alphabet is a digit, to the base of the alphabet's size, the first one highest.
 * With all bytes as the alphabet these are the next eight bytes; of hexadecimal digits,
 * sixteen.  Shorter keys are padded with zeros.  A byte that is not in the alphabet
 * makes the number just smaller than the next byte that is would, and ends it.  So any
 * string has a number, and numbers never decrease as strings increase.  Keys with the
 * same number cannot be told apart.
 *
 * As with all filters, FILTER_YES for a point implies FILTER_YES for every
 * range that holds it.  For an exclusive upper end the end's number is left
 * out only if all keys below the end have smaller numbers.
 *
 * Root:
 *
 *		0	uint8	magic
 *		1	uint8	version: 1, or 2 with an alphabet
 *		2	uint16	length of what all keys begin with
 *		4	bytes	what all keys begin with
 *			uint64	version 2: the alphabet, four words; bit b of word w is
 *					byte 64 * w + b
 *			bytes	root of the SNARF
 *
 * filter.c and trial.c build and ask; digest.c reads what was built.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_LEADING_H
#define RANGEFILTER_LEADING_H

#include "filter/base/run.h"

/* Tells this root from that of a SuRF. */
#define LEADING_ROOT_MAGIC		0x5D
#define LEADING_ROOT_VERSION	1
#define LEADING_ROOT_ALPHABET	2	/* version, if there is one */
#define LEADING_ROOT_HEADER		4

/* The prefix that all keys share is cut to this length. */
#define LEADING_MAX_SHARED		256

typedef struct LeadingBuild LeadingBuild;

/* How the keys of a run become numbers. */
typedef struct LeadingNumbers
{
	FilterBytes shared;			/* what all keys begin with */
	FilterAlphabet alphabet;
	uint32_t	radix;			/* bytes in the alphabet, 2 to 256 */
	uint32_t	ndigits;		/* of a number */
	uint8_t		ranks[256];		/* of bytes in the alphabet, unless that has
								 * all */
} LeadingNumbers;

/* How often bytes occur behind a prefix. */
typedef struct LeadingCounts
{
	uint32_t	bytes[256];
	uint32_t	all;
} LeadingCounts;

extern void leading_count(LeadingCounts *counts, FilterBytes key,
						  uint32_t shared_len);

/*
 * The alphabet of what was counted, without the bytes that are rare: a few odd keys would
 * give partitions different alphabets.  An empty one if it would not help.
 */
extern FilterAlphabet leading_alphabet(const LeadingCounts *counts);

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
 * Sets *numbers for keys that begin with shared.  False for an alphabet of one byte, or of too
 * many.
 */
extern bool leading_numbers_init(LeadingNumbers *numbers, FilterBytes shared,
								 const FilterAlphabet *alphabet);

/*
 * Opens the root of such a run: *root and *root_len become those of its SNARF.  *numbers
 * refers to the root.  False if it is damaged or another root.
 */
extern bool leading_open_root(const uint8_t **root, uint32_t *root_len,
							  LeadingNumbers *numbers);

/*
 * The number of any byte string: 0 for those below all that begin with the shared prefix,
 * UINT64_MAX for those above.  Never decreases as strings increase.  With above, the greatest
 * number of strings that begin with it.
 */
extern uint64_t leading_number(const LeadingNumbers *numbers, FilterBytes key,
							   bool above);

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
