/*-------------------------------------------------------------------------
 *
 * pair.c
 *	  Dividing the budget of a pair, joining its parts, asking both.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/base/port.h"
#include "filter/pair.h"
#include "filter/surf/surf_page.h"

/* Bits for each key are computed in units of 1 / UNIT. */
#define UNIT 256

/*
 * Hashes get three quarters of the bits up to this many, and some more; of those
 * beyond a quarter.
 */
#define FEW_BITS	14
#define MORE_BITS	1

/* Beside a trie that is nearly exact hashes have at least so many bits for each; else there are none. */
#define LEAST_HASH_BITS 10

/* The least bytes of a page that a part gets. */
#define LEAST_SHARE 128

/* What a SuRF takes beyond its nodes and suffixes, as a share: 1 / SLACK. */
#define SLACK 32

/* The bits of hashes for each key, of so many in all. */
static uint64_t
hash_bits(uint64_t bits)
{
	uint64_t	few = bits < FEW_BITS * UNIT ? bits : FEW_BITS * UNIT;

	return few * 3 / 4 + MORE_BITS * UNIT + (bits - few) / 4;
}

/* See pair.h. */
PairShares
pair_divide(const FilterOptions *options, uint64_t nkeys, const SurfCost *cost)
{
	PairShares	shares = {0, 0};
	uint64_t	npages = filter_budget_pages_surf(nkeys * options->bits_per_key,
												  options->page_size);
	uint64_t	budget = 8 * npages * options->page_size;
	uint64_t	whole = cost->node_bits + nkeys * cost->rest_bits;
	uint64_t	bits;
	uint64_t	trie_bits;
	bool		exact;

	whole += whole / SLACK + npages * 8 * SURF_PAGE_HEADER;
	if (nkeys == 0 || npages > UINT32_MAX)
		return shares;
	exact = whole <= budget && cost->all_fit && cost->rest_bits <= SURF_MAX_REAL;
	if (exact && whole + nkeys * LEAST_HASH_BITS > budget)
		return shares;
	bits = budget / nkeys * UNIT + budget % nkeys * UNIT / nkeys;
	trie_bits = bits - (hash_bits(bits) < bits ? hash_bits(bits) : bits);
	if (exact || trie_bits > whole * UNIT / nkeys)
		trie_bits = whole * UNIT / nkeys;
	shares.npages = (uint32_t) npages;
	shares.trie_size = (uint32_t) (options->page_size * trie_bits / bits) & ~UINT32_C(7);
	if (shares.trie_size < LEAST_SHARE)
		shares.trie_size = LEAST_SHARE;
	if (shares.trie_size > options->page_size - LEAST_SHARE)
		shares.trie_size = (options->page_size - LEAST_SHARE) & ~UINT32_C(7);
	return shares;
}

/* See pair.h. */
SnarfBuild *
pair_begin_hashes(const FilterOptions *options, const PairShares *shares)
{
	FilterOptions hashes = *options;

	hashes.bytes = false;
	hashes.page_size = options->page_size - shares->trie_size;
	hashes.pages = shares->npages;
	hashes.root_max = PAIR_HASHES_ROOT(options->root_max);
	return snarf_build_begin(&hashes);
}

/* Puts a part's pages where they belong. */
static void
put_part(uint8_t *pages, uint32_t page_size, uint32_t offset, const FilterRun *part,
		 uint32_t part_size)
{
	for (uint32_t i = 0; i < part->npages; i++)
		memcpy(pages + (size_t) i * page_size + offset,
			   part->pages + (size_t) i * part_size, part_size);
}

/* See pair.h. */
void
pair_join(FilterRun *hashes, FilterRun *trie, const PairShares *shares,
		  uint32_t page_size, uint64_t nleaves, FilterRun *run)
{
	uint8_t    *root;

	run->kind = FILTER_KIND_PAIR;
	run->npages = hashes->npages > trie->npages ? hashes->npages : trie->npages;
	run->pages = filter_realloc(NULL, (size_t) run->npages * page_size);
	memset(run->pages, 0, (size_t) run->npages * page_size);
	put_part(run->pages, page_size, 0, trie, shares->trie_size);
	put_part(run->pages, page_size, shares->trie_size, hashes,
			 page_size - shares->trie_size);

	run->root_len = PAIR_ROOT_HEADER + hashes->root_len + trie->root_len;
	run->root = root = filter_alloc(run->root_len);
	root[0] = PAIR_ROOT_MAGIC;
	root[1] = PAIR_ROOT_VERSION;
	bits_store16(root + 2, (uint16_t) shares->trie_size);
	bits_store64(root + 4, run->nkeys);
	bits_store64(root + 12, hashes->nkeys);
	bits_store64(root + 20, nleaves);
	bits_store16(root + 28, (uint16_t) hashes->root_len);
	memcpy(root + PAIR_ROOT_HEADER, hashes->root, hashes->root_len);
	memcpy(root + PAIR_ROOT_HEADER + hashes->root_len, trie->root, trie->root_len);
	filter_run_free(hashes);
	filter_run_free(trie);
}

