/*-------------------------------------------------------------------------
 *
 * test_portable.c
 *	  Queries without the processor's special instructions answer the same.
 *
 * Whoever runs the tests mostly has these instructions, so the other copy of
 * the query code is compiled in here and compared.
 *
 *-------------------------------------------------------------------------
 */
#define BITS_PORTABLE
#define snarf_query snarf_query_portable

#include "filter/snarf/snarf_query.c"

#include "numbers.h"

static void
test_answers_are_the_same(void)
{
	int			distribution;

	for (distribution = 0; distribution < DISTRIBUTIONS; distribution++)
	{
		uint64_t   *keys = make_keys(distribution, 20000);
		Numbers		numbers = build_numbers(keys, 20000, 6, 512, 200);
		int			yes = 0;
		int			i;

		for (i = 0; i < 20000; i++)
		{
			uint64_t	key = keys[unit_random_below(20000)];
			uint64_t	lo = key + random_magnitude();
			uint64_t	hi = add_capped(lo, random_magnitude());
			FilterAnswer answer = ask(&numbers, lo, hi);

			yes += answer == FILTER_YES;
			CHECK(snarf_query_portable(numbers.run.root, numbers.run.root_len,
									   &numbers.reader.reader, lo, hi) == answer,
				  "%s, [%" PRIu64 ", %" PRIu64 "]",
				  distribution_names[distribution], lo, hi);
		}
		CHECK(yes > 1000 && yes < 19000, "%s: %d YES",
			  distribution_names[distribution], yes);
		free_numbers(&numbers);
	}
}

int
main(void)
{
	unit_begin("portable");
	RUN(test_answers_are_the_same);
	return unit_end();
}
