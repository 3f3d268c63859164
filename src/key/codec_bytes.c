/*-------------------------------------------------------------------------
 *
 * codec_bytes.c
 *	  Encodings into byte strings: text and its kin, uuid, inet, interval.
 *
 * Byte strings compare as memcmp does, a prefix before its extensions.  Text
 * is its own bytes (which is the order of the C collation, and under any
 * deterministic collation the same equality), so the encodings here are exact
 * but for one thing: they are cut at FILTER_MAX_KEY bytes.
 *
 * Cutting is monotone (a <= b implies that the first n bytes of a are <= the
 * first n bytes of b), so keys and bounds may be cut alike and a row that
 * satisfies a closed bound still does.  Only strictness can be lost, and only
 * at keys of the full length: a cut key k stands for k and all that starts
 * with it.  See rf_codec_compare().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/socket.h>

#include "catalog/pg_type.h"
#include "common/int.h"
#include "datatype/timestamp.h"
#include "filter/filter.h"
#include "key/codec_impl.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/inet.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

/* The first byte of an inet key. */
#define INET_V4		4
#define INET_V6		6

/* interval: 6 bytes of days, biased, then 5 bytes of microseconds in the day */
#define INTERVAL_DAY_BYTES	6
#define INTERVAL_TIME_BYTES	5
#define INTERVAL_KEY_LEN	(INTERVAL_DAY_BYTES + INTERVAL_TIME_BYTES)
#define INTERVAL_DAY_BIAS	(INT64CONST(1) << (8 * INTERVAL_DAY_BYTES - 1))

/* A byte key that is a copy of these bytes. */
static RfKey
bytes_key_whole(const void *data, Size len)
{
	RfKey		key = {0};
	uint8	   *copy = palloc(len);

	memcpy(copy, data, len);
	key.data = copy;
	key.len = len;
	return key;
}

RfKey
rf_bytes_key(const void *data, Size len)
{
	return bytes_key_whole(data, Min(len, FILTER_MAX_KEY));
}

/*
 * The first bytes of a string, at most limit of them where it had to be
 * fetched or decompressed: a megabyte is not read to keep a kilobyte.  The
 * result is the datum itself or palloc'd.
 */
static struct varlena *
string_head(Datum value, int32 limit)
{
	struct varlena *string = (struct varlena *) DatumGetPointer(value);

	if (VARATT_IS_COMPRESSED(string) || VARATT_IS_EXTERNAL(string))
		return PG_DETOAST_DATUM_SLICE(value, 0, limit);
	return string;
}

/*
 * Frees what string_head() returned.
 */
static void
string_release(struct varlena *string, Datum value)
{
	if ((Pointer) string != DatumGetPointer(value))
		pfree(string);
}

/*
 * text, varchar and bytea: the bytes.
 */
RfKey
rf_encode_text(Datum value)
{
	struct varlena *string = string_head(value, FILTER_MAX_KEY);
	RfKey		key;

	key = rf_bytes_key(VARDATA_ANY(string), VARSIZE_ANY_EXHDR(string));
	string_release(string, value);
	return key;
}

RfKey
rf_encode_text_whole(Datum value)
{
	struct varlena *string = PG_DETOAST_DATUM_PACKED(value);
	RfKey		key;

	key = bytes_key_whole(VARDATA_ANY(string), VARSIZE_ANY_EXHDR(string));
	string_release(string, value);
	return key;
}

/*
 * The length of a string without its trailing blanks.
 */
static Size
length_without_blanks(const struct varlena *string)
{
	const char *data = VARDATA_ANY(string);
	Size		len = VARSIZE_ANY_EXHDR(string);

	while (len > 0 && data[len - 1] == ' ')
		len--;
	return len;
}

/*
 * bpchar: the bytes without trailing blanks, and only then cut.  (Stripping
 * what was cut would sort 'a' || 1000 blanks || 'b' with 'a', before
 * 'a' || chr(1), though it comes after.)  So where the head of a long value
 * ends in blanks, only the rest tells whether they are trailing ones.
 */
RfKey
rf_encode_bpchar(Datum value)
{
	struct varlena *string = string_head(value, FILTER_MAX_KEY + 1);
	Size		len = length_without_blanks(string);
	RfKey		key;

	if (len < FILTER_MAX_KEY && VARSIZE_ANY_EXHDR(string) > FILTER_MAX_KEY)
	{
		string_release(string, value);
		string = PG_DETOAST_DATUM_PACKED(value);
		len = length_without_blanks(string);
	}
	key = rf_bytes_key(VARDATA_ANY(string), len);
	string_release(string, value);
	return key;
}

RfKey
rf_encode_bpchar_whole(Datum value)
{
	struct varlena *string = PG_DETOAST_DATUM_PACKED(value);
	RfKey		key;

	key = bytes_key_whole(VARDATA_ANY(string),
						  length_without_blanks(string));
	string_release(string, value);
	return key;
}

/*
 * name: the bytes up to the first zero byte.
 */
