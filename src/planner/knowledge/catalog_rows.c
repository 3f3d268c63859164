/*-------------------------------------------------------------------------
 *
 * catalog_rows.c
 *	  Reading rows of catalogs about a thousand relations at once.
 *
 * To look up each relation in a syscache takes several times as long as one scan of
 * the catalog in the order of OIDs, if most of the rows between the first and the
 * last are wanted.  After too many other rows in a row, a new scan starts
 * behind them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/index.h"
#include "miscadmin.h"
#include "planner/knowledge/catalog_rows.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"

/* Reading this many other rows costs as much as a new scan. */
#define MAX_NONMATCHING_ROWS	16

/* What is read: n OIDs, the first one at first, the next one stride bytes behind it. */
typedef struct RfItems
{
	const char *first;
	Size		stride;
	int			n;
} RfItems;

/*
 * The OID of item number i.
 */
static inline Oid
item_oid(const RfItems *items, int i)
{
	return *(const Oid *) (items->first + i * items->stride);
}

/*
 * Scans the catalog from item *next on, as long as there are not too many other rows.
 * Moves *next to the first item that a further scan has to begin with, or to the
 * number of items if there is no need for one.  Returns how many rows were found.
 */
static int
scan_rows(Relation catalog, Relation index, AttrNumber column,
		  const RfItems *items, int *next, RfTakeRow take, void *arg)
{
	ScanKeyData keys[2];
	SysScanDesc scan;
	int			strangers = 0;
	int			found = 0;
	int			i = *next;

	ScanKeyInit(&keys[0], column, BTGreaterEqualStrategyNumber, F_OIDGE,
				ObjectIdGetDatum(item_oid(items, i)));
	ScanKeyInit(&keys[1], column, BTLessEqualStrategyNumber, F_OIDLE,
				ObjectIdGetDatum(item_oid(items, items->n - 1)));
	scan = systable_beginscan_ordered(catalog, index, NULL, 2, keys);
	while (strangers < MAX_NONMATCHING_ROWS)
	{
		HeapTuple	row = systable_getnext_ordered(scan, ForwardScanDirection);
		Oid			oid;

		if (row == NULL)
		{
			i = items->n;
			break;
		}
		oid = ((const Oid *) GETSTRUCT(row))[column - 1];
		while (item_oid(items, i) < oid)
			i++;
		strangers++;
		if (item_oid(items, i) == oid)
		{
			take(arg, i, row);
			found++;
			strangers = 0;
		}
	}
	systable_endscan_ordered(scan);
	*next = i;
	return found;
}

/*
 * Calls take(arg, i, row) for each row that has the OID of item i, of n, in the
 * order's column.  OIDs ascend; the first one is at first, and each other one
 * stride bytes behind the one before.  Returns how many rows were found: none while the
 * catalog's index cannot be used.
 */
int
rf_catalog_rows(const RfCatalogOrder *order, const Oid *first, Size stride,
				int n, RfTakeRow take, void *arg)
{
	RfItems		items = {(const char *) first, stride, n};
	Relation	catalog;
	Relation	index;
	int			found = 0;

	if (IgnoreSystemIndexes || ReindexIsProcessingIndex(order->index))
		return 0;
	catalog = table_open(order->catalog, AccessShareLock);
	index = index_open(order->index, AccessShareLock);
	for (int next = 0; next < n;)
	{
		CHECK_FOR_INTERRUPTS();
		found += scan_rows(catalog, index, order->column, &items, &next, take,
						   arg);
	}
	index_close(index, AccessShareLock);
	table_close(catalog, AccessShareLock);
	return found;
}
