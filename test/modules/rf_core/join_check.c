/*-------------------------------------------------------------------------
 *
 * join_check.c
 *	  Hash joins as src/core reads them.
 *
 * With rf_core.joins on, each hash join of a statement is told to build its table
 * first, and at the statement's end what is read from the table is said in a NOTICE.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type_d.h"
#include "core/core.h"
#include "executor/executor.h"
#include "executor/hashjoin.h"
#include "fmgr.h"
#include "nodes/nodeFuncs.h"
#include "utils/guc.h"

PG_FUNCTION_INFO_V1(rf_core_hash);

extern void rf_core_watch_joins(void);

static bool watch_joins = false;
static ExecutorStart_hook_type next_start;
static ExecutorEnd_hook_type next_end;

/*
 * Counts rows, and adds up the lengths of them.
 */
typedef struct Seen
{
	int64		rows;
	int64		bytes;
} Seen;

static void
count_row(void *arg, MinimalTuple row)
{
	Seen	   *seen = arg;

	seen->rows++;
	seen->bytes += row->t_len;
}

static bool
prepare_join(PlanState *node, void *arg)
{
	if (IsA(node, HashJoinState))
		rf_core_hash_before_outer((HashJoinState *) node);
	return planstate_tree_walker(node, prepare_join, arg);
}

static bool
show_join(PlanState *node, void *arg)
{
	if (IsA(node, HashJoinState))
	{
		HashJoinState *join = (HashJoinState *) node;
		HashJoinTable table = join->hj_HashTable;
		Seen		seen = {0};
		bool		complete;

		if (table == NULL || table->parallel_state != NULL)
			elog(NOTICE, "no table to be read");
		else
		{
			complete = rf_core_hash_read(join, count_row, &seen);
			elog(NOTICE, "%sreadable, %scomplete, %s rows",
				 rf_core_hash_is_readable(join, 10000) ? "" : "not ",
				 complete ? "" : "not ",
				 seen.rows == table->totalTuples ? "all" : "not all");
		}
	}
	return planstate_tree_walker(node, show_join, arg);
}

static void
start_executor(QueryDesc *desc, int eflags)
{
	if (next_start)
		next_start(desc, eflags);
	else
		standard_ExecutorStart(desc, eflags);
	if (watch_joins && desc->planstate != NULL)
		prepare_join(desc->planstate, NULL);
}

static void
end_executor(QueryDesc *desc)
{
	if (watch_joins && desc->planstate != NULL)
		show_join(desc->planstate, NULL);
	if (next_end)
		next_end(desc);
	else
		standard_ExecutorEnd(desc);
}

void
rf_core_watch_joins(void)
{
	DefineCustomBoolVariable("rf_core.joins", "Shows what is read of hash joins.",
							 NULL, &watch_joins, false, PGC_USERSET, 0,
							 NULL, NULL, NULL);
	next_start = ExecutorStart_hook;
	ExecutorStart_hook = start_executor;
	next_end = ExecutorEnd_hook;
	ExecutorEnd_hook = end_executor;
}

/*
 * A table of one chunk of three rows; then with a row too many or too few, and
 * with rows that do not end where the chunk does.
 */
Datum
rf_core_hash(PG_FUNCTION_ARGS)
{
	HashJoinState *join = makeNode(HashJoinState);
	HashJoinTable table = palloc0(sizeof(HashJoinTableData));
	HashMemoryChunk chunk = palloc0(HASH_CHUNK_HEADER_SIZE + 1024);
	MinimalTuple rows[3];
	Seen		seen = {0};

	for (int i = 0; i < 3; i++)
	{
		HashJoinTuple tuple = (HashJoinTuple) (HASH_CHUNK_DATA(chunk) + chunk->used);

		rows[i] = HJTUPLE_MINTUPLE(tuple);
		rows[i]->t_len = SizeofMinimalTupleHeader + 1 + i;
		chunk->used += MAXALIGN(HJTUPLE_OVERHEAD + rows[i]->t_len);
	}
	table->nbatch = 1;
	table->chunks = chunk;
	table->totalTuples = 3;
	join->hj_HashTable = table;

#define EXPECT(readable, complete) \
	if (rf_core_hash_is_readable(join, 3) != (readable) || \
		rf_core_hash_read(join, count_row, &seen) != (complete)) \
		elog(ERROR, "line %d", __LINE__)

	EXPECT(true, true);
	if (seen.rows != 3 || seen.bytes != 3 * SizeofMinimalTupleHeader + 6)
		elog(ERROR, "other rows were read");
	table->totalTuples = 2;
	EXPECT(true, false);
	table->totalTuples = 4;
	EXPECT(false, false);
	table->totalTuples = 3;
	rows[1]->t_len = 0;
	EXPECT(true, false);
	rows[1]->t_len = 2000;
	EXPECT(true, false);
	rows[1]->t_len = SizeofMinimalTupleHeader + 2 + 24;
	EXPECT(true, false);
	rows[1]->t_len = SizeofMinimalTupleHeader + 2;
	chunk->used -= MAXIMUM_ALIGNOF;
	EXPECT(true, false);
	chunk->used += MAXIMUM_ALIGNOF;
	EXPECT(true, true);
	table->nbatch = 2;
	EXPECT(false, true);
	table->nbatch = 1;
	table->skewEnabled = true;
	EXPECT(false, true);
	join->hj_HashTable = NULL;
	if (rf_core_hash_is_readable(join, 3))
		elog(ERROR, "a table that is not there is readable");
	PG_RETURN_VOID();
}
