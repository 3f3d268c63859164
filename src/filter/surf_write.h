/*-------------------------------------------------------------------------
 *
 * surf_write.h
 *	  Writing a content page of SuRF, leaf by leaf.
 *
 * The writer knows at any time what the page takes, and stops before it is
 * full.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SURF_WRITE_H
#define RANGEFILTER_SURF_WRITE_H

#include "filter/surf_coder.h"
#include "filter/surf_page.h"

typedef struct SurfWriter SurfWriter;

/* Begins a writer of pages of so many bytes. */
extern SurfWriter *surf_writer_begin(uint32_t page_size, FilterSuffix kind,
									 uint32_t max_suffix);
extern void surf_writer_free(SurfWriter *writer);

/* How many leaves have been added. */
extern uint32_t surf_writer_leaves(const SurfWriter *writer);

/*
 * Adds leaves for keys of a batch from the i-th on, as long as the page would
 * not be longer than a page with suffixes of suffix_256 / 256 bits on average.
 * Returns the number of the first key that is left out.  The first key of an
 * empty page always fits.  suffix_256 is the same for all leaves of a page.
 *
 * coder must have coded the last leaf's key last, if there is a leaf.
 */
extern uint32_t surf_writer_take(SurfWriter *writer, SurfCoder *coder,
								 SurfBatch *batch, uint32_t i,
								 uint32_t suffix_256);

/* The last leaf, whose key the coder has coded last, is that of the last key. */
extern void surf_writer_last(SurfWriter *writer, const SurfCoder *coder);

/* Bits that the nodes over all leaves added take. */
extern uint64_t surf_writer_node_bits(const SurfWriter *writer);

/* The most bits that a key has behind its leaf: longer suffixes are in vain. */
extern uint32_t surf_writer_longest_rest(const SurfWriter *writer);

/*
 * Writes the page, before which the run has rank leaves, and empties the
 * writer.  page is zeroed and has 8 bytes of room behind it.
 */
extern void surf_writer_end(SurfWriter *writer, uint64_t rank, uint8_t *page);

/* Empties the writer. */
extern void surf_writer_reset(SurfWriter *writer);

#endif							/* RANGEFILTER_SURF_WRITE_H */
