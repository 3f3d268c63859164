/*-------------------------------------------------------------------------
 *
 * surf_leaf.h
 *	  The strings that SuRF's leaves stand for.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_SURF_LEAF_H
#define RANGEFILTER_SURF_LEAF_H

#include "filter/surf/surf.h"
#include "filter/surf/surf_page.h"

/*
 * Visits the leaves of a page of a run with this code, whose keys were cut to
 * max_key bytes.  See surf_visit().
 */
extern bool surf_leaf_visit(const SurfPage *page, FilterSuffix kind,
							const SurfCode *code, uint32_t max_key,
							SurfVisitLeaf visit, void *arg);

#endif							/* RANGEFILTER_SURF_LEAF_H */
