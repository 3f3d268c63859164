# A streaming standby answers the same queries while the primary loads,
# vacuums and summarizes; old snapshots there keep their rows; all pages that
# replay makes are those of the primary.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;
use Time::HiRes qw(usleep);

my $seed = seed();
my $primary = new_server(
	'primary',
	init => { allows_streaming => 1 },
	conf => q{
wal_consistency_checking = 'all'
wal_keep_size = '1GB'
max_wal_size = '200MB'
});
my $standby = PostgreSQL::Test::Cluster->new('standby');

load_schema($primary);
$primary->backup('base');
$standby->init_from_backup($primary, 'base', has_streaming => 1);

# Replay waits for queries as long as it takes, and the primary does not know
# of them: so what the standby's snapshots see is up to the summaries alone.
$standby->append_conf(
	'postgresql.conf', q{
max_standby_streaming_delay = -1
hot_standby_feedback = off
log_min_messages = warning
});
$standby->start;

sub on_standby
{
	my ($sql) = @_;

	# A function that summarizes has no transaction id, so its end flushes nothing.
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	return $standby->safe_psql('postgres', $sql);
}

#
# Queries while the primary works
#
my $load = start_load($primary, 10, $seed, 200);

for my $round (1 .. 5)
{
	my $name = "seed $seed, standby, round $round";

	same_answers($standby, $name, 20);
	is(denied($standby), '0|0|0|0', "$name: nothing is denied");
	usleep(500_000);
}
is(finish_load($load), '', "seed $seed: the load went well");
all_verified($primary, 'primary, after the load');
$primary->wait_for_catchup($standby);
all_verified($standby, 'standby, after the load');
same_answers($standby, "seed $seed, standby, after the load");

# In one state of affairs both give the same answers, also those that skip.
$primary->safe_psql('postgres', 'VACUUM');
my $partitions = q{
SELECT sum(array_length(p, 1)) < 2000, md5(string_agg(p::text, ' ' ORDER BY k)) FROM (
	SELECT k, ARRAY(SELECT "table" FROM rangefilter_status('t_k') WHERE rangefilter_may_contain(index, k, k + 1)) p
	FROM generate_series(-100, 9900, 20) k) a};

is(on_standby($partitions), $primary->safe_psql('postgres', $partitions),
	'the same partitions on both');
like(on_standby($partitions), qr/^t/, 'the standby skips');

