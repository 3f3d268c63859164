# What is the same by its name and is not: a file that was copied, changed and rolled
# back; a database that has the OID of one that is gone, and its files' names.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server('names');

# ask() asks so often that digests are made, for what is there.
my $schema = q{
CREATE EXTENSION IF NOT EXISTS rangefilter;
CREATE TABLE t (part int, k int) PARTITION BY LIST (part);
SELECT format('CREATE TABLE t%1$s PARTITION OF t FOR VALUES IN (%1$s)', i) FROM generate_series(1, 70) i \gexec
INSERT INTO t SELECT p, 100 * k + p FROM generate_series(1, 70) p, generate_series(1, 1000) k;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE FUNCTION warm() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	n int;
	found int = 0;
BEGIN
	FOR i IN 1 .. 58 LOOP
		EXECUTE format('SELECT count(*) FROM t WHERE k = %s', 1700 * i + i % 40 + 3) INTO n;
		found := found + n;
	END LOOP;
	RETURN found;
END $$;
};
$node->safe_psql('postgres', $schema);
$node->safe_psql('postgres', q{
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE elsewhere LOCATION ''});

# The copy of the file gets a key, and the original another one: as many changes.
for my $mode ('force_generic_plan', 'force_custom_plan')
{
	my $session = open_session($node);
	my ($own, $others) = $mode =~ /generic/ ? (6085, 5085) : (8085, 7085);

	ask($session, "SET plan_cache_mode = $mode; PREPARE q AS SELECT count(*) FROM t WHERE k = $others");
	is(ask($session, 'SELECT warm()'), 58, 'what is there is found');
	is(ask($session, "BEGIN; ALTER INDEX t2_k_idx SET TABLESPACE elsewhere; INSERT INTO t VALUES (2, $own); EXECUTE q"),
		0, "$mode: not there yet");
	is(ask($session, 'EXECUTE q; SELECT warm(); EXECUTE q'), "0\n58\n0", "$mode: nor later");
	ask($session, 'ROLLBACK');
	$node->safe_psql('postgres', "INSERT INTO t VALUES (2, $others)");
	is(ask($session, 'EXECUTE q'), 1, "$mode: a row that somebody else has put there");
	is(ask($session, "SELECT count(*) FROM t WHERE k = $others"), 1, "$mode: by a new plan");
	is(ask($session, "SELECT count(*) FROM t WHERE k = $own"), 0, "$mode: what was rolled back");
	close_session($session);
}

# The same commands of another session, while plans with guards are kept.  The index comes
# back to where it was, but its file has another name.
for my $mode ('force_generic_plan', 'force_custom_plan')
{
	my $session = open_session($node);
	my $key = $mode =~ /generic/ ? 9085 : 10085;

	ask($session, "SET plan_cache_mode = $mode; PREPARE c AS SELECT count(*) FROM t WHERE k = $key");
	ask($session, "PREPARE q(int) AS SELECT count(*) FROM t WHERE k = \$1");
	is(ask($session, "EXECUTE c; EXECUTE q($key); SELECT warm()"), "0\n0\n58", "$mode: not there yet");
	foreach my $n (1 .. 4)
	{
		my $space = $n % 2 ? 'elsewhere' : 'pg_default';
		my $what = $n <= 2 ? 'INDEX t4_k_idx' : 'TABLE t4';

		$node->safe_psql('postgres', "ALTER $what SET TABLESPACE $space; INSERT INTO t VALUES (4, $key)");
		is(ask($session, "EXECUTE c; EXECUTE q($key); EXECUTE q($key + 10)"), "$n\n$n\n0", "$mode: ALTER $what SET TABLESPACE $space");
	}
	close_session($session);
}
all_verified($node, 'after all that');

# A table whose digests were made when it had few keys: the group is made anew.
$node->safe_psql('postgres', q{
INSERT INTO t SELECT p, 200000 + g * 250000 + p FROM generate_series(1, 70) p, generate_series(1, 4000) g;
VACUUM t});
is($node->safe_psql('postgres', q{SELECT warm() + warm(); SELECT indexes > 60 FROM rangefilter_shared_cache();
	SELECT count(*) FROM t WHERE k IN (5085, 950200007, 950200009)}), "116\nt\n3", 'keys that came later');

# A database, a copy of it that gets rows, and a copy of that in its place.
$node->safe_psql('postgres', 'CREATE DATABASE d OID = 50001');
$node->safe_psql('d', $schema);
$node->safe_psql('postgres', 'CREATE DATABASE original TEMPLATE d');
foreach my $strategy ('wal_log', 'file_copy')
{
	$node->safe_psql('postgres', "CREATE DATABASE copy TEMPLATE original STRATEGY $strategy");
	is($node->safe_psql('d', 'SELECT warm(); SELECT indexes > 60 FROM rangefilter_shared_cache()'), "58\nt", "$strategy: digests are made");
	is($node->safe_psql('d', 'ALTER DATABASE d CONNECTION LIMIT 50; SELECT indexes > 60 FROM rangefilter_shared_cache()'), "t", "$strategy: which another setting leaves");
	is($node->safe_psql('copy', 'SELECT warm(); SELECT count(*) FROM t WHERE k = 5085'), "58\n0", "$strategy: a copy");
	is($node->safe_psql('copy', 'INSERT INTO t VALUES (2, 5085), (3, 5085); SELECT count(*) FROM t WHERE k = 5085'), 2, "$strategy: which gets rows");
	$node->safe_psql('postgres', 'DROP DATABASE d');
	$node->safe_psql('postgres', "CREATE DATABASE d OID = 50001 TEMPLATE copy STRATEGY $strategy");
	is($node->safe_psql('d', 'SELECT indexes FROM rangefilter_shared_cache(); SELECT count(*) FROM t WHERE k = 5085'), "0\n2",
		"$strategy: nothing of the old database is believed of the new one");
	is($node->safe_psql('d', 'SELECT warm(); SELECT count(*) FROM t WHERE k = 5085'), "58\n2", "$strategy: nor later");

	# The original again, for the other strategy.
	$node->safe_psql('postgres', 'DROP DATABASE copy');
	$node->safe_psql('postgres', 'DROP DATABASE d');
	$node->safe_psql('postgres', "CREATE DATABASE d OID = 50001 TEMPLATE original STRATEGY $strategy");
	is($node->safe_psql('d', 'SELECT warm(); SELECT count(*) FROM t WHERE k = 5085'), "58\n0", "$strategy: the original");
}

# A database moves to another directory and back, to files of the same names.
foreach my $space ('elsewhere', 'pg_default', 'elsewhere')
{
	my $n = $node->safe_psql('d', 'SELECT warm(); INSERT INTO t VALUES (2, 5085); SELECT count(*) FROM t WHERE k = 5085') =~ s/.*\n//r;

	$node->safe_psql('postgres', "ALTER DATABASE d SET TABLESPACE $space");
	is($node->safe_psql('d', 'SELECT count(*) FROM t WHERE k = 5085; INSERT INTO t VALUES (2, 5085), (3, 6085); SELECT warm()'),
		"$n\n58", "a database moves to $space");
	is($node->safe_psql('d', 'SELECT count(*) FROM t WHERE k = 5085; SELECT count(*) > 0 FROM t WHERE k = 6085'), $n + 1 . "\nt", '... and gets rows');
}

$node->stop;
done_testing();
