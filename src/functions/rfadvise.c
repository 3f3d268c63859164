/*-------------------------------------------------------------------------
 *
 * rfadvise.c
 *	  rangefilter_advise(): whether an index on a column is worth it.
 *
 * Estimates from a sample (rfsample.c) how large the filters of all partitions
 * would be, and how many partitions queries would skip.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/catalog.h"
#include "catalog/pg_class_d.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_namespace.h"
#include "compat.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "rangefilter/page/options.h"
#include "rangefilter/page/page.h"
#include "functions/rffuncs.h"
#include "functions/rfsample.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/partcache.h"
#include "utils/rls.h"

PG_FUNCTION_INFO_V1(rangefilter_advise);

/* The columns of the result, in order. */
enum
{
	ADVISE_WORTHWHILE,
	ADVISE_ADVICE,
	ADVISE_PARTITIONS,
	ADVISE_FILTER_BYTES,
	ADVISE_BTREE_BYTES,
	ADVISE_SKIPPED_POINTS,
	ADVISE_SKIPPED_1PPM,
	ADVISE_SKIPPED_100PPM,
	ADVISE_SKIPPED_1PERCENT,
	ADVISE_COLUMNS
};

/*
 * Skipping pays from this share and this number of partitions on: for the values of most rows, or for
 * this share of the distinct values.
 */
#define RF_WORTH_SHARE		0.5
#define RF_WORTH_PARTITIONS	3
#define RF_WORTH_VALUES		0.01

/*
 * Bytes that a btree takes for a key beside the key's own, and how full its
 * pages are.
 */
#define RF_BTREE_TUPLE		12
#define RF_BTREE_TID		6
#define RF_BTREE_FILL		0.9

/* The column. */
typedef struct RfAdvise
{
	Oid			table;
	const char *table_name;		/* as SQL */
	const char *column_name;	/* as SQL */
	const char *type_name;
	Oid			collation;
	int			typlen;
	bool		is_partitioned;
	bool		is_catalog;		/* no index can be created */
	List	   *partitions;
	double		left;			/* of them, that core leaves for one value */
	const RfCodec *codec;		/* NULL: keys of this type cannot be coded */
	bool		ordered;		/* ranges can be asked */

	double		filter_bytes;
	double		btree_bytes;
	double		points;			/* shares skipped */
	double		ranges[3];
	RfRare		rare;			/* values for which skipping pays, where it
								 * does not for most rows' values; none if
								 * they are too few */
} RfAdvise;

/* Widths of ranges, as shares of the distance from least to greatest value. */
static const double range_widths[] = {0.000001, 0.0001, 0.01};

/*
 * Return true if core skips partitions of a table for one value of a column.  Of several columns that a table is
 * partitioned by, a query has to give the first one for ranges, and all for hashes.
 */
static bool
core_prunes(Relation table, const char *column)
{
	PartitionKey key = RelationGetPartitionKey(table);
	AttrNumber	attno = get_attnum(RelationGetRelid(table), column);

	return attno > 0 && key->partattrs[0] == attno &&
		(key->strategy != PARTITION_STRATEGY_HASH || key->partnatts == 1);
}

/*
 * The number of tables with rows of a partitioned table that core leaves for one value of a
 * column.  At each level that it prunes by the column it leaves one of the partitions, taken to be
 * an average one.  No lock on a table without partitions is waited for.
 */
static double
tables_left(Oid oid, const char *column)
{
	Relation	table;
	double		left = 0;
	int			n = 0;
	ListCell   *cell;

	if (get_rel_relkind(oid) != RELKIND_PARTITIONED_TABLE)
		return 1;
	table = try_relation_open(oid, AccessShareLock);
	if (table == NULL)
		return 0;
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	foreach(cell, find_inheritance_children(oid, NoLock))
	{
		left += tables_left(lfirst_oid(cell), column);
		n++;
	}
	if (n > 0 && core_prunes(table, column))
		left /= n;
	relation_close(table, AccessShareLock);
	return left;
}

/*
 * Errors out if the user may not read the column, or not all rows of it.
 */
