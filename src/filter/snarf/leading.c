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

/* The radix where all bytes are in the alphabet, and the bytes of a number then. */
#define ALL_BYTES 256
#define NUMBER_BYTES 8

/*
 * So many bytes behind the prefix are counted; one in RARE or fewer is rare.  If more than
 * MOST_SYMBOLS occur, rare ones included, an alphabet would save little, and all bytes count.
 */
#define ALPHABET_BYTES 16
#define RARE 512
#define MOST_SYMBOLS 128

#define ALPHABET_LEN sizeof(FilterAlphabet)

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

/* The rank of a byte that is not in the alphabet. */
#define NO_RANK 255

/* See leading.h. */
void
leading_count(LeadingCounts *counts, FilterBytes key, uint32_t shared_len)
{
	uint32_t	i;

	for (i = shared_len; i < key.len && i < shared_len + ALPHABET_BYTES; i++)
	{
		counts->bytes[key.data[i]]++;
		counts->all++;
	}
}

static uint32_t
alphabet_size(const FilterAlphabet *alphabet)
{
	return bits_count(alphabet->words[0]) + bits_count(alphabet->words[1]) +
		bits_count(alphabet->words[2]) + bits_count(alphabet->words[3]);
}

static bool
alphabet_helps(uint32_t size)
{
	return size >= 2 && size <= MOST_SYMBOLS;
}

/* See leading.h. */
FilterAlphabet
leading_alphabet(const LeadingCounts *counts)
{
	FilterAlphabet alphabet = {{0}};
	uint32_t	nseen = 0;
	uint32_t	byte;

	for (byte = 0; byte < ALL_BYTES; byte++)
	{
		nseen += counts->bytes[byte] > 0;
		if (counts->bytes[byte] > counts->all / RARE)
			alphabet.words[byte / 64] |= UINT64_C(1) << (byte % 64);
	}
	if (!alphabet_helps(nseen) || !alphabet_helps(alphabet_size(&alphabet)))
		memset(&alphabet, 0, sizeof(alphabet));
	return alphabet;
}

static bool
has_alphabet(const LeadingNumbers *numbers)
{
	return numbers->radix < ALL_BYTES;
}

/* The bytes of a root before that of its SNARF. */
static uint32_t
root_header_len(const LeadingNumbers *numbers)
{
	return LEADING_ROOT_HEADER + numbers->shared.len +
		(has_alphabet(numbers) ? ALPHABET_LEN : 0);
}

/* How many digits to a base a number of 64 bits has room for. */
static uint32_t
digits_of(uint32_t radix)
{
	uint64_t	limit = (UINT64_MAX - (radix - 1)) / radix;
	uint64_t	greatest;
	uint32_t	n = 0;

	for (greatest = 0; greatest <= limit; greatest = greatest * radix + radix - 1)
		n++;
	return n;
}

/* See leading.h. */
bool
leading_numbers_init(LeadingNumbers *numbers, FilterBytes shared,
					 const FilterAlphabet *alphabet)
{
	uint32_t	rank = 0;
	uint32_t	i;

	numbers->shared = shared;
	numbers->alphabet = *alphabet;
	numbers->radix = alphabet_size(alphabet);
	if (numbers->radix == 0)
	{
		numbers->radix = ALL_BYTES;
		numbers->ndigits = NUMBER_BYTES;
		return true;
	}
	if (!alphabet_helps(numbers->radix))
		return false;
	numbers->ndigits = digits_of(numbers->radix);
	memset(numbers->ranks, NO_RANK, sizeof(numbers->ranks));
	for (i = 0; i < 4; i++)
	{
		uint64_t	word = alphabet->words[i];

		for (; word != 0; word &= word - 1)
			numbers->ranks[64 * i + bits_lowest(word)] = (uint8_t) rank++;
	}
	return true;
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
	if (!leading_numbers_init(&build->numbers, shared, &options->alphabet))
		filter_fail("an alphabet of one byte, or of too many");
	snarf.root_max -= root_header_len(&build->numbers);
	build->snarf = snarf_build_begin(&snarf);
	return build;
}

/* The number of a key behind what is shared, where all bytes are in the alphabet. */
static BITS_INLINE uint64_t
number_of_bytes(FilterBytes key, bool above)
{
	uint64_t	number;
	uint8_t		bytes[NUMBER_BYTES] = {0};
	uint32_t	len = key.len < NUMBER_BYTES ? key.len : NUMBER_BYTES;

	if (len > 0)
		memcpy(bytes, key.data, len);
	number = __builtin_bswap64(bits_load64(bytes));
	return above && len < NUMBER_BYTES ? number | UINT64_MAX >> 8 * len : number;
}

/* The rank of the next byte above this one that is in the alphabet, or the radix. */
static uint32_t
rank_above(const LeadingNumbers *numbers, uint8_t byte)
{
	uint32_t	above = byte;

	while (++above < ALL_BYTES)
	{
		if (numbers->ranks[above] != NO_RANK)
			return numbers->ranks[above];
	}
	return numbers->radix;
}

/*
 * The number of a key behind what is shared, or the greatest one of those that begin
 * with it.
 *
 * A byte that is not in the alphabet becomes the digit of the next one that is, and one is
 * subtracted in the end, unless the number would then belong to other bytes before it.
 */
