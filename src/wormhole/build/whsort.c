/*-------------------------------------------------------------------------
 *
 * whsort.c
 *	  Sorting the rows of an index to be built.
 *
 * Core sorts tuples of several columns (tuplesort's "heap" variant), in one
 * process or several, in memory or on disk.  If the first column is a number,
 * core compares it without looking into the tuple.  So a row is sorted as a
 * tuple of two columns:
 *
 *	head	bigint: a number in the order of keys, which tells how the key
 *			begins (whsample.c)
 *	rest	bytea: what follows of the key, the TID, highest byte first, and,
 *			in indexes that have payloads, the payload and its length in two
 *			bytes
 *
 * A byte of flags is not compared.  It is in the byte of the header where the
 * bitmap of nulls would begin, since these tuples have no nulls.  So a uuid's
 * tuple has 40 bytes instead of 41, and takes 64 bytes of the sort's memory
 * instead of 72.
 *
 * No key is a prefix of another.  So two keys that differ do so in a byte that
 * both have: either in the heads, which are padded with zeros, or in the
 * rests.
 *
 * Tuples are put together and taken apart here, in the form that
 * heap_form_minimal_tuple() gives them.  This is faster, and is done once for
 * every row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "compat.h"
#include "executor/tuptable.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"
#include "wormhole/build/whbuild_impl.h"

/* Where a tuple's columns are. */
#define ROW_HEAD		MAXALIGN(SizeofMinimalTupleHeader)
#define ROW_REST		(ROW_HEAD + sizeof(uint64))

/*
 * The byte of flags.  TAKEN_MASK: how many bytes behind the prefix are in the
 * head.
 */
#define ROW_FLAGS		offsetof(MinimalTupleData, t_bits)
#define FLAG_ALIVE		0x10
#define FLAG_NULLS		0x20
#define TAKEN_MASK		0x0F

/* Behind a key: the TID. */
#define TAIL_SIZE		sizeof(ItemPointerData)

/* The longest tuple: key and payload are limited together. */
#define MAX_TUPLE \
	(ROW_REST + VARHDRSZ + WH_MAX_ENTRY + TAIL_SIZE + sizeof(uint16))

struct WhSort
{
	Relation	heap;
	Relation	index;
	const WhSample *sample;
	int			nkeys;			/* key columns */
	bool		payloads;
	Tuplesortstate *sort;
	TupleTableSlot *slot;
	MemoryContext row_context;	/* reset with each row */
	StringInfoData key;
	StringInfoData payload;
	MinimalTuple tuple;			/* the row being put in, of MAX_TUPLE bytes */
};

/*
 * Begins a sort in "memory" kB.  coordinate is tuplesort's.  The
 * sample is the same for all processes, and must outlive the sort.
 */
WhSort *
wh_sort_begin(Relation heap, Relation index, const WhSample *sample,
			  int memory, SortCoordinate coordinate)
{
	WhSort	   *sort = palloc0(sizeof(WhSort));
	TupleDesc	desc = CreateTemplateTupleDesc(2);
	AttrNumber	columns[] = {1, 2};
	Oid			operators[] = {Int8LessOperator, ByteaLessOperator};
	Oid			collations[] = {InvalidOid, InvalidOid};
	bool		nulls_first[] = {false, false};

	TupleDescInitEntry(desc, 1, "head", INT8OID, -1, 0);
	TupleDescInitEntry(desc, 2, "rest", BYTEAOID, -1, 0);
	RF_FINISH_DESC(desc);
	sort->heap = heap;
	sort->index = index;
	sort->sample = sample;
	sort->nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	sort->payloads = wh_cache(index)->may_have_payload;
	sort->sort = tuplesort_begin_heap(desc, 2, columns, operators, collations,
									  nulls_first, memory, coordinate,
									  TUPLESORT_NONE);
	sort->slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	sort->row_context = AllocSetContextCreate(CurrentMemoryContext,
											  "wormhole row",
											  ALLOCSET_SMALL_SIZES);
	initStringInfo(&sort->key);
	initStringInfo(&sort->payload);
	enlargeStringInfo(&sort->key, WH_MAX_ENTRY + WH_SORT_SLACK);

	/* The slot keeps this tuple while rows are put in. */
	sort->tuple = palloc0(MAX_TUPLE);
	sort->tuple->t_infomask2 = 2;	/* columns */
	sort->tuple->t_infomask = HEAP_HASVARWIDTH;
	sort->tuple->t_hoff = ROW_HEAD + MINIMAL_TUPLE_OFFSET;
	ExecStoreMinimalTuple(sort->tuple, sort->slot, false);
	return sort;
}

/*
 * Writes the second column of the tuple: the key from a byte on, and what
 * follows it.  Returns the tuple's length.
 */
