/*-------------------------------------------------------------------------
 *
 * surf_build.c
 *	  SuRF: building a run from sorted keys.
 *
 * The first pass counts keys, and their new bytes: those from where a key
 * differs from the one before to where it also differs from the next one.  It
 * also takes a sample: groups of neighbouring keys, evenly spread.  The sample
 * gives the weights for the code and, since most of a trie is near its leaves,
 * what nodes cost for each new byte.  This cost and the budget give the length
 * of suffixes.  The second pass fills page after page.  At each page it
 * adjusts the length of suffixes to what the pages before really took.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/base/fence.h"
#include "filter/base/port.h"
#include "filter/surf/surf.h"
#include "filter/surf/surf_wide.h"
#include "filter/surf/surf_write.h"

/* Keys in a group of the sample, and how many groups there are at most. */
#define GROUP_KEYS	128
#define MAX_GROUPS	32

/*
 * Bits for each key by which its nodes cost more in a page than in a group:
 * for the nodes above a group, and for more skips.
 */
#define EXTRA_COST		0.4

/* Bits by which a key that is not in the sample may be longer behind its leaf. */
#define LONGER_REST	2

/* A page size that any group fits. */
#define ENDLESS_PAGE	(UINT32_C(1) << 24)

/* The words of bytes that are gathered before they are marked as seen. */
#define UNSEEN_WORDS	64

struct SurfBuild
{
	FilterOptions options;
	uint32_t	max_key;		/* keys are cut to this length */
	bool		wide;			/* the functions of surf_wide.h can be used */
	bool		masked;			/* and those with masks */

	/* The first pass. */
	uint64_t	nkeys;
	uint8_t		last[FILTER_MAX_KEY + 32];	/* as in a batch */
	uint32_t	last_len;
	uint32_t	last_common;	/* bytes that it shares with the one before */
	uint32_t	longest;		/* bytes of a key */
	uint64_t	new_bytes;		/* of all keys but the last one, at the end */
	bool		seen[256];		/* byte values that occur, with those in
								 * unseen */
	uint64_t	unseen[UNSEEN_WORDS];	/* eight bytes each, not yet marked in
										 * seen */
	uint32_t	nunseen;
	uint8_t		seen_bits[2][16];	/* the same set, see surf_wide_unseen() */
	SurfGroup	groups[MAX_GROUPS];
	uint32_t	ngroups;
	uint64_t	group_stride;	/* the sample has every group_stride-th group */
	uint64_t	next_group;		/* number of the next one's first key */
	uint64_t	next_sample;	/* no key before this one is in the sample */
	uint8_t    *sample;
	size_t		sample_len;
	size_t		sample_max;
	uint64_t	separators;		/* bytes of separators between sample keys */
	double		byte_cost;		/* bits that nodes take for each new byte */
	uint32_t	longest_rest;	/* see surf_writer_longest_rest() */
	uint64_t	all_rest;		/* of all keys of the sample */

	/* The second pass. */
	uint8_t		code[SURF_CODE_MAX_SIZE];
	uint32_t	code_len;
	SurfCoder	coder;
	SurfWriter *writer;
	FenceBuild *fences;
	SurfBatch	batch;
	uint8_t		before[FILTER_MAX_KEY]; /* the last key of the page before */
	uint32_t	before_len;
	uint64_t	nadded;
	uint64_t	nwritten;		/* of these, how many are in finished pages */
	uint64_t	nleaves;		/* of finished pages */
	uint32_t	planned_pages;	/* for content; 0: as many as nodes need */
	bool		merging;		/* nodes for all keys do not fit them */
	uint32_t	expected_pages; /* not counting what may go wrong */
	uint32_t	suffix_256;		/* bits of suffix for each key of this page,
								 * times 256 */
	uint64_t	added_bytes;	/* new bytes of the keys in finished pages */
	uint64_t	cost;			/* bits of all nodes in finished pages */
	uint8_t    *pages;
	uint32_t	npages;
	uint32_t	max_pages;
};

