/*-------------------------------------------------------------------------
 *
 * process.c
 *	  Giving way as autovacuum does; VACUUM's transactions.
 *
 * What is expected of core: a process with PROC_IS_AUTOVACUUM gets SIGINT from whoever
 * has waited for one of its locks for deadlock_timeout, and SIGTERM from commands that
 * need its database for themselves (DROP DATABASE, CREATE DATABASE ... TEMPLATE).
 * CREATE INDEX CONCURRENTLY does not wait for its snapshots.
 *
 * A transaction in which a lazy VACUUM processes a table has PROC_IN_VACUUM until it
 * ends.  Other processes ignore its snapshots and its id when they compute which row
 * versions may be removed or frozen.  In the transaction with which VACUUM ends it computes
 * pg_database.datfrozenxid, under a lock for which other VACUUMs wait.  That is
 * done, and no matter of the transaction, when it is about to commit.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "core/core.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/resowner.h"

/*
 * Has this background process treated so for the rest of its life.  It is connected to
 * a database.
 */
void
rf_core_give_way(void)
{
	LWLockAcquire(ProcArrayLock, LW_EXCLUSIVE);
	MyProc->statusFlags |= PROC_IS_AUTOVACUUM;
	ProcGlobal->statusFlags[MyProc->pgxactoff] = MyProc->statusFlags;
	LWLockRelease(ProcArrayLock);
}

/*
 * Return true if the current transaction is that of a lazy VACUUM of a table.
 */
bool
rf_core_in_vacuum(void)
{
	return (MyProc->statusFlags & PROC_IN_VACUUM) != 0;
}

/*
 * Lets other VACUUMs go on that wait for this one to end.  To be called before a transaction
 * commits that may be the one with which VACUUM ends.
 */
void
rf_core_finish_vacuum(void)
{
	ResourceOwner owner = CurrentResourceOwner;
	LOCKTAG		tag;

	SET_LOCKTAG_DATABASE_FROZEN_IDS(tag, MyDatabaseId);
	if (!RF_HOLDS_LOCK(&tag, ExclusiveLock))
		return;
	CurrentResourceOwner = TopTransactionResourceOwner;
	(void) LockRelease(&tag, ExclusiveLock, false);
	CurrentResourceOwner = owner;
}
