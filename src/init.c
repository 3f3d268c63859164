/*-------------------------------------------------------------------------
 *
 * init.c
 *	  Loading the library: options, settings and hooks.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "planner/hooks.h"
#include "rangefilter/page/options.h"
#include "rangefilter/probe/probe.h"
#include "rangefilter/rangefilter.h"
#include "rangefilter/summarize/summarize.h"
#include "request/request.h"
#include "stats/stats.h"
#include "utils/guc.h"
#include "wormhole/am/wormhole.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

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
	wh_init();
	rf_init_planner();
	MarkGUCPrefixReserved("rangefilter");
	MarkGUCPrefixReserved("wormhole");
}
