/*-------------------------------------------------------------------------
 *
 * rfsort.c
 *	  Makes a segment and its run from the keys of heap tuples.
 *
 * The sorted keys (rfkeys.h) are walked twice: first to measure, then to build
 * the filter, and the places if the segment is to have them.  Of byte strings the first walk
 * also collects the hashes, which are sorted then: see filter/filter.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/progress.h"
#include "filter/places/places.h"
#include "key/rowkey.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_bswap.h"
#include "rangefilter/page/options.h"
#include "rangefilter/page/page.h"
#include "rangefilter/summarize/summarize.h"
#include "rangefilter/summarize/rfkeys.h"

struct RfKeySort
{
	const RfCodec *codec;
	RfKeyKind	kind;
	RfKeys	   *keys;
	RfPlacing	placing;		/* range_blocks 0: no places */
	uint64		nrows;			/* with a key */
	uint64		nnulls;
};

/* One of the two passes over the sorted keys. */
typedef struct RfFilterPass
{
	void		(*number) (FilterBuild *build, uint64_t key);
	void		(*bytes) (FilterBuild *build, FilterBytes key);
} RfFilterPass;

/* The state of the walks over the sorted keys. */
typedef struct RfMaking
{
	FilterBuild *filter;
	bool		as_bytes;		/* numbers as their big-endian bytes */
	RfKeys	   *hashes;			/* NULL: not needed */
	int			nnoted;			/* hashes of the key given last ... */
	uint64		noted[RF_MAX_COLUMNS];	/* ... and these */
	RfKey		min;
	RfKey		max;
	PlacesBuild *places;		/* NULL: none are made */
	bool		adding;			/* second pass */
	uint64		rarest;			/* rows that the rarest key, or NULL, has */
} RfMaking;

static const RfFilterPass rf_measure = {filter_measure_u64, filter_measure_bytes};
static const RfFilterPass rf_add = {filter_add_u64, filter_add_bytes};

/*
 * Begins to collect keys of a codec, for a segment with places or without.
 */
RfKeySort *
rf_sort_begin(const RfCodec *codec, const RfPlacing *placing)
{
	RfKeyKind	kind = codec->kind;
	RfKeySort  *sort = palloc0(sizeof(RfKeySort));

	sort->codec = codec;
	sort->kind = kind;
	sort->placing = *placing;
	sort->keys = rf_keys_begin(kind, placing->range_blocks > 0,
							   placing->automatic ? rf_most_placed_rows() : 0,
							   kind == RF_KEY_BYTES ? maintenance_work_mem / 2 :
							   maintenance_work_mem);
	return sort;
}

/*
 * Adds a tuple's key; NULLs are only counted.
 */
void
rf_sort_add(RfKeySort *sort, const RfHeapTuple *tuple)
{
	if (tuple->isnull)
	{
		sort->nnulls++;
		return;
	}
	sort->nrows++;
	rf_keys_put(sort->keys, &tuple->key, ItemPointerGetBlockNumber(&tuple->tid));
}

/*
 * Gives a key to one of the filter library's passes.  A SuRF takes numbers as
 * their big-endian bytes.
 */
static void
rf_give(FilterBuild *build, const RfFilterPass *pass, RfKeyKind kind,
		const RfKey *key, bool as_bytes)
{
	uint64		big_endian = pg_hton64(key->num);
	FilterBytes bytes = {key->data, key->len};

	if (kind == RF_KEY_U64)
	{
		bytes.data = (const uint8 *) &big_endian;
		bytes.len = sizeof(big_endian);
	}
	if (as_bytes)
		pass->bytes(build, bytes);
	else
		pass->number(build, key->num);
}

/*
 * Measures or adds a place: a key with this rank is in this block.
 */
static void
rf_put_place(RfKeySort *sort, RfMaking *making, uint64 rank, BlockNumber block)
{
	uint32		range = (block - sort->placing.start) /
	sort->placing.range_blocks;

	if (making->adding)
		places_add(making->places, rank, range);
	else
		places_measure(making->places, rank, range);
}

/*
 * Collects the hashes of the key given last, which is a byte string, but for those that the key before
 * had, too.  (That is not seen by ranks: the trie may cut keys.)
 */
