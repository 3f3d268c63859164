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
	uint32_t	depth;			/* of the node: the bits above its branch */
	uint32_t	chain;			/* those of them that are its own */
	uint32_t	end;			/* the node's leaves end before this one */

	/*
	 * The nodes that begin with this leaf, from the uppermost down: the first
	 * one here, the others linked by next; 0 is the end.
	 */
	uint32_t	nodes;
	uint32_t	next;
} SurfEntry;

/* How the room in a page is used; positions in bits. */
typedef struct SurfLayout
{
	uint32_t	base;			/* bits in the prefix and lead */
	uint32_t	top_bits;
	uint32_t	suffix_bits;
	uint32_t	nlonger;		/* leaves whose suffix has one bit more */
	uint32_t	suffixes;		/* where they begin */
	uint32_t	nodes;
} SurfLayout;

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

	/* What is_full has found out for a node to come; depth 0: nothing. */
	SurfSubtree next_left;
	uint32_t	next_nopen;
	uint32_t	next_depth;
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
	writer->next_depth = 0;
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
	uint64_t	bound;
	uint64_t	total;
	SurfSubtree left = left_of(writer, shared->bits, &nopen);
	SurfSubtree tree;

	writer->next_left = left;
	writer->next_nopen = nopen;
	writer->next_depth = shared->bits;
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
		prefix_len = shared->bytes;
	tree = join_subtrees(left, leaf_subtree(leaf), leaf, leaf + 1, shared->bits,
						 nopen > 0 ? open_depth(writer, nopen) :
						 (int64_t) shared->bits - 1);
	tree = complete(writer, tree, leaf + 1, nopen);
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

