/*-------------------------------------------------------------------------
 *
 * byte_keys.h
 *	  Sets of byte-string keys for tests, runs built from them, and the truth.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_BYTE_KEYS_H
#define RANGEFILTER_BYTE_KEYS_H

#include <string.h>

#include "filter/filter.h"
#include "build_run.h"
#include "strict_reader.h"
#include "unit.h"

/* A page of the server, less its headers; and one that few keys fill. */
#define PAGE_SIZE 8152
#define SMALL_PAGE 512

typedef enum KeyKind
{
	TINY,						/* short, of two letters */
	BORDERS,					/* short, of 0x00, 0xFF and few others */
	PREFIXES,					/* of each other, many */
	LONG,						/* up to 1000 bytes, nearly all shared */
	RUNS,						/* of 0x00 and 0xFF */
	NUMBERS,					/* eight random bytes */
	SERIALS,					/* consecutive numbers of eight bytes */
	UUIDS,
	URLS,
	WORDS,						/* of letters as frequent as in English */
	KEY_KINDS
} KeyKind;

static const char *const kind_names[] = {
	"tiny", "borders", "prefixes", "long", "runs", "numbers", "serials",
	"uuids", "urls", "words"
};

/* A run in memory, with the distinct keys it was built from in order. */
typedef struct Strings
{
	FilterBytes *keys;
	size_t		n;
	FilterOptions options;
	FilterRun	run;
	FilterMemoryReader reader;
	StrictReader strict;
	bool		is_strict;
} Strings;

static inline FilterBytes
copy_bytes(const void *data, uint32_t len)
{
	FilterBytes result;
	uint8_t    *copy = malloc(len > 0 ? len : 1);

	if (len > 0)
		memcpy(copy, data, len);
	result.data = copy;
	result.len = len;
	return result;
}

static inline FilterBytes
bytes_of(const char *string)
{
	return copy_bytes(string, strlen(string));
}

static inline void
free_bytes(FilterBytes bytes)
{
	free((void *) bytes.data);
}

static inline FilterBytes
make_from(const char *letters, uint32_t nletters, uint32_t len)
{
	uint8_t		bytes[FILTER_MAX_KEY];
	uint32_t	i;

	for (i = 0; i < len; i++)
		bytes[i] = (uint8_t) letters[unit_random_below(nletters)];
	return copy_bytes(bytes, len);
}

static inline FilterBytes
make_number(uint64_t value)
{
	uint8_t		bytes[8];
	int			i;

	for (i = 7; i >= 0; i--)
	{
		bytes[i] = (uint8_t) value;
		value >>= 8;
	}
	return copy_bytes(bytes, 8);
}

static inline FilterBytes
make_long(void)
{
	uint8_t		bytes[FILTER_MAX_KEY];
	uint32_t	len = unit_random_below(4) == 0 ?
	unit_random_below(FILTER_MAX_KEY + 1) : FILTER_MAX_KEY;

	memset(bytes, 'x', sizeof(bytes));
	if (len > 0 && unit_random_below(3) == 0)
		bytes[unit_random_below(len)] = (uint8_t) unit_random();
	if (len > 0)
		bytes[len - 1] = (uint8_t) unit_random();
	return copy_bytes(bytes, len);
}

static inline FilterBytes
make_runs(void)
{
	uint8_t		bytes[64];
	uint32_t	len = 0;

	while (len < 40)
	{
		uint32_t	run = 1 + unit_random_below(20);

		memset(bytes + len, unit_random_below(2) ? 0xFF : 0, run);
		len += run;
		if (unit_random_below(3) == 0)
			break;
	}
	if (unit_random_below(3) == 0)
		bytes[unit_random_below(len)] = (uint8_t) unit_random();
	return copy_bytes(bytes, unit_random_below(20) == 0 ? 0 : len);
}

static inline FilterBytes
make_url(void)
{
	static const char *const hosts[] = {"example.com", "example.org", "a.net"};
	static const char *const parts[] = {
		"index", "img", "user", "api/v1", "api/v2", "static", "search?q="
	};
	char		url[200];
	int			len = sprintf(url, "https://%s/", hosts[unit_random_below(3)]);

	do
	{
		len += sprintf(url + len, "%s/", parts[unit_random_below(7)]);
	} while (len < 100 && unit_random_below(2) == 0);
	len += sprintf(url + len, "%u", (unsigned) unit_random_below(1000000));
	return copy_bytes(url, len);
}

