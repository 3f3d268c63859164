/*-------------------------------------------------------------------------
 *
 * rfhandler.c
 *	  The access method's handler, and what an index may be defined on.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_am_d.h"
#include "catalog/pg_collation.h"
#include "commands/progress.h"
#include "commands/vacuum.h"
#include "compat.h"
#include "key/rowkey.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "rangefilter/page/options.h"
#include "rangefilter/page/page.h"
#include "rangefilter/rangefilter.h"
#include "rangefilter/summarize/summarize.h"
#include "utils/builtins.h"
#include "utils/index_selfuncs.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

PG_FUNCTION_INFO_V1(rangefilter_handler);

/*
 * An index is ours if its handler gave it our build function; this holds for
 * partitioned indexes too and costs no catalog look-up.
 */
bool
rf_is_rangefilter(Relation index)
{
	return index->rd_indam != NULL && index->rd_indam->ambuild == rf_build;
}

/*
 * The same for an access method's OID.
 */
bool
rf_is_rangefilter_am(Oid am)
{
	const IndexAmRoutine *routine = GetIndexAmRoutineByAmId(am, true);

	return routine != NULL && routine->ambuild == rf_build;
}

/*
 * Report, by a NOTICE, which conditions an index of this name cannot serve under this collation: prefixes under
 * collations of ICU, ranges under others.
 */
static void
rf_notice_collation(const char *name, const RfCodec *codec, Oid collation)
{
	if (!rf_first_notice())
		return;
	if (codec->collator != NULL)
		ereport(NOTICE,
				(errmsg("index \"%s\" cannot skip partitions for LIKE prefixes",
						name),
				 errdetail("The index holds ICU sort keys of collation \"%s\", from which a prefix of the string cannot be recovered.",
						   get_collation_name(collation)),
				 errhint("For LIKE prefixes, create an index with COLLATE \"C\" after the column's name.")));
	else
		ereport(NOTICE,
				(errmsg("index \"%s\" cannot skip partitions for range conditions",
						name),
				 errdetail("The index orders strings bytewise; collation \"%s\" does not.",
						   get_collation_name(collation)),
				 errhint("For ranges, declare the column or the index with COLLATE \"C\" or an ICU collation.")));
}

/*
 * Raise an error for a key column of a type without an encoding, or with other operators than
 * btree's.
 */
static void
rf_check_column(Relation index, int column)
{
	Oid			collation = index->rd_indcollation[column];
	const RfCodec *codec = rf_codec_under(index->rd_opcintype[column],
										  collation);

	if (codec == NULL && rf_codec_find(index->rd_opcintype[column]) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("rangefilter indexes cannot use collation \"%s\"",
						get_collation_name(collation)),
				 errdetail("ICU's sort keys do not always agree with how this nondeterministic collation compares strings."),
				 errhint("Use a nondeterministic collation without \"ka-shifted\", \"ks-identic\", \"kr\" and \"kn\", and without backwards comparison of accents.")));
	if (codec == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("type %s has no key encoding for rangefilter indexes",
						format_type_be(index->rd_opcintype[column])),
				 errhint("Use one of the operator classes that come with rangefilter.")));
	rf_check_operators(index, column);
}

/*
 * Report what an index of this name cannot serve: once, of the first of its columns about which
 * there is something to say.
 */
static void
rf_notice_columns(Relation index, const char *name)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Oid			collation = index->rd_indcollation[i];
		const RfCodec *codec = rf_codec_under(index->rd_opcintype[i], collation);

		/*
		 * Of an index that serves no condition it would be wrong to say that
		 * it serves some.
		 */
		if (rf_notice_type(index, i, name))
			return;
		if (codec->collatable &&
			(codec->collator != NULL ? get_collation_isdeterministic(collation) :
			 !rf_codec_ordered(codec, collation)))
		{
			rf_notice_collation(name, codec, collation);
			return;
		}
	}
}

/*
 * Raise an error for an index without a possible summary: on too many key columns, with SNARF over
 * byte strings, or with a column that rf_check_column() refuses.  Report what a new index cannot
 * serve.  Core calls this only when an index is built: an index of a partitioned table is not
 * looked at before the first partition has one.
 */
void
rf_check_definition(Relation heap, Relation index, IndexInfo *index_info)
{
	const char *name;

	if (index_info->ii_NumIndexKeyAttrs > RF_MAX_COLUMNS)
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_COLUMNS),
				 errmsg("a rangefilter index has at most %d key columns",
						RF_MAX_COLUMNS),
				 errhint("Leave out the last columns, or create several indexes; queries use them together.")));
	for (int i = 0; i < index_info->ii_NumIndexKeyAttrs; i++)
		rf_check_column(index, i);
	name = rf_notice_name(index, index_info);
	if (name != NULL)
		rf_notice_columns(index, name);
	if (rf_index_codec(index)->kind == RF_KEY_BYTES &&
		rf_index_options(index)->filter == RF_FILTER_SNARF)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 index_info->ii_NumIndexKeyAttrs > 1 ?
				 errmsg("filter \"snarf\" cannot summarize several columns") :
				 errmsg("filter \"snarf\" cannot summarize type %s",
						format_type_be(index->rd_opcintype[0])),
				 errdetail("SNARF takes numbers of up to 64 bits."),
				 errhint("Use filter \"surf\" or \"auto\".")));
}

/*
 * ambuildphasename.
 */
static char *
rf_buildphasename(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case RF_PHASE_SCAN:
			return "scanning table";
		case RF_PHASE_SORT:
			return "sorting keys";
		case RF_PHASE_WRITE:
			return "building filter";
		default:
			return NULL;
	}
}

/*
 * The access method's handler.
 */
Datum
rangefilter_handler(PG_FUNCTION_ARGS)
{
	static IndexAmRoutine routine = {
		.type = T_IndexAmRoutine,
		.amstrategies = BTMaxStrategyNumber,
		.amcanmulticol = true,	/* up to RF_MAX_COLUMNS */
		.amoptionalkey = true,
		.amsearchnulls = true,
		.amusemaintenanceworkmem = true,
		.amparallelvacuumoptions = VACUUM_OPTION_NO_PARALLEL,
		.amkeytype = InvalidOid,

		.ambuild = rf_build,
		.ambuildempty = rf_buildempty,
		.aminsert = rf_insert,
		.ambulkdelete = rf_bulkdelete,
		.amvacuumcleanup = rf_vacuumcleanup,
		.amcostestimate = rf_costestimate,
		.ambeginscan = rf_beginscan,
		.amrescan = rf_rescan,
		.amgetbitmap = rf_getbitmap,
		.amendscan = rf_endscan,
		.amoptions = rf_options,
		.ambuildphasename = rf_buildphasename,
		.amvalidate = rf_validate_opclass
	};

	RF_SET_INSERT_CLEANUP(&routine, rf_insert_cleanup);
	RF_SET_SUMMARIZING(&routine);
	RF_RETURN_ROUTINE(&routine);
}
