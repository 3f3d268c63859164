/*-------------------------------------------------------------------------
 *
 * rfkeptfile.c
 *	  Files in pg_stat that keep shared memory while the server is down.
 *
 * A file is a header and a content.  The header has a checksum of the content.
 * It is written last, and the file gets its name when all is on disk.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "common/controldata_utils.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "stats/keptfile.h"
#include "storage/fd.h"

typedef struct RfKeptHeader
{
	uint32		magic;
	uint32		server;			/* PG_VERSION_NUM of who wrote it */
	pg_crc32c	crc;			/* of the content */
} RfKeptHeader;

/*
 * See keptfile.h.  The result is allocated in the current context.
 */
const ControlFileData *
rf_shut_down_properly(void)
{
	bool		crc_ok;
	ControlFileData *control = get_controlfile(DataDir, &crc_ok);

	return crc_ok && (control->state == DB_SHUTDOWNED ||
					  control->state == DB_SHUTDOWNED_IN_RECOVERY) ? control : NULL;
}

/*
 * The checksum of the file's content, which is read for it.  False if that fails.
 */
static bool
compute_checksum(FILE *file, pg_crc32c *crc)
{
	char		block[BLCKSZ];
	size_t		n;

	if (fseek(file, sizeof(RfKeptHeader), SEEK_SET) != 0)
		return false;
	INIT_CRC32C(*crc);
	while ((n = fread(block, 1, sizeof(block), file)) > 0)
		COMP_CRC32C(*crc, block, n);
	FIN_CRC32C(*crc);
	return !ferror(file);
}

/*
 * Is this a file with this magic, undamaged?  If so, its content is read next.
 */
static bool
is_valid(FILE *file, uint32 magic)
{
	RfKeptHeader header;
	pg_crc32c	crc;

	return fread(&header, sizeof(header), 1, file) == 1 &&
		header.magic == magic && header.server == PG_VERSION_NUM &&
		compute_checksum(file, &crc) && EQ_CRC32C(crc, header.crc) &&
		fseek(file, sizeof(header), SEEK_SET) == 0;
}

/*
 * See keptfile.h.  The file goes before it is read.  So if reading it should ever end the
 * postmaster, for lack of memory perhaps, the next start does not meet it.
 */
FILE *
rf_open_kept(const char *path, uint32 magic, const char *detail)
{
	FILE	   *file = AllocateFile(path, PG_BINARY_R);

	if (file == NULL && errno == ENOENT)
		return NULL;
	if (file == NULL)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not read file \"%s\": %m", path)));
	unlink(path);
	if (file != NULL && !is_valid(file, magic))
	{
		ereport(LOG,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("ignoring invalid data in file \"%s\"", path),
				 errdetail_internal("%s", detail)));
		FreeFile(file);
		file = NULL;
	}
	return file;
}

/*
 * Writes the content and then the header.
 */
static bool
write_all(FILE *file, uint32 magic, bool (*write_content) (FILE *file))
{
	RfKeptHeader header = {.magic = magic,.server = PG_VERSION_NUM};

	return fseek(file, sizeof(header), SEEK_SET) == 0 &&
		write_content(file) &&
		compute_checksum(file, &header.crc) &&
		fseek(file, 0, SEEK_SET) == 0 &&
		fwrite(&header, sizeof(header), 1, file) == 1;
}

/*
 * See keptfile.h.
 */
void
rf_write_kept(const char *path, uint32 magic, bool (*write_content) (FILE *file))
{
	char	   *unfinished = psprintf("%s.tmp", path);
	FILE	   *file = AllocateFile(unfinished, PG_BINARY_W "+");
	bool		written = file != NULL && write_all(file, magic, write_content);

	if (file != NULL && FreeFile(file) != 0)
		written = false;
	if (written)
		(void) durable_rename(unfinished, path, LOG);
	else
	{
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", unfinished)));
		unlink(unfinished);
	}
	pfree(unfinished);
}
