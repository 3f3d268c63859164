/*-------------------------------------------------------------------------
 *
 * surf_page.c
 *	  Queries on a content page of SuRF.
 *
 * Nothing is taken on trust: bits past the page's end read as zeros, which
 * are no node; the leaves below a node are fewer at each step down.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/surf_page.h"

/* Bits that page_peek() is sure to return. */
#define PEEK_BITS 57

/*
 * Zeros before the length of a chain, at most: so a code for a chain and one
 * for a number of leaves are short enough for one peek.
 */
#define MAX_GAMMA_ZEROS 16

/* A node as read. */
typedef struct SurfNode
{
	uint32_t	used;			/* bits in front of the chain's */
	uint32_t	chain;			/* bits of the chain */
	uint32_t	left;			/* leaves on the left */
	uint64_t	rest;			/* the bits behind left's, as far as peeked at */
} SurfNode;

/* At least PEEK_BITS bits from pos on, the first one on top. */
static BITS_INLINE uint64_t
page_peek(const SurfPage *page, uint32_t pos)
{
	uint32_t	byte = pos / 8;
	uint64_t	value = 0;
	int			i;

	if (byte + 8 <= page->size)
		return __builtin_bswap64(bits_load64(page->data + byte)) << pos % 8;
	for (i = 0; i < 8; i++)
		value = value << 8 | (byte + i < page->size ? page->data[byte + i] : 0);
	return value << pos % 8;
}

/* The top n bits, n >= 1. */
static BITS_INLINE uint32_t
top_bits(uint64_t value, uint32_t n)
{
	return (uint32_t) (value >> (64 - n));
}

/*
 * Reads the node over n >= 2 leaves that is at pos, without its skip.  False
 * if there is none.
 */
static BITS_INLINE bool
read_node(const SurfPage *page, uint32_t pos, uint32_t n, SurfNode *node)
{
	uint64_t	bits = page_peek(page, pos);
	SurfBinary	binary = surf_binary(n - 1);
	uint32_t	zeros;
	uint32_t	both;
	bool		longer;

	if (bits >> (63 - MAX_GAMMA_ZEROS) == 0)
		return false;
	zeros = (uint32_t) __builtin_clzll(bits);
	node->chain = (uint32_t) (bits >> (63 - 2 * zeros)) - 1;
	bits <<= 2 * zeros + 1;

	/* No branches: they would be mispredicted too often. */
	both = (uint32_t) (bits >> (63 - binary.nbits));
	longer = both >> 1 >= binary.threshold;
	node->left = 1 + (longer ? both - binary.threshold : both >> 1);
	node->used = 2 * zeros + 1 + binary.nbits + longer;
	node->rest = bits << (binary.nbits + longer);
	return true;
}

/*
 * Moves *pos past the nodes over n <= SURF_SKIP_LEAVES leaves; false if some
 * are no nodes.
 */
static BITS_INLINE bool
skip_nodes(const SurfPage *page, uint32_t *pos, uint32_t n)
{
	/* The subtrees still to come, 4 bits each: their nodes. */
	uint64_t	stack = 0;
	uint32_t	todo;

	for (todo = n - 1; todo > 0; todo--)
	{
		SurfNode	node;
		uint32_t	zeros;

		if (!read_node(page, *pos, n, &node))
			return false;
		*pos += node.used + node.chain;
		stack = stack << 8 | (n - node.left - 1) << 4 | (node.left - 1);

		/* Takes off the top what has no nodes, then the next to come. */
		zeros = bits_lowest(stack | UINT64_C(1) << 60) & ~3;
		stack >>= zeros;
		n = (stack & 15) + 1;
		stack >>= 4;
	}
	return true;
}

/* Compares n bits of key, from depth on, with those at pos: < 0, 0, > 0. */
static BITS_INLINE int
compare_bits(const SurfPage *page, uint32_t pos, SurfBits *key,
			 uint32_t depth, uint32_t n)
{
	while (n > 0)
	{
		uint32_t	now = n < PEEK_BITS ? n : PEEK_BITS;
		uint64_t	a = surf_bits_peek(key, depth) >> (64 - now);
		uint64_t	b = page_peek(page, pos) >> (64 - now);

		if (a != b)
			return a < b ? -1 : 1;
		pos += now;
		depth += now;
		n -= now;
	}
	return 0;
}

