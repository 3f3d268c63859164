/*-------------------------------------------------------------------------
 *
 * describe.c
 *	  What a partitioned index is: its columns, expressions and predicate.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_index.h"
#include "key/rowkey.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "planner/knowledge/knowledge.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* Renaming the columns of a partition in an expression. */
typedef struct RfRenaming
{
	Oid			leaf;
	Oid			parent;
	bool		failed;
} RfRenaming;

/*
 * The number in the parent of a leaf's column, 0 if there is none.
 */
AttrNumber
rf_parent_attno(Oid parent, Oid leaf, AttrNumber attno)
{
	char	   *name = attno > 0 ? get_attname(leaf, attno, true) : NULL;

	return name != NULL ? get_attnum(parent, name) : InvalidAttrNumber;
}

/*
 * expression_tree_mutator() callback of rf_about_parent(): gives a leaf's Vars the numbers that their columns have
 * in the parent.  Sets RfRenaming.failed if the parent has no column of that name.
 */
static Node *
rename_columns(Node *node, void *arg)
{
	RfRenaming *renaming = arg;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var		   *var = copyObject((Var *) node);

		var->varattno = rf_parent_attno(renaming->parent, renaming->leaf,
										var->varattno);
		if (var->varattno == InvalidAttrNumber)
			renaming->failed = true;
		return (Node *) var;
	}
	return expression_tree_mutator(node, rename_columns, arg);
}

/*
 * Makes an expression about a leaf one about its parent; NULL if the parent lacks one of the
 * columns.
 */
Node *
rf_about_parent(Node *node, Oid leaf, Oid parent)
{
	RfRenaming	renaming = {leaf, parent, false};

	node = rename_columns(node, &renaming);
	return renaming.failed ? NULL : node;
}

/*
 * Fills in how keys of an index's column are compared.  False if they have no
 * codec.
 */
bool
rf_describe_key(RfIndexColumn *column, Oid opfamily, Oid opcintype,
				Oid collation)
{
	column->opfamily = opfamily;
	column->opcintype = opcintype;
	column->collation = collation;
	column->codec = rf_codec_under(opcintype, collation);
	return column->codec != NULL;
}

/* Columns of pg_index, in the order of RfIndex.stored. */
static const AttrNumber stored_columns[] = {
	[RF_STORED_EXPRS] = Anum_pg_index_indexprs,
	[RF_STORED_PREDICATE] = Anum_pg_index_indpred
};

/*
 * What a row of pg_index says of an index's expressions, or of its predicate.  NULL for none.
 */
static text *
read_stored(HeapTuple row, int which)
{
	bool		isnull;
	Datum		value = SysCacheGetAttr(INDEXRELID, row, stored_columns[which], &isnull);

	return isnull ? NULL : DatumGetTextPP(value);
}

/*
 * Makes columns of an index's expressions parameters with their numbers.
 */
static Node *
columns_to_params(Node *node, void *arg)
{
	const Var  *var = (const Var *) node;
	Param	   *param;

	if (node == NULL)
		return NULL;
	if (!IsA(node, Var))
		return expression_tree_mutator(node, columns_to_params, arg);
	param = makeNode(Param);
	param->paramkind = PARAM_EXTERN;
	param->paramid = var->varattno;
	param->paramtype = var->vartype;
	param->paramtypmod = var->vartypmod;
	param->paramcollid = var->varcollid;
	param->location = -1;
	return (Node *) param;
}

/*
 * Makes them columns again.  The result points to values of constants in what it was made of.
 */
static Node *
params_to_columns(Node *node, void *arg)
{
	const Param *param = (const Param *) node;

	if (node == NULL)
		return NULL;
	if (!IsA(node, Param))
		return expression_tree_mutator(node, params_to_columns, arg);
	return (Node *) makeVar(1, param->paramid, param->paramtype, param->paramtypmod,
							param->paramcollid, 0);
}

/*
 * The expressions of a partitioned index, or its predicate, as the planner would have them
 * in a query; NULL for none.  Allocates in the entry's context.
 *
 * SQL functions are inlined.  The relation cache has the expressions, too, but does not
 * hear when such a function is replaced.  The entry does.  expression_planner_with_deps()
 * is for expressions without columns: it knows no table, where PostgreSQL 19 looks whether a
 * column may be NULL.
 */
static Node *
read_expression(RfTable *table, Relation relation, RfIndex *index, int which)
{
	text	   *stored = read_stored(relation->rd_indextuple, which);
	Node	   *expr;
	List	   *relations;
	List	   *functions;
	uint64		seen = rf_function_changes();
	MemoryContext old;

	if (stored == NULL)
		return NULL;
	expr = columns_to_params(stringToNode(text_to_cstring(stored)), NULL);
	expr = (Node *) expression_planner_with_deps((Expr *) expr, &relations, &functions);
	expr = params_to_columns(expr, NULL);

	/* One may have been replaced before the entry could hear of it. */
	if (seen != rf_function_changes())
		table->valid = false;
	old = MemoryContextSwitchTo(table->context);
	table->functions = list_concat(table->functions, copyObject(functions));
	index->stored[which] = DatumGetTextPCopy(PointerGetDatum(stored));
	index->calls_functions |= functions != NIL;
	expr = copyObject(expr);
	MemoryContextSwitchTo(old);
	return expr;
}

