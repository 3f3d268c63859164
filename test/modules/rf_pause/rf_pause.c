/*-------------------------------------------------------------------------
 *
 * rf_pause.c
 *	  Lets isolation specs stop a query between its phases.
 *
 * Three settings, each the number of an advisory lock or 0 (do not stop):
 *
 *	rf_pause.after_planning		the planner has finished; under the simple
 *								protocol the executor's snapshot is yet to come
 *	rf_pause.before_start		ExecutorStart is about to run, its snapshot
 *								has been taken
 *	rf_pause.in_merge			an insert has merged keys of a rangefilter index
 *								to a new level, and is about to put it in place;
 *								needs LOAD 'rangefilter' before
 *
 * A fourth one, rf_pause.insert_merge, is the most pages that an insert merges to a level, and
 * needs LOAD 'rangefilter' before, too.
 *
 * A session that gets there takes and releases the lock, so it stops for as
 * long as another session holds it.  Hooks run in the reverse order of loading:
 * a session that says LOAD 'rangefilter' before LOAD 'rf_pause' stops before
 * rangefilter checks the plan in ExecutorStart, and also after each planning
 * that this check asks for.
 *
 * Unlike a query that waits for a table, one that stops here reads no
 * invalidation messages.  This is on purpose: without the pause it would not
 * read any either, and what it must notice it must notice on its own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dlfcn.h>
#include <limits.h>

#include "compat.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "optimizer/planner.h"
#include "storage/lock.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static int	after_planning = 0;
static int	before_start = 0;
static int	in_merge = 0;

static planner_hook_type next_planner = NULL;
static ExecutorStart_hook_type next_executor_start = NULL;

/*
 * Waits until nobody holds the advisory lock that SQL calls number (0: does
 * not wait).  Nothing is held afterwards.
 */
static void
wait_for(int number)
{
	LOCKTAG		tag;

	if (number == 0)
		return;
	/* As pg_advisory_lock(bigint) has it: high and low half, key space 1. */
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, number, 1);
	(void) LockAcquire(&tag, ExclusiveLock, true, false);
	LockRelease(&tag, ExclusiveLock, true);
}

/*
 * planner_hook
 */
static PlannedStmt *
pause_planner(RF_PLANNER_PARAMS)
{
	PlannedStmt *result;

	if (next_planner)
		result = next_planner(RF_PLANNER_ARGS);
	else
		result = standard_planner(RF_PLANNER_ARGS);
	wait_for(after_planning);
	return result;
}

/*
 * ExecutorStart_hook
 */
static void
pause_executor_start(QueryDesc *query_desc, int eflags)
{
	wait_for(before_start);
	if (next_executor_start)
		next_executor_start(query_desc, eflags);
	else
		standard_ExecutorStart(query_desc, eflags);
}

/*
 * rf_merge_hook of rangefilter
 */
static void
pause_merge(void)
{
	wait_for(in_merge);
}

/*
 * Defines a setting that names a lock.
 */
static void
define_setting(const char *name, const char *description, int *variable)
{
	DefineCustomIntVariable(name, description,
							"Number of the advisory lock to wait for; 0 does not stop.",
							variable, 0, 0, INT_MAX, PGC_USERSET, 0,
							NULL, NULL, NULL);
}

/*
 * Module load function
 */
void
_PG_init(void)
{
	void		(**merge_hook) (void);
	int		   *insert_merge;

	define_setting("rf_pause.after_planning",
				   "Stops every query after planning.", &after_planning);
	define_setting("rf_pause.before_start",
				   "Stops every query before its executor starts.",
				   &before_start);
	define_setting("rf_pause.in_merge",
				   "Stops merges before they put their level in place.",
				   &in_merge);
	insert_merge = dlsym(RTLD_DEFAULT, "rf_insert_merge");
	if (insert_merge != NULL)
		DefineCustomIntVariable("rf_pause.insert_merge",
								"Pages that an insert merges at most.", NULL,
								insert_merge, *insert_merge, 1, INT_MAX,
								PGC_USERSET, 0, NULL, NULL, NULL);
	MarkGUCPrefixReserved("rf_pause");

	merge_hook = dlsym(RTLD_DEFAULT, "rf_merge_hook");
	if (merge_hook != NULL)
		*merge_hook = pause_merge;

	next_planner = planner_hook;
	planner_hook = pause_planner;
	next_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = pause_executor_start;
}
