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

extern List *rf_inheritors(Oid oid);
extern List *rf_leaf_indexes(Oid index_oid);
extern bool rf_may_read_keys(RfOpenIndex *open);
extern bool rf_reads_all_stats(void);
extern void rf_require_read_keys(Oid index_oid);
extern RfKeySet *rf_argument_set(FunctionCallInfo fcinfo, Relation index);

#endif							/* RANGEFILTER_RFFUNCS_H */
