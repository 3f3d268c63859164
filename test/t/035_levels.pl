# Keys that trickle in go to levels: a crash in the midst of a merge, replay on a
# standby, and how many pages a question reads, however many keys have come.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server(
	'levels',
	init => { allows_streaming => 1 },
	conf => q{
wal_consistency_checking = 'all'
wal_keep_size = '1GB'
});
my $standby = PostgreSQL::Test::Cluster->new('standby');

sub value
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

sub crash
{
	$node->stop('immediate');
	$node->start;
	return;
}

# Numbers, and strings of which a page has few.  The first ones are even.
value(q{
CREATE EXTENSION rf_probes;
CREATE TABLE t (k bigint, s text COLLATE "C");
INSERT INTO t SELECT 2 * g, 's' || repeat('x', 60) || g FROM generate_series(1, 20000) g;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_s ON t USING rangefilter (s);
CREATE PROCEDURE trickle(statements int, n int) LANGUAGE plpgsql AS
$$
BEGIN
	FOR i IN 1 .. statements LOOP
		INSERT INTO t SELECT 2 * (random() * 1000000)::int, 's' || repeat('x', 60) || random()
		FROM generate_series(1, n);
		COMMIT;
	END LOOP;
END
$$;
});
$node->backup('base');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;

my $state = q{
SELECT bool_or(tail_open), min(levels) > 0, max(levels) <= 3, count(*) FILTER (WHERE level_keys > delta_keys)
FROM (SELECT (rangefilter_status(i::regclass)).* FROM unnest('{t_k,t_s}'::text[]) i) s};
my $sound = q{
SELECT rangefilter_verify('t_k') = count(*), rangefilter_verify('t_s') = count(*),
	rangefilter_may_contain('t_k', 1, 1), rangefilter_may_contain('t_s', 's', 's') FROM t};

#
# However many keys have come, a question reads at most four pages more
#
my $pages = q{
SELECT max_pages FROM rf_probes('{t_k}'::regclass[], ARRAY(SELECT 2 * (g * 104729 % 1000000) + 1 FROM generate_series(1, 500) g),
	1, 2, false)};
my $pages_of_strings = q{
SELECT max_pages FROM rf_probes('{t_s}'::regclass[],
	ARRAY(SELECT convert_to('s' || repeat('x', 60) || g * 0.001, 'UTF8') FROM generate_series(1, 500) g), 2, false)};
my $at_rest = value($pages);
my $strings_at_rest = value($pages_of_strings);
my $most = 0;
my $most_strings = 0;

for my $round (1 .. 15)
{
	my $now;

	value('CALL trickle(' . 2 * $round . ', 100)');
	$now = value($pages);
	$most = $now if $now > $most;
	$now = value($pages_of_strings);
	$most_strings = $now if $now > $most_strings;
}
cmp_ok($most, '>', $at_rest, 'levels are read');
cmp_ok($most, '<=', $at_rest + 4, "numbers: $at_rest pages at rest, at most four more");
cmp_ok($most_strings, '<=', $strings_at_rest + 4, "strings: $strings_at_rest pages at rest, at most four more");
is(value($state), 'f|t|t|0', 'levels are there, the tail is not open');
is(value($sound), 't|t|f|f', 'nothing is denied that is there, and what is not there is');

#
# The standby has them, too
#
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', $state), 'f|t|t|0', 'standby: levels are there');
is($standby->safe_psql('postgres', $sound), 't|t|f|f', 'standby: they say the same');

#
# A crash before a level is put in place
#
my $holder = open_session($node);
my $merger = open_session($node);
my $fill = 'DO $$ BEGIN FOR i IN 1 .. 6 LOOP INSERT INTO t SELECT 2 * (1000000 + 150 * i + g), \'m\' || repeat(\'y\', 60) || i || \' \' || g FROM generate_series(1, 150) g; END LOOP; END $$';

