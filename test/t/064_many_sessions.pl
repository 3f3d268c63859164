# Many sessions ask many partitions, which others write to, load and drop, with too little
# shared memory for all digests.  Larger by SESSIONS, SESSIONS_PARTITIONS and SESSIONS_SECONDS.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;
use Time::HiRes qw(time);

my $sessions = $ENV{SESSIONS} // 50;
my $partitions = $ENV{SESSIONS_PARTITIONS} // 1000;
my $seconds = $ENV{SESSIONS_SECONDS} // 8;
my $seed = seed();
my $locks = 100 + 4 * ($partitions < 2500 ? $partitions : 2500);
my $connections = $sessions + 20;

# A session that asks for the first time may lock all indexes.
my $node = new_server(
	'sessions',
	conf => qq{
max_connections = $connections
max_locks_per_transaction = $locks
shared_buffers = 32MB
rangefilter.shared_cache_size = 1MB
rangefilter.cache_size = 1MB
});
my $dir = $node->basedir;

# Each partition has ids that stay, 8 * row + 1, and strings made of them.
my $rows = 10 * $partitions;
$node->safe_psql(
	'postgres', qq{
CREATE TABLE t (p int, id bigint, s text, v int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%1\$s PARTITION OF t FOR VALUES IN (%1\$s)', i) FROM generate_series(0, $partitions - 1) i \\gexec
INSERT INTO t SELECT n % $partitions, 8 * n + 1, md5((8 * n + 1)::text), 0 FROM generate_series(1, $rows) n;
CREATE INDEX t_id ON t USING rangefilter (id);
CREATE INDEX t_s ON t USING rangefilter (s);
VACUUM;
CREATE FUNCTION check_rows(query text, expected bigint) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	n bigint;
BEGIN
	EXECUTE query INTO n;
	IF n IS DISTINCT FROM expected THEN
		RAISE '%: % rows, not %', query, n, expected;
	END IF;
END \$\$;
});

# What stays is found; what was never there is not.  What a session writes it finds, and nobody
# else's is in the way: ids of rows that come and go end in 2 to 5.
my %scripts = (
	stays => qq{
\\set n random(1, $rows)
SELECT check_rows('SELECT count(*) FROM t WHERE id = ' || 8 * :n + 1, 1);
SELECT check_rows('SELECT count(*) FROM t WHERE s = ' || quote_literal(md5((8 * :n + 1)::text)), 1);
SELECT check_rows('SELECT count(*) FROM t WHERE id IN (' || 8 * :n + 1 || ', ' || 8 * :n + 6 || ') OR id = ' || 8 * :n, 1);
SELECT 1 / (1 - count(*)) FROM t WHERE id = 8 * :n + 7;
},
	generic => qq{
\\set n random(1, $rows)
SET plan_cache_mode = force_generic_plan;
SELECT 1 / count(*) FROM t WHERE id = 8 * :n + 1;
RESET plan_cache_mode;
},
	writes => qq{
\\set n random(1, $rows)
\\set p random(0, $partitions - 1)
\\set q random(0, $partitions - 1)
\\set first 8 * (:n * $sessions + :client_id) + 8000000002
\\set second :first + 1
BEGIN;
INSERT INTO t VALUES (:p, :first, md5(:first::bigint::text), 0);
SELECT 1 / count(*) FROM t WHERE id = :first;
COMMIT;
SELECT 1 / count(*) FROM t WHERE s = md5(:first::bigint::text);
UPDATE t SET p = :q, id = :second WHERE id = :first;
SELECT 1 / count(*) FROM t WHERE id BETWEEN :second AND :second + 1::bigint;
SELECT 1 / (1 - count(*)) FROM t WHERE id = :first;
DELETE FROM t WHERE id = :second;
SELECT 1 / (1 - count(*)) FROM t WHERE id = :second;
});
append_to_file("$dir/$_.sql", $scripts{$_}) foreach keys %scripts;

my ($out, $err) = ('', '');
my $run = IPC::Run::start(
	[
		$node->installed_command('pgbench'), '-n', '-M', 'extended', '-c', $sessions, '-j', 2, '-T', $seconds,
		"--random-seed=$seed", '-h', $node->host, '-p', $node->port,
		'-f', "$dir/stays.sql\@4", '-f', "$dir/generic.sql", '-f', "$dir/writes.sql\@2", 'postgres'
	],
	'<', \undef, '>', \$out, '2>', \$err);

# Meanwhile partitions are loaded, attached and dropped, indexes made anew, and tables vacuumed.
my $until = time() + $seconds;
my $done = 0;
my $failed = '';

while (time() < $until)
{
	my $p = pick(0, $partitions - 1);
	my $new = $partitions + $done;
	my ($status, $stdout, $stderr) = $node->psql(
		'postgres', qq{
SET client_min_messages = warning;
CREATE TABLE t$new AS SELECT $new AS p, 16000000000 + n AS id, md5('new' || n) AS s, 0 AS v FROM generate_series(1, 100) n;
ALTER TABLE t ATTACH PARTITION t$new FOR VALUES IN ($new);
SELECT check_rows('SELECT count(*) FROM t WHERE id = 16000000050', 1);
VACUUM t$p;
REINDEX INDEX CONCURRENTLY t${p}_id_idx;
DROP TABLE t$new;
SELECT check_rows('SELECT count(*) FROM t WHERE id >= 16000000000', 0);
}, on_error_stop => 1);

	$failed .= $stderr;
	$done++;
}
my $ok = $run->finish;

is(join("\n", grep { !/setting random seed/ } split /\n/, $err), '', "seed $seed: no session missed a row or saw one too many");
ok($ok, 'all sessions came to their end');
like($out, qr/actually processed: [1-9]/, 'they asked');
is($failed, '', "$done partitions came and went");

# Afterwards each index knows all rows, and skips.
is( $node->safe_psql('postgres', qq{
VACUUM;
SELECT rangefilter_verify('t_id') > 0, rangefilter_verify('t_s') > 0;
SELECT count(*) BETWEEN 1 AND $partitions / 2 FROM rangefilter_status('t_id') WHERE rangefilter_may_contain(index, 9, 9);
}),
	"t|t\nt",
	'the indexes are whole, and partitions are left out');
$node->stop;
done_testing();
