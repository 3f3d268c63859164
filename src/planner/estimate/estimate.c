/*-------------------------------------------------------------------------
 *
 * estimate.c
 *	  The planner's row estimates for conditions on indexed columns.
 *
 * A range filter can count (rfestimate.c).  That beats the histogram where there
 * is none, where the range is narrower than one of its bins, for a value that is
 * not there, and for all ranges where keys hardly repeat.
 *
 * The planner multiplies a relation's size by the selectivity of its
 * restrictions, which it keeps in RestrictInfo.norm_selec once they are known.
 * So that is where estimates are put, clause by clause, before it looks: pairs of
 * bounds, other columns and join clauses are then dealt with as ever.  No hook is
 * called between the making of the restrictions and the sizing of the first
 * relation, but get_relation_stats_hook is when the first clause is estimated.
 * All relations' clauses are dealt with then.  Only that first clause itself is
 * under way already: it gets a made-up row of statistics with which core comes
 * to the number that is wanted.  What that row must say is found by trying.
 *
 * Nothing here is needed for results to be right.  What cannot be had cheaply is
 * left to core.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "planner/estimate/estimate.h"
#include "planner/knowledge/knowledge.h"
#include "planner/planning/planning.h"
#include "rangefilter/rangefilter.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

/* So many relations are estimated, in one planning. */
#define MAX_RELS 100

/*
 * What is tried first in a made-up row (core rounds to whole numbers), and below
 * what selectivity a clause must then be one that divides by it.
 */
#define TRIED_DISTINCT 1e6
#define DIVIDED 1e-3

bool		rf_estimate_rows = true;

/* What a made-up row of statistics says. */
typedef struct RfMadeUp
{
	double		nullfrac;
	double		distinct;
} RfMadeUp;

/* A relation whose restrictions can be estimated. */
typedef struct RfCountRel
{
	PlannerInfo *root;
	Index		relid;			/* the planner may have dropped it since */
	List	   *indexes;		/* RfRelIndex */
	bool		done;
	RestrictInfo *current;		/* the clause under way, if it is ours ... */
	const RfIndexColumn *column;	/* ... which is about this, ... */
	RfMadeUp	made_up;		/* ... and gets these statistics */
} RfCountRel;


/* The column whose statistics are being tried, and what they say. */
static RelOptInfo *tried_rel = NULL;
static const RfIndexColumn *tried_column;
static RfMadeUp tried;

/*
 * The relation, as the planner knows it now; NULL if it was removed, as one that
 * a left join needs not is, from PostgreSQL 16 on with its memory.
 */
static RelOptInfo *
counted_rel(const RfCountRel *counted)
{
	return counted->root->simple_rel_array[counted->relid];
}

/*
 * Takes down which rangefilter indexes (RfRelIndex, at least one) a relation has
 * that can count.  Not where policies or security barriers hide rows: estimates
 * would tell of them.
 */
void
rf_estimate_note(PlannerInfo *root, RelOptInfo *rel, List *indexes)
{
	RfCountRel *counted;
	ListCell   *cell;

	if (!rf_enable || !rf_estimate_rows ||
		list_length(rf_planning->estimates) >= MAX_RELS ||
		rf_is_secured(root, rel->relid))
		return;
	counted = palloc0(sizeof(RfCountRel));
	counted->root = root;
	counted->relid = rel->relid;
	rf_planning->estimates = lappend(rf_planning->estimates, counted);
	foreach(cell, indexes)
	{
		RfRelIndex *index = lfirst(cell);

		/* Those that know of combinations come first. */
		counted->indexes = index->ncolumns > 1 ?
			lcons(index, counted->indexes) : lappend(counted->indexes, index);
	}
}

/*
 * A row of pg_statistic, as far as its fixed columns go.
 */
static HeapTuple
make_stats_tuple(const RfMadeUp *made_up)
{
	const Size	header = MAXALIGN(SizeofHeapTupleHeader);
	Size		len = header + sizeof(FormData_pg_statistic);
	HeapTuple	tuple = palloc0(HEAPTUPLESIZE + len);
	Form_pg_statistic form;

	tuple->t_len = len;
	tuple->t_data = (HeapTupleHeader) ((char *) tuple + HEAPTUPLESIZE);
	tuple->t_data->t_hoff = header;
	HeapTupleHeaderSetNatts(tuple->t_data, Natts_pg_statistic);
	form = (Form_pg_statistic) GETSTRUCT(tuple);
	form->stanullfrac = made_up->nullfrac;
	form->stadistinct = made_up->distinct;
	return tuple;
}

/*
 * Gives core statistics that were made up.
 */
static void
supply(VariableStatData *vardata, const RfMadeUp *made_up)
{
	vardata->statsTuple = make_stats_tuple(made_up);
	vardata->freefunc = heap_freetuple;
	vardata->acl_ok = true;		/* there is nothing in them to be hidden */
}

/*
 * What core makes of a clause with statistics that are made up.
 */
static double
try(RfCountRel *counted, const RfIndexColumn *column, Node *clause,
	const RfMadeUp *made_up)
{
	double		result;

	tried_rel = counted_rel(counted);
	tried_column = column;
	tried = *made_up;
	PG_TRY();
	{
		result = clause_selectivity(counted->root, clause, 0, JOIN_INNER, NULL);
	}
	PG_FINALLY();
	{
		tried_rel = NULL;
	}
	PG_END_TRY();
	return result;
}

/*
 * Finds statistics with which core gives a clause some selectivity, or nearly.
 * Equality divides by the number of distinct values, and does not say more than
 * one share of them; everything else multiplies by the share of values that are
 * not NULL, which can be above 1 here.
 */
