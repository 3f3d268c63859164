/*-------------------------------------------------------------------------
 *
 * wormhole.h
 *	  The wormhole index as the server and the rest of the library see it.
 *
 * The server finds the access method's handler and the SQL functions by name.
 * The header has wh_init(), which is called when the library is loaded, and
 * what our planner needs to know whether an index can be used.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_WORMHOLE_H
#define RANGEFILTER_WORMHOLE_H

#include "postgres.h"

#include "nodes/pathnodes.h"
#include "storage/lockdefs.h"
#include "utils/relcache.h"

/* whhandler.c */
extern void wh_init(void);
extern void wh_forbid_truncate(Oid table);

/* whcost.c */
extern bool wh_is_unusable(const IndexOptInfo *info);
extern void wh_costestimate(PlannerInfo *root, IndexPath *path,
							double loop_count, Cost *startup_cost,
							Cost *total_cost, Selectivity *selectivity,
							double *correlation, double *pages);

/* whcheck.c */
extern void wh_open_index(Oid indexid, LOCKMODE lockmode, Relation *heap,
						  Relation *index);

#endif							/* RANGEFILTER_WORMHOLE_H */
