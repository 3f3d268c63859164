/*-------------------------------------------------------------------------
 *
 * planner.h
 *	  Internal interfaces of the planner part.
 *
 * The way of a query:
 *
 *	  planner.c		rangefilter.enable; starts the rest
 *	  plan.c		planner_hook: keeps a copy of the Query, attaches the guard
 *	  skip.c		get_relation_info_hook: takes partitions out of the plan
 *	  catalog.c		which rangefilter indexes a partitioned table has
 *	  leafmap.c		the index of each leaf, and where its file is
 *	  match.c		clauses of a query as conditions on these indexes
 *	  clause.c		one clause on one index as a set of keys
 *	  pattern.c		the same for LIKE, prefixes and ranges containing a column
 *	  leaf.c		opens a partition's index and asks it
 *	  guess.c		asks the copy of an index this backend has kept
 *	  groups.c		digests of many partitions, side by side
 *	  bulk.c		leaves out all that these deny, and checks them, at once
 *	  guard.c		what a plan relies on, and whether that still holds
 *	  replan.c		ExecutorStart_hook: plans again where it does not
 *	  explain.c		what EXPLAIN shows of a guard
 *	  secured.c		tables of which plans must not tell
 *	  estimate.c	row estimates by counting
 *	  activity.c	tracks some queries' scans, for rangefilter_activity
 *	  gate*.c		skipping by values known only at execution: see gate.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_PLANNER_H
#define RANGEFILTER_PLANNER_H

#include "postgres.h"

#include "key/rowkey.h"
#include "executor/execdesc.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "optimizer/planner.h"
#include "partitioning/partdefs.h"
#include "rangefilter/probe/probe.h"
#include "rangefilter/rangefilter.h"
#include "utils/guc.h"
#include "utils/selfuncs.h"
#include "utils/snapshot.h"

/* rangefilter.estimate_rows */
extern bool rf_estimate_rows;


/* ---- catalog.c ---- */

struct rf_leafmap_hash;
struct RfGroups;

/* Notes when an index, partitioned or not, changed. */
typedef struct RfTrack
{
	Oid			relid;			/* table whose entry depends on it, or none */
	uint64		changed_at;		/* what rf_changes() said then */
} RfTrack;

/*
 * When summaries were looked at: a number that moves whenever something may have
 * become visible.  0: not known, which no clock ever says.  See plan.c.
 */
typedef uint64 RfClock;

/* The index of a leaf partition, and this backend's copy of it. */
typedef struct RfLeaf
{
	Oid			leaf;
	Oid			index;
	RfCopy	   *copy;			/* or NULL */
	uint64		true_at;		/* when the copy was: see rf_leaf_number() */
	uint32		probes;			/* since these were last collected ... */
	uint32		skips;			/* ... and those answered NO; with
								 * RfGroup.denials, modulo 2^32 */
	RfRelFile	locator;		/* valid if rf_leaf_is_located() */
	bool		located;
	uint64		located_at;		/* rf_changes() before locator was read, or
								 * when it was still true */
	RfTrack    *track;
} RfLeaf;

/* A key column of an index. */
typedef struct RfIndexColumn
{
	AttrNumber	attno;			/* column of the table, 0 for an expression */
	Node	   *expr;			/* the expression, varno 1; else NULL */
	Oid			opclass;
	Oid			opfamily;
	Oid			opcintype;
	Oid			collation;
	const RfCodec *codec;
} RfIndexColumn;

/*
 * What is kept of a rangefilter index of a relation that is planned.  It is a
 * copy: what the planner knows of an index (IndexOptInfo) belongs to the
 * relation, and any extension may free it.
 */
typedef struct RfRelIndex
{
	Oid			oid;
	Index		varno;			/* of the relation, in the following */
	List	   *predicate;		/* of a partial index, implicit AND */
	int			ncolumns;
	RfIndexColumn columns[FLEXIBLE_ARRAY_MEMBER];
} RfRelIndex;

