/*-------------------------------------------------------------------------
 *
 * places_read.c
 *	  Reading pages of places; places.h has the layout.
 *
 * Pages may be damaged: nothing outside of them is read or written.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include "filter/places/places_page.h"

/* An entry: where its bits are. */
typedef struct Entry
{
	bool		mask;
	uint64_t	pos;			/* of the mask, or of the first number */
	uint64_t	count;			/* of numbers */
	uint64_t	end;			/* where the next entry begins */
} Entry;

/* See places.h. */
bool
places_open(PlacesPage *view, const uint8_t *page, uint32_t len)
{
	uint32_t	start;
	uint32_t	bytes;

	if (len < PLACES_HEADER + PLACES_SLACK || bits_load32(page) != PLACES_MAGIC)
		return false;
	view->page = page;
	view->nranges = bits_load32(page + 4);
	view->first = bits_load64(page + 8);
	view->nkeys = bits_load32(page + 16);
	view->mask_bits = bits_load32(page + 20);
	start = bits_load16(page + 24);
	bytes = bits_load16(page + 26);
	if (view->nranges == 0 || view->nranges > INT32_MAX ||
		view->mask_bits > view->nranges ||
		start + bytes > len - PLACES_SLACK)
		return false;
	view->width = places_width(view->nranges);
	view->count_width = places_count_width(view->nranges, view->mask_bits);
	view->entries = page + start;
	view->entries_bits = (uint64_t) bytes * 8;
	return start >= PLACES_HEADER +
		((uint64_t) view->nkeys * view->width + 7) / 8;
}

static void
set_range(uint64_t *ranges, uint32_t range)
{
	ranges[range / 64] |= UINT64_C(1) << (range % 64);
}

/* The number of a key of the page. */
static uint32_t
read_number(const PlacesPage *view, uint32_t index)
{
	return (uint32_t) bits_read(view->page + PLACES_HEADER,
								(uint64_t) index * view->width, view->width);
}

/* Opens the entry at a position; false if it goes past the last. */
static bool
open_entry(const PlacesPage *view, uint64_t pos, Entry *entry)
{
	if (pos >= view->entries_bits)
		return false;
	entry->mask = bits_read(view->entries, pos, 1) != 0;
	entry->pos = pos + 1;
	entry->end = entry->pos + view->mask_bits;
	if (!entry->mask)
	{
		if (entry->pos + view->count_width > view->entries_bits)
			return false;
		entry->count = bits_read(view->entries, entry->pos, view->count_width);
		entry->pos += view->count_width;
		entry->end = entry->pos + entry->count * view->width;
	}
	return entry->end <= view->entries_bits;
}

/* Sets the ranges that one bit of a mask stands for.  The last group may be smaller. */
static void
set_group(const PlacesPage *view, uint32_t bit, uint32_t group, uint64_t *ranges)
{
	uint64_t	end = (uint64_t) (bit + 1) * group;
	uint32_t	range;

	for (range = bit * group; range < end && range < view->nranges; range++)
		set_range(ranges, range);
}

/* Sets the ranges of a mask. */
static void
set_mask(const PlacesPage *view, uint64_t pos, uint64_t *ranges)
{
	uint32_t	group = places_group(view->nranges, view->mask_bits);
	uint32_t	bit;

	for (bit = 0; bit < view->mask_bits; bit += 64)
	{
		uint32_t	left = view->mask_bits - bit;
		uint64_t	word = bits_read(view->entries, pos + bit, left < 64 ? left : 64);

		if (group == 1)
			ranges[bit / 64] |= word;
		else
			for (; word != 0; word &= word - 1)
				set_group(view, bit + bits_lowest(word), group, ranges);
	}
}

/* Sets the ranges of an entry; false if it has a range that does not exist. */
static bool
set_entry(const PlacesPage *view, const Entry *entry, uint64_t *ranges)
{
	uint64_t	i;

	if (entry->mask)
	{
		set_mask(view, entry->pos, ranges);
		return true;
	}
	for (i = 0; i < entry->count; i++)
	{
		uint64_t	number = bits_read(view->entries,
									   entry->pos + i * view->width,
									   view->width);

		if (number >= view->nranges)
			return false;
		set_range(ranges, (uint32_t) number);
	}
	return true;
}

/* Sets *pos to where the entries of the keys from number key on begin. */
static bool
skip_entries(const PlacesPage *view, uint32_t key, uint64_t *pos)
{
	Entry		entry;
	uint32_t	i;

	*pos = 0;
	for (i = 0; i < key; i++)
	{
		if (read_number(view, i) != view->nranges)
			continue;
		if (!open_entry(view, *pos, &entry))
			return false;
		*pos = entry.end;
	}
	return true;
}

/* Sets all ranges. */
static void
set_all(const PlacesPage *view, uint64_t *ranges)
{
	uint32_t	range;

	for (range = 0; range < view->nranges; range++)
		set_range(ranges, range);
}

/*
 * Sets the ranges of the page's keys [from, to).  Entries before the first one that is
 * needed are passed over, which reads the numbers of all keys before.
 */
static bool
collect_keys(const PlacesPage *view, uint32_t from, uint32_t to,
			 uint64_t *ranges)
{
	Entry		entry;
	uint64_t	pos = 0;
	bool		found = false;
	uint32_t	i;

	for (i = from; i < to; i++)
	{
		uint32_t	number = read_number(view, i);

		if (number > view->nranges)
			return false;
		if (number < view->nranges)
			set_range(ranges, number);
		else if (view->mask_bits == 0)
		{
			set_all(view, ranges);
			return true;
		}
		else
		{
			if ((!found && !skip_entries(view, i, &pos)) ||
				!open_entry(view, pos, &entry) ||
				!set_entry(view, &entry, ranges))
				return false;
			pos = entry.end;
			found = true;
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

/* Is a range among those of an entry? */
static bool
entry_has(const PlacesPage *view, const Entry *entry, uint32_t range)
{
	uint64_t	i;

	if (entry->mask)
	{
		uint32_t	bit = range / places_group(view->nranges, view->mask_bits);

		return bit < view->mask_bits &&
			bits_read(view->entries, entry->pos + bit, 1) != 0;
	}
	for (i = 0; i < entry->count; i++)
	{
		if (bits_read(view->entries, entry->pos + i * view->width,
					  view->width) == range)
			return true;
	}
	return false;
}

/* See places.h. */
bool
places_has(const PlacesPage *view, uint64_t first, uint64_t end, uint32_t range)
{
	uint64_t	after = view->first + view->nkeys;
	uint32_t	i = first > view->first ? (uint32_t) (first - view->first) : 0;
	uint32_t	to = end < after ? (uint32_t) (end - view->first) : view->nkeys;
	Entry		entry;
	uint64_t	pos = 0;

	if (end <= view->first || first >= after || range >= view->nranges ||
		(view->mask_bits > 0 && !skip_entries(view, i, &pos)))
		return false;
	for (; i < to; i++)
	{
		uint32_t	number = read_number(view, i);

		if (number == range)
			return true;
		if (number > view->nranges)
			return false;
		if (number < view->nranges)
			continue;
		if (view->mask_bits == 0)
			return true;
		if (!open_entry(view, pos, &entry))
			return false;
		if (entry_has(view, &entry, range))
			return true;
		pos = entry.end;
	}
	return false;
}
