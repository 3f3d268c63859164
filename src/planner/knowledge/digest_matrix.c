/*-------------------------------------------------------------------------
 *
 * digest_matrix.c
 *	  Digest matrices: digests of a table's partitions, side by side.
 *
 * Asking a thousand cached metapages means waiting a thousand times for
 * memory.  If the partitions' keys span about the same numbers and are about
 * as many, the digests of their filters can have the same buckets.  Then 64 of
 * them lie side by side, with a word for each bucket, and a look at one word
 * asks them all.
 *
 * A partition's column is determined by its place among the index's leaves.
 * All sessions share the matrices if the server preloaded the library;
 * otherwise a session has its own (rangefilter/probe/rfdigeststore.c).  A column
 * of the same index and file as the session's leaf is as reliable as a cached
 * metapage.  The set of these columns is remembered for the whole matrix as
 * long as nothing changes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "filter/base/bits.h"
#include "key/rowkey.h"
#include "planner/knowledge/knowledge.h"
#include "port/pg_bitutils.h"
#include "rangefilter/page/shared.h"
#include "rangefilter/probe/probe.h"
#include "stats/session.h"
#include "utils/memutils.h"

/* A matrix with fewer leaves than this would waste memory. */
#define FEWEST_LEAVES	(FILTER_DIGESTS / 2)

/* One leaf in OUTLIERS may have keys far from those of the others. */
#define OUTLIERS		16

/*
 * Matrices have up to FINER times the bits they need if the index's matrices then take no more
 * than half of the room that other indexes leave.
 */
#define FINER			16

/* One bit of so many is for buckets, where these have parts. */
#define BITS_PER_BUCKET	2

/* If there was no room for a matrix, the next TRIES_LEFT_OUT tries are left out. */
#define TRIES_LEFT_OUT	16

/*
 * How many leaves are in a matrix.
 */
static int
count_leaves(const RfIndex *index, int number)
{
	return Min(FILTER_DIGESTS, index->nleaves - number * FILTER_DIGESTS);
}

/*
 * Fills in the spans of a matrix's leaves that can have digests.  Returns how many there are.
 */
static int
read_spans(const RfIndex *index, int number, RfSpan *spans)
{
	int			n = 0;

	for (int i = 0; i < count_leaves(index, number); i++)
	{
		const RfLeaf *leaf = rf_leaf_at(index, number * FILTER_DIGESTS + i);

		if (leaf->cached != NULL && rf_cached_meta_span(leaf->cached, &spans[n]))
			n++;
	}
	return n;
}

/*
 * Span number i of those that read_spans() has filled in.
 */
static inline const RfSpan *
span_at(const RfSpan *spans, int n, int i)
{
	Assert(i >= 0 && i < n);
	return &spans[i];
}

/*
 * Sets the buckets' span to that of all leaves, but at most an eighth beyond
 * the span of most of them.
 */
static void
choose_span(FilterDigest *buckets, const RfSpan *spans, int n)
{
	uint64		mins[FILTER_DIGESTS];
	uint64		maxs[FILTER_DIGESTS];
	uint64		low;
	uint64		high;
	uint64		margin;

	for (int i = 0; i < n; i++)
	{
		mins[i] = span_at(spans, n, i)->min;
		maxs[i] = span_at(spans, n, i)->max;
	}
	qsort(mins, n, sizeof(uint64), bits_compare64);
	qsort(maxs, n, sizeof(uint64), bits_compare64);
	low = mins[n / OUTLIERS];
	high = Max(low, maxs[n - 1 - n / OUTLIERS]);
	margin = (high - low) / 8;
	filter_digest_set_buckets(buckets, low - Min(margin, low - mins[0]),
							  high + Min(margin, Max(high, maxs[n - 1]) - high));
}

/*
 * Doubles the bits of a digest of nkeys keys while there is room for all the index's matrices:
 * first for parts of buckets, then for more buckets, too.  Without room there are no parts.
 */
static void
use_room(FilterDigest *buckets, uint64 nkeys, Size room, int nleaves)
{
	uint32		least = rf_digest_bits(nkeys);
	uint32		nbits = least;

	while (nbits < FINER * least && 2 * filter_digest_size(nbits) * nleaves <= room / 2 &&
		   2 * nbits <= FILTER_DIGEST_MOST)
		nbits *= 2;
	buckets->nbits = nbits;
	buckets->nbuckets = Max(least, nbits / BITS_PER_BUCKET);
}

