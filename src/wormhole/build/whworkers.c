/*-------------------------------------------------------------------------
 *
 * whworkers.c
 *	  Scanning and sorting for a build by several processes.
 *
 * Core plans parallel workers only for a btree, so ambuild asks for them
 * itself.  Workers and leader scan the table together.  Each sorts the rows it
 * read, and the leader merges the sorted runs while it writes the index.  So
 * equal keys of a unique index are side by side.
 *
 * The sorted runs belong to the parallel context, so it must exist until the
 * index is written.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "compat.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"
#include "wormhole/build/whbuild_impl.h"

/* Keys of the parallel context's table of contents. */
#define KEY_SHARED		1
#define KEY_SCAN		2
#define KEY_SORT		3
#define KEY_SAMPLE		4
#define KEY_USAGE		5
#define KEY_QUERY		6

/* What all processes share. */
typedef struct Shared
{
	Oid			heap;
	Oid			index;
	bool		concurrent;
	int			nplanned;		/* processes, the leader included, that memory
								 * was divided among */
	ConditionVariable done_cv;	/* signalled when ndone has grown */
	slock_t		mutex;			/* protects the fields below */
	int			ndone;			/* processes that have sorted their rows */
	WhScanned	scanned;		/* sums over these */
} Shared;

/* Buffers and WAL that a worker used, to be added to the leader's. */
typedef struct Usage
{
	BufferUsage buffers;
	WalUsage	wal;
} Usage;

struct WhWorkers
{
	ParallelContext *context;
	Snapshot	snapshot;
	Shared	   *shared;
	ParallelTableScanDesc scan;
	Sharedsort *sort;
	WhSample   *sample;
	Usage	   *usage;
	int			nprocesses;		/* that take part, with the leader */
};

/* Workers find this function by its name. */
extern PGDLLEXPORT void wh_parallel_build_main(dsm_segment *seg, shm_toc *toc);

/*
 * Reserves space and an entry in the table of contents.
 */
static void
estimate_chunk(ParallelContext *context, Size size)
{
	shm_toc_estimate_chunk(&context->estimator, size);
	shm_toc_estimate_keys(&context->estimator, 1);
}

/*
 * Takes a chunk of the shared memory, and lets workers find it by its key.
 */
static void *
make_chunk(ParallelContext *context, uint64 key, Size size)
{
	void	   *chunk = shm_toc_allocate(context->toc, size);

	shm_toc_insert(context->toc, key, chunk);
	return chunk;
}

/*
 * Makes the shared memory; false where there is not enough.
 */
static bool
make_shared(WhWorkers *workers, Relation heap, Relation index,
			IndexInfo *index_info, const WhSample *sample)
{
	ParallelContext *context = workers->context;
	int			nprocesses = context->nworkers + 1;
	Size		scan_size = table_parallelscan_estimate(heap, workers->snapshot);
	Size		sort_size = tuplesort_estimate_shared(nprocesses);
	Size		usage_size = mul_size(context->nworkers, sizeof(Usage));
	Size		query_size = debug_query_string ?
	strlen(debug_query_string) + 1 : 0;
	Shared	   *shared;

	estimate_chunk(context, sizeof(Shared));
	estimate_chunk(context, scan_size);
	estimate_chunk(context, sort_size);
	estimate_chunk(context, wh_sample_size(sample));
	estimate_chunk(context, usage_size);
	if (query_size > 0)
		estimate_chunk(context, query_size);
	InitializeParallelDSM(context);
	if (context->seg == NULL)
		return false;

	shared = make_chunk(context, KEY_SHARED, sizeof(Shared));
	memset(shared, 0, sizeof(*shared));
	shared->heap = RelationGetRelid(heap);
	shared->index = RelationGetRelid(index);
	shared->concurrent = index_info->ii_Concurrent;
	shared->nplanned = nprocesses;
	ConditionVariableInit(&shared->done_cv);
	SpinLockInit(&shared->mutex);
	workers->shared = shared;
	workers->scan = make_chunk(context, KEY_SCAN, scan_size);
	table_parallelscan_initialize(heap, workers->scan, workers->snapshot);
	workers->sort = make_chunk(context, KEY_SORT, sort_size);
	tuplesort_initialize_shared(workers->sort, nprocesses, context->seg);
	workers->sample = make_chunk(context, KEY_SAMPLE, wh_sample_size(sample));
	memcpy(workers->sample, sample, wh_sample_size(sample));
	workers->usage = make_chunk(context, KEY_USAGE, usage_size);
	if (query_size > 0)
		memcpy(make_chunk(context, KEY_QUERY, query_size), debug_query_string,
			   query_size);
	return true;
}

/*
 * Destroys the parallel context and leaves parallel mode.  Frees workers.
 */
static void
end_context(WhWorkers *workers)
{
	DestroyParallelContext(workers->context);
	if (IsMVCCSnapshot(workers->snapshot))
		UnregisterSnapshot(workers->snapshot);
	ExitParallelMode();
	pfree(workers);
}

/*
 * Starts as many workers as the planner and the settings allow; NULL if none
 * was started.  A table without blocks gets none, even if its option
 * parallel_workers asks for some.
 *
 * A concurrent build scans with a snapshot, others scan all rows.
 */
