/*-------------------------------------------------------------------------
 *
 * probe.h
 *	  Asking a rangefilter index: what the planner part may know of it.
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
 * The state of a summary.  While it is the same, every NO stays a NO: each
 * change that could turn one into something else moves it.
 */
typedef struct RfSummaryVersion
{
	uint64		identity;		/* drawn at random by every build */
	uint64		changes;		/* drawn at random by every change */
} RfSummaryVersion;

/*
 * A backend's cached metapage of an index, to be asked in its place.  What
 * such a cached metapage says was true when its version was read; whether it
 * still is, is for the caller to find out, if it matters.
 */
typedef struct RfCachedMeta RfCachedMeta;

static inline bool
rf_same_version(const RfSummaryVersion *a, const RfSummaryVersion *b)
{
	return a->identity == b->identity && a->changes == b->changes;
}

/*
 * What the digest in a column of a digest matrix says it is of: an index, in a
 * file, with this version when rf_read_change_counter() said validity.  Where
 * there are no change counters, validity is another number that tells a time,
 * which is for the caller to choose.
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
	RfDigestMatrix *matrix;		/* or NULL; then the rest means nothing */
	uint64		writes;			/* number of its state then */
	uint64		additions;		/* and how many keys had been added */
	FilterDigest buckets;
	const uint64 *rows;
	RfDigestColumn columns[FILTER_DIGESTS];
} RfDigestView;

/* Where a cached metapage is kept. */
typedef struct RfCachedMetaRef
{
	RfCachedMeta **cached;		/* NULL: none yet */
	MemoryContext context;		/* where cached metapages are allocated */
} RfCachedMetaRef;

/*
 * Reads the version of an open index.  False where it cannot be had (empty or
 * damaged file).  Takes and releases a share lock on the metapage.
 */
extern bool rf_read_version(Relation index, RfSummaryVersion *version);

/*
 * May a row version of the indexed table have a key in the set?  The caller
 * holds at least AccessShareLock on the index.  *version is what was read
 * before anything else; it is set unless the answer is RF_UNKNOWN.
 * in_recovery: the snapshot the answer is for was, or may have been, taken
 * during recovery.  Damaged or unreadable pages give RF_UNKNOWN.  If ref is
 * not NULL, a cached metapage of what was asked is kept there or brought up
 * to date, room permitting; an older one does not stay.
 */
extern PGDLLEXPORT RfAnswer rf_probe(Relation index, const RfKeySet *set,
									 bool in_recovery, RfSummaryVersion *version,
									 RfCachedMetaRef *ref);

/*
 * The same for an index that is locked but not open, by the locator of its file.
 * The caller knows that this is where the index is, that its keys have this
 * codec, and that it is permanent (WAL-logged).
 */
extern RfAnswer rf_probe_by_file(const RfRelFile *locator,
								 const RfCodec *codec, const RfKeySet *set,
								 bool in_recovery, RfSummaryVersion *version,
								 RfCachedMetaRef *ref);
extern bool rf_read_version_by_file(const RfRelFile *locator,
									const RfCodec *codec, const RfCachedMeta *cached,
									RfSummaryVersion *version);

/*
 * The same by a cached metapage, without opening or locking the index:
 * RF_UNKNOWN also where a page it needs is not where it was.
 */
extern RfAnswer rf_cached_meta_probe(RfCachedMeta *cached, const RfKeySet *set,
									 bool in_recovery, RfSummaryVersion *version);

/*
 * Caches a metapage for those who ask it many times, of an open index
 * whose keys are of this kind: in the current context, with copies of the
 * run's pages as they are read.  That takes from *budget (bytes), which must
 * outlive it.  NULL where there can be none.  While it is in use the caller
 * keeps the index locked and open.
 */
extern RfCachedMeta *rf_cached_meta_make(Relation index, RfKeyKind kind, Size *budget);

/* The version of what was copied. */
extern RfSummaryVersion rf_cached_meta_version(const RfCachedMeta *cached);

/*
 * Is it time to make a digest of what the cached metapage is asked about,
 * since it is asked so often?  0: no; else the number of keys, some
 * nanoseconds each.
 */
extern uint64 rf_cached_meta_wants_digest(RfCachedMeta *cached);

