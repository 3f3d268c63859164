/*-------------------------------------------------------------------------
 *
 * indexed_tables.c
 *	  Which tables of the database have a rangefilter index?
 *
 * To look for indexes that only partitions have (own_index.c), a session would
 * have to read pg_index for each partition, and most often in vain: most
 * partitioned tables have none.  Indexes depend on their operator classes,
 * and those of the access method belong to the extension, so pg_depend has a
 * row for each such index.  (Core's operator classes are pinned, and so are not
 * in pg_depend.)  One scan of a part of pg_depend finds all rangefilter indexes of
 * the database, and one of pg_index their tables.
 *
 * The list is right as of the invalidations seen when it was read.  CREATE
 * INDEX sends one for the table.  So as to a partitioned table, the list
 * remains right until one comes for a partition of it.  An index that
 * is missing in the list only means that its partition is scanned.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "lib/qunique.h"
#include "planner/knowledge/catalog_rows.h"
#include "planner/knowledge/knowledge.h"
#include "stats/session.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/*
 * That many indexes are read for a table with few partitions.  For others it is as many as
 * there are partitions: with more it would take longer than to look at the partitions.
 */
#define SOME_INDEXES	64

/* An index that was found, and its table; InvalidOid: not known. */
typedef struct RfIndexed
{
	Oid			index;
	Oid			table;
} RfIndexed;

/* The list. */
static Oid *listed = NULL;		/* tables, in the order of their OIDs */
static int	nlisted = 0;
static int	more_than = 0;		/* there is no list, since there are more
								 * indexes than this; 0: there is one */
static bool is_read = false;	/* one of both is known, as of ... */
static uint64 read_at = 0;		/* ... rf_changes() then */

/*
 * Sets the least and the greatest OID of the access method's operator classes.  Returns
 * false if it has none.
 */
static bool
find_opclasses(Oid am, Oid *least, Oid *greatest)
{
	CatCList   *opclasses = SearchSysCacheList1(CLAAMNAMENSP,
												ObjectIdGetDatum(am));
	int			n = opclasses->n_members;

	*least = OID_MAX;
	*greatest = InvalidOid;
	for (int i = 0; i < n; i++)
	{
		Oid			oid = ((Form_pg_opclass) GETSTRUCT(&opclasses->members[i]->tuple))->oid;

		*least = Min(*least, oid);
		*greatest = Max(*greatest, oid);
	}
	ReleaseSysCacheList(opclasses);
	return n > 0;
}

/*
 * Finds the indexes that have operator classes with OIDs between least and greatest, and
 * perhaps other relations.  Returns how many, in the order of their OIDs, or "most" + 1 if
 * there are more than "most".  There is room for "most".
 */
static int
find_indexes(Oid least, Oid greatest, RfIndexed *found, int most)
{
	Relation	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyData keys[3];
	SysScanDesc scan;
	HeapTuple	row;
	int			n = 0;

	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(OperatorClassRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTGreaterEqualStrategyNumber,
				F_OIDGE, ObjectIdGetDatum(least));
	ScanKeyInit(&keys[2], Anum_pg_depend_refobjid, BTLessEqualStrategyNumber,
				F_OIDLE, ObjectIdGetDatum(greatest));
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, 3, keys);
	while (n <= most && HeapTupleIsValid(row = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(row);

		if (form->classid != RelationRelationId)
			continue;
		if (n < most)
		{
			found[n].index = form->objid;
			found[n].table = InvalidOid;
		}
		n++;
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	if (n > most)
		return n;

	/* An index on several columns may have several operator classes. */
	qsort(found, n, sizeof(RfIndexed), oid_cmp);
	return qunique(found, n, sizeof(RfIndexed), oid_cmp);
}

/*
 * RfTakeRow: notes the table of index number i.
 */
static void
take_table(void *arg, int i, HeapTuple row)
{
	((RfIndexed *) arg)[i].table = ((Form_pg_index) GETSTRUCT(row))->indrelid;
}

/*
 * Makes these n tables the list.
 */
static void
set_list(RfIndexed *found, int n)
{
	Oid		   *list = MemoryContextAllocHuge(rf_session_context(),
											  (n + 1) * sizeof(Oid));

	for (int i = 0; i < n; i++)
		list[i] = found[i].table;
	qsort(list, n, sizeof(Oid), oid_cmp);
	if (listed != NULL)
		pfree(listed);
	listed = list;
	nlisted = qunique(list, n, sizeof(Oid), oid_cmp);
}

/*
 * Reads the list, or notes that there are more than "most" indexes.
 */
static void
read_list(int most)
{
	static const RfCatalogOrder of_indexes = {
		IndexRelationId, IndexRelidIndexId, Anum_pg_index_indexrelid
	};
	uint64		now = rf_changes();
	Oid			am = get_index_am_oid("rangefilter", true);
	RfIndexed  *found = palloc(most * sizeof(RfIndexed));
	Oid			least;
	Oid			greatest;
	int			n = 0;

	is_read = false;
	if (OidIsValid(am) && find_opclasses(am, &least, &greatest))
		n = find_indexes(least, greatest, found, most);

	/* Some are not found while the catalog's index cannot be used. */
	if (n > most ||
		(n > 0 && rf_catalog_rows(&of_indexes, &found->index, sizeof(RfIndexed),
								  n, take_table, found) < n))
		more_than = most;
	else
	{
		set_list(found, n);
		more_than = 0;
	}
	pfree(found);
	is_read = true;
	read_at = now;
}

/*
 * The member of a table that is this leaf, or NULL.
 */
const RfMember *
rf_find_member(const RfTable *table, Oid leaf)
{
	return table->nmembers == 0 ? NULL :
		bsearch(&leaf, table->members, table->nmembers, sizeof(RfMember), oid_cmp);
}

/*
 * Has no invalidation come for one of a table's members since the list was read?  Returns
 * false also if too many came to know.
 */
static bool
list_is_current(const RfTable *table)
{
	uint64		now = rf_changes();

	if (!is_read || now - read_at > RF_RECENT_CHANGES)
		return false;
	for (uint64 seen = read_at; seen < now; seen++)
	{
		Oid			changed = rf_recent_change(seen + 1);

		if (!OidIsValid(changed) || rf_find_member(table, changed) != NULL)
			return false;
	}
	return true;
}

/*
 * Copies those of a table's members that may have a rangefilter index to "indexed", which
 * has room for all, in their order.  These are all if it would take longer to find out, or if
 * the table has a partitioned index: then most of them have one.  Returns how many
 * they are.  The table is locked.
 */
int
rf_indexed_members(const RfTable *table, RfMember *indexed)
{
	int			most = Max(table->nmembers, SOME_INDEXES);
	bool		all = table->npartitioned > 0;
	int			next = 0;
	int			n = 0;

	if (!all && (!list_is_current(table) || (more_than > 0 && more_than < most)))
		read_list(most);
	all = all || more_than > 0;
	for (int i = 0; i < table->nmembers; i++)
	{
		const RfMember *member = &table->members[i];

		while (!all && next < nlisted && listed[next] < member->leaf)
			next++;
		if (all || (next < nlisted && listed[next] == member->leaf))
			indexed[n++] = *member;
	}
	return n;
}
