/*-------------------------------------------------------------------------
 *
 * probe.h
 *	  Asking a rangefilter index: what it offers to the planner part.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_PROBE_H
#define RANGEFILTER_PROBE_H

#include "compat.h"
#include "filter/snarf/digest.h"
#include "key/codec.h"
#include "key/keyset.h"
#include "rangefilter/page/page.h"
#include "rangefilter/page/shared.h"
#include "utils/relcache.h"

/*
 * A backend's cached metapage of an index.  It is asked in place of the index.
 * Its answers were true when its version was read.  A caller who needs answers
 * that are true now must check that the version has not moved.
 */
typedef struct RfCachedMeta RfCachedMeta;

/*
 * Describes the digest in a column of a digest matrix: the index, its file,
 * and the version it had when rf_read_change_counter() returned validity.
 * Where there are no change counters, the caller chooses another number that
 * stands for a time.
 */
typedef struct RfDigestColumn
{
	Oid			index;			/* InvalidOid: the column is empty */
	RfRelFile	locator;
	uint64		validity;		/* never 0 */
	RfSummaryVersion version;
} RfDigestColumn;

/* How a session sees a digest matrix. */
typedef struct RfDigestMatrix RfDigestMatrix;
typedef struct RfDigestView
{
	RfDigestMatrix *matrix;		/* or NULL; then the rest is not set */
	uint64		writes;			/* the matrix's "writes" at the look */
	uint64		additions;		/* its "additions" at the look */
	FilterDigest buckets;
	const uint64 *rows;
	RfDigestColumn columns[FILTER_DIGESTS];
} RfDigestView;

/*
 * The least and the greatest key of an index, as rf_bound_number() has them.  Without keys
 * max is below min.
 */
typedef struct RfKeyBounds
{
	uint64		min;
	uint64		max;
} RfKeyBounds;

#define RF_NO_BOUNDS	((RfKeyBounds) {0, PG_UINT64_MAX})

/* Where a cached metapage is kept. */
typedef struct RfCachedMetaRef
{
	RfCachedMeta **cached;		/* NULL: none yet */
	MemoryContext context;		/* where cached metapages are allocated */
	RfKeyBounds *bounds;		/* where to put the index's bounds; NULL:
								 * nowhere */
} RfCachedMetaRef;

extern uint64 rf_bound_number(RfKeyKind kind, const RfKey *key);
extern bool rf_read_version(Relation index, RfSummaryVersion *version);
extern PGDLLEXPORT RfAnswer rf_probe(Relation index, const RfKeySet *set,
									 bool in_recovery, RfSummaryVersion *version,
									 RfCachedMetaRef *ref);

/*
 * The same for an index that is locked but not open.  The caller knows that
 * the index is in the file with this locator, that its keys have this codec,
 * and that it is permanent (WAL-logged).
 */
extern RfAnswer rf_probe_by_file(const RfRelFile *locator,
								 const RfCodec *codec, const RfKeySet *set,
								 bool in_recovery, RfSummaryVersion *version,
								 RfCachedMetaRef *ref);
extern bool rf_read_version_by_file(const RfRelFile *locator,
									const RfCodec *codec, const RfCachedMeta *cached,
									RfSummaryVersion *version);
extern bool rf_probe_ahead(const RfRelFile *locator, const RfCodec *codec,
						   const RfKeySet *set, bool in_recovery);

/*
 * rf_probe() by a cached metapage.  The index need not be open or locked.
 * RF_UNKNOWN also where a page of the index has been moved or replaced since.
 */
extern RfAnswer rf_cached_meta_probe(RfCachedMeta *cached, const RfKeySet *set,
									 bool in_recovery, RfSummaryVersion *version);
extern RfSummaryVersion rf_cached_meta_version(const RfCachedMeta *cached);

/* The numbers of which making a digest costs about as much as one question. */
#define RF_DIGEST_KEYS_PER_QUESTION	100

extern void rf_cached_meta_asked(RfCachedMeta *cached, uint32 n);
extern uint64 rf_cached_meta_wants_digest(RfCachedMeta *cached);

