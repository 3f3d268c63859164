/*-------------------------------------------------------------------------
 *
 * rfcost.c
 *	  What a bitmap scan by a rangefilter index costs.
 *
 * Core computes what reading the heap costs from the selectivity that we return:
 * as for a bitmap of the matching rows.  What this scan does beyond that is part
 * of the index's cost: it reads whole ranges of blocks, looks into some of them,
 * and the executor checks all rows of the others.  So core compares the scan
 * rightly with one by a btree that has the same rows, where it compares what the
 * indexes cost, and the product of selectivities is right for bitmaps that are
 * combined.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rangefilter/rangefilter.h"
#include "utils/index_selfuncs.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"
#include "utils/syscache.h"

/*
 * A scan of the index that finds its pages in memory and no block, in units of cpu_operator_cost.
 */
#define RF_SCAN_COST	200

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
 * Foresees a scan for values that are not known yet, that matches a share of a
 * table's rows.
 *
 * Rows without order are each in any range.  Rows in the order of the keys are
 * in as few ranges as possible.  Between the two, the square of the
 * correlation weights both, as core does for ordered scans.
 */
static void
rf_foresee_rows(const RfScanInfo *info, double heap_blocks, double rows,
				double selectivity, double correlation, RfForeseen *foreseen)
{
	double		known = Min(info->known_blocks / heap_blocks, 1);
	double		scattered = 1 - pow(1 - 1 / info->nranges, rows);
	double		together = Min(selectivity + 1 / info->nranges, 1);
	double		share = scattered +
	correlation * correlation * (Min(together, scattered) - scattered);

	foreseen->ranges = known * share * info->nranges;
	foreseen->unknown = (1 - known) * heap_blocks;
	foreseen->blocks = known * share * heap_blocks + foreseen->unknown;
	foreseen->jumps = 1 + foreseen->ranges * (1 - share);
}

/*
 * The value that an index clause compares with, as a scan key has it.  False if
 * it is not known while planning.
 */
static bool
rf_known_value(PlannerInfo *root, const IndexOptInfo *index, Node *clause,
			   int column, ScanKey key)
{
	bool		is_array = IsA(clause, ScalarArrayOpExpr);
	Const	   *value;
	Oid			opno;
	Oid			left;
	int			strategy;

	memset(key, 0, sizeof(ScanKeyData));
	key->sk_attno = column + 1;
	if (IsA(clause, NullTest))
	{
		key->sk_flags = SK_ISNULL |
			(((NullTest *) clause)->nulltesttype == IS_NULL ?
			 SK_SEARCHNULL : SK_SEARCHNOTNULL);
		return true;
	}
	if (!is_array && !IsA(clause, OpExpr))
		return false;
	value = (Const *)
		estimate_expression_value(root, is_array ?
								  lsecond(((ScalarArrayOpExpr *) clause)->args) :
								  get_rightop(clause));
	if (!IsA(value, Const))
		return false;
	opno = is_array ? ((ScalarArrayOpExpr *) clause)->opno : ((OpExpr *) clause)->opno;
	get_op_opfamily_properties(opno, index->opfamily[column], false,
							   &strategy, &left, &key->sk_subtype);
	key->sk_strategy = strategy;
	key->sk_collation = exprInputCollation(clause);
	key->sk_flags = (value->constisnull ? SK_ISNULL : 0) |
		(is_array ? SK_SEARCHARRAY : 0);
	key->sk_argument = value->constvalue;
	return true;
}

/*
 * Sets *set to the keys that a path asks for; NULL: any.  False if they are not
 * known while planning.
 */
static bool
rf_known_set(PlannerInfo *root, const IndexPath *path, Relation index,
			 RfKeySet **set)
{
	int			nkeys = 0;
	ScanKey		keys;
	ListCell   *cell;
	ListCell   *qual;

	foreach(cell, path->indexclauses)
		nkeys += list_length(lfirst_node(IndexClause, cell)->indexquals);
	keys = palloc(nkeys * sizeof(ScanKeyData));
	nkeys = 0;
	foreach(cell, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, cell);

		foreach(qual, clause->indexquals)
		{
			if (!rf_known_value(root, path->indexinfo,
								(Node *) lfirst_node(RestrictInfo, qual)->clause,
								clause->indexcol, &keys[nkeys++]))
				return false;
		}
	}
	*set = rf_scan_set(index, keys, nkeys);
	return true;
}

/*
 * How many scans of the index one scan of a path is: core makes one for each
 * element of an array, or each combination of elements of arrays.
 */
