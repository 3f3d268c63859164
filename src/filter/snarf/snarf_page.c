/*-------------------------------------------------------------------------
 *
 * snarf_page.c
 *	  Building SNARF's content pages; snarf_page.h has the layout.
 *
 * A page is built either block by block, each coded exactly, until one does
 * not fit (snarf_page_add); or from all its keys, with the highest resolution
 * that there is room for (snarf_page_fill).
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/base/port.h"
#include "filter/snarf/snarf_page.h"

/* Stores of eight bytes may begin at the last byte of a page's data. */
#define DATA_SLACK 16

/*
 * Resolutions, in positions per key, are numbered.  There are 256 equal steps
 * from each power of two to the next.  The least is 1/16.
 */
#define RESOLUTION_STEPS	256
#define RESOLUTION_MAX		(68 * RESOLUTION_STEPS)

/* The beginnings of blocks are not shifted if one has fewer positions. */
#define MIN_POSITIONS 64

/* How the positions of a block are coded, and in how many bytes. */
typedef struct SnarfCoding
{
	unsigned	code;
	uint32_t	bytes;
} SnarfCoding;

/* Creates an empty page that only counts; see snarf_page_keep_data(). */
SnarfPage *
snarf_page_create(uint32_t page_size)
{
	SnarfPage  *page = filter_alloc(sizeof(SnarfPage));

	page->page_size = page_size;

	/*
	 * Allocated here, since keys may be added in memory contexts that do not
	 * last.
	 */
	page->max_blocks = 64;
	page->blocks = filter_alloc(page->max_blocks * sizeof(SnarfBlock));
	return page;
}

/* From now on the page keeps its blocks' data. */
void
snarf_page_keep_data(SnarfPage *page)
{
	page->data = filter_alloc(page->page_size + DATA_SLACK);
}

void
snarf_page_free(SnarfPage *page)
{
	filter_free(page->data);
	filter_free(page->blocks);
	filter_free(page);
}

/* Makes the page an empty one. */
void
snarf_page_reset(SnarfPage *page)
{
	if (page->data != NULL)
		memset(page->data, 0, page->page_size + DATA_SLACK);
	page->data_len = 0;
	page->nblocks = 0;
	page->shift = 0;
}

static SnarfBlock *
append_block(SnarfPage *page)
{
	if (page->nblocks == page->max_blocks)
	{
		page->max_blocks *= 2;
		page->blocks = filter_realloc(page->blocks,
									  page->max_blocks * sizeof(SnarfBlock));
	}
	return &page->blocks[page->nblocks++];
}

/* Bytes that a number needs. */
static inline uint32_t
byte_width(uint64_t value)
{
	return (bits_width(value) + 7) / 8;
}

/* Size of the directory of nblocks blocks, the last at distance from base. */
static inline uint32_t
directory_size(uint32_t nblocks, uint64_t distance)
{
	return SNARF_TRAILER + SNARF_META * nblocks +
		(nblocks - 1) * byte_width(distance);
}

/*
 * The smallest coding of ncoded positions up to last.  Positions that end
 * earlier take no more bytes with the same code.
 */
static SnarfCoding
choose_coding(uint32_t ncoded, uint64_t last)
{
	SnarfCoding coding;
	uint64_t	ratio = last / ncoded;
	unsigned	low = ratio == 0 ? 0 : bits_log2(ratio);

	if (low > SNARF_MAX_LOW)
		low = SNARF_MAX_LOW;
	coding.code = low;
	coding.bytes = (uint32_t) (((uint64_t) ncoded * low + 7) / 8 +
							   (ncoded + (last >> low) + 7) / 8);
	if (last / 8 + 1 <= coding.bytes)
	{
		coding.code = SNARF_CODE_BITMAP;
		coding.bytes = (uint32_t) (last / 8 + 1);
	}
	return coding;
}

/* Codes the positions of keys[1..n-1] as a bitmap. */
static void
encode_bitmap(const SnarfBlock *block, const uint64_t *keys, uint8_t *data)
{
	uint32_t	i;

	for (i = 1; i < block->nkeys; i++)
		bits_set(data, snarf_position(keys[i] - block->begin, block->scale));
}

