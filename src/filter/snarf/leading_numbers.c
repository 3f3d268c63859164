/*-------------------------------------------------------------------------
 *
 * leading_numbers.c
 *	  Byte strings as numbers: their leading 64 bits.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/base/bits.h"
#include "filter/snarf/leading_numbers.h"

#define ALL_BYTES 256
#define BYTE_BITS 8
#define NUMBER_BITS 64
#define NUMBER_BYTES 8

/*
 * What is in one of RARE keys, or fewer, is rare.  If more than MOST_SYMBOLS bytes occur,
 * rare ones included, an alphabet would save little.
 */
#define RARE 512
#define MOST_SYMBOLS 128

/* Bits are counted in one of BITS_COUNTED keys. */
#define BITS_COUNTED 4

/* Low bits are taken if they are at most LOW_BITS_EIGHTHS eighths of other digits' bits. */
#define LOW_BITS_EIGHTHS 6

/* The rank of a byte that is not in the alphabet. */
#define NO_RANK 255

/* Counts the bits of a key. */
static void
count_bits(LeadingCounts *counts, FilterBytes key, uint32_t shared_len)
{
	uint32_t	i;

	for (i = 0; i < FILTER_DIGITS_POSITIONS && shared_len + i < key.len; i++)
	{
		uint32_t	byte = key.data[shared_len + i];
		uint32_t	bit;

		counts->reach[i]++;
		for (bit = 0; bit < BYTE_BITS; bit++)
			counts->ones[i][bit] += byte >> bit & 1;
	}
}

/* See leading_numbers.h. */
void
leading_count(LeadingCounts *counts, FilterBytes key, uint32_t shared_len)
{
	uint32_t	i;

	for (i = shared_len; i < key.len && i < shared_len + FILTER_DIGITS_POSITIONS; i++)
	{
		counts->bytes[key.data[i]]++;
		counts->nbytes++;
	}
	if (counts->nkeys++ % BITS_COUNTED == 0)
		count_bits(counts, key, shared_len);
}

static uint32_t
alphabet_size(const FilterDigits *digits)
{
	const uint64_t *words = digits->of.alphabet;

	return bits_count(words[0]) + bits_count(words[1]) + bits_count(words[2]) +
		bits_count(words[3]);
}

static bool
alphabet_helps(uint32_t size)
{
	return size >= 2 && size <= MOST_SYMBOLS;
}

/* Sets the alphabet of what was counted; false if it would not help. */
static bool
choose_alphabet(FilterDigits *digits, const LeadingCounts *counts)
{
	uint32_t	nseen = 0;
	uint32_t	byte;

	memset(digits, 0, sizeof(*digits));
	digits->kind = FILTER_DIGITS_ALPHABET;
	for (byte = 0; byte < ALL_BYTES; byte++)
	{
		nseen += counts->bytes[byte] > 0;
		if (counts->bytes[byte] > counts->nbytes / RARE)
			digits->of.alphabet[byte / 64] |= UINT64_C(1) << (byte % 64);
	}
	return alphabet_helps(nseen) && alphabet_helps(alphabet_size(digits));
}

/* Sets the low bits of one position: those up to the highest one that varies. */
static void
choose_position(FilterDigits *digits, const LeadingCounts *counts, uint32_t position)
{
	uint32_t	reach = counts->reach[position];
	uint32_t	nlow = 0;
	uint32_t	common = 0;
	uint32_t	bit;

	for (bit = 0; bit < BYTE_BITS; bit++)
	{
		uint32_t	ones = counts->ones[position][bit];

		if (ones > reach / RARE && reach - ones > reach / RARE)
			nlow = bit + 1;
		common |= (uint32_t) (ones > reach / 2) << bit;
	}
	digits->of.low_bits.common[position] = (uint8_t) (common >> nlow << nlow);
	digits->of.low_bits.nlow[position] = (uint8_t) nlow;
}

/*
 * Sets the low bits of what was counted, as many as a number has room for.  Returns how
 * many there are of a byte, up to the last one that varies, or eight.
 */
static double
choose_low_bits(FilterDigits *digits, const LeadingCounts *counts)
{
	uint32_t	nbits = 0;
	uint32_t	nbytes = 0;
	uint32_t	i;

	memset(digits, 0, sizeof(*digits));
	digits->kind = FILTER_DIGITS_LOW_BITS;
	for (i = 0; i < FILTER_DIGITS_POSITIONS && counts->reach[i] > 0; i++)
	{
		uint32_t	nlow;

		choose_position(digits, counts, i);
		nlow = digits->of.low_bits.nlow[i];
		if (nbits + nlow > NUMBER_BITS)
			break;
		nbits += nlow;
		if (nlow > 0)
			nbytes = i + 1;
	}
	for (i = nbytes; i < FILTER_DIGITS_POSITIONS; i++)
		digits->of.low_bits.common[i] = digits->of.low_bits.nlow[i] = 0;
	return nbits > 0 ? (double) nbits / nbytes : BYTE_BITS;
}

