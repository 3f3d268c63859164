/*-------------------------------------------------------------------------
 *
 * codec_icu.c
 *	  Strings under collations of ICU, by their sort keys.
 *
 * ICU makes of a string and a collator a *sort key*: bytes that compare by
 * memcmp as the collator compares strings, whatever its locale and attributes
 * (numeric order, strength, upper case first).  It has no zero byte but the
 * one at its end.
 *
 * Where the collator finds two strings equal, PostgreSQL compares their bytes,
 * unless the collation is nondeterministic.  So the key is
 *
 *		sort key, 0x00, bytes of the string
 *
 * which is the same order, has the same equality, and gives the string back;
 * under a nondeterministic collation it is the sort key alone, without its
 * zero.  Nothing about the start of a sort key follows from the start of a
 * string ("ch" may be a letter of its own), so prefixes cannot be asked for.
 *
 * Another version of ICU may sort in another way.  The collator's version
 * goes into a number that indexes keep, and with it the sort keys of some
 * strings: that the collation is another one for whatever reason shows in them
 * if anywhere.
 *
 * ICU's functions are called directly; their symbols, which have ICU's version
 * in their names, are those the server itself is linked with.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "common/hashfn.h"
#include "compat.h"
#include "filter/filter.h"
#include "key/codec_impl.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"
#include "utils/syscache.h"

#ifdef USE_ICU

#include <unicode/uchar.h>
#include <unicode/ucnv.h>
#include <unicode/ucol.h>

/* Strings and sort keys up to these lengths take no memory of their own. */
#define SHORT_STRING	512
#define SHORT_KEY		2048

/*
 * Strings whose order tells collators from each other: case, accents, digits,
 * punctuation, contractions, and letters that languages have at other places.
 */
static const char *const samples[] = {
	"a", "A", "b", "10", "9", "-", " ", "co-op", "coop", "ch", "ll", "dz",
	"\xc3\xa4", "\xc3\xb6", "\xc3\xa5", "\xc3\xb1", "\xc3\x9f", "\xc3\xa9",
	"\xc5\x82", "\xc4\x8d", "\xc4\xb1", "I", "\xd1\x8f", "\xe4\xb8\xad",
	"\xe6\x96\x87", "\xe3\x81\x8b", "\xe3\x82\xab", "\xea\xb0\x80",
	"\xf0\x9f\x98\x80"
};

/*
 * A string in the database's encoding as UTF-16, palloc'd.
 */
static int32
convert_to_utf16(const char *string, uint32 len, UChar **result)
{
	static UConverter *converter = NULL;
	UErrorCode	status = U_ZERO_ERROR;
	int32		size;

	if (converter == NULL)
	{
		const char *encoding = get_encoding_name_for_icu(GetDatabaseEncoding());

		if (encoding == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("encoding \"%s\" not supported by ICU",
							GetDatabaseEncodingName())));
		converter = ucnv_open(encoding, &status);
		if (U_FAILURE(status))
		{
			converter = NULL;
			elog(ERROR, "ICU has no converter for \"%s\": %s", encoding,
				 u_errorName(status));
		}
	}

	/* Rarely more units than bytes: then ICU says how many it needs. */
	size = len;
	for (;;)
	{
		int32		needed;

		*result = palloc(((Size) size + 1) * sizeof(UChar));
		status = U_ZERO_ERROR;
		needed = ucnv_toUChars(converter, *result, size + 1, string, len,
							   &status);
		if (U_SUCCESS(status))
			return needed;
		if (status != U_BUFFER_OVERFLOW_ERROR || needed <= size)
			elog(ERROR, "ICU could not convert a string of %u bytes: %s", len,
				 u_errorName(status));
		pfree(*result);
		size = needed;
	}
}

/*
 * A string as UTF-16: in buffer, which has room for SHORT_STRING, or palloc'd.
 * Returns its length.
 */
static int32
to_utf16(const char *string, uint32 len, UChar *buffer, UChar **result)
{
	if (len <= SHORT_STRING && GetDatabaseEncoding() == PG_UTF8)
	{
		uint32		i;

		for (i = 0; i < len && !IS_HIGHBIT_SET(string[i]); i++)
			buffer[i] = (UChar) string[i];
		*result = buffer;
		if (i == len)
			return (int32) len;
	}
	return convert_to_utf16(string, len, result);
}

/*
 * Return true if a combining mark is newer than Unicode 6.0.
 */
static bool
is_new_mark(UChar32 mark)
{
	UVersionInfo age;

	u_charAge(mark, age);
	return age[0] > 6 || (age[0] == 6 && age[1] > 0);
}