/* Codes the positions of keys[1..n-1] by Elias-Fano. */
static void
encode_elias_fano(const SnarfBlock *block, const uint64_t *keys, uint8_t *data)
{
	uint32_t	ncoded = block->nkeys - 1;
	unsigned	low = block->code;
	uint64_t	low_mask = bits_mask(low);
	uint8_t    *high = data + snarf_low_bytes(ncoded, low);
	uint32_t	i;

	for (i = 0; i < ncoded; i++)
	{
		uint64_t	position = snarf_position(keys[i + 1] - block->begin,
											  block->scale);
		uint64_t	bit = (uint64_t) i * low;
		uint8_t    *p = data + (bit >> 3);

		/* One store of eight bytes, if that is enough. */
		if (low <= 57)
			bits_store64(p, bits_load64(p) |
						 (position & low_mask) << (bit & 7));
		else
			bits_write(data, bit, low, position & low_mask);
		bits_set(high, (position >> low) + i);
	}
}

/*
 * Notes how many zeros are before some of a block's high bits, so that queries
 * look at a part of them only.
 */
static void
take_samples(SnarfBlock *block, const uint8_t *high, uint64_t nbits)
{
	uint32_t	zeros = 0;
	uint32_t	i;
	uint32_t	j;

	for (i = 0; i < 2; i++)
	{
		block->samples[i] = SNARF_NO_SAMPLE;
		if (nbits <= (i + 1) * SNARF_SAMPLE_BITS)
			continue;
		for (j = 0; j < SNARF_SAMPLE_BITS; j += 64)
			zeros += 64 - bits_count(bits_load64(high + (i * SNARF_SAMPLE_BITS +
														 j) / 8));
		block->samples[i] = (uint16_t) zeros;
	}
}

/*
 * Codes a block's keys by Elias-Fano behind the page's data, with samples.
 * Returns its bytes.  They may be fewer than planned, since the last position
 * may be smaller than planned.
 */
static uint32_t
place_elias_fano(SnarfPage *page, SnarfBlock *block, const uint64_t *keys)
{
	uint8_t    *data = page->data + page->data_len;
	uint32_t	ncoded = block->nkeys - 1;
	uint32_t	low = snarf_low_bytes(ncoded, block->code);
	uint64_t	last = snarf_position(block->span, block->scale);
	uint32_t	high = (uint32_t) ((ncoded + (last >> block->code) + 7) / 8);

	encode_elias_fano(block, keys, data);
	take_samples(block, data + low, 8 * high);
	return low + high;
}

/* Puts the data of a block behind the page's.  There must be room. */
static void
place_block(SnarfPage *page, SnarfBlock *block, const uint64_t *keys)
{
	uint32_t	bytes = block->bytes;

	block->start = page->data_len;
	block->samples[0] = SNARF_NO_SAMPLE;
	block->samples[1] = SNARF_NO_SAMPLE;
	if (page->data != NULL && block->code == SNARF_CODE_BITMAP)
		encode_bitmap(block, keys, page->data + page->data_len);
	else if (page->data != NULL && block->code != SNARF_CODE_RUN)
		bytes = place_elias_fano(page, block, keys);
	page->data_len += bytes;
}

/* Describes n keys as a block of consecutive ones or one coded exactly. */
static void
describe_exact(SnarfBlock *block, const uint64_t *keys, uint32_t n)
{
	SnarfCoding coding = {SNARF_CODE_RUN, 0};

	block->begin = keys[0];
	block->span = keys[n - 1] - keys[0];
	block->nkeys = n;
	block->scale = (uint16_t) (n - 1);
	if (block->span != n - 1)
	{
		coding = choose_coding(n - 1, block->span);
		block->scale = SNARF_EXACT_SCALE;
	}
	block->code = (uint16_t) coding.code;
	block->bytes = coding.bytes;
}

/*
 * Extends the page's last block by these n keys, if it is a run of consecutive
 * keys and they follow it; else false.
 */
static bool
extend_run(SnarfPage *page, const uint64_t *keys, uint32_t n)
{
	SnarfBlock *last;

	if (page->nblocks == 0)
		return false;
	last = &page->blocks[page->nblocks - 1];
	if (last->code != SNARF_CODE_RUN ||
		last->nkeys + n > SNARF_RUN_KEYS ||
		keys[n - 1] - last->begin != last->nkeys + n - 1)
		return false;
	last->nkeys += n;
	last->span = last->nkeys - 1;
	last->scale = (uint16_t) last->span;
	return true;
}

