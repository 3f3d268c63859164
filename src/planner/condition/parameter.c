/*-------------------------------------------------------------------------
 *
 * parameter.c
 *	  Conditions with run-time parameters, whose values are known only at
 *	  execution.
 *
 * A clause may compare an index's key with an expression that is not constant
 * and does not depend on the relation's rows.  A run-time parameter then
 * replaces the expression, and the expression is remembered.  At execution the
 * run-time parameters are filled with constants, and match.c handles the
 * clauses as it does while planning.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "key/rowkey.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "planner/condition/condition.h"
#include "planner/condition/parameter.h"
#include "planner/knowledge/knowledge.h"
#include "planner/knowledge/question.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* Varno of columns in a clause that are no keys. */
#define RF_OTHER_VARNO	2

/* Making clauses with run-time parameters for one relation. */
typedef struct RfParamContext
{
	PlannerInfo *root;
	RelOptInfo *rel;
	int			nkeys;
	Node	  **keys;			/* in terms of the relation */
	RfTable    *table;			/* in terms of the shape */
	RfGateShape *shape;
	MemoryContext scratch;		/* for sets of keys */
	bool		in_or;			/* the clause is below an OR */
	bool		guarded;		/* and below an AND in it: see
								 * rf_cannot_fail() */
} RfParamContext;

/* Filling the run-time parameters of a clause. */
typedef struct RfFilling
{
	const Datum *values;		/* by numbers of the run-time parameters */
	const bool *nulls;
	bool		has_null;		/* one was filled with NULL */
} RfFilling;

/*
 * An index of a gate's shape: which keys its columns are, and rf_gate_opclasses().
 */
List *
rf_gate_opclass(List *keys, List *oids)
{
	return list_make2(keys, oids);
}

/*
 * Describes indexes in the form that match.c expects: key number n is
 * attribute n + 1.
 */
RfTable *
rf_gate_table(List *opclasses)
{
	RfTable    *table = palloc0(sizeof(RfTable));

	table->nindexes = list_length(opclasses);
	table->indexes = palloc0((table->nindexes + 1) * sizeof(RfIndex));
	for (int i = 0; i < table->nindexes; i++)
	{
		RfIndex    *index = &table->indexes[i];
		List	   *keys = linitial(list_nth(opclasses, i));
		List	   *oids = lsecond(list_nth(opclasses, i));
		const RfCodec *codecs[RF_MAX_COLUMNS];

		index->oid = i + 1;
		index->ncolumns = list_length(keys);
		for (int c = 0; c < index->ncolumns; c++)
		{
			RfIndexColumn *column = &index->columns[c];

			column->attno = list_nth_int(keys, c) + 1;
			(void) rf_describe_key(column, list_nth_oid(oids, 3 * c),
								   list_nth_oid(oids, 3 * c + 1),
								   list_nth_oid(oids, 3 * c + 2));
			codecs[c] = column->codec;
		}
		index->codec = rf_row_codec(codecs, index->ncolumns);
	}
	return table;
}

/*
 * Operator family, input type and collation of each column of an index.
 */
List *
rf_gate_opclasses(const RfRelIndex *index)
{
	List	   *oids = NIL;

	for (int c = 0; c < index->ncolumns; c++)
	{
		oids = lappend_oid(oids, index->columns[c].opfamily);
		oids = lappend_oid(oids, index->columns[c].opcintype);
		oids = lappend_oid(oids, index->columns[c].collation);
	}
	return oids;
}

/*
 * A column of an index that is key number key and whose operator family has
 * the operator; NULL if there is none.
 */
static const RfIndexColumn *
gate_column(const RfTable *table, int key, Oid opno)
{
	for (int i = 0; i < table->nindexes; i++)
	{
		const RfIndex *index = rf_index_at(table, i);

		for (int c = 0; c < index->ncolumns; c++)
		{
			const RfIndexColumn *column = rf_column_at(index, c);

			if (column->attno == key + 1 && op_in_opfamily(opno, column->opfamily))
				return column;
		}
	}
	return NULL;
}

/*
 * A key column of an index as an expression.
 */
Node *
rf_gate_key(const RfRelIndex *index, int column)
{
	const RfIndexColumn *key = &index->columns[column];

	Assert(column >= 0 && column < index->ncolumns);
	if (key->expr != NULL)
		return key->expr;
	return (Node *) makeVar(index->varno, key->attno, key->opcintype, -1,
							key->collation, 0);
}

