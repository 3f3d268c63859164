/*-------------------------------------------------------------------------
 *
 * rfbounds.c
 *	  The bounds that rangefilter_may_contain() is called with as a set of keys.
 *
 * Arguments 1 and 2 of the call are values of the index's first column; NULL means no bound.
 * They may have another type than the column.  A type that the operator family does not compare
 * is converted.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "functions/rffuncs.h"
#include "key/rowkey.h"
#include "parser/parse_coerce.h"
#include "rangefilter/page/page.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

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
 * Returns the type of an index's first column as its operator class compares it.  That of enum
 * types stands for all of them: then it is the column's own.
 */
static Oid
rf_bound_type(Relation index)
{
	Oid			type = index->rd_opcintype[0];

	return type != ANYENUMOID ? type :
		getBaseType(TupleDescAttr(RelationGetDescr(index), 0)->atttypid);
}

/*
 * Converts a value to the type of an index's first column: by an implicit cast, as queries do,
 * else through its text form.  Casts of users are not called: the caller may have no right to.
 */
static Datum
rf_convert_bound(Relation index, Oid type, Datum value)
{
	Oid			to = rf_bound_type(index);
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
 * Return true if many keys of the first column may equal one bound of this type, so that no key
 * can be put in its place.  Many numerics equal a floating-point number, and many strings a citext.
 */
static bool
rf_equals_many(Relation index, Oid type)
{
	type = getBaseType(type);
	return (index->rd_opcintype[0] == NUMERICOID &&
			(type == FLOAT4OID || type == FLOAT8OID)) ||
		(type != index->rd_opcintype[0] && rf_has_other_operators(index, 0));
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
	if (rf_equals_many(index, type))
		return NULL;
	if (set == NULL && type != rf_bound_type(index))
		set = rf_codec_compare(codec, collation, strategy,
							   index->rd_opcintype[0],
							   rf_convert_bound(index, type, value));
	return set;
}

/*
 * Return true if both bounds are the same value, as text.
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
 * Returns the keys between arguments 1 and 2 of the call; in an index on several columns, those of
 * all rows whose first column is between them.  Returns NULL if the index cannot be asked for
 * such a range.  Raises an error if the bounds are rows.
 */
RfKeySet *
rf_argument_set(FunctionCallInfo fcinfo, Relation index)
{
	const RfCodec *codec = rf_index_codec(index);
	RfKeySet   *set;

	if (type_is_rowtype(get_fn_expr_argtype(fcinfo->flinfo, 1)))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("bounds must be values of the first column of index \"%s\", not rows",
						RelationGetRelationName(index))));
	set = rf_column_set(fcinfo, index);
	return set == NULL || codec->row == NULL ? set : rf_row_set(codec, &set, 1, NULL);
}
