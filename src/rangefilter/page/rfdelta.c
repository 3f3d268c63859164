/*-------------------------------------------------------------------------
 *
 * rfdelta.c
 *	  The delta's pages: keys written since the filters were made.
 *
 * A few pages, listed on the metapage.  Keys are appended.  The keys of full pages
 * go to a level at once, unless somebody else is merging (rflevels.c).  A probe reads all
 * keys of the pages.  Those listed first may be retired: a summarize is making a filter of
 * what they hold, and they are only read.
 *
 * A page of 64-bit keys is an array of them.  pd_lower moves sixteen of them at a time,
 * so that most records of a key are of the key alone.  Of the last sixteen, zeros behind
 * the last other key are free; all zeros before them are keys.  A page of byte keys has an
 * array of 16-bit offsets growing up from the page's start and the keys, each
 * behind its 16-bit length, growing down from its end.
 *
 * Everything here happens under the metapage's lock: share to probe, exclusive to
 * add.  If the last page has room for a key, it is appended under a share lock
 * on the metapage and an exclusive lock on that page.  The metapage does not change
 * then; the page's LSN shows that there is another key.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "core/core.h"
#include "filter/base/bits.h"
#include "miscadmin.h"
#include "rangefilter/page/page.h"

/* The numbers by which pd_lower moves at once. */
#define RF_NUMBER_STRIDE	16

/* The most numbers that a page holds. */
#define RF_PAGE_NUMBERS \
	((int) (RF_PAGE_CONTENT / sizeof(uint64) / RF_NUMBER_STRIDE * RF_NUMBER_STRIDE))

/*
 * Returns how many numbers a delta page holds.  Those of the last stride end with one that is
 * not zero.
 */
static int
numbers_of_page(Page page)
{
	const uint64 *numbers = (const uint64 *) RfPageGetContent(page);
	int			n = (((PageHeader) page)->pd_lower - RF_PAGE_HEADER) / sizeof(uint64);
	int			sure = Max(n - 1, 0) / RF_NUMBER_STRIDE * RF_NUMBER_STRIDE;

	while (n > sure && numbers[n - 1] == 0)
		n--;
	return n;
}

/*
 * Returns how many keys a delta page holds.
 */
static int
keys_of_page(Page page, RfKeyKind kind)
{
	if (kind == RF_KEY_U64)
		return numbers_of_page(page);
	return (((PageHeader) page)->pd_lower - RF_PAGE_HEADER) / sizeof(uint16);
}

/*
 * Returns for how many numbers there is room before pd_lower once this one is behind n others.
 * Behind a zero another stride begins: zeros at the end would not count.
 */
static int
numbers_with(int n, uint64 number)
{
	return (n / RF_NUMBER_STRIDE + (number == 0 ? 2 : 1)) * RF_NUMBER_STRIDE;
}

/*
 * Reads key i of a delta page.  A damaged offset or length yields false.
 */
bool
rf_delta_key(Page page, RfKeyKind kind, int i, RfKey *key)
{
	const char *contents = RfPageGetContent(page);
	uint16		offset;
	uint16		len;

	if (kind == RF_KEY_U64)
	{
		key->num = ((const uint64 *) contents)[i];
		return true;
	}
	offset = ((const uint16 *) contents)[i];
	if (offset < ((PageHeader) page)->pd_upper ||
		offset + sizeof(uint16) > ((PageHeader) page)->pd_special)
		return false;
	memcpy(&len, (const char *) page + offset, sizeof(uint16));
	if (offset + sizeof(uint16) + len > ((PageHeader) page)->pd_special)
		return false;
	key->data = (const uint8 *) page + offset + sizeof(uint16);
	key->len = len;
	return true;
}

/*
 * Return true if a key fits on a delta page.
 */
static bool
rf_delta_has_room(Page page, RfKeyKind kind, const RfKey *key)
{
	PageHeader	header = (PageHeader) page;

	if (kind == RF_KEY_U64)
		return numbers_with(numbers_of_page(page), key->num) <= RF_PAGE_NUMBERS;
	return header->pd_upper - header->pd_lower >= (int) (2 * sizeof(uint16) + key->len);
}

