/*-------------------------------------------------------------------------
 *
 * catalog_rows.h
 *	  Reading rows of catalogs about a thousand relations at once.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_CATALOG_ROWS_H
#define RANGEFILTER_CATALOG_ROWS_H

#include "postgres.h"

#include "access/attnum.h"
#include "access/htup.h"
#include "catalog/pg_index.h"

/* A catalog, its index on a column, and this column: one of the first, all OIDs. */
typedef struct RfCatalogOrder
{
	Oid			catalog;
	Oid			index;
	AttrNumber	column;
} RfCatalogOrder;

/* Takes a row whose column has the OID of item number i. */
typedef void (*RfTakeRow) (void *arg, int i, HeapTuple row);

extern int	rf_catalog_rows(const RfCatalogOrder *order, const Oid *first,
							Size stride, int n, RfTakeRow take, void *arg);

/*
 * Collations of an index's key columns.  They point into the row of pg_index, where indcollation
 * follows indkey.  Neither is ever NULL, compressed or toasted.
 */
static inline const oidvector *
rf_row_collations(Form_pg_index form)
{
	return (const oidvector *)
		((const char *) &form->indkey + INTALIGN(VARSIZE(&form->indkey)));
}

/*
 * Operator classes of an index's key columns.  As the collations, they point into the row.
 */
static inline const oidvector *
rf_row_opclasses(Form_pg_index form)
{
	const oidvector *collations = rf_row_collations(form);

	return (const oidvector *)
		((const char *) collations + INTALIGN(VARSIZE(collations)));
}

#endif							/* RANGEFILTER_CATALOG_ROWS_H */
