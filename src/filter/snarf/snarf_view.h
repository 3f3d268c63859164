/*-------------------------------------------------------------------------
 *
 * snarf_view.h
 *	  Reading SNARF's root and pages.
 *
 * Pages may be damaged.  Whatever is read is checked against the page's bounds
 * before it is used as an offset.  So no query leaves its page, or takes
 * longer than looking at all of a block.  Loads of eight bytes that begin in a
 * block's data are safe, since the directory behind the data has more than
 * twenty bytes.
 *
 * All functions are inline, since they are compiled twice, see BITS_TARGET.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SNARF_VIEW_H
#define RANGEFILTER_SNARF_VIEW_H

#include "filter/base/fence.h"
#include "filter/snarf/snarf_page.h"

/*
 * The most numbers that are all compared, which the processor does side by
 * side.  The steps of a binary search wait for each other.
 */
#define SNARF_LINEAR_SEARCH 16

/* A root as a query sees it; pointers lead into the root. */
typedef struct SnarfRoot
{
	const uint8_t *fences;
	uint32_t	fences_len;
	uint32_t	npages;			/* content pages */
	uint64_t	min;
	uint64_t	max;
	uint32_t	block_bytes;	/* usual size of a block, or 0 */
	uint32_t	low_bytes;		/* of its low bits */
} SnarfRoot;

/* A page as a query sees it; pointers lead into the page. */
typedef struct SnarfPageView
{
	const uint8_t *page;
	const uint8_t *metas;		/* SNARF_META bytes of each block */
	const uint8_t *firsts;		/* width bytes of each block but the first */
	const uint8_t *limit;		/* the page's end */
	uint64_t	base;			/* first key of the first block */
	uint64_t	rank;			/* keys of the run before this page */
	uint32_t	nblocks;
	uint32_t	data_end;
	uint32_t	width;
	unsigned	shift;
} SnarfPageView;

/* A block's data as a query sees it. */
typedef struct SnarfBlockView
{
	const uint8_t *data;
	const uint8_t *end;
	const uint8_t *limit;		/* the page's end */
	uint32_t	ncoded;
	unsigned	code;
	uint16_t	scale;
	uint16_t	samples[2];
} SnarfBlockView;

/* Opens a root; false if it is damaged or of another version. */
static BITS_INLINE bool
snarf_open_root(SnarfRoot *root, const uint8_t *data, uint32_t len,
				const FilterReader *reader)
{
	if (len < SNARF_ROOT_HEADER || bits_load32(data) != SNARF_ROOT_MAGIC ||
		reader->page_size < SNARF_TRAILER)
		return false;
	root->npages = bits_load32(data + 4);
	root->min = bits_load64(data + SNARF_ROOT_MIN);
	root->max = bits_load64(data + SNARF_ROOT_MAX);
	root->block_bytes = bits_load16(data + 24);
	root->low_bytes = bits_load16(data + 26);
	root->fences = data + SNARF_ROOT_HEADER;
	root->fences_len = len - SNARF_ROOT_HEADER;
	return true;
}

/* May a key be in [lo, hi], by the least and the greatest key alone? */
static BITS_INLINE bool
snarf_root_meets(const SnarfRoot *root, uint64_t lo, uint64_t hi)
{
	return root->npages > 0 && lo <= hi && hi >= root->min && lo <= root->max;
}

/*
 * Finds the content page that covers lo, and whether [lo, hi] goes on into
 * the next one.  False if the fences are damaged.
 */
static BITS_INLINE bool
snarf_find_page(const SnarfRoot *root, FilterReader *reader, uint64_t lo,
				uint64_t hi, FencePosition *position)
{
	return fence_find_number(root->fences, root->fences_len, reader, lo, hi,
							 position) && position->page < root->npages;
}

/*
 * Opens a page; false if its directory does not fit it, or it has another
 * magic number.
 */
