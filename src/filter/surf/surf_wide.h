/*-------------------------------------------------------------------------
 *
 * surf_wide.h
 *	  SuRF's builds: 32 bytes of a key at once, on processors that can.
 *
 * AVX2 loads a given number of words of four bytes, and reads nothing behind
 * them.  So keys of up to 32 bytes are compared with the one before, looked up
 * in a set of bytes, and stored without a branch that depends on their length.
 * surf_coder.h does this for other processors.
 *
 * The functions of surf_cut.c for 32 nodes at once are here, too, for AVX2 and
 * for SSE2.  AVX-512 is used only to load keys, see README.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SURF_WIDE_H
#define RANGEFILTER_SURF_WIDE_H

#include "filter/surf/surf_coder.h"
#include "filter/surf/surf_page.h"

/* Bytes of a key that are taken at once. */
#define SURF_WIDE_BYTES 32

/*
 * Nodes that are compared at once: arrays have room for these on either
 * side.
 */
#define SURF_WIDE_NODES 32

/* Nodes whose costs are computed at once. */
#define SURF_AVX2_COSTS 8

#if defined(__SSE2__) && !defined(SURF_SCALAR)

#include <emmintrin.h>

#define SURF_HAS_SSE2 true

/*
 * Which of 16 nodes are less deep?  Depths are positive also as signed
 * numbers.
 */
static BITS_INLINE uint32_t
surf_sse2_less16(const uint16_t *nodes, __m128i than)
{
	const __m128i *depths = (const __m128i *) nodes;
	__m128i		first = _mm_cmpgt_epi16(than, _mm_loadu_si128(depths));
	__m128i		second = _mm_cmpgt_epi16(than, _mm_loadu_si128(depths + 1));

	return (uint32_t) _mm_movemask_epi8(_mm_packs_epi16(first, second));
}

/*
 * Which of the 32 nodes that begin with nodes[0] are less deep than that?  The
 * first one is the lowest bit.
 */
static BITS_INLINE uint32_t
surf_sse2_less(const uint16_t *nodes, uint16_t than)
{
	__m128i		depth = _mm_set1_epi16((short) than);

	return surf_sse2_less16(nodes, depth) | surf_sse2_less16(nodes + 16, depth) << 16;
}

#else

#define SURF_HAS_SSE2 false

static inline uint32_t
surf_sse2_less(const uint16_t *nodes, uint16_t than)
{
	return 0;
}
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(BITS_PORTABLE)

#include <immintrin.h>

#define SURF_AVX2_TARGET __attribute__((target("avx2,popcnt,bmi,bmi2,lzcnt")))
#define SURF_CPU_HAS_AVX2() (__builtin_cpu_supports("avx2") && BITS_CPU_IS_FAST())

/*
 * Functions for keys are compiled twice: for keys of SURF_WIDE_LEAST to
 * SURF_WIDE_BYTES bytes, which one load gets (one), and for any.
 */
#define SURF_WIDE_LEAST 4

static BITS_INLINE bool
surf_wide_is_one(FilterBytes key)
{
	return key.len - SURF_WIDE_LEAST <= SURF_WIDE_BYTES - SURF_WIDE_LEAST;
}

/*
 * With AVX-512's masks, keys of 0 to SURF_WIDE_BYTES bytes are loaded in a few
 * instructions less.
 */
#define SURF_MASKED_TARGET \
	__attribute__((target("avx2,avx512bw,avx512vl,popcnt,bmi,bmi2,lzcnt")))
#ifndef SURF_UNMASKED
#define SURF_CPU_HAS_MASKS() \
	(SURF_CPU_HAS_AVX2() && __builtin_cpu_supports("avx512bw") && \
	 __builtin_cpu_supports("avx512vl"))
#else
#define SURF_CPU_HAS_MASKS() false
#endif

/* A key while it is compared: 32 bytes of it; the bytes before are shared. */
typedef struct SurfWide
{
	__m256i		bytes;			/* zeros behind the key's end */
	uint32_t	from;
	uint32_t	common;
} SurfWide;

