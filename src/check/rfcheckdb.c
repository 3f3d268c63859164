/*-------------------------------------------------------------------------
 *
 * rfcheckdb.c
 *	  rangefilter_check_database(): checks all indexes of both access methods.
 *
 * Each index is checked by the function that checks one, in a subtransaction, which is
 * rolled back.  So an error ends the check of that index alone and becomes its row, and
 * no lock outlives the check of its index.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type_d.h"
#include "commands/defrem.h"
#include "common/hashfn.h"
#include "compat.h"
#include "core/core.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "rangefilter/summarize/summarize.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(rangefilter_check_database);

/* One of the access methods. */
typedef struct RfCheckedMethod
{
	Oid			am;
	Oid			function;		/* checks one index */
	bool		allowed;		/* the user may call it himself */
} RfCheckedMethod;

/* An index to be checked. */
typedef struct RfCheckedIndex
{
	Oid			oid;
	bool		other_temp;		/* of another session */
	const RfCheckedMethod *method;
} RfCheckedIndex;

/*
 * Finds an access method, and the function that checks its indexes, which is in the same
 * schema as ours.
 */
static void
rf_find_method(RfCheckedMethod *method, const char *am, const char *function,
			   Oid schema)
{
	Oid			types[] = {REGCLASSOID, BOOLOID};

	method->am = get_index_am_oid(am, false);
	method->function = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
									   CStringGetDatum(function),
									   PointerGetDatum(buildoidvector(types, lengthof(types))),
									   ObjectIdGetDatum(schema));
	if (!OidIsValid(method->function))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("function %s(regclass, boolean) does not exist", function)));
	method->allowed =
		DatumGetBool(DirectFunctionCall2(has_function_privilege_id,
										 ObjectIdGetDatum(method->function),
										 CStringGetTextDatum("EXECUTE")));
}

/*
 * The indexes with pages of two access methods that belong to share number part, counted
 * from 1, of nparts.  The OID decides, so it does not matter which indexes other
 * sessions see.
 */
static List *
rf_indexes_to_check(const RfCheckedMethod *methods, int part, int nparts)
{
	Relation	catalog = table_open(RelationRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0, NULL);
	List	   *result = NIL;
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);
		RfCheckedIndex *index;

		if (form->relkind != RELKIND_INDEX ||
			(form->relam != methods[0].am && form->relam != methods[1].am) ||
			murmurhash32(form->oid) % (uint32) nparts != (uint32) part - 1)
			continue;
		index = palloc(sizeof(RfCheckedIndex));
		index->oid = form->oid;
		index->other_temp = isOtherTempNamespace(form->relnamespace);
		index->method = &methods[form->relam == methods[1].am];
		result = lappend(result, index);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return result;
}

/*
 * What is said of an index whose check ended with an error: what is wrong with it, or
 * why it was not checked.  An error that is meant for the whole statement is raised again.
 */
static char *
rf_problem(ErrorData *error)
{
	bool		damage = error->sqlerrcode == ERRCODE_INDEX_CORRUPTED ||
	error->sqlerrcode == ERRCODE_DATA_CORRUPTED;

	/* A cancel is one of them. */
	if (ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION)
		ReThrowError(error);
	return psprintf("%s%s%s%s", damage ? "" : "not checked: ", error->message,
					error->detail != NULL ? ": " : "",
					error->detail != NULL ? error->detail : "");
}

/* The check of an index. */
typedef struct RfOneCheck
{
	const RfCheckedIndex *index;
	bool		with_heap;
	int64		entries;		/* the result */
} RfOneCheck;

/*
 * rf_core_attempt() callback: calls the function that checks the index of the RfOneCheck in arg.
 */
static void
rf_call_check(void *arg)
{
	RfOneCheck *check = arg;

	check->entries = DatumGetInt64(OidFunctionCall2(check->index->method->function,
													ObjectIdGetDatum(check->index->oid),
													BoolGetDatum(check->with_heap)));
}

/*
 * Checks one index.  Sets *entries, or returns what is wrong.
 */
static char *
rf_check_index(const RfCheckedIndex *index, bool with_heap, int64 *entries)
{
	RfOneCheck	check = {index, with_heap};
	ErrorData  *error = rf_core_attempt(rf_call_check, &check, true);

	*entries = check.entries;
	return error != NULL ? rf_problem(error) : NULL;
}

/*
 * Return true if the index is still there.
 */
static bool
rf_exists(const RfCheckedIndex *index)
{
	return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(index->oid));
}

/*
 * Why an index, which is there, must not be checked, or NULL.
 */
static char *
rf_obstacle(const RfCheckedIndex *index)
{
	if (index->other_temp)
		return "not checked: temporary index of another session";
	if (!index->method->allowed && !RF_OWNS_RELATION(index->oid, GetUserId()))
		return "not checked: permission denied";
	return NULL;
}

/*
 * Adds the row of an index to the result: index, access method, entries, problem.
 */
static void
rf_add_finding(ReturnSetInfo *result, const RfCheckedIndex *index, int64 entries,
			   const char *problem)
{
	Datum		values[4];
	bool		isnull[4] = {false, false, problem != NULL, problem == NULL};

	values[0] = ObjectIdGetDatum(index->oid);
	values[1] = DirectFunctionCall1(namein, CStringGetDatum(get_am_name(index->method->am)));
	values[2] = Int64GetDatum(entries);
	values[3] = problem != NULL ? CStringGetTextDatum(problem) : (Datum) 0;
	tuplestore_putvalues(result->setResult, result->setDesc, values, isnull);
}

/*
 * rangefilter_check_database(heapallindexed boolean, part int, parts int) returns a
 * row for each index.  A user who may not call the functions that check one index can
 * check their own indexes.  Indexes that are dropped meanwhile are left out.
 */
Datum
rangefilter_check_database(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	int			part = PG_GETARG_INT32(1);
	int			nparts = PG_GETARG_INT32(2);
	RfCheckedMethod methods[2];
	MemoryContext context;
	List	   *indexes;
	ListCell   *cell;

	if (nparts < 1 || part < 1 || part > nparts)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("part number %d is out of range for %d parts", part, nparts),
				 errhint("Parts are numbered from 1.")));
	InitMaterializedSRF(fcinfo, 0);
	rf_find_method(&methods[0], "rangefilter", "rangefilter_verify", schema);
	rf_find_method(&methods[1], "wormhole", "wormhole_check", schema);
	indexes = rf_indexes_to_check(methods, part, nparts);
	context = AllocSetContextCreate(CurrentMemoryContext, "rangefilter check",
									ALLOCSET_DEFAULT_SIZES);
	foreach(cell, indexes)
	{
		RfCheckedIndex *index = lfirst(cell);
		MemoryContext old;
		char	   *problem;
		int64		entries = 0;

		CHECK_FOR_INTERRUPTS();
		if (!rf_exists(index))
			continue;
		old = MemoryContextSwitchTo(context);
		problem = rf_obstacle(index);
		if (problem == NULL)
		{
			bool		report = rf_progress_begin(list_length(indexes));

			if (report)
				rf_progress_check(index->oid, foreach_current_index(cell));
			problem = rf_check_index(index, PG_GETARG_BOOL(0), &entries);
			if (report)
				rf_progress_end();
		}
		if (rf_exists(index))
			rf_add_finding(result, index, entries, problem);
		MemoryContextSwitchTo(old);
		MemoryContextReset(context);
	}
	MemoryContextDelete(context);
	return (Datum) 0;
}
