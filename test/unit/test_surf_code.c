/*-------------------------------------------------------------------------
 *
 * test_surf_code.c
 *	  SuRF's order-preserving code, and its hash.
 *
 *-------------------------------------------------------------------------
 */
#include "byte_keys.h"
#include "filter/surf/surf_wide.h"
#include "filter/surf/surf_page.h"

/* Random weights; about so many percent of the bytes have none. */
static void
make_weights(uint64_t *weights, uint32_t percent)
{
	uint32_t	skew = unit_random_below(60);
	uint32_t	i;

	for (i = 0; i < SURF_SYMBOLS; i++)
	{
		weights[i] = 1 + (unit_random() >> 20 >> unit_random_below(skew + 1) % 44);
		if (unit_random_below(100) < percent)
			weights[i] = 0;
	}
}

/*
 * The intervals of all symbols tile [0, 1), each at a multiple of its size:
 * so codes are in order and none is a prefix of another.
 */
static void
check_table(const SurfCode *code, const uint64_t *weights)
{
	SurfSymbol	symbol = surf_code_end(code);
	uint32_t	next = SURF_CODE_ONE >> symbol.len;
	uint32_t	i;

	CHECK(symbol.start == 0, "end at %u", symbol.start);
	for (i = 0; i < 256; i++)
	{
		bool		occurs = surf_code_byte(code, (uint8_t) i, &symbol);

		CHECK(occurs == (weights[SURF_SYMBOL_BYTE(i)] > 0), "byte %u", i);
		CHECK(symbol.start == next, "byte %u at %u, not %u", i, symbol.start, next);
		if (!occurs)
			continue;
		CHECK(symbol.len > 0 && symbol.len <= SURF_CODE_BITS, "byte %u: %u bits",
			  i, symbol.len);
		CHECK(symbol.start % (SURF_CODE_ONE >> symbol.len) == 0, "byte %u", i);
		next += SURF_CODE_ONE >> symbol.len;
	}
	CHECK(next < SURF_CODE_ONE, "no room at the top");
}

/* Opens the table for the weights, or the plain code if they are NULL. */
static SurfCode
open_code(const uint64_t *weights, uint8_t *table)
{
	uint32_t	len = weights != NULL ? surf_code_make(weights, table) :
	surf_code_make_plain(table);
	SurfCode	code;
	uint32_t	used;
	uint32_t	i;

	CHECK(surf_code_open(&code, table, len, &used) && used == len, "length %u", len);
	for (i = 0; i < len; i++)
	{
		SurfCode	cut;

		CHECK(!surf_code_open(&cut, table, i, &used), "length %u of %u", i, len);
	}
	return code;
}

static void
test_tables(void)
{
	static const uint32_t percents[] = {0, 10, 70, 98, 100};
	int			round;

	for (round = 0; round < 300; round++)
	{
		uint64_t	weights[SURF_SYMBOLS];
		uint8_t		table[SURF_CODE_MAX_SIZE];
		SurfCode	code;

		make_weights(weights, percents[round % 5]);
		code = open_code(weights, table);
		check_table(&code, weights);
	}
}

/* The cost of an alphabetic code by dynamic programming, in cubic time. */
static uint64_t
least_cost(const uint64_t *weights, int n)
{
	static uint64_t cost[SURF_SYMBOLS][SURF_SYMBOLS];
	int			len;
	int			i;
	int			k;

	for (len = 1; len <= n; len++)
		for (i = 0; i + len <= n; i++)
		{
			uint64_t	total = 0;

			cost[i][i + len - 1] = len == 1 ? 0 : UINT64_MAX;
			for (k = i; k < i + len; k++)
				total += weights[k];
			for (k = i; len > 1 && k < i + len - 1; k++)
			{
				uint64_t	sum = total + cost[i][k] + cost[k + 1][i + len - 1];

				if (sum < cost[i][i + len - 1])
					cost[i][i + len - 1] = sum;
			}
		}
	return cost[0][n - 1];
}

/* No alphabetic code is shorter, where no code has to be cut to 15 bits. */
static void
test_codes_are_optimal(void)
{
	int			round;

	for (round = 0; round < 20; round++)
	{
		uint64_t	weights[SURF_SYMBOLS];
		uint64_t	used[SURF_SYMBOLS];
		uint8_t		table[SURF_CODE_MAX_SIZE];
		SurfCode	code;
		SurfSymbol	symbol;
		uint64_t	cost;
		uint32_t	top = SURF_CODE_ONE;
		int			n = 0;
		int			i;

		for (i = 0; i < SURF_SYMBOLS; i++)
		{
			weights[i] = 100 + unit_random_below(2000);
			if (i % 4 != 0 && i != SURF_SYMBOL_TOP)
				weights[i] = 0;
			if (weights[i] > 0)
				used[n++] = weights[i];
		}
		code = open_code(weights, table);
		symbol = surf_code_end(&code);
		top -= SURF_CODE_ONE >> symbol.len;
		cost = weights[SURF_SYMBOL_END] * symbol.len;
		for (i = 0; i < 256; i++)
			if (surf_code_byte(&code, (uint8_t) i, &symbol))
			{
				top -= SURF_CODE_ONE >> symbol.len;
				cost += weights[SURF_SYMBOL_BYTE(i)] * symbol.len;
			}
		cost += weights[SURF_SYMBOL_TOP] * (SURF_CODE_BITS - bits_log2(top));
		CHECK(cost == least_cost(used, n), "cost %" PRIu64 ", not %" PRIu64, cost,
			  least_cost(used, n));
	}
}

