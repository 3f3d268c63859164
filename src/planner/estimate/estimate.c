/*-------------------------------------------------------------------------
 *
 * estimate.c
 *	  The planner's row estimates for conditions on indexed columns.
 *
 * A range filter can count (rfestimate.c).  A count is better than the
 * histogram where there is no histogram, for ranges narrower than one of its
 * bins, for values that are not there, and for all ranges if keys hardly
 * repeat.
 *
 * The planner multiplies a relation's size by the selectivities of its
 * restrictions.  It keeps each of them in RestrictInfo.norm_selec and does not
 * compute one that is there.  So estimates are put there, clause by clause,
 * before the planner looks; it then handles pairs of bounds, other columns and
 * join clauses as usual.  No hook is called between the making of the
 * restrictions and the sizing of the first relation.  But
 * get_relation_stats_hook is called while the first clause is estimated.  All
 * relations' clauses are estimated then.  Core is already estimating that
 * first clause: it gets a made-up row of statistics from which core computes
 * the wanted number.  The content of that row is found by trying.
 *
 * Results are right without all this.  Estimates that are not cheap are left
 * to core.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "planner/condition/condition.h"
#include "planner/estimate/estimate.h"
#include "planner/knowledge/knowledge.h"
#include "planner/planning/planning.h"
#include "rangefilter/rangefilter.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

/* The most relations that are estimated in one planning. */
#define MAX_RELS 400

/*
 * The number of distinct values that is tried first in a made-up row (core
 * rounds to whole numbers).  If the selectivity is then below DIVIDED, core
 * divides by this number for the clause.
 */
#define TRIED_DISTINCT 1e9
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
 * The relation, as the planner knows it now.  NULL if the planner removed it
 * because a left join does not need it; from PostgreSQL 16 on it also frees
 * the relation.
 */
static RelOptInfo *
counted_rel(const RfCountRel *counted)
{
	return counted->root->simple_rel_array[counted->relid];
}

/*
 * Remembers the rangefilter indexes (RfRelIndex, at least one) of a relation,
 * for counting.  Not if policies or security barriers hide rows of it:
 * estimates would reveal them.
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
	rf_planning->estimated.root = NULL;
	foreach(cell, indexes)
	{
		RfRelIndex *index = lfirst(cell);

		/* Indexes on several columns come first: they count combinations. */
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
 * The selectivity that core computes for a clause with made-up statistics.
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
 * Finds statistics with which core gives a clause about the wanted
 * selectivity.  For equality core divides by the number of distinct values.
 * For everything else it multiplies by the share of values that are not NULL,
 * which may be above 1 here.
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
 * The first clause of a relation whose selectivity core does not know.  If
 * core is estimating the relation's clauses now, it is estimating this one.
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
		double		selec = found.selec[i];

		/* The planner takes exactly this for "not known". */
		if (selec == DEFAULT_INEQ_SEL)
			selec += DBL_EPSILON;
		if (found.clauses[i] != current)
			found.clauses[i]->norm_selec = selec;
	}
}

/*
 * Is it uncertain in which order core estimates the relation's clauses?  Core
 * may begin with a clause that it extracted from a join clause with OR.  With
 * extended statistics it does not begin with the first clause.
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
 * Called while core estimates a clause on a relation.  Estimates the
 * restrictions of all relations that core has not sized yet.  Returns the
 * relation's entry, or NULL.  Core calls for each element of a list, so what was found
 * last is remembered.
 */
static RfCountRel *
estimate_rels(PlannerInfo *root, const RelOptInfo *under_way)
{
	RfEstimated *last = &rf_planning->estimated;
	RfCountRel *result = NULL;
	ListCell   *cell;

	if (last->root == root && last->rel == under_way &&
		last->relid == under_way->relid)
		return last->counted;

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
	last->root = root;
	last->rel = under_way;
	last->relid = under_way->relid;
	last->counted = result;
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
	return column->expr != NULL && equal(rf_strip_relabel(expr), column->expr);
}

/*
 * Core looks for the statistics of a column or an expression of a relation.
 * Supplies made-up ones if core estimates the clause that is being tried or
 * under way.
 *
 * For a subquery's column, core looks during the planning of the subquery but
 * passes the relation of the query above.  That relation is not one of this
 * planning.
 */
bool
rf_supply_stats(PlannerInfo *root, AttrNumber attno, Node *expr,
				VariableStatData *vardata)
{
	RelOptInfo *rel = vardata->rel;
	RfCountRel *counted;

	if (tried_rel != NULL)
	{
		bool		is_tried = rel == tried_rel && is_column(tried_column, attno, expr);

		if (is_tried)
			supply(vardata, &tried);
		return is_tried;
	}
	if (rf_planning == NULL || rf_planning->estimates == NIL || rel == NULL)
		return false;
	counted = estimate_rels(root, rel);

	/* Nobody frees the clause before the relation has its size. */
	if (counted == NULL || counted->current == NULL || rel->rows != 0 ||
		counted->current->norm_selec >= 0 ||
		!is_column(counted->column, attno, expr))
		return false;
	supply(vardata, &counted->made_up);
	return true;
}