/*
 * Is this key number i?
 */
static bool
is_key(RfParamContext *context, int i, Node *node)
{
	Node	   *key = context->keys[i];

	if (IsA(key, Var))
		return IsA(node, Var) &&
			((Var *) node)->varno == ((Var *) key)->varno &&
			((Var *) node)->varattno == ((Var *) key)->varattno &&
			((Var *) node)->varlevelsup == 0;
	return equal(node, key);
}

/*
 * Replaces keys by Vars of the shape.
 */
static Node *
rename_keys(Node *node, void *arg)
{
	RfParamContext *context = arg;

	if (node == NULL)
		return NULL;
	for (int i = 0; i < context->nkeys; i++)
	{
		if (is_key(context, i, node))
			return (Node *) makeVar(1, i + 1, exprType(node),
									exprTypmod(node), exprCollation(node), 0);
	}
	if (IsA(node, Var))
	{
		Var		   *var = copyObject((Var *) node);

		var->varno = RF_OTHER_VARNO;
		return (Node *) var;
	}
	return expression_tree_mutator(node, rename_keys, arg);
}

/*
 * Can this be computed before the relation is scanned, once for the scan?
 */
static bool
is_early_value(RfParamContext *context, Node *node)
{
	return !bms_overlap(pull_varnos(context->root, node),
						context->rel->relids) &&
		!contain_subplans(node) && !contain_volatile_functions(node);
}

/*
 * A run-time parameter of a type, to be filled with a value.
 */
static Node *
make_param(RfParamContext *context, Node *value, Oid type,
		   RfConversion conversion)
{
	RfGateShape *shape = context->shape;
	Param	   *param = makeNode(Param);

	param->paramkind = PARAM_SUBLINK;
	param->paramid = list_length(shape->values);
	param->paramtype = type;
	param->paramtypmod = -1;
	param->paramcollid = exprCollation(value);
	shape->values = lappend(shape->values, value);
	shape->conversions = lappend_int(shape->conversions, conversion);
	return (Node *) param;
}

/*
 * "key <operator of strategy> run-time parameter", both sides of the given
 * types.
 */
static Node *
make_comparison(RfParamContext *context, const RfIndexColumn *column, Node *key,
				int strategy, Node *value, Oid type, RfConversion conversion)
{
	Oid			opno = get_opfamily_member(column->opfamily, column->opcintype,
										   type, strategy);

	if (!OidIsValid(opno))
		return NULL;
	return (Node *) make_opclause(opno, BOOLOID, false, (Expr *) key,
								  (Expr *) make_param(context, value, type,
													  conversion),
								  InvalidOid, InvalidOid);
}

/*
 * Replaces a comparison between a timestamptz and a date or timestamp, which
 * depends on the session's time zone.  If the key is a timestamptz, the value
 * is converted.  If the key is a local time, bounds that are far enough
 * outward replace the value.
 */
static Node *
make_zone_comparison(RfParamContext *context, const RfIndexColumn *column, Node *key,
					 int strategy, Node *value, Oid type)
{
	bool		below = strategy <= BTEqualStrategyNumber;
	bool		above = strategy >= BTEqualStrategyNumber;
	Node	   *low = NULL;
	Node	   *high = NULL;

	if (column->opcintype == TIMESTAMPTZOID)
		return make_comparison(context, column, key, strategy, value,
							   TIMESTAMPTZOID,
							   type == DATEOID ? RF_DATE_TO_TZ :
							   RF_TIMESTAMP_TO_TZ);
	if (above)
		low = make_comparison(context, column, key,
							  BTGreaterEqualStrategyNumber, value,
							  TIMESTAMPOID, RF_TZ_TO_TIMESTAMP_LOW);
	if (below)
		high = make_comparison(context, column, key,
							   BTLessEqualStrategyNumber, value,
							   TIMESTAMPOID, RF_TZ_TO_TIMESTAMP_HIGH);
	if (low != NULL && high != NULL)
		return (Node *) make_andclause(list_make2(low, high));
	return low != NULL ? low : high;
}

/*
 * The clause that replaces a comparison by an operator that is only stable;
 * NULL if this is no such comparison, or nothing can replace it.
 */
