/*-------------------------------------------------------------------------
 *
 * rf_blocks.c
 *	  Calls what computes with numbers of heap blocks, on metapages in memory.
 *
 * A heap has up to 2^32 - 1 blocks, 32 TB, which no test can fill.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "funcapi.h"
#include "port/pg_bitutils.h"
#include "rangefilter/page/page.h"
#include "rangefilter/summarize/summarize.h"
#include "utils/array.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(rf_start);
PG_FUNCTION_INFO_V1(rf_ranges);

typedef BlockNumber (*StartFunction) (const RfMetaData *meta, BlockNumber end);
typedef uint32 (*CountFunction) (const RfSegment *segment);
typedef uint64 (*BitFunction) (const RfSegment *segment, BlockNumber block);

/*
 * A function of the extension.
 */
static void *
look_up(const char *name)
{
	return (void *) load_external_function("$libdir/rangefilter", name, true,
										   NULL);
}

/*
 * rf_start(ends bigint[], blocks bigint, announced bigint)
 */
Datum
rf_start(PG_FUNCTION_ARGS)
{
	StartFunction start = (StartFunction) look_up("rf_choose_start");
	RfMetaData *meta = palloc0(BLCKSZ);
	RfSegment  *segment = (RfSegment *)
	((char *) meta + MAXALIGN(sizeof(RfMetaData)));
	Datum	   *ends;
	bool	   *nulls;
	int			n;

	deconstruct_array(PG_GETARG_ARRAYTYPE_P(0), INT8OID, sizeof(int64),
					  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &ends, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		segment[i].length = sizeof(RfSegment);
		segment[i].start = meta->summarized;
		segment[i].end = meta->summarized = DatumGetInt64(ends[i]);
		meta->nsegments++;
		meta->directory_len += sizeof(RfSegment);
	}
	if (!PG_ARGISNULL(2))
	{
		meta->flags = RF_ANNOUNCED | RF_DELTA_RETIRING;
		meta->announced_start = PG_GETARG_INT64(2);
	}
	PG_RETURN_INT64(start(meta, PG_GETARG_INT64(1)));
}

/*
 * rf_ranges(start bigint, end bigint, range_blocks bigint, block bigint)
 */
Datum
rf_ranges(PG_FUNCTION_ARGS)
{
	CountFunction count = (CountFunction) look_up("rf_range_count");
	CountFunction imprecise = (CountFunction) look_up("rf_imprecise_count");
	BitFunction bit = (BitFunction) look_up("rf_imprecise_bit");
	RfSegment	segment = {0};
	Datum		values[3];
	bool		nulls[3] = {false};
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "not a row");
	segment.start = PG_GETARG_INT64(0);
	segment.end = PG_GETARG_INT64(1);
	segment.range_blocks = PG_GETARG_INT64(2);
	segment.imprecise = bit(&segment, PG_GETARG_INT64(3));
	values[0] = Int64GetDatum(count(&segment));
	values[1] = Int32GetDatum(pg_rightmost_one_pos64(segment.imprecise));
	values[2] = Int64GetDatum(imprecise(&segment));
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}
