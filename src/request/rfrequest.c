/*-------------------------------------------------------------------------
 *
 * rfrequest.c
 *	  Asking the background worker of a database to summarize an index.
 *
 * A hash table in shared memory has the requests of all databases, an array the
 * databases that have a worker.  One lock is for both.  The worker takes a request
 * out before it looks at the index; so what is asked for after that look is a
 * request of its own, and none is lost.
 *
 * The worker ends, under the lock, when there are no more requests; who adds one
 * finds out under the same lock that there is no worker, and starts one.  If that is
 * not possible (max_worker_processes), or a worker was ended while there were
 * requests, the flag "unserved" is set, and any session of the database tries
 * again at the end of a transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "common/hashfn.h"
#include "compat.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "postmaster/bgworker.h"
#include "request/request.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/guc.h"
#include "utils/hsearch.h"

/* Not "rangefilter", which is the lock of counters: see rfsharedstats.c. */
#define LOCK_NAME	"rangefilter_requests"

/* Requests there can be at a time; those for which there is no room are dropped. */
#define REQUESTS	8192

/* Databases that can have a worker at a time. */
#define WORKERS		64

/* Indexes of all databases whose tables' reads in vain are counted at a time. */
#define SUSPECTS	1024

/*
 * After so many sequential scans in vain an index is asked for.  To summarize it costs a few such
 * scans, whether that helps or not.
 */
#define VAIN_READS	50

/* Milliseconds that a worker may take to begin before another one is started, ... */
#define START_TIMEOUT	60000

/* ... that an index rests which failed, or was asked for because of reads in vain, ... */
#define REST	(10 * 60 * 1000)

/* ... after which a request that nobody takes is dropped where there is no room, ... */
#define FORGET	(60 * 60 * 1000)

/* ... and between two attempts of a session to start a worker that is missing. */
#define RETRY	1000

typedef struct EntryKey
{
	Oid			database;
	Oid			index;
} EntryKey;

typedef struct Entry
{
	EntryKey	key;			/* hash key */
	TimestampTz at;				/* when it is to be taken, or has rested */
	int			tries;
	bool		vain;			/* the table is read in vain */
	bool		resting;		/* no request: later ones are ignored */
} Entry;

/* An index whose table was read in vain. */
typedef struct Suspect
{
	EntryKey	key;
	TimestampTz since;
	double		reads;
	bool		asked;			/* it was asked for, and rests */
} Suspect;

typedef struct Worker
{
	Oid			database;		/* InvalidOid: this place is free */
	int			pid;			/* 0: it has not begun yet */
	TimestampTz started;
} Worker;

typedef struct Shared
{
	LWLock	   *lock;
	pg_atomic_uint32 unserved;	/* requests there may be without a worker */
	Worker		workers[WORKERS];
	Suspect		suspects[SUSPECTS]; /* by a hash of the key */
} Shared;

int			rf_autosummarize = RF_AUTOSUMMARIZE_ON;
int			rf_autosummarize_delay = 5000;

/* Also what a bool can be. */
static const struct config_enum_entry autosummarize_values[] = {
	{"off", RF_AUTOSUMMARIZE_OFF, false},
	{"on", RF_AUTOSUMMARIZE_ON, false},
	{"worker", RF_AUTOSUMMARIZE_WORKER, false},
	{"false", RF_AUTOSUMMARIZE_OFF, true},
	{"true", RF_AUTOSUMMARIZE_ON, true},
	{"no", RF_AUTOSUMMARIZE_OFF, true},
	{"yes", RF_AUTOSUMMARIZE_ON, true},
	{"0", RF_AUTOSUMMARIZE_OFF, true},
	{"1", RF_AUTOSUMMARIZE_ON, true},
	{NULL, 0, false}
};

static Shared *shared = NULL;
static HTAB *entries = NULL;

/* What this process, a worker, has taken last and not put back. */
static RfRequest taken = {InvalidOid};

static shmem_request_hook_type previous_request = NULL;
static shmem_startup_hook_type previous_startup = NULL;

/*
 * The place of the database's worker, or NULL.  The lock is held.
 */
static Worker *
find_worker(Oid database)
{
	for (int i = 0; i < WORKERS; i++)
	{
		if (shared->workers[i].database == database)
			return &shared->workers[i];
	}
	return NULL;
}

/*
 * Return true if the database has a worker, or one that will soon begin.  The lock is held.
 */
