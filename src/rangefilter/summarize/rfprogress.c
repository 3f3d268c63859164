/*-------------------------------------------------------------------------
 *
 * rfprogress.c
 *	  The progress that rangefilter_summarize() reports while it runs.
 *
 * A backend can show the progress of one command at a time, and core decides
 * which commands there are.  Summarizing works like building an index, so it
 * is shown in pg_stat_progress_create_index.  The column "command" is NULL
 * there, which it never is for core's commands.  If a command of core is under
 * way already, nothing is shown: VACUUM, COPY of the function's result, or
 * CREATE INDEX with an expression that calls it.  At an error, core ends the
 * report.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/progress.h"
#include "pgstat.h"
#include "rangefilter/summarize/summarize.h"
#include "utils/backend_progress.h"
#include "utils/backend_status.h"

/*
 * Begins to report.  False where another command is being shown.
 */
bool
rf_progress_begin(int nindexes)
{
	if (MyBEEntry == NULL ||
		MyBEEntry->st_progress_command != PROGRESS_COMMAND_INVALID)
		return false;
	pgstat_progress_start_command(PROGRESS_COMMAND_CREATE_INDEX, InvalidOid);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_PARTITIONS_TOTAL, nindexes);
	return true;
}

/*
 * Reports that work on an index begins; ndone indexes are done.
 */
void
rf_progress_index(Relation heap, Relation index, int ndone)
{
	const int	params[] = {
		PROGRESS_CREATEIDX_INDEX_OID,
		PROGRESS_CREATEIDX_ACCESS_METHOD_OID,
		PROGRESS_CREATEIDX_PHASE,
		PROGRESS_CREATEIDX_SUBPHASE,
		PROGRESS_CREATEIDX_PARTITIONS_TOTAL,
		PROGRESS_CREATEIDX_PARTITIONS_DONE
	};
	const int64 values[] = {
		RelationGetRelid(index),
		index->rd_rel->relam,
		PROGRESS_CREATEIDX_PHASE_BUILD,
		RF_PHASE_SCAN,
		MyBEEntry->st_progress_param[PROGRESS_CREATEIDX_PARTITIONS_TOTAL],
		ndone
	};

	/* Only starting a command sets the table.  It sets all numbers to 0. */
	pgstat_progress_start_command(PROGRESS_COMMAND_CREATE_INDEX,
								  RelationGetRelid(heap));
	pgstat_progress_update_multi_param(lengthof(params), params, values);
}

/*
 * Reports that the check of an index begins; ndone indexes are done.
 */
void
rf_progress_check(Oid index, int ndone)
{
	pgstat_progress_update_param(PROGRESS_CREATEIDX_INDEX_OID, index);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_PARTITIONS_DONE, ndone);
}

/*
 * Return true if work on this index is being reported.
 */
bool
rf_progress_is_of(Relation index)
{
	return MyBEEntry != NULL &&
		MyBEEntry->st_progress_command == PROGRESS_COMMAND_CREATE_INDEX &&
		MyBEEntry->st_progress_param[PROGRESS_CREATEIDX_INDEX_OID] == RelationGetRelid(index);
}

/*
 * Ends the report that rf_progress_begin() has begun.
 */
void
rf_progress_end(void)
{
	pgstat_progress_end_command();
}
