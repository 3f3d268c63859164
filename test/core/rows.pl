# rows.pl: output of psql without what a plan may change.
#
#	perl rows.pl file
#
# The rows of a table are sorted, as are notices that follow each other; plans are left
# out, and descriptions of tables are without their indexes.

use strict;
use warnings;

my @lines = <>;

for (my $i = 0; $i < @lines; $i++)
{
	my $is_head = $i + 1 < @lines && $lines[ $i + 1 ] =~ /^-[-+]*$/;
	my @rows;

	next if $lines[$i] =~ /^Indexes:$/ || $lines[$i] =~ /^    "\w+" .*(?:btree|hash|gist|gin|brin|spgist|rangefilter) \(/;
	if ($lines[$i] =~ /^NOTICE:/)
	{
		push @rows, $lines[ $i++ ] while $i < @lines && $lines[$i] =~ /^NOTICE:/;
		print sort @rows;
		$i--;
		next;
	}
	if (!$is_head)
	{
		print $lines[$i];
		next;
	}
	my ($head, $line) = @lines[ $i, $i + 1 ];

	$i += 2;
	while ($i < @lines && $lines[$i] =~ /^ /)
	{
		push @rows, $lines[ $i++ ];
	}
	if ($head =~ /QUERY PLAN|explain/i)
	{
		$i++ while $i < @lines && $lines[$i] !~ /^\(\d+ rows?\)$/;
		next;
	}
	print $head, $line, sort @rows;
	$i--;
}
