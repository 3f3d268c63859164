# Dense leaves, as in 059_wormhole_dense.pl, where a resource manager of our own logs
# changes.

use strict;
use warnings;

use RangeFilter;

run_with_resource_manager('059_wormhole_dense.pl');
