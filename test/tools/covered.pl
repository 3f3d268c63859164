#!/usr/bin/perl
#
# covered.pl: which tests run a line?  For mutants.sh.
#
#	covered.pl --read test seconds file ...	reads what "gcov --stdout" prints, and prints the map's
#											lines for this test: test, seconds, file, lines, separated
#											by tabs
#	covered.pl map noticed file line		prints the tests that run the line, with their seconds:
#											first those that have noticed most changes of this file
#											(lines of "noticed": file, test), then those that run most
#											lines of it in a second

use strict;
use warnings;

# Calls a function for each row of a file: its fields.
sub each_row
{
	my ($file, $do) = @_;
	open(my $handle, '<', $file) or die "$file: $!\n";
	while (my $row = <$handle>)
	{
		chomp $row;
		$do->(split /\t/, $row);
	}
	return;
}

# Lines without code of their own, as those of a long condition, count as the one before.
sub read_gcov
{
	my ($test, $seconds, @files) = @_;
	my %wanted = map { $_ => {} } @files;
	my ($lines, $executed);

	# Others append rows to the same map: each is written at once.
	local $| = 1;
	while (my $row = <STDIN>)
	{
		my ($count, $number, $text) = $row =~ /^ *([^:]+): *(\d+):(.*)/ or next;
		if ($number == 0)
		{
			($lines, $executed) = ($wanted{ $1 }, 0) if $text =~ /^Source:(.*)/;
			next;
		}
		next if !$lines;
		$executed = $count =~ /^\d/ if $count ne '-';
		$lines->{$number} = 1 if $executed;
	}
	foreach my $file (sort keys %wanted)
	{
		my @numbers = sort { $a <=> $b } keys %{ $wanted{$file} };
		print join("\t", $test, $seconds, $file, join(',', @numbers)), "\n" if @numbers;
	}
	return;
}

if (@ARGV > 3 && $ARGV[0] eq '--read')
{
	shift;
	read_gcov(@ARGV);
}
else
{
	my ($map, $noticed, $file, $line) = @ARGV;
	my (%seconds, %rate, %count);
	my $test = sub {
		my ($test, $seconds, $of, $lines) = @_;
		return if $of ne $file || ",$lines," !~ /,$line,/;
		$seconds{$test} = $seconds;
		$rate{$test} = ($lines =~ tr/,//) / ($seconds + 1);
	};

	each_row($map, $test);
	each_row($noticed, sub { $count{ $_[1] }++ if $_[0] eq $file });
	print "$_\t$seconds{$_}\n"
	  foreach sort { ($count{$b} // 0) <=> ($count{$a} // 0) || $rate{$b} <=> $rate{$a} } keys %seconds;
}
