/*-------------------------------------------------------------------------
 *
 * whoptions.c
 *	  WITH options, settings, and which columns and tables an index may have.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/reloptions.h"
#include "access/rmgr.h"
#include "core/core.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "wormhole/index/whindex.h"

/* Settings. */
bool		wh_enable_hint = true;
int			wh_hint_memory = 8192;	/* kB */
int			wh_hint_after = 4;	/* lookups for each leaf */

static int	wh_resource_manager = 0;

static relopt_kind wh_relopt_kind;

/*
 * May the setting wormhole.resource_manager have this value?
 */
static bool
check_manager(int *value, void **extra, GucSource source)
{
	if (*value == 0 || RmgrIdIsCustom(*value))
		return true;
	GUC_check_errdetail("Use 0 (off) or a custom resource manager ID from %d to %d.",
						RM_MIN_CUSTOM_ID, RM_MAX_CUSTOM_ID);
	return false;
}

/*
 * Makes the setting wormhole.resource_manager, and registers the resource
 * manager.  That is possible only where the library is preloaded: others are
 * told that the setting has no effect.  (They could not make a setting of
 * PGC_POSTMASTER, either.)
 */
static void
init_manager(void)
{
	bool		preloaded = process_shared_preload_libraries_in_progress;

	DefineCustomIntVariable("wormhole.resource_manager",
							"The ID of the resource manager that logs changes of wormhole indexes.",
							"With 0 generic WAL logs them.",
							&wh_resource_manager, 0, 0, RM_MAX_CUSTOM_ID,
							preloaded ? PGC_POSTMASTER : PGC_SIGHUP, 0,
							check_manager, NULL, NULL);
	if (wh_resource_manager == 0)
		return;
	if (preloaded)
		wh_register_manager(wh_resource_manager);
	else if (!IsParallelWorker())
		ereport(WARNING,
				(errmsg("wormhole.resource_manager has no effect"),
				 errdetail("The library \"rangefilter\" is not in shared_preload_libraries."),
				 errhint("Add it there and restart the server, or set wormhole.resource_manager to 0.")));
}

/*
 * Registers the settings.
 */
static void
init_settings(void)
{
	DefineCustomBoolVariable("wormhole.enable_hint",
							 "Finds leaves of wormhole indexes by hints in memory.",
							 NULL, &wh_enable_hint, true, PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("wormhole.hint_memory",
							"Memory of a session for hints to leaves of wormhole indexes.",
							"Where the library is preloaded, the server's setting is also the size of the memory for hints that all sessions share.",
							&wh_hint_memory, 8192, 64, 1024 * 1024,
							PGC_USERSET, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("wormhole.hint_after",
							"Number of lookups per leaf page before a session builds the index's hint.",
							"With 0 it is made at once.",
							&wh_hint_after, 4, 0, 1000000,
							PGC_USERSET, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	init_manager();
}

/*
 * Registers the WITH options and the settings.  Called once, when the library
 * is loaded.
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
	init_settings();
}

/*
 * amoptions.
 */
bytea *
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
 * Report what a new index, by this name, cannot serve: once, of the first column whose conditions
 * it does not serve; and of a unique index that is not built concurrently, that ON CONFLICT will
 * not work, if the server does not support it.
 */
static void
notice_limits(Relation index, const IndexInfo *index_info, const char *name)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (rf_notice_type(index, i, name))
			break;
	}
	if (!RF_ON_CONFLICT_BY_ANY && index_info->ii_Unique &&
		index->rd_createSubid != InvalidSubTransactionId)
		ereport(NOTICE,
				(errmsg("INSERT ... ON CONFLICT will not work on the table of unique wormhole index \"%s\"",
						name),
				 errdetail("The server supports it with unique indexes of access method btree only."),
				 errhint("Where ON CONFLICT is needed, use a unique btree index.")));
}

/*
 * Raise an error for operators and collations whose order keys cannot have.  Report what a new
 * index cannot serve.
 */
void
wh_check_definition(Relation index, IndexInfo *index_info)
{
	const char *name;

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		const RfCodec *codec = wh_cache(index)->format.columns[i].codec;
		Oid			collation = index->rd_indcollation[i];

		rf_check_operators(index, i);
		if (rf_codec_ordered(codec, collation))
			continue;
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("wormhole indexes do not support collation \"%s\"",
						get_collation_name(collation)),
				 errdetail("Keys are kept as bytes, which do not sort as this collation does."),
				 errhint("Use COLLATE \"C\", or a collation of ICU, on the column or the index.")));
	}
	name = rf_notice_name(index, index_info);
	if (name != NULL)
		notice_limits(index, index_info, name);
}

/*
 * Raises an error if the table has got another file in this transaction, and the index
 * not one with it or later.  A rollback would bring the table's old file back: new
 * entries would stay in the index, and other rows may come to their TIDs; an index that
 * was emptied in place would stay empty.  insert: about an insert, not TRUNCATE.
 */
void
wh_forbid_moved_table(Relation index, Relation heap, bool insert)
{
	const char *name = RelationGetRelationName(index);

	if (likely(!rf_core_is_moved(heap, index)))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 insert ?
			 errmsg("cannot insert into wormhole index \"%s\" in a transaction that has changed its table's tablespace", name) :
			 errmsg("cannot truncate wormhole index \"%s\" in a transaction that has changed its table's tablespace", name),
			 insert ?
			 errdetail("If the transaction is rolled back, the table gets its old file back, but the index keeps the new entries.") :
			 errdetail("If the transaction is rolled back, the table gets its old file back, but the index stays empty."),
			 errhint("Commit first, or REINDEX the index after moving the table.")));
}
