/*-------------------------------------------------------------------------
 *
 * skip.c
 *	  Taking partitions out of a plan before the planner expands them.
 *
 * expand_partitioned_rtentry() goes over parent->live_parts, reading it anew
 * at every step, and builds a RelOptInfo for each member; on the way it calls
 * the hook of relation.c.  When the hook is called for the first member, the
 * parent's restrictions are complete, constants from equivalence classes
 * included.  At this moment the indexes are asked, and members that need not
 * be scanned are deleted from live_parts.  The rest of the planner sees
 * partitions pruned as it prunes them itself.
 *
 * Rules, each for a reason (see planner/README.md):
 *	- only leaves: a partitioned member must stay in the plan, or attaching a
 *	  partition below it would not invalidate the plan;
 *	- never the first member, which the loop has read: it is marked dummy
 *	  instead.  So the set never becomes empty, and its pointer never moves;
 *	- positions in live_parts mean something only through the planner's own
 *	  partition directory;
 *	- nothing where rows are hidden from the user (secured.c): the plan would
 *	  reveal them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xlog.h"
#include "core/core.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "partitioning/partdesc.h"
#include "planner/activity/activity.h"
#include "planner/condition/condition.h"
#include "planner/knowledge/knowledge.h"
#include "planner/knowledge/question.h"
#include "planner/planning/planning.h"
#include "planner/skip/skip.h"
#include "stats/stats.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/*
 * The range table index of the outermost partitioned table that a partitioned
 * table was reached from.
 */
static Index
top_partitioned(PlannerInfo *root, Index rti)
{
	for (;;)
	{
		AppendRelInfo *appinfo = root->append_rel_array ?
		root->append_rel_array[rti] : NULL;

		if (appinfo == NULL ||
			root->simple_rel_array[appinfo->parent_relid]->part_rels == NULL)
			return rti;
		rti = appinfo->parent_relid;
	}
}

/*
 * An earlier expansion that asked the same partitions for the same condition,
 * or NULL.  The reason is MIN and MAX over partitions: each is planned once more
 * by an index, so asking again would make planning a sixth slower.  Pointers to
 * partition descriptors are compared only within one run of the planner, which
 * keeps them until it is done.  A hook below ours may run the planner twice.
 */
static RfExpansion *
find_same_expansion(const RfExpansion *expansion)
{
	ListCell   *cell;

	foreach(cell, rf_planning->expansions)
	{
		RfExpansion *other = lfirst(cell);

		if (other->root->glob == expansion->root->glob &&
			other->partdesc == expansion->partdesc &&
			other->match.cond != NULL &&
			bms_equal(other->leaves, expansion->leaves) &&
			rf_same_cond(other->match.cond, expansion->match.cond))
			return other;
	}
	return NULL;
}

/*
 * Gives each set of keys of a condition its number.
 */
static void
number_probes(RfCond *cond)
{
	ListCell   *cell;

	if (cond->kind == RF_COND_PROBE)
	{
		cond->probe = list_length(rf_planning->probes);
		rf_planning->probes = lappend(rf_planning->probes, cond->flat);
	}
	foreach(cell, cond->args)
		number_probes(lfirst(cell));
}

/*
 * Fills in the fields that questions need, before the first one.
 *
 * Most indexes will not be locked.  An index that is being dropped is declared not valid
 * before any transaction inserts rows without it.  The clock is read first.  So either its
 * invalidation is seen now, or those transactions end later and move the clock.
 */
void
rf_begin_asking(RfPlanning *planning)
{
	planning->in_recovery = RecoveryInProgress() ||
		(ActiveSnapshotSet() && GetActiveSnapshot()->takenDuringRecovery);
	if (!planning->in_recovery)
		planning->started = rf_clock_read();
	planning->clock = planning->started;
	AcceptInvalidationMessages();
	planning->cached_probes = rf_begin_cached_probes();
}

/*
 * Finds out which leaves can be left out, and counts the questions.  Where a question has
 * read a page, the next ones probably will, too, and are read ahead of.
 */
