#!/usr/bin/perl
#
# rooms.pl: the order of the rooms of src/, from the repository's root.
#
# A room is a folder of src/; rooms.list has them in order, the lowest first.
# Reports
#	- a folder that is not in the list, and one with too many .c files,
#	- a file that includes a header of a higher room or calls a function there,
#	- more files of a room than are allowed that call each other in a ring.
# --show prints each room's files, lines and largest ring.
#
# Calls are read from the text: each name that is a global function's counts.

use strict;
use warnings;
use File::Basename qw(dirname basename);
use File::Find;

my $MAX_FILES = 16;
my $MAX_RING = 6;

my $show = @ARGV && $ARGV[0] eq '--show';
my $problems = 0;
my (%text, %room_of, %defined_in, %calls);

sub problem
{
	print "@_\n";
	$problems++;
	return;
}

sub slurp
{
	my ($file) = @_;
	open(my $handle, '<', $file) or die "$file: $!\n";
	local $/;
	return scalar <$handle>;
}

# The strongly connected components with more than one file (Tarjan).
sub rings
{
	my ($files, $edges) = @_;
	my ($n, @stack, %index, %low, %on_stack, @rings) = (0);
	my $visit;

	$visit = sub {
		my ($file) = @_;
		$index{$file} = $low{$file} = $n++;
		push @stack, $file;
		$on_stack{$file} = 1;
		foreach my $next (sort keys %{ $edges->{$file} })
		{
			if (!exists $index{$next})
			{
				$visit->($next);
				$low{$file} = $low{$next} if $low{$next} < $low{$file};
			}
			elsif ($on_stack{$next} && $index{$next} < $low{$file})
			{
				$low{$file} = $index{$next};
			}
		}
		return if $low{$file} != $index{$file};
		my @ring;
		do
		{
			push @ring, pop @stack;
			delete $on_stack{ $ring[-1] };
		} until ($ring[-1] eq $file);
		push @rings, \@ring if @ring > 1;
	};
	$visit->($_) foreach grep { !exists $index{$_} } @$files;
	return @rings;
}

my @rooms = grep { !/^#/ && /\S/ } split /\n/, slurp('test/tools/rooms.list');
my %order = map { $rooms[$_] => $_ } 0 .. $#rooms;

find({ no_chdir => 1, wanted => sub { $text{$_} = slurp($_) if -f && /\.[ch]$/ } }, 'src');
foreach my $file (sort keys %text)
{
	my $room = dirname($file) eq 'src' ? '.' : substr(dirname($file), 4);

	$room_of{$file} = $room;
	problem("$file: src/$room is not in test/tools/rooms.list") if !exists $order{$room};
	next if $file !~ /\.c$/;

	# PostgreSQL's layout: the result's type on a line of its own.
	while ($text{$file} =~ m{^([^\n]*)\n([A-Za-z_]\w*)\([^;{}]*?\)\s*\n\{}gm)
	{
		my ($type, $name) = ($1, $2);
		$defined_in{$name} //= $file if $type !~ /\bstatic\b/;
	}
}
exit 1 if $problems;

foreach my $file (sort keys %text)
{
	my $code = $text{$file} =~ s{/\*.*?\*/}{ }gsr;
	my $own = $order{ $room_of{$file} };

	while ($code =~ m{^#include "((?:\w+/)*)(\w+\.h)"}gm)
	{
		my $room = $1 eq '' ? '.' : substr($1, 0, -1);
		next if !-e "src/$room/$2" || $room eq '.';
		problem("$file: includes $room/$2, of a higher room") if $order{$room} > $own;
	}
	next if $file !~ /\.c$/;
	$code =~ s{"(?:\\.|[^"\\])*"}{ }gs;
	my %seen = map { $_ => 1 } $code =~ /[A-Za-z_]\w+/g;
	foreach my $name (sort keys %seen)
	{
		my $where = $defined_in{$name} // next;
		next if $where eq $file;
		problem("$file: uses $name of $where, a higher room") if $order{ $room_of{$where} } > $own;
		$calls{$file}{$where} = 1 if $room_of{$where} eq $room_of{$file};
	}
}

foreach my $room (@rooms)
{
	my @files = grep { /\.c$/ && $room_of{$_} eq $room } sort keys %text;
	my ($largest) = sort { @$b <=> @$a } rings(\@files, \%calls);
	my $ring = $largest ? scalar @$largest : 0;

	problem("src/$room: " . @files . " .c files; $MAX_FILES are allowed") if @files > $MAX_FILES;
	problem("src/$room: a ring of $ring files; $MAX_RING are allowed: "
		  . join(' ', map { basename($_) } sort @$largest))
	  if $ring > $MAX_RING;
	if ($show)
	{
		my $lines = 0;
		$lines += () = $text{$_} =~ /\n/g foreach @files;
		printf "%-24s %3d files %6d lines, largest ring %d%s\n", $room, scalar @files, $lines, $ring,
		  $largest ? ': ' . join(' ', map { basename($_, '.c') } sort @$largest) : '';
	}
}
print "rooms: the order of ", scalar(@rooms), " is kept\n" if !$problems;
exit($problems ? 1 : 0);
