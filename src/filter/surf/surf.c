/*-------------------------------------------------------------------------
 *
 * surf.c
 *	  SuRF: queries.
 *
 * Each leaf stands for an interval of bit strings: those that begin with the
 * leaf's bits and its real suffix.  A range may hold a key if, and only if, it
 * meets one of these intervals.  A point [k, k] also needs the hash of k
 * there.  So a page only has to tell how many leaves are wholly below a range,
 * and how many begin within or below it.  Each page stores the number of
 * leaves before it, so these numbers count keys, too.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/base/fence.h"
#include "filter/surf/surf.h"
#include "filter/surf/surf_page.h"

/* A root opened for queries; pointers lead into the root. */
typedef struct SurfRoot
{
	FilterSuffix kind;
	uint32_t	npages;			/* content pages */
	uint32_t	max_key;		/* bytes */
	SurfCode	code;
	const uint8_t *fences;
	uint32_t	fences_len;
} SurfRoot;

/* The state of a query; lo_bound and hi_bound point into it. */
typedef struct SurfQuery
{
	SurfRoot	root;
	FilterBytes lo;				/* cut as keys are */
	FilterBytes hi;
	const FilterBytes *lo_bound;	/* NULL: none */
	const FilterBytes *hi_bound;
	bool		hi_exclusive;
	bool		point;			/* asks for one key */
	uint32_t	pageno;			/* the first page of the range */
	bool		crosses;		/* the range goes on beyond it */
	SurfPage	page;
} SurfQuery;

/* Opens a root; false if it is damaged, or of another version. */
static bool
open_root(SurfRoot *root, const uint8_t *data, uint32_t len)
{
	uint32_t	used;

	if (len < SURF_ROOT_HEADER || data[0] != SURF_ROOT_MAGIC ||
		data[1] != SURF_ROOT_VERSION || data[2] > FILTER_SUFFIX_MIXED)
		return false;
	root->kind = (FilterSuffix) data[2];
	root->npages = bits_load32(data + 4);
	root->max_key = bits_load16(data + 8);
	if (root->max_key > FILTER_MAX_KEY ||
		!surf_code_open(&root->code, data + SURF_ROOT_HEADER,
						len - SURF_ROOT_HEADER, &used))
		return false;
	root->fences = data + SURF_ROOT_HEADER + used;
	root->fences_len = len - SURF_ROOT_HEADER - used;
	return true;
}

/* Reads and opens a content page; false if there is none. */
static bool
read_page(const SurfRoot *root, FilterReader *reader, uint32_t pageno,
		  SurfPage *page)
{
	const uint8_t *data;

	if (pageno >= root->npages || pageno >= reader->npages)
		return false;
	data = reader->read_page(reader, pageno);
	return data != NULL && surf_page_open(page, data, reader->page_size);
}

/*
 * Removes the page's prefix from a key and returns 0, if the key begins with
 * it.  Else < 0 or > 0: the key is below or above all keys of the page.
 */
static int
strip_prefix(const SurfPage *page, FilterBytes *key)
{
	int			order = filter_prefix_compare(*key, page->prefix);

	if (order == 0)
	{
		key->data += page->prefix.len;
		key->len -= page->prefix.len;
	}
	return order;
}

/* Is key in the page? */
static FilterAnswer
query_point(const SurfRoot *root, const SurfPage *page, FilterBytes key)
{
	SurfBits	bits;
	SurfWalk	walk;
	SurfSpot	spot;
	bool		hashed = root->kind == FILTER_SUFFIX_HASH ||
	root->kind == FILTER_SUFFIX_MIXED;
	uint64_t	hash = hashed ? filter_hash(key) : 0;

	if (strip_prefix(page, &key) != 0)
		return FILTER_NO;
	surf_bits_begin(&bits, &root->code, key, 0);
	walk.n = 0;
	if (!surf_page_find(page, root->kind, &bits, hashed ? &hash : NULL, &walk,
						&spot))
		return FILTER_UNKNOWN;
	if (!spot.inside)
		return FILTER_NO;

	/* No key of the run has a byte without a code. */
	surf_bits_extend(&bits, UINT32_MAX);
	return bits.between ? FILTER_NO : FILTER_YES;
}

/*
 * Sets [*first, *end) to the leaves of the page that may have keys in the
 * range; there are none if *end is not greater.  A bound may be NULL.  False
 * if the page is damaged.
 */
