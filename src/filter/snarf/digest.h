/*-------------------------------------------------------------------------
 *
 * digest.h
 *	  Digests: coarse pictures of filters, for asking many filters.
 *
 * Filters are taken as filters of numbers.  Numbers are 64-bit keys, or stand for
 * byte strings: for a SNARF over leading bits as leading.h says, for a SuRF as
 * digest_numbers.c does.  They never decrease as strings increase.
 *
 * A span of numbers is cut into buckets of one width.  A bit for each bucket
 * tells whether the filter may hold a key in it.  What a digest denies, the
 * filter denies, too.  So the NO of a digest is as good, and costs a look at
 * one bit instead of reading a page.
 *
 * An insert may have relied on a filter's YES to a point, even a wrong one.
 * So a bit is set for every number to which the filter says YES, not only for
 * its keys.
 *
 * Buckets may have 2^split parts.  Then only the first nbuckets bits are for the buckets, and the
 * others are a Bloom filter with two hash functions, whose elements are the parts.  A bucket of
 * numbers is cut into parts of one width.  Where SuRFs keep bits of their keys' hashes, the parts of
 * a bucket are for the values of the first hash_bits bits of the hash.  A question about a point, or
 * about a few parts of numbers, looks at the bits of these, too.  So a point that is not in the
 * filter is denied if its bucket is, or its part.
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

/* The longest prefix of byte strings for which there are digests. */
#define FILTER_DIGEST_SHARED 32

/* Bytes of the largest code. */
#define FILTER_NUMBERS_CODE 520

/* The most bits of a string's hash in a digest. */
#define FILTER_DIGEST_HASH 8

/*
 * How keys become numbers.  Without knots, numbers of a SuRF's keys are the first
 * 64 bits of their code.  Before such a key is hashed it is cut to the length to which the
 * SuRF cuts its keys.
 */
typedef struct FilterNumbers
{
	bool		of_bytes;		/* of what follows this in byte strings: */
	uint8_t		shared_len;
	uint8_t		shared[FILTER_DIGEST_SHARED];	/* zeros follow */
	FilterDigits digits;		/* of leading bits */
	bool		coded;			/* by the code of a SuRF, else the leading
								 * bits */
	uint8_t		code[FILTER_NUMBERS_CODE];	/* its table */
	uint16_t	max_key;		/* bytes of a key that are hashed */
	uint8_t		hash_bits;		/* of the hash, that parts tell apart */
	uint32_t	nknots;
	const uint64_t *knots;		/* memory of the caller */
} FilterNumbers;

typedef struct FilterDigest
{
	FilterNumbers numbers;
	uint64_t	min;			/* the buckets begin here */
	uint64_t	max;			/* the last number in the buckets */
	uint64_t	width;			/* of a part of a bucket; where parts are by
								 * hashes, of a bucket */
	uint64_t   *bits;			/* memory of the caller */
	uint32_t	nbits;			/* of buckets, then of parts */
	uint32_t	nbuckets;
	uint8_t		split;			/* a bucket has 2^split parts; 0: no bits for
								 * parts */
	bool		outside;		/* there are keys below min or above max */
	uint32_t	parts_left;		/* to be marked at most, while it is made */
} FilterDigest;

/* The most parts of a bucket, 2^FILTER_DIGEST_SPLIT, and the narrowest one. */
#define FILTER_DIGEST_SPLIT		5
#define FILTER_DIGEST_NARROWEST	8

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

/* The same with room for the knots of their numbers behind them. */
static inline size_t
filter_digests_room(const FilterDigest *buckets)
{
	return filter_digests_words(buckets->nbits) + buckets->numbers.nknots;
}

/* Copies the knots to where there is room for them behind rows. */
extern void filter_digests_keep_knots(FilterDigest *buckets, uint64_t *rows);

/* Finds the knots that were copied, if rows are elsewhere now. */
static inline void
filter_digests_find_knots(FilterDigest *buckets, const uint64_t *rows)
{
	buckets->numbers.knots = rows + filter_digests_words(buckets->nbits);
}

/*
 * Ranges over more buckets are not answered: it would take longer than asking
 * the filters.
 */