static int
put_rest(WhSort *sort, int from, ItemPointer tid)
{
	uint32		block = pg_hton32(ItemPointerGetBlockNumber(tid));
	uint16		offset = pg_hton16(ItemPointerGetOffsetNumber(tid));
	uint16		payload_len = sort->payload.len;
	int			rest = sort->key.len - from;
	int			len = rest + TAIL_SIZE +
	(sort->payloads ? payload_len + sizeof(payload_len) : 0);
	uint8	   *at = (uint8 *) sort->tuple + ROW_REST;

	if (len + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
	{
		SET_VARSIZE_SHORT(at, len + VARHDRSZ_SHORT);
		at += VARHDRSZ_SHORT;
	}
	else
	{
		SET_VARSIZE(at, len + VARHDRSZ);
		at += VARHDRSZ;
	}
	len += at - (uint8 *) sort->tuple;
	wh_copy_short(at, (uint8 *) sort->key.data + from, rest);
	at += rest;
	memcpy(at, &block, sizeof(block));
	memcpy(at + sizeof(block), &offset, sizeof(offset));
	if (sort->payloads)
	{
		at += TAIL_SIZE;
		memcpy(at, sort->payload.data, payload_len);
		memcpy(at + payload_len, &payload_len, sizeof(payload_len));
	}
	return len;
}

/*
 * Makes the tuple of sort->key, sort->payload, a TID and flags.
 */
static void
make_tuple(WhSort *sort, ItemPointer tid, uint8 flags)
{
	int			prefix;
	int			taken;
	uint64		head = wh_sample_head(sort->sample, (uint8 *) sort->key.data,
									  sort->key.len, &prefix, &taken);

	sort->tuple->t_len = put_rest(sort, prefix + taken, tid);
	((uint8 *) sort->tuple)[ROW_FLAGS] = flags | taken;
	memcpy((char *) sort->tuple + ROW_HEAD, &head, sizeof(head));
}

/*
 * Puts a row into the sort.  Raises an error for a key that is too long.
 */
void
wh_sort_put(WhSort *sort, ItemPointer tid, Datum *values, bool *isnull,
			bool alive)
{
	uint8		flags = alive ? FLAG_ALIVE : 0;
	MemoryContext old = MemoryContextSwitchTo(sort->row_context);

	for (int i = 0; i < sort->nkeys; i++)
		flags |= isnull[i] ? FLAG_NULLS : 0;
	sort->key.len = 0;
	sort->payload.len = 0;
	wh_encode(sort->index, values, isnull, &sort->key, &sort->payload);
	wh_check_size(sort->index, sort->heap, sort->key.len, sort->payload.len);
	MemoryContextSwitchTo(old);
	MemoryContextReset(sort->row_context);

	make_tuple(sort, tid, flags);
	tuplesort_puttupleslot(sort->sort, sort->slot);
}

/*
 * Sorts.  Called when all rows are in.
 */
void
wh_sort_perform(WhSort *sort)
{
	tuplesort_performsort(sort->sort);
}

/*
 * Reads TID and payload from the end of the second column.  Returns the length
 * of the part of the key before them.
 */
static inline int
take_tail(WhSort *sort, const uint8 *data, int len, WhRow *row)
{
	uint16		payload_len = 0;
	uint32		block;
	uint16		offset;

	if (sort->payloads)
	{
		len -= sizeof(payload_len);
		memcpy(&payload_len, data + len, sizeof(payload_len));
	}
	len -= payload_len;
	row->payload = data + len;
	row->payload_len = payload_len;
	len -= TAIL_SIZE;
	memcpy(&block, data + len, sizeof(block));
	memcpy(&offset, data + len + sizeof(block), sizeof(offset));
	ItemPointerSet(&row->tid, pg_ntoh32(block), pg_ntoh16(offset));
	return len;
}

/*
 * Gets the next row in order; false after the last one.
 */
bool
wh_sort_get(WhSort *sort, WhRow *row)
{
	bool		should_free;
	const char *tuple;
	const uint8 *rest;
	int			len;
	int			taken;
	uint8		flags;
	uint64		head;
	uint8	   *key = (uint8 *) sort->key.data;

	if (!tuplesort_gettupleslot(sort->sort, true, false, sort->slot, NULL))
		return false;
	tuple = (const char *) ExecFetchSlotMinimalTuple(sort->slot, &should_free);
	Assert(!should_free);
	rest = (const uint8 *) VARDATA_ANY(tuple + ROW_REST);
	len = take_tail(sort, rest, VARSIZE_ANY_EXHDR(tuple + ROW_REST), row);
	memcpy(&head, tuple + ROW_HEAD, sizeof(head));
	flags = tuple[ROW_FLAGS];
	row->alive = (flags & FLAG_ALIVE) != 0;
	row->nulls = (flags & FLAG_NULLS) != 0;

	taken = wh_sample_start(sort->sample, head, key) + (flags & TAKEN_MASK);
	wh_copy_short(key + taken, rest, len);
	row->key = key;
	row->key_len = taken + len;
	return true;
}

/*
 * Ends the sort and frees what it has.
 */
void
wh_sort_end(WhSort *sort)
{
	ExecDropSingleTupleTableSlot(sort->slot);
	tuplesort_end(sort->sort);
	MemoryContextDelete(sort->row_context);
	pfree(sort->key.data);
	pfree(sort->payload.data);
	pfree(sort->tuple);
	pfree(sort);
}
