/*-------------------------------------------------------------------------
 *
 * whinsert.c
 *	  Inserting entries; uniqueness.
 *
 * In a unique index the insert locks the leaf where the key's first entry
 * would be exclusively.  It keeps this lock until it has seen all of the key's
 * entries.  Then it goes on, leaf by leaf, to the place of the new entry.
 * Other inserts of the same key must lock that first leaf, too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/generic_xlog.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "compat.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "utils/snapmgr.h"
#include "wormhole/hint/whhint.h"
#include "wormhole/tree/whtree.h"
#include "wormhole/write/whwrite.h"

/*
 * If a key has MANY_DEAD dead rows in a leaf, they are removed.  The record of a removal may
 * have the whole page.
 */
#define MANY_DEAD	32

/*
 * A leaf is not merged for less than LEAST_GAIN free bytes.  Soon it would be full again, and its
 * record has nearly the whole page.
 */
#define LEAST_GAIN	(WH_PAGE_CONTENT / 32)

/* The state of the search for other rows with the key of a new one. */
typedef struct UniqueCheck
{
	Relation	index;
	Relation	heap;
	const Datum *values;
	const bool *isnull;
	WhKey		key;			/* without TID */
	ItemPointerData tid;		/* of the new row */
	IndexUniqueCheck mode;
	bool		is_unique;		/* out: under UNIQUE_CHECK_PARTIAL */
	bool		found_self;		/* out: under UNIQUE_CHECK_EXISTING */
	TransactionId wait_for;		/* out: the transaction to wait for */
	uint32		token;			/* out: its speculative insertion to wait for,
								 * or 0 */
	bool		found_other;	/* out: the key has other rows, maybe dead
								 * ones */
	ItemPointerData dead[MANY_DEAD];	/* rows of one leaf that are dead to
										 * all */
	int			ndead;
	BlockNumber many_dead;		/* out: the leaf, if they are MANY_DEAD or
								 * more */
} UniqueCheck;

/*
 * Raises the error for a row whose key is in the index already.
 */
static void
report_duplicate(Relation index, Relation heap, const Datum *values,
				 const bool *isnull)
{
	char	   *description;

	description = BuildIndexValueDescription(index, (Datum *) values,
											 (bool *) isnull);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("duplicate key value violates unique constraint \"%s\"",
					RelationGetRelationName(index)),
			 description ? errdetail("Key %s already exists.", description) : 0,
			 errtableconstraint(heap, RelationGetRelationName(index))));
}

/*
 * Looks at one row with the key.  Returns whether the search can end.  *all_dead is set if
 * the row is dead to all.  Both buffers are released before the error for a duplicate is
 * raised, since describing the key reads catalogs.
 */
static bool
check_row(UniqueCheck *check, ItemPointerData tid, Buffer first, Buffer other,
		  bool *all_dead)
{
	SnapshotData dirty;
	ItemPointerData self = check->tid;

	if (!wh_tid_is_possible(&tid))
		wh_report_damage(check->index, BufferGetBlockNumber(first));
	if (check->mode == UNIQUE_CHECK_EXISTING &&
		ItemPointerEquals(&tid, &check->tid))
	{
		check->found_self = true;
		return false;
	}
	check->found_other = true;
	InitDirtySnapshot(dirty);
	if (!table_index_fetch_tuple_check(check->heap, &tid, &dirty, all_dead))
		return false;
	if (check->mode == UNIQUE_CHECK_PARTIAL)
	{
		check->is_unique = false;
		return true;
	}
	check->wait_for = TransactionIdIsValid(dirty.xmin) ? dirty.xmin :
		dirty.xmax;
	check->token = dirty.speculativeToken;

	/*
	 * Otherwise the other row is committed.  But CREATE INDEX CONCURRENTLY
	 * may insert a row that is dead by now, and that is no duplicate.
	 */
	if (TransactionIdIsValid(check->wait_for) ||
		!table_index_fetch_tuple_check(check->heap, &self, SnapshotSelf, NULL))
		return true;

	/*
	 * A serialization failure takes precedence: the transaction of the other
	 * row may have seen that the key was not there.  It has read the key's
	 * first leaf then.
	 */
	CheckForSerializableConflictIn(check->index, NULL,
								   BufferGetBlockNumber(first));
	if (BufferIsValid(other))
		UnlockReleaseBuffer(other);
	UnlockReleaseBuffer(first);
	report_duplicate(check->index, check->heap, check->values,
					 check->isnull);
	pg_unreachable();
}

