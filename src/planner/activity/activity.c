/*-------------------------------------------------------------------------
 *
 * activity.c
 *	  Which scans find nothing: watching some of the queries.
 *
 * A partition whose index did not say NO is scanned.  If that scan finds no
 * row, a better filter would have skipped the partition: the filter was wrong,
 * or covers rows that are gone or not visible, or was not up to date.  To find
 * such scans, rows must be counted scan by scan, which costs a little for each
 * row.  So it is done for a random share of queries
 * (rangefilter.activity_sample_rate), chosen when the query is planned,
 * because that is when the index is asked.  The plan carries a list of what is
 * to be watched; ExecutorStart switches the counting of rows on, ExecutorEnd
 * looks at the scans.  A plan that is executed many times is watched once,
 * because its index was asked once.
 *
 * A scan that was started and returned nothing has been read to its end.  It
 * says something about the filter only if the filter was asked for all
 * conditions of the scan.  So a scan is watched if
 *	- one index was asked for all conditions on the table, except those that
 *	  the partition's bounds imply;
 *	- it uses no values from other parts of the query, and no TABLESAMPLE;
 *	- its table is in the plan only once;
 *	- the plan has no workers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/partition.h"
#include "compat.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "nodes/nodeFuncs.h"
#include "nodes/value.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "planner/activity/activity.h"
#include "planner/knowledge/knowledge.h"
#include "planner/knowledge/question.h"
#include "planner/planning/planning.h"
#include "request/request.h"
#include "stats/stats.h"
#include "rewrite/rewriteManip.h"
#include "utils/builtins.h"
#include "utils/partcache.h"
#include "utils/rel.h"

/* The list that a plan carries, in a CustomScan that is never run. */
typedef struct RfWatch
{
	List	   *leaves;			/* OIDs of tables ... */
	List	   *indexes;		/* ... and of the indexes asked */
	Boolean    *done;			/* in the plan: has it been watched? */
} RfWatch;

/* Places in custom_private. */
typedef enum RfWatchPlace
{
	RF_WATCH_LEAVES,			/* list of OIDs */
	RF_WATCH_INDEXES,			/* list of OIDs */
	RF_WATCH_DONE				/* Boolean */
} RfWatchPlace;

/*
 * The list as a plan carries it.
 */
static List *
write_watch(const RfWatch *watch)
{
	Node	   *const fields[] = {
		[RF_WATCH_LEAVES] = (Node *) watch->leaves,
		[RF_WATCH_INDEXES] = (Node *) watch->indexes,
		[RF_WATCH_DONE] = (Node *) watch->done
	};

	return rf_list_fields(fields, lengthof(fields));
}

/*
 * What the list in a plan says.
 */
static void
read_watch(const CustomScan *scan, RfWatch *watch)
{
	List	   *fields = scan->custom_private;

	watch->leaves = list_nth(fields, RF_WATCH_LEAVES);
	watch->indexes = list_nth(fields, RF_WATCH_INDEXES);
	watch->done = list_nth_node(Boolean, fields, RF_WATCH_DONE);
}

static const CustomExecMethods watch_exec_methods = {
	.CustomName = "Range Filter Watch",
	.BeginCustomScan = rf_inert_begin,
	RF_INERT_METHODS
};

/*
 * CreateCustomScanState of the list.
 */
static Node *
create_watch_state(CustomScan *watch)
{
	CustomScanState *state = makeNode(CustomScanState);

	state->methods = &watch_exec_methods;
	return (Node *) state;
}

static const CustomScanMethods watch_methods = {
	.CustomName = "Range Filter Watch",
	.CreateCustomScanState = create_watch_state
};

/* What was found in one of the tables. */
typedef struct RfWatched
{
	Oid			leaf;			/* sorted and sought by it: must be first */
	Oid			index;
	int			nscans;			/* in the plan */
	bool		started;
	bool		dependent;		/* takes values from outside */
	double		rows;
	const Plan *scan;
} RfWatched;

typedef struct RfWatchContext
{
	EState	   *estate;
	RfWatched  *tables;			/* by leaf */
	int			n;
} RfWatchContext;

/*
 * An expansion over a table's partitions begins: may their scans be watched?
 */