/*
 * 32 bytes of a key from byte number from on, with zeros behind its end.
 * Whole words of four bytes are loaded; the bytes behind them are taken from
 * the key's last four.
 */
SURF_AVX2_TARGET static BITS_INLINE __m256i
surf_wide_load(FilterBytes key, uint32_t from, bool one)
{
	const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	uint32_t	left = key.len - from;
	__m256i		words = _mm256_set1_epi32((int) (left / 4));
	uint64_t	tail;
	__m256i		rest;

	if (!one && left >= 32)
		return _mm256_loadu_si256((const __m256i *) (key.data + from));
	if (!one && key.len < SURF_WIDE_LEAST)
		return _mm256_setr_epi32((int) surf_key_short(key), 0, 0, 0, 0, 0, 0, 0);
	tail = (uint64_t) bits_load32(key.data + key.len - 4) >> (32 - left % 4 * 8);
	rest = _mm256_and_si256(_mm256_cmpeq_epi32(words, lanes),
							_mm256_set1_epi32((int) tail));
	return _mm256_or_si256(rest, _mm256_maskload_epi32((const int *) (key.data + from),
													   _mm256_cmpgt_epi32(words, lanes)));
}

/* Which of 32 bytes are zeros? */
SURF_AVX2_TARGET static BITS_INLINE uint32_t
surf_wide_zeros(__m256i bytes)
{
	return (uint32_t) _mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes,
															 _mm256_setzero_si256()));
}

/*
 * Compares a key with the one before.  Behind that one, bytes up to a multiple
 * of 32 may be read.
 */
SURF_AVX2_TARGET static BITS_INLINE SurfWide
surf_wide_compare(const uint8_t *last, uint32_t last_len, FilterBytes key,
				  bool one)
{
	uint32_t	max = key.len < last_len ? key.len : last_len;
	SurfWide	wide;

	for (wide.from = 0;; wide.from += 32)
	{
		__m256i		before = _mm256_loadu_si256((const __m256i *) (last + wide.from));
		uint32_t	differing;

		wide.bytes = surf_wide_load(key, wide.from, one);
		differing = ~(uint32_t) _mm256_movemask_epi8(_mm256_cmpeq_epi8(wide.bytes,
																	   before));
		if (differing != 0 || one || wide.from + 32 >= max)
		{
			wide.common = wide.from + (uint32_t) _tzcnt_u32(differing);
			if (wide.common > max)
				wide.common = max;
			return wide;
		}
	}
}

/* The same for a key of up to SURF_WIDE_BYTES, on processors with masks. */
SURF_MASKED_TARGET static BITS_INLINE SurfWide
surf_masked_compare(const uint8_t *last, uint32_t last_len, FilterBytes key)
{
	uint32_t	max = key.len < last_len ? key.len : last_len;
	__m256i		before = _mm256_loadu_si256((const __m256i *) last);
	uint32_t	differing;
	SurfWide	wide;

	wide.from = 0;
	wide.bytes = _mm256_maskz_loadu_epi8(_bzhi_u32(UINT32_MAX, key.len), key.data);
	differing = _mm256_cmpneq_epi8_mask(wide.bytes, before);
	wide.common = (uint32_t) _tzcnt_u32(differing);
	if (wide.common > max)
		wide.common = max;
	return wide;
}

/*
 * Which of 32 bytes of a key are not in the set?  The set has a bit for each
 * byte value b: bit b / 16 % 8 of byte b % 16 of half b / 128.
 */
SURF_AVX2_TARGET static BITS_INLINE uint32_t
surf_wide_unseen(const uint8_t (*set)[16], FilterBytes key, const SurfWide *wide)
{
	uint32_t	left = key.len - wide->from < 32 ? key.len - wide->from : 32;
	__m256i		nibbles = _mm256_set1_epi8(15);
	__m256i		low = _mm256_and_si256(wide->bytes, nibbles);
	__m256i		high = _mm256_and_si256(_mm256_srli_epi16(wide->bytes, 4), nibbles);
	__m256i		bits = _mm256_set1_epi64x(INT64_C(0x8040201008040201));
	__m128i		first = _mm_loadu_si128((const __m128i *) set[0]);
	__m128i		second = _mm_loadu_si128((const __m128i *) set[1]);
	__m256i		rows = _mm256_blendv_epi8(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(first), low),
										  _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(second), low),
										  wide->bytes);

	rows = _mm256_and_si256(rows, _mm256_shuffle_epi8(bits, high));
	return (uint32_t) _bzhi_u64(surf_wide_zeros(rows), left);
}

