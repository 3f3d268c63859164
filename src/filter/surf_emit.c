/*-------------------------------------------------------------------------
 *
 * surf_emit.c
 *	  Writing a content page of SuRF, once its leaves have been gathered.
 *
 * What room the nodes leave goes into the table for the upper levels and into
 * suffixes; see surf_page.h for the layout.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/port.h"
#include "filter/surf_write_impl.h"

/* Bits that put_bits() takes at a time. */
#define PUT_BITS 56

/* How the room in a page is used; positions in bits. */
typedef struct SurfLayout
{
	uint32_t	skip_width;
	uint32_t	base;			/* bits in the prefix and lead */
	uint32_t	nparts;			/* 0 if there is just one */
	uint32_t	suffix_bits;
	uint32_t	nlonger;		/* leaves whose suffix has one bit more */
	uint32_t	suffixes;		/* where they begin */
	uint32_t	nodes;
} SurfLayout;

/*
 * A place in a page where bits are appended.  What does not fill a byte yet
 * is kept here, too, so that nothing is read back.
 */
typedef struct SurfSink
{
	uint8_t    *next;			/* the byte that is being filled */
	uint64_t	bits;			/* its bits, on top; zeros below */
	uint32_t	nbits;			/* fewer than 8 */
} SurfSink;

/* Begins to append at a bit position, which is not before other bits. */
static BITS_INLINE SurfSink
begin_sink(uint8_t *page, uint32_t pos)
{
	SurfSink	sink = {page + pos / 8, 0, pos % 8};

	sink.bits = (uint64_t) sink.next[0] << 56;
	return sink;
}

/* Appends n <= PUT_BITS bits of value; writes 8 bytes. */
static BITS_INLINE void
put_bits(SurfSink *sink, uint64_t value, uint32_t n)
{
	uint64_t	bits = sink->bits | (value << 1) << (63 - n) >> sink->nbits;
	uint32_t	nbits = sink->nbits + n;

	bits_store64(sink->next, __builtin_bswap64(bits));
	sink->next += nbits / 8;
	sink->bits = bits << (nbits & ~7u);
	sink->nbits = nbits % 8;
}

/* Appends the n topmost bits of value; n is from 1 to PUT_BITS. */
static BITS_INLINE void
put_top(SurfSink *sink, uint64_t value, uint32_t n)
{
	uint64_t	bits = sink->bits | (value & ~(UINT64_MAX >> n)) >> sink->nbits;
	uint32_t	nbits = sink->nbits + n;

	bits_store64(sink->next, __builtin_bswap64(bits));
	sink->next += nbits / 8;
	sink->bits = bits << (nbits & ~7u);
	sink->nbits = nbits % 8;
}

/* Copies n bits of the records from a position on. */
static BITS_INLINE void
put_record(const SurfWriter *writer, SurfSink *sink, uint32_t from, uint32_t n)
{
	while (n > 0)
	{
		uint32_t	now = n < PUT_BITS ? n : PUT_BITS;

		put_bits(sink, get_record(writer, from, now), now);
		from += now;
		n -= now;
	}
}

/*
 * Copies n bits of a leaf's key from a depth on, be they its own or of the head
 * of the part that begins with it.
 */
static BITS_INLINE void
put_key(const SurfWriter *writer, const SurfLayout *layout, SurfSink *sink,
		const SurfPart *part, uint32_t leaf, uint32_t depth, uint32_t n)
{
	const SurfEntry *entry = &writer->entries[leaf];

	/* Nearly always: the leaf's own bits, and few. */
	if (depth >= entry->own && n <= PUT_BITS)
	{
		put_bits(sink, get_record(writer, entry->record + (depth - entry->own), n),
				 n);
		return;
	}
	if (depth < entry->own)
	{
		uint32_t	now = entry->own - depth < n ? entry->own - depth : n;
		uint16_t	bits = (uint16_t) (part->head << (depth - layout->base));

		put_bits(sink, bits >> (SURF_HEAD_BITS - now), now);
		depth += now;
		n -= now;
	}
	put_record(writer, sink, entry->record + (depth - entry->own), n);
}

