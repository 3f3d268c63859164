# Conditions on the columns of several indexes under AND, OR and NOT, as deep as nobody writes them, with constants and
# with values that are known only at execution: the same rows as without skipping.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../oracle";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Random;
use RangeFilter;
use Test::More;

my $seed = seed();
my $conditions = $ENV{CONDITIONS} || 8000;
my $VALUES = 16;
my @columns = qw(a b c);
my $node = new_server('condition_trees');

# Each partition has few of the values of each column, so that most conditions are false for some.
$node->safe_psql(
	'postgres', q{
CREATE TABLE t (p int, id int, a int, b int, c text) PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%1$s PARTITION OF t FOR VALUES IN (%1$s)', i) FROM generate_series(1, 12) i \gexec
CREATE FUNCTION answer(condition text, skip bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	PERFORM set_config('rangefilter.enable', skip::text, true);
	EXECUTE 'SELECT concat(count(*), '':'', sum(id)) FROM t WHERE ' || condition INTO result;
	RETURN result;
END $$;
CREATE FUNCTION skipped(condition text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	PERFORM set_config('rangefilter.enable', 'on', true);
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) SELECT FROM t WHERE ' || condition INTO plan;
	RETURN (SELECT coalesce(sum(n::int), 0) FROM jsonb_path_query(plan, 'strict $.**."Partitions Skipped"') n);
END $$;
});

# One partition's value of a column: of a small range, of two numbers, or NULL.
sub row
{
	my ($partition) = @_;

	return join ', ', map
	{
		my $low = ($partition * 5 + $_ * 3) % $VALUES;

		chance(6) ? 'NULL' : ($low + (chance(70) ? below(3) : 7)) % $VALUES;
	} 0 .. $#columns;
}

sub fill
{
	my $id = 0;
	my @rows = map { my $p = $_; map { "($p, " . $id++ . ', ' . row($p) . ')' } 1 .. 6 } 1 .. 12;

	$node->safe_psql('postgres', 'TRUNCATE t; INSERT INTO t VALUES ' . join(', ', @rows) . '; VACUUM ANALYZE t');
	return;
}

sub make_indexes
{
	my @indexes = some_of(1 + below(4),
		'(a, b)', '(b, a)', '(b, c, a)', '(a)', '(c)', '(b, a) WHERE a < 9', '((a + b), c)', '((a + b))', '(c, b)');

	$node->safe_psql('postgres', 'DROP INDEX IF EXISTS ' . join(', ', map { "i$_" } 0 .. 8) . '; '
		  . join('; ', map { "CREATE INDEX i$_ ON t USING rangefilter $indexes[$_]" } 0 .. $#indexes));
	return @indexes;
}

# A value, in most cases known while planning.
sub value
{
	my ($column) = @_;
	my $value = below($VALUES + 1);

	$value = "'$value'" if $column eq 'c';
	return chance(12) ? "(SELECT $value)" : $value;
}

sub clause
{
	my $column = chance(8) ? '(a + b)' : one_of(@_);

	return "$column " . weighted(
		5 => sub { '= ' . value($column) },
		8 => sub { one_of('<', '<=', '>', '>=') . ' ' . value($column) },
		3 => sub { 'BETWEEN ' . value($column) . ' AND ' . value($column) },
		3 => sub { '>= ' . ($column eq 'c' ? "'1'" : below(5)) },
		2 => sub { 'IN (' . join(', ', map { value($column) } 0 .. 1 + below(3)) . ')' },
		1 => sub { '<> ' . value($column) },
		2 => sub { one_of('IS NULL', 'IS NOT NULL') })->();
}

# About one column or several: clauses on the same columns meet on all levels.
sub condition
{
	my ($depth, @about) = @_;
	my $word = one_of('AND', 'OR');

	@about = one_of(@about) if chance(40);
	return clause(@about) if $depth == 0 || chance(25);
	return 'NOT (' . condition($depth - 1, @about) . ')' if chance(4);
	return '(' . join(" $word ", map { condition($depth - 1, @about) } 0 .. 1 + below(2)) . ')';
}

my ($wrong, $skipping) = (0, 0);
for my $round (1 .. 20)
{
	my @indexes = make_indexes();
	my @asked = map { condition(2 + below(3), @columns) } 1 .. $conditions / 20;

	fill();
	my $list = join ', ', map { "(\$c\$$_\$c\$)" } @asked;
	my @differences = split /\n/, $node->safe_psql(
		'postgres', "SELECT condition, answer(condition, true), answer(condition, false)
		FROM (VALUES $list) v (condition) WHERE answer(condition, true) IS DISTINCT FROM answer(condition, false)");
	diag("seed $seed, indexes on @indexes: $_") for @differences;
	$wrong += @differences;
	$list = join ', ', map { "(\$c\$$_\$c\$)" } @asked[ 0 .. 9 ];
	$skipping += $node->safe_psql('postgres', "SELECT count(*) FROM (VALUES $list) v (condition) WHERE skipped(condition) > 0");
}
is($wrong, 0, "seed $seed: $conditions conditions");
cmp_ok($skipping, '>', 20, "$skipping of 200 conditions skip partitions");
$node->stop;
done_testing();