/*
 * Makes a digest with these buckets, if they suit the keys, of an index that
 * is locked and in this file.  It reads the whole filter.  The bits are
 * allocated in the current context.  After a failure,
 * rf_cached_meta_wants_digest() says no for a while.  A caller who cannot make
 * a digest passes NULL as buckets, for the same effect.
 */
extern bool rf_cached_meta_digest(RfCachedMeta *cached, const RfRelFile *locator,
								  const FilterDigest *buckets, FilterDigest *digest);
extern int	rf_key_numbers(const FilterDigest *buckets, const RfCodec *codec,
						   const RfKey *key, uint64 *numbers);

/*
 * Can digests of an index with keys of this codec answer for a set of keys?  Those of byte strings answer
 * for single keys, and for rows by their leading columns.  Of several ranges the first one tells.
 */
static inline bool
rf_digests_answer(const RfCodec *codec, const RfKeySet *set)
{
	return set->nranges > 0 &&
		(set->kind == RF_KEY_U64 || codec->row != NULL ||
		 rf_range_is_key(set->kind, &set->ranges[0]));
}

/*
 * What a digest of an index must span, and how many keys it is made of.  rf_cached_meta_span() returns
 * false where there can be no digest, or where pages of the delta have changed.
 */
typedef struct RfSpan
{
	bool		of_hashes;		/* of byte strings: they span all numbers */
	uint64		min;
	uint64		max;
	uint64		nkeys;
} RfSpan;

extern bool rf_cached_meta_span(RfCachedMeta *cached, RfSpan *span);
extern uint32 rf_digest_bits(uint64 nkeys);
extern bool rf_span_fits(const RfSpan *span, const FilterDigest *buckets);

/*
 * Digest matrices (rfdigests.c): in shared memory, or the session's own where
 * the server has not loaded the library.  Returns how many bytes there are for
 * those of an index, where other indexes' that are in use stay: 0 in recovery.
 */
extern Size rf_digests_room(Oid index);
extern bool rf_digests_are_shared(void);

/*
 * Looks at the matrix of the FILTER_DIGESTS leaves of a partitioned index from
 * the leaf FILTER_DIGESTS * number on.  False: there is none.
 */
extern bool rf_digests_view(Oid index, int number, RfDigestView *view);
extern void rf_digests_make(Oid index, int number, const FilterDigest *buckets,
							const RfDigestView *old);
extern bool rf_digests_unchanged(const RfDigestView *view);
extern bool rf_digests_have_more(const RfDigestView *view);

/*
 * Tells of a key written to an index; key is NULL for an SQL NULL.  The write
 * changed the version from before to after.  The caller holds the metapage
 * locked exclusively, or share and the delta's last page exclusively, so nobody
 * else moves the version meanwhile.  If the index has a shared digest of the
 * version before, the key is added to it.
 */
extern void rf_digests_add(Relation index, const RfSummaryVersion *before,
						   const RfSummaryVersion *after, const RfKey *key);
extern void rf_digests_used(const RfDigestView *view);
extern void rf_digests_put(RfDigestView *view, const FilterDigest *digest,
						   int number, const RfDigestColumn *column);
extern void rf_digests_forget(Oid index, int number);
extern void rf_digests_forget_own(void);
extern void rf_digests_forget_database(Oid database);

/*
 * How many columns there are, and how many bytes they take: in shared matrices
 * of this database, and in the session's own.
 */
extern void rf_digests_usage(int64 *columns, int64 *bytes);
extern void rf_digests_own_usage(int64 *columns, int64 *bytes);
extern void rf_cached_meta_forget(RfCachedMetaRef *ref);

/*
 * The sums over the segments and levels of an index.  A key in several of them
 * is counted in each.
 */
typedef struct RfShares
{
	double		rows;			/* when they were made, dead ones included */
	double		keys;			/* distinct */
	double		key_share;		/* share of the rows that one key has, if it
								 * is an average one and in all segments */
} RfShares;

extern bool rf_estimate_shares(Relation index, BlockNumber heap_blocks,
							   RfKeySet **sets, int nsets, RfShares *shares,
							   double *share);

/*
 * Sets up shared memory, if the server loads the library.  Called once, when
 * it is loaded.
 */
extern void rf_init_shared(void);

#endif							/* RANGEFILTER_PROBE_H */