static void
require_select(Relation table, AttrNumber attno)
{
	Oid			oid = RelationGetRelid(table);

	if (check_enable_rls(oid, InvalidOid, true) == RLS_ENABLED ||
		!RF_MAY_USE_SCHEMA(RelationGetNamespace(table), GetUserId()) ||
		(pg_class_aclcheck(oid, GetUserId(), ACL_SELECT) != ACLCHECK_OK &&
		 pg_attribute_aclcheck(oid, attno, GetUserId(), ACL_SELECT) != ACLCHECK_OK))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for table \"%s\"",
						RelationGetRelationName(table)),
				 errdetail("The function samples a column, so it needs SELECT on it and no row-level security in effect.")));
}

/*
 * The tables that hold the rows of a table.
 */
static List *
storing_tables(Oid table)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, rf_inheritors(table))
	{
		char		relkind = get_rel_relkind(lfirst_oid(cell));

		if (relkind == RELKIND_RELATION || relkind == RELKIND_FOREIGN_TABLE ||
			relkind == RELKIND_MATVIEW)
			result = lappend_oid(result, lfirst_oid(cell));
	}

	/* A table may inherit in several ways. */
	list_sort(result, list_oid_cmp);
	list_deduplicate_oid(result);

	/* The parent of an inheritance tree is often empty. */
	if (list_length(result) > 1)
		result = list_delete_oid(result, table);
	return result;
}

/*
 * Fills in what the catalogs say about the column.
 */
static void
describe_column(RfAdvise *advise, const char *column)
{
	Relation	table = try_relation_open(advise->table, AccessShareLock);
	AttrNumber	attno;
	Form_pg_attribute attribute;
	Oid			type;

	if (table == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table with OID %u does not exist", advise->table)));
	if (table->rd_rel->relkind != RELKIND_RELATION &&
		table->rd_rel->relkind != RELKIND_PARTITIONED_TABLE &&
		table->rd_rel->relkind != RELKIND_MATVIEW)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table or materialized view",
						RelationGetRelationName(table))));
	attno = get_attnum(advise->table, column);
	if (attno <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of table \"%s\" does not exist",
						column, RelationGetRelationName(table))));
	require_select(table, attno);

	attribute = TupleDescAttr(RelationGetDescr(table), attno - 1);
	type = getBaseType(attribute->atttypid);
	advise->table_name =
		quote_qualified_identifier(get_namespace_name(RelationGetNamespace(table)),
								   RelationGetRelationName(table));
	advise->column_name = quote_identifier(pstrdup(column));
	advise->type_name = format_type_be(attribute->atttypid);
	advise->collation = attribute->attcollation;
	advise->typlen = attribute->attlen;
	advise->codec = rf_codec_under(type, advise->collation);
	advise->ordered = advise->codec != NULL &&
		rf_codec_ordered(advise->codec, advise->collation);
	advise->is_partitioned =
		table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
	advise->is_catalog = IsSystemRelation(table);
	advise->partitions = storing_tables(advise->table);
	advise->left = advise->is_partitioned ? tables_left(advise->table, column) :
		list_length(advise->partitions);
	relation_close(table, AccessShareLock);
}

/*
 * Returns how many bits each of a partition's keys takes: the default, or fewer where
 * they are numbers so dense that they can be stored exactly.
 */
static double
bits_of_keys(const RfSample *sample, const RfPartSample *part)
{
	double		span = (double) (part->places[part->n - 1] - part->places[0]) + 1;

	return sample->codec->kind == RF_KEY_U64 ?
		Min(2 + Max(log2(span / part->distinct), 0), RF_DEFAULT_BITS) : RF_DEFAULT_BITS;
}

/*
 * Bytes a btree takes for a partition; rows with the same key share one.
 */
static double
btree_bytes(const RfAdvise *advise, const RfSample *sample,
			const RfPartSample *part)
{
	double		length = advise->typlen > 0 ? advise->typlen : sample->length + 1;
	double		tuple = RF_BTREE_TUPLE + MAXALIGN((int) length);
	double		bytes = part->rows * tuple;
	double		shared = part->distinct * tuple + part->rows * RF_BTREE_TID;

	return BLCKSZ * (1 + ceil(Min(bytes, shared) / RF_BTREE_FILL / BLCKSZ));
}

