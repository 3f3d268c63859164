# VACUUM does not call functions of users in its own transaction, which other processes
# ignore: the next transaction of its session summarizes indexes that call some, or the worker.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server(
	'functions', conf => q{
rangefilter.autosummarize = on
rangefilter.autosummarize_delay = '200ms'
min_parallel_index_scan_size = 0
});

# note(name, k) warns of row 1000 in which transaction it is called.  "called" has one way to
# call it for each index: by a function, an operator, a cast, a domain, a predicate, with constant
# arguments, and by built-in functions that compare values of a user's type.
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION rf_core;
CREATE FUNCTION note(name text, k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF k = 1000 THEN
		RAISE WARNING '% %: %', name, CASE current_setting('application_name') WHEN '' THEN 'by the worker' ELSE 'by the session' END,
			CASE WHEN public.rf_core_in_vacuum_now() THEN 'in VACUUM' ELSE 'outside of VACUUM' END;
	END IF;
	RETURN k;
END $$;
CREATE FUNCTION combine(a int, b int) RETURNS int IMMUTABLE LANGUAGE sql RETURN a + public.note('operator', b);
CREATE OPERATOR |*| (LEFTARG = int, RIGHTARG = int, FUNCTION = combine);
CREATE TYPE boxed AS (k int);
CREATE FUNCTION unbox(b boxed) RETURNS int IMMUTABLE LANGUAGE sql RETURN public.note('cast', b.k);
CREATE CAST (boxed AS int) WITH FUNCTION unbox(boxed);
CREATE DOMAIN checked AS int CHECK (public.note('domain', VALUE) IS NOT NULL);
CREATE TYPE compared AS (k int);
CREATE FUNCTION compared_eq(a compared, b compared) RETURNS bool IMMUTABLE LANGUAGE sql
	RETURN public.note('type', a.k) = b.k;
CREATE FUNCTION compared_cmp(a compared, b compared) RETURNS int IMMUTABLE LANGUAGE sql RETURN a.k - b.k;
CREATE OPERATOR = (LEFTARG = compared, RIGHTARG = compared, FUNCTION = compared_eq);
CREATE OPERATOR CLASS compared_ops DEFAULT FOR TYPE compared USING btree AS
	OPERATOR 3 =, FUNCTION 1 compared_cmp(compared, compared);
CREATE TABLE called (k int, b boxed, c compared) WITH (autovacuum_enabled = off);
ALTER TABLE called ALTER c SET STATISTICS 0;
CREATE INDEX called_function ON called USING rangefilter (note('function', k));
CREATE INDEX called_operator ON called USING rangefilter ((k |*| k));
CREATE INDEX called_cast ON called USING rangefilter ((b::int));
CREATE INDEX called_domain ON called USING rangefilter ((k::checked));
CREATE INDEX called_predicate ON called USING rangefilter (k) WHERE note('predicate', k) > 0;
CREATE INDEX called_constant ON called USING rangefilter ((k + note('constant', 1000)));
CREATE INDEX called_type ON called USING rangefilter ((CASE WHEN ARRAY[c] = ARRAY[c] THEN k END));
CREATE TYPE status AS ENUM ('pending', 'done');
CREATE TABLE built_in (k int, s status) WITH (autovacuum_enabled = off);
CREATE INDEX built_in_k ON built_in USING rangefilter ((abs(k))) WHERE s = 'pending';
CREATE TABLE parts (p int, k int) PARTITION BY LIST (p);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE parts2 PARTITION OF parts FOR VALUES IN (2) WITH (autovacuum_enabled = off);
CREATE INDEX parts_f ON parts USING rangefilter (note('part', k));
});
my @ways = qw(cast constant domain function operator predicate type);

# Runs a statement.  Returns what note() said, sorted, each once.
sub noted
{
	my ($sql) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', $sql);
	my %said = map { $_ => 1 } $err =~ /WARNING:  (\w+ by .*)/g;

	BAIL_OUT($err) if $rc != 0;
	return join("\n", sort keys %said);
}

# Rows that open the tails of the table's indexes, of which nobody hears.
sub load
{
	my ($table, $columns) = @_;

	return noted("SET rangefilter.autosummarize = off; INSERT INTO $table SELECT $columns FROM generate_series(1, 2000) k");
}

# How many indexes of the tables are there, and with which condition?
sub indexes
{
	my ($condition) = @_;

	return $node->safe_psql('postgres', qq{
SELECT count(*) FROM pg_index JOIN pg_class ON pg_class.oid = indrelid, rangefilter_status(indexrelid)
WHERE relname IN ('called', 'built_in', 'parts1', 'parts2') AND $condition});
}

