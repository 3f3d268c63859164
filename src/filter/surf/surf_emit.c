/*-------------------------------------------------------------------------
 *
 * surf_emit.c
 *	  Writing a content page of SuRF from its leaves.
 *
 * The room that the nodes leave goes into parts and suffixes.  surf_page.h has
 * the layout.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/surf/surf_write_impl.h"

/* Bits that put_bits() takes at a time. */
#define PUT_BITS 56

/*
 * A place in a page where bits are appended.  The bits of a byte that is not
 * full are kept here, too, so that nothing is read back.
 */
typedef struct SurfSink
{
	uint8_t    *next;			/* the byte that is being filled */
	uint64_t	bits;			/* its bits, on top; zeros below */
	uint32_t	nbits;			/* fewer than 8 */
} SurfSink;

/* Begins to append at a bit position.  There are no bits behind it yet. */
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
 * Copies n bits of a leaf's key from a depth on.  They are in its record or,
 * before its own bits, in the head of the part that begins with it.
 */
static BITS_INLINE void
put_key(const SurfWriter *writer, SurfSink *sink, const SurfPart *part,
		uint32_t leaf, uint32_t depth, uint32_t n)
{
	uint32_t	own = writer->own[leaf];

	if (depth < own)
	{
		uint32_t	now = own - depth < n ? own - depth : n;
		uint16_t	bits = (uint16_t) (part->head << (depth - writer->layout.base));

		put_bits(sink, bits >> (SURF_HEAD_BITS - now), now);
		depth += now;
		n -= now;
	}
	put_record(writer, sink, writer->record[leaf] + (depth - own), n);
}

/*
 * Writes n bits of value, which has no others, where the page has zeros; n is
 * from 1 to PUT_BITS.
 */
static BITS_INLINE void
or_bits(uint8_t *page, uint32_t pos, uint64_t value, uint32_t n)
{
	uint8_t    *to = page + pos / 8;
	uint64_t	bits = value << (64 - pos % 8 - n);

	bits_store64(to, bits_load64(to) | __builtin_bswap64(bits));
}

/* The part that a leaf is in. */
static const SurfPart *
part_of(const SurfWriter *writer, uint32_t leaf)
{
	uint32_t	from = 0;
	uint32_t	to = writer->nparts;

	while (from + 1 < to)
	{
		uint32_t	middle = (from + to) / 2;

		if (writer->parts[middle].first <= leaf)
			from = middle;
		else
			to = middle;
	}
	return &writer->parts[from];
}

/*
 * Writes the bits of a node's chain, however many there are, also those that
 * are in the head of its part.
 */
static void
or_chain(const SurfWriter *writer, uint32_t i, uint32_t pos, uint8_t *page)
{
	uint32_t	first = writer->left[i];
	uint32_t	own = writer->own[first];
	uint32_t	depth = writer->top[i];
	uint32_t	chain = writer->own[i] - depth - 1u;

	if (depth < own && chain > 0)
	{
		uint32_t	n = own - depth < chain ? own - depth : chain;
		uint16_t	bits = (uint16_t) (part_of(writer, first)->head <<
									   (depth - writer->layout.base));

		or_bits(page, pos, bits >> (SURF_HEAD_BITS - n), n);
		pos += n;
		depth += n;
		chain -= n;
	}
	while (chain > 0)
	{
		uint32_t	n = chain < PUT_BITS ? chain : PUT_BITS;

		or_bits(page, pos,
				get_record(writer, writer->record[first] + (depth - own), n), n);
		pos += n;
		depth += n;
		chain -= n;
	}
}

