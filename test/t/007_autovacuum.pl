# Autovacuum summarizes a table that is only ever inserted into, all by itself.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server(
	'autovacuum', conf => q{
autovacuum = on
autovacuum_naptime = '1s'
autovacuum_vacuum_insert_threshold = 1000
autovacuum_vacuum_insert_scale_factor = 0
});

$node->safe_psql(
	'postgres', q{
CREATE TABLE t (p int, k int) PARTITION BY LIST (p);
CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);
CREATE TABLE t2 PARTITION OF t FOR VALUES IN (2);
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_e ON t USING rangefilter ((k + 1)) WHERE k > 0;
CREATE FUNCTION same(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN k; END $$;
CREATE INDEX t_f ON t USING rangefilter (same(k));
});

my $skips = q{
SELECT NOT bool_or(tail_open), NOT rangefilter_may_contain('t_k', 1000000, NULL)
FROM (SELECT * FROM rangefilter_status('t_k') UNION ALL SELECT * FROM rangefilter_status('t_e') UNION ALL SELECT * FROM rangefilter_status('t_f')) s};

foreach my $round (0 .. 2)
{
	my $from = $round * 10000;

	$node->safe_psql('postgres',
		"INSERT INTO t SELECT 1 + k % 2, k FROM generate_series($from, $from + 9999) k");
	ok($node->poll_query_until('postgres', $skips, 't|t'), "round $round: summarized by itself");
	is( $node->safe_psql('postgres', q{SELECT rangefilter_verify('t_k'), rangefilter_verify('t_e')}),
		($from + 10000) . '|' . ($from + 9999),
		"round $round: verified");
	is( $node->safe_psql('postgres', qq{SELECT count(*) FROM t WHERE k BETWEEN $from + 9000 AND $from + 20000}),
		1000, "round $round: rows are found");
}

# All of that without anybody's hands, and queries gain from it.
is( $node->safe_psql('postgres', q{
SELECT sum(vacuum_count), min(autovacuum_count) > 0, sum(n_tup_del + n_tup_upd)
FROM pg_stat_user_tables WHERE relname IN ('t1', 't2')}),
	'0|t|0', 'by autovacuum alone, of tables that are only inserted into');
my $last = $node->safe_psql('postgres', 'SELECT min(last_summarize) FROM rangefilter_activity');
$node->safe_psql('postgres', 'INSERT INTO t SELECT 1, k FROM generate_series(30000, 49999) k');
ok( $node->poll_query_until('postgres', qq{
SELECT stale_blocks = 0 AND last_summarize > '$last' FROM rangefilter_activity WHERE index = 't1_k_idx'::regclass}),
	'the view shows it');
like($node->safe_psql('postgres', 'EXPLAIN SELECT * FROM t WHERE k = 29999'),
	qr/Partitions Skipped: 1 of 2/, 'a query skips the partition that was loaded');
unlike(slurp_file($node->logfile), qr/ERROR|PANIC|TRAP|was terminated by signal/, 'no complaints');
$node->stop;
done_testing();
