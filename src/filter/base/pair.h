/*-------------------------------------------------------------------------
 *
 * pair.h
 *	  The two parts of a pair: a filter of byte strings.
 *
 * A pair is a SNARF of the keys' hashes, for questions about one key, and a
 * trie, for ranges.  Both are on the same pages: the first bytes of each page
 * are a page of the trie, the others one of the hashes.  So any share of the
 * budget can be given to either, and a short run is one page.
 *
 * Root:
 *
 *		0	uint8	magic
 *		1	uint8	version, of the hash as well
 *		2	uint16	bytes of each page that belong to the trie
 *		4	uint64	keys
 *		12	uint64	hashes
 *		20	uint64	leaves of the trie
 *		28	uint16	length of the root of the hashes
 *		30	bytes	root of the hashes
 *			bytes	root of the trie
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_PAIR_H
#define RANGEFILTER_PAIR_H

#include "filter/base/run.h"

#define PAIR_ROOT_MAGIC		0x5D
#define PAIR_ROOT_VERSION	1
#define PAIR_ROOT_HEADER	30

/* A part of a pair: its root, and a reader of its share of each page. */
typedef struct PairPart
{
	FilterReader reader;		/* must be first */
	FilterReader *pages;
	uint32_t	offset;
	const uint8_t *root;
	uint32_t	root_len;
} PairPart;

typedef struct Pair
{
	PairPart	hashes;
	PairPart	trie;
	uint64_t	nkeys;
	uint64_t	nhashes;
	uint64_t	nleaves;
} Pair;

/* Is this the root of a pair? */
extern bool pair_is_root(const uint8_t *root, uint32_t root_len);

/*
 * Opens a pair, whose parts can be asked as filters of their kinds are; root and reader are kept
 * by the caller.  A part's pages are valid until the next page of either is read.  False if the root is
 * damaged.
 */
extern bool pair_open(Pair *pair, const uint8_t *root, uint32_t root_len,
					  FilterReader *reader);

#endif							/* RANGEFILTER_PAIR_H */
