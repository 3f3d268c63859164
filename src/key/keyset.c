/*-------------------------------------------------------------------------
 *
 * keyset.c
 *	  Sets of encoded keys: sorted disjoint ranges, and whether NULL is in.
 *
 * Every set is kept in one normal form: ranges ascend, none is empty, and no
 * two overlap or touch (so "everything" is one range without ends).  Union
 * and intersection are then linear merges, whatever the number of ranges, and
 * a set of thousands of values from an IN list costs one sort.
 *
 * Numbers have a next number, so a closed range says it all.  Byte strings
 * have a next one too (the string with a zero byte appended), but none
 * before: that is what hi_excl is for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "filter/filter.h"
#include "key/keyset.h"
#include "lib/stringinfo.h"
#include "utils/memutils.h"

/* The bits of a range's flag byte in the flat form. */
#define FLAT_LO_INF		0x01
#define FLAT_HI_INF		0x02
#define FLAT_HI_EXCL	0x04

/* What is left to read of a flat set. */
typedef struct FlatReader
{
	const uint8 *at;
	const uint8 *end;
} FlatReader;

/*
 * Compares two keys: as numbers, or as memcmp does with a prefix before its
 * extensions.  Returns < 0, 0, > 0.
 */
int
rf_key_compare(RfKeyKind kind, const RfKey *a, const RfKey *b)
{
	uint32		common;
	int			order;

	if (kind == RF_KEY_U64)
		return (a->num > b->num) - (a->num < b->num);

	common = Min(a->len, b->len);
	order = common > 0 ? memcmp(a->data, b->data, common) : 0;
	if (order != 0)
		return order;
	return (a->len > b->len) - (a->len < b->len);
}

/*
 * qsort_arg() comparator: RfKey, of the RfKeyKind that the argument points to.
 */
int
rf_key_sort_compare(const void *a, const void *b, void *kind)
{
	return rf_key_compare(*(const RfKeyKind *) kind, a, b);
}

/*
 * Allocates a set with room for some ranges, holding none yet.
 */
static RfKeySet *
keyset_alloc(RfKeyKind kind, int room)
{
	RfKeySet   *set = palloc0(sizeof(RfKeySet));

	set->kind = kind;
	if (room > 0)
		set->ranges = palloc_extended(sizeof(RfRange) * room,
									  MCXT_ALLOC_HUGE);
	return set;
}

/*
 * Brings a range into normal form: an end at the very first or last key is
 * no end, and an end that is none holds the extreme number.  Returns false
 * where the range is empty.
 */
static bool
range_normalize(RfKeyKind kind, RfRange *range)
{
	int			order;

	if (kind == RF_KEY_U64)
	{
		Assert(!range->hi_excl);
		if (range->lo_inf)
			range->lo.num = 0;
		if (range->hi_inf)
			range->hi.num = PG_UINT64_MAX;
		range->lo_inf = range->lo.num == 0;
		range->hi_inf = range->hi.num == PG_UINT64_MAX;
		return range->lo.num <= range->hi.num;
	}

	if (!range->lo_inf && range->lo.len == 0)
		range->lo_inf = true;
	if (range->hi_inf)
	{
		range->hi_excl = false;
		return true;
	}
	if (range->lo_inf)			/* nothing sorts before the empty string */
		return !(range->hi_excl && range->hi.len == 0);
	order = rf_key_compare(kind, &range->lo, &range->hi);
	return order < 0 || (order == 0 && !range->hi_excl);
}

/*
 * Orders two lower ends: < 0, 0, > 0.
 */
static int
compare_lower(RfKeyKind kind, const RfRange *a, const RfRange *b)
{
	if (a->lo_inf || b->lo_inf)
		return (int) b->lo_inf - (int) a->lo_inf;
	return rf_key_compare(kind, &a->lo, &b->lo);
}

/*
 * Orders two upper ends: < 0, 0, > 0.
 */
static int
compare_upper(RfKeyKind kind, const RfRange *a, const RfRange *b)
{
	int			order;

	if (a->hi_inf || b->hi_inf)
		return (int) a->hi_inf - (int) b->hi_inf;
	order = rf_key_compare(kind, &a->hi, &b->hi);
	if (order != 0)
		return order;
	return (int) b->hi_excl - (int) a->hi_excl;
}

