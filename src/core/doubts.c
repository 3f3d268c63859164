/*-------------------------------------------------------------------------
 *
 * doubts.c
 *	  For tests: reaches into core that see something unexpected.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "core/core.h"

#ifdef USE_ASSERT_CHECKING
uint32		rf_core_doubts = 0;
#endif
