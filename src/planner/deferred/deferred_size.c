/*-------------------------------------------------------------------------
 *
 * deferred_size.c
 *	  How large all partitions of a table together are.
 *
 * Core adds up the sizes of members that it has looked up.  Of a deferred table it
 * looks up one.  So the sizes of all are read from pg_class, by one scan, and kept for a
 * while: they are estimates.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "partitioning/partdesc.h"
#include "planner/deferred/deferred.h"
#include "planner/knowledge/catalog_rows.h"
#include "stats/session.h"
#include "utils/hsearch.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* Sizes are read again after this time, in milliseconds: partitions grow. */
#define RF_SIZES_EXPIRE	60000

/* How many tables' sizes a session remembers. */
#define RF_MAX_SIZES	256

/* What is remembered of a table. */
typedef struct RfTableSize
{
	Oid			relid;			/* key of the hash table: must be first */
	int			nmembers;		/* partitions at all levels, when it was read */
	TimestampTz read_at;
	int			nleaves;
	double		pages;
	double		tuples;
} RfTableSize;

/* Sizes being added up. */
typedef struct RfSizeSum
{
	int			nleaves;
	int			nknown;			/* leaves with a number of rows */
	double		pages;
	double		tuples;
} RfSizeSum;

static HTAB *sizes = NULL;

/*
 * rf_catalog_rows() callback: adds a row of pg_class.
 */
static void
add_row(void *arg, int i, HeapTuple row)
{
	const		FormData_pg_class *form = (Form_pg_class) GETSTRUCT(row);
	RfSizeSum  *sum = arg;

	if (form->relkind == RELKIND_PARTITIONED_TABLE)
		return;
	sum->nleaves++;
	sum->pages += Max(form->relpages, 1);
	if (form->reltuples >= 0)
	{
		sum->nknown++;
		sum->tuples += form->reltuples;
	}
}

/*
 * qsort() callback
 */
static int
compare_oids(const void *a, const void *b)
{
	Oid			x = *(const Oid *) a;
	Oid			y = *(const Oid *) b;

	return (x > y) - (x < y);
}

/*
 * The OIDs of all partitions of a table, whose descriptor is given, at all levels, in order.
 * *n is how many there are.
 */
static Oid *
partition_oids(Oid relid, PartitionDesc partdesc, int *n)
{
	Oid		   *oids;

	if (memchr(partdesc->is_leaf, false, partdesc->nparts) == NULL)
	{
		*n = partdesc->nparts;
		oids = palloc(*n * sizeof(Oid));
		memcpy(oids, partdesc->oids, *n * sizeof(Oid));
	}
	else
	{
		List	   *members = find_all_inheritors(relid, NoLock, NULL);

		*n = list_length(members);
		oids = palloc(*n * sizeof(Oid));
		for (int i = 0; i < *n; i++)
			oids[i] = list_nth_oid(members, i);
	}
	qsort(oids, *n, sizeof(Oid), compare_oids);
	return oids;
}

/*
 * Reads the sizes of a table's partitions.  Those that were never counted are taken to be
 * like the others.
 */
static void
read_size(RfTableSize *size, PartitionDesc partdesc)
{
	const RfCatalogOrder by_oid = {RelationRelationId, ClassOidIndexId, Anum_pg_class_oid};
	RfSizeSum	sum = {0};
	int			n;
	Oid		   *oids = partition_oids(size->relid, partdesc, &n);

	size->read_at = 0;
	(void) rf_catalog_rows(&by_oid, oids, sizeof(Oid), n, add_row, &sum);
	pfree(oids);
	if (sum.nknown > 0)
		sum.tuples *= (double) sum.nleaves / sum.nknown;
	size->nleaves = sum.nleaves;
	size->pages = sum.pages;
	size->tuples = sum.tuples;
	size->nmembers = partdesc->nparts;
	size->read_at = GetCurrentTimestamp();
}

/*
 * The session's entry for a table.
 */
static RfTableSize *
find_size(Oid relid)
{
	RfTableSize *size;
	bool		found;

	if (sizes != NULL && hash_get_num_entries(sizes) >= RF_MAX_SIZES)
	{
		hash_destroy(sizes);
		sizes = NULL;
	}
	if (sizes == NULL)
	{
		HASHCTL		control = {.keysize = sizeof(Oid),.entrysize = sizeof(RfTableSize),
		.hcxt = rf_session_context()};

		sizes = hash_create("rangefilter sizes of tables", 32, &control,
							HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	size = hash_search(sizes, &relid, HASH_ENTER, &found);
	if (!found)
		size->read_at = 0;
	return size;
}

/*
 * Fills in how large all leaf partitions of a table together are.  Of those that partition
 * pruning has left, only their share is known.
 */
void
rf_deferred_size(RfDeferred *deferred)
{
	RfTableSize *size = find_size(deferred->relid);
	Relation	relation = table_open(deferred->relid, NoLock);
	PartitionDesc partdesc = PartitionDirectoryLookup(deferred->root->glob->partition_directory,
													  relation);
	double		share = (double) bms_num_members(deferred->rel->live_parts) /
	Max(partdesc->nparts, 1);

	if (size->read_at == 0 || size->nmembers != partdesc->nparts ||
		TimestampDifferenceExceeds(size->read_at, GetCurrentTimestamp(), RF_SIZES_EXPIRE))
		read_size(size, partdesc);
	table_close(relation, NoLock);
	deferred->nleaves = (int) Max(size->nleaves * share, 1);
	deferred->pages = size->pages * share;
	deferred->tuples = size->tuples * share;
}
