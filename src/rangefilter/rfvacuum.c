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
 * ends VACUUM, and an index with functions that are unsafe in parallel mode is left
 * to the worker, or to the next VACUUM that is not parallel, as autovacuum.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_proc.h"
#include "commands/vacuum.h"
#include "nodes/parsenodes.h"
#include "optimizer/clauses.h"
#include "rangefilter/rangefilter.h"
#include "rangefilter/summarize/summarize.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

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
 * May expressions and predicate of an index be evaluated in parallel mode?  Functions that
 * are unsafe there may begin subtransactions.
 */
static bool
rf_may_evaluate(const IndexInfo *index_info)
{
	Query	   *query = makeNode(Query);

	query->targetList = list_concat_copy(index_info->ii_Expressions,
										 index_info->ii_Predicate);
	return max_parallel_hazard(query) != PROPARALLEL_UNSAFE;
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
rf_try_summarize(Relation heap, Relation index, IndexInfo *index_info)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	PG_TRY();
	{
		rf_summarize(heap, index, index_info, RF_SUMMARIZE_VACUUM, NULL);
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
rf_vacuum_index(Relation heap, Relation index, IndexInfo *index_info)
{
	if (!IsInParallelMode())
		rf_try_summarize(heap, index, index_info);
	else if (rf_may_evaluate(index_info))
		rf_summarize(heap, index, index_info, RF_SUMMARIZE_VACUUM, NULL);
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
		rf_vacuum_index(heap, info->index, index_info);
		table_close(heap, NoLock);
	}
	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	stats->num_index_tuples = info->num_heap_tuples;
	stats->estimated_count = info->estimated_count;
	return stats;
}
