/*-------------------------------------------------------------------------
 *
 * rfload.c
 *	  The end of a bulk load: its indexes are summarized, so that their partitions
 *	  are skipped at once.
 *
 * A bulk load opens the tail (rfinsert.c).  Where an access method hears of the end of
 * a statement (PostgreSQL 17 and later), the tail is closed there; otherwise before
 * the transaction commits or is prepared.  Closing is a summarize like any other.  Its
 * heap scan sees the rows of transactions in progress, and so those of its own.
 *
 * An error ends the summarizing, which is a subtransaction, and neither the statement
 * nor the commit.  The tail stays open then, which is always correct.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "nodes/pg_list.h"
#include "rangefilter/rangefilter.h"
#include "request/request.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

/* The indexes of the transaction's loads, in TopTransactionContext. */
static List *rf_loads = NIL;

/*
 * See rangefilter.h.
 */
void
rf_load_begin(Oid index)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

	rf_loads = list_append_unique_oid(rf_loads, index);
	MemoryContextSwitchTo(old);
}

/*
 * Writes the error at hand to the server's log, as a message that is none, and
 * forgets it.  The caller is in a memory context that outlives the subtransaction.
 */
static void
rf_log_failure(Oid index)
{
	ErrorData  *error = CopyErrorData();

	FlushErrorState();
	ereport(LOG_SERVER_ONLY,
			(errmsg("index with OID %u was not summarized at the end of a load: %s",
					index, error->message)));
	FreeErrorData(error);
}

/*
 * Summarizes the index of a load in a subtransaction.  Where that fails, or the table
 * is locked by somebody else, the background worker is asked to.
 */
static void
rf_summarize_load(Oid index)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool done = false;

	BeginInternalSubTransaction(NULL);
	PG_TRY();
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		done = rf_maintain(index, NULL);
		PopActiveSnapshot();
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		rf_log_failure(index);
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	if (!done)
		rf_request_summarize(index);
}

/*
 * See rangefilter.h.
 */
void
rf_load_end(Oid index)
{
	if (!list_member_oid(rf_loads, index))
		return;
	rf_loads = list_delete_oid(rf_loads, index);
	rf_summarize_load(index);
}

/*
 * Transaction callback.  Functions that indexes call while they are summarized may
 * begin further loads.
 */
static void
rf_transaction_ends(XactEvent event, void *arg)
{
	ListCell   *cell;

	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			while (rf_loads != NIL)
				rf_load_end(llast_oid(rf_loads));
			break;
		case XACT_EVENT_ABORT:
			foreach(cell, rf_loads)
				rf_request_summarize(lfirst_oid(cell));
			rf_loads = NIL;
			break;
		default:
			break;
	}
}

/*
 * Called once, when the library is loaded.
 */
void
rf_init_loads(void)
{
	RegisterXactCallback(rf_transaction_ends, NULL);
}
