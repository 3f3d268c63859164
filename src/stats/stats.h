/*-------------------------------------------------------------------------
 *
 * stats.h
 *	  Counting what the indexes are asked, and the results.
 *
 * Whoever asks adds to counters of this backend and sets rf_stats_pending.  At
 * the end of a transaction, once a second at most, they are added to the
 * counters in shared memory.  Without shared memory (the server has not
 * preloaded the library) the counters are the session's own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef STATS_STATS_H
#define STATS_STATS_H

#include "postgres.h"

#include "utils/relcache.h"
#include "utils/timestamp.h"

typedef struct RfCounts
{
	uint64		probes;			/* so often asked */
	uint64		skips;			/* ... and the answer was NO */
	uint64		scans;			/* of the others some were watched ... */
	uint64		empty;			/* ... and of these some found no row */

	/* Apart from these: */
	uint64		bitmaps;		/* bitmap scans by the index, */
	uint64		blocks;			/* blocks of the table in all of them ... */
	uint64		left_out;		/* ... that were not in the bitmaps */
} RfCounts;

/* The most indexes that have counters, in shared memory or in a session. */
#define RF_STATS_MAX	32768

/* rfstats.c */
extern bool rf_stats_pending;	/* counters have changed since the last flush */
extern void (*rf_stats_collect) (void); /* called before a flush */

extern void rf_init_stats(void);
extern RfCounts *rf_stats_counts(Oid index);
extern RfCounts *rf_index_counts(Relation index);
extern bool rf_stats_sample(void);
extern double rf_stats_sampled(void);
extern void rf_stats_read(Oid index, RfCounts *counts);
extern void rf_stats_reset(Oid index);
extern void rf_stats_usage(int64 *entries, int64 *bytes);

/*
 * Adds one set of counts to another.
 */
static inline void
rf_counts_add(RfCounts *sum, const RfCounts *more)
{
	sum->probes += more->probes;
	sum->skips += more->skips;
	sum->scans += more->scans;
	sum->empty += more->empty;
	sum->bitmaps += more->bitmaps;
	sum->blocks += more->blocks;
	sum->left_out += more->left_out;
}

/* rfsharedstats.c: counters in shared memory */
extern void rf_init_shared_stats(void);
extern bool rf_have_shared_stats(void);
extern bool rf_lock_shared_stats(bool wait);
extern void rf_add_shared_counts(Oid index, const RfCounts *counts,
								 TimestampTz now);
extern void rf_unlock_shared_stats(void);
extern void rf_read_shared_counts(Oid index, RfCounts *counts);
extern void rf_reset_shared_counts(Oid index);

#endif							/* STATS_STATS_H */
