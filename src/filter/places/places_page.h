/*-------------------------------------------------------------------------
 *
 * places_page.h
 *	  What building and reading pages of places share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_PLACES_PAGE_H
#define RANGEFILTER_PLACES_PAGE_H

#include "filter/base/bits.h"
#include "filter/places/places.h"

#define PLACES_MAGIC	0x31434c50	/* "PLC1" */
#define PLACES_HEADER	28
#define PLACES_SLACK	8

/* The least (unless there are fewer ranges) and the most bits of a mask. */
#define PLACES_MIN_MASK 16
#define PLACES_MAX_MASK(page_size) (4 * (page_size))

/* Bits of a number from 0 to nranges. */
static inline unsigned
places_width(uint32_t nranges)
{
	return bits_width(nranges);
}

/* How many ranges a bit stands for in a mask of at most "most" bits. */
static inline uint32_t
places_group(uint32_t nranges, uint32_t most)
{
	return (nranges + most - 1) / most;
}

/* The length of a mask of at most "most" bits. */
static inline uint32_t
places_mask_bits(uint32_t nranges, uint32_t most)
{
	uint32_t	group = places_group(nranges, most);

	return (nranges + group - 1) / group;
}

/*
 * Bits of the count of numbers in an entry, which are no longer than a mask.
 */
static inline unsigned
places_count_width(uint32_t nranges, uint32_t mask_bits)
{
	return bits_width(mask_bits / places_width(nranges));
}

/*
 * Is the entry of a key in "count" ranges shorter with numbers than with a
 * mask?
 */
static inline bool
places_is_list(uint32_t nranges, uint32_t mask_bits, uint64_t count)
{
	return places_count_width(nranges, mask_bits) +
		count * places_width(nranges) < mask_bits;
}

/* Bits of the entry of a key in "count" ranges. */
static inline uint64_t
places_entry_bits(uint32_t nranges, uint32_t mask_bits, uint64_t count)
{
	return 1 + (places_is_list(nranges, mask_bits, count) ?
				places_count_width(nranges, mask_bits) +
				count * places_width(nranges) : mask_bits);
}

#endif							/* RANGEFILTER_PLACES_PAGE_H */
