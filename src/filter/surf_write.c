/*-------------------------------------------------------------------------
 *
 * surf_write.c
 *	  Writing a content page of SuRF, leaf by leaf.
 *
 * Between any two neighbouring leaves there is one node, the one that tells
 * them apart, at the depth of the first bit in which they differ: so node i
 * is kept with leaf i, which it separates from leaf i - 1, and node 0 is
 * none.  Leaves come in key order.  A node whose depth is greater than that
 * of the newest one has all its leaves; the others are open: a stack of
 * nodes, each on the right of the one before.
 *
 * The page's prefix is not part of its bit strings; here depths count from
 * the keys' beginnings nevertheless.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/port.h"
#include "filter/surf_write.h"

/* Bits that put_bits() takes at a time. */
#define PUT_BITS 57

/* A subtree that is complete. */
typedef struct SurfSubtree
{
	uint32_t	first;			/* leaf */
	uint32_t	nskips;			/* nodes that have a skip */
	uint64_t	bits;			/* of all nodes, less skip_width for each skip */
} SurfSubtree;

/* A leaf, and the node between it and the leaf before. */
typedef struct SurfEntry
{
	uint64_t	record;			/* where its bits are in records */
	uint64_t	hash;
	SurfSubtree left;			/* of the node */
	uint32_t	depth;			/* of the node: bits above it */
	uint32_t	end;			/* the node's leaves end before this one */

	/*
	 * The nodes that begin with this leaf, from the uppermost down: the first
	 * one here, the others linked by next; 0 is the end.
	 */
	uint32_t	nodes;
	uint32_t	next;
} SurfEntry;

struct SurfWriter
{
	uint32_t	page_size;
	FilterSuffix kind;
	uint32_t	max_suffix;

	SurfEntry  *entries;
	uint32_t   *open;			/* nodes, as many as entries at most */
	uint32_t	nleaves;
	uint32_t	nopen;
	uint32_t	max_leaves;		/* room in the arrays */

	/* What all keys have in common. */
	uint8_t		prefix[FILTER_MAX_KEY];
	uint32_t	prefix_len;
	uint32_t	prefix_bits;

	uint32_t	skip_width;
	int64_t		free_bits;		/* at least so many, see is_full */
	uint32_t	longest_rest;

	/*
	 * The leaves' own bits, those that the leaf before does not share, as far
	 * as nodes and suffixes can need them.
	 */
	uint64_t   *records;
	uint64_t	nrecord_bits;
	uint64_t	max_record_words;
};

/* Begins a writer of pages of so many bytes. */
SurfWriter *
surf_writer_begin(uint32_t page_size, FilterSuffix kind, uint32_t max_suffix)
{
	SurfWriter *writer = filter_alloc(sizeof(SurfWriter));

	writer->page_size = page_size;
	writer->kind = kind;
	writer->max_suffix = max_suffix;
	return writer;
}

void
surf_writer_free(SurfWriter *writer)
{
	filter_free(writer->entries);
	filter_free(writer->open);
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
	writer->skip_width = 0;
	writer->free_bits = 0;
	writer->longest_rest = 0;
	writer->nrecord_bits = 0;
}

/* Bits of the gamma code of value >= 1. */
static inline uint32_t
gamma_bits(uint32_t value)
{
	return 2 * bits_log2(value) + 1;
}

/* A single leaf. */
static inline SurfSubtree
leaf_subtree(uint32_t leaf)
{
	SurfSubtree result = {leaf, 0, 0};

	return result;
}

/*
 * Node i, at depth, with its two sides and its parent's depth (-1: above all
 * bits), as a subtree whose leaves end before end.
 */
static inline SurfSubtree
join_subtrees(SurfSubtree left, SurfSubtree right, uint32_t i, uint32_t end,
			  uint32_t depth, int64_t parent)
{
	SurfSubtree result;
	uint32_t	chain = (uint32_t) (depth - parent - 1);
	uint32_t	nleft = i - left.first;
	uint32_t	n = end - left.first;

	result.first = left.first;
	result.nskips = left.nskips + right.nskips;
	result.bits = left.bits + right.bits + gamma_bits(chain + 1) + chain;
	if (n > 2)
	{
		SurfBinary	binary = surf_binary(n - 1);

		result.bits += binary.nbits + (nleft > binary.threshold);
	}
	if (nleft > SURF_SKIP_LEAVES)
	{
		result.bits += bits_width(nleft);
		result.nskips++;
	}
	return result;
}

/*
 * The smallest skip_width, and no less than at_least, with which the node's
 * skip over its left side, of nleft leaves, fits.
 */
static inline uint32_t
skip_width_for(SurfSubtree left, uint32_t nleft, uint32_t at_least)
{
	uint32_t	width = at_least;

	if (nleft > SURF_SKIP_LEAVES)
	{
		while (bits_width(left.bits + (uint64_t) width * left.nskips) >
			   bits_width(nleft) + width)
			width++;
	}
	return width;
}

