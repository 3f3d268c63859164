/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  EXPLAIN of a guard.
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

/* No more names are shown than these, the last being how many there are besides. */
#define MOST_NAMES	4

/* An entry. */
typedef struct RfExplain
{
	Oid			table;
	char	   *alias;
	List	   *indexes;		/* OIDs */
	List	   *clauses;		/* expressions; varno 1 is clause_table */
	Oid			clause_table;	/* the table that clauses are about */
	int			skipped;
	int			considered;
} RfExplain;

/* Places of the fields in the list that stores an entry in a plan. */
typedef enum RfExplainPlace
{
	RF_EXPLAIN_TABLES,			/* list of two OIDs: table, clause_table */
	RF_EXPLAIN_ALIAS,			/* String */
	RF_EXPLAIN_INDEXES,			/* list of OIDs */
	RF_EXPLAIN_CLAUSES,			/* list of expressions */
	RF_EXPLAIN_SKIPPED,			/* Integer */
	RF_EXPLAIN_CONSIDERED		/* Integer */
} RfExplainPlace;

/*
 * Makes the list that stores an entry in a plan.
 */
static List *
write_entry(const RfExplain *entry)
{
	Node	   *const fields[] = {
		[RF_EXPLAIN_TABLES] = (Node *) list_make2_oid(entry->table,
													  entry->clause_table),
		[RF_EXPLAIN_ALIAS] = (Node *) makeString(entry->alias),
		[RF_EXPLAIN_INDEXES] = (Node *) entry->indexes,
		[RF_EXPLAIN_CLAUSES] = (Node *) entry->clauses,
		[RF_EXPLAIN_SKIPPED] = (Node *) makeInteger(entry->skipped),
		[RF_EXPLAIN_CONSIDERED] = (Node *) makeInteger(entry->considered)
	};

	return rf_list_fields(fields, lengthof(fields));
}

/*
 * Reads an entry of a plan.
 */
static void
read_entry(List *fields, RfExplain *entry)
{
	List	   *tables = list_nth(fields, RF_EXPLAIN_TABLES);

	entry->table = linitial_oid(tables);
	entry->clause_table = lsecond_oid(tables);
	entry->alias = strVal(list_nth(fields, RF_EXPLAIN_ALIAS));
	entry->indexes = list_nth(fields, RF_EXPLAIN_INDEXES);
	entry->clauses = list_nth(fields, RF_EXPLAIN_CLAUSES);
	entry->skipped = intVal(list_nth(fields, RF_EXPLAIN_SKIPPED));
	entry->considered = intVal(list_nth(fields, RF_EXPLAIN_CONSIDERED));
}

/*
 * Clauses about one relation in terms of varno 1, by plain column names.  Only the planner
 * knows PlaceHolderVars, so what they stand for takes their place.
 */
static Node *
rename_vars(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var		   *var = copyObject((Var *) node);

		var->varno = 1;
		var->varnosyn = 0;
		var->varattnosyn = 0;
		RF_CLEAR_NULLING_RELS(var);
		return (Node *) var;
	}
	if (IsA(node, PlaceHolderVar))
		return rename_vars((Node *) ((PlaceHolderVar *) node)->phexpr, context);
	return expression_tree_mutator(node, rename_vars, context);
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
 * Makes the entry for a table.  Index and condition are those of the first
 * expansion that had a condition; the counts are sums over all expansions of
 * the table.  NIL if nothing was skipped.
 */
static List *
make_entry(List *expansions, RfExpansion *first)
{
	RangeTblEntry *rte = first->root->simple_rte_array[first->top_rti];
	RfExpansion *matched = NULL;
	RfExplain	entry = {0};
	ListCell   *cell;

	foreach(cell, expansions)
	{
		RfExpansion *expansion = lfirst(cell);

		if (expansion->root != first->root || expansion->top_rti != first->top_rti)
			continue;
		if (matched == NULL && expansion->match.cond != NULL)
			matched = expansion;
		entry.skipped += bms_num_members(expansion->excluded);
		entry.considered += bms_num_members(expansion->leaves);
	}
	if (entry.skipped == 0)
		return NIL;

	entry.table = rte->relid;
	entry.alias = pstrdup(rte->eref->aliasname);
	entry.indexes = rf_cond_indexes(matched->match.cond);
	entry.clauses = (List *) rename_vars((Node *) matched->match.clauses, NULL);
	entry.clause_table = matched->relid;
	return write_entry(&entry);
}

