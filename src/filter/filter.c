/*-------------------------------------------------------------------------
 *
 * filter.c
 *	  Passing calls on to the filters: SNARF for numbers, SuRF or a pair for
 *	  bytes.  Questions also to sorted runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/filter.h"
#include "filter/base/port.h"
#include "filter/pair.h"
#include "filter/snarf/snarf.h"
#include "filter/sorted/sorted.h"
#include "filter/surf/surf.h"

/* A build of any filter: of a SNARF, a SuRF, or, if both are set, a pair. */
struct FilterBuild
{
	FilterOptions options;
	SnarfBuild *snarf;
	SurfBuild  *surf;
	PairShares	shares;			/* of a pair */
	uint64_t	nkeys;			/* of a pair */
};

/* Do the options allow a pair? */
static bool
may_be_pair(const FilterBuild *build)
{
	const FilterOptions *options = &build->options;

	return options->bytes && options->suffix == FILTER_SUFFIX_AUTO &&
		options->page_size >= PAIR_MIN_PAGE && options->root_max >= PAIR_MIN_ROOT;
}

/* Begins the build of a run; options are copied. */
FilterBuild *
filter_build_begin(const FilterOptions *options)
{
	FilterBuild *build = filter_alloc(sizeof(FilterBuild));
	FilterOptions surf = *options;

	build->options = *options;
	if (!options->bytes)
	{
		build->snarf = snarf_build_begin(options);
		return build;
	}
	if (may_be_pair(build))
		surf.root_max = PAIR_TRIE_ROOT(options->root_max);
	else if (surf.suffix == FILTER_SUFFIX_AUTO)
		surf.suffix = FILTER_SUFFIX_REAL;
	build->surf = surf_build_begin(&surf);
	return build;
}

/* First pass over ascending 64-bit keys, which may repeat. */
void
filter_measure_u64(FilterBuild *build, uint64_t key)
{
	snarf_measure(build->snarf, key);
}

/* First pass over ascending byte strings, which may repeat. */
void
filter_measure_bytes(FilterBuild *build, FilterBytes key)
{
	surf_measure(build->surf, key);
}

/* See filter.h. */
bool
filter_build_hashes(FilterBuild *build)
{
	SurfCost	cost;

	if (!may_be_pair(build))
		return false;
	cost = surf_build_cost(build->surf);
	build->nkeys = surf_build_keys(build->surf);
	build->shares = pair_divide(&build->options, build->nkeys, &cost);
	if (build->shares.npages == 0)
		return false;
	surf_build_resize(build->surf, build->shares.trie_size, build->shares.npages);
	build->snarf = pair_begin_hashes(&build->options, &build->shares);
	return true;
}

/* Between the passes: decides how to spend the budget. */
void
filter_measure_end(FilterBuild *build)
{
	if (build->surf != NULL)
		surf_measure_end(build->surf);
	if (build->snarf != NULL)
		snarf_measure_end(build->snarf);
}

/* Second pass over the same 64-bit keys. */
void
filter_add_u64(FilterBuild *build, uint64_t key)
{
	snarf_add(build->snarf, key);
}

/* Second pass over the same byte strings. */
void
filter_add_bytes(FilterBuild *build, FilterBytes key)
{
	surf_add(build->surf, key);
}

/* Ends the build of a pair. */
static void
end_pair(FilterBuild *build, FilterRun *run)
{
	FilterRun	hashes;
	FilterRun	trie;
	uint64_t	nleaves;

	snarf_build_end(build->snarf, &hashes);
	surf_build_end(build->surf, &trie, &nleaves);
	run->nkeys = build->nkeys;
	pair_join(&hashes, &trie, &build->shares, build->options.page_size, nleaves, run);
}

/* Ends the build: fills *run and frees build. */
void
filter_build_end(FilterBuild *build, FilterRun *run)
{
	uint64_t	nleaves;

	memset(run, 0, sizeof(FilterRun));
	if (build->surf == NULL)
		snarf_build_end(build->snarf, run);
	else if (build->snarf == NULL)
		surf_build_end(build->surf, run, &nleaves);
	else
		end_pair(build, run);
	filter_free(build);
}

/* See filter.h. */
void
filter_build_limit(FilterBuild *build, uint32_t bits_per_key)
{
	build->options.bits_per_key = bits_per_key;
	if (build->surf != NULL)
		surf_build_limit(build->surf, bits_per_key);
	else
		snarf_build_limit(build->snarf, bits_per_key);
}

/* See filter.h. */
bool
filter_build_fits(const FilterBuild *build)
{
	return build->surf == NULL || surf_build_fits(build->surf);
}

/* See filter.h. */
uint64_t
filter_build_rank(const FilterBuild *build)
{
	return (build->surf != NULL ? surf_build_keys(build->surf) :
			snarf_build_keys(build->snarf)) - 1;
}

