# Parallel scans of a wormhole index: each row once, in both directions, of
# lists of values, again and again, while others write.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server('wormhole_parallel', conf => q{
max_parallel_workers = 8
max_parallel_workers_per_gather = 3
min_parallel_index_scan_size = 0
min_parallel_table_scan_size = 0
parallel_setup_cost = 0
parallel_tuple_cost = 0
parallel_leader_participation = on
enable_seqscan = off
enable_bitmapscan = off
});

$node->safe_psql('postgres', q{
CREATE TABLE p (k int, s text COLLATE "C", v int);
INSERT INTO p SELECT g % 30000, repeat('long ', g % 40) || md5(g::text), g FROM generate_series(1, 60000) g;
CREATE INDEX p_k ON p USING wormhole (k);
CREATE INDEX p_s ON p USING wormhole (s DESC);
CREATE INDEX p_kv ON p USING wormhole (k, v);
VACUUM ANALYZE p;});

my $off = 'SET max_parallel_workers_per_gather = 0; SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_sort = on;';

sub check
{
	my ($settings, $query) = @_;
	my $plan = $node->safe_psql('postgres', "$settings EXPLAIN (COSTS off) $query");

	like($plan, qr/Parallel Index (?:Only )?Scan/, "parallel: " . substr($query, 0, 100));
	is($node->safe_psql('postgres', "$settings $query"), $node->safe_psql('postgres', "$off $query"), '... and right');
	return;
}

check('', 'SELECT count(*), sum(k) FROM p WHERE k >= 0');
check('SET enable_indexonlyscan = off;', 'SELECT count(*), sum(k), sum(v) FROM p WHERE k BETWEEN 100 AND 25000');
check('', 'SELECT count(*), sum(length(s)) FROM p WHERE s > \'long long\'');
check('', 'SELECT count(*), sum(v) FROM p WHERE k = ANY (\'{' . join(',', map { 7 * $_ } reverse 1 .. 4000) . '}\')');
check('', 'SELECT count(*), sum(v) FROM p WHERE k IN (' . join(',', map { 13 * $_ } 1 .. 2000) . ') AND v > 20000');
foreach my $order ('k, v', 'k DESC, v DESC')
{
	check('SET enable_sort = off; SET enable_incremental_sort = off; SET parallel_leader_participation = off;',
		"SELECT k, v FROM p WHERE k > 10 AND v % 3 = 0 ORDER BY $order");
}
foreach my $order ('s', 's DESC')
{
	check('SET enable_sort = off; SET enable_incremental_sort = off;',
		"SELECT s FROM p WHERE s < 'long long long long' AND v % 3 = 0 ORDER BY $order");
}

# The inner side of a join is read three times.
check('SET enable_material = off;',
	'SELECT * FROM (SELECT count(*), sum(k) FROM p WHERE k > 100) x RIGHT JOIN (VALUES (1), (2), (3)) y (a) ON true');

# The leaves split and are deleted meanwhile.
my $dir = $node->basedir;
my ($out, $err) = ('', '');
append_to_file("$dir/write.sql", q{
\set k random(1, 30000)
INSERT INTO p SELECT :k + 40000, 'x' || g, -1 FROM generate_series(1, 200) g;
INSERT INTO p SELECT g, 'y' || g, -1 FROM generate_series(:k::int, :k + 300) g;
DELETE FROM p WHERE v = -1;
});
my $load = IPC::Run::start(
	[ $node->installed_command('pgbench'), '-n', '-h', $node->host, '-p', $node->port, '-c', 1, '-T', 8, '-f', "$dir/write.sql", 'dbname=postgres' ],
	'<', \undef, '>', \$out, '2>', \$err);
my $wrong = 0;
my $asked = 0;
my $end = time() + 7;
while (time() < $end)
{
	my ($plan, $count) = $node->safe_psql('postgres', q{
SELECT count(*), count(DISTINCT v), sum(v) FROM (SELECT v FROM p WHERE k >= 0 AND v > 0 ORDER BY k DESC) x;
VACUUM p;});

	$asked++;
	$wrong++ if $plan ne '60000|60000|1800030000';
}
$load->finish;
is($wrong, 0, "right $asked times while rows come and go");
$node->safe_psql('postgres', q{SELECT wormhole_check(indexrelid, true) FROM pg_index WHERE indrelid = 'p'::regclass});
$node->stop;
done_testing();
