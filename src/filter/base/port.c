/*-------------------------------------------------------------------------
 *
 * port.c
 *	  Memory and failure for the filter library, in the server and outside.
 *
 * This is the only file of the library that knows where it runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"

#include "utils/memutils.h"
#else
#include <stdio.h>
#include <stdlib.h>
#endif

#include "filter/base/port.h"

#ifndef RANGEFILTER_STANDALONE

/*
 * Allocates zeroed memory in the current memory context.  A run of many keys
 * is larger than palloc's usual limit of 1 GB, hence the huge variants.
 */
void *
filter_alloc(size_t size)
{
	return MemoryContextAllocExtended(CurrentMemoryContext, size,
									  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
}

/* Resizes memory of filter_alloc().  Added bytes are not zeroed. */
void *
filter_realloc(void *pointer, size_t size)
{
	if (pointer == NULL)
		return filter_alloc(size);
	return repalloc_huge(pointer, size);
}

/* Frees memory of filter_alloc(). */
void
filter_free(void *pointer)
{
	if (pointer != NULL)
		pfree(pointer);
}

/* Raises an internal error: only a bug in the caller leads here. */
void
filter_fail(const char *message)
{
	elog(ERROR, "%s", message);
	pg_unreachable();
}

#else

/* Allocates zeroed memory, or ends the program. */
void *
filter_alloc(size_t size)
{
	void	   *pointer = calloc(1, size > 0 ? size : 1);

	if (pointer == NULL)
		filter_fail("out of memory");
	return pointer;
}

/* Resizes memory of filter_alloc(), or ends the program. */
void *
filter_realloc(void *pointer, size_t size)
{
	pointer = realloc(pointer, size > 0 ? size : 1);
	if (pointer == NULL)
		filter_fail("out of memory");
	return pointer;
}

/* Frees memory of filter_alloc(). */
void
filter_free(void *pointer)
{
	free(pointer);
}

/* Prints the message and ends the program. */
void
filter_fail(const char *message)
{
	fprintf(stderr, "%s\n", message);
	abort();
}

#endif							/* RANGEFILTER_STANDALONE */
