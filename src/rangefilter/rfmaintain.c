/*-------------------------------------------------------------------------
 *
 * rfmaintain.c
 *	  Summarizing an index that nobody has asked to be summarized now: by the
 *	  background worker, and at the end of a bulk load.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/pg_index.h"
#include "compat.h"
#include "core/core.h"
#include "miscadmin.h"
#include "rangefilter/page/options.h"
#include "rangefilter/page/page.h"
#include "rangefilter/rangefilter.h"
#include "rangefilter/summarize/summarize.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/guc.h"

/*
 * Opens a relation with a lock; NULL where there is none, or, unless wait is set, where the
 * lock is not free.
 */
static Relation
rf_try_open(Oid oid, LOCKMODE lockmode, bool wait)
{
	Relation	relation;

	if (wait)
		return try_relation_open(oid, lockmode);
	if (!ConditionalLockRelationOid(oid, lockmode))
		return NULL;
	relation = try_relation_open(oid, NoLock);
	if (relation == NULL)
		UnlockRelationOid(oid, lockmode);
	return relation;
}

/*
 * Opens a table and then its index, which may be of any kind.  False where they do not exist, not
 * any more or not yet, or, unless wait is set, where a lock is not free.
 */
bool
rf_try_open_index(Oid index_oid, LOCKMODE lockmode, bool wait, RfOpenIndex *open)
{
	Oid			heap_oid = IndexGetRelation(index_oid, true);

	open->lockmode = lockmode;
	open->heap = OidIsValid(heap_oid) ? rf_try_open(heap_oid, lockmode, wait) : NULL;
	if (open->heap == NULL)
		return false;

	/* The index may be gone, and its OID given anew, before we locked. */
	open->index = IndexGetRelation(index_oid, true) == heap_oid ?
		rf_try_open(index_oid, lockmode, wait) : NULL;
	if (open->index == NULL)
		relation_close(open->heap, lockmode);
	return open->index != NULL;
}

/*
 * Closes both; the locks are kept until the transaction ends where keep_lock.
 */
void
rf_close_index(RfOpenIndex *open, bool keep_lock)
{
	LOCKMODE	lockmode = keep_lock ? NoLock : open->lockmode;

	index_close(open->index, lockmode);
	table_close(open->heap, lockmode);
}

/*
 * Calls work(open, arg) as the table's owner, in a security-restricted
 * operation whose settings are undone afterwards, so that index expressions
 * cannot do what their author may not.
 */
void
rf_as_owner(RfOpenIndex *open, void (*work) (RfOpenIndex *, void *), void *arg)
{
	Oid			userid;
	int			sec_context;
	int			nestlevel;

	GetUserIdAndSecContext(&userid, &sec_context);
	SetUserIdAndSecContext(open->heap->rd_rel->relowner,
						   sec_context | SECURITY_RESTRICTED_OPERATION);
	nestlevel = NewGUCNestLevel();
	(void) RF_RESTRICT_SEARCH_PATH(userid, open->heap->rd_rel->relowner);
	work(open, arg);
	AtEOXact_GUC(false, nestlevel);
	SetUserIdAndSecContext(userid, sec_context);
}

/*
 * Return true if an index may be summarized without a command, and has to be.
 */
static bool
rf_is_due(const RfOpenIndex *open, RfSummarizeMode mode)
{
	Relation	index = open->index;
	Buffer		buffer;
	bool		result;

	if (index->rd_rel->relkind != RELKIND_INDEX ||
		!rf_is_rangefilter(index) || RELATION_IS_OTHER_TEMP(index) ||
		!index->rd_index->indisvalid ||
		!rf_index_options(index)->autosummarize)
		return false;
	buffer = rf_read_meta(index, BUFFER_LOCK_SHARE);
	result = rf_summarize_is_due(index, rf_page_meta(BufferGetPage(buffer)));
	UnlockReleaseBuffer(buffer);
	return result ||
		(mode == RF_SUMMARIZE_VAIN && rf_enough_removed(open->heap, index, mode));
}

/*
 * Return true if a user's session may summarize the index.  Its functions would run as the table's
 * owner, on all rows, where the user has chosen search_path, settings and temporary
 * tables.  So only the owner's may, where there are any.
 */
static bool
rf_trusts_session(const RfOpenIndex *open)
{
	HeapTuple	row = open->index->rd_indextuple;

	return GetUserId() == open->heap->rd_rel->relowner ||
		(heap_attisnull(row, Anum_pg_index_indexprs, NULL) &&
		 heap_attisnull(row, Anum_pg_index_indpred, NULL));
}

/*
 * rf_as_owner() callback: summarizes an open index in the mode that arg points to.  Table and index are
 * locked with ShareUpdateExclusiveLock.
 */
static void
rf_maintain_work(RfOpenIndex *open, void *arg)
{
	(void) rf_summarize(open->heap, open->index, BuildIndexInfo(open->index),
						*(RfSummarizeMode *) arg, NULL);
}

/*
 * Summarizes an index as its table's owner, if that is due and the index option autosummarize is
 * on.  vain: its table is read in vain; then any row removed since is a reason.  Calls report, if
 * there is one, before it begins.  Waits for no lock: returns false where it would have to.  False
 * also in a user's session that the index's functions must not be called in, or that has just
 * moved the table.  Holds ShareUpdateExclusiveLock on table and index meanwhile.  Inside a
 * transaction, with a snapshot.
 */
bool
rf_maintain(Oid index_oid, bool user_session, bool vain,
			void (*report) (Relation index))
{
	RfSummarizeMode mode = vain ? RF_SUMMARIZE_VAIN : RF_SUMMARIZE_WORKER;
	RfOpenIndex open;

	if (!rf_try_open_index(index_oid, ShareUpdateExclusiveLock, false, &open))
		return false;
	if (user_session &&
		(!rf_trusts_session(&open) || rf_core_is_moved(open.heap, open.index)))
	{
		rf_close_index(&open, false);
		return false;
	}
	if (rf_is_due(&open, mode))
	{
		if (report != NULL)
			report(open.index);
		rf_as_owner(&open, rf_maintain_work, &mode);
	}
	rf_close_index(&open, false);
	return true;
}
