/*-------------------------------------------------------------------------
 *
 * deferred_plan.c
 *	  From the path of a deferred table to its plan.
 *
 * The plan carries a Query on the partitioned table alone.  It has the conditions of the
 * scan, with external parameters in the places of what other relations, subqueries
 * and the caller supply.  How to compute these is in custom_exprs, where the planner puts
 * the references to other nodes.  Conditions with subqueries or volatile functions are
 * not in the Query: the scan checks them itself.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/value.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "planner/condition/condition.h"
#include "planner/deferred/deferred.h"

const CustomScanMethods rf_deferred_methods = {
	.CustomName = "Range Filter Scan",
	.CreateCustomScanState = rf_create_deferred_state
};

const CustomScanMethods rf_placeholder_methods = {
	.CustomName = "Range Filter Placeholder",
	.CreateCustomScanState = rf_create_deferred_state
};

/* Places in custom_private. */
typedef enum RfDeferredPlace
{
	RF_DEFERRED_QUERY,			/* Query */
	RF_DEFERRED_OIDS,			/* list of two OIDs: table, template */
	RF_DEFERRED_REFERENCE,		/* Integer */
	RF_DEFERRED_LEAVES			/* Integer */
} RfDeferredPlace;

/* Making expressions of the Query from those of the plan. */
typedef struct RfInnerContext
{
	PlannerInfo *root;
	Index		rti;			/* of the partitioned table in the plan */
	List	   *values;			/* expressions of the values found so far */
} RfInnerContext;

/*
 * Makes the list that stores what a deferred scan needs.
 */
static List *
write_plan(const RfDeferredPlan *plan)
{
	Node	   *const fields[] = {
		[RF_DEFERRED_QUERY] = (Node *) plan->query,
		[RF_DEFERRED_OIDS] = (Node *) list_make2_oid(plan->relid, plan->template),
		[RF_DEFERRED_REFERENCE] = (Node *) makeInteger(plan->reference),
		[RF_DEFERRED_LEAVES] = (Node *) makeInteger(plan->nleaves)
	};

	return rf_list_fields(fields, lengthof(fields));
}

/*
 * Reads what a deferred scan needs.  The fields are not copied.
 */
void
rf_deferred_read(const CustomScan *scan, RfDeferredPlan *plan)
{
	List	   *fields = scan->custom_private;
	List	   *oids = list_nth(fields, RF_DEFERRED_OIDS);

	plan->query = list_nth_node(Query, fields, RF_DEFERRED_QUERY);
	plan->relid = linitial_oid(oids);
	plan->template = lsecond_oid(oids);
	plan->reference = intVal(list_nth(fields, RF_DEFERRED_REFERENCE));
	plan->nleaves = intVal(list_nth(fields, RF_DEFERRED_LEAVES));
}

/*
 * The external parameter that stands for the value of an expression.
 */
static Node *
make_value(RfInnerContext *context, Node *expr)
{
	Param	   *param = makeNode(Param);
	int			i = 0;
	ListCell   *cell;

	foreach(cell, context->values)
	{
		if (equal(lfirst(cell), expr))
			break;
		i++;
	}
	if (i == list_length(context->values))
		context->values = lappend(context->values, copyObject(expr));
	param->paramkind = PARAM_EXTERN;
	param->paramid = i + 1;
	param->paramtype = exprType(expr);
	param->paramtypmod = exprTypmod(expr);
	param->paramcollid = exprCollation(expr);
	param->location = -1;
	return (Node *) param;
}

/*
 * expression_tree_mutator() callback: an expression of the Query, where the table
 * is varno 1.
 */
static Node *
make_inner(Node *node, void *arg)
{
	RfInnerContext *context = arg;

	if (node == NULL)
		return NULL;
	if (IsA(node, Param))
		return make_value(context, node);
	if (IsA(node, PlaceHolderVar))
	{
		if (!bms_is_member(context->rti, pull_varnos(context->root, node)))
			return make_value(context, node);
		return make_inner((Node *) ((PlaceHolderVar *) node)->phexpr, arg);
	}
	if (IsA(node, Var))
	{
		Var		   *var;

		if (((Var *) node)->varno != context->rti)
			return make_value(context, node);
		var = copyObject((Var *) node);
		var->varno = 1;
		var->varnosyn = 1;
		var->varattnosyn = var->varattno;
		RF_CLEAR_NULLING_RELS(var);
		return (Node *) var;
	}
	return expression_tree_mutator(node, make_inner, arg);
}

