/*-------------------------------------------------------------------------
 *
 * join_condition.c
 *	  Join filters as conditions of a gate.
 *
 * A join filter that has come to the scans of a gate's members compares a
 * column or an expression of theirs.  If that is a key of an index, the index
 * is added to those that the gate asks, and "key = ANY (values)" to its
 * conditions.  The first member that has such indexes decides which.  Of the
 * other members, indexes with the same keys and operator classes are asked.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "planner/condition/condition.h"
#include "planner/condition/parameter.h"
#include "planner/gate/gate.h"
#include "planner/join_filter/join_filter.h"
#include "planner/knowledge/knowledge.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"

/*
 * A member, found by the eref that its entry in the finished plan's range
 * table shares with the planner's.
 */
typedef struct RfNamedRel
{
	const Alias *eref;			/* hash key */
	const RfGateRel *rel;
} RfNamedRel;

/* The scan of a member. */
typedef struct RfFilteredScan
{
	Index		rti;
	Oid			relid;
	const RfGateRel *rel;		/* NULL: it has no indexes */
	Node	  **exprs;			/* for each join filter what it compares, or
								 * NULL */
} RfFilteredScan;

/* An index with join filters for some of its columns. */
typedef struct RfFilteredIndex
{
	List	   *keys;			/* for each column the number of its join
								 * filter, or -1 */
	List	   *oids;			/* for each column operator family, input
								 * type, collation */
	int			nfiltered;		/* number of leading columns that have one */
} RfFilteredIndex;

/* Replacing Vars. */
typedef struct RfReplacement
{
	int			varno;			/* other Vars are a failure */
	List	   *tlist;			/* replaces them; NIL: they become OUTER_VARs */
	bool		failed;
} RfReplacement;

/*
 * expression_tree_mutator() callback of rf_replace_vars().  Sets RfReplacement.failed at a Var that has
 * no replacement; what it returns is of no use then.
 */
static Node *
replace_vars(Node *node, void *arg)
{
	RfReplacement *replacement = arg;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var		   *var = (Var *) node;

		if (var->varno != replacement->varno || var->varattno <= 0 ||
			(replacement->tlist != NIL &&
			 var->varattno > list_length(replacement->tlist)))
		{
			replacement->failed = true;
			return node;
		}
		if (replacement->tlist != NIL)
			return copyObject((Node *) list_nth_node(TargetEntry,
													 replacement->tlist,
													 var->varattno - 1)->expr);
		var = copyObject(var);
		var->varno = OUTER_VAR;
		return (Node *) var;
	}
	return expression_tree_mutator(node, replace_vars, arg);
}

/*
 * A copy of an expression with its Vars replaced by the entries of a target
 * list or, without a list, renumbered as OUTER_VARs.  NULL if a Var has
 * another varno or is not in the list.
 */
Node *
rf_replace_vars(Node *expr, int varno, List *tlist)
{
	RfReplacement replacement = {varno, tlist, false};

	expr = replace_vars(expr, &replacement);
	return replacement.failed ? NULL : expr;
}

/*
 * The member with this entry in the plan's range table; NULL if it has no
 * rangefilter indexes.
 */
const RfGateRel *
rf_find_gate_rel(RfPushdown *pushdown, const RangeTblEntry *rte)
{
	RfNamedRel *named;

	if (pushdown->rels == NULL)
	{
		HASHCTL		control;
		HASH_SEQ_STATUS scan;
		RfGateRel  *rel;

		memset(&control, 0, sizeof(control));
		control.keysize = sizeof(Alias *);
		control.entrysize = sizeof(RfNamedRel);
		control.hcxt = CurrentMemoryContext;
		pushdown->rels = hash_create("rangefilter members", 64, &control,
									 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		hash_seq_init(&scan, pushdown->planning->gate_rels);
		while ((rel = hash_seq_search(&scan)) != NULL)
		{
			RangeTblEntry *known = rel->root->simple_rte_array[rel->rel->relid];

			named = hash_search(pushdown->rels, &known->eref, HASH_ENTER, NULL);
			named->rel = rel;
		}
	}
	named = hash_search(pushdown->rels, &rte->eref, HASH_FIND, NULL);
	return named != NULL ? named->rel : NULL;
}

/*
 * Is this a table scan of a kind that can be skipped?
 */
bool
rf_is_filterable_scan(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidRangeScan:
			return true;
		default:
			return false;
	}
}

/*
 * The target list of a scan in terms of its table.
 */
List *
rf_scan_tlist(Plan *plan)
{
	List	   *tlist = NIL;
	ListCell   *cell;

	if (!IsA(plan, IndexOnlyScan))
		return plan->targetlist;
	foreach(cell, plan->targetlist)
	{
		TargetEntry *entry = flatCopyTargetEntry(lfirst_node(TargetEntry, cell));
		Node	   *expr = rf_replace_vars((Node *) entry->expr, INDEX_VAR,
										   ((IndexOnlyScan *) plan)->indextlist);

		if (expr == NULL)
			elog(ERROR, "an index-only scan returns what is not in its index");
		entry->expr = (Expr *) expr;
		tlist = lappend(tlist, entry);
	}
	return tlist;
}

