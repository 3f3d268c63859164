/*-------------------------------------------------------------------------
 *
 * surf_write.c
 *	  Gathering the leaves of a content page of SuRF.
 *
 * Leaves come in key order, and with each comes the node between it and the
 * leaf before.  A node whose depth is greater than that of the newest one has
 * all its leaves; the others are open: a stack of nodes, each on the right of
 * the one before.  Small subtrees are coded when they are complete; of larger
 * ones just the length is kept.  surf_emit.c writes what has been gathered here.
 *
 * A batch of keys is coded first, then its leaves are added.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/port.h"
#include "filter/surf_write_impl.h"

/* Begins a writer of pages of so many bytes. */
SurfWriter *
surf_writer_begin(uint32_t page_size, FilterSuffix kind, uint32_t max_suffix)
{
	SurfWriter *writer = filter_alloc(sizeof(SurfWriter));

	writer->page_size = page_size;
	writer->kind = kind;
	writer->max_suffix = max_suffix;
	writer->part_leaves = SURF_LEAST_PART;

	/*
	 * With that, the skip of a node with the fewest leaves is a page's
	 * length.
	 */
	writer->most_skip_width = bits_width(8 * (uint64_t) page_size) -
		bits_log2(2 * SURF_SKIP_LEAVES + 2);
	return writer;
}

void
surf_writer_free(SurfWriter *writer)
{
	filter_free(writer->entries);
	filter_free(writer->hashes);
	filter_free(writer->open);
	filter_free(writer->saved.open);
	filter_free(writer->nodes);
	filter_free(writer->parts);
	filter_free(writer->records);
	filter_free(writer);
}

uint32_t
surf_writer_leaves(const SurfWriter *writer)
{
	return writer->nleaves;
}

uint32_t
surf_writer_longest_rest(const SurfWriter *writer)
{
	return (uint32_t) writer->longest_rest;
}

void
surf_writer_reset(SurfWriter *writer)
{
	writer->nleaves = 0;
	writer->nopen = 0;
	writer->free_bits = 0;
	writer->longest_rest = 0;
	writer->nrecords = 0;
}

/* Makes room for another batch. */
static void
grow_entries(SurfWriter *writer)
{
	uint32_t	max = writer->max_leaves * 2 + 8 * SURF_BATCH_KEYS;

	writer->max_leaves = max;
	writer->entries = filter_realloc(writer->entries, max * sizeof(SurfEntry));
	writer->open = filter_realloc(writer->open, max * sizeof(SurfOpen));
	writer->saved.open = filter_realloc(writer->saved.open,
										max * sizeof(SurfOpen));
	writer->nodes = filter_realloc(writer->nodes, max * sizeof(SurfNode));
	if (writer->kind == FILTER_SUFFIX_HASH || writer->kind == FILTER_SUFFIX_MIXED)
		writer->hashes = filter_realloc(writer->hashes, max * sizeof(uint64_t));
	writer->open[0].depth = -1;
}

static BITS_INLINE int32_t
greater(int32_t a, int32_t b)
{
	return a > b ? a : b;
}

/*
 * The sum of an open node, which has its last leaf now, and the right side.
 */
static BITS_INLINE SurfSubtree
sum_node(const SurfOpen *open, const SurfSubtree *right, uint32_t end,
		 int32_t parent)
{
	uint32_t	nleft = open->leaf - open->left.first;
	uint32_t	n = end - open->left.first;
	uint32_t	chain = (uint32_t) (open->depth - parent - 1);
	SurfNumbers numbers = code_numbers(nleft, n, chain);

	return join_subtrees(&open->left, right, nleft, n, numbers.nbits + chain);
}

/*
 * The sum of the whole tree, if subtree, whose leaves end before end, completes
 * the first nopen open nodes.  The uppermost node has no bits of its own: they
 * are in the page's prefix and lead.
 */
