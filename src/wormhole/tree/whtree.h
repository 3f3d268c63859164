/*-------------------------------------------------------------------------
 *
 * whtree.h
 *	  The tree: descents from the root to a page, splits and deletions of
 *	  pages.
 *
 * The room offers the descent to the page of a position, splits, the
 * completion of incomplete splits, and the deletion of empty pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_WHTREE_H
#define RANGEFILTER_WHTREE_H

#include "postgres.h"

#include "wormhole/index/whindex.h"

/* whtree.c */
extern Buffer wh_descend(Relation index, const WhKey *key, WhSide side,
						 int level, int lockmode);
extern Buffer wh_move_right(Relation index, Buffer buffer, const WhKey *key,
							WhSide side, int level, int lockmode);
extern bool wh_finish_split(Relation index, Buffer buffer);
extern void wh_anchor_item(const WhKey *anchor, int prefix, BlockNumber child,
						   WhItem *item);
extern void wh_add_anchor(Relation index, Buffer left, Buffer right);

/* whsplit.c */
extern bool wh_split(Relation index, Buffer buffer, WhItemSet *set,
					 Buffer child);

/* whdelete.c */
extern int	wh_delete_page(Relation index, BlockNumber block, int level);

#endif							/* RANGEFILTER_WHTREE_H */
