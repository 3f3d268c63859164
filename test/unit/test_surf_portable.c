/*-------------------------------------------------------------------------
 *
 * test_surf_portable.c
 *	  Builds of SuRF without the processor's special instructions are the same.
 *
 * Whoever runs the tests mostly has these instructions, so the other copy of
 * the builds is compiled in here and compared, byte for byte.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SURF_UNMASKED
#define BITS_PORTABLE
#endif
#define surf_build_begin surf_build_begin_portable
#define surf_measure surf_measure_portable
#define surf_measure_end surf_measure_end_portable
#define surf_add surf_add_portable
#define surf_build_keys surf_build_keys_portable
#define surf_build_limit surf_build_limit_portable
#define surf_build_end surf_build_end_portable
#define surf_build_fits surf_build_fits_portable
#define surf_build_cost surf_build_cost_portable
#define surf_build_resize surf_build_resize_portable
#define surf_writer_begin surf_writer_begin_portable
#define surf_writer_free surf_writer_free_portable
#define surf_writer_leaves surf_writer_leaves_portable
#define surf_writer_key surf_writer_key_portable
#define surf_writer_new_bytes surf_writer_new_bytes_portable
#define surf_writer_add surf_writer_add_portable
#define surf_writer_last surf_writer_last_portable
#define surf_writer_is_full surf_writer_is_full_portable
#define surf_writer_fit surf_writer_fit_portable
#define surf_writer_node_bits surf_writer_node_bits_portable
#define surf_writer_count_bits surf_writer_count_bits_portable
#define surf_writer_longest_rest surf_writer_longest_rest_portable
#define surf_writer_end surf_writer_end_portable
#define surf_writer_reset surf_writer_reset_portable
#define surf_writer_emit surf_writer_emit_portable
#define surf_writer_find surf_writer_find_portable
#define surf_writer_sum surf_writer_sum_portable
#define surf_writer_choose surf_writer_choose_portable
#define surf_writer_cut surf_writer_cut_portable
#define surf_writer_lay_out surf_writer_lay_out_portable
#define surf_writer_all_rest surf_writer_all_rest_portable
#define surf_writer_merge surf_writer_merge_portable
#define surf_writer_page_bits surf_writer_page_bits_portable
#define surf_writer_taken surf_writer_taken_portable

#include "filter/surf/surf_build.c"
#include "filter/surf/surf_cut.c"
#include "filter/surf/surf_emit.c"
#include "filter/surf/surf_merge.c"
#include "filter/surf/surf_write.c"

#include "byte_keys.h"

static void
test_runs_are_the_same(void)
{
	int			round;

	for (round = 0; round < 12 * KEY_KINDS; round++)
	{
		KeyKind		kind = (KeyKind) (round % KEY_KINDS);
		FilterOptions options = make_options((FilterSuffix) (round % 4),
											 (int) unit_random_below(40) + 4,
											 round % 3 == 0 ? SMALL_PAGE : PAGE_SIZE,
											 2500);
		Strings		strings = build_random(kind, 1 + unit_random_below(20000),
										   &options);
		SurfBuild  *build = surf_build_begin(&options);
		uint64_t	nleaves;
		FilterRun	run;
		size_t		i;

		for (i = 0; i < strings.n; i++)
			surf_measure(build, strings.keys[i]);
		surf_measure_end(build);
		for (i = 0; i < strings.n; i++)
			surf_add(build, strings.keys[i]);
		surf_build_end(build, &run, &nleaves);

		CHECK(run.nkeys == strings.run.nkeys && run.npages == strings.run.npages &&
			  run.root_len == strings.run.root_len,
			  "%u pages, not %u, of %zu %s", run.npages, strings.run.npages,
			  strings.n, kind_names[kind]);
		CHECK(memcmp(run.root, strings.run.root, run.root_len) == 0 &&
			  memcmp(run.pages, strings.run.pages,
					 (size_t) run.npages * options.page_size) == 0,
			  "%zu %s, %u bits, suffix %d", strings.n, kind_names[kind],
			  options.bits_per_key, (int) options.suffix);
		free(run.root);
		free(run.pages);
		free_strings(&strings);
	}
}

int
main(void)
{
#if defined(SURF_SCALAR)
	unit_begin("surf scalar");
#elif defined(SURF_UNMASKED)
	unit_begin("surf avx2");
#else
	unit_begin("surf portable");
#endif
	RUN(test_runs_are_the_same);
	return unit_end();
}
