/*-------------------------------------------------------------------------
 *
 * rfcounters.c
 *	  Counters of changes, in shared memory where the server loaded the library.
 *
 * Every index has a counter, which it may share with others.  Moving its version
 * (RfSummaryVersion) advances the counter.  So what was read from the index is still
 * true if the counter has the value that it had before the reading.  To check this
 * takes no lock and no look at the index.
 *
 * A counter is advanced before the change, while the metapage is locked exclusively,
 * or, when a key is appended, the delta's last page.  A backend that reads the counter
 * after that, and then the version, which needs the locks, too, sees the change.  For
 * all others the counter has moved.  A transaction's changes come before its commit,
 * hence before any snapshot that sees its rows.
 *
 * WAL replay advances nothing.  So in recovery there are no counters; what was
 * read then is not compared with them later.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "rangefilter/page/shared.h"
#include "utils/rel.h"

/*
 * The counter of an index of this database.  Indexes that were created one after the other have
 * counters side by side, so a thousand of them are in a few pages of memory.  That writers of several indexes
 * change the same line of the processor's cache costs little: all change "moves", too.
 */
static inline pg_atomic_uint64 *
rf_change_counter(Oid index)
{
	return &rf_shared->counters[(index + murmurhash32(MyDatabaseId)) % RF_CHANGE_COUNTERS];
}

/*
 * Tells that the version of an index moves.  The caller has locked exclusively the
 * metapage, or the last page of the delta, or the index itself, which it drops.
 */
void
rf_advance_change_counter(Oid index)
{
	if (rf_shared == NULL)
		return;
	(void) pg_atomic_fetch_add_u64(rf_change_counter(index), 1);

	/* After it: see rf_read_moves(). */
	(void) pg_atomic_fetch_add_u64(&rf_shared->moves, 1);
}

/*
 * The version of the index moves; the caller has locked its metapage, meta,
 * exclusively, and logs it.
 *
 * The new one is drawn at random.  A count would not do: a transaction may
 * have the file copied (ALTER INDEX ...  SET TABLESPACE), change the copy and
 * be rolled back.  Another change of the original would have the same number.
 */
void
rf_move_version(Relation index, RfMetaData *meta)
{
	meta->changes = pg_prng_uint64(&pg_global_prng_state);
	rf_advance_change_counter(RelationGetRelid(index));
}

/*
 * The change counter of an index: a number that moves with its version, and maybe at other times.
 * What is read from the index after the number stays true as long as the number is the same and no
 * invalidation tells that the index has another file.  0 if there are no such numbers: the server
 * has not preloaded the library, or is in recovery.
 */
uint64
rf_read_change_counter(Oid index)
{
	uint64		counter;

	if (rf_shared == NULL || RecoveryInProgress())
		return 0;
	counter = pg_atomic_read_u64(rf_change_counter(index));

	/* What the caller reads now it must not have read already. */
	pg_read_barrier();
	return counter;
}

/*
 * A number that moves after any change counter has moved.  So if it is the same as before the
 * counters were read, all of them are what they were.  0 if there are none.
 */
uint64
rf_read_moves(void)
{
	uint64		moves;

	if (rf_shared == NULL || RecoveryInProgress())
		return 0;
	moves = pg_atomic_read_u64(&rf_shared->moves);
	pg_read_barrier();
	return moves;
}
