/*-------------------------------------------------------------------------
 *
 * estimate_index.c
 *	  What share of a relation's rows is let through by the clauses that an
 *	  index can answer.
 *
 * The index counts keys (rfestimate.c).  The share of rows also depends on how
 * many rows each key has.  ANALYZE tells this best.
 *
 * In an index on several columns each row is a key.  For a column behind the
 * first one the index counts which share is left of the rows that the columns
 * before it leave.  The planner multiplies selectivities, so the product is
 * the share of the combination, even if the columns depend on each other.  A
 * partial index has the keys of the rows of its predicate.  If other clauses
 * imply the predicate, the share of the index's keys is multiplied with their
 * selectivities, and the product is right again.  If each of the clauses on
 * the key implies the predicate, rows outside the index do not count.  ANALYZE
 * says nothing about such parts of a table.  So they are counted only if keys
 * hardly repeat, since a share of keys is then a share of rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_statistic.h"
#include "key/rowkey.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "pgstat.h"
#include "planner/condition/condition.h"
#include "planner/estimate/estimate.h"
#include "planner/knowledge/knowledge.h"
#include "rangefilter/page/page.h"
#include "rangefilter/probe/probe.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

/*
 * Keys hardly repeat if they have fewer rows than this on average.  FEW_ROWS
 * is for the keys that are not among the most common values, FEW_ROWS_UNKNOWN
 * for all keys if the most common values are not known.
 */
#define FEW_ROWS 2.0
#define FEW_ROWS_UNKNOWN 1.1

/* Most common values with a smaller share of the rows are ignored. */
#define HARDLY_ANY 0.05

/* Up to this many, the most common values are few. */
#define FEW_COMMON 50

/* What ANALYZE says of a column. */
typedef struct RfColumnStats
{
	bool		known;
	double		nullfrac;
	int			ncommon;		/* most common values: */
	RfKey	   *keys;
	float4	   *shares;
	double		common_share;	/* of all of them */
} RfColumnStats;

/* What is counted: keys of the index. */
typedef struct RfCounting
{
	RfKeySet   *sets[RF_MAX_COUNTED_CLAUSES + RF_MAX_COLUMNS];
	double		share[RF_MAX_COUNTED_CLAUSES + RF_MAX_COLUMNS];
	int			nsets;
	int			clause[RF_MAX_COUNTED_CLAUSES]; /* each clause's set, ... */
	int			all[RF_MAX_COLUMNS];	/* ... that of all on a column, and
										 * those before */
	int			ncolumns;
} RfCounting;

/*
 * Does a pattern ask for nothing more than how a string begins?
 */
static bool
is_prefix_pattern(Const *pattern)
{
	text	   *value;
	char	   *bytes;
	char	   *percent;
	int			len;

	/* Of NULL core has made the clause NULL. */
	Assert(!pattern->constisnull);
	value = DatumGetTextPP(pattern->constvalue);
	bytes = VARDATA_ANY(value);
	len = VARSIZE_ANY_EXHDR(value);
	percent = memchr(bytes, '%', len);
	return (percent == NULL || percent == bytes + len - 1) &&
		memchr(bytes, '_', len) == NULL && memchr(bytes, '\\', len) == NULL;
}

/*
 * Is a clause true for all rows that have keys of its set?  (Keys that
 * rounding adds to the set are ignored.)  Not for patterns whose sets hold
 * more keys than match.  NULL tests are left to ANALYZE.
 */
static bool
set_says_all(const RfIndexColumn *column, Node *clause)
{
	OpExpr	   *expr = (OpExpr *) clause;
	Node	   *right;

	if (IsA(clause, ScalarArrayOpExpr))
		return op_in_opfamily(((ScalarArrayOpExpr *) clause)->opno,
							  column->opfamily);
	if (!IsA(clause, OpExpr) || list_length(expr->args) != 2)
		return false;
	if (op_in_opfamily(expr->opno, column->opfamily))
		return true;
	right = lsecond(expr->args);
	switch (get_opcode(expr->opno))
	{
		case F_STARTS_WITH:
			return true;
		case F_TEXTLIKE:
		case F_BPCHARLIKE:
		case F_NAMELIKE:
		case F_BYTEALIKE:
			return IsA(right, Const) && is_prefix_pattern((Const *) right);
		default:
			return false;
	}
}

/*
 * Finds the clauses that an index can answer and that have not been estimated.
 */
static void
find_clauses(RelOptInfo *rel, const RfRelIndex *index,
			 const RestrictInfo *done, RfCounted *counted)
{
	ListCell   *cell;

	counted->n = 0;
	foreach(cell, rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);
		Node	   *clause = (Node *) rinfo->clause;

		if (rinfo->pseudoconstant || rinfo->norm_selec >= 0 || rinfo == done ||
			!restriction_is_securely_promotable(rinfo, rel))
			continue;
		for (int c = 0; c < index->ncolumns; c++)
		{
			const RfIndexColumn *column = &index->columns[c];
			RfKeySet   *set = set_says_all(column, clause) ?
			rf_clause_set(column, rel->relid, column->expr, clause, true) : NULL;

			if (set == NULL)
				continue;
			counted->clauses[counted->n] = rinfo;
			counted->columns[counted->n] = c;
			counted->sets[counted->n++] = set;
			break;
		}
		if (counted->n == RF_MAX_COUNTED_CLAUSES)
			break;
	}
}

