/*-------------------------------------------------------------------------
 *
 * sorted.c
 *	  Asking and reading sorted runs; sorted.h has the layout of their pages.
 *
 * Pages may be damaged: all lengths in them are checked before they are used.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/base/bits.h"
#include "filter/base/fence.h"
#include "filter/sorted/sorted.h"

/* How far from its guessed place a number is looked for first. */
#define GUESS_WINDOW	32

/* A root opened; fences point into it. */
typedef struct SortedRoot
{
	const uint8_t *fences;
	uint32_t	fences_len;
	uint32_t	npages;			/* content pages */
	uint64_t	nkeys;
} SortedRoot;

/* See sorted.h. */
bool
sorted_is_root(const uint8_t *root, uint32_t root_len)
{
	return root_len > 0 && root[0] == SORTED_ROOT_MAGIC;
}

/* Opens a root; false if it is not that of a sorted run. */
static bool
root_open(SortedRoot *root, const uint8_t *data, uint32_t len)
{
	if (len < SORTED_ROOT_HEADER || data[0] != SORTED_ROOT_MAGIC)
		return false;
	root->npages = bits_load32(data + 4);
	root->nkeys = bits_load64(data + 8);
	root->fences = data + SORTED_ROOT_HEADER;
	root->fences_len = len - SORTED_ROOT_HEADER;
	return true;
}

/* See sorted.h.  The level of the fences' root is its second byte. */
uint32_t
sorted_depth(const uint8_t *root, uint32_t root_len)
{
	if (!sorted_is_root(root, root_len) || root_len < SORTED_ROOT_HEADER + 2)
		return 0;
	return root[SORTED_ROOT_HEADER + 1] + 1;
}

/* See sorted.h. */
uint32_t
sorted_root_pages(const uint8_t *data, uint32_t len)
{
	SortedRoot	root;

	return root_open(&root, data, len) && root.nkeys >= root.npages ?
		root.npages : 0;
}

/* Opens a content page; false if it is damaged. */
static bool
page_open(SortedPage *page, const uint8_t *data, uint32_t page_size)
{
	size_t		used;

	if (data == NULL || page_size < SORTED_PAGE_HEADER ||
		data[0] != SORTED_PAGE_MAGIC || data[1] > 1)
		return false;
	page->n = bits_load16(data + 2);
	page->prefix.len = bits_load16(data + 4);
	page->rest_len = bits_load16(data + 6);
	page->rank = bits_load64(data + 8);
	page->prefix.data = data + SORTED_PAGE_HEADER;
	page->ends = data[1] ? page->prefix.data + page->prefix.len : NULL;
	used = SORTED_PAGE_HEADER + page->prefix.len +
		(size_t) page->n * (data[1] ? 2 : page->rest_len);
	if (page->n == 0 || page->prefix.len + page->rest_len > FILTER_MAX_KEY ||
		used > page_size)
		return false;
	page->rests = page->prefix.data + page->prefix.len + (data[1] ? 2 * page->n : 0);
	page->rests_len = page_size - (uint32_t) (page->rests - data);
	return true;
}

/*
 * Sets *rest to the part of key i behind the prefix; false if it is damaged.
 */
static inline bool
page_rest(const SortedPage *page, uint32_t i, FilterBytes *rest)
{
	uint32_t	start;
	uint32_t	end;

	if (page->ends == NULL)
	{
		rest->data = page->rests + (size_t) i * page->rest_len;
		rest->len = page->rest_len;
		return true;
	}
	start = i == 0 ? 0 : bits_load16(page->ends + 2 * (i - 1));
	end = bits_load16(page->ends + 2 * i);
	if (start > end || end > page->rests_len ||
		page->prefix.len + (end - start) > FILTER_MAX_KEY)
		return false;
	rest->data = page->rests + start;
	rest->len = end - start;
	return true;
}

/* Can what follows the prefix in each key be read as a number? */
static inline bool
has_numbers(const SortedPage *page)
{
	return page->ends == NULL && page->rest_len >= 1 && page->rest_len <= 8;
}

