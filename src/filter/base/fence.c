/*-------------------------------------------------------------------------
 *
 * fence.c
 *	  Fences: a tree of separator keys that leads to a run's content pages.
 *
 * A node of the tree is the root or a fence page.  It covers consecutive
 * children: content pages at level 0, nodes of the next lower level above.
 * Its first child needs no separator: a search that comes to the node belongs
 * to this child or one further right.  The separators of the others share a
 * prefix, which is stored once.  They are found by their "heads", the next
 * four bytes as a number; bytes are compared only among equal heads.
 * Little-endian:
 *
 *		 0	uint8	magic
 *		 1	uint8	level
 *		 2	uint16	number of children, n + 1
 *		 4	uint16	length of the common prefix
 *		 6	uint16	limit: longer separators are cut ones, see below
 *		 8	uint32	page number of the first child
 *		12	uint32	heads[n]
 *			uint16	ends[n], where each suffix ends in the bytes below
 *			bytes	common prefix
 *			bytes	suffixes (what follows the common prefix), concatenated
 *
 * Two children must fit any node, or the tree would not get narrower towards
 * the root.  A separator too long for that is cut to limit + 1 bytes.  Keys
 * that begin with a cut separator may be on either side of the whole one: they
 * lead to the left page, with range_crosses set.
 *
 * Each level has at most half as many nodes as the one below, rounded up.  A
 * child's level is checked to be one below its parent's, so a walk ends even
 * in damaged pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/base/bits.h"
#include "filter/base/fence.h"
#include "filter/base/port.h"

#define FENCE_MAGIC		0xFE
#define FENCE_HEADER	12

/* Bytes that a separator takes besides its own: head and end. */
#define FENCE_PER_ENTRY 6

/*
 * The most heads that are all compared, which the processor does side by side.
 * The steps of a binary search wait for each other.
 */
#define LINEAR_SEARCH 8

/* How far from its guessed place the head of a number is looked for. */
#define GUESS_WINDOW 4

/* A child of the level being built and the separator before it. */
typedef struct FenceEntry
{
	size_t		offset;			/* of the separator in FenceBuild.bytes */
	uint32_t	len;
} FenceEntry;

struct FenceBuild
{
	uint32_t	page_size;
	uint32_t	root_max;
	uint32_t	limit;			/* longer separators are cut */
	FenceEntry *entries;
	uint32_t	nentries;
	uint32_t	max_entries;
	uint8_t    *bytes;
	size_t		nbytes;
	size_t		max_bytes;
};

/* A node opened for searching; everything points into its page. */
typedef struct FenceNode
{
	const uint8_t *heads;
	const uint8_t *ends;
	FilterBytes prefix;			/* that all separators share */
	const uint8_t *suffixes;
	uint32_t	suffixes_len;
	uint32_t	nseparators;
	uint32_t	limit;
	uint32_t	level;
	uint32_t	first_child;
} FenceNode;

/* Begins a tree of fences; sizes in bytes. */
FenceBuild *
fence_build_begin(uint32_t page_size, uint32_t root_max)
{
	FenceBuild *fences = filter_alloc(sizeof(FenceBuild));
	uint32_t	space = page_size < root_max ? page_size : root_max;

	if (space < FENCE_MIN_ROOT)
		filter_fail("page or root too small for fences");
	fences->page_size = page_size;
	fences->root_max = root_max;
	fences->limit = space - FENCE_HEADER - FENCE_PER_ENTRY - 1;
	if (fences->limit > FILTER_MAX_KEY)
		fences->limit = FILTER_MAX_KEY;

	/*
	 * Allocated here, since pages may be added in memory contexts that do not
	 * last.
	 */
	fences->max_entries = 64;
	fences->entries = filter_alloc(fences->max_entries * sizeof(FenceEntry));
	fences->max_bytes = 512;
	fences->bytes = filter_alloc(fences->max_bytes);
	return fences;
}

/* Adds a page, see fence.h. */
void
fence_add_page(FenceBuild *fences, FilterBytes prev_last, FilterBytes first)
{
	FenceEntry *entry;
	uint32_t	len = 0;

	if (fences->nentries > 0)
	{
		/* The shortest prefix of first that is above prev_last. */
		len = filter_common_prefix(prev_last, first) + 1;
		if (len > first.len)
			filter_fail("pages of a run are not in order");
		if (len > fences->limit)
			len = fences->limit + 1;
	}

	if (fences->nentries == fences->max_entries)
	{
		fences->max_entries *= 2;
		fences->entries = filter_realloc(fences->entries,
										 fences->max_entries * sizeof(FenceEntry));
	}
	if (fences->nbytes + len > fences->max_bytes)
	{
		fences->max_bytes = fences->max_bytes * 2 + len;
		fences->bytes = filter_realloc(fences->bytes, fences->max_bytes);
	}

	entry = &fences->entries[fences->nentries++];
	entry->offset = fences->nbytes;
	entry->len = len;
	if (len > 0)
		memcpy(fences->bytes + fences->nbytes, first.data, len);
	fences->nbytes += len;
}

