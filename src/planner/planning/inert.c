/*-------------------------------------------------------------------------
 *
 * inert.c
 *	  CustomScans that a plan carries along and nobody runs; what is in their lists.
 *
 * The executor starts and ends all subplans of a plan, but nobody asks these for
 * rows.
 *
 * What a CustomScan says is a List, which copyObject() and what sends plans to workers
 * know.  Each kind has a struct with the fields' names, an enum of their places,
 * one function that makes the list and one that reads it, side by side.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "planner/planning/planning.h"

/*
 * BeginCustomScan: there is nothing to start.
 */
void
rf_inert_begin(CustomScanState *node, EState *estate, int eflags)
{
}

/*
 * ExecCustomScan: nobody asks such a node for rows.
 */
TupleTableSlot *
rf_inert_exec(CustomScanState *node)
{
	elog(ERROR, "a node that only carries data cannot be executed");
	return NULL;				/* keep compiler quiet */
}

/*
 * EndCustomScan: there is nothing to end.
 */
void
rf_inert_end(CustomScanState *node)
{
}

/*
 * ReScanCustomScan: there is nothing to begin anew.
 */
void
rf_inert_rescan(CustomScanState *node)
{
}

/*
 * A list of fields, by the enum of their places.
 */
List *
rf_list_fields(Node *const *fields, int n)
{
	List	   *list = NIL;

	for (int i = 0; i < n; i++)
		list = lappend(list, fields[i]);
	return list;
}