static bool
page_bounds(const SurfRoot *root, const SurfPage *page, const FilterBytes *lo,
			const FilterBytes *hi, bool hi_exclusive,
			uint32_t *first, uint32_t *end)
{
	SurfBits	lo_bits;
	SurfBits	hi_bits;
	FilterBytes lo_key = {NULL, 0};
	FilterBytes hi_key = {NULL, 0};
	SurfWalk	walk;
	SurfSpot	spot;
	int			lo_order = -1;
	int			hi_order = 1;

	if (lo != NULL)
	{
		lo_key = *lo;
		lo_order = strip_prefix(page, &lo_key);
	}
	if (hi != NULL)
	{
		hi_key = *hi;
		hi_order = strip_prefix(page, &hi_key);
	}
	*first = lo_order > 0 ? page->nleaves : 0;
	*end = hi_order < 0 ? 0 : page->nleaves;
	if (*first >= *end)
		return true;

	walk.n = 0;
	if (lo_order == 0)
	{
		uint32_t	mark = UINT32_MAX;

		if (hi_order == 0)
			mark = filter_common_prefix(lo_key, hi_key);
		surf_bits_begin(&lo_bits, &root->code, lo_key, mark);
		if (!surf_page_find(page, root->kind, &lo_bits, NULL, &walk, &spot))
			return false;
		*first = spot.below;
	}
	if (hi_order == 0)
	{
		/* The way to hi is that to lo as far as they share bits. */
		if (lo_order == 0)
			surf_bits_begin_like(&hi_bits, &lo_bits, hi_key);
		else
			surf_bits_begin(&hi_bits, &root->code, hi_key, UINT32_MAX);
		if (!surf_page_find(page, root->kind, &hi_bits, NULL, &walk, &spot))
			return false;
		*end = spot.below;

		/*
		 * The leaf that hi is inside counts, unless all its keys are at or
		 * above the exclusive hi.
		 */
		if (spot.inside)
		{
			surf_bits_extend(&hi_bits, UINT32_MAX);
			if (!(hi_exclusive || hi_bits.between) ||
				!surf_bits_are_zero(&hi_bits, spot.depth))
				(*end)++;
		}
	}
	return true;
}

/* Is a key in the page and in the range?  NULL is no bound. */
static FilterAnswer
query_range(const SurfRoot *root, const SurfPage *page, const FilterBytes *lo,
			const FilterBytes *hi, bool hi_exclusive)
{
	uint32_t	first;
	uint32_t	end;

	if (!page_bounds(root, page, lo, hi, hi_exclusive, &first, &end))
		return FILTER_UNKNOWN;
	return first < end ? FILTER_YES : FILTER_NO;
}

/*
 * Cuts a bound as keys are cut; true if that changed it.  Then it stands for
 * keys below and above it.
 */
static bool
cut_bound(FilterBytes *bound, uint32_t max_key)
{
	if (bound->len == 0)
		bound->data = (const uint8_t *) ""; /* not NULL */
	if (bound->len <= max_key)
		return false;
	bound->len = max_key;
	return true;
}

/*
 * Begins a query and reads its first page.  FILTER_NO if the range or the run
 * is empty, FILTER_UNKNOWN if pages are damaged, else FILTER_YES.
 */
static FilterAnswer
begin_query(SurfQuery *query, const uint8_t *root, uint32_t root_len,
			FilterReader *reader, const FilterByteRange *range)
{
	FencePosition position;

	query->lo = range->lo;
	query->hi = range->hi;
	query->lo_bound = range->lo_unbounded ? NULL : &query->lo;
	query->hi_bound = range->hi_unbounded ? NULL : &query->hi;
	query->hi_exclusive = range->hi_exclusive;
	query->point = false;

	if (!open_root(&query->root, root, root_len))
		return FILTER_UNKNOWN;
	if (query->root.npages == 0)
		return FILTER_NO;
	if (query->lo_bound != NULL && query->hi_bound != NULL)
	{
		bool		same = query->lo.data == query->hi.data &&
		query->lo.len == query->hi.len;
		int			order = same ? 0 : filter_bytes_compare(query->lo, query->hi);

		if (order > 0 || (order == 0 && query->hi_exclusive))
			return FILTER_NO;
		query->point = order == 0;
	}

	if (query->lo_bound != NULL)
		cut_bound(&query->lo, query->root.max_key);
	if (query->hi_bound != NULL && cut_bound(&query->hi, query->root.max_key))
		query->hi_exclusive = false;

	if (!fence_find(query->root.fences, query->root.fences_len, reader,
					query->lo_bound, query->hi_bound, query->hi_exclusive,
					&position) ||
		!read_page(&query->root, reader, position.page, &query->page))
		return FILTER_UNKNOWN;
	query->pageno = position.page;
	query->crosses = position.range_crosses;
	return FILTER_YES;
}

