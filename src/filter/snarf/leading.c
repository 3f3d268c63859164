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

struct LeadingBuild
{
	SnarfBuild *snarf;
	uint8_t		shared[LEADING_MAX_SHARED];
	LeadingNumbers numbers;
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

/* The bytes of a root before that of its SNARF. */
static uint32_t
root_header_len(const LeadingNumbers *numbers)
{
	return LEADING_ROOT_HEADER + numbers->shared.len +
		(numbers->digits.kind != FILTER_DIGITS_BYTES ? LEADING_ROOT_DIGITS : 0);
}

/* Begins a build, see leading.h. */
LeadingBuild *
leading_build_begin(const FilterOptions *options)
{
	LeadingBuild *build = filter_alloc(sizeof(LeadingBuild));
	FilterOptions snarf = *options;
	FilterBytes shared = {build->shared, options->shared.len};

	if (shared.len > LEADING_MAX_SHARED)
		shared.len = LEADING_MAX_SHARED;
	if (shared.len > options->root_max / 4)
		shared.len = options->root_max / 4;
	if (shared.len > 0)
		memcpy(build->shared, options->shared.data, shared.len);
	if (!leading_numbers_init(&build->numbers, shared, &options->digits))
		filter_fail("no such digits");
	snarf.root_max -= root_header_len(&build->numbers);
	build->snarf = snarf_build_begin(&snarf);
	return build;
}

static BITS_INLINE uint64_t
number_of_key(const LeadingBuild *build, FilterBytes key)
{
	if (filter_prefix_compare(key, build->numbers.shared) != 0)
		filter_fail("keys do not share what they were said to");
	return leading_number(&build->numbers, key, false);
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

/* Writes digits into a root, unless all bytes are. */
static void
put_digits(uint8_t *room, const FilterDigits *digits)
{
	uint32_t	i;

	for (i = 0; digits->kind == FILTER_DIGITS_ALPHABET && i < 4; i++)
		bits_store64(room + 8 * i, digits->of.alphabet[i]);
	if (digits->kind == FILTER_DIGITS_LOW_BITS)
	{
		memcpy(room, digits->of.low_bits.common, FILTER_DIGITS_POSITIONS);
		memcpy(room + FILTER_DIGITS_POSITIONS, digits->of.low_bits.nlow,
			   FILTER_DIGITS_POSITIONS);
	}
}

/* Reads them, if a root has any. */
static void
get_digits(FilterDigits *digits, const uint8_t *room)
{
	uint32_t	i;

	for (i = 0; digits->kind == FILTER_DIGITS_ALPHABET && i < 4; i++)
		digits->of.alphabet[i] = bits_load64(room + 8 * i);
	if (digits->kind == FILTER_DIGITS_LOW_BITS)
	{
		memcpy(digits->of.low_bits.common, room, FILTER_DIGITS_POSITIONS);
		memcpy(digits->of.low_bits.nlow, room + FILTER_DIGITS_POSITIONS,
			   FILTER_DIGITS_POSITIONS);
	}
}

/*
 * Ends the build, see leading.h.  A lossless run of numbers is not a lossless
 * run of keys.
 */
void
leading_build_end(LeadingBuild *build, FilterRun *run)
{
	uint32_t	header_len = root_header_len(&build->numbers);
	uint32_t	shared_len = build->numbers.shared.len;
	uint8_t    *snarf_root;
	uint8_t    *root;

	snarf_build_end(build->snarf, run);
	snarf_root = run->root;
	run->kind = FILTER_KIND_SNARF;
	run->nkeys = build->nkeys;
	root = filter_alloc(header_len + run->root_len);
	root[0] = LEADING_ROOT_MAGIC;
	root[1] = LEADING_ROOT_VERSION(build->numbers.digits.kind);
	bits_store16(root + 2, (uint16_t) shared_len);
	memcpy(root + LEADING_ROOT_HEADER, build->shared, shared_len);
	put_digits(root + LEADING_ROOT_HEADER + shared_len, &build->numbers.digits);
	memcpy(root + header_len, snarf_root, run->root_len);
	run->root = root;
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

/* See leading.h. */
bool
leading_open_root(const uint8_t **root, uint32_t *root_len, LeadingNumbers *numbers)
{
	const uint8_t *bytes = *root;
	FilterDigits digits;
	FilterBytes shared;
	uint32_t	header_len = LEADING_ROOT_HEADER;

	if (*root_len < header_len || bytes[0] != LEADING_ROOT_MAGIC ||
		bytes[1] < LEADING_ROOT_VERSION(FILTER_DIGITS_BYTES) ||
		bytes[1] > LEADING_ROOT_VERSION(FILTER_DIGITS_LOW_BITS))
		return false;
	memset(&digits, 0, sizeof(digits));
	digits.kind = (FilterDigitsKind) (bytes[1] - LEADING_ROOT_VERSION(0));
	shared.data = bytes + header_len;
	shared.len = bits_load16(bytes + 2);
	header_len += shared.len;
	if (digits.kind != FILTER_DIGITS_BYTES)
		header_len += LEADING_ROOT_DIGITS;
	if (header_len > *root_len)
		return false;
	get_digits(&digits, shared.data + shared.len);
	*root += header_len;
	*root_len -= header_len;
	return leading_numbers_init(numbers, shared, &digits);
}

/*
 * Turns a range of keys into a range that has the numbers of all these keys;
 * false if no key can be in it.
 */
static bool
number_range(const FilterByteRange *range, const LeadingNumbers *numbers,
			 NumberRange *result)
{
	int			side;

	result->lo = 0;
	result->hi = UINT64_MAX;
	if (!range->lo_unbounded)
	{
		if (filter_prefix_compare(range->lo, numbers->shared) > 0)
			return false;
		result->lo = leading_number(numbers, range->lo, false);
	}
	if (!range->hi_unbounded)
	{
		side = filter_prefix_compare(range->hi, numbers->shared);
		if (side < 0)
			return false;
		result->hi = leading_number(numbers, range->hi, false);
		if (side == 0 && range->hi_exclusive)
		{
			if (range->hi.len == numbers->shared.len)
				return false;
			if (leading_is_first(numbers, range->hi))
				result->hi--;
		}
	}
	return result->lo <= result->hi;
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

/* Is a key in the range?  See filter.h. */
FilterAnswer
leading_query(const uint8_t *root, uint32_t root_len, FilterReader *reader,
			  const FilterByteRange *range)
{
	LeadingNumbers numbers;
	NumberRange asked;

	if (!leading_open_root(&root, &root_len, &numbers))
		return FILTER_UNKNOWN;
	if (range_is_empty(range) || !number_range(range, &numbers, &asked))
		return FILTER_NO;
	return snarf_query(root, root_len, reader, asked.lo, asked.hi);
}

/* The ranks of the numbers of keys in the range.  See leading.h. */
bool
leading_ranks(const uint8_t *root, uint32_t root_len, FilterReader *reader,
			  const FilterByteRange *range, bool estimate, FilterRanks *ranks)
{
	LeadingNumbers numbers;
	NumberRange asked;

	if (!leading_open_root(&root, &root_len, &numbers))
		return false;
	ranks->first = ranks->end = 0;
	if (range_is_empty(range) || !number_range(range, &numbers, &asked))
		return true;
	return snarf_ranks(root, root_len, reader, asked.lo, asked.hi, estimate, ranks);
}

/* See leading.h. */
uint32_t
leading_root_pages(const uint8_t *root, uint32_t root_len)
{
	LeadingNumbers numbers;

	if (!leading_open_root(&root, &root_len, &numbers) ||
		root_len < SNARF_ROOT_HEADER)
		return 0;
	return snarf_root_pages(root, root_len, bits_load64(root + SNARF_ROOT_MIN),
							bits_load64(root + SNARF_ROOT_MAX));
}

/* See leading.h. */
bool
leading_check(const uint8_t *root, uint32_t root_len, FilterReader *reader,
			  uint64_t nkeys)
{
	LeadingNumbers numbers;
	uint64_t	nnumbers;

	return leading_open_root(&root, &root_len, &numbers) &&
		snarf_check(root, root_len, reader, &nnumbers) &&
		nnumbers <= nkeys;
}
