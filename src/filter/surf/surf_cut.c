/*-------------------------------------------------------------------------
 *
 * surf_cut.c
 *	  The tree of a content page of SuRF, and cutting it into parts.
 *
 * At first only the depths of nodes are known, in key order.  For each node
 * the nearest less deep nodes on both sides must be found.  With a stack of
 * open nodes each step would take a branch that cannot be predicted.
 * Comparing a node with 32 neighbours at once takes none, and few nodes have
 * more leaves than that on one side.
 *
 * Each node has the sum of the bits of all nodes before it.  These sums give
 * the size of any subtree.  They also give the size of a tree that ends
 * earlier: only the nodes on its right edge are different.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/base/port.h"
#include "filter/surf/surf_write_impl.h"

/*
 * Sets the nearest less deep nodes on both sides of node i.  The deeper one is
 * its parent.
 */
static BITS_INLINE void
link_node(SurfWriter *writer, uint32_t i, uint32_t left, uint32_t right)
{
	uint32_t	left_own = writer->own[left];
	uint32_t	right_own = writer->own[right];
	uint32_t	side = left_own > right_own;
	uint32_t	parent = right ^ ((left ^ right) & -side);

	writer->left[i] = (uint16_t) left;
	writer->right[i] = (uint16_t) right;
	writer->top[i] = (uint16_t) greater(left_own, right_own);
	writer->children[parent][side] = (uint16_t) i;
}

/* Finds the nearest less deep node of node i on the left, from left on. */
static uint32_t
find_left(const SurfWriter *writer, uint32_t i, uint32_t left)
{
	/* Nodes between a node and its left one are deeper than the node. */
	while (writer->own[left] > writer->own[i])
		left = writer->left[left];
	return left;
}

/* The same on the right. */
static uint32_t
find_right(const SurfWriter *writer, uint32_t i, uint32_t right)
{
	while (writer->own[right] > writer->own[i])
		right = writer->right[right];
	return right;
}

/* Finds the nearest less deep nodes of all nodes. */
static void
link_portable(SurfWriter *writer)
{
	uint32_t	i;

	for (i = 1; i < writer->nleaves; i++)
		writer->left[i] = (uint16_t) find_left(writer, i, i - 1);
	for (i = writer->nleaves - 1; i > 0; i--)
		link_node(writer, i, writer->left[i], find_right(writer, i, i + 1));
}

/*
 * Sets the nearest less deep nodes of node i, if there is one among the
 * SURF_WIDE_NODES on the right; else puts node i into the queue.  less_left
 * and less_right have bits for the less deep ones among SURF_WIDE_NODES on
 * either side.  Returns how many nodes are in the queue.
 */
static BITS_INLINE uint32_t
link_near(SurfWriter *writer, uint32_t i, uint32_t less_left,
		  uint32_t less_right, uint32_t nfar)
{
	uint32_t	left = i - SURF_WIDE_NODES + bits_log2(less_left | 1);

	if (less_left == 0)
		left = find_left(writer, i, left);
	if (less_right == 0)
	{
		writer->left[i] = (uint16_t) left;
		writer->queue[nfar] = (uint16_t) i;
		return nfar + 1;
	}
	link_node(writer, i, left, i + 1 + bits_lowest(less_right));
	return nfar;
}

/* Does so for the nodes in the queue, by following the results of others. */
static BITS_INLINE void
link_far(SurfWriter *writer, uint32_t nfar)
{
	while (nfar > 0)
	{
		uint32_t	i = writer->queue[--nfar];

		link_node(writer, i, writer->left[i],
				  find_right(writer, i, i + SURF_WIDE_NODES));
	}
}

/* link_portable() for processors with SSE2, see surf_wide.h. */
static void
link_sse2(SurfWriter *writer)
{
	const uint16_t *own = writer->own;
	uint32_t	nfar = 0;
	uint32_t	i;

	for (i = 1; i < writer->nleaves; i++)
		nfar = link_near(writer, i,
						 surf_sse2_less(own + i - SURF_WIDE_NODES, own[i]),
						 surf_sse2_less(own + i + 1, own[i]), nfar);
	link_far(writer, nfar);
}

