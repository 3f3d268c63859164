/*-------------------------------------------------------------------------
 *
 * own_index.c
 *	  Indexes that only partitions have: they belong to no partitioned index.
 *
 * Partitions get such indexes from templates (pg_partman), or one by one from
 * CREATE INDEX CONCURRENTLY.  Those that are alike in terms of the partitioned
 * table become one RfIndex, as if they belonged to a partitioned index.  A
 * partition that has none is not among its leaves, and is scanned.
 *
 * They are found by one scan of pg_index over those leaves that have a
 * rangefilter index at all (indexed_tables.c), in the order of the tables'
 * OIDs.  A session makes it once for each table: when it first sees
 * the table if the table has no index of its own, else when a query asks many
 * partitions what the table's own indexes cannot answer.
 *
 * Nobody tells the partitioned table of an index that a partition gets or
 * loses.  But the partition itself gets an invalidation.  So the last
 * invalidations are remembered (invalidation.c), and if there are partitions
 * among them, these are looked at again (rf_own_unchanged()).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/indexing.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "key/rowkey.h"
#include "partitioning/partdesc.h"
#include "planner/knowledge/catalog_rows.h"
#include "planner/knowledge/knowledge.h"
#include "rangefilter/rangefilter.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/*
 * The most kinds of them that are kept for a table.  Each clause of a query is compared
 * with each kind.
 */
#define MOST_KINDS		16

/* The operator classes that are remembered during a scan. */
#define SOME_OPCLASSES	32

/* Operator classes seen, and their access methods if these are ours. */
typedef struct RfOpclasses
{
	int			n;
	Oid			opclasses[SOME_OPCLASSES];
	Oid			ams[SOME_OPCLASSES];
} RfOpclasses;

/* An index of a partition that was found. */
typedef struct RfFound
{
	RfOwnIndex	own;
	Oid			am;
	HeapTuple	row;			/* of pg_index */
} RfFound;

/* Finding such indexes. */
typedef struct RfSearch
{
	RfTable    *table;
	const RfMember *members;	/* of whose indexes rows are read */
	RfOpclasses opclasses;
	int			n;
	int			size;
	RfFound    *found;
	bool		locked;			/* the last one was locked, and not described */
} RfSearch;

/*
 * The access method of an operator class if that is rangefilter, else
 * InvalidOid.
 */
static Oid
find_am(Oid opclass)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Oid			am;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	am = ((Form_pg_opclass) GETSTRUCT(tuple))->opcmethod;
	ReleaseSysCache(tuple);
	return rf_is_rangefilter_am(am) ? am : InvalidOid;
}

/*
 * The same from memory.
 */
static Oid
known_am(RfOpclasses *known, Oid opclass)
{
	for (int i = 0; i < known->n; i++)
	{
		if (known->opclasses[i] == opclass)
			return known->ams[i];
	}
	if (known->n == SOME_OPCLASSES)
		return find_am(opclass);
	known->opclasses[known->n] = opclass;
	known->ams[known->n] = find_am(opclass);
	return known->ams[known->n++];
}

/*
 * Does an index of a member belong to one of the table's partitioned indexes?
 */
static bool
is_attached(RfTable *table, const RfMember *member, Oid index)
{
	for (int i = 0; i < table->nindexes; i++)
	{
		RfLeaf	   *leaf = rf_index_at(table, i)->own != NIL ? NULL :
		rf_find_leaf(table, rf_index_at(table, i), member->leaf, member->position);

		if (leaf != NULL && leaf->index == index)
			return true;
	}
	return false;
}

/*
 * Takes a row of pg_index about member number i: adds the index to those found if it
 * is a rangefilter index that can be used and that belongs to the member alone.
 */
static void
take_row(void *arg, int i, HeapTuple tuple)
{
	RfSearch   *search = arg;
	const RfMember *member = &search->members[i];
	Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);
	Oid			am;
	RfFound    *found;

	if (!form->indisvalid)
		return;
	am = known_am(&search->opclasses, rf_row_opclasses(form)->values[0]);
	if (!OidIsValid(am) || is_attached(search->table, member, form->indexrelid))
		return;
	if (search->n == search->size)
	{
		search->size = Max(64, 2 * search->size);
		search->found = search->found == NULL ?
			palloc(search->size * sizeof(RfFound)) :
			repalloc(search->found, search->size * sizeof(RfFound));
	}
	found = &search->found[search->n++];
	found->own.leaf = member->leaf;
	found->own.index = form->indexrelid;
	found->am = am;
	found->row = heap_copytuple(tuple);
}

