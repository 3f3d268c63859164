/*-------------------------------------------------------------------------
 *
 * rowkey.c
 *	  The encoding of rows into byte strings.
 *
 * For each column a marker byte tells NULL from a value, sorted as the column
 * wants its NULLs.  A value follows in one of three forms:
 *
 *	- numbers: as many bytes as the type's range needs (four for an integer),
 *	  the highest first, counted from the least number there is;
 *	- byte strings that tell where they end (uuid, interval, inet): as they
 *	  are;
 *	- other byte strings: 0x00 becomes 0x01 0x01 and 0x01 becomes 0x01 0x02,
 *	  then comes 0x00, which no longer occurs within and sorts before all
 *	  that does, as the end of a string sorts before its extensions.
 *
 * Each form keeps the order, and none of its strings is a prefix of another.
 * So in descending columns all bytes of a value can be complemented.
 *
 * In rows that are cut, a column's key may be a cut one already.  What is put
 * behind it, its end to begin with, says nothing true, but is not kept either:
 * with the marker before it, the row is too long by then.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "common/hashfn.h"
#include "filter/filter.h"
#include "key/codec_impl.h"
#include "key/rowkey.h"
#include "port/pg_bitutils.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"
#include "utils/uuid.h"

/* Markers.  NULL is below or above the values. */
#define MARK_NULL_FIRST		0x00
#define MARK_VALUE			0x01
#define MARK_NULL_LAST		0x02

/* Bytes with a meaning in a byte string. */
#define STRING_END			0x00
#define STRING_ESCAPE		0x01
#define ESCAPED(byte)		((byte) + 1)

/*
 * The ids of codecs of rows begin here; another encoding, another number.  Those
 * of columns are 0x7F at most, so that row_codec_id() can sum them up.
 */
#define ROW_CODEC_ID		0x8000

/* A codec of rows, once made. */
typedef struct RowCodec
{
	RfCodec		codec;
	RfRowFormat format;
	const RfCodec *columns[RF_MAX_COLUMNS];
	struct RowCodec *next;
} RowCodec;

/*
 * How many bytes the numbers of a codec take.
 */
static int
number_width(const RfCodec *codec)
{
	const RfCodecEntry *entry = (const RfCodecEntry *) codec;
	uint64		span = entry->last - entry->first;

	return span == 0 ? 1 : pg_leftmost_one_pos64(span) / 8 + 1;
}

/*
 * Appends the marker of a value, and its number.  The number is one the type
 * has.
 */
static void
put_number(const RfRowColumn *column, uint64 num, StringInfo row)
{
	const RfCodecEntry *entry = (const RfCodecEntry *) column->codec;
	int			width = number_width(column->codec);

	Assert(num >= entry->first && num <= entry->last);
	num -= entry->first;
	num = pg_hton64((column->desc ? ~num : num) << (64 - 8 * width));

	/* All eight bytes are copied, which takes a single move. */
	enlargeStringInfo(row, sizeof(num));
	memcpy(row->data + row->len, &num, sizeof(num));
	row->len += width;
	row->data[row->len] = '\0';
}

/*
 * Return true if one of eight bytes has a meaning in a byte string.  (Subtracting 2 from each
 * borrows from its highest bit only if that was off and the byte less than 2;
 * the first such byte from below shows, whatever the borrow does above it.)
 */
static inline bool
any_to_escape(const uint8 *data)
{
	const uint64 ones = UINT64CONST(0x0101010101010101);
	uint64		bytes;

	memcpy(&bytes, data, sizeof(bytes));
	return ((bytes - 2 * ones) & ~bytes & (ones << 7)) != 0;
}

/*
 * Appends a byte string that may hold any bytes, without its end.
 */
