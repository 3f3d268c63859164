/*-------------------------------------------------------------------------
 *
 * rfsample.c
 *	  A sample of a column's keys over all partitions, and what follows from it.
 *
 * At most RF_SAMPLE_PARTS partitions are read, spread evenly over all; of each
 * random blocks, until there are enough rows.  The random numbers are always
 * the same ones, so that the same table gives the same answer.
 *
 * Which partitions hold the key of another partition's row?  Those whose
 * sample has it certainly do, but a sample misses most keys.  The sample has a
 * share of the partition's distinct keys (estimated as ANALYZE does, by the
 * keys seen once).  Keys that occur in other partitions are assumed to be as
 * likely in the sample as other keys.  So the number of them in the partition
 * is estimated by dividing by this share.
 *
 * Of a value that the sample has, the number of partitions that hold it can be estimated more
 * closely: see skipped_by_value().
 *
 * Which partitions hold a key of a range?  Those whose sample has one.  In
 * others the range lies between two keys of the sample, or outside.  Equal
 * numbers of keys are assumed between any two neighbours of the sample, spread
 * evenly.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/table.h"
#include "catalog/pg_am_d.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "port/pg_bswap.h"
#include "rangefilter/summarize/summarize.h"
#include "functions/rfsample.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/sampling.h"

/* How much is read. */
#define RF_SAMPLE_PARTS		100
#define RF_SAMPLE_BLOCKS	4000
#define RF_SAMPLE_ROWS		2000	/* in each partition */

/* How many ranges are tried. */
#define RF_SAMPLE_RANGES	500

#define RF_SAMPLE_SEED		4711

/* What a scan of one partition collects. */
typedef struct RfCollect
{
	RfSample   *sample;
	RfPartSample *part;
	int			size;
	int			nulls;
} RfCollect;

/*
 * RfTupleCallback: takes the key of a row that counts.
 */
static void
collect_row(void *arg, const RfHeapTuple *tuple)
{
	RfCollect  *collect = arg;
	RfPartSample *part = collect->part;
	RfKey		key = tuple->key;

	if (!tuple->settled || tuple->recently_dead)
		return;
	part->nrows++;
	if (tuple->isnull)
	{
		collect->nulls++;
		return;
	}
	if (part->n == collect->size)
	{
		collect->size *= 2;
		part->keys = repalloc(part->keys, collect->size * sizeof(RfSampleKey));
	}
	if (collect->sample->codec->kind == RF_KEY_BYTES)
		key.data = memcpy(MemoryContextAlloc(GetMemoryChunkContext(part->keys),
											 key.len + 1),
						  key.data, key.len);
	part->keys[part->n].key = key;
	part->keys[part->n++].block = ItemPointerGetBlockNumber(&tuple->tid);
}

/*
 * Reads random blocks of a table; returns how many of how many.
 */
static BlockNumber
read_blocks(Relation table, AttrNumber attno, RfCollect *collect, int most,
			BlockNumber *nblocks)
{
	BlockSamplerData blocks;
	BlockNumber nread = 0;
	RfHeapScan	scan = {0};

	scan.heap = table;
	scan.index_info = makeNode(IndexInfo);
	scan.index_info->ii_NumIndexAttrs = 1;
	scan.index_info->ii_NumIndexKeyAttrs = 1;
	scan.index_info->ii_IndexAttrNumbers[0] = attno;
	scan.codec = collect->sample->codec;
	scan.callback = collect_row;
	scan.arg = collect;
	*nblocks = RelationGetNumberOfBlocks(table);
	BlockSampler_Init(&blocks, *nblocks, most, RF_SAMPLE_SEED);
	while (collect->part->nrows < RF_SAMPLE_ROWS &&
		   BlockSampler_HasMore(&blocks))
	{
		scan.start = BlockSampler_Next(&blocks);
		scan.end = scan.start + 1;
		rf_scan_heap(&scan);
		nread++;
	}
	return nread;
}

/*
 * Sorts a partition's keys, and estimates how many distinct ones there are
 * (Haas and Stokes, as ANALYZE does).
 */
static void
count_distinct(const RfSample *sample, RfPartSample *part)
{
	RfKeyKind	kind = sample->codec->kind;
	int			once = 0;

	qsort_arg(part->keys, part->n, sizeof(RfSampleKey), rf_key_sort_compare, &kind);
	for (int i = 0, next; i < part->n; i = next)
	{
		for (next = i + 1; next < part->n; next++)
		{
			if (rf_key_compare(kind, &part->keys[i].key, &part->keys[next].key) != 0)
				break;
		}
		part->seen++;
		once += next == i + 1;
	}
	part->distinct = (double) part->n * part->seen /
		(part->n - once + once * part->n / part->rows);
	part->distinct = Max(part->seen, Min(part->distinct, part->rows));
}