/*
 * Looks at all rows of an entry of a locked leaf.  Returns whether the search can end.
 */
static bool
check_entry(UniqueCheck *check, Buffer buffer, const WhEntry *entry, Buffer first,
			Buffer other)
{
	const ItemPointerData *tids;
	int			n = wh_entry_tids(BufferGetPage(buffer), entry, &tids);

	for (int i = 0; i < n; i++)
	{
		ItemPointerData tid;
		bool		all_dead = false;

		memcpy(&tid, &tids[i], sizeof(tid));
		if (check_row(check, tid, first, other, &all_dead))
			return true;
		if (!all_dead || check->ndead == MANY_DEAD)
			continue;
		check->dead[check->ndead++] = tid;
		if (check->ndead == MANY_DEAD)
			check->many_dead = BufferGetBlockNumber(buffer);
	}
	return false;
}

/*
 * Looks at all entries with the key, beginning in a leaf that is locked
 * exclusively, and stays so unless an error is raised.  Following leaves are
 * share-locked one after another, and released.
 */
static void
check_unique(UniqueCheck *check, Buffer first)
{
	Buffer		buffer = first;
	Buffer		other = InvalidBuffer;
	int			at = wh_page_search(BufferGetPage(first), &check->key);
	bool		done = false;

	while (!done)
	{
		Page		page = BufferGetPage(buffer);
		WhHeader	header = WhPageHeader(page);
		BlockNumber next = header->next;
		Buffer		after;

		if (check->ndead < MANY_DEAD)
			check->ndead = 0;
		for (; at < header->nslots && !done; at++)
		{
			WhEntry		entry;

			wh_entry(page, at, &entry);
			if (!wh_slot_has_key(page, &entry.slot, &check->key))
				break;
			if (!(entry.slot.info & (WH_DEAD | WH_GAP)))
				done = check_entry(check, buffer, &entry, first, other);
		}
		if (done || at < header->nslots || next == InvalidBlockNumber)
			break;

		/*
		 * The key's entries may go on in the next page, which cannot be
		 * deleted as long as this one is locked.
		 */
		after = wh_read_right(check->index, buffer, BUFFER_LOCK_SHARE);
		if (BufferIsValid(other))
			UnlockReleaseBuffer(other);
		other = after;
		buffer = other;
		at = 0;
	}
	if (BufferIsValid(other))
		UnlockReleaseBuffer(other);
}

/*
 * Waits for the transaction that must end before it is known whether a key is
 * unique.  Nothing is locked.
 */
static void
wait_for_other(UniqueCheck *check)
{
	if (check->token != 0)
		SpeculativeInsertionWait(check->wait_for, check->token);
	else
		XactLockTableWait(check->wait_for, check->heap, &check->tid,
						  XLTW_InsertIndex);
}

/*
 * Goes from the first leaf of a unique key to the leaf of key and TID.  Both
 * are locked exclusively.  A leaf is released only after the next one has been
 * locked, so that nobody can look for the key in between.
 */
static Buffer
step_to_tid(Relation index, Buffer buffer, const WhKey *key)
{
	for (;;)
	{
		Page		page = BufferGetPage(buffer);
		Buffer		next;

		if (wh_page_side(page, key, WH_AT) == 0)
			return buffer;
		next = wh_read_right(index, buffer, BUFFER_LOCK_EXCLUSIVE);
		if (wh_finish_split(index, next))
			continue;
		UnlockReleaseBuffer(buffer);
		buffer = next;
	}
}

/*
 * Is a TID the same as one in a list, or before it?
 */
static inline bool
is_at_or_before(const ItemPointerData *tid, const ItemPointerData *at)
{
	ItemPointerData other;

	memcpy(&other, at, sizeof(other));
	return ItemPointerCompare(unconstify(ItemPointerData *, tid), &other) <= 0;
}

