/*-------------------------------------------------------------------------
 *
 * attempt.c
 *	  Doing something that may fail, in a subtransaction.
 *
 * Rolling back a subtransaction ends the progress report of the command that is running
 * (pg_stat_progress_copy, for example).  Here the report is put back afterwards.
 *
 * What is expected of core: a process's entry in shared memory has the command whose
 * progress it reports, with a table and numbers, and only the process itself changes them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "core/core.h"
#include "utils/backend_progress.h"
#include "utils/backend_status.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

/* A progress report. */
typedef struct Progress
{
	ProgressCommandType command;
	Oid			target;
	int64		params[PGSTAT_NUM_PROGRESS_PARAM];
} Progress;

/*
 * Copies the present report to *progress.
 */
static void
copy_progress(Progress *progress)
{
	progress->command = PROGRESS_COMMAND_INVALID;
	if (MyBEEntry == NULL)
		return;
	progress->command = MyBEEntry->st_progress_command;
	progress->target = MyBEEntry->st_progress_command_target;
	memcpy(progress->params, MyBEEntry->st_progress_param, sizeof(progress->params));
}

/*
 * Puts a report back, if it was ended meanwhile: by a rollback, or by another command
 * that had a report of its own.
 */
static void
restore_progress(const Progress *progress)
{
	PgBackendStatus *entry = MyBEEntry;

	if (progress->command == PROGRESS_COMMAND_INVALID || !pgstat_track_activities ||
		(entry->st_progress_command == progress->command &&
		 entry->st_progress_command_target == progress->target))
		return;
	PGSTAT_BEGIN_WRITE_ACTIVITY(entry);
	entry->st_progress_command = progress->command;
	entry->st_progress_command_target = progress->target;
	memcpy(entry->st_progress_param, progress->params, sizeof(progress->params));
	PGSTAT_END_WRITE_ACTIVITY(entry);
}

/*
 * Calls work(arg) in a subtransaction, in the current memory context.  The subtransaction
 * is rolled back if work() fails, and where roll_back also if it succeeds.  Returns the
 * error, allocated in that context, or NULL.  A cancel is an error like others: what to do
 * with it is up to the caller.  Must not be called in parallel mode.
 */
ErrorData *
rf_core_attempt(void (*work) (void *arg), void *arg, bool roll_back)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;
	Progress	progress;

	copy_progress(&progress);
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
	if (roll_back || error != NULL)
		RollbackAndReleaseCurrentSubTransaction();
	else
		ReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	restore_progress(&progress);
	return error;
}
