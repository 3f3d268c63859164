/*-------------------------------------------------------------------------
 *
 * surf_page.c
 *	  Queries on a content page of SuRF.
 *
 * Pages may be damaged.  Bits behind the page's end read as zeros, and zeros
 * are not a node.  Positions only grow, and leaves get fewer at each step
 * down.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/surf/surf_page.h"

/* The least number of bits that page_peek() returns. */
#define PEEK_BITS 57

/*
 * The most zeros before the length of a chain.  So the codes for a chain and
 * for a number of leaves are short enough for one peek.
 */
#define MAX_GAMMA_ZEROS 16

/* A node as read. */
typedef struct SurfNode
{
	uint32_t	used;			/* bits in front of the chain's */
	uint32_t	chain;			/* bits of the chain */
	uint32_t	left;			/* leaves on the left */
} SurfNode;

/* page_peek() near a page's end. */
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
 * Reads the node over n >= 2 leaves at pos, without its skip.  False if it is
 * damaged.
 */
static BITS_INLINE bool
read_node(const SurfPage *page, uint32_t pos, uint32_t n, SurfNode *node)
{
	uint64_t	bits = page_peek(page, pos);
	SurfBinary	binary = surf_binary(n - 1);
	uint32_t	zeros;
	uint32_t	both;
	uint32_t	longer;

	/* No branches: they would be mispredicted too often. */
	both = (uint32_t) (bits >> (63 - binary.nbits));
	longer = both >> 1 >= binary.threshold;
	node->left = 1 + (both >> 1) +
		(-longer & (both - (both >> 1) - binary.threshold));
	bits <<= binary.nbits + longer;

	if (bits >> (63 - MAX_GAMMA_ZEROS) == 0)
		return false;
	zeros = (uint32_t) __builtin_clzll(bits);
	node->chain = (uint32_t) (bits >> (63 - 2 * zeros)) - 1;
	node->used = binary.nbits + longer + 2 * zeros + 1;
	return true;
}

/*
 * Moves *pos past the nodes over n <= SURF_SKIP_LEAVES leaves.  False if they
 * are damaged.
 */
static BITS_INLINE bool
skip_nodes(const SurfPage *page, uint32_t *pos, uint32_t n)
{
	/* The numbers of nodes of the subtrees still to come, 4 bits each. */
	uint64_t	stack = 0;
	uint32_t	todo;

	for (todo = n - 1; todo > 0; todo--)
	{
		SurfNode	node;
		uint32_t	first;
		uint32_t	zeros;

		if (!read_node(page, *pos, n, &node))
			return false;
		*pos += node.used + node.chain;
		first = node.left < n - node.left ? node.left : n - node.left;
		stack = stack << 8 | (n - first - 1) << 4 | (first - 1);

		/*
		 * Removes subtrees without nodes from the top, then takes the next
		 * one.
		 */
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
	page->skip_width = data[1] & 15;
	page->lead_bits = data[1] >> 4;
	page->nleaves = bits_load16(data + 2);
	page->suffix_bits = bits_load16(data + 4);
	page->nlonger = bits_load16(data + 6);
	page->prefix.len = bits_load16(data + 8);
	page->prefix.data = data + SURF_PAGE_HEADER;
	page->nparts = bits_load16(data + 10);
	page->lead = bits_load16(data + 12);
	page->rank = bits_load64(data + 14);
	if (page->nleaves == 0 || page->nlonger > page->nleaves ||
		page->nparts > page->nleaves)
		return false;

	page->heads = page->prefix.data + page->prefix.len;
	page->starts = page->heads + 2 * page->nparts;
	page->suffixes = 8 * (SURF_PAGE_HEADER + page->prefix.len +
						  SURF_PART_SIZE * page->nparts);
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

		/* At most 64 bits, in two steps, since a peek may be shorter. */
		pos += suffix.real;
		spot->inside = top_bits(page_peek(page, pos), now) == top_bits(*hash, now);
		if (rest > 0 && rest <= 32)
			spot->inside &= top_bits(page_peek(page, pos + now), rest) ==
				top_bits(*hash << now, rest);
	}
}

/* How many heads are at or below head? */
static BITS_INLINE uint32_t
heads_up_to(const uint8_t *heads, uint32_t n, uint32_t head)
{
	uint32_t	base = 0;

	/* A mask, as a branch would be mispredicted half the time. */
	while (n > 8)
	{
		uint32_t	half = n / 2;
		bool		up_to = bits_load16(heads + 2 * (base + half - 1)) <= head;

		base += half & -(uint32_t) up_to;
		n -= half;
	}
	for (heads += 2 * base; n > 0; n--, heads += 2)
		base += bits_load16(heads) <= head;
	return base;
}

