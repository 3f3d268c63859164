/*-------------------------------------------------------------------------
 *
 * surf_page.c
 *	  Queries on a content page of SuRF.
 *
 * Nothing is taken on trust: bits past the page's end read as zeros, and zeros
 * are no node.  Positions only grow, and leaves get fewer at each step down.
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

/* page_peek() where a page ends. */
static uint64_t
page_peek_end(const SurfPage *page, uint32_t pos)
{
	uint64_t	value = 0;
	uint32_t	byte;

	for (byte = pos / 8; byte < pos / 8 + 8; byte++)
		value = value << 8 | (byte < page->size ? page->data[byte] : 0);
	return value << pos % 8;
}

/* At least PEEK_BITS bits from pos on, the first one on top. */
static BITS_INLINE uint64_t
page_peek(const SurfPage *page, uint32_t pos)
{
	uint32_t	byte = pos / 8;

	if (__builtin_expect(byte + 8 > page->size, 0))
		return page_peek_end(page, pos);
	return __builtin_bswap64(bits_load64(page->data + byte)) << pos % 8;
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
	uint32_t	longer;

	if (bits >> (63 - MAX_GAMMA_ZEROS) == 0)
		return false;
	zeros = (uint32_t) __builtin_clzll(bits);
	node->chain = (uint32_t) (bits >> (63 - 2 * zeros)) - 1;
	bits <<= 2 * zeros + 1;

	/* No branches: they would be mispredicted too often. */
	both = (uint32_t) (bits >> (63 - binary.nbits));
	longer = both >> 1 >= binary.threshold;
	node->left = 1 + (both >> 1) +
		(-longer & (both - (both >> 1) - binary.threshold));
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
	page->lead_bits = data[10];
	page->top_bits = data[11];
	page->lead = bits_load16(data + 12);
	page->rank = bits_load64(data + 14);
	if (page->nleaves == 0 || page->nlonger > page->nleaves ||
		page->skip_width > 15 || page->lead_bits > SURF_CODE_BITS ||
		page->top_bits > SURF_MAX_TOP)
		return false;

	page->top = page->prefix.data + page->prefix.len;
	page->suffixes = 8 * (SURF_PAGE_HEADER + page->prefix.len);
	if (page->top_bits > 0)
		page->suffixes += 32 * ((1 << page->top_bits) + 1);
	end = page->suffixes + page->nlonger +
		(uint64_t) page->nleaves * page->suffix_bits;
	if (end > 8 * (uint64_t) size)
		return false;
	page->nodes = (uint32_t) end;
	return true;
}

/*
 * Compares key with leaf number i, which is at depth, and sets spot.
 */
static BITS_INLINE void
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

/*
 * Goes down to the first subtree on key's way: walk has no leaves if there is
 * none, and spot is set.  False if the page is damaged.
 */
static BITS_INLINE bool
begin_walk(const SurfPage *page, SurfBits *key, SurfWalk *walk, SurfSpot *spot)
{
	uint64_t	bits = surf_bits_peek(key, 0);
	const uint8_t *entry;
	uint32_t	lead = (uint32_t) ((bits >> 1) >> (63 - page->lead_bits));
	uint32_t	next;

	spot->inside = false;
	if (lead != page->lead)
	{
		spot->below = lead < page->lead ? 0 : page->nleaves;
		return true;
	}
	walk->pos = page->nodes;
	walk->depth = page->lead_bits + page->top_bits;
	walk->first = 0;
	walk->n = page->nleaves;
	if (page->top_bits > 0)
	{
		entry = page->top + 4 * top_bits(bits << page->lead_bits, page->top_bits);
		walk->first = bits_load16(entry);
		walk->pos += (uint32_t) bits_load16(entry + 2) <<
			surf_nodes_shift(page->size);
		next = bits_load16(entry + 4);
		if (walk->first > next || next > page->nleaves)
			return false;
		walk->n = next - walk->first;
		spot->below = walk->first;
	}

	/* The suffix will be near: nodes below take less than a cache line. */
	__builtin_prefetch(page->data + (page->suffixes +
									 (uint64_t) walk->first * page->suffix_bits) / 8);
	return true;
}

/* Finds key, see surf_page.h. */
static BITS_INLINE bool
find(const SurfPage *page, FilterSuffix kind, SurfBits *key,
	 const uint64_t *hash, SurfWalk *start, SurfSpot *spot)
{
	SurfWalk	walk = *start;
	uint32_t	end = 8 * page->size;

	if (walk.n == 0)
	{
		if (!begin_walk(page, key, &walk, spot))
			return false;
		if (walk.n == 0)
			return true;
	}
	while (walk.n > 1)
	{
		SurfNode	node;
		uint32_t	pos = walk.pos;
		uint32_t	width;
		uint32_t	skip;
		uint32_t	right;		/* all bits or none */
		uint64_t	bits;
		uint64_t	chain;
		int			order = 0;

		if (!read_node(page, pos, walk.n, &node))
			return false;
		if (walk.depth <= key->mark_bits)
			*start = walk;
		pos += node.used;

		/* Again no branches; skip is 0 if there is none. */
		width = (bits_width(node.left) + page->skip_width) &
			-(uint32_t) (node.left > SURF_SKIP_LEAVES);
		if (node.used + width + node.chain > PEEK_BITS)
		{
			node.rest = page_peek(page, pos);
			chain = page_peek(page, pos + width);
		}
		else
			chain = node.rest << width;
		skip = (uint32_t) ((node.rest >> 1) >> (63 - width));
		pos += width + node.chain;
		if (pos > end || skip > end - pos)
			return false;

		/* The bits of the chain, and the one behind, which leads on. */
		bits = surf_bits_peek(key, walk.depth);
		walk.depth += node.chain + 1;
		if (node.chain < PEEK_BITS)
		{
			if (((bits ^ chain) >> 1) >> (63 - node.chain) != 0)
				order = bits < chain ? -1 : 1;
			right = -(uint32_t) (bits >> (63 - node.chain) & 1);
		}
		else
		{
			order = compare_bits(page, pos - node.chain, key,
								 walk.depth - node.chain - 1, node.chain);
			right = -(uint32_t) (surf_bits_peek(key, walk.depth - 1) >> 63);
		}
		if (order != 0)
		{
			spot->below = order < 0 ? walk.first : walk.first + walk.n;
			spot->inside = false;
			return true;
		}

		walk.pos = pos + (skip & right);
		if ((width == 0) & (node.left > 1) & right)
		{
			if (!skip_nodes(page, &walk.pos, node.left))
				return false;
		}
		walk.first += node.left & right;
		walk.n = node.left + ((walk.n - 2 * node.left) & right);
	}
	if (walk.depth <= key->mark_bits)
		*start = walk;
	find_at_leaf(page, kind, walk.first, key, walk.depth, hash, spot);
	return true;
}

