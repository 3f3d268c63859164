/*-------------------------------------------------------------------------
 *
 * rfsession.c
 *	  The memory of a session for everything it keeps from one query to the
 *	  next.
 *
 * All of it is below one context, so that it can be measured: what the planner
 * part knows of tables and their indexes (planner/knowledge/), digests of the
 * session's own (rangefilter/probe/rfdigeststore.c), and counters (rfstats.c).
 * rangefilter.cache_size limits all of it together.  Cached metapages and
 * digests may take what the rest leaves.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "stats/session.h"
#include "utils/memutils.h"

int			rf_cache_size = 8192;
Size		rf_cache_used = 0;
uint64		rf_session_growth = 0;
void		(*rf_tell_usage) (RfUsage *usage) = NULL;
void		(*rf_tell_hints) (int64 *entries, int64 *bytes) = NULL;

static MemoryContext session = NULL;

/*
 * Bytes in use for everything but cached metapages and digests, as last
 * measured.
 */
static Size others_used = 0;

/*
 * The context, made when it is first needed; not in the postmaster.
 */
MemoryContext
rf_session_context(void)
{
	if (session == NULL)
		session = AllocSetContextCreate(CacheMemoryContext,
										"rangefilter session",
										ALLOCSET_SMALL_SIZES);
	return session;
}

/*
 * Bytes in use.
 */
Size
rf_session_used(void)
{
	return session == NULL ? 0 : MemoryContextMemAllocated(session, true);
}

/*
 * Bytes that may be in use.
 */
Size
rf_session_limit(void)
{
	return (Size) rf_cache_size * 1024;
}

/*
 * Returns rf_session_used(), and measures how much of it is not for cached
 * metapages and digests.  Until the next call, these may take the rest of the
 * limit.
 */
Size
rf_session_measure(void)
{
	Size		used = rf_session_used();

	others_used = used - Min(used, rf_cache_used);
	return used;
}

/*
 * Bytes that may be in use for cached metapages and digests.
 */
Size
rf_cache_limit(void)
{
	Size		limit = rf_session_limit();

	return limit - Min(limit, others_used);
}