/*
 * Adds n <= SNARF_BLOCK_KEYS ascending distinct keys as a block that is coded
 * exactly.  If it does not fit, returns false and does nothing.
 */
bool
snarf_page_add(SnarfPage *page, const uint64_t *keys, uint32_t n)
{
	SnarfBlock	block;
	uint64_t	distance;

	if (extend_run(page, keys, n))
		return true;
	describe_exact(&block, keys, n);
	distance = page->nblocks > 0 ? block.begin - page->blocks[0].begin : 0;
	if (page->data_len + block.bytes +
		directory_size(page->nblocks + 1, distance) > page->page_size)
		return false;
	*append_block(page) = block;
	place_block(page, &page->blocks[page->nblocks - 1], keys);
	return true;
}

/* The last position that ncoded keys may have at a numbered resolution. */
static uint64_t
last_position(uint32_t ncoded, uint32_t resolution)
{
	uint64_t	mantissa = RESOLUTION_STEPS + resolution % RESOLUTION_STEPS;
	uint32_t	shift = resolution / RESOLUTION_STEPS;
	uint64_t	positions = ncoded * mantissa;

	/* 2^12 = RESOLUTION_STEPS * 16, the least resolution being 1/16 */
	if (shift < 12)
		positions = positions >> (12 - shift);
	else if (bits_width(positions) + shift - 12 <= 64)
		positions = positions << (shift - 12);
	else
		return UINT64_MAX;
	return positions > 0 ? positions - 1 : 0;
}

/*
 * The coding of a block at a resolution.  Sets *last to the last position; it
 * is the block's span, as in exact coding, if the resolution allows that.
 */
static SnarfCoding
coding_at(const SnarfBlock *block, uint32_t resolution, uint64_t *last)
{
	SnarfCoding run = {SNARF_CODE_RUN, 0};
	uint32_t	ncoded = block->nkeys - 1;

	*last = block->span;
	if (block->span == ncoded)
		return run;
	*last = last_position(ncoded, resolution);
	if (*last > block->span)
		*last = block->span;
	return choose_coding(ncoded, *last);
}

/*
 * The largest factor, in the form stored in pages, with which distance span
 * gets a position less than positions; span >= positions.
 *
 * It is positions / (span + 1) rounded down, found as a quotient of about 12
 * bits of both numbers shifted to the top of their words.
 */
uint16_t
snarf_choose_scale(uint64_t positions, uint64_t span)
{
	uint32_t	halved = span >> 63;	/* or span + 1 might overflow */
	uint64_t	divisor = (span >> halved) + 1;
	uint32_t	top = (uint32_t) __builtin_clzll(positions);
	uint32_t	divisor_top = (uint32_t) __builtin_clzll(divisor);
	uint32_t	exponent = top + halved - divisor_top;
	uint64_t	mantissa = (positions << top) >> 11;

	mantissa /= ((divisor << divisor_top) >> 22) + 1;
	if (mantissa >= 2048)
	{
		mantissa /= 2;
		exponent--;
	}

	/* The smallest factor there is, 2^-64, is enough for one position. */
	if (exponent > 63)
	{
		mantissa = 1024;
		exponent = 63;
	}

	/* This value would be SNARF_EXACT_SCALE. */
	if (exponent == 63 && mantissa == 2047)
		mantissa--;
	return (uint16_t) ((mantissa - 1024) << 6 | exponent);
}

/*
 * Into how many parts of equal size keys are cut before other cuts: as many as
 * in the last page, if they then have a suitable size.
 */
static uint32_t
choose_parts(SnarfPage *page, uint32_t n)
{
	if (n > page->parts * SNARF_BLOCK_KEYS ||
		n < page->parts * (SNARF_BLOCK_KEYS / 4 * 3))
		page->parts = n / (SNARF_BLOCK_KEYS / 16 * 15) + 1;
	return page->parts;
}

