/*-------------------------------------------------------------------------
 *
 * rfoptions.c
 *	  CREATE INDEX ... WITH (...).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/reloptions.h"
#include "filter/filter.h"
#include "rangefilter/page/options.h"

static relopt_kind rf_relopt_kind;

static relopt_enum_elt_def rf_filter_values[] = {
	{"auto", RF_FILTER_AUTO},
	{"snarf", RF_FILTER_SNARF},
	{"surf", RF_FILTER_SURF},
	{NULL}
};

static relopt_enum_elt_def rf_suffix_values[] = {
	{"auto", FILTER_SUFFIX_AUTO},
	{"none", FILTER_SUFFIX_NONE},
	{"hash", FILTER_SUFFIX_HASH},
	{"real", FILTER_SUFFIX_REAL},
	{"mixed", FILTER_SUFFIX_MIXED},
	/* Without quotes the parser takes real for the type of that name. */
	{"pg_catalog.float4", FILTER_SUFFIX_REAL},
	{NULL}
};

/*
 * Registers the WITH options.  Called once, when the library is loaded.
 */
void
rf_init_options(void)
{
	rf_relopt_kind = add_reloption_kind();
	add_enum_reloption(rf_relopt_kind, "filter",
					   "Filter that summarizes the keys",
					   rf_filter_values, RF_FILTER_AUTO,
					   "Valid values are \"auto\", \"snarf\" and \"surf\".",
					   AccessExclusiveLock);
	add_int_reloption(rf_relopt_kind, "bits_per_key",
					  "Space for each distinct key, in bits",
					  RF_DEFAULT_BITS, 4, 64, AccessExclusiveLock);
	add_enum_reloption(rf_relopt_kind, "suffix",
					   "What a SuRF keeps of a key beyond its distinguishing prefix",
					   rf_suffix_values, FILTER_SUFFIX_AUTO,
					   "Valid values are \"auto\", \"none\", \"hash\", \"real\" and \"mixed\".",
					   AccessExclusiveLock);
	add_int_reloption(rf_relopt_kind, "pages_per_range",
					  "Heap blocks in each of the ranges that scans tell apart: 0 for none, -1 for as many as cost no space",
					  RF_RANGES_AUTO, RF_RANGES_AUTO, 131072,
					  AccessExclusiveLock);
	add_bool_reloption(rf_relopt_kind, "autosummarize",
					   "Is the index summarized by the background worker, too?",
					   true, ShareUpdateExclusiveLock);
}

/*
 * amoptions.
 */
bytea *
rf_options(Datum reloptions, bool validate)
{
	static const relopt_parse_elt table[] = {
		{"filter", RELOPT_TYPE_ENUM, offsetof(RfOptions, filter)},
		{"bits_per_key", RELOPT_TYPE_INT, offsetof(RfOptions, bits_per_key)},
		{"suffix", RELOPT_TYPE_ENUM, offsetof(RfOptions, suffix)},
		{"pages_per_range", RELOPT_TYPE_INT, offsetof(RfOptions, pages_per_range)},
		{"autosummarize", RELOPT_TYPE_BOOL, offsetof(RfOptions, autosummarize)}
	};

	return (bytea *) build_reloptions(reloptions, validate, rf_relopt_kind,
									  sizeof(RfOptions), table,
									  lengthof(table));
}

/*
 * The index's options, or the defaults.
 */
const RfOptions *
rf_index_options(Relation index)
{
	static const RfOptions defaults = {
		.filter = RF_FILTER_AUTO,
		.bits_per_key = RF_DEFAULT_BITS,
		.suffix = FILTER_SUFFIX_AUTO,
		.pages_per_range = RF_RANGES_AUTO,
		.autosummarize = true
	};

	return index->rd_options ? (const RfOptions *) index->rd_options : &defaults;
}
