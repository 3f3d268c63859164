/*-------------------------------------------------------------------------
 *
 * codec_impl.h
 *	  What the files of src/key share about codecs; nobody else includes it.
 *
 * codec.c has the table and turns comparisons into sets of keys;
 * codec_number.c, codec_bytes.c, codec_numeric.c and codec_icu.c have the
 * encodings.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_CODEC_IMPL_H
#define RANGEFILTER_CODEC_IMPL_H

#include "key/codec.h"

/* How exactly a value is placed among the keys of a column. */
typedef enum RfFit
{
	RF_FIT_EXACT,				/* its key stands for it alone */
	RF_FIT_SHARED,				/* its key may stand for others as well */
	RF_FIT_BETWEEN				/* numbers: after the key, before the next */
} RfFit;

typedef struct RfPosition
{
	RfKey		key;
	RfFit		fit;
} RfPosition;

/* A codec, and what only codec.c needs to know of it. */
typedef struct RfCodecEntry
{
	RfCodec		codec;			/* must be first */

	/*
	 * Places a value of another type of the family; false where the family
	 * has no immutable operator for it.  NULL: there is no other type. Byte
	 * keys are whole.
	 */
	bool		(*place) (Oid type, Datum value, RfPosition *position);

	/*
	 * Byte keys that tell where they end: how long the key at data is, which
	 * may be more than the bytes there are; -1 where there is none.  NULL:
	 * any bytes may follow any others.
	 */
	int			(*length) (const uint8 *data, uint32 avail);

	/* Numbers: the least and the greatest key the column can have. */
	uint64		first;
	uint64		last;
	bool		saturates;		/* those two stand for all beyond as well */
	bool		unordered;		/* numbers do not sort as the values do */
} RfCodecEntry;

/* The longest key there is of a codec with a length function. */
#define RF_PLAIN_MAX	34

/* 64-bit numbers; the sign bit flipped, so that they sort unsigned. */
#define RF_SIGN_BIT		(UINT64CONST(1) << 63)
#define RF_SIGNED(v)	((uint64) (int64) (v) ^ RF_SIGN_BIT)

/* The keys of the extreme floats: -infinity and NaN. */
#define RF_FLOAT4_FIRST	UINT64CONST(0x007FFFFF)
#define RF_FLOAT4_LAST	UINT64CONST(0xFFC00000)
#define RF_FLOAT8_FIRST	UINT64CONST(0x000FFFFFFFFFFFFF)
#define RF_FLOAT8_LAST	UINT64CONST(0xFFF8000000000000)

/* codec_number.c */
extern RfKey rf_encode_int2(Datum value);
extern RfKey rf_encode_int4(Datum value);
extern RfKey rf_encode_int8(Datum value);
extern RfKey rf_encode_oid(Datum value);
extern RfKey rf_encode_bool(Datum value);
extern RfKey rf_encode_float4(Datum value);
extern RfKey rf_encode_float8(Datum value);
extern RfKey rf_encode_timetz(Datum value);
extern RfKey rf_encode_macaddr(Datum value);
extern RfKey rf_encode_macaddr8(Datum value);

extern char *rf_show_int2(const RfKey *key);
extern char *rf_show_int4(const RfKey *key);
extern char *rf_show_int8(const RfKey *key);
extern char *rf_show_oid(const RfKey *key);
extern char *rf_show_enum(const RfKey *key);
extern char *rf_show_bool(const RfKey *key);
extern char *rf_show_float4(const RfKey *key);
extern char *rf_show_float8(const RfKey *key);
extern char *rf_show_date(const RfKey *key);
extern char *rf_show_timestamp(const RfKey *key);
extern char *rf_show_timestamptz(const RfKey *key);
extern char *rf_show_time(const RfKey *key);
extern char *rf_show_timetz(const RfKey *key);
extern char *rf_show_money(const RfKey *key);
extern char *rf_show_macaddr(const RfKey *key);
extern char *rf_show_macaddr8(const RfKey *key);

extern bool rf_place_integer(Oid type, Datum value, RfPosition *position);
extern bool rf_place_float4(Oid type, Datum value, RfPosition *position);
extern bool rf_place_float8(Oid type, Datum value, RfPosition *position);
extern bool rf_place_date(Oid type, Datum value, RfPosition *position);
extern bool rf_place_timestamp(Oid type, Datum value, RfPosition *position);

/* codec_bytes.c */
extern RfKey rf_encode_text(Datum value);	/* bytea as well */
extern RfKey rf_encode_text_whole(Datum value);
extern RfKey rf_encode_bpchar(Datum value);
extern RfKey rf_encode_bpchar_whole(Datum value);
extern RfKey rf_encode_name(Datum value);
extern RfKey rf_encode_uuid(Datum value);
extern RfKey rf_encode_inet(Datum value);
extern RfKey rf_encode_interval(Datum value);

extern int	rf_length_uuid(const uint8 *data, uint32 avail);
extern int	rf_length_inet(const uint8 *data, uint32 avail);
extern int	rf_length_interval(const uint8 *data, uint32 avail);

extern char *rf_show_text(const RfKey *key);
extern char *rf_show_bytea(const RfKey *key);
extern char *rf_show_uuid(const RfKey *key);
extern char *rf_show_inet(const RfKey *key);
extern char *rf_show_interval(const RfKey *key);

extern bool rf_place_string(Oid type, Datum value, RfPosition *position);

/* A byte key that is a copy of these bytes, cut at FILTER_MAX_KEY. */
extern RfKey rf_bytes_key(const void *data, Size len);

/* What to show of bytes that are not a key, as a damaged page may hold. */
extern char *rf_show_raw(const RfKey *key);

/* codec_icu.c */

/* A collation of ICU; there is one of each in a process. */
struct RfCollator
{
	Oid			collation;
	bool		deterministic;
	bool		normalizing;	/* puts combining marks into order first */
	uint64		version;		/* never zero */
	void	   *ucol;			/* UCollator, the server's, which keeps it;
								 * NULL: keys would not order strings as it
								 * does */
	struct RfCollator *next;
};

/*
 * NULL for collations of other providers.  Keys by rf_collate() are palloc'd,
 * and whole.
 */
extern const RfCollator *rf_collator_find(Oid collation);
extern RfKey rf_collate(const RfCollator *collator, const char *string,
						uint32 len);
extern char *rf_show_collated(const RfKey *key);

/* codec_numeric.c */
extern RfKey rf_encode_numeric(Datum value);
extern RfKey rf_encode_numeric_whole(Datum value);
extern char *rf_show_numeric(const RfKey *key);

#endif							/* RANGEFILTER_CODEC_IMPL_H */