static void
put_escaped(const uint8 *data, uint32 len, uint8 flip, StringInfo row)
{
	enlargeStringInfo(row, len);
	for (uint32 i = 0; i < len;)
	{
		uint32		run = i;

		while (run + sizeof(uint64) <= len && !any_to_escape(data + run))
			run += sizeof(uint64);
		while (run < len && data[run] > STRING_ESCAPE)
			run++;
		if (flip == 0)
			appendBinaryStringInfo(row, (const char *) data + i, run - i);
		else
		{
			for (; i < run; i++)
				appendStringInfoCharMacro(row, data[i] ^ flip);
		}
		i = run;
		if (i < len)
		{
			appendStringInfoCharMacro(row, STRING_ESCAPE ^ flip);
			appendStringInfoCharMacro(row, ESCAPED(data[i]) ^ flip);
			i++;
		}
	}
}

/*
 * Appends a byte string.
 */
static void
put_bytes(const RfRowColumn *column, const RfKey *key, StringInfo row)
{
	const RfCodecEntry *entry = (const RfCodecEntry *) column->codec;
	uint8		flip = column->desc ? 0xFF : 0;

	if (entry->length != NULL && flip == 0)
	{
		appendBinaryStringInfo(row, (const char *) key->data, key->len);
		return;
	}
	if (entry->length != NULL)
	{
		enlargeStringInfo(row, key->len);
		for (uint32 i = 0; i < key->len; i++)
			appendStringInfoCharMacro(row, key->data[i] ^ flip);
		return;
	}
	put_escaped(key->data, key->len, flip, row);
	appendStringInfoCharMacro(row, STRING_END ^ flip);
}

void
rf_row_put_null(const RfRowFormat *format, int column, StringInfo row)
{
	appendStringInfoCharMacro(row, format->columns[column].nulls_first ?
							  MARK_NULL_FIRST : MARK_NULL_LAST);
}

void
rf_row_put_key(const RfRowFormat *format, int column, const RfKey *key,
			   StringInfo row)
{
	const RfRowColumn *form = &format->columns[column];

	appendStringInfoCharMacro(row, MARK_VALUE);
	if (form->codec->kind == RF_KEY_U64)
		put_number(form, key->num, row);
	else
		put_bytes(form, key, row);
}

/*
 * Cuts what is longer than a key may be.
 */
static void
cut_row(const RfRowFormat *format, StringInfo row)
{
	if (!format->whole && row->len > FILTER_MAX_KEY)
	{
		row->len = FILTER_MAX_KEY;
		row->data[row->len] = '\0';
	}
}

bool
rf_row_encode(const RfRowFormat *format, const Datum *values,
			  const bool *isnull, StringInfo row)
{
	bool		ordered = true;

	for (int i = 0; i < format->ncolumns; i++)
	{
		const RfCodec *codec = format->columns[i].codec;
		RfKey		key = {0};

		if (!format->whole && row->len >= FILTER_MAX_KEY)
			break;
		if (isnull[i])
		{
			rf_row_put_null(format, i, row);
			continue;
		}
		if (format->whole && rf_key_in_place(codec, values[i], &key))
		{
			rf_row_put_key(format, i, &key, row);
			continue;
		}
		key = format->whole ? rf_encode_whole(codec, values[i]) :
			rf_encode(codec, values[i]);
		ordered = ordered && !key.unordered;
		rf_row_put_key(format, i, &key, row);
		if (codec->kind == RF_KEY_BYTES)
			pfree(unconstify(uint8 *, key.data));
	}
	cut_row(format, row);
	return ordered;
}

/*
 * The first byte string that is greater than all that start with the given
 * one, which is changed to it.  False where there is none.
 */
static bool
skip_extensions(StringInfo row)
{
	while (row->len > 0 && (uint8) row->data[row->len - 1] == 0xFF)
		row->len--;
	if (row->len == 0)
		return false;
	row->data[row->len - 1]++;
	return true;
}

/*
 * A row's bytes as a key, in memory of their length: a set may have a thousand
 * of them for each list in a query.  Frees the buffer.
 */
