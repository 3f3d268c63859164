/*-------------------------------------------------------------------------
 *
 * test_fence.c
 *	  Fences against a linear search over the separators.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "filter/base/bits.h"
#include "filter/base/fence.h"
#include "filter/base/port.h"
#include "strict_reader.h"
#include "unit.h"

#define MAX_PAGES 3000

/* Page i holds the keys from firsts[i] to lasts[i]. */
static FilterBytes firsts[MAX_PAGES];
static FilterBytes lasts[MAX_PAGES];

typedef struct Tree
{
	uint32_t	npages;
	uint8_t    *pages;
	uint32_t	total_pages;
	uint8_t    *root;
	uint32_t	root_len;
	uint32_t	page_size;
	bool		numbers;
	FilterMemoryReader reader;
} Tree;

static FilterBytes
copy_bytes(const void *data, uint32_t len)
{
	FilterBytes result;
	uint8_t    *copy = malloc(len > 0 ? len : 1);

	memcpy(copy, data, len);
	result.data = copy;
	result.len = len;
	return result;
}

static int
compare_for_qsort(const void *a, const void *b)
{
	return filter_bytes_compare(*(const FilterBytes *) a,
								*(const FilterBytes *) b);
}

/* Builds the fences of n pages from firsts and lasts. */
static Tree
build(uint32_t n, uint32_t page_size, uint32_t root_max)
{
	Tree		tree;
	FenceBuild *fences = fence_build_begin(page_size, root_max);
	uint32_t	i;

	memset(&tree, 0, sizeof(tree));
	for (i = 0; i < n; i++)
		fence_add_page(fences, i > 0 ? lasts[i - 1] : firsts[0], firsts[i]);
	tree.npages = tree.total_pages = n;
	tree.page_size = page_size;
	tree.pages = filter_alloc((size_t) n * page_size);
	fence_build_end(fences, &tree.pages, &tree.total_pages, &tree.root,
					&tree.root_len);
	CHECK(tree.root_len <= root_max, "root %u > %u", tree.root_len, root_max);
	filter_memory_reader_init(&tree.reader, tree.pages, tree.total_pages,
							  page_size);
	return tree;
}

static void
free_tree(Tree *tree)
{
	uint32_t	i;

	for (i = 0; i < tree->npages; i++)
	{
		free((void *) firsts[i].data);
		free((void *) lasts[i].data);
	}
	filter_free(tree->pages);
	filter_free(tree->root);
}

