/*-------------------------------------------------------------------------
 *
 * join_filter.h
 *	  Join filters: gates that are asked for the values in the hash table of a join
 *	  above.
 *
 *	  gate_join.c	what hash joins of a finished plan offer to the scans below
 *	  gate_offer.c	an offer as a condition of a gate
 *	  gate_cost.c	what a hash join saves by it
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_JOIN_FILTER_H
#define RANGEFILTER_JOIN_FILTER_H

#include "postgres.h"

#include "planner/gate/gate.h"

/*
 * A key of a join, on its way down: all the values that rows need be returned
 * for by some plan.
 */
typedef struct RfOffer
{
	int			join;			/* plan_node_id */
	int			key;			/* number of the hash clause */
	OpExpr	   *clause;			/* values on the right */
	Oid			array;			/* type of an array of the values */
	Node	   *expr;			/* what is compared; OUTER_VAR is the output
								 * of the plan */
} RfOffer;

/* Finishing the plan of a statement. */
typedef struct RfFeeding
{
	PlannedStmt *stmt;
	RfPlanning *planning;
	HTAB	   *rels;			/* RfNamedRel; NULL: not made yet */
} RfFeeding;

/* ---- gate_cost.c ---- */

extern void rf_cheapen_joins(PlannerInfo *root, RelOptInfo *joinrel,
							 RelOptInfo *outer, RelOptInfo *inner,
							 JoinType jointype);

/* ---- gate_join.c, gate_offer.c ---- */

extern void rf_feed_gates(PlannedStmt *stmt, RfPlanning *planning);
extern Plan *rf_feed_gate(RfFeeding *feeding, CustomScan *gate, List *offers);
extern const RfGateRel *rf_find_gate_rel(RfFeeding *feeding,
										 const RangeTblEntry *rte);
extern bool rf_is_fed_scan(const Plan *plan);
extern List *rf_scan_tlist(Plan *plan);
extern Node *rf_replace_vars(Node *expr, int varno, List *tlist);

#endif							/* RANGEFILTER_JOIN_FILTER_H */
