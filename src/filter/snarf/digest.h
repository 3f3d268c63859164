/*-------------------------------------------------------------------------
 *
 * digest.h
 *	  A coarse picture of a filter of numbers, for those who ask many filters.
 *
 * The numbers from the filter's least key to its greatest are cut into
 * buckets of one width; a bit for each says whether the filter may hold a
 * key there.  What a digest denies the filter denies, too, so that its NO is
 * as good, at the cost of one bit looked at and no page read.
 *
 * A filter's YES to a point may be what an insert relied on, true or not.  So
 * a bit is set for all that the filter says YES to, not only for its keys.
 *
 * Digests with the same buckets (given by a digest without bits) can be kept
 * side by side, 64 in an array of words, one for each bucket, in which each
 * has one bit.  Then all are asked at once.  A last word has a bit for each
 * digest with keys that no bucket has.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_DIGEST_H
#define RANGEFILTER_DIGEST_H

#include "filter/base/run.h"

typedef struct FilterDigest
{
	uint64_t	min;			/* the buckets begin here ... */
	uint64_t	max;			/* ... and end here */
	uint64_t	width;			/* of a bucket */
	uint64_t   *bits;			/* kept by the caller */
	uint32_t	nbits;
	bool		outside;		/* there are keys below min or above max */
} FilterDigest;

/* Bytes that the bits take. */
static inline size_t
filter_digest_size(uint32_t nbits)
{
	return ((size_t) nbits + 63) / 64 * sizeof(uint64_t);
}

/* Digests side by side, and how many words they take. */
#define FILTER_DIGESTS 64

static inline size_t
filter_digests_words(uint32_t nbits)
{
	return (size_t) nbits + 1;
}

/* More buckets take longer than to ask each filter. */
#define FILTER_DIGEST_MANY 256

/* Gives a digest whose nbits are set a span, and buckets. */
static inline void
filter_digest_set_buckets(FilterDigest *digest, uint64_t min, uint64_t max)
{
	digest->min = min;
	digest->max = max;
	digest->width = (max - min) / digest->nbits + 1;
}

/*
 * Makes the digest of a run in *digest, which has buckets, and room for bits.
 * False where there can be none: fewer than two bits or more than a million;
 * a run that has keys outside the buckets; a filter of bytes; pages that
 * cannot be read or are damaged.
 */
extern bool filter_digest_make(FilterDigest *digest, FilterKind kind,
							   const uint8_t *root, uint32_t root_len,
							   FilterReader *reader);

/* A key that the filter does not have is to be found by the digest, too. */
extern void filter_digest_add(FilterDigest *digest, uint64_t key);

/*
 * Makes a digest of these buckets number column, below FILTER_DIGESTS, of
 * those side by side in rows.
 */
extern void filter_digest_put(uint64_t *rows, const FilterDigest *digest,
							  unsigned column);

/* The word of those side by side that has a bit for a key. */
static inline size_t
filter_digests_word(const FilterDigest *buckets, uint64_t key)
{
	if (key < buckets->min || key > buckets->max)
		return buckets->nbits;
	return (key - buckets->min) / buckets->width;
}

/*
 * Which of the digests side by side do not deny that there is a key in [lo, hi]?
 * All, also where that is too long to look for.
 */
static inline uint64_t
filter_digests_ask(const FilterDigest *buckets, const uint64_t *rows,
				   uint64_t lo, uint64_t hi)
{
	uint64_t	first;
	uint64_t	last;
	uint64_t	maybe = 0;

	if (lo > hi)
		return 0;
	if (lo < buckets->min || hi > buckets->max)
		maybe = rows[buckets->nbits];
	if (lo > buckets->max || hi < buckets->min)
		return maybe;
	first = lo > buckets->min ? (lo - buckets->min) / buckets->width : 0;
	if (lo == hi)
		return rows[first];
	last = ((hi < buckets->max ? hi : buckets->max) - buckets->min) / buckets->width;
	if (last - first >= FILTER_DIGEST_MANY)
		return UINT64_MAX;
	for (; first <= last; first++)
		maybe |= rows[first];
	return maybe;
}

#endif							/* RANGEFILTER_DIGEST_H */
