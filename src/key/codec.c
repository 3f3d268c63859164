/*-------------------------------------------------------------------------
 *
 * codec.c
 *	  The table of codecs, and conditions as sets of keys.
 *
 * A condition "column <op> value" is answered in two steps.  The value is
 * placed among the keys of the column: at a key that stands for it alone, at
 * one it shares with other values, or between two keys.  From there on only
 * the operator matters, not the types.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "filter/filter.h"
#include "key/codec_impl.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"

#define NUMBER_CODEC(oid, number, encoder, shower) \
	.codec = {.type = (oid), .id = (number), .kind = RF_KEY_U64, \
		.plain = (encoder), .plain_whole = (encoder), .show = (shower)}

#define BYTES_CODEC(oid, number, encoder, whole, shower) \
	.codec = {.type = (oid), .id = (number), .kind = RF_KEY_BYTES, \
		.plain = (encoder), .plain_whole = (whole), .show = (shower)}

#define STRING_CODEC(oid, number, encoder, whole, shower) \
	.codec = {.type = (oid), .id = (number), .kind = RF_KEY_BYTES, \
		.collatable = true, .plain = (encoder), .plain_whole = (whole), \
		.show = (shower)}

/* What is added to the id of a codec where its keys are collated. */
#define COLLATED_ID		0x20
#define COLLATED_BLIND_ID	0x40	/* ... and have no bytes behind */


/*
 * Whoever changes an encoding gives it a new number, never used before: an
 * index keeps the number it was built with, and does not answer under another.
 */
static const RfCodecEntry codecs[] = {
	{
		NUMBER_CODEC(INT2OID, 1, rf_encode_int2, rf_show_int2),
		.place = rf_place_integer,
		.first = RF_SIGNED(PG_INT16_MIN),.last = RF_SIGNED(PG_INT16_MAX)
	},
	{
		NUMBER_CODEC(INT4OID, 2, rf_encode_int4, rf_show_int4),
		.place = rf_place_integer,
		.first = RF_SIGNED(PG_INT32_MIN),.last = RF_SIGNED(PG_INT32_MAX)
	},
	{
		NUMBER_CODEC(INT8OID, 3, rf_encode_int8, rf_show_int8),
		.place = rf_place_integer,
		.last = PG_UINT64_MAX
	},
	{
		NUMBER_CODEC(OIDOID, 4, rf_encode_oid, rf_show_oid),
		.last = PG_UINT32_MAX
	},
	{
		NUMBER_CODEC(FLOAT4OID, 5, rf_encode_float4, rf_show_float4),
		.place = rf_place_float4,
		.first = RF_FLOAT4_FIRST,.last = RF_FLOAT4_LAST
	},
	{
		NUMBER_CODEC(FLOAT8OID, 6, rf_encode_float8, rf_show_float8),
		.place = rf_place_float8,
		.first = RF_FLOAT8_FIRST,.last = RF_FLOAT8_LAST
	},
	{
		NUMBER_CODEC(TIMESTAMPOID, 7, rf_encode_int8, rf_show_timestamp),
		.place = rf_place_timestamp,
		.last = PG_UINT64_MAX
	},
	{
		NUMBER_CODEC(TIMESTAMPTZOID, 8, rf_encode_int8, rf_show_timestamptz),
		.last = PG_UINT64_MAX
	},
	{
		NUMBER_CODEC(DATEOID, 9, rf_encode_int4, rf_show_date),
		.place = rf_place_date,
		.first = RF_SIGNED(PG_INT32_MIN),.last = RF_SIGNED(PG_INT32_MAX)
	},
	{
		NUMBER_CODEC(TIMEOID, 10, rf_encode_int8, rf_show_time),
		.last = PG_UINT64_MAX
	},
	{
		NUMBER_CODEC(TIMETZOID, 11, rf_encode_timetz, rf_show_timetz),
		.last = PG_UINT64_MAX,.saturates = true
	},
	{
		NUMBER_CODEC(MONEYOID, 12, rf_encode_int8, rf_show_money),
		.last = PG_UINT64_MAX
	},
	{
		NUMBER_CODEC(BOOLOID, 13, rf_encode_bool, rf_show_bool),
		.last = 1
	},
	{
		NUMBER_CODEC(MACADDROID, 14, rf_encode_macaddr, rf_show_macaddr),
		.last = UINT64CONST(0xFFFFFFFFFFFF)
	},
	{
		NUMBER_CODEC(MACADDR8OID, 15, rf_encode_macaddr8, rf_show_macaddr8),
		.last = PG_UINT64_MAX
	},
	{
		BYTES_CODEC(NUMERICOID, 16, rf_encode_numeric, rf_encode_numeric_whole,
					rf_show_numeric)
	},
	{
		BYTES_CODEC(INTERVALOID, 17, rf_encode_interval, rf_encode_interval,
					rf_show_interval),
		.length = rf_length_interval
	},
	{
		BYTES_CODEC(UUIDOID, 18, rf_encode_uuid, rf_encode_uuid, rf_show_uuid),
		.length = rf_length_uuid
	},
	{
		STRING_CODEC(TEXTOID, 19, rf_encode_text, rf_encode_text_whole,
					 rf_show_text),
		.place = rf_place_string
	},
	{
		STRING_CODEC(BPCHAROID, 20, rf_encode_bpchar, rf_encode_bpchar_whole,
					 rf_show_text)
	},
	{
		STRING_CODEC(NAMEOID, 21, rf_encode_name, rf_encode_name,
					 rf_show_text),
		.place = rf_place_string
	},
	{
		BYTES_CODEC(BYTEAOID, 22, rf_encode_text, rf_encode_text_whole,
					rf_show_bytea)
	},
	{
		BYTES_CODEC(INETOID, 23, rf_encode_inet, rf_encode_inet, rf_show_inet),
		.length = rf_length_inet
	},
	{
		/* The OIDs of labels: ALTER TYPE may put new ones between them. */
		NUMBER_CODEC(ANYENUMOID, 24, rf_encode_oid, rf_show_enum),
		.last = PG_UINT32_MAX,.unordered = true
	}
};

