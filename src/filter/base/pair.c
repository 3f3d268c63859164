/*-------------------------------------------------------------------------
 *
 * pair.c
 *	  Reading the two parts of a pair.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include "filter/base/pair.h"

/* See pair.h. */
bool
pair_is_root(const uint8_t *root, uint32_t root_len)
{
	return root_len > 0 && root[0] == PAIR_ROOT_MAGIC;
}

/* FilterReader.read_page: a part's share of a page. */
static const uint8_t *
part_read_page(FilterReader *self, uint32_t pageno)
{
	PairPart   *part = (PairPart *) self;
	const uint8_t *page = part->pages->read_page(part->pages, pageno);

	return page == NULL ? NULL : page + part->offset;
}

/* Sets a part up, which has these bytes of each page. */
static void
open_part(PairPart *part, FilterReader *pages, uint32_t offset, uint32_t size)
{
	part->reader.read_page = part_read_page;
	part->reader.npages = pages->npages;
	part->reader.page_size = size;
	part->pages = pages;
	part->offset = offset;
}

/* See pair.h. */
bool
pair_open(Pair *pair, const uint8_t *root, uint32_t root_len,
		  FilterReader *reader)
{
	uint32_t	trie_size;

	if (root_len < PAIR_ROOT_HEADER || root[0] != PAIR_ROOT_MAGIC ||
		root[1] != PAIR_ROOT_VERSION)
		return false;
	trie_size = bits_load16(root + 2);
	pair->nkeys = bits_load64(root + 4);
	pair->nhashes = bits_load64(root + 12);
	pair->nleaves = bits_load64(root + 20);
	pair->hashes.root_len = bits_load16(root + 28);
	if (trie_size >= reader->page_size ||
		pair->hashes.root_len > root_len - PAIR_ROOT_HEADER)
		return false;
	pair->hashes.root = root + PAIR_ROOT_HEADER;
	pair->trie.root = pair->hashes.root + pair->hashes.root_len;
	pair->trie.root_len = root_len - PAIR_ROOT_HEADER - pair->hashes.root_len;
	open_part(&pair->trie, reader, 0, trie_size);
	open_part(&pair->hashes, reader, trie_size, reader->page_size - trie_size);
	return true;
}