/* Any key; its number is used by serials. */
static inline FilterBytes
make_key(KeyKind kind, uint64_t number)
{
	switch (kind)
	{
		case TINY:
			return make_from("ab", 2, unit_random_below(10));
		case BORDERS:
			return make_from("\0\xff\1\xfe" "a", 5, unit_random_below(9));
		case PREFIXES:
			if (unit_random_below(2) == 0)
				return make_from("p", 1, unit_random_below(300));
			return make_from("ppppppppppppq\0\xff", 15, unit_random_below(40));
		case LONG:
			return make_long();
		case RUNS:
			return make_runs();
		case NUMBERS:
			return make_number(unit_random());
		case SERIALS:
			return make_number(UINT64_C(0x4200000000000000) + number);
		case UUIDS:
			{
				uint64_t	halves[2] = {unit_random(), unit_random()};

				return copy_bytes(halves, 16);
			}
		case URLS:
			return make_url();
		default:
			return make_from("eeeeeetttttaaaaaoooooiiiiinnnnsssshhhrrrddlluucmwfgypbvk",
							 56, 1 + unit_random_below(12));
	}
}

/* Builds a run; takes the keys, which are sorted and may have duplicates. */
static inline Strings
build(FilterBytes *keys, size_t n, const FilterOptions *options)
{
	Strings		strings;
	size_t		i;

	build_run(keys, n, options, &strings.run);

	strings.keys = keys;
	strings.n = 0;
	for (i = 0; i < n; i++)
	{
		if (strings.n > 0 &&
			filter_bytes_compare(keys[strings.n - 1], keys[i]) == 0)
			free_bytes(keys[i]);
		else
			keys[strings.n++] = keys[i];
	}
	strings.options = *options;
	strings.is_strict = false;
	filter_memory_reader_init(&strings.reader, strings.run.pages,
							  strings.run.npages, options->page_size);
	return strings;
}

static inline FilterOptions
make_options(FilterSuffix suffix, uint32_t bits_per_key, uint32_t page_size,
			 uint32_t root_max)
{
	FilterOptions options;

	memset(&options, 0, sizeof(options));
	options.bytes = true;
	options.suffix = suffix;
	options.bits_per_key = bits_per_key;
	options.page_size = page_size;
	options.root_max = root_max;
	return options;
}

/* Builds a run of n random keys, some of them twice. */
static inline Strings
build_random(KeyKind kind, size_t n, const FilterOptions *options)
{
	FilterBytes *keys = malloc((n + 1) * sizeof(FilterBytes));
	size_t		i;

	for (i = 0; i < n; i++)
	{
		if (i > 0 && unit_random_below(20) == 0)
			keys[i] = copy_bytes(keys[i - 1].data, keys[i - 1].len);
		else
			keys[i] = make_key(kind, i);
	}
	qsort(keys, n, sizeof(FilterBytes), compare_for_qsort);
	return build(keys, n, options);
}

/* Builds a run of a few keys given as strings, in order. */
static inline Strings
build_few(const char *const *few, size_t n, const FilterOptions *options)
{
	FilterBytes *keys = malloc(n * sizeof(FilterBytes));
	size_t		i;

	for (i = 0; i < n; i++)
		keys[i] = bytes_of(few[i]);
	return build(keys, n, options);
}

static inline void
free_strings(Strings *strings)
{
	size_t		i;

	for (i = 0; i < strings->n; i++)
		free_bytes(strings->keys[i]);
	free(strings->keys);
	filter_run_free(&strings->run);
}

