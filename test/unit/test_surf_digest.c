/*-------------------------------------------------------------------------
 *
 * test_surf_digest.c
 *	  Digests of SuRFs: they deny nothing but what the filters deny.
 *
 *-------------------------------------------------------------------------
 */
#include "byte_keys.h"
#include "filter/snarf/digest.h"
#include "filter/surf/surf.h"

#define MOST_SAMPLES 4000

#define TINY_PAGE 160

/* A digest in column 0 of rows, and what belongs to it. */
typedef struct Digested
{
	FilterDigest digest;
	uint64_t   *rows;
	uint64_t	samples[MOST_SAMPLES];
} Digested;

static bool
make_digest(Strings *strings, FilterDigest *digest)
{
	return filter_digest_make(digest, strings->run.kind, strings->run.root,
							  strings->run.root_len, &strings->reader.reader);
}

/*
 * The numbers of a run's code, behind what its first and last keys share or behind less,
 * and spread by knots or not.
 */
static void
choose_numbers(Digested *digested, Strings *of)
{
	FilterNumbers *numbers = &digested->digest.numbers;
	FilterBytes first = of->keys[0];
	FilterBytes last = of->keys[of->n - 1];
	uint32_t	most = (uint32_t) unit_random_below(FILTER_DIGEST_SHARED + 1);
	uint32_t	len = 0;
	uint32_t	n = 0;
	uint32_t	pageno;
	uint8_t		hash_bits = FILTER_DIGEST_HASH;

	CHECK(filter_numbers_of(numbers, of->run.kind, of->run.root, of->run.root_len),
		  "no numbers");
	while (len < most && len < first.len && len < last.len &&
		   first.data[len] == last.data[len])
		len++;
	if (len > 0)
		memcpy(numbers->shared, first.data, len);
	numbers->shared_len = (uint8_t) len;
	numbers->hash_bits = (uint8_t) unit_random_below(FILTER_DIGEST_HASH + 1);
	if (unit_random_below(4) == 0)
		return;
	for (pageno = 0; pageno < of->run.npages && n < MOST_SAMPLES; pageno++)
		n += filter_numbers_sample(numbers, of->run.root, of->run.root_len,
								   &of->reader.reader, pageno,
								   1 + (uint32_t) unit_random_below(3),
								   digested->samples + n, MOST_SAMPLES - n, &hash_bits);
	CHECK(n > 0, "no sample");
	filter_numbers_set_knots(numbers, digested->samples, n,
							 1 + (uint32_t) unit_random_below(500));
}

/* Makes the digest of a run, with numbers of another one.  Its buckets may leave keys out. */
static void
begin_digest(Digested *digested, Strings *strings, Strings *numbers_of)
{
	FilterDigest *digest = &digested->digest;
	uint64_t	min = 0;
	uint64_t	max = UINT64_MAX;

	memset(digest, 0, sizeof(*digest));
	choose_numbers(digested, numbers_of);
	if (unit_random_below(3) != 0)
		min = filter_number(&digest->numbers,
							strings->keys[unit_random_below(2) * strings->n / 5]);
	if (unit_random_below(3) != 0)
		max = filter_number(&digest->numbers,
							strings->keys[strings->n - 1 - unit_random_below(2) * strings->n / 5]);
	digest->nbits = 64 * (1 + (uint32_t) unit_random_below(strings->n / 2 + 4));
	digest->nbuckets = digest->nbits >> (1 + unit_random_below(3));
	filter_digest_set_buckets(digest, min, max < min ? min : max);
	digest->bits = malloc(filter_digest_size(digest->nbits));
	CHECK(make_digest(strings, digest), "made");
	digested->rows = calloc(filter_digests_words(digest->nbits), sizeof(uint64_t));
	filter_digest_put(digested->rows, digest, 0, true);
	free(digest->bits);
}

static bool
is_point(const FilterByteRange *range)
{
	return !range->lo_unbounded && !range->hi_unbounded && !range->hi_exclusive &&
		filter_bytes_compare(range->lo, range->hi) == 0;
}

