/*-------------------------------------------------------------------------
 *
 * surf_cut.c
 *	  Cutting a content page of SuRF into parts, once its leaves are there.
 *
 * The same stack as in surf_write.c, over blocks instead of leaves: as parts
 * take the place of upper levels, nodes at their edges get other parents.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include "filter/port.h"
#include "filter/surf_write_impl.h"

/*
 * The head that a part beginning with leaf would have: last is that of the leaf
 * before, or of any between which and this one no node is higher.
 */
static inline uint32_t
next_head(const SurfWriter *writer, uint32_t base, uint32_t leaf, uint32_t last)
{
	const SurfEntry *entry = &writer->entries[leaf];
	uint32_t	from = leaf == 0 ? base : entry->own;
	uint32_t	known = from - base;
	uint32_t	record = entry->record + (from - entry->own);
	uint32_t	to = entry[1].own > entry->own ? entry[1].own : entry->own;
	uint32_t	n;

	if (known > SURF_HEAD_BITS)
		return last;

	/*
	 * What has been recorded goes as far as that, see end_leaf() in
	 * surf_write.c.
	 */
	if (leaf == 0 && to < writer->prefix_bits && writer->nleaves == 1)
		to = writer->prefix_bits;
	to += writer->max_suffix;
	n = SURF_HEAD_BITS - known;
	if (n > to - from)
		n = to - from;
	if (leaf > 0)
		last = (last >> (SURF_HEAD_BITS - known) | 1) << (SURF_HEAD_BITS - known);
	return last | (uint32_t) get_record(writer, record, n) <<
		(SURF_HEAD_BITS - known - n);
}

/* Begins a part. */
static void
begin_part(SurfWriter *writer, uint32_t first, uint32_t head)
{
	if (writer->nparts == writer->max_parts)
	{
		writer->max_parts = writer->max_parts * 2 + 64;
		writer->parts = filter_realloc(writer->parts,
									   writer->max_parts * sizeof(SurfPart));
	}
	writer->parts[writer->nparts].first = first;
	writer->parts[writer->nparts].head = head;
	writer->nparts++;
}

/* A block as a subtree: its root's parent may be another one now. */
static SurfSubtree
block_subtree(SurfWriter *writer, uint32_t first, int32_t parent)
{
	SurfEntry  *entry = &writer->entries[first];
	SurfSubtree result = leaf_subtree(first);

	if (entry->nleaves > 1)
	{
		entry->chain = (uint16_t) (entry->depth - parent - 1);
		result.bits = entry->nbits +
			gamma_bits(entry->chain + 1u) + entry->chain -
			gamma_bits(entry->coded_chain + 1u) - entry->coded_chain;
	}
	return result;
}

/*
 * Closes all open nodes below depth, those of leaves before end, and returns
 * them all: the last block, which begins with leaf first, is on the right.  The
 * bits above above are another node's or a part's.
 */
static SurfSubtree
close_nodes(SurfWriter *writer, uint32_t first, uint32_t end, int32_t depth,
			int32_t above)
{
	const SurfOpen *open = &writer->open[writer->nopen];
	SurfSubtree last = block_subtree(writer, first, greater(open->depth, above));

	for (; open->depth > depth; open--)
	{
		SurfNode   *node = &writer->nodes[++writer->nnodes];
		int32_t		parent = greater(open[-1].depth, above);

		node->left = open->left;
		node->right = last;
		node->leaf = open->leaf;
		node->end = end;
		node->depth = (uint32_t) open->depth;
		node->chain = (uint32_t) (open->depth - parent - 1);
		last = sum_node(open, &open->left, &last, end, parent);
		last.root = writer->nnodes;
	}
	writer->nopen = (uint32_t) (open - writer->open);
	return last;
}

/* Ends a part, whose keys begin with depth bits in common; adds it to sum. */
static void
end_part(SurfWriter *writer, uint32_t last_block, uint32_t end, uint32_t depth,
		 SurfSubtree *sum)
{
	SurfSubtree tree = close_nodes(writer, last_block, end, -1,
								   (int32_t) depth - 1);
	SurfPart   *part = &writer->parts[writer->nparts - 1];

	part->depth = depth;
	part->tree = tree;
	sum->bits += tree.bits;
	sum->nskips += tree.nskips;
	if (tree.skip_width > sum->skip_width)
		sum->skip_width = tree.skip_width;
}

/* Cuts the leaves into parts, see surf_write_impl.h. */
SurfSubtree
surf_writer_cut(SurfWriter *writer, uint32_t base, uint32_t least)
{
	SurfSubtree sum = leaf_subtree(0);
	uint32_t	head = next_head(writer, base, 0, 0);
	uint32_t	block = 0;
	uint32_t	leaf = writer->entries[0].nleaves;

	writer->nopen = 0;
	writer->nnodes = 0;
	writer->nparts = 0;
	begin_part(writer, 0, head);
	while (leaf < writer->nleaves)
	{
		const SurfEntry *entry = &writer->entries[leaf];
		const SurfPart *part = &writer->parts[writer->nparts - 1];
		uint32_t	depth = entry->own - 1u;
		uint32_t	n = leaf - part->first;

		head = next_head(writer, base, leaf, head);

		/* Best where the node would be above all others of the part. */
		if (n >= least && depth - base < SURF_HEAD_BITS &&
			(n / 3 >= least || writer->nopen == 0 ||
			 writer->open[1].depth > (int32_t) depth))
		{
			end_part(writer, block, leaf,
					 base + SURF_HEAD_BITS - 1 - bits_log2(head ^ part->head),
					 &sum);
			begin_part(writer, leaf, head);
		}
		else
		{
			SurfSubtree left = close_nodes(writer, block, leaf, (int32_t) depth,
										   (int32_t) depth);
			SurfOpen   *open = &writer->open[++writer->nopen];

			open->depth = (int32_t) depth;
			open->leaf = leaf;
			open->first = left.first;
			open->left = left;
		}
		block = leaf;
		leaf += entry->nleaves;
	}
	end_part(writer, block, leaf, base, &sum);
	return sum;
}
