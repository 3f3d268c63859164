/*-------------------------------------------------------------------------
 *
 * digest.c
 *	  Making digests of runs; digest.h describes them.
 *
 * A block codes positions, which its model (snarf_position) computes from
 * numbers.  Position p stands for numbers at distances from p * 2^(e + 11) / c
 * up to less than (p + 1) * 2^(e + 11) / c, where e is the scale's exponent
 * and c = 1024 + its mantissa.  So the buckets of a position are found by a
 * multiplication, with FRACTION bits behind the point.  The first bucket is
 * rounded down, the last one up.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/base/pair.h"
#include "filter/snarf/digest.h"
#include "filter/snarf/snarf_view.h"

#define FRACTION 34

/*
 * Positions with more bits would be rounded too far: their low bits are
 * dropped.
 */
#define POSITION_BITS	32

/* All parts of buckets times 2^FRACTION; three times that still fits 64 bits. */
#define MAX_STEP		((uint64_t) FILTER_DIGEST_MOST << FILTER_DIGEST_SPLIT << FRACTION)

/* A block that is being put into a digest. */
typedef struct BlockDigest
{
	FilterDigest *digest;
	uint64_t	first;			/* number of the block, and the last it may
								 * have */
	uint64_t	limit;
	uint16_t	scale;
	bool		exact;			/* positions are distances */
	uint64_t	begin;			/* of the block, less the digest's min */
	uint64_t	last;			/* part of the last key it may have */
	uint64_t	start;			/* where begin is, in parts times 2^FRACTION */
	uint64_t	step;			/* the length of a position, in the same unit */
	unsigned	dropped;		/* low bits of positions that are dropped */
} BlockDigest;

static inline void
set_bit(FilterDigest *digest, uint64_t bit)
{
	digest->bits[bit / 64] |= UINT64_C(1) << bit % 64;
}

/* Sets the bits of a part and its bucket. */
static inline void
mark(FilterDigest *digest, uint64_t part)
{
	set_bit(digest, part >> digest->split);
	for (int i = 0; i < FILTER_DIGEST_HASHES && digest->split > 0; i++)
		set_bit(digest, filter_digests_part_word(digest, part, i));
}

/*
 * Reserves parts that are to be marked.  False if that makes more in all than the digest has bits:
 * then the bits of parts are of no use, all of them are set, and only those of buckets are left to be
 * set.
 */
static bool
reserve_parts(FilterDigest *digest, uint64_t nparts)
{
	/* One stays, as the sign that not all bits were set. */
	if (nparts < digest->parts_left)
	{
		digest->parts_left -= (uint32_t) nparts;
		return true;
	}
	for (uint32_t i = digest->nbuckets; i < digest->nbits && digest->parts_left > 0; i++)
		set_bit(digest, i);
	digest->parts_left = 0;
	return false;
}

/*
 * Marks parts, but none behind the last one of the block, and at least one.
 */
static inline void
mark_all(BlockDigest *at, uint64_t first, uint64_t last)
{
	FilterDigest *digest = at->digest;

	if (last > at->last)
		last = at->last;
	if (first > last)
		first = last;
	if (reserve_parts(digest, last - first + 1))
		for (; first <= last; first++)
			mark(digest, first);
	else
		for (first >>= digest->split; first <= last >> digest->split; first++)
			set_bit(digest, first);
}

/* Marks the buckets of a position. */
static inline void
mark_position(BlockDigest *at, uint64_t position)
{
	uint64_t	first;

	if (at->exact)
	{
		first = (at->begin + position) / at->digest->width;
		mark_all(at, first, first);
		return;
	}
	position >>= at->dropped;
	mark_all(at, (at->start + position * at->step) >> FRACTION,
			 (at->start + 1 + (position + 1) * (at->step + 1)) >> FRACTION);
}

/*
 * Computes the length of a position.  The last key is no further than distance
 * from the block's begin.
 */
static void
set_step(BlockDigest *at, uint16_t scale, uint64_t distance)
{
	uint64_t	width = at->digest->width;
	unsigned	bits = bits_width(snarf_position(distance, scale));
	unsigned	__int128 step;

	at->scale = scale;
	at->exact = scale == SNARF_EXACT_SCALE;
	if (at->exact)
		return;
	at->dropped = bits > POSITION_BITS ? bits - POSITION_BITS : 0;
	step = (unsigned __int128) 1 << ((scale & 63) + at->dropped + 11 + FRACTION);
	step /= (unsigned __int128) (1024 + (scale >> 6)) * width;

	/* A position longer than all buckets can only be the first one. */
	at->step = step < MAX_STEP ? (uint64_t) step : MAX_STEP;
	at->start = (uint64_t) (((unsigned __int128) at->begin << FRACTION) / width);
}

/* Marks the positions of a bitmap. */
static void
digest_bitmap(BlockDigest *at, const SnarfBlockView *block)
{
	uint64_t	nbits = (uint64_t) (block->end - block->data) * 8;
	uint64_t	pos = 0;

	while ((pos = snarf_next_bit(block->data, nbits, pos, true)) < nbits)
		mark_position(at, pos++);
}