/* A codec under a collation of ICU, once made. */
typedef struct CollatedCodec
{
	RfCodecEntry entry;			/* must be first */
	struct CollatedCodec *next;
} CollatedCodec;

/*
 * The type whose operators a type uses.
 */
static Oid
operator_type(Oid type)
{
	switch (type)
	{
		case VARCHAROID:
			return TEXTOID;
		case CIDROID:
			return INETOID;
		default:
			return type >= FirstNormalObjectId && type_is_enum(type) ? ANYENUMOID : type;
	}
}

/*
 * The codec of a type.
 */
const RfCodec *
rf_codec_find(Oid type)
{
	int			i;

	type = operator_type(type);
	for (i = 0; i < lengthof(codecs); i++)
	{
		if (codecs[i].codec.type == type)
			return &codecs[i].codec;
	}
	return NULL;
}

/*
 * The codec of a string type under a collation of ICU.  There are few, and
 * each is made once.
 */
static const RfCodec *
collated_codec(const RfCodec *plain, const RfCollator *collator)
{
	static CollatedCodec *made = NULL;
	CollatedCodec *collated;

	for (collated = made; collated != NULL; collated = collated->next)
	{
		if (collated->entry.codec.type == plain->type &&
			collated->entry.codec.collator == collator)
			return &collated->entry.codec;
	}
	collated = MemoryContextAlloc(TopMemoryContext, sizeof(CollatedCodec));
	collated->entry = *(const RfCodecEntry *) plain;
	collated->entry.codec.id += collator->deterministic ?
		COLLATED_ID : COLLATED_BLIND_ID;
	collated->entry.codec.collator = collator;
	collated->entry.codec.collators = collator->version;
	collated->entry.codec.show = rf_show_collated;
	collated->next = made;
	made = collated;
	return &collated->entry.codec;
}

const RfCodec *
rf_codec_under(Oid type, Oid collation)
{
	const RfCodec *codec = rf_codec_find(type);
	const RfCollator *collator;

	if (codec == NULL || !codec->collatable || !OidIsValid(collation) ||
		RF_COLLATES_AS_C(collation))
		return codec;
	collator = rf_collator_find(collation);
	if (collator != NULL)
		return collated_codec(codec, collator);

	/* Bytes tell equal strings only under a deterministic collation. */
	return get_collation_isdeterministic(collation) ? codec : NULL;
}

/*
 * The collation whose order a codec's keys have other than by chance, or
 * InvalidOid for the order of bytes.
 */
static Oid
codec_collation(const RfCodec *codec)
{
	return codec->collator == NULL ? InvalidOid : codec->collator->collation;
}

