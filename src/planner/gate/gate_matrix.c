/*-------------------------------------------------------------------------
 *
 * gate_matrix.c
 *	  Asking digest matrices about 64 members at a time.
 *
 * A gate that asks ten thousand members waits for memory at each of them.  The
 * matrices of knowledge/digest_matrix.c deny most of them with a look at a word
 * for 64.  They are asked once for each question, before its first member is.
 * The gate keeps the answer, so nobody's later change matters.
 *
 * Only columns are used that are certain: true after the executor took its
 * snapshot.  So their NO holds for it, as that of an index that is read then
 * (R3).  Invalidations are absorbed before, as digest_matrix.c requires.
 * Matrices are not asked in SERIALIZABLE transactions, which need a predicate
 * lock on each index (R5), nor in recovery.
 *
 * Members that no matrix denies are asked one by one (gate_ask.c).  Where they have
 * been asked often enough, digests are made, as planning does.
 *
 * The entry of the table may be freed whenever something is planned.  So pointers
 * into it are used only within a call, after a look whether it is the same entry.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "planner/gate/gate.h"
#include "planner/knowledge/knowledge.h"
#include "port/pg_bitutils.h"
#include "rangefilter/probe/probe.h"
#include "stats/session.h"
#include "stats/stats.h"
#include "storage/lmgr.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"

/* There are no matrices for fewer members. */
#define FEWEST_MEMBERS	32

/*
 * The first question counts towards making digests.  After it only every COUNT_EVERYth does, and
 * counts as COUNT_EVERY questions.
 */
#define COUNT_EVERY		16

/*
 * An entry that becomes invalid is replaced at most MOST_ENTRIES times during a query, because those
 * replaced are freed only when the next query is planned.
 */
#define MOST_ENTRIES	16

/*
 * Prepares a gate for asking matrices, where they may be asked: all members that have
 * any are partitions of one table.
 */
