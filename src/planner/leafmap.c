/*-------------------------------------------------------------------------
 *
 * leafmap.c
 *	  The index of each leaf partition, and where its file is.
 *
 * A backend that asks a thousand indexes for the first time would spend most of
 * its time on making relation cache entries.  What a probe needs of them is
 * little: that the index can be used, and the locator of its file.  Both are read
 * here for all members at once, by one scan of pg_index and one of pg_class,
 * which follow the order of OIDs and take a new start where they meet too many
 * others.
 *
 * What was read is good as a relation cache entry is: whoever changes it sends
 * an invalidation, which arrives at the latest when the index is locked.  So it
 * counts only under that lock, and only if the index's track (catalog.c) says
 * that nothing came since before the catalogs were read.  Else, and for indexes
 * that are not permanent or differ from their parent in anything that matters,
 * the relation cache is used.
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
#include "planner/planner.h"
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
 * A row of pg_index: which table, and can the index be used?
 */
static void
read_index_row(const RfIndex *index, HeapTuple tuple, RfLeaf *leaf)
{
	Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);
	oidvector  *opclasses;
	oidvector  *collations;
	bool		isnull;

	leaf->leaf = form->indrelid;
	if (!form->indisvalid || !form->indisready || !form->indislive ||
		form->indnkeyatts != index->ncolumns)
		return;
	opclasses = (oidvector *)
		DatumGetPointer(SysCacheGetAttr(INDEXRELID, tuple,
										Anum_pg_index_indclass, &isnull));
	collations = (oidvector *)
		DatumGetPointer(SysCacheGetAttr(INDEXRELID, tuple,
										Anum_pg_index_indcollation, &isnull));
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
 * Puts a leaf behind those the index has already.
 */
static void
append_leaf(RfIndex *index, RfLeaf *leaf)
{
	RfLeafPosition *entry;
	bool		found;

	if (!OidIsValid(leaf->leaf))
		return;
	entry = rf_leafmap_insert(index->positions, leaf->leaf, &found);
	if (found)
		return;
	entry->position = index->nleaves;
	index->leaves[index->nleaves++] = *leaf;
}

/*
 * Makes the array of leaves, members of the table in the order in which
 * planning comes to them.  Children that are partitioned themselves are in it,
 * too; nobody will ask for them.
 */
static void
order_leaves(RfTable *table, RfIndex *index, RfLeaf *leaves, int n)
{
	Relation	relation = table_open(table->relid, NoLock);
	PartitionDesc partdesc = RelationGetPartitionDesc(relation, true);
	struct rf_leafmap_hash *found;

	index->nleaves = 0;
	index->leaves = MemoryContextAllocHuge(table->context,
										   (n + 1) * sizeof(RfLeaf));
	index->positions = rf_leafmap_create(table->context, n, NULL);
	found = rf_leafmap_create(CurrentMemoryContext, n, NULL);
	for (int i = 0; i < n; i++)
	{
		bool		known;

		rf_leafmap_insert(found, leaves[i].leaf, &known)->position = i;
	}
	for (int i = 0; i < partdesc->nparts; i++)
	{
		RfLeafPosition *entry = rf_leafmap_lookup(found, partdesc->oids[i]);

		if (entry != NULL)
			append_leaf(index, &leaves[entry->position]);
	}
	for (int i = 0; i < n; i++)
		append_leaf(index, &leaves[i]);
	rf_leafmap_destroy(found);
	table_close(relation, NoLock);
}

/*
 * Finds all leaves' indexes.  The table is locked.
 */
static void
map_leaves(RfTable *table, RfIndex *index)
{
	List	   *children = find_inheritance_children(index->oid, NoLock);
	int			n = list_length(children);
	RfLeaf	   *leaves = MemoryContextAllocHuge(CurrentMemoryContext,
												(n + 1) * sizeof(RfLeaf));

	memset(leaves, 0, (n + 1) * sizeof(RfLeaf));
	for (int i = 0; i < n; i++)
	{
		leaves[i].index = list_nth_oid(children, i);
		leaves[i].track = rf_track(leaves[i].index);
	}
	read_leaves(index, leaves, n);
	order_leaves(table, index, leaves, n);
	pfree(leaves);
	list_free(children);
	index->mapped = true;
}

/*
 * The index of a leaf partition that belongs to a partitioned index, or NULL.
 * position is where it is likely to be.
 */
RfLeaf *
rf_find_leaf(RfTable *table, RfIndex *index, Oid leaf, int position)
{
	RfLeafPosition *entry;

	if (!index->mapped)
		map_leaves(table, index);
	if (position < index->nleaves && index->leaves[position].leaf == leaf)
		return &index->leaves[position];
	entry = rf_leafmap_lookup(index->positions, leaf);
	return entry != NULL ? &index->leaves[entry->position] : NULL;
}

/*
 * Is the index, which the caller has locked, where the leaf's locator says, and
 * can it be used?  If so, that is now known of a later time; tracks lie all over
 * memory, so a guard would rather not look at ten thousand.
 */
bool
rf_leaf_is_located(RfLeaf *leaf)
{
	if (!leaf->located || leaf->located_at == rf_changes())
		return leaf->located;
	if (!rf_unchanged(leaf->track, leaf->located_at))
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

/*
 * Throws away all copies of a table's indexes.
 */
void
rf_forget_copies(RfTable *table)
{
	for (int i = 0; i < table->nindexes; i++)
	{
		RfIndex    *index = &table->indexes[i];

		for (int j = 0; index->mapped && j < index->nleaves; j++)
			rf_forget_copy(table, &index->leaves[j]);
	}
	table->has_copies = false;
}
