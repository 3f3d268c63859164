/*-------------------------------------------------------------------------
 *
 * match.c
 *	  A table's restrictions as a condition on its rangefilter indexes.
 *
 * The result is a small tree: sets of keys to ask indexes for, under AND and
 * OR.  Under AND, clauses that no index can answer are left out; under OR
 * every arm must be answered.  Sets for the same index are intersected or
 * united at once, so that "x > 1 AND x < 9" costs one probe per partition.
 *
 * A clause is about one column of an index on several columns.  The sets of
 * its columns are collected up to the next OR or the end of the clauses, and
 * then joined to a set of keys of rows: settled.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/rowkey.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "planner/condition/condition.h"
#include "planner/knowledge/knowledge.h"
#include "planner/knowledge/question.h"
#include "rewrite/rewriteManip.h"
#include "utils/memutils.h"

/* What matching a clause needs to know. */
typedef struct RfMatchContext
{
	Index		varno;			/* of the relation the clauses are about */
	RfTable    *table;
	List	   *clauses;		/* all that may be used */
	Node	  **keys;			/* per column: key expression for this rel */
	int8	   *usable;			/* per index: predicate implied? -1: not asked */
	int		   *used;			/* per index: columns that made a condition */
	List	   *predicates;		/* of indexes that are asked for any row */
} RfMatchContext;

/*
 * A condition with the given arguments.
 */
static RfCond *
make_cond(RfCondKind kind, List *args)
{
	RfCond	   *cond = palloc0(sizeof(RfCond));

	cond->kind = kind;
	cond->probe = -1;
	cond->args = args;
	return cond;
}

/*
 * A question to an index.
 */
static RfCond *
make_probe(RfIndex *index, int column, RfKeySet *set)
{
	RfCond	   *cond = make_cond(RF_COND_PROBE, NIL);

	cond->index = index;
	cond->column = column;
	cond->set = set;
	return cond;
}

/*
 * Do two conditions ask for keys of the same kind, of one index or of one of
 * its columns?
 */
static bool
same_keys(const RfCond *a, const RfCond *b)
{
	return a->kind == RF_COND_PROBE && b->kind == RF_COND_PROBE &&
		a->index == b->index && a->column == b->column;
}

/*
 * Takes the probes for keys of one kind out of a list of conditions and merges
 * them into one.  It merges them in pairs, so that a thousand arms do not cost
 * a million steps.
 */
static RfCond *
merge_probes(RfCondKind kind, const RfCond *first, List **conds)
{
	RfKeySet  **sets = palloc(list_length(*conds) * sizeof(RfKeySet *));
	int			n = 0;
	RfCond	   *result;
	ListCell   *cell;

	foreach(cell, *conds)
	{
		RfCond	   *cond = lfirst(cell);

		if (same_keys(cond, first))
		{
			sets[n++] = cond->set;
			*conds = foreach_delete_current(*conds, cell);
		}
	}
	while (n > 1)
	{
		for (int i = 0; i < n / 2; i++)
			sets[i] = kind == RF_COND_AND ?
				rf_keyset_intersect(sets[2 * i], sets[2 * i + 1]) :
				rf_keyset_union(sets[2 * i], sets[2 * i + 1]);
		if (n % 2 == 1)
			sets[n / 2] = sets[n - 1];
		n = (n + 1) / 2;
	}
	result = make_probe(first->index, first->column, sets[0]);
	pfree(sets);
	return result;
}

/*
 * Conditions, with those of the given kind replaced by their arguments, which
 * are never of that kind.
 */
static List *
flat_list(RfCondKind kind, const List *conds)
{
	List	   *flat = NIL;
	ListCell   *cell;

	foreach(cell, conds)
	{
		RfCond	   *cond = lfirst(cell);

		flat = cond->kind == kind ? list_concat(flat, cond->args) :
			lappend(flat, cond);
	}
	return flat;
}

/*
 * The conditions under AND or OR; NULL for none.  No two arguments of the
 * result are probes for keys of the same kind.  The conditions are not changed, but
 * the result may have parts of them.
 */
