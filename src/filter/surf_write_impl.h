/*-------------------------------------------------------------------------
 *
 * surf_write_impl.h
 *	  What surf_write.c gathers and surf_emit.c writes.
 *
 * Between any two neighbouring leaves there is one node, the one that tells
 * them apart, at the depth of the first bit in which they differ: so node i
 * is kept with leaf i, which it separates from leaf i - 1, and node 0 is
 * none.
 *
 * The page's prefix is not part of its bit strings; here depths count from
 * the keys' beginnings nevertheless.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SURF_WRITE_IMPL_H
#define RANGEFILTER_SURF_WRITE_IMPL_H

#include "filter/surf_write.h"

/*
 * The smallest part; others have up to three times as many leaves, or more if
 * keys differ too late.
 */
#define SURF_LEAST_PART 32

/*
 * Blocks, the largest subtrees of so many leaves or fewer, are not cut: cutting
 * need not look into them.
 */
#define SURF_BLOCK_LEAVES 16

/* A subtree that is complete. */
typedef struct SurfSubtree
{
	uint32_t	first;			/* leaf */
	uint32_t	root;			/* node, 0 if there is only a leaf */
	uint32_t	bits;			/* of all nodes, less skip_width for each skip */
	uint32_t	nskips;			/* nodes that have a skip */
	uint32_t	skip_width;		/* the least with which all skips fit */
} SurfSubtree;

/* A leaf, and the node between it and the leaf before. */
typedef struct SurfEntry
{
	uint64_t	record;			/* where its bits are in records */
	uint64_t	hash;
	SurfSubtree left;			/* of the node */
	SurfSubtree right;			/* likewise, once it is complete */
	uint32_t	depth;			/* of the node: the bits above its branch */
	uint32_t	chain;			/* those of them that are its own */
	uint32_t	end;			/* the node's leaves end before this one */
	uint32_t	head;			/* if a part begins here */
	uint32_t	block;			/* root of the block that begins here, or 0 */
} SurfEntry;

/* A part of the page. */
typedef struct SurfPart
{
	uint32_t	first;			/* leaf; its entry has the head */
	uint32_t	depth;			/* bits that all keys of the part begin with */
	uint32_t	root;			/* node, 0 if there is only a leaf */
} SurfPart;

struct SurfWriter
{
	uint32_t	page_size;
	FilterSuffix kind;
	uint32_t	max_suffix;

	SurfEntry  *entries;
	uint32_t   *open;			/* nodes, as many as entries at most */
	uint32_t	nleaves;
	uint32_t	nopen;
	uint32_t	max_leaves;		/* room in the arrays */

	/* Made when all leaves are there. */
	SurfPart   *parts;
	uint32_t	nparts;
	uint32_t	max_parts;
	uint32_t	part_leaves;	/* what to try first, see surf_emit.c */

	/* What all keys have in common. */
	uint8_t		prefix[FILTER_MAX_KEY];
	uint32_t	prefix_len;
	uint32_t	prefix_bits;

	uint32_t	most_skip_width;	/* that a page can need */
	int64_t		free_bits;		/* at least so many, see is_full */
	uint32_t	longest_rest;

	/*
	 * The leaves' own bits, those that the leaf before does not share, as far
	 * as nodes and suffixes can need them.
	 */
	uint64_t   *records;
	uint64_t	nrecord_bits;
	uint64_t	max_record_words;
};

/*
 * Cuts the leaves into parts of at least so many, as well as it can, and closes
 * all nodes, so that they can be written.  All keys have the first base bits
 * in common.  Returns the sum of all parts' trees.
 */
extern SurfSubtree surf_writer_cut(SurfWriter *writer, uint32_t base,
								   uint32_t least);

/* The depth of the uppermost node. */
extern uint32_t surf_writer_base(const SurfWriter *writer);

/*
 * Bits that a page with so many leaves keeps free for heads and starts of
 * parts, as far as these take more than nodes would.
 */
static inline uint32_t
surf_parts_reserve(uint32_t nleaves)
{
	return nleaves / 4;
}

/* Up to 56 bits of the records from a position on. */
static inline uint64_t
get_record(const SurfWriter *writer, uint64_t from, uint32_t n)
{
	const uint64_t *word = &writer->records[from / 64];
	uint32_t	skip = from % 64;
	uint64_t	value = word[0] << skip | (word[1] >> 1) >> (63 - skip);

	return (value >> 1) >> (63 - n);
}

/* The depth that a leaf's record begins at. */
static inline uint32_t
record_depth(const SurfWriter *writer, uint32_t leaf)
{
	return leaf == 0 ? 0 : writer->entries[leaf].depth + 1;
}

/* Bits of the gamma code of value >= 1. */
static inline uint32_t
gamma_bits(uint32_t value)
{
	return 2 * bits_log2(value) + 1;
}

/* A single leaf. */
static inline SurfSubtree
leaf_subtree(uint32_t leaf)
{
	SurfSubtree result = {leaf, 0, 0, 0, 0};

	return result;
}

/* The side of a node over n leaves, nleft on the left, that comes first. */
static inline bool
left_is_first(uint32_t nleft, uint32_t n)
{
	return nleft <= n - nleft;
}

/* Bits of a node in front of its chain's, less chain's length and skip_width. */
static inline uint32_t
counts_bits(uint32_t nleft, uint32_t n, bool has_skip)
{
	SurfBinary	binary = surf_binary(n - 1);

	return binary.nbits + (nleft > binary.threshold) +
		(has_skip ? bits_log2(n) : 0);
}

/* Does a node have a skip? */
static inline bool
has_skip(uint32_t nleft, uint32_t n)
{
	return nleft > SURF_SKIP_LEAVES && n - nleft > SURF_SKIP_LEAVES;
}

/*
 * Node i, at depth, with its two sides and its parent's depth (-1: above all
 * bits), as a subtree whose leaves end before end.
 */
static inline SurfSubtree
join_subtrees(SurfSubtree left, SurfSubtree right, uint32_t i, uint32_t end,
			  uint32_t depth, int64_t parent)
{
	SurfSubtree result;
	uint32_t	chain = (uint32_t) (depth - parent - 1);
	uint32_t	nleft = i - left.first;
	uint32_t	n = end - left.first;
	bool		skip = has_skip(nleft, n);

	result.first = left.first;
	result.root = i;
	result.nskips = left.nskips + right.nskips + skip;
	result.bits = left.bits + right.bits + gamma_bits(chain + 1) + chain +
		counts_bits(nleft, n, skip);
	result.skip_width = left.skip_width > right.skip_width ?
		left.skip_width : right.skip_width;
	if (skip)
	{
		SurfSubtree first = left_is_first(nleft, n) ? left : right;

		/* A width that fits here is one with which all greater ones fit. */
		while (bits_width(first.bits + result.skip_width * first.nskips) >
			   bits_log2(n) + result.skip_width)
			result.skip_width++;
	}
	return result;
}

#endif							/* RANGEFILTER_SURF_WRITE_IMPL_H */
