/*-------------------------------------------------------------------------
 *
 * test_digest.c
 *	  Digests deny nothing but what their filters deny.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/snarf/digest.h"
#include "numbers.h"

static bool
try_digest(const FilterRun *run, FilterReader *reader, FilterDigest *digest)
{
	return filter_digest_make(digest, run->kind, run->root, run->root_len,
							  reader);
}

/* Its bits are to be freed. */
static FilterDigest
make_digest(Numbers *numbers, uint32_t nbits, bool parts)
{
	FilterDigest digest = {.nbits = nbits,.nbuckets = parts ? nbits / 2 : nbits};

	filter_digest_set_buckets(&digest, numbers->keys[0],
							  numbers->keys[numbers->n - 1]);
	digest.bits = malloc(filter_digest_size(nbits));
	CHECK(try_digest(&numbers->run, &numbers->reader.reader, &digest), "made");
	return digest;
}

static bool
has_bit(const FilterDigest *digest, uint64_t bit)
{
	return (digest->bits[bit / 64] >> bit % 64 & 1) != 0;
}

/* Are all bits of a part set? */
static bool
has_part(const FilterDigest *digest, uint64_t part)
{
	for (int i = 0; i < FILTER_DIGEST_HASHES; i++)
	{
		if (!has_bit(digest, filter_digests_part_word(digest, part, i)))
			return false;
	}
	return true;
}

/* Does a digest that stands alone deny, by its parts, that there is a key from one to another? */
static bool
parts_deny(const FilterDigest *digest, uint64_t part, uint64_t last)
{
	if (digest->split == 0 || last - part >= FILTER_DIGEST_FEW_PARTS)
		return false;
	while (part <= last && !has_part(digest, part))
		part++;
	return part > last;
}

/* Does a digest that stands alone deny that there is a key in [lo, hi]? */
static bool
digest_denies(const FilterDigest *digest, uint64_t lo, uint64_t hi)
{
	uint64_t	first;
	uint64_t	last;
	uint64_t	word;

	if (lo > digest->max || hi < digest->min || lo > hi)
		return true;
	first = lo > digest->min ? (lo - digest->min) / digest->width : 0;
	last = ((hi < digest->max ? hi : digest->max) - digest->min) /
		digest->width;
	if (lo >= digest->min && hi <= digest->max && parts_deny(digest, first, last))
		return true;
	first >>= digest->split;
	last >>= digest->split;
	if (first == last)
		return !has_bit(digest, first);
	word = digest->bits[first / 64] >> first % 64 << first % 64;
	for (first /= 64; first < last / 64; word = digest->bits[++first])
	{
		if (word != 0)
			return false;
	}
	return word << (63 - last % 64) == 0;
}

/* Half of the digests have parts. */
static bool
have_parts(uint32_t nbits)
{
	return nbits >= 8 && unit_random_below(2) == 0;
}

/* Buckets that spans more than the keys do, by chance a little or much. */
static FilterDigest
make_buckets(const Numbers *numbers, uint32_t nbits)
{
	FilterDigest buckets = {.nbits = nbits,.nbuckets = nbits};
	uint64_t	min = numbers->keys[0];
	uint64_t	below = random_magnitude();
	uint64_t	above = random_magnitude();

	if (have_parts(nbits))
		buckets.nbuckets = nbits / (2 << unit_random_below(2));
	filter_digest_set_buckets(&buckets, min - (below < min ? below : min),
							  add_capped(numbers->keys[numbers->n - 1], above));
	return buckets;
}

/* If the digest denies a part, or a bucket, the filter denies it. */
static void
check_denied(Numbers *numbers, const FilterDigest *digest, uint64_t part, uint64_t nparts)
{
	uint64_t	lo = digest->min + part * digest->width;
	uint64_t	hi = digest->max - lo < nparts * digest->width ? digest->max :
	lo + nparts * digest->width - 1;

	if (digest_denies(digest, lo, hi))
		CHECK(ask(numbers, lo, hi) == FILTER_NO,
			  "%" PRIu64 " to %" PRIu64 " of %u bits", lo, hi,
			  digest->nbits);
}

