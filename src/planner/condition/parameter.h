/*-------------------------------------------------------------------------
 *
 * parameter.h
 *	  Conditions on values that are known only at execution.
 *
 *	  parameter.c	which they are, and what they are with given values
 *	  failure.c		expressions by which a user notices that they were computed
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_PARAMETER_H
#define RANGEFILTER_PARAMETER_H

#include "postgres.h"

#include "planner/condition/condition.h"

/*
 * How the value of a run-time parameter is made from the value of its
 * expression.  For stable operators it is converted by the session's time
 * zone; see RF_ZONE_MARGIN.
 */
typedef enum RfConversion
{
	RF_AS_IS,
	RF_TIMESTAMP_TO_TZ,
	RF_DATE_TO_TZ,
	RF_TZ_TO_TIMESTAMP_LOW,		/* not above any local time it may equal */
	RF_TZ_TO_TIMESTAMP_HIGH		/* not below any ... */
} RfConversion;

/*
 * What one relation's indexes can be asked at execution.  The clauses are in
 * terms of the indexes: the nth key expression is attribute n of varno 1, and
 * run-time parameters replace values.  So members of one table have equal
 * clauses, even if their columns have other numbers.
 */
typedef struct RfGateShape
{
	List	   *clauses;
	List	   *opclasses;		/* per index two lists: integers, which keys
								 * its columns are; OIDs, per column operator
								 * family, input type, collation */
	List	   *values;			/* expressions, one per run-time parameter */
	List	   *conversions;	/* RfConversion, one per run-time parameter */
	List	   *indexes;		/* OIDs */
	List	   *keys;			/* the keys as expressions, varno 1 */
} RfGateShape;

extern bool rf_gate_shape(PlannerInfo *root, RelOptInfo *rel, List *indexes,
						  List *clauses, bool constants,
						  RfGateShape *shape);
extern Node *rf_gate_key(const RfRelIndex *index, int column);
extern List *rf_gate_opclasses(const RfRelIndex *index);
extern List *rf_gate_opclass(List *keys, List *oids);
extern RfTable *rf_gate_table(List *opclasses);
extern Node *rf_gate_fill(Node *clause, const Datum *values, const bool *nulls);

/* ---- failure.c ---- */

extern bool rf_cannot_fail(const PlannerInfo *root, Node *node);
extern bool rf_expression_is_leakproof(PlannerInfo *root, Node *node);
extern bool rf_scan_is_leakproof(PlannerInfo *root, const RelOptInfo *rel, List *restrictions);

#endif							/* RANGEFILTER_PARAMETER_H */
