/*-------------------------------------------------------------------------
 *
 * places.c
 *	  Building pages of places; places.h has the layout.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/base/bits.h"
#include "filter/places/places_page.h"
#include "filter/base/port.h"

/* Keys in this many ranges or more are counted together. */
#define COUNTED_RANGES 256

struct PlacesBuild
{
	uint32_t	nranges;
	unsigned	width;
	uint32_t	mask_bits;		/* 0: no entries */
	uint32_t	page_size;
	uint8_t    *pages;
	uint32_t	npages;			/* finished */
	uint32_t	max_pages;

	/*
	 * The page being built: numbers are in page, entries are put behind them
	 * later.
	 */
	uint8_t    *page;
	uint64_t	first;
	uint32_t	nkeys;
	uint8_t    *entries;
	uint64_t	entries_bits;

	/* The current key: its ranges so far. */
	bool		pending;
	uint64_t	rank;
	uint32_t   *numbers;
	uint32_t	nnumbers;
	uint64_t   *seen;			/* a bit for each range */

	/* First pass: keys by how many ranges they are in */
	uint64_t	measured;
	uint64_t	counts[COUNTED_RANGES + 1];
};

/* See places.h. */
uint64_t
places_bits(uint32_t nranges, uint64_t nkeys)
{
	return 8 * (PLACES_HEADER + PLACES_SLACK + 2) +
		nkeys * places_width(nranges);
}

/* See places.h. */
PlacesBuild *
places_build_begin(uint32_t nranges, uint32_t page_size)
{
	PlacesBuild *build = filter_alloc(sizeof(PlacesBuild));

	if (nranges == 0 || nranges > INT32_MAX || page_size < PLACES_MIN_PAGE ||
		page_size > UINT16_MAX)
		filter_fail("ranges or pages of a size that places cannot have");
	build->nranges = nranges;
	build->width = places_width(nranges);
	build->page_size = page_size;
	build->max_pages = 1;
	build->pages = filter_alloc(page_size);
	build->page = filter_alloc(page_size);
	build->entries = filter_alloc(page_size);
	build->numbers = filter_alloc(nranges * sizeof(uint32_t));
	build->seen = filter_alloc((nranges / 64 + 1) * sizeof(uint64_t));
	return build;
}

/* See places.h. */
void
places_build_free(PlacesBuild *build)
{
	filter_free(build->pages);
	filter_free(build->page);
	filter_free(build->entries);
	filter_free(build->numbers);
	filter_free(build->seen);
	filter_free(build);
}

/* Adds a range to those of the current key. */
static void
note_range(PlacesBuild *build, uint32_t range)
{
	uint64_t	bit = UINT64_C(1) << (range % 64);

	if (range >= build->nranges)
		filter_fail("place out of bounds");
	if (build->seen[range / 64] & bit)
		return;
	build->seen[range / 64] |= bit;
	build->numbers[build->nnumbers++] = range;
}

/* Forgets the ranges of the current key. */
static void
forget_key(PlacesBuild *build)
{
	uint32_t	i;

	for (i = 0; i < build->nnumbers; i++)
		build->seen[build->numbers[i] / 64] = 0;
	build->nnumbers = 0;
	build->pending = false;
}

/* First pass: counts the key. */
static void
count_key(PlacesBuild *build)
{
	build->counts[build->nnumbers < COUNTED_RANGES ? build->nnumbers :
				  COUNTED_RANGES]++;
	build->measured++;
	forget_key(build);
}

/* See places.h. */
void
places_measure(PlacesBuild *build, uint64_t rank, uint32_t range)
{
	if (build->pending && rank != build->rank)
		count_key(build);
	build->pending = true;
	build->rank = rank;
	note_range(build, range);
}

/* Bits that all entries take with masks of mask_bits bits. */
static uint64_t
entries_cost(const PlacesBuild *build, uint32_t mask_bits)
{
	uint64_t	bits = 0;
	uint32_t	i;

	for (i = 2; i <= COUNTED_RANGES; i++)
		bits += build->counts[i] *
			places_entry_bits(build->nranges, mask_bits,
							  i < COUNTED_RANGES ? i : build->nranges);
	return bits;
}

/* See places.h. */
uint64_t
places_measure_end(PlacesBuild *build, uint64_t max_entry_bits)
{
	uint64_t	several;
	uint32_t	most = build->nranges;

	if (build->pending)
		count_key(build);
	several = build->measured - build->counts[1];
	if (most > PLACES_MAX_MASK(build->page_size))
		most = PLACES_MAX_MASK(build->page_size);
	while (most > PLACES_MIN_MASK && entries_cost(build, most) > max_entry_bits)
		most /= 2;
	if (several > 0 && entries_cost(build, most) <= max_entry_bits)
		build->mask_bits = places_mask_bits(build->nranges, most);
	if (build->mask_bits == 0 && several > build->measured / 2)
		return 0;
	return places_bits(build->nranges, build->measured) +
		(build->mask_bits > 0 ? entries_cost(build, build->mask_bits) : 0);
}

