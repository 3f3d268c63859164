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

/* A subtree that is complete. */
typedef struct SurfSubtree
{
	uint32_t	first;			/* leaf */
	uint32_t	nskips;			/* nodes that have a skip */
	uint64_t	bits;			/* of all nodes, less skip_width for each skip */
} SurfSubtree;

/* A leaf, and the node between it and the leaf before. */
typedef struct SurfEntry
{
	uint64_t	record;			/* where its bits are in records */
	uint64_t	hash;
	SurfSubtree left;			/* of the node */
	uint32_t	depth;			/* of the node: the bits above its branch */
	uint32_t	chain;			/* those of them that are its own */
	uint32_t	end;			/* the node's leaves end before this one */

	/*
	 * The nodes that begin with this leaf, from the uppermost down: the first
	 * one here, the others linked by next; 0 is the end.
	 */
	uint32_t	nodes;
	uint32_t	next;
} SurfEntry;

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

	/* What all keys have in common. */
	uint8_t		prefix[FILTER_MAX_KEY];
	uint32_t	prefix_len;
	uint32_t	prefix_bits;

	uint32_t	skip_width;
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

/* Closes all nodes, so that they can be written. */
extern void surf_writer_close(SurfWriter *writer);

/* Bits of the gamma code of value >= 1. */
static inline uint32_t
gamma_bits(uint32_t value)
{
	return 2 * bits_log2(value) + 1;
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

	result.first = left.first;
	result.nskips = left.nskips + right.nskips;
	result.bits = left.bits + right.bits + gamma_bits(chain + 1) + chain;
	if (n > 2)
	{
		SurfBinary	binary = surf_binary(n - 1);

		result.bits += binary.nbits + (nleft > binary.threshold);
	}
	if (nleft > SURF_SKIP_LEAVES)
	{
		result.bits += bits_width(nleft);
		result.nskips++;
	}
	return result;
}

#endif							/* RANGEFILTER_SURF_WRITE_IMPL_H */
