/*-------------------------------------------------------------------------
 *
 * trial.h
 *	  Choosing a filter for byte strings by trying some on a sample.
 *
 * This is the rule behind filter = auto and suffix = auto.  Numbers always take
 * SNARF, which is better than SuRF at the same size.  For byte strings it
 * depends on the keys.  SuRF adapts to what keys have in common.  SNARF (over
 * leading bytes, leading.h) spends no bits on that, but needs keys whose
 * leading bytes are spread evenly.  SuRF's real suffixes tell little about keys
 * whose next bytes follow from those before, as in words; mixed ones do, for
 * points.  So a random half of a sample of neighbouring keys goes into a small
 * filter of each kind that the options leave open.  The other half is asked
 * for, each key as a point and as the range up to the key with its last byte
 * + 1.  The filter that says yes less often is taken.  Points count twice, as
 * strings are asked for by = more often than by ranges.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_TRIAL_H
#define RANGEFILTER_TRIAL_H

#include "filter/filter.h"

/*
 * A sample is TRIAL_GROUPS groups of neighbouring rows, evenly spread from the
 * first to the last row; or all rows, if they are few.  A group ends when it
 * has TRIAL_GROUP_KEYS distinct keys, or has taken TRIAL_GROUP_ROWS rows.
 */
#define TRIAL_GROUPS		8
#define TRIAL_GROUP_KEYS	512
#define TRIAL_GROUP_ROWS	4096

typedef struct Trial Trial;

typedef struct TrialChoice
{
	bool		leading;		/* SNARF over leading bytes, not SuRF */
	FilterDigits digits;		/* of these bytes */
	FilterSuffix suffix;		/* of SuRF; not FILTER_SUFFIX_AUTO */
} TrialChoice;

/*
 * Begins a trial for nrows keys, duplicates included.  options are those of
 * the filter.  If they say surf, only suffixes are tried.
 */
extern Trial *trial_begin(const FilterOptions *options, uint64_t nrows);

/*
 * trial_next_row() returns the number of the row whose key the caller must add
 * next; nrows at the end.  The numbers ascend.
 */
extern uint64_t trial_next_row(const Trial *trial);
extern void trial_add(Trial *trial, FilterBytes key);

/*
 * Decides, and frees the trial.  A tie goes to SuRF before SNARF, and to real
 * suffixes before mixed ones.
 */
extern TrialChoice trial_end(Trial *trial);

#endif							/* RANGEFILTER_TRIAL_H */
