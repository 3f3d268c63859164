/*-------------------------------------------------------------------------
 *
 * failure.c
 *	  Expressions by which a user notices whether they were computed.
 *
 * In "(x <> 0 AND k = 10 / x) OR k = 5" core computes the division only where x is not
 * 0.  A gate computes values whatever stands beside them, so such a clause is not asked,
 * unless its values raise no error, or raise it in any case.
 *
 * (Core computes a value outside of OR for each row, or before an index scan.  So gates do,
 * too.)
 *
 * Where rows are hidden, a gate decides whether the user's other conditions are computed for
 * the visible rows of its member.  An error or a notice from there would reveal
 * whether the index's filter has a key, perhaps that of a hidden row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/clauses.h"
#include "parser/parsetree.h"
#include "planner/condition/parameter.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/*
 * May the function's result change between planning and execution in a way that decides
 * whether there is an error?  Not if it depends on its arguments only, or on the clock and
 * the time zone.
 */
static bool
depends_on_state(Oid function, void *context)
{
	switch (function)
	{
		case F_NOW:
		case F_TRANSACTION_TIMESTAMP:
		case F_STATEMENT_TIMESTAMP:
		case F_TIMESTAMPTZ_PL_INTERVAL:
		case F_TIMESTAMPTZ_MI_INTERVAL:
		case F_DATE_TIMESTAMPTZ:
		case F_TIMESTAMP_TIMESTAMPTZ:
			return false;
		default:
			return func_volatile(function) != PROVOLATILE_IMMUTABLE;
	}
}

/*
 * Does an error depend on what is not known when the query is planned?  True also of kinds of
 * expressions that core does not compute when it plans.
 */
static bool
varies(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_SQLValueFunction:
			return ((SQLValueFunction *) node)->op > SVFOP_LOCALTIMESTAMP_N;
		case T_List:
		case T_Const:
		case T_FuncExpr:
		case T_OpExpr:
		case T_ArrayExpr:
		case T_RelabelType:
		case T_CoerceViaIO:
			break;
		default:
			return true;
	}
	return check_functions_in_node(node, depends_on_state, context) ||
		expression_tree_walker(node, varies, context);
}

/*
 * Is a parameter the result of a subquery of this query or one around it?  That may not have
 * run yet, and fail.
 */
static bool
is_initplan_output(const PlannerInfo *root, const Param *param)
{
	ListCell   *cell;

	if (param->paramkind != PARAM_EXEC)
		return false;
	for (; root != NULL; root = root->parent_root)
	{
		foreach(cell, root->init_plans)
		{
			if (list_member_int(lfirst_node(SubPlan, cell)->setParam, param->paramid))
				return true;
		}
	}
	return false;
}

/*
 * Does computing a value, which is not volatile and has no subplans, raise no error, or if so,
 * whatever parameters and settings are?
 */
bool
rf_cannot_fail(const PlannerInfo *root, Node *node)
{
	ListCell   *cell;

	switch (nodeTag(node))
	{
		case T_Param:
			return !is_initplan_output(root, (Param *) node);
		case T_Var:
			return true;
		case T_RelabelType:
			return rf_cannot_fail(root, (Node *) ((RelabelType *) node)->arg);
		case T_FuncExpr:
			return !varies(node, NULL) ||
				(get_func_leakproof(((FuncExpr *) node)->funcid) &&
				 list_length(((FuncExpr *) node)->args) == 1 &&
				 rf_cannot_fail(root, linitial(((FuncExpr *) node)->args)));
		case T_ArrayExpr:
			if (((ArrayExpr *) node)->multidims)
				return false;
			foreach(cell, ((ArrayExpr *) node)->elements)
			{
				if (!rf_cannot_fail(root, lfirst(cell)))
					return false;
			}
			return true;
		default:
			return !varies(node, NULL);
	}
}

/*
 * check_functions_in_node() callback: is the function not leakproof?
 */
static bool
is_not_leakproof(Oid function, void *context)
{
	return !get_func_leakproof(function);
}

