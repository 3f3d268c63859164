/*-------------------------------------------------------------------------
 *
 * rfstatus.c
 *	  rangefilter_status(): what a summary is made of.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/xlog.h"
#include "compat.h"
#include "funcapi.h"
#include "key/rowkey.h"
#include "miscadmin.h"
#include "functions/rffuncs.h"
#include "rangefilter/page/page.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(rangefilter_status);

/* The columns of a row, in order. */
enum
{
	STATUS_INDEX,
	STATUS_TABLE,
	STATUS_FILTER,
	STATUS_ROWS,
	STATUS_KEYS,
	STATUS_BITS_PER_KEY,
	STATUS_SIZE_BYTES,
	STATUS_HEAP_BLOCKS,
	STATUS_SUMMARIZED_BLOCKS,
	STATUS_TAIL_OPEN,
	STATUS_DELTA_KEYS,
	STATUS_MIN,
	STATUS_MAX,
	STATUS_HAS_NULLS,
	STATUS_GENERATION,
	STATUS_LEVELS,
	STATUS_LEVEL_KEYS,
	STATUS_LEVEL_PAGES,
	STATUS_SUFFIX,
	STATUS_COLUMNS
};

/* Names of FilterSuffix. */
static const char *const suffix_names[] = {"none", "hash", "real", "mixed"};

/* Sums over segments and levels, and the extremes of segments and delta. */
typedef struct RfStatus
{
	const char *filter;
	const char *suffix;			/* NULL: no SuRF */
	uint64		rows;
	uint64		keys;
	uint64		bytes;			/* of runs of segments, whole pages */
	uint64		level_pages;
	bool		has_nulls;
	bool		has_keys;
	RfKey		min;
	RfKey		max;
	bool		min_cut;
	bool		max_cut;
} RfStatus;

/*
 * Widens the extremes by a pair of keys, copying their bytes.
 */
static void
rf_status_widen(RfStatus *status, RfKeyKind kind, RfKey min, bool min_cut,
				RfKey max, bool max_cut)
{
	if (kind == RF_KEY_BYTES)
	{
		min.data = memcpy(palloc(min.len + 1), min.data, min.len);
		max.data = memcpy(palloc(max.len + 1), max.data, max.len);
	}
	if (!status->has_keys || rf_key_compare(kind, &min, &status->min) < 0)
	{
		status->min = min;
		status->min_cut = min_cut;
	}
	if (!status->has_keys || rf_key_compare(kind, &max, &status->max) > 0)
	{
		status->max = max;
		status->max_cut = max_cut;
	}
	status->has_keys = true;
}

/*
 * Adds up the directory.  If segments differ, the filter shown is that of the
 * least exact one, and the suffix that of the last SuRF.
 */
static void
rf_status_segments(RfStatus *status, const RfMetaData *meta, RfKeyKind kind)
{
	const RfSegment *segment = rf_first_segment(meta);

	for (int i = 0; i < meta->nsegments; i++)
	{
		status->rows += segment->nrows;
		status->keys += segment->nkeys;
		status->bytes += segment->run_len > 0 ? segment->run_len :
			segment->npages * (uint64) BLCKSZ;
		if (segment->flags & RF_SEGMENT_NULLS)
			status->has_nulls = true;
		if (segment->kind == FILTER_KIND_SURF)
		{
			status->filter = "surf";
			status->suffix = suffix_names[filter_root_suffix(rf_segment_root(segment))];
		}
		else if (segment->kind == FILTER_KIND_PAIR)
			status->filter = "pair";
		else if (segment->kind == FILTER_KIND_SNARF)
			status->filter = "snarf";
		else if (status->filter == NULL)
			status->filter = "exact";
		if (segment->nkeys > 0)
			rf_status_widen(status, kind,
							rf_segment_min(segment),
							segment->flags & RF_SEGMENT_MIN_CUT,
							rf_segment_max(segment),
							segment->flags & RF_SEGMENT_MAX_CUT);
		segment = rf_next_segment(segment);
	}
}

