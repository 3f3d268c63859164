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
 * instrumented, and not below one of which EXPLAIN shows the buffers.
 *
 * Nothing is hidden from a user who may read the whole table directly.  That
 * depends on the role, so the plan does, too.
 *
 * Core checks privileges when a query starts, after planning.  So a user without them
 * could plan, and see in the server's statistics which indexes were asked.  For
 * such a user all rows are hidden.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "compat.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "planner/planning/planning.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rls.h"

/*
 * Is there a policy or a barrier in a query above this one?  It is not known here to which
 * subquery of that query this one belongs, so any counts.
 */
static bool
is_below_barrier(PlannerInfo *root)
{
	while ((root = root->parent_root) != NULL)
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
 * May the current user read all rows and columns of a table, and name it?
 */
static bool
may_read_all(Oid table)
{
	return RF_MAY_USE_SCHEMA(get_rel_namespace(table), GetUserId()) &&
		pg_class_aclcheck(table, GetUserId(), ACL_SELECT) == ACLCHECK_OK &&
		check_enable_rls(table, InvalidOid, true) != RLS_ENABLED;
}

/*
 * Will the query be allowed to read the columns of a table that it reads?  One that reads none, as
 * count(*) under a policy, needs the right to read any of them, as in core.
 */
static bool
may_read(PlannerInfo *root, RangeTblEntry *rte)
{
	Oid			user = InvalidOid;
	Bitmapset  *columns = NULL;
	int			i = -1;

	if (rte->rtekind != RTE_RELATION ||
		!rf_required_columns(root->parse, rte, &user, &columns))
		return true;
	if (!OidIsValid(user))
		user = GetUserId();
	if (pg_class_aclcheck(rte->relid, user, ACL_SELECT) == ACLCHECK_OK)
		return true;
	if (columns == NULL)
		return pg_attribute_aclcheck_all(rte->relid, user, ACL_SELECT,
										 ACLMASK_ANY) == ACLCHECK_OK;
	while ((i = bms_next_member(columns, i)) >= 0)
	{
		AttrNumber	attno = i + FirstLowInvalidHeapAttributeNumber;

		if ((attno == InvalidAttrNumber ?
			 pg_attribute_aclcheck_all(rte->relid, user, ACL_SELECT, ACLMASK_ALL) :
			 pg_attribute_aclcheck(rte->relid, attno, user, ACL_SELECT)) != ACLCHECK_OK)
			return false;
	}
	return true;
}

/*
 * Computes what rf_is_secured() returns, for a relation that is no member: rows are hidden
 * by a policy on the relation, or by what stands above the query.  Marks the plan as depending
 * on the role where the answer does.
 */
static bool
judge(PlannerInfo *root, Index rti)
{
	RangeTblEntry *rte = root->simple_rte_array[rti];
	bool		readable = may_read(root, rte);

	if (readable && rte->securityQuals == NIL && !is_below_barrier(root))
		return false;
	root->glob->dependsOnRole = true;
	return !readable || !may_read_all(rte->relid);
}

/*
 * Does the query hide rows of a table, or may it?  For a member, the answer is
 * that for its table.  To be called while the query is planned.  Keeps the
 * answer for the last table of ours, since its members ask one after the other.
 */
bool
rf_is_secured(PlannerInfo *root, Index rti)
{
	rti = rf_outermost_relation(root, rti);
	if (rf_planning == NULL)
		return judge(root, rti);
	if (rf_planning->judged_root != root || rf_planning->judged_rti != rti)
	{
		rf_planning->secured = judge(root, rti);
		rf_planning->judged_root = rf_is_ours(root) ? root : NULL;
		rf_planning->judged_rti = rti;
	}
	return rf_planning->secured;
}

static bool reads_hidden(PlannerInfo *root, Query *query);

/*
 * Does an entry of a query's range table read a table that the current user may not read whole?
 * root is the query's planning, or NULL.  Members of a table are not asked: a query whose sublinks
 * are being planned has none yet, and an entry that it got later is none.
 */
static bool
entry_reads_hidden(PlannerInfo *root, Query *query, Index rti)
{
	const RangeTblEntry *rte = rt_fetch(rti, query->rtable);

	if (rte->rtekind == RTE_SUBQUERY)
		return rte->subquery != NULL && reads_hidden(NULL, rte->subquery);
	return rte->rtekind == RTE_RELATION &&
		(root == NULL || rti >= (Index) root->simple_rel_array_size ||
		 rf_outermost_relation(root, rti) == rti) &&
		!may_read_all(rte->relid);
}

/*
 * Adds the external parameters of a query or expression to those of the planning, each once:
 * there may be tens of thousands.
 */
static bool
add_external_params(Node *node, void *context)
{
	RfPlanning *planning = context;
	const Param *param = (const Param *) node;

	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, add_external_params, context, 0);
	if (IsA(node, Param) && param->paramkind == PARAM_EXTERN &&
		!bms_is_member(param->paramid, planning->external_numbers))
	{
		planning->external_numbers = bms_add_member(planning->external_numbers, param->paramid);
		planning->external_params = lappend(planning->external_params, node);
	}
	return expression_tree_walker(node, add_external_params, context);
}