/*
 * Adds the set of keys whose first n columns are in the given sets.  False if
 * rf_row_set() cannot use all of these.
 */
static bool
add_keys(RfCounting *counting, const RfCodec *codec, RfKeySet **columns, int n)
{
	int			used = n;
	RfKeySet   *set = codec->row == NULL ? columns[0] :
	rf_row_set(codec, columns, n, &used);

	if (used < n)
		return false;
	counting->sets[counting->nsets++] = set;
	return true;
}

/*
 * Makes the sets of keys to be counted: one for each clause on a column, and
 * one for all clauses on the column.  Each set is restricted by the columns
 * before it.
 */
static void
plan_counting(const RfCounted *counted, const RfCodec *codec,
			  RfCounting *counting)
{
	RfKeySet   *columns[RF_MAX_COLUMNS];
	int			ncolumns = codec->row == NULL ? 1 : codec->row->ncolumns;

	memset(counting, 0, sizeof(RfCounting));
	for (int c = 0; c < ncolumns; c++)
	{
		RfKeySet   *common = NULL;

		for (int i = 0; i < counted->n; i++)
		{
			if (counted->columns[i] != c)
				continue;
			columns[c] = counted->sets[i];
			common = common == NULL ? columns[c] :
				rf_keyset_intersect(common, columns[c]);
			counting->clause[i] = counting->nsets;
			if (!add_keys(counting, codec, columns, c + 1))
				return;
		}
		if (common == NULL)
			return;
		columns[c] = common;
		counting->all[c] = counting->nsets;
		if (!add_keys(counting, codec, columns, c + 1))
			return;
		counting->ncolumns = c + 1;
	}
}

/*
 * Reads ANALYZE's statistics of an index's first column.  They stay in the
 * current context, since the keys' bytes may be those of the values.
 * Statistics of an expression are those of the index's column.
 */
static void
read_stats(Oid relid, const RfRelIndex *index, RfColumnStats *stats)
{
	const RfIndexColumn *column = &index->columns[0];
	bool		is_expr = column->attno == 0;
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH,
										ObjectIdGetDatum(is_expr ? index->oid : relid),
										Int16GetDatum(is_expr ? 1 : column->attno),
										BoolGetDatum(false));
	AttStatsSlot slot;

	memset(stats, 0, sizeof(RfColumnStats));
	stats->nullfrac = DEFAULT_UNK_SEL;
	if (!HeapTupleIsValid(tuple))
		return;
	stats->known = true;
	stats->nullfrac = ((Form_pg_statistic) GETSTRUCT(tuple))->stanullfrac;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_MCV, InvalidOid,
						 ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
	{
		stats->ncommon = Min(slot.nvalues, slot.nnumbers);
		stats->keys = palloc((stats->ncommon + 1) * sizeof(RfKey));
		stats->shares = slot.numbers;
		for (int i = 0; i < stats->ncommon; i++)
		{
			stats->keys[i] = rf_encode(column->codec, slot.values[i]);
			stats->common_share += slot.numbers[i];
		}
	}
	ReleaseSysCache(tuple);
}

/*
 * The share of a relation's rows that have keys of a set, from the share of
 * keys that the index counted.  The most common values have the shares that
 * ANALYZE found.  All other keys have equal shares of the rest.
 */
static double
selectivity_of(const RfColumnStats *stats, const RfShares *shares,
			   const RfKeySet *set, double share)
{
	double		common = 0;
	int			n = 0;
	double		others = 1 - stats->ncommon * shares->key_share;
	double		result;

	for (int i = 0; i < stats->ncommon; i++)
	{
		if (rf_keyset_contains(set, &stats->keys[i]))
		{
			common += stats->shares[i];
			n++;
		}
	}
	share = (share - n * shares->key_share) / others;
	share = Max(Min(share, 1), 0);
	result = common +
		share * Max(1 - stats->nullfrac - stats->common_share, 0);
	return Min(result, 1);
}

/*
 * Is the count better than core's estimate? all is the share of the keys that
 * all clauses together let through.
 *
 * It is if no key is there.  Otherwise keys must have about equal numbers of
 * rows.  This is so if ANALYZE found hardly any value more common than others.
 * It is also so if keys hardly repeat, except for a few that ANALYZE found.
 * (If it found many, other keys are nearly as common.)  Without statistics a
 * wide range is counted as well: it has rare and frequent keys, and core knows
 * nothing.
 */
