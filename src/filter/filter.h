/*-------------------------------------------------------------------------
 *
 * filter.h
 *	  Range filters: build from sorted keys, ask "is a key in [lo, hi]?".
 *
 * Plain C: nothing here knows PostgreSQL.  A filter is a *run*: a sequence of
 * equal-sized pages that hold the coded keys, and a small *root*, the top of
 * a tree of fences that leads from a key to the one page that covers it.
 * Every page is self-contained, so a query reads few pages and decodes
 * nothing: the layout in memory is the layout on disk.
 *
 * The error is one-sided: FILTER_NO is the truth, FILTER_YES may be wrong,
 * FILTER_UNKNOWN is the answer to damaged pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_FILTER_H
#define RANGEFILTER_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys are at most this long; longer ones are cut by whoever encodes them. */
#define FILTER_MAX_KEY 1000

/* The largest root filter_build_end() returns, in bytes. */
#define FILTER_MAX_ROOT 2500

typedef enum FilterKind
{
	FILTER_KIND_SNARF = 1,		/* piecewise-linear model + Elias-Fano blocks */
	FILTER_KIND_EXACT = 2,		/* lossless Elias-Fano blocks */
	FILTER_KIND_SURF = 3		/* succinct tries over byte strings */
} FilterKind;

typedef enum FilterSuffix
{
	FILTER_SUFFIX_NONE = 0,
	FILTER_SUFFIX_HASH = 1,
	FILTER_SUFFIX_REAL = 2,
	FILTER_SUFFIX_MIXED = 3
} FilterSuffix;

typedef enum FilterAnswer
{
	FILTER_NO = 0,
	FILTER_YES = 1,
	FILTER_UNKNOWN = 2
} FilterAnswer;

/* A byte-string key: compared as memcmp does, a prefix before its extensions. */
typedef struct FilterBytes
{
	const uint8_t *data;
	uint32_t	len;
} FilterBytes;

/*
 * A closed range of byte strings, either end of which may be open.  With
 * hi_exclusive the key hi itself is outside.
 */
typedef struct FilterByteRange
{
	FilterBytes lo;
	FilterBytes hi;
	bool		lo_unbounded;
	bool		hi_unbounded;
	bool		hi_exclusive;
} FilterByteRange;

/*
 * How a query reads the run.  read_page returns page_size bytes of page
 * pageno, valid until the next call only (the caller may hold just one page
 * at a time), or NULL where the page cannot be had: the query then answers
 * FILTER_UNKNOWN.
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
	bool		surf;			/* byte strings, in tries */
	bool		leading;		/* byte strings, by their leading 64 bits
								 * behind what they share; neither: 64-bit
								 * numbers */
	uint32_t	bits_per_key;	/* budget per distinct key for all pages */
	FilterSuffix suffix;		/* SuRF only */
	uint32_t	page_size;		/* content bytes of a page, a multiple of 8 */
	uint32_t	root_max;		/* root may be this large, <= FILTER_MAX_ROOT */
	uint64_t	nrows;			/* rows, duplicates included */
	FilterBytes shared;			/* leading: what all keys begin with, or less;
								 * kept by the caller */
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

typedef struct FilterBuild FilterBuild;

/*
 * Building takes two passes over the same ascending keys (duplicates are
 * dropped): measure, then add.  The first pass finds what the second needs to
 * spend the budget well: how many distinct keys there are and what coding
 * them takes.
 */
extern FilterBuild *filter_build_begin(const FilterOptions *options);
extern void filter_measure_u64(FilterBuild *build, uint64_t key);
extern void filter_measure_bytes(FilterBuild *build, FilterBytes key);
extern void filter_measure_end(FilterBuild *build);
extern void filter_add_u64(FilterBuild *build, uint64_t key);
extern void filter_add_bytes(FilterBuild *build, FilterBytes key);
extern void filter_build_end(FilterBuild *build, FilterRun *run);

/*
 * Lowers the budget, which only filter_measure_end() needs to know: by then
 * the caller has seen the keys, too.
 */
extern void filter_build_limit(FilterBuild *build, uint32_t bits_per_key);

/*
 * The rank of the key measured or added last: how many keys are before it.
 * (Keys that the filter does not tell apart have the same one.)
 */
extern uint64_t filter_build_rank(const FilterBuild *build);
extern void filter_run_free(FilterRun *run);

/* Is a key in the range?  lo <= hi for numbers; both ends count. */
extern FilterAnswer filter_query_u64(FilterKind kind,
									 const uint8_t *root, uint32_t root_len,
									 FilterReader *reader,
									 uint64_t lo, uint64_t hi);

extern FilterAnswer filter_query_bytes(const uint8_t *root, uint32_t root_len,
									   FilterReader *reader,
									   const FilterByteRange *range);

/*
 * About how many distinct keys are in the range.  True with the number in
 * *count, exact for lossless pages; false where pages are damaged.
 */
extern bool filter_count_u64(FilterKind kind,
							 const uint8_t *root, uint32_t root_len,
							 FilterReader *reader,
							 uint64_t lo, uint64_t hi, uint64_t *count);
extern bool filter_count_bytes(const uint8_t *root, uint32_t root_len,
							   FilterReader *reader,
							   const FilterByteRange *range, uint64_t *count);

/*
 * The ranks of keys that may be in the range: from first on, before end.  No
 * key of the range has another one.  What a point's ranks are, the ranks of
 * any range that holds the point have among them.  True with *ranks set,
 * false where pages are damaged.
 */
typedef struct FilterRanks
{
	uint64_t	first;
	uint64_t	end;
} FilterRanks;

extern bool filter_ranks_u64(FilterKind kind,
							 const uint8_t *root, uint32_t root_len,
							 FilterReader *reader,
							 uint64_t lo, uint64_t hi, FilterRanks *ranks);
extern bool filter_ranks_bytes(const uint8_t *root, uint32_t root_len,
							   FilterReader *reader,
							   const FilterByteRange *range,
							   FilterRanks *ranks);

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

#endif							/* RANGEFILTER_FILTER_H */
