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
 * Reads the clock.  Called before summaries are read: as long as this function
 * returns the same number, nothing has become visible to any snapshot, and the
 * summaries are as good as if read now.  The number is the sum of three
 * counts: transactions with an id that have ended, rows that this backend has
 * given to indexes, and invalidations of relations that it has seen.  None of
 * them goes back, so the sum is the same only if all three are.
 * (Invalidations count because the backend's own commands may rewrite a table,
 * which builds indexes without inserting into them.  The command number would
 * not do: queries of an INSERT's triggers see the rows that it has put in
 * place so far.)
 */
RfClock
rf_clock_read(void)
{
	return rf_core_completions() + rf_inserts + rf_changes();
}
