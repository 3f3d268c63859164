/*-------------------------------------------------------------------------
 *
 * whvacuum.c
 *	  Removing dead entries and empty leaves.
 *
 * VACUUM walks the leaves from left to right by their links.  A split moves
 * entries to the right only, so VACUUM meets them all.  It takes a cleanup
 * lock on every leaf, also if there is nothing to remove: a scan that still
 * has TIDs of a leaf keeps it pinned, and the lock waits for it.
 *
 * Empty leaves are deleted (tree/whdelete.c).  Deleted pages may be used
 * again.  The free space map may lose them in a crash.  So VACUUM reads each
 * block that is not a leaf and tells the map which are free.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "commands/vacuum.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"
#include "compat.h"
#include "wormhole/tree/whtree.h"
#include "wormhole/write/whwrite.h"

/* A VACUUM under way. */
typedef struct WhVacuum
{
	IndexVacuumInfo *info;
	IndexBulkDeleteResult *stats;
	IndexBulkDeleteCallback callback;
	void	   *callback_state;
	WhItemSet	set;
	bool	   *dead;			/* for each TID of the present leaf */
	ItemPointerData *kept;		/* remaining TIDs of lists that lost some */
	WhRemoval	removal;		/* from the present leaf */
	uint8	   *space;			/* for bounds */
	BlockNumber nblocks;		/* when VACUUM began */
	uint8	   *seen;			/* a bit for each block that stays a leaf */
	BlockNumber *empty;			/* leaves that could not be deleted */
	int			nempty;
	int			max_empty;
} WhVacuum;

/*
 * Removes dead TIDs and entries from a leaf's items.  Returns whether there
 * were any.
 */
static bool
remove_dead_items(WhVacuum *vacuum)
{
	IndexBulkDeleteResult *stats = vacuum->stats;
	double		removed = stats->tuples_removed;
	int			number = 0;

	for (int i = 0; i < vacuum->set.n; i++)
	{
		const WhItem *item = wh_item(&vacuum->set, i);

		for (int t = 0; t < item->ntids; t++, number++)
		{
			ItemPointerData tid;

			memcpy(&tid, &item->tids[t], sizeof(tid));
			vacuum->dead[number] = vacuum->callback(&tid, vacuum->callback_state);
			stats->tuples_removed += vacuum->dead[number];
		}
	}
	stats->num_index_tuples += number - (stats->tuples_removed - removed);
	if (stats->tuples_removed == removed)
		return false;
	wh_remove_tids(&vacuum->set, vacuum->dead, vacuum->kept, &vacuum->removal);
	return true;
}

/*
 * Removes dead entries from a leaf, on which there is a cleanup lock.
 */
static void
clean_leaf(WhVacuum *vacuum, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	WhBounds	bounds;

	wh_items_load(&vacuum->set, page);
	if (!remove_dead_items(vacuum))
		return;
	wh_page_bounds(page, &bounds, vacuum->space);
	wh_log_removal(vacuum->info->index, buffer, &vacuum->set, &bounds,
				   &vacuum->removal);
}

/*
 * Sets the number of blocks.  A block that is being added is not counted
 * before its page is locked (see wh_new_buffer()).
 */