static BITS_INLINE uint64_t
number_of(const LeadingNumbers *numbers, FilterBytes key, bool above)
{
	uint64_t	radix = numbers->radix;
	uint64_t	number = 0;
	uint64_t	padding = above ? radix - 1 : 0;
	uint64_t	less = 0;
	uint32_t	i;

	if (radix == ALL_BYTES)
		return number_of_bytes(key, above);
	for (i = 0; i < key.len && i < numbers->ndigits; i++)
	{
		uint32_t	digit = numbers->ranks[key.data[i]];

		if (digit == NO_RANK)
		{
			digit = rank_above(numbers, key.data[i]);
			less = digit > 0;
			padding = 0;
			key.len = i + 1;
		}
		number = number * radix + digit;
	}
	for (; i < numbers->ndigits; i++)
		number = number * radix + padding;
	return number - less;
}

/* The part of a key behind what is shared. */
static BITS_INLINE FilterBytes
behind_shared(FilterBytes key, const LeadingNumbers *numbers)
{
	FilterBytes rest = {key.data + numbers->shared.len,
	key.len - numbers->shared.len};

	return rest;
}

static BITS_INLINE uint64_t
number_of_key(const LeadingBuild *build, FilterBytes key)
{
	const LeadingNumbers *numbers = &build->numbers;

	if (key.len < numbers->shared.len ||
		(numbers->shared.len > 0 &&
		 memcmp(key.data, build->shared, numbers->shared.len) != 0))
		filter_fail("keys do not share what they were said to");
	return number_of(numbers, behind_shared(key, numbers), false);
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
	uint32_t	header_len = root_header_len(&build->numbers);
	uint32_t	shared_len = build->numbers.shared.len;
	uint8_t    *snarf_root;
	uint8_t    *root;
	int			i;

	snarf_build_end(build->snarf, run);
	snarf_root = run->root;
	run->kind = FILTER_KIND_SNARF;
	run->nkeys = build->nkeys;
	root = filter_alloc(header_len + run->root_len);
	root[0] = LEADING_ROOT_MAGIC;
	root[1] = has_alphabet(&build->numbers) ? LEADING_ROOT_ALPHABET :
		LEADING_ROOT_VERSION;
	bits_store16(root + 2, (uint16_t) shared_len);
	memcpy(root + LEADING_ROOT_HEADER, build->shared, shared_len);
	for (i = 0; has_alphabet(&build->numbers) && i < 4; i++)
		bits_store64(root + LEADING_ROOT_HEADER + shared_len + 8 * i,
					 build->numbers.alphabet.words[i]);
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
	FilterAlphabet alphabet = {{0}};
	FilterBytes shared;
	uint32_t	header_len = LEADING_ROOT_HEADER;
	int			i;

	if (*root_len < header_len || bytes[0] != LEADING_ROOT_MAGIC ||
		(bytes[1] != LEADING_ROOT_VERSION && bytes[1] != LEADING_ROOT_ALPHABET))
		return false;
	shared.data = bytes + header_len;
	shared.len = bits_load16(bytes + 2);
	header_len += shared.len;
	if (bytes[1] == LEADING_ROOT_ALPHABET)
		header_len += ALPHABET_LEN;
	if (header_len > *root_len)
		return false;
	for (i = 0; bytes[1] == LEADING_ROOT_ALPHABET && i < 4; i++)
		alphabet.words[i] = bits_load64(shared.data + shared.len + 8 * i);
	*root += header_len;
	*root_len -= header_len;
	return leading_numbers_init(numbers, shared, &alphabet);
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

/* See leading.h. */
uint64_t
leading_number(const LeadingNumbers *numbers, FilterBytes key, bool above)
{
	int			side = side_of_shared(key, numbers->shared);

	/* Some strings that begin with it have what is shared. */
	if (above && side < 0 && key.len < numbers->shared.len &&
		memcmp(key.data, numbers->shared.data, key.len) == 0)
		return UINT64_MAX;
	if (side != 0)
		return side < 0 ? 0 : UINT64_MAX;
	return number_of(numbers, behind_shared(key, numbers), above);
}

/*
 * Do all strings below this one have smaller numbers?  rest is what is behind the shared
 * prefix.  Not if it has a zero as its last digit, more digits than a number, or a byte that
 * is not in the alphabet.
 */
static bool
is_first_of_number(const LeadingNumbers *numbers, FilterBytes rest)
{
	uint32_t	i;

	if (rest.len > numbers->ndigits)
		return false;
	if (!has_alphabet(numbers))
		return rest.data[rest.len - 1] != 0;
	for (i = 0; i < rest.len; i++)
	{
		if (numbers->ranks[rest.data[i]] == NO_RANK)
			return false;
	}
	return numbers->ranks[rest.data[rest.len - 1]] != 0;
}

/*
 * Turns a range of keys into a range that has the numbers of all these keys;
 * false if no key can be in it.
 */
static bool
number_range(const FilterByteRange *range, const LeadingNumbers *numbers,
			 NumberRange *result)
{
	FilterBytes rest;
	int			side;

	result->lo = 0;
	result->hi = UINT64_MAX;
	if (!range->lo_unbounded)
	{
		if (side_of_shared(range->lo, numbers->shared) > 0)
			return false;
		result->lo = leading_number(numbers, range->lo, false);
	}
	if (!range->hi_unbounded)
	{
		side = side_of_shared(range->hi, numbers->shared);
		if (side < 0)
			return false;
		result->hi = leading_number(numbers, range->hi, false);
		if (side == 0 && range->hi_exclusive)
		{
			rest = behind_shared(range->hi, numbers);
			if (rest.len == 0)
				return false;
			if (is_first_of_number(numbers, rest))
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
