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
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_CODEC_H
#define RANGEFILTER_CODEC_H

#include "key/keyset.h"

typedef struct RfCodec RfCodec;

struct RfCodec
{
	Oid			type;			/* the operator class's input type */
	uint16		id;				/* identity and version; on the metapage */
	RfKeyKind	kind;
	bool		collatable;		/* ranges need a C collation */

	/*
	 * NULL, or the keys are of rows in this format; then there is nothing
	 * below, and rowkey.h has the functions that take any codec.
	 */
	const struct RfRowFormat *row;

	/*
	 * The key of a non-null value.  The data of a byte key is palloc'd, at
	 * most FILTER_MAX_KEY long.  May have to detoast, hence raise errors.
	 */
	RfKey		(*encode) (Datum value);

	/*
	 * The same, but a byte key is never cut, so its length may be anything.
	 * Where the two differ, encode gives the first FILTER_MAX_KEY bytes.
	 */
	RfKey		(*encode_whole) (Datum value);

	/*
	 * The key as SQL text, palloc'd: a value that has this key, followed by
	 * dots where the key may have been cut.  Bytes or numbers that are no
	 * value's key are shown in hexadecimal; never raises an error.
	 */
	char	   *(*show) (const RfKey *key);
};

/*
 * The largest id of a codec in the table.  Those of rows are larger.
 */
#define RF_MAX_CODEC_ID	0x7F

/*
 * The codec of an operator class's input type, or NULL.  varchar and cidr,
 * whose operators are those of text and inet, get the codecs of these.
 */
extern const RfCodec *rf_codec_find(Oid type);

/*
 * Does key order follow the type's order under this collation?  Where not
 * (text under a collation that is not C), only equality, IN, LIKE prefixes
 * and NULL tests can be asked.
 */
extern bool rf_codec_ordered(const RfCodec *codec, Oid collation);

/*
 * The keys a column can have where "column <op> value" holds; strategy is
 * btree's (BTLessStrategyNumber ...), value a non-null Datum of righttype,
 * which may be any type the btree family has such an immutable operator for.
 * collation is the operator's, which must be the index's.  Bounds are rounded
 * outward.  Returns NULL where nothing can be said: another type, an operator
 * that is only stable (timestamptz against date or timestamp), a range under
 * a collation without order, anything under a nondeterministic collation.
 */
extern RfKeySet *rf_codec_compare(const RfCodec *codec, Oid collation,
								  int strategy, Oid righttype, Datum value);

/*
 * The same in terms of whole keys, for columns encoded by encode_whole.
 */
extern RfKeySet *rf_codec_compare_whole(const RfCodec *codec, Oid collation,
										int strategy, Oid righttype,
										Datum value);

/*
 * Does this key stand for one value (and those equal to it) alone?  For keys
 * by encode_whole, and by encode where they are not of full length.
 */
extern bool rf_codec_exact(const RfCodec *codec, const RfKey *key);

/*
 * The keys of strings that start with the given bytes (LIKE 'x%', ^@), which
 * may end anywhere, even within a character.  codec must be of a string type
 * or bytea; NULL otherwise.  The collation must be deterministic.
 */
extern RfKeySet *rf_codec_prefix(const RfCodec *codec, const char *prefix,
								 int len);

/* amvalidate of access methods that encode keys, see validate.c. */
extern bool rf_validate_opclass(Oid opclass);

#endif							/* RANGEFILTER_CODEC_H */