static bool
find_made_up(RfCountRel *counted, const RfIndexColumn *column, Node *clause,
			 double wanted, RfMadeUp *made_up)
{
	double		tolerance = Max(wanted * 0.001, 1e-7);
	double		neutral;

	made_up->nullfrac = 0;
	made_up->distinct = TRIED_DISTINCT;
	neutral = try(counted, column, clause, made_up);
	if (neutral <= 0)
		return false;
	if (neutral < DIVIDED)
	{
		double		values = neutral * TRIED_DISTINCT;

		made_up->distinct = Max(floor(values / Max(wanted, 1e-12)), 1);
		neutral = values / made_up->distinct;
	}
	made_up->nullfrac = 1 - wanted / neutral;
	return fabs(try(counted, column, clause, made_up) - wanted) <= tolerance;
}

/*
 * The first clause of a relation that core does not know the selectivity of: if
 * it is just estimating the relation's clauses, that is the one.
 */
static RestrictInfo *
first_unknown(RelOptInfo *rel)
{
	ListCell   *cell;

	foreach(cell, rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);

		if (!rinfo->pseudoconstant && rinfo->norm_selec < 0)
			return rinfo;
	}
	return NULL;
}

/*
 * Estimates what one index can count.  current is the clause under way, or NULL.
 */
static void
estimate_by_index(RfCountRel *counted, const RfRelIndex *index,
				  RestrictInfo *current)
{
	RfCounted	found;

	if (!rf_count_clauses(counted->root, counted_rel(counted), index,
						  counted->current, &found))
		return;
	for (int i = 0; i < found.n; i++)
	{
		const RfIndexColumn *column = &index->columns[found.columns[i]];

		if (found.clauses[i] != current)
			continue;
		if (!find_made_up(counted, column, (Node *) current->clause,
						  found.selec[i], &counted->made_up))
			return;
		counted->column = column;
		counted->current = current;
	}
	for (int i = 0; i < found.n; i++)
	{
		if (found.clauses[i] != current)
			found.clauses[i]->norm_selec = found.selec[i];
	}
}

/*
 * May clauses of this relation be estimated of which it is not certain that they
 * are restrictions?  The planner extracts some from join clauses with OR.  And
 * with extended statistics it does not begin with the first clause.
 */
static bool
order_unknown(const RelOptInfo *rel)
{
	ListCell   *cell;

	if (rel->statlist != NIL)
		return true;
	foreach(cell, rel->joininfo)
	{
		if (rel->reloptkind == RELOPT_BASEREL &&
			restriction_is_or_clause(lfirst_node(RestrictInfo, cell)))
			return true;
	}
	return false;
}

/*
 * Estimates the restrictions of one relation.
 */
static void
estimate_rel(RfCountRel *counted, bool under_way)
{
	RelOptInfo *rel = counted_rel(counted);
	RestrictInfo *current = under_way ? first_unknown(rel) : NULL;
	ListCell   *cell;

	counted->done = true;
	if (order_unknown(rel))
		return;
	foreach(cell, counted->indexes)
		estimate_by_index(counted, lfirst(cell), current);
}

/*
 * Core estimates a clause on some relation.  Estimates what restrictions it has
 * not come to; returns the relation's entry, if it has one.
 */
static RfCountRel *
estimate_rels(PlannerInfo *root, const RelOptInfo *under_way)
{
	RfCountRel *result = NULL;
	ListCell   *cell;

	foreach(cell, rf_planning->estimates)
	{
		RfCountRel *counted = lfirst(cell);
		RelOptInfo *rel;

		if (counted->root != root || (rel = counted_rel(counted)) == NULL)
			continue;
		if (rel == under_way)
			result = counted;
		if (!counted->done && rel->baserestrictinfo != NIL &&
			rel->rows == 0 && !IS_DUMMY_REL(rel))
		{
			MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext,
														  "rangefilter estimates",
														  ALLOCSET_SMALL_SIZES);
			MemoryContext old = MemoryContextSwitchTo(scratch);

			estimate_rel(counted, rel == under_way);
			MemoryContextSwitchTo(old);
			MemoryContextDelete(scratch);
		}
	}
	return result;
}

/*
 * Is this the column, or the expression?
 */
static bool
is_column(const RfIndexColumn *column, AttrNumber attno, Node *expr)
{
	if (expr == NULL)
		return attno != 0 && attno == column->attno;
	while (IsA(expr, RelabelType))
		expr = (Node *) ((RelabelType *) expr)->arg;
	return column->expr != NULL && equal(expr, column->expr);
}

/*
 * Core looks for the statistics of a column or an expression of a relation.
 * Supplies them, if it is for the clause that is being tried or under way.
 *
 * The statistics of a subquery's column are looked for in its own planning, but
 * with the relation of the query above, which is none of that planning's.
 */
bool
rf_supply_stats(PlannerInfo *root, AttrNumber attno, Node *expr,
				VariableStatData *vardata)
{
	RelOptInfo *rel = vardata->rel;
	RfCountRel *counted;

	if (tried_rel != NULL)
	{
		if (rel != tried_rel || !is_column(tried_column, attno, expr))
			return false;
		supply(vardata, &tried);
		return true;
	}
	if (rf_planning == NULL || rf_planning->estimates == NIL || rel == NULL)
		return false;
	counted = estimate_rels(root, rel);

	/* The clause is sure to be there until the relation has its size. */
	if (counted == NULL || counted->current == NULL || rel->rows != 0 ||
		counted->current->norm_selec >= 0 ||
		!is_column(counted->column, attno, expr))
		return false;
	supply(vardata, &counted->made_up);
	return true;
}
