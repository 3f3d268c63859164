/*-------------------------------------------------------------------------
 *
 * sorted.h
 *	  Sorted runs: the keys themselves, in pages under fences.
 *
 * A sorted run is never wrong: FILTER_YES means that a key of the run is in
 * the range.  It takes more room than a filter, but it can be built in one
 * pass, read back, and merged with others.
 *
 * Keys are byte strings; numbers are their eight bytes, the highest first.
 *
 * A content page, little-endian:
 *
 *		 0	uint8	magic
 *		 1	uint8	1: lengths differ
 *		 2	uint16	number of keys, n > 0
 *		 4	uint16	length of the prefix that all keys of the page share
 *		 6	uint16	length of what follows it in each key; 0 where lengths differ
 *		 8	uint64	keys on the pages before
 *		16	bytes	the prefix
 *			uint16	ends[n], where each rest ends below; only where lengths differ
 *			bytes	what follows the prefix in each key
 *
 * The root: magic, three bytes unused, number of content pages (uint32), number of
 * keys (uint64), the root of the fences.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SORTED_H
#define RANGEFILTER_SORTED_H

#include "filter/base/run.h"

#define SORTED_PAGE_MAGIC	0xE5
#define SORTED_ROOT_MAGIC	0xE6
#define SORTED_ROOT_HEADER	16

/* The least that root_max can be. */
#define SORTED_MIN_ROOT		(SORTED_ROOT_HEADER + 48)

typedef struct SortedBuild SortedBuild;

/*
 * Builds a run of ascending keys.  Duplicates are dropped.  A page must have
 * room for a key and SORTED_PAGE_HEADER bytes.
 */
extern SortedBuild *sorted_build_begin(uint32_t page_size, uint32_t root_max);
extern void sorted_add(SortedBuild *build, FilterBytes key);

/* Fills *run, its kind included, and frees build. */
extern void sorted_build_end(SortedBuild *build, FilterRun *run);

/* Is this the root of a sorted run, and not of a filter? */
extern bool sorted_is_root(const uint8_t *root, uint32_t root_len);

/* How many content pages there are; 0 if the root is damaged. */
extern uint32_t sorted_root_pages(const uint8_t *root, uint32_t root_len);

/*
 * Are there nkeys keys, in ascending order, on the pages to which the fences lead?
 */
extern bool sorted_check(const uint8_t *root, uint32_t root_len,
						 FilterReader *reader, uint64_t nkeys);

/*
 * How many pages a question for one key reads; 0 if the root is damaged.  Where separators were
 * cut and are equal, a question reads more: twice the logarithm of the number of their pages.
 */
extern uint32_t sorted_depth(const uint8_t *root, uint32_t root_len);
extern FilterAnswer sorted_query(const uint8_t *root, uint32_t root_len,
								 FilterReader *reader,
								 const FilterByteRange *range);

/* The ranks of the keys in the range.  False where pages are damaged. */
extern bool sorted_ranks(const uint8_t *root, uint32_t root_len,
						 FilterReader *reader, const FilterByteRange *range,
						 FilterRanks *ranks);

#define SORTED_PAGE_HEADER	16

/* A content page opened; everything points into it. */
typedef struct SortedPage
{
	FilterBytes prefix;
	const uint8_t *ends;		/* NULL: all rests are rest_len long */
	const uint8_t *rests;
	uint32_t	rests_len;
	uint32_t	n;
	uint32_t	rest_len;
	uint64_t	rank;			/* of the first key */
} SortedPage;

/* The state of reading all keys of a run in order. */
typedef struct SortedCursor
{
	FilterReader *reader;
	uint32_t	npages;
	uint32_t	next_page;
	uint32_t	next;			/* number of the next key of page */
	SortedPage	page;
	uint8_t		key[FILTER_MAX_KEY];
} SortedCursor;

/*
 * Begins to read a run.  Until the end nobody else may use the reader.  False
 * if the root is damaged.
 */
extern bool sorted_cursor_begin(SortedCursor *cursor, const uint8_t *root,
								uint32_t root_len, FilterReader *reader);

/*
 * FILTER_YES with the next key, valid until the next call; FILTER_NO behind the
 * last one; FILTER_UNKNOWN where a page is damaged or missing.
 */
extern FilterAnswer sorted_cursor_next(SortedCursor *cursor, FilterBytes *key);

#endif							/* RANGEFILTER_SORTED_H */