/* Is a key in the range?  See filter.h and surf.h. */
FilterAnswer
surf_query(const uint8_t *root, uint32_t root_len, FilterReader *reader,
		   const FilterByteRange *range)
{
	SurfQuery	query;
	FilterAnswer answer = begin_query(&query, root, root_len, reader, range);

	if (answer != FILTER_YES)
		return answer;
	if (query.point && !query.crosses)
		return query_point(&query.root, &query.page, query.lo);
	if (!query.crosses)
		return query_range(&query.root, &query.page, query.lo_bound,
						   query.hi_bound, query.hi_exclusive);

	/*
	 * If the range goes on behind the next page, too, all keys there are
	 * below hi.
	 */
	answer = query_range(&query.root, &query.page, query.lo_bound, NULL, false);
	if (answer != FILTER_NO)
		return answer;
	if (!read_page(&query.root, reader, query.pageno + 1, &query.page))
		return FILTER_UNKNOWN;
	return query_range(&query.root, &query.page, NULL, query.hi_bound,
					   query.hi_exclusive);
}

/*
 * Reads the page that covers the upper bound of a query; the last page if
 * there is no bound.
 */
static bool
read_last_page(SurfQuery *query, FilterReader *reader)
{
	FencePosition position = {query->root.npages - 1, false};

	if (query->hi_bound != NULL &&
		!fence_find(query->root.fences, query->root.fences_len, reader,
					query->hi_bound, query->hi_bound, query->hi_exclusive,
					&position))
		return false;
	return read_page(&query->root, reader, position.page, &query->page);
}

/* The ranks of the keys in the range.  See filter.h and surf.h. */
bool
surf_ranks(const uint8_t *root, uint32_t root_len, FilterReader *reader,
		   const FilterByteRange *range, FilterRanks *ranks)
{
	SurfQuery	query;
	FilterAnswer answer = begin_query(&query, root, root_len, reader, range);
	uint32_t	first;
	uint32_t	end;

	if (answer == FILTER_YES && query.point && !query.crosses)
		answer = query_point(&query.root, &query.page, query.lo);
	ranks->first = ranks->end = 0;
	if (answer != FILTER_YES)
		return answer == FILTER_NO;
	if (!page_bounds(&query.root, &query.page, query.lo_bound,
					 query.crosses ? NULL : query.hi_bound,
					 !query.crosses && query.hi_exclusive, &first, &end))
		return false;
	ranks->first = query.page.rank + first;
	if (query.crosses &&
		(!read_last_page(&query, reader) ||
		 !page_bounds(&query.root, &query.page, NULL, query.hi_bound,
					  query.hi_exclusive, &first, &end)))
		return false;
	ranks->end = query.page.rank + end;
	if (!query.crosses && ranks->end < ranks->first)
		ranks->end = ranks->first;
	return ranks->end >= ranks->first;
}

/* See surf.h. */
uint32_t
surf_root_pages(const uint8_t *data, uint32_t len)
{
	SurfRoot	root;

	return open_root(&root, data, len) ? root.npages : 0;
}

/* See surf.h. */
FilterSuffix
surf_root_suffix(const uint8_t *data)
{
	return (FilterSuffix) data[2];
}

/* See surf.h. */
bool
surf_check(const uint8_t *data, uint32_t len, FilterReader *reader,
		   uint64_t nkeys)
{
	SurfRoot	root;
	uint64_t	rank = 0;

	if (!open_root(&root, data, len))
		return false;
	for (uint32_t i = 0; i < root.npages; i++)
	{
		SurfPage	page;

		if (!read_page(&root, reader, i, &page) || page.rank != rank)
			return false;
		rank += page.nleaves;
	}
	return rank == nkeys;
}
