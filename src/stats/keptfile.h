/*-------------------------------------------------------------------------
 *
 * keptfile.h
 *	  Files in pg_stat that keep shared memory while the server is down.
 *
 * All of this is for the postmaster, while no other process exists.
 *
 *-------------------------------------------------------------------------
 */
#ifndef STATS_KEPTFILE_H
#define STATS_KEPTFILE_H

#include "postgres.h"

#include "catalog/pg_control.h"
#include "pgstat.h"

/* Where the files are, with a slash. */
#define RF_KEPT_DIRECTORY	PGSTAT_STAT_PERMANENT_DIRECTORY "/"

/*
 * The control file, if the server was shut down properly, so that it need not recover at the
 * next start; else NULL.  The postmaster's exit code does not tell: an immediate shutdown
 * counts as success, and may have interrupted a change of shared memory.
 */
extern const ControlFileData *rf_shut_down_properly(void);

/*
 * Opens the file that rf_write_kept() wrote, to be read on, and closed with FreeFile(); and
 * removes it, whether it could be read or not: what it says is true only at this start.  Its content
 * is what was written.  NULL where there is none, or where it is not one of this server version
 * with this magic, or is damaged; then a message says what that means (detail).
 */
extern FILE *rf_open_kept(const char *path, uint32 magic, const char *detail);

/*
 * Writes a file: write_content writes what rf_open_kept() shall find, and returns false if that
 * fails.  A failure is logged, and there is no file.
 */
extern void rf_write_kept(const char *path, uint32 magic, bool (*write_content) (FILE *file));

#endif							/* STATS_KEPTFILE_H */
