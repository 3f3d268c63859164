/*-------------------------------------------------------------------------
 *
 * rowset.c
 *	  Conditions on several columns as a set of keys of rows.
 *
 * Rows whose first columns have certain values are neighbours.  So as long as
 * columns are to have one of some values, each combination of these makes a
 * prefix of rows' keys, and under each the next column's ranges are ranges of
 * rows' keys.  Columns behind one with ranges cannot narrow it further.
 *
 * Ranges of few numbers are taken for their values: "IN (1, 2, 3)" arrives
 * here as the range from 1 to 3.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "filter/filter.h"
#include "key/rowkey.h"

/* More ranges than these are not made for a set ... */
#define MAX_ROW_RANGES	1000

/* ... nor more than these, where one range could do instead. */
#define MAX_LISTED		100

/* The encodings of the first columns, all combinations of their values. */
typedef struct Prefixes
{
	int			n;
	StringInfo *rows;
} Prefixes;

/*
 * How many values a range is, 0 for too many to list.
 */
static uint64
range_values(RfKeyKind kind, const RfRange *range)
{
	uint64		span;

	if (kind == RF_KEY_U64)
	{
		span = range->hi.num - range->lo.num;
		return span < MAX_ROW_RANGES ? span + 1 : 0;
	}
	if (range->hi_inf || range->hi_excl)
		return 0;
	if (range->lo_inf)			/* from the empty string on */
		return range->hi.len == 0 ? 1 : 0;
	return rf_key_compare(kind, &range->lo, &range->hi) == 0 ? 1 : 0;
}

/*
 * How many values a set has, NULL included; 0 for too many to list.
 */
static uint64
set_values(const RfKeySet *set)
{
	uint64		sum = set->nulls ? 1 : 0;

	if (set->nranges > MAX_ROW_RANGES)
		return 0;
	for (int i = 0; i < set->nranges; i++)
	{
		uint64		values = range_values(set->kind, &set->ranges[i]);

		if (values == 0)
			return 0;
		sum += values;
	}
	return sum;
}

/*
 * Adds a copy of a prefix, for one more column to be put to it.
 */
static StringInfo
add_prefix(Prefixes *prefixes, const StringInfoData *prefix)
{
	StringInfo	row = makeStringInfo();

	appendBinaryStringInfo(row, prefix->data, prefix->len);
	prefixes->rows[prefixes->n++] = row;
	return row;
}

/*
 * Frees prefixes that have been continued.
 */
static void
free_prefixes(Prefixes *prefixes)
{
	for (int p = 0; p < prefixes->n; p++)
	{
		pfree(prefixes->rows[p]->data);
		pfree(prefixes->rows[p]);
	}
	pfree(prefixes->rows);
}

/*
 * Continues prefixes by each of a column's values.  Frees them.
 */
static Prefixes
put_values(const RfRowFormat *format, Prefixes *before, int column,
		   const RfKeySet *set, uint64 values)
{
	Prefixes	after = {0};

	after.rows = palloc(before->n * values * sizeof(StringInfo));
	for (int p = 0; p < before->n; p++)
	{
		for (int i = 0; i < set->nranges; i++)
		{
			RfKey		key = set->ranges[i].hi;

			if (set->kind == RF_KEY_U64)
				key.num = set->ranges[i].lo.num;
			for (uint64 n = range_values(set->kind, &set->ranges[i]); n > 0; n--)
			{
				rf_row_put_key(format, column, &key,
							   add_prefix(&after, before->rows[p]));
				key.num++;
			}
		}
		if (set->nulls)
			rf_row_put_null(format, column,
							add_prefix(&after, before->rows[p]));
	}
	free_prefixes(before);
	return after;
}

/*
 * The ranges of rows that start with one of the prefixes.
 */
static RfKeySet *
prefix_ranges(const RfRowFormat *format, const Prefixes *prefixes)
{
	RfRange    *ranges = palloc(prefixes->n * sizeof(RfRange));

	for (int p = 0; p < prefixes->n; p++)
		rf_row_prefix_range(format, prefixes->rows[p]->data,
							prefixes->rows[p]->len, &ranges[p]);
	return rf_keyset_ranges(RF_KEY_BYTES, ranges, prefixes->n);
}

/*
 * The ranges of rows that start with one of the prefixes and go on with a
 * column in the set.
 */
static RfKeySet *
column_ranges(const RfRowFormat *format, const Prefixes *prefixes,
			  int column, const RfKeySet *set)
{
	RfRange    *ranges;
	int			n = 0;

	ranges = palloc_extended(prefixes->n * (set->nranges + (Size) 1) * sizeof(RfRange),
							 MCXT_ALLOC_HUGE);
	for (int p = 0; p < prefixes->n; p++)
	{
		StringInfo	prefix = prefixes->rows[p];

		for (int i = 0; i < set->nranges; i++)
			rf_row_range(format, prefix->data, prefix->len, column,
						 &set->ranges[i], &ranges[n++]);
		if (set->nulls)
		{
			rf_row_put_null(format, column, prefix);
			rf_row_prefix_range(format, prefix->data, prefix->len,
								&ranges[n++]);
		}
	}
	return rf_keyset_ranges(RF_KEY_BYTES, ranges, n);
}

/*
 * The keys of rows each of whose first n columns is in a set of keys (cut ones) of its own.  codec
 * is one of rows.  What would take too many ranges is rounded outward by leaving columns out, the
 * last ones first.  *used, if given, is set to how many of the n columns count.  The first column's
 * ranges are taken as they are, however many there are.
 */
RfKeySet *
rf_row_set(const RfCodec *codec, RfKeySet **columns, int n, int *used)
{
	const RfRowFormat *format = codec->row;
	Prefixes	prefixes = {0};
	RfKeySet   *result = NULL;
	int			column;

	Assert(n <= format->ncolumns);
	prefixes.rows = palloc(sizeof(StringInfo));
	prefixes.rows[prefixes.n++] = makeStringInfo();
	for (column = 0; column < n && result == NULL; column++)
	{
		const RfKeySet *set = columns[column];
		uint64		values = set_values(set);
		uint64		ranges = set->nranges + (set->nulls ? 1 : 0);

		/* Nothing satisfies the column's condition? */
		if (ranges == 0)
			result = rf_keyset_empty(RF_KEY_BYTES);
		else if (values > 0 && column < n - 1 &&
				 prefixes.n * values <=
				 (values == ranges ? MAX_ROW_RANGES : MAX_LISTED))
			prefixes = put_values(format, &prefixes, column, set, values);
		else if (column == 0 || prefixes.n * ranges <= MAX_ROW_RANGES)
			result = column_ranges(format, &prefixes, column, set);
		else
			break;
	}
	if (used != NULL)
		*used = column;
	if (result == NULL)
		result = prefix_ranges(format, &prefixes);
	free_prefixes(&prefixes);
	return result;
}