/* Finds the nearest less deep nodes of all nodes, and their costs. */
static void
find_portable(SurfWriter *writer)
{
	uint32_t	i;

	if (SURF_HAS_SSE2)
		link_sse2(writer);
	else
		link_portable(writer);
	for (i = 1; i < writer->nleaves; i++)
	{
		uint32_t	left = writer->left[i];

		writer->costs[i] = cost_node(i - left, writer->right[i] - left,
									 writer->own[i] - writer->top[i] - 1u,
									 &writer->numbers[i]);
	}
}

/* The same for processors with AVX2. */
SURF_AVX2_TARGET static void
find_avx2(SurfWriter *writer)
{
	const uint16_t *own = writer->own;
	uint32_t	nfar = 0;
	uint32_t	i;

	for (i = 1; i < writer->nleaves; i++)
		nfar = link_near(writer, i,
						 surf_avx2_less(own + i - SURF_WIDE_NODES, own[i]),
						 surf_avx2_less(own + i + 1, own[i]), nfar);
	link_far(writer, nfar);
	for (i = 1; i < writer->nleaves; i += SURF_AVX2_COSTS)
		surf_avx2_costs(own + i, writer->top + i, writer->left + i,
						writer->right + i, i, writer->costs + i,
						writer->numbers + i);
}

/*
 * Sums up the costs of the first n nodes.  Puts those with skips into the
 * queue, and returns their number.
 */
static BITS_INLINE uint32_t
sum_nodes(SurfWriter *writer, uint32_t n)
{
	const uint32_t *costs = writer->costs;
	SurfSum    *sums = writer->sums;
	uint16_t   *queue = writer->queue;
	SurfSum		sum = 0;
	uint32_t	nskips = 0;
	uint32_t	i;

	writer->costs[0] = 0;
	for (i = 0; i < n; i++)
	{
		sums[i] = sum;
		sum += cost_sum(costs[i]);
		queue[nskips] = (uint16_t) i;
		nskips += costs[i] >> 16;
	}
	sums[n] = sum;
	return nskips;
}

/* Finds all nodes, see surf_write_impl.h. */
void
surf_writer_find(SurfWriter *writer)
{
	memset(writer->children, 0,
		   (writer->nleaves + 1) * sizeof(writer->children[0]));
	if (SURF_CPU_HAS_AVX2())
		find_avx2(writer);
	else
		find_portable(writer);
	sum_nodes(writer, writer->nleaves);
}

/* See surf_write_impl.h. */
SurfSum
surf_writer_sum(const SurfWriter *writer, uint32_t n, uint32_t *uppermost)
{
	const uint16_t *own = writer->own;
	SurfSum		sum = writer->sums[n];
	uint32_t	i;
	uint32_t	left;

	*uppermost = 0;

	/* The nodes on the right edge. */
	for (i = n - 1; i > 0; i = left)
	{
		uint32_t	chain;
		uint32_t	numbers;

		/* The chain of the uppermost one is in the page's prefix and lead. */
		left = writer->left[i];
		chain = left == 0 ? 0 : own[i] - own[left] - 1u;
		sum += cost_sum(cost_node(i - left, n - left, chain, &numbers)) -
			cost_sum(writer->costs[i]);
		*uppermost = i;
	}
	return sum;
}

