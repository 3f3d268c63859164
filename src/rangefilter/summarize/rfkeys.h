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

extern RfKeys *rf_keys_begin(RfKeyKind kind, bool with_blocks, uint64 few, int work_mem_kb);
extern void rf_keys_put(RfKeys *keys, const RfKey *key, BlockNumber block);
extern void rf_keys_sort(RfKeys *keys);
extern bool rf_keys_have_blocks(const RfKeys *keys);
extern bool rf_keys_next(RfKeys *keys, RfKey *key, BlockNumber *block);
extern void rf_keys_skip(RfKeys *keys, uint64 n);
extern void rf_keys_rewind(RfKeys *keys);
extern void rf_keys_end(RfKeys *keys);

#endif							/* RANGEFILTER_RFKEYS_H */