/* See filter.h. */
bool
filter_root_fits(FilterKind kind, const uint8_t *root, uint32_t root_len,
				 uint32_t npages, uint64_t min, uint64_t max)
{
	uint32_t	pages = 0;

	switch (kind)
	{
		case FILTER_KIND_SNARF:
		case FILTER_KIND_EXACT:
			pages = snarf_root_pages(root, root_len, min, max);
			break;
		case FILTER_KIND_SURF:
			pages = surf_root_pages(root, root_len);
			break;
		case FILTER_KIND_PAIR:
			pages = pair_root_pages(root, root_len);
			break;
		case FILTER_KIND_SORTED:
			pages = sorted_root_pages(root, root_len);
			break;
	}
	return pages > 0 && pages <= npages;
}

/* See filter.h. */
FilterSuffix
filter_root_suffix(const uint8_t *root)
{
	return surf_root_suffix(root);
}

/* See filter.h. */
bool
filter_check(FilterKind kind, const uint8_t *root, uint32_t root_len,
			 FilterReader *reader, uint64_t nkeys)
{
	uint64_t	found;

	switch (kind)
	{
		case FILTER_KIND_SNARF:
		case FILTER_KIND_EXACT:
			return snarf_check(root, root_len, reader, &found) && found == nkeys;
		case FILTER_KIND_SURF:
			return surf_check(root, root_len, reader, nkeys);
		case FILTER_KIND_PAIR:
			return pair_check(root, root_len, reader, nkeys);
		case FILTER_KIND_SORTED:
			return sorted_check(root, root_len, reader, nkeys);
	}
	return false;
}

/*
 * Is a key in [lo, hi]?  Exact runs have the same layout as others.
 */
FilterAnswer
filter_query_u64(FilterKind kind, const uint8_t *root, uint32_t root_len,
				 FilterReader *reader, uint64_t lo, uint64_t hi)
{
	if (kind != FILTER_KIND_SNARF && kind != FILTER_KIND_EXACT)
		return FILTER_UNKNOWN;
	return snarf_query(root, root_len, reader, lo, hi);
}

/*
 * The ranks of keys that may be in [lo, hi]; with estimate, see snarf_ranks().
 */
static bool
ranks_u64(FilterKind kind, const uint8_t *root, uint32_t root_len,
		  FilterReader *reader, uint64_t lo, uint64_t hi, bool estimate,
		  FilterRanks *ranks)
{
	if (kind != FILTER_KIND_SNARF && kind != FILTER_KIND_EXACT)
		return false;
	return snarf_ranks(root, root_len, reader, lo, hi, estimate, ranks);
}

/* See filter.h. */
bool
filter_ranks_u64(FilterKind kind, const uint8_t *root, uint32_t root_len,
				 FilterReader *reader, uint64_t lo, uint64_t hi,
				 FilterRanks *ranks)
{
	return ranks_u64(kind, root, root_len, reader, lo, hi, false, ranks);
}

/* About how many keys are in [lo, hi]?  See snarf_count.c for the error. */
bool
filter_count_u64(FilterKind kind, const uint8_t *root, uint32_t root_len,
				 FilterReader *reader, uint64_t lo, uint64_t hi,
				 uint64_t *count)
{
	FilterRanks ranks = {0, 0};
	bool		known = ranks_u64(kind, root, root_len, reader, lo, hi, true,
								  &ranks);

	*count = ranks.end - ranks.first;
	return known;
}

/* Is a key in the range of byte strings? */
FilterAnswer
filter_query_bytes(const uint8_t *root, uint32_t root_len,
				   FilterReader *reader, const FilterByteRange *range)
{
	if (pair_is_root(root, root_len))
		return pair_query(root, root_len, reader, range);
	if (sorted_is_root(root, root_len))
		return sorted_query(root, root_len, reader, range);
	return surf_query(root, root_len, reader, range);
}

/* See filter.h. */
bool
filter_ranks_bytes(const uint8_t *root, uint32_t root_len,
				   FilterReader *reader, const FilterByteRange *range,
				   FilterRanks *ranks)
{
	if (pair_is_root(root, root_len))
		return pair_ranks(root, root_len, reader, range, ranks);
	if (sorted_is_root(root, root_len))
		return sorted_ranks(root, root_len, reader, range, ranks);
	return surf_ranks(root, root_len, reader, range, ranks);
}

/* About how many keys are in the range of byte strings? */
bool
filter_count_bytes(const uint8_t *root, uint32_t root_len,
				   FilterReader *reader, const FilterByteRange *range,
				   uint64_t *count)
{
	FilterRanks ranks = {0, 0};
	bool		known;

	if (pair_is_root(root, root_len))
		return pair_count(root, root_len, reader, range, count);
	known = filter_ranks_bytes(root, root_len, reader, range, &ranks);
	*count = ranks.end - ranks.first;
	return known;
}