/* Sets walk to the top of a part; false if there is damage. */
static BITS_INLINE bool
begin_part(const SurfPage *page, uint32_t part, SurfWalk *walk)
{
	const uint8_t *start = page->starts + 4 * part;
	uint32_t	end = page->nleaves;
	uint32_t	depth = 0;

	walk->first = bits_load16(start);
	walk->pos = page->nodes +
		((uint32_t) bits_load16(start + 2) << surf_nodes_shift(page->size));
	walk->part = part;
	if (part + 1 < page->nparts)
	{
		uint32_t	differing = bits_load16(page->heads + 2 * part) ^
		bits_load16(page->heads + 2 * part + 2);

		end = bits_load16(start + 4);
		if (differing == 0)
			return false;
		depth = SURF_HEAD_BITS - 1 - bits_log2(differing);
	}
	walk->depth = page->lead_bits + depth;
	walk->n = end - walk->first;
	return walk->first < end && end <= page->nleaves;
}

/*
 * Goes to the part that key is in.  If there is none, walk has no leaves and
 * spot is set.  False if the page is damaged.
 */
static BITS_INLINE bool
begin_walk(const SurfPage *page, SurfBits *key, SurfWalk *walk, SurfSpot *spot)
{
	uint64_t	bits = surf_bits_peek(key, 0);
	uint32_t	lead = (uint32_t) ((bits >> 1) >> (63 - page->lead_bits));

	spot->inside = false;
	walk->n = 0;
	if (lead != page->lead)
	{
		spot->below = lead < page->lead ? 0 : page->nleaves;
		return true;
	}
	walk->head = top_bits(bits << page->lead_bits, SURF_HEAD_BITS);
	if (page->nparts == 0)
	{
		walk->pos = page->nodes;
		walk->depth = page->lead_bits;
		walk->first = 0;
		walk->n = page->nleaves;
		walk->part = 0;
	}
	else
	{
		uint32_t	part = heads_up_to(page->heads, page->nparts, walk->head);

		if (part == 0)
		{
			spot->below = 0;
			return true;
		}
		if (!begin_part(page, part - 1, walk))
			return false;
		__builtin_prefetch(page->data + walk->pos / 8);
	}

	/*
	 * The suffix will be near that of the part's first leaf.
	 */
	__builtin_prefetch(page->data + (page->suffixes +
									 (uint64_t) walk->first * page->suffix_bits) / 8);
	return true;
}

/* Where a step leads. */
typedef enum SurfStep
{
	STEP_DOWN,
	STEP_OUT,					/* no leaf has a beginning of the key; spot is
								 * set */
	STEP_DAMAGE
} SurfStep;

/*
 * Goes from a node down to a child, for any place of the node and any length
 * of its chain.
 */
static SurfStep
step_down(const SurfPage *page, SurfBits *key, SurfWalk *walk, SurfSpot *spot)
{
	SurfNode	node;
	uint32_t	n = walk->n;
	uint32_t	pos = walk->pos;
	uint32_t	first;			/* leaves on the side that comes first */
	uint32_t	skip = 0;
	bool		right;
	int			order;

	if (!read_node(page, pos, n, &node))
		return STEP_DAMAGE;
	pos += node.used;
	first = node.left < n - node.left ? node.left : n - node.left;
	if (first > SURF_SKIP_LEAVES)
	{
		uint32_t	width = bits_log2(n) + page->skip_width;

		skip = top_bits(page_peek(page, pos), width);
		pos += width;
	}
	if (pos > 8 * page->size || node.chain > 8 * page->size - pos ||
		skip > 8 * page->size - pos - node.chain)
		return STEP_DAMAGE;

	order = compare_bits(page, pos, key, walk->depth, node.chain);
	if (order != 0)
	{
		spot->below = order < 0 ? walk->first : walk->first + n;
		spot->inside = false;
		return STEP_OUT;
	}
	walk->depth += node.chain + 1;
	walk->pos = pos + node.chain;
	right = surf_bits_peek(key, walk->depth - 1) >> 63;
	if (right == (node.left == first))
	{
		walk->pos += skip;
		if (first <= SURF_SKIP_LEAVES && !skip_nodes(page, &walk->pos, first))
			return STEP_DAMAGE;
	}
	if (right)
		walk->first += node.left;
	walk->n = right ? n - node.left : node.left;
	return STEP_DOWN;
}

/*
 * Goes down like step_down(), as long as nodes have more than one leaf, are
 * not near the page's end, and are short enough for one peek, as most are.
 * Sets mark to the last node at or above the key's mark.
 *
 * There are no branches that processors would predict badly, and few
 * instructions wait for those before.  Otherwise each node would take twice
 * the time.  For the same reason it is one long function: what it knows of a
 * node stays in registers until the next one.
 */
