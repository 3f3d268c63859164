/*-------------------------------------------------------------------------
 *
 * codec.h
 *	  Order-preserving encodings of SQL values.
 *
 * A codec maps the values of a type to 64-bit numbers or byte strings so that
 *		a <= b by the btree operator family   implies   e(a) <= e(b), and
 *		a  = b by the btree operator family   implies   e(a)  = e(b).
 * Different values may share an encoding (byte strings are cut at
 * FILTER_MAX_KEY): that costs precision, never correctness.
 *
 * Strings are their bytes, which is the order of the C collation, and the
 * equality of every deterministic one.  Under collations of ICU there are codecs
 * of their own, with the order and the equality of the collation (codec_icu.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_CODEC_H
#define RANGEFILTER_CODEC_H

#include "datatype/timestamp.h"
#include "key/keyset.h"
#include "utils/array.h"
#include "utils/relcache.h"

typedef struct RfCodec RfCodec;
typedef struct RfCollator RfCollator;
struct IndexInfo;

struct RfCodec
{
	Oid			type;			/* the operator class's input type */
	uint16		id;				/* identity and version; on the metapage */
	RfKeyKind	kind;
	bool		collatable;		/* of strings: bytes sort as in C */

	/* NULL, or the keys are made by this collator of ICU's. */
	const RfCollator *collator;

	/*
	 * Zero, or what tells the collators behind the keys, their versions
	 * included, from all others.  Goes to the metapage.
	 */
	uint64		collators;

	/*
	 * NULL, or the keys are of rows in this format; then there is nothing
	 * below, and rowkey.h has the functions that take any codec.
	 */
	const struct RfRowFormat *row;

	/*
	 * The key of a non-null value, not collated: for rf_encode() alone.  The
	 * data of a byte key is palloc'd, at most FILTER_MAX_KEY long.  The
	 * second function never cuts a byte key.  Both may have to detoast, hence
	 * raise errors.
	 */
	RfKey		(*plain) (Datum value);
	RfKey		(*plain_whole) (Datum value);

	/*
	 * The key as SQL text, palloc'd: a value that has this key, followed by
	 * dots where the key may have been cut.  Bytes or numbers that are no
	 * value's key are shown in hexadecimal; never raises an error.
	 */
	char	   *(*show) (const RfKey *key);
};

/*
 * The codec of an operator class's input type, or NULL.  varchar and cidr,
 * whose operators are those of text and inet, get the codecs of these, and enum types that of anyenum.
 */
extern const RfCodec *rf_codec_find(Oid type);

/*
 * The same under a collation (InvalidOid where the type has none): under one of
 * ICU the codec of its sort keys, else that of rf_codec_find().  It lives as
 * long as the process.
 */
extern const RfCodec *rf_codec_under(Oid type, Oid collation);

/*
 * For codecs of strings under collations of ICU.  Is the string in its key, so
 * that the key stands for it alone?  Not under nondeterministic collations.  And
 * where is it?  False where there is none, or the key was cut before it.
 */
extern bool rf_codec_has_string(const RfCodec *codec);
extern bool rf_codec_string(const RfCodec *codec, const RfKey *key,
							const char **string, uint32 *len);

/*
 * The key of a non-null value.  The data of a byte key is palloc'd.
 * rf_encode() cuts byte keys at FILTER_MAX_KEY, rf_encode_whole() never does;
 * the one is the beginning of the other.  May have to detoast, hence raise
 * errors.
 */
extern RfKey rf_encode_collated(const RfCodec *codec, Datum value, bool whole);

static inline RfKey
rf_encode(const RfCodec *codec, Datum value)
{
	if (codec->collator != NULL)
		return rf_encode_collated(codec, value, false);
	return codec->plain(value);
}

static inline RfKey
rf_encode_whole(const RfCodec *codec, Datum value)
{
	if (codec->collator != NULL)
		return rf_encode_collated(codec, value, true);
	return codec->plain_whole(value);
}

extern bool rf_key_in_place(const RfCodec *codec, Datum value, RfKey *key);

/*
 * Does this key stand for one value (and those equal to it) alone?  For keys
 * by rf_encode_whole(), and by rf_encode() where they are not of full length.
 */
extern bool rf_key_is_exact(const RfCodec *codec, const RfKey *key);

/*
 * Return true if key order follows the type's order under this collation.  Where not
 * (enums, and text under a collation neither C nor the codec's), only equality, IN, LIKE
 * prefixes and NULL tests can be asked.
 */
extern bool rf_codec_ordered(const RfCodec *codec, Oid collation);

/*
 * The keys a column can have where "column <op> value" holds; strategy is
 * btree's (BTLessStrategyNumber ...), value a non-null Datum of righttype,
 * which may be any type the btree family has such an immutable operator for.
 * collation is the operator's; but for equality under a deterministic one it
 * must be the index's.  Bounds are rounded outward.  Returns NULL where nothing
 * can be said: another type, an operator that is only stable (timestamptz
 * against date or timestamp), a range under a collation without order,
 * anything under a nondeterministic collation that is not the codec's.
 */
extern RfKeySet *rf_codec_compare(const RfCodec *codec, Oid collation,
								  int strategy, Oid righttype, Datum value);

/*
 * The set of keys of one element of an array; NULL: nothing can be said.
 */
typedef RfKeySet *(*RfElementSet) (void *arg, Oid type, Datum value);

extern RfKeySet *rf_array_set(RfKeyKind kind, ArrayType *array,
							  RfElementSet element_set, void *arg);

/* Sets of long arrays that are remembered: see rf_codec_compare_list(). */
#define RF_REMEMBERED_LISTS	8

extern RfKeySet *rf_codec_compare_list(const RfCodec *codec, Oid collation,
									   int strategy, Oid righttype,
									   ArrayType *array);
extern void rf_forget_lists(void);

/*
 * The same in terms of whole keys, for columns by rf_encode_whole().
 */
extern RfKeySet *rf_codec_compare_whole(const RfCodec *codec, Oid collation,
										int strategy, Oid righttype,
										Datum value);

/*
 * The keys of strings that start with the given bytes (LIKE 'x%', ^@), which
 * may end anywhere, even within a character.  codec must be of bytea or of a
 * string type not collated; NULL otherwise.  The collation must be
 * deterministic.
 */
extern RfKeySet *rf_codec_prefix(const RfCodec *codec, const char *prefix,
								 int len);

/* Offsets from UTC of all places on earth are less.  SET TimeZone takes others, up to a week. */
#define RF_ZONE_HOURS	16

extern bool rf_zone_is_ordinary(TimestampTz instant);

/* amvalidate of access methods that encode keys, see validate.c. */
extern bool rf_validate_opclass(Oid opclass);
extern void rf_check_operators(Relation index, int column);
extern bool rf_has_other_operators(Relation index, int column);
extern const char *rf_notice_name(Relation index, const struct IndexInfo *index_info);
extern bool rf_first_notice(void);
extern bool rf_notice_type(Relation index, int column, const char *name);

#endif							/* RANGEFILTER_CODEC_H */
