/*-------------------------------------------------------------------------
 *
 * request.h
 *	  Asking the background worker of a database to summarize an index.
 *
 * Requests are in shared memory, so there are none where the server has not loaded
 * the library; rf_request_summarize() does nothing then.  See worker/README.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef REQUEST_REQUEST_H
#define REQUEST_REQUEST_H

#include "postgres.h"

#include "utils/timestamp.h"

/* The function of the library that a worker runs: worker/rfworker.c. */
#define RF_WORKER_FUNCTION	"rf_worker_main"

/* rangefilter.autosummarize */
typedef enum RfAutosummarize
{
	RF_AUTOSUMMARIZE_OFF,		/* nobody summarizes unasked, but VACUUM */
	RF_AUTOSUMMARIZE_ON,		/* bulk loads and workers */
	RF_AUTOSUMMARIZE_WORKER		/* workers alone */
} RfAutosummarize;

/* An RfAutosummarize; rangefilter.autosummarize_delay (milliseconds) */
extern int	rf_autosummarize;
extern int	rf_autosummarize_delay;

extern void rf_init_requests(void);

/*
 * Asks for an index of this database to be summarized after the delay, and starts
 * the database's worker if there is none.  Never fails and never waits for the
 * worker; takes a lock of shared memory.
 */
extern void rf_request_summarize(Oid index);

/*
 * Counts a scan of an index's table that found nothing, and asks for the index when there
 * were enough of them: it is then summarized if any of the rows that it covers were removed.
 * reads: how often the table was read, as far as the sample tells (it stands for scans that were
 * not watched), in parts of a sequential scan.
 */
extern void rf_request_vain_reads(Oid index, double reads);

/* ---- For the worker ---- */

/* A request that was taken out. */
typedef struct RfRequest
{
	Oid			index;
	int			tries;			/* so often it was put back */
	bool		vain;			/* the table is read in vain */
} RfRequest;

/*
 * Makes this process the worker of its database.  False where there is another one.
 * When the process exits, it is the worker no more.
 */
extern bool rf_requests_serve(void);

typedef enum RfNextRequest
{
	RF_REQUEST_TAKEN,			/* *request is to be done now */
	RF_REQUEST_LATER,			/* there is one at *when; none was taken */
	RF_REQUEST_NONE				/* and this process is the worker no more */
} RfNextRequest;

/* The next request of the database. */
extern RfNextRequest rf_requests_next(RfRequest *request, TimestampTz *when);

/* Puts a request back, to be taken again after the delay. */
extern void rf_request_put_back(const RfRequest *request);

/* Has requests of an index ignored for some time, since it failed. */
extern void rf_request_rest(const RfRequest *request);

#endif							/* REQUEST_REQUEST_H */