static FilterBytes
entry_bytes(const FenceBuild *fences, uint32_t i)
{
	FilterBytes result;

	result.data = fences->bytes + fences->entries[i].offset;
	result.len = fences->entries[i].len;
	return result;
}

/*
 * How many entries from start on fit a node of "space" bytes.  Sets the length
 * of the prefix that their separators share, and the size of the node.
 */
static uint32_t
node_fill(const FenceBuild *fences, uint32_t start, uint32_t space,
		  uint32_t *prefix_len, uint32_t *size)
{
	uint32_t	n = 1;			/* entries taken, the first without separator */
	uint32_t	prefix = 0;
	uint32_t	total = 0;		/* bytes of all separators taken */

	*size = FENCE_HEADER;
	while (start + n < fences->nentries && n < UINT16_MAX)
	{
		FilterBytes last = entry_bytes(fences, start + n);
		uint32_t	new_prefix = last.len;
		uint32_t	new_size;

		if (n > 1)
		{
			new_prefix = filter_common_prefix(entry_bytes(fences, start + 1), last);
			if (new_prefix > prefix)
				new_prefix = prefix;
		}
		new_size = FENCE_HEADER + n * FENCE_PER_ENTRY +
			total + last.len - (n - 1) * new_prefix;
		if (new_size > space)
			break;
		total += last.len;
		prefix = new_prefix;
		*size = new_size;
		n++;
	}
	*prefix_len = prefix;
	return n;
}

/* The first four bytes, padded with zeros, as a number. */
static inline uint32_t
head_of(const uint8_t *data, uint32_t len)
{
	uint32_t	head = 0;
	uint32_t	i;

	if (len >= 4)
		return __builtin_bswap32(bits_load32(data));
	for (i = 0; i < 4; i++)
		head = head << 8 | (i < len ? data[i] : 0);
	return head;
}

/* Writes a node of n entries from start on. */
static void
node_write(const FenceBuild *fences, uint8_t *node, uint32_t start, uint32_t n,
		   uint32_t prefix_len, uint32_t level, uint32_t first_child)
{
	uint8_t    *heads = node + FENCE_HEADER;
	uint8_t    *ends = heads + 4 * (n - 1);
	uint8_t    *prefix = ends + 2 * (n - 1);
	uint8_t    *suffixes = prefix + prefix_len;
	uint32_t	end = 0;
	uint32_t	i;

	node[0] = FENCE_MAGIC;
	node[1] = (uint8_t) level;
	bits_store16(node + 2, (uint16_t) n);
	bits_store16(node + 4, (uint16_t) prefix_len);
	bits_store16(node + 6, (uint16_t) fences->limit);
	bits_store32(node + 8, first_child);

	for (i = 0; i < n - 1; i++)
	{
		FilterBytes separator = entry_bytes(fences, start + 1 + i);
		const uint8_t *suffix = separator.data + prefix_len;
		uint32_t	len = separator.len - prefix_len;

		if (i == 0)
			memcpy(prefix, separator.data, prefix_len);
		bits_store32(heads + 4 * i, head_of(suffix, len));
		memcpy(suffixes + end, suffix, len);
		end += len;
		bits_store16(ends + 2 * i, (uint16_t) end);
	}
}

/*
 * Writes one level as fence pages behind *npages pages.  The new nodes become
 * the entries of the next level up.
 */
static void
write_level(FenceBuild *fences, uint32_t level, uint32_t first_child,
			uint8_t **pages, uint32_t *npages)
{
	uint32_t	nnodes = 0;
	uint32_t	start = 0;

	while (start < fences->nentries)
	{
		uint32_t	prefix_len;
		uint32_t	size;
		uint32_t	n = node_fill(fences, start, fences->page_size,
								  &prefix_len, &size);
		uint8_t    *page;

		*pages = filter_realloc(*pages,
								((size_t) *npages + 1) * fences->page_size);
		page = *pages + (size_t) *npages * fences->page_size;
		memset(page, 0, fences->page_size);
		node_write(fences, page, start, n, prefix_len, level,
				   first_child + start);
		(*npages)++;

		/*
		 * Entries before start are written, so this overwrites none that is
		 * needed.
		 */
		fences->entries[nnodes++] = fences->entries[start];
		start += n;
	}
	fences->nentries = nnodes;
}

