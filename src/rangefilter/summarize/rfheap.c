/*-------------------------------------------------------------------------
 *
 * rfheap.c
 *	  Reading the keys of all row versions in a range of heap blocks.
 *
 * Core's index-build scan leaves out row versions that are DEAD, and some that
 * are RECENTLY_DEAD.  A summary must cover them as well, since a snapshot (on
 * a standby perhaps) may still see them.  So every line pointer that holds a
 * tuple counts, members of HOT chains included.  Only DEAD versions that were never
 * visible outside of their transaction are left out: see rf_was_seen().
 *
 * Expressions and predicates may fail for a version that is not alive: that is
 * why it was replaced, perhaps.  So they are evaluated in a subtransaction for
 * it.  If they fail, the version is left out.  Where a snapshot of this server
 * may see it, missed_visible is set, else missed_dead: only snapshots of a
 * standby may.  For a version that is alive an error is an error, as it is when
 * core builds an index.
 *
 * Out-of-line values of DEAD versions may be gone, and are not fetched.  A DEAD
 * version that needs one is left out, and missed_dead is set.
 *
 * Values of RECENTLY_DEAD versions may be gone, too: another process may have
 * found that no snapshot sees them, after this one found that some may.  It
 * may even have been first, since what a standby reports can set the horizon
 * back.  So may values of a version whose insert was in progress in another
 * transaction when its page was looked at, and has failed since.  Such a
 * version is left out like a DEAD one.  Where the insert has not failed a
 * missing value is damage, and an error (except where an expression needs it
 * for a version that is not alive; see above).
 *
 * Versions that were alive stay while the summarize has a snapshot.  That of
 * VACUUM does not count for others.  If such a version is deleted and its value
 * removed before the scan comes to it, VACUUM warns, and the next one summarizes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/heapam_xlog.h"
#include "access/sysattr.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "commands/vacuum.h"
#include "compat.h"
#include "core/core.h"
#include "executor/executor.h"
#include "key/rowkey.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "rangefilter/summarize/summarize.h"
#include "storage/procarray.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/*
 * A tuple for the callback, which is called when the page's lock is released.
 */
typedef struct RfPending
{
	HeapTuple	tuple;			/* a copy, to compute the key from; or NULL */
	bool		alive;			/* what fails for it is an error */
	bool		dead;
	bool		may_be_gone;	/* what it has out of line */
	RfHeapTuple result;
} RfPending;

typedef struct RfScanState
{
	RfHeapScan *scan;
	MemoryContext context;		/* of all this */
	TransactionId oldest_xmin;
	int			ncolumns;		/* of the key */
	bool		plain;			/* the key is made of columns only */
	bool		by_expression;	/* it is not, or there is a predicate */

	/* Columns, from FirstLowInvalidHeapAttributeNumber on: */
	Bitmapset  *of_key;			/* that the key is made of */
	Bitmapset  *of_predicate;
	Bitmapset  *of_either;
	EState	   *estate;
	ExprState  *predicate;
	TupleTableSlot *slot;
	MemoryContext page_context;
	MemoryContext tuple_context;	/* values of one tuple: each may be 1 GB */
	BufferAccessStrategy strategy;
	RfPending	pending[MaxHeapTuplesPerPage];
	int			npending;
} RfScanState;

/* Computing the key of a tuple where that may fail. */
typedef struct RfAttempt
{
	RfScanState *state;
	RfPending  *pending;
	bool		finished;
} RfAttempt;

/*
 * Prepares the evaluation of expressions and predicate.
 */
static void
rf_prepare_evaluation(RfScanState *state)
{
	IndexInfo  *info = state->scan->index_info;
	MemoryContext old = MemoryContextSwitchTo(state->context);

	state->estate = CreateExecutorState();
	GetPerTupleExprContext(state->estate)->ecxt_scantuple = state->slot;
	state->predicate = ExecPrepareQual(info->ii_Predicate, state->estate);
	info->ii_ExpressionsState = ExecPrepareExprList(info->ii_Expressions,
													state->estate);
	MemoryContextSwitchTo(old);
}

