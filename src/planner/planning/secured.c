/*-------------------------------------------------------------------------
 *
 * secured.c
 *	  From which tables a query hides rows, so that plans must not reveal them.
 *
 * Core's rewriter puts row-level security policies on the table's entry in the
 * range table, for the user as whom the entry is checked.  A view that is a
 * security barrier stays a subquery above its tables.  (The exception is a
 * UNION ALL of plain tables, which hides no row.)
 *
 * For a table in such a place nothing may be planned by its summaries (R6 in
 * ARCHITECTURE.md): no partition is skipped, no key counted, no bitmap scan
 * offered, no cost changed.  Its gates close only in queries that are not
 * instrumented.
 *
 * Nothing is hidden from a user who may read the whole table directly.  That
 * depends on the role, so the plan does, too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "planner/planning/planning.h"
#include "utils/acl.h"
#include "utils/rls.h"

/*
 * Is there, or may there be, a policy or a security barrier between the query
 * and a table?  It is not known here to which subquery of a query above this
 * one belongs.  So any barrier and any policy there counts.
 */
static bool
is_behind_barrier(PlannerInfo *root, Index rti)
{
	if (root->simple_rte_array[rti]->securityQuals != NIL)
		return true;
	for (root = root->parent_root; root != NULL; root = root->parent_root)
	{
		ListCell   *cell;

		foreach(cell, root->parse->rtable)
		{
			const RangeTblEntry *rte = lfirst_node(RangeTblEntry, cell);

			if (rte->security_barrier || rte->securityQuals != NIL)
				return true;
		}
	}
	return false;
}

/*
 * May the current user read all rows and columns of a table?
 */
static bool
may_read_all(Oid table)
{
	return pg_class_aclcheck(table, GetUserId(), ACL_SELECT) == ACLCHECK_OK &&
		check_enable_rls(table, InvalidOid, true) != RLS_ENABLED;
}

static bool
judge(PlannerInfo *root, Index rti)
{
	if (!is_behind_barrier(root, rti))
		return false;
	root->glob->dependsOnRole = true;
	return !may_read_all(root->simple_rte_array[rti]->relid);
}

/*
 * Does the query hide rows of a table, or may it?  For a member, the answer is
 * that for its table.  To be called while the query is planned.  Keeps the
 * answer for the last table, since its members ask one after the other.
 */
bool
rf_is_secured(PlannerInfo *root, Index rti)
{
	rti = rf_outermost_relation(root, rti);
	if (rf_planning == NULL || !rf_is_ours(root))
		return judge(root, rti);
	if (rf_planning->judged_root != root || rf_planning->judged_rti != rti)
	{
		rf_planning->secured = judge(root, rti);
		rf_planning->judged_root = root;
		rf_planning->judged_rti = rti;
	}
	return rf_planning->secured;
}
