/*-------------------------------------------------------------------------
 *
 * snarf_query.c
 *	  Asking a SNARF run whether it may hold a key of a range.
 *
 * A query compares the root's least and greatest key first.  Then the fences
 * lead to one content page, and the page's directory to the one block whose
 * piece of the model covers the range.
 *
 * Damaged pages may give any answer, FILTER_UNKNOWN if the damage is noticed;
 * see snarf_view.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include "filter/snarf/snarf.h"
#include "filter/snarf/snarf_view.h"

/*
 * Mostly no more than FEW_KEYS keys share their high bits.  So FEW_KEYS places
 * are always looked at, even if there are fewer keys: a mispredicted branch
 * would cost more.  With low bits of up to FEW_MAX_WIDTH this reads nothing
 * behind the page's directory.
 */
#define FEW_KEYS		4
#define FEW_MAX_WIDTH	32

/*
 * Random keys are some 30 places away from where they would be if they were
 * evenly spread.  In blocks with more low bytes than this, 30 places are
 * often more than the two nearest cache lines.
 */
#define MANY_LOW_BYTES	512

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
 * Starts loading the high bits to be searched, and the low bits of the keys
 * with this high value, where they are if keys are spread evenly.
 */
static BITS_INLINE void
prefetch_elias_fano(const SnarfBlockView *block, const uint8_t *high_bits,
					uint64_t nbits, uint64_t high)
{
	uint64_t	nhigh = nbits - block->ncoded + 1;
	uint64_t	before;
	const uint8_t *sampled = high_bits +
	snarf_find_sample(block, high, &before) / 8;

	__builtin_prefetch(sampled);
	__builtin_prefetch(sampled + 63);
	if (nbits >= block->ncoded && high < nhigh)
		__builtin_prefetch(block->data +
						   (uint32_t) high * block->ncoded /
						   (uint32_t) nhigh * block->code / 8);
}

/*
 * Does one of run keys from index on, which all have the same high bits, have
 * low bits from first to last?  Looks at FEW_KEYS places without a branch.
 */
static BITS_INLINE bool
few_keys_meet(const uint8_t *lows, unsigned width, uint32_t index,
			  unsigned run, uint64_t first, uint64_t last)
{
	unsigned	meet = 0;
	unsigned	i;

	for (i = 0; i < FEW_KEYS; i++)
	{
		uint64_t	low = bits_read(lows, (uint64_t) (index + i) * width, width);

		meet |= (i < run) & (low - first <= last - first);
	}
	return meet != 0;
}

/*
 * Is a position from first to last taken?  start is where the ones of the keys
 * with the high bits of first begin.
 */
static FilterAnswer
query_successor(const SnarfBlockView *block, const uint8_t *high,
				uint64_t nbits, uint64_t start, uint64_t first, uint64_t last)
{
	unsigned	width = block->code;
	uint64_t	high_bits = last >> width;
	uint64_t	to_go = high_bits - (first >> width);
	uint32_t	index = (uint32_t) (start - (first >> width));
	uint64_t	end = snarf_next_bit(high, nbits, start, false);
	uint32_t	stop = index + (uint32_t) (end - start);
	uint32_t	found;
	uint64_t	next;

	if (stop > block->ncoded)
		return FILTER_UNKNOWN;
	found = snarf_lower_bound(block->data, width, index, stop,
							  first & bits_mask(width));
	if (found == stop)
	{
		if (to_go == 0 || stop == block->ncoded)
			return FILTER_NO;
		next = snarf_next_bit(high, nbits, end, true);
		if (next == nbits)
			return FILTER_UNKNOWN;
		if (next - end > to_go)
			return FILTER_NO;
		to_go -= next - end;
	}
	return to_go > 0 ||
		bits_read(block->data, (uint64_t) found * width, width) <=
		(last & bits_mask(width)) ? FILTER_YES : FILTER_NO;
}