/*
 * Prepares the evaluation anew after an error, which may have left functions' memory in any
 * state.  Shutdown callbacks of these functions must not be called any more, so the old
 * state is freed as memory alone, as core does when a transaction aborts.
 */
static void
rf_renew_evaluation(RfScanState *state)
{
	ExecClearTuple(state->slot);
	MemoryContextDelete(state->estate->es_query_cxt);
	rf_prepare_evaluation(state);
}

/*
 * Finds out what the index's keys are made of.  Prepares the evaluation of
 * expressions and predicate, if there are any.
 */
static void
rf_prepare_keys(RfScanState *state)
{
	RfHeapScan *scan = state->scan;
	IndexInfo  *info = scan->index_info;

	state->ncolumns = info->ii_NumIndexKeyAttrs;
	state->plain = info->ii_Expressions == NIL;
	state->by_expression = !state->plain || info->ii_Predicate != NIL;
	for (int i = 0; i < state->ncolumns; i++)
	{
		AttrNumber	attno = info->ii_IndexAttrNumbers[i];

		if (attno != 0)
			state->of_key = bms_add_member(state->of_key,
										   attno - FirstLowInvalidHeapAttributeNumber);
	}
	pull_varattnos((Node *) info->ii_Expressions, 1, &state->of_key);
	pull_varattnos((Node *) info->ii_Predicate, 1, &state->of_predicate);
	state->of_either = bms_union(state->of_key, state->of_predicate);
	if (!state->by_expression)
		return;
	state->slot = MakeSingleTupleTableSlot(RelationGetDescr(scan->heap),
										   &TTSOpsHeapTuple);
	rf_prepare_evaluation(state);
}

/*
 * Encodes a key into *result.
 */
static void
rf_set_key(RfScanState *state, RfHeapTuple *result, const Datum *values,
		   const bool *isnull)
{
	result->isnull = !rf_encode_row(state->scan->codec, values, isnull,
									&result->key);
	if (result->key.unordered)
		state->scan->unordered = true;
}

/*
 * Gets the values of a tuple's key columns.  False where the key has
 * expressions.  False also where a value is stored out of line; values and
 * isnull are set even then.
 */
static bool
rf_get_columns(RfScanState *state, HeapTuple tuple, Datum *values,
			   bool *isnull)
{
	TupleDesc	desc = RelationGetDescr(state->scan->heap);
	bool		in_line = true;

	if (!state->plain)
		return false;
	for (int i = 0; i < state->ncolumns; i++)
	{
		AttrNumber	attno = state->scan->index_info->ii_IndexAttrNumbers[i];

		values[i] = heap_getattr(tuple, attno, desc, &isnull[i]);
		if (!isnull[i] && TupleDescAttr(desc, attno - 1)->attlen == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(values[i])))
			in_line = false;
	}
	return in_line;
}

/*
 * Return true if a snapshot, of this server or a standby, may have seen a tuple that is
 * DEAD.  None has, or will, if its insert failed or its own transaction deleted it.
 * This is core's rule for removing tuples without a conflict with queries of standbys.
 */
static bool
rf_was_seen(HeapTupleHeader tuple)
{
	TransactionId horizon = InvalidTransactionId;

	RF_ADVANCE_CONFLICT_HORIZON(tuple, &horizon);
	return TransactionIdIsValid(horizon);
}

/*
 * Takes one tuple of a share-locked page.  Encodes its key now, if that needs
 * nothing but the page.  Else copies the tuple, for rf_finish_tuple().
 */