#define FILTER_DIGEST_MANY 256

/* In ranges over more parts than this only buckets are looked at. */
#define FILTER_DIGEST_FEW_PARTS 4

/*
 * Sets *numbers to those that a run of numbers, or of byte strings, is made of.  Those
 * of a SuRF share nothing and have no knots.  False if there can be no digest of it.
 */
extern bool filter_numbers_of(FilterNumbers *numbers, FilterKind kind,
							  const uint8_t *root, uint32_t root_len);

/*
 * Can a run that is made of some numbers have a digest of others?  A SuRF can have
 * one of any that are coded; a SNARF over leading bits, of its own numbers, or of those by
 * other bytes or low bits behind a prefix that its keys share.
 */
extern bool filter_numbers_suit(const FilterNumbers *of_run,
								const FilterNumbers *of_digest);

/* Are these the same numbers by leading bits? */
extern bool filter_numbers_same(const FilterNumbers *a, const FilterNumbers *b);

/*
 * Makes numbers by leading bits such that runs of others have digests of them, too: behind
 * what both share, the low bits that vary in either, or between both.  False if there are none: the
 * numbers stay as they are.
 */
extern bool filter_numbers_merge(FilterNumbers *numbers, const FilterNumbers *others);

/*
 * The number of a byte string, and the greatest number of strings that begin with
 * it.
 */
extern uint64_t filter_number(const FilterNumbers *numbers, FilterBytes key);
extern uint64_t filter_number_above(const FilterNumbers *numbers, FilterBytes key);

/*
 * Numbers without knots of one in every stride leaves of a SuRF's page, which the
 * numbers suit; at most max.  Returns how many.  Lowers *hash_bits to how many bits of
 * hashes these leaves have.
 */
extern uint32_t filter_numbers_sample(const FilterNumbers *numbers,
									  const uint8_t *root, uint32_t root_len,
									  FilterReader *reader, uint32_t pageno,
									  uint32_t stride, uint64_t *samples,
									  uint32_t max, uint8_t *hash_bits);

/*
 * Sets at most nknots knots, so that about as many of the n >= 1 samples are between
 * each two.  Knots take the place of samples.
 */
extern void filter_numbers_set_knots(FilterNumbers *numbers, uint64_t *samples,
									 uint32_t n, uint32_t nknots);

/*
 * The first bits of a string's hash that parts tell apart; 0 where they have none.
 */
extern uint32_t filter_hash_bits(const FilterNumbers *numbers, FilterBytes key);

/* How many times width the buckets span. */
static inline uint64_t
filter_digest_widths(const FilterDigest *digest)
{
	return (uint64_t) digest->nbuckets << (digest->split - digest->numbers.hash_bits);
}

/*
 * Sets the span of a digest, and the width of its buckets or their parts.  Lowers split if parts
 * of numbers would be too narrow: rounding their width up would waste buckets.  Parts by hashes
 * are as many as the bits of these tell.  Without parts all bits are for buckets.
 */
static inline void
filter_digest_set_buckets(FilterDigest *digest, uint64_t min, uint64_t max)
{
	if (digest->numbers.hash_bits > 0)
		digest->split = digest->numbers.hash_bits;
	while (digest->split > digest->numbers.hash_bits &&
		   (max - min) / filter_digest_widths(digest) < FILTER_DIGEST_NARROWEST)
		digest->split--;
	if (digest->split == 0)
		digest->nbuckets = digest->nbits;
	digest->min = min;
	digest->max = max;
	digest->width = (max - min) / filter_digest_widths(digest) + 1;
}

/*
 * Makes the digest of a run in *digest, whose numbers and buckets are set, and which
 * has room for bits.  False if there are fewer than two buckets or more than 2^20
 * bits, or none for parts that there are, the run has keys outside the buckets or is made of other numbers, or pages
 * cannot be read or are damaged.
 */
extern bool filter_digest_make(FilterDigest *digest, FilterKind kind,
							   const uint8_t *root, uint32_t root_len,
							   FilterReader *reader);

/* Adds the number and the hash's bits of a key that the filter does not have. */
extern void filter_digest_add(FilterDigest *digest, uint64_t key, uint32_t hash_bits);

