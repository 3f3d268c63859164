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
extern void rf_request_summarize(Oid index);
extern void rf_request_vain_reads(Oid index, double reads);

/* ---- For the worker ---- */

/* A request that was taken out. */
typedef struct RfRequest
{
	Oid			index;
	int			tries;			/* so often it was put back */
	bool		vain;			/* the table is read in vain */
} RfRequest;

extern bool rf_requests_serve(void);

typedef enum RfNextRequest
{
	RF_REQUEST_TAKEN,			/* *request is to be done now */
	RF_REQUEST_LATER,			/* there is one at *when; none was taken */
	RF_REQUEST_NONE				/* and this process is the worker no more */
} RfNextRequest;

extern RfNextRequest rf_requests_next(RfRequest *request, TimestampTz *when);
extern void rf_request_put_back(const RfRequest *request);
extern void rf_request_rest(const RfRequest *request);

#endif							/* REQUEST_REQUEST_H */
