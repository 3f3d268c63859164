/*-------------------------------------------------------------------------
 *
 * leafmap.c
 *	  The index of each leaf partition, and where its file is.
 *
 * A backend that asks a thousand indexes for the first time would spend most
 * of its time on making relation cache entries.  A probe needs only two facts:
 * that the index can be used, and the locator of its file.  Both are read here
 * for all members at once, by one scan of pg_index and one of pg_class
 * (catalog_rows.c).  If partition pruning has left only few members, they are
 * read for these alone (rf_map_few_leaves()).
 *
 * What was read is as reliable as a relation cache entry: each change sends an
 * invalidation, which arrives at the latest when the index is locked.  So what
 * was read is used only under that lock or after invalidations were absorbed,
 * and only if the index's invalidation record (invalidation.c) has noted
 * nothing since before the catalogs were read.  Otherwise the relation cache
 * is used.  It is also used for indexes that are not permanent, or that have
 * other operator classes, collations or expressions than their parent.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "partitioning/partdesc.h"
#include "planner/knowledge/catalog_rows.h"
#include "planner/knowledge/knowledge.h"
#include "planner/knowledge/mapmemory.h"
#include "planner/knowledge/question.h"
#include "stats/session.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* At most one partition in FEW_IN is looked up by itself. */
#define FEW_IN	16

/* Leaf table -> position in RfIndex.leaves. */
typedef struct RfLeafPosition
{
	Oid			leaf;			/* hash key */
	int			position;
	char		status;
} RfLeafPosition;

#define SH_PREFIX rf_leafmap
#define SH_ELEMENT_TYPE RfLeafPosition
#define SH_KEY_TYPE Oid
#define SH_KEY leaf
#define SH_HASH_KEY(tb, key) murmurhash32(key)
#define SH_EQUAL(tb, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_USE_NONDEFAULT_ALLOCATOR
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

RF_MAP_ALLOCATOR(rf_leafmap)

/* Leaves of an index, in the order of their indexes' OIDs. */
typedef struct RfLeafRows
{
	const RfIndex *index;
	RfLeaf	   *leaves;
} RfLeafRows;

/*
 * Reads a row of pg_index: the index's table, and whether the index can be
 * used.  There may be a thousand rows, so columns are read in place and not
 * looked up by number.
 */
static void
read_index_row(void *arg, int i, HeapTuple row)
{
	const RfIndex *index = ((const RfLeafRows *) arg)->index;
	RfLeaf	   *leaf = &((const RfLeafRows *) arg)->leaves[i];
	Form_pg_index form = (Form_pg_index) GETSTRUCT(row);
	const oidvector *collations = rf_row_collations(form);
	const oidvector *opclasses = rf_row_opclasses(form);

	leaf->leaf = form->indrelid;
	if (!form->indisvalid || form->indnkeyatts != index->ncolumns)
		return;
	for (int column = 0; column < index->ncolumns; column++)
	{
		if (opclasses->values[column] != index->columns[column].opclass ||
			collations->values[column] != index->columns[column].collation)
			return;
	}
	leaf->located = rf_stored_alike(index, row);
}

/*
 * Reads a row of pg_class: where the index's file is.  An index that is not
 * permanent is not located.
 */
static void
read_class_row(void *arg, int i, HeapTuple row)
{
	const RfIndex *index = ((const RfLeafRows *) arg)->index;
	RfLeaf	   *leaf = &((const RfLeafRows *) arg)->leaves[i];
	Form_pg_class form = (Form_pg_class) GETSTRUCT(row);

	if (form->relkind == RELKIND_INDEX && form->relam == index->am &&
		form->relpersistence == RELPERSISTENCE_PERMANENT &&
		OidIsValid(form->relfilenode))
		RF_SET_RELFILE(&leaf->locator,
					   OidIsValid(form->reltablespace) ?
					   form->reltablespace : MyDatabaseTableSpace,
					   MyDatabaseId, form->relfilenode);
	else
		leaf->located = false;
}

/*
 * Finds tables and files of leaves' indexes in the catalogs.  A leaf is not
 * located if its file is not known.  Its table is InvalidOid if its index has
 * no row any more.
 */
