/*-------------------------------------------------------------------------
 *
 * rfimage.c
 *	  A summary kept in memory, for those who ask it many times.
 *
 * An image is the metapage as it was when the image was made; pages of runs
 * are copied when they are first read, as long as memory lasts.  So most
 * questions need neither pins nor locks.  What it denies is not in the index
 * as of the moment it was made: good for a snapshot taken before that, however
 * much is inserted later.
 *
 * Pages of a run never change.  A run that is replaced may be overwritten by
 * another one, whose pages have another owner; then the image is given up, and
 * the index itself is asked.  Summaries with keys in the delta have no image,
 * since pages of a delta do change.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "rangefilter/page/page.h"
#include "rangefilter/probe/internal.h"

struct RfImage
{
	MemoryContext context;
	Size	   *budget;			/* bytes that may still be allocated */
	bool		in_recovery;
	bool		stale;			/* a page was replaced: ask the index */
	bool		nulls;			/* a NULL is among the keys */
	RfKeyKind	kind;
	RfMetaData *meta;			/* with the directory */
	uint8	  **pages;			/* copies of the segments' pages, in the order
								 * of segments; NULL: not copied */
};

/* Reads the run of one segment of an image. */
typedef struct RfImageReader
{
	FilterReader reader;		/* must be first */
	RfImage    *image;
	uint8	  **pages;			/* of the segment */
	RfRunReader run;			/* reads the index */
} RfImageReader;

/*
 * Takes memory from the budget; NULL where it is used up.
 */
static void *
image_alloc(MemoryContext context, Size *budget, Size size)
{
	if (size > *budget)
		return NULL;
	*budget -= size;
	return MemoryContextAllocZero(context, size);
}

/*
 * Makes an image of what is on a share-locked metapage.
 */
static RfImage *
copy_meta(const RfMetaData *meta, RfKeyKind kind, bool in_recovery,
		  Size *budget)
{
	Size		meta_size = rf_bare_meta_size(meta);
	Size		npages = 0;
	const RfSegment *segment = rf_first_segment(meta);
	RfImage    *image;
	char	   *space;

	for (int i = 0; i < meta->nsegments; i++)
	{
		npages += segment->npages;
		segment = rf_next_segment(segment);
	}
	space = image_alloc(CurrentMemoryContext, budget,
						MAXALIGN(sizeof(RfImage)) + MAXALIGN(meta_size) +
						npages * sizeof(uint8 *));
	if (space == NULL)
		return NULL;
	image = (RfImage *) space;
	image->context = CurrentMemoryContext;
	image->budget = budget;
	image->in_recovery = in_recovery;
	image->nulls = rf_has_nulls(meta);
	image->kind = kind;
	image->meta = (RfMetaData *) (space + MAXALIGN(sizeof(RfImage)));
	image->pages = (uint8 **) (space + MAXALIGN(sizeof(RfImage)) +
							   MAXALIGN(meta_size));
	rf_copy_bare_meta(image->meta, meta);
	return image;
}

/*
 * See probe.h.
 */
RfImage *
rf_image_make(Relation index, bool in_recovery, Size *budget)
{
	Buffer		buffer = rf_try_read_meta(index);
	const RfMetaData *meta;
	RfImage    *image = NULL;

	if (!BufferIsValid(buffer))
		return NULL;
	meta = rf_page_meta(BufferGetPage(buffer));
	if ((meta->flags & RF_UNCERTAIN_FLAGS) == 0 && meta->ndelta == 0 &&
		!(in_recovery && (meta->flags & RF_STANDBY_UNKNOWN)))
		image = copy_meta(meta, rf_index_codec(index)->kind, in_recovery,
						  budget);
	UnlockReleaseBuffer(buffer);
	return image;
}

/*
 * FilterReader callback: the copy of a page, or the page itself, share-locked
 * until the next one is read.
 */
static const uint8 *
read_image_page(FilterReader *self, uint32_t pageno)
{
	RfImageReader *reader = (RfImageReader *) self;
	const uint8 *content;

	if (pageno >= reader->reader.npages)
		return NULL;
	if (reader->pages[pageno] != NULL)
		return reader->pages[pageno];
	content = reader->run.reader.read_page(&reader->run.reader, pageno);
	if (content == NULL)
	{
		reader->image->stale = true;
		return NULL;
	}
	reader->pages[pageno] = image_alloc(reader->image->context,
										reader->image->budget,
										RF_PAGE_CONTENT);
	if (reader->pages[pageno] == NULL)
		return content;
	memcpy(reader->pages[pageno], content, RF_PAGE_CONTENT);
	return reader->pages[pageno];
}

/*
 * Asks one segment; pages are those of its run.
 */
static RfAnswer
ask_segment(RfImage *image, Relation index, const RfSegment *segment,
			uint8 **pages, const RfKeySet *set)
{
	RfImageReader reader;
	RfAnswer	answer;

	rf_run_reader_begin(&reader.run, rf_file(index), image->meta, segment);
	reader.reader = reader.run.reader;
	reader.reader.read_page = read_image_page;
	reader.image = image;
	reader.pages = pages;
	answer = rf_segment_ask(segment, set->kind, set, &reader.reader);
	rf_run_reader_end(&reader.run);
	return answer;
}

/*
 * See probe.h.
 */
RfAnswer
rf_image_probe(RfImage *image, Relation index, const RfKeySet *set)
{
	const RfSegment *segment = rf_first_segment(image->meta);
	uint8	  **pages = image->pages;
	RfAnswer	answer = RF_NO;
	RfStamp		stamp;

	if (set->kind != image->kind)
		return RF_UNKNOWN;
	if (set->nulls && image->nulls)
		return RF_YES;
	for (int i = 0; i < image->meta->nsegments && answer == RF_NO; i++)
	{
		answer = ask_segment(image, index, segment, pages, set);
		pages += segment->npages;
		segment = rf_next_segment(segment);
	}
	if (image->stale)
		return rf_probe(index, set, image->in_recovery, &stamp, NULL);
	return answer;
}