/* Shortens the length to which keys are cut to what pages and fences allow. */
static void
limit_keys(SurfBuild *build)
{
	const FilterOptions *options = &build->options;
	uint32_t	fence_max = options->root_max / 2;

	/* Separators of cut keys must fit the fences: see fence.c. */
	if (fence_max > options->page_size)
		fence_max = options->page_size;
	if (build->max_key > fence_max - 32)
		build->max_key = fence_max - 32;
	if (build->max_key > options->page_size / 4)
		build->max_key = options->page_size / 4;
}

/* Begins a build, see surf.h. */
SurfBuild *
surf_build_begin(const FilterOptions *options)
{
	SurfBuild  *build = filter_alloc(sizeof(SurfBuild));

	if (options->page_size < 64 || options->root_max < 2 * FENCE_MIN_ROOT + 64)
		filter_fail("page or root too small for SuRF");
	build->options = *options;
	if (options->suffix == FILTER_SUFFIX_AUTO)
		build->options.suffix = FILTER_SUFFIX_REAL;
	build->group_stride = 1;
	build->wide = SURF_CPU_HAS_AVX2();
	build->masked = SURF_CPU_HAS_MASKS();

	build->max_key = FILTER_MAX_KEY;
	if (options->suffix != FILTER_SUFFIX_AUTO)
		limit_keys(build);
	return build;
}

static FilterBytes
cut_key(const SurfBuild *build, FilterBytes key)
{
	if (key.len > build->max_key)
		key.len = build->max_key;
	return key;
}

/*
 * Called when the sample is full: keeps every other group.  From now on half
 * as many groups are taken.
 */
static void
thin_sample(SurfBuild *build)
{
	size_t		len = 0;
	uint32_t	i;

	for (i = 0; i < MAX_GROUPS / 2; i++)
	{
		SurfGroup  *group = &build->groups[i];
		size_t		end = build->groups[2 * i + 1].offset;

		*group = build->groups[2 * i];
		memmove(build->sample + len, build->sample + group->offset,
				end - group->offset);
		end -= group->offset;
		group->offset = len;
		len += end;
	}
	build->ngroups = MAX_GROUPS / 2;
	build->sample_len = len;
	build->group_stride *= 2;
}

/* Takes the key that was counted last into the sample. */
BITS_NOINLINE static void
sample_key(SurfBuild *build, FilterBytes key)
{
	uint64_t	number = build->nkeys - 1;
	SurfGroup  *group;

	if (number == build->next_group)
	{
		/* The groups with even numbers stay, and this one's number is even. */
		if (build->ngroups == MAX_GROUPS)
			thin_sample(build);
		group = &build->groups[build->ngroups++];
		memset(group, 0, sizeof(SurfGroup));
		group->first = number;
		group->offset = build->sample_len;
		build->next_group += GROUP_KEYS * build->group_stride;
	}
	group = &build->groups[build->ngroups - 1];
	if (build->sample_len + key.len + 2 > build->sample_max)
	{
		build->sample_max = build->sample_max * 2 + key.len + 4096;
		build->sample = filter_realloc(build->sample, build->sample_max);
	}
	bits_store16(build->sample + build->sample_len, (uint16_t) key.len);
	if (key.len > 0)
		memcpy(build->sample + build->sample_len + 2, key.data, key.len);
	build->sample_len += key.len + 2;
	if (++group->nkeys == GROUP_KEYS)
		build->next_sample = build->next_group;
}

