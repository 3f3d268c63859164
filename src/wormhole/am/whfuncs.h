/*-------------------------------------------------------------------------
 *
 * whfuncs.h
 *	  What the SQL functions of the wormhole index share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_WHFUNCS_H
#define RANGEFILTER_WHFUNCS_H

#include "postgres.h"

#include "storage/lockdefs.h"
#include "utils/relcache.h"

/* whcheck.c */
extern void wh_open_index(Oid indexid, LOCKMODE lockmode, Relation *heap,
						  Relation *index);

#endif							/* RANGEFILTER_WHFUNCS_H */