/* What an append changes: page header, array, and the bytes of a byte key. */
#define RF_APPEND_STRETCHES	3

/*
 * Appends a number to a delta page, see rf_delta_append().
 */
static int
rf_append_number(Page page, uint64 number, RfCoreStretch *stretches)
{
	PageHeader	header = (PageHeader) page;
	int			n = numbers_of_page(page);
	uint16		offset = RF_PAGE_HEADER + n * sizeof(uint64);
	uint16		lower = RF_PAGE_HEADER + numbers_with(n, number) * sizeof(uint64);
	int			nstretches = 0;

	if (lower > header->pd_lower)
	{
		stretches[nstretches].offset = offsetof(PageHeaderData, pd_lower);
		stretches[nstretches++].length = sizeof(header->pd_lower);

		/* As replay does, which leaves zeros between pd_lower and pd_upper. */
		memset((char *) page + header->pd_lower, 0, lower - header->pd_lower);
		header->pd_lower = lower;
	}
	memcpy((char *) page + offset, &number, sizeof(uint64));
	stretches[nstretches].offset = offset;
	stretches[nstretches++].length = sizeof(uint64);
	return nstretches;
}

/*
 * Appends a key to a delta page that has room for it: an image GenericXLog will log,
 * or the page itself.  Notes what that changes, and returns how many stretches it is.
 * What is between pd_lower and pd_upper is zero.
 */
static int
rf_delta_append(Page page, RfKeyKind kind, const RfKey *key,
				RfCoreStretch *stretches)
{
	PageHeader	header = (PageHeader) page;
	uint16		len = key->len;
	uint16		offset;

	if (kind == RF_KEY_U64)
		return rf_append_number(page, key->num, stretches);
	offset = header->pd_upper - (sizeof(uint16) + key->len);
	memcpy((char *) page + offset, &len, sizeof(uint16));
	memcpy((char *) page + offset + sizeof(uint16), key->data, key->len);
	memcpy((char *) page + header->pd_lower, &offset, sizeof(uint16));
	stretches[0].offset = offsetof(PageHeaderData, pd_lower);
	stretches[0].length = sizeof(header->pd_lower) + sizeof(header->pd_upper);
	stretches[1].offset = header->pd_lower;
	stretches[1].length = sizeof(uint16);
	stretches[2].offset = offset;
	stretches[2].length = sizeof(uint16) + len;
	header->pd_upper = offset;
	header->pd_lower += sizeof(uint16);
	return 3;
}

/*
 * The same for an image that GenericXLog will log.
 */
static void
rf_delta_append_image(Page page, RfKeyKind kind, const RfKey *key)
{
	RfCoreStretch stretches[RF_APPEND_STRETCHES];

	(void) rf_delta_append(page, kind, key, stretches);
}

/*
 * qsort_arg() comparator: offsets of byte keys in the page that arg is, by the keys.  The keys were checked
 * before (rf_delta_keys_ok()).
 */
static int
rf_compare_offsets(const void *a, const void *b, void *arg)
{
	Page		page = (Page) arg;
	RfKey		x = {0};
	RfKey		y = {0};
	uint16		len;

	memcpy(&len, page + *(const uint16 *) a, sizeof(uint16));
	x.len = len;
	x.data = (const uint8 *) page + *(const uint16 *) a + sizeof(uint16);
	memcpy(&len, page + *(const uint16 *) b, sizeof(uint16));
	y.len = len;
	y.data = (const uint8 *) page + *(const uint16 *) b + sizeof(uint16);
	return rf_key_compare(RF_KEY_BYTES, &x, &y);
}

/*
 * Return true if all keys of a delta page can be read, as sorting them requires.
 */
static bool
rf_delta_keys_ok(Page page, RfKeyKind kind)
{
	RfKey		key = {0};

	for (int i = 0; i < keys_of_page(page, kind); i++)
		if (!rf_delta_key(page, kind, i, &key))
			return false;
	return true;
}

/*
 * Sorts the copy of a delta page.  False where it is damaged.
 */