/* Marks all byte values that have been gathered as seen. */
static void
see_bytes(SurfBuild *build)
{
	bool	   *seen = build->seen;
	uint32_t	i;

	for (i = 0; i < build->nunseen; i++)
	{
		uint64_t	word = build->unseen[i];

		seen[word & 0xFF] = true;
		seen[word >> 8 & 0xFF] = true;
		seen[word >> 16 & 0xFF] = true;
		seen[word >> 24 & 0xFF] = true;
		seen[word >> 32 & 0xFF] = true;
		seen[word >> 40 & 0xFF] = true;
		seen[word >> 48 & 0xFF] = true;
		seen[word >> 56] = true;
	}
	build->nunseen = 0;
}

/*
 * Marks the bytes of a key from common on as seen.  They are nearly always
 * among the last eight.  These are marked together, since their number cannot
 * be predicted, and it does no harm to mark other bytes of the key again.
 */
static inline void
see_key(SurfBuild *build, FilterBytes key, const SurfKeyHead *head,
		uint32_t common)
{
	if (build->nunseen == UNSEEN_WORDS)
		see_bytes(build);
	build->unseen[build->nunseen] = head->tail;
	build->nunseen += key.len > 0;
	for (; common + 8 < key.len; common++)
		build->seen[key.data[common]] = true;
}

/* Marks a byte value as seen. */
BITS_NOINLINE static void
see_byte(SurfBuild *build, uint8_t byte)
{
	build->seen[byte] = true;
	build->seen_bits[byte >> 7][byte & 15] |= 1 << (byte >> 4 & 7);
}

/*
 * Counts a key that shares "common" bytes with the one before.  False if both
 * are equal.
 */
static inline bool
count_key(SurfBuild *build, FilterBytes key, uint32_t common)
{
	uint32_t	last_common = build->last_common;

	if (((common ^ key.len) | (common ^ build->last_len)) == 0 &&
		build->nkeys > 0)
		return false;
	build->new_bytes += new_bytes(last_common, common);
	build->last_common = common;
	build->last_len = key.len;
	return true;
}

/*
 * Ends the counting of a key, and takes it into the sample if it is its turn.
 */
static inline void
end_key(SurfBuild *build, FilterBytes key)
{
	build->nkeys++;
	if (build->nkeys > build->next_sample)
		sample_key(build, key);
}

/* surf_measure() for any processor. */
BITS_NOINLINE static void
measure_portable(SurfBuild *build, FilterBytes key)
{
	SurfKeyHead head = surf_key_head(key);
	uint32_t	common = surf_key_common(build->last, build->last_len, key, &head);

	if (!count_key(build, key, common))
		return;
	see_key(build, key, &head, common);
	surf_key_store(build->last, key, &head, common);
	end_key(build, key);
}

/*
 * surf_measure() by the functions of surf_wide.h, for a key that has been
 * compared.  one: see surf_wide_is_one().
 */
SURF_AVX2_TARGET static BITS_INLINE void
measure_wide(SurfBuild *build, FilterBytes key, SurfWide wide, bool one)
{
	bool		more;

	if (!count_key(build, key, wide.common))
		return;
	do
	{
		uint32_t	unseen = surf_wide_unseen(build->seen_bits, key, &wide);
		const uint8_t *bytes = key.data + wide.from;

		more = surf_wide_store(build->last, key, &wide, one);
		for (; unseen != 0; unseen &= unseen - 1)
			see_byte(build, bytes[bits_lowest(unseen)]);
	} while (more);
	end_key(build, key);
}

SURF_AVX2_TARGET BITS_NOINLINE static void
measure_wide_any(SurfBuild *build, FilterBytes key)
{
	measure_wide(build, key,
				 surf_wide_compare(build->last, build->last_len, key, false),
				 false);
}

SURF_AVX2_TARGET BITS_NOINLINE static void
measure_wide_one(SurfBuild *build, FilterBytes key)
{
	measure_wide(build, key,
				 surf_wide_compare(build->last, build->last_len, key, true),
				 true);
}

SURF_MASKED_TARGET BITS_NOINLINE static void
measure_masked(SurfBuild *build, FilterBytes key)
{
	measure_wide(build, key,
				 surf_masked_compare(build->last, build->last_len, key), true);
}

