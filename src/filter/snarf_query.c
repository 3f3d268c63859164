/*-------------------------------------------------------------------------
 *
 * snarf_query.c
 *	  Asking a SNARF run whether it may hold a key of a range.
 *
 * The root's least and greatest key come first, then the fences, which lead
 * to the one content page, then the page's directory, which leads to the one
 * block whose piece of the model covers the range.
 *
 * Damaged pages answer FILTER_UNKNOWN or anything; see snarf_view.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include "filter/snarf.h"
#include "filter/snarf_view.h"

/* Is a bit set of those from first to last? */
static BITS_INLINE FilterAnswer
query_bitmap(const SnarfBlockView *block, uint64_t first, uint64_t last)
{
	uint64_t	nbits = (uint64_t) (block->end - block->data) * 8;

	if (first >= nbits)
		return FILTER_NO;
	if (last >= nbits)
		last = nbits - 1;
	for (;;)
	{
		uint64_t	word = bits_load64(block->data + (first >> 3)) >> (first & 7);
		unsigned	valid = 64 - (first & 7);

		if (last - first < valid)
			return (word & bits_mask((unsigned) (last - first) + 1)) != 0 ?
				FILTER_YES : FILTER_NO;
		if (word != 0)
			return FILTER_YES;
		first += valid;
	}
}

/*
 * Starts to load all high bits of a block and the low bits where the keys
 * with this high value are if keys are spread evenly.
 */
static BITS_INLINE void
prefetch_elias_fano(const SnarfBlockView *block, const uint8_t *high_bits,
					uint64_t nbits, uint64_t high)
{
	uint64_t	nhigh = nbits - block->ncoded + 1;

	__builtin_prefetch(high_bits);
	__builtin_prefetch(high_bits + 64);
	__builtin_prefetch(high_bits + 128);
	if (nbits >= block->ncoded && high < nhigh)
		__builtin_prefetch(block->data +
						   (uint32_t) high * block->ncoded /
						   (uint32_t) nhigh * block->code / 8);
}

/*
 * Is a position coded by Elias-Fano between first and last?  It asks for the
 * successor of first: among the keys with the same high bits, or the next key
 * after these.
 */
static BITS_INLINE FilterAnswer
query_elias_fano(const SnarfBlockView *block, uint64_t first, uint64_t last,
				 bool fast)
{
	unsigned	width = block->code;
	uint32_t	low_bytes = (block->ncoded * width + 7) / 8;
	const uint8_t *high;
	uint64_t	first_high = first >> width;
	uint64_t	last_high = last >> width;
	uint64_t	nbits;
	uint64_t	start;
	uint64_t	end;
	uint64_t	next;
	uint32_t	index;
	uint32_t	found;
	uint32_t	stop;

	if (low_bytes > block->end - block->data)
		return FILTER_UNKNOWN;
	high = block->data + low_bytes;
	nbits = (uint64_t) (block->end - high) * 8;
	prefetch_elias_fano(block, high, nbits, first_high);
	start = snarf_find_high(high, nbits, first_high, fast);
	if (start == nbits)
		return FILTER_NO;

	/* Before start there are first_high zeros, the rest are ones: keys. */
	index = (uint32_t) (start - first_high);
	end = snarf_next_bit(high, nbits, start, false);
	stop = index + (uint32_t) (end - start);
	if (stop > block->ncoded)
		return FILTER_UNKNOWN;
	if (index < stop)
	{
		found = snarf_lower_bound(block->data, width, index, stop,
								  first & bits_mask(width));
		if (found < stop)
			return last_high > first_high ||
				bits_read(block->data, (uint64_t) found * width, width) <=
				(last & bits_mask(width)) ? FILTER_YES : FILTER_NO;
	}
	if (last_high == first_high || stop == block->ncoded)
		return FILTER_NO;

	next = snarf_next_bit(high, nbits, end, true);
	if (next == nbits)
		return FILTER_UNKNOWN;
	if (next - end > last_high - first_high)
		return FILTER_NO;
	if (next - end < last_high - first_high)
		return FILTER_YES;
	return bits_read(block->data, (uint64_t) stop * width, width) <=
		(last & bits_mask(width)) ? FILTER_YES : FILTER_NO;
}

/* Is a key after the block's first one at a distance from lo to hi? */
static BITS_INLINE FilterAnswer
query_block(const SnarfBlockView *block, uint64_t lo, uint64_t hi, bool fast)
{
	uint64_t	first;
	uint64_t	last;

	if (block->code == SNARF_CODE_RUN)
		return lo <= block->scale ? FILTER_YES : FILTER_NO;
	first = snarf_position(lo, block->scale);
	last = snarf_position(hi, block->scale);
	if (block->code == SNARF_CODE_BITMAP)
		return query_bitmap(block, first, last);
	return query_elias_fano(block, first, last, fast);
}

/* Is a key of the page in [lo, hi]? */
static BITS_INLINE FilterAnswer
query_page(const uint8_t *page, uint32_t page_size, uint64_t lo, uint64_t hi,
		   bool fast)
{
	SnarfPageView view;
	SnarfBlockView block;
	uint64_t	first;
	uint32_t	index;

	if (!snarf_open_page(&view, page, page_size))
		return FILTER_UNKNOWN;

	/* The block with the last first key <= hi: any later one is past it. */
	if (hi < view.base)
		return FILTER_NO;
	if (lo <= view.base)
		return FILTER_YES;
	index = snarf_find_block(&view, hi, &first);
	first += view.base;
	if (lo <= first)
		return FILTER_YES;
	if (!snarf_open_block(&view, index, &block))
		return FILTER_UNKNOWN;
	return query_block(&block, lo - first, hi - first, fast);
}

typedef FilterAnswer (*QueryPage) (const uint8_t *page, uint32_t page_size,
								   uint64_t lo, uint64_t hi);

/* query_page() for processors with the instructions of BITS_TARGET. */
BITS_TARGET static FilterAnswer
query_page_fast(const uint8_t *page, uint32_t page_size, uint64_t lo,
				uint64_t hi)
{
	return query_page(page, page_size, lo, hi, true);
}

/* query_page() for others. */
static FilterAnswer
query_page_portable(const uint8_t *page, uint32_t page_size, uint64_t lo,
					uint64_t hi)
{
	return query_page(page, page_size, lo, hi, false);
}

/* Is a key in [lo, hi]? */
FilterAnswer
snarf_query(const uint8_t *root_data, uint32_t root_len, FilterReader *reader,
			uint64_t lo, uint64_t hi)
{
	static QueryPage query = NULL;
	SnarfRoot	root;
	FencePosition position;
	const uint8_t *page;

	if (!snarf_open_root(&root, root_data, root_len, reader))
		return FILTER_UNKNOWN;
	if (!snarf_root_meets(&root, lo, hi))
		return FILTER_NO;
	if (lo <= root.min || hi >= root.max)
		return FILTER_YES;
	if (!snarf_find_page(&root, reader, lo, hi, &position))
		return FILTER_UNKNOWN;

	/* The fences are first keys, see snarf_build.c. */
	if (position.range_crosses)
		return FILTER_YES;
	page = reader->read_page(reader, position.page);
	if (page == NULL)
		return FILTER_UNKNOWN;
	if (query == NULL)
		query = BITS_CPU_IS_FAST() ? query_page_fast : query_page_portable;
	return query(page, reader->page_size, lo, hi);
}
