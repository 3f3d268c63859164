/*-------------------------------------------------------------------------
 *
 * rfpage.c
 *	  Pages of a rangefilter index: layout, reading and writing of runs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "miscadmin.h"
#include "rangefilter/page/page.h"
#include "rangefilter/page/shared.h"
#include "storage/lmgr.h"
#include "storage/smgr.h"
#include "utils/memutils.h"

/*
 * Initializes a page of the given kind.  Content starts empty: pd_lower is
 * where RfPageGetContent() is.
 */
void
rf_init_page(Page page, RfPageKind kind, uint64 identity, uint32 owner)
{
	RfPageOpaque opaque;

	PageInit(page, BLCKSZ, 0);
	((PageHeader) page)->pd_lower = RF_PAGE_HEADER;
	opaque = RfPageGetOpaque(page);
	opaque->identity = identity;
	opaque->owner = owner;
	opaque->kind = kind;
	opaque->version = RF_FORMAT_VERSION;
	opaque->page_id = RF_PAGE_ID;
}

/*
 * Return true if this page is what the metapage says it is.  Its header must be possible, too, since
 * generic WAL relies on it.  Call with the page locked.
 */
bool
rf_page_is(Page page, RfPageKind kind, uint64 identity, uint32 owner)
{
	PageHeader	header = (PageHeader) page;
	RfPageOpaque opaque;

	if (PageIsNew(page) || header->pd_special != BLCKSZ ||
		header->pd_lower < RF_PAGE_HEADER ||
		header->pd_lower > header->pd_upper || header->pd_upper > BLCKSZ)
		return false;
	opaque = RfPageGetOpaque(page);
	return opaque->page_id == RF_PAGE_ID &&
		opaque->version == RF_FORMAT_VERSION &&
		opaque->kind == kind &&
		opaque->identity == identity &&
		opaque->owner == owner;
}

/*
 * Return true if the block, which the metapage names, can be read and locked while the
 * metapage is locked.  A damaged metapage may name itself, or a block past the end
 * of the file.
 */
bool
rf_block_exists(RfFile *file, BlockNumber block)
{
	if (block == RF_META_BLKNO)
		return false;

	/* Where the index is not open, pinning the block will tell. */
	if (file->index == NULL)
		return true;

	/* The file may have grown since its length was noted. */
	if (block >= file->nblocks)
		file->nblocks = RelationGetNumberOfBlocks(file->index);
	return block < file->nblocks;
}

/*
 * Begins to read the metapage of an index that is locked, if it is not in shared buffers.
 */
void
rf_prefetch_meta(const RfRelFile *locator)
{
	(void) PrefetchSharedBuffer(RF_SMGR_OPEN(*locator), MAIN_FORKNUM, RF_META_BLKNO);
}

/*
 * Pins a block of an index that is locked but not open.  Looks for it in shared
 * buffers, then in its file.  InvalidBuffer if that is too short, or where the file is
 * only read ahead.
 */
Buffer
rf_read_by_locator(const RfFile *file, BlockNumber block)
{
	SMgrRelation smgr = RF_SMGR_OPEN(file->locator);
	PrefetchBufferResult found;

	/* Of a segment that does not exist no block can be looked for. */
	if (block >= RELSEG_SIZE && block >= smgrnblocks(smgr, MAIN_FORKNUM))
		return InvalidBuffer;
	found = PrefetchSharedBuffer(smgr, MAIN_FORKNUM, block);
	if (BufferIsValid(found.recent_buffer) &&
		ReadRecentBuffer(file->locator, MAIN_FORKNUM, block,
						 found.recent_buffer))
		return found.recent_buffer;
	if (file->ahead && block != RF_META_BLKNO)
		return InvalidBuffer;
	if (block >= smgrnblocks(smgr, MAIN_FORKNUM))
		return InvalidBuffer;
	return ReadBufferWithoutRelcache(file->locator, MAIN_FORKNUM, block,
									 RBM_NORMAL, NULL, true);
}

/*
 * Pins a block other than the metapage, preferring the buffer it was last seen
 * in.  InvalidBuffer if the block is not there and the index is neither open nor
 * locked, or if its file is too short.
 */
static Buffer
rf_pin_block(RfFile *file, BlockNumber block)
{
	Buffer	   *recent = &file->buffers[block % RF_RECENT_PAGES];

	if (!BufferIsValid(*recent) ||
		!ReadRecentBuffer(file->locator, MAIN_FORKNUM, block, *recent))
	{
		if (file->index != NULL)
			*recent = ReadBuffer(file->index, block);
		else
			*recent = file->locked ? rf_read_by_locator(file, block) :
				InvalidBuffer;
	}
	return *recent;
}

/*
 * Pins and locks a block that the metapage, or a copy of it, names.  InvalidBuffer if there
 * is no such block, or rf_pin_block() does not find it.
 */
