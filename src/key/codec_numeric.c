/*-------------------------------------------------------------------------
 *
 * codec_numeric.c
 *	  The encoding of numeric into byte strings.
 *
 * A numeric is digits to the base 10000 and the weight of the first one.  The
 * key is a byte for the sign (or infinity, or NaN, which sorts last), two
 * bytes for the weight, biased, and two bytes for each digit, without zero
 * digits at either end, so that 1, 1.0 and 1.000 are one key.  In negative
 * numbers weight and digits are complemented, and a last byte larger than any
 * digit's puts a number after those it is a prefix of.
 *
 * The digits come from numeric_send, the one public view of them; its format
 * is part of the wire protocol.  A number of more than 498 digits to that
 * base has its key cut like a long string (codec_bytes.c says why it may).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "filter/filter.h"
#include "key/codec_impl.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/numeric.h"

/* The first byte of a key. */
#define CLASS_MINUS_INFINITY	0x10
#define CLASS_NEGATIVE			0x20
#define CLASS_ZERO				0x30
#define CLASS_POSITIVE			0x40
#define CLASS_PLUS_INFINITY		0x50
#define CLASS_NAN				0x60

/* The sign field of numeric_send's format. */
#define WIRE_POSITIVE			0x0000
#define WIRE_NEGATIVE			0x4000
#define WIRE_NAN				0xC000
#define WIRE_PLUS_INFINITY		0xD000
#define WIRE_MINUS_INFINITY		0xF000

/* The format's fields, two bytes each; then the digits. */
#define WIRE_NDIGITS			0
#define WIRE_WEIGHT				1
#define WIRE_SIGN				2
#define WIRE_DIGITS				4

#define DIGIT_MAX				9999
#define WEIGHT_BIAS				0x8000
#define KEY_HEADER				3
#define NEGATIVE_END			0xFF

/*
 * A number in two bytes, the higher first, and back.
 */
static inline void
put_uint16(uint8 *to, uint16 number)
{
	to[0] = number >> 8;
	to[1] = number & 0xFF;
}

static inline uint16
get_uint16(const uint8 *from)
{
	return (uint16) (from[0] << 8 | from[1]);
}

/*
 * The key of what has no digits.
 */
static RfKey
class_key(uint8 class)
{
	return rf_bytes_key(&class, 1);
}

/*
 * The key of a number other than zero; digits are in wire format, the first
 * and the last not zero.
 */
static RfKey
digits_key(bool negative, int weight, const uint8 *digits, int ndigits)
{
	uint16		flip = negative ? 0xFFFF : 0;
	uint8	   *data = palloc(KEY_HEADER + 2 * ndigits + 1);
	RfKey		key = {.data = data,.len = KEY_HEADER};
	int			i;

	data[0] = negative ? CLASS_NEGATIVE : CLASS_POSITIVE;
	put_uint16(data + 1, (uint16) (weight + WEIGHT_BIAS) ^ flip);
	for (i = 0; i < ndigits; i++)
	{
		uint16		digit = get_uint16(digits + 2 * i);

		put_uint16(data + key.len, negative ? DIGIT_MAX - digit : digit);
		key.len += 2;
	}
	if (negative)
		data[key.len++] = NEGATIVE_END;
	return key;
}

/*
 * Encodes what numeric_send() made.
 */
static RfKey
wire_key(const uint8 *wire)
{
	int			ndigits = get_uint16(wire + 2 * WIRE_NDIGITS);
	int			weight = (int16) get_uint16(wire + 2 * WIRE_WEIGHT);
	uint16		sign = get_uint16(wire + 2 * WIRE_SIGN);
	const uint8 *digits = wire + 2 * WIRE_DIGITS;

	switch (sign)
	{
		case WIRE_NAN:
			return class_key(CLASS_NAN);
		case WIRE_PLUS_INFINITY:
			return class_key(CLASS_PLUS_INFINITY);
		case WIRE_MINUS_INFINITY:
			return class_key(CLASS_MINUS_INFINITY);
		case WIRE_POSITIVE:
		case WIRE_NEGATIVE:
			break;
		default:
			elog(ERROR, "numeric has unknown sign 0x%04x", sign);
	}

	while (ndigits > 0 && get_uint16(digits) == 0)
	{
		digits += 2;
		ndigits--;
		weight--;
	}
	while (ndigits > 0 && get_uint16(digits + 2 * (ndigits - 1)) == 0)
		ndigits--;
	if (ndigits == 0)
		return class_key(CLASS_ZERO);
	return digits_key(sign == WIRE_NEGATIVE, weight, digits, ndigits);
}

