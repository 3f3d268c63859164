/*-------------------------------------------------------------------------
 *
 * whcond.c
 *	  A scan's conditions as ranges of keys.
 *
 * The conditions on each column become a set of keys of the column.  As long
 * as the first columns are asked for single values, each combination of these
 * values is a prefix of rows' keys.  The ranges of the next column are then
 * ranges behind each prefix.  So "a IN (1, 5) AND b > 3" is two ranges.
 * Ranges are in key order and disjoint: no row is returned twice, and rows
 * come in the order of the index.  Conditions on later columns are filters:
 * each key's part for the column is compared with them, as bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/skey.h"
#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "compat.h"
#include "key/rowkey.h"
#include "utils/array.h"
#include "utils/date.h"
#include "utils/timestamp.h"
#include "wormhole/scan/whscan_impl.h"

/*
 * The most ranges that are made of a scan's conditions.  If there would be more, entries
 * between them are read, too.
 */
#define MAX_RANGES	200000

/* What rows' keys begin with. */
typedef struct Prefix
{
	const char *data;
	int			len;
} Prefix;

/* The conditions on one column. */
typedef struct ColumnSet
{
	RfKeySet   *set;			/* NULL: none */
	bool		points;			/* single values are asked for */
} ColumnSet;

/*
 * The keys that may satisfy a comparison of timestamp or date with
 * timestamptz; NULL if there is no such set.  It depends on the time zone.  An
 * ordinary one moves an instant by less than two days.  So the range is widened by
 * two days, and the caller has rows rechecked.
 */
static RfKeySet *
widened_set(const RfCodec *codec, Oid collation, int strategy, Oid type,
			Datum value)
{
	Timestamp	instant;
	RfKeySet   *sets[2];
	RfOverflow	overflow = RF_NO_OVERFLOW;

	if (type == DATEOID)
	{
		instant = RF_CONVERT(date2timestamp, DatumGetDateADT(value),
							 &overflow);
		if (RF_OVERFLOWED(overflow))
			return NULL;
	}
	else if (type == TIMESTAMPOID || type == TIMESTAMPTZOID)
		instant = DatumGetTimestamp(value);
	else
		return NULL;
	if (TIMESTAMP_NOT_FINITE(instant) ||
		instant < MIN_TIMESTAMP + 4 * USECS_PER_DAY ||
		instant > END_TIMESTAMP - 4 * USECS_PER_DAY ||
		!rf_zone_is_ordinary(instant))
		return NULL;

	/* Bounds are of the column's own type; those of dates are timestamps. */
	type = codec->type == DATEOID ? TIMESTAMPOID : codec->type;
	for (int i = 0; i < 2; i++)
	{
		int			end = i == 0 ? BTGreaterEqualStrategyNumber :
		BTLessEqualStrategyNumber;
		Timestamp	bound = instant + (i == 0 ? -2 : 2) * USECS_PER_DAY;
		bool		applies = strategy == BTEqualStrategyNumber ||
		(i == 0) == (strategy > BTEqualStrategyNumber);

		sets[i] = !applies ? rf_keyset_not_null(codec->kind) :
			rf_codec_compare_whole(codec, collation, end, type,
								   TimestampGetDatum(bound));
		if (sets[i] == NULL)
			return NULL;
	}
	return rf_keyset_intersect(sets[0], sets[1]);
}

/*
 * The keys that satisfy a comparison with one value.  *recheck is set if there
 * may be others among them.
 */
static RfKeySet *
comparison_set(Relation index, ScanKey key, Datum value, bool *recheck)
{
	int			column = key->sk_attno - 1;
	const RfCodec *codec = wh_cache(index)->format.columns[column].codec;
	Oid			type = OidIsValid(key->sk_subtype) ? key->sk_subtype :
	index->rd_opcintype[column];
	RfKeySet   *set;

	if (codec->type == TIMETZOID)
		*recheck = true;		/* different values share the keys at both
								 * ends */
	set = rf_codec_compare_whole(codec, key->sk_collation, key->sk_strategy,
								 type, value);
	if (set != NULL)
		return set;
	*recheck = true;
	if (codec->type == DATEOID || codec->type == TIMESTAMPOID ||
		codec->type == TIMESTAMPTZOID)
		set = widened_set(codec, key->sk_collation, key->sk_strategy, type,
						  value);
	return set != NULL ? set : rf_keyset_not_null(codec->kind);
}

/* What elements_set() passes to element_set(). */
typedef struct Elements
{
	Relation	index;
	ScanKey		key;
	bool	   *recheck;
} Elements;

