/*-------------------------------------------------------------------------
 *
 * condition.h
 *	  From SQL clauses to sets of keys.
 *
 *	  match.c		a table's restrictions as conditions on its indexes
 *	  clause.c		one clause on one index as a set of keys
 *	  pattern.c		the same for LIKE, prefixes and ranges containing a column
 *	  parameter.c	conditions on values known only at execution: see parameter.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_CONDITION_H
#define RANGEFILTER_CONDITION_H

#include "postgres.h"

#include "key/rowkey.h"
#include "planner/knowledge/knowledge.h"
#include "planner/knowledge/question.h"

/* ---- match.c ---- */

extern List *rf_usable_clauses(RelOptInfo *rel, List *restrictions);
extern bool rf_match_clauses(List *clauses, Index varno, RfTable *table,
							 RfMatch *match);
extern bool rf_clause_known(Node *clause, Index varno, RfTable *table);
extern bool rf_match_flat(List *clauses, Index varno, RfTable *table, bool with_own,
						  RfMatch *match);
extern bool rf_match(RelOptInfo *rel, RfTable *table, bool with_own,
					 RfMatch *match);
extern bool rf_same_cond(const RfCond *a, const RfCond *b);
extern List *rf_cond_indexes(const RfCond *cond);
extern double rf_cond_ranges(const RfCond *cond);

/* ---- clause.c, pattern.c ---- */

/*
 * Is this a run-time parameter?  It replaces a value that is not known yet;
 * its paramid is its number.  No clause that has been planned contains Params
 * of this kind.
 */
static inline bool
rf_is_runtime_param(const Node *node)
{
	return IsA(node, Param) && ((const Param *) node)->paramkind == PARAM_SUBLINK;
}

/*
 * An expression without the binary-compatible casts around it.
 */
static inline Node *
rf_strip_relabel(Node *node)
{
	while (node != NULL && IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return node;
}

extern RfKeySet *rf_clause_set(const RfIndexColumn *column, Index varno,
							   Node *key, Node *clause, bool briefly);
extern RfKeySet *rf_pattern_set(const RfIndexColumn *column, Oid function,
								Oid collation, Datum pattern);
extern bool rf_prefix_fits(const RfIndexColumn *column, Oid function,
						   Oid collation);
extern RfKeySet *rf_within_range_set(const RfIndexColumn *column, Oid type,
									 Datum value);

#endif							/* RANGEFILTER_CONDITION_H */