/* The number of keys below a bound, or not above it. */
static inline size_t
rank_of(const Strings *strings, FilterBytes bound, bool or_equal)
{
	size_t		low = 0;
	size_t		high = strings->n;

	while (low < high)
	{
		size_t		middle = low + (high - low) / 2;

		if (filter_bytes_compare(strings->keys[middle], bound) < (or_equal ? 1 : 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The truth: how many keys are in the range? */
static inline size_t
count_in(const Strings *strings, const FilterByteRange *range)
{
	size_t		from = range->lo_unbounded ? 0 :
	rank_of(strings, range->lo, false);
	size_t		to = range->hi_unbounded ? strings->n :
	rank_of(strings, range->hi, !range->hi_exclusive);

	return from < to ? to - from : 0;
}

/* The truth: is a key in the range? */
static inline bool
holds(const Strings *strings, const FilterByteRange *range)
{
	return count_in(strings, range) > 0;
}

static inline FilterAnswer
ask(Strings *strings, const FilterByteRange *range)
{
	FilterAnswer answer;

	if (!strings->is_strict)
		return filter_query_bytes(strings->run.root, strings->run.root_len,
								  &strings->reader.reader, range);
	strict_reader_init(&strings->strict, strings->run.pages, strings->run.npages,
					   strings->options.page_size);
	answer = filter_query_bytes(strings->run.root, strings->run.root_len,
								&strings->strict.reader, range);
	CHECK(strict_reader_end(&strings->strict), "too many reads");
	return answer;
}

/* Counts; -1 where that fails. */
static inline int64_t
count(Strings *strings, const FilterByteRange *range)
{
	uint64_t	result;
	bool		done;

	if (!strings->is_strict)
		return filter_count_bytes(strings->run.root, strings->run.root_len,
								  &strings->reader.reader, range, &result) ?
			(int64_t) result : -1;
	strict_reader_init(&strings->strict, strings->run.pages, strings->run.npages,
					   strings->options.page_size);
	done = filter_count_bytes(strings->run.root, strings->run.root_len,
							  &strings->strict.reader, range, &result);
	CHECK(strict_reader_end(&strings->strict), "too many reads");
	return done ? (int64_t) result : -1;
}

static inline FilterByteRange
range_of(FilterBytes lo, FilterBytes hi)
{
	FilterByteRange range;

	memset(&range, 0, sizeof(range));
	range.lo = lo;
	range.hi = hi;
	return range;
}

/* Asks, and checks the answer against the truth. */
static inline FilterAnswer
check_range(Strings *strings, const FilterByteRange *range)
{
	FilterAnswer answer = ask(strings, range);

	CHECK(answer == FILTER_YES || (answer == FILTER_NO && !holds(strings, range)),
		  "answer %d with %zu keys, %u bits, suffix %d, pages of %u, lo %u hi %u bytes",
		  answer, strings->n, strings->options.bits_per_key,
		  strings->options.suffix, strings->options.page_size,
		  range->lo.len, range->hi.len);
	return answer;
}

static inline FilterAnswer
check_between(Strings *strings, FilterBytes lo, FilterBytes hi, bool hi_exclusive)
{
	FilterByteRange range = range_of(lo, hi);

	range.hi_exclusive = hi_exclusive;
	return check_range(strings, &range);
}

/* Something near a key: a prefix, an extension, a neighbour, or just it. */
static inline FilterBytes
make_near(FilterBytes key)
{
	uint8_t		bytes[FILTER_MAX_KEY + 2];
	uint32_t	len = key.len;
	uint32_t	at;

	if (len > 0)
		memcpy(bytes, key.data, len);
	switch (unit_random_below(8))
	{
		case 0:
			len = unit_random_below(len + 1);
			break;
		case 1:
			len -= len > 0;
			break;
		case 2:
			bytes[len++] = 0;
			break;
		case 3:
			bytes[len++] = (uint8_t) (unit_random_below(2) ? 0xFF : unit_random());
			break;
		case 4:
			if (len > 0)
				bytes[len - 1]++;
			break;
		case 5:
			if (len > 0)
				bytes[len - 1]--;
			break;
		case 6:
			at = len > 0 ? unit_random_below(len) : 0;
			bytes[at] = (uint8_t) unit_random();
			break;
		default:
			break;
	}
	return copy_bytes(bytes, len);
}

/* A bound for a query: near a key, or any. */
static inline FilterBytes
make_bound(const Strings *strings, KeyKind kind)
{
	if (strings->n == 0 || unit_random_below(4) == 0)
		return make_key(kind, unit_random_below(2 * strings->n + 1));
	return make_near(strings->keys[unit_random_below(strings->n)]);
}

/* A random range about a and b, which are put in order. */
static inline FilterByteRange
make_range(FilterBytes a, FilterBytes b)
{
	bool		in_order = filter_bytes_compare(a, b) <= 0;
	FilterByteRange range = range_of(in_order ? a : b, in_order ? b : a);

	range.hi_exclusive = unit_random_below(3) == 0;
	range.lo_unbounded = unit_random_below(16) == 0;
	range.hi_unbounded = unit_random_below(16) == 0;
	return range;
}

#endif							/* RANGEFILTER_BYTE_KEYS_H */
