/*-------------------------------------------------------------------------
 *
 * rf_knowledge.c
 *	  Shows what a session remembers of partitions, and what planning costs.
 *
 * Much of what is remembered saves time and changes no answer.  So tests look at
 * it here, and count pages and calls of the planner, which do not depend on the
 * machine.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "executor/instrument.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "optimizer/planner.h"
#include "planner/knowledge/knowledge.h"
#include "port/pg_bitutils.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/tuplestore.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(rf_entry);
PG_FUNCTION_INFO_V1(rf_pages);
PG_FUNCTION_INFO_V1(rf_plannings);
PG_FUNCTION_INFO_V1(rf_room);

void		_PG_init(void);

typedef RfTable *(*KnownTableFunction) (Oid relid);
typedef void (*MakeRoomFunction) (const RfTable *table);

static planner_hook_type next_planner = NULL;
static int64 plannings = 0;

/*
 * planner_hook
 */
static PlannedStmt *
count_planner(RF_PLANNER_PARAMS)
{
	plannings++;
	if (next_planner)
		return next_planner(RF_PLANNER_ARGS);
	return standard_planner(RF_PLANNER_ARGS);
}

/*
 * Module load function
 */
void
_PG_init(void)
{
	next_planner = planner_hook;
	planner_hook = count_planner;
}

/*
 * Adds a line to a function's result.
 */
static void
put_line(ReturnSetInfo *result, StringInfo line)
{
	Datum		value = CStringGetTextDatum(line->data);
	bool		isnull = false;

	tuplestore_putvalues(result->setResult, result->setDesc, &value, &isnull);
	resetStringInfo(line);
}

/*
 * Describes an entry.
 */
static void
show_table(const RfTable *table, StringInfo line)
{
	appendStringInfo(line, "entry " UINT64_FORMAT ": %s, %s, %d indexes, %d partitioned",
					 table->serial, table->valid ? "valid" : "not valid",
					 table->candidate ? "candidate" : "no candidate",
					 table->nindexes, table->npartitioned);
	if (table->own_read)
		appendStringInfo(line, "; %d own of %d members", table->nown, table->nmembers);
	else
		appendStringInfo(line, "; own not read, %d sought", table->own_sought);
	appendStringInfo(line, "%s; %d records",
					 table->own_needed ? ", needed" : "", list_length(table->invals));
}

/*
 * Describes what is known of an index.
 */
static void
show_index(const RfIndex *index, StringInfo line)
{
	int			found = 0;
	int			located = 0;
	int			cached = 0;

	for (int i = 0; i < index->nleaves; i++)
	{
		found += OidIsValid(index->leaves[i].index);
		located += index->leaves[i].located;
		cached += index->leaves[i].cached != NULL;
	}
	appendStringInfo(line, "%s: %d places, %d found, %d located, %d cached%s%s",
					 get_rel_name(index->oid), index->nleaves, found, located, cached,
					 index->mapped ? "" : ", not mapped",
					 index->positions != NULL ? ", hashed" : "");
}

/*
 * Describes a digest matrix.
 */
static void
show_matrix(const RfIndex *index, int number, StringInfo line)
{
	const RfMatrixState *matrix = &index->matrices->states[number];
	const FilterDigest *buckets = &matrix->view.buckets;
	int			columns = 0;

	appendStringInfo(line, "%s matrix %d: ", get_rel_name(index->oid), number);
	if (matrix->view.matrix == NULL)
		appendStringInfo(line, "none, %u left out", matrix->tries_left_out);
	else
	{
		for (int i = 0; i < FILTER_DIGESTS; i++)
			columns += number * FILTER_DIGESTS + i < index->nleaves &&
				OidIsValid(matrix->view.columns[i].index);
		if (buckets->split > 0)
			appendStringInfo(line, "%u bits, 2^%u parts each of ", buckets->nbits, buckets->split);
		appendStringInfo(line, "%u buckets of " UINT64_FORMAT ", %d columns, %d current, %d certain%s",
						 buckets->nbuckets, buckets->width, columns,
						 pg_popcount64(matrix->current), pg_popcount64(matrix->certain),
						 buckets->of_hashes ? "; of hashes" : "");
	}
}

/*
 * rf_entry(relation regclass)
 */
Datum
rf_entry(PG_FUNCTION_ARGS)
{
	KnownTableFunction known = (KnownTableFunction)
	load_external_function("$libdir/rangefilter", "rf_known_table", true, NULL);
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	const RfTable *table = known(PG_GETARG_OID(0));
	StringInfoData line;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	initStringInfo(&line);
	if (table == NULL)
		return (Datum) 0;
	show_table(table, &line);
	put_line(result, &line);
	for (int i = 0; i < table->nindexes; i++)
	{
		const RfIndex *index = &table->indexes[i];

		show_index(index, &line);
		put_line(result, &line);
		for (int j = 0; index->matrices != NULL && j < index->matrices->n; j++)
		{
			show_matrix(index, j, &line);
			put_line(result, &line);
		}
	}
	return (Datum) 0;
}

/*
 * rf_pages()
 */
Datum
rf_pages(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(pgBufferUsage.shared_blks_hit + pgBufferUsage.shared_blks_read);
}

/*
 * rf_plannings()
 */
Datum
rf_plannings(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(plannings);
}

/*
 * rf_room(in_use bool)
 */
Datum
rf_room(PG_FUNCTION_ARGS)
{
	MakeRoomFunction make_room = (MakeRoomFunction)
	load_external_function("$libdir/rangefilter", "rf_make_room", true, NULL);
	bool	   *in_use = (bool *)
	load_external_function("$libdir/rangefilter", "rf_entries_in_use", true, NULL);
	int		   *size = (int *)
	load_external_function("$libdir/rangefilter", "rf_cache_size", true, NULL);
	bool		outer_in_use = *in_use;
	int			outer_size = *size;

	*in_use = PG_GETARG_BOOL(0);
	*size = 0;
	make_room(NULL);
	*in_use = outer_in_use;
	*size = outer_size;
	PG_RETURN_VOID();
}
