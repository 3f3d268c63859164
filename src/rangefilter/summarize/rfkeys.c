/*-------------------------------------------------------------------------
 *
 * rfkeys.c
 *	  Sorting keys, with or without the heap blocks of their rows.
 *
 * Numbers are collected in an array, together with their blocks, and sorted by
 * their bytes, which is faster than comparing them.  Numbers for which
 * the memory does not suffice, and byte strings, go through core's tuplesort,
 * which spills to disk: as rows of a key and its block, or of a key alone.  A key is an int8
 * (with the sign bit flipped) or a bytea.  (A tuplesort of datums would do for keys alone,
 * but that of PostgreSQL 18.6 does not count the memory of strings.)
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "compat.h"
#include "executor/tuptable.h"
#include "filter/filter.h"
#include "miscadmin.h"
#include "rangefilter/summarize/rfkeys.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

/* Columns of the rows that are sorted. */
#define RF_SORT_KEY		1
#define RF_SORT_BLOCK	2

#define RF_SIGN_BIT (UINT64CONST(1) << 63)

/* A number with its block. */
typedef struct RfPair
{
	uint64		key;
	BlockNumber block;
} RfPair;

/* Numbers are sorted by their bytes. */
#define RF_NBYTES		(UCHAR_MAX + 1)

/* After so many pairs a loop over them looks for a query cancel. */
#define RF_CHECK_PAIRS	(1 << 20)

/* The pairs for which the array has room at first. */
#define RF_MIN_PAIRS	4096

struct RfKeys
{
	RfKeyKind	kind;
	bool		with_blocks;
	uint64		few;			/* see rf_keys_begin() */
	int			work_mem_kb;
	char		buffer[VARHDRSZ + FILTER_MAX_KEY];	/* a key as bytea */

	/* In an array */
	RfPair	   *pairs;			/* NULL: not this way */
	uint64		npairs;
	uint64		room;			/* for pairs */
	uint64		next;			/* to be read */

	/* In a tuplesort */
	Tuplesortstate *sort;		/* NULL: not this way */
	TupleTableSlot *input;
	TupleTableSlot *output;
};

/*
 * Return true if the rows of the tuplesort have blocks.
 */
static bool
rf_rows_have_blocks(const RfKeys *keys)
{
	return keys->with_blocks && keys->few == 0;
}

/*
 * Begins the tuplesort for keys that do not go into the array.
 */
static void
rf_begin_tuplesort(RfKeys *keys)
{
	TupleDesc	desc = CreateTemplateTupleDesc(rf_rows_have_blocks(keys) ? 2 : 1);
	AttrNumber	column = RF_SORT_KEY;
	bool		is_number = keys->kind == RF_KEY_U64;
	Oid			operator = is_number ? Int8LessOperator : ByteaLessOperator;
	Oid			collation = InvalidOid;
	bool		nulls_first = false;

	TupleDescInitEntry(desc, RF_SORT_KEY, "key",
					   is_number ? INT8OID : BYTEAOID, -1, 0);
	if (rf_rows_have_blocks(keys))
		TupleDescInitEntry(desc, RF_SORT_BLOCK, "block", INT4OID, -1, 0);
	RF_FINISH_DESC(desc);
	keys->sort = tuplesort_begin_heap(desc, 1, &column, &operator, &collation,
									  &nulls_first, keys->work_mem_kb,
									  NULL, TUPLESORT_RANDOMACCESS);
	keys->input = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	keys->output = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
}

/*
 * Begins to collect keys of a kind.  with_blocks: the block of each key is kept.  few, if not 0:
 * should there be more numbers than this, their blocks are given up.  What does not fit work_mem_kb is
 * sorted on disk.  Everything is allocated in the current context.
 */
RfKeys *
rf_keys_begin(RfKeyKind kind, bool with_blocks, uint64 few, int work_mem_kb)
{
	RfKeys	   *keys = palloc0(sizeof(RfKeys));

	keys->kind = kind;
	keys->with_blocks = with_blocks;
	keys->work_mem_kb = work_mem_kb;
	keys->few = kind == RF_KEY_U64 ? few : 0;
	if (kind == RF_KEY_U64)
	{
		keys->room = RF_MIN_PAIRS;
		keys->pairs = palloc(keys->room * sizeof(RfPair));
	}
	else
		rf_begin_tuplesort(keys);
	return keys;
}

