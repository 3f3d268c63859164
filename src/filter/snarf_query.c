/*-------------------------------------------------------------------------
 *
 * snarf_query.c
 *	  Asking a SNARF run whether it may hold a key of a range.
 *
 * The root's least and greatest key come first, then the fences, which lead
 * to the one content page, then the page's directory, which leads to the one
 * block whose piece of the model covers the range.
 *
 * Pages may be damaged.  Whatever is read is checked against the page's
 * bounds before it is used as an offset: inconsistent pages answer
 * FILTER_UNKNOWN, others anything, none makes a query leave its page or take
 * longer than looking at all of a block.  The directory's sixteen bytes and
 * more behind a block's data make loads of eight bytes safe that begin in
 * them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include "filter/fence.h"
#include "filter/snarf.h"
#include "filter/snarf_page.h"

/*
 * So few numbers are all compared, which the processor does side by side; the
 * steps of a binary search wait for each other.
 */
#define LINEAR_SEARCH 16

/* A block's data as a query sees it. */
typedef struct BlockView
{
	const uint8_t *data;
	const uint8_t *end;
	uint32_t	ncoded;
	unsigned	code;
	uint16_t	scale;
} BlockView;

/* Is a bit set of those from first to last? */
static BITS_INLINE FilterAnswer
query_bitmap(const BlockView *block, uint64_t first, uint64_t last)
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
 * Where in Elias-Fano's high bits the ones of value high begin: behind its
 * high-th zero.  Returns nbits where there is no such place.
 */
static BITS_INLINE uint64_t
find_high(const uint8_t *bits, uint64_t nbits, uint64_t high, bool fast)
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
next_bit(const uint8_t *bits, uint64_t nbits, uint64_t pos, bool ones)
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
lower_bound(const uint8_t *lows, unsigned width, uint32_t from, uint32_t to,
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

/*
 * Starts to load all high bits of a block and the low bits where the keys
 * with this high value are if keys are spread evenly.
 */
static BITS_INLINE void
prefetch_elias_fano(const BlockView *block, const uint8_t *high_bits,
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
query_elias_fano(const BlockView *block, uint64_t first, uint64_t last,
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
	start = find_high(high, nbits, first_high, fast);
	if (start == nbits)
		return FILTER_NO;

	/* Before start there are first_high zeros, the rest are ones: keys. */
	index = (uint32_t) (start - first_high);
	end = next_bit(high, nbits, start, false);
	stop = index + (uint32_t) (end - start);
	if (stop > block->ncoded)
		return FILTER_UNKNOWN;
	if (index < stop)
	{
		found = lower_bound(block->data, width, index, stop,
							first & bits_mask(width));
		if (found < stop)
			return last_high > first_high ||
				bits_read(block->data, (uint64_t) found * width, width) <=
				(last & bits_mask(width)) ? FILTER_YES : FILTER_NO;
	}
	if (last_high == first_high || stop == block->ncoded)
		return FILTER_NO;

	next = next_bit(high, nbits, end, true);
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
query_block(const BlockView *block, uint64_t lo, uint64_t hi, bool fast)
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

/*
 * How many of the n numbers of width bytes are <= value.  Loads may reach
 * into what follows them, which in a page is 16 bytes and more.
 */
static BITS_INLINE uint32_t
count_firsts(const uint8_t *firsts, uint32_t n, uint32_t width, uint64_t value)
{
	uint64_t	mask = bits_mask(8 * width);
	uint32_t	count = 0;

	/* A mask, as a branch would be mispredicted half the time. */
	while (n > LINEAR_SEARCH)
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

/* Is a key of the page in [lo, hi]? */
static BITS_INLINE FilterAnswer
query_page(const uint8_t *page, uint32_t page_size, uint64_t lo, uint64_t hi,
		   bool fast)
{
	const uint8_t *trailer = page + page_size - SNARF_TRAILER;
	uint64_t	base = bits_load64(trailer);
	uint32_t	nblocks = bits_load16(trailer + 10);
	uint32_t	data_end = bits_load16(trailer + 12);
	uint32_t	width = trailer[14];
	uint32_t	directory = nblocks * (SNARF_META + width) - width;
	const uint8_t *metas;
	const uint8_t *meta;
	uint64_t	first = 0;
	uint32_t	index;
	uint32_t	start;
	uint32_t	end;
	BlockView	block;

	/* All of a usual directory at once, not a cache miss at each step. */
	__builtin_prefetch(trailer - 64);
	__builtin_prefetch(trailer - 128);
	__builtin_prefetch(trailer - 192);
	if (bits_load16(trailer + 8) != SNARF_PAGE_MAGIC || nblocks == 0 ||
		width > 8 || directory > page_size - SNARF_TRAILER ||
		data_end > page_size - SNARF_TRAILER - directory)
		return FILTER_UNKNOWN;

	/* The block with the last first key <= hi: any later one is past it. */
	if (hi < base)
		return FILTER_NO;
	if (lo <= base)
		return FILTER_YES;
	metas = trailer - SNARF_META * nblocks;
	index = count_firsts(metas - (nblocks - 1) * width, nblocks - 1, width,
						 hi - base);
	if (index > 0)
		first = bits_load64(metas - (nblocks - index) * width) &
			bits_mask(8 * width);
	if (lo - base <= first)
		return FILTER_YES;

	meta = metas + SNARF_META * index;
	start = bits_load16(meta);
	end = index + 1 < nblocks ? bits_load16(meta + SNARF_META) : data_end;
	if (start > end || end > data_end)
		return FILTER_UNKNOWN;
	block.data = page + start;
	block.end = page + end;
	block.ncoded = bits_load16(meta + 2) >> 6;
	block.code = bits_load16(meta + 2) & 63;
	block.scale = bits_load16(meta + 4);
	return query_block(&block, lo - base - first, hi - base - first, fast);
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

static BITS_INLINE void
number_bytes(uint64_t number, uint8_t *bytes)
{
	/* Big-endian, so that they sort as the numbers do. */
	bits_store64(bytes, __builtin_bswap64(number));
}

/* Is a key in [lo, hi]? */
FilterAnswer
snarf_query(const uint8_t *root, uint32_t root_len, FilterReader *reader,
			uint64_t lo, uint64_t hi)
{
	static QueryPage query = NULL;
	uint32_t	npages;
	uint64_t	min;
	uint64_t	max;
	uint8_t		lo_bytes[8];
	uint8_t		hi_bytes[8];
	FilterBytes lo_key = {lo_bytes, 8};
	FilterBytes hi_key = {hi_bytes, 8};
	FencePosition position;
	const uint8_t *page;

	if (root_len < SNARF_ROOT_HEADER ||
		bits_load32(root) != SNARF_ROOT_MAGIC ||
		reader->page_size < SNARF_TRAILER)
		return FILTER_UNKNOWN;
	npages = bits_load32(root + 4);
	if (npages == 0 || lo > hi)
		return FILTER_NO;
	min = bits_load64(root + 8);
	max = bits_load64(root + 16);
	if (hi < min || lo > max)
		return FILTER_NO;
	if (lo <= min || hi >= max)
		return FILTER_YES;

	number_bytes(lo, lo_bytes);
	number_bytes(hi, hi_bytes);
	if (!fence_find(root + SNARF_ROOT_HEADER, root_len - SNARF_ROOT_HEADER,
					reader, &lo_key, &hi_key, false, &position) ||
		position.page >= npages)
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
