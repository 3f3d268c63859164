/*-------------------------------------------------------------------------
 *
 * deferred.h
 *	  Deferred scans: partitions are planned when the values that choose among
 *	  them are known.
 *
 * While a query is planned, one member, the template, stands for a whole
 * partitioned table.  The plan has a CustomScan in its place, which computes the
 * values when it is asked for its first row, and then plans and runs a query on
 * the partitioned table with these values as constants.
 *
 *	  deferred_choose.c		which tables are deferred; the template
 *	  deferred_size.c		how large all of a table's partitions are
 *	  deferred_path.c		paths of a deferred table, and their costs
 *	  deferred_plan.c		from path to plan; placeholders in finished plans
 *	  deferred_exec.c		running a deferred scan
 *	  deferred_levels.c		its partitions at all levels; asking which are left
 *	  deferred_leaf.c		running it by plans of single partitions
 *	  deferred_lock.c		locks of partitions, and commands that they refuse
 *	  deferred_restart.c	starting a statement over
 *	  deferred_explain.c	what EXPLAIN shows
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_DEFERRED_H
#define RANGEFILTER_DEFERRED_H

#include "postgres.h"

#include "access/attmap.h"
#include "compat.h"
#include "executor/executor.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "partitioning/partdefs.h"
#include "planner/planning/planning.h"
#include "portability/instr_time.h"
#include "utils/selfuncs.h"

/* ---- deferred_choose.c ---- */

/*
 * rangefilter.defer_partitions: planning fewer partitions costs less than planning once
 * more when the query runs.
 */
extern int	rf_defer_partitions;

/* A partitioned table that is deferred in the planning under way. */
typedef struct RfDeferred
{
	PlannerInfo *root;
	RelOptInfo *rel;			/* of the partitioned table */
	RelOptInfo *template;		/* the member that stands for all; at the
								 * lowest level, once it is known */
	Oid			relid;
	int			reference;		/* to this table in the query: see
								 * reference_number() */
	int			nleaves;		/* leaf partitions that are left */
	double		pages;			/* of all of these */
	double		tuples;
	double		template_tuples;	/* of the template alone */
	List	   *indexes;		/* RfRelIndex: those of the table */
	double		uncovered;		/* share of partitions without one of these */
} RfDeferred;

/*
 * Called when a member of a table has got its RelOptInfo.  Returns true if the
 * member is the template of a deferred table: all other members are then out of
 * the plan, and the template is as large as the table.  Sets *asked if the table is not
 * deferred, and its indexes were asked which members can be left out.
 */
extern bool rf_defer_members(PlannerInfo *root, RelOptInfo *rel, bool *asked);

/*
 * The deferred table that a relation is, or is the template of; NULL if it is neither.
 */
extern RfDeferred *rf_find_deferred(const RelOptInfo *rel);

/*
 * get_relation_stats_hook: supplies a template's column with the statistics of
 * the whole table.  Returns false if the relation is no template, or there are none.
 */
extern bool rf_deferred_stats(AttrNumber attno, VariableStatData *vardata);

/*
 * Return true if a value that is known only when the query runs chooses among
 * the table's partitions, by one of these clauses (RestrictInfo).
 */
extern bool rf_is_choosing(const RfDeferred *deferred, List *clauses);

/*
 * The join clauses (RestrictInfo) that can be checked in a scan of the table.
 */
extern List *rf_deferred_join_clauses(RfDeferred *deferred);

/* ---- deferred_size.c ---- */

/*
 * Fills in how large all leaf partitions of a table together are, as pg_class says,
 * and how many there are.
 */
extern void rf_deferred_size(RfDeferred *deferred);

/* ---- deferred_path.c ---- */

/*
 * set_rel_pathlist_hook: replaces the paths of a deferred table.
 */
extern void rf_defer_paths(PlannerInfo *root, RelOptInfo *rel);

extern const CustomPathMethods rf_deferred_path_methods;
extern const CustomPathMethods rf_placeholder_path_methods;

/* ---- deferred_plan.c ---- */

extern const CustomScanMethods rf_deferred_methods;
extern const CustomScanMethods rf_placeholder_methods;

/* What a deferred scan carries in custom_private. */
typedef struct RfDeferredPlan
{
	Query	   *query;			/* on the partitioned table, with external
								 * parameters in the places of values */
	Oid			relid;
	Oid			template;		/* the partition that EXPLAIN shows */
	int			reference;		/* RfDeferred.reference */
	int			nleaves;
} RfDeferredPlan;

extern Plan *rf_plan_deferred(PlannerInfo *root, RelOptInfo *rel, CustomPath *path,
							  List *tlist, List *clauses, List *plans);
extern void rf_deferred_read(const CustomScan *scan, RfDeferredPlan *plan);

/*
 * Finds the deferred scans of a finished plan.  Returns the references (RfDeferred.reference)
 * to tables that are to be planned in full instead, because the planner has chosen a path
 * that reads all of them.  Sets *deferred to the OIDs of the tables of the others.
 */
extern List *rf_find_placeholders(const PlannedStmt *stmt, List **deferred);

/* ---- deferred_exec.c ---- */

/* One run: the scan's rows for one set of values. */
typedef struct RfDeferredRun
{
	MemoryContext context;		/* of all of this; NULL: there is none */
	ParamListInfo params;
	QueryDesc  *desc;			/* the plan that is run; NULL: none (yet) */
	bool		ended;			/* all rows have been returned */
	bool		by_leaves;		/* one partition after the other */
	Bitmapset  *left;			/* by_leaves: the partitions to read */
	int			position;		/* by_leaves: the partition being read */
} RfDeferredRun;

