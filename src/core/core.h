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

#include "access/transam.h"
#include "compat.h"
#include "executor/execdesc.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "partitioning/partdefs.h"
#include "storage/buf.h"
#include "utils/relcache.h"

/*
 * For test/modules/rf_core: the reaches that answer "unknown".  Only where
 * assertions are checked.
 */
#define RF_CORE_HASH		0x01
#define RF_CORE_MEMBERS		0x02
#define RF_CORE_WORDS		0x04
#define RF_CORE_QUERY		0x08
#define RF_CORE_SNAPSHOT	0x10
#define RF_CORE_RECORD		0x20
#define RF_CORE_CLOCK		0x40

#ifdef USE_ASSERT_CHECKING
extern PGDLLEXPORT uint32 rf_core_doubts;

#define RF_CORE_DOUBTS(reach)	((rf_core_doubts & (reach)) != 0)
#else
#define RF_CORE_DOUBTS(reach)	false
#endif

/* ---- attempt.c: what may fail, in a subtransaction ---- */

extern ErrorData *rf_core_attempt(void (*work) (void *arg), void *arg, bool roll_back);

/* ---- clock.c: has a transaction ended? ---- */

extern uint64 rf_core_completions(void);
extern TransactionId rf_core_next_xmax(void);

/* ---- file.c: tables that have got another file without their indexes ---- */

extern bool rf_core_is_moved(Relation heap, Relation index);

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

/* ---- prune.c: partition pruning when a query runs ---- */

extern Bitmapset *rf_core_prune(Relation relation, PartitionDesc partdesc, List *clauses);

/* ---- query.c: knowing a Query again ---- */

extern QuerySource rf_core_mark_query(Query *parse);
extern bool rf_core_plans_query(PlannerInfo *root, const Query *marked);
#if RF_PLANNER_KEEPS_STATE
extern void rf_core_note_query(PlannerGlobal *glob, Query *parse);
#endif

/* ---- process.c: giving way as autovacuum does; VACUUM's transactions ---- */

extern void rf_core_give_way(void);
extern bool rf_core_in_vacuum(void);
extern void rf_core_finish_vacuum(void);

/* ---- scans.c: statistics of an index that is not open ---- */

extern bool rf_core_has_statistics(Oid index);
extern void rf_core_count_scans(Oid index, uint64 n);

/* ---- record.c: WAL records that core replays ---- */

/* Bytes of a page that changed. */
typedef struct RfCoreStretch
{
	uint16		offset;
	uint16		length;
} RfCoreStretch;

extern bool rf_core_knows_stretches(void);
extern void rf_core_log_stretches(Buffer buffer,
								  const RfCoreStretch *stretches, int n);
extern void rf_core_log_conflict(Relation index, BlockNumber block,
								 FullTransactionId horizon);

/* ---- start.c: the plan and the snapshot of a statement about to be started ---- */

extern void rf_core_note_start(const QueryDesc *desc);
extern bool rf_core_owns_snapshot(const QueryDesc *desc);
extern bool rf_core_is_execute(const QueryDesc *desc);
extern void rf_core_refresh_snapshot(QueryDesc *desc);
extern void rf_core_replace_plan(QueryDesc *desc, PlannedStmt *stmt);

/* ---- tidscan.c: WHERE CURRENT OF ---- */

/* Returns true if the cursor is on no row of the scan's table. */
typedef bool (*RfCoreNoRow) (TidScanState *scan, CurrentOfExpr *cursor);

extern void rf_core_watch_current_of(PlanState *node, RfCoreNoRow no_row);

/* ---- toast.c: an out-of-line value that may be gone ---- */

extern struct varlena *rf_core_fetch_value(struct varlena *pointer);

#endif							/* CORE_CORE_H */
