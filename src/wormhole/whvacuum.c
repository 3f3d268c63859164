/*-------------------------------------------------------------------------
 *
 * whvacuum.c
 *	  Removing dead entries and empty leaves.
 *
 * VACUUM goes through the leaves from left to right by their links.  A split
 * moves entries to the right only, so it meets them all.  It takes a cleanup
 * lock on every leaf, also where there is nothing to do: a scan that still
 * holds the TIDs it read from one must let go of it before these are reused.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/generic_xlog.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "storage/indexfsm.h"
#include "wormhole/wormhole.h"

/* A VACUUM under way. */
typedef struct WhVacuum
{
	IndexVacuumInfo *info;
	IndexBulkDeleteResult *stats;
	IndexBulkDeleteCallback callback;
	void	   *callback_state;
	WhItemSet	set;
	ItemPointerData *kept;		/* TIDs of lists that lost some */
	int			nkept;
	uint8	   *space;			/* for bounds */
} WhVacuum;

/*
 * Takes dead TIDs out of an item.  Returns how many are left.
 */
static int
remove_dead_tids(WhVacuum *vacuum, WhItem *item)
{
	ItemPointerData *kept = vacuum->kept + vacuum->nkept;
	int			n = 0;

	for (int i = 0; i < item->ntids; i++)
	{
		ItemPointerData tid;

		memcpy(&tid, &item->tids[i], sizeof(tid));
		if (vacuum->callback(&tid, vacuum->callback_state))
			vacuum->stats->tuples_removed++;
		else
			kept[n++] = tid;
	}
	if (n == item->ntids)
		return n;
	vacuum->nkept += n;
	item->tids = kept;
	item->ntids = n;
	item->flags &= ~WH_DEAD;
	if (n == 1)
		item->flags &= ~WH_POSTING;
	return n;
}

/*
 * Takes dead entries out of a leaf's items.  Returns whether there were any.
 */
static bool
remove_dead_items(WhVacuum *vacuum)
{
	WhItemSet  *set = &vacuum->set;
	bool		changed = false;
	int			n = 0;

	vacuum->nkept = 0;
	for (int i = 0; i < set->n; i++)
	{
		int			before = set->items[i].ntids;
		int			left = remove_dead_tids(vacuum, &set->items[i]);

		changed |= left < before;
		vacuum->stats->num_index_tuples += left;
		if (left > 0)
			set->items[n++] = set->items[i];
	}
	set->n = n;
	return changed;
}

/*
 * Cleans a leaf, on which there is a cleanup lock.
 */
static void
clean_leaf(WhVacuum *vacuum, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	GenericXLogState *state;
	WhBounds	bounds;

	wh_items_load(&vacuum->set, page);
	if (!remove_dead_items(vacuum))
		return;
	wh_page_bounds(page, &bounds, vacuum->space);
	state = GenericXLogStart(vacuum->info->index);
	wh_items_rewrite(&vacuum->set, wh_register(state, buffer), &bounds);
	GenericXLogFinish(state);
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
	stats->estimated_count = false;
	vacuum.stats = stats;
	vacuum.callback_state = callback_state;
	vacuum.kept = palloc(WH_MAX_TIDS * sizeof(ItemPointerData));
	vacuum.space = palloc(WH_BOUNDS_SPACE);
	wh_items_begin(&vacuum.set);
	while (block != InvalidBlockNumber)
	{
		Buffer		buffer;

		vacuum_delay_point();
		buffer = ReadBufferExtended(info->index, MAIN_FORKNUM, block,
									RBM_NORMAL, info->strategy);
		LockBufferForCleanup(buffer);
		block = WhPageHeader(wh_check_page(info->index, buffer))->next;
		clean_leaf(&vacuum, buffer);
		UnlockReleaseBuffer(buffer);
	}
	wh_items_end(&vacuum.set);
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
		/* Nothing was deleted: the table knows how many rows there are. */
		stats = palloc0(sizeof(IndexBulkDeleteResult));
		stats->num_index_tuples = info->num_heap_tuples;
		stats->estimated_count = true;
	}
	else if (!info->estimated_count &&
			 stats->num_index_tuples > info->num_heap_tuples)
	{
		/* Entries of rows that came meanwhile may have been counted. */
		stats->num_index_tuples = info->num_heap_tuples;
	}
	IndexFreeSpaceMapVacuum(info->index);
	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	return stats;
}
