/*-------------------------------------------------------------------------
 *
 * whcheck.c
 *	  wormhole_check(): finds damage in an index.
 *
 * Each level is walked from left to right with two neighbours locked at a
 * time, so their links and bounds must agree.  The directory must have the
 * anchor of each page.  ShareUpdateExclusiveLock keeps VACUUM away, and with
 * it the deletion of pages; inserts and splits may go on.  On a standby
 * nothing keeps redo from deleting pages.  So there a fault in the directory
 * is checked a second time before it is reported.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_class_d.h"
#include "commands/defrem.h"
#include "compat.h"
#include "key/expression.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "wormhole/am/wormhole.h"
#include "wormhole/hint/whhint.h"
#include "wormhole/tree/whtree.h"

PG_FUNCTION_INFO_V1(wormhole_check);

/* The state of a check. */
typedef struct WhCheck
{
	Relation	heap;
	Relation	index;
	uint8	   *bounds_space;
	uint8	   *anchor_space;
	uint8	   *key_space;
	uint8	   *last_space;
	bool		in_recovery;	/* when the check began: pages change
								 * meanwhile */
	int64		nentries;
	BlockNumber nblocks;		/* when the check began */
	uint8	   *seen;			/* a bit for each block that is linked */
} WhCheck;

/*
 * Raises the error for a fault found at a block.
 */
static void
fault(WhCheck *check, Buffer buffer, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" is damaged at block %u",
					RelationGetRelationName(check->index),
					BufferGetBlockNumber(buffer)),
			 errdetail_internal("%s", what),
			 errhint("Please REINDEX it.")));
}

/*
 * Raises the error for what is not an index of this access method.
 */
static void
report_other(Oid oid)
{
	char	   *name = get_rel_name(oid);

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("index with OID %u does not exist", oid)));
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("\"%s\" is not a wormhole index", name),
			 errhint("Name an index made with CREATE INDEX ... USING wormhole on a table or a partition.")));
}

/*
 * Opens an index of this access method, and its table, both with a lock.
 * Raises an error if it is another relation, another session's temporary
 * index, or not valid.
 */
void
wh_open_index(Oid indexid, LOCKMODE lockmode, Relation *heap, Relation *index)
{
	Oid			heapid = IndexGetRelation(indexid, true);

	*heap = OidIsValid(heapid) ? table_open(heapid, lockmode) : NULL;
	*index = *heap != NULL ? try_relation_open(indexid, lockmode) : NULL;
	if (*index == NULL || (*index)->rd_rel->relkind != RELKIND_INDEX ||
		(*index)->rd_rel->relam != get_index_am_oid("wormhole", false))
		report_other(indexid);
	if (RELATION_IS_OTHER_TEMP(*index))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary indexes of other sessions")));
	if (!(*index)->rd_index->indisvalid)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is not valid",
						RelationGetRelationName(*index))));
}

/*
 * Raises an error if a slot's entry is not within the page.
 */
static void
check_slot_extent(WhCheck *check, Buffer buffer, const WhSlot *slot)
{
	Page		page = BufferGetPage(buffer);
	int			end = slot->off + WhTailLen(slot);
	uint16		n = 1;

	if (slot->off < ((PageHeader) page)->pd_upper || end > BLCKSZ)
		fault(check, buffer, "An entry lies outside of the page.");
	if (WhIsDense(page))
		return;
	if (WhPageHeader(page)->level > 0)
	{
		end += sizeof(BlockNumber) +
			((slot->info & WH_ANCHOR_TID) ? sizeof(ItemPointerData) : 0);
		if (end > BLCKSZ || (slot->info & (WH_POSTING | WH_PAYLOAD)))
			fault(check, buffer, "An anchor is malformed.");
		return;
	}
	if (slot->info & WH_POSTING)
	{
		memcpy(&n, (char *) page + Min(end, BLCKSZ - sizeof(n)), sizeof(n));
		end += sizeof(n);
	}
	end += n * sizeof(ItemPointerData);
	if (end <= BLCKSZ && (slot->info & WH_PAYLOAD))
	{
		uint16		len;

		memcpy(&len, (char *) page + Min(end, BLCKSZ - sizeof(len)),
			   sizeof(len));
		end += sizeof(len) + len;
	}
	if (end > BLCKSZ || n == 0)
		fault(check, buffer, "An entry reaches past the end of the page.");
}

