/*-------------------------------------------------------------------------
 *
 * denied_set.c
 *	  Leaving denied partitions out of a plan, and checking these denials, word
 *	  by word.
 *
 * Words of a matrix (digest_matrix.c) tell which of 64 leaves' digests deny a
 * key, and which digests can be relied on.  So planning and guard handle words
 * instead of leaves.  leaf.c and cached_probe.c ask the leaves that matrices
 * do not deny.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "core/core.h"
#include "miscadmin.h"
#include "partitioning/partdesc.h"
#include "planner/knowledge/knowledge.h"
#include "planner/knowledge/question.h"
#include "planner/planning/planning.h"
#include "port/pg_bitutils.h"
#include "rangefilter/probe/probe.h"
#include "stats/session.h"

/*
 * Are these tables, by number, the leaves of the index?
 */
static bool
has_same_order(const RfIndex *index, const Oid *leaves, int nleaves)
{
	return nleaves == index->nleaves &&
		(leaves == index->matrices->oids ||
		 memcmp(leaves, index->matrices->oids, nleaves * sizeof(Oid)) == 0);
}

/*
 * Asks the bounds and the matrices of an index about a condition's set.  asked are the numbers
 * of the leaves that matter, or NULL for all.
 */
static void
ask_probe(RfTable *table, RfCond *cond, const Oid *leaves, int nleaves,
		  const Bitmapset *asked, RfClock now, bool certain_only)
{
	RfIndex    *index = cond->index;

	if (index == NULL || cond->set->nulls || cond->set->nranges == 0 || rf_cache_size == 0)
		return;

	/* To ask few leaves, the others need not be mapped. */
	if (asked != NULL && !index->mapped && rf_are_mapped(index, leaves, asked))
		return;
	rf_need_matrices(table, index);
	if (!has_same_order(index, leaves, nleaves))
		return;
	cond->denied = palloc((index->matrices->n + 1) * sizeof(uint64));
	cond->certain = true;
	for (int i = 0; i < index->matrices->n; i++)
	{
		const RfMatrixState *matrix = rf_matrix_at(index, i);
		uint64		bounded = rf_ask_bounds(index, i, cond->set, now);

		CHECK_FOR_INTERRUPTS();
		cond->denied[i] = bounded;
		if (bounded == PG_UINT64_MAX || !rf_digests_answer(index->codec, cond->set))
			continue;
		cond->denied[i] |= rf_ask_matrix(index, i, cond->set, now) &
			(certain_only ? matrix->certain : matrix->current);
		if ((cond->denied[i] & ~(bounded | matrix->certain)) != 0)
			cond->certain = false;
	}
}

/*
 * Asks all matrices about the sets of a condition, whose indexes are of the table or
 * NULL.  The tables' OIDs are those of the leaves, in order.  now is the clock;
 * invalidations were absorbed since it was read.  Uses columns that are current or, with
 * certain_only, those that were true when the clock was read, or later.  The denials are of
 * this moment, and remain so if the matrices change later.  asked are the numbers of the
 * leaves that matter, or NULL for all.
 */
void
rf_ask_matrices(RfTable *table, RfCond *cond, const Oid *leaves, int nleaves,
				const Bitmapset *asked, RfClock now, bool certain_only)
{
	ListCell   *cell;

	foreach(cell, cond->args)
		rf_ask_matrices(table, lfirst(cell), leaves, nleaves, asked, now, certain_only);
	if (cond->kind == RF_COND_PROBE)
		ask_probe(table, cond, leaves, nleaves, asked, now, certain_only);
}

/*
 * The leaves that the matrix with this number has denied.
 */
static inline uint64
denied_at(const RfCond *cond, int number)
{
	Assert(number >= 0 && number < cond->index->matrices->n);
	return cond->denied[number];
}

/*
 * For which of these leaves do the matrices with this number deny a condition?
 */
uint64
rf_find_denied(const RfCond *cond, int number, uint64 leaves)
{
	uint64		denied = cond->kind == RF_COND_OR ? leaves : 0;
	ListCell   *cell;

	if (cond->kind == RF_COND_PROBE)
		return cond->denied != NULL && number < cond->index->matrices->n ?
			denied_at(cond, number) & leaves : 0;
	foreach(cell, cond->args)
	{
		if (cond->kind == RF_COND_AND)
			denied |= rf_find_denied(lfirst(cell), number, leaves & ~denied);
		else
			denied = rf_find_denied(lfirst(cell), number, denied);
	}
	return denied;
}

/*
 * Adds an empty set of leaves to the denials that an expansion relies on: for
 * the leaves of one index that denied a set of keys.
 */
static RfDeniedSet *
make_denied_set(const RfTable *table, RfSkips *skips, const RfCond *cond)
{
	int			n = cond->index->matrices->n;
	RfDeniedSet *denied_set = MemoryContextAllocZero(skips->context,
													 RF_DENIED_SET_SIZE(n));

	denied_set->table = table->relid;
	denied_set->index = cond->index->oid;
	denied_set->serial = table->serial;
	denied_set->probe = cond->probe;
	denied_set->nwords = n;
	skips->denied_sets = lappend(skips->denied_sets, denied_set);
	return denied_set;
}

/*
 * Records denials of leaves that the plan relies on.
 */
static void
record_denied(const RfTable *table, RfSkips *skips, RfCond *cond, int number,
			  uint64 leaves)
{
	if (cond->denied_set == NULL)
		cond->denied_set = make_denied_set(table, skips, cond);
	cond->denied_set->leaves[number] |= leaves;
	if (!cond->certain)
		rf_planning->clock = 0;
}