/*
 * Finds out what the join filters compare in a scan.
 */
static void
read_scan(RfPushdown *pushdown, Plan *plan, List *filters, RfFilteredScan *scan)
{
	RangeTblEntry *rte;
	List	   *tlist;
	ListCell   *cell;

	memset(scan, 0, sizeof(*scan));
	if (!rf_is_filterable_scan(plan) || rf_node_is_volatile(pushdown, plan))
		return;
	scan->rti = ((Scan *) plan)->scanrelid;
	rte = rt_fetch(scan->rti, pushdown->stmt->rtable);
	scan->relid = rte->relid;
	scan->rel = rf_find_gate_rel(pushdown, rte);
	if (scan->rel == NULL)
		return;
	scan->exprs = palloc(list_length(filters) * sizeof(Node *));
	tlist = rf_scan_tlist(plan);
	foreach(cell, filters)
	{
		RfJoinFilter *filter = lfirst(cell);

		scan->exprs[foreach_current_index(cell)] =
			rf_strip_relabel(rf_replace_vars(filter->expr, OUTER_VAR, tlist));
	}
}

/*
 * Does a join filter compare this column of an index?
 */
static bool
is_column(const RfFilteredScan *scan, int filter, const RfRelIndex *index,
		  int column)
{
	Node	   *expr = scan->exprs[filter];
	Node	   *key = index->columns[column].expr;

	if (expr == NULL)
		return false;
	if (IsA(expr, Var))
		return key == NULL && ((Var *) expr)->varno == scan->rti &&
			((Var *) expr)->varattno == index->columns[column].attno;
	if (key == NULL)
		return false;
	key = copyObject(key);
	ChangeVarNodes(key, index->varno, scan->rti, 0);
	return equal(expr, key);
}

/*
 * Describes an index, and which join filters its columns have.
 */
static RfFilteredIndex *
describe_index(const RfFilteredScan *scan, int nfilters, const RfRelIndex *index)
{
	RfFilteredIndex *filtered = palloc0(sizeof(RfFilteredIndex));

	for (int c = 0; c < index->ncolumns; c++)
	{
		int			filter = 0;

		while (filter < nfilters && !is_column(scan, filter, index, c))
			filter++;
		if (filter == nfilters)
			filter = -1;
		else if (filtered->nfiltered == c)
			filtered->nfiltered++;
		filtered->keys = lappend_int(filtered->keys, filter);
	}
	filtered->oids = rf_gate_opclasses(index);
	return filtered;
}

/*
 * Is an index better than another one?  It is if more leading columns have
 * join filters or, if the same number have, it has fewer columns.
 */
static bool
is_better(const RfFilteredIndex *a, const RfFilteredIndex *b)
{
	if (b == NULL || a->nfiltered != b->nfiltered)
		return b == NULL || a->nfiltered > b->nfiltered;
	return list_length(a->keys) < list_length(b->keys);
}

/*
 * Chooses the indexes of a scan to be asked, the best ones first.  The first
 * column of each is not yet covered by an index chosen before.
 */
static List *
choose_indexes(const RfFilteredScan *scan, int nfilters)
{
	List	   *chosen = NIL;
	Bitmapset  *covered = NULL;

	for (;;)
	{
		RfFilteredIndex *best = NULL;
		ListCell   *cell;

		foreach(cell, scan->rel->indexes)
		{
			const RfRelIndex *index = lfirst(cell);
			RfFilteredIndex *filtered = describe_index(scan, nfilters, index);

			if (index->predicate == NIL && filtered->nfiltered > 0 &&
				!bms_is_member(linitial_int(filtered->keys), covered) &&
				is_better(filtered, best))
				best = filtered;
		}
		if (best == NULL)
			return chosen;
		for (int c = 0; c < best->nfiltered; c++)
			covered = bms_add_member(covered, list_nth_int(best->keys, c));
		chosen = lappend(chosen, best);
	}
}

/*
 * The index of a scan that is like one of another scan, or InvalidOid.
 */
static Oid
find_index(const RfFilteredScan *scan, const RfFilteredIndex *like)
{
	ListCell   *cell;

	foreach(cell, scan->rel->indexes)
	{
		const RfRelIndex *index = lfirst(cell);
		RfFilteredIndex *filtered = describe_index(scan, 0, index);
		bool		same = index->predicate == NIL && equal(filtered->oids, like->oids);

		for (int c = 0; same && c < index->ncolumns; c++)
		{
			int			filter = list_nth_int(like->keys, c);

			same = filter < 0 || is_column(scan, filter, index, c);
		}
		if (same)
			return index->oid;
	}
	return InvalidOid;
}

