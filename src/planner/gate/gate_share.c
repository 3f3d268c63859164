/*-------------------------------------------------------------------------
 *
 * gate_share.c
 *	  How probable it is that a gate opens.
 *
 * The share of members that hold a value is the number of distinct values of the
 * member divided by that of the whole table, as ANALYZE of both tells.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "compat.h"
#include "planner/condition/condition.h"
#include "planner/condition/parameter.h"
#include "planner/gate/gate.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

/*
 * The share of members that are expected to hold a value: where nothing is
 * known, and the most, since some values are in no member.
 */
#define RF_DEFAULT_SHARE	0.5
#define RF_MAX_SHARE		0.9

/*
 * The number of distinct values in a table's column, or in its inheritance
 * tree; 0 if there are no statistics.  tuples: the number of rows.
 */
static double
distinct_values(Oid relid, AttrNumber attno, bool inherited, double tuples)
{
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH,
										ObjectIdGetDatum(relid),
										Int16GetDatum(attno),
										BoolGetDatum(inherited));
	double		distinct;

	if (!HeapTupleIsValid(tuple))
		return 0;
	distinct = ((Form_pg_statistic) GETSTRUCT(tuple))->stadistinct;
	ReleaseSysCache(tuple);
	return distinct < 0 ? -distinct * tuples : distinct;
}

/*
 * The rows of a table as of the last ANALYZE; for a partitioned table those of
 * all partitions.
 */
static double
table_rows(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	double		rows = 0;

	if (HeapTupleIsValid(tuple))
	{
		rows = Max(0, ((Form_pg_class) GETSTRUCT(tuple))->reltuples);
		ReleaseSysCache(tuple);
	}
	return rows;
}

/*
 * Returns the number that a member's column has in the outermost table it
 * belongs to, and sets *relid to that table.
 */
AttrNumber
rf_column_of_root(PlannerInfo *root, Index rti, AttrNumber attno, Oid *relid)
{
	*relid = root->simple_rte_array[rti]->relid;
	for (;;)
	{
		AppendRelInfo *appinfo = root->append_rel_array[rti];
		AttrNumber	parent_attno = 0;
		ListCell   *cell;

		if (appinfo == NULL ||
			root->simple_rte_array[appinfo->parent_relid]->rtekind !=
			RTE_RELATION)
			return attno;
		foreach(cell, appinfo->translated_vars)
		{
			Var		   *var = lfirst(cell);

			if (var != NULL && IsA(var, Var) && var->varattno == attno)
				parent_attno = foreach_current_index(cell) + 1;
		}
		if (parent_attno == 0)
			return attno;
		attno = parent_attno;
		rti = appinfo->parent_relid;
		*relid = root->simple_rte_array[rti]->relid;
	}
}

/*
 * The share of all distinct values of a key that a member is expected to hold.
 */
double
rf_gate_share(PlannerInfo *root, RelOptInfo *rel, Node *key)
{
	AttrNumber	attno;
	Oid			table;
	double		members;
	double		all;

	if (!IsA(key, Var))
		return RF_DEFAULT_SHARE;
	attno = ((Var *) key)->varattno;
	members = distinct_values(root->simple_rte_array[rel->relid]->relid,
							  attno, false, rel->tuples);
	attno = rf_column_of_root(root, rel->relid, attno, &table);
	all = distinct_values(table, attno, true, table_rows(table));
	if (members <= 0 || all <= 0)
		return RF_DEFAULT_SHARE;
	return Min(1.0, members / all);
}

/*
 * The key among a comparison's arguments, or NULL.
 */
static const Var *
compared_key(const List *args)
{
	ListCell   *cell;

	foreach(cell, args)
	{
		const Var  *var = lfirst(cell);

		if (IsA(var, Var) && var->varno == 1)
			return var;
	}
	return NULL;
}

/*
 * How many values an equality compares its key with, as core estimates, and the key's number;
 * 0 for any other clause.
 */
static double
count_equals(PlannerInfo *root, Node *clause, const RfTable *table,
			 const RfGateShape *shape, int *number)
{
	List	   *args;
	Oid			opno;
	double		n = 1;
	const Var  *key;
	const RfIndexColumn *column;

	if (IsA(clause, OpExpr))
	{
		opno = ((OpExpr *) clause)->opno;
		args = ((OpExpr *) clause)->args;
	}
	else if (IsA(clause, ScalarArrayOpExpr))
	{
		Node	   *array;

		opno = ((ScalarArrayOpExpr *) clause)->opno;
		args = ((ScalarArrayOpExpr *) clause)->args;
		array = lsecond(args);
		if (rf_is_runtime_param(array))
			array = list_nth(shape->values, ((Param *) array)->paramid);
		n = RF_ESTIMATE_ARRAY_LENGTH(root, array);
	}
	else
		return 0;
	key = compared_key(args);
	if (key == NULL ||
		(column = rf_gate_column(table, key->varattno - 1, opno)) == NULL ||
		get_op_opfamily_strategy(opno, column->opfamily) != BTEqualStrategyNumber)
		return 0;
	*number = key->varattno - 1;
	return n;
}

/*
 * The probability that a gate with these conditions opens.  *by_values: it
 * comes from equalities.  With several clauses it is RF_DEFAULT_SHARE at most:
 * a combination of values is rarer than each of them.
 */
double
rf_opening_probability(PlannerInfo *root, RelOptInfo *rel,
					   const RfGateShape *shape, bool *by_values)
{
	RfTable    *table = rf_gate_table(shape->opclasses);
	bool		one = list_length(shape->clauses) == 1 &&
	IsA(linitial(shape->clauses), OpExpr);
	double		share = one ? RF_MAX_SHARE : RF_DEFAULT_SHARE;
	ListCell   *cell;

	*by_values = false;
	foreach(cell, shape->clauses)
	{
		Node	   *clause = lfirst(cell);
		int			number = 0;
		double		n = count_equals(root, clause, table, shape, &number);

		if (n > 0)
		{
			Node	   *key = list_nth(shape->keys, number);

			share = Min(share, n * rf_gate_share(root, rel, key));
			*by_values = true;
		}
	}
	return *by_values ? share : RF_DEFAULT_SHARE;
}
