# Gates go by digest matrices: shared ones, and where the server has not loaded the library
# the session's own, which gates make themselves.  Nothing that has become visible is lost,
# whoever wrote it, and the indexes that are denied so are not locked.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $partitions = 100;

# Keys are even.  q has keys that are not there, and is joined by a nested loop.
my $schema = qq{
CREATE TABLE t (p int, k int, m int DEFAULT 0) PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%1\$s PARTITION OF t FOR VALUES IN (%1\$s)', i) FROM generate_series(1, $partitions) i \\gexec
INSERT INTO t SELECT p, 2 * (hashint8extended(g * 1000 + p, 1) % 100000000) FROM generate_series(1, $partitions) p, generate_series(1, 500) g;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE TABLE q (k int);
INSERT INTO q SELECT 2 * (hashint8extended(g, 2) % 100000000) + 1 FROM generate_series(1, 60) g;
VACUUM ANALYZE t, q;

-- Indexes that only partitions have, on an expression; reading it plans a query.
CREATE FUNCTION one(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \$\$DECLARE x int; BEGIN EXECUTE 'SELECT 1' INTO x; RETURN x; END\$\$;
CREATE TABLE e (p int, k int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE e%1\$s PARTITION OF e FOR VALUES IN (%1\$s); CREATE INDEX e%1\$s_k ON e%1\$s USING rangefilter ((k + one(1)))', i)
	FROM generate_series(1, 40) i \\gexec
INSERT INTO e SELECT p, g * 100 + p FROM generate_series(1, 40) p, generate_series(1, 500) g;
VACUUM ANALYZE e;

-- Some partitions have one index more.  The third one's is the second leaf of these.
CREATE TABLE o (p int, k int, m int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE o%1\$s PARTITION OF o FOR VALUES IN (%1\$s)', i) FROM generate_series(1, 70) i \\gexec
SELECT format('CREATE INDEX ON o%s USING rangefilter (m)', i) FROM generate_series(1, 35) i WHERE i <> 2 \\gexec
SELECT format('CREATE INDEX ON o%s USING rangefilter (k)', i) FROM generate_series(1, 70) i \\gexec
INSERT INTO o SELECT p, g * 100 + p, g * 100 + p FROM generate_series(1, 70) p, generate_series(1, 500) g;
VACUUM ANALYZE o;

-- Two indexes are alike; partition 5 has them in the other order.
CREATE TABLE a (p int, k int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE a%1\$s PARTITION OF a FOR VALUES IN (%1\$s)', i) FROM generate_series(1, 40) i \\gexec
INSERT INTO a SELECT p, g * 100 + p FROM generate_series(1, 40) p, generate_series(1, 500) g;
CREATE INDEX a_first ON a USING rangefilter (k);
CREATE INDEX a_second ON a USING rangefilter (k);
REINDEX INDEX CONCURRENTLY a5_k_idx;
VACUUM ANALYZE a;

CREATE FUNCTION touch() RETURNS int LANGUAGE plpgsql AS \$\$BEGIN GRANT SELECT ON t TO PUBLIC; RETURN 0; END\$\$;
};

my $join = 'SELECT count(*) FROM q, LATERAL (SELECT FROM t WHERE k = q.k OFFSET 0) t';
my $settings = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off';

# How many digests are there, of indexes as they are now or, in a session's own store, as they were?
my %digests = (
	shared => 'SELECT indexes FROM rangefilter_shared_cache()',
	own => q{SELECT entries FROM rangefilter_session_cache() WHERE what = 'digests'});

# How many indexes of partitions the transaction has locked.
sub locked
{
	my ($session, $mode) = @_;

	return ask($session, "SELECT count(DISTINCT relation) FROM pg_locks WHERE pid = pg_backend_pid() AND mode = '$mode'
		AND relation IN (SELECT indexrelid FROM pg_index JOIN pg_inherits ON inhrelid = indexrelid)");
}

# The number of rows that a join finds in a transaction, and of the indexes it has locked.
sub join_locks
{
	my ($session, $begin, $mode) = @_;

	ask($session, $begin);
	my $found = ask($session, 'EXECUTE j');
	my $locks = locked($session, $mode);
	ask($session, 'COMMIT');
	return ($found, $locks);
}

for my $kind ('shared', 'own')
{
	my $node = new_server($kind,
		conf => "max_locks_per_transaction = 512\nrangefilter.defer_partitions = 1000\n"
		  . ($kind eq 'own' ? "shared_preload_libraries = ''\nsession_preload_libraries = 'rangefilter'\n" : ''));

	$node->safe_psql('postgres', $schema);
	my ($reader, $writer) = map { open_session($node) } 1 .. 2;
	ask($_, $settings) for $reader, $writer;
	like(ask($reader, "EXPLAIN (COSTS OFF) $join"), qr/Partition Cond: \((?:q\.k = k|k = q\.k)\)/, "$kind: a loop over a gate");
	ask($reader, "SET plan_cache_mode = force_generic_plan; PREPARE j AS $join; EXECUTE j");
	is(ask($reader, $digests{$kind}), $partitions, "$kind: the gate has made digests");

	# A single question: of a hundred members few are asked one by one.  Without change counters
	# the session has looked at each index since the last change.
	ask($reader, 'DELETE FROM q WHERE ctid > (SELECT min(ctid) FROM q); EXECUTE j');
	my ($found, $locks) = join_locks($reader, 'BEGIN', 'AccessShareLock');
	is($found, 0, "$kind: no rows");
	cmp_ok($locks, '<', 20, "$kind: $locks indexes are locked");

	# What the session knows of the table had to make room for other tables, but not the server's digests.
	if ($kind eq 'shared')
	{
		ask($reader, 'SET rangefilter.cache_size = 0; SELECT count(*) FROM e WHERE k = 5; SELECT count(*) FROM o WHERE k = 5; SELECT count(*) FROM e WHERE k = 5; RESET rangefilter.cache_size');
		($found, $locks) = join_locks($reader, 'BEGIN', 'AccessShareLock');
		cmp_ok($locks, '<', 20, "$kind: $locks indexes are locked when the table was forgotten");
	}
	($found, $locks) = join_locks($reader, 'BEGIN ISOLATION LEVEL SERIALIZABLE', 'SIReadLock');
	is("$found $locks", "0 $partitions", "$kind: SERIALIZABLE locks predicates of all indexes");

	# What others, and what this session writes.  Each of these keys has been denied everywhere.
	ask($reader, 'INSERT INTO q SELECT 2 * g + 1 FROM generate_series(1, 40) g');
	is(ask($reader, 'EXECUTE j'), 0, "$kind: keys that are not there");
	my $n = 0;
	for my $write ('INSERT INTO t VALUES (%d, %d)', 'UPDATE t SET k = %2$d WHERE ctid = \'(0,1)\' AND p = %1$d',
		'TRUNCATE t%1$d; INSERT INTO t VALUES (%1$d, %2$d)', 'BEGIN; REINDEX INDEX t%1$d_k_idx; INSERT INTO t VALUES (%1$d, %2$d); COMMIT',
		'INSERT INTO t VALUES (%1$d, %2$d); SELECT rangefilter_summarize(\'t%1$d_k_idx\')',
		'BEGIN; DROP TABLE t%1$d; CREATE TABLE t%1$d PARTITION OF t FOR VALUES IN (%1$d); INSERT INTO t VALUES (%1$d, %2$d); COMMIT')
	{
		for my $session ($writer, $reader)
		{
			$n++;
			my $sql = sprintf $write, 3 * $n, 2 * $n + 1;

			ask($session, $sql);
			is(ask($reader, 'EXECUTE j'), $n, "$kind: $sql");
		}
	}

	# A snapshot that is older than a row does not see it, a later one does.
	ask($reader, 'BEGIN ISOLATION LEVEL REPEATABLE READ; EXECUTE j');
	ask($writer, "INSERT INTO t VALUES (1, 61)");
	is(ask($reader, 'EXECUTE j'), $n, "$kind: a row is too new");
	ask($reader, 'COMMIT');
	is(ask($reader, 'EXECUTE j'), $n + 1, "$kind: the row is seen");

	# What a gate reads of an index is not taken for that of another leaf at the same place.
	ask($reader, 'TRUNCATE q; INSERT INTO q SELECT g * 100 + 3 FROM generate_series(1, 60) g; SET enable_material = off');
	my $two = 'SELECT count(*) FROM q, LATERAL (SELECT FROM o WHERE k = q.k AND m = q.k + 0 OFFSET 0) o';
	like(ask($reader, "EXPLAIN (COSTS OFF) $two"), qr/Filter Index: o1_\w+, o1_\w+, o3_/, "$kind: a gate over two indexes of some partitions");
	is(ask($reader, $two), 60, "$kind: rows of partition 3");
	is(ask($reader, "SELECT count(*) FROM o WHERE k = 101 * $_"), 1, "$kind: a row of partition $_") for 1 .. 5;

	# Nor for that of an index that is like it.
	ask($reader, 'UPDATE q SET k = k + 2');
	like(ask($reader, 'EXPLAIN (COSTS OFF) SELECT count(*) FROM q, LATERAL (SELECT FROM a WHERE k = q.k OFFSET 0) a'), qr/Filter Index: a_\w+, a_\w+\n/, "$kind: a gate over two indexes that are alike");
	is(ask($reader, 'SELECT count(*) FROM q, LATERAL (SELECT FROM a WHERE k = q.k OFFSET 0) a'), 60, "$kind: rows of partition 5");

	# A query that changes the table at each row looks at it anew a few times, then asks each index.
	for my $changes ($kind eq 'shared' ? (10, 40) : ())
	{
		ask($reader, "PREPARE c$changes AS SELECT count(*) FROM (SELECT k + touch() AS k FROM q LIMIT $changes) q, LATERAL (SELECT FROM t WHERE k = q.k OFFSET 0) t; EXPLAIN EXECUTE c$changes");
		ask($reader, 'BEGIN');
		is(ask($reader, "EXECUTE c$changes"), 0, "$kind: no rows, while the table changes $changes times");
		$locks = locked($reader, 'AccessShareLock');
		ask($reader, 'ROLLBACK');
		ok($changes < 16 ? $locks < 50 : $locks == $partitions, "$kind: $locks indexes are locked");
	}

	# While a gate is at its first member, all that the session knows of the table and its
	# indexes becomes invalid.  It finds out when it looks at the next index, and plans a query.
	ask($reader, 'PREPARE g AS SELECT pg_advisory_lock(1), k FROM e WHERE k + one(1) = $1');
	like(ask($reader, 'EXPLAIN (COSTS OFF) EXECUTE g(202)'), qr/Partition Cond: \(\(k \+ 1\) = \$1\)/, "$kind: a gate over indexes of partitions");
	ask($writer, 'SELECT pg_advisory_lock(1)');
	send_sql($reader, 'EXECUTE g(202)');
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted});
	ask($writer, join(';', map { "ALTER INDEX e${_}_k SET (bits_per_key = 16)" } 2 .. 40));
	ask($writer, 'CREATE STATISTICS e_statistics ON p, k FROM e; SELECT pg_advisory_unlock(1)');
	is(answer($reader), '|201', "$kind: the table's entry goes while a gate looks at an index");

	close_session($_) for $reader, $writer;
	$node->stop;
}
done_testing();