/* Ends the build: makes fence pages, as many as needed, and the root. */
void
fence_build_end(FenceBuild *fences, uint8_t **pages, uint32_t *npages,
				uint8_t **root, uint32_t *root_len)
{
	uint32_t	level = 0;
	uint32_t	first_child = 0;
	uint32_t	prefix_len;
	uint32_t	size;

	*root = NULL;
	*root_len = 0;
	if (fences->nentries > 0)
	{
		while (node_fill(fences, 0, fences->root_max, &prefix_len, &size) <
			   fences->nentries)
		{
			uint32_t	next_child = *npages;

			write_level(fences, level, first_child, pages, npages);
			first_child = next_child;
			level++;
		}
		*root = filter_alloc(size);
		*root_len = size;
		node_write(fences, *root, 0, fences->nentries, prefix_len, level,
				   first_child);
	}

	filter_free(fences->entries);
	filter_free(fences->bytes);
	filter_free(fences);
}

/* The most fence pages that npages content pages can need. */
uint32_t
fence_pages_bound(uint32_t npages, uint32_t page_size, uint32_t root_max,
				  uint32_t max_separator)
{
	uint32_t	per_entry = FENCE_PER_ENTRY + max_separator;
	uint32_t	in_root = 1 + (root_max - FENCE_HEADER) / per_entry;
	uint32_t	in_page = 1 + (page_size - FENCE_HEADER) / per_entry;
	uint32_t	width = npages;
	uint32_t	total = 0;

	/* Longer separators are cut: two children always fit. */
	if (in_root < 2)
		in_root = 2;
	if (in_page < 2)
		in_page = 2;
	while (width > in_root)
	{
		width = width / in_page + (width % in_page != 0);
		total += width;
	}
	return total;
}

/* Opens a node of len bytes; false if its layout does not fit them. */
static bool
node_open(FenceNode *node, const uint8_t *data, uint32_t len)
{
	uint32_t	n;
	uint32_t	used;

	if (len < FENCE_HEADER || data[0] != FENCE_MAGIC)
		return false;
	n = bits_load16(data + 2);
	if (n == 0)
		return false;
	node->nseparators = n - 1;
	node->level = data[1];
	node->prefix.len = bits_load16(data + 4);
	node->limit = bits_load16(data + 6);
	node->first_child = bits_load32(data + 8);

	used = FENCE_HEADER + FENCE_PER_ENTRY * node->nseparators +
		node->prefix.len;
	if (used > len)
		return false;
	node->heads = data + FENCE_HEADER;
	node->ends = node->heads + 4 * node->nseparators;
	node->prefix.data = node->ends + 2 * node->nseparators;
	node->suffixes = node->prefix.data + node->prefix.len;
	node->suffixes_len = len - used;
	return true;
}

/* Gets the suffix of separator i; false if it is not within the node. */
static inline bool
node_suffix(const FenceNode *node, uint32_t i, FilterBytes *suffix)
{
	uint32_t	start = i > 0 ? bits_load16(node->ends + 2 * (i - 1)) : 0;
	uint32_t	end = bits_load16(node->ends + 2 * i);

	if (start > end || end > node->suffixes_len)
		return false;
	suffix->data = node->suffixes + start;
	suffix->len = end - start;
	return true;
}

/*
 * Compares a key with the common prefix: < 0 or > 0 if the key is below or
 * above all strings that begin with it; else 0, and *rest is the key's part
 * behind it.
 */
static inline int
prefix_compare(const FenceNode *node, const FilterBytes *key, FilterBytes *rest)
{
	int			order = node->prefix.len == 0 ? 0 :
	filter_prefix_compare(*key, node->prefix);

	if (order == 0)
	{
		rest->data = key->data + node->prefix.len;
		rest->len = key->len - node->prefix.len;
	}
	return order;
}

/* How many of the n heads are below head. */
static inline uint32_t
heads_below(const uint8_t *heads, uint32_t n, uint32_t head)
{
	uint32_t	base = 0;

	/* A mask, as a branch would be mispredicted half the time. */
	while (n > LINEAR_SEARCH)
	{
		uint32_t	half = n / 2;
		bool		below = bits_load32(heads + 4 * (base + half - 1)) < head;

		base += half & (0 - (uint32_t) below);
		n -= half;
	}
	for (heads += 4 * base; n > 0; n--, heads += 4)
		base += bits_load32(heads) < head;
	return base;
}