/*
 * qsort_arg callback: by lower end.
 */
static int
compare_ranges(const void *a, const void *b, void *kind)
{
	return compare_lower(*(RfKeyKind *) kind, a, b);
}

/*
 * Return true if there is no key between the end of one range and the start of another that
 * does not start before it.
 */
static bool
ranges_touch(RfKeyKind kind, const RfRange *left, const RfRange *right)
{
	const RfKey *hi = &left->hi;
	const RfKey *lo = &right->lo;

	if (left->hi_inf || right->lo_inf)
		return true;
	if (kind == RF_KEY_U64)
		return lo->num <= hi->num || lo->num - hi->num == 1;
	if (rf_key_compare(kind, lo, hi) <= 0)
		return true;

	/* Is it the next byte string? */
	return !left->hi_excl && lo->len == hi->len + 1 &&
		lo->data[hi->len] == 0 &&
		(hi->len == 0 || memcmp(lo->data, hi->data, hi->len) == 0);
}

/*
 * Adds a range that does not start before the set's last one.  The set has
 * room for it.
 */
static void
keyset_append(RfKeySet *set, const RfRange *range)
{
	RfRange    *last;

	if (set->nranges > 0)
	{
		last = &set->ranges[set->nranges - 1];
		if (ranges_touch(set->kind, last, range))
		{
			if (compare_upper(set->kind, last, range) < 0)
			{
				last->hi = range->hi;
				last->hi_inf = range->hi_inf;
				last->hi_excl = range->hi_excl;
			}
			return;
		}
	}
	set->ranges[set->nranges++] = *range;
}

/*
 * The set of nothing.
 */
RfKeySet *
rf_keyset_empty(RfKeyKind kind)
{
	return keyset_alloc(kind, 0);
}

/*
 * The set of NULL alone.
 */
RfKeySet *
rf_keyset_nulls(RfKeyKind kind)
{
	RfKeySet   *set = keyset_alloc(kind, 0);

	set->nulls = true;
	return set;
}

/*
 * The set of all keys, NULL left out.
 */
RfKeySet *
rf_keyset_not_null(RfKeyKind kind)
{
	RfRange		all = {.lo_inf = true,.hi_inf = true};

	return rf_keyset_range(kind, &all);
}

/*
 * The set of one range, which may be empty.
 */
RfKeySet *
rf_keyset_range(RfKeyKind kind, const RfRange *range)
{
	RfRange		copy = *range;

	return rf_keyset_ranges(kind, &copy, 1);
}

/*
 * The set of n ranges in any order, which may overlap or be empty.  Sorts
 * the given array in place.
 */
RfKeySet *
rf_keyset_ranges(RfKeyKind kind, RfRange *ranges, int n)
{
	RfKeySet   *set = keyset_alloc(kind, n);
	int			nonempty = 0;
	int			i;

	for (i = 0; i < n; i++)
	{
		if (range_normalize(kind, &ranges[i]))
			ranges[nonempty++] = ranges[i];
	}
	qsort_arg(ranges, nonempty, sizeof(RfRange), compare_ranges, &kind);
	for (i = 0; i < nonempty; i++)
		keyset_append(set, &ranges[i]);
	return set;
}

/*
 * What is in either set.
 */
RfKeySet *
rf_keyset_union(const RfKeySet *a, const RfKeySet *b)
{
	RfKeySet   *set = keyset_alloc(a->kind, a->nranges + b->nranges);
	int			i = 0;
	int			j = 0;

	Assert(a->kind == b->kind);
	set->nulls = a->nulls || b->nulls;
	while (i < a->nranges || j < b->nranges)
	{
		if (j == b->nranges ||
			(i < a->nranges &&
			 compare_lower(a->kind, &a->ranges[i], &b->ranges[j]) <= 0))
			keyset_append(set, &a->ranges[i++]);
		else
			keyset_append(set, &b->ranges[j++]);
	}
	return set;
}

/*
 * What two ranges share, in *result.  Returns false where that is nothing.
 */
