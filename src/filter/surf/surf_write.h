/*-------------------------------------------------------------------------
 *
 * surf_write.h
 *	  Writing content pages of SuRF.
 *
 * The writer takes keys until there are probably enough for a page.  Then it
 * finds out how many fit, writes these, and keeps the others for the next
 * page.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SURF_WRITE_H
#define RANGEFILTER_SURF_WRITE_H

#include "filter/surf/surf_coder.h"
#include "filter/surf/surf_page.h"

typedef struct SurfWriter SurfWriter;

/* Begins a writer of pages of page_size bytes. */
extern SurfWriter *surf_writer_begin(uint32_t page_size, FilterSuffix kind,
									 uint32_t max_suffix);
extern void surf_writer_free(SurfWriter *writer);

/* How many leaves have been added, and not written yet. */
extern uint32_t surf_writer_leaves(const SurfWriter *writer);

/* The key of leaf i among these. */
extern FilterBytes surf_writer_key(const SurfWriter *writer, uint32_t i);

/*
 * The number of new bytes of the first n leaves' keys.  Leaf n is there, or
 * these are all leaves of the run.
 */
extern uint64_t surf_writer_new_bytes(const SurfWriter *writer, uint32_t n);

/*
 * Adds leaves for all keys of a batch.  If there are leaves, or were on a page
 * before, coder has coded the key of the last one last.
 */
extern void surf_writer_add(SurfWriter *writer, SurfCoder *coder,
							SurfBatch *batch);

/* Tells that no more keys come.  The coder has coded the last one last. */
extern void surf_writer_last(SurfWriter *writer, const SurfCoder *coder);

/*
 * Are there probably enough leaves for a page, or the most that there may be?
 */
extern bool surf_writer_is_full(const SurfWriter *writer);

/*
 * Returns how many leaves the page takes with suffixes of suffix_256 / 256
 * bits on average: at least one.  If all leaves fit and they are not the last
 * ones, returns 0: more leaves are needed.  The page takes at least so many keys, or all
 * that are left: where they do not fit, leaves are merged and have no suffixes.
 */
extern uint32_t surf_writer_fit(SurfWriter *writer, const SurfCoder *coder,
								uint32_t suffix_256, uint64_t least, bool last);

/* How many keys the page takes, after surf_writer_fit(); *last is the last one of them. */
extern uint32_t surf_writer_taken(const SurfWriter *writer, FilterBytes *last);

/* Bits of the nodes over the leaves that surf_writer_fit() returned. */
extern uint64_t surf_writer_node_bits(const SurfWriter *writer);

/* Bits that nodes over all leaves would take. */
extern uint64_t surf_writer_count_bits(SurfWriter *writer);

/*
 * The most bits that a key has behind its leaf.  Longer suffixes are of no
 * use.
 */
extern uint32_t surf_writer_longest_rest(const SurfWriter *writer);

/* The bits that all keys have behind their leaves. */
extern int64_t surf_writer_all_rest(const SurfWriter *writer);

/*
 * Writes the page, and keeps the leaves that did not fit.  The run has rank
 * leaves before this page.  page is zeroed and has 8 bytes of room behind it.
 */
extern void surf_writer_end(SurfWriter *writer, const SurfCoder *coder,
							uint64_t rank, uint8_t *page);

/* Empties the writer. */
extern void surf_writer_reset(SurfWriter *writer);

#endif							/* RANGEFILTER_SURF_WRITE_H */
