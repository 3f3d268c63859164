/*-------------------------------------------------------------------------
 *
 * join_filter.h
 *	  Join filters: gates that ask for the values in the hash table of a join
 *	  above.
 *
 *	  join_pushdown.c	pushes the join filters of a finished plan's hash joins down
 *	  join_condition.c	a join filter as a condition of a gate
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_JOIN_FILTER_H
#define RANGEFILTER_JOIN_FILTER_H

#include "postgres.h"

#include "planner/gate/gate.h"

/*
 * A join filter on its way down: of one key of a join.  A plan below need only
 * return rows whose expr is among the values.
 */
typedef struct RfJoinFilter
{
	int			join;			/* plan_node_id */
	int			key;			/* number of the hash clause */
	OpExpr	   *clause;			/* values on the right */
	Oid			array;			/* type of an array of the values */
	Node	   *expr;			/* what is compared; its OUTER_VARs are the
								 * output of the plan */
	bool		leaky;			/* a user may notice how often a node above
								 * ran */
} RfJoinFilter;

/* The state of pushing down join filters in a statement's plan. */
typedef struct RfPushdown
{
	PlannedStmt *stmt;
	RfPlanning *planning;
	HTAB	   *rels;			/* RfNamedRel; NULL: not made yet */
	bool		looked;			/* whether there are volatile functions: */
	bool		has_volatile;	/* in the whole statement */
	Bitmapset  *stable_subplans;	/* numbers of those that have none, as far
									 * as they are known */
} RfPushdown;

/* ---- join_pushdown.c, join_condition.c ---- */

extern void rf_push_join_filters(PlannedStmt *stmt, RfPlanning *planning);
extern bool rf_node_is_volatile(RfPushdown *pushdown, Plan *plan);
extern Plan *rf_add_join_filters(RfPushdown *pushdown, CustomScan *gate,
								 List *filters);
extern const RfGateRel *rf_find_gate_rel(RfPushdown *pushdown,
										 const RangeTblEntry *rte);
extern bool rf_is_filterable_scan(const Plan *plan);
extern List *rf_scan_tlist(Plan *plan);
extern Node *rf_replace_vars(Node *expr, int varno, List *tlist);

#endif							/* RANGEFILTER_JOIN_FILTER_H */