/*
 * Chooses buckets that suit most leaves of a matrix; nbits = 0 if there are none that do.
 */
static void
choose_buckets(FilterDigest *buckets, const RfIndex *index, int number)
{
	Size		room = rf_digests_room(index->oid);
	RfSpan		spans[FILTER_DIGESTS];
	int			n = room > 0 ? read_spans(index, number, spans) : 0;
	uint64		nkeys = 0;
	int			fit = 0;

	memset(buckets, 0, sizeof(*buckets));
	for (int i = 0; i < n; i++)
		nkeys += span_at(spans, n, i)->nkeys;
	if (n < count_leaves(index, number) / 2 || nkeys < n)
		return;
	buckets->of_hashes = span_at(spans, n, 0)->of_hashes;
	use_room(buckets, nkeys / n, room, index->nleaves);
	choose_span(buckets, spans, n);
	for (int i = 0; i < n; i++)
		fit += rf_span_fits(span_at(spans, n, i), buckets);
	if (fit < n - n / 4)
		buckets->nbits = 0;
}

/*
 * Makes the array of matrices of an index, with views of those that exist.
 */
void
rf_need_matrices(RfTable *table, RfIndex *index)
{
	int			n;

	if (index->matrices != NULL)
		return;
	if (!index->mapped)
		rf_map_leaves(table, index);
	n = (index->nleaves + FILTER_DIGESTS - FEWEST_LEAVES) / FILTER_DIGESTS;
	index->matrices = MemoryContextAlloc(rf_metacache_context(table),
										 offsetof(RfMatrixStates, states) +
										 n * sizeof(RfMatrixState) +
										 (index->nleaves + 1) * sizeof(Oid));
	rf_cache_used += GetMemoryChunkSpace(index->matrices);
	index->matrices->n = n;
	index->matrices->oids = (Oid *) &index->matrices->states[n];
	for (int i = 0; i < index->nleaves; i++)
		index->matrices->oids[i] = rf_leaf_at(index, i)->leaf;
	for (int i = 0; i < n; i++)
	{
		RfMatrixState *matrix = rf_matrix_at(index, i);

		memset(matrix, 0, offsetof(RfMatrixState, view));
		(void) rf_digests_view(index->oid, i, &matrix->view);
	}
	table->has_cached_metas = true;
}

/*
 * Throws away the views of an index's matrices, and the matrices that are the
 * session's own.
 */
void
rf_forget_matrices(RfIndex *index)
{
	if (index->matrices == NULL)
		return;
	rf_collect_denials(index);
	for (int i = 0; i < index->matrices->n; i++)
		rf_digests_forget(index->oid, i);
	rf_cache_used -= GetMemoryChunkSpace(index->matrices);
	pfree(index->matrices);
	index->matrices = NULL;
}

/*
 * Finds out which columns of a matrix are current (of the leaves' indexes in
 * their present files) and which of these are certainly true now.  Does
 * nothing if nothing has changed since the last time.  now is the clock;
 * invalidations were absorbed since it was read.
 */
static void
find_current(RfIndex *index, int number, RfClock now)
{
	RfMatrixState *matrix = rf_matrix_at(index, number);
	uint64		moves = rf_read_moves();
	uint64		checked_at = moves != 0 ? moves : now;

	if (matrix->checked_at == checked_at && matrix->changes == rf_changes())
		return;

	/* The numbers are read before the counters whose changes they count. */
	matrix->checked_at = checked_at;
	matrix->changes = rf_changes();
	matrix->current = matrix->certain = 0;
	for (int i = 0; i < count_leaves(index, number); i++)
	{
		RfLeaf	   *leaf = rf_leaf_at(index, number * FILTER_DIGESTS + i);
		const RfDigestColumn *column = &matrix->view.columns[i];
		uint64		bit = UINT64CONST(1) << i;

		if (column->index != leaf->index || !rf_leaf_is_located(leaf) ||
			!RF_SAME_RELFILE(column->locator, leaf->locator))
			continue;
		if (moves == 0 ? column->validity >= now :
			column->validity == rf_leaf_validity(leaf, now))
			matrix->certain |= bit;

		/* Without change counters only a look at the index tells. */
		if (moves == 0 || (matrix->certain & bit) != 0)
			matrix->current |= bit;
	}
}

