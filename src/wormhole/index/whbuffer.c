/*-------------------------------------------------------------------------
 *
 * whbuffer.c
 *	  Pinning, locking and checking blocks of an index; new blocks.
 *
 * Finding a block in the shared buffer table costs a hash, a partition lock
 * and two or three cache misses.  So each session remembers in which buffers
 * it has seen blocks, for all its indexes, in a table of fixed size without
 * chains.  Core checks the guess while pinning: a wrong guess costs a little
 * and does no harm.  Nothing needs to be invalidated.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "common/hashfn.h"
#include "compat.h"
#include "port/pg_bitutils.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "wormhole/index/whindex.h"

/*
 * A pin by a remembered buffer does not count as use for the buffer pool's
 * clock.  So one in LONG_WAY pins uses ReadBuffer(), to keep hot pages in the
 * pool.
 */
#define LONG_WAY	64

/* The table: a power of two of buffers. */
static Buffer *recent = NULL;
static uint32 recent_mask = 0;
static int	recent_memory = -1; /* the setting it was made for */

/*
 * Raises the error for a damaged page.  The metapage is written at the end of a build, whose
 * lock on the index keeps other sessions away.  So where a holder of that lock misses the
 * metapage, a function in the index's definition accesses the table.
 */
void
wh_report_damage(Relation index, BlockNumber block)
{
	if (block == WH_META_BLKNO &&
		CheckRelationLockedByMe(index, AccessExclusiveLock, false))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access index \"%s\" while it is being built",
						RelationGetRelationName(index)),
				 errdetail("A function in its definition accesses its table."),
				 errhint("Functions that read tables are not immutable.")));
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" is damaged at block %u",
					RelationGetRelationName(index), block),
			 errhint("Please REINDEX it.")));
}

/*
 * Raises the error for a page or an index of another format version, as after
 * an upgrade, or after going back to an older release.
 */
void
wh_report_version(Relation index, BlockNumber block, int version)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" has format version %d at block %u, not %d",
					RelationGetRelationName(index), version, block,
					WH_FORMAT_VERSION),
			 errhint("Please REINDEX it.")));
}

/*
 * Returns the page in a locked buffer.  Raises an error if it is not a page of
 * this access method, or its header is damaged.
 */
Page
wh_check_page(Relation index, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	WhHeader	header = WhPageHeader(page);

	if (PageIsNew(page) || header->page_id != WH_PAGE_ID)
		wh_report_damage(index, BufferGetBlockNumber(buffer));
	if (header->version != WH_FORMAT_VERSION)
		wh_report_version(index, BufferGetBlockNumber(buffer),
						  header->version);
	if (!wh_header_is_sound(page) ||
		header->next == BufferGetBlockNumber(buffer) ||
		header->prev == BufferGetBlockNumber(buffer))
		wh_report_damage(index, BufferGetBlockNumber(buffer));
	return page;
}

/*
 * Makes the table of buffers, or makes it anew after the setting has changed.
 * If memory cannot be allocated, there is no table.
 */
static void
make_table(void)
{
	Size		memory = wh_hint_memory * (Size) 1024 / WH_BUFFERS_PART;
	Size		n = pg_prevpower2_64(memory / sizeof(Buffer));

	/* A table with more places than the pool has buffers is of no more use. */
	while (n / 4 > (Size) NBuffers && n > 1024)
		n /= 2;
	if (recent != NULL)
		pfree(recent);
	recent_memory = wh_hint_memory;
	recent_mask = n - 1;
	recent = MemoryContextAllocExtended(TopMemoryContext, n * sizeof(Buffer),
										MCXT_ALLOC_NO_OOM | MCXT_ALLOC_ZERO |
										MCXT_ALLOC_HUGE);
}

/*
 * The bytes that remembered buffers take.
 */
Size
wh_recent_size(void)
{
	return recent == NULL ? 0 : (recent_mask + (Size) 1) * sizeof(Buffer);
}

/*
 * Pins a block, which must exist.
 */
Buffer
wh_pin(Relation index, BlockNumber block)
{
	static uint32 pins = 0;
	Buffer	   *place;

	/* Local buffers are found without locks anyway. */
	if (!wh_enable_hint || RelationUsesLocalBuffers(index))
		return ReadBuffer(index, block);
	if (unlikely(recent_memory != wh_hint_memory))
		make_table();
	if (unlikely(recent == NULL))
		return ReadBuffer(index, block);

	/* Neighbouring blocks are neighbours in the table. */
	place = &recent[(murmurhash32(RelationGetRelid(index)) + block) &
					recent_mask];
	if (likely(++pins % LONG_WAY != 0 && *place != InvalidBuffer &&
			   ReadRecentBuffer(RF_RELFILE(index), MAIN_FORKNUM, block,
								*place)))
		return *place;
	*place = ReadBuffer(index, block);
	return *place;
}

