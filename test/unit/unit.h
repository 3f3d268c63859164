/*-------------------------------------------------------------------------
 *
 * unit.h
 *	  The small frame around unit tests: checks, seeds, random numbers.
 *
 * A test program calls unit_begin(), then its tests, then returns
 * unit_end().  Checks are counted; the first failures are printed with the
 * test they are in and the seed.  The seed is fixed unless the environment
 * variable SEED says otherwise, so a failure can be repeated.
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
static uint64_t unit_passed;
static uint64_t unit_failed;
static const char *unit_test = "";

/* Counts one check; the message (printf-like) is printed where it fails. */
#define CHECK(condition, ...) \
	do { \
		if (condition) \
			unit_passed++; \
		else if (unit_failed++ < UNIT_MAX_REPORTS) \
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
		unit_test = #test; \
		unit_random_state = unit_seed; \
		test(); \
	} while (0)

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
	printf("%" PRIu64 " passed, %" PRIu64 " failed\n", unit_passed, unit_failed);
	return unit_failed > 0 ? 1 : 0;
}

#endif							/* RANGEFILTER_UNIT_H */
