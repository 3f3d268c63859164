/*-------------------------------------------------------------------------
 *
 * whcost.c
 *	  amcostestimate.
 *
 * Operators, strategies and statistics are those of a btree index, so core's
 * estimate for one is right for how many entries and leaves a scan will read
 * and how the order of the index and the table's go together.  Two things
 * differ: for a method other than btree the planner does not know the height,
 * for which core charges 50 operators a page on the way down; and the search
 * within the pages costs less.  Counting levels as if 300 children were on a
 * directory page, with half of that price, is what measuring gave.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "utils/index_selfuncs.h"
#include "wormhole/wormhole.h"

/* Children of a directory page, and operators charged for a page. */
#define FANOUT			300.0
#define PAGE_OPERATORS	25.0

/*
 * Can the index not be used, see wh_check_collators()?  It is locked.
 */
static bool
is_unusable(const IndexOptInfo *info)
{
	Relation	index;
	bool		result;
	int			i = 0;

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
 * amcostestimate.
 */
void
wh_costestimate(struct PlannerInfo *root, struct IndexPath *path,
				double loop_count, Cost *startup_cost, Cost *total_cost,
				Selectivity *selectivity, double *correlation, double *pages)
{
	double		levels;
	double		descents = 1;
	Cost		cost;

	btcostestimate(root, path, loop_count, startup_cost, total_cost,
				   selectivity, correlation, pages);
	levels = 1 + ceil(log(Max(path->indexinfo->pages, 1)) / log(FANOUT));
	cost = descents * levels * PAGE_OPERATORS * cpu_operator_cost;
	if (is_unusable(path->indexinfo))
		cost += disable_cost;
	*startup_cost += cost;
	*total_cost += cost;
}
