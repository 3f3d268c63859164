/*-------------------------------------------------------------------------
 *
 * whparallel.c
 *	  The state that processes of a parallel scan share: where the next batch
 *	  begins.
 *
 * A process takes the position, reads the leaf there, sets the position to the
 * end of that batch, and gives it back before it copies the entries.  A
 * position is a key, so it does not matter what happens to the leaf meanwhile.
 * The ranges of the scan are the same in all processes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "utils/wait_event.h"
#include "wormhole/scan/whscan_impl.h"

/* Who may change the fields behind the state. */
typedef enum WhParallelState
{
	WH_PARALLEL_START,			/* nobody has begun */
	WH_PARALLEL_FREE,			/* the next process that takes the position */
	WH_PARALLEL_TAKEN,			/* only the process that took it */
	WH_PARALLEL_END				/* nothing is left */
} WhParallelState;

/* In shared memory. */
typedef struct WhParallel
{
	slock_t		mutex;			/* protects state */
	WhParallelState state;
	ConditionVariable free;		/* signalled when state is no longer
								 * WH_PARALLEL_TAKEN */
	int			range;			/* number of the range of the next batch */
	bool		inside;			/* the next batch is at the position, not at
								 * an end of the range */
	BlockNumber block;			/* expected there */
	int			len;
	bool		has_tid;
	ItemPointerData tid;
	uint8		data[BLCKSZ];	/* a bound is shorter than a page */
} WhParallel;

/*
 * What the processes of a parallel scan share.
 */
static WhParallel *
shared_state(IndexScanDesc scan)
{
	return (WhParallel *) OffsetToPointer((void *) scan->parallel_scan,
										  RF_PARALLEL_OFFSET(scan->parallel_scan));
}

/*
 * amestimateparallelscan.
 */
Size
wh_estimateparallelscan(RF_ESTIMATE_PARALLEL_ARGS)
{
	return sizeof(WhParallel);
}

/*
 * aminitparallelscan.
 */
void
wh_initparallelscan(void *target)
{
	WhParallel *shared = target;

	memset(shared, 0, sizeof(WhParallel));
	SpinLockInit(&shared->mutex);
	ConditionVariableInit(&shared->free);
	shared->state = WH_PARALLEL_START;
}

/*
 * amparallelrescan.
 */
void
wh_parallelrescan(IndexScanDesc scan)
{
	WhParallel *shared = shared_state(scan);

	SpinLockAcquire(&shared->mutex);
	shared->state = WH_PARALLEL_START;
	SpinLockRelease(&shared->mutex);
}

/*
 * Takes the position; waits if another process has it.  False if nothing is
 * left.  Otherwise the caller must call wh_parallel_leave().
 *
 * *range is -1 at the beginning of the scan.  If *inside, the position is
 * copied to batch->lo (backward: batch->hi), and *block is where it is
 * expected.
 */
bool
wh_parallel_take(IndexScanDesc scan, ScanDirection direction, int *range,
				 bool *inside, BlockNumber *block)
{
	WhParallel *shared = shared_state(scan);
	WhBatch    *batch = &((WhScan) scan->opaque)->batch;
	bool		forward = ScanDirectionIsForward(direction);
	WhParallelState state;
	WhKey		position;

	for (;;)
	{
		SpinLockAcquire(&shared->mutex);
		state = shared->state;
		if (state == WH_PARALLEL_START || state == WH_PARALLEL_FREE)
			shared->state = WH_PARALLEL_TAKEN;
		SpinLockRelease(&shared->mutex);
		if (state != WH_PARALLEL_TAKEN)
			break;
		ConditionVariableSleep(&shared->free, WAIT_EVENT_BTREE_PAGE);
	}
	ConditionVariableCancelSleep();
	if (state == WH_PARALLEL_END)
		return false;
	*inside = state == WH_PARALLEL_FREE && shared->inside;
	*range = state == WH_PARALLEL_FREE ? shared->range : -1;
	*block = shared->block;
	if (!*inside)
		return true;
	position.data = shared->data;
	position.len = shared->len;
	position.has_tid = shared->has_tid;
	position.tid = shared->tid;
	if (forward)
		wh_copy_position(&batch->lo, &position, batch->lo_space);
	else
		wh_copy_position(&batch->hi, &position, batch->hi_space);
	return true;
}

/*
 * Sets the position to the end of the batch (backward: its beginning), and
 * gives it to the other processes.  block is where it is expected.
 */
void
wh_parallel_leave(IndexScanDesc scan, ScanDirection direction,
				  BlockNumber block)
{
	WhParallel *shared = shared_state(scan);
	WhScan		so = (WhScan) scan->opaque;
	WhBatch    *batch = &so->batch;
	bool		forward = ScanDirectionIsForward(direction);
	const WhKey *position = forward ? &batch->hi : &batch->lo;
	bool		end;

	shared->inside = forward ? !batch->to_hi : !batch->from_lo;
	shared->range = batch->range;
	shared->block = block;
	if (shared->inside)
	{
		Assert(position->len <= BLCKSZ);
		memcpy(shared->data, position->data, position->len);
		shared->len = position->len;
		shared->has_tid = position->has_tid;
		shared->tid = position->tid;
	}
	else
		shared->range += forward ? 1 : -1;
	end = shared->range < 0 || shared->range >= so->conditions.nranges;
	SpinLockAcquire(&shared->mutex);
	shared->state = end ? WH_PARALLEL_END : WH_PARALLEL_FREE;
	SpinLockRelease(&shared->mutex);
	if (end)
		ConditionVariableBroadcast(&shared->free);
	else
		ConditionVariableSignal(&shared->free);
}
