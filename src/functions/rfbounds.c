/*-------------------------------------------------------------------------
 *
 * rfbounds.c
 *	  The bounds that SQL functions are called with as sets of keys.
 *
 * Arguments 1 and 2 of these functions are values for the index's first
 * column, or rows for its first columns; NULL means no bound.  They may have
 * other types than the columns.  Types that the operator family does not
 * compare are converted.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "functions/rffuncs.h"
#include "key/rowkey.h"
#include "rangefilter/page/page.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

/* The fields of a row up to its first NULL.  ROW() has more than a table may. */
typedef struct RfBoundRow
{
	int			nfields;
	Oid			types[MaxTupleAttributeNumber];
	Datum		values[MaxTupleAttributeNumber];
} RfBoundRow;

/*
 * Converts a value to the type of an index's column through its text form.
 */
static Datum
rf_convert_bound(Relation index, int column, Oid type, Datum value)
{
	Oid			function;
	Oid			ioparam;
	bool		is_varlena;
	char	   *text;

	getTypeOutputInfo(type, &function, &is_varlena);
	text = OidOutputFunctionCall(function, value);

	getTypeInputInfo(index->rd_opcintype[column], &function, &ioparam);
	return OidInputFunctionCall(function, text, ioparam, -1);
}

/*
 * The codec of the first key column, to which bounds apply.
 */
static const RfCodec *
rf_first_codec(Relation index)
{
	const RfCodec *codec = rf_index_codec(index);

	return codec->row != NULL ? codec->row->columns[0].codec : codec;
}

/*
 * The keys of the first column on one side of a bound.
 */
static RfKeySet *
rf_bound_set(Relation index, StrategyNumber strategy, Oid type, Datum value)
{
	const RfCodec *codec = rf_first_codec(index);
	Oid			collation = index->rd_indcollation[0];
	RfKeySet   *set = rf_codec_compare(codec, collation, strategy, type, value);

	if (set == NULL && type != index->rd_opcintype[0])
		set = rf_codec_compare(codec, collation, strategy,
							   index->rd_opcintype[0],
							   rf_convert_bound(index, 0, type, value));
	return set;
}

/*
 * Are both bounds one and the same value, as text?
 */
static bool
rf_same_bounds(Oid type, Datum lo, Datum hi)
{
	Oid			function;
	bool		is_varlena;

	getTypeOutputInfo(type, &function, &is_varlena);
	return strcmp(OidOutputFunctionCall(function, lo),
				  OidOutputFunctionCall(function, hi)) == 0;
}

/*
 * The keys of the first column between arguments 1 and 2 of the call, NULL
 * meaning no bound.  Returns NULL if the index cannot be asked for such a
 * range.
 */
static RfKeySet *
rf_column_set(FunctionCallInfo fcinfo, Relation index)
{
	Oid			type = get_fn_expr_argtype(fcinfo->flinfo, 1);
	const RfCodec *codec = rf_first_codec(index);
	RfKeySet   *lo = rf_keyset_not_null(codec->kind);
	RfKeySet   *hi = lo;

	if (!PG_ARGISNULL(1) && !PG_ARGISNULL(2) &&
		!rf_codec_ordered(codec, index->rd_indcollation[0]) &&
		rf_same_bounds(type, PG_GETARG_DATUM(1), PG_GETARG_DATUM(2)))
		return rf_bound_set(index, BTEqualStrategyNumber, type,
							PG_GETARG_DATUM(1));
	if (!PG_ARGISNULL(1))
		lo = rf_bound_set(index, BTGreaterEqualStrategyNumber, type,
						  PG_GETARG_DATUM(1));
	if (!PG_ARGISNULL(2))
		hi = rf_bound_set(index, BTLessEqualStrategyNumber, type,
						  PG_GETARG_DATUM(2));
	return lo == NULL || hi == NULL ? NULL : rf_keyset_intersect(lo, hi);
}

/*
 * Takes a row apart.
 */
static void
rf_take_row(Datum datum, RfBoundRow *row)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(datum);
	TupleDesc	desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header),
											  HeapTupleHeaderGetTypMod(header));
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header),
	.t_data = header};
	bool		isnull[MaxTupleAttributeNumber];

	heap_deform_tuple(&tuple, desc, row->values, isnull);
	for (row->nfields = 0; row->nfields < desc->natts; row->nfields++)
	{
		if (isnull[row->nfields])
			break;
		row->types[row->nfields] = TupleDescAttr(desc, row->nfields)->atttypid;
	}
	ReleaseTupleDesc(desc);
}