/* Bits that are not set stand for buckets, or parts of them, that the filter denies. */
static void
check_buckets(Numbers *numbers, const FilterDigest *digest)
{
	uint64_t	last = (digest->max - digest->min) / digest->width;
	uint64_t	i;

	CHECK(last >> digest->split < digest->nbuckets, "bits");
	for (i = 0; i <= last >> digest->split; i++)
		check_denied(numbers, digest, i << digest->split, UINT64_C(1) << digest->split);
	for (i = 0; i < 1000 && digest->split > 0; i++)
		check_denied(numbers, digest, unit_random_below(last + 1), 1 + unit_random_below(6));
}

/* What is asked for at random, points and ranges, near keys and anywhere. */
static void
check_random(Numbers *numbers, const FilterDigest *digest)
{
	int			i;

	for (i = 0; i < 3000; i++)
	{
		uint64_t	lo = unit_random_below(2) == 0 ? unit_random() :
		numbers->keys[unit_random_below(numbers->n)] -
		random_magnitude() % 1000;
		uint64_t	hi = unit_random_below(2) == 0 ? lo :
		add_capped(lo, random_magnitude());

		if (digest_denies(digest, lo, hi))
			CHECK(ask(numbers, lo, hi) == FILTER_NO,
				  "%" PRIu64 " to %" PRIu64, lo, hi);
	}
	for (i = 0; i < (int) numbers->n; i++)
		CHECK(!digest_denies(digest, numbers->keys[i],
							 numbers->keys[i]),
			  "key %" PRIu64, numbers->keys[i]);
}

static void
test_denials(void)
{
	static const uint32_t rates[] = {2, 4, 8, 14, 30};
	static const size_t sizes[] = {1, 2, 700, 6000};
	int			distribution;
	unsigned	i;
	unsigned	j;

	for (distribution = 0; distribution < DISTRIBUTIONS; distribution++)
	{
		unit_case(distribution_names[distribution]);
		for (i = 0; i < 5; i++)
		{
			for (j = 0; j < 4; j++)
			{
				Numbers		numbers = build_numbers(make_keys(distribution,
															  sizes[j]),
													sizes[j], rates[i],
													SERVER_PAGE, SERVER_ROOT);
				uint32_t	nbits;

				for (nbits = 2; nbits <= 8 * sizes[j]; nbits = 3 * nbits + 1)
				{
					FilterDigest digest = make_digest(&numbers, nbits, have_parts(nbits));

					check_buckets(&numbers, &digest);
					check_random(&numbers, &digest);
					free(digest.bits);
				}
				free_numbers(&numbers);
			}
		}
	}
}

/* Does column number column of some digests side by side deny [lo, hi]? */
static bool
column_denies(const FilterDigest *buckets, const uint64_t *rows, unsigned column,
			  uint64_t lo, uint64_t hi)
{
	return (filter_digests_ask(buckets, rows, lo, hi) >> column & 1) == 0;
}

/*
 * Keys that are added, anywhere, are denied no more: neither if they are added
 * before the digest is put among others, nor afterwards.
 */
static void
check_added(FilterDigest *digest, uint64_t *rows, unsigned column)
{
	uint64_t	keys[40];
	unsigned	i;

	for (i = 0; i < 40; i++)
	{
		uint64_t	span = digest->max - digest->min;

		keys[i] = unit_random_below(2) == 0 ? unit_random() :
			add_capped(digest->min - (digest->min < span ? digest->min : span) / 8,
					   unit_random_below(span < UINT64_MAX ? span + 1 : span));
		if (i < 20)
			filter_digest_add(digest, keys[i]);
	}
	filter_digest_put(rows, digest, column, false);
	for (; i > 20; i--)
		filter_digests_add(digest, rows, column, keys[i - 1]);
	for (i = 0; i < 40; i++)
	{
		uint64_t	hi = add_capped(keys[i], unit_random_below(3 * digest->width));

		CHECK(!column_denies(digest, rows, column, keys[i], keys[i]),
			  "added %" PRIu64, keys[i]);
		CHECK(!column_denies(digest, rows, column, keys[i], hi),
			  "from added %" PRIu64 " to %" PRIu64, keys[i], hi);
	}
}

