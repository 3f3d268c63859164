/*-------------------------------------------------------------------------
 *
 * rf_keytest.c
 *	  SQL functions that show what codecs and key sets do.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "filter/filter.h"
#include "fmgr.h"
#include "key/codec.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/numeric.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(rf_key);
PG_FUNCTION_INFO_V1(rf_key_show);
PG_FUNCTION_INFO_V1(rf_key_show_bytes);
PG_FUNCTION_INFO_V1(rf_key_matches);
PG_FUNCTION_INFO_V1(rf_key_set);
PG_FUNCTION_INFO_V1(rf_key_starts_with);
PG_FUNCTION_INFO_V1(rf_key_prefix_set);
PG_FUNCTION_INFO_V1(rf_key_codec_id);
PG_FUNCTION_INFO_V1(rf_key_ordered);
PG_FUNCTION_INFO_V1(rf_float4);
PG_FUNCTION_INFO_V1(rf_float8);
PG_FUNCTION_INFO_V1(rf_numeric);

/*
 * The codec of a type under a collation, or an error.
 */
static const RfCodec *
codec_of(Oid type, Oid collation)
{
	const RfCodec *codec = rf_codec_under(type, collation);

	if (codec == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("no codec for type %s", format_type_be(type))));
	return codec;
}

/*
 * The type of an argument declared "any".
 */
static Oid
argument_type(FunctionCallInfo fcinfo, int argument)
{
	return getBaseType(get_fn_expr_argtype(fcinfo->flinfo, argument));
}

/*
 * A key as bytea.
 */
static bytea *
key_bytes(const RfCodec *codec, const RfKey *key)
{
	uint32		len = codec->kind == RF_KEY_U64 ? sizeof(uint64) : key->len;
	bytea	   *result = palloc(VARHDRSZ + len);
	uint32		i;

	SET_VARSIZE(result, VARHDRSZ + len);
	if (codec->kind == RF_KEY_BYTES)
		memcpy(VARDATA(result), key->data, len);
	else
	{
		for (i = 0; i < len; i++)
			VARDATA(result)[i] = (char) (key->num >> (56 - 8 * i));
	}
	return result;
}

/*
 * Is a key in a set?
 */
static bool
set_contains(const RfKeySet *set, const RfKey *key)
{
	int			i;

	for (i = 0; i < set->nranges; i++)
	{
		const RfRange *range = &set->ranges[i];
		int			order;

		if (!range->lo_inf && rf_key_compare(set->kind, key, &range->lo) < 0)
			continue;
		if (range->hi_inf)
			return true;
		order = rf_key_compare(set->kind, key, &range->hi);
		if (order < 0 || (order == 0 && !range->hi_excl))
			return true;
	}
	return false;
}

/*
 * A set as text.
 */
static char *
set_text(const RfCodec *codec, const RfKeySet *set)
{
	StringInfoData shown;
	int			i;

	initStringInfo(&shown);
	for (i = 0; i < set->nranges; i++)
	{
		const RfRange *range = &set->ranges[i];

		appendStringInfo(&shown, "%s%s%s, %s%s",
						 i > 0 ? " " : "",
						 range->lo_inf ? "(" : "[",
						 range->lo_inf ? "" : codec->show(&range->lo),
						 range->hi_inf ? "" : codec->show(&range->hi),
						 range->hi_inf || range->hi_excl ? ")" : "]");
	}
	if (set->nulls)
		appendStringInfoString(&shown, " null");
	return set->nranges + set->nulls == 0 ? "nothing" : shown.data;
}

/*
 * Text as a datum, checked to be valid in the database's encoding.
 */
static Datum
checked_text(char *shown)
{
	if (shown == NULL)
		elog(ERROR, "no text for a key");
	pg_verifymbstr(shown, strlen(shown), false);
	return CStringGetTextDatum(shown);
}

Datum
rf_key(PG_FUNCTION_ARGS)
{
	const RfCodec *codec = codec_of(argument_type(fcinfo, 0),
									PG_GET_COLLATION());
	RfKey		key = rf_encode(codec, PG_GETARG_DATUM(0));

	if (codec->kind == RF_KEY_BYTES && key.len > FILTER_MAX_KEY)
		elog(ERROR, "key has %u bytes", key.len);
	if (codec->collatable &&
		GetMemoryChunkSpace(unconstify(uint8 *, key.data)) > 4 * FILTER_MAX_KEY)
		elog(ERROR, "key takes %zu bytes of memory",
			 GetMemoryChunkSpace(unconstify(uint8 *, key.data)));
	PG_RETURN_BYTEA_P(key_bytes(codec, &key));
}

