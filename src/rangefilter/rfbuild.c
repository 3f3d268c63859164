/*-------------------------------------------------------------------------
 *
 * rfbuild.c
 *	  CREATE INDEX and REINDEX.
 *
 * A build is an empty metapage and a summarize of the whole heap.  While an
 * index is built nobody inserts into it: a plain build locks writers out, a
 * concurrent one is not ready for inserts, and core then inserts whatever
 * came in between, whether it is covered already or not.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "commands/progress.h"
#include "pgstat.h"
#include "rangefilter/rangefilter.h"

/*
 * Writes the metapage of an index without segments into the given fork,
 * which is empty.
 */
static void
rf_write_empty(Relation index, ForkNumber fork, const RfCodec *codec)
{
	GenericXLogState *state;
	Buffer		buffer = ReadBufferExtended(index, fork, P_NEW, RBM_NORMAL,
											NULL);

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	Assert(BufferGetBlockNumber(buffer) == RF_META_BLKNO);
	state = GenericXLogStart(index);
	rf_init_meta_page(GenericXLogRegisterBuffer(state, buffer,
												GENERIC_XLOG_FULL_IMAGE),
					  codec, 0);
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}

/*
 * ambuild.  Holds no lock or pin on return.
 */
IndexBuildResult *
rf_build(Relation heap, Relation index, IndexInfo *index_info)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));
	rf_check_definition(heap, index, index_info);
	rf_write_empty(index, MAIN_FORKNUM, rf_index_codec(index));
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, RF_PHASE_SCAN);
	rf_summarize(heap, index, index_info, RF_SUMMARIZE_BUILD, -1,
				 &result->heap_tuples);
	result->index_tuples = result->heap_tuples;
	return result;
}

/*
 * ambuildempty: the init fork of an unlogged index, copied to the main fork
 * after a crash.
 */
void
rf_buildempty(Relation index)
{
	rf_write_empty(index, INIT_FORKNUM, rf_index_codec(index));
}
