/*-------------------------------------------------------------------------
 *
 * relation.c
 *	  The indexes of a relation, when the planner looks it up.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "key/rowkey.h"
#include "planner/condition/condition.h"
#include "planner/deferred/deferred.h"
#include "planner/estimate/estimate.h"
#include "planner/gate/gate.h"
#include "planner/hooks.h"
#include "planner/knowledge/knowledge.h"
#include "planner/planning/planning.h"
#include "planner/skip/skip.h"
#include "rangefilter/rangefilter.h"
#include "wormhole/am/wormhole.h"

/*
 * Is this a rangefilter index that the planner must not scan: because
 * rangefilter.enable is off, because the index has no places, or because the
 * scan would reveal hidden rows?
 */
static bool
is_scanless(PlannerInfo *root, const IndexOptInfo *index)
{
	Relation	relation;
	bool		scanless;

	if (index->amcostestimate != rf_costestimate)
		return false;
	if (!rf_enable || rf_is_secured(root, index->rel->relid))
		return true;
	relation = index_open(index->indexoid, NoLock);
	scanless = !rf_has_places(relation);
	index_close(relation, NoLock);
	return scanless;
}

/*
 * Describes a rangefilter index; NULL for other indexes, and for those that
 * cannot be asked.
 */
static RfRelIndex *
describe_index(const IndexOptInfo *info)
{
	RfRelIndex *index;
	ListCell   *expr = list_head(info->indexprs);

	if (info->amcostestimate != rf_costestimate ||
		info->nkeycolumns > RF_MAX_COLUMNS)
		return NULL;
	index = palloc0(offsetof(RfRelIndex, columns) +
					info->nkeycolumns * sizeof(RfIndexColumn));
	index->oid = info->indexoid;
	index->varno = info->rel->relid;
	index->predicate = copyObject(info->indpred);
	index->ncolumns = info->nkeycolumns;
	for (int c = 0; c < index->ncolumns; c++)
	{
		RfIndexColumn *column = &index->columns[c];

		column->attno = info->indexkeys[c];
		if (column->attno == 0)
		{
			column->expr = copyObject(rf_strip_relabel(lfirst(expr)));
			expr = lnext(info->indexprs, expr);
		}
		if (column->attno < 0 ||
			!rf_describe_key(column, info->opfamily[c], info->opcintype[c],
							 info->indexcollations[c]))
			return NULL;
	}
	return index;
}

/*
 * Remembers a relation's rangefilter indexes for gates and estimates, before
 * they are removed from the planner's list.
 */
static void
note_indexes(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *indexes = NIL;
	ListCell   *cell;

	foreach(cell, rel->indexlist)
	{
		RfRelIndex *index = describe_index(lfirst_node(IndexOptInfo, cell));

		if (index != NULL)
			indexes = lappend(indexes, index);
	}
	if (indexes == NIL || !rf_is_ours(root))
		return;
	if (rel->reloptkind == RELOPT_OTHER_MEMBER_REL)
		rf_gate_note_indexes(root, rel, indexes);
	if (!root->simple_rte_array[rel->relid]->inh)
		rf_estimate_note(root, rel, indexes);
}

/*
 * Removes rangefilter indexes without scans from the planner's list.  Those on
 * expressions stay, because they have statistics.  Also removes wormhole
 * indexes that cannot be used: scans of them would raise errors.
 */
static void
drop_useless_indexes(PlannerInfo *root, RelOptInfo *rel)
{
	ListCell   *cell;

	foreach(cell, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, cell);
		bool		scanless = is_scanless(root, index);

		if (scanless)
			index->amhasgetbitmap = false;
		if ((scanless && index->indexprs == NIL) || wh_is_unusable(index))
			rel->indexlist = foreach_delete_current(rel->indexlist, cell);
	}
}

/*
 * A table has been looked up.  Defers the table whose first member it is, or
 * remembers its rangefilter indexes, removes those of no use from the planner's list, and
 * leaves members out of the plan.
 */
void
rf_relation_info(PlannerInfo *root, RelOptInfo *rel)
{
	bool		is_template = false;
	bool		asked = false;

	if (rf_planning != NULL)
	{
		is_template = rf_defer_members(root, rel, &asked);
		if (!is_template)
			note_indexes(root, rel);
	}
	drop_useless_indexes(root, rel);
	if (rf_planning != NULL && !is_template && !asked)
		(void) rf_skip_members(root, rel, INT_MAX);
}