/* Digests with wider buckets, too; in a row of others that ask alike. */
static void
check_same_buckets(Numbers *numbers, uint32_t nbits)
{
	FilterDigest digest = make_buckets(numbers, nbits);
	uint64_t   *rows = malloc(filter_digests_words(nbits) * sizeof(uint64_t));
	uint64_t   *clean = calloc(filter_digests_words(nbits), sizeof(uint64_t));
	unsigned	column = (unsigned) unit_random_below(FILTER_DIGESTS);
	uint64_t	others = ~(UINT64_C(1) << column);
	uint32_t	i;

	digest.bits = malloc(filter_digest_size(nbits));
	CHECK(try_digest(&numbers->run, &numbers->reader.reader, &digest), "made");
	check_buckets(numbers, &digest);
	check_random(numbers, &digest);

	for (i = 0; i < filter_digests_words(nbits); i++)
		rows[i] = unit_random();
	filter_digest_put(rows, &digest, column, false);
	filter_digest_put(clean, &digest, column, true);
	for (i = 0; i < filter_digests_words(nbits); i++)
		CHECK(clean[i] == (rows[i] & ~others), "word %u of an empty column", i);
	free(clean);
	for (i = 0; i < 2000; i++)
	{
		uint64_t	lo = unit_random_below(2) == 0 ? unit_random() :
		add_capped(digest.min, unit_random_below(2 * nbits) * (digest.width / 2));
		uint64_t	hi = unit_random_below(3) == 0 ? lo :
		add_capped(lo, unit_random_below(12) * (digest.width / 3));
		bool		denied = (filter_digests_ask(&digest, rows, lo, hi) & ~others) == 0;

		CHECK(denied == digest_denies(&digest, lo, hi),
			  "column %u, %" PRIu64 " to %" PRIu64, column, lo, hi);
	}
	check_added(&digest, rows, column);
	free(rows);
	free(digest.bits);
}

static void
test_same_buckets(void)
{
	int			distribution;
	int			i;

	for (distribution = 0; distribution < DISTRIBUTIONS; distribution++)
	{
		Numbers		numbers = build_numbers(make_keys(distribution, 2000), 2000,
											14, SERVER_PAGE, SERVER_ROOT);

		unit_case(distribution_names[distribution]);
		for (i = 0; i < 20; i++)
			check_same_buckets(&numbers, 2 + (uint32_t) unit_random_below(12000));
		free_numbers(&numbers);
	}
}

/* A column put where there was another, and beside others; long ranges. */
static void
test_rows(void)
{
	FilterDigest buckets = {.nbits = 1000,.nbuckets = 1000};
	FilterDigest full;
	uint64_t	bits[16];
	uint64_t	rows[1001] = {0};
	unsigned	i;

	filter_digest_set_buckets(&buckets, 1000, 1999);
	full = buckets;
	full.bits = bits;
	full.outside = false;
	for (i = 0; i < FILTER_DIGESTS; i++)
	{
		memset(bits, 0, sizeof(bits));
		bits[0] = UINT64_C(1) << i;
		filter_digest_put(rows, &full, i, true);
	}
	for (i = 0; i < FILTER_DIGESTS; i++)
		CHECK(rows[i] == UINT64_C(1) << i, "row %u", i);
	memset(bits, 0, sizeof(bits));
	filter_digest_put(rows, &full, 7, false);
	CHECK(rows[7] == 0 && rows[8] == 256, "column made anew");
	CHECK(filter_digests_ask(&buckets, rows, 1005, 1008) == 0x160, "range");
	CHECK(filter_digests_ask(&buckets, rows, 0, 1001) == 3, "from below");
	CHECK(filter_digests_ask(&buckets, rows, 1063, UINT64_MAX) == UINT64_MAX,
		  "too long");
	CHECK(filter_digests_ask(&buckets, rows, 1950, UINT64_MAX) == 0, "to the end");
	CHECK(filter_digests_ask(&buckets, rows, 0, 999) == 0, "below");
	CHECK(filter_digests_ask(&buckets, rows, 2000, 2000) == 0, "above");
	filter_digest_add(&full, 2000);
	filter_digest_put(rows, &full, 9, false);
	CHECK(filter_digests_ask(&buckets, rows, 2000, 2000) == 512, "above, added");
	CHECK(filter_digests_ask(&buckets, rows, 1950, 3000) == 512, "to above");
	CHECK(filter_digests_ask(&buckets, rows, 0, 0) == 512, "below, the same word");
	CHECK(filter_digests_ask(&buckets, rows, 1950, 1999) == 0, "not within");
}

