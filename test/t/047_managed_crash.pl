# Crashes, as in 021_wormhole_crash.pl, where a resource manager of our
# own logs changes.

use strict;
use warnings;

use RangeFilter;

run_with_resource_manager('021_wormhole_crash.pl');