/*
 * Puts a digest into a column, below FILTER_DIGESTS, of those side by side in
 * rows.  It has the same buckets.  clean: the column has no bit yet.
 */
extern void filter_digest_put(uint64_t *rows, const FilterDigest *digest,
							  unsigned column, bool clean);

/* The part, of those of all buckets, that a key with a number inside these is in. */
static inline uint64_t
filter_digests_part(const FilterDigest *buckets, uint64_t number, uint32_t hash_bits)
{
	return (number - buckets->min) / buckets->width << buckets->numbers.hash_bits | hash_bits;
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

/* Which of the digests side by side have a part? */
static inline uint64_t
filter_digests_ask_part(const FilterDigest *buckets, const uint64_t *rows, uint64_t part)
{
	uint64_t	maybe = UINT64_MAX;

	for (int i = 0; i < FILTER_DIGEST_HASHES; i++)
		maybe &= rows[filter_digests_part_word(buckets, part, i)];
	return maybe;
}

/* The number of the word that has the bits for the bucket of a number inside. */
static inline uint64_t
filter_digests_bucket(const FilterDigest *buckets, uint64_t number)
{
	return filter_digests_part(buckets, number, 0) >> buckets->split;
}

/* Adds a key, that the filter does not have, to one of the digests side by side. */
static inline void
filter_digests_add(const FilterDigest *buckets, uint64_t *rows, unsigned column,
				   uint64_t number, uint32_t hash_bits)
{
	uint64_t	bit = UINT64_C(1) << column;
	uint64_t	part;

	if (number < buckets->min || number > buckets->max)
	{
		rows[buckets->nbits] |= bit;
		return;
	}
	part = filter_digests_part(buckets, number, hash_bits);
	rows[part >> buckets->split] |= bit;
	for (int i = 0; i < FILTER_DIGEST_HASHES && buckets->split > 0; i++)
		rows[filter_digests_part_word(buckets, part, i)] |= bit;
}

/*
 * Which of the digests side by side do not deny that there is a key with this number and bits of
 * its hash?
 */
static inline uint64_t
filter_digests_ask_key(const FilterDigest *buckets, const uint64_t *rows,
					   uint64_t number, uint32_t hash_bits)
{
	uint64_t	maybe;

	if (number < buckets->min || number > buckets->max)
		return rows[buckets->nbits];
	maybe = rows[filter_digests_bucket(buckets, number)];
	if (buckets->split > 0)
		maybe &= filter_digests_ask_part(buckets, rows,
										 filter_digests_part(buckets, number, hash_bits));
	return maybe;
}

/*
 * Which of the digests do not deny, by bits of parts of numbers, that there is a key in [lo, hi],
 * which is inside the buckets?
 */
static inline uint64_t
filter_digests_ask_parts(const FilterDigest *buckets, const uint64_t *rows,
						 uint64_t lo, uint64_t hi)
{
	uint64_t	part = filter_digests_part(buckets, lo, 0);
	uint64_t	last = filter_digests_part(buckets, hi, 0);
	uint64_t	maybe = 0;

	if (last - part >= FILTER_DIGEST_FEW_PARTS)
		return UINT64_MAX;
	for (; part <= last; part++)
		maybe |= filter_digests_ask_part(buckets, rows, part);
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
	uint64_t	maybe = 0;
	bool		within = lo >= buckets->min && hi <= buckets->max;

	if (lo > hi)
		return 0;
	if (!within)
		maybe = rows[buckets->nbits];
	if (lo > buckets->max || hi < buckets->min)
		return maybe;
	first = lo > buckets->min ? filter_digests_bucket(buckets, lo) : 0;
	last = filter_digests_bucket(buckets, hi < buckets->max ? hi : buckets->max);
	if (last - first >= FILTER_DIGEST_MANY)
		return UINT64_MAX;
	for (; first <= last; first++)
		maybe |= rows[first];
	if (buckets->split > 0 && buckets->numbers.hash_bits == 0 && within)
		maybe &= filter_digests_ask_parts(buckets, rows, lo, hi);
	return maybe;
}

#endif							/* RANGEFILTER_DIGEST_H */