/* Writes a node, without those below; chain bits of it are its own. */
static BITS_INLINE void
put_node(const SurfWriter *writer, const SurfLayout *layout, SurfSink *sink,
		 const SurfPart *part, const SurfNode *node)
{
	uint32_t	first = node->left.first;
	uint32_t	nleft = node->leaf - first;
	uint32_t	n = node->end - first;
	SurfNumbers numbers = code_numbers(nleft, n, node->chain);

	put_bits(sink, numbers.value, numbers.nbits);
	if (has_skip(nleft, n))
	{
		const SurfSubtree *side = left_is_first(nleft, n) ?
		&node->left : &node->right;

		put_bits(sink, side->bits + layout->skip_width * side->nskips,
				 bits_log2(n) + layout->skip_width);
	}
	if (node->chain > 0)
		put_key(writer, layout, sink, part, first, node->depth - node->chain,
				node->chain);
}

/* Writes the nodes of a block, if there are any. */
static BITS_INLINE void
put_block(const SurfWriter *writer, const SurfLayout *layout, SurfSink *sink,
		  const SurfPart *part, uint32_t first)
{
	const SurfEntry *entry = &writer->entries[first];
	uint64_t	high = entry->high;
	uint64_t	low = entry->low;
	uint32_t	n = entry->nbits;

	if (entry->nleaves == 1)
		return;
	if (entry->chain != entry->coded_chain)
	{
		SurfNumbers coded = code_numbers(entry->nleft, entry->nleaves,
										 entry->coded_chain);
		SurfNumbers numbers = code_numbers(entry->nleft, entry->nleaves,
										   entry->chain);
		uint32_t	skip = coded.nbits + entry->coded_chain;

		put_bits(sink, numbers.value, numbers.nbits);
		put_key(writer, layout, sink, part, first, entry->depth - entry->chain,
				entry->chain);
		high = high << skip | low >> (64 - skip);
		low <<= skip;
		n -= skip;
	}
	while (n > PUT_BITS)
	{
		put_bits(sink, high >> (64 - PUT_BITS), PUT_BITS);
		high = high << PUT_BITS | low >> (64 - PUT_BITS);
		low <<= PUT_BITS;
		n -= PUT_BITS;
	}
	put_bits(sink, (high >> 1) >> (63 - n), n);
}

/* Writes the nodes of a part. */
static BITS_INLINE void
put_part(const SurfWriter *writer, const SurfLayout *layout, SurfSink *sink,
		 const SurfPart *part)
{
	/* Second sides to come: each level has half the leaves at most. */
	const SurfSubtree *stack[32];
	uint32_t	nstack = 0;
	const SurfSubtree *tree = &part->tree;

	for (;;)
	{
		const SurfNode *node = &writer->nodes[tree->root];

		if (tree->root != 0)
		{
			bool		left = left_is_first(node->leaf - node->left.first,
											 node->end - node->left.first);

			put_node(writer, layout, sink, part, node);
			stack[nstack++] = left ? &node->right : &node->left;
			tree = left ? &node->left : &node->right;
			continue;
		}
		put_block(writer, layout, sink, part, tree->first);
		if (nstack == 0)
			return;
		tree = stack[--nstack];
	}
}

