/*-------------------------------------------------------------------------
 *
 * rfvacuum.c
 *	  VACUUM: nothing to delete, but a good time to summarize.
 *
 * Summarizing needs what VACUUM does without: room on disk, and temporary files.
 * Where it fails, the summary stays as it was, which is correct.  VACUUM goes on with a
 * warning; otherwise it would never freeze the rows of the table, nor come to
 * the tables after it.
 *
 * That takes a subtransaction, which parallel mode does not allow.  There the summarizing is
 * postponed (rfpostpone.c), and so it is where functions are called that are not built in.
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
#include "core/core.h"
#include "key/expression.h"
#include "rangefilter/rangefilter.h"
#include "rangefilter/summarize/summarize.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"

/*
 * ambulkdelete.  A summary holds no TIDs.
 */
IndexBulkDeleteResult *
rf_bulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
			  IndexBulkDeleteCallback callback, void *callback_state)
{
	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	return stats;
}

/*
 * How many rows of the heap the index is to cover, or -1 where VACUUM's count
 * does not say: a partial index covers fewer.
 */
static double
rf_expected_rows(const IndexVacuumInfo *info)
{
	if (!heap_attisnull(info->index->rd_indextuple, Anum_pg_index_indpred, NULL) ||
		info->num_heap_tuples < 0)
		return -1;
	return info->num_heap_tuples;
}

/*
 * Warns of an error that has ended the summarizing of an index.
 */
void
rf_warn_not_summarized(Oid index, const ErrorData *error)
{
	ereport(WARNING,
			(errcode(error->sqlerrcode),
			 errmsg("index \"%s\" was not summarized: %s",
					get_rel_name(index), error->message),
			 error->detail != NULL ? errdetail_internal("%s", error->detail) : 0,
			 error->hint != NULL ? errhint("%s", error->hint) : 0));
}

/* An index that VACUUM summarizes, with its table. */
typedef struct RfVacuumed
{
	Relation	heap;
	Relation	index;
	double		live_tuples;	/* see rf_summarize() */
} RfVacuumed;

/*
 * rf_core_attempt() callback: summarizes the index of the RfVacuumed in arg.
 */
static void
rf_summarize_vacuumed(void *arg)
{
	RfVacuumed *vacuumed = arg;

	(void) rf_summarize(vacuumed->heap, vacuumed->index, BuildIndexInfo(vacuumed->index),
						RF_SUMMARIZE_VACUUM, vacuumed->live_tuples, NULL);
}

/*
 * Summarizes an index, or postpones that.  An error becomes a warning, unless it is a
 * cancel.
 */
static void
rf_vacuum_index(Relation heap, Relation index, double live_tuples)
{
	RfVacuumed	vacuumed = {heap, index, live_tuples};
	ErrorData  *error;

	if (IsInParallelMode() || rf_calls_users_functions(index))
	{
		rf_postpone(index, live_tuples);
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
		rf_vacuum_index(heap, info->index, rf_expected_rows(info));
		table_close(heap, NoLock);
	}
	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	stats->num_index_tuples = info->num_heap_tuples;
	stats->estimated_count = info->estimated_count;
	return stats;
}
