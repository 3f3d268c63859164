/*-------------------------------------------------------------------------
 *
 * clock.c
 *	  Whether anything can have become visible.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "core/core.h"
#include "planner/knowledge/knowledge.h"
#include "rangefilter/page/shared.h"

/*
 * Reads the clock.  To be called before summaries are read: as long as the
 * clock returns the same number, nothing has become visible to any snapshot,
 * and the summaries are as good as if read now.  No transaction with an id has
 * ended, this backend has given no row to indexes, and it has seen no
 * invalidation of a relation.  (The last is needed because its own commands
 * may rewrite a table, which builds indexes without inserting into them.  The
 * same command number would not prove anything: queries of an INSERT's
 * triggers see the rows it has put in place so far.)  None of the three counts
 * goes back, so their sum is the same only if each of them is.
 */
RfClock
rf_clock_read(void)
{
	return rf_core_completions() + rf_inserts + rf_changes();
}
