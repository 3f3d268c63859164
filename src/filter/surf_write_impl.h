/*-------------------------------------------------------------------------
 *
 * surf_write_impl.h
 *	  What surf_write.c gathers, surf_cut.c divides and surf_emit.c writes.
 *
 * Between any two neighbouring leaves there is one node, the one that tells
 * them apart, at the depth of the first bit in which they differ: it goes by
 * the number of the leaf on its right.
 *
 * The page's prefix is not part of its bit strings; here depths count from
 * the keys' beginnings nevertheless.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SURF_WRITE_IMPL_H
#define RANGEFILTER_SURF_WRITE_IMPL_H

#include "filter/surf_coder.h"
#include "filter/surf_write.h"

/*
 * The smallest part; others have up to three times as many leaves, or more if
 * keys differ too late.
 */
#define SURF_LEAST_PART 32

/*
 * Blocks, the largest subtrees of so many leaves or fewer whose nodes fit in
 * two words, are coded as soon as they are complete and not cut into parts: all
 * that comes later has blocks in the place of leaves.
 */
#define SURF_BLOCK_LEAVES 16

/* A node over two leaves whose chain is as long surely is a block. */
#define SURF_PAIR_CHAIN 40

/* A subtree that is complete. */
typedef struct SurfSubtree
{
	uint32_t	first;			/* leaf */
	uint32_t	bits;			/* of all nodes, less skip_width for each skip */
	uint32_t	nskips;			/* nodes that have a skip */
	uint32_t	skip_width;		/* the least with which all skips fit */
	uint32_t	root;			/* when cut into parts: number of the node, or
								 * 0 for a block */
} SurfSubtree;

/*
 * A leaf, the node between it and the leaf before, and the block that begins
 * with it: the bits of its nodes, the first one on top, zeros behind.
 */
typedef struct SurfEntry
{
	uint64_t	high;
	uint64_t	low;
	uint32_t	record;			/* where the leaf's bits are in records */
	uint16_t	own;			/* first bit not shared with the leaf before */
	uint16_t	depth;			/* of the block's root: the bits above */
	uint16_t	coded_chain;	/* those of them that are its own, as coded, */
	uint16_t	chain;			/* and as they must be after cutting */
	uint8_t		nbits;			/* the block's */
	uint8_t		nleaves;		/* likewise; 1 for a leaf alone */
	uint8_t		nleft;			/* of these, how many the root has on the left */
} SurfEntry;

/* A node that does not have all its leaves yet. */
typedef struct SurfOpen
{
	int32_t		depth;			/* the bits above its branch */
	uint32_t	leaf;			/* the first one on the right */
	uint32_t	first;			/* the first one on the left */
	SurfSubtree left;			/* not set for a block that is being coded */
} SurfOpen;

/* A node above all blocks. */
typedef struct SurfNode
{
	SurfSubtree left;
	SurfSubtree right;
	uint32_t	leaf;			/* the first one on the right */
	uint32_t	end;			/* its leaves end before this one */
	uint32_t	depth;
	uint32_t	chain;
} SurfNode;

/* A part of the page. */
typedef struct SurfPart
{
	uint32_t	first;			/* leaf */
	uint32_t	head;
	uint32_t	depth;			/* bits that all keys of the part begin with */
	SurfSubtree tree;
} SurfPart;

/* What the writer was before the leaves of a batch were added. */
typedef struct SurfSaved
{
	uint32_t	nleaves;
	uint32_t	nopen;
	uint32_t	prefix_len;
	uint32_t	prefix_bits;
	SurfOpen   *open;
	SurfEntry	entries[SURF_BLOCK_LEAVES + SURF_BATCH_KEYS];
} SurfSaved;

struct SurfWriter
{
	uint32_t	page_size;
	FilterSuffix kind;
	uint32_t	max_suffix;

	SurfEntry  *entries;		/* room for a batch behind the leaves */
	uint64_t   *hashes;			/* of the leaves' keys, if needed */
	SurfOpen   *open;			/* open[0] is above all, open[1] uppermost */
	uint32_t	nleaves;
	uint32_t	nopen;
	uint32_t	max_leaves;		/* room in the arrays */

	SurfSaved	saved;

	/* Made when all leaves are there. */
	SurfNode   *nodes;			/* from 1 on */
	uint32_t	nnodes;
	SurfPart   *parts;
	uint32_t	nparts;
	uint32_t	max_parts;
	uint32_t	part_leaves;	/* what to try first, see surf_emit.c */

	/* What all keys have in common. */
	uint8_t		prefix[FILTER_MAX_KEY];
	uint32_t	prefix_len;
	uint32_t	prefix_bits;

