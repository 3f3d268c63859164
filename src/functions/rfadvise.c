/*-------------------------------------------------------------------------
 *
 * rfadvise.c
 *	  rangefilter_advise(): is an index on a column worth it?
 *
 * Estimates from a sample (rfsample.c) which filter a build would choose, how
 * large the filters of all partitions would be, and how many partitions
 * queries would skip.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/catalog.h"
#include "catalog/pg_class_d.h"
#include "catalog/pg_collation_d.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_namespace.h"
#include "compat.h"
#include "filter/filter.h"
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
	ADVISE_FILTER,
	ADVISE_FILTER_BYTES,
	ADVISE_BTREE_BYTES,
	ADVISE_SKIPPED_POINTS,
	ADVISE_SKIPPED_1PPM,
	ADVISE_SKIPPED_100PPM,
	ADVISE_SKIPPED_1PERCENT,
	ADVISE_PAGES_PER_RANGE,
	ADVISE_BLOCKS_READ,
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
 * Reading a part of the blocks pays up to this share, and in tables of at least this many
 * blocks.
 */
#define RF_WORTH_READ		0.25
#define RF_WORTH_BLOCKS		64

/*
 * It pays up to this many blocks, or this factor more than hold the value.  Where more are read, a
 * btree is several times faster.
 */
#define RF_WORTH_MOST		64
#define RF_WORTH_FACTOR		2

/* Finer ranges must read less by this factor. */
#define RF_FINER_READS		(2.0 / 3)

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

	const char *filter;
	double		filter_bytes;
	double		btree_bytes;
	double		points;			/* shares skipped */
	double		ranges[3];
	RfRare		rare;			/* values for which skipping pays, where it
								 * does not for most rows' values; none if
								 * they are too few */

	/* Of the largest table, where skipping tables does not pay; else 0. */
	bool		rows_found;		/* it has an index that finds the rows */
	BlockNumber nblocks;
	int			pages_per_range;
	int			bits_per_key;
	double		blocks_read;	/* share of its blocks that are read for a
								 * value, ... */
	double		blocks_least;	/* ... with the finest ranges ... */
	double		blocks_held;	/* ... and that hold it */
} RfAdvise;

/* Sizes of ranges of blocks that may be advised. */
static const int range_sizes[] = {16, 32, 64, 128};

/* Widths of ranges, as shares of the distance from least to greatest value. */
static const double range_widths[] = {0.000001, 0.0001, 0.01};

/*
 * Does core skip partitions of a table for one value of a column?  Of several columns that a table is
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
	rf_mention_shards(table);

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
 * Which filter would strings get?  Measured with the largest sample.
 */
static const char *
filter_of_strings(const RfSample *sample)
{
	const RfPartSample *part = &sample->parts[0];
	FilterOptions options = {.bytes = true,.suffix = FILTER_SUFFIX_AUTO,
	.bits_per_key = RF_DEFAULT_BITS,.page_size = RF_PAGE_CONTENT,.root_max = FILTER_MAX_ROOT};
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "rangefilter advise",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	FilterBuild *build;
	bool		is_pair;

	for (int p = 1; p < sample->nparts; p++)
	{
		if (sample->parts[p].seen > part->seen)
			part = &sample->parts[p];
	}

	/* Few keys have pages of their own; those of a sample shall not. */
	options.page_size = Max(RF_PAGE_CONTENT / 2,
							RF_PAGE_CONTENT * part->seen / part->distinct);
	options.page_size -= options.page_size % 8;
	build = filter_build_begin(&options);
	for (int i = 0; i < part->n; i++)
	{
		FilterBytes bytes = {part->keys[i].key.data, part->keys[i].key.len};

		filter_measure_bytes(build, bytes);
	}
	is_pair = filter_build_hashes(build);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return is_pair ? "pair" : "surf";
}

/*
 * Bits that each of a partition's keys takes: what was asked for, or fewer
 * where they are numbers so dense that they can be stored exactly.
 */
