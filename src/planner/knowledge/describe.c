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
#include "nodes/plannodes.h"
#include "optimizer/optimizer.h"
#include "planner/knowledge/knowledge.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/syscache.h"

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

/*
 * An expression in an index's row of pg_index, as the planner would have it in a query;
 * NULL if there is none.  Allocates in the entry's context.
 *
 * SQL functions are inlined.  The relation cache has the expression, too, but does not
 * hear when such a function is replaced.  The entry does.
 */
static Node *
read_expression(RfTable *table, Relation index, AttrNumber attno)
{
	bool		isnull;
	Datum		stored = SysCacheGetAttr(INDEXRELID, index->rd_indextuple, attno, &isnull);
	Expr	   *expr;
	List	   *relations;
	List	   *functions;
	uint64		seen = rf_function_changes();
	MemoryContext old;

	if (isnull)
		return NULL;
	expr = stringToNode(TextDatumGetCString(stored));
	expr = expression_planner_with_deps(expr, &relations, &functions);

	/* One may have been replaced before the entry could hear of it. */
	if (seen != rf_function_changes())
		table->valid = false;
	old = MemoryContextSwitchTo(table->context);
	table->functions = list_concat(table->functions, copyObject(functions));
	expr = copyObject(expr);
	MemoryContextSwitchTo(old);
	return (Node *) expr;
}

/*
 * Describes an open partitioned index of a table.  False if its keys have no codec, or
 * it has too many columns.  Allocates in the entry's context.
 */
bool
rf_describe_index(RfTable *table, Relation relation, RfIndex *index)
{
	Form_pg_index form = relation->rd_index;
	List	   *exprs = (List *) read_expression(table, relation,
												 Anum_pg_index_indexprs);
	Node	   *predicate = read_expression(table, relation, Anum_pg_index_indpred);
	const RfCodec *codecs[RF_MAX_COLUMNS];
	oidvector  *opclasses;
	bool		isnull;

	index->oid = RelationGetRelid(relation);
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
 * Are a leaf's keys made from the same types under the same collations?
 */
bool
rf_index_fits(const RfIndex *index, Relation leaf_index)
{
	if (IndexRelationGetNumberOfKeyAttributes(leaf_index) != index->ncolumns)
		return false;
	if (index->own != NIL)
		return rf_own_fits(index, leaf_index);
	for (int i = 0; i < index->ncolumns; i++)
	{
		if (leaf_index->rd_opfamily[i] != index->columns[i].opfamily ||
			leaf_index->rd_opcintype[i] != index->columns[i].opcintype ||
			leaf_index->rd_indcollation[i] != index->columns[i].collation)
			return false;
	}
	return true;
}
