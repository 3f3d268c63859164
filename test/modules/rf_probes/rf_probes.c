/*-------------------------------------------------------------------------
 *
 * rf_probes.c
 *	  Asks rangefilter indexes over and over, and counts pages and time.
 *
 * The questions go to rf_probe(), through shared buffers, with or without the
 * locking and opening that the planner part does for each partition.  And makes
 * others wait for the digests that sessions share.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>
#include <time.h>

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_type_d.h"
#include "executor/instrument.h"
#include "fmgr.h"
#include "funcapi.h"
#include "key/keyset.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "rangefilter/page/shared.h"
#include "rangefilter/probe/digeststore.h"
#include "rangefilter/probe/probe.h"
#include "rangefilter/rangefilter.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/rel.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(rf_probes_numbers);
PG_FUNCTION_INFO_V1(rf_probes_bytes);
PG_FUNCTION_INFO_V1(rf_hold_digests);
PG_FUNCTION_INFO_V1(rf_processor_time);

typedef RfAnswer (*ProbeFunction) (Relation index, const RfKeySet *set,
								   bool in_recovery, RfSummaryVersion *version,
								   RfCachedMetaRef *slot);

typedef struct Probes
{
	ProbeFunction probe;
	Oid		   *oids;
	Relation   *indexes;		/* open ones, unless opened for each probe */
	int			nindexes;
	RfRange    *ranges;
	int			nranges;
	RfKeyKind	kind;
	int64		nprobes;
	int64		denied;
	int64		max_pages;
	BufferUsage usage;			/* of all probes */
	double		ns;
} Probes;

/*
 * Opens all indexes, or just makes sure they are there.
 */
static void
open_indexes(Probes *probes, ArrayType *array, bool keep)
{
	Datum	   *values;
	bool	   *nulls;

	deconstruct_array(array, REGCLASSOID, sizeof(Oid), true, TYPALIGN_INT,
					  &values, &nulls, &probes->nindexes);
	probes->oids = palloc(probes->nindexes * sizeof(Oid));
	probes->indexes = palloc0(probes->nindexes * sizeof(Relation));
	for (int i = 0; i < probes->nindexes; i++)
	{
		probes->oids[i] = DatumGetObjectId(values[i]);
		probes->indexes[i] = relation_open(probes->oids[i], AccessShareLock);
		if (!keep)
		{
			relation_close(probes->indexes[i], AccessShareLock);
			probes->indexes[i] = NULL;
		}
	}
}

/*
 * One probe, with its opening and locking if the index is not open.
 */
static RfAnswer
probe_once(Probes *probes, int64 i)
{
	int			at = i % probes->nindexes;
	Relation	index = probes->indexes[at];
	RfKeySet	set = {.kind = probes->kind,.nranges = 1};
	RfSummaryVersion version;
	RfAnswer	answer;

	set.ranges = &probes->ranges[i % probes->nranges];
	if (index != NULL)
		return probes->probe(index, &set, false, &version, NULL);
	if (!ConditionalLockRelationOid(probes->oids[at], AccessShareLock))
		elog(ERROR, "index %u is locked", probes->oids[at]);
	index = RelationIdGetRelation(probes->oids[at]);
	answer = probes->probe(index, &set, false, &version, NULL);
	relation_close(index, AccessShareLock);
	return answer;
}

/*
 * One round that counts each probe's pages and makes sure of the answers.
 */
static void
count_pages(Probes *probes, int64 n)
{
	for (int64 i = 0; i < n; i++)
	{
		int64		before = pgBufferUsage.shared_blks_hit +
		pgBufferUsage.shared_blks_read;
		RfAnswer	answer = probe_once(probes, i);
		int64		pages = pgBufferUsage.shared_blks_hit +
		pgBufferUsage.shared_blks_read - before;

		if (answer == RF_UNKNOWN)
			elog(ERROR, "index %u does not know",
				 probes->oids[i % probes->nindexes]);
		probes->denied += answer == RF_NO;
		probes->max_pages = Max(probes->max_pages, pages);
	}
}

/*
 * All rounds but that one are timed.
 */
static void
run_probes(Probes *probes, int rounds)
{
	int64		n = Max(probes->nindexes, probes->nranges);
	BufferUsage before;
	instr_time	start;
	instr_time	end;

	if (probes->nindexes == 0 || probes->nranges == 0 || rounds <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("there is nothing to ask")));
	count_pages(probes, n);
	before = pgBufferUsage;
	INSTR_TIME_SET_CURRENT(start);
	for (int round = 0; round < rounds; round++)
	{
		CHECK_FOR_INTERRUPTS();
		for (int64 i = 0; i < n; i++)
			(void) probe_once(probes, i);
	}
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	probes->ns = INSTR_TIME_GET_DOUBLE(end) * 1e9;
	probes->nprobes = n * rounds;
	BufferUsageAccumDiff(&probes->usage, &pgBufferUsage, &before);
}

/*
 * Closes what is open and makes the result row.
 */
