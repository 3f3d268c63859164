/*-------------------------------------------------------------------------
 *
 * deferred_levels.c
 *	  The partitions of a deferred table at all levels, and which of them are left.
 *
 * Each partitioned table is a level: the scan's table, and members that are partitioned
 * themselves.  A level has an entry of its own in what the session knows, so each is
 * asked for itself.  Members have numbers across all levels.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/attmap.h"
#include "access/table.h"
#include "compat.h"
#include "core/core.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "optimizer/optimizer.h"
#include "partitioning/partdesc.h"
#include "planner/deferred/deferred.h"
#include "planner/skip/skip.h"
#include "rewrite/rewriteManip.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/*
 * Adds the level of a partitioned table, whose directory entry keeps it open, and those below it.
 * number is its own among all members; -1: it is the scan's table.
 */
static void
add_level(RfDeferredState *state, Relation relation, int number)
{
	RfDeferredLevel *level = palloc0(sizeof(RfDeferredLevel));

	level->relation = relation;
	level->number = number;
	level->partdesc = PartitionDirectoryLookup(state->directory, relation);
	level->first = state->nmembers;
	if (number >= 0)
		level->map = RF_ATTRMAP(RelationGetDescr(relation),
								RelationGetDescr(state->css.ss.ss_currentRelation));
	state->nmembers += level->partdesc->nparts;
	state->levels = lappend(state->levels, level);
	for (int i = 0; i < level->partdesc->nparts; i++)
	{
		Relation	member;

		if (level->partdesc->is_leaf[i])
			continue;
		member = table_open(level->partdesc->oids[i], AccessShareLock);
		add_level(state, member, level->first + i);
		table_close(member, NoLock);
	}
}

/*
 * Notes the partitions of the scan's table as they are now.  Locks those that are partitioned.
 */
void
rf_begin_levels(RfDeferredState *state)
{
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);

	state->directory = CreatePartitionDirectory(CurrentMemoryContext, true);
	add_level(state, state->css.ss.ss_currentRelation, -1);
	MemoryContextSwitchTo(old);
}

/*
 * The OID of a member.
 */
Oid
rf_member_oid(const RfDeferredState *state, int number)
{
	ListCell   *cell;

	foreach(cell, state->levels)
	{
		const RfDeferredLevel *level = lfirst(cell);

		if (number < level->first + level->partdesc->nparts)
			return level->partdesc->oids[number - level->first];
	}
	elog(ERROR, "table %u has no member %d", state->plan.relid, number);
}

/*
 * Return true if the table has other partitions than when the scan was started.
 */
bool
rf_has_other_partitions(const RfDeferredState *state)
{
	ListCell   *cell;

	foreach(cell, state->levels)
	{
		const RfDeferredLevel *level = lfirst(cell);
		PartitionDesc now = RelationGetPartitionDesc(level->relation, true);

		if (now->nparts != level->partdesc->nparts ||
			memcmp(now->oids, level->partdesc->oids, now->nparts * sizeof(Oid)) != 0)
			return true;
	}
	return false;
}

/*
 * The scan's clauses in terms of a level.
 */
static List *
clauses_of(const RfDeferredLevel *level, List *clauses)
{
	bool		whole_row;

	if (level->map == NULL)
		return clauses;
	return (List *) map_variable_attnos((Node *) clauses, 1, 0, level->map,
										level->relation->rd_rel->reltype, &whole_row);
}

/*
 * Adds those members of a level that are left to the set: leaves that may have rows which
 * satisfy the clauses, and partitioned ones that partition pruning leaves.
 */
static Bitmapset *
add_left(const RfDeferredState *state, const RfDeferredLevel *level, List *clauses,
		 Bitmapset *left)
{
	List	   *mapped = clauses_of(level, clauses);
	Bitmapset  *members = rf_core_prune(level->relation, level->partdesc, mapped);
	Bitmapset  *leaves;
	int			i = -1;

	if (list_length(state->levels) == 1)
		return rf_partitions_left(RelationGetRelid(level->relation), level->partdesc, members, mapped,
								  state->css.ss.ps.state->es_snapshot);
	leaves = bms_copy(members);
	while ((i = bms_next_member(members, i)) >= 0)
	{
		if (level->partdesc->is_leaf[i])
			continue;
		leaves = bms_del_member(leaves, i);
		left = bms_add_member(left, level->first + i);
	}
	leaves = rf_partitions_left(RelationGetRelid(level->relation), level->partdesc, leaves, mapped,
								state->css.ss.ps.state->es_snapshot);
	i = -1;
	while ((i = bms_next_member(leaves, i)) >= 0)
		left = bms_add_member(left, level->first + i);
	return left;
}

/*
 * The leaf partitions, by their numbers, that may have rows which satisfy the clauses of
 * the scan.
 */
Bitmapset *
rf_leaves_left(const RfDeferredState *state, List *clauses)
{
	Bitmapset  *left = NULL;
	ListCell   *cell;

	/* A level comes behind the one above it. */
	foreach(cell, state->levels)
	{
		const RfDeferredLevel *level = lfirst(cell);

		CHECK_FOR_INTERRUPTS();
		if (level->number >= 0)
		{
			if (!bms_is_member(level->number, left))
				continue;
			left = bms_del_member(left, level->number);
		}
		left = add_left(state, level, clauses, left);
	}
	return left;
}
