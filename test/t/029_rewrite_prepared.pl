# Commands that write a table anew, in the same transaction as a prepared plan that left
# out a partition: such a plan finds what the partition has afterwards, and what it
# has again when the command is rolled back to a savepoint.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

# Keys are even; 1001 is in no partition.
my $put = "INSERT INTO t (p, a, k) VALUES (1, 1001, 1001)";

# What does not change keys comes behind an INSERT, or a DELETE, of the row asked for.
my @copying = (
	'CLUSTER t1 USING t1_a',
	'ALTER TABLE t1 SET TABLESPACE elsewhere',
	'ALTER INDEX t1_k_idx SET TABLESPACE elsewhere',
	'ALTER TABLE t1 SET UNLOGGED',
	'ALTER TABLE t1 SET UNLOGGED; ALTER TABLE t1 SET LOGGED',
	'ALTER TABLE t1 SET ACCESS METHOD heap',
	'REINDEX TABLE t1',
	'REINDEX INDEX t1_k_idx',
	'ALTER TABLE t ADD COLUMN v float DEFAULT random()',
	'ALTER TABLE t DROP COLUMN note',
	'ALTER TABLE t ALTER COLUMN note TYPE varchar(100)',
	'ALTER TABLE t DETACH PARTITION t1; ALTER TABLE t ATTACH PARTITION t1 FOR VALUES IN (1)',
	'ALTER TABLE t DETACH PARTITION t1; CLUSTER t1 USING t1_a; ALTER TABLE t ATTACH PARTITION t1 FOR VALUES IN (1)',
	'DROP INDEX t_k; CREATE INDEX t_k ON t USING rangefilter (k)');

# These make a row of 1001.
my @making = (
	'ALTER TABLE t ALTER COLUMN k TYPE int USING k + 1',
	'ALTER TABLE t ALTER COLUMN k TYPE bigint USING k + 1',
	"TRUNCATE t1; $put",
	"TRUNCATE t; $put; TRUNCATE t; $put",
	"ALTER TABLE t DETACH PARTITION t1; ALTER TABLE t1 ALTER COLUMN k TYPE int USING k + 1;
		ALTER TABLE t ATTACH PARTITION t1 FOR VALUES IN (1)",
	"ALTER TABLE t DETACH PARTITION t1; CREATE TABLE other (LIKE t1 INCLUDING GENERATED); INSERT INTO other (p, a, k) VALUES (1, 1001, 1001);
		ALTER TABLE t ATTACH PARTITION other FOR VALUES IN (1)",
	"ALTER TABLE t DROP COLUMN k; ALTER TABLE t ADD COLUMN k int DEFAULT 1001",
	"ALTER TABLE t DROP COLUMN k; ALTER TABLE t ADD COLUMN k int DEFAULT 1001; CREATE INDEX t_k ON t USING rangefilter (k)",
	"UPDATE t1 SET k = 1001 WHERE k = 1000; CLUSTER t1 USING t1_a");

# Nothing rewrites a single partition so that its keys are others: columns
# are inherited, and core refuses to make an index that belongs to a partitioned one anew.
# These two lines take away what keeps it from that, as if it could.
my $loose = q{UPDATE pg_attribute SET attinhcount = 0, attislocal = true WHERE attrelid = 't1'::regclass AND attname = 'k';
	DELETE FROM pg_depend WHERE objid IN ('t1_k_idx'::regclass, 't1_g_idx'::regclass) AND deptype IN ('P', 'S')};
my $alone = 'ALTER TABLE t1 ALTER COLUMN k TYPE int USING k + 1';

# A transaction at each step of which prepared plans are asked: before, after the
# commands, which are then rolled back to a savepoint, done once more and kept; without any
# row, which is rolled back; and when all is rolled back.  What each step has found is a
# digit for each plan and one for a condition that no index is asked about; the first
# word says how many partitions were not skipped at the beginning.  Keys that were rolled
# back are in the summary until VACUUM FULL.
sub steps
{
	my ($node, $commands, $column, $from) = @_;
	$from //= 't';
	my $prepare = join '', map { "PREPARE $_->[0] AS SELECT (count(*) > 0)::int FROM $from WHERE $_->[1];\n" }
	  [ 'plain', "$column = 1001" ], [ 'custom(int)', "$column = \$1" ], [ 'generic(int)', "$column = \$1" ],
	  [ 'truth', "$column + 0 = 1001" ];
	my $look = join '', map { "SET plan_cache_mode = force_$_->[0]_plan; EXECUTE $_->[1];\n" }
	  [ generic => 'plain' ], [ custom => 'custom(1001)' ], [ generic => 'generic(1001)' ], [ custom => 'truth' ];
	my ($status, $out, $err) = $node->psql(
		'postgres', qq{
SET client_min_messages = warning;
VACUUM FULL t1;
SELECT warm('$column');
$prepare$look$look
EXPLAIN (COSTS OFF) EXECUTE plain;
\\echo BEGIN
BEGIN;
$look
SAVEPOINT s; $commands;
$look
ROLLBACK TO s;
$look
$commands;
$look
SAVEPOINT t; TRUNCATE t;
$look
ROLLBACK TO t;
$look
ROLLBACK;
$look});
	my $left = $out =~ /Partitions Skipped: (\d+) of (\d+)/ ? $2 - $1 : 'all';
	my @counts = $out =~ s/.*^BEGIN$//msr =~ /^(\d)$/mg;
	my @steps;

	push @steps, join '', splice(@counts, 0, 4) while @counts;
	return $err . join ' ', $left, @steps;
}

