/*-------------------------------------------------------------------------
 *
 * whoptions.c
 *	  The handler, WITH options, and what an index may be defined on.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/reloptions.h"
#include "access/stratnum.h"
#include "access/xact.h"
#include "commands/progress.h"
#include "commands/vacuum.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "wormhole/wormhole.h"

PG_FUNCTION_INFO_V1(wormhole_handler);

static relopt_kind wh_relopt_kind;

/*
 * Registers the WITH options.  Called once, when the library is loaded.
 */
void
wh_init_options(void)
{
	wh_relopt_kind = add_reloption_kind();
	add_int_reloption(wh_relopt_kind, "fillfactor",
					  "How full the build and ascending inserts make pages, in percent",
					  WH_DEFAULT_FILLFACTOR, 10, 100,
					  ShareUpdateExclusiveLock);
	add_bool_reloption(wh_relopt_kind, "deduplicate",
					   "Keep the rows of one key in one entry", true,
					   ShareUpdateExclusiveLock);
}

/*
 * amoptions.
 */
static bytea *
wh_options(Datum reloptions, bool validate)
{
	static const relopt_parse_elt table[] = {
		{"fillfactor", RELOPT_TYPE_INT, offsetof(WhOptions, fillfactor)},
		{"deduplicate", RELOPT_TYPE_BOOL, offsetof(WhOptions, deduplicate)}
	};

	return (bytea *) build_reloptions(reloptions, validate, wh_relopt_kind,
									  sizeof(WhOptions), table,
									  lengthof(table));
}

/*
 * The index's options, or the defaults.
 */
const WhOptions *
wh_index_options(Relation index)
{
	static const WhOptions defaults = {
		.fillfactor = WH_DEFAULT_FILLFACTOR,
		.deduplicate = true
	};

	return index->rd_options ? (const WhOptions *) index->rd_options : &defaults;
}

/*
 * Refuses collations whose order we cannot give to keys, and says of
 * a new unique index what the server will not do with it.
 */
void
wh_check_definition(Relation index, IndexInfo *index_info)
{
	RfRowFormat *format = &wh_cache(index)->format;

	for (int i = 0; i < format->ncolumns; i++)
	{
		Oid			collation = index->rd_indcollation[i];

		if (rf_codec_ordered(format->columns[i].codec, collation))
			continue;
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("wormhole indexes do not support collation \"%s\"",
						get_collation_name(collation)),
				 errdetail("Keys are kept as bytes, which do not sort as this collation of the operating system's does."),
				 errhint("Use COLLATE \"C\", or a collation of ICU, on the column or the index.")));
	}
	if (!RF_ON_CONFLICT_BY_ANY && index_info->ii_Unique &&
		index->rd_createSubid != InvalidSubTransactionId)
		ereport(NOTICE,
				(errmsg("INSERT ... ON CONFLICT will not work on the table of unique wormhole index \"%s\"",
						RelationGetRelationName(index)),
				 errdetail("The server supports it with unique indexes of access method btree only."),
				 errhint("Where ON CONFLICT is needed, use a unique btree index.")));
}

/*
 * ambuildphasename.
 */
static char *
wh_buildphasename(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case WH_PHASE_SCAN:
			return "scanning table";
		case WH_PHASE_SORT:
			return "sorting keys";
		case WH_PHASE_WRITE:
			return "writing pages";
		default:
			return NULL;
	}
}

/*
 * The access method's handler.
 */
Datum
wormhole_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *routine = makeNode(IndexAmRoutine);

	routine->amstrategies = BTMaxStrategyNumber;
	routine->amcanorder = true;
	routine->amcanbackward = true;
	routine->amcanunique = true;
	routine->amcanmulticol = true;
	routine->amoptionalkey = true;
	routine->amsearcharray = true;
	routine->amsearchnulls = true;
	routine->amclusterable = true;
	routine->amcanparallel = true;
	routine->amcaninclude = true;
	routine->amusemaintenanceworkmem = true;
	routine->amparallelvacuumoptions =
		VACUUM_OPTION_PARALLEL_BULKDEL | VACUUM_OPTION_PARALLEL_COND_CLEANUP;
	routine->amkeytype = InvalidOid;
	RF_SET_COMPARISONS(routine);

	routine->ambuild = wh_build;
	routine->ambuildempty = wh_buildempty;
	routine->aminsert = wh_insert;
	routine->ambulkdelete = wh_bulkdelete;
	routine->amvacuumcleanup = wh_vacuumcleanup;
	routine->amcanreturn = wh_can_return;
	routine->amcostestimate = wh_costestimate;
	routine->amoptions = wh_options;
	routine->ambuildphasename = wh_buildphasename;
	routine->amvalidate = rf_validate_opclass;
	routine->ambeginscan = wh_beginscan;
	routine->amrescan = wh_rescan;
	routine->amgettuple = wh_gettuple;
	routine->amgetbitmap = wh_getbitmap;
	routine->amendscan = wh_endscan;
	routine->ammarkpos = wh_markpos;
	routine->amrestrpos = wh_restrpos;
	routine->amestimateparallelscan = wh_estimateparallelscan;
	routine->aminitparallelscan = wh_initparallelscan;
	routine->amparallelrescan = wh_parallelrescan;

	PG_RETURN_POINTER(routine);
}
