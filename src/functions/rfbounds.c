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
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "functions/rffuncs.h"
#include "key/rowkey.h"
#include "parser/parse_coerce.h"
#include "rangefilter/page/page.h"
#include "utils/guc.h"
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
 * Converts a value to another type through its text form, in which no digit is missing.
 */
static Datum
rf_convert_text(Oid from, Oid to, Datum value)
{
	int			level = NewGUCNestLevel();
	Oid			function;
	Oid			ioparam;
	bool		is_varlena;
	char	   *text;

	(void) set_config_option("extra_float_digits", "3", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	getTypeOutputInfo(from, &function, &is_varlena);
	text = OidOutputFunctionCall(function, value);

	AtEOXact_GUC(true, level);

	getTypeInputInfo(to, &function, &ioparam);
	return OidInputFunctionCall(function, text, ioparam, -1);
}

/*
 * The type of an index's column as its operator class compares it.  That of enum types is for all of
 * them: it is the column's own then.
 */
static Oid
rf_column_type(Relation index, int column)
{
	Oid			type = index->rd_opcintype[column];

	return type != ANYENUMOID ? type :
		getBaseType(TupleDescAttr(RelationGetDescr(index), column)->atttypid);
}

/*
 * Converts a value to the type of an index's column: by an implicit cast, as queries do, else
 * through its text form.  Casts of users are not called: the caller may have no right to.
 */
static Datum
rf_convert_bound(Relation index, int column, Oid type, Datum value)
{
	Oid			to = rf_column_type(index, column);
	Oid			function;

	switch (find_coercion_pathway(to, type, COERCION_IMPLICIT, &function))
	{
		case COERCION_PATH_RELABELTYPE:
			return value;
		case COERCION_PATH_FUNC:
			return get_func_nargs(function) == 1 && function < FirstNormalObjectId ?
				OidFunctionCall1(function, value) :
				rf_convert_text(type, to, value);
		default:
			return rf_convert_text(type, to, value);
	}
}

/*
 * Is a converted value certainly the same as the one before?  Else it may be rounded, to a
 * value next to it.
 */
static bool
rf_is_exact(Relation index, int column, Oid type, Datum value, Datum converted)
{
	Oid			to = rf_column_type(index, column);
	Oid			equal = get_opfamily_member(index->rd_opfamily[column], to, type,
											BTEqualStrategyNumber);
	Oid			function;

	if (OidIsValid(equal))
		return DatumGetBool(OidFunctionCall2Coll(get_opcode(equal), index->rd_indcollation[column],
												 converted, value));
	if (type == TEXTOID || type == UNKNOWNOID)
		return to != BPCHAROID;
	return to != FLOAT4OID && to != FLOAT8OID &&
		find_coercion_pathway(to, type, COERCION_IMPLICIT, &function) != COERCION_PATH_NONE;
}

/*
 * May many keys of a column equal one bound of this type, so that no key can be put in its place?
 * Many numerics equal a floating-point number, and many strings a citext.
 */
static bool
rf_equals_many(Relation index, int column, Oid type)
{
	type = getBaseType(type);
	return (index->rd_opcintype[column] == NUMERICOID &&
			(type == FLOAT4OID || type == FLOAT8OID)) ||
		(type != index->rd_opcintype[column] && rf_has_other_operators(index, column));
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

	/*
	 * Values between a bound and the one to which it is rounded do not exist,
	 * or are let in.
	 */
	if (rf_equals_many(index, 0, type))
		return NULL;
	if (set == NULL && type != rf_column_type(index, 0))
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
 * Takes a row apart.  Columns that its table had are no fields.
 */
static void
rf_take_row(Datum datum, RfBoundRow *row)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(datum);
	TupleDesc	desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header),
											  HeapTupleHeaderGetTypMod(header));
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header),
	.t_data = header};
	Datum		values[MaxTupleAttributeNumber];
	bool		isnull[MaxTupleAttributeNumber];

	heap_deform_tuple(&tuple, desc, values, isnull);
	row->nfields = 0;
	for (int i = 0; i < desc->natts; i++)
	{
		if (TupleDescAttr(desc, i)->attisdropped)
			continue;
		if (isnull[i])
			break;
		row->types[row->nfields] = TupleDescAttr(desc, i)->atttypid;
		row->values[row->nfields++] = values[i];
	}
	ReleaseTupleDesc(desc);
}

/*
 * Appends the encoding of a row's field to that of the fields before it.  If the field is rounded,
 * the row ends there, as those behind it are compared only where it is the same; if many values of
 * the column equal it, before it.
 */
static void
rf_put_field(Relation index, RfBoundRow *row, int i, StringInfo prefix)
{
	const RfRowFormat *format = rf_index_codec(index)->row;
	const RfCodec *codec = format->columns[i].codec;
	Datum		value = row->values[i];
	RfKey		key;

	if (rf_equals_many(index, i, row->types[i]))
	{
		row->nfields = i;
		return;
	}
	if (rf_codec_under(row->types[i], index->rd_indcollation[i]) != codec)
	{
		value = rf_convert_bound(index, i, row->types[i], value);
		if (!rf_is_exact(index, i, row->types[i], row->values[i], value))
			row->nfields = i + 1;
	}
	key = rf_encode(codec, value);
	if (key.unordered)
		row->nfields = i;
	else
		rf_row_put_key(format, i, &key, prefix);
}

/*
 * Errors out if a bound has more fields than the index has columns.
 */
static void
rf_check_fields(Relation index, const RfBoundRow *row)
{
	int			ncolumns = rf_index_codec(index)->row->ncolumns;

	if (row->nfields > ncolumns)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("bound has %d fields, but index \"%s\" has %d key columns",
						row->nfields, RelationGetRelationName(index), ncolumns)));
}

/*
 * Encodes two bounds that are rows.  False where keys do not sort as rows do in a column
 * in which rows between the bounds differ.  (One in which both bounds are the same needs no
 * order.)
 */
static bool
rf_put_rows(Relation index, RfBoundRow *lo, StringInfo lo_prefix, RfBoundRow *hi,
			StringInfo hi_prefix)
{
	const RfRowFormat *format = rf_index_codec(index)->row;

	for (int i = 0; i < Max(lo->nfields, hi->nfields); i++)
	{
		if (i < lo->nfields)
			rf_put_field(index, lo, i, lo_prefix);
		if (i < hi->nfields)
			rf_put_field(index, hi, i, hi_prefix);

		/* Both rows may end before this field now, see rf_put_field(). */
		if (i < Max(lo->nfields, hi->nfields) &&
			(lo_prefix->len != hi_prefix->len ||
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
	StringInfo	lo_prefix = makeStringInfo();
	StringInfo	hi_prefix = makeStringInfo();
	RfRange		range;
	RfRange		end;

	if (!PG_ARGISNULL(1))
		rf_take_row(PG_GETARG_DATUM(1), lo);
	if (!PG_ARGISNULL(2))
		rf_take_row(PG_GETARG_DATUM(2), hi);
	rf_check_fields(index, lo);
	rf_check_fields(index, hi);
	if (!rf_put_rows(index, lo, lo_prefix, hi, hi_prefix))
		return NULL;
	rf_row_prefix_range(codec->row, lo_prefix->data, lo_prefix->len, &range);
	rf_row_prefix_range(codec->row, hi_prefix->data, hi_prefix->len, &end);
	range.hi = end.hi;
	range.hi_inf = end.hi_inf;
	range.hi_excl = end.hi_excl;

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
