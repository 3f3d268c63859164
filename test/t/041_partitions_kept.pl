# Extensions that keep partitions: pg_partman makes them from a template, drops and
# dissolves them; pg_repack writes them anew and exchanges files behind their indexes.
# Sessions that remember partitions go on to answer right, and skip.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $seed = seed();
my $node = new_server('node', conf => q{
rangefilter.autosummarize = on
rangefilter.autosummarize_delay = 100ms
});
my $session;

# What the session that stays answers for a value, with skipping and without, and
# whether partitions were skipped, of a table with columns k and b.
sub asked
{
	my ($table, $k) = @_;
	my @answers = map { ask($session, "SET rangefilter.enable = $_; SELECT count(*), min(b) FROM $table WHERE k = $k") } 'off', 'on';
	my $late = ask($session, "EXECUTE $table ($k)");
	my $plan = ask($session, "EXPLAIN (COSTS OFF) SELECT * FROM $table WHERE k = $k");

	return join(' ', $answers[0], $answers[0] eq $answers[1] && $answers[0] eq $late ? 'right' : "not $answers[1], $late",
		$plan =~ /Partitions Skipped: (\d+ of \d+)/ ? $1 : 'all read');
}

sub run_sql
{
	return $node->safe_psql('postgres', join(';', @_));
}

# Indexes as they are behind the extension's back.
sub all_right
{
	my ($table, $name) = @_;

	all_verified($node, $name);
	is( run_sql("SELECT k FROM $table GROUP BY k HAVING (SELECT count(*) FROM $table i WHERE i.k = $table.k) <> count(*)"),
		'', "$name: every row is found");
}

# Days from 20 ago to 4 ahead; each has values of its own.
sub test_partman
{
	run_sql(q{
		CREATE SCHEMA partman; CREATE EXTENSION pg_partman SCHEMA partman;
		CREATE TABLE ev (at timestamptz NOT NULL, k int, b text) PARTITION BY RANGE (at);
		CREATE TABLE template (LIKE ev);
		CREATE INDEX template_k ON template USING rangefilter (k)});

	# From version 5 on only unique indexes of the template are made.
	my $five = run_sql("SELECT extversion >= '5' FROM pg_extension WHERE extname = 'pg_partman'") eq 't';

	run_sql('CREATE INDEX ON ev USING rangefilter (k)') if $five;

	run_sql("SELECT partman.create_parent(p_parent_table := 'public.ev', p_control := 'at', p_type := '"
		  . ($five ? 'range' : 'native') . "', p_interval := '" . ($five ? '1 day' : 'daily')
		  . "', p_template_table := 'public.template', p_start_partition := (current_date - 20)::text)",
		"INSERT INTO ev SELECT current_date - g % 20 + interval '1 h', g, 'b' || g FROM generate_series(1, 2000) g",
		'ANALYZE ev');
	$session = open_session($node);
	ask($session, 'SET plan_cache_mode = force_generic_plan; PREPARE ev (int) AS SELECT count(*), min(b) FROM ev WHERE k = $1');

	# Today's, 20 past ones and 4 to come; the default partition has no index of the template's.
	my $partitions = run_sql("SELECT count(*) FROM pg_inherits WHERE inhparent = 'ev'::regclass");
	my $indexed = run_sql("SELECT count(*) FROM pg_index JOIN pg_inherits ON inhrelid = indrelid WHERE inhparent = 'ev'::regclass");

	cmp_ok($indexed, '>=', 24, 'partitions of pg_partman have an index');
	is(asked('ev', 707), '1|b707 right ' . ($indexed - 1) . " of $partitions", 'partitions of pg_partman');
	is(asked('ev', 5000), "0| right $indexed of $partitions", 'nothing there');

	# New partitions; one gets the value that was in none.
	run_sql("UPDATE partman.part_config SET premake = 8", "INSERT INTO ev VALUES (current_date + interval '3 days', 5001, 'b')",
		"SELECT partman.run_maintenance('public.ev')");
	cmp_ok(run_sql("SELECT count(*) FROM pg_inherits WHERE inhparent = 'ev'::regclass"), '>', $partitions, 'maintenance adds partitions');
	run_sql("INSERT INTO ev VALUES (current_date + interval '7 days 1 hour', 5000, 'b5000')");
	like(asked('ev', 5000), qr/^1\|b5000 right [23]\d of/, 'a row of a partition that was added');

	# Rows of the default partition get partitions of their own.
	run_sql("INSERT INTO ev SELECT current_date + 40 + g, 6000 + g, 'b' || g FROM generate_series(1, 3) g");
	like(asked('ev', 6002), qr/^1\|b2 right/, 'a row of the default partition');
	run_sql("SELECT partman.partition_data_time('public.ev', p_batch_count := 10)");
	is(run_sql('SELECT count(*) FROM ONLY ev_default'), '0', 'pg_partman moves rows out of the default partition');
	like(asked('ev', 6002), qr/^1\|b2 right [23]\d of/, 'a row that was moved');
	all_right('ev', 'after maintenance');

	# Old ones go.
	run_sql("UPDATE partman.part_config SET retention = '10 days', retention_keep_table = false", "SELECT partman.run_maintenance('public.ev')");
	like(asked('ev', 719), qr/^0\| right/, 'a row that was dropped with its partition');
	like(asked('ev', 701), qr/^1\|b701 right [123]\d of/, 'a row that was not');
	run_sql("UPDATE partman.part_config SET retention = '5 days', retention_keep_table = true", "SELECT partman.run_maintenance('public.ev')");
	like(asked('ev', 708), qr/^0\| right/, 'a row of a partition that was detached');

	# An index on the table, too; then all partitions go.
	run_sql('CREATE INDEX ON ev USING rangefilter (b)', 'CREATE INDEX ON ev USING rangefilter (k)');
	like(asked('ev', 701), qr/^1\|b701 right [123]\d of/, 'with indexes on the table');
	my $rows = run_sql('SELECT count(*) FROM ev');

	run_sql('CREATE TABLE target (LIKE ev)');
	run_sql("SELECT partman.undo_partition('public.ev', p_target_table := 'public.target', p_keep_table := false, "
		  . ($five ? 'p_loop_count' : 'p_batch_count') . ' := 20)')
	  while run_sql('SELECT count(*) FROM partman.part_config') ne '0';
	is(run_sql('SELECT count(*) FROM target'), $rows, 'pg_partman dissolves the table');
	like(asked('ev', 701), qr/^0\| right/, 'a row that was moved out');
	is(run_sql('CREATE INDEX ON target USING rangefilter (k)', 'SELECT count(*) FROM target WHERE k = 701'), 1, '... and there it is');
	close_session($session);
}