static SurfSubtree
complete(const SurfWriter *writer, SurfSubtree subtree, uint32_t end,
		 uint32_t nopen)
{
	const SurfOpen *open;

	for (open = &writer->open[nopen]; open > &writer->open[1]; open--)
		subtree = sum_node(open, &subtree, end, open[-1].depth);
	if (nopen > 0)
		subtree = sum_node(open, &subtree, end, open->depth - 1);
	return subtree;
}

/* Bits that the nodes over all leaves added take. */
uint64_t
surf_writer_node_bits(const SurfWriter *writer)
{
	SurfSubtree tree = complete(writer, leaf_subtree(writer->nleaves - 1),
								writer->nleaves, writer->nopen);

	return tree.bits + (uint64_t) tree.skip_width * tree.nskips +
		surf_parts_reserve(writer->nleaves);
}

/*
 * Bits of the page, if tree is all of it and keys share prefix_len bytes.  Sets
 * free_bits to what is left even if all skips there are took the most bits they
 * may.  Returns false if the page is too long.
 */
static bool
fits_page(SurfWriter *writer, const SurfSubtree *tree, uint32_t nleaves,
		  uint32_t prefix_len, uint32_t suffix_256)
{
	uint64_t	length = 8 * (SURF_PAGE_HEADER + (uint64_t) prefix_len) +
	tree->bits + (uint64_t) tree->skip_width * tree->nskips +
	surf_parts_reserve(nleaves) + ((uint64_t) suffix_256 * nleaves + 255) / 256;
	uint64_t	reserve = tree->skip_width > writer->most_skip_width ? 0 :
	(uint64_t) (writer->most_skip_width - tree->skip_width) * tree->nskips;

	writer->free_bits = 8 * (int64_t) writer->page_size -
		(int64_t) (length + reserve);
	return length <= 8 * (uint64_t) writer->page_size;
}

/* Does the page fit with another leaf? */
static bool
fits_another(SurfWriter *writer, const SurfBatchKey *key, uint32_t suffix_256)
{
	int32_t		depth = (int32_t) key->shared;
	uint32_t	leaf = writer->nleaves;
	const SurfOpen *open = &writer->open[writer->nopen];
	SurfSubtree tree = leaf_subtree(leaf - 1);
	SurfOpen	added;

	for (; open->depth > depth; open--)
		tree = sum_node(open, &tree, leaf, greater(open[-1].depth, depth));
	added.depth = depth;
	added.leaf = leaf;
	added.left = tree;
	tree = leaf_subtree(leaf);
	tree = sum_node(&added, &tree, leaf + 1,
					open > writer->open ? open->depth : depth - 1);
	tree = complete(writer, tree, leaf + 1, (uint32_t) (open - writer->open));
	return fits_page(writer, &tree, leaf + 1,
					 key->common < writer->prefix_len ? key->common : writer->prefix_len,
					 suffix_256);
}

/* Does the page fit as it is? */
static bool
fits_now(SurfWriter *writer, uint32_t suffix_256)
{
	SurfSubtree tree = complete(writer, leaf_subtree(writer->nleaves - 1),
								writer->nleaves, writer->nopen);

	return fits_page(writer, &tree, writer->nleaves, writer->prefix_len,
					 suffix_256);
}

/*
 * How many bits can the page become longer at most, skips that are there apart,
 * if keys of a batch are added?  The exact length takes a walk over all open
 * nodes: most batches do without.  INT64_MAX where that is not said easily.
 *
 * For each leaf: a node's numbers, of 17 and gamma bits; the chain, as far as it
 * is deeper than the node before (if it is not, it takes its bits from another
 * chain); as much once more as that chain's gamma code may grow by the split;
 * a skip; the suffix, and a bit for parts.  For each node that is open: longer
 * counts, where there are more leaves on the right.  As these are more from node
 * to node, five of the nodes may get a skip.
 */
