/*-------------------------------------------------------------------------
 *
 * estimate.h
 *	  Interfaces between the parts of the row estimates.
 *
 *	  estimate.c		the planner's hooks, and how estimates get to it
 *	  estimate_index.c	what one index counts
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_ESTIMATE_H
#define RANGEFILTER_ESTIMATE_H

#include "postgres.h"

#include "planner/planning/planning.h"

/* So many clauses that one index knows of are estimated. */
#define RF_MAX_COUNTED_CLAUSES 8

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