/* That number of key i.  The load ends where the key does; it begins in the page. */
static inline uint64_t
rest_number(const SortedPage *page, uint32_t i)
{
	const uint8_t *end = page->rests + (size_t) (i + 1) * page->rest_len;

	return __builtin_bswap64(bits_load64(end - 8)) &
		(UINT64_MAX >> (64 - 8 * page->rest_len));
}

/*
 * How many of the page's numbers are below a number?  Looks first where it would be
 * if they were spread evenly.
 */
static uint32_t
numbers_below(const SortedPage *page, uint64_t number)
{
	uint64_t	least = rest_number(page, 0);
	uint64_t	most = rest_number(page, page->n - 1);
	uint32_t	low = 0;
	uint32_t	high = page->n;
	uint32_t	shift;
	uint32_t	guess;

	if (number <= least)
		return 0;
	if (number > most)
		return page->n;
	shift = (most - least) >> 48 ? 16 : 0;
	guess = (uint32_t) (((number - least) >> shift) * (page->n - 1) /
						((most - least) >> shift));
	if (guess >= GUESS_WINDOW)
	{
		if (rest_number(page, guess - GUESS_WINDOW) < number)
			low = guess - GUESS_WINDOW + 1;
		else
			high = guess - GUESS_WINDOW;
	}
	if (guess + GUESS_WINDOW < high)
	{
		if (rest_number(page, guess + GUESS_WINDOW) < number)
			low = guess + GUESS_WINDOW + 1;
		else
			high = guess + GUESS_WINDOW;
	}
	while (low < high)
	{
		uint32_t	middle = low + (high - low) / 2;

		if (rest_number(page, middle) < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Counts the keys of the page that are below a key; with or_equal also the key
 * itself.  False if the page is damaged.
 */
static bool
page_position(const SortedPage *page, FilterBytes key, bool or_equal,
			  uint32_t *position)
{
	int			order = filter_prefix_compare(key, page->prefix);
	uint32_t	low = 0;
	uint32_t	high = page->n;

	if (order != 0)
	{
		*position = order < 0 ? 0 : page->n;
		return true;
	}
	key.data += page->prefix.len;
	key.len -= page->prefix.len;
	if (has_numbers(page) && key.len == page->rest_len)
	{
		uint64_t	number = 0;

		for (uint32_t i = 0; i < key.len; i++)
			number = number << 8 | key.data[i];
		*position = or_equal && number++ == UINT64_MAX ? page->n :
			numbers_below(page, number);
		return true;
	}
	while (low < high)
	{
		uint32_t	middle = low + (high - low) / 2;
		FilterBytes rest;

		if (!page_rest(page, middle, &rest))
			return false;
		order = filter_bytes_compare(rest, key);
		if (order < 0 || (order == 0 && or_equal))
			low = middle + 1;
		else
			high = middle;
	}
	*position = low;
	return true;
}

/* How key i of the page compares to another one.  False if the page is damaged. */
static bool
key_order(const SortedPage *page, uint32_t i, FilterBytes key, int *order)
{
	int			prefix_order = filter_prefix_compare(key, page->prefix);
	FilterBytes rest;

	*order = prefix_order < 0 ? 1 : -1;
	if (prefix_order != 0)
		return true;
	if (!page_rest(page, i, &rest))
		return false;
	key.data += page->prefix.len;
	key.len -= page->prefix.len;
	*order = filter_bytes_compare(rest, key);
	return true;
}

/* Reads and opens a content page; false if there is none. */
static bool
read_page(const SortedRoot *root, FilterReader *reader, uint32_t pageno,
		  SortedPage *page)
{
	return pageno < root->npages && pageno < reader->npages &&
		page_open(page, reader->read_page(reader, pageno), reader->page_size);
}

/* Where a search for a key has come to. */
typedef struct Search
{
	const SortedRoot *root;
	FilterReader *reader;
	FilterBytes key;
	bool		or_equal;		/* keys equal to key are passed, too */
	SortedPage	page;			/* the page looked at last */
	uint32_t	position;		/* how many of its keys are passed */
} Search;

/* Looks at a page; false if it is damaged. */
static bool
look_at_page(Search *search, uint32_t pageno)
{
	return read_page(search->root, search->reader, pageno, &search->page) &&
		page_position(&search->page, search->key, search->or_equal, &search->position);
}

/*
 * Goes on from a page all keys of which are passed to the next one that has others, or else
 * to the last page.  Mostly that is the page behind it.  But separators that were cut may
 * lead too far to the left; if many are equal, by many pages.  False if pages are damaged.
 */
static bool
search_on(Search *search, uint32_t passed)
{
	uint32_t	last = search->root->npages - 1;
	uint32_t	step = 1;
	uint32_t	next = passed;
	uint32_t	looked_at;

	while (search->position == search->page.n)
	{
		if (next == last)
			return true;
		passed = next;
		next = last - passed > step ? passed + step : last;
		step *= 2;
		if (!look_at_page(search, next))
			return false;
	}
	looked_at = next;
	while (next - passed > 1)
	{
		looked_at = passed + (next - passed) / 2;
		if (!look_at_page(search, looked_at))
			return false;
		if (search->position < search->page.n)
			next = looked_at;
		else
			passed = looked_at;
	}
	return looked_at == next || look_at_page(search, next);
}

/*
 * Is a key in the range? If no key of the page is at or above the range's beginning, the search
 * goes on in the next page, if the range crosses into it.  Mostly that page's first key is then in
 * the range.
 */
FilterAnswer
sorted_query(const uint8_t *root_data, uint32_t root_len,
			 FilterReader *reader, const FilterByteRange *range)
{
	SortedRoot	root;
	Search		search = {&root, reader, range->lo};
	FencePosition at;
	int			order;

	if (!root_open(&root, root_data, root_len))
		return FILTER_UNKNOWN;
	if (root.npages == 0)
		return FILTER_NO;
	if (!fence_find(root.fences, root.fences_len, reader,
					range->lo_unbounded ? NULL : &range->lo,
					range->hi_unbounded ? NULL : &range->hi,
					range->hi_exclusive, &at))
		return FILTER_UNKNOWN;
	if (range->lo_unbounded)
	{
		if (!read_page(&root, reader, at.page, &search.page))
			return FILTER_UNKNOWN;
	}
	else if (!look_at_page(&search, at.page) ||
			 (search.position == search.page.n && at.range_crosses &&
			  !search_on(&search, at.page)))
		return FILTER_UNKNOWN;
	if (search.position == search.page.n)
		return FILTER_NO;
	if (range->hi_unbounded)
		return FILTER_YES;
	if (!key_order(&search.page, search.position, range->hi, &order))
		return FILTER_UNKNOWN;
	return order < 0 || (order == 0 && !range->hi_exclusive) ? FILTER_YES : FILTER_NO;
}

/*
 * Counts the keys of the run that are below a key; with or_equal also the key
 * itself.  False if pages are damaged.
 */
static bool
rank_of(const SortedRoot *root, FilterReader *reader, FilterBytes key,
		bool or_equal, uint64_t *rank)
{
	FencePosition at;
	Search		search = {root, reader, key, or_equal};

	if (!fence_find(root->fences, root->fences_len, reader, &key, &key, false,
					&at) ||
		!look_at_page(&search, at.page) ||
		(search.position == search.page.n && at.range_crosses &&
		 !search_on(&search, at.page)))
		return false;
	*rank = search.page.rank + search.position;
	return true;
}

/* See sorted.h. */
bool
sorted_ranks(const uint8_t *root_data, uint32_t root_len,
			 FilterReader *reader, const FilterByteRange *range,
			 FilterRanks *ranks)
{
	SortedRoot	root;

	if (!root_open(&root, root_data, root_len))
		return false;
	ranks->first = 0;
	ranks->end = root.nkeys;
	if (root.npages == 0)
		return true;
	if ((!range->lo_unbounded &&
		 !rank_of(&root, reader, range->lo, false, &ranks->first)) ||
		(!range->hi_unbounded &&
		 !rank_of(&root, reader, range->hi, !range->hi_exclusive, &ranks->end)))
		return false;
	if (ranks->end < ranks->first)
		ranks->end = ranks->first;
	return true;
}

/* See sorted.h. */
bool
sorted_cursor_begin(SortedCursor *cursor, const uint8_t *root_data,
					uint32_t root_len, FilterReader *reader)
{
	SortedRoot	root;

	if (!root_open(&root, root_data, root_len))
		return false;
	cursor->reader = reader;
	cursor->npages = root.npages;
	cursor->next_page = 0;
	cursor->next = 0;
	cursor->page.n = 0;
	return true;
}

/* See sorted.h. */
FilterAnswer
sorted_cursor_next(SortedCursor *cursor, FilterBytes *key)
{
	SortedPage *page = &cursor->page;
	FilterBytes rest;

	if (cursor->next == page->n)
	{
		SortedRoot	root = {.npages = cursor->npages};

		if (cursor->next_page == cursor->npages)
			return FILTER_NO;
		if (!read_page(&root, cursor->reader, cursor->next_page++, page))
			return FILTER_UNKNOWN;
		memcpy(cursor->key, page->prefix.data, page->prefix.len);
		cursor->next = 0;
	}
	if (!page_rest(page, cursor->next++, &rest))
		return FILTER_UNKNOWN;
	memcpy(cursor->key + page->prefix.len, rest.data, rest.len);
	key->data = cursor->key;
	key->len = page->prefix.len + rest.len;
	return FILTER_YES;
}

/*
 * Does the range of a page's keys lead to it by the fences, and do they ascend?
 * previous is the last key of the page before, and becomes that of this one; *rank
 * counts the keys.
 */
static bool
check_page(const SortedRoot *root, FilterReader *reader, uint32_t pageno,
		   uint64_t *rank, FilterBytes *previous, uint8_t *space)
{
	SortedPage	page;
	FencePosition at;
	FilterBytes first;
	uint8_t		first_space[FILTER_MAX_KEY];

	if (!read_page(root, reader, pageno, &page) || page.rank != *rank)
		return false;
	first.data = first_space;
	first.len = 0;
	for (uint32_t i = 0; i < page.n; i++)
	{
		FilterBytes rest;
		int			order;

		if (!page_rest(&page, i, &rest) ||
			((*rank > 0 || i > 0) &&
			 (!key_order(&page, i, *previous, &order) || order <= 0)))
			return false;
		memcpy(space, page.prefix.data, page.prefix.len);
		memcpy(space + page.prefix.len, rest.data, rest.len);
		previous->data = space;
		previous->len = page.prefix.len + rest.len;
		if (i == 0)
		{
			memcpy(first_space, space, previous->len);
			first.len = previous->len;
		}
	}
	for (int end = 0; end < 2; end++)
	{
		FilterBytes key = end ? *previous : first;

		/* Separators that were cut may lead to the page before. */
		if (!fence_find(root->fences, root->fences_len, reader, &key, &key, false,
						&at) ||
			!(at.page == pageno ||
			  (at.page < pageno && at.range_crosses)))
			return false;
	}
	*rank += page.n;
	return true;
}

/* See sorted.h. */
bool
sorted_check(const uint8_t *root_data, uint32_t root_len,
			 FilterReader *reader, uint64_t nkeys)
{
	uint8_t		space[FILTER_MAX_KEY];
	FilterBytes previous = {space, 0};
	SortedRoot	root;
	uint64_t	rank = 0;

	if (!root_open(&root, root_data, root_len) || root.nkeys != nkeys)
		return false;
	for (uint32_t i = 0; i < root.npages; i++)
	{
		if (!check_page(&root, reader, i, &rank, &previous, space))
			return false;
	}
	return rank == nkeys;
}
