# Building wormhole indexes: crashes right after, a standby, wal_level = minimal,
# unlogged tables, cancelled builds, and what pg_stat_progress_create_index says.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $parallel = q{
max_parallel_maintenance_workers = 2
min_parallel_table_scan_size = 0
autovacuum = off
};

my $make_table = q{
CREATE TABLE t (k int8, s text COLLATE "C") WITH (parallel_workers = 2);
INSERT INTO t SELECT hashint8extended(i, 0), 'https://www.example.org/' || i % 50 || '/' || md5(i::text) FROM generate_series(1, 20000) i;
};

sub checked
{
	my ($node, $index, $name) = @_;
	my ($status, $out, $err) = $node->psql('postgres', "SELECT wormhole_check('$index', true)");

	return is("$out$err", '20000', "$name: $index is whole");
}

# Built twice, as a new index and as a new file of an old one, with a checkpoint between.
my $node = new_server(
	'wormhole_build',
	init => { allows_streaming => 1 },
	conf => "$parallel wal_consistency_checking = 'all'\n");
$node->safe_psql('postgres', $make_table);
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('wormhole_build_standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
$node->safe_psql(
	'postgres', q{
CREATE UNIQUE INDEX t_k ON t USING wormhole (k);
CREATE INDEX CONCURRENTLY t_s ON t USING wormhole (s);
CREATE UNLOGGED TABLE u WITH (parallel_workers = 2) AS SELECT * FROM t;
CREATE INDEX u_k ON u USING wormhole (k);
});
$node->wait_for_catchup($standby);
checked($standby, $_, 'standby') foreach qw(t_k t_s);
$node->restart;
checked($node, 'u_k', 'unlogged, after a restart');
$node->safe_psql('postgres', 'CHECKPOINT; REINDEX INDEX t_k; REINDEX INDEX CONCURRENTLY t_s;');
$node->stop('immediate');
$node->start;
checked($node, $_, 'after a crash') foreach qw(t_k t_s);
is($node->safe_psql('postgres', q{SELECT count(*), wormhole_check('u_k', true) FROM u}),
	'0|0', 'unlogged, after a crash');
$node->wait_for_catchup($standby);
checked($standby, $_, 'standby, after REINDEX') foreach qw(t_k t_s);
$standby->stop;

# A slow build, to be watched and cancelled.  Each row takes a while.
$node->safe_psql(
	'postgres', q{
CREATE FUNCTION slowly(int8) RETURNS int8 LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
	'BEGIN PERFORM pg_sleep(0.001); RETURN $1; END';
});
my $session = open_session($node);
send_sql($session, 'CREATE INDEX t_slow ON t USING wormhole (slowly(k))');
ok( $node->poll_query_until(
		'postgres', q{
SELECT count(*) = 1 FROM pg_stat_progress_create_index p
WHERE phase = 'building index: scanning table' AND blocks_total > 0 AND blocks_done > 0
	AND (SELECT count(*) FROM pg_stat_activity WHERE leader_pid = p.pid) = 2}),
	'the scan is reported, with two workers at it');
$node->safe_psql('postgres', 'SELECT pg_cancel_backend(pid) FROM pg_stat_progress_create_index');
like(answer($session), qr/canceling statement due to user request/, 'cancelled');
is($node->safe_psql('postgres', q{
SELECT (SELECT count(*) FROM pg_class WHERE relname = 't_slow'), count(*) FROM pg_stat_activity WHERE leader_pid IS NOT NULL}),
	'0|0', 'neither index nor workers are left');

# A worker that is ended takes the build with it.
send_sql($session, 'CREATE INDEX t_slow ON t USING wormhole (slowly(k))');
$node->poll_query_until('postgres',
	'SELECT count(*) = 2 FROM pg_stat_activity WHERE leader_pid IS NOT NULL');
$node->safe_psql('postgres', 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE leader_pid IS NOT NULL LIMIT 1');
like(answer($session), qr/terminating/, 'ended with a worker');
is($node->safe_psql('postgres', q{
SELECT (SELECT count(*) FROM pg_class WHERE relname = 't_slow'), count(*) FROM pg_stat_activity WHERE leader_pid IS NOT NULL}),
	'0|0', 'neither index nor workers are left');
close_session($session);
checked($node, 't_k', 'after all that');
$node->stop;

# Without WAL, small files are logged at the commit, large ones synced.
my $minimal = new_server('wormhole_minimal', conf => "$parallel
wal_level = minimal
max_wal_senders = 0
wal_skip_threshold = '256kB'
");
$minimal->safe_psql('postgres', "BEGIN; $make_table
CREATE INDEX t_k ON t USING wormhole (k);
CREATE TABLE few WITH (parallel_workers = 2) AS SELECT i AS k FROM generate_series(1, 20000) i;
CREATE INDEX few_k ON few USING wormhole ((k % 3)); COMMIT;");
$minimal->stop('immediate');
$minimal->start;
checked($minimal, $_, 'wal_level = minimal, after a crash') foreach qw(t_k few_k);

# Up to 17 the server knows no ON CONFLICT with unique indexes like these.
my ($status, $out, $err) = $minimal->psql('postgres', 'CREATE TABLE told (k int); CREATE UNIQUE INDEX ON told USING wormhole (k)');
if ($minimal->pg_version >= 18) { is($err, '', 'a unique index'); }
else { like($err, qr/NOTICE:.*ON CONFLICT will not work.*"told_k_idx"/, 'a notice about ON CONFLICT'); }
$minimal->stop;

done_testing();
