/*-------------------------------------------------------------------------
 *
 * rfworker.c
 *	  The background worker of a database: summarizes indexes that were asked for.
 *
 * It takes one request at a time (request/request.h) and ends when there are none.
 * Each index has a transaction of its own.  README.md has the rules.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/vacuum.h"
#include "compat.h"
#include "core/core.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/autovacuum.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "rangefilter/rangefilter.h"
#include "request/request.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* So often an index is tried whose table somebody else has locked, or waits for. */
#define TRIES	5

/* Milliseconds: no pause between two indexes, and no wait for a request, is longer. */
#define LONGEST_PAUSE	10000

typedef enum Outcome
{
	DONE,						/* or there is nothing to do */
	BUSY,						/* somebody has or wants a lock: later */
	FAILED
} Outcome;

PGDLLEXPORT void rf_worker_main(Datum arg);

/*
 * Takes the settings as autovacuum does: nothing in the database's settings may stop
 * the worker or lead functions of users elsewhere, and it does not wait for standbys.
 */
static void
choose_settings(void)
{
	static const char *const settings[][2] = {
		{"search_path", ""},
		{"zero_damaged_pages", "off"},
		{"statement_timeout", "0"},
		RF_NO_TRANSACTION_TIMEOUT
		{"lock_timeout", "0"},
		{"idle_in_transaction_session_timeout", "0"},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"}
	};

	for (int i = 0; i < lengthof(settings); i++)
		SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET,
						PGC_S_OVERRIDE);
	if (synchronous_commit > SYNCHRONOUS_COMMIT_LOCAL_FLUSH)
		SetConfigOption("synchronous_commit", "local", PGC_SUSET,
						PGC_S_OVERRIDE);
}

/*
 * Obeys autovacuum's cost delay and limit while it reads.
 */
static void
choose_costs(void)
{
	if (autovacuum_vac_cost_delay >= 0)
		SetConfigOption("vacuum_cost_delay",
						psprintf("%g", autovacuum_vac_cost_delay),
						PGC_SUSET, PGC_S_OVERRIDE);
	if (autovacuum_vac_cost_limit > 0)
		SetConfigOption("vacuum_cost_limit",
						psprintf("%d", autovacuum_vac_cost_limit),
						PGC_SUSET, PGC_S_OVERRIDE);
	RF_VACUUM_COSTS_CHANGED();
}

/*
 * Waits, at most until the given time, and does what signals ask for meanwhile.
 */
static void
wait_until(TimestampTz when)
{
	TimestampTz now = GetCurrentTimestamp();
	long		milliseconds = TimestampDifferenceMilliseconds(now, when);

	if (milliseconds > 0)
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Min(milliseconds, LONGEST_PAUSE), PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);

	/* Whoever wanted the last index's lock has it. */
	QueryCancelPending = false;
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
		choose_costs();
	}
}

/*
 * Tells pg_stat_activity and the log, should there be an error, what is being done.
 */
static void
report_summarize(Relation index)
{
	static char text[3 * NAMEDATALEN];

	snprintf(text, sizeof(text), "rangefilter: summarize %s",
			 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(index)),
										RelationGetRelationName(index)));
	debug_query_string = text;

	pgstat_report_activity(STATE_RUNNING, text);
}

/*
 * Summarizes an index if that is due, in a transaction of its own.  Errors are reported, but that it was
 * cancelled, which is how others make it give way.
 */
static Outcome
summarize_safely(const RfRequest *request)
{
	MemoryContext context = CurrentMemoryContext;
	volatile Outcome outcome = DONE;

	SetCurrentStatementStartTimestamp();
	PG_TRY();
	{
		StartTransactionCommand();
		PushActiveSnapshot(GetTransactionSnapshot());
		outcome = rf_maintain(request->index, false, request->vain, report_summarize) ?
			DONE : BUSY;
		PopActiveSnapshot();
		CommitTransactionCommand();
	}
	PG_CATCH();
	{
		HOLD_INTERRUPTS();
		outcome = geterrcode() == ERRCODE_QUERY_CANCELED ? BUSY : FAILED;
		if (outcome == FAILED)
			EmitErrorReport();
		AbortOutOfAnyTransaction();
		FlushErrorState();
		RESUME_INTERRUPTS();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	debug_query_string = NULL;
	pgstat_report_stat(true);
	pgstat_report_activity(STATE_IDLE, NULL);
	return outcome;
}

/*
 * Does a request, puts it back or has the index rest, and then pauses as long as that
 * has taken.
 */
static void
handle_request(const RfRequest *request)
{
	TimestampTz start = GetCurrentTimestamp();
	TimestampTz end;

	switch (summarize_safely(request))
	{
		case DONE:
			break;
		case BUSY:
			if (request->tries < TRIES)
				rf_request_put_back(request);
			break;
		case FAILED:
			rf_request_rest(request);
			break;
	}
	end = GetCurrentTimestamp();
	wait_until(end + (end - start));
}

/*
 * Where a worker begins.  The argument is its database.
 */
void
rf_worker_main(Datum arg)
{
	RfRequest	request;
	TimestampTz when;
	RfNextRequest next;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(arg), InvalidOid,
											  BGWORKER_BYPASS_ALLOWCONN);
	rf_core_give_way();
	if (!rf_requests_serve())
		return;
	choose_settings();
	choose_costs();
	pgstat_report_activity(STATE_IDLE, NULL);
	while ((next = rf_requests_next(&request, &when)) != RF_REQUEST_NONE)
	{
		if (next == RF_REQUEST_TAKEN)
			handle_request(&request);
		else
			wait_until(when);
	}
}
