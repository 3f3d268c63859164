/*-------------------------------------------------------------------------
 *
 * cached_probe.c
 *	  Asking the cached metapage of an index, in place of the index.
 *
 * The guard checks the planner's answers when the plan is executed.  So the
 * planner may ask cached metapages (rfmetacache.c), without locking and
 * opening a thousand indexes.  Each cached metapage has a validity: the
 * index's change counter when it was read or, without change counters, the
 * clock.  While this number is unchanged the cached metapage is true, and the
 * guard need not look either.  If a cached metapage does not say NO, the index
 * itself is asked.
 *
 * The room for cached metapages is bounded.  When it is full, those of the
 * table that has not been asked for the longest time go.  Within a table the
 * first ones stay: queries ask all partitions in turn, and dropping the
 * eldest would always drop those asked next.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "planner/knowledge/knowledge.h"
#include "planner/knowledge/question.h"
#include "planner/planning/planning.h"
#include "rangefilter/page/page.h"
#include "rangefilter/page/shared.h"
#include "rangefilter/probe/probe.h"
#include "stats/session.h"
#include "utils/memutils.h"

/* Few cached metapages are larger than this, in bytes. */
#define ENOUGH	1024

/*
 * The most keys of which one planning makes digests, about.  That takes some 0.2 ms.
 */
#define DIGEST_KEYS_AT_ONCE	40000

/*
 * A planning that has cached FEWEST_CACHED metapages of a table makes digests at once.  It gives
 * up after MOST_WITHOUT leaves that can have no digest.
 */
#define FEWEST_CACHED	16
#define MOST_WITHOUT	4

/* For how many keys the planning under way may still make digests. */
static int64 digest_keys_left = 0;

/*
 * Called when the planning of a query begins.  May it ask cached metapages?
 * It may not if this backend has put keys into deltas since the last planning:
 * the cached metapages lack these keys, and every guard that fails costs
 * another planning.
 */
bool
rf_begin_cached_probes(void)
{
	static uint64 keys_seen = 0;
	bool		unchanged = keys_seen == rf_keys_written;

	digest_keys_left = DIGEST_KEYS_AT_ONCE;
	keys_seen = rf_keys_written;
	return unchanged && !rf_suppress_cached_probes;
}

/*
 * The context of the cached metapages of a table's indexes, and of everything
 * that goes with them.  It is apart from the rest of the entry, so that their
 * memory is given back when they go.
 */
MemoryContext
rf_metacache_context(RfTable *table)
{
	if (table->metacache == NULL)
		table->metacache = AllocSetContextCreate(table->context,
												 "rangefilter copies",
												 ALLOCSET_SMALL_SIZES);
	return table->metacache;
}

/*
 * Fills in where the cached metapage of a leaf's index is kept.
 */
void
rf_cached_meta_ref(RfTable *table, RfLeaf *leaf, RfCachedMetaRef *ref)
{
	ref->cached = &leaf->cached;
	ref->context = rf_metacache_context(table);
	ref->bounds = NULL;
}

/*
 * Throws a leaf's cached metapage away.
 */
static void
forget_cached_meta(RfTable *table, RfLeaf *leaf)
{
	RfCachedMetaRef ref;

	rf_cached_meta_ref(table, leaf, &ref);
	rf_cached_meta_forget(&ref);
}

/*
 * The validity of what the caller reads next from a leaf's index.  As long as
 * this function returns the same number, it is still true.  now is the clock.
 */
uint64
rf_leaf_validity(const RfLeaf *leaf, RfClock now)
{
	uint64		counter = rf_read_change_counter(leaf->index);

	return counter != 0 ? counter : now;
}

/*
 * May a leaf have a key of the condition's set, by the cached metapage of its index?
 *
 * RF_NO: *version is that of the cached metapage.  Side effect: sets the plan's clock to 0, so
 * that the guard looks, if it is not certain that the cached metapage is true now.
 * RF_YES: a change counter tells that the index would say the same.  (By the clock alone this is not
 * known: the index may have been summarized since.)
 * RF_UNKNOWN: the index must be asked.
 */
RfAnswer
rf_probe_cached(RfTable *table, RfLeaf *leaf, const RfCond *cond,
				bool in_recovery, RfSummaryVersion *version)
{
	bool		same = leaf->validity ==
	rf_leaf_validity(leaf, rf_planning->started);
	RfAnswer	answer;

	if (leaf->cached == NULL || !rf_planning->cached_probes ||
		(!same && rf_read_moves() != 0))
		return RF_UNKNOWN;
	answer = rf_cached_meta_probe(leaf->cached, cond->set, in_recovery, version);
	if (answer == RF_YES && rf_read_moves() == 0)
		return RF_UNKNOWN;

	/* Change counters do not tell whether the index got another file. */
	if (answer == RF_NO &&
		(!same || (rf_read_moves() != 0 && !rf_leaf_is_located(leaf))))
		rf_planning->clock = 0;
	return answer;
}

/*
 * Should a digest of a leaf's filter be made now?
 */
bool
rf_digest_is_due(const RfIndex *index, const RfLeaf *leaf)
{
	uint64		keys;

	if (digest_keys_left <= 0 || leaf->cached == NULL ||
		(rf_read_moves() != 0 &&
		 leaf->validity != rf_read_change_counter(leaf->index)) ||
		!rf_may_have_column(index, leaf))
		return false;
	keys = rf_cached_meta_wants_digest(leaf->cached);
	digest_keys_left -= keys;
	return keys > 0;
}

