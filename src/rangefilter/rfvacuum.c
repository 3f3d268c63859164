/*-------------------------------------------------------------------------
 *
 * rfvacuum.c
 *	  VACUUM: nothing to delete, but a good time to summarize.
 *
 * Summarizing needs what VACUUM does without: room on disk, and temporary files.  Where it
 * fails, the summary stays as it was, which is correct.  VACUUM goes on with a warning;
 * otherwise it would never freeze the rows of the table, nor come to the tables after it.
 * That takes a subtransaction, which parallel mode does not allow.
 *
 * While other processes compute which row versions may be removed or frozen, they ignore the
 * transaction in which a lazy VACUUM processes a table.  That is right as long as it writes
 * no rows.  A function that is falsely marked IMMUTABLE may write some, which another VACUUM
 * could then damage.
 *
 * So the summarizing is postponed in parallel mode, and where functions are called that are
 * not built in: until the session's next ordinary transaction is about to commit.  VACUUM
 * itself begins one, for ANALYZE, or to finish the command.  As at the end of a load
 * (rfload.c), the subtransaction is rolled back there, and no lock is waited for.  That undoes
 * what functions have written: deferred triggers would not fire any more.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_index.h"
#include "commands/vacuum.h"
#include "compat.h"
#include "core/core.h"
#include "key/expression.h"
#include "miscadmin.h"
#include "rangefilter/rangefilter.h"
#include "rangefilter/summarize/summarize.h"
#include "request/request.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* An index whose summarizing is postponed. */
typedef struct RfPostponed
{
	Oid			index;
	bool		tried;			/* its lock was free */
} RfPostponed;

/* Those of this session, in TopMemoryContext. */
static List *rf_postponed = NIL;

/*
 * ambulkdelete.  A summary holds no TIDs, and VACUUM may come to it again for rows that are removed
 * later: it only notes that rows are.  An index that is not valid is of no use, or CREATE INDEX
 * CONCURRENTLY is validating it.
 */
IndexBulkDeleteResult *
rf_bulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
			  IndexBulkDeleteCallback callback, void *callback_state)
{
	if (info->index->rd_index->indisvalid)
	{
		Relation	heap = table_open(info->index->rd_index->indrelid, NoLock);

		rf_note_removal(heap, info->index);
		table_close(heap, NoLock);
	}
	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	return stats;
}

/*
 * Warns of an error that has ended the summarizing of an index.
 */
static void
rf_warn_not_summarized(Oid index, const ErrorData *error)
{
	ereport(WARNING,
			(errcode(error->sqlerrcode),
			 errmsg("index \"%s\" was not summarized: %s",
					get_rel_name(index), error->message),
			 error->detail != NULL ? errdetail_internal("%s", error->detail) : 0,
			 error->hint != NULL ? errhint("%s", error->hint) : 0));
}

/*
 * Has the session's next transaction summarize an index.
 */
static void
rf_postpone(Relation index)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	RfPostponed *postponed = palloc0(sizeof(RfPostponed));

	postponed->index = RelationGetRelid(index);
	rf_postponed = lappend(rf_postponed, postponed);
	MemoryContextSwitchTo(old);
}

/* An index that VACUUM summarizes, with its table. */
typedef struct RfVacuumed
{
	Relation	heap;
	Relation	index;
} RfVacuumed;

/*
 * rf_core_attempt() callback: summarizes the index of the RfVacuumed in arg.
 */
static void
rf_summarize_vacuumed(void *arg)
{
	RfVacuumed *vacuumed = arg;

	(void) rf_summarize(vacuumed->heap, vacuumed->index, BuildIndexInfo(vacuumed->index),
						RF_SUMMARIZE_VACUUM, NULL);
}

/*
 * Summarizes an index, or postpones that.  An error becomes a warning, unless it is a
 * cancel.
 */
static void
rf_vacuum_index(Relation heap, Relation index)
{
	RfVacuumed	vacuumed = {heap, index};
	ErrorData  *error;

	if (IsInParallelMode() || rf_calls_users_functions(index))
	{
		rf_postpone(index);
		return;
	}
	error = rf_core_attempt(rf_summarize_vacuumed, &vacuumed, false);
	if (error == NULL)
		return;
	if (error->sqlerrcode == ERRCODE_QUERY_CANCELED)
		ReThrowError(error);
	rf_warn_not_summarized(RelationGetRelid(index), error);
	FreeErrorData(error);
}

/*
 * amvacuumcleanup.  VACUUM holds ShareUpdateExclusiveLock on the heap, has
 * removed the dead tuples, and runs as the table's owner.
 */
IndexBulkDeleteResult *
rf_vacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	Relation	heap;

	if (info->analyze_only)
		return stats;
	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));

	/* A concurrent build that failed left this index; it is of no use. */
	if (info->index->rd_index->indisvalid)
	{
		heap = table_open(IndexGetRelation(RelationGetRelid(info->index), false),
						  NoLock);
		rf_vacuum_index(heap, info->index);
		table_close(heap, NoLock);
	}
	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	stats->num_index_tuples = info->num_heap_tuples;
	stats->estimated_count = info->estimated_count;
	return stats;
}

/*
 * rf_as_owner() callback: summarizes an open index as VACUUM does.  Table and index are locked
 * with ShareUpdateExclusiveLock.  arg is not used.
 */
static void
rf_postponed_work(RfOpenIndex *open, void *arg)
{
	(void) rf_summarize(open->heap, open->index, BuildIndexInfo(open->index),
						RF_SUMMARIZE_VACUUM, NULL);
}

/*
 * rf_core_attempt() callback: summarizes the index of the RfPostponed in arg, and sets tried,
 * unless a lock is not free.  Allocates in the subtransaction's memory.
 */
static void
rf_summarize_postponed(void *arg)
{
	RfPostponed *postponed = arg;
	RfOpenIndex open;

	MemoryContextSwitchTo(CurTransactionContext);
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
 * Summarizes a postponed index, at VACUUM's pace.  An error becomes a warning.  Where a lock is
 * not free, or if it is cancelled, the background worker is asked to.  Return false if
 * it was cancelled.
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
 * Leaves what is still postponed to the background worker.
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
 * Transaction callback.  At COMMIT of a transaction block no subtransaction may be rolled
 * back.
 */
static void
rf_transaction_ends(XactEvent event, void *arg)
{
	bool		go_on = !IsTransactionBlock();

	if (rf_postponed == NIL)
		return;
	if (event == XACT_EVENT_PRE_COMMIT && !rf_core_in_vacuum())
	{
		rf_core_finish_vacuum();
		while (rf_postponed != NIL && go_on)
		{
			RfPostponed *first = linitial(rf_postponed);

			rf_postponed = list_delete_first(rf_postponed);
			go_on = rf_do_postponed(first);
			pfree(first);
		}
	}
	if (event == XACT_EVENT_ABORT || !go_on)
		rf_leave_postponed();
}

/*
 * Called once, when the library is loaded.
 */
void
rf_init_vacuum(void)
{
	RegisterXactCallback(rf_transaction_ends, NULL);
}