/*
 * Returns the new TID's place in the list of TIDs before slot at, if that list
 * has the same key and the TID belongs into it; else 0.
 */
static int
place_in_posting(Page page, int at, const WhKey *key)
{
	int			before = wh_entry_before(page, at);
	const ItemPointerData *tids;
	WhEntry		entry;
	int			n;

	if (before < 0 || WhIsDense(page))
		return 0;
	wh_entry(page, before, &entry);
	if (!(entry.slot.info & WH_POSTING) ||
		!wh_slot_has_key(page, &entry.slot, key))
		return 0;
	n = wh_entry_tids(page, &entry, &tids);
	if (!is_at_or_before(&key->tid, &tids[n - 1]))
		return 0;
	for (int i = 1; i < n; i++)
	{
		if (is_at_or_before(&key->tid, &tids[i]))
			return i;
	}
	return 0;
}

/*
 * Cuts the list of TIDs of an item in two.  The second begins with TID number
 * place.
 */
static void
cut_posting(WhItemSet *set, int at, int place)
{
	WhItem		second = set->items[at];

	second.tids += place;
	second.ntids -= place;
	set->items[at].ntids = place;
	if (place == 1)
		set->items[at].flags &= ~WH_POSTING;
	if (second.ntids == 1)
		second.flags &= ~WH_POSTING;
	wh_items_insert(set, at + 1, &second);
}

/*
 * Do all items of a set fit on a page with these bounds, and leave so many bytes?
 */
static bool
fits(const WhItemSet *set, const WhBounds *bounds, int rest)
{
	return wh_items_space(set, 0, set->n, bounds) + rest <= (int) WH_PAGE_CONTENT;
}

/*
 * Rewrites a leaf with the items of a set, and releases it.  It is locked
 * exclusively.  Nearly all bytes change, so they are not compared.  Makes gaps for entries of
 * gap_size bytes, if that is not 0.
 */
static void
rewrite_leaf(Relation index, Buffer buffer, const WhItemSet *set,
			 const WhBounds *bounds, int gap_size)
{
	GenericXLogState *state = GenericXLogStart(index);
	Page		page = GenericXLogRegisterBuffer(state, buffer,
												 GENERIC_XLOG_FULL_IMAGE);

	wh_items_rewrite(set, page, bounds);
	if (gap_size > 0)
		(void) wh_leaf_spread(page, gap_size, true);
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}

/*
 * Inserts an entry whose TID belongs into the list of TIDs before slot at, at this place, by
 * giving it to the list, and inserting an entry for the list's last one behind it.  The leaf
 * has room for an entry of this key.  It is locked exclusively, and is released.
 */
static void
insert_into_posting(Relation index, Buffer buffer, int at, int place,
					const WhItem *item)
{
	GenericXLogState *state = GenericXLogStart(index);
	Page		page = wh_register(state, buffer);
	const ItemPointerData *tids;
	ItemPointerData *list;
	ItemPointerData tid;
	WhItem		last = *item;
	WhEntry		entry;
	int			n;

	wh_entry(page, wh_entry_before(page, at), &entry);
	n = wh_entry_tids(page, &entry, &tids);
	list = unconstify(ItemPointerData *, tids);
	memcpy(&tid, &list[n - 1], sizeof(tid));
	memmove(&list[place + 1], &list[place], (n - 1 - place) * sizeof(tid));
	memcpy(&list[place], item->tids, sizeof(tid));
	last.tids = &tid;
	if (wh_has_manager())
		wh_page_insert(page, at, &last);
	else
	{
		int			first;
		int			end;

		wh_leaf_insert(page, at, &last, &first, &end);
	}
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}

/*
 * Inserts an entry by rewriting the leaf, with equal keys merged if need be,
 * or by a split.  place, if not zero, is its place in the TIDs of the entry
 * before.  The leaf is locked exclusively, and is released.
 *
 * A dense leaf that the entry suits came here because it counts as full, so it
 * does not stay dense as a whole.  If it has one key, lists would take more room, so it is
 * split.  False if the leaf was split without the entry
 * (see wh_split()): the insert must begin anew.
 */
