/*-------------------------------------------------------------------------
 *
 * leading.c
 *	  SNARF over the leading 64 bits of byte strings.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/base/bits.h"
#include "filter/snarf/leading.h"
#include "filter/base/port.h"
#include "filter/snarf/snarf.h"
#include "filter/snarf/snarf_page.h"

/* Bytes of a number. */
#define NUMBER_BYTES 8

struct LeadingBuild
{
	SnarfBuild *snarf;
	uint8_t		shared[LEADING_MAX_SHARED];
	uint32_t	shared_len;
	uint64_t	nkeys;			/* distinct ones of the first pass */
	uint8_t		last[FILTER_MAX_KEY];
	uint32_t	last_len;
};

/* The numbers that a range of keys becomes. */
typedef struct NumberRange
{
	uint64_t	lo;
	uint64_t	hi;
} NumberRange;

/* Begins a build, see leading.h. */
LeadingBuild *
leading_build_begin(const FilterOptions *options)
{
	LeadingBuild *build = filter_alloc(sizeof(LeadingBuild));
	FilterOptions snarf = *options;

	build->shared_len = options->shared.len;
	if (build->shared_len > LEADING_MAX_SHARED)
		build->shared_len = LEADING_MAX_SHARED;
	if (build->shared_len > options->root_max / 4)
		build->shared_len = options->root_max / 4;
	if (build->shared_len > 0)
		memcpy(build->shared, options->shared.data, build->shared_len);
	snarf.root_max -= LEADING_ROOT_HEADER + build->shared_len;
	build->snarf = snarf_build_begin(&snarf);
	return build;
}

/* The number of a key, behind so many shared bytes. */
static BITS_INLINE uint64_t
number_of(FilterBytes key, uint32_t shared_len)
{
	uint8_t		bytes[NUMBER_BYTES] = {0};
	uint32_t	len = key.len - shared_len;

	if (len > NUMBER_BYTES)
		len = NUMBER_BYTES;
	if (len > 0)
		memcpy(bytes, key.data + shared_len, len);
	return __builtin_bswap64(bits_load64(bytes));
}

static BITS_INLINE uint64_t
number_of_key(const LeadingBuild *build, FilterBytes key)
{
	if (key.len < build->shared_len ||
		(build->shared_len > 0 &&
		 memcmp(key.data, build->shared, build->shared_len) != 0))
		filter_fail("keys do not share what they were said to");
	return number_of(key, build->shared_len);
}

/* First pass: takes the next key. */
void
leading_measure(LeadingBuild *build, FilterBytes key)
{
	FilterBytes last = {build->last, build->last_len};
	uint32_t	len = key.len < FILTER_MAX_KEY ? key.len : FILTER_MAX_KEY;

	key.len = len;
	if (build->nkeys > 0 && filter_bytes_compare(last, key) == 0)
		return;
	build->nkeys++;
	if (len > 0)
		memcpy(build->last, key.data, len);
	build->last_len = len;
	snarf_measure(build->snarf, number_of_key(build, key));
}

/* Between the passes. */
void
leading_measure_end(LeadingBuild *build)
{
	snarf_measure_end(build->snarf);
}

/* Second pass: takes the next key. */
void
leading_add(LeadingBuild *build, FilterBytes key)
{
	snarf_add(build->snarf, number_of_key(build, key));
}

/* Distinct numbers of this pass so far. */
uint64_t
leading_build_keys(const LeadingBuild *build)
{
	return snarf_build_keys(build->snarf);
}

/* See leading.h. */
void
leading_build_limit(LeadingBuild *build, uint32_t bits_per_key)
{
	snarf_build_limit(build->snarf, bits_per_key);
}

/*
 * Ends the build, see leading.h.  A lossless run of numbers is not a lossless
 * run of keys.
 */
void
leading_build_end(LeadingBuild *build, FilterRun *run)
{
	uint32_t	header_len = LEADING_ROOT_HEADER + build->shared_len;
	uint8_t    *snarf_root;

	snarf_build_end(build->snarf, run);
	snarf_root = run->root;
	run->kind = FILTER_KIND_SNARF;
	run->nkeys = build->nkeys;
	run->root = filter_alloc(header_len + run->root_len);
	run->root[0] = LEADING_ROOT_MAGIC;
	run->root[1] = LEADING_ROOT_VERSION;
	bits_store16(run->root + 2, (uint16_t) build->shared_len);
	memcpy(run->root + LEADING_ROOT_HEADER, build->shared, build->shared_len);
	memcpy(run->root + header_len, snarf_root, run->root_len);
	run->root_len += header_len;
	filter_free(snarf_root);
	filter_free(build);
}

/* See leading.h. */
bool
leading_is_root(const uint8_t *root, uint32_t root_len)
{
	return root_len > 0 && root[0] == LEADING_ROOT_MAGIC;
}

/* Checks the root's header, and sets *shared. */
static bool
root_is_sane(const uint8_t *root, uint32_t root_len, FilterBytes *shared)
{
	if (root_len < LEADING_ROOT_HEADER || root[0] != LEADING_ROOT_MAGIC ||
		root[1] != LEADING_ROOT_VERSION)
		return false;
	shared->data = root + LEADING_ROOT_HEADER;
	shared->len = bits_load16(root + 2);
	return shared->len <= root_len - LEADING_ROOT_HEADER;
}