/* Does the range hold one key only? */
static bool
is_point(const FilterByteRange *range)
{
	return !range->lo_unbounded && !range->hi_unbounded && !range->hi_exclusive &&
		filter_bytes_compare(range->lo, range->hi) == 0;
}

/* May there be a key with the hashes that all keys in the range have? */
static FilterAnswer
ask_hashes(Pair *pair, const FilterByteRange *range)
{
	uint64_t	hash = range->nhashes == 0 && is_point(range) ? filter_hash(range->lo) : 0;
	const uint64_t *hashes = range->nhashes > 0 ? range->hashes : &hash;
	uint32_t	n = range->nhashes > 0 ? range->nhashes : is_point(range);
	FilterAnswer answer = FILTER_YES;

	/* The last one has the fewest keys. */
	while (n > 0 && answer == FILTER_YES)
	{
		n--;
		answer = snarf_query(pair->hashes.root, pair->hashes.root_len,
							 &pair->hashes.reader, hashes[n], hashes[n]);
	}
	return answer;
}

/* See pair.h. */
FilterAnswer
pair_query(const uint8_t *root, uint32_t root_len, FilterReader *reader,
		   const FilterByteRange *range)
{
	FilterAnswer answer;
	Pair		pair;

	if (!pair_open(&pair, root, root_len, reader))
		return FILTER_UNKNOWN;
	answer = ask_hashes(&pair, range);
	return answer != FILTER_YES ? answer :
		surf_query(pair.trie.root, pair.trie.root_len, &pair.trie.reader, range);
}

/* See pair.h. */
bool
pair_ranks(const uint8_t *root, uint32_t root_len, FilterReader *reader,
		   const FilterByteRange *range, FilterRanks *ranks)
{
	Pair		pair;

	ranks->first = ranks->end = 0;
	if (range->nhashes > 0 || is_point(range))
	{
		FilterAnswer answer = pair_query(root, root_len, reader, range);

		if (answer != FILTER_YES)
			return answer == FILTER_NO;
	}
	return pair_open(&pair, root, root_len, reader) &&
		surf_ranks(pair.trie.root, pair.trie.root_len, &pair.trie.reader, range, ranks);
}

/* See pair.h. */
bool
pair_count(const uint8_t *root, uint32_t root_len, FilterReader *reader,
		   const FilterByteRange *range, uint64_t *count)
{
	FilterRanks ranks;
	Pair		pair;

	*count = 0;
	if (!pair_ranks(root, root_len, reader, range, &ranks) ||
		!pair_open(&pair, root, root_len, reader))
		return false;
	*count = ranks.end - ranks.first;
	if (*count > pair.nleaves)
		return false;
	if (*count > 0 && is_point(range))
		*count = 1;
	else if (*count > 0)
		*count = (uint64_t) ((double) *count * pair.nkeys / pair.nleaves);
	return true;
}

/* See pair.h. */
uint32_t
pair_root_pages(const uint8_t *root, uint32_t root_len)
{
	FilterReader reader = {NULL, 0, UINT32_MAX};
	uint32_t	hashes;
	uint32_t	trie;
	Pair		pair;

	if (!pair_open(&pair, root, root_len, &reader) ||
		pair.hashes.root_len < SNARF_ROOT_HEADER)
		return 0;
	hashes = snarf_root_pages(pair.hashes.root, pair.hashes.root_len,
							  bits_load64(pair.hashes.root + SNARF_ROOT_MIN),
							  bits_load64(pair.hashes.root + SNARF_ROOT_MAX));
	trie = surf_root_pages(pair.trie.root, pair.trie.root_len);
	return hashes == 0 || trie == 0 ? 0 : hashes > trie ? hashes : trie;
}

/* See pair.h. */
bool
pair_check(const uint8_t *root, uint32_t root_len, FilterReader *reader,
		   uint64_t nkeys)
{
	uint64_t	nhashes;
	Pair		pair;

	return pair_open(&pair, root, root_len, reader) && pair.nkeys == nkeys &&
		snarf_check(pair.hashes.root, pair.hashes.root_len, &pair.hashes.reader,
					&nhashes) &&
		nhashes == pair.nhashes &&
		surf_check(pair.trie.root, pair.trie.root_len, &pair.trie.reader, pair.nleaves);
}