static void
rf_note_hashes(const RfKeySort *sort, RfMaking *making)
{
	uint64		hashes[RF_MAX_COLUMNS];
	int			n = rf_key_hashes(sort->codec, &making->max, hashes);

	for (int i = 0; i < n; i++)
	{
		RfKey		hash = {.num = hashes[i]};

		if (i >= making->nnoted || hash.num != making->noted[i])
			rf_keys_put(making->hashes, &hash, InvalidBlockNumber);
		making->noted[i] = hash.num;
	}
	making->nnoted = n;
}

/*
 * Gives the collected hashes, which are sorted, to one of the passes.
 */
static void
rf_give_hashes(RfMaking *making, const RfFilterPass *pass)
{
	BlockNumber block;
	RfKey		hash;

	while (rf_keys_next(making->hashes, &hash, &block))
	{
		CHECK_FOR_INTERRUPTS();
		pass->number(making->filter, hash.num);
	}
	rf_keys_rewind(making->hashes);
}

/*
 * Frees the hashes, if there are any.
 */
static void
rf_end_hashes(RfMaking *making)
{
	if (making->hashes != NULL)
		rf_keys_end(making->hashes);
	making->hashes = NULL;
}

/*
 * Walks the sorted keys once.  Sets making->min to the least key (its bytes
 * are palloc'd), and making->max to the greatest (its bytes are in the sort's
 * buffer); in the first pass, making->rarest to the least number of rows that a key, or NULL, has.
 */
static void
rf_sort_walk(RfKeySort *sort, RfMaking *making, const RfFilterPass *pass)
{
	BlockNumber block = InvalidBlockNumber;
	bool		seen = false;
	uint64		rank = 0;
	uint64		nsame = 0;
	uint64		rarest = sort->nnulls > 0 ? sort->nnulls : PG_UINT64_MAX;

	while (rf_keys_next(sort->keys, &making->max, &block))
	{
		uint64		now;

		CHECK_FOR_INTERRUPTS();
		if (!seen)
		{
			uint8	   *copy = palloc(FILTER_MAX_KEY);

			making->min = making->max;
			if (sort->kind == RF_KEY_BYTES)
				memcpy(copy, making->max.data, making->max.len);
			making->min.data = copy;
		}
		rf_give(making->filter, pass, sort->kind, &making->max,
				making->as_bytes);
		seen = true;
		now = filter_build_rank(making->filter);
		if (making->hashes != NULL && !making->adding)
			rf_note_hashes(sort, making);
		if (now != rank)
			rarest = Min(rarest, nsame);
		nsame = now == rank ? nsame + 1 : 1;
		rank = now;
		if (making->places != NULL)
			rf_put_place(sort, making, rank, block);
	}
	if (seen)
		rarest = Min(rarest, nsame);

	/* In the second pass keys may be cut. */
	if (!making->adding)
		making->rarest = rarest;
}

/*
 * Sets what to build from the index's options.
 */
static void
rf_choose_filter(RfKeySort *sort, const RfOptions *options, FilterOptions *filter)
{
	bool		as_surf = options->filter == RF_FILTER_SURF;

	memset(filter, 0, sizeof(FilterOptions));
	filter->bits_per_key = options->bits_per_key;
	filter->suffix = options->suffix;
	filter->page_size = RF_PAGE_CONTENT;
	filter->root_max = FILTER_MAX_ROOT;
	filter->nrows = sort->nrows;
	filter->bytes = sort->kind == RF_KEY_BYTES || as_surf;
	if (as_surf && filter->suffix == FILTER_SUFFIX_AUTO)
		filter->suffix = FILTER_SUFFIX_REAL;
}

/*
 * Ends the first pass over places, of nranks ranks.  Returns the bits that they will take; 0 if they
 * are not worth it, and drops them.  Automatic ones must fit the metapage.
 */
static uint64
rf_end_measuring(RfKeySort *sort, RfMaking *making, uint64 nranks, uint64 entries_room)
{
	uint64		room = sort->placing.room * BITS_PER_BYTE;
	uint64		single = places_bits(sort->placing.nranges, nranks);
	uint64		bits;

	if (sort->placing.automatic)
		bits = single > room ? 0 :
			places_measure_end(making->places, room - single);
	else
		bits = places_measure_end(making->places, entries_room);
	if (bits == 0)
	{
		places_build_free(making->places);
		making->places = NULL;
	}
	return bits;
}