	uint32_t	most_skip_width;	/* that a page can need */
	int64_t		free_bits;		/* at least so many, see bound_batch() */
	int32_t		longest_rest;

	/*
	 * The code of each leaf's key, from the first byte that the leaf before
	 * does not share as far as nodes and suffixes can need it.
	 */
	uint8_t    *records;
	uint32_t	nrecords;
	uint32_t	max_records;
	uint32_t	zeros;			/* bytes kept behind the end of a code */
	uint32_t	suffix_bytes;	/* of a key that are enough for a suffix */
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
static BITS_INLINE uint64_t
get_record(const SurfWriter *writer, uint32_t from, uint32_t n)
{
	uint64_t	value = __builtin_bswap64(bits_load64(writer->records + from / 8)) <<
	from % 8;

	return (value >> 1) >> (63 - n);
}

/* Bits of the gamma code of value >= 1. */
static BITS_INLINE uint32_t
gamma_bits(uint32_t value)
{
	return 2 * bits_log2(value) + 1;
}

/* A single leaf. */
static BITS_INLINE SurfSubtree
leaf_subtree(uint32_t leaf)
{
	SurfSubtree result = {leaf, 0, 0, 0, 0};

	return result;
}

/* The side of a node over n leaves, nleft on the left, that comes first. */
static BITS_INLINE bool
left_is_first(uint32_t nleft, uint32_t n)
{
	return nleft <= n - nleft;
}

/* Does a node have a skip? */
static BITS_INLINE bool
has_skip(uint32_t nleft, uint32_t n)
{
	return (nleft > SURF_SKIP_LEAVES) & (n - nleft > SURF_SKIP_LEAVES);
}

/* The numbers of a node over n leaves: left, then the chain's length. */
typedef struct SurfNumbers
{
	uint32_t	nbits;			/* 48 at most */
	uint64_t	value;
} SurfNumbers;

static BITS_INLINE SurfNumbers
code_numbers(uint32_t nleft, uint32_t n, uint32_t chain)
{
	SurfBinary	binary = surf_binary(n - 1);
	bool		longer = nleft > binary.threshold;
	uint32_t	gamma = gamma_bits(chain + 1);
	SurfNumbers result;

	result.nbits = binary.nbits + longer + gamma;
	result.value = (uint64_t) (nleft - 1 + (longer ? binary.threshold : 0)) << gamma |
		(chain + 1);
	return result;
}

/* Do the bits of a side's nodes fit in so many bits? */
static BITS_INLINE bool
skip_fits(const SurfSubtree *side, uint32_t nbits, uint32_t skip_width)
{
	return ((uint64_t) side->bits + skip_width * side->nskips) >> nbits == 0;
}

/*
 * The sum of a node's sides, and its own bits, so many without a skip: the
 * node is over n leaves.
 */
static BITS_INLINE SurfSubtree
join_subtrees(const SurfSubtree *left, const SurfSubtree *right, uint32_t nleft,
			  uint32_t n, uint32_t own_bits)
{
	SurfSubtree result;
	uint32_t	skip;

	result.first = left->first;
	result.root = 0;
	result.bits = left->bits + right->bits + own_bits;
	result.nskips = left->nskips + right->nskips;
	result.skip_width = left->skip_width > right->skip_width ?
		left->skip_width : right->skip_width;
	skip = has_skip(nleft, n);
	result.bits += bits_log2(n) & -skip;
	result.nskips += skip;

	/*
	 * A width that fits here is one with which all greater ones fit.  Mostly
	 * that of the sides does: hence one condition.
	 */
	while (skip & !skip_fits(left_is_first(nleft, n) ? left : right,
							 bits_log2(n) + result.skip_width,
							 result.skip_width))
		result.skip_width++;
	return result;
}

static BITS_INLINE int32_t
greater(int32_t a, int32_t b)
{
	return a > b ? a : b;
}

/*
 * The sum of an open node, which has its last leaf now, and its sides.
 */
static BITS_INLINE SurfSubtree
sum_node(const SurfOpen *open, const SurfSubtree *left, const SurfSubtree *right,
		 uint32_t end, int32_t parent)
{
	uint32_t	nleft = open->leaf - open->first;
	uint32_t	n = end - open->first;
	uint32_t	chain = (uint32_t) (open->depth - parent - 1);
	SurfNumbers numbers = code_numbers(nleft, n, chain);

	return join_subtrees(left, right, nleft, n, numbers.nbits + chain);
}

#endif							/* RANGEFILTER_SURF_WRITE_IMPL_H */
