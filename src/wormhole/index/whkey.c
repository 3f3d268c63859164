/*-------------------------------------------------------------------------
 *
 * whkey.c
 *	  Keys from rows, and rows from keys.
 *
 * The key columns become one byte string (key/rowkey.h).  An index-only scan
 * needs the values back.  For most types the key is enough, strings under
 * deterministic collations of ICU included (key/codec_icu.c).  If equal values
 * can differ (numeric 1.0 and 1.00, float -0.0), and for INCLUDE columns, the
 * entry has a payload.  This is an index tuple without its TID, in which the
 * columns that the key gives back are null.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "compat.h"
#include "key/codec_impl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/datum.h"
#include "utils/inet.h"
#include "utils/uuid.h"
#include "wormhole/index/whindex.h"

/* The beginning of an index tuple that a payload leaves out: the TID. */
#define PAYLOAD_SKIP	offsetof(IndexTupleData, t_info)

/*
 * Can values be had from keys under this codec?
 */
WhDecode
wh_decode_kind(const RfCodec *codec)
{
	if (codec->collator != NULL && !rf_codec_has_string(codec))
		return WH_DECODE_NEVER;
	switch (codec->type)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case DATEOID:
		case TIMEOID:
		case MONEYOID:
		case BOOLOID:
		case MACADDROID:
		case MACADDR8OID:
		case UUIDOID:
		case TEXTOID:
		case BYTEAOID:
		case NAMEOID:
			return WH_DECODE_ALWAYS;
		case FLOAT4OID:
		case FLOAT8OID:
			return WH_DECODE_VERIFY;
		default:
			return WH_DECODE_NEVER;
	}
}

/*
 * Makes the cache of an index's definition.  Raises an error for a column
 * without a key encoding.
 */
static WhCache *
make_cache(Relation index)
{
	WhCache    *cache = MemoryContextAllocZero(index->rd_indexcxt,
											   sizeof(WhCache));
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);

	cache->format.whole = true;
	cache->format.ncolumns = nkeys;
	cache->may_have_payload = IndexRelationGetNumberOfAttributes(index) > nkeys;
	for (int i = 0; i < nkeys; i++)
	{
		RfRowColumn *column = &cache->format.columns[i];

		column->codec = rf_codec_under(index->rd_opcintype[i],
									   index->rd_indcollation[i]);
		if (column->codec == NULL &&
			rf_codec_find(index->rd_opcintype[i]) != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("wormhole indexes cannot use collation \"%s\"",
							get_collation_name(index->rd_indcollation[i])),
					 errdetail("ICU's sort keys do not always agree with how this nondeterministic collation compares strings."),
					 errhint("Use a nondeterministic collation without \"ka-shifted\", \"ks-identic\", \"kr\" and \"kn\", and without backwards comparison of accents, or a btree.")));
		if (column->codec == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("type %s has no key encoding for wormhole indexes",
							format_type_be(index->rd_opcintype[i])),
					 errhint("Use one of the operator classes that come with rangefilter.")));
		column->desc = (index->rd_indoption[i] & INDOPTION_DESC) != 0;
		column->nulls_first =
			(index->rd_indoption[i] & INDOPTION_NULLS_FIRST) != 0;
		cache->decode[i] = wh_decode_kind(column->codec);
		if (cache->decode[i] != WH_DECODE_ALWAYS)
			cache->may_have_payload = true;
	}
	cache->collators = rf_row_collators(&cache->format);
	cache->last_place = InvalidBlockNumber;
	index->rd_amcache = cache;
	return cache;
}

/*
 * The cache of an index.  The next relcache invalidation frees it, so callers
 * do not keep the pointer where one may be absorbed.
 */
WhCache *
wh_cache(Relation index)
{
	if (index->rd_amcache != NULL)
		return (WhCache *) index->rd_amcache;
	return make_cache(index);
}

/*
 * A float from the number that codec_number.c made of it.
 */