bool
rf_delta_sort_copy(Page copy, RfKeyKind kind)
{
	int			nkeys = keys_of_page(copy, kind);

	if (!rf_delta_keys_ok(copy, kind))
		return false;
	if (kind == RF_KEY_U64)
		qsort(RfPageGetContent(copy), nkeys, sizeof(uint64), bits_compare64);
	else
		qsort_arg(RfPageGetContent(copy), nkeys, sizeof(uint16),
				  rf_compare_offsets, copy);
	return true;
}

/*
 * Return true if a delta page ends where its pd_lower says.  The free space
 * behind that is zero, and hardly any key is.  So a page that has lost keys is
 * noticed, although only the page itself says how many there are.
 */
static bool
rf_delta_end_ok(Page page, RfKeyKind kind)
{
	PageHeader	header = (PageHeader) page;
	int			size = kind == RF_KEY_U64 ? sizeof(uint64) : sizeof(uint16);
	uint64		behind = 0;

	if (header->pd_upper - header->pd_lower >= size)
		memcpy(&behind, (const char *) page + header->pd_lower, size);
	return behind == 0;
}

/*
 * Return true if a delta page is sound enough to be searched.
 */
static bool
rf_delta_page_ok(Page page, RfKeyKind kind, const RfMetaData *meta,
				 const RfDeltaSlot *slot)
{
	PageHeader	header = (PageHeader) page;
	int			used = header->pd_lower - RF_PAGE_HEADER;

	if (!rf_page_is(page, RF_PAGE_DELTA, meta->identity, slot->owner))
		return false;

	/* A key appended behind a part of one would be lost. */
	if (kind == RF_KEY_U64)
	{
		if (header->pd_upper != BLCKSZ ||
			used % (RF_NUMBER_STRIDE * sizeof(uint64)) != 0)
			return false;
	}
	else if (used % sizeof(uint16) != 0)
		return false;
	return keys_of_page(page, kind) >= (int64) slot->nkeys &&
		rf_delta_end_ok(page, kind);
}

/*
 * Return true if a number is one of n.  Compares all of them, which takes no branch.
 */
static bool
rf_search_number(const uint64 *numbers, int n, uint64 number)
{
	bool		found = false;
	int			i = 0;

	for (; i + 4 <= n; i += 4)
		found |= (numbers[i] == number) | (numbers[i + 1] == number) |
			(numbers[i + 2] == number) | (numbers[i + 3] == number);
	for (; i < n; i++)
		found |= numbers[i] == number;
	return found;
}

/*
 * Return true if one of n numbers is in the range.  (Both ends are set, see RfRange.)
 */
static bool
rf_search_numbers(const uint64 *numbers, int n, const RfRange *range)
{
	uint64		lo = range->lo.num;
	uint64		hi = range->hi.num;
	uint64		found = 0;

	Assert(lo <= hi && !range->hi_excl);
	if (lo == hi)
		return rf_search_number(numbers, n, lo);
	for (int i = 0; i < n; i++)
		found |= numbers[i] - lo <= hi - lo;
	return found != 0;
}

/*
 * The version of a summary whose delta's last page is this one, locked by the caller.
 */
RfSummaryVersion
rf_version_with(const RfMetaData *meta, Page page)
{
	RfSummaryVersion version = {meta->identity, meta->changes};

	version.changes += PageGetLSN(page);
	return version;
}

/*
 * Return true if a delta page, locked by the caller, holds a key of the set.
 */
static RfAnswer
rf_search_page(Page page, RfKeyKind kind, const RfKeySet *set)
{
	int			nkeys = keys_of_page(page, kind);
	RfKey		key = {0};

	if (kind == RF_KEY_U64 && set->nranges == 1)
		return rf_search_numbers((const uint64 *) RfPageGetContent(page), nkeys,
								 &set->ranges[0]) ? RF_YES : RF_NO;
	for (int i = 0; i < nkeys; i++)
	{
		if (!rf_delta_key(page, kind, i, &key))
			return RF_UNKNOWN;
		if (rf_keyset_contains(set, &key))
			return RF_YES;
	}
	return RF_NO;
}

