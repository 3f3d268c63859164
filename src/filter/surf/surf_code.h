/*-------------------------------------------------------------------------
 *
 * surf_code.h
 *	  An order-preserving code, from byte strings to shorter bit strings.
 *
 * Each byte value that occurs in the keys, and the end of a key, is a symbol
 * with a code of its own; frequent symbols have short codes.  Codes are in the
 * order of their symbols and none is a prefix of another (an alphabetic
 * code), so bit strings compare as the keys do, the end comes before every
 * byte, and no coded key is a prefix of another coded key.  This is the
 * simplest member of the family that Zhang et al., "Order-Preserving Key
 * Compression for In-Memory Search Trees" (SIGMOD 2020) describe.
 *
 * Bit strings are padded with zeros without end.  Read as binary fractions,
 * the strings that begin with a symbol's code are an interval.  The intervals
 * of all symbols tile [0, 1): first that of the end, then those of the bytes
 * in their order, at last one that belongs to no symbol.  The code is stored
 * as a table of where intervals start, in units of 2^-15.  A byte value that
 * does not occur in keys has an empty interval.  A query with such a byte is
 * coded up to where this interval would be, and is then "between": just below
 * the strings with the same code.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SURF_CODE_H
#define RANGEFILTER_SURF_CODE_H

#include "filter/base/bits.h"
#include "filter/base/run.h"

/* The longest code, in bits. */
#define SURF_CODE_BITS 15
#define SURF_CODE_ONE (1 << SURF_CODE_BITS)

/* Symbols: the end, the 256 bytes, and the one that never occurs. */
#define SURF_SYMBOLS 258
#define SURF_SYMBOL_END 0
#define SURF_SYMBOL_BYTE(byte) ((byte) + 1)
#define SURF_SYMBOL_TOP 257

/* Bytes of the largest table in a root. */
#define SURF_CODE_MAX_SIZE (4 + 2 * 257)

/* Words for the longest coded key, and two words of zeros. */
#define SURF_BITS_WORDS ((FILTER_MAX_KEY + 1) * SURF_CODE_BITS / 64 + 3)

/* A code opened for use; starts points into its root. */
typedef struct SurfCode
{
	const uint8_t *starts;		/* of nbytes bytes and SURF_SYMBOL_TOP; NULL:
								 * plain */
	uint32_t	first;			/* the smallest byte in the table */
	uint32_t	nbytes;			/* how many bytes from there on */
} SurfCode;

/* The code of one symbol. */
typedef struct SurfSymbol
{
	uint32_t	start;			/* its bits, as a 15-bit number */
	uint32_t	len;			/* how many of them count */
} SurfSymbol;

/*
 * A key, and its code as far as it was needed.  Bit 0 is the top bit of word
 * 0.
 */
typedef struct SurfBits
{
	const SurfCode *code;
	const uint8_t *key;
	uint32_t	len;			/* of the key, in bytes */
	uint32_t	next;			/* how many symbols have been coded */
	uint32_t	nbits;
	uint32_t	mark;			/* number of a byte of the key */
	uint32_t	mark_bits;		/* where that byte's code begins; UINT32_MAX:
								 * not known yet */
	bool		complete;		/* all has been coded */
	bool		between;		/* the key is just below the strings with
								 * these bits */
	uint64_t	words[SURF_BITS_WORDS];
} SurfBits;

/*
 * Makes a table for symbols of these weights; byte values that do not occur
 * have weight 0.  out has SURF_CODE_MAX_SIZE bytes.  Returns the length.
 */
extern uint32_t surf_code_make(const uint64_t *weights, uint8_t *out);

/*
 * Makes the table of the plain code, which has 9 bits for any byte: a 1 and
 * the byte.
 */
extern uint32_t surf_code_make_plain(uint8_t *out);

/* Opens a table and sets *used to its length.  False if it is damaged. */
extern bool surf_code_open(SurfCode *code, const uint8_t *data, uint32_t len,
						   uint32_t *used);

/* Codes at least nbits bits of the key, or all of it. */
extern void surf_bits_extend(SurfBits *bits, uint32_t nbits);

/*
 * Begins to code a key whose bytes before the mark are those of another key.
 * The code of these bytes is copied as far as it is known.
 */
extern void surf_bits_begin_like(SurfBits *bits, const SurfBits *other,
								 FilterBytes key);

/* Are all bits from pos on zero?  The whole key is coded for this. */
extern bool surf_bits_are_zero(SurfBits *bits, uint32_t pos);

/* The code of the end of a key: zeros. */
static BITS_INLINE SurfSymbol
surf_code_end(const SurfCode *code)
{
	uint32_t	width = code->starts == NULL ? SURF_CODE_ONE / 2 :
	bits_load16(code->starts);
	SurfSymbol	result;

	result.start = 0;
	result.len = width == 0 ? SURF_CODE_BITS :
		SURF_CODE_BITS - bits_lowest(width);
	return result;
}

/*
 * The code of a byte.  False for one that does not occur: then start is where
 * it would be.
 */
static BITS_INLINE bool
surf_code_byte(const SurfCode *code, uint8_t byte, SurfSymbol *symbol)
{
	uint32_t	i = byte - code->first;
	uint32_t	width;

	if (code->starts == NULL)
	{
		symbol->start = SURF_CODE_ONE / 2 | (uint32_t) byte << 6;
		symbol->len = 9;
		return true;
	}
	symbol->len = SURF_CODE_BITS;
	if (byte < code->first || i >= code->nbytes)
	{
		i = byte < code->first ? 0 : code->nbytes;
		symbol->start = bits_load16(code->starts + 2 * i) & (SURF_CODE_ONE - 1);
		return false;
	}
	symbol->start = bits_load16(code->starts + 2 * i) & (SURF_CODE_ONE - 1);
	width = bits_load16(code->starts + 2 * i + 2) - symbol->start;
	if (width == 0)
		return false;
	symbol->len -= bits_lowest(width | SURF_CODE_ONE);
	return true;
}

/*
 * Begins to code a key, which must outlive bits.  If mark is the number of one
 * of its bytes, mark_bits will be set to the length of the code before it.
 */
static BITS_INLINE void
surf_bits_begin(SurfBits *bits, const SurfCode *code, FilterBytes key,
				uint32_t mark)
{
	bits->code = code;
	bits->key = key.data;
	bits->len = key.len;
	bits->next = 0;
	bits->nbits = 0;
	bits->mark = mark;
	bits->mark_bits = UINT32_MAX;
	bits->complete = false;
	bits->between = false;
	bits->words[0] = 0;
	bits->words[1] = 0;
}

/*
 * The 64 bits from pos on, the first one on top.  Bits behind the end of the
 * key's code are zero.
 */
static BITS_INLINE uint64_t
surf_bits_peek(SurfBits *bits, uint32_t pos)
{
	const uint64_t *word = &bits->words[pos / 64];
	uint32_t	skip = pos % 64;

	if (pos + 64 > bits->nbits)
	{
		if (!bits->complete)
			surf_bits_extend(bits, pos + 64);
		if (pos >= bits->nbits)
			return 0;
	}
	return word[0] << skip | (word[1] >> 1) >> (63 - skip);
}

#endif							/* RANGEFILTER_SURF_CODE_H */
