# Partitions that are no tables of access method heap.  Those that are foreign tables
# have no index; the others are skipped all the same, and answer side by side where they
# are many.  Those of another access method have one that says nothing, after a crash too.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server('node');
my $file = $node->data_dir . '/foreign.csv';
my $n = 40;

append_to_file($file, "0,7\n0,500\n");
# The number of partitions skipped, and the rows.
sub asked
{
	my ($k) = @_;
	my $plan = $node->safe_psql('postgres', "EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k = $k");

	return ($plan =~ /Partitions Skipped: (.*)/ ? $1 : 'nothing') . ': '
	  . $node->safe_psql('postgres', "SELECT count(*) FROM t WHERE k = $k");
}

# Unlogged: the init fork says it, too.
$node->safe_psql('postgres', "CREATE ACCESS METHOD rf_other TYPE TABLE HANDLER heap_tableam_handler;
	CREATE UNLOGGED TABLE o (k int) USING rf_other;
	CREATE INDEX o_k ON o USING rangefilter (k);
	CREATE TABLE l (k int) USING rf_other;
	CREATE INDEX l_k ON l USING rangefilter (k);
	INSERT INTO o VALUES (1); INSERT INTO l VALUES (1)");
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', "SELECT count(*), rangefilter_may_contain('o_k', 1, 1), rangefilter_may_contain('l_k', 2, 2) FROM o"),
	'0|t|t', 'after a crash');
is($node->safe_psql('postgres', "INSERT INTO o VALUES (1); VACUUM o; SELECT rangefilter_summarize('o_k'), rangefilter_may_contain('o_k', 2, 2)"),
	'0|t', 'and later');

SKIP:
{
	my ($failed) = $node->psql('postgres', 'CREATE EXTENSION file_fdw');

	skip 'file_fdw is not there', 6 if $failed;
	$node->safe_psql('postgres', "CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
		CREATE TABLE t (p int, k int) PARTITION BY LIST (p);
		CREATE FOREIGN TABLE t0 PARTITION OF t FOR VALUES IN (0) SERVER files OPTIONS (filename '$file', format 'csv');
		" . join('', map { "CREATE TABLE t$_ PARTITION OF t FOR VALUES IN ($_);\n" } 1 .. $n) . "
		INSERT INTO t SELECT g % $n + 1, g % $n + 1 + 100 * g FROM generate_series(0, 100 * $n - 1) g;
		CREATE INDEX t_k ON t USING rangefilter (k);");
	is($node->safe_psql('postgres', "SELECT indisvalid FROM pg_index WHERE indexrelid = 't_k'::regclass"), 't', 'the index is valid');
	is(asked(500), "$n of " . ($n + 1) . ': 1', 'a row of the foreign table');
	is(asked(1), ($n - 1) . ' of ' . ($n + 1) . ': 1', 'a row of another one');

	# Often enough for digests.
	is( $node->safe_psql('postgres', "DO \$\$
			DECLARE
				got int;
			BEGIN
				FOR i IN 0 .. 300 LOOP
					EXECUTE format('SELECT count(*) FROM t WHERE k = %s', i % $n + 1 + 100 * i) INTO got;
					IF got <> 1 THEN
						RAISE EXCEPTION 'wrong result for %', i;
					END IF;
				END LOOP;
			END
			\$\$;
			SELECT indexes FROM rangefilter_shared_cache();"),
		$n, 'right, and there are digests');
	is(asked(7), "$n of " . ($n + 1) . ': 1', 'a row of the foreign table, by digests');
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE f (p int, k int) SERVER files OPTIONS (filename '$file', format 'csv');
		ALTER TABLE t ATTACH PARTITION f FOR VALUES IN (99)");
	is(asked(7), "$n of " . ($n + 2) . ': 2', 'one that is attached');
}

done_testing();
