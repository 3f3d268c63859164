# The counters of rangefilter_activity when the server has loaded the library:
# shared by all sessions, zero when the server starts.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server(
	'activity', conf => q{
rangefilter.activity_sample_rate = 1
});

sub counts
{
	my ($database) = @_;

	return $node->safe_psql($database // 'postgres', q{
SELECT "table", probes, skips, watched_scans, empty_scans FROM rangefilter_activity ORDER BY 1});
}

my $schema = q{
CREATE TABLE t (p int, k int) PARTITION BY LIST (p);
CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);
CREATE TABLE t2 PARTITION OF t FOR VALUES IN (2);
INSERT INTO t SELECT 1 + k / 100, k FROM generate_series(0, 199) k;
CREATE INDEX t_k ON t USING rangefilter (k);
DELETE FROM t2 WHERE k = 150;
};
$node->safe_psql('postgres', $schema);

is(counts(), "t1|0|0|0|0\nt2|0|0|0|0", 'nothing has been asked');
$node->safe_psql('postgres', 'SELECT FROM t WHERE k = 50; SELECT FROM t WHERE k = 150;');
is(counts(), "t1|2|1|1|0\nt2|2|1|1|1", 'another session sees what was asked');
ok($node->poll_query_until('postgres', "SELECT min(idx_scan) >= 2 FROM pg_stat_user_indexes WHERE relname ~ '^t[12]\$'"),
	'so does who looks for unused indexes');
$node->safe_psql('postgres', 'PREPARE q AS SELECT FROM t WHERE k = $1; SET plan_cache_mode = force_generic_plan;'
	. 'EXECUTE q(50); EXECUTE q(150); EXECUTE q(151)');
is(counts(), "t1|5|3|2|0\nt2|5|2|3|2", 'what gates ask');

# A session that goes on passes its counts on, too, some time after the first query.
my $session = open_session($node);
ask($session, 'SELECT FROM t WHERE k = 51');
my $tries = 0;
while (counts() !~ /^t1\|6\|/ && $tries++ < 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	ask($session, 'SELECT 1');
	select undef, undef, undef, 0.1;
}
like(counts(), qr/^t1\|6\|/, 'the count of a transaction that ended');
ask($session, 'BEGIN');
ask($session, 'SELECT FROM t WHERE k = 52');
ask($session, 'ROLLBACK');
close_session($session);
is(counts(), "t1|7|3|4|0\nt2|7|4|3|2", 'the counts of a transaction that was rolled back');

# Workers count as well.
$node->safe_psql('postgres', q{
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SET plan_cache_mode = force_generic_plan;
ALTER TABLE t1 SET (parallel_workers = 2);
ALTER TABLE t2 SET (parallel_workers = 2);
PREPARE q AS SELECT count(*) FROM t WHERE k = $1;
EXECUTE q(53)});
my ($probes) = counts() =~ /^t1\|(\d+)/;
cmp_ok($probes, '>=', 8, 'parallel queries are counted');

# Another database has other counters.
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', "CREATE EXTENSION rangefilter; $schema SELECT FROM t WHERE k = 60;");
is(counts('other'), "t1|1|0|1|0\nt2|1|1|0|0", 'another database');

my $here = counts();
$node->safe_psql('other', q{SELECT rangefilter_activity_reset('t1_k_idx')});
is(counts('other'), "t1|0|0|0|0\nt2|1|1|0|0", 'one index is reset');
$node->safe_psql('other', 'SELECT rangefilter_activity_reset()');
is(counts('other'), "t1|0|0|0|0\nt2|0|0|0|0", 'all are');
is(counts(), $here, 'those of this database');

# A restart, and a crash.
$node->restart;
is(counts(), "t1|0|0|0|0\nt2|0|0|0|0", 'after a restart all is zero');
$node->safe_psql('postgres', 'SELECT FROM t WHERE k = 50');
is(counts(), "t1|1|0|1|0\nt2|1|1|0|0", 'counting goes on');
my $killed = open_session($node);
kill 'KILL', ask($killed, 'SELECT pg_backend_pid()');
ok(wait_for_recovery($node, 'SELECT count(*) = 2 FROM rangefilter_activity WHERE probes = 0'),
	'and when a backend crashes');
$killed->{run}->kill_kill;

# What an idle session has counted does not bring back the statistics of an index that was dropped.
my $idle = open_session($node);
ask($idle, 'SELECT FROM t WHERE k = 50') for 1 .. 3;
my $index = $node->safe_psql('postgres', "SELECT min(indexrelid::int) FROM pg_stat_all_indexes WHERE relname = 't2'");
my $exists = "pg_stat_have_stats('relation', (SELECT oid FROM pg_database WHERE datname = 'postgres'), $index)";
is($node->safe_psql('postgres', "DROP TABLE t2; SELECT $exists"), 'f', 'no statistics of a dropped index');
close_session($idle);
is($node->safe_psql('postgres', "SELECT $exists"), 'f', 'nor after the end of a session that had asked it');

# A session that is ended within a transaction waits for no lock on a catalog.
my ($locks, $ended) = map { open_session($node) } 1 .. 2;
ask($ended, 'SELECT FROM t WHERE k = 51');
ask($ended, 'BEGIN; DECLARE c CURSOR FOR SELECT * FROM t; FETCH c; SELECT FROM t WHERE k = 52');
my $ended_pid = ask($ended, 'SELECT pg_backend_pid()');
ask($locks, 'ALTER TABLE t1 SET (fillfactor = 90)');
ask($locks, 'BEGIN; LOCK TABLE pg_class IN ACCESS EXCLUSIVE MODE');
is(ask($locks, "SELECT pg_terminate_backend($ended_pid, 20000)"), 't', 'a session ends beside a locked catalog');
ask($locks, 'COMMIT');
close_session($locks);
$ended->{run}->kill_kill;

unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no complaints');
$node->stop;
done_testing();
