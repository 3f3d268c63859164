/*-------------------------------------------------------------------------
 *
 * whscan.h
 *	  Scans: the rows of an index that satisfy conditions, in key order.
 *
 * The room offers the functions that the server calls for scans: plain,
 * bitmap, and parallel.  It reads leaves.  It only writes marks of entries
 * whose rows are dead to all.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_WHSCAN_H
#define RANGEFILTER_WHSCAN_H

#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "compat.h"
#include "nodes/tidbitmap.h"
#include "utils/relcache.h"

/* whscan.c */
extern IndexScanDesc wh_beginscan(Relation index, int nkeys, int norderbys);
extern void wh_rescan(IndexScanDesc scan, ScanKey keys, int nkeys,
					  ScanKey orderbys, int norderbys);
extern bool wh_gettuple(IndexScanDesc scan, ScanDirection direction);
extern int64 wh_getbitmap(IndexScanDesc scan, TIDBitmap *tbm);
extern void wh_endscan(IndexScanDesc scan);
extern void wh_markpos(IndexScanDesc scan);
extern void wh_restrpos(IndexScanDesc scan);

/* whparallel.c */
extern Size wh_estimateparallelscan(RF_ESTIMATE_PARALLEL_ARGS);
extern void wh_initparallelscan(void *target);
extern void wh_parallelrescan(IndexScanDesc scan);

#endif							/* RANGEFILTER_WHSCAN_H */
