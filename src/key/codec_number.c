/*-------------------------------------------------------------------------
 *
 * codec_number.c
 *	  Encodings into 64-bit numbers.
 *
 * Signed integers, and the types that are one inside (timestamp, date, time,
 * money), get their sign bit flipped: unsigned order is then theirs, and all
 * widths of integer share one number line, which makes int2, int4 and int8
 * comparable key by key.  Floats use the bit pattern, whose order is that of
 * the number for positive ones and the reverse for negative ones.
 *
 * All of it is exact in both directions but for one corner of timetz (see
 * there), so a strict bound is the number next to it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "datatype/timestamp.h"
#include "key/codec_impl.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/cash.h"
#include "utils/date.h"
#include "utils/float.h"
#include "utils/inet.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#define FLOAT4_SIGN		UINT64CONST(0x80000000)

/*
 * timetz: the upper 47 bits hold the UTC time in microseconds, the lower 17
 * the zone, counted from the least one the UTC time can have.
 */
#define TIMETZ_ZONE_BITS	17
#define TIMETZ_ZONE_MASK	((INT64CONST(1) << TIMETZ_ZONE_BITS) - 1)
#define TIMETZ_UTC_LIMIT	(INT64CONST(1) << (63 - TIMETZ_ZONE_BITS))

/*
 * Number to key.
 */
static inline RfKey
number_key(uint64 num)
{
	RfKey		key = {.num = num};

	return key;
}

/*
 * Key to number, for the codecs that flip the sign bit.
 */
static inline int64
signed_number(const RfKey *key)
{
	return (int64) (key->num ^ RF_SIGN_BIT);
}

/*
 * Division and remainder that round towards minus infinity.
 */
static inline int64
floor_div(int64 a, int64 b, int64 *remainder)
{
	int64		quotient = a / b;

	*remainder = a % b;
	if (*remainder < 0)
	{
		*remainder += b;
		quotient--;
	}
	return quotient;
}

RfKey
rf_encode_int2(Datum value)
{
	return number_key(RF_SIGNED(DatumGetInt16(value)));
}

/* Also date: the infinities are the extreme integers. */
RfKey
rf_encode_int4(Datum value)
{
	return number_key(RF_SIGNED(DatumGetInt32(value)));
}

/* Also timestamp, timestamptz (likewise), time and money. */
RfKey
rf_encode_int8(Datum value)
{
	return number_key(RF_SIGNED(DatumGetInt64(value)));
}

RfKey
rf_encode_oid(Datum value)
{
	return number_key(DatumGetObjectId(value));
}

RfKey
rf_encode_bool(Datum value)
{
	return number_key(DatumGetBool(value) ? 1 : 0);
}

/*
 * The key of a float4: 32 bits, so that neighbours stay neighbours.  One key
 * for both zeros, and one for all NaNs, above infinity.
 */
static uint64
float4_number(float4 value)
{
	uint32		bits;

	if (isnan(value))
		return RF_FLOAT4_LAST;
	if (value == 0)
		return FLOAT4_SIGN;
	memcpy(&bits, &value, sizeof(bits));
	return (bits & FLOAT4_SIGN) ? (uint32) ~bits : bits | FLOAT4_SIGN;
}

/*
 * The key of a float8, likewise.
 */
static uint64
float8_number(float8 value)
{
	uint64		bits;

	if (isnan(value))
		return RF_FLOAT8_LAST;
	if (value == 0)
		return RF_SIGN_BIT;
	memcpy(&bits, &value, sizeof(bits));
	return (bits & RF_SIGN_BIT) ? ~bits : bits | RF_SIGN_BIT;
}

RfKey
rf_encode_float4(Datum value)
{
	return number_key(float4_number(DatumGetFloat4(value)));
}

RfKey
rf_encode_float8(Datum value)
{
	return number_key(float8_number(DatumGetFloat8(value)));
}

/*
 * timetz sorts by UTC time, then zone.  A value's zone can be any integer
 * (AT TIME ZONE with an interval checks nothing), so UTC time takes 52 bits;
 * but with it known, the local time being within a day leaves only 86401
 * zones.  Within 814 days of UTC midnight both fit exactly; what is further
 * out, which no zone on earth is, shares the first or the last number.
 */