/*
 * A number as the int8 that sorts as the number does.
 */
static Datum
rf_number_datum(uint64 number)
{
	return Int64GetDatum((int64) (number ^ RF_SIGN_BIT));
}

/*
 * Gives a key to the tuplesort.
 */
static void
rf_put_datum(RfKeys *keys, Datum datum, BlockNumber block)
{
	ExecClearTuple(keys->input);
	keys->input->tts_values[RF_SORT_KEY - 1] = datum;
	keys->input->tts_isnull[RF_SORT_KEY - 1] = false;
	if (rf_rows_have_blocks(keys))
	{
		keys->input->tts_values[RF_SORT_BLOCK - 1] = Int32GetDatum((int32) block);
		keys->input->tts_isnull[RF_SORT_BLOCK - 1] = false;
	}
	ExecStoreVirtualTuple(keys->input);
	tuplesort_puttupleslot(keys->sort, keys->input);
}

/*
 * The array is full: makes it larger.  Sorting takes a second one.  Where both would take
 * too much memory, moves the numbers to a tuplesort.
 */
static void
rf_enlarge(RfKeys *keys)
{
	MemoryContext old;

	if (keys->room * 2 * 2 * sizeof(RfPair) <= keys->work_mem_kb * UINT64CONST(1024))
	{
		keys->room *= 2;
		keys->pairs = repalloc_huge(keys->pairs, keys->room * sizeof(RfPair));
		return;
	}
	old = MemoryContextSwitchTo(GetMemoryChunkContext(keys));
	rf_begin_tuplesort(keys);
	for (uint64 i = 0; i < keys->npairs; i++)
	{
		CHECK_FOR_INTERRUPTS();
		rf_put_datum(keys, rf_number_datum(keys->pairs[i].key), keys->pairs[i].block);
	}
	pfree(keys->pairs);
	keys->pairs = NULL;
	MemoryContextSwitchTo(old);
}

/*
 * Adds a copy of a key, and the heap block that it is from.
 */
void
rf_keys_put(RfKeys *keys, const RfKey *key, BlockNumber block)
{
	if (keys->pairs != NULL && keys->npairs == keys->room)
		rf_enlarge(keys);
	if (keys->pairs != NULL)
	{
		keys->pairs[keys->npairs].key = key->num;
		keys->pairs[keys->npairs++].block = block;
	}
	else if (keys->kind == RF_KEY_U64)
		rf_put_datum(keys, rf_number_datum(key->num), block);
	else
	{
		SET_VARSIZE(keys->buffer, VARHDRSZ + key->len);
		memcpy(VARDATA(keys->buffer), key->data, key->len);
		rf_put_datum(keys, PointerGetDatum(keys->buffer), block);
	}
}

/*
 * Copies the pairs, sorted by the byte that begins at a bit; pairs with the same byte stay in
 * their order.
 */
static void
rf_sort_byte(const RfPair *from, RfPair *to, uint64 n, int shift)
{
	uint64		starts[RF_NBYTES] = {0};	/* where each byte's pairs go */
	uint64		start = 0;

	for (uint64 i = 0; i < n; i++)
	{
		if (i % RF_CHECK_PAIRS == 0)
			CHECK_FOR_INTERRUPTS();
		starts[(uint8) (from[i].key >> shift)]++;
	}
	for (int byte = 0; byte < RF_NBYTES; byte++)
	{
		uint64		count = starts[byte];

		starts[byte] = start;
		start += count;
	}
	for (uint64 i = 0; i < n; i++)
	{
		if (i % RF_CHECK_PAIRS == 0)
			CHECK_FOR_INTERRUPTS();
		to[starts[(uint8) (from[i].key >> shift)]++] = from[i];
	}
}

