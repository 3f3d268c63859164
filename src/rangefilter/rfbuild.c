/*-------------------------------------------------------------------------
 *
 * rfbuild.c
 *	  CREATE INDEX and REINDEX.
 *
 * A build is an empty metapage, which says nothing, and a summarize of the whole heap.
 * While an index is built nobody inserts into it.  A plain build locks writers out.  A
 * concurrent build is not ready for inserts; core inserts the rows that came
 * meanwhile when it validates the index, whether they are covered or not.
 *
 * A table of another access method than heap has no blocks of tuples to scan.
 * Its index has a metapage that says so, and nothing else.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xloginsert.h"
#include "catalog/pg_am_d.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "rangefilter/page/page.h"
#include "rangefilter/page/shared.h"
#include "rangefilter/rangefilter.h"
#include "rangefilter/summarize/summarize.h"

/*
 * Appends the block that becomes the metapage to an empty fork; returns it
 * pinned and exclusively locked.
 */
static Buffer
rf_new_meta(Relation index, ForkNumber fork)
{
	Buffer		buffer = ReadBufferExtended(index, fork, P_NEW, RBM_NORMAL,
											NULL);

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	Assert(BufferGetBlockNumber(buffer) == RF_META_BLKNO);
	return buffer;
}

/*
 * The flags of a new index of a table of this access method.
 */
static uint32
rf_new_flags(Oid table_am)
{
	return table_am == HEAP_TABLE_AM_OID ? 0 : RF_NOT_HEAP;
}

/*
 * Writes the metapage of an index without segments into the empty main fork.
 */
static void
rf_write_empty(Relation index, uint32 flags)
{
	Buffer		buffer = rf_new_meta(index, MAIN_FORKNUM);
	GenericXLogState *state = GenericXLogStart(index);

	rf_init_meta_page(GenericXLogRegisterBuffer(state, buffer,
												GENERIC_XLOG_FULL_IMAGE),
					  rf_index_codec(index), flags);
	rf_advance_change_counter(RelationGetRelid(index));
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}

/*
 * Reports that an index of a table of another access method says nothing.  A
 * partition has it because the partitioned table has: that is as it should be.
 */
static void
rf_notice_not_heap(Relation heap, Relation index)
{
	if (heap->rd_rel->relispartition)
		return;
	ereport(NOTICE,
			(errmsg("index \"%s\" has no summary, because table \"%s\" is not of access method heap",
					RelationGetRelationName(index),
					RelationGetRelationName(heap)),
			 errdetail("As a partition the table will be scanned."),
			 errhint("ALTER TABLE ... SET ACCESS METHOD heap, or use another index.")));
}

/*
 * ambuild.  Holds no lock or pin on return.
 */
IndexBuildResult *
rf_build(Relation heap, Relation index, IndexInfo *index_info)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));
	uint32		flags = rf_new_flags(heap->rd_rel->relam);

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));
	rf_check_definition(heap, index, index_info);
	if (flags & RF_NOT_HEAP)
	{
		rf_write_empty(index, flags);
		rf_notice_not_heap(heap, index);

		/* Nobody has counted the table's rows: their number stays. */
		result->heap_tuples = -1;
		return result;
	}

	/*
	 * Functions of the index may query the table meanwhile.  If a TRUNCATE
	 * builds in place after the table was moved, this is all: a rollback
	 * would bring rows back.
	 */
	rf_write_empty(index, flags | RF_TAIL_OPEN);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, RF_PHASE_SCAN);
	rf_summarize(heap, index, index_info, RF_SUMMARIZE_BUILD,
				 &result->heap_tuples);
	result->index_tuples = result->heap_tuples;

	/*
	 * Core takes this as the table's number of rows.  In a partial index only
	 * the rows of the predicate were counted, so the number stays as it is.
	 */
	if (index_info->ii_Predicate != NIL)
		result->heap_tuples = -1;
	return result;
}

/*
 * ambuildempty: the init fork of an unlogged index, copied to the main fork
 * after a crash.  The fork must survive the crash, so it is WAL-logged.
 * GenericXLog would log nothing for an unlogged relation.
 */
void
rf_buildempty(Relation index)
{
	Buffer		buffer = rf_new_meta(index, INIT_FORKNUM);
	Relation	heap = table_open(index->rd_index->indrelid, NoLock);
	PGAlignedBlock page;

	rf_init_meta_page(page.data, rf_index_codec(index),
					  rf_new_flags(heap->rd_rel->relam));
	table_close(heap, NoLock);
	START_CRIT_SECTION();
	memcpy(BufferGetPage(buffer), page.data, BLCKSZ);
	MarkBufferDirty(buffer);
	log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}