static Node *
match_zone_comparison(RfParamContext *context, OpExpr *expr)
{
	Oid			opno = expr->opno;
	Node	   *left = linitial(expr->args);
	Node	   *right;

	if (list_length(expr->args) != 2 || op_volatile(opno) == PROVOLATILE_IMMUTABLE)
		return NULL;
	right = lsecond(expr->args);
	if (is_early_value(context, left))
	{
		left = lsecond(expr->args);
		right = linitial(expr->args);
		opno = get_commutator(opno);
	}
	if (!OidIsValid(opno) || !is_early_value(context, right))
		return NULL;
	for (int i = 0; i < context->nkeys; i++)
	{
		const RfIndexColumn *column = is_key(context, i, left) ?
		gate_column(context->table, i, opno) : NULL;
		int			strategy;
		Oid			lefttype;
		Oid			righttype;

		if (column == NULL)
			continue;
		get_op_opfamily_properties(opno, column->opfamily, false,
								   &strategy, &lefttype, &righttype);
		if ((righttype == TIMESTAMPTZOID) !=
			(column->opcintype == TIMESTAMPTZOID))
			return make_zone_comparison(context, column,
										rename_keys(left, context),
										strategy, right, righttype);
	}
	return NULL;
}

/*
 * Does computing the values of a clause that is neither AND nor OR raise no error?
 */
static bool
values_cannot_fail(RfParamContext *context, Node *clause)
{
	List	   *args = IsA(clause, OpExpr) ? ((OpExpr *) clause)->args :
	IsA(clause, ScalarArrayOpExpr) ? ((ScalarArrayOpExpr *) clause)->args :
	IsA(clause, FuncExpr) ? ((FuncExpr *) clause)->args : NIL;
	ListCell   *cell;

	foreach(cell, args)
	{
		if (is_early_value(context, lfirst(cell)) && !rf_cannot_fail(context->root, lfirst(cell)))
			return false;
	}
	return true;
}

/*
 * The arguments of an operator or function, with run-time parameters.
 */
static List *
make_arguments(RfParamContext *context, List *args)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, args)
	{
		Node	   *arg = lfirst(cell);

		if (!IsA(arg, Const) && is_early_value(context, arg))
			arg = make_param(context, arg, exprType(arg), RF_AS_IS);
		else
			arg = rename_keys(arg, context);
		result = lappend(result, arg);
	}
	return result;
}

/*
 * A clause that is neither AND nor OR, with run-time parameters.
 */
static Node *
make_simple_clause(RfParamContext *context, Node *clause)
{
	List	  **args;
	Node	   *result;

	switch (nodeTag(clause))
	{
		case T_OpExpr:
			result = match_zone_comparison(context, (OpExpr *) clause);
			if (result != NULL)
				return result;
			result = copyObject(clause);
			args = &((OpExpr *) result)->args;
			break;
		case T_ScalarArrayOpExpr:
			result = copyObject(clause);
			args = &((ScalarArrayOpExpr *) result)->args;
			break;
		case T_FuncExpr:
			result = copyObject(clause);
			args = &((FuncExpr *) result)->args;
			break;
		default:
			return rename_keys(clause, context);
	}
	*args = make_arguments(context, *args);
	return result;
}

/*
 * Do the indexes know a clause in terms of the shape?  Its set of keys, which is
 * made for that, is freed: it may be that of a long list.
 */
static bool
is_known(RfParamContext *context, Node *clause)
{
	MemoryContext old = MemoryContextSwitchTo(context->scratch);
	bool		known = rf_clause_known(clause, 1, context->table);

	MemoryContextSwitchTo(old);
	MemoryContextReset(context->scratch);
	return known;
}

static Node *make_clause(RfParamContext *context, Node *clause);

/*
 * AND or OR with run-time parameters.  Under AND, arguments that no index can
 * answer are left out.
 */
static Node *
make_bool_clause(RfParamContext *context, BoolExpr *expr)
{
	List	   *args = NIL;
	ListCell   *cell;
	bool		in_or = context->in_or;
	bool		guarded = context->guarded;

	context->guarded |= in_or && expr->boolop == AND_EXPR;
	context->in_or |= expr->boolop == OR_EXPR;
	foreach(cell, expr->args)
	{
		Node	   *arg = make_clause(context, lfirst(cell));

		if (arg != NULL)
			args = lappend(args, arg);
		else if (expr->boolop == OR_EXPR)
		{
			args = NIL;
			break;
		}
	}
	context->in_or = in_or;
	context->guarded = guarded;
	return args != NIL ? (Node *) makeBoolExpr(expr->boolop, args, -1) : NULL;
}

