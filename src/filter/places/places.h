/*-------------------------------------------------------------------------
 *
 * places.h
 *	  Places: for each key of a run the ranges of heap blocks that have rows
 *	  with it.
 *
 * A filter says that a key may be there; places say where.  They are kept
 * beside the filter, by the ranks of its keys, so a question to the filter
 * alone does not read them.  The heap blocks are divided into nranges equal
 * ranges.  A key whose rows are all in one range has that range's number, in
 * as few bits as numbers need.  Any other key has the number nranges, and an
 * *entry*: the numbers of its ranges, or a mask with a bit for each range,
 * whichever is shorter.  If masks would take too much room, each of their bits
 * stands for a group of neighbouring ranges.  If there is no room for entries,
 * such a key may be in any range.
 *
 * A page of places is for consecutive ranks, and can be read without any other
 * page:
 *
 *		0	uint32	magic
 *		4	uint32	nranges
 *		8	uint64	rank of the first key
 *		16	uint32	number of keys
 *		20	uint32	bits of a mask; 0: no entries
 *		24	uint16	where the entries begin
 *		26	uint16	of how many bits they are, in bytes
 *		28			numbers, then entries, in the order of keys
 *
 * and eight unused bytes, so that loads of eight bytes stay inside.  An entry
 * is a bit that tells whether it has a mask; then the mask, or the count of
 * numbers and the numbers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_PLACES_H
#define RANGEFILTER_PLACES_H

#include "filter/base/run.h"

/* The smallest page. */
#define PLACES_MIN_PAGE 128

typedef struct PlacesBuild PlacesBuild;

/*
 * Begins to build places in nranges ranges, on pages of page_size bytes.
 * Building takes two passes, as for a filter.
 */
extern PlacesBuild *places_build_begin(uint32_t nranges, uint32_t page_size);

/*
 * First pass: the key of this rank has rows in this range.  Ranks begin at 0,
 * do not decrease, and none is left out.
 */
extern void places_measure(PlacesBuild *build, uint64_t rank, uint32_t range);

/*
 * Called between the passes.  Entries may take max_entry_bits bits.  Returns the bits
 * that all places will take; 0 if places are of no use, since too many keys
 * may be anywhere.
 */
extern uint64_t places_measure_end(PlacesBuild *build, uint64_t max_entry_bits);

/* Second pass: with the same ranks and ranges as the first. */
extern void places_add(PlacesBuild *build, uint64_t rank, uint32_t range);

/*
 * Ends the build and frees it.  Returns the pages, allocated by
 * filter_alloc(); *last_len is how many bytes of the last one are used.
 */
extern uint8_t *places_build_end(PlacesBuild *build, uint32_t *npages,
								 uint32_t *last_len);

/* Frees a build. */
extern void places_build_free(PlacesBuild *build);

/* Bits that nkeys keys take if each is in one range. */
extern uint64_t places_bits(uint32_t nranges, uint64_t nkeys);

/* A page of places as a reader sees it. */
typedef struct PlacesPage
{
	const uint8_t *page;
	uint64_t	first;			/* rank of its first key */
	uint32_t	nkeys;
	uint32_t	nranges;
	unsigned	width;			/* bits of a number */
	uint32_t	mask_bits;
	unsigned	count_width;	/* bits of the count of numbers */
	const uint8_t *entries;
	uint64_t	entries_bits;	/* bits of all entries */
} PlacesPage;

/* Opens a page of len bytes; false if it is damaged. */
extern bool places_open(PlacesPage *view, const uint8_t *page, uint32_t len);

/*
 * Sets the bits of all ranges in which keys of the ranks [first, end), if they
 * are on the page, have rows.  ranges has room for nranges bits, in words of
 * 64. False if the page is damaged.
 */
extern bool places_collect(const PlacesPage *view, uint64_t first,
						   uint64_t end, uint64_t *ranges);

/*
 * Would places_collect() set the bit of this range?  False also if the page is
 * damaged before the first such key.
 */
extern bool places_has(const PlacesPage *view, uint64_t first, uint64_t end,
					   uint32_t range);

#endif							/* RANGEFILTER_PLACES_H */