Buffer
rf_lock_block(RfFile *file, BlockNumber block, int lockmode)
{
	Buffer		buffer = rf_block_exists(file, block) ? rf_pin_block(file, block) :
	InvalidBuffer;

	if (BufferIsValid(buffer))
		LockBuffer(buffer, lockmode);
	return buffer;
}

/*
 * The page of a run that is in its entry on the metapage.  If it is there, the metapage stays
 * share-locked and pinned in reader->buffer, until rf_run_reader_end().  Otherwise returns NULL,
 * and there is no lock.
 */
static const uint8 *
rf_read_entry_run(RfRunReader *reader)
{
	uint32		len = reader->reader.page_size;
	const uint8 *run = NULL;

	reader->buffer = rf_try_read_entry_run(reader->file, reader->identity,
										   reader->owner, len, &run);
	return run;
}

/*
 * Share-locks a block of the run and returns its content.  The block stays locked and pinned in
 * reader->buffer, until rf_run_reader_end().  Returns NULL if there is no such block, which then is not
 * locked, and if the page is not what the directory says, which stays locked.
 */
static const uint8 *
rf_lock_run_page(RfRunReader *reader, BlockNumber block)
{
	Page		page;

	reader->buffer = rf_lock_block(reader->file, block, BUFFER_LOCK_SHARE);
	if (!BufferIsValid(reader->buffer))
		return NULL;
	page = BufferGetPage(reader->buffer);
	if (!rf_page_is(page, RF_PAGE_RUN, reader->identity, reader->owner))
		return NULL;
	return (const uint8 *) RfPageGetContent(page);
}

/*
 * FilterReader callback: share-locks page pageno of the run, releasing the
 * page read before, unless it is the same one; or returns the run in the entry at hand.  NULL
 * if the page is not what the directory says.
 */
static const uint8 *
rf_read_run_page(FilterReader *self, uint32_t pageno)
{
	RfRunReader *reader = (RfRunReader *) self;
	BlockNumber block = reader->run_block + pageno;

	/* Each value of a long list asks for a page, and mostly for the same one. */
	if (BufferIsValid(reader->buffer) && reader->pageno == pageno)
		return reader->content;
	rf_run_reader_end(reader);
	if (pageno >= reader->reader.npages)
		return NULL;
	if (reader->entry_run != NULL)
		return reader->entry_run;

	/*
	 * The filter library reads all pages in a loop of its own.  (With the
	 * metapage locked this does nothing.)
	 */
	CHECK_FOR_INTERRUPTS();
	reader->pageno = pageno;
	reader->content = block == RF_META_BLKNO ? rf_read_entry_run(reader) :
		rf_lock_run_page(reader, block);
	return reader->content;
}

/*
 * Prepares to read a segment's run.  The caller holds a lock on the metapage
 * until rf_run_reader_end(), so that the run stays in use; or the segment is one of a
 * cached metapage, and the caller holds no lock on a page of the index.
 */
void
rf_run_reader_begin(RfRunReader *reader, RfFile *file,
					const RfMetaData *meta, const RfSegment *segment)
{
	reader->reader.read_page = rf_read_run_page;
	reader->reader.npages = segment->npages;
	reader->reader.page_size = segment->run_len > 0 ? segment->run_len : RF_PAGE_CONTENT;
	reader->file = file;
	reader->identity = meta->identity;
	reader->run_block = segment->run_block;
	reader->owner = segment->owner;
	reader->entry_run = segment->run_len > 0 && !(segment->flags & RF_SEGMENT_BARE) ?
		rf_segment_run(segment) : NULL;
	reader->buffer = InvalidBuffer;
}

/*
 * Releases the lock and pin of the page read last.
 */
void
rf_run_reader_end(RfRunReader *reader)
{
	if (BufferIsValid(reader->buffer))
		UnlockReleaseBuffer(reader->buffer);
	reader->buffer = InvalidBuffer;
}

/*
 * Appends npages zeroed blocks to the index and returns the first.  Takes
 * the extension lock, so the blocks are contiguous.
 */
BlockNumber
rf_extend(Relation index, uint32 npages)
{
	BlockNumber first = InvalidBlockNumber;
	bool		need_lock = !RELATION_IS_LOCAL(index);

	if (need_lock)
		LockRelationForExtension(index, ExclusiveLock);
	for (uint32 i = 0; i < npages; i++)
	{
		Buffer		buffer;

		CHECK_FOR_INTERRUPTS();
		buffer = ReadBuffer(index, P_NEW);
		if (i == 0)
			first = BufferGetBlockNumber(buffer);
		ReleaseBuffer(buffer);
	}
	if (need_lock)
		UnlockRelationForExtension(index, ExclusiveLock);
	return first;
}

/*
 * Takes the lock of runs.  Only its holder takes free blocks, puts runs into the
 * directory and takes them out.  It is a heavyweight lock, hence released
 * when a transaction aborts.  Its holder may take no other heavyweight lock but that
 * for extending the index, so nobody waits long for it.
 * False, and no lock, if it cannot be had at once and wait is not set.
 */
