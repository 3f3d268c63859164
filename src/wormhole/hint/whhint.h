/*-------------------------------------------------------------------------
 *
 * whhint.h
 *	  The leaf of a position: by a hint in memory, or else by the directory.
 *
 * The room offers finding a leaf, and what the hint of an index has been used
 * for.  A hint is never the truth: the leaf's bounds are.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_WHHINT_H
#define RANGEFILTER_WHHINT_H

#include "postgres.h"

#include "wormhole/page/whpage.h"

/* What an index's hint has been used for. */
typedef struct WhHintCounts
{
	int64		hits;			/* led to the leaf at once */
	int64		stale;			/* led elsewhere */
	int64		descents;		/* ways through the directory */
} WhHintCounts;

/* whfind.c */
extern Buffer wh_find_leaf(Relation index, const WhKey *key, WhSide side,
						   int lockmode);
extern bool wh_is_leaf_of(Relation index, Buffer buffer, const WhKey *key);
extern Buffer wh_step(Relation index, BlockNumber block, const WhKey *key,
					  WhSide side, int lockmode);

/* whhint.c */
extern void wh_hint_status(Relation index, WhHintCounts *counts, Size *size);
extern void wh_init_hints(void);

#endif							/* RANGEFILTER_WHHINT_H */
