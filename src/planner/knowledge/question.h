/*-------------------------------------------------------------------------
 *
 * question.h
 *	  Questions to the indexes of a table's partitions, and the denials that a
 *	  plan relies on.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_QUESTION_H
#define RANGEFILTER_QUESTION_H

#include "postgres.h"

#include "nodes/pathnodes.h"
#include "partitioning/partdefs.h"
#include "planner/planning/planning.h"
#include "rangefilter/probe/probe.h"
#include "utils/snapshot.h"

struct RfIndex;

typedef enum RfCondKind
{
	RF_COND_PROBE,				/* ask one index for a set of keys */
	RF_COND_AND,
	RF_COND_OR
} RfCondKind;

/* RfCond.column if the set is one of whole keys */
#define RF_WHOLE_KEY	(-1)

/*
 * A condition that is true for every row that the query wants from a
 * partition.
 */
typedef struct RfCond
{
	RfCondKind	kind;
	struct RfIndex *index;		/* RF_COND_PROBE */
	int			column;			/* while matching: the column whose keys the
								 * set has */
	RfKeySet   *set;
	bytea	   *flat;			/* the set, serialized */
	int			probe;			/* its number in the planning's list */
	uint64	   *denied;			/* the leaves that matrices denied, a bit for
								 * each; or NULL */
	bool		certain;		/* all of denied is true as of the start of
								 * planning */
	struct RfDeniedSet *denied_set; /* the leaves left out by these denials,
									 * or NULL */
	List	   *args;			/* RF_COND_AND, RF_COND_OR */
} RfCond;

/* The part of a table's restrictions that its indexes can answer. */
typedef struct RfMatch
{
	RfCond	   *cond;
	List	   *clauses;		/* the clauses used, for EXPLAIN */
} RfMatch;

/* A NO that a plan relies on; part of a guard's state. */
typedef struct RfSkip
{
	Oid			table;			/* the partitioned table */
	Oid			leaf;			/* the partition */
	Oid			index;			/* its index */
	int32		probe;			/* number of the set of keys asked for */
	RfSummaryVersion version;	/* of the summary that said NO */
} RfSkip;

/*
 * NOs of many leaves of one index to the same set of keys; part of a guard's
 * state.  There is a bit for each leaf, by its place in RfIndex.leaves of the
 * table's entry with this serial.
 */
typedef struct RfDeniedSet
{
	Oid			table;			/* the partitioned table */
	Oid			index;			/* the partitioned index */
	uint64		serial;
	int32		probe;			/* number of the set of keys asked for */
	int32		nwords;
	uint64		leaves[FLEXIBLE_ARRAY_MEMBER];
} RfDeniedSet;

#define RF_DENIED_SET_SIZE(nwords) \
	(offsetof(RfDeniedSet, leaves) + (nwords) * sizeof(uint64))

/* The NOs of one expansion over a table's partitions. */
typedef struct RfSkips
{
	MemoryContext context;
	int			n;
	int			size;
	RfSkip	   *skips;
	List	   *denied_sets;	/* RfDeniedSet */
} RfSkips;

/* How NOs given earlier are checked. */
typedef struct RfRecheck
{
	const bytea **flat;			/* the sets of keys, by number */
	RfKeySet  **sets;			/* the same, deserialized; NULL: not yet */
	bool		trust_versions; /* a NO holds while the version is the same */
	bool		in_recovery;	/* the snapshot was taken in recovery, which
								 * does not begin again */
	Snapshot	serializable;	/* not NULL: take predicate locks for it */
	RfClock		clock;			/* read before anything is checked */
	int			position;		/* the likely place of the next leaf in
								 * RfIndex.leaves */
} RfRecheck;

/* One partitioned table met in planning, and what was skipped there. */
typedef struct RfExpansion
{
	PlannerInfo *root;
	Index		top_rti;		/* of the outermost partitioned table above */
	Oid			relid;
	PartitionDesc partdesc;		/* maps excluded to partitions */
	RfMatch		match;			/* cond is NULL: nothing could be asked */
	Bitmapset  *leaves;			/* leaf members that partition pruning has
								 * left */
	Bitmapset  *excluded;		/* those of leaves that are left out */
	RfSkips    *skips;			/* shared with an expansion that asked the
								 * same */

	/* See activity.c. */
	bool		watched;
	Index		varno;			/* of the partitioned table in others */
	List	   *others;			/* conditions that no index was asked for */
	List	   *kept_leaves;	/* OIDs of leaves that are scanned */
	List	   *kept_indexes;	/* OIDs of their indexes */
} RfExpansion;

#endif							/* RANGEFILTER_QUESTION_H */
