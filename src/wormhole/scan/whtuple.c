/*-------------------------------------------------------------------------
 *
 * whtuple.c
 *	  Making index tuples for index-only scans, from a batch's copy of an
 *	  entry.
 *
 * This is done for each row returned.  So numbers, uuids and strings have
 * short ways.  Numbers are made for the whole batch, while the leaf is locked,
 * and only have to be copied to the tuple.  Of uuids and strings the key's
 * parts (the prefix of the page, the head in the slot, the tail) are copied
 * straight to the value's place in the tuple.  All tuples use one buffer.  For
 * several columns the key is put together first.  Nothing is allocated.
 * Anything else (nulls, values that the key does not give back, numbers in a
 * batch with nulls) is decoded into values, and core makes the tuple.
 *
 * Short parts are copied with a few bytes too many, which the next part
 * overwrites.  So the compiler knows the length, and the copy is one or two
 * instructions.  All buffers here have WH_SLACK bytes more than they need.
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
#include "wormhole/scan/whscan_impl.h"

/*
 * Describes a column.  False if there is no short way for its type.
 */
static bool
short_column(const RfRowColumn *column, Form_pg_attribute attribute,
			 WhShortColumn *result)
{
	const RfCodecEntry *entry = (const RfCodecEntry *) column->codec;

	if (column->codec->collator != NULL)
		return false;
	result->codec = column->codec;
	result->flip = column->desc ? 0xFF : 0;
	switch (column->codec->type)
	{
		case TEXTOID:
		case BYTEAOID:
			result->kind = WH_SHORT_STRING;
			return true;
		case UUIDOID:
			result->kind = WH_SHORT_UUID;
			return true;
		default:
			result->kind = WH_SHORT_NUMBER;
			result->first = entry->first;
			result->width = 1;
			while (result->width < (int) sizeof(uint64) &&
				   (entry->last - entry->first) >> (8 * result->width) != 0)
				result->width++;
			result->mask = ~UINT64CONST(0) >> (64 - 8 * result->width);
			result->is_signed = column->codec->plain == rf_encode_int2 ||
				column->codec->plain == rf_encode_int4 ||
				column->codec->plain == rf_encode_int8;
			result->attlen = attribute->attlen;
			result->attalign = attribute->attalign;
			return column->codec->kind == RF_KEY_U64 && attribute->attbyval &&
				wh_decode_kind(column->codec) != WH_DECODE_NEVER;
	}
}

/*
 * Finds the short way for an index; WH_SHORT_NONE if there is none.
 */
void
wh_short_way(Relation index, WhShortWay *way)
{
	const RfRowFormat *format = &wh_cache(index)->format;

	way->kind = WH_SHORT_NONE;
	way->ncolumns = format->ncolumns;
	if (IndexRelationGetNumberOfAttributes(index) > format->ncolumns)
		return;
	for (int i = 0; i < format->ncolumns; i++)
	{
		if (!short_column(&format->columns[i],
						  TupleDescAttr(RelationGetDescr(index), i),
						  &way->columns[i]))
			return;
	}
	way->kind = way->columns[0].kind;
	if (way->ncolumns > 1 ||
		(way->columns[0].flip != 0 && way->kind != WH_SHORT_NUMBER))
		way->kind = WH_SHORT_COLUMNS;
}

/*
 * The bytes of an item's key behind the prefix.
 */
static inline int
rest_len(const WhScanItem *item)
{
	return item->info & WH_LEN_MASK;
}

/*
 * The bytes of an item's key behind its head.
 */
static inline int
tail_len(const WhScanItem *item)
{
	return Max(rest_len(item) - WH_HEAD, 0);
}

/*
 * Is the first column's value not null?  The first byte of the key tells.
 */
static inline bool
has_value(const WhBatch *batch, const WhScanItem *item)
{
	return (batch->prefix_len > 0 ? batch->prefix[0] : item->head >> 24) ==
		WH_VALUE_MARK;
}

/*
 * The value of a number that is more than its key with another sign bit.
 */
static pg_noinline Datum
decode_number(const RfCodec *codec, uint64 number)
{
	RfKey		key = {.num = number};

	return wh_decode_value(codec, &key);
}

/*
 * The value of a number, whose key is in the low bytes.
 */
