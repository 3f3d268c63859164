# Partitions that postgres_fdw fetches from the same server, among local ones.  They are
# always asked; the local ones are skipped, while the others answer asynchronously, too.
# One of them is a partitioned table with an index over there.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server('node');
my ($host, $port) = ($node->host, $node->port);

if ($node->psql('postgres', 'CREATE EXTENSION postgres_fdw') != 0)
{
	$node->stop;
	plan skip_all => 'postgres_fdw is not there';
}

# Row 10 g is in partition g % 16; far0 and far1 are the tables behind t0 and t1.
$node->safe_psql(
	'postgres', qq{
CREATE SERVER loop FOREIGN DATA WRAPPER postgres_fdw
	OPTIONS (host '$host', port '$port', dbname 'postgres', async_capable 'true');
CREATE SERVER remote FOREIGN DATA WRAPPER postgres_fdw
	OPTIONS (host '$host', port '$port', dbname 'postgres', async_capable 'true', use_remote_estimate 'true', fetch_size '2');
CREATE USER MAPPING FOR CURRENT_USER SERVER loop;
CREATE USER MAPPING FOR CURRENT_USER SERVER remote;
CREATE TABLE far0 (p int, k int, b text COLLATE "C", v int);
CREATE TABLE far1 (p int, k int, b text COLLATE "C", v int) PARTITION BY LIST (v);
SELECT format('CREATE TABLE far1_%s PARTITION OF far1 FOR VALUES IN (%s)', i, i) FROM generate_series(0, 9) i \\gexec
CREATE INDEX ON far1 USING rangefilter (k);
CREATE TABLE t (p int, k int, b text COLLATE "C", v int) PARTITION BY LIST (p);
CREATE FOREIGN TABLE t0 PARTITION OF t FOR VALUES IN (0) SERVER loop OPTIONS (table_name 'far0');
CREATE FOREIGN TABLE t1 PARTITION OF t FOR VALUES IN (1) SERVER remote OPTIONS (table_name 'far1');
SELECT format('CREATE TABLE t%s PARTITION OF t FOR VALUES IN (%s)', i, i) FROM generate_series(2, 15) i \\gexec
INSERT INTO t SELECT g % 16, 10 * g, 'b' || 10 * g, g % 10 FROM generate_series(0, 3199) g;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_b ON t USING rangefilter (b);
CREATE TABLE d (k int, note text);
INSERT INTO d SELECT 10 * g, 'd' || g FROM generate_series(1, 100) g;
CREATE FOREIGN TABLE far_d (k int, note text) SERVER remote OPTIONS (table_name 'd');
VACUUM ANALYZE far0;
VACUUM ANALYZE far1;
VACUUM ANALYZE d;
ANALYZE t;
});

my $generic = 'DEALLOCATE ALL; SET LOCAL plan_cache_mode = force_generic_plan';
my $hash = 'SET LOCAL enable_nestloop = off; SET LOCAL enable_mergejoin = off';
my $loop = 'SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off';
my $pairs = 'SET LOCAL enable_partitionwise_join = on; SET LOCAL enable_partitionwise_aggregate = on';

