/*-------------------------------------------------------------------------
 *
 * digest_numbers.c
 *	  How keys become the numbers of digests.
 *
 * Strings of SuRFs are coded first, by an order-preserving code of a SuRF
 * (surf_code.h).  Behind what they share, the first 64 bits of their code are a
 * number.  A byte that has no code is just below the next one that has, and ends the
 * number.  So any code can be used for any string.
 *
 * These numbers are not spread evenly, as buckets should find them: a code knows how
 * often a byte occurs, but not after which others.  So they are spread by knots,
 * which are numbers of a sample: knot number i becomes i * 2^16, and numbers between
 * two knots are interpolated.  No step ever decreases as strings increase.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <stdlib.h>
#include <string.h>

#include "filter/base/bits.h"
#include "filter/snarf/digest.h"
#include "filter/snarf/leading.h"
#include "filter/surf/surf.h"
#include "filter/surf/surf_code.h"

/* Numbers from one knot to the next: 2^KNOT_BITS. */
#define KNOT_BITS 16

/* The knots that are loaded at once, at the end of a search. */
#define NEAR_KNOTS 64

/* A sample that is being taken. */
typedef struct Sample
{
	const FilterNumbers *numbers;
	uint32_t	stride;
	uint32_t	nleaves;		/* so far */
	uint64_t   *samples;
	uint32_t	n;
	uint32_t	max;
	uint32_t	hash_bits;		/* that all leaves have */
} Sample;

/* See digest.h. */
bool
filter_numbers_of(FilterNumbers *numbers, FilterKind kind, const uint8_t *root,
				  uint32_t root_len)
{
	LeadingNumbers leading;

	memset(numbers, 0, sizeof(*numbers));
	if (kind == FILTER_KIND_SURF)
	{
		FilterBytes bytes;

		numbers->of_bytes = numbers->coded = true;
		if (!surf_root_code(root, root_len, &bytes) ||
			bytes.len > FILTER_NUMBERS_CODE)
			return false;
		memcpy(numbers->code, bytes.data, bytes.len);
		numbers->max_key = (uint16_t) surf_root_max_key(root);
		return true;
	}
	numbers->of_bytes = leading_is_root(root, root_len);
	if (!numbers->of_bytes)
		return kind == FILTER_KIND_SNARF || kind == FILTER_KIND_EXACT;
	if (kind != FILTER_KIND_SNARF ||
		!leading_open_root(&root, &root_len, &leading) ||
		leading.shared.len > FILTER_DIGEST_SHARED)
		return false;
	numbers->shared_len = (uint8_t) leading.shared.len;
	if (leading.shared.len > 0)
		memcpy(numbers->shared, leading.shared.data, leading.shared.len);
	numbers->digits = leading.digits;
	return true;
}

/* See digest.h. */
bool
filter_numbers_same(const FilterNumbers *a, const FilterNumbers *b)
{
	return a->shared_len == b->shared_len &&
		memcmp(a->shared, b->shared, a->shared_len) == 0 &&
		a->digits.kind == b->digits.kind &&
		memcmp(&a->digits.of, &b->digits.of, sizeof(a->digits.of)) == 0;
}

/* See digest.h. */
bool
filter_numbers_suit(const FilterNumbers *of_run, const FilterNumbers *of_digest)
{
	if (of_run->of_bytes != of_digest->of_bytes ||
		of_run->coded != of_digest->coded)
		return false;
	if (of_run->coded)
		return of_digest->hash_bits == 0 || of_run->max_key == of_digest->max_key;
	return filter_numbers_same(of_run, of_digest) ||
		(of_run->of_bytes && of_run->digits.kind != FILTER_DIGITS_ALPHABET &&
		 of_digest->digits.kind != FILTER_DIGITS_ALPHABET &&
		 of_run->shared_len >= of_digest->shared_len &&
		 memcmp(of_run->shared, of_digest->shared, of_digest->shared_len) == 0);
}

/* How many low bits two bytes do not share: up to the highest one that differs. */
static uint32_t
differing_bits(uint8_t a, uint8_t b)
{
	return bits_width((uint64_t) (a ^ b));
}