/*
 * Collates a key that is not cut, and frees that.
 */
static RfKey
collate_key(const RfCodec *codec, RfKey plain)
{
	RfKey		key = rf_collate(codec->collator, (const char *) plain.data,
								 plain.len);

	pfree(unconstify(uint8 *, plain.data));
	return key;
}

RfKey
rf_encode_collated(const RfCodec *codec, Datum value, bool whole)
{
	RfKey		key = collate_key(codec, codec->plain_whole(value));
	RfKey		cut;

	if (whole || key.len <= FILTER_MAX_KEY)
		return key;

	/* A caller may keep the keys of a whole page of long strings. */
	cut = rf_bytes_key(key.data, FILTER_MAX_KEY);
	cut.unordered = key.unordered;
	pfree(unconstify(uint8 *, key.data));
	return cut;
}

/*
 * Return true if key order is the type's order under this collation.
 */
bool
rf_codec_ordered(const RfCodec *codec, Oid collation)
{
	if (!codec->collatable)
		return !((const RfCodecEntry *) codec)->unordered;
	return codec->collator != NULL ?
		collation == codec_collation(codec) : RF_COLLATES_AS_C(collation);
}

/*
 * Return true if strings that are equal under this collation have equal keys.
 */
static bool
codec_equates(const RfCodec *codec, Oid collation)
{
	return !codec->collatable ||
		(OidIsValid(collation) &&
		 (collation == codec_collation(codec) ||
		  get_collation_isdeterministic(collation)));
}

bool
rf_key_is_exact(const RfCodec *codec, const RfKey *key)
{
	const RfCodecEntry *entry = (const RfCodecEntry *) codec;

	return !(entry->saturates &&
			 (key->num == entry->first || key->num == entry->last));
}

/*
 * Finds where a value is among the keys of a column, whole or cut.  False
 * where the type is none that can be compared with it, or the value has no place among
 * others that would do for summaries.
 */
static bool
place_value(const RfCodecEntry *entry, Oid type, Datum value, bool whole,
			RfPosition *position)
{
	const RfCodec *codec = &entry->codec;

	position->fit = RF_FIT_EXACT;
	if (type == codec->type)
		position->key = whole ? rf_encode_whole(codec, value) :
			rf_encode(codec, value);
	else if (entry->place == NULL || !entry->place(type, value, position))
		return false;
	else if (codec->collator != NULL)
		position->key = collate_key(codec, position->key);

	if (!whole && position->key.unordered)
		return false;

	/* A key of full length stands for all strings that start with it. */
	if (!whole && codec->kind == RF_KEY_BYTES &&
		position->key.len >= FILTER_MAX_KEY)
	{
		position->key.len = FILTER_MAX_KEY;
		position->fit = RF_FIT_SHARED;
	}
	if (!rf_key_is_exact(codec, &position->key))
		position->fit = RF_FIT_SHARED;
	return true;
}

/*
 * The numbers on the given side of a position, clamped to what the column can
 * have, so that a constant beyond its type gives all or nothing.
 */
static RfKeySet *
compare_number(const RfCodecEntry *entry, int strategy,
			   const RfPosition *position)
{
	uint64		num = position->key.num;
	bool		exact = position->fit == RF_FIT_EXACT;
	bool		between = position->fit == RF_FIT_BETWEEN;
	RfRange		range = {0};

	range.lo.num = entry->first;
	range.hi.num = entry->last;

	/* In a range without lower end, the upper end is at or below num. */
	if (strategy <= BTEqualStrategyNumber)
	{
		bool		below = exact && strategy == BTLessStrategyNumber;

		if ((below && num == 0) ||
			(between && strategy == BTEqualStrategyNumber))
			return rf_keyset_empty(RF_KEY_U64);
		range.hi.num = Min(range.hi.num, below ? num - 1 : num);
	}
	if (strategy >= BTEqualStrategyNumber)
	{
		bool		above = between ||
		(exact && strategy == BTGreaterStrategyNumber);

		if (above && num == PG_UINT64_MAX)
			return rf_keyset_empty(RF_KEY_U64);
		range.lo.num = Max(range.lo.num, above ? num + 1 : num);
	}
	if (range.lo.num > range.hi.num)
		return rf_keyset_empty(RF_KEY_U64);

	/* A single key stays one, though it may be the first or the last. */
	if (strategy != BTEqualStrategyNumber)
	{
		range.lo_inf = range.lo.num == entry->first;
		range.hi_inf = range.hi.num == entry->last;
	}
	return rf_keyset_range(RF_KEY_U64, &range);
}