/* Does the digest deny that there is a key in the range? */
static bool
denies(const Digested *digested, const FilterByteRange *range)
{
	const FilterNumbers *numbers = &digested->digest.numbers;
	uint64_t	lo = range->lo_unbounded ? 0 : filter_number(numbers, range->lo);
	uint64_t	hi = range->hi_unbounded ? UINT64_MAX :
	filter_number(numbers, range->hi);

	if (is_point(range))
		return (filter_digests_ask_key(&digested->digest, digested->rows, lo,
									   filter_hash_bits(numbers, range->lo)) & 1) == 0;
	return (filter_digests_ask(&digested->digest, digested->rows, lo, hi) & 1) == 0;
}

/* Also the empty string, and keys of another kind. */
static FilterBytes
make_question(const Strings *strings, KeyKind kind)
{
	switch (unit_random_below(8))
	{
		case 0:
			return make_key((KeyKind) unit_random_below(KEY_KINDS), 7);
		case 1:
			return copy_bytes("", 0);
		default:
			return make_bound(strings, kind);
	}
}

/* Strings that begin as another one, as LIKE asks for them. */
static FilterByteRange
range_of_prefix(FilterBytes prefix, uint8_t *hi)
{
	FilterByteRange range = range_of(prefix, prefix);

	while (range.hi.len > 0 && prefix.data[range.hi.len - 1] == 0xFF)
		range.hi.len--;
	range.hi_unbounded = range.hi.len == 0;
	range.hi_exclusive = true;
	if (range.hi.len > 0)
	{
		memcpy(hi, prefix.data, range.hi.len);
		hi[range.hi.len - 1]++;
		range.hi.data = hi;
	}
	return range;
}

/* What the digest denies, no key and no YES to a point contradicts. */
static void
check_denial(const Digested *digested, Strings *strings, const FilterByteRange *range)
{
	if (!denies(digested, range))
		return;
	CHECK(!holds(strings, range), "a key is denied: lo %u hi %u bytes, %u shared, %u knots",
		  range->lo.len, range->hi.len, digested->digest.numbers.shared_len,
		  digested->digest.numbers.nknots);
	if (is_point(range))
		CHECK(ask(strings, range) == FILTER_NO, "a YES is denied: %u bytes",
			  range->lo.len);
}

static void
check_digest(Digested *digested, Strings *strings, KeyKind kind)
{
	const FilterNumbers *numbers = &digested->digest.numbers;
	size_t		i;

	for (i = 0; i < strings->n; i++)
	{
		FilterByteRange point = range_of(strings->keys[i], strings->keys[i]);

		CHECK(!denies(digested, &point), "key of %u bytes", strings->keys[i].len);
	}
	for (i = 0; i < 1000; i++)
	{
		FilterBytes a = make_question(strings, kind);
		FilterBytes b = unit_random_below(2) == 0 ? make_near(a) : make_question(strings, kind);
		FilterByteRange range = range_of(a, b);
		FilterByteRange point = range_of(a, a);
		FilterByteRange prefix;
		uint8_t		hi[FILTER_MAX_KEY + 2];

		prefix = range_of_prefix(a, hi);
		CHECK(filter_bytes_compare(a, b) > 0 ||
			  filter_number(numbers, a) <= filter_number(numbers, b),
			  "numbers decrease from %u to %u bytes", a.len, b.len);
		CHECK(b.len < a.len || (a.len > 0 && memcmp(a.data, b.data, a.len) != 0) ||
			  filter_number(numbers, b) <= filter_number_above(numbers, a),
			  "a string that begins with another one");
		range.lo_unbounded = unit_random_below(20) == 0;
		range.hi_unbounded = unit_random_below(20) == 0;
		range.hi_exclusive = unit_random_below(2) == 0;
		if (filter_bytes_compare(a, b) <= 0)
			check_denial(digested, strings, &range);
		check_denial(digested, strings, &point);
		check_denial(digested, strings, &prefix);
		if (unit_random_below(4) == 0)
		{
			filter_digests_add(&digested->digest, digested->rows, 0, filter_number(numbers, a),
							   filter_hash_bits(numbers, a));
			CHECK(!denies(digested, &point), "added: %u bytes", a.len);
			CHECK(!denies(digested, &prefix), "added, by its prefix: %u bytes", a.len);
		}
		free_bytes(a);
		free_bytes(b);
	}
}

