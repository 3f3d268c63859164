/*-------------------------------------------------------------------------
 *
 * rfvacuum.c
 *	  VACUUM: nothing to delete, but a good time to summarize.
 *
 * Summarizing needs what VACUUM does without: room on disk, temporary files, the
 * functions of the index.  Where it fails, the summary stays as it was, which is
 * correct.  VACUUM goes on with a warning; otherwise it would never freeze the rows
 * of the table, nor come to the tables after it.
 *
 * That takes a subtransaction, which parallel mode does not allow.  There an error
 * ends VACUUM, and an index with expressions or a predicate, which may fail for a row
 * version that is not alive (summarize/rfheap.c), is left to the worker, or to the next
 * VACUUM that is not parallel, as autovacuum.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "commands/vacuum.h"
#include "rangefilter/rangefilter.h"
#include "rangefilter/summarize/summarize.h"
#include "request/request.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

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
rf_expected_rows(const IndexVacuumInfo *info, const IndexInfo *index_info)
{
	if (index_info->ii_Predicate != NIL || info->num_heap_tuples < 0)
		return -1;
	return info->num_heap_tuples;
}

/*
 * Warns of an error that has ended the summarizing.
 */
static void
rf_warn(Relation index, const ErrorData *error)
{
	ereport(WARNING,
			(errcode(error->sqlerrcode),
			 errmsg("index \"%s\" was not summarized: %s",
					RelationGetRelationName(index), error->message),
			 error->detail != NULL ? errdetail_internal("%s", error->detail) : 0,
			 error->hint != NULL ? errhint("%s", error->hint) : 0));
}

/*
 * Summarizes.  An error becomes a warning, unless it is a cancel.
 */
static void
rf_try_summarize(Relation heap, Relation index, IndexInfo *index_info,
				 double live_tuples)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	PG_TRY();
	{
		rf_summarize(heap, index, index_info, RF_SUMMARIZE_VACUUM, live_tuples, NULL);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	if (error == NULL)
		ReleaseCurrentSubTransaction();
	else
		RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	if (error == NULL)
		return;
	if (error->sqlerrcode == ERRCODE_QUERY_CANCELED)
		ReThrowError(error);
	rf_warn(index, error);
	FreeErrorData(error);
}

/*
 * Summarizes an index, unless that cannot be done here.
 */
static void
rf_vacuum_index(Relation heap, Relation index, IndexInfo *index_info,
				double live_tuples)
{
	if (!IsInParallelMode())
		rf_try_summarize(heap, index, index_info, live_tuples);
	else if (index_info->ii_Expressions == NIL && index_info->ii_Predicate == NIL)
		rf_summarize(heap, index, index_info, RF_SUMMARIZE_VACUUM, live_tuples, NULL);
	else
		rf_request_summarize(RelationGetRelid(index));
}

/*
 * amvacuumcleanup.  VACUUM holds ShareUpdateExclusiveLock on the heap, has
 * removed the dead tuples, and runs as the table's owner.
 */
IndexBulkDeleteResult *
rf_vacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	Relation	heap;
	IndexInfo  *index_info;

	if (info->analyze_only)
		return stats;
	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));

	/* A concurrent build that failed left this index; it is of no use. */
	if (info->index->rd_index->indisvalid)
	{
		heap = table_open(IndexGetRelation(RelationGetRelid(info->index), false),
						  NoLock);
		index_info = BuildIndexInfo(info->index);
		rf_vacuum_index(heap, info->index, index_info,
						rf_expected_rows(info, index_info));
		table_close(heap, NoLock);
	}
	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	stats->num_index_tuples = info->num_heap_tuples;
	stats->estimated_count = info->estimated_count;
	return stats;
}