/* A byte of the keys that numbers are made of: what is common to all, and the low bits. */
static uint32_t
byte_at(const FilterNumbers *numbers, uint32_t position, uint8_t *common)
{
	uint32_t	digit = position - numbers->shared_len;

	if (position < numbers->shared_len)
	{
		*common = numbers->shared[position];
		return 0;
	}
	*common = 0;
	if (numbers->digits.kind == FILTER_DIGITS_BYTES || digit >= FILTER_DIGITS_POSITIONS)
		return 8;
	*common = numbers->digits.of.low_bits.common[digit];
	return numbers->digits.of.low_bits.nlow[digit];
}

/* Sets the low bits of one position to what two numbers have there; returns how many. */
static uint32_t
merge_position(FilterDigits *digits, uint32_t digit, const FilterNumbers *a,
			   const FilterNumbers *b, uint32_t position)
{
	uint8_t		common;
	uint8_t		other;
	uint32_t	nlow = byte_at(a, position, &common);
	uint32_t	other_nlow = byte_at(b, position, &other);
	uint32_t	differing = differing_bits(common, other);

	nlow = nlow > other_nlow ? nlow : other_nlow;
	nlow = nlow > differing ? nlow : differing;
	digits->of.low_bits.nlow[digit] = (uint8_t) nlow;
	digits->of.low_bits.common[digit] = (uint8_t) (common >> nlow << nlow);
	return nlow;
}

/* See digest.h. */
bool
filter_numbers_merge(FilterNumbers *numbers, const FilterNumbers *others)
{
	FilterBytes shared = {numbers->shared, numbers->shared_len};
	FilterBytes others_shared = {others->shared, others->shared_len};
	FilterDigits digits;
	uint32_t	shared_len;
	uint32_t	nbits = 0;
	uint32_t	i;

	if (!numbers->of_bytes || !others->of_bytes || numbers->coded || others->coded ||
		numbers->digits.kind == FILTER_DIGITS_ALPHABET ||
		others->digits.kind == FILTER_DIGITS_ALPHABET)
		return false;
	if (filter_numbers_same(numbers, others))
		return true;
	shared_len = filter_common_prefix(shared, others_shared);
	memset(&digits, 0, sizeof(digits));
	digits.kind = FILTER_DIGITS_LOW_BITS;
	for (i = 0; i < FILTER_DIGITS_POSITIONS; i++)
	{
		nbits += merge_position(&digits, i, numbers, others, shared_len + i);
		if (nbits > 64)
			break;
	}
	for (; i < FILTER_DIGITS_POSITIONS; i++)
		digits.of.low_bits.common[i] = digits.of.low_bits.nlow[i] = 0;
	numbers->digits = digits;
	memset(numbers->shared + shared_len, 0, FILTER_DIGEST_SHARED - shared_len);
	numbers->shared_len = (uint8_t) shared_len;
	return true;
}

/*
 * The first 64 bits of the code of a string.  With above, the greatest that those
 * have that begin with it.
 */
static uint64_t
code_number(const FilterNumbers *numbers, FilterBytes key, bool above)
{
	SurfCode	code;
	uint32_t	used;
	uint64_t	number = 0;
	uint32_t	nbits = 0;
	uint32_t	i;

	(void) surf_code_open(&code, numbers->code, FILTER_NUMBERS_CODE, &used);
	for (i = 0; i < key.len && nbits < 64; i++)
	{
		SurfSymbol	symbol;
		bool		has_code = surf_code_byte(&code, key.data[i], &symbol);

		number |= (uint64_t) symbol.start << (64 - SURF_CODE_BITS) >> nbits;
		if (!has_code)
			return number;
		nbits += symbol.len;
	}
	return above && nbits < 64 ? number | UINT64_MAX >> nbits : number;
}

/* Spreads a number by the knots. */
static uint64_t
spread(const FilterNumbers *numbers, uint64_t number)
{
	const uint64_t *knots = numbers->knots;
	uint32_t	base = 0;
	uint32_t	n = numbers->nknots;
	uint64_t	gap;
	unsigned	dropped;
	uint32_t	i;

	if (n == 0)
		return number;
	while (n > NEAR_KNOTS)
	{
		uint32_t	half = n / 2;

		base += knots[base + half] <= number ? half : 0;
		n -= half;
	}
	for (i = 0; i < n; i += 8)
		__builtin_prefetch(&knots[base + i]);
	while (n > 1)
	{
		uint32_t	half = n / 2;

		base += knots[base + half] <= number ? half : 0;
		n -= half;
	}
	gap = (base + 1 < numbers->nknots ? knots[base + 1] - 1 : UINT64_MAX) - knots[base];
	dropped = gap >> (63 - KNOT_BITS) == 0 ? 0 :
		bits_log2(gap) - (63 - KNOT_BITS) + 1;
	return (uint64_t) base << KNOT_BITS |
		((number - knots[base]) >> dropped << KNOT_BITS) / ((gap >> dropped) + 1);
}

