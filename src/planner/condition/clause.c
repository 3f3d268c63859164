/*-------------------------------------------------------------------------
 *
 * clause.c
 *	  One clause on one index: the keys of the rows that satisfy it.
 *
 * Only constants and immutable operators are looked at: both are known while
 * planning.  The result is NULL where the clause says nothing about the
 * index's keys.
 *
 * A planner that makes a gate calls this with run-time parameters in place of
 * the values, to see whether the index can be asked later.  All that is known
 * of a run-time parameter is that it is not NULL, because the operators are
 * strict.
 *
 * Collations: an ordering operator must have the index's collation.  Equality
 * need not: under every deterministic collation it means equal bytes, and
 * equal bytes have equal keys under every collation of the index.  So "url =
 * 'x'" is answerable by an index on url COLLATE "C".
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_coerce.h"
#include "planner/condition/condition.h"
#include "planner/knowledge/knowledge.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* An operator between an index's key and a constant. */
typedef struct RfOperator
{
	int			strategy;		/* btree's, or InvalidStrategy: see function */
	Oid			righttype;
	Oid			function;		/* of an operator outside the family */
	Oid			opno;
	Oid			collation;		/* the clause's */
} RfOperator;

/*
 * Is this something to compare with: a constant other than NULL, or a
 * run-time parameter?
 */
static bool
is_value(Node *node)
{
	if (IsA(node, Const))
		return !((Const *) node)->constisnull;
	return rf_is_runtime_param(node);
}

/*
 * What can be said of a key compared with a run-time parameter.
 */
static RfKeySet *
param_set(const RfIndexColumn *column, const RfOperator *op)
{
	bool		usable;

	if (op->strategy == BTEqualStrategyNumber)
		usable = true;
	else if (op->strategy != InvalidStrategy)
		usable = rf_codec_ordered(column->codec, column->collation);
	else
		usable = op->opno == OID_RANGE_ELEM_CONTAINED_OP ||
			rf_prefix_fits(column, op->function, op->collation);
	return usable ? rf_keyset_not_null(column->codec->kind) : NULL;
}

/*
 * Is this operand the index's key?  key is the key expression in terms of
 * varno, for indexes on expressions.
 */
static bool
is_key(const RfIndexColumn *column, Index varno, Node *key, Node *operand)
{
	operand = rf_strip_relabel(operand);
	if (column->attno != 0)
		return operand != NULL && IsA(operand, Var) &&
			((Var *) operand)->varno == varno &&
			((Var *) operand)->varattno == column->attno &&
			((Var *) operand)->varlevelsup == 0;
	return equal(operand, rf_strip_relabel(key));
}

/*
 * May a clause under this collation be asked of the index?
 */
static bool
collation_fits(const RfIndexColumn *column, int strategy, Oid collation)
{
	if (!column->codec->collatable || collation == column->collation)
		return true;
	return strategy == BTEqualStrategyNumber && OidIsValid(collation) &&
		get_collation_isdeterministic(collation);
}

/*
 * Finds the meaning of an operator for the index; the key is on its left.
 * False if there is no operator, or it is only stable, or says nothing about the index.
 */
static bool
resolve_operator(const RfIndexColumn *column, Oid opno, Oid collation,
				 RfOperator *result)
{
	Oid			lefttype;

	result->opno = opno;
	result->collation = collation;
	result->function = get_opcode(opno);
	result->strategy = InvalidStrategy;
	if (!OidIsValid(result->function) ||
		func_volatile(result->function) != PROVOLATILE_IMMUTABLE)
		return false;
	if (!op_in_opfamily(opno, column->opfamily))
		return true;
	get_op_opfamily_properties(opno, column->opfamily, false,
							   &result->strategy, &lefttype,
							   &result->righttype);
	return (lefttype == column->opcintype ||
			IsBinaryCoercible(column->opcintype, lefttype)) &&
		collation_fits(column, result->strategy, collation);
}

/*
 * The keys of "key <operator> value", value not NULL.
 */
static RfKeySet *
operator_set(const RfIndexColumn *column, const RfOperator *op, Oid type,
			 Datum value)
{
	if (op->strategy != InvalidStrategy)
		return rf_codec_compare(column->codec, column->collation, op->strategy,
								op->righttype, value);
	if (op->opno == OID_RANGE_ELEM_CONTAINED_OP)
		return rf_within_range_set(column, type, value);
	return rf_pattern_set(column, op->function, op->collation, value);
}

/*
 * The keys of "key <op> constant" or "constant <op> key".
 */
static RfKeySet *
op_expr_set(const RfIndexColumn *column, Index varno, Node *key, OpExpr *expr)
{
	Node	   *left;
	Node	   *right;
	Oid			opno = expr->opno;
	Const	   *constant;
	RfOperator	op;

	if (list_length(expr->args) != 2)
		return NULL;
	left = linitial(expr->args);
	right = lsecond(expr->args);
	if (!is_value(right))
	{
		left = lsecond(expr->args);
		right = linitial(expr->args);
		opno = InvalidOid;
	}
	if (!is_value(right) || !is_key(column, varno, key, left))
		return NULL;
	if (!OidIsValid(opno))
		opno = get_commutator(expr->opno);
	if (!resolve_operator(column, opno, expr->inputcollid, &op))
		return NULL;
	if (!IsA(right, Const))
		return param_set(column, &op);
	constant = (Const *) right;
	return operator_set(column, &op, constant->consttype,
						constant->constvalue);
}

/* What any_element_set() passes to element_set(). */
typedef struct RfElements
{
	const RfIndexColumn *column;
	const RfOperator *op;
} RfElements;