static int64_t
bound_batch(const SurfWriter *writer, const SurfBatch *batch, uint32_t i,
			uint32_t suffix_256)
{
	uint32_t	skip = 17 + writer->most_skip_width;
	int32_t		before = writer->open[writer->nopen].depth;
	int32_t		highest = INT32_MAX;
	int32_t		deepest = 0;
	uint32_t	common = UINT32_MAX;
	uint32_t	n = batch->n + 1 - i;
	int64_t		chains = 0;

	for (; i <= batch->n; i++)
	{
		int32_t		depth = (int32_t) batch->keys[i].shared;

		chains += greater(depth - before, 0);
		highest = depth < highest ? depth : highest;
		deepest = greater(depth, deepest);
		common = batch->keys[i].common < common ? batch->keys[i].common : common;
		before = depth;
	}
	deepest = greater(deepest, writer->open[writer->nopen].depth);
	if (writer->nopen == 0 || highest <= writer->open[1].depth ||
		common < writer->prefix_len)
		return INT64_MAX;
	return chains + 64 + 5 * skip + (int64_t) writer->nopen * 2 * 8 +
		(int64_t) n * (17 + 2 * gamma_bits((uint32_t) deepest + 1) + skip +
					   suffix_256 / 256 + 2);
}

/* Records the newest leaf's own bits, as the next one is known. */
static BITS_INLINE void
end_leaf(SurfWriter *writer, SurfEntry *entry, const SurfCoder *coder,
		 uint32_t next_shared)
{
	uint32_t	from = entry->own;
	uint32_t	to = next_shared + 1 > from ? next_shared + 1 : from;
	int32_t		rest = (int32_t) (coder->nbits + coder->end_bits - to);
	uint32_t	from_byte = from / 8;
	uint32_t	n;
	uint32_t	i = 0;

	entry[1].own = (uint16_t) (next_shared + 1);
	if (rest > writer->longest_rest)
		writer->longest_rest = rest;

	/* If it stays alone, the page's prefix is all of the first key. */
	if (entry == writer->entries)
	{
		writer->prefix_bits = coder->nbits;
		if (to < coder->nbits)
			to = coder->nbits;
	}
	to += writer->max_suffix;
	n = (to + 7) / 8 - from_byte;
	if (writer->nrecords + n + 16 > writer->max_records)
	{
		writer->max_records = writer->max_records * 2 + n + 4096;
		writer->records = filter_realloc(writer->records, writer->max_records);
	}
	entry->record = 8 * writer->nrecords + from % 8;
	do
	{
		memcpy(writer->records + writer->nrecords + i,
			   coder->bits + from_byte + i, 8);
		i += 8;
	} while (i < n);
	writer->nrecords += n;
}

/* Begins the entry of a leaf. */
static BITS_INLINE void
begin_leaf(SurfWriter *writer, SurfEntry *entry, FilterBytes key)
{
	entry->high = 0;
	entry->low = 0;
	entry->chain = 0;
	entry->nbits = 0;
	entry->nleaves = 1;
	if (writer->hashes != NULL)
		writer->hashes[entry - writer->entries] = surf_hash(key);
}

/*
 * Codes the keys of a batch from the i-th on, which get entries behind those of
 * the leaves: all that is known before these are added.
 */
static void
code_batch(SurfWriter *writer, SurfCoder *coder, SurfBatch *batch, uint32_t i)
{
	SurfEntry  *entry = &writer->entries[writer->nleaves];

	for (; i <= batch->n; i++, entry++)
	{
		FilterBytes key = surf_batch_key(batch, i);

		surf_coder_compare(coder, batch, i);
		end_leaf(writer, entry - 1, coder, batch->keys[i].shared);
		surf_coder_code(coder, key, batch->keys[i].common);
		begin_leaf(writer, entry, key);
	}
}

