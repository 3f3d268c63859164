/*-------------------------------------------------------------------------
 *
 * shared.h
 *	  What sessions share where the server loaded the library: change counters of
 *	  indexes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SHARED_H
#define RANGEFILTER_SHARED_H

#include "postgres.h"

#include "compat.h"
#include "port/atomics.h"
#include "rangefilter/page/layout.h"
#include "utils/relcache.h"

/* 512 kB: some thousand partitions do not meet, or hardly ever those of several databases. */
#define RF_CHANGE_COUNTERS	65536

typedef struct RfShared
{
	pg_atomic_uint64 counters[RF_CHANGE_COUNTERS];
	pg_atomic_uint64 moves;		/* counts what all of them count */
} RfShared;

/* NULL where the server has not loaded the library. */
extern RfShared *rf_shared;

/* ---- rfcounters.c ---- */

extern void rf_advance_change_counter(Oid index);
extern void rf_move_version(Relation index, RfMetaData *meta);
extern uint64 rf_read_change_counter(Oid index);
extern uint64 rf_read_moves(void);

/*
 * How many rows this backend has given to indexes so far, whether or not that
 * changed an index.  If the number is the same, it has no new rows to see.
 */
extern uint64 rf_inserts;

/*
 * How many keys this backend has written to deltas so far.  If the number
 * has changed, cached metapages may lack what this transaction inserted.
 */
extern uint64 rf_keys_written;

#endif							/* RANGEFILTER_SHARED_H */
