/*-------------------------------------------------------------------------
 *
 * surf_page.h
 *	  SuRF's content pages.  Each has a small trie, and can be read without
 *	  others.
 *
 * Keys are bit strings here (surf_code.h), so the trie is binary.  Chains of
 * nodes with one child are compressed (a Patricia trie).  So n keys make n
 * leaves and n - 1 nodes with two children each.  A leaf ends behind the bit
 * that tells its key from both its neighbours in the page.
 *
 * Nodes are laid out in preorder; leaves take no space among them.  A node is
 *
 *		chain		length, in Elias's gamma code of length + 1
 *		left		how many leaves (1 to n - 1 of its n) are on the left;
 *					minus 1 in truncated binary: no bits where n = 2
 *		skip		if the side with fewer leaves has more than
 *					SURF_SKIP_LEAVES, the bits that its nodes take, in
 *					log2(n) + skip_width bits
 *		bits		of the chain
 *
 * and is followed by the nodes of the side with fewer leaves (the left one if
 * both have as many), then those of the other side.  So the way down is read
 * forwards, without rank or select.  To go to the first side is to read on.
 * To go to the second is to jump (or, over a few nodes, to read) past the
 * first, which is the smaller one.  The numbers of leaves give the shape of
 * the tree, the end of the page's nodes, and each leaf's number in key order.
 * They cost about 1.5 to 1.8 bits a key, less than LOUDS would, and no labels
 * are needed.  330,000 English words, for which the paper's coding takes 22.7
 * bits a key, take about 10.
 *
 * A page is cut into parts: stretches of leaves, each with a trie of its own.
 * Parts are found by their heads.  A head is the first 16 bits of a part's
 * first key behind the bits that all keys share; if the key has fewer, zeros
 * follow.  A key is in the last part whose head is not above it, or before all
 * leaves.  All keys between two heads begin with the bits that these heads
 * share, so the trie of a part begins behind these bits; that of the last part
 * begins where heads begin.  Like the paper's LOUDS-Dense, parts stand for the
 * upper levels of the trie.  They take a little more room than nodes would,
 * and are searched faster.  A page whose keys mostly do not differ so early is
 * one part, without a head.
 *
 * Page, little-endian; the bits of a byte count from the top one:
 *
 *		0	uint8	magic
 *		1	uint8	skip_width + 16 * bits in the lead
 *		2	uint16	leaves
 *		4	uint16	suffix bits of each leaf
 *		6	uint16	this many leaves, the first ones, have one bit more
 *		8	uint16	length of the prefix
 *	   10	uint16	parts, 0 if there is just one
 *	   12	uint16	the lead
 *	   14	uint64	leaves in all pages before
 *	   22	bytes	the prefix: what all keys in the page begin with
 *			uint16	heads, of all parts
 *			uint16	first leaf, and
 *			uint16	start of the nodes, of all parts; see surf_nodes_shift()
 *			bits	suffixes
 *			bits	nodes
 *
 * Bit strings are those of the keys without the prefix.  They all begin with
 * the lead, which is shorter than a code, and is not stored in nodes.
 *
 * A suffix is real bits, then hash bits.  Real bits are those of the key's
 * code behind its leaf, hash bits the top ones of filter_hash().
 * surf_suffix_split() tells how many there are of each.
 *
 * Root:
 *
 *		0	uint8	magic
 *		1	uint8	version, of the code and the hash as well
 *		2	uint8	kind of suffixes
 *		4	uint32	content pages
 *		8	uint16	keys are cut to this length
 *	   10	bytes	code, see surf_code.c
 *			bytes	root of the fences
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SURF_PAGE_H
#define RANGEFILTER_SURF_PAGE_H

#include "filter/surf/surf.h"
#include "filter/surf/surf_code.h"

#define SURF_ROOT_MAGIC		0x5E
#define SURF_ROOT_VERSION	3
#define SURF_ROOT_HEADER	10

#define SURF_PAGE_MAGIC		0x5F
#define SURF_PAGE_HEADER	22

/* The nodes of a side with up to SURF_SKIP_LEAVES leaves are read, not jumped over. */
#define SURF_SKIP_LEAVES 5

/* Bytes of a part's head, first leaf and start. */
#define SURF_PART_SIZE		6

/* Bits of a head. */
#define SURF_HEAD_BITS		16

/* The most leaves that the layout can count. */
#define SURF_MAX_LEAVES		UINT16_MAX

/* The longest suffix. */
#define SURF_MAX_REAL		1024
#define SURF_MAX_HASH		64

/*
 * Real bits at the beginning of suffixes of all kinds.  Our leaves end within
 * a byte, while those of the paper's trie end behind it: these bits make up
 * for the rest of that byte.
 */
#define SURF_BASE_REAL		3

/* How the suffixes of a run are made up. */
typedef struct SurfSuffix
{
	uint32_t	real;
	uint32_t	hash;
} SurfSuffix;