/*
 * Describes an open partitioned index of a table.  False if its keys have no codec, or
 * it has too many columns.  Allocates in the entry's context.
 */
bool
rf_describe_index(RfTable *table, Relation relation, RfIndex *index)
{
	Form_pg_index form = relation->rd_index;
	List	   *exprs;
	Node	   *predicate;
	const RfCodec *codecs[RF_MAX_COLUMNS];
	oidvector  *opclasses;
	bool		isnull;

	memset(index, 0, sizeof(*index));
	exprs = (List *) read_expression(table, relation, index, RF_STORED_EXPRS);
	predicate = read_expression(table, relation, index, RF_STORED_PREDICATE);
	index->oid = RelationGetRelid(relation);
	index->parent = table->relid;
	index->am = relation->rd_rel->relam;
	index->ncolumns = form->indnkeyatts;
	if (index->ncolumns > RF_MAX_COLUMNS)
		return false;
	opclasses = (oidvector *)
		DatumGetPointer(SysCacheGetAttr(INDEXRELID, relation->rd_indextuple,
										Anum_pg_index_indclass, &isnull));
	for (int i = 0; i < index->ncolumns; i++)
	{
		RfIndexColumn *column = &index->columns[i];

		column->attno = form->indkey.values[i];
		column->opclass = opclasses->values[i];
		if (!rf_describe_key(column, relation->rd_opfamily[i],
							 relation->rd_opcintype[i],
							 relation->rd_indcollation[i]))
			return false;
		codecs[i] = column->codec;
		if (column->attno == 0)
		{
			column->expr = linitial(exprs);
			exprs = list_delete_first(exprs);
		}
	}
	index->codec = rf_row_codec(codecs, index->ncolumns);
	if (predicate != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(table->context);

		index->predicate =
			make_ands_implicit(canonicalize_qual((Expr *) predicate, false));
		MemoryContextSwitchTo(old);
	}
	return true;
}

/*
 * Has a leaf's index, by its row of pg_index, expressions and a predicate that are stored as
 * those of the partitioned index?  A predicate that core takes for TRUE, because a function
 * is inlined, is one.
 *
 * The leaf's columns may have other numbers.  Core has matched them, but not those that were
 * gone when a function had been inlined, and it may have been replaced since.  So where users'
 * functions are called, this says no.
 */
bool
rf_stored_alike(const RfIndex *index, HeapTuple row)
{
	if (index->calls_functions)
		return false;
	for (int i = 0; i < RF_STORED; i++)
	{
		const text *ours = index->stored[i];
		const text *theirs = read_stored(row, i);

		if ((ours == NULL) != (theirs == NULL) ||
			(ours != NULL &&
			 !datum_image_eq(PointerGetDatum(ours), PointerGetDatum(theirs), false, -1)))
			return false;
	}
	return true;
}

/*
 * Are they the same if columns are matched by name?  Functions are not inlined here: what
 * is the same with their present bodies may not be the same with others, and the leaf's keys
 * may have been made with others.  No function is called.
 */
static bool
is_same_stored(const RfIndex *index, Relation leaf_index)
{
	for (int i = 0; i < RF_STORED; i++)
	{
		text	   *theirs = read_stored(leaf_index->rd_indextuple, i);

		if ((index->stored[i] == NULL) != (theirs == NULL) ||
			(theirs != NULL &&
			 !equal(stringToNode(text_to_cstring(index->stored[i])),
					rf_about_parent(stringToNode(text_to_cstring(theirs)),
									leaf_index->rd_index->indrelid, index->parent))))
			return false;
	}
	return true;
}

/*
 * Are a leaf's keys, of as many columns as a partitioned index has, made from the same
 * columns and types under the same collations, and of the same expressions?
 */
bool
rf_child_fits(const RfIndex *index, Relation leaf_index)
{
	Form_pg_index form = leaf_index->rd_index;

	for (int i = 0; i < index->ncolumns; i++)
	{
		if (leaf_index->rd_opcintype[i] != index->columns[i].opcintype ||
			leaf_index->rd_indcollation[i] != index->columns[i].collation)
			return false;
	}

	/* A gate has described the leaf's own index, and names no parent. */
	if (!OidIsValid(index->parent))
		return true;
	for (int i = 0; i < index->ncolumns; i++)
	{
		if (rf_parent_attno(index->parent, form->indrelid, form->indkey.values[i]) !=
			index->columns[i].attno)
			return false;
	}
	return rf_stored_alike(index, leaf_index->rd_indextuple) ||
		is_same_stored(index, leaf_index);
}
