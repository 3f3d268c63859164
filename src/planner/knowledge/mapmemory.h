/*-------------------------------------------------------------------------
 *
 * mapmemory.h
 *	  Memory of the hash tables that a session keeps.
 *
 * simplehash.h notes the size of the array that a table will have, and then
 * allocates it.  If there is no memory, the error leaves a table that has the
 * old array and looks behind its end.  Core's tables go with the query that failed.
 * Tables that are kept use this allocator, which gives a table its old size back.
 * (Newer versions note the size afterwards.)
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_MAPMEMORY_H
#define RANGEFILTER_MAPMEMORY_H

#include "utils/memutils.h"
#include "utils/palloc.h"

/*
 * Reports that there is no memory for a table's array.
 */
static inline void
rf_map_lacks_memory(MemoryContext context, Size size)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory"),
			 errdetail("Failed on request of size %zu in memory context \"%s\".",
					   size, context->name)));
}

/*
 * Defines the allocator of the tables with this prefix, whose file defines
 * SH_USE_NONDEFAULT_ALLOCATOR.  private_data is the size of the array that a
 * table has, in elements.
 */
#define RF_MAP_ALLOCATOR(prefix) \
static inline void * \
prefix##_allocate(prefix##_hash *map, Size size) \
{ \
	void	   *array = MemoryContextAllocExtended(map->ctx, size, \
												   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO | \
												   MCXT_ALLOC_NO_OOM); \
\
	if (array == NULL) \
	{ \
		if (map->data != NULL) \
		{ \
			map->size = (uintptr_t) map->private_data; \
			map->sizemask = map->size - 1; \
			map->grow_threshold = map->size * 9 / 10; \
		} \
		rf_map_lacks_memory(map->ctx, size); \
	} \
	map->private_data = (void *) (uintptr_t) (size / sizeof(*map->data)); \
	return array; \
} \
\
static inline void \
prefix##_free(prefix##_hash *map, void *array) \
{ \
	pfree(array); \
}

#endif							/* RANGEFILTER_MAPMEMORY_H */
