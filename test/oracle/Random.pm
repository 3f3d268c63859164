# Random.pm: choices.  Everything random comes from Perl's generator, seeded
# once for each round.

package Random;

use strict;
use warnings;
use Exporter 'import';
our @EXPORT = qw(below chance one_of some_of shuffled weighted);

# An integer from 0 to n - 1.
sub below { return int rand $_[0]; }

# True so many times in a hundred.
sub chance { return rand(100) < $_[0]; }

sub one_of { return $_[ int rand @_ ]; }

sub shuffled
{
	my @list = @_;

	for (my $i = $#list; $i > 0; $i--)
	{
		my $j = int rand($i + 1);

		@list[ $i, $j ] = @list[ $j, $i ];
	}
	return @list;
}

sub some_of
{
	my ($n, @list) = @_;

	@list = shuffled(@list);
	return @list[ 0 .. ($n < @list ? $n : scalar @list) - 1 ];
}

# One of the values of a list of pairs weight => value.
sub weighted
{
	my @pairs = @_;
	my $sum = 0;

	for (my $i = 0; $i < @pairs; $i += 2) { $sum += $pairs[$i]; }
	my $at = rand $sum;
	for (my $i = 0; $i < @pairs; $i += 2)
	{
		return $pairs[ $i + 1 ] if ($at -= $pairs[$i]) < 0;
	}
	return $pairs[-1];
}

1;