/*
 * qsort() comparator: RfFound by leaf, then by index.
 */
static int
compare_found(const void *a, const void *b)
{
	const RfOwnIndex *x = &((const RfFound *) a)->own;
	const RfOwnIndex *y = &((const RfFound *) b)->own;

	return x->leaf != y->leaf ? (x->leaf > y->leaf) - (x->leaf < y->leaf) :
		(x->index > y->index) - (x->index < y->index);
}

/*
 * Finds the indexes that only members have.  The members are in the order of
 * their OIDs.  Finds none while the catalog's index cannot be used.
 */
static void
search_members(RfSearch *search, const RfMember *members, int n)
{
	static const RfCatalogOrder of_tables = {
		IndexRelationId, IndexIndrelidIndexId, Anum_pg_index_indrelid
	};

	search->members = members;
	(void) rf_catalog_rows(&of_tables, &members->leaf, sizeof(RfMember), n,
						   take_row, search);
	if (search->n > 0)
		qsort(search->found, search->n, sizeof(RfFound), compare_found);
}

/*
 * Describes a column that is no expression.  False if its keys have no codec.
 */
static bool
describe_column(RfIndexColumn *column, Oid opclass, Oid collation)
{
	column->opclass = opclass;
	return rf_describe_key(column, get_opclass_family(opclass),
						   get_opclass_input_type(opclass), collation);
}

/*
 * Describes a leaf's index in terms of the parent.  relation is the open
 * index, and may be NULL if the index has neither expressions nor a predicate.
 * False if it cannot be described.
 */
static bool
describe_own(Oid parent, Form_pg_index form, Relation relation, RfIndex *index)
{
	List	   *predicate = NIL;
	List	   *exprs = relation != NULL ? RelationGetIndexExpressions(relation) : NIL;
	const RfCodec *codecs[RF_MAX_COLUMNS];

	memset(index, 0, sizeof(*index));
	index->parent = parent;
	index->oid = form->indexrelid;
	index->ncolumns = form->indnkeyatts;
	if (index->ncolumns > RF_MAX_COLUMNS)
		return false;
	for (int i = 0; i < index->ncolumns; i++)
	{
		RfIndexColumn *column = &index->columns[i];
		AttrNumber	attno = form->indkey.values[i];

		column->attno = attno != 0 ?
			rf_parent_attno(parent, form->indrelid, attno) : 0;
		if (attno == 0 && exprs != NIL)
		{
			column->expr = rf_about_parent(linitial(exprs), form->indrelid, parent);
			exprs = list_delete_first(exprs);
		}
		if (!describe_column(column, rf_row_opclasses(form)->values[i],
							 rf_row_collations(form)->values[i]) ||
			(column->attno == 0 && column->expr == NULL))
			return false;
		codecs[i] = column->codec;
	}
	index->codec = rf_row_codec(codecs, index->ncolumns);
	if (relation != NULL)
		predicate = RelationGetIndexPredicate(relation);
	index->predicate = (List *)
		rf_about_parent((Node *) predicate, form->indrelid, parent);
	return predicate == NIL || index->predicate != NIL;
}

/*
 * Do two indexes have the same columns and cover the same rows?
 */
static bool
is_alike(const RfIndex *a, const RfIndex *b)
{
	if (a->ncolumns != b->ncolumns || !equal(a->predicate, b->predicate))
		return false;
	for (int i = 0; i < a->ncolumns; i++)
	{
		const RfIndexColumn *x = &a->columns[i];
		const RfIndexColumn *y = &b->columns[i];

		if (x->attno != y->attno || x->opclass != y->opclass ||
			x->collation != y->collation || !equal(x->expr, y->expr))
			return false;
	}
	return true;
}

/*
 * Describes an index that was found.  One with expressions has to be opened,
 * and its lock is not waited for.
 */
