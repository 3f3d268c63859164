/*-------------------------------------------------------------------------
 *
 * internal.h
 *	  What the files of this room offer each other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_PROBE_INTERNAL_H
#define RANGEFILTER_PROBE_INTERNAL_H

#include "rangefilter/probe/probe.h"

/* rfprobe.c */
extern void rf_locked_file(RfFile *file, const RfRelFile *locator,
						   const RfCodec *codec, const RfCachedMeta *cached);
extern RfAnswer rf_probe_state(RfFile *file, const RfMetaData *meta,
							   const RfSegment *segment, const RfKeySet *set,
							   bool in_recovery, RfSummaryVersion *version);

/* rfkeybounds.c */
extern void rf_read_key_bounds(RfFile *file, const RfMetaData *meta, RfKeyKind kind,
							   RfKeyBounds *bounds);

/* rfmetacache.c */
extern void rf_cached_meta_keep(const RfFile *file, Page page,
								const RfSummaryVersion *version,
								RfCachedMetaRef *ref);
extern void rf_cached_meta_buffers(const RfCachedMeta *cached, RfFile *file);

/* rfdigeststore.c; the setting rangefilter.shared_cache_size (kB) */
extern int	rf_shared_cache_size;

extern Size rf_digests_memory(void);
extern void rf_start_digests(void);

#endif							/* RANGEFILTER_PROBE_INTERNAL_H */