static float8
decode_float8(uint64 bits)
{
	float8		value;

	bits = (bits & RF_SIGN_BIT) ? bits ^ RF_SIGN_BIT : ~bits;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static float4
decode_float4(uint32 bits)
{
	const uint32 sign = 0x80000000;
	float4		value;

	bits = (bits & sign) ? bits ^ sign : ~bits;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/*
 * The two kinds of Ethernet addresses, palloc'd.
 */
static Datum
decode_macaddr(uint64 num)
{
	macaddr    *mac = palloc(sizeof(macaddr));

	mac->a = (num >> 40) & 0xFF;
	mac->b = (num >> 32) & 0xFF;
	mac->c = (num >> 24) & 0xFF;
	mac->d = (num >> 16) & 0xFF;
	mac->e = (num >> 8) & 0xFF;
	mac->f = num & 0xFF;
	return MacaddrPGetDatum(mac);
}

static Datum
decode_macaddr8(uint64 num)
{
	macaddr8   *mac = palloc(sizeof(macaddr8));

	mac->a = (num >> 56) & 0xFF;
	mac->b = (num >> 48) & 0xFF;
	mac->c = (num >> 40) & 0xFF;
	mac->d = (num >> 32) & 0xFF;
	mac->e = (num >> 24) & 0xFF;
	mac->f = (num >> 16) & 0xFF;
	mac->g = (num >> 8) & 0xFF;
	mac->h = num & 0xFF;
	return Macaddr8PGetDatum(mac);
}

/*
 * A string from its bytes.
 */
static Datum
decode_string(Oid type, const char *string, uint32 len)
{
	Name		name;

	if (type != NAMEOID)
		return PointerGetDatum(cstring_to_text_with_len(string, len));
	name = palloc0(NAMEDATALEN);
	memcpy(name, string, Min(len, NAMEDATALEN - 1));
	return NameGetDatum(name);
}

/*
 * A value from its key, under a codec that is not WH_DECODE_NEVER.  A value
 * passed by reference is palloc'd or, if of fixed length, may point into the
 * key.
 */
Datum
wh_decode_value(const RfCodec *codec, const RfKey *key)
{
	int64		number = (int64) (key->num ^ RF_SIGN_BIT);
	const char *string = (const char *) key->data;
	uint32		len = key->len;

	if (codec->collator != NULL && !rf_codec_string(codec, key, &string, &len))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index key of a string has no string")));

	switch (codec->type)
	{
		case INT2OID:
			return Int16GetDatum((int16) number);
		case INT4OID:
		case DATEOID:
			return Int32GetDatum((int32) number);
		case INT8OID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case TIMEOID:
		case MONEYOID:
			return Int64GetDatum(number);
		case OIDOID:
			return ObjectIdGetDatum((Oid) key->num);
		case BOOLOID:
			return BoolGetDatum(key->num != 0);
		case FLOAT4OID:
			return Float4GetDatum(decode_float4((uint32) key->num));
		case FLOAT8OID:
			return Float8GetDatum(decode_float8(key->num));
		case MACADDROID:
			return decode_macaddr(key->num);
		case MACADDR8OID:
			return decode_macaddr8(key->num);
		case UUIDOID:
			return UUIDPGetDatum((pg_uuid_t *) key->data);
		case TEXTOID:
		case BYTEAOID:
		case NAMEOID:
			return decode_string(codec->type, string, len);
		default:
			elog(ERROR, "keys of type %u cannot be decoded", codec->type);
			return (Datum) 0;
	}
}

/*
 * Does the key give back this very value?
 */
static bool
survives(const RfCodec *codec, WhDecode kind, Datum value)
{
	RfKey		key;

	if (kind != WH_DECODE_VERIFY)
		return kind == WH_DECODE_ALWAYS;
	key = rf_encode_whole(codec, value);
	if (codec->type == FLOAT4OID)
		return wh_decode_value(codec, &key) == value;
	return datumIsEqual(wh_decode_value(codec, &key), value, FLOAT8PASSBYVAL,
						sizeof(float8));
}

/*
 * Raises an error for a number that shares its key with others: entries of these would
 * be in no order, and a unique index would take them for equal.  That is a timetz of a
 * zone that no place on earth has.
 */
static void
refuse_shared_key(Relation index, const RfCodec *codec, Datum value)
{
	RfKey		key = rf_encode_whole(codec, value);

	if (rf_key_is_exact(codec, &key))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
			 errmsg("time zone displacement is out of range for wormhole index \"%s\"",
					RelationGetRelationName(index)),
			 errdetail("Without the displacement the time would be more than two years away."),
			 errhint("Store the time with another time zone, or use a btree index.")));
}

/*
 * Appends the values that the key does not give back to an empty payload.  It
 * stays empty if there are none.
 */
static void
encode_payload(Relation index, const Datum *values, const bool *isnull,
			   StringInfo payload)
{
	WhCache    *cache = wh_cache(index);
	RfRowFormat *format = &cache->format;
	int			natts = IndexRelationGetNumberOfAttributes(index);
	bool		left_out[INDEX_MAX_KEYS];
	bool		any = natts > format->ncolumns;
	IndexTuple	tuple;

	for (int i = 0; i < natts; i++)
	{
		left_out[i] = isnull[i];
		if (i < format->ncolumns && !isnull[i])
		{
			const RfCodec *codec = format->columns[i].codec;

			left_out[i] = survives(codec, cache->decode[i], values[i]);
			any |= !left_out[i];
			if (codec->type == TIMETZOID)
				refuse_shared_key(index, codec, values[i]);
		}
	}
	if (!any)
		return;
	tuple = index_form_tuple(RelationGetDescr(index), (Datum *) values,
							 left_out);
	appendBinaryStringInfo(payload, (char *) tuple + PAYLOAD_SKIP,
						   IndexTupleSize(tuple) - PAYLOAD_SKIP);
	pfree(tuple);
}

