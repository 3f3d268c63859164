/*-------------------------------------------------------------------------
 *
 * test_surf_damage.c
 *	  SuRF on damaged pages and roots.
 *
 *-------------------------------------------------------------------------
 */
#include "byte_keys.h"

/* Damages a run in a few places. */
static void
damage(uint8_t *bytes, size_t len, uint32_t page_size)
{
	uint32_t	changes = unit_random_below(8);

	while (len > 0 && changes-- > 0)
	{
		size_t		at = unit_random_below(len);

		/* Headers are where damage shows most. */
		if (unit_random_below(2) == 0)
			at -= at % page_size - unit_random_below(at % page_size < 16 ? 1 : 16);
		bytes[at] = (uint8_t) (unit_random_below(3) == 0 ? unit_random() :
							   bytes[at] ^ 1 << unit_random_below(8));
	}
}

/* Damaged pages and roots: any answer, but no harm. */
static void
test_hostile_bytes(void)
{
	int			round;

	for (round = 0; round < 300; round++)
	{
		KeyKind		kind = (KeyKind) unit_random_below(KEY_KINDS);
		FilterOptions options = make_options((FilterSuffix) unit_random_below(5),
											 4 + unit_random_below(30),
											 unit_random_below(2) ? SMALL_PAGE : PAGE_SIZE,
											 unit_random_below(2) ? 450 : 2500);
		Strings		strings = build_random(kind, unit_random_below(2000), &options);
		uint8_t    *pages = strings.run.pages;
		uint8_t    *root = strings.run.root;
		uint32_t	root_len = strings.run.root_len;
		size_t		len = (size_t) strings.run.npages * options.page_size;
		int			i;

		strings.is_strict = true;
		for (i = 0; i < 60; i++)
		{
			FilterBytes a = make_bound(&strings, kind);
			FilterBytes b = make_near(a);
			FilterByteRange range = make_range(a, b);

			strings.run.pages = malloc(len > 0 ? len : 1);
			if (len > 0)
				memcpy(strings.run.pages, pages, len);
			if (unit_random_below(4) > 0)
				damage(strings.run.pages, len, options.page_size);
			else
			{
				size_t		at;

				for (at = 2 + unit_random_below(200); at < len; at++)
					strings.run.pages[at] = (uint8_t) unit_random();
			}
			strings.run.root_len = unit_random_below(10) ? root_len :
				unit_random_below(root_len + 1);
			strings.run.root = malloc(strings.run.root_len + 1);
			memcpy(strings.run.root, root, strings.run.root_len);
			if (unit_random_below(3) == 0)
				damage(strings.run.root, strings.run.root_len, 1 << 20);
			strings.run.root = realloc(strings.run.root, strings.run.root_len + 1);
			ask(&strings, &range);
			count(&strings, &range);
			filter_root_fits(strings.run.kind, strings.run.root, strings.run.root_len,
							 strings.run.npages, 0, 0);
			range.hi = range.lo;
			ask(&strings, &range);
			free(strings.run.pages);
			free(strings.run.root);
			free_bytes(a);
			free_bytes(b);
		}
		strings.run.pages = pages;
		strings.run.root = root;
		strings.run.root_len = root_len;
		free_strings(&strings);
	}
}

/* What cannot be a run, or cannot be read, is UNKNOWN. */
static void
test_unknown(void)
{
	static const char *const few[] = {"a", "b"};
	FilterOptions options = make_options(FILTER_SUFFIX_REAL, 14, SMALL_PAGE, 2500);
	Strings		strings = build_few(few, 2, &options);
	FilterByteRange range = range_of(strings.keys[0], strings.keys[0]);
	int			i;

	for (i = 0; i < 2; i++)
	{
		strings.run.root[i] ^= 0x80;
		CHECK(ask(&strings, &range) == FILTER_UNKNOWN, "byte %d of the root", i);
		strings.run.root[i] ^= 0x80;
	}
	strings.run.pages[0] ^= 0x80;
	CHECK(count(&strings, &range) == -1, "count on a page");
	CHECK(ask(&strings, &range) == FILTER_UNKNOWN, "page");
	strings.run.pages[0] ^= 0x80;
	strings.reader.reader.npages = 0;
	CHECK(ask(&strings, &range) == FILTER_UNKNOWN, "no page");
	free_strings(&strings);
}

/* Counts answers to points that are not as expected. */
static int
other_answers(Strings *strings, FilterAnswer expected)
{
	int			others = 0;
	size_t		i;

	for (i = 0; i < strings->n; i++)
	{
		FilterByteRange point = range_of(strings->keys[i], strings->keys[i]);

		others += ask(strings, &point) != expected;
	}
	return others;
}

/* So is what leads out of a page, or to leaves it does not have. */
static void
test_impossible_pages(void)
{
	FilterOptions options = make_options(FILTER_SUFFIX_NONE, 14, PAGE_SIZE, 2500);
	Strings		strings = build_random(WORDS, 2000, &options);
	uint8_t    *page = strings.run.pages;
	uint32_t	nparts = page[10] | page[11] << 8;
	uint32_t	starts = 22 + page[8] + 2 * nparts;
	uint32_t	rest = starts + 4 * nparts;
	uint8_t    *copy = malloc(PAGE_SIZE);
	uint32_t	i;

	CHECK(strings.run.npages == 1 && nparts > 1, "%u pages, %u parts",
		  strings.run.npages, nparts);
	CHECK(other_answers(&strings, FILTER_YES) == 0, "before");
	memcpy(copy, page, PAGE_SIZE);

	memset(page + rest, 0, PAGE_SIZE - rest);
	CHECK(other_answers(&strings, FILTER_UNKNOWN) == 0, "no nodes");
	memset(page + rest, 0x6D, PAGE_SIZE - rest);
	page[1] |= 15;
	CHECK(other_answers(&strings, FILTER_UNKNOWN) < (int) strings.n,
		  "skips are too long");
	memcpy(page, copy, PAGE_SIZE);

	for (i = 0; i < nparts; i++)
		page[starts + 4 * i + 1] ^= 0x80;
	CHECK(other_answers(&strings, FILTER_UNKNOWN) == 0, "leaves that are not there");

	/* Every other one as it was, but not the last, which nothing follows. */
	for (i = nparts % 2; i < nparts; i += 2)
		page[starts + 4 * i + 1] ^= 0x80;
	CHECK(other_answers(&strings, FILTER_UNKNOWN) == 0, "leaves in disorder");
	memcpy(page, copy, PAGE_SIZE);

	for (i = 0; i < 2 * nparts; i++)
		page[starts - 2 * nparts + i] = 0;
	CHECK(other_answers(&strings, FILTER_YES) > (int) strings.n / 2,
		  "heads that are all the same");
	memcpy(page, copy, PAGE_SIZE);

	free(copy);
	free_strings(&strings);
}

int
main(void)
{
	unit_begin("surf damage");
	RUN(test_hostile_bytes);
	RUN(test_unknown);
	RUN(test_impossible_pages);
	return unit_end();
}
