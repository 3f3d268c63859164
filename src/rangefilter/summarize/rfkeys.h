/*-------------------------------------------------------------------------
 *
 * rfkeys.h
 *	  Sorting keys, with the heap blocks their rows are in or without.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_RFKEYS_H
#define RANGEFILTER_RFKEYS_H

#include "key/codec.h"
#include "storage/block.h"

typedef struct RfKeys RfKeys;

/*
 * Begins to collect keys of a kind.  With blocks they are sorted together with
 * these; if only few is set, blocks are given up where there are more keys than
 * that.  Everything is allocated in the current context.
 */
extern RfKeys *rf_keys_begin(RfKeyKind kind, bool with_blocks, uint64 few);
extern void rf_keys_put(RfKeys *keys, const RfKey *key, BlockNumber block);

/* Sorts; from now on keys can be read, from the first one on. */
extern void rf_keys_sort(RfKeys *keys);

/* Are blocks known of all keys? */
extern bool rf_keys_have_blocks(const RfKeys *keys);

/*
 * Reads the next key, valid until the next call, and its block if that is
 * known; leaves out so many; goes back to the first.
 */
extern bool rf_keys_next(RfKeys *keys, RfKey *key, BlockNumber *block);
extern void rf_keys_skip(RfKeys *keys, uint64 n);
extern void rf_keys_rewind(RfKeys *keys);

extern void rf_keys_end(RfKeys *keys);

#endif							/* RANGEFILTER_RFKEYS_H */
