/*-------------------------------------------------------------------------
 *
 * surf_coder.h
 *	  SuRF's builds: ascending keys, each compared with the one before and
 *	  coded from where it differs on.
 *
 * All of this is done for each key of a build, and most of what it costs are
 * branches that no processor can predict: keys are of any length, and differ
 * anywhere.  So the first 16 bytes are loaded and compared as two words
 * whatever they are, and symbols are coded four at a time, those behind the end
 * of the key as no bits at all.  And keys are gathered in batches: where one
 * step does stumble, all it needs to go on has been there for long.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SURF_CODER_H
#define RANGEFILTER_SURF_CODER_H

#include "filter/port.h"
#include "filter/surf_code.h"

/* Symbols coded at a time. */
#define SURF_CODER_STEP 4

/*
 * Codes of bytes where many are kept: the code on top, the length in the lowest
 * bits, which four codes side by side leave free.  SURF_NO_SYMBOL is for none.
 */
#define SURF_SYMBOL_LEN		UINT64_C(15)
#define SURF_NO_SYMBOL		UINT64_C(16)

/* Keys in a batch at most, and bytes. */
#define SURF_BATCH_KEYS		32
#define SURF_BATCH_BYTES	4096

/*
 * The first 16 bytes of a key, the first one lowest; zeros behind its end.  And
 * the last eight in whatever order: shorter keys have all or some bytes twice.
 */
typedef struct SurfKeyHead
{
	uint64_t	words[2];
	uint64_t	tail;			/* not for the empty key */
} SurfKeyHead;

/* Where a key of a batch is, and bytes that it shares with the one before. */
typedef struct SurfBatchKey
{
	uint32_t	offset;
	uint32_t	len;
	uint32_t	common;
	uint32_t	common_bits;	/* the bits that code these bytes, */
	uint32_t	shared;			/* and those shared; both when it is coded */
} SurfBatchKey;

/*
 * Neighbouring keys, from 1 to n, and 0, the one before; each begins at a
 * multiple of 8 bytes and takes two words at least, with zeros behind its end
 * in the last one.
 */
typedef struct SurfBatch
{
	uint32_t	n;
	uint32_t	nbytes;
	bool		any;			/* is there a key, be it the one before? */
	SurfBatchKey keys[SURF_BATCH_KEYS + 1];
	uint8_t		bytes[SURF_BATCH_BYTES + 2 * FILTER_MAX_KEY + 32];
} SurfBatch;

/* Codes keys in ascending order, each from where it differs on. */
typedef struct SurfCoder
{
	SurfCode	code;
	uint64_t	symbols[256];	/* of the bytes */
	uint32_t	end_bits;		/* of the symbol that is the end */
	uint32_t	nbits;			/* of the last key's code, without the end */

	/* Where symbols begin in the code, the end too. */
	uint16_t	starts[FILTER_MAX_KEY + 1 + SURF_CODER_STEP];

	/*
	 * Its code: the first bit is the top one of the first byte.  Zeros behind
	 * it, for as long as a suffix may be.
	 */
	uint8_t		bits[(SURF_CODE_BITS * FILTER_MAX_KEY + 7) / 8 + 256];
} SurfCoder;

/* Begins with the empty key; code->starts must outlive the coder. */
extern void surf_coder_begin(SurfCoder *coder, const SurfCode *code);

/* Reads the first 16 bytes; nothing behind the end of a key is touched. */
static BITS_INLINE SurfKeyHead
surf_key_head(FilterBytes key)
{
	const uint8_t *data = key.data;
	uint32_t	len = key.len;
	SurfKeyHead head = {{0, 0}, 0};

	if (len >= 4)
	{
		uint32_t	last = len - 4;
		uint32_t	second = last < 4 ? last : 4;
		uint32_t	third = last < 8 ? last : 8;
		uint32_t	fourth = last < 12 ? last : 12;

		/*
		 * Four bytes each.  What overlaps is shifted out, in two steps where
		 * that may be all.
		 */
		head.words[0] = bits_load32(data) |
			(uint64_t) bits_load32(data + second) << 8 * second;
		head.words[1] = (uint64_t) bits_load32(data + third) >> 4 * (8 - third) >> 4 * (8 - third) |
			((uint64_t) bits_load32(data + fourth) << 32 >> 4 * (12 - fourth) >> 4 * (12 - fourth) & UINT64_C(0xFFFFFFFF00000000));
		head.tail = bits_load32(data + last) |
			(uint64_t) bits_load32(data + last - second) << 32;
	}
	else if (len > 0)
	{
		head.words[0] = data[0] |
			(uint64_t) data[len / 2] << 8 * (len / 2) |
			(uint64_t) data[len - 1] << 8 * (len - 1);
		head.tail = data[0] * UINT64_C(0x0101010101010101);
		head.tail ^= (uint64_t) (data[0] ^ data[len / 2]) << 8 |
			(uint64_t) (data[0] ^ data[len - 1]) << 16;
	}
	return head;
}