/* Writes a node, and sets the positions of its children. */
static BITS_INLINE void
put_node(const SurfWriter *writer, uint32_t i, uint8_t *page)
{
	uint32_t	skip_width = writer->layout.skip_width;
	uint32_t	left = writer->left[i];
	uint32_t	right = writer->right[i];
	uint32_t	nleft = i - left;
	uint32_t	n = right - left;
	uint32_t	is_left = -(uint32_t) left_is_first(nleft, n);
	uint32_t	side = (uint32_t)
	sum_bits(sum_between(writer->sums, i ^ ((i ^ left) & is_left),
						 right ^ ((right ^ i) & is_left)), skip_width);
	uint32_t	own = writer->own[left];
	uint32_t	top = writer->top[i];
	uint32_t	chain = writer->own[i] - top - 1u;
	uint32_t	skip = -(writer->costs[i] >> 16);
	uint32_t	skip_bits = (bits_log2(n) + skip_width) & skip;
	uint32_t	total = (uint16_t) writer->costs[i] + (skip_width & skip);
	uint32_t	pos = writer->pos[i];

	skip &= side;
	if ((total <= PUT_BITS) & (top >= own))
	{
		uint64_t	value = (uint64_t) writer->numbers[i] << skip_bits | skip;

		value = value << chain |
			get_record(writer, writer->record[left] + top - own, chain);
		or_bits(page, pos, value, total);
	}
	else
	{
		SurfNumbers numbers = code_numbers(nleft, n, chain);

		or_bits(page, pos, numbers.value, numbers.nbits);
		if (skip_bits > 0)
			or_bits(page, pos + numbers.nbits, skip, skip_bits);
		or_chain(writer, i, pos + numbers.nbits + skip_bits, page);
	}
	pos += total;
	writer->pos[writer->children[i][0]] = pos + (side & ~is_left);
	writer->pos[writer->children[i][1]] = pos + (side & is_left);
}

/*
 * Writes the nodes of a part: first the root, then its children, and so on.
 * When a node is written, its position is known, and there is no branch that
 * cannot be predicted.
 */
static BITS_INLINE void
put_part(const SurfWriter *writer, uint32_t root, uint8_t *page)
{
	uint16_t   *queue = writer->queue;
	uint32_t	nqueue = root != 0;
	uint32_t	i;

	queue[0] = (uint16_t) root;
	for (i = 0; i < nqueue; i++)
	{
		const uint16_t *children = writer->children[queue[i]];

		put_node(writer, queue[i], page);
		queue[nqueue] = children[0];
		nqueue += children[0] != 0;
		queue[nqueue] = children[1];
		nqueue += children[1] != 0;
	}
}

/* Writes the nodes, heads and starts of all parts. */
static BITS_INLINE void
put_nodes(const SurfWriter *writer, uint8_t *page)
{
	const SurfLayout *layout = &writer->layout;
	uint8_t    *heads = page + SURF_PAGE_HEADER + layout->prefix_len;
	uint8_t    *starts = heads + 2 * layout->nparts;
	uint32_t	align = surf_nodes_shift(writer->page_size);
	uint32_t	pos = layout->nodes;
	uint32_t	i;

	for (i = 0; i < writer->nparts; i++)
	{
		const SurfPart *part = &writer->parts[i];
		uint32_t	end = part_end(writer, i, layout->nleaves);
		uint32_t	root = writer->children[end][0];

		if (layout->nparts > 0)
		{
			uint32_t	start = (pos - layout->nodes + (1u << align) - 1) >> align;

			pos = layout->nodes + (start << align);
			bits_store16(heads + 2 * i, (uint16_t) part->head);
			bits_store16(starts + 4 * i, (uint16_t) part->first);
			bits_store16(starts + 4 * i + 2, (uint16_t) start);
		}
		writer->pos[root] = pos;
		put_part(writer, root, page);
		pos += (uint32_t) sum_bits(sum_between(writer->sums, part->first, end),
								   layout->skip_width);
	}
}

/* Sets the length of suffixes, given the bits that are left for them. */
static void
divide_suffixes(SurfWriter *writer, uint64_t available)
{
	SurfLayout *layout = &writer->layout;
	uint32_t	most = surf_suffix_most(writer->kind, (uint32_t) writer->longest_rest);

	if (most > writer->max_suffix)
		most = writer->max_suffix;

	if (writer->merging)
		most = 0;
	layout->suffix_bits = most;
	layout->nlonger = 0;
	if (available / layout->nleaves < most)
	{
		layout->suffix_bits = (uint32_t) (available / layout->nleaves);
		layout->nlonger = (uint32_t) (available % layout->nleaves);
	}
}