/* The last page whose first key is <= key; 0 for those below all. */
static uint32_t
last_page_at(uint32_t n, FilterBytes key)
{
	uint32_t	low = 0;
	uint32_t	high = n;

	while (high - low > 1)
	{
		uint32_t	middle = (low + high) / 2;

		if (filter_bytes_compare(firsts[middle], key) <= 0)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The same way for numbers leads to the same place. */
static void
check_number(Tree *tree, const FilterBytes *lo, const FilterBytes *hi,
			 const FencePosition *expected)
{
	FencePosition position;
	uint64_t	low = __builtin_bswap64(bits_load64(lo->data));
	uint64_t	high = __builtin_bswap64(bits_load64(hi->data));

	CHECK(fence_find_number(tree->root, tree->root_len, &tree->reader.reader,
							low, high, &position) &&
		  position.page == expected->page &&
		  position.range_crosses == expected->range_crosses,
		  "[%" PRIu64 ", %" PRIu64 "]: page %u, not %u", low, high,
		  position.page, expected->page);
	CHECK(position.guess < 65536 || position.guess == FENCE_NO_GUESS,
		  "guess %u", position.guess);
}

/*
 * Asks for [lo, hi]: the page must be the one to hold lo or, where separators
 * were cut, left of it with the crossing noticed.
 */
static void
check_find(Tree *tree, const FilterBytes *lo, const FilterBytes *hi,
		   bool hi_exclusive, bool cut)
{
	FencePosition position;
	uint32_t	expected;
	uint32_t	page;
	bool		found = fence_find(tree->root, tree->root_len,
								   &tree->reader.reader, lo, hi, hi_exclusive,
								   &position);

	CHECK(found, "%u pages", tree->npages);
	if (!found)
		return;
	if (tree->numbers && lo != NULL && hi != NULL && !hi_exclusive)
		check_number(tree, lo, hi, &position);
	page = position.page;
	CHECK(page < tree->npages, "page %u of %u", page, tree->npages);

	/* Keys that belong to a page must lead there. */
	expected = lo != NULL ? last_page_at(tree->npages, *lo) : 0;
	if (lo != NULL && filter_bytes_compare(*lo, lasts[expected]) <= 0)
	{
		if (cut)
			CHECK(page == expected || (page < expected && position.range_crosses),
				  "page %u, not %u", page, expected);
		else
			CHECK(page == expected, "page %u, not %u", page, expected);
	}
	else
		CHECK(page == expected || page == expected + 1 || cut,
			  "page %u, not %u or the next", page, expected);

	/* A range that holds the next page's first key crosses. */
	if (page + 1 < tree->npages)
	{
		int			order = 1;

		if (hi != NULL)
			order = filter_bytes_compare(*hi, firsts[page + 1]);
		if (order > 0 || (order == 0 && !hi_exclusive))
			CHECK(position.range_crosses, "page %u", page);
		if (hi != NULL && filter_bytes_compare(*hi, lasts[page]) <= 0)
			CHECK(!position.range_crosses || cut, "page %u", page);
	}
	else
		CHECK(!position.range_crosses, "last page");
}

/* Sorts the 2 n byte strings and makes them the bounds of n pages. */
static void
set_pages(FilterBytes *keys, uint32_t n)
{
	uint32_t	i;

	qsort(keys, 2 * n, sizeof(FilterBytes), compare_for_qsort);
	for (i = 0; i < n; i++)
	{
		firsts[i] = keys[2 * i];
		lasts[i] = keys[2 * i + 1];
	}
}

/* Drops duplicates: returns how many are left, an even number. */
static uint32_t
make_distinct(FilterBytes *keys, uint32_t n)
{
	uint32_t	kept = 0;
	uint32_t	i;

	qsort(keys, n, sizeof(FilterBytes), compare_for_qsort);
	for (i = 0; i < n; i++)
	{
		if (kept > 0 && filter_bytes_compare(keys[kept - 1], keys[i]) == 0)
			free((void *) keys[i].data);
		else
			keys[kept++] = keys[i];
	}
	if (kept % 2 == 1)
		free((void *) keys[--kept].data);
	return kept;
}

static void
check_all(Tree *tree, FilterBytes (*make) (void), bool cut)
{
	uint32_t	i;

	for (i = 0; i < tree->npages; i++)
	{
		check_find(tree, &firsts[i], &firsts[i], false, cut);
		check_find(tree, &firsts[i], &lasts[i], i % 2, cut);
		check_find(tree, &lasts[i], NULL, false, cut);
		if (i > 0)
		{
			check_find(tree, &lasts[i - 1], &firsts[i], false, cut);
			check_find(tree, &lasts[i - 1], &firsts[i], true, cut);
		}
		check_find(tree, NULL, &firsts[i], true, cut);
	}
	check_find(tree, NULL, NULL, false, cut);
	for (i = 0; i < 2000; i++)
	{
		FilterBytes a = make();
		FilterBytes b = make();

		if (filter_bytes_compare(a, b) <= 0)
			check_find(tree, &a, &b, i % 2, cut);
		else
			check_find(tree, &b, &a, i % 2, cut);
		free((void *) a.data);
		free((void *) b.data);
	}
}

/* A number as its eight big-endian bytes. */
static FilterBytes
number_key(uint64_t value)
{
	uint8_t		bytes[8];

	bits_store64(bytes, __builtin_bswap64(value));
	return copy_bytes(bytes, 8);
}

/* Numbers of any size. */
static FilterBytes
make_number(void)
{
	return number_key(unit_random() >> unit_random_below(64));
}

/* Numbers spread evenly. */
static FilterBytes
make_even(void)
{
	return number_key(unit_random());
}

/* Numbers that only their last two bytes tell apart. */
static FilterBytes
make_dense(void)
{
	return number_key(UINT64_C(0x123456789abc0000) + unit_random_below(20000));
}

/* Short strings over few letters, 0x00 and 0xFF among them. */
static FilterBytes
make_string(void)
{
	static const uint8_t letters[] = {0, 1, 'a', 'b', 254, 255};
	uint8_t		bytes[16];
	uint32_t	len = unit_random_below(17);
	uint32_t	i;

	for (i = 0; i < len; i++)
		bytes[i] = letters[unit_random_below(6)];
	return copy_bytes(bytes, len);
}

/* Up to FILTER_MAX_KEY bytes with long shared prefixes. */
static FilterBytes
make_long(void)
{
	uint8_t		bytes[FILTER_MAX_KEY];
	uint32_t	len = unit_random_below(FILTER_MAX_KEY + 1);

	memset(bytes, 'x', sizeof(bytes));
	if (len > 0)
		bytes[unit_random_below(len)] = (uint8_t) unit_random();
	if (len > 0)
		bytes[len - 1] = (uint8_t) unit_random();
	return copy_bytes(bytes, len);
}

static void
check_kind(FilterBytes (*make) (void), uint32_t n, uint32_t page_size,
		   uint32_t root_max, bool cut)
{
	static FilterBytes keys[2 * MAX_PAGES];
	Tree		tree;
	uint32_t	i;

	for (i = 0; i < 2 * n; i++)
		keys[i] = make();
	n = make_distinct(keys, 2 * n) / 2;
	set_pages(keys, n);
	tree = build(n, page_size, root_max);
	tree.numbers = make == make_number || make == make_even ||
		make == make_dense;
	if (tree.numbers)
		CHECK(tree.total_pages - n <= fence_pages_bound(n, page_size, root_max, 8),
			  "%u fence pages for %u pages", tree.total_pages - n, n);
	check_all(&tree, make, cut);
	free_tree(&tree);
}

static void
test_numbers(void)
{
	check_kind(make_number, 1, 512, 48, false);
	check_kind(make_number, 2, 512, 48, false);
	check_kind(make_number, 3, 512, 48, false);
	check_kind(make_number, 100, 64, 48, false);
	check_kind(make_number, 500, 512, 100, false);
	check_kind(make_number, 3000, 512, 2500, false);
	check_kind(make_number, 3000, 8152, 64, false);
	check_kind(make_even, 3000, 8152, 64, false);
	check_kind(make_even, 1000, 256, 64, false);
	check_kind(make_dense, 2, 512, 48, false);
	check_kind(make_dense, 1500, 8152, 64, false);
	check_kind(make_dense, 1000, 256, 64, false);
}

/*
 * Where in its page a number is can be told for nearly all numbers, also in a
 * tree whose root has one separator of eight bytes.
 */
static void
test_guess(void)
{
	static FilterBytes keys[1001];
	uint32_t	n = 1001;
	uint32_t	known = 0;
	uint32_t	i;
	Tree		tree;

	for (i = 0; i < n; i++)
		keys[i] = make_even();
	n = make_distinct(keys, n) - 1;
	for (i = 0; i < n; i++)
	{
		firsts[i] = keys[i];
		lasts[i] = number_key(__builtin_bswap64(bits_load64(keys[i + 1].data)) - 1);
	}
	free((void *) keys[n].data);
	tree = build(n, 8152, 64);
	tree.numbers = true;
	CHECK(tree.total_pages == n + 2, "%u pages", tree.total_pages);
	check_all(&tree, make_even, false);
	for (i = 0; i < 1000; i++)
	{
		uint64_t	number = unit_random();
		FencePosition position;

		CHECK(fence_find_number(tree.root, tree.root_len, &tree.reader.reader,
								number, number, &position), "not found");
		known += position.guess != FENCE_NO_GUESS;
	}
	CHECK(known > 900, "%u of 1000 known", known);
	free_tree(&tree);
}

static void
test_strings(void)
{
	check_kind(make_string, 1, 512, 48, false);
	check_kind(make_string, 2, 512, 48, false);
	check_kind(make_string, 400, 128, 48, false);
	check_kind(make_string, 2000, 512, 1000, false);
	check_kind(make_string, 2000, 8152, 2500, false);
}

/* Separators of any length fit real pages and roots ... */
static void
test_long_strings(void)
{
	check_kind(make_long, 300, 8152, FILTER_MAX_ROOT, false);
	check_kind(make_long, 300, 1100, 1100, false);
}

/* ... and are cut where they do not. */
static void
test_cut_separators(void)
{
	check_kind(make_long, 300, 512, 300, true);
	check_kind(make_long, 1000, 512, 64, true);
	check_kind(make_string, 2000, 512, FENCE_MIN_ROOT, false);
}

static void
test_no_pages(void)
{
	Tree		tree = build(0, 512, 100);
	FencePosition position;

	CHECK(tree.root == NULL && tree.root_len == 0, "root");
	CHECK(!fence_find(tree.root, tree.root_len, &tree.reader.reader, NULL, NULL,
					  false, &position), "found");
	free_tree(&tree);
}

/* A separator that is a key itself: hi_exclusive decides. */
static void
test_exclusive_end(void)
{
	static const char *const names[] = {"a", "ab", "b", "bb"};
	Tree		tree;
	FencePosition position;
	FilterBytes lo;
	FilterBytes hi;
	int			i;

	for (i = 0; i < 2; i++)
	{
		firsts[i] = copy_bytes(names[2 * i], 1);
		lasts[i] = copy_bytes(names[2 * i + 1], 2);
	}
	tree = build(2, 512, 100);
	lo = firsts[0];
	hi = firsts[1];
	CHECK(fence_find(tree.root, tree.root_len, &tree.reader.reader, &lo, &hi,
					 true, &position) && position.page == 0 &&
		  !position.range_crosses, "[a, b)");
	CHECK(fence_find(tree.root, tree.root_len, &tree.reader.reader, &lo, &hi,
					 false, &position) && position.page == 0 &&
		  position.range_crosses, "[a, b]");
	free_tree(&tree);
}

/* A fence page that names itself as its child. */
static void
test_circle(void)
{
	uint8_t		pages[2 * 64];
	uint8_t		node[12] = {0xFE, 1, 1, 0, 0, 0, 100, 0, 1, 0, 0, 0};
	StrictReader reader;
	FencePosition position;

	memset(pages, 0, sizeof(pages));
	memcpy(pages + 64, node, sizeof(node));
	strict_reader_init(&reader, pages, 2, 64);
	CHECK(!fence_find(node, sizeof(node), &reader.reader, NULL, NULL, false,
					  &position), "found");
	CHECK(strict_reader_end(&reader) && reader.reads <= 2, "%d reads",
		  reader.reads);
}

/* Damages count bytes, half of them where nodes have their headers. */
static void
damage(uint8_t *bytes, size_t len, uint32_t node_size, int count)
{
	while (count-- > 0 && len > 0)
	{
		size_t		at = unit_random_below(len);

		if (count % 2 == 0)
			at = at / node_size * node_size + unit_random_below(12);
		if (at < len)
			bytes[at] = unit_random_below(3) == 0 ? (uint8_t) unit_random() :
				(uint8_t) (bytes[at] + unit_random_below(3) - 1);
	}
}

/* Damaged nodes lead anywhere within the run, or nowhere. */
/* Asks damaged copies of fences over such keys. */
static void
check_hostile(FilterBytes (*make) (void))
{
	static FilterBytes keys[2 * MAX_PAGES];
	Tree		tree;
	uint32_t	n = 300;
	uint32_t	i;
	int			round;

	for (i = 0; i < 2 * n; i++)
		keys[i] = make();
	n = make_distinct(keys, 2 * n) / 2;
	set_pages(keys, n);
	tree = build(n, 256, 80);

	for (round = 0; round < 20000; round++)
	{
		FilterBytes lo = make();
		FilterBytes hi = make();
		FencePosition position;
		StrictReader reader;
		size_t		size = (size_t) tree.total_pages * 256;
		uint8_t    *pages = malloc(size);
		uint32_t	root_len = tree.root_len;
		uint64_t	first = unit_random();
		uint8_t    *root;

		if (unit_random_below(10) == 0)
			root_len = unit_random_below(root_len + 1);
		root = malloc(root_len > 0 ? root_len : 1);
		memcpy(pages, tree.pages, size);
		memcpy(root, tree.root, root_len);
		damage(pages + n * 256, size - n * 256, 256, unit_random_below(20));
		damage(root, root_len, 256, unit_random_below(3));
		strict_reader_init(&reader, pages, tree.total_pages, 256);
		if (fence_find(root, root_len, &reader.reader, &lo, &hi, false, &position))
			CHECK(position.page < tree.total_pages, "page %u", position.page);
		if (fence_find_number(root, root_len, &reader.reader, first,
							  first + round, &position))
			CHECK(position.page < tree.total_pages, "page %u", position.page);
		CHECK(strict_reader_end(&reader), "%d reads", reader.reads);
		free(root);
		free(pages);
		free((void *) lo.data);
		free((void *) hi.data);
	}
	free_tree(&tree);
}

static void
test_hostile_bytes(void)
{
	check_hostile(make_string);
	check_hostile(make_even);
}

int
main(void)
{
	unit_begin("fence");
	RUN(test_numbers);
	RUN(test_guess);
	RUN(test_strings);
	RUN(test_long_strings);
	RUN(test_cut_separators);
	RUN(test_no_pages);
	RUN(test_exclusive_end);
	RUN(test_circle);
	RUN(test_hostile_bytes);
	return unit_end();
}