/* The i-th word of a key that is longer than 8 * i bytes, if i > 0. */
static BITS_INLINE uint64_t
surf_key_word(FilterBytes key, uint32_t i)
{
	uint32_t	over = 8 * i + 8 > key.len ? 8 * i + 8 - key.len : 0;

	return bits_load64(key.data + 8 * i - over) >> 8 * over;
}

/*
 * Bytes that a key has in common with the one before, which is kept as in a
 * batch.
 */
static BITS_INLINE uint32_t
surf_key_common(const uint8_t *last, uint32_t last_len, FilterBytes key,
				const SurfKeyHead *head)
{
	uint32_t	max = key.len < last_len ? key.len : last_len;
	uint64_t	first = head->words[0] ^ bits_load64(last);
	uint64_t	second = head->words[1] ^ bits_load64(last + 8);
	uint64_t	differing = bits_choose(first != 0, first, second);
	uint32_t	len = (uint32_t) (first == 0) << 3;

	while (differing == 0)
	{
		len += 8;
		if (len >= max)
			return max;
		differing = surf_key_word(key, len / 8) ^ bits_load64(last + len);
	}
	len += bits_lowest(differing) / 8;
	return len < max ? len : max;
}

/*
 * Writes a key as it is kept in a batch, where its first common bytes are
 * already, or none; returns the bytes it takes.
 */
static BITS_INLINE uint32_t
surf_key_store(uint8_t *to, FilterBytes key, const SurfKeyHead *head,
			   uint32_t common)
{
	uint32_t	i = common < 16 ? 2 : common / 8;

	bits_store64(to, head->words[0]);
	bits_store64(to + 8, head->words[1]);
	for (; 8 * i < key.len; i++)
		bits_store64(to + 8 * i, surf_key_word(key, i));
	return 8 * i;
}

/* Empties a batch; there is no key before, which looks like an empty one. */
static inline void
surf_batch_begin(SurfBatch *batch)
{
	batch->n = 0;
	batch->nbytes = 16;
	batch->any = false;
	memset(&batch->keys[0], 0, sizeof(SurfBatchKey));
	memset(batch->bytes, 0, 16);
}

/* Empties a batch: the last key is now the one before. */
static inline void
surf_batch_next(SurfBatch *batch)
{
	uint32_t	offset = batch->keys[batch->n].offset;

	memmove(batch->bytes, batch->bytes + offset, batch->nbytes - offset);
	batch->nbytes -= offset;
	batch->keys[0] = batch->keys[batch->n];
	batch->keys[0].offset = 0;
	batch->n = 0;
}

/* Is there no room for another key? */
static BITS_INLINE bool
surf_batch_is_full(const SurfBatch *batch)
{
	return batch->n == SURF_BATCH_KEYS || batch->nbytes > SURF_BATCH_BYTES;
}

/*
 * Adds a key, which is at most FILTER_MAX_KEY long: false if it is the one
 * before again.
 */
static BITS_INLINE bool
surf_batch_add(SurfBatch *batch, FilterBytes key)
{
	const SurfBatchKey *last = &batch->keys[batch->n];
	SurfBatchKey *entry = &batch->keys[batch->n + 1];
	SurfKeyHead head = surf_key_head(key);
	uint32_t	common = surf_key_common(batch->bytes + last->offset, last->len,
										 key, &head);

	if (((common ^ key.len) | (common ^ last->len)) == 0 && batch->any)
		return false;
	batch->any = true;
	entry->offset = batch->nbytes;
	entry->len = key.len;
	entry->common = common;
	batch->n++;
	batch->nbytes += surf_key_store(batch->bytes + batch->nbytes, key, &head, 0);
	return true;
}

