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
# left alone, and so are declarations at the left margin, sizes to be allocated (which only a
# server that checks its memory would notice), and what mutants_equal.list, beside this file, says
# makes no difference.

use strict;
use warnings;
use FindBin;

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
	$text =~ s{(\w*[Aa]lloc\w*(\((?:[^()]++|(?2))*\)))}{$blank->($1)}ge;
	$text =~ s{^(\w.*|#.*(?:\\\n.*)*)}{$blank->($1)}gem;
	return $text;
}

# The changes that make no difference, as file, function and the line as it would be, with
# single blanks: a hash, whose values are how many more changes fit than there are rows.
sub equal_changes
{
	my %equal;

	foreach my $row (split /\n/, slurp("$FindBin::Bin/mutants_equal.list"))
	{
		next if $row =~ /^(?:#|$)/;
		my ($file, $function, $line, $reason) = split /\t+/, $row;
		die "mutants_equal.list: \"$row\" has no reason\n" if !$reason;
		$equal{"$file\t$function\t$line"}--;
	}
	return \%equal;
}

# Calls a function for each change: line, column (both from 1), old text, new text.
sub each_change
{
	my ($file, $equal, $do) = @_;
	my @text = split /\n/, slurp($file);
	my $number = 0;
	my $function = '';

	foreach my $line (split /\n/, code_of(join "\n", @text))
	{
		my $at = 0;

		$function = $1 if $text[$number] =~ /^(\w+)\(/;
		$number++;
		while ($at < length $line)
		{
			my $old = '';

			foreach my $change (@CHANGES)
			{
				pos($line) = $at;
				next if $line !~ /$change->[0]/g;
				$old = substr($line, $at, pos($line) - $at);
				my $new = $text[ $number - 1 ];
				substr($new, $at, length $old) = $change->[1];
				$new = join("\t", $file, $function, join ' ', split ' ', $new);
				if   (exists $equal->{$new}) { $equal->{$new}++ }
				else                         { $do->($number, $at + 1, $old, $change->[1]) }
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
	my $equal = equal_changes();
	my @wrong;
	foreach my $file (@ARGV)
	{
		each_change($file, $equal, sub { print join("\t", $file, @_), "\n" });
		push @wrong, grep { /^\Q$file\E\t/ && $equal->{$_} != 0 } sort keys %$equal;
	}
	die map { "mutants_equal.list: not as many changes as rows fit \"$_\"\n" } @wrong if @wrong;
}