static void
read_leaves(const RfIndex *index, RfLeaf *leaves, int n)
{
	static const RfCatalogOrder of_indexes = {
		IndexRelationId, IndexRelidIndexId, Anum_pg_index_indexrelid
	};
	static const RfCatalogOrder of_relations = {
		RelationRelationId, ClassOidIndexId, Anum_pg_class_oid
	};
	RfLeafRows	rows = {index, leaves};

	if (rf_catalog_rows(&of_indexes, &leaves->index, sizeof(RfLeaf), n,
						read_index_row, &rows) == n &&
		rf_catalog_rows(&of_relations, &leaves->index, sizeof(RfLeaf), n,
						read_class_row, &rows) == n)
		return;

	/* The catalogs are being reindexed, or indexes were dropped meanwhile. */
	for (int i = 0; i < n; i++)
	{
		HeapTuple	tuple = SearchSysCache1(INDEXRELID,
											ObjectIdGetDatum(leaves[i].index));

		leaves[i].located = false;
		leaves[i].leaf = InvalidOid;
		if (HeapTupleIsValid(tuple))
		{
			leaves[i].leaf = ((Form_pg_index) GETSTRUCT(tuple))->indrelid;
			ReleaseSysCache(tuple);
		}
	}
}

/*
 * Makes the hash table from leaf tables to places in the array.  A table that
 * is in the array twice loses its second place.
 */
static void
hash_positions(RfTable *table, RfIndex *index)
{
	rf_leafmap_hash *positions = rf_leafmap_create(table->context,
												   index->nleaves, NULL);

	for (int i = 0; i < index->nleaves; i++)
	{
		RfLeaf	   *leaf = rf_leaf_at(index, i);
		RfLeafPosition *entry;
		bool		found = true;

		if (OidIsValid(leaf->leaf))
			entry = rf_leafmap_insert(positions, leaf->leaf, &found);
		if (found)
			leaf->leaf = InvalidOid;
		else
			entry->position = i;
	}
	index->positions = positions;
	rf_session_growth++;
}

/*
 * Makes the array of leaves, with a place for each partition, none of which
 * has an index yet.  It never moves: a question to one leaf may be under way
 * while others are mapped.
 */
