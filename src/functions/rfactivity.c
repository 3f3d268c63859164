/*-------------------------------------------------------------------------
 *
 * rfactivity.c
 *	  The SQL functions behind the view rangefilter_activity.
 *
 * Counters tell no values.  But they tell whether a known query was answered
 * NO, and so whether rows exist that the user may not see.  The time of the
 * last summarize depends on the number of new keys, and an INSERT adds to it
 * only if its key is not there yet.  So all this is shown only to those who
 * may read the keys, as by rangefilter_status(), and to members of
 * pg_read_all_stats, like all of core's statistics.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xlog.h"
#include "catalog/pg_class_d.h"
#include "compat.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "functions/rffuncs.h"
#include "rangefilter/page/page.h"
#include "rangefilter/probe/probe.h"
#include "rangefilter/rangefilter.h"
#include "stats/stats.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(rangefilter_index_activity);
PG_FUNCTION_INFO_V1(rangefilter_activity_reset);
PG_FUNCTION_INFO_V1(rangefilter_shared_cache);

/* The columns of the result, in order. */
enum
{
	ACTIVITY_PROBES,
	ACTIVITY_SKIPS,
	ACTIVITY_WATCHED_SCANS,
	ACTIVITY_EMPTY_SCANS,
	ACTIVITY_FALSE_POSITIVE_RATE,
	ACTIVITY_LAST_SUMMARIZE,
	ACTIVITY_STALE_BLOCKS,
	ACTIVITY_BITMAP_SCANS,
	ACTIVITY_BLOCKS_LEFT_OUT,
	ACTIVITY_COLUMNS
};

/*
 * Opens an index and its table without waiting for a lock.  False if it would
 * have to, or if there is no such rangefilter index.
 */
static bool
open_without_waiting(Oid index_oid, RfOpenIndex *open)
{
	if (!rf_try_open_index(index_oid, AccessShareLock, false, open))
		return false;
	if (open->index->rd_rel->relkind == RELKIND_INDEX && rf_is_rangefilter(open->index))
		return true;
	rf_close_index(open, false);
	return false;
}

/*
 * Fills in the times and counts of maintenance from the metapage.  NULL if it
 * cannot be read, or if there was no maintenance yet.
 */
static void
show_maintenance(RfOpenIndex *open, Datum *values, bool *nulls)
{
	BlockNumber nblocks;
	BlockNumber summarized;
	TimestampTz at;
	Buffer		buffer;

	if (RELATION_IS_OTHER_TEMP(open->index) ||
		(RecoveryInProgress() && !RelationIsPermanent(open->index)))
		return;
	buffer = rf_try_read_meta(open->index);
	if (!BufferIsValid(buffer))
		return;
	summarized = rf_page_meta(BufferGetPage(buffer))->summarized;
	at = rf_page_meta(BufferGetPage(buffer))->summarized_at;
	UnlockReleaseBuffer(buffer);

	nblocks = RelationGetNumberOfBlocks(open->heap);
	nulls[ACTIVITY_STALE_BLOCKS] = false;
	values[ACTIVITY_STALE_BLOCKS] =
		Int64GetDatum(nblocks > summarized ? nblocks - summarized : 0);
	nulls[ACTIVITY_LAST_SUMMARIZE] = at == 0;
	values[ACTIVITY_LAST_SUMMARIZE] = TimestampTzGetDatum(at);
}

/*
 * The share of questions not answered NO among those that should have been;
 * negative if unknown.  Only some of the questions not answered NO are
 * watched.
 */
static double
false_positive_rate(const RfCounts *counts)
{
	double		maybe = (double) counts->probes - counts->skips;
	double		wrong;

	if (counts->scans == 0 && maybe > 0)
		return -1;
	wrong = maybe > 0 ? maybe * counts->empty / counts->scans : 0;
	return counts->skips + wrong > 0 ? wrong / (counts->skips + wrong) : -1;
}

/*
 * Fills in the counters.
 */
static void
show_counts(Oid index, Datum *values, bool *nulls)
{
	RfCounts	counts;
	double		rate;

	rf_stats_read(index, &counts);
	rate = false_positive_rate(&counts);
	memset(nulls, 0, ACTIVITY_FALSE_POSITIVE_RATE * sizeof(bool));
	nulls[ACTIVITY_FALSE_POSITIVE_RATE] = rate < 0;
	values[ACTIVITY_PROBES] = Int64GetDatum(counts.probes);
	values[ACTIVITY_SKIPS] = Int64GetDatum(counts.skips);
	values[ACTIVITY_WATCHED_SCANS] = Int64GetDatum(counts.scans);
	values[ACTIVITY_EMPTY_SCANS] = Int64GetDatum(counts.empty);
	values[ACTIVITY_FALSE_POSITIVE_RATE] = Float8GetDatum(rate);
	nulls[ACTIVITY_BITMAP_SCANS] = false;
	values[ACTIVITY_BITMAP_SCANS] = Int64GetDatum(counts.bitmaps);
	nulls[ACTIVITY_BLOCKS_LEFT_OUT] = counts.blocks == 0;
	if (counts.blocks > 0)
		values[ACTIVITY_BLOCKS_LEFT_OUT] =
			Float8GetDatum((double) counts.left_out / counts.blocks);
}

/*
 * rangefilter_index_activity(index regclass) returns one row.  If the index
 * cannot be locked at once, only members of pg_read_all_stats see its
 * counters.
 */
Datum
rangefilter_index_activity(PG_FUNCTION_ARGS)
{
	Oid			oid = PG_GETARG_OID(0);
	bool		all_stats = rf_reads_all_stats();
	Datum		values[ACTIVITY_COLUMNS];
	bool		nulls[ACTIVITY_COLUMNS];
	RfOpenIndex open;
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	memset(nulls, true, sizeof(nulls));
	if (open_without_waiting(oid, &open))
	{
		if (all_stats || rf_may_read_keys(&open))
		{
			show_maintenance(&open, values, nulls);
			show_counts(oid, values, nulls);
		}
		rf_close_index(&open, false);
	}
	else if (all_stats)
		show_counts(oid, values, nulls);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc),
													  values, nulls)));
}

/*
 * rangefilter_activity_reset(index regclass): sets the counters of an index
 * and, if it is a partitioned one, of those below it to zero; NULL stands for
 * all indexes of the database.  GRANT decides who may call it.
 */
Datum
rangefilter_activity_reset(PG_FUNCTION_ARGS)
{
	ListCell   *cell;

	if (PG_ARGISNULL(0))
		rf_stats_reset(InvalidOid);
	else
	{
		foreach(cell, rf_leaf_indexes(PG_GETARG_OID(0)))
			rf_stats_reset(lfirst_oid(cell));
	}
	PG_RETURN_VOID();
}

/*
 * rangefilter_shared_cache() returns one row: how many partitions' indexes of
 * this database have digests that all sessions share, and how many bytes these
 * take.  Only members of pg_read_all_stats see them; others get NULL, because
 * an INSERT of a key that was not covered removes its index from the count.
 */
Datum
rangefilter_shared_cache(PG_FUNCTION_ARGS)
{
	int64		columns;
	int64		bytes;
	Datum		values[2];
	bool		nulls[2];
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	rf_digests_usage(&columns, &bytes);
	values[0] = Int64GetDatum(columns);
	values[1] = Int64GetDatum(bytes);
	nulls[0] = nulls[1] = !rf_reads_all_stats();
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc),
													  values, nulls)));
}
