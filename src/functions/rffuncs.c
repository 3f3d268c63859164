/*-------------------------------------------------------------------------
 *
 * rffuncs.c
 *	  SQL functions over an index: summarize, may_contain, verify.
 *
 * Each takes an index or a partitioned index; the latter stands for all its
 * leaves.  The table is always locked before the index.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_authid_d.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type_d.h"
#include "compat.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "functions/rffuncs.h"
#include "key/expression.h"
#include "rangefilter/page/page.h"
#include "rangefilter/probe/probe.h"
#include "rangefilter/rangefilter.h"
#include "rangefilter/summarize/summarize.h"
#include "storage/predicate.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(rangefilter_may_contain);
PG_FUNCTION_INFO_V1(rangefilter_summarize);
PG_FUNCTION_INFO_V1(rangefilter_verify);

/*
 * Raises the error for an object that is no rangefilter index, or was one and
 * was dropped while we waited for the lock.
 */
static void
rf_report_other(Oid oid)
{
	char	   *name = get_rel_name(oid);

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("index with OID %u does not exist", oid)));
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("\"%s\" is not a rangefilter index", name),
			 errhint("Name an index made with CREATE INDEX ... USING rangefilter.")));
}

/*
 * Opens a table and then its rangefilter index, both in the given mode.  Any
 * other object is an error.
 */
static void
rf_open_index(Oid index_oid, LOCKMODE lockmode, RfOpenIndex *open)
{
	if (!rf_try_open_index(index_oid, lockmode, true, open) ||
		!rf_is_rangefilter(open->index))
		rf_report_other(index_oid);
	if (RELATION_IS_OTHER_TEMP(open->index))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary indexes of other sessions")));
}

/*
 * A table or index and all that inherit from it, parents first.  What inherits
 * twice is there twice.  Locks nothing, so any of them may be gone; unlike
 * find_all_inheritors(), this raises no error where one goes meanwhile.
 */
List *
rf_inheritors(Oid oid)
{
	List	   *result = list_make1_oid(oid);
	ListCell   *cell;

	/* The list grows while we go over it. */
	foreach(cell, result)
	{
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(lfirst_oid(cell))))
			result = list_concat(result,
								 find_inheritance_children(lfirst_oid(cell), NoLock));
	}
	return result;
}

/*
 * The leaf indexes of an index: itself, or all indexes with storage below a
 * partitioned one.  Checks that it is a rangefilter index.
 */
List *
rf_leaf_indexes(Oid index_oid)
{
	List	   *result = NIL;
	ListCell   *cell;
	RfOpenIndex open;
	bool		partitioned;

	rf_open_index(index_oid, AccessShareLock, &open);
	partitioned = open.index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX;
	rf_close_index(&open, false);
	if (!partitioned)
		return list_make1_oid(index_oid);
	foreach(cell, rf_inheritors(index_oid))
	{
		if (get_rel_relkind(lfirst_oid(cell)) == RELKIND_INDEX)
			result = lappend_oid(result, lfirst_oid(cell));
	}
	return result;
}

/*
 * Returns true if a partition has none of a partitioned index's leaf indexes: a foreign table, or
 * any table while the index is not valid.
 */
static bool
rf_table_without_index(Oid index_oid, List *leaves)
{
	List	   *indexed = NIL;
	ListCell   *cell;

	if (get_rel_relkind(index_oid) != RELKIND_PARTITIONED_INDEX)
		return false;
	foreach(cell, leaves)
		indexed = lappend_oid(indexed, IndexGetRelation(lfirst_oid(cell), true));
	foreach(cell, rf_inheritors(IndexGetRelation(index_oid, false)))
	{
		CHECK_FOR_INTERRUPTS();
		if (get_rel_relkind(lfirst_oid(cell)) != RELKIND_PARTITIONED_TABLE &&
			!list_member_oid(indexed, lfirst_oid(cell)))
			return true;
	}
	return false;
}

/*
 * Return true if the current user may read all key columns of an index, none of which is an
 * expression.
 */
static bool
rf_may_read_columns(RfOpenIndex *open)
{
	Form_pg_index form = open->index->rd_index;

	for (int i = 0; i < form->indnkeyatts; i++)
	{
		AttrNumber	attno = form->indkey.values[i];

		if (attno == 0 ||
			pg_attribute_aclcheck(RelationGetRelid(open->heap), attno,
								  GetUserId(), ACL_SELECT) != ACLCHECK_OK)
			return false;
	}
	return true;
}

/*
 * Return true if the current user may learn from the index which key values exist.  This
 * needs the rights to name the table and to read them from it, and no row-level security.  A
 * partial index also reveals its predicate's columns, so it needs SELECT on
 * the whole table, as an expression does.
 */