/* A rangefilter index on a partitioned table. */
typedef struct RfIndex
{
	Oid			oid;			/* of the partitioned index */
	Oid			am;				/* access method */
	int			ncolumns;
	RfIndexColumn columns[RF_MAX_COLUMNS];
	const RfCodec *codec;		/* of its keys */
	List	   *predicate;		/* of a partial index, varno 1, implicit AND */
	bool		mapped;			/* the following is complete */
	int			nleaves;
	RfLeaf	   *leaves;			/* in the order of the table's partitions */
	struct rf_leafmap_hash *positions;	/* leaf table -> place in leaves; NULL
										 * until it is needed */
	struct RfGroups *groups;	/* of leaves' digests; NULL: not looked for */
} RfIndex;

/* A partitioned table; stays in memory while anything is being planned. */
typedef struct RfTable
{
	Oid			relid;
	bool		complete;		/* built without an error */
	bool		valid;			/* not invalidated since */
	uint64		built_at;		/* see rf_table_suspect */
	uint64		serial;			/* no other entry has had it */
	bool		candidate;		/* it or one of its members may have indexes */
	int			nindexes;
	RfIndex    *indexes;
	bool		has_copies;		/* of its indexes */
	bool		has_counts;		/* leaves have been counted at */
	uint64		last_asked;		/* number of the planning */
	MemoryContext context;
	struct RfTable *next_retired;
} RfTable;

extern void rf_init_catalog(void);
extern RfTable *rf_find_table(Oid relid);
extern bool rf_describe_key(RfIndexColumn *column, Oid opfamily,
							Oid opcintype, Oid collation);
extern bool rf_index_fits(const RfIndex *index, Relation leaf_index);
extern RfTable *rf_known_table(Oid relid);
extern RfTable *rf_least_asked_table(const RfTable *except);
extern void rf_table_suspect(RfTable *table);
extern void rf_free_retired_tables(void);
extern void rf_collect_counts(void);
extern uint64 rf_changes(void);
extern void rf_expect_tracks(const List *indexes);
extern RfTrack *rf_track(Oid index);
extern bool rf_unchanged(const RfTrack *track, uint64 when);

/* ---- leafmap.c ---- */

extern RfLeaf *rf_search_leaf(RfTable *table, RfIndex *index, Oid leaf,
							  int position);

/*
 * The index of a leaf partition that belongs to a partitioned index, or NULL.
 * position is where it is likely to be.
 */
static inline RfLeaf *
rf_find_leaf(RfTable *table, RfIndex *index, Oid leaf, int position)
{
	if (index->mapped && position < index->nleaves &&
		index->leaves[position].leaf == leaf)
		return &index->leaves[position];
	return rf_search_leaf(table, index, leaf, position);
}

extern void rf_map_leaves(RfTable *table, RfIndex *index);
extern bool rf_leaf_is_located(RfLeaf *leaf);
extern void rf_leaf_locate(RfLeaf *leaf, Relation index, uint64 when);

/* ---- match.c ---- */

typedef enum RfCondKind
{
	RF_COND_PROBE,				/* ask one index for a set of keys */
	RF_COND_AND,
	RF_COND_OR
} RfCondKind;

/* RfCond.column where the set is one of an index's keys */
#define RF_WHOLE_KEY	(-1)

/* A condition every row the query wants from a partition satisfies. */
typedef struct RfCond
{
	RfCondKind	kind;
	RfIndex    *index;			/* RF_COND_PROBE */
	int			column;			/* while matching: whose keys the set has */
	RfKeySet   *set;
	bytea	   *flat;			/* the set, serialized */
	int			probe;			/* its number in the planning's list */
	uint64	   *denied;			/* by groups, a bit for each leaf, or NULL */
	bool		certain;		/* ... as of when planning started */
	struct RfBulk *bulk;		/* those of them that are left out, or NULL */
	List	   *args;			/* RF_COND_AND, RF_COND_OR */
} RfCond;

/* What of a table's restrictions its indexes can answer. */
typedef struct RfMatch
{
	RfCond	   *cond;
	List	   *clauses;		/* the clauses used, for EXPLAIN */
} RfMatch;

extern List *rf_usable_clauses(RelOptInfo *rel, List *restrictions);
extern bool rf_match_clauses(List *clauses, Index varno, RfTable *table,
							 RfMatch *match);