/* Compares codes as bit strings: < 0, 0, > 0. */
static int
compare_codes(SurfBits *a, SurfBits *b)
{
	uint32_t	pos;

	surf_bits_extend(a, UINT32_MAX);
	surf_bits_extend(b, UINT32_MAX);
	for (pos = 0; pos < a->nbits || pos < b->nbits; pos += 64)
	{
		uint64_t	x = surf_bits_peek(a, pos);
		uint64_t	y = surf_bits_peek(b, pos);

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

/*
 * Checks that two keys' codes are in the keys' order, and that going on from
 * what they share leads to the same code.
 */
static void
check_order(const SurfCode *code, FilterBytes a, FilterBytes b)
{
	static SurfBits a_bits;
	static SurfBits b_bits;
	static SurfBits like;
	int			order = filter_bytes_compare(a, b);
	int			codes;

	surf_bits_begin(&a_bits, code, a, filter_common_prefix(a, b));
	surf_bits_begin(&b_bits, code, b, 0);
	surf_bits_extend(&a_bits, unit_random_below(200));
	surf_bits_begin_like(&like, &a_bits, b);
	codes = compare_codes(&a_bits, &b_bits);

	/* A key with a byte that does not occur is just below its code. */
	if (codes == 0)
		codes = (int) b_bits.between - (int) a_bits.between;
	CHECK(codes == order || (codes == 0 && a_bits.between && b_bits.between) ||
		  (codes < 0) == (order < 0), "order %d, codes %d", order, codes);
	CHECK(order == 0 || codes != 0 || a_bits.between, "equal codes");
	CHECK(compare_codes(&like, &b_bits) == 0 && like.nbits == b_bits.nbits &&
		  like.between == b_bits.between, "code begun in another way");
}

static void
test_order(void)
{
	int			round;

	for (round = 0; round < 200; round++)
	{
		uint64_t	weights[SURF_SYMBOLS];
		uint8_t		table[SURF_CODE_MAX_SIZE];
		SurfCode	code;
		int			i;

		make_weights(weights, round % 3 == 0 ? 0 : 30 * (round % 4));
		code = open_code(round % 10 == 0 ? NULL : weights, table);
		for (i = 0; i < 300; i++)
		{
			FilterBytes a = make_key((KeyKind) unit_random_below(KEY_KINDS), i);
			FilterBytes b = unit_random_below(2) ? make_near(a) :
			make_key((KeyKind) unit_random_below(KEY_KINDS), i);

			if (a.len <= FILTER_MAX_KEY && b.len <= FILTER_MAX_KEY)
				check_order(&code, a, b);
			free_bytes(a);
			free_bytes(b);
		}
	}
}

/* A code that is never made: all symbols take as many bits as can be. */
static SurfCode
open_longest_code(uint8_t *table)
{
	SurfCode	code;
	uint32_t	used;
	uint32_t	i;

	table[0] = 1;
	table[1] = 0;
	bits_store16(table + 2, 256);
	for (i = 0; i <= 256; i++)
		bits_store16(table + 4 + 2 * i, (uint16_t) (i + 1));
	CHECK(surf_code_open(&code, table, SURF_CODE_MAX_SIZE, &used), "no code");
	return code;
}

/*
 * Checks what a build's coder has made of a key from symbol common on, and the
 * zeros behind that.
 */
static void
check_coded(const SurfCoder *coder, FilterBytes key, uint32_t common,
			const uint8_t *coded, const uint8_t *end)
{
	static SurfBits bits;
	uint32_t	from = coder->starts[common];
	uint32_t	i;

	surf_bits_begin(&bits, &coder->code, key, common);
	surf_bits_extend(&bits, UINT32_MAX);
	CHECK(bits.nbits == coder->nbits && !bits.between, "%u bits, not %u",
		  coder->nbits, bits.nbits);
	CHECK(common == key.len || from == bits.mark_bits, "from bit %u, not %u",
		  from, bits.mark_bits);
	CHECK(end == coded + (bits.nbits - from) / 8, "%td bytes of %u bits",
		  end - coded, bits.nbits - from);
	for (i = 0; coded + i < end + 8; i++)
	{
		uint8_t		byte = (uint8_t) (surf_bits_peek(&bits, from + 8 * i) >> 56);

		CHECK(coded[i] == byte, "%02x at bit %u + %u of %u, not %02x",
			  coded[i], from, 8 * i, bits.nbits, byte);
	}
}

static int
compare_keys(const void *a, const void *b)
{
	return filter_bytes_compare(*(const FilterBytes *) a,
								*(const FilterBytes *) b);
}

SURF_AVX2_TARGET static bool
add_wide(SurfBatch *batch, FilterBytes key, bool one)
{
	return surf_batch_add_wide(batch, key, one);
}

SURF_MASKED_TARGET static bool
add_masked(SurfBatch *batch, FilterBytes key)
{
	return surf_batch_add_masked(batch, key);
}

/* Adds a key to a batch in one of the ways there are. */
static bool
add_somehow(SurfBatch *batch, FilterBytes key)
{
	if (SURF_CPU_HAS_MASKS() && key.len <= SURF_WIDE_BYTES && unit_random_below(3) == 0)
		return add_masked(batch, key);
	if (SURF_CPU_HAS_AVX2() && unit_random_below(2))
		return add_wide(batch, key, surf_wide_is_one(key) && unit_random_below(2));
	return surf_batch_add(batch, key);
}

/* Codes sorted keys as a build does, in batches: like each key by itself. */
static void
check_coder(const SurfCode *code, FilterBytes *keys, uint32_t n)
{
	static SurfCoder coder;
	static SurfBatch batch;
	uint32_t	i;

	surf_coder_begin(&coder, code);
	surf_batch_begin(&batch);
	for (i = 0; i < n; i++)
	{
		FilterBytes key = keys[i];
		uint8_t		coded[2 * FILTER_MAX_KEY + 16];
		const uint8_t *end;
		uint32_t	common;

		memset(coded, 0xA5, sizeof(coded));
		if (i > 0 && filter_bytes_compare(keys[i - 1], key) == 0)
		{
			CHECK(!add_somehow(&batch, key), "a key is there twice");
			continue;
		}
		if (surf_batch_is_full(&batch))
			surf_batch_next(&batch);
		CHECK(add_somehow(&batch, key), "a key is left out");
		common = batch.keys[batch.n].common;
		if (i > 0)
		{
			CHECK(common == filter_common_prefix(keys[i - 1], key), "%u bytes", common);
			surf_coder_compare(&coder, &batch, &batch.keys[batch.n]);
		}
		CHECK(filter_bytes_compare(surf_batch_key(&batch, batch.n), key) == 0,
			  "another key");
		common = unit_random_below(10) == 0 ? 0 : common;
		end = surf_coder_code(&coder, surf_batch_key(&batch, batch.n).data,
							  key.len, common, coded);
		check_coded(&coder, key, common, coded, end);
	}
}

static void
test_coder(void)
{
	int			round;

	for (round = 0; round < 100; round++)
	{
		FilterBytes keys[100];
		uint64_t	weights[SURF_SYMBOLS];
		uint8_t		table[SURF_CODE_MAX_SIZE];
		SurfCode	code;
		uint32_t	n = 0;
		uint32_t	i;

		make_weights(weights, 0);
		code = round % 10 == 1 ? open_longest_code(table) :
			open_code(round % 10 == 0 ? NULL : weights, table);
		for (i = 0; i < 100; i++)
		{
			keys[n] = i > 0 && n > 0 && unit_random_below(2) ?
				make_near(keys[n - 1]) :
				make_key((KeyKind) unit_random_below(KEY_KINDS), (int) i);
			if (keys[n].len <= FILTER_MAX_KEY)
				n++;
			else
				free_bytes(keys[n]);
		}
		qsort(keys, n, sizeof(FilterBytes), compare_keys);
		check_coder(&code, keys, n);
		while (n > 0)
			free_bytes(keys[--n]);
	}
}

/* Hashes are stored: these must not change while the versions of roots are the same. */
static void
test_hash(void)
{
	static const char *const keys[] = {"", "a", "abcdefg", "abcdefgh", "abcdefghi"};
	static const uint64_t hashes[] = {
		UINT64_C(0xe6d24d7e0390ae94), UINT64_C(0xb127721577404af2),
		UINT64_C(0xebeacf65c62684ec), UINT64_C(0xcbac233881885640),
		UINT64_C(0xd2c25433126632ca)
	};
	uint32_t	counts[64] = {0};
	uint32_t	i;
	uint32_t	j;

	for (i = 0; i < 5; i++)
	{
		FilterBytes key = {(const uint8_t *) keys[i], strlen(keys[i])};

		CHECK(filter_hash(key) == hashes[i], "\"%s\": %016" PRIx64, keys[i],
			  filter_hash(key));
	}

	/* Each bit is set for about half of consecutive numbers. */
	for (i = 0; i < 10000; i++)
	{
		FilterBytes key = make_number(i);

		for (j = 0; j < 64; j++)
			counts[j] += filter_hash(key) >> j & 1;
		free_bytes(key);
	}
	for (j = 0; j < 64; j++)
		CHECK(counts[j] > 4700 && counts[j] < 5300, "bit %u: %u", j, counts[j]);
}

int
main(void)
{
	unit_begin("surf code");
	RUN(test_tables);
	RUN(test_codes_are_optimal);
	RUN(test_order);
	RUN(test_coder);
	RUN(test_hash);
	return unit_end();
}