static void
rf_take_tuple(RfScanState *state, HeapTuple tuple, HTSV_Result status)
{
	RfPending  *pending = &state->pending[state->npending];
	RfHeapTuple result = {.tid = tuple->t_self};
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	bool		own;

	if (status == HEAPTUPLE_DEAD && !rf_was_seen(tuple->t_data))
		return;
	result.xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);
	result.settled = status == HEAPTUPLE_LIVE ||
		status == HEAPTUPLE_RECENTLY_DEAD ||
		status == HEAPTUPLE_DELETE_IN_PROGRESS;
	result.recently_dead = status == HEAPTUPLE_RECENTLY_DEAD;
	if (!state->by_expression &&
		rf_get_columns(state, tuple, values, isnull))
	{
		rf_set_key(state, &result, values, isnull);
		pending->tuple = NULL;
	}
	else
		pending->tuple = heap_copytuple(tuple);
	own = TransactionIdIsCurrentTransactionId(result.xmin);
	pending->alive = status == HEAPTUPLE_LIVE ||
		(status == HEAPTUPLE_INSERT_IN_PROGRESS && own);
	pending->dead = status == HEAPTUPLE_DEAD;
	pending->may_be_gone = pending->dead || status == HEAPTUPLE_RECENTLY_DEAD ||
		(status == HEAPTUPLE_INSERT_IN_PROGRESS && !own);
	pending->result = result;
	state->npending++;
}

/*
 * Return true if this column, alone or as part of the whole row, is among the columns.
 */
static bool
rf_needs_column(const Bitmapset *columns, AttrNumber attno)
{
	return bms_is_member(attno - FirstLowInvalidHeapAttributeNumber, columns) ||
		bms_is_member(InvalidAttrNumber - FirstLowInvalidHeapAttributeNumber,
					  columns);
}

/*
 * Returns a pending tuple with all values of these columns in line; NULL if one of them is
 * gone, or is out of line and the tuple is DEAD.
 */
static HeapTuple
rf_fetch_values(RfScanState *state, const RfPending *pending, const Bitmapset *columns)
{
	TupleDesc	desc = RelationGetDescr(state->scan->heap);
	HeapTuple	tuple = pending->tuple;
	Datum	   *values = palloc(desc->natts * sizeof(Datum));
	bool	   *isnull = palloc(desc->natts * sizeof(bool));
	HeapTuple	result;

	heap_deform_tuple(tuple, desc, values, isnull);
	for (int i = 0; i < desc->natts; i++)
	{
		struct varlena *value = (struct varlena *) DatumGetPointer(values[i]);

		if (TupleDescAttr(desc, i)->attisdropped)
			isnull[i] = true;
		if (isnull[i] || TupleDescAttr(desc, i)->attlen != -1 ||
			!VARATT_IS_EXTERNAL(value) || !rf_needs_column(columns, i + 1))
			continue;
		value = pending->dead ? NULL : rf_core_fetch_value(value);
		if (value == NULL)
			return NULL;
		values[i] = PointerGetDatum(value);
	}
	result = heap_form_tuple(desc, values, isnull);
	result->t_self = tuple->t_self;
	result->t_tableOid = tuple->t_tableOid;
	return result;
}

/*
 * Looks for a tuple that a scan has met on its page, which is locked.  False if it is not
 * there any more.
 */
static bool
rf_find_tuple(Relation heap, Buffer buffer, const RfHeapTuple *tuple, HeapTuple found)
{
	Page		page = BufferGetPage(buffer);
	OffsetNumber offset = ItemPointerGetOffsetNumber(&tuple->tid);
	ItemId		item;

	if (offset > PageGetMaxOffsetNumber(page))
		return false;
	item = PageGetItemId(page, offset);
	if (!ItemIdIsNormal(item))
		return false;
	found->t_data = (HeapTupleHeader) PageGetItem(page, item);
	found->t_len = ItemIdGetLength(item);
	found->t_tableOid = RelationGetRelid(heap);
	found->t_self = tuple->tid;
	return HeapTupleHeaderGetRawXmin(found->t_data) == tuple->xmin;
}

/*
 * Return the present status of a tuple that the scan has met, HEAPTUPLE_DEAD if it is not on
 * its page any more.  Sets *seen to false if rf_was_seen() does not hold for it.  Takes and
 * releases a share lock on the page.
 */
