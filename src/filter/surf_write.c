/*-------------------------------------------------------------------------
 *
 * surf_write.c
 *	  Gathering the leaves of a content page of SuRF.
 *
 * Leaves come in key order, and with each comes the node between it and the
 * leaf before.  A node whose depth is greater than that of the newest one has
 * all its leaves; the others are open: a stack of nodes, each on the right of
 * the one before.  surf_emit.c writes what has been gathered here.
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
	filter_free(writer->open);
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
	return writer->longest_rest;
}

void
surf_writer_reset(SurfWriter *writer)
{
	writer->nleaves = 0;
	writer->nopen = 0;
	writer->free_bits = 0;
	writer->longest_rest = 0;
	writer->nrecord_bits = 0;
}

/*
 * The depth of the i-th open node, counted from 1; -1 above all.
 */
static inline int64_t
open_depth(const SurfWriter *writer, uint32_t i)
{
	return i == 0 ? -1 :
		(int64_t) writer->entries[writer->open[i - 1]].depth;
}

/*
 * The depth of the parent of the i-th open node.  The uppermost node has no
 * bits of its own: they are in the page's prefix and lead.
 */
static inline int64_t
parent_depth(const SurfWriter *writer, uint32_t i)
{
	return i == 1 ? open_depth(writer, 1) - 1 : open_depth(writer, i - 1);
}

/*
 * What becomes the left side of a new node at depth: all that open nodes at
 * greater depths have.  Sets *nopen to how many stay open.
 */
static SurfSubtree
left_of(const SurfWriter *writer, uint32_t depth, uint32_t *nopen)
{
	uint32_t	end = writer->nleaves;
	SurfSubtree subtree = leaf_subtree(end - 1);
	uint32_t	i = writer->nopen;

	while (open_depth(writer, i) > (int64_t) depth)
	{
		const SurfEntry *entry = &writer->entries[writer->open[i - 1]];
		int64_t		above = open_depth(writer, i - 1);

		subtree = join_subtrees(entry->left, subtree, writer->open[i - 1], end,
								entry->depth,
								above > (int64_t) depth ? above : depth);
		i--;
	}
	*nopen = i;
	return subtree;
}

/*
 * The whole tree, if subtree, whose leaves end before end, completes the
 * first nopen open nodes.
 */
