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
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "compat.h"
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

const CustomScanMethods rf_guard_methods = {
	.CustomName = "Range Filter",
	.CreateCustomScanState = rf_create_guard_state
};

/* Places in custom_private. */
typedef enum RfGuardPlace
{
	RF_GUARD_QUERY,				/* Query */
	RF_GUARD_CURSOR_OPTIONS,	/* Integer */
	RF_GUARD_HASH,				/* Integer */
	RF_GUARD_PROBES,			/* List */
	RF_GUARD_STATE,				/* Const */
	RF_GUARD_TABLES,			/* List */
	RF_GUARD_DEFERRED			/* list of OIDs */
} RfGuardPlace;

/*
 * Makes the list that stores a guard in a plan.  The state is in a constant.
 */
static List *
write_guard(const RfGuard *guard, Const *state)
{
	Node	   *const fields[] = {
		[RF_GUARD_QUERY] = (Node *) guard->query,
		[RF_GUARD_CURSOR_OPTIONS] = (Node *) makeInteger(guard->cursor_options),
		[RF_GUARD_HASH] = (Node *) makeInteger((int) guard->hash),
		[RF_GUARD_PROBES] = (Node *) guard->probes,
		[RF_GUARD_STATE] = (Node *) state,
		[RF_GUARD_TABLES] = (Node *) guard->tables,
		[RF_GUARD_DEFERRED] = (Node *) guard->deferred
	};

	return rf_list_fields(fields, lengthof(fields));
}

/*
 * Reads the guard of a plan.  The fields are not copied.
 */
void
rf_read_guard(const CustomScan *scan, RfGuard *guard)
{
	List	   *fields = scan->custom_private;
	Const	   *state = list_nth_node(Const, fields, RF_GUARD_STATE);

	guard->query = list_nth_node(Query, fields, RF_GUARD_QUERY);
	guard->cursor_options = intVal(list_nth(fields, RF_GUARD_CURSOR_OPTIONS));
	guard->hash = (uint32) intVal(list_nth(fields, RF_GUARD_HASH));
	guard->probes = list_nth(fields, RF_GUARD_PROBES);
	guard->state = (RfGuardState *) DatumGetPointer(state->constvalue);
	guard->tables = list_nth(fields, RF_GUARD_TABLES);
	guard->deferred = list_nth(fields, RF_GUARD_DEFERRED);
}

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
 * Makes the guard's state: the NOs of some expansions and what else a check
 * needs, in one piece of memory.
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
 * The plan cache only compares hash values.  If a function's OID has the same
 * hash value, changing the function costs a needless planning.
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
 * A new hash value for a guard.  It is not 0, which would stand for all.
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
	subplan->plan_name = pstrdup("Range Filter (at plan time)");
	RF_SET_INIT_PLAN(subplan);
	subplan->firstColType = INT4OID;
	subplan->firstColTypmod = -1;
	subplan->parallel_safe = false;
	stmt->planTree->initPlan = lappend(stmt->planTree->initPlan, subplan);
}

/*
 * Attaches a guard to a plan in which something was skipped or deferred.
 */
void
rf_attach_guard(PlannedStmt *stmt, RfPlanning *planning)
{
	CustomScan *scan;
	RfGuard		guard;
	List	   *expansions;

	expansions = used_expansions(stmt, planning);
	if (expansions == NIL && planning->deferred_tables == NIL)
		return;

	guard.query = planning->saved;
	guard.cursor_options = planning->cursor_options;
	guard.hash = next_hash();
	guard.probes = make_probes(planning);
	guard.tables = rf_explain_tables(planning->glob, expansions);
	guard.deferred = planning->deferred_tables;
	scan = makeNode(CustomScan);
	scan->methods = &rf_guard_methods;
	scan->scan.plan.parallel_safe = false;
	scan->custom_private = write_guard(&guard, make_state(planning, expansions));
	stmt->subplans = lappend(stmt->subplans, scan);
	if (expansions != NIL)
		make_init_plan(stmt);
	rf_add_inval_item(stmt, guard.hash);
}

/*
 * Looks for the guard of a plan.  False if there is none.
 */
bool
rf_find_guard(const PlannedStmt *stmt, RfGuard *guard)
{
	for (int i = list_length(stmt->subplans) - 1; i >= 0; i--)
	{
		Plan	   *plan = list_nth(stmt->subplans, i);

		if (plan != NULL && IsA(plan, CustomScan) &&
			((CustomScan *) plan)->methods == &rf_guard_methods)
		{
			rf_read_guard((CustomScan *) plan, guard);
			return true;
		}
	}
	return false;
}

/*
 * Checks all NOs.  May open indexes, which may evaluate their functions, and
 * these may call the planner.
 */
static bool
check_skips(const RfGuard *guard, RfRecheck *recheck)
{
	RfGuardState *state = guard->state;
	int			nprobes = list_length(guard->probes);
	const RfDeniedSet *denied_set = (const RfDeniedSet *) &state->skips[state->nskips];

	recheck->flat = palloc((nprobes + 1) * sizeof(bytea *));
	recheck->sets = palloc0((nprobes + 1) * sizeof(RfKeySet *));
	for (int i = 0; i < nprobes; i++)
	{
		Const	   *probe = list_nth_node(Const, guard->probes, i);

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
 * May a plan with this guard be run with this snapshot?  Absorbs
 * invalidations.  Under SERIALIZABLE all predicate locks have been taken when
 * this returns true.  Writes to the guard's state.
 */
bool
rf_guard_holds(const RfGuard *guard, Snapshot snapshot)
{
	RfGuardState *state = guard->state;
	MemoryContext scratch;
	MemoryContext old;
	RfRecheck	recheck = {0};
	bool		outer = rf_entries_in_use;
	bool		holds;

	if (snapshot == InvalidSnapshot)
		return false;
	if (IsolationIsSerializable())
		recheck.serializable = snapshot;
	recheck.in_recovery = snapshot->takenDuringRecovery;
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
		rf_entries_in_use = true;
		holds = check_skips(guard, &recheck);
	}
	PG_FINALLY();
	{
		rf_entries_in_use = outer;
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

/*
 * Return true if what was left out of an expansion, just now, is without matches for a
 * snapshot.
 */
bool
rf_denials_hold(RfPlanning *planning, RfExpansion *expansion, Snapshot snapshot)
{
	RfGuard		guard = {.probes = make_probes(planning)};
	Const	   *state;

	if (expansion->excluded == NULL)
		return true;
	state = make_state(planning, list_make1(expansion));
	guard.state = (RfGuardState *) DatumGetPointer(state->constvalue);
	return rf_guard_holds(&guard, snapshot);
}
