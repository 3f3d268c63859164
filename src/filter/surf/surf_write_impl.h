/*-------------------------------------------------------------------------
 *
 * surf_write_impl.h
 *	  The writer's state: surf_write.c gathers leaves, surf_cut.c makes trees,
 *	  surf_emit.c writes them.
 *
 * Between two neighbouring leaves there is one node, which tells them apart.
 * Its depth is that of the first bit in which they differ.  It has the number
 * of the leaf on its right.  So a node is over the leaves between the nearest
 * less deep nodes on both sides, and its parent is the deeper one of these
 * two.
 *
 * The page's prefix is not part of its bit strings; here depths count from
 * the keys' beginnings nevertheless.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SURF_WRITE_IMPL_H
#define RANGEFILTER_SURF_WRITE_IMPL_H

#include "filter/surf/surf_coder.h"
#include "filter/surf/surf_wide.h"
#include "filter/surf/surf_write.h"

/*
 * The least number of leaves in a part, if the page has room for such parts.
 */
#define SURF_LEAST_PART 32

/* A leaf's key. */
typedef struct SurfLeaf
{
	uint32_t	key;			/* where its bytes are in keys */
	uint32_t	new_bytes;		/* of all leaves before it, also on pages
								 * before */
	uint16_t	len;
	uint16_t	common;			/* bytes shared with the one before */
} SurfLeaf;

/*
 * A flag in the cost of a node: it has a skip, and takes skip_width bits more.
 */
#define SURF_COST_SKIP (UINT32_C(1) << 16)

/*
 * The cost of some nodes: bits in the lower half, the number of skips in the
 * upper.
 */
typedef uint64_t SurfSum;

/* A part of the page. */
typedef struct SurfPart
{
	uint32_t	first;			/* leaf */
	uint32_t	head;
	uint32_t	depth;			/* bits that all keys of the part begin with */
} SurfPart;

/* How the room in a page is used; positions in bits. */
typedef struct SurfLayout
{
	uint32_t	nleaves;
	uint32_t	skip_width;
	uint32_t	prefix_len;		/* bytes */
	uint32_t	prefix_bits;	/* that code them */
	uint32_t	base;			/* bits in the prefix and lead */
	uint32_t	nparts;			/* 0 if there is just one */
	uint32_t	suffix_bits;
	uint32_t	nlonger;		/* leaves whose suffix has one bit more */
	uint32_t	suffixes;		/* where they begin */
	uint32_t	nodes;
} SurfLayout;

struct SurfWriter
{
	uint32_t	page_size;
	FilterSuffix kind;
	uint32_t	max_suffix;
	int32_t		longest_rest;
	int64_t		all_rest;

	/* Of each leaf; room for a batch and SURF_WIDE_NODES on either side. */
	uint16_t   *own_room;
	uint16_t   *own;			/* first bit not shared with the leaf before;
								 * 0 for the first leaf and behind the last */
	uint32_t   *record;			/* where its own bits are in records */
	SurfLeaf   *leaves;
	uint64_t   *hashes;			/* of the leaves' keys, if needed */
	uint32_t	nleaves;
	uint32_t	max_leaves;		/* room in the arrays */
	uint32_t	enough;			/* leaves that are probably enough for a page */

	/* Their keys. */
	uint8_t    *keys;
	uint32_t	nkeys;			/* bytes */
	uint32_t	max_keys;

	/*
	 * Their codes, from the first byte that the leaf before does not share,
	 * as far as nodes and suffixes can need them.
	 */
	uint8_t    *records;
	uint32_t	nrecords;
	uint32_t	max_records;
	uint32_t	zeros;			/* bytes kept behind the end of a code */
	uint32_t	suffix_bytes;	/* the most bytes of a key that a suffix needs */

	/*
	 * Of each node: the nearest less deep nodes, the depth where its chain
	 * begins, its children (0 for a leaf), its cost, its numbers, the cost of
	 * all nodes before it, and its position in the page.
	 */
	uint16_t   *left;
	uint16_t   *right;
	uint16_t   *top;
	uint16_t	(*children)[2];
	uint32_t   *costs;			/* SURF_COST_SKIP and bits */
	uint32_t   *numbers;		/* code_numbers(), if it is short */
	SurfSum    *sums;
	uint32_t   *pos;
	uint16_t   *queue;			/* some of the nodes */