/* The newest open node has got all its leaves; parent is its parent's depth. */
static void
close_node(SurfWriter *writer, int64_t parent)
{
	uint32_t	i = writer->open[--writer->nopen];
	SurfEntry  *entry = &writer->entries[i];
	SurfEntry  *first = &writer->entries[entry->left.first];

	entry->end = writer->nleaves;
	entry->chain = (uint32_t) (entry->depth - parent - 1);
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
		if (writer->next_depth > 0 && writer->next_depth == shared->bits)
		{
			entry->left = writer->next_left;
			nopen = writer->next_nopen;
		}
		else
			entry->left = left_of(writer, shared->bits, &nopen);
		writer->next_depth = 0;
		writer->skip_width = skip_width_for(entry->left, leaf - entry->left.first,
											writer->skip_width);
		while (writer->nopen > nopen)
		{
			int64_t		above = open_depth(writer, writer->nopen - 1);

			close_node(writer, above > (int64_t) shared->bits ? above : shared->bits);
		}
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
	to += SURF_MAX_TOP + writer->max_suffix;

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

/* Up to PUT_BITS bits of the records from a position on. */
static inline uint64_t
get_record(const SurfWriter *writer, uint64_t from, uint32_t n)
{
	const uint64_t *word = &writer->records[from / 64];
	uint32_t	skip = from % 64;
	uint64_t	value = word[0] << skip | (word[1] >> 1) >> (63 - skip);

	return (value >> 1) >> (63 - n);
}

/* Copies n bits of the records from a position on. */
static void
put_record(const SurfWriter *writer, uint8_t *page, uint32_t *pos,
		   uint64_t from, uint32_t n)
{
	while (n > 0)
	{
		uint32_t	now = n < PUT_BITS ? n : PUT_BITS;

		put_bits(page, pos, get_record(writer, from, now), now);
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

/* Bits of node i in front of its chain's, without the length of the chain. */
static uint32_t
node_bits(const SurfWriter *writer, uint32_t i)
{
	const SurfEntry *entry = &writer->entries[i];
	SurfSubtree none = {entry->left.first, 0, 0};
	SurfSubtree alone = join_subtrees(none, none, i, entry->end, 0, -1);

	return (uint32_t) (alone.bits - 1 + writer->skip_width * alone.nskips);
}

/*
 * Decides how many bits the table for the upper levels is indexed by: as many
 * as do not cost more than allowed, compared with nodes for all levels.
 * *cost is what those cost, and is changed by the difference.
 */
static uint32_t
choose_top_bits(const SurfWriter *writer, uint32_t base, uint64_t allowed,
				uint64_t *cost)
{
	int64_t		change[SURF_MAX_TOP + 1];
	int64_t		removed = 0;
	int64_t		saved[SURF_MAX_TOP + 1];
	uint32_t	shift = surf_nodes_shift(writer->page_size);
	uint32_t	best = 0;
	uint32_t	i;
	int			t;

	memset(change, 0, sizeof(change));
	memset(saved, 0, sizeof(saved));
	for (i = 1; i < writer->nleaves; i++)
	{
		const SurfEntry *entry = &writer->entries[i];
		int			depth = (int) (entry->depth - base);
		int			parent = depth - (int) entry->chain - 1;
		int			chain_bits = (int) (gamma_bits(entry->chain + 1) + entry->chain);

		if (parent >= SURF_MAX_TOP)
			continue;

		/* With these tables it becomes the root of a subtree ... */
		for (t = parent + 1; t <= depth && t <= SURF_MAX_TOP; t++)
			if (t > 0)
				change[t] += (int) (gamma_bits(depth - t + 1) + depth - t) - chain_bits;

		/* ... and with larger ones it is not needed. */
		if (depth < SURF_MAX_TOP)
			saved[depth] += chain_bits + node_bits(writer, i);
	}

	for (t = 1; t <= SURF_MAX_TOP && 1u << t <= writer->nleaves; t++)
	{
		removed += saved[t - 1];
		change[t] += 32 * ((1 << t) + 1) + ((int64_t) ((1 << shift) - 1) << t) -
			removed;
		if (change[t] <= (int64_t) allowed)
			best = (uint32_t) t;
	}
	if (best > 0)
		*cost += change[best];
	return best;
}

/* Decides on the suffixes, given the bits left for them. */
static void
divide_suffixes(const SurfWriter *writer, uint64_t available, SurfLayout *layout)
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

	layout->suffix_bits = most;
	layout->nlonger = 0;
	if (available / writer->nleaves < most)
	{
		layout->suffix_bits = (uint32_t) (available / writer->nleaves);
		layout->nlonger = (uint32_t) (available % writer->nleaves);
	}
}

/*
 * Decides how the room in the page is used.  All nodes are closed; cost is
 * what they take without a table.
 */
static SurfLayout
lay_out(const SurfWriter *writer, uint32_t base, uint64_t cost)
{
	SurfLayout	layout;
	uint64_t	available = 8 * (writer->page_size - SURF_PAGE_HEADER -
								 writer->prefix_len);
	uint64_t	allowed = writer->page_size / 16;

	if (cost > available)
		filter_fail("keys do not fit their page");
	if (allowed > available - cost)
		allowed = available - cost;
	layout.base = base;
	layout.top_bits = choose_top_bits(writer, base, allowed, &cost);
	divide_suffixes(writer, available - cost, &layout);

	layout.suffixes = 8 * (SURF_PAGE_HEADER + writer->prefix_len);
	if (layout.top_bits > 0)
		layout.suffixes += 32 * ((1 << layout.top_bits) + 1);
	layout.nodes = layout.suffixes + writer->nleaves * layout.suffix_bits +
		layout.nlonger;
	return layout;
}

/* Writes the header and the prefix. */
static void
put_header(const SurfWriter *writer, const SurfLayout *layout, uint64_t rank,
		   uint8_t *page)
{
	uint32_t	lead_bits = layout->base - writer->prefix_bits;

	page[0] = SURF_PAGE_MAGIC;
	page[1] = (uint8_t) writer->skip_width;
	bits_store16(page + 2, (uint16_t) writer->nleaves);
	bits_store16(page + 4, (uint16_t) layout->suffix_bits);
	bits_store16(page + 6, (uint16_t) layout->nlonger);
	bits_store16(page + 8, (uint16_t) writer->prefix_len);
	page[10] = (uint8_t) lead_bits;
	page[11] = (uint8_t) layout->top_bits;
	bits_store16(page + 12, (uint16_t) get_record(writer, writer->prefix_bits,
												  lead_bits));
	bits_store64(page + 14, rank);
	memcpy(page + SURF_PAGE_HEADER, writer->prefix, writer->prefix_len);
}

/* Fills the table's entries from *next up to value. */
static void
put_top(uint8_t *top, uint32_t *next, uint32_t value, uint32_t leaf,
		uint32_t where)
{
	for (; *next <= value; (*next)++)
	{
		bits_store16(top + 4 * *next, (uint16_t) leaf);
		bits_store16(top + 4 * *next + 2, (uint16_t) where);
	}
}

/* Writes a leaf's suffix; real bits are at a position of the records. */
static void
put_suffix(const SurfWriter *writer, uint8_t *page, uint32_t *pos,
		   uint32_t nbits, uint64_t record, uint64_t hash)
{
	SurfSuffix	suffix = surf_suffix_split(writer->kind, nbits);

	put_record(writer, page, pos, record, suffix.real);
	if (suffix.hash > 32)
	{
		put_bits(page, pos, hash >> 32, 32);
		hash <<= 32;
		suffix.hash -= 32;
	}
	if (suffix.hash > 0)
		put_bits(page, pos, hash >> (64 - suffix.hash), suffix.hash);
}

/*
 * The top bits of a leaf that is the first with these: value is those of the
 * leaf before, with which it shares depth - 1 bits.
 */
static uint32_t
next_top_value(const SurfWriter *writer, const SurfLayout *layout,
			   uint32_t leaf, uint32_t value)
{
	const SurfEntry *entry = &writer->entries[leaf];
	uint32_t	end = layout->base + layout->top_bits;
	uint32_t	rest;

	if (leaf == 0)
		return (uint32_t) get_record(writer, entry->record + layout->base,
									 layout->top_bits);
	rest = end - entry->depth - 1;
	return (value >> rest | 1) << rest |
		(uint32_t) get_record(writer, entry->record, rest);
}

/* Writes the page, see surf_write.h. */
void
surf_writer_end(SurfWriter *writer, uint64_t rank, uint8_t *page)
{
	uint64_t	cost = surf_writer_node_bits(writer);
	uint8_t    *top = page + SURF_PAGE_HEADER + writer->prefix_len;
	uint32_t	next_top = 0;
	uint32_t	value = 0;
	SurfLayout	layout;
	uint32_t	align;
	uint32_t	suffix_pos;
	uint32_t	node_pos;
	uint32_t	leaf;

	layout.base = writer->nopen > 0 ? writer->entries[writer->open[0]].depth :
		writer->prefix_bits;
	while (writer->nopen > 0)
		close_node(writer, parent_depth(writer, writer->nopen));
	layout = lay_out(writer, layout.base, cost);
	put_header(writer, &layout, rank, page);

	align = surf_nodes_shift(writer->page_size);
	suffix_pos = layout.suffixes;
	node_pos = layout.nodes;
	for (leaf = 0; leaf < writer->nleaves; leaf++)
	{
		const SurfEntry *entry = &writer->entries[leaf];
		uint32_t	recorded = leaf == 0 ? 0 : entry->depth + 1;
		uint32_t	depth = recorded;
		uint32_t	i = entry->nodes;

		if (leaf == 0 || entry->depth < layout.base + layout.top_bits)
		{
			/* A subtree begins, whose nodes are those below the table. */
			depth = layout.base + layout.top_bits;
			while (i != 0 && writer->entries[i].depth < depth)
				i = writer->entries[i].next;
			if (layout.top_bits > 0)
			{
				node_pos += (layout.nodes - node_pos) & ((1 << align) - 1);
				value = next_top_value(writer, &layout, leaf, value);
				put_top(top, &next_top, value, leaf,
						(node_pos - layout.nodes) >> align);
			}
		}
		for (; i != 0; i = writer->entries[i].next)
		{
			uint32_t	chain = writer->entries[i].depth - depth;

			put_node(writer, page, &node_pos, i, chain);
			put_record(writer, page, &node_pos,
					   entry->record + (depth - recorded), chain);
			depth += chain + 1;
		}
		put_suffix(writer, page, &suffix_pos,
				   layout.suffix_bits + (leaf < layout.nlonger),
				   entry->record + (depth - recorded), entry->hash);
	}
	if (layout.top_bits > 0)
		put_top(top, &next_top, 1 << layout.top_bits, writer->nleaves, 0);
	surf_writer_reset(writer);
}