/*
 * Pins a block that some page refers to.  Raises an error if it is behind the end of
 * the file.
 */
static Buffer
pin_existing(Relation index, BlockNumber block)
{
	WhCache    *cache = wh_cache(index);

	if (block >= cache->nblocks)
	{
		cache->nblocks = RelationGetNumberOfBlocks(index);
		if (block >= cache->nblocks)
			wh_report_damage(index, block);
	}
	return wh_pin(index, block);
}

/*
 * Pins and locks a block that some page refers to, and checks it.  Raises an
 * error if it is damaged or behind the end of the file.
 */
Buffer
wh_read(Relation index, BlockNumber block, int lockmode)
{
	Buffer		buffer = pin_existing(index, block);

	LockBuffer(buffer, lockmode);
	(void) wh_check_page(index, buffer);
	return buffer;
}

/*
 * May a page be looked at that is not locked?
 *
 * Replay restores a page from its image in a buffer that it has locked, and that is zero
 * until then.  So on a standby a page is looked at when it is locked.  Nobody has locked
 * a page there to which damage could lead: but for the left neighbour, of which
 * wh_check_page() knows that it does not link to itself.
 */
static bool
may_look_unlocked(void)
{
	return !RecoveryInProgress();
}

/*
 * The same for a block that a page of the directory refers to.  InvalidBuffer if it is
 * not of the level expected.  That is found out before the block is locked: the caller
 * may have locked pages of lower levels, to which a damaged directory may lead.  On a standby,
 * or if the page changes meanwhile, a page of another level is returned: wh_move_right() looks.
 */
Buffer
wh_read_level(Relation index, BlockNumber block, int level, int lockmode)
{
	Buffer		buffer = pin_existing(index, block);
	volatile WhHeaderData *header = WhPageHeader(BufferGetPage(buffer));

	if (header->level != level && may_look_unlocked())
	{
		ReleaseBuffer(buffer);
		return InvalidBuffer;
	}
	LockBuffer(buffer, lockmode);
	(void) wh_check_page(index, buffer);
	return buffer;
}

/*
 * Does a page link back to its left neighbour, which is locked?
 */
static bool
links_back(Buffer buffer, Buffer left)
{
	volatile WhHeaderData *header = WhPageHeader(BufferGetPage(left));
	volatile WhHeaderData *next = WhPageHeader(BufferGetPage(buffer));

	return next->prev == BufferGetBlockNumber(left) &&
		next->level == header->level && next->identity == header->identity &&
		!(next->flags & (WH_META | WH_DELETED));
}

/*
 * Pins and locks the right neighbour of a page that stays locked, and checks it.  Raises
 * an error if the neighbour does not link back.  Its link cannot change while this page is
 * locked, so it is read before the neighbour is locked: a damaged link may lead to
 * a page that the caller has locked.
 */
Buffer
wh_read_right(Relation index, Buffer left, int lockmode)
{
	Buffer		buffer = pin_existing(index, WhPageHeader(BufferGetPage(left))->next);
	bool		linked = links_back(buffer, left);

	if (!linked && may_look_unlocked())
		wh_report_damage(index, BufferGetBlockNumber(left));
	LockBuffer(buffer, lockmode);
	(void) wh_check_page(index, buffer);
	if (!linked && !links_back(buffer, left))
		wh_report_damage(index, BufferGetBlockNumber(left));
	return buffer;
}

/*
 * Returns a page to use, from the free space map or the end of the file,
 * pinned and locked exclusively.  The map is not crash-safe, so a page from
 * the map is checked.  A reader that still comes to the old page sees from its
 * header and bounds that it is another one.
 */
Buffer
wh_new_buffer(Relation index)
{
	bool		need_lock = !RELATION_IS_LOCAL(index);
	Buffer		buffer;

	for (;;)
	{
		BlockNumber block = GetFreeIndexPage(index);
		Page		page;

		if (block == InvalidBlockNumber)
			break;
		buffer = ReadBuffer(index, block);
		page = BufferGetPage(buffer);
		if (ConditionalLockBuffer(buffer))
		{
			if (PageIsNew(page) ||
				(WhPageHeader(page)->page_id == WH_PAGE_ID &&
				 (WhPageHeader(page)->flags & WH_DELETED)))
				return buffer;
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		}
		ReleaseBuffer(buffer);
	}
	if (need_lock)
		LockRelationForExtension(index, ExclusiveLock);
	buffer = ReadBuffer(index, P_NEW);

	/*
	 * The page is locked before VACUUM can count the block and find it
	 * unused.
	 */
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (need_lock)
		UnlockRelationForExtension(index, ExclusiveLock);
	return buffer;
}
