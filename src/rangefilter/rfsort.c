/*-------------------------------------------------------------------------
 *
 * rfsort.c
 *	  From the keys of heap tuples to a segment and its run.
 *
 * Keys go through core's tuplesort (which spills to disk beyond
 * maintenance_work_mem), as int8 with the sign bit flipped or as bytea; the
 * filter library reads the sorted keys twice.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "commands/progress.h"
#include "compat.h"
#include "filter/leading.h"
#include "filter/trial.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_bswap.h"
#include "rangefilter/rangefilter.h"
#include "utils/builtins.h"
#include "utils/tuplesort.h"

struct RfKeySort
{
	RfKeyKind	kind;
	Tuplesortstate *sort;
	uint64		nrows;			/* with a key */
	uint64		nnulls;
	char		buffer[VARHDRSZ + FILTER_MAX_KEY];	/* a key as bytea */
	uint8		shared[LEADING_MAX_SHARED]; /* all byte keys begin so */
	uint32		shared_len;
};

/* One of the two passes over the sorted keys. */
typedef struct RfFilterPass
{
	void		(*number) (FilterBuild *build, uint64_t key);
	void		(*bytes) (FilterBuild *build, FilterBytes key);
} RfFilterPass;

static const RfFilterPass rf_measure = {filter_measure_u64, filter_measure_bytes};
static const RfFilterPass rf_add = {filter_add_u64, filter_add_bytes};

#define RF_SIGN_BIT (UINT64CONST(1) << 63)

/*
 * Begins to collect keys of one kind.
 */
RfKeySort *
rf_sort_begin(RfKeyKind kind)
{
	RfKeySort  *sort = palloc0(sizeof(RfKeySort));

	sort->kind = kind;
	if (kind == RF_KEY_U64)
		sort->sort = tuplesort_begin_datum(INT8OID, Int8LessOperator,
										   InvalidOid, false,
										   maintenance_work_mem, NULL,
										   TUPLESORT_RANDOMACCESS);
	else
		sort->sort = tuplesort_begin_datum(BYTEAOID, ByteaLessOperator,
										   InvalidOid, false,
										   maintenance_work_mem, NULL,
										   TUPLESORT_RANDOMACCESS);
	return sort;
}

/*
 * Keeps what the keys so far and this one begin with.
 */
static void
rf_sort_share(RfKeySort *sort, const RfKey *key)
{
	uint32		len = Min(key->len, LEADING_MAX_SHARED);
	uint32		i = 0;

	if (sort->nrows == 0)
	{
		memcpy(sort->shared, key->data, len);
		sort->shared_len = len;
		return;
	}
	len = Min(len, sort->shared_len);
	while (i < len && key->data[i] == sort->shared[i])
		i++;
	sort->shared_len = i;
}

/*
 * Adds a tuple's key; NULLs are only counted.
 */
void
rf_sort_add(RfKeySort *sort, const RfHeapTuple *tuple)
{
	if (tuple->isnull)
	{
		sort->nnulls++;
		return;
	}
	if (sort->kind == RF_KEY_BYTES)
		rf_sort_share(sort, &tuple->key);
	sort->nrows++;
	if (sort->kind == RF_KEY_U64)
		tuplesort_putdatum(sort->sort,
						   Int64GetDatum((int64) (tuple->key.num ^ RF_SIGN_BIT)),
						   false);
	else
	{
		SET_VARSIZE(sort->buffer, VARHDRSZ + tuple->key.len);
		memcpy(VARDATA(sort->buffer), tuple->key.data, tuple->key.len);
		tuplesort_putdatum(sort->sort, PointerGetDatum(sort->buffer), false);
	}
}

/*
 * Reads the next sorted key; it is valid until the next call.
 */
static bool
rf_sort_next(RfKeySort *sort, RfKey *key)
{
	Datum		value;
	bool		isnull;

	if (!RF_TUPLESORT_GETDATUM(sort->sort, &value, &isnull))
		return false;
	if (sort->kind == RF_KEY_U64)
		key->num = (uint64) DatumGetInt64(value) ^ RF_SIGN_BIT;
	else
	{
		struct varlena *bytes = (struct varlena *) DatumGetPointer(value);

		key->len = VARSIZE_ANY_EXHDR(bytes);
		memcpy(sort->buffer, VARDATA_ANY(bytes), key->len);
		key->data = (const uint8 *) sort->buffer;
		pfree(bytes);
	}
	return true;
}

/*
 * Gives a key to one of the filter library's passes.  A SuRF takes numbers as
 * their big-endian bytes.
 */
static void
rf_give(FilterBuild *build, const RfFilterPass *pass, RfKeyKind kind,
		const RfKey *key, bool as_bytes)
{
	uint64		big_endian = pg_hton64(key->num);
	FilterBytes bytes = {key->data, key->len};

	if (kind == RF_KEY_U64)
	{
		bytes.data = (const uint8 *) &big_endian;
		bytes.len = sizeof(big_endian);
	}
	if (as_bytes)
		pass->bytes(build, bytes);
	else
		pass->number(build, key->num);
}

/*
 * Walks the sorted keys once.  The last one is left in *last, its bytes in
 * the sort's buffer; the first is copied to *first (bytes palloc'd).
 */
