# What is denied in bulk, where the server loaded the library: digests that others
# replace between two questions of one planning, and files that move.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server('bulk');

# Two groups of 64 partitions.  All keys end with the digits of their partition.
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION rf_probes;
CREATE TABLE t (part int, k int, m int DEFAULT 0) PARTITION BY LIST (part);
SELECT format('CREATE TABLE t%1$s PARTITION OF t FOR VALUES IN (%1$s)', i) FROM generate_series(1, 128) i \gexec
INSERT INTO t SELECT p, 200 * k + p FROM generate_series(1, 128) p, generate_series(1, 1000) k;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_m ON t USING rangefilter (m);
CREATE FUNCTION warm(low int, high int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	found int;
BEGIN
	FOR i IN 1 .. 60 LOOP
		EXECUTE format('SELECT count(*) FROM t WHERE k = %s AND part BETWEEN %s AND %s', 3200 * i + 150, low, high) INTO found;
		IF found <> 0 THEN
			RAISE EXCEPTION 'there is no % in the table', 3200 * i + 150;
		END IF;
	END LOOP;
END $$;
});

sub columns
{
	return $node->safe_psql('postgres', 'SELECT indexes FROM rangefilter_shared_cache()');
}

# Waits until so many processes wait for the digests' lock.
sub wait_for_waiters
{
	my ($n) = @_;

	$node->poll_query_until('postgres', "SELECT count(*) = $n FROM pg_stat_activity
		WHERE wait_event_type = 'LWLock' AND wait_event = 'rangefilter_digests'")
	  or die "there are never $n that wait";
}

my ($reader, $writer, $holder) = map { open_session($node) } 1 .. 3;

ask($writer, 'SELECT warm(1, 128)');
is(columns(), 128, 'digests of all partitions');
is(ask($reader, 'SELECT count(*) FROM t WHERE k = 10150 AND m = 77'), 0, 'a session that goes by them');

# A row in each group, and summaries that have them.  The reader goes by copies of
# these two from now on, and all it knows is of now.  Of the second one there
# is a new digest, too, which the reader has not seen.
$node->safe_psql('postgres', q{
INSERT INTO t VALUES (2, 10150, 77), (70, 10151, 0);
SELECT rangefilter_summarize('t2_k_idx'), rangefilter_summarize('t70_k_idx')});
for (1 .. 3)
{
	is(ask($reader, 'SELECT count(*) FROM t WHERE k = 10150 AND m = 77'), 1, 'the row is found');
}
is(columns(), 126, 'two digests are outdated');
ask($writer, 'SELECT warm(65, 128)');
is(columns(), 127, 'one was made anew');

# The writer is about to replace the other one.  The reader's planning asks the first
# group for the first condition, is stopped at the second group, which is being changed, and when it is asked
# for the second condition the first group is another one.
my $go_on = PostgreSQL::Test::Utils::tempdir() . '/go_on';
send_sql($holder, "SELECT rf_hold_digests('t_k', 1, '$go_on')");
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ '^SELECT rf_hold_digests' AND state = 'active'");
send_sql($writer, 'SELECT warm(1, 64)');
wait_for_waiters(1);

# Counters have a lock of their own.
my $counts = open_session($node);
send_sql($counts, 'SELECT rangefilter_activity_reset()');
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ 'activity_reset' AND (state = 'idle' OR wait_event_type = 'LWLock') AND pid <> pg_backend_pid()");
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE query ~ 'activity_reset' AND state = 'idle'"), 1, 'counters can be reset');
send_sql($reader, 'SELECT count(*) FROM t WHERE k IN (10150, 20150) AND (k = 20150 OR m = 77)');
wait_for_waiters(2);
PostgreSQL::Test::Utils::append_to_file($go_on, '');
answer($_) for $holder, $writer, $counts;
is(answer($reader), 1, 'a digest that was replaced between two questions');
is(columns(), 128, 'it was replaced');

# A file that moves without any other change: guards find where it is and need not
# open the index again, which somebody else has locked by then.
ask($reader, 'SET plan_cache_mode = force_generic_plan; PREPARE q AS SELECT count(*) FROM t WHERE k = 10150');
is(ask($reader, 'EXECUTE q'), 1, 'a plan that is kept');
$node->safe_psql('postgres', q{
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE elsewhere LOCATION ''});
$node->safe_psql('postgres', "ALTER INDEX $_ SET TABLESPACE elsewhere") for 't3_k_idx', 't128_k_idx';
is(ask($reader, 'EXECUTE q'), 1, 'after files have moved');
# (This locks an index exclusively and does not invalidate it.)
ask($writer, "BEGIN; ALTER INDEX t3_k_idx NO DEPENDS ON EXTENSION rangefilter; ALTER INDEX t128_k_idx NO DEPENDS ON EXTENSION rangefilter");
$node->safe_psql('postgres', 'INSERT INTO t VALUES (5, 10005)');
is(ask($reader, "SET lock_timeout = '10s'; EXECUTE q"), 1, 'while the indexes are locked');
ask($writer, 'ROLLBACK');

close_session($_) for $reader, $writer, $holder, $counts;
$node->stop;
done_testing();
