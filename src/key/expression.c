/*-------------------------------------------------------------------------
 *
 * expression.c
 *	  What the expressions of an index, and its predicate, call.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "key/expression.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/*
 * check_functions_in_node() callback.  Return true if the function is not built in.
 */
static bool
is_users_function(Oid function, void *context)
{
	return function >= FirstNormalObjectId;
}

/*
 * expression_tree_walker() callback.  Return true if evaluating the expression may call a
 * function that is not built in.  Built-in functions may call functions of the types that
 * they are given; values get types from columns, constants and casts.  Enums have no
 * functions of their own.
 */
static bool
calls_users_function(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (check_functions_in_node(node, is_users_function, NULL))
		return true;
	if (IsA(node, Var) || IsA(node, Const) || IsA(node, CoerceToDomain) ||
		IsA(node, CoerceViaIO) || IsA(node, RelabelType))
	{
		Oid			type = exprType(node);

		if (type >= FirstNormalObjectId && get_typtype(type) != TYPTYPE_ENUM)
			return true;
	}
	return expression_tree_walker(node, calls_users_function, context);
}

/*
 * Return true if one of the expressions of an index, or its predicate, may call a function
 * that is not built in.  Looks at them as they are stored: the relation cache would
 * evaluate calls with constant arguments.
 */
bool
rf_calls_users_functions(Relation index)
{
	const AttrNumber columns[] = {Anum_pg_index_indexprs, Anum_pg_index_indpred};
	bool		result = false;

	for (int i = 0; i < lengthof(columns) && !result; i++)
	{
		bool		isnull;
		Datum		stored = SysCacheGetAttr(INDEXRELID, index->rd_indextuple, columns[i],
											 &isnull);

		result = !isnull &&
			calls_users_function(stringToNode(TextDatumGetCString(stored)), NULL);
	}
	return result;
}