/*
 * Compares a bound with the strings that begin with the shared prefix: 0 if it
 * is among them, < 0 below, > 0 above them.
 */
static int
side_of_shared(FilterBytes bound, FilterBytes shared)
{
	uint32_t	common = bound.len < shared.len ? bound.len : shared.len;
	int			order = common > 0 ? memcmp(bound.data, shared.data, common) : 0;

	return order != 0 ? order : bound.len < shared.len ? -1 : 0;
}

/*
 * Turns a range of keys into a range that has the numbers of all these keys;
 * false if no key can be in it.
 *
 * A key below an exclusive end can have the same number as the end only if the
 * end has trailing zeros, or has more bytes than the number.
 */
static bool
number_range(const FilterByteRange *range, FilterBytes shared,
			 NumberRange *numbers)
{
	int			side;

	numbers->lo = 0;
	numbers->hi = UINT64_MAX;
	if (!range->lo_unbounded)
	{
		side = side_of_shared(range->lo, shared);
		if (side > 0)
			return false;
		if (side == 0)
			numbers->lo = number_of(range->lo, shared.len);
	}
	if (!range->hi_unbounded)
	{
		FilterBytes hi = range->hi;

		side = side_of_shared(hi, shared);
		if (side < 0)
			return false;
		if (side == 0)
		{
			numbers->hi = number_of(hi, shared.len);
			if (range->hi_exclusive && hi.len == shared.len)
				return false;
			if (range->hi_exclusive && hi.len - shared.len <= NUMBER_BYTES &&
				hi.data[hi.len - 1] != 0)
				numbers->hi--;
		}
	}
	return numbers->lo <= numbers->hi;
}

/* Is this a range that no key can be in? */
static bool
range_is_empty(const FilterByteRange *range)
{
	int			order;

	if (range->lo_unbounded || range->hi_unbounded)
		return false;
	order = filter_bytes_compare(range->lo, range->hi);
	return order > 0 || (order == 0 && range->hi_exclusive);
}

/* See leading.h. */
bool
leading_open_root(const uint8_t **root, uint32_t *root_len, FilterBytes *shared)
{
	if (!root_is_sane(*root, *root_len, shared))
		return false;
	*root += LEADING_ROOT_HEADER + shared->len;
	*root_len -= LEADING_ROOT_HEADER + shared->len;
	return true;
}

/* See leading.h. */
uint64_t
leading_number(FilterBytes key, FilterBytes shared)
{
	int			side = side_of_shared(key, shared);

	if (side != 0)
		return side < 0 ? 0 : UINT64_MAX;
	return number_of(key, shared.len);
}

/* Is a key in the range?  See filter.h. */
FilterAnswer
leading_query(const uint8_t *root, uint32_t root_len, FilterReader *reader,
			  const FilterByteRange *range)
{
	FilterBytes shared;
	NumberRange numbers;
	uint32_t	header_len;

	if (!root_is_sane(root, root_len, &shared))
		return FILTER_UNKNOWN;
	if (range_is_empty(range) || !number_range(range, shared, &numbers))
		return FILTER_NO;
	header_len = LEADING_ROOT_HEADER + shared.len;
	return snarf_query(root + header_len, root_len - header_len, reader,
					   numbers.lo, numbers.hi);
}

/* The ranks of the numbers of keys in the range.  See leading.h. */
bool
leading_ranks(const uint8_t *root, uint32_t root_len, FilterReader *reader,
			  const FilterByteRange *range, bool estimate, FilterRanks *ranks)
{
	FilterBytes shared;
	NumberRange numbers;
	uint32_t	header_len;

	if (!root_is_sane(root, root_len, &shared))
		return false;
	ranks->first = ranks->end = 0;
	if (range_is_empty(range) || !number_range(range, shared, &numbers))
		return true;
	header_len = LEADING_ROOT_HEADER + shared.len;
	return snarf_ranks(root + header_len, root_len - header_len, reader,
					   numbers.lo, numbers.hi, estimate, ranks);
}

/* See leading.h. */
uint32_t
leading_root_pages(const uint8_t *root, uint32_t root_len)
{
	FilterBytes shared;
	uint32_t	header_len;

	if (!root_is_sane(root, root_len, &shared))
		return 0;
	header_len = LEADING_ROOT_HEADER + shared.len;
	if (root_len - header_len < SNARF_ROOT_HEADER)
		return 0;
	return snarf_root_pages(root + header_len, root_len - header_len,
							bits_load64(root + header_len + SNARF_ROOT_MIN),
							bits_load64(root + header_len + SNARF_ROOT_MAX));
}

/* See leading.h. */
bool
leading_check(const uint8_t *root, uint32_t root_len, FilterReader *reader,
			  uint64_t nkeys)
{
	FilterBytes shared;
	uint64_t	nnumbers;

	return leading_open_root(&root, &root_len, &shared) &&
		snarf_check(root, root_len, reader, &nnumbers) &&
		nnumbers <= nkeys;
}