/*
 * Returns whether the delta, from the given slot on, holds a key of the set.  The caller
 * holds a lock on the metapage.  RF_UNKNOWN for damaged pages.  Begins with the last
 * page.  If version is not NULL and that page can be read, sets *version to the
 * summary's version at that moment.
 */
RfAnswer
rf_delta_probe(RfFile *file, const RfMetaData *meta, int first_slot,
			   const RfKeySet *set, RfSummaryVersion *version)
{
	for (int i = meta->ndelta - 1; i >= first_slot; i--)
	{
		const RfDeltaSlot *slot = rf_delta_slot(meta, i);
		RfAnswer	answer = RF_UNKNOWN;
		Buffer		buffer;
		Page		page;

		buffer = rf_lock_block(file, slot->block, BUFFER_LOCK_SHARE);
		if (!BufferIsValid(buffer))
			return RF_UNKNOWN;
		page = BufferGetPage(buffer);
		if (version != NULL && i == meta->ndelta - 1)
			*version = rf_version_with(meta, page);
		if (rf_delta_page_ok(page, set->kind, meta, slot))
			answer = rf_search_page(page, set->kind, set);
		UnlockReleaseBuffer(buffer);
		if (answer != RF_NO)
			return answer;
	}
	return RF_NO;
}

/*
 * The version of the summary whose metapage the caller has locked.  False if the
 * delta's last page is not there.  Takes and releases a share lock on that page.
 */