/* Decides on the suffixes, given the bits left for them. */
static void
divide_suffixes(const SurfWriter *writer, uint64_t available, SurfLayout *layout)
{
	uint32_t	most = surf_suffix_most(writer->kind, (uint32_t) writer->longest_rest);

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

/* Bits of all nodes. */
static uint64_t
tree_cost(const SurfSubtree *tree)
{
	return tree->bits + (uint64_t) tree->skip_width * tree->nskips;
}

/*
 * Cuts the page into parts, as small ones as can be if all must not cost more
 * than allowed.  Returns the cost in bits and sets layout's skip_width and
 * nparts.
 */
static uint64_t
cut_parts(SurfWriter *writer, SurfLayout *layout, uint64_t allowed)
{
	uint32_t	least = writer->part_leaves;

	for (;;)
	{
		SurfSubtree sum = surf_writer_cut(writer, layout->base, least);
		uint64_t	cost = tree_cost(&sum);
		uint32_t	shift = surf_nodes_shift(writer->page_size);

		layout->skip_width = sum.skip_width;
		layout->nparts = writer->nparts > 1 ? writer->nparts : 0;
		cost += (8 * SURF_PART_SIZE + (1 << shift) - 1) * layout->nparts;
		if (cost <= allowed || layout->nparts == 0)
		{
			/* Pages are much alike: much room left means a smaller one next. */
			writer->part_leaves = least;
			if (layout->nparts == 0)
				writer->part_leaves = SURF_LEAST_PART;
			else if (allowed - cost > allowed / 128 && least > SURF_LEAST_PART)
				writer->part_leaves = least - least / 16;
			return cost;
		}
		least = least < writer->nleaves ? least + least / 8 : UINT32_MAX;
	}
}

/* Decides how the room in the page is used, and closes all nodes. */
static SurfLayout
lay_out(SurfWriter *writer)
{
	SurfLayout	layout;
	uint64_t	available = 8 * (writer->page_size - SURF_PAGE_HEADER -
								 writer->prefix_len);
	uint64_t	cost = surf_writer_node_bits(writer) + writer->page_size / 16;

	layout.base = surf_writer_base(writer);
	cost = cut_parts(writer, &layout, cost < available ? cost : available);
	if (cost > available)
		filter_fail("keys do not fit their page");
	divide_suffixes(writer, available - cost, &layout);

	layout.suffixes = 8 * (SURF_PAGE_HEADER + writer->prefix_len +
						   SURF_PART_SIZE * layout.nparts);
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
	page[1] = (uint8_t) (layout->skip_width | lead_bits << 4);
	bits_store16(page + 2, (uint16_t) writer->nleaves);
	bits_store16(page + 4, (uint16_t) layout->suffix_bits);
	bits_store16(page + 6, (uint16_t) layout->nlonger);
	bits_store16(page + 8, (uint16_t) writer->prefix_len);
	bits_store16(page + 10, (uint16_t) layout->nparts);
	bits_store16(page + 12, (uint16_t) get_record(writer, writer->prefix_bits,
												  lead_bits));
	bits_store64(page + 14, rank);
	memcpy(page + SURF_PAGE_HEADER, writer->prefix, writer->prefix_len);
}

/*
 * Writes the suffix of a leaf, of so many bits: the first one of its part, or
 * any with many bits or a hash.  It ends at depth.
 */
static BITS_INLINE void
put_suffix(const SurfWriter *writer, const SurfLayout *layout, SurfSink *sink,
		   const SurfPart *part, uint32_t leaf, uint32_t depth, uint32_t nbits)
{
	SurfSuffix	suffix = surf_suffix_split(writer->kind, nbits);
	uint64_t	hash;

	put_key(writer, layout, sink, part, leaf, depth, suffix.real);
	if (suffix.hash == 0)
		return;
	hash = writer->hashes[leaf];
	if (suffix.hash > 32)
	{
		put_bits(sink, hash >> 32, 32);
		hash <<= 32;
		suffix.hash -= 32;
	}
	put_bits(sink, (hash >> 1) >> (63 - suffix.hash), suffix.hash);
}

/*
 * Writes the suffixes of a part whose leaves end before end.  A leaf ends where
 * its key differs from the nearer one of its neighbours in its part.
 */
static BITS_INLINE void
put_part_suffixes(const SurfWriter *writer, const SurfLayout *layout,
				  SurfSink *sink, const SurfPart *part, uint32_t end)
{
	const SurfEntry *entry = &writer->entries[part->first];
	const uint8_t *records = writer->records;
	uint32_t	suffix_bits = layout->suffix_bits;
	uint32_t	nlonger = layout->nlonger;
	bool		few = writer->hashes == NULL && suffix_bits < PUT_BITS &&
	suffix_bits > 0;
	uint32_t	leaf = part->first;
	uint32_t	depth = part->depth;

	for (; leaf < end; leaf++, entry++)
	{
		uint32_t	nbits = suffix_bits + (leaf < nlonger);
		uint32_t	own = entry->own;
		uint32_t	next = leaf + 1 < end ? entry[1].own : 0;
		uint32_t	from;

		if (leaf > part->first)
			depth = own;
		depth = depth > next ? depth : next;
		if (depth < own || !few)
		{
			put_suffix(writer, layout, sink, part, leaf, depth, nbits);
			continue;
		}
		from = entry->record + depth - own;
		put_top(sink, __builtin_bswap64(bits_load64(records + from / 8)) << from % 8,
				nbits);
	}
}

/* Writes all suffixes. */
static BITS_INLINE void
put_suffixes(const SurfWriter *writer, const SurfLayout *layout, uint8_t *page)
{
	SurfSink	sink = begin_sink(page, layout->suffixes);
	uint32_t	i;

	if (layout->suffix_bits == 0 && layout->nlonger == 0)
		return;
	for (i = 0; i < writer->nparts; i++)
	{
		const SurfPart *part = &writer->parts[i];

		put_part_suffixes(writer, layout, &sink, part, i + 1 < writer->nparts ?
						  part[1].first : writer->nleaves);
	}
}

/* Writes the nodes, and what leads to those of each part. */
static BITS_INLINE void
put_nodes(const SurfWriter *writer, const SurfLayout *layout, uint8_t *page)
{
	SurfSink	sink = begin_sink(page, layout->nodes);
	uint8_t    *heads = page + SURF_PAGE_HEADER + writer->prefix_len;
	uint8_t    *starts = heads + 2 * layout->nparts;
	uint32_t	align = surf_nodes_shift(writer->page_size);
	uint32_t	i;

	for (i = 0; i < writer->nparts; i++)
	{
		const SurfPart *part = &writer->parts[i];

		if (layout->nparts > 0)
		{
			uint32_t	pos = (uint32_t) (8 * (sink.next - page)) + sink.nbits -
			layout->nodes;

			put_bits(&sink, 0, -pos & ((1u << align) - 1));
			pos += -pos & ((1u << align) - 1);
			bits_store16(heads + 2 * i, (uint16_t) part->head);
			bits_store16(starts + 4 * i, (uint16_t) part->first);
			bits_store16(starts + 4 * i + 2, (uint16_t) (pos >> align));
		}
		put_part(writer, layout, &sink, part);
	}
}

/* Writes all but the header, on processors with the instructions of BITS_TARGET. */
BITS_TARGET static void
put_content_fast(const SurfWriter *writer, const SurfLayout *layout, uint8_t *page)
{
	/* In this order: what is put writes zeros over what follows. */
	put_suffixes(writer, layout, page);
	put_nodes(writer, layout, page);
}

/* The same on others. */
static void
put_content_portable(const SurfWriter *writer, const SurfLayout *layout,
					 uint8_t *page)
{
	put_suffixes(writer, layout, page);
	put_nodes(writer, layout, page);
}

/* Writes the page, see surf_write.h. */
void
surf_writer_end(SurfWriter *writer, uint64_t rank, uint8_t *page)
{
	SurfLayout	layout = lay_out(writer);

	put_header(writer, &layout, rank, page);
	if (BITS_CPU_IS_FAST())
		put_content_fast(writer, &layout, page);
	else
		put_content_portable(writer, &layout, page);
	surf_writer_reset(writer);
}