/*
 * Adds up the levels of the delta.
 */
static void
rf_status_levels(RfStatus *status, const RfMetaData *meta, RfKeyKind kind)
{
	const RfSegment *level = rf_first_level(meta);

	for (int i = 0; i < meta->nlevels; i++)
	{
		status->level_pages += level->npages;
		rf_status_widen(status, kind,
						rf_segment_min(level), level->flags & RF_SEGMENT_MIN_CUT,
						rf_segment_max(level), level->flags & RF_SEGMENT_MAX_CUT);
		level = rf_next_segment(level);
	}
}

/*
 * rf_delta_visit() callback: widens the bounds of the status by a key of the delta.
 */
static void
rf_status_delta_key(void *arg, RfKeyKind kind, const RfKey *key)
{
	rf_status_widen((RfStatus *) arg, kind, *key, false, *key, false);
}

/*
 * A bound as text, palloc'd; "..." follows where the summary has only the beginning of the key.
 */
static Datum
rf_status_bound(const RfCodec *codec, const RfKey *key, bool cut)
{
	char	   *text = rf_show_key(codec, key);

	/* A row that is not whole says so itself. */
	if (cut && codec->row == NULL)
		text = psprintf("%s...", text);

	return CStringGetTextDatum(text);
}

/*
 * Fills one row with what is known of any open index, and NULLs.
 */
static void
rf_status_sizes(const RfOpenIndex *open, Datum *values, bool *nulls)
{
	memset(nulls, true, STATUS_COLUMNS * sizeof(bool));
	nulls[STATUS_INDEX] = nulls[STATUS_TABLE] = false;
	nulls[STATUS_SIZE_BYTES] = nulls[STATUS_HEAP_BLOCKS] = false;
	values[STATUS_INDEX] = ObjectIdGetDatum(RelationGetRelid(open->index));
	values[STATUS_TABLE] = ObjectIdGetDatum(RelationGetRelid(open->heap));
	values[STATUS_SIZE_BYTES] =
		Int64GetDatum((int64) RelationGetNumberOfBlocks(open->index) * BLCKSZ);
	values[STATUS_HEAP_BLOCKS] =
		Int64GetDatum(RelationGetNumberOfBlocks(open->heap));
}

/*
 * Adds to the row what the metapage of an open index tells.
 */
