/*-------------------------------------------------------------------------
 *
 * surf_merge.c
 *	  Merging leaves, where the nodes of a page's keys do not fit the page.
 *
 * A trie that must not exceed its budget ends at some depth: keys that share
 * as many bits with the key before have no leaf of their own.  The leaf of the
 * key before stands for them, too.  It has no suffix, and ends behind the bit
 * that tells it from the next leaf, so at or before that depth.  All keys of
 * the leaf share more bits than that.
 *
 * Each page has a depth of its own, the greatest with which its keys fit, since
 * in some parts of a run keys have more in common than in others.  With one bit
 * more there are often many more leaves.  So the first keys of the page get
 * this bit, up to a key that has a leaf with the lesser depth already.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/base/port.h"
#include "filter/surf/surf_write_impl.h"

/* How often "upto" is tried: see try_depth(). */
#define FINE_ROUNDS 3

/* The leaves before any were merged, and how that is done. */
typedef struct SurfMerge
{
	SurfWriter *writer;
	uint32_t	n;				/* the page takes the keys of the first ones */
	uint32_t	nleaves;
	uint16_t   *own;
	uint32_t   *record;
	SurfLeaf   *leaves;
	uint64_t	room;			/* bits of a page */
} SurfMerge;

/* Copies the leaves.  The copy is freed by end_merge(). */
static void
begin_merge(SurfMerge *merge, SurfWriter *writer, uint32_t n)
{
	merge->writer = writer;
	merge->n = n;
	merge->nleaves = writer->nleaves;
	merge->room = 8 * (uint64_t) writer->page_size;
	merge->own = filter_alloc((merge->nleaves + 1) * sizeof(uint16_t));
	merge->record = filter_alloc(merge->nleaves * sizeof(uint32_t));
	merge->leaves = filter_alloc(merge->nleaves * sizeof(SurfLeaf));
	memcpy(merge->own, writer->own, merge->nleaves * sizeof(uint16_t));
	memcpy(merge->record, writer->record, merge->nleaves * sizeof(uint32_t));
	memcpy(merge->leaves, writer->leaves, merge->nleaves * sizeof(SurfLeaf));
	writer->last_leaf = merge->leaves[n - 1];
}

static void
end_merge(SurfMerge *merge)
{
	filter_free(merge->own);
	filter_free(merge->record);
	filter_free(merge->leaves);
}

/* How many leaves are left where they end at this depth? */
static uint32_t
count_leaves(const SurfMerge *merge, uint32_t depth)
{
	uint32_t	count = 1;
	uint32_t	i;

	for (i = 1; i < merge->n; i++)
		count += merge->own[i] <= depth;
	return count;
}

/* Sets the writer's leaves.  Those that do not end at this depth merge with the one before. */
static uint32_t
merge_leaves(SurfMerge *merge, uint32_t depth, uint32_t upto)
{
	SurfWriter *writer = merge->writer;
	uint32_t	rest = merge->nleaves - merge->n;
	uint32_t	to = 0;
	uint32_t	i;

	for (i = 0; i < merge->n; i++)
	{
		writer->own[to] = merge->own[i];
		writer->record[to] = merge->record[i];
		writer->leaves[to] = merge->leaves[i];
		to += i == 0 || merge->own[i] <= depth + (i < upto);
	}
	memcpy(writer->own + to, merge->own + merge->n, (rest + 1) * sizeof(uint16_t));
	memcpy(writer->record + to, merge->record + merge->n, rest * sizeof(uint32_t));
	memcpy(writer->leaves + to, merge->leaves + merge->n, rest * sizeof(SurfLeaf));
	writer->nleaves = to + rest;
	return to;
}

/*
 * Merges leaves that do not end at this depth, or, before leaf upto, one bit further.  Sets *n to
 * how many are left, and returns the bits of the page.
 */
static uint64_t
try_depth(SurfMerge *merge, uint32_t depth, uint32_t upto, uint32_t *n)
{
	*n = merge_leaves(merge, depth, upto);
	surf_writer_find(merge->writer);
	return surf_writer_page_bits(merge->writer, *n, 0);
}

/* The least depth with at least so many leaves, from low to high. */
static uint32_t
depth_of(const SurfMerge *merge, uint32_t nleaves, uint32_t low, uint32_t high)
{
	while (low < high)
	{
		uint32_t	middle = (low + high) / 2;

		if (count_leaves(merge, middle) >= nleaves)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/*
 * Finds the greatest depth with which the leaves fit.  With low they do, with high they do not.
 * Sets *bits to what they take, and *more to what they would take with one bit more, 0 if that is not known.
 */
static uint32_t
find_depth(SurfMerge *merge, uint32_t low, uint32_t high, uint64_t *bits, uint64_t *more)
{
	uint32_t	n = merge->writer->merged > 0 ? merge->writer->merged : merge->n / 2;

	*bits = *more = 0;
	while (high - low > 1)
	{
		uint32_t	depth = depth_of(merge, n, low + 1, high - 1);
		uint64_t	now = try_depth(merge, depth, 0, &n);

		if (now <= merge->room)
		{
			low = depth;
			*bits = now;
		}
		else
		{
			high = depth;
			*more = now;
		}
		n = (uint32_t) (n * merge->room / now);
	}
	return low;
}

/* Up to which leaf can there be one bit more, so that all fit? */
static uint32_t
find_upto(SurfMerge *merge, uint32_t depth, uint64_t bits, uint64_t more)
{
	uint64_t	upto = bits == 0 || more == 0 ? 0 :
	merge->n * (merge->room - bits) / (more - bits);
	uint32_t	rounds;
	uint32_t	n;

	for (rounds = 0; rounds < FINE_ROUNDS && upto > 0; rounds++)
	{
		while (upto > 0 && merge->own[upto] > depth)
			upto--;
		if (upto == 0 || try_depth(merge, depth, (uint32_t) upto, &n) <= merge->room)
			return (uint32_t) upto;
		upto -= upto / 8 + 1;
	}
	return 0;
}

/* See surf_write_impl.h. */
uint32_t
surf_writer_merge(SurfWriter *writer, const SurfCoder *coder, uint32_t n)
{
	SurfMerge	merge;
	uint32_t	least = UINT16_MAX;
	uint32_t	most = 0;
	uint32_t	depth;
	uint32_t	upto;
	uint64_t	bits;
	uint64_t	more;
	uint32_t	i;

	begin_merge(&merge, writer, n);
	for (i = 1; i < n; i++)
	{
		least = merge.own[i] < least ? merge.own[i] : least;
		most = greater(merge.own[i], most);
	}
	depth = find_depth(&merge, least, greater(most, least + 1), &bits, &more);
	upto = find_upto(&merge, depth, bits, more);
	writer->merging = true;
	for (;;)
	{
		/* Skips may be wider than on the page before. */
		(void) try_depth(&merge, depth, upto, &n);
		if (surf_writer_lay_out(writer, coder, n))
			break;
		if (upto == 0 && depth-- == least)
			filter_fail("two keys do not fit a page");
		upto = 0;
	}
	writer->merging = false;
	writer->merged = n;
	end_merge(&merge);
	return n;
}
