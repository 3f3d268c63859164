/*-------------------------------------------------------------------------
 *
 * row_check.c
 *	  SQL functions that show what the encoding of rows does.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_collation_d.h"
#include "filter/filter.h"
#include "fmgr.h"
#include "key/rowkey.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(rf_row_key);
PG_FUNCTION_INFO_V1(rf_row_show_sql);
PG_FUNCTION_INFO_V1(rf_row_show_bytes);
PG_FUNCTION_INFO_V1(rf_row_reads_back);
PG_FUNCTION_INFO_V1(rf_row_matches);

/* A row among a function's arguments. */
typedef struct Row
{
	RfRowFormat format;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
} Row;

/*
 * Takes the arguments from the given one on, as many as there are flags.
 */
static void
take_row(FunctionCallInfo fcinfo, bool whole, const char *flags, int first,
		 Row *row)
{
	memset(row, 0, sizeof(*row));
	row->format.whole = whole;
	row->format.ncolumns = strlen(flags);
	if (row->format.ncolumns > INDEX_MAX_KEYS ||
		first + row->format.ncolumns > PG_NARGS())
		elog(ERROR, "too few arguments");
	for (int i = 0; i < row->format.ncolumns; i++)
	{
		RfRowColumn *column = &row->format.columns[i];
		Oid			type = get_fn_expr_argtype(fcinfo->flinfo, first + i);

		column->codec = rf_codec_under(getBaseType(type),
									   PG_GET_COLLATION());
		if (column->codec == NULL)
			elog(ERROR, "no codec for type %s", format_type_be(type));
		column->desc = flags[i] == 'd' || flags[i] == 'D';
		column->nulls_first = flags[i] == 'A' || flags[i] == 'D';
		row->values[i] = PG_GETARG_DATUM(first + i);
		row->isnull[i] = PG_ARGISNULL(first + i);
	}
}

/*
 * The key of a row, checked for what holds for all.
 */
static RfKey
row_key(const Row *row)
{
	StringInfo	buffer = makeStringInfo();
	RfKey		key = {0};

	(void) rf_row_encode(&row->format, row->values, row->isnull, buffer);
	if (!row->format.whole && buffer->len > FILTER_MAX_KEY)
		elog(ERROR, "key has %d bytes", buffer->len);
	key.data = (const uint8 *) buffer->data;
	key.len = buffer->len;
	return key;
}

/*
 * A key as bytea.
 */
static bytea *
key_bytea(const RfKey *key)
{
	bytea	   *result = palloc(VARHDRSZ + key->len);

	SET_VARSIZE(result, VARHDRSZ + key->len);
	memcpy(VARDATA(result), key->data, key->len);
	return result;
}

Datum
rf_row_key(PG_FUNCTION_ARGS)
{
	Row			row;
	RfKey		key;

	take_row(fcinfo, PG_GETARG_BOOL(0), text_to_cstring(PG_GETARG_TEXT_PP(1)),
			 2, &row);
	key = row_key(&row);
	PG_RETURN_BYTEA_P(key_bytea(&key));
}

/*
 * A key of rows of this format as text.
 */
static text *
show_row(const RfRowFormat *format, const RfKey *key)
{
	RfCodec		codec = {.row = format};

	return cstring_to_text(rf_show_key(&codec, key));
}

Datum
rf_row_show_sql(PG_FUNCTION_ARGS)
{
	Row			row;
	RfKey		key;

	take_row(fcinfo, PG_GETARG_BOOL(0), text_to_cstring(PG_GETARG_TEXT_PP(1)),
			 2, &row);
	key = row_key(&row);
	PG_RETURN_TEXT_P(show_row(&row.format, &key));
}

Datum
rf_row_show_bytes(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(1);
	RfKey		key = {0};
	Row			row;

	take_row(fcinfo, false, text_to_cstring(PG_GETARG_TEXT_PP(0)), 2, &row);
	key.data = memcpy(palloc(VARSIZE_ANY_EXHDR(bytes)), VARDATA_ANY(bytes),
					  VARSIZE_ANY_EXHDR(bytes));
	key.len = VARSIZE_ANY_EXHDR(bytes);
	PG_RETURN_TEXT_P(show_row(&row.format, &key));
}

