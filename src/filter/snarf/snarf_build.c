/*-------------------------------------------------------------------------
 *
 * snarf_build.c
 *	  Building a SNARF run from sorted numbers, in two passes.
 *
 * The first pass counts the distinct keys and packs them exactly, without
 * keeping the pages.  If these pages are within the budget (or within two bits
 * per row, whichever is more), the second pass packs them again and keeps the
 * pages: an exact run.  Else the keys are divided among the budget's pages,
 * and each page codes its keys as finely as it can.
 *
 * Pages get the same weight, not the same number of keys.  A few bits code
 * dense keys exactly, and more would be wasted: such keys weigh less, and
 * others get their bits.  The weight of a stretch of keys is computed from
 * their number and the distance they span.  Weights have a cap, with which all
 * fit the budget.
 *
 * The fences have the pages' first keys in full, so a range that reaches the
 * next page is known to have a key: a query never reads two content pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/base/fence.h"
#include "filter/base/port.h"
#include "filter/snarf/snarf.h"
#include "filter/snarf/snarf_page.h"

/*
 * A block that does not fit the rest of a page is halved, down to parts of
 * this size.
 */
#define MIN_PART 64

/* A key's weight is in quarters of a bit, and two bits at least. */
#define BIT_WEIGHT 4
#define MIN_WEIGHT (2 * BIT_WEIGHT)
#define MAX_WEIGHT (66 * BIT_WEIGHT)

struct SnarfBuild
{
	FilterOptions options;
	bool		adding;			/* second pass */
	uint64_t	nkeys;			/* distinct keys of this pass so far */
	uint64_t	min;
	uint64_t	last;
	uint64_t	nmeasured;		/* distinct keys of the first pass */
	bool		exact;			/* exact pages are (still) within bounds */
	bool		lossless;		/* no page lost anything */
	uint64_t	max_pages;		/* of an exact run, however many keys */
	uint64_t   *keys;			/* not in a page yet */
	uint32_t	nbuffered;
	uint32_t	max_buffered;

	/* Weighing keys by stretches. */
	uint32_t	stretch;		/* keys of each */
	uint32_t	stretch_left;	/* keys until this one ends */
	uint64_t	stretch_start;	/* the key before its first one */
	uint64_t	stretches[MAX_WEIGHT + 1];	/* number of each weight */
	uint32_t	weight_cap;
	uint64_t	total_weight;
	uint64_t	weight;			/* of the second pass so far */
	SnarfPage  *page;
	uint32_t	npages;			/* content pages finished */
	uint32_t	total_pages;	/* content pages planned */
	uint8_t    *pages;
	FenceBuild *fences;

	/* The layout of most pages, so that queries may guess it. */
	uint32_t	block_bytes;
	uint32_t	low_bytes;
	uint32_t	usual_pages;	/* pages with this layout */
};

/*
 * How many pages an exact run of at most nkeys keys may have: those of the budget, or of two bits
 * for each row.
 */
static uint64_t
exact_pages(const FilterOptions *options, uint64_t nkeys)
{
	uint64_t	bits = options->bits_per_key * nkeys;

	if (options->pages > 0)
		return options->pages;
	if (bits < 2 * options->nrows)
		bits = 2 * options->nrows;
	return filter_budget_pages(bits, options->page_size);
}

/* Begins the first pass. */
SnarfBuild *
snarf_build_begin(const FilterOptions *options)
{
	SnarfBuild *build = filter_alloc(sizeof(SnarfBuild));

	if (options->page_size < 64 || options->page_size > 65528 ||
		options->root_max < SNARF_ROOT_HEADER + FENCE_MIN_ROOT)
		filter_fail("page or root of a size that numbers cannot be coded in");
	build->options = *options;
	build->exact = true;
	build->max_pages = options->pages == 0 && options->nrows == 0 ? UINT64_MAX :
		exact_pages(options, options->nrows);
	build->max_buffered = SNARF_BLOCK_KEYS;
	build->keys = filter_alloc(build->max_buffered * sizeof(uint64_t));
	build->stretch = options->page_size / 128;
	if (build->stretch == 0)
		build->stretch = 1;
	else if (build->stretch > 64)
		build->stretch = 64;
	build->page = snarf_page_create(options->page_size);
	return build;
}

/* Eight big-endian bytes: they sort as the numbers do. */
static void
number_bytes(uint64_t number, uint8_t *bytes)
{
	int			i;

	for (i = 7; i >= 0; i--)
	{
		bytes[i] = (uint8_t) number;
		number >>= 8;
	}
}

/*
 * Counts the current page if its blocks have the usual size.  The first page
 * with several blocks sets the usual size.
 */
static void
note_usual_blocks(SnarfBuild *build)
{
	const SnarfBlock *last = &build->page->blocks[build->page->nblocks - 1];
	uint32_t	before = build->page->nblocks - 1;
	uint32_t	off;

	if (before == 0 || last->code > SNARF_MAX_LOW)
		return;
	if (build->block_bytes == 0)
	{
		build->block_bytes = last->start / before;
		build->low_bytes = last->code * (last->nkeys - 1) / 8;
	}
	off = build->block_bytes * before;
	off = off > last->start ? off - last->start : last->start - off;
	if (off <= 64)
		build->usual_pages++;
}