extern bool rf_clause_known(Node *clause, Index varno, RfTable *table);
extern bool rf_match(RelOptInfo *rel, RfTable *table, RfMatch *match);
extern bool rf_same_cond(const RfCond *a, const RfCond *b);
extern List *rf_cond_indexes(const RfCond *cond);

/* ---- clause.c, pattern.c ---- */

/*
 * A hole stands in a clause for a value that is not known yet; its paramid is
 * its number.  A Param of this kind is in no clause that has been planned.
 */
static inline bool
rf_is_hole(const Node *node)
{
	return IsA(node, Param) && ((const Param *) node)->paramkind == PARAM_SUBLINK;
}

extern RfKeySet *rf_clause_set(const RfIndexColumn *column, Index varno,
							   Node *key, Node *clause);
extern RfKeySet *rf_pattern_set(const RfIndexColumn *column, Oid function,
								Oid collation, Datum pattern);
extern bool rf_prefix_fits(const RfIndexColumn *column, Oid function,
						   Oid collation);
extern RfKeySet *rf_within_range_set(const RfIndexColumn *column, Oid type,
									 Datum value);

/* ---- leaf.c ---- */

/* One NO a plan relies on; part of a guard's state. */
typedef struct RfSkip
{
	Oid			table;			/* the partitioned table */
	Oid			leaf;			/* the partition */
	Oid			index;			/* its index */
	int32		probe;			/* number of the set of keys asked for */
	RfStamp		stamp;			/* of the summary that said NO */
} RfSkip;

/*
 * NOs of many leaves of one index to the same set of keys; part of a guard's
 * state, too.  A bit for each leaf, by its place in the index's entry, which
 * is that of a table with this serial.
 */
typedef struct RfBulk
{
	Oid			table;			/* the partitioned table */
	Oid			index;			/* the partitioned index */
	uint64		serial;
	int32		probe;			/* number of the set of keys asked for */
	int32		nwords;
	uint64		leaves[FLEXIBLE_ARRAY_MEMBER];
} RfBulk;

#define RF_BULK_SIZE(nwords) \
	(offsetof(RfBulk, leaves) + (nwords) * sizeof(uint64))

/* The NOs of one pass over a table's partitions. */
typedef struct RfSkips
{
	MemoryContext context;
	int			n;
	int			size;
	RfSkip	   *skips;
	List	   *bulks;			/* RfBulk */
} RfSkips;

/* How NOs given earlier are checked. */
typedef struct RfRecheck
{
	const bytea **flat;			/* the sets of keys, by number */
	RfKeySet  **sets;			/* the same, once used; else NULL */
	bool		trust_stamps;	/* the same stamp means still NO */
	bool		in_recovery;
	Snapshot	serializable;	/* not NULL: take predicate locks for it */
	RfClock		clock;			/* read before anything is checked */
	int			position;		/* where the next leaf is likely to be */
} RfRecheck;

/* Does an index deny that there is a key of a condition's set, RF_COND_PROBE? */
typedef bool (*RfDenies) (const RfCond *cond, void *arg);

extern bool rf_cond_denied(const RfCond *cond, RfDenies denies, void *arg,
						   RfSkips *skips);
extern bool rf_index_is_usable(Relation index, Oid table);
extern bool rf_exclude_leaf(RfTable *table, const RfCond *cond, Oid leaf,
							int position, bool in_recovery, RfSkips *skips);
extern bool rf_recheck_skip(RfSkip *skip, RfRecheck *recheck);

/* ---- plan.c ---- */

/* One partitioned table met in planning, and what was skipped there. */
typedef struct RfPass
{
	PlannerInfo *root;
	Index		top_rti;		/* of the outermost partitioned table above */
	Oid			relid;
	PartitionDesc partdesc;		/* maps excluded to partitions */
	RfMatch		match;			/* cond is NULL: nothing could be asked */
	Bitmapset  *leaves;			/* leaf members partition pruning had left */
	Bitmapset  *excluded;		/* those of them left out */
	RfSkips    *skips;			/* shared with a pass that asked the same */

	/* See activity.c. */
	bool		watched;
	Index		varno;			/* of the partitioned table in ... */
	List	   *others;			/* ... conditions no index was asked for */
	List	   *kept_leaves;	/* OIDs of leaves ... */
	List	   *kept_indexes;	/* ... and of their indexes */
} RfPass;

