/*-------------------------------------------------------------------------
 *
 * whparallel.c
 *	  What the processes of a parallel scan share: where the next batch begins.
 *
 * Each process in turn takes the position, reads the leaf there, and leaves
 * the position behind that batch to the others before it copies the entries.
 * Since a position is a key, it does not matter what happens to the leaf in
 * between.  The ranges of the scan are the same in all processes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "wormhole/scan/whscan_impl.h"

/* Who may change what follows the state. */
typedef enum WhParallelState
{
	WH_PARALLEL_START,			/* nobody has begun */
	WH_PARALLEL_FREE,			/* whoever takes it */
	WH_PARALLEL_TAKEN,			/* the process that took it, and no other */
	WH_PARALLEL_END				/* nothing is left */
} WhParallelState;

/* In shared memory. */
typedef struct WhParallel
{
	slock_t		mutex;			/* protects state */
	WhParallelState state;
	ConditionVariable free;		/* state is no longer WH_PARALLEL_TAKEN */
	int			range;			/* the next batch is of this one */
	bool		inside;			/* and at the position, not where it begins */
	BlockNumber block;			/* expected there */
	int			len;
	bool		has_tid;
	ItemPointerData tid;
	uint8		data[BLCKSZ];	/* a bound is shorter than a page */
} WhParallel;

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
 * Takes the position, waiting for another process that has it.  False where
 * nothing is left; otherwise wh_parallel_leave() must follow.
 *
 * The range is -1 at the beginning; inside a range the batch gets the position
 * as one of its ends, and the block expected there is returned.
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
 * Leaves the position behind the batch to the other processes.
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
