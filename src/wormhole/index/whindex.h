/*-------------------------------------------------------------------------
 *
 * whindex.h
 *	  An index's definition and its blocks.
 *
 * The room offers options and settings; keys from rows and rows from keys;
 * what a session caches of an index; pinning, locking and checking blocks; new
 * blocks; and the metapage.  It does not know how pages are linked.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_WHINDEX_H
#define RANGEFILTER_WHINDEX_H

#include "postgres.h"

#include "key/rowkey.h"
#include "lib/stringinfo.h"
#include "nodes/execnodes.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "wormhole/page/whpage.h"

/* Whether the values of a key column can be had from the key. */
typedef enum WhDecode
{
	WH_DECODE_NEVER,			/* a payload has the value */
	WH_DECODE_VERIFY,			/* a payload has it if decoding would give
								 * another one */
	WH_DECODE_ALWAYS
} WhDecode;

/* The first byte of a column's key if it is not null; see rowkey.c. */
#define WH_VALUE_MARK	0x01

/* What a session caches of an index, in rd_amcache. */
typedef struct WhCache
{
	RfRowFormat format;
	WhDecode	decode[INDEX_MAX_KEYS];
	bool		may_have_payload;
	uint64		collators;		/* rf_row_collators() */

	/* From the metapage.  The root may have got a parent since. */
	bool		have_meta;
	bool		sorted_otherwise;	/* the metapage has other collators */
	uint64		identity;
	BlockNumber root;
	uint32		level;
	BlockNumber nblocks;		/* the file is at least this long */
	BlockNumber heap_nblocks;	/* the table was at least this long */
	struct WhHint *hint;		/* NULL until the hint room is asked */
	bool		has_places;		/* a key has come again: see whfind.c */
	BlockNumber last_place;		/* the leaf of the last insert, if it was
								 * behind all entries there */
} WhCache;

/* CREATE INDEX ... WITH (...) */
typedef struct WhOptions
{
	int32		vl_len_;		/* varlena header (do not touch directly!) */
	int			fillfactor;
	bool		deduplicate;
} WhOptions;

#define WH_DEFAULT_FILLFACTOR	90
#define WH_DIRECTORY_FILLFACTOR	90

/* One part in WH_BUFFERS_PART of wormhole.hint_memory is for remembered buffers. */
#define WH_BUFFERS_PART	8

/* whoptions.c */
extern bool wh_enable_hint;
extern int	wh_hint_memory;
extern int	wh_hint_after;

extern void wh_init_options(void);
extern const WhOptions *wh_index_options(Relation index);
extern bytea *wh_options(Datum reloptions, bool validate);
extern void wh_check_definition(Relation index, IndexInfo *index_info);
extern void wh_forbid_moved_table(Relation index, Relation heap, bool insert);

/* whkey.c */
extern WhCache *wh_cache(Relation index);
extern void wh_encode(Relation index, const Datum *values,
					  const bool *isnull, StringInfo key,
					  StringInfo payload);
extern void wh_decode(Relation index, const uint8 *key, int len,
					  const uint8 *payload, int payload_len,
					  Datum *values, bool *isnull);
extern WhDecode wh_decode_kind(const RfCodec *codec);
extern Datum wh_decode_value(const RfCodec *codec, const RfKey *key);
extern void wh_check_size(Relation index, Relation heap, int key_len,
						  int payload_len);

/* whbuffer.c */
extern void wh_report_damage(Relation index, BlockNumber block);
extern void wh_report_version(Relation index, BlockNumber block, int version);
extern Page wh_check_page(Relation index, Buffer buffer);
extern Buffer wh_pin(Relation index, BlockNumber block);
extern Size wh_recent_size(void);
extern Buffer wh_read(Relation index, BlockNumber block, int lockmode);
extern Buffer wh_read_level(Relation index, BlockNumber block, int level,
							int lockmode);
extern Buffer wh_read_right(Relation index, Buffer left, int lockmode);
extern Buffer wh_new_buffer(Relation index);

/* whmeta.c */
extern void wh_read_meta(Relation index);
extern bool wh_sorted_otherwise(Relation index);
extern void wh_check_collators(Relation index);
extern void wh_init_meta_page(Relation index, Page page, uint64 identity,
							  BlockNumber root, uint32 level);
extern uint64 wh_new_identity(void);

#endif							/* RANGEFILTER_WHINDEX_H */
