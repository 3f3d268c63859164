/*-------------------------------------------------------------------------
 *
 * toast.c
 *	  Fetching an out-of-line value that may be gone.
 *
 * Core's way to fetch a value reports one that is gone as damage.  Here it is
 * an answer.
 *
 * What is expected of core: a value's chunks are rows (value, number, bytes) of
 * its TOAST table, numbered from 0, and put together they are what follows the
 * header of the value in line.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/genam.h"
#include "access/heaptoast.h"
#include "access/table.h"
#include "access/toast_internals.h"
#include "compat.h"
#include "core/core.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/*
 * Puts the chunks of a value behind each other.  The index is that of the TOAST
 * table.  False if they are not all there.  All of them count that VACUUM has not
 * removed: that nobody sees them any more is no reason to do without.
 */
static bool
collect_chunks(Relation table, Relation index, Oid value, char *data, Size size)
{
	TupleDesc	desc = RelationGetDescr(table);
	Size		done = 0;
	int32		next = 0;
	bool		whole = true;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(value));
	scan = systable_beginscan_ordered(table, index, SnapshotAny, 1, &key);
	while (whole &&
		   (tuple = systable_getnext_ordered(scan, ForwardScanDirection)) != NULL)
	{
		bool		isnull;
		int32		number = DatumGetInt32(fastgetattr(tuple, 2, desc, &isnull));
		struct varlena *chunk = (struct varlena *)
		DatumGetPointer(fastgetattr(tuple, 3, desc, &isnull));
		Size		len = VARSIZE_ANY_EXHDR(chunk);

		whole = number == next && len <= size - done;
		if (whole)
			memcpy(data + done, VARDATA_ANY(chunk), len);
		done += len;
		next++;
	}
	systable_endscan_ordered(scan);
	return whole && done == size;
}

/*
 * Returns the value that an on-disk TOAST pointer stands for, in line, perhaps
 * compressed; NULL if it is gone.  Takes and releases a lock on the TOAST
 * table.
 */
struct varlena *
rf_core_fetch_value(struct varlena *pointer)
{
	struct varatt_external external;
	struct varlena *result;
	Relation	table;
	Relation   *indexes;
	int			nindexes;
	int			valid;
	Size		size;
	bool		found;

	VARATT_EXTERNAL_GET_POINTER(external, pointer);
	size = VARATT_EXTERNAL_GET_EXTSIZE(external);
	result = palloc(size + VARHDRSZ);
	if (VARATT_EXTERNAL_IS_COMPRESSED(external))
		SET_VARSIZE_COMPRESSED(result, size + VARHDRSZ);
	else
		SET_VARSIZE(result, size + VARHDRSZ);

	table = table_open(external.va_toastrelid, AccessShareLock);
	valid = toast_open_indexes(table, AccessShareLock, &indexes, &nindexes);
	found = collect_chunks(table, indexes[valid], external.va_valueid,
						   VARDATA(result), size);
	toast_close_indexes(indexes, nindexes, AccessShareLock);
	table_close(table, AccessShareLock);
	return found ? result : NULL;
}