static RfKey
finish_row(const RfRowFormat *format, StringInfo row)
{
	RfKey		key = {0};

	cut_row(format, row);
	key.data = memcpy(palloc(row->len + 1), row->data, row->len + 1);
	key.len = row->len;
	pfree(row->data);
	pfree(row);
	return key;
}

/*
 * Makes a range of two ends: all keys from lo up to, not including, hi.  A cut
 * upper end is in the range: keys below the whole one may be cut to it.  Frees
 * both buffers.
 */
static void
make_range(const RfRowFormat *format, StringInfo lo, StringInfo hi,
		   RfRange *result)
{
	memset(result, 0, sizeof(*result));
	result->hi_excl = format->whole || hi->len <= FILTER_MAX_KEY;
	result->lo = finish_row(format, lo);
	result->hi = finish_row(format, hi);
}

/*
 * A buffer that starts with the given bytes.
 */
static StringInfo
start_row(const char *prefix, int len)
{
	StringInfo	row = makeStringInfo();

	appendBinaryStringInfo(row, prefix, len);
	return row;
}

void
rf_row_prefix_range(const RfRowFormat *format, const char *prefix, int len,
					RfRange *result)
{
	StringInfo	lo = start_row(prefix, len);
	StringInfo	hi = start_row(prefix, len);

	if (skip_extensions(hi))
		make_range(format, lo, hi, result);
	else
	{
		/* A row starts with a marker, so these are all rows. */
		memset(result, 0, sizeof(*result));
		result->lo_inf = result->hi_inf = true;
	}
}

/*
 * Return true if a range has no end among the column's keys on this side.  Numbers outside the
 * type's are beyond all of them.
 */
static bool
no_end(const RfCodec *codec, bool inf, const RfKey *key)
{
	const RfCodecEntry *entry = (const RfCodecEntry *) codec;

	return inf || (codec->kind == RF_KEY_U64 &&
				   (key->num < entry->first || key->num > entry->last));
}

/*
 * Return true if a range begins after its lower end.  Strings have a next one, the same
 * with a zero byte, by which a range says so.  Those that tell where they end
 * have none that is encoded alike: here it is made the string itself again.
 */
static bool
begins_after(const RfCodec *codec, RfKey *lo)
{
	const RfCodecEntry *entry = (const RfCodecEntry *) codec;
	int			length;

	if (entry->length == NULL)
		return false;
	length = entry->length(lo->data, lo->len);
	if (length < 0 || length >= lo->len)
		return false;
	lo->len = length;
	return true;
}

/*
 * In the order of the encoding a range begins at one of its ends (the upper
 * one in a descending column) and ends at the other.  Its beginning is a
 * value's encoding, or, where the value is outside, what comes after all rows
 * that have it; its end likewise, the other way round.
 */
void
rf_row_range(const RfRowFormat *format, const char *prefix, int len,
			 int column, const RfRange *range, RfRange *result)
{
	const RfRowColumn *form = &format->columns[column];
	bool		lo_inf = no_end(form->codec, range->lo_inf, &range->lo);
	bool		hi_inf = no_end(form->codec, range->hi_inf, &range->hi);
	bool		desc = form->desc;
	RfKey		lo = range->lo;
	bool		lo_excl = !lo_inf && begins_after(form->codec, &lo);
	StringInfo	first = start_row(prefix, len);
	StringInfo	last = start_row(prefix, len);

	if (desc ? hi_inf : lo_inf)
		appendStringInfoChar(first, MARK_VALUE);
	else
	{
		rf_row_put_key(format, column, desc ? &range->hi : &lo, first);
		if (desc ? range->hi_excl : lo_excl)
			skip_extensions(first);
	}
	if (desc ? lo_inf : hi_inf)
		appendStringInfoChar(last, MARK_VALUE + 1);
	else
	{
		rf_row_put_key(format, column, desc ? &lo : &range->hi, last);
		if (!(desc ? lo_excl : range->hi_excl))
			skip_extensions(last);
	}
	make_range(format, first, last, result);
}

