/*-------------------------------------------------------------------------
 *
 * clock.c
 *	  Noticing that a transaction has ended.
 *
 * What is expected of core (procarray.c): xactCompletionCount begins at 1 and moves,
 * under ProcArrayLock, when a transaction with an id ends and so becomes visible.  A snapshot's
 * xmax is what follows latestCompletedXid, which only goes up.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "compat.h"
#include "core/core.h"
#include "storage/lwlock.h"

/* Greater than any number of transactions: what core has not counted comes later than what it has. */
#define RF_UNCOUNTED	(UINT64CONST(1) << 60)

/*
 * A number that is the same as before only if no transaction with an id has ended.
 * Where core does not count, it is another one each time, and greater.
 */
uint64
rf_core_completions(void)
{
	static uint64 unknown = RF_UNCOUNTED;
	uint64		completions;

	LWLockAcquire(ProcArrayLock, LW_SHARED);
	completions = RF_TRANSAM->xactCompletionCount;
	LWLockRelease(ProcArrayLock);
	if (completions == 0 || RF_CORE_DOUBTS(RF_CORE_CLOCK))
		return ++unknown;
	return completions;
}

/*
 * The xmax of a snapshot that would be taken now.  It never goes back, and whoever has taken a
 * snapshot gets at least its xmax from then on.  Takes no lock, and may be called at any time.
 */
TransactionId
rf_core_next_xmax(void)
{
	TransactionId xmax = XidFromFullTransactionId(RF_TRANSAM->latestCompletedXid);

	TransactionIdAdvance(xmax);
	return xmax;
}