/* First pass, see surf.h. */
void
surf_measure(SurfBuild *build, FilterBytes key)
{
	key = cut_key(build, key);
	if (key.len > build->longest)
		build->longest = key.len;
	if (build->masked && key.len <= SURF_WIDE_BYTES)
		measure_masked(build, key);
	else if (!build->wide)
		measure_portable(build, key);
	else if (surf_wide_is_one(key))
		measure_wide_one(build, key);
	else
		measure_wide_any(build, key);
}

/* Reads the key at *offset of the sample and moves on. */
static FilterBytes
next_sample_key(const SurfBuild *build, size_t *offset)
{
	FilterBytes key;

	key.len = bits_load16(build->sample + *offset);
	key.data = build->sample + *offset + 2;
	*offset += key.len + 2;
	return key;
}

/*
 * Adds up how often symbols occur in a group's keys, in the bytes that need a
 * code: from where a key differs from the one before to a little behind where
 * it differs from both neighbours.
 */
static void
weigh_group(SurfBuild *build, const SurfGroup *group, uint64_t *weights)
{
	uint32_t	behind = 1 + build->options.bits_per_key / 12;
	size_t		offset = group->offset;
	FilterBytes key = next_sample_key(build, &offset);
	uint32_t	common = 0;
	uint32_t	i;

	for (i = 1; i < group->nkeys; i++)
	{
		FilterBytes next = next_sample_key(build, &offset);
		uint32_t	next_common = filter_common_prefix(key, next);
		uint32_t	from = i == 1 ? next_common : common;
		uint32_t	to = common > next_common ? common : next_common;
		uint32_t	j;

		build->separators += next_common + 1;
		to += 1 + behind;
		for (j = from; j < to && j < key.len; j++)
			weights[SURF_SYMBOL_BYTE(key.data[j])]++;
		if (to > key.len)
			weights[SURF_SYMBOL_END]++;
		key = next;
		common = next_common;
	}
}

/* Makes the code. */
static void
make_code(SurfBuild *build)
{
	uint64_t	weights[SURF_SYMBOLS];
	SurfCode	code;
	uint32_t	used;
	uint32_t	i;

	see_bytes(build);
	memset(weights, 0, sizeof(weights));
	for (i = 0; i < 256; i++)
		weights[SURF_SYMBOL_BYTE(i)] = build->seen[i];
	for (i = 0; i < build->ngroups; i++)
		weigh_group(build, &build->groups[i], weights);

	build->code_len = surf_code_make(weights, build->code);
	if (build->code_len > build->options.root_max / 2 - SURF_ROOT_HEADER)
		build->code_len = surf_code_make_plain(build->code);
	if (!surf_code_open(&code, build->code, build->code_len, &used))
		filter_fail("code cannot be opened");
	surf_coder_begin(&build->coder, &code);
}

/*
 * Codes a group's keys as if they were a page, and sets *cost to the bits of
 * their nodes.  Returns the number of their new bytes, without those of the
 * last key.
 */
static uint64_t
cost_group(SurfBuild *build, SurfWriter *writer, const SurfGroup *group,
		   double *cost)
{
	SurfCoder  *coder = &build->coder;
	SurfBatch  *batch = &build->batch;
	size_t		offset = group->offset;
	uint64_t	bytes = 0;
	uint32_t	i;

	surf_batch_begin(batch);
	surf_writer_reset(writer);
	for (i = 0; i < group->nkeys; i++)
	{
		surf_batch_add(batch, next_sample_key(build, &offset));
		if (i > 1)
			bytes += batch_new_bytes(batch, batch->n);
		if (surf_batch_is_full(batch) || i + 1 == group->nkeys)
		{
			surf_writer_add(writer, coder, batch);
			surf_batch_next(batch);
		}
	}
	surf_writer_last(writer, coder);
	*cost = surf_writer_count_bits(writer) + group->nkeys * EXTRA_COST;
	if (surf_writer_longest_rest(writer) > build->longest_rest)
		build->longest_rest = surf_writer_longest_rest(writer);
	if (surf_writer_all_rest(writer) > 0)
		build->all_rest += (uint64_t) surf_writer_all_rest(writer);
	return bytes;
}