/*
 * Return true if ICU contradicts itself about a string.  In databases of UTF-8 PostgreSQL compares with
 * ucol_strcollUTF8().  Behind a common beginning that takes a mark beyond U+FFFF for the start
 * of a letter, and so may find a < b < c < a, where a has such a mark.  Normalizing collators
 * do so behind U+FDD0 and U+FDD1, which are no characters.  And they do not put into order marks
 * that are newer than ICU's table of marks; which those are depends on ICU's version, so all that
 * are rather new count.  No key has such an order.
 */
static bool
has_no_order(const RfCollator *collator, const UChar *utf16, int32 len)
{
	for (int32 i = 0; i < len;)
	{
		UChar32		c;

		U16_NEXT(utf16, i, len, c);
		if (c == 0xFDD0 || c == 0xFDD1)
			return true;
		if ((c > 0xFFFF || collator->normalizing) && u_getCombiningClass(c) != 0 &&
			(c > 0xFFFF || is_new_mark(c)))
			return true;
	}
	return false;
}

/*
 * The key of a string: its sort key, and behind that, under a deterministic
 * collation, its bytes.  The data is palloc'd.
 */
RfKey
rf_collate(const RfCollator *collator, const char *string, uint32 len)
{
	UChar		short_string[SHORT_STRING];
	uint8		short_key[SHORT_KEY];
	UChar	   *utf16;
	int32		utf16_len = to_utf16(string, len, short_string, &utf16);
	int32		sort_len = ucol_getSortKey(collator->ucol, utf16, utf16_len,
										   short_key, SHORT_KEY);
	RfKey		key = {0};
	uint32		string_len = collator->deterministic ? len : 0;
	uint8	   *data;

	if (sort_len <= 0)
		elog(ERROR, "ICU made no sort key of a string of %u bytes", len);
	data = palloc_extended((Size) sort_len + string_len, MCXT_ALLOC_HUGE);
	if (sort_len <= SHORT_KEY)
		memcpy(data, short_key, sort_len);
	else if (ucol_getSortKey(collator->ucol, utf16, utf16_len, data,
							 sort_len) != sort_len)
		elog(ERROR, "ICU made two sort keys of one string");
	if (utf16 != short_string)
	{
		key.unordered = has_no_order(collator, utf16, utf16_len);
		pfree(utf16);
	}

	Assert(memchr(data, 0, sort_len) == data + sort_len - 1);
	key.data = data;
	key.len = sort_len - 1;
	if (collator->deterministic)
	{
		memcpy(data + sort_len, string, len);
		key.len = sort_len + len;
	}
	return key;
}

/*
 * What tells this collator from others.
 */
static uint64
collator_version(const RfCollator *collator)
{
	UVersionInfo version;
	uint64		hash;

	ucol_getVersion(collator->ucol, version);
	hash = hash_bytes_extended(version, sizeof(version),
							   collator->deterministic ? 1 : 0);
	for (int i = 0; i < lengthof(samples); i++)
	{
		RfKey		key;

		/* Other encodings than UTF-8 may lack the character. */
		if (IS_HIGHBIT_SET(samples[i][0]) && GetDatabaseEncoding() != PG_UTF8)
			continue;
		key = rf_collate(collator, samples[i], strlen(samples[i]));
		hash = hash_bytes_extended(key.data, key.len, hash);
		pfree(unconstify(uint8 *, key.data));
	}
	return hash != 0 ? hash : 1;
}

/*
 * The provider of the database's own collation.
 */
static char
database_provider(void)
{
	HeapTuple	tuple = SearchSysCache1(DATABASEOID,
										ObjectIdGetDatum(MyDatabaseId));
	char		provider;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
	provider = ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider;
	ReleaseSysCache(tuple);
	return provider;
}

/*
 * Return true if ICU is the collation's provider.  (The server is not to be asked for
 * locales of others, which the system may lack.)
 */
static bool
is_icu(Oid collation)
{
	HeapTuple	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	char		provider;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	provider = ((Form_pg_collation) GETSTRUCT(tuple))->collprovider;
	ReleaseSysCache(tuple);
	if (provider == COLLPROVIDER_DEFAULT)
		provider = database_provider();
	return provider == COLLPROVIDER_ICU;
}

/*
 * Strings whose order by comparison is another than by sort keys where ICU errs:
 *
 *	- Digits were moved behind letters (kr-latn-digit), or before the signs of currencies.
 *	  Only sort keys move the ASCII digits, if the other string is Latin, too.
 *	- Numbers are compared as such (kn) in a language with an order of its own (sv).  After
 *	  a common beginning comparison goes back to where a number begins, but then does not
 *	  take digits other than ASCII ones for digits.  (It goes back from the second letter of
 *	  "aa" in Danish.  So here the letter is of Ogham, which is in no pair.)
 */
static const UChar doubtful[][2][3] = {
	{{'a'}, {'0'}},
	{{'$'}, {'0'}},
	{{0x0661, 0x1681}, {0x0661, 0x0661}},
	{{0x0967, 0x1681}, {0x0967, 0x0967}},
	{{0xFF11, 0x1681}, {0xFF11, 0xFF11}}
};