RfKey
rf_encode_timetz(Datum value)
{
	TimeTzADT  *timetz = DatumGetTimeTzADTP(value);
	int64		utc = timetz->time + timetz->zone * USECS_PER_SEC;
	int64		fraction;
	int64		zone;

	if (utc < -TIMETZ_UTC_LIMIT)
		return number_key(0);
	if (utc >= TIMETZ_UTC_LIMIT)
		return number_key(PG_UINT64_MAX);
	zone = timetz->zone -
		(floor_div(utc, USECS_PER_SEC, &fraction) - SECS_PER_DAY);
	zone = Max(zone, 0);
	zone = Min(zone, TIMETZ_ZONE_MASK);
	return number_key(((uint64) (utc + TIMETZ_UTC_LIMIT) << TIMETZ_ZONE_BITS) |
					  (uint64) zone);
}

/*
 * The bytes in order, as one number.
 */
RfKey
rf_encode_macaddr(Datum value)
{
	macaddr    *mac = DatumGetMacaddrP(value);

	return number_key((uint64) mac->a << 40 | (uint64) mac->b << 32 |
					  (uint64) mac->c << 24 | (uint64) mac->d << 16 |
					  (uint64) mac->e << 8 | (uint64) mac->f);
}

RfKey
rf_encode_macaddr8(Datum value)
{
	macaddr8   *mac = DatumGetMacaddr8P(value);

	return number_key((uint64) mac->a << 56 | (uint64) mac->b << 48 |
					  (uint64) mac->c << 40 | (uint64) mac->d << 32 |
					  (uint64) mac->e << 24 | (uint64) mac->f << 16 |
					  (uint64) mac->g << 8 | (uint64) mac->h);
}

/*
 * The type's own text for a value decoded from a key, or the bare number
 * where no value has that key: type output functions may raise errors on, or
 * overflow with, what is not a value of the type.
 */
static char *
show_number(const RfKey *key, bool valid, PGFunction output, Datum value)
{
	if (!valid)
		return psprintf("0x%08x%08x", (uint32) (key->num >> 32),
						(uint32) key->num);
	return DatumGetCString(DirectFunctionCall1(output, value));
}

char *
rf_show_int2(const RfKey *key)
{
	int64		value = signed_number(key);

	return show_number(key, value >= PG_INT16_MIN && value <= PG_INT16_MAX,
					   int2out, Int16GetDatum((int16) value));
}

char *
rf_show_int4(const RfKey *key)
{
	int64		value = signed_number(key);

	return show_number(key, value >= PG_INT32_MIN && value <= PG_INT32_MAX,
					   int4out, Int32GetDatum((int32) value));
}

char *
rf_show_int8(const RfKey *key)
{
	return show_number(key, true, int8out, Int64GetDatum(signed_number(key)));
}

char *
rf_show_oid(const RfKey *key)
{
	return show_number(key, key->num <= PG_UINT32_MAX, oidout,
					   ObjectIdGetDatum((Oid) key->num));
}

/*
 * The label; the number where there is no such label any more.
 */
char *
rf_show_enum(const RfKey *key)
{
	HeapTuple	tuple = key->num > PG_UINT32_MAX ? NULL :
	SearchSysCache1(ENUMOID, ObjectIdGetDatum((Oid) key->num));
	char	   *label;

	if (!HeapTupleIsValid(tuple))
		return rf_show_oid(key);
	label = pstrdup(NameStr(((Form_pg_enum) GETSTRUCT(tuple))->enumlabel));
	ReleaseSysCache(tuple);
	return label;
}

char *
rf_show_bool(const RfKey *key)
{
	return show_number(key, key->num <= 1, boolout,
					   BoolGetDatum(key->num != 0));
}

char *
rf_show_float4(const RfKey *key)
{
	uint32		bits = (uint32) key->num;
	float4		value;

	bits = (bits & FLOAT4_SIGN) ? bits ^ (uint32) FLOAT4_SIGN : ~bits;
	memcpy(&value, &bits, sizeof(value));
	return show_number(key, key->num <= PG_UINT32_MAX, float4out,
					   Float4GetDatum(value));
}

