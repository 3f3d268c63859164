/*-------------------------------------------------------------------------
 *
 * gate.h
 *	  Interfaces of the gate: skipping by values known only at execution.
 *
 * A gate is a CustomScan above the scan of one member of an append relation,
 * or above the scans of many members; then it replaces the Append.  When its
 * scan begins, it computes the values that its conditions compare with.  It
 * asks each member's index when it comes to the member, and starts only the
 * scans of members that may hold a match.
 *
 *	  gate_path.c		gates above members' paths, costs
 *	  gate_plan.c		from path to plan; one gate for an Append of gates
 *	  gate_exec.c		execution
 *	  gate_ask.c			asking a member's index
 *	  gate_matrix.c			asking 64 members at a time
 *	  gate_join_values.c	the values of a hash join
 *	  gate_explain.c		EXPLAIN
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_GATE_H
#define RANGEFILTER_GATE_H

#include "postgres.h"

#include "core/core.h"
#include "executor/execdesc.h"
#include "nodes/extensible.h"
#include "planner/condition/parameter.h"
#include "planner/knowledge/knowledge.h"
#include "planner/planning/planning.h"
#include "stats/stats.h"

/* ---- gate_path.c ---- */

/*
 * What each value of many costs that an index is asked for, in units of
 * cpu_operator_cost.
 */
#define RF_ASK_VALUE_COST 40

/* A member that has rangefilter indexes. */
typedef struct RfGateRel
{
	const RelOptInfo *rel;		/* hash key */
	PlannerInfo *root;
	Index		top;			/* outermost relation it belongs to */
	bool		secured;		/* rf_is_secured() */
	bool		hidden_values;	/* rf_has_hidden_values() */
	List	   *indexes;		/* RfRelIndex */
	List	   *infos;			/* RfGateInfo: what was found so far */
} RfGateRel;

/* What gates of a member can ask where a scan checks these clauses. */
typedef struct RfGateInfo
{
	List	   *clauses;
	bool		useful;
	RfGateShape shape;
} RfGateInfo;

extern void rf_add_gates(PlannerInfo *root, RelOptInfo *rel,
						 RangeTblEntry *rte);
extern void rf_gate_note_indexes(PlannerInfo *root, RelOptInfo *rel,
								 List *indexes);
extern List *rf_gate_indexes(const RelOptInfo *rel);
extern bool rf_gate_is_secured(const RelOptInfo *rel);
extern const RfGateInfo *rf_gate_info(PlannerInfo *root, RelOptInfo *rel, List *restrictions);

/* ---- gate_plan.c ---- */

/*
 * What a gate asks, as stored in its plan.  The plan's custom_exprs compute
 * the values of the run-time parameters.
 */
typedef struct RfGateQuestion
{
	List	   *clauses;		/* see RfGateShape */
	List	   *opclasses;
	List	   *conversions;
	List	   *keys;			/* of indexes, in terms of the first member */
	List	   *members;		/* for each member a list of OIDs: the table
								 * and its indexes; NIL: it is never skipped */
	List	   *params;			/* numbers of the PARAM_EXEC that the values
								 * depend on */
	List	   *tables;			/* OIDs: the tables members belong to */
	int			key_rti;		/* the member that keys refers to */
	bool		secured;		/* see secured.c; if so, ... */
	List	   *external;		/* ... rf_external_params() */
	int			nconditions;	/* number of conditions of the scan below */
	List	   *join_filters;	/* for each run-time parameter that a join
								 * fills: rf_join_filter_place() */
} RfGateQuestion;

extern const CustomPathMethods rf_gate_path_methods;
extern const CustomScanMethods rf_gate_methods;

extern bool rf_is_gate(const Plan *plan);
extern void rf_gate_write(CustomScan *gate, const RfGateQuestion *asked);
extern void rf_gate_read(const CustomScan *gate, RfGateQuestion *asked);
extern CustomScan *rf_make_gate(const Plan *plan, List *plans,
								List *scan_tlist);
extern void rf_finish_gates(PlannedStmt *stmt, RfPlanning *planning);

/* ---- gate_exec.c, gate_ask.c ---- */

/* Values are not collected from a hash table with more rows. */
#define RF_JOIN_MAX_ROWS 10000

/* The most distinct values of a join that gates ask for, and their bytes. */
#define RF_JOIN_MAX_VALUES 1000
#define RF_JOIN_MAX_BYTES (1024 * 1024)

typedef struct RfGateMember
{
	Plan	   *plan;
	PlanState  *state;			/* NULL: not started */
	uint64		scan;			/* the gate's scan in which it was last read */
	bool		closed;			/* the answer to question "asked" */
	uint64		asked;			/* number of the question answered last */
	RfCounts   *watched;		/* counters of the index just asked, if the
								 * member's scan is to be watched; else NULL */
	Oid			watched_index;	/* that index */
	List	   *oids;			/* table and indexes, NIL: always open */
	Relation   *indexes;		/* those kept open, NULL where it is not;
								 * NULL: none is */
} RfGateMember;

/*
 * The values of one key of a join.  Allocated in the executor's context of the
 * query, which outlives hash tables.
 */
typedef struct RfJoinSource
{
	struct HashJoinState *join;
	int			key;
	Oid			type;
	ExprState  *value;			/* computes the key from a row in slot */
	TupleTableSlot *slot;
	ExprContext *econtext;
	MemoryContext context;		/* holds array */
	struct HashJoinTableData *table;	/* the one read last; NULL: none, or
										 * it is gone */
	uint64		version;		/* counts the arrays made */
	bool		known;			/* is there an array of table's values? */
	Datum		array;
} RfJoinSource;