/*
 * RfElementSet: the keys that satisfy the operator with an element.
 */
static RfKeySet *
element_set(void *arg, Oid type, Datum value)
{
	RfElements *elements = arg;

	return operator_set(elements->column, elements->op, type, value);
}

/*
 * The keys that satisfy the operator with one of an array's elements.  NULL
 * elements satisfy nothing: the operators are strict.
 */
static RfKeySet *
any_element_set(const RfIndexColumn *column, const RfOperator *op,
				ArrayType *array, bool briefly)
{
	RfElements	elements = {column, op};

	if (briefly && op->strategy != InvalidStrategy)
		return rf_codec_compare_list(column->codec, column->collation,
									 op->strategy, op->righttype, array);
	return rf_array_set(column->codec->kind, array, element_set, &elements);
}

/*
 * The keys of "key <op> ANY (array)", IN among them.
 */
static RfKeySet *
array_expr_set(const RfIndexColumn *column, Index varno, Node *key,
			   ScalarArrayOpExpr *expr, bool briefly)
{
	Node	   *array = lsecond(expr->args);
	RfOperator	op;

	if (!expr->useOr || !is_value(array) ||
		!is_key(column, varno, key, linitial(expr->args)) ||
		!resolve_operator(column, expr->opno, expr->inputcollid, &op))
		return NULL;
	if (!IsA(array, Const))
		return param_set(column, &op);
	return any_element_set(column, &op,
						   DatumGetArrayTypeP(((Const *) array)->constvalue),
						   briefly);
}

/*
 * The keys of this truth value, and NULL if nulls is set.
 */
static RfKeySet *
truth_set(const RfIndexColumn *column, bool value, bool nulls)
{
	RfKeySet   *set = rf_codec_compare(column->codec, InvalidOid,
									   BTEqualStrategyNumber, BOOLOID,
									   BoolGetDatum(value));

	if (nulls && set != NULL)
		set = rf_keyset_union(set, rf_keyset_nulls(column->codec->kind));
	return set;
}

/*
 * The keys of IS [NOT] TRUE, FALSE and UNKNOWN.
 */
static RfKeySet *
boolean_test_set(const RfIndexColumn *column, BoolTestType type)
{
	switch (type)
	{
		case IS_TRUE:
			return truth_set(column, true, false);
		case IS_NOT_TRUE:
			return truth_set(column, false, true);
		case IS_FALSE:
			return truth_set(column, false, false);
		case IS_NOT_FALSE:
			return truth_set(column, true, true);
		case IS_UNKNOWN:
			return rf_keyset_nulls(column->codec->kind);
		case IS_NOT_UNKNOWN:
			return rf_keyset_not_null(column->codec->kind);
	}
	return NULL;
}

/*
 * The keys of a clause about an index on truth values: the key itself, its
 * negation, or a test of it.
 */
static RfKeySet *
boolean_set(const RfIndexColumn *column, Index varno, Node *key, Node *clause)
{
	if (is_key(column, varno, key, clause))
		return truth_set(column, true, false);
	if (is_notclause(clause) &&
		is_key(column, varno, key, (Node *) get_notclausearg(clause)))
		return truth_set(column, false, false);
	if (IsA(clause, BooleanTest) &&
		is_key(column, varno, key, (Node *) ((BooleanTest *) clause)->arg))
		return boolean_test_set(column, ((BooleanTest *) clause)->booltesttype);
	return NULL;
}

/*
 * The keys of a call of a function that compares with a pattern, as starts_with(key, pattern).
 */
static RfKeySet *
func_expr_set(const RfIndexColumn *column, Index varno, Node *key, FuncExpr *expr)
{
	Node	   *pattern;

	if (list_length(expr->args) != 2)
		return NULL;
	pattern = lsecond(expr->args);
	if (!is_value(pattern) ||
		!is_key(column, varno, key, linitial(expr->args)))
		return NULL;
	if (IsA(pattern, Const))
		return rf_pattern_set(column, expr->funcid, expr->inputcollid,
							  ((Const *) pattern)->constvalue);
	return rf_prefix_fits(column, expr->funcid, expr->inputcollid) ?
		rf_keyset_not_null(column->codec->kind) : NULL;
}

/*
 * The keys of IS NULL and IS NOT NULL.
 */
static RfKeySet *
null_test_set(const RfIndexColumn *column, Index varno, Node *key, NullTest *test)
{
	if (test->argisrow || !is_key(column, varno, key, (Node *) test->arg))
		return NULL;
	if (test->nulltesttype == IS_NULL)
		return rf_keyset_nulls(column->codec->kind);
	return rf_keyset_not_null(column->codec->kind);
}

/*
 * The keys that rows satisfying a clause can have in an index, or NULL (no
 * set) if the clause says nothing about them.  If the set is needed only "briefly", it may be
 * one of rf_codec_compare_list().
 */
RfKeySet *
rf_clause_set(const RfIndexColumn *column, Index varno, Node *key, Node *clause,
			  bool briefly)
{
	RfKeySet   *set = NULL;

	if (column->codec->type == BOOLOID)
		set = boolean_set(column, varno, key, clause);
	if (set != NULL)
		return set;
	switch (nodeTag(clause))
	{
		case T_OpExpr:
			return op_expr_set(column, varno, key, (OpExpr *) clause);
		case T_ScalarArrayOpExpr:
			return array_expr_set(column, varno, key,
								  (ScalarArrayOpExpr *) clause, briefly);
		case T_NullTest:
			return null_test_set(column, varno, key, (NullTest *) clause);
		case T_FuncExpr:
			return func_expr_set(column, varno, key, (FuncExpr *) clause);
		default:
			return NULL;
	}
}
