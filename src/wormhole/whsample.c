/*-------------------------------------------------------------------------
 *
 * whsample.c
 *	  Keys of a table's sample, by which rows get numbers to be sorted by.
 *
 * Sorting is fast where comparing two numbers says which row is first.  The
 * first bytes of keys do not say it if all begin with "https://www.".  So a
 * few keys are read before the others; in order, they divide all keys into
 * classes, and the keys between two of the sample begin with what these two
 * begin with.  A row's number is its class and the six bytes behind that
 * prefix.  (As sample sort has splitters: Frazer and McKellar 1970.)
 *
 * To find a row's class takes some comparisons.  Where the six bytes behind
 * what all the sample has in common tell its keys apart, the least and the
 * greatest of them are enough, and there are three classes.
 *
 * Any sample gives the right order, none at all as well.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"
#include "wormhole/whbuild.h"

#define SAMPLE_BLOCKS	64		/* read at most, evenly spread */
#define SAMPLE_FACTOR	16		/* nor more than one in so many */
#define SAMPLE_ROWS		16		/* taken of each */
#define SAMPLE_KEYS		(SAMPLE_BLOCKS * SAMPLE_ROWS)

/* So many more keys than pairs of neighbours that six bytes do not tell apart. */
#define TIES_ALLOWED	256

/* One key of the sample, and the class of keys before it. */
typedef struct Divider
{
	uint32		off;			/* of the key */
	uint16		len;
	uint16		prefix;			/* what keys of the class share with it */
} Divider;

/*
 * Without pointers, to be shared.  The class behind the last key has a divider
 * too, without a key.
 */
struct WhSample
{
	uint32		size;			/* of all */
	int32		n;				/* keys */
	int32		shared;			/* bytes that all keys begin with */
	Divider		dividers[FLEXIBLE_ARRAY_MEMBER];
	/* the keys follow */
};

/* The state of take_row(). */
typedef struct Taking
{
	WhKey		keys[SAMPLE_KEYS];
	int			n;
	int			left;			/* to be taken of this block */
} Taking;

/*
 * table_index_build_range_scan callback: keeps the key of one row.  Those that
 * are too long will be refused later.
 */
static void
take_row(Relation index, ItemPointer tid, Datum *values, bool *isnull,
		 bool alive, void *arg)
{
	Taking	   *taking = arg;
	WhKey	   *key = &taking->keys[taking->n];
	StringInfoData bytes;
	StringInfoData payload;

	if (taking->left == 0)
		return;
	initStringInfo(&bytes);
	initStringInfo(&payload);
	wh_encode(index, values, isnull, &bytes, &payload);
	pfree(payload.data);
	if (bytes.len > WH_MAX_ENTRY)
	{
		pfree(bytes.data);
		return;
	}
	memset(key, 0, sizeof(*key));
	key->data = (uint8 *) bytes.data;
	key->len = bytes.len;
	taking->n++;
	taking->left--;
}

static int
compare_taken(const void *a, const void *b)
{
	return wh_compare_keys(a, b);
}

/*
 * Reads the sample, and leaves what differs of it in order.  Tables that are
 * very small or not heaps have none.
 */
static void
take_sample(Relation heap, Relation index, IndexInfo *index_info,
			Taking *taking)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(heap);
	int			nread = Min(nblocks / SAMPLE_FACTOR, SAMPLE_BLOCKS);
	int			n = 0;

	if (heap->rd_tableam != GetHeapamTableAmRoutine())
		return;
	for (int i = 0; i < nread; i++)
	{
		taking->left = SAMPLE_ROWS;
		table_index_build_range_scan(heap, index, index_info, false, false,
									 false, (uint64) nblocks * i / nread, 1,
									 take_row, taking, NULL);
	}
	qsort(taking->keys, taking->n, sizeof(WhKey), compare_taken);
	for (int i = 0; i < taking->n; i++)
	{
		if (n == 0 || wh_compare_keys(&taking->keys[n - 1],
									  &taking->keys[i]) != 0)
			taking->keys[n++] = taking->keys[i];
	}
	taking->n = n;
}

/*
 * How many bytes two keys begin with alike.
 */
static int
common_length(const WhKey *a, const WhKey *b)
{
	int			most = Min(a->len, b->len);
	int			len = 0;

	while (len < most && a->data[len] == b->data[len])
		len++;
	return len;
}

/*
 * Do six bytes behind the shared ones tell keys apart?
 */