/*
 * The argument of a comparison, which is a value if it is no part of the table's row
 * and stable: planning would not compute it.
 */
static Node *
make_inner_argument(RfInnerContext *context, Node *arg)
{
	if (contain_mutable_functions(arg) &&
		!bms_is_member(context->rti, pull_varnos(context->root, arg)))
		return make_value(context, arg);
	return make_inner(arg, context);
}

/*
 * A condition of the Query.
 */
static Node *
make_inner_clause(RfInnerContext *context, Node *clause)
{
	List	   *args = IsA(clause, OpExpr) ? ((OpExpr *) clause)->args :
	IsA(clause, ScalarArrayOpExpr) ? ((ScalarArrayOpExpr *) clause)->args : NIL;
	List	   *inner = NIL;
	ListCell   *cell;

	if (args == NIL)
		return make_inner(clause, context);
	clause = copyObject(clause);
	foreach(cell, args)
		inner = lappend(inner, make_inner_argument(context, lfirst(cell)));
	if (IsA(clause, OpExpr))
		((OpExpr *) clause)->args = inner;
	else
		((ScalarArrayOpExpr *) clause)->args = inner;
	return clause;
}

/*
 * Divides the conditions of a scan into those of the Query and those that the scan
 * checks itself.
 */
static void
divide_clauses(RfInnerContext *context, List *clauses, List **inner, List **own)
{
	ListCell   *cell;

	foreach(cell, extract_actual_clauses(clauses, false))
	{
		Node	   *clause = lfirst(cell);

		if (contain_subplans(clause) || contain_volatile_functions(clause))
			*own = lappend(*own, clause);
		else
			*inner = lappend(*inner, make_inner_clause(context, clause));
	}
}

/*
 * Adds a column to what the Query and the scan return.
 */
static void
add_column(RfInnerContext *context, Query *query, CustomScan *scan, Expr *expr)
{
	AttrNumber	n = list_length(query->targetList) + 1;

	scan->custom_scan_tlist = lappend(scan->custom_scan_tlist,
									  makeTargetEntry(copyObject(expr), n, NULL, false));
	query->targetList = lappend(query->targetList,
								makeTargetEntry((Expr *) make_inner((Node *) expr, context), n,
												psprintf("c%d", n), false));
}

/*
 * Fills in the columns that are needed: those of the target and of the conditions that the
 * scan checks itself.  At least one, because a scan tuple has one.
 */
static void
add_columns(RfInnerContext *context, Query *query, CustomScan *scan, List *exprs)
{
	List	   *vars = pull_var_clause((Node *) exprs, PVC_RECURSE_AGGREGATES |
									   PVC_RECURSE_WINDOWFUNCS |
									   PVC_RECURSE_PLACEHOLDERS);
	ListCell   *cell;

	foreach(cell, vars)
	{
		Var		   *var = lfirst(cell);

		if (IsA(var, Var) && var->varno == context->rti &&
			!tlist_member((Expr *) var, scan->custom_scan_tlist))
			add_column(context, query, scan, (Expr *) var);
	}
	if (query->targetList == NIL)
		add_column(context, query, scan,
				   (Expr *) makeConst(INT4OID, -1, InvalidOid, sizeof(int32),
									  Int32GetDatum(1), false, true));
}

/*
 * The Query on the table, without conditions and columns.  Privileges are checked for the query
 * around it.
 */
static Query *
make_query(PlannerInfo *root, Index rti)
{
	Query	   *query = makeNode(Query);
	RangeTblEntry *rte = copyObject(planner_rt_fetch(rti, root));
	RangeTblRef *ref = makeNode(RangeTblRef);

	query->commandType = CMD_SELECT;
	query->querySource = QSRC_ORIGINAL;
	query->canSetTag = true;
	query->stmt_location = -1;
	query->rtable = list_make1(rte);
	rf_require_nothing(query, rte, rf_checked_user(root->parse, rte));
	ref->rtindex = 1;
	query->jointree = makeFromExpr(list_make1(ref), NULL);
	return query;
}