RfKey
rf_encode_name(Datum value)
{
	Name		name = DatumGetName(value);

	return rf_bytes_key(NameStr(*name), strnlen(NameStr(*name), NAMEDATALEN));
}

RfKey
rf_encode_uuid(Datum value)
{
	return rf_bytes_key(DatumGetUUIDP(value)->data, UUID_LEN);
}

int
rf_length_uuid(const uint8 *data, uint32 avail)
{
	return UUID_LEN;
}

/*
 * Clears all bits of an address from the given one on.
 */
static void
mask_address(uint8 *address, int bytes, int bits)
{
	int			i = bits / 8;

	if (i < bytes)
	{
		address[i] &= (uint8) (0xFF00 >> (bits % 8));
		memset(address + i + 1, 0, bytes - i - 1);
	}
}

/*
 * inet and cidr compare by family, then network, then its length, then the
 * whole address.  So: a byte for the family, the network padded with zero
 * bits, a byte for the length, and of the address those bytes that the
 * network does not determine (equally many for all of one length; none for
 * a plain host).
 */
RfKey
rf_encode_inet(Datum value)
{
	inet	   *address = (inet *) PG_DETOAST_DATUM_PACKED(value);
	bool		v4 = ip_family(address) == PGSQL_AF_INET;
	int			bytes = v4 ? 4 : 16;
	int			bits = Min(ip_bits(address), bytes * 8);
	int			host = bits / 8;
	uint8		buffer[1 + 16 + 1 + 16];
	uint8	   *network = buffer + 1;

	buffer[0] = v4 ? INET_V4 : INET_V6;
	memcpy(network, ip_addr(address), bytes);
	mask_address(network, bytes, bits);
	network[bytes] = bits;
	memcpy(network + bytes + 1, ip_addr(address) + host, bytes - host);
	string_release((struct varlena *) address, value);
	return rf_bytes_key(buffer, 1 + bytes + 1 + bytes - host);
}

int
rf_length_inet(const uint8 *data, uint32 avail)
{
	int			bytes;
	int			bits;

	if (avail < 1)
		return 1;
	if (data[0] != INET_V4 && data[0] != INET_V6)
		return -1;
	bytes = data[0] == INET_V4 ? 4 : 16;
	if (avail < 1 + bytes + 1)
		return 1 + bytes + 1;
	bits = data[1 + bytes];
	return bits > bytes * 8 ? -1 : 1 + bytes + 1 + bytes - bits / 8;
}

/*
 * Stores the low bytes of a number, the highest first.
 */
static void
put_bytes(uint8 *to, int bytes, uint64 number)
{
	while (bytes-- > 0)
	{
		to[bytes] = number & 0xFF;
		number >>= 8;
	}
}

/*
 * The number put_bytes() stored.
 */
static uint64
get_bytes(const uint8 *from, int bytes)
{
	uint64		number = 0;

	while (bytes-- > 0)
		number = number << 8 | *from++;
	return number;
}

/*
 * interval compares by its length in microseconds, a month being 30 days and
 * a day 24 hours: a number of 73 bits.  Here it is written in two digits,
 * whole days (37 bits and a sign, whatever the fields hold) and the rest.
 */
RfKey
rf_encode_interval(Datum value)
{
	Interval   *interval = DatumGetIntervalP(value);
	int64		days = interval->time / USECS_PER_DAY;
	int64		rest = interval->time % USECS_PER_DAY;
	uint8		buffer[INTERVAL_KEY_LEN];

	if (rest < 0)
	{
		rest += USECS_PER_DAY;
		days--;
	}
	days += interval->month * INT64CONST(30) + interval->day;
	put_bytes(buffer, INTERVAL_DAY_BYTES, (uint64) (days + INTERVAL_DAY_BIAS));
	put_bytes(buffer + INTERVAL_DAY_BYTES, INTERVAL_TIME_BYTES, (uint64) rest);
	return rf_bytes_key(buffer, INTERVAL_KEY_LEN);
}

int
rf_length_interval(const uint8 *data, uint32 avail)
{
	return INTERVAL_KEY_LEN;
}

/*
 * The bytes in hexadecimal, with dots where the key was cut.
 */
char *
rf_show_raw(const RfKey *key)
{
	StringInfoData shown;
	uint32		i;

	initStringInfo(&shown);
	appendStringInfoString(&shown, "\\x");
	for (i = 0; i < key->len; i++)
		appendStringInfo(&shown, "%02x", key->data[i]);
	if (key->len == FILTER_MAX_KEY)
		appendStringInfoString(&shown, "...");
	return shown.data;
}

/*
 * text, varchar, bpchar and name.  A cut may go through a character, whose
 * first bytes are then left out.  Anything else that is not valid in the
 * database's encoding is shown as bytes.
 */
char *
rf_show_text(const RfKey *key)
{
	int			encoding = GetDatabaseEncoding();
	bool		cut = key->len == FILTER_MAX_KEY;
	int			valid;

	if (key->len == 0)
		return pstrdup("");
	valid = pg_encoding_verifymbstr(encoding, (const char *) key->data,
									key->len);
	if (key->len - valid >= (cut ? pg_encoding_max_length(encoding) : 1))
		return rf_show_raw(key);
	return psprintf("%.*s%s", valid, (const char *) key->data,
					cut ? "..." : "");
}

