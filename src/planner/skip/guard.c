/*-------------------------------------------------------------------------
 *
 * guard.c
 *	  What a plan relies on, and whether that still holds.
 *
 * The guard is a CustomScan in PlannedStmt->subplans that is never run; the
 * plan cache copies it like any other plan node.  EXPLAIN shows it, because it
 * is an init plan of the topmost node.  It is not parallel safe, so workers do
 * not get it with the leader's plan.
 *
 * The guard holds if every NO of planning is still a NO for the snapshot that
 * the plan is about to run with (R3).  A summary whose version is unchanged
 * need not be asked.  If the clock is unchanged, nothing need be looked at.
 * Under SERIALIZABLE everything is looked at, because each execution must take
 * its predicate locks before it relies on a summary (R5).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/value.h"
#include "planner/knowledge/knowledge.h"
#include "planner/knowledge/question.h"
#include "planner/planning/planning.h"
#include "planner/skip/skip.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

bool		rf_guard_checking = false;

const CustomScanMethods rf_guard_methods = {
	.CustomName = "Range Filter",
	.CreateCustomScanState = rf_create_guard_state
};

/*
 * Was the plan of this subquery discarded?  The planner puts NULL into the
 * list of subplans for discarded plans, for example for alternatives of
 * EXISTS.
 */
static bool
is_discarded(const PlannedStmt *stmt, PlannerGlobal *glob, PlannerInfo *root)
{
	for (; root->parent_root != NULL; root = root->parent_root)
	{
		ListCell   *plan_cell;
		ListCell   *root_cell;

		forboth(plan_cell, stmt->subplans, root_cell, glob->subroots)
		{
			if (lfirst(root_cell) == root && lfirst(plan_cell) == NULL)
				return true;
		}
	}
	return false;
}

/*
 * The expansions that are part of the plan; NIL if none of them left
 * partitions out.
 */
static List *
used_expansions(const PlannedStmt *stmt, RfPlanning *planning)
{
	List	   *used = NIL;
	bool		skipped = false;
	ListCell   *cell;

	foreach(cell, planning->expansions)
	{
		RfExpansion *expansion = lfirst(cell);

		if (is_discarded(stmt, planning->glob, expansion->root))
			continue;
		used = lappend(used, expansion);
		skipped = skipped || expansion->excluded != NULL;
	}
	return skipped ? used : NIL;
}

/*
 * The guard's state: the NOs of some expansions and what else a check needs,
 * in one piece of memory.
 */
static Const *
make_state(RfPlanning *planning, List *expansions)
{
	List	   *lists = NIL;
	List	   *denied_sets = NIL;
	int			n = 0;
	Size		size;
	RfGuardState *state;
	char	   *end;
	ListCell   *cell;

	foreach(cell, expansions)
	{
		RfExpansion *expansion = lfirst(cell);

		if (expansion->skips != NULL)
			lists = list_append_unique_ptr(lists, expansion->skips);
	}
	foreach(cell, lists)
	{
		RfSkips    *skips = lfirst(cell);

		n += skips->n;
		denied_sets = list_concat(denied_sets, skips->denied_sets);
	}
	size = offsetof(RfGuardState, skips) + n * sizeof(RfSkip);
	foreach(cell, denied_sets)
		size += RF_DENIED_SET_SIZE(((RfDeniedSet *) lfirst(cell))->nwords);
	if (size > INT_MAX)
		elog(ERROR, "too many partitions to skip");
	state = MemoryContextAllocHuge(CurrentMemoryContext, size);
	memset(state, 0, offsetof(RfGuardState, skips));
	state->clock = planning->clock;
	state->in_recovery = planning->in_recovery;
	foreach(cell, lists)
	{
		RfSkips    *skips = lfirst(cell);

		if (skips->n > 0)
			memcpy(state->skips + state->nskips, skips->skips,
				   skips->n * sizeof(RfSkip));
		state->nskips += skips->n;
	}
	end = (char *) &state->skips[n];
	state->ndenied_sets = list_length(denied_sets);
	foreach(cell, denied_sets)
	{
		RfDeniedSet *denied_set = lfirst(cell);

		memcpy(end, denied_set, RF_DENIED_SET_SIZE(denied_set->nwords));
		end += RF_DENIED_SET_SIZE(denied_set->nwords);
	}

	/* copyObject() copies a constant of fixed length byte by byte, aligned. */
	return makeConst(BYTEAOID, -1, InvalidOid, (int) size,
					 PointerGetDatum(state), false, false);
}

/*
 * The sets of keys asked for, as a list of constants.
 */
static List *
make_probes(RfPlanning *planning)
{
	List	   *probes = NIL;
	ListCell   *cell;

	foreach(cell, planning->probes)
		probes = lappend(probes,
						 makeConst(BYTEAOID, -1, InvalidOid, -1,
								   PointerGetDatum(lfirst(cell)), false,
								   false));
	return probes;
}

/*
 * Adds an item to the plan by which rf_invalidate_plans() can invalidate it.
 * The plan cache only compares hash values.  A function whose OID has the same
 * one costs a needless planning.
 */
void
rf_add_inval_item(PlannedStmt *stmt, uint32 hash)
{
	PlanInvalItem *item = makeNode(PlanInvalItem);

	item->cacheId = PROCOID;
	item->hashValue = hash;
	stmt->invalItems = lappend(stmt->invalItems, item);
}

/*
 * Invalidates the cached plans that carry the hash value.
 */
void
rf_invalidate_plans(uint32 hash)
{
	CallSyscacheCallbacks(PROCOID, hash);
}

