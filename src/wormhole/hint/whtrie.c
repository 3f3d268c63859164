/*-------------------------------------------------------------------------
 *
 * whtrie.c
 *	  MetaTrieHT: finds the leaf of a key by a few probes of a hash table.
 *
 * The table has all prefixes of all anchors.  The longest prefix that a key
 * shares with any anchor is found by a binary search on its length, with one
 * probe for each length tried (Wormhole paper, section 3).  The key's next
 * byte lies between two children of this prefix, and so between two anchors.
 * That determines the leaf.
 *
 * The result may be wrong.  The table has only the hash of a prefix (CRC32C;
 * the hash of a longer prefix is computed from that of a shorter one), and
 * leaves may have been split since the table was made.  The caller checks the
 * bounds of the page.
 *
 * Differences from the paper: no token ends anchors, so any bytes may be in
 * them.  Instead a node has the first and the last of the anchors that begin
 * with it, and a flag whether the first one ends there.  There is no bitmap of
 * children: children have consecutive numbers, and the last byte of each is
 * stored.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "wormhole/hint/whhint_impl.h"

/* How many of 16 places are used when the table is made. */
#define FILL_SIXTEENTHS		10

/*
 * The hash of a prefix extended by some bytes.
 */
static inline uint32
extend_hash(uint32 hash, const uint8 *data, int len)
{
	pg_crc32c	crc = hash;

	COMP_CRC32C(crc, data, len);
	return crc;
}

/*
 * The bucket where a hash's search begins.  CRCs of short strings differ in
 * few bits; the multiplication spreads them.
 */
static inline uint32
first_bucket(const WhTrie *trie, uint32 hash)
{
	return ((uint64) (hash * 0x9E3779B1U) * trie->nbuckets) >> 32;
}

/*
 * The bucket behind another one; the first follows the last.
 */
static inline uint32
next_bucket(const WhTrie *trie, uint32 bucket)
{
	return bucket + 1 == trie->nbuckets ? 0 : bucket + 1;
}

/*
 * The length of the prefix that an anchor shares with the one before it.
 */
static int
shared_length(const WhAnchors *anchors, int i)
{
	const uint8 *bytes = (const uint8 *) anchors->bytes.data;
	const WhAnchor *anchor = &anchors->anchors[i];

	return i == 0 ? 0 :
		wh_common_length(bytes + anchor[-1].off, anchor[-1].len,
						 bytes + anchor->off, anchor->len);
}

/*
 * Fills in the numbers of a trie of these anchors, and returns how many bytes
 * it takes.
 */
Size
wh_trie_size(const WhAnchors *anchors, WhTrie *trie)
{
	int64		nnodes = 1;

	memset(trie, 0, sizeof(*trie));
	for (int i = 0; i < anchors->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		nnodes += anchors->anchors[i].len - shared_length(anchors, i);
		trie->max_len = Max(trie->max_len, anchors->anchors[i].len);
	}
	if (nnodes >= WH_IS_ANCHOR)
		return SIZE_MAX;
	trie->nnodes = nnodes;
	trie->nleaves = anchors->n;
	trie->nbuckets = nnodes * 16 / (WH_WAYS * FILL_SIXTEENTHS) + 1;
	return trie->nbuckets * sizeof(WhBucket) +
		(nnodes + 1) * sizeof(WhNode) +
		trie->nleaves * sizeof(BlockNumber) + nnodes;
}

/*
 * Sets the arrays' addresses in memory of that size, which is aligned to cache
 * lines.
 */
void
wh_trie_place(WhTrie *trie, void *memory)
{
	trie->buckets = memory;
	trie->nodes = (WhNode *) (trie->buckets + trie->nbuckets);
	trie->leaves = (BlockNumber *) (trie->nodes + trie->nnodes + 1);
	trie->bytes = (uint8 *) (trie->leaves + trie->nleaves);
}

/*
 * Puts a node into the table.
 */
static void
add_node(WhTrie *trie, uint32 hash, uint32 node)
{
	uint32		bucket = first_bucket(trie, hash);

	for (;; bucket = next_bucket(trie, bucket))
	{
		WhBucket   *b = &trie->buckets[bucket];

		for (int way = 0; way < WH_WAYS; way++)
		{
			if (b->nodes[way] != WH_NO_NODE)
				continue;
			b->tags[way] = (uint16) hash;
			b->rest[way] = hash >> 16;
			b->nodes[way] = node;
			return;
		}
	}
}

/*
 * Sets next[len] to the number of the first node of each length, from 1 on.
 */
static void
number_lengths(const WhTrie *trie, const WhAnchors *anchors, uint32 *next)
{
	uint32		at = 1;

	memset(next, 0, (trie->max_len + 3) * sizeof(uint32));
	for (int i = 0; i < anchors->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		for (int len = shared_length(anchors, i) + 1;
			 len <= anchors->anchors[i].len; len++)
			next[len]++;
	}
	for (uint32 len = 1; len < trie->max_len + 3; len++)
	{
		uint32		n = next[len];

		next[len] = at;
		at += n;
	}
}

/*
 * Fills in a trie whose arrays have been placed.  Nothing is locked: it may take a while, and be
 * cancelled.
 */
