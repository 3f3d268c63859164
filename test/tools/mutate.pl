#!/usr/bin/perl
#
# mutate.pl: small changes to C sources, each of which a test should notice.
#
#	mutate.pl file ...			prints the changes there are, a line each:
#								file, line, column, old text, new text, separated by tabs
#	mutate.pl --apply file line column old new
#
# A change replaces a comparison, a logical operator, an assignment to a flag, a counter's
# step, a returned truth value or a "!".  Comments, strings, assertions and messages are
# left alone, and so are declarations at the left margin.

use strict;
use warnings;

# What is replaced by what.  The first pattern that fits at a place counts.
my @CHANGES = (
	[ qr/\G&&/, '||' ],
	[ qr/\G\|\|/, '&&' ],
	[ qr/\G==/, '!=' ],
	[ qr/\G!=/, '==' ],
	[ qr/\G<=/, '<' ],
	[ qr/\G>=/, '>' ],
	[ qr/\G\|= /, '&= ' ],
	[ qr/\G&= ~/, '|= ' ],
	[ qr/\G(?<=[\w\])])\+\+(?=;)/, '' ],
	[ qr/\G (?:\+|-) 1\b/, '' ],
	[ qr/\G < (?![a-z]+\.h)/, ' <= ' ],
	[ qr/\G > /, ' >= ' ],
	[ qr/\Greturn true;/, 'return false;' ],
	[ qr/\Greturn false;/, 'return true;' ],
	[ qr/\G!(?=[\w(])/, '' ]);

# The text of a file.
sub slurp
{
	my ($file) = @_;
	open(my $handle, '<', $file) or die "$file: $!\n";
	local $/;
	return scalar <$handle>;
}

# The text with blanks for what is left alone.
sub code_of
{
	my ($text) = @_;
	my $blank = sub { my ($part) = @_; $part =~ s/[^\n]/ /g; return $part };

	$text =~ s{(/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')}{$blank->($1)}ges;
	$text =~ s{(\b(?:Assert|StaticAssertDecl|ereport|elog)\s*(\((?:[^()]++|(?2))*\)))}{$blank->($1)}ge;
	$text =~ s{^(\w.*|#.*(?:\\\n.*)*)}{$blank->($1)}gem;
	return $text;
}

# Calls a function for each change: line, column (both from 1), old text, new text.
sub each_change
{
	my ($file, $do) = @_;
	my $number = 0;

	foreach my $line (split /\n/, code_of(slurp($file)))
	{
		my $at = 0;

		$number++;
		while ($at < length $line)
		{
			my $old = '';

			foreach my $change (@CHANGES)
			{
				pos($line) = $at;
				next if $line !~ /$change->[0]/g;
				$old = substr($line, $at, pos($line) - $at);
				$do->($number, $at + 1, $old, $change->[1]);
				last;
			}
			$at += length($old) || 1;
		}
	}
	return;
}

if (@ARGV == 6 && $ARGV[0] eq '--apply')
{
	my (undef, $file, $number, $column, $old, $new) = @ARGV;
	my @lines = split /^/, slurp($file);

	substr($lines[ $number - 1 ], $column - 1, length $old) eq $old
	  or die "$file:$number: not \"$old\"\n";
	substr($lines[ $number - 1 ], $column - 1, length $old) = $new;
	open(my $handle, '>', $file) or die "$file: $!\n";
	print $handle @lines;
	close($handle) or die "$file: $!\n";
}
else
{
	foreach my $file (@ARGV)
	{
		each_change($file, sub { print join("\t", $file, @_), "\n" });
	}
}
