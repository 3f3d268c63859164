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
 * Buckets may have parts, all of one width.  Then only the first nbuckets bits are for the
 * buckets, and the others are a Bloom filter of the parts with two hash functions.  A question
 * about a point, or about a few parts, looks at the bits of these, too.
 *
 * 64 digests with the same buckets can be kept side by side: an array has one
 * word for each bit, and each digest has its own bit in each word.  Then all
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
	uint8_t		split;			/* a bucket has 2^split parts; 0: no bits for
								 * parts */
	uint64_t	min;			/* the buckets begin here */
	uint64_t	max;			/* the last number in the buckets */
	uint64_t	width;			/* of a part */
	uint64_t   *bits;			/* memory of the caller */
	uint32_t	nbits;			/* of buckets, then of parts */
	uint32_t	nbuckets;
	uint32_t	parts_left;		/* to be marked at most, while it is made */
} FilterDigest;

/* No digest has more bits. */
#define FILTER_DIGEST_MOST		(1 << 20)

/* Buckets have 2^FILTER_DIGEST_SPLIT parts, none narrower than FILTER_DIGEST_NARROWEST, or one. */
#define FILTER_DIGEST_SPLIT		5
#define FILTER_DIGEST_NARROWEST	8

/* In ranges over more parts than this only buckets are looked at. */
#define FILTER_DIGEST_FEW_PARTS	4

/*
 * Ranges over more buckets are not answered: it would take longer than asking
 * the filters.
 */
#define FILTER_DIGEST_MANY		256

/* The bytes that the bits take. */
static inline size_t
filter_digest_size(uint32_t nbits)
{
	return ((size_t) nbits + 63) / 64 * sizeof(uint64_t);
}

/* The number of digests side by side, and how many words they take. */
#define FILTER_DIGESTS 64

static inline size_t
filter_digests_words(uint32_t nbits)
{
	return (size_t) nbits + 1;
}

/*
 * Sets the span of a digest, and the width of its buckets or their parts.  Where parts would be too
 * narrow, there are none, and all bits are for buckets: rounding their width up would waste buckets.
 */
static inline void
filter_digest_set_buckets(FilterDigest *digest, uint64_t min, uint64_t max)
{
	digest->split = digest->nbuckets < digest->nbits &&
		(max - min) / digest->nbuckets >> FILTER_DIGEST_SPLIT >= FILTER_DIGEST_NARROWEST ?
		FILTER_DIGEST_SPLIT : 0;
	if (digest->split == 0)
		digest->nbuckets = digest->nbits;
	digest->min = min;
	digest->max = max;
	digest->width = (max - min) / ((uint64_t) digest->nbuckets << digest->split) + 1;
}

/*
 * Can there be a digest of a run?  *of_hashes tells which.  Not of byte strings whose filter has no
 * equality part.
 */
extern bool filter_digest_possible(FilterKind kind, const uint8_t *root, uint32_t root_len,
								   bool *of_hashes);

/*
 * Makes the digest of a run in *digest, whose buckets are set, and which has room for
 * bits.  False if there are fewer than two buckets, more than FILTER_DIGEST_MOST bits, or none for
 * parts that there are, the run has keys outside the buckets, is of numbers where the digest is of hashes or the
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

/* The part, of those of all buckets, that a number inside these is in. */
static inline uint64_t
filter_digests_part(const FilterDigest *buckets, uint64_t number)
{
	return (number - buckets->min) / buckets->width;
}

/* The hash functions of parts: multiplications by these, of which the upper bits count. */
#define FILTER_DIGEST_HASHES	2
#define FILTER_DIGEST_FACTOR(i) \
	((i) == 0 ? UINT64_C(0x9E3779B97F4A7C15) : UINT64_C(0xD6E8FEB86659FD93))

/* The number of the word that has the bits for a part by hash function i. */
static inline size_t
filter_digests_part_word(const FilterDigest *buckets, uint64_t part, int i)
{
	uint32_t	hash = part * FILTER_DIGEST_FACTOR(i) >> 32;

	return buckets->nbuckets +
		((uint64_t) hash * (buckets->nbits - buckets->nbuckets) >> 32);
}

/* Adds a number, that the filter does not have, to one of the digests side by side. */
static inline void
filter_digests_add(const FilterDigest *buckets, uint64_t *rows, unsigned column,
				   uint64_t number)
{
	uint64_t	bit = UINT64_C(1) << column;
	uint64_t	part;

	if (number < buckets->min || number > buckets->max)
	{
		rows[buckets->nbits] |= bit;
		return;
	}
	part = filter_digests_part(buckets, number);
	rows[part >> buckets->split] |= bit;
	for (int i = 0; i < FILTER_DIGEST_HASHES && buckets->split > 0; i++)
		rows[filter_digests_part_word(buckets, part, i)] |= bit;
}

/*
 * Which of the digests side by side have one of the parts from part to last?  All of them if
 * these are many.
 */
static inline uint64_t
filter_digests_ask_parts(const FilterDigest *buckets, const uint64_t *rows,
						 uint64_t part, uint64_t last)
{
	uint64_t	maybe = 0;

	if (buckets->split == 0 || last - part >= FILTER_DIGEST_FEW_PARTS)
		return UINT64_MAX;
	for (; part <= last; part++)
		maybe |= rows[filter_digests_part_word(buckets, part, 0)] &
			rows[filter_digests_part_word(buckets, part, 1)];
	return maybe;
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
	uint64_t	bucket;
	uint64_t	maybe = 0;

	if (lo > hi)
		return 0;
	if (lo < buckets->min || hi > buckets->max)
		maybe = rows[buckets->nbits];
	if (lo > buckets->max || hi < buckets->min)
		return maybe;
	first = filter_digests_part(buckets, lo > buckets->min ? lo : buckets->min);
	last = filter_digests_part(buckets, hi < buckets->max ? hi : buckets->max);
	bucket = first >> buckets->split;
	if ((last >> buckets->split) - bucket >= FILTER_DIGEST_MANY)
		return UINT64_MAX;
	for (; bucket <= last >> buckets->split; bucket++)
		maybe |= rows[bucket];
	if (lo >= buckets->min && hi <= buckets->max)
		maybe &= filter_digests_ask_parts(buckets, rows, first, last);
	return maybe;
}

#endif							/* RANGEFILTER_DIGEST_H */
