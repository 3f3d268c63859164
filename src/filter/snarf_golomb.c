/*-------------------------------------------------------------------------
 *
 * snarf_golomb.c
 *	  Golomb coding of SNARF's blocks; snarf_golomb.h reads it.
 *
 * The positions of keys spread evenly are apart by distances that are
 * geometrically distributed, for which Golomb's code with a power of two is
 * near the optimum: it takes two fifths of a bit less for a key than
 * Elias-Fano.  The parts of the codes are kept apart, as in the SNARF paper's
 * section 3: low bits side by side and the unary parts in one bit string, so
 * that a query sums up whole words of the latter.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include "filter/snarf_page.h"

/* Bytes of ncoded codes of so many low bits whose high parts have this sum. */
static uint64_t
coded_bytes(uint32_t ncoded, unsigned low, uint64_t highs)
{
	return snarf_low_bytes(ncoded, low) + (ncoded + highs + 7) / 8;
}

/*
 * Finds the smallest coding of a block whose scale, and code for Elias-Fano,
 * are set: sets its code and bytes.  That is no more than Elias-Fano takes,
 * since the sum of the high parts of distances is at most that of the last
 * position.
 */
void
snarf_golomb_choose(SnarfBlock *block, const uint64_t *keys)
{
	uint32_t	ncoded = block->nkeys - 1;
	uint64_t	last = snarf_position(block->span, block->scale);
	uint64_t	previous = 0;
	uint64_t	highs = 0;		/* sums of high parts */
	uint64_t	more_highs = 0;
	unsigned	low = block->code;
	unsigned	less;
	uint64_t	bytes;
	uint64_t	more_bytes;
	uint32_t	i;

	if (block->code == SNARF_CODE_RUN)
		return;
	if (block->code == SNARF_CODE_BITMAP)
		low = last < ncoded ? 0 : bits_log2(last / ncoded);
	less = low > 0 ? low - 1 : 0;
	for (i = 1; i < block->nkeys; i++)
	{
		uint64_t	position = snarf_position(keys[i] - block->begin,
											  block->scale);

		highs += (position - previous) >> low;
		more_highs += (position - previous) >> less;
		previous = position;
	}

	bytes = coded_bytes(ncoded, low, highs);
	more_bytes = coded_bytes(ncoded, less, more_highs);
	if (more_bytes < bytes)
	{
		bytes = more_bytes;
		low = less;
	}
	if (last / 8 + 1 <= bytes)
	{
		bytes = last / 8 + 1;
		low = SNARF_CODE_BITMAP;
	}
	block->code = (uint16_t) low;
	block->bytes = (uint32_t) bytes;
}

/* Codes the positions of keys[1..n-1] into data. */
void
snarf_golomb_encode(const SnarfBlock *block, const uint64_t *keys,
					uint8_t *data)
{
	unsigned	low = block->code;
	uint8_t    *high = data + snarf_low_bytes(block->nkeys - 1, low);
	uint64_t	previous = 0;
	uint64_t	pos = 0;
	uint32_t	i;

	for (i = 1; i < block->nkeys; i++)
	{
		uint64_t	position = snarf_position(keys[i] - block->begin,
											  block->scale);
		uint64_t	distance = position - previous;

		bits_write(data, (uint64_t) (i - 1) * low, low,
				   distance & bits_mask(low));
		pos += distance >> low;
		bits_set(high, pos);
		pos++;
		previous = position;
	}
}
