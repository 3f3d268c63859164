/*-------------------------------------------------------------------------
 *
 * estimate.h
 *	  Row estimates by counting keys in summaries.
 *
 *	  estimate.c		how estimates get to the planner
 *	  estimate_index.c	what one index counts
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_ESTIMATE_H
#define RANGEFILTER_ESTIMATE_H

#include "postgres.h"

#include "planner/knowledge/knowledge.h"
#include "utils/selfuncs.h"

/* rangefilter.estimate_rows */
extern bool rf_estimate_rows;

extern bool rf_supply_stats(PlannerInfo *root, AttrNumber attno, Node *expr,
							VariableStatData *vardata);
extern void rf_estimate_note(PlannerInfo *root, RelOptInfo *rel,
							 List *indexes);

/* The most clauses that are estimated by one index: all their sets are in use at once. */
#define RF_MAX_COUNTED_CLAUSES RF_REMEMBERED_LISTS

/* The clauses that one index has counted. */
typedef struct RfCounted
{
	int			n;
	RestrictInfo *clauses[RF_MAX_COUNTED_CLAUSES];
	int			columns[RF_MAX_COUNTED_CLAUSES];	/* which they are about */
	RfKeySet   *sets[RF_MAX_COUNTED_CLAUSES];
	double		selec[RF_MAX_COUNTED_CLAUSES];	/* what came out of it */
} RfCounted;

extern bool rf_count_clauses(PlannerInfo *root, RelOptInfo *rel,
							 const RfRelIndex *index,
							 const RestrictInfo *done, RfCounted *counted);

#endif							/* RANGEFILTER_ESTIMATE_H */
