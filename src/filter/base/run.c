/*-------------------------------------------------------------------------
 *
 * run.c
 *	  Runs in memory, and the order of byte strings.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/base/bits.h"
#include "filter/base/port.h"
#include "filter/base/run.h"

/* Frees a run's pages and root. */
void
filter_run_free(FilterRun *run)
{
	filter_free(run->pages);
	filter_free(run->root);
	memset(run, 0, sizeof(FilterRun));
}

/* See run.h. */
uint64_t
filter_budget_pages(uint64_t bits, uint32_t page_size)
{
	uint64_t	page_bits = (uint64_t) page_size * 8;
	uint64_t	pages = bits / page_bits;

	return pages == 0 || 4 * pages * page_bits < 3 * bits ? pages + 1 : pages;
}

/* See run.h. */
uint64_t
filter_budget_pages_surf(uint64_t bits, uint32_t page_size)
{
	uint64_t	page_bits = (uint64_t) page_size * 8;

	return bits == 0 ? 1 : (bits - 1) / page_bits + 1;
}

/* Reads a page of a run in memory; NULL past its end. */
static const uint8_t *
memory_read_page(FilterReader *self, uint32_t pageno)
{
	FilterMemoryReader *reader = (FilterMemoryReader *) self;

	if (pageno >= self->npages)
		return NULL;
	return reader->pages + (size_t) pageno * self->page_size;
}

/* Sets up a reader of pages that the caller keeps. */
void
filter_memory_reader_init(FilterMemoryReader *reader, const uint8_t *pages,
						  uint32_t npages, uint32_t page_size)
{
	reader->reader.read_page = memory_read_page;
	reader->reader.npages = npages;
	reader->reader.page_size = page_size;
	reader->pages = pages;
}

/* memcmp order with shorter first: < 0, 0, > 0. */
int
filter_bytes_compare(FilterBytes a, FilterBytes b)
{
	uint32_t	common = a.len < b.len ? a.len : b.len;
	int			order = common > 0 ? memcmp(a.data, b.data, common) : 0;

	if (order != 0)
		return order;
	return (a.len > b.len) - (a.len < b.len);
}

/*
 * Length of the longest common prefix of two byte strings.  The bytes behind the last whole word
 * are loaded together with bytes that were compared already: comparing them one by one would take
 * a mispredicted branch.
 */
uint32_t
filter_common_prefix(FilterBytes a, FilterBytes b)
{
	uint32_t	max = a.len < b.len ? a.len : b.len;
	uint32_t	len = 0;
	uint64_t	differing;

	while (len + 8 <= max)
	{
		differing = bits_load64(a.data + len) ^ bits_load64(b.data + len);
		if (differing != 0)
			return len + bits_lowest(differing) / 8;
		len += 8;
	}
	if (max >= 8)
	{
		differing = bits_load64(a.data + max - 8) ^ bits_load64(b.data + max - 8);
		return differing == 0 ? max : max - 8 + bits_lowest(differing) / 8;
	}
	if (max >= 4)
	{
		differing = bits_load32(a.data) ^ bits_load32(b.data);
		differing |= (uint64_t) (bits_load32(a.data + max - 4) ^
								 bits_load32(b.data + max - 4)) << 8 * (max - 4);
		return differing == 0 ? max : bits_lowest(differing) / 8;
	}
	while (len < max && a.data[len] == b.data[len])
		len++;
	return len;
}

/* Both halves of a product, added without carry. */
static BITS_INLINE uint64_t
fold(uint64_t a, uint64_t b)
{
	return bits_mulhi(a, b) ^ (a * b);
}

/*
 * A byte string's hash: the same on all machines.  Changing it needs new versions of the roots of
 * pairs and of SuRF.  Multiplies and folds, eight bytes a step.  Each bit of a key changes the
 * upper bits of the hash as well as the lower ones: serial numbers become evenly spread, too.
 */
uint64_t
filter_hash(FilterBytes key)
{
	const uint64_t factor = UINT64_C(0x9fb21c651e98df25);
	uint64_t	hash = key.len * factor;
	uint32_t	i;

	for (i = 0; i < key.len; i += 8)
	{
		uint64_t	word = 0;
		uint32_t	j;

		if (i + 8 <= key.len)
			word = bits_load64(key.data + i);
		else
		{
			for (j = key.len; j > i; j--)
				word = word << 8 | key.data[j - 1];
		}
		hash = fold(hash ^ word ^ UINT64_C(0xd6e8feb86659fd93), factor);
	}
	return fold(hash ^ UINT64_C(0xe7037ed1a0b428db), UINT64_C(0x8ebc6af09c88c6e3));
}
