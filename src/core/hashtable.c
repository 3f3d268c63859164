/*-------------------------------------------------------------------------
 *
 * hashtable.c
 *	  The rows of a hash join's table, read from its memory.
 *
 * What is expected of core: dense_alloc() in nodeHash.c puts the tuples of a table
 * into chunks, one behind the other, each at a MAXALIGNed offset and with a
 * HashJoinTupleData in front; a table of one batch without skew buckets has
 * totalTuples of them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "core/core.h"
#include "executor/hashjoin.h"
#include "miscadmin.h"

/*
 * Makes a hash join build its table before it asks its outer side for a row.
 * Core asks for one row first, to find out whether there is any, unless it
 * knows from the last scan that there is one.  To be called before each scan
 * of the outer side.
 */
void
rf_core_hash_before_outer(HashJoinState *join)
{
	join->hj_OuterNotEmpty = true;
}

/*
 * Return true if the join's table is complete and in this process's memory, with at most
 * max_rows rows.
 */
bool
rf_core_hash_is_readable(const HashJoinState *join, double max_rows)
{
	HashJoinTable table = join->hj_HashTable;

	return !RF_CORE_DOUBTS(RF_CORE_HASH) &&
		table != NULL && table->nbatch == 1 && !table->skewEnabled &&
		table->parallel_state == NULL && table->totalTuples <= max_rows;
}

/*
 * Calls back for each row of a readable table.  False if the number of rows
 * found is not the number in the table's header: then the rows must not be
 * relied on.
 */
bool
rf_core_hash_read(const HashJoinState *join, RfCoreRow callback, void *arg)
{
	HashJoinTable table = join->hj_HashTable;
	double		nrows = 0;

	for (HashMemoryChunk chunk = table->chunks; chunk != NULL;
		 chunk = chunk->next.unshared)
	{
		Size		at = 0;

		CHECK_FOR_INTERRUPTS();
		while (at < chunk->used && nrows < table->totalTuples)
		{
			HashJoinTuple tuple = (HashJoinTuple) (HASH_CHUNK_DATA(chunk) + at);
			MinimalTuple row = HJTUPLE_MINTUPLE(tuple);

			if (row->t_len < SizeofMinimalTupleHeader ||
				at + HJTUPLE_OVERHEAD + row->t_len > chunk->used)
				return false;
			at += MAXALIGN(HJTUPLE_OVERHEAD + row->t_len);
			callback(arg, row);
			nrows++;
		}
		if (at < chunk->used)
			return false;
	}
	return nrows == table->totalTuples;
}