void
rf_ask_leaves(RfTable *table, RfExpansion *expansion)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext,
												  "rangefilter probes",
												  ALLOCSET_SMALL_SIZES);
	int			i = -1;
	int			ahead = -1;		/* read up to this one */
	bool		may_ask_cached = rf_planning->cached_probes && !rf_planning->in_recovery;
	Bitmapset  *rest = bms_copy(expansion->leaves);

	expansion->skips = palloc0(sizeof(RfSkips));
	expansion->skips->context = CurrentMemoryContext;
	expansion->excluded = bms_copy(expansion->leaves);
	number_probes(expansion->match.cond);
	table->has_counts = true;
	rf_stats_pending = true;
	rf_map_few_asked(table, expansion->match.cond, expansion->partdesc, rest);
	if (may_ask_cached)
		rest = rf_deny_leaves(table, expansion, rest);
	rf_planning->newly_cached = 0;
	while ((i = bms_next_member(rest, i)) >= 0)
	{
		int64		reads = pgBufferUsage.shared_blks_read;
		MemoryContext old;
		bool		excluded;

		CHECK_FOR_INTERRUPTS();
		old = MemoryContextSwitchTo(scratch);
		excluded = rf_exclude_leaf(table, expansion->match.cond,
								   expansion->partdesc->oids[i], i,
								   rf_planning->in_recovery, expansion->skips);
		if (i > ahead && pgBufferUsage.shared_blks_read != reads)
			ahead = rf_read_ahead(table, expansion->match.cond,
								  expansion->partdesc, rest, i,
								  rf_planning->in_recovery);
		MemoryContextSwitchTo(old);
		MemoryContextReset(scratch);
		if (!excluded)
		{
			expansion->excluded = bms_del_member(expansion->excluded, i);
			rf_watch_leaf(table, expansion, expansion->partdesc->oids[i], i);
		}
	}
	if (bms_is_empty(expansion->excluded))
		expansion->excluded = NULL;
	if (may_ask_cached)
	{
		MemoryContext old = MemoryContextSwitchTo(scratch);

		rf_make_first_digests(expansion->match.cond, rf_planning->newly_cached);
		MemoryContextSwitchTo(old);
	}
	MemoryContextDelete(scratch);
}

/*
 * The leaves among live members.
 */
static Bitmapset *
live_leaves(RelOptInfo *parent, PartitionDesc partdesc)
{
	Bitmapset  *leaves = bms_copy(parent->live_parts);
	int			i = -1;

	if (memchr(partdesc->is_leaf, false, partdesc->nparts) == NULL)
		return leaves;
	while ((i = bms_next_member(parent->live_parts, i)) >= 0)
	{
		if (!rf_is_leaf(partdesc, i))
			leaves = bms_del_member(leaves, i);
	}
	return leaves;
}

/*
 * Is there a clause that the indexes asked say nothing about, other than those
 * that core prunes by?
 */
static bool
has_more_to_ask(RelOptInfo *parent, const RfMatch *match)
{
	List	   *clauses = rf_usable_clauses(parent, parent->baserestrictinfo);
	Bitmapset  *pruned = NULL;
	ListCell   *cell;

	for (int i = 0; i < parent->part_scheme->partnatts; i++)
		pull_varattnos((Node *) parent->partexprs[i], parent->relid, &pruned);
	foreach(cell, clauses)
	{
		Bitmapset  *columns = NULL;

		pull_varattnos(lfirst(cell), parent->relid, &columns);
		if (!list_member_ptr(match->clauses, lfirst(cell)) &&
			!bms_is_subset(columns, pruned))
			return true;
	}
	return false;
}

/*
 * Finds out what a table's indexes can be asked.  Those that only partitions
 * have are asked if the others leave something open, and if one of few
 * partitions has any.  Returns the table's entry, or NULL if there is nothing
 * to ask.
 */
static RfTable *
match_table(RfExpansion *expansion, RelOptInfo *parent)
{
	RfTable    *table = rf_find_table(expansion->relid);
	bool		matched = rf_match(parent, table, table->own_needed,
								   &expansion->match);

	if (!table->own_needed && (!table->own_read || table->nown > 0) &&
		has_more_to_ask(parent, &expansion->match) &&
		rf_may_have_own(table, expansion->partdesc, expansion->leaves))
	{
		table = rf_find_table_with_own(expansion->relid);
		matched = rf_match(parent, table,
						   table->own_needed || rf_may_have_own(table, expansion->partdesc, expansion->leaves),
						   &expansion->match);
	}
	return matched ? table : NULL;
}

