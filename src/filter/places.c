/*-------------------------------------------------------------------------
 *
 * places.c
 *	  Building and reading pages of places; places.h has the layout.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/bits.h"
#include "filter/places.h"
#include "filter/port.h"

#define PLACES_MAGIC	0x31434c50	/* "PLC1" */
#define PLACES_HEADER	24
#define PLACES_SLACK	8

/* An entry of numbers has this bit set, and numbers below it. */
#define ENTRY_BITS		64
#define ENTRY_NUMBERS	(UINT64_C(1) << 63)

/* No more numbers than this are in an entry, as each has seven bits or more. */
#define ENTRY_MAX_NUMBERS 9

struct PlacesBuild
{
	uint32_t	nranges;
	unsigned	width;
	unsigned	entry_bits;
	uint32_t	page_size;
	uint8_t    *pages;
	uint32_t	npages;			/* finished */
	uint32_t	max_pages;

	/* The page being built: numbers go to it, entries wait. */
	uint8_t    *page;
	uint64_t	first;
	uint32_t	nkeys;
	uint64_t   *entries;
	uint32_t	nentries;

	/* The key being added: ranges seen so far */
	uint64_t	rank;
	bool		pending;
	uint32_t	numbers[ENTRY_MAX_NUMBERS];
	uint32_t	nnumbers;		/* one more if there were too many */
	uint64_t	mask;			/* of groups of ranges */
};

/* Bits of a number from 0 to nranges. */
static unsigned
number_width(uint32_t nranges)
{
	return bits_width(nranges);
}

/* Bits of an entry. */
static unsigned
entry_width(uint32_t nranges)
{
	return nranges <= PLACES_MAX_MASK ? nranges : ENTRY_BITS;
}

/* Ranges that a bit of an entry stands for. */
static uint32_t
group_size(uint32_t nranges)
{
	return (nranges + PLACES_MAX_MASK - 1) / PLACES_MAX_MASK;
}

/* How many numbers an entry has room for; 0 where each range has a bit. */
static uint32_t
numbers_in_entry(uint32_t nranges)
{
	return nranges <= PLACES_MAX_MASK ? 0 : 63 / number_width(nranges);
}

/* See places.h. */
uint64_t
places_bits(uint32_t nranges, uint64_t nkeys, uint64_t nseveral)
{
	return 8 * (PLACES_HEADER + PLACES_SLACK + 2) +
		nkeys * number_width(nranges) + nseveral * entry_width(nranges);
}

/* See places.h. */
PlacesBuild *
places_build_begin(uint32_t nranges, bool entries, uint32_t page_size)
{
	PlacesBuild *build = filter_alloc(sizeof(PlacesBuild));

	if (nranges == 0 || nranges > INT32_MAX || page_size < PLACES_MIN_PAGE ||
		page_size > UINT16_MAX)
		filter_fail("ranges or pages of a size that places cannot have");
	build->nranges = nranges;
	build->width = number_width(nranges);
	build->entry_bits = entries ? entry_width(nranges) : 0;
	build->page_size = page_size;
	build->max_pages = 1;
	build->pages = filter_alloc(page_size);
	build->page = filter_alloc(page_size);
	build->entries = filter_alloc((page_size * 8 /
								   (build->width + entry_width(nranges)) + 1) *
								  sizeof(uint64_t));
	return build;
}

/* Where the entries of a page with so many keys begin. */
static uint32_t
entries_start(const PlacesBuild *build, uint64_t nkeys)
{
	return PLACES_HEADER + (uint32_t) ((nkeys * build->width + 7) / 8);
}

/* Bytes used of a page with so many keys and entries. */
static uint32_t
page_used(const PlacesBuild *build, uint64_t nkeys, uint64_t nentries)
{
	return entries_start(build, nkeys) + PLACES_SLACK +
		(uint32_t) ((nentries * build->entry_bits + 7) / 8);
}

