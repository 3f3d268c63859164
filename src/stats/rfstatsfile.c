/*-------------------------------------------------------------------------
 *
 * rfstatsfile.c
 *	  Counters in shared memory, and the file that keeps them while the server
 *	  is down.
 *
 * There is shared memory for them if the server preloaded the library
 * (shared_preload_libraries): a hash table of fixed size for all databases.
 * When it is full, the indexes that were not asked for the longest time make
 * room.
 *
 * When the server is shut down properly the table is written to a file in
 * pg_stat, which is read and removed at the next start.  So after a crash the
 * counters begin at zero, as core's statistics do, and never continue from
 * numbers of long ago.  A damaged file is not used.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "common/controldata_utils.h"
#include "compat.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_crc32c.h"
#include "stats/stats.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/hsearch.h"

#define RF_STATS_FILE	PGSTAT_STAT_PERMANENT_DIRECTORY "/rangefilter.stat"
#define RF_STATS_MAGIC	0x52465302

typedef struct RfSharedKey
{
	Oid			database;
	Oid			index;
} RfSharedKey;

/* An entry of the table, and of the file. */
typedef struct RfSharedCounts
{
	RfSharedKey key;			/* hash key */
	RfCounts	counts;
	TimestampTz changed;
} RfSharedCounts;

/* The header of the file.  The entries follow. */
typedef struct RfStatsHeader
{
	uint32		magic;
	uint32		server;			/* PG_VERSION_NUM of who wrote it */
	uint32		nentries;
	pg_crc32c	crc;			/* of the entries */
} RfStatsHeader;

static HTAB *shared_counts = NULL;
static LWLock *shared_lock = NULL;

static shmem_request_hook_type previous_request = NULL;
static shmem_startup_hook_type previous_startup = NULL;

/*
 * Is there shared memory for counters?
 */
bool
rf_have_shared_stats(void)
{
	return shared_counts != NULL;
}

/*
 * Locks the table, to change it.  Waits for the lock if wait is set; otherwise
 * false if it would have to.
 */
bool
rf_lock_shared_stats(bool wait)
{
	if (wait)
		LWLockAcquire(shared_lock, LW_EXCLUSIVE);
	return wait || LWLockConditionalAcquire(shared_lock, LW_EXCLUSIVE);
}

/*
 * Releases the lock that rf_lock_shared_stats() has taken.
 */
void
rf_unlock_shared_stats(void)
{
	LWLockRelease(shared_lock);
}

/*
 * The key of an index of this database in the shared hash table.
 */
static RfSharedKey
key_of(Oid index)
{
	RfSharedKey key = {MyDatabaseId, index};

	return key;
}

/*
 * Removes entries that last changed before a time, "most" at most; returns
 * how many.
 */
static int
remove_older(TimestampTz limit, int most)
{
	HASH_SEQ_STATUS status;
	RfSharedCounts *entry;
	int			n = 0;

	hash_seq_init(&status, shared_counts);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->changed > limit)
			continue;
		hash_search(shared_counts, &entry->key, HASH_REMOVE, NULL);
		if (++n == most)
		{
			hash_seq_term(&status);
			break;
		}
	}
	return n;
}

/*
 * Removes one entry in sixteen, roughly those that have not changed for the
 * longest time.  Takes the time since the oldest change, and removes entries
 * of its oldest eighth, then fourth, then half, until there are enough.  Takes
 * no memory, and four passes.
 */
static void
make_room(TimestampTz now)
{
	const int	enough = RF_STATS_MAX / 16;
	TimestampTz oldest = now;
	HASH_SEQ_STATUS status;
	RfSharedCounts *entry;
	int			n = 0;

	hash_seq_init(&status, shared_counts);
	while ((entry = hash_seq_search(&status)) != NULL)
		oldest = Min(oldest, entry->changed);
	for (int part = 8; part >= 1 && n < enough; part /= 2)
		n += remove_older(oldest + (now - oldest) / part, enough - n);
}

/*
 * Adds to the counters of an index of this database.  The table is locked by
 * rf_lock_shared_stats().
 */
void
rf_add_shared_counts(Oid index, const RfCounts *counts, TimestampTz now)
{
	RfSharedKey key = key_of(index);
	RfSharedCounts *entry = hash_search(shared_counts, &key, HASH_FIND, NULL);

	if (entry == NULL)
	{
		if (hash_get_num_entries(shared_counts) >= RF_STATS_MAX)
			make_room(now);
		entry = hash_search(shared_counts, &key, HASH_ENTER_NULL, NULL);
		if (entry == NULL)
			return;
		memset(&entry->counts, 0, sizeof(RfCounts));
	}
	rf_counts_add(&entry->counts, counts);
	entry->changed = now;
}

/*
 * The counters of an index of this database; zero where there are none.
 */
void
rf_read_shared_counts(Oid index, RfCounts *counts)
{
	RfSharedKey key = key_of(index);
	RfSharedCounts *entry;

	memset(counts, 0, sizeof(RfCounts));
	LWLockAcquire(shared_lock, LW_SHARED);
	entry = hash_search(shared_counts, &key, HASH_FIND, NULL);
	if (entry != NULL)
		*counts = entry->counts;
	LWLockRelease(shared_lock);
}

/*
 * Removes the counters of an index, or of all indexes, of this database.
 */