# By the session: in the transaction that VACUUM begins to finish, for each way.
load('called', 'k, ROW(k)::boxed, ROW(k)::compared');
is(indexes('tail_open'), scalar(@ways), 'all tails are open');
is(noted('VACUUM called'), join("\n", map { "$_ by the session: outside of VACUUM" } @ways),
	'no function is called in the transaction of VACUUM');
is(indexes('NOT tail_open AND rows = 2000'), scalar(@ways), 'all are summarized');

# Several tables, ANALYZE, parallel mode.
foreach my $options ('', '(ANALYZE)', '(PARALLEL 2)')
{
	load('parts', '1 + k % 2, k');
	load('built_in', "k, 'pending'");
	load('called', 'k, ROW(k)::boxed, ROW(k)::compared');
	is(indexes('tail_open'), @ways + 3, "VACUUM $options: all tails are open");
	my $noted = noted("VACUUM $options parts, built_in, called");
	is($noted, join("\n", map { "$_ by the session: outside of VACUUM" } sort('part', @ways)),
		"VACUUM $options calls no function in its transactions");
	is(indexes('tail_open'), 0, "VACUUM $options: all are summarized");
}

# What a function writes is undone: deferred triggers would not see it any more.
$node->safe_psql(
	'postgres', q{
CREATE TABLE written (k int);
CREATE FUNCTION do_write(k int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.written VALUES (k); END $$;
CREATE FUNCTION writes(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM public.do_write(k); RETURN k; END $$;
CREATE TABLE writer (k int) WITH (autovacuum_enabled = off);
CREATE INDEX writer_k ON writer USING rangefilter (writes(k));
SET rangefilter.autosummarize = off;
INSERT INTO writer SELECT generate_series(1, 2000);
TRUNCATE written;
});
$node->safe_psql('postgres', 'VACUUM writer');
is($node->safe_psql('postgres', q{SELECT (SELECT count(*) FROM written), rows FROM rangefilter_status('writer_k')}), '0|2000',
	'what a function writes is undone');

# The lock of a table is taken when VACUUM has gone on to the next one: the worker comes later.
load('parts', '1 + k % 2, k');
$node->safe_psql('postgres', 'VACUUM parts2; CREATE TABLE next (k int)');
my ($locker, $other, $vacuum) = map { open_session($node) } 1 .. 3;
ask($locker, 'BEGIN; LOCK next IN SHARE MODE');
send_sql($vacuum, 'VACUUM parts1, next');
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE relation = 'next'::regclass AND NOT granted});
ask($other, 'BEGIN; LOCK parts1 IN SHARE UPDATE EXCLUSIVE MODE');
close_session($locker);
unlike(answer($vacuum), qr/part by/, 'VACUUM waits for no lock');
ok($node->safe_psql('postgres', q{SELECT tail_open FROM rangefilter_status('parts1_note_idx')}) eq 't', 'the tail is still open');
close_session($other);
ok($node->poll_query_until('postgres', q{SELECT NOT tail_open FROM rangefilter_status('parts1_note_idx')}),
	'the worker has summarized');
like(slurp_file($node->logfile), qr/part by the worker: outside of VACUUM/, 'and called the function');
like($node->safe_psql('postgres', "EXPLAIN SELECT * FROM parts WHERE note('part', k) = -1"), qr/Partitions Skipped: 2 of 2/,
	'partitions are skipped again');

# An error is a warning, and so is a cancel.
$node->safe_psql(
	'postgres', q{
CREATE FUNCTION fails(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('application_name') = 'fail' THEN RAISE 'broken' USING HINT = 'Mend it.'; END IF;
	IF current_setting('application_name') = 'wait' THEN PERFORM pg_sleep(60); END IF;
	RETURN k;
END $$;
CREATE TABLE failing (k int) WITH (autovacuum_enabled = off);
CREATE INDEX failing_k ON failing USING rangefilter (fails(k));
});
load('failing', 'k');
is(ask($vacuum, "SET application_name = 'fail'; VACUUM failing, parts2; SELECT 'goes on'"),
	"WARNING:  index \"failing_k\" was not summarized: broken\nHINT:  Mend it.\ngoes on", 'an error is a warning');
ask($vacuum, "SET application_name = 'wait'");
send_sql($vacuum, 'VACUUM failing');
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'}), 'it waits');
$node->safe_psql('postgres', "SET lock_timeout = '10s'; VACUUM parts1");
$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
like(answer($vacuum), qr/^WARNING:  index "failing_k" was not summarized: canceling statement due to user request$/,
	'a cancel is a warning');
ok($node->poll_query_until('postgres', q{SELECT NOT tail_open FROM rangefilter_status('failing_k')}), 'and the worker has been asked');
close_session($vacuum);

unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal/, 'no complaints');
$node->stop;
done_testing();