/*
 * RfElementSet: the keys that satisfy a comparison with an element.
 */
static RfKeySet *
element_set(void *arg, Oid type, Datum value)
{
	Elements   *elements = arg;

	return comparison_set(elements->index, elements->key, value,
						  elements->recheck);
}

/*
 * The keys that satisfy a comparison with any of an array's elements.
 */
static RfKeySet *
elements_set(Relation index, ScanKey key, bool *recheck)
{
	int			column = key->sk_attno - 1;
	RfKeyKind	kind = wh_cache(index)->format.columns[column].codec->kind;
	Elements	elements = {index, key, recheck};

	return rf_array_set(kind, DatumGetArrayTypeP(key->sk_argument),
						element_set, &elements);
}

/*
 * The keys that satisfy one scan key.
 */
static RfKeySet *
scan_key_set(Relation index, ScanKey key, bool *recheck)
{
	int			column = key->sk_attno - 1;
	RfKeyKind	kind = wh_cache(index)->format.columns[column].codec->kind;

	if (key->sk_flags & SK_SEARCHNULL)
		return rf_keyset_nulls(kind);
	if (key->sk_flags & SK_SEARCHNOTNULL)
		return rf_keyset_not_null(kind);
	if (key->sk_flags & SK_ISNULL)
		return rf_keyset_empty(kind);
	if (key->sk_flags & SK_SEARCHARRAY)
		return elements_set(index, key, recheck);
	return comparison_set(index, key, key->sk_argument, recheck);
}

/*
 * Collects the conditions of each column.
 */
static void
column_sets(Relation index, ScanKey keys, int nkeys, ColumnSet *columns,
			bool *recheck)
{
	memset(columns, 0, INDEX_MAX_KEYS * sizeof(ColumnSet));
	for (int i = 0; i < nkeys; i++)
	{
		ColumnSet  *column = &columns[keys[i].sk_attno - 1];
		RfKeySet   *set = scan_key_set(index, &keys[i], recheck);

		if ((keys[i].sk_flags & SK_SEARCHNULL) ||
			(!(keys[i].sk_flags & SK_SEARCHNOTNULL) &&
			 keys[i].sk_strategy == BTEqualStrategyNumber))
			column->points = true;
		column->set = column->set == NULL ? set :
			rf_keyset_intersect(column->set, set);
	}
}

/*
 * The number of single values in a set; 0 if it has other ranges or more than
 * MAX_RANGES values.
 */
static int
count_points(RfKeyKind kind, const RfKeySet *set)
{
	uint64		n = set->nulls ? 1 : 0;

	for (int i = 0; i < set->nranges; i++)
	{
		const RfRange *range = &set->ranges[i];

		if (kind == RF_KEY_U64)
		{
			uint64		span = range->hi.num - range->lo.num;

			if (span >= MAX_RANGES)
				return 0;
			n += span + 1;
		}
		else
		{
			if (!rf_range_is_key(kind, range))
				return 0;
			n++;
		}
		if (n > MAX_RANGES)
			return 0;
	}
	return (int) n;
}

/*
 * A prefix extended by one column; key NULL: by a null.
 */
static Prefix
extend_prefix(const Prefix *prefix, const RfRowFormat *format, int column,
			  const RfKey *key)
{
	StringInfoData row;
	Prefix		longer;

	initStringInfo(&row);
	appendBinaryStringInfo(&row, prefix->data, prefix->len);
	if (key != NULL)
		rf_row_put_key(format, column, key, &row);
	else
		rf_row_put_null(format, column, &row);
	longer.data = memcpy(palloc(row.len), row.data, row.len);
	longer.len = row.len;
	pfree(row.data);
	return longer;
}

/*
 * Sets result to a prefix extended by each of a column's values, in key order.
 * Returns their number.
 */
static int
extend_by_points(const Prefix *prefix, const RfRowFormat *format, int column,
				 const RfKeySet *set, Prefix *result)
{
	const RfRowColumn *form = &format->columns[column];
	int			n = 0;

	if (set->nulls && form->nulls_first)
		result[n++] = extend_prefix(prefix, format, column, NULL);
	for (int i = 0; i < set->nranges; i++)
	{
		const RfRange *range =
		&set->ranges[form->desc ? set->nranges - 1 - i : i];
		uint64		span = set->kind == RF_KEY_U64 ?
		range->hi.num - range->lo.num : 0;

		for (uint64 step = 0; step <= span; step++)
		{
			RfKey		key = range->lo;

			key.num += form->desc ? span - step : step;
			result[n++] = extend_prefix(prefix, format, column, &key);
		}
	}
	if (set->nulls && !form->nulls_first)
		result[n++] = extend_prefix(prefix, format, column, NULL);
	return n;
}