static bool
range_intersect(RfKeyKind kind, const RfRange *a, const RfRange *b,
				RfRange *result)
{
	const RfRange *higher = compare_lower(kind, a, b) < 0 ? b : a;
	const RfRange *lower = compare_upper(kind, a, b) < 0 ? a : b;

	*result = *lower;
	result->lo = higher->lo;
	result->lo_inf = higher->lo_inf;
	return range_normalize(kind, result);
}

/*
 * What is in both sets.
 */
RfKeySet *
rf_keyset_intersect(const RfKeySet *a, const RfKeySet *b)
{
	RfKeySet   *set = keyset_alloc(a->kind, a->nranges + b->nranges);
	RfRange		common;
	int			i = 0;
	int			j = 0;

	Assert(a->kind == b->kind);
	set->nulls = a->nulls && b->nulls;
	while (i < a->nranges && j < b->nranges)
	{
		if (range_intersect(a->kind, &a->ranges[i], &b->ranges[j], &common))
			keyset_append(set, &common);

		/* The range that ends first shares nothing with what follows. */
		if (compare_upper(a->kind, &a->ranges[i], &b->ranges[j]) < 0)
			i++;
		else
			j++;
	}
	return set;
}

/*
 * Return true if nothing is in the set, not even NULL.
 */
bool
rf_keyset_is_empty(const RfKeySet *set)
{
	return set->nranges == 0 && !set->nulls;
}

/*
 * Is a single key in a range, as far as its ends tell?
 */
bool
rf_range_is_key(RfKeyKind kind, const RfRange *range)
{
	return !range->lo_inf && !range->hi_inf && !range->hi_excl &&
		rf_key_compare(kind, &range->lo, &range->hi) == 0;
}

/*
 * Where a key is: -1 below the range, 0 in it, 1 above it.
 */
static int
compare_key(RfKeyKind kind, const RfKey *key, const RfRange *range)
{
	int			order;

	if (!range->lo_inf && rf_key_compare(kind, key, &range->lo) < 0)
		return -1;
	if (range->hi_inf)
		return 0;
	order = rf_key_compare(kind, key, &range->hi);
	return order > 0 || (order == 0 && range->hi_excl) ? 1 : 0;
}

/*
 * Return true if a key is in the set.
 */
bool
rf_keyset_contains(const RfKeySet *set, const RfKey *key)
{
	int			low = 0;
	int			high = set->nranges;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;
		int			order = compare_key(set->kind, key, &set->ranges[middle]);

		if (order == 0)
			return true;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return false;
}

/*
 * Appends a key to the flat form: 8 bytes, or 4 bytes of length and the data.
 */
static void
flat_put_key(StringInfo flat, RfKeyKind kind, const RfKey *key)
{
	if (kind == RF_KEY_U64)
	{
		appendBinaryStringInfo(flat, (const char *) &key->num,
							   sizeof(key->num));
		return;
	}
	appendBinaryStringInfo(flat, (const char *) &key->len, sizeof(key->len));
	if (key->len > 0)
		appendBinaryStringInfo(flat, (const char *) key->data, key->len);
}

/*
 * The bytes of a key in the flat form.
 */
static Size
flat_key_size(RfKeyKind kind, const RfKey *key)
{
	return kind == RF_KEY_U64 ? sizeof(key->num) : sizeof(key->len) + key->len;
}

/*
 * The bytes of the flat form.
 */
static Size
flat_size(const RfKeySet *set)
{
	Size		size = VARHDRSZ + 2 + sizeof(set->nranges);

	for (int i = 0; i < set->nranges; i++)
	{
		const RfRange *range = &set->ranges[i];

		size += 1;
		if (!range->lo_inf)
			size += flat_key_size(set->kind, &range->lo);
		if (!range->hi_inf)
			size += flat_key_size(set->kind, &range->hi);
	}
	return size;
}

/*
 * A copy of the set in one varlena: kind, nulls and number of ranges, then
 * for each range a byte of flags and the ends it has.  It never leaves the
 * machine, so numbers are in its byte order.  NULL where it is too large.
 */