/*
 * Puts the key of an entry together in space, with its first or last TID.
 */
static void
slot_position(Page page, int at, bool last, uint8 *space, WhKey *key)
{
	WhHeader	header = WhPageHeader(page);
	WhEntry		entry;
	const WhSlot *slot = &entry.slot;
	const ItemPointerData *tids;
	int			n = 1;

	wh_entry(page, at, &entry);
	memset(key, 0, sizeof(*key));
	memcpy(space, (char *) page + WH_BOUNDS_OFF, header->prefix_len);
	key->data = space;
	key->len = header->prefix_len +
		wh_slot_key(page, slot, space + header->prefix_len);
	if (header->level > 0 && !(slot->info & WH_ANCHOR_TID))
		return;
	if (header->level > 0)
		tids = wh_slot_anchor_tid(page, slot);
	else
		n = wh_entry_tids(page, &entry, &tids);
	key->has_tid = true;
	memcpy(&key->tid, &tids[last ? n - 1 : 0], sizeof(key->tid));
}

/*
 * Raises an error if the TIDs of an entry are not in order.  Counts them.
 */
static void
check_tids(WhCheck *check, Buffer buffer, const WhEntry *entry)
{
	const ItemPointerData *tids;
	int			n = wh_entry_tids(BufferGetPage(buffer), entry, &tids);

	for (int i = 0; i < n; i++)
	{
		ItemPointerData a;
		ItemPointerData b;

		memcpy(&b, &tids[i], sizeof(b));
		if (!wh_tid_is_possible(&b))
			fault(check, buffer, "A row pointer is impossible.");
		memcpy(&a, &tids[Max(i - 1, 0)], sizeof(a));
		if (i > 0 && ItemPointerCompare(&a, &b) >= 0)
			fault(check, buffer, "The row pointers of an entry are not in order.");
	}
	check->nentries += n;
}

/*
 * Return true if a gap is a copy of the slot behind it, except for the flags WH_GAP and
 * WH_DEAD.
 */
static bool
is_gap_of(Page page, int at, const WhEntry *gap)
{
	WhEntry		entry;

	if (at + 1 == WhPageHeader(page)->nslots)
		return false;
	wh_entry(page, at + 1, &entry);
	if (WhIsDense(page))
		return gap->slot.head == entry.slot.head &&
			ItemPointerEquals((ItemPointer) &gap->tid, &entry.tid) &&
			memcmp(WhRecord(page, at), WhRecord(page, at + 1),
				   WhRecordTail(page)) == 0;
	return gap->slot.head == entry.slot.head &&
		gap->slot.off == entry.slot.off &&
		((gap->slot.info ^ entry.slot.info) & ~(WH_GAP | WH_DEAD)) == 0;
}

/*
 * Raises an error unless each entry is within the bounds, after the one
 * before, and found by the search.
 */
static void
check_entries(WhCheck *check, Buffer buffer, const WhBounds *bounds)
{
	Page		page = BufferGetPage(buffer);
	WhHeader	header = WhPageHeader(page);
	WhKey		last = bounds->low;

	for (int i = 0; i < header->nslots; i++)
	{
		WhEntry		entry;
		WhSlot	   *slot = &entry.slot;
		WhKey		key;
		int			cmp;

		wh_entry(page, i, &entry);
		check_slot_extent(check, buffer, slot);
		if (header->level > 0 && i == 0)
		{
			if (WhRestLen(slot) != 0 || (slot->info & WH_ANCHOR_TID))
				fault(check, buffer, "The first anchor is not the page's own.");
			continue;
		}
		if (header->level == 0 && (slot->info & WH_GAP))
		{
			if (!is_gap_of(page, i, &entry))
				fault(check, buffer, "A gap is not like the slot behind it.");
			continue;
		}
		slot_position(page, i, false, check->key_space, &key);
		cmp = wh_compare_keys(&last, &key);
		if (cmp > 0 || (cmp == 0 && (i > 0 || header->level > 0)))
			fault(check, buffer, "Entries are not in order.");
		if (wh_page_side(page, &key, WH_AT) != 0)
			fault(check, buffer, "An entry is not within the page's bounds.");
		if (header->level == 0)
		{
			if (wh_page_search(page, &key) != i)
				fault(check, buffer, "An entry is not found by its key.");
			check_tids(check, buffer, &entry);
		}
		slot_position(page, i, true, check->last_space, &last);
	}
	if (!bounds->rightmost && wh_compare_keys(&last, &bounds->high) > 0)
		fault(check, buffer, "An entry is not within the page's bounds.");
}

