/*-------------------------------------------------------------------------
 *
 * rfkeys.h
 *	  Sorting keys, with or without the heap blocks of their rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_RFKEYS_H
#define RANGEFILTER_RFKEYS_H

#include "key/codec.h"
#include "storage/block.h"

typedef struct RfKeys RfKeys;

/*
 * Begins to collect keys of a kind.  with_blocks: the block of each key is
 * kept.  few, if not 0: should there be more numbers than this, their blocks
 * are given up.  What does not fit work_mem_kb is sorted on disk.  Everything is allocated in the
 * current context.
 */
extern RfKeys *rf_keys_begin(RfKeyKind kind, bool with_blocks, uint64 few, int work_mem_kb);
extern void rf_keys_put(RfKeys *keys, const RfKey *key, BlockNumber block);

/* Sorts.  From now on keys can be read, beginning with the least. */
extern void rf_keys_sort(RfKeys *keys);

/* Are the blocks of all keys known? */
extern bool rf_keys_have_blocks(const RfKeys *keys);

/*
 * rf_keys_next() reads the next key, and its block if that is known; false at
 * the end.  The key is valid until the next call.  rf_keys_skip() leaves out n
 * keys.  rf_keys_rewind() goes back to the first.
 */
extern bool rf_keys_next(RfKeys *keys, RfKey *key, BlockNumber *block);
extern void rf_keys_skip(RfKeys *keys, uint64 n);
extern void rf_keys_rewind(RfKeys *keys);

extern void rf_keys_end(RfKeys *keys);

#endif							/* RANGEFILTER_RFKEYS_H */
