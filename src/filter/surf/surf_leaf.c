/*-------------------------------------------------------------------------
 *
 * surf_leaf.c
 *	  The strings that SuRF's leaves stand for.
 *
 * A leaf tells the first bits of its keys' code.  They are decoded symbol by
 * symbol.  If the last symbol is not complete, its bits are the beginning of the
 * codes of several symbols, which follow each other.  The least and the greatest
 * of them end the least and the greatest string.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/surf/surf_leaf.h"

/* Symbols are looked up by their first FIRST_BITS bits, and are near then. */
#define FIRST_BITS 8

/* Leaves as they are decoded. */
typedef struct LeafDecoder
{
	SurfVisitLeaf visit;
	void	   *arg;
	uint32_t	max_key;

	/* The symbols in order: where their codes begin, and how long they are. */
	uint32_t	nsymbols;
	uint16_t	starts[SURF_SYMBOLS + 1];	/* the last one is above all */
	uint8_t		lens[SURF_SYMBOLS];
	uint16_t	symbols[SURF_SYMBOLS];

	/* The place of the symbol that has, or is just below, these first bits. */
	uint16_t	firsts[1 << FIRST_BITS];

	/* What both strings have in common: the page's prefix, and behind it. */
	uint32_t	prefix_len;
	uint32_t	len;
	uint8_t		low[FILTER_MAX_KEY + 1];
	uint8_t		high[FILTER_MAX_KEY + 1];
	uint32_t	ends[FILTER_MAX_KEY];	/* where the code of each byte ends */
} LeafDecoder;

static void
add_symbol(LeafDecoder *decoder, uint32_t symbol, SurfSymbol code)
{
	decoder->starts[decoder->nsymbols] = (uint16_t) code.start;
	decoder->lens[decoder->nsymbols] = (uint8_t) code.len;
	decoder->symbols[decoder->nsymbols++] = (uint16_t) symbol;
}

/* Lists the symbols of a code. */
static void
list_symbols(LeafDecoder *decoder, const SurfCode *code)
{
	SurfSymbol	found;
	uint32_t	byte;
	uint32_t	first;
	uint32_t	i;

	decoder->nsymbols = 0;
	add_symbol(decoder, SURF_SYMBOL_END, surf_code_end(code));
	for (byte = 0; byte < 256; byte++)
		if (surf_code_byte(code, (uint8_t) byte, &found))
			add_symbol(decoder, SURF_SYMBOL_BYTE(byte), found);
	if (code->starts != NULL)
	{
		found.start = bits_load16(code->starts + 2 * code->nbytes) & (SURF_CODE_ONE - 1);
		found.len = SURF_CODE_BITS;
		add_symbol(decoder, SURF_SYMBOL_TOP, found);
	}
	decoder->starts[decoder->nsymbols] = SURF_CODE_ONE;
	for (i = 0, first = 0; first < 1 << FIRST_BITS; first++)
	{
		while (decoder->starts[i + 1] <= first << (SURF_CODE_BITS - FIRST_BITS))
			i++;
		decoder->firsts[first] = (uint16_t) i;
	}
}

/* The place of the symbol whose code is at or below 15 bits of code. */
static BITS_INLINE uint32_t
find_symbol(const LeafDecoder *decoder, uint32_t bits)
{
	uint32_t	i = decoder->firsts[bits >> (SURF_CODE_BITS - FIRST_BITS)];

	while (decoder->starts[i + 1] <= bits)
		i++;
	return i;
}

/* The 15 bits of the path from pos on; zeros follow its end. */
static uint32_t
peek_path(const SurfPath *path, uint32_t pos)
{
	uint32_t	skip = pos % 64;
	uint32_t	rest = path->nbits - pos;
	const uint64_t *word = &path->words[pos / 64];
	uint64_t	bits = word[0] << skip;

	if (skip > 64 - SURF_CODE_BITS)
		bits |= word[1] >> (64 - skip);
	if (rest < SURF_CODE_BITS)
		bits &= ~(UINT64_MAX >> rest);
	return (uint32_t) (bits >> (64 - SURF_CODE_BITS));
}

/*
 * The string that ends with a symbol behind the bytes in common.  Of the end and of
 * what is above all bytes nothing is added.
 */
static FilterBytes
string_with(const LeafDecoder *decoder, uint8_t *bytes, uint32_t symbol)
{
	FilterBytes result = {bytes, decoder->len};

	if (symbol != SURF_SYMBOL_END && symbol != SURF_SYMBOL_TOP)
		bytes[result.len++] = (uint8_t) (symbol - SURF_SYMBOL_BYTE(0));
	return result;
}

/*
 * Visits the leaf whose bytes in common are decoded.  The symbol behind them is
 * one of those with 15 bits of code from least to greatest.
 */
static bool
visit_strings(LeafDecoder *decoder, uint32_t least, uint32_t greatest, SurfLeafHash hash)
{
	uint32_t	first = decoder->symbols[find_symbol(decoder, least)];
	uint32_t	last = decoder->symbols[find_symbol(decoder, greatest)];
	SurfLeafKeys leaf = {.hash = hash};

	leaf.low = string_with(decoder, decoder->low, first);
	leaf.high = string_with(decoder, decoder->high, last);
	leaf.above = last != SURF_SYMBOL_END || decoder->len >= decoder->max_key;
	return decoder->visit(decoder->arg, &leaf);
}

/* Visits the leaf with a path. */
static bool
visit_path(void *arg, const SurfPath *path)
{
	LeafDecoder *decoder = arg;
	uint32_t	pos = 0;

	/* Bytes whose bits are those of the leaf before stay. */
	while (decoder->len > decoder->prefix_len &&
		   decoder->ends[decoder->len - decoder->prefix_len - 1] > path->same)
		decoder->len--;
	if (decoder->len > decoder->prefix_len)
		pos = decoder->ends[decoder->len - decoder->prefix_len - 1];
	for (;;)
	{
		uint32_t	bits = peek_path(path, pos);
		uint32_t	i = find_symbol(decoder, bits);
		uint32_t	rest = path->nbits - pos;

		if (decoder->lens[i] > rest)
			return visit_strings(decoder, bits, bits | (SURF_CODE_ONE - 1) >> rest, path->hash);
		if (decoder->symbols[i] == SURF_SYMBOL_END ||
			decoder->symbols[i] == SURF_SYMBOL_TOP)
			return visit_strings(decoder, bits, bits, path->hash);
		if (decoder->len >= FILTER_MAX_KEY)
			return false;
		pos += decoder->lens[i];
		decoder->ends[decoder->len - decoder->prefix_len] = pos;
		decoder->low[decoder->len] = decoder->high[decoder->len] =
			(uint8_t) (decoder->symbols[i] - SURF_SYMBOL_BYTE(0));
		decoder->len++;
	}
}

/* See surf_leaf.h. */
bool
surf_leaf_visit(const SurfPage *page, FilterSuffix kind, const SurfCode *code,
				uint32_t max_key, SurfVisitLeaf visit, void *arg)
{
	LeafDecoder decoder;

	if (page->prefix.len > FILTER_MAX_KEY)
		return false;
	decoder.visit = visit;
	decoder.arg = arg;
	decoder.max_key = max_key;
	list_symbols(&decoder, code);
	decoder.prefix_len = decoder.len = page->prefix.len;
	memcpy(decoder.low, page->prefix.data, page->prefix.len);
	memcpy(decoder.high, page->prefix.data, page->prefix.len);
	return surf_page_visit(page, kind, visit_path, &decoder);
}