bool
rf_meta_version(RfFile *file, const RfMetaData *meta, RfSummaryVersion *version)
{
	Buffer		buffer;

	version->identity = meta->identity;
	version->changes = meta->changes;
	if (meta->ndelta == 0)
		return true;
	buffer = rf_lock_block(file, rf_delta_slot(meta, meta->ndelta - 1)->block,
						   BUFFER_LOCK_SHARE);
	if (!BufferIsValid(buffer))
		return false;
	*version = rf_version_with(meta, BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	return true;
}

/*
 * Copies a page of the delta, and counts its keys.  False if it is not what the
 * metapage, or a copy of it, says.  Takes and releases a share lock on the page.
 */
bool
rf_delta_copy_page(RfFile *file, const RfMetaData *meta,
				   const RfDeltaSlot *slot, RfKeyKind kind, Page copy,
				   int *nkeys)
{
	Buffer		buffer;

	buffer = rf_lock_block(file, slot->block, BUFFER_LOCK_SHARE);
	if (!BufferIsValid(buffer))
		return false;
	memcpy(copy, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	if (!rf_delta_page_ok(copy, kind, meta, slot))
		return false;
	*nkeys = keys_of_page(copy, kind);
	return true;
}

/*
 * Returns how many keys the page of a slot has.  If the page is damaged, as many as the
 * metapage says.  Takes and releases a share lock on the page.
 */
static uint64
rf_delta_count_page(RfFile *file, const RfMetaData *meta,
					const RfDeltaSlot *slot, RfKeyKind kind)
{
	uint64		nkeys = slot->nkeys;
	Buffer		buffer;

	buffer = rf_lock_block(file, slot->block, BUFFER_LOCK_SHARE);
	if (!BufferIsValid(buffer))
		return nkeys;
	if (rf_delta_page_ok(BufferGetPage(buffer), kind, meta, slot))
		nkeys = keys_of_page(BufferGetPage(buffer), kind);
	UnlockReleaseBuffer(buffer);
	return nkeys;
}

/*
 * Returns how many keys are in the delta's pages.  The metapage tells, except for the last page
 * and the last retired one.  The caller has locked the metapage, or has a copy of it.
 */
uint64
rf_delta_keys(RfFile *file, const RfMetaData *meta, RfKeyKind kind)
{
	uint64		nkeys = 0;

	for (int i = 0; i < meta->ndelta; i++)
	{
		if (i == meta->ndelta - 1 || i == meta->nretired - 1)
			nkeys += rf_delta_count_page(file, meta, rf_delta_slot(meta, i), kind);
		else
			nkeys += rf_delta_slot(meta, i)->nkeys;
	}
	return nkeys;
}

/*
 * Calls visit(arg, kind, key) for every key of the delta's pages, for reports.
 * Leaves out pages that are not what the metapage, or a copy of it, says.
 */
void
rf_delta_visit(Relation index, const RfMetaData *meta, RfKeyKind kind,
			   void (*visit) (void *arg, RfKeyKind kind, const RfKey *key),
			   void *arg)
{
	for (int i = 0; i < meta->ndelta; i++)
	{
		PGAlignedBlock copy;
		RfKey		key = {0};
		int			nkeys;

		if (!rf_delta_copy_page(rf_file(index), meta, rf_delta_slot(meta, i), kind,
								copy.data, &nkeys))
			continue;
		for (int j = 0; j < nkeys; j++)
			if (rf_delta_key(copy.data, kind, j, &key))
				visit(arg, kind, &key);
	}
}

/*
 * Return true if the delta uses the block.
 */
static bool
rf_delta_has_block(const RfMetaData *meta, BlockNumber block)
{
	for (int i = 0; i < meta->ndelta; i++)
		if (rf_delta_slot(meta, i)->block == block)
			return true;
	return false;
}

/*
 * Takes a block off the list of spare ones, or extends the file.  A damaged
 * list may name the metapage, or pages of the delta; those are passed over.
 */
static BlockNumber
rf_delta_new_block(Relation index, RfMetaData *meta)
{
	while (meta->nspare > 0)
	{
		BlockNumber block = meta->spare[--meta->nspare];

		if (rf_block_exists(rf_file(index), block) && !rf_delta_has_block(meta, block))
			return block;
	}
	return rf_extend(index, 1);
}

/*
 * Adds a page to the delta and registers it.  Returns its locked buffer.
 */
static Buffer
rf_delta_new_page(Relation index, GenericXLogState *state, RfMetaData *meta,
				  Page *page)
{
	BlockNumber block = rf_delta_new_block(index, meta);
	RfDeltaSlot *slot = &meta->delta[meta->ndelta++];
	Buffer		buffer;

	slot->block = block;
	slot->owner = meta->next_owner++;
	slot->nkeys = 0;
	buffer = ReadBuffer(index, slot->block);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	*page = GenericXLogRegisterBuffer(state, buffer, GENERIC_XLOG_FULL_IMAGE);
	rf_init_page(*page, RF_PAGE_DELTA, meta->identity, slot->owner);
	return buffer;
}

/*
 * Takes n pages from the first one on out of the delta, on the metapage's image;
 * their blocks are kept for its next pages.
 */
void
rf_delta_drop_pages(RfMetaData *meta, int first, int n)
{
	for (int i = first; i < first + n; i++)
		if (meta->nspare < RF_DELTA_SLOTS)
			meta->spare[meta->nspare++] = rf_delta_slot(meta, i)->block;
	memmove(&meta->delta[first], &meta->delta[first + n],
			(meta->ndelta - first - n) * sizeof(RfDeltaSlot));
	meta->ndelta -= n;
}

/*
 * Return true if the delta has a page in use or a spare block, so that the next key does not make
 * the file grow.
 */
bool
rf_delta_has_spare(const RfMetaData *meta)
{
	return meta->ndelta > meta->nretired || meta->nspare > 0;
}

/*
 * Gives the delta, which has neither a page in use nor a spare block, a spare block.  The
 * caller has locked the metapage exclusively.
 */
void
rf_delta_reserve(Relation index, Buffer meta_buffer)
{
	GenericXLogState *state = GenericXLogStart(index);
	RfMetaData *meta = rf_page_meta(GenericXLogRegisterBuffer(state, meta_buffer, 0));
	BlockNumber block = rf_extend(index, 1);
	Buffer		buffer = ReadBuffer(index, block);

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);

	/* Nobody reads a spare block.  Logged, it is there after a crash, too. */
	rf_init_page(GenericXLogRegisterBuffer(state, buffer,
										   GENERIC_XLOG_FULL_IMAGE),
				 RF_PAGE_DELTA, meta->identity, 0);
	meta->spare[meta->nspare++] = block;
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}

/*
 * Return true if the delta can have no further page.
 */
bool
rf_delta_is_full(const RfMetaData *meta)
{
	return meta->ndelta - meta->nretired >= RF_MAX_DELTA_PAGES ||
		meta->ndelta >= RF_DELTA_SLOTS;
}

/*
 * Errors out over a delta page that a key cannot be added to.
 */
static void
rf_delta_damaged(Relation index, const RfDeltaSlot *slot)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("delta page %u of index \"%s\" is damaged",
					slot->block, RelationGetRelationName(index)),
			 errhint("REINDEX it.")));
}

