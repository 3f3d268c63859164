/*-------------------------------------------------------------------------
 *
 * leading_numbers.h
 *	  Byte strings as numbers: their leading 64 bits.
 *
 * The number of a key is made of the bytes behind the prefix that all keys share, as many
 * as 64 bits have room for, the first one highest.  Each byte is a digit:
 *
 *	- the byte itself; these are the next eight bytes;
 *	- or its rank in an alphabet, to the base of the alphabet's size.  Of hexadecimal
 *	  digits, sixteen are in a number;
 *	- or its low bits, of each position as many as vary among the keys; the high bits are
 *	  the same in nearly all of them.  So of a row of two small ints the number has the
 *	  bits that they use, and not the zeros above those of the second.
 *
 * Shorter keys are padded with zeros.  A byte that is not in the alphabet makes the
 * number just smaller than the next byte that is would, and ends it.  A byte with other high
 * bits ends it, too: with the least or the greatest number of what goes before it.  So any
 * string has a number, and numbers never decrease as strings increase.  Keys with the same
 * number cannot be told apart.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_LEADING_NUMBERS_H
#define RANGEFILTER_LEADING_NUMBERS_H

#include "filter/base/run.h"

/* How the keys of a run become numbers. */
typedef struct LeadingNumbers
{
	FilterBytes shared;			/* what all keys begin with */
	FilterDigits digits;
	uint32_t	ndigits;		/* of a number */
	uint32_t	radix;			/* alphabet: bytes in it, 2 to 128 */
	uint8_t		ranks[256];		/* alphabet: of the bytes in it */
	uint32_t	nbits;			/* low bits: of a number, 1 to 64 */
} LeadingNumbers;

/* What occurs in keys behind a prefix. */
typedef struct LeadingCounts
{
	uint32_t	bytes[256];		/* how often, in the first positions */
	uint32_t	nbytes;
	uint32_t	nkeys;			/* all of them */

	/*
	 * Of some keys only: those that reach to a position, and have a bit
	 * there.
	 */
	uint32_t	reach[FILTER_DIGITS_POSITIONS];
	uint32_t	ones[FILTER_DIGITS_POSITIONS][8];
} LeadingCounts;

extern void leading_count(LeadingCounts *counts, FilterBytes key,
						  uint32_t shared_len);

/*
 * The digits that suit what was counted.  Rare bytes and bits are left out: a few odd keys
 * would give partitions different digits.
 */
extern FilterDigits leading_digits(const LeadingCounts *counts);

/*
 * Sets *numbers for keys that begin with shared.  False if there are no such digits: an
 * alphabet of one byte, or of too many; no low bits, or more than eight of a byte.
 */
extern bool leading_numbers_init(LeadingNumbers *numbers, FilterBytes shared,
								 const FilterDigits *digits);

/*
 * The number of any byte string: 0 for those below all that begin with the shared prefix,
 * UINT64_MAX for those above.  Never decreases as strings increase.  With above, the greatest
 * number of strings that begin with it.
 */
extern uint64_t leading_number(const LeadingNumbers *numbers, FilterBytes key,
							   bool above);

/* The greatest number of strings that begin with the shared prefix. */
extern uint64_t leading_greatest(const LeadingNumbers *numbers);

/* Room for a string of leading_string(), behind the shared prefix. */
#define LEADING_STRING_LEN FILTER_DIGITS_POSITIONS

/*
 * Writes the string that has all digits of a number, at most the greatest, to room, which
 * begins with the shared prefix; returns its length.  Not for an alphabet.
 */
extern uint32_t leading_string(const LeadingNumbers *numbers, uint64_t number,
							   uint8_t *room);

/*
 * Do all strings that begin with the shared prefix, and are below this one that does, too,
 * have smaller numbers?  Not if it ends with the prefix or with a digit of zero, has more
 * digits than a number, or a byte that is no digit.
 */
extern bool leading_is_first(const LeadingNumbers *numbers, FilterBytes key);

#endif							/* RANGEFILTER_LEADING_NUMBERS_H */