/* One call of the planner. */
typedef struct RfPlanning
{
	struct RfPlanning *outer;	/* the call this one is nested in */
	Query	   *parse;			/* what is being planned ... */
	Query	   *saved;			/* ... and a copy; NULL: do not skip */
	int			cursor_options;
	bool		in_recovery;
	bool		guess;			/* may ask copies */
	RfClock		started;		/* before anything was read */
	RfClock		clock;			/* when all NOs were true: then, or 0 */
	MemoryContext context;		/* the caller's */
	PlannerGlobal *glob;
	uint32		mark;			/* in the plan until it is finished; 0: none */
	PlannerGlobal *marked;		/* its planner; a hook may call more than one */
	List	   *passes;			/* RfPass */
	List	   *probes;			/* bytea: sets of keys asked for */
	bool		watch;			/* one of those whose scans are watched */
	bool		may_gate;		/* gates may be built */
	HTAB	   *gate_rels;		/* members that have indexes; see gate_path.c */
	List	   *estimates;		/* relations to estimate; see estimate.c */
	const PlannerInfo *judged_root; /* see rf_is_secured() */
	Index		judged_rti;
	bool		secured;
} RfPlanning;

extern RfPlanning *rf_planning;
extern bool rf_suppress_skips;
extern bool rf_suppress_guesses;

extern bool rf_is_ours(PlannerInfo *root);
extern Index rf_outermost_relation(PlannerInfo *root, Index rti);
extern void rf_mark_plan(PlannerInfo *root);

/* In the PlanInvalItem that rf_mark_plan() adds; no catalog cache has this number. */
#define RF_MARK_CACHE	(-1)

/* ---- inert.c ---- */

extern void rf_inert_begin(CustomScanState *node, EState *estate, int eflags);
extern TupleTableSlot *rf_inert_exec(CustomScanState *node);
extern void rf_inert_end(CustomScanState *node);
extern void rf_inert_rescan(CustomScanState *node);

#define RF_INERT_METHODS \
	.BeginCustomScan = rf_inert_begin, \
	.ExecCustomScan = rf_inert_exec, \
	.EndCustomScan = rf_inert_end, \
	.ReScanCustomScan = rf_inert_rescan
extern RfClock rf_clock_read(void);

/* ---- guess.c ---- */

extern bool rf_begin_guessing(void);
extern bool rf_guess(RfTable *table, RfLeaf *leaf, const RfCond *cond,
					 bool in_recovery, RfStamp *stamp);
extern bool rf_digest_is_due(const RfIndex *index, const RfLeaf *leaf);
extern void rf_make_room(const RfTable *table);
extern void rf_table_asked(RfTable *table);
extern void rf_copy_slot(RfTable *table, RfLeaf *leaf, RfCopySlot *slot);
extern void rf_forget_copies(RfTable *table);
extern uint64 rf_leaf_number(const RfLeaf *leaf, RfClock now);
extern bool rf_guess_is_true(RfLeaf *leaf, const RfSkip *skip);
extern void rf_leaf_checked(RfTable *table, RfIndex *index, RfLeaf *leaf,
							const RfStamp *stamp, uint64 number);

/* ---- groups.c ---- */

/*
 * Digests of 64 leaves.  current and certain are what they were while two numbers
 * stay: nothing has changed since.
 */
typedef struct RfGroup
{
	uint64		as_of;			/* rf_read_moves(), or the clock where there
								 * are no change counters; 0: look again */
	uint64		changes;		/* rf_changes() */
	uint64		current;		/* leaves that may be guessed by their columns */
	uint64		certain;		/* ... and of which these are true now */
	uint32		denials;		/* in bulk, not yet counted at leaves */
	RfDigestView view;
} RfGroup;

typedef struct RfGroups
{
	int			n;
	Oid		   *oids;			/* the tables of all leaves, in order */
	RfGroup		groups[FLEXIBLE_ARRAY_MEMBER];
} RfGroups;

