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
#include "planner/planning/planning.h"

/* The innermost call under way; an error goes back to that of its catcher. */
RfPlanning *rf_planning = NULL;

/* Planning again after guards kept failing; after one has. */
bool		rf_suppress_skips = false;
bool		rf_suppress_cached_probes = false;

/*
 * Is this part of the planning of the Query we have a copy of?  Not where
 * somebody called standard_planner() past our planner_hook.  Nor where a hook
 * below ours plans in memory of its own: what is taken down here is needed until
 * ours returns, and that memory may be gone by then.
 *
 * Where the planner goes on with a copy of its own, that has the mark plan.c has
 * put into the Query.
 */
bool
rf_is_ours(PlannerInfo *root)
{
	if (root->planner_cxt != rf_planning->context)
		return false;
	while (root->parent_root != NULL)
		root = root->parent_root;
	return rf_core_is_marked(root->parse, rf_planning->parse);
}

/*
 * The outermost relation a member belongs to, by way of relations alone.
 */
Index
rf_outermost_relation(PlannerInfo *root, Index rti)
{
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
 * The plan that is being made will not be right before it is finished.  A mark
 * says so that is like no other: among the items that invalidate a plan, as one of
 * a catalog cache that there is not.
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
