/*-------------------------------------------------------------------------
 *
 * trial.h
 *	  Which filter suits byte strings best, by trying them on a sample.
 *
 * The rule behind filter = auto.  Numbers always take SNARF, which is never
 * beaten by SuRF at the same size.  For byte strings it depends: SuRF adapts to
 * what keys have in common, SNARF (over leading bytes, leading.h) spends no bit
 * on that but needs keys whose leading bytes are spread evenly.  So the keys
 * themselves decide: of a sample of neighbouring keys every other one goes
 * into a small filter of either kind, with the index's options; those left out
 * are asked for, each as a point and as the range up to the key with its last
 * byte + 1.  The filter that says yes less often is taken.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_TRIAL_H
#define RANGEFILTER_TRIAL_H

#include "filter/filter.h"

/*
 * A sample is so many groups of neighbouring rows, evenly spread from the first
 * to the last row; or all rows, if they are no more than that.  A group ends
 * when it has so many distinct keys, or has taken so many rows.
 */
#define TRIAL_GROUPS		8
#define TRIAL_GROUP_KEYS	512
#define TRIAL_GROUP_ROWS	4096

typedef struct Trial Trial;

/* For nrows keys, duplicates included; options are those of the filter. */
extern Trial *trial_begin(const FilterOptions *options, uint64_t nrows);

/*
 * The row that is to be added next, of which the caller adds all until told
 * another one; or nrows at the end.  Never less than before.
 */
extern uint64_t trial_next_row(const Trial *trial);
extern void trial_add(Trial *trial, FilterBytes key);

/*
 * Decides, and frees the trial: true for SNARF over leading bytes.
 */
extern bool trial_end(Trial *trial);

#endif							/* RANGEFILTER_TRIAL_H */