# The same before there is a row of 1001 and behind the commands there is one, or the
# other way round.
sub appears
{
	my ($node, $name, $commands, $column) = @_;

	return is(steps($node, $commands, $column // 'k'), '0 0000 1111 0000 1111 0000 1111 0000', $name);
}

sub vanishes
{
	my ($node, $name, $commands) = @_;

	return is(steps($node, $commands, 'k'), '1 1111 0000 1111 0000 0000 0000 1111', $name);
}

my %modes = (
	'no preloading' => "shared_preload_libraries = ''",
	'session_preload' => "shared_preload_libraries = ''\nsession_preload_libraries = 'rangefilter'",
	'shared_preload' => '');

foreach my $mode (sort keys %modes)
{
	my $node = new_server($mode =~ tr/ /_/r, conf => "$modes{$mode}\nallow_in_place_tablespaces = on\nrangefilter.shared_cache_size = 32MB\n");
	my $load = $mode eq 'no preloading' ? "LOAD 'rangefilter'" : 'NULL';

	# As many partitions as it takes to have digests side by side, where they are shared.
	my $partitions = $mode eq 'shared_preload' ? 40 : 3;

	$node->safe_psql('postgres', $_) foreach "CREATE TABLESPACE elsewhere LOCATION ''", qq{
CREATE TABLE t (p int, a int, k int, note text, g int GENERATED ALWAYS AS (a) STORED) PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%1\$s PARTITION OF t FOR VALUES IN (%1\$s)', i) FROM generate_series(1, $partitions) i \\gexec
CREATE INDEX t1_a ON t1 (a);
INSERT INTO t SELECT p, 2 * k, 2 * k, 'note' FROM generate_series(1, $partitions) p, generate_series(1, 1000) k;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_g ON t USING rangefilter (g);
CREATE FUNCTION warm(name text) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	$load;
	FOR i IN 1 .. 40 LOOP
		EXECUTE format('SELECT FROM t WHERE %I = %s', name, 2 * i + 501);
	END LOOP;
END \$\$};
	is($node->safe_psql('postgres', "SELECT warm('k'); EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k = 1001") =~
		/Partitions Skipped: (\d+ of \d+)/ ? $1 : '', "$partitions of $partitions", "$mode: all partitions are skipped");
	is($node->safe_psql('postgres', 'SELECT indexes >= 40 FROM rangefilter_shared_cache()'),
		$mode eq 'shared_preload' ? 't' : 'f', "$mode: digests side by side");

	# The setting is known before the library is preloaded.
	$node->psql('postgres', q{LOAD 'rangefilter'; SHOW rangefilter.shared_cache_size;
ALTER SYSTEM SET rangefilter.shared_cache_size = '16MB'; ALTER SYSTEM RESET rangefilter.shared_cache_size}, stdout => \my $shown, stderr => \my $warned);
	is("$shown $warned", '32MB ', "$mode: the size of the shared cache is a setting");

	appears($node, "$mode: $_", $_) foreach @making;
	appears($node, "$mode: a new row, $_", "$put; $_") foreach @copying;
	if ($node->pg_version >= 17)
	{
		appears($node, "$mode: $_", $_, 'g') foreach 'ALTER TABLE t ALTER COLUMN g SET EXPRESSION AS (a + 1)',
			'ALTER TABLE t ALTER COLUMN g SET EXPRESSION AS (0); ALTER TABLE t ALTER COLUMN g SET EXPRESSION AS (a + 1)';
	}

	$node->safe_psql('postgres', $put);
	vanishes($node, "$mode: without any row, $_", "TRUNCATE t1; $_") foreach $mode eq 'no preloading' ? $copying[0] : @copying;
	$node->safe_psql('postgres', "DELETE FROM t WHERE k = 1001; VACUUM FULL t1");

	# This one is not for transactions.
	is($node->safe_psql('postgres', "PREPARE plain AS SELECT count(*) FROM t WHERE k = 1001; SELECT warm('k');
EXECUTE plain; $put; EXECUTE plain; VACUUM FULL t1; EXECUTE plain; DELETE FROM t WHERE k = 1001; VACUUM FULL t1; EXECUTE plain") =~
		s/\s+//gr, '0110', "$mode: VACUUM FULL");

	# A materialized view is no partition, but may have a gate.
	$node->safe_psql('postgres', 'CREATE MATERIALIZED VIEW m AS SELECT k FROM t1; CREATE INDEX m_k ON m USING rangefilter (k)');
	is(steps($node, "$put; REFRESH MATERIALIZED VIEW m", 'k', '(SELECT k FROM m UNION ALL SELECT k FROM t2) u'),
		'0 0000 1111 0000 1111 1111 1111 0000', "$mode: REFRESH MATERIALIZED VIEW");

	$node->safe_psql('postgres', "DROP MATERIALIZED VIEW m; SET allow_system_table_mods = on; $loose");
	appears($node, "$mode: a partition alone", $alone);
	$node->stop;
}
done_testing();