/* The value of a run-time parameter, as of the last question. */
typedef struct RfGateValue
{
	Datum		datum;
	bool		isnull;
	bool		unusable;		/* nothing is known of a comparison with it */
	bool		external;		/* an external parameter: it stays the same */
	bool		missing;		/* it could not be computed without an error */
	int16		typlen;
	bool		typbyval;
} RfGateValue;

/* A run-time parameter that a join fills. */
typedef struct RfGateJoinFilter
{
	int			join;			/* plan_node_id */
	int			key;			/* number of the hash clause */
	int			param;
	RfJoinSource *source;		/* NULL: not found */
	uint64		version;		/* of the source's values; 0: they are not
								 * known */
} RfGateJoinFilter;

/*
 * What digest matrices say of a gate's members.  The places are those of leaves in
 * the entry of a table with this serial.
 */
typedef struct RfGateMatrices
{
	Oid			relid;			/* the table whose partitions are members */
	RfClock		clock;			/* read after the executor took its snapshot */
	uint64		serial;			/* 0: the places are not known yet */
	RfIndex   **indexes;		/* the entry's, by number of the gate's index;
								 * NULL where there is none */
	int			nwords;			/* 0: there is nothing to ask */
	int		   *places;			/* of members; -1: it has none */
	uint64	   *members;		/* a bit for each place */
	uint64	   *denied;			/* the answer to question "asked" */
	uint64		asked;
	int			entries;		/* that were made for the gate */
} RfGateMatrices;

typedef struct RfGateState
{
	CustomScanState css;		/* must be first */
	int			eflags;
	RfGateQuestion asked;		/* what the plan says */
	int			nmembers;
	RfGateMember *members;
	int			current;		/* member being scanned */
	bool		entered;		/* the current member was found open */
	bool		found;			/* its scan has returned, a row or none */
	uint64		scan;			/* number of the scan */
	Bitmapset  *changed;		/* parameters that changed since the first
								 * scan */

	/* The question. */
	bool		repeated;		/* rescans may ask for something else */
	Bitmapset  *params;			/* PARAM_EXEC that the values depend on */
	List	   *exprs;			/* ExprStates, one for each run-time parameter */
	RfTable    *table;			/* describes the members' indexes */
	int			nfilters;
	RfGateJoinFilter *filters;
	int			nvalues;
	RfGateValue *values;
	Datum	   *datums;			/* what fills the run-time parameters */
	bool	   *nulls;
	bool		current_values; /* values are those of this scan */
	bool		checked_params; /* whether ... */
	bool		lacks_params;	/* ... one of asked.external cannot be given */
	MemoryContext context;		/* holds what is only of this question */
	MemoryContext scratch;
	uint64		question;		/* number of the question; 0: none yet */
	bool		open;			/* let everything pass */
	bool		never;			/* no row can match these values */
	bool		watch;			/* scans of this query are watched */
	bool		watchable;		/* the question is all that the scans compare */
	RfCond	   *cond;			/* what to ask, unless open or never */
	RfGateMatrices *matrices;	/* NULL: none are asked */
	/* For EXPLAIN. */
	uint64		considered;
	uint64		skipped;
} RfGateState;

/*
 * Member number i of a gate.
 */
static inline RfGateMember *
rf_gate_member(const RfGateState *gate, int i)
{
	Assert(i >= 0 && i < gate->nmembers);
	return &gate->members[i];
}

extern Node *rf_create_gate_state(CustomScan *plan);
extern void rf_gate_start(RfGateState *gate, RfGateMember *member,
						  int eflags);
extern void rf_gate_prepare(RfGateState *gate);
extern bool rf_gate_closed(RfGateState *gate, RfGateMember *member);
extern void rf_gate_close_indexes(RfGateState *gate);

/* ---- gate_matrix.c ---- */

extern void rf_gate_matrices_init(RfGateState *gate);
extern void rf_gate_ask_matrices(RfGateState *gate);
extern bool rf_gate_begin_look(RfGateState *gate, const RfGateMember *member,
							   int i, RfLook *look);

/*
 * Do matrices deny a member, whose number this is?  They have been asked the question.
 */
static inline bool
rf_gate_matrices_deny(const RfGateMatrices *matrices, int i)
{
	int			place = matrices->nwords > 0 ? matrices->places[i] : -1;

	return place >= 0 &&
		(matrices->denied[place / RF_CORE_WORD] >> place % RF_CORE_WORD & 1) != 0;
}

/* ---- gate_join_values.c ---- */

extern List *rf_join_filter_place(int join, int key, int param);
extern void rf_join_filters_init(RfGateState *gate);
extern uint64 rf_join_filters_started(void);
extern void rf_join_filters_link(QueryDesc *desc, uint64 before);
extern Bitmapset *rf_join_filters_read(RfGateState *gate);
extern Bitmapset *rf_join_filters_fill(const RfGateState *gate);
extern List *rf_gate_own_clauses(const RfGateState *gate);

/* ---- gate_explain.c ---- */

extern void rf_explain_gate(CustomScanState *node, List *ancestors,
							ExplainState *es);

#endif							/* RANGEFILTER_GATE_H */