/*
 * May a user notice that an expression was computed?  By a function that is not leakproof, by a
 * subquery, or because it is of a kind that may raise an error without a function, or of one that
 * is not known here.
 * Without a root (context), parameters that the plan sets count as subqueries.
 */
static bool
is_leaky(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Param:
			return context != NULL ? is_initplan_output(context, (Param *) node) :
				((Param *) node)->paramkind == PARAM_EXEC;
		case T_ArrayExpr:
			if (((ArrayExpr *) node)->multidims)
				return true;
			break;
		case T_List:
		case T_TargetEntry:
		case T_PlaceHolderVar:
		case T_Const:
		case T_Var:
		case T_FuncExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_BoolExpr:
		case T_RelabelType:
		case T_CoerceViaIO:
		case T_ArrayCoerceExpr:
		case T_CollateExpr:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_RowExpr:
		case T_RowCompareExpr:
		case T_CoalesceExpr:
		case T_FieldSelect:
		case T_NamedArgExpr:
		case T_SQLValueFunction:
		case T_NullTest:
		case T_BooleanTest:
			break;
		default:
			return true;
	}
	return check_functions_in_node(node, is_not_leakproof, NULL) ||
		expression_tree_walker(node, is_leaky, context);
}

/*
 * May one of these conditions, which are a list under AND or a single one, be pushed down below a
 * security barrier, although a user notices whether it is computed?  Core pushes down what passes
 * no column to functions that are not leakproof.
 */
static bool
has_leaky_condition(PlannerInfo *root, Node *conditions)
{
	List	   *list = conditions == NULL || IsA(conditions, List) ? (List *) conditions :
	list_make1(conditions);
	ListCell   *cell;

	foreach(cell, list)
	{
		if (!contain_leaked_vars(lfirst(cell)) && is_leaky(lfirst(cell), root))
			return true;
	}
	return false;
}

/*
 * The same of all conditions of a query's joins.
 */
static bool
joins_are_leaky(PlannerInfo *root, Node *join)
{
	if (IsA(join, FromExpr))
	{
		ListCell   *cell;

		foreach(cell, ((FromExpr *) join)->fromlist)
		{
			if (joins_are_leaky(root, lfirst(cell)))
				return true;
		}
		return has_leaky_condition(root, ((FromExpr *) join)->quals);
	}
	return IsA(join, JoinExpr) &&
		(has_leaky_condition(root, ((JoinExpr *) join)->quals) ||
		 joins_are_leaky(root, ((JoinExpr *) join)->larg) ||
		 joins_are_leaky(root, ((JoinExpr *) join)->rarg));
}

/*
 * Does nobody notice whether an expression is computed? All its functions are leakproof, and it
 * runs no subquery. root may be NULL: then parameters that the plan sets count as subqueries.
 */
bool
rf_expression_is_leakproof(PlannerInfo *root, Node *node)
{
	return !is_leaky(node, root);
}

/*
 * The same of the scan of a relation with these restrictions, but for those of policies, and of
 * what the queries around it may have pushed down.
 */
bool
rf_scan_is_leakproof(PlannerInfo *root, const RelOptInfo *rel, List *restrictions)
{
	ListCell   *cell;

	/*
	 * Each scan that is started computes the arguments of TABLESAMPLE, and
	 * the sampling method raises an error if they do not suit it.
	 */
	if (planner_rt_fetch(rel->relid, root)->tablesample != NULL)
		return false;

	foreach(cell, restrictions)
	{
		RestrictInfo *restriction = lfirst_node(RestrictInfo, cell);

		if (restriction->security_level > 0 && is_leaky((Node *) restriction->clause, root))
			return false;
	}

	/*
	 * Below a barrier, conditions that were pushed down look like those of
	 * the view.
	 */
	while ((root = root->parent_root) != NULL)
	{
		if (joins_are_leaky(root, (Node *) root->parse->jointree))
			return false;
	}
	return true;
}
