# A subscriber whose tables have no btree index.  Changes come past the planner:
# rows to be changed are found by the replica identity, which may be a unique
# wormhole index, or by reading the table; they go into partitions by routing.
# Sessions that skip must see all of it.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $seed = seed();
my $publisher = new_server('publisher', init => { allows_streaming => 'logical' });
my $subscriber = new_server('subscriber');

# Of whole the rows themselves are the identity, of ident a wormhole index is, on
# both sides; where the server applies changes by others than btree's: 17 does not,
# and 16 asserts that it does not.
my $tables = q{
CREATE TABLE whole (p int, k int, b text COLLATE "C") PARTITION BY LIST (p);
CREATE TABLE whole0 PARTITION OF whole FOR VALUES IN (0);
CREATE TABLE whole1 PARTITION OF whole FOR VALUES IN (1);
CREATE TABLE whole2 PARTITION OF whole FOR VALUES IN (2);
CREATE TABLE ident (k int NOT NULL, v int, b text COLLATE "C");
CREATE UNIQUE INDEX ident_k ON ident USING wormhole (k);
ALTER TABLE ident REPLICA IDENTITY USING INDEX ident_k;
};

$publisher->safe_psql(
	'postgres', $tables . q{
ALTER TABLE whole0 REPLICA IDENTITY FULL;
ALTER TABLE whole1 REPLICA IDENTITY FULL;
ALTER TABLE whole2 REPLICA IDENTITY FULL;
ALTER TABLE whole REPLICA IDENTITY FULL;
INSERT INTO whole SELECT k % 3, k, 'b' || k FROM generate_series(1, 300) k;
INSERT INTO ident SELECT k, k % 7, 'b' || k FROM generate_series(1, 1000) k;
CREATE PUBLICATION pub FOR TABLE whole, ident WITH (publish_via_partition_root = true);
});
$tables =~ s/USING wormhole/USING btree/ if $subscriber->pg_version >= 16 && $subscriber->pg_version < 18;
$subscriber->safe_psql(
	'postgres', $tables . q{
CREATE INDEX whole_k ON whole USING rangefilter (k);
CREATE INDEX whole_b ON whole USING rangefilter (b);
CREATE INDEX whole_wk ON whole USING wormhole (k);
CREATE INDEX ident_v ON ident USING rangefilter (v) WITH (pages_per_range = 1);
CREATE INDEX ident_b ON ident USING wormhole (b);
});
my $from = $publisher->connstr . ' dbname=postgres';

$subscriber->safe_psql('postgres',
	"CREATE SUBSCRIPTION sub CONNECTION '$from' PUBLICATION pub");
$subscriber->wait_for_subscription_sync($publisher, 'sub');

# Has the subscriber the rows that the publisher has, and do its indexes know
# them?
sub check_rows
{
	my ($name) = @_;
	my $all = q{
SELECT (SELECT count(*) || md5(string_agg(w::text, ' ' ORDER BY w::text)) FROM whole w),
	(SELECT count(*) || md5(string_agg(i::text, ' ' ORDER BY i::text)) FROM ident i)};

	$publisher->wait_for_catchup('sub');
	is($subscriber->safe_psql('postgres', $all),
		$publisher->safe_psql('postgres', $all), "$name: the same rows");
	all_verified($subscriber, $name);
	is( $subscriber->safe_psql(
			'postgres', q{
SELECT bool_and(wormhole_check(c.oid, true) >= 0) FROM pg_class c JOIN pg_am a ON a.oid = c.relam
WHERE amname = 'wormhole' AND relkind = 'i'}),
		't', "$name: the wormhole indexes are whole");
	is( $subscriber->safe_psql(
			'postgres', q{
SET enable_seqscan = off;
SELECT count(*) FROM whole w WHERE NOT EXISTS (SELECT FROM whole x WHERE x.k = w.k AND x.b = w.b);
SELECT count(*) FROM ident i WHERE NOT EXISTS (SELECT FROM ident x WHERE x.k = i.k AND x.v = i.v)}),
		"0\n0", "$name: each row is found");
	return;
}

check_rows('copied');

