/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  What EXPLAIN shows of a guard.
 *
 * There is one entry for each partitioned table of the query with skipped
 * partitions, its sub-partitioned members included.  It has table, index,
 * condition and counts.  Tables with hidden rows have none, because nothing is
 * skipped there while planning (secured.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/explain.h"
#include "compat.h"
#include "lib/stringinfo.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/value.h"
#include "parser/parsetree.h"
#include "planner/condition/condition.h"
#include "planner/knowledge/question.h"
#include "planner/planning/planning.h"
#include "planner/skip/skip.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

/* An entry is a list of these. */
typedef enum RfExplainField
{
	RF_EXPLAIN_TABLE,			/* list of one OID */
	RF_EXPLAIN_ALIAS,			/* String */
	RF_EXPLAIN_INDEXES,			/* list of OIDs */
	RF_EXPLAIN_CLAUSES,			/* list of expressions, varno 1 ... */
	RF_EXPLAIN_CLAUSE_TABLE,	/* ... for this table: list of one OID */
	RF_EXPLAIN_SKIPPED,			/* Integer */
	RF_EXPLAIN_CONSIDERED		/* Integer */
} RfExplainField;

/*
 * Makes a clause about one relation refer to varno 1, by plain column names.
 */
static bool
rename_vars(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		Var		   *var = (Var *) node;

		var->varno = 1;
		var->varnosyn = 0;
		var->varattnosyn = 0;
		RF_CLEAR_NULLING_RELS(var);
		return false;
	}
	return expression_tree_walker(node, rename_vars, context);
}

/*
 * Was this expansion made while planning an index scan for MIN or MAX, which
 * the planner may reject?  For such a scan it plans a copy of the query, one
 * level down.  If something else looks like that, EXPLAIN is only less
 * precise.
 */
static bool
is_minmax_expansion(RfExpansion *expansion)
{
	PlannerInfo *parent = expansion->root->parent_root;
	TargetEntry *target;
	RangeTblEntry *rte;

	if (parent == NULL || !parent->parse->hasAggs ||
		expansion->root->parse->hasAggs ||
		expansion->root->processed_tlist == NIL ||
		expansion->top_rti > list_length(parent->parse->rtable))
		return false;
	target = linitial(expansion->root->processed_tlist);
	rte = rt_fetch(expansion->top_rti, parent->parse->rtable);
	return target->resname != NULL &&
		strcmp(target->resname, "agg_target") == 0 &&
		rte->relid == expansion->root->simple_rte_array[expansion->top_rti]->relid;
}

/*
 * Should an expansion be left out, because another one shows the scan that is
 * in the plan?
 */
static bool
is_hidden_alternative(PlannerGlobal *glob, List *expansions, RfExpansion *expansion)
{
	ListCell   *cell;

	if (is_minmax_expansion(expansion))
		return !list_member_ptr(glob->subroots, expansion->root);
	foreach(cell, expansions)
	{
		RfExpansion *other = lfirst(cell);

		if (other->root->parent_root == expansion->root &&
			other->top_rti == expansion->top_rti && is_minmax_expansion(other) &&
			list_member_ptr(glob->subroots, other->root))
			return true;
	}
	return false;
}

/*
 * The entry for a table.  It describes the first expansion, which is that of
 * the outermost level, and has the counts of all.  NIL if nothing was skipped.
 */
static List *
make_entry(List *expansions, RfExpansion *first)
{
	RangeTblEntry *rte = first->root->simple_rte_array[first->top_rti];
	RfExpansion *matched = NULL;
	List	   *clauses;
	List	   *entry;
	int			skipped = 0;
	int			considered = 0;
	ListCell   *cell;

	foreach(cell, expansions)
	{
		RfExpansion *expansion = lfirst(cell);

		if (expansion->root != first->root || expansion->top_rti != first->top_rti)
			continue;
		if (matched == NULL && expansion->match.cond != NULL)
			matched = expansion;
		skipped += bms_num_members(expansion->excluded);
		considered += bms_num_members(expansion->leaves);
	}
	if (skipped == 0)
		return NIL;

	clauses = copyObject(matched->match.clauses);
	(void) rename_vars((Node *) clauses, NULL);
	entry = list_make2(list_make1_oid(rte->relid),
					   makeString(pstrdup(rte->eref->aliasname)));
	entry = lappend(entry, rf_cond_indexes(matched->match.cond));
	entry = lappend(entry, clauses);
	entry = lappend(entry, list_make1_oid(matched->relid));
	entry = lappend(entry, makeInteger(skipped));
	entry = lappend(entry, makeInteger(considered));
	return entry;
}

/*
 * Is there an earlier expansion over the same table?
 */
static bool
seen_before(List *expansions, RfExpansion *expansion)
{
	ListCell   *cell;

	foreach(cell, expansions)
	{
		RfExpansion *other = lfirst(cell);

		if (other == expansion)
			return false;
		if (other->root == expansion->root && other->top_rti == expansion->top_rti)
			return true;
	}
	return false;
}

/*
 * The entries for the expansions that are part of a plan.
 */