/* No digest of a run with keys outside the buckets. */
static void
test_narrow_buckets(void)
{
	Numbers		numbers = build_numbers(make_keys(UNIFORM, 700), 700, 14,
										SERVER_PAGE, SERVER_ROOT);
	uint64_t	bits[16];
	FilterDigest digest = {.nbits = 1000,.nbuckets = 1000,.bits = bits};

	filter_digest_set_buckets(&digest, numbers.keys[0] + 1, UINT64_MAX);
	CHECK(!try_digest(&numbers.run, &numbers.reader.reader, &digest), "least");
	filter_digest_set_buckets(&digest, 0, numbers.keys[699] - 1);
	CHECK(!try_digest(&numbers.run, &numbers.reader.reader, &digest), "greatest");
	filter_digest_set_buckets(&digest, numbers.keys[0], numbers.keys[699]);
	CHECK(try_digest(&numbers.run, &numbers.reader.reader, &digest), "all");
	free_numbers(&numbers);
}

/* A digest of some bits denies from so many to so many of 10,000 random points. */
static void
check_share(Numbers *numbers, uint32_t nbits, bool parts, int least, int most)
{
	FilterDigest digest = make_digest(numbers, nbits, parts);
	int			denied = 0;
	int			i;

	for (i = 0; i < 10000; i++)
	{
		uint64_t	key = unit_random();

		denied += digest_denies(&digest, key, key);
	}
	CHECK(denied > least && denied < most, "%d of 10000", denied);
	free(digest.bits);
}

/*
 * A digest is of use: with three bits a key it denies most of what is asked, and with twelve, half
 * of them for parts, nearly all.
 */
static void
test_share_denied(void)
{
	Numbers		numbers = build_numbers(make_keys(UNIFORM, 20000), 20000, 14,
										SERVER_PAGE, SERVER_ROOT);

	check_share(&numbers, 60000, false, 6900, 7400);
	check_share(&numbers, 240000, false, 9100, 9300);
	check_share(&numbers, 240000, true, 9760, 9850);
	free_numbers(&numbers);
}

/*
 * If more parts are to be marked than there are bits, all bits of parts are set, and buckets deny
 * as much as they do without parts.
 */
static void
test_too_many_parts(void)
{
	Numbers		numbers = build_numbers(make_keys(UNIFORM, 6000), 6000, 14,
										SERVER_PAGE, SERVER_ROOT);
	FilterDigest digest = make_digest(&numbers, 6000, true);
	FilterDigest buckets = make_digest(&numbers, 3000, false);
	uint64_t	i;
	int			other = 0;

	CHECK(digest.split == FILTER_DIGEST_SPLIT, "parts");
	for (i = 3000; i < 6000; i++)
		CHECK(has_bit(&digest, i), "bit %" PRIu64, i);

	/* Their borders differ a little, by rounding. */
	for (i = 0; i < 3000; i++)
		other += has_bit(&digest, i) != has_bit(&buckets, i);
	CHECK(other < 30, "%d of 3000 buckets", other);
	free(digest.bits);
	free(buckets.bits);
	free_numbers(&numbers);
}