/*
 * Return true if two strings, which end with zero, compare as their sort keys do.
 */
static bool
pair_agrees(const UCollator * ucol, const UChar *a, const UChar *b)
{
	uint8		keys[2][SHORT_KEY];
	int			lengths[2];
	int			order;

	lengths[0] = ucol_getSortKey(ucol, a, -1, keys[0], SHORT_KEY);
	lengths[1] = ucol_getSortKey(ucol, b, -1, keys[1], SHORT_KEY);
	if (lengths[0] <= 0 || lengths[0] > SHORT_KEY ||
		lengths[1] <= 0 || lengths[1] > SHORT_KEY)
		return false;
	order = strcmp((char *) keys[0], (char *) keys[1]);
	return (int) ucol_strcoll(ucol, a, -1, b, -1) == (order > 0) - (order < 0);
}

/*
 * Return true if sort keys order strings as the collator compares them.  ICU says so, and errs
 * where accents are compared from the end (fr-CA), where punctuation is "shifted" to a
 * level behind the others, or where strings are compared by their characters in the end
 * (ks-identic): characters that count for nothing, such as U+200B, then change either
 * comparison or key.  Where else it errs, the doubtful strings show.
 * PostgreSQL goes by the comparison.
 */
static bool
keys_agree(const UCollator * ucol)
{
	UErrorCode	status = U_ZERO_ERROR;
	bool		agree = ucol_getAttribute(ucol, UCOL_FRENCH_COLLATION,
										  &status) == UCOL_OFF &&
	ucol_getAttribute(ucol, UCOL_ALTERNATE_HANDLING,
					  &status) == UCOL_NON_IGNORABLE &&
	ucol_getStrength(ucol) != UCOL_IDENTICAL;

	for (int i = 0; i < lengthof(doubtful); i++)
		agree = agree && pair_agrees(ucol, doubtful[i][0], doubtful[i][1]);
	return agree && U_SUCCESS(status);
}

/*
 * The collator of a collation, or NULL where its provider is not ICU, or where keys
 * made by it would not order strings as it does.  It lives as long as the process.
 */
const RfCollator *
rf_collator_find(Oid collation)
{
	static RfCollator *made = NULL;
	RfCollator *collator;
	RfCollator	found = {0};
	pg_locale_t locale;

	for (collator = made; collator != NULL; collator = collator->next)
	{
		if (collator->collation == collation)
			return collator->ucol != NULL ? collator : NULL;
	}
	if (!is_icu(collation))
		return NULL;
	locale = pg_newlocale_from_collation(collation);
	found.collation = collation;
	if (keys_agree(RF_UCOLLATOR(locale)))
	{
		UErrorCode	status = U_ZERO_ERROR;

		found.deterministic = get_collation_isdeterministic(collation);
		found.ucol = RF_UCOLLATOR(locale);
		found.normalizing = ucol_getAttribute(found.ucol, UCOL_NORMALIZATION_MODE, &status) != UCOL_OFF;
		found.version = collator_version(&found);
	}
	found.next = made;
	collator = MemoryContextAlloc(TopMemoryContext, sizeof(RfCollator));
	*collator = found;
	made = collator;
	return collator->ucol != NULL ? collator : NULL;
}

#else							/* !USE_ICU */

const RfCollator *
rf_collator_find(Oid collation)
{
	return NULL;
}

RfKey
rf_collate(const RfCollator *collator, const char *string, uint32 len)
{
	RfKey		key = {0};

	elog(ERROR, "collation %u needs ICU", collator->collation);
	return key;
}

#endif							/* USE_ICU */

/*
 * Finds the string's bytes in a key; false where the key has none.
 */
static bool
find_string(const RfKey *key, const char **string, uint32 *len)
{
	const uint8 *end = key->len == 0 ? NULL : memchr(key->data, 0, key->len);

	if (end == NULL)
		return false;
	*string = (const char *) end + 1;
	*len = key->data + key->len - (end + 1);
	return true;
}

bool
rf_codec_has_string(const RfCodec *codec)
{
	return codec->collator->deterministic;
}

bool
rf_codec_string(const RfCodec *codec, const RfKey *key, const char **string,
				uint32 *len)
{
	return rf_codec_has_string(codec) && find_string(key, string, len);
}

/*
 * The string, or the bytes of a sort key without one.
 */
char *
rf_show_collated(const RfKey *key)
{
	const char *string;
	RfKey		bytes = {0};

	if (!find_string(key, &string, &bytes.len))
		return rf_show_raw(key);
	bytes.data = (const uint8 *) string;
	return key->len < FILTER_MAX_KEY ? rf_show_text(&bytes) :
		psprintf("%s...", rf_show_text(&bytes));
}