void
rf_watch_expansion(RfExpansion *expansion, RelOptInfo *parent)
{
	ListCell   *cell;

	if (!rf_planning->watch || expansion->match.cond->kind != RF_COND_PROBE)
		return;
	expansion->watched = true;
	expansion->varno = parent->relid;
	foreach(cell, parent->baserestrictinfo)
	{
		Node	   *clause = (Node *) lfirst_node(RestrictInfo, cell)->clause;

		if (!list_member_ptr(expansion->match.clauses, clause))
			expansion->others = lappend(expansion->others, clause);
	}
}

/*
 * A partition is kept.
 */
void
rf_watch_leaf(RfTable *table, RfExpansion *expansion, Oid leaf, int position)
{
	RfLeaf	   *entry;

	if (!expansion->watched)
		return;
	entry = rf_find_leaf(table, expansion->match.cond->index, leaf, position);
	if (entry == NULL)
		return;
	expansion->kept_leaves = lappend_oid(expansion->kept_leaves, leaf);
	expansion->kept_indexes = lappend_oid(expansion->kept_indexes, entry->index);
}

/*
 * Are the conditions that the index was not asked for true for all rows of
 * the partition, by its bounds?  The planner has locked both tables, unless the
 * partition was gone by then.
 */
static bool
others_follow(const RfExpansion *expansion, Relation parent, Oid oid)
{
	Relation	leaf;
	List	   *bounds;
	List	   *others;

	if (expansion->others == NIL)
		return true;
	leaf = try_table_open(oid, NoLock);
	if (leaf == NULL)
		return false;
	bounds = (List *) expression_planner((Expr *) RelationGetPartitionQual(leaf));
	others = map_partition_varattnos(copyObject(expansion->others), expansion->varno,
									 leaf, parent);
	ChangeVarNodes((Node *) others, expansion->varno, 1, 0);
	table_close(leaf, NoLock);
	return predicate_implied_by(others, bounds, false);
}

/*
 * Adds the partitions of an expansion that are to be watched to the lists.
 */
static void
watch_kept(const RfExpansion *expansion, List **leaves, List **indexes)
{
	Relation	parent = table_open(expansion->relid, NoLock);
	ListCell   *leaf;
	ListCell   *index;

	forboth(leaf, expansion->kept_leaves, index, expansion->kept_indexes)
	{
		if (!others_follow(expansion, parent, lfirst_oid(leaf)))
			continue;
		*leaves = lappend_oid(*leaves, lfirst_oid(leaf));
		*indexes = lappend_oid(*indexes, lfirst_oid(index));
	}
	table_close(parent, NoLock);
}

/*
 * Attaches the list of partitions to be watched to a plan that was chosen.
 */
void
rf_attach_watch(PlannedStmt *stmt, RfPlanning *planning)
{
	CustomScan *scan;
	RfWatch		watch = {.done = makeBoolean(false)};
	ListCell   *cell;

	if (!planning->watch || stmt->parallelModeNeeded)
		return;
	foreach(cell, planning->expansions)
	{
		if (((RfExpansion *) lfirst(cell))->watched)
			watch_kept(lfirst(cell), &watch.leaves, &watch.indexes);
	}
	if (watch.leaves == NIL)
		return;
	scan = makeNode(CustomScan);
	scan->methods = &watch_methods;
	scan->scan.plan.parallel_safe = false;
	scan->custom_private = write_watch(&watch);
	stmt->subplans = lappend(stmt->subplans, scan);
}

/*
 * Looks for the list that a plan carries.  False if there is none, or it has been
 * watched.
 */
static bool
find_watch(const PlannedStmt *stmt, RfWatch *watch)
{
	for (int i = list_length(stmt->subplans) - 1; i >= 0; i--)
	{
		CustomScan *plan = list_nth(stmt->subplans, i);

		if (plan != NULL && IsA(plan, CustomScan) &&
			plan->methods == &watch_methods)
		{
			read_watch(plan, watch);
			return !watch->done->boolval;
		}
	}
	return false;
}

/*
 * A plan is about to be started: has rows counted if it is to be watched.
 */
void
rf_watch_start(QueryDesc *desc, int eflags)
{
	RfWatch		watch;

	if (!(eflags & EXEC_FLAG_EXPLAIN_ONLY) &&
		find_watch(desc->plannedstmt, &watch))
		desc->instrument_options |= INSTRUMENT_ROWS;
}

/*
 * One of the tables to be watched.
 */
