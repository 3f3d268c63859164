/*-------------------------------------------------------------------------
 *
 * test_bits.c
 *	  Bit operations against their bit-by-bit definitions.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "filter/base/bits.h"
#include "unit.h"

/* A random word of random density. */
static uint64_t
random_word(void)
{
	uint64_t	word = unit_random();
	unsigned	i;

	for (i = unit_random_below(5); i > 0; i--)
		word &= unit_random();
	return unit_random_below(2) ? word : ~word;
}

static void
check_select(uint64_t word)
{
	unsigned	k = 0;
	unsigned	i;

	for (i = 0; i < 64; i++)
	{
		if ((word >> i & 1) == 0)
			continue;
		CHECK(bits_select(word, k) == i, "word %" PRIx64 " k %u", word, k);
		if (BITS_CPU_IS_FAST())
			CHECK(bits_select_fast(word, k) == i, "word %" PRIx64 " k %u", word, k);
		k++;
	}
	CHECK(bits_count(word) == k, "word %" PRIx64, word);
}

static void
test_select(void)
{
	unsigned	i;

	check_select(UINT64_MAX);
	for (i = 0; i < 64; i++)
	{
		check_select(UINT64_C(1) << i);
		check_select(UINT64_MAX << i);
		check_select(UINT64_MAX >> i);
	}
	for (i = 0; i < 20000; i++)
		check_select(random_word());
}

static void
test_widths(void)
{
	unsigned	i;

	CHECK(bits_width(0) == 0, "0");
	CHECK(bits_mask(0) == 0 && bits_mask(64) == UINT64_MAX, "masks");
	for (i = 0; i < 64; i++)
	{
		uint64_t	power = UINT64_C(1) << i;

		CHECK(bits_width(power) == i + 1, "%u", i);
		CHECK(bits_log2(power) == i, "%u", i);
		CHECK(bits_log2(power | (power - 1)) == i, "%u", i);
		CHECK(bits_lowest(power | (UINT64_MAX << i)) == i, "%u", i);
		CHECK(bits_mask(i) == power - 1, "%u", i);
	}
}

static void
test_mulhi(void)
{
	unsigned	i;

	CHECK(bits_mulhi(UINT64_MAX, UINT64_MAX) == UINT64_MAX - 1, "largest");
	for (i = 0; i < 64; i++)
	{
		uint64_t	a = unit_random();

		CHECK(bits_mulhi(a, UINT64_C(1) << i) == (i == 0 ? 0 : a >> (64 - i)),
			  "%" PRIu64 " * 2^%u", a, i);
	}
}

static void
test_little_endian(void)
{
	static const uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	uint8_t		copy[8];

	CHECK(bits_load16(bytes) == 0x0201, "16");
	CHECK(bits_load32(bytes) == 0x04030201, "32");
	CHECK(bits_load64(bytes) == UINT64_C(0x0807060504030201), "64");
	bits_store64(copy, bits_load64(bytes));
	CHECK(memcmp(bytes, copy, 8) == 0, "64");
	bits_store32(copy, 0xa1b2c3d4);
	CHECK(copy[0] == 0xd4 && copy[3] == 0xa1, "32");
	bits_store16(copy, 0xa1b2);
	CHECK(copy[0] == 0xb2 && copy[1] == 0xa1, "16");
}

/* Numbers of random widths, written one after the other, then read. */
static void
test_bit_strings(void)
{
	int			round;

	for (round = 0; round < 200; round++)
	{
		uint64_t	values[100];
		unsigned	widths[100];
		uint8_t    *data;
		uint64_t	pos = unit_random_below(64);
		uint64_t	start = pos;
		uint64_t	bits = pos;
		int			i;

		for (i = 0; i < 100; i++)
		{
			widths[i] = unit_random_below(65);
			values[i] = random_word() & bits_mask(widths[i]);
			bits += widths[i];
		}

		/* Exactly as long as writing may touch, then as reading may. */
		data = calloc(1, (bits + 7) / 8);
		for (i = 0; i < 100; i++)
		{
			bits_write(data, pos, widths[i], values[i]);
			pos += widths[i];
		}
		data = realloc(data, (bits + 7) / 8 + 8);
		pos = start;
		for (i = 0; i < 100; i++)
		{
			CHECK(bits_read(data, pos, widths[i]) == values[i],
				  "width %u at %" PRIu64, widths[i], pos);
			pos += widths[i];
		}
		for (pos = 0; pos < start; pos++)
			CHECK((data[pos / 8] >> (pos % 8) & 1) == 0, "bit %" PRIu64, pos);
		free(data);
	}
}

int
main(void)
{
	unit_begin("bits");
	RUN(test_select);
	RUN(test_widths);
	RUN(test_mulhi);
	RUN(test_little_endian);
	RUN(test_bit_strings);
	return unit_end();
}
