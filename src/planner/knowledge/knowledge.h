/*-------------------------------------------------------------------------
 *
 * knowledge.h
 *	  What a session or the server remembers of partitions: finding it, asking
 *	  it, checking that it is still true.
 *
 *	  catalog.c			which rangefilter indexes a partitioned table has
 *	  own_index.c		... and which only its partitions have
 *	  indexed_tables.c	which tables have a rangefilter index at all
 *	  describe.c		what a partitioned index is
 *	  leafmap.c			the index of each leaf, and where its file is
 *	  catalog_rows.c	reading rows of catalogs about many relations
 *	  invalidation.c	when the last invalidation for an index came
 *	  cached_probe.c	asking the cached metapage of a leaf's index
 *	  leaf_bounds.c		the least and greatest keys of many partitions
 *	  digest_matrix.c	digests of many partitions, side by side
 *	  denied_set.c		leaving out all that these deny, and checking it, at once
 *	  leaf.c			asking the index of one leaf
 *	  clock.c			whether anything can have become visible
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_KNOWLEDGE_H
#define RANGEFILTER_KNOWLEDGE_H

#include "postgres.h"

#include "access/htup.h"
#include "key/rowkey.h"
#include "partitioning/partdesc.h"
#include "planner/knowledge/question.h"
#include "utils/relcache.h"

/* ---- catalog.c ---- */

struct rf_leafmap_hash;
struct RfMatrixStates;

/* Notes when an index, partitioned or not, changed. */
typedef struct RfInvalRecord
{
	Oid			index;
	Oid			relid;			/* table whose entry becomes invalid with it,
								 * or InvalidOid */
	int			users;			/* times that entries of tables hold it */
	uint64		changed_at;		/* rf_changes() when its last invalidation
								 * came */
} RfInvalRecord;

/* The index of a leaf partition, and this backend's cached metapage of it. */
typedef struct RfLeaf
{
	Oid			leaf;
	Oid			index;			/* InvalidOid: it has none, or is not mapped */
	RfCachedMeta *cached;		/* or NULL */
	uint64		validity;		/* of the cached metapage and of the bounds:
								 * see rf_leaf_validity() */
	uint32		probes;			/* questions since counts were last collected */
	uint32		skips;			/* those answered NO.  RfMatrixState.denials
								 * is to be added to both, modulo 2^32. Until
								 * then both may be below zero at a leaf that
								 * was not denied */
	RfRelFile	locator;		/* valid if rf_leaf_is_located() */
	bool		located;
	uint64		located_at;		/* rf_changes() as of which locator was true */
	RfInvalRecord *inval;
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
 * A rangefilter index of a relation that is planned.  This is a copy: the
 * planner's IndexOptInfo belongs to the relation, and any extension may free
 * it.
 */
typedef struct RfRelIndex
{
	Oid			oid;
	Index		varno;			/* of the relation, in the fields below */
	List	   *predicate;		/* of a partial index, implicit AND */
	int			ncolumns;
	RfIndexColumn columns[FLEXIBLE_ARRAY_MEMBER];
} RfRelIndex;

/* Places in RfIndex.stored. */
enum
{
	RF_STORED_EXPRS,
	RF_STORED_PREDICATE,
	RF_STORED					/* how many there are */
};

/*
 * A rangefilter index on a partitioned table, or indexes of its partitions that
 * are alike and belong to no partitioned index.
 */
typedef struct RfIndex
{
	Oid			oid;			/* of the partitioned index, or of one of own */
	List	   *own;			/* OIDs of leaves' indexes, in order; NIL:
								 * they belong to the partitioned index */
	Oid			parent;			/* the table, or that whose partitions have
								 * them, if own */
	Oid			am;				/* access method */
	int			ncolumns;
	RfIndexColumn columns[RF_MAX_COLUMNS];
	const RfCodec *codec;		/* of its keys */
	List	   *predicate;		/* of a partial index, varno 1, implicit AND */
	text	   *stored[RF_STORED];	/* of a partitioned index: expressions and
									 * predicate as pg_index has them, or NULL */
	bool		calls_functions;	/* stored calls functions that can be
									 * replaced */
	bool		mapped;			/* the fields below are complete; else leaves
								 * and positions have those asked so far */
	int			nleaves;
	RfLeaf	   *leaves;			/* in the order of the table's partitions,
								 * unless these are mostly without index */
	struct rf_leafmap_hash *positions;	/* leaf table -> place in leaves;
										 * NULL: not needed yet */
	struct RfMatrixStates *matrices;	/* of leaves' digests; NULL: not
										 * looked for yet */
} RfIndex;

/* A leaf among a table's partitions. */
typedef struct RfMember
{
	Oid			leaf;			/* sorted and sought by it: must be first */
	int			position;		/* among all partitions */
} RfMember;

/* An index of a leaf that belongs to no partitioned index. */
typedef struct RfOwnIndex
{
	Oid			leaf;			/* sought by it: must be first */
	Oid			index;
} RfOwnIndex;

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
	int			npartitioned;	/* the first of them: partitioned indexes */
	RfIndex    *indexes;
	bool		own_needed;		/* some partition has no partitioned index */
	bool		own_read;		/* the following is known, and in indexes: */
	int			own_sought;		/* before: partitions that were looked at one
								 * by one */
	uint64		own_seen;		/* rf_changes() when it was last looked at */
	int			nmembers;
	RfMember   *members;		/* in the order of their OIDs */
	int			nown;
	RfOwnIndex *own;			/* in the same order */
	bool		has_cached_metas;	/* of its indexes */
	bool		has_counts;		/* questions have been counted at its leaves */
	List	   *invals;			/* RfInvalRecord of its indexes and its
								 * leaves' indexes */
	List	   *functions;		/* PlanInvalItem of functions that partitioned
								 * indexes call */
	uint64		last_asked;		/* number of the last look for it */
	MemoryContext context;
	MemoryContext metacache;	/* for cached metapages; child of context, or
								 * NULL */
	struct RfTable *next_retired;
} RfTable;