static bool
describe_found(RfSearch *search, const RfFound *found, RfIndex *index)
{
	Oid			parent = search->table->relid;
	Form_pg_index form = (Form_pg_index) GETSTRUCT(found->row);
	Relation	relation;
	bool		described = false;

	if (heap_attisnull(found->row, Anum_pg_index_indexprs, NULL) &&
		heap_attisnull(found->row, Anum_pg_index_indpred, NULL))
		return describe_own(parent, form, NULL, index);
	if (!ConditionalLockRelationOid(found->own.index, AccessShareLock))
	{
		search->locked = true;
		return false;
	}
	relation = RelationIdGetRelation(found->own.index);
	if (relation != NULL)
	{
		described = rf_index_is_usable(relation, found->own.leaf) &&
			describe_own(parent, relation->rd_index, relation, index);
		relation_close(relation, NoLock);
	}
	UnlockRelationOid(found->own.index, AccessShareLock);
	return described;
}

/*
 * Adds a kind of indexes to the entry, as the description of one says.
 */
static RfIndex *
add_kind(RfTable *table, const RfIndex *described)
{
	RfIndex    *index = &table->indexes[table->nindexes++];

	*index = *described;
	for (int c = 0; c < index->ncolumns; c++)
		index->columns[c].expr = copyObject(index->columns[c].expr);
	index->predicate = copyObject(index->predicate);
	return index;
}

/*
 * Adds an index that was found to those of its kind.  last_leaf has the last
 * leaf of each kind: a leaf's second index of the same kind is left out.
 */
static void
add_own(RfSearch *search, int nparents, const RfFound *found, Oid *last_leaf)
{
	RfTable    *table = search->table;
	RfIndex		described;
	RfIndex    *index = &table->indexes[nparents];
	RfIndex    *end = &table->indexes[table->nindexes];
	MemoryContext old;

	if (!describe_found(search, found, &described))
		return;
	while (index < end && !is_alike(index, &described))
		index++;
	if (index == &table->indexes[nparents + MOST_KINDS] ||
		(index < end && last_leaf[index - table->indexes - nparents] == found->own.leaf))
		return;

	old = MemoryContextSwitchTo(table->context);
	described.am = found->am;
	if (index == end)
		index = add_kind(table, &described);
	index->own = lappend_oid(index->own, found->own.index);

	/* Changes before there was a record may have been of this index. */
	rf_hold_inval_record(table, found->own.index)->changed_at = rf_changes();
	last_leaf[index - table->indexes - nparents] = found->own.leaf;
	MemoryContextSwitchTo(old);
}

/*
 * Puts the leaves among the partitions into the entry, in the order of their
 * OIDs.
 */
static void
list_members(RfTable *table, PartitionDesc partdesc)
{
	table->nmembers = 0;
	table->members = MemoryContextAllocHuge(table->context,
											(partdesc->nparts + 1) * sizeof(RfMember));
	for (int i = 0; i < partdesc->nparts; i++)
	{
		if (!rf_is_leaf(partdesc, i))
			continue;
		table->members[table->nmembers].leaf = partdesc->oids[i];
		table->members[table->nmembers++].position = i;
	}
	qsort(table->members, table->nmembers, sizeof(RfMember), oid_cmp);
}

/*
 * Adds the kinds of indexes that were found to the entry.
 */
static void
add_kinds(RfSearch *search)
{
	RfTable    *table = search->table;
	Oid			last_leaf[MOST_KINDS];
	int			nparents = table->nindexes;
	RfIndex    *indexes = MemoryContextAllocZero(table->context,
												 (nparents + MOST_KINDS) * sizeof(RfIndex));

	memcpy(indexes, table->indexes, nparents * sizeof(RfIndex));
	table->indexes = indexes;
	table->own = MemoryContextAllocHuge(table->context,
										search->n * sizeof(RfOwnIndex));
	for (int i = 0; i < search->n; i++)
	{
		search->locked = false;
		add_own(search, nparents, &search->found[i], last_leaf);

		/*
		 * One that is left out is found to be missing at the next
		 * invalidation for its leaf, and the entry is made anew.
		 */
		if (!search->locked)
			table->own[table->nown++] = search->found[i].own;
	}
	for (int i = nparents; i < table->nindexes; i++)
		list_sort(rf_index_at(table, i)->own, list_oid_cmp);
}

/*
 * Adds the indexes that only partitions have to a table's entry, which has
 * the partitioned indexes already, and which nobody uses yet.  The caller has
 * locked the table.
 */
void
rf_add_own_indexes(RfTable *table, PartitionDesc partdesc)
{
	RfSearch	search = {.table = table};
	RfMember   *indexed;
	int			n;

	/* From here on invalidations count. */
	table->own_seen = rf_changes();
	list_members(table, partdesc);
	indexed = palloc_extended((table->nmembers + 1) * sizeof(RfMember),
							  MCXT_ALLOC_HUGE);
	n = rf_indexed_members(table, indexed);
	if (n > 0)
		search_members(&search, indexed, n);
	if (search.n > 0)
		add_kinds(&search);
	pfree(indexed);
	table->own_read = true;
}

