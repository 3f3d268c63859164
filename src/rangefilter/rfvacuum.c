/*-------------------------------------------------------------------------
 *
 * rfvacuum.c
 *	  VACUUM: nothing to delete, but a good time to summarize.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/index.h"
#include "commands/vacuum.h"
#include "rangefilter/rangefilter.h"
#include "rangefilter/summarize/summarize.h"
#include "storage/lmgr.h"

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
		rf_summarize(heap, info->index, index_info, RF_SUMMARIZE_VACUUM,
					 rf_expected_rows(info, index_info), NULL);
		table_close(heap, NoLock);
	}
	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	stats->num_index_tuples = info->num_heap_tuples;
	stats->estimated_count = info->estimated_count;
	return stats;
}
