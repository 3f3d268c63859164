/*-------------------------------------------------------------------------
 *
 * port.h
 *	  Where the filter library gets its memory.
 *
 * Inside the server that is palloc in the current memory context, which
 * raises an error when there is none left and frees all at its end; in the
 * stand-alone tests and tools (RANGEFILTER_STANDALONE) it is malloc.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_PORT_H
#define RANGEFILTER_PORT_H

#include <stddef.h>

extern void *filter_alloc(size_t size);	/* zeroed */
extern void *filter_realloc(void *pointer, size_t size);
extern void filter_free(void *pointer);

#endif							/* RANGEFILTER_PORT_H */