/* Is a position coded by Elias-Fano between first and last? */
static BITS_INLINE FilterAnswer
query_elias_fano(const SnarfBlockView *block, uint64_t first, uint64_t last,
				 bool fast)
{
	unsigned	width = block->code;
	uint32_t	low_bytes = snarf_low_bytes(block->ncoded, width);
	const uint8_t *high;
	uint64_t	first_high = first >> width;
	uint64_t	nbits;
	uint64_t	start;
	uint64_t	word;
	uint64_t	left;
	uint32_t	index;
	unsigned	run;

	if (low_bytes > block->end - block->data)
		return FILTER_UNKNOWN;
	high = block->data + low_bytes;
	nbits = (uint64_t) (block->end - high) * 8;
	prefetch_elias_fano(block, high, nbits, first_high);
	start = snarf_find_high(block, high, nbits, first_high, fast);
	if (start == nbits)
		return FILTER_NO;

	/*
	 * Before start there are first_high zeros; the other bits are ones, one
	 * for each key.
	 */
	index = (uint32_t) (start - first_high);
	word = ~bits_load64(high + (start >> 3)) >> (start & 7);
	left = nbits - start;
	run = bits_lowest(word | UINT64_C(1) << (left < FEW_KEYS + 1 ? left :
											 FEW_KEYS + 1));
	if (run > FEW_KEYS || width > FEW_MAX_WIDTH || first_high != last >> width)
		return query_successor(block, high, nbits, start, first, last);
	if (index + run > block->ncoded)
		return FILTER_UNKNOWN;
	return few_keys_meet(block->data, width, index, run,
						 first & bits_mask(width), last & bits_mask(width)) ?
		FILTER_YES : FILTER_NO;
}

/*
 * Is a key after the block's first one at a distance from lo to hi?  If blocks
 * begin before their first keys (shifted), the first key counts, too.
 */
static BITS_INLINE FilterAnswer
query_block(const SnarfBlockView *block, uint64_t lo, uint64_t hi,
			bool shifted, bool fast)
{
	uint64_t	first;
	uint64_t	last;

	if (block->code == SNARF_CODE_RUN)
		return lo <= block->scale ? FILTER_YES : FILTER_NO;
	first = snarf_position(lo, block->scale);
	last = snarf_position(hi, block->scale);
	if (shifted && first == 0)
		return FILTER_YES;
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
	uint64_t	begin;
	uint32_t	index;

	if (!snarf_open_page(&view, page, page_size))
		return FILTER_UNKNOWN;

	/* Only the last block that begins at or before hi can have such a key. */
	if (hi < view.base)
		return FILTER_NO;
	if (lo <= view.base)
		return FILTER_YES;
	index = snarf_find_block(&view, hi, &begin);
	begin += view.base;
	if (lo <= begin)
		return FILTER_YES;
	if (!snarf_open_block(&view, index, &block))
		return FILTER_UNKNOWN;
	return query_block(&block, lo - begin, hi - begin, view.shift > 0, fast);
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

/*
 * Starts loading the directory, and the data that a query will need if the
 * keys of the page are spread evenly in blocks of the usual size.  Without
 * this the query would wait first for the directory and then for the data.  A
 * wrong guess costs little.  (Always inline, since gcc drops calls of
 * functions that only prefetch.)
 */
static BITS_INLINE void
prefetch_guess(const SnarfRoot *root, const uint8_t *page, uint32_t page_size,
			   uint32_t guess)
{
	const uint8_t *block;
	const uint8_t *low;
	uint32_t	scaled;

	__builtin_prefetch(page + page_size - 64);
	if (root->block_bytes == 0 || root->block_bytes > page_size ||
		root->low_bytes > root->block_bytes || guess == FENCE_NO_GUESS)
		return;
	scaled = page_size / root->block_bytes * guess;
	block = page + (scaled >> 16) * root->block_bytes;
	low = block + ((scaled & 0xFFFF) * root->low_bytes >> 16);
	__builtin_prefetch(low - 32);
	__builtin_prefetch(low + 32);
	if (root->low_bytes > MANY_LOW_BYTES)
	{
		__builtin_prefetch(low - 96);
		__builtin_prefetch(low + 96);
	}
	block += root->low_bytes +
		((scaled & 0xFFFF) * (root->block_bytes - root->low_bytes) >> 16);
	__builtin_prefetch(block - 64);
	__builtin_prefetch(block);
	__builtin_prefetch(block + 64);
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
	prefetch_guess(&root, page, reader->page_size, position.guess);
	if (query == NULL)
		query = BITS_CPU_IS_FAST() ? query_page_fast : query_page_portable;
	return query(page, reader->page_size, lo, hi);
}
