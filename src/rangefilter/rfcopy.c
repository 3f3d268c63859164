/*-------------------------------------------------------------------------
 *
 * rfcopy.c
 *	  Copies of metapages that a backend keeps, to guess by.
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
 * A NO by a copy is worth what its stamp is worth: it must be checked before
 * rows are left out because of it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "rangefilter/rangefilter.h"
#include "utils/memutils.h"
#include "utils/rel.h"

struct RfCopy
{
	RfFile		file;
	Size		size;			/* of all this */
	Size		head;			/* of the metapage's fields kept */
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
	*slot->used -= (*slot->copy)->size;
	pfree(*slot->copy);
	*slot->copy = NULL;
}

/*
 * See probe.h.
 */
bool
rf_copy_has_stamp(const RfCopy *copy, const RfStamp *stamp)
{
	const RfMetaData *meta = rf_copy_meta(copy);

	return meta->identity == stamp->identity && meta->changes == stamp->changes;
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
 * Keeps a copy of the metapage, whose lock the caller holds, or brings an
 * older one up to date; slot->kept tells.  None is kept of what would only say UNKNOWN, or
 * where the pages are in local buffers.
 */
void
rf_copy_keep(const RfFile *file, Page page, RfCopySlot *slot)
{
	const RfMetaData *meta = rf_page_meta(page);
	RfCopy	   *copy = *slot->copy;

	if (copy != NULL && !rf_copy_is_current(copy, meta))
	{
		rf_copy_forget(slot);
		copy = NULL;
	}
	if (copy == NULL)
	{
		Size		head = rf_head_size(meta);
		Size		size = MAXALIGN(sizeof(RfCopy)) + head +
		rf_bare_meta_size(meta) - MAXALIGN(sizeof(RfMetaData));

		if ((meta->flags & RF_UNCERTAIN_FLAGS) || *slot->used + size > slot->limit ||
			(file->index != NULL && RelationUsesLocalBuffers(file->index)))
			return;
		copy = MemoryContextAlloc(slot->context, size);
		copy->size = size;
		copy->head = head;
		memcpy(rf_copy_meta(copy), meta, head);
		rf_copy_bare_segments(rf_copy_segments(copy), meta);
		*slot->used += size;
		*slot->copy = copy;
	}
	copy->file = *file;
	copy->file.index = NULL;
	copy->file.locked = false;
	slot->kept = true;
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
 * See probe.h.
 */
RfAnswer
rf_copy_probe(RfCopy *copy, const RfKeySet *set, bool in_recovery,
			  RfStamp *stamp)
{
	const RfMetaData *meta = rf_copy_meta(copy);

	stamp->identity = meta->identity;
	stamp->changes = meta->changes;
	return rf_probe_state(&copy->file, meta, rf_copy_segments(copy), set,
						  in_recovery);
}
