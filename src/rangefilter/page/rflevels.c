/*-------------------------------------------------------------------------
 *
 * rflevels.c
 *	  Levels: keys of the delta, sorted and packed.
 *
 * As in a log-structured merge tree, a full page of the delta is merged with those
 * levels that are not larger, to a new level: a sorted run with exactly these
 * keys.  So a probe mostly reads one page of the delta, and few pages of levels,
 * however many keys have come; and a key is written anew a logarithmic number of
 * times.
 *
 * The backend that has filled a page merges it, and levels as long as all that is merged
 * has at most RF_INSERT_MERGE pages.  Larger levels are left as they are.  When there are many,
 * VACUUM and the worker merge them (rf_merge_levels()).
 *
 * An insert does not merge if another backend has the lock of
 * runs.  Then keys go to the next page, and the backend that fills that page tries
 * again.  Full pages and levels do not change, and nobody moves them without that
 * lock.  So a merge reads them without the metapage's lock and writes its run to free
 * pages.  It locks the metapage exclusively only for the swing, which puts the new level
 * in the place of what was merged.  The summary denies the same keys before and after
 * that, so the version stays.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "filter/sorted/sorted.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "rangefilter/page/page.h"
#include "rangefilter/page/shared.h"
#include "utils/memutils.h"

/* A level is merged if it has at most this number of keys, where nkeys are merged so far. */
#define RF_SIMILAR(nkeys)	((nkeys) + (nkeys) / 4)

/* Bytes that the bounds of a level take in its entry, and that an entry takes at least. */
#define RF_LEVEL_BOUNDS	(2 * RF_LEVEL_BOUND_BYTES)
#define RF_MIN_LEVEL_SIZE \
	MAXALIGN(sizeof(RfSegment) + RF_LEVEL_BOUNDS + SORTED_MIN_ROOT)

/*
 * The most pages that an insert merges.  It writes and logs no more pages than that, and needs
 * memory for them: at most 16 MB.
 */
#define RF_INSERT_MERGE	2000

/* For test modules: called when a merge has written its run, before the swing. */
void		(*rf_merge_hook) (void) = NULL;

/* For test modules: another number of pages. */
int			rf_insert_merge = RF_INSERT_MERGE;

/* A page of the delta, or a level, that is merged. */
typedef struct RfSource
{
	FilterReader reader;		/* must be first; hands out copies of pages */
	RfRunReader run;
	SortedCursor cursor;
	PGAlignedBlock page;		/* the page at hand */
	RfKeyKind	kind;
	int			nkeys;			/* of a page of the delta; a level: -1 */
	int			next;
	uint64		number;			/* big-endian: key.data of a number */
	bool		ended;
	FilterBytes key;			/* unless it has ended */
	uint64		head;			/* its first eight bytes, or zeros behind it */
} RfSource;

/* A merge: what it merges. */
typedef struct RfMerge
{
	Relation	index;
	const RfCodec *codec;
	PGAlignedBlock copy;		/* of the metapage */
	const RfMetaData *meta;		/* in the copy */
	int			npages;			/* full pages of the delta, the first in use */
	int			nlevels;		/* in use, the oldest first */
	const RfSegment *levels[RF_MAX_LEVELS];
	int			first;			/* levels from here on are merged */
	int			lowest;			/* levels before this one are too large to be
								 * merged by an insert */
	uint32		owner;			/* of the new run */
} RfMerge;

/*
 * FilterReader callback: a copy of a run's page, which is not locked.
 */
static const uint8 *
rf_copy_run_page(FilterReader *self, uint32_t pageno)
{
	RfSource   *source = (RfSource *) self;
	const uint8 *content = source->run.reader.read_page(&source->run.reader, pageno);

	if (content != NULL)
		memcpy(source->page.data, content, RF_PAGE_CONTENT);
	rf_run_reader_end(&source->run);
	return content != NULL ? (const uint8 *) source->page.data : NULL;
}

/*
 * The first eight bytes of a key as a number; zeros stand for those it does not have.
 */
static uint64
rf_key_head(FilterBytes key)
{
	uint64		head = 0;

	if (key.len >= sizeof(uint64))
		memcpy(&head, key.data, sizeof(uint64));
	else
		memcpy(&head, key.data, key.len);
	return pg_ntoh64(head);
}

/*
 * Compares two keys: first their heads, which mostly differ.
 */
static inline int
rf_compare_heads_first(uint64 a_head, FilterBytes a, uint64 b_head, FilterBytes b)
{
	if (a_head != b_head)
		return a_head < b_head ? -1 : 1;
	return filter_bytes_compare(a, b);
}