#
# Snapshots of the standby that are older than a summary
#
$primary->safe_psql(
	'postgres', q{
CREATE TABLE old (p int, k int, wide text COLLATE "C", f int) PARTITION BY LIST (p);
CREATE TABLE old1 PARTITION OF old FOR VALUES IN (1);
CREATE TABLE old2 PARTITION OF old FOR VALUES IN (2);
ALTER TABLE old2 ALTER wide SET STORAGE external;
INSERT INTO old SELECT 1 + k % 2, k, 'w' || k, k FROM generate_series(1, 40) k;
UPDATE old SET wide = repeat('w', 5000) || k WHERE k = 11;
CREATE INDEX old_k ON old USING rangefilter (k);
CREATE INDEX old_wide ON old USING rangefilter (wide);
CREATE INDEX old_f ON old USING rangefilter ((f + 1));
CREATE INDEX old_some ON old USING rangefilter (k) WHERE f IN (11, 1011);
CREATE FUNCTION fails(f int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF f = 11 AND current_setting('rf.fails', true) = 'on' THEN
		RAISE 'no value for 11';
	END IF;
	RETURN f;
END
$$;
CREATE INDEX old_fails ON old USING rangefilter (fails(f));
VACUUM old;
CREATE TABLE far (p int, f int) PARTITION BY LIST (p);
CREATE TABLE far1 PARTITION OF far FOR VALUES IN (1);
CREATE TABLE far2 PARTITION OF far FOR VALUES IN (2);
INSERT INTO far SELECT p, f FROM generate_series(1, 2) p, generate_series(1, 20) f;
INSERT INTO far VALUES (2, 5000), (2, 10000);
CREATE INDEX far_f ON far USING rangefilter ((f + 1));
CREATE TABLE spread (f int, pad text);
ALTER TABLE spread ALTER pad SET STORAGE plain;
INSERT INTO spread SELECT f, repeat('x', 7500) FROM generate_series(1, 40) f;
CREATE INDEX spread_f ON spread USING rangefilter ((f + 1)) WITH (pages_per_range = 1);
});
$primary->wait_for_catchup($standby);

# The snapshot is taken, but no lock on the tables.
my $session = open_session($standby);
my $query = q{SELECT (SELECT count(*) FROM old WHERE k = 11),
	(SELECT count(*) FROM old WHERE wide = repeat('w', 5000) || 11),
	(SELECT count(*) FROM old WHERE f + 1 = 12), (SELECT count(*) FROM old WHERE f = 11),
	(SELECT count(*) FROM old WHERE fails(f) = 11), (SELECT count(*) FROM old),
	(SELECT count(*) FROM old WHERE k = (SELECT 11)),
	(SELECT count(*) FROM (VALUES (11), (11), (11)) v, LATERAL (SELECT FROM old WHERE k = column1 LIMIT 1) x)};

is(ask($session, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1'),
	1, 'a snapshot on the standby');

# A row version dies on the primary, and its new summaries are made while it is
# dead, but not yet removed.  (To remove it, there or in a catalog, would make
# replay wait for the snapshot.)
$primary->safe_psql('postgres',
	q{UPDATE old SET k = k + 1000, wide = 'x', f = f + 1000 WHERE k = 11; DELETE FROM far WHERE f = 5000; INSERT INTO far VALUES (2, 30); DELETE FROM spread WHERE f = 20; INSERT INTO spread VALUES (100)});
$primary->safe_psql(
	'postgres', q{
SET rf.fails = on;
SELECT rangefilter_summarize(i) FROM unnest('{old_k,old_wide,old_f,old_some,old_fails,far_f,spread_f}'::regclass[]) i});
is( $primary->safe_psql(
		'postgres',
		q{SELECT string_agg(generation::text, ' ') FROM unnest('{old2_k_idx,old2_k_idx1,old2_fails_idx}'::regclass[]) i, rangefilter_status(i)}),
	'2 2 2',
	'the new summaries are made');
is($primary->safe_psql('postgres', $query), '0|0|0|0|0|40|0|0', 'gone on the primary');
$primary->wait_for_catchup($standby);
is(ask($session, $query), '1|1|1|1|1|40|1|3', 'still there for the old snapshot');
my $scan = 'SET enable_seqscan = off; SET enable_indexscan = off; SELECT count(*) FROM spread WHERE f + 1 = 21';

is($primary->safe_psql('postgres', $scan), '0', 'gone from a block on the primary');
is(ask($session, $scan), '1', 'still there for a bitmap scan');
like(ask($session, 'EXPLAIN SELECT FROM spread WHERE f + 1 = 21'), qr/Bitmap Index Scan on spread_f/, 'by the index');
ask($session, 'RESET enable_seqscan; RESET enable_indexscan');

# Even for a session that asked so often that it has a digest of the new filter.
is(ask($session, q{
DO $$
BEGIN
	FOR i IN 1 .. 250 LOOP
		EXECUTE 'SELECT FROM far WHERE f + 1 = ' || 2000 + i;
	END LOOP;
END
$$;
SELECT count(*) FROM far WHERE f + 1 = 5001}), 1, 'still there in spite of a digest');
is(ask($session, 'SET rangefilter.enable = off; ' . $query),
	'1|1|1|1|1|40|1|3', 'and in truth');
is(ask($session, 'COMMIT; SET rangefilter.enable = on; ' . $query),
	'0|0|0|0|0|40|0|0', 'gone for a new snapshot');

# The keys of dead rows that took fetching, or could not be computed, are left out: such an
# index has nothing to say on the standby until it is made anew.  A predicate is evaluated.
my $absent = q{SELECT rangefilter_may_contain('old2_k_idx', 500, 600),
	rangefilter_may_contain('old2_wide_idx', 'xx', 'y'),
	rangefilter_may_contain('old2_expr_idx', 500, 600),
	rangefilter_may_contain('old2_fails_idx', 500, 600),
	rangefilter_may_contain('old2_k_idx1', 500, 600)};

is($primary->safe_psql('postgres', $absent), 'f|f|f|f|f', 'on the primary none may be there');
is(on_standby($absent), 'f|t|f|t|f', 'on the standby two of the indexes are silent');
$primary->safe_psql('postgres', 'VACUUM old2');
is(on_standby($absent), 'f|f|f|f|f', 'until VACUUM');
close_session($session);

# A key that its segment has comes to another range of blocks, which is imprecise from then
# on; and the first insert into an index without a spare block makes one.
$primary->safe_psql('postgres', 'DELETE FROM spread WHERE f = 21; VACUUM spread');
$primary->safe_psql('postgres', q{
CREATE TABLE spare (k int);
INSERT INTO spare SELECT generate_series(1, 10);
CREATE INDEX spare_k ON spare USING rangefilter (k)});
is(on_standby(q{SELECT pg_relation_size('spare_k') / 8192}), 1, 'standby: no spare block');
$primary->safe_psql('postgres', q{INSERT INTO spare VALUES (5); INSERT INTO spread VALUES (5, repeat('y', 7500))});
is($primary->safe_psql('postgres', q{SELECT ctid < '(39,1)' FROM spread WHERE pad LIKE 'y%'}), 't', 'a row in the midst of the table');
is(on_standby(q{SELECT pg_relation_size('spare_k') / 8192}), 2, 'standby: a spare block');
is(on_standby($scan =~ s/21$/6/r), 2, 'standby: a bitmap scan finds it');

# Runs on the metapage: replay brings them, takes them away when the index grows, and brings
# them again; sessions that have asked before see that.  So does a crash of the primary.
$primary->safe_psql('postgres', q{
CREATE TABLE small (p int, k int8, s text COLLATE "C") PARTITION BY LIST (p);
CREATE TABLE small1 PARTITION OF small FOR VALUES IN (1);
CREATE TABLE small2 PARTITION OF small FOR VALUES IN (2);
INSERT INTO small SELECT p, hashint8extended(k, p), md5(p || ' ' || k) FROM generate_series(1, 2) p, generate_series(1, 1000) k;
CREATE INDEX small_k ON small USING rangefilter (k);
CREATE INDEX small_s ON small USING rangefilter (s);
ANALYZE small});
my $asker = open_session($standby);
my $small = q{
SELECT count(*) FILTER (WHERE NOT rangefilter_may_contain('small1_k_idx', k, k) OR NOT rangefilter_may_contain('small1_s_idx', s, s)),
	(SELECT count(*) FROM generate_series(1, 500) k WHERE rangefilter_may_contain('small1_k_idx', hashint8extended(k, 9), hashint8extended(k, 9))) < 50,
	(SELECT count(*) FROM generate_series(1, 500) k WHERE rangefilter_may_contain('small1_s_idx', 'x' || k, 'x' || k)),
	(SELECT string_agg(n || '', ' ') FROM (SELECT count(*) AS n FROM small WHERE k = hashint8extended(7, 1)
		UNION ALL SELECT count(*) FROM small WHERE s = md5('2 7') UNION ALL SELECT count(*) FROM small WHERE k = 7) x) FROM small1};

sub small_answers
{
	my ($pages, $name) = @_;

	is(on_standby(q{SELECT bool_and(pg_relation_size(i) = 8192) FROM unnest('{small1_k_idx,small1_s_idx}'::regclass[]) i}), $pages, "standby: $name: one page?");
	is(ask($asker, $small), '0|t|0|1 1 0', "standby: $name: nothing is denied that is there");
	is($primary->safe_psql('postgres', $small), '0|t|0|1 1 0', "primary: $name: the same");
	return;
}

small_answers('t', 'one page');
$primary->safe_psql('postgres', q{
INSERT INTO small SELECT 1, hashint8extended(k, 1), md5('1 ' || k) FROM generate_series(1001, 6000) k;
SELECT rangefilter_summarize(i) FROM unnest('{small_k,small_s}'::regclass[]) i});
small_answers('f', 'grown');
$primary->safe_psql('postgres', q{
DELETE FROM small1 WHERE k NOT IN (SELECT hashint8extended(k, 1) FROM generate_series(1, 900) k);
VACUUM small1;
REINDEX TABLE small1});
small_answers('t', 'one page again');
$primary->stop('immediate');
$primary->start;
small_answers('t', 'after a crash of the primary');
close_session($asker);

#
# CREATE INDEX CONCURRENTLY
#
$primary->safe_psql(
	'postgres', q{
DELETE FROM old WHERE k = 13;
CREATE INDEX CONCURRENTLY old2_c ON old2 USING rangefilter (k);
});
$absent = q{SELECT rangefilter_may_contain('old2_c', 500, 600), rangefilter_may_contain('old2_c', 15, 15), tail_open
	FROM rangefilter_status('old2_c')};
is($primary->safe_psql('postgres', $absent), 'f|t|f', 'the primary uses it at once');
is(on_standby($absent), 't|t|t', 'the standby does not, and tells so');
is(on_standby(q{SELECT rangefilter_verify('old2_c') > 0}), 't', 'verified there');
$primary->safe_psql('postgres', q{SELECT rangefilter_summarize('old2_c')});
is(on_standby($absent), 'f|t|f', 'until it is summarized again');

#
# What a standby refuses
#
my ($status, $out, $err) =
  $standby->psql('postgres', q{SELECT rangefilter_summarize('t_k')});
like($err, qr/recovery is in progress/, 'no summarize on a standby');

#
# A crash of the standby, then promotion in the middle of a load
#
$standby->stop('immediate');
$standby->start;
same_answers($standby, "seed $seed, standby, after a crash");
$load = start_load($primary, 4, $seed + 1, 200);
usleep(2_000_000);
$standby->promote;
finish_load($load);
all_verified($standby, 'promoted');
same_answers($standby, "seed $seed, promoted");
is(denied($standby), '0|0|0|0', 'promoted: nothing is denied');
$standby->safe_psql(
	'postgres', q{
INSERT INTO t SELECT k % 6, k, 'b' || k, k / 10.0 FROM generate_series(20001, 20100) k;
VACUUM;
});
all_verified($standby, 'promoted, after changes');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM t WHERE k BETWEEN 20050 AND 20060'),
	11, 'promoted: new rows are found');
is( $standby->safe_psql('postgres',
		q{SELECT rangefilter_may_contain('t_k', 20101, NULL)}),
	'f',
	'promoted: summarized');

foreach my $node ($primary, $standby)
{
	unlike(slurp_file($node->logfile), qr/inconsistent page|PANIC|TRAP|was terminated/,
		$node->name . ': no complaints in the log');
	$node->stop;
}
done_testing();
