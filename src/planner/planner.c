/*-------------------------------------------------------------------------
 *
 * planner.c
 *	  The planner part's setting and its start.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/extensible.h"
#include "planner/gate/gate.h"


/*
 * Plans that the setting can change are made anew the next time.  Only flags
 * are set, so it does not matter when this is called.
 */
static void
enable_changed(bool value, void *extra)
{
	if (value != rf_enable)
		rf_invalidate_plans(RF_ENABLE_HASH);
}

/*
 * Called once, when the library is loaded.
 */
void
rf_init_planner(void)
{
	DefineCustomBoolVariable("rangefilter.enable",
							 "Lets the planner skip partitions by their range filters.",
							 NULL,
							 &rf_enable,
							 true,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 enable_changed,
							 NULL);
	DefineCustomIntVariable("rangefilter.cache_size",
							"How much memory a session uses to remember range filters.",
							"Queries over many partitions are planned faster if "
							"it has room for about a kilobyte per partition.",
							&rf_cache_size,
							8192,
							0,
							MAX_KILOBYTES,
							PGC_USERSET,
							GUC_UNIT_KB | GUC_EXPLAIN,
							NULL,
							NULL,
							NULL);
	DefineCustomBoolVariable("rangefilter.estimate_rows",
							 "Lets the planner estimate rows by counting keys in range filters.",
							 NULL,
							 &rf_estimate_rows,
							 true,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 NULL,
							 NULL);
	RegisterCustomScanMethods(&rf_guard_methods);
	RegisterCustomScanMethods(&rf_gate_methods);
	rf_init_catalog();
	rf_init_plan();
	rf_init_skip();
	rf_init_gate_path();
	rf_init_gate_cost();
	rf_init_replan();
	rf_init_estimate();
	rf_init_activity();
}
