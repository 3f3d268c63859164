# With old_snapshot_threshold rows may be removed that a snapshot still sees, and
# the summaries are made without them.  Reading their pages is an error then; so
# pages must be read, and nothing is skipped.  Scans of indexes must raise that error, too.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server('old_snapshot');

if ($node->pg_version >= 17)
{
	pass('there is no old_snapshot_threshold any more');
	$node->stop;
	done_testing();
	exit;
}

$node->safe_psql(
	'postgres', q{
CREATE TABLE t (p int, k int, pad text) PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%1$s PARTITION OF t FOR VALUES IN (%1$s)', i) FROM generate_series(1, 3) i \gexec
INSERT INTO t SELECT p, 1000 * p + i, repeat('x', 500) FROM generate_series(1, 3) p, generate_series(1, 200) i;
CREATE INDEX t_k ON t USING rangefilter (k) WITH (pages_per_range = 1);
CREATE TABLE d AS SELECT 2005 AS k;
VACUUM ANALYZE t, d;
CREATE FUNCTION late(n int) RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN n; END $$;
});

# How queries leave something out: when they are planned, when they begin, for
# values of a nested loop and of a hash join, inside a table.
my %queries = (
	constant => 'SELECT * FROM t WHERE k = 2005',
	'no partition' => 'SELECT * FROM t WHERE k = 5',
	'stable function' => 'SELECT * FROM t WHERE k = late(2005)',
	'generic plan' => 'EXECUTE q (2005)',
	'nested loop' => 'SELECT * FROM d JOIN t USING (k)',
	'hash join' => 'SELECT * FROM d JOIN t USING (k)',
	blocks => 'SELECT * FROM t2 WHERE k = 2005');

sub plan_of
{
	my ($name) = @_;
	my @off = ('mergejoin', $name eq 'hash join' ? 'nestloop' : 'hashjoin', $name eq 'blocks' ? 'seqscan' : ());

	return $node->safe_psql(
		'postgres', join('', map { "SET enable_$_ = off; " } @off) . qq{
SET plan_cache_mode = force_generic_plan;
PREPARE q (int) AS SELECT * FROM t WHERE k = \$1;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $queries{$name}});
}

sub blocks_read
{
	return plan_of('blocks') =~ /Heap Blocks: lossy=(\d+)/ ? $1 : 'no';
}

my $blocks = $node->safe_psql('postgres', q{SELECT pg_relation_size('t2') / current_setting('block_size')::int});

foreach my $name (grep { $_ ne 'blocks' } sort keys %queries)
{
	like(plan_of($name), qr/Partitions Skipped: [1-9]/, "without it: $name");
}
is(blocks_read(), 1, 'without it: one block of many');

$node->append_conf('postgresql.conf', 'old_snapshot_threshold = 1min');
$node->restart;
foreach my $name (grep { $_ ne 'blocks' } sort keys %queries)
{
	unlike(plan_of($name), qr/Skipped|Gate/, "nothing is skipped: $name");
}
is(blocks_read(), $blocks, "all $blocks blocks are read");

# Core's threshold for tests: snapshots expire after five seconds.
$node->append_conf('postgresql.conf', "old_snapshot_threshold = 0\nautovacuum = off");
$node->restart;
$node->safe_psql('postgres', 'CREATE TABLE w AS SELECT g AS a FROM generate_series(1, 1000) g; CREATE INDEX w_a ON w USING wormhole (a); VACUUM ANALYZE w');

my %scans = ('rangefilter, bitmap' => 'SELECT count(*) FROM t2 WHERE k = 2005');

foreach my $way ('indexscan', 'indexonlyscan', 'bitmapscan')
{
	$scans{"wormhole, $way"} = join('', map { "SET enable_$_ = " . ($_ eq $way ? 'on' : 'off') . ';' } qw(indexscan indexonlyscan bitmapscan)) .
	  'SELECT count(*) FROM w WHERE a = 5';
}

my %sessions = map { $_ => open_session($node) } sort keys %scans;

ask($sessions{$_}, 'SET enable_seqscan = off; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1') foreach sort keys %scans;
$node->safe_psql('postgres', $_) foreach ('SELECT pg_sleep(5.5)', 'UPDATE w SET a = -a WHERE a < 10', 'DELETE FROM t2 WHERE k = 2005', 'VACUUM w, t2');
foreach my $name (sort keys %scans)
{
	like(ask($sessions{$name}, $scans{$name}), qr/snapshot too old/, "$name: an expired snapshot is refused");
	like(ask($sessions{$name}, "ROLLBACK; $scans{$name}"), qr/^0$/m, '... a new one is not');
	close_session($sessions{$name});
}

$node->stop;
done_testing();
