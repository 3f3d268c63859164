/*-------------------------------------------------------------------------
 *
 * test_leading.c
 *	  SNARF over leading bits against a sorted array of the same keys; its
 *	  digests.
 *
 *-------------------------------------------------------------------------
 */
#include "byte_keys.h"
#include "filter/snarf/leading.h"
#include "filter/snarf/snarf_page.h"

/* Adds to an alphabet bytes that no key has, and takes others from it. */
static void
change_alphabet(FilterDigits *digits)
{
	size_t		i;

	for (i = unit_random_below(3) * unit_random_below(40); i > 0; i--)
	{
		uint32_t	byte = unit_random_below(256);

		digits->of.alphabet[byte / 64] ^= UINT64_C(1) << (byte % 64);
	}
}

/* Low bits that vary in one place or another, and the high bits of one of the keys. */
static void
random_low_bits(FilterDigits *digits, const FilterBytes *keys, size_t n, uint32_t shared_len)
{
	FilterBytes key = keys[unit_random_below(n)];
	uint32_t	i;

	memset(digits, 0, sizeof(*digits));
	digits->kind = FILTER_DIGITS_LOW_BITS;
	for (i = 0; i < FILTER_DIGITS_POSITIONS; i++)
	{
		uint32_t	nlow = unit_random_below(3) * unit_random_below(5);
		uint32_t	byte = shared_len + i < key.len ? key.data[shared_len + i] : 0;

		digits->of.low_bits.nlow[i] = (uint8_t) nlow;
		digits->of.low_bits.common[i] = (uint8_t) (byte >> nlow << nlow);
	}
}

/*
 * Sets digits: those of the keys, as a trial would of all; or an alphabet that lacks bytes, or
 * has bytes that no key has; or any low bits.
 */
static void
set_digits(FilterOptions *options, const FilterBytes *keys, size_t n)
{
	LeadingCounts counts = {.nkeys = 0};
	LeadingNumbers numbers;
	size_t		i;

	for (i = 0; i < n; i++)
		leading_count(&counts, keys[i], options->shared.len);
	options->digits = leading_digits(&counts);
	if (n > 0 && unit_random_below(2) == 0)
		random_low_bits(&options->digits, keys, n, options->shared.len);
	else if (options->digits.kind == FILTER_DIGITS_ALPHABET)
		change_alphabet(&options->digits);
	if (!leading_numbers_init(&numbers, options->shared, &options->digits))
		memset(&options->digits, 0, sizeof(FilterDigits));
}

static FilterBytes *
make_sorted(KeyKind kind, size_t n)
{
	FilterBytes *keys = malloc((n + 1) * sizeof(FilterBytes));
	size_t		i;

	for (i = 0; i < n; i++)
		keys[i] = make_key(kind, i / 2);
	qsort(keys, n, sizeof(FilterBytes), compare_for_qsort);
	return keys;
}

/* A YES for a point makes every range that holds it YES. */
static void
check_covered(Strings *strings, FilterBytes point, KeyKind kind)
{
	int			i;

	if (check_between(strings, point, point, false) != FILTER_YES)
		return;
	for (i = 0; i < 3; i++)
	{
		FilterBytes other = i == 0 ? make_bound(strings, kind) : make_near(point);
		int			order = filter_bytes_compare(other, point);

		if (order > 0)
		{
			CHECK(check_between(strings, point, other, true) == FILTER_YES,
				  "[k, k') of %u and %u bytes", point.len, other.len);
			CHECK(check_between(strings, point, other, false) == FILTER_YES,
				  "[k, k'] of %u and %u bytes", point.len, other.len);
		}
		else
			CHECK(check_between(strings, other, point, false) == FILTER_YES,
				  "[k', k] of %u and %u bytes", other.len, point.len);
		free_bytes(other);
	}
}

static void
check_run(Strings *strings, KeyKind kind, uint32_t rounds)
{
	FilterByteRange all = {.lo_unbounded = true,.hi_unbounded = true};
	size_t		step = strings->n / rounds + 1;
	size_t		i;

	CHECK(strings->run.kind == FILTER_KIND_SNARF, "kind %d", strings->run.kind);
	CHECK(strings->run.nkeys == strings->n, "%" PRIu64 " keys of %zu",
		  strings->run.nkeys, strings->n);
	CHECK(strings->run.root_len <= strings->options.root_max, "root of %u",
		  strings->run.root_len);
	CHECK(strings->n == 0 ||
		  filter_check(strings->run.kind, strings->run.root, strings->run.root_len,
					   &strings->reader.reader, strings->n), "refused by filter_check()");
	check_range(strings, &all);
	for (i = unit_random_below(step); i < strings->n; i += step)
	{
		CHECK(check_between(strings, strings->keys[i], strings->keys[i],
							false) == FILTER_YES, "key %zu", i);
		check_covered(strings, strings->keys[i], kind);
		if (i + 1 < strings->n)
			check_between(strings, strings->keys[i], strings->keys[i + 1], true);
	}
	for (i = 0; i < rounds; i++)
	{
		FilterBytes a = make_bound(strings, kind);
		FilterBytes b = unit_random_below(3) == 0 ? make_near(a) :
		make_bound(strings, kind);
		FilterByteRange range = make_range(a, b);

		check_range(strings, &range);
		check_covered(strings, a, kind);
		CHECK(check_between(strings, a, a, true) == FILTER_NO, "empty range");
		if (filter_bytes_compare(a, b) > 0)
			CHECK(check_between(strings, a, b, false) == FILTER_NO, "lo > hi");
		free_bytes(a);
		free_bytes(b);
	}
}