/* The head of a part that begins with a leaf. */
static uint32_t
head_of(const SurfWriter *writer, uint32_t base, uint32_t leaf)
{
	const uint16_t *own = writer->own;
	uint32_t	end = SURF_HEAD_BITS;
	uint32_t	head = 0;

	/*
	 * The leaf's own bits; before these, bits of the leaf that it shares them
	 * with.
	 */
	for (;; leaf = writer->left[leaf])
	{
		uint32_t	from = leaf == 0 ? base : own[leaf];
		uint32_t	known = from - base;

		/* Records go as far as that, see code_keys(). */
		uint32_t	most = greater(from, own[leaf + 1]) + writer->max_suffix - from;
		uint32_t	n = end - known < most ? end - known : most;

		head |= (uint32_t) get_record(writer, writer->record[leaf] + from - own[leaf],
									  n) << (SURF_HEAD_BITS - known - n);
		if (leaf == 0)
			return head;
		head |= 1u << (SURF_HEAD_BITS - known);
		end = known - 1;
	}
}

/* Ends the last part, if there is one, and begins another with leaf first. */
static void
begin_part(SurfWriter *writer, uint32_t base, uint32_t first)
{
	uint32_t	head = first == 0 ? 0 : head_of(writer, base, first);
	SurfPart   *part;

	if (writer->nparts == writer->max_parts)
	{
		writer->max_parts = writer->max_parts * 2 + 64;
		writer->parts = filter_realloc(writer->parts,
									   writer->max_parts * sizeof(SurfPart));
	}
	part = &writer->parts[writer->nparts++];
	part->first = first;
	part->head = head;
	part->depth = base;
	if (writer->nparts > 1)
	{
		/* The head of the first one is only needed if there is a second one. */
		if (writer->nparts == 2)
			part[-1].head = head_of(writer, base, 0);
		part[-1].depth = base + SURF_HEAD_BITS - 1 -
			bits_log2(head ^ part[-1].head);
	}
}

/*
 * Cuts the first n leaves into parts of at least "least" leaves, if possible.
 */
static void
choose_parts(SurfWriter *writer, uint32_t n, uint32_t base, uint32_t least)
{
	const uint16_t *own = writer->own;
	uint32_t	deepest = base + SURF_HEAD_BITS;
	uint32_t	first = 0;

	writer->nparts = 0;
	while (first < n)
	{
		uint32_t	i = first + 1;
		uint32_t	far;

		begin_part(writer, base, first);
		if (least >= n - first)
			return;

		/*
		 * The best place is at a node that would be above all others of the
		 * part.
		 */
		while (i < n && (i - first < least || own[i] > deepest))
			i = writer->right[i];
		far = 3 * (uint64_t) least < n - first ? first + 3 * least : n;
		if (i > far)
		{
			for (i = far; i < n && own[i] > deepest;)
				i++;
		}
		first = i;
	}
}

/* The cost of node i with these neighbours; changes the node if asked to. */
static BITS_INLINE SurfSum
change_node(SurfWriter *writer, uint32_t i, uint32_t left, uint32_t right,
			uint32_t top, bool change)
{
	uint32_t	numbers;
	uint32_t	cost = cost_node(i - left, right - left,
								 writer->own[i] - top - 1u, &numbers);

	if (change)
	{
		writer->left[i] = (uint16_t) left;
		writer->right[i] = (uint16_t) right;
		writer->top[i] = (uint16_t) top;
		writer->costs[i] = cost;
		writer->numbers[i] = numbers;
	}
	return cost_sum(cost);
}

/*
 * The cost of a part, whose leaves end before end, as a tree of its own.  Only
 * the nodes on its edges are different.  If asked to, changes these; this can
 * be done only once.
 */