/*
 * The external parameters of the query that is being planned.  If one of them cannot be given
 * when the plan runs, such as the field of a PL/pgSQL record without a value, a condition with it
 * raises an error, which would tell whether a member with hidden rows was scanned.  So gates
 * above hidden rows stay open then.
 */
List *
rf_external_params(RfPlanning *planning)
{
	Query	   *query = planning->saved != NULL ? planning->saved : planning->parse;

	if (!planning->has_external_params)
	{
		MemoryContext old = MemoryContextSwitchTo(planning->context);

		(void) add_external_params((Node *) query, planning);
		planning->has_external_params = true;
		MemoryContextSwitchTo(old);
	}
	return planning->external_params;
}

/*
 * Does a sublink of an expression read such a table?
 */
static bool
sublink_reads_hidden(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return reads_hidden(NULL, (Query *) node);
	return expression_tree_walker(node, sublink_reads_hidden, context);
}

/*
 * The same of all entries, and of the query's CTEs, and of the sublinks that have not been
 * planned: those that have are subplans now.
 */
static bool
reads_hidden(PlannerInfo *root, Query *query)
{
	ListCell   *cell;

	check_stack_depth();
	for (int rti = 1; rti <= list_length(query->rtable); rti++)
	{
		if (entry_reads_hidden(root, query, rti))
			return true;
	}
	foreach(cell, query->cteList)
	{
		Node	   *cte = lfirst_node(CommonTableExpr, cell)->ctequery;

		if (IsA(cte, Query) && reads_hidden(NULL, (Query *) cte))
			return true;
	}
	return query->hasSubLinks &&
		query_tree_walker(query, sublink_reads_hidden, NULL, QTW_IGNORE_RC_SUBQUERIES);
}

/*
 * The same of a query, those around it, and all subqueries of the statement that were planned so
 * far: their results may be compared.
 */
static bool
may_compare_hidden(PlannerInfo *root)
{
	ListCell   *cell;

	foreach(cell, root->glob->subroots)
	{
		PlannerInfo *subroot = lfirst_node(PlannerInfo, cell);

		if (reads_hidden(subroot, subroot->parse))
			return true;
	}
	for (; root != NULL; root = root->parent_root)
	{
		if (reads_hidden(root, root->parse))
			return true;
	}
	return false;
}

/*
 * May values that a query's joins and subqueries compare be of rows that are hidden from the
 * user?  They may in a policy's subquery, and behind a security barrier.  Then gates that ask for
 * them must not be seen to close, whatever table they are over.  Keeps the answer for the last
 * query.  To be called while the query is planned: set_plan_references() changes the numbers in
 * AppendRelInfos.
 */
bool
rf_has_hidden_values(PlannerInfo *root)
{
	if (rf_planning->values_root != root)
	{
		bool		below = is_below_barrier(root);

		root->glob->dependsOnRole |= below;
		rf_planning->hidden_values = below && may_compare_hidden(root);
		rf_planning->values_root = root;
	}
	return rf_planning->hidden_values;
}
