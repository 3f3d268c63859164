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
	uint32_t	base;			/* bits in the prefix and lead */
	uint32_t	top_bits;
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

/* Writes a node; the bits of its chain are at a position of the records. */
static inline void
put_node(const SurfWriter *writer, SurfSink *sink, uint32_t i, uint32_t chain,
		 uint64_t record)
{
	const SurfEntry *entry = &writer->entries[i];
	uint32_t	nleft = i - entry->left.first;
	uint32_t	n = entry->end - entry->left.first;
	uint64_t	value = chain + 1;
	uint32_t	nbits = gamma_bits(chain + 1);

	/* Both take 48 bits at most. */
	if (n > 2)
	{
		SurfBinary	binary = surf_binary(n - 1);
		uint32_t	longer = nleft > binary.threshold;

		value = value << (binary.nbits + longer) |
			(nleft - 1 + (longer ? binary.threshold : 0));
		nbits += binary.nbits + longer;
	}
	if (nleft > SURF_SKIP_LEAVES)
	{
		put_bits(sink, value, nbits);
		put_bits(sink, entry->left.bits +
				 (uint64_t) writer->skip_width * entry->left.nskips,
				 bits_width(nleft) + writer->skip_width);
		put_record(writer, sink, record, chain);
	}
	else if (nbits + chain <= PUT_BITS)
		put_bits(sink, value << chain | get_record(writer, record, chain),
				 nbits + chain);
	else
	{
		put_bits(sink, value, nbits);
		put_record(writer, sink, record, chain);
	}
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

/*
 * Writes all suffixes.  A leaf ends where its key differs from the nearer one
 * of its neighbours, but not before the table does.
 */
static void
put_suffixes(const SurfWriter *writer, const SurfLayout *layout, uint8_t *page)
{
	SurfSink	sink = begin_sink(page, layout->suffixes);
	uint32_t	leaf;

	if (layout->suffix_bits == 0 && layout->nlonger == 0)
		return;
	for (leaf = 0; leaf < writer->nleaves; leaf++)
	{
		const SurfEntry *entry = &writer->entries[leaf];
		SurfSuffix	suffix = surf_suffix_split(writer->kind, layout->suffix_bits +
											   (leaf < layout->nlonger));
		uint32_t	recorded = leaf == 0 ? 0 : entry->depth + 1;
		uint32_t	depth = layout->base + layout->top_bits;
		uint64_t	hash = entry->hash;

		if (recorded > depth)
			depth = recorded;
		if (leaf + 1 < writer->nleaves && entry[1].depth + 1 > depth)
			depth = entry[1].depth + 1;
		put_record(writer, &sink, entry->record + (depth - recorded), suffix.real);
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

/* Writes the nodes, and the table above them. */
static void
put_nodes(const SurfWriter *writer, const SurfLayout *layout, uint8_t *page)
{
	SurfSink	sink = begin_sink(page, layout->nodes);
	uint8_t    *top = page + SURF_PAGE_HEADER + writer->prefix_len;
	uint32_t	align = surf_nodes_shift(writer->page_size);
	uint32_t	next_top = 0;
	uint32_t	value = 0;
	uint32_t	leaf;

	for (leaf = 0; leaf < writer->nleaves; leaf++)
	{
		const SurfEntry *entry = &writer->entries[leaf];
		uint32_t	recorded = leaf == 0 ? 0 : entry->depth + 1;
		uint32_t	depth = recorded;
		uint32_t	i = entry->nodes;

		if (leaf == 0 || entry->depth < layout->base + layout->top_bits)
		{
			/* A subtree begins, whose nodes are those below the table. */
			depth = layout->base + layout->top_bits;
			while (i != 0 && writer->entries[i].depth < depth)
				i = writer->entries[i].next;
			if (layout->top_bits > 0)
			{
				uint32_t	pos = (uint32_t) (8 * (sink.next - page)) + sink.nbits -
				layout->nodes;

				put_bits(&sink, 0, -pos & ((1u << align) - 1));
				pos += -pos & ((1u << align) - 1);
				value = next_top_value(writer, layout, leaf, value);
				put_top(top, &next_top, value, leaf, pos >> align);
			}
		}
		for (; i != 0; i = writer->entries[i].next)
		{
			uint32_t	chain = writer->entries[i].depth - depth;

			put_node(writer, &sink, i, chain, entry->record + (depth - recorded));
			depth += chain + 1;
		}
	}
	if (layout->top_bits > 0)
		put_top(top, &next_top, 1 << layout->top_bits, writer->nleaves, 0);
}

/* Writes the page, see surf_write.h. */
void
surf_writer_end(SurfWriter *writer, uint64_t rank, uint8_t *page)
{
	uint64_t	cost = surf_writer_node_bits(writer);
	uint32_t	base = writer->nopen > 0 ? writer->entries[writer->open[0]].depth :
	writer->prefix_bits;
	SurfLayout	layout;

	surf_writer_close(writer);
	layout = lay_out(writer, base, cost);
	put_header(writer, &layout, rank, page);

	/* In this order: what is put writes zeros over what follows. */
	put_suffixes(writer, &layout, page);
	put_nodes(writer, &layout, page);
	surf_writer_reset(writer);
}
