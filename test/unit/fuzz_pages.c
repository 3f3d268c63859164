/*-------------------------------------------------------------------------
 *
 * fuzz_pages.c
 *	  libFuzzer target: SNARF runs from any keys, and any bytes as pages.
 *
 * The first byte chooses.  Even: the rest are keys to build from; every key
 * must be found, by ranges of the fuzzer's choosing, too, and be counted, and
 * exact runs must not find more.  Odd: the rest are a query, a root and pages, as damaged as
 * can be; no query may leave them or run in circles.
 *
 *-------------------------------------------------------------------------
 */
#include "numbers.h"

int			LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(bool condition)
{
	if (!condition)
		abort();
}

static uint64_t
take64(const uint8_t **data, size_t *size)
{
	uint64_t	value = 0;
	size_t		len = *size < 8 ? *size : 8;

	memcpy(&value, *data, len);
	*data += len;
	*size -= len;
	return value;
}

/* Keys of the bytes: as they are, or distances of various sizes. */
static uint64_t *
take_keys(const uint8_t *data, size_t size, uint8_t shift, size_t *n)
{
	uint64_t   *keys = malloc((size / 2 + 1) * sizeof(uint64_t));
	uint64_t	last = 0;

	*n = 0;
	while (size >= 2)
	{
		uint64_t	step;

		if (shift >= 60)
			step = take64(&data, &size);
		else
		{
			step = (uint64_t) (data[0] | data[1] << 8) << shift >> 8;
			data += 2;
			size -= 2;
		}
		last += step;
		keys[(*n)++] = last;
	}
	qsort(keys, *n, sizeof(uint64_t), compare_numbers);
	return keys;
}

static void
check_answer(Numbers *numbers, uint64_t lo, uint64_t hi)
{
	FilterAnswer answer;
	uint64_t	truth;
	uint64_t	count;

	if (lo > hi)
		return;
	answer = ask(numbers, lo, hi);
	truth = count_of(numbers, lo, hi);
	require(ask_count(numbers, lo, hi, &count) &&
			(count == 0) == (answer == FILTER_NO));
	if (numbers->run.kind == FILTER_KIND_EXACT)
		require(count == truth);
	else
		require(count < truth + 2 * SNARF_BLOCK_KEYS &&
				(count >= truth || numbers->lossy_bitmaps));
	if (holds(numbers, lo, hi))
		require(answer == FILTER_YES);
	else
		require(answer != FILTER_UNKNOWN &&
				(numbers->run.kind != FILTER_KIND_EXACT || answer == FILTER_NO));
}

static void
fuzz_keys(const uint8_t *data, size_t size)
{
	static const uint32_t page_sizes[] = {64, 128, 512, 8152};
	Numbers		numbers;
	uint64_t   *keys;
	uint64_t	mark;
	size_t		n;
	size_t		i;

	if (size < 11)
		return;
	mark = take64(&data, &size);
	keys = take_keys(data + 3, size - 3, data[0] % 64, &n);
	numbers = build_rows(keys, n, n * (1 + data[1] / 64), 4 + data[2] % 61,
						 page_sizes[data[1] % 4], 76 + data[2]);
	for (i = 0; i < n; i++)
	{
		uint64_t	other = keys[(i * 7 + mark) % n];

		check_answer(&numbers, keys[i], keys[i]);
		check_answer(&numbers, keys[i] + 1, keys[i] + 1);
		check_answer(&numbers, keys[i] + 1, other);
		check_answer(&numbers, other, keys[i] - 1);
		check_answer(&numbers, keys[i], mark);
		check_answer(&numbers, mark, keys[i]);
	}
	check_answer(&numbers, mark, mark);
	check_answer(&numbers, 0, UINT64_MAX);
	free_numbers(&numbers);
}

static void
fuzz_bytes(const uint8_t *data, size_t size)
{
	StrictReader reader;
	uint64_t	lo;
	uint64_t	hi;
	uint64_t	count;
	uint32_t	page_size;
	uint32_t	root_len;
	uint8_t    *root;

	if (size < 18)
		return;
	lo = take64(&data, &size);
	hi = take64(&data, &size);
	page_size = 8 + 8 * (data[0] % 32);
	root_len = data[1] < size - 2 ? data[1] : (uint32_t) size - 2;
	root = malloc(root_len > 0 ? root_len : 1);
	memcpy(root, data + 2, root_len);
	data += 2 + root_len;
	size -= 2 + root_len;
	strict_reader_init(&reader, data, (uint32_t) (size / page_size), page_size);
	filter_query_u64(FILTER_KIND_SNARF, root, root_len, &reader.reader, lo, hi);
	filter_query_u64(FILTER_KIND_SNARF, root, root_len, &reader.reader, lo, lo);
	filter_count_u64(FILTER_KIND_SNARF, root, root_len, &reader.reader, lo, hi,
					 &count);
	require(strict_reader_end(&reader));
	free(root);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] % 2 == 0)
		fuzz_keys(data + 1, size - 1);
	else
		fuzz_bytes(data + 1, size - 1);
	return 0;
}