static void
rf_status_row(RfOpenIndex *open, const RfMetaData *meta, Datum *values,
			  bool *nulls)
{
	const RfCodec *codec = rf_index_codec(open->index);
	RfStatus	status = {0};
	bool		may_read = rf_may_read_keys(open);

	rf_status_segments(&status, meta, codec->kind);
	if (meta->flags & RF_NOT_HEAP)
		status.filter = "none: not heap";
	rf_status_levels(&status, meta, codec->kind);

	/* How many pages the delta has tells whether values were new. */
	if (may_read)
		rf_delta_visit(open->index, meta, codec->kind, rf_status_delta_key, &status);
	if (meta->flags & (RF_DELTA_NULLS | RF_DELTA_NULLS_RETIRED))
		status.has_nulls = true;

	/*
	 * The other columns reveal values, or whether a value exists.  An INSERT,
	 * even one that is rolled back, changes the summary only if its key is
	 * not covered yet: delta_keys at once, tail_open at a certain number of
	 * keys, the others when VACUUM summarizes because of it.
	 */
	if (!may_read && !rf_reads_all_stats())
		return;
	nulls[STATUS_FILTER] = status.filter == NULL;
	if (status.filter != NULL)
		values[STATUS_FILTER] = CStringGetTextDatum(status.filter);
	nulls[STATUS_SUFFIX] = status.suffix == NULL;
	if (status.suffix != NULL)
		values[STATUS_SUFFIX] = CStringGetTextDatum(status.suffix);
	nulls[STATUS_ROWS] = nulls[STATUS_SUMMARIZED_BLOCKS] = false;
	nulls[STATUS_TAIL_OPEN] = nulls[STATUS_GENERATION] = false;
	values[STATUS_ROWS] = Int64GetDatum(status.rows);
	values[STATUS_SUMMARIZED_BLOCKS] = Int64GetDatum(meta->summarized);
	values[STATUS_TAIL_OPEN] = BoolGetDatum((meta->flags & RF_UNCERTAIN_FLAGS) != 0 ||
											(RecoveryInProgress() && (meta->flags & RF_STANDBY_UNKNOWN)) ||
											rf_sorted_otherwise(meta, codec));
	values[STATUS_GENERATION] = Int64GetDatum(meta->generation);
	if (!may_read)
		return;
	nulls[STATUS_KEYS] = nulls[STATUS_DELTA_KEYS] = false;
	nulls[STATUS_HAS_NULLS] = codec->row != NULL;
	values[STATUS_KEYS] = Int64GetDatum(status.keys);
	values[STATUS_DELTA_KEYS] =
		Int64GetDatum(rf_delta_keys(rf_file(open->index), meta, codec->kind) +
					  rf_level_keys(meta));
	nulls[STATUS_LEVELS] = nulls[STATUS_LEVEL_KEYS] = false;
	nulls[STATUS_LEVEL_PAGES] = false;
	values[STATUS_LEVELS] = Int32GetDatum(meta->nlevels);
	values[STATUS_LEVEL_KEYS] = Int64GetDatum(rf_level_keys(meta));
	values[STATUS_LEVEL_PAGES] = Int64GetDatum(status.level_pages);
	values[STATUS_HAS_NULLS] = BoolGetDatum(status.has_nulls);
	if (status.keys > 0)
	{
		nulls[STATUS_BITS_PER_KEY] = false;
		values[STATUS_BITS_PER_KEY] =
			Float8GetDatum(rint(status.bytes * 80.0 / status.keys) / 10);
	}
	if (!status.has_keys)
		return;
	nulls[STATUS_MIN] = nulls[STATUS_MAX] = false;
	values[STATUS_MIN] = rf_status_bound(codec, &status.min, status.min_cut);
	values[STATUS_MAX] = rf_status_bound(codec, &status.max, status.max_cut);
}

/*
 * rangefilter_status(index regclass) returns one row for each leaf index.
 * Users who may not read the columns see only index, table, size_bytes and
 * heap_blocks, which they see elsewhere, too.  Members of pg_read_all_stats
 * see all columns but keys, bits_per_key, delta_keys, min, max, has_nulls and
 * those of levels.  For an index of several columns has_nulls is NULL for
 * everybody: there a NULL is part of a key like any value.  Of an index that is
 * not valid everybody sees only the four.
 */
Datum
rangefilter_status(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	ListCell   *cell;

	InitMaterializedSRF(fcinfo, 0);
	foreach(cell, rf_leaf_indexes(PG_GETARG_OID(0)))
	{
		PGAlignedBlock copy;
		Datum		values[STATUS_COLUMNS];
		bool		nulls[STATUS_COLUMNS];
		RfOpenIndex open;
		Buffer		buffer;

		CHECK_FOR_INTERRUPTS();
		if (!rf_try_open_index(lfirst_oid(cell), AccessShareLock, true, &open))
			continue;

		rf_status_sizes(&open, values, nulls);

		/*
		 * An index that is not valid may not be built.  Output functions must
		 * not run under a buffer lock.
		 */
		if (open.index->rd_index->indisvalid)
		{
			buffer = rf_read_meta(open.index, BUFFER_LOCK_SHARE);
			memcpy(copy.data, BufferGetPage(buffer), BLCKSZ);
			UnlockReleaseBuffer(buffer);
			rf_status_row(&open, rf_page_meta(copy.data), values, nulls);
		}
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
		rf_close_index(&open, false);
	}
	return (Datum) 0;
}