/*
 * Goes to the source's next key.  False where a page is damaged.
 */
static bool
rf_source_next(RfSource *source)
{
	RfKey		key = {0};

	if (source->nkeys < 0)
	{
		FilterAnswer answer = sorted_cursor_next(&source->cursor, &source->key);

		source->ended = answer == FILTER_NO;
		if (answer == FILTER_YES)
			source->head = rf_key_head(source->key);
		return answer != FILTER_UNKNOWN;
	}
	source->ended = source->next == source->nkeys;
	if (source->ended)
		return true;
	if (!rf_delta_key(source->page.data, source->kind, source->next++, &key))
		return false;
	if (source->kind == RF_KEY_U64)
	{
		source->number = pg_hton64(key.num);
		source->key.data = (const uint8 *) &source->number;
		source->key.len = sizeof(uint64);
	}
	else
	{
		source->key.data = key.data;
		source->key.len = key.len;
	}
	source->head = rf_key_head(source->key);
	return true;
}

/*
 * Begins with a full page of the delta.  False where it is damaged.
 */
static bool
rf_begin_page(RfSource *source, const RfMerge *merge, int slot)
{
	const RfDeltaSlot *delta = rf_delta_slot(merge->meta, slot);
	Page		page = source->page.data;

	source->kind = merge->codec->kind;
	source->next = 0;
	return rf_delta_copy_page(rf_file(merge->index), merge->meta, delta,
							  source->kind, page, &source->nkeys) &&
		rf_delta_sort_copy(page, source->kind) &&
		rf_source_next(source);
}

/*
 * Begins with a level.  False where it is damaged.
 */
static bool
rf_begin_level(RfSource *source, const RfMerge *merge, const RfSegment *level)
{
	rf_run_reader_begin(&source->run, rf_file(merge->index), merge->meta, level);
	source->reader = source->run.reader;
	source->reader.read_page = rf_copy_run_page;
	source->nkeys = -1;
	return sorted_cursor_begin(&source->cursor, rf_segment_root(level),
							   level->root_len, &source->reader) &&
		rf_source_next(source);
}

/*
 * Begins with all that is merged.  NULL where something is damaged, else the
 * sources, *n of them.
 */
static RfSource *
rf_begin_sources(const RfMerge *merge, int *n)
{
	RfSource   *sources = palloc0((merge->npages + merge->nlevels - merge->first) *
								  sizeof(RfSource));

	*n = 0;
	for (int i = 0; i < merge->npages; i++)
		if (!rf_begin_page(&sources[(*n)++], merge, merge->meta->nretired + i))
			return NULL;
	for (int i = merge->first; i < merge->nlevels; i++)
		if (!rf_begin_level(&sources[(*n)++], merge, merge->levels[i]))
			return NULL;
	return sources;
}

/*
 * The source that has the least key; NULL where all have ended.
 */
static RfSource *
rf_least_source(RfSource *sources, int n)
{
	RfSource   *least = NULL;

	for (int i = 0; i < n; i++)
		if (!sources[i].ended &&
			(least == NULL ||
			 rf_compare_heads_first(sources[i].head, sources[i].key,
									least->head, least->key) < 0))
			least = &sources[i];
	return least;
}

/*
 * Notes a key as a bound of a level, cut if need be.
 */
static void
rf_note_bound(RfSegment *level, RfKeyKind kind, FilterBytes key, bool is_min)
{
	uint16		len = Min(key.len, RF_LEVEL_BOUND_BYTES);
	char	   *bounds = (char *) (level + 1);

	if (kind == RF_KEY_U64)
	{
		uint64		number;

		memcpy(&number, key.data, sizeof(uint64));
		*(is_min ? &level->min : &level->max) = pg_ntoh64(number);
		return;
	}
	if (is_min)
		level->min_len = len;
	else
		level->max_len = len;
	memcpy(is_min ? bounds : bounds + level->min_len, key.data, len);
	if (len < key.len)
		level->flags |= is_min ? RF_SEGMENT_MIN_CUT : RF_SEGMENT_MAX_CUT;
}

/*
 * Builds the run of what is merged, and its entry, except for the run's first block and
 * the first heap block.  NULL if a source is damaged.
 */
