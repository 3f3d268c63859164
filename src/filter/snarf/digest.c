/*-------------------------------------------------------------------------
 *
 * digest.c
 *	  Making digests of runs; digest.h describes them.
 *
 * Of a SNARF: a block codes positions, which its model (snarf_position) computes from
 * numbers.  Position p stands for numbers at distances from p * 2^(e + 11) / c
 * up to less than (p + 1) * 2^(e + 11) / c, where e is the scale's exponent
 * and c = 1024 + its mantissa.  So the buckets of a position are found by a
 * multiplication, with FRACTION bits behind the point.  The first bucket is
 * rounded down, the last one up.
 *
 * Of a SNARF over leading bits whose numbers are others than the digest's: the strings that
 * a position's numbers stand for have numbers of the digest.
 *
 * Of a SuRF: a leaf stands for the strings between two strings, which have
 * numbers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/snarf/digest.h"
#include "filter/snarf/leading.h"
#include "filter/snarf/snarf_view.h"
#include "filter/surf/surf.h"

#define FRACTION 34

/*
 * Positions with more bits would be rounded too far: their low bits are
 * dropped.
 */
#define POSITION_BITS	32

/* All parts of buckets times 2^FRACTION; three times that still fits 64 bits. */
#define MAX_BITS		(1U << 20)
#define MAX_STEP		((uint64_t) MAX_BITS << FILTER_DIGEST_SPLIT << FRACTION)

/* How numbers of a run become those of a digest. */
typedef struct Translation
{
	LeadingNumbers own;			/* of the run */
	LeadingNumbers others;		/* of the digest */
	uint64_t	greatest;		/* of own */
	uint8_t		room[FILTER_DIGEST_SHARED + LEADING_STRING_LEN];
} Translation;