/*
 * Stores 32 bytes of a key and loads the next ones; false if there are none.
 */
SURF_AVX2_TARGET static BITS_INLINE bool
surf_wide_store(uint8_t *to, FilterBytes key, SurfWide *wide, bool one)
{
	_mm256_storeu_si256((__m256i *) (to + wide->from), wide->bytes);
	wide->from += 32;
	if (one || wide->from >= key.len)
		return false;
	wide->bytes = surf_wide_load(key, wide->from, one);
	return true;
}

/* Adds a key that has been compared with the one before, see surf_batch_add(). */
SURF_AVX2_TARGET static BITS_INLINE bool
surf_batch_put_wide(SurfBatch *batch, FilterBytes key, SurfWide wide, bool one)
{
	uint8_t    *to = batch->bytes + batch->nbytes;

	if (!surf_batch_put(batch, &batch->keys[batch->n], key.len, wide.common))
		return false;
	if (wide.from > 0)
	{
		wide.from = 0;
		wide.bytes = surf_wide_load(key, 0, one);
	}
	while (surf_wide_store(to, key, &wide, one))
		;
	return true;
}

/* surf_batch_add() for processors that can. */
SURF_AVX2_TARGET static BITS_INLINE bool
surf_batch_add_wide(SurfBatch *batch, FilterBytes key, bool one)
{
	const SurfBatchKey *last = &batch->keys[batch->n];

	return surf_batch_put_wide(batch, key,
							   surf_wide_compare(batch->bytes + last->offset,
												 last->len, key, one), one);
}

/* The same for a key of up to SURF_WIDE_BYTES, on processors with masks. */
SURF_MASKED_TARGET static BITS_INLINE bool
surf_batch_add_masked(SurfBatch *batch, FilterBytes key)
{
	const SurfBatchKey *last = &batch->keys[batch->n];

	return surf_batch_put_wide(batch, key,
							   surf_masked_compare(batch->bytes + last->offset,
												   last->len, key), true);
}

/*
 * Which of 16 nodes are less deep?  Each has 16 bits, which are all set or all
 * zero.
 */
SURF_AVX2_TARGET static BITS_INLINE __m256i
surf_avx2_less16(const uint16_t *nodes, __m256i than)
{
	return _mm256_cmpgt_epi16(than, _mm256_loadu_si256((const __m256i *) nodes));
}

/* surf_sse2_less() for processors with AVX2. */
SURF_AVX2_TARGET static BITS_INLINE uint32_t
surf_avx2_less(const uint16_t *nodes, uint16_t than)
{
	__m256i		depth = _mm256_set1_epi16((short) than);
	__m256i		packed = _mm256_packs_epi16(surf_avx2_less16(nodes, depth),
											surf_avx2_less16(nodes + 16, depth));

	/* Packing is by halves: the first, third, second, fourth eight nodes. */
	return (uint32_t) _mm256_movemask_epi8(_mm256_permute4x64_epi64(packed, 0xd8));
}

/* floor(log2()) of 8 numbers > 0, of 24 bits at most: exponents of floats. */
SURF_AVX2_TARGET static BITS_INLINE __m256i
surf_avx2_log2(__m256i numbers)
{
	__m256i		floats = _mm256_castps_si256(_mm256_cvtepi32_ps(numbers));

	return _mm256_sub_epi32(_mm256_srli_epi32(floats, 23), _mm256_set1_epi32(127));
}

SURF_AVX2_TARGET static BITS_INLINE __m256i
surf_avx2_load8(const uint16_t *numbers)
{
	return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *) numbers));
}

