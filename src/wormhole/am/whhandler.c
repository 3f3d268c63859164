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
#include "access/genam.h"
#include "access/relation.h"
#include "access/stratnum.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "commands/progress.h"
#include "commands/vacuum.h"
#include "compat.h"
#include "fmgr.h"
#include "key/codec.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/rel.h"
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
 * Called before TRUNCATE, maybe before it has locked the table.  Raises an error if a
 * wormhole index would be emptied in place, and could not be restored by a rollback.
 * Core truncates in place where the table has got its file in this subtransaction, which
 * then has the lock.
 */
void
wh_forbid_truncate(Oid table)
{
	Relation	heap;
	ListCell   *cell;
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, table);
	if (!RF_HOLDS_LOCK(&tag, AccessExclusiveLock))
		return;
	heap = relation_open(table, NoLock);
	if (RF_NEW_FILE_SUBID(heap) == GetCurrentSubTransactionId())
	{
		foreach(cell, RelationGetIndexList(heap))
		{
			Relation	index = index_open(lfirst_oid(cell), AccessExclusiveLock);

			if (index->rd_indam->ambuild == wh_build)
				wh_forbid_moved_table(index, heap, false);
			index_close(index, NoLock);
		}
	}
	relation_close(heap, NoLock);
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
	static IndexAmRoutine routine = {
		.type = T_IndexAmRoutine,
		.amstrategies = BTMaxStrategyNumber,
		.amcanorder = true,
		.amcanbackward = true,
		.amcanunique = true,
		.amcanmulticol = true,
		.amoptionalkey = true,
		.amsearcharray = true,
		.amsearchnulls = true,
		.amclusterable = true,
		.ampredlocks = true,
		.amcanparallel = true,
		.amcaninclude = true,
		.amusemaintenanceworkmem = true,
		.amparallelvacuumoptions = VACUUM_OPTION_PARALLEL_BULKDEL |
		VACUUM_OPTION_PARALLEL_COND_CLEANUP,
		.amkeytype = InvalidOid,

		.ambuild = wh_build,
		.ambuildempty = wh_buildempty,
		.aminsert = wh_insert,
		.ambulkdelete = wh_bulkdelete,
		.amvacuumcleanup = wh_vacuumcleanup,
		.amcanreturn = wh_can_return,
		.amcostestimate = wh_costestimate,
		.amoptions = wh_options,
		.ambuildphasename = wh_buildphasename,
		.amvalidate = rf_validate_opclass,
		.ambeginscan = wh_beginscan,
		.amrescan = wh_rescan,
		.amgettuple = wh_gettuple,
		.amgetbitmap = wh_getbitmap,
		.amendscan = wh_endscan,
		.ammarkpos = wh_markpos,
		.amrestrpos = wh_restrpos,
		.amestimateparallelscan = wh_estimateparallelscan,
		.aminitparallelscan = wh_initparallelscan,
		.amparallelrescan = wh_parallelrescan
	};

	RF_SET_COMPARISONS(&routine);
	RF_RETURN_ROUTINE(&routine);
}
