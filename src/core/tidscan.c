/*-------------------------------------------------------------------------
 *
 * tidscan.c
 *	  The scan of UPDATE or DELETE ... WHERE CURRENT OF.
 *
 * What is expected of core: a plan node is run by the function in ExecProcNodeReal, which is
 * the same for all TidScans; a TidScan looks for the cursor's row when it is run without a list
 * of TIDs, and has such a list from then on.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "core/core.h"
#include "executor/executor.h"

static ExecProcNodeMtd exec_tid_scan = NULL;	/* core's */
static RfCoreNoRow has_no_row = NULL;

/*
 * ExecProcNode of such a scan: returns no row, or what core returns.
 */
static TupleTableSlot *
exec_current_of(PlanState *node)
{
	TidScanState *scan = castNode(TidScanState, node);

	if (scan->tss_TidList == NULL &&
		has_no_row(scan, linitial_node(CurrentOfExpr, ((TidScan *) node->plan)->tidquals)))
		return NULL;
	return exec_tid_scan(node);
}

/*
 * If the node is the scan of WHERE CURRENT OF, has it call no_row, always the same function,
 * each time before it looks for the cursor's row.
 */
void
rf_core_watch_current_of(PlanState *node, RfCoreNoRow no_row)
{
	if (!IsA(node, TidScanState) || !((TidScanState *) node)->tss_isCurrentOf ||
		(exec_tid_scan != NULL && exec_tid_scan != node->ExecProcNodeReal))
		return;
	exec_tid_scan = node->ExecProcNodeReal;
	has_no_row = no_row;
	ExecSetExecProcNode(node, exec_current_of);
}
