/*-------------------------------------------------------------------------
 *
 * attempt.c
 *	  Doing something that may fail, in a subtransaction.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "core/core.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

/*
 * Calls work(arg) in a subtransaction, in the current memory context.  Returns NULL if it
 * succeeds, and the error, allocated there, if it fails; then the subtransaction is rolled
 * back.  A cancel is an error like others: what to do with it is up to the caller.  Must not
 * be called in parallel mode.
 */
ErrorData *
rf_core_attempt(void (*work) (void *arg), void *arg)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		work(arg);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	if (error == NULL)
		ReleaseCurrentSubTransaction();
	else
		RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return error;
}