static RfSegment *
rf_build_level(const RfMerge *merge, uint32 room, FilterRun *run)
{
	RfKeyKind	kind = merge->codec->kind;
	RfSegment  *level = palloc0(RF_MAX_LEVEL_SIZE);
	uint8		last[FILTER_MAX_KEY];
	FilterBytes max = {last, 0};
	uint64		max_head = 0;
	SortedBuild *build;
	RfSource   *sources;
	RfSource   *source;
	bool		first = true;
	int			n;

	sources = rf_begin_sources(merge, &n);
	if (sources == NULL)
		return NULL;
	build = sorted_build_begin(RF_PAGE_CONTENT, room - sizeof(RfSegment) -
							   (kind == RF_KEY_BYTES ? RF_LEVEL_BOUNDS : 0));
	while ((source = rf_least_source(sources, n)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (source->key.len > FILTER_MAX_KEY ||
			rf_compare_heads_first(source->head, source->key, max_head, max) < 0)
			return NULL;
		if (first)
			rf_note_bound(level, kind, source->key, true);
		first = false;
		sorted_add(build, source->key);
		memcpy(last, source->key.data, source->key.len);
		max.len = source->key.len;
		max_head = source->head;
		if (!rf_source_next(source))
			return NULL;
	}
	rf_note_bound(level, kind, max, false);
	sorted_build_end(build, run);

	level->kind = run->kind;
	level->nkeys = run->nkeys;
	level->npages = run->npages;
	level->owner = merge->owner;
	level->end = InvalidBlockNumber;
	level->root_len = run->root_len;
	memcpy(unconstify(uint8 *, rf_segment_root(level)), run->root, run->root_len);
	level->length = MAXALIGN(rf_segment_places(level) - (const uint8 *) level);
	Assert(level->length <= room);
	return level;
}

/*
 * The pages that a probe reads of the levels that could be merged but are not.
 */
static uint32
rf_reads_kept(const RfMerge *merge)
{
	uint32		reads = 0;

	for (int i = merge->lowest; i < merge->first; i++)
		reads += sorted_depth(rf_segment_root(merge->levels[i]),
							  merge->levels[i]->root_len);
	return reads;
}

/*
 * How large may the new level's entry be?  If there is no other room, places will be
 * dropped for it.
 */
static uint32
rf_entry_room(const RfMerge *merge)
{
	const RfSegment *segment = rf_first_segment(merge->meta);
	uint32		room = RF_DIRECTORY_SIZE - merge->meta->directory_len;

	for (int i = merge->first; i < merge->nlevels; i++)
		room += merge->levels[i]->length;
	for (int i = 0; room < RF_MIN_LEVEL_SIZE && i < merge->meta->nsegments; i++)
	{
		room += TYPEALIGN_DOWN(MAXIMUM_ALIGNOF, segment->places_len);
		segment = rf_next_segment(segment);
	}
	return Min(room, RF_MAX_LEVEL_SIZE);
}

/*
 * Is there room for one more level beside those that are not merged?  (There are many
 * retired levels only if summarizes have failed.)
 */
static bool
rf_level_fits(const RfMerge *merge)
{
	return merge->meta->nlevels - (merge->nlevels - merge->first) < RF_MAX_LEVELS &&
		rf_entry_room(merge) >= RF_MIN_LEVEL_SIZE;
}

/*
 * Finds the full pages and the levels in use, and how many of these are too large for an insert
 * to merge: with the full pages and the newer levels they have more than RF_INSERT_MERGE pages.
 */
static void
rf_find_sources(RfMerge *merge)
{
	const RfMetaData *meta = merge->meta;
	const RfSegment *level = rf_first_level(meta);
	uint64		npages;

	/* The last page is not full. */
	merge->npages = Max(meta->ndelta - meta->nretired - 1, 0);
	merge->nlevels = 0;
	for (int i = 0; i < meta->nlevels; i++)
	{
		if (!(level->flags & RF_LEVEL_RETIRED))
			merge->levels[merge->nlevels++] = level;
		level = rf_next_segment(level);
	}
	merge->first = merge->lowest = merge->nlevels;
	npages = merge->npages;
	while (merge->lowest > 0 &&
		   npages + merge->levels[merge->lowest - 1]->npages <= rf_insert_merge)
		npages += merge->levels[--merge->lowest]->npages;
}

/*
 * Decides which levels are merged with the full pages.  False if there is no room.
 */
static bool
rf_plan_merge(RfMerge *merge)
{
	uint64		nkeys = 0;

	for (int i = 0; i < merge->npages; i++)
		nkeys += rf_delta_slot(merge->meta, merge->meta->nretired + i)->nkeys;
	while (merge->first > merge->lowest &&
		   (merge->levels[merge->first - 1]->nkeys <= RF_SIMILAR(nkeys) ||
			rf_reads_kept(merge) + 1 > RF_LEVEL_READS ||
			!rf_level_fits(merge)))
		nkeys += merge->levels[--merge->first]->nkeys;
	return merge->lowest <= RF_LARGE_LEVELS && rf_level_fits(merge);
}

/*
 * Return true if VACUUM or the worker should merge levels, since there are many that are
 * too large for inserts.
 */
bool
rf_levels_are_many(const RfMetaData *meta)
{
	RfMerge		merge = {.meta = meta};

	if (meta->nlevels < RF_LARGE_LEVELS)
		return false;
	rf_find_sources(&merge);
	return merge.lowest >= RF_LARGE_LEVELS;
}

/*
 * Takes the places out of the entries of a directory.  Then a segment's keys may be in
 * any of its blocks, and a key that it has is covered in all of them.
 */
static void
rf_drop_places(Page page)
{
	RfMetaData *meta = rf_page_meta(page);
	char	   *end = (char *) rf_first_segment(meta) + meta->directory_len;
	RfSegment  *segment = unconstify(RfSegment *, rf_first_segment(meta));

	for (int i = 0; i < meta->nsegments; i++)
	{
		char	   *next = (char *) rf_next_segment(segment);

		if (segment->places_len > 0)
		{
			segment->length = MAXALIGN(rf_segment_places(segment) -
									   (const uint8 *) segment);
			segment->places_len = 0;
			segment->range_blocks = 0;
			segment->imprecise = 0;
			memmove((char *) rf_next_segment(segment), next, end - next);
			end -= next - (char *) rf_next_segment(segment);
		}
		segment = unconstify(RfSegment *, rf_next_segment(segment));
	}
	rf_set_directory(page, end - (char *) rf_first_segment(meta));
}

/*
 * Appends an entry to the directory on the metapage's image.  If there is no other
 * room, drops the places; then the entry must fit.
 */
void
rf_put_entry(Page page, const RfSegment *entry)
{
	RfMetaData *meta = rf_page_meta(page);

	if (meta->directory_len + entry->length > RF_DIRECTORY_SIZE)
		rf_drop_places(page);
	if (meta->directory_len + entry->length > RF_DIRECTORY_SIZE)
		elog(ERROR, "entry of %u bytes does not fit the directory", entry->length);
	memcpy((char *) rf_first_segment(meta) + meta->directory_len, entry,
		   entry->length);
	rf_set_directory(page, meta->directory_len + entry->length);
}

/*
 * Takes the levels that were merged out of the directory, on the metapage's image.
 * Returns the lowest of the heap blocks from which on they cover their keys.
 */
static BlockNumber
rf_drop_merged(Page page, const RfMerge *merge)
{
	RfMetaData *meta = rf_page_meta(page);
	RfSegment  *level = unconstify(RfSegment *, rf_first_level(meta));
	char	   *end = (char *) rf_first_segment(meta) + meta->directory_len;
	BlockNumber lowest = InvalidBlockNumber;
	int			in_use = 0;
	int			n = meta->nlevels;

	for (int i = 0; i < n; i++)
	{
		char	   *next = (char *) rf_next_segment(level);

		if ((level->flags & RF_LEVEL_RETIRED) || in_use++ < merge->first)
		{
			level = (RfSegment *) next;
			continue;
		}
		lowest = Min(lowest, level->start);
		memmove(level, next, end - next);
		end -= next - (char *) level;
		meta->nlevels--;
	}
	rf_set_directory(page, end - (char *) rf_first_segment(meta));
	return lowest;
}

/*
 * Puts the new level, whose run is written, in the place of what was merged.
 *
 * An insert may have relied on a page that is merged here since it was read, in any
 * block from delta_min_block on, as that is now.
 */
static void
rf_swing_level(const RfMerge *merge, RfSegment *level)
{
	Buffer		buffer = rf_read_meta(merge->index, BUFFER_LOCK_EXCLUSIVE);
	GenericXLogState *state = GenericXLogStart(merge->index);
	Page		page = GenericXLogRegisterBuffer(state, buffer, 0);
	RfMetaData *meta = rf_page_meta(page);
	BlockNumber lowest;

	if (meta->identity != merge->meta->identity ||
		meta->nretired != merge->meta->nretired ||
		meta->ndelta < merge->meta->ndelta ||
		meta->nlevels != merge->meta->nlevels ||
		(merge->npages > 0 &&
		 rf_delta_slot(meta, meta->nretired)->owner != level->owner))
		elog(ERROR, "the delta of index \"%s\" has changed while it was merged",
			 RelationGetRelationName(merge->index));
	lowest = rf_drop_merged(page, merge);
	level->start = merge->npages > 0 ? Min(meta->delta_min_block, lowest) : lowest;
	rf_delta_drop_pages(meta, meta->nretired, merge->npages);
	rf_put_entry(page, level);
	meta->nlevels++;

	/*
	 * The answers stay, but a cached metapage leads to the levels that were
	 * merged.  It is noticed by the number of pages in the delta, or by this.
	 */
	if (merge->npages == 0)
		rf_move_version(merge->index, meta);
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}

/*
 * Makes the new level and puts it into the directory.  If a probe would then read too
 * many pages, merges the next larger level, too.  False if a page is damaged.
 */
static bool
rf_make_level(RfMerge *merge)
{
	FilterRun	run;
	RfSegment  *level;

	for (;; merge->first--)
	{
		level = rf_build_level(merge, rf_entry_room(merge), &run);
		if (level == NULL)
			return false;
		if (merge->first == merge->lowest ||
			rf_reads_kept(merge) + sorted_depth(run.root, run.root_len) <=
			RF_LEVEL_READS)
			break;
		filter_run_free(&run);
	}
	level->run_block = rf_write_run(merge->index, merge->meta->identity,
									level->owner, &run);
	if (rf_merge_hook != NULL)
		rf_merge_hook();
	rf_swing_level(merge, level);
	return true;
}

/*
 * Takes an owner for a run that no page of the delta gives one.  Takes and releases the
 * exclusive lock on the metapage.
 */
static uint32
rf_take_owner(Relation index)
{
	Buffer		buffer = rf_read_meta(index, BUFFER_LOCK_EXCLUSIVE);
	GenericXLogState *state = GenericXLogStart(index);
	uint32		owner;

	owner = rf_page_meta(GenericXLogRegisterBuffer(state, buffer, 0))->next_owner++;
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
	return owner;
}

/*
 * Begins a merge with a copy of the metapage.  The caller has the lock of runs.
 */
static RfMerge *
rf_begin_merge(Relation index)
{
	RfMerge    *merge = palloc(sizeof(RfMerge));
	Buffer		buffer;

	merge->index = index;
	merge->codec = rf_index_codec(index);
	merge->meta = rf_page_meta(merge->copy.data);
	buffer = rf_read_meta(index, BUFFER_LOCK_SHARE);
	memcpy(merge->copy.data, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	rf_find_sources(merge);
	return merge;
}

/*
 * Merges the full pages of the delta into a level, if there are any.  If another
 * backend has the lock of runs, waits for it if wait is set, else does nothing.  Returns
 * whether the delta has room afterwards.  The caller holds no lock on a page of the index.
 */
bool
rf_merge_delta(Relation index, bool wait)
{
	MemoryContext context;
	MemoryContext old;
	RfMerge    *merge;
	bool		merged = false;
	bool		room;

	if (!rf_lock_runs(index, wait))
		return false;
	context = AllocSetContextCreate(CurrentMemoryContext, "rangefilter merge",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	merge = rf_begin_merge(index);
	if (merge->npages > 0 && !rf_sorted_otherwise(merge->meta, merge->codec))
	{
		merge->owner = rf_delta_slot(merge->meta, merge->meta->nretired)->owner;
		merged = rf_plan_merge(merge) && rf_make_level(merge);
	}
	room = merged || !rf_delta_is_full(merge->meta);
	rf_unlock_runs(index);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return room;
}

/*
 * Merges levels of any size, if rf_levels_are_many(): all but the oldest one, and that too if it
 * is not larger than the others.  Takes memory for the new level as a whole.  Waits for the lock of runs.  The caller holds no lock on a
 * page of the index.
 */
void
rf_merge_levels(Relation index)
{
	MemoryContext context;
	MemoryContext old;
	RfMerge    *merge;
	uint64		nkeys = 0;

	(void) rf_lock_runs(index, true);
	context = AllocSetContextCreate(CurrentMemoryContext, "rangefilter merge",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	merge = rf_begin_merge(index);
	if (merge->lowest >= RF_LARGE_LEVELS &&
		!rf_sorted_otherwise(merge->meta, merge->codec))
	{
		while (merge->first > 1 ||
			   (merge->first == 1 && merge->levels[0]->nkeys <= RF_SIMILAR(nkeys)))
			nkeys += merge->levels[--merge->first]->nkeys;
		merge->lowest = merge->first;
		merge->npages = 0;
		merge->owner = rf_take_owner(index);
		if (rf_level_fits(merge))
			(void) rf_make_level(merge);
	}
	rf_unlock_runs(index);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