for my $round (1, 2)
{
	ask($holder, 'SELECT pg_advisory_lock(30)') if $round == 1;
	ask($merger, q{LOAD 'rangefilter'; LOAD 'rf_pause'; SET rf_pause.in_merge = 30}) if $round == 1;
	send_sql($merger, $fill);
	ok( $node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}),
		"round $round: a merge has its run");
	# What others put in meanwhile is in other pages.
	value(q{INSERT INTO t SELECT 2 * (2000000 + g), 'n' || g FROM generate_series(1, 150) g});
	value('CHECKPOINT') if $round == 2;
	crash();
	eval { close_session($_) } for $holder, $merger;
	is(value($sound), 't|t|f|f', "round $round: after the crash");
	is(value(q{SELECT rangefilter_may_contain('t_s', 'n7', 'n7'), rangefilter_may_contain('t_k', 4000014, 4000014)}),
		't|t', "round $round: what others put in is there");
	value('CALL trickle(20, 100)');
	is(value($state), 'f|t|t|0', "round $round: merges go on");
	is(value($sound), 't|t|f|f', "round $round: and are right");
	last if $round == 2;
	($holder, $merger) = (open_session($node), open_session($node));
	ask($holder, 'SELECT pg_advisory_lock(30)');
	ask($merger, q{LOAD 'rangefilter'; LOAD 'rf_pause'; SET rf_pause.in_merge = 30});
}
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', $sound), 't|t|f|f', 'standby: after the crashes');

#
# An insert merges a limited number of pages; VACUUM merges the levels that it leaves
#
value(q{
CREATE TABLE b (k bigint) WITH (autovacuum_enabled = off);
INSERT INTO b SELECT hashint8extended(g, 1) FROM generate_series(1, 400000) g;
CREATE INDEX b_k ON b USING rangefilter (k);
DELETE FROM b WHERE ctid < '(100,0)';
VACUUM b;
CREATE FUNCTION most_wal(first int, n int) RETURNS bigint LANGUAGE plpgsql AS
$$
DECLARE
	plan json;
	most bigint := 0;
BEGIN
	FOR i IN first .. first + n - 1 LOOP
		EXECUTE format('EXPLAIN (ANALYZE, WAL, FORMAT json) INSERT INTO b SELECT hashint8extended(%s, 2)', i) INTO plan;
		most := greatest(most, (plan -> 0 -> 'Plan' ->> 'WAL Bytes')::bigint);
	END LOOP;
	RETURN most;
END
$$;
});
my $limit = q{LOAD 'rangefilter'; LOAD 'rf_pause'; SET rf_pause.insert_merge = 2; SET wal_consistency_checking = '';};
my $levels = q{SELECT levels, level_keys > 7000 FROM rangefilter_status('b_k')};
my $b_sound = q{
SELECT rangefilter_verify('b_k') = (SELECT count(*) FROM b), count(*) FILTER (WHERE rangefilter_may_contain('b_k', k, k))
FROM (SELECT hashint8extended(g, 3) AS k FROM generate_series(1, 1000) g) absent};
my $wal = value("$limit SELECT most_wal(1, 8200)");

note("an insert writes at most $wal bytes of WAL");
cmp_ok($wal, '<', 60000, 'no insert merges large levels');
like(value($levels), qr/^[45]\|t$/, 'there are more levels');
like(value($b_sound), qr/^t\|\d{1,2}$/, 'nothing is denied that is there, and what is not there is');
value("$limit VACUUM b");
is(value($levels), '1|t', 'VACUUM merges levels');
like(value($b_sound), qr/^t\|\d{1,2}$/, 'and they have the same keys');
crash();
like(value($b_sound), qr/^t\|\d{1,2}$/, 'after a crash, too');
value("$limit DO \$\$ BEGIN FOR i IN 20001 .. 36000 LOOP INSERT INTO b SELECT hashint8extended(i, 2); END LOOP; END \$\$");
is(value($b_sound), 't|1000', 'with too many levels the index says nothing');
value('VACUUM b');
like(value($b_sound), qr/^t\|\d{1,2}$/, 'until VACUUM reads the table');
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', q{SELECT rangefilter_verify('b_k') = count(*) FROM b}), 't', 'standby: nothing is denied that is there');

#
# A summarize drops them
#
value('VACUUM t');
is(value(q{SELECT sum(levels), sum(delta_keys) FROM (SELECT (rangefilter_status(i::regclass)).* FROM unnest('{t_k,t_s}'::text[]) i) s}),
	'0|0', 'VACUUM: no levels any more');
is(value($sound), 't|t|f|f', 'VACUUM: nothing is denied that is there');
is(value($pages) <= $at_rest + 1, 1, 'VACUUM: at rest again');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal/, 'no crash but ours');
unlike(slurp_file($standby->logfile), qr/PANIC|TRAP|FATAL.*inconsistent/, 'standby: replay was consistent');
$standby->stop;
$node->stop;
done_testing();
