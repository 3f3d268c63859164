/*-------------------------------------------------------------------------
 *
 * trial.h
 *	  Choosing a filter for byte strings by trying both on a sample.
 *
 * This is the rule behind filter = auto.  Numbers always take SNARF, which is
 * better than SuRF at the same size.  For byte strings it depends on the keys.
 * SuRF adapts to what keys have in common.  SNARF (over leading bytes,
 * leading.h) spends no bits on that, but needs keys whose leading bytes are
 * spread evenly.  So a random half of a sample of neighbouring keys goes into
 * a small filter of each kind, with the index's options.  The other half is
 * asked for, each key as a point and as the range up to the key with its last
 * byte + 1.  The filter that says yes less often is taken.
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

/*
 * Begins a trial for nrows keys, duplicates included.  options are those of
 * the filter.
 */
extern Trial *trial_begin(const FilterOptions *options, uint64_t nrows);

/*
 * trial_next_row() returns the number of the row whose key the caller must add
 * next; nrows at the end.  The numbers ascend.
 */
extern uint64_t trial_next_row(const Trial *trial);
extern void trial_add(Trial *trial, FilterBytes key);

/*
 * Decides, and frees the trial.  True: SNARF over leading bytes.
 */
extern bool trial_end(Trial *trial);

#endif							/* RANGEFILTER_TRIAL_H */
