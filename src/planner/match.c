/*-------------------------------------------------------------------------
 *
 * match.c
 *	  A table's restrictions as a condition on its rangefilter indexes.
 *
 * The result is a small tree: sets of keys to ask indexes for, under AND and
 * OR.  Under AND, what no index knows of is left out; under OR every arm must
 * be covered.  Sets for the same index are intersected or united at once, so
 * that "x > 1 AND x < 9" costs one probe per partition.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "planner/planner.h"
#include "rewrite/rewriteManip.h"

/* What matching a clause needs to know. */
typedef struct RfMatchContext
{
	Index		varno;			/* of the relation the clauses are about */
	RfTable    *table;
	List	   *clauses;		/* all that may be used */
	Node	  **keys;			/* per index: key expression for this rel */
	int8	   *usable;			/* per index: predicate implied? -1: not asked */
} RfMatchContext;

static RfCond *match_clause(RfMatchContext *context, Node *clause);

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
 * Takes the probes of one index out of a list of conditions and makes them
 * one.  In pairs, so that a thousand arms do not cost a million steps.
 */
static RfCond *
merge_probes(RfCondKind kind, RfIndex *index, List **conds)
{
	RfKeySet  **sets = palloc(list_length(*conds) * sizeof(RfKeySet *));
	int			n = 0;
	RfCond	   *result = make_cond(RF_COND_PROBE, NIL);
	ListCell   *cell;

	foreach(cell, *conds)
	{
		RfCond	   *cond = lfirst(cell);

		if (cond->kind == RF_COND_PROBE && cond->index == index)
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
	result->index = index;
	result->set = sets[0];
	pfree(sets);
	return result;
}

/*
 * The conditions under AND or OR; NULL for none.  The list is used up.
 */
static RfCond *
combine(RfCondKind kind, List *conds)
{
	List	   *args = NIL;

	while (conds != NIL)
	{
		RfCond	   *first = linitial(conds);

		if (first->kind == kind)
			conds = list_concat(list_delete_first(conds), first->args);
		else if (first->kind == RF_COND_PROBE)
			args = lappend(args, merge_probes(kind, first->index, &conds));
		else
		{
			args = lappend(args, first);
			conds = list_delete_first(conds);
		}
	}
	if (list_length(args) <= 1)
		return args == NIL ? NULL : linitial(args);
	return make_cond(kind, args);
}

/*
 * May this index be asked?  A partial one only where the query is about
 * nothing but its rows.
 */
static bool
index_usable(RfMatchContext *context, int i)
{
	List	   *predicate = context->table->indexes[i].predicate;

	if (predicate == NIL)
		return true;
	if (context->usable[i] < 0)
	{
		predicate = copyObject(predicate);
		ChangeVarNodes((Node *) predicate, 1, context->varno, 0);
		context->usable[i] = predicate_implied_by(predicate,
												  context->clauses, false);
	}
	return context->usable[i];
}

/*
 * The key expression of an index on one, in terms of the relation.
 */
static Node *
index_key(RfMatchContext *context, int i)
{
	Node	   *expr = context->table->indexes[i].expr;

	if (expr != NULL && context->keys[i] == NULL)
	{
		context->keys[i] = copyObject(expr);
		ChangeVarNodes(context->keys[i], 1, context->varno, 0);
	}
	return context->keys[i];
}

/*
 * A clause that is neither AND nor OR: asks all indexes that know of it.
 */
static RfCond *
match_simple_clause(RfMatchContext *context, Node *clause)
{
	List	   *conds = NIL;

	for (int i = 0; i < context->table->nindexes; i++)
	{
		RfIndex    *index = &context->table->indexes[i];
		RfKeySet   *set = rf_clause_set(index, context->varno,
										index_key(context, i), clause);

		if (set != NULL && index_usable(context, i))
		{
			RfCond	   *cond = make_cond(RF_COND_PROBE, NIL);

			cond->index = index;
			cond->set = set;
			conds = lappend(conds, cond);
		}
	}
	return combine(RF_COND_AND, conds);
}

/*
 * AND and OR.
 */
static RfCond *
match_bool_clause(RfMatchContext *context, RfCondKind kind, List *args)
{
	List	   *conds = NIL;
	ListCell   *cell;

	foreach(cell, args)
	{
		RfCond	   *cond = match_clause(context, lfirst(cell));

		if (cond != NULL)
			conds = lappend(conds, cond);
		else if (kind == RF_COND_OR)
			return NULL;
	}
	return combine(kind, conds);
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
		return match_bool_clause(context, RF_COND_AND,
								 ((BoolExpr *) clause)->args);
	if (is_orclause(clause))
		return match_bool_clause(context, RF_COND_OR,
								 ((BoolExpr *) clause)->args);
	return match_simple_clause(context, clause);
}

/*
 * The clauses that may be used without telling what security barriers hide
 * (R6 in src/README.md).
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
 * Flattens the sets of keys, for comparing and for keeping them in a plan.
 */
static void
flatten(RfCond *cond)
{
	ListCell   *cell;

	if (cond->kind == RF_COND_PROBE)
		cond->flat = rf_keyset_serialize(cond->set);
	foreach(cell, cond->args)
		flatten(lfirst(cell));
}

/*
 * What of some clauses about a relation the indexes of its table can answer;
 * false for nothing.
 */
bool
rf_match_clauses(List *clauses, Index varno, RfTable *table, RfMatch *match)
{
	RfMatchContext context;
	List	   *conds = NIL;
	ListCell   *cell;

	memset(match, 0, sizeof(*match));
	if (table->nindexes == 0 || clauses == NIL)
		return false;
	context.varno = varno;
	context.table = table;
	context.clauses = clauses;
	context.keys = palloc0(table->nindexes * sizeof(Node *));
	context.usable = palloc(table->nindexes);
	memset(context.usable, -1, table->nindexes);

	foreach(cell, context.clauses)
	{
		RfCond	   *cond = match_clause(&context, lfirst(cell));

		if (cond != NULL)
		{
			conds = lappend(conds, cond);
			match->clauses = lappend(match->clauses, lfirst(cell));
		}
	}
	match->cond = combine(RF_COND_AND, conds);
	return match->cond != NULL;
}

/*
 * The same for a relation's restrictions; the sets of keys are serialized.
 */
bool
rf_match(RelOptInfo *rel, RfTable *table, RfMatch *match)
{
	if (table->nindexes == 0)
	{
		memset(match, 0, sizeof(*match));
		return false;
	}
	if (!rf_match_clauses(rf_usable_clauses(rel, rel->baserestrictinfo),
						  rel->relid, table, match))
		return false;
	flatten(match->cond);
	return true;
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