Datum
rf_key_show(PG_FUNCTION_ARGS)
{
	const RfCodec *codec = codec_of(argument_type(fcinfo, 0),
									PG_GET_COLLATION());
	RfKey		key = rf_encode(codec, PG_GETARG_DATUM(0));

	PG_RETURN_DATUM(checked_text(codec->show(&key)));
}

Datum
rf_key_show_bytes(PG_FUNCTION_ARGS)
{
	const RfCodec *codec = codec_of(PG_GETARG_OID(0), InvalidOid);
	bytea	   *bytes = PG_GETARG_BYTEA_PP(1);
	RfKey		key = {0};
	uint32		i;

	key.len = Min(VARSIZE_ANY_EXHDR(bytes), FILTER_MAX_KEY);
	key.data = (const uint8 *) VARDATA_ANY(bytes);
	for (i = 0; i < Min(key.len, sizeof(uint64)); i++)
		key.num = key.num << 8 | key.data[i];
	PG_RETURN_DATUM(checked_text(codec->show(&key)));
}

Datum
rf_key_matches(PG_FUNCTION_ARGS)
{
	const RfCodec *codec = codec_of(argument_type(fcinfo, 0),
									PG_GETARG_OID(3));
	RfKeySet   *set;
	RfKey		key;

	set = rf_codec_compare(codec, PG_GETARG_OID(3), PG_GETARG_INT32(1),
						   argument_type(fcinfo, 2), PG_GETARG_DATUM(2));
	if (set == NULL)
		PG_RETURN_NULL();
	if (set->kind != codec->kind || set->nulls)
		elog(ERROR, "comparison gave an impossible set");
	key = rf_encode(codec, PG_GETARG_DATUM(0));
	PG_RETURN_BOOL(set_contains(set, &key));
}

Datum
rf_key_set(PG_FUNCTION_ARGS)
{
	const RfCodec *codec = codec_of(PG_GETARG_OID(0), PG_GETARG_OID(3));
	RfKeySet   *set;

	set = rf_codec_compare(codec, PG_GETARG_OID(3), PG_GETARG_INT32(1),
						   argument_type(fcinfo, 2), PG_GETARG_DATUM(2));
	if (set == NULL)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(checked_text(set_text(codec, set)));
}

Datum
rf_key_starts_with(PG_FUNCTION_ARGS)
{
	const RfCodec *codec = codec_of(argument_type(fcinfo, 0), InvalidOid);
	bytea	   *prefix = PG_GETARG_BYTEA_PP(1);
	RfKeySet   *set;
	RfKey		key;

	set = rf_codec_prefix(codec, VARDATA_ANY(prefix),
						  VARSIZE_ANY_EXHDR(prefix));
	if (set == NULL)
		PG_RETURN_NULL();
	key = rf_encode(codec, PG_GETARG_DATUM(0));
	PG_RETURN_BOOL(set_contains(set, &key));
}

Datum
rf_key_prefix_set(PG_FUNCTION_ARGS)
{
	const RfCodec *codec = codec_of(PG_GETARG_OID(0), InvalidOid);
	bytea	   *prefix = PG_GETARG_BYTEA_PP(1);
	RfKeySet   *set;

	set = rf_codec_prefix(codec, VARDATA_ANY(prefix),
						  VARSIZE_ANY_EXHDR(prefix));
	if (set == NULL)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(checked_text(set_text(codec, set)));
}

Datum
rf_key_codec_id(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(codec_of(PG_GETARG_OID(0), InvalidOid)->id);
}

Datum
rf_key_ordered(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(rf_codec_ordered(codec_of(PG_GETARG_OID(0),
											 PG_GETARG_OID(1)),
									PG_GETARG_OID(1)));
}

Datum
rf_float4(PG_FUNCTION_ARGS)
{
	int32		bits = PG_GETARG_INT32(0);
	float4		value;

	memcpy(&value, &bits, sizeof(value));
	PG_RETURN_FLOAT4(value);
}

Datum
rf_float8(PG_FUNCTION_ARGS)
{
	int64		bits = PG_GETARG_INT64(0);
	float8		value;

	memcpy(&value, &bits, sizeof(value));
	PG_RETURN_FLOAT8(value);
}

/*
 * Digits to the base 10000 are the last thing in a numeric, two bytes each.
 */
Datum
rf_numeric(PG_FUNCTION_ARGS)
{
	Numeric		number = PG_GETARG_NUMERIC_COPY(0);
	int			place = PG_GETARG_INT32(1);

	memset((char *) number + VARSIZE(number) - 2 * (place + 1), 0, 2);
	PG_RETURN_NUMERIC(number);
}
