/*-------------------------------------------------------------------------
 *
 * skip.h
 *	  Leaving partitions out of a plan while it is made, and checking this when
 *	  the plan is started.
 *
 *	  skip.c		takes partitions out of the plan
 *	  direct.c		the same question while a plan runs
 *	  guard.c		what a plan relies on, and whether that still holds
 *	  replan.c		plans again where it does not
 *	  current_of.c	WHERE CURRENT OF a cursor that skips partitions
 *	  explain.c		what EXPLAIN shows of a guard
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SKIP_H
#define RANGEFILTER_SKIP_H

#include "postgres.h"

#include "executor/execdesc.h"
#include "executor/executor.h"
#include "nodes/plannodes.h"
#include "optimizer/planner.h"
#include "planner/knowledge/question.h"

struct RfTable;

/* ---- skip.c ---- */

extern void rf_begin_asking(RfPlanning *planning);
extern void rf_ask_leaves(struct RfTable *table, RfExpansion *expansion);
extern int	rf_skip_members(PlannerInfo *root, RelOptInfo *rel, int keep);

/* ---- direct.c ---- */

extern Bitmapset *rf_partitions_left(Oid relid, PartitionDesc partdesc, Bitmapset *partitions,
									 List *clauses, Snapshot snapshot);

/* ---- guard.c ---- */

typedef struct RfGuardState
{
	RfClock		clock;			/* read before the summaries were last read */
	bool		in_recovery;	/* the NOs hold for snapshots of recovery, too */
	int32		nskips;
	int32		ndenied_sets;	/* number of RfDeniedSet behind skips */
	RfSkip		skips[FLEXIBLE_ARRAY_MEMBER];
} RfGuardState;

/*
 * What a plan relies on.  In the plan it is a CustomScan that is started, but never run.
 * state points into the plan.  A check writes its clock and the versions it
 * found there.  That does not change what the plan means; it makes the next
 * check cheaper.
 */
typedef struct RfGuard
{
	Query	   *query;			/* as given to the planner */
	int			cursor_options;
	uint32		hash;			/* of its PlanInvalItem */
	List	   *probes;			/* Const of bytea: sets of keys */
	RfGuardState *state;
	List	   *tables;			/* one entry for each: see explain.c */
	List	   *deferred;		/* OIDs of tables that the plan defers */
} RfGuard;

extern const CustomScanMethods rf_guard_methods;

extern void rf_attach_guard(PlannedStmt *stmt, RfPlanning *planning);
extern void rf_read_guard(const CustomScan *scan, RfGuard *guard);
extern bool rf_find_guard(const PlannedStmt *stmt, RfGuard *guard);
extern bool rf_guard_holds(const RfGuard *guard, Snapshot snapshot);
extern bool rf_denials_hold(RfPlanning *planning, RfExpansion *expansion, Snapshot snapshot);
extern void rf_add_inval_item(PlannedStmt *stmt, uint32 hash);
extern void rf_invalidate_plans(uint32 hash);

/* The PlanInvalItem of every plan that rangefilter.enable can change. */
#define RF_ENABLE_HASH	0x72666567

/* ---- replan.c ---- */

extern MemoryContext rf_replan(QueryDesc *desc, int eflags,
							   planner_hook_type make_plan);
extern void rf_start_checked(QueryDesc *desc, int eflags,
							 ExecutorStart_hook_type start);
extern void rf_begin_guard(CustomScanState *node, EState *estate, int eflags);


/* ---- current_of.c ---- */

extern void rf_current_of_started(QueryDesc *desc);


/* ---- explain.c ---- */

struct ExplainState;

extern char *rf_relation_names(List *oids, bool qualified);
extern void rf_explain_counts(double skipped, double considered,
							  struct ExplainState *es);
extern List *rf_explain_tables(PlannerGlobal *glob, List *expansions);
extern Oid	rf_skipped_below(const RfGuard *guard, const List *tables);
extern Node *rf_create_guard_state(CustomScan *guard);

#endif							/* RANGEFILTER_SKIP_H */
