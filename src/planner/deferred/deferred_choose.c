/*-------------------------------------------------------------------------
 *
 * deferred_choose.c
 *	  Which partitioned tables are deferred, and the member that stands for each.
 *
 * expand_partitioned_rtentry() builds RelOptInfos for the members of a table, one
 * after the other, and calls our hook for each.  At the first one all others are
 * taken out of live_parts.  The one that is left, the template, is made as large as all of
 * them, and gets the statistics of the table.  So the planner itself computes
 * rows, join sizes and costs of paths from it, as those of the table.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "common/hashfn.h"
#include "core/core.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "planner/condition/condition.h"
#include "planner/condition/parameter.h"
#include "planner/deferred/deferred.h"
#include "planner/knowledge/knowledge.h"
#include "planner/skip/skip.h"
#include "rangefilter/rangefilter.h"
#include "rewrite/rewriteManip.h"
#include "utils/syscache.h"

/* rangefilter.defer_partitions: tables with fewer live members are not deferred. */
int			rf_defer_partitions = 8;

/*
 * A table is not deferred by indexes that only its partitions have if a larger share of them has
 * none: these are read in each run.
 */
#define RF_MOST_UNCOVERED	0.25

/*
 * The deferred table that a relation is, or is the template of.
 */
RfDeferred *
rf_find_deferred(const RelOptInfo *rel)
{
	ListCell   *cell;

	if (rf_planning == NULL)
		return NULL;
	foreach(cell, rf_planning->deferred)
	{
		RfDeferred *deferred = lfirst(cell);

		if (deferred->rel == rel || deferred->template == rel)
			return deferred;
	}
	return NULL;
}

/*
 * An index of a partitioned table as the planner's condition functions expect it, in terms of range
 * table index varno.
 */
static RfRelIndex *
describe_index(const RfIndex *index, Index varno)
{
	Size		size = index->ncolumns * sizeof(RfIndexColumn);
	RfRelIndex *copy = palloc0(offsetof(RfRelIndex, columns) + size);

	copy->oid = index->oid;
	copy->varno = varno;
	copy->predicate = copyObject(index->predicate);
	ChangeVarNodes((Node *) copy->predicate, 1, varno, 0);
	copy->ncolumns = index->ncolumns;
	memcpy(copy->columns, index->columns, size);
	for (int c = 0; c < copy->ncolumns; c++)
	{
		copy->columns[c].expr = copyObject(copy->columns[c].expr);
		ChangeVarNodes(copy->columns[c].expr, 1, varno, 0);
	}
	return copy;
}

/*
 * Notes the rangefilter indexes that a table can be deferred by: its own, and those that most of its
 * partitions have, if it has none that all of them have.
 */
static void
note_indexes(RfDeferred *deferred, const RfTable *table)
{
	int			n = table->own_needed ? table->nindexes : table->npartitioned;

	for (int i = 0; i < n; i++)
	{
		const RfIndex *index = rf_index_at(table, i);
		double		uncovered = index->own == NIL ? 0 :
		1 - (double) list_length(index->own) / Max(table->nmembers, 1);

		if (uncovered > RF_MOST_UNCOVERED)
			continue;
		deferred->uncovered = Max(deferred->uncovered, uncovered);
		deferred->indexes = lappend(deferred->indexes,
									describe_index(index, deferred->rel->relid));
	}
}

/*
 * Return true if a value that is known only when the query runs chooses among
 * the table's partitions, by one of these clauses.  Values that a gate has to
 * convert are left to gates.
 */
bool
rf_is_choosing(const RfDeferred *deferred, List *clauses)
{
	RfGateShape shape;
	ListCell   *cell;

	if (!rf_gate_shape(deferred->root, deferred->rel, deferred->indexes,
					   rf_usable_clauses(deferred->rel, clauses), false, &shape))
		return false;
	foreach(cell, shape.conversions)
	{
		if (lfirst_int(cell) != RF_AS_IS)
			return false;
	}
	return true;
}

/*
 * generate_implied_equalities_for_column() callback: return true if the member is
 * a key of one of the deferred table's indexes.
 */
static bool
is_key_member(PlannerInfo *root, RelOptInfo *rel, EquivalenceClass *ec,
			  EquivalenceMember *em, void *arg)
{
	const RfDeferred *deferred = arg;
	Node	   *node = rf_strip_relabel((Node *) em->em_expr);
	ListCell   *cell;

	foreach(cell, deferred->indexes)
	{
		const RfRelIndex *index = lfirst(cell);

		for (int c = 0; c < index->ncolumns; c++)
		{
			Node	   *key = rf_gate_key(index, c);

			if (IsA(key, Var) && IsA(node, Var) ?
				((Var *) key)->varno == ((Var *) node)->varno &&
				((Var *) key)->varattno == ((Var *) node)->varattno :
				equal(key, node))
				return true;
		}
	}
	return false;
}