/* Where the entries of a page with nkeys keys begin. */
static uint32_t
entries_start(const PlacesBuild *build, uint64_t nkeys)
{
	return PLACES_HEADER + (uint32_t) ((nkeys * build->width + 7) / 8);
}

/* Bytes used of a page with nkeys keys, and entries of "bits" bits. */
static uint64_t
page_used(const PlacesBuild *build, uint64_t nkeys, uint64_t bits)
{
	return entries_start(build, nkeys) + (bits + 7) / 8 + PLACES_SLACK;
}

/* Ends the current page; returns how many bytes of it are used. */
static uint32_t
finish_page(PlacesBuild *build)
{
	uint32_t	start = entries_start(build, build->nkeys);
	uint32_t	bytes = (uint32_t) ((build->entries_bits + 7) / 8);
	uint8_t    *page = build->page;

	bits_store32(page, PLACES_MAGIC);
	bits_store32(page + 4, build->nranges);
	bits_store64(page + 8, build->first);
	bits_store32(page + 16, build->nkeys);
	bits_store32(page + 20, build->mask_bits);
	bits_store16(page + 24, (uint16_t) start);
	bits_store16(page + 26, (uint16_t) bytes);
	memcpy(page + start, build->entries, bytes);
	if (build->npages == build->max_pages)
	{
		build->max_pages *= 2;
		build->pages = filter_realloc(build->pages, (size_t) build->max_pages *
									  build->page_size);
	}
	memcpy(build->pages + (size_t) build->npages * build->page_size, page,
		   build->page_size);
	build->npages++;
	memset(page, 0, build->page_size);
	memset(build->entries, 0, build->page_size);
	build->first += build->nkeys;
	build->nkeys = 0;
	build->entries_bits = 0;
	return start + bytes + PLACES_SLACK;
}

static void
put_bits(PlacesBuild *build, unsigned width, uint64_t value)
{
	bits_write(build->entries, build->entries_bits, width, value);
	build->entries_bits += width;
}

/* Appends the entry of the key being added. */
static void
put_entry(PlacesBuild *build)
{
	uint32_t	group = places_group(build->nranges, build->mask_bits);
	uint32_t	i;

	if (!places_is_list(build->nranges, build->mask_bits, build->nnumbers))
	{
		put_bits(build, 1, 1);
		for (i = 0; i < build->nnumbers; i++)
			bits_set(build->entries,
					 build->entries_bits + build->numbers[i] / group);
		build->entries_bits += build->mask_bits;
		return;
	}
	put_bits(build, 1, 0);
	put_bits(build, places_count_width(build->nranges, build->mask_bits),
			 build->nnumbers);
	for (i = 0; i < build->nnumbers; i++)
		put_bits(build, build->width, build->numbers[i]);
}

/* Second pass: puts the key on a page. */
static void
finish_key(PlacesBuild *build)
{
	bool		several = build->nnumbers > 1;
	bool		entry = several && build->mask_bits > 0;
	uint64_t	bits = entry ? places_entry_bits(build->nranges,
												 build->mask_bits,
												 build->nnumbers) : 0;

	if (page_used(build, build->nkeys + 1, build->entries_bits + bits) >
		build->page_size)
		finish_page(build);
	bits_write(build->page + PLACES_HEADER,
			   (uint64_t) build->nkeys * build->width, build->width,
			   several ? build->nranges : build->numbers[0]);
	build->nkeys++;
	if (entry)
		put_entry(build);
	forget_key(build);
}

/* See places.h. */
void
places_add(PlacesBuild *build, uint64_t rank, uint32_t range)
{
	if (build->pending && rank != build->rank)
		finish_key(build);
	if (!build->pending && rank != build->first + build->nkeys)
		filter_fail("places of a key are missing");
	build->pending = true;
	build->rank = rank;
	note_range(build, range);
}

/* See places.h. */
uint8_t *
places_build_end(PlacesBuild *build, uint32_t *npages, uint32_t *last_len)
{
	uint8_t    *pages;

	*last_len = 0;
	if (build->pending)
		finish_key(build);
	if (build->nkeys > 0)
		*last_len = finish_page(build);
	*npages = build->npages;
	pages = build->pages;
	build->pages = NULL;
	places_build_free(build);
	return pages;
}