/*
 * Raises an error if the directory does not lead to the page.  The page and
 * the one to its left, if there is one, are locked.  If a split of the left
 * one is incomplete, there may be no anchor, and nothing is checked.
 */
static void
check_anchor(WhCheck *check, Buffer left, Buffer buffer,
			 const WhBounds *bounds)
{
	int			level = WhPageHeader(BufferGetPage(buffer))->level;
	Buffer		parent;
	Page		page;
	WhKey		anchor;
	int			at;
	bool		found;

	if (BufferIsValid(left) &&
		(WhPageHeader(BufferGetPage(left))->flags & WH_INCOMPLETE_SPLIT))
		return;
	parent = wh_descend(check->index, &bounds->low, WH_AT, level + 1,
						BUFFER_LOCK_SHARE);
	page = BufferGetPage(parent);
	at = wh_page_child_slot(page, &bounds->low, WH_AT);
	slot_position(page, at, false, check->key_space, &anchor);
	if (at == 0)
	{
		WhBounds	parent_bounds;

		wh_page_bounds(page, &parent_bounds, check->anchor_space);
		anchor = parent_bounds.low;
	}
	found = wh_slot_child(page, &WhSlots(page)[at]) == BufferGetBlockNumber(buffer) &&
		wh_compare_keys(&anchor, &bounds->low) == 0;
	UnlockReleaseBuffer(parent);
	if (!found)
		fault(check, buffer, "The directory does not lead to the page.");
}

/*
 * Checks a page, whose header is known to be sound, and that it begins at expected,
 * the high bound of its left neighbour.  Both pages are locked.
 */
static void
check_page(WhCheck *check, Buffer left, Buffer buffer, int level,
		   bool has_parent, const WhKey *expected)
{
	WhHeader	header = WhPageHeader(BufferGetPage(buffer));
	WhBounds	bounds;

	if (!wh_is_on_level(BufferGetPage(buffer), level) ||
		header->identity != wh_cache(check->index)->identity)
		fault(check, buffer, "The page is linked, but not one of its level.");
	if (header->prev != (BufferIsValid(left) ? BufferGetBlockNumber(left) :
						 InvalidBlockNumber))
		fault(check, buffer, "The link to the left is wrong.");
	wh_page_bounds(BufferGetPage(buffer), &bounds, check->bounds_space);
	if (wh_compare_keys(&bounds.low, expected) != 0)
		fault(check, buffer, "The page does not begin where the one to its left ends.");
	check_entries(check, buffer, &bounds);
	if (has_parent)
		check_anchor(check, left, buffer, &bounds);
}

/*
 * Does the directory still have this anchor, with a child?  Uses the spaces of bounds and of
 * last keys.
 */
static bool
has_anchor(WhCheck *check, const WhKey *anchor, int level, BlockNumber child)
{
	Buffer		buffer = wh_descend(check->index, anchor, WH_AT, level,
									BUFFER_LOCK_SHARE);
	Page		page = BufferGetPage(buffer);
	int			at = wh_page_child_slot(page, anchor, WH_AT);
	bool		found = wh_slot_child(page, &WhSlots(page)[at]) == child;

	if (found)
	{
		WhBounds	bounds;
		WhKey		key;

		wh_page_bounds(page, &bounds, check->bounds_space);
		key = bounds.low;
		if (at > 0)
			slot_position(page, at, false, check->last_space, &key);
		found = wh_compare_keys(&key, anchor) == 0;
	}
	UnlockReleaseBuffer(buffer);
	return found;
}