/*
 * A clause with run-time parameters; NULL if no index can answer it.
 */
static Node *
make_clause(RfParamContext *context, Node *clause)
{
	RfGateShape *shape = context->shape;
	int			nvalues = list_length(shape->values);
	Node	   *result;

	check_stack_depth();
	if (IsA(clause, RestrictInfo))
		clause = (Node *) ((RestrictInfo *) clause)->clause;
	if (is_andclause(clause) || is_orclause(clause))
		result = make_bool_clause(context, (BoolExpr *) clause);
	else if (context->guarded && !values_cannot_fail(context, clause))
		result = NULL;
	else
	{
		result = make_simple_clause(context, clause);

		/* The bounds that replace an equality are about a key in any case. */
		if (!is_andclause(result) && !is_known(context, result))
			result = NULL;
	}
	if (result == NULL)
	{
		shape->values = list_truncate(shape->values, nvalues);
		shape->conversions = list_truncate(shape->conversions, nvalues);
	}
	return result;
}

/*
 * The number of a key.  A new key is added to the others.
 */
static int
key_number(RfParamContext *context, Node *key)
{
	for (int i = 0; i < context->nkeys; i++)
	{
		if (is_key(context, i, key))
			return i;
	}
	context->keys[context->nkeys] = key;
	return context->nkeys++;
}

/*
 * Adds an index to the shape, its columns to the keys.
 */
static void
add_index(RfParamContext *context, const RfRelIndex *index)
{
	RfGateShape *shape = context->shape;
	List	   *keys = NIL;

	for (int c = 0; c < index->ncolumns; c++)
		keys = lappend_int(keys, key_number(context, rf_gate_key(index, c)));
	shape->indexes = lappend_oid(shape->indexes, index->oid);
	shape->opclasses = lappend(shape->opclasses,
							   rf_gate_opclass(keys, rf_gate_opclasses(index)));
}

/*
 * Fills in what these indexes can be asked.  Returns them in the form that
 * match.c expects.
 */
static RfTable *
fill_shape(PlannerInfo *root, RelOptInfo *rel, List *indexes, List *clauses,
		   MemoryContext scratch, RfGateShape *shape)
{
	RfParamContext context = {0};
	ListCell   *cell;

	memset(shape, 0, sizeof(*shape));
	context.root = root;
	context.rel = rel;
	context.keys = palloc(list_length(indexes) * RF_MAX_COLUMNS *
						  sizeof(Node *));
	context.shape = shape;
	context.scratch = scratch;
	foreach(cell, indexes)
		add_index(&context, lfirst(cell));
	context.table = rf_gate_table(shape->opclasses);
	foreach(cell, clauses)
	{
		Node	   *clause = make_clause(&context, lfirst(cell));

		if (clause != NULL)
			shape->clauses = lappend(shape->clauses, clause);
	}
	for (int i = 0; i < context.nkeys; i++)
	{
		Node	   *key = copyObject(context.keys[i]);

		ChangeVarNodes(key, rel->relid, 1, 0);
		shape->keys = lappend(shape->keys, key);
	}
	return context.table;
}

/*
 * Those of the indexes, which are also given in the form of a table, that a
 * shape's clauses are about.
 */
static List *
asked_indexes(RfGateShape *shape, RfTable *table, List *indexes,
			  MemoryContext scratch)
{
	MemoryContext old = MemoryContextSwitchTo(scratch);
	List	   *used = NIL;
	List	   *oids = NIL;
	RfMatch		match;
	ListCell   *cell;

	if (rf_match_clauses(shape->clauses, 1, table, &match))
		oids = rf_cond_indexes(match.cond);
	MemoryContextSwitchTo(old);
	foreach(cell, indexes)
	{
		if (list_member_oid(oids, foreach_current_index(cell) + 1))
			used = lappend(used, lfirst(cell));
	}
	MemoryContextReset(scratch);
	return used;
}

