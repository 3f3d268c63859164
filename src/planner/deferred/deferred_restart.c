/*-------------------------------------------------------------------------
 *
 * deferred_restart.c
 *	  Starting a statement over when a partition is not as its snapshot sees it.
 *
 * A deferred scan finds out in the middle of a statement that another session has truncated
 * a partition after the snapshot was taken.  If the statement has returned nothing yet, it
 * can be run again with a new snapshot.  No error is raised for that, since there is no
 * subtransaction to catch it in.  All nodes of the plan return no row from then on, so the
 * executor soon comes to its end.  What it returns until then is dropped.  The plan is started anew,
 * and its new state takes the place of the old one in the same QueryDesc.  The old state is parked in
 * another one, because the QueryDesc's user may point into it, and ends together with it.
 *
 * An error meanwhile comes from rows that are missing, and is replaced by ours.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "compat.h"
#include "core/core.h"
#include "executor/executor.h"
#include "lib/ilist.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "planner/deferred/deferred.h"
#include "planner/skip/skip.h"
#include "tcop/dest.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* A statement starts over so many times. */
#define RF_MAX_RESTARTS	3

/* A statement that may start over, or has. */
typedef struct RfRestart
{
	dlist_node	node;
	QueryDesc  *desc;
	EState	   *estate;			/* the state that is run */
	bool		was_run;		/* our ExecutorRun_hook was called */
	bool		possible;		/* for the first time, and it has returned
								 * nothing */
	bool		wanted;			/* it is to start over */
	Oid			table;			/* why: see report_change() */
	Oid			partition;
	List	   *parked;			/* QueryDescs with the earlier states */
} RfRestart;

static dlist_head restarts = DLIST_STATIC_INIT(restarts);

/* Hands rows on to another receiver while the statement is not to start over. */
typedef struct RfReceiver
{
	DestReceiver pub;
	DestReceiver *next;
	RfRestart  *restart;
	bool		started;
} RfReceiver;

/*
 * Return true if a statement that is about to be started may start over.  Nobody else may have seen
 * its snapshot, or read what the new one does not show: a statement that a rule made of
 * another one shares its snapshot, and so may a function in SQL, in an expression of PL/pgSQL.  Workers
 * keep the snapshot they were given.  A cursor that can go back may be rewound.
 */
bool
rf_may_start_over(const QueryDesc *desc, int eflags)
{
	const PlannedStmt *stmt = desc->plannedstmt;

	return desc->operation == CMD_SELECT && !stmt->hasModifyingCTE &&
		stmt->rowMarks == NIL && stmt->canSetTag && !stmt->parallelModeNeeded &&
		(eflags & (EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD)) == 0 &&
		desc->dest->mydest != DestSQLFunction &&
		(rf_core_owns_snapshot(desc) || rf_core_is_execute(desc));
}

/*
 * Memory context callback: the first state of a statement goes.
 */
static void
forget_restart(void *arg)
{
	dlist_delete(&((RfRestart *) arg)->node);
}

/*
 * Notes a started statement that may start over.
 */
void
rf_note_restartable(QueryDesc *desc)
{
	MemoryContext context = desc->estate->es_query_cxt;
	RfRestart  *restart = MemoryContextAllocZero(context, sizeof(RfRestart));
	MemoryContextCallback *callback = MemoryContextAlloc(context, sizeof(MemoryContextCallback));

	restart->desc = desc;
	restart->estate = desc->estate;
	callback->func = forget_restart;
	callback->arg = restart;
	dlist_push_head(&restarts, &restart->node);
	MemoryContextRegisterResetCallback(context, callback);
}

/*
 * The restart with this QueryDesc, or whose state is this one; NULL if there is none.
 */
static RfRestart *
find_restart(const QueryDesc *desc, const EState *estate)
{
	dlist_iter	iter;

	dlist_foreach(iter, &restarts)
	{
		RfRestart  *restart = dlist_container(RfRestart, node, iter.cur);

		if (restart->desc == desc || restart->estate == estate)
			return restart;
	}
	return NULL;
}

/*
 * Raises the error of a partition that is not as the snapshot sees it.
 */
static void
report_change(Oid table, Oid partition)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not read table \"%s\" because a partition was changed while the query ran",
					get_rel_name(table)),
			 errdetail("Partition \"%s\" was truncated, rewritten, altered or attached.",
					   get_rel_name(partition)),
			 errhint("Run the query again.")));
}

/*
 * ExecProcNode of a statement that is to start over.
 */
static TupleTableSlot *
no_row(PlanState *node)
{
	return NULL;
}

/*
 * planstate_tree_walker() callback: no node returns a row any more.
 */
static bool
stop_node(PlanState *node, void *context)
{
	node->ExecProcNode = no_row;
	return planstate_tree_walker(node, stop_node, context);
}

/*
 * Return true if a statement can start over now.  What it has done must not be done twice.
 */
static bool
can_start_over(const RfRestart *restart)
{
	RfGuard		guard;

	return restart->possible && list_length(restart->parked) < RF_MAX_RESTARTS &&
		restart->desc->snapshot->curcid == GetCurrentCommandId(false) &&
		rf_find_guard(restart->desc->plannedstmt, &guard) &&
		!contain_volatile_functions((Node *) guard.query);
}

/*
 * A partition is not as the scan's snapshot sees it.  Has the statement start over, or raises
 * an error.
 */
