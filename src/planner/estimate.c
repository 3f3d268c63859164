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

#include <float.h>
#include <math.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/index.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "planner/planner.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

/* So many relations are estimated, in one planning. */
#define MAX_RELS 100

/* So many clauses on one column are. */
#define MAX_CLAUSES 8

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

/*
 * What is tried first in a made-up row (core rounds to whole numbers), and below
 * what selectivity a clause must then be one that divides by it.
 */
#define TRIED_DISTINCT 1e6
#define DIVIDED 1e-3

bool		rf_estimate_rows = true;

/* An index on one column of a relation. */
typedef struct RfCountIndex
{
	Oid			oid;
	RfIndexColumn column;
} RfCountIndex;

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
	RelOptInfo *rel;
	List	   *indexes;		/* RfCountIndex */
	bool		done;
	RestrictInfo *current;		/* the clause under way, if it is ours ... */
	AttrNumber	attno;			/* ... which is about this column, ... */
	RfMadeUp	made_up;		/* ... and gets these statistics */
} RfCountRel;

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

/* The clauses of a relation that one index can count. */
typedef struct RfCounted
{
	int			n;
	RestrictInfo *clauses[MAX_CLAUSES];
	RfKeySet   *sets[MAX_CLAUSES + 1];	/* behind them what all have in common */
	double		share[MAX_CLAUSES + 1];
} RfCounted;

static get_relation_stats_hook_type previous_hook = NULL;

/* The column whose statistics are being tried, and what they say. */
static RelOptInfo *tried_rel = NULL;
static AttrNumber tried_attno;
static RfMadeUp tried;

/*
 * The relation at the top of an inheritance tree.
 */
static Index
topmost_parent(PlannerInfo *root, Index rti)
{
	while (root->append_rel_array != NULL &&
		   root->append_rel_array[rti] != NULL)
		rti = root->append_rel_array[rti]->parent_relid;
	return rti;
}

/*
 * Takes down which rangefilter indexes a relation has that can count, before
 * skip.c hides them from the planner.  Not where policies or security barriers
 * hide rows: estimates would tell of them.
 */
void
rf_estimate_note(PlannerInfo *root, RelOptInfo *rel)
{
	RfCountRel *counted = NULL;
	ListCell   *cell;

	if (!rf_enable || !rf_estimate_rows || rel->indexlist == NIL ||
		list_length(rf_planning->estimates) >= MAX_RELS)
		return;
	foreach(cell, rel->indexlist)
	{
		IndexOptInfo *info = lfirst_node(IndexOptInfo, cell);
		RfCountIndex *index;
		const RfCodec *codec;

		if (info->amcostestimate != rf_costestimate ||
			info->nkeycolumns != 1 || info->indexkeys[0] <= 0 ||
			info->indpred != NIL ||
			(codec = rf_codec_under(info->opcintype[0],
									info->indexcollations[0])) == NULL)
			continue;
		if (counted == NULL)
		{
			if (!rf_is_ours(root) ||
				rf_is_secured(root, topmost_parent(root, rel->relid)))
				return;
			counted = palloc0(sizeof(RfCountRel));
			counted->root = root;
			counted->rel = rel;
			rf_planning->estimates = lappend(rf_planning->estimates, counted);
		}
		index = palloc0(sizeof(RfCountIndex));
		index->oid = info->indexoid;
		index->column.attno = info->indexkeys[0];
		index->column.opfamily = info->opfamily[0];
		index->column.opcintype = info->opcintype[0];
		index->column.collation = info->indexcollations[0];
		index->column.codec = codec;
		counted->indexes = lappend(counted->indexes, index);
	}
}

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
 * Finds the clauses that an index can count.
 */
static void
find_clauses(RelOptInfo *rel, const RfIndexColumn *column, RfCounted *counted)
{
	RfKeySet   *common = NULL;
	ListCell   *cell;

	counted->n = 0;
	foreach(cell, rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);
		Node	   *clause = (Node *) rinfo->clause;
		RfKeySet   *set;

		if (rinfo->pseudoconstant || rinfo->norm_selec >= 0 ||
			!restriction_is_securely_promotable(rinfo, rel) ||
			!set_says_all(column, clause))
			continue;
		set = rf_clause_set(column, rel->relid, NULL, clause);
		if (set == NULL)
			continue;
		common = common == NULL ? set : rf_keyset_intersect(common, set);
		counted->clauses[counted->n] = rinfo;
		counted->sets[counted->n++] = set;
		if (counted->n == MAX_CLAUSES)
			break;
	}
	counted->sets[counted->n] = common;
}

