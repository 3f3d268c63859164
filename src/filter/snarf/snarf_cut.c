/*-------------------------------------------------------------------------
 *
 * snarf_cut.c
 *	  Where the blocks of a SNARF page begin and end.
 *
 * A block is used well if its keys are spread evenly.  A large gap within a
 * block, or a part much denser than the rest, costs bits that tell where no
 * keys are.  The size of a block when coded exactly measures this, in both
 * kinds of run: in lossy runs each bit that is missing is a bit of resolution
 * lost.  A block is cut in two as long as this costs less, the new block's
 * directory entry included.  Candidates are the largest gap and the middle.
 * The idea of choosing partitions by their cost is that of partitioned
 * Elias-Fano indexes (Ottaviano and Venturini, SIGIR 2014); here it is done
 * greedily.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include "filter/snarf/snarf_page.h"

/* The state of snarf_cut(). */
typedef struct Cutting
{
	const uint64_t *keys;
	uint32_t	min_keys;
	uint16_t   *ends;
	uint32_t	nends;
} Cutting;

/*
 * Bits that the keys after the first of a block take when coded exactly;
 * span is the distance from the block's first to its last key.
 */
uint64_t
snarf_exact_bits(uint64_t ncoded, uint64_t span)
{
	uint64_t	ratio;
	unsigned	low;
	uint64_t	bits;

	if (span == ncoded)
		return 0;
	ratio = span / ncoded;
	low = ratio == 0 ? 0 : bits_log2(ratio);
	bits = ncoded * (low + 1) + (span >> low);
	return bits < span ? bits : span;
}

static uint64_t
block_bits(const uint64_t *keys, uint32_t from, uint32_t to)
{
	if (to - from == 1)
		return 0;
	return snarf_exact_bits(to - from - 1, keys[to - 1] - keys[from]);
}

/* The start, in [from + 1, to), of the part after the largest gap. */
static uint32_t
largest_gap(const uint64_t *keys, uint32_t from, uint32_t to)
{
	uint64_t	largest = 0;
	uint32_t	at = from;
	uint32_t	i;

	for (i = from; i < to; i++)
	{
		uint64_t	gap = keys[i] - keys[i - 1];
		bool		larger = gap > largest;

		/* Selected without a branch: this loop is a good part of a build. */
		at = larger ? i : at;
		largest = larger ? gap : largest;
	}
	return at;
}

/*
 * Cuts keys [from, to) as long as it pays, and notes the ends of the blocks.
 * Every cut saves at least SNARF_BLOCK_BITS, so the depth of recursion is
 * bounded by the bits of a block, and small in practice.
 */
static void
cut_range(Cutting *cutting, uint32_t from, uint32_t to)
{
	const uint64_t *keys = cutting->keys;
	uint32_t	min_keys = cutting->min_keys;

	for (;;)
	{
		uint64_t	whole = block_bits(keys, from, to);
		uint64_t	best = whole;
		uint32_t	candidates[2];
		uint32_t	cut = to;
		int			i;

		if (whole <= SNARF_BLOCK_BITS || to - from < 2 * min_keys)
			break;
		candidates[0] = largest_gap(keys, from + min_keys, to - min_keys + 1);
		candidates[1] = from + (to - from) / 2;
		for (i = 0; i < 2; i++)
		{
			uint64_t	left = block_bits(keys, from, candidates[i]);
			uint64_t	right = block_bits(keys, candidates[i], to);

			if (left + right + SNARF_BLOCK_BITS < best)
			{
				best = left + right + SNARF_BLOCK_BITS;
				cut = candidates[i];
			}
		}
		if (cut == to)
			break;
		cut_range(cutting, from, cut);
		from = cut;
	}
	cutting->ends[cutting->nends++] = (uint16_t) to;
}

/*
 * Cuts n <= SNARF_BLOCK_KEYS ascending distinct keys into blocks.  All but the
 * last have at least min_keys >= 1.  Returns the number of blocks and sets their
 * ends.  If more keys follow and there are several blocks, the last one is
 * left out, since it may go on.
 */
uint32_t
snarf_cut(const uint64_t *keys, uint32_t n, bool more, uint32_t min_keys,
		  uint16_t *ends)
{
	Cutting		cutting = {keys, min_keys, ends, 0};

	cut_range(&cutting, 0, n);
	if (more && cutting.nends > 1)
		cutting.nends--;
	return cutting.nends;
}
