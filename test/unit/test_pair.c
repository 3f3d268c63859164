/*-------------------------------------------------------------------------
 *
 * test_pair.c
 *	  Pairs: how often they are wrong, and what they take.
 *
 * test_surf.c has their answers for all kinds of keys.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "byte_keys.h"
#include "filter/base/pair.h"

#define NKEYS 20000

/* How often a run is wrong about keys like its own, which it does not have. */
typedef struct Mistakes
{
	uint32_t	asked;
	uint32_t	points;
	uint32_t	ranges;
} Mistakes;

/* The range from a key to that with its last byte + 1. */
static bool
range_behind(FilterBytes key, uint8_t *room, FilterByteRange *range)
{
	if (key.len == 0 || key.data[key.len - 1] == UINT8_MAX)
		return false;
	memcpy(room, key.data, key.len);
	room[key.len - 1]++;
	*range = range_of(key, key);
	range->hi.data = room;
	return true;
}

static Mistakes
count_mistakes(Strings *strings, const FilterBytes *others, size_t n)
{
	Mistakes	mistakes = {0, 0, 0};
	size_t		i;

	for (i = 0; i < n; i++)
	{
		uint8_t		room[FILTER_MAX_KEY];
		FilterByteRange range = range_of(others[i], others[i]);

		if (holds(strings, &range))
			continue;
		mistakes.asked++;
		mistakes.points += ask(strings, &range) != FILTER_NO;
		if (range_behind(others[i], room, &range) && !holds(strings, &range))
			mistakes.ranges += ask(strings, &range) != FILTER_NO;
	}
	return mistakes;
}

/* An e-mail address; and a path, most of which begins as many others do. */
static FilterBytes
make_email(void)
{
	static const char *const hosts[] = {"gmail.com", "example.org", "web.de", "mail.ru"};
	char		email[64];
	FilterBytes name = make_key(WORDS, 0);

	snprintf(email, sizeof(email), "%.*s.%u@%s", (int) name.len, (const char *) name.data,
			 (unsigned) unit_random_below(100), hosts[unit_random_below(4)]);
	free_bytes(name);
	return bytes_of(email);
}

static FilterBytes
make_path(void)
{
	char		path[300];
	int			len = sprintf(path, "/usr/share/%0120u/", (unsigned) unit_random_below(5));

	for (int i = 0; i < 3; i++)
		len += sprintf(path + len, "%u/", (unsigned) (unit_random() >> 59));
	sprintf(path + len, "%08x.txt", (unsigned) unit_random());
	return bytes_of(path);
}

/* Those of byte_keys.h, and two more. */
enum
{
	EMAILS = KEY_KINDS,
	PATHS,
	ALL_KINDS
};

static FilterBytes
make_any(int kind, uint64_t number)
{
	return kind == EMAILS ? make_email() : kind == PATHS ? make_path() :
		make_key((KeyKind) kind, number);
}

/* Takes every other one of distinct keys out.  Returns how many stay. */
static size_t
make_halves(int kind, FilterBytes *keys, FilterBytes *others, size_t *nothers)
{
	size_t		n = 0;
	size_t		i;

	*nothers = 0;
	for (i = 0; i < 2 * NKEYS; i++)
		keys[i] = make_any(kind, 3 * i);
	qsort(keys, 2 * NKEYS, sizeof(FilterBytes), compare_for_qsort);
	for (i = 0; i < 2 * NKEYS; i++)
	{
		if ((i > 0 && *nothers > 0 &&
			 filter_bytes_compare(others[*nothers - 1], keys[i]) == 0) ||
			(n > 0 && filter_bytes_compare(keys[n - 1], keys[i]) == 0))
			free_bytes(keys[i]);
		else if (unit_random_below(2) == 0)
			others[(*nothers)++] = keys[i];
		else
			keys[n++] = keys[i];
	}
	return n;
}

/* Copies keys, which build() takes. */
static FilterBytes *
copy_keys(const FilterBytes *keys, size_t n)
{
	FilterBytes *copy = malloc((n + 1) * sizeof(FilterBytes));

	for (size_t i = 0; i < n; i++)
		copy[i] = copy_bytes(keys[i].data, keys[i].len);
	return copy;
}

/* Is more than less, by more than chance explains? */
static bool
is_more(uint32_t more, uint32_t less)
{
	return more > less + 5 * sqrt(less + 1) + 5;
}

/*
 * With more bits a filter is not wrong more often, about points or ranges; with 10 bits it is wrong
 * about a 50th of the points, with 14 about a 500th.
 */