/* cost_node() for SURF_AVX2_COSTS nodes. */
SURF_AVX2_TARGET static BITS_INLINE void
surf_avx2_costs(const uint16_t *own, const uint16_t *top, const uint16_t *left,
				const uint16_t *right, uint32_t i, uint32_t *costs,
				uint32_t *numbers)
{
	const __m256i one = _mm256_set1_epi32(1);
	const __m256i least = _mm256_set1_epi32(SURF_SKIP_LEAVES);
	__m256i		first = surf_avx2_load8(left);
	__m256i		nodes = _mm256_add_epi32(_mm256_set1_epi32((int) i),
										 _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
	__m256i		n = _mm256_sub_epi32(surf_avx2_load8(right), first);
	__m256i		nleft = _mm256_sub_epi32(nodes, first);
	__m256i		chain = _mm256_sub_epi32(surf_avx2_load8(own), surf_avx2_load8(top));
	__m256i		most = _mm256_sub_epi32(n, one);
	__m256i		binary = surf_avx2_log2(most);
	__m256i		threshold = _mm256_sub_epi32(_mm256_sllv_epi32(_mm256_set1_epi32(2), binary),
											 most);
	__m256i		gamma = surf_avx2_log2(chain);
	__m256i		twice = _mm256_add_epi32(gamma, gamma);
	__m256i		longer = _mm256_cmpgt_epi32(nleft, threshold);
	__m256i		skip = _mm256_and_si256(_mm256_cmpgt_epi32(nleft, least),
										_mm256_cmpgt_epi32(_mm256_sub_epi32(n, nleft), least));
	__m256i		value = _mm256_add_epi32(_mm256_sub_epi32(nleft, one),
										 _mm256_and_si256(threshold, longer));
	__m256i		cost = _mm256_add_epi32(_mm256_add_epi32(binary, chain), twice);

	value = _mm256_sllv_epi32(value, _mm256_add_epi32(twice, one));
	_mm256_storeu_si256((__m256i *) numbers, _mm256_or_si256(value, chain));
	cost = _mm256_sub_epi32(cost, longer);
	skip = _mm256_and_si256(skip, _mm256_or_si256(surf_avx2_log2(n),
												  _mm256_set1_epi32(1 << 16)));
	_mm256_storeu_si256((__m256i *) costs, _mm256_add_epi32(cost, skip));
}

#else

/* For other processors: none of these functions is called. */
#define SURF_AVX2_TARGET
#define SURF_MASKED_TARGET
#define SURF_CPU_HAS_AVX2() false
#define SURF_CPU_HAS_MASKS() false

typedef struct SurfWide
{
	uint32_t	from;
	uint32_t	common;
} SurfWide;

static inline bool
surf_wide_is_one(FilterBytes key)
{
	return false;
}

static inline SurfWide
surf_wide_compare(const uint8_t *last, uint32_t last_len, FilterBytes key,
				  bool one)
{
	SurfWide	wide = {0, 0};

	return wide;
}

static inline SurfWide
surf_masked_compare(const uint8_t *last, uint32_t last_len, FilterBytes key)
{
	SurfWide	wide = {0, 0};

	return wide;
}

static inline uint32_t
surf_wide_unseen(const uint8_t (*set)[16], FilterBytes key, const SurfWide *wide)
{
	return 0;
}

static inline bool
surf_wide_store(uint8_t *to, FilterBytes key, SurfWide *wide, bool one)
{
	return false;
}

static inline bool
surf_batch_add_wide(SurfBatch *batch, FilterBytes key, bool one)
{
	return surf_batch_add(batch, key);
}

static inline bool
surf_batch_add_masked(SurfBatch *batch, FilterBytes key)
{
	return surf_batch_add(batch, key);
}

static inline uint32_t
surf_avx2_less(const uint16_t *nodes, uint16_t than)
{
	return 0;
}

static inline void
surf_avx2_costs(const uint16_t *own, const uint16_t *top, const uint16_t *left,
				const uint16_t *right, uint32_t i, uint32_t *costs,
				uint32_t *numbers)
{
}
#endif

#endif							/* RANGEFILTER_SURF_WIDE_H */
