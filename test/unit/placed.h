/*-------------------------------------------------------------------------
 *
 * placed.h
 *	  Places beside a run in memory, for tests.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_PLACED_H
#define RANGEFILTER_PLACED_H

#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"
#include "filter/places/places.h"
#include "unit.h"

/* Pages of places, each in memory of just its size. */
typedef struct Placed
{
	uint8_t   **pages;
	uint32_t   *lens;
	uint32_t	npages;
	uint32_t	nranges;
	uint64_t   *ranges;			/* what was collected last, a bit each */
} Placed;

/* Ends a build of places and takes over its pages. */
static inline Placed
placed_end(PlacesBuild *build, uint32_t nranges, uint32_t page_size)
{
	Placed		placed;
	uint32_t	last_len;
	uint8_t    *pages = places_build_end(build, &placed.npages, &last_len);
	uint32_t	i;

	placed.nranges = nranges;
	placed.pages = malloc((placed.npages + 1) * sizeof(uint8_t *));
	placed.lens = malloc((placed.npages + 1) * sizeof(uint32_t));
	placed.ranges = malloc((nranges / 64 + 1) * sizeof(uint64_t));
	for (i = 0; i < placed.npages; i++)
	{
		placed.lens[i] = i + 1 < placed.npages ? page_size : last_len;
		placed.pages[i] = malloc(placed.lens[i]);
		memcpy(placed.pages[i], pages + (size_t) i * page_size, placed.lens[i]);
	}
	free(pages);
	return placed;
}

static inline void
placed_free(Placed *placed)
{
	uint32_t	i;

	for (i = 0; i < placed->npages; i++)
		free(placed->pages[i]);
	free(placed->pages);
	free(placed->lens);
	free(placed->ranges);
}

static inline bool
placed_has(const Placed *placed, uint32_t range)
{
	return (placed->ranges[range / 64] >> (range % 64) & 1) != 0;
}

/* Is one range, looked for alone, where collecting has found it? */
static inline bool
placed_agrees(const Placed *placed, uint64_t first, uint64_t end,
			  uint32_t range)
{
	bool		found = false;
	uint32_t	i;

	for (i = 0; i < placed->npages && !found; i++)
	{
		PlacesPage	page;

		found = places_open(&page, placed->pages[i], placed->lens[i]) &&
			places_has(&page, first, end, range);
	}
	return found == placed_has(placed, range);
}

/* Collects the ranges of some ranks; false where a page is damaged. */
static inline bool
placed_collect(Placed *placed, uint64_t first, uint64_t end)
{
	uint32_t	i;

	memset(placed->ranges, 0, (placed->nranges / 64 + 1) * sizeof(uint64_t));
	for (i = 0; i < placed->npages; i++)
	{
		PlacesPage	page;

		if (!places_open(&page, placed->pages[i], placed->lens[i]) ||
			page.nranges != placed->nranges ||
			!places_collect(&page, first, end, placed->ranges))
			return false;
	}
	CHECK(placed_agrees(placed, first, end, 0), "a range alone");
	CHECK(placed_agrees(placed, first, end, placed->nranges - 1), "a range alone");
	CHECK(placed_agrees(placed, first, end, first % placed->nranges), "a range alone");
	CHECK(placed_agrees(placed, first, end, (end * 7 + 3) % placed->nranges), "a range alone");
	return true;
}

/* How many ranges were collected last? */
static inline uint32_t
placed_count(const Placed *placed)
{
	uint32_t	count = 0;
	uint32_t	i;

	for (i = 0; i < placed->nranges; i++)
		count += placed_has(placed, i);
	return count;
}

#endif							/* RANGEFILTER_PLACED_H */
