/*-------------------------------------------------------------------------
 *
 * init.c
 *	  Loading the library: options, settings and hooks.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "planner/hooks.h"
#include "rangefilter/page/options.h"
#include "rangefilter/probe/probe.h"
#include "rangefilter/rangefilter.h"
#include "rangefilter/summarize/summarize.h"
#include "request/request.h"
#include "stats/stats.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/varlena.h"
#include "wormhole/am/wormhole.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

/*
 * The value for session_preload_libraries that adds this library to those that are there, as it is
 * written in SQL.
 */
static char *
preload_list(void)
{
	StringInfoData list;
	List	   *libraries;
	ListCell   *cell;

	initStringInfo(&list);
	if (SplitDirectoriesString(pstrdup(session_preload_libraries_string), ',', &libraries))
	{
		foreach(cell, libraries)
			appendStringInfo(&list, "%s, ", quote_literal_cstr(lfirst(cell)));
	}
	appendStringInfoString(&list, "'rangefilter'");
	return list.data;
}

/*
 * Warn that the library was not preloaded, if CREATE EXTENSION loads it: perhaps no setting does, as
 * after pg_restore without -C, which leaves out a database's settings.
 *
 * Not a NOTICE: neither CREATE EXTENSION nor a script by pg_dump lets these through.  pg_restore shows
 * warnings with --verbose only; the server's log has them.
 */
static void
warn_not_preloaded(void)
{
	if (!creating_extension ||
		CurrentExtensionObject != get_extension_oid("rangefilter", true))
		return;
	ereport(WARNING,
			(errmsg("library \"rangefilter\" was not loaded when this session started"),
			 errdetail("The first query of such a session skips no partitions."),
			 errhint("To load it in all sessions of this database: ALTER DATABASE %s SET session_preload_libraries = %s;",
					 quote_identifier(get_database_name(MyDatabaseId)), preload_list())));
}

/*
 * Called when the library is loaded: at the start of the server or of a
 * session, or else by whatever first needs the access method.
 */
void
_PG_init(void)
{
	rf_init_options();
	rf_init_stats();
	rf_init_shared();
	rf_init_requests();
	rf_init_removed();
	rf_init_loads();
	rf_init_vacuum();
	wh_init();
	rf_init_planner();
	MarkGUCPrefixReserved("rangefilter");
	MarkGUCPrefixReserved("wormhole");
	warn_not_preloaded();
}
