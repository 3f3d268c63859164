/*-------------------------------------------------------------------------
 *
 * digest.h
 *	  Digests: coarse copies of filters, to ask many filters at once.
 *
 * A digest is made of a SNARF: of 64-bit keys, or of the hashes of byte strings
 * (the equality part of their filter).  A span of numbers is cut into buckets of
 * one width.  A bit for each bucket tells whether the filter may hold a key in
 * it.  What a digest denies, the filter denies, too.  So the NO of a digest is as
 * good, and costs a look at one bit instead of reading a page.
 *
 * An insert may have relied on a filter's YES to a point, even a wrong one.
 * So a bit is set for every number to which the filter says YES, not only for
 * its keys.
 *
 * 64 digests with the same buckets can be kept side by side: an array has one
 * word for each bucket, and each digest has its own bit in each word.  Then all
 * are asked at once.  A last word has a bit for each digest with keys outside
 * the buckets.  A FilterDigest without bits describes the buckets.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_DIGEST_H
#define RANGEFILTER_DIGEST_H

#include "filter/base/run.h"

typedef struct FilterDigest
{
	bool		of_hashes;		/* of byte strings: buckets span all numbers */
	bool		outside;		/* there are keys below min or above max */
	uint64_t	min;			/* the buckets begin here */
	uint64_t	max;			/* the last number in the buckets */
	uint64_t	width;			/* of a bucket */
	uint64_t   *bits;			/* memory of the caller */
	uint32_t	nbuckets;
} FilterDigest;

/* No digest has more buckets. */
#define FILTER_DIGEST_MOST		(1 << 20)

/*
 * Ranges over more buckets are not answered: it would take longer than asking
 * the filters.
 */
#define FILTER_DIGEST_MANY		256

/* The bytes that the bits take. */
static inline size_t
filter_digest_size(uint32_t nbuckets)
{
	return ((size_t) nbuckets + 63) / 64 * sizeof(uint64_t);
}

/* The number of digests side by side, and how many words they take. */
#define FILTER_DIGESTS 64

static inline size_t
filter_digests_words(uint32_t nbuckets)
{
	return (size_t) nbuckets + 1;
}

/* Sets the span of a digest, and the width of its buckets. */
static inline void
filter_digest_set_buckets(FilterDigest *digest, uint64_t min, uint64_t max)
{
	digest->min = min;
	digest->max = max;
	digest->width = (max - min) / digest->nbuckets + 1;
}

/*
 * Can there be a digest of a run?  *of_hashes tells which.  Not of byte strings whose filter has no
 * equality part.
 */
extern bool filter_digest_possible(FilterKind kind, const uint8_t *root, uint32_t root_len,
								   bool *of_hashes);

/*
 * Makes the digest of a run in *digest, whose buckets are set, and which has room for
 * bits.  False if there are fewer than two buckets or more than FILTER_DIGEST_MOST, the
 * run has keys outside the buckets, is of numbers where the digest is of hashes or the
 * other way round, or pages cannot be read or are damaged.
 */
extern bool filter_digest_make(FilterDigest *digest, FilterKind kind,
							   const uint8_t *root, uint32_t root_len,
							   FilterReader *reader);

/* Adds a number that the filter does not have. */
extern void filter_digest_add(FilterDigest *digest, uint64_t number);

/*
 * Puts a digest into a column, below FILTER_DIGESTS, of those side by side in
 * rows.  It has the same buckets.  clean: the column has no bit yet.
 */
extern void filter_digest_put(uint64_t *rows, const FilterDigest *digest,
							  unsigned column, bool clean);

/*
 * The number of the word that has the bits for a number: that of its bucket, or the last one if
 * the number is outside.
 */
static inline uint64_t
filter_digests_word(const FilterDigest *buckets, uint64_t number)
{
	return number < buckets->min || number > buckets->max ? buckets->nbuckets :
		(number - buckets->min) / buckets->width;
}

/* Adds a number, that the filter does not have, to one of the digests side by side. */
static inline void
filter_digests_add(const FilterDigest *buckets, uint64_t *rows, unsigned column,
				   uint64_t number)
{
	rows[filter_digests_word(buckets, number)] |= UINT64_C(1) << column;
}

/*
 * Which of the digests side by side do not deny that there is a key in [lo,
 * hi]?  All of them if the range has too many buckets.
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
		maybe = rows[buckets->nbuckets];
	if (lo > buckets->max || hi < buckets->min)
		return maybe;
	first = lo > buckets->min ? filter_digests_word(buckets, lo) : 0;
	last = filter_digests_word(buckets, hi < buckets->max ? hi : buckets->max);
	if (last - first >= FILTER_DIGEST_MANY)
		return UINT64_MAX;
	for (; first <= last; first++)
		maybe |= rows[first];
	return maybe;
}

#endif							/* RANGEFILTER_DIGEST_H */
