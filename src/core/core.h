/*-------------------------------------------------------------------------
 *
 * core.h
 *	  Every reach into what core does not promise to extensions.
 *
 * One small function for each reach.  It looks whether what it finds is what it
 * expects, and says so where it is not: its caller then does without.
 * src/core/README.md lists what is expected of core, and the test that fails where a
 * version of core differs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include "postgres.h"

#include "nodes/execnodes.h"

/* ---- hashtable.c: the rows of a hash join's table ---- */

/* Called for each row; the row stays where it is while the table does. */
typedef void (*RfCoreRow) (void *arg, MinimalTuple row);

extern void rf_core_hash_before_outer(HashJoinState *join);
extern bool rf_core_hash_is_readable(const HashJoinState *join, double max_rows);
extern bool rf_core_hash_read(const HashJoinState *join, RfCoreRow callback,
							  void *arg);

#endif							/* CORE_CORE_H */