List *
rf_explain_tables(PlannerGlobal *glob, List *expansions)
{
	List	   *entries = NIL;
	ListCell   *cell;

	foreach(cell, expansions)
	{
		RfExpansion *expansion = lfirst(cell);
		List	   *entry;

		if (is_hidden_alternative(glob, expansions, expansion) ||
			seen_before(expansions, expansion))
			continue;
		entry = make_entry(expansions, expansion);

		/* MIN and MAX of the same table need be shown only once. */
		if (entry != NIL &&
			!(is_minmax_expansion(expansion) && list_member(entries, entry)))
			entries = lappend(entries, entry);
	}
	return entries;
}

/*
 * "a, b" for the names of relations.
 */
char *
rf_relation_names(List *oids, bool qualified)
{
	StringInfoData names;
	ListCell   *cell;

	initStringInfo(&names);
	foreach(cell, oids)
	{
		char	   *name = get_rel_name(lfirst_oid(cell));

		if (names.len > 0)
			appendStringInfoString(&names, ", ");
		if (name == NULL)
			appendStringInfo(&names, "%u", lfirst_oid(cell));
		else if (qualified)
			appendStringInfoString(&names,
								   quote_qualified_identifier(get_namespace_name(get_rel_namespace(lfirst_oid(cell))),
															  name));
		else
			appendStringInfoString(&names, quote_identifier(name));
	}
	return names.data;
}

/*
 * Makes external parameters of the results of subqueries, so that they are
 * shown as "$0".  For PARAM_EXEC versions later than 15 would look for the
 * plan node that computes it, and there is no plan here.
 */
static Node *
name_params(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
	{
		Param	   *param = copyObject((Param *) node);

		param->paramkind = PARAM_EXTERN;
		return (Node *) param;
	}
	return expression_tree_mutator(node, name_params, context);
}

/*
 * The condition used, as SQL.
 */
static char *
condition_text(List *entry)
{
	Oid			relid = linitial_oid(list_nth(entry, RF_EXPLAIN_CLAUSE_TABLE));
	char	   *alias = strVal(list_nth(entry, RF_EXPLAIN_ALIAS));
	List	   *clauses = list_nth(entry, RF_EXPLAIN_CLAUSES);

	clauses = (List *) name_params((Node *) clauses, NULL);
	return deparse_expression((Node *) make_ands_explicit(clauses),
							  deparse_context_for(alias, relid),
							  false, false);
}

/*
 * "Partitions Skipped: 3 of 4" for humans, two numbers for programs.
 */
void
rf_explain_counts(double skipped, double considered, ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText("Partitions Skipped",
							psprintf("%.0f of %.0f", skipped, considered), es);
	else
	{
		ExplainPropertyFloat("Partitions Skipped", NULL, skipped, 0, es);
		ExplainPropertyFloat("Partitions Considered", NULL, considered, 0, es);
	}
}

/*
 * Shows one entry.
 */
static void
explain_entry(List *entry, ExplainState *es)
{
	List	   *table = list_nth(entry, RF_EXPLAIN_TABLE);
	char	   *alias = strVal(list_nth(entry, RF_EXPLAIN_ALIAS));
	char	   *name = get_rel_name(linitial_oid(table));
	char	   *label = rf_relation_names(table, es->verbose);

	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyText("Table", label, es);
		ExplainPropertyText("Alias", alias, es);
	}
	else if (name != NULL && strcmp(name, alias) == 0)
		ExplainPropertyText("Table", label, es);
	else
		ExplainPropertyText("Table",
							psprintf("%s %s", label, quote_identifier(alias)),
							es);
	ExplainPropertyText("Filter Index",
						rf_relation_names(list_nth(entry, RF_EXPLAIN_INDEXES),
										  es->verbose), es);
	ExplainPropertyText("Skip Cond", condition_text(entry), es);
	rf_explain_counts(intVal(list_nth(entry, RF_EXPLAIN_SKIPPED)),
					  intVal(list_nth(entry, RF_EXPLAIN_CONSIDERED)), es);
}

/*
 * ExplainCustomScan.  Several tables are several objects in formats that have
 * such.
 */
static void
explain_guard(CustomScanState *node, List *ancestors, ExplainState *es)
{
	CustomScan *guard = (CustomScan *) node->ss.ps.plan;
	List	   *entries = list_nth(guard->custom_private, RF_GUARD_TABLES);
	bool		several = list_length(entries) > 1;
	ListCell   *cell;

	if (several)
		ExplainOpenGroup("Tables", "Tables", false, es);
	foreach(cell, entries)
	{
		if (several)
			ExplainOpenGroup("Filtered Table", NULL, true, es);
		explain_entry(lfirst(cell), es);
		if (several)
			ExplainCloseGroup("Filtered Table", NULL, true, es);
	}
	if (several)
		ExplainCloseGroup("Tables", "Tables", false, es);
}

static const CustomExecMethods guard_exec_methods = {
	.CustomName = "Range Filter",
	RF_INERT_METHODS,
	.ExplainCustomScan = explain_guard
};

/*
 * CreateCustomScanState of the guard: there only to be shown.
 */
Node *
rf_create_guard_state(CustomScan *guard)
{
	CustomScanState *state = makeNode(CustomScanState);

	state->methods = &guard_exec_methods;
	return (Node *) state;
}
