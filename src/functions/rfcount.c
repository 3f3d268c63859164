/*-------------------------------------------------------------------------
 *
 * rfcount.c
 *	  rangefilter_count(): about how many distinct keys are in a range.
 *
 * The counts of the segments' filters, and of the delta's levels, are added up; a
 * key in several of them counts in each.  A key of the delta's pages counts once, and
 * only if none of them seems to hold it.  Keys that are not in the index (of an open
 * tail, for example) are not counted.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "functions/rffuncs.h"
#include "rangefilter/page/page.h"
#include "storage/predicate.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(rangefilter_count);

/* The delta's keys that are in a set. */
typedef struct RfDeltaKeys
{
	const RfKeySet *set;
	RfKey	   *keys;
	int			n;
	int			size;
} RfDeltaKeys;

/*
 * Takes a copy of a key of the delta, if it is in the set.
 */
static void
rf_take_delta_key(void *arg, RfKeyKind kind, const RfKey *key)
{
	RfDeltaKeys *delta = (RfDeltaKeys *) arg;
	RfKey		copy = *key;

	if (!rf_keyset_contains(delta->set, key))
		return;
	if (kind == RF_KEY_BYTES)
		copy.data = memcpy(palloc(key->len + 1), key->data, key->len);
	if (delta->n == delta->size)
	{
		delta->size = Max(64, 2 * delta->size);
		delta->keys = delta->keys == NULL ?
			palloc(delta->size * sizeof(RfKey)) :
			repalloc(delta->keys, delta->size * sizeof(RfKey));
	}
	delta->keys[delta->n++] = copy;
}

/*
 * Does one of the segments and levels answer YES for a key?
 */
static bool
rf_in_segments(Relation index, const RfMetaData *meta, RfKeyKind kind,
			   const RfKey *key)
{
	const RfSegment *segment = rf_first_segment(meta);

	for (int i = 0; i < meta->nsegments + meta->nlevels; i++)
	{
		if (rf_segment_probe_key(rf_file(index), meta, segment, kind, key) == RF_YES)
			return true;
		segment = rf_next_segment(segment);
	}
	return false;
}

/*
 * How many keys of the set are in the delta's pages alone?
 */
static uint64
rf_count_delta(Relation index, const RfMetaData *meta, const RfKeySet *set)
{
	RfKeyKind	kind = set->kind;
	RfDeltaKeys delta = {.set = set};
	uint64		count = 0;

	rf_delta_visit(index, meta, kind, rf_take_delta_key, &delta);
	if (delta.n == 0)
		return 0;
	qsort_arg(delta.keys, delta.n, sizeof(RfKey), rf_key_sort_compare, &kind);
	for (int i = 0; i < delta.n; i++)
	{
		if (i > 0 && rf_key_compare(kind, &delta.keys[i - 1], &delta.keys[i]) == 0)
			continue;
		if (!rf_in_segments(index, meta, kind, &delta.keys[i]))
			count++;
	}
	return count;
}

/*
 * Adds the number of keys of the set that are in an index to *count.  False if
 * this is unknown, because pages are damaged.  The metapage stays share-locked
 * meanwhile, as for a probe.
 */
static bool
rf_count_index(Relation index, const RfKeySet *set, uint64 *count)
{
	Buffer		buffer = rf_try_read_meta(index);
	const RfMetaData *meta;
	const RfSegment *segment;
	bool		known = true;

	if (!BufferIsValid(buffer))
		return false;
	meta = rf_page_meta(BufferGetPage(buffer));
	segment = rf_first_segment(meta);
	for (int i = 0; i < meta->nsegments + meta->nlevels && known; i++)
	{
		known = rf_segment_count(index, meta, segment, set, count);
		segment = rf_next_segment(segment);
	}
	if (known)
		*count += rf_count_delta(index, meta, set);
	UnlockReleaseBuffer(buffer);
	return known;
}

/*
 * Adds the number of keys of one leaf index that are between the arguments.
 * False if it is unknown.  In a serializable transaction this is a read of the
 * index.
 */
static bool
rf_count_leaf(FunctionCallInfo fcinfo, Oid leaf, uint64 *count)
{
	RfOpenIndex open;
	RfKeySet   *set;
	bool		known = false;

	if (!rf_try_open_index(leaf, AccessShareLock, true, &open))
		return true;
	set = rf_argument_set(fcinfo, open.index);
	if (set != NULL && open.index->rd_index->indisvalid)
	{
		PredicateLockRelation(open.index, GetActiveSnapshot());
		known = rf_count_index(open.index, set, count);
	}
	rf_close_index(&open, false);
	return known;
}

/*
 * rangefilter_count(index regclass, lo anycompatible, hi anycompatible)
 * returns bigint: about how many distinct keys are in [lo, hi], summed over
 * the leaves.
 */
Datum
rangefilter_count(PG_FUNCTION_ARGS)
{
	uint64		count = 0;
	ListCell   *cell;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	rf_require_read_keys(PG_GETARG_OID(0));
	foreach(cell, rf_leaf_indexes(PG_GETARG_OID(0)))
	{
		CHECK_FOR_INTERRUPTS();
		if (!rf_count_leaf(fcinfo, lfirst_oid(cell), &count))
			PG_RETURN_NULL();
	}
	PG_RETURN_INT64((int64) Min(count, PG_INT64_MAX));
}