static bool
insert_and_rewrite(Relation index, Buffer buffer, int at, int place,
				   const WhItem *item)
{
	uint8	   *space = palloc(WH_BOUNDS_SPACE);
	Page		page = BufferGetPage(buffer);
	bool		suits = WhIsDense(page) && wh_suits_dense(page, item);
	bool		full = suits && !wh_has_manager();
	bool		deduplicate = wh_index_options(index)->deduplicate &&
	!(suits && WhIsOneKey(page));
	bool		inserted = true;
	int			gap_size;
	WhBounds	bounds;
	WhItemSet	set;

	wh_page_bounds(page, &bounds, space);
	wh_items_begin(&set);
	wh_items_load(&set, page);
	at = wh_entries_before(page, at);
	if (place > 0)
		cut_posting(&set, at - 1, place);
	wh_items_insert(&set, at, item);

	/* Behind the last entry ascending keys need room, and no gaps. */
	gap_size = at < set.n - 1 && !wh_has_manager() ? wh_item_size(item) : 0;
	if (place > 0 && deduplicate)
		wh_items_merge(&set);
	if ((!full && fits(&set, &bounds, 0)) ||
		(deduplicate && wh_items_merge(&set) && fits(&set, &bounds, LEAST_GAIN) &&
		 !(full && wh_items_are_dense(&set, 0, set.n, &bounds))))
		rewrite_leaf(index, buffer, &set, &bounds, gap_size);
	else
		inserted = wh_split(index, buffer, &set, InvalidBuffer);
	wh_items_end(&set);
	pfree(space);
	return inserted;
}

/*
 * Makes room for an entry in its leaf by removing rows that are dead to all.  Returns whether
 * any were removed.  version: the leaf may have older versions of the entry's row.  The leaf
 * is locked exclusively, and stays locked.
 */
static bool
remove_old(Relation index, Relation heap, Buffer buffer, const WhKey *key,
		   const WhItem *item, bool version)
{
	Page		page = BufferGetPage(buffer);
	bool		removed = wh_remove_dead(index, heap, buffer);

	if (!version || wh_leaf_has_room(page, wh_page_place(page, key), item))
		return removed;
	return wh_remove_versions(index, heap, buffer) || removed;
}

/*
 * Inserts an entry into its leaf, which is locked exclusively and is released.
 * False if the leaf was split only, as by insert_and_rewrite().  version: see
 * remove_old().
 */
static bool
insert_entry(Relation index, Relation heap, Buffer buffer, const WhKey *key,
			 StringInfo payload, bool version)
{
	Page		page = BufferGetPage(buffer);
	int			prefix = WhPageHeader(page)->prefix_len;
	int			at = wh_page_place(page, key);
	int			place = place_in_posting(page, at, key);
	WhItem		item = {.child = InvalidBlockNumber,.ntids = 1};
	bool		room;

	item.rest = key->data + prefix;
	item.len = key->len - prefix;
	item.tids = &key->tid;
	if (payload->len > 0)
	{
		item.flags = WH_PAYLOAD;
		item.payload = (const uint8 *) payload->data;
		item.payload_len = payload->len;
	}
	room = wh_leaf_has_room(page, at, &item);
	if (!room && remove_old(index, heap, buffer, key, &item, version))
	{
		at = wh_page_place(page, key);
		place = place_in_posting(page, at, key);
		room = wh_leaf_has_room(page, at, &item);
	}

	/*
	 * The rows of a list are either all dead or none, and a list has no
	 * payload.  (-0 has one, and 0, which has the same key, does not.)
	 */
	if (!room ||
		(place > 0 && (item.flags & WH_PAYLOAD || wh_is_dead(page, wh_entry_before(page, at)))))
		return insert_and_rewrite(index, buffer, at, place, &item);
	if (place > 0)
	{
		insert_into_posting(index, buffer, at, place, &item);
		return true;
	}
	wh_note_place(index, key, buffer, at);
	wh_log_insert(index, InvalidBuffer, buffer, at, &item);
	UnlockReleaseBuffer(buffer);
	return true;
}

