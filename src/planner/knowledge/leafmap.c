/*-------------------------------------------------------------------------
 *
 * leafmap.c
 *	  The index of each leaf partition, and where its file is.
 *
 * A backend that asks a thousand indexes for the first time would spend most
 * of its time on making relation cache entries.  A probe needs only two facts:
 * that the index can be used, and the locator of its file.  Both are read here
 * for all members at once, by one scan of pg_index and one of pg_class
 * (catalog_rows.c).
 *
 * What was read is as reliable as a relation cache entry: each change sends an
 * invalidation, which arrives at the latest when the index is locked.  So what
 * was read is used only under that lock or after invalidations were absorbed,
 * and only if the index's invalidation record (invalidation.c) has noted
 * nothing since before the catalogs were read.  Otherwise the relation cache
 * is used.  It is also used for indexes that are not permanent, or that have
 * other operator classes or collations than their parent.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "partitioning/partdesc.h"
#include "planner/knowledge/catalog_rows.h"
#include "planner/knowledge/knowledge.h"
#include "stats/session.h"
#include "utils/rel.h"
#include "utils/syscache.h"

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
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

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
	if (!form->indisvalid || !form->indisready || !form->indislive ||
		form->indnkeyatts != index->ncolumns)
		return;
	for (int column = 0; column < index->ncolumns; column++)
	{
		if (opclasses->values[column] != index->columns[column].opclass ||
			collations->values[column] != index->columns[column].collation)
			return;
	}
	leaf->located = true;
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
	int			found = 0;

	/* Invalidations that come from here on count. */
	for (int i = 0; i < n; i++)
		leaves[i].located_at = rf_changes();
	if (!IgnoreSystemIndexes &&
		!ReindexIsProcessingIndex(IndexRelidIndexId) &&
		!ReindexIsProcessingIndex(ClassOidIndexId))
		found = rf_catalog_rows(&of_indexes, &leaves->index, sizeof(RfLeaf), n,
								read_index_row, &rows);
	if (found > 0 &&
		rf_catalog_rows(&of_relations, &leaves->index, sizeof(RfLeaf), n,
						read_class_row, &rows) < n)
		found = 0;
	if (found == n)
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
 * Makes the map from leaf tables to places in the array.  A table that is in
 * the array twice loses its second place.
 */
static void
map_positions(RfTable *table, RfIndex *index)
{
	rf_leafmap_hash *positions = rf_leafmap_create(table->context,
												   index->nleaves, NULL);

	for (int i = 0; i < index->nleaves; i++)
	{
		RfLeafPosition *entry;
		bool		found = true;

		if (OidIsValid(index->leaves[i].leaf))
			entry = rf_leafmap_insert(positions, index->leaves[i].leaf,
									  &found);
		if (found)
			index->leaves[i].leaf = InvalidOid;
		else
			entry->position = i;
	}
	index->positions = positions;
	rf_session_growth++;
}

/*
 * Puts the leaves, which are in the order of their indexes' OIDs, into the
 * order of the table's partitions, in which planning asks them.  Leaves that
 * are not partitions, or not any more, come last.  If most partitions have an index,
 * the others get a place, too, so that digests can be asked side by side.
 */
static void
reorder_leaves(RfTable *table, RfIndex *index, PartitionDesc partdesc)
{
	RfLeaf	   *old = index->leaves;
	int			nold = index->nleaves;
	bool		with_others = nold > partdesc->nparts / 2;
	int			n = 0;
	RfLeaf	   *leaves = MemoryContextAllocHuge(table->context,
												(nold + 1 + (with_others ? partdesc->nparts : 0)) *
												sizeof(RfLeaf));

	map_positions(table, index);
	for (int i = 0; i < partdesc->nparts + nold; i++)
	{
		Oid			leaf = i < partdesc->nparts ?
		partdesc->oids[i] : old[i - partdesc->nparts].leaf;
		RfLeafPosition *entry = OidIsValid(leaf) ?
		rf_leafmap_lookup(index->positions, leaf) : NULL;

		if (entry == NULL && with_others && i < partdesc->nparts)
		{
			memset(&leaves[n], 0, sizeof(RfLeaf));
			leaves[n++].leaf = leaf;
		}
		if (entry == NULL)
			continue;
		leaves[n] = old[entry->position];
		old[entry->position].leaf = InvalidOid;
		entry->position = n++;
	}
	index->leaves = leaves;
	index->nleaves = n;
	pfree(old);
}

/*
 * Puts the array of leaves into the order of the table's partitions, if it is
 * not.  Children that are partitioned themselves are in the array, too, but
 * are never asked.
 */
static void
order_leaves(RfTable *table, RfIndex *index)
{
	Relation	relation = table_open(table->relid, NoLock);
	PartitionDesc partdesc = RelationGetPartitionDesc(relation, true);
	int			i = 0;

	while (i < index->nleaves && i < partdesc->nparts &&
		   index->leaves[i].leaf == partdesc->oids[i])
		i++;
	if (i < index->nleaves || i < partdesc->nparts)
		reorder_leaves(table, index, partdesc);
	table_close(relation, NoLock);
}

/*
 * Finds the indexes of all leaves, and makes the array of leaves.  The caller
 * has locked the table.
 */
void
rf_map_leaves(RfTable *table, RfIndex *index)
{
	List	   *children = index->own != NIL ? list_copy(index->own) :
	find_inheritance_children(index->oid, NoLock);
	int			n = list_length(children);

	/* After an error the next attempt begins anew. */
	if (index->leaves != NULL)
		pfree(index->leaves);
	index->leaves = NULL;
	index->leaves = MemoryContextAllocExtended(table->context,
											   (n + 1) * sizeof(RfLeaf),
											   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	index->nleaves = n;
	index->positions = NULL;
	rf_expect_inval_records(children);
	for (int i = 0; i < n; i++)
	{
		index->leaves[i].index = list_nth_oid(children, i);
		index->leaves[i].inval =
			rf_hold_inval_record(table, index->leaves[i].index);
	}
	read_leaves(index, index->leaves, n);

	/*
	 * The index that was described may have gone, and its OID may be that of
	 * another one.  What is not located is opened, and compared.
	 */
	for (int i = 0; index->own != NIL && i < n; i++)
	{
		if (!rf_unchanged(index->leaves[i].inval, table->built_at))
			index->leaves[i].located = false;
	}
	order_leaves(table, index);
	list_free(children);
	index->mapped = true;
}

/*
 * The part of rf_find_leaf() for a leaf that is not at the position, or leaves
 * that are not mapped yet.
 */
RfLeaf *
rf_search_leaf(RfTable *table, RfIndex *index, Oid leaf, int position)
{
	RfLeafPosition *entry;

	if (!index->mapped)
		rf_map_leaves(table, index);
	if (position < index->nleaves && index->leaves[position].leaf == leaf)
		return OidIsValid(index->leaves[position].index) ?
			&index->leaves[position] : NULL;
	if (index->positions == NULL)
		map_positions(table, index);
	entry = rf_leafmap_lookup(index->positions, leaf);
	return entry != NULL ? &index->leaves[entry->position] : NULL;
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