bool
rf_may_read_keys(RfOpenIndex *open)
{
	Oid			heap_oid = RelationGetRelid(open->heap);

	if (check_enable_rls(heap_oid, InvalidOid, true) == RLS_ENABLED ||
		!RF_MAY_USE_SCHEMA(RelationGetNamespace(open->heap), GetUserId()))
		return false;
	if (pg_class_aclcheck(heap_oid, GetUserId(), ACL_SELECT) == ACLCHECK_OK)
		return true;
	return heap_attisnull(open->index->rd_indextuple, Anum_pg_index_indpred, NULL) &&
		rf_may_read_columns(open);
}

/*
 * Return true if the current user may see statistics of everything.
 */
bool
rf_reads_all_stats(void)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
}

/*
 * Errors out where rf_may_read_keys() says no.
 */
void
rf_require_read_keys(Oid index_oid)
{
	RfOpenIndex open;

	rf_open_index(index_oid, AccessShareLock, &open);
	if (!rf_may_read_keys(&open))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for keys of index \"%s\"",
						RelationGetRelationName(open.index)),
				 errdetail("The function tells whether keys exist, so it needs SELECT on the key columns and no row-level security in effect on table \"%s\".",
						   RelationGetRelationName(open.heap))));
	rf_close_index(&open, false);
}

/*
 * Returns false only if the leaf index holds no key between the arguments, or is gone.
 * In a serializable transaction the answer is a read of the index.
 */
static bool
rf_leaf_may_contain(FunctionCallInfo fcinfo, Oid leaf)
{
	RfOpenIndex open;
	RfKeySet   *set;
	RfSummaryVersion version;
	bool		result = true;

	if (!rf_try_open_index(leaf, AccessShareLock, true, &open))
		return false;
	set = rf_argument_set(fcinfo, open.index);
	if (set != NULL && rf_keyset_is_empty(set))
		result = false;
	else if (set != NULL && open.index->rd_index->indisvalid)
	{
		PredicateLockRelation(open.index, GetActiveSnapshot());
		result = rf_probe(open.index, set,
						  RecoveryInProgress() ||
						  GetActiveSnapshot()->takenDuringRecovery,
						  &version, NULL) != RF_NO;
	}
	rf_close_index(&open, false);
	return result;
}

/*
 * rangefilter_may_contain(index regclass, lo anycompatible, hi anycompatible)
 * returns boolean: false only where no row version has a key in [lo, hi].
 */
Datum
rangefilter_may_contain(PG_FUNCTION_ARGS)
{
	List	   *leaves;
	ListCell   *cell;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	rf_require_read_keys(PG_GETARG_OID(0));
	leaves = rf_leaf_indexes(PG_GETARG_OID(0));
	foreach(cell, leaves)
	{
		CHECK_FOR_INTERRUPTS();
		if (rf_leaf_may_contain(fcinfo, lfirst_oid(cell)))
			PG_RETURN_BOOL(true);
	}
	PG_RETURN_BOOL(rf_table_without_index(PG_GETARG_OID(0), leaves));
}

/*
 * rf_as_owner() callback of rangefilter_summarize(): summarizes an open index and adds the
 * heap blocks that it has newly summarized to the int64 that arg points to.  Table and index are locked with
 * ShareUpdateExclusiveLock; no page is locked before or after.  An error ends the function.
 */
static void
rf_summarize_work(RfOpenIndex *open, void *arg)
{
	int64	   *blocks = (int64 *) arg;

	*blocks += rf_summarize(open->heap, open->index,
							BuildIndexInfo(open->index), RF_SUMMARIZE_ASKED,
							NULL);
}

/*
 * Errors out unless the current user owns an index.  To be called before it is locked:
 * others must not get in the way of VACUUM.  One that is gone is left to the caller.
 */
static void
rf_require_owner(Oid index_oid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index_oid));
	Form_pg_class form;

	if (!HeapTupleIsValid(tuple))
		return;
	form = (Form_pg_class) GETSTRUCT(tuple);
	if (!has_privs_of_role(GetUserId(), form->relowner))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, NameStr(form->relname));
	ReleaseSysCache(tuple);
}

/*
 * rangefilter_summarize(index regclass) returns bigint: heap blocks newly
 * summarized.  For the index's owner.
 */
Datum
rangefilter_summarize(PG_FUNCTION_ARGS)
{
	int64		blocks = 0;
	List	   *leaves;
	ListCell   *cell;
	bool		report;

	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("recovery is in progress"),
				 errhint("Summarize on the primary; the standby follows.")));
	leaves = rf_leaf_indexes(PG_GETARG_OID(0));
	report = rf_progress_begin(list_length(leaves));
	foreach(cell, leaves)
	{
		RfOpenIndex open;

		CHECK_FOR_INTERRUPTS();
		rf_require_owner(lfirst_oid(cell));
		if (!rf_try_open_index(lfirst_oid(cell), ShareUpdateExclusiveLock, true, &open))
			continue;
		if (report)
			rf_progress_index(open.heap, open.index,
							  foreach_current_index(cell));
		if (open.index->rd_index->indisvalid)
			rf_as_owner(&open, rf_summarize_work, &blocks);
		rf_close_index(&open, true);
	}
	if (report)
		rf_progress_end();
	PG_RETURN_INT64(blocks);
}