/*
 * What is wrong with a page, which is locked, to which an anchor leads; NULL if nothing is.
 */
static const char *
wrong_child(WhCheck *check, Buffer child, const WhKey *anchor, int level)
{
	WhBounds	bounds;

	if (!wh_is_on_level(BufferGetPage(child), level))
		return "The directory leads to it wrongly.";
	wh_page_bounds(BufferGetPage(child), &bounds, check->bounds_space);
	return wh_compare_keys(&bounds.low, anchor) == 0 ? NULL :
		"It does not begin where the directory says.";
}

/*
 * Raises an error if a page does not begin with the anchor that leads to it.
 * Nothing is locked.  In recovery the page may have been deleted meanwhile, and even used
 * again for the same anchor: it is wrong if the anchor is there while it stays as it is.
 */
static void
check_child(WhCheck *check, const WhKey *anchor, int level, BlockNumber block)
{
	XLogRecPtr	seen = InvalidXLogRecPtr;
	Buffer		child;
	const char *what;

	for (;;)
	{
		XLogRecPtr	lsn;

		CHECK_FOR_INTERRUPTS();
		child = wh_read(check->index, block, BUFFER_LOCK_SHARE);
		lsn = PageGetLSN(BufferGetPage(child));
		what = wrong_child(check, child, anchor, level);
		if (what == NULL || !check->in_recovery || lsn == seen)
			break;
		UnlockReleaseBuffer(child);
		if (!has_anchor(check, anchor, level + 1, block))
			return;
		seen = lsn;
	}
	if (what != NULL)
		fault(check, child, what);
	UnlockReleaseBuffer(child);
}

/*
 * Checks that the anchors of a directory page lead to pages that begin with
 * them.  Returns the next page of the level.  No page may be locked: the order
 * of locks is from the leaves up.
 */
static BlockNumber
check_children(WhCheck *check, BlockNumber block, int level)
{
	Buffer		buffer = wh_read(check->index, block, BUFFER_LOCK_SHARE);
	PGAlignedBlock copy;
	WhHeader	header = WhPageHeader(copy.data);
	WhBounds	bounds;

	memcpy(copy.data, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);

	/* On a standby pages may leave the level meanwhile. */
	if (!wh_is_on_level(copy.data, level))
		return InvalidBlockNumber;
	wh_page_bounds(copy.data, &bounds, check->anchor_space);
	for (int i = 0; i < header->nslots; i++)
	{
		WhSlot	   *slot = &WhSlots(copy.data)[i];
		WhKey		anchor = bounds.low;

		CHECK_FOR_INTERRUPTS();
		if (i > 0)
			slot_position(copy.data, i, false, check->key_space, &anchor);
		check_child(check, &anchor, level - 1,
					wh_slot_child(copy.data, slot));
	}
	return header->next;
}

/*
 * Serves interrupts, which are held off while a page is locked: unlocks this one for it.
 * It may be split meanwhile.  False if it may have become another page, as in recovery.
 */
static bool
serve_interrupts(WhCheck *check, Buffer buffer)
{
	XLogRecPtr	lsn = PageGetLSN(BufferGetPage(buffer));

	if (!INTERRUPTS_PENDING_CONDITION())
		return true;
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	CHECK_FOR_INTERRUPTS();
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	return !check->in_recovery || PageGetLSN(BufferGetPage(buffer)) == lsn;
}

/*
 * Checks a level that begins with the given block; returns the first block of
 * the level below.
 */
