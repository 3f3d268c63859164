/*-------------------------------------------------------------------------
 *
 * rfload.c
 *	  The end of a bulk load: its indexes are summarized, so that their partitions
 *	  are skipped at once.
 *
 * A bulk load opens the tail (rfinsert.c).  Where an access method hears of the end of
 * a statement (PostgreSQL 17 and later), the tail is closed there; otherwise before
 * the statement's transaction commits, if that is the statement alone.  Closing is a
 * summarize like any other.  Its heap scan sees the rows of transactions in progress,
 * and so those of its own.
 *
 * COMMIT and PREPARE TRANSACTION of a transaction block do not close tails, nor do deferred
 * triggers there: core allows no subtransaction to be rolled back.  The background
 * worker is asked to.  It is also asked where the index has functions and the user is not
 * the table's owner (rf_maintain()), and where rangefilter.autosummarize is "worker".
 *
 * An error ends the summarizing, which is a subtransaction, and neither the statement
 * nor the commit.  The tail stays open then, which is always correct.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "core/core.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "rangefilter/rangefilter.h"
#include "request/request.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* The indexes of the transaction's loads, in TopTransactionContext. */
static List *rf_loads = NIL;

/*
 * This transaction has brought the index enough keys to open the tail, or relies on its being
 * open.  Before the transaction commits, the index is summarized, if its table can be locked and
 * there is no transaction block; else, or if the transaction fails, the background worker is asked
 * to.
 */
void
rf_load_begin(Oid index)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

	rf_loads = list_append_unique_oid(rf_loads, index);
	MemoryContextSwitchTo(old);
}

/*
 * Writes an error to the server's log, as a message that is none.  A cancel that waits
 * must not become an error of the load's here.
 */
static void
rf_log_failure(Oid index, const ErrorData *error)
{
	HOLD_INTERRUPTS();
	ereport(LOG_SERVER_ONLY,
			(errmsg("index with OID %u was not summarized at the end of a load: %s",
					index, error->message)));
	RESUME_INTERRUPTS();
}

/* The index of a load that is being summarized. */
typedef struct RfLoaded
{
	Oid			index;
	bool		done;
} RfLoaded;

/*
 * rf_core_attempt() callback: summarizes the index of the RfLoaded in arg, and sets done,
 * unless that cannot be done here.  Allocates in the subtransaction's memory: a load may have
 * thousands of indexes.
 */
static void
rf_summarize_loaded(void *arg)
{
	RfLoaded   *loaded = arg;

	MemoryContextSwitchTo(CurTransactionContext);
	PushActiveSnapshot(GetTransactionSnapshot());
	loaded->done = rf_maintain(loaded->index, true, false, NULL);
	PopActiveSnapshot();
}

/*
 * Summarizes the index of a load.  Where that fails or cannot be done here, the background
 * worker is asked to.  False if it was cancelled.
 *
 * The subtransaction is rolled back also if all went well.  That undoes nothing of the
 * summary, and all that functions of the index may have left behind: an open portal
 * would outlive the transaction that is about to commit.
 */
static bool
rf_summarize_load(Oid index)
{
	RfLoaded	loaded = {.index = index};
	ErrorData  *error = rf_core_attempt(rf_summarize_loaded, &loaded, true);
	bool		cancelled = false;

	if (error != NULL)
	{
		cancelled = error->sqlerrcode == ERRCODE_QUERY_CANCELED;
		rf_log_failure(index, error);
		FreeErrorData(error);
	}
	if (!loaded.done)
		rf_request_summarize(index);
	return !cancelled;
}

/*
 * Leaves all loads of the transaction to the background worker.
 */
static void
rf_leave_loads(void)
{
	ListCell   *cell;

	foreach(cell, rf_loads)
		rf_request_summarize(lfirst_oid(cell));
	rf_loads = NIL;
}

/*
 * Return true if a trigger of a transaction block may be running that was deferred to its COMMIT.
 * Nothing tells those from other triggers.
 */
static bool
rf_may_be_deferred(void)
{
	return IsTransactionBlock() &&
		DatumGetInt32(OidFunctionCall0(F_PG_TRIGGER_DEPTH)) > 0;
}

/*
 * The same now, at the end of a statement.  Errors end the summarizing, not the statement.  What
 * is left here is left to the worker when the transaction ends.
 */
void
rf_load_end(Oid index)
{
	if (!list_member_oid(rf_loads, index) ||
		rf_autosummarize == RF_AUTOSUMMARIZE_WORKER || rf_may_be_deferred())
		return;
	rf_loads = list_delete_oid(rf_loads, index);
	if (!rf_summarize_load(index))
		rf_leave_loads();
}

/*
 * Transaction callback.  Functions that indexes call while they are summarized may
 * begin further loads, and so may callbacks that come after this one.
 */
static void
rf_transaction_ends(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			while (rf_loads != NIL && !IsTransactionBlock() &&
				   rf_autosummarize != RF_AUTOSUMMARIZE_WORKER)
				rf_load_end(llast_oid(rf_loads));
			rf_leave_loads();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_ABORT:
			rf_leave_loads();
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