/*
 * Returns the one of these tables (OIDs) of which partitions were skipped, at any level, or
 * InvalidOid.
 */
Oid
rf_skipped_below(const RfGuard *guard, const List *tables)
{
	ListCell   *cell;

	foreach(cell, guard->tables)
	{
		RfExplain	entry;

		read_entry(lfirst(cell), &entry);
		if (list_member_oid(tables, entry.table))
			return entry.table;
	}
	return InvalidOid;
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
			break;
		if (other->root == expansion->root && other->top_rti == expansion->top_rti)
			return true;
	}
	return false;
}

/*
 * Makes the entries for the expansions that are part of a plan.
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
 * "a, b" for the names of relations.  Of many, as the chunks of an inheritance tree
 * have, only the first ones are named; all are if they are to be qualified, for EXPLAIN
 * (VERBOSE).
 */
char *
rf_relation_names(List *oids, bool qualified)
{
	StringInfoData names;
	int			n = list_length(oids);
	int			shown = qualified || n <= MOST_NAMES ? n : MOST_NAMES - 1;

	initStringInfo(&names);
	for (int i = 0; i < shown; i++)
	{
		Oid			oid = list_nth_oid(oids, i);
		char	   *name = get_rel_name(oid);

		if (names.len > 0)
			appendStringInfoString(&names, ", ");
		if (name == NULL)
			appendStringInfo(&names, "%u", oid);
		else if (qualified)
			appendStringInfoString(&names,
								   quote_qualified_identifier(get_namespace_name(get_rel_namespace(oid)),
															  name));
		else
			appendStringInfoString(&names, quote_identifier(name));
	}
	if (shown < n)
		appendStringInfo(&names, ", and %d more", n - shown);
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
condition_text(const RfExplain *entry)
{
	List	   *clauses = (List *) name_params((Node *) entry->clauses, NULL);

	return deparse_expression((Node *) make_ands_explicit(clauses),
							  deparse_context_for(entry->alias,
												  entry->clause_table),
							  false, false);
}

/*
 * Shows "Partitions Skipped: 3 of 4" in text format, two numbers in others.
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
explain_entry(const RfExplain *entry, ExplainState *es)
{
	const char *alias = entry->alias;
	char	   *name = get_rel_name(entry->table);
	char	   *label = rf_relation_names(list_make1_oid(entry->table),
										  es->verbose);

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
						rf_relation_names(entry->indexes, es->verbose), es);
	ExplainPropertyText("Partition Cond", condition_text(entry), es);
	rf_explain_counts(entry->skipped, entry->considered, es);
}

/*
 * ExplainCustomScan.  Formats with objects show an object for each table, if
 * there are several.
 */
static void
explain_guard(CustomScanState *node, List *ancestors, ExplainState *es)
{
	RfGuard		guard;
	RfExplain	entry;
	bool		several;
	ListCell   *cell;

	rf_read_guard((CustomScan *) node->ss.ps.plan, &guard);
	several = list_length(guard.tables) > 1;
	if (several)
		ExplainOpenGroup("Tables", "Tables", false, es);
	foreach(cell, guard.tables)
	{
		read_entry(lfirst(cell), &entry);
		if (several)
			ExplainOpenGroup("Filtered Table", NULL, true, es);
		explain_entry(&entry, es);
		if (several)
			ExplainCloseGroup("Filtered Table", NULL, true, es);
	}
	if (several)
		ExplainCloseGroup("Tables", "Tables", false, es);
}

static const CustomExecMethods guard_exec_methods = {
	.CustomName = "Range Filter",
	.BeginCustomScan = rf_begin_guard,
	RF_INERT_METHODS,
	.ExplainCustomScan = explain_guard
};

/*
 * CreateCustomScanState of the guard.  The state is started and shown, never run.
 */
Node *
rf_create_guard_state(CustomScan *guard)
{
	CustomScanState *state = makeNode(CustomScanState);

	state->methods = &guard_exec_methods;
	return (Node *) state;
}
