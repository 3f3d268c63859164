/*-------------------------------------------------------------------------
 *
 * rfkeybounds.c
 *	  The least and the greatest key of an index, as numbers.
 *
 * Numbers are 64-bit keys, or the first eight bytes of byte strings.  They never decrease
 * as keys increase.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bswap.h"
#include "rangefilter/page/page.h"
#include "rangefilter/probe/internal.h"

/*
 * The number of a key, or of the first eight of all keys that begin with it if it was cut.
 */
static uint64
number_of(RfKeyKind kind, const RfKey *key, bool cut)
{
	uint64		number = cut ? PG_UINT64_MAX : 0;

	if (kind == RF_KEY_U64)
		return key->num;
	memcpy(&number, key->data, Min(key->len, sizeof(number)));
	return pg_ntoh64(number);
}

/*
 * The number of a key that is compared with bounds.  It never decreases as keys increase.
 */
uint64
rf_bound_number(RfKeyKind kind, const RfKey *key)
{
	return number_of(kind, key, false);
}

/*
 * Widens bounds by a least and a greatest number.
 */
static void
widen(RfKeyBounds *bounds, uint64 min, uint64 max)
{
	bounds->min = Min(bounds->min, min);
	bounds->max = Max(bounds->max, max);
}

/*
 * Widens bounds by the keys in a page of the delta.  Returns false if it cannot be read.
 */
static bool
widen_by_page(RfKeyBounds *bounds, RfFile *file, const RfMetaData *meta, int i,
			  RfKeyKind kind)
{
	PGAlignedBlock page;
	int			nkeys;

	if (!rf_delta_copy_page(file, meta, rf_delta_slot(meta, i), kind, page.data, &nkeys))
		return false;
	for (int j = 0; j < nkeys; j++)
	{
		RfKey		key = {0};
		uint64		number;

		if (!rf_delta_key(page.data, kind, j, &key))
			return false;
		number = number_of(kind, &key, false);
		widen(bounds, number, number);
	}
	return true;
}

/*
 * Sets the bounds of an index whose metapage the caller has locked, as far as they can be
 * told: not of keys that a collator made, because nobody compares its version.  They hold all keys
 * of which this state of the index does not say NO.
 */
void
rf_read_key_bounds(RfFile *file, const RfMetaData *meta, RfKeyKind kind,
				   RfKeyBounds *bounds)
{
	const RfSegment *segment = rf_first_segment(meta);
	RfKeyBounds found = {PG_UINT64_MAX, 0};

	*bounds = RF_NO_BOUNDS;
	if ((meta->flags & RF_UNCERTAIN_FLAGS) != 0 || meta->collators != 0)
		return;
	for (int i = 0; i < meta->nsegments + meta->nlevels; i++)
	{
		RfKey		min = rf_segment_min(segment);
		RfKey		max = rf_segment_max(segment);

		if (segment->nkeys > 0)
			widen(&found, number_of(kind, &min, false),
				  number_of(kind, &max, segment->flags & RF_SEGMENT_MAX_CUT));
		segment = rf_next_segment(segment);
	}
	for (int i = 0; i < meta->ndelta; i++)
	{
		if (!widen_by_page(&found, file, meta, i, kind))
			return;
	}
	*bounds = found;
}
