/*-------------------------------------------------------------------------
 *
 * query.c
 *	  Recognizing the planning of a Query, of which the planner may have made copies.
 *
 * Since 19 a run of the planner tells extensions which Query it was given, and keeps
 * what they want to remember.  Until 18 the Query is marked.  What is expected of core
 * then: querySource matters to the parser and the rewriter only, and copyObject() keeps
 * it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "core/core.h"

#if RF_PLANNER_KEEPS_STATE

#include "optimizer/extendplan.h"

/*
 * Our place among what extensions remember of a run of the planner.
 */
static int
planner_place(void)
{
	static int	place = -1;

	if (place < 0)
		place = GetPlannerExtensionId("rangefilter");
	return place;
}

/*
 * Notes which Query a run of the planner was given.  To be called for each run, before
 * it plans.
 */
void
rf_core_note_query(PlannerGlobal *glob, Query *parse)
{
	SetPlannerGlobalExtensionState(glob, planner_place(), parse);
}

/*
 * Nothing is marked.
 */
QuerySource
rf_core_mark_query(Query *parse)
{
	return parse->querySource;
}

/*
 * Return true if the planner was given this Query in the run that root belongs to.
 */
bool
rf_core_plans_query(PlannerInfo *root, const Query *marked)
{
	return !RF_CORE_DOUBTS(RF_CORE_QUERY) &&
		GetPlannerGlobalExtensionState(root->glob, planner_place()) == marked;
}

#else							/* !RF_PLANNER_KEEPS_STATE */

/* A mark is this bit, which no QuerySource has, and a number. */
#define RF_QUERY_MARK	0x40000000
#define RF_QUERY_SERIAL	0x3fffffff

/*
 * Marks a Query as the one that is planned now.  Returns the field's old
 * value, to be put back.
 */
QuerySource
rf_core_mark_query(Query *parse)
{
	static uint32 serial = 0;
	QuerySource source = parse->querySource;

	if (RF_PLANNER_COPIES_QUERY)
		parse->querySource = (QuerySource) (RF_QUERY_MARK |
											(++serial & RF_QUERY_SERIAL));
	return source;
}

/*
 * Return true if root belongs to the planning of the marked Query, or of a copy of it.
 */
bool
rf_core_plans_query(PlannerInfo *root, const Query *marked)
{
	while (root->parent_root != NULL)
		root = root->parent_root;
	return !RF_CORE_DOUBTS(RF_CORE_QUERY) &&
		(root->parse == marked ||
		 (RF_PLANNER_COPIES_QUERY &&
		  root->parse->querySource == marked->querySource));
}

#endif							/* RF_PLANNER_KEEPS_STATE */