/*
 * The first join filter that compares the same expression as this one.  Its
 * number stands for both in the scan for which the indexes are chosen;
 * is_alike() checks that they compare the same in another scan, too.
 */
static int
first_like(const RfFilteredScan *scan, int filter)
{
	for (int i = 0; i < filter; i++)
	{
		if (equal(scan->exprs[i], scan->exprs[filter]))
			return i;
	}
	return filter;
}

/*
 * Do join filters that compare the same expression in the model compare the same one in this scan?
 * Then the indexes chosen for the model serve the scan, too.
 */
static bool
is_alike(const RfFilteredScan *scan, const RfFilteredScan *model, int nfilters)
{
	for (int i = 0; i < nfilters; i++)
	{
		int			first = first_like(model, i);

		if (model->exprs[i] != NULL &&
			!equal(scan->exprs[i], scan->exprs[first]))
			return false;
	}
	return true;
}

/*
 * Adds indexes to those that a gate knows.  Columns without a join filter get
 * key numbers of their own.
 */
static List *
add_opclasses(const RfGateQuestion *asked, List *indexes, int first_key,
			  int nfilters)
{
	List	   *opclasses = list_copy(asked->opclasses);
	int			unused = first_key + nfilters;
	ListCell   *cell;

	foreach(cell, indexes)
	{
		RfFilteredIndex *index = lfirst(cell);
		List	   *keys = NIL;
		ListCell   *key;

		foreach(key, index->keys)
			keys = lappend_int(keys, lfirst_int(key) < 0 ? unused++ :
							   first_key + lfirst_int(key));
		opclasses = lappend(opclasses, rf_gate_opclass(keys, index->oids));
	}
	return opclasses;
}

/*
 * "key = ANY (param)"
 */
static Node *
make_condition(const RfJoinFilter *filter, int key, Node *expr, int number)
{
	ScalarArrayOpExpr *condition = makeNode(ScalarArrayOpExpr);
	Param	   *param = makeNode(Param);

	param->paramkind = PARAM_SUBLINK;
	param->paramid = number;
	param->paramtype = filter->array;
	param->paramtypmod = -1;
	param->paramcollid = filter->clause->inputcollid;
	condition->opno = filter->clause->opno;
	condition->opfuncid = get_opcode(condition->opno);
	condition->useOr = true;
	condition->inputcollid = filter->clause->inputcollid;
	condition->args = list_make2(makeVar(1, key + 1, exprType(expr), -1,
										 exprCollation(expr), 0), param);
	condition->location = -1;
	return (Node *) condition;
}

/*
 * Adds the conditions of join filters to a gate's, if its indexes can use
 * them.  False if there are none.
 */
static bool
add_conditions(CustomScan *gate, RfGateQuestion *asked, List *filters,
			   const RfFilteredScan *model, List *opclasses, int first_key)
{
	RfTable    *table = rf_gate_table(opclasses);
	List	   *clauses = list_copy(asked->clauses);
	List	   *conversions = list_copy(asked->conversions);
	List	   *exprs = list_copy(gate->custom_exprs);
	List	   *join_filters = NIL;
	ListCell   *cell;

	foreach(cell, filters)
	{
		RfJoinFilter *filter = lfirst(cell);
		int			i = foreach_current_index(cell);
		int			param = list_length(exprs);
		Node	   *condition;

		if (model->exprs[i] == NULL)
			continue;
		condition = make_condition(filter, first_key + first_like(model, i),
								   model->exprs[i], param);
		if (!rf_clause_known(condition, 1, table))
			continue;
		clauses = lappend(clauses, condition);
		conversions = lappend_int(conversions, RF_AS_IS);
		exprs = lappend(exprs, makeNullConst(filter->array, -1,
											 filter->clause->inputcollid));
		join_filters = lappend(join_filters, rf_join_filter_place(filter->join, filter->key, param));
	}
	if (join_filters == NIL)
		return false;
	gate->custom_exprs = exprs;
	asked->opclasses = opclasses;
	asked->clauses = clauses;
	asked->conversions = conversions;
	asked->join_filters = join_filters;
	return true;
}

/*
 * Adds those of the new indexes that a member has to its OIDs.  NIL if it has
 * none, old or new.
 *
 * A member without OIDs stays so if the gate had indexes before: the gate's other
 * conditions are not about this member, an arm of UNION ALL for example, and values
 * with which no row satisfies them must not close it (RfGateState.never).
 */
