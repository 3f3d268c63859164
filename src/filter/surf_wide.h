/*-------------------------------------------------------------------------
 *
 * surf_wide.h
 *	  SuRF's builds: 32 bytes of a key at once, where processors can.
 *
 * The load of AVX-512 takes as many bytes as it is told, and touches none
 * behind: keys of up to 32 bytes, of whatever length, are compared with the one
 * before, looked up in a set of bytes and stored with no branch that depends on
 * them.  surf_coder.h does all of that for other processors.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SURF_WIDE_H
#define RANGEFILTER_SURF_WIDE_H

#include "filter/surf_coder.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(BITS_PORTABLE)

#include <immintrin.h>

#define SURF_WIDE_TARGET \
	__attribute__((target("avx512bw,avx512vl,avx2,popcnt,bmi,bmi2,lzcnt")))
#define SURF_CPU_IS_WIDE() \
	(__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && \
	 BITS_CPU_IS_FAST())

/* A key while it is compared: 32 bytes, those before are in common. */
typedef struct SurfWide
{
	__m256i		bytes;			/* zeros behind the key's end */
	uint32_t	from;
	uint32_t	common;
} SurfWide;

/* Bytes of a key from one on, zeros behind its end. */
SURF_WIDE_TARGET static BITS_INLINE __m256i
surf_wide_load(FilterBytes key, uint32_t from)
{
	uint32_t	left = key.len - from < 32 ? key.len - from : 32;

	return _mm256_maskz_loadu_epi8((__mmask32) _bzhi_u64(UINT32_MAX, left),
								   key.data + from);
}

/*
 * Compares a key with the one before.  That is followed by as many bytes as
 * make a multiple of 32, whatever they are.
 */
SURF_WIDE_TARGET static BITS_INLINE SurfWide
surf_wide_compare(const uint8_t *last, uint32_t last_len, FilterBytes key)
{
	uint32_t	max = key.len < last_len ? key.len : last_len;
	SurfWide	wide;

	for (wide.from = 0;; wide.from += 32)
	{
		__m256i		before = _mm256_loadu_si256((const __m256i *) (last + wide.from));
		uint32_t	differing;

		wide.bytes = surf_wide_load(key, wide.from);
		differing = _mm256_cmpneq_epi8_mask(wide.bytes, before);
		if (differing != 0 || wide.from + 32 >= max)
		{
			wide.common = wide.from + (uint32_t) _tzcnt_u32(differing);
			if (wide.common > max)
				wide.common = max;
			return wide;
		}
	}
}

/*
 * Which of 32 bytes of a key are not in the set?  Of value b, that has bit
 * b / 16 % 8 of byte b % 16 of the half that b is in.
 */
SURF_WIDE_TARGET static BITS_INLINE uint32_t
surf_wide_unseen(const uint8_t (*set)[16], FilterBytes key, const SurfWide *wide)
{
	uint32_t	left = key.len - wide->from < 32 ? key.len - wide->from : 32;
	__m256i		nibbles = _mm256_set1_epi8(15);
	__m256i		low = _mm256_and_si256(wide->bytes, nibbles);
	__m256i		high = _mm256_and_si256(_mm256_srli_epi16(wide->bytes, 4), nibbles);
	__m256i		bits = _mm256_set1_epi64x(INT64_C(0x8040201008040201));
	__m128i		first = _mm_loadu_si128((const __m128i *) set[0]);
	__m128i		second = _mm_loadu_si128((const __m128i *) set[1]);
	__m256i		rows = _mm256_mask_blend_epi8(_mm256_movepi8_mask(wide->bytes),
											  _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(first), low),
											  _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(second), low));

	return (uint32_t) _bzhi_u64(_mm256_testn_epi8_mask(rows, _mm256_shuffle_epi8(bits, high)),
								left);
}

/* Stores 32 bytes of a key; moves on to the next ones, false if there are none. */
SURF_WIDE_TARGET static BITS_INLINE bool
surf_wide_store(uint8_t *to, FilterBytes key, SurfWide *wide)
{
	_mm256_storeu_si256((__m256i *) (to + wide->from), wide->bytes);
	wide->from += 32;
	if (wide->from >= key.len)
		return false;
	wide->bytes = surf_wide_load(key, wide->from);
	return true;
}

/* surf_batch_add() for processors that can. */
SURF_WIDE_TARGET static inline bool
surf_batch_add_wide(SurfBatch *batch, FilterBytes key)
{
	SurfBatchKey *last = &batch->keys[batch->n];
	uint8_t    *to = batch->bytes + batch->nbytes;
	SurfWide	wide = surf_wide_compare(batch->bytes + last->offset, last->len,
										 key);

	if (!surf_batch_put(batch, last, key.len, wide.common))
		return false;
	if (wide.from > 0)
	{
		wide.from = 0;
		wide.bytes = surf_wide_load(key, 0);
	}
	while (surf_wide_store(to, key, &wide))
		;
	return true;
}

#else

/* There are none such; nothing of this is called. */
#define SURF_WIDE_TARGET
#define SURF_CPU_IS_WIDE() false

typedef struct SurfWide
{
	uint32_t	from;
	uint32_t	common;
} SurfWide;

static inline SurfWide
surf_wide_compare(const uint8_t *last, uint32_t last_len, FilterBytes key)
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
surf_wide_store(uint8_t *to, FilterBytes key, SurfWide *wide)
{
	return false;
}

static inline bool
surf_batch_add_wide(SurfBatch *batch, FilterBytes key)
{
	return surf_batch_add(batch, key);
}
#endif

#endif							/* RANGEFILTER_SURF_WIDE_H */