/*
 * Asks the indexes of a partitioned table about its live leaves.
 */
static RfExpansion *
make_expansion(PlannerInfo *root, RelOptInfo *parent, Oid relid,
			   PartitionDesc partdesc)
{
	RfExpansion *expansion = palloc0(sizeof(RfExpansion));
	RfTable    *table;
	RfExpansion *same;

	expansion->root = root;
	expansion->top_rti = top_partitioned(root, parent->relid);
	expansion->relid = relid;
	expansion->partdesc = partdesc;
	expansion->leaves = live_leaves(parent, partdesc);
	table = match_table(expansion, parent);
	if (table == NULL)
		return expansion;
	same = find_same_expansion(expansion);
	if (same != NULL)
	{
		expansion->skips = same->skips;
		expansion->excluded = same->excluded;
	}
	else
	{
		rf_watch_expansion(expansion, parent);
		rf_ask_leaves(table, expansion);

		/*
		 * Did anybody replace a function meanwhile, and rebuild indexes with
		 * it?
		 */
		if (table->functions != NIL && !table->valid)
			expansion->excluded = NULL;
	}
	return expansion;
}

/*
 * Leaves out members of a partitioned table, which the planner has locked, unless
 * keep or more are left.  Returns how many are left; 0 if the relation is not the first
 * member, or none of them is scanned.  Called when the first member gets its RelOptInfo.
 */
static int
skip_members(PlannerInfo *root, RelOptInfo *parent, RelOptInfo *rel, int keep)
{
	Relation	relation;
	PartitionDesc partdesc;
	int			first = bms_next_member(parent->live_parts, -1);
	int			left = 0;
	int			nprobes = list_length(rf_planning->probes);
	RfExpansion *expansion;

	relation = table_open(root->simple_rte_array[parent->relid]->relid,
						  NoLock);
	partdesc = PartitionDirectoryLookup(root->glob->partition_directory,
										relation);
	if (partdesc->oids[first] == root->simple_rte_array[rel->relid]->relid)
	{
		/*
		 * Core has found the parent to be empty: none of its members is
		 * scanned.
		 */
		if (IS_DUMMY_REL(parent))
			(void) rf_core_drop_members(parent, rel, first,
										live_leaves(parent, partdesc));
		else
		{
			expansion = make_expansion(root, parent, RelationGetRelid(relation),
									   partdesc);
			left = bms_num_members(parent->live_parts) -
				bms_num_members(expansion->excluded);
			if (left >= keep)
				rf_planning->probes = list_truncate(rf_planning->probes, nprobes);
			else
			{
				if (expansion->excluded != NULL)
					rf_mark_plan(root);
				if (rf_core_drop_members(parent, rel, first, expansion->excluded))
					rf_planning->expansions = lappend(rf_planning->expansions,
													  expansion);
			}
		}
	}
	table_close(relation, NoLock);
	return left;
}

/*
 * Called when a member of a table gets its RelOptInfo.  If it is the first
 * member of a partitioned table, leaves members out of the plan, unless keep or more
 * are left.  Returns how many are left; 0 if the member is not asked about.
 */
int
rf_skip_members(PlannerInfo *root, RelOptInfo *rel, int keep)
{
	AppendRelInfo *appinfo;
	RelOptInfo *parent;
	MemoryContext old;
	int			left;

	if (rf_planning->saved == NULL ||
		rel->reloptkind != RELOPT_OTHER_MEMBER_REL)
		return 0;
	appinfo = root->append_rel_array[rel->relid];
	parent = root->simple_rel_array[appinfo->parent_relid];

	/* Partitioned, and this is the first member? */
	if (parent == NULL || parent->part_rels == NULL ||
		parent->all_partrels != NULL || !rf_is_ours(root) ||
		rf_is_secured(root, parent->relid))
		return 0;
	rf_planning->glob = root->glob;
	old = MemoryContextSwitchTo(rf_planning->context);
	left = skip_members(root, parent, rel, keep);
	MemoryContextSwitchTo(old);
	return left;
}