/* Ends the current page; in the second pass it becomes part of the run. */
static void
finish_page(SnarfBuild *build)
{
	if (build->adding)
	{
		uint64_t	first = build->page->blocks[0].begin;
		uint8_t		first_bytes[8];
		uint8_t		prev_bytes[8];
		FilterBytes first_key = {first_bytes, 8};
		FilterBytes prev_key = {prev_bytes, 8};

		if (build->npages == build->total_pages)
			filter_fail("keys differ from those measured");
		number_bytes(first, first_bytes);
		number_bytes(first - 1, prev_bytes);
		fence_add_page(build->fences, prev_key, first_key);
		note_usual_blocks(build);
		snarf_page_write(build->page, build->pages +
						 (size_t) build->npages * build->options.page_size);
	}
	else
	{
		snarf_page_reset(build->page);
		if (build->npages >= build->max_pages)
			build->exact = false;
	}
	build->npages++;
}

/* Adds keys to exact pages as one block or, at a page's end, as several. */
static void
pack_block(SnarfBuild *build, const uint64_t *keys, uint32_t n)
{
	while (!snarf_page_add(build->page, keys, n))
	{
		if (build->page->nblocks == 0 || n >= 2 * MIN_PART)
		{
			pack_block(build, keys, n / 2);
			keys += n / 2;
			n -= n / 2;
		}
		else
			finish_page(build);
	}
}

/*
 * Packs the buffered keys exactly.  If more follow, those of a last block that
 * may go on stay in the buffer.
 */
static void
pack_buffered(SnarfBuild *build, bool more)
{
	uint16_t	ends[SNARF_BLOCK_KEYS];
	uint32_t	nends = snarf_cut(build->keys, build->nbuffered, more, 1, ends);
	uint32_t	done = 0;
	uint32_t	i;

	for (i = 0; i < nends; i++)
	{
		pack_block(build, build->keys + done, ends[i] - done);
		done = ends[i];
	}
	build->nbuffered -= done;
	memmove(build->keys, build->keys + done,
			build->nbuffered * sizeof(uint64_t));
}

/* Makes a page of the buffered keys. */
static void
fill_page(SnarfBuild *build)
{
	if (!snarf_page_fill(build->page, build->keys, build->nbuffered))
		build->lossless = false;
	build->nbuffered = 0;
	finish_page(build);
}

/* The weight of the second pass at which the current page is full. */
static uint64_t
weight_limit(const SnarfBuild *build)
{
	uint64_t	each = build->total_weight / build->total_pages;
	uint64_t	rest = build->total_weight % build->total_pages;
	uint64_t	pages = build->npages + 1;

	return each * pages + rest * pages / build->total_pages;
}

/*
 * The weight of each key in the stretch that ends with this key: what coding
 * it exactly takes, and half a bit for rounding and the directory.
 */
static uint32_t
stretch_weight(const SnarfBuild *build, uint64_t key)
{
	uint64_t	bits = snarf_exact_bits(build->stretch,
										key - build->stretch_start);
	uint64_t	weight = BIT_WEIGHT * bits / build->stretch + 2;

	if (weight < MIN_WEIGHT)
		return MIN_WEIGHT;
	return weight < MAX_WEIGHT ? weight : MAX_WEIGHT;
}

/* A stretch ends with this key: weighs it, and ends the page if it is full. */
static void
end_stretch(SnarfBuild *build, uint64_t key)
{
	uint32_t	weight = stretch_weight(build, key);

	build->stretch_left = build->stretch;
	build->stretch_start = key;
	if (!build->adding)
		build->stretches[weight]++;
	else if (!build->exact)
	{
		build->weight += weight < build->weight_cap ? weight :
			build->weight_cap;
		if (build->npages + 1 < build->total_pages &&
			build->weight >= weight_limit(build))
			fill_page(build);
	}
}

/* The buffer is full: makes room in it. */
static void
make_room(SnarfBuild *build)
{
	if (build->exact)
		pack_buffered(build, true);
	else if (build->adding)
	{
		build->max_buffered *= 2;
		build->keys = filter_realloc(build->keys, build->max_buffered *
									 sizeof(uint64_t));
	}
	else
		build->nbuffered = 0;	/* just counting */
}

/* Takes the next key of either pass. */
static inline void
take_key(SnarfBuild *build, uint64_t key)
{
	if (build->nkeys == 0)
	{
		build->min = key;
		build->stretch_start = key;
		build->stretch_left = build->stretch + 1;
	}
	else if (key <= build->last)
	{
		if (key < build->last)
			filter_fail("keys of a filter are not in order");
		return;
	}
	build->last = key;
	build->nkeys++;
	if (build->nbuffered == build->max_buffered)
		make_room(build);
	build->keys[build->nbuffered++] = key;
	if (--build->stretch_left == 0)
		end_stretch(build, key);
}

/* First pass: takes the next key. */
void
snarf_measure(SnarfBuild *build, uint64_t key)
{
	take_key(build, key);
}

