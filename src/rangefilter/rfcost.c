/*-------------------------------------------------------------------------
 *
 * rfcost.c
 *	  What a bitmap scan by a rangefilter index costs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_statistic.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rangefilter/rangefilter.h"
#include "utils/index_selfuncs.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

/* Pages of the index that a scan reads: metapage, filter, places. */
#define RF_SCAN_PAGES 3

/*
 * The correlation between the order of the index's first column and that of
 * the rows, from 0 to 1; 0 if it is not known.
 */
static double
rf_correlation(PlannerInfo *root, const IndexOptInfo *index)
{
	RangeTblEntry *rte = planner_rt_fetch(index->rel->relid, root);
	bool		is_column = index->indexkeys[0] != 0;
	double		correlation = 0;
	AttStatsSlot slot;
	HeapTuple	tuple;

	/* ANALYZE keeps the statistics of expressions with the index. */
	tuple = SearchSysCache3(STATRELATTINH,
							ObjectIdGetDatum(is_column ? rte->relid :
											 index->indexoid),
							Int16GetDatum(is_column ? index->indexkeys[0] : 1),
							BoolGetDatum(false));
	if (!HeapTupleIsValid(tuple))
		return 0;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_CORRELATION, InvalidOid,
						 ATTSTATSSLOT_NUMBERS))
	{
		correlation = fabs(slot.numbers[0]);
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
	return correlation;
}

/*
 * The share of a table's blocks in the bitmap of a scan that matches a share of
 * its rows.
 *
 * Rows without order are each in any range.  Rows in the order of the keys are
 * in as few ranges as possible.  Between the two, the square of the
 * correlation weights both, as core does for ordered scans.
 */
static double
rf_share_of_blocks(const RfScanInfo *info, double rows, double selectivity,
				   double correlation)
{
	double		known = Min((double) info->known_blocks / info->heap_blocks, 1);
	double		scattered = 1 - pow(1 - 1 / info->nranges, rows);
	double		together = Min(selectivity + 1 / info->nranges, 1);
	double		share = scattered +
	correlation * correlation * (Min(together, scattered) - scattered);

	return known * share + (1 - known);
}

/*
 * amcostestimate.  The bitmap is of whole blocks, so the selectivity returned
 * is the share of rows that are read.  If the index has no places, a scan by
 * it is of no use, and the cost is prohibitive.
 */
void
rf_costestimate(struct PlannerInfo *root, struct IndexPath *path,
				double loop_count, Cost *startup_cost, Cost *total_cost,
				Selectivity *selectivity, double *correlation, double *pages)
{
	IndexOptInfo *index = path->indexinfo;
	List	   *quals = get_quals_from_indexclauses(path->indexclauses);
	Relation	relation = relation_open(index->indexoid, NoLock);
	RfScanInfo	info;
	double		share;

	rf_scan_info(relation, index->rel->pages, &info);
	relation_close(relation, NoLock);
	*correlation = rf_correlation(root, index);
	*pages = index->pages;
	*selectivity = 1;
	*startup_cost = *total_cost = disable_cost;
	if (info.nranges == 0 || info.known_blocks == 0 || info.heap_blocks == 0)
		return;
	share = clauselist_selectivity(root, quals, index->rel->relid, JOIN_INNER,
								   NULL);
	*selectivity = rf_share_of_blocks(&info, Max(share * index->rel->tuples, 1),
									  share, *correlation);
	CLAMP_PROBABILITY(*selectivity);
	*startup_cost = RF_SCAN_PAGES * random_page_cost;
	*total_cost = *startup_cost +
		*selectivity * info.heap_blocks * cpu_operator_cost;
}
