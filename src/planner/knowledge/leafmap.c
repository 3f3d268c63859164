/*-------------------------------------------------------------------------
 *
 * leafmap.c
 *	  The index of each leaf partition, and where its file is.
 *
 * A backend that asks a thousand indexes for the first time would spend most
 * of its time on making relation cache entries.  What a probe needs of them
 * is little: that the index can be used, and the locator of its file.  Both
 * are read here for all members at once, by one scan of pg_index and one of
 * pg_class, which follow the order of OIDs and take a new start where they
 * meet too many others.
 *
 * What was read is good as a relation cache entry is: whoever changes it
 * sends an invalidation, which arrives at the latest when the index is
 * locked.  So it counts only under that lock, and only if the index's
 * invalidation record (catalog.c) says that nothing came since before the
 * catalogs were read.  Else, and for indexes that are not permanent or differ
 * from their parent in anything that matters, the relation cache is used.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
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
#include "planner/knowledge/knowledge.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* So many rows of a catalog that nobody wanted cost as much as a new start. */
#define MANY_STRANGERS	16

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

/* Takes down what a row of a catalog says of a leaf's index. */
typedef void (*RfRowReader) (const RfIndex *index, HeapTuple tuple,
							 RfLeaf *leaf);

/*
 * The next column of pg_index behind one that is a vector.  None of them is ever
 * NULL or stored in another form.
 */
static const oidvector *
next_vector(const void *vector)
{
	return (const oidvector *)
		((const char *) vector + INTALIGN(VARSIZE(vector)));
}

/*
 * A row of pg_index: which table, and can the index be used?  There may be a
 * thousand rows, so columns are not looked for by their numbers.
 */
static void
read_index_row(const RfIndex *index, HeapTuple tuple, RfLeaf *leaf)
{
	Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);
	const oidvector *collations = next_vector(&form->indkey);
	const oidvector *opclasses = next_vector(collations);

	leaf->leaf = form->indrelid;
	if (!form->indisvalid || !form->indisready || !form->indislive ||
		form->indnkeyatts != index->ncolumns)
		return;
	for (int i = 0; i < index->ncolumns; i++)
	{
		if (opclasses->values[i] != index->columns[i].opclass ||
			collations->values[i] != index->columns[i].collation)
			return;
	}
	leaf->located = true;
}

/*
 * A row of pg_class: where the index is.  Those that were found usable are
 * located only if they are permanent.
 */