/* Opens a page, see surf_page.h. */
bool
surf_page_open(SurfPage *page, const uint8_t *data, uint32_t size)
{
	uint64_t	end;

	if (size < SURF_PAGE_HEADER || size > UINT32_MAX / 16 ||
		data[0] != SURF_PAGE_MAGIC)
		return false;
	page->data = data;
	page->size = size;
	page->skip_width = data[1];
	page->nleaves = bits_load16(data + 2);
	page->suffix_bits = bits_load16(data + 4);
	page->nlonger = bits_load16(data + 6);
	page->prefix.len = bits_load16(data + 8);
	page->prefix.data = data + SURF_PAGE_HEADER;
	page->suffixes = 8 * (SURF_PAGE_HEADER + page->prefix.len);
	end = page->suffixes + page->nlonger +
		(uint64_t) page->nleaves * page->suffix_bits;
	if (page->nleaves == 0 || page->nlonger > page->nleaves ||
		page->skip_width > 15 || end > 8 * (uint64_t) size)
		return false;
	page->nodes = (uint32_t) end;
	return true;
}

/*
 * Compares key with leaf number i, which is at depth, and sets spot.
 */
static void
find_at_leaf(const SurfPage *page, FilterSuffix kind, uint32_t i,
			 SurfBits *key, uint32_t depth, const uint64_t *hash,
			 SurfSpot *spot)
{
	bool		longer = i < page->nlonger;
	uint32_t	pos = page->suffixes + i * page->suffix_bits +
	(longer ? i : page->nlonger);
	SurfSuffix	suffix = surf_suffix_split(kind, page->suffix_bits + longer);
	int			order = compare_bits(page, pos, key, depth, suffix.real);

	spot->below = i + (order > 0);
	spot->inside = order == 0;
	spot->depth = depth + suffix.real;
	if (hash != NULL && order == 0 && suffix.hash > 0)
	{
		uint32_t	now = suffix.hash < 32 ? suffix.hash : 32;
		uint32_t	rest = suffix.hash - now;

		/* At most 64 bits, in two steps as a peek may be shorter. */
		pos += suffix.real;
		spot->inside = top_bits(page_peek(page, pos), now) == top_bits(*hash, now);
		if (rest > 0 && rest <= 32)
			spot->inside &= top_bits(page_peek(page, pos + now), rest) ==
				top_bits(*hash << now, rest);
	}
}

/* Finds key, see surf_page.h. */
bool
surf_page_find(const SurfPage *page, FilterSuffix kind, SurfBits *key,
			   const uint64_t *hash, SurfSpot *spot)
{
	uint32_t	pos = page->nodes;
	uint32_t	depth = 0;
	uint32_t	first = 0;		/* the leaves below the node at pos ... */
	uint32_t	n = page->nleaves;	/* ... and their number */
	uint32_t	end = 8 * page->size;

	while (n > 1)
	{
		SurfNode	node;
		uint64_t	bits;
		uint32_t	skip = 0;
		bool		right;
		int			order;

		if (!read_node(page, pos, n, &node))
			return false;
		pos += node.used;
		if (node.left > SURF_SKIP_LEAVES)
		{
			uint32_t	width = bits_width(node.left) + page->skip_width;

			if (node.used + width > PEEK_BITS)
				node.rest = page_peek(page, pos);
			skip = top_bits(node.rest, width);
			pos += width;
		}
		if (pos + node.chain > end || skip > end - pos - node.chain)
			return false;

		/* The bits of the chain, and the one behind, which leads on. */
		bits = surf_bits_peek(key, depth);
		if (node.chain >= PEEK_BITS)
		{
			order = compare_bits(page, pos, key, depth, node.chain);
			right = surf_bits_peek(key, depth + node.chain) >> 63;
		}
		else
		{
			uint64_t	differing = (bits ^ page_peek(page, pos)) >> 1;

			order = 0;
			if (differing >> (63 - node.chain) != 0)
				order = bits > page_peek(page, pos) ? 1 : -1;
			right = bits >> (63 - node.chain) & 1;
		}
		if (order != 0)
		{
			spot->below = order < 0 ? first : first + n;
			spot->inside = false;
			return true;
		}
		pos += node.chain;
		depth += node.chain + 1;

		if (node.left > SURF_SKIP_LEAVES)
			pos += right ? skip : 0;
		else if (right && !skip_nodes(page, &pos, node.left))
			return false;
		first += right ? node.left : 0;
		n = right ? n - node.left : node.left;
	}
	find_at_leaf(page, kind, first, key, depth, hash, spot);
	return true;
}

/* A key's hash: multiply and fold, eight bytes a step.  Version 1. */
uint64_t
surf_hash(FilterBytes key)
{
	const uint64_t factor = UINT64_C(0x9fb21c651e98df25);
	uint64_t	hash = key.len * factor;
	uint32_t	i;

	for (i = 0; i < key.len; i += 8)
	{
		uint64_t	word = 0;
		uint32_t	j;

		if (i + 8 <= key.len)
			word = bits_load64(key.data + i);
		else
		{
			for (j = key.len; j > i; j--)
				word = word << 8 | key.data[j - 1];
		}
		hash = (hash ^ word) * factor;
		hash ^= hash >> 29;
	}
	hash *= UINT64_C(0xd6e8feb86659fd93);
	return hash ^ hash >> 32;
}