static HTSV_Result
rf_look_again(RfScanState *state, const RfHeapTuple *tuple, bool *seen)
{
	Buffer		buffer = ReadBuffer(state->scan->heap,
									ItemPointerGetBlockNumber(&tuple->tid));
	HeapTupleData now;
	HTSV_Result result = HEAPTUPLE_DEAD;

	*seen = true;
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (rf_find_tuple(state->scan->heap, buffer, tuple, &now))
	{
		result = HeapTupleSatisfiesVacuum(&now, state->oldest_xmin, buffer);
		*seen = result != HEAPTUPLE_DEAD || rf_was_seen(now.t_data);
	}
	UnlockReleaseBuffer(buffer);
	return result;
}

/*
 * Return true if a tuple that the scan has met is alive, or may become alive.
 */
static bool
rf_is_alive(RfScanState *state, const RfHeapTuple *tuple)
{
	bool		seen;

	switch (rf_look_again(state, tuple, &seen))
	{
		case HEAPTUPLE_DEAD:
		case HEAPTUPLE_RECENTLY_DEAD:
			return false;
		case HEAPTUPLE_LIVE:
		case HEAPTUPLE_INSERT_IN_PROGRESS:
		case HEAPTUPLE_DELETE_IN_PROGRESS:
			return true;
	}
	return true;
}

/*
 * Gets the values of these columns of a tuple copied from its page in line.  False if one
 * of them is gone, and nobody on this server sees the tuple.  (If it is alive, the value is
 * left where it was, and whoever needs it will report the damage.)  No page is locked.
 */
static bool
rf_have_values(RfScanState *state, RfPending *pending, const Bitmapset *columns)
{
	HeapTuple	whole;

	if (!pending->may_be_gone || !HeapTupleHasExternal(pending->tuple))
		return true;
	whole = rf_fetch_values(state, pending, columns);
	if (whole == NULL)
		return rf_is_alive(state, &pending->result);
	pending->tuple = whole;
	return true;
}

/*
 * Return true if the tuple satisfies the index's predicate.
 */
static bool
rf_satisfies_predicate(RfScanState *state, HeapTuple tuple)
{
	bool		result;

	ExecStoreHeapTuple(tuple, state->slot, false);
	result = ExecQual(state->predicate, GetPerTupleExprContext(state->estate));
	ExecClearTuple(state->slot);
	ResetPerTupleExprContext(state->estate);
	return result;
}

/*
 * Computes the key of a tuple copied from its page, which has all values that are
 * needed.  No page is locked.
 */
static void
rf_compute_key(RfScanState *state, RfPending *pending)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	if (!state->by_expression)
	{
		(void) rf_get_columns(state, pending->tuple, values, isnull);
		rf_set_key(state, &pending->result, values, isnull);
		return;
	}
	ExecStoreHeapTuple(pending->tuple, state->slot, false);
	FormIndexDatum(state->scan->index_info, state->slot, state->estate,
				   values, isnull);
	rf_set_key(state, &pending->result, values, isnull);
	ExecClearTuple(state->slot);
	ResetPerTupleExprContext(state->estate);
}

/*
 * Computes the key of a tuple copied from its page.  False where the predicate
 * leaves the tuple out, or its values are gone; then missed_dead is set.
 */
static bool
rf_finish_tuple(RfScanState *state, RfPending *pending)
{
	if (state->predicate != NULL)
	{
		if (!rf_have_values(state, pending, state->of_predicate))
		{
			state->scan->missed_dead = true;
			return false;
		}
		if (!rf_satisfies_predicate(state, pending->tuple))
			return false;
	}
	if (!rf_have_values(state, pending, state->of_key))
	{
		state->scan->missed_dead = true;
		return false;
	}
	rf_compute_key(state, pending);
	return true;
}

/*
 * rf_core_attempt() callback: rf_finish_tuple() with the RfAttempt in arg.
 */
static void
rf_finish_attempt(void *arg)
{
	RfAttempt  *attempt = arg;

	attempt->finished = rf_finish_tuple(attempt->state, attempt->pending);
}

