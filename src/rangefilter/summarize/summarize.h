/*-------------------------------------------------------------------------
 *
 * summarize.h
 *	  Making the summary of a table: reading the heap, sorting keys, writing runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SUMMARIZE_H
#define RANGEFILTER_SUMMARIZE_H

#include "postgres.h"

#include "access/htup.h"
#include "key/codec.h"
#include "nodes/execnodes.h"
#include "rangefilter/page/page.h"

/* Phases of CREATE INDEX, for pg_stat_progress_create_index. */
#define RF_PHASE_SCAN	2
#define RF_PHASE_SORT	3
#define RF_PHASE_WRITE	4

/* rfheap.c */
typedef struct RfHeapTuple
{
	ItemPointerData tid;
	bool		isnull;
	RfKey		key;			/* not set when isnull */
	TransactionId xmin;			/* as stored */
	bool		settled;		/* inserted by a transaction that committed */
	bool		recently_dead;
} RfHeapTuple;

typedef void (*RfTupleCallback) (void *arg, const RfHeapTuple *tuple);

typedef struct RfHeapScan
{
	Relation	heap;
	Relation	index;
	IndexInfo  *index_info;
	const RfCodec *codec;
	BlockNumber start;
	BlockNumber end;
	bool		in_vacuum;		/* obey VACUUM's cost delay */
	bool		report_progress;	/* to pg_stat_progress_create_index */
	bool		missed_dead;	/* out: left out are versions that snapshots
								 * of standbys may see */
	bool		missed_visible; /* out: ... that snapshots of this server may
								 * see */
	TransactionId chains_xid;	/* out: the newest update that made a HOT
								 * chain with several keys; or invalid */
	uint64		dead_pointers;	/* out: line pointers of removed rows */
	bool		unordered;		/* out: RfKey.unordered of one */
	RfTupleCallback callback;
	void	   *arg;
} RfHeapScan;

extern void rf_scan_heap(RfHeapScan *scan);
extern bool rf_tuple_is_there(Relation heap, const RfHeapTuple *tuple);

/* rfsort.c */
typedef struct RfKeySort RfKeySort;

extern RfKeySort *rf_sort_begin(const RfCodec *codec, const RfPlacing *placing);
extern void rf_sort_add(RfKeySort *sort, const RfHeapTuple *tuple);
extern RfSegment *rf_sort_finish(RfKeySort *sort, Relation index,
								 bool report_progress, FilterRun *run);

/* rfsummarize.c */
typedef enum RfSummarizeMode
{
	RF_SUMMARIZE_BUILD,			/* CREATE INDEX, REINDEX: everything */
	RF_SUMMARIZE_VACUUM,		/* what is worth the reading */
	RF_SUMMARIZE_WORKER,		/* likewise, RF_STANDBY_UNKNOWN is no reason */
	RF_SUMMARIZE_VAIN,			/* likewise, but any row that was removed is
								 * one: the table is read in vain */
	RF_SUMMARIZE_ASKED			/* whatever improves the summary */
} RfSummarizeMode;

extern BlockNumber rf_summarize(Relation heap, Relation index,
								IndexInfo *index_info, RfSummarizeMode mode,
								double *nrows);

extern PGDLLEXPORT BlockNumber rf_choose_start(const RfMetaData *meta, BlockNumber end);
extern bool rf_summarize_is_due(Relation index, const RfMetaData *meta);

/* rfremoved.c */
extern void rf_init_removed(void);
extern bool rf_removal_is_due(Relation index, const RfMetaData *meta);
extern bool rf_enough_removed(Relation heap, Relation index, RfSummarizeMode mode);
extern void rf_note_removal(Relation heap, Relation index);
extern void rf_note_hot_update(Relation heap, Relation index, ItemPointer tid);

/* rfprogress.c */
extern bool rf_progress_begin(int nindexes);
extern void rf_progress_index(Relation heap, Relation index, int ndone);
extern void rf_progress_check(Oid index, int ndone);
extern bool rf_progress_is_of(Relation index);
extern void rf_progress_end(void);

#endif							/* RANGEFILTER_SUMMARIZE_H */
