/*-------------------------------------------------------------------------
 *
 * prune.c
 *	  Partition pruning without a planner's relation.
 *
 * What is expected of core: prune_append_rel_partitions() reads of a RelOptInfo only what
 * describes the partitioned table, and its clauses.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "core/core.h"
#include "nodes/makefuncs.h"
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "partitioning/partprune.h"
#include "utils/partcache.h"

/*
 * The expressions of a partition key, varno 1: a list for each column.
 */
static List **
key_expressions(PartitionKey key)
{
	List	  **exprs = palloc(key->partnatts * sizeof(List *));
	ListCell   *cell = list_head(key->partexprs);

	for (int i = 0; i < key->partnatts; i++)
	{
		Node	   *expr;

		if (key->partattrs[i] != 0)
			expr = (Node *) makeVar(1, key->partattrs[i], key->parttypid[i],
									key->parttypmod[i], key->parttypcoll[i], 0);
		else
		{
			expr = copyObject(lfirst(cell));
			cell = lnext(key->partexprs, cell);
		}
		exprs[i] = list_make1(expr);
	}
	return exprs;
}

/*
 * The partitions of an open table, by their numbers in the descriptor, that core's partition
 * pruning leaves for some clauses, varno 1, under AND.
 */
Bitmapset *
rf_core_prune(Relation relation, PartitionDesc partdesc, List *clauses)
{
	PartitionKey key = RelationGetPartitionKey(relation);
	RelOptInfo *rel = makeNode(RelOptInfo);
	PartitionScheme scheme = palloc0(sizeof(struct PartitionSchemeData));

	scheme->strategy = key->strategy;
	scheme->partnatts = key->partnatts;
	scheme->partopfamily = key->partopfamily;
	scheme->partopcintype = key->partopcintype;
	scheme->partcollation = key->partcollation;
	scheme->parttyplen = key->parttyplen;
	scheme->parttypbyval = key->parttypbyval;
	scheme->partsupfunc = key->partsupfunc;
	rel->relid = 1;
	rel->relids = bms_make_singleton(1);
	rel->part_scheme = scheme;
	rel->nparts = partdesc->nparts;
	rel->boundinfo = partdesc->boundinfo;
	rel->partexprs = key_expressions(key);
	rel->baserestrictinfo = clauses;
	return prune_append_rel_partitions(rel);
}