static double
rf_count_scans(PlannerInfo *root, const IndexPath *path)
{
	double		n = 1;
	ListCell   *cell;
	ListCell   *qual;

	foreach(cell, path->indexclauses)
	{
		foreach(qual, lfirst_node(IndexClause, cell)->indexquals)
		{
			Node	   *clause = (Node *) lfirst_node(RestrictInfo, qual)->clause;

			if (IsA(clause, ScalarArrayOpExpr))
				n *= Max(RF_ESTIMATE_ARRAY_LENGTH(root, lsecond(((ScalarArrayOpExpr *) clause)->args)), 1);
		}
	}
	return n;
}

/*
 * Foresees the scan of a path: asks the summary, if the values are known.
 * Allocates in the current context.
 */
static void
rf_foresee(PlannerInfo *root, const IndexPath *path, Relation index,
		   const RfScanInfo *info, double rows, double selectivity,
		   double correlation, RfForeseen *foreseen)
{
	BlockNumber heap_blocks = path->indexinfo->rel->pages;
	RfKeySet   *set;

	memset(foreseen, 0, sizeof(RfForeseen));
	if (!rf_known_set(root, path, index, &set))
		rf_foresee_rows(info, heap_blocks, rows, selectivity, correlation, foreseen);
	else if (set == NULL)
	{
		foreseen->blocks = heap_blocks;
		foreseen->jumps = 1;
	}
	else if (!rf_keyset_is_empty(set))
		rf_foresee_scan(index, set, heap_blocks, correlation, foreseen);
}

/*
 * What each of several scans reads that together read this: a range for each of its keys,
 * which other scans may read, too; and all blocks of which the summary tells nothing.
 */
static void
rf_foresee_one(const RfForeseen *all, double scans, RfForeseen *one)
{
	double		share = all->ranges > 0 ?
	Min(Max(all->keys / all->ranges, 1) / scans, 1) : 1;

	one->keys = all->keys / scans;
	one->unknown = all->unknown;
	one->blocks = all->unknown + (all->blocks - all->unknown) * share;
	one->ranges = all->ranges * share;
	one->jumps = all->jumps * share;
}

/*
 * Returns which share of the blocks has a matching row.  Each range of places has one at least,
 * anywhere in the range.  Of other blocks only statistics tell, of all rows of the table.
 */
static double
rf_share_with_rows(const IndexOptInfo *index, const RfForeseen *foreseen,
				   double rows)
{
	double		found = foreseen->blocks - foreseen->unknown;
	double		with_rows = found;

	if (foreseen->ranges >= 1 && found > foreseen->ranges)
		with_rows = found * (1 - pow(1 - foreseen->ranges / found,
									 Max(rows / foreseen->ranges, 1)));
	if (foreseen->unknown > 1)
		with_rows += foreseen->unknown *
			(1 - pow(1 - 1 / foreseen->unknown,
					 rows * foreseen->unknown / Max(index->rel->pages, 1)));
	return foreseen->blocks >= 1 ? with_rows / foreseen->blocks : 1;
}

/*
 * Of a table, the pages that one of several scans reads if each alone reads so
 * many.
 */
static double
rf_pages_read(PlannerInfo *root, const IndexOptInfo *index, double pages,
			  double loop_count)
{
	if (loop_count <= 1)
		return pages;
	return Min(index_pages_fetched(pages * loop_count, index->rel->pages,
								   index->pages, root) / loop_count, pages);
}

/*
 * What core charges for one page where a bitmap has "pages" of the table: less,
 * the nearer they are.
 */
static double
rf_page_cost(const IndexOptInfo *index, double pages)
{
	double		random;
	double		sequential;

	get_tablespace_page_costs(index->rel->reltablespace, &random, &sequential);
	return random - (random - sequential) *
		sqrt(Min(pages / Max(index->rel->pages, 1), 1));
}

/*
 * What reading the table's blocks costs beyond what core charges for the pages of a
 * bitmap of the matching rows.
 */
static Cost
rf_extra_page_cost(PlannerInfo *root, const IndexOptInfo *index,
				   const RfForeseen *foreseen, double rows, double loop_count)
{
	double		pages = Max(index->rel->pages, 1);
	double		blocks = rf_pages_read(root, index, foreseen->blocks, loop_count);
	double		jumps = Min(foreseen->jumps, blocks);
	double		charged = Min(2 * pages * rows / (2 * pages + rows), pages);
	Cost		cost = jumps * rf_page_cost(index, blocks) +
	(blocks - jumps) * rf_page_cost(index, pages);

	charged = rf_pages_read(root, index, charged, loop_count);
	return Max(cost - charged * rf_page_cost(index, charged), 0);
}