/*
 * Takes a number off.
 */
static RfRowPart
get_number(const RfRowColumn *column, const uint8 **at, const uint8 *end,
		   RfKey *key)
{
	const RfCodecEntry *entry = (const RfCodecEntry *) column->codec;
	int			width = number_width(column->codec);
	uint8		flip = column->desc ? 0xFF : 0;

	if (end - *at < width)
		return RF_ROW_CUT;
	key->num = 0;
	while (width-- > 0)
		key->num = key->num << 8 | (uint8) (*(*at)++ ^ flip);
	if (key->num > entry->last - entry->first)
		return RF_ROW_BAD;
	key->num += entry->first;
	return RF_ROW_VALUE;
}

/*
 * Takes off a byte string that tells where it ends.  What is left is bent
 * straight first, at most as much as such strings are long.
 */
static RfRowPart
get_plain(const RfRowColumn *column, const uint8 **at, const uint8 *end,
		  RfKey *key)
{
	const RfCodecEntry *entry = (const RfCodecEntry *) column->codec;
	uint32		left = Min(end - *at, RF_PLAIN_MAX);
	uint8	   *data = palloc(RF_PLAIN_MAX);
	int			len;

	for (uint32 i = 0; i < left; i++)
		data[i] = (*at)[i] ^ (column->desc ? 0xFF : 0);
	len = entry->length(data, left);
	if (len < 0)
		return RF_ROW_BAD;
	if (len > left)
		return RF_ROW_CUT;
	*at += len;
	key->data = data;
	key->len = len;
	return RF_ROW_VALUE;
}

/*
 * Takes off a byte string with an end.
 */
static RfRowPart
get_escaped(const RfRowColumn *column, const uint8 **at, const uint8 *end,
			RfKey *key)
{
	uint8		flip = column->desc ? 0xFF : 0;
	uint8	   *data = palloc(end - *at);
	uint32		len = 0;

	while (*at < end)
	{
		uint8		byte = *(*at)++ ^ flip;

		if (byte == STRING_END)
		{
			key->data = data;
			key->len = len;
			return RF_ROW_VALUE;
		}
		if (byte == STRING_ESCAPE)
		{
			if (*at == end)
				break;
			byte = (*(*at)++ ^ flip) - 1;
			if (byte > STRING_ESCAPE)
				return RF_ROW_BAD;
		}
		data[len++] = byte;
	}
	key->data = data;
	key->len = len;
	return RF_ROW_CUT;
}

RfRowPart
rf_row_get(const RfRowFormat *format, int column, const uint8 **at,
		   const uint8 *end, RfKey *key)
{
	const RfRowColumn *form = &format->columns[column];
	const RfCodecEntry *entry = (const RfCodecEntry *) form->codec;
	uint8		mark;

	memset(key, 0, sizeof(*key));
	if (*at == end)
		return RF_ROW_CUT;
	mark = *(*at)++;
	if (mark == (form->nulls_first ? MARK_NULL_FIRST : MARK_NULL_LAST))
		return RF_ROW_NULL;
	if (mark != MARK_VALUE)
		return RF_ROW_BAD;
	if (form->codec->kind == RF_KEY_U64)
		return get_number(form, at, end, key);
	if (entry->length != NULL)
		return get_plain(form, at, end, key);
	return get_escaped(form, at, end, key);
}

/*
 * Moves *at, which is behind a column's mark, behind its value.  False if the value does not end
 * before end.
 */