static void
test_denials(void)
{
	static const size_t sizes[] = {1, 2, 30, 1000, 6000};

	static const uint32_t pages[] = {SMALL_PAGE, PAGE_SIZE, TINY_PAGE, PAGE_SIZE};
	int			kind;
	int			i;

	for (kind = 0; kind < KEY_KINDS; kind++)
	{
		unit_case(kind_names[kind]);
		for (i = 0; i < 24; i++)
		{
			FilterOptions options = make_options((FilterSuffix) unit_random_below(4),
												 4 + unit_random_below(30),
												 pages[i % 4], 2500);
			KeyKind		other_kind = unit_random_below(3) == 0 ?
			(KeyKind) unit_random_below(KEY_KINDS) : (KeyKind) kind;
			Strings		strings = build_random((KeyKind) kind, sizes[i % 5], &options);
			Strings		other = build_random(other_kind, sizes[unit_random_below(4)], &options);
			Digested	digested;

			begin_digest(&digested, &strings, unit_random_below(3) == 0 ? &strings : &other);
			check_digest(&digested, &strings, (KeyKind) kind);
			free(digested.rows);
			free_strings(&strings);
			free_strings(&other);
		}
	}
}

/*
 * A leaf of a key that was cut stands for all that begin with it, even where numbers tell
 * these apart.
 */
static void
test_cut_keys(void)
{
	FilterOptions options = make_options(FILTER_SUFFIX_REAL, 30, TINY_PAGE, 2500);
	FilterBytes *keys = malloc(sizeof(FilterBytes));
	Strings		strings;
	Digested	digested = {.digest = {.nbits = 1024}};
	FilterDigest *digest = &digested.digest;
	FilterBytes bound;
	uint32_t	len;

	keys[0] = make_from("p", 1, 100);
	strings = build(keys, 1, &options);
	bound = keys[0];
	bound.len = TINY_PAGE / 4;
	CHECK(filter_numbers_of(&digest->numbers, strings.run.kind, strings.run.root,
							strings.run.root_len), "numbers");
	digest->numbers.shared_len = FILTER_DIGEST_SHARED;
	memset(digest->numbers.shared, 'p', FILTER_DIGEST_SHARED);
	filter_digest_set_buckets(digest, filter_number(&digest->numbers, bound),
							  filter_number_above(&digest->numbers, bound));
	digest->bits = malloc(filter_digest_size(1024));
	digested.rows = calloc(filter_digests_words(1024), sizeof(uint64_t));
	CHECK(make_digest(&strings, digest), "made");
	filter_digest_put(digested.rows, digest, 0, true);
	for (len = 0; len <= 100; len++)
	{
		FilterByteRange point = range_of(keys[0], keys[0]);

		point.lo.len = point.hi.len = len;
		CHECK((ask(&strings, &point) == FILTER_YES) == (len >= TINY_PAGE / 4), "filter: %u", len);
		CHECK(denies(&digested, &point) <= (len < TINY_PAGE / 4), "digest: %u", len);
	}
	free(digest->bits);
	free(digested.rows);
	free_strings(&strings);
}

/* Leaves stand for all keys, each for some. */
typedef struct Cover
{
	const Strings *strings;
	bool	   *covered;
	size_t		nleaves;
} Cover;

static bool
cover(void *arg, const SurfLeafKeys *leaf)
{
	FilterBytes low = leaf->low;
	FilterBytes high = leaf->high;
	bool		above = leaf->above;
	Cover	   *all = arg;
	size_t		i = rank_of(all->strings, low, false);

	for (; i < all->strings->n; i++)
	{
		FilterBytes key = all->strings->keys[i];
		bool		begins = key.len >= high.len &&
		(high.len == 0 || memcmp(key.data, high.data, high.len) == 0);

		if (filter_bytes_compare(key, high) > 0 && !(above && begins))
			break;
		all->covered[i] = true;
	}
	all->nleaves++;
	return true;
}

