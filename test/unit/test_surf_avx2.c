/*-------------------------------------------------------------------------
 *
 * test_surf_avx2.c
 *	  Builds of SuRF on processors without AVX-512 are the same.
 *
 * What test_surf_portable.c does, with AVX2 where the processor has it.
 *
 *-------------------------------------------------------------------------
 */
#define SURF_UNMASKED

#include "test_surf_portable.c"
