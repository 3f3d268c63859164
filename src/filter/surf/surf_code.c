/*-------------------------------------------------------------------------
 *
 * surf_code.c
 *	  An order-preserving code, from byte strings to shorter bit strings.
 *
 * A code in a root, little-endian:
 *
 *		0	uint8	1, or 0 for the plain code, which has nothing else
 *		1	uint8	the smallest byte value that has a code
 *		2	uint16	n, how many values from there on the table has
 *		4	uint16	starts[n + 1]: of these, and of the symbol that is none
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/surf/surf_coder.h"

#define SURF_CODE_PLAIN 0
#define SURF_CODE_TABLE 1

/* Trees of symbols, while they are joined. */
typedef struct SurfTrees
{
	uint64_t	weights[SURF_SYMBOLS];	/* of the trees, in order */
	uint16_t	roots[SURF_SYMBOLS];	/* their nodes */
	uint32_t	ntrees;

	/* Nodes from n on are inner ones and have two children. */
	uint16_t	children[2 * SURF_SYMBOLS][2];
	uint32_t	nnodes;
} SurfTrees;

/* Joins trees i and i + 1, and puts the result where its weight belongs. */
static void
join_trees(SurfTrees *trees, uint32_t i)
{
	uint64_t	weight = trees->weights[i] + trees->weights[i + 1];
	uint32_t	node = trees->nnodes++;
	uint32_t	to = i;
	uint32_t	j;

	trees->children[node][0] = trees->roots[i];
	trees->children[node][1] = trees->roots[i + 1];
	trees->ntrees--;
	for (j = i + 1; j < trees->ntrees; j++)
	{
		trees->weights[j] = trees->weights[j + 1];
		trees->roots[j] = trees->roots[j + 1];
	}
	while (to > 0 && trees->weights[to - 1] < weight)
	{
		trees->weights[to] = trees->weights[to - 1];
		trees->roots[to] = trees->roots[to - 1];
		to--;
	}
	trees->weights[to] = weight;
	trees->roots[to] = (uint16_t) node;
}

/*
 * Finds the lengths of the best alphabetic code for n >= 2 symbols (Garsia and
 * Wachs, "A new algorithm for minimum cost binary trees", 1977).  Returns the
 * greatest length.
 */
static uint32_t
optimal_lengths(const uint64_t *weights, uint32_t n, uint32_t *lengths)
{
	SurfTrees	trees;
	uint32_t	depths[2 * SURF_SYMBOLS];
	uint32_t	longest = 0;
	uint32_t	node;
	uint32_t	i;

	for (i = 0; i < n; i++)
	{
		trees.weights[i] = weights[i];
		trees.roots[i] = (uint16_t) i;
	}
	trees.ntrees = n;
	trees.nnodes = n;
	while (trees.ntrees > 1)
	{
		for (i = 0; i + 2 < trees.ntrees; i++)
		{
			if (trees.weights[i] <= trees.weights[i + 2])
				break;
		}
		join_trees(&trees, i);
	}

	/*
	 * The leaves of this tree are not in order, but there is a tree with the
	 * same depths whose leaves are.
	 */
	depths[trees.nnodes - 1] = 0;
	for (node = trees.nnodes - 1; node >= n; node--)
	{
		depths[trees.children[node][0]] = depths[node] + 1;
		depths[trees.children[node][1]] = depths[node] + 1;
	}
	for (i = 0; i < n; i++)
	{
		lengths[i] = depths[i];
		if (depths[i] > longest)
			longest = depths[i];
	}
	return longest;
}

/*
 * Finds lengths of at most SURF_CODE_BITS for n symbols.  Small weights are
 * raised until no length is greater.
 */
static void
limited_lengths(const uint64_t *weights, uint32_t n, uint32_t *lengths)
{
	uint64_t	raised[SURF_SYMBOLS];
	uint64_t	total = 0;
	uint64_t	least;
	uint32_t	i;

	for (i = 0; i < n; i++)
		total += weights[i];
	least = total / 4096 + 1;
	do
	{
		for (i = 0; i < n; i++)
			raised[i] = weights[i] > least ? weights[i] : least;
		least *= 2;
	} while (optimal_lengths(raised, n, lengths) > SURF_CODE_BITS);
}

