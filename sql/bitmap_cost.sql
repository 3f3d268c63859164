-- Is a bitmap scan by a rangefilter index planned where it reads few blocks, and not where a
-- btree or a sequential scan is faster?  `make bench B=choice` measures it.
CREATE SCHEMA bitmap_cost;
SET search_path = bitmap_cost, public;
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;

-- The scan that a query's plan has.
CREATE FUNCTION scan(query text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query LOOP
		IF line ~ 'Seq Scan|Index Scan' THEN
			RETURN regexp_replace(line, '^[ >-]*', '');
		END IF;
	END LOOP;
	RETURN 'none';
END
$$;

-- Random numbers; bursts of 200 rows with neighbouring numbers; a hundred numbers in
-- all blocks; numbers in order.
CREATE TABLE t (random int, bursts int, few int, ordered int, v int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT n::bigint * 7919 % 100003, (n / 200)::bigint * 7919 % 101 * 1000 + n % 200, n::bigint * 7919 % 101, n, n
	FROM generate_series(1, 20000) n;
CREATE INDEX t_random ON t USING rangefilter (random) WITH (pages_per_range = 8, bits_per_key = 24);
CREATE INDEX t_bursts ON t USING rangefilter (bursts) WITH (pages_per_range = 8, bits_per_key = 24);
CREATE INDEX t_few ON t USING rangefilter (few) WITH (pages_per_range = 8, bits_per_key = 24);
CREATE INDEX t_ordered ON t USING rangefilter (ordered) WITH (pages_per_range = 8, bits_per_key = 24);
VACUUM ANALYZE t;

-- Rangefilter alone: by what the summary says of these values.  Rows of bursts are near each
-- other, of which statistics say nothing.
SELECT correlation BETWEEN -0.5 AND 0.5 AS no_order FROM pg_stats WHERE tablename = 't' AND attname = 'bursts';
SELECT condition, scan('SELECT v FROM t WHERE ' || condition) FROM unnest(ARRAY['random = 7919', 'random BETWEEN 1000 AND 1010',
	'random BETWEEN 1000 AND 60000', 'bursts = 5', 'bursts BETWEEN 5000 AND 5199', 'bursts BETWEEN 5000 AND 7199', 'bursts BETWEEN 5000 AND 85000',
	'few = 7', 'few = 200', 'ordered BETWEEN 100 AND 3000', 'ordered > 0', 'bursts IS NULL', 'bursts > 6 AND bursts < 5',
	'bursts = NULL', 'bursts = (SELECT 5)', 'bursts = abs(-5)', 'random IN (7919, 15838)']) condition;

-- Lists: the summary knows which values are there, and each makes a scan of it.
SELECT n, first, scan(format('SELECT v FROM t WHERE random = ANY (''{%s,NULL}'')', (SELECT string_agg((x::bigint * 7919 % 100003)::text, ',')
	FROM generate_series(first, first + n - 1) x))) FROM (VALUES (5), (400)) n (n), (VALUES (1), (20001)) f (first) ORDER BY 1, 2;
SELECT condition, scan('SELECT v FROM t WHERE ' || condition) FROM unnest(ARRAY['random = ANY (NULL)', 'random = ANY (''{}'')',
	'bursts < ANY (''{10,20}'')', 'bursts > ANY (''{10,20}'')', 'few IN (1, 2, 3)', 'few IN (200, 201)']) condition;

-- Values that are known only later: by the statistics.
PREPARE point AS SELECT v FROM t WHERE random = $1;
PREPARE wide AS SELECT v FROM t WHERE few = $1;
SET plan_cache_mode = force_generic_plan;
SELECT scan('EXECUTE point (7919)'), scan('EXECUTE wide (7)');
RESET plan_cache_mode;
SELECT scan('SELECT v FROM (VALUES (7919), (15838)) x (k) JOIN t ON random = k');

-- Beside a btree, which is read by a bitmap as well, where the rows are many.
CREATE INDEX t_random_btree ON t (random);
CREATE INDEX t_bursts_btree ON t (bursts);
CREATE INDEX t_few_btree ON t (few);
SELECT condition, scan('SELECT v FROM t WHERE ' || condition) FROM unnest(ARRAY['random = 7919',
	'random BETWEEN 1000 AND 6000', 'random BETWEEN 1000 AND 90000', 'bursts = 5', 'bursts BETWEEN 5000 AND 7199', 'few < 10']) condition;
DROP INDEX t_random_btree, t_bursts_btree, t_few_btree;

-- Rows of two columns: nothing is known of the second one alone.
CREATE INDEX t_two ON t USING rangefilter (bursts, random) WITH (pages_per_range = 8, bits_per_key = 24);
DROP INDEX t_random;
SELECT scan('SELECT v FROM t WHERE random = 7919');

-- Blocks that came since are looked into, up to 256.  If few of them have such rows, that is
-- faster than a sequential scan by three processes.
SET rangefilter.autosummarize = off;
INSERT INTO t SELECT n, n, n, n, n FROM generate_series(20001, 40000) n;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SELECT condition, scan('SELECT v FROM t WHERE ' || condition) FROM unnest(ARRAY['ordered = -5', 'ordered = 100', 'ordered > 100']) condition;
RESET parallel_setup_cost;
RESET min_parallel_table_scan_size;
SET max_parallel_workers_per_gather = 0;
INSERT INTO t SELECT n, n, n, n, n FROM generate_series(40001, 200000) n;
SELECT tail_open FROM rangefilter_status('t_ordered');
SELECT scan('SELECT v FROM t WHERE ordered = 100');
VACUUM t;
SELECT scan('SELECT v FROM t WHERE ordered = 100');

-- A plan must not tell a user of rows that are hidden from him, by its costs either.
CREATE ROLE bitmap_cost_user;
GRANT USAGE ON SCHEMA bitmap_cost TO bitmap_cost_user;
CREATE TABLE hidden AS SELECT random, bursts, v FROM t WHERE v <= 20000;
CREATE INDEX hidden_bursts ON hidden USING rangefilter (bursts) WITH (pages_per_range = 8, bits_per_key = 24);
CREATE INDEX hidden_expr ON hidden USING rangefilter ((bursts + 1)) WITH (pages_per_range = 8, bits_per_key = 24);
VACUUM ANALYZE hidden;
CREATE FUNCTION cost(query text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' ->> 'Total Cost';
END
$$;
-- one value is there, the other one is not
SELECT cost('SELECT v FROM hidden WHERE bursts BETWEEN 5000 AND 5010') = cost('SELECT v FROM hidden WHERE bursts BETWEEN 5500 AND 5510') AS same,
	cost('SELECT v FROM hidden WHERE bursts + 1 BETWEEN 5000 AND 5010') = cost('SELECT v FROM hidden WHERE bursts + 1 BETWEEN 5500 AND 5510') AS same_expression;
GRANT SELECT ON hidden TO bitmap_cost_user;
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
CREATE POLICY none ON hidden USING (v < 0);
SET ROLE bitmap_cost_user;
SET enable_seqscan = off;
SELECT scan('SELECT v FROM hidden WHERE bursts = 5000'), scan('SELECT v FROM hidden WHERE bursts + 1 = 5000');
SELECT cost('SELECT v FROM hidden WHERE bursts BETWEEN 5000 AND 5010') = cost('SELECT v FROM hidden WHERE bursts BETWEEN 5500 AND 5510') AS same,
	cost('SELECT v FROM hidden WHERE bursts + 1 BETWEEN 5000 AND 5010') = cost('SELECT v FROM hidden WHERE bursts + 1 BETWEEN 5500 AND 5510') AS same_expression;
RESET enable_seqscan;
RESET ROLE;
-- Nor may the first plan of a session, in the middle of which the library is loaded.  One
-- for the owner, one for the user.
ALTER DATABASE :"DBNAME" SET session_preload_libraries = plpgsql;
\c -
SET search_path = bitmap_cost;
SET enable_seqscan = off;
SELECT scan('SELECT v FROM hidden WHERE bursts = 5000');
\c -
SET search_path = bitmap_cost;
SET enable_seqscan = off;
SET ROLE bitmap_cost_user;
SELECT scan('SELECT v FROM hidden WHERE bursts = 5000');
RESET ROLE;
ALTER DATABASE :"DBNAME" RESET session_preload_libraries;

SET client_min_messages = warning;
DROP SCHEMA bitmap_cost CASCADE;
DROP ROLE bitmap_cost_user;