/*
 * The join clauses that can be checked in a scan of the table: RestrictInfo.
 */
List *
rf_deferred_join_clauses(RfDeferred *deferred)
{
	RelOptInfo *rel = deferred->rel;
	List	   *clauses = NIL;
	ListCell   *cell;

	foreach(cell, rel->joininfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);

		if (join_clause_is_movable_to(rinfo, rel))
			clauses = lappend(clauses, rinfo);
	}
	if (rel->has_eclass_joins)
		clauses = list_concat(clauses,
							  generate_implied_equalities_for_column(deferred->root, rel, is_key_member,
																	 deferred, rel->lateral_referencers));
	return clauses;
}

/*
 * Return true if one of the table's restrictions or join clauses chooses.
 */
static bool
has_choosing_clause(RfDeferred *deferred)
{
	ListCell   *cell;

	if (rf_is_choosing(deferred, deferred->rel->baserestrictinfo))
		return true;
	foreach(cell, rf_deferred_join_clauses(deferred))
	{
		if (rf_is_choosing(deferred, list_make1(lfirst(cell))))
			return true;
	}
	return false;
}

/*
 * A number for one of a query's references to tables, which is the same when the query is
 * planned again.  Others may have it, too.
 */
static int
reference_number(const PlannerInfo *root, Index rti)
{
	return (int) (hash_combine(root->query_level, rti) & PG_INT32_MAX);
}

/*
 * Return true if the plan of a query level has a join.  Core finds no scan below a join for UPDATE ...
 * WHERE CURRENT OF.
 */
static bool
has_join(const PlannerInfo *root)
{
	int			n = 0;

	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		const RelOptInfo *rel = root->simple_rel_array[i];

		n += rel != NULL && rel->reloptkind == RELOPT_BASEREL;
	}
	return n > 1;
}

/*
 * Return true if a table may be deferred, whatever its clauses are.  Rows of a query that
 * locks or changes some are fetched again by other means than by running the
 * scan.  Core must find the scans of a cursor with a name (see may_gate() in plan.c).
 * Nothing is deferred where rows are hidden: EXPLAIN ANALYZE and the server's statistics would
 * tell of them.
 */
static bool
may_defer(PlannerInfo *root, RelOptInfo *parent, const RangeTblEntry *rte)
{
	return parent->reloptkind == RELOPT_BASEREL && rte->inh &&
		rte->rtekind == RTE_RELATION &&
		rte->relkind == RELKIND_PARTITIONED_TABLE &&
		rte->tablesample == NULL && !IS_DUMMY_REL(parent) &&
		(root->parse->commandType == CMD_SELECT || root->parse->commandType == CMD_INSERT) &&
		root->parse->rowMarks == NIL && root->rowMarks == NIL &&
		(rf_planning->may_gate || has_join(root)) &&
		bms_num_members(parent->live_parts) >= rf_defer_partitions &&
		!list_member_int(rf_planning->not_deferred, reference_number(root, parent->relid)) &&
		!rf_is_secured(root, parent->relid) && !rf_has_hidden_values(root);
}

/*
 * Takes all members but the first, whose RelOptInfo is rel, out of a parent's
 * live_parts.  Returns false, and leaves all in, if core is not as expected.
 */
static bool
keep_first(RelOptInfo *parent, RelOptInfo *rel)
{
	int			first = bms_next_member(parent->live_parts, -1);
	Bitmapset  *others = bms_del_member(bms_copy(parent->live_parts), first);

	return rf_core_drop_members(parent, rel, first, others);
}

/*
 * Removes rangefilter indexes from the template: a bitmap scan of one partition
 * by its index tells nothing of the cost of the table's.  Those on expressions stay
 * for their statistics.
 */
static void
drop_indexes(RelOptInfo *template)
{
	ListCell   *cell;

	foreach(cell, template->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, cell);

		if (index->amcostestimate != rf_costestimate)
			continue;
		index->amhasgetbitmap = false;
		if (index->indexprs == NIL)
			template->indexlist = foreach_delete_current(template->indexlist, cell);
	}
}

/*
 * Makes a leaf partition the template: as large as all partitions together.
 */
