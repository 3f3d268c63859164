/*-------------------------------------------------------------------------
 *
 * whwrite.h
 *	  Changing the entries of an index.
 *
 * The room offers inserts with the check of uniqueness, and VACUUM; inserts
 * also remove entries that scans have marked dead.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_WHWRITE_H
#define RANGEFILTER_WHWRITE_H

#include "postgres.h"

#include "access/genam.h"
#include "wormhole/index/whindex.h"

/* whinsert.c */
extern bool wh_insert(Relation index, Datum *values, bool *isnull,
					  ItemPointer tid, Relation heap,
					  IndexUniqueCheck check_unique, bool index_unchanged,
					  IndexInfo *index_info);

/* whdead.c */
extern bool wh_remove_dead(Relation index, Relation heap, Buffer buffer);
extern bool wh_remove_rows(Relation index, Relation heap, Buffer buffer,
						   const WhKey *key, ItemPointerData *tids, int ntids);
extern bool wh_remove_versions(Relation index, Relation heap, Buffer buffer);
extern void wh_remove_tids(WhItemSet *set, const bool *dead,
						   ItemPointerData *kept, WhRemoval *removal);

/* whvacuum.c */
extern IndexBulkDeleteResult *wh_bulkdelete(IndexVacuumInfo *info,
											IndexBulkDeleteResult *stats,
											IndexBulkDeleteCallback callback,
											void *callback_state);
extern IndexBulkDeleteResult *wh_vacuumcleanup(IndexVacuumInfo *info,
											   IndexBulkDeleteResult *stats);

#endif							/* RANGEFILTER_WHWRITE_H */
