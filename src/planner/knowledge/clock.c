/*-------------------------------------------------------------------------
 *
 * clock.c
 *	  Whether anything can have become visible.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "compat.h"
#include "planner/knowledge/knowledge.h"
#include "rangefilter/page/shared.h"
#include "storage/lwlock.h"

/*
 * To be called before summaries are looked at: as long as it says the same, nothing
 * has become visible to any snapshot, and they are as good as if read now.  No
 * transaction with an id has ended, this backend has put no row into indexes, and it has
 * seen no relation change: its own commands may rewrite a table, which builds
 * indexes without inserting into any.  (To be in the same command is not enough: rows an
 * INSERT has put in place so far are seen by queries of its triggers.)  All three are
 * counts, which never go back, so their sum is the same only if each of them is.
 */
RfClock
rf_clock_read(void)
{
	uint64		completions;

	LWLockAcquire(ProcArrayLock, LW_SHARED);
	completions = RF_TRANSAM->xactCompletionCount;
	LWLockRelease(ProcArrayLock);
	return completions + rf_inserts + rf_changes();
}