/*
 * The number of a table's column of this name; 0 if there is none whose values
 * can be read and have this codec.  The table is locked only now, so the column
 * may be gone, or have another type, since the codec was chosen.
 */
static AttrNumber
sampled_column(Relation table, const char *column, const RfCodec *codec)
{
	AttrNumber	attno = get_attnum(RelationGetRelid(table), column);
	Form_pg_attribute attribute;

	if (attno <= 0 ||
		(table->rd_rel->relkind != RELKIND_RELATION &&
		 table->rd_rel->relkind != RELKIND_MATVIEW) ||
		table->rd_rel->relam != HEAP_TABLE_AM_OID ||
		RELATION_IS_OTHER_TEMP(table))
		return 0;
	attribute = TupleDescAttr(RelationGetDescr(table), attno - 1);
	return rf_codec_under(getBaseType(attribute->atttypid),
						  attribute->attcollation) == codec ? attno : 0;
}

/*
 * Reads a sample of a partition; false where it has no keys, or there is no
 * such table any more.
 */
static bool
sample_part(RfSample *sample, RfPartSample *part, Oid oid,
			const char *column, int most)
{
	Relation	table = try_table_open(oid, AccessShareLock);
	RfCollect	collect = {.sample = sample,.part = part,.size = 1024};
	AttrNumber	attno;
	BlockNumber nblocks = 0;
	BlockNumber nread = 0;

	if (table == NULL)
		return false;
	memset(part, 0, sizeof(*part));
	part->table = oid;
	part->keys = palloc(collect.size * sizeof(RfSampleKey));
	attno = sampled_column(table, column, sample->codec);
	if (attno > 0)
		nread = read_blocks(table, attno, &collect, most, &nblocks);
	table_close(table, AccessShareLock);
	if (nread > 0)
		sample->rows += (double) part->nrows * nblocks / nread;
	sample->nsampled++;
	if (part->n == 0)
		return false;
	part->rows = Max(part->n, (double) part->n * nblocks / nread);
	part->read = (double) nread / nblocks;
	count_distinct(sample, part);
	return true;
}

/*
 * Finds the bytes that all byte keys begin with, and the keys' average length.
 */
static void
find_shared(RfSample *sample)
{
	const RfKey *first = &sample->parts[0].keys[0].key;
	double		bytes = 0;
	double		n = 0;

	sample->shared_len = Min(first->len, sizeof(sample->shared));
	memcpy(sample->shared, first->data, sample->shared_len);
	for (int p = 0; p < sample->nparts; p++)
	{
		RfPartSample *part = &sample->parts[p];

		/*
		 * The keys are sorted: all share the bytes that the first and the
		 * last share.
		 */
		for (int end = 0; end < 2; end++)
		{
			const RfKey *key = &part->keys[end * (part->n - 1)].key;
			uint32		len = Min(key->len, sample->shared_len);
			uint32		i = 0;

			while (i < len && key->data[i] == sample->shared[i])
				i++;
			sample->shared_len = i;
		}
		for (int i = 0; i < part->n; i++)
			bytes += part->keys[i].key.len;
		n += part->n;
	}
	sample->length = bytes / n;
}

/*
 * The place of a key on a line of numbers.  Byte keys are placed by the eight
 * bytes behind the prefix that all of them share.
 */
static uint64
place_of(const RfSample *sample, const RfKey *key)
{
	uint64		place = 0;

	if (sample->codec->kind == RF_KEY_U64)
		return key->num;
	memcpy(&place, key->data + sample->shared_len,
		   Min(key->len - sample->shared_len, sizeof(place)));
	return pg_ntoh64(place);
}

/* A key of a partition among those of all. */
typedef struct RfTagged
{
	const RfSampleKey *key;
	int			part;
} RfTagged;

/*
 * qsort_arg() comparator: RfTagged by their keys, of the RfKeyKind that the argument points to,
 * then by partition and block.
 */
static int
compare_tagged(const void *a, const void *b, void *kind)
{
	const RfTagged *x = a;
	const RfTagged *y = b;
	int			order = rf_key_sort_compare(x->key, y->key, kind);

	if (order == 0)
		order = x->part - y->part;
	if (order == 0)
		order = (x->key->block > y->key->block) - (x->key->block < y->key->block);
	return order;
}

/*
 * Sorts the keys of all partitions.
 */
