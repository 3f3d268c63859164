/*-------------------------------------------------------------------------
 *
 * rangefilter.h
 *	  The access method rangefilter.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_RANGEFILTER_H
#define RANGEFILTER_RANGEFILTER_H

#include "postgres.h"

#include "access/amapi.h"
#include "nodes/execnodes.h"
#include "nodes/tidbitmap.h"
#include "rangefilter/page/page.h"

/* rangefilter.enable.  If it is off, no query relies on a summary. */
extern bool rf_enable;

/* rfhandler.c */

/* Is this index (or partitioned index) one of ours? */
extern bool rf_is_rangefilter(Relation index);

/* Is this access method ours? */
extern bool rf_is_rangefilter_am(Oid am);
extern void rf_check_definition(Relation heap, Relation index,
								IndexInfo *index_info);
extern bool rf_has_places(Relation index);

/* amcostestimate.  By it the planner part knows that an index is ours. */
extern void rf_costestimate(struct PlannerInfo *root, struct IndexPath *path,
							double loop_count, double *startup_cost,
							double *total_cost, double *selectivity,
							double *correlation, double *pages);

/* rfinsert.c */
extern bool rf_insert(Relation index, Datum *values, bool *isnull,
					  ItemPointer tid, Relation heap,
					  IndexUniqueCheck check_unique, bool index_unchanged,
					  IndexInfo *index_info);

extern void rf_insert_cleanup(Relation index, IndexInfo *index_info);

/*
 * rfload.c: a bulk load ends with its indexes summarized.
 */

extern void rf_load_begin(Oid index);
extern void rf_load_end(Oid index);
extern void rf_init_loads(void);

/* rfmaintain.c */

/* An index and its table, both open and locked in one mode. */
typedef struct RfOpenIndex
{
	Relation	heap;
	Relation	index;
	LOCKMODE	lockmode;
} RfOpenIndex;

extern bool rf_try_open_index(Oid index_oid, LOCKMODE lockmode, bool wait,
							  RfOpenIndex *open);

/*
 * Closes both; the locks are kept until the transaction ends where keep_lock.
 */
extern void rf_close_index(RfOpenIndex *open, bool keep_lock);
extern void rf_as_owner(RfOpenIndex *open, void (*work) (RfOpenIndex *, void *),
						void *arg);
extern bool rf_maintain(Oid index_oid, bool user_session, bool vain,
						void (*report) (Relation index));

/* rfrecheck.c */

/* The look into blocks of a table before they go into a bitmap. */
typedef struct RfBlockRecheck
{
	Relation	heap;			/* NULL: there is none */
	AttrNumber	column;			/* of the table */
	const RfCodec *codec;
	const RfKeySet *set;		/* what is looked for */
	int			looked;			/* blocks */
	int			kept;			/* of these, with a match */
} RfBlockRecheck;

extern void rf_block_recheck_begin(RfBlockRecheck *recheck, Relation index, Relation heap,
								   const RfKeySet *set);
extern bool rf_block_recheck_keeps(RfBlockRecheck *recheck, BlockNumber block);
extern double rf_block_recheck_foresee(const RfBlockRecheck *recheck, double blocks,
									   double share);

/* rfscan.c */
typedef struct RfScanInfo
{
	BlockNumber known_blocks;	/* of the table, in segments with places */
	double		nranges;		/* of these segments */
} RfScanInfo;

/* What the planner foresees of a scan, by the summary. */
typedef struct RfForeseen
{
	double		keys;			/* at least */
	double		blocks;			/* of the table */
	double		unknown;		/* of these, of which no places tell */
	double		ranges;			/* of places, that the others are in */
	double		jumps;			/* stretches of neighbouring blocks */
} RfForeseen;

extern RfKeySet *rf_scan_set(Relation index, ScanKey keys, int nkeys);
extern void rf_foresee_scan(Relation index, const RfKeySet *set,
							BlockNumber heap_blocks, double correlation,
							RfForeseen *foreseen);
extern bool rf_scan_visits(Relation index, const RfKeySet *set,
						   BlockNumber block);
extern void rf_scan_info(Relation index, RfScanInfo *info);
extern IndexScanDesc rf_beginscan(Relation index, int nkeys, int norderbys);
extern void rf_rescan(IndexScanDesc scan, ScanKey keys, int nkeys,
					  ScanKey orderbys, int norderbys);
extern int64 rf_getbitmap(IndexScanDesc scan, TIDBitmap *bitmap);
extern void rf_endscan(IndexScanDesc scan);

/* rfbuild.c */
extern IndexBuildResult *rf_build(Relation heap, Relation index,
								  IndexInfo *index_info);
extern void rf_buildempty(Relation index);

/* rfvacuum.c */
extern IndexBulkDeleteResult *rf_bulkdelete(IndexVacuumInfo *info,
											IndexBulkDeleteResult *stats,
											IndexBulkDeleteCallback callback,
											void *callback_state);
extern IndexBulkDeleteResult *rf_vacuumcleanup(IndexVacuumInfo *info,
											   IndexBulkDeleteResult *stats);
extern void rf_init_vacuum(void);

#endif							/* RANGEFILTER_RANGEFILTER_H */