/* A content page opened for queries; pointers lead into the page. */
typedef struct SurfPage
{
	const uint8_t *data;
	uint32_t	size;			/* bytes */
	FilterBytes prefix;
	uint64_t	rank;			/* of the first leaf in the run */
	uint32_t	nleaves;
	uint32_t	skip_width;
	uint32_t	suffix_bits;
	uint32_t	nlonger;		/* leaves whose suffix has one bit more */
	uint32_t	lead;
	uint32_t	lead_bits;
	uint32_t	nparts;			/* 0 if there is just one */
	const uint8_t *heads;
	const uint8_t *starts;		/* first leaves and nodes */
	uint32_t	suffixes;		/* bit position of the first suffix */
	uint32_t	nodes;			/* bit position of the first node */
} SurfPage;

/* A subtree on the way down. */
typedef struct SurfWalk
{
	uint32_t	pos;			/* of its root, if it has more than one leaf */
	uint32_t	depth;			/* bits above it */
	uint32_t	first;			/* its first leaf */
	uint32_t	n;				/* its leaves; 0: not begun yet */
	uint32_t	part;			/* the part it is in */
	uint32_t	head;			/* the bits of the key that led to the part */
} SurfWalk;

/* The place of a bit string among the leaves of a page. */
typedef struct SurfSpot
{
	/*
	 * The number of leaves whose keys are all below.  They are the first
	 * ones.
	 */
	uint32_t	below;

	/* The next leaf may have keys below and above, or this key. */
	bool		inside;

	/* If inside: the leaf tells nothing of the bits from here on. */
	uint32_t	depth;
} SurfSpot;

/* Opens a page of "size" bytes; false if it is damaged. */
extern bool surf_page_open(SurfPage *page, const uint8_t *data, uint32_t size);

/*
 * Finds key, which is coded without the page's prefix.  If hash is not NULL,
 * spot->inside is false for a leaf with another hash; then no other field of
 * spot may be used.
 *
 * The way begins at walk, or at the top if that has no leaves.  On return, the
 * way to any other key that shares all bits up to key->mark_bits with key can
 * begin at walk.  False if the page is damaged.
 */
extern bool surf_page_find(const SurfPage *page, FilterSuffix kind,
						   SurfBits *key, const uint64_t *hash,
						   SurfWalk *walk, SurfSpot *spot);

/* Divides the bits of a suffix by the kind of a run. */
static BITS_INLINE SurfSuffix
surf_suffix_split(FilterSuffix kind, uint32_t nbits)
{
	SurfSuffix	suffix = {nbits, 0};

	if (kind == FILTER_SUFFIX_HASH && nbits > SURF_BASE_REAL)
	{
		suffix.real = SURF_BASE_REAL;
		suffix.hash = nbits - SURF_BASE_REAL;
	}
	else if (kind == FILTER_SUFFIX_MIXED)
	{
		suffix.hash = nbits - nbits / 2;
		if (suffix.hash > SURF_MAX_HASH)
			suffix.hash = SURF_MAX_HASH;
		suffix.real = nbits - suffix.hash;
	}
	return suffix;
}

/*
 * The longest suffix that is of use, if keys have up to longest_rest bits
 * behind their leaves.
 */
static BITS_INLINE uint32_t
surf_suffix_most(FilterSuffix kind, uint32_t longest_rest)
{
	if (longest_rest > SURF_MAX_REAL)
		longest_rest = SURF_MAX_REAL;
	if (kind == FILTER_SUFFIX_NONE)
		return longest_rest < SURF_BASE_REAL ? longest_rest : SURF_BASE_REAL;
	if (kind == FILTER_SUFFIX_HASH)
		return SURF_BASE_REAL + SURF_MAX_HASH;
	if (kind == FILTER_SUFFIX_MIXED)
		return longest_rest + SURF_MAX_HASH;
	return longest_rest;
}

/*
 * The truncated binary code of numbers below count >= 1.  Numbers below
 * threshold take nbits bits.  Others are increased by threshold, and take one
 * bit more.
 */
typedef struct SurfBinary
{
	uint32_t	nbits;
	uint32_t	threshold;
} SurfBinary;

static BITS_INLINE SurfBinary
surf_binary(uint32_t count)
{
	SurfBinary	result;

	result.nbits = bits_log2(count);
	result.threshold = ((uint32_t) 2 << result.nbits) - count;
	return result;
}

/*
 * Positions of nodes are stored in units of 1 << shift bits, so that 16 bits
 * are enough for pages of any size.
 */
static BITS_INLINE uint32_t
surf_nodes_shift(uint32_t page_size)
{
	uint32_t	width = bits_width(8 * (uint64_t) page_size);

	return width > 16 ? width - 16 : 0;
}

#endif							/* RANGEFILTER_SURF_PAGE_H */
