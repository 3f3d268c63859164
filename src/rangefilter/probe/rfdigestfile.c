/*-------------------------------------------------------------------------
 *
 * rfdigestfile.c
 *	  The file that keeps shared digest matrices while the server is down.
 *
 * When the server is shut down properly, its matrices are written to a file in
 * pg_stat, which is read and removed at the next start.  So the first queries
 * after it need not read each partition's index from disk.
 *
 * A digest is true as long as its index has not changed.  While the server is
 * down nothing changes, and whatever has changed since is told by the control file: a server
 * that ran meanwhile has written another checkpoint at its end.  So a file is
 * used only if the last checkpoint is the shutdown at which the file was written, of
 * this database system.  How keys become bits is up to the library, so it must be of the
 * same build.  If the server starts by replaying WAL that follows
 * (as a standby, or to a point in time), it has another timeline when it
 * no longer does; no session asks matrices of the timeline before (RfMatrixKey).
 *
 * Columns that were outdated by the end are left out.  The others become current by
 * the counters with which the server starts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include "rangefilter/page/shared.h"
#include "rangefilter/probe/digeststore.h"
#include "stats/keptfile.h"

#define DIGEST_FILE	RF_KEPT_DIRECTORY "rangefilter.digests"

#define DIGEST_MAGIC	0x52464401

/* What the file begins with.  Keys, matrices and their rows follow. */
typedef struct DigestFileStart
{
	uint64		system;			/* database system */
	XLogRecPtr	checkpoint;		/* of the shutdown */
	int64		library_size;	/* the file of the library that made digests, */
	int64		library_time;	/* and when it was written */
} DigestFileStart;

/* The file of this library, as of the start of the server; st_size is 0 if not known. */
static struct stat library;

/*
 * Looks at the file of this library.  At the end of the server it may be another one.
 */
static void
find_library(void)
{
	Dl_info		info;

	if (dladdr(&rf_digest_store, &info) == 0 || stat(info.dli_fname, &library) != 0)
		library.st_size = 0;
}

/*
 * What a file that is written at this shutdown, or was at the last one, begins with.  False
 * if the server was not shut down properly, or in recovery, or if the library is not known.
 */
static bool
make_start(DigestFileStart *start)
{
	const ControlFileData *control = rf_shut_down_properly();

	if (control == NULL || control->state != DB_SHUTDOWNED || library.st_size == 0)
		return false;
	start->system = control->system_identifier;
	start->checkpoint = control->checkPoint;
	start->library_size = library.st_size;
	start->library_time = library.st_mtime;
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
	filter_digests_find_knots(&matrix->buckets, matrix->rows);
	for (int j = 0; j < FILTER_DIGESTS; j++)
	{
		if (!OidIsValid(matrix->columns[j].index))
			continue;
		matrix->columns[j].validity = RF_FIRST_CHANGE;
		rf_publish_column(matrix, j);
	}
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

	find_library();
	if (file == NULL)
		return;
	if (make_start(&now) && fread(&then, sizeof(then), 1, file) == 1 &&
		memcmp(&now, &then, sizeof(now)) == 0)
	{
		for (int i = 0; i < rf_digest_store->nmatrices && load_matrix(file, area, i); i++)
			;
	}
	rf_close_kept(DIGEST_FILE, file);
}

/*
 * Writes a matrix, without columns that are outdated.
 */
static bool
save_matrix(FILE *file, const RfMatrixKey *key, RfDigestMatrix *matrix)
{
	Size		size = rf_matrix_size(matrix);

	for (int j = 0; j < FILTER_DIGESTS; j++)
	{
		RfDigestColumn *column = &matrix->columns[j];

		if (column->validity != rf_last_change_counter(key->database, column->index))
			column->index = InvalidOid;
	}
	return fwrite(key, sizeof(*key), 1, file) == 1 &&
		fwrite(matrix, sizeof(*matrix), 1, file) == 1 &&
		fwrite(matrix->rows, 1, size, file) == size;
}

/*
 * Writes all matrices.
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

		if (OidIsValid(key->index) &&
			!save_matrix(file, key, &rf_digest_store->matrices[i]))
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