/* Makes a table, see surf_code.h. */
uint32_t
surf_code_make(const uint64_t *weights, uint8_t *out)
{
	uint64_t	used_weights[SURF_SYMBOLS];
	uint32_t	lengths[SURF_SYMBOLS];
	uint32_t	nused = 0;
	uint32_t	first = 256;
	uint32_t	nbytes = 0;
	uint32_t	start = 0;
	uint32_t	symbol;
	uint32_t	byte;

	for (symbol = 0; symbol < SURF_SYMBOLS; symbol++)
	{
		bool		is_byte = symbol != SURF_SYMBOL_END && symbol != SURF_SYMBOL_TOP;

		if (is_byte && weights[symbol] == 0)
			continue;
		used_weights[nused++] = weights[symbol];
		if (is_byte)
		{
			byte = symbol - SURF_SYMBOL_BYTE(0);
			if (first == 256)
				first = byte;
			nbytes = byte - first + 1;
		}
	}
	limited_lengths(used_weights, nused, lengths);

	out[0] = SURF_CODE_TABLE;
	out[1] = (uint8_t) first;
	bits_store16(out + 2, (uint16_t) nbytes);
	nused = 0;
	start = SURF_CODE_ONE >> lengths[nused++];
	for (byte = 0; byte < nbytes; byte++)
	{
		bits_store16(out + 4 + 2 * byte, (uint16_t) start);
		if (weights[SURF_SYMBOL_BYTE(first + byte)] > 0)
			start += SURF_CODE_ONE >> lengths[nused++];
	}
	bits_store16(out + 4 + 2 * nbytes, (uint16_t) start);
	return 4 + 2 * (nbytes + 1);
}

/* The table of the plain code. */
uint32_t
surf_code_make_plain(uint8_t *out)
{
	out[0] = SURF_CODE_PLAIN;
	return 1;
}

/* Opens a table, see surf_code.h. */
bool
surf_code_open(SurfCode *code, const uint8_t *data, uint32_t len, uint32_t *used)
{
	memset(code, 0, sizeof(SurfCode));
	if (len >= 1 && data[0] == SURF_CODE_PLAIN)
	{
		*used = 1;
		return true;
	}
	if (len < 4 || data[0] != SURF_CODE_TABLE)
		return false;
	code->first = data[1];
	code->nbytes = bits_load16(data + 2);
	code->starts = data + 4;
	*used = 4 + 2 * (code->nbytes + 1);
	return code->nbytes <= 256 && *used <= len;
}

/* Codes at least nbits bits, or all there are, see surf_code.h. */
void
surf_bits_extend(SurfBits *bits, uint32_t nbits)
{
	SurfCode	code = *bits->code;
	uint64_t   *word = &bits->words[bits->nbits / 64];
	uint32_t	used = bits->nbits % 64;
	uint32_t	total = bits->nbits;
	uint64_t	value = word[0];

	/* The current word stays in a register. */
	while (!bits->complete && total < nbits)
	{
		SurfSymbol	symbol;
		uint64_t	start;

		if (bits->next == bits->mark)
			bits->mark_bits = total;
		if (bits->next == bits->len)
		{
			/* The code of the end is zeros, as are the bits behind it. */
			bits->complete = true;
			break;
		}
		if (!surf_code_byte(&code, bits->key[bits->next], &symbol))
		{
			bits->complete = true;
			bits->between = true;
		}
		bits->next++;
		start = (uint64_t) symbol.start << (64 - SURF_CODE_BITS);
		value |= start >> used;
		used += symbol.len;
		total += symbol.len;
		if (used >= 64)
		{
			*word++ = value;
			used -= 64;
			value = start << (symbol.len - used);
		}
	}

	/* The code is followed by two words of zeros. */
	word[0] = value;
	word[1] = 0;
	word[2] = 0;
	bits->nbits = total;
}

/* Begins to code a key like another, see surf_code.h. */
void
surf_bits_begin_like(SurfBits *bits, const SurfBits *other, FilterBytes key)
{
	uint32_t	shared = other->mark_bits;

	surf_bits_begin(bits, other->code, key, UINT32_MAX);
	bits->next = other->mark;
	if (shared == UINT32_MAX)
	{
		/* The mark has not been reached: all that is coded is before it. */
		bits->next = other->next;
		shared = other->nbits;

		/* A byte without a code ends both keys' codes. */
		bits->complete = other->complete;
		bits->between = other->between;
	}
	bits->nbits = shared;
	memcpy(bits->words, other->words, (shared / 64 + 1) * sizeof(uint64_t));
	bits->words[shared / 64] &= ~(UINT64_MAX >> shared % 64);
	bits->words[shared / 64 + 1] = 0;
}

/* Are all bits from pos on zero? */
bool
surf_bits_are_zero(SurfBits *bits, uint32_t pos)
{
	surf_bits_extend(bits, UINT32_MAX);
	while (pos < bits->nbits)
	{
		if (surf_bits_peek(bits, pos) != 0)
			return false;
		pos += 64;
	}
	return true;
}

/* Begins with the empty key, see surf_coder.h. */
void
surf_coder_begin(SurfCoder *coder, const SurfCode *code)
{
	uint32_t	byte;

	memset(coder, 0, sizeof(SurfCoder));
	coder->code = *code;
	coder->least_bits = SURF_CODE_BITS;
	for (byte = 0; byte < 256; byte++)
	{
		SurfSymbol	symbol;

		coder->symbols[byte] = SURF_NO_SYMBOL;
		if (surf_code_byte(code, (uint8_t) byte, &symbol))
		{
			coder->symbols[byte] =
				(uint64_t) symbol.start << (64 - SURF_CODE_BITS) | symbol.len;
			if (symbol.len < coder->least_bits)
				coder->least_bits = symbol.len;
		}
	}
	coder->end_bits = surf_code_end(code).len;
}