/*
 * Has the plan made anew if something changes that the Query depends on, such as a
 * function.  The planner looks for these in the expressions of plans only.
 */
static void
note_dependencies(PlannerInfo *root, Query *query)
{
	List	   *relations;
	List	   *items;
	bool		depends_on_role;

	extract_query_dependencies((Node *) query, &relations, &items, &depends_on_role);
	root->glob->relationOids = list_concat(root->glob->relationOids, relations);
	root->glob->invalItems = list_concat(root->glob->invalItems, items);
}

/*
 * PlanCustomPath
 */
Plan *
rf_plan_deferred(PlannerInfo *root, RelOptInfo *rel, CustomPath *path,
				 List *tlist, List *clauses, List *plans)
{
	CustomScan *scan = makeNode(CustomScan);
	RfDeferred *deferred = rf_find_deferred(rel);
	RfInnerContext context = {root, rel->relid, NIL};
	RfDeferredPlan plan = {0};
	List	   *inner = NIL;
	List	   *own = NIL;

	if (deferred == NULL)
		elog(ERROR, "a deferred scan of a table that is not deferred");
	plan.query = make_query(root, rel->relid);
	plan.relid = deferred->relid;
	plan.template = root->simple_rte_array[deferred->template->relid]->relid;
	plan.reference = deferred->reference;
	plan.nleaves = deferred->nleaves;
	divide_clauses(&context, clauses, &inner, &own);
	add_columns(&context, plan.query, scan, list_make3(rel->reltarget->exprs, tlist, own));
	if (inner != NIL)
		plan.query->jointree->quals = (Node *) make_ands_explicit(inner);
	note_dependencies(root, plan.query);

	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = own;
	scan->scan.scanrelid = rel->relid;
	scan->flags = path->flags;
	scan->custom_exprs = context.values;
	scan->custom_private = write_plan(&plan);
	scan->methods = path->methods == &rf_placeholder_path_methods ?
		&rf_placeholder_methods : &rf_deferred_methods;
	return &scan->scan.plan;
}

/* Looking for deferred scans in a finished plan. */
typedef struct RfDeferredSearch
{
	List	   *placeholders;	/* references to tables */
	List	   *deferred;		/* OIDs of tables */
} RfDeferredSearch;

static void search_plan(Plan *plan, RfDeferredSearch *search);

/*
 * Looks for deferred scans in some plans.
 */
static void
search_plans(List *plans, RfDeferredSearch *search)
{
	ListCell   *cell;

	foreach(cell, plans)
		search_plan(lfirst(cell), search);
}

/*
 * Looks for deferred scans in a plan and below it.
 */
static void
search_plan(Plan *plan, RfDeferredSearch *search)
{
	if (plan == NULL)
		return;
	check_stack_depth();
	search_plan(plan->lefttree, search);
	search_plan(plan->righttree, search);
	switch (nodeTag(plan))
	{
		case T_Append:
			search_plans(((Append *) plan)->appendplans, search);
			break;
		case T_MergeAppend:
			search_plans(((MergeAppend *) plan)->mergeplans, search);
			break;
		case T_SubqueryScan:
			search_plan(((SubqueryScan *) plan)->subplan, search);
			break;
		case T_CustomScan:
			{
				CustomScan *scan = (CustomScan *) plan;
				bool		placeholder = scan->methods == &rf_placeholder_methods;
				RfDeferredPlan deferred;

				search_plans(scan->custom_plans, search);
				if (!placeholder && scan->methods != &rf_deferred_methods)
					break;
				rf_deferred_read(scan, &deferred);
				if (placeholder)
					search->placeholders = lappend_int(search->placeholders,
													   deferred.reference);
				else
					search->deferred = list_append_unique_oid(search->deferred, deferred.relid);
			}
			break;
		default:
			break;
	}
}

/*
 * Finds the deferred scans of a finished plan.
 */
List *
rf_find_placeholders(const PlannedStmt *stmt, List **deferred)
{
	RfDeferredSearch search = {NIL, NIL};

	search_plan(stmt->planTree, &search);
	search_plans(stmt->subplans, &search);
	*deferred = search.deferred;
	return search.placeholders;
}
