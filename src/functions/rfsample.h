/*-------------------------------------------------------------------------
 *
 * rfsample.h
 *	  A sample of a column's keys over all partitions, and what follows from it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_RFSAMPLE_H
#define RANGEFILTER_RFSAMPLE_H

#include "postgres.h"

#include "filter/snarf/leading.h"
#include "key/codec.h"
#include "nodes/pg_list.h"
#include "storage/block.h"
#include "utils/relcache.h"

/* A partition's keys, ascending. */
typedef struct RfPartSample
{
	Oid			table;
	RfKey	   *keys;
	uint64	   *places;			/* of the keys on the line of numbers */
	int			n;
	int			nrows;			/* read, NULLs included */
	double		rows;			/* there are in the partition, with a key */
	double		distinct;		/* keys there are */
	int			seen;			/* distinct keys in the sample */
	double		present;		/* the probability that a row of another
								 * partition has a key this one has, too */
} RfPartSample;

typedef struct RfSample
{
	const RfCodec *codec;
	int			npartitions;	/* there are */
	int			nparts;			/* of them with keys in the sample */
	RfPartSample *parts;
	int			nsampled;		/* of them read */
	double		rows;			/* of those read */
	uint8		shared[LEADING_MAX_SHARED]; /* all byte keys begin so */
	uint32		shared_len;
	double		length;			/* of byte keys, on the average */
} RfSample;

extern AttrNumber rf_sampled_column(Relation table, const char *column,
									const RfCodec *codec);
extern RfSample *rf_sample_column(List *tables, const char *column,
								  const RfCodec *codec);
extern double rf_skipped_by_points(const RfSample *sample);
extern double rf_skipped_by_ranges(const RfSample *sample, double width);

/* rfspread.c */
typedef struct RfSpread RfSpread;

extern RfSpread *rf_spread_read(Oid oid, const char *column,
								const RfCodec *codec);
extern BlockNumber rf_spread_blocks(const RfSpread *spread, double *rows);
extern double rf_spread_share(const RfSpread *spread, BlockNumber range);

#endif							/* RANGEFILTER_RFSAMPLE_H */