/*
 * Appends the encoding of a row's field to that of the fields before it.
 */
static void
rf_put_field(Relation index, const RfBoundRow *row, int i, StringInfo prefix)
{
	const RfRowFormat *format = rf_index_codec(index)->row;
	const RfCodec *codec = format->columns[i].codec;
	Datum		value = row->values[i];
	RfKey		key;

	if (rf_codec_under(row->types[i], index->rd_indcollation[i]) != codec)
		value = rf_convert_bound(index, i, row->types[i], value);
	key = rf_encode(codec, value);
	rf_row_put_key(format, i, &key, prefix);
}

/*
 * The encoding of a bound that is a row.
 */
static StringInfo
rf_bound_prefix(Relation index, const RfBoundRow *row)
{
	StringInfo	prefix = makeStringInfo();

	if (row->nfields > rf_index_codec(index)->row->ncolumns)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("bound has %d fields, but index \"%s\" has %d key columns",
						row->nfields, RelationGetRelationName(index),
						rf_index_codec(index)->row->ncolumns)));
	for (int i = 0; i < row->nfields; i++)
		rf_put_field(index, row, i, prefix);
	return prefix;
}

/*
 * Do keys sort as rows do, in all columns in which rows between the bounds
 * differ?  Columns in which both bounds are the same need no order.
 */
static bool
rf_rows_ordered(Relation index, const RfBoundRow *lo, const RfBoundRow *hi)
{
	const RfRowFormat *format = rf_index_codec(index)->row;
	StringInfo	lo_prefix = makeStringInfo();
	StringInfo	hi_prefix = makeStringInfo();

	for (int i = 0; i < Max(lo->nfields, hi->nfields); i++)
	{
		if (i < lo->nfields)
			rf_put_field(index, lo, i, lo_prefix);
		if (i < hi->nfields)
			rf_put_field(index, hi, i, hi_prefix);
		if ((lo_prefix->len != hi_prefix->len ||
			 memcmp(lo_prefix->data, hi_prefix->data, lo_prefix->len) != 0) &&
			!rf_codec_ordered(format->columns[i].codec,
							  index->rd_indcollation[i]))
			return false;
	}
	return true;
}

/*
 * The keys between arguments 1 and 2 of the call, which are rows.
 */
static RfKeySet *
rf_rows_set(FunctionCallInfo fcinfo, Relation index)
{
	const RfCodec *codec = rf_index_codec(index);
	RfKeySet   *set;
	RfBoundRow *lo = palloc0(sizeof(RfBoundRow));
	RfBoundRow *hi = palloc0(sizeof(RfBoundRow));
	RfRange		range = {.lo_inf = true,.hi_inf = true};
	RfRange		end;
	StringInfo	prefix;

	if (!PG_ARGISNULL(1))
		rf_take_row(PG_GETARG_DATUM(1), lo);
	if (!PG_ARGISNULL(2))
		rf_take_row(PG_GETARG_DATUM(2), hi);
	prefix = rf_bound_prefix(index, lo);
	rf_row_prefix_range(codec->row, prefix->data, prefix->len, &end);
	range.lo = end.lo;
	range.lo_inf = end.lo_inf;
	prefix = rf_bound_prefix(index, hi);
	rf_row_prefix_range(codec->row, prefix->data, prefix->len, &end);
	range.hi = end.hi;
	range.hi_inf = end.hi_inf;
	range.hi_excl = end.hi_excl;
	if (!rf_rows_ordered(index, lo, hi))
		return NULL;

	/*
	 * As with other bounds, rows with NULL in the first column do not count.
	 */
	set = rf_keyset_not_null(codec->row->columns[0].codec->kind);
	return rf_keyset_intersect(rf_keyset_range(RF_KEY_BYTES, &range),
							   rf_row_set(codec, &set, 1, NULL));
}

/*
 * The keys between the arguments; in an index of several columns, those of all
 * rows whose first columns are between the bounds.  NULL if the index cannot
 * be asked for such a range.
 */
RfKeySet *
rf_argument_set(FunctionCallInfo fcinfo, Relation index)
{
	const RfCodec *codec = rf_index_codec(index);
	RfKeySet   *set;

	if (codec->row == NULL)
		return rf_column_set(fcinfo, index);
	if (type_is_rowtype(get_fn_expr_argtype(fcinfo->flinfo, 1)))
		return rf_rows_set(fcinfo, index);
	set = rf_column_set(fcinfo, index);
	return set == NULL ? NULL : rf_row_set(codec, &set, 1, NULL);
}
