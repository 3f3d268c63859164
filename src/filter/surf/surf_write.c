/*-------------------------------------------------------------------------
 *
 * surf_write.c
 *	  Gathering the leaves of a content page of SuRF.
 *
 * Leaves come in key order.  With each comes the node between it and the leaf
 * before, of which only the depth is stored.  When there are as many leaves as
 * a page probably takes, surf_cut.c makes a tree of all nodes at once.  The
 * tree tells how many leaves fit.  surf_cut.c cuts it into parts, and
 * surf_emit.c writes these.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/base/port.h"
#include "filter/surf/surf_write_impl.h"

/*
 * The leaves after which it is estimated for the first time how many a page will
 * take.
 */
#define FIRST_LEAVES 1024

/* A page may take more leaves than the one before: more by one in MORE_LEAVES. */
#define MORE_LEAVES 12

/* The most leaves that are gathered. */
#define MOST_LEAVES (SURF_MAX_LEAVES - 2 * SURF_BATCH_KEYS)

/* Begins a writer of pages of page_size bytes. */
SurfWriter *
surf_writer_begin(uint32_t page_size, FilterSuffix kind, uint32_t max_suffix)
{
	SurfWriter *writer = filter_alloc(sizeof(SurfWriter));

	writer->page_size = page_size;
	writer->kind = kind;
	writer->max_suffix = max_suffix;
	writer->part_leaves = SURF_LEAST_PART;
	writer->enough = FIRST_LEAVES;
	writer->layout.skip_width = 2;	/* mostly */

	/* Bytes for the code's last bits, the end's code, and the suffix. */
	writer->zeros = (7 + SURF_CODE_BITS + max_suffix + 7) / 8;
	return writer;
}