char *
rf_show_float8(const RfKey *key)
{
	uint64		bits = key->num;
	float8		value;

	bits = (bits & RF_SIGN_BIT) ? bits ^ RF_SIGN_BIT : ~bits;
	memcpy(&value, &bits, sizeof(value));
	return show_number(key, true, float8out, Float8GetDatum(value));
}

char *
rf_show_date(const RfKey *key)
{
	int64		value = signed_number(key);

	return show_number(key, value == DATEVAL_NOBEGIN ||
					   value == DATEVAL_NOEND || IS_VALID_DATE(value),
					   date_out, DateADTGetDatum((DateADT) value));
}

char *
rf_show_timestamp(const RfKey *key)
{
	Timestamp	value = signed_number(key);

	return show_number(key,
					   TIMESTAMP_NOT_FINITE(value) || IS_VALID_TIMESTAMP(value),
					   timestamp_out, TimestampGetDatum(value));
}

char *
rf_show_timestamptz(const RfKey *key)
{
	TimestampTz value = signed_number(key);

	return show_number(key,
					   TIMESTAMP_NOT_FINITE(value) || IS_VALID_TIMESTAMP(value),
					   timestamptz_out, TimestampTzGetDatum(value));
}

char *
rf_show_time(const RfKey *key)
{
	TimeADT		value = signed_number(key);

	return show_number(key, value >= 0 && value <= USECS_PER_DAY,
					   time_out, TimeADTGetDatum(value));
}

char *
rf_show_timetz(const RfKey *key)
{
	int64		utc = (int64) (key->num >> TIMETZ_ZONE_BITS) - TIMETZ_UTC_LIMIT;
	int64		fraction;
	int64		zone;
	TimeTzADT	value = {0};

	zone = (int64) (key->num & TIMETZ_ZONE_MASK) +
		floor_div(utc, USECS_PER_SEC, &fraction) - SECS_PER_DAY;
	value.zone = (int32) zone;
	value.time = utc - zone * USECS_PER_SEC;
	return show_number(key, key->num != 0 && key->num != PG_UINT64_MAX &&
					   value.time >= 0 && value.time <= USECS_PER_DAY,
					   timetz_out, TimeTzADTPGetDatum(&value));
}

char *
rf_show_money(const RfKey *key)
{
	return show_number(key, true, cash_out, CashGetDatum(signed_number(key)));
}

char *
rf_show_macaddr(const RfKey *key)
{
	macaddr		mac;

	mac.a = (key->num >> 40) & 0xFF;
	mac.b = (key->num >> 32) & 0xFF;
	mac.c = (key->num >> 24) & 0xFF;
	mac.d = (key->num >> 16) & 0xFF;
	mac.e = (key->num >> 8) & 0xFF;
	mac.f = key->num & 0xFF;
	return show_number(key, key->num >> 48 == 0, macaddr_out,
					   MacaddrPGetDatum(&mac));
}

char *
rf_show_macaddr8(const RfKey *key)
{
	macaddr8	mac;

	mac.a = (key->num >> 56) & 0xFF;
	mac.b = (key->num >> 48) & 0xFF;
	mac.c = (key->num >> 40) & 0xFF;
	mac.d = (key->num >> 32) & 0xFF;
	mac.e = (key->num >> 24) & 0xFF;
	mac.f = (key->num >> 16) & 0xFF;
	mac.g = (key->num >> 8) & 0xFF;
	mac.h = key->num & 0xFF;
	return show_number(key, true, macaddr8_out, Macaddr8PGetDatum(&mac));
}

/*
 * Sets a position.
 */
static bool
place_at(RfPosition *position, uint64 num, RfFit fit)
{
	position->key = number_key(num);
	position->fit = fit;
	return true;
}

/*
 * Integers of all widths are on one number line.
 */
bool
rf_place_integer(Oid type, Datum value, RfPosition *position)
{
	switch (type)
	{
		case INT2OID:
			return place_at(position, RF_SIGNED(DatumGetInt16(value)),
							RF_FIT_EXACT);
		case INT4OID:
			return place_at(position, RF_SIGNED(DatumGetInt32(value)),
							RF_FIT_EXACT);
		case INT8OID:
			return place_at(position, RF_SIGNED(DatumGetInt64(value)),
							RF_FIT_EXACT);
		default:
			return false;
	}
}

