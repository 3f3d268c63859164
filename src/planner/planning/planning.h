/*-------------------------------------------------------------------------
 *
 * planning.h
 *	  The call of the planner that is under way.
 *
 *	  planning.c	which planning is ours; marks in plans; tables that nodes scan
 *	  secured.c		tables of which plans must not tell
 *	  shown.c		queries of which EXPLAIN shows what they read
 *	  inert.c		nodes that a plan carries along and nobody runs; what nodes say
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_PLANNING_H
#define RANGEFILTER_PLANNING_H

#include "postgres.h"

#include "executor/execdesc.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "utils/hsearch.h"

/*
 * A number that moves whenever something may have become visible; it says when
 * summaries were looked at.  0: not known; the clock never returns it.  See
 * clock.c.
 */
typedef uint64 RfClock;

/* What was found for a relation.  It may have been freed, and another one be in its place. */
typedef struct RfEstimated
{
	const PlannerInfo *root;	/* NULL: nothing was looked for */
	const RelOptInfo *rel;
	Index		relid;
	struct RfCountRel *counted; /* NULL: it is not estimated */
} RfEstimated;

/* One call of the planner. */
typedef struct RfPlanning
{
	struct RfPlanning *outer;	/* the call this one is nested in */
	Query	   *parse;			/* what is being planned ... */
	Query	   *saved;			/* ... and a copy; NULL: do not skip */
	int			cursor_options;
	bool		in_recovery;
	bool		cached_probes;	/* may ask cached metapages */
	uint32		newly_cached;	/* metapages of the table being asked */
	RfClock		started;		/* before anything was read */
	RfClock		clock;			/* when all NOs were true: then, or 0 */
	MemoryContext context;		/* the caller's */
	PlannerGlobal *glob;
	uint32		mark;			/* in the plan until it is finished; 0: none */
	PlannerGlobal *marked;		/* its planner; a hook may call more than one */
	List	   *expansions;		/* RfExpansion */
	List	   *probes;			/* bytea: sets of keys asked for */
	bool		watch;			/* one of those whose scans are watched */
	bool		may_gate;		/* gates may be built */
	bool		may_defer;		/* partitioned tables may be deferred */
	List	   *deferred;		/* RfDeferred */
	List	   *not_deferred;	/* references to tables that must not be */
	List	   *refuted;		/* references to those whose template is empty */
	List	   *deferred_tables;	/* OIDs of those in the finished plan */
	HTAB	   *gate_rels;		/* members that have indexes; see gate_path.c */
	List	   *estimates;		/* relations to estimate; see estimate.c */
	RfEstimated estimated;		/* the one looked for last */
	const PlannerInfo *judged_root; /* see rf_is_secured() */
	Index		judged_rti;
	bool		secured;
	const PlannerInfo *values_root; /* see rf_has_hidden_values() */
	bool		hidden_values;
	List	   *external_params;	/* see rf_external_params() */
	Bitmapset  *external_numbers;	/* their numbers */
	bool		has_external_params;	/* they have been looked for */
} RfPlanning;

extern RfPlanning *rf_planning;
extern bool rf_suppress_skips;
extern bool rf_suppress_cached_probes;
extern bool rf_suppress_deferring;
extern PGDLLEXPORT bool rf_entries_in_use;

extern void rf_end_planning(const RfPlanning *planning);
extern bool rf_is_ours(PlannerInfo *root);
extern Index rf_outermost_relation(PlannerInfo *root, Index rti);
extern Index rf_scanned_table(const Plan *plan);
extern void rf_mark_plan(PlannerInfo *root);

/* In the PlanInvalItem that rf_mark_plan() adds; no catalog cache has this number. */
#define RF_MARK_CACHE	(-1)

/* ---- secured.c ---- */

extern bool rf_is_secured(PlannerInfo *root, Index rti);
extern bool rf_has_hidden_values(PlannerInfo *root);
extern List *rf_external_params(RfPlanning *planning);

/* ---- shown.c ---- */

extern void rf_note_load(void);
extern void rf_note_starting(QueryDesc *desc);
extern void rf_note_started(QueryDesc *desc);
extern bool rf_is_shown(const EState *estate);

/* ---- inert.c ---- */

extern void rf_inert_begin(CustomScanState *node, EState *estate, int eflags);
extern TupleTableSlot *rf_inert_exec(CustomScanState *node);
extern void rf_inert_end(CustomScanState *node);
extern void rf_inert_rescan(CustomScanState *node);

extern List *rf_list_fields(Node *const *fields, int n);

#define RF_INERT_METHODS \
	.ExecCustomScan = rf_inert_exec, \
	.EndCustomScan = rf_inert_end, \
	.ReScanCustomScan = rf_inert_rescan

#endif							/* RANGEFILTER_PLANNING_H */