static RfCond *
combine(RfCondKind kind, const List *conds)
{
	List	   *rest = flat_list(kind, conds);
	List	   *args = NIL;

	while (rest != NIL)
	{
		RfCond	   *first = linitial(rest);

		if (first->kind == RF_COND_PROBE)
			args = lappend(args, merge_probes(kind, first, &rest));
		else
		{
			args = lappend(args, first);
			rest = list_delete_first(rest);
		}
	}
	if (list_length(args) <= 1)
		return args == NIL ? NULL : linitial(args);
	return make_cond(kind, args);
}

/*
 * The conditions a condition is an AND of.
 */
static List *
conjuncts(RfCond *cond)
{
	return cond->kind == RF_COND_AND ? cond->args : list_make1(cond);
}

/*
 * Joins the conditions on columns of one index to a condition on its rows.
 * first is one of them.
 */
static RfCond *
row_probe(RfMatchContext *context, RfCond *first, List *conds)
{
	RfIndex    *index = first->index;
	RfKeySet   *sets[1 + RF_MAX_COLUMNS] = {NULL};	/* ends with NULL */
	RfKeySet   *set;
	int			n = 0;
	ListCell   *cell;

	foreach(cell, conds)
	{
		RfCond	   *cond = lfirst(cell);

		if (cond->kind == RF_COND_PROBE && cond->index == index &&
			cond->column != RF_WHOLE_KEY)
			sets[cond->column] = cond->set;
	}
	while (sets[n] != NULL)
		n++;
	set = rf_row_set(index->codec, sets, n, &context->used[index - context->table->indexes]);
	return make_probe(index, RF_WHOLE_KEY, set);
}

/*
 * Makes a condition on rows from one that may also be on columns.  Conditions
 * on columns are left out if there is none on the first column.  NULL if
 * nothing is left.
 */
static RfCond *
settle(RfMatchContext *context, RfCond *cond)
{
	List	   *conds = cond == NULL ? NIL : conjuncts(cond);
	List	   *settled = NIL;
	ListCell   *cell;

	foreach(cell, conds)
	{
		RfCond	   *part = lfirst(cell);

		if (part->kind != RF_COND_PROBE || part->column == RF_WHOLE_KEY)
			settled = lappend(settled, part);
		else if (part->column == 0)
			settled = lappend(settled, row_probe(context, part, conds));
	}
	return combine(RF_COND_AND, settled);
}

/*
 * Return a copy of an index's predicate (a list under AND), in terms of the relation.
 */
static List *
index_predicate(RfMatchContext *context, int i)
{
	List	   *predicate = copyObject(context->table->indexes[i].predicate);

	ChangeVarNodes((Node *) predicate, 1, context->varno, 0);
	return predicate;
}

/*
 * May this index be asked?  A partial one only if the query's clauses imply
 * its predicate.
 */
static bool
index_usable(RfMatchContext *context, int i)
{
	if (context->table->indexes[i].predicate == NIL)
		return true;
	if (context->usable[i] < 0)
		context->usable[i] = predicate_implied_by(index_predicate(context, i),
												  context->clauses, false);
	return context->usable[i];
}

/*
 * The expression of an index's expression column, in terms of the relation.
 */
static Node *
column_key(RfMatchContext *context, int i, int column)
{
	Node	   *expr = context->table->indexes[i].columns[column].expr;
	Node	  **key = &context->keys[i * RF_MAX_COLUMNS + column];

	if (expr != NULL && *key == NULL)
	{
		*key = copyObject(expr);
		ChangeVarNodes(*key, 1, context->varno, 0);
	}
	return *key;
}

/*
 * A clause that is neither AND nor OR: makes a probe for each index that can
 * answer it.
 */
