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
});

my $skips = q{
SELECT NOT bool_or(tail_open), NOT rangefilter_may_contain('t_k', 1000000, NULL)
FROM (SELECT * FROM rangefilter_status('t_k') UNION ALL SELECT * FROM rangefilter_status('t_e')) s};

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
unlike(slurp_file($node->logfile), qr/ERROR|PANIC|TRAP|was terminated by signal/, 'no complaints');
$node->stop;
done_testing();
