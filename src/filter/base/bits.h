/*-------------------------------------------------------------------------
 *
 * bits.h
 *	  Words and bits in byte arrays: loads, counts, select, bit strings.
 *
 * Pages are little-endian on every machine, and nothing in them is aligned.
 * All access goes through the loads and stores below, which compilers turn
 * into one instruction each.
 *
 * Bit i of a byte array is bit (i % 8) of byte (i / 8).  So bit i of a loaded
 * word is the i-th bit of the array behind the word's beginning.
 *
 * Query code that uses popcount and select a lot is compiled twice, see
 * BITS_TARGET: distributions build for processors without these instructions,
 * but nearly all machines have them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_BITS_H
#define RANGEFILTER_BITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define BITS_INLINE inline __attribute__((always_inline))
#define BITS_NOINLINE __attribute__((noinline))

static BITS_INLINE uint16_t
bits_load16(const uint8_t *p)
{
	return (uint16_t) (p[0] | p[1] << 8);
}

static BITS_INLINE uint32_t
bits_load32(const uint8_t *p)
{
	uint32_t	value;

	memcpy(&value, p, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	value = __builtin_bswap32(value);
#endif
	return value;
}

static BITS_INLINE uint64_t
bits_load64(const uint8_t *p)
{
	uint64_t	value;

	memcpy(&value, p, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	value = __builtin_bswap64(value);
#endif
	return value;
}

static BITS_INLINE void
bits_store16(uint8_t *p, uint16_t value)
{
	p[0] = (uint8_t) value;
	p[1] = (uint8_t) (value >> 8);
}

static BITS_INLINE void
bits_store32(uint8_t *p, uint32_t value)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	value = __builtin_bswap32(value);
#endif
	memcpy(p, &value, sizeof(value));
}

static BITS_INLINE void
bits_store64(uint8_t *p, uint64_t value)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	value = __builtin_bswap64(value);
#endif
	memcpy(p, &value, sizeof(value));
}

/* The n lowest bits set; n <= 64. */
static BITS_INLINE uint64_t
bits_mask(unsigned n)
{
	return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

/* The bits that a number needs: 0 for 0, 64 for UINT64_MAX. */
static BITS_INLINE unsigned
bits_width(uint64_t value)
{
	return value == 0 ? 0 : 64 - (unsigned) __builtin_clzll(value);
}

/* floor(log2(value)), value > 0. */
static BITS_INLINE unsigned
bits_log2(uint64_t value)
{
	return 63 - (unsigned) __builtin_clzll(value);
}

/* Index of the lowest bit set, value > 0. */
static BITS_INLINE unsigned
bits_lowest(uint64_t value)
{
	return (unsigned) __builtin_ctzll(value);
}

static BITS_INLINE unsigned
bits_count(uint64_t value)
{
	return (unsigned) __builtin_popcountll(value);
}

/* qsort() callback: numbers, ascending. */
static inline int
bits_compare64(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

/*
 * a if yes, else b, without a branch.  For conditions that cannot be
 * predicted; compilers make branches of "?:".
 */
static BITS_INLINE uint64_t
bits_choose(bool yes, uint64_t a, uint64_t b)
{
	return b ^ ((a ^ b) & -(uint64_t) yes);
}

/* Upper half of the 128-bit product. */
static BITS_INLINE uint64_t
bits_mulhi(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
	return (uint64_t) (((unsigned __int128) a * b) >> 64);
#else
	uint64_t	a0 = (uint32_t) a;
	uint64_t	a1 = a >> 32;
	uint64_t	b0 = (uint32_t) b;
	uint64_t	b1 = b >> 32;
	uint64_t	middle = a1 * b0 + (a0 * b0 >> 32);
	uint64_t	carry = a0 * b1 + (uint32_t) middle;

	return a1 * b1 + (middle >> 32) + (carry >> 32);
#endif
}

/*
 * Index of the k-th (from 0) bit set; word has more than k bits set.  Counts
 * per byte are summed up in one multiplication, the byte that reaches k is
 * found by comparing all eight sums at once (Vigna, "Broadword implementation
 * of rank/select queries", section 3), then bits are taken off that byte.
 */
static inline unsigned
bits_select(uint64_t word, unsigned k)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	const uint64_t tops = ones << 7;
	uint64_t	sums = word - ((word >> 1) & UINT64_C(0x5555555555555555));
	uint64_t	below;
	unsigned	shift;

	sums = (sums & UINT64_C(0x3333333333333333)) +
		((sums >> 2) & UINT64_C(0x3333333333333333));
	sums = ((sums + (sums >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f)) * ones;

	/* The top bit of a byte survives where its sum is at most k. */
	below = (((k * ones) | tops) - sums) & tops;
	shift = 8 * (unsigned) (((below >> 7) * ones) >> 56);
	k -= (unsigned) ((sums << 8) >> shift) & 0xff;
	word >>= shift;
	while (k-- > 0)
		word &= word - 1;
	return shift + bits_lowest(word);
}

/*
 * The processor-specific copy of a function is declared BITS_TARGET and calls
 * the same always-inline body with fast = true.  BITS_CPU_IS_FAST tells at run
 * time whether it may run.  BITS_PORTABLE leaves it out, for tests of the
 * other copy.
 */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(BITS_PORTABLE)
#define BITS_TARGET __attribute__((target("popcnt,bmi,bmi2,lzcnt")))
#define BITS_CPU_IS_FAST() \
	(__builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi2"))

/* bits_select() by the PDEP instruction. */
static BITS_INLINE unsigned
bits_select_fast(uint64_t word, unsigned k)
{
	uint64_t	bit;

__asm__("pdepq %2, %1, %0":"=r"(bit):"r"(UINT64_C(1) << k), "r"(word));
	return bits_lowest(bit);
}
#else
#define BITS_TARGET
#define BITS_CPU_IS_FAST() false
#define bits_select_fast(word, k) bits_select(word, k)
#endif

/*
 * Reads width (<= 64) bits from bit position pos on.  Reads up to eight bytes
 * past the last one that holds such a bit.
 */
static BITS_INLINE uint64_t
bits_read(const uint8_t *data, uint64_t pos, unsigned width)
{
	const uint8_t *p = data + (pos >> 3);
	unsigned	skip = pos & 7;
	uint64_t	value = bits_load64(p) >> skip;

	if (skip + width > 64)
		value |= (uint64_t) p[8] << (64 - skip);
	return value & bits_mask(width);
}

/*
 * Writes width (<= 64) bits from bit position pos on into zeroed bytes;
 * value has no other bits.  Touches only bytes that hold such a bit.
 */
static inline void
bits_write(uint8_t *data, uint64_t pos, unsigned width, uint64_t value)
{
	uint8_t    *p = data + (pos >> 3);
	unsigned	skip = pos & 7;
	unsigned	total = skip + width;
	unsigned	i;

	if (width == 0)
		return;
	p[0] |= (uint8_t) (value << skip);
	value >>= 8 - skip;
	for (i = 1; 8 * i < total; i++)
	{
		p[i] |= (uint8_t) value;
		value >>= 8;
	}
}

static BITS_INLINE void
bits_set(uint8_t *data, uint64_t pos)
{
	data[pos >> 3] |= (uint8_t) (1 << (pos & 7));
}

#endif							/* RANGEFILTER_BITS_H */
