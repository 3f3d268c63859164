/*-------------------------------------------------------------------------
 *
 * snarf_golomb.h
 *	  Searching Golomb-coded blocks of SNARF pages.
 *
 * Unary parts are looked at in groups of as many bits as one load yields: the
 * keys that end in a group are counted, their low bits summed up, and if the
 * last of them is below what is looked for, the search goes on behind it.
 * Only within one group it goes from key to key.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SNARF_GOLOMB_H
#define RANGEFILTER_SNARF_GOLOMB_H

#include "filter/snarf_view.h"

/* Bits of a group: what an unaligned load of eight bytes is sure to have. */
#define SNARF_GROUP_BITS 56

/*
 * How low bits of one width are summed up: as many as fit a group at a time,
 * every other one of them in a field of twice the width, in which 2^width may
 * be added up.  pairs is 0 where that would not do for a group's keys.
 */
typedef struct SnarfSummer
{
	unsigned	width;
	unsigned	pairs;			/* low bits of so many pairs at a time */
	uint64_t	fields;			/* the lower half of each field */
} SnarfSummer;

static BITS_INLINE void
snarf_summer_init(SnarfSummer *summer, unsigned width)
{
	unsigned	i;

	summer->width = width;
	summer->pairs = width < 6 ? 0 : SNARF_GROUP_BITS / 2 / width;
	summer->fields = 0;
	for (i = 0; i < summer->pairs; i++)
		summer->fields |= bits_mask(width) << (2 * width * i);
}

/* The sum of the low bits of count <= SNARF_GROUP_BITS keys from index on. */
static BITS_INLINE uint64_t
snarf_sum_lows(const SnarfSummer *summer, const uint8_t *lows, uint32_t index,
			   uint32_t count)
{
	unsigned	width = summer->width;
	uint64_t	pos = (uint64_t) index * width;
	uint64_t	sum = 0;
	uint64_t	sums = 0;
	unsigned	i;

	for (; summer->pairs > 0 && count >= 2 * summer->pairs;
		 count -= 2 * summer->pairs)
	{
		uint64_t	word = bits_load64(lows + (pos >> 3)) >> (pos & 7);

		sums += (word & summer->fields) + (word >> width & summer->fields);
		pos += 2 * summer->pairs * width;
	}
	for (i = 0; i < summer->pairs; i++)
		sum += sums >> (2 * width * i) & bits_mask(2 * width);
	for (; count > 0; count--, pos += width)
		sum += bits_read(lows, pos, width);
	return sum;
}

/*
 * Finds the first key of a block whose position is at least limit: sets its
 * index among the coded ones, or to their number, and its position.  False if
 * the block is damaged.
 */
static BITS_INLINE bool
snarf_golomb_find(const SnarfBlockView *block, uint64_t limit,
				  uint32_t *index, uint64_t *position)
{
	unsigned	width = block->code;
	uint32_t	low_bytes = snarf_low_bytes(block->ncoded, width);
	const uint8_t *highs = block->data + low_bytes;
	uint64_t	nbits;
	uint64_t	zeros = 0;		/* before this group */
	uint64_t	lows = 0;		/* sum of those before this group */
	uint64_t	pos;
	uint64_t	group = 0;
	SnarfSummer summer;

	*index = 0;
	*position = 0;
	if (low_bytes > block->end - block->data)
		return false;
	nbits = (uint64_t) (block->end - highs) * 8;
	snarf_summer_init(&summer, width);
	for (pos = 0; pos < nbits; pos += SNARF_GROUP_BITS)
	{
		unsigned	valid = nbits - pos < SNARF_GROUP_BITS ?
		(unsigned) (nbits - pos) : SNARF_GROUP_BITS;
		uint32_t	count;
		uint64_t	sum;

		group = bits_load64(highs + (pos >> 3)) & bits_mask(valid);
		count = bits_count(group);
		if (count > block->ncoded - *index)
			return false;
		if (count > 0)
		{
			uint64_t	ahead = bits_log2(group) - (count - 1);

			sum = lows + snarf_sum_lows(&summer, block->data, *index, count);
			if (((zeros + ahead) << width) + sum >= limit)
				break;
			lows = sum;
			*index += count;
		}
		zeros += valid - count;
	}
	if (pos >= nbits)
		return *index == block->ncoded;

	/* The key is in this group, whose ones are taken off one by one. */
	for (pos = 0;; pos++)
	{
		lows += bits_read(block->data, (uint64_t) *index * width, width);
		*position = ((zeros + bits_lowest(group) - pos) << width) + lows;
		group &= group - 1;
		if (*position >= limit || group == 0)
			return *position >= limit;
		(*index)++;
	}
}

#endif							/* RANGEFILTER_SNARF_GOLOMB_H */