static bool
told_apart(const Taking *taking, int shared)
{
	int			ties = 0;

	for (int i = 1; i < taking->n; i++)
	{
		if (common_length(&taking->keys[i - 1], &taking->keys[i]) >=
			shared + WH_HEAD_BYTES)
			ties++;
	}
	return ties <= taking->n / TIES_ALLOWED;
}

/*
 * Makes a sample of n keys.
 */
static WhSample *
make_sample(const WhKey *keys, int n)
{
	Size		size = offsetof(WhSample, dividers) + (n + 1) * sizeof(Divider);
	uint32		off = size;
	WhSample   *sample;

	for (int i = 0; i < n; i++)
		size += keys[i].len;
	sample = palloc0(size);
	sample->size = size;
	sample->n = n;
	sample->shared = n > 0 ? common_length(&keys[0], &keys[n - 1]) : 0;
	for (int i = 0; i < n; i++)
	{
		Divider    *divider = &sample->dividers[i];

		divider->off = off;
		divider->len = keys[i].len;
		divider->prefix = i > 0 ? common_length(&keys[i - 1], &keys[i]) : 0;
		memcpy((char *) sample + off, keys[i].data, keys[i].len);
		off += keys[i].len;
	}
	return sample;
}

/*
 * Reads a sample of the rows to be indexed.  Palloc'd in one piece.
 */
WhSample *
wh_sample_take(Relation heap, Relation index, IndexInfo *index_info)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "wormhole sample",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Taking	   *taking = palloc0(sizeof(Taking));
	WhSample   *sample;
	int			shared;

	take_sample(heap, index, index_info, taking);
	shared = taking->n > 0 ?
		common_length(&taking->keys[0], &taking->keys[taking->n - 1]) : 0;
	if (taking->n > 2 && told_apart(taking, shared))
	{
		taking->keys[1] = taking->keys[taking->n - 1];
		taking->n = 2;
	}
	MemoryContextSwitchTo(old);
	sample = make_sample(taking->keys, taking->n);
	MemoryContextDelete(context);
	return sample;
}

/*
 * How many bytes there are, to be copied.
 */
Size
wh_sample_size(const WhSample *sample)
{
	return sample->size;
}

/*
 * Compares a key of the sample, from a byte on that both have, with another.
 */
static inline int
compare_divider(const WhSample *sample, int at, int from, const uint8 *key,
				int len)
{
	const Divider *divider = &sample->dividers[at];
	int			cmp = memcmp((char *) sample + divider->off + from, key + from,
							 Min((int) divider->len, len) - from);

	return cmp != 0 ? cmp : (int) divider->len - len;
}

/*
 * How many keys of the sample are at or before a key.
 */
static inline int
find_class(const WhSample *sample, const uint8 *key, int len)
{
	int			first = 1;
	int			last = sample->n - 1;

	if (sample->n == 0 || compare_divider(sample, 0, 0, key, len) > 0)
		return 0;
	if (compare_divider(sample, last, 0, key, len) <= 0)
		return sample->n;

	/* Between these two, it begins as both do. */
	while (first < last)
	{
		int			middle = (first + last) / 2;

		if (compare_divider(sample, middle, sample->shared, key, len) <= 0)
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

/*
 * The number of a key, which is in the order of keys, and how many of the key's
 * bytes it tells: those of its class's prefix, and *taken behind it.
 */
uint64
wh_sample_head(const WhSample *sample, const uint8 *key, int len, int *prefix,
			   int *taken)
{
	int			class = find_class(sample, key, len);
	uint64		bytes = 0;

	*prefix = sample->dividers[class].prefix;
	*taken = Min(len - *prefix, WH_HEAD_BYTES);
	memcpy(&bytes, key + *prefix, *taken);
	return (uint64) class << (8 * WH_HEAD_BYTES) |
		pg_ntoh64(bytes) >> (8 * (sizeof(bytes) - WH_HEAD_BYTES));
}

/*
 * Writes the bytes that a number tells: those of the prefix, the length of which
 * is returned, and WH_HEAD_BYTES more, of which the key may have fewer.
 */
int
wh_sample_start(const WhSample *sample, uint64 head, uint8 *key)
{
	const Divider *divider = &sample->dividers[head >> (8 * WH_HEAD_BYTES)];

	memcpy(key, (const char *) sample + divider->off, divider->prefix);
	head = pg_hton64(head << (8 * (sizeof(head) - WH_HEAD_BYTES)));
	memcpy(key + divider->prefix, &head, WH_HEAD_BYTES);
	return divider->prefix;
}
