/*-------------------------------------------------------------------------
 *
 * whbuild.h
 *	  CREATE INDEX and REINDEX: an index from the rows of its table.
 *
 * The room offers the functions that the server calls for a build, and the
 * phases that it reports.  It writes pages in key order and needs no descents.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_WHBUILD_H
#define RANGEFILTER_WHBUILD_H

#include "postgres.h"

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "utils/relcache.h"

/* Phases of CREATE INDEX, for pg_stat_progress_create_index. */
#define WH_PHASE_SCAN	2
#define WH_PHASE_SORT	3
#define WH_PHASE_WRITE	4

/* whbuild.c */
extern IndexBuildResult *wh_build(Relation heap, Relation index,
								  IndexInfo *index_info);
extern void wh_buildempty(Relation index);

#endif							/* RANGEFILTER_WHBUILD_H */
