/*-------------------------------------------------------------------------
 *
 * inert.c
 *	  Methods of CustomScans that a plan carries along and nobody runs.
 *
 * The executor starts and ends all subplans of a plan, but nobody asks these for
 * rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "planner/planning/planning.h"

void
rf_inert_begin(CustomScanState *node, EState *estate, int eflags)
{
}

TupleTableSlot *
rf_inert_exec(CustomScanState *node)
{
	elog(ERROR, "a node that only carries data cannot be executed");
	return NULL;				/* keep compiler quiet */
}

void
rf_inert_end(CustomScanState *node)
{
}

void
rf_inert_rescan(CustomScanState *node)
{
}