/* find() for processors with the instructions of BITS_TARGET. */
BITS_TARGET static bool
find_fast(const SurfPage *page, FilterSuffix kind, SurfBits *key,
		  const uint64_t *hash, SurfWalk *walk, SurfSpot *spot)
{
	return find(page, kind, key, hash, walk, spot);
}

/* find() for others. */
static bool
find_portable(const SurfPage *page, FilterSuffix kind, SurfBits *key,
			  const uint64_t *hash, SurfWalk *walk, SurfSpot *spot)
{
	return find(page, kind, key, hash, walk, spot);
}

/* Finds key, see surf_page.h. */
bool
surf_page_find(const SurfPage *page, FilterSuffix kind, SurfBits *key,
			   const uint64_t *hash, SurfWalk *walk, SurfSpot *spot)
{
	if (BITS_CPU_IS_FAST())
		return find_fast(page, kind, key, hash, walk, spot);
	return find_portable(page, kind, key, hash, walk, spot);
}

/* Spells n bits of the page from pos on. */
static bool
spell_bits(const SurfPage *page, uint32_t pos, uint32_t n, SurfSpeller *speller)
{
	while (n > 0)
	{
		uint32_t	now = n < 32 ? n : 32;

		if (!surf_speller_add(speller, page_peek(page, pos) >> (64 - now), now))
			return false;
		pos += now;
		n -= now;
	}
	return true;
}

/* Begins the way down to a leaf at the table, if there is one. */
static bool
begin_spelling(const SurfPage *page, uint32_t leaf, SurfWalk *walk,
			   SurfSpeller *speller)
{
	uint32_t	low = 0;
	uint32_t	high = (uint32_t) 1 << page->top_bits;
	const uint8_t *entry;

	memset(walk, 0, sizeof(SurfWalk));
	walk->pos = page->nodes;
	walk->n = page->nleaves;
	if (!surf_speller_add(speller, page->lead, page->lead_bits))
		return false;
	if (page->top_bits == 0)
		return leaf < page->nleaves;

	/* The last value with a first leaf that is not behind. */
	while (high - low > 1)
	{
		uint32_t	middle = low + (high - low) / 2;

		if (bits_load16(page->top + 4 * middle) <= leaf)
			low = middle;
		else
			high = middle;
	}
	entry = page->top + 4 * low;
	walk->first = bits_load16(entry);
	walk->pos += (uint32_t) bits_load16(entry + 2) << surf_nodes_shift(page->size);
	walk->n = bits_load16(entry + 4);
	if (walk->first > leaf || leaf >= walk->n || walk->n > page->nleaves)
		return false;
	walk->n -= walk->first;
	return surf_speller_add(speller, low, page->top_bits);
}

/* Spells out what a leaf knows of its key, see surf_page.h. */
bool
surf_page_spell(const SurfPage *page, FilterSuffix kind, uint32_t leaf,
				SurfSpeller *speller)
{
	SurfWalk	walk;
	bool		longer = leaf < page->nlonger;
	uint32_t	suffix_pos = page->suffixes + leaf * page->suffix_bits +
	(longer ? leaf : page->nlonger);

	if (!begin_spelling(page, leaf, &walk, speller))
		return false;
	while (walk.n > 1)
	{
		SurfNode	node;
		uint32_t	skip = 0;
		bool		right;

		if (!read_node(page, walk.pos, walk.n, &node))
			return false;
		walk.pos += node.used;
		if (node.left > SURF_SKIP_LEAVES)
		{
			uint32_t	width = bits_width(node.left) + page->skip_width;

			skip = top_bits(page_peek(page, walk.pos), width);
			walk.pos += width;
		}
		right = leaf - walk.first >= node.left;
		if (walk.pos > 8 * page->size || skip > 8 * page->size ||
			!spell_bits(page, walk.pos, node.chain, speller) ||
			!surf_speller_add(speller, right, 1))
			return false;

		walk.pos += node.chain;
		walk.n -= node.left;
		if (!right)
			walk.n = node.left;
		else
		{
			walk.first += node.left;
			walk.pos += skip;
			if (node.left <= SURF_SKIP_LEAVES &&
				!skip_nodes(page, &walk.pos, node.left))
				return false;
		}
	}
	return spell_bits(page, suffix_pos,
					  surf_suffix_split(kind, page->suffix_bits + longer).real,
					  speller);
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
