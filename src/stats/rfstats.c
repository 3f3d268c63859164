/*-------------------------------------------------------------------------
 *
 * rfstats.c
 *	  This backend's counters of what indexes are asked.
 *
 * Counting must cost next to nothing, since planning may ask thousands of partitions.
 * So counting touches nothing shared.  An entry of the
 * table here stays until the transaction ends, so that callers can keep a
 * pointer to it.  The planner counts in its entries of partitions (RfLeaf);
 * these counts are collected before they are passed on.
 *
 * When there are many entries, all go at the end of a transaction.  With shared memory they
 * were passed on; without it, counting begins anew.
 *
 * A crash of a backend loses the counters of all backends.  Like core's
 * statistics, counters tell what usually happens and are not exact.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "rangefilter/page/page.h"
#include "stats/session.h"
#include "stats/stats.h"
#include "storage/ipc.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

/* An entry takes some 80 bytes, its place in the table a few more. */
#define RF_COUNTS_SIZE		160

/* The least limit of entries. */
#define RF_COUNTS_FEW		64

/* Milliseconds between two flushes. */
#define RF_FLUSH_INTERVAL	1000

typedef struct RfCountsEntry
{
	Oid			index;			/* hash key */
	RfCounts	counts;
} RfCountsEntry;

bool		rf_stats_pending = false;
void		(*rf_stats_collect) (void) = NULL;

static double sample_rate = 0.05;
static HTAB *local_counts = NULL;
static MemoryContext counts_context = NULL;

/* Moves when entries go. */
static uint64 entries_gone = 1;

static TimestampTz last_flush = 0;

static void flush_counts(bool force);

/*
 * before_shmem_exit callback.
 */
static void
flush_at_exit(int code, Datum arg)
{
	flush_counts(true);
}

/*
 * Has the counts passed on when the backend exits.
 */
static void
register_exit(void)
{
	static bool registered = false;

	if (!registered)
		before_shmem_exit(flush_at_exit, (Datum) 0);
	registered = true;
}

/*
 * How many indexes the backend may have counters of from one transaction to
 * the next.  They take about a quarter of rangefilter.cache_size.
 */
static int
max_entries(void)
{
	Size		n = rf_session_limit() / 4 / RF_COUNTS_SIZE;

	return Max(RF_COUNTS_FEW, Min(n, RF_STATS_MAX));
}

/*
 * Makes the backend's table.
 */
static void
make_local_counts(void)
{
	HASHCTL		control;

	if (counts_context == NULL)
		counts_context = AllocSetContextCreate(rf_session_context(),
											   "rangefilter counters",
											   ALLOCSET_SMALL_SIZES);
	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(Oid);
	control.entrysize = sizeof(RfCountsEntry);
	control.hcxt = counts_context;
	local_counts = hash_create("rangefilter counters", RF_COUNTS_FEW, &control,
							   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	register_exit();
}

/*
 * The counters of an index.  They stay at their place in this transaction.  If
 * there are too many, returns counters that nobody reads.
 */
RfCounts *
rf_stats_counts(Oid index)
{
	static RfCounts discarded;
	RfCountsEntry *entry;
	bool		found;

	if (local_counts == NULL)
		make_local_counts();
	entry = hash_search(local_counts, &index, HASH_FIND, NULL);
	if (entry != NULL)
		return &entry->counts;
	if (hash_get_num_entries(local_counts) >= RF_STATS_MAX)
		return &discarded;
	entry = hash_search(local_counts, &index, HASH_ENTER, &found);
	memset(&entry->counts, 0, sizeof(RfCounts));
	return &entry->counts;
}

/*
 * The same for an open index, with a pointer in its relcache entry.
 */
RfCounts *
rf_index_counts(Relation index)
{
	RfCache    *cache = rf_cache(index);

	if (cache->counts == NULL || cache->counts_made != entries_gone)
	{
		cache->counts = rf_stats_counts(RelationGetRelid(index));
		cache->counts_made = entries_gone;
	}
	return cache->counts;
}

/*
 * Returns true, at random, if this planning or gate is to be watched, with the
 * probability that the setting says.
 */
bool
rf_stats_sample(void)
{
	return sample_rate > 0 &&
		pg_prng_double(&pg_global_prng_state) < sample_rate;
}

/*
 * Returns how many queries a watched one stands for.
 */
double
rf_stats_sampled(void)
{
	return sample_rate > 0 ? 1 / sample_rate : 0;
}

/*
 * Adds this backend's counters to those in shared memory, which it locks.
 */
static void
flush_to_shared(TimestampTz now)
{
	const RfCounts zero = {0};
	HASH_SEQ_STATUS status;
	RfCountsEntry *entry;

	hash_seq_init(&status, local_counts);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (memcmp(&entry->counts, &zero, sizeof(RfCounts)) == 0)
			continue;
		rf_add_shared_counts(entry->index, &entry->counts, now);
		entry->counts = zero;
	}
	rf_unlock_shared_stats();
}