/*
 * The number of a string, or the greatest of those that begin with it.  Strings
 * below all those with the shared prefix have the least number, those above the
 * greatest.
 */
static uint64_t
number_of(const FilterNumbers *numbers, FilterBytes key, bool above)
{
	FilterBytes shared = {numbers->shared, numbers->shared_len};
	int			order = filter_prefix_compare(key, shared);
	uint64_t	number;

	if (order < 0 && above && filter_prefix_compare(shared, key) == 0)
		order = 1;
	if (order != 0)
		number = order < 0 ? 0 : UINT64_MAX;
	else
	{
		key.data += shared.len;
		key.len -= shared.len;
		number = code_number(numbers, key, above);
	}
	return spread(numbers, number);
}

/* The number by leading bits of a string, or the greatest of those that begin with it. */
static uint64_t
leading_number_of(const FilterNumbers *numbers, FilterBytes key, bool above)
{
	FilterBytes shared = {numbers->shared, numbers->shared_len};
	LeadingNumbers leading;

	(void) leading_numbers_init(&leading, shared, &numbers->digits);
	return leading_number(&leading, key, above);
}

/* See digest.h. */
uint64_t
filter_number(const FilterNumbers *numbers, FilterBytes key)
{
	return numbers->coded ? number_of(numbers, key, false) :
		leading_number_of(numbers, key, false);
}

/* See digest.h. */
uint64_t
filter_number_above(const FilterNumbers *numbers, FilterBytes key)
{
	return numbers->coded ? number_of(numbers, key, true) :
		leading_number_of(numbers, key, true);
}

/* See digest.h. */
uint32_t
filter_hash_bits(const FilterNumbers *numbers, FilterBytes key)
{
	if (numbers->hash_bits == 0)
		return 0;
	if (key.len > numbers->max_key)
		key.len = numbers->max_key;
	return (uint32_t) (surf_hash(key) >> (64 - numbers->hash_bits));
}

/* Takes a leaf's least number.  See surf_visit(). */
static bool
sample_leaf(void *arg, const SurfLeafKeys *leaf)
{
	Sample	   *sample = arg;

	if (leaf->hash.nbits < sample->hash_bits)
		sample->hash_bits = leaf->hash.nbits;
	if (sample->nleaves++ % sample->stride == 0 && sample->n < sample->max)
		sample->samples[sample->n++] = filter_number(sample->numbers, leaf->low);
	return true;
}

/* See digest.h. */
uint32_t
filter_numbers_sample(const FilterNumbers *numbers, const uint8_t *root,
					  uint32_t root_len, FilterReader *reader, uint32_t pageno,
					  uint32_t stride, uint64_t *samples, uint32_t max,
					  uint8_t *hash_bits)
{
	Sample		sample = {numbers, stride, 0, samples, 0, max, *hash_bits};

	(void) surf_visit(root, root_len, reader, pageno, sample_leaf, &sample);
	*hash_bits = (uint8_t) sample.hash_bits;
	return sample.n;
}

/* See digest.h. */
void
filter_numbers_set_knots(FilterNumbers *numbers, uint64_t *samples, uint32_t n,
						 uint32_t nknots)
{
	uint32_t	last = 0;		/* the knot set last */
	uint32_t	i;

	qsort(samples, n, sizeof(uint64_t), bits_compare64);
	samples[0] = 0;
	for (i = 1; i < nknots && i < n; i++)
	{
		uint64_t	sample = samples[nknots < n ? (uint64_t) i * n / nknots : i];

		if (sample > samples[last])
			samples[++last] = sample;
	}
	numbers->knots = samples;
	numbers->nknots = last + 1;
}

/* See digest.h. */
void
filter_digests_keep_knots(FilterDigest *buckets, uint64_t *rows)
{
	FilterNumbers *numbers = &buckets->numbers;

	if (numbers->nknots > 0)
		numbers->knots = memcpy(rows + filter_digests_words(buckets->nbits),
								numbers->knots,
								numbers->nknots * sizeof(uint64_t));
}
