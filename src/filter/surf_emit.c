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
static inline SurfSink
begin_sink(uint8_t *page, uint32_t pos)
{
	SurfSink	sink = {page + pos / 8, 0, pos % 8};

	sink.bits = (uint64_t) sink.next[0] << 56;
	return sink;
}

/* Appends n <= PUT_BITS bits of value; writes 8 bytes. */
static inline void
put_bits(SurfSink *sink, uint64_t value, uint32_t n)
{
	uint64_t	bits = sink->bits | (value << 1) << (63 - n) >> sink->nbits;
	uint32_t	nbits = sink->nbits + n;

	bits_store64(sink->next, __builtin_bswap64(bits));
	sink->next += nbits / 8;
	sink->bits = bits << (nbits & ~7u);
	sink->nbits = nbits % 8;
}

/* Copies n bits of the records from a position on. */
static inline void
put_record(const SurfWriter *writer, SurfSink *sink, uint64_t from, uint32_t n)
{
	while (n > 0)
	{
		uint32_t	now = n < PUT_BITS ? n : PUT_BITS;

		put_bits(sink, get_record(writer, from, now), now);
		from += now;
		n -= now;
	}
}

/* Copies n bits of a leaf's key from a depth on, be they of the head or its own. */
static inline void
put_key(const SurfWriter *writer, const SurfLayout *layout, SurfSink *sink,
		uint32_t leaf, uint32_t depth, uint32_t n)
{
	const SurfEntry *entry = &writer->entries[leaf];
	uint32_t	recorded = record_depth(writer, leaf);

	if (depth < recorded)
	{
		uint32_t	now = recorded - depth < n ? recorded - depth : n;
		uint16_t	bits = (uint16_t) (entry->head << (depth - layout->base));

		put_bits(sink, bits >> (SURF_HEAD_BITS - now), now);
		depth += now;
		n -= now;
	}
	put_record(writer, sink, entry->record + (depth - recorded), n);
}

/* Writes node i, without those below; chain bits of it are its own. */
static inline void
put_node(const SurfWriter *writer, const SurfLayout *layout, SurfSink *sink,
		 uint32_t i, uint32_t chain)
{
	const SurfEntry *entry = &writer->entries[i];
	const SurfEntry *leaf = &writer->entries[entry->left.first];
	uint32_t	recorded = record_depth(writer, entry->left.first);
	uint32_t	depth = entry->depth - chain;
	uint32_t	nleft = i - entry->left.first;
	uint32_t	n = entry->end - entry->left.first;
	SurfBinary	binary = surf_binary(n - 1);
	uint32_t	longer = nleft > binary.threshold;
	uint32_t	nbits = gamma_bits(chain + 1) + binary.nbits + longer;
	uint64_t	value = (uint64_t) (nleft - 1 + (longer ? binary.threshold : 0)) <<
	gamma_bits(chain + 1) | (chain + 1);

	/* Most nodes: all in one, the chain from the leaf's own bits. */
	if (!has_skip(nleft, n) && nbits + chain <= PUT_BITS && depth >= recorded)
	{
		put_bits(sink, value << chain |
				 get_record(writer, leaf->record + (depth - recorded), chain),
				 nbits + chain);
		return;
	}

	/* Both numbers take 48 bits at most. */
	put_bits(sink, value, nbits);
	if (has_skip(nleft, n))
	{
		const SurfSubtree *first = left_is_first(nleft, n) ?
		&entry->left : &entry->right;

		put_bits(sink, first->bits + layout->skip_width * first->nskips,
				 bits_log2(n) + layout->skip_width);
	}
	if (chain > 0)
		put_key(writer, layout, sink, entry->left.first, depth, chain);
}

/*
 * Writes the nodes of a subtree, if there are any; the chain of the root begins
 * at depth.
 */
static void
put_subtree(const SurfWriter *writer, const SurfLayout *layout, SurfSink *sink,
			uint32_t root, uint32_t depth)
{
	/* Second sides to come: each level has half the leaves at most. */
	uint32_t	stack[32];
	uint32_t	nstack = 0;

	if (root == 0)
		return;
	put_node(writer, layout, sink, root, writer->entries[root].depth - depth);
	for (;;)
	{
		const SurfEntry *entry = &writer->entries[root];
		bool		left = left_is_first(root - entry->left.first,
										 entry->end - entry->left.first);
		uint32_t	first = left ? entry->left.root : entry->right.root;
		uint32_t	second = left ? entry->right.root : entry->left.root;

		if (first != 0 && second != 0)
			stack[nstack++] = second;
		root = first != 0 ? first : second;
		if (root == 0)
		{
			if (nstack == 0)
				return;
			root = stack[--nstack];
		}
		put_node(writer, layout, sink, root, writer->entries[root].chain);
	}
}

/* Decides on the suffixes, given the bits left for them. */
static void
divide_suffixes(const SurfWriter *writer, uint64_t available, SurfLayout *layout)
{
	uint32_t	most = surf_suffix_most(writer->kind, writer->longest_rest);

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
 * Writes all suffixes.  A leaf ends where its key differs from the nearer one
 * of its neighbours in its part.
 */
static void
put_suffixes(const SurfWriter *writer, const SurfLayout *layout, uint8_t *page)
{
	SurfSink	sink = begin_sink(page, layout->suffixes);
	uint32_t	part = 0;
	uint32_t	end = 0;		/* of the part */
	uint32_t	leaf;

	if (layout->suffix_bits == 0 && layout->nlonger == 0)
		return;
	for (leaf = 0; leaf < writer->nleaves; leaf++)
	{
		const SurfEntry *entry = &writer->entries[leaf];
		SurfSuffix	suffix = surf_suffix_split(writer->kind, layout->suffix_bits +
											   (leaf < layout->nlonger));
		uint64_t	hash = entry->hash;
		uint32_t	depth;

		if (leaf == end)
		{
			depth = writer->parts[part++].depth;
			end = part < writer->nparts ? writer->parts[part].first :
				writer->nleaves;
		}
		else
			depth = entry->depth + 1;
		if (leaf + 1 < end && entry[1].depth + 1 > depth)
			depth = entry[1].depth + 1;
		put_key(writer, layout, &sink, leaf, depth, suffix.real);
		if (suffix.hash > 32)
		{
			put_bits(&sink, hash >> 32, 32);
			hash <<= 32;
			suffix.hash -= 32;
		}
		if (suffix.hash > 0)
			put_bits(&sink, hash >> (64 - suffix.hash), suffix.hash);
	}
}

/* Writes the nodes, and what leads to those of each part. */
static void
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
			bits_store16(heads + 2 * i,
						 (uint16_t) writer->entries[part->first].head);
			bits_store16(starts + 4 * i, (uint16_t) part->first);
			bits_store16(starts + 4 * i + 2, (uint16_t) (pos >> align));
		}
		put_subtree(writer, layout, &sink, part->root, part->depth);
	}
}

/* Writes the page, see surf_write.h. */
void
surf_writer_end(SurfWriter *writer, uint64_t rank, uint8_t *page)
{
	SurfLayout	layout = lay_out(writer);

	put_header(writer, &layout, rank, page);

	/* In this order: what is put writes zeros over what follows. */
	put_suffixes(writer, &layout, page);
	put_nodes(writer, &layout, page);
	surf_writer_reset(writer);
}