/*
 * Index number i of a table; place i of an index.
 */
static inline RfIndex *
rf_index_at(const RfTable *table, int i)
{
	Assert(i >= 0 && i < table->nindexes);
	return &table->indexes[i];
}

static inline const RfIndexColumn *
rf_column_at(const RfIndex *index, int i)
{
	Assert(i >= 0 && i < index->ncolumns);
	return &index->columns[i];
}

static inline RfLeaf *
rf_leaf_at(const RfIndex *index, int i)
{
	Assert(i >= 0 && i < index->nleaves);
	return &index->leaves[i];
}

/*
 * Is partition number i not partitioned itself?
 */
static inline bool
rf_is_leaf(PartitionDesc partdesc, int i)
{
	Assert(i < partdesc->nparts);
	return partdesc->is_leaf[i];
}

extern void rf_init_catalog(void);
extern RfTable *rf_find_table(Oid relid);
extern RfTable *rf_find_table_with_own(Oid relid);
extern PGDLLEXPORT RfTable *rf_known_table(Oid relid);
extern RfTable *rf_least_asked_table(const RfTable *except);
extern void rf_table_suspect(RfTable *table);
extern void rf_trim_tables(void);
extern void rf_collect_counts(void);

/* ---- describe.c ---- */

extern bool rf_describe_key(RfIndexColumn *column, Oid opfamily,
							Oid opcintype, Oid collation);
extern bool rf_describe_index(RfTable *table, Relation relation, RfIndex *index);
extern bool rf_stored_alike(const RfIndex *index, HeapTuple row);
extern bool rf_child_fits(const RfIndex *index, Relation leaf_index);
extern AttrNumber rf_parent_attno(Oid parent, Oid leaf, AttrNumber attno);
extern Node *rf_about_parent(Node *node, Oid leaf, Oid parent);

/* ---- own_index.c ---- */

extern bool rf_may_have_own(RfTable *table, PartitionDesc partdesc,
							const Bitmapset *partitions);
extern void rf_add_own_indexes(RfTable *table, PartitionDesc partdesc);
extern bool rf_own_unchanged(RfTable *table);
extern bool rf_index_fits(const RfIndex *index, Relation leaf_index);

/* ---- indexed_tables.c ---- */

extern const RfMember *rf_find_member(const RfTable *table, Oid leaf);
extern int	rf_indexed_members(const RfTable *table, RfMember *indexed);

/* ---- invalidation.c ---- */

/*
 * How many of the last invalidations are remembered.  To look each up among a table's partitions
 * takes less time than to read the indexes of a thousand partitions anew.
 */
#define RF_RECENT_CHANGES	1024