static void
tag_keys(RfSample *sample)
{
	RfKeyKind	kind = sample->codec->kind;
	int			n = 0;

	for (int p = 0; p < sample->nparts; p++)
		n += sample->parts[p].n;
	sample->tagged = palloc(n * sizeof(RfTagged));
	sample->ntagged = n;
	n = 0;
	for (int p = 0; p < sample->nparts; p++)
	{
		for (int i = 0; i < sample->parts[p].n; i++)
		{
			sample->tagged[n].key = &sample->parts[p].keys[i];
			sample->tagged[n++].part = p;
		}
	}
	qsort_arg(sample->tagged, n, sizeof(RfTagged), compare_tagged, &kind);
}

/*
 * The end of the rows with the same key as row number i of all.
 */
static int
end_of_key(const RfSample *sample, int i)
{
	const RfKey *key = &sample->tagged[i].key->key;

	CHECK_FOR_INTERRUPTS();
	do
		i++;
	while (i < sample->ntagged &&
		   rf_key_compare(sample->codec->kind, key,
						  &sample->tagged[i].key->key) == 0);
	return i;
}

/*
 * Estimates for each partition which share of the others' rows has keys of
 * this partition, from the share with keys of its sample.
 */
static void
find_present(RfSample *sample)
{
	double	   *own = palloc0(sample->nparts * sizeof(double));
	const RfTagged *tagged = sample->tagged;
	double		all = 0;

	for (int p = 0; p < sample->nparts; p++)
		all += sample->parts[p].rows;
	for (int i = 0, next; i < sample->ntagged; i = next)
	{
		double		sum = 0;

		/* A row in the sample stands for many. */
		next = end_of_key(sample, i);
		for (int j = i; j < next; j++)
		{
			RfPartSample *part = &sample->parts[tagged[j].part];

			own[tagged[j].part] += part->rows / part->n;
			sum += part->rows / part->n;
		}
		for (int j = i; j < next; j++)
		{
			RfPartSample *part = &sample->parts[tagged[j].part];

			if (own[tagged[j].part] == 0)
				continue;
			part->present += sum - own[tagged[j].part];
			own[tagged[j].part] = 0;
		}
	}
	for (int p = 0; p < sample->nparts; p++)
	{
		RfPartSample *part = &sample->parts[p];

		if (all > part->rows)
			part->present *= part->distinct / part->seen / (all - part->rows);
		part->present = Min(part->present, 1.0);
	}
}

/*
 * Samples a column of some tables.
 */
RfSample *
rf_sample_column(List *tables, const char *column, const RfCodec *codec)
{
	RfSample   *sample = palloc0(sizeof(RfSample));
	int			n = Min(list_length(tables), RF_SAMPLE_PARTS);

	sample->codec = codec;
	sample->npartitions = list_length(tables);
	sample->parts = palloc0((n + 1) * sizeof(RfPartSample));
	for (int i = 0; i < n; i++)
	{
		Oid			oid = list_nth_oid(tables,
									   (int64) i * list_length(tables) / n);

		CHECK_FOR_INTERRUPTS();
		if (sample_part(sample, &sample->parts[sample->nparts], oid, column,
						RF_SAMPLE_BLOCKS / n))
			sample->nparts++;
	}
	if (sample->nparts == 0)
		return sample;
	if (codec->kind == RF_KEY_BYTES)
		find_shared(sample);
	for (int p = 0; p < sample->nparts; p++)
	{
		RfPartSample *part = &sample->parts[p];

		part->places = palloc(part->n * sizeof(uint64));
		for (int i = 0; i < part->n; i++)
			part->places[i] = place_of(sample, &part->keys[i].key);
	}
	tag_keys(sample);
	find_present(sample);
	return sample;
}

/*
 * The share of all partitions that a query skips, if others is the expected
 * number of sampled partitions with a match besides the one that the value is
 * from.
 */
static double
share_skipped(const RfSample *sample, double others)
{
	double		n = sample->npartitions;

	if (sample->nsampled > 1)
		others *= (n - 1) / (sample->nsampled - 1);
	return 1 - Min(1 + others, n) / n;
}

/*
 * The share of partitions that queries for one value skip.  Each value is
 * asked for as often as there are rows with it.
 */
double
rf_skipped_by_points(const RfSample *sample)
{
	double		all = 0;
	double		others = 0;

	for (int p = 0; p < sample->nparts; p++)
		all += sample->parts[p].rows;
	for (int p = 0; p < sample->nparts; p++)
		others += sample->parts[p].present * (1 - sample->parts[p].rows / all);
	return share_skipped(sample, others);
}

/*
 * The probability that a sample shows that a value is in a partition, if it was found in so many
 * blocks on average where it was found, and a share of the blocks was read.  The value is in k
 * blocks of each partition that has it: so many that the average is what was found.
 */
