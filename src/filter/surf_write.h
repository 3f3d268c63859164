/*-------------------------------------------------------------------------
 *
 * surf_write.h
 *	  Writing a content page of SuRF, leaf by leaf.
 *
 * The writer knows at any time what the page takes, so that whoever adds
 * leaves can stop before it is full.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SURF_WRITE_H
#define RANGEFILTER_SURF_WRITE_H

#include "filter/surf_page.h"

typedef struct SurfWriter SurfWriter;

/* Begins a writer of pages of so many bytes. */
extern SurfWriter *surf_writer_begin(uint32_t page_size, FilterSuffix kind,
									 uint32_t max_suffix);
extern void surf_writer_free(SurfWriter *writer);

/* How many leaves have been added. */
extern uint32_t surf_writer_leaves(const SurfWriter *writer);

/*
 * Would the page with one more leaf, and with suffixes of suffix_256 / 256
 * bits on average, be longer than a page?  suffix_256 is the same for all
 * leaves of a page; there is one leaf at least.
 */
extern bool surf_writer_is_full(SurfWriter *writer, const SurfShared *shared,
								uint32_t suffix_256);

/*
 * Adds a leaf for key, whose code is complete.  How far the code goes into
 * the page turns out when the next key is known: surf_writer_next() must
 * follow, with what bits the two keys share (0 if there is none).
 */
extern void surf_writer_add(SurfWriter *writer, FilterBytes key,
							const SurfBits *bits, const SurfShared *shared);
extern void surf_writer_next(SurfWriter *writer, const SurfBits *bits,
							 uint32_t next_shared);

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