void
rf_reset_shared_counts(Oid index)
{
	HASH_SEQ_STATUS status;
	RfSharedCounts *entry;

	LWLockAcquire(shared_lock, LW_EXCLUSIVE);
	hash_seq_init(&status, shared_counts);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->key.database == MyDatabaseId &&
			(!OidIsValid(index) || entry->key.index == index))
			hash_search(shared_counts, &entry->key, HASH_REMOVE, NULL);
	}
	LWLockRelease(shared_lock);
}

/*
 * Reads the file's header and entries.  False where the file is not one of
 * ours, of this server version, or is damaged.
 */
static bool
read_entries(FILE *file, RfSharedCounts **entries, uint32 *nentries)
{
	RfStatsHeader header;
	pg_crc32c	crc;
	Size		size;

	if (fread(&header, sizeof(header), 1, file) != 1 ||
		header.magic != RF_STATS_MAGIC || header.server != PG_VERSION_NUM ||
		header.nentries > RF_STATS_MAX)
		return false;
	size = header.nentries * sizeof(RfSharedCounts);
	*entries = palloc(size + 1);
	*nentries = header.nentries;
	if (fread(*entries, 1, size + 1, file) != size)
		return false;
	INIT_CRC32C(crc);
	COMP_CRC32C(crc, *entries, size);
	FIN_CRC32C(crc);
	return EQ_CRC32C(crc, header.crc);
}

/*
 * Fills the table from the file, if there is one, and removes the file.
 */
static void
read_file(void)
{
	FILE	   *file = AllocateFile(RF_STATS_FILE, PG_BINARY_R);
	RfSharedCounts *entries = NULL;
	uint32		n = 0;

	if (file == NULL)
	{
		if (errno != ENOENT)
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not read file \"%s\": %m", RF_STATS_FILE)));
		return;
	}
	if (!read_entries(file, &entries, &n))
	{
		ereport(LOG,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("ignoring invalid data in file \"%s\"", RF_STATS_FILE),
				 errdetail("The counters of rangefilter_activity begin at zero.")));
		n = 0;
	}
	for (uint32 i = 0; i < n; i++)
	{
		RfSharedCounts *entry = hash_search(shared_counts, &entries[i].key,
											HASH_ENTER_NULL, NULL);

		if (entry != NULL)
			*entry = entries[i];
	}
	if (entries != NULL)
		pfree(entries);
	FreeFile(file);
	unlink(RF_STATS_FILE);
}

/*
 * Writes all entries behind the header, and then the header.
 */
static bool
write_entries(FILE *file)
{
	RfStatsHeader header = {.magic = RF_STATS_MAGIC,.server = PG_VERSION_NUM};
	HASH_SEQ_STATUS status;
	RfSharedCounts *entry;

	if (fseek(file, sizeof(header), SEEK_SET) != 0)
		return false;
	INIT_CRC32C(header.crc);
	hash_seq_init(&status, shared_counts);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (fwrite(entry, sizeof(RfSharedCounts), 1, file) != 1)
		{
			hash_seq_term(&status);
			return false;
		}
		COMP_CRC32C(header.crc, entry, sizeof(RfSharedCounts));
		header.nentries++;
	}
	FIN_CRC32C(header.crc);
	return fseek(file, 0, SEEK_SET) == 0 &&
		fwrite(&header, sizeof(header), 1, file) == 1;
}

/*
 * Was the server shut down properly, so that it need not recover at the next
 * start?  The postmaster's exit code does not tell: an immediate shutdown
 * counts as success, and may have interrupted a change of the table.
 */
static bool
shut_down_properly(void)
{
	bool		crc_ok;
	ControlFileData *control = get_controlfile(DataDir, &crc_ok);

	return crc_ok && (control->state == DB_SHUTDOWNED ||
					  control->state == DB_SHUTDOWNED_IN_RECOVERY);
}

/*
 * on_shmem_exit callback of the postmaster.
 */
static void
write_file(int code, Datum arg)
{
	FILE	   *file;
	bool		written;

	if (code != 0 || shared_counts == NULL || !shut_down_properly())
		return;
	file = AllocateFile(RF_STATS_FILE ".tmp", PG_BINARY_W);
	written = file != NULL && write_entries(file);
	if (file != NULL && FreeFile(file) != 0)
		written = false;
	if (!written)
	{
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m",
						RF_STATS_FILE ".tmp")));
		unlink(RF_STATS_FILE ".tmp");
		return;
	}
	(void) durable_rename(RF_STATS_FILE ".tmp", RF_STATS_FILE, LOG);
}

/*
 * shmem_request_hook
 */
static void
request_memory(void)
{
	if (previous_request)
		previous_request();
	RequestAddinShmemSpace(hash_estimate_size(RF_STATS_MAX,
											  sizeof(RfSharedCounts)));
	RequestNamedLWLockTranche("rangefilter", 1);
}

/*
 * shmem_startup_hook
 */
static void
start_memory(void)
{
	HASHCTL		control;

	if (previous_startup)
		previous_startup();
	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(RfSharedKey);
	control.entrysize = sizeof(RfSharedCounts);
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared_lock = &GetNamedLWLockTranche("rangefilter")->lock;
	shared_counts = RF_SHARED_TABLE("rangefilter counters", RF_STATS_MAX,
									&control, HASH_ELEM | HASH_BLOBS);
	LWLockRelease(AddinShmemInitLock);

	/* This is the postmaster, and no other process exists yet. */
	if (!IsUnderPostmaster)
	{
		on_shmem_exit(write_file, (Datum) 0);
		read_file();
	}
}

/*
 * Called once, when the library is loaded.
 */
void
rf_init_shared_stats(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	previous_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = start_memory;
}