static Datum
finish(FunctionCallInfo fcinfo, Probes *probes)
{
	Datum		values[6];
	bool		nulls[6] = {0};
	TupleDesc	desc;
	int64		pages = probes->usage.shared_blks_hit +
	probes->usage.shared_blks_read;

	for (int i = 0; i < probes->nindexes; i++)
		if (probes->indexes[i] != NULL)
			relation_close(probes->indexes[i], AccessShareLock);
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = Int64GetDatum(probes->nprobes);
	values[1] = Int64GetDatum(probes->denied);
	values[2] = Float8GetDatum((double) pages / probes->nprobes);
	values[3] = Int64GetDatum(probes->max_pages);
	values[4] = Int64GetDatum(probes->usage.shared_blks_read);
	values[5] = Float8GetDatum(probes->ns / probes->nprobes);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

static void
begin(Probes *probes, ArrayType *indexes, RfKeyKind kind, bool open)
{
	memset(probes, 0, sizeof(Probes));
	probes->kind = kind;
	probes->probe = (ProbeFunction)
		load_external_function("$libdir/rangefilter", "rf_probe", true, NULL);
	open_indexes(probes, indexes, !open);
}

/*
 * rf_probes(indexes regclass[], keys bigint[], width bigint, rounds int,
 * open boolean)
 */
Datum
rf_probes_numbers(PG_FUNCTION_ARGS)
{
	Probes		probes;
	Datum	   *values;
	bool	   *nulls;

	begin(&probes, PG_GETARG_ARRAYTYPE_P(0), RF_KEY_U64, PG_GETARG_BOOL(4));
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(1), INT8OID, sizeof(int64),
					  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &values, &nulls,
					  &probes.nranges);
	probes.ranges = palloc0((probes.nranges + 1) * sizeof(RfRange));
	for (int i = 0; i < probes.nranges; i++)
	{
		/* As int8 is encoded. */
		uint64		lo = (uint64) DatumGetInt64(values[i]) ^ (UINT64CONST(1) << 63);
		uint64		width = (uint64) PG_GETARG_INT64(2) - 1;

		probes.ranges[i].lo.num = lo;
		probes.ranges[i].hi.num = lo + Min(width, PG_UINT64_MAX - lo);
	}
	run_probes(&probes, PG_GETARG_INT32(3));
	return finish(fcinfo, &probes);
}

/*
 * rf_probes(indexes regclass[], keys bytea[], rounds int, open boolean)
 */
Datum
rf_probes_bytes(PG_FUNCTION_ARGS)
{
	Probes		probes;
	Datum	   *values;
	bool	   *nulls;

	begin(&probes, PG_GETARG_ARRAYTYPE_P(0), RF_KEY_BYTES, PG_GETARG_BOOL(3));
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(1), BYTEAOID, -1, false,
					  TYPALIGN_INT, &values, &nulls, &probes.nranges);
	probes.ranges = palloc0((probes.nranges + 1) * sizeof(RfRange));
	for (int i = 0; i < probes.nranges; i++)
	{
		struct varlena *bytes = PG_DETOAST_DATUM_PACKED(values[i]);

		probes.ranges[i].lo.data = (const uint8 *) VARDATA_ANY(bytes);
		probes.ranges[i].lo.len = VARSIZE_ANY_EXHDR(bytes);
		probes.ranges[i].hi = probes.ranges[i].lo;
	}
	run_probes(&probes, PG_GETARG_INT32(2));
	return finish(fcinfo, &probes);
}

/*
 * The shared store of digests.
 */
static RfDigestStore *
digest_store(void)
{
	int			kb = 0;
	bool		found;
	RfDigestStore *store;

	(void) parse_int(GetConfigOption("rangefilter.shared_cache_size", false, false),
					 &kb, GUC_UNIT_KB, NULL);
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	store = ShmemInitStruct("rangefilter digests",
							CACHELINEALIGN(offsetof(RfDigestStore, matrices) +
										   RF_DIGEST_MATRICES * sizeof(RfDigestMatrix)) +
							(Size) kb * 1024, &found);
	LWLockRelease(AddinShmemInitLock);
	return store;
}

/*
 * Changes an index's matrix with this number until there is a file of this name.  Nobody can
 * interrupt who holds the lock for that, so it gives up after a minute.
 */
Datum
rf_hold_digests(PG_FUNCTION_ARGS)
{
	Oid			index = PG_GETARG_OID(0);
	int			number = PG_GETARG_INT32(1);
	char	   *path = text_to_cstring(PG_GETARG_TEXT_PP(2));
	RfDigestStore *store = digest_store();
	RfDigestMatrix *matrix = NULL;
	struct stat file;
	int			waited = 0;

	LWLockAcquire(store->lock, LW_EXCLUSIVE);
	for (int i = 0; i < store->nmatrices; i++)
		if (store->keys[i].index == index && store->keys[i].number == number)
			matrix = &store->matrices[i];
	if (matrix == NULL)
		elog(ERROR, "there is no matrix");
	pg_atomic_fetch_add_u64(&matrix->writes, 1);
	for (; waited < 60000 && stat(path, &file) != 0; waited++)
		pg_usleep(1000);
	pg_atomic_fetch_add_u64(&matrix->writes, 1);
	LWLockRelease(store->lock);
	if (waited == 60000)
		elog(ERROR, "there is no file \"%s\"", path);
	PG_RETURN_VOID();
}

/*
 * The processor time of this process, in ms.  What others run on the machine does not
 * count, so that it can be compared where others do.
 */
Datum
rf_processor_time(PG_FUNCTION_ARGS)
{
	struct timespec now;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0)
		elog(ERROR, "could not read the process's clock: %m");
	PG_RETURN_FLOAT8(now.tv_sec * 1e3 + now.tv_nsec / 1e6);
}
