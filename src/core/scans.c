/*-------------------------------------------------------------------------
 *
 * scans.c
 *	  Counting scans of an index that is not open.
 *
 * What is expected of core: the statistics of a relation that wait to be passed on
 * are found by its OID, as core's own two-phase commit finds them, and none of them
 * needs an open relation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "core/core.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/pgstat_internal.h"

/*
 * Return true if the server has statistics of an index of this database.  Those of a dropped one are gone.
 * Takes no heavyweight lock.
 */
bool
rf_core_has_statistics(Oid index)
{
	return pgstat_have_entry(PGSTAT_KIND_RELATION, MyDatabaseId, index);
}

/*
 * Adds scans to the server's statistics of an index of this database
 * (pg_stat_all_indexes).  The server passes them on as it does those of its own scans.
 * The index must exist: statistics of a dropped one would stay.
 */
void
rf_core_count_scans(Oid index, uint64 n)
{
	PgStat_TableStatus *pending;

	if (!pgstat_track_counts)
		return;
	pending = pgstat_prep_pending_entry(PGSTAT_KIND_RELATION, MyDatabaseId,
										index, NULL)->pending;
	RF_PENDING_ID(pending) = index;
	RF_PENDING_SCANS(pending) += n;
}
