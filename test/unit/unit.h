/*-------------------------------------------------------------------------
 *
 * unit.h
 *	  The small frame around unit tests: checks, seeds, random numbers.
 *
 * A test program calls unit_begin(), then its tests by RUN(), then returns
 * unit_end().  What is counted as passed or failed are tests, however many
 * checks they make; the first checks that fail are printed with the test they
 * are in and the seed.  The seed is fixed unless the environment variable SEED
 * says otherwise, so a failure can be repeated.
 *
 * A test may consist of several cases (kinds of keys, say): each unit_case()
 * begins one.  Such a test counts as many times as it has cases.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_UNIT_H
#define RANGEFILTER_UNIT_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define UNIT_MAX_REPORTS 20

static uint64_t unit_seed = 20240229;
static uint64_t unit_random_state;
static uint64_t unit_checks;
static uint64_t unit_failed;	/* checks */
static uint64_t unit_tests_passed;
static uint64_t unit_tests_failed;
static uint64_t unit_failed_before; /* checks, when the test began */
static uint64_t unit_cases;		/* of the test so far */
static const char *unit_test = "";	/* or the case */

/* Makes one check; the message (printf-like) is printed where it fails. */
#define CHECK(condition, ...) \
	do { \
		unit_checks++; \
		if (!(condition) && unit_failed++ < UNIT_MAX_REPORTS) \
		{ \
			printf("%s:%d: %s: %s: ", __FILE__, __LINE__, unit_test, \
				   #condition); \
			printf(__VA_ARGS__); \
			printf(" (SEED=%" PRIu64 ")\n", unit_seed); \
		} \
	} while (0)

/* Runs a test function under its name, each from the same seed. */
#define RUN(test) \
	do { \
		uint64_t	checks = unit_checks; \
		unit_test = #test; \
		unit_random_state = unit_seed; \
		unit_cases = 0; \
		test(); \
		unit_count(); \
		printf("# %s: %" PRIu64 " checks\n", #test, unit_checks - checks); \
		fflush(stdout); \
	} while (0)

/* Counts a test, or a case of one, that has ended. */
static inline void
unit_count(void)
{
	if (unit_failed > unit_failed_before)
		unit_tests_failed++;
	else
		unit_tests_passed++;
	unit_failed_before = unit_failed;
}

/* Begins the next case of a test. */
static inline void
unit_case(const char *name)
{
	if (unit_cases++ > 0)
		unit_count();
	unit_test = name;
}

/* A 64-bit random number (Steele et al., SplitMix). */
static inline uint64_t
unit_random(void)
{
	uint64_t	z = (unit_random_state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* A random number below n > 0. */
static inline uint64_t
unit_random_below(uint64_t n)
{
	return unit_random() % n;
}

static inline void
unit_begin(const char *name)
{
	const char *seed = getenv("SEED");

	if (seed != NULL && *seed != '\0')
		unit_seed = strtoull(seed, NULL, 0);
	unit_random_state = unit_seed;
	printf("# %s, SEED=%" PRIu64 "\n", name, unit_seed);
	fflush(stdout);
}

/* Prints the tally, which is the last line, and returns the exit status. */
static inline int
unit_end(void)
{
	/* A check outside of any test. */
	if (unit_failed > unit_failed_before)
		unit_count();
	printf("# %" PRIu64 " checks, %" PRIu64 " of them failed\n", unit_checks,
		   unit_failed);
	printf("%" PRIu64 " passed, %" PRIu64 " failed\n", unit_tests_passed,
		   unit_tests_failed);
	return unit_tests_failed > 0 ? 1 : 0;
}

#endif							/* RANGEFILTER_UNIT_H */
