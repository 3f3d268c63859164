# Clients that write into one partition fill pages of its delta together, beside
# summarizes; then a crash in the midst of it.  No key is lost, here or on a standby
# that compares its pages with the primary's.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;
use Time::HiRes qw(usleep);

my $clients = 8;
my $node = new_server(
	'appends',
	init => { allows_streaming => 1 },
	conf => q{
wal_consistency_checking = 'generic'
wal_keep_size = '1GB'
synchronous_commit = off
});
my $standby = PostgreSQL::Test::Cluster->new('standby');

# The keys of n have no order, those of s are long.  Behind the last summarize n is now and then the
# least number, whose key is zeros: replay leaves zeros in the free space, too.
$node->safe_psql(
	'postgres', q{
CREATE TABLE t (p int, n bigint, s text COLLATE "C") PARTITION BY LIST (p);
CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE t2 PARTITION OF t FOR VALUES IN (2) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT p, 2 * g, repeat('x', 60) || 2 * g FROM generate_series(1, 2) p, generate_series(1, 5000) g;
CREATE INDEX t_n ON t USING rangefilter (n);
CREATE INDEX t_s ON t USING rangefilter (s);
CREATE SEQUENCE numbers;
CREATE FUNCTION fill() RETURNS void LANGUAGE sql AS
	'INSERT INTO t SELECT 1, CASE WHEN i > 12500 AND i % 300 = 0 THEN -9223372036854775808 ELSE hashint8(i) * 2::bigint + 1 END,
		repeat(''x'', 60) || hashint8(i) FROM nextval(''numbers'') i';
});
$node->backup('base');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;

# The insert as a script of pgbench.
my $script = $node->basedir . '/fill.sql';
append_to_file($script, "SELECT fill();\n");

# Starts the clients, each for so many rows.
sub start_clients
{
	my ($rows) = @_;
	my ($out, $err) = ('', '');

	return IPC::Run::start(
		[
			'pgbench', '-n', '-c', $clients, '-j', 2, '-t', $rows, '-f', $script,
			'-h', $node->host, '-p', $node->port, '-U', $node->safe_psql('postgres', 'SELECT current_user'), 'postgres'
		],
		'>', \$out, '2>', \$err);
}

# Each row is found by its keys, in the indexes and by queries.
sub check
{
	my ($server, $name) = @_;

	is( $server->safe_psql(
			'postgres', q{
SELECT count(*) FROM t1
WHERE NOT rangefilter_may_contain('t1_n_idx', n, n) OR NOT rangefilter_may_contain('t1_s_idx', s, s)}),
		'0', "$name: no key is denied");
	is( $server->safe_psql(
			'postgres', q{
LOAD 'rangefilter';
CREATE TEMP TABLE wrong (n bigint);
DO $$
DECLARE
	r record;
	found int;
BEGIN
	FOR r IN SELECT * FROM t1 WHERE n % 2 <> 0 ORDER BY hashint8(n) LIMIT 200 LOOP
		EXECUTE format('SELECT count(*) FROM t WHERE n = %s AND s = %L', r.n, r.s) INTO found;
		IF found = 0 THEN
			INSERT INTO wrong VALUES (r.n);
		END IF;
	END LOOP;
END $$;
SELECT count(*) FROM wrong}),
		'0', "$name: queries find the rows") unless $server == $standby;
	return;
}

my $running = start_clients(1500);

for (1 .. 4)
{
	$node->poll_query_until('postgres', "SELECT last_value > $_ * 2000 FROM numbers");
	$node->safe_psql('postgres', q{SELECT rangefilter_summarize('t1_n_idx'), rangefilter_summarize('t1_s_idx')});
}
ok($running->finish, 'all clients have written');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t1'), 5000 + 1500 * $clients, 'there are all rows');
check($node, 'beside summarizes');
is( $node->safe_psql(
		'postgres', q{
SELECT bool_or(tail_open)
FROM (SELECT (rangefilter_status(i)).* FROM unnest('{t1_n_idx,t1_s_idx}'::regclass[]) i) s}),
	'f', 'the tail is not open');
$node->wait_for_catchup($standby);
check($standby, 'on a standby');

# The keys as they come are written before the rows are committed, and so are there
# after a crash.
$running = start_clients(100000);
$node->poll_query_until('postgres', 'SELECT last_value > 20000 FROM numbers');
my $pid = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];
$node->kill9;
usleep(10_000) while kill(0, $pid);
ok(!$running->finish, 'the server is killed while clients write');
for (1 .. 300)
{
	last if $node->start(fail_ok => 1);
	usleep(100_000);
}
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM t1'), '>', 5000 + 1500 * $clients, 'rows have come until then');
check($node, 'after a crash');
$running = start_clients(200);
ok($running->finish, 'clients write again');
check($node, 'after a crash, with more rows');
$node->wait_for_catchup($standby);
check($standby, 'on a standby of that');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM t'), $node->safe_psql('postgres', 'SELECT count(*) FROM t'),
	'the standby has replayed all, and found its pages like the primary\'s');

$standby->stop;
$node->stop;
done_testing();
