/*-------------------------------------------------------------------------
 *
 * whbuild_impl.h
 *	  What the files of this room share.
 *
 * whbuild.c is ambuild.  whsort.c sorts rows by numbers that whsample.c gives
 * them.  whlevels.c makes pages of sorted rows.  whworkers.c has rows sorted
 * by several processes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_WHBUILD_IMPL_H
#define RANGEFILTER_WHBUILD_IMPL_H

#include "postgres.h"

#include "access/relscan.h"
#include "utils/tuplesort.h"
#include "wormhole/build/whbuild.h"
#include "wormhole/index/whindex.h"

/*
 * A row as it comes back from the sort.  Its pointers are valid until the next
 * row is read.
 */
typedef struct WhRow
{
	const uint8 *key;
	int			key_len;
	bool		alive;			/* so it may conflict in a unique index */
	bool		nulls;			/* some key column is null */
	ItemPointerData tid;
	const uint8 *payload;
	int			payload_len;
} WhRow;

/* Bytes behind a key to be sorted that must be readable and writable. */
#define WH_SORT_SLACK	8

typedef struct WhSample WhSample;	/* whsample.c */
typedef struct WhSort WhSort;	/* whsort.c */
typedef struct WhLevels WhLevels;	/* whlevels.c */
typedef struct WhWorkers WhWorkers; /* whworkers.c */

/* What is found out while rows are scanned. */
typedef struct WhScanned
{
	double		heap_tuples;
	double		index_tuples;
	bool		broken_hot_chain;
} WhScanned;

/* whsample.c */
extern WhSample *wh_sample_take(Relation heap, Relation index,
								IndexInfo *index_info);
extern Size wh_sample_size(const WhSample *sample);
extern uint64 wh_sample_head(const WhSample *sample, const uint8 *key,
							 int len, int *prefix, int *taken);
extern int	wh_sample_start(const WhSample *sample, uint64 head, uint8 *key);

/* whsort.c */
extern WhSort *wh_sort_begin(Relation heap, Relation index,
							 const WhSample *sample, int memory,
							 SortCoordinate coordinate);
extern void wh_sort_put(WhSort *sort, ItemPointer tid, Datum *values,
						bool *isnull, bool alive);
extern void wh_sort_perform(WhSort *sort);
extern bool wh_sort_get(WhSort *sort, WhRow *row);
extern void wh_sort_end(WhSort *sort);

/* whlevels.c */
extern WhLevels *wh_levels_begin(Relation index);
extern bool wh_levels_add(WhLevels *levels, const WhRow *row);
extern void wh_levels_finish(WhLevels *levels);

/* whbuild.c */
extern void wh_scan_rows(Relation heap, Relation index,
						 IndexInfo *index_info, WhSort *sort,
						 TableScanDesc scan, bool progress,
						 WhScanned *scanned);

/* whworkers.c */
extern WhWorkers *wh_workers_begin(Relation heap, Relation index,
								   IndexInfo *index_info,
								   const WhSample *sample);
extern WhSort *wh_workers_sort(WhWorkers *workers, Relation heap,
							   Relation index, WhScanned *scanned);
extern void wh_workers_end(WhWorkers *workers);

#endif							/* RANGEFILTER_WHBUILD_IMPL_H */
