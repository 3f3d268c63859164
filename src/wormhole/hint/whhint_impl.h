/*-------------------------------------------------------------------------
 *
 * whhint_impl.h
 *	  What the files of this room share: MetaTrieHT and a session's view of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_WHHINT_IMPL_H
#define RANGEFILTER_WHHINT_IMPL_H

#include "postgres.h"

#include "lib/stringinfo.h"
#include "storage/block.h"
#include "wormhole/hint/whhint.h"
#include "wormhole/index/whindex.h"

/* An anchor and its leaf, as read from the directory. */
typedef struct WhAnchor
{
	uint32		off;			/* of its bytes in WhAnchors.bytes */
	uint16		len;
	bool		has_tid;
	BlockNumber leaf;
} WhAnchor;

/* The anchors of an index, ascending. */
typedef struct WhAnchors
{
	int			n;
	int			space;			/* of anchors */
	WhAnchor   *anchors;
	StringInfoData bytes;
} WhAnchors;

/* Prefixes in a bucket, which is one cache line. */
#define WH_WAYS		8

typedef struct WhBucket
{
	uint16		tags[WH_WAYS];	/* low half of the prefix's hash */
	uint16		rest[WH_WAYS];	/* high half */
	uint32		nodes[WH_WAYS]; /* WH_NO_NODE: free, as are all places behind
								 * it */
} WhBucket;

#define WH_NO_NODE	PG_UINT32_MAX

/*
 * A prefix of anchors.  Nodes are numbered by length and then in order of
 * keys.  So the children of a node have consecutive numbers, and the children
 * of the next node follow them.
 */
typedef struct WhNode
{
	uint32		first;			/* of the anchors that begin so */
	uint32		last;
	uint32		child;			/* its first child; flag WH_IS_ANCHOR */
} WhNode;

#define WH_IS_ANCHOR	0x80000000	/* the first anchor is the prefix itself */

/*
 * A MetaTrieHT.  The arrays are in one piece of memory, in this order.  A
 * session has its own copy of this struct.  So it can search a shared trie
 * while another session overwrites the arrays: the result may be wrong, but
 * nothing outside of the memory is read.
 */
typedef struct WhTrie
{
	uint32		nbuckets;
	uint32		nnodes;
	uint32		nleaves;
	uint32		max_len;		/* of an anchor */
	WhBucket   *buckets;
	WhNode	   *nodes;			/* nnodes + 1 */
	BlockNumber *leaves;		/* by number of anchor */
	uint8	   *bytes;			/* the last byte of each node's prefix */
} WhTrie;

/*
 * A backend's view of an index's hint.  It is not freed before the index is
 * dropped, so relation cache entries may point to it.
 */
typedef struct WhHint
{
	Oid			relid;			/* hash key */
	bool		present;		/* there is a trie */
	uint64		identity;		/* the trie is of this build of the index */
	WhTrie		trie;
	void	   *memory;			/* the session's own; NULL: the trie is shared */
	Size		size;
	int			slot;			/* in shared memory */
	uint64		generation;		/* the slot's, as long as it has this trie */
	uint64		used;			/* time of the last use */
	int64		debt;			/* lookups that a new trie would have helped */
	int64		due;			/* debt at which to look for a new trie */
	int			tries;			/* recent lookups by the trie, and how many of
								 * them failed */
	int			failures;
	int			pause;			/* lookups left without the trie */
	WhHintCounts counts;
	WhHintCounts reported;		/* part of counts that is already in shared
								 * memory */
} WhHint;

/* whtrie.c */
extern Size wh_trie_size(const WhAnchors *anchors, WhTrie *trie);
extern void wh_trie_place(WhTrie *trie, void *memory);
extern void wh_trie_build(WhTrie *trie, const WhAnchors *anchors);
extern BlockNumber wh_trie_find(const WhTrie *trie, const WhKey *key,
								WhSide side);

/* whanchors.c */
extern bool wh_read_anchors(Relation index, Size limit, WhAnchors *anchors);

/* whhint.c */
extern void wh_forget_trie(WhHint *hint);
extern Buffer wh_walk_right(Relation index, BlockNumber block, const WhKey *key,
							WhSide side, int lockmode, int *steps);
extern Buffer wh_hint_find(Relation index, const WhKey *key, WhSide side,
						   int lockmode);
extern void wh_note_descent(Relation index);

/* whshared.c */
extern void wh_init_shared_hints(void);
extern bool wh_attach_shared(WhHint *hint, uint64 identity);
extern bool wh_shared_is_current(const WhHint *hint);
extern bool wh_share_trie(WhHint *hint);
extern void wh_share_counts(WhHint *hint, WhHintCounts *all);

#endif							/* RANGEFILTER_WHHINT_IMPL_H */