/*
 * The bits that entries of places may take where they are not automatic: what the filter can do
 * without.  It keeps half of its bits for each key, and eight where there are more than eight.
 */
static uint64
rf_entries_room(const RfKeySort *sort, const RfOptions *options, uint64 nkeys)
{
	int			budget = options->bits_per_key;
	int			least = Min(budget, Max(budget / 2, 8));

	return Max(RF_ENTRY_BITS_PER_ROW * sort->nrows, (budget - least) * nkeys);
}

/*
 * Decides between the passes whether places are worth their room; if not,
 * drops them.  Those that do not fit the metapage reduce the filter's bits for each key.
 */
static void
rf_measure_places(RfKeySort *sort, RfMaking *making, const RfOptions *options)
{
	uint64		nkeys = filter_build_rank(making->filter) + 1;
	int			budget = options->bits_per_key;
	int			least = Min(budget, Max(budget / 2, 8));
	uint64		bits = rf_end_measuring(sort, making, nkeys,
										rf_entries_room(sort, options, nkeys));

	if (bits > sort->placing.room * BITS_PER_BYTE)
		filter_build_limit(making->filter,
						   Max(budget - (int) Min(bits / nkeys + 1, 64), least));
}

/*
 * One of the passes over the places of a pair, by what the finished run says of the keys' ranks.  Returns
 * how many ranks there are.
 */
static uint64
rf_place_leaves(RfKeySort *sort, RfMaking *making, const FilterRun *run, uint32 page_size)
{
	FilterMemoryReader reader;
	FilterRanks ranks = {0, 0};
	BlockNumber block;
	RfKey		key;

	filter_memory_reader_init(&reader, run->pages, run->npages, page_size);
	rf_keys_rewind(sort->keys);
	while (rf_keys_next(sort->keys, &key, &block))
	{
		FilterByteRange point = {.lo = {key.data, key.len},.hi = {key.data, key.len}};

		CHECK_FOR_INTERRUPTS();
		if (!filter_ranks_bytes(run->root, run->root_len, &reader.reader, &point, &ranks) ||
			ranks.end != ranks.first + 1)
			elog(ERROR, "a filter does not have a key of its own");
		rf_put_place(sort, making, ranks.first, block);
	}
	return ranks.end;
}

/*
 * Makes the places of a pair anew: its ranks are known only now, and keys may share them.
 */
static void
rf_place_pair(RfKeySort *sort, RfMaking *making, const RfOptions *options,
			  const FilterRun *run, uint32 page_size)
{
	uint64		nranks;

	places_build_free(making->places);
	making->places = places_build_begin(sort->placing.nranges, RF_PAGE_CONTENT);
	making->adding = false;
	nranks = rf_place_leaves(sort, making, run, page_size);
	making->adding = true;
	if (rf_end_measuring(sort, making, nranks,
						 rf_entries_room(sort, options, run->nkeys)) > 0)
		(void) rf_place_leaves(sort, making, run, page_size);
}

/*
 * Makes the directory entry of a finished run.
 */
static RfSegment *
rf_make_segment(RfKeySort *sort, const FilterRun *run, const RfMaking *making)
{
	RfSegment  *segment = palloc0(RF_DIRECTORY_SIZE);
	const RfKey *min = &making->min;
	const RfKey *max = &making->max;
	char	   *end = (char *) (segment + 1);

	segment->kind = run->kind;
	segment->nrows = sort->nrows + sort->nnulls;
	segment->nkeys = run->nkeys;
	segment->rarest = Min(making->rarest, PG_UINT32_MAX);
	segment->npages = run->npages;
	segment->flags = sort->nnulls > 0 ? RF_SEGMENT_NULLS : 0;
	if (sort->kind == RF_KEY_U64)
	{
		segment->min = min->num;
		segment->max = max->num;
	}
	else if (run->nkeys > 0)
	{
		segment->min_len = Min(min->len, RF_BOUND_BYTES);
		segment->max_len = Min(max->len, RF_BOUND_BYTES);
		if (min->len > RF_BOUND_BYTES)
			segment->flags |= RF_SEGMENT_MIN_CUT;
		if (max->len > RF_BOUND_BYTES)
			segment->flags |= RF_SEGMENT_MAX_CUT;
		memcpy(end, min->data, segment->min_len);
		end += segment->min_len;
		memcpy(end, max->data, segment->max_len);
		end += segment->max_len;
	}
	segment->root_len = run->root_len;
	if (run->root_len > 0)
		memcpy(end, run->root, run->root_len);
	segment->length = MAXALIGN(end + run->root_len - (char *) segment);
	return segment;
}