/*
 * Is separator i a cut one with which the key begins?  rest is the key's
 * suffix.
 */
static bool
is_cut_prefix(const FenceNode *node, uint32_t i, FilterBytes rest)
{
	FilterBytes suffix;

	if (!node_suffix(node, i, &suffix))
		return false;
	return node->prefix.len + suffix.len > node->limit &&
		suffix.len <= rest.len &&
		memcmp(suffix.data, rest.data, suffix.len) == 0;
}

/*
 * Finds the child that covers key: sets *child to the number of separators
 * that are certainly <= key.  False if the node is damaged.
 */
static bool
node_search(const FenceNode *node, const FilterBytes *key, uint32_t *child)
{
	FilterBytes rest;
	FilterBytes suffix;
	uint32_t	head;
	uint32_t	lower;
	uint32_t	upper;
	int			order;

	*child = 0;
	if (node->nseparators == 0)
		return true;
	order = prefix_compare(node, key, &rest);
	if (order != 0)
	{
		*child = order > 0 ? node->nseparators : 0;
		return true;
	}

	/* Below lower are smaller heads, from upper on greater ones. */
	head = head_of(rest.data, rest.len);
	lower = heads_below(node->heads, node->nseparators, head);
	upper = lower;
	if (head == UINT32_MAX)
		upper = node->nseparators;
	else if (lower < node->nseparators &&
			 bits_load32(node->heads + 4 * lower) == head)
		upper = heads_below(node->heads, node->nseparators, head + 1);

	while (lower < upper)
	{
		uint32_t	middle = lower + (upper - lower) / 2;

		if (!node_suffix(node, middle, &suffix))
			return false;
		if (filter_bytes_compare(suffix, rest) <= 0)
			lower = middle + 1;
		else
			upper = middle;
	}
	while (lower > 0 && is_cut_prefix(node, lower - 1, rest))
		lower--;
	*child = lower;
	return true;
}

/*
 * Sets *within: is separator i <= hi, or < hi if hi is exclusive?  False if
 * the node is damaged.
 */
static bool
separator_within(const FenceNode *node, uint32_t i, const FilterBytes *hi,
				 bool hi_exclusive, bool *within)
{
	FilterBytes rest;
	FilterBytes suffix;
	int			order = prefix_compare(node, hi, &rest);

	if (order == 0)
	{
		uint32_t	hi_head = head_of(rest.data, rest.len);
		uint32_t	head = bits_load32(node->heads + 4 * i);

		order = (hi_head > head) - (hi_head < head);
		if (order == 0)
		{
			if (!node_suffix(node, i, &suffix))
				return false;
			order = filter_bytes_compare(rest, suffix);
		}
	}
	*within = order > 0 || (order == 0 && !hi_exclusive);
	return true;
}

/*
 * Goes from a node to a child: sets *pageno, and opens the child unless it is
 * a content page.  False if it is missing or damaged.
 */
static inline bool
node_descend(FenceNode *node, FilterReader *reader, uint32_t child,
			 uint32_t *pageno)
{
	const uint8_t *page;
	uint32_t	level = node->level;

	if (node->first_child >= reader->npages ||
		child >= reader->npages - node->first_child)
		return false;
	*pageno = node->first_child + child;
	if (level == 0)
		return true;
	page = reader->read_page(reader, *pageno);
	return page != NULL && node_open(node, page, reader->page_size) &&
		node->level == level - 1;
}

/* Finds the content page that covers lo, see fence.h. */
bool
fence_find(const uint8_t *root, uint32_t root_len, FilterReader *reader,
		   const FilterBytes *lo, const FilterBytes *hi, bool hi_exclusive,
		   FencePosition *position)
{
	FenceNode	node;
	uint32_t	level;

	position->range_crosses = false;
	position->guess = FENCE_NO_GUESS;
	if (!node_open(&node, root, root_len))
		return false;
	do
	{
		uint32_t	child = 0;

		level = node.level;
		if (lo != NULL && !node_search(&node, lo, &child))
			return false;

		/*
		 * The last child's right neighbour is under the next node, so for the
		 * last child the answer found further up stays.
		 */
		if (child < node.nseparators)
		{
			if (hi == NULL)
				position->range_crosses = true;
			else if (!separator_within(&node, child, hi, hi_exclusive,
									   &position->range_crosses))
				return false;
		}
		if (!node_descend(&node, reader, child, &position->page))
			return false;
	} while (level > 0);
	return true;
}

/*
 * How many of the n heads are below head.  Looks first where head would be if
 * they were spread evenly.  Mostly they are, since pages have about the same
 * number of keys; then the guess is right to within a place or two.
 */