extern Oid	rf_note_change(Oid relid);
extern uint64 rf_changes(void);
extern uint64 rf_changes_before(const SnapshotData *snapshot);
extern Oid	rf_recent_change(uint64 number);
extern void rf_note_function_change(void);
extern uint64 rf_function_changes(void);
extern bool rf_unchanged(const RfInvalRecord *inval, uint64 when);
extern void rf_expect_inval_records(const List *indexes);
extern RfInvalRecord *rf_hold_inval_record(RfTable *table, Oid index);
extern void rf_release_inval_records(RfTable *table);
extern void rf_shrink_inval_records(void);
extern void rf_inval_records_usage(int64 *entries, int64 *bytes);

/* ---- leafmap.c ---- */

extern RfLeaf *rf_known_leaf(RfTable *table, RfIndex *index, Oid leaf,
							 int position);
extern RfLeaf *rf_search_leaf(RfTable *table, RfIndex *index, Oid leaf,
							  int position);

/*
 * The leaf's index that belongs to a partitioned index, or NULL.  position is
 * its likely place in the array.
 */
static inline RfLeaf *
rf_find_leaf(RfTable *table, RfIndex *index, Oid leaf, int position)
{
	if (position < index->nleaves &&
		index->leaves[position].leaf == leaf &&
		OidIsValid(index->leaves[position].index))
		return &index->leaves[position];
	return rf_search_leaf(table, index, leaf, position);
}

extern void rf_map_leaves(RfTable *table, RfIndex *index);
extern bool rf_are_few(int n, PartitionDesc partdesc);
extern void rf_map_few_leaves(RfTable *table, RfIndex *index,
							  PartitionDesc partdesc, const Bitmapset *partitions);
extern void rf_map_few_asked(RfTable *table, const RfCond *cond,
							 PartitionDesc partdesc, const Bitmapset *partitions);
extern bool rf_are_mapped(const RfIndex *index, const Oid *tables,
						  const Bitmapset *numbers);
extern bool rf_leaf_is_located(RfLeaf *leaf);
extern void rf_leaf_locate(RfLeaf *leaf, Relation index, uint64 when);

/* ---- clock.c ---- */

extern RfClock rf_clock_read(void);

/* ---- leaf.c ---- */

/* Does an index deny that there is a key of a condition's set, RF_COND_PROBE? */
typedef bool (*RfDenies) (const RfCond *cond, void *arg);

extern bool rf_cond_denied(const RfCond *cond, RfDenies denies, void *arg,
						   RfSkips *skips);
extern bool rf_index_is_usable(Relation index, Oid table);
extern bool rf_exclude_leaf(RfTable *table, const RfCond *cond, Oid leaf,
							int position, bool in_recovery, RfSkips *skips);

/*
 * Begins to read what rf_exclude_leaf() will read for the leaves behind this position, as
 * far as it is not in shared buffers.  Returns the last position for which it did.  Locks as
 * rf_exclude_leaf().
 */
extern int	rf_read_ahead(RfTable *table, const RfCond *cond, PartitionDesc partdesc,
						  const Bitmapset *leaves, int position, bool in_recovery);
extern bool rf_recheck_skip(RfSkip *skip, RfRecheck *recheck);

/* A question to a leaf's index whose metapage is to be cached. */
typedef struct RfLook
{
	RfTable    *table;
	RfIndex    *index;
	RfLeaf	   *leaf;
	uint64		changes;		/* rf_changes(), and ... */
	uint64		validity;		/* ... rf_leaf_validity(), before the index
								 * was locked */
} RfLook;

extern void rf_begin_look(RfLook *look, RfTable *table, RfIndex *index,
						  RfLeaf *leaf, RfClock now);
extern RfAnswer rf_look_at_open(const RfLook *begun, Relation relation,
								const RfKeySet *set, bool in_recovery);
extern bool rf_make_digest(RfIndex *index, RfLeaf *leaf, RfClock now);

/* ---- cached_probe.c ---- */

extern bool rf_begin_cached_probes(void);
extern RfAnswer rf_probe_cached(RfTable *table, RfLeaf *leaf, const RfCond *cond,
								bool in_recovery, RfSummaryVersion *version);