static void
test_more_bits(void)
{
	FilterBytes *keys = malloc(2 * NKEYS * sizeof(FilterBytes));
	FilterBytes *others = malloc(2 * NKEYS * sizeof(FilterBytes));

	for (int kind = 0; kind < ALL_KINDS; kind++)
	{
		size_t		nothers;
		size_t		n = make_halves(kind, keys, others, &nothers);
		Mistakes	before = {0, UINT32_MAX / 2, UINT32_MAX / 2};

		unit_case(kind < KEY_KINDS ? kind_names[kind] : kind == EMAILS ? "emails" : "paths");
		for (uint32_t bits = 8; bits <= 24; bits++)
		{
			/* Small pages: rounding to whole ones is little. */
			FilterOptions options = make_options(FILTER_SUFFIX_AUTO, bits, 2048, 2500);
			Strings		strings = build(copy_keys(keys, n), n, &options);
			Mistakes	now = count_mistakes(&strings, others, nothers);

			CHECK(!is_more(now.points, before.points), "%u bits: %u points, not %u of %u",
				  bits, now.points, before.points, now.asked);
			CHECK(!is_more(now.ranges, before.ranges), "%u bits: %u ranges, not %u of %u",
				  bits, now.ranges, before.ranges, now.asked);
			CHECK(bits < 10 || !is_more(now.points, now.asked / 50), "%u bits: %u points of %u",
				  bits, now.points, now.asked);
			CHECK(bits < 14 || !is_more(now.points, now.asked / 500), "%u bits: %u points of %u",
				  bits, now.points, now.asked);
			CHECK(strings.run.npages <= n * bits / (8 * 2048) + 1, "%u pages of %zu keys",
				  strings.run.npages, n);
			before = now;
			free_strings(&strings);
		}
		for (size_t i = 0; i < n; i++)
			free_bytes(keys[i]);
		for (size_t i = 0; i < nothers; i++)
			free_bytes(others[i]);
	}
	free(keys);
	free(others);
}

/* Pairs of long keys, which have much in common, stay within the budget and know each key. */
static void
test_long_keys(void)
{
	for (uint32_t bits = 4; bits <= 20; bits += 4)
	{
		FilterOptions options = make_options(FILTER_SUFFIX_AUTO, bits, PAGE_SIZE, 2500);
		size_t		n = 3000;
		FilterBytes *keys = malloc(n * sizeof(FilterBytes));
		uint8_t		bytes[FILTER_MAX_KEY];
		Strings		strings;
		uint32_t	wrong = 0;

		memset(bytes, 'x', sizeof(bytes));
		for (size_t i = 0; i < n; i++)
		{
			/* Of each two keys 600 random bytes are the same. */
			for (int j = 0; j < 600 && i % 2 == 0; j++)
				bytes[300 + j] = (uint8_t) unit_random();
			memcpy(bytes + 990, &i, sizeof(i));
			keys[i] = copy_bytes(bytes, FILTER_MAX_KEY);
		}
		qsort(keys, n, sizeof(FilterBytes), compare_for_qsort);
		strings = build(keys, n, &options);
		CHECK(strings.run.kind == FILTER_KIND_PAIR, "kind %d", strings.run.kind);
		CHECK(strings.run.npages <= n * bits / (8 * PAGE_SIZE) + 1, "%u pages with %u bits",
			  strings.run.npages, bits);
		for (size_t i = 0; i < strings.n; i++)
		{
			FilterBytes other = copy_bytes(strings.keys[i].data, strings.keys[i].len);

			check_between(&strings, strings.keys[i], strings.keys[i], false);
			((uint8_t *) other.data)[FILTER_MAX_KEY - 1] ^= 1;
			wrong += check_between(&strings, other, other, false) == FILTER_YES;
			free_bytes(other);
		}
		CHECK(bits < 12 || wrong < n / 50, "%u wrong with %u bits", wrong, bits);
		free_strings(&strings);
	}
}

/* Any number of keys: pages end behind any of them. */
static void
test_numbers_of_keys(void)
{
	for (size_t n = 1; n < 1200; n += 1 + n / 400)
	{
		FilterOptions options = make_options(FILTER_SUFFIX_AUTO, 4 + n % 8, SMALL_PAGE, 500);
		Strings		strings = build_random(n % 2 == 0 ? SERIALS : WORDS, n, &options);

		for (size_t i = 0; i < strings.n; i++)
			check_between(&strings, strings.keys[i], strings.keys[i], false);
		free_strings(&strings);
	}
}

int
main(void)
{
	unit_begin("pair");
	RUN(test_more_bits);
	RUN(test_long_keys);
	RUN(test_numbers_of_keys);
	return unit_end();
}
