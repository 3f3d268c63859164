/*-------------------------------------------------------------------------
 *
 * strict_reader.h
 *	  A page reader that holds queries to their promises.
 *
 * Each page is handed out in memory of exactly its size that is freed at the
 * next call: under ASan a query cannot look past a page's end, or at a page
 * it has no right to any more.  Reads are counted, and after MAX_READS a
 * query is taken to run in circles: it gets no more pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STRICT_READER_H
#define RANGEFILTER_STRICT_READER_H

#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"

#define STRICT_MAX_READS 1000

typedef struct StrictReader
{
	FilterReader reader;		/* must be first */
	const uint8_t *pages;
	uint8_t    *copy;			/* the page handed out last */
	int			reads;
} StrictReader;

static const uint8_t *
strict_read_page(FilterReader *self, uint32_t pageno)
{
	StrictReader *reader = (StrictReader *) self;

	free(reader->copy);
	reader->copy = NULL;
	if (pageno >= self->npages || reader->reads++ >= STRICT_MAX_READS)
		return NULL;
	reader->copy = malloc(self->page_size);
	memcpy(reader->copy, reader->pages + (size_t) pageno * self->page_size,
		   self->page_size);
	return reader->copy;
}

/* Sets up a reader over pages the caller keeps. */
static inline void
strict_reader_init(StrictReader *reader, const uint8_t *pages, uint32_t npages,
				   uint32_t page_size)
{
	memset(reader, 0, sizeof(StrictReader));
	reader->reader.read_page = strict_read_page;
	reader->reader.npages = npages;
	reader->reader.page_size = page_size;
	reader->pages = pages;
}

/* Frees what the reader holds; true if no query ran in circles. */
static inline bool
strict_reader_end(StrictReader *reader)
{
	free(reader->copy);
	reader->copy = NULL;
	return reader->reads < STRICT_MAX_READS;
}

#endif							/* RANGEFILTER_STRICT_READER_H */