/* Computes from the sample what nodes cost for each new byte. */
static void
cost_sample(SurfBuild *build)
{
	SurfWriter *writer = surf_writer_begin(ENDLESS_PAGE, FILTER_SUFFIX_NONE,
										   SURF_MAX_REAL);
	uint64_t	bytes = 0;
	double		costs = 0;
	uint32_t	i;

	for (i = 0; i < build->ngroups; i++)
	{
		double		cost;

		bytes += cost_group(build, writer, &build->groups[i], &cost);
		costs += cost;
	}
	build->byte_cost = bytes > 0 ? costs / bytes : 1;
	surf_writer_free(writer);
	filter_free(build->sample);
	build->sample = NULL;
}

/* The most suffix bits a key can use. */
static uint32_t
most_suffix_bits(const SurfBuild *build)
{
	return surf_suffix_most(build->options.suffix, build->longest_rest);
}

/*
 * Sets the length of suffixes in the next page, so that the planned pages
 * become equally full.
 */
static void
plan_page(SurfBuild *build)
{
	uint64_t	page_bits = 8 * (build->options.page_size - SURF_PAGE_HEADER);
	uint64_t	nkeys = build->nkeys - build->nwritten;
	uint64_t	bytes = build->new_bytes > build->added_bytes ?
	build->new_bytes - build->added_bytes : 0;
	double		byte_cost;
	uint64_t	cost;
	uint64_t	available;

	build->suffix_256 = 0;

	/*
	 * The last page takes all that is left.  No pages are planned if there is
	 * no room for suffixes.
	 */
	if (build->npages + 1 >= build->planned_pages || nkeys == 0)
		return;

	/*
	 * The sample counts as one page more than the pages before.  The cost is
	 * estimated too high rather than too low: one page more would break the
	 * budget.
	 */
	byte_cost = (page_bits + build->cost) /
		(page_bits / build->byte_cost + build->added_bytes);
	cost = (uint64_t) (byte_cost * bytes * 1.01) + page_bits / 4;
	available = (build->planned_pages - build->npages) * page_bits;
	if (available > cost)
	{
		uint64_t	suffix_256 = 256 * (available - cost) / nkeys;

		if (suffix_256 > 256 * (uint64_t) most_suffix_bits(build))
			suffix_256 = 256 * (uint64_t) most_suffix_bits(build);
		build->suffix_256 = (uint32_t) suffix_256;
	}
}

/* Decides how many content pages the run gets. */
static void
plan_run(SurfBuild *build)
{
	const FilterOptions *options = &build->options;
	uint64_t	page_bits = 8 * (options->page_size - SURF_PAGE_HEADER);
	uint64_t	cost = (uint64_t) (build->byte_cost * build->new_bytes);
	uint64_t	budget = options->pages > 0 ? options->pages :
	filter_budget_pages_surf(build->nkeys * options->bits_per_key, options->page_size);
	uint64_t	least = (cost + page_bits - 1) / page_bits;
	uint32_t	root_max = options->root_max - SURF_ROOT_HEADER - build->code_len;
	uint32_t	sampled = 0;
	uint32_t	fences;
	uint32_t	max_suffix;
	uint32_t	i;

	for (i = 0; i < build->ngroups; i++)
		sampled += build->groups[i].nkeys;
	fences = fence_pages_bound((uint32_t) budget, options->page_size, root_max,
							   (uint32_t) (build->separators * 5 / 4 / (sampled + 1) + 1));
	budget = budget > fences ? budget - fences : 1;
	build->merging = budget < least && options->pages > 0;
	if (build->merging)
		least = budget;
	build->planned_pages = budget < least ? 0 : (uint32_t) budget;
	build->expected_pages = (uint32_t) (budget < least ? least : budget) + fences + 1;

	/* The suffixes of a page may be 16 bits longer than on average. */
	max_suffix = (uint32_t) (budget * page_bits / (build->nkeys + 1)) + 16;
	if (max_suffix > most_suffix_bits(build))
		max_suffix = most_suffix_bits(build);
	build->writer = surf_writer_begin(options->page_size, options->suffix,
									  max_suffix);
	build->fences = fence_build_begin(options->page_size, root_max);
}