/* Most fence pages behind npages content pages. */
static uint32_t
fence_pages(const SnarfBuild *build, uint32_t npages)
{
	return fence_pages_bound(npages, build->options.page_size,
							 build->options.root_max - SNARF_ROOT_HEADER, 8);
}

/*
 * How many content pages a lossy run gets: with their fences they are within
 * the budget, unless that would leave fewer than two bits for a key.
 */
static uint32_t
lossy_pages(const SnarfBuild *build)
{
	const FilterOptions *options = &build->options;
	uint64_t	budget = options->pages > 0 ? options->pages :
	filter_budget_pages(options->bits_per_key * build->nkeys, options->page_size);
	uint32_t	least = (uint32_t) (build->nkeys / 4 / options->page_size + 1);
	uint32_t	npages;

	if (budget > INT32_MAX)
		budget = INT32_MAX;
	npages = (uint32_t) budget;
	while (npages > 1 && npages + fence_pages(build, npages) > budget)
		npages--;
	return npages > least ? npages : least;
}

/*
 * Sets the cap of weights, the highest with which all fit the pages, and the
 * sum of weights.  A sixteenth of the pages is for their directories.
 */
static void
cap_weights(SnarfBuild *build)
{
	uint64_t	page_bits = (uint64_t) build->options.page_size * 8;
	uint64_t	room = build->total_pages * page_bits / 16 * 15 *
	BIT_WEIGHT / build->stretch;
	uint32_t	cap;

	for (cap = MIN_WEIGHT; cap <= MAX_WEIGHT; cap++)
	{
		uint64_t	total = 0;
		uint32_t	weight;

		for (weight = MIN_WEIGHT; weight <= MAX_WEIGHT; weight++)
			total += build->stretches[weight] * (weight < cap ? weight : cap);
		if (total > room && cap > MIN_WEIGHT)
			break;
		build->weight_cap = cap;
		build->total_weight = total;
	}
}

/*
 * Called between the passes: chooses an exact or a lossy run, and the number
 * of pages.
 */
void
snarf_measure_end(SnarfBuild *build)
{
	const FilterOptions *options = &build->options;

	if (build->exact && build->nbuffered > 0)
		pack_buffered(build, false);
	if (build->page->nblocks > 0)
		finish_page(build);

	build->exact = build->exact &&
		(uint64_t) build->npages + fence_pages(build, build->npages) <=
		exact_pages(options, build->nkeys);
	build->total_pages = build->npages;
	if (!build->exact)
	{
		build->total_pages = lossy_pages(build);
		cap_weights(build);
	}

	build->adding = true;
	build->nmeasured = build->nkeys;
	build->nkeys = 0;
	build->npages = 0;
	build->nbuffered = 0;
	build->lossless = true;
	snarf_page_keep_data(build->page);
	build->pages = filter_alloc((size_t) build->total_pages *
								options->page_size);
	build->fences = fence_build_begin(options->page_size,
									  options->root_max - SNARF_ROOT_HEADER);
}

/* Second pass: takes the next key. */
void
snarf_add(SnarfBuild *build, uint64_t key)
{
	take_key(build, key);
}

/* See snarf.h. */
uint64_t
snarf_build_keys(const SnarfBuild *build)
{
	return build->nkeys;
}

/* See snarf.h. */
void
snarf_build_limit(SnarfBuild *build, uint32_t bits_per_key)
{
	build->options.bits_per_key = bits_per_key;
}

/* Ends the build: fills *run and frees build. */
void
snarf_build_end(SnarfBuild *build, FilterRun *run)
{
	uint8_t    *fence_root;
	uint32_t	fence_root_len;

	if (build->nkeys != build->nmeasured)
		filter_fail("keys differ from those measured");
	if (build->nbuffered > 0 && build->exact)
		pack_buffered(build, false);
	else if (build->nbuffered > 0)
		fill_page(build);
	if (build->page->nblocks > 0)
		finish_page(build);

	run->kind = build->lossless ? FILTER_KIND_EXACT : FILTER_KIND_SNARF;
	run->nkeys = build->nkeys;
	run->pages = build->pages;
	run->npages = build->npages;
	fence_build_end(build->fences, &run->pages, &run->npages,
					&fence_root, &fence_root_len);

	run->root_len = SNARF_ROOT_HEADER + fence_root_len;
	run->root = filter_alloc(run->root_len);
	bits_store32(run->root, SNARF_ROOT_MAGIC);
	bits_store32(run->root + 4, build->npages);
	bits_store64(run->root + SNARF_ROOT_MIN, build->min);
	bits_store64(run->root + SNARF_ROOT_MAX, build->last);
	if (build->usual_pages > build->npages / 2)
	{
		bits_store16(run->root + 24, (uint16_t) build->block_bytes);
		bits_store16(run->root + 26, (uint16_t) build->low_bytes);
	}
	if (fence_root_len > 0)
		memcpy(run->root + SNARF_ROOT_HEADER, fence_root, fence_root_len);

	filter_free(fence_root);
	snarf_page_free(build->page);
	filter_free(build->keys);
	filter_free(build);
}