/*
 * Moves a run of one page of this number of bytes into its directory entry.  False if it has more
 * pages, or does not fit beside levels; then *excess is set to the bytes that are too many.
 */
static bool
rf_move_run(RfSegment *segment, FilterRun *run, uint32 page_size, uint32 *excess)
{
	uint32		in_entry = rf_segment_run(segment) - (uint8 *) segment + page_size;

	if (run->npages != 1)
		return false;
	if (MAXALIGN(in_entry) > RF_SEGMENTS_SIZE)
	{
		*excess = MAXALIGN(in_entry) - RF_SEGMENTS_SIZE;
		return false;
	}
	memcpy(unconstify(uint8 *, rf_segment_run(segment)), run->pages, page_size);
	segment->run_len = page_size;
	segment->length = MAXALIGN(in_entry);
	run->npages = 0;
	return true;
}

/*
 * Ends the places.  They go into the directory entry if there is room.  Else
 * they go to the end of the run, but automatic ones are dropped.  False, and they are
 * dropped, if the run is in the entry and there is no room.
 */
static bool
rf_end_places(RfKeySort *sort, RfMaking *making, RfSegment *segment,
			  FilterRun *run)
{
	uint32		npages;
	uint32		last_len;
	uint8	   *pages;
	uint32		in_entry;

	if (making->places == NULL)
		return true;
	pages = places_build_end(making->places, &npages, &last_len);
	in_entry = rf_segment_places(segment) - (uint8 *) segment + last_len;
	if (npages == 1 && MAXALIGN(in_entry) <= RF_DIRECTORY_SIZE - RF_LEVELS_RESERVE &&
		segment->start == 0)
	{
		memcpy(unconstify(uint8 *, rf_segment_places(segment)), pages, last_len);
		segment->places_len = last_len;
		segment->length = MAXALIGN(in_entry);
		segment->range_blocks = sort->placing.range_blocks;
	}
	else if (segment->run_len == 0 && !sort->placing.automatic)
	{
		run->pages = repalloc_huge(run->pages, (Size) (run->npages + npages) *
								   RF_PAGE_CONTENT);
		memcpy(run->pages + (Size) run->npages * RF_PAGE_CONTENT, pages,
			   (Size) npages * RF_PAGE_CONTENT);
		run->npages += npages;
		segment->npages = run->npages;
		segment->place_pages = npages;
		segment->range_blocks = sort->placing.range_blocks;
	}
	pfree(pages);
	return segment->run_len == 0 || segment->places_len > 0;
}

/*
 * The walks over the sorted keys: builds the filter, and the places if making has a build of some.
 * False if the filter must be one page and does not seem to fit it.
 */
static bool
rf_sort_build_run(RfKeySort *sort, RfMaking *making, const RfOptions *options,
				  const FilterOptions *filter, FilterRun *run)
{
	bool		in_entry = filter->page_size < RF_PAGE_CONTENT;
	bool		is_pair;

	if (filter->bytes && filter->suffix == FILTER_SUFFIX_AUTO)
		making->hashes = rf_keys_begin(RF_KEY_U64, false, 0, maintenance_work_mem / 2);
	rf_sort_walk(sort, making, &rf_measure);
	if (making->places != NULL)
		rf_measure_places(sort, making, options);
	making->adding = true;
	is_pair = filter_build_hashes(making->filter);
	if (is_pair)
	{
		rf_keys_sort(making->hashes);
		rf_give_hashes(making, &rf_measure);
	}
	else
		rf_end_hashes(making);
	filter_measure_end(making->filter);
	if (in_entry && !filter_build_fits(making->filter))
	{
		rf_end_hashes(making);
		return false;
	}
	rf_keys_rewind(sort->keys);
	rf_sort_walk(sort, making, &rf_add);
	if (is_pair)
		rf_give_hashes(making, &rf_add);
	rf_end_hashes(making);
	filter_build_end(making->filter, run);
	return true;
}

