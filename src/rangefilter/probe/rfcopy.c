/*-------------------------------------------------------------------------
 *
 * rfcopy.c
 *	  Copies of metapages that a backend keeps, and asks in place of the indexes.
 *
 * A planner that asks a thousand indexes spends most of its time on locking
 * and opening them and on their metapages.  With a copy of the metapage and the
 * numbers of the buffers the other pages were last seen in, only these pages
 * need to be visited.  Run pages do not change and say whose they are; one
 * that now belongs to another run is as good as missing.  Pages of the delta
 * are used only as long as they hold no more keys than the copy says.  So the
 * answer is what the index would have answered when the copy was made, or
 * RF_UNKNOWN.
 *
 * A planner's NO by a copy is worth what its stamp is worth: it must be checked before
 * rows are left out because of it.  A gate makes copies when its query has its snapshot:
 * what they deny is good for that snapshot, however much is inserted later.  It keeps
 * copies of the run's pages, too, and asks the index where one is not there any more.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "rangefilter/page/page.h"
#include "rangefilter/probe/internal.h"
#include "stats/session.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/*
 * Asked once for so many keys of its filter, and a few times more, a copy has
 * paid for its digest: to make it takes about as long as that many questions.
 */
#define RF_DIGEST_KEYS_PER_QUESTION	100
#define RF_DIGEST_QUESTIONS			10

/* Bits of a digest for each key: three quarters of absent points are denied. */
#define RF_DIGEST_BITS		3

/* More keys take longer than one query should. */
#define RF_DIGEST_MAX_KEYS	100000

/* However often there was none to be had, it is tried again. */
#define RF_DIGEST_MOST_FAILED		16

struct RfCopy
{
	RfFile		file;
	Size		head;			/* of the metapage's fields kept */
	uint32		asked;			/* questions since a digest was last tried */
	uint32		failed;			/* so often there was none to be had */
	/* These and the directory follow, MAXALIGNed. */
};

/*
 * The metapage's fields: those before the delta slots, and the slots in use.
 */
static RfMetaData *
rf_copy_meta(const RfCopy *copy)
{
	return (RfMetaData *) ((char *) copy + MAXALIGN(sizeof(RfCopy)));
}

/*
 * The directory's segments.
 */
static RfSegment *
rf_copy_segments(const RfCopy *copy)
{
	return (RfSegment *) ((char *) rf_copy_meta(copy) + copy->head);
}

/*
 * How much of a metapage's fields is kept.
 */
static Size
rf_head_size(const RfMetaData *meta)
{
	return MAXALIGN(offsetof(RfMetaData, delta) +
					meta->ndelta * sizeof(RfDeltaSlot));
}

/*
 * See probe.h.
 */
void
rf_copy_forget(RfCopySlot *slot)
{
	if (*slot->copy == NULL)
		return;
	rf_cache_used -= GetMemoryChunkSpace(*slot->copy);
	pfree(*slot->copy);
	*slot->copy = NULL;
}

/*
 * See probe.h.
 */
RfStamp
rf_copy_stamp(const RfCopy *copy)
{
	const RfMetaData *meta = rf_copy_meta(copy);
	RfStamp		stamp = {meta->identity, meta->changes};

	return stamp;
}

/*
 * Is the copy one of this state of the metapage?
 */
static bool
rf_copy_is_current(const RfCopy *copy, const RfMetaData *meta)
{
	const RfMetaData *old = rf_copy_meta(copy);

	return old->identity == meta->identity && old->changes == meta->changes &&
		old->generation == meta->generation && old->flags == meta->flags;
}

/*
 * How large a copy of a metapage is.
 */
static Size
rf_copy_size(const RfMetaData *meta)
{
	return MAXALIGN(sizeof(RfCopy)) + rf_head_size(meta) +
		rf_bare_meta_size(meta) - MAXALIGN(sizeof(RfMetaData));
}

/*
 * Copies a metapage, whose lock the caller holds.  The copy's file is not set.
 */
static RfCopy *
rf_copy_meta_to(MemoryContext context, const RfMetaData *meta)
{
	RfCopy	   *copy = MemoryContextAlloc(context, rf_copy_size(meta));

	copy->head = rf_head_size(meta);
	copy->asked = copy->failed = 0;
	memcpy(rf_copy_meta(copy), meta, copy->head);
	rf_copy_bare_segments(rf_copy_segments(copy), meta);
	return copy;
}

/*
 * Keeps a copy of the metapage, whose lock the caller holds, or brings an
 * older one up to date; else there is none afterwards.  None is kept of what would only
 * say UNKNOWN, or where the pages are in local buffers, or if there is no room.
 */
void
rf_copy_keep(const RfFile *file, Page page, RfCopySlot *slot)
{
	const RfMetaData *meta = rf_page_meta(page);

	if (*slot->copy != NULL && !rf_copy_is_current(*slot->copy, meta))
		rf_copy_forget(slot);
	if (*slot->copy == NULL)
	{
		if ((meta->flags & RF_UNCERTAIN_FLAGS) ||
			(file->index != NULL && RelationUsesLocalBuffers(file->index)) ||
			rf_cache_used + rf_copy_size(meta) > rf_cache_limit())
			return;
		*slot->copy = rf_copy_meta_to(slot->context, meta);
		rf_cache_used += GetMemoryChunkSpace(*slot->copy);
	}
	(*slot->copy)->file = *file;
	(*slot->copy)->file.index = NULL;
	(*slot->copy)->file.locked = false;
}

/*
 * Before which block all runs of a metapage end.
 */
static BlockNumber
rf_end_of_runs(const RfMetaData *meta)
{
	const RfSegment *segment = rf_first_segment(meta);
	BlockNumber end = 0;

	for (int i = 0; i < meta->nsegments; i++)
	{
		end = Max(end, segment->run_block + segment->npages);
		segment = rf_next_segment(segment);
	}
	return end;
}