static bool
skip_value(const RfRowColumn *column, const uint8 **at, const uint8 *end)
{
	const RfCodecEntry *entry = (const RfCodecEntry *) column->codec;
	uint8		flip = column->desc ? 0xFF : 0;
	uint8		plain[RF_PLAIN_MAX];
	int			len = Min(end - *at, RF_PLAIN_MAX);

	if (column->codec->kind != RF_KEY_U64 && entry->length == NULL)
	{
		while (*at < end)
		{
			uint8		byte = *(*at)++ ^ flip;

			if (byte == STRING_END)
				return true;
			if (byte == STRING_ESCAPE && *at < end)
				(*at)++;
		}
		return false;
	}
	if (column->codec->kind == RF_KEY_U64)
		len = number_width(column->codec);
	else
	{
		for (int i = 0; i < len; i++)
			plain[i] = (*at)[i] ^ flip;
		len = entry->length(plain, len);
	}
	if (len < 0 || len > end - *at)
		return false;
	*at += len;
	return true;
}

/*
 * Moves *at behind a column of a row.  False if the column does not end before end, or is not what
 * the encoding makes.
 */
static bool
skip_column(const RfRowFormat *format, int column, const uint8 **at, const uint8 *end)
{
	const RfRowColumn *form = &format->columns[column];
	uint8		mark;

	if (*at == end)
		return false;
	mark = *(*at)++;
	return mark == (form->nulls_first ? MARK_NULL_FIRST : MARK_NULL_LAST) ||
		(mark == MARK_VALUE && skip_value(form, at, end));
}

/*
 * The hash of the first bytes of a key.
 */
static inline uint64
hash_to(const RfKey *key, const uint8 *end)
{
	FilterBytes bytes = {key->data, end - key->data};

	return filter_hash(bytes);
}

int
rf_key_hashes(const RfCodec *codec, const RfKey *key, uint64 *hashes)
{
	const uint8 *end = key->data + key->len;
	const uint8 *at = key->data;
	int			n = 0;

	/*
	 * What leads all columns but the last one, and is not the whole of a key
	 * that was cut.
	 */
	for (int i = 0; codec->row != NULL && i < codec->row->ncolumns - 1; i++)
	{
		if (!skip_column(codec->row, i, &at, end) || at == end)
			break;
		hashes[n++] = hash_to(key, at);
	}
	hashes[n++] = hash_to(key, end);
	return n;
}

/*
 * Is a key the encoding of some leading columns, none of them cut?
 */
static bool
is_leading(const RfRowFormat *format, const RfKey *key)
{
	const uint8 *end = key->data + key->len;
	const uint8 *at = key->data;

	for (int i = 0; i < format->ncolumns && at < end; i++)
	{
		if (!skip_column(format, i, &at, end))
			return false;
	}
	return key->len > 0 && at == end;
}

/*
 * Are the keys of a range all that begin with its lower end?
 */
static bool
is_prefix_range(const RfRange *range)
{
	const RfKey *lo = &range->lo;
	const RfKey *hi = &range->hi;

	/*
	 * The upper end is the lower one without bytes 0xFF at its end, and the
	 * last byte plus one.
	 */
	if (range->lo_inf || range->hi_inf || !range->hi_excl || hi->len == 0 || hi->len > lo->len ||
		memcmp(lo->data, hi->data, hi->len - 1) != 0 ||
		lo->data[hi->len - 1] == 0xFF || lo->data[hi->len - 1] + 1 != hi->data[hi->len - 1])
		return false;
	for (uint32 i = hi->len; i < lo->len; i++)
	{
		if (lo->data[i] != 0xFF)
			return false;
	}
	return true;
}

int
rf_range_hashes(const RfCodec *codec, const RfRange *range, uint64 *hashes)
{
	if (codec->kind == RF_KEY_BYTES &&
		(rf_range_is_key(codec->kind, range) ||
		 (codec->row != NULL && is_prefix_range(range) && is_leading(codec->row, &range->lo))))
		return rf_key_hashes(codec, &range->lo, hashes);
	return 0;
}

/*
 * The key of a row as text, (1,abc,NULL), palloc'd; dots where it was cut: of a
 * column that was, a string's first bytes are shown.  Never raises an error.
 */
