/*-------------------------------------------------------------------------
 *
 * rfwinnow.c
 *	  Looking into blocks before they go into a bitmap.
 *
 * The executor takes a row at a time through visibility, deforming and the
 * condition, and of the rows of a range of blocks one may match.  Comparing
 * their encoded keys in a loop takes less than half as long.  So blocks without
 * any row version that matches are left out of the bitmap.
 *
 * A version that the scan's snapshot sees was on its block before the snapshot
 * was taken, and stays there as it is while the snapshot is in use; so a look
 * under the buffer's share lock, after that, finds it.  Versions count whatever
 * their visibility, hence a serializable transaction still meets the changes of
 * others that it would have met.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "rangefilter/page/page.h"
#include "rangefilter/rangefilter.h"
#include "storage/bufmgr.h"

/*
 * The most blocks that are looked into.  It is done before the scan proper
 * begins, by one process, without reading ahead.
 */
#define RF_WINNOW_MAX 256

/* After so many, half of them have to be without a match to go on. */
#define RF_WINNOW_TRIAL 16

/*
 * Gets ready to look for rows of a set in the table of an index; the table is
 * locked.  Only numbers in a column that is stored by value are worth it: then
 * encoding costs less than what the executor does.
 */
void
rf_winnow_begin(RfWinnow *winnow, Relation index, Relation heap,
				const RfKeySet *set)
{
	AttrNumber	column = index->rd_index->indkey.values[0];
	const RfCodec *codec = rf_index_codec(index);

	memset(winnow, 0, sizeof(RfWinnow));
	if (heap->rd_tableam != GetHeapamTableAmRoutine() ||
		codec->kind != RF_KEY_U64 || codec->row != NULL || column <= 0 ||
		!TupleDescAttr(RelationGetDescr(heap), column - 1)->attbyval)
		return;
	winnow->heap = heap;
	winnow->column = column;
	winnow->codec = codec;
	winnow->set = set;
}

/*
 * Is the key of a tuple in the set?
 */
static inline bool
rf_tuple_matches(const RfWinnow *winnow, HeapTuple tuple)
{
	const RfKeySet *set = winnow->set;
	bool		isnull;
	Datum		value = heap_getattr(tuple, winnow->column,
									 RelationGetDescr(winnow->heap), &isnull);
	RfKey		key;

	if (isnull)
		return set->nulls;
	key = rf_encode(winnow->codec, value);
	if (set->nranges == 1)
		return key.num >= set->ranges[0].lo.num &&
			key.num <= set->ranges[0].hi.num;
	return rf_keyset_contains(set, &key);
}

/*
 * Has a share-locked page a row version whose key is in the set?
 */
static bool
rf_page_matches(const RfWinnow *winnow, Page page)
{
	OffsetNumber last = PageGetMaxOffsetNumber(page);
	HeapTupleData tuple = {.t_tableOid = RelationGetRelid(winnow->heap)};

	for (OffsetNumber i = FirstOffsetNumber; i <= last; i++)
	{
		ItemId		item = PageGetItemId(page, i);

		if (!ItemIdIsNormal(item))
			continue;
		tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
		tuple.t_len = ItemIdGetLength(item);
		if (rf_tuple_matches(winnow, &tuple))
			return true;
	}
	return false;
}

/*
 * Can a block, which exists, have rows of the set?  Takes and releases the
 * buffer's share lock.  True without a look where looking does not pay.
 */
bool
rf_winnow_keeps(RfWinnow *winnow, BlockNumber block)
{
	Buffer		buffer;
	bool		matches;

	if (winnow->heap == NULL || winnow->looked == RF_WINNOW_MAX ||
		(winnow->looked >= RF_WINNOW_TRIAL &&
		 winnow->kept > winnow->looked / 2))
		return true;
	buffer = ReadBuffer(winnow->heap, block);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	matches = rf_page_matches(winnow, BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	winnow->looked++;
	winnow->kept += matches;
	return matches;
}
