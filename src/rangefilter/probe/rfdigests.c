/*-------------------------------------------------------------------------
 *
 * rfdigests.c
 *	  Columns of digest matrices: putting, adding to, and reading them.
 *
 * A matrix is 64 columns of bits, for the digests of 64 indexes;
 * RfDigestColumn in probe.h describes a column.  Any session may put a digest
 * into a column, and all may read.
 *
 * Changing a matrix takes the store's lock exclusively.  Reading takes no
 * lock: each matrix has a number, "writes", that is odd while the matrix is
 * being changed and even afterwards, and never the same again.  If the number
 * is the same before and after reading columns and bits, they belong together.
 *
 * A matrix may be outdated.  So a caller who relies on a column checks its index,
 * its file, and its validity.  An insert that writes a key adds it to the shared
 * digest of its index under its lock, which does not become outdated then.  It moves
 * "additions" likewise, not "writes": readers look at the columns again, for their versions.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "key/rowkey.h"
#include "miscadmin.h"
#include "rangefilter/page/shared.h"
#include "rangefilter/probe/digeststore.h"

/* So often columns are copied without the lock, where they change meanwhile. */
#define COPIES_TRIED	3

/* Seconds: the time a matrix was asked is noted no more often than this. */
#define NOTE_USE	2

/*
 * Inserts find the column of an index by a hash table, the store's places.  An
 * index may use one of PLACES_TRIED places that follow each other.
 */
#define PLACES_TRIED	4

/*
 * Makes a matrix without digests, if there is room.  It replaces an existing matrix only if that
 * one is still as it was when the view old was made.
 */
void
rf_digests_make(Oid index, int number, const FilterDigest *buckets,
				const RfDigestView *old)
{
	int			i;
	RfDigestMatrix *matrix;

	if (!rf_need_digest_store())
		return;
	rf_lock_digests(LW_EXCLUSIVE);
	matrix = rf_find_matrix(index, number);
	if (matrix != NULL && matrix == old->matrix &&
		pg_atomic_read_u64(&matrix->writes) == old->writes)
	{
		rf_free_matrix(matrix - rf_digest_store->matrices);
		matrix = NULL;
	}
	if (matrix == NULL &&
		(i = rf_allocate_matrix(filter_digests_words(buckets->nbits))) >= 0)
	{
		matrix = &rf_digest_store->matrices[i];
		rf_begin_change(matrix);
		matrix->buckets = *buckets;
		matrix->buckets.bits = NULL;
		matrix->used = 0;
		memset(matrix->columns, 0, sizeof(matrix->columns));
		rf_digest_store->keys[i].database = MyDatabaseId;
		rf_digest_store->keys[i].index = index;
		rf_digest_store->keys[i].number = number;
		pg_atomic_write_u64(&matrix->used_at, rf_this_second());
		rf_end_change(matrix);
	}
	rf_unlock_digests();
}

/*
 * Is this the matrix of 64 leaves of an index?  Without the lock, only until it changes.
 */
static bool
is_matrix_of(const RfDigestMatrix *matrix, Oid index, int number)
{
	const RfMatrixKey *key = &rf_digest_store->keys[matrix - rf_digest_store->matrices];

	return key->index == index && key->number == number && rf_matrix_is_ours(key);
}

/*
 * Copies what a matrix says of its columns.  Without the lock, this fails where it changes
 * meanwhile, or has become another's.
 */
static bool
copy_columns(RfDigestMatrix *matrix, Oid index, int number, RfDigestView *view)
{
	view->writes = pg_atomic_read_u64(&matrix->writes);
	view->additions = pg_atomic_read_u64(&matrix->additions);
	if (((view->writes | view->additions) & 1) != 0)
		return false;
	pg_read_barrier();
	view->rows = matrix->rows;
	view->buckets = matrix->buckets;
	memcpy(view->columns, matrix->columns, sizeof(matrix->columns));
	if (!is_matrix_of(matrix, index, number))
		return false;
	pg_read_barrier();
	if (pg_atomic_read_u64(&matrix->writes) != view->writes ||
		pg_atomic_read_u64(&matrix->additions) != view->additions)
		return false;
	view->matrix = matrix;
	return true;
}

