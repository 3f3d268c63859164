# The memory in which sessions share digests: what happens when it is full, when
# a process dies, and when databases have the same OIDs.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

# Groups of 64 partitions take 480 kB, or 240 kB where that is more than half of what others leave.
my $node = new_server('cache', conf => "rangefilter.shared_cache_size = 1MB\nmax_locks_per_transaction = 512");

# warm() asks so often that digests are made, for numbers that are not there, and
# returns how many were; found() tells how many of some that are there it finds.
sub make_tables
{
	my $tables = 4;

	for my $t (1 .. $tables)
	{
		$node->safe_psql(
			'postgres', qq{
CREATE TABLE t$t (p int, k bigint) PARTITION BY LIST (p);
SELECT format('CREATE TABLE t${t}_%1\$s PARTITION OF t$t FOR VALUES IN (%1\$s)', i) FROM generate_series(1, 64) i \\gexec
INSERT INTO t$t SELECT p, abs(hashint8extended(64 * n + p, $t)) / 2 * 2 FROM generate_series(1, 64) p, generate_series(1, 10000) n;
CREATE INDEX ON t$t USING rangefilter (k);
});
	}
	$node->safe_psql(
		'postgres', q{
CREATE FUNCTION warm(name text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	n int;
	found int = 0;
BEGIN
	FOR i IN 1 .. 50 LOOP
		EXECUTE format('SELECT count(*) FROM %I WHERE k = %s', name, abs(hashint8extended(i, 100)) / 2 * 2 + 1) INTO n;
		found := found + n;
	END LOOP;
	RETURN found;
END $$;
CREATE FUNCTION found(t int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	n int;
	found int = 0;
BEGIN
	FOR i IN 1 .. 64 LOOP
		EXECUTE format('SELECT count(*) FROM t%s WHERE k = %s', t, abs(hashint8extended(64 * (100 * i) + i, t)) / 2 * 2) INTO n;
		found := found + n;
	END LOOP;
	RETURN found;
END $$;
});
}

# A session that looks for what is there for some seconds, while others replace
# indexes and digests; it returns how often it missed something.
sub look_for
{
	my ($session, $t) = @_;

	send_sql($session, qq{
DO \$\$
DECLARE
	until timestamptz = clock_timestamp() + interval '5 s';
	missed int = 0;
BEGIN
	WHILE clock_timestamp() < until LOOP
		missed := missed + (found($t) <> 64)::int + (warm('t$t') <> 0)::int;
		COMMIT;
	END LOOP;
	PERFORM set_config('my.missed', missed::text, false);
END \$\$});
}

sub used
{
	return $node->safe_psql('postgres', 'SELECT indexes, bytes FROM rangefilter_shared_cache()');
}

make_tables();
is(used(), '0|0', 'nobody has asked');

my $asks = open_session($node);
my $group = 8 * 60033;
my $small = 8 * 30017;

is(ask($asks, "SELECT warm('t1')"), 0, 'numbers that are not there');
is(used(), "64|$group", 'one table');
is(ask($asks, "SELECT warm('t2')"), 0, 'of another table');
is(used(), '128|' . ($group + $small), 'two tables');
is(ask($asks, "SELECT warm('t3')"), 0, 'of a third one');
is(used(), '192|' . ($group + 2 * $small), 'three tables');
$node->safe_psql('postgres', 'ALTER DATABASE postgres CONNECTION LIMIT 100');
is(used(), '192|' . ($group + 2 * $small), 'also when the database has another setting');

# While others are in use, none goes; the session has digests of its own.
is(ask($asks, "SELECT warm('t1') + warm('t2') + warm('t4') + warm('t3')"), 0, 'a fourth table');
is(used(), '192|' . ($group + 2 * $small), 'for which there is no room');
is(ask($asks, "SELECT concat_ws(' ', found(1), found(2), found(3), found(4))"), '64 64 64 64', 'what is there is found');

# t1 is not asked any more.
for (1 .. 13)
{
	ask($asks, "SELECT warm('t2') + warm('t3')");
	sleep 1;
}
my $later = open_session($node);
is(ask($later, "SELECT warm('t4')"), 0, 'a fourth table, in another session');
like(used(), qr/^\d+\|@{[3 * $small]}$/, 'in place of the first one');
is(ask($later, "SELECT concat_ws(' ', found(1), found(2), found(3), found(4))"), '64 64 64 64', 'what is there is found');
is(ask($asks, "SELECT concat_ws(' ', found(1), found(2), found(3), found(4))"), '64 64 64 64', 'in a session that knew the first one');
is(ask($asks, "SELECT warm('t1')"), 0, 'nothing else is');
is(ask($asks, "SELECT concat_ws(' ', found(1), found(2), found(3), found(4))"), '64 64 64 64', 'which has asked for it again');

# Each question counts for each partition.
$node->safe_psql('postgres', 'SELECT rangefilter_activity_reset()');
my $counts = open_session($node);
is(ask($counts, q{SELECT sum(warm('t2')) FROM generate_series(1, 6)}), 0, 'three hundred questions');
close_session($counts);
is($node->safe_psql('postgres', q{SELECT count(*), sum(probes), min(probes), max(probes) FROM rangefilter_activity
	WHERE "table"::text ~ '^t2_'}), '64|19200|300|300', 'for each partition');

# What is found must not depend on what others do to shared digests just now.
my @looking = map { open_session($node) } 1 .. 3;
my $changes = open_session($node);
look_for($looking[$_], 1 + $_ % 2) for 0 .. $#looking;
for my $i (1 .. 60)
{
	ask($changes, "REINDEX TABLE t1_" . (1 + $i % 64) . "; REINDEX TABLE t2_" . (64 - $i % 64) . "; SELECT warm('t1')");
}
for my $session (@looking)
{
	answer($session);
	is(ask($session, "SELECT current_setting('my.missed')"), 0, 'found all the time');
	close_session($session);
}
close_session($changes);

# Another database with the same OIDs and other rows.
close_session($_) for $asks, $later;
$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE postgres', connstr => $node->connstr('template1'));
$node->safe_psql('copy', 'TRUNCATE t2_7; INSERT INTO t2_7 VALUES (7, 12345); REINDEX TABLE t2_7');
is($node->safe_psql('copy', 'SELECT indexes, bytes FROM rangefilter_shared_cache()'), '0|0', 'a database has its own');
is($node->safe_psql('copy', "SELECT warm('t2'); SELECT count(*) FROM t2 WHERE k = 12345"), "0\n1", 'its rows are found');
is($node->safe_psql('postgres', "SELECT found(2)"), 64, 'and those of the one it was copied from');

# A process that dies takes all with it.
$node->poll_query_until('postgres', "SELECT indexes > 0 FROM rangefilter_shared_cache(), warm('t1')");
my $victim = open_session($node);
my $pid = ask($victim, 'SELECT pg_backend_pid()');
kill 'KILL', $pid;
ok(wait_for_recovery($node, 'SELECT indexes = 0 FROM rangefilter_shared_cache()'), 'all is gone');
is($node->safe_psql('postgres', "SELECT warm('t1'); SELECT found(1)"), "0\n64", 'after a crash');
is(used(), "64|$group", 'digests are made again');

$victim->{run}->kill_kill;

# Keys that a group's frame has no room for, of numbers that suit no new one: each
# partition's digest is its own again, and nobody asks the group of the past.
$node->safe_psql(
	'postgres', q{
CREATE TABLE w (p int, k int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE w%1$s PARTITION OF w FOR VALUES IN (%1$s)', i) FROM generate_series(1, 64) i \gexec
INSERT INTO w SELECT p, 100 * k + p FROM generate_series(1, 64) p, generate_series(1, 1000) k;
CREATE INDEX ON w USING rangefilter (k);
CREATE FUNCTION often(n int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	found bigint = 0;
	c bigint;
BEGIN
	FOR i IN 1 .. 80 LOOP
		EXECUTE format('SELECT count(*) FROM w WHERE k = %s', n + 17 * i) INTO c;
		found := found + c;
	END LOOP;
	RETURN found;
END $$;
SELECT often(65);
INSERT INTO w SELECT p, 200000 + g * 35000 + p FROM generate_series(1, 20) p, generate_series(1, 28000) g;
INSERT INTO w SELECT p, 200000 + g * 250000 + p FROM generate_series(21, 64) p, generate_series(1, 3900) g;
INSERT INTO w SELECT p, 1000000000 FROM generate_series(1, 64) p;
INSERT INTO w VALUES (22, 5085), (40, 5085), (60, 77777);
VACUUM w});
is($node->safe_psql('postgres', q{SELECT often(999000000); SELECT count(*) FROM w WHERE k = 5085; SELECT count(*) FROM w WHERE k = 77777}),
	"0\n2\n1", 'keys that came later');

# Sessions that ask one query each make digests, although the first partition is empty, and the
# keys of the second are far from those of the others.
$node->safe_psql('postgres', 'CREATE DATABASE once');
$node->safe_psql(
	'once', q{
CREATE EXTENSION rangefilter;
CREATE TABLE t (p int, k int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%1$s PARTITION OF t FOR VALUES IN (%1$s)', i) FROM generate_series(1, 64) i \gexec
INSERT INTO t SELECT p, 100 * k + p + (p = 2)::int * 1000000000 FROM generate_series(2, 64) p, generate_series(1, 1000) k;
CREATE INDEX ON t USING rangefilter (k)});
my @made;
for my $i (1 .. 3)
{
	is($node->safe_psql('once', "SELECT count(*) FROM t WHERE k = 5099"), 0, "session $i finds nothing");
	push @made, $node->safe_psql('once', 'SELECT indexes FROM rangefilter_shared_cache()');
}
is("@made", '39 62 62', 'digests for 40,000 keys at a time');
is( $node->safe_psql(
		'once', q{
SELECT count(*) FROM t WHERE k = 5064;
SELECT count(*) FROM t WHERE k = 1000005002;
INSERT INTO t VALUES (1, 5099), (3, 5099);
SELECT count(*) FROM t WHERE k = 5099}),
	"1\n1\n2", 'with them, rows are found');

# A restart begins without digests; the first query makes them.
$node->restart;
is($node->safe_psql('once', 'SELECT indexes FROM rangefilter_shared_cache()'), 0, 'no digests after a restart');
is($node->safe_psql('once', 'SELECT count(*) FROM t WHERE k = 5099'), 2, 'what was inserted before is found');
is($node->safe_psql('once', 'SELECT indexes FROM rangefilter_shared_cache()'), 39, 'the first query makes digests again');
$node->stop;
done_testing();