static bool
has_worker(Oid database, TimestampTz now)
{
	const Worker *worker = find_worker(database);

	return worker != NULL &&
		(worker->pid != 0 || now < TimestampTzPlusMilliseconds(worker->started, START_TIMEOUT));
}

/*
 * A place for a worker of this database, which must have none; NULL where all are
 * taken.  The lock is held exclusively.
 */
static Worker *
new_worker(TimestampTz now)
{
	Worker	   *worker = find_worker(MyDatabaseId);

	for (int i = 0; i < WORKERS && worker == NULL; i++)
	{
		Oid			database = shared->workers[i].database;

		if (!OidIsValid(database) || !has_worker(database, now))
			worker = &shared->workers[i];
	}
	if (worker == NULL)
		return NULL;
	worker->database = MyDatabaseId;
	worker->pid = 0;
	worker->started = now;
	return worker;
}

/*
 * Removes entries whose time was long ago: of databases that are gone, or where
 * no worker could be started.  The lock is held exclusively.
 */
static void
forget_old(TimestampTz now)
{
	HASH_SEQ_STATUS status;
	Entry	   *entry;

	hash_seq_init(&status, entries);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (now > TimestampTzPlusMilliseconds(entry->at, entry->resting ? 0 : FORGET))
			hash_search(entries, &entry->key, HASH_REMOVE, NULL);
	}
}

/*
 * Makes of an entry a new request, to be taken after the delay.
 */
static void
begin_request(Entry *entry, TimestampTz now)
{
	entry->at = TimestampTzPlusMilliseconds(now, rf_autosummarize_delay);
	entry->tries = 0;
	entry->vain = entry->resting = false;
}

/*
 * The entry of an index of this database; if there is none, a new request, to be taken after
 * the delay.  NULL where there is no room.  The lock is held exclusively.
 */
static Entry *
need_entry(Oid index, TimestampTz now)
{
	EntryKey	key = {MyDatabaseId, index};
	Entry	   *entry = hash_search(entries, &key, HASH_FIND, NULL);

	if (entry != NULL)
		return entry;
	if (hash_get_num_entries(entries) >= REQUESTS)
		forget_old(now);
	if (hash_get_num_entries(entries) >= REQUESTS)
		return NULL;
	entry = hash_search(entries, &key, HASH_ENTER_NULL, NULL);
	if (entry != NULL)
		begin_request(entry, now);
	return entry;
}

/*
 * Adds a request, made because of reads in vain if "vain" is set.  False where there is none
 * afterwards: the index rests, or there is no room.  The lock is held exclusively.
 */
static bool
add_request(Oid index, bool vain, TimestampTz now)
{
	Entry	   *entry = need_entry(index, now);

	if (entry == NULL || (entry->resting && now < entry->at))
		return false;
	if (entry->resting)
		begin_request(entry, now);
	entry->vain |= vain;
	return true;
}

/*
 * Counts reads in vain of an index's table.  Return true if the index is to be asked for now.  Two indexes
 * may have one place; the other one has to wait until the first has been there for a while.  The
 * lock is held exclusively.
 */
static bool
count_vain_reads(Oid index, double reads, TimestampTz now)
{
	EntryKey	key = {MyDatabaseId, index};
	Suspect    *suspect = &shared->suspects[hash_bytes((unsigned char *) &key,
													   sizeof(key)) % SUSPECTS];
	bool		same = memcmp(&suspect->key, &key, sizeof(key)) == 0;

	if (now > TimestampTzPlusMilliseconds(suspect->since, REST) && (!same || suspect->asked))
	{
		suspect->key = key;
		suspect->since = now;
		suspect->reads = 0;
		suspect->asked = false;
	}
	else if (!same || suspect->asked)
		return false;
	suspect->reads += reads;
	suspect->asked = suspect->reads >= VAIN_READS;
	return suspect->asked;
}

/*
 * Has the postmaster start a worker for this database.  False where there can be no
 * more background workers.
 */
static bool
start_worker(void)
{
	BackgroundWorker worker;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "rangefilter",
			sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, RF_WORKER_FUNCTION,
			sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_type, "rangefilter worker", sizeof(worker.bgw_type));
	snprintf(worker.bgw_name, sizeof(worker.bgw_name),
			 "rangefilter worker for database %u", MyDatabaseId);
	worker.bgw_main_arg = ObjectIdGetDatum(MyDatabaseId);
	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

/*
 * Starts a worker for which new_worker() has taken a place (NULL: there was none).
 * The lock is not held.
 */
