/*-------------------------------------------------------------------------
 *
 * rffuncs.h
 *	  What the SQL functions share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_RFFUNCS_H
#define RANGEFILTER_RFFUNCS_H

#include "fmgr.h"
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
extern void rf_as_owner(RfOpenIndex *open, void (*work) (RfOpenIndex *, void *),
						void *arg);
extern bool rf_may_read_keys(RfOpenIndex *open);
extern bool rf_reads_all_stats(void);
extern void rf_require_read_keys(Oid index_oid);
extern RfKeySet *rf_argument_set(FunctionCallInfo fcinfo, Relation index);

#endif							/* RANGEFILTER_RFFUNCS_H */
