/*-------------------------------------------------------------------------
 *
 * rfdigestfile.c
 *	  The file that keeps shared digest matrices while the server is down.
 *
 * When the server is shut down properly, its matrices are written to a file in
 * pg_stat, which is read and removed at the next start.  So the first queries
 * after it need not read each partition's index from disk.
 *
 * A digest is true as long as its index has not changed.  Nothing changes while the server is
 * down.  A server that ran meanwhile has written another checkpoint at its end.  So a
 * file is used only if the last checkpoint is the shutdown at which the file was
 * written, of this database system.  If the server starts by replaying WAL
 * nevertheless, matrices that were loaded are not asked (rf_matrix_is_valid).
 *
 * How keys become bits is up to the code.  So the library must be made of the same
 * sources: the Makefile sums them up.
 *
 * Columns that were outdated by the end are left out.  The others become current by
 * the counters with which the server starts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "rangefilter/page/shared.h"
#include "rangefilter/probe/digeststore.h"
#include "stats/keptfile.h"
#include "storage/fd.h"

#define DIGEST_FILE	RF_KEPT_DIRECTORY "rangefilter.digests"
#define DIGEST_MAGIC	0x52464401

/* What the file begins with.  Keys, matrices and their rows follow. */
typedef struct DigestFileStart
{
	uint64		system;			/* database system */
	XLogRecPtr	checkpoint;		/* of the shutdown */
	int64		time;			/* of the checkpoint */
	uint64		sources;		/* sum of the library's */
} DigestFileStart;

/*
 * What a file that is written at this shutdown, or was at the last one, begins with.  False
 * if the server was not shut down properly, or in recovery.
 */
static bool
make_start(DigestFileStart *start)
{
	const ControlFileData *control = rf_shut_down_properly();

	if (control == NULL || control->state != DB_SHUTDOWNED)
		return false;
	start->system = control->system_identifier;
	start->checkpoint = control->checkPoint;
	start->time = control->checkPointCopy.time;
	start->sources = RF_SOURCES_SUM;
	return true;
}

/*
 * Reads the next matrix into place i of the store.  False at the end of the
 * file, and where there is no room.
 */
static bool
load_matrix(FILE *file, dsa_area * area, int i)
{
	RfMatrixKey key;
	RfDigestMatrix *matrix = &rf_digest_store->matrices[i];
	Size		size;

	if (fread(&key, sizeof(key), 1, file) != 1 ||
		fread(matrix, sizeof(*matrix), 1, file) != 1)
		return false;
	size = rf_matrix_size(matrix);
	if (!rf_allocate_shared_rows(area, matrix, size) ||
		fread(matrix->rows, 1, size, file) != size)
		return false;
	for (int j = 0; j < FILTER_DIGESTS; j++)
	{
		if (!OidIsValid(matrix->columns[j].index))
			continue;
		matrix->columns[j].validity = RF_FIRST_CHANGE;
		rf_publish_column(matrix, j);
	}

	/* The clock may have been ahead. */
	pg_atomic_write_u64(&matrix->used_at,
						Min(pg_atomic_read_u64(&matrix->used_at), rf_this_second()));
	key.loaded = true;
	rf_digest_store->keys[i] = key;
	return true;
}

/*
 * Fills the store, which is empty, from the file, if there is one, and removes the file.
 * The area is attached.  Called by the postmaster at its start.
 */
void
rf_load_digests(dsa_area * area)
{
	FILE	   *file = rf_open_kept(DIGEST_FILE, DIGEST_MAGIC,
									"Digests of range filters will be made anew.");
	DigestFileStart now;
	DigestFileStart then;

	if (file == NULL)
		return;
	if (make_start(&now) && fread(&then, sizeof(then), 1, file) == 1 &&
		memcmp(&now, &then, sizeof(now)) == 0)
	{
		for (int i = 0; i < rf_digest_store->nmatrices && load_matrix(file, area, i); i++)
			;
	}
	FreeFile(file);
}

/*
 * Takes outdated columns out of a matrix.  False if none is left.
 */
static bool
has_columns(const RfMatrixKey *key, RfDigestMatrix *matrix)
{
	bool		found = false;

	for (int j = 0; j < FILTER_DIGESTS; j++)
	{
		RfDigestColumn *column = &matrix->columns[j];

		if (column->validity != rf_last_change_counter(key->database, column->index))
			column->index = InvalidOid;
		found = found || OidIsValid(column->index);
	}
	return found;
}

/*
 * Writes what load_matrix() reads.
 */
static bool
save_matrix(FILE *file, const RfMatrixKey *key, const RfDigestMatrix *matrix)
{
	Size		size = rf_matrix_size(matrix);

	return fwrite(key, sizeof(*key), 1, file) == 1 &&
		fwrite(matrix, sizeof(*matrix), 1, file) == 1 &&
		fwrite(matrix->rows, 1, size, file) == size;
}

/*
 * Writes all matrices that may be asked.
 */
static bool
save_matrices(FILE *file)
{
	DigestFileStart start;

	if (!make_start(&start) || fwrite(&start, sizeof(start), 1, file) != 1)
		return false;
	for (int i = 0; i < rf_digest_store->nmatrices; i++)
	{
		const RfMatrixKey *key = &rf_digest_store->keys[i];
		RfDigestMatrix *matrix = &rf_digest_store->matrices[i];

		if (rf_matrix_is_valid(key) && has_columns(key, matrix) &&
			!save_matrix(file, key, matrix))
			return false;
	}
	return true;
}

/*
 * on_shmem_exit callback of the postmaster.
 */
void
rf_save_digests(int code, Datum arg)
{
	DigestFileStart start;

	if (code == 0 && rf_digests_are_shared() && make_start(&start))
		rf_write_kept(DIGEST_FILE, DIGEST_MAGIC, save_matrices);
}
