/*-------------------------------------------------------------------------
 *
 * options.h
 *	  CREATE INDEX ... USING rangefilter ... WITH (...).
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_OPTIONS_H
#define RANGEFILTER_OPTIONS_H

#include "postgres.h"

#include "utils/rel.h"

typedef enum RfFilterOption
{
	RF_FILTER_AUTO,
	RF_FILTER_SNARF,
	RF_FILTER_SURF
} RfFilterOption;

typedef struct RfOptions
{
	int32		vl_len_;		/* varlena header (do not touch directly!) */
	int			filter;			/* RfFilterOption */
	int			bits_per_key;
	int			suffix;			/* FilterSuffix */
	int			pages_per_range;
	bool		autosummarize;	/* by the background worker */
} RfOptions;

#define RF_DEFAULT_BITS 14

/* pages_per_range: as many ranges as there is room for on the metapage. */
#define RF_RANGES_AUTO	(-1)

extern void rf_init_options(void);
extern bytea *rf_options(Datum reloptions, bool validate);
extern const RfOptions *rf_index_options(Relation index);

#endif							/* RANGEFILTER_OPTIONS_H */
