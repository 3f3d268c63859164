/*-------------------------------------------------------------------------
 *
 * pattern.c
 *	  LIKE, prefixes, and ranges that contain a column, as sets of keys.
 *
 * LIKE and ^@ compare bytes under every deterministic collation.  The keys of
 * strings are their bytes, except under collations of ICU, whose sort keys do
 * not tell how strings begin.  The clause's collation need not be the index's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "planner/condition/condition.h"
#include "planner/knowledge/knowledge.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rangetypes.h"
#include "utils/typcache.h"

/*
 * The bytes a LIKE pattern starts with, unescaped, up to its first wildcard.
 * *exact: there is none.  False for a pattern LIKE does not accept.
 */
static bool
like_prefix(const char *pattern, int len, StringInfo prefix, bool *exact)
{
	*exact = false;
	for (int i = 0; i < len; i++)
	{
		if (pattern[i] == '%' || pattern[i] == '_')
			return true;
		if (pattern[i] == '\\' && ++i == len)
			return false;
		appendStringInfoCharMacro(prefix, pattern[i]);
	}
	*exact = true;
	return true;
}

/*
 * The keys of strings that equal the given bytes.
 */
static RfKeySet *
string_set(const RfIndexColumn *column, StringInfo bytes)
{
	Oid			type = column->codec->type;

	if (type == NAMEOID)
		type = TEXTOID;
	return rf_codec_compare(column->codec, column->collation,
							BTEqualStrategyNumber, type,
							PointerGetDatum(cstring_to_text_with_len(bytes->data,
																	 bytes->len)));
}

/*
 * The type of an index's keys that a function compares with a pattern; InvalidOid for
 * other functions.
 */
static Oid
pattern_type(Oid function)
{
	switch (function)
	{
		case F_TEXTLIKE:
		case F_STARTS_WITH:
			return TEXTOID;
		case F_BPCHARLIKE:
			return BPCHAROID;
		case F_NAMELIKE:
			return NAMEOID;
		case F_BYTEALIKE:
			return BYTEAOID;
		default:
			return InvalidOid;
	}
}

/*
 * Does the string operator apply to the index's strings, and does its collation equate
 * strings by their bytes?  Equal bytes have equal keys under every collation of the index.
 */
static bool
pattern_fits(const RfIndexColumn *column, Oid function, Oid collation)
{
	Oid			type = column->codec->type;

	if (type != pattern_type(function))
		return false;
	return type == BYTEAOID ||
		(OidIsValid(collation) && get_collation_isdeterministic(collation));
}

/*
 * Can the index be asked for a prefix?  For a pattern that is not known yet;
 * it is assumed to have wildcards.
 */
bool
rf_prefix_fits(const RfIndexColumn *column, Oid function, Oid collation)
{
	return column->codec->collator == NULL &&
		pattern_fits(column, function, collation);
}

/*
 * The keys of "function(key, pattern)", the function being one behind LIKE or
 * ^@; NULL for any other, and where the pattern has no fixed start.
 */
RfKeySet *
rf_pattern_set(const RfIndexColumn *column, Oid function, Oid collation,
			   Datum pattern)
{
	text	   *value;
	StringInfoData prefix;
	bool		exact = false;

	if (!pattern_fits(column, function, collation))
		return NULL;
	value = DatumGetTextPP(pattern);
	initStringInfo(&prefix);
	if (function == F_STARTS_WITH)
		appendBinaryStringInfo(&prefix, VARDATA_ANY(value),
							   VARSIZE_ANY_EXHDR(value));
	else if (!like_prefix(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value),
						  &prefix, &exact))
		return NULL;
	if (exact)
		return string_set(column, &prefix);
	if (prefix.len == 0)
		return NULL;
	return rf_codec_prefix(column->codec, prefix.data, prefix.len);
}

/*
 * The keys on one side of a bound of a range.  All types of bounds have an order.
 */
static RfKeySet *
bound_set(const RfIndexColumn *column, Oid type, const RangeBound *bound)
{
	int			strategy;

	if (bound->infinite)
		return rf_keyset_not_null(column->codec->kind);
	if (bound->lower)
		strategy = bound->inclusive ?
			BTGreaterEqualStrategyNumber : BTGreaterStrategyNumber;
	else
		strategy = bound->inclusive ?
			BTLessEqualStrategyNumber : BTLessStrategyNumber;
	return rf_codec_compare(column->codec, column->collation, strategy, type,
							bound->val);
}

/*
 * The keys of "key <@ range".  Only for the built-in range types: other ones
 * may have another order.
 */
RfKeySet *
rf_within_range_set(const RfIndexColumn *column, Oid type, Datum value)
{
	TypeCacheEntry *typcache;
	RangeBound	lower;
	RangeBound	upper;
	bool		empty;
	Oid			element;

	switch (type)
	{
		case INT4RANGEOID:
		case INT8RANGEOID:
		case NUMRANGEOID:
		case DATERANGEOID:
		case TSRANGEOID:
		case TSTZRANGEOID:
			break;
		default:
			return NULL;
	}
	typcache = lookup_type_cache(type, TYPECACHE_RANGE_INFO);
	element = typcache->rngelemtype->type_id;
	if (element != column->codec->type)
		return NULL;
	range_deserialize(typcache, DatumGetRangeTypeP(value),
					  &lower, &upper, &empty);
	if (empty)
		return rf_keyset_empty(column->codec->kind);
	return rf_keyset_intersect(bound_set(column, element, &lower),
							   bound_set(column, element, &upper));
}