/*
 * Allows as many digests more as cost about what this number of questions to indexes
 * has cost.
 */
void
rf_allow_digests(int64 questions)
{
	digest_keys_left = Max(DIGEST_KEYS_AT_ONCE,
						   questions * RF_DIGEST_KEYS_PER_QUESTION);
}

/*
 * Makes digests of an index's leaves, as far as they are allowed, without waiting for
 * more questions to each of them.  Sessions begin with different matrices.
 */
static void
make_allowed_digests(RfIndex *index, uint32 questions)
{
	int			first;
	int			failed = 0;

	if (index->matrices == NULL || index->matrices->n == 0)
		return;
	first = MyProcPid % index->matrices->n * FILTER_DIGESTS;
	for (int i = 0; i < index->nleaves && failed < MOST_WITHOUT && digest_keys_left > 0; i++)
	{
		RfLeaf	   *leaf = rf_leaf_at(index, (first + i) % index->nleaves);

		if (leaf->cached == NULL)
			continue;
		CHECK_FOR_INTERRUPTS();
		rf_cached_meta_asked(leaf->cached, questions);
		if (rf_digest_is_due(index, leaf) &&
			!rf_make_digest(index, leaf, rf_planning->started))
			failed++;
	}
}

/*
 * Adds the indexes that a condition asks, and whose digests could answer, to a list, each once.
 */
static List *
add_indexes(List *indexes, const RfCond *cond)
{
	ListCell   *cell;

	foreach(cell, cond->args)
		indexes = add_indexes(indexes, lfirst(cell));
	if (cond->kind == RF_COND_PROBE && rf_digests_answer(cond->index->codec, cond->set))
		indexes = list_append_unique_ptr(indexes, cond->index);
	return indexes;
}

/*
 * Makes shared digests for what a condition asks, where a planning has read and cached the
 * metapages of FEWEST_CACHED leaves or more.  That takes a small part of the time that reading
 * took.  Without it, sessions that ask one query each would always read all metapages.
 */
void
rf_make_first_digests(const RfCond *cond, uint32 questions)
{
	ListCell   *cell;

	if (!rf_digests_are_shared() || questions < FEWEST_CACHED)
		return;
	rf_allow_digests(questions);
	foreach(cell, add_indexes(NIL, cond))
		make_allowed_digests(lfirst(cell), questions);
}

/*
 * Throws away all cached metapages of a table's indexes, and the session's own
 * digests of them.
 */
void
rf_forget_cached_metas(RfTable *table)
{
	for (int i = 0; i < table->nindexes; i++)
	{
		RfIndex    *index = rf_index_at(table, i);

		for (int j = 0; j < index->nleaves; j++)
			forget_cached_meta(table, rf_leaf_at(index, j));
		rf_forget_matrices(index);
	}
	if (table->metacache != NULL)
		MemoryContextDelete(table->metacache);
	table->metacache = NULL;
	table->has_cached_metas = false;
}

/*
 * Throws away cached metapages of other tables until there is room for one
 * more, or no other table has any.  Does nothing in a planning that is nested in
 * another one, or where entries are in use: while an index's leaves are mapped,
 * rf_ask_matrices() has asked the table's other matrices, and goes on to read them.
 */
void
rf_make_room(const RfTable *table)
{
	RfTable    *victim;

	if (rf_entries_in_use || (rf_planning != NULL && rf_planning->outer != NULL))
		return;
	while (rf_cache_used + ENOUGH > rf_cache_limit() &&
		   (victim = rf_least_asked_table(table)) != NULL)
		rf_forget_cached_metas(victim);
}

/*
 * Is the version of a NO still that of the leaf's index?  False also if only a
 * look at the index could tell.  The caller has taken the snapshot and
 * absorbed invalidations after the NO was given; planner/skip/README.md has
 * the argument.
 */
bool
rf_cached_no_holds(RfLeaf *leaf, const RfSkip *skip)
{
	RfSummaryVersion version;

	if (leaf->cached == NULL || leaf->validity == 0 ||
		leaf->validity != rf_read_change_counter(leaf->index))
		return false;
	version = rf_cached_meta_version(leaf->cached);
	return rf_same_version(&version, &skip->version) && rf_leaf_is_located(leaf);
}

/*
 * A leaf's index has been looked at and had this version.  validity is what
 * rf_leaf_validity() returned before.  A cached metapage or column with this
 * version is true as of validity; one with another version is outdated.  The bounds of the
 * leaf have the version of its cached metapage.
 */
void
rf_leaf_checked(RfTable *table, RfIndex *index, RfLeaf *leaf,
				const RfSummaryVersion *version, uint64 validity)
{
	if (leaf->cached != NULL)
	{
		RfSummaryVersion copied = rf_cached_meta_version(leaf->cached);

		if (rf_same_version(&copied, version))
			leaf->validity = validity;
		else
		{
			forget_cached_meta(table, leaf);
			rf_forget_bounds(index, leaf);
		}
		rf_bounds_checked(index, leaf);
		table->has_cached_metas = true;
	}
	rf_column_checked(index, leaf, version, validity);
}
