/*-------------------------------------------------------------------------
 *
 * test_surf_scalar.c
 *	  Builds of SuRF on processors of other kinds are the same.
 *
 * What test_surf_portable.c does, without SSE2, which all of x86-64 have.
 *
 *-------------------------------------------------------------------------
 */
#define SURF_SCALAR

#include "test_surf_portable.c"