/*
 * Cuts the page into parts as small as possible, if nodes and parts together
 * must not cost more than allowed.  Returns their cost in bits, and sets
 * skip_width and nparts.
 */
static uint64_t
cut_parts(SurfWriter *writer, uint64_t allowed)
{
	SurfLayout *layout = &writer->layout;
	uint32_t	part_bits = 8 * SURF_PART_SIZE +
	(1 << surf_nodes_shift(writer->page_size)) - 1;
	uint32_t	least = writer->part_leaves;
	SurfSum		sum;

	for (;;)
	{
		uint64_t	cost;

		sum = surf_writer_choose(writer, layout->nleaves, layout->base, least);
		cost = sum_bits(sum, layout->skip_width) + part_bits * writer->nparts;

		if (writer->nparts == 1)
		{
			writer->part_leaves = SURF_LEAST_PART;
			break;
		}
		if (cost <= allowed)
		{
			/*
			 * Pages are alike: if much room is left, the next page begins
			 * with smaller parts.
			 */
			writer->part_leaves = least;
			if (allowed - cost > allowed / 128 && least > SURF_LEAST_PART)
				writer->part_leaves = least - least / 16;
			break;
		}
		least = least < layout->nleaves ? least + least / 8 : UINT32_MAX;
	}
	layout->nparts = writer->nparts > 1 ? writer->nparts : 0;
	sum = surf_writer_cut(writer, layout->nleaves, &layout->skip_width);
	return sum_bits(sum, layout->skip_width) + part_bits * layout->nparts;
}

/* Bits of the code of the first bytes of a key. */
static uint32_t
code_length(const SurfCoder *coder, FilterBytes key, uint32_t len)
{
	uint32_t	nbits = 0;
	uint32_t	i;

	for (i = 0; i < len; i++)
		nbits += (uint32_t) (coder->symbols[key.data[i]] & SURF_SYMBOL_LEN);
	return nbits;
}

/* See surf_write_impl.h. */
bool
surf_writer_lay_out(SurfWriter *writer, const SurfCoder *coder, uint32_t n)
{
	SurfLayout *layout = &writer->layout;
	uint64_t	cost = writer->node_bits + writer->page_size / 16;
	uint64_t	available;
	uint32_t	uppermost;

	surf_writer_sum(writer, n, &uppermost);
	layout->nleaves = n;
	layout->prefix_len = uppermost == 0 ? writer->leaves[0].len :
		writer->leaves[uppermost].common;
	layout->prefix_bits = code_length(coder, leaf_key(writer, 0),
									  layout->prefix_len);
	layout->base = uppermost == 0 ? layout->prefix_bits :
		writer->own[uppermost] - 1u;
	available = 8 * (uint64_t) (writer->page_size - SURF_PAGE_HEADER -
								layout->prefix_len);

	cost = cut_parts(writer, cost < available ? cost : available);
	if (cost > available)
		return false;
	divide_suffixes(writer, available - cost);
	layout->suffixes = 8 * (SURF_PAGE_HEADER + layout->prefix_len +
							SURF_PART_SIZE * layout->nparts);
	layout->nodes = layout->suffixes + n * layout->suffix_bits + layout->nlonger;
	return true;
}

/* Writes the header and the prefix. */
static void
put_header(const SurfWriter *writer, uint64_t rank, uint8_t *page)
{
	const SurfLayout *layout = &writer->layout;
	uint32_t	lead_bits = layout->base - layout->prefix_bits;
	uint32_t	record = writer->record[0];

	page[0] = SURF_PAGE_MAGIC;
	page[1] = (uint8_t) (layout->skip_width | lead_bits << 4);
	bits_store16(page + 2, (uint16_t) layout->nleaves);
	bits_store16(page + 4, (uint16_t) layout->suffix_bits);
	bits_store16(page + 6, (uint16_t) layout->nlonger);
	bits_store16(page + 8, (uint16_t) layout->prefix_len);
	bits_store16(page + 10, (uint16_t) layout->nparts);
	bits_store16(page + 12, (uint16_t) get_record(writer, record + layout->prefix_bits,
												  lead_bits));
	bits_store64(page + 14, rank);
	memcpy(page + SURF_PAGE_HEADER, leaf_key(writer, 0).data,
		   layout->prefix_len);
}