/*
 * Must the key of this row be unique?
 */
static bool
must_be_unique(Relation index, const bool *isnull, IndexUniqueCheck mode,
			   IndexInfo *index_info)
{
	if (mode == UNIQUE_CHECK_NO)
		return false;
	if (index_info->ii_NullsNotDistinct)
		return true;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (isnull[i])
			return false;
	}
	return true;
}

/*
 * Finds the first leaf of a unique key and checks that the key is not there.
 * Waits for other transactions if necessary, without locks.  Returns the leaf
 * pinned and locked exclusively.
 */
static Buffer
lock_unique_leaf(UniqueCheck *check)
{
	for (;;)
	{
		Buffer		buffer = wh_find_place(check->index, &check->key);

		check->wait_for = InvalidTransactionId;
		check->is_unique = true;
		check->found_self = false;
		check->ndead = 0;
		check->many_dead = InvalidBlockNumber;
		check_unique(check, buffer);
		if (!TransactionIdIsValid(check->wait_for))
			return buffer;
		UnlockReleaseBuffer(buffer);
		wait_for_other(check);
	}
}

/*
 * Removes the key's dead rows if there are many in a leaf, which is locked exclusively, and
 * stays so.  A key that is deleted and inserted again and again would have ever more of them
 * to look at.
 */
static void
remove_many(UniqueCheck *check, Buffer buffer)
{
	if (BufferGetBlockNumber(buffer) != check->many_dead)
		return;
	(void) wh_remove_rows(check->index, check->heap, buffer, &check->key,
						  check->dead, check->ndead);
	check->many_dead = InvalidBlockNumber;
}

/*
 * Checks that a key is not there, and finds the leaf for its new entry.  Returns it pinned and
 * locked exclusively.
 */
static Buffer
find_unique_place(UniqueCheck *check, const WhKey *place)
{
	Buffer		buffer = lock_unique_leaf(check);

	remove_many(check, buffer);
	buffer = step_to_tid(check->index, buffer, place);
	remove_many(check, buffer);
	return buffer;
}

/*
 * Checks that a row that has its entry already is the only one with its key.
 */
static void
recheck_unique(UniqueCheck *check)
{
	UnlockReleaseBuffer(lock_unique_leaf(check));
	if (!check->found_self)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("failed to re-find tuple within index \"%s\"",
						RelationGetRelationName(check->index)),
				 errhint("This may be because of a non-immutable index expression."),
				 errtableconstraint(check->heap,
									RelationGetRelationName(check->index))));
}

/*
 * aminsert.
 */
bool
wh_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
		  Relation heap, IndexUniqueCheck check_unique, bool index_unchanged,
		  IndexInfo *index_info)
{
	UniqueCheck check = {.index = index,.heap = heap,.is_unique = true};
	StringInfoData key;
	StringInfoData payload;
	Buffer		buffer;
	bool		unique;

	wh_check_collators(index);
	wh_forbid_moved_table(index, heap, true);
	initStringInfo(&key);
	initStringInfo(&payload);
	wh_encode(index, values, isnull, &key, &payload);
	wh_check_size(index, heap, key.len, payload.len);
	check.values = values;
	check.isnull = isnull;
	check.mode = check_unique;
	check.key.data = (const uint8 *) key.data;
	check.key.len = key.len;
	check.tid = *tid;
	unique = must_be_unique(index, isnull, check_unique, index_info);

	if (check_unique == UNIQUE_CHECK_EXISTING)
	{
		if (unique)
			recheck_unique(&check);
	}
	else
	{
		WhKey		place = check.key;

		place.has_tid = true;
		place.tid = *tid;
		do
		{
			if (unique)
				buffer = find_unique_place(&check, &place);
			else
				buffer = wh_find_place(index, &place);

			/*
			 * Serializable transactions that have read this leaf did not see
			 * the entry.
			 */
			CheckForSerializableConflictIn(index, NULL,
										   BufferGetBlockNumber(buffer));
		} while (!insert_entry(index, heap, buffer, &place, &payload,
							   index_unchanged || check.found_other));
	}
	pfree(key.data);
	pfree(payload.data);
	return check.is_unique;
}