static SurfSubtree
complete(const SurfWriter *writer, SurfSubtree subtree, uint32_t end,
		 uint32_t nopen)
{
	uint32_t	i;

	for (i = nopen; i > 0; i--)
	{
		const SurfEntry *entry = &writer->entries[writer->open[i - 1]];

		subtree = join_subtrees(entry->left, subtree, writer->open[i - 1], end,
								entry->depth, parent_depth(writer, i));
	}
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
 * The length of the page with one more leaf, in bits.  Sets how much longer it
 * could become if skips, those there are, took the most bits they may.
 */
static uint64_t
length_with(const SurfWriter *writer, const SurfShared *shared,
			uint32_t suffix_256, uint64_t *reserve)
{
	uint32_t	leaf = writer->nleaves;
	uint32_t	nopen;
	uint32_t	prefix_len = writer->prefix_len;
	SurfSubtree left = left_of(writer, shared->bits, &nopen);
	SurfSubtree tree;

	if (shared->bytes < prefix_len)
		prefix_len = shared->bytes;
	tree = join_subtrees(left, leaf_subtree(leaf), leaf, leaf + 1, shared->bits,
						 nopen > 0 ? open_depth(writer, nopen) :
						 (int64_t) shared->bits - 1);
	tree = complete(writer, tree, leaf + 1, nopen);
	*reserve = tree.skip_width > writer->most_skip_width ? 0 :
		(uint64_t) (writer->most_skip_width - tree.skip_width) * tree.nskips;
	return 8 * (SURF_PAGE_HEADER + prefix_len) + tree.bits +
		(uint64_t) tree.skip_width * tree.nskips + surf_parts_reserve(leaf + 1) +
		((uint64_t) suffix_256 * (leaf + 1) + 255) / 256;
}

/*
 * Would the page be too long with one more leaf?  The exact length takes a
 * walk over all open nodes.  Most leaves do without: from the last walk on
 * count what they might have added at most.
 */
bool
surf_writer_is_full(SurfWriter *writer, const SurfShared *shared,
					uint32_t suffix_256)
{
	uint64_t	bound;
	uint64_t	reserve;
	uint64_t	length;

	/*
	 * A node with its chain, whose code may divide another; a longer code for
	 * all left counts; a skip, for just one node can have its ninth leaf on
	 * the right now; a longer one for nodes whose numbers of leaves become
	 * powers of two.
	 */
	bound = 3 * 33 + shared->bits + writer->nopen + 1 +
		16 + writer->most_skip_width + 16 + 1 + suffix_256 / 256 + 1;
	if (writer->nopen > 0 && open_depth(writer, 1) < (int64_t) shared->bits &&
		shared->bytes >= writer->prefix_len &&
		(int64_t) bound <= writer->free_bits)
	{
		writer->free_bits -= bound;
		return writer->nleaves >= SURF_MAX_LEAVES;
	}

	length = length_with(writer, shared, suffix_256, &reserve);
	writer->free_bits = 8 * (int64_t) writer->page_size -
		(int64_t) (length + reserve);
	return length > 8 * (uint64_t) writer->page_size ||
		writer->nleaves >= SURF_MAX_LEAVES;
}

/* Makes room for one more entry. */
static void
grow_entries(SurfWriter *writer)
{
	if (writer->nleaves < writer->max_leaves)
		return;
	writer->max_leaves = writer->max_leaves * 2 + 256;
	writer->entries = filter_realloc(writer->entries,
									 writer->max_leaves * sizeof(SurfEntry));
	writer->open = filter_realloc(writer->open,
								  writer->max_leaves * sizeof(uint32_t));
}

/*
 * The newest open node has got all its leaves, those on the right in subtree;
 * parent is its parent's depth.  Returns all of it.
 */
static BITS_INLINE SurfSubtree
close_node(SurfWriter *writer, SurfSubtree subtree, int64_t parent)
{
	uint32_t	i = writer->open[--writer->nopen];
	SurfEntry  *entry = &writer->entries[i];

	entry->right = subtree;
	entry->end = writer->nleaves;
	entry->chain = (uint32_t) (entry->depth - parent - 1);
	return join_subtrees(entry->left, subtree, i, entry->end, entry->depth,
						 parent);
}

/*
 * Closes all open nodes below depth, which become the left side of a new node:
 * that is left_of().  The bits above above are the new node's or others'; last
 * is what the newest open node has on the right.  Notes blocks, if so asked.
 */
static BITS_INLINE SurfSubtree
close_below(SurfWriter *writer, SurfSubtree last, int64_t depth, int64_t above,
			bool blocks)
{
	while (open_depth(writer, writer->nopen) > depth)
	{
		int64_t		parent = open_depth(writer, writer->nopen - 1);

		last = close_node(writer, last, parent > above ? parent : above);
		if (blocks && writer->nleaves - last.first <= SURF_BLOCK_LEAVES)
			writer->entries[last.first].block = last.root;
	}
	return last;
}

/* Adds a leaf, see surf_write.h. */
void
surf_writer_add(SurfWriter *writer, FilterBytes key, const SurfBits *bits,
				const SurfShared *shared)
{
	uint32_t	leaf = writer->nleaves;
	SurfEntry  *entry;

	grow_entries(writer);
	entry = &writer->entries[leaf];
	memset(entry, 0, sizeof(SurfEntry));
	if (writer->kind == FILTER_SUFFIX_HASH || writer->kind == FILTER_SUFFIX_MIXED)
		entry->hash = surf_hash(key);

	if (leaf == 0)
	{
		if (key.len > 0)
			memcpy(writer->prefix, key.data, key.len);
		writer->prefix_len = key.len;
		writer->prefix_bits = bits->nbits - surf_code_end(bits->code).len;
	}
	else
	{
		if (shared->bytes < writer->prefix_len)
		{
			writer->prefix_len = shared->bytes;
			writer->prefix_bits = shared->byte_bits;
		}
		entry->depth = shared->bits;
		entry->left = close_below(writer, leaf_subtree(leaf - 1),
								  shared->bits, shared->bits, true);
		writer->open[writer->nopen++] = leaf;
	}
	writer->nleaves++;
}

/* 64 bits of a key's complete code from pos on. */
static inline uint64_t
code_peek(const SurfBits *bits, uint32_t pos)
{
	const uint64_t *word = &bits->words[pos / 64];
	uint32_t	skip = pos % 64;

	if (pos >= bits->nbits)
		return 0;
	return word[0] << skip | (word[1] >> 1) >> (63 - skip);
}

/*
 * Records the newest leaf's own bits, as the next one is known, see
 * surf_write.h.
 */
void
surf_writer_next(SurfWriter *writer, const SurfBits *bits, uint32_t next_shared)
{
	uint32_t	leaf = writer->nleaves - 1;
	SurfEntry  *entry = &writer->entries[leaf];
	uint32_t	from = leaf == 0 ? 0 : entry->depth + 1;
	uint32_t	to = next_shared + 1 > from ? next_shared + 1 : from;
	uint64_t	pos = writer->nrecord_bits;

	if (to < bits->nbits && bits->nbits - to > writer->longest_rest)
		writer->longest_rest = bits->nbits - to;

	/* If it stays alone, the page's prefix is all of the first key. */
	if (leaf == 0 && to < writer->prefix_bits)
		to = writer->prefix_bits;
	to += writer->max_suffix;

	entry->record = pos;
	if ((pos + to - from) / 64 + 2 > writer->max_record_words)
	{
		writer->max_record_words = writer->max_record_words * 2 +
			(to - from) / 64 + 1024;
		writer->records = filter_realloc(writer->records,
										 writer->max_record_words * 8);
	}
	if (pos == 0)
		writer->records[0] = 0;
	while (from < to)
	{
		uint64_t	value = code_peek(bits, from);
		uint64_t   *word = &writer->records[pos / 64];
		uint32_t	now = to - from < 64 ? to - from : 64;

		/* What is past the end of this record is cut off again. */
		value &= ~(UINT64_MAX >> 1 >> (now - 1));
		word[0] |= value >> pos % 64;
		word[1] = (value << 1) << (63 - pos % 64);
		pos += now;
		from += now;
	}
	writer->nrecord_bits = pos;
}

/* The depth of the uppermost node, all bits of the key if there is none. */
uint32_t
surf_writer_base(const SurfWriter *writer)
{
	return writer->nopen > 0 ? writer->entries[writer->open[0]].depth :
		writer->prefix_bits;
}

/*
 * The head that a part beginning with leaf would have: last is that of the leaf
 * before.
 */
static inline uint32_t
next_head(const SurfWriter *writer, uint32_t base, uint32_t leaf, uint32_t last)
{
	const SurfEntry *entry = &writer->entries[leaf];
	uint32_t	from = leaf == 0 ? base : entry->depth + 1;
	uint32_t	known = from - base;
	uint64_t	record = entry->record + (from - record_depth(writer, leaf));
	uint64_t	end = leaf + 1 < writer->nleaves ? entry[1].record :
	writer->nrecord_bits;
	uint32_t	n;

	if (known > SURF_HEAD_BITS)
		return last;
	n = SURF_HEAD_BITS - known;
	if (n > end - record)
		n = (uint32_t) (end - record);
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
	writer->parts[writer->nparts++].first = first;
	writer->entries[first].head = head;
}

/*
 * Ends a part, whose keys begin with depth bits in common; adds it to sum.  last
 * is as in close_below().
 */
static void
end_part(SurfWriter *writer, SurfSubtree last, uint32_t depth, SurfSubtree *sum)
{
	SurfSubtree tree = close_below(writer, last, -1, (int64_t) depth - 1, false);
	SurfPart   *part = &writer->parts[writer->nparts - 1];

	part->depth = depth;
	part->root = tree.root;
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
	SurfSubtree last = leaf_subtree(0);
	uint32_t	nleaves = writer->nleaves;
	uint32_t	head = 0;
	uint32_t	leaf = 0;

	writer->nopen = 0;
	writer->nparts = 0;
	while (leaf < nleaves)
	{
		SurfEntry  *entry = &writer->entries[leaf];
		uint32_t	first = leaf > 0 ? writer->parts[writer->nparts - 1].first : 0;
		uint32_t	n = leaf - first;

		writer->nleaves = nleaves;
		head = next_head(writer, base, leaf, head);
		writer->nleaves = leaf;
		if (leaf == 0)
			begin_part(writer, 0, head);

		/* Best where the node would be above all others of the part. */
		else if (n >= least && entry->depth - base < SURF_HEAD_BITS &&
				 (n / 3 >= least || writer->nopen == 0 ||
				  open_depth(writer, 1) > (int64_t) entry->depth))
		{
			uint32_t	differing = head ^ writer->entries[first].head;

			end_part(writer, last,
					 base + SURF_HEAD_BITS - 1 - bits_log2(differing), &sum);
			begin_part(writer, leaf, head);
		}
		else
		{
			entry->left = close_below(writer, last, entry->depth, entry->depth,
									  false);
			writer->open[writer->nopen++] = leaf;
		}

		/* The root of a block is left open, as its chain may change. */
		last = leaf_subtree(leaf);
		if (entry->block == 0)
			leaf++;
		else
		{
			SurfEntry  *root = &writer->entries[entry->block];

			writer->open[writer->nopen++] = entry->block;
			last = root->right;
			leaf = root->end;
		}
	}
	writer->nleaves = nleaves;
	end_part(writer, last, base, &sum);
	return sum;
}
