# Deletion of pages, as in 023_wormhole_page_deletion.pl, where a resource manager of our
# own logs changes.

use strict;
use warnings;

use RangeFilter;

run_with_resource_manager('023_wormhole_page_deletion.pl');