static void
make_template(RfDeferred *deferred, RelOptInfo *rel)
{
	double		factor;
	ListCell   *cell;

	deferred->template = rel;
	deferred->template_tuples = rel->tuples;
	deferred->pages = Max(deferred->pages, rel->pages);
	deferred->tuples = Max(deferred->tuples, Max(rel->tuples, 1));
	factor = deferred->pages / Max(rel->pages, 1);
	rel->pages = (BlockNumber) Min(Max(deferred->pages, 1), MaxBlockNumber);
	rel->tuples = deferred->tuples;
	drop_indexes(rel);
	foreach(cell, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, cell);

		index->pages = (BlockNumber) Min(ceil(index->pages * factor), MaxBlockNumber);
		index->tuples = deferred->tuples;
	}
}

/*
 * Decides about a partitioned table, at its first member.  Returns true if the table is
 * deferred.  Sets *asked if it is not, and indexes were asked.
 */
static bool
defer(PlannerInfo *root, RelOptInfo *parent, RelOptInfo *rel, bool *asked)
{
	RangeTblEntry *rte = root->simple_rte_array[parent->relid];
	RfTable    *table;
	RfDeferred *deferred;

	if (!may_defer(root, parent, rte) || IS_DUMMY_REL(rel))
		return false;
	table = rf_find_table(rte->relid);
	if (table->nindexes == 0)
		return false;
	deferred = palloc0(sizeof(RfDeferred));
	deferred->root = root;
	deferred->rel = parent;
	deferred->relid = rte->relid;
	deferred->reference = reference_number(root, parent->relid);
	note_indexes(deferred, table);
	if (deferred->indexes == NIL ||
		(rf_planning->deferred == NIL && !has_choosing_clause(deferred)))
		return false;
	*asked = rf_skip_members(root, rel, rf_defer_partitions) < rf_defer_partitions;
	if (*asked)
		return false;
	rf_deferred_size(deferred);
	if (!keep_first(parent, rel))
		return false;
	deferred->template = rel;
	rf_planning->deferred = lappend(rf_planning->deferred, deferred);
	rf_mark_plan(root);
	return true;
}

/*
 * Called when a member of a table has got its RelOptInfo.  Returns true if it is the
 * template of a deferred table.
 */
bool
rf_defer_members(PlannerInfo *root, RelOptInfo *rel, bool *asked)
{
	AppendRelInfo *appinfo;
	RelOptInfo *parent;
	RfDeferred *deferred;
	MemoryContext old;

	if (!rf_planning->may_defer || rel->reloptkind != RELOPT_OTHER_MEMBER_REL)
		return false;
	appinfo = root->append_rel_array[rel->relid];
	parent = root->simple_rel_array[appinfo->parent_relid];
	if (parent == NULL || parent->part_rels == NULL ||
		parent->all_partrels != NULL || !rf_is_ours(root))
		return false;
	old = MemoryContextSwitchTo(rf_planning->context);
	deferred = rf_find_deferred(parent);
	if (deferred != NULL && deferred->template == parent)
	{
		/* A member that is partitioned itself: its first one is the template. */
		(void) keep_first(parent, rel);
		deferred->template = rel;
	}
	else if (deferred == NULL && defer(root, parent, rel, asked))
		deferred = rf_find_deferred(parent);
	if (deferred != NULL && rel->part_scheme == NULL)
		make_template(deferred, rel);
	MemoryContextSwitchTo(old);
	return deferred != NULL;
}

/*
 * get_relation_stats_hook: supplies a template's column with the statistics of
 * the whole table.  The user may use them: nothing is deferred where rows are hidden.
 */
bool
rf_deferred_stats(AttrNumber attno, VariableStatData *vardata)
{
	RfDeferred *deferred;
	Oid			leaf;

	if (rf_planning == NULL || rf_planning->deferred == NIL || attno <= 0 ||
		vardata->rel == NULL)
		return false;
	deferred = rf_find_deferred(vardata->rel);
	if (deferred == NULL || deferred->template != vardata->rel)
		return false;
	leaf = deferred->root->simple_rte_array[vardata->rel->relid]->relid;
	attno = rf_parent_attno(deferred->relid, leaf, attno);
	vardata->statsTuple = SearchSysCache3(STATRELATTINH,
										  ObjectIdGetDatum(deferred->relid),
										  Int16GetDatum(attno),
										  BoolGetDatum(true));
	if (!HeapTupleIsValid(vardata->statsTuple))
		return false;
	vardata->freefunc = ReleaseSysCache;
	vardata->acl_ok = true;
	return true;
}
