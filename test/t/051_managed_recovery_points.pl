# Recovery to points within changes, as in 028_wormhole_recovery_points.pl, where a resource manager of our
# own logs changes.

use strict;
use warnings;

use RangeFilter;

run_with_resource_manager('028_wormhole_recovery_points.pl');
