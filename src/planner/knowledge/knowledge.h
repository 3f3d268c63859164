/*-------------------------------------------------------------------------
 *
 * knowledge.h
 *	  What a session, or the server, remembers of partitions: finding it, asking
 *	  it, and whether it is still true.
 *
 *	  catalog.c		which rangefilter indexes a partitioned table has
 *	  leafmap.c		the index of each leaf, and where its file is
 *	  track.c		when the last invalidation for an index came
 *	  guess.c		asking the cached metapage of a leaf's index
 *	  groups.c		digests of many partitions, side by side
 *	  bulk.c		leaving out all that these deny, and checking it, at once
 *	  leaf.c		asking the index of one leaf
 *	  clock.c		whether anything can have become visible
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_KNOWLEDGE_H
#define RANGEFILTER_KNOWLEDGE_H

#include "postgres.h"

#include "key/rowkey.h"
#include "planner/knowledge/question.h"
#include "utils/relcache.h"

/* ---- catalog.c ---- */

struct rf_leafmap_hash;
struct RfGroups;

/* Notes when an index, partitioned or not, changed. */
typedef struct RfTrack
{
	Oid			index;
	Oid			relid;			/* table whose entry depends on it, or none */
	int			users;			/* entries that hold it, repeated ones counted */
	uint64		changed_at;		/* what rf_changes() said then */
} RfTrack;

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
	List	   *tracks;			/* held, of its indexes and theirs */
	uint64		last_asked;		/* when it was last looked for, ... */
	uint64		planned_at;		/* ... and the planning that did so */
	MemoryContext context;
	MemoryContext copies;		/* of its indexes; below context, or NULL */
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
extern void rf_trim_tables(void);
extern void rf_tables_grew(void);
extern void rf_collect_counts(void);

/* ---- track.c ---- */

extern Oid	rf_note_change(Oid relid);
extern uint64 rf_changes(void);
extern bool rf_unchanged(const RfTrack *track, uint64 when);
extern void rf_expect_tracks(const List *indexes);
extern RfTrack *rf_track(RfTable *table, Oid index);
extern void rf_release_tracks(RfTable *table);
extern void rf_shrink_tracks(void);
extern void rf_tracks_usage(int64 *entries, int64 *bytes);

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
extern bool rf_recheck_skip(RfSkip *skip, RfRecheck *recheck);

/* ---- guess.c ---- */

extern bool rf_begin_guessing(void);
extern bool rf_guess(RfTable *table, RfLeaf *leaf, const RfCond *cond,
					 bool in_recovery, RfStamp *stamp);
extern bool rf_digest_is_due(const RfIndex *index, const RfLeaf *leaf);
extern void rf_make_room(const RfTable *table);
extern MemoryContext rf_copies_context(RfTable *table);
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

#endif							/* RANGEFILTER_KNOWLEDGE_H */