/*
 * See probe.h.
 */
bool
rf_digests_view(Oid index, int number, RfDigestView *view)
{
	RfDigestMatrix *matrix;

	view->matrix = NULL;
	if (rf_digest_store == NULL)
		return false;
	for (int i = 0; i < COPIES_TRIED; i++)
	{
		matrix = rf_find_matrix(index, number);
		if (matrix == NULL || copy_columns(matrix, index, number, view))
			return matrix != NULL;
	}

	/* Whoever changes it may be waiting for a processor. */
	rf_lock_digests(LW_SHARED);
	matrix = rf_find_matrix(index, number);
	if (matrix != NULL)
		(void) copy_columns(matrix, index, number, view);
	rf_unlock_digests();
	return view->matrix != NULL;
}

/*
 * Is the matrix as it was when it was looked at? If so, what was read from its rows since then
 * belongs to the columns of the view.
 */
bool
rf_digests_unchanged(const RfDigestView *view)
{
	uint64		writes;

	/* The caller has read rows before, and may read more after this. */
	pg_read_barrier();
	writes = pg_atomic_read_u64(&view->matrix->writes);
	pg_read_barrier();
	return writes == view->writes;
}

/*
 * Have keys been added since the matrix was looked at? Then the view has outdated versions of some
 * columns.  For these versions it stays true.  False while a key is being added: a later look
 * finds it.
 */
bool
rf_digests_have_more(const RfDigestView *view)
{
	uint64		additions = pg_atomic_read_u64(&view->matrix->additions);

	return additions != view->additions && (additions & 1) == 0;
}

/*
 * Notes that the matrix is in use.
 */
void
rf_digests_used(const RfDigestView *view)
{
	uint64		now = rf_this_second();

	if (pg_atomic_read_u64(&view->matrix->used_at) + NOTE_USE < now)
		pg_atomic_write_u64(&view->matrix->used_at, now);
}

/*
 * A column's number in the whole store, from 1 on.
 */
static uint32
column_number(const RfDigestMatrix *matrix, int number)
{
	return (matrix - rf_digest_store->matrices) * FILTER_DIGESTS + number + 1;
}

/*
 * The matrix of the column with a number.
 */
static RfDigestMatrix *
matrix_numbered(uint32 number)
{
	return &rf_digest_store->matrices[(number - 1) / FILTER_DIGESTS];
}

/*
 * The column with a number, which is not 0.
 */
static RfDigestColumn *
column_numbered(uint32 number)
{
	return &matrix_numbered(number)->columns[(number - 1) % FILTER_DIGESTS];
}

/*
 * The column with a number, if it is that of an index in this file, else
 * NULL.  The lock is held.
 */
static RfDigestColumn *
column_of(uint32 number, Oid index, const RfRelFile *locator)
{
	RfDigestColumn *column;

	if (number == 0)
		return NULL;
	column = column_numbered(number);
	return column->index == index && RF_SAME_RELFILE(column->locator, *locator) ?
		column : NULL;
}

/*
 * May a place be used for another column?  It may if it is empty, its column
 * is empty, or its column belongs to an index with other places.  The lock is
 * held.
 */
static bool
is_free(uint32 place)
{
	uint32		number = rf_digest_places[place];
	Oid			index;

	if (number == 0)
		return true;
	index = column_numbered(number)->index;
	return !OidIsValid(index) ||
		(place - murmurhash32(index)) % RF_DIGEST_PLACES >= PLACES_TRIED;
}

/*
 * The place at which to find an index's column, or to put it: its own, else a
 * free one, else the first.  The lock is held.
 */
static uint32 *
place_of(Oid index, const RfRelFile *locator)
{
	uint32		first = murmurhash32(index);
	uint32		best = first % RF_DIGEST_PLACES;

	for (int i = PLACES_TRIED - 1; i >= 0; i--)
	{
		uint32		place = (first + i) % RF_DIGEST_PLACES;

		if (column_of(rf_digest_places[place], index, locator) != NULL)
			return &rf_digest_places[place];
		if (is_free(place))
			best = place;
	}
	return &rf_digest_places[best];
}