/*
 * Builds filter and places of the sorted keys.  If pages are smaller than those of the
 * file, the run goes into the entry; NULL if the run, or places that there shall be, do
 * not fit there.  *excess is set if smaller pages would.
 */
static RfSegment *
rf_sort_build(RfKeySort *sort, const RfOptions *options,
			  const FilterOptions *filter, FilterRun *run, uint32 *excess)
{
	bool		in_entry = filter->page_size < RF_PAGE_CONTENT;
	RfMaking	making = {0};
	RfSegment  *segment;
	bool		placed;

	if (sort->placing.range_blocks > 0)
		rf_choose_ranges(&sort->placing, sort->nrows);
	making.as_bytes = filter->bytes;
	making.filter = filter_build_begin(filter);
	placed = sort->placing.range_blocks > 0 && sort->nrows > 0;
	if (placed)
		making.places = places_build_begin(sort->placing.nranges,
										   RF_PAGE_CONTENT);
	if (!rf_sort_build_run(sort, &making, options, filter, run))
		return NULL;
	if (making.places != NULL && run->kind == FILTER_KIND_PAIR)
		rf_place_pair(sort, &making, options, run, filter->page_size);

	segment = rf_make_segment(sort, run, &making);
	segment->start = sort->placing.start;
	segment->end = sort->placing.end;
	if (in_entry &&
		(!rf_move_run(segment, run, filter->page_size, excess) || placed != (making.places != NULL)))
		return NULL;
	return rf_end_places(sort, &making, segment, run) ? segment : NULL;
}

/*
 * Builds a segment whose run is in its entry, with pages of this size.  NULL if that has no room
 * for it.
 */
static RfSegment *
rf_sort_build_entry(RfKeySort *sort, const RfOptions *options,
					const FilterOptions *filter, uint32 room, FilterRun *run, uint32 *excess)
{
	FilterOptions entry_filter = *filter;
	RfPlacing	placing = sort->placing;
	RfSegment  *segment;

	*excess = 0;
	if ((uint64) room * BITS_PER_BYTE < options->bits_per_key * sort->nrows || room == 0)
		return NULL;
	sort->placing.room -= room;
	entry_filter.page_size = room;
	segment = rf_sort_build(sort, options, &entry_filter, run, excess);
	if (segment == NULL)
	{
		sort->placing = placing;
		rf_keys_rewind(sort->keys);
	}
	return segment;
}

/*
 * Sorts the keys and builds their filter and places, by the index's options.
 * Returns the directory entry (palloc'd) and the run, which is not yet
 * written, or has no pages if it is in the entry.  The caller sets the entry's owner and
 * run_block.  Frees the sort, but not what building in vain has left.
 */
RfSegment *
rf_sort_finish(RfKeySort *sort, Relation index, bool report_progress,
			   FilterRun *run)
{
	const RfOptions *options = rf_index_options(index);
	FilterOptions filter;
	RfSegment  *segment;
	uint32		room;
	uint32		excess;

	if (report_progress)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, RF_PHASE_SORT);
	rf_keys_sort(sort->keys);
	if (!rf_keys_have_blocks(sort->keys))
		sort->placing.range_blocks = 0;

	if (report_progress)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, RF_PHASE_WRITE);
	rf_choose_filter(sort, options, &filter);
	room = rf_entry_run_room(&sort->placing, sort->nrows);
	segment = rf_sort_build_entry(sort, options, &filter, room, run, &excess);

	/* The root of long strings may need some of the room. */
	if (segment == NULL && excess > 0)
		segment = rf_sort_build_entry(sort, options, &filter, room - excess, run, &excess);
	if (segment == NULL)
		segment = rf_sort_build(sort, options, &filter, run, &excess);
	rf_keys_end(sort->keys);
	pfree(sort);
	return segment;
}
