/*-------------------------------------------------------------------------
 *
 * sorted_build.c
 *	  Building sorted runs; sorted.h has the layout of their pages.
 *
 * A page takes keys as long as they fit.  All keys of a page share the prefix
 * that the first and the last one share.  So the size of a page with one more
 * key follows from these two and the sum of the lengths.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/base/bits.h"
#include "filter/base/fence.h"
#include "filter/base/port.h"
#include "filter/sorted/sorted.h"

struct SortedBuild
{
	FenceBuild *fences;
	uint32_t	page_size;
	uint64_t	nkeys;			/* on all pages */

	/* The page being filled: its keys, one after the other. */
	uint8_t    *bytes;
	size_t		nbytes;
	size_t		max_bytes;
	size_t	   *ends;			/* where each key ends in bytes */
	uint32_t	n;
	uint32_t	max_keys;
	uint32_t	prefix_len;
	bool		differ;			/* keys differ in length */

	/* The pages written, and the last key on them. */
	uint8_t    *pages;
	uint32_t	npages;
	uint32_t	max_pages;
	uint8_t		last[FILTER_MAX_KEY];
	uint32_t	last_len;
};

/* Begins a run; sizes in bytes. */
SortedBuild *
sorted_build_begin(uint32_t page_size, uint32_t root_max)
{
	SortedBuild *build = filter_alloc(sizeof(SortedBuild));

	/*
	 * Allocated here, since keys may be added in memory contexts that do not
	 * last.
	 */
	build->fences = fence_build_begin(page_size, root_max - SORTED_ROOT_HEADER);
	build->page_size = page_size;
	build->max_bytes = page_size;
	build->bytes = filter_alloc(build->max_bytes);
	build->max_keys = 64;
	build->ends = filter_alloc(build->max_keys * sizeof(size_t));
	build->max_pages = 1;
	build->pages = filter_alloc(page_size);
	return build;
}

/* Key i of the page being filled. */
static FilterBytes
build_key(const SortedBuild *build, uint32_t i)
{
	size_t		start = i == 0 ? 0 : build->ends[i - 1];
	FilterBytes key;

	key.data = build->bytes + start;
	key.len = (uint32_t) (build->ends[i] - start);
	return key;
}

/* Bytes of a page with n keys, of nbytes bytes in total. */
static size_t
page_bytes(uint32_t n, uint32_t prefix_len, bool differ, size_t nbytes)
{
	size_t		rests = nbytes - (size_t) n * prefix_len;

	return SORTED_PAGE_HEADER + prefix_len + rests +
		(differ ? 2 * (size_t) n : 0);
}

/* The next page to be written, zeroed. */
static uint8_t *
next_page(SortedBuild *build)
{
	uint8_t    *page;

	if (build->npages == build->max_pages)
	{
		build->max_pages *= 2;
		build->pages = filter_realloc(build->pages, (size_t) build->max_pages *
									  build->page_size);
	}
	page = build->pages + (size_t) build->npages++ * build->page_size;
	memset(page, 0, build->page_size);
	return page;
}

/* Writes the page being filled, which has at least one key. */
static void
write_page(SortedBuild *build)
{
	FilterBytes first = build_key(build, 0);
	FilterBytes prev = {build->last, build->last_len};
	uint8_t    *page = next_page(build);
	uint8_t    *ends = page + SORTED_PAGE_HEADER + build->prefix_len;
	uint8_t    *rests = ends + (build->differ ? 2 * build->n : 0);
	uint32_t	end = 0;
	uint32_t	i;

	fence_add_page(build->fences, prev, first);
	page[0] = SORTED_PAGE_MAGIC;
	page[1] = build->differ;
	bits_store16(page + 2, (uint16_t) build->n);
	bits_store16(page + 4, (uint16_t) build->prefix_len);
	if (!build->differ)
		bits_store16(page + 6, (uint16_t) (first.len - build->prefix_len));
	bits_store64(page + 8, build->nkeys);
	memcpy(page + SORTED_PAGE_HEADER, first.data, build->prefix_len);
	for (i = 0; i < build->n; i++)
	{
		FilterBytes key = build_key(build, i);
		uint32_t	len = key.len - build->prefix_len;

		memcpy(rests + end, key.data + build->prefix_len, len);
		end += len;
		if (build->differ)
			bits_store16(ends + 2 * i, (uint16_t) end);
		if (i == build->n - 1)
		{
			memcpy(build->last, key.data, key.len);
			build->last_len = key.len;
		}
	}
	build->nkeys += build->n;
	build->n = 0;
	build->nbytes = 0;
}

/* Adds a key to the page being filled. */
static void
put_key(SortedBuild *build, FilterBytes key, uint32_t prefix_len, bool differ)
{
	if (build->n == build->max_keys)
	{
		build->max_keys *= 2;
		build->ends = filter_realloc(build->ends,
									 build->max_keys * sizeof(size_t));
	}
	if (build->nbytes + key.len > build->max_bytes)
	{
		build->max_bytes = 2 * build->max_bytes + key.len;
		build->bytes = filter_realloc(build->bytes, build->max_bytes);
	}
	memcpy(build->bytes + build->nbytes, key.data, key.len);
	build->nbytes += key.len;
	build->ends[build->n++] = build->nbytes;
	build->prefix_len = prefix_len;
	build->differ = differ;
}

/* See sorted.h. */
void
sorted_add(SortedBuild *build, FilterBytes key)
{
	FilterBytes first;
	uint32_t	prefix_len;
	bool		differ;
	int			order;

	if (SORTED_PAGE_HEADER + key.len > build->page_size ||
		key.len > FILTER_MAX_KEY)
		filter_fail("key does not fit a page");
	if (build->n > 0)
	{
		order = filter_bytes_compare(build_key(build, build->n - 1), key);
		if (order == 0)
			return;
		if (order > 0)
			filter_fail("keys of a sorted run are not in order");
		first = build_key(build, 0);
		differ = build->differ || key.len != first.len;
		first.len = build->prefix_len;
		prefix_len = filter_common_prefix(first, key);
		if (build->n < UINT16_MAX &&
			page_bytes(build->n + 1, prefix_len, differ,
					   build->nbytes + key.len) <= build->page_size)
		{
			put_key(build, key, prefix_len, differ);
			return;
		}
		write_page(build);
	}
	put_key(build, key, key.len, false);
}

/* See sorted.h. */
void
sorted_build_end(SortedBuild *build, FilterRun *run)
{
	uint8_t    *fences;
	uint32_t	fences_len;

	if (build->n > 0)
		write_page(build);
	memset(run, 0, sizeof(FilterRun));
	run->kind = FILTER_KIND_SORTED;
	run->nkeys = build->nkeys;
	run->pages = build->pages;
	run->npages = build->npages;
	fence_build_end(build->fences, &run->pages, &run->npages, &fences,
					&fences_len);
	run->root_len = SORTED_ROOT_HEADER + fences_len;
	run->root = filter_alloc(run->root_len);
	run->root[0] = SORTED_ROOT_MAGIC;
	bits_store32(run->root + 4, build->npages);
	bits_store64(run->root + 8, build->nkeys);
	if (fences_len > 0)
		memcpy(run->root + SORTED_ROOT_HEADER, fences, fences_len);
	filter_free(fences);
	filter_free(build->bytes);
	filter_free(build->ends);
	filter_free(build);
}