char *
rf_show_bytea(const RfKey *key)
{
	bytea	   *value = palloc(VARHDRSZ + key->len);
	char	   *shown;

	SET_VARSIZE(value, VARHDRSZ + key->len);
	if (key->len > 0)
		memcpy(VARDATA(value), key->data, key->len);
	shown = DatumGetCString(DirectFunctionCall1(byteaout,
												PointerGetDatum(value)));
	if (key->len == FILTER_MAX_KEY)
		return psprintf("%s...", shown);
	return shown;
}

char *
rf_show_uuid(const RfKey *key)
{
	pg_uuid_t	uuid;

	if (key->len != UUID_LEN)
		return rf_show_raw(key);
	memcpy(uuid.data, key->data, UUID_LEN);
	return DatumGetCString(DirectFunctionCall1(uuid_out,
											   UUIDPGetDatum(&uuid)));
}

char *
rf_show_inet(const RfKey *key)
{
	bool		v4 = key->len > 0 && key->data[0] == INET_V4;
	int			bytes = v4 ? 4 : 16;
	int			bits;
	int			host;
	inet	   *address;

	if (key->len < 1 + bytes + 1 || (!v4 && key->data[0] != INET_V6))
		return rf_show_raw(key);
	bits = key->data[1 + bytes];
	host = bits / 8;
	if (bits > bytes * 8 || key->len != 1 + bytes + 1 + bytes - host)
		return rf_show_raw(key);

	address = palloc0(sizeof(inet));
	ip_family(address) = v4 ? PGSQL_AF_INET : PGSQL_AF_INET6;
	ip_bits(address) = bits;
	memcpy(ip_addr(address), key->data + 1, bytes);
	memcpy(ip_addr(address) + host, key->data + 1 + bytes + 1, bytes - host);
	SET_INET_VARSIZE(address);
	return DatumGetCString(DirectFunctionCall1(inet_out,
											   InetPGetDatum(address)));
}

/*
 * Moves as much of a number of units into a 32-bit field as fits there;
 * returns what is left.
 */
static int64
fill_field(int32 *field, int64 units)
{
	*field = (int32) Max(Min(units, PG_INT32_MAX), PG_INT32_MIN);
	return units - *field;
}

/*
 * An interval of the same length: in days and time where that fits, else
 * with months, and with days in the time at the far extremes.
 */
char *
rf_show_interval(const RfKey *key)
{
	Interval	interval = {0};
	int64		days;
	int64		rest;
	int64		time;

	if (key->len != INTERVAL_KEY_LEN)
		return rf_show_raw(key);
	days = (int64) get_bytes(key->data, INTERVAL_DAY_BYTES) -
		INTERVAL_DAY_BIAS;
	rest = (int64) get_bytes(key->data + INTERVAL_DAY_BYTES,
							 INTERVAL_TIME_BYTES);
	if (days < PG_INT32_MIN || days > PG_INT32_MAX)
	{
		(void) fill_field(&interval.month, days / 30);
		days -= interval.month * INT64CONST(30);
	}
	days = fill_field(&interval.day, days);

	/* Keep both parts on one side of zero, or the sum's parts overflow. */
	if (days < 0)
	{
		days++;
		rest -= USECS_PER_DAY;
	}
	if (rest >= USECS_PER_DAY ||
		pg_mul_s64_overflow(days, USECS_PER_DAY, &time) ||
		pg_add_s64_overflow(time, rest, &interval.time))
		return rf_show_raw(key);
	return DatumGetCString(DirectFunctionCall1(interval_out,
											   IntervalPGetDatum(&interval)));
}

/*
 * Names and texts compare byte by byte, cut or not.
 */
bool
rf_place_string(Oid type, Datum value, RfPosition *position)
{
	switch (type)
	{
		case TEXTOID:
			position->key = rf_encode_text_whole(value);
			return true;
		case NAMEOID:
			position->key = rf_encode_name(value);
			return true;
		default:
			return false;
	}
}

/*
 * The whole key of a non-null value whose bytes are its key: points into the value.  False where
 * they are not, or are compressed or elsewhere.  No errors.
 */
bool
rf_key_in_place(const RfCodec *codec, Datum value, RfKey *key)
{
	const struct varlena *string;

	if (codec->collator != NULL || codec->row != NULL)
		return false;
	switch (codec->type)
	{
		case UUIDOID:
			key->data = DatumGetUUIDP(value)->data;
			key->len = UUID_LEN;
			return true;
		case TEXTOID:
		case BYTEAOID:
			string = (const struct varlena *) DatumGetPointer(value);
			if (VARATT_IS_COMPRESSED(string) || VARATT_IS_EXTERNAL(string))
				return false;
			key->data = (const uint8 *) VARDATA_ANY(string);
			key->len = VARSIZE_ANY_EXHDR(string);
			return true;
		default:
			return false;
	}
}