void
surf_writer_free(SurfWriter *writer)
{
	filter_free(writer->own_room);
	filter_free(writer->record);
	filter_free(writer->leaves);
	filter_free(writer->hashes);
	filter_free(writer->keys);
	filter_free(writer->records);
	filter_free(writer->left);
	filter_free(writer->right);
	filter_free(writer->top);
	filter_free(writer->children);
	filter_free(writer->costs);
	filter_free(writer->numbers);
	filter_free(writer->sums);
	filter_free(writer->pos);
	filter_free(writer->queue);
	filter_free(writer->parts);
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

int64_t
surf_writer_all_rest(const SurfWriter *writer)
{
	return writer->all_rest;
}

bool
surf_writer_is_full(const SurfWriter *writer)
{
	return writer->nleaves >= writer->enough;
}

uint64_t
surf_writer_node_bits(const SurfWriter *writer)
{
	return writer->node_bits;
}

/* See surf_write.h. */
FilterBytes
surf_writer_key(const SurfWriter *writer, uint32_t i)
{
	return leaf_key(writer, i);
}

/* See surf_write.h. */
uint64_t
surf_writer_new_bytes(const SurfWriter *writer, uint32_t n)
{
	return writer->leaves[n < writer->nleaves ? n : n - 1].new_bytes -
		writer->leaves[0].new_bytes;
}

void
surf_writer_reset(SurfWriter *writer)
{
	writer->nleaves = 0;
	writer->nkeys = 0;
	writer->nrecords = 0;
	writer->longest_rest = 0;
	writer->all_rest = 0;
}

/* Makes room for another batch. */
static void
grow_leaves(SurfWriter *writer)
{
	uint32_t	max = writer->max_leaves * 2 + 2 * FIRST_LEAVES;
	uint32_t	room = max + 2 * SURF_WIDE_NODES;

	writer->max_leaves = max;
	writer->own_room = filter_realloc(writer->own_room, room * sizeof(uint16_t));
	writer->own = writer->own_room + SURF_WIDE_NODES;
	memset(writer->own_room, 0, SURF_WIDE_NODES * sizeof(uint16_t));
	memset(writer->own + writer->nleaves, 0,
		   (max + SURF_WIDE_NODES - writer->nleaves) * sizeof(uint16_t));
	writer->record = filter_realloc(writer->record, max * sizeof(uint32_t));
	writer->leaves = filter_realloc(writer->leaves, max * sizeof(SurfLeaf));
	writer->left = filter_realloc(writer->left, room * sizeof(uint16_t));
	writer->right = filter_realloc(writer->right, room * sizeof(uint16_t));
	writer->top = filter_realloc(writer->top, room * sizeof(uint16_t));
	writer->children = filter_realloc(writer->children,
									  room * sizeof(writer->children[0]));
	writer->costs = filter_realloc(writer->costs, room * sizeof(uint32_t));
	writer->numbers = filter_realloc(writer->numbers, room * sizeof(uint32_t));
	writer->sums = filter_realloc(writer->sums, room * sizeof(SurfSum));
	writer->pos = filter_realloc(writer->pos, room * sizeof(uint32_t));
	writer->queue = filter_realloc(writer->queue, room * sizeof(uint16_t));
	if (writer->kind == FILTER_SUFFIX_HASH || writer->kind == FILTER_SUFFIX_MIXED)
		writer->hashes = filter_realloc(writer->hashes, max * sizeof(uint64_t));
}

/* Makes room for n bytes in an array of bytes, and some that will follow. */
static uint8_t *
grow_bytes(uint8_t *bytes, uint32_t n, uint32_t *max)
{
	if (n <= *max)
		return bytes;
	*max = 2 * n + 65536;
	return filter_realloc(bytes, *max);
}

/*
 * Appends the codes of a batch's keys, from key i on, to the records: as many
 * bytes of each as nodes and suffixes can need.  Sets how many bits each has,
 * and how many it shares with the one before.
 */
static BITS_INLINE void
code_keys(SurfWriter *writer, SurfCoder *coder, SurfBatch *batch, uint32_t i)
{
	uint32_t   *record = &writer->record[writer->nleaves];
	uint8_t    *records = writer->records;
	uint8_t    *to = records + writer->nrecords;
	uint32_t	suffix_bytes = writer->suffix_bytes;
	uint32_t	zeros = writer->zeros;
	SurfBatchKey *key;

	for (key = &batch->keys[i]; key <= &batch->keys[batch->n]; key++)
	{
		uint32_t	common = key->common;
		uint32_t	needed = greater(common, key[1].common) + 1 + suffix_bytes;
		uint32_t	len = key->len < needed ? key->len : needed;
		uint32_t	j;

		surf_coder_compare(coder, batch, key);
		*record++ = 8 * (uint32_t) (to - records) - coder->starts[common];
		to = surf_coder_code(coder, batch->bytes + key->offset, len, common, to);
		for (j = 8; j < zeros; j += 8)
			bits_store64(to + j, 0);
		to += zeros;
		key->nbits = (uint16_t) coder->nbits;
	}
	writer->nrecords = (uint32_t) (to - records);
}

/*
 * The bits that a key has behind its leaf; own and next_own are the first bits
 * not shared with the one before and the next one.
 */
static BITS_INLINE int32_t
rest_of_key(const SurfCoder *coder, uint32_t nbits, uint32_t own,
			uint32_t next_own)
{
	return (int32_t) (nbits + coder->end_bits - greater(own, next_own));
}

/* Adds leaves for the keys of a batch, from key i on. */
static BITS_INLINE void
code_batch(SurfWriter *writer, SurfCoder *coder, SurfBatch *batch, uint32_t i)
{
	uint32_t	leaf = writer->nleaves;
	uint16_t   *own = writer->own;
	uint32_t   *record = writer->record;
	SurfLeaf   *leaves = writer->leaves;
	uint32_t	last_own = own[leaf - 1];
	uint32_t	new_bytes = leaves[leaf - 1].new_bytes;
	uint32_t	last_common = leaves[leaf - 1].common;
	uint32_t	nbits = coder->nbits;
	int32_t		longest = writer->longest_rest;
	int64_t		all = writer->all_rest;
	uint32_t	keys = writer->nkeys - batch->keys[1].offset;
	uint32_t	n = batch->n;

	/* The key behind the batch is not known yet. */
	batch->keys[n + 1].common = FILTER_MAX_KEY;
	code_keys(writer, coder, batch, i);
	for (; i <= n; i++, leaf++)
	{
		const SurfBatchKey *key = &batch->keys[i];
		uint32_t	next_own = key->shared + 1u;
		int32_t		rest = rest_of_key(coder, nbits, last_own, next_own);

		longest = rest > longest ? rest : longest;
		all += rest;
		nbits = key->nbits;
		last_own = next_own;
		new_bytes += greater(last_common, key->common) - last_common + 1;
		last_common = key->common;
		own[leaf] = (uint16_t) next_own;
		record[leaf] += next_own;
		leaves[leaf].key = keys + key->offset;
		leaves[leaf].new_bytes = new_bytes;
		leaves[leaf].len = key->len;
		leaves[leaf].common = key->common;
	}
	own[leaf] = 0;
	writer->longest_rest = longest;
	writer->all_rest = all;
}

/* code_batch() for processors with the instructions of BITS_TARGET. */
BITS_TARGET static void
code_batch_fast(SurfWriter *writer, SurfCoder *coder, SurfBatch *batch,
				uint32_t i)
{
	code_batch(writer, coder, batch, i);
}

/* code_batch() for others. */
static void
code_batch_portable(SurfWriter *writer, SurfCoder *coder, SurfBatch *batch,
					uint32_t i)
{
	code_batch(writer, coder, batch, i);
}

/* Sets the hashes of the leaves for a batch's keys. */
static void
hash_batch(SurfWriter *writer, const SurfBatch *batch)
{
	uint64_t   *hash = &writer->hashes[writer->nleaves];
	uint32_t	i;

	for (i = 1; i <= batch->n; i++)
		*hash++ = filter_hash(surf_batch_key(batch, i));
}

/* Adds the first leaf of a page: that of the batch's first key. */
static void
first_leaf(SurfWriter *writer, SurfCoder *coder, const SurfBatch *batch)
{
	FilterBytes key = surf_batch_key(batch, 1);
	uint8_t    *end = surf_coder_code(coder, key.data, key.len, 0, writer->records);

	memset(end + 1, 0, writer->zeros);
	writer->nrecords = (uint32_t) (end - writer->records) + writer->zeros;
	writer->suffix_bytes = (writer->max_suffix + coder->least_bits - 1) /
		coder->least_bits;
	writer->record[0] = 0;
	writer->leaves[0].key = 0;
	writer->leaves[0].new_bytes = 0;
	writer->leaves[0].len = (uint16_t) key.len;
	writer->leaves[0].common = 0;
	writer->own[0] = 0;
	writer->nleaves = 1;
}

/* Adds a batch, see surf_write.h. */
void
surf_writer_add(SurfWriter *writer, SurfCoder *coder, SurfBatch *batch)
{
	const uint8_t *bytes = batch->bytes + batch->keys[1].offset;
	uint32_t	nbytes = batch->nbytes - batch->keys[1].offset;
	uint32_t	n = batch->n;
	uint32_t	i = 1;

	if (n == 0)
		return;
	if (writer->nleaves + SURF_BATCH_KEYS + 1 > writer->max_leaves)
		grow_leaves(writer);
	writer->keys = grow_bytes(writer->keys, writer->nkeys + nbytes,
							  &writer->max_keys);
	writer->records = grow_bytes(writer->records,
								 writer->nrecords + 2 * batch->nbytes +
								 (SURF_BATCH_KEYS + 1) * (writer->zeros + 16),
								 &writer->max_records);
	if (writer->hashes != NULL)
		hash_batch(writer, batch);
	if (writer->nleaves == 0)
	{
		first_leaf(writer, coder, batch);
		i = 2;
	}
	if (BITS_CPU_IS_FAST())
		code_batch_fast(writer, coder, batch, i);
	else
		code_batch_portable(writer, coder, batch, i);
	memcpy(writer->keys + writer->nkeys, bytes, nbytes);
	writer->nkeys += nbytes;
	writer->nleaves += n + 1 - i;
}

/*
 * Makes the first leaf's record anew, with the whole code of its key, and
 * moves the records of the other leaves behind it.
 */
static void
keep_records(SurfWriter *writer, const SurfCoder *coder, FilterBytes key)
{
	uint32_t	n = writer->nleaves;
	uint32_t	from = n > 1 ? writer->record[1] / 8 : writer->nrecords;
	uint32_t	rest = writer->nrecords - from;
	uint32_t	code_bytes;
	uint32_t	i;
	SurfBits	bits;

	surf_bits_begin(&bits, &coder->code, key, UINT32_MAX);
	surf_bits_extend(&bits, UINT32_MAX);
	code_bytes = 8 * (bits.nbits / 64 + 1) + writer->zeros;
	writer->records = grow_bytes(writer->records, code_bytes + rest + 8,
								 &writer->max_records);
	memmove(writer->records + code_bytes, writer->records + from, rest);
	memset(writer->records, 0, code_bytes);
	for (i = 0; 64 * i < bits.nbits; i++)
		bits_store64(writer->records + 8 * i, __builtin_bswap64(bits.words[i]));
	writer->nrecords = code_bytes + rest;
	for (i = 1; i < n; i++)
		writer->record[i] += 8 * (code_bytes - from);
	writer->record[0] = 0;
}

/* Removes the first n leaves.  The next one is now the first of a page. */
static void
drop_leaves(SurfWriter *writer, const SurfCoder *coder, uint32_t n)
{
	uint32_t	rest = writer->nleaves - n;
	uint32_t	from;
	uint32_t	i;

	writer->nleaves = rest;
	if (rest == 0)
	{
		writer->nkeys = 0;
		writer->nrecords = 0;
		return;
	}
	memmove(writer->own, writer->own + n, (rest + 1) * sizeof(uint16_t));
	writer->own[0] = 0;
	memmove(writer->record, writer->record + n, rest * sizeof(uint32_t));
	memmove(writer->leaves, writer->leaves + n, rest * sizeof(SurfLeaf));
	if (writer->hashes != NULL)
		memmove(writer->hashes, writer->hashes + n, rest * sizeof(uint64_t));

	from = writer->leaves[0].key;
	writer->nkeys -= from;
	memmove(writer->keys, writer->keys + from, writer->nkeys);
	for (i = 0; i < rest; i++)
		writer->leaves[i].key -= from;
	keep_records(writer, coder, leaf_key(writer, 0));
}

/* Writes the page, see surf_write.h. */
void
surf_writer_end(SurfWriter *writer, const SurfCoder *coder, uint64_t rank,
				uint8_t *page)
{
	surf_writer_emit(writer, rank, page);
	drop_leaves(writer, coder, writer->layout.nleaves);
}

/* Ends the last leaf, see surf_write.h. */
void
surf_writer_last(SurfWriter *writer, const SurfCoder *coder)
{
	int32_t		rest = rest_of_key(coder, coder->nbits,
								   writer->own[writer->nleaves - 1], 1);

	if (rest > writer->longest_rest)
		writer->longest_rest = rest;
}

/* See surf_write.h. */
uint64_t
surf_writer_count_bits(SurfWriter *writer)
{
	SurfSum		sum;
	uint32_t	uppermost;
	uint32_t	skip_width;

	surf_writer_find(writer);
	surf_writer_sum(writer, writer->nleaves, &uppermost);
	surf_writer_choose(writer, writer->nleaves,
					   uppermost == 0 ? 0 : writer->own[uppermost] - 1u,
					   UINT32_MAX);
	sum = surf_writer_cut(writer, writer->nleaves, &skip_width);
	return sum_bits(sum, skip_width) + surf_parts_reserve(writer->nleaves);
}

/* See surf_write_impl.h. */
uint64_t
surf_writer_page_bits(SurfWriter *writer, uint32_t n, uint32_t suffix_256)
{
	uint32_t	uppermost;
	SurfSum		sum = surf_writer_sum(writer, n, &uppermost);
	uint32_t	prefix_len = uppermost == 0 ? writer->leaves[0].len :
	writer->leaves[uppermost].common;

	writer->node_bits = sum_bits(sum, writer->layout.skip_width) +
		surf_parts_reserve(n);
	return 8 * (SURF_PAGE_HEADER + (uint64_t) prefix_len) + writer->node_bits +
		((uint64_t) suffix_256 * n + 255) / 256;
}

/* The most of the first n leaves that fit a page. */
static uint32_t
most_that_fit(SurfWriter *writer, uint32_t n, uint32_t suffix_256)
{
	uint64_t	room = 8 * (uint64_t) writer->page_size;
	uint32_t	fit = 1;

	if (surf_writer_page_bits(writer, n, suffix_256) <= room)
		return n;

	/* A search by halves between what fits and what is too much. */
	while (fit + 1 < n)
	{
		uint32_t	middle = fit + (n - fit) / 2;

		if (surf_writer_page_bits(writer, middle, suffix_256) <= room)
			fit = middle;
		else
			n = middle;
	}
	return fit;
}

/*
 * Lays out a page with the first n leaves, or with fewer if skips are wider than on the page
 * before.  Returns how many; less than least, if these do not fit.
 */
static uint32_t
lay_out(SurfWriter *writer, const SurfCoder *coder, uint32_t n, uint32_t least)
{
	while (n >= least)
	{
		surf_writer_page_bits(writer, n, 0);
		if (surf_writer_lay_out(writer, coder, n))
			break;
		if (n == 1)
			filter_fail("a key does not fit a page");
		n -= (n + 127) / 128;
		surf_writer_find(writer);
	}
	return n;
}

/* Tells how many leaves to gather for the next page. */
static void
gather(SurfWriter *writer, uint64_t n)
{
	writer->enough = n < MOST_LEAVES ? (uint32_t) n : MOST_LEAVES;
}

/* See surf_write.h. */
uint32_t
surf_writer_fit(SurfWriter *writer, const SurfCoder *coder,
				uint32_t suffix_256, uint64_t least, bool last)
{
	uint64_t	room = 8 * (uint64_t) writer->page_size;
	uint32_t	n = writer->nleaves;
	uint64_t	bits;

	/* One leaf stays, unless it is the last one: it is needed for the next. */
	if (least > (last ? n : MOST_LEAVES - 1))
		least = last ? n : MOST_LEAVES - 1;
	if (n < least + !last)
	{
		gather(writer, least + 1);
		return 0;
	}
	surf_writer_find(writer);
	bits = surf_writer_page_bits(writer, n, suffix_256);
	if (bits <= room && n < MOST_LEAVES && !last)
	{
		uint64_t	enough = n * room / bits;

		gather(writer, enough + enough / MORE_LEAVES + SURF_BATCH_KEYS);
		return 0;
	}
	n = most_that_fit(writer, n, suffix_256);
	n = lay_out(writer, coder, n, (uint32_t) least);
	writer->taken = n;
	writer->last_leaf = writer->leaves[n - 1];
	if (n < least)
	{
		writer->taken = (uint32_t) least;
		n = surf_writer_merge(writer, coder, (uint32_t) least);
	}
	gather(writer, writer->taken + writer->taken / MORE_LEAVES + SURF_BATCH_KEYS);
	return n;
}

/* See surf_write.h. */
uint32_t
surf_writer_taken(const SurfWriter *writer, FilterBytes *last)
{
	last->data = writer->keys + writer->last_leaf.key;
	last->len = writer->last_leaf.len;
	return writer->taken;
}
