/*-------------------------------------------------------------------------
 *
 * places.h
 *	  Where the rows of keys are: for each key of a run the ranges of heap
 *	  blocks that hold it.
 *
 * A filter says that a key may be there; places say where to look.  They are
 * kept beside the filter, by the ranks of its keys, so that who only asks the
 * filter does not read them.  The heap blocks are divided into nranges equal
 * ranges.  A key whose rows are all in one range has that range's number, in
 * as few bits as numbers need.  Any other has the number nranges, and an
 * *entry*: a bit for each range, or where there are more than
 * PLACES_MAX_MASK ranges, the numbers of a few, or bits for groups of ranges.
 * Without entries (there was no room) such a key may be anywhere.
 *
 * A page of places is for consecutive ranks and complete in itself:
 *
 *		0	uint32	magic
 *		4	uint32	nranges
 *		8	uint64	rank of the first key
 *		16	uint32	number of keys
 *		20	uint8	bits of a number
 *		21	uint8	bits of an entry; 0: no entries
 *		22	uint16	where the entries begin
 *		24			numbers, then entries, in the order of keys
 *
 * and eight bytes of nothing, so that loads of eight bytes stay inside.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_PLACES_H
#define RANGEFILTER_PLACES_H

#include "filter/filter.h"

/* So many ranges have a bit each in an entry. */
#define PLACES_MAX_MASK 63

/* The smallest page. */
#define PLACES_MIN_PAGE 64

typedef struct PlacesBuild PlacesBuild;

/*
 * Begins to build places for up to nranges ranges, on pages of so many bytes.
 */
extern PlacesBuild *places_build_begin(uint32_t nranges, bool entries,
									   uint32_t page_size);

/*
 * Notes that the key of this rank has rows in a range.  Ranks begin at 0, none
 * is left out, and they do not decrease.
 */
extern void places_add(PlacesBuild *build, uint64_t rank, uint32_t range);

/*
 * Ends the build and frees it.  Returns the pages, allocated by
 * filter_alloc(); *last_len is how many bytes of the last one are used.
 */
extern uint8_t *places_build_end(PlacesBuild *build, uint32_t *npages,
								 uint32_t *last_len);

/* What so many keys take, several of them being in more than one range. */
extern uint64_t places_bits(uint32_t nranges, uint64_t nkeys,
							uint64_t nseveral);

/* A page of places as a reader sees it. */
typedef struct PlacesPage
{
	const uint8_t *page;
	uint64_t	first;			/* rank of its first key */
	uint32_t	nkeys;
	uint32_t	nranges;
	unsigned	width;
	unsigned	entry_bits;
	const uint8_t *entries;
	uint32_t	max_entries;	/* there is room for */
} PlacesPage;

/* Opens a page of len bytes; false if it is damaged. */
extern bool places_open(PlacesPage *view, const uint8_t *page, uint32_t len);

/*
 * Sets the bits of the ranges that the keys of these ranks, as far as they
 * are on the page, have rows in.  ranges has room for nranges bits, in words
 * of 64.  False if the page is damaged.
 */
extern bool places_collect(const PlacesPage *view, uint64_t first,
						   uint64_t end, uint64_t *ranges);

#endif							/* RANGEFILTER_PLACES_H */