static List *
add_indexes(List *oids, int nold, const RfFilteredScan *scan, List *indexes)
{
	List	   *added = NIL;
	bool		found = false;
	ListCell   *cell;

	if (oids == NIL && nold > 0)
		return NIL;
	foreach(cell, indexes)
	{
		Oid			oid = find_index(scan, lfirst(cell));

		added = lappend_oid(added, oid);
		found = found || OidIsValid(oid);
	}
	if (!found && oids == NIL)
		return NIL;
	if (oids == NIL)
		oids = list_make1_oid(scan->relid);
	return list_concat_copy(oids, added);
}

/*
 * Adds the members' indexes to what a gate asks.
 */
static void
add_members(RfGateQuestion *asked, const RfFilteredScan *scans,
			const RfFilteredScan *model, List *indexes, int nold, int nfilters)
{
	List	   *members = list_copy(asked->members);
	List	   *tables = list_copy(asked->tables);
	ListCell   *cell;

	foreach(cell, members)
	{
		const RfFilteredScan *scan = &scans[foreach_current_index(cell)];

		if (scan->rel != NULL && is_alike(scan, model, nfilters))
			lfirst(cell) = add_indexes(lfirst(cell), nold, scan, indexes);
		else if (lfirst(cell) != NIL)
		{
			lfirst(cell) = list_copy(lfirst(cell));
			for (int i = 0; i < list_length(indexes); i++)
				lfirst(cell) = lappend_oid(lfirst(cell), InvalidOid);
		}
		if (scan->rel != NULL && lfirst(cell) != NIL)
		{
			const RfGateRel *rel = scan->rel;

			tables = list_append_unique_oid(tables,
											rel->root->simple_rte_array[rel->top]->relid);
		}
	}
	asked->members = members;
	asked->tables = tables;
}

/*
 * Drops join filters whose operators are not leakproof, in all members (R6).
 */
static void
drop_leaky(List *filters, RfFilteredScan *scans, int nscans)
{
	ListCell   *cell;

	foreach(cell, filters)
	{
		RfJoinFilter *filter = lfirst(cell);

		if (get_func_leakproof(get_opcode(filter->clause->opno)))
			continue;
		for (int i = 0; i < nscans; i++)
		{
			if (scans[i].rel != NULL)
				scans[i].exprs[foreach_current_index(cell)] = NULL;
		}
	}
}

/*
 * Do the scans of a gate, and the nodes through which the join filters came, compute nothing of
 * the user's that tells whether they were run?
 */
static bool
are_leakproof(List *filters, const CustomScan *gate, const RfFilteredScan *scans, int n)
{
	ListCell   *cell;

	foreach(cell, filters)
	{
		if (((RfJoinFilter *) lfirst(cell))->leaky)
			return false;
	}
	for (int i = 0; i < n; i++)
	{
		const RfGateRel *rel = scans[i].rel;
		const Plan *plan = list_nth(gate->custom_plans, i);

		if (rel != NULL && (!rf_scan_is_leakproof(rel->root, rel->rel, rel->rel->baserestrictinfo) ||
							!rf_expression_is_leakproof(rel->root, (Node *) plan->targetlist)))
			return false;
	}
	return true;
}

/*
 * Adds join filters to what a gate asks.  Returns the scan whose columns the
 * conditions refer to, or NULL if no member's index can use the join filters.
 */
Plan *
rf_add_join_filters(RfPushdown *pushdown, CustomScan *gate, List *filters)
{
	int			n = list_length(gate->custom_plans);
	int			nfilters = list_length(filters);
	RfFilteredScan *scans = palloc(n * sizeof(RfFilteredScan));
	RfGateQuestion asked;
	int			first_key;
	int			nold;
	bool		secured = false;
	bool		hidden = false;

	rf_gate_read(gate, &asked);
	first_key = list_length(asked.keys);
	nold = list_length(asked.opclasses);
	for (int i = 0; i < n; i++)
	{
		read_scan(pushdown, list_nth(gate->custom_plans, i), filters, &scans[i]);
		secured = secured || (scans[i].rel != NULL && scans[i].rel->secured);
		hidden = hidden || (scans[i].rel != NULL && scans[i].rel->hidden_values);
	}
	if (secured && !are_leakproof(filters, gate, scans, n))
		return NULL;
	if (secured)
		drop_leaky(filters, scans, n);
	for (int i = 0; i < n; i++)
	{
		List	   *indexes = scans[i].rel != NULL ?
		choose_indexes(&scans[i], nfilters) : NIL;

		if (indexes != NIL &&
			add_conditions(gate, &asked, filters, &scans[i],
						   add_opclasses(&asked, indexes, first_key, nfilters),
						   first_key))
		{
			add_members(&asked, scans, &scans[i], indexes, nold, nfilters);
			asked.secured = asked.secured || secured || hidden;
			asked.external = asked.secured ? rf_external_params(pushdown->planning) : NIL;
			rf_gate_write(gate, &asked);
			return list_nth(gate->custom_plans, i);
		}
	}
	return NULL;
}
