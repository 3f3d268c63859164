/*-------------------------------------------------------------------------
 *
 * run.h
 *	  Runs of filters: the types that all filters and their callers share.
 *
 * This is plain C without PostgreSQL.  A filter is a *run*: a sequence of
 * equal-sized pages that hold the coded keys, and a small *root*, the top of a
 * tree of fences that leads from a key to the one page that covers it.  Every
 * page is self-contained, so a query reads few pages.  It decodes nothing: the
 * layout in memory is the layout on disk.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_RUN_H
#define RANGEFILTER_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "filter/base/bits.h"

/* The longest key, in bytes; the codecs cut longer ones. */
#define FILTER_MAX_KEY 1000

/* The largest root filter_build_end() returns, in bytes. */
#define FILTER_MAX_ROOT 2500

typedef enum FilterKind
{
	FILTER_KIND_SNARF = 1,		/* piecewise-linear model + Elias-Fano blocks */
	FILTER_KIND_EXACT = 2,		/* lossless Elias-Fano blocks */
	FILTER_KIND_SURF = 3,		/* succinct tries over byte strings */
	FILTER_KIND_SORTED = 4,		/* the keys themselves, as byte strings */
	FILTER_KIND_PAIR = 5		/* byte strings: a SNARF of their hashes, and
								 * a trie */
} FilterKind;

typedef enum FilterSuffix
{
	FILTER_SUFFIX_NONE = 0,
	FILTER_SUFFIX_HASH = 1,
	FILTER_SUFFIX_REAL = 2,
	FILTER_SUFFIX_MIXED = 3,
	FILTER_SUFFIX_AUTO = 4		/* not in a run: see FilterOptions */
} FilterSuffix;

typedef enum FilterAnswer
{
	FILTER_NO = 0,				/* certain */
	FILTER_YES = 1,				/* may be wrong */
	FILTER_UNKNOWN = 2			/* pages are damaged or missing */
} FilterAnswer;

/*
 * A byte-string key.  The order is that of memcmp, a prefix before its
 * extensions.
 */
typedef struct FilterBytes
{
	const uint8_t *data;
	uint32_t	len;
} FilterBytes;

/*
 * A range of byte strings.  Both ends belong to it, but with hi_exclusive hi
 * does not.  Either end may be unbounded.
 */
typedef struct FilterByteRange
{
	FilterBytes lo;
	FilterBytes hi;
	bool		lo_unbounded;
	bool		hi_unbounded;
	bool		hi_exclusive;

	/*
	 * Hashes that all keys in the range have, of those that were given when
	 * the filter was built.  Where there are none, a range of one key has
	 * that of this key.
	 */
	const uint64_t *hashes;
	uint32_t	nhashes;
} FilterByteRange;

/*
 * How a query reads the run.  read_page returns page_size bytes of page
 * pageno, or NULL if it cannot be read: then the query answers FILTER_UNKNOWN.
 * The bytes are valid until the next call only, since the caller may hold just
 * one page at a time.
 */
typedef struct FilterReader
{
	const uint8_t *(*read_page) (struct FilterReader *self, uint32_t pageno);
	uint32_t	npages;
	uint32_t	page_size;		/* content bytes of a page */
} FilterReader;

/* What the user asked for. */
typedef struct FilterOptions
{
	bool		bytes;			/* byte strings; else 64-bit numbers */
	uint32_t	bits_per_key;	/* budget per distinct key for all pages */
	FilterSuffix suffix;		/* of byte strings; auto: a pair, or a SuRF
								 * that is nearly exact */
	uint32_t	page_size;		/* content bytes of a page, a multiple of 8 */
	uint32_t	root_max;		/* the largest root, <= FILTER_MAX_ROOT */
	uint64_t	nrows;			/* rows, duplicates included */
	uint32_t	pages;			/* for the parts of a pair: how many pages
								 * there are, whatever the bits; else 0 */
} FilterOptions;

/* A finished run.  pages and root are allocated by filter_alloc(). */
typedef struct FilterRun
{
	FilterKind	kind;
	uint64_t	nkeys;			/* distinct keys */
	uint8_t    *pages;
	uint32_t	npages;
	uint8_t    *root;
	uint32_t	root_len;
} FilterRun;

extern void filter_run_free(FilterRun *run);

/*
 * The pages of a budget of "bits" bits: the whole ones that it has room for, or one more
 * where that would be less than three quarters of it.  A SuRF gets whatever pages the budget
 * begins: the trie takes most of it, and what is left for suffixes decides.
 */
extern uint64_t filter_budget_pages(uint64_t bits, uint32_t page_size);
extern uint64_t filter_budget_pages_surf(uint64_t bits, uint32_t page_size);

/*
 * The ranks [first, end).  No key of the range asked for has another rank.
 * The ranks of a range include those of every point in it.
 */
typedef struct FilterRanks
{
	uint64_t	first;
	uint64_t	end;
} FilterRanks;

/* A reader over pages in memory, for tests, tools and benchmarks. */
typedef struct FilterMemoryReader
{
	FilterReader reader;		/* must be first */
	const uint8_t *pages;
} FilterMemoryReader;

extern void filter_memory_reader_init(FilterMemoryReader *reader,
									  const uint8_t *pages, uint32_t npages,
									  uint32_t page_size);

/* memcmp order with shorter first: < 0, 0, > 0. */
extern int	filter_bytes_compare(FilterBytes a, FilterBytes b);
extern uint32_t filter_common_prefix(FilterBytes a, FilterBytes b);
extern uint64_t filter_hash(FilterBytes key);

/*
 * Compares a string with those that begin with a prefix: < 0 if it is below all of
 * them, > 0 if above, 0 if it is among them.
 */
static BITS_INLINE int
filter_prefix_compare(FilterBytes key, FilterBytes prefix)
{
	uint32_t	common = key.len < prefix.len ? key.len : prefix.len;
	int			order = common > 0 ? memcmp(key.data, prefix.data, common) : 0;

	if (order != 0)
		return order;
	return key.len < prefix.len ? -1 : 0;
}

#endif							/* RANGEFILTER_RUN_H */
