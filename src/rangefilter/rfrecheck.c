/*-------------------------------------------------------------------------
 *
 * rfrecheck.c
 *	  Looking into blocks before they go into a bitmap.
 *
 * The executor takes each row through visibility, deforming and the condition,
 * although few rows in a range of blocks may match.  Comparing their encoded
 * keys in a loop takes less time.  So blocks without any matching
 * row version are left out of the bitmap.
 *
 * A version that the scan's snapshot sees was on its block before the snapshot
 * was taken, and stays there unchanged while the snapshot is in use.  So a
 * later look under the buffer's share lock finds it.  Versions count whether
 * visible or not.  So a serializable transaction meets the same changes of
 * others as without the look.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "catalog/pg_type.h"
#include "rangefilter/page/page.h"
#include "rangefilter/rangefilter.h"
#include "storage/bufmgr.h"

/*
 * The most blocks that are looked into: one process does it before the scan
 * proper begins, without reading ahead.
 */
#define RF_BLOCK_RECHECK_MAX 256

/*
 * The blocks after which the looks end, unless half of them had no match.
 */
#define RF_BLOCK_RECHECK_TRIAL 16

/*
 * Return true if the keys of a column can be compared for less than the executor's work: numbers in
 * values that are not stored elsewhere, and strings that are their own keys.
 */
static bool
rf_is_cheap(const RfCodec *codec, Form_pg_attribute column)
{
	if (codec->kind == RF_KEY_U64)
		return column->attbyval;
	return codec->row == NULL && codec->collator == NULL &&
		(codec->type == UUIDOID || codec->type == TEXTOID || codec->type == BYTEAOID);
}

/*
 * Gets ready to look for rows of a set in the table of an index; the table is
 * locked.  Looks for cheap keys of a column.
 */
void
rf_block_recheck_begin(RfBlockRecheck *recheck, Relation index, Relation heap,
					   const RfKeySet *set)
{
	const RfCodec *codec = rf_index_codec(index);
	AttrNumber	column = index->rd_index->indkey.values[0];

	memset(recheck, 0, sizeof(RfBlockRecheck));
	if (heap->rd_tableam != GetHeapamTableAmRoutine() || column <= 0 ||
		!rf_is_cheap(codec, TupleDescAttr(RelationGetDescr(heap), column - 1)))
		return;
	recheck->heap = heap;
	recheck->column = column;
	recheck->codec = codec;
	recheck->set = set;
}

/*
 * Return true if the number is in the set.
 */
static inline bool
rf_number_matches(const RfBlockRecheck *recheck, Datum value)
{
	const RfKeySet *set = recheck->set;
	RfKey		key = rf_encode(recheck->codec, value);

	if (set->nranges == 1)
		return key.num >= set->ranges[0].lo.num &&
			key.num <= set->ranges[0].hi.num;
	return rf_keyset_contains(set, &key);
}

/*
 * Return true if the string may be in the set.  That is so where it is compressed or in the toast
 * table, which is not read under a page's lock.
 */
static inline bool
rf_string_matches(const RfBlockRecheck *recheck, Datum value)
{
	RfKey		key;

	if (!rf_key_in_place(recheck->codec, value, &key))
		return true;
	key.len = Min(key.len, FILTER_MAX_KEY);
	return rf_keyset_contains(recheck->set, &key);
}

/*
 * Return true if a tuple's key may be in the set.
 */
static inline bool
rf_tuple_matches(const RfBlockRecheck *recheck, HeapTuple tuple)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, recheck->column,
									 RelationGetDescr(recheck->heap), &isnull);

	if (isnull)
		return recheck->set->nulls;
	return recheck->codec->kind == RF_KEY_U64 ? rf_number_matches(recheck, value) :
		rf_string_matches(recheck, value);
}

/*
 * Return true if a share-locked page has a row version whose key is in the set.
 */
static bool
rf_page_matches(const RfBlockRecheck *recheck, Page page)
{
	OffsetNumber last = PageGetMaxOffsetNumber(page);
	HeapTupleData tuple = {.t_tableOid = RelationGetRelid(recheck->heap)};

	for (OffsetNumber i = FirstOffsetNumber; i <= last; i++)
	{
		ItemId		item = PageGetItemId(page, i);

		if (!ItemIdIsNormal(item))
			continue;
		tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
		tuple.t_len = ItemIdGetLength(item);
		if (rf_tuple_matches(recheck, &tuple))
			return true;
	}
	return false;
}

/*
 * Return true if a block, which exists, may have rows of the set.  Takes and releases the
 * buffer's share lock.  True without a look if looking does not pay.
 */
bool
rf_block_recheck_keeps(RfBlockRecheck *recheck, BlockNumber block)
{
	Buffer		buffer;
	bool		matches;

	if (recheck->heap == NULL || recheck->looked == RF_BLOCK_RECHECK_MAX ||
		(recheck->looked >= RF_BLOCK_RECHECK_TRIAL &&
		 recheck->kept > recheck->looked / 2))
		return true;
	buffer = ReadBuffer(recheck->heap, block);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	matches = rf_page_matches(recheck, BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	recheck->looked++;
	recheck->kept += matches;
	return matches;
}

/*
 * For the planner: returns into how many of "blocks" blocks a scan will look, if a share of
 * them has a match.
 */
double
rf_block_recheck_foresee(const RfBlockRecheck *recheck, double blocks, double share)
{
	double		most = share > 0.5 ? RF_BLOCK_RECHECK_TRIAL : RF_BLOCK_RECHECK_MAX;

	return recheck->heap == NULL ? 0 : Min(blocks, most);
}
