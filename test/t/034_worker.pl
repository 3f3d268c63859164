# The background worker summarizes what inserts ask for, without VACUUM; it runs
# functions as the table's owner, and is in nobody's way.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server(
	'worker', conf => q{
rangefilter.autosummarize = on
rangefilter.autosummarize_delay = '200ms'
deadlock_timeout = '200ms'
});

# Loads rows into a table: enough to open its tail, which the next insert finds open.
my $from = 0;

sub load
{
	my ($table, $database) = @_;

	$from += 100_000;
	return $node->psql($database // 'postgres',
		"SET rangefilter.autosummarize = off;
		INSERT INTO $table SELECT 1, k FROM generate_series($from, $from + 4998) k;
		RESET rangefilter.autosummarize;
		INSERT INTO $table VALUES (1, $from + 4999)");
}

# Is an index's tail open?
sub is_open
{
	my ($index, $database) = @_;

	return $node->safe_psql($database // 'postgres', "SELECT bool_or(tail_open) FROM rangefilter_status('$index')");
}

# Waits until it is not.
sub is_closed
{
	my ($index, $name, $database) = @_;

	return ok( $node->poll_query_until($database // 'postgres',
			"SELECT NOT bool_or(tail_open) FROM rangefilter_status('$index')"),
		$name);
}

# Lines of the log that match.
sub logged
{
	my ($pattern) = @_;

	return scalar(grep { /$pattern/ } split /\n/, slurp_file($node->logfile));
}

# Functions for index expressions.  In a worker, which has no application_name, "slow" waits as long as somebody has the
# advisory lock, and "broken" fails.
my $functions = q{
CREATE FUNCTION in_worker() RETURNS bool STABLE LANGUAGE sql
	RETURN pg_catalog.current_setting('application_name') = '';
CREATE FUNCTION slow(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
	$$BEGIN
		IF public.in_worker() THEN
			PERFORM pg_advisory_lock_shared(1);
			PERFORM pg_advisory_unlock_shared(1);
		END IF;
		RETURN k;
	END$$;
CREATE FUNCTION broken(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
	$$BEGIN
		IF public.in_worker() THEN RAISE 'broken in the worker'; END IF;
		RETURN k;
	END$$;
CREATE TABLE waits (p int, k int);
CREATE INDEX waits_i ON waits USING rangefilter (slow(k));
};
$node->safe_psql('postgres', $functions . q{
CREATE TABLE t (p int, k int) PARTITION BY LIST (p);
CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);
CREATE TABLE t2 PARTITION OF t FOR VALUES IN (2);
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE TABLE left_alone (p int, k int);
CREATE INDEX left_alone_i ON left_alone USING rangefilter (k) WITH (autosummarize = off);
CREATE TABLE fails (p int, k int);
CREATE INDEX fails_i ON fails USING rangefilter (broken(k));
});

# ---- It comes by itself.

load('t');
is_closed('t_k', 'an open tail is summarized');
like($node->safe_psql('postgres', 'EXPLAIN SELECT * FROM t WHERE k = 7'),
	qr/Partitions Skipped: 2 of 2/, 'and its partition skipped');
$node->safe_psql('postgres', q{BEGIN; CREATE TABLE made (p int, k int); CREATE INDEX made_i ON made USING rangefilter (k);
SET LOCAL rangefilter.autosummarize = off;
INSERT INTO made SELECT 1, k FROM generate_series(1, 5000) k;
SET LOCAL rangefilter.autosummarize = on;
INSERT INTO made VALUES (1, 5001);
SELECT pg_sleep(0.5); COMMIT});
is_closed('made_i', 'also where the worker came before the index was committed');

# A load's end is the worker's business where somebody has the table's lock, and where there
# is no end.
my $holder = open_session($node);
ask($holder, 'BEGIN; LOCK TABLE t1 IN SHARE UPDATE EXCLUSIVE MODE; SELECT 1');
$node->safe_psql('postgres', 'INSERT INTO t SELECT 1, k FROM generate_series(1, 5000) k');
is(is_open('t_k'), 't', 'a load waits for no lock');
ask($holder, 'COMMIT; SELECT 1');
close_session($holder);
is_closed('t_k', 'but has the worker summarize');
$node->safe_psql('postgres', 'BEGIN; INSERT INTO t SELECT 1, k FROM generate_series(1, 5000) k; COMMIT');
is_closed('t_k', 'a load in a transaction block');
isnt($node->psql('postgres', 'INSERT INTO t SELECT 1, k / (k - 10000) FROM generate_series(5001, 10000) k'), 0,
	'a load that fails');
is_closed('t_k', 'is summarized, too');

$node->safe_psql('postgres', 'SET rangefilter.autosummarize = worker; INSERT INTO t SELECT 1, k FROM generate_series(10001, 15000) k');
is_closed('t_k', 'a load that leaves it to the worker');

# What was asked for first is done first; so the others were left alone.
$node->safe_psql('postgres', q{CREATE TABLE switched_off (p int, k int);
CREATE INDEX switched_off_i ON switched_off USING rangefilter (k);
SET rangefilter.autosummarize = off;
INSERT INTO switched_off SELECT 1, k FROM generate_series(1, 5000) k;
INSERT INTO switched_off VALUES (1, 5001)});
load('left_alone');
load('t');
is_closed('t_k', 'summarized again');
is(is_open('left_alone_i'), 't', 'not an index with autosummarize = off');
is(is_open('switched_off_i'), 't', '... nor one whose session has it off');
$node->safe_psql('postgres', 'ALTER INDEX left_alone_i SET (autosummarize = on)');
load('left_alone');
is_closed('left_alone_i', 'but when it is switched on, with the next insert');

$node->safe_psql('postgres', 'ALTER SYSTEM SET rangefilter.autosummarize = off');
$node->reload;
ok($node->poll_query_until('postgres', q{SELECT current_setting('rangefilter.autosummarize') = 'off'}), 'setting off');
load('left_alone');
$node->safe_psql('postgres', 'ALTER SYSTEM SET rangefilter.autosummarize = on');
$node->reload;
ok($node->poll_query_until('postgres', q{SELECT current_setting('rangefilter.autosummarize') = 'on'}), 'setting on');
load('t');
is_closed('t_k', 'summarized with the setting on');
is(is_open('left_alone_i'), 't', 'not asked for with the setting off');

# Keys that come one by one: no tail is opened, but VACUUM would find enough.
$node->safe_psql('postgres', q{
CREATE TABLE trickle (p int, k int);
INSERT INTO trickle SELECT 1, k FROM generate_series(1, 100) k;
CREATE INDEX trickle_i ON trickle USING rangefilter (k);
CREATE PROCEDURE trickle() LANGUAGE plpgsql AS
	$$BEGIN FOR i IN 1000 .. 1250 LOOP INSERT INTO trickle VALUES (1, i); COMMIT; END LOOP; END$$;
CALL trickle()});
ok( $node->poll_query_until('postgres', q{SELECT rows > 250 AND NOT tail_open FROM rangefilter_status('trickle_i')}),
	'keys that trickle in are summarized');

# An expression fails for dead rows.  Only VACUUM can mend that: the worker does not try again and again.
$node->safe_psql('postgres', q{
CREATE FUNCTION fails(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
	$$BEGIN
		IF public.in_worker() AND k % 2 = 0 AND k <= 5000 THEN RAISE 'no value'; END IF;
		RETURN k;
	END$$;
CREATE TABLE dead (p int, k int);
CREATE INDEX dead_i ON dead USING rangefilter (fails(k));
INSERT INTO dead SELECT 1, k FROM generate_series(1, 5000) k;
DELETE FROM dead WHERE k % 2 = 0;});
load('dead');
is_closed('dead_i', 'an index with dead rows');
load('t');
is_closed('t_k', 'all is done');
my $generation = $node->safe_psql('postgres', q{SELECT generation FROM rangefilter_status('dead_i')});
$node->safe_psql('postgres', 'INSERT INTO dead VALUES (1, -1)');
load('t');
is_closed('t_k', 'all is done again');
is($node->safe_psql('postgres', q{SELECT generation FROM rangefilter_status('dead_i')}), $generation,
	'the index with dead rows has not been summarized for one key');

# The same for deleted rows that an old snapshot may see: it tries again after ten minutes.
$node->safe_psql('postgres', q{
CREATE EXTENSION rf_damage;
CREATE TABLE seen (p int, k int);
CREATE INDEX seen_i ON seen USING rangefilter (fails(k));
INSERT INTO seen SELECT 1, k FROM generate_series(1, 5000) k});
my $reader = open_session($node);
is(ask($reader, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1'), 1, 'a snapshot');
$generation = $node->safe_psql('postgres', q{DELETE FROM seen WHERE k % 2 = 0; SELECT generation FROM rangefilter_status('seen_i')});
load('seen');
ok($node->poll_query_until('postgres', qq{SELECT generation > $generation FROM rangefilter_status('seen_i')}), 'an index with deleted rows');
is(is_open('seen_i'), 't', 'says nothing');
is(ask($reader, 'SELECT count(*) FROM seen WHERE fails(k) = 500; COMMIT'), 1, 'the old snapshot finds one');
load('t');
is_closed('t_k', 'all is done');
$generation = $node->safe_psql('postgres', q{SELECT generation FROM rangefilter_status('seen_i')});
$node->safe_psql('postgres', 'INSERT INTO seen VALUES (1, -1)');
load('t');
is_closed('t_k', 'all is done again');
is($node->safe_psql('postgres', q{SELECT generation FROM rangefilter_status('seen_i')}), $generation, 'it is left alone');
$node->safe_psql('postgres', q{SELECT rf_damage('seen_i', 0, 240, '\x0000000000000000'); INSERT INTO seen SELECT 1, -2 * i - 1 FROM generate_series(1, 100) i});
is_closed('seen_i', 'until ten minutes have passed');
close_session($reader);

# ---- Functions run as the owner, restricted.

$node->safe_psql('postgres', q{
CREATE ROLE mallory;
CREATE SCHEMA m AUTHORIZATION mallory;
SET ROLE mallory;
CREATE TABLE m.said (who text, path text, answer text);
CREATE FUNCTION m.evil() RETURNS void LANGUAGE plpgsql AS
	$$BEGIN
		PERFORM set_config('role', 'postgres', false);
		INSERT INTO m.said VALUES (current_user, current_setting('search_path'), 'has become another role');
	EXCEPTION WHEN OTHERS THEN
		INSERT INTO m.said VALUES (current_user, current_setting('search_path'), sqlerrm);
	END$$;
CREATE FUNCTION m.f(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
	$$BEGIN IF public.in_worker() THEN PERFORM m.evil(); END IF; RETURN k; END$$;
CREATE TABLE m.t (p int, k int);
CREATE INDEX t_i ON m.t USING rangefilter (m.f(k));
});
load('m.t');
is_closed('m.t_i', q{an index of another owner});
ok($node->poll_query_until('postgres', 'SELECT EXISTS (SELECT FROM m.said)'), 'the worker has committed');
my $path = $node->pg_version >= 17 ? 'pg_catalog, pg_temp' : '';
is($node->safe_psql('postgres', 'SELECT DISTINCT * FROM m.said'),
	qq{mallory|$path|cannot set parameter "role" within security-restricted operation}, 'its function is locked in');

# ---- A function that fails does so once.

load('fails');
ok($node->poll_query_until('postgres', 'SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = \'rangefilter worker\')'),
	'no worker when all is done');
is(logged('broken in the worker'), 1, 'an error is reported');
is(logged('STATEMENT:  rangefilter: summarize public.fails_i'), 1, 'and where');
load('fails') for 1 .. 3;
load('t');
is_closed('t_k', 'others are summarized after it');
is(logged('broken in the worker'), 1, 'and it is not tried over and over');

# ---- Nobody waits for it.

# Has the worker wait in the midst of its work.
sub keep_waiting
{
	my ($session, $database) = @_;

	load('waits', $database);
	return ok( $node->poll_query_until($database // 'postgres', q{
SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'rangefilter worker' AND datname = current_database()
	AND query = 'rangefilter: summarize public.waits_i' AND wait_event = 'advisory'}),
		'pg_stat_activity shows what it does');
}
my $locker = open_session($node);
ask($locker, 'SELECT pg_advisory_lock(1)');
keep_waiting($locker);
is($node->psql('postgres', 'SET statement_timeout = 60000; ALTER TABLE waits ADD c int'), 0, 'ALTER TABLE gets its lock');
load('waits');
is($node->psql('postgres', 'SET statement_timeout = 60000; VACUUM waits'), 0, 'so does VACUUM');
is(is_open('waits_i'), 'f', 'which has summarized');
ask($locker, 'SELECT pg_advisory_unlock(1)');
load('waits');
is_closed('waits_i', 'after that the worker gets on');
is($node->safe_psql('postgres', q{SELECT rangefilter_verify('waits_i') = count(*) FROM waits}), 't', 'verified');

# ---- DROP DATABASE, and a copy of a database.

$node->safe_psql('postgres', 'CREATE DATABASE gone');
$node->safe_psql('gone', "CREATE EXTENSION rangefilter; $functions");
my $there = IPC::Run::timeout(60);
my ($in, $out) = ("SELECT pg_advisory_lock(1), 'locked';\n", '');
my $other = IPC::Run::start([ $node->installed_command('psql'), '-XAqt', '-d', $node->connstr('gone') ],
	'<', \$in, '>', \$out, '2>&1', $there);
$other->pump until $out =~ /locked/;
keep_waiting($other, 'gone');
$in .= "\\q\n";
$other->finish;
$node->safe_psql('gone', q{ALTER FUNCTION slow(int) RENAME TO fast;
CREATE FUNCTION slow(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
	$$BEGIN IF public.in_worker() THEN PERFORM pg_sleep(1000); END IF; RETURN k; END$$;
CREATE INDEX waits_j ON waits USING rangefilter (slow(k))});
load('waits', 'gone');
ok( $node->poll_query_until('gone', q{
SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'rangefilter worker' AND wait_event = 'PgSleep'}),
	'a worker sleeps in the other database');
is($node->psql('postgres', 'CREATE DATABASE copy TEMPLATE gone'), 0, 'a copy of a database with a worker');
ok( $node->poll_query_until('gone', q{
SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'rangefilter worker' AND wait_event = 'PgSleep'}),
	'another one takes up what the first was about');
is($node->psql('postgres', 'DROP DATABASE gone'), 0, 'a database with a worker is dropped');

# ---- It is killed, or shut down, in its work.

ask($locker, 'SELECT pg_advisory_lock(1)');
keep_waiting($locker);
my $killed = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'rangefilter worker'});
kill 'KILL', $killed;
close_session($locker);
ok(wait_for_recovery($node, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $killed)"), 'the server recovers when the worker is killed');
is($node->safe_psql('postgres', q{SELECT rangefilter_verify('waits_i') = count(*) FROM waits}), 't', 'verified');
load('waits');
is_closed('waits_i', 'summarized after all');
$locker = open_session($node);
ask($locker, 'SELECT pg_advisory_lock(1)');
keep_waiting($locker);
$node->stop('fast');
close_session($locker);

# ---- No background worker to be had: somebody else's transaction starts one later.

# One of two is core's own, for logical replication.
$node->append_conf('postgresql.conf', 'max_worker_processes = 2');
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', "CREATE EXTENSION rangefilter; $functions");
$locker = open_session($node);
ask($locker, 'SELECT pg_advisory_lock(1)');
keep_waiting($locker);
is(load('waits', 'other'), 0, 'nothing fails where there are no more background workers');
is(is_open('waits_i', 'other'), 't', 'it is not summarized, though');
ask($locker, 'SELECT pg_advisory_unlock(1)');
is_closed('waits_i', 'the one database', 'postgres');
is_closed('waits_i', 'then the other', 'other');
close_session($locker);

unlike(slurp_file($node->logfile), qr/PANIC|TRAP|database .* does not exist/, 'no complaints');
is(logged('ERROR:'), 2, 'no errors but that of the function, and of a load');
$node->stop;
done_testing();
