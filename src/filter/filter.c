/*-------------------------------------------------------------------------
 *
 * filter.c
 *	  Passing calls on to the filters: SNARF for numbers, SuRF for bytes, SNARF
 *	  for the leading bits of bytes.  Questions also to sorted runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/filter.h"
#include "filter/snarf/leading.h"
#include "filter/base/port.h"
#include "filter/snarf/snarf.h"
#include "filter/sorted/sorted.h"
#include "filter/surf/surf.h"

/* A build of any filter: exactly one of these is set. */
struct FilterBuild
{
	SnarfBuild *snarf;
	SurfBuild  *surf;
	LeadingBuild *leading;
};

/* Begins the build of a run; options are copied. */
FilterBuild *
filter_build_begin(const FilterOptions *options)
{
	FilterBuild *build = filter_alloc(sizeof(FilterBuild));

	if (options->surf)
		build->surf = surf_build_begin(options);
	else if (options->leading)
		build->leading = leading_build_begin(options);
	else
		build->snarf = snarf_build_begin(options);
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
	if (build->surf != NULL)
		surf_measure(build->surf, key);
	else
		leading_measure(build->leading, key);
}

/* Between the passes: decides how to spend the budget. */
void
filter_measure_end(FilterBuild *build)
{
	if (build->surf != NULL)
		surf_measure_end(build->surf);
	else if (build->leading != NULL)
		leading_measure_end(build->leading);
	else
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
	if (build->surf != NULL)
		surf_add(build->surf, key);
	else
		leading_add(build->leading, key);
}

/* Ends the build: fills *run and frees build. */
void
filter_build_end(FilterBuild *build, FilterRun *run)
{
	memset(run, 0, sizeof(FilterRun));
	if (build->surf != NULL)
		surf_build_end(build->surf, run);
	else if (build->leading != NULL)
		leading_build_end(build->leading, run);
	else
		snarf_build_end(build->snarf, run);
	filter_free(build);
}

/* See filter.h. */
void
filter_build_limit(FilterBuild *build, uint32_t bits_per_key)
{
	if (build->surf != NULL)
		surf_build_limit(build->surf, bits_per_key);
	else if (build->leading != NULL)
		leading_build_limit(build->leading, bits_per_key);
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
	if (build->surf != NULL)
		return surf_build_keys(build->surf) - 1;
	if (build->leading != NULL)
		return leading_build_keys(build->leading) - 1;
	return snarf_build_keys(build->snarf) - 1;
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
			pages = leading_is_root(root, root_len) ?
				leading_root_pages(root, root_len) :
				snarf_root_pages(root, root_len, min, max);
			break;
		case FILTER_KIND_SURF:
			pages = surf_root_pages(root, root_len);
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
			if (leading_is_root(root, root_len))
				return leading_check(root, root_len, reader, nkeys);
			return snarf_check(root, root_len, reader, &found) && found == nkeys;
		case FILTER_KIND_SURF:
			return surf_check(root, root_len, reader, nkeys);
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
	if (leading_is_root(root, root_len))
		return leading_query(root, root_len, reader, range);
	if (sorted_is_root(root, root_len))
		return sorted_query(root, root_len, reader, range);
	return surf_query(root, root_len, reader, range);
}

/* The same as ranks_u64() for byte strings. */
static bool
ranks_bytes(const uint8_t *root, uint32_t root_len, FilterReader *reader,
			const FilterByteRange *range, bool estimate, FilterRanks *ranks)
{
	if (leading_is_root(root, root_len))
		return leading_ranks(root, root_len, reader, range, estimate, ranks);
	if (sorted_is_root(root, root_len))
		return sorted_ranks(root, root_len, reader, range, ranks);
	return surf_ranks(root, root_len, reader, range, ranks);
}

/* See filter.h. */
bool
filter_ranks_bytes(const uint8_t *root, uint32_t root_len,
				   FilterReader *reader, const FilterByteRange *range,
				   FilterRanks *ranks)
{
	return ranks_bytes(root, root_len, reader, range, false, ranks);
}

/* About how many keys are in the range of byte strings? */
bool
filter_count_bytes(const uint8_t *root, uint32_t root_len,
				   FilterReader *reader, const FilterByteRange *range,
				   uint64_t *count)
{
	FilterRanks ranks = {0, 0};
	bool		known = ranks_bytes(root, root_len, reader, range, true,
									&ranks);

	*count = ranks.end - ranks.first;
	return known;
}
