/*-------------------------------------------------------------------------
 *
 * rfmetacache.c
 *	  Metapages that a backend has cached.  It asks them in place of the
 *	  indexes.
 *
 * A planner that asks a thousand indexes spends most of its time on locking
 * and opening them and on their metapages.  A cached metapage remembers the
 * buffers in which the other pages were last seen, so only these pages need to
 * be visited.  Pages of a run do not change, and carry their owner; a page
 * that now belongs to another run counts as missing.  A page of the
 * delta may have more keys by now, but not fewer.  So a NO is what the index
 * would have answered when the cached metapage was made.
 *
 * The planner uses a NO of a cached metapage only as a guess: the version must
 * be checked before rows are left out because of it.  A gate makes its cached
 * metapages when its query has its snapshot.  Their NO holds for that
 * snapshot, whatever is inserted later.  They also keep copies of the pages of
 * runs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "filter/sorted/sorted.h"
#include "key/rowkey.h"
#include "filter/filter.h"
#include "port/pg_bswap.h"
#include "rangefilter/page/page.h"
#include "rangefilter/probe/internal.h"
#include "stats/session.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/*
 * A digest is made after a number of questions: one for each
 * RF_DIGEST_KEYS_PER_QUESTION keys, and RF_DIGEST_QUESTIONS more.  Making the
 * digest takes about as long as these questions take.
 */
#define RF_DIGEST_QUESTIONS			10

/* Where sessions share digests, this many are assumed to ask as often as this one. */
#define RF_DIGEST_SHARERS			10

/*
 * The fewest bits of a digest for each key: with these it denies about three quarters of
 * absent points.
 */
#define RF_DIGEST_BITS		3

/* No digest is made of more keys: it would take too long for one query. */
#define RF_DIGEST_MAX_KEYS	100000

/*
 * The most failures that are counted, so that it is tried again at some time.
 */
#define RF_DIGEST_MOST_FAILED		16

struct RfCachedMeta
{
	RfFile		file;
	Size		head;			/* of the metapage's fields kept */
	uint32		asked;			/* questions since a digest was last tried */
	uint32		failed;			/* failed tries in a row */
	bool		collated;		/* collators made the keys: see
								 * RfMetaData.collators */
	RfSummaryVersion version;	/* read before what it says */
	/* The metapage's fields and its directory follow, MAXALIGNed. */
};

/*
 * The metapage's fields: those before the delta slots, and the slots in use.
 */
static RfMetaData *
rf_cached_meta_data(const RfCachedMeta *cached)
{
	return (RfMetaData *) ((char *) cached + MAXALIGN(sizeof(RfCachedMeta)));
}

/*
 * The directory's segments.
 */
static RfSegment *
rf_cached_meta_segments(const RfCachedMeta *cached)
{
	return (RfSegment *) ((char *) rf_cached_meta_data(cached) + cached->head);
}

/*
 * How many bytes of a metapage's fields are kept.
 */
static Size
rf_head_size(const RfMetaData *meta)
{
	return MAXALIGN(offsetof(RfMetaData, delta) +
					meta->ndelta * sizeof(RfDeltaSlot));
}

/*
 * Throws a cached metapage away.
 */
void
rf_cached_meta_forget(RfCachedMetaRef *ref)
{
	if (*ref->cached == NULL)
		return;
	rf_cache_used -= GetMemoryChunkSpace(*ref->cached);
	pfree(*ref->cached);
	*ref->cached = NULL;
}

/*
 * The version on the cached metapage.
 */
RfSummaryVersion
rf_cached_meta_version(const RfCachedMeta *cached)
{
	return cached->version;
}

/*
 * Does the cached metapage still describe the metapage?  The version alone
 * does not tell: a merge moves keys from pages of the delta to a level, and
 * leaves the version.
 */
static bool
rf_cached_meta_is_current(const RfCachedMeta *cached, const RfMetaData *meta)
{
	const RfMetaData *old = rf_cached_meta_data(cached);

	return old->identity == meta->identity && old->changes == meta->changes &&
		old->generation == meta->generation && old->flags == meta->flags &&
		old->ndelta == meta->ndelta;
}