extern void rf_need_groups(RfTable *table, RfIndex *index);
extern uint64 rf_ask_group(RfIndex *index, int number, const RfKeySet *set,
						   RfClock now);
extern bool rf_may_be_grouped(const RfIndex *index, const RfLeaf *leaf);
extern void rf_put_digest(RfIndex *index, RfLeaf *leaf, RfClock now);
extern void rf_column_checked(RfIndex *index, const RfLeaf *leaf,
							  const RfStamp *stamp, uint64 number);
extern void rf_count_denials(RfIndex *index, int number, uint64 denied);
extern void rf_collect_denials(RfIndex *index);
extern void rf_forget_groups(RfIndex *index);

/* ---- bulk.c ---- */

extern Bitmapset *rf_deny_in_bulk(RfTable *table, RfPass *pass,
								  Bitmapset *rest);
extern bool rf_recheck_bulk(const RfBulk *bulk, RfRecheck *recheck);

/* ---- skip.c ---- */

extern void rf_skip_members(PlannerInfo *root, Oid relid, RelOptInfo *rel);


/* ---- guard.c ---- */

/*
 * What a plan relies on: custom_private of a CustomScan that is never run.
 * The state is written to when a check found that it still holds; this does
 * not change what the plan means, it only makes the next check cheaper.
 */
typedef enum RfGuardPrivate
{
	RF_GUARD_QUERY,				/* Query, as given to the planner */
	RF_GUARD_CURSOR_OPTIONS,	/* Integer */
	RF_GUARD_HASH,				/* Integer: of its PlanInvalItem */
	RF_GUARD_PROBES,			/* List of Const: sets of keys, bytea */
	RF_GUARD_STATE,				/* Const: RfGuardState */
	RF_GUARD_TABLES				/* List, one per table: see explain.c */
} RfGuardPrivate;

typedef struct RfGuardState
{
	RfClock		clock;			/* before the summaries were last read */
	bool		in_recovery;	/* NOs are good for a standby's snapshots */
	int32		nskips;
	int32		nbulks;			/* these follow skips */
	RfSkip		skips[FLEXIBLE_ARRAY_MEMBER];
} RfGuardState;

extern const CustomScanMethods rf_guard_methods;

extern void rf_attach_guard(PlannedStmt *stmt, RfPlanning *planning);
extern CustomScan *rf_find_guard(const PlannedStmt *stmt);
extern bool rf_guard_holds(CustomScan *guard, Snapshot snapshot);
extern void rf_add_inval_item(PlannedStmt *stmt, uint32 hash);
extern void rf_invalidate_plans(uint32 hash);

/* The PlanInvalItem of every plan that rangefilter.enable can change. */
#define RF_ENABLE_HASH	0x72666567

/* ---- replan.c ---- */

extern MemoryContext rf_replan(QueryDesc *desc, int eflags,
							   planner_hook_type make_plan);


/* ---- estimate.c ---- */

extern bool rf_supply_stats(PlannerInfo *root, AttrNumber attno, Node *expr,
							VariableStatData *vardata);
extern void rf_estimate_note(PlannerInfo *root, RelOptInfo *rel,
							 List *indexes);

/* ---- activity.c ---- */

extern void rf_init_activity(void);
extern void rf_watch_pass(RfPass *pass, RelOptInfo *parent);
extern void rf_watch_leaf(RfTable *table, RfPass *pass, Oid leaf,
						  int position);
extern void rf_attach_watch(PlannedStmt *stmt, RfPlanning *planning);
extern void rf_watch_start(QueryDesc *desc, int eflags);
extern void rf_watch_end(QueryDesc *desc);

/* ---- secured.c ---- */

extern bool rf_is_secured(PlannerInfo *root, Index rti);

/* ---- explain.c ---- */

struct ExplainState;

extern char *rf_relation_names(List *oids, bool qualified);
extern void rf_explain_counts(double skipped, double considered,
							  struct ExplainState *es);
extern List *rf_explain_tables(PlannerGlobal *glob, List *passes);
extern Node *rf_create_guard_state(CustomScan *guard);

#endif							/* RANGEFILTER_PLANNER_H */
