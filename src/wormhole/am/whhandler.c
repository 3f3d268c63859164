/*-------------------------------------------------------------------------
 *
 * whhandler.c
 *	  The access method's handler.
 *
 * It lists the callbacks of the other rooms, and has those that concern the
 * access method as a whole.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/stratnum.h"
#include "access/xlog.h"
#include "commands/progress.h"
#include "commands/vacuum.h"
#include "fmgr.h"
#include "key/codec.h"
#include "wormhole/am/wormhole.h"
#include "wormhole/build/whbuild.h"
#include "wormhole/hint/whhint.h"
#include "wormhole/index/whindex.h"
#include "wormhole/scan/whscan.h"
#include "wormhole/write/whwrite.h"

PG_FUNCTION_INFO_V1(wormhole_handler);

/*
 * Registers options and settings, and requests shared memory.  Called once,
 * when the library is loaded.
 */
void
wh_init(void)
{
	wh_init_options();
	wh_init_hints();
}

/*
 * amcanreturn.  There are no index-only scans on a standby: it replays the
 * removal of entries without waiting for scans that are about to trust the
 * visibility map.
 */
static bool
wh_can_return(Relation index, int attno)
{
	return !RecoveryInProgress();
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