static double
bits_of_keys(const RfSample *sample, const RfPartSample *part, bool *exact)
{
	double		span = (double) (part->places[part->n - 1] - part->places[0]) + 1;
	double		bits = 2 + Max(log2(span / part->distinct), 0);

	*exact = sample->codec->kind == RF_KEY_U64 && bits <= RF_DEFAULT_BITS;
	return *exact ? bits : RF_DEFAULT_BITS;
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
 * Fills in the filter and the sizes.
 */
static void
estimate_sizes(RfAdvise *advise, const RfSample *sample)
{
	double		filters = 0;
	double		btrees = 0;
	double		all_keys = 0;
	double		exact_keys = 0;
	double		scale = (double) sample->npartitions / sample->nsampled;
	int			empty = sample->nsampled - sample->nparts;

	for (int p = 0; p < sample->nparts; p++)
	{
		const RfPartSample *part = &sample->parts[p];
		bool		exact;
		double		bits = bits_of_keys(sample, part, &exact);

		/* The metapage is one, and has room for the keys of few rows. */
		filters += BLCKSZ;
		if (part->rows * RF_DEFAULT_BITS > RF_ENTRY_RUN * BITS_PER_BYTE)
			filters += BLCKSZ * Max(rint(part->distinct * bits / 8 /
										 RF_PAGE_CONTENT), 1);
		btrees += btree_bytes(advise, sample, part);
		all_keys += part->distinct;
		exact_keys += exact ? part->distinct : 0;
	}
	advise->filter_bytes = (filters + empty * BLCKSZ) * scale;
	advise->btree_bytes = (btrees + empty * BLCKSZ) * scale;
	advise->filter = exact_keys > all_keys / 2 ? "exact" :
		sample->codec->kind == RF_KEY_U64 ? "snarf" : filter_of_strings(sample);
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
 * Is skipping that share of partitions worth an index?
 */
static bool
pays(const RfAdvise *advise, double share)
{
	share = share_of_left(advise, share);
	return share >= RF_WORTH_SHARE &&
		share * advise->left >= RF_WORTH_PARTITIONS;
}

/*
 * The least share for which pays() is true.
 */
static double
least_that_pays(const RfAdvise *advise)
{
	double		least = advise->left * (1 - RF_WORTH_SHARE);

	least = Min(least, advise->left - RF_WORTH_PARTITIONS);
	return 1 - least / Max(list_length(advise->partitions), 1);
}

/*
 * Is reading only some ranges of a table's blocks worth an index?
 */
static bool
blocks_pay(const RfAdvise *advise)
{
	return advise->nblocks >= RF_WORTH_BLOCKS &&
		advise->blocks_read <= RF_WORTH_READ &&
		(advise->blocks_least * advise->nblocks <= RF_WORTH_MOST ||
		 advise->blocks_least <= RF_WORTH_FACTOR * advise->blocks_held);
}

/*
 * Does a table have an index that finds the rows with a value of the column?
 */
static bool
has_row_index(Oid oid, const char *column)
{
	Relation	table = try_table_open(oid, AccessShareLock);
	bool		result = false;
	AttrNumber	attno;
	ListCell   *cell;

	if (table == NULL)
		return false;
	attno = get_attnum(oid, column);
	foreach(cell, RelationGetIndexList(table))
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		result = result || (index->rd_index->indisvalid &&
							index->rd_indam->amgettuple != NULL &&
							index->rd_index->indkey.values[0] == attno &&
							heap_attisnull(index->rd_indextuple,
										   Anum_pg_index_indpred, NULL));
		index_close(index, AccessShareLock);
	}
	table_close(table, AccessShareLock);
	return result;
}

/*
 * Estimates the best size of ranges of blocks in the largest table, and the
 * share of blocks read for one value.  The best size is the largest with which
 * hardly more is read than with the smallest.  For a table that is small
 * enough it is the size that the index chooses by itself.  Nothing is estimated if another
 * index finds the rows.
 */
static void
estimate_blocks(RfAdvise *advise, const RfSample *sample, const char *column)
{
	const RfPartSample *part = &sample->parts[0];
	RfSpread   *spread;
	double		rows;
	int			range;

	for (int p = 1; p < sample->nparts; p++)
	{
		if (sample->parts[p].rows > part->rows)
			part = &sample->parts[p];
	}
	advise->rows_found = has_row_index(part->table, column);
	spread = advise->rows_found ? NULL :
		rf_spread_read(part->table, column, advise->codec);
	if (spread == NULL)
		return;
	advise->nblocks = rf_spread_blocks(spread, &rows);
	range = rf_automatic_range(advise->nblocks, rows);
	advise->pages_per_range = range > 0 ? RF_RANGES_AUTO : range_sizes[0];
	advise->blocks_least = rf_spread_share(spread, range > 0 ? range : range_sizes[0]);
	advise->blocks_read = advise->blocks_least;
	advise->blocks_held = rf_spread_share(spread, 1);
	for (int i = 1; i < lengthof(range_sizes) && range == 0; i++)
	{
		double		read = rf_spread_share(spread, range_sizes[i]);

		if (advise->blocks_least < read * RF_FINER_READS)
			break;
		advise->pages_per_range = range_sizes[i];
		advise->blocks_read = read;
	}
	advise->bits_per_key = RF_DEFAULT_BITS;
	if (range == 0)
		advise->bits_per_key +=
			(int) ceil(log2((double) advise->nblocks / advise->pages_per_range + 1));
}

/*
 * The advice for a table where reading only some ranges of blocks pays.
 */
static char *
advice_for_blocks(const RfAdvise *advise)
{
	const char *options = advise->pages_per_range == RF_RANGES_AUTO ? "" :
	psprintf(" WITH (pages_per_range = %d, bits_per_key = %d)",
			 advise->pages_per_range, advise->bits_per_key);
	const char *command = advise->is_partitioned ||
	list_length(advise->partitions) == 1 ?
	psprintf("CREATE INDEX ON %s USING rangefilter (%s)%s;",
			 advise->table_name, advise->column_name, options) :
	psprintf("CREATE INDEX ... USING rangefilter (%s)%s on each of the %d tables.",
			 advise->column_name, options, list_length(advise->partitions));

	return psprintf("%s A query for one value would read %.2g %% of a table's blocks; a btree finds the rows themselves.",
					command, 100 * advise->blocks_read);
}

/*
 * Why an index of a single table is not worth it.
 */
static char *
advice_for_single(const RfAdvise *advise)
{
	if (advise->rows_found)
		return pstrdup("The table has no partitions that could be skipped; an index that it has finds its rows.");
	if (advise->nblocks >= RF_WORTH_BLOCKS && advise->blocks_read < 1)
		return psprintf("The table has no partitions that could be skipped, and a query for one value would read %.2g %% of its blocks; a btree finds its rows.",
						100 * advise->blocks_read);
	return pstrdup("The table has no partitions that could be skipped; a btree finds its rows.");
}

/*
 * Why skipping does not pay.
 */
static char *
advice_against(const RfAdvise *advise)
{
	int			n = list_length(advise->partitions);

	if (n < 2)
		return advice_for_single(advise);
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
advice(const RfAdvise *advise, const RfSample *sample)
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
	if (blocks_pay(advise))
		return advice_for_blocks(advise);
	if (!pays(advise, advise->points) && advise->rare.rare == 0)
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
	if (!pays(advise, advise->ranges[0]))
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
estimate(RfAdvise *advise, const RfSample *sample, const char *column)
{
	estimate_sizes(advise, sample);
	advise->points = rf_skipped_by_points(sample);
	for (int i = 0; i < lengthof(range_widths); i++)
		advise->ranges[i] = advise->ordered ?
			rf_skipped_by_ranges(sample, range_widths[i]) : 0;
	if (pays(advise, advise->points))
		return;
	if (least_that_pays(advise) <= 1)
		rf_find_rare(sample, least_that_pays(advise), &advise->rare);
	if (advise->rare.rare < RF_WORTH_VALUES * advise->rare.values)
		advise->rare.rare = 0;
	if (advise->rare.rare == 0)
		estimate_blocks(advise, sample, column);
}

/*
 * A share with four digits.
 */
static Datum
rounded(double share)
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
		estimate(&advise, sample, NameStr(*PG_GETARG_NAME(1)));
		memset(nulls, false, sizeof(nulls));
		values[ADVISE_FILTER] = CStringGetTextDatum(advise.filter);
		values[ADVISE_FILTER_BYTES] = Int64GetDatum((int64) advise.filter_bytes);
		values[ADVISE_BTREE_BYTES] = Int64GetDatum((int64) advise.btree_bytes);
		values[ADVISE_SKIPPED_POINTS] = rounded(advise.points);
		values[ADVISE_SKIPPED_1PPM] = rounded(advise.ranges[0]);
		values[ADVISE_SKIPPED_100PPM] = rounded(advise.ranges[1]);
		values[ADVISE_SKIPPED_1PERCENT] = rounded(advise.ranges[2]);
		values[ADVISE_PAGES_PER_RANGE] = Int32GetDatum(advise.pages_per_range);
		values[ADVISE_BLOCKS_READ] = rounded(advise.blocks_read);
		nulls[ADVISE_PAGES_PER_RANGE] = !blocks_pay(&advise);
		nulls[ADVISE_BLOCKS_READ] = advise.nblocks == 0;
	}
	values[ADVISE_WORTHWHILE] = BoolGetDatum(!nulls[ADVISE_FILTER] &&
											 (pays(&advise, advise.points) ||
											  advise.rare.rare > 0 ||
											  blocks_pay(&advise)));
	values[ADVISE_ADVICE] = CStringGetTextDatum(advice(&advise, sample));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc),
													  values, nulls)));
}
