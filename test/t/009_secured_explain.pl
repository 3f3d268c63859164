# What auto_explain says of a query that policies or a security barrier hide rows
# from is the same for a value that only a hidden row has and one that none has.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server('secured');

if ($node->psql('postgres', q{LOAD 'auto_explain'}) != 0)
{
	$node->stop;
	plan skip_all => 'the server has no auto_explain';
}
$node->safe_psql(
	'postgres', q{
CREATE TABLE t (p int, tenant int, k int) PARTITION BY LIST (p);
CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);
CREATE TABLE t2 PARTITION OF t FOR VALUES IN (2);
CREATE TABLE t3 PARTITION OF t FOR VALUES IN (3);
INSERT INTO t SELECT i / 2000 + 1, 1, i FROM generate_series(0, 5999) i WHERE i NOT BETWEEN 4700 AND 4720;
INSERT INTO t VALUES (3, 2, 4711);
CREATE INDEX ON t USING rangefilter (k) WITH (pages_per_range = 4);
CREATE TABLE d (id int);
INSERT INTO d SELECT generate_series(4700, 4720);
VACUUM t;
ANALYZE d;
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM t WHERE tenant = 1;
CREATE ROLE reader;
CREATE ROLE viewer;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
ALTER TABLE t3 ENABLE ROW LEVEL SECURITY;
CREATE POLICY visible ON t USING (tenant = 1);
CREATE POLICY visible ON t3 USING (tenant = 1);
GRANT SELECT ON t, t3, d TO reader;
GRANT SELECT ON barrier, d TO viewer;
});

# The plans of a query, with V for the value.
sub plans
{
	my ($query, $value, $settings) = @_;
	my ($out, $plan) = ('', '');

	$query =~ s/V/$value/g;
	$node->psql(
		'postgres', qq{
LOAD 'auto_explain';
SET auto_explain.log_level = notice;
SET auto_explain.log_timing = off;
SET auto_explain.log_min_duration = 0;
$settings
$query
}, stdout => \$out, stderr => \$plan);
	$plan =~ s/duration: \S+ ms//g;
	$plan =~ s/Timing: .*//g;
	$plan =~ s/$value/V/g;
	return $plan;
}

my %queries = (
	'literal' => 'SELECT * FROM t WHERE k = V;',
	'leaf' => 'SET enable_seqscan = off; SELECT * FROM t3 WHERE k = V;',
	'subquery' => 'SELECT * FROM t WHERE k = (SELECT V);',
	'join' => 'SELECT count(*) FROM t JOIN d ON t.k = d.id WHERE d.id + 0 = V;',
	'nested loop' => 'SELECT * FROM d, LATERAL (SELECT * FROM t WHERE t.k = d.id OFFSET 0) x WHERE d.id + 0 = V;',
	'generic' => 'SET plan_cache_mode = force_generic_plan; PREPARE q (int) AS SELECT * FROM t WHERE k = $1; EXECUTE q (V);',
	'parallel' => 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SELECT * FROM t WHERE k = (SELECT V);');
my %settings = (
	'' => '',
	'verbose json' => q{SET auto_explain.log_format = json; SET auto_explain.log_verbose = on;},
	'analyze' => 'SET auto_explain.log_analyze = on;',
	'jit' => 'SET jit = on; SET jit_above_cost = 0; SET jit_inline_above_cost = -1; SET jit_optimize_above_cost = -1;');

foreach my $name (sort keys %queries)
{
	foreach my $kind (sort keys %settings)
	{
		my $query = $queries{$name};
		my $set = $settings{$kind};

		# Which worker gets which rows is a matter of chance.
		next if $name eq 'parallel' && $kind eq 'analyze';

		my $plan = plans($query, 4711, "$set SET ROLE reader;");
		like($plan, qr/Scan/, "$name, $kind: there is a plan");
		is(plans($query, 4713, "$set SET ROLE reader;"),
			$plan, "$name, $kind: it tells nothing");
		next if $name eq 'leaf';
		$query =~ s/\bt\b/barrier/g;
		$query =~ s/barrier\.k/b.k/g;
		$query =~ s/FROM barrier/FROM barrier b/;
		is( plans($query, 4713, "$set SET ROLE viewer;"),
			plans($query, 4711, "$set SET ROLE viewer;"),
			"$name, $kind: nor behind a security barrier");
	}
}

# The superuser is told, so there is something to tell.
foreach my $name (grep { $_ ne 'parallel' } sort keys %queries)
{
	my $set = $settings{analyze};

	isnt(plans($queries{$name}, 4713, $set),
		plans($queries{$name}, 4711, $set),
		"$name: somebody is told");
}

# ... also how many partitions were skipped, if nothing is measured.
like(plans($queries{generic}, 4711, ''), qr/Partitions Skipped: 2 of 3/, 'what was skipped is told');

# A function's query that loads the library in the middle of another query, whose buffers may
# be shown: until the transaction ends all is read.
$node->safe_psql('postgres', q{
CREATE FUNCTION twice(value int) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN FOR i IN 1 .. 2 LOOP PERFORM count(*) FROM t WHERE k = value; END LOOP; END $$});
$node->append_conf('postgresql.conf', q{shared_preload_libraries = ''});
$node->restart;
is( $node->safe_psql(
		'postgres', q{
SET ROLE reader;
BEGIN;
SELECT twice(4713) \g /dev/null
SELECT pg_stat_get_xact_numscans('t1'::regclass);
COMMIT;
SELECT pg_stat_force_next_flush() \g /dev/null
BEGIN;
SELECT twice(4713) \g /dev/null
SELECT pg_stat_get_xact_numscans('t1'::regclass)}),
	"2\n0",
	'the library is loaded in a function: nothing is told');
$node->stop;
done_testing();
