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

#include "key/codec.h"
#include "nodes/pg_list.h"
#include "storage/block.h"
#include "utils/relcache.h"

/* The key of a row, and the heap block of the row. */
typedef struct RfSampleKey
{
	RfKey		key;			/* first, for rf_key_sort_compare() */
	BlockNumber block;
} RfSampleKey;

/* A partition's keys, ascending. */
typedef struct RfPartSample
{
	Oid			table;
	RfSampleKey *keys;
	uint64	   *places;			/* of the keys on the line of numbers */
	int			n;
	int			nrows;			/* read, NULLs included */
	double		read;			/* share of the blocks */
	double		rows;			/* there are in the partition, with a key */
	double		distinct;		/* keys there are */
	int			seen;			/* distinct keys in the sample */
	double		present;		/* the probability that a row of another
								 * partition has a key this one has, too */
} RfPartSample;

struct RfTagged;

/* The most bytes of a prefix that all keys share. */
#define RF_SAMPLE_SHARED 256

typedef struct RfSample
{
	const RfCodec *codec;
	int			npartitions;	/* there are */
	int			nparts;			/* of them with keys in the sample */
	RfPartSample *parts;
	int			nsampled;		/* of them read */
	struct RfTagged *tagged;	/* the keys of all, ascending ... */
	int			ntagged;		/* ... and how many they are */
	double		rows;			/* of those read */
	uint8		shared[RF_SAMPLE_SHARED];	/* all byte keys begin so */
	uint32		shared_len;
	double		length;			/* of byte keys, on the average */
} RfSample;

extern RfSample *rf_sample_column(List *tables, const char *column,
								  const RfCodec *codec);
extern double rf_skipped_by_points(const RfSample *sample);
extern double rf_skipped_by_ranges(const RfSample *sample, double width);

/* Values that are in few partitions only. */
typedef struct RfRare
{
	int			values;			/* distinct ones in the sample */
	int			rare;			/* of them those that are meant */
	double		skipped;		/* share of partitions that a query for one of
								 * these skips on average */
} RfRare;

extern void rf_find_rare(const RfSample *sample, double least, RfRare *rare);

#endif							/* RANGEFILTER_RFSAMPLE_H */