/*
 * Reads what ANALYZE says of a column: keys, in the current context.
 */
static void
read_stats(Oid relid, const RfIndexColumn *column, RfColumnStats *stats)
{
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH,
										ObjectIdGetDatum(relid),
										Int16GetDatum(column->attno),
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

	/* The planner takes exactly this for "not known". */
	if (result == DEFAULT_INEQ_SEL)
		result += DBL_EPSILON;
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
try(RfCountRel *counted, AttrNumber attno, Node *clause,
	const RfMadeUp *made_up)
{
	double		result;

	tried_rel = counted->rel;
	tried_attno = attno;
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
find_made_up(RfCountRel *counted, AttrNumber attno, Node *clause,
			 double wanted, RfMadeUp *made_up)
{
	double		tolerance = Max(wanted * 0.001, 1e-7);
	double		neutral;

	made_up->nullfrac = 0;
	made_up->distinct = TRIED_DISTINCT;
	neutral = try(counted, attno, clause, made_up);
	if (neutral <= 0)
		return false;
	if (neutral < DIVIDED)
	{
		double		values = neutral * TRIED_DISTINCT;

		made_up->distinct = Max(floor(values / Max(wanted, 1e-12)), 1);
		neutral = values / made_up->distinct;
	}
	made_up->nullfrac = 1 - wanted / neutral;
	return fabs(try(counted, attno, clause, made_up) - wanted) <= tolerance;
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
estimate_by_index(RfCountRel *counted, const RfCountIndex *index,
				  RestrictInfo *current)
{
	RelOptInfo *rel = counted->rel;
	Oid			relid = planner_rt_fetch(rel->relid, counted->root)->relid;
	RfCounted	found;
	RfShares	shares;
	RfColumnStats stats;
	Relation	relation;
	bool		known;

	find_clauses(rel, &index->column, &found);
	if (found.n == 0 || ReindexIsProcessingIndex(index->oid))
		return;
	relation = index_open(index->oid, NoLock);
	known = !RELATION_IS_OTHER_TEMP(relation) &&
		rf_estimate_shares(relation, rel->pages, found.sets, found.n + 1,
						   &shares, found.share);
	index_close(relation, NoLock);
	if (!known)
		return;
	read_stats(relid, &index->column, &stats);
	if (!better_than_histogram(&stats, &shares, found.share[found.n]))
		return;
	for (int i = 0; i < found.n; i++)
	{
		found.share[i] = selectivity_of(&stats, &shares, found.sets[i],
										found.share[i]);
		if (found.clauses[i] != current)
			continue;
		if (!find_made_up(counted, index->column.attno,
						  (Node *) current->clause, found.share[i],
						  &counted->made_up))
			return;
		counted->attno = index->column.attno;
		counted->current = current;
	}
	for (int i = 0; i < found.n; i++)
	{
		if (found.clauses[i] != current)
			found.clauses[i]->norm_selec = found.share[i];
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
	RestrictInfo *current = under_way ? first_unknown(counted->rel) : NULL;
	ListCell   *cell;

	counted->done = true;
	if (order_unknown(counted->rel))
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
		RelOptInfo *rel = counted->rel;

		if (counted->root != root)
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
 * get_relation_stats_hook.  The statistics of a subquery's column are looked for
 * in its own planning, but with the relation of the query above.
 */
static bool
relation_stats(PlannerInfo *root, RangeTblEntry *rte, AttrNumber attno,
			   VariableStatData *vardata)
{
	RelOptInfo *rel = vardata->rel;

	if (tried_rel != NULL)
	{
		if (rel == tried_rel && attno == tried_attno)
		{
			supply(vardata, &tried);
			return true;
		}
	}
	else if (rf_planning != NULL && rf_planning->estimates != NIL &&
			 rel != NULL && root->simple_rel_array[rel->relid] == rel)
	{
		RfCountRel *counted = estimate_rels(root, rel);

		if (counted != NULL && counted->current != NULL &&
			counted->current->norm_selec < 0 && attno == counted->attno &&
			rel->rows == 0)
		{
			supply(vardata, &counted->made_up);
			return true;
		}
	}
	return previous_hook && previous_hook(root, rte, attno, vardata);
}

/*
 * Called once, when the library is loaded.
 */
void
rf_init_estimate(void)
{
	previous_hook = get_relation_stats_hook;
	get_relation_stats_hook = relation_stats;
}