/*
 * Adds a key to the delta in use.  meta is the image of the exclusively
 * locked metapage registered in state.  Registers the page with the key, and sets *buffer,
 * which is locked, for the caller to release after GenericXLogFinish().  False when the
 * delta can have no further page.  A damaged delta page is an error.
 */
bool
rf_delta_add(Relation index, GenericXLogState *state, RfMetaData *meta,
			 RfKeyKind kind, const RfKey *key, Buffer *buffer)
{
	Page		page;

	if (meta->ndelta > meta->nretired)
	{
		RfDeltaSlot *slot = &meta->delta[meta->ndelta - 1];

		*buffer = rf_lock_block(rf_file(index), slot->block, BUFFER_LOCK_EXCLUSIVE);
		if (!BufferIsValid(*buffer) ||
			!rf_delta_page_ok(BufferGetPage(*buffer), kind, meta, slot))
			rf_delta_damaged(index, slot);
		slot->nkeys = keys_of_page(BufferGetPage(*buffer), kind);
		if (rf_delta_has_room(BufferGetPage(*buffer), kind, key))
		{
			page = GenericXLogRegisterBuffer(state, *buffer, 0);
			rf_delta_append_image(page, kind, key);
			slot->nkeys++;
			return true;
		}
		UnlockReleaseBuffer(*buffer);
	}
	*buffer = InvalidBuffer;
	if (rf_delta_is_full(meta))
		return false;
	*buffer = rf_delta_new_page(index, state, meta, &page);
	if (!rf_delta_has_room(page, kind, key))
		elog(ERROR, "key of %u bytes does not fit an empty delta page", key->len);
	rf_delta_append_image(page, kind, key);
	meta->delta[meta->ndelta - 1].nkeys++;
	return true;
}

/*
 * Locks the delta's last page exclusively, if the key can be appended there by
 * rf_delta_put(); else returns InvalidBuffer.  The page must be in use and have room,
 * and the index's changes must have LSNs: the page's LSN shows that it has changed.
 * The caller holds a lock on the metapage, which may be a share lock.
 */
Buffer
rf_delta_lock_room(Relation index, const RfMetaData *meta, RfKeyKind kind,
				   const RfKey *key)
{
	const RfDeltaSlot *slot = &meta->delta[meta->ndelta - 1];
	Buffer		buffer;
	Page		page;

	if (meta->ndelta <= meta->nretired || !RelationNeedsWAL(index) ||
		!rf_core_knows_stretches())
		return InvalidBuffer;
	buffer = rf_lock_block(rf_file(index), slot->block, BUFFER_LOCK_EXCLUSIVE);
	if (!BufferIsValid(buffer))
		return InvalidBuffer;
	page = BufferGetPage(buffer);
	if (rf_delta_page_ok(page, kind, meta, slot) &&
		rf_delta_has_room(page, kind, key))
		return buffer;
	UnlockReleaseBuffer(buffer);
	return InvalidBuffer;
}

/*
 * Appends a key to the page that rf_delta_lock_room() has locked for it, and logs only
 * the bytes that change.  Returns how many keys the page has now.
 */
int
rf_delta_put(Buffer buffer, RfKeyKind kind, const RfKey *key)
{
	RfCoreStretch stretches[RF_APPEND_STRETCHES];
	int			n;

	START_CRIT_SECTION();
	n = rf_delta_append(BufferGetPage(buffer), kind, key, stretches);
	MarkBufferDirty(buffer);
	rf_core_log_stretches(buffer, stretches, n);
	END_CRIT_SECTION();
	return keys_of_page(BufferGetPage(buffer), kind);
}