static BITS_INLINE SurfSum
cut_part(SurfWriter *writer, const SurfPart *part, uint32_t end, bool change)
{
	const uint16_t *own = writer->own;
	uint32_t	first = part->first;
	uint32_t	depth = part->depth;
	SurfSum		sum = sum_between(writer->sums, first, end);
	uint32_t	last = 0;
	uint32_t	right;
	uint32_t	i;

	for (i = end - 1; i > first;)
	{
		uint32_t	left = writer->left[i];
		bool		inside = left > first;

		sum -= cost_sum(writer->costs[i]);
		sum += change_node(writer, i, inside ? left : first, end,
						   greater(inside ? own[left] : 0, depth), change);
		if (change)
			writer->children[i][1] = (uint16_t) last;
		last = i;
		i = left;
	}

	/* The last one is the root. */
	if (change)
		writer->children[end][0] = (uint16_t) last;
	last = 0;
	for (i = first + 1; i < end && (right = writer->right[i]) < end; i = right)
	{
		sum -= cost_sum(writer->costs[i]);
		sum += change_node(writer, i, first, right, greater(own[right], depth),
						   change);
		if (change)
			writer->children[i][0] = (uint16_t) last;
		last = i;
	}
	if (change && i < end)
		writer->children[i][0] = (uint16_t) last;
	return sum;
}

/*
 * The least width with which the skips of all nodes fit.  If a width fits, all
 * greater ones do.
 */
static BITS_INLINE uint32_t
find_skip_width(const SurfWriter *writer, uint32_t nskips)
{
	uint32_t	skip_width = 0;
	uint32_t	j;

	for (j = 0; j < nskips; j++)
	{
		uint32_t	i = writer->queue[j];
		uint32_t	left = writer->left[i];
		uint32_t	right = writer->right[i];
		uint32_t	n = right - left;
		uint32_t	is_left = -(uint32_t) left_is_first(i - left, n);
		SurfSum		side = sum_between(writer->sums, i ^ ((i ^ left) & is_left),
									   right ^ ((right ^ i) & is_left));

		while (sum_bits(side, skip_width) >> (bits_log2(n) + skip_width) != 0)
			skip_width++;
	}
	return skip_width;
}

/* surf_writer_choose() */
static BITS_INLINE SurfSum
choose(SurfWriter *writer, uint32_t n, uint32_t base, uint32_t least)
{
	SurfSum		sum = 0;
	uint32_t	i;

	choose_parts(writer, n, base, least);
	for (i = 0; i < writer->nparts; i++)
		sum += cut_part(writer, &writer->parts[i], part_end(writer, i, n), false);
	return sum;
}

/* surf_writer_cut() */
static BITS_INLINE SurfSum
cut(SurfWriter *writer, uint32_t n, uint32_t *skip_width)
{
	uint32_t	i;

	for (i = 0; i < writer->nparts; i++)
	{
		const SurfPart *part = &writer->parts[i];

		cut_part(writer, part, part_end(writer, i, n), true);
		writer->costs[part->first] = 0;
	}
	*skip_width = find_skip_width(writer, sum_nodes(writer, n));
	return writer->sums[n];
}

/* On processors with the instructions of BITS_TARGET. */
BITS_TARGET static SurfSum
choose_fast(SurfWriter *writer, uint32_t n, uint32_t base, uint32_t least)
{
	return choose(writer, n, base, least);
}

BITS_TARGET static SurfSum
cut_fast(SurfWriter *writer, uint32_t n, uint32_t *skip_width)
{
	return cut(writer, n, skip_width);
}

/* On others. */
static SurfSum
choose_portable(SurfWriter *writer, uint32_t n, uint32_t base, uint32_t least)
{
	return choose(writer, n, base, least);
}

static SurfSum
cut_portable(SurfWriter *writer, uint32_t n, uint32_t *skip_width)
{
	return cut(writer, n, skip_width);
}

/* See surf_write_impl.h. */
SurfSum
surf_writer_choose(SurfWriter *writer, uint32_t n, uint32_t base, uint32_t least)
{
	if (BITS_CPU_IS_FAST())
		return choose_fast(writer, n, base, least);
	return choose_portable(writer, n, base, least);
}

/* See surf_write_impl.h. */
SurfSum
surf_writer_cut(SurfWriter *writer, uint32_t n, uint32_t *skip_width)
{
	if (BITS_CPU_IS_FAST())
		return cut_fast(writer, n, skip_width);
	return cut_portable(writer, n, skip_width);
}