static BITS_INLINE bool
snarf_open_page(SnarfPageView *view, const uint8_t *page, uint32_t page_size)
{
	const uint8_t *trailer = page + page_size - SNARF_TRAILER;
	uint32_t	directory;

	/* Loads a usual directory at once, to avoid a cache miss at each step. */
	__builtin_prefetch(trailer - 64);
	__builtin_prefetch(trailer - 128);
	__builtin_prefetch(trailer - 192);
	view->page = page;
	view->base = bits_load64(trailer);
	view->rank = bits_load32(trailer + 8) | (uint64_t) trailer[19] << 32;
	view->nblocks = bits_load16(trailer + 14);
	view->data_end = bits_load16(trailer + 16);
	view->width = trailer[18];
	view->shift = trailer[20];
	view->limit = page + page_size;
	directory = view->nblocks * (SNARF_META + view->width) - view->width;
	if (bits_load16(trailer + 12) != SNARF_PAGE_MAGIC || view->nblocks == 0 ||
		view->width > 8 || view->shift > SNARF_MAX_SHIFT ||
		directory > page_size - SNARF_TRAILER ||
		view->data_end > page_size - SNARF_TRAILER - directory)
		return false;
	view->metas = trailer - SNARF_META * view->nblocks;
	view->firsts = view->metas - (view->nblocks - 1) * view->width;
	return true;
}

/*
 * How many of the n numbers of width bytes are <= value.  Loads may reach
 * behind the numbers, where a page has at least 16 bytes more.
 */
static BITS_INLINE uint32_t
snarf_count_firsts(const uint8_t *firsts, uint32_t n, uint32_t width,
				   uint64_t value)
{
	uint64_t	mask = bits_mask(8 * width);
	uint32_t	count = 0;

	/* A mask, as a branch would be mispredicted half the time. */
	while (n > SNARF_LINEAR_SEARCH)
	{
		uint32_t	half = n / 2;
		uint32_t	step = half * width;
		bool		covered = (bits_load64(firsts + step - width) & mask) <= value;

		count += half & (0 - (uint32_t) covered);
		firsts += step & (0 - (uint32_t) covered);
		n -= half;
	}
	for (; n > 0; n--, firsts += width)
		count += (bits_load64(firsts) & mask) <= value;
	return count;
}

/* Where a block begins, less base. */
static BITS_INLINE uint64_t
snarf_block_begin(const SnarfPageView *view, uint32_t index)
{
	return index == 0 ? 0 :
		(bits_load64(view->firsts + (index - 1) * view->width) &
		 bits_mask(8 * view->width)) << view->shift;
}

/*
 * The last block that begins at or before key; key >= base.  Sets *begin to
 * where it begins, less base.
 */
static BITS_INLINE uint32_t
snarf_find_block(const SnarfPageView *view, uint64_t key, uint64_t *begin)
{
	uint32_t	index = snarf_count_firsts(view->firsts, view->nblocks - 1,
										   view->width,
										   (key - view->base) >> view->shift);

	*begin = snarf_block_begin(view, index);
	return index;
}

/* Opens a block of a page; false if its data are not within the page's. */
static BITS_INLINE bool
snarf_open_block(const SnarfPageView *view, uint32_t index,
				 SnarfBlockView *block)
{
	const uint8_t *meta = view->metas + SNARF_META * index;
	uint32_t	start = bits_load16(meta);
	uint32_t	end = index + 1 < view->nblocks ?
	bits_load16(meta + SNARF_META) : view->data_end;
	uint32_t	samples = bits_load32(meta + 5) >> 8;

	if (start > end || end > view->data_end)
		return false;
	block->data = view->page + start;
	block->end = view->page + end;
	block->ncoded = bits_load16(meta + 2) >> 6;
	block->code = bits_load16(meta + 2) & 63;
	block->scale = bits_load16(meta + 4);
	block->samples[0] = samples & 0xFFF;
	block->samples[1] = (uint16_t) (samples >> 12);
	block->limit = view->limit;
	return true;
}