/*
 * Fills in the sizes of filters and of btrees on all partitions.
 */
static void
estimate_sizes(RfAdvise *advise, const RfSample *sample)
{
	double		filters = 0;
	double		btrees = 0;
	double		scale = (double) sample->npartitions / sample->nsampled;
	int			empty = sample->nsampled - sample->nparts;

	for (int p = 0; p < sample->nparts; p++)
	{
		const RfPartSample *part = &sample->parts[p];

		/* The metapage is one, and has room for the keys of few rows. */
		filters += BLCKSZ;
		if (part->rows * RF_DEFAULT_BITS > RF_ENTRY_RUN * BITS_PER_BYTE)
			filters += BLCKSZ * Max(rint(part->distinct * bits_of_keys(sample, part) / 8 /
										 RF_PAGE_CONTENT), 1);
		btrees += btree_bytes(advise, sample, part);
	}
	advise->filter_bytes = (filters + empty * BLCKSZ) * scale;
	advise->btree_bytes = (btrees + empty * BLCKSZ) * scale;
}

/*
 * The share of those partitions that core leaves that is skipped, from the share of all that
 * an index alone skips.
 */
static double
share_of_left(const RfAdvise *advise, double share)
{
	double		kept = (1 - share) * list_length(advise->partitions);

	return advise->left > 0 ? Max(1 - kept / advise->left, 0) : 0;
}

/*
 * Return true if skipping that share of partitions is worth an index.
 */
static bool
is_worth_skipping(const RfAdvise *advise, double share)
{
	share = share_of_left(advise, share);
	return share >= RF_WORTH_SHARE &&
		share * advise->left >= RF_WORTH_PARTITIONS;
}

/*
 * The least share for which is_worth_skipping() is true.
 */
static double
least_worth_skipping(const RfAdvise *advise)
{
	double		least = advise->left * (1 - RF_WORTH_SHARE);

	least = Min(least, advise->left - RF_WORTH_PARTITIONS);
	return 1 - least / Max(list_length(advise->partitions), 1);
}

/*
 * Why skipping does not pay.
 */
static char *
advice_against(const RfAdvise *advise)
{
	int			n = list_length(advise->partitions);

	if (n < 2)
		return pstrdup("The table has no partitions that could be skipped; a btree finds its rows.");
	if (advise->left < n)
		return pstrdup("The table is partitioned by this column: PostgreSQL skips partitions by it without an index.");
	if (n * advise->points < RF_WORTH_PARTITIONS && advise->points >= RF_WORTH_SHARE)
		return psprintf("With %d partitions there is little to skip.", n);
	return psprintf("Most values are in most partitions: a query for one value would skip %.0f %% of them.",
					100 * advise->points);
}

/*
 * The partitions that queries skip a share of.
 */
static char *
which_partitions(const RfAdvise *advise)
{
	int			n = list_length(advise->partitions);

	return advise->left == n ? psprintf("%d partitions", n) :
		psprintf("the %.0f of %d partitions that PostgreSQL leaves", advise->left, n);
}

/*
 * The advice, in a sentence or two.
 */
