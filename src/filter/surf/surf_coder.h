/*-------------------------------------------------------------------------
 *
 * surf_coder.h
 *	  SuRF's builds: comparing each key with the one before, and coding it from
 *	  where it differs on.
 *
 * This is done for each key of a build.  Most of the time goes into branches
 * that no processor can predict: keys are of any length, and differ anywhere.
 * So the first 16 bytes are always loaded and compared as two words.  Eight
 * symbols are always coded at a time, also those behind the end of the key,
 * whose bits are not used.  And keys are gathered in batches, so that the data
 * of the next keys are there when a branch was mispredicted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SURF_CODER_H
#define RANGEFILTER_SURF_CODER_H

#include "filter/base/port.h"
#include "filter/surf/surf_code.h"

/* Symbols that are coded at a time: of long codes, and of others. */
#define SURF_CODER_STEP 4
#define SURF_CODER_WIDE 8

/*
 * A table of the codes of bytes has words with the code in the top bits and
 * the length in the lowest bits.  SURF_NO_SYMBOL is for a byte without a code:
 * it shifts nothing, but a sum of lengths that contains it is greater than any
 * other.  Codes of up to SURF_CODER_BITS bits in all can be put together in
 * one word, although words have lengths in them.
 */
#define SURF_SYMBOL_LEN		UINT64_C(8191)
#define SURF_NO_SYMBOL		UINT64_C(4096)
#define SURF_CODER_BITS		60

/* The most keys in a batch, and about the most bytes. */
#define SURF_BATCH_KEYS		32
#define SURF_BATCH_BYTES	4096

/*
 * The first 16 bytes of a key, the first one lowest, with zeros behind its
 * end; and the last eight bytes in any order.  Of shorter keys some bytes are
 * in tail twice.
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
	uint16_t	len;
	uint16_t	common;
	uint16_t	shared;			/* bits shared with it, once the key is coded */
	uint16_t	nbits;			/* bits of its code, without the end */
} SurfBatchKey;

/*
 * Neighbouring keys, with numbers from 1 to n; 0 is the one before.  Each
 * begins at a multiple of 8 bytes and takes at least two words, with zeros
 * behind its end.
 */
typedef struct SurfBatch
{
	uint32_t	n;
	uint32_t	nbytes;
	bool		any;			/* there is a key, or one before */
	SurfBatchKey keys[SURF_BATCH_KEYS + 2]; /* the last entry is not a key */
	uint8_t		bytes[SURF_BATCH_BYTES + 2 * FILTER_MAX_KEY + 64];
} SurfBatch;

/* Codes keys in ascending order, each from where it differs on. */
typedef struct SurfCoder
{
	SurfCode	code;
	uint64_t	symbols[256];	/* of the bytes */
	uint32_t	least_bits;		/* the shortest of these codes */
	uint32_t	end_bits;		/* of the code of the end */
	uint32_t	nbits;			/* of the last key's code, without the end */

	/* Where symbols begin in the last key's code, and where it ends. */
	uint16_t	starts[FILTER_MAX_KEY + 1 + SURF_CODER_WIDE];
} SurfCoder;

/* Begins with the empty key; code->starts must outlive the coder. */
extern void surf_coder_begin(SurfCoder *coder, const SurfCode *code);

/* A key of less than four bytes as a number, the first byte lowest. */
static BITS_INLINE uint32_t
surf_key_short(FilterBytes key)
{
	const uint8_t *data = key.data;
	uint32_t	len = key.len;

	return len == 0 ? 0 : data[0] |
		(uint32_t) data[len / 2] << 8 * (len / 2) |
		(uint32_t) data[len - 1] << 8 * (len - 1);
}

/* Reads the head of a key.  Reads nothing behind the key's end. */
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
		 * Four loads of four bytes each.  Overlapping bytes are shifted out,
		 * in two steps if it may be all of them.
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
		head.words[0] = surf_key_short(key);
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
 * How many bytes a key shares with the one before, which is stored as in a
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
 * Stores a key as in a batch.  The first common bytes may be there already.
 */
