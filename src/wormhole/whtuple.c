/*-------------------------------------------------------------------------
 *
 * whtuple.c
 *	  Index tuples for index-only scans, from what a batch has of an entry.
 *
 * This is done for each row returned.  So indexes of one number, uuid or string
 * have short ways: the key's parts (the prefix of the page, the head in the
 * slot, the tail) go straight to where the tuple has the value, into one buffer
 * for all tuples.  Nothing is allocated.  Anything else (several columns, values
 * that the key does not give back) is decoded column by column.
 *
 * Short stretches are copied with a few bytes too many, over which the next
 * ones are written: a length that the compiler knows is a move or two.  All
 * buffers here have WH_SLACK bytes more than they need.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tupmacs.h"
#include "catalog/pg_type_d.h"
#include "key/codec_impl.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"
#include "utils/uuid.h"
#include "wormhole/whscan.h"

/*
 * Finds the short way there is for an index, if any.
 */
void
wh_short_way(Relation index, WhShortWay *way)
{
	const RfRowColumn *column = &wh_cache(index)->format.columns[0];
	Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(index), 0);

	memset(way, 0, sizeof(*way));
	way->codec = column->codec;
	if (IndexRelationGetNumberOfAttributes(index) > 1 ||
		column->codec->collator != NULL)
		return;
	switch (column->codec->type)
	{
		case TEXTOID:
		case BYTEAOID:
			way->kind = column->desc ? WH_SHORT_NONE : WH_SHORT_STRING;
			break;
		case UUIDOID:
			way->kind = column->desc ? WH_SHORT_NONE : WH_SHORT_UUID;
			break;
		default:
			if (column->codec->kind != RF_KEY_U64 || !attribute->attbyval ||
				wh_decode_kind(column->codec) == WH_DECODE_NEVER)
				break;
			way->kind = WH_SHORT_NUMBER;
			way->flip = column->desc ? PG_UINT64_MAX : 0;
			way->first = ((const RfCodecEntry *) column->codec)->first;
			way->attlen = attribute->attlen;
	}
}

/*
 * Keeps the prefix of a batch's page, from which all its keys begin.
 */
void
wh_keep_prefix(WhBatch *batch, const uint8 *prefix, int len)
{
	batch->prefix_len = len;
	memcpy(batch->prefix, prefix, len);
	batch->prefix_number = 0;
	for (int i = 1; i < len && i <= (int) sizeof(uint64); i++)
		batch->prefix_number = batch->prefix_number << 8 | prefix[i];
}

/*
 * The length of an item's key behind the prefix, and of that behind the head.
 */
static inline int
rest_len(const WhScanItem *item)
{
	return item->info & WH_LEN_MASK;
}

static inline int
tail_len(const WhScanItem *item)
{
	return Max(rest_len(item) - WH_HEAD, 0);
}

/*
 * Is the value not null?  The first byte of the key tells.
 */
static inline bool
has_value(const WhBatch *batch, const WhScanItem *item)
{
	return (batch->prefix_len > 0 ? batch->prefix[0] : item->head >> 24) ==
		WH_VALUE_MARK;
}

/*
 * Completes an index tuple of one value that is not null.
 */
static inline void
finish_tuple(IndexTuple tuple, Size size, uint16 flags)
{
	ItemPointerSetInvalid(&tuple->t_tid);
	tuple->t_info = MAXALIGN(size) | flags;
}

/*
 * The key behind its mark as a number; what of the mark may be above it is for
 * the caller to cut off.
 */
static inline uint64
rest_number(const WhBatch *batch, const WhScanItem *item)
{
	int			len = rest_len(item);
	int			tail = tail_len(item);
	uint64		bytes;

	if (len < WH_HEAD)
		return len == 0 ? batch->prefix_number :
			batch->prefix_number << (8 * len) |
			item->head >> (8 * (WH_HEAD - len));
	if (tail == 0)
		return batch->prefix_number << 32 | item->head;
	memcpy(&bytes, batch->space + item->off, sizeof(bytes));
	return (batch->prefix_number << 32 | item->head) << (8 * tail) |
		pg_ntoh64(bytes) >> (64 - 8 * tail);
}

/*
 * The tuple of a number, or false for a null.
 */
static inline bool
form_number(const WhShortWay *way, const WhBatch *batch,
			const WhScanItem *item, IndexTuple tuple)
{
	int			width = batch->prefix_len + rest_len(item) - 1;
	RfKey		part = {.num = rest_number(batch, item) ^ way->flip};
	Datum		value;

	if (width < 1 || width > (int) sizeof(uint64) || !has_value(batch, item))
		return false;
	if (width < (int) sizeof(uint64))
		part.num &= (UINT64CONST(1) << (8 * width)) - 1;
	part.num += way->first;
	value = wh_decode_value(way->codec, &part);
	store_att_byval((char *) (tuple + 1), value, way->attlen);
	finish_tuple(tuple, sizeof(IndexTupleData) + way->attlen, 0);
	return true;
}