static char *
row_show(const RfRowFormat *format, const RfKey *row)
{
	const uint8 *at = row->data;
	const uint8 *end = row->data + row->len;
	StringInfoData shown;

	initStringInfo(&shown);
	appendStringInfoChar(&shown, '(');
	for (int i = 0; i < format->ncolumns; i++)
	{
		const RfCodec *codec = format->columns[i].codec;
		RfKey		key;
		RfRowPart	part = rf_row_get(format, i, &at, end, &key);

		if (i > 0)
			appendStringInfoChar(&shown, ',');
		if (part == RF_ROW_BAD)
			return rf_show_raw(row);
		if (part == RF_ROW_NULL)
			appendStringInfoString(&shown, "NULL");
		else if (part == RF_ROW_VALUE)
			appendStringInfoString(&shown, codec->show(&key));
		else
		{
			if (key.len > 0 && codec->collatable)
				appendStringInfoString(&shown, codec->show(&key));
			appendStringInfoString(&shown, "...");
			return shown.data;
		}
	}
	if (at != end)
		return rf_show_raw(row);
	appendStringInfoChar(&shown, ')');
	return shown.data;
}

/*
 * The id of rows of such columns.  If some columns' encodings change, or that
 * of one of their types, the sum does: each has a bit for a factor.
 */
static uint16
row_codec_id(const RfRowFormat *format)
{
	uint32		id = ROW_CODEC_ID;

	for (int i = 0; i < format->ncolumns; i++)
		id += (uint32) format->columns[i].codec->id << i;
	Assert(id <= PG_UINT16_MAX);
	return (uint16) id;
}

uint64
rf_row_collators(const RfRowFormat *format)
{
	uint64		sum = 0;

	for (int i = 0; i < format->ncolumns; i++)
	{
		uint64		one = format->columns[i].codec->collators;

		if (one != 0)
			sum = hash_combine64(hash_combine64(sum, i), one);
	}
	return sum;
}

/*
 * There are few, and each is made once.
 */
const RfCodec *
rf_row_codec(const RfCodec *const *columns, int ncolumns)
{
	static RowCodec *made = NULL;
	RowCodec   *codec;

	Assert(ncolumns > 0 && ncolumns <= RF_MAX_COLUMNS);
	if (ncolumns == 1)
		return columns[0];
	for (codec = made; codec != NULL; codec = codec->next)
	{
		if (codec->format.ncolumns == ncolumns &&
			memcmp(codec->columns, columns,
				   ncolumns * sizeof(columns[0])) == 0)
			return &codec->codec;
	}
	codec = MemoryContextAllocZero(TopMemoryContext, sizeof(RowCodec));
	memcpy(codec->columns, columns, ncolumns * sizeof(columns[0]));
	codec->format.ncolumns = ncolumns;
	for (int i = 0; i < ncolumns; i++)
		codec->format.columns[i].codec = columns[i];
	codec->codec.type = RECORDOID;
	codec->codec.id = row_codec_id(&codec->format);
	codec->codec.kind = RF_KEY_BYTES;
	codec->codec.collators = rf_row_collators(&codec->format);
	codec->codec.row = &codec->format;
	codec->next = made;
	made = codec;
	return &codec->codec;
}

bool
rf_encode_row(const RfCodec *codec, const Datum *values, const bool *isnull,
			  RfKey *key)
{
	StringInfoData row;

	memset(key, 0, sizeof(*key));
	if (codec->row == NULL)
	{
		if (!isnull[0])
			*key = rf_encode(codec, values[0]);
		return !isnull[0];
	}
	initStringInfo(&row);
	key->unordered = !rf_row_encode(codec->row, values, isnull, &row);
	key->data = (const uint8 *) row.data;
	key->len = row.len;
	return true;
}

char *
rf_show_key(const RfCodec *codec, const RfKey *key)
{
	return codec->row != NULL ? row_show(codec->row, key) :
		codec->show(key);
}
