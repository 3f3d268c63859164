# Long lists on the columns of an index on several: the planner makes sets of keys of them, for
# each condition and for each partition.  A session that plans them takes no more memory than
# with skipping off, as far as that shows: some 100 MB.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

plan skip_all => 'the memory of a process is read from /proc' unless -e '/proc/self/status';

my $seed = seed();
my $node = new_server('long_conditions');

$node->safe_psql(
	'postgres', q{
CREATE TABLE t (p int, a int, b int, c text COLLATE "C") PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%1$s PARTITION OF t FOR VALUES IN (%1$s)', i) FROM generate_series(1, 40) i \gexec
INSERT INTO t SELECT i % 40 + 1, i, i * 7 % 1000, 'c' || i FROM generate_series(1, 4000) i;
CREATE INDEX ON t USING rangefilter (a, b);
CREATE INDEX ON t USING rangefilter (c, a);
VACUUM ANALYZE t});

sub numbers
{
	my ($n) = @_;

	return join ', ', map { 3 * pick(1, 30000) } 1 .. $n;
}

# The most memory, in MB, that a session has had that explains a query.
sub peak
{
	my ($enable, $condition) = @_;
	my $status = $node->safe_psql(
		'postgres', "SET rangefilter.enable = $enable;
		EXPLAIN (COSTS OFF) SELECT FROM t WHERE $condition;
		SELECT pg_read_file('/proc/self/status')");

	return $status =~ /^VmHWM:\s+(\d+) kB/m ? int($1 / 1024) : die "no VmHWM: $status";
}

my $late = '(SELECT 5)';
my %conditions = (
	'a list, in all partitions' => 'a IN (' . numbers(4000) . ')',
	'a list and a value that is known only at execution' => 'a IN (' . numbers(4000) . ") AND b > $late",
	'an OR of many combinations' => join(' OR ', map { '(a IN (' . numbers(31) . ') AND b IN (' . numbers(31) . '))' } 1 .. 150));

foreach my $name (sort keys %conditions)
{
	my ($on, $off) = map { peak($_, $conditions{$name}) } 'on', 'off';

	cmp_ok($on, '<', $off + 100, "seed $seed: $name: $on MB, $off MB without skipping");
	is( $node->safe_psql('postgres', "SET rangefilter.enable = on; SELECT count(*), sum(a) FROM t WHERE $conditions{$name}"),
		$node->safe_psql('postgres', "SET rangefilter.enable = off; SELECT count(*), sum(a) FROM t WHERE $conditions{$name}"),
		"$name: the same rows");
}
$node->stop;
done_testing();