/*
 * The tuple of a uuid, or false for a null.  The key is put together where its
 * mark falls on the last byte of the tuple's header, which is written later.
 */
static inline bool
form_uuid(const WhBatch *batch, const WhScanItem *item, IndexTuple tuple)
{
	uint8	   *key = (uint8 *) (tuple + 1) - 1;
	uint32		head = pg_hton32(item->head);

	if (batch->prefix_len + rest_len(item) != UUID_LEN + 1)
		return false;
	memcpy(key, batch->prefix, UUID_LEN + 1);
	memcpy(key + batch->prefix_len, &head, WH_HEAD);
	memcpy(key + batch->prefix_len + WH_HEAD, batch->space + item->off,
		   UUID_LEN);
	finish_tuple(tuple, sizeof(IndexTupleData) + UUID_LEN, 0);
	return true;
}

/*
 * The tuple of a string, or false for a null or one with escapes.  Again the
 * mark, which precedes the bytes, gives way to a byte of the header.
 */
static inline bool
form_string(const WhBatch *batch, const WhScanItem *item, IndexTuple tuple)
{
	char	   *value = (char *) (tuple + 1);
	int			n = batch->prefix_len + rest_len(item) - 2;
	int			header;
	uint8	   *key;
	uint32		head = pg_hton32(item->head);

	if (n < 0 || n > WH_MAX_ENTRY || !has_value(batch, item))
		return false;
	header = n + VARHDRSZ_SHORT <= VARATT_SHORT_MAX ? VARHDRSZ_SHORT : VARHDRSZ;
	key = (uint8 *) value + header - 1;
	memcpy(key, batch->prefix, batch->prefix_len);
	memcpy(key + batch->prefix_len, &head, WH_HEAD);
	wh_copy_short(key + batch->prefix_len + WH_HEAD,
				  batch->space + item->off, tail_len(item));
	if (memchr(key + 1, 0x01, n) != NULL)
		return false;
	if (header == VARHDRSZ_SHORT)
		SET_VARSIZE_SHORT(value, n + header);
	else
		SET_VARSIZE(value, n + header);
	finish_tuple(tuple, sizeof(IndexTupleData) + header + n, INDEX_VAR_MASK);
	return true;
}

/*
 * Puts an item's key together in space for a page's bounds.
 */
static int
put_together(const WhBatch *batch, const WhScanItem *item, uint8 *key)
{
	uint32		head = pg_hton32(item->head);

	memcpy(key, batch->prefix, batch->prefix_len);
	key += batch->prefix_len;
	memcpy(key, &head, WH_HEAD);
	wh_copy_short(key + WH_HEAD, batch->space + item->off, tail_len(item));
	return batch->prefix_len + rest_len(item);
}

/*
 * Makes the index tuple of an item of the scan's batch: scan->xs_itup, valid
 * until the next one is made.
 */
void
wh_form_tuple(IndexScanDesc scan, const WhScanItem *item)
{
	WhScan		so = (WhScan) scan->opaque;
	WhBatch    *batch = &so->batch;
	Relation	index = scan->indexRelation;
	bool		done = false;
	MemoryContext old;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	const uint8 *payload = NULL;
	uint16		payload_len = 0;

	scan->xs_itup = so->tuple;
	if (item->info & WH_PAYLOAD)
	{
		payload = batch->space + item->off + tail_len(item) +
			sizeof(ItemPointerData);
		memcpy(&payload_len, payload, sizeof(payload_len));
		payload += sizeof(payload_len);
	}
	else if (so->way.kind == WH_SHORT_NUMBER)
		done = form_number(&so->way, batch, item, so->tuple);
	else if (so->way.kind == WH_SHORT_UUID)
		done = form_uuid(batch, item, so->tuple);
	else if (so->way.kind == WH_SHORT_STRING)
		done = form_string(batch, item, so->tuple);
	if (done)
		return;

	MemoryContextReset(so->tuple_context);
	old = MemoryContextSwitchTo(so->tuple_context);
	wh_decode(index, so->bounds_space,
			  put_together(batch, item, so->bounds_space), payload,
			  payload_len, values, isnull);
	scan->xs_itup = index_form_tuple(RelationGetDescr(index), values, isnull);
	MemoryContextSwitchTo(old);
}