static double
probability_found(double blocks, double read)
{
	double		low = 1;
	double		high = blocks / read;

	if (read >= 1)
		return 1;
	if (blocks <= 1)
		return read;
	for (int i = 0; i < 20; i++)
	{
		double		k = (low + high) / 2;

		if (k * read < blocks * (1 - pow(1 - read, k)))
			low = k;
		else
			high = k;
	}
	return 1 - pow(1 - read, low);
}

/*
 * The share of all partitions that a query for a value skips, whose rows in the sample are those
 * from number i to number end of all.  As blocks were read at random, it is known how likely they are to
 * miss the value.  The more they may have missed, the more partitions count as having it.  Chance is left a
 * margin of three standard deviations of both the partitions and the blocks found.
 */
static double
skipped_by_value(const RfSample *sample, double read, int i, int end)
{
	const RfTagged *tagged = sample->tagged;
	double		found = 0;		/* partitions */
	double		more = 0;		/* blocks than one in each */
	double		probability;

	for (int j = i; j < end; j++)
	{
		bool		same = j > i && tagged[j].part == tagged[j - 1].part;

		found += !same;
		more += same && tagged[j].key->block != tagged[j - 1].key->block;
	}
	more = Max(more - 3 * sqrt(more), 0);
	probability = probability_found(1 + more / found, read);
	found = (found + (1 - probability) * 3 * (sqrt(found) + 1)) / probability;
	return 1 - Min(found / sample->nsampled, 1);
}

/*
 * Finds the values for which queries skip at least this share of the partitions.
 */
void
rf_find_rare(const RfSample *sample, double least, RfRare *rare)
{
	double		read = 0;

	memset(rare, 0, sizeof(RfRare));
	for (int p = 0; p < sample->nparts; p++)
		read += sample->parts[p].read / sample->nparts;
	for (int i = 0, next; i < sample->ntagged; i = next)
	{
		double		skipped;

		next = end_of_key(sample, i);
		skipped = skipped_by_value(sample, read, i, next);
		rare->values++;
		if (skipped < least)
			continue;
		rare->rare++;
		rare->skipped += skipped;
	}
	if (rare->rare > 0)
		rare->skipped /= rare->rare;
}

/*
 * How many keys of a partition's sample are below a place.
 */
static int
keys_below(const RfPartSample *part, uint64 place)
{
	int			low = 0;
	int			high = part->n;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (part->places[middle] < place)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * The probability that a partition has keys in [lo, hi], if another partition
 * has.
 */
static double
range_present(const RfPartSample *part, uint64 lo, uint64 hi)
{
	int			i = keys_below(part, lo);
	double		between;
	double		width;

	if (i < part->n && part->places[i] <= hi)
		return 1;
	if (i == 0 || i == part->n)
		return 0;
	between = (part->distinct - part->seen) / Max(part->seen - 1, 1);
	width = (double) (hi - lo) + 1;
	return Max(part->present,
			   1 - exp(-between * width /
					   (double) (part->places[i] - part->places[i - 1])));
}

/*
 * A random row of the sample: its partition and its key's place.
 */
static int
random_row(const RfSample *sample, double all, pg_prng_state *random,
		   uint64 *place)
{
	double		row = pg_prng_double(random) * all;
	int			p = 0;
	int			i;

	while (p < sample->nparts - 1 && row >= sample->parts[p].rows)
		row -= sample->parts[p++].rows;
	i = pg_prng_double(random) * sample->parts[p].n;
	*place = sample->parts[p].places[i];
	return p;
}

/*
 * The share of partitions that a query for a range skips.  Ranges begin at the
 * value of a row.  Their width is given as a share of the distance from the
 * least to the greatest key.
 */
double
rf_skipped_by_ranges(const RfSample *sample, double width)
{
	pg_prng_state random;
	uint64		least = PG_UINT64_MAX;
	uint64		greatest = 0;
	double		all = 0;
	double		others = 0;

	for (int p = 0; p < sample->nparts; p++)
	{
		const RfPartSample *part = &sample->parts[p];

		least = Min(least, part->places[0]);
		greatest = Max(greatest, part->places[part->n - 1]);
		all += part->rows;
	}
	pg_prng_seed(&random, RF_SAMPLE_SEED);
	for (int i = 0; i < RF_SAMPLE_RANGES; i++)
	{
		uint64		lo;
		uint64		hi;
		int			from = random_row(sample, all, &random, &lo);

		CHECK_FOR_INTERRUPTS();
		hi = lo + (uint64) ((double) (greatest - least) * width);
		if (hi < lo)
			hi = PG_UINT64_MAX;
		for (int p = 0; p < sample->nparts; p++)
		{
			if (p != from)
				others += range_present(&sample->parts[p], lo, hi);
		}
	}
	return share_skipped(sample, others / RF_SAMPLE_RANGES);
}
