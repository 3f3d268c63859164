/*-------------------------------------------------------------------------
 *
 * whcost.c
 *	  amcostestimate.
 *
 * Operators, strategies and statistics are those of a btree index.  So core's
 * estimate for a btree is right for the number of entries and leaves that a
 * scan reads, and for the correlation of index and table.  Two things differ.
 * The planner knows only the height of btrees, and charges 50 operators for
 * each page on the way down.  The search within a page costs less here.
 * Measurements agree with 300 children on a directory page and half of core's
 * price.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/stratnum.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "utils/index_selfuncs.h"
#include "utils/lsyscache.h"
#include "wormhole/am/wormhole.h"
#include "wormhole/index/whindex.h"

/* Children of a directory page, and operators charged for a page. */
#define FANOUT			300.0
#define PAGE_OPERATORS	25.0

/*
 * Is this a wormhole index that cannot be used (see wh_check_collators())?
 * The caller has locked the index.  May read the metapage.
 */
bool
wh_is_unusable(const IndexOptInfo *info)
{
	Relation	index;
	bool		result;
	int			i = 0;

	if (info->amcostestimate != wh_costestimate)
		return false;
	while (i < info->nkeycolumns && !OidIsValid(info->indexcollations[i]))
		i++;
	if (i == info->nkeycolumns || info->hypothetical)
		return false;
	index = index_open(info->indexoid, NoLock);
	result = wh_sorted_otherwise(index);
	index_close(index, NoLock);
	return result;
}

/*
 * Does the condition on an index column fix its value?
 */
static bool
is_equality(const IndexOptInfo *info, const IndexClause *iclause)
{
	ListCell   *cell;

	foreach(cell, iclause->indexquals)
	{
		Expr	   *clause = lfirst_node(RestrictInfo, cell)->clause;
		Oid			opno = InvalidOid;

		if (IsA(clause, OpExpr))
			opno = ((OpExpr *) clause)->opno;
		else if (IsA(clause, ScalarArrayOpExpr))
			opno = ((ScalarArrayOpExpr *) clause)->opno;
		else if (IsA(clause, NullTest) &&
				 ((NullTest *) clause)->nulltesttype == IS_NULL)
			return true;
		if (OidIsValid(opno) &&
			get_op_opfamily_strategy(opno, info->opfamily[iclause->indexcol]) ==
			BTEqualStrategyNumber)
			return true;
	}
	return false;
}

/*
 * The conditions that decide which entries are read.  They are those on the
 * first columns, up to and including the first column whose value they do not
 * fix.
 */
static List *
leading_clauses(const IndexPath *path)
{
	List	   *leading = NIL;
	int			column = 0;
	bool		fixed = false;
	ListCell   *cell;

	foreach(cell, path->indexclauses)
	{
		IndexClause *iclause = lfirst_node(IndexClause, cell);

		if (fixed && iclause->indexcol == column + 1)
		{
			column++;
			fixed = false;
		}
		if (iclause->indexcol != column)
			break;
		fixed = fixed || is_equality(path->indexinfo, iclause);
		leading = lappend(leading, iclause);
	}
	return leading;
}

/*
 * Replaces the costs by those of reading all entries that the leading
 * conditions select.  From PostgreSQL 18 on core expects a btree to skip
 * entries by conditions on later columns, which wormhole does not.
 */
static void
cost_leading(PlannerInfo *root, const IndexPath *path, double loop_count,
			 Cost *startup_cost, Cost *total_cost, double *pages)
{
	List	   *leading = leading_clauses(path);
	IndexPath	reading = *path;
	Selectivity selectivity;
	double		correlation;

	if (list_length(leading) == list_length(path->indexclauses))
		return;
	reading.indexclauses = leading;
	btcostestimate(root, &reading, loop_count, startup_cost, total_cost,
				   &selectivity, &correlation, pages);
}

/*
 * amcostestimate.
 */
void
wh_costestimate(struct PlannerInfo *root, struct IndexPath *path,
				double loop_count, Cost *startup_cost, Cost *total_cost,
				Selectivity *selectivity, double *correlation, double *pages)
{
	double		levels;
	Cost		cost;

	btcostestimate(root, path, loop_count, startup_cost, total_cost,
				   selectivity, correlation, pages);
	cost_leading(root, path, loop_count, startup_cost, total_cost, pages);
	levels = 1 + ceil(log(Max(path->indexinfo->pages, 1)) / log(FANOUT));
	cost = levels * PAGE_OPERATORS * cpu_operator_cost;
	*startup_cost += cost;
	*total_cost += cost;
}
