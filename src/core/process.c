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
 * versions may be removed or frozen.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "core/core.h"
#include "storage/lwlock.h"
#include "storage/proc.h"

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