/*
 * The same for a tuple that is not alive, in a subtransaction.  Return false also if
 * expressions or predicate fail; then missed_visible or missed_dead is set, unless the
 * tuple's insert has failed, too.  A cancel is raised.
 */
static bool
rf_try_to_finish(RfScanState *state, RfPending *pending)
{
	RfAttempt	attempt = {state, pending, false};
	ErrorData  *error = rf_core_attempt(rf_finish_attempt, &attempt, false);
	bool		seen;

	if (error == NULL)
		return attempt.finished;
	if (error->sqlerrcode == ERRCODE_QUERY_CANCELED)
		ReThrowError(error);
	rf_renew_evaluation(state);
	if (rf_look_again(state, &pending->result, &seen) != HEAPTUPLE_DEAD)
		state->scan->missed_visible = true;
	else if (seen)
		state->scan->missed_dead = true;
	return false;
}

/*
 * Return true if two versions of a row differ in the bytes of a column that the key or the
 * predicate needs.
 */
static bool
rf_key_differs(RfScanState *state, HeapTuple older, HeapTuple newer)
{
	TupleDesc	desc = RelationGetDescr(state->scan->heap);
	int			column = -1;

	while ((column = bms_next_member(state->of_either, column)) >= 0)
	{
		AttrNumber	attno = column + FirstLowInvalidHeapAttributeNumber;
		Datum		values[2];
		bool		isnull[2];

		if (attno == InvalidAttrNumber)
			return true;		/* the whole row */
		if (attno < 0)
			continue;
		values[0] = heap_getattr(older, attno, desc, &isnull[0]);
		values[1] = heap_getattr(newer, attno, desc, &isnull[1]);
		if (isnull[0] != isnull[1] ||
			(!isnull[0] &&
			 !datumIsEqual(values[0], values[1],
						   TupleDescAttr(desc, attno - 1)->attbyval,
						   TupleDescAttr(desc, attno - 1)->attlen)))
			return true;
	}
	return false;
}

/*
 * Completes a pending tuple for the callback.  Return false if it is left out.  No page is
 * locked.
 */
static bool
rf_complete(RfScanState *state, RfPending *pending)
{
	if (pending->tuple == NULL)
		return true;
	if (pending->alive || !state->by_expression)
		return rf_finish_tuple(state, pending);
	return rf_try_to_finish(state, pending);
}

/*
 * Notes a HOT update if its new version, on the same page, has another key: pruning will remove
 * this one, which is not LIVE, without a dead line pointer.  The page is locked, and
 * HeapTupleSatisfiesVacuum() was called.
 */
static void
rf_note_chain(RfScanState *state, Page page, HeapTuple tuple)
{
	OffsetNumber next = ItemPointerGetOffsetNumberNoCheck(&tuple->t_data->t_ctid);
	HeapTupleData newer = *tuple;
	TransactionId update;
	ItemId		item;

	if (!HeapTupleHeaderIsHotUpdated(tuple->t_data) ||
		next < FirstOffsetNumber || next > PageGetMaxOffsetNumber(page))
		return;
	item = PageGetItemId(page, next);
	if (!ItemIdIsNormal(item))
		return;
	newer.t_data = (HeapTupleHeader) PageGetItem(page, item);
	newer.t_len = ItemIdGetLength(item);
	if (!rf_key_differs(state, tuple, &newer))
		return;
	update = HeapTupleHeaderGetUpdateXid(tuple->t_data);
	if (!TransactionIdIsValid(state->scan->chains_xid) ||
		TransactionIdPrecedes(state->scan->chains_xid, update))
		state->scan->chains_xid = update;
}

/*
 * Takes every tuple of one heap block.  The page is share-locked while its
 * line pointers are walked.  It is released before values are fetched,
 * expressions are evaluated, and the callback is called (its sort may write to
 * disk).
 */