static BlockNumber
check_level(WhCheck *check, BlockNumber block, int level, bool has_parent)
{
	const WhKey begin = {.data = (const uint8 *) ""};
	uint8	   *expected_space = palloc(2 * BLCKSZ);
	WhKey		expected = begin;
	Buffer		left = InvalidBuffer;
	BlockNumber first = block;
	BlockNumber below = InvalidBlockNumber;

	/* The metapage, or an entry of the level above, may be damaged. */
	if (block == InvalidBlockNumber)
		wh_report_damage(check->index, block);
	while (block != InvalidBlockNumber)
	{
		Buffer		buffer = wh_read(check->index, block, BUFFER_LOCK_SHARE);
		Page		page = BufferGetPage(buffer);
		WhBounds	bounds;

		if (block < check->nblocks)
			check->seen[block / 8] |= 1 << block % 8;
		check_page(check, left, buffer, level, has_parent, &expected);
		if (level > 0 && !BufferIsValid(left))
			below = wh_slot_child(page, WhSlots(page));
		if (BufferIsValid(left))
			UnlockReleaseBuffer(left);
		left = buffer;
		if (!serve_interrupts(check, left))
		{
			UnlockReleaseBuffer(left);
			left = InvalidBuffer;
			expected = begin;
			block = first;
			check->nentries = 0;
			continue;
		}
		wh_page_bounds(page, &bounds, check->bounds_space);
		if (!bounds.rightmost)
		{
			expected = bounds.high;
			memcpy(expected_space, bounds.high.data, bounds.high.len);
			expected.data = expected_space;
		}
		block = WhPageHeader(page)->next;
	}
	UnlockReleaseBuffer(left);
	for (block = first; level > 0 && block != InvalidBlockNumber;)
		block = check_children(check, block, level);
	pfree(expected_space);
	return below;
}

/*
 * Raises an error for a block that was not met on its level, unless it is free
 * or became part of the index meanwhile.  Not called on standbys, where pages
 * may be deleted at any time.
 */
static void
check_unlinked(WhCheck *check, BlockNumber block)
{
	Buffer		buffer = ReadBuffer(check->index, block);
	Page		page = BufferGetPage(buffer);
	WhBounds	bounds;
	int			level;
	bool		found;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (PageIsNew(page) ||
		(WhPageHeader(wh_check_page(check->index, buffer))->flags & WH_DELETED))
	{
		UnlockReleaseBuffer(buffer);
		return;
	}
	level = WhPageHeader(page)->level;
	wh_page_bounds(page, &bounds, check->bounds_space);
	UnlockReleaseBuffer(buffer);
	buffer = wh_descend(check->index, &bounds.low, WH_AT, level,
						BUFFER_LOCK_SHARE);
	found = BufferGetBlockNumber(buffer) == block;
	UnlockReleaseBuffer(buffer);
	if (!found)
		fault(check, wh_read(check->index, block, BUFFER_LOCK_SHARE),
			  "The page is in use, but nothing leads to it.");
}

/*
 * Checks all blocks that are not linked.
 */
static void
check_rest(WhCheck *check)
{
	for (BlockNumber block = WH_FIRST_LEAF; block < check->nblocks; block++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!(check->seen[block / 8] & (1 << block % 8)))
			check_unlinked(check, block);
	}
}

/*
 * Checks that a row is in the index.
 */
