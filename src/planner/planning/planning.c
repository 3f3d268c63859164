/*-------------------------------------------------------------------------
 *
 * planning.c
 *	  The call of the planner that is under way.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "core/core.h"
#include "key/codec.h"
#include "planner/planning/planning.h"

/* The innermost call under way; an error goes back to that of its catcher. */
RfPlanning *rf_planning = NULL;

/*
 * Skip nothing: guards kept failing.  Ask no cached metapages: a guard failed.
 */
bool		rf_suppress_skips = false;
bool		rf_suppress_cached_probes = false;

/* Defer nothing: a query for a deferred scan is planned, whose values are known. */
bool		rf_suppress_deferring = false;

/*
 * Entries of tables are in use outside of planning, where functions may be
 * called that plan queries: a guard is being checked, or an entry is made or its
 * leaves are mapped.
 */
bool		rf_entries_in_use = false;

/*
 * Called when core has planned, or has failed to, or when the questions that are asked outside
 * of planning have been answered.
 */
void
rf_end_planning(const RfPlanning *planning)
{
	rf_planning = planning->outer;
	if (rf_planning == NULL)
		rf_forget_lists();
}

/*
 * Is this part of the planning that rf_planning describes?  Not if somebody
 * called standard_planner() past our planner_hook.  Not if a hook below ours
 * plans in a memory context of its own either: what we remember is needed
 * until our hook returns, and that memory may be gone by then.
 */
bool
rf_is_ours(PlannerInfo *root)
{
	return root->planner_cxt == rf_planning->context &&
		rf_core_plans_query(root, rf_planning->parse);
}

/*
 * The outermost relation that a member belongs to, going up through relations
 * only.
 */
Index
rf_outermost_relation(PlannerInfo *root, Index rti)
{
	Assert(rti < (Index) root->simple_rel_array_size);
	for (;;)
	{
		AppendRelInfo *appinfo = root->append_rel_array ?
		root->append_rel_array[rti] : NULL;

		if (appinfo == NULL ||
			root->simple_rte_array[appinfo->parent_relid]->rtekind !=
			RTE_RELATION)
			return rti;
		rti = appinfo->parent_relid;
	}
}

/*
 * Returns the range table index of the table that a plan node scans by one of core's own scans, or
 * 0 for other nodes.
 */
Index
rf_scanned_table(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
			return ((const Scan *) plan)->scanrelid;
		default:
			return 0;
	}
}

/*
 * Marks the plan that is being made as not right before it is finished.  The
 * mark is a random number, in an invalidation item of a catalog cache that
 * does not exist.
 */
void
rf_mark_plan(PlannerInfo *root)
{
	PlanInvalItem *item;

	if (rf_planning->marked == root->glob)
		return;
	if (rf_planning->mark == 0)
		rf_planning->mark = pg_prng_uint32(&pg_global_prng_state) | 1;
	rf_planning->marked = root->glob;
	item = makeNode(PlanInvalItem);
	item->cacheId = RF_MARK_CACHE;
	item->hashValue = rf_planning->mark;
	root->glob->invalItems = lappend(root->glob->invalItems, item);
}
