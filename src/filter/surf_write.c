/*-------------------------------------------------------------------------
 *
 * surf_write.c
 *	  Gathering the leaves of a content page of SuRF.
 *
 * Leaves come in key order, and with each comes the node between it and the
 * leaf before.  A node whose depth is greater than that of the newest one has
 * all its leaves; the others are open: a stack of nodes, each on the right of
 * the one before.  Small subtrees are coded when they are complete; of larger
 * ones just the length is kept.  When all leaves of the page are there,
 * surf_cut.c cuts them into parts and surf_emit.c writes these.
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

	/* Bytes of the code's last bits, the end's, and the suffix. */
	writer->zeros = (7 + SURF_CODE_BITS + max_suffix + 7) / 8;

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

/* Makes room for the records of a batch, if there is too little. */
static void
grow_records(SurfWriter *writer, const SurfBatch *batch)
{
	uint32_t	most = writer->nrecords + 2 * batch->nbytes +
	(SURF_BATCH_KEYS + 1) * (writer->zeros + 16);

	if (most <= writer->max_records)
		return;
	writer->max_records = most + writer->max_records;
	writer->records = filter_realloc(writer->records, writer->max_records);
}

/* A subtree of n leaves: sum, unless it is a block. */
static BITS_INLINE SurfSubtree
block_or_sum(const SurfWriter *writer, uint32_t first, uint32_t n,
			 const SurfSubtree *sum)
{
	SurfSubtree block = leaf_subtree(first);

	if (writer->entries[first].nleaves != n)
		return *sum;
	block.bits = writer->entries[first].nbits;
	return block;
}