	/* The page that is being made. */
	SurfPart   *parts;
	uint32_t	nparts;
	uint32_t	max_parts;
	uint32_t	part_leaves;	/* what to try first, see cut_parts() */
	uint64_t	node_bits;
	uint32_t	taken;			/* keys that it takes ... */
	SurfLeaf	last_leaf;		/* ... and the last one of them */
	bool		merging;		/* leaves are merged: there are no suffixes */
	uint32_t	merged;			/* leaves of the last page where they were */
	SurfLayout	layout;			/* until it is set, skip_width is that of the
								 * page before */
};

/* Finds the nodes of the whole tree, and sums up their bits. */
extern void surf_writer_find(SurfWriter *writer);

/*
 * Bits of the whole tree over the first n > 0 leaves; sets the uppermost node, 0
 * if there is none.
 */
extern SurfSum surf_writer_sum(const SurfWriter *writer, uint32_t n,
							   uint32_t *uppermost);

/*
 * Cuts the first n leaves into parts of at least "least" leaves.  All keys
 * share the first base bits.  Returns what the nodes of all parts will cost.
 */
extern SurfSum surf_writer_choose(SurfWriter *writer, uint32_t n, uint32_t base,
								  uint32_t least);

/*
 * Makes a tree of each part of the first n leaves.  Returns their cost, and
 * sets skip_width to what their skips need.  Before it is called again,
 * surf_writer_find() must be called.
 */
extern SurfSum surf_writer_cut(SurfWriter *writer, uint32_t n,
							   uint32_t *skip_width);

/*
 * Decides on the layout of a page with the first n leaves.  False if they do
 * not fit.
 */
extern bool surf_writer_lay_out(SurfWriter *writer, const SurfCoder *coder,
								uint32_t n);

/*
 * Bits of a page with the first n leaves, if it is not cut into parts.  Sets
 * node_bits.
 */
extern uint64_t surf_writer_page_bits(SurfWriter *writer, uint32_t n,
									  uint32_t suffix_256);

/*
 * Merges the first n >= 2 leaves into as many as fit a page, and lays that out.  Returns how
 * many they are.  Leaves have no hashes.
 */
extern uint32_t surf_writer_merge(SurfWriter *writer, const SurfCoder *coder,
								  uint32_t n);

/*
 * Writes the page as laid out.  rank and page are as for surf_writer_end().
 */
extern void surf_writer_emit(const SurfWriter *writer, uint64_t rank,
							 uint8_t *page);

/*
 * Bits that a page with nleaves leaves keeps free for parts: for what these
 * take more than nodes would.
 */
static inline uint32_t
surf_parts_reserve(uint32_t nleaves)
{
	return nleaves / 4;
}

/* The leaf behind part i, if the page has the first n leaves. */
static BITS_INLINE uint32_t
part_end(const SurfWriter *writer, uint32_t i, uint32_t n)
{
	return i + 1 < writer->nparts ? writer->parts[i + 1].first : n;
}

/* The key of leaf i. */
static BITS_INLINE FilterBytes
leaf_key(const SurfWriter *writer, uint32_t i)
{
	FilterBytes key = {writer->keys + writer->leaves[i].key, writer->leaves[i].len};

	return key;
}

/* Bits of nodes with skips of that width. */
static BITS_INLINE uint64_t
sum_bits(SurfSum sum, uint32_t skip_width)
{
	return (uint32_t) sum + (sum >> 32) * skip_width;
}

/* The cost of the nodes over the leaves [first, end), without their parent. */
static BITS_INLINE SurfSum
sum_between(const SurfSum *sums, uint32_t first, uint32_t end)
{
	return sums[end] - sums[first + 1];
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

/* Is the left side first, in a node over n leaves with nleft on the left? */
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
	result.value = (uint64_t) (nleft - 1 + (binary.threshold & -(uint32_t) longer)) << gamma |
		(chain + 1);
	return result;
}

/*
 * The cost of a node: its bits, and SURF_COST_SKIP if it has a skip.  Sets
 * *value to its numbers, which are used only if they are short.
 */
static BITS_INLINE uint32_t
cost_node(uint32_t nleft, uint32_t n, uint32_t chain, uint32_t *value)
{
	SurfNumbers numbers = code_numbers(nleft, n, chain);
	uint32_t	skip = has_skip(nleft, n);

	*value = (uint32_t) numbers.value;
	return (numbers.nbits + chain + (bits_log2(n) & -skip)) |
		SURF_COST_SKIP * skip;
}

/* The same for a sum. */
static BITS_INLINE SurfSum
cost_sum(uint32_t cost)
{
	return (cost & (SURF_COST_SKIP - 1)) | (SurfSum) (cost >> 16) << 32;
}

static BITS_INLINE uint32_t
greater(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

#endif							/* RANGEFILTER_SURF_WRITE_IMPL_H */