/*
 * Brings the view of a matrix up to date, and finds out which columns are
 * current.  False if there is no matrix.
 */
static bool
look_at_matrix(RfIndex *index, int number, RfClock now)
{
	RfMatrixState *matrix = rf_matrix_at(index, number);

	if (matrix->view.matrix == NULL || !rf_digests_unchanged(&matrix->view) ||
		rf_digests_have_more(&matrix->view))
	{
		matrix->checked_at = 0;
		if (!rf_digests_view(index->oid, number, &matrix->view))
		{
			matrix->current = matrix->certain = 0;
			return false;
		}
	}
	find_current(index, number, now);
	return true;
}

/*
 * Which columns of a matrix do not deny that there is a key in a range?  Digests of hashes
 * answer for ranges whose keys have some hash in common.
 */
static uint64
ask_range(const RfDigestView *view, const RfCodec *codec, const RfRange *range)
{
	const FilterDigest *buckets = &view->buckets;
	uint64		maybe = PG_UINT64_MAX;
	uint64		hashes[RF_MAX_COLUMNS];
	int			n;

	if (!buckets->of_hashes)
		return filter_digests_ask(buckets, view->rows, range->lo.num, range->hi.num);
	n = rf_range_hashes(codec, range, hashes);
	for (int i = 0; i < n; i++)
		maybe &= filter_digests_ask(buckets, view->rows, hashes[i], hashes[i]);
	return maybe;
}

/*
 * Which columns of a matrix deny that there is a key of the set?  The caller
 * uses only those in current; those in certain are true now.  None if the
 * matrix changes meanwhile.  Brings the view and these words up to date.  now
 * is the clock; invalidations were absorbed since it was read.
 */
uint64
rf_ask_matrix(RfIndex *index, int number, const RfKeySet *set, RfClock now)
{
	const RfMatrixState *matrix = rf_matrix_at(index, number);
	uint64		maybe = 0;

	if (matrix->view.matrix == NULL || !look_at_matrix(index, number, now) ||
		matrix->view.buckets.of_hashes != (set->kind == RF_KEY_BYTES))
		return 0;
	for (int i = 0; i < set->nranges && maybe != PG_UINT64_MAX; i++)
		maybe |= ask_range(&matrix->view, index->codec, &set->ranges[i]);
	rf_digests_used(&matrix->view);
	return rf_digests_unchanged(&matrix->view) ? ~maybe : 0;
}

/*
 * The matrix in which a leaf has a column, or NULL.  *column is the column's
 * number.
 */
static RfMatrixState *
matrix_of(const RfIndex *index, const RfLeaf *leaf, int *column)
{
	int			position = leaf - index->leaves;

	*column = position % FILTER_DIGESTS;
	if (index->matrices == NULL ||
		position / FILTER_DIGESTS >= index->matrices->n)
		return NULL;
	return rf_matrix_at(index, position / FILTER_DIGESTS);
}

/*
 * May a digest of a leaf's index be put into its matrix?  Not if the leaf's
 * column is current.
 */
bool
rf_may_have_column(const RfIndex *index, const RfLeaf *leaf)
{
	int			column;
	const RfMatrixState *matrix = matrix_of(index, leaf, &column);

	return matrix != NULL && (matrix->current >> column & 1) == 0;
}

/*
 * Are a matrix's buckets outdated?  They are if the leaf does not fit, and few
 * columns are current.
 */
static bool
is_outdated(const RfIndex *index, int number, const RfLeaf *leaf)
{
	const RfMatrixState *matrix = rf_matrix_at(index, number);
	RfSpan		span;

	return pg_popcount64(matrix->current) < count_leaves(index, number) / 4 &&
		rf_cached_meta_span(leaf->cached, &span) &&
		!rf_span_fits(&span, &matrix->view.buckets);
}

/*
 * Makes a matrix for a digest of a leaf's index, if there is none and there can
 * be one.
 */