static bool
better_than_histogram(const RfColumnStats *stats, const RfShares *shares,
					  double all)
{
	double		keys = shares->keys - stats->ncommon;
	double		rows = shares->rows *
	(1 - stats->nullfrac - stats->common_share);

	if (!stats->known)
		return all == 0 || all >= DEFAULT_RANGE_INEQ_SEL ||
			rows < FEW_ROWS_UNKNOWN * keys;

	/* If most keys are common values, ANALYZE tells their numbers of rows. */
	if (stats->ncommon * shares->key_share > 0.5)
		return false;
	return all == 0 || stats->common_share < HARDLY_ANY ||
		(stats->ncommon < FEW_COMMON && rows < FEW_ROWS * keys);
}

/*
 * The factor by which the share of a partial index's keys is multiplied: 1 if
 * other clauses imply the predicate, since the planner multiplies with their
 * selectivities; the index's share of the table's rows if each of the clauses
 * on the key implies it.  Less than 0 if it is not implied.
 */
static double
share_of_predicate(RelOptInfo *rel, const RfRelIndex *index,
				   const RfCounted *counted, const RfShares *shares)
{
	List	   *others = rf_usable_clauses(rel, rel->baserestrictinfo);
	bool		by_each = true;

	for (int i = 0; i < counted->n; i++)
	{
		Expr	   *clause = counted->clauses[i]->clause;

		by_each = by_each && predicate_implied_by(index->predicate,
												  list_make1(clause), false);
		others = list_delete_ptr(others, clause);
	}
	if (by_each)
		return rel->tuples > 0 ? Min(shares->rows / rel->tuples, 1) : 1;
	return predicate_implied_by(index->predicate, others, false) ? 1 : -1;
}

/*
 * Turns shares of keys into selectivities, for an index on several columns or
 * a partial index.  Drops clauses that were not counted.
 */
static bool
estimate_product(RelOptInfo *rel, const RfRelIndex *index,
				 const RfCounting *counting, const RfShares *shares,
				 const RfColumnStats *stats, RfCounted *counted)
{
	double		all = counting->share[counting->all[counting->ncolumns - 1]];
	double		factor = index->predicate == NIL ? 1 :
	share_of_predicate(rel, index, counted, shares);
	double		rows = shares->rows;
	int			n = 0;

	/* An index on several columns has keys for rows with NULL. */
	if (index->ncolumns == 1 && factor == 1)
	{
		factor -= stats->nullfrac;
		rows *= 1 - stats->nullfrac;
	}
	if (factor < 0 ||
		(all > 0 && rows >= FEW_ROWS_UNKNOWN * shares->keys &&
		 (stats->known || all < DEFAULT_RANGE_INEQ_SEL)))
		return false;
	for (int i = 0; i < counted->n; i++)
	{
		int			c = counted->columns[i];
		double		before = c == 0 ? 1 : counting->share[counting->all[c - 1]];

		if (c >= counting->ncolumns || before <= 0)
			continue;
		counted->clauses[n] = counted->clauses[i];
		counted->columns[n] = c;
		counted->selec[n++] = Min(counting->share[counting->clause[i]] / before, 1) *
			(c == 0 ? factor : 1);
	}
	counted->n = n;
	return n > 0;
}

/*
 * The same for an index on a column or an expression of the whole table.
 */
static bool
estimate_column(const RfCounting *counting, const RfShares *shares,
				const RfColumnStats *stats, RfCounted *counted)
{
	if (!better_than_histogram(stats, shares,
							   counting->share[counting->all[0]]))
		return false;
	for (int i = 0; i < counted->n; i++)
		counted->selec[i] = selectivity_of(stats, shares, counted->sets[i],
										   counting->share[counting->clause[i]]);
	return true;
}

/*
 * Estimates the clauses of a relation that an index can answer and that have
 * not been estimated; done counts as estimated.  False if there are none.
 * Allocates in the current context.
 */
bool
rf_count_clauses(PlannerInfo *root, RelOptInfo *rel, const RfRelIndex *index,
				 const RestrictInfo *done, RfCounted *counted)
{
	RfCounting	counting;
	RfShares	shares;
	RfColumnStats stats;
	Relation	relation;
	bool		known;

	find_clauses(rel, index, done, counted);
	relation = index_open(index->oid, NoLock);
	plan_counting(counted, rf_index_codec(relation), &counting);
	known = counting.ncolumns > 0 && !RELATION_IS_OTHER_TEMP(relation) &&
		rf_estimate_shares(relation, rel->pages, counting.sets, counting.nsets,
						   &shares, counting.share);
	if (known)
		pgstat_count_index_scan(relation);
	index_close(relation, NoLock);
	if (!known)
		return false;
	read_stats(planner_rt_fetch(rel->relid, root)->relid, index, &stats);
	return index->ncolumns > 1 || index->predicate != NIL ?
		estimate_product(rel, index, &counting, &shares, &stats, counted) :
		estimate_column(&counting, &shares, &stats, counted);
}
