/*-------------------------------------------------------------------------
 *
 * filterdata.c
 *	  Makes sets of 64-bit keys, and questions for them, for filterbench.
 *
 * The same arguments make the same files on every machine with the same math
 * library.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
"filterdata makes files of 64-bit numbers for filterbench.\n"
"\n"
"Usage:\n"
"  filterdata KIND N QUERIES SEED DIRECTORY\n"
"\n"
"KIND is\n"
"  uniform     any number is as likely as any other\n"
"  normal      bell-shaped, with a standard deviation of a 37th of the domain\n"
"  clustered   nearly dense ids (steps of 1 to 5) in clusters of 1000\n"
"  timestamps  arrivals of a Poisson process, 0.1 s apart on average, in us\n"
"\n"
"Writes N keys, sorted, to DIRECTORY/keys, and QUERIES left ends each to\n"
"  DIRECTORY/like       spread as the keys are, between neighbours\n"
"  DIRECTORY/anywhere   evenly from half the keys' span below them to half of it\n"
"                       above them\n"
"  DIRECTORY/near0, near6, near15, near30\n"
"                       above a key, by 1 to 1, 2^6, 2^15, 2^30\n";

static uint64_t random_state;

static void fail(const char *what, const char *why)
			__attribute__((noreturn));

static void
fail(const char *what, const char *why)
{
	fprintf(stderr, "filterdata: %s: %s\n", what, why);
	exit(1);
}

/* A 64-bit random number (Steele et al., SplitMix). */
static uint64_t
random_number(void)
{
	uint64_t	z = (random_state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* In (0, 1]. */
static double
random_fraction(void)
{
	return ((double) (random_number() >> 11) + 1) / 9007199254740992.0;
}

static double
random_normal(void)
{
	double		radius = sqrt(-2 * log(random_fraction()));

	return radius * cos(6.283185307179586 * random_fraction());
}

static int
compare_numbers(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

static void
make_keys(const char *kind, uint64_t *keys, size_t n)
{
	uint64_t	last = UINT64_C(700000000000000);
	size_t		i;

	for (i = 0; i < n; i++)
	{
		if (strcmp(kind, "uniform") == 0)
			last = random_number();
		else if (strcmp(kind, "normal") == 0)
			last = (uint64_t) (9.2e18 + 5e17 * random_normal());
		else if (strcmp(kind, "clustered") == 0)
			last = i % 1000 == 0 ? random_number() >> 1 :
				last + 1 + random_number() % 5;
		else if (strcmp(kind, "timestamps") == 0)
			last += (uint64_t) (-log(random_fraction()) * 1e5);
		else
			fail("no such kind of keys", kind);
		keys[i] = last;
	}
	qsort(keys, n, sizeof(uint64_t), compare_numbers);
}

/* Between a random key and one some keys further on. */
static uint64_t
query_like(const uint64_t *keys, size_t n)
{
	size_t		i = random_number() % n;
	size_t		to = i + 50 < n ? i + 50 : n - 1;

	return keys[i] + (keys[to] > keys[i] ?
					  random_number() % (keys[to] - keys[i]) : 0);
}

static uint64_t
query_anywhere(const uint64_t *keys, size_t n)
{
	uint64_t	half = (keys[n - 1] - keys[0]) / 2;
	uint64_t	lo = keys[0] > half ? keys[0] - half : 0;
	uint64_t	hi = keys[n - 1] < UINT64_MAX - half ? keys[n - 1] + half :
	UINT64_MAX;

	return lo + (hi - lo < UINT64_MAX ? random_number() % (hi - lo + 1) :
				 random_number());
}

/* Above a random key by 1 to 2^width. */
static uint64_t
query_near(const uint64_t *keys, size_t n, unsigned width)
{
	uint64_t	key = keys[random_number() % n];
	uint64_t	distance = 1 + (random_number() & ((UINT64_C(1) << width) - 1));

	return distance <= UINT64_MAX - key ? key + distance : key;
}

static uint64_t
query_near0(const uint64_t *keys, size_t n)
{
	return query_near(keys, n, 0);
}

static uint64_t
query_near6(const uint64_t *keys, size_t n)
{
	return query_near(keys, n, 6);
}

static uint64_t
query_near15(const uint64_t *keys, size_t n)
{
	return query_near(keys, n, 15);
}

static uint64_t
query_near30(const uint64_t *keys, size_t n)
{
	return query_near(keys, n, 30);
}

/* Writes numbers as little-endian bytes. */
static void
write_numbers(const char *directory, const char *name, const uint64_t *numbers,
			  size_t n)
{
	char		path[4096];
	FILE	   *file;
	size_t		i;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int) sizeof(path))
		fail(directory, "name is too long");
	file = fopen(path, "wb");
	if (file == NULL)
		fail(path, strerror(errno));
	for (i = 0; i < n; i++)
	{
		int			shift;

		for (shift = 0; shift < 64; shift += 8)
			putc((int) (numbers[i] >> shift & 255), file);
	}
	if (fclose(file) != 0)
		fail(path, strerror(errno));
}

typedef uint64_t (*MakeQuery) (const uint64_t *keys, size_t n);

int
main(int argc, char **argv)
{
	static const char *const names[] = {"like", "anywhere", "near0", "near6",
	"near15", "near30"};
	static const MakeQuery makers[] = {query_like, query_anywhere, query_near0,
	query_near6, query_near15, query_near30};
	uint64_t   *keys;
	uint64_t   *queries;
	size_t		n;
	size_t		nqueries;
	size_t		i;
	int			kind;

	if (argc == 2 && strcmp(argv[1], "--help") == 0)
	{
		fputs(usage, stdout);
		return 0;
	}
	if (argc != 6 || (n = strtoull(argv[2], NULL, 10)) == 0)
	{
		fputs(usage, stderr);
		return 2;
	}
	nqueries = strtoull(argv[3], NULL, 10);
	random_state = strtoull(argv[4], NULL, 10);
	keys = malloc(n * sizeof(uint64_t));
	queries = malloc((nqueries + 1) * sizeof(uint64_t));
	if (keys == NULL || queries == NULL)
		fail("out of memory", argv[2]);

	make_keys(argv[1], keys, n);
	write_numbers(argv[5], "keys", keys, n);
	for (kind = 0; kind < 6; kind++)
	{
		for (i = 0; i < nqueries; i++)
			queries[i] = makers[kind] (keys, n);
		write_numbers(argv[5], names[kind], queries, nqueries);
	}
	return 0;
}
