/*-------------------------------------------------------------------------
 *
 * test_surf_fuzz.c
 *	  fuzz_surf.c on inputs that are random, not guided by coverage.
 *
 * It needs no clang, and takes seconds.  What goes wrong aborts the program;
 * the seed, printed first, repeats it.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz_surf.c"
#include "unit.h"

#define MAX_INPUT 3000

/* An input of so many values that keys often share bytes. */
static size_t
make_input(uint8_t *input)
{
	size_t		size = unit_random_below(MAX_INPUT + 1);
	uint8_t		mask = (uint8_t) unit_random();
	uint32_t	extremes = unit_random_below(4);
	size_t		i;

	for (i = 0; i < size; i++)
	{
		input[i] = (uint8_t) unit_random();

		/* Options, and how many keys there are, are any. */
		if (i > 4)
			input[i] &= mask;
		if (i > 4 && unit_random_below(4) < extremes)
			input[i] = unit_random_below(2) ? 0xFF : 0;
	}
	return size;
}

static void
test_random_inputs(void)
{
	static uint8_t input[MAX_INPUT];
	int			round;

	for (round = 0; round < 1000; round++)
	{
		size_t		size = make_input(input);

		CHECK(LLVMFuzzerTestOneInput(input, size) == 0, "input %d", round);
	}
}

int
main(void)
{
	unit_begin("surf fuzz");
	RUN(test_random_inputs);
	return unit_end();
}