/* sum_node() while leaves are added, when blocks are not summed up. */
static BITS_INLINE SurfSubtree
sum_coded(const SurfWriter *writer, const SurfOpen *open,
		  const SurfSubtree *right, uint32_t end, int32_t parent)
{
	SurfSubtree left = block_or_sum(writer, open->first,
									open->leaf - open->first, &open->left);

	return sum_node(open, &left, right, end, parent);
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
		subtree = sum_coded(writer, open, &subtree, end, open[-1].depth);
	if (nopen > 0)
		subtree = sum_coded(writer, open, &subtree, end, open->depth - 1);
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
		tree = sum_coded(writer, open, &tree, leaf,
						 greater(open[-1].depth, depth));
	added.depth = depth;
	added.leaf = leaf;
	added.first = tree.first;
	added.left = tree;
	tree = leaf_subtree(leaf);
	tree = sum_node(&added, &added.left, &tree, leaf + 1,
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

/*
 * Codes a leaf's key, or as many bytes of it as nodes and suffixes can need if
 * it shares no more than next_common of them with the next one.
 */
static BITS_INLINE void
begin_leaf(SurfWriter *writer, SurfEntry *entry, SurfCoder *coder,
		   const uint8_t *key, uint32_t len, uint32_t common,
		   uint32_t next_common, uint32_t own)
{
	uint32_t	needed = (next_common > common ? next_common : common) + 1 +
	writer->suffix_bytes;
	uint32_t	zeros = writer->zeros;
	uint32_t	record = writer->nrecords;
	uint8_t    *records = writer->records;
	uint32_t	first_bit = surf_coder_start(coder, common);
	uint8_t    *end = surf_coder_code(coder, key, len < needed ? len : needed,
									  common, records + record);
	uint32_t	i;

	for (i = 8; i < zeros; i += 8)
		bits_store64(end + i, 0);
	writer->nrecords = (uint32_t) (end - records) + zeros;

	entry->high = 0;
	entry->low = 0;
	entry->record = 8 * record + own - first_bit;
	entry->own = (uint16_t) own;
	entry->chain = 0;
	entry->nbits = 0;
	entry->nleaves = 1;
}

/*
 * The bits that the key coded last has behind its leaf, if it shares so many
 * with the one before and with the next one.
 */
static BITS_INLINE int32_t
rest_of_key(const SurfCoder *coder, uint32_t own, uint32_t next_own)
{
	return (int32_t) (coder->nbits + coder->end_bits -
					  (own > next_own ? own : next_own));
}

/*
 * Codes the keys of a batch from the i-th on, which get entries behind those of
 * the leaves: all that is known before these are added.
 */
static BITS_INLINE void
code_batch(SurfWriter *writer, SurfCoder *coder, SurfBatch *batch, uint32_t i)
{
	SurfEntry  *entry = &writer->entries[writer->nleaves];
	SurfBatchKey *key = &batch->keys[i];
	const SurfBatchKey *end = &batch->keys[batch->n];
	uint32_t	own = entry[-1].own;
	int32_t		longest = writer->longest_rest;

	/* What will follow is not known. */
	batch->keys[batch->n + 1].common = FILTER_MAX_KEY;
	for (; key <= end; key++, entry++)
	{
		uint32_t	next_own;

		surf_coder_compare(coder, batch, key);
		next_own = key->shared + 1;
		longest = greater(longest, rest_of_key(coder, own, next_own));
		own = next_own;
		begin_leaf(writer, entry, coder, batch->bytes + key->offset, key->len,
				   key->common, key[1].common, own);
	}
	writer->longest_rest = longest;
}

/* code_batch() for processors with the instructions of BITS_TARGET. */
BITS_TARGET static void
code_batch_fast(SurfWriter *writer, SurfCoder *coder, SurfBatch *batch,
				uint32_t i)
{
	code_batch(writer, coder, batch, i);
}

/* Hashes the keys of a batch from the i-th on for the leaves they will be. */
static void
hash_batch(SurfWriter *writer, const SurfBatch *batch, uint32_t i)
{
	uint64_t   *hash = &writer->hashes[writer->nleaves];

	for (; i <= batch->n; i++)
		*hash++ = surf_hash(surf_batch_key(batch, i));
}

/* code_batch() for others. */
static void
code_batch_portable(SurfWriter *writer, SurfCoder *coder, SurfBatch *batch,
					uint32_t i)
{
	code_batch(writer, coder, batch, i);
}

/* Begins a page with a key. */
static void
first_leaf(SurfWriter *writer, SurfCoder *coder, FilterBytes key)
{
	writer->suffix_bytes = (writer->max_suffix + coder->least_bits - 1) /
		coder->least_bits;
	begin_leaf(writer, writer->entries, coder, key.data, key.len, 0, key.len, 0);
	writer->prefix_bits = coder->nbits;
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
 * Codes an open node that has got all its leaves, those on the right from leaf
 * right on, if all of it is a block: false if not.  The record of its first
 * leaf has the bits of its chain.
 */
static BITS_INLINE bool
code_block(SurfWriter *writer, const SurfOpen *open, uint32_t right,
		   uint32_t end, int32_t parent)
{
	SurfEntry  *left_block = &writer->entries[open->first];
	SurfEntry  *right_block = &writer->entries[right];
	uint32_t	nleft = open->leaf - open->first;
	uint32_t	n = end - open->first;
	uint32_t	chain = (uint32_t) (open->depth - parent - 1);
	SurfNumbers numbers = code_numbers(nleft, n, chain);
	uint32_t	own_bits = numbers.nbits + chain;
	uint32_t	other = open->first ^ right;
	uint32_t	first = right ^ (other & -(uint32_t) left_is_first(nleft, n));
	SurfEntry	block;

	/* One branch: each of these alone would be mispredicted now and then. */
	if ((n > SURF_BLOCK_LEAVES) | has_skip(nleft, n) | (own_bits > 56) |
		(left_block->nleaves + right_block->nleaves != n) |
		(own_bits + left_block->nbits + right_block->nbits > 127))
		return false;
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
	return true;
}

/*
 * Codes pairs of leaves: nodes between coded keys of a batch, from the i-th on
 * and before end, that are deeper than those on either side.  That is a third of
 * all nodes, with neither a stack nor a branch to be mispredicted.  Puts all
 * others into rest, and returns how many these are; the last one always is among
 * them, as its parent is not known.
 */
static BITS_INLINE uint32_t
code_pairs(SurfWriter *writer, const SurfBatch *batch, uint32_t i, uint32_t end,
		   uint8_t *rest)
{
	uint32_t	first = i;
	int32_t		before = writer->open[writer->nopen].depth;
	int32_t		depth = (int32_t) batch->keys[i].shared;
	uint8_t		pairs[SURF_BATCH_KEYS];
	uint8_t		chains[SURF_BATCH_KEYS];
	uint32_t	npairs = 0;
	uint32_t	nrest = 0;
	uint32_t	j;

	for (; i + 1 < end; i++)
	{
		int32_t		next = (int32_t) batch->keys[i + 1].shared;
		int32_t		chain = depth - greater(before, next) - 1;
		bool		is_pair = (uint32_t) chain <= SURF_PAIR_CHAIN;

		pairs[npairs] = (uint8_t) i;
		chains[npairs] = (uint8_t) chain;
		npairs += is_pair;
		rest[nrest] = (uint8_t) i;
		nrest += !is_pair;
		before = depth;
		depth = next;
	}
	rest[nrest++] = (uint8_t) i;
	for (j = 0; j < npairs; j++)
	{
		SurfEntry  *entry = &writer->entries[writer->nleaves - 1 + pairs[j] - first];
		uint32_t	chain = chains[j];
		uint32_t	nbits = gamma_bits(chain + 1) + chain;
		uint32_t	node = batch->keys[pairs[j]].shared;

		entry->high = ((uint64_t) (chain + 1) << chain |
					   get_record(writer, entry->record + node - chain - entry->own,
								  chain)) << (64 - nbits);
		entry->depth = (uint16_t) node;
		entry->coded_chain = (uint16_t) chain;
		entry->nbits = (uint8_t) nbits;
		entry->nleaves = 2;
		entry->nleft = 1;
	}
	return nrest;
}

/*
 * Adds leaves for coded keys of a batch, from the i-th on and before end: each
 * closes all open nodes that are deeper than what it shares with the key before.
 */
static BITS_INLINE void
link_leaves(SurfWriter *writer, const SurfBatch *batch, uint32_t i, uint32_t end)
{
	SurfOpen   *open = &writer->open[writer->nopen];
	uint32_t	last = writer->nleaves - 1; /* begins with this leaf */
	uint8_t		rest[SURF_BATCH_KEYS];
	uint32_t	nrest = code_pairs(writer, batch, i, end, rest);
	uint32_t	j;

	for (j = 0; j < nrest; j++)
	{
		const SurfBatchKey *key = &batch->keys[rest[j]];
		int32_t		depth = (int32_t) key->shared;
		uint32_t	leaf = writer->nleaves + rest[j] - i;
		uint32_t	first = last;
		bool		is_block = true;
		SurfSubtree sum;

		for (; open->depth > depth; open--)
		{
			int32_t		parent = greater(open[-1].depth, depth);

			if (!code_block(writer, open, first, leaf, parent))
			{
				sum = block_or_sum(writer, first, leaf - open->leaf, &sum);
				sum = sum_coded(writer, open, &sum, leaf, parent);
				is_block = false;
			}
			first = open->first;
		}
		open++;
		open->depth = depth;
		open->leaf = leaf;
		open->first = first;
		if (!is_block)
			open->left = sum;
		last = leaf;
		if (key->common < writer->prefix_len)
		{
			writer->prefix_len = key->common;
			writer->prefix_bits = key->common_bits;
		}
	}
	writer->nleaves += end - i;
	writer->nopen = (uint32_t) (open - writer->open);
}

/* link_leaves() for processors with the instructions of BITS_TARGET. */
BITS_TARGET static void
link_leaves_fast(SurfWriter *writer, const SurfBatch *batch, uint32_t i,
				 uint32_t end)
{
	link_leaves(writer, batch, i, end);
}

/* link_leaves() for others. */
static void
link_leaves_portable(SurfWriter *writer, const SurfBatch *batch, uint32_t i,
					 uint32_t end)
{
	link_leaves(writer, batch, i, end);
}

static void
add_leaves(SurfWriter *writer, const SurfBatch *batch, uint32_t i, uint32_t end)
{
	if (BITS_CPU_IS_FAST())
		link_leaves_fast(writer, batch, i, end);
	else
		link_leaves_portable(writer, batch, i, end);
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
	grow_records(writer, batch);
	if (writer->hashes != NULL)
		hash_batch(writer, batch, i);
	if (writer->nleaves == 0)
		first_leaf(writer, coder, surf_batch_key(batch, i++));
	if (i > batch->n)
		return i;
	if (BITS_CPU_IS_FAST())
		code_batch_fast(writer, coder, batch, i);
	else
		code_batch_portable(writer, coder, batch, i);

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
	SurfEntry  *entry = &writer->entries[writer->nleaves];

	entry->own = 1;
	writer->longest_rest = greater(writer->longest_rest,
								   rest_of_key(coder, entry[-1].own, 1));
}

/* The depth of the uppermost node, all bits of the key if there is none. */
uint32_t
surf_writer_base(const SurfWriter *writer)
{
	return writer->nopen > 0 ? (uint32_t) writer->open[1].depth :
		writer->prefix_bits;
}