static inline Datum
number_value(const WhShortColumn *column, uint64 number)
{
	if (column->flip != 0)
		number = ~number;
	number = (number & column->mask) + column->first;
	if (likely(column->is_signed))
		return (Datum) (number ^ RF_SIGN_BIT);
	return decode_number(column->codec, number);
}

/*
 * A number with the bytes that are in the prefix, behind the mark.
 */
static inline uint64
prefix_number(const WhShortColumn *column, const WhBatch *batch)
{
	uint64		number = 0;

	for (int i = 1; i < batch->prefix_len && i <= column->width; i++)
		number |= (uint64) batch->prefix[i] << (8 * (column->width - i));
	return number;
}

/*
 * Puts the numbers of a batch's items into its space, in the form they have in
 * a tuple.  False if one is null; the space is then not in use.  The leaf is
 * locked, and items have the places of their entries on it.  All keys of
 * numbers are of one length, so their parts are at the same places.
 */
bool
wh_keep_numbers(const WhShortColumn *way, WhBatch *batch, Page page)
{
	const WhShortColumn column = *way;	/* stores cannot change the copy */
	const int	len = 1 + column.width - batch->prefix_len;
	const int	tail = Max(len - WH_HEAD, 0);
	const int	padding = Max(WH_HEAD - len, 0);
	const uint64 mask = (UINT64CONST(1) << (8 * tail)) - 1;
	const uint64 prefix = prefix_number(&column, batch);
	const WhScanItem *end = batch->items + batch->nitems;
	uint64	   *value = (uint64 *) batch->space;

	for (const WhScanItem *item = batch->items; item < end; item++, value++)
	{
		uint64		head;
		uint64		bytes;

		if ((item->info & (WH_LEN_MASK | WH_PAYLOAD)) != len ||
			!has_value(batch, item))
			return false;
		head = (uint64) item->head >> (8 * padding);

		/* The tail is the end of these bytes, and the header is before it. */
		memcpy(&bytes, (char *) page + item->off + tail - sizeof(bytes),
			   sizeof(bytes));
		bytes = prefix | head << (8 * tail) | (pg_ntoh64(bytes) & mask);
		store_att_byval(value, number_value(&column, bytes), column.attlen);
	}
	batch->has_numbers = true;
	batch->used = batch->nitems * sizeof(*value);
	return true;
}

/*
 * Makes the tuple of a uuid.  False for a null.  The key is put together so
 * that its mark is on the last byte of the tuple's header, which is written
 * later.
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
	wh_finish_tuple(tuple, sizeof(IndexTupleData) + UUID_LEN, 0);
	return true;
}

/*
 * Makes the tuple of a string.  False for a null, or a string with escapes.
 * The mark before the bytes is overwritten by a byte of the value's header.
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
	wh_finish_tuple(tuple, sizeof(IndexTupleData) + header + n, INDEX_VAR_MASK);
	return true;
}

/*
 * Copies bytes, complemented in descending columns.
 */
static inline void
copy_flipped(uint8 *to, const uint8 *from, int len, uint8 flip)
{
	memcpy(to, from, len);
	if (flip == 0)
		return;
	for (int i = 0; i < len; i++)
		to[i] ^= flip;
}

/*
 * Appends a string, which begins at *in, to a tuple's data of *size bytes.
 * False for a string with escapes.  Padding is zero, so that readers can tell
 * it from a header of one byte.
 */
