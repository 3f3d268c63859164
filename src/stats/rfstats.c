/*-------------------------------------------------------------------------
 *
 * rfstats.c
 *	  This backend's counters of what indexes are asked.
 *
 * Counting must cost next to nothing, since a thousand partitions are asked in
 * half a millisecond.  So nothing shared is touched then.  An entry of the
 * table here never goes away, so that those who ask can keep a pointer to it;
 * the planner counts where it keeps what it knows of a partition anyway, and
 * has these numbers collected before they are passed on.
 *
 * Counters are lost where a backend crashes, and so are those of all when one
 * does: like core's statistics they tell what usually happens, not more.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "rangefilter/page/page.h"
#include "stats/stats.h"
#include "storage/ipc.h"
#include "utils/guc.h"
#include "utils/hsearch.h"

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
 * Makes the backend's table.
 */
static void
make_local_counts(void)
{
	HASHCTL		control;

	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(Oid);
	control.entrysize = sizeof(RfCountsEntry);
	local_counts = hash_create("rangefilter counters", 256, &control,
							   HASH_ELEM | HASH_BLOBS);
	register_exit();
}

/*
 * The counters of an index; they stay where they are.  If there are too many
 * already, counters that nobody reads.
 */
RfCounts *
rf_stats_counts(Oid index)
{
	static RfCounts nobodys;
	RfCountsEntry *entry;
	bool		found;

	if (local_counts == NULL)
		make_local_counts();
	entry = hash_search(local_counts, &index, HASH_FIND, NULL);
	if (entry != NULL)
		return &entry->counts;
	if (hash_get_num_entries(local_counts) >= RF_STATS_MAX)
		return &nobodys;
	entry = hash_search(local_counts, &index, HASH_ENTER, &found);
	memset(&entry->counts, 0, sizeof(RfCounts));
	return &entry->counts;
}

/*
 * The same of an open index, remembered in its relcache entry.
 */
RfCounts *
rf_index_counts(Relation index)
{
	RfCache    *cache = rf_cache(index);

	if (cache->counts == NULL)
		cache->counts = rf_stats_counts(RelationGetRelid(index));
	return cache->counts;
}

/*
 * Is what follows to be watched?  True at random, as often as the setting
 * says.
 */
bool
rf_stats_sample(void)
{
	return sample_rate > 0 &&
		pg_prng_double(&pg_global_prng_state) < sample_rate;
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
 * Passes on what has been counted: at once where forced to, else if the last
 * time is long enough ago and nobody is in the way.
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
 * Transaction callback.  Before the end, where an error does no harm; what is
 * counted in a transaction that fails is passed on by the next one.
 *
 * The first time is a second after the first count: a connection's first query
 * need not wait for what may be a thousand counters.
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
}

/*
 * The counters of an index as all sessions know them, or this one where there
 * is no shared memory.
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
							 "Share of queries whose scans are watched, to count those that find nothing.",
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