static void
rf_scan_block(RfScanState *state, BlockNumber block)
{
	RfHeapScan *scan = state->scan;
	Buffer		buffer = ReadBufferExtended(scan->heap, MAIN_FORKNUM, block,
											RBM_NORMAL, state->strategy);
	Page		page;
	OffsetNumber maxoff;

	state->npending = 0;
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	maxoff = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);
	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		item = PageGetItemId(page, off);
		HeapTupleData tuple;
		HTSV_Result status;

		scan->dead_pointers += ItemIdIsDead(item);
		if (!ItemIdIsNormal(item))
			continue;
		tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
		tuple.t_len = ItemIdGetLength(item);
		tuple.t_tableOid = RelationGetRelid(scan->heap);
		ItemPointerSet(&tuple.t_self, block, off);
		status = HeapTupleSatisfiesVacuum(&tuple, state->oldest_xmin, buffer);
		if (status != HEAPTUPLE_LIVE)
			rf_note_chain(state, page, &tuple);
		rf_take_tuple(state, &tuple, status);
	}
	UnlockReleaseBuffer(buffer);
	for (int i = 0; i < state->npending; i++)
	{
		RfPending  *pending = &state->pending[i];
		MemoryContext old = MemoryContextSwitchTo(state->tuple_context);

		if (rf_complete(state, pending))
			scan->callback(scan->arg, &pending->result);
		MemoryContextSwitchTo(old);
		MemoryContextReset(state->tuple_context);
	}
}

/*
 * Return true if a tuple that a scan has met is still on its page.  Takes and releases a
 * share lock on the page.
 */
bool
rf_tuple_is_there(Relation heap, const RfHeapTuple *tuple)
{
	Buffer		buffer = ReadBuffer(heap, ItemPointerGetBlockNumber(&tuple->tid));
	HeapTupleData now;
	bool		result;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	result = rf_find_tuple(heap, buffer, tuple, &now);
	UnlockReleaseBuffer(buffer);
	return result;
}

/*
 * Calls scan->callback for the key of every row version in heap blocks
 * [start, end), DEAD ones included where that is possible; see the file's head.
 * The key is valid during the call.  The caller holds a lock on the heap that
 * keeps it from being truncated; expressions run as the current user.  With
 * expressions or a predicate it begins subtransactions, so parallel mode must be off.
 */
void
rf_scan_heap(RfHeapScan *scan)
{
	RfScanState *state = palloc0(sizeof(RfScanState));

	state->scan = scan;
	state->context = CurrentMemoryContext;
	state->oldest_xmin = GetOldestNonRemovableTransactionId(scan->heap);
	state->strategy = GetAccessStrategy(BAS_BULKREAD);
	state->page_context = AllocSetContextCreate(CurrentMemoryContext,
												"rangefilter heap page",
												ALLOCSET_DEFAULT_SIZES);
	state->tuple_context = AllocSetContextCreate(CurrentMemoryContext,
												 "rangefilter heap tuple",
												 ALLOCSET_SMALL_SIZES);
	scan->missed_dead = scan->missed_visible = scan->unordered = false;
	scan->chains_xid = InvalidTransactionId;
	scan->dead_pointers = 0;
	rf_prepare_keys(state);
	if (scan->report_progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL,
									 scan->end - scan->start);
	for (BlockNumber block = scan->start; block < scan->end; block++)
	{
		MemoryContext old = MemoryContextSwitchTo(state->page_context);

		CHECK_FOR_INTERRUPTS();
		if (scan->in_vacuum)
			RF_VACUUM_DELAY();
		rf_scan_block(state, block);
		MemoryContextSwitchTo(old);
		MemoryContextReset(state->page_context);
		if (scan->report_progress)
			pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE,
										 block + 1 - scan->start);
	}
	if (state->estate != NULL)
	{
		ExecDropSingleTupleTableSlot(state->slot);
		FreeExecutorState(state->estate);
		scan->index_info->ii_ExpressionsState = NIL;
	}
	bms_free(state->of_key);
	bms_free(state->of_predicate);
	bms_free(state->of_either);
	MemoryContextDelete(state->tuple_context);
	MemoryContextDelete(state->page_context);
	FreeAccessStrategy(state->strategy);
	pfree(state);
}
