/*-------------------------------------------------------------------------
 *
 * fuzz_sorted.c
 *	  libFuzzer target: sorted runs of any keys, and any root and pages.
 *
 * The first byte chooses.  Even: the rest are keys, of which every other one is in
 * the run; questions for all ranges between them must say what an array says.  Odd:
 * the rest are a root and two pages, as damaged as can be.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "filter/base/port.h"
#include "sorted_keys.h"

#define MAX_KEYS 40
#define PAGE_SIZE 1024

int			LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(bool condition)
{
	if (!condition)
		abort();
}

/* Keys, each behind its length, which is that of a page's quarter at most. */
static uint32_t
take_keys(const uint8_t *data, size_t size, FilterBytes *keys)
{
	uint32_t	n = 0;

	while (size > 0 && n < MAX_KEYS)
	{
		uint32_t	len = data[0];

		data++;
		size--;
		if (len > size)
			len = (uint32_t) size;
		keys[n].data = data;
		keys[n++].len = len;
		data += len;
		size -= len;
	}
	return n;
}

static void
fuzz_keys(const uint8_t *data, size_t size)
{
	FilterBytes asked[MAX_KEYS];
	FilterBytes keys[MAX_KEYS];
	SortedKeys	sorted = {keys};
	uint32_t	n;
	uint32_t	i;
	uint32_t	j;

	if (size < 2)
		return;
	n = take_keys(data + 1, size - 1, asked);
	qsort(asked, n, sizeof(FilterBytes), sorted_compare);
	for (i = 0; i < n; i += 2)
		keys[sorted.n++] = asked[i];
	sorted.page_size = PAGE_SIZE;
	sorted_keys_build(&sorted, SORTED_MIN_ROOT + data[0]);
	require(sorted_keys_read_back(&sorted));
	for (i = 0; i < n; i++)
		for (j = 0; j < n; j++)
		{
			unsigned	shape = data[0] + i + j;
			FilterByteRange range = {asked[i], asked[j], shape & 1, shape & 2, shape & 4};

			require(sorted_keys_agree(&sorted, &range));
		}
	filter_run_free(&sorted.run);
}

static void
fuzz_pages(const uint8_t *data, size_t size)
{
	static uint8_t pages[2 * PAGE_SIZE];
	StrictReader reader;
	SortedCursor cursor;
	FilterBytes key;
	FilterRanks ranks;
	FilterByteRange range;
	uint32_t	root_len;
	uint8_t    *root;

	if (size < 40)
		return;
	memset(&range, 0, sizeof(range));
	range.lo.data = data;
	range.hi.data = data + 10;
	range.lo.len = range.hi.len = 10;
	root_len = data[20];
	data += 21;
	size -= 21;
	if (root_len > size)
		root_len = (uint32_t) size;
	root = malloc(root_len + 1);
	memcpy(root, data, root_len);
	if (root_len > 0 && size & 1)
		root[0] = SORTED_ROOT_MAGIC;
	data += root_len;
	size -= root_len;
	memset(pages, 0, sizeof(pages));
	memcpy(pages, data, size < sizeof(pages) ? size : sizeof(pages));
	pages[0] = pages[PAGE_SIZE] = SORTED_PAGE_MAGIC;
	strict_reader_init(&reader, pages, 2, PAGE_SIZE);
	sorted_query(root, root_len, &reader.reader, &range);
	sorted_ranks(root, root_len, &reader.reader, &range, &ranks);
	if (sorted_cursor_begin(&cursor, root, root_len, &reader.reader))
		while (sorted_cursor_next(&cursor, &key) == FILTER_YES)
			require(key.len <= FILTER_MAX_KEY);
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
		fuzz_pages(data + 1, size - 1);
	return 0;
}