/* Ends the current page; returns how much of it is used. */
static uint32_t
finish_page(PlacesBuild *build)
{
	uint32_t	start = entries_start(build, build->nkeys);
	uint8_t    *page = build->page;
	uint32_t	i;

	bits_store32(page, PLACES_MAGIC);
	bits_store32(page + 4, build->nranges);
	bits_store64(page + 8, build->first);
	bits_store32(page + 16, build->nkeys);
	page[20] = (uint8_t) build->width;
	page[21] = (uint8_t) build->entry_bits;
	bits_store16(page + 22, (uint16_t) start);
	for (i = 0; i < build->nentries; i++)
		bits_write(page + start, (uint64_t) i * build->entry_bits,
				   build->entry_bits, build->entries[i]);
	if (build->npages == build->max_pages)
	{
		build->max_pages *= 2;
		build->pages = filter_realloc(build->pages, (size_t) build->max_pages *
									  build->page_size);
	}
	memcpy(build->pages + (size_t) build->npages * build->page_size, page,
		   build->page_size);
	build->npages++;
	start = page_used(build, build->nkeys, build->nentries);
	memset(page, 0, build->page_size);
	build->first += build->nkeys;
	build->nkeys = build->nentries = 0;
	return start;
}

/* The entry of a key in several ranges. */
static uint64_t
make_entry(const PlacesBuild *build)
{
	uint32_t	room = numbers_in_entry(build->nranges);
	uint64_t	entry = ENTRY_NUMBERS;
	uint32_t	i;

	if (build->nnumbers > room)
		return build->mask;
	for (i = 0; i < room; i++)
	{
		/* Those left over repeat the first one. */
		uint64_t	number = build->numbers[i < build->nnumbers ? i : 0];

		entry |= number << (i * build->width);
	}
	return entry;
}

/* Puts the key being added on a page. */
static void
finish_key(PlacesBuild *build)
{
	bool		several = build->nnumbers > 1;
	uint32_t	nentries = build->entry_bits > 0 && several;

	if (page_used(build, build->nkeys + 1,
				  build->nentries + nentries) > build->page_size)
		finish_page(build);
	bits_write(build->page + PLACES_HEADER,
			   (uint64_t) build->nkeys * build->width, build->width,
			   several ? build->nranges : build->numbers[0]);
	build->nkeys++;
	if (nentries > 0)
		build->entries[build->nentries++] = make_entry(build);
	build->pending = false;
}

/* See places.h. */
void
places_add(PlacesBuild *build, uint64_t rank, uint32_t range)
{
	uint32_t	i;

	if (build->pending && rank != build->rank)
		finish_key(build);
	if (!build->pending)
	{
		if (rank != build->first + build->nkeys)
			filter_fail("places of a key are missing");
		build->pending = true;
		build->rank = rank;
		build->nnumbers = 0;
		build->mask = 0;
	}
	if (range >= build->nranges)
		filter_fail("place out of bounds");
	build->mask |= UINT64_C(1) << (range / group_size(build->nranges));
	for (i = 0; i < build->nnumbers && i < ENTRY_MAX_NUMBERS; i++)
		if (build->numbers[i] == range)
			return;
	if (build->nnumbers < ENTRY_MAX_NUMBERS)
		build->numbers[build->nnumbers++] = range;
	else
		build->nnumbers = ENTRY_MAX_NUMBERS + 1;
}

/* See places.h. */
uint8_t *
places_build_end(PlacesBuild *build, uint32_t *npages, uint32_t *last_len)
{
	uint8_t    *pages = build->pages;

	*last_len = 0;
	if (build->pending)
		finish_key(build);
	if (build->nkeys > 0)
		*last_len = finish_page(build);
	*npages = build->npages;
	pages = build->pages;
	filter_free(build->page);
	filter_free(build->entries);
	filter_free(build);
	return pages;
}