/*
 * Encodes a row into a key and a payload.  Both buffers are empty before.
 *
 * To fetch a value from the TOAST table locks that, which may absorb invalidations.
 * So the format is copied.
 */
void
wh_encode(Relation index, const Datum *values, const bool *isnull,
		  StringInfo key, StringInfo payload)
{
	const RfRowFormat *cached = &wh_cache(index)->format;
	RfRowFormat format;

	memcpy(&format, cached, offsetof(RfRowFormat, columns) +
		   cached->ncolumns * sizeof(RfRowColumn));
	(void) rf_row_encode(&format, values, isnull, key);
	if (wh_cache(index)->may_have_payload)
		encode_payload(index, values, isnull, payload);
}

/*
 * Where the value at an offset of a tuple's data ends; 0 if it is not within len bytes.
 */
static Size
end_of_value(Form_pg_attribute attribute, const char *data, Size at, Size len)
{
	const char *value;
	Size		size = attribute->attlen;

	if (at >= len)
		return 0;
	at = att_align_pointer(at, attribute->attalign, attribute->attlen, data + at);
	if (at >= len)
		return 0;
	value = data + at;
	if (attribute->attlen == -2)
		size = strnlen(value, len - at) + 1;
	else if (attribute->attlen == -1)
	{
		if (VARATT_IS_1B_E(value) ||
			(!VARATT_IS_1B(value) && at + VARHDRSZ > len))
			return 0;
		size = VARSIZE_ANY(value);
		if (size < (VARATT_IS_1B(value) ? VARHDRSZ_SHORT : VARHDRSZ))
			return 0;
	}
	return at + size <= len ? at + size : 0;
}

/*
 * Are all values of a payload's tuple, which has size bytes, within it?
 */
static bool
is_sound_tuple(Relation index, IndexTuple tuple, Size size)
{
	Size		start = IndexInfoFindDataOffset(tuple->t_info);
	const uint8 *nulls = (const uint8 *) (tuple + 1);
	Size		at = 0;

	if (IndexTupleSize(tuple) != size || start > size)
		return false;
	for (int i = 0; i < IndexRelationGetNumberOfAttributes(index); i++)
	{
		if (IndexTupleHasNulls(tuple) && att_isnull(i, nulls))
			continue;
		at = end_of_value(TupleDescAttr(RelationGetDescr(index), i),
						  (char *) tuple + start, at, size - start);
		if (at == 0)
			return false;
	}
	return true;
}

/*
 * Raises the error for a key or a payload that gives no values.
 */
static void
report_key(Relation index)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" contains a damaged key",
					RelationGetRelationName(index)),
			 errhint("Please REINDEX it.")));
}

/*
 * Decodes the values of all columns from a key and a payload, or NULL.  Values
 * passed by reference are palloc'd, or may point into the key (see
 * wh_decode_value()).
 */
void
wh_decode(Relation index, const uint8 *key, int len, const uint8 *payload,
		  int payload_len, Datum *values, bool *isnull)
{
	RfRowFormat *format = &wh_cache(index)->format;
	int			natts = IndexRelationGetNumberOfAttributes(index);
	const uint8 *end = key + len;

	if (payload != NULL)
	{
		char	   *tuple = palloc0(Max(payload_len + PAYLOAD_SKIP,
										sizeof(IndexTupleData)));

		memcpy(tuple + PAYLOAD_SKIP, payload, payload_len);
		if (!is_sound_tuple(index, (IndexTuple) tuple, payload_len + PAYLOAD_SKIP))
			report_key(index);
		index_deform_tuple((IndexTuple) tuple, RelationGetDescr(index),
						   values, isnull);
	}
	else
		memset(isnull, true, natts * sizeof(bool));

	for (int i = 0; i < format->ncolumns; i++)
	{
		RfKey		part;

		switch (rf_row_get(format, i, &key, end, &part))
		{
			case RF_ROW_VALUE:
				if (isnull[i] && wh_cache(index)->decode[i] == WH_DECODE_NEVER)
					report_key(index);
				if (isnull[i])
					values[i] = wh_decode_value(format->columns[i].codec, &part);
				isnull[i] = false;
				break;
			case RF_ROW_NULL:
				isnull[i] = true;
				break;
			default:
				report_key(index);
		}
	}
	if (key != end)
		report_key(index);
}

/*
 * Raises an error for an entry that is too large for a page.
 */
void
wh_check_size(Relation index, Relation heap, int key_len, int payload_len)
{
	if (key_len + payload_len <= WH_MAX_ENTRY)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("index row size %d exceeds wormhole maximum %d for index \"%s\"",
					key_len + payload_len, WH_MAX_ENTRY,
					RelationGetRelationName(index)),
			 errhint("Values larger than 1/3 of a buffer page cannot be indexed.\n"
					 "Consider a function index of an MD5 hash of the value."),
			 errtableconstraint(heap, RelationGetRelationName(index))));
}
