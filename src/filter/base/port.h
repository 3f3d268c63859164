/*-------------------------------------------------------------------------
 *
 * port.h
 *	  Memory and failure for the filter library.
 *
 * Inside the server memory is palloc'd in the current memory context, which
 * raises an error when there is none left.  In the stand-alone tests and tools
 * (RANGEFILTER_STANDALONE) it is malloc'd.
 *
 * Measuring and adding a key must not allocate anything in the current context
 * that is needed later: that context may live no longer than a row.
 * filter_realloc() keeps memory in the context it came from.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_PORT_H
#define RANGEFILTER_PORT_H

#include <stddef.h>

extern void *filter_alloc(size_t size); /* zeroed */
extern void *filter_realloc(void *pointer, size_t size);	/* NULL is fine */
extern void filter_free(void *pointer); /* NULL is fine */

/* Reports a broken contract (keys out of order, say); does not return. */
extern void filter_fail(const char *message) __attribute__((noreturn));

#endif							/* RANGEFILTER_PORT_H */