/*
 * What looking into blocks costs, and what the rows of the blocks left cost beyond what
 * core charges, which is for the matching rows.  Each row of such a block costs the
 * executor about twice what it costs a sequential scan: nobody has told that the
 * block's rows are all visible, and the condition is checked after the row was fetched.
 *
 * Each of several scans looks into its blocks, of which each was foreseen as one; others
 * may have looked into the same.  The executor reads what is left once: no more than
 * the blocks of all.
 */
static Cost
rf_extra_row_cost(const IndexOptInfo *index, const RfBlockRecheck *recheck,
				  const RfForeseen *one, double scans, double all_blocks, double rows)
{
	double		share = rf_share_with_rows(index, one, Max(rows / scans, one->keys));
	double		looked = rf_block_recheck_foresee(recheck, one->blocks, share);
	double		left = Min(scans * (one->blocks - looked * (1 - share)), all_blocks);
	double		block_rows = index->rel->tuples / Max(index->rel->pages, 1);
	Cost		row_cost = cpu_tuple_cost + index->rel->baserestrictcost.per_tuple;

	return scans * looked * block_rows * cpu_index_tuple_cost +
		Max(left * block_rows * (cpu_tuple_cost + row_cost) - rows * row_cost, 0);
}

/*
 * What reading the index costs: for each scan the metapage, a page of the filter and the
 * share of the pages that places are on, and the places of each key.
 */
static Cost
rf_index_cost(PlannerInfo *root, const IndexOptInfo *index, double scans,
			  double rows, double selectivity, double loop_count)
{
	double		pages = Min(ceil(selectivity / scans * index->pages) + 2, index->pages);
	double		random;

	get_tablespace_page_costs(index->reltablespace, &random, NULL);
	if (scans * loop_count > 1)
		pages = index_pages_fetched(pages * scans * loop_count, index->pages,
									index->pages, root) / loop_count;
	return pages * random +
		(scans * RF_SCAN_COST + rows) * cpu_operator_cost;
}

/*
 * amcostestimate.  If the index has no places, a scan by it is of no use, and the
 * cost is prohibitive.  The planner part has taken away scans of tables of which a
 * plan must not tell (R6): there the index is not asked.
 */
void
rf_costestimate(struct PlannerInfo *root, struct IndexPath *path,
				double loop_count, Cost *startup_cost, Cost *total_cost,
				Selectivity *selectivity, double *correlation, double *pages)
{
	IndexOptInfo *index = path->indexinfo;
	MemoryContext scratch;
	MemoryContext old;
	Relation	relation;
	Relation	heap;
	RfScanInfo	info;
	RfForeseen	foreseen;
	RfForeseen	one;
	RfBlockRecheck recheck;
	double		scans;
	double		rows;

	*correlation = 0;
	*pages = index->pages;
	*selectivity = 1;
	*startup_cost = *total_cost = disable_cost;
	if (!index->amhasgetbitmap)
		return;
	scratch = AllocSetContextCreate(CurrentMemoryContext, "rangefilter cost",
									ALLOCSET_SMALL_SIZES);
	relation = relation_open(index->indexoid, NoLock);
	rf_scan_info(relation, &info);
	if (info.known_blocks > 0 && index->rel->pages > 0)
	{
		*correlation = rf_correlation(root, index);
		*selectivity = clauselist_selectivity(root,
											  get_quals_from_indexclauses(path->indexclauses),
											  index->rel->relid, JOIN_INNER, NULL);
		rows = Max(*selectivity * index->rel->tuples, 1);
		old = MemoryContextSwitchTo(scratch);
		rf_foresee(root, path, relation, &info, rows, *selectivity,
				   *correlation, &foreseen);
		scans = rf_count_scans(root, path);
		rf_foresee_one(&foreseen, scans, &one);
		heap = table_open(relation->rd_index->indrelid, NoLock);
		rf_block_recheck_begin(&recheck, relation, heap, NULL);
		table_close(heap, NoLock);
		MemoryContextSwitchTo(old);
		*startup_cost = rf_index_cost(root, index, scans, rows, *selectivity,
									  loop_count);
		*total_cost = *startup_cost +
			rf_extra_page_cost(root, index, &foreseen, rows, loop_count) +
			rf_extra_row_cost(index, &recheck, &one, scans, foreseen.blocks, rows);
	}
	relation_close(relation, NoLock);
	MemoryContextDelete(scratch);
}