/* How many digits to a base a number has room for. */
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

/* See leading_numbers.h. */
FilterDigits
leading_digits(const LeadingCounts *counts)
{
	FilterDigits alphabet;
	FilterDigits low_bits;
	FilterDigits bytes;
	bool		helps = choose_alphabet(&alphabet, counts);
	uint32_t	ndigits = helps ? digits_of(alphabet_size(&alphabet)) : NUMBER_BYTES;

	if (choose_low_bits(&low_bits, counts) <=
		(double) NUMBER_BITS / ndigits * LOW_BITS_EIGHTHS / 8)
		return low_bits;
	if (helps)
		return alphabet;
	memset(&bytes, 0, sizeof(bytes));
	return bytes;
}

static bool
init_alphabet(LeadingNumbers *numbers)
{
	uint32_t	rank = 0;
	uint32_t	i;

	numbers->radix = alphabet_size(&numbers->digits);
	if (!alphabet_helps(numbers->radix))
		return false;
	numbers->ndigits = digits_of(numbers->radix);
	memset(numbers->ranks, NO_RANK, sizeof(numbers->ranks));
	for (i = 0; i < 4; i++)
	{
		uint64_t	word = numbers->digits.of.alphabet[i];

		for (; word != 0; word &= word - 1)
			numbers->ranks[64 * i + bits_lowest(word)] = (uint8_t) rank++;
	}
	return true;
}

static bool
init_low_bits(LeadingNumbers *numbers)
{
	const uint8_t *nlow = numbers->digits.of.low_bits.nlow;
	uint32_t	i;

	numbers->nbits = numbers->ndigits = 0;
	for (i = 0; i < FILTER_DIGITS_POSITIONS; i++)
	{
		if (nlow[i] > BYTE_BITS || numbers->nbits + nlow[i] > NUMBER_BITS)
			return false;
		numbers->nbits += nlow[i];
		if (nlow[i] > 0)
			numbers->ndigits = i + 1;
	}
	return numbers->nbits > 0;
}

/* See leading_numbers.h. */
bool
leading_numbers_init(LeadingNumbers *numbers, FilterBytes shared,
					 const FilterDigits *digits)
{
	numbers->shared = shared;
	numbers->digits = *digits;
	numbers->ndigits = NUMBER_BYTES;
	return digits->kind == FILTER_DIGITS_ALPHABET ? init_alphabet(numbers) :
		digits->kind == FILTER_DIGITS_LOW_BITS ? init_low_bits(numbers) : true;
}