static void
fill_place(Worker *worker)
{
	if (worker != NULL && start_worker())
		return;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	if (worker != NULL && worker->database == MyDatabaseId && worker->pid == 0)
		worker->database = InvalidOid;
	pg_atomic_write_u32(&shared->unserved, 1);
	LWLockRelease(shared->lock);
}

/*
 * Asks for an index: because of reads in vain, if these are enough; otherwise (0) at once.
 */
static void
ask_for(Oid index, double reads)
{
	TimestampTz now;
	Worker	   *worker = NULL;
	bool		start;

	if (shared == NULL || !rf_autosummarize || !IsUnderPostmaster)
		return;
	now = GetCurrentTimestamp();
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	start = (reads == 0 || count_vain_reads(index, reads, now)) &&
		add_request(index, reads > 0, now) && !has_worker(MyDatabaseId, now);
	if (start)
		worker = new_worker(now);
	LWLockRelease(shared->lock);
	if (start)
		fill_place(worker);
}

/*
 * Asks for an index of this database to be summarized after the delay, and starts the database's
 * worker if there is none.  Never fails and never waits for the worker; takes a lock of shared
 * memory.
 */
void
rf_request_summarize(Oid index)
{
	ask_for(index, 0);
}

/*
 * Counts a scan of an index's table that found nothing, and asks for the index when there were
 * enough of them: it is then summarized if any of the rows that it covers were removed.  reads: how
 * often the table was read, as far as the sample tells (it stands for scans that were not
 * watched), in parts of a sequential scan.
 */
void
rf_request_vain_reads(Oid index, double reads)
{
	if (reads > 0 && !RecoveryInProgress())
		ask_for(index, reads);
}

/*
 * Return true if there are requests of this database.  Sets "unserved" to whether there are any
 * of a database without a worker.  The lock is held exclusively.
 */
static bool
look_for_unserved(TimestampTz now)
{
	HASH_SEQ_STATUS status;
	Entry	   *entry;
	bool		ours = false;
	bool		unserved = false;

	forget_old(now);
	hash_seq_init(&status, entries);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->resting)
			continue;
		ours |= entry->key.database == MyDatabaseId;
		unserved |= !has_worker(entry->key.database, now);
	}
	pg_atomic_write_u32(&shared->unserved, unserved);
	return ours;
}

/*
 * Starts the worker that this database lacks, if it does.
 */
static void
serve_unserved(void)
{
	static TimestampTz last_time = 0;
	TimestampTz now = GetCurrentTimestamp();
	Worker	   *worker = NULL;
	bool		start;

	if (now < TimestampTzPlusMilliseconds(last_time, RETRY))
		return;
	last_time = now;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	start = look_for_unserved(now) && !has_worker(MyDatabaseId, now);
	if (start)
		worker = new_worker(now);
	LWLockRelease(shared->lock);
	if (start)
		fill_place(worker);
}

/*
 * Transaction callback.  Before the end, where an error does no harm.
 */
static void
transaction_ends(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT && rf_autosummarize &&
		IsUnderPostmaster && !IsParallelWorker() &&
		pg_atomic_read_u32(&shared->unserved) != 0)
		serve_unserved();
}

/*
 * Gives up being the worker of this database.  The lock is held exclusively.
 */
static void
stop_serving(void)
{
	Worker	   *worker = find_worker(MyDatabaseId);

	if (worker != NULL && worker->pid == MyProcPid)
		worker->database = InvalidOid;
}

/*
 * before_shmem_exit callback of a worker.  If it is ended while there are requests,
 * somebody else is to start another one; if there are none, they find that out.
 */
static void
worker_exits(int code, Datum arg)
{
	if (OidIsValid(taken.index))
		rf_request_put_back(&taken);
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	stop_serving();
	LWLockRelease(shared->lock);
	if (code != 0)
		pg_atomic_write_u32(&shared->unserved, 1);
}

/*
 * Makes this process the worker of its database.  False where there is another one.  When the
 * process exits, it is the worker no more.
 */
bool
rf_requests_serve(void)
{
	TimestampTz now = GetCurrentTimestamp();
	Worker	   *worker;
	bool		ours;

	if (shared == NULL)
		return false;
	before_shmem_exit(worker_exits, (Datum) 0);
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	worker = find_worker(MyDatabaseId);
	if (worker == NULL)
		worker = new_worker(now);
	ours = worker != NULL && worker->pid == 0;
	if (ours)
		worker->pid = MyProcPid;
	LWLockRelease(shared->lock);
	return ours;
}