void
rf_start_over(RfDeferredState *state, Oid partition)
{
	RfRestart  *restart = find_restart(NULL, state->css.ss.ps.state);

	if (restart == NULL || !can_start_over(restart))
		report_change(state->plan.relid, partition);
	restart->wanted = true;
	restart->table = state->plan.relid;
	restart->partition = partition;
	(void) stop_node(restart->desc->planstate, NULL);
}

/*
 * DestReceiver.rStartup, once.
 */
static void
start_receiver(DestReceiver * self, int operation, TupleDesc typeinfo)
{
	RfReceiver *receiver = (RfReceiver *) self;

	if (!receiver->started)
		receiver->next->rStartup(receiver->next, operation, typeinfo);
	receiver->started = true;
}

/*
 * DestReceiver.receiveSlot.  Returns false, which ends the run, if the statement is to start over.
 */
static bool
receive_row(TupleTableSlot *slot, DestReceiver * self)
{
	RfReceiver *receiver = (RfReceiver *) self;

	if (receiver->restart->wanted)
		return false;
	receiver->restart->possible = false;
	return receiver->next->receiveSlot(slot, receiver->next);
}

/*
 * DestReceiver.rShutdown, once.
 */
static void
shut_receiver(DestReceiver * self)
{
	RfReceiver *receiver = (RfReceiver *) self;

	if (!receiver->restart->wanted)
		receiver->next->rShutdown(receiver->next);
}

/*
 * Starts a statement anew, with a snapshot of its own, and without hooks of other extensions, which
 * have seen it already.
 */
static void
start_anew(RfRestart *restart)
{
	QueryDesc  *desc = restart->desc;
	MemoryContext parent = MemoryContextGetParent(restart->estate->es_query_cxt);
	MemoryContext old = MemoryContextSwitchTo(parent);
	QueryDesc	parked = *desc;
	QueryDesc  *fresh;

	PushActiveSnapshot(GetTransactionSnapshot());
	fresh = CreateQueryDesc(desc->plannedstmt, desc->sourceText, GetActiveSnapshot(),
							InvalidSnapshot, None_Receiver, desc->params, desc->queryEnv,
							desc->instrument_options);
	rf_start_inner(fresh, restart->estate->es_top_eflags);
	PopActiveSnapshot();

	desc->plannedstmt = fresh->plannedstmt;
	desc->snapshot = fresh->snapshot;
	desc->estate = fresh->estate;
	desc->planstate = fresh->planstate;
	desc->already_executed = false;
	fresh->plannedstmt = parked.plannedstmt;
	fresh->snapshot = parked.snapshot;
	fresh->estate = parked.estate;
	fresh->planstate = parked.planstate;
	MemoryContextSwitchTo(GetMemoryChunkContext(restart));
	restart->parked = lappend(restart->parked, fresh);
	restart->estate = desc->estate;
	restart->wanted = false;
	MemoryContextSwitchTo(old);
}

/*
 * Runs the state of a statement that it has now.  An error after it was decided to start over is
 * replaced, unless the statement is being cancelled or the session ended.
 */
static void
run_once(RfRestart *restart, RfReceiver *receiver, RfExecutorRun run, RF_EXECUTOR_RUN_PARAMS)
{
	MemoryContext old = CurrentMemoryContext;

	PG_TRY();
	{
		desc->dest = &receiver->pub;
		run(RF_EXECUTOR_RUN_ARGS);
	}
	PG_CATCH();
	{
		desc->dest = receiver->next;
		if (restart->wanted &&
			ERRCODE_TO_CATEGORY(geterrcode()) != ERRCODE_OPERATOR_INTERVENTION)
		{
			MemoryContextSwitchTo(old);
			FlushErrorState();
			report_change(restart->table, restart->partition);
		}
		PG_RE_THROW();
	}
	PG_END_TRY();
	desc->dest = receiver->next;
}

/*
 * Runs a plan by run, again if it starts over.
 */
void
rf_run_deferred(RfExecutorRun run, RF_EXECUTOR_RUN_PARAMS)
{
	RfRestart  *restart = find_restart(desc, NULL);
	RfReceiver	receiver = {{receive_row, start_receiver, shut_receiver, NULL, desc->dest->mydest},
	desc->dest, restart, false};

	if (restart == NULL || restart->was_run)
	{
		run(RF_EXECUTOR_RUN_ARGS);
		return;
	}
	restart->was_run = true;
	restart->possible = true;
	run_once(restart, &receiver, run, RF_EXECUTOR_RUN_ARGS);
	while (restart->wanted)
	{
		start_anew(restart);
		PushActiveSnapshot(desc->snapshot);
		run_once(restart, &receiver, run, RF_EXECUTOR_RUN_ARGS);
		PopActiveSnapshot();
	}
	restart->possible = false;
}

/*
 * What is left of a statement that has started over and is about to end.
 */
List *
rf_parked_states(const QueryDesc *desc)
{
	RfRestart  *restart = find_restart(desc, NULL);

	return restart != NULL ? restart->parked : NIL;
}

/*
 * Ends it.  The list is in the first one's memory.
 */
void
rf_end_parked(List *parked)
{
	for (int i = list_length(parked) - 1; i >= 0; i--)
	{
		QueryDesc  *desc = list_nth(parked, i);

		standard_ExecutorFinish(desc);
		standard_ExecutorEnd(desc);
		FreeQueryDesc(desc);
	}
}