/*
 * See probe.h.  Summaries with keys in the delta have no such copy, since pages of
 * a delta do change.
 */
RfCopy *
rf_copy_make(Relation index, RfKeyKind kind, Size *budget)
{
	Buffer		buffer = rf_try_read_meta(index);
	const RfMetaData *meta;
	BlockNumber nblocks;
	Size		size;
	RfCopy	   *copy = NULL;

	if (!BufferIsValid(buffer))
		return NULL;
	meta = rf_page_meta(BufferGetPage(buffer));
	nblocks = rf_end_of_runs(meta);
	size = offsetof(RfKeptPages, pages) + nblocks * sizeof(uint8 *);
	if ((meta->flags & RF_UNCERTAIN_FLAGS) == 0 && meta->ndelta == 0 &&
		rf_index_codec(index)->kind == kind &&
		rf_copy_size(meta) + size <= *budget)
	{
		copy = rf_copy_meta_to(CurrentMemoryContext, meta);
		copy->file = *rf_file(index);
		copy->file.kept = palloc0(size);
		copy->file.kept->budget = budget;
		copy->file.kept->nblocks = nblocks;
		*budget -= rf_copy_size(meta) + size;
	}
	UnlockReleaseBuffer(buffer);
	return copy;
}

/*
 * Tells a file where the copy last saw its pages.
 */
void
rf_copy_hints(const RfCopy *copy, RfFile *file)
{
	if (!RF_SAME_RELFILE(copy->file.locator, file->locator))
		return;
	file->meta_buffer = copy->file.meta_buffer;
	memcpy(file->buffers, copy->file.buffers, sizeof(file->buffers));
}

/*
 * Is it the filter that has to say whether the segment, one of numbers, holds a
 * key of the set, and not its bounds?
 */
static bool
rf_asks_filter(const RfSegment *segment, const RfKeySet *set)
{
	return set->kind == RF_KEY_U64 && set->nranges > 0 &&
		set->ranges[set->nranges - 1].hi.num >= segment->min &&
		set->ranges[0].lo.num <= segment->max;
}

/*
 * See probe.h.
 */
RfAnswer
rf_copy_probe(RfCopy *copy, const RfKeySet *set, bool in_recovery,
			  RfStamp *stamp)
{
	const RfMetaData *meta = rf_copy_meta(copy);

	if (meta->nsegments == 1 && rf_asks_filter(rf_copy_segments(copy), set))
		copy->asked++;
	stamp->identity = meta->identity;
	stamp->changes = meta->changes;
	return rf_probe_state(&copy->file, meta, rf_copy_segments(copy), set,
						  in_recovery);
}

/*
 * See probe.h.
 */
uint32
rf_digest_bits(uint64 nkeys)
{
	return TYPEALIGN(64, RF_DIGEST_BITS * nkeys);
}

/*
 * See probe.h.
 */
bool
rf_copy_span(const RfCopy *copy, RfSpan *span)
{
	const RfMetaData *meta = rf_copy_meta(copy);
	const RfSegment *segment = rf_copy_segments(copy);

	if (meta->nsegments != 1 || meta->ndelta != 0 ||
		(segment->kind != FILTER_KIND_SNARF &&
		 segment->kind != FILTER_KIND_EXACT) ||
		segment->nkeys > RF_DIGEST_MAX_KEYS)
		return false;
	span->min = segment->min;
	span->max = segment->max;
	span->nkeys = segment->nkeys;
	return true;
}

/*
 * See probe.h.
 */
uint64
rf_copy_wants_digest(const RfCopy *copy)
{
	RfSpan		span;

	/* Only questions to a single segment are counted. */
	if (copy->asked >> copy->failed < RF_DIGEST_QUESTIONS ||
		!rf_copy_span(copy, &span) ||
		span.nkeys > (uint64) ((copy->asked >> copy->failed) -
							   RF_DIGEST_QUESTIONS) *
		RF_DIGEST_KEYS_PER_QUESTION * rf_digests_sharers())
		return 0;
	return span.nkeys;
}

/*
 * See probe.h.  Not where it would be too narrow, or have too many keys, for the
 * frame's intervals to be of use.
 */
bool
rf_span_fits(const RfSpan *span, const FilterDigest *frame)
{
	return span->min >= frame->min && span->max <= frame->max &&
		span->max - span->min >= (frame->max - frame->min) / 2 &&
		rf_digest_bits(span->nkeys) <= 2 * frame->nbits;
}

/*
 * See probe.h.
 */
bool
rf_copy_digest(RfCopy *copy, const RfRelFile *locator,
			   const FilterDigest *frame, FilterDigest *digest)
{
	const RfMetaData *meta = rf_copy_meta(copy);
	const RfSegment *segment = rf_copy_segments(copy);
	RfRunReader reader;
	RfFile		file;
	RfSpan		span;
	bool		made;

	/* If this fails, not soon again. */
	copy->asked = 0;
	copy->failed = Min(copy->failed + 1, RF_DIGEST_MOST_FAILED);
	if (frame == NULL || !rf_copy_span(copy, &span) ||
		!rf_span_fits(&span, frame))
		return false;
	*digest = *frame;
	digest->bits = palloc(filter_digest_size(digest->nbits));
	rf_locked_file(&file, locator, copy);
	rf_run_reader_begin(&reader, &file, meta, segment);
	made = filter_digest_make(digest, segment->kind, rf_segment_root(segment),
							  segment->root_len, &reader.reader);
	rf_run_reader_end(&reader);
	if (made)
		copy->failed = 0;
	else
		pfree(digest->bits);
	return made;
}
