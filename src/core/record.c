/*-------------------------------------------------------------------------
 *
 * record.c
 *	  WAL records that core replays and that are not put together by core.
 *
 * Generic WAL finds out what changed on a page by comparing it with a copy of the
 * whole page.  Where the change is known that costs several times the change itself,
 * so the record can be made here.  What is expected of core (generic_xlog.c): for
 * each block such a record has offset, length and bytes of each stretch that changed,
 * and replay leaves zeros between pd_lower and pd_upper.  generic_desc() reads the
 * same stretches, so it is asked whether it understands ours.
 *
 * On a standby an older snapshot may still see the rows whose index entries are
 * removed, and generic WAL cannot say so.  A record of nbtree can: the one for the
 * reuse of a page.  What is expected of core (nbtxlog.c): replaying it cancels
 * queries with older snapshots and does nothing else.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/generic_xlog.h"
#include "access/nbtxlog.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "access/xlogreader.h"
#include "compat.h"
#include "core/core.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/*
 * Return true if core reads, of two stretches as we write them, their offsets and lengths.
 */
static bool
core_reads_stretches(void)
{
	static const RfCoreStretch first = {258, 3};
	static const RfCoreStretch second = {8191, 1};
	static const char bytes[] = {0x11, 0x12, 0x13};
	DecodedXLogRecord record = {0};
	XLogReaderState reader = {0};
	StringInfoData content;
	StringInfoData seen;
	bool		same;

	initStringInfo(&content);
	appendBinaryStringInfo(&content, (const char *) &first, sizeof(first));
	appendBinaryStringInfo(&content, bytes, first.length);
	appendBinaryStringInfo(&content, (const char *) &second, sizeof(second));
	appendBinaryStringInfo(&content, bytes, second.length);
	record.main_data = content.data;
	record.main_data_len = content.len;
	reader.record = &record;
	initStringInfo(&seen);
	generic_desc(&seen, &reader);
	same = strcmp(seen.data, "offset 258, length 3; offset 8191, length 1") == 0;
	pfree(seen.data);
	pfree(content.data);
	return same;
}

/*
 * Return true if rf_core_log_stretches() may be called.  If not, the change has to be made by
 * generic WAL itself.  Takes memory, so not for a critical section.
 */
bool
rf_core_knows_stretches(void)
{
	static bool asked = false;
	static bool known = false;

	if (!asked)
	{
		known = core_reads_stretches();
		asked = true;
	}
	return known && !RF_CORE_DOUBTS(RF_CORE_RECORD);
}

/*
 * Logs what has changed on a standard page in a buffer, which is locked exclusively and
 * marked dirty.  To be called in the critical section of the change, where the
 * index needs WAL.
 */
void
rf_core_log_stretches(Buffer buffer, const RfCoreStretch *stretches, int n)
{
	Page		page = BufferGetPage(buffer);
	XLogRecPtr	lsn;

	StaticAssertStmt(sizeof(RfCoreStretch) == 2 * sizeof(OffsetNumber),
					 "a stretch begins with two OffsetNumbers");
	Assert(CritSectionCount > 0);
	XLogBeginInsert();
	XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
	for (int i = 0; i < n; i++)
	{
		XLogRegisterBufData(0, (char *) &stretches[i], sizeof(RfCoreStretch));
		XLogRegisterBufData(0, (char *) page + stretches[i].offset,
							stretches[i].length);
	}
	lsn = XLogInsert(RM_GENERIC_ID, 0);
	PageSetLSN(page, lsn);
}

/*
 * Has standbys cancel queries that may still see rows deleted by transactions up to
 * this one, whose entries are about to be removed from a block of the index.
 */
void
rf_core_log_conflict(Relation index, BlockNumber block,
					 FullTransactionId horizon)
{
	xl_btree_reuse_page record;

	if (!RelationNeedsWAL(index) || !XLogStandbyInfoActive())
		return;
	memset(&record, 0, sizeof(record));
	RF_FILL_CONFLICT(record, index, block, horizon);
	XLogBeginInsert();
	XLogRegisterData((char *) &record, SizeOfBtreeReusePage);
	(void) XLogInsert(RM_BTREE_ID, XLOG_BTREE_REUSE_PAGE);
}