/*
 * Makes a digest with buckets, if that suits, of an index that is locked and
 * in this file; its bits are allocated in the current context.  It reads all
 * of the filter.  Where it fails, or buckets is NULL since there is none,
 * nobody wants one for a while.
 */
extern bool rf_cached_meta_digest(RfCachedMeta *cached, const RfRelFile *locator,
								  const FilterDigest *buckets, FilterDigest *digest);

/*
 * What a digest of the cached metapage would span, and of how many keys.
 * False where there can be none.
 */
typedef struct RfSpan
{
	uint64		min;
	uint64		max;
	uint64		nkeys;
} RfSpan;

extern bool rf_cached_meta_span(RfCachedMeta *cached, RfSpan *span);

/* How many bits a digest should have. */
extern uint32 rf_digest_bits(uint64 nkeys);

/* Is what has this span well served by a digest with these buckets? */
extern bool rf_span_fits(const RfSpan *span, const FilterDigest *buckets);

/*
 * Digest matrices (rfdigests.c): in shared memory, or the session's own where
 * the server has not loaded the library.  How many bytes there are for them:
 * 0 in recovery.
 */
extern Size rf_digests_room(void);

/*
 * Looks at the matrix of the leaves of a partitioned index from
 * FILTER_DIGESTS * number on.  False: there is none.
 */
extern bool rf_digests_view(Oid index, int number, RfDigestView *view);

/*
 * Makes one without digests, if there is room: where there is none, or, if it is
 * still as it was when old was made, instead of it.
 */
extern void rf_digests_make(Oid index, int number, const FilterDigest *buckets,
							const RfDigestView *old);

/*
 * Is the matrix as it was when it was looked at?  If so, what was read of its
 * rows between then and now is of that state.
 */
extern bool rf_digests_unchanged(const RfDigestView *view);

/*
 * Have keys been added since the matrix was looked at?  Then some columns are
 * of another version, and as true as before for the old one.
 */
extern bool rf_digests_have_more(const RfDigestView *view);

/*
 * A key was written to an index, NULL for one that is NULL.  Its metapage,
 * which the caller holds locked exclusively, and has changed, had the version
 * before, and has now the version after.  If the index has a shared digest, of
 * that version, the key is added to it.
 */
extern void rf_digests_add(Relation index, const RfSummaryVersion *before,
						   const RfSummaryVersion *after, const uint64 *key);

/* The matrix is asked, so it should stay. */
extern void rf_digests_used(const RfDigestView *view);

/*
 * Puts a digest with the matrix's buckets into a column, unless the matrix is
 * not as it was.  The view is then one of the new state.
 */
extern void rf_digests_put(RfDigestView *view, const FilterDigest *digest,
						   int number, const RfDigestColumn *column);

/* Throws a matrix away that is the session's own; of shared ones none. */
extern void rf_digests_forget(Oid index, int number);

/*
 * Throws away all memory for matrices of the session's own, which nobody may
 * have a view of any more.
 */
extern void rf_digests_forget_own(void);

/* How many columns there are, and bytes: shared ones, and the session's own. */
extern void rf_digests_usage(int64 *columns, int64 *bytes);
extern void rf_digests_own_usage(int64 *columns, int64 *bytes);

/* Throws a cached metapage away. */
extern void rf_cached_meta_forget(RfCachedMetaRef *ref);

/*
 * What the segments of an index have, all together.  Keys in several segments
 * are counted in each.
 */
typedef struct RfShares
{
	double		rows;			/* when they were made, dead ones included */
	double		keys;			/* distinct */
	double		key_share;		/* share of the rows that one key has, if it
								 * is an average one and in all segments */
} RfShares;

/*
 * What share of the rows that are not NULL has keys of each of some sets, about?
 * False where the index does not know, or to find out would take long: NULLs in a
 * set do not count.  heap_blocks is the length of the table.  The caller holds a
 * lock on the index.  Takes and releases a share lock on the metapage.
 */
extern bool rf_estimate_shares(Relation index, BlockNumber heap_blocks,
							   RfKeySet **sets, int nsets, RfShares *shares,
							   double *share);

/* Shared memory, if the server loads the library; called once, when it is loaded. */
extern void rf_init_shared(void);

#endif							/* RANGEFILTER_PROBE_H */