/* Cuts the keys into blocks of at least min_keys: sets the page's blocks. */
static void
cut_page(SnarfPage *page, const uint64_t *keys, uint32_t n, uint32_t min_keys)
{
	uint16_t	ends[SNARF_BLOCK_KEYS];
	uint32_t	parts = choose_parts(page, n);
	uint32_t	size = (n + parts - 1) / parts;
	uint32_t	done = 0;

	snarf_page_reset(page);
	while (done < n)
	{
		uint32_t	left = n - done;
		bool		more = left > size;
		uint32_t	nends = snarf_cut(keys + done, more ? size : left, more,
									  min_keys, ends);
		uint32_t	start = 0;
		uint32_t	i;

		for (i = 0; i < nends; i++)
		{
			const uint64_t *part = keys + done + start;
			uint32_t	length = ends[i] - start;

			if (!extend_run(page, part, length))
				describe_exact(append_block(page), part, length);
			start = ends[i];
		}
		done += start;
	}
}

/* Size of the page's directory. */
static uint32_t
page_directory_size(const SnarfPage *page)
{
	uint32_t	nblocks = page->nblocks;
	uint64_t	distance = page->blocks[nblocks - 1].begin -
	page->blocks[0].begin;

	return directory_size(nblocks, distance >> page->shift);
}

/* Do the page's blocks fit at this resolution? */
static bool
fits_at(const SnarfPage *page, uint32_t resolution)
{
	uint64_t	bytes = page_directory_size(page);
	uint64_t	last;
	uint32_t	i;

	for (i = 0; i < page->nblocks; i++)
		bytes += coding_at(&page->blocks[i], resolution, &last).bytes;
	return bytes <= page->page_size;
}

/* The highest resolution at which the page's blocks fit; false if none. */
static bool
find_resolution(const SnarfPage *page, uint32_t *resolution)
{
	uint32_t	low = 0;		/* fits */
	uint32_t	high = RESOLUTION_MAX;	/* does not fit, or is not needed */

	if (!fits_at(page, low))
		return false;
	while (high - low > 1)
	{
		uint32_t	middle = low + (high - low) / 2;

		if (fits_at(page, middle))
			low = middle;
		else
			high = middle;
	}
	*resolution = low;
	return true;
}

/*
 * Cuts the keys into blocks so that the directory takes at most a quarter of
 * the page.  Returns the resolution for them.
 */
static uint32_t
plan_page(SnarfPage *page, const uint64_t *keys, uint32_t n)
{
	uint32_t	max_blocks = page->page_size / 4 / (SNARF_BLOCK_BITS / 8);
	uint32_t	resolution;
	uint32_t	min_keys;

	for (min_keys = 1; min_keys <= SNARF_BLOCK_KEYS; min_keys *= 2)
	{
		cut_page(page, keys, n, min_keys);
		if (page->nblocks <= max_blocks && find_resolution(page, &resolution))
			return resolution;
	}
	filter_fail("too many keys for a page");
}

/*
 * Sets codes and scales of the page's blocks at a resolution.  True if all
 * blocks are exact.
 */
static bool
choose_scales(SnarfPage *page, uint32_t resolution)
{
	bool		exact = true;
	uint32_t	i;

	for (i = 0; i < page->nblocks; i++)
	{
		SnarfBlock *block = &page->blocks[i];
		uint64_t	last;
		SnarfCoding coding = coding_at(block, resolution, &last);

		block->code = (uint16_t) coding.code;
		block->bytes = coding.bytes;
		if (block->code == SNARF_CODE_RUN)
			continue;
		block->scale = SNARF_EXACT_SCALE;
		if (last < block->span)
		{
			block->scale = snarf_choose_scale(last + 1, block->span);
			if (snarf_position(block->span, block->scale) > last)
				filter_fail("position out of bounds");
			exact = false;
		}
	}
	return exact;
}

/*
 * By how many bits the distances of the page's blocks may be shifted.  A
 * position covers 2^exponent numbers or more.  A shift moves the beginning of
 * a block by at most an eighth of that.  Blocks of MIN_POSITIONS are long
 * enough to stay in order.
 */
static unsigned
greatest_shift(const SnarfPage *page)
{
	unsigned	least = 63;
	uint32_t	i;

	for (i = 0; i < page->nblocks; i++)
	{
		const SnarfBlock *block = &page->blocks[i];

		if (block->code == SNARF_CODE_RUN ||
			block->scale == SNARF_EXACT_SCALE ||
			snarf_position(block->span, block->scale) < MIN_POSITIONS)
			return 0;
		if ((block->scale & 63) < least)
			least = block->scale & 63;
	}
	return least > 3 ? least - 3 : 0;
}

