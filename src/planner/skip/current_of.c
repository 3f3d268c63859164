/*-------------------------------------------------------------------------
 *
 * current_of.c
 *	  UPDATE and DELETE ... WHERE CURRENT OF a cursor that skips partitions.
 *
 * The statement has a scan of each partition.  For each, core looks up the partition among the
 * scans at the top of the cursor's plan, or among the tables that the cursor locks rows of.  So it
 * finds out whether the cursor is on a row of the partition.  If the partition is not there, core
 * raises an error.  A skipped partition is not there, and the cursor is on no row of it.  So its
 * scan has no row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/partition.h"
#include "catalog/pg_type.h"
#include "core/core.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "planner/planning/planning.h"
#include "planner/skip/skip.h"
#include "utils/builtins.h"
#include "utils/portal.h"
#include "utils/rel.h"

/*
 * Returns the name of the cursor, NULL if it is a parameter without a value.  As where
 * core takes it from the parameter, the hook may provide the value.
 */
static const char *
cursor_name(const TidScanState *scan, const CurrentOfExpr *cursor)
{
	ParamListInfo params = scan->ss.ps.state->es_param_list_info;
	const		ParamExternData *param;
	ParamExternData workspace;

	if (cursor->cursor_name != NULL)
		return cursor->cursor_name;
	if (params == NULL || cursor->cursor_param < 1 || cursor->cursor_param > params->numParams)
		return NULL;
	param = params->paramFetch != NULL ?
		params->paramFetch(params, cursor->cursor_param, false, &workspace) :
		&params->params[cursor->cursor_param - 1];
	return param->ptype == REFCURSOROID && !param->isnull ?
		TextDatumGetCString(param->value) : NULL;
}

/*
 * Returns the tables (OIDs) whose scans core finds in a cursor's plan: those whose row may be that
 * of the node.
 */
static List *
find_scans(PlanState *node)
{
	Index		rti;
	List	   *found = NIL;

	if (node == NULL)
		return NIL;
	switch (nodeTag(node))
	{
		case T_AppendState:
			for (int i = 0; i < ((AppendState *) node)->as_nplans; i++)
				found = list_concat(found, find_scans(((AppendState *) node)->appendplans[i]));
			return found;
		case T_ResultState:
		case T_LimitState:
			return find_scans(outerPlanState(node));
		case T_SubqueryScanState:
			return find_scans(((SubqueryScanState *) node)->subplan);
		case T_ForeignScanState:
		case T_CustomScanState:
			rti = ((Scan *) node->plan)->scanrelid;
			break;
		default:
			rti = rf_scanned_table(node->plan);
			break;
	}
	return rti > 0 ? list_make1_oid(exec_rt_fetch(rti, node->state)->relid) : NIL;
}

/*
 * Returns the tables (OIDs) of which a cursor that is FOR UPDATE or the like locks rows.
 */
static List *
find_row_marks(const EState *estate)
{
	List	   *found = NIL;

	for (Index i = 0; i < estate->es_range_table_size; i++)
	{
		const ExecRowMark *mark = estate->es_rowmarks[i];

		if (mark != NULL && RowMarkRequiresRowShareLock(mark->markType))
			found = lappend_oid(found, mark->relid);
	}
	return found;
}

/*
 * Returns true if the executor has opened a table, which it has if it reads the table anywhere.
 */
static bool
has_opened(const EState *estate, Oid table)
{
	for (Index i = 0; i < estate->es_range_table_size; i++)
	{
		Relation	relation = estate->es_relations[i];

		if (relation != NULL && RelationGetRelid(relation) == table)
			return true;
	}
	return false;
}

/*
 * Returns true if one of the tables is a partition of top, at any level.
 */
static bool
has_partition(const List *tables, Oid top)
{
	ListCell   *cell;

	foreach(cell, tables)
	{
		if (list_member_oid(get_partition_ancestors(lfirst_oid(cell)), top))
			return true;
	}
	return false;
}

/*
 * Returns true if a partition was skipped where core would look for it in a cursor's plan.  If the
 * cursor reads the partition elsewhere (in a subquery, or below a sort), it must be there that
 * other partitions of the same table are found.
 */
static bool
has_skipped(QueryDesc *desc, Oid partition)
{
	EState	   *estate = desc->estate;
	List	   *found;
	RfGuard		guard;
	Oid			top;

	if (!rf_find_guard(desc->plannedstmt, &guard))
		return false;
	found = estate->es_rowmarks != NULL ? find_row_marks(estate) : find_scans(desc->planstate);
	if (found == NIL || list_member_oid(found, partition))
		return false;
	top = rf_skipped_below(&guard, get_partition_ancestors(partition));
	return OidIsValid(top) &&
		(!has_opened(estate, partition) || has_partition(found, top));
}

/*
 * Returns true if the scan's table is a partition that the cursor has skipped.  Raises core's
 * error if it is one, but the cursor is on no row at all.
 */
static bool
is_skipped_by_cursor(TidScanState *scan, CurrentOfExpr *cursor)
{
	Relation	relation = scan->ss.ss_currentRelation;
	const char *name = cursor_name(scan, cursor);
	Portal		portal = name != NULL ? GetPortalByName(name) : NULL;

	if (!relation->rd_rel->relispartition || !PortalIsValid(portal) ||
		portal->strategy != PORTAL_ONE_SELECT || portal->queryDesc == NULL ||
		portal->queryDesc->estate == NULL ||
		!has_skipped(portal->queryDesc, RelationGetRelid(relation)))
		return false;
	if (portal->atStart || portal->atEnd)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_CURSOR_STATE),
				 errmsg("cursor \"%s\" is not positioned on a row", name)));
	return true;
}

/*
 * Has the scans of WHERE CURRENT OF in a plan look for skipped partitions.
 */
static bool
watch_scans(PlanState *node, void *context)
{
	rf_core_watch_current_of(node, is_skipped_by_cursor);
	return planstate_tree_walker(node, watch_scans, context);
}

/*
 * A plan has been started that may be one of WHERE CURRENT OF.
 */
void
rf_current_of_started(QueryDesc *desc)
{
	if (desc->plannedstmt->resultRelations != NIL)
		(void) watch_scans(desc->planstate, NULL);
}