RfKey
rf_encode_numeric_whole(Datum value)
{
	Numeric		number = DatumGetNumeric(value);
	bytea	   *wire;
	RfKey		key;

	wire = DatumGetByteaP(DirectFunctionCall1(numeric_send,
											  NumericGetDatum(number)));
	key = wire_key((uint8 *) VARDATA(wire));
	pfree(wire);
	if ((Pointer) number != DatumGetPointer(value))
		pfree(number);
	return key;
}

RfKey
rf_encode_numeric(Datum value)
{
	RfKey		key = rf_encode_numeric_whole(value);

	key.len = Min(key.len, FILTER_MAX_KEY);
	return key;
}

/*
 * Reads the digits of a key.  Returns how many, or -1 where they are none of
 * ours; *cut tells whether there were more.
 */
static int
read_digits(const RfKey *key, int16 *digits, bool *cut)
{
	bool		negative = key->data[0] == CLASS_NEGATIVE;
	int			ndigits = (key->len - KEY_HEADER) / 2;
	bool		odd = (key->len - KEY_HEADER) % 2 != 0;
	bool		ended;
	int			i;

	ended = negative && odd && key->data[key->len - 1] == NEGATIVE_END;
	*cut = key->len == FILTER_MAX_KEY && !ended;
	if (ndigits == 0 || (!*cut && (negative ? !ended : odd)))
		return -1;
	for (i = 0; i < ndigits; i++)
	{
		int			digit = get_uint16(key->data + KEY_HEADER + 2 * i);

		if (digit > DIGIT_MAX)
			return -1;
		digits[i] = negative ? DIGIT_MAX - digit : digit;
	}
	return ndigits;
}

/*
 * Appends the digits after the decimal point, zeros at the end left out.
 */
static void
append_fraction(StringInfo shown, const int16 *digits, int ndigits, int weight)
{
	int			place;

	appendStringInfoChar(shown, '.');
	for (place = -1; place >= weight - ndigits + 1; place--)
		appendStringInfo(shown, "%04d",
						 place > weight ? 0 : digits[weight - place]);
	while (shown->data[shown->len - 1] == '0')
		shown->data[--shown->len] = '\0';
}

/*
 * The number in decimal.  Of a cut one only the digits in the key are shown.
 */
static char *
show_digits(bool negative, const int16 *digits, int ndigits, int weight,
			bool cut)
{
	StringInfoData shown;
	int			place;

	initStringInfo(&shown);
	if (negative)
		appendStringInfoChar(&shown, '-');
	if (weight < 0)
		appendStringInfoChar(&shown, '0');
	for (place = weight; place >= 0; place--)
	{
		int			i = weight - place;

		if (i >= ndigits && cut)
			break;
		appendStringInfo(&shown, i == 0 ? "%d" : "%04d",
						 i < ndigits ? digits[i] : 0);
	}
	if (ndigits > weight + 1)
		append_fraction(&shown, digits, ndigits, weight);
	if (cut)
		appendStringInfoString(&shown, "...");
	return shown.data;
}

char *
rf_show_numeric(const RfKey *key)
{
	int16		digits[FILTER_MAX_KEY / 2];
	int			ndigits;
	bool		cut;
	bool		negative;
	uint16		weight;

	if (key->len == 1)
	{
		switch (key->data[0])
		{
			case CLASS_MINUS_INFINITY:
				return pstrdup("-Infinity");
			case CLASS_ZERO:
				return pstrdup("0");
			case CLASS_PLUS_INFINITY:
				return pstrdup("Infinity");
			case CLASS_NAN:
				return pstrdup("NaN");
		}
	}
	if (key->len < KEY_HEADER || key->len > FILTER_MAX_KEY ||
		(key->data[0] != CLASS_NEGATIVE && key->data[0] != CLASS_POSITIVE))
		return rf_show_raw(key);
	negative = key->data[0] == CLASS_NEGATIVE;
	ndigits = read_digits(key, digits, &cut);
	if (ndigits < 0)
		return rf_show_raw(key);
	weight = get_uint16(key->data + 1) ^ (negative ? 0xFFFF : 0);
	return show_digits(negative, digits, ndigits, (int) weight - WEIGHT_BIAS,
					   cut);
}