static BITS_INLINE void
surf_key_store(uint8_t *to, FilterBytes key, const SurfKeyHead *head,
			   uint32_t common)
{
	uint32_t	i = common < 16 ? 2 : common / 8;

	bits_store64(to, head->words[0]);
	bits_store64(to + 8, head->words[1]);
	for (; 8 * i < key.len; i++)
		bits_store64(to + 8 * i, surf_key_word(key, i));
}

/* Empties a batch.  There is no key before; it is stored as an empty one. */
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
 * Adds the entry of a key that shares "common" bytes with the last one.  False
 * if both are equal.
 */
static BITS_INLINE bool
surf_batch_put(SurfBatch *batch, SurfBatchKey *last, uint32_t len,
			   uint32_t common)
{
	if (((common ^ len) | (common ^ last->len)) == 0 && batch->any)
		return false;
	batch->any = true;
	last[1].offset = batch->nbytes;
	last[1].len = (uint16_t) len;
	last[1].common = (uint16_t) common;
	batch->n++;
	batch->nbytes += (len > 16 ? len + 7 : 16) & ~7u;
	return true;
}

/*
 * Adds a key of at most FILTER_MAX_KEY bytes.  False if it is equal to the one
 * before.
 */
static BITS_INLINE bool
surf_batch_add(SurfBatch *batch, FilterBytes key)
{
	SurfBatchKey *last = &batch->keys[batch->n];
	uint8_t    *to = batch->bytes + batch->nbytes;
	SurfKeyHead head = surf_key_head(key);
	uint32_t	common = surf_key_common(batch->bytes + last->offset, last->len,
										 key, &head);

	if (!surf_batch_put(batch, last, key.len, common))
		return false;
	surf_key_store(to, key, &head, 0);
	return true;
}

static BITS_INLINE FilterBytes
surf_batch_key(const SurfBatch *batch, uint32_t i)
{
	FilterBytes key = {batch->bytes + batch->keys[i].offset, batch->keys[i].len};

	return key;
}

/*
 * Sets how many bits a key of a batch shares with the one before, which the
 * coder has coded last.
 */
static BITS_INLINE void
surf_coder_compare(const SurfCoder *coder, const SurfBatch *batch,
				   SurfBatchKey *key)
{
	uint32_t	common = key->common;
	uint64_t	symbol = coder->symbols[batch->bytes[key->offset + common]];
	uint64_t	before = coder->symbols[batch->bytes[key[-1].offset + common]];

	/* The two codes differ before either ends.  That of the end is zeros. */
	before &= -(uint64_t) (common < key[-1].len);
	if (common == key->len || symbol <= (before | SURF_SYMBOL_LEN))
		filter_fail("keys are not in ascending order, or not those measured");
	key->shared = (uint16_t) (coder->starts[common] + 63 -
							  bits_log2(symbol ^ before));
}

/*
 * Codes one more symbol: appends its bits to *bits.  The lowest bits of *sum
 * are the number of bits.
 */
static BITS_INLINE void
surf_coder_symbol(SurfCoder *coder, uint8_t byte, uint64_t *bits,
				  uint64_t *sum, uint32_t total, uint16_t *start)
{
	uint64_t	symbol = coder->symbols[byte];

	*bits |= symbol >> (*sum & 63);
	*sum += symbol;
	*start = (uint16_t) (total + *sum);
}

/*
 * Codes four symbols of a key from symbol i on, which begins at bit total of
 * its code.  Returns their bits on top, with other bits behind.
 *
 * Bytes behind the key's end are coded, too, so that there is no branch.
 */
static BITS_INLINE uint64_t
surf_coder_four(SurfCoder *coder, const uint8_t *key, uint32_t i,
				uint32_t total, uint64_t *sum)
{
	uint16_t   *starts = coder->starts + i + 1;
	uint64_t	bits = 0;

	*sum = 0;
	surf_coder_symbol(coder, key[(size_t) i], &bits, sum, total, starts);
	surf_coder_symbol(coder, key[(size_t) i + 1], &bits, sum, total, starts + 1);
	surf_coder_symbol(coder, key[(size_t) i + 2], &bits, sum, total, starts + 2);
	surf_coder_symbol(coder, key[(size_t) i + 3], &bits, sum, total, starts + 3);
	return bits;
}

