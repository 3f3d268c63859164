/*-------------------------------------------------------------------------
 *
 * core.h
 *	  Uses of core that core does not promise to extensions.
 *
 * There is one small function for each use.  It checks that core is as
 * expected, and tells its caller if not.  The caller then does without.
 * src/core/README.md lists what is expected of core, and the test that fails
 * where a version of core differs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include "postgres.h"

#include "executor/execdesc.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"

/* ---- hashtable.c: the rows of a hash join's table ---- */

/*
 * Called for each row.  The row stays at its place as long as the table
 * exists.
 */
typedef void (*RfCoreRow) (void *arg, MinimalTuple row);

extern void rf_core_hash_before_outer(HashJoinState *join);
extern bool rf_core_hash_is_readable(const HashJoinState *join, double max_rows);
extern bool rf_core_hash_read(const HashJoinState *join, RfCoreRow callback,
							  void *arg);

/* ---- members.c: a table's live partitions, and words of sets ---- */

/* Members in a word of a set. */
#define RF_CORE_WORD	64

extern bool rf_core_drop_members(RelOptInfo *parent, RelOptInfo *first_rel,
								 int first, const Bitmapset *members);
extern int	rf_core_count_words(const Bitmapset *set);
extern uint64 rf_core_bits(const Bitmapset *set, int n);
extern void rf_core_clear_bits(Bitmapset *set, int n, uint64 bits);
extern Bitmapset *rf_core_trim(Bitmapset *set);

/* ---- query.c: knowing a Query again ---- */

extern QuerySource rf_core_mark_query(Query *parse);
extern bool rf_core_is_marked(const Query *query, const Query *marked);

/* ---- snapshot.c: the snapshot of a statement about to be started ---- */

extern bool rf_core_owns_snapshot(const QueryDesc *desc);
extern void rf_core_refresh_snapshot(QueryDesc *desc);

#endif							/* CORE_CORE_H */
