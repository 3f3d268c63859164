/*-------------------------------------------------------------------------
 *
 * fence.h
 *	  Fences: a tree of separator keys that leads to a run's content pages.
 *
 * Content page i (i > 0) has a separator s_i with last key of page i-1 < s_i
 *		<= first key of page i which is as short as possible.  Separators are
 *		byte strings.  Those of 64-bit keys are prefixes of their 8 big-endian
 *		bytes.  Separators that do not fit the root are in fence pages behind
 *		the content pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_FENCE_H
#define RANGEFILTER_FENCE_H

#include "filter/base/run.h"

/* The smallest root_max and page_size of a tree of fences. */
#define FENCE_MIN_ROOT 48

typedef struct FenceBuild FenceBuild;

extern FenceBuild *fence_build_begin(uint32_t page_size, uint32_t root_max);

/*
 * Adds a page that begins with key first, behind key prev_last.  Both are
 * ignored for page 0.  prev_last may be any byte string below first that is
 * not below the last key of the page before.
 */
extern void fence_add_page(FenceBuild *fences, FilterBytes prev_last,
						   FilterBytes first);

/*
 * Ends the build.  Appends fence pages (if any) to *pages, which holds the
 * content pages and is grown with filter_realloc(), and sets *npages, the
 * root and its length (no root where there are no pages).  Frees fences.
 */
extern void fence_build_end(FenceBuild *fences, uint8_t **pages,
							uint32_t *npages, uint8_t **root,
							uint32_t *root_len);

/*
 * The most fence pages that a run of npages content pages can need when no
 * separator is longer than max_separator bytes.
 */
extern uint32_t fence_pages_bound(uint32_t npages, uint32_t page_size,
								  uint32_t root_max, uint32_t max_separator);

/* Where a key leads to. */
typedef struct FencePosition
{
	uint32_t	page;			/* the content page that covers the key */

	/*
	 * The next page's separator is <= hi: the range reaches into the next
	 * page.  It has that page's first key, or cannot be told from a range
	 * that has it.
	 */
	bool		range_crosses;

	/*
	 * Set by fence_find_number() only: about how far lo is between the page's
	 * separator and the next one, in units of 2^-16; FENCE_NO_GUESS if not
	 * known.
	 */
	uint32_t	guess;
} FencePosition;

#define FENCE_NO_GUESS UINT32_MAX

/*
 * Finds the content page that covers lo: the last page whose separator is <=
 * lo, or page 0 if lo is NULL.  Also finds whether the range goes on into the
 * next page.  hi NULL: no upper bound.  False if the fences are damaged.
 */
extern bool fence_find(const uint8_t *root, uint32_t root_len,
					   FilterReader *reader,
					   const FilterBytes *lo, const FilterBytes *hi,
					   bool hi_exclusive, FencePosition *position);

/*
 * The same for 64-bit numbers, lo <= hi, in a tree whose separators are
 * prefixes of their eight big-endian bytes.
 */
extern bool fence_find_number(const uint8_t *root, uint32_t root_len,
							  FilterReader *reader, uint64_t lo, uint64_t hi,
							  FencePosition *position);

#endif							/* RANGEFILTER_FENCE_H */