/*
 * Counts the denials that a denied condition relies on, for some leaves: one
 * denial under AND, all under OR.  Records them for the plan that is being made, if
 * skips is not NULL.
 */
void
rf_note_denied(const RfTable *table, RfSkips *skips, RfCond *cond, int number,
			   uint64 leaves)
{
	ListCell   *cell;

	if (cond->kind == RF_COND_PROBE && leaves != 0)
	{
		rf_count_denials(cond->index, number, leaves);
		if (skips != NULL)
			record_denied(table, skips, cond, number, leaves);
	}
	foreach(cell, cond->args)
	{
		uint64		denied = rf_find_denied(lfirst(cell), number, leaves);

		rf_note_denied(table, skips, lfirst(cell), number, denied);
		if (cond->kind == RF_COND_AND)
			leaves &= ~denied;
	}
}

/*
 * Takes the leaves that matrices deny out of rest, and returns rest.  Adds the
 * denials to the expansion's skips.
 */
Bitmapset *
rf_deny_leaves(RfTable *table, RfExpansion *expansion, Bitmapset *rest)
{
	RfCond	   *cond = expansion->match.cond;
	int			nwords = rf_core_count_words(rest);

	/* A word of a Bitmapset has the leaves of one matrix. */
	StaticAssertStmt(RF_CORE_WORD == FILTER_DIGESTS, "the columns of a matrix are the bits of a word");
	if (nwords == 0)
		return rest;
	rf_ask_matrices(table, cond, expansion->partdesc->oids,
					expansion->partdesc->nparts, rest, rf_planning->started, false);
	for (int i = 0; i < nwords; i++)
	{
		uint64		denied = rf_find_denied(cond, i, rf_core_bits(rest, i));

		rf_note_denied(table, expansion->skips, cond, i, denied);
		rf_core_clear_bits(rest, i, denied);
	}
	return rf_core_trim(rest);
}

/*
 * The index of a table with this OID, or NULL.
 */
static RfIndex *
find_index(RfTable *table, Oid oid)
{
	for (int i = 0; i < table->nindexes; i++)
	{
		if (rf_index_at(table, i)->oid == oid)
			return rf_index_at(table, i);
	}
	return NULL;
}

/*
 * The NO of one leaf of a denied set, as a skip of its own.  If the leaf's
 * column denies the set now, the skip has the column's version.  Otherwise it
 * has none, and the index will be asked.
 */
static RfSkip
one_of_denied_set(const RfDeniedSet *denied_set, const RfIndex *index,
				  int number, int bit, bool denied)
{
	const RfLeaf *leaf = rf_leaf_at(index, number * FILTER_DIGESTS + bit);
	RfSkip		skip;

	memset(&skip, 0, sizeof(skip));
	skip.table = denied_set->table;
	skip.leaf = leaf->leaf;
	skip.index = leaf->index;
	skip.probe = denied_set->probe;
	if (denied &&
		rf_matrix_at(index, number)->view.columns[bit].index == leaf->index)
		skip.version = rf_matrix_at(index, number)->view.columns[bit].version;
	return skip;
}

/*
 * Do the NOs of a denied set hold for the leaves of one matrix?  Bounds and columns that
 * are certain need no further look, except under SERIALIZABLE.  In recovery
 * matrices are not asked.
 */
static bool
recheck_matrix(const RfDeniedSet *denied_set, RfIndex *index, int number,
			   const RfKeySet *set, RfRecheck *recheck)
{
	uint64		left = denied_set->leaves[number];
	uint64		denied = 0;
	RfSkip		skips[FILTER_DIGESTS];
	int			n = 0;

	if (!recheck->in_recovery && index->matrices != NULL)
	{
		if (recheck->serializable == NULL)
			left &= ~rf_ask_bounds(index, number, set, recheck->clock);
		if (left == 0)
			return true;
		denied = rf_ask_matrix(index, number, set, recheck->clock);
		if (recheck->serializable == NULL)
			left &= ~(denied & rf_matrix_at(index, number)->certain);
	}

	/*
	 * All columns' versions are read before an index is opened: its functions
	 * may plan queries, and these may put other digests into the columns.
	 */
	for (; left != 0; left &= left - 1)
	{
		int			bit = pg_rightmost_one_pos64(left);

		skips[n++] = one_of_denied_set(denied_set, index, number, bit,
									   denied >> bit & 1);
	}
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!rf_recheck_skip(&skips[i], recheck))
			return false;
	}
	return true;
}

/*
 * Do the NOs of a denied set still hold?  They do not if the table has another
 * entry by now, for example after a partition was attached, or needs one: then the set
 * of keys may be that of an expression which is not the indexes' any more.  Nor do they
 * if the entry does not have the index.
 */
bool
rf_recheck_denied_set(const RfDeniedSet *denied_set, RfRecheck *recheck)
{
	RfTable    *table = rf_known_table(denied_set->table);
	RfIndex    *index;
	RfKeySet  **set = &recheck->sets[denied_set->probe];

	if (table == NULL || table->serial != denied_set->serial)
		return false;
	index = find_index(table, denied_set->index);
	if (index == NULL)
		return false;
	if (*set == NULL)
		*set = rf_keyset_deserialize(recheck->flat[denied_set->probe]);
	for (int i = 0; i < denied_set->nwords; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (denied_set->leaves[i] != 0 &&
			!recheck_matrix(denied_set, index, i, *set, recheck))
			return false;
	}
	return table->valid;
}