/*
 * The first byte string after this one, which has not been cut.
 */
static RfKey
next_bytes(const RfKey *key)
{
	RfKey		next = {0};
	uint8	   *data = palloc(key->len + 1);

	if (key->len > 0)
		memcpy(data, key->data, key->len);
	data[key->len] = 0;
	next.data = data;
	next.len = key->len + 1;
	return next;
}

/*
 * The byte strings on the given side of a position.  At a shared key strict
 * bounds include it: values on both sides of the bound have that key.
 */
static RfKeySet *
compare_bytes(int strategy, const RfPosition *position)
{
	bool		exact = position->fit == RF_FIT_EXACT;
	RfRange		range = {.lo_inf = true,.hi_inf = true};

	if (strategy <= BTEqualStrategyNumber)
	{
		range.hi_inf = false;
		range.hi = position->key;
		range.hi_excl = exact && strategy == BTLessStrategyNumber;
	}
	if (strategy >= BTEqualStrategyNumber)
	{
		range.lo_inf = false;
		if (exact && strategy == BTGreaterStrategyNumber)
			range.lo = next_bytes(&position->key);
		else
			range.lo = position->key;
	}
	return rf_keyset_range(RF_KEY_BYTES, &range);
}

/*
 * The keys that satisfy a comparison.
 */
static RfKeySet *
compare_value(const RfCodec *codec, Oid collation, int strategy,
			  Oid righttype, Datum value, bool whole)
{
	const RfCodecEntry *entry = (const RfCodecEntry *) codec;
	RfPosition	position;

	if (strategy < BTLessStrategyNumber || strategy > BTGreaterStrategyNumber)
		return NULL;
	if (!codec_equates(codec, collation))
		return NULL;
	if (strategy != BTEqualStrategyNumber &&
		!rf_codec_ordered(codec, collation))
		return NULL;
	if (!place_value(entry, operator_type(righttype), value, whole, &position))
		return NULL;
	if (codec->kind == RF_KEY_U64)
		return compare_number(entry, strategy, &position);
	return compare_bytes(strategy, &position);
}

RfKeySet *
rf_codec_compare(const RfCodec *codec, Oid collation, int strategy,
				 Oid righttype, Datum value)
{
	return compare_value(codec, collation, strategy, righttype, value, false);
}

RfKeySet *
rf_codec_compare_whole(const RfCodec *codec, Oid collation, int strategy,
					   Oid righttype, Datum value)
{
	return compare_value(codec, collation, strategy, righttype, value, true);
}

/*
 * Fills in the range of the byte strings that start with a key: up to, not
 * including, the key with its last byte that is not 0xFF incremented and what
 * follows left out.
 */
static void
prefix_range(const RfKey *key, RfRange *range)
{
	uint32		len = key->len;
	uint8	   *after;

	memset(range, 0, sizeof(*range));
	range->lo = *key;
	while (len > 0 && key->data[len - 1] == 0xFF)
		len--;
	if (len == 0)
	{
		range->hi_inf = true;
		return;
	}
	after = palloc(len);
	memcpy(after, key->data, len);
	after[len - 1]++;
	range->hi.data = after;
	range->hi.len = len;
	range->hi_excl = true;
}

/*
 * The keys of strings with a common start.  LIKE looks at the blanks at the
 * end of a bpchar, which its key has not: where the given start ends in
 * blanks, a value may also be nothing but the start and blanks.
 */
RfKeySet *
rf_codec_prefix(const RfCodec *codec, const char *prefix, int len)
{
	RfRange		ranges[2];
	RfKey		key;
	int			n = 1;

	if (codec->collator != NULL ||
		(!codec->collatable && codec->type != BYTEAOID))
		return NULL;
	key = rf_bytes_key(prefix, len);
	prefix_range(&key, &ranges[0]);
	if (codec->type == BPCHAROID && len > 0 && prefix[len - 1] == ' ')
	{
		while (len > 0 && prefix[len - 1] == ' ')
			len--;
		memset(&ranges[1], 0, sizeof(RfRange));
		ranges[1].lo = rf_bytes_key(prefix, len);
		ranges[1].hi = ranges[1].lo;
		n = 2;
	}
	return rf_keyset_ranges(RF_KEY_BYTES, ranges, n);
}
