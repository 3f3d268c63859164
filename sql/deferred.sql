-- Deferred scans: partitions are planned when the values that choose among them are
-- known.  Every result is compared with that of rangefilter.enable = off.
LOAD 'rangefilter';
SET client_min_messages = warning;
CREATE SCHEMA deferred;
SET search_path = deferred, public;
SET timezone = 'UTC';

\getenv abs_srcdir PG_ABS_SRCDIR
\set plans :abs_srcdir /sql/lib/plans.sql
\set helpers :abs_srcdir /sql/lib/deferred.sql
\set ECHO none
\i :plans
\i :helpers
\set ECHO all

-- A plan, with equalities in one order whatever the version.
CREATE FUNCTION explained(query text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE sql AS
$$
	SELECT replace(replace(replace(replace(replace(line, '(d.id = t.k)', '(t.k = d.id)'), '((d.id) = k)', '(k = (d.id))'), '(1260 = k)', '(k = 1260)'),
		'((g.g % 1100) = t.k)', '(t.k = (g.g % 1100))'), '($0)', '$0')
	FROM plan_of(query, options) line
$$;

-- t has 38 partitions, one with another order of columns and dropped ones, an empty one and
-- a default one.  Partition p holds 500 p ... 500 p + 499 in k; w has NULLs, and values
-- that are in several partitions.
CREATE TABLE t (part int, k int, w int, n int, at timestamptz, tx text COLLATE "C", u uuid, num numeric)
	PARTITION BY LIST (part);
CALL make_partitions('CREATE TABLE t# PARTITION OF t FOR VALUES IN (#) WITH (autovacuum_enabled = off)', 37);
CREATE TABLE t37 (gone int, tx text COLLATE "C", num numeric, at timestamptz, gone2 text, w int, n int, u uuid, k int, part int);
ALTER TABLE t37 DROP gone, DROP gone2;
ALTER TABLE t ATTACH PARTITION t37 FOR VALUES IN (37);
CREATE TABLE t_empty PARTITION OF t FOR VALUES IN (1000);
CREATE TABLE t_default PARTITION OF t DEFAULT;
INSERT INTO t
SELECT v / 500, v, nullif(v / 1200, 3), v % 10, timestamptz '2020-01-01 UTC' + v * interval '1 hour',
	'k' || to_char(v, 'FM00000'), ('00000000-0000-0000-0000-' || to_char(v, 'FM000000000000'))::uuid, v / 4.0
FROM generate_series(0, 19999) v;
CREATE INDEX ON t USING rangefilter (k);
CREATE INDEX ON t USING rangefilter (w);
CREATE INDEX ON t USING rangefilter (at);
CREATE INDEX ON t USING rangefilter (tx);
CREATE INDEX ON t USING rangefilter (u);
CREATE INDEX ON t USING rangefilter (num);
CREATE INDEX ON t (k);
-- The other rows: every 180th value of k, and two that no partition has.
CREATE TABLE d (id int, name text, w int, at timestamptz, tx text, u uuid, num numeric);
INSERT INTO d
SELECT k, 'n' || k / 180, w, at, tx, u, num FROM t WHERE k % 180 = 0
UNION ALL SELECT 50000, 'none', 777, NULL, NULL, NULL, -1
UNION ALL SELECT NULL, 'null', NULL, NULL, NULL, NULL, NULL;
VACUUM ANALYZE t;
ANALYZE d;
-- Which rows need the heap depends on other sessions.
SET enable_indexonlyscan = off;
SHOW rangefilter.defer_partitions;

--
-- EXPLAIN
--
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

--
-- Joins
--
SELECT deferred('SELECT * FROM d JOIN t ON t.k = d.id WHERE d.name = ''n7''');
SELECT deferred('SELECT t.*, d.name FROM d JOIN t ON t.k = d.id WHERE d.name IN (''n7'', ''n8'', ''n50'', ''none'', ''null'')');
SELECT deferred('SELECT * FROM d JOIN t ON t.u = d.u AND t.num = d.num WHERE d.name = ''n7''');
SELECT deferred('SELECT * FROM d JOIN t ON t.tx = d.tx COLLATE "C" WHERE d.name IN (''n7'', ''n8'')');
SELECT deferred('SELECT * FROM d JOIN t ON t.k BETWEEN d.id AND d.id + 600 WHERE d.name = ''n7''');
SELECT deferred('SELECT * FROM d JOIN t ON t.num = d.num WHERE d.name IN (''n7'', ''n8'')');
SELECT deferred('SELECT * FROM d JOIN t ON t.w = d.w AND t.n > 8 WHERE d.name IN (''n7'', ''n8'', ''n90'')');
SELECT deferred('SELECT * FROM d LEFT JOIN t ON t.k = d.id WHERE d.name IN (''n7'', ''none'')');
SELECT deferred('SELECT * FROM d LEFT JOIN t ON t.k = d.id AND t.n > 5 WHERE d.name IN (''n7'', ''none'')');
-- a placeholder variable on the nullable side
SELECT deferred('SELECT d.name, s.x FROM d LEFT JOIN (SELECT k, coalesce(n, 7) AS x FROM t) s ON s.k = d.id WHERE d.name IN (''n7'', ''none'')');
SELECT deferred('SELECT d.name, s.x FROM d LEFT JOIN (SELECT k, 1 AS x FROM t) s ON s.k = d.id WHERE d.name IN (''n7'', ''none'')');
SELECT deferred('SELECT * FROM d e LEFT JOIN d ON d.id = e.id + 180 LEFT JOIN t ON t.k = coalesce(d.id, e.id) WHERE e.name IN (''n7'', ''none'')');
-- Of many outer rows, in nested loops: some find nothing, most find a partition that was read before.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT deferred('SELECT * FROM d JOIN t ON t.k = d.id');
SELECT deferred('SELECT * FROM d LEFT JOIN t ON t.k = d.id');
SELECT deferred('SELECT * FROM d WHERE NOT EXISTS (SELECT FROM t WHERE t.k = d.id)');
SELECT deferred('SELECT * FROM d JOIN t ON t.k = d.id + 1 AND t.n = 1');
SELECT deferred('SELECT * FROM generate_series(-100, 20100, 90) g JOIN t ON t.k = g');
SELECT deferred('SELECT * FROM generate_series(0, 20) g JOIN t ON t.w = g % 7 AND t.n < 2 WHERE g <> 13');
-- Each value comes several times in a row; twice after another one.
SET enable_memoize = off;
SELECT deferred('SELECT * FROM generate_series(0, 40) g JOIN t ON t.k = g / 7 * 700');
SELECT deferred('SELECT * FROM (SELECT k FROM t WHERE k IN (5, 5500) OR k IN (7, 5507) ORDER BY n, part) g JOIN t ON t.k = g.k');
SELECT deferred('SELECT * FROM (VALUES (1, 5), (2, NULL), (3, NULL), (4, 5), (5, 5), (6, 50000), (7, 50000), (8, 5)) g (i, v) LEFT JOIN t ON t.k = g.v');
RESET enable_memoize;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
-- of all rows: read at once
SELECT deferred('SELECT count(*) FROM d JOIN t ON t.k = d.id');
-- with Memoize or without
SET enable_memoize = off;
SELECT deferred('SELECT * FROM d JOIN t ON t.k = d.id WHERE d.name IN (''n7'', ''n8'')');
RESET enable_memoize;

--
-- Subqueries
--
SELECT deferred('SELECT * FROM t WHERE k = (SELECT id FROM d WHERE name = ''n9'')');
SELECT deferred('SELECT * FROM t WHERE k = (SELECT id FROM d WHERE name = ''null'')');
SELECT deferred('SELECT * FROM t WHERE k = (SELECT id FROM d WHERE name = ''unknown'')');
SELECT deferred('SELECT * FROM t WHERE k >= (SELECT id FROM d WHERE name = ''n9'') AND k < (SELECT id FROM d WHERE name = ''n10'')');
SELECT deferred('SELECT * FROM t WHERE k = ANY (ARRAY(SELECT id FROM d WHERE name LIKE ''n9_''))');
SELECT deferred('SELECT * FROM t WHERE k IN (SELECT id FROM d WHERE name IN (''n7'', ''n8'', ''n9''))');
SELECT deferred('SELECT * FROM t WHERE k NOT IN (SELECT id FROM d WHERE name = ''n7'') AND k = (SELECT 180)');
SELECT deferred('SELECT * FROM t WHERE k = 12345 OR k = (SELECT id FROM d WHERE name = ''n9'')');
SELECT deferred('SELECT * FROM d WHERE EXISTS (SELECT FROM t WHERE t.k = d.id) AND name IN (''n7'', ''none'')');
SELECT deferred('SELECT * FROM d WHERE NOT EXISTS (SELECT FROM t WHERE t.k = d.id) AND name IN (''n7'', ''none'')');
SELECT deferred('SELECT * FROM d WHERE (EXISTS (SELECT FROM t WHERE t.k = d.id) OR id > 30000) AND name IN (''n7'', ''none'', ''null'')');
SELECT deferred('SELECT name, (SELECT count(*) FROM t WHERE t.k BETWEEN d.id AND d.id + 3) FROM d WHERE name IN (''n7'', ''n8'', ''null'')');
SELECT deferred('SELECT name, (SELECT max(at) FROM t WHERE t.k = d.id) FROM d WHERE name IN (''n7'', ''n8'', ''none'')');
SELECT deferred('SELECT d.name, l.* FROM d, LATERAL (SELECT k, at FROM t WHERE t.k = d.id ORDER BY at DESC LIMIT 1) l WHERE name = ''n7''');
SELECT deferred('SELECT d.name, l.* FROM d, LATERAL (SELECT k, at FROM t WHERE t.w = d.w ORDER BY at DESC LIMIT 1) l WHERE name IN (''n7'', ''n8'', ''n90'')');
SELECT deferred('SELECT d.name, l.* FROM d LEFT JOIN LATERAL (SELECT n, count(*) FROM t WHERE t.w = d.w GROUP BY n) l ON true WHERE name IN (''n7'', ''none'')');
SELECT deferred('SELECT * FROM t WHERE k = (SELECT id FROM d WHERE name = ''n9'') AND n = (SELECT 0) AND tx > (SELECT ''a'')');
SELECT deferred('SELECT k, (SELECT name FROM d WHERE d.id = t.k), (SELECT count(*) FROM t u WHERE u.k = t.k + 600) FROM t WHERE k BETWEEN (SELECT 1258) AND (SELECT 1262)');
-- a subquery of a subquery
SELECT deferred('SELECT * FROM t WHERE k = (SELECT k FROM t WHERE k = (SELECT id FROM d WHERE name = ''n9''))');

--
-- Several partitioned tables
--
SELECT deferred('SELECT a.k, b.k FROM d JOIN t a ON a.k = d.id JOIN t b ON b.k = a.k + 1 WHERE d.name = ''n7''');
SELECT deferred('SELECT a.k, b.k, c.k FROM d JOIN t a ON a.k = d.id JOIN t b ON b.k = a.k JOIN t c ON c.k = b.k WHERE d.name IN (''n7'', ''n50'')');
SELECT deferred('SELECT * FROM t a JOIN t b ON b.k = a.k WHERE a.k = (SELECT id FROM d WHERE name = ''n9'')');
-- one reference reads all of the table
SELECT deferred('SELECT k FROM t WHERE k = (SELECT max(k) / 2 FROM t WHERE n > 3)');
SELECT deferred('WITH a AS MATERIALIZED (SELECT k FROM t WHERE n = 3 AND k % 1000 < 10) SELECT a.k, b.k FROM a JOIN t b ON b.k = a.k + 600');
-- one of them is skipped by a constant
SELECT deferred('SELECT a.k, b.k FROM t a JOIN t b ON b.k = a.k + 600 WHERE a.k = 4321');
SET enable_partitionwise_join = on;
SET enable_partitionwise_aggregate = on;
SELECT deferred('SELECT a.k, b.k FROM d JOIN t a ON a.k = d.id JOIN t b ON b.k = a.k AND b.part = a.part WHERE d.name = ''n7''');
SELECT deferred('SELECT part, count(*) FROM t WHERE k = (SELECT id FROM d WHERE name = ''n9'') GROUP BY part');
RESET enable_partitionwise_join;
RESET enable_partitionwise_aggregate;

--
-- Above the scan
--
CREATE VIEW v AS SELECT k, tx, n + 1 AS n1 FROM t WHERE n >= 0;
SELECT deferred('SELECT * FROM d JOIN v ON v.k = d.id WHERE d.name = ''n7''');
SELECT deferred('WITH x AS MATERIALIZED (SELECT id FROM d WHERE name = ''n7'') SELECT * FROM x JOIN t ON t.k = x.id');
SELECT deferred('WITH x AS (SELECT * FROM t WHERE k = (SELECT id FROM d WHERE name = ''n7'')) SELECT * FROM x UNION ALL SELECT * FROM x');
SELECT deferred('WITH RECURSIVE r (k) AS (SELECT 180 UNION ALL SELECT t.k + 180 FROM r JOIN t ON t.k = r.k AND r.k < 2000) SELECT * FROM r');
SELECT deferred('SELECT n, count(*), sum(k) FROM t WHERE w = (SELECT w FROM d WHERE name = ''n7'') GROUP BY n HAVING count(*) > 1');
SELECT deferred('SELECT DISTINCT n FROM t WHERE w = (SELECT w FROM d WHERE name = ''n7'')');
SELECT deferred('SELECT k, row_number() OVER (ORDER BY tx) FROM t WHERE w = (SELECT w FROM d WHERE name = ''n7'')');
SELECT deferred('SELECT k FROM t WHERE w = (SELECT w FROM d WHERE name = ''n7'') ORDER BY k DESC LIMIT 7');
SELECT deferred('SELECT k FROM t WHERE w = (SELECT w FROM d WHERE name = ''n7'') ORDER BY k OFFSET 3');
SELECT deferred('SELECT min(k), max(k) FROM t WHERE w = (SELECT w FROM d WHERE name = ''n7'')');
SELECT deferred('SELECT k FROM t WHERE k = (SELECT id FROM d WHERE name = ''n7'') UNION ALL SELECT k FROM t WHERE k = (SELECT id FROM d WHERE name = ''n8'')');
SELECT deferred('SELECT * FROM (SELECT k, tx FROM t UNION ALL SELECT id, name FROM d) s WHERE k = (SELECT id FROM d WHERE name = ''n7'')');
SELECT deferred('SELECT k FROM t WHERE k = (SELECT 5) INTERSECT SELECT k FROM t WHERE k = (SELECT 5)');

--
-- Columns: system columns, whole rows, none
--
SELECT deferred('SELECT tableoid::regclass, ctid, t FROM t WHERE k = (SELECT id FROM d WHERE name = ''n7'')');
SELECT deferred('SELECT t.tableoid::regclass, t, (t).tx, d FROM d JOIN t ON t.k = d.id WHERE d.name IN (''n7'', ''n105'')');
SELECT deferred('SELECT t.tableoid::regclass, t.ctid, t.xmin, t FROM t WHERE k BETWEEN (SELECT 18450) AND (SELECT 19050)');
SELECT deferred('SELECT FROM t WHERE k = (SELECT id FROM d WHERE name = ''n7'')');
SELECT deferred('SELECT count(*) FROM t WHERE w = (SELECT w FROM d WHERE name = ''n7'')');
SELECT deferred('SELECT k FROM t WHERE k = (SELECT id FROM d WHERE name = ''n7'') AND tableoid::regclass::text = ''t2''');
SELECT deferred('SELECT k FROM t WHERE k = (SELECT id FROM d WHERE name = ''n7'') AND t IS NOT NULL');

--
-- Conditions
--
CREATE FUNCTION calls_query(i int) RETURNS bool LANGUAGE plpgsql AS
$$ BEGIN RETURN EXISTS (SELECT FROM t JOIN d ON t.k = d.id WHERE d.name = 'n' || i); END $$;
CREATE FUNCTION reads(i int) RETURNS int LANGUAGE plpgsql STABLE AS
$$ DECLARE found int; BEGIN SELECT count(*) INTO found FROM t WHERE k = (SELECT i); RETURN found; END $$;
CREATE SEQUENCE s;
SET deferred.value = '1260';
SELECT deferred('SELECT * FROM t WHERE k = current_setting(''deferred.value'')::int');
SELECT deferred('SELECT count(*) FROM t WHERE at > now()');
SELECT deferred('SELECT count(*) FROM t WHERE at > timestamptz ''2020-02-01'' + (now() - now())');
SELECT deferred('SELECT count(*) FROM t WHERE at BETWEEN now() - interval ''300 years'' AND ''2020-01-03''::text::timestamptz');
SELECT deferred('SELECT k FROM t WHERE k = (SELECT 1260) AND random() >= 0');
SELECT deferred('SELECT k FROM t WHERE k = (SELECT 1260) AND nextval(''s'') > 0 AND n = 0');
SELECT deferred('SELECT k FROM t WHERE k = 1260 + (random() * 0)::int');
SELECT deferred('SELECT k FROM t WHERE k = (SELECT 1260) AND EXISTS (SELECT FROM d WHERE d.id = t.k)');
SELECT deferred('SELECT k FROM t WHERE k = (SELECT 1260) AND n IN (SELECT id % 10 FROM d)');
SELECT deferred('SELECT k FROM t WHERE k BETWEEN (SELECT 1258) AND (SELECT 1262) AND calls_query(n)');
SELECT deferred('SELECT k, reads(k + 3) FROM t WHERE k BETWEEN (SELECT 1258) AND (SELECT 1262) AND reads(k) = 1');
SELECT deferred('SELECT d.name, t.k FROM d JOIN t ON t.k = d.id + reads(d.id) WHERE d.name IN (''n7'', ''n8'', ''none'')');
SELECT deferred('SELECT * FROM t WHERE w IS NULL AND k = (SELECT 4000)');
SELECT deferred('SELECT count(*) FROM t WHERE w IS NOT DISTINCT FROM (SELECT w FROM d WHERE name = ''null'')');
SELECT deferred('SELECT k FROM t WHERE (k = (SELECT 5) AND n = 5) OR (tx = (SELECT ''k19999'') AND n = 9)');
SELECT deferred('SELECT k FROM t WHERE tx LIKE (SELECT ''k1234%'')');
SELECT deferred('SELECT k FROM t WHERE num = (SELECT 250.25)');
SELECT deferred('SELECT k FROM t WHERE u = (SELECT u FROM d WHERE name = ''n7'')');
SELECT deferred('SELECT k FROM t WHERE k = (SELECT 7::bigint)');
SELECT deferred('SELECT k FROM t WHERE k = (SELECT 7) AND part = (SELECT 0)');
SELECT deferred('SELECT k FROM t WHERE k = (SELECT 7) AND part = (SELECT 1)');
SELECT deferred('SELECT d.name, t.k FROM d JOIN t ON t.k = d.id AND t.part = d.id / 500 WHERE d.name IN (''n7'', ''n8'', ''n9'')');
SELECT deferred('SELECT k FROM t WHERE k = (SELECT 7) AND false');
SELECT deferred('SELECT k FROM t WHERE k = (SELECT 19999) AND part > 35');

-- A constraint of the partition that stands for all refutes the query.
ALTER TABLE t0 ADD CHECK (n < 10);
ALTER TABLE t0 ALTER n SET NOT NULL;
INSERT INTO t VALUES (5, 2501, 2, 15), (6, 3001, 2, NULL);
SELECT deferred('SELECT k FROM t WHERE w = (SELECT 2) AND n = 15');
SELECT deferred('SELECT k FROM t WHERE w = (SELECT 2) AND n >= 10 AND n < 20');
SELECT deferred('SELECT k FROM t WHERE w = (SELECT 2) AND n IS NULL');
SELECT deferred('SELECT count(*) FROM t WHERE w = (SELECT 2) AND n IS NOT NULL');
SELECT deferred('SELECT d.name, t.k FROM d JOIN t ON t.w = d.w + 1 AND t.n = 15 WHERE d.name IN (''n7'', ''n8'', ''n90'')');
ALTER TABLE t0 ALTER n DROP NOT NULL;
DELETE FROM t WHERE n = 15 OR n IS NULL;

--
-- Errors in values and conditions
--
SELECT deferred('SELECT k FROM t WHERE k = (SELECT 1 / (id - id) FROM d WHERE name = ''n7'')');
SELECT deferred('SELECT k FROM t WHERE k = (SELECT 7) AND 1 / (n - 7) > 0');
SELECT deferred('SELECT d.name FROM d, LATERAL (SELECT k FROM t WHERE t.k = d.id AND 1 / (t.k - 1440) < 2 OFFSET 0) l WHERE d.name IN (''n7'', ''n8'', ''n9'')');
-- a session that has caught them goes on
DO $$
DECLARE
	found int;
	total int := 0;
BEGIN
	FOR i IN 0 .. 200 LOOP
		BEGIN
			SELECT sum(1 / (t.k % 40)) INTO found FROM t WHERE t.k = (SELECT i * 60);
			total := total + 1;
		EXCEPTION WHEN division_by_zero THEN
			NULL;
		END;
	END LOOP;
	RAISE EXCEPTION '% of 201', total;
END $$;
SELECT deferred('SELECT k FROM t WHERE k = (SELECT 1260)');

--
-- Generic plans
--
SET plan_cache_mode = force_generic_plan;
PREPARE eq (int) AS SELECT * FROM t WHERE k = $1;
SELECT explained('EXECUTE eq (250)');
SELECT deferred('EXECUTE eq (250)');
SELECT deferred('EXECUTE eq (50000)');
SELECT deferred('EXECUTE eq (NULL)');
PREPARE rng (int, int) AS SELECT k, part FROM t WHERE k BETWEEN $1 AND $2;
SELECT deferred('EXECUTE rng (490, 510)');
SELECT deferred('EXECUTE rng (510, 490)');
SELECT deferred('EXECUTE rng (NULL, 490)');
PREPARE arr (int[]) AS SELECT k FROM t WHERE k = ANY ($1);
SELECT deferred('EXECUTE arr (''{5,505,NULL,5}'')');
SELECT deferred('EXECUTE arr (''{}'')');
SELECT deferred('EXECUTE arr (NULL)');
PREPARE lst (int, int) AS SELECT k FROM t WHERE k IN ($1, $2, 7);
SELECT deferred('EXECUTE lst (1205, NULL)');
PREPARE ors (int, text) AS SELECT k FROM t WHERE k = $1 OR tx = $2;
SELECT deferred('EXECUTE ors (105, ''k00305'')');
SELECT deferred('EXECUTE ors (NULL, NULL)');
PREPARE joined (text) AS SELECT d.name, t.* FROM d JOIN t ON t.k = d.id WHERE d.name = $1;
SELECT deferred('EXECUTE joined (''n7'')');
SELECT deferred('EXECUTE joined (NULL)');
PREPARE typed (text, numeric, uuid) AS SELECT k FROM t WHERE tx = $1 AND num = $2 AND u = $3;
SELECT deferred('EXECUTE typed (''k01260'', 315.0, ''00000000-0000-0000-0000-000000001260'')');
PREPARE optional (int) AS SELECT count(*) FROM t WHERE $1 IS NULL OR k = $1;
SELECT deferred('EXECUTE optional (5)');
SELECT deferred('EXECUTE optional (NULL)');
-- A function that changes has cached plans made anew.
CREATE FUNCTION twice(i int) RETURNS int LANGUAGE sql STABLE AS 'SELECT 2 * i';
PREPARE inlined (int) AS SELECT k FROM t WHERE k = twice($1);
SELECT deferred('EXECUTE inlined (100)');
EXECUTE inlined (100);
CREATE OR REPLACE FUNCTION twice(i int) RETURNS int LANGUAGE sql STABLE AS 'SELECT 3 * i';
EXECUTE inlined (100);
SELECT deferred('EXECUTE inlined (100)');

--
-- Functions
--
CREATE FUNCTION by_plpgsql(x int) RETURNS SETOF t LANGUAGE plpgsql AS
$$ BEGIN RETURN QUERY SELECT * FROM t WHERE k = x; END $$;
CREATE FUNCTION by_loop(x int, y int) RETURNS int LANGUAGE plpgsql AS
$$
DECLARE
	total int := 0;
	r record;
BEGIN
	FOR r IN SELECT k FROM t WHERE k BETWEEN x AND y LOOP
		total := total + (SELECT t.k FROM t WHERE t.k = r.k);
	END LOOP;
	RETURN total;
END $$;
CREATE FUNCTION by_sql(x int) RETURNS SETOF t LANGUAGE sql AS 'SELECT * FROM t WHERE k = x';
CREATE FUNCTION by_sql_stable(x int) RETURNS SETOF t LANGUAGE sql STABLE AS 'SELECT * FROM t WHERE k = x';
SELECT deferred('SELECT * FROM by_plpgsql(1260)');
SELECT deferred('SELECT g, f.k FROM generate_series(0, 19999, 777) g, by_plpgsql(g) f');
SELECT deferred('SELECT by_loop(480, 520)');
SELECT deferred('SELECT by_sql(1260)');
SELECT deferred('SELECT g, f.k FROM generate_series(0, 19999, 7777) g, by_sql_stable(g) f');
-- What is deferred opens no indexes of partitions that are not read.
CREATE FUNCTION locks_few_indexes() RETURNS bool LANGUAGE sql AS
$$
	SELECT count(*) < 40
	FROM pg_locks JOIN pg_class c ON c.oid = relation
	WHERE locktype = 'relation' AND relkind = 'i' AND pid = pg_backend_pid() AND relnamespace = 'deferred'::regnamespace;
$$;
BEGIN;
SELECT count(*) FROM by_plpgsql(1260);
SELECT locks_few_indexes();
COMMIT;
BEGIN;
SELECT count(*) FROM by_sql(1260);
SELECT locks_few_indexes();
COMMIT;
BEGIN;
SELECT by_loop(480, 485);
SELECT locks_few_indexes();
COMMIT;
SET plan_cache_mode = auto;
SELECT deferred('SELECT g, f.k FROM generate_series(0, 19999, 777) g, by_plpgsql(g) f');
SELECT deferred('SELECT by_loop(480, 520)');

--
-- Cursors.  Those that have a name and may be used by WHERE CURRENT OF, as joins may not, are not
-- deferred.
--
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT k FROM t WHERE k = (SELECT 1260);
FETCH 1 FROM c;
DECLARE s SCROLL CURSOR FOR SELECT d.name, t.k FROM d JOIN t ON t.k = d.id WHERE d.name IN ('n7', 'n8', 'n9') ORDER BY t.k;
FETCH 2 FROM s;
FETCH BACKWARD 1 FROM s;
FETCH LAST FROM s;
FETCH ABSOLUTE 1 FROM s;
DECLARE j CURSOR FOR SELECT d.name, t.k FROM d JOIN t ON t.k = d.id WHERE d.name IN ('n7', 'n8', 'n9');
FETCH 2 FROM j;
FETCH 2 FROM j;
SAVEPOINT a;
UPDATE t SET w = w WHERE CURRENT OF j;
ROLLBACK TO a;
DECLARE h CURSOR WITH HOLD FOR SELECT k FROM t WHERE k BETWEEN (SELECT 498) AND (SELECT 501) ORDER BY k;
FETCH 1 FROM h;
COMMIT;
FETCH ALL FROM h;
CLOSE h;
-- The first runs are made in a subtransaction that is rolled back.
CREATE FUNCTION by_cursor(query text) RETURNS int[] LANGUAGE plpgsql AS
$$
DECLARE
	c refcursor;
	x int;
	xs int[];
BEGIN
	OPEN c FOR EXECUTE query;
	BEGIN
		FOR i IN 1 .. 3 LOOP
			FETCH c INTO x;
			xs := xs || x;
		END LOOP;
		RAISE EXCEPTION 'undone';
	EXCEPTION WHEN raise_exception THEN
		NULL;
	END;
	LOOP
		FETCH c INTO x;
		EXIT WHEN NOT FOUND;
		xs := xs || x;
	END LOOP;
	RETURN xs;
END $$;
SELECT by_cursor('SELECT k FROM t WHERE k BETWEEN (SELECT 498) AND (SELECT 503) ORDER BY k');
SELECT by_cursor('SELECT k FROM t WHERE k BETWEEN (SELECT 498) AND (SELECT 503)');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT by_cursor('SELECT l.k FROM generate_series(0, 19999, 2001) g, LATERAL (SELECT k FROM t WHERE k = g OFFSET 0) l');
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
-- Scrolling, and the same rows once more.
CREATE FUNCTION by_scrolling(query text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	c refcursor;
	x int;
	xs int[];
	direction text;
BEGIN
	OPEN c SCROLL FOR EXECUTE query;
	FOREACH direction IN ARRAY '{NEXT,LAST,PRIOR,FIRST,NEXT,ABSOLUTE 3,RELATIVE -1,ABSOLUTE -2,FIRST}'::text[] LOOP
		EXECUTE format('FETCH %s FROM %I', direction, c) INTO x;
		xs := xs || x;
	END LOOP;
	LOOP
		FETCH BACKWARD FROM c INTO x;
		EXIT WHEN NOT FOUND;
	END LOOP;
	FETCH c INTO x;
	RETURN array_to_string(xs || x, ' ');
END $$;
SELECT by_scrolling('SELECT k FROM t WHERE k BETWEEN (SELECT 498) AND (SELECT 503) ORDER BY k');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT by_scrolling('SELECT l.k FROM generate_series(0, 19999, 2001) g, LATERAL (SELECT k FROM t WHERE k = g OFFSET 0) l');
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
-- a cursor opened in a subtransaction that is rolled back
BEGIN;
SAVEPOINT a;
DECLARE c CURSOR FOR SELECT k FROM t WHERE k BETWEEN (SELECT 498) AND (SELECT 501) ORDER BY k;
FETCH 1 FROM c;
ROLLBACK TO a;
SELECT deferred('SELECT k FROM t WHERE k = (SELECT 1260)');
ALTER TABLE t0 ADD CHECK (part = 0);
ROLLBACK;

--
-- The session's own commands while a deferred scan is open
--
CREATE FUNCTION does(command text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	r record;
	n int := 0;
BEGIN
	FOR r IN SELECT k FROM t WHERE k BETWEEN (SELECT 490) AND (SELECT 510) LOOP
		n := n + 1;
		IF n = 1 THEN
			EXECUTE command;
		END IF;
	END LOOP;
	RETURN n || ' rows';
EXCEPTION WHEN object_in_use THEN
	RETURN SQLERRM;
END $$;
SELECT does('TRUNCATE t1');
SELECT does('TRUNCATE t20');
SELECT does('TRUNCATE t');
SELECT does('DROP TABLE t20');
SELECT does('ALTER TABLE t20 ADD CHECK (k IS NOT NULL)');
SELECT does('ALTER TABLE t DETACH PARTITION t20');
SELECT does('ALTER TABLE t20 SET UNLOGGED');
SELECT does('ALTER TABLE t ADD COLUMN more int');
SELECT does('CLUSTER t20 USING t20_k_idx1');
SELECT does('REINDEX TABLE t20');
SELECT does('CREATE INDEX ON t20 (n)');
SELECT does('INSERT INTO t VALUES (1, 505)');
SELECT does('DELETE FROM t WHERE k = 509');
SELECT does('CREATE TABLE apart PARTITION OF t FOR VALUES IN (2000)');
SELECT count(*), min(k), max(k) FROM t;

--
-- Statements that write elsewhere, and those that are not deferred
--
CREATE TABLE copied AS SELECT t.* FROM d JOIN t ON t.k = d.id WHERE d.name IN ('n7', 'n8');
INSERT INTO copied SELECT t.* FROM d JOIN t ON t.k = d.id WHERE d.name IN ('n9', 'n10');
INSERT INTO copied SELECT * FROM t WHERE k = (SELECT id FROM d WHERE name = 'n11');
SELECT k, part, tx FROM copied ORDER BY k;
SELECT deferred('SELECT count(*) FROM copied, t WHERE t.k = copied.k');
CREATE MATERIALIZED VIEW m AS SELECT t.k FROM d JOIN t ON t.k = d.id WHERE d.name = 'n7';
REFRESH MATERIALIZED VIEW m;
SELECT * FROM m;
COPY (SELECT t.k FROM d JOIN t ON t.k = d.id WHERE d.name = 'n7') TO STDOUT;

CREATE FUNCTION is_deferred(query text) RETURNS bool LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
	RETURN jsonb_path_exists(plan, 'strict $.**?(@."Custom Plan Provider" == "Range Filter Scan")');
END
$$;
SELECT is_deferred('SELECT t.k FROM d JOIN t ON t.k = d.id WHERE d.name = ''n7''');
SELECT is_deferred('INSERT INTO copied SELECT t.* FROM d JOIN t ON t.k = d.id WHERE d.name = ''n9''');
SELECT is_deferred('CREATE TABLE more AS SELECT t.* FROM d JOIN t ON t.k = d.id WHERE d.name = ''n9''');
SELECT is_deferred('UPDATE t SET n = n FROM d WHERE t.k = d.id AND d.name = ''n7''');
SELECT is_deferred('DELETE FROM t USING d WHERE t.k = d.id AND d.name = ''n7''');
SELECT is_deferred('MERGE INTO t USING (SELECT * FROM d WHERE name = ''n7'') s ON t.k = s.id WHEN MATCHED THEN UPDATE SET n = t.n');
SELECT is_deferred('SELECT k FROM t WHERE k = (SELECT 5) FOR UPDATE');
SELECT is_deferred('SELECT t.k FROM d JOIN t ON t.k = d.id WHERE d.name = ''n7'' FOR UPDATE OF d');
SELECT is_deferred('SELECT k FROM t TABLESAMPLE SYSTEM (100) WHERE k = (SELECT 5)');
SELECT is_deferred('SELECT k FROM ONLY t WHERE k = (SELECT 5)');
SELECT is_deferred('SELECT k FROM t WHERE n = (SELECT 5)');
SELECT is_deferred('SELECT k FROM t WHERE k = 5');
SELECT is_deferred('SELECT k FROM t WHERE k < (SELECT 5) AND k > 19999');
SELECT is_deferred('DECLARE c CURSOR FOR SELECT k FROM t WHERE k = (SELECT 5)');
SELECT is_deferred('DECLARE c CURSOR FOR SELECT * FROM (SELECT k FROM t WHERE k = (SELECT 5) OFFSET 0) t');
SELECT is_deferred('DECLARE c CURSOR FOR SELECT k FROM d JOIN t ON k = id WHERE name = ''n7''');
SELECT is_deferred('DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT k FROM d JOIN t ON k = id WHERE name = ''n7''');
SELECT is_deferred('DECLARE c CURSOR FOR SELECT k FROM d JOIN t ON k = id WHERE name = ''n7'' FOR UPDATE');
SET rangefilter.defer_partitions = 41;
SELECT is_deferred('SELECT k FROM t WHERE k = (SELECT 5)');
RESET rangefilter.defer_partitions;
SET rangefilter.enable = off;
SELECT is_deferred('SELECT k FROM t WHERE k = (SELECT 5)');
RESET rangefilter.enable;
-- a subquery of an UPDATE
BEGIN;
UPDATE d SET w = (SELECT n FROM t WHERE t.k = d.id) + 100 WHERE name IN ('n7', 'n8') RETURNING name, w;
UPDATE t SET n = n + 100 WHERE k = (SELECT k FROM t WHERE k = (SELECT id FROM d WHERE name = 'n7')) RETURNING k, n;
SELECT deferred('SELECT * FROM t WHERE k = (SELECT 1260)');
DELETE FROM t USING d WHERE t.k = d.id AND d.name = 'n7';
SELECT deferred('SELECT * FROM t WHERE k = (SELECT 1260)');
INSERT INTO t SELECT 0, 1260 FROM d WHERE NOT EXISTS (SELECT FROM t WHERE t.k = 1260 + d.id * 0) AND name = 'n7';
SELECT deferred('SELECT * FROM t WHERE k = (SELECT 1260)');
ROLLBACK;
-- rows that the statement itself writes
BEGIN;
INSERT INTO t SELECT t.part, t.k + 20000, t.w, t.n FROM d JOIN t ON t.k = d.id WHERE d.name IN ('n7', 'n8') RETURNING k;
INSERT INTO t SELECT part, 21260 FROM t WHERE k = (SELECT 21260);
SELECT deferred('SELECT * FROM t WHERE k = (SELECT 21260)');
WITH w AS (INSERT INTO t VALUES (3, 21260) RETURNING k) SELECT w.k, (SELECT count(*) FROM t WHERE t.k = w.k) FROM w;
WITH w AS (DELETE FROM t WHERE k = 21260 RETURNING k) SELECT count(*), (SELECT count(*) FROM t WHERE t.k = (SELECT max(k) FROM w)) FROM w;
SELECT deferred('SELECT * FROM t WHERE k = (SELECT 21260)');
CREATE UNIQUE INDEX ON copied (k);
INSERT INTO copied SELECT t.* FROM d JOIN t ON t.k = d.id WHERE d.name IN ('n7', 'n12')
ON CONFLICT (k) DO UPDATE SET w = (SELECT count(*) + 100 FROM t WHERE t.k = excluded.k) RETURNING k, w;
ROLLBACK;
-- A loop whose cursor is held at COMMIT; then the table is not in use any more.
CREATE PROCEDURE commits(ddl text) LANGUAGE plpgsql AS
$$
DECLARE
	r record;
	n int := 0;
BEGIN
	FOR r IN SELECT l.k FROM generate_series(0, 19999, 100) g, LATERAL (SELECT k FROM t WHERE k = g OFFSET 0) l LOOP
		n := n + 1;
		IF n IN (3, 100) THEN
			COMMIT;
			EXECUTE ddl;
		END IF;
	END LOOP;
	RAISE WARNING '% rows', n;
END $$;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
CALL commits('INSERT INTO t VALUES (20, 100)');
CALL commits('TRUNCATE t_empty');
DELETE FROM t WHERE part = 20 AND k = 100;
SELECT deferred('SELECT l.k FROM generate_series(0, 19999, 100) g, LATERAL (SELECT k FROM t WHERE k = g OFFSET 0) l');
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
-- inheritance
CREATE TABLE old (k int);
CALL make_partitions('CREATE TABLE old# () INHERITS (old)', 33);
CALL make_partitions('CREATE INDEX ON old# USING rangefilter (k)', 33);
SELECT deferred('SELECT * FROM old WHERE k = (SELECT 5)');
DROP TABLE old CASCADE;

--
-- Privileges and hidden rows
--
CREATE ROLE regress_deferred;
CREATE ROLE regress_deferred_owner;
GRANT USAGE ON SCHEMA deferred TO regress_deferred, regress_deferred_owner;
GRANT SELECT ON d TO regress_deferred, regress_deferred_owner;
SET ROLE regress_deferred;
SELECT t.k FROM d JOIN t ON t.k = d.id WHERE d.name = 'n7';
RESET ROLE;
GRANT SELECT (k) ON t TO regress_deferred;
SET ROLE regress_deferred;
SELECT t.k FROM d JOIN t ON t.k = d.id WHERE d.name = 'n7';
SELECT t.n FROM d JOIN t ON t.k = d.id WHERE d.name = 'n7';
SELECT t FROM d JOIN t ON t.k = d.id WHERE d.name = 'n7';
SELECT k FROM t WHERE k = (SELECT 1260) AND n = 0;
SELECT k FROM t WHERE tx = (SELECT 'k01260');
SELECT tableoid FROM t WHERE k = (SELECT 1260);
RESET ROLE;
GRANT SELECT ON t TO regress_deferred;
SET ROLE regress_deferred;
SELECT t.k, t.n FROM d JOIN t ON t.k = d.id WHERE d.name = 'n7';
SELECT is_deferred('SELECT t.k FROM d JOIN t ON t.k = d.id WHERE d.name = ''n7''');
-- kept in a generic plan
SET plan_cache_mode = force_generic_plan;
PREPARE allowed (int) AS SELECT k, n FROM t WHERE k = $1;
EXECUTE allowed (1260);
RESET ROLE;
REVOKE SELECT ON t FROM regress_deferred;
REVOKE SELECT (k) ON t FROM regress_deferred;
SET ROLE regress_deferred;
EXECUTE allowed (1260);
RESET ROLE;
RESET plan_cache_mode;
-- a view of another owner, who may read the table
GRANT SELECT ON t TO regress_deferred_owner;
CREATE VIEW owned AS SELECT k, n FROM t;
ALTER VIEW owned OWNER TO regress_deferred_owner;
GRANT SELECT ON owned TO regress_deferred;
SET ROLE regress_deferred;
SELECT owned.* FROM d JOIN owned ON owned.k = d.id WHERE d.name = 'n7';
SELECT is_deferred('SELECT owned.* FROM d JOIN owned ON owned.k = d.id WHERE d.name = ''n7''');
RESET ROLE;
REVOKE SELECT ON t FROM regress_deferred_owner;
SET ROLE regress_deferred;
SELECT owned.* FROM d JOIN owned ON owned.k = d.id WHERE d.name = 'n7';
RESET ROLE;
CREATE VIEW barrier WITH (security_barrier) AS SELECT k, n FROM t WHERE n < 5;
SELECT deferred('SELECT barrier.* FROM d JOIN barrier ON barrier.k = d.id WHERE d.name = ''n7''');
GRANT SELECT ON t TO regress_deferred;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY low ON t FOR SELECT TO regress_deferred USING (n < 5);
SET ROLE regress_deferred;
SELECT deferred('SELECT t.* FROM d JOIN t ON t.k = d.id + 7 WHERE d.name = ''n7''');
SELECT deferred('SELECT t.* FROM d JOIN t ON t.k = d.id WHERE d.name = ''n7''');
RESET ROLE;
SELECT is_deferred('SELECT t.k FROM d JOIN t ON t.k = d.id WHERE d.name = ''n7''');
ALTER TABLE t DISABLE ROW LEVEL SECURITY;

--
-- Many runs in one scan: the plans of partitions are kept
--
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
SELECT explained('SELECT g, t.k FROM generate_series(0, 2999) g JOIN t ON t.k = g % 1100', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
SELECT count(*), sum(t.k) FROM generate_series(0, 2999) g JOIN t ON t.k = g % 1100;

DROP SCHEMA deferred CASCADE;
DROP ROLE regress_deferred, regress_deferred_owner;
