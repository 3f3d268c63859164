/*-------------------------------------------------------------------------
 *
 * snarf_count.c
 *	  Counting about how many keys of a SNARF run are in a range; checking all
 *	  pages of a run.
 *
 * Each page stores how many keys are in the pages before, each block how many
 * it has.  So only the pages of the range's two ends are read, and keys are
 * counted only within one block of each.
 *
 * The count is exact for exact blocks.  In a lossy block it includes every key
 * that might be in the range.  So it is never too low.  It includes keys
 * outside the range only if they share their position with an end of the
 * range.  At b bits a key that is one key for about 2^(b-2) ends, and always
 * fewer than SNARF_BLOCK_KEYS at each end.  If keys have so few bits that a
 * lossy block is a bitmap, the block does not tell how many keys a position
 * has.  Then the keys are taken to be spread evenly over the positions that
 * have any, and the count may be too high or too low within the same bound.
 *
 * The count is 0 where, and only where, a query answers NO.
 *
 * The ranks are those from the first key that may be in the range to the last
 * one.  They are never too few: of bitmaps the most that there can be are
 * taken.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include "filter/snarf/snarf.h"
#include "filter/snarf/snarf_view.h"

/* What is wanted of a rank that is not known exactly. */
typedef enum RankWanted
{
	RANK_ESTIMATE,
	RANK_AT_LEAST,				/* a lower bound */
	RANK_AT_MOST				/* an upper bound */
} RankWanted;

/* The keys of a block, its first one included. */
static inline uint32_t
block_keys(const SnarfBlockView *block)
{
	return 1 + (block->code == SNARF_CODE_RUN ? block->scale : block->ncoded);
}

/* The bits set among the first n; n is within the block's data. */
static uint32_t
count_ones(const uint8_t *bits, uint64_t n)
{
	uint32_t	count = 0;
	uint64_t	pos;

	for (pos = 0; pos + 64 <= n; pos += 64)
		count += bits_count(bits_load64(bits + (pos >> 3)));
	if (pos < n)
		count += bits_count(bits_load64(bits + (pos >> 3)) &
							bits_mask((unsigned) (n - pos)));
	return count;
}

/*
 * Sets *rank to how many keys coded in a bitmap have a position below limit.
 * If keys share positions, it is an estimate or a bound.  False if the block
 * is damaged.
 */
static bool
rank_bitmap(const SnarfBlockView *block, uint64_t limit, RankWanted wanted,
			uint32_t *rank)
{
	uint64_t	nbits = (uint64_t) (block->end - block->data) * 8;
	uint32_t	taken = count_ones(block->data, nbits);
	uint32_t	below;

	if (taken == 0 || taken > block->ncoded)
		return false;
	if (limit > nbits)
		limit = nbits;
	below = count_ones(block->data, limit);
	if (wanted == RANK_ESTIMATE || taken == block->ncoded)
		*rank = below * block->ncoded / taken;
	else if (wanted == RANK_AT_LEAST)
		*rank = below;
	else
		*rank = block->ncoded - (taken - below);
	return true;
}

/* How many keys coded by Elias-Fano have a position below limit? */
static bool
rank_elias_fano(const SnarfBlockView *block, uint64_t limit, uint32_t *rank)
{
	unsigned	width = block->code;
	uint32_t	low_bytes = snarf_low_bytes(block->ncoded, width);
	const uint8_t *bits = block->data + low_bytes;
	uint64_t	high = limit >> width;
	uint64_t	nbits;
	uint64_t	start;
	uint64_t	end;

	if (low_bytes > block->end - block->data)
		return false;
	nbits = (uint64_t) (block->end - bits) * 8;
	start = snarf_find_high(block, bits, nbits, high, false);
	*rank = block->ncoded;
	if (start == nbits)
		return true;
	end = snarf_next_bit(bits, nbits, start, false);
	if (end - high > block->ncoded)
		return false;
	*rank = snarf_lower_bound(block->data, width, (uint32_t) (start - high),
							  (uint32_t) (end - high),
							  limit & bits_mask(width));
	return true;
}

/*
 * Sets *rank to how many of a block's keys after its first one are at a
 * smaller distance than this; if inclusive, also those at this distance.
 * False if the block is damaged.
 */
static bool
rank_in_block(const SnarfBlockView *block, uint64_t distance, bool inclusive,
			  RankWanted wanted, uint32_t *rank)
{
	uint64_t	limit;

	*rank = 0;
	if (distance == 0 || block_keys(block) == 1)
		return true;
	if (block->code == SNARF_CODE_RUN)
	{
		limit = inclusive ? distance : distance - 1;
		*rank = limit < block->scale ? (uint32_t) limit : block->scale;
		return true;
	}
	limit = snarf_position(distance, block->scale);
	if (inclusive)
	{
		if (limit == UINT64_MAX)
		{
			*rank = block->ncoded;
			return true;
		}
		limit++;
	}
	if (block->code == SNARF_CODE_BITMAP)
		return rank_bitmap(block, limit, wanted, rank);
	return rank_elias_fano(block, limit, rank);
}

/*
 * Sets *rank to how many keys of the run, up to the end of this page, are
 * below key; if inclusive, or equal to it.  False if the page is damaged.
 */