bool
rf_lock_runs(Relation index, bool wait)
{
	/* To make the cache reads catalogs, which takes locks. */
	(void) rf_cache(index);
	if (!wait)
		return ConditionalLockPage(index, RF_META_BLKNO, ExclusiveLock);
	LockPage(index, RF_META_BLKNO, ExclusiveLock);
	return true;
}

/*
 * Releases the lock of runs.
 */
void
rf_unlock_runs(Relation index)
{
	UnlockPage(index, RF_META_BLKNO, ExclusiveLock);
}

/*
 * Marks the blocks [start, start + n) as used, but for those beyond the map.
 */
static void
rf_mark_used(bool *used, BlockNumber nblocks, BlockNumber start, uint32 n)
{
	for (uint32 i = 0; i < n && start + i < nblocks; i++)
		used[start + i] = true;
}

/*
 * Returns which of the first nblocks blocks the metapage refers to.  The result
 * is palloc'd.  Takes and releases a share lock on the metapage.
 *
 * A block that it does not refer to is free; there is no other record of free blocks.
 * So a crash in the middle of a summarize leaks nothing.  The caller has the lock
 * of runs.  So no free block becomes used meanwhile: inserts take blocks from the
 * spare list, which counts as used, or from the end of the file.
 */
static bool *
rf_used_blocks(Relation index, BlockNumber nblocks)
{
	bool	   *used = palloc0(nblocks * sizeof(bool));
	Buffer		buffer = rf_read_meta(index, BUFFER_LOCK_SHARE);
	RfMetaData *meta = rf_page_meta(BufferGetPage(buffer));
	const RfSegment *segment = rf_first_segment(meta);

	used[RF_META_BLKNO] = true;
	for (int i = 0; i < meta->nsegments + meta->nlevels; i++)
	{
		rf_mark_used(used, nblocks, segment->run_block, segment->npages);
		segment = rf_next_segment(segment);
	}
	for (int i = 0; i < meta->ndelta; i++)
		rf_mark_used(used, nblocks, meta->delta[i].block, 1);
	for (int i = 0; i < meta->nspare; i++)
		rf_mark_used(used, nblocks, meta->spare[i], 1);
	UnlockReleaseBuffer(buffer);
	return used;
}

/*
 * Finds npages contiguous free blocks, extending the index where there is no
 * such hole.  The caller has the lock of runs, so what is free stays free until the
 * directory refers to it.
 */
static BlockNumber
rf_find_free(Relation index, uint32 npages)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(index);
	bool	   *used = rf_used_blocks(index, nblocks);
	uint32		hole = 0;

	for (BlockNumber block = 1; block < nblocks; block++)
	{
		hole = used[block] ? 0 : hole + 1;
		if (hole == npages)
		{
			pfree(used);
			return block + 1 - npages;
		}
	}
	pfree(used);
	return rf_extend(index, npages);
}

/*
 * Returns where the content of a run's page ends.  The zeros behind it are not logged.
 */
static uint32
rf_content_length(const uint8 *content)
{
	uint32		len = RF_PAGE_CONTENT;

	while (len >= sizeof(uint64) &&
		   *(const uint64 *) (content + len - sizeof(uint64)) == 0)
		len -= sizeof(uint64);
	return len;
}

/*
 * Writes a run's pages to free blocks, WAL-logs them, and returns the first block.
 * Nothing refers to them yet: the caller must put them into the directory before it
 * releases the lock of runs.  Holds no lock of its own on return.
 */
BlockNumber
rf_write_run(Relation index, uint64 identity, uint32 owner,
			 const FilterRun *run)
{
	BlockNumber first = rf_find_free(index, run->npages);

	for (uint32 done = 0; done < run->npages; done += MAX_GENERIC_XLOG_PAGES)
	{
		GenericXLogState *state = GenericXLogStart(index);
		Buffer		buffers[MAX_GENERIC_XLOG_PAGES];
		uint32		n = Min(MAX_GENERIC_XLOG_PAGES, run->npages - done);

		CHECK_FOR_INTERRUPTS();
		for (uint32 i = 0; i < n; i++)
		{
			Page		page;

			buffers[i] = ReadBuffer(index, first + done + i);
			LockBuffer(buffers[i], BUFFER_LOCK_EXCLUSIVE);
			page = GenericXLogRegisterBuffer(state, buffers[i],
											 GENERIC_XLOG_FULL_IMAGE);
			rf_init_page(page, RF_PAGE_RUN, identity, owner);
			memcpy(RfPageGetContent(page),
				   run->pages + (size_t) (done + i) * RF_PAGE_CONTENT,
				   RF_PAGE_CONTENT);
			((PageHeader) page)->pd_lower = RF_PAGE_HEADER +
				rf_content_length((const uint8 *) RfPageGetContent(page));
		}
		GenericXLogFinish(state);
		for (uint32 i = 0; i < n; i++)
			UnlockReleaseBuffer(buffers[i]);
	}
	return first;
}
