# Deferred scans: the memory of a session that runs one a hundred thousand times, errors and
# cancelled runs, a hot standby on which partitions are truncated, and dumps.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;
use Time::HiRes qw(usleep);

my $primary = new_server('primary', init => { allows_streaming => 1 });
my $standby = PostgreSQL::Test::Cluster->new('standby');

# Partition p has 1000 p ... 1000 p + 999 in k; deferred() tells whether a query has a
# deferred scan, and same() whether it answers the same without skipping.
$primary->safe_psql(
	'postgres', q{
CREATE TABLE t (p int, k int, v text) PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%1$s PARTITION OF t FOR VALUES IN (%1$s)', i) FROM generate_series(0, 39) i \gexec
INSERT INTO t SELECT v / 1000, v, 'v' || v FROM generate_series(0, 39999) v;
CREATE INDEX ON t USING rangefilter (k);
CREATE INDEX ON t (k);
CREATE TABLE levels (p int, k int, v text) PARTITION BY LIST (p);
SELECT format('CREATE TABLE levels%1$s PARTITION OF levels FOR VALUES IN (%1$s) PARTITION BY RANGE (k)', i),
	format('CREATE TABLE levels%1$s_0 PARTITION OF levels%1$s FOR VALUES FROM (0) TO (%2$s)', i, 1000 * i + 500),
	format('CREATE TABLE levels%1$s_1 PARTITION OF levels%1$s FOR VALUES FROM (%2$s) TO (50000)', i, 1000 * i + 500)
FROM generate_series(0, 39) i \gexec
INSERT INTO levels SELECT v / 1000, v, 'v' || v FROM generate_series(0, 39999) v;
CREATE INDEX ON levels USING rangefilter (k);
CREATE INDEX ON levels (k);
CREATE TABLE d AS SELECT 1000 * g + 7 AS id, 'n' || g AS name FROM generate_series(0, 50) g;
ANALYZE;
CREATE FUNCTION deferred(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN jsonb_path_exists(plan, 'strict $.**?(@."Custom Plan Provider" == "Range Filter Scan")');
END $$;
CREATE FUNCTION answer(query text, skipping text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	row record;
	lines text[] := '{}';
BEGIN
	PERFORM set_config('rangefilter.enable', skipping, true);
	FOR row IN EXECUTE query LOOP
		lines := lines || row::text;
	END LOOP;
	PERFORM set_config('rangefilter.enable', 'on', true);
	RETURN cardinality(lines) || ' rows ' || (SELECT md5(coalesce(string_agg(x, ',' ORDER BY x), '')) FROM unnest(lines) x);
END $$;
CREATE FUNCTION same(query text) RETURNS bool LANGUAGE sql AS $$ SELECT answer(query, 'on') = answer(query, 'off') $$;
});
$primary->backup('base');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = -1\nhot_standby_feedback = on\n");
$standby->start;

#
# Memory
#

# Bytes of a process in memory, at most so far; Linux only.
sub most_memory
{
	my ($pid) = @_;
	my ($line) = grep { /^VmHWM/ } split /\n/, slurp_file("/proc/$pid/status");

	return $line =~ /(\d+) kB/ ? 1024 * $1 : die "no VmHWM";
}

# A query that runs a scan of a table so many times, with values that are in partitions or between; each value comes
# twice.  more is another condition.
sub rescans
{
	my ($n, $more, $table) = @_;

	$table //= 't';
	return "SELECT count(l) FROM generate_series(1, $n) g, LATERAL (SELECT k FROM $table WHERE k = (g / 2)::bigint * 7919 % 41000$more OFFSET 0) l";
}

my $session = open_session($primary);
ask($session, 'SET enable_memoize = off');
my $pid = ask($session, 'SELECT pg_backend_pid()');

SKIP:
{
	skip 'no /proc', 10 unless -e "/proc/$pid/status";
	# Each run of the second and third ones is planned, because of the partition key and of the levels.
	for ([ 't', '', 1000, 100_000, 'plans of partitions are kept' ],
		[ 't', ' AND p <= g % 50', 300, 4000, 'each run is planned' ],
		[ 'levels', '', 300, 3000, 'levels' ])
	{
		my ($table, $more, $few, $many, $name) = @$_;

		is(ask($session, "SELECT deferred(\$\$" . rescans($many, $more, $table) . '$$)'), 't', "$name: it is deferred");
		ask($session, rescans($few, $more, $table));
		my $before = most_memory($pid);
		my $got = ask($session, rescans($many, $more, $table));
		my $growth = most_memory($pid) - $before;

		cmp_ok($got, '>', 0, "$name: $got rows");
		cmp_ok($growth, '<', 8_000_000, "$name: the session has not grown");
		note "$growth bytes";
	}

	# EXPLAIN plans an example, or shows plans that are kept.
	my $explain = sub {
		my ($n) = @_;
		my ($five, $none) = (rescans(5, ''), rescans(0, ''));

		return "DO \$\$ DECLARE line text; BEGIN FOR i IN 1 .. $n LOOP FOR line IN EXPLAIN $none LOOP END LOOP;"
		  . " FOR line IN EXPLAIN (ANALYZE, VERBOSE) $five LOOP END LOOP; END LOOP; END \$\$";
	};
	ask($session, $explain->(50));
	my $before = most_memory($pid);
	ask($session, $explain->(500));
	my $growth = most_memory($pid) - $before;

	cmp_ok($growth, '<', 4_000_000, 'EXPLAIN: the session has not grown');
	note "$growth bytes";
}

#
# Runs that end early
#
my $pause = q{SELECT count(l) FROM generate_series(1, 2000) g,
	LATERAL (SELECT pg_sleep(0.05) FROM t WHERE k = (g * 40)::bigint % 40000 AND p >= 0 OFFSET 0) l};
my $works = q{SELECT same('SELECT d.name, t.* FROM d JOIN t ON t.k = d.id WHERE d.name IN (''n3'', ''n39'', ''n45'')'),
	same('SELECT * FROM t WHERE k = (SELECT id FROM d WHERE name = ''n5'')')};
my $locks = "SELECT count(*) FROM pg_locks WHERE pid = $pid AND locktype = 'relation' AND relation IN (SELECT relid FROM pg_partition_tree('t'))";

is(ask($session, "SELECT deferred(\$\$$pause\$\$)"), 't', 'the query that is cancelled is deferred');
send_sql($session, $pause);
ok($primary->poll_query_until('postgres', "SELECT ($locks) > 0 AND EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid AND wait_event = 'PgSleep')"),
	'it runs');
$primary->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
like(answer($session), qr/canceling statement due to user request/, 'it is cancelled');
is($primary->safe_psql('postgres', $locks), 0, 'no locks are left');
is(ask($session, $works), 't|t', 'the session goes on');
like(ask($session, "SET statement_timeout = '300ms';\n$pause"), qr/statement timeout/, 'a timeout');
ask($session, 'RESET statement_timeout');
is(ask($session, $works), 't|t', 'the session goes on');
like(
	ask($session, "BEGIN; SAVEPOINT a;\nSET LOCAL statement_timeout = '300ms';\n$pause;\nROLLBACK TO a;\n$works;\nCOMMIT"),
	qr/statement timeout.*\nt\|t$/s, 'a timeout in a subtransaction');
like(ask($session, rescans(500, ' AND 1 / (k - 7919) < 2')), qr/division by zero/, 'an error in a late run');
is(ask($session, $works), 't|t', 'the session goes on');
close_session($session);

#
# A hot standby
#
sub catch_up { $primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert')); }

my $shapes = q{
	('SELECT d.name, t.* FROM d JOIN t ON t.k = d.id WHERE d.name IN (''n3'', ''n39'', ''n45'')'),
	('SELECT * FROM t WHERE k = (SELECT id FROM d WHERE name = ''n5'')'),
	('SELECT * FROM t WHERE k BETWEEN (SELECT 6990) AND (SELECT 8010)'),
	('SELECT l.* FROM generate_series(0, 41000, 500) g, LATERAL (SELECT * FROM t WHERE k = g OFFSET 0) l')};
my $all_same = "SELECT bool_and(same(q)), bool_and(deferred(q)) FROM (VALUES $shapes) s (q)";

catch_up();
is($standby->safe_psql('postgres', $all_same), 't|t', 'standby: deferred, and the same rows');
$primary->safe_psql('postgres', "INSERT INTO t VALUES (1, 5007, 'late'), (2, 45007, 'late'); DELETE FROM t WHERE k = 39007");
catch_up();
is($standby->safe_psql('postgres', $all_same), 't|t', 'standby: after changes');
is($standby->safe_psql('postgres', q{SELECT string_agg(v, ' ' ORDER BY v) FROM t WHERE k = (SELECT id FROM d WHERE name = 'n5')}),
	'late v5007', 'standby: a row that came');
$primary->safe_psql('postgres', 'VACUUM t');
catch_up();
is($standby->safe_psql('postgres', $all_same), 't|t', 'standby: after VACUUM');

# The replay of TRUNCATE waits for a query that may read the partition.
my $reader = open_session($standby);
my $read = q{SELECT string_agg(v, ' ' ORDER BY v) FROM t WHERE k = (SELECT id FROM d WHERE name = 'n5')};

is(ask($reader, "BEGIN ISOLATION LEVEL REPEATABLE READ;\n$read"), 'late v5007', 'standby: a transaction reads');
$primary->safe_psql('postgres', "TRUNCATE t5; TRUNCATE t20; INSERT INTO t VALUES (20, 5007, 'moved')");
ok($standby->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'startup' AND wait_event_type = 'Lock')}),
	'standby: the replay of TRUNCATE waits');