/* Begins a page with a key. */
static void
first_leaf(SurfWriter *writer, SurfCoder *coder, FilterBytes key)
{
	surf_coder_code(coder, key, 0);
	begin_leaf(writer, writer->entries, key);
	writer->entries->own = 0;
	writer->nleaves = 1;
	if (key.len > 0)
		memcpy(writer->prefix, key.data, key.len);
	writer->prefix_len = key.len;
	writer->free_bits = -1;
}

/* Appends bits of another entry's block to those of a new one. */
static BITS_INLINE void
append_block(SurfEntry *to, const SurfEntry *from)
{
	uint32_t	n = to->nbits;

	if (n < 64)
	{
		to->high |= from->high >> n;
		to->low |= (from->high << 1) << (63 - n) | from->low >> n;
	}
	else
		to->low |= from->high >> (n - 64);
	to->nbits += from->nbits;
}

/*
 * The newest open node has got all its leaves, those on the right in subtree;
 * parent is its parent's depth.  Returns all of it, and codes it if it is a
 * block: the record of its first leaf has the bits of its chain.
 */
static BITS_INLINE SurfSubtree
close_node(SurfWriter *writer, const SurfOpen *open, const SurfSubtree *right,
		   uint32_t end, int32_t parent)
{
	SurfEntry  *left_block = &writer->entries[open->left.first];
	SurfEntry  *right_block = &writer->entries[right->first];
	uint32_t	nleft = open->leaf - open->left.first;
	uint32_t	n = end - open->left.first;
	uint32_t	chain = (uint32_t) (open->depth - parent - 1);
	SurfNumbers numbers = code_numbers(nleft, n, chain);
	uint32_t	own_bits = numbers.nbits + chain;

	if (n <= SURF_BLOCK_LEAVES && !has_skip(nleft, n) &&
		left_block->nleaves + right_block->nleaves == n &&
		own_bits <= 56 &&
		own_bits + left_block->nbits + right_block->nbits <= 128)
	{
		uint32_t	other = open->left.first ^ right->first;
		uint32_t	first = right->first ^
		(other & -(uint32_t) left_is_first(nleft, n));
		SurfEntry	block;
		SurfSubtree result = leaf_subtree(open->left.first);

		block.high = numbers.value << chain |
			get_record(writer, left_block->record + (uint32_t) (parent + 1) -
					   left_block->own, chain);
		block.high <<= 64 - own_bits;
		block.low = 0;
		block.nbits = (uint8_t) own_bits;
		append_block(&block, &writer->entries[first]);
		append_block(&block, &writer->entries[first ^ other]);
		left_block->high = block.high;
		left_block->low = block.low;
		left_block->depth = (uint16_t) open->depth;
		left_block->coded_chain = (uint16_t) chain;
		left_block->nbits = block.nbits;
		left_block->nleaves = (uint8_t) n;
		left_block->nleft = (uint8_t) nleft;
		result.bits = block.nbits;
		return result;
	}
	return join_subtrees(&open->left, right, nleft, n, own_bits);
}

/* Adds leaves for coded keys of a batch, from the i-th on and before end. */
static void
add_leaves(SurfWriter *writer, const SurfBatch *batch, uint32_t i, uint32_t end)
{
	SurfOpen   *open = &writer->open[writer->nopen];
	uint32_t	leaf = writer->nleaves;

	for (; i < end; i++)
	{
		int32_t		depth = (int32_t) batch->keys[i].shared;
		SurfSubtree last = leaf_subtree(leaf - 1);

		for (; open->depth > depth; open--)
			last = close_node(writer, open, &last, leaf,
							  greater(open[-1].depth, depth));
		open++;
		open->depth = depth;
		open->leaf = leaf++;
		open->left = last;
		if (batch->keys[i].common < writer->prefix_len)
		{
			writer->prefix_len = batch->keys[i].common;
			writer->prefix_bits = batch->keys[i].common_bits;
		}
	}
	writer->nleaves = leaf;
	writer->nopen = (uint32_t) (open - writer->open);
}