static void
need_matrix(RfIndex *index, int number, const RfLeaf *leaf, RfClock now)
{
	RfMatrixState *matrix = rf_matrix_at(index, number);
	FilterDigest buckets;

	if (look_at_matrix(index, number, now) && !is_outdated(index, number, leaf))
		return;
	if (matrix->tries_left_out > 0)
	{
		matrix->tries_left_out--;
		return;
	}
	choose_buckets(&buckets, index, number);
	if (buckets.nbits == 0)
		return;
	rf_digests_make(index->oid, number, &buckets, &matrix->view);

	/* There may be no room, which may change soon. */
	if (!look_at_matrix(index, number, now))
		matrix->tries_left_out = TRIES_LEFT_OUT;
}

/*
 * Makes a digest of a leaf's cached metapage and puts it into the matrix, if
 * there is a matrix and the digest fits, and if nobody else has done so.  The
 * index is locked and located.  False if the leaf has no digest afterwards.
 */
bool
rf_put_digest(RfIndex *index, RfLeaf *leaf, RfClock now)
{
	int			column;
	RfMatrixState *matrix = matrix_of(index, leaf, &column);
	FilterDigest digest;
	RfDigestColumn what;
	bool		exists;

	need_matrix(index, matrix - index->matrices->states, leaf, now);
	exists = (matrix->current >> column & 1) != 0;
	if (exists ||
		!rf_cached_meta_digest(leaf->cached, &leaf->locator,
							   matrix->view.matrix != NULL ? &matrix->view.buckets : NULL,
							   &digest))
		return exists;
	memset(&what, 0, sizeof(what));
	what.index = leaf->index;
	what.locator = leaf->locator;
	what.validity = leaf->validity;
	what.version = rf_cached_meta_version(leaf->cached);
	rf_digests_put(&matrix->view, &digest, column, &what);
	matrix->checked_at = 0;
	pfree(digest.bits);
	return true;
}

/*
 * Tells that a leaf's index was looked at, by its locator if it is located,
 * and had this version: see rf_leaf_checked().  Changes only this session's
 * view.
 */
void
rf_column_checked(RfIndex *index, const RfLeaf *leaf,
				  const RfSummaryVersion *version, uint64 validity)
{
	int			i;
	RfMatrixState *matrix = matrix_of(index, leaf, &i);
	RfDigestColumn *column;

	if (matrix == NULL || matrix->view.matrix == NULL)
		return;
	column = &matrix->view.columns[i];
	if (column->index != leaf->index)
		return;
	if (!rf_same_version(&column->version, version))
		column->index = InvalidOid;
	else if (column->validity != validity ||
			 !RF_SAME_RELFILE(column->locator, leaf->locator))
	{
		column->validity = validity;
		column->locator = leaf->locator;
	}
	else
		return;
	matrix->checked_at = 0;
}

/*
 * Counts a question and a NO for each leaf of a matrix whose bit is set.  If
 * these are most leaves, counts them for the whole matrix, and takes them back
 * from the others.
 */
void
rf_count_denials(RfIndex *index, int number, uint64 denied)
{
	RfLeaf	   *leaves = &index->leaves[number * FILTER_DIGESTS];
	uint64		others = ~denied &
	(PG_UINT64_MAX >> (FILTER_DIGESTS - count_leaves(index, number)));
	bool		most = pg_popcount64(others) < pg_popcount64(denied);
	uint32		one = most ? -1 : 1;

	if (most)
		rf_matrix_at(index, number)->denials++;
	for (uint64 bits = most ? others : denied; bits != 0; bits &= bits - 1)
	{
		RfLeaf	   *leaf = &leaves[pg_rightmost_one_pos64(bits)];

		leaf->probes += one;
		leaf->skips += one;
	}
}

/*
 * Moves the counts of matrices to their leaves.
 */
void
rf_collect_denials(RfIndex *index)
{
	for (int i = 0; index->matrices != NULL && i < index->matrices->n; i++)
	{
		RfMatrixState *matrix = rf_matrix_at(index, i);

		for (int j = 0; j < count_leaves(index, i); j++)
		{
			RfLeaf	   *leaf = rf_leaf_at(index, i * FILTER_DIGESTS + j);

			leaf->probes += matrix->denials;
			leaf->skips += matrix->denials;
		}
		matrix->denials = 0;
	}
}