WhWorkers *
wh_workers_begin(Relation heap, Relation index, IndexInfo *index_info,
				 const WhSample *sample)
{
	WhWorkers  *workers;
	int			nworkers;

	if (RelationGetNumberOfBlocks(heap) == 0)
		return NULL;
	nworkers = plan_create_index_workers(RelationGetRelid(heap),
										 RelationGetRelid(index));
	if (nworkers == 0)
		return NULL;
	workers = palloc0(sizeof(WhWorkers));
	EnterParallelMode();
	workers->context = CreateParallelContext("rangefilter",
											 "wh_parallel_build_main",
											 nworkers);
	workers->snapshot = index_info->ii_Concurrent ?
		RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
	if (make_shared(workers, heap, index, index_info, sample))
		LaunchParallelWorkers(workers->context);
	workers->nprocesses = workers->context->nworkers_launched + 1;
	ereport(DEBUG1,
			(errmsg_internal("index \"%s\" is built by %d processes",
							 RelationGetRelationName(index),
							 workers->nprocesses)));
	if (workers->nprocesses == 1)
	{
		end_context(workers);
		return NULL;
	}
	return workers;
}

/*
 * What each process does: it scans and sorts its rows, and signals done_cv.
 */
static void
scan_and_sort(Shared *shared, ParallelTableScanDesc parallel_scan,
			  Sharedsort *shared_sort, const WhSample *sample, Relation heap,
			  Relation index, int memory, bool leader)
{
	SortCoordinateData coordinate = {
		.isWorker = true,
		.nParticipants = -1,
		.sharedsort = shared_sort
	};
	IndexInfo  *index_info = BuildIndexInfo(index);
	WhSort	   *sort = wh_sort_begin(heap, index, sample, memory, &coordinate);
	WhScanned	scanned = {0};

	index_info->ii_Concurrent = shared->concurrent;
	wh_scan_rows(heap, index, index_info, sort,
				 RF_BEGIN_PARALLEL_SCAN(heap, parallel_scan), leader,
				 &scanned);
	wh_sort_perform(sort);

	SpinLockAcquire(&shared->mutex);
	shared->ndone++;
	shared->scanned.heap_tuples += scanned.heap_tuples;
	shared->scanned.index_tuples += scanned.index_tuples;
	shared->scanned.broken_hot_chain |= scanned.broken_hot_chain;
	SpinLockRelease(&shared->mutex);
	ConditionVariableSignal(&shared->done_cv);
	wh_sort_end(sort);
}

/*
 * Have all processes sorted their rows?  *scanned is set to the sums so far.
 */
static bool
all_done(WhWorkers *workers, WhScanned *scanned)
{
	Shared	   *shared = workers->shared;
	bool		done;

	SpinLockAcquire(&shared->mutex);
	done = shared->ndone == workers->nprocesses;
	*scanned = shared->scanned;
	SpinLockRelease(&shared->mutex);
	return done;
}

/*
 * The leader's part until there are sorted runs: takes part in the scan, and
 * waits for the others.  An error of a worker is raised here.  Returns the
 * sort that merges the runs.  It begins when all processes have written their
 * runs.
 */
WhSort *
wh_workers_sort(WhWorkers *workers, Relation heap, Relation index,
				WhScanned *scanned)
{
	SortCoordinateData coordinate = {
		.isWorker = false,
		.nParticipants = workers->nprocesses,
		.sharedsort = workers->sort
	};

	scan_and_sort(workers->shared, workers->scan, workers->sort,
				  workers->sample, heap, index,
				  maintenance_work_mem / workers->nprocesses, true);

	/* A worker that failed to start would never be done. */
	WaitForParallelWorkersToAttach(workers->context);
	while (!all_done(workers, scanned))
		ConditionVariableSleep(&workers->shared->done_cv,
							   WAIT_EVENT_PARALLEL_CREATE_INDEX_SCAN);
	ConditionVariableCancelSleep();

	return wh_sort_begin(heap, index, workers->sample, maintenance_work_mem,
						 &coordinate);
}

/*
 * Ends what wh_workers_begin() began.
 */
void
wh_workers_end(WhWorkers *workers)
{
	WaitForParallelWorkersToFinish(workers->context);
	for (int i = 0; i < workers->context->nworkers_launched; i++)
		InstrAccumParallelQuery(&workers->usage[i].buffers,
								&workers->usage[i].wal);
	end_context(workers);
}

/*
 * The main function of a worker.  It takes the locks that the leader has on
 * the table and the index.
 */
void
wh_parallel_build_main(dsm_segment *seg, shm_toc *toc)
{
	Shared	   *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	Sharedsort *sort = shm_toc_lookup(toc, KEY_SORT, false);
	Usage	   *usage = shm_toc_lookup(toc, KEY_USAGE, false);
	Relation	heap;
	Relation	index;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);

	heap = table_open(shared->heap, shared->concurrent ?
					  ShareUpdateExclusiveLock : ShareLock);
	index = index_open(shared->index, shared->concurrent ?
					   RowExclusiveLock : AccessExclusiveLock);
	tuplesort_attach_shared(sort, seg);

	InstrStartParallelQuery();
	scan_and_sort(shared, shm_toc_lookup(toc, KEY_SCAN, false), sort,
				  shm_toc_lookup(toc, KEY_SAMPLE, false), heap, index,
				  maintenance_work_mem / shared->nplanned, false);
	InstrEndParallelQuery(&usage[ParallelWorkerNumber].buffers,
						  &usage[ParallelWorkerNumber].wal);

	/* The locks stay until the end of the transaction. */
	index_close(index, NoLock);
	table_close(heap, NoLock);
}