/* The depth of open node i, counted from the first; before it, outermost. */
static inline int64_t
open_depth(const SurfWriter *writer, uint32_t i, int64_t outermost)
{
	return i == 0 ? outermost :
		(int64_t) writer->entries[writer->open[i - 1]].depth;
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

	while (open_depth(writer, i, -1) > (int64_t) depth)
	{
		const SurfEntry *entry = &writer->entries[writer->open[i - 1]];
		int64_t		above = open_depth(writer, i - 1, -1);

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
		 uint32_t nopen, uint32_t prefix_bits)
{
	uint32_t	i;

	for (i = nopen; i > 0; i--)
	{
		const SurfEntry *entry = &writer->entries[writer->open[i - 1]];

		subtree = join_subtrees(entry->left, subtree, writer->open[i - 1], end,
								entry->depth,
								open_depth(writer, i - 1, (int64_t) prefix_bits - 1));
	}
	return subtree;
}

/* Bits that the nodes over all leaves added take. */
uint64_t
surf_writer_node_bits(const SurfWriter *writer)
{
	SurfSubtree tree = complete(writer, leaf_subtree(writer->nleaves - 1),
								writer->nleaves, writer->nopen,
								writer->prefix_bits);

	return tree.bits + (uint64_t) writer->skip_width * tree.nskips;
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
	uint32_t	leaf = writer->nleaves;
	uint32_t	nopen;
	uint32_t	width;
	uint32_t	prefix_len = writer->prefix_len;
	uint32_t	prefix_bits = writer->prefix_bits;
	uint64_t	bound;
	uint64_t	total;
	SurfSubtree left = left_of(writer, shared->bits, &nopen);
	SurfSubtree tree;

	width = skip_width_for(left, leaf - left.first, writer->skip_width);

	/* A node with its chain, and a longer code for all left counts. */
	bound = 2 * SURF_CODE_BITS + 64 + shared->bits + nopen + 1 +
		suffix_256 / 256 + 1;
	if (nopen > 0 && shared->bytes >= prefix_len &&
		width == writer->skip_width && (int64_t) bound <= writer->free_bits)
	{
		writer->free_bits -= bound;
		return leaf >= SURF_MAX_LEAVES;
	}

	if (shared->bytes < prefix_len)
	{
		prefix_len = shared->bytes;
		prefix_bits = shared->byte_bits;
	}
	tree = join_subtrees(left, leaf_subtree(leaf), leaf, leaf + 1, shared->bits,
						 open_depth(writer, nopen, (int64_t) prefix_bits - 1));
	tree = complete(writer, tree, leaf + 1, nopen, prefix_bits);
	total = 8 * (SURF_PAGE_HEADER + prefix_len) + tree.bits +
		(uint64_t) width * tree.nskips +
		((uint64_t) suffix_256 * (leaf + 1) + 255) / 256;
	writer->free_bits = 8 * (int64_t) writer->page_size - (int64_t) total;
	return writer->free_bits < 0 || leaf >= SURF_MAX_LEAVES;
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

/* Node i has got all its leaves: they end before end. */
static void
close_node(SurfWriter *writer, uint32_t i, uint32_t end)
{
	SurfEntry  *entry = &writer->entries[i];
	SurfEntry  *first = &writer->entries[entry->left.first];

	entry->end = end;
	entry->next = first->nodes;
	first->nodes = i;
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
		uint32_t	nopen;

		if (shared->bytes < writer->prefix_len)
		{
			writer->prefix_len = shared->bytes;
			writer->prefix_bits = shared->byte_bits;
		}
		entry->depth = shared->bits;
		entry->left = left_of(writer, shared->bits, &nopen);
		writer->skip_width = skip_width_for(entry->left, leaf - entry->left.first,
											writer->skip_width);
		while (writer->nopen > nopen)
			close_node(writer, writer->open[--writer->nopen], leaf);
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

/* Writes n <= PUT_BITS bits of value; 8 bytes from there on are writable. */
static inline void
put_bits(uint8_t *page, uint32_t *pos, uint64_t value, uint32_t n)
{
	uint8_t    *p = page + *pos / 8;
	uint64_t	word = bits_load64(p);

	if (n == 0)
		return;
	word |= __builtin_bswap64(value << (64 - n) >> *pos % 8);
	bits_store64(p, word);
	*pos += n;
}

/* Copies n bits of the records from a position on. */
static void
put_record(const SurfWriter *writer, uint8_t *page, uint32_t *pos,
		   uint64_t from, uint32_t n)
{
	while (n > 0)
	{
		const uint64_t *word = &writer->records[from / 64];
		uint32_t	skip = from % 64;
		uint32_t	now = n < PUT_BITS ? n : PUT_BITS;
		uint64_t	value = word[0] << skip | (word[1] >> 1) >> (63 - skip);

		put_bits(page, pos, value >> (64 - now), now);
		from += now;
		n -= now;
	}
}

/* Writes what stands before the bits of a node's chain. */
static void
put_node(const SurfWriter *writer, uint8_t *page, uint32_t *pos, uint32_t i,
		 uint32_t chain)
{
	const SurfEntry *entry = &writer->entries[i];
	uint32_t	nleft = i - entry->left.first;
	uint32_t	n = entry->end - entry->left.first;

	put_bits(page, pos, chain + 1, gamma_bits(chain + 1));
	if (n > 2)
	{
		SurfBinary	binary = surf_binary(n - 1);

		if (nleft > binary.threshold)
			put_bits(page, pos, nleft - 1 + binary.threshold, binary.nbits + 1);
		else
			put_bits(page, pos, nleft - 1, binary.nbits);
	}
	if (nleft > SURF_SKIP_LEAVES)
		put_bits(page, pos, entry->left.bits +
				 (uint64_t) writer->skip_width * entry->left.nskips,
				 bits_width(nleft) + writer->skip_width);
}

/*
 * Decides on the suffixes, given the bits left for them: sets how many bits
 * each has and how many leaves have one more.
 */
static void
divide_suffixes(const SurfWriter *writer, uint64_t available,
				uint32_t *suffix_bits, uint32_t *nlonger)
{
	uint32_t	most = 0;

	if (writer->kind == FILTER_SUFFIX_HASH)
		most = SURF_MAX_HASH;
	else if (writer->kind == FILTER_SUFFIX_REAL)
		most = writer->longest_rest;
	else if (writer->kind == FILTER_SUFFIX_MIXED)
		most = writer->longest_rest + SURF_MAX_HASH;
	if (most > writer->max_suffix)
		most = writer->max_suffix;

	*suffix_bits = most;
	*nlonger = 0;
	if (available / writer->nleaves < most)
	{
		*suffix_bits = (uint32_t) (available / writer->nleaves);
		*nlonger = (uint32_t) (available % writer->nleaves);
	}
}

/* Writes the page, see surf_write.h. */
void
surf_writer_end(SurfWriter *writer, uint8_t *page)
{
	uint32_t	nleaves = writer->nleaves;
	uint32_t	nodes_bits = (uint32_t) surf_writer_node_bits(writer);
	uint32_t	pos = 8 * (SURF_PAGE_HEADER + writer->prefix_len);
	uint32_t	node_pos;
	uint32_t	suffix_bits;
	uint32_t	nlonger;
	uint32_t	leaf;

	while (writer->nopen > 0)
		close_node(writer, writer->open[--writer->nopen], nleaves);
	if (pos + nodes_bits > 8 * writer->page_size)
		filter_fail("keys do not fit their page");
	divide_suffixes(writer, 8 * writer->page_size - pos - nodes_bits,
					&suffix_bits, &nlonger);

	page[0] = SURF_PAGE_MAGIC;
	page[1] = (uint8_t) writer->skip_width;
	bits_store16(page + 2, (uint16_t) nleaves);
	bits_store16(page + 4, (uint16_t) suffix_bits);
	bits_store16(page + 6, (uint16_t) nlonger);
	bits_store16(page + 8, (uint16_t) writer->prefix_len);
	memcpy(page + SURF_PAGE_HEADER, writer->prefix, writer->prefix_len);

	node_pos = pos + nleaves * suffix_bits + nlonger;
	for (leaf = 0; leaf < nleaves; leaf++)
	{
		const SurfEntry *entry = &writer->entries[leaf];
		uint32_t	recorded = leaf == 0 ? 0 : entry->depth + 1;
		uint32_t	depth = leaf == 0 ? writer->prefix_bits : recorded;
		SurfSuffix	suffix = surf_suffix_split(writer->kind,
											   suffix_bits + (leaf < nlonger));
		uint32_t	i;

		for (i = entry->nodes; i != 0; i = writer->entries[i].next)
		{
			uint32_t	chain = writer->entries[i].depth - depth;

			put_node(writer, page, &node_pos, i, chain);
			put_record(writer, page, &node_pos,
					   entry->record + (depth - recorded), chain);
			depth += chain + 1;
		}
		put_record(writer, page, &pos, entry->record + (depth - recorded),
				   suffix.real);
		if (suffix.hash > 32)
			put_bits(page, &pos, entry->hash >> 32, 32);
		if (suffix.hash > 32)
			put_bits(page, &pos, entry->hash << 32 >> (96 - suffix.hash),
					 suffix.hash - 32);
		else if (suffix.hash > 0)
			put_bits(page, &pos, entry->hash >> (64 - suffix.hash), suffix.hash);
	}
	surf_writer_reset(writer);
}