/*
 * The size of a cached metapage (bytes).
 */
static Size
rf_cached_meta_size(const RfMetaData *meta)
{
	return MAXALIGN(sizeof(RfCachedMeta)) + rf_head_size(meta) +
		rf_bare_meta_size(meta) - MAXALIGN(sizeof(RfMetaData));
}

/*
 * Copies a metapage, which the caller has locked.  The result's file is not
 * set.
 */
static RfCachedMeta *
rf_cached_meta_allocate(MemoryContext context, const RfMetaData *meta,
						const RfSummaryVersion *version)
{
	RfCachedMeta *cached = MemoryContextAlloc(context, rf_cached_meta_size(meta));

	cached->head = rf_head_size(meta);
	cached->asked = cached->failed = 0;
	cached->collated = meta->collators != 0;
	cached->version = *version;
	memcpy(rf_cached_meta_data(cached), meta, cached->head);
	rf_copy_bare_segments(rf_cached_meta_segments(cached), meta);
	return cached;
}

/*
 * Keeps a cached metapage of a page that the caller has locked; one that is
 * still current only gets the file and the version.  An outdated one is thrown away.  None is
 * made if the summary is uncertain, the pages are in local buffers, or there
 * is no room.  The version was read under the same lock.
 */
void
rf_cached_meta_keep(const RfFile *file, Page page,
					const RfSummaryVersion *version, RfCachedMetaRef *ref)
{
	const RfMetaData *meta = rf_page_meta(page);

	if (*ref->cached != NULL && !rf_cached_meta_is_current(*ref->cached, meta))
		rf_cached_meta_forget(ref);
	if (*ref->cached == NULL)
	{
		if ((meta->flags & RF_UNCERTAIN_FLAGS) ||
			(file->index != NULL && RelationUsesLocalBuffers(file->index)) ||
			rf_cache_used + rf_cached_meta_size(meta) > rf_cache_limit())
			return;
		*ref->cached = rf_cached_meta_allocate(ref->context, meta, version);
		rf_cache_used += GetMemoryChunkSpace(*ref->cached);
	}
	(*ref->cached)->version = *version;
	(*ref->cached)->file = *file;
	(*ref->cached)->file.index = NULL;
	(*ref->cached)->file.locked = false;
}

/*
 * Copies the buffers in which the pages of the cached metapage's file were last
 * seen, if it is the same file.
 */
void
rf_cached_meta_buffers(const RfCachedMeta *cached, RfFile *file)
{
	if (!RF_SAME_RELFILE(cached->file.locator, file->locator))
		return;
	file->meta_buffer = cached->file.meta_buffer;
	memcpy(file->buffers, cached->file.buffers, sizeof(file->buffers));
}

/*
 * Would a digest spare this question to the filter?  False where the bounds of numbers
 * already deny it.
 */
static bool
rf_wants_digest(const RfCachedMeta *cached, const RfKeySet *set)
{
	const RfSegment *segment = rf_cached_meta_segments(cached);

	return rf_cached_meta_data(cached)->nsegments == 1 &&
		rf_digests_answer(cached->file.codec, set) &&
		(set->kind == RF_KEY_BYTES ||
		 (set->ranges[set->nranges - 1].hi.num >= segment->min &&
		  set->ranges[0].lo.num <= segment->max));
}

/*
 * See probe.h.
 */
RfAnswer
rf_cached_meta_probe(RfCachedMeta *cached, const RfKeySet *set, bool in_recovery,
					 RfSummaryVersion *version)
{
	const RfMetaData *meta = rf_cached_meta_data(cached);

	if (rf_wants_digest(cached, set))
		cached->asked++;
	*version = cached->version;
	return rf_probe_state(&cached->file, meta, rf_cached_meta_segments(cached), set,
						  in_recovery, NULL);
}

/*
 * Notes that its index was asked n times by other means than the cached metapage.
 */
void
rf_cached_meta_asked(RfCachedMeta *cached, uint32 n)
{
	if (rf_cached_meta_data(cached)->nsegments == 1)
		cached->asked += n;
}

