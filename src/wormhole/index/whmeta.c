/*-------------------------------------------------------------------------
 *
 * whmeta.c
 *	  The metapage.
 *
 * It has the root's block, and tells how keys were made when the index was
 * built.  A session caches what it read there (WhCache) as long as a descent
 * can begin with it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "wormhole/index/whindex.h"

/*
 * Raises an error unless the metapage has this format version and these
 * columns' encodings.
 */
static void
check_meta(Relation index, Page page)
{
	WhMetaData *meta = WhPageMeta(page);
	RfRowFormat *format = &wh_cache(index)->format;

	if (!(WhPageHeader(page)->flags & WH_META) || meta->magic != WH_MAGIC)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\" is not a wormhole index",
						RelationGetRelationName(index)),
				 errhint("Please REINDEX it.")));
	if (meta->version != WH_FORMAT_VERSION)
		wh_report_version(index, WH_META_BLKNO, meta->version);
	for (int i = 0; i < format->ncolumns; i++)
	{
		if (meta->ncolumns != format->ncolumns ||
			meta->codec_ids[i] != format->columns[i].codec->id)
			ereport(ERROR,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("keys of index \"%s\" are encoded in another way",
							RelationGetRelationName(index)),
					 errhint("Please REINDEX it.")));
	}
}

/*
 * Brings the cache of the metapage up to date.  Takes and releases a share
 * lock on the metapage.
 */
void
wh_read_meta(Relation index)
{
	WhCache    *cache = wh_cache(index);
	Buffer		buffer = wh_read(index, WH_META_BLKNO, BUFFER_LOCK_SHARE);
	Page		page = BufferGetPage(buffer);

	check_meta(index, page);
	cache->identity = WhPageHeader(page)->identity;
	cache->root = WhPageMeta(page)->root;
	cache->level = WhPageMeta(page)->level;
	cache->sorted_otherwise = WhPageMeta(page)->collators != cache->collators;
	cache->have_meta = true;
	UnlockReleaseBuffer(buffer);
}

/*
 * Do strings have other keys now than when the index was built?  ICU may sort
 * by other rules after an upgrade, or on this standby.  May read the metapage.
 */
bool
wh_sorted_otherwise(Relation index)
{
	if (wh_cache(index)->collators == 0)
		return false;
	if (!wh_cache(index)->have_meta)
		wh_read_meta(index);
	return wh_cache(index)->sorted_otherwise;
}

/*
 * Raises an error if wh_sorted_otherwise(): then entries can be neither found
 * nor inserted.  (VACUUM does not call this: it makes no keys.)
 */
void
wh_check_collators(Relation index)
{
	if (!wh_sorted_otherwise(index))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("index \"%s\" was built under another version of a collation",
					RelationGetRelationName(index)),
			 errdetail("The collation sorts in another way here than where the index was built, as after an upgrade of ICU."),
			 errhint("REINDEX it.")));
}

/*
 * Fills in a metapage.
 */
void
wh_init_meta_page(Relation index, Page page, uint64 identity,
				  BlockNumber root, uint32 level)
{
	WhBounds	none = {.low.data = (const uint8 *) "",.rightmost = true};
	RfRowFormat *format = &wh_cache(index)->format;
	WhMetaData *meta;

	wh_init_page(page, identity, 0, &none);
	WhPageHeader(page)->flags = WH_META;
	meta = WhPageMeta(page);
	memset(meta, 0, sizeof(*meta));
	meta->magic = WH_MAGIC;
	meta->version = WH_FORMAT_VERSION;
	meta->ncolumns = format->ncolumns;
	for (int i = 0; i < format->ncolumns; i++)
		meta->codec_ids[i] = format->columns[i].codec->id;
	meta->collators = wh_cache(index)->collators;
	meta->root = root;
	meta->level = level;
	((PageHeader) page)->pd_lower = (char *) (meta + 1) - (char *) page;
}

/*
 * A number that no other build of an index has.
 */
uint64
wh_new_identity(void)
{
	uint64		identity;

	if (!pg_strong_random(&identity, sizeof(identity)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate a random number")));
	return identity;
}
