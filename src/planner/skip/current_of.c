/*-------------------------------------------------------------------------
 *
 * current_of.c
 *	  UPDATE and DELETE ... WHERE CURRENT OF a cursor that skips partitions.
 *
 * The statement has a scan of each partition.  For each, core looks up the partition in the
 * cursor's plan, or among the tables that the cursor locks rows of.  It finds out whether the cursor
 * is on a row of the partition, and raises an error if the cursor does not read the partition.
 * A skipped partition is one that the cursor does not read.  The cursor is on no row of it, so
 * its scan has no row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/partition.h"
#include "catalog/pg_type.h"
#include "core/core.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "planner/skip/skip.h"
#include "utils/builtins.h"
#include "utils/portal.h"
#include "utils/rel.h"

/*
 * Returns the name of the cursor, NULL if it is a parameter without a value.  As where
 * core takes it from the parameter, the hook may provide the value.
 */
static const char *
cursor_name(const TidScanState * scan, const CurrentOfExpr *cursor)
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
 * Returns true if the executor has opened a table, which it has if it reads the table.
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
 * Returns true if the scan's table is a partition that the cursor has skipped.  Raises core's
 * error if it is one, but the cursor is on no row at all.
 */
static bool
is_skipped_by_cursor(TidScanState * scan, CurrentOfExpr *cursor)
{
	Relation	relation = scan->ss.ss_currentRelation;
	const char *name = cursor_name(scan, cursor);
	Portal		portal = name != NULL ? GetPortalByName(name) : NULL;
	QueryDesc  *desc;
	RfGuard		guard;

	if (!relation->rd_rel->relispartition || !PortalIsValid(portal) ||
		portal->strategy != PORTAL_ONE_SELECT)
		return false;
	desc = portal->queryDesc;
	if (desc == NULL || desc->estate == NULL || !rf_find_guard(desc->plannedstmt, &guard) ||
		has_opened(desc->estate, RelationGetRelid(relation)) ||
		!rf_skips_below(&guard, get_partition_ancestors(RelationGetRelid(relation))))
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
