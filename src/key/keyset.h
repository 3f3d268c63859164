/*-------------------------------------------------------------------------
 *
 * keyset.h
 *	  Sets of encoded keys: what a condition asks a summary for.
 *
 * A condition on one index column becomes the set of encoded keys that rows
 * satisfying it can have: sorted disjoint ranges, and whether NULL is in it.
 * AND intersects sets, OR unites them.  Everything is rounded outward: the
 * set may hold keys no matching row has, never the other way round.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_KEYSET_H
#define RANGEFILTER_KEYSET_H

#include "postgres.h"

#include "compat.h"

/* An encoded key is a 64-bit number or a byte string; the codec says which. */
typedef enum RfKeyKind
{
	RF_KEY_U64 = 1,
	RF_KEY_BYTES = 2
} RfKeyKind;

typedef struct RfKey
{
	uint64		num;			/* RF_KEY_U64 */
	const uint8 *data;			/* RF_KEY_BYTES, at most FILTER_MAX_KEY */
	uint32		len;
	bool		unordered;		/* a string without a place among others: see
								 * has_no_order() in codec_icu.c */
} RfKey;

/*
 * From lo to hi, both in the range but for hi under hi_excl (bytes only).  In
 * a set, the ends of a range of numbers are always set, an end that is none to
 * the extreme number, and a number range has no end exactly where it reaches
 * that number.
 */
typedef struct RfRange
{
	RfKey		lo;
	RfKey		hi;
	bool		lo_inf;			/* no lower end; bytes: lo is not set */
	bool		hi_inf;			/* no upper end; bytes: hi is not set */
	bool		hi_excl;
} RfRange;

typedef struct RfKeySet
{
	RfKeyKind	kind;
	bool		nulls;			/* NULL is in the set */
	int			nranges;
	RfRange    *ranges;			/* ascending, disjoint, apart, none empty */
} RfKeySet;

extern int	rf_key_compare(RfKeyKind kind, const RfKey *a, const RfKey *b);
extern int	rf_key_sort_compare(const void *a, const void *b, void *kind);

/*
 * All results are palloc'd in the current context; byte keys are not copied.
 * rf_keyset_ranges() takes ranges in any order and sorts the array in place.
 * Everything is linear but that sort.
 */
extern RfKeySet *rf_keyset_empty(RfKeyKind kind);
extern RfKeySet *rf_keyset_nulls(RfKeyKind kind);
extern RfKeySet *rf_keyset_not_null(RfKeyKind kind);
extern RfKeySet *rf_keyset_range(RfKeyKind kind, const RfRange *range);
extern RfKeySet *rf_keyset_ranges(RfKeyKind kind, RfRange *ranges, int n);
extern RfKeySet *rf_keyset_union(const RfKeySet *a, const RfKeySet *b);
extern RfKeySet *rf_keyset_intersect(const RfKeySet *a, const RfKeySet *b);
extern bool rf_keyset_is_empty(const RfKeySet *set);
extern bool rf_range_is_key(RfKeyKind kind, const RfRange *range);
extern bool rf_keyset_contains(const RfKeySet *set, const RfKey *key);

/*
 * A flat copy (a varlena) that lives in a plan, and the way back.  The keys of
 * the deserialized set point into the flat copy.  Writing returns NULL
 * where the copy would exceed a gigabyte (some 60 million numbers).  Reading errors
 * out on what was not written by rf_keyset_serialize().
 */
extern bytea *rf_keyset_serialize(const RfKeySet *set);
extern RfKeySet *rf_keyset_deserialize(const bytea *flat);

#endif							/* RANGEFILTER_KEYSET_H */