static void
test_leaves(void)
{
	int			kind;

	for (kind = 0; kind < KEY_KINDS; kind++)
	{
		FilterOptions options = make_options(FILTER_SUFFIX_REAL, 14, PAGE_SIZE, 2500);
		Strings		strings = build_random((KeyKind) kind, 9000, &options);
		Cover		all = {&strings, calloc(strings.n, sizeof(bool)), 0};
		uint32_t	pageno;
		size_t		i;

		unit_case(kind_names[kind]);
		for (pageno = 0; pageno < strings.run.npages; pageno++)
			CHECK(surf_visit(strings.run.root, strings.run.root_len,
							 &strings.reader.reader, pageno, cover, &all), "visited");
		for (i = 0; i < strings.n; i++)
			CHECK(all.covered[i], "key %zu of %zu", i, strings.n);
		CHECK(all.nleaves == strings.run.nkeys, "%zu leaves of %zu keys", all.nleaves,
			  strings.n);
		free(all.covered);
		free_strings(&strings);
	}
}

/* A random string of digits, of words of a language, or the key of a row. */
static FilterBytes
make_usual(int sort)
{
	static const char *const syllables[] = {
		"the", "con", "an", "re", "ing", "s", "ba", "ver", "ti", "on", "ple", "qu",
		"mor", "st", "ra", "in"
	};
	char		word[100];
	int			len = 0;
	int			i;

	if (sort == 0)
		return make_from("0123456789abcdef", 16, 32);
	if (sort == 1)
		len = sprintf(word, "customer-%c-%08u", 'x', (unsigned) unit_random_below(100000000));
	if (sort == 2)
		for (i = 0; i < 6; i++)
			len += sprintf(word + len, "%s", syllables[unit_random_below(4) * unit_random_below(6)]);
	if (sort == 3)
	{
		uint8_t		row[10] = {1, 0x80, 0, 0, 0, 1, 0x80, 0, 0, 0};

		for (i = 2; i < 5; i++)
		{
			row[i] = (uint8_t) unit_random();
			row[5 + i] = (uint8_t) unit_random();
		}
		return copy_bytes(row, 10);
	}
	return copy_bytes(word, len);
}

/*
 * Digests are of use: of usual strings they deny most that are not there, with knots from
 * another run.
 */
