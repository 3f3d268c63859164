/*-------------------------------------------------------------------------
 *
 * rfrecheck.c
 *	  Looking into blocks before they go into a bitmap.
 *
 * The executor takes each row through visibility, deforming and the condition,
 * although few rows in a range of blocks may match.  Comparing their encoded
 * keys in a loop takes less than half as long.  So blocks without any matching
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
#include "rangefilter/page/page.h"
#include "rangefilter/rangefilter.h"
#include "storage/bufmgr.h"

/*
 * At most so many blocks are looked into: one process does it before the scan
 * proper begins, without reading ahead.
 */
#define RF_BLOCK_RECHECK_MAX 256

/*
 * After so many blocks the looks end, unless half of the blocks had no match.
 */
#define RF_BLOCK_RECHECK_TRIAL 16

/*
 * Are a column's keys made without a collator, which takes longer than the executor?
 */
static bool
rf_is_plain(const RfCodec *codec)
{
	if (codec->row == NULL)
		return codec->collator == NULL;
	for (int i = 0; i < codec->row->ncolumns; i++)
		if (codec->row->columns[i].codec->collator != NULL)
			return false;
	return true;
}

/*
 * Gets ready to look for rows of a set in the table of an index; the table is
 * locked.  Looks for numbers in columns stored by value, and for keys of bytes: there encoding
 * costs less than the executor's work.  Not where the index is on expressions.
 */
void
rf_block_recheck_begin(RfBlockRecheck *recheck, Relation index, Relation heap,
					   const RfKeySet *set)
{
	const RfCodec *codec = rf_index_codec(index);
	int			ncolumns = codec->row != NULL ? codec->row->ncolumns : 1;

	memset(recheck, 0, sizeof(RfBlockRecheck));
	if (heap->rd_tableam != GetHeapamTableAmRoutine() || !rf_is_plain(codec))
		return;
	for (int i = 0; i < ncolumns; i++)
	{
		AttrNumber	column = index->rd_index->indkey.values[i];

		if (column <= 0 ||
			(codec->kind == RF_KEY_U64 &&
			 !TupleDescAttr(RelationGetDescr(heap), column - 1)->attbyval))
			return;
		recheck->columns[i] = column;
	}
	recheck->heap = heap;
	recheck->ncolumns = ncolumns;
	recheck->codec = codec;
	recheck->set = set;
}

/*
 * Is the number of a tuple in the set?
 */
static inline bool
rf_number_matches(const RfBlockRecheck *recheck, HeapTuple tuple)
{
	const RfKeySet *set = recheck->set;
	bool		isnull;
	Datum		value = heap_getattr(tuple, recheck->columns[0],
									 RelationGetDescr(recheck->heap), &isnull);
	RfKey		key;

	if (isnull)
		return set->nulls;
	key = rf_encode(recheck->codec, value);
	if (set->nranges == 1)
		return key.num >= set->ranges[0].lo.num &&
			key.num <= set->ranges[0].hi.num;
	return rf_keyset_contains(set, &key);
}

/*
 * May the bytes of a tuple be in the set?  Yes where they are compressed or in the toast
 * table, which nobody reads under a page's lock.
 */
static bool
rf_bytes_match(const RfBlockRecheck *recheck, HeapTuple tuple)
{
	TupleDesc	desc = RelationGetDescr(recheck->heap);
	Datum		values[RF_MAX_COLUMNS];
	bool		isnull[RF_MAX_COLUMNS];
	RfKey		key;
	bool		matches;

	for (int i = 0; i < recheck->ncolumns; i++)
	{
		values[i] = heap_getattr(tuple, recheck->columns[i], desc, &isnull[i]);
		if (!isnull[i] &&
			TupleDescAttr(desc, recheck->columns[i] - 1)->attlen == -1 &&
			VARATT_IS_EXTENDED(DatumGetPointer(values[i])) &&
			!VARATT_IS_SHORT(DatumGetPointer(values[i])))
			return true;
	}
	if (!rf_encode_row(recheck->codec, values, isnull, &key))
		return recheck->set->nulls;
	matches = rf_keyset_contains(recheck->set, &key);
	pfree(unconstify(uint8 *, key.data));
	return matches;
}

/*
 * Has a share-locked page a row version whose key is in the set?
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
		if (recheck->codec->kind == RF_KEY_U64 ? rf_number_matches(recheck, &tuple) :
			rf_bytes_match(recheck, &tuple))
			return true;
	}
	return false;
}

/*
 * Can a block, which exists, have rows of the set?  Takes and releases the
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