/*
 * May the index have a column?  Taking no lock, this may miss one that is being put:
 * that has an older version than its index by now, and nobody takes it for current.
 */
static bool
may_have_column(Oid index)
{
	uint32		first = murmurhash32(index);

	for (int i = 0; i < PLACES_TRIED; i++)
		if (((volatile uint32 *) rf_digest_places)[(first + i) % RF_DIGEST_PLACES] != 0)
			return true;
	return false;
}

/*
 * Adds a key to a column.  The lock is held, and nothing may raise an error.
 */
static void
add_key(RfDigestMatrix *matrix, unsigned column, const RfCodec *codec, const RfKey *key)
{
	uint64		numbers[RF_MAX_COLUMNS];
	int			n = rf_key_numbers(&matrix->buckets, codec, key, numbers);

	for (int i = 0; i < n; i++)
		filter_digests_add(&matrix->buckets, matrix->rows, column, numbers[i]);
}

/*
 * See probe.h.
 */
void
rf_digests_add(Relation index, const RfSummaryVersion *before,
			   const RfSummaryVersion *after, const RfKey *key)
{
	const RfRelFile *locator = &RF_RELFILE(index);
	Oid			oid = RelationGetRelid(index);
	const RfCodec *codec = rf_index_codec(index);
	uint32		number;
	RfDigestColumn *column;

	if (!rf_digests_are_shared() || !may_have_column(oid))
		return;
	rf_lock_digests(LW_EXCLUSIVE);
	number = *place_of(oid, locator);
	column = column_of(number, oid, locator);
	if (column != NULL && rf_same_version(&column->version, before))
	{
		RfDigestMatrix *matrix = matrix_numbered(number);

		/* Nothing until the number is even again may raise an error. */
		(void) pg_atomic_fetch_add_u64(&matrix->additions, 1);
		if (key != NULL)
			add_key(matrix, (number - 1) % FILTER_DIGESTS, codec, key);
		column->version = *after;
		column->validity = rf_read_change_counter(oid);
		(void) pg_atomic_fetch_add_u64(&matrix->additions, 1);
	}
	rf_unlock_digests();
}

/*
 * Puts a digest with the matrix's buckets into a column, and brings the view up to date.  Does
 * nothing if the matrix has changed since the look.
 */
void
rf_digests_put(RfDigestView *view, const FilterDigest *digest, int number,
			   const RfDigestColumn *column)
{
	RfDigestMatrix *matrix = view->matrix;

	rf_lock_digests(LW_EXCLUSIVE);
	if (pg_atomic_read_u64(&matrix->writes) == view->writes)
	{
		rf_begin_change(matrix);
		filter_digest_put(matrix->rows, digest, number, !(matrix->used >> number & 1));
		matrix->used |= UINT64CONST(1) << number;
		matrix->columns[number] = *column;
		if (rf_digests_are_shared())
			*place_of(column->index, &column->locator) = column_number(matrix, number);
		rf_end_change(matrix);
		view->writes = pg_atomic_read_u64(&matrix->writes);
		view->columns[number] = *column;
	}
	rf_unlock_digests();
}

/*
 * Counts the columns in shared matrices of this database that are not
 * outdated, and the bytes of all its shared matrices.
 */
void
rf_digests_usage(int64 *columns, int64 *bytes)
{
	*columns = *bytes = 0;
	if (!rf_digests_are_shared())
		return;
	rf_lock_digests(LW_SHARED);
	for (int i = 0; i < rf_digest_store->nmatrices; i++)
	{
		if (!rf_matrix_is_ours(&rf_digest_store->keys[i]))
			continue;
		*bytes += rf_matrix_size(&rf_digest_store->matrices[i]);
		for (int j = 0; j < FILTER_DIGESTS; j++)
		{
			const RfDigestColumn *column = &rf_digest_store->matrices[i].columns[j];

			*columns += OidIsValid(column->index) &&
				column->validity == rf_read_change_counter(column->index);
		}
	}
	rf_unlock_digests();
}