/*
 * A new hash value for a guard.  Not 0, which would stand for all.
 */
static uint32
next_hash(void)
{
	static uint32 counter = 0;

	return hash_combine(hash_uint32(++counter), RF_ENABLE_HASH) | 1;
}

/*
 * Shows the guard in EXPLAIN: as an init plan that sets no parameter, hence is
 * never run.
 */
static void
make_init_plan(PlannedStmt *stmt)
{
	SubPlan    *subplan = makeNode(SubPlan);

	subplan->subLinkType = EXPR_SUBLINK;
	subplan->plan_id = list_length(stmt->subplans);
	subplan->plan_name = pstrdup("Range Filter");
	subplan->firstColType = INT4OID;
	subplan->firstColTypmod = -1;
	subplan->parallel_safe = false;
	stmt->planTree->initPlan = lappend(stmt->planTree->initPlan, subplan);
}

/*
 * Attaches a guard to a plan in which something was skipped.
 */
void
rf_attach_guard(PlannedStmt *stmt, RfPlanning *planning)
{
	CustomScan *guard;
	List	   *expansions;
	uint32		hash;

	expansions = used_expansions(stmt, planning);
	if (expansions == NIL)
		return;

	hash = next_hash();
	guard = makeNode(CustomScan);
	guard->methods = &rf_guard_methods;
	guard->scan.plan.parallel_safe = false;
	guard->custom_private = list_make1(planning->saved);
	guard->custom_private = lappend(guard->custom_private,
									makeInteger(planning->cursor_options));
	guard->custom_private = lappend(guard->custom_private,
									makeInteger((int) hash));
	guard->custom_private = lappend(guard->custom_private,
									make_probes(planning));
	guard->custom_private = lappend(guard->custom_private,
									make_state(planning, expansions));
	guard->custom_private = lappend(guard->custom_private,
									rf_explain_tables(planning->glob, expansions));
	stmt->subplans = lappend(stmt->subplans, guard);
	make_init_plan(stmt);
	rf_add_inval_item(stmt, hash);
}

/*
 * The guard of a plan, or NULL.
 */
CustomScan *
rf_find_guard(const PlannedStmt *stmt)
{
	for (int i = list_length(stmt->subplans) - 1; i >= 0; i--)
	{
		Plan	   *plan = list_nth(stmt->subplans, i);

		if (plan != NULL && IsA(plan, CustomScan) &&
			((CustomScan *) plan)->methods == &rf_guard_methods)
			return (CustomScan *) plan;
	}
	return NULL;
}

/*
 * Checks all NOs.  Opening an index may evaluate its functions, which may call
 * the planner.
 */
static bool
check_skips(CustomScan *guard, RfGuardState *state, RfRecheck *recheck)
{
	List	   *probes = list_nth(guard->custom_private, RF_GUARD_PROBES);
	int			nprobes = list_length(probes);
	const RfDeniedSet *denied_set =
	(const RfDeniedSet *) &state->skips[state->nskips];

	recheck->flat = palloc((nprobes + 1) * sizeof(bytea *));
	recheck->sets = palloc0((nprobes + 1) * sizeof(RfKeySet *));
	for (int i = 0; i < nprobes; i++)
	{
		Const	   *probe = list_nth_node(Const, probes, i);

		recheck->flat[i] = (const bytea *) DatumGetPointer(probe->constvalue);
	}
	for (int i = 0; i < state->nskips; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!rf_recheck_skip(&state->skips[i], recheck))
			return false;
	}
	for (int i = 0; i < state->ndenied_sets; i++)
	{
		if (!rf_recheck_denied_set(denied_set, recheck))
			return false;
		denied_set = (const RfDeniedSet *) &denied_set->leaves[denied_set->nwords];
	}
	return true;
}

/*
 * May a plan with this guard be run with this snapshot?  Under SERIALIZABLE
 * predicate locks have been taken for it when this returns true.
 */
bool
rf_guard_holds(CustomScan *guard, Snapshot snapshot)
{
	Const	   *constant = list_nth_node(Const, guard->custom_private,
										 RF_GUARD_STATE);
	RfGuardState *state = (RfGuardState *) DatumGetPointer(constant->constvalue);
	MemoryContext scratch;
	MemoryContext old;
	RfRecheck	recheck = {0};
	bool		outer = rf_guard_checking;
	bool		holds;

	if (snapshot == InvalidSnapshot)
		return false;
	if (IsolationIsSerializable())
		recheck.serializable = snapshot;
	recheck.in_recovery = RecoveryInProgress() ||
		snapshot->takenDuringRecovery;
	recheck.trust_versions = state->in_recovery || !recheck.in_recovery;
	if (!IsolationIsSerializable() && !recheck.in_recovery &&
		rf_clock_read() == state->clock)
		return true;

	scratch = AllocSetContextCreate(CurrentMemoryContext,
									"rangefilter guard",
									ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(scratch);
	if (!recheck.in_recovery)
	{
		recheck.clock = rf_clock_read();
		state->in_recovery = false;
	}

	/* rf_cached_no_holds() relies on this. */
	AcceptInvalidationMessages();
	PG_TRY();
	{
		rf_guard_checking = true;
		holds = check_skips(guard, state, &recheck);
	}
	PG_FINALLY();
	{
		rf_guard_checking = outer;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(scratch);

	if (holds)
	{
		state->clock = recheck.clock;
		if (recheck.in_recovery)
			state->in_recovery = true;
	}
	return holds;
}
