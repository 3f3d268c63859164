/*-------------------------------------------------------------------------
 *
 * rfprobe.c
 *	  Asking a whole index: flags, NULLs, delta, segments and levels.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "rangefilter/page/page.h"
#include "rangefilter/probe/internal.h"

/*
 * Reads the version of an index by its file.
 */
static bool
rf_version_of(RfFile *file, const RfCodec *codec, RfSummaryVersion *version)
{
	Buffer		buffer = rf_try_read_meta_of(file, codec);
	bool		known;

	if (!BufferIsValid(buffer))
		return false;
	known = rf_meta_version(file, rf_page_meta(BufferGetPage(buffer)), version);
	UnlockReleaseBuffer(buffer);
	return known;
}

/*
 * Reads the version of an open index.  False where the file is empty or damaged.  Takes and
 * releases a share lock on the metapage.
 */
bool
rf_read_version(Relation index, RfSummaryVersion *version)
{
	return rf_version_of(rf_file(index), rf_index_codec(index), version);
}

/*
 * Sets *file for an index that is locked but not open, and has keys of this codec.  cached, if not NULL,
 * tells in which buffers its pages were last seen.
 */
void
rf_locked_file(RfFile *file, const RfRelFile *locator, const RfCodec *codec,
			   const RfCachedMeta *cached)
{
	memset(file, 0, sizeof(RfFile));
	file->locked = true;
	file->locator = *locator;
	file->codec = codec;
	if (cached != NULL)
		rf_cached_meta_buffers(cached, file);
}

/*
 * See probe.h.
 */
bool
rf_read_version_by_file(const RfRelFile *locator, const RfCodec *codec,
						const RfCachedMeta *cached, RfSummaryVersion *version)
{
	RfFile		file;

	rf_locked_file(&file, locator, codec, cached);
	return rf_version_of(&file, codec, version);
}

/*
 * The answer so far.  When pages are only read ahead, UNKNOWN means that reading one has begun.
 * It counts as NO, so that the next page is looked for, too.
 */
static RfAnswer
rf_go_on(const RfFile *file, RfAnswer answer)
{
	return file->ahead && answer == RF_UNKNOWN ? RF_NO : answer;
}

/*
 * Probes the summary that a share-locked or a cached metapage describes.
 * Reads meta only up to its delta slots in use; the directory is where segment
 * points.  version: as rf_delta_probe() has it.
 */
RfAnswer
rf_probe_state(RfFile *file, const RfMetaData *meta,
			   const RfSegment *segment, const RfKeySet *set,
			   bool in_recovery, RfSummaryVersion *version)
{
	RfAnswer	answer;

	if (meta->flags & RF_UNCERTAIN_FLAGS)
		return RF_UNKNOWN;
	if (in_recovery && (meta->flags & RF_STANDBY_UNKNOWN))
		return RF_UNKNOWN;
	if (set->nulls && rf_any_nulls(meta, segment))
		return RF_YES;
	if (set->nranges == 0)
		return RF_NO;
	answer = rf_go_on(file, rf_delta_probe(file, meta, 0, set, version));
	for (int i = 0; i < meta->nsegments + meta->nlevels && answer == RF_NO; i++)
	{
		answer = rf_go_on(file, rf_segment_probe(file, meta, segment, set));
		segment = rf_next_segment(segment);
	}
	return answer;
}

/*
 * Asks an index by its file.  The metapage stays share-locked throughout, so
 * that the pages it refers to cannot be replaced while they are read, here or
 * by replay on a standby.  A key may be appended to the delta's last page
 * meanwhile, so the version is read together with that page.
 */
static RfAnswer
rf_probe_of(RfFile *file, const RfCodec *codec, const RfKeySet *set,
			bool in_recovery, RfSummaryVersion *version, RfCachedMetaRef *ref)
{
	Buffer		buffer = rf_try_read_meta_of(file, codec);
	const RfMetaData *meta;
	RfAnswer	answer = RF_UNKNOWN;

	if (!BufferIsValid(buffer))
		return RF_UNKNOWN;
	meta = rf_page_meta(BufferGetPage(buffer));
	if (set->kind == codec->kind)
	{
		version->identity = 0;
		answer = rf_probe_state(file, meta, rf_first_segment(meta), set,
								in_recovery, version);
		if (version->identity != meta->identity &&
			!rf_meta_version(file, meta, version))
			answer = RF_UNKNOWN;
		else if (ref != NULL)
		{
			rf_cached_meta_keep(file, BufferGetPage(buffer), version, ref);
			if (ref->bounds != NULL)
				rf_read_key_bounds(file, meta, set->kind, ref->bounds);
		}
	}
	UnlockReleaseBuffer(buffer);
	return answer;
}

/*
 * May a row version of the indexed table have a key in the set? The caller holds at least
 * AccessShareLock on the index.  The metapage is share-locked during the call.  *version is read
 * before anything else; it is set unless the answer is RF_UNKNOWN. in_recovery: the answer is for
 * a snapshot that was, or may have been, taken during recovery.  Damaged or unreadable pages give
 * RF_UNKNOWN.  If ref is not NULL, a cached metapage is kept there, or the one there is brought up
 * to date.  An outdated one is thrown away, even if there is no room for the new one.  The bounds
 * are those of *version; they are not set where the answer is RF_UNKNOWN for want of a version.
 */
RfAnswer
rf_probe(Relation index, const RfKeySet *set, bool in_recovery,
		 RfSummaryVersion *version, RfCachedMetaRef *ref)
{
	return rf_probe_of(rf_file(index), rf_index_codec(index), set,
					   in_recovery, version, ref);
}

/*
 * See probe.h.
 */
RfAnswer
rf_probe_by_file(const RfRelFile *locator, const RfCodec *codec,
				 const RfKeySet *set, bool in_recovery, RfSummaryVersion *version,
				 RfCachedMetaRef *ref)
{
	RfFile		file;

	rf_locked_file(&file, locator, codec, ref != NULL ? *ref->cached : NULL);
	return rf_probe_of(&file, codec, set, in_recovery, version, ref);
}

/*
 * Begins to read the pages that rf_probe_by_file() will read and that are not in shared buffers;
 * reads the metapage.  Is there a key in the pages that are there?
 */
bool
rf_probe_ahead(const RfRelFile *locator, const RfCodec *codec,
			   const RfKeySet *set, bool in_recovery)
{
	RfSummaryVersion version;
	RfFile		file;

	rf_locked_file(&file, locator, codec, NULL);
	file.ahead = true;
	return rf_probe_of(&file, codec, set, in_recovery, &version, NULL) == RF_YES;
}