/* Marks positions coded by Elias-Fano; false if the block is damaged. */
static bool
digest_elias_fano(BlockDigest *at, const SnarfBlockView *block)
{
	unsigned	width = block->code;
	uint32_t	low_bytes = snarf_low_bytes(block->ncoded, width);
	const uint8_t *high = block->data + low_bytes;
	uint32_t	index = 0;
	uint64_t	nbits;
	uint64_t	pos;

	if (low_bytes > block->end - block->data)
		return false;
	nbits = (uint64_t) (block->end - high) * 8;
	for (pos = 0; pos < nbits; pos += 64)
	{
		uint64_t	word = bits_load64(high + (pos >> 3));

		if (nbits - pos < 64)
			word &= bits_mask((unsigned) (nbits - pos));
		for (; word != 0; word &= word - 1, index++)
		{
			if (index >= block->ncoded)
				return false;
			mark_position(at, (pos + bits_lowest(word) - index) << width |
						  bits_read(block->data, (uint64_t) index * width,
									width));
		}
	}
	return index == block->ncoded;
}

/* Marks the buckets of a block's coded positions; false if it is damaged. */
static bool
digest_positions(BlockDigest *at, const SnarfPageView *view, const SnarfBlockView *block)
{
	set_step(at, block->scale, at->limit - at->first);

	/*
	 * If blocks begin before their first keys, these may be anywhere in
	 * position 0.
	 */
	if (view->shift > 0)
		mark_position(at, 0);
	if (block->code != SNARF_CODE_BITMAP)
		return digest_elias_fano(at, block);
	digest_bitmap(at, block);
	return true;
}

/*
 * Puts a block into the digest.  Its keys are from first to limit.  False if
 * it is damaged.
 */
static bool
digest_block(BlockDigest *at, const SnarfPageView *view, const SnarfBlockView *block)
{
	FilterDigest *digest = at->digest;
	uint64_t	part;

	if (at->first < digest->min || at->first > at->limit || at->limit > digest->max)
		return false;
	at->begin = at->first - digest->min;
	at->last = filter_digests_part(digest, at->limit);
	part = filter_digests_part(digest, at->first);
	mark(digest, part);
	if (block->code == SNARF_CODE_RUN)
	{
		if (block->scale < at->limit - at->first)
			at->limit = at->first + block->scale;
		mark_all(at, part, filter_digests_part(digest, at->limit));
		return true;
	}
	return digest_positions(at, view, block);
}

/*
 * Puts a page into the digest; false if it is damaged.  The run has no keys above
 * max.
 */
static bool
digest_page(FilterDigest *digest, const uint8_t *page, uint32_t page_size, uint64_t max)
{
	SnarfPageView view;
	uint32_t	i;

	if (!snarf_open_page(&view, page, page_size))
		return false;
	for (i = 0; i < view.nblocks; i++)
	{
		BlockDigest at = {.digest = digest,.limit = max};
		SnarfBlockView block;

		if (!snarf_open_block(&view, i, &block))
			return false;
		at.first = view.base + snarf_block_begin(&view, i);
		if (i + 1 < view.nblocks)
			at.limit = view.base + snarf_block_begin(&view, i + 1) - 1;
		if (!digest_block(&at, &view, &block))
			return false;
	}
	return true;
}

/* Puts the pages of a SNARF into the digest; false if one is damaged. */
static bool
digest_snarf(FilterDigest *digest, const uint8_t *root_data, uint32_t root_len,
			 FilterReader *reader)
{
	SnarfRoot	root;
	uint32_t	i;

	if (!snarf_open_root(&root, root_data, root_len, reader) ||
		root.npages == 0 || root.max < root.min ||
		root.min < digest->min || root.max > digest->max)
		return false;
	for (i = 0; i < root.npages; i++)
	{
		const uint8_t *page = reader->read_page(reader, i);

		if (page == NULL || !digest_page(digest, page, reader->page_size, root.max))
			return false;
	}
	return true;
}

/* See digest.h. */
bool
filter_digest_possible(FilterKind kind, const uint8_t *root, uint32_t root_len,
					   bool *of_hashes)
{
	*of_hashes = kind == FILTER_KIND_PAIR;
	return kind != FILTER_KIND_SURF;
}

/* See digest.h. */
bool
filter_digest_make(FilterDigest *digest, FilterKind kind, const uint8_t *root,
				   uint32_t root_len, FilterReader *reader)
{
	bool		of_hashes;
	Pair		pair;

	if (!filter_digest_possible(kind, root, root_len, &of_hashes) ||
		of_hashes != digest->of_hashes || digest->nbuckets < 2 || digest->nbits > FILTER_DIGEST_MOST ||
		digest->nbuckets + (digest->split > 0) > digest->nbits)
		return false;
	memset(digest->bits, 0, filter_digest_size(digest->nbits));
	digest->outside = false;
	digest->parts_left = digest->nbits;
	if (!of_hashes)
		return digest_snarf(digest, root, root_len, reader);
	return pair_open(&pair, root, root_len, reader) &&
		digest_snarf(digest, pair.hashes.root, pair.hashes.root_len, &pair.hashes.reader);
}

/* See digest.h. */
void
filter_digest_put(uint64_t *rows, const FilterDigest *digest, unsigned column,
				  bool clean)
{
	uint64_t	bit = UINT64_C(1) << column;
	uint32_t	i;

	for (i = 0; i <= digest->nbits && !clean; i++)
		rows[i] &= ~bit;
	for (i = 0; i < digest->nbits; i += 64)
	{
		uint64_t	word = digest->bits[i / 64];

		for (; word != 0; word &= word - 1)
			rows[i + bits_lowest(word)] |= bit;
	}
	if (digest->outside)
		rows[digest->nbits] |= bit;
}

/* See digest.h. */
void
filter_digest_add(FilterDigest *digest, uint64_t number)
{
	if (number < digest->min || number > digest->max)
		digest->outside = true;
	else
		mark(digest, filter_digests_part(digest, number));
}