/* A partitioned table among the scan's table and its members. */
typedef struct RfDeferredLevel
{
	Relation	relation;		/* the directory keeps it open */
	int			number;			/* its own among all members; -1: it is the
								 * scan's table */
	int			first;			/* number of its first member */
	PartitionDesc partdesc;
	AttrMap    *map;			/* its columns from those of the scan's table;
								 * NULL: it is that */
} RfDeferredLevel;

typedef struct RfDeferredState
{
	CustomScanState css;
	RfDeferredPlan plan;
	int			ncolumns;
	int			nvalues;
	List	   *exprs;			/* ExprState of the values */
	PartitionDirectory directory;	/* the partitions when the scan was
									 * started */
	List	   *levels;			/* RfDeferredLevel */
	int			nmembers;		/* at all levels */
	uint64		checked;		/* rf_changes() at the last check; at first,
								 * before the snapshot was taken */
	RfDeferredRun run;
	bool		begun;			/* the run has the current values */

	/* Plans of partitions, in deferred_leaf.c. */
	MemoryContext keep;			/* of all of these; NULL: none yet */
	HTAB	   *leaves;			/* RfKeptLeaf; NULL: none */
	ParamListInfo leaf_params;

	/* Counts for EXPLAIN ANALYZE. */
	int64		runs;
	int64		plannings;
	int64		leaves_read;
	instr_time	planning_time;
} RfDeferredState;

extern Node *rf_create_deferred_state(CustomScan *scan);

/*
 * Plans a query for a deferred scan; external parameters that are in params become
 * constants.
 */
extern PlannedStmt *rf_plan_inner(const char *source, Query *query, ParamListInfo params);

/*
 * Plans a query for a scan, with params as constants.
 */
extern PlannedStmt *rf_make_plan(RfDeferredState *state, Query *query, ParamListInfo params);

extern const char *rf_source_text(const RfDeferredState *state);

/*
 * Starts a plan below a deferred scan, as ExecutorStart(), but does not call hooks of other
 * extensions: these would take it for a statement of the user's.  Set by hooks.c.
 */
extern ExecutorStart_hook_type rf_start_inner;

/*
 * Starts a plan with the values of external parameters.
 */
extern QueryDesc *rf_start_plan(RfDeferredState *state, PlannedStmt *stmt, ParamListInfo values);
extern void rf_end_plan(QueryDesc *desc);

/* ---- deferred_levels.c ---- */

extern void rf_begin_levels(RfDeferredState *state);
extern Oid	rf_member_oid(const RfDeferredState *state, int number);
extern bool rf_has_other_partitions(const RfDeferredState *state);
extern Bitmapset *rf_leaves_left(const RfDeferredState *state, List *clauses);

/* ---- deferred_leaf.c ---- */

extern Query *rf_query_on_leaf(const RfDeferredState *state, Oid leaf);
extern void rf_begin_leaves(RfDeferredState *state, RfDeferredRun *run);
extern bool rf_next_leaf(RfDeferredState *state, RfDeferredRun *run);
extern void rf_end_leaves(RfDeferredState *state);

/*
 * The kept plans of partitions (QueryDesc), in the order of partitions; the first ones if there
 * are more than most.
 */
extern List *rf_kept_plans(const RfDeferredState *state, int most);

/* ---- deferred_lock.c ---- */

/*
 * To be called before a plan is started: takes the statement's own snapshot anew if something
 * has changed since it was taken.  Return true if the statement may start over while it runs.
 */
extern bool rf_prepare_deferred(QueryDesc *desc, int eflags);

extern void rf_note_deferred_scan(RfDeferredState *state);

/*
 * To be called when partitions have been asked or planned, or one has been locked.  Returns false
 * if one is not as the scan's snapshot sees it, and the statement starts over.
 */
extern bool rf_check_partitions(RfDeferredState *state);

/*
 * object_access_hook: a relation is truncated, altered or dropped.  Raises an error
 * if it is a partition of a table that a deferred scan of this session reads.
 */
extern void rf_refuse_deferred(Oid relid, const char *command);
extern void rf_refuse_constraint(Oid constraint);

/* ---- deferred_restart.c ---- */

typedef void (*RfExecutorRun) (RF_EXECUTOR_RUN_PARAMS);

/*
 * Return true if a statement that is about to be started may start over while it runs.  Then the
 * second one is to be called after that.
 */
extern bool rf_may_start_over(const QueryDesc *desc, int eflags);
extern void rf_note_restartable(QueryDesc *desc);

/*
 * ExecutorRun_hook: runs a plan by run.
 */
extern void rf_run_deferred(RfExecutorRun run, RF_EXECUTOR_RUN_PARAMS);

/*
 * What is left of a statement that has started over, when it ends; the second one ends this, after the
 * statement.
 */
extern List *rf_parked_states(const QueryDesc *desc);
extern void rf_end_parked(List *parked);

/*
 * A partition is not as the scan's snapshot sees it.  Has the statement start over, and the
 * caller returns no row.  Or raises an error with SQLSTATE 40001.
 */
extern void rf_start_over(RfDeferredState *state, Oid partition);

/* ---- deferred_explain.c ---- */

extern void rf_explain_deferred(CustomScanState *node, List *ancestors,
								struct ExplainState *es);

#endif							/* RANGEFILTER_DEFERRED_H */
