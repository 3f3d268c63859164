/*-------------------------------------------------------------------------
 *
 * whsample.c
 *	  A sample of a table's keys, which gives rows the numbers that they are
 *	  sorted by.
 *
 * Sorting is fast if comparing two numbers tells which row is first.  The
 * first bytes of keys do not tell it if all begin with "https://www.".  So a
 * few keys, the sample, are read before the others.  In order, they divide all
 * keys into classes.  All keys between two neighbouring keys of the sample
 * begin with the prefix that these two share.  A row's number is its class and
 * the six bytes behind that prefix.  (Sample sort has such splitters: Frazer
 * and McKellar 1970.)
 *
 * Finding a row's class takes some comparisons.  If the seven bytes behind the
 * prefix of all keys of the sample tell these keys apart, only the least and
 * the greatest are kept.  That makes three classes, which take one byte of the
 * number and leave seven to the key.
 *
 * The order is right with any sample, also with an empty one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"
#include "wormhole/build/whbuild_impl.h"

#define SAMPLE_BLOCKS	64		/* the most that are read, evenly spread */
#define SAMPLE_FACTOR	16		/* at most one block in SAMPLE_FACTOR is read */
#define SAMPLE_ROWS		16		/* rows taken from each block */
#define SAMPLE_KEYS		(SAMPLE_BLOCKS * SAMPLE_ROWS)

/* The number may leave one pair of neighbours in TIES_ALLOWED keys equal. */
#define TIES_ALLOWED	256

/*
 * Bytes of a key in a number, if there are few classes, and if there are many.
 */
#define FEW_CLASSES		127
#define BYTES_FEW		7
#define BYTES_MANY		6

/* One key of the sample, and the class of keys before it. */
typedef struct Divider
{
	uint64		number;			/* the eight bytes behind the shared ones */
	uint32		off;			/* of the key */
	uint16		len;
	uint16		prefix;			/* what keys of the class share with it */
} Divider;

/*
 * It has no pointers, so that processes can share it.  The class behind the
 * last key has a divider, too, without a key.
 */
struct WhSample
{
	uint32		size;			/* of all */
	int32		n;				/* keys */
	int32		shared;			/* bytes that all keys begin with */
	int32		head_bytes;		/* bytes of a key in its number */
	Divider		dividers[FLEXIBLE_ARRAY_MEMBER];
	/* the keys follow */
};

/* The state of take_row(). */
typedef struct Taking
{
	WhKey		keys[SAMPLE_KEYS];
	int			n;
	int			left;			/* rows still to be taken from this block */
} Taking;

/*
 * table_index_build_range_scan callback: keeps the key of one row.  Keys that
 * are too long are left out; the build refuses them later.
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

/*
 * qsort() comparator: keys of the sample.
 */
static int
compare_taken(const void *a, const void *b)
{
	return wh_compare_keys(a, b);
}

/*
 * Reads the sample, and leaves its distinct keys in order.  The sample is
 * empty for tables that are very small or not heaps.
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
 * Do the BYTES_FEW bytes behind the shared ones tell keys apart?
 */
static bool
told_apart(const Taking *taking, int shared)
{
	int			ties = 0;

	for (int i = 1; i < taking->n; i++)
	{
		if (wh_common_prefix(&taking->keys[i - 1], &taking->keys[i]) >=
			shared + BYTES_FEW)
			ties++;
	}
	return ties <= taking->n / TIES_ALLOWED;
}

/*
 * The first eight bytes of a string as a number, the first the most
 * significant, padded with zeros.  Eight bytes must be readable.
 */
static inline uint64
first_bytes(const uint8 *data, int len)
{
	uint64		bytes;

	if (len <= 0)
		return 0;
	memcpy(&bytes, data, sizeof(bytes));
	bytes = pg_ntoh64(bytes);
	if (len < (int) sizeof(bytes))
		bytes &= ~UINT64CONST(0) << (8 * (sizeof(bytes) - len));
	return bytes;
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
	size += sizeof(uint64);		/* for first_bytes() */
	sample = palloc0(size);
	sample->size = size;
	sample->n = n;
	sample->head_bytes = n < FEW_CLASSES ? BYTES_FEW : BYTES_MANY;
	sample->shared = n > 0 ? wh_common_prefix(&keys[0], &keys[n - 1]) : 0;
	for (int i = 0; i < n; i++)
	{
		Divider    *divider = &sample->dividers[i];

		divider->off = off;
		divider->len = keys[i].len;
		divider->prefix = i > 0 ? wh_common_prefix(&keys[i - 1], &keys[i]) : 0;
		memcpy((char *) sample + off, keys[i].data, keys[i].len);
		divider->number = first_bytes((uint8 *) sample + off + sample->shared,
									  keys[i].len - sample->shared);
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
		wh_common_prefix(&taking->keys[0], &taking->keys[taking->n - 1]) : 0;
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
 * The size of the sample in bytes, for copying it.
 */
Size
wh_sample_size(const WhSample *sample)
{
	return sample->size;
}

/*
 * Is a key of the sample at or before another key?  That key begins with the
 * shared bytes, and number has the eight bytes behind them.
 */
static inline bool
at_or_before(const WhSample *sample, int at, uint64 number, const uint8 *key,
			 int len)
{
	const Divider *divider = &sample->dividers[at];
	int			cmp;

	if (divider->number != number)
		return divider->number < number;
	cmp = memcmp((char *) sample + divider->off, key,
				 Min((int) divider->len, len));
	return cmp < 0 || (cmp == 0 && (int) divider->len <= len);
}

/*
 * The class of a key: how many keys of the sample are at or before it.
 */
static inline int
find_class(const WhSample *sample, const uint8 *key, int len)
{
	int			first = 0;
	int			last = sample->n;
	int			shared = sample->shared;
	uint64		number;

	if (shared > 0)
	{
		int			cmp = memcmp(key, (char *) sample + sample->dividers[0].off,
								 Min(len, shared));

		if (cmp != 0)
			return cmp < 0 ? 0 : last;
		if (len < shared)
			return 0;
	}
	number = first_bytes(key + shared, len - shared);
	while (first < last)
	{
		int			middle = (first + last) / 2;

		if (at_or_before(sample, middle, number, key, len))
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

/*
 * Returns the number of a key; numbers are in the order of keys.  The number
 * gives back the first bytes of the key: *prefix bytes that the class shares,
 * and *taken bytes behind these.  Eight bytes behind the key must be readable.
 */
uint64
wh_sample_head(const WhSample *sample, const uint8 *key, int len, int *prefix,
			   int *taken)
{
	int			class = find_class(sample, key, len);
	int			head_bytes = sample->head_bytes;

	*prefix = sample->dividers[class].prefix;
	*taken = Min(len - *prefix, head_bytes);
	return (uint64) class << (8 * head_bytes) |
		first_bytes(key + *prefix, len - *prefix) >>
		(8 * (sizeof(uint64) - head_bytes));
}

/*
 * Writes the bytes that a number gives back to key: the class's prefix and
 * eight bytes more, of which the first *taken (see wh_sample_head()) are the
 * key's.  Returns the length of the prefix.
 */
int
wh_sample_start(const WhSample *sample, uint64 head, uint8 *key)
{
	int			head_bytes = sample->head_bytes;
	const Divider *divider = &sample->dividers[head >> (8 * head_bytes)];

	wh_copy_short(key, (const uint8 *) sample + divider->off, divider->prefix);
	head = pg_hton64(head << (8 * (sizeof(head) - head_bytes)));
	memcpy(key + divider->prefix, &head, sizeof(head));
	return divider->prefix;
}