static void
read_class_row(const RfIndex *index, HeapTuple tuple, RfLeaf *leaf)
{
	Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

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
 * Has the rows of a catalog read that are about leaves' indexes.  Leaves are in
 * the order of these OIDs, which the catalog has in its first column.  Returns
 * how many rows were found.
 */
static int
read_catalog(Oid catalog, Oid catalog_index, const RfIndex *index,
			 RfLeaf *leaves, int n, RfRowReader reader)
{
	Relation	relation = table_open(catalog, AccessShareLock);
	Relation	order = index_open(catalog_index, AccessShareLock);
	int			found = 0;
	int			i = 0;

	while (i < n)
	{
		ScanKeyData keys[2];
		SysScanDesc scan;
		HeapTuple	tuple = NULL;
		int			strangers = 0;

		CHECK_FOR_INTERRUPTS();
		ScanKeyInit(&keys[0], 1, BTGreaterEqualStrategyNumber, F_OIDGE,
					ObjectIdGetDatum(leaves[i].index));
		ScanKeyInit(&keys[1], 1, BTLessEqualStrategyNumber, F_OIDLE,
					ObjectIdGetDatum(leaves[n - 1].index));
		scan = systable_beginscan_ordered(relation, order, NULL, 2, keys);
		while (i < n && strangers < MANY_STRANGERS &&
			   (tuple = systable_getnext_ordered(scan,
												 ForwardScanDirection)) != NULL)
		{
			Oid			oid = *(Oid *) GETSTRUCT(tuple);

			while (i < n && leaves[i].index < oid)
				i++;
			if (i < n && leaves[i].index == oid)
			{
				reader(index, tuple, &leaves[i++]);
				found++;
				strangers = 0;
			}
			else
				strangers++;
		}
		systable_endscan_ordered(scan);
		if (tuple == NULL)
			break;
	}
	index_close(order, AccessShareLock);
	table_close(relation, AccessShareLock);
	return found;
}

/*
 * Finds tables and files of leaves' indexes in the catalogs.  Those whose files
 * cannot be told are not located, those that have no row any more have no table.
 */
static void
read_leaves(const RfIndex *index, RfLeaf *leaves, int n)
{
	int			found = 0;

	/* From here on what changes is noted. */
	for (int i = 0; i < n; i++)
		leaves[i].located_at = rf_changes();
	if (!IgnoreSystemIndexes &&
		!ReindexIsProcessingIndex(IndexRelidIndexId) &&
		!ReindexIsProcessingIndex(ClassOidIndexId))
		found = read_catalog(IndexRelationId, IndexRelidIndexId, index,
							 leaves, n, read_index_row);
	if (found > 0 &&
		read_catalog(RelationRelationId, ClassOidIndexId, index,
					 leaves, n, read_class_row) < n)
		found = 0;
	if (found == n)
		return;

	/* Catalogs in repair, or indexes dropped meanwhile. */
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
 * Makes the map from leaf tables to places in the array, and takes those out of
 * the array that are there twice.
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
	rf_tables_grew();
}

/*
 * Puts the leaves, which are in the order of their indexes, into the order in
 * which planning comes to them, that of the table's partitions.  Those that are
 * no partitions (any more) come last.
 */
static void
reorder_leaves(RfTable *table, RfIndex *index, PartitionDesc partdesc)
{
	RfLeaf	   *old = index->leaves;
	int			nold = index->nleaves;
	int			n = 0;
	RfLeaf	   *leaves = MemoryContextAllocHuge(table->context,
												(nold + 1) * sizeof(RfLeaf));

	map_positions(table, index);
	for (int i = 0; i < partdesc->nparts + nold; i++)
	{
		Oid			leaf = i < partdesc->nparts ?
		partdesc->oids[i] : old[i - partdesc->nparts].leaf;
		RfLeafPosition *entry = OidIsValid(leaf) ?
		rf_leafmap_lookup(index->positions, leaf) : NULL;

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
 * Makes the array of leaves, members of the table in the order in which
 * planning comes to them.  Children that are partitioned themselves are in it,
 * too; nobody will ask for them.
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
	if (i < index->nleaves)
		reorder_leaves(table, index, partdesc);
	table_close(relation, NoLock);
}

/*
 * Finds all leaves' indexes.  The table is locked.
 */
void
rf_map_leaves(RfTable *table, RfIndex *index)
{
	List	   *children = find_inheritance_children(index->oid, NoLock);
	int			n = list_length(children);

	/* Should an error end this, the next attempt begins anew. */
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
	order_leaves(table, index);
	list_free(children);
	index->mapped = true;
}

/*
 * rf_find_leaf() where the leaf is not at the position, or nothing is known yet.
 */
RfLeaf *
rf_search_leaf(RfTable *table, RfIndex *index, Oid leaf, int position)
{
	RfLeafPosition *entry;

	if (!index->mapped)
		rf_map_leaves(table, index);
	if (position < index->nleaves && index->leaves[position].leaf == leaf)
		return &index->leaves[position];
	if (index->positions == NULL)
		map_positions(table, index);
	entry = rf_leafmap_lookup(index->positions, leaf);
	return entry != NULL ? &index->leaves[entry->position] : NULL;
}

/*
 * Is the index, which the caller has locked, where the leaf's locator says,
 * and can it be used?  If so, that is now known of a later time; invalidation
 * records lie all over memory, so a guard would rather not look at ten
 * thousand.
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
 * Takes down where an index is that was opened after rf_changes() said when,
 * and found usable.
 */
void
rf_leaf_locate(RfLeaf *leaf, Relation index, uint64 when)
{
	leaf->located = RelationIsPermanent(index);
	leaf->locator = RF_RELFILE(index);
	leaf->located_at = when;
}