/*
 * Where the search for zero number high of Elias-Fano's high bits begins, by
 * the block's samples.  Sets *before to the number of zeros before.
 */
static BITS_INLINE uint32_t
snarf_find_sample(const SnarfBlockView *block, uint64_t high, uint64_t *before)
{
	uint32_t	past0 = high > block->samples[0];
	uint32_t	past1 = high > block->samples[1];

	/* Masks, as branches would be mispredicted. */
	*before = (block->samples[0] & (0 - past0)) +
		((block->samples[1] - (uint32_t) block->samples[0]) & (0 - past1));
	return SNARF_SAMPLE_BITS * (past0 + past1);
}

/*
 * How many of the eight words from p on are before the one that has zero
 * number high.  Sets *skipped to their number of zeros.  Looking at all of
 * them costs less than a branch that cannot be predicted.
 */
static BITS_INLINE uint32_t
snarf_skip_words(const uint8_t *p, uint64_t high, uint64_t *skipped)
{
	uint64_t	zeros = 0;
	uint32_t	nwords = 0;
	uint32_t	i;

	*skipped = 0;
#pragma GCC unroll 8
	for (i = 0; i < SNARF_SAMPLE_BITS / 64; i++)
	{
		zeros += 64 - bits_count(bits_load64(p + 8 * i));
		nwords += zeros < high;
		*skipped = zeros < high ? zeros : *skipped;
	}
	return nwords;
}

/*
 * Where in Elias-Fano's high bits the ones of value high begin: behind zero
 * number high.  nbits if there is no such place.
 */
static BITS_INLINE uint64_t
snarf_find_high(const SnarfBlockView *block, const uint8_t *bits,
				uint64_t nbits, uint64_t high, bool fast)
{
	uint64_t	before;
	uint64_t	pos = snarf_find_sample(block, high, &before);
	uint64_t	zeros;
	unsigned	count;

	if (high == 0)
		return 0;
	high -= before;
	if (fast && block->limit - bits >= (ptrdiff_t) (pos + SNARF_SAMPLE_BITS) / 8)
	{
		pos += 64 * snarf_skip_words(bits + (pos >> 3), high, &before);
		high -= before;
	}
	for (;;)
	{
		if (pos >= nbits)
			return nbits;
		zeros = ~bits_load64(bits + (pos >> 3));
		count = bits_count(zeros);
		if (high <= count)
			break;
		high -= count;
		pos += 64;
	}
	count = (unsigned) high - 1;
	pos += (fast ? bits_select_fast(zeros, count) : bits_select(zeros, count)) + 1;
	return pos < nbits ? pos : nbits;
}

/*
 * The position of the next set bit (if ones; else of the next zero bit) from
 * pos on, or nbits.
 */
static BITS_INLINE uint64_t
snarf_next_bit(const uint8_t *bits, uint64_t nbits, uint64_t pos, bool ones)
{
	while (pos < nbits)
	{
		uint64_t	word = bits_load64(bits + (pos >> 3));

		word = (ones ? word : ~word) >> (pos & 7);
		if (word != 0)
		{
			pos += bits_lowest(word);
			return pos < nbits ? pos : nbits;
		}
		pos += 64 - (pos & 7);
	}
	return nbits;
}

/* The first key in [from, to) whose low bits are at least value, or to. */
static BITS_INLINE uint32_t
snarf_lower_bound(const uint8_t *lows, unsigned width, uint32_t from, uint32_t to,
				  uint64_t value)
{
	/* Mostly there is a key or two; a skewed block may have hundreds. */
	while (to - from > 8)
	{
		uint32_t	middle = from + (to - from) / 2;

		if (bits_read(lows, (uint64_t) middle * width, width) < value)
			from = middle + 1;
		else
			to = middle;
	}
	while (from < to &&
		   bits_read(lows, (uint64_t) from * width, width) < value)
		from++;
	return from;
}

#endif							/* RANGEFILTER_SNARF_VIEW_H */