/*
 * Converts a range that rowkey.h returned.
 */
static WhRange
take_range(const RfRange *range)
{
	WhRange		result;

	memset(&result, 0, sizeof(result));
	result.lo.data = range->lo_inf ? (const uint8 *) "" : range->lo.data;
	result.lo.len = range->lo_inf ? 0 : range->lo.len;
	result.hi.data = range->hi_inf ? NULL : range->hi.data;
	result.hi.len = range->hi_inf ? 0 : range->hi.len;
	return result;
}

/*
 * Sets result to the ranges of keys behind a prefix, in key order.  Returns
 * their number.
 */
static int
extend_by_ranges(const Prefix *prefix, const RfRowFormat *format, int column,
				 const RfKeySet *set, WhRange *result)
{
	const RfRowColumn *form = &format->columns[column];
	RfRange		range;
	WhRange		null_range;
	int			n = 0;

	if (set->nulls)
	{
		Prefix		nulls = extend_prefix(prefix, format, column, NULL);

		rf_row_prefix_range(format, nulls.data, nulls.len, &range);
		null_range = take_range(&range);
	}
	if (set->nulls && form->nulls_first)
		result[n++] = null_range;
	for (int i = 0; i < set->nranges; i++)
	{
		rf_row_range(format, prefix->data, prefix->len, column,
					 &set->ranges[form->desc ? set->nranges - 1 - i : i],
					 &range);
		result[n++] = take_range(&range);
	}
	if (set->nulls && !form->nulls_first)
		result[n++] = null_range;
	return n;
}

/*
 * Makes filters of the sets of all columns from the given one on.
 */
static void
make_filters(const RfRowFormat *format, int from, const ColumnSet *columns,
			 WhConditions *result)
{
	const Prefix nothing = {"", 0};

	result->filters = palloc(format->ncolumns * sizeof(WhFilter));
	for (int i = from; i < format->ncolumns; i++)
	{
		WhFilter   *filter = &result->filters[result->nfilters];

		if (columns[i].set == NULL)
			continue;
		filter->column = i;
		filter->ranges = palloc_extended((columns[i].set->nranges + (Size) 1) *
										 sizeof(WhRange), MCXT_ALLOC_HUGE);
		filter->n = extend_by_ranges(&nothing, format, i, columns[i].set,
									 filter->ranges);
		result->nfilters++;
	}
}

/*
 * Turns a scan's keys into ranges and filters, palloc'd.
 */
void
wh_conditions(Relation index, ScanKey keys, int nkeys, WhConditions *result)
{
	const RfRowFormat *format;
	ColumnSet	columns[INDEX_MAX_KEYS];
	const Prefix nothing = {"", 0};
	const Prefix *prefixes = &nothing;
	int			nprefixes = 1;
	int			column;

	memset(result, 0, sizeof(*result));
	column_sets(index, keys, nkeys, columns, &result->recheck);

	/*
	 * Not before: to make the sets reads catalogs, which may absorb
	 * invalidations.
	 */
	format = &wh_cache(index)->format;
	for (column = 0; column < format->ncolumns; column++)
	{
		RfKeyKind	kind = format->columns[column].codec->kind;
		RfKeySet   *set = columns[column].set;
		Prefix	   *longer;
		int			points;
		int			n = 0;

		if (set == NULL)
			break;
		if (rf_keyset_is_empty(set))
			return;
		points = columns[column].points ? count_points(kind, set) : 0;
		if (points == 0 || points * (int64) nprefixes > MAX_RANGES)
			break;
		longer = palloc(points * nprefixes * sizeof(Prefix));
		for (int i = 0; i < nprefixes; i++)
			n += extend_by_points(&prefixes[i], format, column, set,
								  longer + n);
		prefixes = longer;
		nprefixes = n;
	}

	if (column < format->ncolumns && columns[column].set != NULL &&
		((int64) columns[column].set->nranges + 1) * nprefixes <= MAX_RANGES)
	{
		result->ranges = palloc((columns[column].set->nranges + 1) *
								nprefixes * sizeof(WhRange));
		for (int i = 0; i < nprefixes; i++)
			result->nranges += extend_by_ranges(&prefixes[i], format, column,
												columns[column].set,
												result->ranges +
												result->nranges);
		column++;
	}
	else
	{
		result->ranges = palloc(nprefixes * sizeof(WhRange));
		for (int i = 0; i < nprefixes; i++)
		{
			RfRange		range;

			rf_row_prefix_range(format, prefixes[i].data, prefixes[i].len,
								&range);
			result->ranges[result->nranges++] = take_range(&range);
		}
	}
	make_filters(format, column, columns, result);
	for (int i = 0; i < result->nfilters; i++)
	{
		if (result->filters[i].n == 0)
			result->nranges = 0;
	}
}