/* Keys in parts: their own parts and buckets are not denied, others in the same buckets are. */
static void
test_parts(void)
{
	FilterDigest buckets = {.nbits = 2000,.nbuckets = 1000};
	uint64_t   *rows = calloc(2001, sizeof(uint64_t));

	filter_digest_set_buckets(&buckets, 1000, 1000 + 511999);
	CHECK(buckets.split == FILTER_DIGEST_SPLIT && buckets.width == 16, "parts of %" PRIu64, buckets.width);
	filter_digests_add(&buckets, rows, 9, 1000 + 16 * 100);
	CHECK(filter_digests_ask(&buckets, rows, 2600, 2600) == 512, "key");
	CHECK(filter_digests_ask(&buckets, rows, 2615, 2615) == 512, "its part");
	CHECK(filter_digests_ask(&buckets, rows, 2599, 2599) == 0, "the part before");
	CHECK(filter_digests_ask(&buckets, rows, 2616, 2616 + 4 * 16 - 1) == 0, "four parts behind");
	CHECK(filter_digests_ask(&buckets, rows, 2616, 2616 + 4 * 16) == 512, "five parts behind");
	CHECK(filter_digests_ask(&buckets, rows, 2552, 2615) == 512, "with three parts before");
	CHECK(filter_digests_ask(&buckets, rows, 2616, UINT64_MAX) == UINT64_MAX, "too long");
	filter_digests_add(&buckets, rows, 1, 0);
	CHECK(filter_digests_ask(&buckets, rows, 0, 1000) == 2, "outside");
	CHECK(filter_digests_ask(&buckets, rows, 1000, 1000) == 0, "not outside");
	free(rows);

	/* Where parts would be too narrow there are none. */
	filter_digest_set_buckets(&buckets, 0, 256000);
	CHECK(buckets.split == FILTER_DIGEST_SPLIT && buckets.nbuckets == 1000, "narrow parts");
	filter_digest_set_buckets(&buckets, 0, 255999);
	CHECK(buckets.split == 0 && buckets.nbuckets == 2000, "no parts");
}

/* No digest where pages are missing or of another kind. */
static void
test_refused(void)
{
	Numbers		numbers = build_numbers(make_keys(UNIFORM, 20000), 20000, 14,
										SERVER_PAGE, SERVER_ROOT);
	FilterReader *reader = &numbers.reader.reader;
	FilterDigest digest = make_digest(&numbers, 1000, false);
	FilterRun	run = numbers.run;

	digest.nbuckets = 1;
	CHECK(!try_digest(&run, reader, &digest), "bits");
	digest.nbuckets = 1000;
	digest.split = 1;
	CHECK(!try_digest(&run, reader, &digest), "bits of parts");
	digest.split = 0;
	digest.of_hashes = true;
	CHECK(!try_digest(&run, reader, &digest), "hashes");
	digest.of_hashes = false;
	run.kind = FILTER_KIND_SURF;
	CHECK(!try_digest(&run, reader, &digest), "kind");
	run = numbers.run;
	run.root_len = 20;
	CHECK(!try_digest(&run, reader, &digest), "root");
	run = numbers.run;
	reader->npages = 2;
	CHECK(!try_digest(&run, reader, &digest), "pages");
	free_numbers(&numbers);
	free(digest.bits);
}

/* Damaged pages: anything but a crash. */
static void
test_damage(void)
{
	int			i;

	for (i = 0; i < 300; i++)
	{
		uint64_t   *keys = make_keys(unit_random_below(DISTRIBUTIONS), 3000);
		Numbers		numbers = build_numbers(keys, 3000, 14, 1024, SERVER_ROOT);
		FilterDigest digest = make_digest(&numbers, 5000, have_parts(5000));
		int			j;

		for (j = 0; j < 10; j++)
		{
			uint32_t	at = 1023 - unit_random_below(unit_random_below(2) == 0 ?
													  60 : 1024);

			numbers.run.pages[unit_random_below(numbers.run.npages) * 1024 + at] =
				(uint8_t) unit_random();
		}
		try_digest(&numbers.run, &numbers.reader.reader, &digest);
		free(digest.bits);
		free_numbers(&numbers);
	}
}

int
main(void)
{
	unit_begin("digest");
	RUN(test_denials);
	RUN(test_same_buckets);
	RUN(test_rows);
	RUN(test_narrow_buckets);
	RUN(test_share_denied);
	RUN(test_too_many_parts);
	RUN(test_parts);
	RUN(test_refused);
	RUN(test_damage);
	return unit_end();
}