/* The state of a verification. */
typedef struct RfVerify
{
	RfOpenIndex *open;
	bool		with_heap;
	int64		nrows;
} RfVerify;

/*
 * Return true if the index may deny a recently dead row version: if it has the flag
 * RF_STANDBY_UNKNOWN, or if VACUUM has removed the version since we
 * read it, because a summarize may have followed.
 */
static bool
rf_may_be_missing(RfOpenIndex *open, const RfHeapTuple *tuple)
{
	Buffer		buffer = rf_read_meta(open->index, BUFFER_LOCK_SHARE);
	uint32		flags = rf_page_meta(BufferGetPage(buffer))->flags;

	UnlockReleaseBuffer(buffer);
	return (flags & RF_STANDBY_UNKNOWN) ||
		!rf_tuple_is_there(open->heap, tuple);
}

/*
 * Checks one row version: the summary must not deny its key, and scans must
 * look into its block.  Versions of transactions in progress may not be in the
 * index yet.
 */
static void
rf_verify_tuple(void *arg, const RfHeapTuple *tuple)
{
	RfVerify   *verify = (RfVerify *) arg;
	RfRange		range = {.lo = tuple->key,.hi = tuple->key};
	RfKeySet	set = {0};
	RfSummaryVersion version;
	bool		by_function;

	if (!tuple->settled)
		return;
	set.kind = rf_index_codec(verify->open->index)->kind;
	set.nulls = tuple->isnull;
	set.nranges = tuple->isnull ? 0 : 1;
	set.ranges = &range;
	verify->nrows++;
	if (rf_probe(verify->open->index, &set, false, &version, NULL) != RF_NO &&
		rf_scan_visits(verify->open->index, &set,
					   ItemPointerGetBlockNumber(&tuple->tid)))
		return;
	if (tuple->recently_dead && rf_may_be_missing(verify->open, tuple))
		return;
	by_function = rf_calls_users_functions(verify->open->index);
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" wrongly excludes a row of table \"%s\"",
					RelationGetRelationName(verify->open->index),
					RelationGetRelationName(verify->open->heap)),
			 errdetail("The row is at (%u,%u).%s",
					   ItemPointerGetBlockNumber(&tuple->tid),
					   ItemPointerGetOffsetNumber(&tuple->tid),
					   by_function ? " A function in the index's definition may not be immutable." : ""),
			 by_function ?
			 errhint("Make sure that each function returns the same value for the same arguments at any time, then REINDEX the index.") :
			 errhint("REINDEX the index and please report this.")));
}

/*
 * rf_as_owner() callback of rangefilter_verify(): checks the pages of an open index and then, if
 * the RfVerify in arg says so, each row version of its table.  Adds what was checked to
 * RfVerify.nrows.  Table and index are locked with AccessShareLock; no page is locked before or after.
 * Errors out at the first damage.
 */
static void
rf_verify_work(RfOpenIndex *open, void *arg)
{
	RfVerify   *verify = (RfVerify *) arg;
	RfHeapScan	scan = {0};
	uint64		nkeys = rf_check_pages(open->index);

	verify->open = open;
	if (!verify->with_heap)
		verify->nrows += nkeys;

	/* Other tables have no blocks of tuples to read, and nothing is denied. */
	if (!verify->with_heap || open->heap->rd_rel->relam != HEAP_TABLE_AM_OID)
		return;
	scan.heap = open->heap;
	scan.index = open->index;
	scan.index_info = BuildIndexInfo(open->index);
	scan.codec = rf_index_codec(open->index);
	scan.end = RelationGetNumberOfBlocks(open->heap);
	scan.callback = rf_verify_tuple;
	scan.arg = verify;
	rf_scan_heap(&scan);
}

/*
 * rangefilter_verify(index regclass, heapallindexed boolean) returns bigint: reads the
 * index and errors out over a damaged page.  With heapallindexed it then reads the whole
 * table and errors out at the first row version whose key the summary denies, else
 * returns the number of row versions checked; without, the number of keys.
 */
Datum
rangefilter_verify(PG_FUNCTION_ARGS)
{
	RfVerify	verify = {.with_heap = PG_GETARG_BOOL(1)};
	ListCell   *cell;

	foreach(cell, rf_leaf_indexes(PG_GETARG_OID(0)))
	{
		RfOpenIndex open;

		if (!rf_try_open_index(lfirst_oid(cell), AccessShareLock, true, &open))
			continue;
		if (!open.index->rd_index->indisvalid)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("index \"%s\" is not valid",
							RelationGetRelationName(open.index)),
					 errhint("REINDEX it, or drop it.")));
		rf_as_owner(&open, rf_verify_work, &verify);
		rf_close_index(&open, false);
	}
	PG_RETURN_INT64(verify.nrows);
}
