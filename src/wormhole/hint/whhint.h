/*-------------------------------------------------------------------------
 *
 * whhint.h
 *	  Finding the leaf of a position: by a hint in memory, or else by the
 *	  directory.
 *
 * The room offers the search for a leaf, and counts of the use of an index's
 * hint.  What a hint says is always checked against the leaf's bounds.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_WHHINT_H
#define RANGEFILTER_WHHINT_H

#include "postgres.h"

#include "wormhole/page/whpage.h"

/* How an index's hint has been used. */
typedef struct WhHintCounts
{
	int64		hits;			/* led to the leaf at once */
	int64		stale;			/* led elsewhere */
	int64		descents;		/* searches through the directory */
} WhHintCounts;

/* whfind.c */
extern Buffer wh_find_leaf(Relation index, const WhKey *key, WhSide side,
						   int lockmode);
extern Buffer wh_find_place(Relation index, const WhKey *key);
extern void wh_note_place(Relation index, const WhKey *key, Buffer buffer, int at);
extern bool wh_is_leaf_of(Relation index, Buffer buffer, const WhKey *key);
extern Buffer wh_step(Relation index, BlockNumber block, const WhKey *key,
					  WhSide side, int lockmode);

/* whhint.c */
extern void wh_hint_status(Relation index, WhHintCounts *counts, Size *size);
extern void wh_init_hints(void);

#endif							/* RANGEFILTER_WHHINT_H */
