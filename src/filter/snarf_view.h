/*-------------------------------------------------------------------------
 *
 * snarf_view.h
 *	  Reading SNARF's root and pages: where a number is, Elias-Fano.
 *
 * Pages may be damaged.  Whatever is read is checked against the page's
 * bounds before it is used as an offset: what cannot be is refused, none makes
 * a query leave its page or take longer than looking at all of a block.  The
 * directory's twenty bytes and more behind a block's data make loads of eight
 * bytes safe that begin in them.
 *
 * All is inline, since it is compiled twice, see BITS_TARGET.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SNARF_VIEW_H
#define RANGEFILTER_SNARF_VIEW_H

#include "filter/fence.h"
#include "filter/snarf_page.h"

/*
 * So few numbers are all compared, which the processor does side by side; the
 * steps of a binary search wait for each other.
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
} SnarfRoot;

/* A page as a query sees it; pointers lead into the page. */
typedef struct SnarfPageView
{
	const uint8_t *page;
	const uint8_t *metas;		/* SNARF_META bytes of each block */
	const uint8_t *firsts;		/* width bytes of each block but the first */
	uint64_t	base;			/* first key of the first block */
	uint64_t	rank;			/* keys of the run before this page */
	uint32_t	nblocks;
	uint32_t	data_end;
	uint32_t	width;
} SnarfPageView;

/* A block's data as a query sees it. */
typedef struct SnarfBlockView
{
	const uint8_t *data;
	const uint8_t *end;
	uint32_t	ncoded;
	unsigned	code;
	uint16_t	scale;
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
	root->min = bits_load64(data + 8);
	root->max = bits_load64(data + 16);
	root->fences = data + SNARF_ROOT_HEADER;
	root->fences_len = len - SNARF_ROOT_HEADER;
	return true;
}

/* May a key be in [lo, hi], by the least and the greatest one alone? */
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
	uint8_t		lo_bytes[8];
	uint8_t		hi_bytes[8];
	FilterBytes lo_key = {lo_bytes, 8};
	FilterBytes hi_key = {hi_bytes, 8};

	/* Big-endian, so that they sort as the numbers do. */
	bits_store64(lo_bytes, __builtin_bswap64(lo));
	bits_store64(hi_bytes, __builtin_bswap64(hi));
	return fence_find(root->fences, root->fences_len, reader, &lo_key, &hi_key,
					  false, position) && position->page < root->npages;
}

/* Opens a page; false if its directory does not fit it. */
static BITS_INLINE bool
snarf_open_page(SnarfPageView *view, const uint8_t *page, uint32_t page_size)
{
	const uint8_t *trailer = page + page_size - SNARF_TRAILER;
	uint32_t	directory;

	/* All of a usual directory at once, not a cache miss at each step. */
	__builtin_prefetch(trailer - 64);
	__builtin_prefetch(trailer - 128);
	__builtin_prefetch(trailer - 192);
	view->page = page;
	view->base = bits_load64(trailer);
	view->rank = bits_load32(trailer + 8) | (uint64_t) trailer[19] << 32;
	view->nblocks = bits_load16(trailer + 14);
	view->data_end = bits_load16(trailer + 16);
	view->width = trailer[18];
	directory = view->nblocks * (SNARF_META + view->width) - view->width;
	if (bits_load16(trailer + 12) != SNARF_PAGE_MAGIC || view->nblocks == 0 ||
		view->width > 8 || directory > page_size - SNARF_TRAILER ||
		view->data_end > page_size - SNARF_TRAILER - directory)
		return false;
	view->metas = trailer - SNARF_META * view->nblocks;
	view->firsts = view->metas - (view->nblocks - 1) * view->width;
	return true;
}

/*
 * How many of the n numbers of width bytes are <= value.  Loads may reach
 * into what follows them, which in a page is 16 bytes and more.
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

/*
 * The last block whose first key is at most key >= base; sets *first to that
 * first key, less base.
 */
static BITS_INLINE uint32_t
snarf_find_block(const SnarfPageView *view, uint64_t key, uint64_t *first)
{
	uint32_t	index = snarf_count_firsts(view->firsts, view->nblocks - 1,
										   view->width, key - view->base);

	*first = index == 0 ? 0 :
		bits_load64(view->firsts + (index - 1) * view->width) &
		bits_mask(8 * view->width);
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

	if (start > end || end > view->data_end)
		return false;
	block->data = view->page + start;
	block->end = view->page + end;
	block->ncoded = bits_load16(meta + 2) >> 6;
	block->code = bits_load16(meta + 2) & 63;
	block->scale = bits_load16(meta + 4);
	return true;
}

/*
 * Where in Elias-Fano's high bits the ones of value high begin: behind its
 * high-th zero.  Returns nbits where there is no such place.
 */
static BITS_INLINE uint64_t
snarf_find_high(const uint8_t *bits, uint64_t nbits, uint64_t high, bool fast)
{
	uint64_t	pos = 0;
	uint64_t	zeros;
	unsigned	count;

	if (high == 0)
		return 0;
	if (high >= nbits)
		return nbits;
	for (;;)
	{
		zeros = ~bits_load64(bits + (pos >> 3));
		count = bits_count(zeros);
		if (high <= count)
			break;
		high -= count;
		pos += 64;
		if (pos >= nbits)
			return nbits;
	}
	count = (unsigned) high - 1;
	pos += (fast ? bits_select_fast(zeros, count) : bits_select(zeros, count)) + 1;
	return pos < nbits ? pos : nbits;
}

/* The next bit of a kind (set if ones) from pos on, or nbits. */
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
