/*-------------------------------------------------------------------------
 *
 * rfkeys.c
 *	  Sorting keys, with or without the heap blocks of their rows.
 *
 * Keys go through core's tuplesort, which spills to disk beyond
 * maintenance_work_mem.  Keys alone are sorted as int8 (with the sign bit
 * flipped) or as bytea.  Keys with blocks are sorted as rows, which takes
 * nearly twice as long.  So a limited number of numbers is sorted as pairs in
 * an array; if there are more, their blocks are given up and they move to a
 * tuplesort.
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

#define ST_SORT rf_sort_pairs
#define ST_ELEMENT_TYPE RfPair
#define ST_COMPARE(a, b) ((a)->key < (b)->key ? -1 : (a)->key > (b)->key)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

struct RfKeys
{
	RfKeyKind	kind;
	char		buffer[VARHDRSZ + FILTER_MAX_KEY];	/* a key as bytea */

	/* In an array */
	RfPair	   *pairs;			/* NULL: not this way */
	uint64		npairs;
	uint64		max_pairs;
	uint64		next;			/* to be read */

	/* In a tuplesort */
	Tuplesortstate *sort;		/* NULL: not this way */
	TupleTableSlot *input;		/* of rows; NULL: just keys are sorted */
	TupleTableSlot *output;
};

/*
 * Begins a tuplesort of keys with their blocks.
 */
static void
rf_begin_rows(RfKeys *keys)
{
	TupleDesc	desc = CreateTemplateTupleDesc(2);
	AttrNumber	column = RF_SORT_KEY;
	bool		is_number = keys->kind == RF_KEY_U64;
	Oid			operator = is_number ? Int8LessOperator : ByteaLessOperator;
	Oid			collation = InvalidOid;
	bool		nulls_first = false;

	TupleDescInitEntry(desc, RF_SORT_KEY, "key",
					   is_number ? INT8OID : BYTEAOID, -1, 0);
	TupleDescInitEntry(desc, RF_SORT_BLOCK, "block", INT4OID, -1, 0);
	RF_FINISH_DESC(desc);
	keys->sort = tuplesort_begin_heap(desc, 1, &column, &operator, &collation,
									  &nulls_first, maintenance_work_mem,
									  NULL, TUPLESORT_RANDOMACCESS);
	keys->input = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	keys->output = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
}

/*
 * Begins a tuplesort of keys alone.
 */
static void
rf_begin_datums(RfKeys *keys)
{
	bool		is_number = keys->kind == RF_KEY_U64;

	keys->sort = tuplesort_begin_datum(is_number ? INT8OID : BYTEAOID,
									   is_number ? Int8LessOperator :
									   ByteaLessOperator,
									   InvalidOid, false,
									   maintenance_work_mem, NULL,
									   TUPLESORT_RANDOMACCESS);
}

/*
 * See rfkeys.h.
 */
RfKeys *
rf_keys_begin(RfKeyKind kind, bool with_blocks, uint64 few)
{
	RfKeys	   *keys = palloc0(sizeof(RfKeys));

	keys->kind = kind;
	if (with_blocks && few > 0 && kind == RF_KEY_U64)
	{
		keys->max_pairs = few;
		keys->pairs = palloc_extended(few * sizeof(RfPair), MCXT_ALLOC_HUGE);
	}
	else if (with_blocks)
		rf_begin_rows(keys);
	else
		rf_begin_datums(keys);
	return keys;
}

static Datum
rf_number_datum(uint64 number)
{
	return Int64GetDatum((int64) (number ^ RF_SIGN_BIT));
}

/*
 * There are too many pairs: moves their keys to a tuplesort, without the
 * blocks.
 */
static void
rf_give_up_blocks(RfKeys *keys)
{
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(keys));

	rf_begin_datums(keys);
	for (uint64 i = 0; i < keys->npairs; i++)
		tuplesort_putdatum(keys->sort, rf_number_datum(keys->pairs[i].key),
						   false);
	pfree(keys->pairs);
	keys->pairs = NULL;
	MemoryContextSwitchTo(old);
}

/*
 * See rfkeys.h.
 */