/*
 * The fewest bits that a digest should have.
 */
uint32
rf_digest_bits(uint64 nkeys)
{
	return TYPEALIGN(64, RF_DIGEST_BITS * nkeys);
}

/*
 * The numbers by which digests with these buckets know a key of their kind: itself, or its hashes.
 * Returns how many there are, at most RF_MAX_COLUMNS.
 */
int
rf_key_numbers(const FilterDigest *buckets, const RfCodec *codec, const RfKey *key,
			   uint64 *numbers)
{
	if (buckets->of_hashes)
		return rf_key_hashes(codec, key, numbers);
	numbers[0] = key->num;
	return 1;
}

/*
 * Calls visit(arg, codec, key) for each key in pages of the delta, while it returns true.  False where it
 * did not, or where a page has changed or cannot be read.
 */
static bool
rf_visit_delta(RfFile *file, const RfMetaData *meta,
			   bool (*visit) (void *arg, const RfCodec *codec, const RfKey *key),
			   void *arg)
{
	RfKeyKind	kind = file->codec->kind;
	PGAlignedBlock page;

	for (int i = 0; i < meta->ndelta; i++)
	{
		RfKey		key = {0};
		int			nkeys;

		if (!rf_delta_copy_page(file, meta, rf_delta_slot(meta, i), kind, page.data, &nkeys))
			return false;
		for (int j = 0; j < nkeys; j++)
			if (!rf_delta_key(page.data, kind, j, &key) || !visit(arg, file->codec, &key))
				return false;
	}
	return true;
}

/*
 * Widens a span by a key of the delta.  (All hashes are in that of digests of hashes.)
 */
static bool
rf_span_key(void *arg, const RfCodec *codec, const RfKey *key)
{
	RfSpan	   *span = arg;

	span->nkeys++;
	if (!span->of_hashes)
	{
		span->min = Min(span->min, key->num);
		span->max = Max(span->max, key->num);
	}
	return true;
}

/*
 * See probe.h.
 */
bool
rf_cached_meta_span(RfCachedMeta *cached, RfSpan *span)
{
	const RfMetaData *meta = rf_cached_meta_data(cached);
	const RfSegment *segment = rf_cached_meta_segments(cached);

	if (meta->nsegments != 1 || cached->collated ||
		!filter_digest_possible(segment->kind, rf_segment_root(segment),
								segment->root_len, &span->of_hashes) ||
		span->of_hashes != (cached->file.codec->kind == RF_KEY_BYTES))
		return false;
	span->min = span->of_hashes ? 0 : PG_UINT64_MAX;
	span->max = span->of_hashes ? PG_UINT64_MAX : 0;
	span->nkeys = 0;
	for (int i = 0; i <= meta->nlevels; i++)
	{
		if (!span->of_hashes)
		{
			span->min = Min(span->min, segment->min);
			span->max = Max(span->max, segment->max);
		}
		span->nkeys += segment->nkeys;
		segment = rf_next_segment(segment);
	}
	return rf_visit_delta(&cached->file, meta, rf_span_key, span) &&
		span->nkeys <= RF_DIGEST_MAX_KEYS;
}

/*
 * Has the cached metapage been asked so often that a digest of its index pays? 0: no.  Else what
 * it costs: in numbers, for each of which making the digest takes some nanoseconds.  Most
 * questions find that it is too early, so this is looked at first.
 */
uint64
rf_cached_meta_wants_digest(RfCachedMeta *cached)
{
	uint64		most;
	uint32		asked = cached->asked >> cached->failed;
	RfSpan		span;

	/* rf_cached_meta_probe() counts only questions to a single segment. */
	if (asked < RF_DIGEST_QUESTIONS)
		return 0;
	most = (uint64) (asked - RF_DIGEST_QUESTIONS) * RF_DIGEST_KEYS_PER_QUESTION *
		(rf_digests_are_shared() ? RF_DIGEST_SHARERS : 1);
	return rf_cached_meta_segments(cached)->nkeys <= most &&
		rf_cached_meta_span(cached, &span) ? span.nkeys : 0;
}