/* See surf.h. */
SurfCost
surf_build_cost(SurfBuild *build)
{
	SurfCost	cost;
	uint32_t	sampled = 1;
	uint32_t	i;

	/*
	 * Each key has counted those of the one before it.  So has the first,
	 * which has none before.
	 */
	if (build->nkeys > 0)
		build->new_bytes--;
	make_code(build);
	cost_sample(build);
	for (i = 0; i < build->ngroups; i++)
		sampled += build->groups[i].nkeys;
	build->longest_rest += LONGER_REST;
	cost.node_bits = (uint64_t) (build->byte_cost * build->new_bytes);
	cost.rest_bits = (uint32_t) (2 * build->all_rest / sampled + 1);
	if (cost.rest_bits < build->longest_rest / 2)
		cost.rest_bits = build->longest_rest / 2;
	if (cost.rest_bits > build->longest_rest)
		cost.rest_bits = build->longest_rest;
	limit_keys(build);
	cost.all_fit = build->longest <= build->max_key;
	return cost;
}

/* See surf.h. */
void
surf_build_resize(SurfBuild *build, uint32_t page_size, uint32_t npages)
{
	build->options.page_size = page_size;
	build->options.pages = npages;
	limit_keys(build);
}

/* Between the passes, see surf.h. */
void
surf_measure_end(SurfBuild *build)
{
	if (build->code_len == 0)
		(void) surf_build_cost(build);
	plan_run(build);
	plan_page(build);
	surf_batch_begin(&build->batch);
}

/*
 * How many keys the next page must take, so that all are on the planned pages.  Until the last page
 * that is left to chance, unless leaves are merged anyway.
 */
static uint64_t
least_keys(const SurfBuild *build)
{
	uint64_t	nkeys = build->nkeys - build->nwritten;
	uint64_t	npages = build->planned_pages > build->npages ?
	build->planned_pages - build->npages : 1;

	if (build->options.pages == 0 || (npages > 1 && !build->merging))
		return 1;
	return (nkeys + npages - 1) / npages;
}

/*
 * Writes the next page.  False if the writer does not have enough leaves for
 * one; with last, any number is enough.
 */
static bool
write_page(SurfBuild *build, bool last)
{
	SurfWriter *writer = build->writer;
	uint32_t	page_size = build->options.page_size;
	uint32_t	n = surf_writer_fit(writer, &build->coder, build->suffix_256,
									least_keys(build), last);
	FilterBytes before = {build->before, build->before_len};
	uint8_t    *page;

	if (n == 0)
		return false;
	build->cost += surf_writer_node_bits(writer);
	build->added_bytes += surf_writer_new_bytes(writer, n);
	fence_add_page(build->fences, before, surf_writer_key(writer, 0));
	build->nwritten += surf_writer_taken(writer, &before);
	if (before.len > 0)
		memcpy(build->before, before.data, before.len);
	build->before_len = before.len;

	if (build->npages == build->max_pages)
	{
		build->max_pages = build->npages == 0 ?
			build->expected_pages : build->npages + build->npages / 2 + 1;
		build->pages = filter_realloc(build->pages,
									  (size_t) build->max_pages * page_size + 8);
	}
	page = build->pages + (size_t) build->npages * page_size;
	memset(page, 0, page_size + 8);
	surf_writer_end(writer, &build->coder, build->nleaves, page);
	build->nleaves += n;
	build->npages++;
	plan_page(build);
	return true;
}