static void
check_row(Relation index, ItemPointer tid, Datum *values, bool *isnull,
		  bool alive, void *arg)
{
	WhCheck    *check = arg;
	StringInfoData key;
	StringInfoData payload;
	WhKey		position;
	Buffer		buffer;
	Page		page;
	bool		found = false;
	bool		dead = false;
	bool		by_function;

	initStringInfo(&key);
	initStringInfo(&payload);
	wh_encode(index, values, isnull, &key, &payload);
	position.data = (const uint8 *) key.data;
	position.len = key.len;
	position.has_tid = true;
	position.tid = *tid;
	buffer = wh_find_leaf(index, &position, WH_AT, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);

	/*
	 * It may be the entry at the position, or in a list that begins before
	 * it.
	 */
	for (int at = wh_page_search(page, &position),
		 i = Max(wh_entry_before(page, at), 0);
		 i <= at && i < WhPageHeader(page)->nslots && !found; i++)
	{
		const ItemPointerData *tids;
		WhEntry		entry;
		int			n;

		wh_entry(page, i, &entry);
		if (!wh_slot_has_key(page, &entry.slot, &position))
			continue;
		n = wh_entry_tids(page, &entry, &tids);
		for (int t = 0; t < n && !found; t++)
			found = memcmp(&tids[t], tid, sizeof(*tid)) == 0;
		dead = found && (entry.slot.info & WH_DEAD);
	}
	UnlockReleaseBuffer(buffer);
	pfree(key.data);
	pfree(payload.data);
	by_function = !found && rf_calls_users_functions(index);
	if (!found)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("row (%u,%u) of table \"%s\" is not in index \"%s\"",
						ItemPointerGetBlockNumber(tid),
						ItemPointerGetOffsetNumber(tid),
						RelationGetRelationName(check->heap),
						RelationGetRelationName(index)),
				 by_function ?
				 errdetail("A function in the index's definition may not be immutable.") : 0,
				 errhint("Please REINDEX it.")));

	/*
	 * On a standby snapshots may still see rows that are dead to all on the
	 * primary.
	 */
	if (dead && !check->in_recovery)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\" marks row (%u,%u) of table \"%s\" as dead, but it is visible",
						RelationGetRelationName(index),
						ItemPointerGetBlockNumber(tid),
						ItemPointerGetOffsetNumber(tid),
						RelationGetRelationName(check->heap)),
				 errhint("Please REINDEX it.")));
}

/*
 * Checks that all rows a new snapshot sees are in the index.
 */
static void
check_heap(WhCheck *check)
{
	IndexInfo  *info = BuildIndexInfo(check->index);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	TableScanDesc scan = table_beginscan_strat(check->heap, snapshot, 0, NULL,
											   true, true);

	/* Only rows that the snapshot sees. */
	info->ii_Concurrent = true;
	info->ii_Unique = false;
	info->ii_ExclusionOps = NULL;
	table_index_build_scan(check->heap, check->index, info, true, false,
						   check_row, check, scan);
	UnregisterSnapshot(snapshot);
}

/*
 * wormhole_check(index regclass, heapallindexed boolean) returns bigint: the
 * number of entries.  Expressions of the index run as the table's owner.
 */
Datum
wormhole_check(PG_FUNCTION_ARGS)
{
	WhCheck		check = {.in_recovery = RecoveryInProgress()};
	LOCKMODE	lockmode = check.in_recovery ? AccessShareLock :
	ShareUpdateExclusiveLock;
	BlockNumber block;
	Oid			user;
	int			context;
	int			nest;
	int			top;

	wh_open_index(PG_GETARG_OID(0), lockmode, &check.heap, &check.index);
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(check.heap->rd_rel->relowner,
						   context | SECURITY_RESTRICTED_OPERATION);
	nest = NewGUCNestLevel();
	(void) RF_RESTRICT_SEARCH_PATH(user, check.heap->rd_rel->relowner);

	check.bounds_space = palloc(WH_BOUNDS_SPACE);
	check.anchor_space = palloc(WH_BOUNDS_SPACE);
	check.key_space = palloc(2 * BLCKSZ);
	check.last_space = palloc(2 * BLCKSZ);
	check.nblocks = RelationGetNumberOfBlocks(check.index);
	check.seen = MemoryContextAllocExtended(CurrentMemoryContext,
											check.nblocks / 8 + 1,
											MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	wh_read_meta(check.index);
	wh_check_collators(check.index);
	block = wh_cache(check.index)->root;
	top = wh_cache(check.index)->level;
	for (int level = top; level >= 0; level--)
		block = check_level(&check, block, level, level < top);
	if (!check.in_recovery)
		check_rest(&check);
	if (PG_GETARG_BOOL(1))
		check_heap(&check);

	AtEOXact_GUC(false, nest);
	SetUserIdAndSecContext(user, context);
	index_close(check.index, lockmode);
	table_close(check.heap, lockmode);
	PG_RETURN_INT64(check.nentries);
}