static RfCond *
match_simple_clause(RfMatchContext *context, Node *clause)
{
	List	   *conds = NIL;

	for (int i = 0; i < context->table->nindexes; i++)
	{
		RfIndex    *index = &context->table->indexes[i];

		for (int c = 0; c < index->ncolumns; c++)
		{
			RfKeySet   *set = rf_clause_set(&index->columns[c],
											context->varno,
											column_key(context, i, c), clause,
											false);

			if (set != NULL && index_usable(context, i))
				conds = lappend(conds,
								make_probe(index,
										   index->ncolumns > 1 ? c : RF_WHOLE_KEY,
										   set));
		}
	}
	return combine(RF_COND_AND, conds);
}

static RfCond *match_clause(RfMatchContext *context, Node *clause);

/*
 * AND: arguments that no index can answer are left out.
 */
static RfCond *
match_and(RfMatchContext *context, List *args)
{
	List	   *conds = NIL;
	ListCell   *cell;

	foreach(cell, args)
	{
		RfCond	   *cond = match_clause(context, lfirst(cell));

		if (cond != NULL)
			conds = lappend(conds, cond);
	}
	return combine(RF_COND_AND, conds);
}

/*
 * The probe among the conjuncts of a condition that asks for keys of the same
 * kind as the given one does; NULL if there is none.
 */
static RfCond *
find_same_keys(RfCond *cond, const RfCond *probe)
{
	ListCell   *cell;

	foreach(cell, conjuncts(cond))
	{
		if (same_keys(lfirst(cell), probe))
			return lfirst(cell);
	}
	return NULL;
}

/*
 * Conditions on columns that all arms of an OR are about.  With an index on
 * (a, b), "b = 1 OR b = 2" is of use together with another clause on a,
 * although none of its arms is of use alone.
 */
static List *
common_columns(List *arms)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, conjuncts(linitial(arms)))
	{
		RfCond	   *probe = lfirst(cell);
		List	   *probes = NIL;
		ListCell   *arm;

		if (probe->kind != RF_COND_PROBE || probe->column == RF_WHOLE_KEY)
			continue;
		foreach(arm, arms)
		{
			RfCond	   *same = find_same_keys(lfirst(arm), probe);

			if (same != NULL)
				probes = lappend(probes, same);
		}
		if (list_length(probes) == list_length(arms))
			result = lappend(result, combine(RF_COND_OR, probes));
	}
	return result;
}

/*
 * The condition that one of these, at least one, is true.
 */
static RfCond *
combine_arms(RfMatchContext *context, List *arms)
{
	List	   *conds = common_columns(arms);
	List	   *settled = NIL;
	ListCell   *cell;

	foreach(cell, arms)
	{
		RfCond	   *arm = settle(context, lfirst(cell));

		if (arm == NULL)
			return combine(RF_COND_AND, conds);
		settled = lappend(settled, arm);
	}
	return combine(RF_COND_AND, lappend(conds, combine(RF_COND_OR, settled)));
}

/*
 * OR: every arm must be answered.
 */
static RfCond *
match_or(RfMatchContext *context, List *args)
{
	List	   *arms = NIL;
	ListCell   *cell;

	foreach(cell, args)
	{
		RfCond	   *arm = match_clause(context, lfirst(cell));

		if (arm == NULL)
			return NULL;
		arms = lappend(arms, arm);
	}
	return combine_arms(context, arms);
}

/*
 * A clause as a condition; NULL where the indexes say nothing about it.
 */
static RfCond *
match_clause(RfMatchContext *context, Node *clause)
{
	check_stack_depth();
	if (IsA(clause, RestrictInfo))
		clause = (Node *) ((RestrictInfo *) clause)->clause;
	if (is_andclause(clause))
		return match_and(context, ((BoolExpr *) clause)->args);
	if (is_orclause(clause))
		return match_or(context, ((BoolExpr *) clause)->args);
	return match_simple_clause(context, clause);
}

/*
 * The clauses that may be used without revealing rows hidden by security
 * barriers (R6 in ARCHITECTURE.md).
 */
List *
rf_usable_clauses(RelOptInfo *rel, List *restrictions)
{
	List	   *clauses = NIL;
	ListCell   *cell;

	foreach(cell, restrictions)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);

		if (!rinfo->pseudoconstant &&
			restriction_is_securely_promotable(rinfo, rel))
			clauses = lappend(clauses, rinfo->clause);
	}
	return clauses;
}

