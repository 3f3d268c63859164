#!/usr/bin/perl
#
# tap.pl: runs TAP tests, shows what fails, and counts every single assertion.
#
#	tap.pl [--exec command] [-I directory ...] file ...
#
# The last line is "N passed, M failed".  A test file that dies or whose plan
# does not come true counts as one failure more, one that leaves itself out as none.

use strict;
use warnings;
use Getopt::Long;
use TAP::Parser;

my ($exec, @include);
GetOptions('exec=s' => \$exec, 'I=s' => \@include) or exit 2;
my ($passed, $failed) = (0, 0);

foreach my $file (@ARGV)
{
	my @command =
	  defined $exec
	  ? (split(' ', $exec), $file)
	  : ($^X, (map { "-I$_" } @include), $file);
	my $parser = TAP::Parser->new({ exec => \@command, merge => 0 });
	my $before = $failed;

	while (my $result = $parser->next)
	{
		if ($result->is_test && !$result->is_ok)
		{
			$failed++;
			print $result->as_string, "\n";
		}
		elsif ($result->is_test)
		{
			$passed++;
		}
		elsif ($result->is_bailout || ($result->is_comment && $failed > $before))
		{
			print $result->as_string, "\n";
		}
	}
	foreach my $error ($parser->parse_errors)
	{
		print "$file: $error\n";
	}
	# An exit status other than zero also says how many assertions failed;
	# they were counted already.
	if ($parser->parse_errors || ($parser->exit && $failed == $before))
	{
		printf "%s: broken: exit status %d\n", $file, $parser->exit;
		$failed++;
	}
	if ($failed == $before && defined $parser->skip_all) { print "$file: left out: ", $parser->skip_all, "\n"; next; }
	printf "%s: %d assertions%s\n", $file, $parser->tests_run,
	  $failed > $before ? ', FAILED' : '';
}
print "$passed passed, $failed failed\n";
exit($failed ? 1 : 0);