static RfWatched *
watched_table(const RfWatchContext *context, int i)
{
	Assert(i < context->n);
	return &context->tables[i];
}

/*
 * The tables to be watched, sorted.  A table that was asked about twice counts
 * as scanned twice, and so is not watched.
 */
static void
make_tables(const RfWatch *watch, RfWatchContext *context)
{
	int			n = list_length(watch->leaves);

	context->tables = palloc0(n * sizeof(RfWatched));
	context->n = n;
	for (int i = 0; i < n; i++)
	{
		RfWatched  *table = watched_table(context, i);

		table->leaf = list_nth_oid(watch->leaves, i);
		table->index = list_nth_oid(watch->indexes, i);
	}
	qsort(context->tables, n, sizeof(RfWatched), oid_cmp);
	for (int i = 1; i < n; i++)
	{
		RfWatched  *table = watched_table(context, i);
		RfWatched  *before = watched_table(context, i - 1);

		if (table->leaf == before->leaf)
			table->nscans = before->nscans = 1;
	}
}

/*
 * Does a node use values from other parts of the query?  Parameters that only
 * signal a change, as those for EvalPlanQual, have no type.
 */
static bool
takes_values(PlanState *node, EState *estate)
{
	List	   *types = estate->es_plannedstmt->paramExecTypes;
	int			param = -1;

	while ((param = bms_next_member(node->plan->extParam, param)) >= 0)
	{
		if (OidIsValid(list_nth_oid(types, param)))
			return true;
	}
	return false;
}

/*
 * Notes what a node of the plan has found, if it scans one of the tables.
 */
static bool
note_scan(PlanState *node, void *arg)
{
	RfWatchContext *context = arg;
	Index		rti = rf_scanned_table(node->plan);
	RfWatched  *table = NULL;

	if (rti > 0)
		table = bsearch(&exec_rt_fetch(rti, context->estate)->relid, context->tables,
						context->n, sizeof(RfWatched), oid_cmp);
	if (table != NULL && node->instrument != NULL)
	{
		RfNodeCounts *seen = node->instrument;

		table->nscans++;
		table->scan = node->plan;
		table->started = seen->running || seen->nloops > 0;
		table->rows = seen->ntuples + seen->tuplecount;
		table->dependent = takes_values(node, context->estate) ||
			IsA(node, SampleScanState);
	}
	return planstate_tree_walker(node, note_scan, arg);
}

/*
 * A watched scan of a table found nothing: tells the background worker.  A scan by another
 * index counts by its share of what it costs to read the table.  The executor has locked the table.
 */
void
rf_note_vain_scan(Oid table, Oid index, const Plan *scan)
{
	Relation	relation = table_open(table, NoLock);
	Cost		whole = RelationGetNumberOfBlocks(relation) * seq_page_cost;

	table_close(relation, NoLock);
	rf_request_vain_reads(index, rf_stats_sampled() *
						  (scan->total_cost < whole ? scan->total_cost / whole : 1));
}

/*
 * Counts the scans of a plan that has been executed.
 */
static void
count_scans(QueryDesc *desc, const RfWatch *watch)
{
	RfWatchContext context = {.estate = desc->estate};

	make_tables(watch, &context);
	note_scan(desc->planstate, &context);
	for (int i = 0; i < context.n; i++)
	{
		RfWatched  *table = watched_table(&context, i);
		RfCounts   *counts;

		if (table->nscans != 1 || !table->started || table->dependent)
			continue;
		counts = rf_stats_counts(table->index);
		counts->scans++;
		counts->empty += table->rows == 0;
		rf_stats_pending = true;
		if (table->rows == 0)
			rf_note_vain_scan(table->leaf, table->index, table->scan);
	}
	pfree(context.tables);

	/* Only this note is ever changed in a plan that may be a cached one. */
	watch->done->boolval = true;
}

/*
 * A plan ends: counts what its scans found, if they were watched.
 */
void
rf_watch_end(QueryDesc *desc)
{
	RfWatch		watch;

	if (find_watch(desc->plannedstmt, &watch) &&
		desc->planstate->instrument != NULL)
		count_scans(desc, &watch);
}

/*
 * Called once, when the library is loaded.
 */
void
rf_init_activity(void)
{
	rf_stats_collect = rf_collect_counts;
	RegisterCustomScanMethods(&watch_methods);
}
