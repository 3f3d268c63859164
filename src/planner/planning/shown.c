/*-------------------------------------------------------------------------
 *
 * shown.c
 *	  Whether EXPLAIN, or the like, may show what a query reads.
 *
 * A gate over a secured table closes only in queries of which nothing is
 * shown: the buffers that they do not read would tell of hidden rows.  What a
 * query reads is also counted for the query that calls it, and for EXPLAIN if
 * the planner calls it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "executor/instrument.h"
#include "planner/planning/planning.h"

/* Started queries whose buffers or WAL are counted, and all those of what they call. */
static int	counted_queries = 0;

/* The start of the transaction that has loaded the library; 0: it was loaded before. */
static TimestampTz loading_transaction = 0;

/*
 * Called once, when the library is loaded.
 */
void
rf_note_load(void)
{
	if (IsTransactionState() && !IsParallelWorker())
		loading_transaction = GetCurrentTransactionStartTimestamp();
}

/*
 * Will what is read now be shown with what another query reads, or is planned?  Nothing is
 * known of queries that were started before the library was loaded.
 */
static bool
is_below_shown(void)
{
	return counted_queries > 0 || rf_planning != NULL ||
		GetCurrentTransactionStartTimestamp() == loading_transaction;
}

/*
 * A query is about to be started.  Its parallel workers do not know below what it is.  They
 * are told that the query itself is instrumented.
 */
void
rf_note_starting(QueryDesc *desc)
{
	if (desc->plannedstmt->parallelModeNeeded && is_below_shown())
		desc->instrument_options |= INSTRUMENT_ROWS;
}

/*
 * Reset callback of a counted query's memory, which goes in whatever way the query ends.
 */
static void
forget_counted(void *arg)
{
	counted_queries--;
}

/*
 * A query was started.
 */
void
rf_note_started(QueryDesc *desc)
{
	EState	   *estate = desc->estate;
	int			counts = IsParallelWorker() ? INSTRUMENT_ALL :
	INSTRUMENT_BUFFERS | INSTRUMENT_WAL;
	MemoryContextCallback *callback;

	if ((estate->es_instrument & counts) == 0)
		return;
	callback = MemoryContextAllocZero(estate->es_query_cxt,
									  sizeof(MemoryContextCallback));
	callback->func = forget_counted;
	MemoryContextRegisterResetCallback(estate->es_query_cxt, callback);
	counted_queries++;
}

/*
 * May EXPLAIN, or the like, show what a query reads?  Also if a function that another query
 * calls runs it, or one that the planner calls: their buffers are counted with those of
 * the caller.
 */
bool
rf_is_shown(const EState *estate)
{
	return estate->es_instrument != 0 || is_below_shown();
}