void
wh_trie_build(WhTrie *trie, const WhAnchors *anchors)
{
	uint32	   *next = palloc((trie->max_len + 3) * sizeof(uint32));
	uint32	   *hashes = palloc((trie->max_len + 1) * sizeof(uint32));

	memset(trie->buckets, 0xFF, trie->nbuckets * sizeof(WhBucket));
	number_lengths(trie, anchors, next);
	INIT_CRC32C(hashes[0]);
	trie->nodes[0].first = 0;
	trie->nodes[0].child = next[1] | WH_IS_ANCHOR;
	trie->bytes[0] = 0;
	for (int i = 0; i < anchors->n; i++)
	{
		const WhAnchor *anchor = &anchors->anchors[i];
		const uint8 *bytes = (const uint8 *) anchors->bytes.data + anchor->off;

		CHECK_FOR_INTERRUPTS();
		trie->leaves[i] = anchor->leaf;
		trie->nodes[0].last = i;
		for (int len = shared_length(anchors, i) + 1; len <= anchor->len; len++)
		{
			uint32		node = next[len]++;

			hashes[len] = extend_hash(hashes[len - 1], bytes + len - 1, 1);
			trie->nodes[node].first = i;
			trie->nodes[node].child = next[len + 1];
			if (len == anchor->len && !anchor->has_tid)
				trie->nodes[node].child |= WH_IS_ANCHOR;
			trie->bytes[node] = bytes[len - 1];
			add_node(trie, hashes[len], node);
		}
		for (int len = 1; len <= anchor->len; len++)
			trie->nodes[next[len] - 1].last = i;
	}
	trie->nodes[trie->nnodes].first = trie->nleaves;
	trie->nodes[trie->nnodes].last = trie->nleaves;
	trie->nodes[trie->nnodes].child = trie->nnodes;
	pfree(next);
	pfree(hashes);
}

/*
 * Read a number of a node, bucket or leaf once.  Another session may overwrite a shared trie
 * meanwhile: a number that is checked, or by which a loop ends, must be the one that is used.
 */
static inline uint32
read_once(const uint32 *number)
{
	return *(const volatile uint32 *) number;
}

/*
 * The node of a prefix, or WH_NO_NODE.
 */
static inline uint32
find_node(const WhTrie *trie, uint32 hash)
{
	const uint64 ones = UINT64CONST(0x0001000100010001);
	uint64		tag = (uint16) hash * ones;
	uint32		bucket = first_bucket(trie, hash);

	for (uint32 probes = 0; probes < trie->nbuckets; probes++)
	{
		const WhBucket *b = &trie->buckets[bucket];

		/* Four tags at a time: is any 16 bits of the difference zero? */
		for (int half = 0; half < WH_WAYS; half += 4)
		{
			uint64		word;

			memcpy(&word, &b->tags[half], sizeof(word));
			word ^= tag;
			if (((word - ones) & ~word & (ones << 15)) == 0)
				continue;
			for (int way = half; way < half + 4; way++)
			{
				uint32		node;

				if (b->tags[way] != (uint16) hash ||
					b->rest[way] != (uint16) (hash >> 16))
					continue;
				node = read_once(&b->nodes[way]);
				if (node < trie->nnodes)
					return node;
			}
		}
		if (b->nodes[WH_WAYS - 1] == WH_NO_NODE)
			break;
		bucket = next_bucket(trie, bucket);
	}
	return WH_NO_NODE;
}

/*
 * The node of the longest prefix of a key that is in the table.  Sets *length
 * to the prefix's length.
 */
static uint32
longest_prefix(const WhTrie *trie, const WhKey *key, int *length)
{
	int			least = 0;
	int			most = Min(key->len, (int) trie->max_len);
	uint32		found = 0;
	uint32		hash;

	INIT_CRC32C(hash);
	while (least < most)
	{
		int			middle = (least + most + 1) / 2;
		uint32		longer = extend_hash(hash, key->data + least,
										 middle - least);
		uint32		node = find_node(trie, longer);

		if (node == WH_NO_NODE)
			most = middle - 1;
		else
		{
			found = node;
			hash = longer;
			least = middle;
		}
	}
	*length = least;
	return found;
}

/*
 * The number of the last anchor that is not after a key.  The key begins with
 * a node's prefix and goes on with a byte that none of the node's children
 * has.
 */
static uint32
anchor_of_longer(const WhTrie *trie, uint32 node, uint8 byte)
{
	uint32		first_child = read_once(&trie->nodes[node].child);
	uint32		child = first_child & ~WH_IS_ANCHOR;
	uint32		from = child;
	uint32		to = read_once(&trie->nodes[node + 1].child) & ~WH_IS_ANCHOR;

	if (to > trie->nnodes)
		return PG_UINT32_MAX;
	while (from < to)
	{
		uint32		middle = from + (to - from) / 2;

		if (trie->bytes[middle] < byte)
			from = middle + 1;
		else
			to = middle;
	}
	if (from > child)
		return read_once(&trie->nodes[from - 1].last);
	return read_once(&trie->nodes[node].first) -
		((first_child & WH_IS_ANCHOR) ? 0 : 1);
}

/*
 * The same for a key without TID that is a node's prefix.
 */
static uint32
anchor_of_prefix(const WhTrie *trie, uint32 node, WhSide side)
{
	uint32		first = read_once(&trie->nodes[node].first);

	if (first > 0 && (side == WH_BEFORE ||
					  !(read_once(&trie->nodes[node].child) & WH_IS_ANCHOR)))
		first--;
	return first;
}

/*
 * The leaf of a position, which may be wrong; InvalidBlockNumber if the trie
 * cannot tell.
 */
BlockNumber
wh_trie_find(const WhTrie *trie, const WhKey *key, WhSide side)
{
	uint32		anchor;
	uint32		node;
	int			len;

	if (key->data == NULL)
		anchor = trie->nleaves - 1;
	else
	{
		node = longest_prefix(trie, key, &len);
		if (len < key->len)
			anchor = anchor_of_longer(trie, node, key->data[len]);
		else if (!key->has_tid)
			anchor = anchor_of_prefix(trie, node, side);
		else
			return InvalidBlockNumber;
	}
	return anchor < trie->nleaves ? trie->leaves[anchor] : InvalidBlockNumber;
}
