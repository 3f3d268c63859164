/*-------------------------------------------------------------------------
 *
 * rfshards.c
 *	  Tables whose rows are kept by Citus, in other tables.
 *
 * Citus leaves a distributed table empty where it was created.  The rows are in
 * shards, tables of other names, most of them on other servers.  They have the
 * same indexes, and queries skip there.  But what a function says of the empty
 * table's index is easily taken for the whole.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/pg_class_d.h"
#include "catalog/pg_namespace_d.h"
#include "catalog/pg_type_d.h"
#include "commands/extension.h"
#include "functions/rffuncs.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* Citus' list of its tables, in pg_catalog, and the column that names them. */
#define CITUS_TABLES	"pg_dist_partition"
#define CITUS_TABLE		"logicalrelid"

/*
 * Does Citus list a table?  Only a superuser can put a table into pg_catalog;
 * one of that name in another schema does not count.  Takes and releases a lock
 * on the list.
 */
static bool
is_distributed(Oid table)
{
	Oid			list_oid = get_relname_relid(CITUS_TABLES, PG_CATALOG_NAMESPACE);
	AttrNumber	column;
	Relation	list;
	ScanKeyData key;
	SysScanDesc scan;
	bool		found;

	if (!OidIsValid(list_oid) || !OidIsValid(get_extension_oid("citus", true)))
		return false;
	column = get_attnum(list_oid, CITUS_TABLE);
	if (get_rel_relkind(list_oid) != RELKIND_RELATION ||
		column == InvalidAttrNumber ||
		get_atttype(list_oid, column) != REGCLASSOID)
		return false;
	list = try_table_open(list_oid, AccessShareLock);
	if (list == NULL)
		return false;
	ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(table));
	scan = systable_beginscan(list, InvalidOid, false, NULL, 1, &key);
	found = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	table_close(list, AccessShareLock);
	return found;
}

/*
 * Tells the user that what follows is not about a table's rows, if they are in
 * shards.
 */
void
rf_mention_shards(Relation table)
{
	if (is_distributed(RelationGetRelid(table)))
		ereport(NOTICE,
				(errmsg("table \"%s\" is empty here, because Citus keeps its rows in shards",
						RelationGetRelationName(table)),
				 errhint("Ask the indexes of the shards, by run_command_on_shards().")));
}