/* The first leaf of those that may become one block with the next ones. */
static SurfEntry *
last_entries(const SurfWriter *writer)
{
	return writer->nleaves < SURF_BLOCK_LEAVES ? writer->entries :
		&writer->entries[writer->nleaves - SURF_BLOCK_LEAVES];
}

/* Keeps what adding the leaves of a batch changes. */
static void
save_state(SurfWriter *writer)
{
	SurfSaved  *saved = &writer->saved;

	saved->nleaves = writer->nleaves;
	saved->nopen = writer->nopen;
	saved->prefix_len = writer->prefix_len;
	saved->prefix_bits = writer->prefix_bits;
	memcpy(saved->open, writer->open, (saved->nopen + 1) * sizeof(SurfOpen));
	memcpy(saved->entries, last_entries(writer), sizeof(saved->entries));
}

/* Takes these leaves back: they are only coded again. */
static void
restore_state(SurfWriter *writer)
{
	SurfSaved  *saved = &writer->saved;

	writer->nleaves = saved->nleaves;
	writer->nopen = saved->nopen;
	writer->prefix_len = saved->prefix_len;
	writer->prefix_bits = saved->prefix_bits;
	memcpy(writer->open, saved->open, (saved->nopen + 1) * sizeof(SurfOpen));
	memcpy(last_entries(writer), saved->entries, sizeof(saved->entries));
}

/*
 * Adds as many leaves as the page has room for, for all or some keys of a batch
 * from the i-th on.  Returns the number of the first one that is left out.
 */
static uint32_t
fill_page(SurfWriter *writer, const SurfBatch *batch, uint32_t i,
		  uint32_t suffix_256)
{
	while (i <= batch->n && writer->nleaves < SURF_MAX_LEAVES &&
		   fits_another(writer, &batch->keys[i], suffix_256))
	{
		add_leaves(writer, batch, i, i + 1);
		i++;
	}
	return i;
}

/* See surf_write.h. */
uint32_t
surf_writer_take(SurfWriter *writer, SurfCoder *coder, SurfBatch *batch,
				 uint32_t i, uint32_t suffix_256)
{
	int64_t		bound;

	if (writer->nleaves + SURF_BATCH_KEYS + 1 > writer->max_leaves)
		grow_entries(writer);
	if (writer->nleaves == 0)
		first_leaf(writer, coder, surf_batch_key(batch, i++));
	code_batch(writer, coder, batch, i);
	if (i > batch->n)
		return i;

	if (writer->nleaves + SURF_BATCH_KEYS > SURF_MAX_LEAVES)
		return fill_page(writer, batch, i, suffix_256);
	bound = bound_batch(writer, batch, i, suffix_256);
	if (bound <= writer->free_bits)
	{
		writer->free_bits -= bound;
		add_leaves(writer, batch, i, batch->n + 1);
		return batch->n + 1;
	}
	save_state(writer);
	add_leaves(writer, batch, i, batch->n + 1);
	if (fits_now(writer, suffix_256))
		return batch->n + 1;
	restore_state(writer);
	return fill_page(writer, batch, i, suffix_256);
}

/* Ends the last leaf, see surf_write.h. */
void
surf_writer_last(SurfWriter *writer, const SurfCoder *coder)
{
	end_leaf(writer, &writer->entries[writer->nleaves - 1], coder, 0);
}

/* The depth of the uppermost node, all bits of the key if there is none. */
uint32_t
surf_writer_base(const SurfWriter *writer)
{
	return writer->nopen > 0 ? (uint32_t) writer->open[1].depth :
		writer->prefix_bits;
}

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

	/* What has been recorded goes as far as that, see end_leaf(). */
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
		last = sum_node(open, &last, end, parent);
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
			open->left = left;
		}
		block = leaf;
		leaf += entry->nleaves;
	}
	end_part(writer, block, leaf, base, &sum);
	return sum;
}