void
rf_keys_put(RfKeys *keys, const RfKey *key, BlockNumber block)
{
	Datum		datum;

	if (keys->pairs != NULL && keys->npairs < keys->max_pairs)
	{
		keys->pairs[keys->npairs].key = key->num;
		keys->pairs[keys->npairs++].block = block;
		return;
	}
	if (keys->pairs != NULL)
		rf_give_up_blocks(keys);
	if (keys->kind == RF_KEY_U64)
		datum = rf_number_datum(key->num);
	else
	{
		SET_VARSIZE(keys->buffer, VARHDRSZ + key->len);
		memcpy(VARDATA(keys->buffer), key->data, key->len);
		datum = PointerGetDatum(keys->buffer);
	}
	if (keys->input == NULL)
	{
		tuplesort_putdatum(keys->sort, datum, false);
		return;
	}
	ExecClearTuple(keys->input);
	keys->input->tts_values[RF_SORT_KEY - 1] = datum;
	keys->input->tts_values[RF_SORT_BLOCK - 1] = Int32GetDatum((int32) block);
	keys->input->tts_isnull[RF_SORT_KEY - 1] = false;
	keys->input->tts_isnull[RF_SORT_BLOCK - 1] = false;
	ExecStoreVirtualTuple(keys->input);
	tuplesort_puttupleslot(keys->sort, keys->input);
}

/*
 * See rfkeys.h.
 */
void
rf_keys_sort(RfKeys *keys)
{
	if (keys->pairs != NULL)
		rf_sort_pairs(keys->pairs, keys->npairs);
	else
		tuplesort_performsort(keys->sort);
}

/*
 * See rfkeys.h.
 */
bool
rf_keys_have_blocks(const RfKeys *keys)
{
	return keys->pairs != NULL || keys->input != NULL;
}

/*
 * Reads the next value from the tuplesort, and its block if blocks are sorted.
 * *fresh: the caller must free the value, if it is a pointer.  Else it is
 * valid until the next call.
 */
static bool
rf_get_datum(RfKeys *keys, Datum *value, BlockNumber *block, bool *fresh)
{
	bool		isnull;

	*fresh = keys->input == NULL;
	if (keys->input == NULL)
		return RF_TUPLESORT_GETDATUM(keys->sort, true, value, &isnull);
	if (!tuplesort_gettupleslot(keys->sort, true, false, keys->output, NULL))
		return false;
	*value = slot_getattr(keys->output, RF_SORT_KEY, &isnull);
	*block = (BlockNumber)
		DatumGetInt32(slot_getattr(keys->output, RF_SORT_BLOCK, &isnull));
	return true;
}

/*
 * See rfkeys.h.
 */
bool
rf_keys_next(RfKeys *keys, RfKey *key, BlockNumber *block)
{
	Datum		value;
	bool		fresh;

	if (keys->pairs != NULL)
	{
		if (keys->next == keys->npairs)
			return false;
		key->num = keys->pairs[keys->next].key;
		*block = keys->pairs[keys->next++].block;
		return true;
	}
	if (!rf_get_datum(keys, &value, block, &fresh))
		return false;
	if (keys->kind == RF_KEY_U64)
		key->num = (uint64) DatumGetInt64(value) ^ RF_SIGN_BIT;
	else
	{
		struct varlena *bytes = (struct varlena *) DatumGetPointer(value);

		key->len = VARSIZE_ANY_EXHDR(bytes);
		memcpy(keys->buffer, VARDATA_ANY(bytes), key->len);
		key->data = (const uint8 *) keys->buffer;
		if (fresh)
			pfree(bytes);
	}
	return true;
}

/*
 * See rfkeys.h.
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
 * See rfkeys.h.
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
 * See rfkeys.h.
 */
void
rf_keys_end(RfKeys *keys)
{
	if (keys->pairs != NULL)
		pfree(keys->pairs);
	if (keys->input != NULL)
	{
		ExecDropSingleTupleTableSlot(keys->input);
		ExecDropSingleTupleTableSlot(keys->output);
	}
	if (keys->sort != NULL)
		tuplesort_end(keys->sort);
	pfree(keys);
}