/*
 * Is what was got from a row's key the key of this value?
 */
static bool
same_part(const RfCodec *codec, RfRowPart part, const RfKey *got, Datum value,
		  bool isnull)
{
	RfKey		key;

	if (isnull || part != RF_ROW_VALUE)
		return isnull && part == RF_ROW_NULL;
	key = rf_encode_whole(codec, value);
	return rf_key_compare(codec->kind, got, &key) == 0;
}

Datum
rf_row_reads_back(PG_FUNCTION_ARGS)
{
	Row			row;
	RfKey		key;
	const uint8 *at;

	take_row(fcinfo, true, text_to_cstring(PG_GETARG_TEXT_PP(0)), 1, &row);
	key = row_key(&row);
	at = key.data;
	for (int i = 0; i < row.format.ncolumns; i++)
	{
		RfKey		got;
		RfRowPart	part = rf_row_get(&row.format, i, &at, key.data + key.len,
									  &got);

		if (!same_part(row.format.columns[i].codec, part, &got, row.values[i],
					   row.isnull[i]))
			PG_RETURN_BOOL(false);
	}
	PG_RETURN_BOOL(at == key.data + key.len);
}

/*
 * Is a key in a range?
 */
static bool
in_range(const RfRange *range, const RfKey *key)
{
	int			order;

	if (!range->lo_inf &&
		rf_key_compare(RF_KEY_BYTES, key, &range->lo) < 0)
		return false;
	if (range->hi_inf)
		return true;
	order = rf_key_compare(RF_KEY_BYTES, key, &range->hi);
	return order < 0 || (order == 0 && !range->hi_excl);
}

/*
 * The encodings of a row's first columns.
 */
static StringInfo
row_prefix(const Row *row, int columns)
{
	StringInfo	prefix = makeStringInfo();

	for (int i = 0; i < columns; i++)
	{
		const RfCodec *codec = row->format.columns[i].codec;
		RfKey		key;

		if (row->isnull[i])
		{
			rf_row_put_null(&row->format, i, prefix);
			continue;
		}
		key = row->format.whole ? rf_encode_whole(codec, row->values[i]) :
			rf_encode(codec, row->values[i]);
		rf_row_put_key(&row->format, i, &key, prefix);
	}
	return prefix;
}

Datum
rf_row_matches(PG_FUNCTION_ARGS)
{
	bool		whole = PG_GETARG_BOOL(0);
	char	   *flags = text_to_cstring(PG_GETARG_TEXT_PP(1));
	int			columns = PG_GETARG_INT32(2);
	int			strategy = PG_GETARG_INT32(3);
	Row			row;
	Row			other;
	StringInfo	prefix;
	RfKey		key;
	RfRange		range;
	RfKeySet   *set;

	take_row(fcinfo, whole, flags, 4, &row);
	take_row(fcinfo, whole, flags, 4 + strlen(flags), &other);
	key = row_key(&row);
	prefix = row_prefix(&other, columns);
	if (strategy == 0)
	{
		rf_row_prefix_range(&row.format, prefix->data, prefix->len, &range);
		PG_RETURN_BOOL(in_range(&range, &key));
	}
	if (other.isnull[columns])
		PG_RETURN_BOOL(false);
	set = (whole ? rf_codec_compare_whole : rf_codec_compare)
		(other.format.columns[columns].codec, C_COLLATION_OID, strategy,
		 get_fn_expr_argtype(fcinfo->flinfo, 4 + strlen(flags) + columns),
		 other.values[columns]);
	if (set == NULL)
		PG_RETURN_NULL();
	for (int i = 0; i < set->nranges; i++)
	{
		rf_row_range(&row.format, prefix->data, prefix->len, columns,
					 &set->ranges[i], &range);
		if (in_range(&range, &key))
			PG_RETURN_BOOL(true);
	}
	PG_RETURN_BOOL(false);
}