/*
 * Passes counters on: at once if force is set, otherwise only if the last time
 * is long enough ago and the lock is free.
 */
static void
flush_counts(bool force)
{
	TimestampTz now;

	if (!rf_stats_pending)
		return;
	now = GetCurrentTimestamp();
	if (!force &&
		!TimestampDifferenceExceeds(last_flush, now, RF_FLUSH_INTERVAL))
		return;
	if (rf_stats_collect != NULL)
		rf_stats_collect();
	if (local_counts != NULL && rf_have_shared_stats())
	{
		if (!rf_lock_shared_stats(force))
			return;
		flush_to_shared(now);
	}
	rf_stats_pending = false;
	last_flush = now;
}

/*
 * Makes room for counters of other indexes.  Called at the end of a transaction, when only
 * relation cache entries have pointers to counters.
 */
static void
make_room(void)
{
	if (local_counts == NULL || hash_get_num_entries(local_counts) < max_entries() / 2)
		return;
	entries_gone++;
	rf_stats_pending = true;
	flush_counts(true);
	hash_destroy(local_counts);
	local_counts = NULL;
}

/*
 * Counters kept, and bytes they take.
 */
void
rf_stats_usage(int64 *entries, int64 *bytes)
{
	*entries = local_counts != NULL ? hash_get_num_entries(local_counts) : 0;
	*bytes = counts_context != NULL ?
		MemoryContextMemAllocated(counts_context, true) : 0;
}

/*
 * Transaction callback.  Passes counters on before the commit, where an error
 * does no harm.  The next transaction passes on the counters of one that
 * failed.
 *
 * The first time is a second after the first count, so that a connection's
 * first query need not wait while a thousand counters are passed on.
 */
static void
transaction_ends(XactEvent event, void *arg)
{
	if (event != XACT_EVENT_PRE_COMMIT && event != XACT_EVENT_PRE_PREPARE &&
		event != XACT_EVENT_PARALLEL_PRE_COMMIT)
		return;
	if (rf_stats_pending && last_flush == 0 && !IsParallelWorker())
	{
		register_exit();
		last_flush = GetCurrentTimestamp();
	}
	else
		flush_counts(false);
	make_room();
}

/*
 * The counters of an index by all sessions, or by this one if there is no
 * shared memory.
 */
void
rf_stats_read(Oid index, RfCounts *counts)
{
	flush_counts(true);
	if (rf_have_shared_stats())
		rf_read_shared_counts(index, counts);
	else
		*counts = *rf_stats_counts(index);
}

/*
 * Sets the counters of an index, or (InvalidOid) of all indexes of this
 * database, to zero.
 */
void
rf_stats_reset(Oid index)
{
	HASH_SEQ_STATUS status;
	RfCountsEntry *entry;

	flush_counts(true);
	if (rf_have_shared_stats())
	{
		rf_reset_shared_counts(index);
		return;
	}
	if (local_counts == NULL)
		return;
	hash_seq_init(&status, local_counts);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (!OidIsValid(index) || entry->index == index)
			memset(&entry->counts, 0, sizeof(RfCounts));
	}
}

/*
 * Called once, when the library is loaded.
 */
void
rf_init_stats(void)
{
	DefineCustomRealVariable("rangefilter.activity_sample_rate",
							 "Fraction of queries sampled for false-positive statistics.",
							 "What is watched counts in the view rangefilter_activity; 0 watches none.",
							 &sample_rate,
							 0.05,
							 0.0,
							 1.0,
							 PGC_SUSET,
							 0,
							 NULL,
							 NULL,
							 NULL);
	RegisterXactCallback(transaction_ends, NULL);
	rf_init_shared_stats();
}
