/*-------------------------------------------------------------------------
 *
 * rfusage.c
 *	  rangefilter_session_cache(): what a session keeps from query to query.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "funcapi.h"
#include "functions/rffuncs.h"
#include "rangefilter/probe/probe.h"
#include "stats/session.h"
#include "stats/stats.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(rangefilter_session_cache);

/*
 * Adds a row to the result.  Others than members of pg_read_all_stats see no numbers.
 */
static void
add_row(ReturnSetInfo *result, const char *what, int64 entries, int64 bytes)
{
	Datum		values[3];
	bool		nulls[3] = {false};

	nulls[1] = nulls[2] = !rf_reads_all_stats();
	values[0] = CStringGetTextDatum(what);
	values[1] = Int64GetDatum(entries);
	values[2] = Int64GetDatum(bytes);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * rangefilter_session_cache() returns a row for each kind of things that this session
 * keeps: how many, and how many bytes they take.  What tables take is all that is not
 * counted elsewhere.  The numbers are for those who see rangefilter_shared_cache(), for the
 * same reason: a summary whose tail was opened by keys that were not covered is not kept.
 */
Datum
rangefilter_session_cache(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	RfUsage		usage;
	int64		digests;
	int64		digest_bytes;
	int64		counters;
	int64		counter_bytes;
	int64		hints;
	int64		hint_bytes;

	InitMaterializedSRF(fcinfo, 0);
	rf_tell_usage(&usage);
	rf_digests_own_usage(&digests, &digest_bytes);
	rf_stats_usage(&counters, &counter_bytes);
	rf_tell_hints(&hints, &hint_bytes);
	add_row(result, "tables", usage.tables,
			rf_session_used() - usage.cached_meta_bytes - digest_bytes -
			usage.inval_bytes - counter_bytes);
	add_row(result, "copies", usage.cached_metas, usage.cached_meta_bytes);
	add_row(result, "digests", digests, digest_bytes);
	add_row(result, "tracks", usage.invals, usage.inval_bytes);
	add_row(result, "counters", counters, counter_bytes);
	add_row(result, "wormhole hints", hints, hint_bytes);
	return (Datum) 0;
}