/* Gives the batch to the writer, and writes the pages that are full. */
static void
write_batch(SurfBuild *build)
{
	surf_writer_add(build->writer, &build->coder, &build->batch);
	surf_batch_next(&build->batch);
	while (surf_writer_is_full(build->writer) && write_page(build, false))
		;
}

/* Adds a key to the batch, on any processor. */
BITS_NOINLINE static void
add_portable(SurfBuild *build, FilterBytes key)
{
	build->nadded += surf_batch_add(&build->batch, key);
}

/* The same on those of surf_wide.h. */
SURF_AVX2_TARGET BITS_NOINLINE static void
add_wide_any(SurfBuild *build, FilterBytes key)
{
	build->nadded += surf_batch_add_wide(&build->batch, key, false);
}

SURF_AVX2_TARGET BITS_NOINLINE static void
add_wide_one(SurfBuild *build, FilterBytes key)
{
	build->nadded += surf_batch_add_wide(&build->batch, key, true);
}

SURF_MASKED_TARGET BITS_NOINLINE static void
add_masked(SurfBuild *build, FilterBytes key)
{
	build->nadded += surf_batch_add_masked(&build->batch, key);
}

/* Second pass, see surf.h. */
void
surf_add(SurfBuild *build, FilterBytes key)
{
	if (surf_batch_is_full(&build->batch))
		write_batch(build);
	key = cut_key(build, key);
	if (build->masked && key.len <= SURF_WIDE_BYTES)
		add_masked(build, key);
	else if (!build->wide)
		add_portable(build, key);
	else if (surf_wide_is_one(key))
		add_wide_one(build, key);
	else
		add_wide_any(build, key);
}

/* See surf.h. */
uint64_t
surf_build_keys(const SurfBuild *build)
{
	return build->nadded > 0 ? build->nadded : build->nkeys;
}

/* See surf.h. */
void
surf_build_limit(SurfBuild *build, uint32_t bits_per_key)
{
	build->options.bits_per_key = bits_per_key;
}

/* See surf.h. */
bool
surf_build_fits(const SurfBuild *build)
{
	return build->planned_pages > 0;
}

/* Ends the build, see surf.h. */
void
surf_build_end(SurfBuild *build, FilterRun *run, uint64_t *nleaves)
{
	uint32_t	header_len = SURF_ROOT_HEADER + build->code_len;
	uint32_t	content_pages;
	uint8_t    *fence_root;
	uint32_t	fence_root_len;

	if (build->nadded > 0)
	{
		write_batch(build);
		if (surf_writer_leaves(build->writer) > 0)
			surf_writer_last(build->writer, &build->coder);
		while (surf_writer_leaves(build->writer) > 0)
			write_page(build, true);
	}
	content_pages = build->npages;
	fence_build_end(build->fences, &build->pages, &build->npages,
					&fence_root, &fence_root_len);

	run->kind = FILTER_KIND_SURF;
	run->nkeys = build->nadded;
	*nleaves = build->nleaves;
	run->pages = build->pages;
	run->npages = build->npages;
	run->root_len = header_len + fence_root_len;
	run->root = filter_alloc(run->root_len);
	run->root[0] = SURF_ROOT_MAGIC;
	run->root[1] = SURF_ROOT_VERSION;
	run->root[2] = (uint8_t) build->options.suffix;
	bits_store32(run->root + 4, content_pages);
	bits_store16(run->root + 8, (uint16_t) build->max_key);
	memcpy(run->root + SURF_ROOT_HEADER, build->code, build->code_len);
	if (fence_root_len > 0)
		memcpy(run->root + header_len, fence_root, fence_root_len);

	filter_free(fence_root);
	surf_writer_free(build->writer);
	filter_free(build);
}