sub repack
{
	my @command = ($node->installed_command('pg_repack'), '--no-superuser-check', '-h', $node->host, '-p', $node->port, '-d', 'postgres', @_);
	my $out = '';

	return IPC::Run::run(\@command, '<', \undef, '>&', \$out) ? 'done' : $out;
}

sub test_repack
{
	run_sql(q{CREATE EXTENSION pg_repack;
		CREATE TABLE r (p int, id int, k int, b text COLLATE "C", PRIMARY KEY (p, id)) PARTITION BY LIST (p);
		CREATE FUNCTION equal(a bigint, b bigint) RETURNS void LANGUAGE plpgsql AS
			$$BEGIN IF a <> b THEN RAISE EXCEPTION '% rows, not %', a, b; END IF; END$$;
		CREATE SEQUENCE ids START 10000}, map({ "CREATE TABLE r$_ PARTITION OF r FOR VALUES IN ($_)" } 0 .. 5),
		"INSERT INTO r SELECT g % 6, g, 10 * g, 'b' || g FROM generate_series(1, 6000) g",
		'CREATE INDEX r_k ON r USING rangefilter (k)', 'CREATE INDEX r_b ON r USING rangefilter (b)',
		'CREATE INDEX r_w ON r USING wormhole (b)', 'CREATE INDEX r1_e ON r1 USING rangefilter ((k / 2)) WITH (bits_per_key = 20, suffix = none) WHERE k > 100',
		'ANALYZE r');
	$session = open_session($node);
	ask($session, 'SET plan_cache_mode = force_generic_plan; PREPARE r (int) AS SELECT count(*), min(b) FROM r WHERE k = $1;
		PREPARE same AS SELECT count(*) FROM r WHERE k = 77;');

	# Often enough for digests.
	ask($session, "DO \$\$ DECLARE n int; BEGIN FOR i IN 1 .. 300 LOOP
			EXECUTE format('SELECT count(*) FROM r WHERE k = %s', 10 * i) INTO n;
			PERFORM equal(n, 1);
		END LOOP; END \$\$");
	is(ask($session, 'EXECUTE same'), 0, 'nothing there');
	is(asked('r', 770), '1|b77 right 5 of 6', 'before pg_repack');
	run_sql("INSERT INTO r VALUES (2, 9000, 77, 'b')");
	is(repack('-t', 'r2', '-t', 'r5'), 'done', 'pg_repack writes partitions anew');
	is(ask($session, 'EXECUTE same'), 1, 'a row of before');
	is(asked('r', 77), '1|b right 5 of 6', 'a row of before, other plans');
	run_sql("INSERT INTO r VALUES (5, 9000, 78, 'b'), (2, 9001, 779, 'b')");
	is(asked('r', 78), '1|b right 5 of 6', 'a row that came afterwards');
	is(asked('r', 779), '1|b right 5 of 6', 'another');
	is(asked('r', 770), '1|b77 right 5 of 6', 'an old row');
	run_sql("INSERT INTO r VALUES (1, 9000, 79, 'b')");
	is(repack('-t', 'r1', '-x'), 'done', 'pg_repack makes indexes anew');
	is(asked('r', 79), '1|b right 5 of 6', 'a row of before that');
	run_sql("INSERT INTO r VALUES (1, 9001, 76, 'b')");
	is(asked('r', 76), '1|b right 5 of 6', 'a row of after that');
	all_right('r', 'pg_repack');

	# And with others at work.  Each looks for what it has written, and compares with
	# what is found without our indexes.
	my $load = start_scripts($node, 4, $seed, {
			write => [ 4, q{
				SELECT nextval('ids') AS id \gset
				INSERT INTO r VALUES (:id % 6, :id, 10 * :id + 5, 'b' || :id);
				SELECT equal(count(*), 1) FROM r WHERE k = 10 * :id + 5;
				UPDATE r SET k = k + 1 WHERE k = 10 * :id + 5;
				SELECT equal(count(*), 1) FROM r WHERE k = 10 * :id + 6;
				SELECT equal(count(*), 0) FROM r WHERE k = 10 * :id + 5;} ],
			look => [ 8, q{
				\set k random(1, 6000) * 10
				SELECT equal((SELECT count(*) FROM r WHERE k = :k), (SELECT count(*) FROM r WHERE k + 0 = :k));
				SELECT equal((SELECT count(*) FROM r WHERE k BETWEEN :k AND :k + 20), (SELECT count(*) FROM r WHERE k + 0 BETWEEN :k AND :k + 20));} ],
			delete => [ 1, q{
				\set k random(1, 6000) * 10
				DELETE FROM r WHERE k = :k;
				SELECT equal(count(*), 0) FROM r WHERE k = :k;} ] }, '-M', 'prepared');
	my @done = map { repack('-t', "r$_", $_ == 3 ? '-x' : '-n') . ask($session, 'EXECUTE same') } 0 .. 5;

	is("@done", join(' ', ('done1') x 6), 'pg_repack while others write');
	is(finish_load($load), '', "seed $seed: they see what they wrote");
	all_right('r', 'pg_repack and others');
	is( run_sql("SELECT count(wormhole_check(c.oid, true)) FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE amname = 'wormhole' AND relkind = 'i'"),
		6, 'pg_repack and others: wormhole indexes are whole');
	like(asked('r', 77), qr/^1\|b right [345] of 6/, 'after all');
	close_session($session);
}

foreach ([ 'pg_partman_bgw', 'pg_partman', \&test_partman, '' ], [ 'pg_repack', 'pg_repack', \&test_repack, 'pg_repack' ])
{
	my ($library, $name, $test, $program) = @$_;

	SKIP:
	{
		skip "$name is not there", 1
		  if !has_library($node, $library) || $program && !grep { -x "$_/$program" } split /:/, $ENV{PATH};
		$test->();
	}
}
$node->stop;
done_testing();
