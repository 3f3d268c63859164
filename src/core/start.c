/*-------------------------------------------------------------------------
 *
 * start.c
 *	  Replacing the snapshot and the plan of a statement that is about to be started.
 *
 * What is expected of core: a statement's own snapshot is the active one,
 * pushed once, and registered once by its QueryDesc.  A snapshot with other
 * references is not the statement's own.  Nor is one that another statement was
 * started with: statements that a rule made of one, and functions that are only
 * stable, use one after the other the snapshot that was pushed for all of them.
 * A copied snapshot is freed by one pfree(), and its arrays may be anywhere.
 * speculativeToken means nothing in an MVCC snapshot, and copies keep it; so it says
 * that a statement was started.  ExecutorStart is the first to look at what is in a
 * QueryDesc's plan; who made it knew only what kind of statement it is.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "core/core.h"
#include "tcop/pquery.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"

/* SnapshotData.speculativeToken of a snapshot that a statement was started with. */
#define RF_STATEMENT_STARTED	1

/*
 * Notes that a statement is started with its snapshot, which from now on is no later
 * statement's own.  To be called for each statement.
 */
void
rf_core_note_start(const QueryDesc *desc)
{
	Snapshot	snapshot = desc->snapshot;

	if (snapshot != InvalidSnapshot && snapshot->copied &&
		snapshot->snapshot_type == SNAPSHOT_MVCC)
		snapshot->speculativeToken = RF_STATEMENT_STARTED;
}

/*
 * Return true if the active snapshot was taken for this statement and nothing else.
 *
 * READ COMMITTED only.  It must be referenced by nobody but the snapshot stack
 * and this QueryDesc: that leaves out snapshots inherited from a calling query
 * and those a cursor or EXECUTE got from its portal.  No other statement may have been
 * started with it.  Nor may it be the one a portal keeps for its utility command.
 *
 * EXPLAIN ANALYZE runs each of the statements that rules made of one with a copy
 * of the same snapshot.  Its statements are none of a portal's, and are counted.
 */
bool
rf_core_owns_snapshot(const QueryDesc *desc)
{
	Snapshot	snapshot = desc->snapshot;

	if (IsolationUsesXactSnapshot() || IsInParallelMode() ||
		RF_CORE_DOUBTS(RF_CORE_SNAPSHOT) ||
		desc->crosscheck_snapshot != InvalidSnapshot ||
		!ActiveSnapshotSet() || GetActiveSnapshot() != snapshot ||
		snapshot->active_count != 1 || snapshot->regd_count != 1 ||
		snapshot->speculativeToken != 0)
		return false;
	if (ActivePortal != NULL)
	{
		if (ActivePortal->portalSnapshot == snapshot)
			return false;
		if (list_member_ptr(ActivePortal->stmts, desc->plannedstmt))
			return true;
	}
	return desc->instrument_options == 0;
}

/*
 * Is this statement run by EXECUTE, with the snapshot that was taken for that command and nothing
 * else?  It is the active one twice, for the command and for the portal that runs the statement, which
 * has no name that others know.  The command's own portal may hold it, too.  READ COMMITTED only.
 */
bool
rf_core_is_execute(const QueryDesc *desc)
{
	Snapshot	snapshot = desc->snapshot;
	Portal		portal = ActivePortal;

	return !IsolationUsesXactSnapshot() && !IsInParallelMode() &&
		!RF_CORE_DOUBTS(RF_CORE_SNAPSHOT) &&
		desc->crosscheck_snapshot == InvalidSnapshot &&
		ActiveSnapshotSet() && GetActiveSnapshot() == snapshot &&
		snapshot->active_count == 2 && snapshot->regd_count <= 2 &&
		snapshot->speculativeToken == 0 &&
		portal != NULL && !portal->visible && portal->strategy == PORTAL_ONE_SELECT &&
		list_member_ptr(portal->stmts, desc->plannedstmt);
}

/*
 * Copies the ids of transactions, for the rest of the transaction.
 */
static TransactionId *
copy_xids(const TransactionId *xids, uint32 n)
{
	TransactionId *copy;

	if (n == 0)
		return NULL;
	copy = MemoryContextAlloc(TopTransactionContext, n * sizeof(TransactionId));
	memcpy(copy, xids, n * sizeof(TransactionId));
	return copy;
}

/*
 * Has the statement's own snapshot, which stays where it is, see what a new one sees.
 *
 * Another one cannot take its place in the stack of active snapshots: nothing tells in
 * which subtransaction it was pushed, and an error there has to unwind the stack to that
 * point.  It is not registered meanwhile, because registered snapshots are in the order
 * of their xmin.
 */
void
rf_core_refresh_snapshot(QueryDesc *desc)
{
	Snapshot	own = desc->snapshot;
	Snapshot	fresh = GetTransactionSnapshot();
	TransactionId *xip = copy_xids(fresh->xip, fresh->xcnt);
	TransactionId *subxip = copy_xids(fresh->subxip, fresh->subxcnt);

	Assert(own->active_count == 1);
	UnregisterSnapshot(own);
	*own = *fresh;
	own->xip = xip;
	own->subxip = subxip;
	own->copied = true;
	own->active_count = 1;
	own->regd_count = 0;
	own->snapXactCompletionCount = 0;
	(void) RegisterSnapshot(own);
}

/*
 * Has a statement about to be started run another plan of the same query.
 */
void
rf_core_replace_plan(QueryDesc *desc, PlannedStmt *stmt)
{
	const PlannedStmt *old = desc->plannedstmt;

	if (stmt->commandType != desc->operation ||
		stmt->hasReturning != old->hasReturning ||
		stmt->hasModifyingCTE != old->hasModifyingCTE ||
		desc->estate != NULL || desc->planstate != NULL)
		elog(ERROR, "cannot replace the plan of a statement");
	stmt->queryId = old->queryId;
	desc->plannedstmt = stmt;
}
