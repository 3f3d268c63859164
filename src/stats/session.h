/*-------------------------------------------------------------------------
 *
 * session.h
 *	  What a session remembers from one query to the next: its memory and its limit.
 *
 *-------------------------------------------------------------------------
 */
#ifndef STATS_SESSION_H
#define STATS_SESSION_H

#include "postgres.h"

/* rangefilter.cache_size (kB) */
extern PGDLLEXPORT int rf_cache_size;

/*
 * Bytes in use for cached metapages and digests, which can be dropped at any
 * time.
 */
extern Size rf_cache_used;

/* Moves when something else takes more memory. */
extern uint64 rf_session_growth;

extern MemoryContext rf_session_context(void);
extern Size rf_session_used(void);
extern Size rf_session_limit(void);
extern Size rf_session_measure(void);
extern Size rf_cache_limit(void);

/* What the session keeps of tables, and its memory in bytes. */
typedef struct RfUsage
{
	int64		tables;
	int64		cached_metas;
	int64		cached_meta_bytes;
	int64		invals;
	int64		inval_bytes;
} RfUsage;

/* A function in a room above; set when the library is loaded. */
extern void (*rf_tell_usage) (RfUsage *usage);
extern void (*rf_tell_hints) (int64 *entries, int64 *bytes);

#endif							/* STATS_SESSION_H */
