-- What EXPLAIN shows of deferred scans.
LOAD 'rangefilter';
SET client_min_messages = warning;
CREATE SCHEMA deferred;
SET search_path = deferred, public;
SET timezone = 'UTC';

\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/plans.sql
\set tables :abs_srcdir /sql/lib/deferred.sql
\set ECHO none
\i :helpers
\i :tables
\set ECHO all

SELECT explained('SELECT t.k FROM d JOIN t ON t.k = d.id WHERE d.name = ''n7''');
SELECT explained('SELECT t.k FROM d JOIN t ON t.k = d.id WHERE d.name = ''n7''', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
SELECT explained('SELECT t.k FROM d JOIN t ON t.k = d.id WHERE d.name = ''n7''', 'VERBOSE, COSTS OFF');
-- as properties, with the plan of one partition, or what was run
CREATE FUNCTION properties_of(query text, options text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE format('EXPLAIN (COSTS OFF, FORMAT JSON%s) ', options) || query INTO plan;
	plan := jsonb_path_query_first(plan, 'strict $.**?(@."Custom Plan Provider" == "Range Filter Scan")');
	RETURN QUERY SELECT in_old_words(concat(key, ': ', value)) FROM jsonb_each_text(plan)
	WHERE key ~ '^Part' OR key ~ '^Plans Made' OR key IN ('Relation Name', 'Alias') ORDER BY 1;
	RETURN QUERY SELECT concat('Plan: ', plan->'Plan'->>'Node Type', ' on ',
		coalesce(plan->'Plan'->>'Relation Name', (SELECT string_agg(p->>'Relation Name', ', ') FROM jsonb_array_elements(plan->'Plan'->'Plans') p)));
END $$;
SELECT properties_of('SELECT k FROM t WHERE w = (SELECT w FROM d WHERE name = ''n7'') AND n > 3', '');
SELECT properties_of('SELECT k FROM t WHERE w = (SELECT w FROM d WHERE name = ''n7'') AND n = 3', ', ANALYZE, TIMING OFF, SUMMARY OFF');
-- Values have the names that the plan around gives them.
SET enable_bitmapscan = off;
SELECT explained('SELECT k FROM t WHERE k = (SELECT id FROM d WHERE name = ''n7'') AND n < 5');
SELECT explained('SELECT (SELECT count(*) FROM t WHERE t.k = d.id + 1 AND t.tx <> d.name) FROM d WHERE name = ''n7''');
SELECT explained('SELECT count(*) FROM t WHERE at > timestamptz ''2022-04-01'' + (now() - now())');
RESET enable_bitmapscan;
PREPARE shown (int, int) AS SELECT k FROM t WHERE n < $1 AND k = $2;
SET plan_cache_mode = force_generic_plan;
SELECT explained('EXECUTE shown (5, 1260)', 'COSTS OFF, VERBOSE');
RESET plan_cache_mode;
DEALLOCATE shown;
SET enable_seqscan = off;
SET enable_indexscan = off;
SELECT explained('SELECT t.k FROM d JOIN t ON t.k = d.id WHERE d.name = ''n7''');
RESET enable_seqscan;
RESET enable_indexscan;
-- options that some versions have
CREATE FUNCTION explains(version int, options text, query text) RETURNS bool LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
BEGIN
	IF current_setting('server_version_num')::int / 10000 < version THEN
		RETURN true;
	END IF;
	EXECUTE format('EXPLAIN (FORMAT JSON, %s) ', options) || query INTO plan;
	RETURN jsonb_path_exists(plan, 'strict $.**?(@."Custom Plan Provider" == "Range Filter Scan").Plan');
END $$;
SELECT explains(16, 'GENERIC_PLAN', 'SELECT k FROM t WHERE k = $1');
SELECT explains(17, 'MEMORY', 'SELECT k FROM t WHERE k = (SELECT 5)');
SELECT explains(17, 'ANALYZE, SERIALIZE, MEMORY', 'SELECT * FROM t WHERE k = (SELECT 5)');
SELECT explains(15, 'ANALYZE, SETTINGS, WAL, VERBOSE, BUFFERS', 'SELECT * FROM t WHERE k = (SELECT 5)');
-- no value, no run
SELECT explained('SELECT t.k FROM d JOIN t ON t.k = d.id WHERE d.name = ''unknown''', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
-- several runs, the partitions of which differ
SELECT explained('SELECT * FROM d, LATERAL (SELECT k FROM t WHERE t.k = d.id ORDER BY at DESC LIMIT 1) l WHERE name IN (''n7'', ''n90'', ''n91'')',
	'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');

-- the plans of the first partitions that were read, with rows and buffers
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
CREATE FUNCTION partition_plans(query text, format text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
	plan text;
BEGIN
	EXECUTE format('EXPLAIN (ANALYZE, BUFFERS, FORMAT %s) ', format) || query INTO plan;
	IF format = 'JSON' THEN
		RETURN QUERY SELECT concat_ws(', ', p->>'Relation Name', (p->>'Actual Rows')::float, p->>'Actual Loops',
			(p->>'Shared Hit Blocks')::int + (p->>'Shared Read Blocks')::int > 0)
		FROM jsonb_path_query(plan::jsonb, 'strict $.**?(@."Custom Plan Provider" == "Range Filter Scan")."Partition Plans"[*].Plan') p;
	ELSE
		RETURN QUERY SELECT count(*) || ' ' || trim(line) FROM regexp_split_to_table(plan, E'\\n') line
		WHERE line ~* 'partition.plan|partitions.(read|considered)|plans.made' GROUP BY trim(line) ORDER BY 1;
	END IF;
END $$;
\set loop 'SELECT t.k FROM generate_series(600, 3999, 400) g, LATERAL (SELECT k FROM t WHERE k = g OFFSET 0) t'
SELECT partition_plans(:'loop', 'JSON');
SELECT partition_plans(:'loop', 'XML');
SELECT partition_plans(:'loop', 'YAML');
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
RESET enable_memoize;

DROP SCHEMA deferred CASCADE;