/*
 * Writes the suffix of any leaf, of any length.  The leaf ends at depth.
 */
static void
put_suffix(const SurfWriter *writer, SurfSink *sink, const SurfPart *part,
		   uint32_t leaf, uint32_t depth, uint32_t nbits)
{
	SurfSuffix	suffix = surf_suffix_split(writer->kind, nbits);
	uint64_t	hash;

	put_key(writer, sink, part, leaf, depth, suffix.real);
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
 * Writes the suffixes of the leaves [first, end), of which none is the first
 * or last one of its part.  They are real bits only, from 1 to PUT_BITS.
 */
static BITS_INLINE void
put_few_suffixes(const SurfWriter *writer, SurfSink *sink, uint32_t first,
				 uint32_t end)
{
	const uint8_t *records = writer->records;
	uint32_t	suffix_bits = writer->layout.suffix_bits;
	uint32_t	nlonger = writer->layout.nlonger;
	uint32_t	leaf;

	for (leaf = first; leaf < end; leaf++)
	{
		uint32_t	own = writer->own[leaf];
		uint32_t	from = writer->record[leaf] +
		greater(own, writer->own[leaf + 1]) - own;

		put_top(sink, __builtin_bswap64(bits_load64(records + from / 8)) << from % 8,
				suffix_bits + (leaf < nlonger));
	}
}

/*
 * Writes the suffixes of a part whose leaves end before end.  A leaf ends where
 * its key differs from the nearer one of its neighbours in its part.
 */
static BITS_INLINE void
put_part_suffixes(const SurfWriter *writer, SurfSink *sink,
				  const SurfPart *part, uint32_t end)
{
	const uint16_t *own = writer->own;
	uint32_t	suffix_bits = writer->layout.suffix_bits;
	uint32_t	nlonger = writer->layout.nlonger;
	bool		few = writer->hashes == NULL && suffix_bits < PUT_BITS &&
	suffix_bits > 0;
	uint32_t	leaf = part->first;
	uint32_t	depth = part->depth;

	for (; leaf < end; leaf++)
	{
		uint32_t	next = leaf + 1 < end ? own[leaf + 1] : 0;

		put_suffix(writer, sink, part, leaf, greater(depth, next),
				   suffix_bits + (leaf < nlonger));
		if (few && leaf + 2 < end)
		{
			put_few_suffixes(writer, sink, leaf + 1, end - 1);
			leaf = end - 2;
		}
		depth = own[leaf + 1];
	}
}

/* Writes all suffixes. */
static BITS_INLINE void
put_suffixes(const SurfWriter *writer, uint8_t *page)
{
	const SurfLayout *layout = &writer->layout;
	SurfSink	sink = begin_sink(page, layout->suffixes);
	uint32_t	i;

	if (layout->suffix_bits == 0 && layout->nlonger == 0)
		return;
	for (i = 0; i < writer->nparts; i++)
		put_part_suffixes(writer, &sink, &writer->parts[i],
						  part_end(writer, i, layout->nleaves));
}

/* Writes all but the header, on processors with the instructions of BITS_TARGET. */
BITS_TARGET static void
put_content_fast(const SurfWriter *writer, uint8_t *page)
{
	/* Suffixes come first: they write zeros over the bytes behind them. */
	put_suffixes(writer, page);
	put_nodes(writer, page);
}

/* The same on others. */
static void
put_content_portable(const SurfWriter *writer, uint8_t *page)
{
	put_suffixes(writer, page);
	put_nodes(writer, page);
}

/* Writes the page, see surf_write_impl.h. */
void
surf_writer_emit(const SurfWriter *writer, uint64_t rank, uint8_t *page)
{
	put_header(writer, rank, page);
	if (BITS_CPU_IS_FAST())
		put_content_fast(writer, page);
	else
		put_content_portable(writer, page);
}
