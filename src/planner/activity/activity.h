/*-------------------------------------------------------------------------
 *
 * activity.h
 *	  Watching the scans of some queries, for the view rangefilter_activity.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_ACTIVITY_H
#define RANGEFILTER_ACTIVITY_H

#include "postgres.h"

#include "executor/execdesc.h"
#include "planner/knowledge/knowledge.h"

extern void rf_init_activity(void);
extern void rf_watch_expansion(RfExpansion *expansion, RelOptInfo *parent);
extern void rf_watch_leaf(RfTable *table, RfExpansion *expansion, Oid leaf,
						  int position);
extern void rf_attach_watch(PlannedStmt *stmt, RfPlanning *planning);
extern void rf_watch_start(QueryDesc *desc, int eflags);
extern void rf_watch_end(QueryDesc *desc);
extern void rf_note_vain_scan(Oid table, Oid index, const Plan *scan);

#endif							/* RANGEFILTER_ACTIVITY_H */
