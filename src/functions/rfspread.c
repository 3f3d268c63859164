/*-------------------------------------------------------------------------
 *
 * rfspread.c
 *	  How a column's values are spread over a table's blocks, from a sample.
 *
 * For rangefilter_advise(): which share of the blocks must a bitmap scan for
 * one value read, if the index distinguishes ranges of a given size?  This
 * depends on whether rows with the same value are near each other.  So whole
 * windows of consecutive blocks are read, at random places; a small table is
 * read whole.  The ranges with a value are counted in the value's own window.
 * Of all ranges outside, the same share is assumed to have the value as of the
 * ranges in the other windows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/table.h"
#include "catalog/pg_am_d.h"
#include "common/hashfn.h"
#include "nodes/makefuncs.h"
#include "rangefilter/summarize/summarize.h"
#include "functions/rfsample.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/sampling.h"

/* How much is read, and the length of a window in a table that has more blocks. */
#define RF_SPREAD_BLOCKS	4000
#define RF_SPREAD_WINDOW	128

#define RF_SPREAD_SEED		4712

/* A row with a key. */
typedef struct RfPlaced
{
	uint64		hash;			/* of the key */
	BlockNumber block;
} RfPlaced;

struct RfSpread
{
	const RfCodec *codec;
	RfPlaced   *rows;
	Size		nrows;
	Size		size;
	BlockNumber nblocks;		/* of the table */
	BlockNumber nread;
	BlockNumber window;			/* blocks */
};

/*
 * RfTupleCallback
 */
static void
take_row(void *arg, const RfHeapTuple *tuple)
{
	RfSpread   *spread = arg;
	RfPlaced   *row;

	if (!tuple->settled || tuple->recently_dead || tuple->isnull)
		return;
	if (spread->nrows == spread->size)
	{
		spread->size *= 2;
		spread->rows = repalloc_huge(spread->rows,
									 spread->size * sizeof(RfPlaced));
	}
	row = &spread->rows[spread->nrows++];
	row->block = ItemPointerGetBlockNumber(&tuple->tid);
	row->hash = spread->codec->kind == RF_KEY_BYTES ?
		hash_bytes_extended(tuple->key.data, tuple->key.len, 0) :
		hash_bytes_extended((const unsigned char *) &tuple->key.num,
							sizeof(tuple->key.num), 0);
}

/*
 * qsort() comparator: RfPlaced by the hash of the key, then by heap block.
 */
static int
compare_rows(const void *a, const void *b)
{
	const RfPlaced *x = a;
	const RfPlaced *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->block < y->block ? -1 : x->block > y->block;
}

/*
 * Reads windows of a table, or all of it.
 */
static void
read_windows(Relation table, AttrNumber attno, RfSpread *spread)
{
	BlockSamplerData windows;
	RfHeapScan	scan = {0};

	spread->window = spread->nblocks <= RF_SPREAD_BLOCKS ?
		Max(spread->nblocks, 1) : RF_SPREAD_WINDOW;
	scan.heap = table;
	scan.index_info = makeNode(IndexInfo);
	scan.index_info->ii_NumIndexAttrs = 1;
	scan.index_info->ii_NumIndexKeyAttrs = 1;
	scan.index_info->ii_IndexAttrNumbers[0] = attno;
	scan.codec = spread->codec;
	scan.callback = take_row;
	scan.arg = spread;
	BlockSampler_Init(&windows,
					  spread->nblocks / spread->window +
					  (spread->nblocks % spread->window != 0),
					  RF_SPREAD_BLOCKS / spread->window, RF_SPREAD_SEED);
	while (BlockSampler_HasMore(&windows))
	{
		scan.start = BlockSampler_Next(&windows) * spread->window;
		scan.end = scan.start + Min(spread->window, spread->nblocks - scan.start);
		rf_scan_heap(&scan);
		spread->nread += scan.end - scan.start;
	}
	qsort(spread->rows, spread->nrows, sizeof(RfPlaced), compare_rows);
}

/*
 * Begins a sample of a table; NULL where nothing can be read.
 */
RfSpread *
rf_spread_read(Oid oid, const char *column, const RfCodec *codec)
{
	Relation	table = try_table_open(oid, AccessShareLock);
	AttrNumber	attno;
	RfSpread   *spread = palloc0(sizeof(RfSpread));

	if (table == NULL)
		return NULL;
	spread->codec = codec;
	spread->size = 1024;
	spread->rows = palloc(spread->size * sizeof(RfPlaced));
	attno = rf_sampled_column(table, column, codec);
	if (attno > 0)
	{
		spread->nblocks = RelationGetNumberOfBlocks(table);
		read_windows(table, attno, spread);
	}
	table_close(table, AccessShareLock);
	return spread->nrows > 0 ? spread : NULL;
}

/*
 * Blocks of the table, and rows it is expected to have with a key.
 */
BlockNumber
rf_spread_blocks(const RfSpread *spread, double *rows)
{
	*rows = (double) spread->nrows * spread->nblocks / spread->nread;
	return spread->nblocks;
}

/*
 * How many ranges of blocks hold at least one of some rows?  The rows are in
 * order.  Counts from *first to the last row with the same quotient of block
 * and limit, and moves *first behind it.
 */
static double
count_ranges(const RfPlaced *rows, Size *first, Size end, BlockNumber range,
			 BlockNumber limit)
{
	BlockNumber part = rows[*first].block / limit;
	double		n = 0;
	Size		i;

	for (i = *first; i < end && rows[i].block / limit == part; i++)
		n += i == *first || rows[i].block / range != rows[i - 1].block / range;
	*first = i;
	return n;
}

/*
 * The share of the table's blocks in ranges of "range" blocks that hold a
 * value, averaged over all rows' values.
 */
double
rf_spread_share(const RfSpread *spread, BlockNumber range)
{
	const RfPlaced *rows = spread->rows;
	double		sum = 0;
	double		elsewhere;

	/* Ranges in other windows for each such range that was read. */
	elsewhere = spread->nread <= spread->window ? 0 :
		(double) (spread->nblocks - spread->window) /
		(spread->nread - spread->window);
	for (Size first = 0, end; first < spread->nrows; first = end)
	{
		Size		i = first;
		double		all;

		for (end = first; end < spread->nrows &&
			 rows[end].hash == rows[first].hash; end++)
			 /* find the end */ ;
		all = count_ranges(rows, &i, end, range, spread->nblocks);
		for (i = first; i < end;)
		{
			Size		start = i;
			double		own = count_ranges(rows, &i, end, range,
										   spread->window);

			sum += (i - start) * (own + (all - own) * elsewhere);
		}
	}
	return Min(sum / spread->nrows * range / spread->nblocks, 1);
}