static void
count_blocks(WhVacuum *vacuum)
{
	Relation	index = vacuum->info->index;

	LockRelationForExtension(index, ExclusiveLock);
	vacuum->nblocks = RelationGetNumberOfBlocks(index);
	UnlockRelationForExtension(index, ExclusiveLock);
	vacuum->seen = MemoryContextAllocExtended(CurrentMemoryContext,
											  vacuum->nblocks / 8 + 1,
											  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
}

/*
 * Notes that a block stays a leaf.
 */
static void
keep_leaf(WhVacuum *vacuum, BlockNumber block)
{
	if (block < vacuum->nblocks)
		vacuum->seen[block / 8] |= 1 << block % 8;
}

/*
 * Deletes an empty leaf, or remembers it for another try.  Nothing is locked.
 */
static void
delete_leaf(WhVacuum *vacuum, BlockNumber block)
{
	int			n = wh_delete_page(vacuum->info->index, block, 0);

	vacuum->stats->pages_newly_deleted += n;
	if (n > 0)
		return;
	if (vacuum->nempty == vacuum->max_empty)
	{
		vacuum->max_empty *= 2;
		vacuum->empty = repalloc_huge(vacuum->empty, vacuum->max_empty *
									  sizeof(BlockNumber));
	}
	vacuum->empty[vacuum->nempty++] = block;
}

/*
 * Tries again to delete empty leaves, as long as that deletes any: the first
 * leaf of a directory page can only go after all others.
 */
static void
delete_rest(WhVacuum *vacuum)
{
	int			n;

	do
	{
		n = vacuum->nempty;
		vacuum->nempty = 0;
		for (int i = 0; i < n; i++)
		{
			RF_VACUUM_DELAY();
			delete_leaf(vacuum, vacuum->empty[i]);
		}
	} while (vacuum->nempty < n);
	for (int i = 0; i < n; i++)
		keep_leaf(vacuum, vacuum->empty[i]);
}

/*
 * Cleans a leaf, and deletes it if it is empty then.  Returns the block of the
 * next leaf, which nobody else can delete meanwhile.  Nothing is locked before
 * and after.
 */
static BlockNumber
vacuum_leaf(WhVacuum *vacuum, BlockNumber block)
{
	Relation	index = vacuum->info->index;
	Buffer		buffer = ReadBufferExtended(index, MAIN_FORKNUM, block,
											RBM_NORMAL,
											vacuum->info->strategy);
	WhHeader	header;
	BlockNumber next;
	bool		empty;

	LockBufferForCleanup(buffer);
	header = WhPageHeader(wh_check_page(index, buffer));
	next = header->next;

	/* Damaged links may lead anywhere, also back. */
	if (!wh_is_on_level(BufferGetPage(buffer), 0) ||
		(block < vacuum->nblocks && (vacuum->seen[block / 8] & (1 << block % 8))))
		wh_report_damage(index, block);
	clean_leaf(vacuum, buffer);
	empty = WhPageHeader(BufferGetPage(buffer))->nslots == 0;
	UnlockReleaseBuffer(buffer);
	if (empty && block != WH_FIRST_LEAF)
		delete_leaf(vacuum, block);
	else
		keep_leaf(vacuum, block);
	return next;
}

/*
 * Tells the free space map which blocks are deleted pages.  Reads only blocks
 * that were not leaves when VACUUM came by, or are not any more.
 */
static void
find_free_pages(WhVacuum *vacuum)
{
	Relation	index = vacuum->info->index;
	BlockNumber nfree = 0;

	for (BlockNumber block = WH_FIRST_LEAF; block < vacuum->nblocks; block++)
	{
		Buffer		buffer;
		Page		page;
		bool		is_free;

		if (vacuum->seen[block / 8] & (1 << block % 8))
			continue;
		RF_VACUUM_DELAY();
		buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_NORMAL,
									vacuum->info->strategy);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		page = BufferGetPage(buffer);
		is_free = PageIsNew(page) ||
			(WhPageHeader(wh_check_page(index, buffer))->flags & WH_DELETED);
		UnlockReleaseBuffer(buffer);
		if (!is_free)
			continue;
		RecordFreeIndexPage(index, block);
		nfree++;
	}
	vacuum->stats->pages_deleted = vacuum->stats->pages_free = nfree;
}

/*
 * ambulkdelete.
 */
IndexBulkDeleteResult *
wh_bulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
			  IndexBulkDeleteCallback callback, void *callback_state)
{
	WhVacuum	vacuum = {.info = info,.callback = callback};
	BlockNumber block = WH_FIRST_LEAF;

	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	stats->num_index_tuples = 0;
	stats->pages_newly_deleted = 0;
	stats->estimated_count = false;
	vacuum.stats = stats;
	vacuum.callback_state = callback_state;
	vacuum.dead = palloc(WH_MAX_TIDS * sizeof(bool));
	vacuum.kept = palloc(WH_MAX_TIDS * sizeof(ItemPointerData));
	vacuum.space = palloc(WH_BOUNDS_SPACE);
	vacuum.max_empty = 64;
	vacuum.empty = palloc(vacuum.max_empty * sizeof(BlockNumber));
	count_blocks(&vacuum);
	wh_items_begin(&vacuum.set);
	while (block != InvalidBlockNumber)
	{
		RF_VACUUM_DELAY();
		block = vacuum_leaf(&vacuum, block);
	}
	delete_rest(&vacuum);
	find_free_pages(&vacuum);
	wh_items_end(&vacuum.set);
	pfree(vacuum.seen);
	pfree(vacuum.empty);
	pfree(vacuum.dead);
	pfree(vacuum.kept);
	pfree(vacuum.space);
	return stats;
}

/*
 * amvacuumcleanup.
 */
IndexBulkDeleteResult *
wh_vacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	if (info->analyze_only)
		return stats;
	if (stats == NULL)
	{
		/* ambulkdelete was not called: the table's number of rows is taken. */
		stats = palloc0(sizeof(IndexBulkDeleteResult));
		stats->num_index_tuples = info->num_heap_tuples;
		stats->estimated_count = true;
	}
	else if (!info->estimated_count &&
			 stats->num_index_tuples > info->num_heap_tuples)
	{
		/* Entries of rows inserted meanwhile may have been counted. */
		stats->num_index_tuples = info->num_heap_tuples;
	}
	IndexFreeSpaceMapVacuum(info->index);
	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	return stats;
}