static char *
make_advice(const RfAdvise *advise, const RfSample *sample)
{
	const char *partitions = which_partitions(advise);
	double		points = 100 * share_of_left(advise, advise->points);
	char	   *command;

	if (advise->is_catalog)
		return pstrdup("PostgreSQL creates no indexes on system catalogs.");
	if (advise->codec == NULL)
		return psprintf("Values of type %s cannot be summarized.",
						advise->type_name);
	if (sample->nparts == 0)
		return pstrdup("There are no values to learn from.");
	if (!is_worth_skipping(advise, advise->points) && advise->rare.rare == 0)
		return advice_against(advise);
	command = advise->is_partitioned ?
		psprintf("CREATE INDEX ON %s USING rangefilter (%s);",
				 advise->table_name, advise->column_name) :
		psprintf("CREATE INDEX ... USING rangefilter (%s) on each of the %d tables.",
				 advise->column_name, list_length(advise->partitions));
	if (advise->rare.rare > 0)
		return psprintf("%s Most rows have values that are in most partitions. For %d of the %d values in the sample a query would skip %.1f %% of %s.",
						command, advise->rare.rare, advise->rare.values,
						100 * share_of_left(advise, advise->rare.skipped), partitions);
	if (!advise->ordered)
		return psprintf("%s A query for one value would skip %.1f %% of %s; %s.",
						command, points, partitions,
						advise->codec->collatable ?
						"for ranges, use COLLATE \"C\" or a collation of ICU" : "ranges would not");
	if (!is_worth_skipping(advise, advise->ranges[0]))
		return psprintf("%s A query for one value would skip %.1f %% of %s; ranges would not.",
						command, points, partitions);
	return psprintf("%s A query for one value would skip %.1f %% of %s, one for a narrow range %.1f %%.",
					command, points, partitions,
					100 * share_of_left(advise, advise->ranges[0]));
}

/*
 * Fills in the estimates from a sample of the column.
 */
static void
estimate_from_sample(RfAdvise *advise, const RfSample *sample)
{
	estimate_sizes(advise, sample);
	advise->points = rf_skipped_by_points(sample);
	for (int i = 0; i < lengthof(range_widths); i++)
		advise->ranges[i] = advise->ordered ?
			rf_skipped_by_ranges(sample, range_widths[i]) : 0;
	if (is_worth_skipping(advise, advise->points))
		return;
	if (least_worth_skipping(advise) <= 1)
		rf_find_rare(sample, least_worth_skipping(advise), &advise->rare);
	if (advise->rare.rare < RF_WORTH_VALUES * advise->rare.values)
		advise->rare.rare = 0;
}

/*
 * A share with four digits.
 */
static Datum
rounded_share(double share)
{
	return Float8GetDatum(rint(share * 10000) / 10000);
}

/*
 * rangefilter_advise(table regclass, "column" name) returns one row.
 */
Datum
rangefilter_advise(PG_FUNCTION_ARGS)
{
	RfAdvise	advise = {.table = PG_GETARG_OID(0)};
	RfSample   *sample = NULL;
	Datum		values[ADVISE_COLUMNS] = {0};
	bool		nulls[ADVISE_COLUMNS];
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	describe_column(&advise, NameStr(*PG_GETARG_NAME(1)));
	memset(nulls, true, sizeof(nulls));
	nulls[ADVISE_WORTHWHILE] = nulls[ADVISE_ADVICE] = nulls[ADVISE_PARTITIONS] = false;
	values[ADVISE_PARTITIONS] = Int32GetDatum(list_length(advise.partitions));
	if (advise.codec != NULL && !advise.is_catalog)
		sample = rf_sample_column(advise.partitions,
								  NameStr(*PG_GETARG_NAME(1)), advise.codec);
	if (sample != NULL && sample->nparts > 0)
	{
		estimate_from_sample(&advise, sample);
		memset(nulls, false, sizeof(nulls));
		values[ADVISE_FILTER_BYTES] = Int64GetDatum((int64) advise.filter_bytes);
		values[ADVISE_BTREE_BYTES] = Int64GetDatum((int64) advise.btree_bytes);
		values[ADVISE_SKIPPED_POINTS] = rounded_share(advise.points);
		values[ADVISE_SKIPPED_1PPM] = rounded_share(advise.ranges[0]);
		values[ADVISE_SKIPPED_100PPM] = rounded_share(advise.ranges[1]);
		values[ADVISE_SKIPPED_1PERCENT] = rounded_share(advise.ranges[2]);
	}
	values[ADVISE_WORTHWHILE] = BoolGetDatum(is_worth_skipping(&advise, advise.points) ||
											 advise.rare.rare > 0);
	values[ADVISE_ADVICE] = CStringGetTextDatum(make_advice(&advise, sample));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc),
													  values, nulls)));
}
