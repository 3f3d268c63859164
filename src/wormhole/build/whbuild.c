/*-------------------------------------------------------------------------
 *
 * whbuild.c
 *	  Building an index.
 *
 * Rows are sorted by key and TID (whsort.c), by this process alone or with
 * workers (whworkers.c).  Pages are made of them in that order (whlevels.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/tableam.h"
#include "access/xloginsert.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "wormhole/build/whbuild_impl.h"

/* The state of sort_row(). */
typedef struct RowScan
{
	WhSort	   *sort;
	double		nrows;
} RowScan;

/*
 * table_index_build_scan callback: gives one row to the sort.
 */
static void
sort_row(Relation index, ItemPointer tid, Datum *values, bool *isnull,
		 bool alive, void *arg)
{
	RowScan    *state = arg;

	wh_sort_put(state->sort, tid, values, isnull, alive);
	state->nrows++;
}

/*
 * Scans the table, or this process's part of a parallel scan, and gives the
 * rows to the sort.
 */
void
wh_scan_rows(Relation heap, Relation index, IndexInfo *index_info,
			 WhSort *sort, TableScanDesc scan, bool progress,
			 WhScanned *scanned)
{
	RowScan		state = {.sort = sort};

	scanned->heap_tuples = table_index_build_scan(heap, index, index_info,
												  true, progress, sort_row,
												  &state, scan);
	scanned->index_tuples = state.nrows;
	scanned->broken_hot_chain = index_info->ii_BrokenHotChain;
}

/*
 * Raises the error for rows that are not unique.
 */
static void
report_not_unique(Relation heap, Relation index, const WhRow *row)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	char	   *description;

	wh_decode(index, row->key, row->key_len,
			  row->payload_len > 0 ? row->payload : NULL, row->payload_len,
			  values, isnull);
	description = BuildIndexValueDescription(index, values, isnull);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("could not create unique index \"%s\"",
					RelationGetRelationName(index)),
			 description ? errdetail("Key %s is duplicated.", description) :
			 errdetail("Duplicate keys exist."),
			 errtableconstraint(heap, RelationGetRelationName(index))));
}

/*
 * Writes the index from the sorted rows.  In a unique index only one row with
 * a key may be alive.
 */
static void
write_index(Relation heap, Relation index, IndexInfo *index_info, WhSort *sort)
{
	WhLevels   *levels = wh_levels_begin(index);
	bool		alive = false;	/* a row with the last key is alive */
	int64		done = 0;
	WhRow		row;

	while (wh_sort_get(sort, &row))
	{
		bool		same = wh_levels_add(levels, &row);

		if (index_info->ii_Unique)
		{
			bool		counts = row.alive &&
			(!row.nulls || index_info->ii_NullsNotDistinct);

			if (same && alive && counts)
				report_not_unique(heap, index, &row);
			alive = counts || (same && alive);
		}
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, ++done);
	}
	wh_levels_finish(levels);
}

/*
 * Reports that sorting begins, and resets the counts of blocks.
 */
static void
report_sorting(double ntuples)
{
	const int	params[] = {
		PROGRESS_CREATEIDX_SUBPHASE,
		PROGRESS_CREATEIDX_TUPLES_TOTAL,
		PROGRESS_SCAN_BLOCKS_TOTAL,
		PROGRESS_SCAN_BLOCKS_DONE
	};
	const int64 values[] = {WH_PHASE_SORT, (int64) ntuples, 0, 0};

	pgstat_progress_update_multi_param(lengthof(params), params, values);
}

/*
 * Does all phases of the build.
 */
static void
build_index(Relation heap, Relation index, IndexInfo *index_info,
			WhScanned *scanned)
{
	WhSample   *sample;
	WhWorkers  *workers;
	WhSort	   *sort;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, WH_PHASE_SCAN);
	sample = wh_sample_take(heap, index, index_info);
	workers = wh_workers_begin(heap, index, index_info, sample);
	if (workers != NULL)
		sort = wh_workers_sort(workers, heap, index, scanned);
	else
	{
		sort = wh_sort_begin(heap, index, sample, maintenance_work_mem, NULL);
		wh_scan_rows(heap, index, index_info, sort, NULL, true, scanned);
	}
	index_info->ii_BrokenHotChain |= scanned->broken_hot_chain;
	report_sorting(scanned->index_tuples);
	wh_sort_perform(sort);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, WH_PHASE_WRITE);
	write_index(heap, index, index_info, sort);
	wh_sort_end(sort);
	if (workers != NULL)
		wh_workers_end(workers);
}

/*
 * ambuild.  One command may build the indexes of many partitions, so nothing
 * but the result stays allocated.
 */
IndexBuildResult *
wh_build(Relation heap, Relation index, IndexInfo *index_info)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "wormhole build",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	WhScanned	scanned = {0};

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));
	wh_check_definition(index, index_info);

	/*
	 * TRUNCATE builds in place, if wh_forbid_truncate() has not raised the error, because
	 * the library was not loaded.  Who made a temporary index has loaded it; its table
	 * may be emptied at COMMIT, and then had no rows before.
	 */
	if (!RelationUsesLocalBuffers(index))
		wh_forbid_moved_table(index, heap, false);
	build_index(heap, index, index_info, &scanned);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	result->heap_tuples = scanned.heap_tuples;
	result->index_tuples = scanned.index_tuples;
	return result;
}

/*
 * Appends a page to the init fork and logs it.
 */
static void
append_init_page(Relation index, Page page)
{
	Buffer		buffer = ReadBufferExtended(index, INIT_FORKNUM, P_NEW,
											RBM_NORMAL, NULL);

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	START_CRIT_SECTION();
	memcpy(BufferGetPage(buffer), page, BLCKSZ);
	MarkBufferDirty(buffer);
	log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}

/*
 * ambuildempty: the init fork of an unlogged index.
 */
void
wh_buildempty(Relation index)
{
	WhBounds	all = {.low.data = (const uint8 *) "",.rightmost = true};
	uint64		identity = wh_new_identity();
	PGAlignedBlock page;

	wh_init_meta_page(index, page.data, identity, WH_FIRST_LEAF, 0);
	append_init_page(index, page.data);
	wh_init_page(page.data, identity, 0, &all);
	append_init_page(index, page.data);
}