/* The number of bytes that are digits. */
static BITS_INLINE uint64_t
number_of_bytes(FilterBytes rest, bool above)
{
	uint64_t	number;
	uint8_t		bytes[NUMBER_BYTES] = {0};
	uint32_t	len = rest.len < NUMBER_BYTES ? rest.len : NUMBER_BYTES;

	if (len > 0)
		memcpy(bytes, rest.data, len);
	number = __builtin_bswap64(bits_load64(bytes));
	return above && len < NUMBER_BYTES ? number | UINT64_MAX >> BYTE_BITS * len : number;
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
 * A byte that is not in the alphabet becomes the digit of the next one that is, and one is
 * subtracted in the end, unless the number would then belong to other bytes before it.
 */
static uint64_t
number_of_ranks(const LeadingNumbers *numbers, FilterBytes rest, bool above)
{
	uint64_t	radix = numbers->radix;
	uint64_t	number = 0;
	uint64_t	padding = above ? radix - 1 : 0;
	uint64_t	less = 0;
	uint32_t	i;

	for (i = 0; i < rest.len && i < numbers->ndigits; i++)
	{
		uint32_t	digit = numbers->ranks[rest.data[i]];

		if (digit == NO_RANK)
		{
			digit = rank_above(numbers, rest.data[i]);
			less = digit > 0;
			padding = 0;
			rest.len = i + 1;
		}
		number = number * radix + digit;
	}
	for (; i < numbers->ndigits; i++)
		number = number * radix + padding;
	return number - less;
}

/* Compares the high bits of a byte with those of most keys. */
static BITS_INLINE int
compare_high_bits(const FilterDigits *digits, uint32_t position, uint8_t byte)
{
	uint32_t	nlow = digits->of.low_bits.nlow[position];

	return (byte >> nlow) - (digits->of.low_bits.common[position] >> nlow);
}

static uint64_t
number_of_low_bits(const LeadingNumbers *numbers, FilterBytes rest, bool above)
{
	const FilterDigits *digits = &numbers->digits;
	uint64_t	number = 0;
	uint32_t	left = numbers->nbits;
	uint32_t	i;

	for (i = 0; i < rest.len && i < numbers->ndigits; i++)
	{
		uint32_t	nlow = digits->of.low_bits.nlow[i];
		int			order = compare_high_bits(digits, i, rest.data[i]);

		if (order != 0)
			return order < 0 ? number : number | bits_mask(left);
		if (nlow > 0)
		{
			left -= nlow;
			number |= (rest.data[i] & bits_mask(nlow)) << left;
		}
	}
	return above ? number | bits_mask(left) : number;
}

/* The part of a key behind what is shared. */
static BITS_INLINE FilterBytes
behind_shared(FilterBytes key, const LeadingNumbers *numbers)
{
	FilterBytes rest = {key.data + numbers->shared.len,
	key.len - numbers->shared.len};

	return rest;
}

/* See leading_numbers.h. */
uint64_t
leading_number(const LeadingNumbers *numbers, FilterBytes key, bool above)
{
	int			side = filter_prefix_compare(key, numbers->shared);
	FilterBytes rest;

	/* Some strings that begin with it have what is shared. */
	if (above && side < 0 && filter_prefix_compare(numbers->shared, key) == 0)
		return UINT64_MAX;
	if (side != 0)
		return side < 0 ? 0 : UINT64_MAX;
	rest = behind_shared(key, numbers);
	return numbers->digits.kind == FILTER_DIGITS_ALPHABET ? number_of_ranks(numbers, rest, above) :
		numbers->digits.kind == FILTER_DIGITS_LOW_BITS ? number_of_low_bits(numbers, rest, above) :
		number_of_bytes(rest, above);
}

/* See leading_numbers.h. */
uint64_t
leading_greatest(const LeadingNumbers *numbers)
{
	return leading_number(numbers, numbers->shared, true);
}

/* See leading_numbers.h. */
uint32_t
leading_string(const LeadingNumbers *numbers, uint64_t number, uint8_t *room)
{
	const FilterDigits *digits = &numbers->digits;
	uint8_t    *rest = room + numbers->shared.len;
	uint32_t	i;

	for (i = numbers->ndigits; i-- > 0;)
	{
		bool		is_byte = digits->kind == FILTER_DIGITS_BYTES;
		uint32_t	nlow = is_byte ? BYTE_BITS : digits->of.low_bits.nlow[i];

		rest[i] = (uint8_t) (number & bits_mask(nlow));
		if (!is_byte)
			rest[i] |= digits->of.low_bits.common[i];
		number >>= nlow;
	}
	return numbers->shared.len + numbers->ndigits;
}

/* Is this byte of a key behind what is shared no digit? */
static bool
is_no_digit(const LeadingNumbers *numbers, uint32_t position, uint8_t byte)
{
	return (numbers->digits.kind == FILTER_DIGITS_ALPHABET && numbers->ranks[byte] == NO_RANK) ||
		(numbers->digits.kind == FILTER_DIGITS_LOW_BITS &&
		 compare_high_bits(&numbers->digits, position, byte) != 0);
}

/* The digit that such a byte is. */
static uint64_t
digit_of(const LeadingNumbers *numbers, uint32_t position, uint8_t byte)
{
	return numbers->digits.kind == FILTER_DIGITS_ALPHABET ? numbers->ranks[byte] :
		numbers->digits.kind == FILTER_DIGITS_LOW_BITS ?
		byte & bits_mask(numbers->digits.of.low_bits.nlow[position]) : byte;
}

/* See leading_numbers.h. */
bool
leading_is_first(const LeadingNumbers *numbers, FilterBytes key)
{
	FilterBytes rest = behind_shared(key, numbers);
	uint32_t	i;

	if (rest.len == 0 || rest.len > numbers->ndigits)
		return false;
	for (i = 0; i < rest.len; i++)
	{
		if (is_no_digit(numbers, i, rest.data[i]))
			return false;
	}
	return digit_of(numbers, rest.len - 1, rest.data[rest.len - 1]) != 0;
}
