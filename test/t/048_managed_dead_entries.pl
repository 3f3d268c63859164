# Dead entries, as in 022_wormhole_dead_entries.pl, where a resource manager of our
# own logs changes.

use strict;
use warnings;

use RangeFilter;

run_with_resource_manager('022_wormhole_dead_entries.pl');