/* A block that is being put into a digest. */
typedef struct BlockDigest
{
	FilterDigest *digest;
	Translation *translation;	/* if the digest's numbers are others */
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

/* Sets the bits of a part of a bucket; or one of a bucket, where these have no parts. */
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

/* Sets the bits of buckets, without their parts. */
static void
mark_buckets(FilterDigest *digest, uint64_t first, uint64_t last)
{
	for (; first <= last; first++)
		set_bit(digest, first);
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
	if (!reserve_parts(digest, last - first + 1))
		mark_buckets(digest, first >> digest->split, last >> digest->split);
	else
		for (; first <= last; first++)
			mark(digest, first);
}

/*
 * Marks the parts of numbers of the digest, of which some may be outside, and of bits of a
 * hash from hash to last_hash.
 */
static void
mark_numbers(FilterDigest *digest, uint64_t first, uint64_t last, uint32_t hash,
			 uint32_t last_hash)
{
	if (first < digest->min || last > digest->max)
		digest->outside = true;
	if (first < digest->min)
		first = digest->min;
	if (last > digest->max)
		last = digest->max;
	if (first > last)
		return;
	first = (first - digest->min) / digest->width;
	last = (last - digest->min) / digest->width;
	if (!reserve_parts(digest, (last - first + 1) * (last_hash - hash + 1)))
	{
		unsigned	shift = digest->split - digest->numbers.hash_bits;

		mark_buckets(digest, first >> shift, last >> shift);
		return;
	}
	for (; first <= last; first++)
		for (uint32_t i = hash; i <= last_hash; i++)
			mark(digest, (first << digest->numbers.hash_bits) + i);
}

/*
 * Marks the buckets of all strings that have numbers of the run from first to last.  They are
 * above the string with all digits of the number before the first, whatever follows these, and
 * below that of the number behind the last.
 */
static void
mark_translated(FilterDigest *digest, Translation *translation, uint64_t first,
				uint64_t last)
{
	FilterBytes low = translation->own.shared;
	FilterBytes high = translation->own.shared;
	uint64_t	low_number;

	if (first > 0)
	{
		low.data = translation->room;
		low.len = leading_string(&translation->own, first - 1, translation->room);
	}
	low_number = leading_number(&translation->others, low, first > 0);
	if (last < translation->greatest)
	{
		high.data = translation->room;
		high.len = leading_string(&translation->own, last + 1, translation->room);
	}
	mark_numbers(digest, low_number,
				 leading_number(&translation->others, high, last >= translation->greatest), 0, 0);
}

/* Marks the buckets of the numbers that a position stands for, with both ends rounded outward. */
static void
translate_position(BlockDigest *at, uint64_t position)
{
	unsigned	shift = (at->scale & 63) + 11;
	unsigned	__int128 first = position;
	unsigned	__int128 last = first + 1;

	if (at->exact)
		first = last = at->first + position;
	else
	{
		first = at->first + (first << shift) / (1024 + (at->scale >> 6));
		last = at->first + (last << shift) / (1024 + (at->scale >> 6));
	}
	if (last > at->limit)
		last = at->limit;
	if (first > last)
		first = last;
	mark_translated(at->digest, at->translation, (uint64_t) first, (uint64_t) last);
}

/* Marks the buckets of a position. */
static inline void
mark_position(BlockDigest *at, uint64_t position)
{
	uint64_t	first;

	if (at->translation != NULL)
	{
		translate_position(at, position);
		return;
	}
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
	if (at->exact || at->translation != NULL)
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

/* Puts a block into a digest of other numbers than the run's; false if it is damaged. */
static bool
translate_block(BlockDigest *at, const SnarfPageView *view, const SnarfBlockView *block)
{
	if (at->first > at->limit || at->limit > at->translation->greatest)
		return false;
	if (block->code == SNARF_CODE_RUN)
	{
		if (block->scale < at->limit - at->first)
			at->limit = at->first + block->scale;
		mark_translated(at->digest, at->translation, at->first, at->limit);
		return true;
	}
	mark_translated(at->digest, at->translation, at->first, at->first);
	return digest_positions(at, view, block);
}

/*
 * Puts a block into the digest.  Its keys are from first to limit.  False if
 * it is damaged.
 */
static bool
digest_block(BlockDigest *at, const SnarfPageView *view, const SnarfBlockView *block)
{
	const FilterDigest *digest = at->digest;
	uint64_t	part;

	if (at->first < digest->min || at->first > at->limit || at->limit > digest->max)
		return false;
	at->begin = at->first - digest->min;
	at->last = (at->limit - digest->min) / digest->width;
	part = at->begin / digest->width;
	mark(at->digest, part);
	if (block->code == SNARF_CODE_RUN)
	{
		if (block->scale < at->limit - at->first)
			at->limit = at->first + block->scale;
		mark_all(at, part, (at->limit - digest->min) / digest->width);
		return true;
	}
	return digest_positions(at, view, block);
}

/*
 * Puts a page into the digest; false if it is damaged.  The run has no keys above
 * max.
 */
static bool
digest_page(FilterDigest *digest, Translation *translation, const uint8_t *page,
			uint32_t page_size, uint64_t max)
{
	SnarfPageView view;
	uint32_t	i;

	if (!snarf_open_page(&view, page, page_size))
		return false;
	for (i = 0; i < view.nblocks; i++)
	{
		BlockDigest at = {.digest = digest,.translation = translation,.limit = max};
		SnarfBlockView block;

		if (!snarf_open_block(&view, i, &block))
			return false;
		at.first = view.base + snarf_block_begin(&view, i);
		if (i + 1 < view.nblocks)
			at.limit = view.base + snarf_block_begin(&view, i + 1) - 1;
		if (!(translation != NULL ? translate_block(&at, &view, &block) :
			  digest_block(&at, &view, &block)))
			return false;
	}
	return true;
}

/*
 * Marks the buckets of the strings that a leaf of a SuRF stands for.  See
 * surf_visit().
 */
static bool
digest_leaf(void *arg, const SurfLeafKeys *leaf)
{
	FilterDigest *digest = arg;
	const FilterNumbers *numbers = &digest->numbers;
	uint64_t	first = filter_number(numbers, leaf->low);
	uint64_t	last = leaf->above ? filter_number_above(numbers, leaf->high) :
	filter_number(numbers, leaf->high);
	uint64_t	greatest_hash = leaf->hash.bits |
	(leaf->hash.nbits < 64 ? UINT64_MAX >> leaf->hash.nbits : 0);

	if (numbers->hash_bits == 0)
		mark_numbers(digest, first, last, 0, 0);
	else
		mark_numbers(digest, first, last,
					 (uint32_t) (leaf->hash.bits >> (64 - numbers->hash_bits)),
					 (uint32_t) (greatest_hash >> (64 - numbers->hash_bits)));
	return true;
}

/* Puts the pages of a SuRF into the digest; false if one is damaged. */
static bool
digest_surf(FilterDigest *digest, const uint8_t *root, uint32_t root_len,
			FilterReader *reader)
{
	uint32_t	npages = surf_root_pages(root, root_len);
	uint32_t	i;

	for (i = 0; i < npages; i++)
	{
		if (!surf_visit(root, root_len, reader, i, digest_leaf, digest))
			return false;
	}
	return npages > 0;
}

/* Puts the pages of a SNARF into the digest; false if one is damaged. */
static bool
digest_snarf(FilterDigest *digest, Translation *translation, const uint8_t *root_data,
			 uint32_t root_len, FilterReader *reader)
{
	SnarfRoot	root;
	uint32_t	i;

	if (!snarf_open_root(&root, root_data, root_len, reader) ||
		root.npages == 0 || root.max < root.min ||
		(translation == NULL && (root.min < digest->min || root.max > digest->max)))
		return false;
	for (i = 0; i < root.npages; i++)
	{
		const uint8_t *page = reader->read_page(reader, i);

		if (page == NULL || !digest_page(digest, translation, page, reader->page_size,
										 root.max))
			return false;
	}
	return true;
}

/* The same of a SNARF over leading bits, whose root this is. */
static bool
digest_leading(FilterDigest *digest, bool same_numbers, const uint8_t *root,
			   uint32_t root_len, FilterReader *reader)
{
	const FilterNumbers *numbers = &digest->numbers;
	FilterBytes shared = {numbers->shared, numbers->shared_len};
	Translation translation;

	if (!leading_open_root(&root, &root_len, &translation.own))
		return false;
	if (same_numbers)
		return digest_snarf(digest, NULL, root, root_len, reader);
	if (!leading_numbers_init(&translation.others, shared, &numbers->digits))
		return false;
	translation.greatest = leading_greatest(&translation.own);
	memcpy(translation.room, translation.own.shared.data, translation.own.shared.len);
	return digest_snarf(digest, &translation, root, root_len, reader);
}

/* See digest.h. */
bool
filter_digest_make(FilterDigest *digest, FilterKind kind, const uint8_t *root,
				   uint32_t root_len, FilterReader *reader)
{
	FilterNumbers numbers;

	if (!filter_numbers_of(&numbers, kind, root, root_len) ||
		!filter_numbers_suit(&numbers, &digest->numbers) ||
		digest->nbuckets < 2 || digest->nbits > MAX_BITS ||
		digest->nbuckets + (digest->split > 0) > digest->nbits)
		return false;
	memset(digest->bits, 0, filter_digest_size(digest->nbits));
	digest->outside = false;
	digest->parts_left = digest->nbits;
	if (numbers.coded)
		return digest_surf(digest, root, root_len, reader);
	if (numbers.of_bytes)
		return digest_leading(digest, filter_numbers_same(&numbers, &digest->numbers),
							  root, root_len, reader);
	return digest_snarf(digest, NULL, root, root_len, reader);
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
filter_digest_add(FilterDigest *digest, uint64_t key, uint32_t hash_bits)
{
	if (key < digest->min || key > digest->max)
		digest->outside = true;
	else
		mark(digest, filter_digests_part(digest, key, hash_bits));
}
