# A scan of a serializable transaction takes its predicate lock while it has the leaf
# locked.  Then serializable transactions that look for neighbours of a key and insert it if
# there are none never make neighbours, while leaves of a few entries split and VACUUM
# deletes them.  Splits that do not copy predicate locks are found within seconds.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $seed = seed();
my $node = new_server('serializable', conf => "max_pred_locks_per_transaction = 256\nmax_connections = 50\n");

$node->safe_psql('postgres', q{
CREATE TABLE s (k int8, pad text);
CREATE INDEX s_k ON s USING wormhole (k) INCLUDE (pad);
CREATE TABLE found (n int8);
});

# The predicate lock cannot be taken yet, so the insert of another transaction must wait for
# the leaf.  If the scan let go of the leaf first, the insert would find no predicate lock.
$node->safe_psql('postgres', q{
CREATE EXTENSION rf_damage;
CREATE TABLE p (k int8, v int);
CREATE INDEX p_k ON p USING wormhole (k);
INSERT INTO p SELECT 1000 * g, g FROM generate_series(1, 4000) g;
CREATE TABLE seen (n int);
});
my ($reader, $writer, $keeper, $judge) = map { open_session($node) } 1 .. 4;

# Until a statement waits, or has ended.
sub wait_for
{
	my ($statement, $waits) = @_;

	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE '$statement%' AND $waits")
	  or die "$statement goes on";
	return;
}

ask($judge, 'SELECT pg_advisory_lock(1)');
ask($reader, 'SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN ISOLATION LEVEL SERIALIZABLE; INSERT INTO seen VALUES (1)');
ask($writer, 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT n FROM seen');
send_sql($keeper, 'SELECT rf_hold_predicate_locks(1)');
wait_for('SELECT rf_hold', q{wait_event = 'advisory'});
send_sql($reader, 'SELECT count(v) FROM p WHERE k BETWEEN 500100 AND 500200');
wait_for('SELECT count(v) FROM p', q{wait_event = 'SerializablePredicateList'});
send_sql($writer, 'INSERT INTO p VALUES (500150, 0)');
wait_for('INSERT INTO p VALUES', 'wait_event IS NOT NULL');
ask($judge, 'SELECT pg_advisory_unlock(1)');
is(answer($reader), '0', 'no row that is not there yet');
my @ends = (answer($writer), map { ask($_, 'COMMIT') } $writer, $reader);
is(scalar(grep { /could not serialize access/ } @ends), 1, 'nor can both commit') or diag(@ends);
answer($keeper);
close_session($_) foreach $reader, $writer, $keeper, $judge;

my $neighbours = 'FROM (SELECT k - lag(k) OVER (ORDER BY k) AS distance FROM s) x WHERE distance <= 5';
my @loads = (
	start_scripts($node, 10, $seed, { look => [ 1, q{
\set k random(1, 1000)
\set lo :k - 5
\set hi :k + 5
BEGIN ISOLATION LEVEL SERIALIZABLE;
SET LOCAL enable_seqscan = off;
SELECT count(*) AS n FROM s WHERE k BETWEEN :lo AND :hi \gset
\sleep 2 ms
\if :n = 0
INSERT INTO s VALUES (:k, repeat('x', 1300));
\endif
COMMIT;
} ] }, '-c', 24, '-j', 2),
	start_scripts($node, 10, $seed, { delete => [ 1, qq{
\\set k random(-100, 1000)
\\set n random(50, 300)
INSERT INTO found SELECT count(*) $neighbours HAVING count(*) > 0;
DELETE FROM s WHERE k BETWEEN :k AND :k + :n;
\\sleep 10 ms
} ] }, '-c', 1, '-j', 1),
	start_scripts($node, 10, $seed, { vacuum => [ 1, "VACUUM (INDEX_CLEANUP ON) s;\n\\sleep 5 ms\n" ] }, '-c', 1, '-j', 1));

foreach my $load (@loads)
{
	unlike(finish_load($load), qr/ERROR|aborted/, "seed $seed: no errors");
}
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM s'), '>', 0, "seed $seed: there are rows");
is($node->safe_psql('postgres', "SELECT count(*) $neighbours"), 0, "seed $seed: no neighbours at the end");
is($node->safe_psql('postgres', 'SELECT count(*) FROM found'), 0, "seed $seed: and none before");
indexes_whole($node, 's', "seed $seed: at the end");
$node->stop;
done_testing();
