#!/usr/bin/perl
#
# format.pl [--check]: the layout of the sources, from the repository's root.
#
# C files are laid out by pg_bsd_indent with pgindent's options, and with what
# pgindent itself does before and after.  --check only reports, and looks at
# every hand-written file for
#	- more than 800 lines, trailing white space, no newline at the end,
#	- marks of unfinished work, C++ comments.
# --own-typedefs only prints the types that the sources define.

use strict;
use warnings;
use File::Find;
use File::Temp;

my $MAX_LINES = 800;
my $INDENT = 'pg_bsd_indent';
my @OPTIONS = qw(-bad -bap -bbb -bc -bl -cli1 -cp33 -cdb -nce -d0 -di12 -nfc1
  -i4 -l79 -lp -lpl -nip -npro -sac -tpg -ts4);

# Typedefs of the server's and the system's headers that are more often the
# names of variables.
my %NOT_TYPES = map { $_ => 1 } qw(date interval string timestamp type);

my $check = @ARGV && $ARGV[0] eq '--check';
my $problems = 0;

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
	my $text = <$handle>;
	close $handle;
	return defined $text ? $text : '';
}

# Hand-written files: not the expected output of tests, not data, not whatever
# a build has left.
sub sources
{
	my @files;
	find(
		{
			no_chdir => 1,
			wanted => sub {
				$File::Find::prune = 1
				  if -d $_ && m{/(\.git|expected|results|tmp_check|bin|build)$};
				push @files, substr($_, 2)
				  if -f $_
				  && (m{\.(c|h|sh|pl|pm|sql|spec|md|control|list)$}
					|| m{/(Makefile|run)$});
			}
		},
		'.');
	return sort @files;
}

# The names that a C file defines by typedef.
sub typedefs_in
{
	my ($text) = @_;
	my @names;

	$text =~ s{/\*.*?\*/}{ }gs;
	while ($text =~ m{\btypedef\b}g)
	{
		# Up to the semicolon that is not inside braces.
		my ($depth, $definition) = (0, '');
		while ($text =~ m{\G(.)}gcs)
		{
			$depth++ if $1 eq '{';
			$depth-- if $1 eq '}';
			last if $1 eq ';' && $depth == 0;
			$definition .= $1;
		}
		$definition =~ s/\{.*\}/ /s;
		if ($definition =~ m{\(\s*\*\s*(\w+)\s*\)\s*\(}
			|| $definition =~ m{(\w+)\s*(\[[^]]*\]\s*)*$})
		{
			push @names, $1;
		}
	}
	return @names;
}

# One C file as pgindent would write it; undef where it does not parse.
sub indented
{
	my ($file, $text, $typedefs) = @_;

	# Comments that begin with dashes are left alone only without a space.
	$text =~ s{/\* +---}{/*---KEEP}g;

	my $input = File::Temp->new(SUFFIX => '.c');
	my $errors = File::Temp->new;
	print $input $text;
	close $input;
	my $output = `$INDENT @OPTIONS -U$typedefs <$input 2>$errors`;
	my $status = $?;
	my $complaints = slurp($errors->filename);
	if ($status || $complaints ne '')
	{
		problem("$file: $INDENT: $complaints");
		return;
	}

	$output =~ s{/\*---KEEP}{/* ---}g;
	# Two comments on a line, and a pointer as a function's result.
	$output =~ s{\*/(/\*.*\*/)$}{*/\t$1}gm;
	$output =~ s{^([A-Za-z_]\S*)[ \t]+\*$}{$1 *}gm;
	return $output;
}

sub check_rules
{
	my ($file, $text) = @_;
	my @lines = split /\n/, $text;
	my $number = 0;

	problem("$file: " . @lines . " lines; $MAX_LINES are allowed")
	  if @lines > $MAX_LINES;
	problem("$file: no newline at the end") if $text ne '' && $text !~ /\n\z/;
	foreach my $line (@lines)
	{
		$number++;
		problem("$file:$number: trailing white space") if $line =~ /\s$/;
		problem("$file:$number: unfinished")
		  if $line =~ /\b(TO[D]O|FIX[M]E|XX[X])\b/;
		problem("$file:$number: C++ comment")
		  if $file =~ /\.[ch]$/ && $line =~ m{^\s*//};
	}
	return;
}

my @files = sources();
my %types;
foreach my $file (grep { /\.[ch]$/ } @files)
{
	$types{$_} = 1 foreach typedefs_in(slurp($file));
}
if (@ARGV && $ARGV[0] eq '--own-typedefs')
{
	print map { "$_\n" } sort keys %types;
	exit 0;
}
$types{$_} = 1 foreach split /\n/, slurp('test/tools/typedefs.list');
delete @types{ keys %NOT_TYPES };
my $list = File::Temp->new;
print $list map { "$_\n" } sort keys %types;
close $list;

foreach my $file (@files)
{
	my $text = slurp($file);
	check_rules($file, $text) if $check;
	next unless $file =~ /\.[ch]$/;
	my $laid_out = indented($file, $text, $list->filename);
	next if !defined $laid_out || $laid_out eq $text;
	if ($check)
	{
		my $new = File::Temp->new;
		print $new $laid_out;
		close $new;
		problem("$file: not laid out as \"make format\" does:");
		system('diff', '-u', $file, $new->filename);
	}
	else
	{
		open(my $handle, '>', $file) or die "$file: $!\n";
		print $handle $laid_out;
		close $handle or die "$file: $!\n";
		print "$file\n";
	}
}
print "$problems problems\n" if $problems;
print scalar(@files), " files: layout and rules are fine\n" if $check && !$problems;
exit($problems ? 1 : 0);