/*
 * Sorts the array by its bytes, the last one first, those in which no keys differ left out.
 */
static void
rf_sort_pairs(RfKeys *keys)
{
	uint64		differ = 0;
	RfPair	   *other;

	for (uint64 i = 1; i < keys->npairs; i++)
	{
		if (i % RF_CHECK_PAIRS == 0)
			CHECK_FOR_INTERRUPTS();
		differ |= keys->pairs[i].key ^ keys->pairs[0].key;
	}
	if (differ == 0)
		return;
	other = MemoryContextAllocHuge(GetMemoryChunkContext(keys),
								   keys->npairs * sizeof(RfPair));
	for (int shift = 0; shift < 64; shift += BITS_PER_BYTE)
	{
		RfPair	   *sorted = other;

		if ((uint8) (differ >> shift) == 0)
			continue;
		rf_sort_byte(keys->pairs, sorted, keys->npairs, shift);
		other = keys->pairs;
		keys->pairs = sorted;
	}
	pfree(other);
}

/*
 * Sorts.  From now on keys can be read, beginning with the least.
 */
void
rf_keys_sort(RfKeys *keys)
{
	if (keys->pairs != NULL)
		rf_sort_pairs(keys);
	else
		tuplesort_performsort(keys->sort);
}

/*
 * Return true if the blocks of all keys are known.
 */
bool
rf_keys_have_blocks(const RfKeys *keys)
{
	return rf_rows_have_blocks(keys) ||
		(keys->with_blocks && keys->pairs != NULL && keys->npairs <= keys->few);
}

/*
 * Reads the next value from the tuplesort, which is valid until the next call, and its block
 * if the rows have blocks.
 */
static bool
rf_get_datum(RfKeys *keys, Datum *value, BlockNumber *block)
{
	bool		isnull;

	if (!tuplesort_gettupleslot(keys->sort, true, false, keys->output, NULL))
		return false;
	*value = slot_getattr(keys->output, RF_SORT_KEY, &isnull);
	if (rf_rows_have_blocks(keys))
		*block = (BlockNumber)
			DatumGetInt32(slot_getattr(keys->output, RF_SORT_BLOCK, &isnull));
	return true;
}

/*
 * Reads the next key, and its block if that is known.  Returns false at the end.  The key is valid
 * until the next call.
 */
bool
rf_keys_next(RfKeys *keys, RfKey *key, BlockNumber *block)
{
	Datum		value;

	if (keys->pairs != NULL)
	{
		if (keys->next == keys->npairs)
			return false;
		key->num = keys->pairs[keys->next].key;
		*block = keys->pairs[keys->next++].block;
		return true;
	}
	if (!rf_get_datum(keys, &value, block))
		return false;
	if (keys->kind == RF_KEY_U64)
		key->num = (uint64) DatumGetInt64(value) ^ RF_SIGN_BIT;
	else
	{
		struct varlena *bytes = (struct varlena *) DatumGetPointer(value);

		key->len = VARSIZE_ANY_EXHDR(bytes);
		memcpy(keys->buffer, VARDATA_ANY(bytes), key->len);
		key->data = (const uint8 *) keys->buffer;
	}
	return true;
}

/*
 * Leaves the next n keys out.
 */
void
rf_keys_skip(RfKeys *keys, uint64 n)
{
	if (keys->pairs != NULL)
		keys->next += n;
	else
		tuplesort_skiptuples(keys->sort, n, true);
}

/*
 * Goes back to the first key.
 */
void
rf_keys_rewind(RfKeys *keys)
{
	if (keys->pairs != NULL)
		keys->next = 0;
	else
		tuplesort_rescan(keys->sort);
}

/*
 * Ends the sort and frees it.
 */
void
rf_keys_end(RfKeys *keys)
{
	if (keys->pairs != NULL)
		pfree(keys->pairs);
	if (keys->sort != NULL)
	{
		ExecDropSingleTupleTableSlot(keys->input);
		ExecDropSingleTupleTableSlot(keys->output);
		tuplesort_end(keys->sort);
	}
	pfree(keys);
}