static void
test_random_runs(void)
{
	static const size_t sizes[] = {0, 1, 2, 3, 10, 100, 1000, 10000};
	static const uint32_t shared[] = {FILTER_MAX_KEY, 0, 1};
	int			kind;
	int			i;
	int			j;

	for (kind = 0; kind < KEY_KINDS; kind++)
	{
		unit_case(kind_names[kind]);
		for (i = 0; i < 8; i++)
			for (j = 0; j < 3; j++)
			{
				FilterBytes *keys = make_sorted((KeyKind) kind, sizes[i]);
				FilterOptions options = leading_options(keys, sizes[i],
														4 + unit_random_below(20),
														j ? SMALL_PAGE : PAGE_SIZE,
														shared[j]);
				Strings		strings;

				if (unit_random_below(2) == 0)
					set_digits(&options, keys, sizes[i]);
				strings = build(keys, sizes[i], &options);
				strings.is_strict = unit_random_below(4) == 0;
				check_run(&strings, (KeyKind) kind, 300);
				free_strings(&strings);
			}
	}
}

/* Counts are those of the numbers: never more than one key for a point. */
static void
test_count(void)
{
	FilterBytes *keys = make_sorted(UUIDS, 20000);
	FilterOptions options = leading_options(keys, 20000, 14, PAGE_SIZE, 1000);
	Strings		strings = build(keys, 20000, &options);
	FilterByteRange range = {.lo_unbounded = true,.hi_unbounded = true};
	uint64_t	count;

	CHECK(filter_count_bytes(strings.run.root, strings.run.root_len,
							 &strings.reader.reader, &range, &count) &&
		  count == strings.n, "%" PRIu64 " of %zu", count, strings.n);
	range = range_of(strings.keys[5], strings.keys[5]);
	CHECK(filter_count_bytes(strings.run.root, strings.run.root_len,
							 &strings.reader.reader, &range, &count) &&
		  count >= 1, "no key");
	free_strings(&strings);
}

/* Roots that are cut, or say what they do not hold. */
static void
check_damaged_roots(FilterDigitsKind kind)
{
	FilterBytes *keys = make_sorted(URLS, 1000);
	FilterOptions options = leading_options(keys, 1000, 14, PAGE_SIZE, 1000);
	FilterByteRange range = range_of(keys[7], keys[7]);
	uint8_t    *digits;
	Strings		strings;
	uint32_t	len;
	uint8_t		saved;

	options.digits.kind = kind;
	if (kind == FILTER_DIGITS_ALPHABET)
		options.digits.of.alphabet[1] = UINT64_MAX;
	else if (kind == FILTER_DIGITS_LOW_BITS)
		memset(options.digits.of.low_bits.nlow, 4, FILTER_DIGITS_POSITIONS);
	strings = build(keys, 1000, &options);
	CHECK(strings.run.root[2] > 0, "nothing shared");
	for (len = 0; len < strings.run.root_len; len++)
	{
		/* Memory of just this size, for the address sanitizer. */
		uint8_t    *root = memcpy(malloc(len + 1), strings.run.root, len);
		uint8_t    *cut = realloc(root, len > 0 ? len : 1);
		FilterAnswer answer = filter_query_bytes(cut, len,
												 &strings.reader.reader, &range);

		CHECK(answer != FILTER_NO, "root of %u bytes", len);
		free(cut);
	}
	saved = strings.run.root[1];
	CHECK(saved == LEADING_ROOT_VERSION(kind), "version %u", saved);
	strings.run.root[1] = LEADING_ROOT_VERSION(FILTER_DIGITS_LOW_BITS) + 1;
	CHECK(ask(&strings, &range) == FILTER_UNKNOWN, "another version");
	strings.run.root[1] = 0;
	CHECK(ask(&strings, &range) == FILTER_UNKNOWN, "version 0");
	strings.run.root[1] = saved;
	digits = strings.run.root + LEADING_ROOT_HEADER + options.shared.len;
	if (kind != FILTER_DIGITS_BYTES)
	{
		memset(digits, 0, LEADING_ROOT_DIGITS);
		digits[0] = 1;
		CHECK(ask(&strings, &range) == FILTER_UNKNOWN, "an alphabet of one byte, or no low bits");
		digits[FILTER_DIGITS_POSITIONS] = 9;
		CHECK(kind == FILTER_DIGITS_ALPHABET || ask(&strings, &range) == FILTER_UNKNOWN,
			  "nine low bits");
		memset(digits + FILTER_DIGITS_POSITIONS, 5, FILTER_DIGITS_POSITIONS);
		CHECK(kind == FILTER_DIGITS_ALPHABET || ask(&strings, &range) == FILTER_UNKNOWN,
			  "80 low bits");
	}
	strings.run.root[3] = 0xFF;
	CHECK(ask(&strings, &range) == FILTER_UNKNOWN, "longer than the root");
	free_strings(&strings);
}

static void
test_damaged_roots(void)
{
	check_damaged_roots(FILTER_DIGITS_BYTES);
	check_damaged_roots(FILTER_DIGITS_ALPHABET);
	check_damaged_roots(FILTER_DIGITS_LOW_BITS);
}

int
main(void)
{
	unit_begin("leading");
	RUN(test_random_runs);
	RUN(test_count);
	RUN(test_damaged_roots);
	return unit_end();
}