static inline uint32_t
heads_below_guessed(const uint8_t *heads, uint32_t n, uint32_t head)
{
	uint32_t	least = bits_load32(heads);
	uint32_t	most = bits_load32(heads + 4 * (n - 1));

	if (n > 4 * GUESS_WINDOW && head > least && head < most)
	{
		uint32_t	from = (uint32_t) ((uint64_t) (head - least) * (n - 1) /
									   (most - least));
		uint32_t	below = 0;
		uint32_t	i;

		from = from < GUESS_WINDOW ? 0 : from - GUESS_WINDOW;
		if (from > n - 2 * GUESS_WINDOW)
			from = n - 2 * GUESS_WINDOW;
#pragma GCC unroll 8
		for (i = 0; i < 2 * GUESS_WINDOW; i++)
			below += bits_load32(heads + 4 * (from + i)) < head;

		/* If neither none nor all are below, the place is among these. */
		if (below > 0 && below < 2 * GUESS_WINDOW)
			return from + below;
	}
	return heads_below(heads, n, head);
}

/* The first nbits bits of a number, up to 64. */
static inline uint64_t
leading_bits(uint64_t number, uint32_t nbits)
{
	return nbits > 0 ? number >> (64 - nbits) : 0;
}

/* head_of() of what follows these bits. */
static inline uint64_t
number_head(uint64_t number, uint32_t nbits)
{
	return nbits < 64 ? number << nbits >> 32 : 0;
}

/*
 * node_search() and separator_within() for numbers, by the prefix and the
 * heads alone.  A node of one separator has no more than a prefix.  False if
 * these do not decide, or the node is damaged.
 */
static inline bool
node_search_number(const FenceNode *node, uint64_t lo, uint64_t hi,
				   uint32_t *child, FencePosition *position)
{
	uint32_t	n = node->nseparators;
	uint32_t	prefix_bits = 8 * node->prefix.len;
	uint64_t	prefix;
	uint64_t	lo_prefix;
	uint64_t	hi_prefix;
	uint64_t	head;
	uint64_t	hi_head;
	uint64_t	next;

	position->guess = FENCE_NO_GUESS;
	*child = 0;
	if (n == 0)
		return true;
	if (prefix_bits > 64)
		return false;

	/* The load ends where the prefix ends, and begins within the node. */
	prefix = __builtin_bswap64(bits_load64(node->suffixes - 8)) &
		bits_mask(prefix_bits);
	lo_prefix = leading_bits(lo, prefix_bits);
	hi_prefix = leading_bits(hi, prefix_bits);
	head = number_head(lo, prefix_bits);
	hi_head = hi_prefix == prefix ? number_head(hi, prefix_bits) : UINT64_MAX;

	*child = lo_prefix == prefix ?
		heads_below_guessed(node->heads, n, (uint32_t) head) :
		lo_prefix > prefix ? n : 0;
	if (*child == n)
		return true;
	next = bits_load32(node->heads + 4 * *child);
	if ((next == head && lo_prefix == prefix) || next == hi_head)
		return false;
	position->range_crosses = hi_prefix >= prefix && next < hi_head;
	if (*child > 0)
	{
		uint64_t	last = bits_load32(node->heads + 4 * (*child - 1));

		/* Damaged heads may be in any order. */
		if (last < head && head < next)
			position->guess = (uint32_t) (((head - last) << 16) / (next - last));
	}
	return true;
}

/* Finds the content page that covers the number lo, see fence.h. */
bool
fence_find_number(const uint8_t *root, uint32_t root_len,
				  FilterReader *reader, uint64_t lo, uint64_t hi,
				  FencePosition *position)
{
	FenceNode	node;
	uint32_t	level;

	position->range_crosses = false;
	if (!node_open(&node, root, root_len))
		return false;
	do
	{
		uint32_t	child;

		level = node.level;
		if (!node_search_number(&node, lo, hi, &child, position))
		{
			uint8_t		lo_bytes[8];
			uint8_t		hi_bytes[8];
			FilterBytes lo_key = {lo_bytes, 8};
			FilterBytes hi_key = {hi_bytes, 8};

			/* Big-endian, so that they sort as the numbers do. */
			bits_store64(lo_bytes, __builtin_bswap64(lo));
			bits_store64(hi_bytes, __builtin_bswap64(hi));
			return fence_find(root, root_len, reader, &lo_key, &hi_key, false,
							  position);
		}
		if (!node_descend(&node, reader, child, &position->page))
			return false;
	} while (level > 0);
	return true;
}
