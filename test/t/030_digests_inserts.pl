# Inserts add their keys, numbers, uuids and strings, to the digests that sessions share: digests stay
# in use while keys come, and deny none of them.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $partitions = 64;
my $node = new_server('inserts', conf => "max_locks_per_transaction = 512");

# The key that is at a number's place in the order of a type.
my %keys = (
	bigint => 'SELECT n',
	uuid => q{SELECT (encode(int8send(n # -9223372036854775808), 'hex') || repeat('5', 16))::uuid},
	text => q{SELECT encode(int8send(n # -9223372036854775808), 'hex') || repeat('.', (n & 7)::int)});

# Even keys.  found() counts rows with each of some keys, in queries of one key each.
sub create
{
	my ($type) = @_;

	$node->safe_psql(
		'postgres', qq{
DROP SCHEMA IF EXISTS s CASCADE;
CREATE SCHEMA s;
ALTER ROLE ALL SET search_path = s, public;
SET search_path = s, public;
CREATE FUNCTION v(n bigint) RETURNS $type LANGUAGE sql IMMUTABLE AS \$\$ $keys{$type} \$\$;
CREATE TABLE t (p int, k $type) PARTITION BY LIST (p);
SELECT format('CREATE TABLE t_%1\$s PARTITION OF t FOR VALUES IN (%1\$s)', i) FROM generate_series(1, $partitions) i \\gexec
INSERT INTO t SELECT p, v(abs(hashint8extended($partitions * n + p, 1)) / 8 * 2) FROM generate_series(1, $partitions) p, generate_series(1, 3000) n;
CREATE INDEX ON t USING rangefilter (k);
VACUUM ANALYZE t;
CREATE FUNCTION new_key(p int, n int) RETURNS $type LANGUAGE sql IMMUTABLE
	RETURN v(abs(hashint8extended(1000 * n + p, 2)) / 8 * 2 + 1);
CREATE FUNCTION found(keys $type\[]) RETURNS bigint LANGUAGE plpgsql AS \$\$
DECLARE
	n bigint;
	sum bigint = 0;
BEGIN
	FOR i IN 1 .. cardinality(keys) LOOP
		EXECUTE format('SELECT count(*) FROM t WHERE k = %L', keys[i]) INTO n;
		sum := sum + n;
	END LOOP;
	RETURN sum;
END \$\$;
-- Keys in a page of each index's delta, and in levels of one.
INSERT INTO t SELECT p, new_key(p, 4000) FROM generate_series(1, $partitions) p;
DO \$\$ BEGIN FOR n IN 4001 .. 5200 LOOP INSERT INTO t VALUES (1, new_key(1, n)); END LOOP; END \$\$;
CREATE FUNCTION warm() RETURNS bigint LANGUAGE sql RETURN found(ARRAY(SELECT new_key(0, n) FROM generate_series(1, 60) n));
});
}

# How many digests are of what the indexes are now.
sub current
{
	return $node->safe_psql('postgres', 'SELECT indexes FROM rangefilter_shared_cache()');
}

# How many partitions are skipped for a key that is not there.
sub skipped
{
	my ($session) = @_;

	return ask($session, q{EXPLAIN (COSTS OFF) SELECT count(*) FROM t WHERE k = v(77777777777)}) =~ /Partitions Skipped: (\d+) of/ ? $1 : 0;
}

# Inserts a row into each partition, with the n-th of the new keys.
sub insert
{
	my ($session, $n) = @_;

	ask($session, "INSERT INTO t SELECT p, new_key(p, $n) FROM generate_series(1, $partitions) p");
}

sub find
{
	my ($session, $n) = @_;

	return ask($session, "SELECT found(ARRAY(SELECT new_key(p, $n) FROM generate_series(1, $partitions) p))");
}

foreach my $type (sort keys %keys)
{
	create($type);

	my $asks = open_session($node);
	my $writes = open_session($node);
	is(ask($asks, 'SELECT warm()'), 0, "$type: numbers that are not there");
	is(current(), $partitions, "$type: each partition has a digest");
	is(find($asks, 1), 0, "$type: the first keys are not there yet");
	is(find($asks, 4000), $partitions, "$type: keys in the delta");
	is(ask($asks, q{SELECT level_keys > 0 AND delta_keys > 0 FROM rangefilter_status('t_1_k_idx')}), 't', "$type: levels");
	is(ask($asks, 'SELECT found(ARRAY(SELECT new_key(1, n) FROM generate_series(4001, 5200, 10) n))'), 120, "$type: keys in levels");

	insert($writes, 1);
	is(current(), $partitions, "$type: digests are current when a key came to each partition");
	is(find($asks, 1), $partitions, "$type: a session that knew the digests finds the keys");
	is(find($writes, 1), $partitions, "$type: the one that wrote them, too");
	is(find(my $new = open_session($node), 1), $partitions, "$type: and a new one");
	close_session($new);
	cmp_ok(skipped($asks), '>=', $partitions - 4, "$type: what is not there is skipped");

	# Plans that are kept.
	ask($asks, "PREPARE q$_ AS SELECT count(*) FROM t WHERE k = new_key($_, 2)") for 1 .. 10;
	is(ask($asks, join(';', map { "EXECUTE q$_" } 1 .. 10)), join("\n", (0) x 10), "$type: kept plans: nothing yet");
	insert($writes, 2);
	is(ask($asks, join(';', map { "EXECUTE q$_" } 1 .. 10)), join("\n", (1) x 10), "$type: kept plans find what came");
	is(current(), $partitions, "$type: digests are current");

	# Keys that no bucket has, NULL, and rows that are rolled back.
	ask($writes, 'INSERT INTO t VALUES (3, v(-5)), (4, v(9000000000000000001)), (5, NULL)');
	is(current(), $partitions, "$type: digests are current after keys outside their buckets");
	is(ask($asks, 'SELECT found(ARRAY[v(-5), v(9000000000000000001), v(-6), v(9000000000000000002)])'), 2, "$type: keys outside the buckets");
	is(ask($asks, 'SELECT count(*) FROM t WHERE k < v(0)'), 1, "$type: a range below them");
	is(ask($asks, 'SELECT count(*) FROM t WHERE k IS NULL'), 1, "$type: NULL");
	ask($writes, "BEGIN; INSERT INTO t VALUES (6, new_key(6, 3)); ROLLBACK");
	insert($writes, 3);
	is(find($asks, 3), $partitions, "$type: keys that came after a rollback");

	# Many rows at once: the tail is open, the digest of that partition is of the past,
	# and stays so when a key comes after the summarize.
	ask($writes, 'INSERT INTO t SELECT 7, new_key(7, n) FROM generate_series(100, 3100) n');
	my $bulk = 'SELECT found(ARRAY(SELECT new_key(7, n) FROM generate_series(100, 3100, 50) n))';
	is(ask($asks, $bulk), 61, "$type: many rows at once");
	ask($writes, q{SELECT rangefilter_summarize('t_7_k_idx')});
	ask($writes, 'INSERT INTO t VALUES (7, new_key(7, 5000))');
	is(ask($asks, $bulk), 61, "$type: the same, summarized, and a key after that");
	is(ask($asks, 'SELECT found(ARRAY[new_key(7, 5000)])'), 1, "$type: that key");

	# The first key after a summarize, and a NULL, are written in another way than those that are appended.
	$node->safe_psql('postgres', 'VACUUM t');
	is(ask($asks, 'SELECT warm()'), 0, "$type: numbers that are not there, after VACUUM");
	is(current(), $partitions, "$type: each partition has a digest again");
	ask($writes, 'INSERT INTO t VALUES (10, new_key(10, 11)), (11, NULL)');
	is(current(), $partitions, "$type: digests are current after the first key and a NULL");
	ask($writes, 'INSERT INTO t VALUES (10, new_key(10, 12)), (11, new_key(11, 12))');
	is(current(), $partitions, "$type: and after keys behind them");
	is(ask($asks, 'SELECT found(ARRAY[new_key(10, 11), new_key(10, 12), new_key(11, 12)])'), 3, "$type: these keys are found");

	# The digest is remade, and another file has another one.
	is(ask($asks, 'SELECT warm()'), 0, "$type: numbers that are not there");
	ask($writes, 'BEGIN; TRUNCATE t_8; INSERT INTO t VALUES (8, new_key(8, 9)); ROLLBACK');
	insert($writes, 9);
	is(find($asks, 9), $partitions, "$type: after a file that was rolled back");
	ask($writes, 'REINDEX TABLE t_9; INSERT INTO t VALUES (9, new_key(9, 10))');
	is(ask($asks, 'SELECT found(ARRAY[new_key(9, 10), new_key(9, 9), new_key(9, 1)])'), 3, "$type: after REINDEX");

	close_session($_) for $asks, $writes;
}
$node->stop;
done_testing();
