# Extensions whose hooks are called beside ours: pg_stat_statements, auto_explain,
# pgaudit, pg_qualstats, hypopg, pg_hint_plan.  All that are there are loaded before the
# library, after it, and around it.  Queries answer and skip as without them, and each
# does its own work.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server('node', conf => q{
auto_explain.log_min_duration = 0
auto_explain.log_nested_statements = on
auto_explain.log_analyze = on
auto_explain.log_timing = off
pg_stat_statements.track = all
pg_stat_statements.track_planning = on
pgaudit.log = 'read, write'
pgaudit.log_catalog = off
pgaudit.log_relation = on
pg_qualstats.sample_rate = 1
compute_query_id = on
max_parallel_workers_per_gather = 0
rangefilter.defer_partitions = 1000
});

# Row 10 g is in partition g % 20, and nowhere else.
$node->safe_psql(
	'postgres', q{
CREATE TABLE t (p int, k int, b text COLLATE "C", v int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%s PARTITION OF t FOR VALUES IN (%s)', i, i) FROM generate_series(0, 19) i \gexec
INSERT INTO t SELECT g % 20, 10 * g, 'b' || 10 * g, g % 7 FROM generate_series(0, 3999) g;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_b ON t USING rangefilter (b);
CREATE INDEX t_v ON t (k, v);
CREATE TABLE d (id int PRIMARY KEY, k int, note text);
INSERT INTO d SELECT g, 10 * g, 'd' || g FROM generate_series(1, 100) g;
CREATE FUNCTION f(wanted int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN SELECT sum(v) + count(*) INTO n FROM t WHERE k = wanted; RETURN n; END $$;
CREATE ROLE auditor;
GRANT SELECT ON d TO auditor;
VACUUM ANALYZE t;
ANALYZE d;
});

my $generic = 'DEALLOCATE ALL; SET LOCAL plan_cache_mode = force_generic_plan';
my $hash = 'SET LOCAL enable_nestloop = off; SET LOCAL enable_mergejoin = off';
my $loop = 'SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off';
my $workers = 'SET LOCAL max_parallel_workers_per_gather = 2; SET LOCAL parallel_setup_cost = 0;
	SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0';
my @queries = (
	[ 'constant', '', 'SELECT p, k, v FROM t WHERE k = 700', 1 ],
	[ 'range', '', 'SELECT p, k, v FROM t WHERE k BETWEEN 700 AND 730', 1 ],
	[ 'list', '', 'SELECT p, k, v FROM t WHERE k IN (700, 710, 701)', 1 ],
	[ 'pattern', '', "SELECT p, k, v FROM t WHERE b LIKE 'b700%'", 1 ],
	[ 'nothing', '', 'SELECT count(*) FROM t WHERE k = 701', 1 ],
	[ 'index only', 'SET LOCAL enable_seqscan = off', 'SELECT k, v FROM t WHERE k = 700', 1 ],
	[ 'late index only', 'SET LOCAL enable_seqscan = off', 'SELECT k, v FROM t WHERE k = (SELECT 700)', 1 ],
	[ 'subquery', '', 'SELECT p, k, v FROM t WHERE k = (SELECT 700)', 1 ],
	[ 'generic plan', "$generic; PREPARE q (int) AS SELECT p, k, v FROM t WHERE k = \$1", 'EXECUTE q (700)', 1 ],
	[ 'generic plan, two', "$generic; PREPARE q (int, int) AS SELECT p, k, v FROM t WHERE k BETWEEN \$1 AND \$2 AND v > 0",
		'EXECUTE q (700, 730)', 1 ],
	[ 'custom plan', 'DEALLOCATE ALL; SET LOCAL plan_cache_mode = force_custom_plan; PREPARE q (int) AS SELECT p, k, v FROM t WHERE k = $1',
		'EXECUTE q (700)', 1 ],
	[ 'hash join', $hash, 'SELECT d.note, t.p, t.v FROM d JOIN t USING (k) WHERE d.id < 4', 1 ],
	[ 'nested loop', $loop, 'SELECT d.note, t.p, t.v FROM d, LATERAL (SELECT * FROM t WHERE t.k = d.k OFFSET 0) t WHERE d.id < 4', 1 ],
	[ 'left join', $hash, 'SELECT d.note, t.p, t.v FROM d LEFT JOIN t ON t.k = d.k AND t.k IN (10, 20) WHERE d.id < 4', 1 ],
	[ 'join of two', $hash, 'SELECT a.p, b.v FROM t a JOIN t b ON a.k = b.k WHERE a.k = 700', 1 ],
	[ 'EXISTS', '', 'SELECT d.note FROM d WHERE d.id < 4 AND EXISTS (SELECT FROM t WHERE t.k = d.k AND t.v >= 0)', 0 ],
	[ 'union', '', 'SELECT k, v FROM t WHERE k = 700 UNION ALL SELECT k, v FROM t WHERE k = 710', 1 ],
	[ 'ordered', 'SET LOCAL enable_seqscan = off', 'SELECT k, v FROM t WHERE k BETWEEN 700 AND 720 ORDER BY k, v LIMIT 2', 1 ],
	[ 'workers', $workers, 'SELECT count(*), sum(v) FROM t WHERE k >= (SELECT 39000)', 0 ],
	[ 'workers, constants', $workers, 'SELECT count(*), sum(v) FROM t WHERE k BETWEEN 700 AND 730', 1 ],
	[ 'update', '', 'UPDATE t SET v = v + 1 WHERE k = 700 RETURNING p, k, v', 1 ],
	[ 'late update', '', 'UPDATE t SET v = v + 1 WHERE k = (SELECT 700) RETURNING p, k, v', 1 ],
	[ 'move', '', 'UPDATE t SET p = (p + 1) % 20 WHERE k = 700 RETURNING p, k, v', 1 ],
	[ 'delete', $hash, 'DELETE FROM t USING d WHERE d.k = t.k AND d.id < 4 RETURNING t.p, t.k', 1 ],
	[ 'insert, select', "INSERT INTO t VALUES (3, 700, 'b700', 1)", 'SELECT p, k, v FROM t WHERE k = 700', 1 ],
	[ 'merge', 'MERGE INTO t USING (VALUES (700), (710)) s (k) ON t.k = s.k AND t.k IN (700, 710)
		WHEN MATCHED THEN UPDATE SET v = 100', 'SELECT p, k, v FROM t WHERE v = 100', 0 ],
	[ 'FOR UPDATE', '', 'SELECT p, k FROM t WHERE k = 700 FOR UPDATE', 1 ],
	[ 'function', '', 'SELECT f(700) + f(710)', 0 ],
	[ 'WITH', '', 'WITH u AS (UPDATE t SET v = 1 WHERE k = 700 RETURNING k) SELECT t.p, t.k FROM t JOIN u USING (k) WHERE t.k = 700', 1 ],
	[ 'cursor', 'DECLARE c CURSOR FOR SELECT p, k, v FROM t WHERE k BETWEEN 700 AND 730', 'FETCH ALL FROM c', 0 ],
	[ 'created table', 'CREATE TEMP TABLE c ON COMMIT DROP AS SELECT * FROM t WHERE k = 700', 'SELECT count(*), sum(v) FROM c', 0 ]);

# For a plain EXPLAIN.  auto_explain does not know hypopg's indexes, and from PostgreSQL 19 on
# it crashes where pg_qualstats has such a plan measured.
my $unlogged = 'SET auto_explain.log_min_duration = -1';

# What the server has logged since the mark that was set last.
my $mark = 0;

sub logged
{
	my $log = slurp_file($node->logfile, $mark);

	$mark = -s $node->logfile;
	return $log;
}

# A value that no row has had.
my $unused = 705;

sub unused
{
	return $unused += 10;
}

# A statement that is executed twice, the second time with another plan: a partition is
# read that was skipped.
sub planned_again
{
	my $k = unused();

	return "SET plan_cache_mode = force_generic_plan; PREPARE q AS SELECT count(*) FROM t WHERE k = $k;
		EXECUTE q; INSERT INTO t VALUES (4, $k, 'b', 1); EXECUTE q; DELETE FROM t WHERE k = $k;";
}

# How often something is in a text.
sub count_in
{
	my ($text, $pattern) = @_;

	return scalar(() = $text =~ /$pattern/g);
}

# The libraries that are there.
my @libraries = grep
{
	my $there = has_library($node, $_);

	note("$_ is not there: not tested") unless $there;
	$there
} qw(pg_stat_statements auto_explain pgaudit pg_qualstats pg_hint_plan hypopg);
my %there = map { $_ => 1 } @libraries;

if (!@libraries)
{
	$node->stop;
	plan skip_all => 'none of the extensions is there';
}

# Starts the server with libraries for all sessions, and for each session.
sub preload
{
	my ($shared, $session) = @_;

	$node->append_conf('postgresql.conf', 'shared_preload_libraries = ' . ($shared ? "'$shared'" : "''")
		. "\nsession_preload_libraries = '$session'\n");
	$node->restart;
	logged();
}

sub test_statements
{
	my ($order) = @_;
	my $query = 'SELECT count(*), sum(v) FROM t WHERE k = 720';

	is( $node->safe_psql('postgres', 'SELECT FROM pg_stat_statements_reset();'
			  . planned_again() . "$query; SET rangefilter.enable = off; $query;"),
		"0\n1\n1|2\n1|2", "$order: a statement that is planned again");
	is( $node->safe_psql('postgres', q{SELECT calls, rows, plans FROM pg_stat_statements WHERE query LIKE 'PREPARE q%'}),
		'2|2|2', "$order: pg_stat_statements counts its executions and plans");
	is( $node->safe_psql('postgres', q{SELECT calls, rows, plans FROM pg_stat_statements WHERE query LIKE 'SELECT count(*), sum(v)%'}),
		'2|2|2', "$order: pg_stat_statements has the same query with skipping and without");
}

sub test_auto_explain
{
	my ($order) = @_;
	my $log;

	logged();
	$node->safe_psql('postgres', 'SELECT count(*) FROM t WHERE k = 720 /* logged */');
	$log = logged();
	is(count_in($log, qr/Query Text: SELECT .* logged/), 1, "$order: auto_explain logs the query once");
	like($log, qr/Partitions Skipped: 19 of 20/, "$order: auto_explain logs what was skipped");
	$node->safe_psql('postgres', 'SELECT count(*) FROM t WHERE k = (SELECT 720)');
	like(logged(), qr/Range Filter Append.*Partitions Skipped: 19 of 20/s, "$order: auto_explain logs gates");
	$node->safe_psql('postgres', 'SET auto_explain.log_analyze = off; SELECT count(*) FROM t WHERE k = (SELECT 720)');
	like(logged(), qr/Range Filter Append.*Partitions Skipped: 19 of 20/s, "$order: auto_explain logs gates that are not measured");
	is($node->safe_psql('postgres', planned_again()), "0\n1", "$order: planned again for auto_explain");
	$log = logged();
	is(count_in($log, qr/Query Text: PREPARE q/), 2, "$order: auto_explain logs each execution of a statement that is planned again");
	like($log, qr/Seq Scan on t4|t4_k_v_idx on t4/, "$order: auto_explain logs the new plan");
}

# Lines of the audit, without what numbers statements.
sub audited
{
	my ($sql) = @_;

	logged();
	$node->safe_psql('postgres', $sql);
	return join("\n", map { /AUDIT: (\w+),\d+,\d+,(.*)/ ? "$1,$2" : () } split /\n/, logged());
}

sub test_audit
{
	my ($order) = @_;
	my $sql = "SET pgaudit.role = auditor; SELECT v FROM t WHERE k = 720; SELECT d.note FROM d JOIN t USING (k) WHERE d.id < 3;
		UPDATE t SET v = v WHERE k = 720; SELECT f(720); EXPLAIN ANALYZE SELECT v FROM t WHERE k = 720;";
	my $audit = audited("$sql");

	like($audit, qr/SESSION,READ,SELECT,TABLE,public\.t,SELECT v FROM t WHERE k = 720/, "$order: pgaudit logs the table");
	like($audit, qr/OBJECT,READ,SELECT,TABLE,public\.d,SELECT d\.note/, "$order: pgaudit logs an object");
	is($audit, audited("SET rangefilter.enable = off; $sql"), "$order: pgaudit logs the same with and without skipping");
	is( count_in(audited(planned_again()), qr/SESSION,READ,SELECT,TABLE,public\.t,PREPARE q/),
		2, "$order: pgaudit logs each execution of a statement that is planned again");
}

sub test_qualstats
{
	my ($order) = @_;

	is( $node->safe_psql('postgres', "SELECT FROM pg_qualstats_reset();
			SELECT v FROM t WHERE k = 720;
			SELECT DISTINCT lattnum, opno::regoperator, constvalue FROM pg_qualstats
			WHERE lrelid = 't12'::regclass;"),
		"2\n2|=(integer,integer)|720::integer", "$order: pg_qualstats has the condition of the partition that is read");
	is( $node->safe_psql('postgres', "SET enable_nestloop = off; SET enable_mergejoin = off; SET enable_seqscan = off;
			SELECT count(*) FROM d JOIN t USING (k) WHERE d.id < 3;
			SELECT count(*) FROM t a JOIN t b USING (k, v) WHERE a.k BETWEEN 700 AND 720;
			SELECT count(*) FROM (SELECT k, v FROM t WHERE k = (SELECT 720) OFFSET 0) s JOIN d USING (k);"),
		"2\n3\n1", "$order: pg_qualstats goes through joins of gates");
	like($node->safe_psql('postgres', "$unlogged; SET plan_cache_mode = force_generic_plan; PREPARE q (int) AS SELECT * FROM t WHERE k = \$1; EXPLAIN EXECUTE q (720)"),
		qr/Range Filter Append.*Partitions Skipped: 19 of 20/s, "$order: a gate tells what it skips though pg_qualstats measures it");
}

sub test_hypopg
{
	my ($order) = @_;
	my $plan = $node->safe_psql('postgres', "$unlogged; SELECT FROM hypopg_create_index('CREATE INDEX ON t12 (v, b)');
		SELECT FROM hypopg_create_index('CREATE INDEX ON t (b, v)');
		SET enable_seqscan = off; SET enable_bitmapscan = off;
		EXPLAIN SELECT * FROM t WHERE v = 2 AND b = 'b720' AND k + 0 = 720;
		SELECT p, k FROM t WHERE v = 2 AND b = 'b720' AND k + 0 = 720;
		SELECT p, k FROM t WHERE v = 2 AND b = (SELECT 'b720') AND k + 0 = 720;
		EXPLAIN SELECT * FROM t WHERE v = 2 AND b = (SELECT 'b720') AND k + 0 = 720;
		SELECT count(*) FROM hypopg_list_indexes");

	my ($skipping, $rows, $gate) = $plan =~ /^(.*?)\n(12\|720\n12\|720)\n(.*)$/s;

	ok($rows, "$order: rows are right with indexes of hypopg's") or diag($plan);
	like($skipping, qr/<\d+>btree_t.*Partitions Skipped: 19 of 20/s, "$order: an index of hypopg's is in a plan that skips");
	like($gate, qr/Range Filter Append.*<\d+>btree_t/s, "$order: ... and below a gate");
	like( ($node->psql('postgres', "SELECT FROM hypopg_create_index('CREATE INDEX ON t12 USING rangefilter (v)')"))[2],
		qr/not supported/, "$order: hypopg has no indexes of this method");
	SKIP:
	{
		skip 'hypopg cannot hide indexes', 1
		  if $node->psql('postgres', q{SELECT 'hypopg_hide_index(oid)'::regprocedure}) != 0;
		like( $node->safe_psql('postgres', "$unlogged; SELECT FROM hypopg_hide_index('t_k'::regclass);
				SELECT FROM hypopg_hide_index('t12_k_idx'::regclass); EXPLAIN SELECT * FROM t WHERE k = 720;
				SELECT p, k FROM t WHERE k = 720"),
			qr/^12\|720$/m, "$order: a row is found by hidden indexes");
	}
}

# With all hints every query has the same rows.
sub test_hints
{
	my ($order) = @_;
	my $all = join(' ', map { "SeqScan(t$_)" } 0 .. 19);
	my @hints = ('SeqScan(t)', 'IndexScan(t)', 'IndexScan(t t_v)', 'IndexOnlyScan(t)', 'BitmapScan(t)', 'NoSeqScan(t)', $all,
		'IndexScan(t t12_k_v_idx)', 'BitmapScan(t t_k)', 'Set(rangefilter.enable off)', 'Set(enable_seqscan off)', 'Parallel(t 2 hard)',
		'NestLoop(d t)', 'HashJoin(d t)', 'MergeJoin(d t)', 'Leading((t d))', 'Leading((d t)) NestLoop(d t)',
		'Leading((t d)) HashJoin(t d) SeqScan(t)', 'Rows(d t #1000000)', 'Memoize(d t)', 'IndexScan(t) Leading((d t)) NestLoop(d t)');

	compare_queries($node, "$order, hints", "SET plan_cache_mode = force_generic_plan",
		(map {
			[ "$_: constant", '', "/*+ $_ */ SELECT p, k, v FROM t WHERE k = 700", /enable off/ ? 0 : 1 ],
			[ "$_: late", '', "/*+ $_ */ SELECT p, k, v FROM t WHERE k = (SELECT 700)", 0 ],
			[ "$_: generic", "DEALLOCATE ALL; PREPARE q (int) AS /*+ $_ */ SELECT p, k, v FROM t WHERE k = \$1", "EXECUTE q (700)", 0 ],
			[ "$_: join", '', "/*+ $_ */ SELECT d.note, t.p, t.v FROM d JOIN t USING (k) WHERE d.id < 4", 0 ],
			[ "$_: update", '', "/*+ $_ */ UPDATE t SET v = v + 1 WHERE k = 700 RETURNING p, k, v", 0 ] } @hints));
	# It looks for hints by a query while it plans another one.
	compare_queries($node, "$order, table of hints", 'SET pg_hint_plan.enable_hint_table = on', @queries);

	my $plan = $node->safe_psql('postgres', "$unlogged; EXPLAIN (COSTS OFF) /*+ IndexScan(t) */ SELECT * FROM t WHERE k = 700");

	like($plan, qr/Partitions Skipped: 1\d of 20/, "$order: partitions are skipped under a hint");
	like($plan, qr/Index Scan using t10/, "$order: ... which pg_hint_plan obeys");
}

# Deferred scans plan and run queries of their own, which are no statements of the user's.
sub test_deferred
{
	my ($order) = @_;
	my $set = "SET rangefilter.defer_partitions = 4; $loop; SET LOCAL enable_memoize = off";
	my $join = 'SELECT count(*), sum(t.v) FROM d JOIN t USING (k) WHERE d.id < 4';
	my @plans = ('the plans of partitions' => $join, 'one plan' => 'SELECT p FROM t WHERE k = (SELECT 720)',
		'no plan' => 'SELECT p FROM d JOIN t USING (k) WHERE d.id = -1');

	$set =~ s/LOCAL//g;
	compare_queries($node, "$order, deferred", $set, map { [ @$_[ 0 .. 2 ], 0 ] } @queries);
	if ($there{pg_stat_statements})
	{
		is( $node->safe_psql('postgres', "$set; SELECT FROM pg_stat_statements_reset(); $join; $join;
				SELECT query, calls, rows, plans FROM pg_stat_statements WHERE query !~ 'reset' AND calls > 0"),
			"3|6\n3|6\n" . ($join =~ s/4$/\$1/r) . '|2|2|2', "$order: pg_stat_statements has a deferred query alone");
	}
	while ($there{auto_explain} && (my ($name, $query) = splice(@plans, 0, 2)))
	{
		foreach my $setting ('log_analyze = on', 'log_analyze = off', 'log_analyze = on; EXPLAIN')
		{
			logged();
			$node->safe_psql('postgres', "$set; SET auto_explain.$setting" . ($setting =~ /EXPLAIN/ ? ' ' : '; ') . $query);
			my $log = logged();
			my $shown = $setting =~ /EXPLAIN/ ? '(Deferred|Read)' : $setting =~ /off/ ? 'Deferred: 20' : 'Read: \d+ of \d+';

			is(count_in($log, qr/Query Text/), 1, "$order: auto_explain logs a deferred query once ($name, $setting)");
			like($log, qr/Range Filter Scan.*Partitions $shown/s, "$order: ... with the deferred scan");
		}
	}
	is(audited("$set; SET pgaudit.role = auditor; $join"), audited("$set; SET pgaudit.role = auditor; SET rangefilter.enable = off; $join"),
		"$order: pgaudit logs the same of a deferred query")
	  if $there{pgaudit};
	return;
}

# All sessions, all orders.  Where the library is loaded by each session, it comes last.
my @around = @libraries;
my @last = splice(@around, @around / 2);
my %orders = (
	'before' => [ join(', ', 'rangefilter', @libraries), '' ],
	'after' => [ join(', ', @libraries, 'rangefilter'), '' ],
	'between' => [ join(', ', reverse(@last), 'rangefilter', reverse(@around)), '' ],
	'in sessions' => [ join(', ', grep { !/hypopg|hint/ } @libraries), 'hypopg' x !!$there{hypopg} . ', ' x !!$there{hypopg} . 'rangefilter' ]);

foreach my $order (sort keys %orders)
{
	preload(@{ $orders{$order} });
	$node->safe_psql('postgres', "CREATE EXTENSION IF NOT EXISTS $_") foreach grep { !/auto_explain/ } @libraries;
	compare_queries($node, $order, '', @queries);
	test_statements($order) if $there{pg_stat_statements};
	test_auto_explain($order) if $there{auto_explain};
	test_audit($order) if $there{pgaudit};
	test_qualstats($order) if $there{pg_qualstats};
	test_hypopg($order) if $there{hypopg};
	test_deferred($order);
	test_hints($order) if $there{pg_hint_plan} && $order ne 'in sessions';
}
$node->stop;
done_testing();
