# Crashes in the midst of an index's first build: nothing of it is left but what
# CONCURRENTLY leaves, the table goes on, and the index can be made.  What is left
# of one that inserts go to already is sound.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $seed = seed();
my $node = new_server('build_crash');

# The key of half of the rows waits for whoever holds the lock.
$node->safe_psql(
	'postgres', q{
CREATE FUNCTION slow(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$
BEGIN
	IF k = 20000 THEN
		PERFORM pg_advisory_lock_shared(99);
		PERFORM pg_advisory_unlock_shared(99);
	END IF;
	RETURN k;
END
$$;
CREATE TABLE t (p int, k int, s text COLLATE "C") PARTITION BY LIST (p);
CREATE TABLE t0 PARTITION OF t FOR VALUES IN (0);
CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);
CREATE TABLE t2 PARTITION OF t FOR VALUES IN (2);
INSERT INTO t SELECT k % 3, k, md5(k::text) || repeat('x', k % 90) FROM generate_series(1, 40000) k;
CREATE TABLE big AS SELECT md5(k::text) COLLATE "C" AS s FROM generate_series(1, 150000) k;
-- Returns when the build makes its pages, or is over.
CREATE PROCEDURE see_writing(builder int) LANGUAGE plpgsql AS
$$
BEGIN
	WHILE EXISTS (SELECT FROM pg_stat_activity WHERE pid = builder AND state = 'active') LOOP
		EXIT WHEN EXISTS (SELECT FROM pg_stat_progress_create_index WHERE pid = builder AND phase ~ 'writing|filter');
		PERFORM pg_stat_clear_snapshot();
	END LOOP;
END
$$;
});

# The process that builds is killed, so all end, and the server recovers.  Another
# session waits for its end: until then the server has not noticed.
sub kill_build
{
	my ($session, $pid, $other) = @_;

	kill('KILL', $pid) == 1 or die "no process $pid";
	eval { ask($other, 'SELECT pg_sleep(60)') };
	eval { answer($session) };
	eval { close_session($_) } foreach ($session, $other);
	wait_for_recovery($node, 'SELECT true');
	return;
}

# What lets sessions see that a build is where it is to be killed, if something
# keeps it there: the key's lock, or a snapshot that is older than the index.
my %awaited = (
	scan => q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted},
	end => q{SELECT count(*) = 1 FROM pg_stat_progress_create_index WHERE phase = 'waiting for old snapshots'});

# Begins a build and kills it in the scan, while it makes its pages, or at the end.
sub break_build
{
	my ($name, $create, $where) = @_;
	my $holder = open_session($node);
	my $builder = open_session($node);
	my $pid = ask($builder, 'SELECT pg_backend_pid()');

	ask($holder, 'SELECT pg_advisory_lock(99)') if $where eq 'scan';
	ask($holder, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_am') if $where eq 'end';
	send_sql($builder, $create);
	if ($awaited{$where}) { ok($node->poll_query_until('postgres', $awaited{$where}), "$name: in the midst of it"); }
	else { ask($holder, "CALL see_writing($pid)"); }
	kill_build($builder, $pid, $holder);
	return;
}

sub indexes_left
{
	return $node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname ~ '^made'});
}

my $new_key = 100000;

# What an index is made on, how, and where that ends.
foreach my $case (
	[ 'rangefilter', 't2 USING rangefilter (slow(k), s)', '', 'scan' ],
	[ 'partitioned', 't USING rangefilter (slow(k))', '', 'scan' ],
	[ 'wormhole', 't2 USING wormhole (slow(k), s)', '', 'scan' ],
	[ 'partitioned wormhole', 't USING wormhole (slow(k))', '', 'scan' ],
	[ 'rangefilter, concurrently', 't2 USING rangefilter (slow(k))', 'CONCURRENTLY', 'scan' ],
	[ 'wormhole, concurrently', 't2 USING wormhole (slow(k))', 'CONCURRENTLY', 'scan' ],
	[ 'rangefilter, at the end', 't2 USING rangefilter (slow(k))', 'CONCURRENTLY', 'end' ],
	[ 'wormhole, at the end', 't2 USING wormhole (slow(k), s)', 'CONCURRENTLY', 'end' ],
	[ 'rangefilter, writing', 'big USING rangefilter (s) WITH (bits_per_key = 64)', '', 'writing' ],
	[ 'wormhole, writing', 'big USING wormhole (s)', '', 'writing' ])
{
	my ($what, $on, $option, $where) = @$case;
	my $name = "seed $seed, $what";
	my $create = "CREATE INDEX $option made ON $on";
	my $left = $option ? 1 : 0;

	# Nothing keeps a build in its writing: it may be over before it is killed.
	for (1 .. 10)
	{
		break_build($name, $create, $where);
		last if $where ne 'writing' || indexes_left() == 0;
		$node->safe_psql('postgres', 'DROP INDEX made');
	}
	is(indexes_left(), $left, "$name: what is left");

	# All it lacks at the end is to be called valid.
	if ($where eq 'end')
	{
		my $check = $on =~ /wormhole/ ? q{wormhole_check('made', true) >= 13000}
		  : q{rangefilter_verify('made') >= 13000 AND
		(SELECT count(*) FROM generate_series(3, 39999, 3) k WHERE NOT rangefilter_may_contain('made', k, k)) > 10000};

		$node->safe_psql('postgres', q{UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'made'::regclass});
		is($node->safe_psql('postgres', "SELECT $check"), 't', "$name: it is sound");
	}

	# The table is of use, with what is left as well as without.
	$new_key++;
	is($node->safe_psql('postgres', "INSERT INTO t VALUES ($new_key % 3, $new_key, 'new'); UPDATE t SET s = s || 'y' WHERE k % 100 = 3;
SELECT count(*) FROM t WHERE slow(k) = $new_key; VACUUM t"), '1', "$name: the table goes on");
	$node->safe_psql('postgres', 'DROP INDEX IF EXISTS made') if $left;
	$node->safe_psql('postgres', $create);
	is( $node->safe_psql(
			'postgres', q{
SELECT bool_and(CASE amname WHEN 'wormhole' THEN wormhole_check(c.oid, true) ELSE rangefilter_verify(c.oid) END >= 13000)
FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relkind = 'i' AND amname IN ('rangefilter', 'wormhole')}),
		't', "$name: made again");
	is($node->safe_psql('postgres', q{
SET enable_seqscan = off;
SELECT count(*) FROM generate_series(2, 40000, 399) i JOIN t ON slow(t.k) = i;
SELECT count(*) FROM t WHERE s = (SELECT s FROM t WHERE k = 30002);
SELECT count(*) FROM t WHERE slow(k) > 100000}), "101\n1\n" . ($new_key - 100000), "$name: and finds rows");
	$node->safe_psql('postgres', 'DROP INDEX made');
}
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no other crash');
$node->stop;
done_testing();