/*
 * The request of this database that is to be taken first, or NULL.  Removes all
 * where there are to be none.  The lock is held exclusively.
 */
static Entry *
first_request(void)
{
	HASH_SEQ_STATUS status;
	Entry	   *entry;
	Entry	   *first = NULL;

	hash_seq_init(&status, entries);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->key.database != MyDatabaseId || entry->resting)
			continue;
		if (!rf_autosummarize)
			hash_search(entries, &entry->key, HASH_REMOVE, NULL);
		else if (first == NULL || entry->at < first->at)
			first = entry;
	}
	return first;
}

/*
 * The next request of the database.
 */
RfNextRequest
rf_requests_next(RfRequest *request, TimestampTz *when)
{
	TimestampTz now = GetCurrentTimestamp();
	RfNextRequest result = RF_REQUEST_LATER;
	Entry	   *first;

	taken.index = InvalidOid;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	first = first_request();
	if (first == NULL)
	{
		stop_serving();
		result = RF_REQUEST_NONE;
	}
	else if (first->at <= now)
	{
		taken.index = first->key.index;
		taken.tries = first->tries;
		taken.vain = first->vain;
		*request = taken;
		hash_search(entries, &first->key, HASH_REMOVE, NULL);
		result = RF_REQUEST_TAKEN;
	}
	else
		*when = first->at;
	LWLockRelease(shared->lock);
	return result;
}

/*
 * Puts a request back, to be taken again after the delay.
 */
void
rf_request_put_back(const RfRequest *request)
{
	TimestampTz now = GetCurrentTimestamp();
	Entry	   *entry;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	entry = need_entry(request->index, now);
	if (entry != NULL)
	{
		entry->at = TimestampTzPlusMilliseconds(now, rf_autosummarize_delay);
		entry->tries = request->tries + 1;
		entry->vain |= request->vain;
	}
	LWLockRelease(shared->lock);
	taken.index = InvalidOid;
}

/*
 * Has requests of an index ignored for some time, since it failed.
 */
void
rf_request_rest(const RfRequest *request)
{
	TimestampTz now = GetCurrentTimestamp();
	Entry	   *entry;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	entry = need_entry(request->index, now);
	if (entry != NULL)
	{
		entry->at = TimestampTzPlusMilliseconds(now, REST);
		entry->resting = true;
	}
	LWLockRelease(shared->lock);
}

/*
 * shmem_request_hook
 */
static void
request_memory(void)
{
	if (previous_request)
		previous_request();
	RequestAddinShmemSpace(MAXALIGN(sizeof(Shared)));
	RequestAddinShmemSpace(hash_estimate_size(REQUESTS, sizeof(Entry)));
	RequestNamedLWLockTranche(LOCK_NAME, 1);
}

/*
 * shmem_startup_hook
 */
static void
start_memory(void)
{
	HASHCTL		control;
	bool		found;

	if (previous_startup)
		previous_startup();
	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(EntryKey);
	control.entrysize = sizeof(Entry);
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("rangefilter workers", sizeof(Shared), &found);
	if (!found)
	{
		memset(shared, 0, sizeof(Shared));
		shared->lock = &GetNamedLWLockTranche(LOCK_NAME)->lock;
		pg_atomic_init_u32(&shared->unserved, 0);
	}
	entries = RF_SHARED_TABLE("rangefilter requests", REQUESTS, &control,
							  HASH_ELEM | HASH_BLOBS);
	LWLockRelease(AddinShmemInitLock);
}

/*
 * Called once, when the library is loaded.
 */
void
rf_init_requests(void)
{
	DefineCustomEnumVariable("rangefilter.autosummarize",
							 "Summarizes range filters at the end of bulk loads, and has background workers do so.",
							 "\"worker\": bulk loads leave it to workers.  There are workers if the server has loaded the library; the index option of the same name leaves an index out.",
							 &rf_autosummarize,
							 RF_AUTOSUMMARIZE_ON,
							 autosummarize_values,
							 PGC_USERSET,
							 0,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomIntVariable("rangefilter.autosummarize_delay",
							"How long a background worker waits before it summarizes an index.",
							"No index is summarized more often than that.",
							&rf_autosummarize_delay,
							5000,
							0,
							60 * 60 * 1000,
							PGC_SIGHUP,
							GUC_UNIT_MS,
							NULL,
							NULL,
							NULL);
	if (!process_shared_preload_libraries_in_progress)
		return;
	RegisterXactCallback(transaction_ends, NULL);
	previous_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = start_memory;
}