/*
 * Are these buckets good for a digest with this span? False also where the span is less than half
 * of the buckets' range, or has too many keys for how many buckets there are.
 */
bool
rf_span_fits(const RfSpan *span, const FilterDigest *buckets)
{
	return span->of_hashes == buckets->of_hashes &&
		span->min >= buckets->min && span->max <= buckets->max &&
		span->max - span->min >= (buckets->max - buckets->min) / 2 &&
		rf_digest_bits(span->nkeys) <= 2 * buckets->nbuckets;
}

/*
 * Adds a key to a digest.  False where it is outside the range of the buckets.
 */
static bool
rf_digest_key(void *arg, const RfCodec *codec, const RfKey *key)
{
	FilterDigest *digest = arg;
	uint64		numbers[RF_MAX_COLUMNS];
	int			n = rf_key_numbers(digest, codec, key, numbers);

	for (int i = 0; i < n; i++)
	{
		if (numbers[i] < digest->min || numbers[i] > digest->max)
			return false;
		filter_digest_add(digest, numbers[i]);
	}
	return true;
}

/*
 * Adds the keys of a level to a digest.  False where its pages cannot be read,
 * or a key does not fit.
 */
static bool
rf_digest_level(FilterDigest *digest, const RfCodec *codec, const RfSegment *level,
				FilterReader *reader)
{
	SortedCursor cursor;
	FilterAnswer answer;
	FilterBytes bytes;

	if (!sorted_cursor_begin(&cursor, rf_segment_root(level), level->root_len,
							 reader))
		return false;
	while ((answer = sorted_cursor_next(&cursor, &bytes)) == FILTER_YES)
	{
		RfKey		key = {.data = bytes.data,.len = bytes.len};

		if (!digest->of_hashes)
		{
			if (bytes.len != sizeof(uint64))
				return false;
			memcpy(&key.num, bytes.data, sizeof(uint64));
			key.num = pg_ntoh64(key.num);
		}
		if (!rf_digest_key(digest, codec, &key))
			return false;
	}
	return answer == FILTER_NO;
}

/*
 * Adds the keys of the delta, in levels and pages, to a digest.  False where
 * pages cannot be read, or a key does not fit.
 */
static bool
rf_digest_delta(FilterDigest *digest, RfFile *file, const RfMetaData *meta,
				const RfSegment *segment)
{
	for (int i = 0; i < meta->nlevels; i++)
	{
		RfRunReader reader;
		bool		added;

		segment = rf_next_segment(segment);
		rf_run_reader_begin(&reader, file, meta, segment);
		added = rf_digest_level(digest, file->codec, segment, &reader.reader);
		rf_run_reader_end(&reader);
		if (!added)
			return false;
	}
	return rf_visit_delta(file, meta, rf_digest_key, digest);
}

/*
 * See probe.h.
 */
bool
rf_cached_meta_digest(RfCachedMeta *cached, const RfRelFile *locator,
					  const FilterDigest *buckets, FilterDigest *digest)
{
	const RfMetaData *meta = rf_cached_meta_data(cached);
	const RfSegment *segment = rf_cached_meta_segments(cached);
	RfRunReader reader;
	RfFile		file;
	RfSpan		span;
	bool		made;

	/* If this fails, it is not tried again soon. */
	cached->asked = 0;
	cached->failed = Min(cached->failed + 1, RF_DIGEST_MOST_FAILED);
	if (buckets == NULL || !rf_cached_meta_span(cached, &span) ||
		!rf_span_fits(&span, buckets))
		return false;
	*digest = *buckets;
	digest->bits = palloc(filter_digest_size(digest->nbits));
	rf_locked_file(&file, locator, cached->file.codec, cached);
	rf_run_reader_begin(&reader, &file, meta, segment);
	made = filter_digest_make(digest, segment->kind, rf_segment_root(segment),
							  segment->root_len, &reader.reader);
	rf_run_reader_end(&reader);
	made = made && rf_digest_delta(digest, &file, meta, segment);
	if (made)
		cached->failed = 0;
	else
		pfree(digest->bits);
	return made;
}