/*
 * Those of a relation's indexes that can be asked under these restrictions: the columns of
 * their first key are in them.  A partial one can be only where its predicate follows from them.
 */
static List *
usable_indexes(List *indexes, List *clauses)
{
	List	   *usable = NIL;
	ListCell   *cell;

	foreach(cell, indexes)
	{
		RfRelIndex *index = lfirst(cell);
		Bitmapset  *mentioned = NULL;
		Bitmapset  *columns = NULL;

		pull_varattnos((Node *) clauses, index->varno, &mentioned);
		pull_varattnos(rf_gate_key(index, 0), index->varno, &columns);
		if (bms_is_subset(columns, mentioned) &&
			(index->predicate == NIL ||
			 predicate_implied_by(index->predicate, clauses, false)))
			usable = lappend(usable, index);
	}
	return usable;
}

/*
 * Fills in what a relation's indexes, those of rf_gate_indexes(), can be asked
 * at execution.  False if that is nothing, or if there are only constants and
 * these do not count.
 *
 * This is done for each member and each of its parameterizations.  Sets of keys
 * are made on the way, for lists of constants long ones, and freed.
 */
bool
rf_gate_shape(PlannerInfo *root, RelOptInfo *rel, List *indexes,
			  List *clauses, bool constants, RfGateShape *shape)
{
	MemoryContext scratch;
	List	   *used = NIL;
	RfTable    *table;

	indexes = usable_indexes(indexes, clauses);
	if (indexes == NIL || clauses == NIL)
		return false;
	scratch = AllocSetContextCreate(CurrentMemoryContext,
									"rangefilter conditions",
									ALLOCSET_SMALL_SIZES);
	table = fill_shape(root, rel, indexes, clauses, scratch, shape);
	if (shape->values != NIL || constants)
		used = asked_indexes(shape, table, indexes, scratch);
	if (used != NIL && list_length(used) < list_length(indexes))
		(void) fill_shape(root, rel, used, clauses, scratch, shape);
	MemoryContextDelete(scratch);
	return used != NIL && (shape->values != NIL || constants);
}

/*
 * expression_tree_mutator() callback for a list of arguments: puts constants in the
 * places of run-time parameters.  Other arguments are not copied.
 */
static Node *
fill_argument(Node *node, void *arg)
{
	RfFilling  *filling = arg;
	const Param *param = (const Param *) node;
	int16		typlen;
	bool		typbyval;
	bool		isnull;

	if (node == NULL)
		return NULL;
	if (IsA(node, List))
		return expression_tree_mutator(node, fill_argument, arg);
	if (!rf_is_runtime_param(node))
		return node;
	isnull = filling->nulls[param->paramid];
	filling->has_null |= isnull;
	get_typlenbyval(param->paramtype, &typlen, &typbyval);
	return (Node *) makeConst(param->paramtype, -1, param->paramcollid, typlen,
							  filling->values[param->paramid], isnull, typbyval);
}

/*
 * AND or OR of filled clauses; NULL if that can never be true.
 */
static Node *
fill_bool_clause(BoolExpr *expr, const Datum *values, const bool *nulls)
{
	List	   *args = NIL;
	ListCell   *cell;

	foreach(cell, expr->args)
	{
		Node	   *arg = rf_gate_fill(lfirst(cell), values, nulls);

		if (arg != NULL)
			args = lappend(args, arg);
		else if (expr->boolop == AND_EXPR)
			return NULL;
	}
	return args != NIL ? (Node *) makeBoolExpr(expr->boolop, args, -1) : NULL;
}

/*
 * check_functions_in_node() callback
 */
static bool
is_strict(Oid function, void *context)
{
	return func_strict(function);
}

/*
 * A clause with its run-time parameters, which are arguments of operators and functions,
 * filled.  NULL if it can never be true, because a strict function gets a NULL.
 */
Node *
rf_gate_fill(Node *clause, const Datum *values, const bool *nulls)
{
	RfFilling	filling = {values, nulls, false};
	Node	   *filled;

	if (is_andclause(clause) || is_orclause(clause))
		return fill_bool_clause((BoolExpr *) clause, values, nulls);
	filled = expression_tree_mutator(clause, fill_argument, &filling);
	return filling.has_null && check_functions_in_node(filled, is_strict, NULL) ?
		NULL : filled;
}
