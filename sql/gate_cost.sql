-- Gates change no cost: the planner takes the plan that it takes without them.
LOAD 'rangefilter';
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA gate_cost;
SET search_path = gate_cost, public;
-- Larger tables, too, are to have gates.
SET rangefilter.defer_partitions = 1000;
-- Rows that indexes count change costs.
SET rangefilter.estimate_rows = off;

-- The nodes of a query's plan, with their costs, without the members of Appends and gates.  A gate counts as an Append, which it replaces.
CREATE FUNCTION nodes(query text) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN (SELECT string_agg(concat_ws(' ', replace(n->>'Node Type', 'Custom Scan', 'Append'), n->>'Startup Cost', n->>'Total Cost', n->>'Plan Rows'), '; ')
		FROM jsonb_path_query(plan, 'strict $.**?(exists(@."Node Type"))') n
		WHERE n->>'Node Type' !~ 'Bitmap' AND coalesce(n->>'Parent Relationship', '') NOT IN ('Member', 'child', 'children'));
END
$$;
-- How many gates a plan has, and whether it is otherwise that of rangefilter.enable = off.
CREATE FUNCTION compared(query text, OUT gates bigint, OUT same bool)
LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
	mine text := nodes(query);
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	gates := (SELECT count(*) FROM jsonb_path_query(plan, 'strict $.**?(@."Custom Plan Provider" == "Range Filter Append")') g);
	PERFORM set_config('rangefilter.enable', 'off', true);
	same := mine = nodes(query);
	PERFORM set_config('rangefilter.enable', 'on', true);
END
$$;

-- 40 days, on each of which 5 of 200 devices report 200 times
CREATE TABLE fact (day int, device_id int, model_id int, v int) PARTITION BY LIST (day);
SELECT format('CREATE TABLE fact%s PARTITION OF fact FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', d, d)
FROM generate_series(0, 39) d \gexec
INSERT INTO fact SELECT d, d * 5 + n % 5, n % 10, n FROM generate_series(0, 39) d, generate_series(1, 1000) n;
CREATE INDEX ON fact USING rangefilter (device_id);
CREATE TABLE dim (id int PRIMARY KEY, name text, site int) WITH (autovacuum_enabled = off);
INSERT INTO dim SELECT g, 'device ' || g, g / 50 FROM generate_series(0, 199) g;
CREATE TABLE model (id int PRIMARY KEY, maker int) WITH (autovacuum_enabled = off);
INSERT INTO model SELECT g, g % 2 FROM generate_series(0, 9) g;
CREATE TABLE part (a int, b int) WITH (autovacuum_enabled = off);
CREATE TABLE part1 () INHERITS (part) WITH (autovacuum_enabled = off);
CREATE TABLE part2 () INHERITS (part) WITH (autovacuum_enabled = off);
INSERT INTO part1 SELECT n, n % 100 FROM generate_series(1, 1000) n;
INSERT INTO part2 SELECT n, n % 100 FROM generate_series(1001, 4000) n;
CREATE INDEX ON part1 USING rangefilter (a);
CREATE INDEX ON part2 USING rangefilter (a);
VACUUM ANALYZE fact, dim, model, part, part1, part2;

SET plan_cache_mode = force_generic_plan;
PREPARE equal (int) AS SELECT * FROM fact WHERE device_id = $1;
PREPARE any_of (int[]) AS SELECT count(*) FROM fact WHERE device_id = ANY ($1);
PREPARE few (int) AS SELECT * FROM fact WHERE device_id = $1 LIMIT 1;
PREPARE change (int) AS UPDATE fact SET v = 0 WHERE device_id = $1;
CREATE TABLE queries (n int GENERATED ALWAYS AS IDENTITY, query text);
INSERT INTO queries (query) VALUES
	('EXECUTE equal (7)'), ('EXECUTE any_of (NULL)'), ('EXECUTE few (7)'), ('EXECUTE change (7)'),
	('SELECT * FROM fact WHERE device_id = (SELECT 7)'),
	('SELECT * FROM fact WHERE device_id = (SELECT 7) FOR UPDATE'),
	('DELETE FROM fact WHERE device_id IN (SELECT id FROM dim WHERE site = 2)'),
	('MERGE INTO fact USING dim ON device_id = id AND name = ''device 77'' WHEN MATCHED THEN DELETE'),
	('SELECT * FROM part WHERE a = 7'), ('SELECT * FROM part WHERE a = (SELECT 7)'),
	('SELECT * FROM (SELECT day, device_id FROM fact UNION ALL SELECT a, b FROM part) u WHERE device_id = (SELECT 7)'),
	('SELECT count(*) FROM fact JOIN dim ON device_id = id WHERE name = ''device 77'''),
	('SELECT count(*) FROM fact JOIN dim ON device_id = id WHERE site = 2'),
	('SELECT count(*) FROM fact WHERE device_id IN (SELECT id FROM dim WHERE site = 2)'),
	('SELECT count(*) FROM fact JOIN model ON model_id = model.id JOIN dim ON device_id = dim.id WHERE site = 2 AND maker = 1'),
	('SELECT count(*) FROM dim LEFT JOIN fact ON device_id = id WHERE site = 2'),
	('SELECT count(*) FROM fact JOIN dim ON device_id BETWEEN id AND id + 1 WHERE name = ''device 77'''),
	('SELECT count(*) FROM dim WHERE site = 7 OR EXISTS (SELECT FROM fact WHERE device_id = id AND day < 2)'),
	('SELECT * FROM dim, LATERAL (SELECT * FROM fact WHERE device_id = id ORDER BY day DESC LIMIT 1) f WHERE id < 5');
SELECT n, (compared(query)).* FROM queries ORDER BY n;
-- The same with another index for the values, in parallel plans, and in joins of partitions
CREATE INDEX ON fact (device_id);
CREATE INDEX ON part2 (a);
SELECT n, (compared(query)).* FROM queries ORDER BY n;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FILTER (WHERE NOT same) AS others, sum(gates) > 20 AS gates FROM queries, compared(query);
SET enable_partitionwise_join = on;
PREPARE pairs AS SELECT * FROM fact a JOIN fact b USING (day, device_id) WHERE a.device_id = (SELECT 7);
CREATE TEMP TABLE mine AS SELECT split_part(nodes('EXECUTE pairs'), ';', 1) AS top;
SET rangefilter.enable = off;
SELECT top = split_part(nodes('EXECUTE pairs'), ';', 1) AS same FROM mine;
RESET rangefilter.enable;
RESET enable_partitionwise_join;
SET max_parallel_workers_per_gather = 0;
-- In cursors there are no gates
SET cursor_tuple_fraction = 1;
EXPLAIN (COSTS OFF) DECLARE c CURSOR FOR SELECT count(*) FROM fact JOIN dim ON fact.device_id = dim.id WHERE dim.site = -2 AND day < 2;
DROP SCHEMA gate_cost CASCADE;