is(ask($reader, $read), 'late v5007', 'standby: its snapshot keeps the rows');
ask($reader, 'COMMIT');
catch_up();
is(ask($reader, $read), 'late moved', 'standby: after TRUNCATE');
is($standby->safe_psql('postgres', $all_same), 't|t', 'standby: the same rows after TRUNCATE');
$primary->safe_psql('postgres', 'ALTER TABLE t DETACH PARTITION t1; DROP TABLE t3; CREATE TABLE t41 PARTITION OF t FOR VALUES IN (41)');
$primary->safe_psql('postgres', "INSERT INTO t VALUES (41, 5007, 'new')");
catch_up();
is(ask($reader, $read), 'moved new', 'standby: partitions that went and came');
is($standby->safe_psql('postgres', $all_same), 't|t', 'standby: the same rows of other partitions');
close_session($reader);
$standby->promote;
is($standby->safe_psql('postgres', $all_same), 't|t', 'promoted: the same rows');
$standby->safe_psql('postgres', "INSERT INTO t VALUES (10, 5007, 'promoted')");
is($standby->safe_psql('postgres', $read), 'moved new promoted', 'promoted: a row that came');
is($standby->safe_psql('postgres', $all_same), 't|t', 'promoted: the same rows after a change');
$standby->stop;

#
# Dump and restore
#
$primary->safe_psql('postgres', q{
ALTER DATABASE postgres SET rangefilter.defer_partitions = 1;
CREATE MATERIALIZED VIEW m AS SELECT t.* FROM d JOIN t ON t.k = d.id WHERE d.name IN ('n4', 'n6')});
$primary->safe_psql('postgres', 'CREATE DATABASE restored');
$primary->command_ok([ 'pg_dump', '-Fc', '-f', $primary->basedir . '/dump', $primary->connstr('postgres') ], 'pg_dump');
$primary->command_ok([ 'pg_restore', '--exit-on-error', '-d', $primary->connstr('restored'), $primary->basedir . '/dump' ], 'pg_restore');
$primary->safe_psql('restored', 'ANALYZE');
is($primary->safe_psql('restored', $all_same), 't|t', 'restored: deferred, and the same rows');
for ('SELECT count(*), md5(string_agg(t::text, \' \' ORDER BY k, v)) FROM t', 'SELECT * FROM m ORDER BY k')
{
	is($primary->safe_psql('restored', $_), $primary->safe_psql('postgres', $_), "restored: $_");
}
$primary->stop;

done_testing();