static void
make_places(RfTable *table, RfIndex *index, PartitionDesc partdesc)
{
	if (index->leaves != NULL)
		return;
	index->leaves = MemoryContextAllocExtended(table->context,
											   (partdesc->nparts + 1) * sizeof(RfLeaf),
											   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	index->nleaves = partdesc->nparts;
	for (int i = 0; i < partdesc->nparts; i++)
		rf_leaf_at(index, i)->leaf = partdesc->oids[i];
}

/*
 * The place of a table in the array, or NULL.  position is the likely one.
 */
static RfLeaf *
find_place(RfTable *table, RfIndex *index, Oid leaf, int position)
{
	RfLeafPosition *entry;

	if (position < index->nleaves && rf_leaf_at(index, position)->leaf == leaf)
		return rf_leaf_at(index, position);
	if (index->positions == NULL)
		hash_positions(table, index);
	entry = rf_leafmap_lookup(index->positions, leaf);
	return entry != NULL ? &index->leaves[entry->position] : NULL;
}

/*
 * Reads what the catalogs say of indexes, which are in the order of their
 * OIDs.  The result has the same order.
 */
static RfLeaf *
read_indexes(RfTable *table, const RfIndex *index, const List *oids)
{
	int			n = list_length(oids);
	RfLeaf	   *read = MemoryContextAllocExtended(CurrentMemoryContext,
												  (n + 1) * sizeof(RfLeaf),
												  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

	rf_expect_inval_records(oids);
	for (int i = 0; i < n; i++)
	{
		read[i].index = list_nth_oid(oids, i);
		read[i].inval = rf_hold_inval_record(table, read[i].index);

		/* Invalidations that come from here on count. */
		read[i].located_at = rf_changes();
	}
	read_leaves(index, read, n);
	rf_session_growth++;
	return read;
}

/*
 * Puts what was read into the places of the partitions.  Places that have an
 * index already keep what is known of it.  Indexes of what is no partition, or
 * not any more, are left out.
 */
static void
fill_places(RfTable *table, RfIndex *index, const RfLeaf *read, int n)
{
	int			next = 0;

	for (int i = 0; i < n; i++)
	{
		RfLeaf	   *place = OidIsValid(read[i].leaf) ?
		find_place(table, index, read[i].leaf, next) : NULL;

		if (place == NULL)
			continue;
		next = place - index->leaves + 1;
		if (!OidIsValid(place->index))
			*place = read[i];
	}
}

/*
 * Makes the array of leaves of indexes that only some partitions have: these
 * alone have places, in the order of their indexes' OIDs.
 */
static void
make_few_places(RfTable *table, RfIndex *index, const RfLeaf *read, int n)
{
	index->leaves = MemoryContextAllocHuge(table->context,
										   (n + 1) * sizeof(RfLeaf));
	memcpy(index->leaves, read, n * sizeof(RfLeaf));
	index->nleaves = n;
}

/*
 * Opens a partitioned table, which the caller has locked, for its partitions.
 * Core may have to put these in order, and for that evaluate functions of the
 * partition key, which may plan queries.
 */
static Relation
open_partitions(Oid relid, PartitionDesc *partdesc)
{
	bool		outer = rf_entries_in_use;
	Relation	relation;

	PG_TRY();
	{
		rf_entries_in_use = true;
		relation = table_open(relid, NoLock);
		*partdesc = RelationGetPartitionDesc(relation, true);
	}
	PG_FINALLY();
	{
		rf_entries_in_use = outer;
	}
	PG_END_TRY();
	return relation;
}

/*
 * Finds the indexes of all leaves.  The caller has locked the table.  Each
 * partition gets a place, so that digests can be asked side by side; but where
 * at most half of them have an index of their own, only these.
 */
void
rf_map_leaves(RfTable *table, RfIndex *index)
{
	List	   *children = index->own != NIL ? list_copy(index->own) :
	find_inheritance_children(index->oid, NoLock);
	int			n = list_length(children);
	RfLeaf	   *read = read_indexes(table, index, children);
	PartitionDesc partdesc;
	Relation	relation = open_partitions(table->relid, &partdesc);

	/*
	 * The index that was described may have gone, and its OID may be that of
	 * another one.  What is not located is opened, and compared.
	 */
	for (int i = 0; index->own != NIL && i < n; i++)
	{
		if (!rf_unchanged(read[i].inval, table->built_at))
			read[i].located = false;
	}

	/* The one that rf_map_few_leaves() made has not all places. */
	if (index->positions != NULL)
		rf_leafmap_destroy(index->positions);
	index->positions = NULL;
	if (index->own != NIL && n <= partdesc->nparts / 2)
		make_few_places(table, index, read, n);
	else
	{
		make_places(table, index, partdesc);
		fill_places(table, index, read, n);
	}
	index->mapped = true;
	table_close(relation, NoLock);
	pfree(read);
	list_free(children);
}

/*
 * The index of a leaf as far as it is known, or NULL.  position is the leaf's
 * likely place in the array.
 */
RfLeaf *
rf_known_leaf(RfTable *table, RfIndex *index, Oid leaf, int position)
{
	RfLeaf	   *place = index->mapped || index->positions != NULL ?
	find_place(table, index, leaf, position) : NULL;

	return place != NULL && OidIsValid(place->index) ? place : NULL;
}

/*
 * The part of rf_find_leaf() for a leaf that is not at the position, or is not
 * mapped yet.
 */
RfLeaf *
rf_search_leaf(RfTable *table, RfIndex *index, Oid leaf, int position)
{
	RfLeaf	   *known = rf_known_leaf(table, index, leaf, position);

	if (known != NULL || index->mapped)
		return known;
	rf_map_leaves(table, index);
	return rf_known_leaf(table, index, leaf, position);
}

/*
 * Are n of the partitions few?  To look one up in the catalogs costs
 * about as much as ten of all.
 */
bool
rf_are_few(int n, PartitionDesc partdesc)
{
	return n <= partdesc->nparts / FEW_IN;
}

/*
 * Has each of some tables, by number, its place in the array, with its index?
 */
bool
rf_are_mapped(const RfIndex *index, const Oid *tables, const Bitmapset *numbers)
{
	int			i = -1;

	while ((i = bms_next_member(numbers, i)) >= 0)
	{
		if (i >= index->nleaves || index->leaves[i].leaf != tables[i] ||
			!OidIsValid(index->leaves[i].index))
			return false;
	}
	return true;
}

/*
 * Takes a row of pg_index about a leaf: notes the index's OID.
 */
static void
take_index(void *arg, int i, HeapTuple row)
{
	List	  **indexes = arg;

	*indexes = lappend_oid(*indexes,
						   ((Form_pg_index) GETSTRUCT(row))->indexrelid);
}

/* Those among some indexes that belong to a partitioned index. */
typedef struct RfChildren
{
	Oid			parent;
	List	   *indexes;
} RfChildren;

/*
 * Takes a row of pg_inherits about an index.
 */
static void
take_child(void *arg, int i, HeapTuple row)
{
	RfChildren *children = arg;
	Form_pg_inherits form = (Form_pg_inherits) GETSTRUCT(row);

	if (form->inhparent == children->parent)
		children->indexes = lappend_oid(children->indexes, form->inhrelid);
}

/*
 * Finds the indexes of some leaves that belong to a partitioned index.  Both
 * lists are in the order of OIDs.
 */
static List *
find_children(Oid parent, const List *leaves)
{
	static const RfCatalogOrder of_tables = {
		IndexRelationId, IndexIndrelidIndexId, Anum_pg_index_indrelid
	};
	static const RfCatalogOrder of_children = {
		InheritsRelationId, InheritsRelidSeqnoIndexId, Anum_pg_inherits_inhrelid
	};
	List	   *indexes = NIL;
	RfChildren	children = {parent, NIL};

	(void) rf_catalog_rows(&of_tables, &lfirst_oid(list_head(leaves)),
						   sizeof(ListCell), list_length(leaves),
						   take_index, &indexes);
	if (indexes == NIL)
		return NIL;
	list_sort(indexes, list_oid_cmp);
	(void) rf_catalog_rows(&of_children, &lfirst_oid(list_head(indexes)),
						   sizeof(ListCell), list_length(indexes),
						   take_child, &children);
	return children.indexes;
}

/*
 * Finds the indexes of partitions that have not been mapped.  The caller has
 * locked the table.
 */
static void
map_few(RfTable *table, RfIndex *index, PartitionDesc partdesc,
		const Bitmapset *partitions)
{
	List	   *leaves = NIL;
	List	   *children;
	int			i = -1;

	make_places(table, index, partdesc);
	if (index->positions == NULL)
		index->positions = rf_leafmap_create(table->context, 1, NULL);
	if (!rf_are_few(index->positions->members + bms_num_members(partitions), partdesc))
		return;
	while ((i = bms_next_member(partitions, i)) >= 0)
	{
		bool		found;

		/* Were the places made with a partition that is being detached? */
		if (i >= index->nleaves || index->leaves[i].leaf != partdesc->oids[i])
			return;
		rf_leafmap_insert(index->positions, partdesc->oids[i], &found)->position = i;
		if (!found)
			leaves = lappend_oid(leaves, partdesc->oids[i]);
	}
	if (leaves == NIL)
		return;
	list_sort(leaves, list_oid_cmp);
	children = find_children(index->oid, leaves);
	fill_places(table, index, read_indexes(table, index, children),
				list_length(children));
}

/*
 * Finds the indexes of some of the table's partitions that belong to a
 * partitioned index, if these partitions are few.  Otherwise, and where one of
 * them has no such index, all are found when the first one is looked for.  So
 * what is found does not depend on how.  The caller has locked the table.
 */
void
rf_map_few_leaves(RfTable *table, RfIndex *index, PartitionDesc partdesc,
				  const Bitmapset *partitions)
{
	if (!index->mapped && index->own == NIL &&
		rf_are_few(bms_num_members(partitions), partdesc))
		map_few(table, index, partdesc, partitions);
}

/*
 * The same for the indexes that a condition asks.
 */
void
rf_map_few_asked(RfTable *table, const RfCond *cond, PartitionDesc partdesc,
				 const Bitmapset *partitions)
{
	ListCell   *cell;

	foreach(cell, cond->args)
		rf_map_few_asked(table, lfirst(cell), partdesc, partitions);
	if (cond->kind == RF_COND_PROBE && !rf_keyset_is_empty(cond->set))
		rf_map_few_leaves(table, cond->index, partdesc, partitions);
}

/*
 * Is the leaf's locator that of its index, and can the index be used?  The
 * caller has locked the index or absorbed invalidations.  If it is, this is
 * noted as true as of now: then a guard need not look at ten thousand
 * invalidation records, which are all over memory.
 */
bool
rf_leaf_is_located(RfLeaf *leaf)
{
	if (!leaf->located || leaf->located_at == rf_changes())
		return leaf->located;
	if (!rf_unchanged(leaf->inval, leaf->located_at))
		return false;
	leaf->located_at = rf_changes();
	return true;
}

/*
 * Remembers the file of an open index that was found usable.  The index was
 * opened after rf_changes() returned when.
 *
 * A cached metapage of another file is not true any more.  The change counter does not
 * tell: rolling back a transaction that has rebuilt the index does not move it.
 */
void
rf_leaf_locate(RfLeaf *leaf, Relation index, uint64 when)
{
	if (!RF_SAME_RELFILE(leaf->locator, RF_RELFILE(index)))
		leaf->validity = 0;
	leaf->located = RelationIsPermanent(index);
	leaf->locator = RF_RELFILE(index);
	leaf->located_at = when;
}