/*
 * Return the set of all keys and NULL.
 */
static RfKeySet *
all_keys(RfKeyKind kind)
{
	return rf_keyset_union(rf_keyset_nulls(kind), rf_keyset_not_null(kind));
}

/*
 * Flattens the sets of keys, for comparing and for keeping them in a plan.  A set that is too
 * large for a plan is replaced by that of all keys: that skips less, and loses nothing.
 */
static void
flatten(RfCond *cond)
{
	ListCell   *cell;

	if (cond->kind == RF_COND_PROBE &&
		(cond->flat = rf_keyset_serialize(cond->set)) == NULL)
	{
		cond->set = all_keys(cond->set->kind);
		cond->flat = rf_keyset_serialize(cond->set);
	}
	foreach(cell, cond->args)
		flatten(lfirst(cell));
}

/*
 * Return true if one of these conditions, which are under AND, probes the index.
 */
static bool
asks_index(const List *conds, const RfIndex *index)
{
	ListCell   *cell;

	foreach(cell, conds)
	{
		const RfCond *cond = lfirst(cell);

		if (cond->kind == RF_COND_PROBE && cond->index == index)
			return true;
	}
	return false;
}

/*
 * Adds probes for all keys to a condition (NULL: none), of partial indexes that it does not
 * probe.  If the clauses imply the predicate, every row that matches them is in the index, with
 * some key or NULL.  Return the condition, NULL if there is nothing to ask.
 */
static RfCond *
ask_for_any_row(RfMatchContext *context, RfCond *cond)
{
	List	   *conds = cond == NULL ? NIL : list_copy(conjuncts(cond));

	for (int i = 0; i < context->table->nindexes; i++)
	{
		RfIndex    *index = &context->table->indexes[i];

		if (index->predicate == NIL || asks_index(conds, index) ||
			!index_usable(context, i))
			continue;
		conds = lappend(conds, make_probe(index, RF_WHOLE_KEY,
										  all_keys(index->codec->kind)));
		context->predicates = list_concat(context->predicates,
										  index_predicate(context, i));
	}
	return combine(RF_COND_AND, conds);
}

/*
 * Return true if a clause implies a part of the predicate of an index that is asked for any
 * row.
 */
static bool
implies_predicate(RfMatchContext *context, Node *clause)
{
	ListCell   *cell;

	foreach(cell, context->predicates)
	{
		if (predicate_implied_by(list_make1(lfirst(cell)), list_make1(clause), false))
			return true;
	}
	return false;
}

/*
 * Was any part of a clause's condition used in the condition on rows, which was settled last?
 */
static bool
was_used(const RfMatchContext *context, RfCond *cond)
{
	ListCell   *cell;

	foreach(cell, conjuncts(cond))
	{
		RfCond	   *part = lfirst(cell);

		if (part->kind != RF_COND_PROBE || part->column == RF_WHOLE_KEY ||
			part->column < context->used[part->index - context->table->indexes])
			return true;
	}
	return false;
}

/*
 * Begins to match clauses about a relation, which varno is, with the indexes of its table.
 */
static RfMatchContext *
begin_match(List *clauses, Index varno, RfTable *table)
{
	RfMatchContext *context = palloc(sizeof(RfMatchContext));

	context->varno = varno;
	context->table = table;
	context->clauses = clauses;
	context->keys = palloc0((table->nindexes + 1) * RF_MAX_COLUMNS * sizeof(Node *));
	context->used = palloc((table->nindexes + 1) * sizeof(int));
	context->usable = palloc(table->nindexes + 1);
	memset(context->usable, -1, table->nindexes);
	context->predicates = NIL;
	return context;
}

/*
 * Makes a condition from the clauses about a relation that the indexes of its
 * table can answer.  False if they can answer none.
 */