static bool
rank_in_page(const SnarfPageView *view, uint64_t key, bool inclusive,
			 RankWanted wanted, uint64_t *rank)
{
	SnarfBlockView block;
	uint64_t	begin;
	uint64_t	distance;
	uint32_t	index;
	uint32_t	in_block;
	uint32_t	i;

	*rank = view->rank;
	if (key < view->base)
		return true;
	index = snarf_find_block(view, key, &begin);
	if (!snarf_open_block(view, index, &block))
		return false;
	distance = key - view->base - begin;
	if (view->shift > 0 && !inclusive &&
		snarf_position(distance, block.scale) == 0)
	{
		/* Some keys of the block before may be at or above key. */
		if (index == 0)
			return true;
		index--;
		if (!snarf_open_block(view, index, &block))
			return false;
		distance = key - view->base - snarf_block_begin(view, index);
	}
	for (i = 0; i < index; i++)
	{
		SnarfBlockView earlier;

		if (!snarf_open_block(view, i, &earlier))
			return false;
		*rank += block_keys(&earlier);
	}
	if (!rank_in_block(&block, distance, inclusive, wanted, &in_block))
		return false;
	*rank += in_block;
	if (inclusive || distance > 0)
		(*rank)++;				/* the block's first key */
	return true;
}

/* The same, counting from the page that covers the key. */
static bool
rank_in_run(const SnarfRoot *root, FilterReader *reader, uint64_t key,
			bool inclusive, RankWanted wanted, uint64_t *rank)
{
	FencePosition position;
	SnarfPageView view;
	const uint8_t *page;

	if (!snarf_find_page(root, reader, key, key, &position))
		return false;
	page = reader->read_page(reader, position.page);
	return page != NULL && snarf_open_page(&view, page, reader->page_size) &&
		rank_in_page(&view, key, inclusive, wanted, rank);
}

/* The ranks of the keys in [lo, hi], see snarf.h. */
bool
snarf_ranks(const uint8_t *root_data, uint32_t root_len, FilterReader *reader,
			uint64_t lo, uint64_t hi, bool estimate, FilterRanks *ranks)
{
	RankWanted	least = estimate ? RANK_ESTIMATE : RANK_AT_LEAST;
	RankWanted	most = estimate ? RANK_ESTIMATE : RANK_AT_MOST;
	SnarfRoot	root;

	ranks->first = ranks->end = 0;
	if (!snarf_open_root(&root, root_data, root_len, reader))
		return false;
	if (!snarf_root_meets(&root, lo, hi))
		return true;
	return rank_in_run(&root, reader, lo, false, least, &ranks->first) &&
		rank_in_run(&root, reader, hi, true, most, &ranks->end) &&
		ranks->end >= ranks->first;
}

/* See snarf.h. */
uint32_t
snarf_root_pages(const uint8_t *root, uint32_t root_len, uint64_t min,
				 uint64_t max)
{
	if (root_len < SNARF_ROOT_HEADER || bits_load32(root) != SNARF_ROOT_MAGIC ||
		bits_load64(root + SNARF_ROOT_MIN) != min ||
		bits_load64(root + SNARF_ROOT_MAX) != max || min > max)
		return 0;
	return bits_load32(root + 4);
}

/*
 * Can a block be read, and does it have as many keys as it says?  Of Elias-Fano's high
 * bits there must be a one for each key.  In a bitmap several keys may share a position.
 */
static bool
check_block(const SnarfBlockView *block)
{
	uint32_t	size = (uint32_t) (block->end - block->data);
	uint32_t	low_bytes;

	if (block->code == SNARF_CODE_RUN || block->ncoded == 0)
		return true;
	if (block->code == SNARF_CODE_BITMAP)
	{
		uint64_t	ones = count_ones(block->data, (uint64_t) size * 8);

		return ones > 0 && ones <= block->ncoded;
	}
	low_bytes = snarf_low_bytes(block->ncoded, block->code);
	return low_bytes <= size &&
		count_ones(block->data + low_bytes,
				   (uint64_t) (size - low_bytes) * 8) == block->ncoded;
}

/*
 * Checks a page, which begins with a key above the last block of the page before.  Adds
 * to *rank how many keys it has, and sets *last to where its last block begins.
 */
static bool
check_page(const SnarfPageView *view, uint64_t *last, uint64_t *rank)
{
	uint64_t	before = 0;

	if (view->rank != *rank || (*rank > 0 && view->base <= *last))
		return false;
	for (uint32_t i = 0; i < view->nblocks; i++)
	{
		SnarfBlockView block;
		uint64_t	begin = snarf_block_begin(view, i);

		if ((i > 0 && begin <= before) || view->base + begin < view->base ||
			!snarf_open_block(view, i, &block) || !check_block(&block))
			return false;
		before = begin;
		*rank += block_keys(&block);
	}
	*last = view->base + before;
	return true;
}

/* See snarf.h. */
bool
snarf_check(const uint8_t *root_data, uint32_t root_len, FilterReader *reader,
			uint64_t *nkeys)
{
	SnarfRoot	root;
	uint64_t	last = 0;

	*nkeys = 0;
	if (!snarf_open_root(&root, root_data, root_len, reader))
		return false;
	for (uint32_t i = 0; i < root.npages; i++)
	{
		const uint8_t *page = i < reader->npages ? reader->read_page(reader, i) : NULL;
		SnarfPageView view;
		FencePosition position;
		uint64_t	base;

		if (page == NULL || !snarf_open_page(&view, page, reader->page_size))
			return false;
		base = view.base;
		if ((i == 0 && base != root.min) || !check_page(&view, &last, nkeys) ||
			!snarf_find_page(&root, reader, base, base, &position) ||
			position.page != i)
			return false;
	}
	return last <= root.max;
}