/*
 * A float8 among float4 keys.  The comparison is made in float8, so a value
 * that no float4 equals lies between two: the one below it is found here.
 * One step below zero is the unused key of -0.0, which serves as well.
 */
bool
rf_place_float4(Oid type, Datum value, RfPosition *position)
{
	float8		wide;
	float4		narrow;
	uint64		num;

	if (type != FLOAT8OID)
		return false;
	wide = DatumGetFloat8(value);
	if (isnan(wide))
		return place_at(position, RF_FLOAT4_LAST, RF_FIT_EXACT);

	/* Finite but out of range: converting that is not defined in C. */
	if (!isinf(wide) && wide > FLT_MAX)
		return place_at(position, float4_number(FLT_MAX), RF_FIT_BETWEEN);
	if (!isinf(wide) && wide < -FLT_MAX)
		return place_at(position, RF_FLOAT4_FIRST, RF_FIT_BETWEEN);

	narrow = (float4) wide;
	num = float4_number(narrow);
	if ((float8) narrow == wide)
		return place_at(position, num, RF_FIT_EXACT);
	return place_at(position, (float8) narrow > wide ? num - 1 : num,
					RF_FIT_BETWEEN);
}

/*
 * Every float4 is a float8.
 */
bool
rf_place_float8(Oid type, Datum value, RfPosition *position)
{
	if (type != FLOAT4OID)
		return false;
	return place_at(position, float8_number((float8) DatumGetFloat4(value)),
					RF_FIT_EXACT);
}

/*
 * A timestamp among dates, each of which stands for its midnight.  Dates past
 * the last timestamp compare greater than all finite ones, which the plain
 * number line gives.  (Operators with timestamptz depend on the session's
 * time zone: not here.)
 */
bool
rf_place_date(Oid type, Datum value, RfPosition *position)
{
	Timestamp	timestamp;
	int64		day;
	int64		rest;

	if (type != TIMESTAMPOID)
		return false;
	timestamp = DatumGetTimestamp(value);
	if (TIMESTAMP_IS_NOBEGIN(timestamp))
		return place_at(position, RF_SIGNED(DATEVAL_NOBEGIN), RF_FIT_EXACT);
	if (TIMESTAMP_IS_NOEND(timestamp))
		return place_at(position, RF_SIGNED(DATEVAL_NOEND), RF_FIT_EXACT);
	day = floor_div(timestamp, USECS_PER_DAY, &rest);
	return place_at(position, RF_SIGNED(day),
					rest == 0 ? RF_FIT_EXACT : RF_FIT_BETWEEN);
}

/*
 * A date among timestamps: its midnight, or, past the last timestamp, between
 * all finite ones and infinity.
 */
bool
rf_place_timestamp(Oid type, Datum value, RfPosition *position)
{
	Timestamp	midnight;
	RfOverflow	overflow = RF_NO_OVERFLOW;

	if (type != DATEOID)
		return false;
	midnight = RF_CONVERT(date2timestamp, DatumGetDateADT(value), &overflow);
	if (RF_OVERFLOWED(overflow))
		return place_at(position, RF_SIGNED(DT_NOEND - 1), RF_FIT_BETWEEN);
	return place_at(position, RF_SIGNED(midnight), RF_FIT_EXACT);
}

/*
 * Return true if the offsets from UTC that the session's time zone has around an instant, which is
 * finite, are less than RF_ZONE_HOURS.  The offsets are those before and after the next change of the
 * clocks.  The rules of a time zone that is given by its offsets are the same each
 * year, so these are all that it has.
 */
bool
rf_zone_is_ordinary(TimestampTz instant)
{
	const long	limit = RF_ZONE_HOURS * SECS_PER_HOUR;
	pg_time_t	at = timestamptz_to_time_t(instant);
	pg_time_t	change;
	long		before;
	long		after;
	int			is_dst;
	int			changes = pg_next_dst_boundary(&at, &before, &is_dst, &change,
											   &after, &is_dst, session_timezone);

	return changes >= 0 && labs(before) < limit &&
		(changes == 0 || labs(after) < limit);
}
