/*-------------------------------------------------------------------------
 *
 * rfpostpone.c
 *	  Indexes that VACUUM leaves to the next transaction of its session.
 *
 * While other processes compute which row versions may be removed or frozen, they ignore
 * the transaction in which a lazy VACUUM processes a table.  That is right as long as it
 * writes no rows.  A function that is falsely marked IMMUTABLE may write some, which
 * another VACUUM could then damage.  So VACUUM calls built-in functions, and no others.  It
 * leaves an index whose definition has others.  In parallel mode it leaves all.
 *
 * They are summarized before the session's next ordinary transaction commits.  VACUUM itself
 * begins one, for ANALYZE, or to finish the command.  As at the end of a load (rfload.c), each
 * summarize is a subtransaction that is rolled back, and waits for no lock.  That undoes what
 * functions have written: deferred triggers would not fire any more.  An error becomes a
 * warning.  The background worker is asked where a lock is not free.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/index.h"
#include "commands/vacuum.h"
#include "compat.h"
#include "core/core.h"
#include "miscadmin.h"
#include "rangefilter/rangefilter.h"
#include "rangefilter/summarize/summarize.h"
#include "request/request.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* An index that VACUUM has left. */
typedef struct RfPostponed
{
	Oid			index;
	double		live_tuples;	/* see rf_summarize() */
	bool		tried;			/* its lock was free */
} RfPostponed;

/* Those of this session, in TopMemoryContext. */
static List *rf_postponed = NIL;

/*
 * Has the session's next transaction summarize an index, by what VACUUM knows:
 * live_tuples as for rf_summarize().
 */
void
rf_postpone(Relation index, double live_tuples)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	RfPostponed *postponed = palloc0(sizeof(RfPostponed));

	postponed->index = RelationGetRelid(index);
	postponed->live_tuples = live_tuples;
	rf_postponed = lappend(rf_postponed, postponed);
	MemoryContextSwitchTo(old);
}

/*
 * rf_as_owner() callback: summarizes an open index as VACUUM does.  Table and index are locked
 * with ShareUpdateExclusiveLock.  arg is the RfPostponed.
 */
static void
rf_postponed_work(RfOpenIndex *open, void *arg)
{
	(void) rf_summarize(open->heap, open->index, BuildIndexInfo(open->index),
						RF_SUMMARIZE_VACUUM, ((RfPostponed *) arg)->live_tuples, NULL);
}

/*
 * rf_core_attempt() callback: summarizes the index of the RfPostponed in arg, and sets tried, unless a lock is
 * not free.
 */
static void
rf_summarize_postponed(void *arg)
{
	RfPostponed *postponed = arg;
	RfOpenIndex open;

	PushActiveSnapshot(GetTransactionSnapshot());
	if (rf_try_open_index(postponed->index, ShareUpdateExclusiveLock, false, &open))
	{
		postponed->tried = true;
		if (rf_is_rangefilter(open.index) && open.index->rd_index->indisvalid)
			rf_as_owner(&open, rf_postponed_work, postponed);
		rf_close_index(&open, false);
	}
	PopActiveSnapshot();
}

/*
 * Summarizes an index that VACUUM has left, at VACUUM's pace.  Where that fails or cannot be done, asks the worker to.
 * Return false if it was cancelled.
 */
static bool
rf_do_postponed(RfPostponed *postponed)
{
	bool		costs = VacuumCostActive;
	bool		cancelled = false;
	ErrorData  *error;

	RF_VACUUM_COSTS_CHANGED();
	error = rf_core_attempt(rf_summarize_postponed, postponed, true);
	VacuumCostActive = costs;
	if (error != NULL)
	{
		cancelled = error->sqlerrcode == ERRCODE_QUERY_CANCELED;

		/* Another cancel that waits must not become an error of the commit. */
		HOLD_INTERRUPTS();
		rf_warn_not_summarized(postponed->index, error);
		RESUME_INTERRUPTS();
		FreeErrorData(error);
	}
	if (cancelled || !postponed->tried)
		rf_request_summarize(postponed->index);
	return !cancelled;
}

/*
 * Leaves what is postponed to the background worker.
 */
static void
rf_leave_postponed(void)
{
	ListCell   *cell;

	foreach(cell, rf_postponed)
		rf_request_summarize(((RfPostponed *) lfirst(cell))->index);
	list_free_deep(rf_postponed);
	rf_postponed = NIL;
}

/*
 * Transaction callback.  In a transaction block no subtransaction may be rolled back at COMMIT.
 */
static void
rf_transaction_ends(XactEvent event, void *arg)
{
	bool		go_on = !IsTransactionBlock();

	if (rf_postponed == NIL)
		return;
	if (event == XACT_EVENT_PRE_COMMIT && !rf_core_in_vacuum())
		while (rf_postponed != NIL && go_on)
		{
			RfPostponed *first = linitial(rf_postponed);

			rf_postponed = list_delete_first(rf_postponed);
			go_on = rf_do_postponed(first);
			pfree(first);
		}
	if (event == XACT_EVENT_ABORT || !go_on)
		rf_leave_postponed();
}

/*
 * Called once, when the library is loaded.
 */
void
rf_init_postponed(void)
{
	RegisterXactCallback(rf_transaction_ends, NULL);
}