/* See places.h. */
bool
places_open(PlacesPage *view, const uint8_t *page, uint32_t len)
{
	uint32_t	start;

	if (len < PLACES_HEADER + PLACES_SLACK || bits_load32(page) != PLACES_MAGIC)
		return false;
	view->page = page;
	view->nranges = bits_load32(page + 4);
	view->first = bits_load64(page + 8);
	view->nkeys = bits_load32(page + 16);
	view->width = page[20];
	view->entry_bits = page[21];
	start = bits_load16(page + 22);
	if (view->nranges == 0 || view->nranges > INT32_MAX ||
		view->width != number_width(view->nranges) ||
		(view->entry_bits != 0 &&
		 view->entry_bits != entry_width(view->nranges)) ||
		start > len - PLACES_SLACK ||
		start < PLACES_HEADER + ((uint64_t) view->nkeys * view->width + 7) / 8)
		return false;
	view->entries = page + start;
	view->max_entries = view->entry_bits == 0 ? 0 :
		(len - PLACES_SLACK - start) * 8 / view->entry_bits;
	return true;
}

static void
set_range(uint64_t *ranges, uint32_t range)
{
	ranges[range / 64] |= UINT64_C(1) << (range % 64);
}

/* Sets the ranges of a group; groups may go past the last range. */
static void
set_group(const PlacesPage *view, uint32_t group, uint64_t *ranges)
{
	uint32_t	size = group_size(view->nranges);
	uint64_t	range;

	for (range = (uint64_t) group * size;
		 range < (uint64_t) (group + 1) * size && range < view->nranges; range++)
		set_range(ranges, (uint32_t) range);
}

/* Sets the ranges of an entry; false if there is one that does not exist. */
static bool
set_entry(const PlacesPage *view, uint64_t entry, uint64_t *ranges)
{
	uint32_t	room = numbers_in_entry(view->nranges);
	uint32_t	i;

	if (room == 0 || !(entry & ENTRY_NUMBERS))
	{
		for (; entry != 0; entry &= entry - 1)
			set_group(view, bits_lowest(entry), ranges);
		return true;
	}
	for (i = 0; i < room; i++)
	{
		uint64_t	number = entry >> (i * view->width) & bits_mask(view->width);

		if (number >= view->nranges)
			return false;
		set_range(ranges, (uint32_t) number);
	}
	return true;
}

/* The number of a key of the page. */
static uint32_t
read_number(const PlacesPage *view, uint32_t index)
{
	return (uint32_t) bits_read(view->page + PLACES_HEADER,
								(uint64_t) index * view->width, view->width);
}

/* How many of the page's first n keys are in several ranges? */
static uint32_t
count_several(const PlacesPage *view, uint32_t n)
{
	uint32_t	several = 0;
	uint32_t	i;

	for (i = 0; i < n; i++)
		several += read_number(view, i) == view->nranges;
	return several;
}

/* Sets the ranges of the page's keys from one to before another. */
static bool
collect_keys(const PlacesPage *view, uint32_t from, uint32_t to,
			 uint64_t *ranges)
{
	uint32_t	entry = view->entry_bits > 0 ? count_several(view, from) : 0;
	uint32_t	i;

	for (i = from; i < to; i++)
	{
		uint32_t	number = read_number(view, i);

		if (number > view->nranges)
			return false;
		if (number < view->nranges)
			set_range(ranges, number);
		else if (view->entry_bits == 0)
		{
			for (number = 0; number < view->nranges; number++)
				set_range(ranges, number);
			return true;
		}
		else
		{
			if (entry >= view->max_entries ||
				!set_entry(view, bits_read(view->entries,
										   (uint64_t) entry * view->entry_bits,
										   view->entry_bits), ranges))
				return false;
			entry++;
		}
	}
	return true;
}

/* See places.h. */
bool
places_collect(const PlacesPage *view, uint64_t first, uint64_t end,
			   uint64_t *ranges)
{
	uint64_t	after = view->first + view->nkeys;

	if (end <= view->first || first >= after)
		return true;
	return collect_keys(view,
						first > view->first ? (uint32_t) (first - view->first) : 0,
						end < after ? (uint32_t) (end - view->first) : view->nkeys,
						ranges);
}
