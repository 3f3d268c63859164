# Splits that were cut short, as in 024_wormhole_unfinished_splits.pl, where a resource manager of our
# own logs changes.

use strict;
use warnings;

use RangeFilter;

run_with_resource_manager('024_wormhole_unfinished_splits.pl');