/*
 * The same for eight symbols.  The result is not valid if they have more than
 * SURF_CODER_BITS.
 */
static BITS_INLINE uint64_t
surf_coder_eight(SurfCoder *coder, const uint8_t *key, uint32_t i,
				 uint32_t total, uint64_t *sum)
{
	uint16_t   *starts = coder->starts + i + 1;
	uint64_t	bits = surf_coder_four(coder, key, i, total, sum);

	surf_coder_symbol(coder, key[(size_t) i + 4], &bits, sum, total, starts + 4);
	surf_coder_symbol(coder, key[(size_t) i + 5], &bits, sum, total, starts + 5);
	surf_coder_symbol(coder, key[(size_t) i + 6], &bits, sum, total, starts + 6);
	surf_coder_symbol(coder, key[(size_t) i + 7], &bits, sum, total, starts + 7);
	return bits;
}

/* surf_coder_code() for any number of symbols. */
static uint8_t *
surf_coder_code_long(SurfCoder *coder, const uint8_t *key, uint32_t len,
					 uint32_t common, uint8_t *to)
{
	uint32_t	total = coder->starts[common];
	uint32_t	used = 0;
	uint32_t	i;

	for (i = common; i < len; i += SURF_CODER_STEP)
	{
		uint32_t	end = len - i < SURF_CODER_STEP ? len : i + SURF_CODER_STEP;

		/* Bits of the last byte, on top. */
		uint64_t	before = (uint64_t) (to[0] & ~(0xFF >> used)) << 56;
		uint64_t	sum;
		uint64_t	bits = surf_coder_four(coder, key, i, total, &sum);
		uint32_t	n = coder->starts[end] - total;

		if (n >= SURF_NO_SYMBOL)
			filter_fail("a key was not there when keys were measured");
		bits &= ~(UINT64_MAX >> n);
		bits_store64(to, __builtin_bswap64(before | bits >> used));
		if (used + n >= 64)
			bits_store64(to + 8, bits << (8 - used) & 0xFF);
		used += n;
		to += used / 8;
		used %= 8;
		total += n;
	}
	bits_store64(to + 1, 0);
	coder->nbits = total;
	return to;
}

/*
 * Codes a key of a batch from symbol common on; the symbols before are those
 * of the last key.  Writes the bits from symbol common on, beginning with the
 * top bit of *to.  Returns the byte behind the last full one.  The bits behind
 * the code are zeros in this byte and the next seven.
 */
static BITS_INLINE uint8_t *
surf_coder_code(SurfCoder *coder, const uint8_t *key, uint32_t len,
				uint32_t common, uint8_t *to)
{
	uint32_t	total = coder->starts[common];
	uint64_t	sum;
	uint64_t	bits = surf_coder_eight(coder, key, common, total, &sum);
	uint32_t	n = coder->starts[len] - total;

	bits_store64(to, __builtin_bswap64(bits & ~(UINT64_MAX >> (n & 63))));
	if (len - common > SURF_CODER_WIDE || n > SURF_CODER_BITS ||
		(sum & (SURF_NO_SYMBOL - 1)) > SURF_CODER_BITS)
		return surf_coder_code_long(coder, key, len, common, to);
	to += n / 8;
	bits_store64(to + 1, 0);
	coder->nbits = total + n;
	return to;
}

/* A group of neighbouring keys in the sample. */
typedef struct SurfGroup
{
	uint64_t	first;			/* number of its first key */
	size_t		offset;			/* where its keys are, each after its length */
	uint32_t	nkeys;
} SurfGroup;

/*
 * How many new bytes has a key that shares "common" bytes with the one before, and
 * next_common bytes with the next one?
 */
static inline uint32_t
new_bytes(uint32_t common, uint32_t next_common)
{
	return (common > next_common ? common : next_common) - common + 1;
}

/* How many new bytes has the key before key i of a batch? */
static inline uint32_t
batch_new_bytes(const SurfBatch *batch, uint32_t i)
{
	return new_bytes(batch->keys[i - 1].common, batch->keys[i].common);
}

#endif							/* RANGEFILTER_SURF_CODER_H */