static BITS_INLINE SurfStep
run_down(const SurfPage *page, SurfBits *key, SurfWalk *walk, SurfWalk *mark,
		 SurfSpot *spot)
{
	const uint8_t *data = page->data;
	uint32_t	safe = page->size < 8 ? 0 : 8 * (page->size - 8);
	uint32_t	skip_width = page->skip_width;
	uint32_t	pos = walk->pos;
	uint32_t	depth = walk->depth;
	uint32_t	first = walk->first;
	uint32_t	n = walk->n;
	uint64_t	bits = surf_bits_peek(key, depth);
	uint32_t	nbits = 64;		/* of "bits" that count */
	uint32_t	mark_bits = key->mark_bits;
	SurfStep	step = STEP_DOWN;

	while (n > 1 && pos <= safe)
	{
		uint64_t	value = __builtin_bswap64(bits_load64(data + pos / 8)) << pos % 8;
		SurfBinary	binary = surf_binary(n - 1);
		uint32_t	zeros;
		uint32_t	chain;		/* and the bit behind */
		uint32_t	both;
		uint32_t	longer;
		uint32_t	left;
		uint32_t	lighter;
		uint32_t	width;
		uint32_t	used;
		uint32_t	skip;
		uint32_t	right;		/* all bits or none, as the next one */
		uint32_t	second;

		if (depth <= mark_bits)
		{
			mark->pos = pos;
			mark->depth = depth;
			mark->first = first;
			mark->n = n;
		}
		both = (uint32_t) (value >> (63 - binary.nbits));
		longer = both >> 1 >= binary.threshold;
		left = 1 + (both >> 1) +
			(-longer & (both - (both >> 1) - binary.threshold));
		value <<= binary.nbits + longer;
		if (value >> (63 - MAX_GAMMA_ZEROS) == 0)
			break;
		zeros = (uint32_t) __builtin_clzll(value);
		chain = (uint32_t) (value >> (63 - 2 * zeros));
		value <<= 2 * zeros + 1;
		lighter = left < n - left ? left : n - left;
		width = (bits_log2(n) + skip_width) &
			-(uint32_t) (lighter > SURF_SKIP_LEAVES);
		used = binary.nbits + longer + 2 * zeros + width + chain;
		if (used > PEEK_BITS)
			break;
		if (chain > nbits)
		{
			bits = surf_bits_peek(key, depth);
			nbits = 64;
			mark_bits = key->mark_bits;
		}
		skip = (uint32_t) ((value >> 1) >> (63 - width));
		value <<= width;
		if (((value ^ bits) >> 1) >> (64 - chain) != 0)
		{
			spot->below = bits < value ? first : first + n;
			spot->inside = false;
			step = STEP_OUT;
			break;
		}
		right = -(uint32_t) (bits >> (64 - chain) & 1);
		bits <<= chain;
		nbits -= chain;
		depth += chain;
		second = right ^ -(uint32_t) (left > lighter);
		pos += used + (skip & second);
		if ((width == 0) & (lighter > 1) & second)
		{
			if (!skip_nodes(page, &pos, lighter))
			{
				step = STEP_DAMAGE;
				break;
			}
		}
		first += left & right;
		n = left + ((n - 2 * left) & right);
	}
	walk->pos = pos;
	walk->depth = depth;
	walk->first = first;
	walk->n = n;
	return step;
}

/* Finds key, see surf_page.h. */
static BITS_INLINE bool
find(const SurfPage *page, FilterSuffix kind, SurfBits *key,
	 const uint64_t *hash, SurfWalk *start, SurfSpot *spot)
{
	SurfWalk	walk = *start;
	SurfStep	step = STEP_DOWN;

	if (walk.n == 0 ||
		top_bits(surf_bits_peek(key, 0) << page->lead_bits,
				 SURF_HEAD_BITS) != walk.head)
	{
		if (!begin_walk(page, key, &walk, spot))
			return false;
		if (walk.n == 0)
			return true;

		/*
		 * Keys with the same beginning come to the same node only if they are
		 * in the same part.
		 */
		if (start->n > 0 && start->part == walk.part)
			walk = *start;
	}
	start->part = walk.part;
	start->head = walk.head;
	while (walk.n > 1 && step == STEP_DOWN)
	{
		step = run_down(page, key, &walk, start, spot);
		if (walk.n > 1 && step == STEP_DOWN)
		{
			if (walk.depth <= key->mark_bits)
				*start = walk;
			step = step_down(page, key, &walk, spot);
		}
	}
	if (step != STEP_DOWN)
		return step == STEP_OUT;
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