# Rows 160 and 170 are foreign, 180 is local.
my @queries = (
	(map {
		my $k = $_;

		[ "constant $k", '', "SELECT * FROM t WHERE k = $k", 1 ],
		[ "late $k", '', "SELECT * FROM t WHERE k = (SELECT $k)", 1 ],
		[ "generic $k", "$generic; PREPARE q (int) AS SELECT * FROM t WHERE k = \$1", "EXECUTE q ($k)", 1 ],
		[ "pattern $k", '', "SELECT * FROM t WHERE b LIKE 'b$k%'", 1 ],
		[ "update $k", '', "UPDATE t SET v = (v + 1) % 10 WHERE k = $k RETURNING *", 1 ],
		[ "late update $k", '', "UPDATE t SET b = b || 'x' WHERE k = (SELECT $k) RETURNING *", 1 ],
		[ "delete $k", $hash, "DELETE FROM t USING d WHERE d.k = t.k AND d.note = 'd' || $k / 10 RETURNING t.*, d.note", 1 ],
		[ "FOR UPDATE $k", '', "SELECT * FROM t WHERE k = $k FOR UPDATE", 1 ],
		[ "inserted $k", "INSERT INTO t SELECT p, $k, 'new', 3 FROM generate_series(0, 3) p", "SELECT * FROM t WHERE k = $k", 1 ] } 160, 170, 180),
	[ 'nothing', '', 'SELECT count(*) FROM t WHERE k = 165', 1 ],
	[ 'range', '', 'SELECT * FROM t WHERE k BETWEEN 160 AND 190', 1 ],
	[ 'late range', '', 'SELECT * FROM t WHERE k BETWEEN (SELECT 160) AND (SELECT 190)', 1 ],
	[ 'not asynchronous', 'SET LOCAL enable_async_append = off', 'SELECT * FROM t WHERE k BETWEEN (SELECT 160) AND (SELECT 190)', 1 ],
	[ 'ordered', '', 'SELECT k, v FROM t WHERE k BETWEEN 160 AND 190 ORDER BY k LIMIT 3', 1 ],
	[ 'late, ordered', '', 'SELECT k, v FROM t WHERE k BETWEEN (SELECT 160) AND 190 ORDER BY k LIMIT 3', 1 ],
	[ 'hash join', $hash, "SELECT t.*, d.note FROM d JOIN t USING (k) WHERE d.note IN ('d16', 'd17', 'd18')", 1 ],
	[ 'nested loop', $loop, "SELECT t.*, d.note FROM d JOIN t USING (k) WHERE d.note IN ('d16', 'd17', 'd18')", 0 ],
	[ 'with a foreign table', $hash, "SELECT t.*, d.note FROM far_d d JOIN t USING (k) WHERE d.note IN ('d16', 'd17', 'd18')", 1 ],
	[ 'loop with a foreign table', $loop, "SELECT t.*, d.note FROM far_d d JOIN t USING (k) WHERE d.note IN ('d16', 'd17', 'd18')", 0 ],
	[ 'pairs', $pairs, 'SELECT a.p, a.k, b.v FROM t a JOIN t b USING (p, k) WHERE a.k IN (160, 170, 180)', 1 ],
	[ 'late pairs', $pairs, 'SELECT a.p, a.k, b.v FROM t a JOIN t b USING (p, k) WHERE a.k IN ((SELECT 160), (SELECT 180))', 1 ],
	[ 'groups of pairs', $pairs, 'SELECT p, count(*), sum(v) FROM t WHERE k BETWEEN 160 AND 190 GROUP BY p', 1 ],
	[ 'move', '', 'UPDATE t SET p = 0 WHERE k = 180 AND p > 1 RETURNING *', 1 ],
	[ 'union', '', 'SELECT k, v FROM t0 WHERE k = 160 UNION ALL SELECT k, v FROM t2 WHERE k = 180 UNION ALL SELECT k, v FROM t3 WHERE k = 180', 0 ]);

compare_queries($node, 'asynchronous', '', @queries);
$node->safe_psql('postgres', "ALTER SERVER remote OPTIONS (options '-c rangefilter.enable=off', SET async_capable 'false')");
compare_queries($node, 'not over there', '', @queries);

my $plan = $node->safe_psql('postgres', 'SET rangefilter.defer_partitions = 1000; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT * FROM t WHERE k = (SELECT 180)');

like($plan, qr/Async Foreign Scan on t0/, 'a foreign partition answers asynchronously');
like($plan, qr/Range Filter Append\).*Partitions Skipped: 1 of 1.*->  Seq Scan on t\d+ \S+ \(never executed\)/s, '... while local ones are skipped');
is( $node->safe_psql('postgres', 'EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k = 320') =~ s/^.*(Partitions Skipped: [^\n]*).*$/$1/sr,
	'Partitions Skipped: 14 of 16', 'all local ones are left out');

# A row changes while another session waits for it: its conditions are checked once
# more, with the row of the foreign table as it was.
my ($writer, $reader) = map { open_session($node) } 1 .. 2;

foreach my $query ("SELECT t.v, d.note FROM t JOIN far_d d USING (k) WHERE t.k = (SELECT 180) FOR UPDATE OF t",
	"UPDATE t SET b = b || d.note FROM far_d d WHERE d.k = t.k AND t.k IN ((SELECT 180), 170) AND t.p > 1 RETURNING t.v, d.note")
{
	ask($writer, 'BEGIN; UPDATE t2 SET v = v + 1 WHERE k = 180');
	send_sql($reader, $query);
	$node->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock')});
	ask($writer, 'COMMIT');
	is(answer($reader), $node->safe_psql('postgres', 'SELECT v FROM t2 WHERE k = 180') . '|d18', 'a row that changed meanwhile');
}
close_session($_) foreach $writer, $reader;
all_verified($node, 'afterwards');
$node->stop;
done_testing();