# A session has skipped, and goes on with its plans.
my $reader = open_session($subscriber);
my @keys = (150, 5000, 5001, 5002);
my $script = join '; ', map { "PREPARE q$_ AS SELECT p, b FROM whole WHERE k = $_ ORDER BY p" } @keys;
my $answers = join '; ', map { "EXECUTE q$_" } @keys;

is(ask($reader, "$script; $answers"), '0|b150', 'nothing but one row yet');
like(ask($reader, 'EXPLAIN EXECUTE q5000'), qr/Partitions Skipped: 3 of 3/, 'all skipped');
$publisher->safe_psql('postgres', q{
INSERT INTO whole VALUES (1, 5000, 'inserted');
UPDATE whole SET k = 5001, b = 'updated' WHERE k = 151;
UPDATE whole SET p = 2, k = 5002, b = 'moved' WHERE k = 150});
$publisher->wait_for_catchup('sub');
is(ask($reader, $answers), "1|inserted\n1|updated\n2|moved", 'plans see what came');
like(ask($reader, 'EXPLAIN SELECT FROM whole WHERE k = 5000'),
	qr/Partitions Skipped: 2 of 3/, 'the others are skipped again');
$publisher->safe_psql('postgres', q{
DELETE FROM whole WHERE k >= 5000;
TRUNCATE ident;
INSERT INTO ident SELECT k, k % 7, 'again' || k FROM generate_series(1, 1000) k});
$publisher->wait_for_catchup('sub');
is(ask($reader, $answers), '', 'and what went');
check_rows('changed');

# By the index, not by reading the table; where the row is being changed, the
# search waits and begins again.
$subscriber->safe_psql('postgres', q{SELECT pg_stat_reset_single_table_counters('ident_k'::regclass)});
is(ask($reader, q{BEGIN; UPDATE ident SET b = 'local' WHERE v = 77 % 7 AND k = 77 RETURNING k}), '77',
	'a row is changed on the subscriber');
$publisher->safe_psql('postgres', q{UPDATE ident SET v = -1, k = -77 WHERE k = 77});
ok( $subscriber->poll_query_until(
		'postgres', q{SELECT count(*) > 0 FROM pg_stat_activity
		WHERE backend_type ~ '^logical replication' AND wait_event_type = 'Lock'}),
	'the change waits');
is(ask($reader, 'COMMIT'), '', 'committed');
$publisher->wait_for_catchup('sub');
is(ask($reader, 'SELECT v, b FROM ident WHERE k = -77'), '-1|again77', 'and is made in the new row version');
ok( $subscriber->poll_query_until('postgres', q{SELECT pg_stat_get_numscans('ident_k'::regclass) > 0}),
	'by the index');
check_rows('by the identity');

# Random changes.
for my $round (1 .. 3)
{
	my $name = "seed $seed, round $round";
	my $sql = '';

	for (1 .. 40)
	{
		my ($k, $to, $n) = (pick(1, 1200), pick(1, 9000), pick(0, 30));

		$sql .= (
			"INSERT INTO whole SELECT k % 3, k, 'b' || k FROM generate_series($to, $to + $n) k;\n",
			"UPDATE whole SET k = k + $to, b = b || '+' WHERE k BETWEEN $k AND $k + 3;\n",
			"UPDATE whole SET p = (p + 1) % 3 WHERE k BETWEEN $k AND $k + 3;\n",
			"DELETE FROM whole WHERE k BETWEEN $k AND $k + 10;\n",
			"INSERT INTO ident SELECT k, $n, 'new' || k FROM generate_series($to, $to + $n) k"
			  . " WHERE NOT EXISTS (SELECT FROM ident i WHERE i.k = k.k);\n",
			"UPDATE ident SET v = v + $to, b = b || '+' WHERE k BETWEEN $k AND $k + $n;\n",
			"UPDATE ident SET k = -k - 10000 * $round WHERE k = $k;\n",
			"DELETE FROM ident WHERE k BETWEEN $k AND $k + $n / 3;\n")[ pick(0, 7) ];
	}
	$publisher->safe_psql('postgres', $sql);
	check_rows($name);
	$subscriber->safe_psql('postgres', 'VACUUM whole, ident') if $round == 2;
}
close_session($reader);
$subscriber->stop;
$publisher->stop;
done_testing();