void
rf_gate_matrices_init(RfGateState *gate)
{
	Oid			relid;

	if (gate->nmembers < FEWEST_MEMBERS || list_length(gate->asked.tables) != 1)
		return;
	relid = linitial_oid(gate->asked.tables);
	if (get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
		return;
	gate->matrices = palloc0(sizeof(RfGateMatrices));
	gate->matrices->relid = relid;
	gate->matrices->indexes = palloc0((gate->table->nindexes + 1) * sizeof(RfIndex *));
	gate->matrices->places = palloc(gate->nmembers * sizeof(int));
}

/*
 * May matrices be asked for this snapshot?
 */
static bool
may_ask(const RfGateState *gate)
{
	return !IsolationIsSerializable() &&
		!gate->css.ss.ps.state->es_snapshot->takenDuringRecovery &&
		rf_cache_size > 0;
}

/*
 * The entry's index to which the gate's index number j belongs, by the first member that has
 * it; NULL if there is none.
 */
static RfIndex *
find_index(const RfGateState *gate, RfTable *table, int j)
{
	const RfIndex *asked = rf_index_at(gate->table, j);

	for (int i = 0; i < gate->nmembers; i++)
	{
		List	   *oids = rf_gate_member(gate, i)->oids;
		Oid			oid = oids != NIL ? list_nth_oid(oids, j + 1) : InvalidOid;

		if (!OidIsValid(oid))
			continue;
		for (int k = 0; k < table->nindexes; k++)
		{
			RfIndex    *index = rf_index_at(table, k);
			const RfLeaf *leaf;

			/* Of an index with other keys the leaves need not be mapped. */
			if (index->ncolumns != asked->ncolumns ||
				index->columns[0].opfamily != asked->columns[0].opfamily)
				continue;
			leaf = rf_find_leaf(table, index, linitial_oid(oids), i);
			if (leaf != NULL && leaf->index == oid)
				return index;
		}
		return NULL;
	}
	return NULL;
}

/*
 * Are all indexes of a member those that the entry has at a place?
 */
static bool
is_at_place(const RfGateState *gate, const List *oids, int place)
{
	for (int j = 0; j < gate->table->nindexes; j++)
	{
		const RfIndex *index = gate->matrices->indexes[j];

		if (index != NULL &&
			(place >= index->nleaves ||
			 rf_leaf_at(index, place)->leaf != linitial_oid(oids) ||
			 rf_leaf_at(index, place)->index != list_nth_oid(oids, j + 1)))
			return false;
	}
	return true;
}

/*
 * The first of the entry's indexes that the gate asks, or NULL.
 */
static RfIndex *
first_index(const RfGateState *gate)
{
	RfIndex    *first = NULL;

	for (int j = 0; j < gate->table->nindexes && first == NULL; j++)
		first = gate->matrices->indexes[j];
	return first;
}

/*
 * Finds the places of the members in the entry of their table.
 */
static void
find_places(RfGateState *gate, RfTable *table)
{
	RfGateMatrices *matrices = gate->matrices;
	EState	   *estate = gate->css.ss.ps.state;
	RfIndex    *first;
	int			place = -1;

	matrices->serial = table->serial;
	matrices->nwords = 0;
	for (int j = 0; j < gate->table->nindexes; j++)
		matrices->indexes[j] = find_index(gate, table, j);
	first = first_index(gate);
	if (first == NULL)
		return;
	matrices->nwords = (first->nleaves + RF_CORE_WORD - 1) / RF_CORE_WORD;
	if (matrices->members != NULL)
	{
		pfree(matrices->members);
		pfree(matrices->denied);
	}
	matrices->members = MemoryContextAllocZero(estate->es_query_cxt,
											   (matrices->nwords + 1) * sizeof(uint64));
	matrices->denied = MemoryContextAllocZero(estate->es_query_cxt,
											  (matrices->nwords + 1) * sizeof(uint64));
	for (int i = 0; i < gate->nmembers; i++)
	{
		List	   *oids = rf_gate_member(gate, i)->oids;
		const RfLeaf *leaf = oids == NIL ? NULL :
		rf_find_leaf(table, first, linitial_oid(oids), place + 1);

		matrices->places[i] = -1;
		if (leaf == NULL || !is_at_place(gate, oids, leaf - first->leaves))
			continue;
		matrices->places[i] = place = leaf - first->leaves;
		matrices->members[place / RF_CORE_WORD] |= UINT64CONST(1) << place % RF_CORE_WORD;
	}
}

/*
 * The entry of the members' table, made if there is no valid one.  NULL where it cannot
 * be had.
 */
static RfTable *
find_entry(RfGateMatrices *matrices)
{
	RfTable    *table = rf_known_table(matrices->relid);

	if (table != NULL && table->valid)
		return table;

	/* As the executor's locks it is kept; a parallel worker may have none. */
	if (matrices->entries++ >= MOST_ENTRIES ||
		!ConditionalLockRelationOid(matrices->relid, AccessShareLock))
		return NULL;
	return rf_find_table(matrices->relid);
}

/*
 * The condition in terms of the entry's indexes.
 */
static RfCond *
translate(const RfGateState *gate, const RfCond *cond)
{
	RfCond	   *result = palloc(sizeof(RfCond));
	ListCell   *cell;

	*result = *cond;
	result->denied = NULL;
	if (cond->kind == RF_COND_PROBE)
		result->index = gate->matrices->indexes[cond->index - gate->table->indexes];
	result->args = NIL;
	foreach(cell, cond->args)
		result->args = lappend(result->args, translate(gate, lfirst(cell)));
	return result;
}

/*
 * Counts n questions to each of some leaves of one index, which matrices did not deny, and makes
 * the digests that are due by now.
 */
static void
make_digests(RfIndex *index, int number, uint64 leaves, uint32 n, RfClock now)
{
	for (; leaves != 0; leaves &= leaves - 1)
	{
		RfLeaf	   *leaf = rf_leaf_at(index, number * RF_CORE_WORD + pg_rightmost_one_pos64(leaves));

		if (leaf->cached == NULL || !rf_may_have_column(index, leaf))
			continue;
		rf_cached_meta_asked(leaf->cached, n);
		if (!rf_digest_is_due(index, leaf))
			continue;
		CHECK_FOR_INTERRUPTS();
		(void) rf_make_digest(index, leaf, now);
	}
}

/*
 * Makes digests for what a condition asks, where this question is one that counts.
 */
static void
count_question(RfGateState *gate, const RfCond *cond)
{
	const RfGateMatrices *matrices = gate->matrices;
	uint32		n = gate->question == 1 ? 1 : COUNT_EVERY;
	ListCell   *cell;

	foreach(cell, cond->args)
		count_question(gate, lfirst(cell));
	if (cond->denied == NULL || !rf_digests_answer(cond->index->codec, cond->set))
		return;
	rf_allow_digests((int64) n * gate->nmembers);
	for (int i = 0; i < matrices->nwords; i++)
		make_digests(cond->index, i, matrices->members[i] & ~matrices->denied[i], n,
					 matrices->clock);
}

/*
 * Asks the question of the matrices of an entry, in which the members' places are known.
 */
static void
ask_entry(RfGateState *gate, RfTable *table)
{
	RfGateMatrices *matrices = gate->matrices;
	RfCond	   *cond = translate(gate, gate->cond);
	RfIndex    *first = first_index(gate);

	rf_need_matrices(table, first);
	rf_ask_matrices(table, cond, first->matrices->oids, first->nleaves,
					NULL, matrices->clock, true);
	table->has_counts = true;
	rf_stats_pending = true;
	for (int i = 0; i < matrices->nwords; i++)
	{
		matrices->denied[i] = rf_find_denied(cond, i, matrices->members[i]);
		rf_note_denied(table, NULL, cond, i, matrices->denied[i]);
	}
	if (gate->question % COUNT_EVERY == 1)
		count_question(gate, cond);
}

/*
 * Asks the question of the matrices.  The gate is prepared, and has a condition.
 */
void
rf_gate_ask_matrices(RfGateState *gate)
{
	RfGateMatrices *matrices = gate->matrices;
	MemoryContext old;
	RfTable    *table;

	matrices->asked = gate->question;
	if (matrices->nwords > 0)
		memset(matrices->denied, 0, matrices->nwords * sizeof(uint64));
	if (!may_ask(gate))
		return;
	if (matrices->clock == 0)
		matrices->clock = rf_clock_read();
	AcceptInvalidationMessages();
	MemoryContextReset(gate->scratch);
	old = MemoryContextSwitchTo(gate->scratch);
	table = find_entry(matrices);
	if (table != NULL && table->serial != matrices->serial)
		find_places(gate, table);
	if (table != NULL && matrices->nwords > 0)
		ask_entry(gate, table);
	MemoryContextSwitchTo(old);
}

/*
 * Are expressions compared when an index that only a partition has is looked at?  Reading
 * them may evaluate functions, which may plan queries, and with that the entry may go.
 */
static bool
compares_expressions(const RfIndex *index)
{
	if (index->own == NIL)
		return false;
	for (int i = 0; i < index->ncolumns; i++)
	{
		if (rf_column_at(index, i)->expr != NULL)
			return true;
	}
	return index->predicate != NIL;
}

/*
 * Begins to ask a member's index number i, which is not locked yet, so that its metapage
 * is cached for digests.  False where it can have none.
 */
bool
rf_gate_begin_look(RfGateState *gate, const RfGateMember *member, int i, RfLook *look)
{
	RfGateMatrices *matrices = gate->matrices;
	int			place;
	RfTable    *table;
	RfIndex    *index;
	RfLeaf	   *leaf;

	if (matrices == NULL || matrices->nwords == 0)
		return false;
	place = matrices->places[member - gate->members];
	table = rf_known_table(matrices->relid);
	if (place < 0 || table == NULL || table->serial != matrices->serial)
		return false;
	index = matrices->indexes[i];
	if (index == NULL || compares_expressions(index))
		return false;
	Assert(rf_index_at(table, index - table->indexes) == index);
	leaf = rf_leaf_at(index, place);
	Assert(leaf->index == list_nth_oid(member->oids, i + 1));
	rf_begin_look(look, table, index, leaf, rf_clock_read());
	return true;
}