extern bool rf_digest_is_due(const RfIndex *index, const RfLeaf *leaf);
extern void rf_allow_digests(int64 questions);
extern void rf_make_first_digests(const RfCond *cond, uint32 questions);
extern PGDLLEXPORT void rf_make_room(const RfTable *table);
extern MemoryContext rf_metacache_context(RfTable *table);
extern void rf_cached_meta_ref(RfTable *table, RfLeaf *leaf, RfCachedMetaRef *ref);
extern void rf_forget_cached_metas(RfTable *table);
extern uint64 rf_leaf_validity(const RfLeaf *leaf, RfClock now);
extern bool rf_cached_no_holds(RfLeaf *leaf, const RfSkip *skip);
extern void rf_leaf_checked(RfTable *table, RfIndex *index, RfLeaf *leaf,
							const RfSummaryVersion *version, uint64 validity);

/* ---- leaf_bounds.c ---- */

/*
 * The least and the greatest key of 64 leaves' indexes, as rf_bound_number() has them.
 * certain, low and high are right as long as rf_read_moves() (or the clock) and
 * rf_changes() return checked_at and changes.
 */
typedef struct RfLeafBounds
{
	uint64		checked_at;		/* 0: look again */
	uint64		changes;
	uint64		known;			/* leaves whose bounds are below */
	uint64		certain;		/* those of known that are true now */
	uint64		low;			/* least and greatest of all that are certain */
	uint64		high;
	uint64		min[FILTER_DIGESTS];
	uint64		max[FILTER_DIGESTS];
} RfLeafBounds;

extern void rf_forget_bounds(RfIndex *index, const RfLeaf *leaf);
extern bool rf_wants_bounds(const RfIndex *index, const RfLeaf *leaf);
extern void rf_keep_bounds(RfIndex *index, RfLeaf *leaf, const RfKeyBounds *found,
						   uint64 validity);
extern void rf_bounds_checked(RfIndex *index, const RfLeaf *leaf);
extern uint64 rf_ask_bounds(RfIndex *index, int number, const RfKeySet *set,
							RfClock now);

/* ---- digest_matrix.c ---- */

/*
 * Digests of 64 leaves.  current and certain are right as long as
 * rf_read_moves() (or the clock) and rf_changes() return checked_at and
 * changes.
 */
typedef struct RfMatrixState
{
	uint64		checked_at;		/* rf_read_moves(), or the clock where there
								 * are no change counters; 0: look again */
	uint64		changes;		/* rf_changes() */
	uint64		current;		/* leaves whose columns may be asked */
	uint64		certain;		/* those of current that are true now */
	uint32		denials;		/* questions denied for all leaves, not yet
								 * counted at these */
	uint32		tries_left_out; /* to make a matrix, where there was no room */
	RfLeafBounds bounds;
	RfDigestView view;
} RfMatrixState;

typedef struct RfMatrixStates
{
	int			n;
	Oid		   *oids;			/* the tables of all leaves, in order */
	RfMatrixState states[FLEXIBLE_ARRAY_MEMBER];
} RfMatrixStates;

/*
 * The matrix of an index with this number.
 */
static inline RfMatrixState *
rf_matrix_at(const RfIndex *index, int number)
{
	Assert(number >= 0 && number < index->matrices->n);
	return &index->matrices->states[number];
}

extern void rf_need_matrices(RfTable *table, RfIndex *index);
extern uint64 rf_ask_matrix(RfIndex *index, int number, const RfKeySet *set,
							RfClock now);
extern bool rf_may_have_column(const RfIndex *index, const RfLeaf *leaf);
extern bool rf_put_digest(RfIndex *index, RfLeaf *leaf, RfClock now);
extern void rf_column_checked(RfIndex *index, const RfLeaf *leaf,
							  const RfSummaryVersion *version, uint64 validity);
extern void rf_count_denials(RfIndex *index, int number, uint64 denied);
extern void rf_collect_denials(RfIndex *index);
extern void rf_forget_matrices(RfIndex *index);

/* ---- denied_set.c ---- */

extern void rf_ask_matrices(RfTable *table, RfCond *cond, const Oid *leaves,
							int nleaves, const Bitmapset *asked, RfClock now,
							bool certain_only);
extern uint64 rf_find_denied(const RfCond *cond, int number, uint64 leaves);
extern void rf_note_denied(const RfTable *table, RfSkips *skips, RfCond *cond,
						   int number, uint64 leaves);
extern Bitmapset *rf_deny_leaves(RfTable *table, RfExpansion *expansion,
								 Bitmapset *rest);
extern bool rf_recheck_denied_set(const RfDeniedSet *denied_set,
								  RfRecheck *recheck);

#endif							/* RANGEFILTER_KNOWLEDGE_H */