static BITS_INLINE FilterBytes
surf_batch_key(const SurfBatch *batch, uint32_t i)
{
	FilterBytes key = {batch->bytes + batch->keys[i].offset, batch->keys[i].len};

	return key;
}

/*
 * Finds how many bits key i > 0 of a batch shares with the one before, which
 * the coder has coded last.
 */
static BITS_INLINE void
surf_coder_compare(const SurfCoder *coder, SurfBatch *batch, uint32_t i)
{
	SurfBatchKey *entry = &batch->keys[i];
	uint32_t	common = entry->common;
	uint64_t	symbol = coder->symbols[batch->bytes[entry->offset + common]];
	uint64_t	before = coder->symbols[batch->bytes[entry[-1].offset + common]];

	/* Codes differ before either ends; that of the end is zeros. */
	before &= -(uint64_t) (common < entry[-1].len);
	if (common == entry->len || symbol <= (before | 31))
		filter_fail("keys are not in ascending order, or not those measured");
	entry->common_bits = coder->starts[common];
	entry->shared = entry->common_bits + 63 - bits_log2(symbol ^ before);
}

/* The symbol of byte i of a key, of no bits behind its end. */
static BITS_INLINE uint64_t
surf_coder_symbol(const SurfCoder *coder, FilterBytes key, uint32_t i)
{
	return coder->symbols[key.data[i]] & -(uint64_t) (i < key.len);
}

/* Codes a key, of which the first common bytes are those of the last one. */
static BITS_INLINE void
surf_coder_code(SurfCoder *coder, FilterBytes key, uint32_t common)
{
	uint32_t	old_end = coder->nbits / 8 + 1;
	uint32_t	total = coder->starts[common];
	uint64_t	before = coder->bits[total / 8] & ~(0xFF >> total % 8);
	uint32_t	i;

	for (i = common; i < key.len; i += SURF_CODER_STEP)
	{
		uint64_t	a = surf_coder_symbol(coder, key, i);
		uint64_t	b = surf_coder_symbol(coder, key, i + 1);
		uint64_t	c = surf_coder_symbol(coder, key, i + 2);
		uint64_t	d = surf_coder_symbol(coder, key, i + 3);
		uint32_t	b_from = (uint32_t) (a & SURF_SYMBOL_LEN);
		uint32_t	c_from = b_from + (uint32_t) (b & SURF_SYMBOL_LEN);
		uint32_t	d_from = c_from + (uint32_t) (c & SURF_SYMBOL_LEN);
		uint64_t	all = (a | b >> b_from | c >> c_from | d >> d_from) &
		~SURF_SYMBOL_LEN;
		uint8_t    *to = coder->bits + total / 8;
		uint32_t	used = total % 8;
		uint32_t	n = d_from + (uint32_t) (d & SURF_SYMBOL_LEN);

		if ((a | b | c | d) & SURF_NO_SYMBOL)
			filter_fail("a key was not there when keys were measured");
		coder->starts[i] = (uint16_t) total;
		coder->starts[i + 1] = (uint16_t) (total + b_from);
		coder->starts[i + 2] = (uint16_t) (total + c_from);
		coder->starts[i + 3] = (uint16_t) (total + d_from);
		bits_store64(to, __builtin_bswap64(before << 56 | all >> used));
		if (used + n > 64)
			to[8] = (uint8_t) (all << (8 - used));
		total += n;
		before = coder->bits[total / 8] & ~(0xFF >> total % 8);
	}
	coder->starts[key.len] = (uint16_t) total;
	coder->nbits = total;

	/* Codes are rarely much shorter than the one before. */
	coder->bits[total / 8] = (uint8_t) before;
	i = total / 8 + 1;
	bits_store64(coder->bits + i, 0);
	bits_store64(coder->bits + i + 8, 0);
	for (i += 16; i < old_end; i += 8)
		bits_store64(coder->bits + i, 0);
}

#endif							/* RANGEFILTER_SURF_CODER_H */