/*
 * Appends one byte to an empty buffer.
 */
static void
set_mark(StringInfo row, uint8 mark)
{
	resetStringInfo(row);
	appendStringInfoCharMacro(row, mark);
}

/*
 * Changes a key to the first string after all that begin with it.  There is
 * one, since a key begins with a mark.
 */
static void
skip_extensions(StringInfo row)
{
	while ((uint8) row->data[row->len - 1] == 0xFF)
		row->len--;
	row->data[row->len - 1]++;
}

/*
 * Makes the range of a single comparison of the first column with a value of
 * its type.  Most scans have no other condition, and are repeated many times.
 * False for other conditions.  The range's keys are in the buffers lo and hi.
 */
bool
wh_simple_range(Relation index, ScanKey keys, int nkeys, StringInfo lo,
				StringInfo hi, WhRange *range)
{
	const RfRowColumn column = wh_cache(index)->format.columns[0];
	int			strategy;
	bool		below;			/* in key order */
	bool		equal;
	RfKey		key;

	if (nkeys != 1 || keys[0].sk_attno != 1 || keys[0].sk_flags != 0 ||
		(OidIsValid(keys[0].sk_subtype) &&
		 keys[0].sk_subtype != index->rd_opcintype[0]) ||
		column.codec->type == TIMETZOID)
		return false;
	strategy = keys[0].sk_strategy;
	key = rf_encode_whole(column.codec, keys[0].sk_argument);
	resetStringInfo(lo);

	/* The value may have come from a TOAST table: see wh_encode(). */
	rf_row_put_key(&wh_cache(index)->format, 0, &key, lo);
	if (column.codec->kind == RF_KEY_BYTES)
		pfree(unconstify(uint8 *, key.data));

	below = (strategy < BTEqualStrategyNumber) != column.desc;
	equal = strategy == BTLessEqualStrategyNumber ||
		strategy == BTGreaterEqualStrategyNumber;
	if (strategy == BTEqualStrategyNumber || below)
	{
		resetStringInfo(hi);
		appendBinaryStringInfo(hi, lo->data, lo->len);
		if (strategy == BTEqualStrategyNumber || equal)
			skip_extensions(hi);
		if (strategy != BTEqualStrategyNumber)
			set_mark(lo, WH_VALUE_MARK);
	}
	else
	{
		if (!equal)
			skip_extensions(lo);
		set_mark(hi, WH_VALUE_MARK + 1);
	}
	memset(range, 0, sizeof(*range));
	range->lo.data = (const uint8 *) lo->data;
	range->lo.len = lo->len;
	range->hi.data = (const uint8 *) hi->data;
	range->hi.len = hi->len;
	return true;
}

/*
 * Is a column's part of a key in one of a filter's ranges?
 */
static bool
in_ranges(const WhFilter *filter, const uint8 *part, int len)
{
	WhKey		key = {.data = part,.len = len};
	int			first = 0;
	int			last = filter->n;

	/* The last range that begins at or before the key. */
	while (first < last)
	{
		int			middle = (first + last) / 2;

		if (wh_compare_keys(&filter->ranges[middle].lo, &key) <= 0)
			first = middle + 1;
		else
			last = middle;
	}
	return first > 0 &&
		wh_compare_keys(&key, &filter->ranges[first - 1].hi) < 0;
}

/*
 * Does a key pass all filters?  Allocates in the current context, and frees
 * nothing.
 */
bool
wh_filter_passes(const RfRowFormat *format, const WhConditions *conditions,
				 const uint8 *key, int len)
{
	const uint8 *at = key;
	const uint8 *end = key + len;
	int			column = 0;

	for (int i = 0; i < conditions->nfilters; i++)
	{
		const WhFilter *filter = &conditions->filters[i];
		const uint8 *start = at;
		RfKey		part;

		for (; column <= filter->column; column++)
		{
			start = at;
			(void) rf_row_get(format, column, &at, end, &part);
		}
		if (!in_ranges(filter, start, at - start))
			return false;
	}
	return true;
}
