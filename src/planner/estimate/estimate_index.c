/*-------------------------------------------------------------------------
 *
 * estimate_index.c
 *	  What share of a relation's rows the clauses let through that an index knows of.
 *
 * The index counts keys (rfestimate.c).  What that says of rows depends on how many
 * rows keys have, which ANALYZE knows best, if anybody.
 *
 * In an index on several columns a key is a row's, and of a column behind the
 * first one it is counted what share of the rows that the columns before it leave.
 * The planner multiplies selectivities; so the product is that of the combination,
 * however much the columns depend on each other.  The same with a partial index:
 * its keys are those of the rows of its predicate, and if other clauses imply that,
 * the share of the index's keys is what remains when these have been multiplied.  If
 * each of the clauses on the key implies it, no other row matters.  ANALYZE says
 * nothing of such parts of a table; so these are counted only where keys
 * hardly repeat, and a share of keys is one of rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <float.h>

#include "access/genam.h"
#include "access/stratnum.h"
#include "catalog/index.h"
#include "catalog/pg_statistic.h"
#include "key/rowkey.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
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
 * Keys hardly repeat if they have fewer rows than this each: those that are not
 * among the most common values, or all of them if these are not known.
 */
#define FEW_ROWS 2.0
#define FEW_ROWS_UNKNOWN 1.1

/* If most common values have less of the rows, they are none to speak of. */
#define HARDLY_ANY 0.05

/* So many of them are a few. */
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
	int			len;

	if (pattern->constisnull)
		return false;
	value = DatumGetTextPP(pattern->constvalue);
	bytes = VARDATA_ANY(value);
	len = VARSIZE_ANY_EXHDR(value);
	for (int i = 0; i < len; i++)
	{
		if (bytes[i] == '_' || bytes[i] == '\\' ||
			(bytes[i] == '%' && i < len - 1))
			return false;
	}
	return true;
}

/*
 * Is a clause true for all rows that have keys of its set?  The sets of
 * patterns hold more keys than match.  (What is gained by rounding is not
 * counted.)  NULL tests are left to ANALYZE.
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
 * Finds the clauses that an index knows of, without those that have been estimated.
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
			rf_clause_set(column, rel->relid, column->expr, clause) : NULL;

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
 * Adds the keys whose first columns are in some sets.  False where they cannot
 * be listed.
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
 * Makes the sets of keys to be counted: for each clause on a column, and for all of
 * them, those that the columns before it leave.
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
 * Reads what ANALYZE says of an index's first column: keys, in the current
 * context.  Of an expression it is said of the index.
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
		stats->shares = palloc((stats->ncommon + 1) * sizeof(float4));
		for (int i = 0; i < stats->ncommon; i++)
		{
			RfKey		key = rf_encode(column->codec, slot.values[i]);

			/* The bytes may be those of the value, which is freed. */
			if (column->codec->kind == RF_KEY_BYTES)
				key.data = memcpy(palloc(key.len + 1), key.data, key.len);
			stats->keys[i] = key;
			stats->shares[i] = slot.numbers[i];
			stats->common_share += slot.numbers[i];
		}
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
}

/*
 * The share of a relation's rows that have keys of a set, the index having
 * counted some share.  The most common values have the shares ANALYZE found; the
 * others share what is left, each as much.
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
 * Is what was counted better than what core would say?  all is the share of the
 * keys that all clauses together let through.
 *
 * That a key is not there is always worth knowing.  Otherwise keys must have
 * about as many rows each.  Where ANALYZE found hardly any value to be more common
 * than others they do; and where keys hardly repeat, but for a few that it did find
 * (if these are many, others will be nearly as common).  If it never looked, a wide
 * range is counted all the same: it has keys of all sorts, and core knows nothing.
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

	/* Where the common values are all there are, nothing is missing. */
	if (stats->ncommon * shares->key_share > 0.5)
		return false;
	return all == 0 || stats->common_share < HARDLY_ANY ||
		(stats->ncommon < FEW_COMMON && rows < FEW_ROWS * keys);
}

/*
 * How much of the table is in a partial index: all of what the planner thinks of if
 * other clauses imply the predicate, a share if each of those on the key does.
 * Less than 0 where it is not implied.
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
 * Makes selectivities of shares of keys, for an index on several columns or a
 * partial one; drops clauses that cannot be told.
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

	/* In an index on several columns rows with NULL have keys. */
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
 * Estimates the clauses of a relation that an index knows of and that have not
 * been estimated; done has been, too.  False for none.  In the current context.
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
	if (counted->n == 0 || ReindexIsProcessingIndex(index->oid))
		return false;
	relation = index_open(index->oid, NoLock);
	plan_counting(counted, rf_index_codec(relation), &counting);
	known = counting.ncolumns > 0 && !RELATION_IS_OTHER_TEMP(relation) &&
		rf_estimate_shares(relation, rel->pages, counting.sets, counting.nsets,
						   &shares, counting.share);
	index_close(relation, NoLock);
	if (!known)
		return false;
	read_stats(planner_rt_fetch(rel->relid, root)->relid, index, &stats);
	if (index->ncolumns > 1 || index->predicate != NIL ?
		!estimate_product(rel, index, &counting, &shares, &stats, counted) :
		!estimate_column(&counting, &shares, &stats, counted))
		return false;
	for (int i = 0; i < counted->n; i++)
	{
		/* The planner takes exactly this for "not known". */
		if (counted->selec[i] == DEFAULT_INEQ_SEL)
			counted->selec[i] += DBL_EPSILON;
	}
	return true;
}
