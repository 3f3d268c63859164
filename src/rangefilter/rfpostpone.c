/*-------------------------------------------------------------------------
 *
 * rfpostpone.c
 *	  Indexes that VACUUM leaves to the next transaction of its session.
 *
 * While other processes compute which row versions may be removed or frozen, they ignore
 * the transaction in which a lazy VACUUM processes a table.  That is right as long as the transaction
 * writes no rows.  A function in an index's definition that is falsely marked IMMUTABLE may
 * write some, which another VACUUM could then damage.  So VACUUM evaluates functions
 * that are built in, and no others.  An index that calls others is summarized before the next ordinary transaction
 * of the session commits.  VACUUM itself begins one, for ANALYZE or to finish the
 * command.  Nothing is needed for this but the session: no worker, no setting.
 *
 * As at the end of a load (rfload.c), each summarize is a subtransaction that
 * is rolled back, waits for no lock, and ends with a warning if there is an error.  The
 * background worker is asked where a lock is not free.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "commands/vacuum.h"
#include "compat.h"
#include "core/core.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "rangefilter/rangefilter.h"
#include "rangefilter/summarize/summarize.h"
#include "request/request.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

/* An index that VACUUM has left. */
typedef struct RfPostponed
{
	Oid			index;
	double		live_tuples;	/* see rf_summarize() */
	bool		tried;			/* its lock was free */
} RfPostponed;

/* Those of this session, in TopMemoryContext. */
static List *rf_postponed = NIL;

/*
 * check_functions_in_node() callback.  Return true if the function is not built in.
 */
static bool
rf_is_users_function(Oid function, void *context)
{
	return function >= FirstNormalObjectId;
}

/*
 * expression_tree_walker() callback.  Return true if evaluating the expression may call a
 * function that is not built in.  Built-in functions may call functions of the types that they
 * are given, which values get from columns, constants and casts.  Enums have no functions of their own.
 */
static bool
rf_calls_users_function(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (check_functions_in_node(node, rf_is_users_function, NULL))
		return true;
	if (IsA(node, Var) || IsA(node, Const) || IsA(node, CoerceToDomain) ||
		IsA(node, CoerceViaIO) || IsA(node, RelabelType))
	{
		Oid			type = exprType(node);

		if (type >= FirstNormalObjectId && get_typtype(type) != TYPTYPE_ENUM)
			return true;
	}
	return expression_tree_walker(node, rf_calls_users_function, context);
}

/*
 * Return true if one of the expressions of an index, or its predicate, may call a function that is
 * not built in.  Looks at them as they are stored: the relation cache would
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
			rf_calls_users_function(stringToNode(TextDatumGetCString(stored)), NULL);
	}
	return result;
}

/*
 * Has the session's next transaction summarize an index, by what VACUUM knows:
 * live_tuples as for rf_summarize().
 */
void
rf_postpone(Relation index, double live_tuples)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	RfPostponed *postponed = palloc0(sizeof(RfPostponed));

	postponed->index = RelationGetRelid(index);
	postponed->live_tuples = live_tuples;
	rf_postponed = lappend(rf_postponed, postponed);
	MemoryContextSwitchTo(old);
}

/*
 * rf_as_owner() callback: summarizes an open index as VACUUM does.  Table and index are locked
 * with ShareUpdateExclusiveLock.  arg is the RfPostponed.
 */
static void
rf_postponed_work(RfOpenIndex *open, void *arg)
{
	(void) rf_summarize(open->heap, open->index, BuildIndexInfo(open->index),
						RF_SUMMARIZE_VACUUM, ((RfPostponed *) arg)->live_tuples, NULL);
}

/*
 * rf_core_attempt() callback: summarizes the index of the RfPostponed in arg, and sets tried, unless a lock is
 * not free.
 */
static void
rf_summarize_postponed(void *arg)
{
	RfPostponed *postponed = arg;
	RfOpenIndex open;

	PushActiveSnapshot(GetTransactionSnapshot());
	if (rf_try_open_index(postponed->index, ShareUpdateExclusiveLock, false, &open))
	{
		postponed->tried = true;
		if (rf_is_rangefilter(open.index) && open.index->rd_index->indisvalid)
			rf_as_owner(&open, rf_postponed_work, postponed);
		rf_close_index(&open, false);
	}
	PopActiveSnapshot();
}

/*
 * Summarizes an index that VACUUM has left, at VACUUM's pace.  Where that fails or cannot be done, asks the worker to.
 * Return false if it was cancelled.
 */
static bool
rf_do_postponed(RfPostponed *postponed)
{
	bool		costs = VacuumCostActive;
	bool		cancelled = false;
	ErrorData  *error;

	RF_VACUUM_COSTS_CHANGED();
	error = rf_core_attempt(rf_summarize_postponed, postponed, true);
	VacuumCostActive = costs;
	if (error != NULL)
	{
		cancelled = error->sqlerrcode == ERRCODE_QUERY_CANCELED;

		/* Another cancel that waits must not become an error of the commit. */
		HOLD_INTERRUPTS();
		rf_warn_not_summarized(postponed->index, error);
		RESUME_INTERRUPTS();
		FreeErrorData(error);
	}
	if (cancelled || !postponed->tried)
		rf_request_summarize(postponed->index);
	return !cancelled;
}

/*
 * Leaves what is postponed to the background worker.
 */
static void
rf_leave_postponed(void)
{
	ListCell   *cell;

	foreach(cell, rf_postponed)
		rf_request_summarize(((RfPostponed *) lfirst(cell))->index);
	list_free_deep(rf_postponed);
	rf_postponed = NIL;
}

/*
 * Transaction callback.  In a transaction block no subtransaction may be rolled back at COMMIT.
 */
static void
rf_transaction_ends(XactEvent event, void *arg)
{
	bool		go_on = !IsTransactionBlock();

	if (rf_postponed == NIL)
		return;
	if (event == XACT_EVENT_PRE_COMMIT && !rf_core_in_vacuum())
		while (rf_postponed != NIL && go_on)
		{
			RfPostponed *first = linitial(rf_postponed);

			rf_postponed = list_delete_first(rf_postponed);
			go_on = rf_do_postponed(first);
			pfree(first);
		}
	if (event == XACT_EVENT_ABORT || !go_on)
		rf_leave_postponed();
}

/*
 * Called once, when the library is loaded.
 */
void
rf_init_postponed(void)
{
	RegisterXactCallback(rf_transaction_ends, NULL);
}
