/*-------------------------------------------------------------------------
 *
 * snarf_page.h
 *	  How SNARF codes keys, and the layout of its pages.
 *
 * SNARF (Vaidya et al., PVLDB 2022) maps each key by a monotone model of the
 * keys' distribution to a position in a sparse bit array, and codes the
 * positions that are taken.  A range may hold a key only if a position from
 * that of its lower end to that of its upper end is taken.
 *
 * Here the model is piecewise linear, with a piece for each *block* of up to
 * SNARF_BLOCK_KEYS keys.  A block stores its first key exactly.  A range that
 * holds a first key needs no further look, and any other range lies within one
 * block.  The piece of a block is a factor,
 *
 *		position(key) = floor((key - first) * mantissa / 2^(11 + exponent))
 *
 * in integers only.  So build and query agree on every machine, and greater
 * keys never have smaller positions.  The factor is chosen so that the block's
 * last key gets the last position: so there are no false positives in the gap
 * up to the next block.  Blocks end where keys leave large gaps.  If a block's
 * share of the page is large enough for position = key - first, it is coded
 * this way and answers are exact.
 *
 * The positions of the keys after the first are coded in one of these ways:
 * - Elias-Fano: the low bits of each side by side, then for each value of the
 *	 remaining high bits a 1 per key and a closing 0;
 * - a bitmap of positions, where they are dense;
 * - only their number, if the keys are consecutive.
 *
 * On a page without an exact block, blocks begin a little before their first
 * key, at a multiple of 2^shift from the page's first key, which saves bytes.
 * On such a page a block's first key may be anywhere in position 0.
 *
 * A page is self-contained.  Its directory is at its end, so that loads of
 * eight bytes that begin within a block's data never leave the page.
 * Little-endian, unaligned, sizes in bytes:
 *
 *		data		of each block, in order: low bits (padded to a byte), then
 *					high bits; or the bitmap
 *		(unused)
 *		width * (nblocks - 1)
 *					beginning of each block but the first, less base, shifted
 *					right by shift
 *		9 * nblocks	per block:
 *					uint16 where its data begin (they end where the next
 *						block's begin, or at data_end)
 *					uint16 keys coded * 64 + code
 *					uint16 (mantissa - 1024) * 64 + exponent, or
 *						SNARF_EXACT_SCALE; keys coded for SNARF_CODE_RUN
 *					2 * 12 bits samples: of Elias-Fano's high bits, how many
 *						zeros are before bit 512, and before bit 1024; 0xFFF
 *						where there are no more bits than that
 *		21			trailer: uint64 base (the first block's first key),
 *					uint32 rank (keys in the pages before), its low bits,
 *					uint16 magic, uint16 nblocks, uint16 data_end, uint8 width,
 *					uint8 rank, its bits from 32 on, uint8 shift
 *
 * The root of a run is
 *		uint32 magic, uint32 number of content pages, uint64 least key,
 *		uint64 greatest key, uint16 size of a usual block, uint16 of its low
 *		bits (0 where there is no usual one), then the root of the fences.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SNARF_PAGE_H
#define RANGEFILTER_SNARF_PAGE_H

#include "filter/base/bits.h"
#include "filter/base/run.h"

#define SNARF_ROOT_MAGIC	0x33464e53	/* "SNF3" */
#define SNARF_ROOT_HEADER	28
#define SNARF_ROOT_MIN		8	/* where the least key is */
#define SNARF_ROOT_MAX		16	/* and the greatest one */
#define SNARF_PAGE_MAGIC	0x5333

#define SNARF_TRAILER		21
#define SNARF_META			9	/* directory bytes of any block */

/* Longer blocks cost less directory, shorter ones less scanning. */
#define SNARF_BLOCK_KEYS	512

/* The most keys a run of consecutive keys holds. */
#define SNARF_RUN_KEYS		65536

/*
 * How many of Elias-Fano's high bits are between samples; and the value that
 * means no sample.
 */
#define SNARF_SAMPLE_BITS	512
#define SNARF_NO_SAMPLE		0xFFF

/* Codes: up to SNARF_MAX_LOW the number of low bits of Elias-Fano. */
#define SNARF_MAX_LOW		61
#define SNARF_CODE_RUN		62
#define SNARF_CODE_BITMAP	63

/* A page's greatest shift. */
#define SNARF_MAX_SHIFT		63

/* Position = distance. */
#define SNARF_EXACT_SCALE	0xFFFF

/* The cost of another block, in bits, when blocks are cut. */
#define SNARF_BLOCK_BITS	104

/*
 * The model: the position of a key at this distance from its block's
 * beginning.
 */
static BITS_INLINE uint64_t
snarf_position(uint64_t distance, uint16_t scale)
{
	uint64_t	factor = (UINT64_C(1024) + (scale >> 6)) << 53;

	if (scale == SNARF_EXACT_SCALE)
		return distance;
	return bits_mulhi(distance, factor) >> (scale & 63);
}

/* Bytes that the low bits of ncoded keys take. */
static BITS_INLINE uint32_t
snarf_low_bytes(uint32_t ncoded, unsigned low)
{
	return (ncoded * low + 7) / 8;
}

/* A block of a page being built. */
typedef struct SnarfBlock
{
	uint64_t	begin;			/* the first key, or a little before */
	uint64_t	span;			/* last key - begin */
	uint32_t	nkeys;
	uint32_t	start;			/* of its data */
	uint32_t	bytes;			/* of its data, at most */
	uint16_t	code;
	uint16_t	scale;
	uint16_t	samples[2];
} SnarfBlock;

/* A page being built; data is NULL when only its size is asked for. */
typedef struct SnarfPage
{
	uint32_t	page_size;
	uint64_t	rank;			/* keys of the pages written before */
	uint32_t	parts;			/* of the last page, see choose_parts() */
	unsigned	shift;			/* blocks begin at multiples of 2^shift */
	uint8_t    *data;
	uint32_t	data_len;
	SnarfBlock *blocks;
	uint32_t	nblocks;
	uint32_t	max_blocks;
} SnarfPage;

/* snarf_cut.c */
extern uint64_t snarf_exact_bits(uint64_t ncoded, uint64_t span);
extern uint32_t snarf_cut(const uint64_t *keys, uint32_t n, bool more,
						  uint32_t min_keys, uint16_t *ends);

/* snarf_page.c */
extern SnarfPage *snarf_page_create(uint32_t page_size);
extern void snarf_page_keep_data(SnarfPage *page);
extern void snarf_page_reset(SnarfPage *page);
extern void snarf_page_free(SnarfPage *page);
extern bool snarf_page_add(SnarfPage *page, const uint64_t *keys, uint32_t n);
extern bool snarf_page_fill(SnarfPage *page, const uint64_t *keys, uint32_t n);
extern uint16_t snarf_choose_scale(uint64_t positions, uint64_t span);
extern void snarf_page_write(SnarfPage *page, uint8_t *out);

#endif							/* RANGEFILTER_SNARF_PAGE_H */