/*
 * Looks into the catalogs: does one of some partitions have an index of its
 * own?
 */
static bool
find_any_own(RfTable *table, PartitionDesc partdesc, const Bitmapset *partitions)
{
	RfSearch	search = {.table = table};
	RfMember   *members = palloc((bms_num_members(partitions) + 1) *
								 sizeof(RfMember));
	int			n = 0;
	int			i = -1;

	/* is_attached() will look for them. */
	for (int j = 0; j < table->nindexes; j++)
		rf_map_few_leaves(table, rf_index_at(table, j), partdesc, partitions);
	while ((i = bms_next_member(partitions, i)) >= 0)
	{
		members[n].leaf = partdesc->oids[i];
		members[n++].position = i;
	}
	qsort(members, n, sizeof(RfMember), oid_cmp);
	search_members(&search, members, n);
	pfree(members);
	return search.n > 0;
}

/*
 * The same from the entry, which has the partitions' own indexes.
 */
static bool
know_any_own(const RfTable *table, PartitionDesc partdesc,
			 const Bitmapset *partitions)
{
	int			i = -1;

	while ((i = bms_next_member(partitions, i)) >= 0)
	{
		if (bsearch(&partdesc->oids[i], table->own, table->nown, sizeof(RfOwnIndex),
					oid_cmp) != NULL)
			return true;
	}
	return false;
}

/*
 * May one of some partitions have an index of its own?  Few partitions are
 * looked at: then the answer is exact, whether the entry has these indexes or
 * not, unless enough were looked at that the entry should get them.  The
 * caller has locked the table.
 */
bool
rf_may_have_own(RfTable *table, PartitionDesc partdesc,
				const Bitmapset *partitions)
{
	int			n = bms_num_members(partitions);

	if (table->own_read)
		return table->nown > 0 && (!rf_are_few(n, partdesc) ||
								   know_any_own(table, partdesc, partitions));
	table->own_sought += n;
	return !rf_are_few(table->own_sought, partdesc) ||
		find_any_own(table, partdesc, partitions);
}

/*
 * Has a member the same indexes of its own as when the entry was made?
 */
static bool
member_unchanged(RfTable *table, const RfMember *member)
{
	RfSearch	search = {.table = table};
	int			i = 0;

	search_members(&search, member, 1);
	while (i < table->nown && table->own[i].leaf < member->leaf)
		i++;
	for (int j = 0; j < search.n; j++, i++)
	{
		if (i >= table->nown || table->own[i].leaf != member->leaf ||
			table->own[i].index != search.found[j].own.index)
			return false;
	}
	return i >= table->nown || table->own[i].leaf != member->leaf;
}

/*
 * Have the partitions of a table the same indexes of their own as when the
 * entry was made?  Looks at those for which invalidations came since the last
 * call.  False also if too many invalidations came to know.
 */
bool
rf_own_unchanged(RfTable *table)
{
	uint64		first = table->own_seen;
	uint64		seen = first;
	uint64		now = rf_changes();

	if (!table->own_read || seen == now)
		return true;
	if (now - seen > RF_RECENT_CHANGES)
		return false;
	for (; seen < now; seen++)
	{
		const RfMember *member = rf_find_member(table, rf_recent_change(seen + 1));

		if (member != NULL && !member_unchanged(table, member))
			return false;
	}

	/* Not before: an error in between must not hide what was not looked at. */
	table->own_seen = now;

	/*
	 * To look at members may bring more, in the place of what was not read
	 * yet.
	 */
	return rf_changes() - first <= RF_RECENT_CHANGES;
}

/*
 * Is an open index of a leaf what the description says?  One that belongs to no
 * partitioned index may not be of this kind: an OID may be used again.
 */
bool
rf_index_fits(const RfIndex *index, Relation leaf_index)
{
	RfIndex		described;

	if (IndexRelationGetNumberOfKeyAttributes(leaf_index) != index->ncolumns)
		return false;
	if (index->own == NIL)
		return rf_child_fits(index, leaf_index);
	return describe_own(index->parent, leaf_index->rd_index, leaf_index,
						&described) &&
		is_alike(index, &described);
}
