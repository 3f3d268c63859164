/*-------------------------------------------------------------------------
 *
 * rffuncs.h
 *	  What the SQL functions share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_RFFUNCS_H
#define RANGEFILTER_RFFUNCS_H

#include "nodes/pg_list.h"
#include "rangefilter/rangefilter.h"
#include "storage/lockdefs.h"

/* An index and its table, both open and locked in one mode. */
typedef struct RfOpenIndex
{
	Relation	heap;
	Relation	index;
	LOCKMODE	lockmode;
} RfOpenIndex;

extern bool rf_try_open_index(Oid index_oid, LOCKMODE lockmode,
							  RfOpenIndex *open);
extern void rf_close_index(RfOpenIndex *open, bool keep_lock);
extern List *rf_leaf_indexes(Oid index_oid);
extern bool rf_may_read_keys(RfOpenIndex *open);

#endif							/* RANGEFILTER_RFFUNCS_H */
