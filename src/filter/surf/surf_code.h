/*-------------------------------------------------------------------------
 *
 * surf_code.h
 *	  An order-preserving code: byte strings to shorter bit strings.
 *
 * Each byte value that occurs in the keys, and the end of a key, is a symbol
 * with a code of its own; frequent symbols have short codes.  Codes are in the
 * order of their symbols and none is a prefix of another (an alphabetic
 * code), so bit strings compare as the keys do, the end comes before every
 * byte, and no coded key is a prefix of another coded key.  This is the
 * simplest member of the family that Zhang et al., "Order-Preserving Key
 * Compression for In-Memory Search Trees" (SIGMOD 2020) describe.
 *
 * Bit strings are padded with zeros without end.  Seen as binary fractions,
 * the code of a symbol is an interval, and the intervals of all symbols tile
 * [0, 1): first that of the end, then those of the bytes in their order, at
 * last one that belongs to no symbol.  A table of where intervals start, in
 * units of 2^-15, is all there is.  A byte value that does not occur
 * has an empty interval; a query that holds one is coded up to where that
 * would be and is then "between": just below what has the same code.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SURF_CODE_H
#define RANGEFILTER_SURF_CODE_H

#include "filter/base/bits.h"
#include "filter/base/run.h"

/* No code is longer, in bits. */
#define SURF_CODE_BITS 15
#define SURF_CODE_ONE (1 << SURF_CODE_BITS)

/* Symbols: the end, the 256 bytes, and the one that never occurs. */
#define SURF_SYMBOLS 258
#define SURF_SYMBOL_END 0
#define SURF_SYMBOL_BYTE(byte) ((byte) + 1)
#define SURF_SYMBOL_TOP 257

/* Bytes of the largest table in a root. */
#define SURF_CODE_MAX_SIZE (4 + 2 * 257)

/* Words that hold the longest coded key, with two of zeros behind. */
#define SURF_BITS_WORDS ((FILTER_MAX_KEY + 1) * SURF_CODE_BITS / 64 + 3)

/* A code opened for use; starts points into its root. */
typedef struct SurfCode
{
	const uint8_t *starts;		/* of nbytes bytes and the top; NULL: plain */
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
 * A key and its code as far as it has been needed yet.  Word 0's top bit is
 * bit 0.
 */
typedef struct SurfBits
{
	const SurfCode *code;
	const uint8_t *key;
	uint32_t	len;			/* of the key, in bytes */
	uint32_t	next;			/* how many symbols have been coded */
	uint32_t	nbits;
	uint32_t	mark;			/* this symbol has been or will be coded ... */
	uint32_t	mark_bits;		/* ... from this bit on, if not UINT32_MAX */
	bool		complete;		/* all has been coded */
	bool		between;		/* the key is just below what the bits say */
	uint64_t	words[SURF_BITS_WORDS];
} SurfBits;

/*
 * Makes a table for symbols of these weights; 0 is for byte values that do
 * not occur.  out has SURF_CODE_MAX_SIZE bytes; returns the length.
 */
extern uint32_t surf_code_make(const uint64_t *weights, uint8_t *out);

/* The table of a code that needs none: 1 bit and 8 more for any byte. */
extern uint32_t surf_code_make_plain(uint8_t *out);

/* Opens a table; false where the bytes cannot be one.  Sets its length. */
extern bool surf_code_open(SurfCode *code, const uint8_t *data, uint32_t len,
						   uint32_t *used);

/* Codes at least so many bits of the key, or all of it. */
extern void surf_bits_extend(SurfBits *bits, uint32_t nbits);

/*
 * Begins to code a key whose first bytes, up to the mark, are those of
 * another: what has been coded of them is copied.
 */
extern void surf_bits_begin_like(SurfBits *bits, const SurfBits *other,
								 FilterBytes key);

/* Are all bits from pos on zero?  Codes the whole key. */
extern bool surf_bits_are_zero(SurfBits *bits, uint32_t pos);

/* Length of the longest common prefix of two byte strings. */
extern uint32_t surf_common_prefix(FilterBytes a, FilterBytes b);

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
 * The code of a byte.  False for one that does not occur: start is then where
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
 * Begins to code a key, which must outlive bits.  If mark is a number of its
 * bytes, it will be noted how many bits these take.
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
 * The 64 bits from pos on, the first one on top.  Those past the end of what
 * has been coded are zero.
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
