/*-------------------------------------------------------------------------
 *
 * kept.c
 *	  Conditions with run-time parameters whose values change again and again.
 *
 * In a nested loop a gate asks something else in each round.  Most often one
 * value is new, and the others and the constants, which may be lists of
 * thousands, are the same as before.  So the clauses are divided into parts
 * that compare with the same run-time parameters.  The condition of a part is
 * made when it is first needed, and again only after one of its values has
 * changed.
 *
 * The conditions of parts are joined for each question.  For an index on
 * several columns that makes a set of keys of rows, which is also kept, as long
 * as it is made of the same sets.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "planner/condition/condition.h"
#include "planner/condition/parameter.h"
#include "utils/memutils.h"

/* Clauses that compare with the same run-time parameters. */
typedef struct RfKeptPart
{
	List	   *clauses;
	Bitmapset  *params;			/* numbers of the run-time parameters */
	MemoryContext context;		/* holds what follows; NULL: nothing was made
								 * yet */
	bool		current;		/* what follows is true of the present values */
	bool		never;
	RfCond	   *cond;			/* NULL: says nothing */
	List	   *conds;			/* of its clauses that say something */
} RfKeptPart;

struct RfKept
{
	MemoryContext context;		/* of all this */
	RfMatchContext *match;
	List	   *parts;			/* RfKeptPart, under AND */
	RfRowMemo  *memos;			/* one for each index */
};

/*
 * Adds the numbers of the run-time parameters in a clause to a set.
 */
static bool
collect_params(Node *node, void *context)
{
	Bitmapset **params = context;

	if (node == NULL)
		return false;
	if (rf_is_runtime_param(node))
		*params = bms_add_member(*params, ((Param *) node)->paramid);
	return expression_tree_walker(node, collect_params, context);
}

/*
 * The part that has these run-time parameters; a new one, added to the parts, if there is
 * none.
 */
static RfKeptPart *
find_part(List **parts, Bitmapset *params)
{
	RfKeptPart *part;
	ListCell   *cell;

	foreach(cell, *parts)
	{
		part = lfirst(cell);
		if (bms_equal(part->params, params))
			return part;
	}
	part = palloc0(sizeof(RfKeptPart));
	part->params = params;
	*parts = lappend(*parts, part);
	return part;
}

/*
 * Divides clauses, which are under AND, into parts.
 */
static List *
divide(List *clauses)
{
	List	   *parts = NIL;
	ListCell   *cell;

	foreach(cell, clauses)
	{
		Bitmapset  *params = NULL;
		RfKeptPart *part;

		(void) collect_params(lfirst(cell), &params);
		part = find_part(&parts, params);
		part->clauses = lappend(part->clauses, lfirst(cell));
	}
	return parts;
}

/*
 * Prepares for making conditions of clauses with run-time parameters, all about indexes of
 * the table and varno 1.  Allocates in the current context, which is to live as long.
 */
RfKept *
rf_keep(List *clauses, RfTable *table)
{
	RfKept	   *kept = palloc0(sizeof(RfKept));

	kept->context = CurrentMemoryContext;
	kept->match = rf_begin_match(clauses, 1, table);
	kept->parts = divide(clauses);
	kept->memos = palloc0((table->nindexes + 1) * sizeof(RfRowMemo));
	for (int i = 0; i < table->nindexes; i++)
		kept->memos[i].parent = kept->context;
	return kept;
}

/*
 * Has to be called when these run-time parameters have other values, or are no longer
 * unknown, or the other way round.  The values of all others must stay where they are: sets of
 * keys may point to them.
 */
void
rf_kept_change(RfKept *kept, const Bitmapset *changed)
{
	ListCell   *cell;

	foreach(cell, kept->parts)
	{
		RfKeptPart *part = lfirst(cell);

		if (bms_overlap(part->params, changed))
			part->current = false;
	}
}

/*
 * Makes the condition of a part, in the current context.
 */
static void
make_part(RfKept *kept, RfKeptPart *part, const RfKeptValues *values)
{
	ListCell   *cell;

	if (bms_overlap(part->params, values->unknown))
		return;
	foreach(cell, part->clauses)
	{
		Node	   *clause = rf_gate_fill(lfirst(cell), values);
		RfCond	   *cond;

		if (clause == NULL)
		{
			part->never = true;
			return;
		}
		cond = rf_match_clause(kept->match, clause);
		if (cond != NULL)
			part->conds = lappend(part->conds, cond);
	}
	part->cond = rf_combine(RF_COND_AND, part->conds);
}

/*
 * Makes a part's condition, unless it has that of the present values.
 */
static void
match_part(RfKept *kept, RfKeptPart *part, const RfKeptValues *values)
{
	MemoryContext old;

	if (part->current)
		return;
	if (part->context == NULL)
		part->context = AllocSetContextCreate(kept->context,
											  "rangefilter kept condition",
											  ALLOCSET_SMALL_SIZES);
	else
		MemoryContextReset(part->context);
	part->never = false;
	part->cond = NULL;
	part->conds = NIL;
	old = MemoryContextSwitchTo(part->context);
	make_part(kept, part, values);
	MemoryContextSwitchTo(old);
	part->current = true;
}

/*
 * list_sort() callback: what has fewer ranges of keys comes first.
 */
static int
compare_ranges(const ListCell *a, const ListCell *b)
{
	double		ranges_a = rf_cond_ranges(lfirst(a));
	double		ranges_b = rf_cond_ranges(lfirst(b));

	return (ranges_a > ranges_b) - (ranges_a < ranges_b);
}

/*
 * Sets *cond to the condition of the clauses with these values, where there is
 * one.  rf_kept_change() has been told what is new.  The condition is allocated
 * in the current context, but is valid only until the next call.
 */
RfKeptAnswer
rf_kept_match(RfKept *kept, const RfKeptValues *values, RfCond **cond)
{
	List	   *conds = NIL;
	bool		never = false;
	ListCell   *cell;

	*cond = NULL;
	foreach(cell, kept->parts)
	{
		RfKeptPart *part = lfirst(cell);

		match_part(kept, part, values);
		never = part->never;
		if (never)
			break;
		if (part->cond != NULL)
			conds = lappend(conds, part->cond);
	}
	if (!never)
		*cond = rf_end_match(kept->match, conds, kept->memos);
	if (*cond == NULL)
		return never ? RF_KEPT_NEVER : RF_KEPT_NOTHING;

	/* One NO suffices. */
	if ((*cond)->kind == RF_COND_AND)
		list_sort((*cond)->args, compare_ranges);
	return RF_KEPT_CONDITION;
}

/*
 * How many clauses say something in the condition that was returned last?
 */
int
rf_kept_used(const RfKept *kept)
{
	int			n = 0;
	ListCell   *cell;

	foreach(cell, kept->parts)
	{
		const RfKeptPart *part = lfirst(cell);
		ListCell   *other;

		foreach(other, part->conds)
			n += rf_was_used(kept->match, lfirst(other));
	}
	return n;
}