/* Moves the blocks' beginnings to multiples of 2^shift from the first one. */
static void
move_beginnings(SnarfPage *page)
{
	uint32_t	i;

	for (i = 1; i < page->nblocks; i++)
	{
		SnarfBlock *block = &page->blocks[i];
		uint64_t	moved = (block->begin - page->blocks[0].begin) &
		bits_mask(page->shift);

		block->begin -= moved;
		block->span += moved;
	}
}

/*
 * Shifts the distances of a page's blocks, if that saves bytes, and spends
 * these on a higher resolution than the given one.  Sets the scales.
 */
static void
shift_distances(SnarfPage *page, uint32_t resolution)
{
	uint64_t	distance = page->blocks[page->nblocks - 1].begin -
	page->blocks[0].begin;
	unsigned	most = greatest_shift(page);
	unsigned	bits = bits_width(distance);
	unsigned	kept;
	uint32_t	higher;

	/* One less, since the resolution will be higher. */
	if (most > 1)
		most--;
	kept = 8 * byte_width(distance >> most);
	if (bits <= kept)
		return;

	/* No more than is needed for this number of bytes. */
	page->shift = bits - kept;
	if (find_resolution(page, &higher))
	{
		choose_scales(page, higher);
		if (greatest_shift(page) >= page->shift)
		{
			move_beginnings(page);
			choose_scales(page, higher);
			return;
		}
	}
	page->shift = 0;
	choose_scales(page, resolution);
}

/*
 * Fills the page with all n ascending distinct keys, at the highest resolution
 * that it has room for.  True if all blocks are exact.  The page must have at
 * least two bits per key.
 */
bool
snarf_page_fill(SnarfPage *page, const uint64_t *keys, uint32_t n)
{
	uint32_t	resolution = plan_page(page, keys, n);
	bool		exact = choose_scales(page, resolution);
	uint32_t	i;

	if (!exact)
		shift_distances(page, resolution);
	for (i = 0; i < page->nblocks; i++)
	{
		place_block(page, &page->blocks[i], keys);
		keys += page->blocks[i].nkeys;
	}
	return exact;
}

/* Writes the page, which must not be empty, to out, and empties it. */
void
snarf_page_write(SnarfPage *page, uint8_t *out)
{
	uint32_t	nblocks = page->nblocks;
	uint64_t	base = page->blocks[0].begin;
	uint64_t	distance = page->blocks[nblocks - 1].begin - base;
	uint32_t	width = byte_width(distance >> page->shift);
	uint64_t	rank = page->rank;
	uint8_t    *trailer = out + page->page_size - SNARF_TRAILER;
	uint8_t    *metas = trailer - SNARF_META * nblocks;
	uint8_t    *firsts = metas - (nblocks - 1) * width;
	uint32_t	i;

	memset(out, 0, page->page_size);
	memcpy(out, page->data, page->data_len);
	for (i = 0; i < nblocks; i++)
	{
		const SnarfBlock *block = &page->blocks[i];
		uint8_t    *meta = metas + SNARF_META * i;
		uint32_t	ncoded = block->nkeys - 1;

		page->rank += block->nkeys;
		if (block->code == SNARF_CODE_RUN)
			ncoded = 0;			/* its count may not fit here; scale has it */
		if (i > 0)
			bits_write(firsts, (uint64_t) (i - 1) * width * 8, width * 8,
					   (block->begin - base) >> page->shift);
		bits_store16(meta, (uint16_t) block->start);
		bits_store16(meta + 2, (uint16_t) (ncoded << 6 | block->code));
		bits_store16(meta + 4, block->scale);
		bits_write(meta, 48, 12, block->samples[0]);
		bits_write(meta, 60, 12, block->samples[1]);
	}
	bits_store64(trailer, base);
	bits_store32(trailer + 8, (uint32_t) rank);
	bits_store16(trailer + 12, SNARF_PAGE_MAGIC);
	bits_store16(trailer + 14, (uint16_t) nblocks);
	bits_store16(trailer + 16, (uint16_t) page->data_len);
	trailer[18] = (uint8_t) width;
	trailer[19] = (uint8_t) (rank >> 32);
	trailer[20] = (uint8_t) page->shift;
	snarf_page_reset(page);
}