bytea *
rf_keyset_serialize(const RfKeySet *set)
{
	static const char header[VARHDRSZ] = {0};
	Size		size = flat_size(set);
	StringInfoData flat;
	int			i;

	if (size >= MaxAllocSize)
		return NULL;
	initStringInfo(&flat);
	enlargeStringInfo(&flat, (int) size);
	appendBinaryStringInfo(&flat, header, VARHDRSZ);
	appendStringInfoCharMacro(&flat, (char) set->kind);
	appendStringInfoCharMacro(&flat, (char) set->nulls);
	appendBinaryStringInfo(&flat, (const char *) &set->nranges,
						   sizeof(set->nranges));
	for (i = 0; i < set->nranges; i++)
	{
		const RfRange *range = &set->ranges[i];

		appendStringInfoCharMacro(&flat,
								  (range->lo_inf ? FLAT_LO_INF : 0) |
								  (range->hi_inf ? FLAT_HI_INF : 0) |
								  (range->hi_excl ? FLAT_HI_EXCL : 0));
		if (!range->lo_inf)
			flat_put_key(&flat, set->kind, &range->lo);
		if (!range->hi_inf)
			flat_put_key(&flat, set->kind, &range->hi);
	}
	Assert(flat.len == size);
	SET_VARSIZE(flat.data, flat.len);
	return (bytea *) flat.data;
}

/*
 * The next bytes of a flat set.  Errors out where there are not that many.
 */
static const uint8 *
flat_get(FlatReader *reader, Size size)
{
	const uint8 *at = reader->at;

	if (size > (Size) (reader->end - at))
		elog(ERROR, "key set ends within a field of %zu bytes", size);
	reader->at += size;
	return at;
}

/*
 * Reads a key, which goes on pointing into the flat set.
 */
static void
flat_get_key(FlatReader *reader, RfKeyKind kind, RfKey *key)
{
	if (kind == RF_KEY_U64)
	{
		memcpy(&key->num, flat_get(reader, sizeof(key->num)),
			   sizeof(key->num));
		return;
	}
	memcpy(&key->len, flat_get(reader, sizeof(key->len)), sizeof(key->len));
	if (key->len > FILTER_MAX_KEY)
		elog(ERROR, "key set has a key of %u bytes", key->len);
	key->data = flat_get(reader, key->len);
}

/*
 * Reads a range and adds it to the set.  A range that does not follow the
 * last one at a distance would break what merging relies on: it would melt
 * into the last one here, and is refused.
 */
static void
flat_get_range(FlatReader *reader, RfKeySet *set)
{
	RfRange		range = {0};
	uint8		flags = *flat_get(reader, 1);
	int			before = set->nranges;

	range.lo_inf = (flags & FLAT_LO_INF) != 0;
	range.hi_inf = (flags & FLAT_HI_INF) != 0;
	range.hi_excl = (flags & FLAT_HI_EXCL) != 0;
	if (!range.lo_inf)
		flat_get_key(reader, set->kind, &range.lo);
	if (!range.hi_inf)
		flat_get_key(reader, set->kind, &range.hi);
	if ((set->kind == RF_KEY_U64 && range.hi_excl) ||
		!range_normalize(set->kind, &range))
		elog(ERROR, "key set has an impossible range");
	keyset_append(set, &range);
	if (set->nranges == before)
		elog(ERROR, "key set has ranges out of order");
}

/*
 * The set that was serialized.  Byte keys point into the flat form, which
 * must live as long.  Errors out on anything serializing does not write.
 */
RfKeySet *
rf_keyset_deserialize(const bytea *flat)
{
	FlatReader	reader;
	RfKeySet   *set;
	uint8		kind;
	uint8		nulls;
	int			nranges;
	int			i;

	reader.at = (const uint8 *) VARDATA_ANY(flat);
	reader.end = reader.at + VARSIZE_ANY_EXHDR(flat);
	kind = *flat_get(&reader, 1);
	nulls = *flat_get(&reader, 1);
	memcpy(&nranges, flat_get(&reader, sizeof(nranges)), sizeof(nranges));

	/* Each range takes a byte at least, so this also bounds the allocation. */
	if ((kind != RF_KEY_U64 && kind != RF_KEY_BYTES) || nulls > 1 ||
		nranges < 0 || nranges > reader.end - reader.at)
		elog(ERROR, "key set has a bad header");
	set = keyset_alloc(kind, nranges);
	set->nulls = nulls != 0;
	for (i = 0; i < nranges; i++)
		flat_get_range(&reader, set);
	if (reader.at != reader.end)
		elog(ERROR, "key set goes on past its end");
	return set;
}
