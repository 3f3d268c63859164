# What a summary forgets when rows are removed: in a table that is read in vain again and again
# without a VACUUM, through a crash, and not while an old snapshot sees the rows.  And that nothing
# is made anew again and again where that does not help.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

# The worker is asked after fifty scans in vain; all scans are watched.
my $node = new_server(
	'removed', conf => q{
rangefilter.autosummarize = on
rangefilter.autosummarize_delay = '100ms'
rangefilter.activity_sample_rate = 1
});

$node->safe_psql('postgres', q{
CREATE TABLE fence (p int, k int);
CREATE INDEX fence_k ON fence USING rangefilter (k);
CREATE FUNCTION fragile(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS
	$$BEGIN
		IF current_setting('application_name') = 'fails' THEN RAISE 'fragile'; END IF;
		RETURN $1;
	END$$;
-- A queue of four days; all jobs have been done.
CREATE PROCEDURE queue(name text, key text, done text) LANGUAGE plpgsql AS
	$$BEGIN
		EXECUTE format('CREATE TABLE %I (day int, id int, status text COLLATE "C", pad text) PARTITION BY LIST (day)', name);
		FOR day IN 1..4 LOOP
			EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES IN (%s)', name || day, name, day);
		END LOOP;
		EXECUTE format('INSERT INTO %I SELECT day, g, CASE WHEN g %% 400 = 0 THEN ''pending'' ELSE ''done'' END, repeat(''x'', 500)
			FROM generate_series(1, 4) day, generate_series(1, 1000) g', name);
		EXECUTE format('CREATE INDEX %I ON %I USING rangefilter (%s)', name || '_i', name, key);
		EXECUTE format('UPDATE %I SET status = ''done'' WHERE status = ''pending'' AND %s', name, done);
	END$$;
CREATE PROCEDURE look(name text, times int, status text DEFAULT 'pending') LANGUAGE plpgsql AS
	$$BEGIN FOR i IN 1..times LOOP
		EXECUTE format('SELECT id FROM %I WHERE status = %L', name, status);
	END LOOP; END$$;
CREATE PROCEDURE look_with_parameter(name text, times int) LANGUAGE plpgsql AS
	$$BEGIN
	EXECUTE format('PREPARE q(text) AS SELECT id FROM %I WHERE status = $1', name);
	FOR i IN 1..times LOOP
		EXECUTE 'EXECUTE q(''pending'')';
	END LOOP; END$$;
});

# How many of the four partitions are skipped?
sub skipped
{
	my ($table, $key) = @_;

	$key //= 'status';
	return $node->safe_psql('postgres', "EXPLAIN SELECT * FROM $table WHERE $key = 'pending'") =~ /Skipped: (\d)/ ? $1 : 0;
}

# How often was each partition's index summarized?
sub generations
{
	my ($table) = @_;

	return $node->safe_psql('postgres', qq{
SELECT string_agg(generation::text, ' ' ORDER BY s."table"::text)
FROM pg_class t, rangefilter_status(t.oid) s WHERE t.relname = '${table}_i'});
}

# In how many partitions of "kept" may there be a status?
sub summaries_with
{
	my ($status) = @_;

	return $node->safe_psql('postgres', "SELECT count(*) FROM rangefilter_status('kept_i') WHERE rangefilter_may_contain(index, '$status', '$status')");
}

# The worker takes requests in the order of time: it is done with those of before when it has
# summarized this table.
sub let_worker_finish
{
	my ($name) = @_;

	$node->safe_psql('postgres', q{SET rangefilter.autosummarize = worker;
INSERT INTO fence SELECT 1, k FROM generate_series(1, 5000) k});
	return ok($node->poll_query_until('postgres', q{SELECT NOT tail_open FROM rangefilter_status('fence_k')}), $name);
}

# Removes dead rows, but leaves their pointers, as pruning does; so no index is told.
sub prune
{
	my ($table) = @_;

	return $node->safe_psql('postgres', "VACUUM (INDEX_CLEANUP off) $table");
}

# ---- The worker, after reads in vain

$node->safe_psql('postgres', q{CALL queue('q', 'status', 'day < 4')});
prune('q');
is(skipped('q'), 0, 'nothing is forgotten');
$node->safe_psql('postgres', q{CALL look('q', 45)});
let_worker_finish('few reads in vain');
is(generations('q'), '1 1 1 1', 'are no reason');
$node->safe_psql('postgres', q{CALL look('q', 10)});
let_worker_finish('many reads in vain');
is(generations('q'), '2 2 2 1', 'are, of the partitions in which there is nothing');
is(skipped('q'), 3, 'which are skipped now');
is($node->safe_psql('postgres', q{SELECT count(*) FROM q WHERE status = 'pending'}), 2, 'the other one is not');

# A gate tells as well.  So does a scan by another index, by its share of the cost.
$node->safe_psql('postgres', q{CALL queue('g', 'status', 'true'); CALL queue('b', 'status', 'true');
CREATE INDEX ON b (status); ANALYZE b});
prune('g');
prune('b');
$node->safe_psql('postgres', q{
CALL look('b', 60);
SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan; CALL look_with_parameter('g', 60)});
let_worker_finish('reads in vain below a gate');
is(generations('g'), '2 2 2 2', 'are a reason');
is(generations('b'), '1 1 1 1', 'cheap ones are not');
is(skipped('g'), 4, 'all are skipped');

# Where it does not help, nothing is done: what an old snapshot keeps VACUUM from removing is not
# removed.
$node->safe_psql('postgres', q{CALL queue('kept', 'status', 'true')});
my $old = open_session($node);
ask($old, q{BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM kept});
$node->safe_psql('postgres', q{UPDATE kept SET status = 'waiting' WHERE id = 1; UPDATE kept SET status = 'done' WHERE id = 1});
$node->safe_psql('postgres', q{VACUUM (INDEX_CLEANUP on) kept; SELECT rangefilter_summarize('kept_i')});
my $generations = generations('kept');
$node->safe_psql('postgres', q{CALL look('kept', 60, 'waiting'); VACUUM (INDEX_CLEANUP on) kept; SELECT rangefilter_summarize('kept_i')});
let_worker_finish('reads in vain while there is an old snapshot');
is(generations('kept'), $generations, 'nothing is summarized');
is(summaries_with('waiting'), 4, 'nor forgotten');
ask($old, 'COMMIT; SELECT 1');
close_session($old);
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) kept');
is(summaries_with('waiting'), 0, 'VACUUM has the values forgotten when it removes the rows');
$generations = generations('kept');
$node->safe_psql('postgres', 'VACUUM kept; VACUUM (INDEX_CLEANUP on) kept');
is(generations('kept'), $generations, 'once');

# ---- A crash between what VACUUM removed and the summary

$node->safe_psql('postgres', q{CALL queue('c', 'fragile(status)', 'true'); CALL queue('f', 'fragile(status)', 'true'); CHECKPOINT});
my ($status, $stdout, $stderr) =
  $node->psql('postgres', q{SET application_name = 'fails'; VACUUM (INDEX_CLEANUP on) c; VACUUM (INDEX_CLEANUP on) f;
-- This commit flushes their WAL.
CREATE TABLE flushed ()});
like($stderr, qr/was not summarized: fragile/, 'VACUUM has removed rows, but not summarized');
is(generations('c'), '1 1 1 1', 'so nothing is forgotten');
$node->stop('immediate');
$node->start;
is(generations('c'), '1 1 1 1', 'nor by a crash');
$node->safe_psql('postgres', q{INSERT INTO f VALUES (1, 1, 'new')});
let_worker_finish('an insert into such a partition');
is(generations('f'), '2 1 1 1', 'has the worker summarize it');
$node->safe_psql('postgres', 'VACUUM c');
is(skipped('c', 'fragile(status)'), 4, 'the next VACUUM remembers, though it has nothing to remove');
is(generations('c'), '2 2 2 2', 'and summarizes');
$node->safe_psql('postgres', 'VACUUM c');
is(generations('c'), '2 2 2 2', 'once');

is($node->safe_psql('postgres', q{SELECT count(*) FROM rangefilter_check_database(true) WHERE problem IS NOT NULL}), 0, 'all indexes are sound');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no complaints');
$node->stop;
done_testing();
