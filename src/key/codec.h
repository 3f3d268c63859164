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
	RfKey		(*encode) (Datum value);	/* result palloc'd where bytes */
	char	   *(*show) (const RfKey *key); /* as SQL text, palloc'd */
};

/* The codec of an operator class's input type, or NULL. */
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
 * Bounds are rounded outward.  Returns NULL where nothing can be said
 * (unknown type, or a range under a collation without order).
 */
extern RfKeySet *rf_codec_compare(const RfCodec *codec, Oid collation,
								  int strategy, Oid righttype, Datum value);

/*
 * The keys of strings that start with the given bytes (LIKE 'x%', ^@).
 * codec must be of a string type; NULL otherwise.
 */
extern RfKeySet *rf_codec_prefix(const RfCodec *codec, const char *prefix,
								 int len);

#endif							/* RANGEFILTER_CODEC_H */
