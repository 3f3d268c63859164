/*-------------------------------------------------------------------------
 *
 * hooks.h
 *	  What the hooks of core lead to.
 *
 *	  hooks.c		installs the hooks, and passes calls on
 *	  plan.c		a call of the planner
 *	  relation.c	a relation is looked up
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_HOOKS_H
#define RANGEFILTER_HOOKS_H

#include "postgres.h"

#include "compat.h"
#include "nodes/pathnodes.h"
#include "optimizer/planner.h"

extern void rf_init_planner(void);
extern PlannedStmt *rf_plan(planner_hook_type next, RF_PLANNER_PARAMS);
extern void rf_relation_info(PlannerInfo *root, RelOptInfo *rel);

#endif							/* RANGEFILTER_HOOKS_H */