static void
rf_sort_walk(RfKeySort *sort, FilterBuild *build, const RfFilterPass *pass,
			 bool as_bytes, RfKey *first, RfKey *last)
{
	bool		seen = false;

	while (rf_sort_next(sort, last))
	{
		CHECK_FOR_INTERRUPTS();
		if (!seen)
		{
			uint8	   *copy = palloc(FILTER_MAX_KEY);

			*first = *last;
			if (sort->kind == RF_KEY_BYTES)
				memcpy(copy, last->data, last->len);
			first->data = copy;
			seen = true;
		}
		rf_give(build, pass, sort->kind, last, as_bytes);
	}
}

/*
 * Tries the filters for byte strings on a sample of the sorted keys: is SNARF
 * over their leading bytes better than SuRF?  See filter/trial.h.
 */
static bool
rf_try_leading(RfKeySort *sort, const FilterOptions *options)
{
	Trial	   *trial = trial_begin(options, sort->nrows);
	uint64		row = 0;
	RfKey		key;

	while (trial_next_row(trial) < sort->nrows)
	{
		uint64		next = trial_next_row(trial);
		FilterBytes bytes;

		CHECK_FOR_INTERRUPTS();
		if (next > row)
			tuplesort_skiptuples(sort->sort, next - row, true);
		if (!rf_sort_next(sort, &key))
			elog(ERROR, "sorted keys ended early");
		bytes.data = key.data;
		bytes.len = key.len;
		trial_add(trial, bytes);
		row = next + 1;
	}
	tuplesort_rescan(sort->sort);
	return trial_end(trial);
}

/*
 * What to build: the index's options, and the choice that they leave.
 */
static void
rf_choose_filter(RfKeySort *sort, const RfOptions *options, uint32 root_max,
				 FilterOptions *filter)
{
	memset(filter, 0, sizeof(FilterOptions));
	filter->bits_per_key = options->bits_per_key;
	filter->suffix = options->suffix;
	filter->page_size = RF_PAGE_CONTENT;
	filter->root_max = root_max;
	filter->nrows = sort->nrows;
	filter->shared.data = sort->shared;
	filter->shared.len = sort->shared_len;
	if (sort->kind == RF_KEY_BYTES && options->filter == RF_FILTER_AUTO)
		filter->leading = rf_try_leading(sort, filter);
	filter->surf = options->filter == RF_FILTER_SURF ||
		(sort->kind == RF_KEY_BYTES && !filter->leading);
}

/*
 * Makes the directory entry of a finished run.
 */
static RfSegment *
rf_make_segment(RfKeySort *sort, const FilterRun *run, const RfKey *min,
				const RfKey *max)
{
	RfSegment  *segment = palloc0(RF_MAX_SEGMENT_SIZE);
	char	   *end = (char *) (segment + 1);

	segment->kind = run->kind;
	segment->nrows = sort->nrows + sort->nnulls;
	segment->nkeys = run->nkeys;
	segment->npages = run->npages;
	segment->flags = sort->nnulls > 0 ? RF_SEGMENT_NULLS : 0;
	if (sort->kind == RF_KEY_U64)
	{
		segment->min = min->num;
		segment->max = max->num;
	}
	else if (run->nkeys > 0)
	{
		segment->min_len = Min(min->len, RF_BOUND_BYTES);
		segment->max_len = Min(max->len, RF_BOUND_BYTES);
		if (min->len > RF_BOUND_BYTES)
			segment->flags |= RF_SEGMENT_MIN_CUT;
		if (max->len > RF_BOUND_BYTES)
			segment->flags |= RF_SEGMENT_MAX_CUT;
		memcpy(end, min->data, segment->min_len);
		end += segment->min_len;
		memcpy(end, max->data, segment->max_len);
		end += segment->max_len;
	}
	segment->root_len = run->root_len;
	if (run->root_len > 0)
		memcpy(end, run->root, run->root_len);
	segment->length = MAXALIGN(end + run->root_len - (char *) segment);
	return segment;
}

/*
 * Sorts what was collected and builds its filter, by the index's options.
 * Returns the directory entry (palloc'd; where its heap range and run lie is
 * for the caller to fill in) and the run.  Frees the sort.
 */
RfSegment *
rf_sort_finish(RfKeySort *sort, Relation index, uint32 root_max,
			   bool report_progress, FilterRun *run)
{
	FilterOptions options;
	FilterBuild *build;
	RfSegment  *segment;
	bool		as_bytes;
	RfKey		min = {0};
	RfKey		max = {0};

	if (report_progress)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, RF_PHASE_SORT);
	tuplesort_performsort(sort->sort);

	if (report_progress)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, RF_PHASE_WRITE);
	rf_choose_filter(sort, rf_index_options(index), root_max, &options);
	as_bytes = options.surf || options.leading;
	build = filter_build_begin(&options);
	rf_sort_walk(sort, build, &rf_measure, as_bytes, &min, &max);
	filter_measure_end(build);
	tuplesort_rescan(sort->sort);
	rf_sort_walk(sort, build, &rf_add, as_bytes, &min, &max);
	filter_build_end(build, run);

	segment = rf_make_segment(sort, run, &min, &max);
	tuplesort_end(sort->sort);
	pfree(sort);
	return segment;
}