static bool
put_string(const WhShortColumn *column, const uint8 **in, const uint8 *end,
		   char *data, int *size)
{
	const uint8 *string = *in;
	const uint8 *after = memchr(string, 0x00 ^ column->flip, end - string);
	int			n = after - string;

	if (after == NULL || memchr(string, 0x01 ^ column->flip, n) != NULL)
		return false;
	*in = after + 1;
	if (n + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
	{
		SET_VARSIZE_SHORT(data + *size, n + VARHDRSZ_SHORT);
		*size += VARHDRSZ_SHORT;
	}
	else
	{
		memset(data + *size, 0, sizeof(int32));
		*size = INTALIGN(*size);
		SET_VARSIZE(data + *size, n + VARHDRSZ);
		*size += VARHDRSZ;
	}
	copy_flipped((uint8 *) data + *size, string, n, column->flip);
	*size += n;
	return true;
}

/*
 * Appends a number, which begins at *in, to a tuple's data of *size bytes.
 */
static inline void
put_number(const WhShortColumn *column, const uint8 **in, char *data,
		   int *size)
{
	uint64		bytes;
	Datum		value;

	memcpy(&bytes, *in, sizeof(bytes));
	value = number_value(column,
						 pg_ntoh64(bytes) >> (64 - 8 * column->width));
	*in += column->width;
	memset(data + *size, 0, MAXIMUM_ALIGNOF);
	*size = att_align_nominal(*size, column->attalign);
	store_att_byval(data + *size, value, column->attlen);
	*size += column->attlen;
}

/*
 * Makes the tuple of a key of several columns.  False if one is null or has
 * escapes.  WH_SLACK bytes behind the key may be read.
 */
static bool
form_columns(const WhShortWay *way, const uint8 *key, int len,
			 IndexTuple tuple)
{
	const uint8 *in = key;
	const uint8 *end = key + len;
	char	   *data = (char *) (tuple + 1);
	int			size = 0;
	uint16		flags = 0;

	if (len > WH_MAX_ENTRY)
		return false;
	for (int i = 0; i < way->ncolumns; i++)
	{
		const WhShortColumn *column = &way->columns[i];
		int			least = column->kind == WH_SHORT_STRING ? 1 :
		column->kind == WH_SHORT_UUID ? UUID_LEN : column->width;

		if (end - in <= least || *in++ != WH_VALUE_MARK)
			return false;
		if (column->kind == WH_SHORT_NUMBER)
			put_number(column, &in, data, &size);
		else if (column->kind == WH_SHORT_UUID)
		{
			copy_flipped((uint8 *) data + size, in, UUID_LEN, column->flip);
			size += UUID_LEN;
			in += UUID_LEN;
		}
		else
		{
			if (!put_string(column, &in, end, data, &size))
				return false;
			flags = INDEX_VAR_MASK;
		}
	}
	wh_finish_tuple(tuple, sizeof(IndexTupleData) + size, flags);
	return in == end;
}

/*
 * Puts an item's key together in key, which has WH_BOUNDS_SPACE bytes.
 * Returns its length.
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
 * Makes the index tuple of an item in a way that suits all columns; payload is
 * NULL or the item's, of payload_len bytes.
 */
static pg_noinline void
form_any(IndexScanDesc scan, const WhScanItem *item, const uint8 *payload,
		 int payload_len)
{
	WhScan		so = (WhScan) scan->opaque;
	Relation	index = scan->indexRelation;
	int			len = put_together(&so->batch, item, so->bounds_space);
	MemoryContext old;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	if (so->way.kind == WH_SHORT_COLUMNS && payload == NULL &&
		form_columns(&so->way, so->bounds_space, len, so->tuple))
		return;
	MemoryContextReset(so->tuple_context);
	old = MemoryContextSwitchTo(so->tuple_context);
	wh_decode(index, so->bounds_space, len, payload, payload_len, values,
			  isnull);
	scan->xs_itup = index_form_tuple(RelationGetDescr(index), values, isnull);
	MemoryContextSwitchTo(old);
}

/*
 * The same for an item with a payload.
 */
static pg_noinline void
form_with_payload(IndexScanDesc scan, const WhScanItem *item)
{
	const WhBatch *batch = &((WhScan) scan->opaque)->batch;
	const uint8 *payload = batch->space + item->off + tail_len(item) +
	sizeof(ItemPointerData);
	uint16		len;

	memcpy(&len, payload, sizeof(len));
	form_any(scan, item, payload + sizeof(len), len);
}

/*
 * Makes the index tuple of an item of the scan's batch, which has no numbers:
 * scan->xs_itup, valid until the next one is made.
 */
void
wh_form_tuple(IndexScanDesc scan, const WhScanItem *item)
{
	WhScan		so = (WhScan) scan->opaque;
	const WhBatch *batch = &so->batch;
	bool		done = false;

	scan->xs_itup = so->tuple;
	if (item->info & WH_PAYLOAD)
	{
		form_with_payload(scan, item);
		return;
	}
	if (so->way.kind == WH_SHORT_UUID)
		done = form_uuid(batch, item, so->tuple);
	else if (so->way.kind == WH_SHORT_STRING)
		done = form_string(batch, item, so->tuple);
	if (!done)
		form_any(scan, item, NULL, 0);
}