bool
rf_match_clauses(List *clauses, Index varno, RfTable *table, RfMatch *match)
{
	RfMatchContext *context;
	List	   *conds = NIL;	/* of each clause, NULL for none */
	List	   *all = NIL;
	ListCell   *cell;
	ListCell   *other;

	memset(match, 0, sizeof(*match));
	if (clauses == NIL)
		return false;
	context = begin_match(clauses, varno, table);
	foreach(cell, clauses)
	{
		RfCond	   *cond = match_clause(context, lfirst(cell));

		conds = lappend(conds, cond);
		if (cond != NULL)
			all = lappend(all, cond);
	}
	memset(context->used, 0, table->nindexes * sizeof(int));
	match->cond = ask_for_any_row(context, settle(context, combine(RF_COND_AND, all)));
	if (match->cond == NULL)
		return false;
	forboth(cell, clauses, other, conds)
	{
		if ((lfirst(other) != NULL && was_used(context, lfirst(other))) ||
			implies_predicate(context, lfirst(cell)))
			match->clauses = lappend(match->clauses, lfirst(cell));
	}
	return true;
}

/*
 * Does a clause that is neither AND nor OR say anything about a column of an
 * index?  None of the keys is an expression.
 */
bool
rf_clause_known(Node *clause, Index varno, RfTable *table)
{
	for (int i = 0; i < table->nindexes; i++)
	{
		const RfIndex *index = &table->indexes[i];

		for (int c = 0; c < index->ncolumns; c++)
		{
			if (rf_clause_set(&index->columns[c], varno, NULL, clause, true) != NULL)
				return true;
		}
	}
	return false;
}

/*
 * The same as rf_match_clauses(); the sets of keys are serialized.  Indexes that only
 * partitions have are matched if with_own is set.
 */
bool
rf_match_flat(List *clauses, Index varno, RfTable *table, bool with_own, RfMatch *match)
{
	RfTable		matched = *table;

	memset(match, 0, sizeof(*match));
	if (!with_own)
		matched.nindexes = table->npartitioned;
	if (matched.nindexes == 0 || !rf_match_clauses(clauses, varno, &matched, match))
		return false;
	flatten(match->cond);
	return true;
}

/*
 * The same for a relation's restrictions.
 */
bool
rf_match(RelOptInfo *rel, RfTable *table, bool with_own, RfMatch *match)
{
	return rf_match_flat(rf_usable_clauses(rel, rel->baserestrictinfo), rel->relid,
						 table, with_own, match);
}

/*
 * Do two conditions ask the same of the same indexes?
 */
bool
rf_same_cond(const RfCond *a, const RfCond *b)
{
	ListCell   *cell_a;
	ListCell   *cell_b;

	if (a->kind != b->kind || list_length(a->args) != list_length(b->args))
		return false;
	if (a->kind == RF_COND_PROBE)
		return a->index->oid == b->index->oid &&
			VARSIZE(a->flat) == VARSIZE(b->flat) &&
			memcmp(a->flat, b->flat, VARSIZE(a->flat)) == 0;
	forboth(cell_a, a->args, cell_b, b->args)
	{
		if (!rf_same_cond(lfirst(cell_a), lfirst(cell_b)))
			return false;
	}
	return true;
}

/*
 * The OIDs of the indexes a condition asks.
 */
List *
rf_cond_indexes(const RfCond *cond)
{
	List	   *oids = NIL;
	ListCell   *cell;

	if (cond->kind == RF_COND_PROBE)
		return list_make1_oid(cond->index->oid);
	foreach(cell, cond->args)
		oids = list_concat_unique_oid(oids, rf_cond_indexes(lfirst(cell)));
	return oids;
}

/*
 * How many ranges of keys have to be asked for at least: one condition under AND may suffice.
 */
double
rf_cond_ranges(const RfCond *cond)
{
	double		ranges = 0;
	ListCell   *cell;

	if (cond->kind == RF_COND_PROBE)
		return cond->set->nranges;
	foreach(cell, cond->args)
	{
		double		more = rf_cond_ranges(lfirst(cell));

		if (cond->kind == RF_COND_OR)
			ranges += more;
		else if (foreach_current_index(cell) == 0 || more < ranges)
			ranges = more;
	}
	return ranges;
}