static void
test_share_denied(void)
{
	static const struct
	{
		const char *name;
		int			sort;
		FilterSuffix suffix;
		int			most;
	}			cases[] = {
		{"digits", 0, FILTER_SUFFIX_REAL, 1300},
		{"prefix", 1, FILTER_SUFFIX_REAL, 1300},
		{"words", 2, FILTER_SUFFIX_REAL, 4500},
		{"rows", 3, FILTER_SUFFIX_REAL, 2000},
		{"words, with hashes", 2, FILTER_SUFFIX_MIXED, 1000},
		{"rows, with hashes", 3, FILTER_SUFFIX_HASH, 450},
	};
	size_t		c;

	for (c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
	{
		int			sort = cases[c].sort;
		FilterOptions options = make_options(cases[c].suffix, 14, PAGE_SIZE, 2500);
		Digested	digested = {.digest = {.nbits = 24000,.nbuckets = 3000}};
		FilterNumbers *numbers = &digested.digest.numbers;
		Strings		runs[2];
		uint32_t	n;
		uint8_t		hash_bits = FILTER_DIGEST_HASH;
		int			maybe = 0;
		int			i;

		unit_case(cases[c].name);
		for (i = 0; i < 2; i++)
		{
			size_t		nkeys = i == 0 ? 1000 : 4000;
			FilterBytes *keys = malloc(nkeys * sizeof(FilterBytes));
			size_t		j;

			for (j = 0; j < nkeys; j++)
				keys[j] = make_usual(sort);
			qsort(keys, nkeys, sizeof(FilterBytes), compare_for_qsort);
			runs[i] = build(keys, nkeys, &options);
		}
		CHECK(filter_numbers_of(numbers, runs[1].run.kind, runs[1].run.root,
								runs[1].run.root_len), "numbers");
		numbers->shared_len = sort == 1 ? 11 : 0;
		memcpy(numbers->shared, "customer-x-", numbers->shared_len);
		n = filter_numbers_sample(numbers, runs[1].run.root, runs[1].run.root_len,
								  &runs[1].reader.reader, 0, 1, digested.samples, MOST_SAMPLES,
								  &hash_bits);
		filter_numbers_set_knots(numbers, digested.samples, n, 1000);
		numbers->hash_bits = hash_bits;
		filter_digest_set_buckets(&digested.digest, 0, ((uint64_t) numbers->nknots << 16) - 1);
		digested.digest.bits = malloc(filter_digest_size(24000));
		digested.rows = calloc(filter_digests_words(24000), sizeof(uint64_t));
		CHECK(make_digest(&runs[0], &digested.digest), "made");
		filter_digest_put(digested.rows, &digested.digest, 0, true);
		for (i = 0; i < 10000; i++)
		{
			FilterBytes key = make_usual(sort);
			FilterByteRange point = range_of(key, key);

			maybe += !denies(&digested, &point) && !holds(&runs[0], &point);
			free_bytes(key);
		}
		CHECK(maybe > 0 && maybe < cases[c].most, "%d of 10000 maybe", maybe);
		free(digested.digest.bits);
		free(digested.rows);
		free_strings(&runs[0]);
		free_strings(&runs[1]);
	}
}

/* No digest of other numbers, or with pages missing. */
static void
test_refused(void)
{
	FilterOptions options = make_options(FILTER_SUFFIX_REAL, 14, SMALL_PAGE, 2500);
	Strings		strings = build_random(WORDS, 2000, &options);
	uint64_t	bits[16];
	FilterDigest digest = {.nbits = 1000,.bits = bits};

	filter_digest_set_buckets(&digest, 0, UINT64_MAX);
	CHECK(!make_digest(&strings, &digest), "64-bit keys");
	digest.numbers.of_bytes = true;
	CHECK(!make_digest(&strings, &digest), "leading bits");
	CHECK(filter_numbers_of(&digest.numbers, strings.run.kind, strings.run.root,
							strings.run.root_len) && make_digest(&strings, &digest), "its own");
	digest.numbers.hash_bits = FILTER_DIGEST_HASH;
	digest.nbuckets = 125;
	filter_digest_set_buckets(&digest, 0, UINT64_MAX);
	CHECK(make_digest(&strings, &digest), "hashes of what is not cut otherwise");
	digest.numbers.max_key--;
	CHECK(!make_digest(&strings, &digest), "hashes of what is cut otherwise");
	digest.numbers.hash_bits = digest.split = 0;
	filter_digest_set_buckets(&digest, 0, UINT64_MAX);
	CHECK(make_digest(&strings, &digest), "no hashes");
	digest.nbuckets = 1;
	CHECK(!make_digest(&strings, &digest), "bits");
	digest.nbuckets = 1000;
	strings.reader.reader.npages--;
	CHECK(!make_digest(&strings, &digest), "pages");
	strings.run.root_len = 8;
	CHECK(!make_digest(&strings, &digest), "root");
	free_strings(&strings);
}

/* Damaged pages and roots: anything but a crash. */
static void
test_damage(void)
{
	int			i;

	for (i = 0; i < 400; i++)
	{
		FilterOptions options = make_options((FilterSuffix) unit_random_below(4), 14,
											 SMALL_PAGE, 2500);
		Strings		strings = build_random((KeyKind) unit_random_below(KEY_KINDS), 300, &options);
		uint64_t	bits[16];
		FilterDigest digest = {.nbits = 1000,.bits = bits};
		int			j;

		filter_digest_set_buckets(&digest, 0, UINT64_MAX);
		for (j = 0; j < 10; j++)
		{
			uint8_t    *page = &strings.run.pages[unit_random_below(strings.run.npages) * SMALL_PAGE];

			page[unit_random_below(unit_random_below(2) == 0 ? 60 : SMALL_PAGE)] =
				(uint8_t) unit_random();
			if (j == 5)
				strings.run.root[unit_random_below(strings.run.root_len)] = (uint8_t) unit_random();
			if (filter_numbers_of(&digest.numbers, strings.run.kind, strings.run.root,
								  strings.run.root_len))
				make_digest(&strings, &digest);
		}
		free_strings(&strings);
	}
}

int
main(void)
{
	unit_begin("surf_digest");
	RUN(test_denials);
	RUN(test_cut_keys);
	RUN(test_leaves);
	RUN(test_share_denied);
	RUN(test_refused);
	RUN(test_damage);
	return unit_end();
}
